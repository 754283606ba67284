
/*
 * Paths of requests: whether a path has the form of a route, and what it
 * names.
 */

#ifndef _XET_ROUTE_H_INCLUDED_
#define _XET_ROUTE_H_INCLUDED_


#include "xet_access.h"
#include "xet_hub.h"


/* Texts point into the path or into the room; data is NULL for what is none. */

typedef struct {
    xet_hub_target_t  target;          /* :type to :path */
    xet_hub_text_t    prefix;          /* :prefix */
    xet_hub_text_t    digits;          /* :hash, as it was sent */
    xet_hub_text_t    grant;           /* :grant, not checked */
    xet_hash_t        hash;            /* of digits, once it is parsed */
} xet_route_args_t;


/*
 * Whether a path, without arguments, has the form of a route.  A form is made
 * of parts with "/" between them:
 *
 *     :hash    one part, 64 hexadecimal digits
 *     :prefix  one part, 1 to 64 letters, digits, "-", "_" and "."
 *     :grant   one part
 *     :type    models, datasets or spaces
 *     :id      two parts, owner and name
 *     :repo    the same, of a model, or behind "datasets" or "spaces"
 *     :git     as :repo, and the name ends in ".git"
 *     :owner   one part
 *     :rev     one part, which may have "/" as %2F; at the end all the rest
 *     :path    all the rest, which may be nothing; the last part of a form
 *     :root    "/" alone
 *
 * anything else is itself; "buckets" says what kind it is.  The first three
 * may be empty here, and are refused when they are parsed.
 */
int xet_route_match(const char *form, const uint8_t *raw, size_t len);

/*
 * Parses what a path of this form names.  Names of a Hub are decoded into
 * room, of len bytes.  XET_OK; XET_PREFIX, XET_HASH_SYNTAX, XET_HUB_NAME,
 * XET_HUB_REV, XET_HUB_PATH where nothing can be called so.
 */
xet_status_t xet_route_parse(const char *form, const uint8_t *raw, size_t len,
    uint8_t *room, xet_route_args_t *args);


#endif /* _XET_ROUTE_H_INCLUDED_ */
