
/*
 * Files and their terms, verified, on their way into PostgreSQL.
 *
 * A batch is bounded; what does not fit into one is staged under the upload's
 * id, and the last one commits all of them in one transaction.  One file at a
 * time is open in a batch, and its terms may begin in one batch and end in
 * another.  A batch belongs to the thread while a job runs.
 */

#ifndef _NGX_HTTP_XET_REGISTER_BATCH_H_INCLUDED_
#define _NGX_HTTP_XET_REGISTER_BATCH_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"
#include "ngx_http_xet_array.h"


#define NGX_HTTP_XET_UPLOAD_LEN  16            /* an upload's random id */


typedef struct {
    u_char                 id[NGX_HTTP_XET_UPLOAD_LEN];
    int32_t                seq;                /* batches staged */

    ngx_http_xet_array_t   serials;            /* per file: its number */
    ngx_http_xet_array_t   hashes;
    ngx_http_xet_array_t   sizes;
    ngx_http_xet_array_t   sha256;
    ngx_http_xet_array_t   counts;
    ngx_http_xet_array_t   packed;             /* NULL: in segments */
    ngx_http_xet_array_t   chunks;             /* hash of the first chunk */
    ngx_http_xet_array_t   xorbs;              /* xorb of the first chunk */
    ngx_http_xet_array_t   indexes;            /* its index in that xorb */

    ngx_http_xet_array_t   seg_serials;        /* per segment: its file */
    ngx_http_xet_array_t   seg_firsts;
    ngx_http_xet_array_t   seg_ends;
    ngx_http_xet_array_t   seg_packed;

    size_t                 size;               /* bytes in the arrays, about */

    /* the open file */
    int64_t                serial;             /* from 1, in the upload */
    uint64_t               first;              /* offset of terms[0] */
    uint64_t               end;                /* offset behind the terms */
    ngx_uint_t             nterms;             /* in terms */
    ngx_uint_t             segmented;          /* some are in segments */
    u_char                 terms[XET_TERM_SEGMENT_MAX * XET_TERM_LEN];
} ngx_http_xet_batch_t;


void ngx_http_xet_batch_init(ngx_http_xet_batch_t *b);
void ngx_http_xet_batch_destroy(ngx_http_xet_batch_t *b);

/* Empties the arrays, after the batch was staged: the open file stays open. */
void ngx_http_xet_batch_reset(ngx_http_xet_batch_t *b);



/* Whether the batch is out of memory; to be called before it is sent. */
ngx_uint_t ngx_http_xet_batch_failed(ngx_http_xet_batch_t *b);

/* A file of the batch: open, then a call for each term in order, then close. */
void ngx_http_xet_batch_open(ngx_http_xet_batch_t *b);
void ngx_http_xet_batch_term(ngx_http_xet_batch_t *b, const xet_term_t *term);

/* sha256: the digest in its usual byte order, or NULL. */
void ngx_http_xet_batch_close(ngx_http_xet_batch_t *b,
    const xet_shard_verifier_t *file, const u_char *sha256);





#endif /* _NGX_HTTP_XET_REGISTER_BATCH_H_INCLUDED_ */
