
/*
 * Routes that are not about a repo: the caller's account, and small routes
 * that clients expect of every Hub.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_hub.h"


static void ngx_http_xet_hub_profile(xet_json_t *j);
static void ngx_http_xet_hub_issued(ngx_http_request_t *r, xet_json_t *j,
    ngx_http_xet_hub_t *hub);
static void ngx_http_xet_hub_orgs(xet_json_t *j, ngx_http_xet_hub_t *hub);


ngx_int_t
ngx_http_xet_hub_whoami_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    xet_buf_t   b;
    xet_json_t  j;

    if (ngx_http_xet_header(r, "Cache-Control", "private, no-store")
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 512);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    xet_json_put_cstring(&j, "type", "user");
    xet_json_put_string(&j, "id", hub->who.data, hub->who.len);
    xet_json_put_string(&j, "name", hub->who.data, hub->who.len);
    xet_json_put_string(&j, "fullname", hub->who.data, hub->who.len);
    ngx_http_xet_hub_profile(&j);
    xet_json_put_bool(&j, "emailVerified", 0);
    xet_json_put_bool(&j, "isPro", 0);
    xet_json_key(&j, "orgs");
    ngx_http_xet_hub_orgs(&j, hub);

    xet_json_key(&j, "auth");
    xet_json_object_begin(&j);
    xet_json_put_cstring(&j, "type", "access_token");
    xet_json_key(&j, "accessToken");
    ngx_http_xet_hub_issued(r, &j, hub);
    xet_json_object_end(&j);
    xet_json_object_end(&j);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &b);
}


/* Adds members that clients read, and that this server has no values for. */

static void
ngx_http_xet_hub_profile(xet_json_t *j)
{
    xet_json_put_cstring(j, "email", NULL);
    xet_json_put_cstring(j, "avatarUrl", "");
    xet_json_put_cstring(j, "periodEnd", NULL);
    xet_json_put_bool(j, "canPay", 0);
}


/*
 * Adds the caller's token; 1970 stands for an unknown time of issue.  Web pages
 * show "scope", the exact right, and "expiresAt".
 */

static void
ngx_http_xet_hub_issued(ngx_http_request_t *r, xet_json_t *j,
    ngx_http_xet_hub_t *hub)
{
    u_char                      date[XET_HUB_DATE_LEN];
    uint64_t                    iat, exp;
    xet_scope_e                 scope;
    ngx_http_xet_loc_conf_t    *xlcf;
    const xet_token_claims_t   *claims;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    iat = 0;
    exp = 0;
    scope = XET_SCOPE_ADMIN;

    if (xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN) {
        claims = &ngx_http_xet_auth(r)->claims;

        iat = ngx_min(claims->iat, XET_HUB_TIME_MAX / 1000);
        exp = ngx_min(claims->exp, XET_HUB_TIME_MAX / 1000);
        scope = claims->scope;
    }

    (void) xet_hub_tree_date(date, (int64_t) iat * 1000000);

    xet_json_object_begin(j);
    xet_json_put_string(j, "displayName", hub->who.data, hub->who.len);
    xet_json_put_cstring(j, "role",
                         (scope == XET_SCOPE_READ) ? "read" : "write");
    xet_json_put_cstring(j, "scope", xet_scope_name(scope));
    xet_json_put_string(j, "createdAt", date, XET_HUB_DATE_LEN);

    if (exp) {
        (void) xet_hub_tree_date(date, (int64_t) exp * 1000000);
        xet_json_put_string(j, "expiresAt", date, XET_HUB_DATE_LEN);
    }

    xet_json_object_end(j);
}


/* Adds the caller's name spaces, except the one with the user's name. */

static void
ngx_http_xet_hub_orgs(xet_json_t *j, ngx_http_xet_hub_t *hub)
{
    ngx_str_t   *space;
    ngx_uint_t   i;

    xet_json_array_begin(j);

    space = hub->spaces.elts;

    for (i = 0; i < hub->spaces.nelts; i++) {

        if (space[i].len == hub->who.len
            && ngx_memcmp(space[i].data, hub->who.data, hub->who.len) == 0)
        {
            continue;
        }

        xet_json_object_begin(j);
        xet_json_put_cstring(j, "type", "org");
        xet_json_put_string(j, "id", space[i].data, space[i].len);
        xet_json_put_string(j, "name", space[i].data, space[i].len);
        xet_json_put_string(j, "fullname", space[i].data, space[i].len);
        ngx_http_xet_hub_profile(j);
        xet_json_put_bool(j, "isEnterprise", 0);
        xet_json_object_end(j);
    }

    xet_json_array_end(j);
}


/*
 * Responds with an empty list of AI tools, which Python clients request before
 * anything else.
 */

ngx_int_t
ngx_http_xet_hub_harnesses_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_send_literal(r,
                               "{\"standardEnvVars\": [], \"harnesses\": {}}");
}
