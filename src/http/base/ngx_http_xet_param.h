
/*
 * Parameters of directives: name=value.
 */

#ifndef _NGX_HTTP_XET_PARAM_H_INCLUDED_
#define _NGX_HTTP_XET_PARAM_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* Whether arg is name=value; value, which may be empty, points into arg. */
ngx_uint_t ngx_http_xet_param(ngx_str_t *arg, const char *name,
    ngx_str_t *value);

/* Logs that arg is an invalid parameter, and returns NGX_CONF_ERROR. */
char *ngx_http_xet_param_invalid(ngx_conf_t *cf, ngx_str_t *arg);


#endif /* _NGX_HTTP_XET_PARAM_H_INCLUDED_ */
