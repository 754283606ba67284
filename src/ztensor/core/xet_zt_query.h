
/*
 * Arguments of the routes that serve zTensor files: what follows "?" in a
 * URL.  Names may be any text, so they are there and not in the path.
 */

#ifndef _XET_ZT_QUERY_H_INCLUDED_
#define _XET_ZT_QUERY_H_INCLUDED_


#include "xet_zt_object.h"


/* Which arguments a route has. */

#define XET_ZT_ARG_NAME    0x01            /* "name", "i": an object */
#define XET_ZT_ARG_ONE     0x02            /* one of them is required */
#define XET_ZT_ARG_ROLE    0x04
#define XET_ZT_ARG_FORM    0x08
#define XET_ZT_ARG_ROWS    0x10
#define XET_ZT_ARG_PAGE    0x20            /* "after", "limit", "prefix",
                                              "format" */


typedef struct {
    xet_zt_text_t  name;                   /* data NULL: absent */
    xet_zt_text_t  role;
    xet_zt_text_t  prefix;
    xet_zt_text_t  format;
    uint64_t       i;
    uint64_t       after;
    uint64_t       limit;
    xet_range_t    rows;                   /* "a:b", end is exclusive */

    unsigned       has_i:1;
    unsigned       has_after:1;
    unsigned       has_limit:1;
    unsigned       has_rows:1;
    unsigned       rows_open:1;            /* "a:", to the last row */
    unsigned       decoded:1;              /* "form=decoded" */
} xet_zt_query_t;


/*
 * wanted: XET_ZT_ARG_* of the route.  args: as in the URL, "+" is no space.
 * room: len bytes for the texts of *q, which must live as long as *q.  XET_OK,
 * XET_ZT_QUERY, XET_ZT_QUERY_KEY, XET_ZT_QUERY_ESCAPE, XET_ZT_QUERY_BOTH,
 * XET_ZT_QUERY_NONE, XET_ZT_AXES.
 */
xet_status_t xet_zt_query_parse(xet_zt_query_t *q, unsigned wanted,
    const uint8_t *args, size_t len, uint8_t *room);


#endif /* _XET_ZT_QUERY_H_INCLUDED_ */
