
/*
 * The directives of PostgreSQL: the primary, and standbys to read from.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_pg.h"


static ngx_int_t ngx_http_xet_conf_password(ngx_conf_t *cf,
    ngx_str_t *conninfo);
static char *ngx_http_xet_conf_conninfo(ngx_conf_t *cf, u_char *err);
static char *ngx_http_xet_conf_read_params(ngx_conf_t *cf,
    ngx_http_xet_standby_conf_t *like);


/*
 * xet_postgres conninfo [reads=n] [writes=n] [depth=n] [queue=n]
 *                       [timeout=time] [write_timeout=time]
 *                       [connect_timeout=time] [dedup=n]
 *                       [dedup_timeout=time] [long=n] [long_timeout=time]
 *                       [ping_timeout=time] [lock_timeout=time];
 */

char *
ngx_http_xet_conf_postgres(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    u_char       err[256];
    ngx_int_t    n;
    ngx_str_t   *value, s;
    ngx_uint_t   i, j, seen;

    const struct {
        const char  *name;
        ngx_uint_t  *number;
        ngx_msec_t  *msec;
        ngx_int_t    min;
        ngx_int_t    max;
        const char  *must;
    } params[] = {
        { "reads", &xmcf->reads, NULL, 1, 64, "a number from 1 to 64" },
        { "writes", &xmcf->writes, NULL, 1, 64, "a number from 1 to 64" },
        { "depth", &xmcf->depth, NULL, 1, 256, "a number from 1 to 256" },
        { "queue", &xmcf->queue, NULL, 1, 1000000,
          "a number from 1 to 1000000" },
        { "timeout", NULL, &xmcf->query_timeout, 1, 3600000,
          "a time from 1ms to 1h" },
        { "write_timeout", NULL, &xmcf->write_timeout, 1, 86400000,
          "a time from 1ms to 24h" },
        { "connect_timeout", NULL, &xmcf->connect_timeout, 1, 3600000,
          "a time from 1ms to 1h" },
        { "dedup", &xmcf->dedups, NULL, 1, 64, "a number from 1 to 64" },
        { "dedup_timeout", NULL, &xmcf->dedup_timeout, 1, 3600000,
          "a time from 1ms to 1h" },
        { "long", &xmcf->longs, NULL, 1, 64, "a number from 1 to 64" },
        { "long_timeout", NULL, &xmcf->long_timeout, 1, 3600000,
          "a time from 1ms to 1h" },
        { "ping_timeout", NULL, &xmcf->ping_timeout, 1, 3600000,
          "a time from 1ms to 1h" },
        { "lock_timeout", NULL, &xmcf->lock_timeout, 1, 86400000,
          "a time from 1ms to 24h" }
    };

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

    seen = 0;

    for (i = 2; i < cf->args->nelts; i++) {

        for (j = 0; j < sizeof(params) / sizeof(params[0]); j++) {

            if (!ngx_http_xet_param(&value[i], params[j].name, &s)) {
                continue;
            }

            if (seen & ((ngx_uint_t) 1 << j)) {
                return ngx_http_xet_param_duplicate(cf, &value[i]);
            }

            seen |= (ngx_uint_t) 1 << j;

            n = params[j].number ? ngx_atoi(s.data, s.len)
                                 : ngx_parse_time(&s, 0);

            if (n == NGX_ERROR || n < params[j].min || n > params[j].max) {
                return ngx_http_xet_param_invalid(cf, &value[i],
                                                  params[j].must);
            }

            if (params[j].number) {
                *params[j].number = n;

            } else {
                *params[j].msec = n;
            }

            break;
        }

        if (j == sizeof(params) / sizeof(params[0])) {
            return ngx_http_xet_param_invalid(cf, &value[i],
                "\"reads=\", \"writes=\", \"dedup=\", \"long=\", "
                "\"depth=\", \"queue=\", \"timeout=\", "
                "\"write_timeout=\", \"dedup_timeout=\", "
                "\"long_timeout=\", \"ping_timeout=\", "
                "\"lock_timeout=\" or \"connect_timeout=\"");
        }
    }

    return NGX_CONF_OK;
}


/* Checks the form of a connection string, and warns of a password. */

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
                           "a password in the configuration is shown by "
                           "\"nginx -T\", use a passfile");
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

    rv = ngx_http_xet_conf_read_params(cf, &like);

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


static char *
ngx_http_xet_conf_read_params(ngx_conf_t *cf,
    ngx_http_xet_standby_conf_t *like)
{
    ngx_int_t    n;
    ngx_str_t   *value, s;
    ngx_uint_t   i, lag, reads, timeout;

    value = cf->args->elts;
    lag = 0;
    reads = 0;
    timeout = 0;

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_http_xet_param(&value[i], "lag", &s)) {
            n = ngx_parse_time(&s, 0);

            if (lag++) {
                return ngx_http_xet_param_duplicate(cf, &value[i]);
            }

            if (n >= 2000 && n <= 3600000) {
                like->lag = (ngx_msec_t) n;
                continue;
            }

        } else if (ngx_http_xet_param(&value[i], "reads", &s)) {
            n = ngx_atoi(s.data, s.len);

            if (reads++) {
                return ngx_http_xet_param_duplicate(cf, &value[i]);
            }

            if (n >= 1 && n <= 64) {
                like->reads = (ngx_uint_t) n;
                continue;
            }

        } else if (ngx_http_xet_param(&value[i], "timeout", &s)) {
            n = ngx_parse_time(&s, 0);

            if (timeout++) {
                return ngx_http_xet_param_duplicate(cf, &value[i]);
            }

            if (n >= 1 && n <= 3600000) {
                like->timeout = (ngx_msec_t) n;
                continue;
            }
        }

        return ngx_http_xet_param_invalid(cf, &value[i],
                                          "\"lag=\" of 2s to 1h, \"reads=\" "
                                          "of 1 to 64 or \"timeout=\" of 1ms "
                                          "to 1h");
    }

    return NGX_CONF_OK;
}


/* When all is read: standbys are those of a primary. */

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
