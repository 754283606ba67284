
/*
 * A push parser of xorb bodies.
 *
 * Purpose:    finds chunks and footer, and checks the headers.
 * States:     HEADER ---> PAYLOAD ---> HEADER ...  a header begins with 0
 *             HEADER ---> IDENT ---> FOOTER        any other byte must begin
 *                                                  "XETBLOB"; FOOTER is final
 * Ownership:  the caller owns the structure; no pointer into the input is kept
 *             between calls.
 * Threads:    one at a time.
 *
 * Headers are read byte by byte, and each field is checked at its last byte.
 * So the result for a body, and the number of bytes consumed before the
 * result, are the same for any split.  The cost is negligible compared with
 * the payload.
 */

#include <string.h>

#include "xet_xorb.h"


static xet_status_t xet_xorb_parser_header(xet_xorb_parser_t *p,
    const uint8_t **pos, const uint8_t *end);
static xet_status_t xet_xorb_parser_field(xet_xorb_parser_t *p);
static xet_status_t xet_xorb_parser_ident(xet_xorb_parser_t *p,
    const uint8_t **pos, const uint8_t *end);
static void xet_xorb_parser_payload(xet_xorb_parser_t *p,
    const uint8_t **pos, const uint8_t *end, xet_xorb_event_t *ev);


void
xet_xorb_parser_init(xet_xorb_parser_t *p, const xet_suite_t *suite,
    uint64_t size_max)
{
    memset(p, 0, sizeof(xet_xorb_parser_t));

    p->suite = suite;
    p->size_max = size_max;
    p->state = XET_XORB_PARSER_HEADER;
}


xet_status_t
xet_xorb_parser_next(xet_xorb_parser_t *p, const uint8_t **pos,
    const uint8_t *end, xet_xorb_event_t *ev)
{
    xet_status_t  rc;

    if (*pos == end) {
        return XET_AGAIN;
    }

    if (p->state == XET_XORB_PARSER_HEADER) {

        if (p->have != 0 || **pos == 0) {
            ev->type = XET_XORB_EVENT_CHUNK;
            return xet_xorb_parser_header(p, pos, end);
        }

        p->state = XET_XORB_PARSER_IDENT;
    }

    switch (p->state) {

    case XET_XORB_PARSER_PAYLOAD:
        xet_xorb_parser_payload(p, pos, end, ev);
        return XET_OK;

    case XET_XORB_PARSER_IDENT:
        rc = xet_xorb_parser_ident(p, pos, end);
        ev->type = XET_XORB_EVENT_FOOTER;
        return rc;

    default: /* XET_XORB_PARSER_FOOTER */
        ev->type = XET_XORB_EVENT_FOOTER_DATA;
        ev->data = *pos;
        ev->len = (size_t) (end - *pos);
        *pos = end;
        return XET_OK;
    }
}


static xet_status_t
xet_xorb_parser_header(xet_xorb_parser_t *p, const uint8_t **pos,
    const uint8_t *end)
{
    xet_status_t  rc;

    while (*pos != end) {
        p->header[p->have++] = *(*pos)++;

        rc = xet_xorb_parser_field(p);
        if (rc != XET_OK) {
            return rc;
        }

        p->taken++;

        if (p->have == XET_XORB_HEADER_LEN) {
            p->have = 0;
            p->count++;
            p->size += XET_XORB_HEADER_LEN + p->chunk.payload_len;
            p->rest = p->chunk.payload_len;
            p->state = XET_XORB_PARSER_PAYLOAD;

            return XET_OK;
        }
    }

    return XET_AGAIN;
}


/* Checks the field that the last byte has completed, if any. */

static xet_status_t
xet_xorb_parser_field(xet_xorb_parser_t *p)
{
    xet_xorb_chunk_t  *chunk;

    chunk = &p->chunk;

    switch (p->have) {

    case 1: /* version, known to be 0 */

        if (p->count == XET_XORB_CHUNKS_MAX) {
            return XET_XORB_CHUNKS;
        }

        break;

    case 4:
        chunk->payload_len = xet_get_u24(p->header + 1);

        if (chunk->payload_len == 0 || chunk->payload_len > XET_CHUNK_MAX) {
            return XET_XORB_STORED_LEN;
        }

        /* 8192 chunks of the maximum size are about 2^30 bytes: no overflow */

        if (p->size + XET_XORB_HEADER_LEN + chunk->payload_len > p->size_max) {
            return XET_XORB_SIZE;
        }

        break;

    case 5:
        chunk->scheme = xet_xorb_header_scheme(p->header);

        if (xet_suite_scheme(p->suite, chunk->scheme) == NULL) {
            return XET_XORB_SCHEME;
        }

        break;

    case 8:
        chunk->raw_len = xet_get_u24(p->header + 5);

        if (chunk->raw_len == 0 || chunk->raw_len > XET_CHUNK_MAX) {
            return XET_XORB_RAW_LEN;
        }

        if (chunk->scheme == XET_SCHEME_NONE
            && chunk->payload_len != chunk->raw_len)
        {
            return XET_XORB_DATA_LEN;
        }

        break;
    }

    return XET_OK;
}


static xet_status_t
xet_xorb_parser_ident(xet_xorb_parser_t *p, const uint8_t **pos,
    const uint8_t *end)
{
    while (*pos != end) {

        if (*(*pos)++ != (uint8_t) XET_XORB_IDENT[p->have++]) {
            return XET_XORB_VERSION;
        }

        if (p->have == XET_XORB_IDENT_LEN) {

            if (p->count == 0) {
                return XET_XORB_EMPTY;
            }

            p->state = XET_XORB_PARSER_FOOTER;
            return XET_OK;
        }
    }

    return XET_AGAIN;
}


static void
xet_xorb_parser_payload(xet_xorb_parser_t *p, const uint8_t **pos,
    const uint8_t *end, xet_xorb_event_t *ev)
{
    size_t  len;

    len = (size_t) (end - *pos);

    if (len > p->rest) {
        len = p->rest;
    }

    ev->type = XET_XORB_EVENT_PAYLOAD;
    ev->data = *pos;
    ev->len = len;

    *pos += len;
    p->taken += len;
    p->rest -= (uint32_t) len;

    if (p->rest == 0) {
        p->state = XET_XORB_PARSER_HEADER;
    }
}


xet_status_t
xet_xorb_parser_finish(const xet_xorb_parser_t *p)
{
    switch (p->state) {

    case XET_XORB_PARSER_FOOTER:
        return XET_OK;

    case XET_XORB_PARSER_HEADER:

        if (p->have != 0) {
            return XET_XORB_TRUNCATED;
        }

        return p->count == 0 ? XET_XORB_EMPTY : XET_OK;

    default:
        return XET_XORB_TRUNCATED;
    }
}
