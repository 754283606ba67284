
/*
 * The handlers of the routes, which the router calls.
 */

#ifndef _NGX_HTTP_XET_ROUTES_H_INCLUDED_
#define _NGX_HTTP_XET_ROUTES_H_INCLUDED_


#include "ngx_http_xet.h"


/* The permission that a route requires. */

typedef enum {
    NGX_HTTP_XET_ANY = 0,              /* nothing: no token */
    NGX_HTTP_XET_READS,                /* of a Hub: nor with "xet_hub_public" */
    NGX_HTTP_XET_BROWSES,              /* the same: a page of a Hub */
    NGX_HTTP_XET_KNOWN,
    NGX_HTTP_XET_WRITES,
    NGX_HTTP_XET_DELETES
} ngx_http_xet_right_e;


/* How "xet_audit" treats a route. */

typedef enum {
    NGX_HTTP_XET_IDLE = 0,             /* no act, unless it is refused */
    NGX_HTTP_XET_LOOK,                 /* told with "all" only */
    NGX_HTTP_XET_ACT,
    NGX_HTTP_XET_MINT                  /* a token is given out */
} ngx_http_xet_act_e;


#define NGX_HTTP_XET_V01    (NGX_HTTP_XET_V0|NGX_HTTP_XET_V1)
#define NGX_HTTP_XET_V_HUB  0x08               /* what a Hub has instead */


/* A row of routes.def. */

typedef struct {
    const char                 *form;
    ngx_uint_t                  versions;
    ngx_uint_t                  methods;
    ngx_http_xet_right_e        right;
    ngx_http_xet_act_e          act;
    const char                 *action;        /* its name */
    const char                 *label;         /* of what is counted */

    union {
        ngx_http_xet_handler_pt     api;
        ngx_int_t                 (*hub)(ngx_http_request_t *r,
                                         ngx_http_xet_hub_t *hub);
    } handler;
} ngx_http_xet_route_t;


/*
 * The route of a request: looked up once, and again only after the URI, the
 * method or the location has changed.
 */

struct ngx_http_xet_match_s {
    u_char                       *uri;
    size_t                        len;
    ngx_uint_t                    method;
    void                         *rules;       /* of the location */

    ngx_str_t                     path;        /* below the base */
    ngx_uint_t                    version;     /* NGX_HTTP_XET_V* */
    ngx_uint_t                    people;      /* may ask for a page here */

    const ngx_http_xet_route_t   *route;       /* NULL: there is none */
    ngx_uint_t                    methods;     /* of the path, if no route */
    xet_status_t                  status;      /* of what the path names: */
    xet_route_args_t              args;
};


#define XET_API(form, versions, methods, right, act, action, label, name)    \
ngx_int_t ngx_http_xet_##name##_handler(ngx_http_request_t *r,                \
    ngx_http_xet_ctx_t *ctx);

#include "routes.def"


/* ngx_http_xet_xorb.c: used by other routes of xorbs. */

/* Responds that a xorb does not exist; the result is for finalizing. */
typedef ngx_int_t (*ngx_http_xet_xorb_missing_pt)(ngx_http_request_t *r,
    void *data);

/*
 * Sends the statement for a response: 200 if the client may name the xorb
 * without an upload, else the response of missing(), which is 404 for NULL.
 * Returns the result of sending.
 */
ngx_int_t ngx_http_xet_xorb_ask(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx,
    ngx_http_xet_xorb_missing_pt missing, void *data);

/* The response to an upload of a xorb, after ngx_http_xet_xorb_commit(). */
void ngx_http_xet_xorb_kept(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


/* The content handler of "xet_token". */
ngx_int_t ngx_http_xet_token_handler(ngx_http_request_t *r);

/* Whether a token for this repo is for a repo of a Hub. */
ngx_uint_t ngx_http_xet_token_hub(const ngx_str_t *repo);

/*
 * Responds with a token that has these claims, and with its endpoint, by the
 * configuration of the location.  The result is that of the functions in
 * ngx_http_xet.h that send a response.
 */
ngx_int_t ngx_http_xet_token_give(ngx_http_request_t *r,
    xet_token_claims_t *claims);

/*
 * Makes token and endpoint.  NGX_OK; NGX_ABORT if a token can't have these
 * claims; NGX_DECLINED if the request has no host name; NGX_ERROR.
 */
ngx_int_t ngx_http_xet_token_make(ngx_http_request_t *r,
    xet_token_claims_t *claims, ngx_str_t *url, ngx_str_t *token);

/*
 * The endpoint without a generation.  NGX_DECLINED if the request has no host
 * name, NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_token_endpoint(ngx_http_request_t *r, ngx_str_t *url);


#endif /* _NGX_HTTP_XET_ROUTES_H_INCLUDED_ */
