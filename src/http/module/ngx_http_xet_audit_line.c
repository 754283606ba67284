
/*
 * The variable $xet_audit: one JSON object per request, for an access log,
 * with the caller, the action, the repo and the result.
 *
 * nginx evaluates the variable in the log phase, when the result is known.
 * The details are in the record of ngx_http_xet_audit.c.  A request may be
 * rejected before it has a record (by nginx itself, by "deny" or "limit_req").
 * Its location and path then decide whether it is logged.  The variable is
 * empty if nothing is logged: the request is a read that was not rejected, is
 * in a location of another module, or is a subrequest.
 *
 * A line contains no token, no arguments and no header of the client.  Strings
 * from outside (subject, repo, path) are written as JSON, without control
 * characters and invalid UTF-8, so a record is always one line.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_AUDIT_PATH  256           /* maximum bytes of a path */


static ngx_uint_t ngx_http_xet_audit_ours(ngx_http_request_t *r,
    ngx_http_xet_loc_conf_t *xlcf);
static ngx_uint_t ngx_http_xet_audit_reported(ngx_http_request_t *r,
    ngx_http_xet_audit_t *audit, ngx_uint_t status);
static void ngx_http_xet_audit_who(ngx_http_request_t *r, xet_json_t *j,
    ngx_http_xet_audit_t *audit);
static void ngx_http_xet_audit_what(ngx_http_request_t *r, xet_json_t *j,
    ngx_http_xet_audit_t *audit);
static void ngx_http_xet_audit_text(xet_json_t *j, const char *key,
    ngx_str_t *value);


ngx_int_t
ngx_http_xet_audit_init(ngx_conf_t *cf)
{
    ngx_str_t                  name = ngx_string("request_id");
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    /* nginx caches an indexed variable, so all logs get the same value */

    xmcf->request_id = ngx_http_get_variable_index(cf, &name);

    return (xmcf->request_id == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


ngx_int_t
ngx_http_xet_audit_line(ngx_http_request_t *r, ngx_str_t *line)
{
    u_char                    *p;
    xet_buf_t                  b;
    xet_json_t                 j;
    ngx_uint_t                 status;
    xet_buf_node_t            *node;
    ngx_http_xet_ctx_t        *ctx;
    ngx_http_xet_audit_t      *audit, later;
    ngx_http_xet_loc_conf_t   *xlcf;

    if (r != r->main) {
        return NGX_DECLINED;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    audit = ngx_http_xet_audit_find(r);

    if (audit == NULL) {

        if (xlcf->audit == NGX_HTTP_XET_AUDIT_OFF
            || !ngx_http_xet_audit_ours(r, xlcf))
        {
            return NGX_DECLINED;
        }

        ngx_memzero(&later, sizeof(ngx_http_xet_audit_t));

        audit = &later;
        audit->mode = xlcf->audit;

        ngx_http_xet_route_audit(r, audit);
    }

    status = r->err_status ? r->err_status : r->headers_out.status;

    if (!ngx_http_xet_audit_reported(r, audit, status)) {
        return NGX_DECLINED;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 1024);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);

    ngx_http_xet_audit_who(r, &j, audit);

    xet_json_put_u64(&j, "status", status);

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (audit->code || (ctx && ctx->code)) {
        xet_json_put_cstring(&j, "code",
                             audit->code ? audit->code : ctx->code);
    }

    ngx_http_xet_audit_what(r, &j, audit);

    xet_json_object_end(&j);

    if (xet_buf_status(&b) != XET_OK) {
        return NGX_ERROR;
    }

    line->data = ngx_pnalloc(r->pool, b.size);
    if (line->data == NULL) {
        return NGX_ERROR;
    }

    p = line->data;

    for (node = b.first; node; node = node->next) {
        p = ngx_cpymem(p, node->start, node->pos - node->start);
    }

    line->len = p - line->data;

    return NGX_OK;
}


/*
 * Returns whether a request without a record belongs to this module.  It does
 * if it is in a location of this module.  It also does if its server has such
 * locations, and nginx rejected the request before choosing a location, or
 * "xet_error" has responded.
 */

static ngx_uint_t
ngx_http_xet_audit_ours(ngx_http_request_t *r, ngx_http_xet_loc_conf_t *xlcf)
{
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_core_srv_conf_t  *cscf;
    ngx_http_xet_loc_conf_t   *server;

    if (xlcf->api || xlcf->data || xlcf->mint || xlcf->hub) {
        return 1;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    server = cscf->ctx->loc_conf[ngx_http_xet_module.ctx_index];

    return server->serves
           && (xlcf == server || clcf->handler == ngx_http_xet_error_handler);
}


/*
 * Returns whether a request is logged: writes, token requests, rejections with
 * 401 or 403, and with "xet_audit all" all other requests.
 */

static ngx_uint_t
ngx_http_xet_audit_reported(ngx_http_request_t *r, ngx_http_xet_audit_t *audit,
    ngx_uint_t status)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    /* preflight requests of browsers are not logged */

    if (r->method == NGX_HTTP_OPTIONS) {
        return 0;
    }

    if (status == NGX_HTTP_UNAUTHORIZED || status == NGX_HTTP_FORBIDDEN) {

        /* rejections in other locations are not logged */

        xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

        return audit->action || xlcf->api || xlcf->hub;
    }

    return audit->action && !audit->silent
           && (audit->write || audit->mode == NGX_HTTP_XET_AUDIT_ALL);
}


static void
ngx_http_xet_audit_who(ngx_http_request_t *r, xet_json_t *j,
    ngx_http_xet_audit_t *audit)
{
    u_char                      buf[sizeof("2026-01-01T00:00:00.000Z")], *p;
    ngx_tm_t                    tm;
    ngx_str_t                   key;
    ngx_time_t                 *tp;
    ngx_http_xet_auth_t        *auth;
    ngx_http_xet_loc_conf_t    *xlcf;
    ngx_http_xet_main_conf_t   *xmcf;
    ngx_http_variable_value_t  *id;

    tp = ngx_timeofday();
    ngx_gmtime(tp->sec, &tm);

    p = ngx_sprintf(buf, "%4d-%02d-%02dT%02d:%02d:%02d.%03MZ",
                    tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                    tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec, tp->msec);

    xet_json_put_string(j, "time", buf, p - buf);

    xet_json_put_cstring(j, "action",
                         audit->action ? audit->action : "unknown");

    ngx_http_xet_audit_text(j, "address", &r->connection->addr_text);

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);
    id = ngx_http_get_indexed_variable(r, xmcf->request_id);

    if (id && !id->not_found) {
        xet_json_put_string(j, "request", id->data, id->len);
    }

    if (audit->mint) {
        ngx_http_xet_audit_text(j, "repo", &audit->repo);
        ngx_http_xet_audit_text(j, "subject", &audit->subject);
        ngx_http_xet_audit_text(j, "key", &audit->key);
        return;
    }

    auth = audit->auth ? audit->auth : ngx_http_xet_auth(r);

    if (auth == NULL || auth->status != XET_OK) {
        return;
    }

    xlcf = auth->rules;

    ngx_http_xet_audit_text(j, "repo", &auth->repo);
    ngx_http_xet_audit_text(j, "subject", &auth->subject);
    ngx_http_xet_audit_text(j, "issuer", &xlcf->issuer);

    if (ngx_http_xet_auth_key(r, &key) == NGX_OK) {
        ngx_http_xet_audit_text(j, "key", &key);
    }
}


static void
ngx_http_xet_audit_what(ngx_http_request_t *r, xet_json_t *j,
    ngx_http_xet_audit_t *audit)
{
    off_t                sent;
    u_char               text[XET_HASH_STR_LEN];
    u_char               uri[3 * NGX_HTTP_XET_AUDIT_PATH];
    ngx_str_t            path;
    ngx_http_xet_ctx_t  *ctx;

    if (audit->result) {
        xet_json_put_cstring(j, "result", audit->result);
    }

    if (audit->mint && audit->expires) {
        xet_json_put_cstring(j, "scope", xet_scope_name(audit->scope));
        xet_json_put_u64(j, "expires", audit->expires);
    }

    if (audit->has_hash) {
        (void) xet_hash_print(text, &audit->hash);
        xet_json_put_string(j, "hash", text, sizeof(text));
    }

    if (audit->files) {
        xet_json_put_u64(j, "files", audit->files);
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (r->method & (NGX_HTTP_POST|NGX_HTTP_PUT)) {
        xet_json_put_u64(j, "bytes",
                         ctx ? ngx_http_xet_body_received(ctx) : 0);

    } else if (r->method == NGX_HTTP_GET && !audit->mint) {
        sent = r->connection->sent - (off_t) r->header_size;
        xet_json_put_u64(j, "bytes", (sent > 0) ? (uint64_t) sent : 0);
    }

    if (audit->stored) {
        xet_json_put_u64(j, "new_bytes", audit->new_bytes);
    }

    if (audit->rows) {
        xet_json_put_u64(j, "rows", audit->rows);
        xet_json_put_u64(j, "metadata", audit->metadata);
    }

    ngx_http_xet_audit_text(j, "hub", &audit->hub);

    /* log the path as escaped ASCII, without arguments */

    if (audit->action == NULL || audit->named) {
        path.data = uri;
        path.len = (u_char *) ngx_escape_uri(uri, r->uri.data,
                                             ngx_min(r->uri.len,
                                                     NGX_HTTP_XET_AUDIT_PATH),
                                             NGX_ESCAPE_URI)
                   - uri;

        ngx_http_xet_audit_text(j, "path", &path);
    }
}


static void
ngx_http_xet_audit_text(xet_json_t *j, const char *key, ngx_str_t *value)
{
    if (value->len) {
        xet_json_put_string(j, key, value->data, value->len);
    }
}
