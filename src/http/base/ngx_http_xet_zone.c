
/*
 * A zone of shared memory, in which nodes are looked up by digest.
 *
 * All nodes are in a tree.  The digest is keyed with a random key of the zone,
 * so clients can't choose the position of a node.  Nodes that may be dropped
 * are also in a queue, ordered by last use.  The code that owns the zone
 * allocates the nodes, and determines their contents and lifetime.
 *
 * Shared memory survives a reload, even if the reload loads another version of
 * the module.  So a layout number identifies the contents.
 */

#include "ngx_http_xet.h"

#include <openssl/rand.h>


static void ngx_http_xet_zone_insert_value(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);


ngx_int_t
ngx_http_xet_zone_init(ngx_shm_zone_t *zone, void *data, ngx_uint_t layout,
    size_t size)
{
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

    ngx_rbtree_init(&z->tree, &z->sentinel, ngx_http_xet_zone_insert_value);
    ngx_queue_init(&z->queue);

    shpool->data = z;
    shpool->log_nomem = 0;

    return NGX_OK;
}


static void
ngx_http_xet_zone_insert_value(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t         **p;
    ngx_http_xet_zone_node_t   *n, *t;

    for ( ;; ) {

        if (node->key != temp->key) {
            p = (node->key < temp->key) ? &temp->left : &temp->right;

        } else {
            n = (ngx_http_xet_zone_node_t *) node;
            t = (ngx_http_xet_zone_node_t *) temp;

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


ngx_http_xet_zone_node_t *
ngx_http_xet_zone_find(ngx_http_xet_zone_t *z, const xet_hash_t *digest)
{
    int                        rc;
    ngx_rbtree_key_t           key;
    ngx_rbtree_node_t         *node, *sentinel;
    ngx_http_xet_zone_node_t  *n;

    key = (ngx_rbtree_key_t) xet_get_u64(digest->bytes);

    node = z->tree.root;
    sentinel = z->tree.sentinel;

    while (node != sentinel) {

        if (key != node->key) {
            node = (key < node->key) ? node->left : node->right;
            continue;
        }

        n = (ngx_http_xet_zone_node_t *) node;

        rc = xet_hash_cmp(digest, &n->digest);

        if (rc == 0) {
            return n;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return NULL;
}


void
ngx_http_xet_zone_insert(ngx_http_xet_zone_t *z, ngx_http_xet_zone_node_t *n,
    const xet_hash_t *digest)
{
    n->node.key = (ngx_rbtree_key_t) xet_get_u64(digest->bytes);
    n->digest = *digest;

    ngx_rbtree_insert(&z->tree, &n->node);
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
    ngx_queue_remove(&n->queue);
    ngx_rbtree_delete(&z->tree, &n->node);
    ngx_slab_free_locked(shpool, n);
}
