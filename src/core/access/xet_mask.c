
/*
 * Masks secrets in a text that others may read.  A secret is overwritten in
 * place, so the length of the text and pointers into it stay valid.
 *
 * Secrets are recognized by their format only: a log line may be about any
 * request, and may be truncated anywhere:
 *
 *     s=...                    signatures of data URLs and LFS URLs
 *     X-Amz-Signature=...      presigned URLs of an object store
 *     X-Amz-Security-Token=... presigned URLs of an object store
 *     Authorization: ...       headers, also Proxy-Authorization
 *     Bearer ..., Basic ...    values of such headers
 *     ey... . ... . ...        JSON Web Tokens, anywhere
 *     xet1...                  compact tokens, anywhere
 *     43 characters or more    in the arguments of a URL, unless they are all
 *                              hex digits: a signature with a wrong name
 *
 * The "=" and the delimiter before an argument may be escaped, since a URL may
 * be an argument of another URL.  An argument "s" shorter than XET_MASK_SHORT
 * is masked only at the end of a line, which may be truncated.
 */


#include "xet_base.h"
#include "xet_access.h"


#define XET_MASK_SHORT  32
#define XET_MASK_PART   16             /* minimum length of a token's part */
#define XET_MASK_MAC    43             /* characters of a MAC in base64url */


static void xet_mask_text(uint8_t *text, size_t len, int query);
static uint8_t *xet_mask_run(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_arg(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_header(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_scheme(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_token(uint8_t *p, uint8_t *end);
static uint8_t *xet_mask_compact(uint8_t *p, uint8_t *end);
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
 * Masks the secrets in a text.  If query is set, the text begins with the
 * arguments of a URL.  The function runs on several texts of each request, so
 * for speed it skips bytes that can't begin a secret.
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
                                                    : xet_mask_compact(p, end);
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


/*
 * Masks the run of characters at p if it may be a MAC, and returns its end.
 * Otherwise returns p.
 */

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


/*
 * Returns whether an argument may begin at p: at the start or after a
 * delimiter.
 */

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


/*
 * Masks the value of the argument whose name may begin at p, if the value is a
 * secret.  Returns the position to continue from.
 */

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

    /* "%26" ends an argument of a nested URL; "%2D" is part of the value */

    for (last = value; last < end; last++) {
        if (!xet_mask_char(*last)
            && (*last != '%' || xet_mask_word(last, end, "%26")))
        {
            break;
        }
    }

    /* the line may be truncated here */

    if (last < end && *last == '\n') {
        min = 1;
    }

    return ((size_t) (last - value) < min) ? last : xet_mask_fill(value, last);
}


/* Returns the position after "=" or "%3D" at p, or NULL. */

static const uint8_t *
xet_mask_equals(const uint8_t *p, const uint8_t *end)
{
    if (p < end && *p == '=') {
        return p + 1;
    }

    return xet_mask_word(p, end, "%3d") ? p + 3 : NULL;
}


/* Masks the value of an Authorization header, to the end of its line. */

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


/* Masks credentials after the name of their scheme, Bearer or Basic. */

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


/* Masks a JSON Web Token; its signature may be truncated or empty. */

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


/* Masks a compact token, which may be truncated. */

static uint8_t *
xet_mask_compact(uint8_t *p, uint8_t *end)
{
    uint8_t  *last;

    if (end - p < 4 || memcmp(p, "xet1", 4) != 0) {
        return p + 1;
    }

    for (last = p; last < end && xet_mask_char(*last); last++) { /* void */ }

    return (last - p < XET_MASK_PART) ? last : xet_mask_fill(p, last);
}


static uint8_t *
xet_mask_fill(uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        *p++ = '*';
    }

    return p;
}


/*
 * Returns whether the text begins with word, in upper or lower case; word is
 * given in lower case.
 */

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


/* Returns whether c is a base64url character. */

static int
xet_mask_char(uint8_t c)
{
    return xet_is_alnum(c) || c == '-' || c == '_';
}
