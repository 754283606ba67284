
/*
 * Internal to src/http/upload: the spool, a temporary file with the terms of
 * ingested files, which ngx_http_xet_register() reads.
 */

#ifndef _NGX_HTTP_XET_SPOOL_H_INCLUDED_
#define _NGX_HTTP_XET_SPOOL_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_SPOOL_RECORDS  64         /* records in the buffer */


typedef struct {
    ngx_http_xet_temp_t  *file;
    uint64_t              terms;               /* terms in all files */
    uint64_t              end;                 /* end of the file section */

    uint64_t              start;               /* offset of the file header */
    uint32_t              count;               /* terms in the open file */
    uint32_t              number;              /* index of the open file */
    unsigned              open:1;

    xet_buf_t             buf;                 /* has one node, in room */
    uint64_t              room[NGX_HTTP_XET_SPOOL_RECORDS
                               * XET_SHARD_RECORD_LEN / 8
                               + sizeof(xet_buf_node_t) / 8];
} ngx_http_xet_spool_t;


/* Initializes the spool.  Returns NGX_OK, or NGX_ERROR if out of memory. */
ngx_int_t ngx_http_xet_spool_init(ngx_http_request_t *r,
    ngx_http_xet_spool_t *s);

/* Discards all terms, so that the spool can be used for other files. */
void ngx_http_xet_spool_begin_job(ngx_http_xet_spool_t *s, ngx_log_t *log);

/*
 * Appends a term to the open file, or opens a file if none is open.  Returns
 * XET_OK, XET_BODY_SIZE if the file has too many terms, or a write error.
 */
xet_status_t ngx_http_xet_spool_term_job(ngx_http_xet_spool_t *s,
    const xet_ingest_term_t *term, ngx_log_t *log);

/* Closes the open file.  Returns XET_OK or a write error. */
xet_status_t ngx_http_xet_spool_close_job(ngx_http_xet_spool_t *s,
    const xet_hash_t *hash, const u_char *sha256, ngx_log_t *log);


#endif /* _NGX_HTTP_XET_SPOOL_H_INCLUDED_ */
