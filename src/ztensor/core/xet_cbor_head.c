
/*
 * Heads of CBOR items.
 *
 * Purpose:    what begins an item and tells its kind and its length: 1 to 9
 *             bytes, which a window may have cut anywhere.
 * States:     c->head_len bytes of an open head are in c->head.
 * Ownership:  a head lies in the caller's window, or in c->head if it was put
 *             together.
 * Threads:    one at a time.
 */


#include <string.h>

#include "xet_cbor_head.h"


xet_status_t
xet_cbor_head(xet_cbor_t *c, const uint8_t **head, size_t *len)
{
    size_t    n, have;
    unsigned  info;

    if (c->head_len == 0) {
        c->head_pos = c->pos;
    }

    if (c->p == c->end) {

        if (c->pos != c->size) {
            return XET_AGAIN;
        }

        c->status = XET_ZT_MANIFEST;
        return c->status;
    }

    info = (c->head_len ? c->head[0] : *c->p) & 0x1f;

    n = (info >= 24 && info <= 27) ? 1 + ((size_t) 1 << (info - 24)) : 1;

    if (n > c->size - c->head_pos) {
        c->status = XET_ZT_MANIFEST;
        return c->status;
    }

    have = (size_t) (c->end - c->p);

    if (c->head_len == 0 && have >= n) {
        *head = c->p;
        *len = n;

        c->p += n;
        c->pos += n;

        return XET_OK;
    }

    if (have > n - c->head_len) {
        have = n - c->head_len;
    }

    memcpy(c->head + c->head_len, c->p, have);

    c->head_len += (unsigned) have;
    c->p += have;
    c->pos += have;

    if (c->head_len < n) {
        return XET_AGAIN;
    }

    *head = c->head;
    *len = n;

    return XET_OK;
}


uint64_t
xet_cbor_head_value(const uint8_t *head, size_t len)
{
    size_t    i;
    uint64_t  value;

    if (len == 1) {
        return head[0] & 0x1f;
    }

    value = 0;

    for (i = 1; i < len; i++) {
        value = value << 8 | head[i];
    }

    return value;
}


int
xet_cbor_head_shortest(unsigned info, uint64_t value)
{
    switch (info) {

    case 24:
        return value >= 24;

    case 25:
        return value > 0xff;

    case 26:
        return value > 0xffff;

    case 27:
        return value > 0xffffffff;

    default:
        return 1;
    }
}
