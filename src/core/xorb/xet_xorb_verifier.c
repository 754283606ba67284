
/*
 * A push verifier of xorbs.
 *
 * Purpose:    turns a body into a result and a chunk table.  The parser splits
 *             the body into events.  A payload that is complete in the
 *             caller's buffer is decoded there, or hashed there if it is
 *             plain; only a payload that spans several feeds is assembled in
 *             v->stored first.  The ends of each chunk are added to the
 *             tables, and the chunk's hash is added to the tree.  At the end
 *             of the body, or the beginning of a footer, the root of the tree
 *             is compared with the expected hash; then a footer is compared
 *             with the tables.
 * States:     the states of the parser.  After the first error, feed and
 *             finish keep returning it.  Nothing may be fed after finish.
 * Ownership:  one allocation of about 600 KiB, and the codec.  The tables use
 *             resident memory only as far as chunks fill them.  No length that
 *             the body declares causes an allocation, except in LZ4F (see
 *             xet_chunk.h).
 * Threads:    one at a time.
 */

#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_xorb_chunks.h"
#include "xet_xorb.h"


struct xet_xorb_verifier_s {
    const xet_suite_t  *suite;
    xet_codec_t        *codec;

    xet_status_t        status;
    size_t              have;          /* bytes of the payload in stored */

    xet_hash_t          expected;
    unsigned            check:1;       /* expected is set */
    unsigned            footer_seen:1;
    unsigned            finished:1;

    xet_xorb_parser_t   parser;
    xet_xorb_footer_t   footer;

    uint8_t             stored[XET_CHUNK_MAX];
    uint8_t             raw[XET_CHUNK_MAX];

    xet_xorb_chunks_t   chunks;
};


static xet_status_t xet_xorb_verifier_event(xet_xorb_verifier_t *v,
    const xet_xorb_event_t *ev);
static xet_status_t xet_xorb_verifier_payload(xet_xorb_verifier_t *v,
    const uint8_t *data, size_t len);
static xet_status_t xet_xorb_verifier_chunk(xet_xorb_verifier_t *v,
    const uint8_t *data);
static xet_status_t xet_xorb_verifier_root(xet_xorb_verifier_t *v);
static xet_status_t xet_xorb_verifier_end(xet_xorb_verifier_t *v);


xet_xorb_verifier_t *
xet_xorb_verifier_create(const xet_suite_t *suite, const xet_hash_t *expected,
    uint64_t size_max)
{
    xet_xorb_verifier_t  *v;

    v = malloc(sizeof(xet_xorb_verifier_t));
    if (v == NULL) {
        return NULL;
    }

    v->codec = xet_codec_create(suite);
    if (v->codec == NULL) {
        free(v);
        return NULL;
    }

    v->suite = suite;
    v->status = XET_OK;
    v->have = 0;

    v->check = 0;
    v->footer_seen = 0;
    v->finished = 0;

    if (expected != NULL) {
        v->expected = *expected;
        v->check = 1;
    }

    xet_xorb_parser_init(&v->parser, suite, size_max);
    xet_xorb_chunks_init(&v->chunks, suite);

    return v;
}


void
xet_xorb_verifier_destroy(xet_xorb_verifier_t *v)
{
    if (v == NULL) {
        return;
    }

    xet_codec_destroy(v->codec);
    free(v);
}


xet_status_t
xet_xorb_verifier_feed(xet_xorb_verifier_t *v, const uint8_t *data,
    size_t len, size_t *stored)
{
    uint64_t          taken;
    xet_status_t      rc;
    const uint8_t    *pos, *end;
    xet_xorb_event_t  ev;

    *stored = 0;

    if (v->status != XET_OK) {
        return v->status;
    }

    if (v->finished) {
        v->status = XET_INTERNAL;
        return v->status;
    }

    if (len == 0) {
        return XET_OK;
    }

    pos = data;
    end = data + len;
    taken = v->parser.taken;

    do {
        rc = xet_xorb_parser_next(&v->parser, &pos, end, &ev);

        if (rc == XET_OK) {
            rc = xet_xorb_verifier_event(v, &ev);
        }

    } while (rc == XET_OK);

    *stored = (size_t) (v->parser.taken - taken);

    if (rc != XET_AGAIN) {
        v->status = rc;
    }

    return v->status;
}


static xet_status_t
xet_xorb_verifier_event(xet_xorb_verifier_t *v, const xet_xorb_event_t *ev)
{
    xet_status_t  rc;

    switch (ev->type) {

    case XET_XORB_EVENT_CHUNK:
        v->have = 0;
        return XET_OK;

    case XET_XORB_EVENT_PAYLOAD:
        return xet_xorb_verifier_payload(v, ev->data, ev->len);

    case XET_XORB_EVENT_FOOTER:

        rc = xet_xorb_verifier_root(v);

        if (rc == XET_OK) {
            v->footer_seen = 1;
            xet_xorb_footer_init(&v->footer, &v->chunks.info);
        }

        return rc;

    default: /* XET_XORB_EVENT_FOOTER_DATA */
        return xet_xorb_footer_feed(&v->footer, ev->data, ev->len);
    }
}


static xet_status_t
xet_xorb_verifier_payload(xet_xorb_verifier_t *v, const uint8_t *data,
    size_t len)
{
    size_t  size;

    size = v->parser.chunk.payload_len;

    if (len == size) {
        return xet_xorb_verifier_chunk(v, data);
    }

    /* the parser returns at most payload_len bytes, which fit into stored */

    memcpy(v->stored + v->have, data, len);
    v->have += len;

    if (v->have < size) {
        return XET_OK;
    }

    return xet_xorb_verifier_chunk(v, v->stored);
}


static xet_status_t
xet_xorb_verifier_chunk(xet_xorb_verifier_t *v, const uint8_t *data)
{
    xet_hash_t               hash;
    xet_status_t             rc;
    const uint8_t           *raw;
    const xet_xorb_chunk_t  *chunk;

    chunk = &v->parser.chunk;

    if (chunk->scheme == XET_SCHEME_NONE) {
        raw = data;

    } else {
        rc = xet_codec_decode(v->codec, chunk->scheme, data,
                              chunk->payload_len, v->raw, chunk->raw_len);
        if (rc != XET_OK) {
            return rc;
        }

        raw = v->raw;
    }

    xet_hash_chunk(v->suite, raw, chunk->raw_len, &hash);
    xet_xorb_chunks_add(&v->chunks, &hash, chunk->raw_len, chunk->payload_len);

    return XET_OK;
}


/* Computes the root of the tree of all chunks and compares it. */

static xet_status_t
xet_xorb_verifier_root(xet_xorb_verifier_t *v)
{
    xet_merkle_finish(&v->chunks.merkle, &v->chunks.info.hash);

    if (v->check && !xet_hash_equal(&v->chunks.info.hash, &v->expected)) {
        return XET_XORB_HASH;
    }

    return XET_OK;
}


xet_status_t
xet_xorb_verifier_finish(xet_xorb_verifier_t *v)
{
    if (v->status == XET_OK && !v->finished) {
        v->finished = 1;
        v->status = xet_xorb_verifier_end(v);
    }

    return v->status;
}


static xet_status_t
xet_xorb_verifier_end(xet_xorb_verifier_t *v)
{
    xet_status_t  rc;

    rc = xet_xorb_parser_finish(&v->parser);
    if (rc != XET_OK) {
        return rc;
    }

    if (v->footer_seen) {
        return xet_xorb_footer_finish(&v->footer);
    }

    return xet_xorb_verifier_root(v);
}


const xet_xorb_info_t *
xet_xorb_verifier_info(const xet_xorb_verifier_t *v)
{
    return &v->chunks.info;
}
