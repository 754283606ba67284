
/*
 * Names of downloads.
 *
 * Purpose:    a name that somebody put into a URL goes into a header and then
 *             onto somebody's disk: it must break neither.
 * States:     none.
 * Ownership:  the caller's buffers.
 * Threads:    any.
 */


#include <string.h>

#include "xet_filename.h"
#include "xet_utf8.h"


static int
xet_filename_hex(uint8_t ch)
{
    if (ch >= '0' && ch <= '9') {
        return ch - '0';
    }

    ch |= 0x20;

    return (ch >= 'a' && ch <= 'f') ? ch - 'a' + 10 : -1;
}


/* The next byte of the argument, or -1; *p moves behind it. */

static int
xet_filename_byte(const uint8_t **p, const uint8_t *end)
{
    int  high, low;

    if (**p != '%') {
        return *(*p)++;
    }

    if (end - *p < 3) {
        return -1;
    }

    high = xet_filename_hex((*p)[1]);
    low = xet_filename_hex((*p)[2]);

    if (high < 0 || low < 0) {
        return -1;
    }

    *p += 3;

    return high << 4 | low;
}


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
        ch = xet_filename_byte(&p, end);

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


/* Whether every reader of a quoted string takes the byte for itself. */

static int
xet_filename_plain(uint8_t ch)
{
    return ch < 0x80 && ch != '"' && ch != '%';
}


/* attr-char of RFC 8187 */

static int
xet_filename_attr(uint8_t ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
           || (ch >= '0' && ch <= '9')
           || (ch && strchr("!#$&+-.^_`|~", ch));
}


uint8_t *
xet_filename_header(uint8_t *dst, const uint8_t *name, size_t len)
{
    int     plain;
    size_t  i;

    static const char     begin[] = "attachment; filename=\"";
    static const char     more[] = "; filename*=UTF-8''";
    static const uint8_t  hex[] = "0123456789ABCDEF";

    memcpy(dst, begin, sizeof(begin) - 1);
    dst += sizeof(begin) - 1;

    plain = 1;

    for (i = 0; i < len; i++) {

        if (xet_filename_plain(name[i])) {
            *dst++ = name[i];
            continue;
        }

        plain = 0;

        /* one for a character, not for each of its bytes */

        if ((name[i] & 0xc0) != 0x80) {
            *dst++ = '_';
        }
    }

    *dst++ = '"';

    if (plain) {
        return dst;
    }

    memcpy(dst, more, sizeof(more) - 1);
    dst += sizeof(more) - 1;

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
