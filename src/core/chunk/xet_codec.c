
/*
 * Chunk codecs: calls the schemes of a suite, and implements the scheme
 * without compression.
 *
 * Purpose:    encodes or decodes one chunk in memory, by the scheme that has
 *             the given number in the suite.
 * States:     none, except in the contexts of the schemes; see the file of each
 *             scheme.
 * Ownership:  the creator owns the codec, and the codec owns the contexts.
 * Threads:    one at a time.
 */

#include <stdlib.h>
#include <string.h>

#include "xet_chunk.h"


static xet_status_t xet_codec_none_encode(xet_codec_t *c, const uint8_t *in,
    size_t len, uint8_t *out, size_t *out_len);
static xet_status_t xet_codec_none_decode(xet_codec_t *c, const uint8_t *in,
    size_t len, uint8_t *out, size_t raw_len);


const xet_scheme_t  xet_scheme_none = {
    "none",
    NULL,
    NULL,
    xet_codec_none_encode,
    xet_codec_none_decode,
    NULL
};


xet_codec_t *
xet_codec_create(const xet_suite_t *suite)
{
    unsigned             i;
    xet_codec_t         *c;
    const xet_scheme_t  *scheme;

    c = calloc(1, sizeof(xet_codec_t));
    if (c == NULL) {
        return NULL;
    }

    c->suite = suite;

    for (i = 0; i < XET_SCHEMES; i++) {
        scheme = xet_suite_scheme(suite, i);

        if (scheme == NULL || scheme->create == NULL) {
            continue;
        }

        c->ctx[i] = scheme->create();

        if (c->ctx[i] == NULL) {
            xet_codec_destroy(c);
            return NULL;
        }
    }

    return c;
}


void
xet_codec_destroy(xet_codec_t *c)
{
    unsigned  i;

    if (c == NULL) {
        return;
    }

    for (i = 0; i < XET_SCHEMES; i++) {
        if (c->ctx[i] != NULL) {
            xet_suite_scheme(c->suite, i)->destroy(c->ctx[i]);
        }
    }

    free(c);
}


xet_status_t
xet_codec_decode(xet_codec_t *c, unsigned scheme, const uint8_t *in,
    size_t len, uint8_t *out, size_t raw_len)
{
    const xet_scheme_t  *s;

    if (raw_len == 0 || raw_len > XET_CHUNK_MAX) {
        return XET_XORB_RAW_LEN;
    }

    s = xet_suite_scheme(c->suite, scheme);

    return s ? s->decode(c, in, len, out, raw_len) : XET_XORB_SCHEME;
}


xet_status_t
xet_codec_encode(xet_codec_t *c, unsigned scheme, const uint8_t *in,
    size_t len, uint8_t *out, size_t *out_len)
{
    const xet_scheme_t  *s;

    if (len == 0 || len > XET_CHUNK_MAX) {
        return XET_XORB_RAW_LEN;
    }

    if (*out_len < len) {
        return XET_INTERNAL;
    }

    s = xet_suite_scheme(c->suite, scheme);

    return s ? s->encode(c, in, len, out, out_len) : XET_XORB_SCHEME;
}


static xet_status_t
xet_codec_none_encode(xet_codec_t *c, const uint8_t *in, size_t len,
    uint8_t *out, size_t *out_len)
{
    return XET_AGAIN;
}


static xet_status_t
xet_codec_none_decode(xet_codec_t *c, const uint8_t *in, size_t len,
    uint8_t *out, size_t raw_len)
{
    if (len != raw_len) {
        return XET_XORB_DATA_LEN;
    }

    if (out != in) {
        memcpy(out, in, len);
    }

    return XET_OK;
}
