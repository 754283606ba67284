
/*
 * A writer of xorbs.
 *
 * Purpose:    takes chunks, and passes the chunk region and an optional footer
 *             to a callback.  The writer encodes a chunk, unless its caller has
 *             done that.
 * States:     open, and finished until reset.  An error of the callback stays
 *             until reset, since the state of the output is unknown.  A chunk
 *             that is refused changes nothing.
 * Ownership:  the creator owns the writer; the caller owns the context of the
 *             callback.
 * Threads:    one at a time.
 */

#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_xorb_chunks.h"
#include "xet_xorb.h"


struct xet_xorb_writer_s {
    const xet_suite_t   *suite;
    xet_xorb_encoder_t  *encoder;

    xet_xorb_write_pt    write;
    void                *ctx;

    xet_status_t         status;       /* error of the callback or finish */
    unsigned             finished:1;

    xet_xorb_chunks_t    chunks;
};


static xet_status_t xet_xorb_writer_check(const xet_xorb_writer_t *w,
    size_t len);
static xet_status_t xet_xorb_writer_output(xet_xorb_writer_t *w,
    const xet_xorb_encoded_t *encoded, size_t len);


xet_xorb_writer_t *
xet_xorb_writer_create(const xet_suite_t *suite, xet_xorb_write_pt write,
    void *ctx)
{
    xet_xorb_writer_t  *w;

    w = malloc(sizeof(xet_xorb_writer_t));
    if (w == NULL) {
        return NULL;
    }

    w->encoder = xet_xorb_encoder_create(suite);
    if (w->encoder == NULL) {
        free(w);
        return NULL;
    }

    w->suite = suite;
    w->write = write;
    w->ctx = ctx;

    xet_xorb_writer_reset(w);

    return w;
}


void
xet_xorb_writer_destroy(xet_xorb_writer_t *w)
{
    if (w == NULL) {
        return;
    }

    xet_xorb_encoder_destroy(w->encoder);
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

    if (w->status != XET_OK) {
        return w->status;
    }

    if (w->finished) {
        return XET_INTERNAL;
    }

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
    xet_hash_t          computed;
    xet_status_t        rc;
    xet_xorb_encoded_t  encoded;

    rc = xet_xorb_writer_check(w, len);

    if (rc == XET_OK) {
        rc = xet_xorb_encoder_encode(w->encoder, data, len, scheme, &encoded);
    }

    if (rc != XET_OK) {
        return rc;
    }

    if (hash == NULL) {
        xet_hash_chunk(w->suite, data, len, &computed);
        hash = &computed;
    }

    return xet_xorb_writer_put(w, &encoded, len, hash);
}


xet_status_t
xet_xorb_writer_put(xet_xorb_writer_t *w, const xet_xorb_encoded_t *encoded,
    size_t len, const xet_hash_t *hash)
{
    xet_status_t  rc;

    rc = xet_xorb_writer_check(w, len);
    if (rc != XET_OK) {
        return rc;
    }

    w->status = xet_xorb_writer_output(w, encoded, len);
    if (w->status != XET_OK) {
        return w->status;
    }

    xet_xorb_chunks_add(&w->chunks, hash, (uint32_t) len, encoded->len);

    return XET_OK;
}


static xet_status_t
xet_xorb_writer_output(xet_xorb_writer_t *w,
    const xet_xorb_encoded_t *encoded, size_t len)
{
    uint8_t       header[XET_XORB_HEADER_LEN];
    xet_status_t  rc;

    header[0] = 0;
    xet_put_u24(header + 1, encoded->len);
    header[4] = (uint8_t) encoded->scheme;
    xet_put_u24(header + 5, (uint32_t) len);

    rc = w->write(w->ctx, header, XET_XORB_HEADER_LEN);

    return (rc == XET_OK) ? w->write(w->ctx, encoded->data, encoded->len) : rc;
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
