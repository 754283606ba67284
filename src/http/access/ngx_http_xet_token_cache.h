
/*
 * Verified tokens in shared memory.
 */

#ifndef _NGX_HTTP_XET_TOKEN_CACHE_H_INCLUDED_
#define _NGX_HTTP_XET_TOKEN_CACHE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"


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


#endif /* _NGX_HTTP_XET_TOKEN_CACHE_H_INCLUDED_ */
