
/*
 * A cache of verified tokens in shared memory.
 *
 * Nodes are found by digest, and are in a queue ordered by last use.  An
 * insertion drops up to two expired nodes at the end of the queue; if the zone
 * is full, it drops the eight least recently used nodes.  Only results for
 * valid tokens are kept, until the token expires; the tokens themselves are not
 * stored.  The digest covers the keys and rules of the verification, so a
 * reload with other keys invalidates all older results.
 *
 * The zone's mutex protects all data.  Sections under the mutex are short, and
 * threads never take it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"


#define NGX_HTTP_XET_TOKEN_CACHE_LAYOUT  9     /* unique among all zones */


typedef struct {
    ngx_http_xet_zone_node_t   node;
    uint64_t                   exp;
    xet_scope_e                scope;
    u_short                    sub_len;
    u_short                    repo_len;
    u_char                     contents;
    u_char                     text[1];        /* subject, then repo */
} ngx_http_xet_token_node_t;


static ngx_uint_t ngx_http_xet_token_cache_expire(ngx_slab_pool_t *shpool,
    ngx_http_xet_zone_t *z, uint64_t now, ngx_uint_t force);


ngx_int_t
ngx_http_xet_token_cache_init_zone(ngx_shm_zone_t *zone, void *data)
{
    return ngx_http_xet_zone_init(zone, data, NGX_HTTP_XET_TOKEN_CACHE_LAYOUT,
                                  sizeof(ngx_http_xet_zone_t));
}


void
ngx_http_xet_token_cache_digest(ngx_shm_zone_t *zone, const xet_hash_t *mark,
    ngx_str_t *token, xet_hash_t *digest)
{
    xet_hash_t            key;
    ngx_http_xet_zone_t  *z;

    z = ngx_http_xet_zone_data(zone);

    xet_hash_keyed(z->key, mark->bytes, XET_HASH_LEN, &key);
    xet_token_digest(key.bytes, token->data, token->len, digest);
}


ngx_int_t
ngx_http_xet_token_cache_find(ngx_shm_zone_t *zone, const xet_hash_t *digest,
    uint64_t now, u_char *room, xet_token_claims_t *claims)
{
    ngx_slab_pool_t            *shpool;
    ngx_http_xet_zone_t        *z;
    ngx_http_xet_token_node_t  *n;

    shpool = ngx_http_xet_zone_pool(zone);
    z = shpool->data;

    ngx_memzero(claims, sizeof(xet_token_claims_t));

    ngx_shmtx_lock(&shpool->mutex);

    n = (ngx_http_xet_token_node_t *) ngx_http_xet_zone_find(z, digest);

    if (n == NULL || n->exp <= now) {
        ngx_shmtx_unlock(&shpool->mutex);
        return NGX_DECLINED;
    }

    ngx_http_xet_zone_touch(z, &n->node);

    claims->exp = n->exp;
    claims->scope = n->scope;
    claims->contents = n->contents;

    ngx_memcpy(room, n->text, n->sub_len + n->repo_len);

    if (n->sub_len) {
        claims->sub.data = room;
        claims->sub.len = n->sub_len;
    }

    if (n->repo_len) {
        claims->repo.data = room + n->sub_len;
        claims->repo.len = n->repo_len;
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return NGX_OK;
}


void
ngx_http_xet_token_cache_add(ngx_shm_zone_t *zone, const xet_hash_t *digest,
    uint64_t now, const xet_token_claims_t *claims)
{
    size_t                      size, sub, repo;
    ngx_slab_pool_t            *shpool;
    ngx_http_xet_zone_t        *z;
    ngx_http_xet_token_node_t  *n;

    shpool = ngx_http_xet_zone_pool(zone);
    z = shpool->data;

    sub = claims->sub.data ? claims->sub.len : 0;
    repo = claims->repo.data ? claims->repo.len : 0;

    size = offsetof(ngx_http_xet_token_node_t, text) + sub + repo;

    ngx_shmtx_lock(&shpool->mutex);

    if (ngx_http_xet_zone_find(z, digest)) {
        goto done;
    }

    (void) ngx_http_xet_token_cache_expire(shpool, z, now, 0);

    n = ngx_slab_alloc_locked(shpool, size);

    if (n == NULL) {
        ngx_http_xet_count_at(TOKENS, NGX_HTTP_XET_LOOKUP_FULL, 1);

        if (!ngx_http_xet_token_cache_expire(shpool, z, now, 1)) {
            goto done;
        }

        n = ngx_slab_alloc_locked(shpool, size);

        if (n == NULL) {
            goto done;
        }
    }

    n->exp = claims->exp;
    n->scope = claims->scope;
    n->sub_len = (u_short) sub;
    n->repo_len = (u_short) repo;
    n->contents = (u_char) claims->contents;

    if (sub) {
        ngx_memcpy(n->text, claims->sub.data, sub);
    }

    if (repo) {
        ngx_memcpy(n->text + sub, claims->repo.data, repo);
    }

    ngx_http_xet_zone_insert(z, &n->node, digest);

done:

    ngx_shmtx_unlock(&shpool->mutex);
}


/*
 * Drops up to two expired nodes at the end of the queue.  If force is set,
 * drops the eight least recently used nodes, even if they are valid.  Returns
 * the number of dropped nodes.
 */

static ngx_uint_t
ngx_http_xet_token_cache_expire(ngx_slab_pool_t *shpool,
    ngx_http_xet_zone_t *z, uint64_t now, ngx_uint_t force)
{
    ngx_uint_t                  i;
    ngx_http_xet_token_node_t  *n;

    for (i = 0; i < (force ? 8 : 2); i++) {

        n = (ngx_http_xet_token_node_t *) ngx_http_xet_zone_oldest(z);

        if (n == NULL || (!force && n->exp > now)) {
            break;
        }

        ngx_http_xet_zone_drop(shpool, z, &n->node);
    }

    return i;
}
