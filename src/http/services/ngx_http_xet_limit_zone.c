
/*
 * Who uploads how much, in shared memory.
 *
 * A subject is a digest of the key's value, in a tree; one that uploads
 * nothing is in a queue as well, by last use.  Each running upload is a slot
 * of its subject.  It has reserved the bytes that it announced; when it ends
 * these become the bytes that came, so half-sent bodies hold room only while
 * they are open.  A subject is kept while it has slots, and afterwards until
 * its bytes have leaked or somebody needs the memory; both kinds take the
 * same room, so that what one gives up serves the other.
 *
 * A slot belongs to a worker, which frees it when the request's pool goes.  A
 * worker that is killed frees nothing, so a slot has its process id and its
 * place in the master's table of processes.  No two live workers are in one
 * place: who starts there frees what another one has left.  A place may stay
 * empty after a reload; therefore a refusal looks, once a second and subject,
 * whether the owners of its slots are alive.  The master takes the mutex from
 * a process that died with it.
 *
 * The zone's mutex guards all of it; sections under it are short but for the
 * start of a worker, and threads never take it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_limit_zone.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_LIMIT_LAYOUT  0x7801      /* no other zone's */
#define NGX_HTTP_XET_LIMIT_DIGEST  16


typedef struct {
    ngx_rbtree_node_t               node;      /* key: head of the digest */
    ngx_queue_t                     queue;     /* of the idle */
    ngx_queue_t                     slots;
    ngx_uint_t                      n;         /* of slots */
    u_char                          digest[NGX_HTTP_XET_LIMIT_DIGEST];
    xet_bucket_t                    bytes;
    time_t                          checked;   /* for dead owners */
} ngx_http_xet_limit_subject_t;


struct ngx_http_xet_limit_slot_s {
    ngx_queue_t                     queue;     /* of the subject */
    ngx_queue_t                     all;
    ngx_http_xet_limit_subject_t   *subject;
    ngx_pid_t                       pid;
    ngx_int_t                       place;     /* of the process */
    uint64_t                        reserved;  /* bytes */
};


typedef union {
    ngx_http_xet_limit_subject_t    subject;
    ngx_http_xet_limit_slot_t       slot;
} ngx_http_xet_limit_entry_t;


typedef struct {
    ngx_uint_t                      layout;
    u_char                          key[XET_HASH_LEN];
    ngx_rbtree_t                    tree;
    ngx_rbtree_node_t               sentinel;
    ngx_queue_t                     idle;      /* last used first */
    ngx_queue_t                     slots;
} ngx_http_xet_limit_shared_t;


static void ngx_http_xet_limit_zone_insert(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static ngx_http_xet_limit_subject_t *ngx_http_xet_limit_zone_subject(
    ngx_slab_pool_t *shpool, const u_char *digest);
static ngx_http_xet_limit_slot_t *ngx_http_xet_limit_zone_slot(
    ngx_slab_pool_t *shpool, ngx_http_xet_limit_subject_t *s, uint64_t bytes);
static void *ngx_http_xet_limit_zone_alloc(ngx_slab_pool_t *shpool);
static void ngx_http_xet_limit_zone_drop(ngx_slab_pool_t *shpool,
    ngx_http_xet_limit_subject_t *s);
static void ngx_http_xet_limit_zone_expire(ngx_http_xet_limit_t *limit);
static ngx_int_t ngx_http_xet_limit_zone_try(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_subject_t *s, uint64_t bytes, uint64_t *wait);
static ngx_uint_t ngx_http_xet_limit_zone_bury(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_subject_t *s);
static void ngx_http_xet_limit_zone_free(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_slot_t *slot, uint64_t actual);


ngx_int_t
ngx_http_xet_limit_zone_init(ngx_shm_zone_t *zone, void *data)
{
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_limit_shared_t  *sh;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    if (data) {
        sh = shpool->data;

        if (sh->layout != NGX_HTTP_XET_LIMIT_LAYOUT) {
            ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                          "zone \"%V\" was of another kind or version",
                          &zone->shm.name);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    sh = ngx_slab_alloc(shpool, sizeof(ngx_http_xet_limit_shared_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    sh->layout = NGX_HTTP_XET_LIMIT_LAYOUT;

    if (RAND_bytes(sh->key, XET_HASH_LEN) != 1) {
        return NGX_ERROR;
    }

    ngx_rbtree_init(&sh->tree, &sh->sentinel, ngx_http_xet_limit_zone_insert);
    ngx_queue_init(&sh->idle);
    ngx_queue_init(&sh->slots);

    shpool->data = sh;
    shpool->log_nomem = 0;

    return NGX_OK;
}


void
ngx_http_xet_limit_zone_init_process(ngx_http_xet_limit_t *limit)
{
    ngx_queue_t                  *q, *next;
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_limit_slot_t    *slot;
    ngx_http_xet_limit_shared_t  *sh;

    shpool = (ngx_slab_pool_t *) limit->zone->shm.addr;
    sh = shpool->data;

    ngx_shmtx_lock(&shpool->mutex);

    for (q = ngx_queue_head(&sh->slots);
         q != ngx_queue_sentinel(&sh->slots);
         q = next)
    {
        next = ngx_queue_next(q);
        slot = ngx_queue_data(q, ngx_http_xet_limit_slot_t, all);

        if (slot->place == ngx_process_slot && slot->pid != ngx_pid) {
            ngx_http_xet_limit_zone_free(limit, slot, 0);
        }
    }

    ngx_shmtx_unlock(&shpool->mutex);
}


static void
ngx_http_xet_limit_zone_insert(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t             **p;
    ngx_http_xet_limit_subject_t   *s, *t;

    for ( ;; ) {

        if (node->key != temp->key) {
            p = (node->key < temp->key) ? &temp->left : &temp->right;

        } else {
            s = (ngx_http_xet_limit_subject_t *) node;
            t = (ngx_http_xet_limit_subject_t *) temp;

            p = (ngx_memcmp(s->digest, t->digest, NGX_HTTP_XET_LIMIT_DIGEST)
                 < 0)
                ? &temp->left : &temp->right;
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


ngx_int_t
ngx_http_xet_limit_zone_take(ngx_http_xet_limit_t *limit, ngx_str_t *key,
    uint64_t bytes, ngx_http_xet_limit_slot_t **slot, uint64_t *wait)
{
    ngx_int_t                      rc;
    xet_hash_t                     digest;
    ngx_slab_pool_t               *shpool;
    ngx_http_xet_limit_shared_t   *sh;
    ngx_http_xet_limit_subject_t  *s;

    shpool = (ngx_slab_pool_t *) limit->zone->shm.addr;
    sh = shpool->data;

    xet_hash_keyed(sh->key, key->data, key->len, &digest);

    if (limit->bytes.size == 0) {
        bytes = 0;
    }

    *wait = 0;

    ngx_shmtx_lock(&shpool->mutex);

    ngx_http_xet_limit_zone_expire(limit);

    rc = NGX_ERROR;

    s = ngx_http_xet_limit_zone_subject(shpool, digest.bytes);
    if (s == NULL) {
        goto done;
    }

    rc = ngx_http_xet_limit_zone_try(limit, s, bytes, wait);

    if (rc != NGX_OK && ngx_http_xet_limit_zone_bury(limit, s)) {
        rc = ngx_http_xet_limit_zone_try(limit, s, bytes, wait);
    }

    if (rc != NGX_OK) {
        goto done;
    }

    *slot = ngx_http_xet_limit_zone_slot(shpool, s, bytes);

    if (*slot == NULL) {
        xet_bucket_correct(&s->bytes, bytes, 0);
        rc = NGX_ERROR;
    }

done:

    ngx_shmtx_unlock(&shpool->mutex);

    return rc;
}


static ngx_http_xet_limit_slot_t *
ngx_http_xet_limit_zone_slot(ngx_slab_pool_t *shpool,
    ngx_http_xet_limit_subject_t *s, uint64_t bytes)
{
    ngx_http_xet_limit_slot_t    *slot;
    ngx_http_xet_limit_shared_t  *sh;

    sh = shpool->data;

    /* out of the queue of the idle, whose memory may be taken */

    if (s->n++ == 0) {
        ngx_queue_remove(&s->queue);
    }

    slot = ngx_http_xet_limit_zone_alloc(shpool);

    if (slot == NULL) {

        if (--s->n == 0) {
            ngx_queue_insert_head(&sh->idle, &s->queue);
        }

        return NULL;
    }

    slot->subject = s;
    slot->pid = ngx_pid;
    slot->place = ngx_process_slot;
    slot->reserved = bytes;

    ngx_queue_insert_tail(&s->slots, &slot->queue);
    ngx_queue_insert_tail(&sh->slots, &slot->all);

    return slot;
}


/* Finds or makes a subject.  What was made is idle. */

static ngx_http_xet_limit_subject_t *
ngx_http_xet_limit_zone_subject(ngx_slab_pool_t *shpool, const u_char *digest)
{
    int                            rc;
    ngx_rbtree_key_t               key;
    ngx_rbtree_node_t             *node;
    ngx_http_xet_limit_shared_t   *sh;
    ngx_http_xet_limit_subject_t  *s;

    sh = shpool->data;
    key = (ngx_rbtree_key_t) xet_get_u64(digest);
    node = sh->tree.root;

    while (node != &sh->sentinel) {

        if (key != node->key) {
            node = (key < node->key) ? node->left : node->right;
            continue;
        }

        s = (ngx_http_xet_limit_subject_t *) node;

        rc = ngx_memcmp(digest, s->digest, NGX_HTTP_XET_LIMIT_DIGEST);

        if (rc == 0) {

            if (s->n == 0) {
                ngx_queue_remove(&s->queue);
                ngx_queue_insert_head(&sh->idle, &s->queue);
            }

            return s;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    s = ngx_http_xet_limit_zone_alloc(shpool);
    if (s == NULL) {
        return NULL;
    }

    ngx_memzero(s, sizeof(ngx_http_xet_limit_subject_t));

    s->node.key = key;
    ngx_memcpy(s->digest, digest, NGX_HTTP_XET_LIMIT_DIGEST);

    ngx_queue_init(&s->slots);

    ngx_rbtree_insert(&sh->tree, &s->node);
    ngx_queue_insert_head(&sh->idle, &s->queue);

    return s;
}


/* Room for either, if need be that of the idle one longest not used. */

static void *
ngx_http_xet_limit_zone_alloc(ngx_slab_pool_t *shpool)
{
    void                         *p;
    ngx_queue_t                  *q;
    ngx_http_xet_limit_shared_t  *sh;

    sh = shpool->data;

    p = ngx_slab_alloc_locked(shpool, sizeof(ngx_http_xet_limit_entry_t));

    if (p || ngx_queue_empty(&sh->idle)) {
        return p;
    }

    q = ngx_queue_last(&sh->idle);

    ngx_http_xet_limit_zone_drop(shpool,
        ngx_queue_data(q, ngx_http_xet_limit_subject_t, queue));

    return ngx_slab_alloc_locked(shpool, sizeof(ngx_http_xet_limit_entry_t));
}


static void
ngx_http_xet_limit_zone_drop(ngx_slab_pool_t *shpool,
    ngx_http_xet_limit_subject_t *s)
{
    ngx_http_xet_limit_shared_t  *sh;

    sh = shpool->data;

    ngx_queue_remove(&s->queue);
    ngx_rbtree_delete(&sh->tree, &s->node);
    ngx_slab_free_locked(shpool, s);
}


/* Up to two idle subjects whose bytes have leaked. */

static void
ngx_http_xet_limit_zone_expire(ngx_http_xet_limit_t *limit)
{
    ngx_uint_t                     i;
    ngx_queue_t                   *q;
    ngx_slab_pool_t               *shpool;
    ngx_http_xet_limit_shared_t   *sh;
    ngx_http_xet_limit_subject_t  *s;

    shpool = (ngx_slab_pool_t *) limit->zone->shm.addr;
    sh = shpool->data;

    for (i = 0; i < 2; i++) {

        if (ngx_queue_empty(&sh->idle)) {
            return;
        }

        q = ngx_queue_last(&sh->idle);
        s = ngx_queue_data(q, ngx_http_xet_limit_subject_t, queue);

        if (limit->bytes.size) {
            xet_bucket_leak(&s->bytes, &limit->bytes, ngx_current_msec);

            if (s->bytes.level > 0) {
                return;
            }
        }

        ngx_http_xet_limit_zone_drop(shpool, s);
    }
}


static ngx_int_t
ngx_http_xet_limit_zone_try(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_subject_t *s, uint64_t bytes, uint64_t *wait)
{
    if (limit->concurrent && s->n >= limit->concurrent) {
        return NGX_BUSY;
    }

    if (limit->bytes.size) {
        *wait = xet_bucket_put(&s->bytes, &limit->bytes, ngx_current_msec,
                               bytes);
    }

    return *wait ? NGX_DECLINED : NGX_OK;
}


/* Frees slots of workers that are no more; tells whether there were any. */

static ngx_uint_t
ngx_http_xet_limit_zone_bury(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_subject_t *s)
{
    ngx_pid_t                   alive;
    ngx_uint_t                  found;
    ngx_queue_t                *q, *next;
    ngx_http_xet_limit_slot_t  *slot;

    if (s->checked == ngx_time()) {
        return 0;
    }

    s->checked = ngx_time();

    found = 0;
    alive = ngx_pid;

    for (q = ngx_queue_head(&s->slots);
         q != ngx_queue_sentinel(&s->slots);
         q = next)
    {
        next = ngx_queue_next(q);
        slot = ngx_queue_data(q, ngx_http_xet_limit_slot_t, queue);

        if (slot->pid == alive) {
            continue;
        }

        if (kill(slot->pid, 0) == 0 || ngx_errno != NGX_ESRCH) {
            alive = slot->pid;
            continue;
        }

        ngx_http_xet_limit_zone_free(limit, slot, 0);
        found = 1;
    }

    return found;
}


void
ngx_http_xet_limit_zone_give(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_slot_t *slot, uint64_t actual)
{
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) limit->zone->shm.addr;

    ngx_shmtx_lock(&shpool->mutex);

    ngx_http_xet_limit_zone_free(limit, slot, actual);

    ngx_shmtx_unlock(&shpool->mutex);
}


static void
ngx_http_xet_limit_zone_free(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_slot_t *slot, uint64_t actual)
{
    ngx_slab_pool_t               *shpool;
    ngx_http_xet_limit_shared_t   *sh;
    ngx_http_xet_limit_subject_t  *s;

    shpool = (ngx_slab_pool_t *) limit->zone->shm.addr;
    sh = shpool->data;
    s = slot->subject;

    if (limit->bytes.size) {
        xet_bucket_correct(&s->bytes, slot->reserved, actual);
    }

    ngx_queue_remove(&slot->queue);
    ngx_queue_remove(&slot->all);
    ngx_slab_free_locked(shpool, slot);

    if (--s->n == 0) {
        ngx_queue_insert_head(&sh->idle, &s->queue);
    }
}
