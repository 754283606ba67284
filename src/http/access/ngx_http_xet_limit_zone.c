
/*
 * Counts the running uploads and the bytes of each subject, in shared memory.
 *
 * Each subject is a node of a tree, found by a digest of the value of the key.
 * A subject without running uploads is also in a queue, ordered by last use.
 * Each running upload has a slot of its subject, and reserves the announced
 * bytes.  At the end of the upload, the received bytes replace the reserved
 * bytes.  A subject is kept while it has slots, and then until its leaky byte
 * bucket is empty or its memory is needed.  Subjects and slots have the same
 * size, so either can use the memory of the other.
 *
 * A worker owns the slots of its uploads, and frees a slot when the response is
 * sent or the request ends.  A killed worker frees nothing, so each slot stores
 * the process id of its worker and the worker's index in the master's process
 * table.  A new worker frees the slots of a dead worker with the same index.
 * But after a reload an index may stay unused.  So before an upload is
 * rejected, the workers that own the subject's slots are checked, at most once
 * a second.  The master releases a mutex that a dead process holds.
 *
 * The zone's mutex protects all data.  Sections under the mutex are short,
 * except when a worker starts, and threads never take it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"


#define NGX_HTTP_XET_LIMIT_LAYOUT  0x7803      /* unique among all zones */


/* A subject.  It has 128 bytes, so that the slab allocator wastes no memory. */

typedef struct {
    ngx_http_xet_zone_node_t        node;      /* queued while idle */
    ngx_queue_t                     slots;
    uint32_t                        n;         /* number of slots */
    uint32_t                        checked;   /* time of last check, in s */
    xet_bucket_t                    bytes;
} ngx_http_xet_limit_subject_t;


struct ngx_http_xet_limit_slot_s {
    ngx_queue_t                     queue;     /* link in the subject's slots */
    ngx_queue_t                     all;       /* link in the zone's slots */
    ngx_http_xet_limit_subject_t   *subject;
    ngx_pid_t                       pid;
    ngx_int_t                       worker;    /* ngx_process_slot */
    uint64_t                        reserved;  /* bytes */
};


typedef union {
    ngx_http_xet_limit_subject_t    subject;
    ngx_http_xet_limit_slot_t       slot;
} ngx_http_xet_limit_entry_t;


typedef struct {
    ngx_http_xet_zone_t             zone;      /* its queue: idle subjects */
    ngx_queue_t                     slots;
} ngx_http_xet_limit_shared_t;


static ngx_http_xet_limit_subject_t *ngx_http_xet_limit_zone_subject(
    ngx_slab_pool_t *shpool, const xet_hash_t *digest);
static ngx_http_xet_limit_slot_t *ngx_http_xet_limit_zone_slot(
    ngx_slab_pool_t *shpool, ngx_http_xet_limit_subject_t *s, uint64_t bytes);
static void *ngx_http_xet_limit_zone_alloc(ngx_slab_pool_t *shpool);
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
    ngx_http_xet_limit_shared_t  *sh;

    if (ngx_http_xet_zone_init(zone, data, NGX_HTTP_XET_LIMIT_LAYOUT,
                               sizeof(ngx_http_xet_limit_shared_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (data == NULL) {
        sh = ngx_http_xet_zone_data(zone);
        ngx_queue_init(&sh->slots);
    }

    return NGX_OK;
}


void
ngx_http_xet_limit_zone_init_process(ngx_http_xet_limit_t *limit)
{
    ngx_queue_t                  *q, *next;
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_limit_slot_t    *slot;
    ngx_http_xet_limit_shared_t  *sh;

    shpool = ngx_http_xet_zone_pool(limit->zone);
    sh = shpool->data;

    ngx_shmtx_lock(&shpool->mutex);

    for (q = ngx_queue_head(&sh->slots);
         q != ngx_queue_sentinel(&sh->slots);
         q = next)
    {
        next = ngx_queue_next(q);
        slot = ngx_queue_data(q, ngx_http_xet_limit_slot_t, all);

        if (slot->worker == ngx_process_slot && slot->pid != ngx_pid) {
            ngx_http_xet_limit_zone_free(limit, slot, 0);
        }
    }

    ngx_shmtx_unlock(&shpool->mutex);
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

    shpool = ngx_http_xet_zone_pool(limit->zone);
    sh = shpool->data;

    xet_hash_keyed(sh->zone.key, key->data, key->len, &digest);

    if (limit->bytes.size == 0) {
        bytes = 0;
    }

    *wait = 0;

    ngx_shmtx_lock(&shpool->mutex);

    ngx_http_xet_limit_zone_expire(limit);

    rc = NGX_ERROR;

    s = ngx_http_xet_limit_zone_subject(shpool, &digest);
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

    /*
     * remove s from the queue of idle subjects, since the allocation below may
     * free the oldest idle subject
     */

    if (s->n++ == 0) {
        ngx_queue_remove(&s->node.queue);
    }

    slot = ngx_http_xet_limit_zone_alloc(shpool);

    if (slot == NULL) {

        if (--s->n == 0) {
            ngx_queue_insert_head(&sh->zone.queue, &s->node.queue);
        }

        return NULL;
    }

    slot->subject = s;
    slot->pid = ngx_pid;
    slot->worker = ngx_process_slot;
    slot->reserved = bytes;

    ngx_queue_insert_tail(&s->slots, &slot->queue);
    ngx_queue_insert_tail(&sh->slots, &slot->all);

    return slot;
}


/* Finds a subject, or creates an idle one.  Returns NULL if out of memory. */

static ngx_http_xet_limit_subject_t *
ngx_http_xet_limit_zone_subject(ngx_slab_pool_t *shpool,
    const xet_hash_t *digest)
{
    ngx_http_xet_zone_t           *z;
    ngx_http_xet_limit_subject_t  *s;

    z = shpool->data;

    s = (ngx_http_xet_limit_subject_t *) ngx_http_xet_zone_find(z, digest);

    if (s) {

        if (s->n == 0) {
            ngx_http_xet_zone_touch(z, &s->node);
        }

        return s;
    }

    s = ngx_http_xet_limit_zone_alloc(shpool);
    if (s == NULL) {
        return NULL;
    }

    ngx_memzero(s, sizeof(ngx_http_xet_limit_subject_t));

    ngx_queue_init(&s->slots);

    ngx_http_xet_zone_insert(z, &s->node, digest);

    return s;
}


/*
 * Allocates a subject or a slot.  If the zone is full, frees the least
 * recently used idle subject to get memory.
 */

static void *
ngx_http_xet_limit_zone_alloc(ngx_slab_pool_t *shpool)
{
    void                      *p;
    ngx_http_xet_zone_t       *z;
    ngx_http_xet_zone_node_t  *oldest;

    z = shpool->data;

    p = ngx_slab_alloc_locked(shpool, sizeof(ngx_http_xet_limit_entry_t));

    if (p) {
        return p;
    }

    oldest = ngx_http_xet_zone_oldest(z);
    if (oldest == NULL) {
        return NULL;
    }

    ngx_http_xet_zone_drop(shpool, z, oldest);

    return ngx_slab_alloc_locked(shpool, sizeof(ngx_http_xet_limit_entry_t));
}


/* Frees up to two idle subjects whose byte buckets are empty. */

static void
ngx_http_xet_limit_zone_expire(ngx_http_xet_limit_t *limit)
{
    ngx_uint_t                     i;
    ngx_slab_pool_t               *shpool;
    ngx_http_xet_zone_t           *z;
    ngx_http_xet_limit_subject_t  *s;

    shpool = ngx_http_xet_zone_pool(limit->zone);
    z = shpool->data;

    for (i = 0; i < 2; i++) {

        s = (ngx_http_xet_limit_subject_t *) ngx_http_xet_zone_oldest(z);
        if (s == NULL) {
            return;
        }

        if (limit->bytes.size) {
            xet_bucket_leak(&s->bytes, &limit->bytes, ngx_current_msec);

            if (s->bytes.level > 0) {
                return;
            }
        }

        ngx_http_xet_zone_drop(shpool, z, &s->node);
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


/*
 * Frees the slots of the subject that belong to dead workers.  Returns 1 if any
 * slot was freed.
 */

static ngx_uint_t
ngx_http_xet_limit_zone_bury(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_subject_t *s)
{
    ngx_pid_t                   alive;
    ngx_uint_t                  found;
    ngx_queue_t                *q, *next;
    ngx_http_xet_limit_slot_t  *slot;

    if (s->checked == (uint32_t) ngx_time()) {
        return 0;
    }

    s->checked = (uint32_t) ngx_time();

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

    shpool = ngx_http_xet_zone_pool(limit->zone);

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

    shpool = ngx_http_xet_zone_pool(limit->zone);
    sh = shpool->data;
    s = slot->subject;

    if (limit->bytes.size) {
        xet_bucket_correct(&s->bytes, slot->reserved, actual);
    }

    ngx_queue_remove(&slot->queue);
    ngx_queue_remove(&slot->all);
    ngx_slab_free_locked(shpool, slot);

    if (--s->n == 0) {
        ngx_queue_insert_head(&sh->zone.queue, &s->node.queue);
    }
}
