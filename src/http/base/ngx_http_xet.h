
/*
 * What every file of the glue shares: configurations and the context of a
 * request.  Each wing has a header of its own.
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

/* what the wings keep in the context of a request, or in a configuration */

typedef struct ngx_http_xet_match_s       ngx_http_xet_match_t;
typedef struct ngx_http_xet_task_s        ngx_http_xet_task_t;
typedef struct ngx_http_xet_auth_s        ngx_http_xet_auth_t;
typedef struct ngx_http_xet_limit_s       ngx_http_xet_limit_t;
typedef struct ngx_http_xet_lanes_s       ngx_http_xet_lanes_t;
typedef struct ngx_http_xet_query_s       ngx_http_xet_query_t;
typedef struct ngx_http_xet_body_s        ngx_http_xet_body_t;
typedef struct ngx_http_xet_ingest_s      ngx_http_xet_ingest_t;
typedef struct ngx_http_xet_keep_s        ngx_http_xet_keep_t;
typedef struct ngx_http_xet_verify_s      ngx_http_xet_verify_t;
typedef struct ngx_http_xet_hold_s        ngx_http_xet_hold_t;
typedef struct ngx_http_xet_stream_s      ngx_http_xet_stream_t;
typedef struct ngx_http_xet_reader_s      ngx_http_xet_reader_t;
typedef struct ngx_http_xet_parts_s       ngx_http_xet_parts_t;
typedef struct ngx_http_xet_register_s    ngx_http_xet_register_t;
typedef struct ngx_http_xet_recon_s       ngx_http_xet_recon_t;
typedef struct ngx_http_xet_ztensor_s     ngx_http_xet_ztensor_t;
typedef struct ngx_http_xet_zt_batch_s    ngx_http_xet_zt_batch_t;

/* what a route keeps in the context of its request */

typedef struct ngx_http_xet_xorb_head_s   ngx_http_xet_xorb_head_t;
typedef struct ngx_http_xet_shard_s       ngx_http_xet_shard_t;
typedef struct ngx_http_xet_batch_req_s   ngx_http_xet_batch_req_t;
typedef struct ngx_http_xet_hashes_s      ngx_http_xet_hashes_t;
typedef struct ngx_http_xet_grant_s       ngx_http_xet_grant_t;
typedef struct ngx_http_xet_zt_component_s  ngx_http_xet_zt_component_t;


/* A key of "xet_url_key"; its MAC context is for a worker's event loop only. */

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
    ngx_int_t                  nice;           /* of both pools' threads */

    ngx_array_t               *url_keys;       /* ngx_http_xet_key_t */
    xet_sign_key_t           **sign;           /* a worker's, of url_keys */

    ngx_str_t                  dedup_secret;   /* 32 bytes */
    time_t                     dedup_period;

    xet_jwk_set_t             *token_keys;
    xet_jwk_t                 *token_sign;     /* of token_keys, or NULL */
    xet_hash_t                 token_mark;     /* hash of the key files */
    ngx_shm_zone_t            *token_cache;

    ngx_array_t               *upload_zones;   /* ngx_http_xet_limit_t * */

    const xet_suite_t         *suite;

    ngx_http_xet_lanes_t      *lanes;          /* a worker's */

    ngx_array_t                caches;         /* ngx_open_file_cache_t * */

    ngx_uint_t                 api;            /* some location has xet_api */
    ngx_uint_t                 data;           /* some has xet_data */
    ngx_uint_t                 mint;           /* some has xet_token */
    ngx_uint_t                 verify_body;    /* some has xet_verify_body */
    u_char                    *file;           /* first xet_api or xet_data */
    ngx_uint_t                 line;           /* in file */
} ngx_http_xet_main_conf_t;


typedef struct {
    ngx_flag_t                 api;
    ngx_flag_t                 data;
    ngx_flag_t                 mint;
    ngx_str_t                  api_base;
    ngx_uint_t                 auth;           /* NGX_HTTP_XET_AUTH_* */
    ngx_uint_t                 access;         /* NGX_HTTP_XET_ACCESS_* */
    ngx_uint_t                 dedup_scope;    /* NGX_HTTP_XET_ACCESS_* */

    ngx_uint_t                 tls;            /* NGX_HTTP_XET_TLS_* */
    ngx_http_complex_value_t  *tls_value;

    ngx_str_t                  issuer;
    ngx_str_t                  audience;
    time_t                     leeway;
    xet_token_params_t         token;          /* issuer, audience, leeway */
    xet_hash_t                 token_mark;     /* keys and token, hashed */

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
    ngx_uint_t                 url_ranges;     /* in one URL, at most */

    ngx_flag_t                 verify_body;
    ngx_http_xet_limit_t      *upload_limit;   /* NULL: none */
    size_t                     xorb_max;       /* bytes of the chunk region */
    ngx_uint_t                 shard_chunks;   /* in the terms of a shard */
    size_t                     body_buffer;    /* an upload has two */
    size_t                     read_buffer;    /* a download has two */
    time_t                     retry_after;
    ngx_msec_t                 progress;       /* between frames */
    ngx_flag_t                 telemetry;
    ngx_uint_t                 batch_max;      /* files in a batch */
    ngx_uint_t                 plan_terms;     /* in an answer */
    size_t                     plan_buffer;    /* to sort a plan in a file */
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


typedef ngx_int_t (*ngx_http_xet_handler_pt)(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);


/* What the signature of a data URL has let through. */

typedef struct {
    ngx_str_t                   uri;
    time_t                      expires;
    off_t                       size;           /* of the file, -1: unknown */
    unsigned                    ranges:1;       /* the URL names ranges */
    unsigned                    asked:1;        /* the client has this URL */
} ngx_http_xet_data_t;


/*
 * The context of a request, made by the first handler or variable of the module
 * that needs it.  At most one job and one statement of a request are in flight.
 */

struct ngx_http_xet_ctx_s {
    ngx_uint_t                  version;        /* NGX_HTTP_XET_V* */
    xet_hash_t                  hash;           /* in the path */

    ngx_http_xet_match_t       *match;          /* of path and method */
    ngx_http_xet_auth_t        *auth;
    ngx_http_xet_data_t        *data;           /* NULL: no signature checked */

    ngx_http_xet_task_t        *task;
    ngx_http_xet_query_t       *query;
    ngx_http_xet_body_t        *body;
    ngx_http_xet_ingest_t      *ingest;
    ngx_http_xet_keep_t        *keep;
    ngx_http_xet_verify_t      *verify;
    ngx_http_xet_stream_t      *stream;
    ngx_http_xet_reader_t      *reader;
    ngx_http_xet_parts_t       *parts;
    ngx_http_xet_register_t    *reg;
    ngx_http_xet_recon_t       *recon;
    ngx_http_xet_ztensor_t     *ztensor;
    ngx_http_xet_zt_batch_t    *zt_batch;
    ngx_http_xet_hold_t        *hold;           /* a limit counts the upload */
    ngx_pool_cleanup_pt         release;        /* of hold */
    uint64_t                    worth;          /* counted besides the body */

    union {
        ngx_http_xet_xorb_head_t     *xorb_head;
        ngx_http_xet_shard_t         *shard;
        ngx_http_xet_batch_req_t     *batch;
        ngx_http_xet_hashes_t        *hashes;
        ngx_http_xet_grant_t         *grant;
        ngx_http_xet_zt_component_t  *component;
    } route;                                    /* the state of the route */

    unsigned                    cors:1;         /* CORS headers were added */
};


extern ngx_module_t  ngx_http_xet_module;


/* ngx_http_xet_ctx.c */
ngx_http_xet_ctx_t *ngx_http_xet_ctx(ngx_http_request_t *r);

/*
 * Gives back the place of an upload in its limit, which the request holds until
 * it is answered.  Called before the last of the answer is sent: a client may
 * begin its next upload before nginx has freed the request.
 */
void ngx_http_xet_release(ngx_http_request_t *r);

/*
 * Allocates a state of size bytes, zeroed, that lives as long as the request's
 * pool; handler is called then and frees what the state holds.  NULL without
 * memory.
 */
void *ngx_http_xet_state(ngx_http_request_t *r, size_t size,
    ngx_pool_cleanup_pt handler);


#endif /* _NGX_HTTP_XET_H_INCLUDED_ */
