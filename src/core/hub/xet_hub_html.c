
/*
 * HTML pages of the Hub.
 *
 * Purpose:    writes untrusted values (names, paths, titles, texts, the host
 *             of the request) into a page.  No other code writes such values.
 * States:     none.
 * Ownership:  memory belongs to the buffer.
 * Threads:    any.
 *
 * A format is trusted markup.  A value is escaped for its context: as text,
 * which may be a quoted attribute value, as a part of a URL, as a word of a
 * command line, or as a Python string.  Bytes that are not UTF-8, control
 * characters and characters that change the text direction become U+FFFD.  A
 * text can't end its element or attribute: no quotation mark, "<" or "&" is
 * left in it.
 */


#include <stdarg.h>

#include "xet_hub.h"


/* The last second of the year 9999; HTML has no later dates. */
#define XET_HUB_HTML_LAST  INT64_C(253402300799)


static void xet_hub_html_value(xet_buf_t *b, int code, va_list *args);
static const char *xet_hub_html_entity(const uint8_t *p, const uint8_t *end,
    size_t *n);
static void xet_hub_html_url(xet_buf_t *b, const uint8_t *p, size_t len,
    int path);
static void xet_hub_html_word(xet_buf_t *b, const uint8_t *p, size_t len);
static void xet_hub_html_literal(xet_buf_t *b, const uint8_t *p, size_t len);
static void xet_hub_html_date(xet_buf_t *b, int64_t at, size_t len,
    uint8_t separator);
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
    const char     *s;
    const uint8_t  *p;

    switch (code) {

    case 's':
        s = va_arg(*args, const char *);
        xet_hub_html_text(b, (const uint8_t *) s, strlen(s));
        return;

    case 'n':
        p = xet_hub_html_number(text, va_arg(*args, uint64_t));
        xet_buf_write(b, text, (size_t) (p - text));
        return;

    case 'b':
        p = xet_hub_html_size(text, va_arg(*args, uint64_t));
        xet_buf_write(b, text, (size_t) (p - text));
        return;

    case 'd':
        xet_hub_html_date(b, va_arg(*args, int64_t), 16, ' ');
        return;

    case 'D':
        xet_hub_html_date(b, va_arg(*args, int64_t), 20, 'T');
        return;

    case '%':
        xet_hub_html_put(b, "%");
        return;

    default:
        break;
    }

    len = va_arg(*args, size_t);
    p = va_arg(*args, const uint8_t *);

    switch (code) {

    case 'u':
        xet_hub_html_url(b, p, len, 0);
        break;

    case 'p':
        xet_hub_html_url(b, p, len, 1);
        break;

    case 'w':
        xet_hub_html_word(b, p, len);
        break;

    case 'l':
        xet_hub_html_literal(b, p, len);
        break;

    default: /* t */
        xet_hub_html_text(b, p, len);
    }
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


/* Encodes all but unreserved characters (RFC 3986); a path keeps its "/". */

static void
xet_hub_html_url(xet_buf_t *b, const uint8_t *p, size_t len, int path)
{
    size_t    i;
    uint8_t  *dst;

    static const char  hex[] = "0123456789ABCDEF";

    for (i = 0; i < len; i++) {
        dst = xet_buf_reserve(b, 3);

        if (dst == NULL) {
            return;
        }

        if (xet_is_alnum(p[i]) || p[i] == '-' || p[i] == '.' || p[i] == '_'
            || p[i] == '~' || (path && p[i] == '/'))
        {
            *dst = p[i];
            xet_buf_advance(b, 1);
            continue;
        }

        dst[0] = '%';
        dst[1] = (uint8_t) hex[p[i] >> 4];
        dst[2] = (uint8_t) hex[p[i] & 15];
        xet_buf_advance(b, 3);
    }
}


/* Quotes a word for a shell, so that a pasted command does not execute it. */

static void
xet_hub_html_word(xet_buf_t *b, const uint8_t *p, size_t len)
{
    size_t  i, start;

    for (i = 0; i < len; i++) {

        if (!xet_is_alnum(p[i])
            && (p[i] == '\0' || strchr("-_./:@%+,=", p[i]) == NULL))
        {
            break;
        }
    }

    if (i == len && len) {
        xet_hub_html_text(b, p, len);
        return;
    }

    xet_hub_html_put(b, "&#39;");

    for (i = 0, start = 0; i < len; i++) {

        if (p[i] == '\'') {
            xet_hub_html_text(b, p + start, i - start);
            xet_hub_html_put(b, "&#39;\\&#39;&#39;");
            start = i + 1;
        }
    }

    if (len) {
        xet_hub_html_text(b, p + start, len - start);
    }

    xet_hub_html_put(b, "&#39;");
}


/* Writes a Python string literal. */

static void
xet_hub_html_literal(xet_buf_t *b, const uint8_t *p, size_t len)
{
    size_t  i, start;

    xet_hub_html_put(b, "&quot;");

    for (i = 0, start = 0; i < len; i++) {

        if (p[i] == '"' || p[i] == '\\') {
            xet_hub_html_text(b, p + start, i - start);
            xet_hub_html_put(b, "\\");
            start = i;
        }
    }

    if (len) {
        xet_hub_html_text(b, p + start, len - start);
    }

    xet_hub_html_put(b, "&quot;");
}


/*
 * Appends a time in seconds since 1970 as 2026-11-23 22:35 (16 bytes), or with
 * seconds and "Z" (20 bytes); the separator stands between date and time.
 */

static void
xet_hub_html_date(xet_buf_t *b, int64_t at, size_t len, uint8_t separator)
{
    uint8_t  text[XET_HUB_DATE_LEN];

    at = (at < 0) ? 0 : (at > XET_HUB_HTML_LAST) ? XET_HUB_HTML_LAST : at;

    (void) xet_hub_tree_date(text, at * 1000000);

    text[10] = separator;
    text[19] = 'Z';

    xet_buf_write(b, text, len);
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
