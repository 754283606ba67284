
/*
 * What every file of the glue shares: configurations, the request context
 * and the routes.  A service has a header of its own.
 */

#ifndef _NGX_HTTP_XET_H_INCLUDED_
#define _NGX_HTTP_XET_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_http_xet_compat.h"

#include "xet.h"


typedef struct ngx_http_xet_ctx_s         ngx_http_xet_ctx_t;
typedef struct ngx_http_xet_lanes_s       ngx_http_xet_lanes_t;
typedef struct ngx_http_xet_body_s        ngx_http_xet_body_t;
typedef struct ngx_http_xet_ingest_s      ngx_http_xet_ingest_t;
typedef struct ngx_http_xet_keep_s        ngx_http_xet_keep_t;
typedef struct ngx_http_xet_verify_s      ngx_http_xet_verify_t;
typedef struct ngx_http_xet_limit_hold_s  ngx_http_xet_limit_hold_t;
typedef struct ngx_http_xet_parts_s       ngx_http_xet_parts_t;
typedef struct ngx_http_xet_route_s       ngx_http_xet_route_t;


#include "ngx_http_xet_auth.h"
#include "ngx_http_xet_limit_zone.h"
#include "ngx_http_xet_task.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_reader.h"
#include "ngx_http_xet_stream.h"
#include "ngx_http_xet_ztensor.h"


/* A key of "xet_url_key": its MAC context belongs to the worker's loop. */

typedef struct {
    ngx_str_t                  id;
    ngx_str_t                  secret;
} ngx_http_xet_key_t;


typedef struct {
    ngx_str_t                  store;          /* absolute, no slash at end */
    ngx_str_t                  temp;           /* <store>/tmp */
    ngx_flag_t                 anonymous;      /* O_TMPFILE */

    ngx_str_t                  conninfo;       /* zero-terminated */
    ngx_uint_t                 reads;          /* sessions a worker */
    ngx_uint_t                 writes;
    ngx_uint_t                 depth;          /* statements in flight */
    ngx_uint_t                 queue;          /* statements waiting */
    ngx_msec_t                 query_timeout;  /* of a read */
    ngx_msec_t                 write_timeout;
    ngx_msec_t                 connect_timeout;
    ngx_uint_t                 dedups;         /* sessions */
    ngx_msec_t                 dedup_timeout;  /* in PostgreSQL */
    ngx_msec_t                 ping_timeout;
    ngx_msec_t                 lock_timeout;   /* of a write */

    ngx_str_t                  pool_name;
    ngx_thread_pool_t         *pool;           /* uploads */
    ngx_str_t                  read_pool_name;
    ngx_thread_pool_t         *read_pool;
    ngx_int_t                  nice;           /* of its threads */

    ngx_array_t               *url_keys;       /* ngx_http_xet_key_t */
    xet_sign_key_t           **sign;           /* as url_keys, a worker's */

    ngx_str_t                  dedup_secret;   /* 32 bytes */
    time_t                     dedup_period;

    xet_jwk_set_t             *token_keys;
    xet_jwk_t                 *token_sign;     /* of token_keys, or NULL */
    xet_hash_t                 token_mark;     /* of what the keys are */
    ngx_shm_zone_t            *token_cache;

    ngx_array_t               *upload_zones;   /* ngx_http_xet_limit_t * */

    const xet_suite_t         *suite;

    ngx_http_xet_lanes_t      *lanes;          /* a worker's */

    ngx_array_t                caches;         /* ngx_open_file_cache_t * */

    ngx_uint_t                 api;            /* some location has xet_api */
    ngx_uint_t                 data;           /* some has xet_data */
    ngx_uint_t                 mint;           /* some has xet_token */
    ngx_uint_t                 verify_body;    /* some has xet_verify_body */
    u_char                    *file;           /* of the first such */
    ngx_uint_t                 line;
} ngx_http_xet_main_conf_t;


typedef struct {
    ngx_flag_t                 api;
    ngx_flag_t                 data;
    ngx_flag_t                 mint;
    ngx_str_t                  api_base;
    ngx_uint_t                 auth;           /* NGX_HTTP_XET_AUTH_* */
    ngx_uint_t                 access;         /* NGX_HTTP_XET_ACCESS_* */
    ngx_uint_t                 dedup_scope;    /* likewise */

    ngx_uint_t                 tls;            /* NGX_HTTP_XET_TLS_* */
    ngx_http_complex_value_t  *tls_value;

    ngx_str_t                  issuer;
    ngx_str_t                  audience;
    time_t                     leeway;
    xet_token_params_t         token;          /* of the three */
    xet_hash_t                 token_mark;     /* of all that decides */

    time_t                     token_lifetime;
    ngx_http_complex_value_t  *token_scope;
    ngx_http_complex_value_t  *token_repo;
    ngx_http_complex_value_t  *token_subject;
    ngx_http_complex_value_t  *token_cas_url;

    ngx_http_complex_value_t  *url_base;
    ngx_http_complex_value_t  *cors;           /* origin */
    time_t                     url_ttl;
    ngx_uint_t                 url_mode;       /* NGX_HTTP_XET_URL_* */
    time_t                     url_quantum;    /* expiries are multiples */
    ngx_uint_t                 url_ranges;     /* in one entry */

    ngx_flag_t                 verify_body;
    ngx_http_xet_limit_t      *upload_limit;   /* NULL: none */
    size_t                     xorb_max;       /* bytes of the chunk region */
    ngx_uint_t                 shard_chunks;   /* that its terms name */
    size_t                     body_buffer;    /* each of two */
    size_t                     read_buffer;    /* likewise */
    time_t                     retry_after;
    ngx_msec_t                 progress;       /* between frames */
    ngx_flag_t                 telemetry;
    ngx_uint_t                 batch_max;      /* files in a batch */
    ngx_uint_t                 plan_terms;     /* in an answer */
    size_t                     plan_buffer;    /* of a plan in a file */

    ngx_http_xet_ztensor_conf_t  ztensor;
} ngx_http_xet_loc_conf_t;


#define NGX_HTTP_XET_AUTH_UNSET  NGX_CONF_UNSET_UINT
#define NGX_HTTP_XET_AUTH_OFF    0
#define NGX_HTTP_XET_AUTH_TOKEN  1


#define NGX_HTTP_XET_ACCESS_STORE  0
#define NGX_HTTP_XET_ACCESS_REPO   1


#define NGX_HTTP_XET_URL_STRICT     0
#define NGX_HTTP_XET_URL_CACHEABLE  1


#define NGX_HTTP_XET_TLS_OFF     0
#define NGX_HTTP_XET_TLS_ON      1
#define NGX_HTTP_XET_TLS_VALUE   2


/* The one namespace of xorbs: a folder of the store, a part of URLs. */
#define NGX_HTTP_XET_NAMESPACE  "default"


#define NGX_HTTP_XET_V0    0x01                /* no version in the path */
#define NGX_HTTP_XET_V1    0x02
#define NGX_HTTP_XET_V2    0x04


typedef enum {
    NGX_HTTP_XET_UPLOAD_NONE = 0,
    NGX_HTTP_XET_UPLOAD_XORB,
    NGX_HTTP_XET_UPLOAD_SHARD
} ngx_http_xet_upload_e;


typedef ngx_int_t (*ngx_http_xet_handler_pt)(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);


/* What the signature of a data URL has let through. */

typedef struct {
    ngx_str_t                   uri;
    time_t                      expires;
    off_t                       size;           /* of the file, -1: unknown */
    unsigned                    ranges:1;       /* they are signed */
    unsigned                    asked:1;        /* the client has this URL */
} ngx_http_xet_data_t;


/*
 * The context of a request, one a request from the moment that the router or
 * the access phase takes it.  At most one job and one statement of a request
 * are in flight.
 */

struct ngx_http_xet_ctx_s {
    ngx_uint_t                  version;        /* NGX_HTTP_XET_V* */
    xet_hash_t                  hash;           /* of the path */

    ngx_http_xet_auth_t        *auth;
    ngx_http_xet_data_t        *data;           /* NULL: not checked */

    ngx_http_xet_task_t         task;
    ngx_http_xet_query_t        query;
    ngx_http_xet_body_t        *body;
    ngx_http_xet_ingest_t      *ingest;
    ngx_http_xet_keep_t        *keep;
    ngx_http_xet_verify_t      *verify;
    ngx_http_xet_stream_t      *stream;
    ngx_http_xet_reader_t      *reader;
    ngx_http_xet_parts_t       *parts;
    ngx_http_xet_ztensor_t     *ztensor;
    ngx_http_xet_limit_hold_t  *hold;           /* of an upload, counted */
    uint64_t                    worth;          /* bytes that count besides */

    void                       *endpoint;       /* its state */
    void                       *state;          /* of a service it uses */

    unsigned                    cors:1;         /* its headers were added */
};


extern ngx_module_t  ngx_http_xet_module;


/* ngx_http_xet_ctx.c */
ngx_http_xet_ctx_t *ngx_http_xet_ctx(ngx_http_request_t *r);

/*
 * A state of size bytes, zeroed, that lives as long as the request; handler
 * frees what it holds.  NULL without memory.
 */
void *ngx_http_xet_state(ngx_http_request_t *r, size_t size,
    ngx_pool_cleanup_pt handler);

/* ngx_http_xet_router.c */
ngx_int_t ngx_http_xet_api_handler(ngx_http_request_t *r);

/* The names in the route's path; NGX_DECLINED where there is none. */
ngx_int_t ngx_http_xet_route_name(ngx_http_request_t *r, ngx_str_t *name);

/* Whether the request's route needs a token, and one to write. */
void ngx_http_xet_route_access(ngx_http_request_t *r, ngx_uint_t *token,
    ngx_uint_t *write);

/*
 * What the request uploads, and the hash in the path of a xorb; as route_name
 * it does not care who answers.
 */
ngx_http_xet_upload_e ngx_http_xet_route_upload(ngx_http_request_t *r,
    xet_hash_t *hash);

/* ngx_http_xet_access.c */
ngx_int_t ngx_http_xet_preaccess_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_xet_access_handler(ngx_http_request_t *r);

/* ngx_http_xet_data_filter.c */
ngx_int_t ngx_http_xet_data_filter_init(ngx_conf_t *cf);

/* ngx_http_xet_variables.c */
ngx_int_t ngx_http_xet_add_variables(ngx_conf_t *cf);

/* ngx_http_xet_process.c */
ngx_int_t ngx_http_xet_init_module(ngx_cycle_t *cycle);
ngx_int_t ngx_http_xet_init_process(ngx_cycle_t *cycle);
void ngx_http_xet_exit_process(ngx_cycle_t *cycle);

/* ngx_http_xet_conf.c */
void *ngx_http_xet_create_main_conf(ngx_conf_t *cf);
char *ngx_http_xet_init_main_conf(ngx_conf_t *cf, void *conf);
void *ngx_http_xet_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_xet_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);
ngx_int_t ngx_http_xet_conf_check(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);

/* ngx_http_xet_conf_pool.c */
ngx_int_t ngx_http_xet_conf_pools(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);

/* ngx_http_xet_conf_set.c */
char *ngx_http_xet_conf_store(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_postgres(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_data(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_error(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_mint(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_xet_conf_verify_body(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_require_tls(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_url_base(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Whether arg is name=value, and which value; it may be empty. */
ngx_uint_t ngx_http_xet_conf_param(ngx_str_t *arg, const char *name,
    ngx_str_t *value);

/* Logs that arg is an invalid parameter; NGX_CONF_ERROR. */
char *ngx_http_xet_conf_invalid(ngx_conf_t *cf, ngx_str_t *arg);

/* ngx_http_xet_conf_key.c */
char *ngx_http_xet_conf_url_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_dedup_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_xet_conf_read(ngx_conf_t *cf, ngx_str_t *name, size_t max,
    ngx_str_t *content);
ngx_int_t ngx_http_xet_conf_hex(u_char *dst, ngx_str_t *hex);
ngx_int_t ngx_http_xet_conf_sign_keys(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);

/* ngx_http_xet_conf_token.c */
char *ngx_http_xet_conf_token_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_merge_token(ngx_conf_t *cf,
    ngx_http_xet_loc_conf_t *prev, ngx_http_xet_loc_conf_t *conf);

/* ngx_http_xet_conf_zone.c */
char *ngx_http_xet_conf_token_cache(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_upload_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_xet_conf_upload_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* ngx_http_xet_conf_ztensor.c */
void ngx_http_xet_conf_create_ztensor(ngx_http_xet_ztensor_conf_t *conf);
void ngx_http_xet_conf_merge_ztensor(ngx_http_xet_ztensor_conf_t *prev,
    ngx_http_xet_ztensor_conf_t *conf);
char *ngx_http_xet_conf_ztensor_limits(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* endpoints */
ngx_int_t ngx_http_xet_token_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_xet_reconstruction_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_batch_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_chunk_hashes_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_chunk_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_xorb_post_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_xorb_get_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_xorb_head_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_grant_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_shard_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_file_put_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_file_get_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_file_delete_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_list_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_object_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_data_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_reconstruction_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_verify_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_telemetry_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_health_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_live_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);


#endif /* _NGX_HTTP_XET_H_INCLUDED_ */
