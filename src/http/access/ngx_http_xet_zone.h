
/*
 * Nodes by digest in a zone of shared memory.
 */

#ifndef _NGX_HTTP_XET_ZONE_H_INCLUDED_
#define _NGX_HTTP_XET_ZONE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"


/* What a node of a user begins with. */

typedef struct {
    ngx_rbtree_node_t    node;                 /* key: head of the digest */
    ngx_queue_t          queue;
    xet_hash_t           digest;
} ngx_http_xet_zone_node_t;


/* What the shared data of a user begins with. */

typedef struct {
    ngx_uint_t           layout;
    u_char               key[XET_HASH_LEN];    /* random, for the digests */
    ngx_rbtree_t         tree;
    ngx_rbtree_node_t    sentinel;
    ngx_queue_t          queue;                /* last used first */
} ngx_http_xet_zone_t;


#define ngx_http_xet_zone_pool(zone)  ((ngx_slab_pool_t *) (zone)->shm.addr)
#define ngx_http_xet_zone_data(zone)  (ngx_http_xet_zone_pool(zone)->data)


/*
 * For zone->init: makes shared data of so many bytes, zeroed behind what they
 * begin with, or, when data tells that there were some, keeps them if they are
 * of this layout, which must be no other user's nor version's.  NGX_OK, or
 * NGX_ERROR, which is logged.
 */
ngx_int_t ngx_http_xet_zone_init(ngx_shm_zone_t *zone, void *data,
    ngx_uint_t layout, size_t size);


/* The caller of these holds the mutex of the zone. */

/* The node, or NULL. */
ngx_http_xet_zone_node_t *ngx_http_xet_zone_find(ngx_http_xet_zone_t *z,
    const xet_hash_t *digest);

/* Of a digest that is not in there; as last used. */
void ngx_http_xet_zone_insert(ngx_http_xet_zone_t *z,
    ngx_http_xet_zone_node_t *n, const xet_hash_t *digest);

/* A node of the queue is the last used one now. */
void ngx_http_xet_zone_touch(ngx_http_xet_zone_t *z,
    ngx_http_xet_zone_node_t *n);

/* The node of the queue that was longest not used, or NULL. */
ngx_http_xet_zone_node_t *ngx_http_xet_zone_oldest(ngx_http_xet_zone_t *z);

/* Frees a node of the queue. */
void ngx_http_xet_zone_drop(ngx_slab_pool_t *shpool, ngx_http_xet_zone_t *z,
    ngx_http_xet_zone_node_t *n);


#endif /* _NGX_HTTP_XET_ZONE_H_INCLUDED_ */
