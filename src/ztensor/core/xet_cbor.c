
/*
 * The CBOR decoder.
 *
 * Purpose:    decodes bytes to items, one at a time.  A manifest of any size
 *             is read in small pieces, and no tree is built in memory.
 * States:     between two items (a stack of open arrays and maps tells what
 *             comes next), inside a head that is split between pieces, inside
 *             a string, done, failed.  The first error is kept.
 * Ownership:  nothing is allocated.  A piece belongs to the caller; the
 *             decoder uses it until xet_cbor_next() returns XET_AGAIN.
 * Threads:    one at a time.
 *
 * Hostile input: the number of remaining bytes limits the length of a string
 * and the size of an array.  Open arrays, maps and tags share one limit, even
 * if the caller ignores their content.  Each item takes at least one byte or
 * closes a container, so the work is linear in the input.
 *
 * The code requires that float and double are IEEE 754 types.
 */


#include <float.h>
#include <string.h>

#include "xet_zt.h"


#define XET_CBOR_BREAK       0xff
#define XET_CBOR_INDEFINITE  31

/* major types that have no value in xet_cbor_kind_t */
#define XET_CBOR_MAJOR_TAG   6
#define XET_CBOR_MAJOR_ELSE  7


static xet_status_t xet_cbor_error(xet_cbor_t *c, xet_status_t status);
static xet_status_t xet_cbor_item(xet_cbor_t *c, xet_cbor_item_t *item,
    const uint8_t *head, size_t len);
static xet_status_t xet_cbor_break(xet_cbor_t *c, xet_cbor_item_t *item);
static void xet_cbor_end(xet_cbor_t *c, xet_cbor_item_t *item);
static xet_status_t xet_cbor_tag(xet_cbor_t *c, uint64_t tag);
static void xet_cbor_slot(xet_cbor_t *c, xet_cbor_item_t *item);
static xet_status_t xet_cbor_container(xet_cbor_t *c, xet_cbor_item_t *item);
static xet_status_t xet_cbor_string(xet_cbor_t *c, xet_cbor_item_t *item);
static xet_status_t xet_cbor_data(xet_cbor_t *c, xet_cbor_item_t *item);
static xet_status_t xet_cbor_chunk(xet_cbor_t *c, xet_cbor_item_t *item);
static xet_status_t xet_cbor_else(xet_cbor_t *c, xet_cbor_item_t *item,
    unsigned info);
static xet_status_t xet_cbor_head(xet_cbor_t *c, const uint8_t **head,
    size_t *len);
static uint64_t xet_cbor_head_value(const uint8_t *head, size_t len);
static int xet_cbor_head_shortest(unsigned info, uint64_t value);
static uint32_t xet_cbor_half(uint32_t half);


void
xet_cbor_init(xet_cbor_t *c, uint64_t size, unsigned limit, unsigned flags)
{
    memset(c, 0, sizeof(xet_cbor_t));

    c->size = size;
    c->limit = (limit < XET_CBOR_DEPTH) ? limit : XET_CBOR_DEPTH;
    c->flags = flags;
    c->status = XET_OK;
}


void
xet_cbor_resume(xet_cbor_t *c, uint64_t pos, unsigned depth, uint64_t pairs)
{
    xet_cbor_frame_t  *frame;

    c->pos = pos;
    c->depth = depth;

    frame = &c->frames[depth - 1];

    frame->left = pairs * 2;
    frame->map = 1;
}


void
xet_cbor_feed(xet_cbor_t *c, const uint8_t *data, size_t len)
{
    if (len > c->size - c->pos) {
        len = (size_t) (c->size - c->pos);
    }

    c->p = data;
    c->end = len ? data + len : data;
}


xet_status_t
xet_cbor_next(xet_cbor_t *c, xet_cbor_item_t *item)
{
    size_t          len;
    xet_status_t    rc;
    const uint8_t  *head;

    if (c->status != XET_OK) {
        return c->status;
    }

    if (c->string) {
        return (c->left == 0) ? xet_cbor_chunk(c, item)
                              : xet_cbor_data(c, item);
    }

    for ( ;; ) {

        if (c->depth
            && c->frames[c->depth - 1].left == 0
            && !c->frames[c->depth - 1].indefinite)
        {
            xet_cbor_end(c, item);
            return XET_OK;
        }

        if (c->done) {

            if (c->pos != c->size) {
                c->head_pos = c->pos;
                return xet_cbor_error(c, XET_ZT_TRAILING);
            }

            return XET_DONE;
        }

        rc = xet_cbor_head(c, &head, &len);
        if (rc != XET_OK) {
            return rc;
        }

        rc = xet_cbor_item(c, item, head, len);

        c->head_len = 0;

        /* a tag is not an item: continue with the next head */

        if (rc != XET_AGAIN) {
            return (rc == XET_OK) ? rc : xet_cbor_error(c, rc);
        }
    }
}


double
xet_cbor_float(const xet_cbor_item_t *item)
{
    float     f;
    double    d;
    uint32_t  bits;

    if (item->width == 8) {
        memcpy(&d, &item->value, sizeof(d));
        return d;
    }

    bits = (uint32_t) item->value;

    if (item->width == 2) {
        bits = xet_cbor_half(bits);
    }

    memcpy(&f, &bits, sizeof(f));

    return f;
}


int
xet_cbor_float_shortest(const xet_cbor_item_t *item)
{
    double    v;
    unsigned  exponent, shift;
    uint32_t  bits, mantissa;

    bits = (uint32_t) item->value;

    switch (item->width) {

    case 2:
        return (bits & 0x7fff) <= 0x7c00 || bits == 0x7e00;

    case 4:
        exponent = bits >> 23 & 0xff;
        mantissa = bits & 0x7fffff;

        if (exponent == 0xff) {
            return 0;
        }

        if (exponent == 0) {
            return mantissa != 0;
        }

        /* half floats: exponents -14 to 15, down to -24 if subnormal */

        if (exponent >= 113 && exponent <= 142) {
            return (mantissa & 0x1fff) != 0;
        }

        if (exponent >= 103 && exponent < 113) {
            shift = 14 + 112 - exponent;
            mantissa |= 0x800000;

            return (mantissa & (((uint32_t) 1 << shift) - 1)) != 0;
        }

        return 1;

    default: /* 8 */
        v = xet_cbor_float(item);

        if (v != v || v > DBL_MAX || v < -DBL_MAX) {
            return 0;
        }

        return v > FLT_MAX || v < -FLT_MAX || (double) (float) v != v;
    }
}


static xet_status_t
xet_cbor_error(xet_cbor_t *c, xet_status_t status)
{
    c->status = status;

    return status;
}


/*
 * Decodes the next head.  Returns XET_OK, with *item set; XET_AGAIN if the
 * head is a tag, which is not an item; or an error.
 */

static xet_status_t
xet_cbor_item(xet_cbor_t *c, xet_cbor_item_t *item, const uint8_t *head,
    size_t len)
{
    unsigned  major, info;
    uint64_t  value;

    if (head[0] == XET_CBOR_BREAK) {
        return xet_cbor_break(c, item);
    }

    major = head[0] >> 5;
    info = head[0] & 0x1f;
    value = xet_cbor_head_value(head, len);

    item->kind = (xet_cbor_kind_t) major;
    item->width = 0;
    item->value = value;
    item->indefinite = 0;
    item->more = 0;
    item->data = NULL;
    item->len = 0;
    item->pos = c->head_pos;

    if (major == XET_CBOR_MAJOR_ELSE) {
        return xet_cbor_else(c, item, info);
    }

    if (info > 27) {

        if (info != XET_CBOR_INDEFINITE
            || major < XET_CBOR_BYTES || major > XET_CBOR_MAP
            || (c->flags & XET_CBOR_DETERMINISTIC))
        {
            return XET_ZT_MANIFEST;
        }

        item->indefinite = 1;
        item->value = 0;

    } else if ((c->flags & XET_CBOR_DETERMINISTIC)
               && !xet_cbor_head_shortest(info, value))
    {
        return XET_ZT_ORDER;
    }

    if (major == XET_CBOR_MAJOR_TAG) {
        return xet_cbor_tag(c, value);
    }

    xet_cbor_slot(c, item);

    switch (item->kind) {

    case XET_CBOR_ARRAY:
    case XET_CBOR_MAP:
        return xet_cbor_container(c, item);

    case XET_CBOR_BYTES:
    case XET_CBOR_TEXT:
        return xet_cbor_string(c, item);

    default: /* an integer */
        c->done = (c->depth == 0);
        return XET_OK;
    }
}


static xet_status_t
xet_cbor_break(xet_cbor_t *c, xet_cbor_item_t *item)
{
    xet_cbor_frame_t  *frame;

    if (c->depth == 0 || c->tags) {
        return XET_ZT_MANIFEST;
    }

    frame = &c->frames[c->depth - 1];

    if (!frame->indefinite || (frame->map && frame->odd)) {
        return XET_ZT_MANIFEST;
    }

    xet_cbor_end(c, item);

    return XET_OK;
}


static void
xet_cbor_end(xet_cbor_t *c, xet_cbor_item_t *item)
{
    c->depth--;
    c->done = (c->depth == 0);

    memset(item, 0, sizeof(xet_cbor_item_t));

    item->kind = XET_CBOR_END;
    item->indefinite = c->frames[c->depth].indefinite;
    item->value = c->frames[c->depth].map ? XET_CBOR_MAP : XET_CBOR_ARRAY;
    item->pos = c->pos;
}


static xet_status_t
xet_cbor_tag(xet_cbor_t *c, uint64_t tag)
{
    if (c->flags & XET_CBOR_DETERMINISTIC) {
        return XET_ZT_MANIFEST;
    }

    if (c->depth + c->tags >= c->limit) {
        return XET_ZT_NESTING;
    }

    c->tags++;
    c->tag = tag;

    return XET_AGAIN;
}


/*
 * Counts the item in the container around it.  Sets item->key and the tags
 * that precede the item; a tag itself is not an item.
 *
 * The frame of an array counts the remaining items; the frame of a map counts
 * two per pair.  frame->odd flips with every item of a map: it tells whether a
 * key or a value is next.
 */

static void
xet_cbor_slot(xet_cbor_t *c, xet_cbor_item_t *item)
{
    xet_cbor_frame_t  *frame;

    item->key = 0;
    item->tags = c->tags;
    item->tag = c->tag;

    c->tags = 0;
    c->tag = 0;

    if (c->depth == 0) {
        return;
    }

    frame = &c->frames[c->depth - 1];

    if (!frame->indefinite) {
        frame->left--;
    }

    if (frame->map) {
        item->key = !frame->odd;
        frame->odd = !frame->odd;
    }
}


static xet_status_t
xet_cbor_container(xet_cbor_t *c, xet_cbor_item_t *item)
{
    uint64_t           left;
    xet_cbor_frame_t  *frame;

    if (c->depth + item->tags >= c->limit) {
        return XET_ZT_NESTING;
    }

    left = c->size - c->pos;

    if (item->kind == XET_CBOR_MAP) {
        left /= 2;
    }

    if (item->value > left) {
        return XET_ZT_MANIFEST;
    }

    frame = &c->frames[c->depth++];

    frame->map = (item->kind == XET_CBOR_MAP);
    frame->left = frame->map ? item->value * 2 : item->value;
    frame->indefinite = item->indefinite;
    frame->odd = 0;

    return XET_OK;
}


/*
 * Starts a string.  The item has the part of the string that is in the piece.
 * If the string comes in chunks, the item has no bytes.
 */

static xet_status_t
xet_cbor_string(xet_cbor_t *c, xet_cbor_item_t *item)
{
    size_t           len;
    xet_cbor_item_t  data;

    if (item->value > c->size - c->pos) {
        return XET_ZT_MANIFEST;
    }

    c->string = 1;
    c->chunked = item->indefinite;
    c->text = (item->kind == XET_CBOR_TEXT);
    c->key = item->key;
    c->left = item->value;
    xet_utf8_init(&c->utf8);

    item->more = 1;

    if (c->chunked) {
        return XET_OK;
    }

    item->data = c->p;
    len = (size_t) (c->end - c->p);

    /* mostly, the string is intact and in this piece */

    if (len >= item->value) {
        len = (size_t) item->value;

        if (!c->text
            || (xet_utf8_feed(&c->utf8, c->p, len) == len && !c->utf8.need))
        {
            item->len = len;
            item->more = 0;

            c->p += len;
            c->pos += len;
            c->left = 0;
            c->string = 0;
            c->done = (c->depth == 0);

            return XET_OK;
        }

        xet_utf8_init(&c->utf8);
    }

    if (xet_cbor_data(c, &data) == XET_OK) {
        item->len = data.len;
        item->more = data.more;
    }

    return XET_OK;
}


/*
 * Returns text up to the first malformed character; the next call returns the
 * error.  So the caller gets the same text, wherever pieces end.
 */

static xet_status_t
xet_cbor_data(xet_cbor_t *c, xet_cbor_item_t *item)
{
    size_t  n;

    n = (size_t) (c->end - c->p);

    if (n == 0 && c->left) {
        return XET_AGAIN;
    }

    if (n > c->left) {
        n = (size_t) c->left;
    }

    memset(item, 0, sizeof(xet_cbor_item_t));

    item->kind = XET_CBOR_DATA;
    item->key = c->key;
    item->pos = c->pos;
    item->data = c->p;
    item->len = c->text ? xet_utf8_feed(&c->utf8, c->p, n) : n;

    c->p += n;
    c->pos += n;
    c->left -= n;

    /* a character must not continue in the next chunk */

    if (item->len != n || (c->left == 0 && c->text && c->utf8.need)) {
        c->status = XET_ZT_UTF8;

    } else if (c->left == 0 && !c->chunked) {
        c->string = 0;
        c->done = (c->depth == 0);
    }

    item->more = c->string;

    return XET_OK;
}


/* Reads the head of the next chunk, or the break after the last chunk. */

static xet_status_t
xet_cbor_chunk(xet_cbor_t *c, xet_cbor_item_t *item)
{
    size_t          len;
    unsigned        major;
    xet_status_t    rc;
    const uint8_t  *head;

    rc = xet_cbor_head(c, &head, &len);
    if (rc != XET_OK) {
        return rc;
    }

    c->head_len = 0;

    if (head[0] == XET_CBOR_BREAK) {
        c->chunked = 0;
        return xet_cbor_data(c, item);
    }

    major = c->text ? XET_CBOR_TEXT : XET_CBOR_BYTES;

    if (head[0] >> 5 != (int) major || (head[0] & 0x1f) > 27) {
        return xet_cbor_error(c, XET_ZT_MANIFEST);
    }

    c->left = xet_cbor_head_value(head, len);

    if (c->left > c->size - c->pos) {
        return xet_cbor_error(c, XET_ZT_MANIFEST);
    }

    return xet_cbor_data(c, item);
}


/*
 * Decodes major type 7: floats and simple values.  Unassigned simple values
 * are rejected, as in other readers of zTensor files.
 */

static xet_status_t
xet_cbor_else(xet_cbor_t *c, xet_cbor_item_t *item, unsigned info)
{
    if (info >= 25 && info <= 27) {
        item->kind = XET_CBOR_FLOAT;
        item->width = 1u << (info - 24);

        if ((c->flags & XET_CBOR_DETERMINISTIC)
            && !xet_cbor_float_shortest(item))
        {
            return XET_ZT_ORDER;
        }

    } else if (info >= XET_CBOR_FALSE && info <= XET_CBOR_UNDEFINED) {
        item->kind = XET_CBOR_SIMPLE;

        if ((c->flags & XET_CBOR_DETERMINISTIC)
            && info == XET_CBOR_UNDEFINED)
        {
            return XET_ZT_MANIFEST;
        }

    } else {
        return XET_ZT_MANIFEST;
    }

    xet_cbor_slot(c, item);

    c->done = (c->depth == 0);

    return XET_OK;
}


/*
 * Sets *head to a complete head of 1 to 9 bytes, which holds the kind and the
 * length or value of an item.  A head inside one piece is read there.  A head
 * that is split between pieces is collected in c->head, c->head_len bytes so
 * far.
 *
 * Returns XET_OK, and the caller then sets c->head_len to 0; XET_AGAIN if the
 * piece ends inside the head; XET_ZT_MANIFEST if the input ends inside the
 * head; this error is kept.
 */

static xet_status_t
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

        return xet_cbor_error(c, XET_ZT_MANIFEST);
    }

    info = (c->head_len ? c->head[0] : *c->p) & 0x1f;

    n = (info >= 24 && info <= 27) ? 1 + ((size_t) 1 << (info - 24)) : 1;

    if (n > c->size - c->head_pos) {
        return xet_cbor_error(c, XET_ZT_MANIFEST);
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


/*
 * Returns the value of a head: the low five bits of a single byte, or the
 * big-endian number after the first byte.
 */

static uint64_t
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


/*
 * Returns 1 if info, a head's low five bits, gives the value's shortest head.
 */

static int
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


/* Converts the bits of a 16-bit float to the bits of a 32-bit float. */

static uint32_t
xet_cbor_half(uint32_t half)
{
    uint32_t  sign, exponent, mantissa;

    sign = (half & 0x8000) << 16;
    exponent = half >> 10 & 0x1f;
    mantissa = half & 0x3ff;

    if (exponent == 31) {
        return sign | 0x7f800000 | mantissa << 13;
    }

    if (exponent == 0) {

        if (mantissa == 0) {
            return sign;
        }

        for (exponent = 1; !(mantissa & 0x400); exponent--) {
            mantissa <<= 1;
        }

        mantissa &= 0x3ff;
    }

    return sign | (exponent + 112) << 23 | mantissa << 13;
}
