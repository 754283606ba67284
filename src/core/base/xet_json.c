
/*
 * The JSON writer.
 *
 * Purpose:    writes JSON text directly into an xet_buf_t: no tree, no
 *             formatting functions, one pass over each string.
 * States:     the depth; one bit per level, set after the first element, since
 *             the next one then needs a comma; and whether a key was written
 *             and its value follows.  The writer does not record whether a
 *             level is an object or an array; the caller must call the
 *             matching functions.
 * Ownership:  the writer only borrows the buffer.
 * Threads:    one at a time.
 *
 * Errors are kept in the buffer: after a failed write all further writes are
 * ignored, and xet_buf_status() returns the error.  The buffer also fails on
 * nesting deeper than XET_JSON_DEPTH, on closing a level that is not open, and
 * on closing a level after a key.
 *
 * A run of bytes that need no escaping is copied in one call.  An ill-formed
 * UTF-8 sequence is replaced by one U+FFFD for each maximal part of it that
 * could have begun a character (Unicode 15, section 3.9).
 */


#include <string.h>

#include "xet_base.h"


#define xet_json_literal(b, s)  xet_buf_write(b, s, sizeof(s) - 1)


static int xet_json_comma(xet_json_t *j);
static void xet_json_open(xet_json_t *j, uint8_t bracket);
static void xet_json_close(xet_json_t *j, const char *bracket);
static void xet_json_text(xet_json_t *j, const uint8_t *s, size_t len);
static void xet_json_escape(xet_buf_t *b, unsigned c);


void
xet_json_init(xet_json_t *j, xet_buf_t *b)
{
    j->buf = b;
    j->more = 0;
    j->depth = 0;
    j->value = 0;
}


void
xet_json_resume(xet_json_t *j, xet_buf_t *b)
{
    j->buf = b;
}


void
xet_json_object_begin(xet_json_t *j)
{
    xet_json_open(j, '{');
}


void
xet_json_object_end(xet_json_t *j)
{
    xet_json_close(j, "}");
}


void
xet_json_array_begin(xet_json_t *j)
{
    xet_json_open(j, '[');
}


void
xet_json_array_end(xet_json_t *j)
{
    xet_json_close(j, "]");
}


uint8_t *
xet_json_reserve(xet_json_t *j, size_t n)
{
    uint8_t  *p;

    p = xet_buf_reserve(j->buf, n + 1);

    if (p != NULL && xet_json_comma(j)) {
        *p++ = ',';
    }

    return p;
}


void
xet_json_advance(xet_json_t *j, const uint8_t *end)
{
    xet_buf_advance(j->buf, (size_t) (end - j->buf->last->pos));
}


void
xet_json_key(xet_json_t *j, const char *key)
{
    size_t    len;
    uint8_t  *p;

    len = strlen(key);

    p = xet_json_reserve(j, len + 3);
    if (p == NULL) {
        return;
    }

    *p++ = '"';
    p = xet_put_bytes(p, key, len);
    *p++ = '"';
    *p++ = ':';

    xet_json_advance(j, p);

    j->value = 1;
}


void
xet_json_key_n(xet_json_t *j, const uint8_t *key, size_t len)
{
    xet_json_string(j, key, len);
    xet_json_literal(j->buf, ":");

    j->value = 1;
}


void
xet_json_string(xet_json_t *j, const uint8_t *s, size_t len)
{
    xet_json_string_begin(j);
    xet_json_text(j, s, len);
    xet_json_string_end(j);
}


void
xet_json_cstring(xet_json_t *j, const char *s)
{
    xet_json_string(j, (const uint8_t *) s, strlen(s));
}


void
xet_json_u64(xet_json_t *j, uint64_t v)
{
    uint8_t  *p;

    p = xet_json_reserve(j, XET_DECIMAL_MAX);

    if (p != NULL) {
        xet_json_advance(j, xet_put_decimal(p, v));
    }
}


void
xet_json_i64(xet_json_t *j, int64_t v)
{
    uint8_t  *p;

    p = xet_json_reserve(j, 1 + XET_DECIMAL_MAX);
    if (p == NULL) {
        return;
    }

    /* unsigned negation is correct even for INT64_MIN */

    if (v < 0) {
        *p++ = '-';
        p = xet_put_decimal(p, 0 - (uint64_t) v);

    } else {
        p = xet_put_decimal(p, (uint64_t) v);
    }

    xet_json_advance(j, p);
}


void
xet_json_number(xet_json_t *j, const uint8_t *text, size_t len)
{
    uint8_t  *p;

    p = xet_json_reserve(j, len);

    if (p != NULL) {
        xet_json_advance(j, xet_put_bytes(p, text, len));
    }
}


void
xet_json_bool(xet_json_t *j, int v)
{
    uint8_t  *p;

    p = xet_json_reserve(j, 5);

    if (p != NULL) {
        xet_json_advance(j, v ? xet_put_literal(p, "true")
                              : xet_put_literal(p, "false"));
    }
}


void
xet_json_null(xet_json_t *j)
{
    uint8_t  *p;

    p = xet_json_reserve(j, 4);

    if (p != NULL) {
        xet_json_advance(j, xet_put_literal(p, "null"));
    }
}


void
xet_json_put_string(xet_json_t *j, const char *key, const uint8_t *s,
    size_t len)
{
    xet_json_key(j, key);
    xet_json_string(j, s, len);
}


void
xet_json_put_cstring(xet_json_t *j, const char *key, const char *s)
{
    xet_json_key(j, key);

    if (s) {
        xet_json_cstring(j, s);

    } else {
        xet_json_null(j);
    }
}


void
xet_json_put_u64(xet_json_t *j, const char *key, uint64_t v)
{
    xet_json_key(j, key);
    xet_json_u64(j, v);
}


void
xet_json_put_i64(xet_json_t *j, const char *key, int64_t v)
{
    xet_json_key(j, key);
    xet_json_i64(j, v);
}


void
xet_json_put_bool(xet_json_t *j, const char *key, int v)
{
    xet_json_key(j, key);
    xet_json_bool(j, v);
}


void
xet_json_string_begin(xet_json_t *j)
{
    uint8_t  *p;

    p = xet_json_reserve(j, 1);

    if (p != NULL) {
        *p++ = '"';
        xet_json_advance(j, p);
    }
}


void
xet_json_string_end(xet_json_t *j)
{
    xet_json_literal(j->buf, "\"");
}


/* Returns whether the next key or value needs a comma before it. */

static int
xet_json_comma(xet_json_t *j)
{
    int       comma;
    uint32_t  bit;

    if (j->value) {
        j->value = 0;
        return 0;
    }

    if (j->depth == 0) {
        return 0;
    }

    bit = (uint32_t) 1 << (j->depth - 1);
    comma = (j->more & bit) != 0;

    j->more |= bit;

    return comma;
}


static void
xet_json_open(xet_json_t *j, uint8_t bracket)
{
    uint8_t  *p;

    if (j->depth == XET_JSON_DEPTH) {
        j->buf->failed = 1;
        return;
    }

    p = xet_json_reserve(j, 1);
    if (p == NULL) {
        return;
    }

    *p++ = bracket;

    xet_json_advance(j, p);

    j->more &= ~((uint32_t) 1 << j->depth);
    j->depth++;
}


static void
xet_json_close(xet_json_t *j, const char *bracket)
{
    if (j->depth == 0 || j->value) {
        j->buf->failed = 1;
        return;
    }

    j->depth--;

    xet_buf_write(j->buf, bracket, 1);
}


/* Writes the text between the quotes of a string. */

static void
xet_json_text(xet_json_t *j, const uint8_t *s, size_t len)
{
    size_t          n;
    xet_buf_t      *b;
    const uint8_t  *p, *end, *run;

    b = j->buf;
    end = len ? s + len : s;       /* s may be NULL if len is 0 */

    for (p = run = s; p < end; /* void */ ) {

        if (*p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\') {
            p++;
            continue;
        }

        n = 1;

        if (*p < 0x80 || !xet_utf8_character(p, (size_t) (end - p), &n)) {
            xet_buf_write(b, run, (size_t) (p - run));
            xet_json_escape(b, *p);
            run = p + n;
        }

        p += n;
    }

    xet_buf_write(b, run, (size_t) (end - run));
}


/* Writes a byte that needs an escape: special, control or ill-formed. */

static void
xet_json_escape(xet_buf_t *b, unsigned c)
{
    uint8_t            text[6];

    static const char  digits[] = "0123456789abcdef";

    switch (c) {

    case '"':
        xet_json_literal(b, "\\\"");
        return;

    case '\\':
        xet_json_literal(b, "\\\\");
        return;

    case '\b':
        xet_json_literal(b, "\\b");
        return;

    case '\f':
        xet_json_literal(b, "\\f");
        return;

    case '\n':
        xet_json_literal(b, "\\n");
        return;

    case '\r':
        xet_json_literal(b, "\\r");
        return;

    case '\t':
        xet_json_literal(b, "\\t");
        return;

    default:
        break;
    }

    if (c >= 0x80) {
        xet_json_literal(b, "\xef\xbf\xbd");
        return;
    }

    memcpy(text, "\\u00", 4);
    text[4] = (uint8_t) digits[c >> 4];
    text[5] = (uint8_t) digits[c & 15];

    xet_buf_write(b, text, sizeof(text));
}
