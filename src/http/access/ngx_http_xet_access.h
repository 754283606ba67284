
/*
 * Authentication, permissions, and upload limits of a request.
 */

#ifndef _NGX_HTTP_XET_ACCESS_H_INCLUDED_
#define _NGX_HTTP_XET_ACCESS_H_INCLUDED_


#include "ngx_http_xet.h"


/* ngx_http_xet_auth.c: authentication, and permissions of a request. */

/* The verdict on the token of a request, by the rules of a location. */

struct ngx_http_xet_auth_s {
    void                *rules;        /* the configuration of the location */
    xet_status_t         status;       /* XET_OK: the token is good */
    xet_token_claims_t   claims;
    ngx_str_t            subject;
    ngx_str_t            repo;
    u_char               room[XET_TOKEN_ROOM];
};


/*
 * Verifies the bearer token of a request at its first use in a location, with
 * the keys, issuer and audience of the location.  The result lives as long as
 * the request.  NULL if out of memory.
 */
ngx_http_xet_auth_t *ngx_http_xet_auth(ngx_http_request_t *r);

/*
 * ngx_http_xet_origin.c: rejects requests that a foreign web page may have
 * sent by a browser: requests to an unknown host name where authentication is
 * off, and writes.  NGX_OK; NGX_DONE if the request was answered and
 * finalized.
 */
ngx_int_t ngx_http_xet_origin_check(ngx_http_request_t *r);

/*
 * Returns the id of the key that the bearer token names, in r's pool.  It is
 * reliable only if the token is valid.  NGX_DECLINED: it names none.
 */
ngx_int_t ngx_http_xet_auth_key(ngx_http_request_t *r, ngx_str_t *key);

/*
 * The access phase check for a route that reads, or writes if write is set.
 * NGX_OK; NGX_DONE if the request was answered and finalized; NGX_ERROR.
 */
ngx_int_t ngx_http_xet_auth_check(ngx_http_request_t *r, xet_scope_e scope);

/*
 * The check of "xet_require_tls" for a request with a token; results as above.
 */
ngx_int_t ngx_http_xet_auth_tls(ngx_http_request_t *r);

/*
 * Whether "xet_read_only" or "xet_delete" rejects all requests that need this
 * scope: returns the rejection, whose status is 403, or NULL.
 */
const char *ngx_http_xet_closed(ngx_http_request_t *r, xet_scope_e scope,
    const char **message);

/*
 * The repo whose files the request may see, and to which it adds files.  any:
 * the whole store, with "xet_access store".  Otherwise an empty name allows
 * only files of public repos: the token names no repo, or out of memory.
 */

typedef struct {
    ngx_uint_t           any;
    ngx_str_t            name;
} ngx_http_xet_repo_t;

void ngx_http_xet_repo(ngx_http_request_t *r, ngx_http_xet_repo_t *repo);

/*
 * The issuer and subject of the request, for records of what a client has
 * sent. Empty if nothing is recorded: without tokens, and with "xet_access
 * repo" and a token without a subject.  data is NULL if out of memory.
 */
ngx_str_t ngx_http_xet_subject(ngx_http_request_t *r);

/* Whether a client that names chunks must prove that it has them. */
ngx_uint_t ngx_http_xet_proof(ngx_http_request_t *r);

/* Whether dedup responses may name xorbs of other repos. */
ngx_uint_t ngx_http_xet_dedup_wide(ngx_http_request_t *r);


/*
 * ngx_http_xet_token_cache.c: verified tokens in shared memory.
 */

/* The init function of the zone; zone->data must be set, to any value. */
ngx_int_t ngx_http_xet_token_cache_init_zone(ngx_shm_zone_t *zone, void *data);

/*
 * The digest under which a token is stored: of the token and of mark, which
 * stands for the keys and rules of the verification.  It is keyed with a
 * random key of the zone.
 */
void ngx_http_xet_token_cache_digest(ngx_shm_zone_t *zone,
    const xet_hash_t *mark, ngx_str_t *token, xet_hash_t *digest);

/*
 * Finds the claims of a token that has not expired at now, in seconds.  The
 * strings of the claims are stored in room, of XET_TOKEN_ROOM bytes.  NGX_OK,
 * or NGX_DECLINED.
 */
ngx_int_t ngx_http_xet_token_cache_find(ngx_shm_zone_t *zone,
    const xet_hash_t *digest, uint64_t now, u_char *room,
    xet_token_claims_t *claims);

/* Adds a valid token; does nothing if out of memory. */
void ngx_http_xet_token_cache_add(ngx_shm_zone_t *zone,
    const xet_hash_t *digest, uint64_t now, const xet_token_claims_t *claims);


/*
 * ngx_http_xet_limit_zone.c: uploads and bytes of each subject, counted over
 * all workers in shared memory.
 */

typedef struct ngx_http_xet_limit_slot_s  ngx_http_xet_limit_slot_t;


/* The settings of an "xet_upload_zone"; zone->data points to them. */

struct ngx_http_xet_limit_s {
    ngx_http_complex_value_t   key;            /* empty: not counted */
    ngx_uint_t                 concurrent;     /* 0: no bound */
    xet_bucket_rate_t          bytes;          /* size 0: no bound */
    ngx_shm_zone_t            *zone;
};


/* The init function of the zone. */
ngx_int_t ngx_http_xet_limit_zone_init(ngx_shm_zone_t *zone, void *data);

/*
 * Called when a worker starts: frees the slots of a dead worker that had the
 * same index in the master's process table.
 */
void ngx_http_xet_limit_zone_init_process(ngx_http_xet_limit_t *limit);

/*
 * Takes a slot for an upload of key with the announced number of bytes.
 * NGX_OK sets *slot.  NGX_BUSY: key has too many concurrent uploads.
 * NGX_DECLINED: key has sent too many bytes; these will fit after *wait ms.
 * NGX_ERROR: the zone is out of memory.
 */
ngx_int_t ngx_http_xet_limit_zone_take(ngx_http_xet_limit_t *limit,
    ngx_str_t *key, uint64_t bytes, ngx_http_xet_limit_slot_t **slot,
    uint64_t *wait);

/*
 * Frees the slot of a finished upload; its key is charged with the actual
 * instead of the announced bytes.
 */
void ngx_http_xet_limit_zone_give(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_slot_t *slot, uint64_t actual);


#endif /* _NGX_HTTP_XET_ACCESS_H_INCLUDED_ */
