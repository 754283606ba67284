
/*
 * Variables that contain the caller, or the object of the request.  They may
 * be evaluated before the access phase, for example by limit_req, so evaluating
 * them verifies the token.  Their values depend on the token rules of the
 * location, and are not cached, since nginx may redirect the request.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_store.h"


typedef enum {
    NGX_HTTP_XET_VAR_SUBJECT = 0,
    NGX_HTTP_XET_VAR_REPO,
    NGX_HTTP_XET_VAR_SCOPE
} ngx_http_xet_var_e;


typedef enum {
    NGX_HTTP_XET_VAR_STORE_HOST = 0,
    NGX_HTTP_XET_VAR_STORE_URI,
    NGX_HTTP_XET_VAR_STORE_AUTHORIZATION,
    NGX_HTTP_XET_VAR_STORE_DATE,
    NGX_HTTP_XET_VAR_STORE_TOKEN
} ngx_http_xet_var_store_e;


/*
 * The headers of a request for a copy in the object store.  All headers are
 * made together, because the signature covers all of them.
 */

struct ngx_http_xet_signed_s {
    xet_hash_t       xorb;
    uint32_t         copy_id;
    time_t           made;
    xet_s3_signed_t  out;
};


static ngx_int_t ngx_http_xet_variable_token(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_xet_variable_client(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_xet_variable_route(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_xet_variable_args(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_xet_variable_store(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_xet_variable_store_uri(ngx_http_request_t *r,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t copy_id,
    ngx_str_t *uri);
static ngx_int_t ngx_http_xet_variable_store_signed(ngx_http_request_t *r,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t copy_id,
    xet_s3_signed_t **out);
static ngx_int_t ngx_http_xet_variable_audit(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_xet_variable_set(ngx_http_variable_value_t *v,
    ngx_str_t *value);


static ngx_http_variable_t  ngx_http_xet_vars[] = {

    { ngx_string("xet_subject"), NULL, ngx_http_xet_variable_token,
      NGX_HTTP_XET_VAR_SUBJECT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_repo"), NULL, ngx_http_xet_variable_token,
      NGX_HTTP_XET_VAR_REPO, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_scope"), NULL, ngx_http_xet_variable_token,
      NGX_HTTP_XET_VAR_SCOPE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_client"), NULL, ngx_http_xet_variable_client,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_route"), NULL, ngx_http_xet_variable_route,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_data_args"), NULL, ngx_http_xet_variable_args,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_store_host"), NULL, ngx_http_xet_variable_store,
      NGX_HTTP_XET_VAR_STORE_HOST, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_store_uri"), NULL, ngx_http_xet_variable_store,
      NGX_HTTP_XET_VAR_STORE_URI, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_store_authorization"), NULL,
      ngx_http_xet_variable_store,
      NGX_HTTP_XET_VAR_STORE_AUTHORIZATION, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_store_date"), NULL, ngx_http_xet_variable_store,
      NGX_HTTP_XET_VAR_STORE_DATE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_store_token"), NULL, ngx_http_xet_variable_store,
      NGX_HTTP_XET_VAR_STORE_TOKEN, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("xet_audit"), NULL, ngx_http_xet_variable_audit,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_xet_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_xet_vars; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return ngx_http_xet_audit_init(cf);
}


static ngx_int_t
ngx_http_xet_variable_token(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t             value;
    ngx_http_xet_auth_t  *auth;

    auth = ngx_http_xet_auth(r);
    if (auth == NULL) {
        return NGX_ERROR;
    }

    if (auth->status != XET_OK) {
        v->not_found = 1;
        return NGX_OK;
    }

    switch (data) {

    case NGX_HTTP_XET_VAR_SUBJECT:
        value = auth->subject;
        break;

    case NGX_HTTP_XET_VAR_REPO:
        value = auth->repo;
        break;

    default: /* NGX_HTTP_XET_VAR_SCOPE */
        value.data = (u_char *) xet_scope_name(auth->claims.scope);
        value.len = ngx_strlen(value.data);
        break;
    }

    return ngx_http_xet_variable_set(v, &value);
}


/*
 * Sets the key for limits: "s:" and the token's subject, or "a:" and the
 * client's address.
 */

static ngx_int_t
ngx_http_xet_variable_client(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t             value, *name;
    ngx_http_xet_auth_t  *auth;

    auth = ngx_http_xet_auth(r);
    if (auth == NULL) {
        return NGX_ERROR;
    }

    name = (auth->status == XET_OK && auth->subject.len)
           ? &auth->subject : &r->connection->addr_text;

    value.len = name->len + 2;
    value.data = ngx_pnalloc(r->pool, value.len);

    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.data[0] = (name == &auth->subject) ? 's' : 'a';
    value.data[1] = ':';
    ngx_memcpy(value.data + 2, name->data, name->len);

    return ngx_http_xet_variable_set(v, &value);
}


static ngx_int_t
ngx_http_xet_variable_route(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t  name;

    if (ngx_http_xet_route_name(r, &name) != NGX_OK) {
        v->not_found = 1;
        return NGX_OK;
    }

    return ngx_http_xet_variable_set(v, &name);
}


/*
 * Sets the arguments that an edge sends to its origin.  The value is empty
 * unless the signature of the main request was checked.  Subrequests for slices
 * get the same value.
 */

static ngx_int_t
ngx_http_xet_variable_args(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 args;
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_loc_conf_t  *xlcf;

    ctx = ngx_http_get_module_ctx(r->main, ngx_http_xet_module);
    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (!xlcf->data || ctx == NULL || ctx->data == NULL
        || ngx_http_xet_url_args(r, &args) != NGX_OK)
    {
        v->not_found = 1;
        return NGX_OK;
    }

    return ngx_http_xet_variable_set(v, &args);
}


/*
 * Sets the path or a header of nginx's request to the object store.  The value
 * is empty unless the signature of the main request was checked.  The path is
 * also needed for a cache lookup, the headers only for a miss.
 */

static ngx_int_t
ngx_http_xet_variable_store(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *text;
    uint32_t                   copy_id;
    ngx_int_t                  rc;
    ngx_str_t                  value;
    xet_hash_t                 xorb;
    xet_s3_signed_t           *out;
    ngx_http_xet_ctx_t        *ctx;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    ctx = ngx_http_get_module_ctx(r->main, ngx_http_xet_module);
    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    v->not_found = 1;

    if (!xlcf->data || ctx == NULL || ctx->data == NULL
        || ngx_http_xet_url_copy(r, &xorb, &copy_id) != NGX_OK)
    {
        return NGX_OK;
    }

    if (data == NGX_HTTP_XET_VAR_STORE_URI) {
        rc = ngx_http_xet_variable_store_uri(r, xmcf->store, &xorb, copy_id,
                                             &value);

        return (rc == NGX_OK) ? ngx_http_xet_variable_set(v, &value)
               : (rc == NGX_DECLINED) ? NGX_OK : rc;
    }

    rc = ngx_http_xet_variable_store_signed(r, xmcf->store, &xorb, copy_id,
                                            &out);

    if (rc != NGX_OK) {
        return (rc == NGX_DECLINED) ? NGX_OK : rc;
    }

    switch (data) {

    case NGX_HTTP_XET_VAR_STORE_HOST:
        text = (u_char *) out->host;
        break;

    case NGX_HTTP_XET_VAR_STORE_AUTHORIZATION:
        text = (u_char *) out->authorization;
        break;

    case NGX_HTTP_XET_VAR_STORE_DATE:
        text = (u_char *) out->date;
        break;

    default: /* NGX_HTTP_XET_VAR_STORE_TOKEN */
        text = (u_char *) out->token;
        break;
    }

    value.data = text;
    value.len = ngx_strlen(text);

    return ngx_http_xet_variable_set(v, &value);
}


static ngx_int_t
ngx_http_xet_variable_store_uri(ngx_http_request_t *r,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t copy_id,
    ngx_str_t *uri)
{
    char  path[XET_S3_URL_MAX];

    if (ngx_http_xet_store_uri(store, xorb, copy_id, path) != NGX_OK) {
        return NGX_DECLINED;
    }

    uri->len = ngx_strlen(path);
    uri->data = ngx_pnalloc(r->pool, uri->len);

    if (uri->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(uri->data, path, uri->len);

    return NGX_OK;
}


/*
 * Signs a request to the object store.  A response may need slices for hours,
 * so signatures older than a second are renewed.
 */

static ngx_int_t
ngx_http_xet_variable_store_signed(ngx_http_request_t *r,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t copy_id,
    xet_s3_signed_t **out)
{
    ngx_http_xet_ctx_t     *ctx;
    ngx_http_xet_signed_t  *s;

    ctx = ngx_http_get_module_ctx(r->main, ngx_http_xet_module);

    s = ctx->store;

    if (s && s->made == ngx_time() && s->copy_id == copy_id
        && xet_hash_equal(&s->xorb, xorb))
    {
        *out = &s->out;
        return NGX_OK;
    }

    if (s == NULL) {
        s = ngx_palloc(r->main->pool, sizeof(ngx_http_xet_signed_t));

        if (s == NULL) {
            return NGX_ERROR;
        }
    }

    ctx->store = NULL;

    if (ngx_http_xet_store_sign(store, xorb, copy_id, &s->out) != NGX_OK) {
        return NGX_DECLINED;
    }

    s->xorb = *xorb;
    s->copy_id = copy_id;
    s->made = ngx_time();

    ctx->store = s;
    *out = &s->out;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_variable_audit(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_int_t  rc;
    ngx_str_t  line;

    rc = ngx_http_xet_audit_line(r, &line);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc != NGX_OK) {
        v->not_found = 1;
        return NGX_OK;
    }

    return ngx_http_xet_variable_set(v, &line);
}


static ngx_int_t
ngx_http_xet_variable_set(ngx_http_variable_value_t *v, ngx_str_t *value)
{
    v->data = value->data;
    v->len = value->len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}
