
/*
 * Definitions for all files of the nginx module: the configurations, and the
 * context of a request.  Each folder also has its own header.
 */

#ifndef _NGX_HTTP_XET_H_INCLUDED_
#define _NGX_HTTP_XET_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_http_xet_compat.h"
#include "ngx_http_xet_metrics.h"
#include "ngx_http_xet_zone.h"
#include "xet.h"


typedef struct ngx_http_xet_ctx_s         ngx_http_xet_ctx_t;

/* types that other folders define, for contexts and configurations */

typedef struct ngx_http_xet_match_s       ngx_http_xet_match_t;
typedef struct ngx_http_xet_task_s        ngx_http_xet_task_t;
typedef struct ngx_http_xet_audit_s       ngx_http_xet_audit_t;
typedef struct ngx_http_xet_auth_s        ngx_http_xet_auth_t;
typedef struct ngx_http_xet_limit_s       ngx_http_xet_limit_t;
typedef struct ngx_http_xet_pg_pools_s    ngx_http_xet_pg_pools_t;
typedef struct ngx_http_xet_pg_host_s     ngx_http_xet_pg_host_t;
typedef struct ngx_http_xet_standbys_s    ngx_http_xet_standbys_t;
typedef struct ngx_http_xet_store_s       ngx_http_xet_store_t;
typedef struct ngx_http_xet_query_s       ngx_http_xet_query_t;
typedef struct ngx_http_xet_body_s        ngx_http_xet_body_t;
typedef struct ngx_http_xet_ingest_s      ngx_http_xet_ingest_t;
typedef struct ngx_http_xet_xorb_commit_s ngx_http_xet_xorb_commit_t;
typedef struct ngx_http_xet_xorb_file_s   ngx_http_xet_xorb_file_t;
typedef struct ngx_http_xet_verify_s      ngx_http_xet_verify_t;
typedef struct ngx_http_xet_hold_s        ngx_http_xet_hold_t;
typedef struct ngx_http_xet_look_s        ngx_http_xet_look_t;
typedef struct ngx_http_xet_copy_ids_s    ngx_http_xet_copy_ids_t;
typedef struct ngx_http_xet_signed_s      ngx_http_xet_signed_t;
typedef struct ngx_http_xet_stream_s      ngx_http_xet_stream_t;
typedef struct ngx_http_xet_reader_s      ngx_http_xet_reader_t;
typedef struct ngx_http_xet_parts_s       ngx_http_xet_parts_t;
typedef struct ngx_http_xet_register_s    ngx_http_xet_register_t;
typedef struct ngx_http_xet_reconstruct_s ngx_http_xet_reconstruct_t;
typedef struct ngx_http_xet_ztensor_s     ngx_http_xet_ztensor_t;
typedef struct ngx_http_xet_hub_s         ngx_http_xet_hub_t;
typedef struct ngx_http_xet_chunk_filter_s  ngx_http_xet_chunk_filter_t;

/* types that routes define, for the context of a request */

typedef struct ngx_http_xet_xorb_head_s    ngx_http_xet_xorb_head_t;
typedef struct ngx_http_xet_chunk_s        ngx_http_xet_chunk_t;
typedef struct ngx_http_xet_shard_s        ngx_http_xet_shard_t;
typedef struct ngx_http_xet_batch_req_s    ngx_http_xet_batch_req_t;
typedef struct ngx_http_xet_hashes_s       ngx_http_xet_hashes_t;
typedef struct ngx_http_xet_zt_component_s ngx_http_xet_zt_component_t;
typedef struct ngx_http_xet_zt_verify_s    ngx_http_xet_zt_verify_t;


/*
 * The values of directives whose argument is a keyword; stored as ngx_uint_t.
 */

typedef enum {
    NGX_HTTP_XET_AUTH_OFF = 0,
    NGX_HTTP_XET_AUTH_TOKEN
} ngx_http_xet_auth_e;

#define NGX_HTTP_XET_AUTH_UNSET  NGX_CONF_UNSET_UINT

/* The value of "xet_token_epoch" without a number; -1 means unset. */

#define NGX_HTTP_XET_NO_NUMBER   -2

typedef enum {
    NGX_HTTP_XET_ACCESS_STORE = 0,
    NGX_HTTP_XET_ACCESS_REPO
} ngx_http_xet_access_e;

typedef enum {
    NGX_HTTP_XET_URL_STRICT = 0,
    NGX_HTTP_XET_URL_CACHEABLE
} ngx_http_xet_url_mode_e;

/* The target of data URLs: nginx, or the object store. */

typedef enum {
    NGX_HTTP_XET_DATA_PROXY = 0,
    NGX_HTTP_XET_DATA_PRESIGNED
} ngx_http_xet_data_mode_e;

typedef enum {
    NGX_HTTP_XET_TLS_OFF = 0,
    NGX_HTTP_XET_TLS_ON,
    NGX_HTTP_XET_TLS_VALUE
} ngx_http_xet_tls_e;


typedef enum {
    NGX_HTTP_XET_AUDIT_OFF = 0,
    NGX_HTTP_XET_AUDIT_WRITES,
    NGX_HTTP_XET_AUDIT_ALL
} ngx_http_xet_audit_e;


/* The format of the error responses that "xet_error" sends. */

typedef enum {
    NGX_HTTP_XET_ERROR_OFF = 0,
    NGX_HTTP_XET_ERROR_API,
    NGX_HTTP_XET_ERROR_HUB
} ngx_http_xet_error_e;

/* True if a location serves a Hub, or sends its errors in the Hub format. */

#define ngx_http_xet_of_hub(xlcf)                                             \
    ((xlcf)->hub || (xlcf)->error == NGX_HTTP_XET_ERROR_HUB)


/* What xet_metrics or xet_status serves in a location. */

typedef enum {
    NGX_HTTP_XET_MONITOR_OFF = 0,
    NGX_HTTP_XET_MONITOR_PROMETHEUS,
    NGX_HTTP_XET_MONITOR_JSON,
    NGX_HTTP_XET_MONITOR_STATUS,
    NGX_HTTP_XET_MONITOR_REPOS                 /* status with repos */
} ngx_http_xet_monitor_e;


/* A key of "xet_url_key", derived from the secret in the key file. */

typedef struct {
    ngx_str_t                  id;
    ngx_str_t                  secret;
} ngx_http_xet_key_t;


/* Keys for LFS URLs, XET_KEY_LEN bytes each; the first key signs. */

typedef struct {
    u_char                    *elts;
    ngx_uint_t                 n;
} ngx_http_xet_lfs_keys_t;


/* A peer of "xet_store_peer" for repairs: a folder, or a node. */

typedef struct {
    ngx_str_t                  path;           /* absolute, no final slash */
    ngx_str_t                  url;            /* node's URL; path is empty */
    ngx_str_t                  header;         /* "Authorization: ..." */
    ngx_str_t                  trusted;        /* file of CA certificates */
    ngx_msec_t                 timeout;
    u_char                    *file;           /* position of the directive */
    ngx_uint_t                 line;
} ngx_http_xet_peer_t;


/* Member types for the kinds of directives.def. */

#define XET_KIND_FLAG   ngx_flag_t
#define XET_KIND_NUM    ngx_uint_t
#define XET_KIND_WORD   ngx_uint_t
#define XET_KIND_SIZE   size_t
#define XET_KIND_SEC    time_t
#define XET_KIND_MSEC   ngx_msec_t
#define XET_KIND_STR    ngx_str_t
#define XET_KIND_VALUE  ngx_http_complex_value_t *


typedef struct {
#define XET_HTTP_DIRECTIVE(name, kind, member, value, post)                   \
    XET_KIND_##kind  member;
#define XET_POSTGRES_PARAM(name, kind, member, value, min, max, words)        \
    XET_KIND_##kind  member;

#include "directives.def"

    ngx_http_xet_store_t      *store;          /* NULL: no xet_store */

    ngx_http_xet_pg_host_t    *primary;        /* NULL: no xet_postgres */
    ngx_array_t               *standbys;       /* ngx_http_xet_standby_conf_t */

    ngx_thread_pool_t         *pool;           /* thread pool for uploads */
    ngx_thread_pool_t         *read_pool;

    ngx_array_t               *url_keys;       /* ngx_http_xet_key_t */
    xet_sign_key_t           **sign;           /* keys made of url_keys */

    ngx_str_t                  dedup_secret;   /* XET_KEY_LEN bytes */

    xet_jwk_set_t             *token_keys;
    xet_jwk_t                 *token_sign;     /* one of token_keys, or NULL */
    xet_hash_t                 token_mark;     /* hash of the key files */
    ngx_http_xet_lfs_keys_t    lfs_keys;       /* derived from token keys */
    /* derived from token_sign */
    u_char                     grant_key[XET_KEY_LEN];
    ngx_shm_zone_t            *token_cache;
    ngx_http_xet_cache_t       plan_cache;
    ngx_http_xet_cache_t       chunk_filter;

    ngx_array_t               *upload_zones;   /* ngx_http_xet_limit_t * */

    ngx_shm_zone_t            *metrics_zone;   /* NULL: not shared */

    const xet_suite_t         *suite;

    ngx_http_xet_pg_pools_t   *pg_pools;       /* sessions of the worker */
    ngx_http_xet_standbys_t   *reading;        /* sessions to standbys */

    ngx_array_t                caches;         /* ngx_open_file_cache_t * */

    ngx_flag_t                 gc;
    ngx_uint_t                 gc_grace;       /* seconds */
    ngx_msec_t                 gc_interval;
    ngx_uint_t                 gc_rate;        /* rows a second */
    ngx_flag_t                 scrub;
    off_t                      scrub_rate;     /* bytes a second */
    ngx_msec_t                 scrub_interval;
    ngx_array_t               *peers;          /* ngx_http_xet_peer_t */

    ngx_uint_t                 api;            /* some location has xet_api */
    ngx_uint_t                 data;           /* some location has xet_data */
    ngx_uint_t                 mint;           /* some location has xet_token */
    ngx_uint_t                 hub;            /* some location has xet_hub */
    ngx_uint_t                 verify_body;    /* some xet_verify_body is on */
    ngx_uint_t                 monitor;        /* xet_metrics or xet_status */
    /* position of the first xet_api or xet_data directive */
    u_char                    *file;
    ngx_uint_t                 line;

    ngx_int_t                  request_id;     /* index of $request_id */

    ngx_array_t                logs;           /* ngx_log_t *: all error logs */
    ngx_uint_t                 masked;         /* secrets are masked in logs */
    ngx_array_t               *key_marks;      /* temporary: hashes of keys */
    ngx_array_t               *lines;          /* temporary: directives */
    ngx_array_t               *locations;      /* temporary: locations */
} ngx_http_xet_main_conf_t;


typedef struct {
#define XET_DIRECTIVE(name, contexts, kind, member, value, post)              \
    XET_KIND_##kind  member;

#include "directives.def"

    ngx_flag_t                 api;
    ngx_flag_t                 data;
    ngx_flag_t                 mint;
    ngx_int_t                  error;          /* NGX_HTTP_XET_ERROR_* */
    ngx_flag_t                 hub;
    ngx_int_t                  monitor;        /* NGX_HTTP_XET_MONITOR_* */
    ngx_str_t                  monitor_page;   /* URI of the page, or empty */
    ngx_uint_t                 repos;          /* "xet_access repo" applies */

    ngx_uint_t                 tls;            /* NGX_HTTP_XET_TLS_* */
    ngx_http_complex_value_t  *tls_value;

    xet_token_params_t         token;          /* issuer, audience, leeway */
    xet_hash_t                 token_mark;     /* hash of keys and rules */

    off_t                      token_number;   /* or NGX_HTTP_XET_NO_NUMBER */
    time_t                     token_period;   /* seconds; 0: no period */

    ngx_http_complex_value_t  *url_base;       /* NULL: without variables */
    ngx_array_t               *urls;           /* xet_url_t, or NULL */
    ngx_array_t               *proxies;        /* ngx_cidr_t, or NULL */
    ngx_array_t               *hosts;          /* ngx_str_t, or NULL */
    ngx_array_t               *names;          /* server names: ngx_str_t */

    ngx_flag_t                 verify_body;
    ngx_http_xet_limit_t      *upload_limit;   /* NULL: no limit */
    ngx_uint_t                 serves;         /* server has API locations */
    ngx_str_t                 *hub_at;         /* xet_hub_base of the server */
} ngx_http_xet_loc_conf_t;


/* The only namespace of xorbs: a folder in the store, and a part of URLs. */
#define NGX_HTTP_XET_NAMESPACE  "default"


#define NGX_HTTP_XET_V0    0x01                /* no version in the path */
#define NGX_HTTP_XET_V1    0x02
#define NGX_HTTP_XET_V2    0x04


typedef ngx_int_t (*ngx_http_xet_handler_pt)(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);


/* The parameters of an error response; omitted members are 0. */

typedef struct {
    xet_status_t                core;           /* sets the next three, if 0 */
    ngx_uint_t                  status;
    const char                 *code;
    const char                 *message;

    time_t                      after;          /* 0: "xet_retry_after" */
    xet_buf_t                  *body;           /* NULL: code and message */
    const char                 *type;           /* type of body; NULL: JSON */
    const char                 *line;           /* status line, or NULL */
    unsigned                    logged:1;       /* error is already logged */
} ngx_http_xet_error_t;


/* The permissions in a signed data URL. */

typedef struct {
    ngx_str_t                   uri;
    time_t                      expires;
    off_t                       size;           /* file size; -1: unknown */
    ngx_str_t                   etag;           /* ETag of the copy */
    unsigned                    ranges:1;       /* only ranges are allowed */
    unsigned                    asked:1;        /* the client sent this URL */
} ngx_http_xet_data_t;


/*
 * The context of a request, created by the first handler or variable of the
 * module that needs it.  A request has at most one job and one statement in
 * flight.
 */

struct ngx_http_xet_ctx_s {
    ngx_uint_t                   version;       /* NGX_HTTP_XET_V* */
    xet_hash_t                   hash;          /* hash in the path */
    ngx_str_t                    id;            /* id of a grant, or empty */
    ngx_str_t                    repo;          /* set by the Hub, or empty */

    ngx_http_xet_match_t        *match;         /* route, by path and method */
    ngx_http_xet_auth_t         *auth;
    ngx_http_xet_data_t         *data;          /* NULL: signature unchecked */

    ngx_http_xet_audit_t        *audit;         /* NULL: not logged */
    const char                  *code;          /* error code, or NULL */

    ngx_http_xet_task_t         *task;
    ngx_http_xet_query_t        *query;
    ngx_http_xet_body_t         *body;
    ngx_http_event_handler_pt    drained;       /* callback of body_drain() */
    ngx_http_xet_ingest_t       *ingest;
    ngx_http_xet_xorb_commit_t  *xorb_commit;
    ngx_http_xet_verify_t       *verify;
    ngx_http_xet_stream_t       *stream;
    ngx_http_xet_reader_t       *reader;
    ngx_http_xet_parts_t        *parts;
    ngx_http_xet_register_t     *reg;
    ngx_http_xet_reconstruct_t  *recon;
    ngx_http_xet_ztensor_t      *ztensor;
    ngx_http_xet_hold_t         *hold;          /* slot of a limit, or NULL */
    ngx_pool_cleanup_pt          release;       /* frees hold */
    uint64_t                     began;         /* time of creation, in ms */
    uint64_t                     worth;         /* bytes added for the limit */
    ngx_http_xet_look_t         *look;          /* state of the quota check */
    ngx_http_xet_signed_t       *store;         /* headers of store requests */
    xet_token_claims_t          *claims;        /* of the token to issue */
    uint64_t                     epoch;         /* see xet.token_epoch() */
    ngx_http_xet_chunk_filter_t  *chunk_filter;  /* the filters to make */

    union {
        ngx_http_xet_xorb_head_t     *xorb_head;
        ngx_http_xet_shard_t         *shard;
        ngx_http_xet_batch_req_t     *batch;
        ngx_http_xet_chunk_t         *chunk;
        ngx_http_xet_hashes_t        *hashes;
        ngx_http_xet_zt_component_t  *component;
        ngx_http_xet_zt_verify_t     *zt_verify;
        ngx_http_xet_hub_t           *hub;
    } route;                                    /* the state of the route */

    unsigned                    cors:1;         /* CORS headers were added */
    unsigned                    full_413:1;     /* status if the disk is full */
};


extern ngx_module_t  ngx_http_xet_module;


/* ngx_http_xet_ctx.c */
ngx_http_xet_ctx_t *ngx_http_xet_ctx(ngx_http_request_t *r);

/* Returns the context of a request, which must already have one. */
#define ngx_http_xet_ctx_of(r)                                                \
    ((ngx_http_xet_ctx_t *) ngx_http_get_module_ctx(r, ngx_http_xet_module))

/*
 * Frees the slot that an upload holds in the zone of its upload limit.  Must be
 * called before the end of the response is sent, because the client may start
 * its next upload before nginx frees the request.
 */
void ngx_http_xet_release(ngx_http_request_t *r);

/*
 * Allocates size bytes of zeroed data in the request's pool.  When the pool is
 * destroyed, handler is called to free resources that the data refers to.
 * Returns NULL if out of memory.
 */
void *ngx_http_xet_state(ngx_http_request_t *r, size_t size,
    ngx_pool_cleanup_pt handler);


/*
 * ngx_http_xet_client.c: tests whether the client of a request that changes
 * data is still waiting for the response.
 */

void ngx_http_xet_client_init(ngx_cycle_t *cycle);

/* Returns 1 if the client has closed the connection, or its sending side. */
ngx_uint_t ngx_http_xet_client_gone(ngx_http_request_t *r);

/*
 * Returns 1 if the worker was halted (for example by SIGSTOP) after the time
 * "began", or less than a second before "began".  The time is from
 * ngx_http_xet_clock().
 */
ngx_uint_t ngx_http_xet_halted(uint64_t began);

/* Returns a monotonic time in ms, with an arbitrary start. */
uint64_t ngx_http_xet_clock(void);


/* ngx_http_xet_output.c: headers of requests and responses. */

/* Adds a header to the response; the strings must live as long as r. */
ngx_int_t ngx_http_xet_header(ngx_http_request_t *r, const char *key,
    const char *value);

/*
 * Adds a header like ngx_http_xet_header(), from a string without a
 * terminating zero.  Returns the header for further changes, or NULL if out of
 * memory.
 */
ngx_table_elt_t *ngx_http_xet_header_add(ngx_http_request_t *r,
    const char *key, const ngx_str_t *value);

/*
 * Removes all headers with this name from the response, by setting their hash
 * to 0.
 */
void ngx_http_xet_header_remove(ngx_http_request_t *r, const char *name);

/*
 * Returns the n-th header with this name, from 0, in headers_in or
 * headers_out, or NULL.  Removed headers don't count.
 */
ngx_table_elt_t *ngx_http_xet_header_find(ngx_list_t *headers,
    const char *name, ngx_uint_t n);

/* Returns whether the client accepts HTML. */
ngx_uint_t ngx_http_xet_browser(ngx_http_request_t *r);


/* ngx_http_xet_error.c: sends errors as JSON, and logs them. */

/*
 * All functions except ngx_http_xet_error_begin() and _end() send a complete
 * response.  They return a code for ngx_http_finalize_request(), so content
 * handlers and callbacks can return the result.  An unread body is discarded.
 */

/*
 * Sends {"error":{"code","message"}}, and logs a line.  Responses with status
 * 429 or 5xx, except 501, have a Retry-After header.
 */
ngx_int_t ngx_http_xet_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);

/*
 * Sends an error like ngx_http_xet_error(), with the code, message and HTTP
 * status of a core status.
 */
ngx_int_t ngx_http_xet_error_status(ngx_http_request_t *r,
    xet_status_t status);

/*
 * Sends an error with other members of ngx_http_xet_error_t (.member = value,
 * …).  "body" is JSON made with ngx_http_xet_error_begin() and _end(), or
 * content of another type.  "line" is the status line of HTTP/1, for clients
 * such as hf_xet that show users the reason phrase and not the message.  With
 * "line", the message is also sent as "error_description", for clients in
 * JavaScript.
 */
#define ngx_http_xet_error_more(r, ...)                                       \
    ngx_http_xet_error_send(r, &(ngx_http_xet_error_t) { __VA_ARGS__ })

ngx_int_t ngx_http_xet_error_send(ngx_http_request_t *r,
    const ngx_http_xet_error_t *error);

/*
 * Records how many bytes a full disk has left, in any thread.  For the next
 * seconds, errors with XET_STORE_FULL contain this number.
 */
void ngx_http_xet_error_left(uint64_t bytes);

/*
 * Returns a status line with the message, or NULL if out of memory.  The line
 * lives as long as the request.
 */
const char *ngx_http_xet_error_line(ngx_http_request_t *r, ngx_uint_t status,
    const char *message);

/* Return a message for XET_STORE_FULL, which lives as long as the request. */
const char *ngx_http_xet_error_full(ngx_http_request_t *r);
const char *ngx_http_xet_error_room(ngx_http_request_t *r, uint64_t left,
    uint64_t size);

/*
 * Sends 404 if methods is 0, since no route has the path.  Otherwise sends 405
 * with the methods that the path allows.
 */
ngx_int_t ngx_http_xet_error_route(ngx_http_request_t *r,
    ngx_uint_t methods);

/*
 * Begin and end the JSON of an error.  The JSON is written to b, with memory
 * from the request's pool.  Between the two calls the caller may add members to
 * j.
 */
void ngx_http_xet_error_begin(ngx_http_request_t *r, xet_buf_t *b,
    xet_json_t *j, const char *code, const char *message);
void ngx_http_xet_error_end(xet_json_t *j);


/* The content handler of "xet_error", the target of error_page. */
ngx_int_t ngx_http_xet_error_handler(ngx_http_request_t *r);


/* ngx_http_xet_output.c: response bodies, and ends of responses. */

/*
 * ngx_http_xet_send(), _send_literal() and _send_head() send a complete
 * response.  They return a code for ngx_http_finalize_request(), so content
 * handlers and callbacks can return the result.
 */

/*
 * Aborts a response that has started and can't be completed, so that the client
 * notices that the response is truncated.  Data already sent still arrives,
 * including earlier responses, because nginx uses a lingering close; an
 * immediate close would reset a connection with unread requests.  For a
 * response with neither a length nor chunked encoding the connection is reset,
 * because to the client a normal close would be the end of the response.
 * Returns a value for ngx_http_finalize_request(), or NGX_ERROR for a
 * subrequest, which ends the main request.
 */
ngx_int_t ngx_http_xet_break_off(ngx_http_request_t *r);

/*
 * Makes nginx discard an unread body.  A client that waits for "100 Continue"
 * gets the final response instead.  Returns NGX_OK, or a value that the
 * handler must return.
 */
ngx_int_t ngx_http_xet_drop_body(ngx_http_request_t *r);

/*
 * Sends the bytes of b as the response body; the nodes of b must live as long
 * as the request.
 */
ngx_int_t ngx_http_xet_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, xet_buf_t *b);

/*
 * Sets *out to a chain of buffers that refer to the bytes of b, and *last to
 * the last buffer.  If b is empty, the chain has one buffer, which ends the
 * response.  Returns NGX_OK, or NGX_ERROR if out of memory or if b has failed.
 */
ngx_int_t ngx_http_xet_output_chain(ngx_pool_t *pool, xet_buf_t *b,
    ngx_chain_t **out, ngx_buf_t **last);

/*
 * Sets the status, type and length of a response; length -1 means unknown.
 * nginx does not apply Range and If-* headers to this response.
 */
void ngx_http_xet_output_type(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, off_t length);

/*
 * Converts rc, which nginx has returned for the last part of a response.  It is
 * NGX_AGAIN if the client has not taken all data yet.  This function returns
 * NGX_OK instead, because nginx itself sends the rest after the request is
 * finalized.  In this module NGX_AGAIN means that the request will be finalized
 * later.
 */
ngx_int_t ngx_http_xet_sent(ngx_int_t rc);

/* Sends 200 and a copy of json, which is zero-terminated. */
ngx_int_t ngx_http_xet_send_literal(ngx_http_request_t *r, const char *json);

/* Responds to HEAD: sends 200 and the headers for a body of length bytes. */
ngx_int_t ngx_http_xet_send_head(ngx_http_request_t *r, off_t length);

/* An xet_alloc_pt that allocates from an ngx_pool_t. */
void *ngx_http_xet_alloc(void *pool, size_t size);


/* ngx_http_xet_cors.c: requests by web pages of other origins. */

/*
 * Adds CORS headers for the origin that "xet_cors" allows, unless the response
 * already has them.  Returns NGX_OK; NGX_DECLINED if "xet_cors" is off or
 * allows no origin for this request; or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_cors(ngx_http_request_t *r);

/* Returns whether "xet_cors" allows this origin. */
ngx_uint_t ngx_http_xet_cors_allows(ngx_http_request_t *r,
    const ngx_str_t *origin);

/* Responds to a preflight request; call ngx_http_xet_cors() first. */
ngx_int_t ngx_http_xet_cors_preflight(ngx_http_request_t *r);


/* The backlog: the part of a response that the client has not received yet. */

/*
 * Called after sending output.  Returns NGX_OK if all data was sent to the
 * client, NGX_AGAIN if data remains, or NGX_ERROR if the request was finalized.
 * With NGX_AGAIN, write events of the socket call handler, unless it is NULL.
 */
ngx_int_t ngx_http_xet_backlog_wait(ngx_http_request_t *r,
    ngx_http_event_handler_pt handler);

/*
 * Sends as much of the backlog as the socket accepts.  Called by a handler of
 * write events, which then calls ngx_http_xet_backlog_wait().  Returns NGX_OK,
 * or NGX_ERROR if the request was finalized, for example because the client has
 * taken no data for "send_timeout".
 */
ngx_int_t ngx_http_xet_backlog_send(ngx_http_request_t *r);


/* ngx_http_xet_task.c: jobs of requests in thread pools. */

/* Runs in a thread; must not use a request, its pool or its log. */
typedef void (*ngx_http_xet_job_pt)(void *data, ngx_log_t *log);

/* Runs in the event loop after the job, unless the request was terminated. */
typedef void (*ngx_http_xet_done_pt)(ngx_http_request_t *r, void *data);


/* A waiting or running job, as counted by the gauges. */

typedef struct {
    ngx_queue_t                 queue;
    ngx_uint_t                  pool;          /* NGX_HTTP_XET_POOL_* */
    ngx_msec_t                  start;
} ngx_http_xet_mark_t;


/* A request has one task, which runs the request's jobs one after another. */

struct ngx_http_xet_task_s {
    ngx_http_request_t         *request;
    ngx_thread_task_t          *task;

    ngx_http_xet_done_pt        done;
    void                       *data;
    ngx_http_xet_mark_t         mark;

    /*
     * Handles write events of the client's socket during and after a job, so
     * that the response continues during the job.  If NULL, these events are
     * ignored.
     */
    ngx_http_event_handler_pt   write;

    unsigned                    upload:1;  /* use the pool for uploads */
    unsigned                    busy:1;    /* a job is posted */
    unsigned                    ready:1;   /* finished, done not called yet */
    unsigned                    beside:1;  /* keeps another module's handlers */
    unsigned                    dead:1;    /* the request was terminated */
};


/*
 * Posts a job; data must live until the request's pool is destroyed.  Returns
 * NGX_OK, or NGX_ERROR if the queue of the pool is full, if out of memory, or
 * if the request already has a job.  With NGX_ERROR, neither job nor done is
 * called.
 */
ngx_int_t ngx_http_xet_task_post(ngx_http_request_t *r,
    ngx_http_xet_job_pt job, ngx_http_xet_done_pt done, void *data);

/*
 * Returns whether the request has a job whose done handler was not called yet.
 */
ngx_uint_t ngx_http_xet_task_busy(ngx_http_request_t *r);

/*
 * Posts a job like ngx_http_xet_task_post(), for a request whose content
 * handler belongs to another module.  The event handlers of that module stay
 * set.  The caller provides t, which is zeroed before its first job and must
 * live as long as data.  done is not called if the request was finalized; it
 * must check whether a response is already being sent.
 */
ngx_int_t ngx_http_xet_task_post_beside(ngx_http_request_t *r,
    ngx_http_xet_task_t *t, ngx_http_xet_job_pt job,
    ngx_http_xet_done_pt done, void *data);

/*
 * Runs a job without a request, such as closing or removing files, in the
 * thread pool for uploads.  The job gets a copy of data, which is size bytes
 * long.  If the job can't be posted, it runs at once in the event loop, with
 * data itself.
 */
void ngx_http_xet_task_detached(ngx_http_xet_job_pt job, const void *data,
    size_t size);


/* Runs in the event loop after a job without a request. */
typedef void (*ngx_http_xet_lone_pt)(void *data);

/*
 * Posts a job like ngx_http_xet_task_detached(), and calls done with the copy
 * of data after the job.  An exiting worker waits for both.  Returns NGX_OK,
 * or NGX_ERROR if the job can't be posted; then neither job nor done is
 * called.
 */
ngx_int_t ngx_http_xet_task_detached_done(ngx_http_xet_job_pt job,
    ngx_http_xet_lone_pt done, const void *data, size_t size);


typedef struct {
    ngx_thread_task_t          *task;
    ngx_http_xet_lone_pt        done;
    void                       *data;
    ngx_http_xet_mark_t         mark;
} ngx_http_xet_lone_t;


/*
 * Runs a job without a request in the thread pool for reads, and then calls
 * done.  t, zeroed before its first job, and data must live until done is
 * called.  An exiting worker waits for the job.  Returns NGX_OK, or NGX_ERROR
 * if the queue of the pool is full or if out of memory; then neither job nor
 * done is called.
 */
ngx_int_t ngx_http_xet_task_lone(ngx_http_xet_lone_t *t,
    ngx_http_xet_job_pt job, ngx_http_xet_lone_pt done, void *data);


/* ngx_http_xet_audit.c: the record of a request for $xet_audit. */

struct ngx_http_xet_audit_s {
    ngx_uint_t                  mode;          /* NGX_HTTP_XET_AUDIT_* */
    const char                 *action;        /* NULL: no route */
    const char                 *result;      /* result of the action, or NULL */
    const char                 *code;          /* error after status 200 */
    ngx_http_xet_auth_t        *auth;          /* NULL: not checked yet */

    ngx_str_t                   hub;           /* "models/owner/name" */

    ngx_str_t                   repo;          /* repo of an issued token */
    ngx_str_t                   subject;
    ngx_str_t                   key;
    xet_scope_e                 scope;
    uint64_t                    expires;

    xet_hash_t                  hash;          /* hash of the file or xorb */
    uint64_t                    files;         /* number of files in a shard */
    uint64_t                    new_bytes;
    uint64_t                    rows;          /* files and folders written */
    uint64_t                    metadata;     /* metadata bytes in these rows */

    unsigned                    write:1;       /* the route writes */
    unsigned                    mint:1;
    unsigned                    silent:1;      /* logged only if rejected */
    unsigned                    has_hash:1;
    unsigned                    stored:1;      /* new_bytes is known */
    unsigned                    named:1;       /* log the path as the object */
};


/*
 * Finds or creates the audit record of a request.  Returns NULL if the request
 * is not logged, or if out of memory.
 */
ngx_http_xet_audit_t *ngx_http_xet_audit_begin(ngx_http_request_t *r);

/* Returns the audit record of a request, or NULL if it has none. */
ngx_http_xet_audit_t *ngx_http_xet_audit_find(ngx_http_request_t *r);

/*
 * Returns the audit record to fill, or a dummy if the request has none; never
 * NULL.
 */
ngx_http_xet_audit_t *ngx_http_xet_audit(ngx_http_request_t *r);


/* Sets the gauges that count this worker's jobs in thread pools. */
void ngx_http_xet_task_measure(void);


/* ngx_http_xet_param.c: parameters of directives, in the form name=value. */

typedef enum {
    NGX_HTTP_XET_PARAM_NUM = 0,                /* ngx_uint_t */
    NGX_HTTP_XET_PARAM_SEC,                    /* ngx_uint_t, seconds */
    NGX_HTTP_XET_PARAM_MSEC,                   /* ngx_msec_t */
    NGX_HTTP_XET_PARAM_SIZE,                   /* off_t, bytes */
    NGX_HTTP_XET_PARAM_STR,                    /* ngx_str_t, not empty */
    NGX_HTTP_XET_PARAM_FLAG                    /* ngx_flag_t, no value */
} ngx_http_xet_param_e;


/*
 * A directive parameter that sets a member of the configuration.  The last
 * entry of an array has a NULL name.
 */

typedef struct {
    const char                *name;
    ngx_http_xet_param_e       kind;
    size_t                     offset;         /* offset in conf */
    off_t                      min;            /* minimum of numeric values */
    off_t                      max;
    const char                *must;           /* allowed values, for errors */
} ngx_http_xet_param_t;

/*
 * Parses the arguments of a directive, starting at index first, and sets
 * members of conf.  "must" describes the allowed parameters in errors about
 * unknown parameters, and about invalid values of parameters whose own "must"
 * is NULL.  Returns the result of a setter; a duplicate parameter is an error.
 */
char *ngx_http_xet_params(ngx_conf_t *cf, ngx_uint_t first,
    const ngx_http_xet_param_t *params, void *conf, const char *must);

/*
 * Returns whether arg is name=value, and sets value, which points into arg and
 * may be empty.
 */
ngx_uint_t ngx_http_xet_param(ngx_str_t *arg, const char *name,
    ngx_str_t *value);

/*
 * Log that arg is invalid, with a description of the allowed values, or that
 * arg is a duplicate.  Return NGX_CONF_ERROR.
 */
char *ngx_http_xet_param_invalid(ngx_conf_t *cf, ngx_str_t *arg,
    const char *must);
char *ngx_http_xet_param_duplicate(ngx_conf_t *cf, ngx_str_t *arg);


#endif /* _NGX_HTTP_XET_H_INCLUDED_ */
