
/*
 * The module: directives, phases, processes, and the way to a route.
 */

#ifndef _NGX_HTTP_XET_MODULE_H_INCLUDED_
#define _NGX_HTTP_XET_MODULE_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_upload.h"


/* What "xet_api", "xet_data" or "xet_token" makes of a location. */

typedef struct {
    ngx_uint_t                used;            /* offset of the main flag */
    ngx_uint_t                keys;            /* needs keys of URLs */
    ngx_http_handler_pt       handler;         /* NULL: nginx's, or a proxy */
} ngx_http_xet_mount_t;


/* ngx_http_xet_router.c */
ngx_int_t ngx_http_xet_api_handler(ngx_http_request_t *r);

/*
 * The name of the request's route, as in routes.def.  NGX_DECLINED where the
 * path and the method lead to no route, or without memory.
 */
ngx_int_t ngx_http_xet_route_name(ngx_http_request_t *r, ngx_str_t *name);

/*
 * Sets *token where the request's route needs a token, and *write where that
 * token must allow to write.  What has no route needs a token.
 */
void ngx_http_xet_route_access(ngx_http_request_t *r, ngx_uint_t *token,
    ngx_uint_t *write);

/*
 * What the request uploads, by its path and its method; sets hash for a xorb.
 * The location need not have "xet_api": its content may be a proxy's.
 */
ngx_http_xet_upload_e ngx_http_xet_route_upload(ngx_http_request_t *r,
    xet_hash_t *hash);

/* ngx_http_xet_access_phase.c */
ngx_int_t ngx_http_xet_preaccess_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_xet_access_handler(ngx_http_request_t *r);

/* ngx_http_xet_data_filter.c */
ngx_int_t ngx_http_xet_data_filter_init(ngx_conf_t *cf);

/* ngx_http_xet_variables.c */
ngx_int_t ngx_http_xet_add_variables(ngx_conf_t *cf);


/* ngx_http_xet_conf.c */
void *ngx_http_xet_create_main_conf(ngx_conf_t *cf);
char *ngx_http_xet_init_main_conf(ngx_conf_t *cf, void *conf);
void *ngx_http_xet_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_xet_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);
ngx_int_t ngx_http_xet_conf_check(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);

/* ngx_http_xet_conf_set.c */
char *ngx_http_xet_conf_store(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_postgres(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_mount(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_error(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_verify_body(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_require_tls(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_url_base(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_token_cache(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_upload_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_upload_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* ngx_http_xet_conf_key.c */
char *ngx_http_xet_conf_url_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_dedup_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_xet_conf_sign_keys(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
char *ngx_http_xet_conf_token_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* _NGX_HTTP_XET_MODULE_H_INCLUDED_ */
