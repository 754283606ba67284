
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
 * The zone's mutex protects the nodes.  Threads never take it.
 */

#include "ngx_http_xet.h"


#define NGX_HTTP_XET_ANSWERS_LAYOUT  6         /* unique among all zones */
#define NGX_HTTP_XET_ANSWERS_DROP    8         /* nodes dropped at once */
#define NGX_HTTP_XET_ANSWERS_TRIES   4


typedef struct {
    ngx_http_xet_zone_t        zone;
    ngx_atomic_t               changes;
} ngx_http_xet_answers_t;


typedef struct {
    ngx_http_xet_zone_node_t   node;
    ngx_msec_t                 asked;
    ngx_atomic_uint_t          changes;
    size_t                     len;
    u_char                     body[1];
} ngx_http_xet_answers_node_t;


static ngx_uint_t ngx_http_xet_answers_valid(ngx_http_xet_answers_t *z,
    ngx_http_xet_answers_node_t *n, ngx_msec_t valid);
static ngx_http_xet_answers_node_t *ngx_http_xet_answers_alloc(
    ngx_slab_pool_t *shpool, ngx_http_xet_answers_t *z, size_t size);
static ngx_msec_t ngx_http_xet_answers_time(void);


ngx_int_t
ngx_http_xet_answers_init_zone(ngx_shm_zone_t *zone, void *data)
{
    return ngx_http_xet_zone_init(zone, data, NGX_HTTP_XET_ANSWERS_LAYOUT,
                                  sizeof(ngx_http_xet_answers_t));
}


ngx_int_t
ngx_http_xet_answers_find(ngx_http_xet_answer_t *a, ngx_shm_zone_t *zone,
    const u_char *key, size_t len, xet_buf_t *b)
{
    u_char                       *p;
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_answers_t       *z;
    ngx_http_xet_answers_node_t  *n;

    shpool = ngx_http_xet_zone_pool(zone);
    z = shpool->data;

    a->zone = zone;
    a->asked = ngx_current_msec;
    a->changes = z->changes;

    xet_hash_keyed(z->zone.key, key, len, &a->digest);

    ngx_shmtx_lock(&shpool->mutex);

    n = (ngx_http_xet_answers_node_t *) ngx_http_xet_zone_find(&z->zone,
                                                               &a->digest);

    if (n == NULL
        || !ngx_http_xet_answers_valid(z, n, ngx_http_xet_answers_time()))
    {
        ngx_shmtx_unlock(&shpool->mutex);
        ngx_http_xet_count_at(PLANS, NGX_HTTP_XET_LOOKUP_MISS, 1);

        return NGX_DECLINED;
    }

    p = xet_buf_reserve(b, n->len);

    if (p) {
        ngx_memcpy(p, n->body, n->len);
        xet_buf_advance(b, n->len);
    }

    ngx_http_xet_zone_touch(&z->zone, &n->node);

    ngx_shmtx_unlock(&shpool->mutex);
    ngx_http_xet_count_at(PLANS, NGX_HTTP_XET_LOOKUP_HIT, 1);

    return NGX_OK;
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

    shpool = ngx_http_xet_zone_pool(a->zone);
    z = shpool->data;

    if (a->changes != z->changes || b->size > NGX_HTTP_XET_ANSWERS_MAX
        || xet_buf_status(b) != XET_OK)
    {
        return;
    }

    ngx_shmtx_lock(&shpool->mutex);

    n = (ngx_http_xet_answers_node_t *) ngx_http_xet_zone_find(&z->zone,
                                                               &a->digest);
    if (n) {
        ngx_http_xet_zone_drop(shpool, &z->zone, &n->node);
    }

    n = ngx_http_xet_answers_alloc(shpool, z,
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
ngx_http_xet_answers_alloc(ngx_slab_pool_t *shpool, ngx_http_xet_answers_t *z,
    size_t size)
{
    ngx_uint_t                    i, k;
    ngx_http_xet_answers_node_t  *n, *old;

    for (i = 0; i < NGX_HTTP_XET_ANSWERS_TRIES; i++) {

        for (k = 0; k < (i ? NGX_HTTP_XET_ANSWERS_DROP : 2); k++) {

            old = (ngx_http_xet_answers_node_t *)
                  ngx_http_xet_zone_oldest(&z->zone);

            if (old == NULL
                || (i == 0
                    && ngx_http_xet_answers_valid(z, old,
                                               ngx_http_xet_answers_time())))
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
            ngx_http_xet_count_at(PLANS, NGX_HTTP_XET_LOOKUP_FULL, 1);
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

    if (xmcf->plan_cache) {
        z = ngx_http_xet_zone_data(xmcf->plan_cache);
        (void) ngx_atomic_fetch_add(&z->changes, 1);
    }
}


static ngx_msec_t
ngx_http_xet_answers_time(void)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    return xmcf->plan_cache_valid;
}
