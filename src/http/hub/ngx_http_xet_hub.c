
/*
 * Prepares a request to the Hub for the handler of its route.
 *
 *     router     finds the route for the path of the request line
 *     this file  identifies the caller, checks the scope of the token, and
 *                parses the names in the path
 *     router     calls the handler of the route
 *
 * PostgreSQL decides in each statement whether the caller may see or change a
 * repo (xet.hub_find()).  This file provides the input for this decision: the
 * caller's name spaces, and the repo that the token is limited to.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_HUB_ME  "me"              /* alias for the caller's name */


static ngx_int_t ngx_http_xet_hub_origin(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);
static ngx_int_t ngx_http_xet_hub_names(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);
static ngx_int_t ngx_http_xet_hub_who(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);
static ngx_int_t ngx_http_xet_hub_rights(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);
static void ngx_http_xet_hub_rights_cleanup(void *data);
static ngx_int_t ngx_http_xet_hub_spaces(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);
static ngx_uint_t ngx_http_xet_hub_nobody(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);
static ngx_int_t ngx_http_xet_hub_space(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, u_char *name, size_t len);
static ngx_int_t ngx_http_xet_hub_unknown(ngx_http_request_t *r,
    ngx_http_xet_right_e right, xet_status_t status);


ngx_http_xet_hub_t *
ngx_http_xet_hub_create(ngx_http_request_t *r,
    const ngx_http_xet_match_t *match)
{
    ngx_http_xet_hub_t          *hub;
    const ngx_http_xet_route_t  *route;

    hub = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_t));
    if (hub == NULL) {
        return NULL;
    }

    route = match->route;

    hub->match = match;
    hub->writes = (route && route->right >= NGX_HTTP_XET_WRITES);

    if (ngx_http_xet_hub_origin(r, hub) != NGX_OK) {
        return NULL;
    }

    return hub;
}


/*
 * Determines the URLs of this server and of the Hub.  They stay empty if the
 * request has no host name.
 */

static ngx_int_t
ngx_http_xet_hub_origin(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    u_char                   *p, *last;
    ngx_int_t                 rc;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    hub->root = xlcf->hub_base;

    rc = ngx_http_xet_name_url(r, 0, &hub->origin);

    if (rc != NGX_OK) {
        ngx_str_null(&hub->origin);
        return (rc == NGX_DECLINED) ? NGX_OK : NGX_ERROR;
    }

    hub->base.len = hub->origin.len + xlcf->hub_base.len;
    hub->base.data = ngx_pnalloc(r->pool, hub->base.len + 1);

    if (hub->base.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(hub->base.data, hub->origin.data, hub->origin.len);
    last = ngx_cpymem(p, xlcf->hub_base.data, xlcf->hub_base.len);

    p = ngx_strlchr(hub->base.data, last, ':');
    p = ngx_strlchr((p && last - p > 3) ? p + 3 : last, last, '/');

    hub->root.data = p ? p : last;
    hub->root.len = last - hub->root.data;

    hub->prefix.data = hub->root.data;
    hub->prefix.len = hub->root.len - xlcf->hub_base.len;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_hub_enter(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    xet_scope_e does)
{
    ngx_int_t  rc;

    if (hub->origin.len == 0) {
        return ngx_http_xet_hub_deny(r, NGX_HTTP_BAD_REQUEST, "no_host",
                                     "the request has no host name");
    }

    if (hub->match->route->right == NGX_HTTP_XET_BROWSES) {
        return NGX_OK;
    }

    rc = ngx_http_xet_hub_who(r, hub);

    if (rc == NGX_OK) {
        rc = ngx_http_xet_hub_allowed(r, hub->match->route->right);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_xet_hub_open(r, does);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_xet_hub_args_check(r, hub);
    }

    return (rc == NGX_OK) ? ngx_http_xet_hub_names(r, hub) : rc;
}


/*
 * There are no repos of the kind "kernels".  For clients such a repo must be
 * missing: with another error they could not find out whether it exists.
 *
 * Below "/api/" are functions that this Hub lacks, such as discussions.  With
 * the code EntryNotFound clients would report a missing file instead of the
 * message.  git-lfs asks for locks before each push, and needs a 404.
 */

ngx_int_t
ngx_http_xet_hub_no_route(ngx_http_request_t *r,
    const ngx_http_xet_match_t *match)
{
    u_char      *p, *last;
    ngx_uint_t   api;

    p = match->path.data;
    last = p + match->path.len;

    api = (last - p > 4 && ngx_memcmp(p, "/api/", 5) == 0);

    if (api) {
        p += 4;
    }

    if (last - p > 9 && ngx_memcmp(p, "/kernels/", 9) == 0) {
        return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "RepoNotFound",
                                  "Repository not found");
    }

    if (match->methods) {
        return ngx_http_xet_error_route(r, match->methods);
    }

    if (ngx_strlcasestrn(p, last, (u_char *) ".git/info/lfs/locks", 18)) {
        return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "NotSupported",
                                  "This server does not support file locks");
    }

    return api ? ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "NotSupported",
                                    "This server does not support this"
                                    " function of a Hub: no such route")
               : ngx_http_xet_error_route(r, 0);
}


ngx_int_t
ngx_http_xet_hub_open(ngx_http_request_t *r, xet_scope_e scope)
{
    const char  *code, *message;

    code = ngx_http_xet_closed(r, scope, &message);

    return code ? ngx_http_xet_hub_deny(r, NGX_HTTP_FORBIDDEN, code, message)
                : NGX_OK;
}


/* Parses the names of owner, repo, revision and file in the path. */

static ngx_int_t
ngx_http_xet_hub_names(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    const xet_hub_target_t  *t;

    switch (hub->match->status) {

    case XET_OK:
        break;

    case XET_HUB_NAME:
        return ngx_http_xet_hub_deny(r, NGX_HTTP_NOT_FOUND, "RepoNotFound",
                                     "Repository not found");

    case XET_HUB_REV:
        return ngx_http_xet_hub_deny(r, NGX_HTTP_NOT_FOUND,
                                     "RevisionNotFound",
                                     "Invalid rev id");

    default:
        return ngx_http_xet_hub_deny(r, NGX_HTTP_NOT_FOUND, "EntryNotFound",
                                     "Entry not found");
    }

    t = &hub->match->args.target;

    hub->asked.kind = t->kind;
    hub->asked.owner.data = (u_char *) t->owner.data;
    hub->asked.owner.len = t->owner.len;
    hub->asked.name.data = (u_char *) t->name.data;
    hub->asked.name.len = t->name.len;

    /* no repo here has an empty name, so xet.hub_find() finds none */

    if (hub->match->bare) {
        ngx_str_set(&hub->asked.name, "");
    }

    if (t->rev.data) {
        hub->rev.data = (u_char *) t->rev.data;
        hub->rev.len = t->rev.len;

    } else {
        ngx_str_set(&hub->rev, "main");
    }

    hub->path.data = (u_char *) (t->path.data ? (const char *) t->path.data
                                              : "");
    hub->path.len = t->path.len;

    ngx_http_xet_hub_owner(hub, &hub->asked.owner);
    ngx_http_xet_hub_note(r, hub);

    return NGX_OK;
}


void
ngx_http_xet_hub_note(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    u_char                *p;
    const char            *plural;
    ngx_http_xet_audit_t  *audit;

    audit = ngx_http_xet_audit_find(r);

    if (audit == NULL || hub->asked.name.len == 0) {
        return;
    }

    plural = xet_hub_kind_plural(hub->asked.kind);

    p = ngx_pnalloc(r->pool, ngx_strlen(plural) + hub->asked.owner.len
                             + hub->asked.name.len + 2);
    if (p == NULL) {
        return;
    }

    audit->hub.data = p;
    audit->hub.len = ngx_sprintf(p, "%s/%V/%V", plural, &hub->asked.owner,
                                 &hub->asked.name) - p;
}


void
ngx_http_xet_hub_owner(ngx_http_xet_hub_t *hub, ngx_str_t *owner)
{
    if (owner->len == sizeof(NGX_HTTP_XET_HUB_ME) - 1
        && ngx_strncasecmp(owner->data, (u_char *) NGX_HTTP_XET_HUB_ME,
                           owner->len)
           == 0
        && hub->who.len)
    {
        *owner = hub->who;
    }
}


/*
 * Determines the caller's user name.  If tokens are required, a caller without
 * a valid token has no name and no name spaces, not even configured ones.
 */

static ngx_int_t
ngx_http_xet_hub_who(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_str_t                 value;
    ngx_http_xet_auth_t      *auth;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_str_set(&hub->who, "");

    if (ngx_http_xet_hub_rights(r, hub) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN) {
        auth = ngx_http_xet_auth(r);

        if (auth == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (auth->status != XET_OK) {
            return NGX_OK;
        }

        /* a token that is limited to a repo may lack a subject */

        if (auth->subject.len) {
            hub->who = auth->subject;
        }

        hub->asked.admin = (auth->claims.scope >= XET_SCOPE_ADMIN);

        if (auth->repo.len) {
            hub->asked.any_store = 0;
            hub->asked.store = auth->repo;
        }

    } else {
        hub->asked.admin = 1;

        if (xlcf->hub_user == NULL) {
            ngx_str_set(&hub->who, NGX_HTTP_XET_HUB_ME);
        }
    }

    if (xlcf->hub_user) {

        if (ngx_http_complex_value(r, xlcf->hub_user, &value) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        /*
         * ignore a name with invalid UTF-8, which PostgreSQL would reject, or
         * with control characters
         */

        if (xet_hub_text_ok(value.data, value.len)) {
            hub->who = value;

        } else {
            ngx_str_set(&hub->who, "");
        }
    }

    return ngx_http_xet_hub_spaces(r, hub);
}


/* Sets the initial permissions: no name spaces, and no limit to one repo. */

static ngx_int_t
ngx_http_xet_hub_rights(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_xet_hub_asked_t  *asked;

    asked = &hub->asked;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_xet_array_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_xet_hub_rights_cleanup;

    ngx_memzero(cln->data, sizeof(ngx_http_xet_array_t));

    asked->any_space = 0;
    asked->spaces = cln->data;
    asked->any_store = 1;
    asked->admin = 0;
    ngx_str_set(&asked->store, "");

    return (ngx_array_init(&hub->spaces, r->pool, 4, sizeof(ngx_str_t))
            == NGX_OK)
           ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_xet_hub_rights_cleanup(void *data)
{
    ngx_http_xet_array_destroy(data);
}


/* Adds the caller's own name space, and the configured name spaces. */

static ngx_int_t
ngx_http_xet_hub_spaces(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    u_char                   *p, *end, *last;
    ngx_str_t                 others;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (ngx_http_xet_hub_nobody(r, hub) || hub->asked.any_space) {
        return NGX_OK;
    }

    ngx_str_set(&others, "");

    if (xlcf->hub_owners
        && ngx_http_complex_value(r, xlcf->hub_owners, &others) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /*
     * allow all name spaces for "*", or if the server can't distinguish callers
     */

    if ((others.len == 1 && others.data[0] == '*')
        || (xlcf->auth != NGX_HTTP_XET_AUTH_TOKEN && xlcf->hub_user == NULL
            && xlcf->hub_owners == NULL))
    {
        hub->asked.any_space = 1;
        return NGX_OK;
    }

    if (ngx_http_xet_hub_space(r, hub, hub->who.data, hub->who.len)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    last = others.data + others.len;

    for (p = others.data; p < last; p = end + 1) {

        for (end = p; end < last && *end != ' ' && *end != ','; end++) {
            /* void */
        }

        if (ngx_http_xet_hub_space(r, hub, p, end - p) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    return NGX_OK;
}


/*
 * Returns 1 if the caller must not be given any name space, not even a
 * configured one.  If the token is limited to a repo, and was not issued by a
 * Hub, sets any_space and returns 0.
 */

static ngx_uint_t
ngx_http_xet_hub_nobody(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    size_t                i;
    ngx_http_xet_auth_t  *auth;

    /*
     * A token that is limited to a repo gives its holder access to the repo.
     * But a token issued by a Hub gives access to file data only, because an
     * anonymous caller could have obtained one while the repo was public.  Such
     * a token does not make private repos visible, and gives an anonymous
     * holder no access to the configured name spaces.
     */

    auth = hub->asked.any_store ? NULL : ngx_http_xet_auth(r);

    if (auth && !auth->claims.contents) {
        hub->asked.any_space = 1;
        return 0;
    }

    if (auth && auth->subject.len == 0) {
        return 1;
    }

    /*
     * A name that is not in canonical form has no name space, not even a
     * configured one: nginx's "map" ignores case, so "Dora" would match
     * "dora".
     */

    for (i = 0; i < hub->who.len; i++) {
        if (hub->who.data[i] >= 'A' && hub->who.data[i] <= 'Z') {
            return 1;
        }
    }

    return 0;
}


/* Adds a name space if its name is in canonical form. */

static ngx_int_t
ngx_http_xet_hub_space(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    u_char *name, size_t len)
{
    ngx_str_t  *space;

    if (!xet_hub_space_ok(name, len)) {
        return NGX_OK;
    }

    space = ngx_array_push(&hub->spaces);
    if (space == NULL) {
        return NGX_ERROR;
    }

    space->len = len;
    space->data = name;

    ngx_http_xet_array_bytes(hub->asked.spaces, name, len);

    return hub->asked.spaces->failed ? NGX_ERROR : NGX_OK;
}


ngx_int_t
ngx_http_xet_hub_allowed(ngx_http_request_t *r,
    ngx_http_xet_right_e right)
{
    xet_scope_e               scope;
    ngx_http_xet_auth_t      *auth;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->auth != NGX_HTTP_XET_AUTH_TOKEN
        || right == NGX_HTTP_XET_ANY)
    {
        return NGX_OK;
    }

    auth = ngx_http_xet_auth(r);

    if (auth->status != XET_OK) {
        return ngx_http_xet_hub_unknown(r, right, auth->status);
    }

    scope = (right == NGX_HTTP_XET_DELETES) ? XET_SCOPE_DELETE
            : (right == NGX_HTTP_XET_WRITES) ? XET_SCOPE_WRITE
            : XET_SCOPE_READ;

    if (scope > auth->claims.scope) {
        return ngx_http_xet_hub_deny(r, NGX_HTTP_FORBIDDEN,
                                     "insufficient_scope",
                                     (scope == XET_SCOPE_DELETE)
                                     ? "The token does not permit deleting"
                                     : "The token does not permit writing");
    }

    return NGX_OK;
}


/*
 * Handles a request without a valid token: permits reads of a public Hub, else
 * sends 401.  A person who opens the URL of a file can't send a bearer token,
 * so the 401 makes the browser ask for a password.
 */

static ngx_int_t
ngx_http_xet_hub_unknown(ngx_http_request_t *r,
    ngx_http_xet_right_e right, xet_status_t status)
{
    ngx_uint_t                page;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (status == XET_TOKEN_MISSING && xlcf->hub_public
        && right == NGX_HTTP_XET_READS)
    {
        return NGX_OK;
    }

    page = (right == NGX_HTTP_XET_READS
            && ngx_http_xet_hub_get(r)->match->people
            && ngx_http_xet_browser(r));

    if (status == XET_TOKEN_MISSING && ngx_http_xet_hub_registry(r)) {
        return ngx_http_xet_hub_registry_deny(r);
    }

    if (ngx_http_xet_header(r, "WWW-Authenticate",
                            page ? "Basic realm=\"xet\", charset=\"UTF-8\""
                                 : "Bearer realm=\"xet\"")
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_hub_deny(r, NGX_HTTP_UNAUTHORIZED,
                                 xet_status_code(status),
                                 xet_status_text(status));
}


ngx_uint_t
ngx_http_xet_hub_registry(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_http_xet_header_find(&r->headers_in.headers, "Accept", 0);

    return (h && ngx_strnstr(h->value.data, ".manifest.", h->value.len));
}


/*
 * Ollama shows its user no text of a 404.  After a 401 it requests a token that
 * it could not get, and shows the error of that.
 */

ngx_int_t
ngx_http_xet_hub_registry_deny(ngx_http_request_t *r)
{
    return ngx_http_xet_hub_deny(r, NGX_HTTP_FORBIDDEN, "RepoNotFound",
                                 "Repository not found, or not public; Ollama"
                                 " cannot send a token");
}
