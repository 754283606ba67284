
/*
 * Secrets in a text that others will read: each is overwritten where it
 * stands, so that a text keeps its length, and whatever points into it stays
 * right.
 *
 * What is a secret is told by its form, since a line of a log may be about the
 * request of anybody, and may be cut off at any place:
 *
 *     s=...                    signatures of data URLs and URLs of LFS
 *     X-Amz-Signature=...      of presigned URLs of an object store; and
 *     X-Amz-Security-Token=...
 *     Authorization: ...       headers, also Proxy-Authorization
 *     Bearer ..., Basic ...    values of such headers
 *     ey... . ... . ...        tokens: JSON Web Tokens, anywhere
 *     43 characters or more    in the arguments of a URL, if they are not all
 *                              hexadecimal digits: a signature whose argument
 *                              was misspelt
 *
 * "=", and what stands before an argument, may be escaped: a URL may be the
 * argument of another one.  An argument "s" of less than XET_MASK_SHORT
 * characters is no signature, unless the line ends behind it: then it may be
 * what is left of one.
 */


#include "xet_base.h"
#include "xet_access.h"


#define XET_MASK_SHORT  32
#define XET_MASK_PART   16             /* of the first two parts of a token */
#define XET_MASK_MAC    43             /* characters of a MAC in base64url */


static void xet_mask_text(uint8_t *text, size_t len, int query);
static uint8_t *xet_mask_run(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_arg(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_header(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_scheme(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_token(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_fill(uint8_t *p, const uint8_t *end);
static const uint8_t *xet_mask_equals(const uint8_t *p, const uint8_t *end);
static int xet_mask_word(const uint8_t *p, const uint8_t *end,
    const char *word);
static int xet_mask_begins(const uint8_t *text, const uint8_t *p);
static int xet_mask_char(uint8_t c);


void
xet_mask(uint8_t *text, size_t len)
{
    xet_mask_text(text, len, 0);
}


void
xet_mask_args(uint8_t *args, size_t len)
{
    xet_mask_text(args, len, 1);
}


/*
 * query: the text begins with the arguments of a URL.  This is done for
 * several texts of each request: what can't begin a secret is skipped.
 */

static void
xet_mask_text(uint8_t *text, size_t len, int query)
{
    uint8_t  *p, *end, *next;

    static const uint8_t  begins[256] = {
        ['?'] = 1, ['s'] = 1, ['x'] = 1, ['X'] = 1, ['a'] = 1, ['A'] = 1,
        ['b'] = 1, ['B'] = 1, ['e'] = 1
    };

    if (len == 0) {
        return;
    }

    end = text + len;

    for (p = text; p < end; p = next) {

        if (!query && !begins[*p]) {
            next = p + 1;
            continue;
        }

        if (*p == '?') {
            query = 1;

        } else if (*p == ' ' || *p == '"' || *p == '\n') {
            query = 0;
        }

        if (query && xet_mask_begins(text, p)) {
            next = xet_mask_run(p, end);

            if (next != p) {
                continue;
            }
        }

        switch (*p | 0x20) {

        case 's':
            next = (*p == 's' && xet_mask_begins(text, p))
                   ? xet_mask_arg(p, end) : p + 1;
            break;

        case 'x':
            next = xet_mask_word(p, end, "x-amz-s") ? xet_mask_arg(p, end)
                                                    : p + 1;
            break;

        case 'a':
            next = (p + 1 < end && (p[1] | 0x20) == 'u')
                   ? xet_mask_header(p, end) : p + 1;
            break;

        case 'b':
            next = (p + 2 < end && ((p[2] | 0x20) == 'a'
                                    || (p[2] | 0x20) == 's'))
                   ? xet_mask_scheme(p, end) : p + 1;
            break;

        case 'e':
            next = xet_mask_token(p, end);
            break;

        default:
            next = p + 1;
        }
    }
}


/* At characters of a URL: masks them if they may be a MAC; else returns p. */

static uint8_t *
xet_mask_run(uint8_t *p, uint8_t *end)
{
    int       hex;
    uint8_t  *last;

    hex = 1;

    for (last = p; last < end && xet_mask_char(*last); last++) {
        hex = hex && xet_get_hex_digit(*last) <= 15;
    }

    return (last - p < XET_MASK_MAC || hex) ? p : xet_mask_fill(p, last);
}


/* Whether an argument may begin at p: a delimiter is before it, or nothing. */

static int
xet_mask_begins(const uint8_t *text, const uint8_t *p)
{
    if (p == text) {
        return 1;
    }

    if (!xet_mask_char(p[-1])) {
        return 1;
    }

    return p - text >= 3
           && (xet_mask_word(p - 3, p, "%26")
               || xet_mask_word(p - 3, p, "%3f"));
}


/* At the name of an argument: masks its value, if that is a secret. */

static uint8_t *
xet_mask_arg(uint8_t *p, uint8_t *end)
{
    uint8_t        *value, *last;
    const uint8_t  *equals;
    size_t          min;

    if (*p == 's') {
        equals = xet_mask_equals(p + 1, end);
        min = XET_MASK_SHORT;

    } else if (xet_mask_word(p, end, "x-amz-signature")) {
        equals = xet_mask_equals(p + 15, end);
        min = 1;

    } else if (xet_mask_word(p, end, "x-amz-security-token")) {
        equals = xet_mask_equals(p + 20, end);
        min = 1;

    } else {
        return p + 1;
    }

    if (equals == NULL) {
        return p + 1;
    }

    value = p + (equals - p);

    /* "%26" is the "&" of a URL in a URL; a "%2D" is part of the value */

    for (last = value; last < end; last++) {
        if (!xet_mask_char(*last)
            && (*last != '%' || xet_mask_word(last, end, "%26")))
        {
            break;
        }
    }

    /* a line that was cut off here */

    if (last < end && *last == '\n') {
        min = 1;
    }

    return ((size_t) (last - value) < min) ? last : xet_mask_fill(value, last);
}


/* Behind "=", or "%3D"; NULL: there is none. */

static const uint8_t *
xet_mask_equals(const uint8_t *p, const uint8_t *end)
{
    if (p < end && *p == '=') {
        return p + 1;
    }

    return xet_mask_word(p, end, "%3d") ? p + 3 : NULL;
}


/* A header, to the end of its line. */

static uint8_t *
xet_mask_header(uint8_t *p, uint8_t *end)
{
    uint8_t  *value, *last;

    if (!xet_mask_word(p, end, "authorization:")) {
        return p + 1;
    }

    value = p + sizeof("authorization:") - 1;

    for (last = value; last < end && *last != '"' && *last != '\n'; last++) {
        /* void */
    }

    return xet_mask_fill(value, last);
}


/* The value of a header, behind the name of its scheme. */

static uint8_t *
xet_mask_scheme(uint8_t *p, uint8_t *end)
{
    uint8_t  *value, *last;

    if (xet_mask_word(p, end, "bearer ")) {
        value = p + sizeof("bearer ") - 1;

    } else if (xet_mask_word(p, end, "basic ")) {
        value = p + sizeof("basic ") - 1;

    } else {
        return p + 1;
    }

    for (last = value; last < end && (xet_mask_char(*last)
                                      || strchr("+/=.~", *last)) && *last;
         last++)
    {
        /* void */
    }

    return (last - value < XET_MASK_PART) ? last : xet_mask_fill(value, last);
}


/* Two parts of a JSON Web Token and what there is of its signature. */

static uint8_t *
xet_mask_token(uint8_t *p, uint8_t *end)
{
    unsigned   n;
    uint8_t   *part, *last;

    if (end - p < 2 * XET_MASK_PART
        || p[0] != 'e' || (p[1] != 'y' && p[1] != 'w'))
    {
        return p + 1;
    }

    part = p;
    n = 0;

    for (last = p; last < end; last++) {

        if (xet_mask_char(*last)) {
            continue;
        }

        if (*last != '.' || n == 2) {
            break;
        }

        if (last - part < XET_MASK_PART) {
            return last;
        }

        part = last + 1;
        n++;
    }

    return (n == 2) ? xet_mask_fill(p, last) : last;
}


static uint8_t *
xet_mask_fill(uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        *p++ = '*';
    }

    return p;
}


/* Whether the text begins with a word, which is in lower case. */

static int
xet_mask_word(const uint8_t *p, const uint8_t *end, const char *word)
{
    for ( /* void */ ; *word; word++, p++) {

        if (p == end || (*p != (uint8_t) *word
                         && (!xet_is_alnum(*p)
                             || (*p | 0x20) != (uint8_t) *word)))
        {
            return 0;
        }
    }

    return 1;
}


/* Characters of base64url. */

static int
xet_mask_char(uint8_t c)
{
    return xet_is_alnum(c) || c == '-' || c == '_';
}
