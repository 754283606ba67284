
/*
 * An encoder of chunks.
 *
 * Purpose:    encodes a chunk as a xorb stores it: by a given scheme, or by the
 *             one with the smallest result.  A chunk that does not shrink is
 *             stored plain.  XET_SCHEME_AUTO tries the schemes whose suits()
 *             accepts the chunk, and uses the smallest result, or the first of
 *             several equally small results.
 * States:     none between two chunks.
 * Ownership:  the creator owns the encoder.  A result refers to the caller's
 *             memory if the chunk is stored plain, otherwise to the encoder's,
 *             which the next chunk overwrites.
 * Threads:    one at a time.
 */

#include <stdlib.h>

#include "xet_base.h"
#include "xet_chunk.h"
#include "xet_xorb.h"


struct xet_xorb_encoder_s {
    const xet_suite_t  *suite;
    xet_codec_t        *codec;

    unsigned            spare;         /* index in data of the buffer without
                                          the best result */
    uint8_t             data[2][XET_CHUNK_MAX];
};


static xet_status_t xet_xorb_encoder_try(xet_xorb_encoder_t *e,
    const uint8_t *data, size_t len, unsigned scheme,
    xet_xorb_encoded_t *best);


xet_xorb_encoder_t *
xet_xorb_encoder_create(const xet_suite_t *suite)
{
    xet_xorb_encoder_t  *e;

    e = malloc(sizeof(xet_xorb_encoder_t));
    if (e == NULL) {
        return NULL;
    }

    e->codec = xet_codec_create(suite);
    if (e->codec == NULL) {
        free(e);
        return NULL;
    }

    e->suite = suite;
    e->spare = 0;

    return e;
}


void
xet_xorb_encoder_destroy(xet_xorb_encoder_t *e)
{
    if (e == NULL) {
        return;
    }

    xet_codec_destroy(e->codec);
    free(e);
}


xet_status_t
xet_xorb_encoder_encode(xet_xorb_encoder_t *e, const uint8_t *data, size_t len,
    unsigned scheme, xet_xorb_encoded_t *encoded)
{
    unsigned             i;
    xet_status_t         rc;
    const xet_scheme_t  *s;

    encoded->scheme = XET_SCHEME_NONE;
    encoded->len = (uint32_t) len;
    encoded->data = data;

    if (scheme != XET_SCHEME_AUTO) {
        return xet_xorb_encoder_try(e, data, len, scheme, encoded);
    }

    for (i = 0; i < XET_SCHEMES; i++) {
        s = xet_suite_scheme(e->suite, i);

        if (s == NULL || s->suits == NULL || !s->suits(data, len)) {
            continue;
        }

        rc = xet_xorb_encoder_try(e, data, len, i, encoded);

        if (rc != XET_OK) {
            return rc;
        }
    }

    return XET_OK;
}


static xet_status_t
xet_xorb_encoder_try(xet_xorb_encoder_t *e, const uint8_t *data, size_t len,
    unsigned scheme, xet_xorb_encoded_t *best)
{
    size_t        n;
    uint8_t      *out;
    xet_status_t  rc;

    n = XET_CHUNK_MAX;
    out = e->data[e->spare];

    rc = xet_codec_encode(e->codec, scheme, data, len, out, &n);

    if (rc == XET_OK && n < best->len) {
        best->scheme = scheme;
        best->len = (uint32_t) n;
        best->data = out;

        e->spare = !e->spare;
    }

    return (rc == XET_AGAIN) ? XET_OK : rc;
}
