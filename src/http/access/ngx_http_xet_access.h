
/*
 * Authentication, permissions, and upload limits of a request.
 */

#ifndef _NGX_HTTP_XET_ACCESS_H_INCLUDED_
#define _NGX_HTTP_XET_ACCESS_H_INCLUDED_


#include "ngx_http_xet.h"


/* ngx_http_xet_auth.c: authentication, and permissions of a request. */

/* The result of verifying a request's token with the rules of a location. */

struct ngx_http_xet_auth_s {
    void                *rules;        /* the configuration of the location */
    xet_status_t         status;       /* XET_OK: the token is valid */
    xet_token_claims_t   claims;
    ngx_str_t            subject;
    ngx_str_t            repo;
    u_char               room[XET_TOKEN_ROOM];
};


/*
 * Verifies the bearer token of a request with the keys, issuer and audience of
 * its location.  Further calls in the same location return the same result.
 * The result lives as long as the request; it is NULL if out of memory.
 */
ngx_http_xet_auth_t *ngx_http_xet_auth(ngx_http_request_t *r);

/*
 * ngx_http_xet_name.c: returns whether the host name of the request is a name
 * of this server.
 */
ngx_uint_t ngx_http_xet_name_known(ngx_http_request_t *r);

/*
 * Sets *url to the URL at which the client reaches this server, without a slash
 * at its end.  With data, it is the URL for xorbs, which may lead to a CDN.
 * Returns NGX_OK; NGX_DECLINED if the request has no host name; NGX_ERROR if
 * the URL has characters that are not allowed in JSON, or if out of memory.
 */
ngx_int_t ngx_http_xet_name_url(ngx_http_request_t *r, ngx_uint_t data,
    ngx_str_t *url);

/*
 * ngx_http_xet_origin.c: rejects writes that a foreign web page sends through
 * a browser.  Where authentication is off, also rejects requests to an unknown
 * host name.  Returns NGX_OK, or NGX_DONE if the request was answered and
 * finalized.
 */
ngx_int_t ngx_http_xet_origin_check(ngx_http_request_t *r);

/*
 * Sets *key to the key id in the bearer token, copied to r's pool.  The id can
 * be trusted only if the token is valid.  Returns NGX_OK, or NGX_DECLINED if
 * the token has no key id or if out of memory.
 */
ngx_int_t ngx_http_xet_auth_key(ngx_http_request_t *r, ngx_str_t *key);

/*
 * Checks in the access phase that the token of a request is valid and has at
 * least this scope.  Returns NGX_OK, NGX_DONE if the request was answered and
 * finalized, or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_auth_check(ngx_http_request_t *r, xet_scope_e scope);

/*
 * Checks "xet_require_tls" for a request with a token.  Returns the same
 * values as ngx_http_xet_auth_check().
 */
ngx_int_t ngx_http_xet_auth_tls(ngx_http_request_t *r);

/*
 * Checks whether "xet_read_only" or "xet_delete" forbids all requests that need
 * this scope.  If so, returns the error code for a response with status 403,
 * and sets *message; otherwise returns NULL.
 */
const char *ngx_http_xet_closed(ngx_http_request_t *r, xet_scope_e scope,
    const char **message);

/*
 * The repo whose files the request may read, and to which it adds files.  If
 * any is set, the request may use the whole store ("xet_access store").
 * Otherwise an empty name allows only files of public repos.  The name is empty
 * if the token has no repo, or if out of memory.
 */

typedef struct {
    ngx_uint_t           any;
    ngx_str_t            name;
} ngx_http_xet_repo_t;

void ngx_http_xet_repo(ngx_http_request_t *r, ngx_http_xet_repo_t *repo);

/*
 * Returns the issuer and subject of the request, which are recorded with each
 * upload.  The string is empty, and nothing is recorded, if authentication is
 * off, or if "xet_access repo" is set and the token has no subject.  data is
 * NULL if out of memory.
 */
ngx_str_t ngx_http_xet_subject(ngx_http_request_t *r);

/*
 * Returns whether a client that refers to chunks must prove that it has their
 * data.
 */
ngx_uint_t ngx_http_xet_proof(ngx_http_request_t *r);

/* Returns whether dedup responses may contain xorbs of other repos. */
ngx_uint_t ngx_http_xet_dedup_wide(ngx_http_request_t *r);


/*
 * ngx_http_xet_token_cache.c: verified tokens in shared memory.
 */

/* Initializes the zone, as its init handler; zone->data must not be NULL. */
ngx_int_t ngx_http_xet_token_cache_init_zone(ngx_shm_zone_t *zone, void *data);

/*
 * Computes the digest that identifies a token in the cache: a hash of the token
 * and of mark, which is a hash of the keys and rules that verify the token.
 * The digest is keyed with a random key of the zone.
 */
void ngx_http_xet_token_cache_digest(ngx_shm_zone_t *zone,
    const xet_hash_t *mark, ngx_str_t *token, xet_hash_t *digest);

/*
 * Finds the claims of a token, and copies their strings to room, a buffer of
 * XET_TOKEN_ROOM bytes.  Returns NGX_OK, or NGX_DECLINED if the token is not in
 * the cache, or has expired at the time now, in seconds.
 */
ngx_int_t ngx_http_xet_token_cache_find(ngx_shm_zone_t *zone,
    const xet_hash_t *digest, uint64_t now, u_char *room,
    xet_token_claims_t *claims);

/*
 * Adds a valid token and its claims; does nothing if the zone is out of memory.
 */
void ngx_http_xet_token_cache_add(ngx_shm_zone_t *zone,
    const xet_hash_t *digest, uint64_t now, const xet_token_claims_t *claims);


/*
 * ngx_http_xet_limit_zone.c: counts the running uploads and the bytes of each
 * subject in shared memory, for all workers.
 */

typedef struct ngx_http_xet_limit_slot_s  ngx_http_xet_limit_slot_t;


/*
 * The settings of an "xet_upload_zone"; zone->data points to this structure.
 */

struct ngx_http_xet_limit_s {
    ngx_http_complex_value_t   key;            /* empty: no limit */
    ngx_uint_t                 concurrent;     /* 0: no limit */
    xet_bucket_rate_t          bytes;          /* size 0: no limit */
    ngx_shm_zone_t            *zone;
};


/* Initializes the zone, as its init handler. */
ngx_int_t ngx_http_xet_limit_zone_init(ngx_shm_zone_t *zone, void *data);

/*
 * Runs when a worker starts: frees the slots of a dead worker that had the
 * same index in the master's process table.
 */
void ngx_http_xet_limit_zone_init_process(ngx_http_xet_limit_t *limit);

/*
 * Allocates a slot for an upload of the subject key, with the announced number
 * of bytes.  Returns NGX_OK and sets *slot; NGX_BUSY if the subject has too
 * many concurrent uploads; NGX_DECLINED if the subject has sent too many bytes,
 * and sets *wait to the time in ms until the upload is allowed; or NGX_ERROR if
 * the zone is out of memory.
 */
ngx_int_t ngx_http_xet_limit_zone_take(ngx_http_xet_limit_t *limit,
    ngx_str_t *key, uint64_t bytes, ngx_http_xet_limit_slot_t **slot,
    uint64_t *wait);

/*
 * Frees the slot of a finished upload, and replaces its announced size in the
 * subject's byte count with the actual size.
 */
void ngx_http_xet_limit_zone_give(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_slot_t *slot, uint64_t actual);


#endif /* _NGX_HTTP_XET_ACCESS_H_INCLUDED_ */
