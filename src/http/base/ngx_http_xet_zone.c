
/*
 * A zone of shared memory, in which nodes are looked up by digest.
 *
 * All nodes are in a hash table, because most steps of a search in a tree miss
 * the processor's caches.  The digest is keyed with a random key of the zone,
 * so clients can't choose the bucket of a node.  Nodes that may be dropped
 * are also in a queue, ordered by last use.  The code that owns the zone
 * allocates the nodes, and determines their contents and lifetime.
 *
 * Shared memory survives a reload, even if the reload loads another version of
 * the module.  So a layout number identifies the contents.
 */

#include "ngx_http_xet.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_ZONE_NODE  1024           /* bytes of zone per bucket */


static ngx_http_xet_zone_node_t **ngx_http_xet_zone_bucket(
    ngx_http_xet_zone_t *z, const xet_hash_t *digest);


ngx_int_t
ngx_http_xet_zone_init(ngx_shm_zone_t *zone, void *data, ngx_uint_t layout,
    size_t size)
{
    size_t                n;
    ngx_slab_pool_t      *shpool;
    ngx_http_xet_zone_t  *z;

    shpool = ngx_http_xet_zone_pool(zone);

    if (data) {
        z = shpool->data;

        if (z->layout != layout) {
            ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                          "zone \"%V\" was created with another type or "
                          "version",
                          &zone->shm.name);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    z = ngx_slab_calloc(shpool, size);
    if (z == NULL) {
        return NGX_ERROR;
    }

    z->layout = layout;

    if (RAND_bytes(z->key, XET_HASH_LEN) != 1) {
        return NGX_ERROR;
    }

    for (n = 1; n <= zone->shm.size / NGX_HTTP_XET_ZONE_NODE / 2; n *= 2) {
        /* void */
    }

    z->mask = n - 1;

    z->buckets = ngx_slab_calloc(shpool,
                                 n * sizeof(ngx_http_xet_zone_node_t *));
    if (z->buckets == NULL) {
        return NGX_ERROR;
    }

    ngx_queue_init(&z->queue);

    shpool->data = z;
    shpool->log_nomem = 0;

    return NGX_OK;
}


static ngx_http_xet_zone_node_t **
ngx_http_xet_zone_bucket(ngx_http_xet_zone_t *z, const xet_hash_t *digest)
{
    return &z->buckets[xet_get_u64(digest->bytes) & z->mask];
}


ngx_http_xet_zone_node_t *
ngx_http_xet_zone_find(ngx_http_xet_zone_t *z, const xet_hash_t *digest)
{
    ngx_http_xet_zone_node_t  *n;

    for (n = *ngx_http_xet_zone_bucket(z, digest); n; n = n->next) {
        if (xet_hash_equal(&n->digest, digest)) {
            return n;
        }
    }

    return NULL;
}


void
ngx_http_xet_zone_insert(ngx_http_xet_zone_t *z, ngx_http_xet_zone_node_t *n,
    const xet_hash_t *digest)
{
    ngx_http_xet_zone_node_t  **bucket;

    bucket = ngx_http_xet_zone_bucket(z, digest);

    n->digest = *digest;
    n->next = *bucket;
    *bucket = n;

    ngx_queue_insert_head(&z->queue, &n->queue);
}


void
ngx_http_xet_zone_touch(ngx_http_xet_zone_t *z, ngx_http_xet_zone_node_t *n)
{
    ngx_queue_remove(&n->queue);
    ngx_queue_insert_head(&z->queue, &n->queue);
}


ngx_http_xet_zone_node_t *
ngx_http_xet_zone_oldest(ngx_http_xet_zone_t *z)
{
    ngx_queue_t  *q;

    if (ngx_queue_empty(&z->queue)) {
        return NULL;
    }

    q = ngx_queue_last(&z->queue);

    return ngx_queue_data(q, ngx_http_xet_zone_node_t, queue);
}


void
ngx_http_xet_zone_drop(ngx_slab_pool_t *shpool, ngx_http_xet_zone_t *z,
    ngx_http_xet_zone_node_t *n)
{
    ngx_http_xet_zone_node_t  **p;

    for (p = ngx_http_xet_zone_bucket(z, &n->digest); *p != n; p = &(*p)->next)
    {
        /* void */
    }

    *p = n->next;

    ngx_queue_remove(&n->queue);
    ngx_slab_free_locked(shpool, n);
}
