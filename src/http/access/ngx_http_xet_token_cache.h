
/*
 * Verified tokens in shared memory.
 */

#ifndef _NGX_HTTP_XET_TOKEN_CACHE_H_INCLUDED_
#define _NGX_HTTP_XET_TOKEN_CACHE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"


/* zone->init and its data; called by the setter of the directive. */
ngx_int_t ngx_http_xet_token_cache_init_zone(ngx_shm_zone_t *zone, void *data);

/*
 * The place of a token: of the token itself and of the mark of what it was
 * verified with, under a random key of the zone.
 */
void ngx_http_xet_token_cache_digest(ngx_shm_zone_t *zone,
    const xet_hash_t *mark, ngx_str_t *token, xet_hash_t *digest);

/* NGX_OK, or NGX_DECLINED; strings of the claims are copied into room. */
ngx_int_t ngx_http_xet_token_cache_find(ngx_shm_zone_t *zone,
    const xet_hash_t *digest, uint64_t now, u_char *room,
    xet_token_claims_t *claims);

void ngx_http_xet_token_cache_add(ngx_shm_zone_t *zone,
    const xet_hash_t *digest, uint64_t now, const xet_token_claims_t *claims);


#endif /* _NGX_HTTP_XET_TOKEN_CACHE_H_INCLUDED_ */
