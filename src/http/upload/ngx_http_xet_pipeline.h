
/*
 * The pipeline of an upload: lets several threads work on the pieces of a file
 * at once.
 */

#ifndef _NGX_HTTP_XET_PIPELINE_H_INCLUDED_
#define _NGX_HTTP_XET_PIPELINE_H_INCLUDED_


#include "ngx_http_xet_upload.h"

#include <openssl/evp.h>


typedef struct ngx_http_xet_pipeline_s  ngx_http_xet_pipeline_t;

/* Called in the event loop. */
typedef void (*ngx_http_xet_pipeline_pt)(ngx_http_request_t *r, void *data);


/*
 * Creates a pipeline for the body of r, whose sink must have
 * NGX_HTTP_XET_BODY_BUFFERS buffers.  Returns NULL if out of memory.  The
 * batches of the core, 0.6 MiB for each buffer of 256 KiB, are allocated when
 * they are needed.
 */
ngx_http_xet_pipeline_t *ngx_http_xet_pipeline_create(ngx_http_request_t *r);

/* Frees the batches; no job may be running. */
void ngx_http_xet_pipeline_destroy(ngx_http_xet_pipeline_t *p);

/*
 * In the thread of the body: takes the next piece of the file, and places the
 * chunks of the pieces that are packed.  After the last piece returns XET_OK
 * when all chunks are placed, and sha256 is updated with all pieces.  If it
 * returns XET_AGAIN, the event loop must do what xet_ingest_want(core) returns,
 * or wait for the pipeline; the function is then called again with the same
 * piece.  Any other status is an error of xet_ingest_place(), or of a job.
 */
xet_status_t ngx_http_xet_pipeline_feed_job(ngx_http_xet_pipeline_t *p,
    xet_ingest_t *core, EVP_MD_CTX *sha256, u_char *buf, size_t len,
    ngx_uint_t last);

/*
 * In the event loop, whenever the thread of the body has returned: starts the
 * jobs for the pieces that were cut.
 */
void ngx_http_xet_pipeline_post(ngx_http_request_t *r,
    ngx_http_xet_pipeline_t *p);

/*
 * Resumes the body with ngx_http_xet_body_resume() as soon as a piece is
 * packed, or the SHA-256 has caught up; at once if that is so already.
 */
void ngx_http_xet_pipeline_wait(ngx_http_request_t *r,
    ngx_http_xet_pipeline_t *p);

/*
 * Returns NGX_OK if no job is running.  Otherwise returns NGX_AGAIN, and calls
 * handler when the last one has ended; the body must not be resumed any more.
 */
ngx_int_t ngx_http_xet_pipeline_end(ngx_http_xet_pipeline_t *p,
    ngx_http_xet_pipeline_pt handler, void *data);


#endif /* _NGX_HTTP_XET_PIPELINE_H_INCLUDED_ */
