
/*
 * Rules of a ".gitignore" file.
 *
 * Purpose:    reports whether git would ignore a file of an upload, by the
 *             rules in the root folder of a repo (gitignore(5)).
 * States:     init, match for each path, free.
 * Ownership:  the list owns its rules, which point into the text; the text
 *             must live as long.
 * Threads:    any, but one at a time per list.
 *
 * Memory is limited by the length of the text, and time by a number of steps
 * for all paths together: a pattern that backtracks a lot is refused.
 */


#include <stdlib.h>

#include "xet_hub.h"


struct xet_hub_rule_s {
    const uint8_t  *p;
    uint32_t        len;
    unsigned        negated:1;         /* "!": do not ignore */
    unsigned        folder:1;          /* "/" at the end: only folders */
    unsigned        base:1;            /* no other "/": any folder */
};


/* The state of a match, and the positions to continue from after a mismatch. */

typedef struct {
    const uint8_t  *start;             /* pattern */
    const uint8_t  *p;
    const uint8_t  *end;
    const uint8_t  *s;                 /* path */
    const uint8_t  *last;
    const uint8_t  *star_p;            /* after "*"; NULL: none */
    const uint8_t  *star_s;
    const uint8_t  *deep_p;            /* after a "**" with a slash; or NULL */
    const uint8_t  *deep_s;
} xet_hub_glob_t;


static void xet_hub_rule_parse(xet_hub_ignore_t *ignore, const uint8_t *p,
    size_t len);
static size_t xet_hub_rule_trim(const uint8_t *p, size_t len);
static int xet_hub_rule_last(xet_hub_ignore_t *ignore, const uint8_t *path,
    size_t len, int folder);
static int xet_hub_glob(xet_hub_ignore_t *ignore, const xet_hub_rule_t *rule,
    const uint8_t *s, size_t len);
static int xet_hub_glob_stars(xet_hub_glob_t *g);
static int xet_hub_glob_back(xet_hub_glob_t *g);
static int xet_hub_glob_byte(const uint8_t **pattern, const uint8_t *end,
    uint8_t c);
static int xet_hub_glob_set(const uint8_t **pattern, const uint8_t *end,
    uint8_t c);
static size_t xet_hub_glob_class(const uint8_t *p, const uint8_t *end,
    uint8_t c, int *found);


xet_status_t
xet_hub_ignore_init(xet_hub_ignore_t *ignore, const uint8_t *text, size_t len)
{
    size_t          n;
    const uint8_t  *p, *end, *last;

    memset(ignore, 0, sizeof(xet_hub_ignore_t));

    if (len > XET_HUB_IGNORE_MAX) {
        return XET_BODY_SIZE;
    }

    p = text;
    last = text + len;
    n = 1;

    if (len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
        p += 3;
    }

    for (end = p; end < last; end++) {
        n += (*end == '\n');
    }

    ignore->rules = malloc(n * sizeof(xet_hub_rule_t));
    if (ignore->rules == NULL) {
        return XET_NOMEM;
    }

    while (p < last) {
        end = memchr(p, '\n', (size_t) (last - p));

        if (end == NULL) {
            end = last;
        }

        xet_hub_rule_parse(ignore, p, (size_t) (end - p));

        p = end + 1;
    }

    return XET_OK;
}


void
xet_hub_ignore_free(xet_hub_ignore_t *ignore)
{
    free(ignore->rules);
    ignore->rules = NULL;
    ignore->n = 0;
}


static void
xet_hub_rule_parse(xet_hub_ignore_t *ignore, const uint8_t *p, size_t len)
{
    xet_hub_rule_t  *rule;

    if (len && p[len - 1] == '\r') {
        len--;
    }

    if (len == 0 || p[0] == '#') {
        return;
    }

    len = xet_hub_rule_trim(p, len);

    rule = &ignore->rules[ignore->n];
    memset(rule, 0, sizeof(xet_hub_rule_t));

    if (len && p[0] == '!') {
        rule->negated = 1;
        p++;
        len--;
    }

    if (len && p[len - 1] == '/') {
        rule->folder = 1;
        len--;
    }

    rule->base = (len == 0 || memchr(p, '/', len) == NULL);

    if (len && p[0] == '/') {
        p++;
        len--;
    }

    rule->p = p;
    rule->len = (uint32_t) len;

    ignore->n += (len != 0);
}


/* Returns the length without the spaces at the end that are not escaped. */

static size_t
xet_hub_rule_trim(const uint8_t *p, size_t len)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < len; i++) {

        if (p[i] == '\\' && i + 1 < len) {
            i++;
            n = i + 1;

        } else if (p[i] != ' ') {
            n = i + 1;
        }
    }

    return n;
}


xet_status_t
xet_hub_ignore_match(xet_hub_ignore_t *ignore, const uint8_t *path, size_t len,
    int *ignored)
{
    size_t  i;

    *ignored = 0;

    /* no rule can include a file again if one of its folders is ignored */

    for (i = 1; i <= len && ignore->n && !*ignored; i++) {
        if (i == len || path[i] == '/') {
            *ignored = xet_hub_rule_last(ignore, path, i, i < len);
        }
    }

    return (ignore->steps > XET_HUB_IGNORE_STEPS) ? XET_BODY_SIZE : XET_OK;
}


/* Returns whether the last rule that matches a path ignores the path. */

static int
xet_hub_rule_last(xet_hub_ignore_t *ignore, const uint8_t *path, size_t len,
    int folder)
{
    size_t                 i, base;
    const xet_hub_rule_t  *rule;

    for (base = len; base && path[base - 1] != '/'; base--) {
        /* void */
    }

    for (i = ignore->n; i > 0; i--) {
        rule = &ignore->rules[i - 1];

        if (rule->folder && !folder) {
            continue;
        }

        if (rule->base ? xet_hub_glob(ignore, rule, path + base, len - base)
                       : xet_hub_glob(ignore, rule, path, len))
        {
            return !rule->negated;
        }
    }

    return 0;
}


/*
 * Matches a path without recursion.  After a mismatch, the last "*" takes one
 * more byte of its path component; if it can't, the last "**" takes one more
 * component.  Earlier asterisks need not be tried again.
 */

static int
xet_hub_glob(xet_hub_ignore_t *ignore, const xet_hub_rule_t *rule,
    const uint8_t *s, size_t len)
{
    int             ok;
    xet_hub_glob_t  g;

    memset(&g, 0, sizeof(xet_hub_glob_t));

    g.start = g.p = rule->p;
    g.end = rule->p + rule->len;
    g.s = s;
    g.last = s + len;

    for ( ;; ) {

        if (ignore->steps++ > XET_HUB_IGNORE_STEPS) {
            return 0;
        }

        if (g.p < g.end && *g.p == '*') {

            if (xet_hub_glob_stars(&g)) {
                return 1;
            }

            continue;
        }

        if (g.p == g.end) {
            ok = (g.s == g.last);

            if (ok) {
                return 1;
            }

        } else {
            ok = (g.s < g.last && xet_hub_glob_byte(&g.p, g.end, *g.s));
            g.s += ok;
        }

        if (!ok && !xet_hub_glob_back(&g)) {
            return 0;
        }
    }
}


/*
 * Consumes asterisks of the pattern.  Returns 1 if they are a "**" that matches
 * the rest of the path.
 */

static int
xet_hub_glob_stars(xet_hub_glob_t *g)
{
    const uint8_t  *from;

    from = g->p;

    while (g->p < g->end && *g->p == '*') {
        g->p++;
    }

    if (g->p - from > 1 && (from == g->start || from[-1] == '/')
        && (g->p == g->end || *g->p == '/'))
    {
        if (g->p == g->end) {
            return g->s < g->last;
        }

        g->p++;
        g->deep_p = g->p;
        g->deep_s = g->s;
        g->star_p = NULL;

        return 0;
    }

    g->star_p = g->p;
    g->star_s = g->s;

    return 0;
}


/* Goes back to the last asterisk that can take more; returns 0 if none can. */

static int
xet_hub_glob_back(xet_hub_glob_t *g)
{
    if (g->star_p && g->star_s < g->last && *g->star_s != '/') {
        g->p = g->star_p;
        g->s = ++g->star_s;

        return 1;
    }

    if (g->deep_p == NULL) {
        return 0;
    }

    g->star_p = NULL;
    g->deep_s = memchr(g->deep_s, '/', (size_t) (g->last - g->deep_s));

    if (g->deep_s == NULL) {
        return 0;
    }

    g->p = g->deep_p;
    g->s = ++g->deep_s;

    return 1;
}


/* Matches a byte of a path, and sets *pattern to the rest of the pattern. */

static int
xet_hub_glob_byte(const uint8_t **pattern, const uint8_t *end, uint8_t c)
{
    const uint8_t  *p;

    p = *pattern;

    if (*p == '[') {
        return xet_hub_glob_set(pattern, end, c);
    }

    *pattern = p + 1;

    if (*p == '?') {
        return c != '/';
    }

    if (*p == '\\') {
        *pattern = p + 2;

        return p + 1 < end && p[1] == c;
    }

    return *p == c;
}


/* Matches a set: "[a-z]", "[!a]", "[[:digit:]x]". */

static int
xet_hub_glob_set(const uint8_t **pattern, const uint8_t *end, uint8_t c)
{
    int             found, negated;
    size_t          n;
    uint8_t         from;
    const uint8_t  *p, *first;

    p = *pattern + 1;
    found = 0;
    negated = (p < end && (*p == '!' || *p == '^'));
    p += negated;
    first = p;

    while (p < end && (*p != ']' || p == first)) {
        n = xet_hub_glob_class(p, end, c, &found);

        if (n) {
            p += n;
            continue;
        }

        p += (*p == '\\' && p + 1 < end);
        from = *p++;

        if (p + 1 < end && *p == '-' && p[1] != ']') {
            p++;
            p += (*p == '\\' && p + 1 < end);
            found |= (c >= from && c <= *p);
            p++;

        } else {
            found |= (c == from);
        }
    }

    if (p >= end) {
        return 0;
    }

    *pattern = p + 1;

    return found != negated && c != '/';
}


/*
 * Returns the length of a class such as "[:digit:]" at p, and sets *found if it
 * contains c; returns 0 if there is no class.  An unknown class has no
 * characters.
 */

static size_t
xet_hub_glob_class(const uint8_t *p, const uint8_t *end, uint8_t c, int *found)
{
    int             upper, lower, digit, space;
    size_t          n;
    const uint8_t  *last;

#define is(text)                                                              \
    (n == sizeof(text) - 1 && memcmp(p + 2, text, sizeof(text) - 1) == 0)

    if (end - p < 4 || p[0] != '[' || p[1] != ':') {
        return 0;
    }

    last = memchr(p + 2, ']', (size_t) (end - p) - 2);

    if (last == NULL || last == p + 2 || last[-1] != ':') {
        return 0;
    }

    n = (size_t) (last - p) - 3;

    upper = (c >= 'A' && c <= 'Z');
    lower = (c >= 'a' && c <= 'z');
    digit = (c >= '0' && c <= '9');
    space = (c == ' ' || (c >= '\t' && c <= '\r'));

    *found |= (is("upper") && upper) || (is("lower") && lower)
              || (is("digit") && digit) || (is("space") && space)
              || (is("alpha") && (upper || lower))
              || (is("alnum") && (upper || lower || digit))
              || (is("blank") && (c == ' ' || c == '\t'))
              || (is("cntrl") && (c < 0x20 || c == 0x7f))
              || (is("graph") && c > 0x20 && c < 0x7f)
              || (is("print") && c >= 0x20 && c < 0x7f)
              || (is("punct") && c > 0x20 && c < 0x7f
                  && !(upper || lower || digit))
              || (is("xdigit") && xet_get_hex_digit(c) < 16);

#undef is

    return n + 4;
}
