
/*
 * Parser of query arguments for the routes of zTensor files.
 *
 * Purpose:    parses a query string such as "name=a%2Fb&role=scales" into
 *             typed values.
 * States:     none; arguments are processed in their order.
 * Ownership:  texts are decoded into memory that the caller provides.
 * Threads:    any.
 *
 * Parsing is strict, because a typo must not select another object.
 * Arguments that the route does not accept, duplicate arguments and malformed
 * escapes are rejected.  A decoded name is not checked to be UTF-8: it is only
 * compared, byte by byte, with names of a manifest, which are UTF-8.
 */


#include <string.h>

#include "xet_base.h"
#include "xet_zt.h"


typedef enum {
    xet_zt_arg_name = 0,
    xet_zt_arg_i,
    xet_zt_arg_role,
    xet_zt_arg_form,
    xet_zt_arg_rows,
    xet_zt_arg_after,
    xet_zt_arg_limit,
    xet_zt_arg_prefix,
    xet_zt_arg_format,
    xet_zt_arg_none
} xet_zt_arg_t;


typedef struct {
    const char  *name;
    unsigned     wanted;                   /* XET_ZT_ARG_* that accepts it */
} xet_zt_arg_row_t;


static const xet_zt_arg_row_t  xet_zt_args[] = {
    { "name", XET_ZT_ARG_NAME },
    { "i", XET_ZT_ARG_NAME },
    { "role", XET_ZT_ARG_ROLE },
    { "form", XET_ZT_ARG_FORM },
    { "rows", XET_ZT_ARG_ROWS },
    { "after", XET_ZT_ARG_PAGE },
    { "limit", XET_ZT_ARG_PAGE },
    { "prefix", XET_ZT_ARG_PAGE },
    { "format", XET_ZT_ARG_PAGE }
};


static xet_zt_arg_t xet_zt_arg_find(unsigned wanted, const uint8_t *key,
    size_t len);
static xet_status_t xet_zt_arg(xet_zt_query_t *q, xet_zt_arg_t arg,
    const xet_zt_text_t *value);
static xet_status_t xet_zt_rows(xet_zt_query_t *q,
    const xet_zt_text_t *value);
static int xet_zt_unescape(xet_zt_text_t *text, const uint8_t *p,
    const uint8_t *end, uint8_t **room);


xet_status_t
xet_zt_query_parse(xet_zt_query_t *q, unsigned wanted, const uint8_t *args,
    size_t len, uint8_t *room)
{
    unsigned        seen;
    xet_status_t    rc;
    xet_zt_arg_t    arg;
    const uint8_t  *p, *end, *last, *equal;
    xet_zt_text_t   value;

    memset(q, 0, sizeof(xet_zt_query_t));

    seen = 0;

    if (len == 0) {
        goto done;
    }

    end = args + len;

    for (p = args; p <= end; p = last + 1) {

        last = memchr(p, '&', (size_t) (end - p));
        last = last ? last : end;

        equal = memchr(p, '=', (size_t) (last - p));

        if (equal == NULL) {
            return XET_ZT_QUERY_KEY;
        }

        arg = xet_zt_arg_find(wanted, p, (size_t) (equal - p));

        if (arg == xet_zt_arg_none || (seen & 1u << arg)) {
            return XET_ZT_QUERY_KEY;
        }

        seen |= 1u << arg;

        if (!xet_zt_unescape(&value, equal + 1, last, &room)) {
            return XET_ZT_QUERY_ESCAPE;
        }

        rc = xet_zt_arg(q, arg, &value);
        if (rc != XET_OK) {
            return rc;
        }
    }

done:

    if (q->name.data && q->has_i) {
        return XET_ZT_QUERY_BOTH;
    }

    if ((wanted & XET_ZT_ARG_ONE) && q->name.data == NULL && !q->has_i) {
        return XET_ZT_QUERY_NONE;
    }

    /* "role" requires an object */

    return (q->role.data && q->name.data == NULL && !q->has_i)
           ? XET_ZT_QUERY_NONE : XET_OK;
}


static xet_zt_arg_t
xet_zt_arg_find(unsigned wanted, const uint8_t *key, size_t len)
{
    unsigned  i;

    for (i = 0; i < xet_zt_arg_none; i++) {
        if ((xet_zt_args[i].wanted & wanted)
            && strlen(xet_zt_args[i].name) == len
            && memcmp(xet_zt_args[i].name, key, len) == 0)
        {
            break;
        }
    }

    return (xet_zt_arg_t) i;
}


static xet_status_t
xet_zt_arg(xet_zt_query_t *q, xet_zt_arg_t arg, const xet_zt_text_t *value)
{
    int  ok;

    ok = 1;

    switch (arg) {

    case xet_zt_arg_name:
        q->name = *value;
        break;

    case xet_zt_arg_role:
        q->role = *value;
        break;

    case xet_zt_arg_prefix:
        q->prefix = *value;
        break;

    case xet_zt_arg_format:
        q->format = *value;
        break;

    case xet_zt_arg_i:
        q->has_i = 1;
        ok = xet_get_decimal(value->data, value->len, &q->i);
        break;

    case xet_zt_arg_after:
        q->has_after = 1;
        ok = xet_get_decimal(value->data, value->len, &q->after);
        break;

    case xet_zt_arg_limit:
        q->has_limit = 1;
        ok = xet_get_decimal(value->data, value->len, &q->limit);
        break;

    case xet_zt_arg_form:
        q->decoded = (unsigned) xet_zt_text_is(value, "decoded") & 1;
        ok = q->decoded || xet_zt_text_is(value, "stored");
        break;

    default: /* xet_zt_arg_rows */
        return xet_zt_rows(q, value);
    }

    return ok ? XET_OK : XET_ZT_QUERY;
}


/* Parses "a:b", "a:" or ":b"; a comma would begin another dimension. */

static xet_status_t
xet_zt_rows(xet_zt_query_t *q, const xet_zt_text_t *value)
{
    const uint8_t  *p, *end, *comma, *colon;

    p = value->data;
    end = p + value->len;

    comma = memchr(p, ',', value->len);
    end = comma ? comma : end;

    colon = memchr(p, ':', (size_t) (end - p));

    if (colon == NULL || end - p == 1) {
        return XET_ZT_QUERY;
    }

    q->has_rows = 1;
    q->rows_open = (colon + 1 == end);

    if ((colon != p
         && !xet_get_decimal(p, (size_t) (colon - p), &q->rows.start))
        || (!q->rows_open
            && !xet_get_decimal(colon + 1, (size_t) (end - colon - 1),
                                &q->rows.end))
        || (!q->rows_open && q->rows.start > q->rows.end))
    {
        return XET_ZT_QUERY;
    }

    return comma ? XET_ZT_AXES : XET_OK;
}


/* Decodes a text, which is never longer than its escaped form. */

static int
xet_zt_unescape(xet_zt_text_t *text, const uint8_t *p, const uint8_t *end,
    uint8_t **room)
{
    int       byte;
    uint8_t  *dst;

    dst = *room;

    while (p < end) {
        byte = xet_percent_byte(&p, end);

        if (byte < 0) {
            return 0;
        }

        *dst++ = (uint8_t) byte;
    }

    text->data = *room;
    text->len = (size_t) (dst - *room);

    *room = dst;

    return 1;
}
