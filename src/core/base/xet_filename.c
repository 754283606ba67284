
/*
 * File names of downloads.
 *
 * Purpose:    makes a name from a URL safe to be sent in a header and to be
 *             used by a client as the name of a file.
 * States:     none.
 * Ownership:  the buffers belong to the caller.
 * Threads:    any.
 */


#include <string.h>

#include "xet_base.h"


xet_status_t
xet_filename_decode(uint8_t *dst, size_t *len, const uint8_t *src,
    size_t src_len)
{
    int             ch;
    size_t          n;
    xet_utf8_t      utf8;
    const uint8_t  *p, *end;

    p = src;
    end = src + src_len;

    for (n = 0; p < end; n++) {
        ch = xet_percent_byte(&p, end);

        if (ch < 0 || n == XET_FILENAME_MAX) {
            return XET_FILENAME;
        }

        if (ch < ' ' || ch == 0x7f || ch == '/' || ch == '\\'
            || (n == 0 && ch == '.'))
        {
            ch = '_';
        }

        dst[n] = (uint8_t) ch;
    }

    xet_utf8_init(&utf8);

    if (n == 0 || xet_utf8_feed(&utf8, dst, n) != n || utf8.need) {
        return XET_FILENAME;
    }

    *len = n;

    return XET_OK;
}


const uint8_t *
xet_filename_extension(const uint8_t *name, size_t len, size_t *ext_len)
{
    size_t  i;

    for (i = len; i; i--) {
        if (name[i - 1] == '.') {
            *ext_len = len - i;
            return name + i;
        }
    }

    *ext_len = 0;

    return NULL;
}


/* Returns whether all clients take the byte literally in a quoted string. */

static int
xet_filename_plain(uint8_t ch)
{
    return ch < 0x80 && ch != '"' && ch != '%';
}


/*
 * Returns whether the byte is an attr-char of RFC 8187, which needs no escape.
 */

static int
xet_filename_attr(uint8_t ch)
{
    return xet_is_alnum(ch) || (ch && strchr("!#$&+-.^_`|~", ch));
}


uint8_t *
xet_filename_header(uint8_t *dst, const uint8_t *name, size_t len)
{
    int                   plain;
    size_t                i;

    static const uint8_t  hex[] = "0123456789ABCDEF";

    dst = xet_put_literal(dst, "attachment; filename=\"");

    plain = 1;

    for (i = 0; i < len; i++) {

        if (xet_filename_plain(name[i])) {
            *dst++ = name[i];
            continue;
        }

        plain = 0;

        /* one underscore per character, not per byte */

        if ((name[i] & 0xc0) != 0x80) {
            *dst++ = '_';
        }
    }

    *dst++ = '"';

    if (plain) {
        return dst;
    }

    dst = xet_put_literal(dst, "; filename*=UTF-8''");

    for (i = 0; i < len; i++) {

        if (xet_filename_attr(name[i])) {
            *dst++ = name[i];
            continue;
        }

        *dst++ = '%';
        *dst++ = hex[name[i] >> 4];
        *dst++ = hex[name[i] & 0xf];
    }

    return dst;
}
