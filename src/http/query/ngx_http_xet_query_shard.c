
/*
 * Builds batches of files to be registered.
 *
 * The terms of most files are in the row of the file.  A file with more than
 * 256 terms has rows of segments instead, each with up to 256 terms.  The
 * number of terms is not known in advance: at the 257th term, the previous
 * terms are moved to a segment.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


#define NGX_HTTP_XET_BATCH_FILE  320           /* estimated bytes per file */


static void ngx_http_xet_batch_flush(ngx_http_xet_batch_t *b);


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


/* Moves the packed terms to a segment, which will be a row of its own. */

static void
ngx_http_xet_batch_flush(ngx_http_xet_batch_t *b)
{
    ngx_http_xet_batch_columns_t  *c;

    c = &b->columns;

    ngx_http_xet_array_int8(&c->seg_serials, b->serial);
    ngx_http_xet_array_int8(&c->seg_firsts, (int64_t) b->first);
    ngx_http_xet_array_int8(&c->seg_ends, (int64_t) b->end);
    ngx_http_xet_array_bytes(&c->seg_packed, b->terms,
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
    ngx_http_xet_batch_columns_t  *c;

    c = &b->columns;

    if (b->segmented) {
        ngx_http_xet_batch_flush(b);
        ngx_http_xet_array_null(&c->packed);

    } else {
        ngx_http_xet_array_bytes(&c->packed, b->terms,
                                 b->nterms * XET_TERM_LEN);
        b->size += b->nterms * XET_TERM_LEN;
    }

    ngx_http_xet_array_int8(&c->serials, b->serial);
    ngx_http_xet_array_bytes(&c->hashes, file->hash.bytes, XET_HASH_LEN);
    ngx_http_xet_array_int8(&c->sizes, (int64_t) file->size);
    ngx_http_xet_array_int8(&c->counts, (int64_t) file->terms);

    if (sha256) {
        ngx_http_xet_array_bytes(&c->sha256, sha256, XET_HASH_LEN);

    } else {
        ngx_http_xet_array_null(&c->sha256);
    }

    if (file->terms) {
        ngx_http_xet_array_bytes(&c->chunks, file->first_hash.bytes,
                                 XET_HASH_LEN);
        ngx_http_xet_array_bytes(&c->xorbs, file->first_xorb.bytes,
                                 XET_HASH_LEN);
        ngx_http_xet_array_int4(&c->indexes, (int32_t) file->first_chunk);
    }

    b->size += NGX_HTTP_XET_BATCH_FILE;
}
