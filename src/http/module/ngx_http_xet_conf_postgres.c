
/*
 * The PostgreSQL directives: the primary, and standbys for reads.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_pg.h"


static ngx_int_t ngx_http_xet_conf_password(ngx_conf_t *cf,
    ngx_str_t *conninfo);
static char *ngx_http_xet_conf_conninfo(ngx_conf_t *cf, u_char *err);


static const ngx_http_xet_param_t  ngx_http_xet_postgres_params[] = {

#define XET_POSTGRES_PARAM(name, kind, member, value, min, max, words)        \
    { name, NGX_HTTP_XET_PARAM_##kind,                                        \
      offsetof(ngx_http_xet_main_conf_t, member), min, max, words },

#include "directives.def"

    { NULL, 0, 0, 0, 0, NULL }
};


static const ngx_http_xet_param_t  ngx_http_xet_read_params[] = {
    { "lag", NGX_HTTP_XET_PARAM_MSEC,
      offsetof(ngx_http_xet_standby_conf_t, lag), 2000, 3600000, NULL },
    { "reads", NGX_HTTP_XET_PARAM_NUM,
      offsetof(ngx_http_xet_standby_conf_t, reads), 1, 64, NULL },
    { "timeout", NGX_HTTP_XET_PARAM_MSEC,
      offsetof(ngx_http_xet_standby_conf_t, timeout), 1, 3600000, NULL },
    { NULL, 0, 0, 0, 0, NULL }
};


/*
 * xet_postgres conninfo [reads=n] [writes=n] [depth=n] [queue=n]
 *                       [timeout=time] [write_timeout=time]
 *                       [connect_timeout=time] [dedup=n]
 *                       [dedup_timeout=time] [long=n] [long_timeout=time]
 *                       [ping_timeout=time] [lock_timeout=time]
 *                       [idle=time];
 */

char *
ngx_http_xet_conf_postgres(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    u_char      err[256];
    ngx_str_t  *value;

    if (xmcf->primary) {
        return "is duplicate";
    }

    value = cf->args->elts;

    xmcf->primary = ngx_palloc(cf->pool, sizeof(ngx_http_xet_pg_host_t));
    if (xmcf->primary == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_xet_conf_password(cf, &value[1]) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_xet_pg_primary(xmcf->primary, &value[1], err, sizeof(err))
        != NGX_OK)
    {
        return ngx_http_xet_conf_conninfo(cf, err);
    }

    return ngx_http_xet_params(cf, 2, ngx_http_xet_postgres_params, xmcf,
               "\"reads=\", \"writes=\", \"dedup=\", \"long=\", "
               "\"depth=\", \"queue=\", \"timeout=\", "
               "\"write_timeout=\", \"dedup_timeout=\", "
               "\"long_timeout=\", \"ping_timeout=\", "
               "\"lock_timeout=\", \"connect_timeout=\" or \"idle=\"");
}


/* Checks the syntax of a connection string, and warns if it has a password. */

static ngx_int_t
ngx_http_xet_conf_password(ngx_conf_t *cf, ngx_str_t *conninfo)
{
    u_char     err[256];
    ngx_int_t  rc;

    rc = ngx_http_xet_pg_check_conninfo(conninfo, err, sizeof(err));

    if (rc == NGX_ERROR) {
        (void) ngx_http_xet_conf_conninfo(cf, err);
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "\"nginx -T\" shows the password in the "
                           "configuration; use a passfile");
    }

    return NGX_OK;
}


static char *
ngx_http_xet_conf_conninfo(ngx_conf_t *cf, u_char *err)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid PostgreSQL connection string: %s", err);

    return NGX_CONF_ERROR;
}


/* xet_postgres_read conninfo [lag=time] [reads=n] [timeout=time]; */

char *
ngx_http_xet_conf_postgres_read(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    char                         *rv;
    u_char                        err[256];
    ngx_str_t                    *value;
    ngx_http_xet_standby_conf_t   like;

    value = cf->args->elts;

    ngx_memzero(&like, sizeof(ngx_http_xet_standby_conf_t));

    like.host.conninfo = value[1];
    like.host.standby = 1;
    like.reads = 2;
    like.lag = 10000;
    like.timeout = 3000;
    like.file = cf->conf_file->file.name.data;
    like.line = cf->conf_file->line;

    rv = ngx_http_xet_params(cf, 2, ngx_http_xet_read_params, &like,
                             "\"lag=\" of 2s to 1h, \"reads=\" of 1 to 64 or "
                             "\"timeout=\" of 1ms to 1h");

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (xmcf->standbys == NULL) {
        xmcf->standbys = ngx_array_create(cf->pool, NGX_HTTP_XET_STANDBYS,
                                          sizeof(ngx_http_xet_standby_conf_t));
        if (xmcf->standbys == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (ngx_http_xet_conf_password(cf, &value[1]) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_xet_pg_standbys(xmcf->standbys, &like, &value[1], cf->pool,
                                 err, sizeof(err))
        != NGX_OK)
    {
        return ngx_http_xet_conf_conninfo(cf, err);
    }

    return NGX_CONF_OK;
}


/* Checks that standbys have a primary, after all directives are read. */

ngx_int_t
ngx_http_xet_conf_standbys(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t                    i, n;
    ngx_http_xet_standby_conf_t  *sb;

    n = xmcf->standbys ? xmcf->standbys->nelts : 0;

    ngx_http_xet_metrics_standbys(n);

    for (i = 0; i < n; i++) {
        sb = xmcf->standbys->elts;

        if (xmcf->primary == NULL) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"xet_postgres_read\" requires \"xet_postgres\" in "
                          "%s:%ui", sb[i].file, sb[i].line);
            return NGX_ERROR;
        }

        if (!ngx_http_xet_pg_same_database(&xmcf->primary->conninfo,
                                           &sb[i].host.conninfo))
        {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"xet_postgres_read\" names another database than "
                          "\"xet_postgres\" in %s:%ui", sb[i].file,
                          sb[i].line);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
