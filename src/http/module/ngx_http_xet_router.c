
/*
 * Finds the row of routes.def for a URI and a method, and calls its handler.
 *
 * After "xet_api_base" comes an optional version, /v1 or /v2, and then the form
 * of a route (routes.def).  The version may be preceded by an epoch,
 * /e<digits>, which the router ignores.  Clients cache by endpoint, so a new
 * epoch makes them start with an empty cache (ngx_http_xet_token.c).  A xorb
 * path may have any prefix: all prefixes are equivalent, and clients use
 * different ones (docs/protocol.md).
 *
 * The phase handlers, the content handler, variables, metrics and the audit log
 * look up the match when they need it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_EPOCH_DIGITS  10


static const ngx_http_xet_route_t  ngx_http_xet_routes[] = {

#define XET_API(form, versions, methods, right, act, action, label, name)    \
    { form, versions, methods, right, act, action, label,                    \
      { .api = ngx_http_xet_##name##_handler } },

#define XET_HUB(form, methods, right, act, action, label, name)              \
    { form, NGX_HTTP_XET_V_HUB, methods, right, act, action, label,          \
      { .hub = ngx_http_xet_hub_##name##_handler } },

#include "routes.def"

};

#define NGX_HTTP_XET_ROUTES                                                   \
    (sizeof(ngx_http_xet_routes) / sizeof(ngx_http_xet_routes[0]))


/* The index of each row in metrics. */

static u_char  ngx_http_xet_route_numbers[NGX_HTTP_XET_ROUTES];


static ngx_int_t ngx_http_xet_route_begin(ngx_http_request_t *r,
    ngx_http_xet_ctx_t **ctx, const ngx_http_xet_match_t **match);
static ngx_int_t ngx_http_xet_route_body(ngx_http_request_t *r,
    const ngx_http_xet_route_t *route, ngx_uint_t without);
static xet_scope_e ngx_http_xet_route_does(ngx_http_request_t *r,
    const ngx_http_xet_route_t *route);
static const ngx_http_xet_match_t *ngx_http_xet_match(ngx_http_request_t *r);
static void ngx_http_xet_api_path(ngx_http_request_t *r,
    ngx_http_xet_match_t *match);
static u_char *ngx_http_xet_skip_epoch(u_char *p, u_char *last);
static ngx_int_t ngx_http_xet_find_route(ngx_http_request_t *r,
    ngx_http_xet_match_t *match, ngx_uint_t bare);


ngx_int_t
ngx_http_xet_api_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    const char                  *code, *message;
    ngx_http_xet_ctx_t          *ctx;
    const ngx_http_xet_match_t  *match;

    rc = ngx_http_xet_route_begin(r, &ctx, &match);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (match->route == NULL) {
        return ngx_http_xet_error_route(r, match->methods);
    }

    code = ngx_http_xet_closed(r, ngx_http_xet_route_does(r, match->route),
                               &message);

    if (code) {
        return ngx_http_xet_error(r, NGX_HTTP_FORBIDDEN, code, message);
    }

    if (match->status != XET_OK) {
        return ngx_http_xet_error_status(r, match->status);
    }

    ctx->version = match->version;
    ctx->hash = match->args.hash;
    ctx->id.data = (u_char *) match->args.grant.data;
    ctx->id.len = match->args.grant.len;

    rc = ngx_http_xet_route_body(r, match->route,
                                 NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_DELETE);

    return (rc == NGX_DECLINED) ? match->route->handler.api(r, ctx) : rc;
}


ngx_int_t
ngx_http_xet_hub_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_xet_ctx_t          *ctx;
    ngx_http_xet_hub_t          *hub;
    const ngx_http_xet_match_t  *match;

    rc = ngx_http_xet_route_begin(r, &ctx, &match);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    hub = ngx_http_xet_hub_create(r, match);
    if (hub == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->route.hub = hub;

    if (match->route == NULL) {
        return ngx_http_xet_hub_no_route(r, match);
    }

    rc = ngx_http_xet_hub_enter(r, hub,
                                ngx_http_xet_route_does(r, match->route));

    if (rc != NGX_OK) {
        return rc;
    }

    /* a DELETE may have parameters in its body */

    rc = ngx_http_xet_route_body(r, match->route,
                                 NGX_HTTP_GET|NGX_HTTP_HEAD);

    return (rc == NGX_DECLINED) ? match->route->handler.hub(r, hub) : rc;
}


/*
 * Sets the context and the match of the request.  Returns NGX_DECLINED, or the
 * result of a response that was sent.
 */

static ngx_int_t
ngx_http_xet_route_begin(ngx_http_request_t *r, ngx_http_xet_ctx_t **ctx,
    const ngx_http_xet_match_t **match)
{
    *ctx = ngx_http_xet_ctx(r);

    if (*ctx == NULL || ngx_http_xet_query_create(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    *match = ngx_http_xet_match(r);

    if (*match == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the access phase has already added CORS headers */

    return (r->method == NGX_HTTP_OPTIONS && (*ctx)->cors)
           ? ngx_http_xet_cors_preflight(r) : NGX_DECLINED;
}


/*
 * Checks the request body.  Discards the body if the method is in "without".
 * Returns NGX_DECLINED if the route's handler may run, or the result of an
 * error response.
 */

static ngx_int_t
ngx_http_xet_route_body(ngx_http_request_t *r,
    const ngx_http_xet_route_t *route, ngx_uint_t without)
{
    ngx_int_t  rc;

    if (r->method & without) {
        rc = ngx_http_discard_request_body(r);

        return (rc == NGX_OK) ? NGX_DECLINED : rc;
    }

    rc = ngx_http_xet_body_plain(r);

    return (rc == NGX_DECLINED && route->right == NGX_HTTP_XET_WRITES)
           ? ngx_http_xet_limit_upload(r) : rc;
}


/*
 * Returns the scope that the route's action needs.  A read-only server rejects
 * writes of all callers, including LFS uploads without a token.  Routes that
 * issue write tokens or confirm write permissions also need the scope, since
 * their result would be useless on such a server.
 */

static xet_scope_e
ngx_http_xet_route_does(ngx_http_request_t *r,
    const ngx_http_xet_route_t *route)
{
    if (route->right == NGX_HTTP_XET_DELETES
        || (route->act == NGX_HTTP_XET_ACT && r->method == NGX_HTTP_DELETE))
    {
        return XET_SCOPE_DELETE;
    }

    return (route->right >= NGX_HTTP_XET_WRITES
            || route->act == NGX_HTTP_XET_ACT)
           ? XET_SCOPE_WRITE : XET_SCOPE_READ;
}


/*
 * Returns the match of the request, or NULL if out of memory.  Looks up the
 * match if needed.
 */

static const ngx_http_xet_match_t *
ngx_http_xet_match(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_match_t     *match;
    ngx_http_xet_loc_conf_t  *xlcf;

    ctx = ngx_http_xet_ctx(r);
    if (ctx == NULL) {
        return NULL;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    match = ctx->match;

    if (match && match->rules == xlcf && match->uri == r->uri.data
        && match->len == r->uri.len && match->method == r->method)
    {
        return match;
    }

    match = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_match_t));
    if (match == NULL) {
        return NULL;
    }

    match->rules = xlcf;
    match->uri = r->uri.data;
    match->len = r->uri.len;
    match->method = r->method;

    if (!ngx_http_xet_of_hub(xlcf)) {
        ngx_http_xet_api_path(r, match);

    } else {
        match->version = NGX_HTTP_XET_V_HUB;

        if (ngx_http_xet_hub_path(r, &match->path) != NGX_OK) {
            return NULL;
        }

        match->people = ngx_http_xet_hub_people(r, &match->path);
    }

    if (ngx_http_xet_find_route(r, match, 0) != NGX_OK) {
        return NULL;
    }

    /*
     * "/gpt2/resolve/main" is a path of the repo "gpt2" only if it is no path
     * of the repo "gpt2/resolve"
     */

    if (match->route == NULL && match->version == NGX_HTTP_XET_V_HUB
        && ngx_http_xet_find_route(r, match, 1) != NGX_OK)
    {
        return NULL;
    }

    ctx->match = match;

    return match;
}


/*
 * Sets match->version, and match->path to the path after the version.  The path
 * stays empty if the URI does not start with "xet_api_base".
 */

static void
ngx_http_xet_api_path(ngx_http_request_t *r, ngx_http_xet_match_t *match)
{
    u_char                   *p, *last;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    match->version = NGX_HTTP_XET_V0;

    if (r->uri.len <= xlcf->api_base.len
        || ngx_memcmp(r->uri.data, xlcf->api_base.data, xlcf->api_base.len)
           != 0)
    {
        return;
    }

    last = r->uri.data + r->uri.len;
    p = ngx_http_xet_skip_epoch(r->uri.data + xlcf->api_base.len, last);

    if (last - p > 3 && ngx_memcmp(p, "/v", 2) == 0
        && (p[2] == '1' || p[2] == '2') && p[3] == '/')
    {
        match->version = (p[2] == '1') ? NGX_HTTP_XET_V1 : NGX_HTTP_XET_V2;
        p += 3;
    }

    match->path.data = p;
    match->path.len = last - p;
}


/*
 * Returns the position of the slash after an epoch, or p if the path has no
 * epoch.  The number of an epoch has no leading zero, unless it is 0.
 */

static u_char *
ngx_http_xet_skip_epoch(u_char *p, u_char *last)
{
    u_char  *digit, *end;

    if (last - p < 3 || p[0] != '/' || p[1] != 'e') {
        return p;
    }

    digit = p + 2;

    for (end = digit; end < last && *end >= '0' && *end <= '9'; end++) {
        /* void */
    }

    if (end == last || *end != '/' || end == digit
        || end - digit > NGX_HTTP_XET_EPOCH_DIGITS
        || (*digit == '0' && end - digit > 1))
    {
        return p;
    }

    return end;
}


/*
 * Sets the route and the arguments in the path, if a route matches.  If bare is
 * set, names of repos have no owner.
 */

static ngx_int_t
ngx_http_xet_find_route(ngx_http_request_t *r, ngx_http_xet_match_t *match,
    ngx_uint_t bare)
{
    size_t                       len;
    u_char                      *room;
    ngx_uint_t                   i;
    const ngx_http_xet_route_t  *route;

    for (i = 0; i < NGX_HTTP_XET_ROUTES; i++) {
        route = &ngx_http_xet_routes[i];
        len = match->path.len;

        /* people may write a slash at the end of a page's URL */

        if (route->right == NGX_HTTP_XET_BROWSES && len > 1
            && match->path.data[len - 1] == '/')
        {
            len--;
        }

        if (!(route->versions & match->version)
            || (route->right == NGX_HTTP_XET_BROWSES && !match->people)
            || !xet_route_match(route->form, (int) bare, match->path.data,
                                len))
        {
            continue;
        }

        if (!(route->methods & r->method)) {
            match->methods |= route->methods;
            continue;
        }

        room = ngx_pnalloc(r->pool, match->path.len);
        if (room == NULL) {
            return NGX_ERROR;
        }

        match->route = route;
        match->bare = bare;
        match->status = xet_route_parse(route->form, (int) bare,
                                        match->path.data, len,
                                        room, &match->args);
        break;
    }

    return NGX_OK;
}


/*
 * Sets *name to the constant parts of the route's form, such as /v1/xorbs, or
 * for a Hub route to its label.
 */

ngx_int_t
ngx_http_xet_route_name(ngx_http_request_t *r, ngx_str_t *name)
{
    u_char                      *p;
    const char                  *form;
    const ngx_http_xet_match_t  *match;

    match = ngx_http_xet_match(r);

    if (match == NULL || match->route == NULL) {
        return NGX_DECLINED;
    }

    if (match->version == NGX_HTTP_XET_V_HUB) {
        name->data = (u_char *) match->route->label;
        name->len = ngx_strlen(name->data);
        return NGX_OK;
    }

    form = match->route->form;

    name->data = ngx_pnalloc(r->pool, ngx_strlen(form));
    if (name->data == NULL) {
        return NGX_DECLINED;
    }

    p = name->data;

    while (*form) {

        if (form[0] == '/' && form[1] == ':') {
            form++;
            form += strcspn(form, "/");
            continue;
        }

        *p++ = *form++;
    }

    name->len = p - name->data;

    return NGX_OK;
}


/* Sets the index of each row; rows with the same label share an index. */

void
ngx_http_xet_route_count_init(ngx_uint_t hub)
{
    ngx_uint_t                   i, k, n;
    const ngx_http_xet_route_t  *route;

    static const char  *labels[NGX_HTTP_XET_ROUTES];

    n = 0;

    for (i = 0; i < NGX_HTTP_XET_ROUTES; i++) {
        route = &ngx_http_xet_routes[i];

        if (route->versions == NGX_HTTP_XET_V_HUB && !hub) {
            continue;
        }

        for (k = 0; k < n; k++) {
            if (ngx_strcmp(labels[k], route->label) == 0) {
                break;
            }
        }

        labels[k] = route->label;
        n = ngx_max(n, k + 1);

        k += NGX_HTTP_XET_ROUTE_FIRST;

        ngx_http_xet_route_numbers[i] = (u_char)
            ((k < NGX_HTTP_XET_ROUTE_MAX) ? k : NGX_HTTP_XET_ROUTE_OTHER);
    }

    ngx_http_xet_metrics_routes(labels, n);
}


ngx_uint_t
ngx_http_xet_route_number(ngx_http_request_t *r)
{
    const ngx_http_xet_match_t  *match;

    match = ngx_http_xet_match(r);

    if (match == NULL || match->route == NULL) {
        return NGX_HTTP_XET_ROUTE_OTHER;
    }

    return ngx_http_xet_route_numbers[match->route - ngx_http_xet_routes];
}


void
ngx_http_xet_route_access(ngx_http_request_t *r, ngx_uint_t *token,
    xet_scope_e *scope)
{
    const ngx_http_xet_match_t  *match;

    /*
     * require a token by default, so that clients without a token can't find
     * out which routes exist
     */

    *token = 1;
    *scope = XET_SCOPE_READ;

    match = ngx_http_xet_match(r);

    if (match && match->route) {
        *token = (match->route->right > NGX_HTTP_XET_BROWSES);
        *scope = ngx_http_xet_route_does(r, match->route);
    }
}


void
ngx_http_xet_route_audit(ngx_http_request_t *r, ngx_http_xet_audit_t *audit)
{
    ngx_http_xet_loc_conf_t     *xlcf;
    const ngx_http_xet_match_t  *match;
    const ngx_http_xet_route_t  *route;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    audit->named = ngx_http_xet_of_hub(xlcf);

    if (!audit->named && xlcf->mint) {
        audit->action = "token.mint";
        audit->write = 1;
        audit->mint = 1;
        return;
    }

    if (!audit->named && xlcf->data) {
        audit->action = "data.get";
        return;
    }

    match = ngx_http_xet_match(r);

    if (match == NULL || match->route == NULL) {
        return;
    }

    route = match->route;

    audit->action = route->action;
    audit->write = (route->act >= NGX_HTTP_XET_ACT);
    audit->mint = (route->act == NGX_HTTP_XET_MINT);
    audit->silent = (route->act == NGX_HTTP_XET_IDLE);

    if (match->args.digits.data && match->status == XET_OK) {
        audit->has_hash = 1;
        audit->hash = match->args.hash;
    }
}


ngx_http_xet_upload_e
ngx_http_xet_route_upload(ngx_http_request_t *r, xet_hash_t *hash)
{
    const ngx_http_xet_match_t  *match;

    match = ngx_http_xet_match(r);

    if (match == NULL || match->route == NULL) {
        return NGX_HTTP_XET_UPLOAD_NONE;
    }

    if (match->route->handler.api == ngx_http_xet_shard_handler) {
        return NGX_HTTP_XET_UPLOAD_SHARD;
    }

    if (match->route->handler.api != ngx_http_xet_xorb_post_handler
        || match->status != XET_OK)
    {
        return NGX_HTTP_XET_UPLOAD_NONE;
    }

    *hash = match->args.hash;

    return NGX_HTTP_XET_UPLOAD_XORB;
}
