
/*
 * Functions that are shared by the checks that make "nginx -t" print warnings.
 */

#ifndef _NGX_HTTP_XET_CONF_WARN_H_INCLUDED_
#define _NGX_HTTP_XET_CONF_WARN_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


#define NGX_HTTP_XET_URI_MAX     1024

#define NGX_HTTP_XET_WARN_HASH   "00000000000000000000000000000000"           \
                                 "00000000000000000000000000000000"


typedef struct {
    ngx_conf_t                *cf;
    ngx_http_xet_main_conf_t  *xmcf;
    ngx_http_xet_loc_conf_t   *main;           /* config of the http level */
    ngx_array_t               *ports;          /* ngx_http_conf_port_t */
} ngx_http_xet_warn_t;


/*
 * ngx_http_xet_conf_warn_url.c
 */

/* Returns whether requests for a path below "xet_api_base" of loc reach loc. */
ngx_uint_t ngx_http_xet_warn_leads(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc,
    const char *path);

/* Returns whether data URLs with any known base reach the location loc. */
ngx_uint_t ngx_http_xet_warn_data(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc);

/*
 * Returns whether a location or server has directives of the rewrite module.
 * If first is set, returns whether the first of these directives is "return".
 */
ngx_uint_t ngx_http_xet_warn_returns(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *loc, ngx_uint_t first);

/* Returns whether the server has this named location; name starts with "@". */
ngx_uint_t ngx_http_xet_warn_has_name(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_str_t *name);

/* Returns the n-th listening address of a server, or NULL. */
ngx_http_conf_addr_t *ngx_http_xet_warn_addr(ngx_http_xet_warn_t *w,
    ngx_http_core_srv_conf_t *cscf, ngx_uint_t n);

/*
 * Warn about a wrong root of a data location, a wrong "xet_url_base", and too
 * many ranges in data URLs.
 */
void ngx_http_xet_warn_root(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc);
void ngx_http_xet_warn_url_base(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *loc);
void ngx_http_xet_warn_ranges(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc);


/*
 * ngx_http_xet_conf_warn_store.c
 */

/*
 * Warns if a data location looks for xorbs in a folder, but the store is a
 * bucket.
 */
void ngx_http_xet_warn_bucket(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc);

/*
 * Warns if workers can't read the file.  For the message, "name" is the
 * directive parameter with this file, and "what" is the consequence.
 */
void ngx_http_xet_warn_reader(ngx_conf_t *cf, const char *name,
    ngx_str_t *file, const char *what);


/*
 * ngx_http_xet_conf_warn_hub.c: warns if the endpoint that a Hub returns with
 * its tokens is not a suitable API, or if the location of an upstream Hub does
 * not exist.
 */
void ngx_http_xet_warn_hub(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc);


#endif /* _NGX_HTTP_XET_CONF_WARN_H_INCLUDED_ */
