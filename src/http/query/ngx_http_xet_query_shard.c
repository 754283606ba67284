
/*
 * Batches of files to be registered, and the statements that put them aside,
 * or commit them all.
 *
 * The terms of a usual file stand in the row of the file.  Only the 257th term
 * shows that a file has more terms than its row holds; then they go into rows
 * of their own, segments of 256 terms.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


#define NGX_HTTP_XET_BATCH_ARRAYS  13
#define NGX_HTTP_XET_BATCH_FILE    320         /* bytes of a file's columns */


static ngx_http_xet_array_t *ngx_http_xet_batch_array(ngx_http_xet_batch_t *b,
    ngx_uint_t i);
static void ngx_http_xet_batch_flush(ngx_http_xet_batch_t *b);


void
ngx_http_xet_batch_init(ngx_http_xet_batch_t *b)
{
    ngx_memzero(b, sizeof(ngx_http_xet_batch_t));

    ngx_http_xet_array_init(&b->serials, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->hashes, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->sizes, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->sha256, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->counts, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->packed, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->chunks, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->xorbs, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->indexes, NGX_HTTP_XET_OID_INT4);
    ngx_http_xet_array_init(&b->seg_serials, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->seg_firsts, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->seg_ends, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->seg_packed, NGX_HTTP_XET_OID_BYTEA);
}


/* The arrays in the order of the statements' parameters. */

static ngx_http_xet_array_t *
ngx_http_xet_batch_array(ngx_http_xet_batch_t *b, ngx_uint_t i)
{
    ngx_http_xet_array_t *const  arrays[NGX_HTTP_XET_BATCH_ARRAYS] = {
        &b->serials, &b->hashes, &b->sizes, &b->sha256, &b->counts,
        &b->packed, &b->chunks, &b->xorbs, &b->indexes, &b->seg_serials,
        &b->seg_firsts, &b->seg_ends, &b->seg_packed
    };

    return arrays[i];
}


void
ngx_http_xet_batch_reset(ngx_http_xet_batch_t *b)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_XET_BATCH_ARRAYS; i++) {
        ngx_http_xet_array_reset(ngx_http_xet_batch_array(b, i));
    }

    b->size = 0;
}


void
ngx_http_xet_batch_destroy(ngx_http_xet_batch_t *b)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_XET_BATCH_ARRAYS; i++) {
        ngx_http_xet_array_destroy(ngx_http_xet_batch_array(b, i));
    }
}


ngx_uint_t
ngx_http_xet_batch_failed(ngx_http_xet_batch_t *b)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_XET_BATCH_ARRAYS; i++) {
        if (ngx_http_xet_batch_array(b, i)->failed) {
            return 1;
        }
    }

    return 0;
}


void
ngx_http_xet_batch_open(ngx_http_xet_batch_t *b)
{
    b->serial++;
    b->first = 0;
    b->end = 0;
    b->nterms = 0;
    b->segmented = 0;
}


void
ngx_http_xet_batch_term(ngx_http_xet_batch_t *b, const xet_term_t *term)
{
    if (b->nterms == XET_TERM_SEGMENT_MAX) {
        ngx_http_xet_batch_flush(b);
    }

    xet_term_pack(b->terms + b->nterms * XET_TERM_LEN, term);

    b->nterms++;
    b->end += term->raw_length;
}


/* Adds the packed terms as a segment, a row of its own. */

static void
ngx_http_xet_batch_flush(ngx_http_xet_batch_t *b)
{
    ngx_http_xet_array_int8(&b->seg_serials, b->serial);
    ngx_http_xet_array_int8(&b->seg_firsts, (int64_t) b->first);
    ngx_http_xet_array_int8(&b->seg_ends, (int64_t) b->end);
    ngx_http_xet_array_bytes(&b->seg_packed, b->terms,
                             b->nterms * XET_TERM_LEN);

    b->size += b->nterms * XET_TERM_LEN;

    b->first = b->end;
    b->nterms = 0;
    b->segmented = 1;
}


void
ngx_http_xet_batch_close(ngx_http_xet_batch_t *b,
    const xet_shard_verifier_t *file, const u_char *sha256)
{
    if (b->segmented) {
        ngx_http_xet_batch_flush(b);
        ngx_http_xet_array_null(&b->packed);

    } else {
        ngx_http_xet_array_bytes(&b->packed, b->terms,
                                 b->nterms * XET_TERM_LEN);
        b->size += b->nterms * XET_TERM_LEN;
    }

    ngx_http_xet_array_int8(&b->serials, b->serial);
    ngx_http_xet_array_bytes(&b->hashes, file->hash.bytes, XET_HASH_LEN);
    ngx_http_xet_array_int8(&b->sizes, (int64_t) file->size);
    ngx_http_xet_array_int8(&b->counts, (int64_t) file->terms);

    if (sha256) {
        ngx_http_xet_array_bytes(&b->sha256, sha256, XET_HASH_LEN);

    } else {
        ngx_http_xet_array_null(&b->sha256);
    }

    if (file->terms) {
        ngx_http_xet_array_bytes(&b->chunks, file->first_hash.bytes,
                                 XET_HASH_LEN);
        ngx_http_xet_array_bytes(&b->xorbs, file->first_xorb.bytes,
                                 XET_HASH_LEN);
        ngx_http_xet_array_int4(&b->indexes, (int32_t) file->first_chunk);
    }

    b->size += NGX_HTTP_XET_BATCH_FILE;
}


ngx_int_t
ngx_http_xet_query_shard_stage(ngx_http_request_t *r, ngx_http_xet_batch_t *b,
    ngx_http_xet_query_handler_pt handler)
{
    return ngx_http_xet_query_leave(r,
               ngx_http_xet_query(r, shard_stage, handler, .batch = b), b->id,
               0);
}


ngx_int_t
ngx_http_xet_query_shard_put(ngx_http_request_t *r, ngx_http_xet_batch_t *b,
    ngx_http_xet_query_handler_pt handler)
{
    return ngx_http_xet_query_leave(r,
               ngx_http_xet_query(r, shard_put, handler, .batch = b),
               b->seq ? b->id : NULL, 0);
}
