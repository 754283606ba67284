
/*
 * Request paths: matches a path against the pattern of a route, called its
 * form, and parses the names in the path.  Also parses the URLs at which
 * clients reach a server.
 */

#ifndef _XET_ROUTE_H_INCLUDED_
#define _XET_ROUTE_H_INCLUDED_


#include "xet_access.h"
#include "xet_hub.h"


/* Texts point into the path or the caller's buffer; absent texts are NULL. */

typedef struct {
    xet_hub_target_t  target;          /* :type to :path */
    xet_hub_text_t    prefix;          /* :prefix */
    xet_hub_text_t    digits;          /* :hash, as it was sent */
    xet_hub_text_t    grant;           /* :grant, not checked */
    xet_hash_t        hash;            /* parsed from digits */
} xet_route_args_t;


/*
 * Returns 1 if a path, without its query string, matches form, the pattern of
 * a route; otherwise 0.  A form consists of parts separated by "/":
 *
 *     :hash    one part, 64 hexadecimal digits
 *     :prefix  one part, 1 to 64 letters, digits, "-", "_" and "."
 *     :grant   one part
 *     :type    models, datasets or spaces
 *     :id      two parts, owner and name
 *     :repo    :id of a model, or :id after "datasets" or "spaces"
 *     :git     like :repo, but the name ends in ".git"
 *     :owner   one part
 *     :rev     one part, with "/" sent as %2F; at the end of a form, the rest
 *              of the path
 *     :path    the rest of the path, maybe empty; only at the end of a form
 *     :root    only "/"
 *     :view    a word for a web page of a repo, such as "tree" or "blob"
 *
 * If bare is 1, :id, :repo and :git are a single part, and name stays NULL: a
 * model such as "gpt2", whose name has no owner.  Buckets have no such names.
 *
 * Any other part is a literal.  xet_route_parse() sets the kind of the repo to
 * bucket if the literal is "buckets".  This function accepts any text for
 * :hash, :prefix and :grant, even an empty one; xet_route_parse() checks :hash
 * and :prefix.
 */
int xet_route_match(const char *form, int bare, const uint8_t *raw,
    size_t len);

/*
 * Parses the names in a path that matches the form.  Hub names are decoded into
 * room, a buffer of len bytes.  Errors for invalid names: XET_PREFIX,
 * XET_HASH_SYNTAX, XET_HUB_NAME, XET_HUB_REV, XET_HUB_PATH.
 */
xet_status_t xet_route_parse(const char *form, int bare, const uint8_t *raw,
    size_t len, uint8_t *room, xet_route_args_t *args);


/* xet_url.c: the URL of a server. */

typedef struct {
    xet_hub_text_t  text;              /* without slashes at the end */
    xet_hub_text_t  authority;         /* host, and port if any */
    xet_hub_text_t  host;              /* an IPv6 address has brackets */
    xet_hub_text_t  path;              /* empty, or begins with "/" */
    unsigned        port;              /* 0: none */
    int             tls;               /* https */
} xet_url_t;


/*
 * Parses http[s]://host[:port][/path], without user name, arguments and escapes
 * (xet_sign_base_ok()).  Returns 0 if the text is anything else.
 */
int xet_url_parse(xet_url_t *url, const uint8_t *p, size_t len);

/* Parses host[:port]; sets authority, host and port, and clears the rest. */
int xet_url_authority(xet_url_t *url, const uint8_t *p, size_t len);

/* Returns the port, which depends on the scheme if the URL has none. */
unsigned xet_url_port_of(const xet_url_t *url, int tls);

/* Compares two host names, ignoring case. */
int xet_url_same_host(const xet_url_t *one, const xet_url_t *other);


#endif /* _XET_ROUTE_H_INCLUDED_ */
