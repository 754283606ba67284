
/*
 * Keeps finished responses in shared memory, so that a response that many
 * clients request costs PostgreSQL one statement in "valid".
 *
 * A node is found by the digest of everything that the response depends on,
 * except the rows of PostgreSQL: the caller's repo, the file, the range, the
 * base and the expiry of the URLs.  A node is valid as long as
 *
 *     its time is not over, counted from the look-up before the statement,
 *     since the rows are not older than this look-up; this bounds the effect
 *     of changes by other machines, the command line, and operators;
 *
 *     no change was counted in the zone since the look-up.  Each worker counts
 *     a change when a statement ends that can delete, hide or move something,
 *     whatever its result, and before its client gets a response.  So rows
 *     that were read before or beside such a statement are never used after
 *     its end.
 *
 * A change of one response ends the validity of its node.  It is also counted
 * in one of 256 parts of the zone: a response whose rows were read before it,
 * and any other response of the part that is about to be kept, is not kept.
 *
 * The zone's mutex protects the nodes.  Threads never take it.
 */

#include "ngx_http_xet.h"


#define NGX_HTTP_XET_ANSWERS_LAYOUT  10        /* unique among all zones */
#define NGX_HTTP_XET_ANSWERS_DROP    8         /* nodes dropped at once */
#define NGX_HTTP_XET_ANSWERS_TRIES   4
#define NGX_HTTP_XET_ANSWERS_PARTS   256


typedef struct {
    ngx_http_xet_zone_t        zone;
    ngx_atomic_t               changes;
    ngx_atomic_t               parts[NGX_HTTP_XET_ANSWERS_PARTS];
} ngx_http_xet_answers_t;


typedef struct {
    ngx_http_xet_zone_node_t   node;
    ngx_msec_t                 asked;
    ngx_atomic_uint_t          changes;
    size_t                     len;
    u_char                     body[1];
} ngx_http_xet_answers_node_t;


static ngx_atomic_t *ngx_http_xet_answers_part(ngx_http_xet_answers_t *z,
    const xet_hash_t *digest);
static ngx_uint_t ngx_http_xet_answers_valid(ngx_http_xet_answers_t *z,
    ngx_http_xet_answers_node_t *n, ngx_msec_t valid);
static ngx_http_xet_answers_node_t *ngx_http_xet_answers_alloc(
    const ngx_http_xet_cache_t *cache, size_t size);


ngx_int_t
ngx_http_xet_answers_init_zone(ngx_shm_zone_t *zone, void *data)
{
    return ngx_http_xet_zone_init(zone, data, NGX_HTTP_XET_ANSWERS_LAYOUT,
                                  sizeof(ngx_http_xet_answers_t));
}


ngx_int_t
ngx_http_xet_answers_find(ngx_http_xet_answer_t *a,
    const ngx_http_xet_cache_t *cache, const u_char *key, size_t len,
    ngx_http_xet_answer_pt use, void *data)
{
    ngx_uint_t                    used;
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_answers_t       *z;
    ngx_http_xet_answers_node_t  *n;

    shpool = ngx_http_xet_zone_pool(cache->zone);
    z = shpool->data;

    xet_hash_keyed(z->zone.key, key, len, &a->digest);

    a->cache = cache;
    a->asked = ngx_current_msec;
    a->changes = z->changes;
    a->part = *ngx_http_xet_answers_part(z, &a->digest);

    used = 0;

    ngx_shmtx_lock(&shpool->mutex);

    n = (ngx_http_xet_answers_node_t *) ngx_http_xet_zone_find(&z->zone,
                                                               &a->digest);
    if (n) {
        used = use(data, n->body, n->len,
                   ngx_http_xet_answers_valid(z, n, cache->valid));

        ngx_http_xet_zone_touch(&z->zone, &n->node);
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return used ? NGX_OK : NGX_DECLINED;
}


static ngx_atomic_t *
ngx_http_xet_answers_part(ngx_http_xet_answers_t *z, const xet_hash_t *digest)
{
    return &z->parts[digest->bytes[0] % NGX_HTTP_XET_ANSWERS_PARTS];
}


static ngx_uint_t
ngx_http_xet_answers_valid(ngx_http_xet_answers_t *z,
    ngx_http_xet_answers_node_t *n, ngx_msec_t valid)
{
    return n->changes == z->changes && ngx_current_msec - n->asked < valid;
}


void
ngx_http_xet_answers_add(ngx_http_xet_answer_t *a, const xet_buf_t *b)
{
    u_char                       *p;
    ngx_slab_pool_t              *shpool;
    xet_buf_node_t               *node;
    ngx_http_xet_answers_t       *z;
    ngx_http_xet_answers_node_t  *n;

    shpool = ngx_http_xet_zone_pool(a->cache->zone);
    z = shpool->data;

    if (b->size > a->cache->most || xet_buf_status(b) != XET_OK) {
        return;
    }

    ngx_shmtx_lock(&shpool->mutex);

    if (a->changes != z->changes
        || a->part != *ngx_http_xet_answers_part(z, &a->digest))
    {
        ngx_shmtx_unlock(&shpool->mutex);
        return;
    }

    n = (ngx_http_xet_answers_node_t *) ngx_http_xet_zone_find(&z->zone,
                                                               &a->digest);
    if (n) {
        ngx_http_xet_zone_drop(shpool, &z->zone, &n->node);
    }

    n = ngx_http_xet_answers_alloc(a->cache,
                             offsetof(ngx_http_xet_answers_node_t, body)
                             + (size_t) b->size);
    if (n == NULL) {
        ngx_shmtx_unlock(&shpool->mutex);
        return;
    }

    n->asked = a->asked;
    n->changes = a->changes;
    n->len = (size_t) b->size;

    p = n->body;

    for (node = b->first; node; node = node->next) {
        p = ngx_cpymem(p, node->start, node->pos - node->start);
    }

    ngx_http_xet_zone_insert(&z->zone, &n->node, &a->digest);

    ngx_shmtx_unlock(&shpool->mutex);
}


/*
 * Allocates a node.  Drops invalid nodes at the end of the queue, and if the
 * zone is full, the least recently used nodes.
 */

static ngx_http_xet_answers_node_t *
ngx_http_xet_answers_alloc(const ngx_http_xet_cache_t *cache, size_t size)
{
    ngx_uint_t                    i, k;
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_answers_t       *z;
    ngx_http_xet_answers_node_t  *n, *old;

    shpool = ngx_http_xet_zone_pool(cache->zone);
    z = shpool->data;

    for (i = 0; i < NGX_HTTP_XET_ANSWERS_TRIES; i++) {

        for (k = 0; k < (i ? NGX_HTTP_XET_ANSWERS_DROP : 2); k++) {

            old = (ngx_http_xet_answers_node_t *)
                  ngx_http_xet_zone_oldest(&z->zone);

            if (old == NULL
                || (i == 0
                    && ngx_http_xet_answers_valid(z, old, cache->valid)))
            {
                break;
            }

            ngx_http_xet_zone_drop(shpool, &z->zone, &old->node);
        }

        n = ngx_slab_alloc_locked(shpool, size);

        if (n) {
            return n;
        }

        if (i == 0) {
            ngx_http_xet_cells[cache->metric + NGX_HTTP_XET_LOOKUP_FULL]++;
        }
    }

    return NULL;
}


void
ngx_http_xet_answers_forget(void)
{
    ngx_http_xet_answers_t    *z;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    if (xmcf->plan_cache.zone) {
        z = ngx_http_xet_zone_data(xmcf->plan_cache.zone);
        (void) ngx_atomic_fetch_add(&z->changes, 1);
    }
}


void
ngx_http_xet_answers_change(const ngx_http_xet_cache_t *cache,
    const u_char *key, size_t len, ngx_http_xet_answer_pt use, void *data)
{
    xet_hash_t                    digest;
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_answers_t       *z;
    ngx_http_xet_answers_node_t  *n;

    shpool = ngx_http_xet_zone_pool(cache->zone);
    z = shpool->data;

    xet_hash_keyed(z->zone.key, key, len, &digest);

    ngx_shmtx_lock(&shpool->mutex);

    n = (ngx_http_xet_answers_node_t *) ngx_http_xet_zone_find(&z->zone,
                                                               &digest);

    if (n && ngx_http_xet_answers_valid(z, n, cache->valid)
        && !use(data, n->body, n->len, 1))
    {
        n->changes = z->changes - 1;
    }

    (void) ngx_atomic_fetch_add(ngx_http_xet_answers_part(z, &digest), 1);

    ngx_shmtx_unlock(&shpool->mutex);
}
