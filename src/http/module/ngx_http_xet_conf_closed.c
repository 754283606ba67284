
/*
 * Rejects "xet_read_only on" and "xet_delete off" where they have no effect.
 *
 * Only locations of this module implement the two directives.  A server
 * without such locations, for example an edge, passes requests to another
 * server.  Its operator would rely on a directive that has no effect.
 *
 * Runs once, in postconfiguration, in the master, when all locations are
 * merged.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


static ngx_uint_t ngx_http_xet_closed_used(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_core_srv_conf_t *server);


ngx_int_t
ngx_http_xet_conf_closed(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t                     i, k, on;
    const void                    *main;
    ngx_http_xet_conf_location_t  *p;
    ngx_http_xet_loc_conf_t       *conf;
    ngx_http_core_srv_conf_t      *server;

    static const char *const  names[] = { "xet_read_only", "xet_delete" };

    main = ngx_http_conf_get_module_loc_conf(cf, ngx_http_xet_module);
    p = xmcf->locations->elts;

    /* the last iteration is for the http level, which is not in the list */

    for (i = 0; i <= xmcf->locations->nelts; i++) {

        conf = (i < xmcf->locations->nelts) ? p[i].conf : (void *) main;
        server = (i < xmcf->locations->nelts) ? p[i].server : NULL;

        for (k = 0; k < 2; k++) {

            on = (k == 0) ? conf->read_only == 1 : conf->deletes == 0;

            if (on && ngx_http_xet_conf_written(xmcf, conf, names[k])
                && !ngx_http_xet_closed_used(xmcf, server))
            {
                ngx_http_xet_conf_say(cf, NGX_LOG_EMERG, conf, names[k],
                                      "\"%s\" has no effect: no location "
                                      "there has \"xet_api\", \"xet_hub\" or "
                                      "\"xet_token\"; move it to their "
                                      "server, which for an edge is its "
                                      "origin", names[k]);
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


/*
 * Returns whether a location of the server implements the directives.  If
 * server is NULL, checks the locations of all servers.
 */

static ngx_uint_t
ngx_http_xet_closed_used(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_core_srv_conf_t *server)
{
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *p;

    p = xmcf->locations->elts;

    for (i = 0; i < xmcf->locations->nelts; i++) {

        if ((server == NULL || p[i].server == server)
            && (p[i].conf->api == 1 || p[i].conf->hub == 1
                || p[i].conf->mint == 1))
        {
            return 1;
        }
    }

    return 0;
}
