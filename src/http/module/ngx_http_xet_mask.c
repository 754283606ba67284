
/*
 * Masks secrets in logs: overwrites the secrets that xet_mask() recognizes in
 * the lines that nginx logs.
 *
 * The error log: each log of the configuration gets a writer, which nginx
 * calls with the complete line.  nginx adds the request line, the URL of the
 * upstream and the referrer to every message.  Connections inherit the writer
 * from the log of their server.  Debug logs are not changed.
 *
 * The access log: the request line, the arguments and the referrer are
 * overwritten in place before nginx's own handler of the log phase.  So it
 * does not matter which variables a log format uses, or which of them nginx
 * has already evaluated.  The request is finished at this time, and nothing
 * else needs the strings.  In a subrequest, copies are masked, because the main
 * request continues.
 *
 * The logs belong to the cycle.  The writers are removed before the cycle is
 * destroyed, because nginx also unloads the module then.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


static void ngx_http_xet_mask_logs(ngx_log_t *log, ngx_uint_t on);
static void ngx_http_xet_mask_logs_end(void *data);
static void ngx_http_xet_mask_write(ngx_log_t *log, ngx_uint_t level,
    u_char *buf, size_t len);
static void ngx_http_xet_mask_syslog(ngx_log_t *log, ngx_uint_t level,
    u_char *buf, size_t len);
static ngx_int_t ngx_http_xet_mask_handler(ngx_http_request_t *r);
static ngx_uint_t ngx_http_xet_mask_inside(ngx_http_request_t *r,
    const ngx_str_t *s);
static ngx_int_t ngx_http_xet_mask_user(ngx_http_request_t *r);
static void ngx_http_xet_mask_line(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_mask_copy(ngx_http_request_t *r, ngx_str_t *s);


/* Records the log of a location, a server or "http". */

ngx_int_t
ngx_http_xet_mask_log(ngx_http_xet_main_conf_t *xmcf, ngx_log_t *log)
{
    ngx_uint_t    i;
    ngx_log_t   **logs;

    logs = xmcf->logs.elts;

    for (i = 0; i < xmcf->logs.nelts; i++) {
        if (logs[i] == log) {
            return NGX_OK;
        }
    }

    logs = ngx_array_push(&xmcf->logs);
    if (logs == NULL) {
        return NGX_ERROR;
    }

    *logs = log;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_mask_init_module(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t            i;
    ngx_log_t           **logs;
    ngx_pool_cleanup_t   *cln;

    cln = ngx_pool_cleanup_add(cycle->pool, 0);

    if (cln == NULL || ngx_http_xet_mask_log(xmcf, cycle->log) != NGX_OK) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_xet_mask_logs_end;
    cln->data = xmcf;

    logs = xmcf->logs.elts;

    for (i = 0; i < xmcf->logs.nelts; i++) {
        ngx_http_xet_mask_logs(logs[i], 1);
    }

    return NGX_OK;
}


static void
ngx_http_xet_mask_logs_end(void *data)
{
    ngx_http_xet_main_conf_t *xmcf = data;

    ngx_uint_t    i;
    ngx_log_t   **logs;

    logs = xmcf->logs.elts;

    for (i = 0; i < xmcf->logs.nelts; i++) {
        ngx_http_xet_mask_logs(logs[i], 0);
    }
}


/* Sets or removes the writer in all logs of a chain. */

static void
ngx_http_xet_mask_logs(ngx_log_t *log, ngx_uint_t on)
{
    for ( /* void */ ; log; log = log->next) {

        if (on && log->writer == NULL && log->file) {
            log->writer = ngx_http_xet_mask_write;

        } else if (on && log->writer == ngx_syslog_writer) {
            log->writer = ngx_http_xet_mask_syslog;

        } else if (!on && log->writer == ngx_http_xet_mask_write) {
            log->writer = NULL;

        } else if (!on && log->writer == ngx_http_xet_mask_syslog) {
            log->writer = ngx_syslog_writer;
        }
    }
}


/* Masks a line, and writes the line to the file as nginx does. */

static void
ngx_http_xet_mask_write(ngx_log_t *log, ngx_uint_t level, u_char *buf,
    size_t len)
{
    ssize_t  n;

    if (ngx_time() == log->disk_full_time) {
        return;
    }

    if (level != NGX_LOG_DEBUG) {
        xet_mask(buf, len);
    }

    n = ngx_write_fd(log->file->fd, buf, len);

    if (n == -1 && ngx_errno == NGX_ENOSPC) {
        log->disk_full_time = ngx_time();
    }
}


static void
ngx_http_xet_mask_syslog(ngx_log_t *log, ngx_uint_t level, u_char *buf,
    size_t len)
{
    if (level != NGX_LOG_DEBUG) {
        xet_mask(buf, len);
    }

    ngx_syslog_writer(log, level, buf, len);
}


/* Inserts the handler before the existing handlers of the log phase. */

ngx_int_t
ngx_http_xet_mask_init(ngx_conf_t *cf)
{
    ngx_array_t                *handlers;
    ngx_http_handler_pt        *h;
    ngx_http_xet_main_conf_t   *xmcf;
    ngx_http_core_main_conf_t  *cmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    xmcf->masked = 1;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    handlers = &cmcf->phases[NGX_HTTP_LOG_PHASE].handlers;

    if (ngx_array_push(handlers) == NULL) {
        return NGX_ERROR;
    }

    h = handlers->elts;

    ngx_memmove(h + 1, h, (handlers->nelts - 1) * sizeof(ngx_http_handler_pt));

    *h = ngx_http_xet_mask_handler;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_mask_handler(ngx_http_request_t *r)
{
    ngx_str_t  *referer;

    if (r != r->main) {
        return (ngx_http_xet_mask_copy(r, &r->request_line) == NGX_OK
                && ngx_http_xet_mask_copy(r, &r->unparsed_uri) == NGX_OK
                && ngx_http_xet_mask_copy(r, &r->args) == NGX_OK)
               ? NGX_OK : NGX_ERROR;
    }

    ngx_http_xet_mask_line(r);

    xet_mask(r->request_line.data, r->request_line.len);

    if (!ngx_http_xet_mask_inside(r, &r->unparsed_uri)) {
        xet_mask(r->unparsed_uri.data, r->unparsed_uri.len);
    }

    if (r->headers_in.referer) {
        referer = &r->headers_in.referer->value;
        xet_mask(referer->data, referer->len);
    }

    if (ngx_http_xet_mask_user(r) != NGX_OK) {
        return NGX_ERROR;
    }

    /* mask a copy, since arguments may be a constant of the configuration */

    return ngx_http_xet_mask_inside(r, &r->args)
           ? NGX_OK : ngx_http_xet_mask_copy(r, &r->args);
}


/*
 * Returns whether s, the URI or the arguments, is a part of the request line,
 * as usual.  Then it has been masked with the request line.
 */

static ngx_uint_t
ngx_http_xet_mask_inside(ngx_http_request_t *r, const ngx_str_t *s)
{
    return s->data >= r->request_line.data
           && s->data + s->len <= r->request_line.data + r->request_line.len;
}


/*
 * Masks the user name, since some clients send a token as the user name.
 * nginx decodes the header each time the name is used, so the header is
 * replaced by an encoded masked name.
 */

static ngx_int_t
ngx_http_xet_mask_user(ngx_http_request_t *r)
{
    u_char     *p;
    ngx_str_t   user, plain, *value;

    if (r->headers_in.authorization == NULL
        || ngx_http_auth_basic_user(r) != NGX_OK)
    {
        return NGX_OK;
    }

    user = r->headers_in.user;

    if (ngx_http_xet_mask_copy(r, &user) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_memcmp(user.data, r->headers_in.user.data, user.len) == 0) {
        return NGX_OK;
    }

    value = &r->headers_in.authorization->value;

    plain.len = user.len + 1 + r->headers_in.passwd.len;
    plain.data = ngx_pnalloc(r->pool, plain.len + sizeof("Basic ")
                                      + ngx_base64_encoded_length(plain.len));
    if (plain.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(plain.data, user.data, user.len);
    *p++ = ':';
    p = ngx_cpymem(p, r->headers_in.passwd.data, r->headers_in.passwd.len);

    value->data = p;
    value->len = sizeof("Basic ") - 1;

    user.data = ngx_cpymem(p, "Basic ", value->len);
    ngx_encode_base64(&user, &plain);
    value->len += user.len;

    return NGX_OK;
}


/*
 * If nginx could not parse the request line, sets it to the first line of the
 * request, as nginx's own variables do.
 */

static void
ngx_http_xet_mask_line(ngx_http_request_t *r)
{
    u_char  *p;

    if (r->request_line.data || r->request_start == NULL
        || r->header_in == NULL)
    {
        return;
    }

    for (p = r->request_start; p < r->header_in->last; p++) {
        if (*p == CR || *p == LF) {
            break;
        }
    }

    r->request_line.data = r->request_start;
    r->request_line.len = p - r->request_start;
}


static ngx_int_t
ngx_http_xet_mask_copy(ngx_http_request_t *r, ngx_str_t *s)
{
    u_char  *p;

    if (s->len == 0) {
        return NGX_OK;
    }

    p = ngx_pstrdup(r->pool, s);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (s == &r->args) {
        xet_mask_args(p, s->len);

    } else {
        xet_mask(p, s->len);
    }

    s->data = p;

    return NGX_OK;
}
