
/*
 * The handlers of the routes; the router calls them.
 */

#ifndef _NGX_HTTP_XET_ROUTES_H_INCLUDED_
#define _NGX_HTTP_XET_ROUTES_H_INCLUDED_


#include "ngx_http_xet.h"


/* The permission that a route requires. */

typedef enum {
    NGX_HTTP_XET_ANY = 0,              /* no token is required */
    NGX_HTTP_XET_BROWSES,              /* like ANY, for a web page */
    NGX_HTTP_XET_READS,                /* no token if "xet_hub_public" */
    NGX_HTTP_XET_KNOWN,
    NGX_HTTP_XET_WRITES,
    NGX_HTTP_XET_DELETES
} ngx_http_xet_right_e;


/* How "xet_audit" records a route. */

typedef enum {
    NGX_HTTP_XET_IDLE = 0,             /* recorded only if rejected */
    NGX_HTTP_XET_LOOK,                 /* recorded only with "all" */
    NGX_HTTP_XET_ACT,
    NGX_HTTP_XET_MINT                  /* issues a token */
} ngx_http_xet_act_e;


#define NGX_HTTP_XET_V01    (NGX_HTTP_XET_V0|NGX_HTTP_XET_V1)
#define NGX_HTTP_XET_V_HUB  0x08               /* version of Hub routes */


/* A row of routes.def. */

typedef struct {
    const char                 *form;
    ngx_uint_t                  versions;
    ngx_uint_t                  methods;
    ngx_http_xet_right_e        right;
    ngx_http_xet_act_e          act;
    const char                 *action;        /* action in $xet_audit */
    const char                 *label;         /* label in metrics */

    union {
        ngx_http_xet_handler_pt     api;
        ngx_int_t                 (*hub)(ngx_http_request_t *r,
                                         ngx_http_xet_hub_t *hub);
    } handler;
} ngx_http_xet_route_t;


/*
 * The route of a request, which is looked up again only after the URI, the
 * method or the location has changed.
 */

struct ngx_http_xet_match_s {
    u_char                       *uri;
    size_t                        len;
    ngx_uint_t                    method;
    void                         *rules;       /* xlcf of the location */

    ngx_str_t                     path;        /* path below the base */
    ngx_uint_t                    version;     /* NGX_HTTP_XET_V* */
    ngx_uint_t                    people;      /* may want a web page */

    const ngx_http_xet_route_t   *route;       /* NULL: no route */
    ngx_uint_t                    methods;     /* allowed methods if no route */
    xet_status_t                  status;      /* whether args are valid */
    ngx_uint_t                    bare;        /* the repo has no owner */
    xet_route_args_t              args;
};


#define XET_API(form, versions, methods, right, act, action, label, name)    \
ngx_int_t ngx_http_xet_##name##_handler(ngx_http_request_t *r,                \
    ngx_http_xet_ctx_t *ctx);

#include "routes.def"


/* ngx_http_xet_xorb.c: functions used by other xorb routes. */

/*
 * Sends the response for a xorb that does not exist.  Returns a code for
 * ngx_http_finalize_request().
 */
typedef ngx_int_t (*ngx_http_xet_xorb_missing_pt)(ngx_http_request_t *r,
    void *data);

/*
 * Looks up a xorb.  If the client may refer to the xorb without an upload,
 * responds with 200, else calls missing(), or responds with 404 if missing is
 * NULL.  Returns the result of sending the statement.
 */
ngx_int_t ngx_http_xet_xorb_ask(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx,
    ngx_http_xet_xorb_missing_pt missing, void *data);

/*
 * A handler for ngx_http_xet_xorb_commit(): sends the response to a xorb
 * upload.
 */
void ngx_http_xet_xorb_kept(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


/* The content handler of "xet_token". */
ngx_int_t ngx_http_xet_token_handler(ngx_http_request_t *r);

/* Returns whether "repo" in a token is the internal name of a Hub's repo. */
ngx_uint_t ngx_http_xet_token_hub(const ngx_str_t *repo);

/*
 * Sends a token with these claims, and its endpoint according to the
 * configuration of the location.  Returns a code for
 * ngx_http_finalize_request(): NGX_DONE if the request waits for PostgreSQL.
 */
ngx_int_t ngx_http_xet_token_give(ngx_http_request_t *r,
    const xet_token_claims_t *claims);

/*
 * Reads what the endpoint of a token with these claims depends on.  Returns
 * NGX_OK if nothing needs to be read; or NGX_AGAIN, NGX_BUSY or NGX_ERROR as
 * from sending a statement.  The handler must call
 * ngx_http_xet_token_epoch_read() if its rc is NGX_OK.
 */
ngx_int_t ngx_http_xet_token_epoch_ask(ngx_http_request_t *r,
    const xet_token_claims_t *claims,
    void (*handler)(ngx_http_request_t *r, ngx_int_t rc));
void ngx_http_xet_token_epoch_read(ngx_http_request_t *r);

/*
 * Makes a token and its endpoint, after ngx_http_xet_token_epoch_ask().
 * Returns NGX_OK; NGX_ABORT if a token can't contain these claims;
 * NGX_DECLINED if the request has no host name; or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_token_make(ngx_http_request_t *r,
    xet_token_claims_t *claims, ngx_str_t *url, ngx_str_t *token);

/*
 * Makes the endpoint, without an epoch.  Returns
 * NGX_OK, NGX_DECLINED if the request has no host name, or NGX_ERROR if out of
 * memory.
 */
ngx_int_t ngx_http_xet_token_endpoint(ngx_http_request_t *r, ngx_str_t *url);


#endif /* _NGX_HTTP_XET_ROUTES_H_INCLUDED_ */
