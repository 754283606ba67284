
/*
 * The terms of a file that is being taken in, written down as the file
 * section of a shard: what the register service reads.
 */

#ifndef _NGX_HTTP_XET_INGEST_SPOOL_H_INCLUDED_
#define _NGX_HTTP_XET_INGEST_SPOOL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_xet_store.h"
#include "xet.h"


#define NGX_HTTP_XET_SPOOL_RECORDS  64         /* in memory */


typedef struct {
    ngx_http_xet_temp_t  *file;
    uint64_t              terms;
    uint64_t              end;                 /* files_end, set by close */

    xet_buf_t             buf;                 /* its one node is room */
    uint64_t              room[NGX_HTTP_XET_SPOOL_RECORDS
                               * XET_SHARD_RECORD_LEN / 8
                               + sizeof(xet_buf_node_t) / 8];
} ngx_http_xet_ingest_spool_t;


/* NGX_OK, or NGX_ERROR without memory. */
ngx_int_t ngx_http_xet_ingest_spool_init(ngx_http_request_t *r,
    ngx_http_xet_ingest_spool_t *s);

/*
 * Appends a term, in the order of the file.  XET_BODY_SIZE when the file has
 * too many terms, or the error of a write.
 */
xet_status_t ngx_http_xet_ingest_spool_term_job(
    ngx_http_xet_ingest_spool_t *s, const xet_ingest_term_t *term,
    ngx_log_t *log);

/*
 * Behind the last term: completes the file section and sets s->end.  sha256
 * is the digest in its usual byte order.
 */
xet_status_t ngx_http_xet_ingest_spool_close_job(
    ngx_http_xet_ingest_spool_t *s, const xet_hash_t *file,
    const u_char *sha256, ngx_log_t *log);


#endif /* _NGX_HTTP_XET_INGEST_SPOOL_H_INCLUDED_ */
