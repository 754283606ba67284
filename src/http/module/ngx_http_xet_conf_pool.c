
/*
 * The pools of threads: one for uploads and one for what is read.
 *
 * A disk that does not take a write for a while blocks as many threads as there
 * are uploads, and reads must not wait for any of them.  So there are two pools
 * even where the configuration does not name a pool for reads: that pool is
 * then made here by nginx's own directive, since nginx has a default size only
 * for its pool "default".  The blank in its name keeps it from being the name
 * of another pool by chance.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


#define NGX_HTTP_XET_READ_POOL     "xet read"
#define NGX_HTTP_XET_READ_THREADS  "threads=8"


extern ngx_module_t  ngx_thread_pool_module;


static ngx_thread_pool_t *ngx_http_xet_conf_read_pool(ngx_conf_t *cf);


ngx_int_t
ngx_http_xet_conf_pools(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    xmcf->pool = ngx_thread_pool_add(cf, xmcf->pool_name.len
                                         ? &xmcf->pool_name : NULL);
    if (xmcf->pool == NULL) {
        return NGX_ERROR;
    }

    /* an edge that only verifies bodies has no jobs that read */

    if (!xmcf->api) {
        return NGX_OK;
    }

    xmcf->read_pool = xmcf->read_pool_name.len
                      ? ngx_thread_pool_add(cf, &xmcf->read_pool_name)
                      : ngx_http_xet_conf_read_pool(cf);

    if (xmcf->read_pool == NULL) {
        return NGX_ERROR;
    }

    if (xmcf->read_pool == xmcf->pool) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"xet_read_thread_pool\" is the pool of uploads: "
                      "what is read will wait for what is written");
    }

    return NGX_OK;
}


static ngx_thread_pool_t *
ngx_http_xet_conf_read_pool(ngx_conf_t *cf)
{
    char           *rv;
    void           *conf;
    ngx_array_t     args, *saved;
    ngx_command_t  *cmd;

    static ngx_str_t  value[] = {
        ngx_string("thread_pool"),
        ngx_string(NGX_HTTP_XET_READ_POOL),
        ngx_string(NGX_HTTP_XET_READ_THREADS)
    };

    conf = ngx_get_conf(cf->cycle->conf_ctx, ngx_thread_pool_module);

    for (cmd = ngx_thread_pool_module.commands; cmd->name.len; cmd++) {

        if (cmd->name.len != value[0].len
            || ngx_strncmp(cmd->name.data, value[0].data, value[0].len) != 0)
        {
            continue;
        }

        ngx_memzero(&args, sizeof(ngx_array_t));

        args.elts = value;
        args.nelts = sizeof(value) / sizeof(value[0]);

        saved = cf->args;
        cf->args = &args;

        rv = cmd->set(cf, cmd, conf);

        cf->args = saved;

        return (rv == NGX_CONF_OK) ? ngx_thread_pool_add(cf, &value[1]) : NULL;
    }

    return NULL;
}
