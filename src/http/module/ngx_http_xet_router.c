
/*
 * From URI and method to an endpoint, by one table.
 *
 * The path behind "xet_api_base" is [/v1|/v2]/<name>[/<prefix>][/<hash>],
 * [/v1|/v2]/<name>/<hash>/<more of the name> or
 * [/v1|/v2]/<name>/<more of the name>; the table has the last two as
 * "name/more".  All of it may have a generation before it, /g<digits>, which
 * means nothing here: what clients remember goes by the text of the endpoint,
 * so with another generation they begin anew (ngx_http_xet_token.c).
 * A prefix is any name: there is one namespace, and clients differ in what
 * they call it (docs/protocol.md).
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_GENERATION_DIGITS  10
#define NGX_HTTP_XET_PARTS              4


/* The first three are the number of parts behind the name. */

typedef enum {
    NGX_HTTP_XET_ARG_NONE = 0,
    NGX_HTTP_XET_ARG_HASH,
    NGX_HTTP_XET_ARG_PREFIX_HASH,
    NGX_HTTP_XET_ARG_HASH_NAME,                /* two parts */
    NGX_HTTP_XET_ARG_NAME,                     /* one part, no hash */
    NGX_HTTP_XET_ARG_PREFIX_HASH_NAME_ID       /* four parts */
} ngx_http_xet_arg_e;


/* What a route asks of a token. */

typedef enum {
    NGX_HTTP_XET_ANY = 0,                      /* nothing */
    NGX_HTTP_XET_READS,
    NGX_HTTP_XET_WRITES,
    NGX_HTTP_XET_DELETES
} ngx_http_xet_scope_e;


typedef struct {
    ngx_str_t                 name;
    ngx_uint_t                versions;
    ngx_http_xet_arg_e        args;
    ngx_uint_t                methods;
    ngx_http_xet_scope_e      scope;
    ngx_http_xet_handler_pt   handler;
} ngx_http_xet_route_t;


#define NGX_HTTP_XET_V01  (NGX_HTTP_XET_V0|NGX_HTTP_XET_V1)


static const ngx_http_xet_route_t  ngx_http_xet_routes[] = {

#define XET_ROUTE(name, args, versions, methods, scope, handler)              \
    { ngx_string(name), versions, args, methods, scope,                       \
      ngx_http_xet_##handler##_handler },

#include "routes.def"

#undef XET_ROUTE

    { ngx_null_string, 0, 0, 0, 0, NULL }
};


typedef struct {
    ngx_uint_t                version;
    ngx_str_t                 name;
    ngx_str_t                 parts[NGX_HTTP_XET_PARTS];
    ngx_uint_t                n;               /* of parts */
} ngx_http_xet_path_t;


/*
 * What the path of a request has led to: looked up once, and again only when
 * the URI, the method or the location has become another one.
 */

struct ngx_http_xet_match_s {
    u_char                       *uri;
    size_t                        len;
    ngx_uint_t                    method;
    void                         *rules;       /* of the location */

    ngx_http_xet_path_t           path;
    const ngx_http_xet_route_t   *route;       /* NULL: there is none */
    ngx_uint_t                    methods;     /* of the path, if no route */
};


/* The number of each row among the routes that are counted. */

static u_char  ngx_http_xet_route_numbers[sizeof(ngx_http_xet_routes)
                                          / sizeof(ngx_http_xet_route_t)];


static const ngx_http_xet_match_t *ngx_http_xet_match(ngx_http_request_t *r);
static void ngx_http_xet_find_route(ngx_http_request_t *r,
    ngx_http_xet_match_t *match);
static ngx_uint_t ngx_http_xet_route_match(const ngx_http_xet_route_t *route,
    const ngx_http_xet_path_t *path);
static void ngx_http_xet_route_audit_hub(ngx_http_request_t *r,
    ngx_http_xet_audit_t *audit);
static ngx_int_t ngx_http_xet_parse_path(ngx_http_request_t *r,
    ngx_http_xet_path_t *path);
static u_char *ngx_http_xet_skip_generation(u_char *p, u_char *last);
static ngx_int_t ngx_http_xet_parse_args(const ngx_http_xet_path_t *path,
    const ngx_http_xet_route_t *route, xet_hash_t *hash);


ngx_int_t
ngx_http_xet_api_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    xet_scope_e                  scope;
    const char                  *code, *message;
    ngx_uint_t                   token;
    ngx_http_xet_ctx_t          *ctx;
    const ngx_http_xet_match_t  *match;
    const ngx_http_xet_route_t  *route;

    ctx = ngx_http_xet_ctx(r);
    if (ctx == NULL || ngx_http_xet_query_create(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the access phase has added what "xet_cors" allows */

    if (r->method == NGX_HTTP_OPTIONS && ctx->cors) {
        return ngx_http_xet_cors_preflight(r);
    }

    match = ngx_http_xet_match(r);
    if (match == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    route = match->route;

    if (route == NULL) {

        if (match->methods) {
            return ngx_http_xet_error_method(r, match->methods);
        }

        return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "no_route",
                                  "no such route");
    }

    ngx_http_xet_route_access(r, &token, &scope);

    code = ngx_http_xet_closed(r, scope, &message);

    if (code) {
        return ngx_http_xet_error(r, NGX_HTTP_FORBIDDEN, code, message);
    }

    ctx->version = match->path.version;
    ctx->id = match->path.parts[NGX_HTTP_XET_PARTS - 1];

    rc = ngx_http_xet_parse_args(&match->path, route, &ctx->hash);

    if (rc == NGX_ABORT) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_prefix",
                                  "malformed prefix");
    }

    if (rc != NGX_OK) {
        return ngx_http_xet_error_status(r, XET_HASH_SYNTAX);
    }

    if (!(r->method & (NGX_HTTP_POST|NGX_HTTP_PUT))) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }

    } else {
        rc = ngx_http_xet_body_plain(r);

        if (rc == NGX_DECLINED && route->scope == NGX_HTTP_XET_WRITES) {
            rc = ngx_http_xet_limit_upload(r);
        }

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return route->handler(r, ctx);
}


static ngx_uint_t
ngx_http_xet_route_match(const ngx_http_xet_route_t *route,
    const ngx_http_xet_path_t *path)
{
    u_char           *p;
    ngx_str_t         name;
    ngx_uint_t        n;
    const ngx_str_t  *more;

    name = route->name;

    if (route->args >= NGX_HTTP_XET_ARG_HASH_NAME) {

        /* the name is in two places; how many parts, and which is the second */

        n = (route->args == NGX_HTTP_XET_ARG_HASH_NAME) ? 2
            : (route->args == NGX_HTTP_XET_ARG_NAME) ? 1 : 4;

        if (path->n != n) {
            return 0;
        }

        p = ngx_strlchr(name.data, name.data + name.len, '/');

        more = &path->parts[n / 2];

        if (more->len != (size_t) (name.data + name.len - p - 1)
            || ngx_memcmp(more->data, p + 1, more->len) != 0)
        {
            return 0;
        }

        name.len = p - name.data;

    } else if ((ngx_uint_t) route->args != path->n) {
        return 0;
    }

    return name.len == path->name.len
           && ngx_memcmp(name.data, path->name.data, name.len) == 0;
}


/* The match of the request, looked up where needed; NULL without memory. */

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

    if (ngx_http_xet_parse_path(r, &match->path) == NGX_OK) {
        ngx_http_xet_find_route(r, match);
    }

    ctx->match = match;

    return match;
}


static void
ngx_http_xet_find_route(ngx_http_request_t *r, ngx_http_xet_match_t *match)
{
    const ngx_http_xet_route_t  *route;

    for (route = ngx_http_xet_routes; route->handler; route++) {

        if (!(route->versions & match->path.version)
            || !ngx_http_xet_route_match(route, &match->path))
        {
            continue;
        }

        if (route->methods & r->method) {
            match->route = route;
            return;
        }

        match->methods |= route->methods;
    }
}


ngx_int_t
ngx_http_xet_route_name(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_http_xet_loc_conf_t         *xlcf;
    const ngx_http_xet_match_t      *match;
    const ngx_http_xet_hub_route_t  *route;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (ngx_http_xet_of_hub(xlcf)) {
        route = ngx_http_xet_hub_route_of(r);

        if (route == NULL) {
            return NGX_DECLINED;
        }

        *name = route->group;

        return NGX_OK;
    }

    match = ngx_http_xet_match(r);

    if (match == NULL || match->route == NULL) {
        return NGX_DECLINED;
    }

    *name = match->route->name;

    return NGX_OK;
}


/* Rows of one handler are one route: other names of it, other versions. */

void
ngx_http_xet_route_count_init(ngx_uint_t hub)
{
    ngx_uint_t  i, k, n;

    static const char *const  handlers[] = {
#define XET_ROUTE(name, args, versions, methods, scope, handler)  #handler,
#include "routes.def"
#undef XET_ROUTE
        NULL
    };

    static const char  *names[sizeof(handlers) / sizeof(handlers[0])
                              + NGX_HTTP_XET_HUB_GROUPS];

    n = 0;

    for (i = 0; handlers[i]; i++) {

        for (k = 0; k < n; k++) {
            if (ngx_strcmp(names[k], handlers[i]) == 0) {
                break;
            }
        }

        if (k == n) {
            names[n++] = handlers[i];
        }

        k += NGX_HTTP_XET_ROUTE_FIRST;

        ngx_http_xet_route_numbers[i] = (u_char)
            ((k < NGX_HTTP_XET_ROUTE_MAX) ? k : NGX_HTTP_XET_ROUTE_OTHER);
    }

    if (hub) {
        n += ngx_http_xet_hub_route_groups(&names[n],
                                           NGX_HTTP_XET_ROUTE_FIRST + n);
    }

    ngx_http_xet_metrics_routes(names, n);
}


ngx_uint_t
ngx_http_xet_route_number(ngx_http_request_t *r)
{
    ngx_http_xet_loc_conf_t         *xlcf;
    const ngx_http_xet_match_t      *match;
    const ngx_http_xet_hub_route_t  *route;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (ngx_http_xet_of_hub(xlcf)) {
        route = ngx_http_xet_hub_route_of(r);

        return route ? ngx_http_xet_hub_route_number(route)
                     : NGX_HTTP_XET_ROUTE_OTHER;
    }

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

    /* a client without a token need not learn which routes there are */

    *token = 1;
    *scope = XET_SCOPE_READ;

    match = ngx_http_xet_match(r);

    if (match && match->route) {
        switch (match->route->scope) {

        case NGX_HTTP_XET_ANY:
            *token = 0;
            break;

        case NGX_HTTP_XET_READS:
            break;

        case NGX_HTTP_XET_WRITES:
            *scope = XET_SCOPE_WRITE;
            break;

        default: /* NGX_HTTP_XET_DELETES */
            *scope = XET_SCOPE_DELETE;
        }
    }
}


void
ngx_http_xet_route_audit(ngx_http_request_t *r, ngx_http_xet_audit_t *audit)
{
    ngx_uint_t                   i;
    ngx_http_xet_loc_conf_t     *xlcf;
    const ngx_http_xet_match_t  *match;

    static const struct {
        ngx_http_xet_handler_pt   handler;
        const char               *action;
        ngx_uint_t                write;
    } actions[] = {
        { ngx_http_xet_file_put_handler, "file.put", 1 },
        { ngx_http_xet_file_delete_handler, "file.delete", 1 },
        { ngx_http_xet_repo_delete_handler, "repo.delete", 1 },
        { ngx_http_xet_shard_handler, "shard.put", 1 },
        { ngx_http_xet_xorb_post_handler, "xorb.put", 1 },
        { ngx_http_xet_grant_handler, "xorb.grant", 0 },
        { ngx_http_xet_grant_commit_handler, "xorb.put", 1 },
        { ngx_http_xet_xorb_head_handler, "xorb.head", 0 },
        { ngx_http_xet_xorb_get_handler, "xorb.get", 0 },
        { ngx_http_xet_file_get_handler, "file.get", 0 },
        { ngx_http_xet_reconstruction_handler, "file.reconstruction", 0 },
        { ngx_http_xet_batch_handler, "file.reconstructions", 0 },
        { ngx_http_xet_chunk_hashes_handler, "file.chunk_hashes", 0 },
        { ngx_http_xet_chunk_handler, "chunk.get", 0 }
    };

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (ngx_http_xet_of_hub(xlcf)) {
        ngx_http_xet_route_audit_hub(r, audit);
        return;
    }

    if (xlcf->mint) {
        audit->action = "token.mint";
        audit->write = 1;
        audit->mint = 1;
        return;
    }

    if (xlcf->data) {
        audit->action = "data.get";
        return;
    }

    match = ngx_http_xet_match(r);

    if (match == NULL || match->route == NULL) {
        return;
    }

    audit->has_hash = (match->route->args != NGX_HTTP_XET_ARG_NONE
                       && match->route->args != NGX_HTTP_XET_ARG_NAME
                       && ngx_http_xet_parse_args(&match->path, match->route,
                                                  &audit->hash)
                          == NGX_OK);

    for (i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {

        if (actions[i].handler == match->route->handler) {
            audit->action = actions[i].action;
            audit->write = actions[i].write;
            return;
        }
    }

    /* the routes of zTensor, which read; health and telemetry are no acts */

    if (match->route->args == NGX_HTTP_XET_ARG_HASH
        || match->route->args == NGX_HTTP_XET_ARG_HASH_NAME)
    {
        audit->action = "file.ztensor";

    } else {
        audit->action = (const char *) match->route->name.data;
        audit->silent = 1;
    }
}


static void
ngx_http_xet_route_audit_hub(ngx_http_request_t *r,
    ngx_http_xet_audit_t *audit)
{
    const ngx_http_xet_hub_route_t  *route;

    route = ngx_http_xet_hub_route_of(r);

    if (route == NULL) {
        return;
    }

    audit->action = (route->act == NGX_HTTP_XET_HUB_MINT) ? "token.mint"
                                                          : route->action;
    audit->write = (route->act >= NGX_HTTP_XET_HUB_ACT);
    audit->mint = (route->act == NGX_HTTP_XET_HUB_MINT);
    audit->silent = (route->act == NGX_HTTP_XET_HUB_IDLE);
    audit->named = 1;
}


ngx_http_xet_upload_e
ngx_http_xet_route_upload(ngx_http_request_t *r, xet_hash_t *hash)
{
    const ngx_http_xet_match_t  *match;

    match = ngx_http_xet_match(r);

    if (match == NULL || match->route == NULL) {
        return NGX_HTTP_XET_UPLOAD_NONE;
    }

    if (match->route->handler == ngx_http_xet_shard_handler) {
        return NGX_HTTP_XET_UPLOAD_SHARD;
    }

    return (match->route->handler == ngx_http_xet_xorb_post_handler
            && ngx_http_xet_parse_args(&match->path, match->route, hash)
               == NGX_OK)
           ? NGX_HTTP_XET_UPLOAD_XORB : NGX_HTTP_XET_UPLOAD_NONE;
}


static ngx_int_t
ngx_http_xet_parse_path(ngx_http_request_t *r, ngx_http_xet_path_t *path)
{
    u_char                   *p, *last, *slash;
    ngx_str_t                 part;
    ngx_uint_t                n;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (r->uri.len <= xlcf->api_base.len
        || ngx_memcmp(r->uri.data, xlcf->api_base.data, xlcf->api_base.len)
           != 0)
    {
        return NGX_DECLINED;
    }

    last = r->uri.data + r->uri.len;
    p = ngx_http_xet_skip_generation(r->uri.data + xlcf->api_base.len, last);

    ngx_memzero(path, sizeof(ngx_http_xet_path_t));

    path->version = NGX_HTTP_XET_V0;

    for (n = 0; p < last; n++) {

        if (*p++ != '/') {
            return NGX_DECLINED;
        }

        slash = ngx_strlchr(p, last, '/');

        if (slash == NULL) {
            slash = last;
        }

        part.data = p;
        part.len = slash - p;
        p = slash;

        if (n == 0 && part.len == 2 && part.data[0] == 'v'
            && (part.data[1] == '1' || part.data[1] == '2'))
        {
            path->version = (part.data[1] == '1') ? NGX_HTTP_XET_V1
                                                  : NGX_HTTP_XET_V2;

        } else if (path->name.data == NULL) {
            path->name = part;

        } else if (path->n < NGX_HTTP_XET_PARTS) {
            path->parts[path->n++] = part;

        } else {
            return NGX_DECLINED;
        }
    }

    return path->name.len ? NGX_OK : NGX_DECLINED;
}


/*
 * Behind a generation and before the slash that follows it, or p where there is
 * none.  A number has one form: 0, or without a zero in front.
 */

static u_char *
ngx_http_xet_skip_generation(u_char *p, u_char *last)
{
    u_char  *digit, *end;

    if (last - p < 3 || p[0] != '/' || p[1] != 'g') {
        return p;
    }

    digit = p + 2;

    for (end = digit; end < last && *end >= '0' && *end <= '9'; end++) {
        /* void */
    }

    if (end == last || *end != '/' || end == digit
        || end - digit > NGX_HTTP_XET_GENERATION_DIGITS
        || (*digit == '0' && end - digit > 1))
    {
        return p;
    }

    return end;
}


/* Checks the prefix (else NGX_ABORT), parses the hash (else NGX_DECLINED). */

static ngx_int_t
ngx_http_xet_parse_args(const ngx_http_xet_path_t *path,
    const ngx_http_xet_route_t *route, xet_hash_t *hash)
{
    u_char            ch;
    ngx_uint_t        i, prefixed;
    const ngx_str_t  *prefix, *text;

    if (route->args == NGX_HTTP_XET_ARG_NONE
        || route->args == NGX_HTTP_XET_ARG_NAME)
    {
        return NGX_OK;
    }

    prefixed = (route->args == NGX_HTTP_XET_ARG_PREFIX_HASH
                || route->args == NGX_HTTP_XET_ARG_PREFIX_HASH_NAME_ID);

    text = &path->parts[prefixed];

    if (prefixed) {
        prefix = &path->parts[0];

        if (prefix->len == 0 || prefix->len > XET_SIGN_NS_MAX) {
            return NGX_ABORT;
        }

        for (i = 0; i < prefix->len; i++) {
            ch = prefix->data[i];

            if ((ch < 'a' || ch > 'z') && (ch < 'A' || ch > 'Z')
                && (ch < '0' || ch > '9') && ch != '-' && ch != '_'
                && ch != '.')
            {
                return NGX_ABORT;
            }
        }
    }

    return (xet_hash_parse(hash, text->data, text->len) == XET_OK)
           ? NGX_OK : NGX_DECLINED;
}
