
/*
 * Chunks out of the files of the store: read, decoded, held against their
 * hashes.  Everything here blocks and belongs in a job.
 */

#ifndef _NGX_HTTP_XET_DECODE_H_INCLUDED_
#define _NGX_HTTP_XET_DECODE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"


/* The codec and the buffers of a thread, made by its first job. */

typedef struct {
    xet_codec_t        *codec;
    u_char              stored[XET_XORB_CHUNK_MAX];
    u_char              raw[XET_CHUNK_MAX];    /* the job's, for anything */
} ngx_http_xet_decode_thread_t;


/* A chunk that is missing, or not what its xorb's row says: for reports. */

typedef struct {
    xet_hash_t                     xorb;
    uint32_t                       tag;
    uint32_t                       index;
    ngx_err_t                      err;
    const char                    *why;
} ngx_http_xet_decode_lost_t;


/* The state of one job, with the copy of a xorb that is open. */

typedef struct {
    ngx_http_xet_decode_thread_t  *thread;
    const xet_suite_t             *suite;
    ngx_str_t                      store;
    ngx_fd_t                       fd;
    xet_hash_t                     xorb;       /* whose fd it is */
    uint32_t                       tag;
    ngx_http_xet_decode_lost_t     lost;       /* after XET_STORE_DAMAGED */
    ngx_log_t                     *log;
} ngx_http_xet_decode_t;


/* Begins a job.  XET_OK or XET_NOMEM.  store lives as long as the job. */
xet_status_t ngx_http_xet_decode_begin_job(ngx_http_xet_decode_t *d,
    const xet_suite_t *suite, const ngx_str_t *store, ngx_log_t *log);

/*
 * Decodes chunk into out, which has room for chunk->raw_len bytes, and checks
 * its hash.  XET_STORE_DAMAGED when the copy or a part of it is missing, or
 * does not contain the chunk: then d->lost names chunk and copy, and nothing
 * is logged yet, because another copy may have replaced this one.
 * XET_STORE_FAILED or XET_STORE_FILES when the copy can't be read,
 * XET_STORE_OTHER when the folder is not the store of the database, XET_NOMEM.
 */
xet_status_t ngx_http_xet_decode_chunk_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, u_char *out);

/* Logs the lost chunk at level "alert", as the operator has to repair it. */
void ngx_http_xet_decode_log(const ngx_http_xet_decode_lost_t *lost,
    ngx_log_t *log);

/* Ends a job whose begin was successful: closes the copy that is open. */
void ngx_http_xet_decode_end_job(ngx_http_xet_decode_t *d);


#endif /* _NGX_HTTP_XET_DECODE_H_INCLUDED_ */
