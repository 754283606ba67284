
/*
 * A zone of shared memory, in which nodes are looked up by digest.
 */

#ifndef _NGX_HTTP_XET_ZONE_H_INCLUDED_
#define _NGX_HTTP_XET_ZONE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"


/*
 * Must be the first member of each node; the owner of the zone adds its own
 * members.
 */

typedef struct {
    ngx_rbtree_node_t    node;                 /* key: start of the digest */
    ngx_queue_t          queue;
    xet_hash_t           digest;
} ngx_http_xet_zone_node_t;


/*
 * Must be the first member of the zone's shared data; the owner of the zone
 * adds its own members.
 */

typedef struct {
    ngx_uint_t           layout;
    u_char               key[XET_HASH_LEN];    /* random, keys the digests */
    ngx_rbtree_t         tree;
    ngx_rbtree_node_t    sentinel;
    ngx_queue_t          queue;                /* most recently used first */
} ngx_http_xet_zone_t;


#define ngx_http_xet_zone_pool(zone)  ((ngx_slab_pool_t *) (zone)->shm.addr)
#define ngx_http_xet_zone_data(zone)  (ngx_http_xet_zone_pool(zone)->data)


/*
 * Initializes the zone from zone->init.  If data is NULL, creates shared data
 * of size bytes: an ngx_http_xet_zone_t followed by zeros.  Otherwise keeps
 * the existing shared data if it has the same layout, a number that is unique
 * for each owner and version of the data.  Returns NGX_OK, or NGX_ERROR if out
 * of memory or if the layout is different, which is logged.
 */
ngx_int_t ngx_http_xet_zone_init(ngx_shm_zone_t *zone, void *data,
    ngx_uint_t layout, size_t size);


/* The caller of these functions must hold the mutex of the zone. */

/* Returns the node with this digest, or NULL. */
ngx_http_xet_zone_node_t *ngx_http_xet_zone_find(ngx_http_xet_zone_t *z,
    const xet_hash_t *digest);

/*
 * Adds n as the most recently used node.  The zone must not contain a node
 * with this digest.
 */
void ngx_http_xet_zone_insert(ngx_http_xet_zone_t *z,
    ngx_http_xet_zone_node_t *n, const xet_hash_t *digest);

/* Makes n, which is in the queue, the most recently used node. */
void ngx_http_xet_zone_touch(ngx_http_xet_zone_t *z,
    ngx_http_xet_zone_node_t *n);

/* Returns the least recently used node of the queue, or NULL. */
ngx_http_xet_zone_node_t *ngx_http_xet_zone_oldest(ngx_http_xet_zone_t *z);

/* Removes n, which is in the queue, from the zone and frees it. */
void ngx_http_xet_zone_drop(ngx_slab_pool_t *shpool, ngx_http_xet_zone_t *z,
    ngx_http_xet_zone_node_t *n);


#endif /* _NGX_HTTP_XET_ZONE_H_INCLUDED_ */
