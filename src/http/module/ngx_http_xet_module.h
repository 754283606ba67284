
/*
 * The module: directives, phases, processes, and the routing of requests.
 */

#ifndef _NGX_HTTP_XET_MODULE_H_INCLUDED_
#define _NGX_HTTP_XET_MODULE_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_upload.h"


/*
 * Defines an nginx module that only adds a filter to nginx's chain, in its
 * postconfiguration handler ngx_http_xet_NAME_init().
 */

#define NGX_HTTP_XET_FILTER(name)                                             \
                                                                              \
    static ngx_http_module_t  ngx_http_xet_##name##_module_ctx = {            \
        NULL, ngx_http_xet_##name##_init, NULL, NULL, NULL, NULL, NULL, NULL  \
    };                                                                        \
                                                                              \
    ngx_module_t  ngx_http_xet_##name##_module = {                            \
        NGX_MODULE_V1,                                                        \
        &ngx_http_xet_##name##_module_ctx,                                    \
        NULL,                                                                 \
        NGX_HTTP_MODULE,                                                      \
        NULL, NULL, NULL, NULL, NULL, NULL, NULL,                             \
        NGX_MODULE_V1_PADDING                                                 \
    };


/* The role that "xet_api", "xet_data" or "xet_token" gives to a location. */

typedef struct {
    ngx_uint_t                used;          /* offset of a flag in main conf */
    ngx_uint_t                keys;            /* 1: the role needs URL keys */
    ngx_http_handler_pt       handler;         /* NULL: nginx's handler */
} ngx_http_xet_mount_t;


/* A server or a location, recorded when its configuration is merged. */

typedef struct {
    ngx_http_xet_loc_conf_t   *conf;
    ngx_http_xet_loc_conf_t   *outer;          /* config of the outer level */
    ngx_http_core_loc_conf_t  *core;
    ngx_http_core_srv_conf_t  *server;
} ngx_http_xet_conf_location_t;


/* ngx_http_xet_router.c */
ngx_int_t ngx_http_xet_api_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_xet_hub_handler(ngx_http_request_t *r);

/*
 * Sets *name to the name of the request's route, for $xet_route.  Returns
 * NGX_OK, or NGX_DECLINED if no route matches path and method, or if out of
 * memory.
 */
ngx_int_t ngx_http_xet_route_name(ngx_http_request_t *r, ngx_str_t *name);

/* Sets the index of each route in metrics; skips Hub routes if hub is 0. */
void ngx_http_xet_route_count_init(ngx_uint_t hub);

/* Returns the index of the request's route in metrics. */
ngx_uint_t ngx_http_xet_route_number(ngx_http_request_t *r);

/*
 * Sets *token if the request's route needs a token, and *scope to the scope
 * that the token must have.  A request without a route needs a token.
 */
void ngx_http_xet_route_access(ngx_http_request_t *r, ngx_uint_t *token,
    xet_scope_e *scope);

/* Sets the action and the object of the request's route for $xet_audit. */
void ngx_http_xet_route_audit(ngx_http_request_t *r,
    ngx_http_xet_audit_t *audit);

/*
 * Returns the kind of upload according to the path and the method of the
 * request; for a xorb, sets hash.  The location may be a proxy without
 * "xet_api".
 */
ngx_http_xet_upload_e ngx_http_xet_route_upload(ngx_http_request_t *r,
    xet_hash_t *hash);

/* ngx_http_xet_access_phase.c */
ngx_int_t ngx_http_xet_preaccess_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_xet_access_handler(ngx_http_request_t *r);

/* ngx_http_xet_measure.c */

/* Counts the request in the metrics; the log phase handler. */
ngx_int_t ngx_http_xet_measure_handler(ngx_http_request_t *r);

/* Run when a worker starts and when it ends. */
void ngx_http_xet_measure_init_process(ngx_cycle_t *cycle);
void ngx_http_xet_measure_exit_process(ngx_cycle_t *cycle);

/* ngx_http_xet_data_filter.c */
ngx_int_t ngx_http_xet_data_filter_init(ngx_conf_t *cf);

/*
 * ngx_http_xet_audit_line.c: makes the line of $xet_audit, in r's pool.
 * Returns NGX_OK, NGX_DECLINED if nothing is logged, or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_audit_init(ngx_conf_t *cf);
ngx_int_t ngx_http_xet_audit_line(ngx_http_request_t *r, ngx_str_t *line);

/* ngx_http_xet_variables.c */
ngx_int_t ngx_http_xet_add_variables(ngx_conf_t *cf);


/* ngx_http_xet_conf.c */
void *ngx_http_xet_create_main_conf(ngx_conf_t *cf);
char *ngx_http_xet_init_main_conf(ngx_conf_t *cf, void *conf);
void *ngx_http_xet_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_xet_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);
ngx_int_t ngx_http_xet_conf_check(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);

/*
 * ngx_http_xet_conf_location.c: records the positions of directives and
 * locations, for errors that are found after parsing.
 */

/* Creates the lists in the temporary pool of the configuration. */
ngx_int_t ngx_http_xet_conf_lists(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);

/*
 * Records the file and line of the current directive for conf.  Returns
 * NGX_CONF_OK or NGX_CONF_ERROR, like a directive setter.
 */
char *ngx_http_xet_conf_keep(ngx_conf_t *cf, ngx_command_t *cmd,
    const void *conf);

/* Records a server or a location when it is merged, with its outer level. */
ngx_int_t ngx_http_xet_conf_location(ngx_conf_t *cf,
    ngx_http_xet_loc_conf_t *outer, ngx_http_xet_loc_conf_t *conf);

/*
 * Logs like ngx_conf_log_error(), with the file and line of the named directive
 * in conf or in an outer level.  If the directive is not in the configuration,
 * uses the position of the directive that gave the location its role.
 */
void ngx_cdecl ngx_http_xet_conf_say(ngx_conf_t *cf, ngx_uint_t level,
    const void *conf, const char *name, const char *fmt, ...);

/*
 * Returns whether the directive is in the location of conf, or in an outer
 * level below "http".
 */
ngx_uint_t ngx_http_xet_conf_within(ngx_http_xet_main_conf_t *xmcf,
    const void *conf, const char *name);

/*
 * Returns the location that nginx finds in a server for a URI, or NULL.  The
 * URI must be followed by a zero byte.
 */
ngx_http_xet_conf_location_t
    *ngx_http_xet_conf_location_find(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_conf_location_t *server, ngx_str_t *uri);

/*
 * Returns whether loc is a prefix or exact location, not a regular expression
 * or a named location.
 */
ngx_uint_t ngx_http_xet_conf_location_plain(ngx_http_xet_conf_location_t *loc);

/* Returns whether the directive is in the block of conf itself. */
ngx_uint_t ngx_http_xet_conf_written(ngx_http_xet_main_conf_t *xmcf,
    const void *conf, const char *name);

/*
 * Returns the server or location with this configuration, or NULL for "http".
 */
ngx_http_xet_conf_location_t
    *ngx_http_xet_conf_location_of(ngx_http_xet_main_conf_t *xmcf, const void
    *conf);

/*
 * ngx_http_xet_conf_expose.c: rejects locations that expose private repos of a
 * Hub without "xet_hub_expose".
 */
ngx_int_t ngx_http_xet_conf_expose(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);

/*
 * ngx_http_xet_conf_closed.c: rejects "xet_read_only" and "xet_delete" where
 * they have no effect.
 */
ngx_int_t ngx_http_xet_conf_closed(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);

/*
 * ngx_http_xet_conf_warn.c: warns of configurations that load but do not work
 * as intended.
 */
void ngx_http_xet_conf_warn(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf);

/* ngx_http_xet_conf_slot.c */
char *ngx_http_xet_conf_str(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_num(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_size(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_word(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_xet_conf_set.c */
char *ngx_http_xet_conf_store(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_gc(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_scrub(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_postgres_read(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_xet_conf_standbys(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);
char *ngx_http_xet_conf_postgres(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_mount(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_hub(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_monitor(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_error(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_verify_body(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_require_tls(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_hosts(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Copies the names of a location's server; nginx frees its own list later. */
ngx_int_t ngx_http_xet_conf_names(ngx_conf_t *cf,
    ngx_http_xet_loc_conf_t *conf);

char *ngx_http_xet_conf_proxies(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_url_base(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_token_epoch(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Parses a value that may have variables. */
ngx_int_t ngx_http_xet_conf_compile(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t *cv);

/* ngx_http_xet_conf_zone.c */
char *ngx_http_xet_conf_token_cache(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_answers(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_upload_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_upload_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* ngx_http_xet_conf_peer.c */
char *ngx_http_xet_conf_store_peer(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_xet_conf_peers(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);

/* ngx_http_xet_mask.c: masks secrets in logs. */
ngx_int_t ngx_http_xet_mask_log(ngx_http_xet_main_conf_t *xmcf,
    ngx_log_t *log);
ngx_int_t ngx_http_xet_mask_init(ngx_conf_t *cf);
ngx_int_t ngx_http_xet_mask_init_module(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);

/*
 * ngx_http_xet_conf_key.c: reads a file with a secret; rejects files that
 * others can read.  The caller must wipe the content.
 */
ngx_int_t ngx_http_xet_conf_read(ngx_conf_t *cf, ngx_str_t *name, size_t max,
    ngx_str_t *content);
void ngx_http_xet_conf_wipe(ngx_str_t *s);

/* ngx_http_xet_conf_peer.c: makes the path of a certificate file absolute. */
char *ngx_http_xet_conf_trusted(ngx_conf_t *cf, ngx_str_t *file);
char *ngx_http_xet_conf_url_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_dedup_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_xet_conf_grant_key(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);
ngx_int_t ngx_http_xet_conf_sign_keys(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
char *ngx_http_xet_conf_token_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* _NGX_HTTP_XET_MODULE_H_INCLUDED_ */
