
/*
 * The handlers of the routes, which the router calls.
 */

#ifndef _NGX_HTTP_XET_ROUTES_H_INCLUDED_
#define _NGX_HTTP_XET_ROUTES_H_INCLUDED_


#include "ngx_http_xet.h"


/* What a route asks of the caller. */

typedef enum {
    NGX_HTTP_XET_ANY = 0,              /* nothing: no token */
    NGX_HTTP_XET_READS,                /* of a Hub: nor with "xet_hub_public" */
    NGX_HTTP_XET_BROWSES,              /* the same: a page of a Hub */
    NGX_HTTP_XET_KNOWN,
    NGX_HTTP_XET_WRITES,
    NGX_HTTP_XET_DELETES
} ngx_http_xet_right_e;


/* What "xet_audit" makes of a route. */

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
 * What the path of a request has led to: looked up once, and again only when
 * the URI, the method or the location has become another one.
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


/*
 * ngx_http_xet_xorb.c: what other routes of xorbs need of it.
 */

/* Answers for a xorb that is not there: what it returns finalizes. */
typedef ngx_int_t (*ngx_http_xet_xorb_missing_pt)(ngx_http_request_t *r,
    void *data);

/*
 * Sends the statement of an answer: 200 for a xorb that the client may name
 * without sending it, else what missing says, which is 404 for NULL.  Returns
 * as sending does.
 */
ngx_int_t ngx_http_xet_xorb_ask(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx,
    ngx_http_xet_xorb_missing_pt missing, void *data);

/* The answer to who has sent a xorb, behind ngx_http_xet_keep(). */
void ngx_http_xet_xorb_kept(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


/* The content handler of "xet_token". */
ngx_int_t ngx_http_xet_token_handler(ngx_http_request_t *r);

/* Whether a token for that repo is for a repo of a Hub. */
ngx_uint_t ngx_http_xet_token_hub(const ngx_str_t *repo);

/*
 * Answers with a token that has these claims, and with the endpoint that it is
 * for, by the configuration of the location.  As the functions of
 * ngx_http_xet.h that send an answer.
 */
ngx_int_t ngx_http_xet_token_give(ngx_http_request_t *r,
    xet_token_claims_t *claims);

/*
 * Makes both.  NGX_OK; NGX_ABORT when no token can have these claims,
 * NGX_DECLINED when the request names no host, NGX_ERROR.
 */
ngx_int_t ngx_http_xet_token_make(ngx_http_request_t *r,
    xet_token_claims_t *claims, ngx_str_t *url, ngx_str_t *token);

/*
 * That endpoint, without a generation: NGX_DECLINED when the request names no
 * host, NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_token_endpoint(ngx_http_request_t *r, ngx_str_t *url);


#endif /* _NGX_HTTP_XET_ROUTES_H_INCLUDED_ */
