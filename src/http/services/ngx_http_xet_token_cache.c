
/*
 * Verified tokens in shared memory.
 *
 * A tree by digest and a queue by use: a hit moves to the head, an insertion
 * drops the dead at the tail, and what is oldest when memory is short.  Only
 * good verdicts are kept, until the token expires; tokens themselves are not
 * in here.  The digest covers what the token was verified with, so a reload
 * with other keys finds nothing of before.
 *
 * The zone's mutex guards all of it; sections under it are short, and threads
 * never take it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_token_cache.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_TOKEN_CACHE_LAYOUT  1


typedef struct {
    ngx_rbtree_node_t         node;            /* key: head of the digest */
    ngx_queue_t               queue;
    xet_hash_t                digest;
    uint64_t                  exp;
    unsigned                  write:1;
    u_short                   sub_len;
    u_short                   repo_len;
    u_char                    text[1];         /* subject, repo */
} ngx_http_xet_token_node_t;


typedef struct {
    ngx_uint_t                layout;
    u_char                    key[XET_HASH_LEN];
    ngx_rbtree_t              tree;
    ngx_rbtree_node_t         sentinel;
    ngx_queue_t               queue;
} ngx_http_xet_token_shared_t;


static void ngx_http_xet_token_cache_insert(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static ngx_http_xet_token_node_t *ngx_http_xet_token_cache_lookup(
    ngx_http_xet_token_shared_t *sh, const xet_hash_t *digest);
static void ngx_http_xet_token_cache_drop(ngx_slab_pool_t *shpool,
    ngx_http_xet_token_shared_t *sh, ngx_http_xet_token_node_t *n);
static ngx_uint_t ngx_http_xet_token_cache_expire(ngx_slab_pool_t *shpool,
    ngx_http_xet_token_shared_t *sh, uint64_t now, ngx_uint_t force);


ngx_int_t
ngx_http_xet_token_cache_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_shm_zone_t *old = data;

    ngx_slab_pool_t              *shpool;
    ngx_http_xet_token_shared_t  *sh;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    if (old) {
        sh = shpool->data;

        if (sh->layout != NGX_HTTP_XET_TOKEN_CACHE_LAYOUT) {
            ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                          "zone \"%V\" is of another version of the module",
                          &zone->shm.name);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    sh = ngx_slab_alloc(shpool, sizeof(ngx_http_xet_token_shared_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    sh->layout = NGX_HTTP_XET_TOKEN_CACHE_LAYOUT;

    if (RAND_bytes(sh->key, XET_HASH_LEN) != 1) {
        return NGX_ERROR;
    }

    ngx_rbtree_init(&sh->tree, &sh->sentinel, ngx_http_xet_token_cache_insert);
    ngx_queue_init(&sh->queue);

    shpool->data = sh;
    shpool->log_nomem = 0;

    return NGX_OK;
}


void
ngx_http_xet_token_cache_digest(ngx_shm_zone_t *zone, const xet_hash_t *mark,
    ngx_str_t *token, xet_hash_t *digest)
{
    xet_hash_t                    key;
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_token_shared_t  *sh;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;
    sh = shpool->data;

    xet_hash_keyed(sh->key, mark->bytes, XET_HASH_LEN, &key);
    xet_token_digest(key.bytes, token->data, token->len, digest);
}


static void
ngx_http_xet_token_cache_insert(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t          **p;
    ngx_http_xet_token_node_t   *n, *t;

    for ( ;; ) {

        if (node->key != temp->key) {
            p = (node->key < temp->key) ? &temp->left : &temp->right;

        } else {
            n = (ngx_http_xet_token_node_t *) node;
            t = (ngx_http_xet_token_node_t *) temp;

            p = (xet_hash_cmp(&n->digest, &t->digest) < 0) ? &temp->left
                                                           : &temp->right;
        }

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    *p = node;
    node->parent = temp;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}


static ngx_http_xet_token_node_t *
ngx_http_xet_token_cache_lookup(ngx_http_xet_token_shared_t *sh,
    const xet_hash_t *digest)
{
    int                         rc;
    ngx_rbtree_key_t            key;
    ngx_rbtree_node_t          *node, *sentinel;
    ngx_http_xet_token_node_t  *n;

    key = (ngx_rbtree_key_t) xet_get_u64(digest->bytes);

    node = sh->tree.root;
    sentinel = sh->tree.sentinel;

    while (node != sentinel) {

        if (key != node->key) {
            node = (key < node->key) ? node->left : node->right;
            continue;
        }

        n = (ngx_http_xet_token_node_t *) node;

        rc = xet_hash_cmp(digest, &n->digest);

        if (rc == 0) {
            return n;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return NULL;
}


ngx_int_t
ngx_http_xet_token_cache_find(ngx_shm_zone_t *zone, const xet_hash_t *digest,
    uint64_t now, u_char *room, xet_token_claims_t *claims)
{
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_token_node_t    *n;
    ngx_http_xet_token_shared_t  *sh;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;
    sh = shpool->data;

    ngx_memzero(claims, sizeof(xet_token_claims_t));

    ngx_shmtx_lock(&shpool->mutex);

    n = ngx_http_xet_token_cache_lookup(sh, digest);

    if (n == NULL || n->exp <= now) {
        ngx_shmtx_unlock(&shpool->mutex);
        return NGX_DECLINED;
    }

    ngx_queue_remove(&n->queue);
    ngx_queue_insert_head(&sh->queue, &n->queue);

    claims->exp = n->exp;
    claims->write = n->write;

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
    size_t                        size, sub, repo;
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_token_node_t    *n;
    ngx_http_xet_token_shared_t  *sh;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;
    sh = shpool->data;

    sub = claims->sub.data ? claims->sub.len : 0;
    repo = claims->repo.data ? claims->repo.len : 0;

    size = offsetof(ngx_http_xet_token_node_t, text) + sub + repo;

    ngx_shmtx_lock(&shpool->mutex);

    if (ngx_http_xet_token_cache_lookup(sh, digest)) {
        goto done;
    }

    (void) ngx_http_xet_token_cache_expire(shpool, sh, now, 0);

    n = ngx_slab_alloc_locked(shpool, size);

    if (n == NULL) {

        if (!ngx_http_xet_token_cache_expire(shpool, sh, now, 1)) {
            goto done;
        }

        n = ngx_slab_alloc_locked(shpool, size);

        if (n == NULL) {
            goto done;
        }
    }

    n->node.key = (ngx_rbtree_key_t) xet_get_u64(digest->bytes);
    n->digest = *digest;
    n->exp = claims->exp;
    n->write = claims->write;
    n->sub_len = (u_short) sub;
    n->repo_len = (u_short) repo;

    if (sub) {
        ngx_memcpy(n->text, claims->sub.data, sub);
    }

    if (repo) {
        ngx_memcpy(n->text + sub, claims->repo.data, repo);
    }

    ngx_rbtree_insert(&sh->tree, &n->node);
    ngx_queue_insert_head(&sh->queue, &n->queue);

done:

    ngx_shmtx_unlock(&shpool->mutex);
}


static void
ngx_http_xet_token_cache_drop(ngx_slab_pool_t *shpool,
    ngx_http_xet_token_shared_t *sh, ngx_http_xet_token_node_t *n)
{
    ngx_queue_remove(&n->queue);
    ngx_rbtree_delete(&sh->tree, &n->node);
    ngx_slab_free_locked(shpool, n);
}


/* Up to two of the dead at the tail; with force the oldest, dead or not. */

static ngx_uint_t
ngx_http_xet_token_cache_expire(ngx_slab_pool_t *shpool,
    ngx_http_xet_token_shared_t *sh, uint64_t now, ngx_uint_t force)
{
    ngx_uint_t                  i;
    ngx_queue_t                *q;
    ngx_http_xet_token_node_t  *n;

    for (i = 0; i < (force ? 8 : 2); i++) {

        if (ngx_queue_empty(&sh->queue)) {
            break;
        }

        q = ngx_queue_last(&sh->queue);
        n = ngx_queue_data(q, ngx_http_xet_token_node_t, queue);

        if (!force && n->exp > now) {
            break;
        }

        ngx_http_xet_token_cache_drop(shpool, sh, n);
    }

    return i;
}
