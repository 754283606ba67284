
/*
 * Internal to upload: the terms of stored files, on their way to the register
 * service.
 */

#ifndef _NGX_HTTP_XET_SPOOL_H_INCLUDED_
#define _NGX_HTTP_XET_SPOOL_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_SPOOL_RECORDS  64         /* in memory */


typedef struct {
    ngx_http_xet_temp_t  *file;
    uint64_t              terms;               /* of all files */
    uint64_t              end;                 /* files_end, set by the end */

    uint64_t              start;               /* of the open file's header */
    uint32_t              count;               /* terms of that file */
    uint32_t              number;              /* of that file */
    unsigned              open:1;

    xet_buf_t             buf;                 /* its one node is room */
    uint64_t              room[NGX_HTTP_XET_SPOOL_RECORDS
                               * XET_SHARD_RECORD_LEN / 8
                               + sizeof(xet_buf_node_t) / 8];
} ngx_http_xet_spool_t;


/* NGX_ERROR if out of memory. */
ngx_int_t ngx_http_xet_spool_init(ngx_http_request_t *r,
    ngx_http_xet_spool_t *s);

/* Drops everything written, before other files. */
void ngx_http_xet_spool_begin_job(ngx_http_xet_spool_t *s, ngx_log_t *log);

/*
 * Appends a term of the open file; opens a file if none is open. XET_BODY_SIZE
 * if the file has too many terms, or a write error.
 */
xet_status_t ngx_http_xet_spool_term_job(ngx_http_xet_spool_t *s,
    const xet_ingest_term_t *term, ngx_log_t *log);

/* Closes the open file: XET_OK, or a write error. */
xet_status_t ngx_http_xet_spool_close_job(ngx_http_xet_spool_t *s,
    const xet_hash_t *hash, const u_char *sha256, ngx_log_t *log);


#endif /* _NGX_HTTP_XET_SPOOL_H_INCLUDED_ */
