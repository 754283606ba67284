
/*
 * Values in HTML, for the status page.
 *
 * Purpose:    writes untrusted values, such as names of repos, into a page.
 *             No other code writes such values.
 * States:     none.
 * Ownership:  memory belongs to the buffer.
 * Threads:    any.
 *
 * A format is trusted markup.  A value is escaped as text, which may be a
 * quoted attribute value.  Bytes that are not UTF-8, control characters and
 * characters that change the text direction become U+FFFD.  A text can't end
 * its element or attribute: no quotation mark, "<" or "&" is left in it.
 */


#include <stdarg.h>

#include "xet_hub.h"


static void xet_hub_html_value(xet_buf_t *b, int code, va_list *args);
static const char *xet_hub_html_entity(const uint8_t *p, const uint8_t *end,
    size_t *n);
static void xet_hub_html_put(xet_buf_t *b, const char *text);


void
xet_hub_html(xet_buf_t *b, const char *format, ...)
{
    va_list      args;
    const char  *p;

    va_start(args, format);

    while ((p = strchr(format, '%')) != NULL && p[1] != '\0') {
        xet_buf_write(b, format, (size_t) (p - format));
        xet_hub_html_value(b, p[1], &args);

        format = p + 2;
    }

    xet_hub_html_put(b, format);

    va_end(args);
}


/* Writes one value.  A text has two arguments: its length and its bytes. */

static void
xet_hub_html_value(xet_buf_t *b, int code, va_list *args)
{
    size_t          len;
    uint8_t         text[XET_HUB_HTML_NUMBER];
    const uint8_t  *p;

    switch (code) {

    case 'n':
        p = xet_hub_html_number(text, va_arg(*args, uint64_t));
        xet_buf_write(b, text, (size_t) (p - text));
        return;

    case 'b':
        p = xet_hub_html_size(text, va_arg(*args, uint64_t));
        xet_buf_write(b, text, (size_t) (p - text));
        return;

    case '%':
        xet_hub_html_put(b, "%");
        return;

    default:
        break;
    }

    len = va_arg(*args, size_t);
    p = va_arg(*args, const uint8_t *);

    xet_hub_html_text(b, p, len);
}


void
xet_hub_html_text(xet_buf_t *b, const uint8_t *text, size_t len)
{
    size_t          n;
    const char     *entity;
    const uint8_t  *p, *start, *end;

    start = text;
    end = len ? text + len : text;

    for (p = text; p < end; p += n) {
        entity = xet_hub_html_entity(p, end, &n);

        if (entity) {
            xet_buf_write(b, start, (size_t) (p - start));
            xet_hub_html_put(b, entity);
            start = p + n;
        }
    }

    xet_buf_write(b, start, (size_t) (end - start));
}


/*
 * Returns the replacement of the *n bytes at p, or NULL when they need no
 * replacement.
 */

static const char *
xet_hub_html_entity(const uint8_t *p, const uint8_t *end, size_t *n)
{
    static const char  unknown[] = "\xef\xbf\xbd";

    *n = 1;

    switch (*p) {

    case '&':
        return "&amp;";

    case '<':
        return "&lt;";

    case '>':
        return "&gt;";

    case '"':
        return "&quot;";

    case '\'':
        return "&#39;";

    case '\t':
    case '\n':
    case '\r':
        return NULL;

    default:
        break;
    }

    if (*p < 0x80) {
        return (*p < 0x20 || *p == 0x7f) ? unknown : NULL;
    }

    if (!xet_utf8_character(p, (size_t) (end - p), n)) {
        return unknown;
    }

    /* U+0080 to U+009F are also control characters */

    if (p[0] == 0xc2 && p[1] < 0xa0) {
        return unknown;
    }

    /*
     * U+202A to U+202E and U+2066 to U+2069 change the text direction: a file
     * "gpj.exe" could be shown as "exe.jpg"
     */

    return (p[0] == 0xe2
            && ((p[1] == 0x80 && p[2] >= 0xaa && p[2] <= 0xae)
                || (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)))
           ? unknown : NULL;
}


static void
xet_hub_html_put(xet_buf_t *b, const char *text)
{
    xet_buf_write(b, text, strlen(text));
}


uint8_t *
xet_hub_html_number(uint8_t *p, uint64_t v)
{
    size_t   i, len;
    uint8_t  digits[XET_DECIMAL_MAX];

    len = (size_t) (xet_put_decimal(digits, v) - digits);

    for (i = 0; i < len; i++) {

        if (i && (len - i) % 3 == 0) {
            *p++ = ',';
        }

        *p++ = digits[i];
    }

    return p;
}


uint8_t *
xet_hub_html_size(uint8_t *p, uint64_t v)
{
    unsigned  i;
    uint64_t  unit;

    static const char *const  units[] = {
        " bytes", " kB", " MB", " GB", " TB", " PB", " EB"
    };

    if (v < 1000) {
        p = xet_put_decimal(p, v);
        return xet_put_bytes(p, units[0], strlen(units[0]) - (v == 1));
    }

    unit = 1000;

    for (i = 1; i < 6 && v / unit >= 1000; i++) {
        unit *= 1000;
    }

    p = xet_put_decimal(p, v / unit);
    *p++ = '.';
    *p++ = (uint8_t) ('0' + v % unit / (unit / 10));

    return xet_put_bytes(p, units[i], strlen(units[i]));
}
