
/*
 * A writer of xorbs.
 *
 * Purpose:    takes chunks, and passes the chunk region and an optional footer
 *             to a callback.  A chunk that is stored plain is written from the
 *             caller's memory, a compressed one from the writer's.
 * States:     open, and finished until reset.  An error of the callback stays
 *             until reset, since the state of the output is unknown.  A chunk
 *             that is refused changes nothing.
 * Ownership:  the creator owns the writer; the caller owns the context of the
 *             callback.
 * Threads:    one at a time.
 *
 * XET_SCHEME_AUTO tries the schemes whose suits() accepts the chunk, and uses
 * the smallest result, or the first of several equally small results.
 */

#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_xorb_chunks.h"
#include "xet_xorb.h"


typedef struct {
    unsigned            scheme;
    size_t              len;           /* bytes of data, without the header */
    uint8_t             header[XET_XORB_HEADER_LEN];
    uint8_t             data[XET_CHUNK_MAX];
} xet_xorb_writer_slot_t;


struct xet_xorb_writer_s {
    const xet_suite_t       *suite;
    xet_codec_t             *codec;

    xet_xorb_write_pt        write;
    void                    *ctx;

    xet_status_t             status;   /* error of the callback or finish */
    unsigned                 finished:1;

    xet_xorb_writer_slot_t  *best;     /* slot of the current chunk */
    xet_xorb_writer_slot_t  *other;
    xet_xorb_writer_slot_t   slot[2];

    xet_xorb_chunks_t        chunks;
};


static xet_status_t xet_xorb_writer_check(const xet_xorb_writer_t *w,
    size_t len);
static xet_status_t xet_xorb_writer_encode(xet_xorb_writer_t *w,
    const uint8_t *data, size_t len, unsigned scheme);
static xet_status_t xet_xorb_writer_try(xet_xorb_writer_t *w,
    const uint8_t *data, size_t len, unsigned scheme);
static xet_status_t xet_xorb_writer_output(xet_xorb_writer_t *w,
    const uint8_t *data, size_t len);


xet_xorb_writer_t *
xet_xorb_writer_create(const xet_suite_t *suite, xet_xorb_write_pt write,
    void *ctx)
{
    xet_xorb_writer_t  *w;

    w = malloc(sizeof(xet_xorb_writer_t));
    if (w == NULL) {
        return NULL;
    }

    w->codec = xet_codec_create(suite);
    if (w->codec == NULL) {
        free(w);
        return NULL;
    }

    w->suite = suite;
    w->write = write;
    w->ctx = ctx;

    w->best = &w->slot[0];
    w->other = &w->slot[1];

    xet_xorb_writer_reset(w);

    return w;
}


void
xet_xorb_writer_destroy(xet_xorb_writer_t *w)
{
    if (w == NULL) {
        return;
    }

    xet_codec_destroy(w->codec);
    free(w);
}


void
xet_xorb_writer_reset(xet_xorb_writer_t *w)
{
    w->status = XET_OK;
    w->finished = 0;

    xet_xorb_chunks_init(&w->chunks, w->suite);
}


int
xet_xorb_writer_fits(const xet_xorb_writer_t *w, size_t len)
{
    return xet_xorb_writer_check(w, len) == XET_OK;
}


static xet_status_t
xet_xorb_writer_check(const xet_xorb_writer_t *w, size_t len)
{
    uint64_t  max;

    if (len == 0 || len > XET_CHUNK_MAX) {
        return XET_XORB_RAW_LEN;
    }

    if (w->chunks.info.chunk_count >= XET_XORB_CHUNKS_MAX
        || w->chunks.info.chunk_count >= w->suite->xorb_chunks_max)
    {
        return XET_XORB_CHUNKS;
    }

    /* clients apply the draft's only size limit to both raw and stored size */

    max = w->suite->xorb_raw_target;

    if (w->chunks.info.raw_size + len > max
        || w->chunks.info.stored_size + XET_XORB_HEADER_LEN + len > max)
    {
        return XET_XORB_SIZE;
    }

    return XET_OK;
}


xet_status_t
xet_xorb_writer_add(xet_xorb_writer_t *w, const uint8_t *data, size_t len,
    unsigned scheme, const xet_hash_t *hash)
{
    xet_hash_t    computed;
    xet_status_t  rc;

    if (w->status != XET_OK) {
        return w->status;
    }

    if (w->finished) {
        return XET_INTERNAL;
    }

    rc = xet_xorb_writer_check(w, len);
    if (rc != XET_OK) {
        return rc;
    }

    rc = xet_xorb_writer_encode(w, data, len, scheme);
    if (rc != XET_OK) {
        return rc;
    }

    if (hash == NULL) {
        xet_hash_chunk(w->suite, data, len, &computed);
        hash = &computed;
    }

    w->status = xet_xorb_writer_output(w, data, len);
    if (w->status != XET_OK) {
        return w->status;
    }

    xet_xorb_chunks_add(&w->chunks, hash, (uint32_t) len,
                        (uint32_t) w->best->len);

    return XET_OK;
}


/*
 * Sets w->best to the chunk as it will be stored: encoded by the given scheme,
 * or by the one with the smallest result.  A chunk that does not shrink is
 * stored plain.
 */

static xet_status_t
xet_xorb_writer_encode(xet_xorb_writer_t *w, const uint8_t *data, size_t len,
    unsigned scheme)
{
    unsigned             i;
    xet_status_t         rc;
    const xet_scheme_t  *s;

    w->best->scheme = XET_SCHEME_NONE;
    w->best->len = len;

    if (scheme != XET_SCHEME_AUTO) {
        return xet_xorb_writer_try(w, data, len, scheme);
    }

    for (i = 0; i < XET_SCHEMES; i++) {
        s = xet_suite_scheme(w->suite, i);

        if (s == NULL || s->suits == NULL || !s->suits(data, len)) {
            continue;
        }

        rc = xet_xorb_writer_try(w, data, len, i);

        if (rc != XET_OK) {
            return rc;
        }
    }

    return XET_OK;
}


static xet_status_t
xet_xorb_writer_try(xet_xorb_writer_t *w, const uint8_t *data, size_t len,
    unsigned scheme)
{
    xet_status_t             rc;
    xet_xorb_writer_slot_t  *slot;

    slot = w->other;

    slot->scheme = scheme;
    slot->len = XET_CHUNK_MAX;

    rc = xet_codec_encode(w->codec, scheme, data, len, slot->data,
                          &slot->len);

    if (rc == XET_OK && slot->len < w->best->len) {
        w->other = w->best;
        w->best = slot;
    }

    return (rc == XET_AGAIN) ? XET_OK : rc;
}


static xet_status_t
xet_xorb_writer_output(xet_xorb_writer_t *w, const uint8_t *data, size_t len)
{
    uint8_t                 *h;
    xet_status_t             rc;
    xet_xorb_writer_slot_t  *slot;

    slot = w->best;
    h = slot->header;

    h[0] = 0;
    xet_put_u24(h + 1, (uint32_t) slot->len);
    h[4] = (uint8_t) slot->scheme;
    xet_put_u24(h + 5, (uint32_t) len);

    rc = w->write(w->ctx, h, XET_XORB_HEADER_LEN);

    if (rc != XET_OK) {
        return rc;
    }

    return w->write(w->ctx,
                    slot->scheme == XET_SCHEME_NONE ? data : slot->data,
                    slot->len);
}


xet_status_t
xet_xorb_writer_finish(xet_xorb_writer_t *w, int footer)
{
    if (w->status != XET_OK) {
        return w->status;
    }

    if (w->finished) {
        return XET_INTERNAL;
    }

    if (w->chunks.info.chunk_count == 0) {
        return XET_XORB_EMPTY;
    }

    w->finished = 1;
    xet_merkle_finish(&w->chunks.merkle, &w->chunks.info.hash);

    if (footer) {
        w->status = xet_xorb_footer_write(&w->chunks.info, 1, w->write, w->ctx);
    }

    return w->status;
}


const xet_xorb_info_t *
xet_xorb_writer_info(const xet_xorb_writer_t *w)
{
    return &w->chunks.info;
}
