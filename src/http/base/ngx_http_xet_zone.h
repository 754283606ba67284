
/*
 * Zones of shared memory with nodes, and caches of responses in such zones.
 */

#ifndef _NGX_HTTP_XET_ZONE_H_INCLUDED_
#define _NGX_HTTP_XET_ZONE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"


/*
 * ngx_http_xet_zone.c: a zone of shared memory, in which nodes are looked up by
 * digest.
 */

/*
 * Must be the first member of each node; the owner of the zone adds its own
 * members.
 */

typedef struct ngx_http_xet_zone_node_s  ngx_http_xet_zone_node_t;

struct ngx_http_xet_zone_node_s {
    ngx_http_xet_zone_node_t   *next;          /* in the bucket */
    ngx_queue_t                 queue;
    xet_hash_t                  digest;
};


/*
 * Must be the first member of the zone's shared data; the owner of the zone
 * adds its own members.
 */

typedef struct {
    ngx_uint_t                  layout;
    u_char                      key[XET_HASH_LEN];   /* random, for digests */
    ngx_http_xet_zone_node_t  **buckets;
    ngx_uint_t                  mask;          /* number of buckets - 1 */
    ngx_queue_t                 queue;         /* most recently used first */
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


/*
 * ngx_http_xet_answers.c: finished responses in shared memory, which are valid
 * for a short time, and until a statement of this machine could change them.
 */

/* A cache of responses. */

typedef struct {
    ngx_shm_zone_t            *zone;           /* NULL: off */
    ngx_msec_t                 valid;
    size_t                     most;           /* bytes of a response */
    ngx_uint_t                 metric;         /* first cell of a metric with
                                                  NGX_HTTP_XET_LABEL_LOOKUP */
} ngx_http_xet_cache_t;


/* Where a response is kept, and from when on it is valid. */

typedef struct {
    const ngx_http_xet_cache_t  *cache;
    xet_hash_t                   digest;
    ngx_msec_t                   asked;        /* time of the look-up */
    ngx_atomic_uint_t            changes;      /* of all responses, by then */
    ngx_atomic_uint_t            part;         /* of its part, by then */
} ngx_http_xet_answer_t;

/*
 * Reads a response that was found, and may change its bytes, but not its
 * length.  "valid" is 0 if the response may be out of date.  Returns whether
 * the caller can use the response.  The mutex of the zone is held.
 */
typedef ngx_uint_t (*ngx_http_xet_answer_pt)(void *data, u_char *body,
    size_t len, ngx_uint_t valid);


/* Initializes the zone, as its init handler; zone->data must not be NULL. */
ngx_int_t ngx_http_xet_answers_init_zone(ngx_shm_zone_t *zone, void *data);

/*
 * Looks up the response with this key, which must contain everything that the
 * response depends on, except the rows of PostgreSQL.  Calls use() if there is
 * one.  Returns NGX_OK if use() returned 1, else NGX_DECLINED.  Initializes a
 * for ngx_http_xet_answers_add().
 */
ngx_int_t ngx_http_xet_answers_find(ngx_http_xet_answer_t *a,
    const ngx_http_xet_cache_t *cache, const u_char *key, size_t len,
    ngx_http_xet_answer_pt use, void *data);

/*
 * Adds the response in b, made of rows that were requested after the look-up.
 * Does nothing if these rows may have changed, if the response is larger than
 * the cache allows, or if the zone is out of memory.
 */
void ngx_http_xet_answers_add(ngx_http_xet_answer_t *a, const xet_buf_t *b);

/*
 * Forgets all responses of xet_plan_cache.  Called when a statement that can
 * change them ends.
 */
void ngx_http_xet_answers_forget(void);

/* The maximum size of a filter of xet_chunk_filter: 170,000 chunks. */
#define NGX_HTTP_XET_CHUNK_FILTER_MAX  (256 * 1024)

/*
 * Called after a change of the response with this key.  If it was valid, use()
 * changes it, and it stays valid if use() returns 1.  Otherwise it is
 * forgotten.  Rows that are being read for it are not kept, nor those that are
 * being read for about one in 256 of the other responses.
 */
void ngx_http_xet_answers_change(const ngx_http_xet_cache_t *cache,
    const u_char *key, size_t len, ngx_http_xet_answer_pt use, void *data);


#endif /* _NGX_HTTP_XET_ZONE_H_INCLUDED_ */
