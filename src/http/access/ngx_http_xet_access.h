
/*
 * Authentication, permissions, and upload limits of a request.
 */

#ifndef _NGX_HTTP_XET_ACCESS_H_INCLUDED_
#define _NGX_HTTP_XET_ACCESS_H_INCLUDED_


#include "ngx_http_xet.h"


/*
 * ngx_http_xet_auth.c: who a request is from, and what it may do.
 */

/* The verdict on a request's token, by the configuration of one location. */

struct ngx_http_xet_auth_s {
    void                *rules;        /* the configuration of the location */
    xet_status_t         status;       /* XET_OK: the token is good */
    xet_token_claims_t   claims;
    ngx_str_t            subject;
    ngx_str_t            repo;
    u_char               room[XET_TOKEN_ROOM];
};


/*
 * Verifies the bearer token of a request, at first use in a location, by the
 * keys, issuer and audience of the location.  The result lives as long as the
 * request; NULL without memory.
 */
ngx_http_xet_auth_t *ngx_http_xet_auth(ngx_http_request_t *r);

/*
 * ngx_http_xet_origin.c: refuses what a foreign web page makes a browser send:
 * a request to a name that the server does not have, where authentication is
 * off, and one that may write.  NGX_OK; NGX_DONE when the request was answered
 * and finalized.
 */
ngx_int_t ngx_http_xet_origin_check(ngx_http_request_t *r);

/*
 * The id of the key that the bearer token names, in r's pool; to be trusted
 * where the token is good.  NGX_DECLINED: it names none.
 */
ngx_int_t ngx_http_xet_auth_key(ngx_http_request_t *r, ngx_str_t *key);

/*
 * The check of the access phase for a route that reads, or with write set one
 * that writes.  NGX_OK; NGX_DONE when the request was answered and finalized;
 * NGX_ERROR.
 */
ngx_int_t ngx_http_xet_auth_check(ngx_http_request_t *r, xet_scope_e scope);

/*
 * The check of "xet_require_tls" for a request that comes with a token: as
 * above.
 */
ngx_int_t ngx_http_xet_auth_tls(ngx_http_request_t *r);

/*
 * Whether the server lets nobody do what takes this scope, by "xet_read_only"
 * or "xet_delete": the code of the refusal, which is 403, with what to say; or
 * NULL.
 */
const char *ngx_http_xet_closed(ngx_http_request_t *r, xet_scope_e scope,
    const char **message);

/*
 * The repo whose files the request may see, and to which it adds files.  any:
 * the whole store, with "xet_access store".  The name is empty then, and when
 * the token names no repo, or without memory: of these only the files of public
 * repos may be seen.
 */

typedef struct {
    ngx_uint_t           any;
    ngx_str_t            name;
} ngx_http_xet_repo_t;

void ngx_http_xet_repo(ngx_http_request_t *r, ngx_http_xet_repo_t *repo);

/*
 * The issuer and subject of the request, under which it is noted what a client
 * has sent.  An empty string where nothing is noted: without tokens, and with
 * "xet_access repo" and a token without a subject.  data is NULL without
 * memory.
 */
ngx_str_t ngx_http_xet_subject(ngx_http_request_t *r);

/* Whether a client that names chunks has to prove that it has them. */
ngx_uint_t ngx_http_xet_proof(ngx_http_request_t *r);

/* Whether dedup answers also name the xorbs of other repos. */
ngx_uint_t ngx_http_xet_dedup_wide(ngx_http_request_t *r);


/*
 * ngx_http_xet_token_cache.c: verified tokens in shared memory.
 */

/* The init function of the zone; zone->data has to be set, to any value. */
ngx_int_t ngx_http_xet_token_cache_init_zone(ngx_shm_zone_t *zone, void *data);

/*
 * The digest under which a token is stored: of the token itself and of mark,
 * which stands for the keys and rules that the token is verified with; keyed
 * with a random key of the zone.
 */
void ngx_http_xet_token_cache_digest(ngx_shm_zone_t *zone,
    const xet_hash_t *mark, ngx_str_t *token, xet_hash_t *digest);

/*
 * Finds the claims of a token that has not expired at now, in seconds.  The
 * strings of the claims are in room, of XET_TOKEN_ROOM bytes.  NGX_OK, or
 * NGX_DECLINED.
 */
ngx_int_t ngx_http_xet_token_cache_find(ngx_shm_zone_t *zone,
    const xet_hash_t *digest, uint64_t now, u_char *room,
    xet_token_claims_t *claims);

/* Adds a good token; without memory the token is just not added. */
void ngx_http_xet_token_cache_add(ngx_shm_zone_t *zone,
    const xet_hash_t *digest, uint64_t now, const xet_token_claims_t *claims);


/*
 * ngx_http_xet_limit_zone.c: who uploads how much, counted over all workers in
 * shared memory.
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
 * Called when a worker starts: frees the slots of the worker that was in the
 * same place of the master's process table before, and died.
 */
void ngx_http_xet_limit_zone_init_process(ngx_http_xet_limit_t *limit);

/*
 * Takes a slot for an upload under key that announces bytes.  NGX_OK sets
 * *slot.  NGX_BUSY: key has too many uploads at a time; NGX_DECLINED: key has
 * sent too many bytes, and these would fit after *wait ms; NGX_ERROR: the zone
 * has no memory.
 */
ngx_int_t ngx_http_xet_limit_zone_take(ngx_http_xet_limit_t *limit,
    ngx_str_t *key, uint64_t bytes, ngx_http_xet_limit_slot_t **slot,
    uint64_t *wait);

/*
 * Frees the slot of an upload that has ended; its key is charged with actual
 * bytes in place of the announced ones.
 */
void ngx_http_xet_limit_zone_give(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_slot_t *slot, uint64_t actual);


#endif /* _NGX_HTTP_XET_ACCESS_H_INCLUDED_ */
