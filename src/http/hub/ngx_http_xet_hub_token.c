
/*
 * Tokens for uploads and downloads.  The Hub decides who may read or write a
 * repo; the data is transferred by the location with "xet_api" whose URL is
 * sent with the token.
 *
 *     handler -> permission (PostgreSQL) -> a token for one repo
 *
 * The repo in the token is an internal name, which does not change when the
 * repo is renamed, and is never reused.  So a token for a deleted repo gives
 * no access to a new repo of the same name.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_routes.h"


static ngx_int_t ngx_http_xet_hub_token(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_uint_t writes);
static void ngx_http_xet_hub_token_entered(ngx_http_request_t *r,
    ngx_int_t rc);


ngx_int_t
ngx_http_xet_hub_read_token_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_token(r, hub, 0);
}


ngx_int_t
ngx_http_xet_hub_write_token_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_token(r, hub, 1);
}


/*
 * Issues a token.  A revision that does not exist is accepted: clients may
 * send "None".
 */

static ngx_int_t
ngx_http_xet_hub_token(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    ngx_uint_t writes)
{
    static const ngx_str_t  any = ngx_null_string;

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query_hub_enter(r, &hub->asked, &any, writes,
                                            ngx_http_xet_hub_token_entered));
}


static void
ngx_http_xet_hub_token_entered(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_token_claims_t          claims;
    ngx_http_xet_hub_t         *hub;
    ngx_http_xet_hub_answer_t   answer;

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    hub = ngx_http_xet_hub_get(r);

    ngx_http_xet_hub_claims(r, &answer.more, hub->writes, &claims);

    ngx_http_finalize_request(r, ngx_http_xet_token_give(r, &claims));
}


void
ngx_http_xet_hub_claims(ngx_http_request_t *r, const ngx_str_t *store,
    ngx_uint_t writes, xet_token_claims_t *claims)
{
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    ngx_memzero(claims, sizeof(xet_token_claims_t));

    claims->scope = writes ? XET_SCOPE_WRITE : XET_SCOPE_READ;
    claims->contents = 1;
    claims->repo.data = store->data;
    claims->repo.len = store->len;

    /*
     * Clients remember their uploads, and refer to them in other repos too.
     * The server accepts that only if both tokens have the same subject, which
     * may be "me" for all callers.
     */

    if (hub->who.len) {
        claims->sub.data = hub->who.data;
        claims->sub.len = hub->who.len;
    }

    claims->iat = (uint64_t) ngx_time();
    claims->exp = ngx_http_xet_hub_until(r);
}


/*
 * Returns the expiry of a new token, which must not outlive the token of the
 * request.
 */

uint64_t
ngx_http_xet_hub_until(ngx_http_request_t *r)
{
    uint64_t                  until;
    ngx_http_xet_auth_t      *auth;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    until = (uint64_t) ngx_time() + (uint64_t) xlcf->token_lifetime;

    auth = (xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN) ? ngx_http_xet_auth(r)
                                                   : NULL;

    return (auth && auth->status == XET_OK) ? ngx_min(until, auth->claims.exp)
                                            : until;
}
