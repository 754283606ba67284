
/*
 * Who uploads how much, counted over all workers in shared memory.
 */

#ifndef _NGX_HTTP_XET_LIMIT_ZONE_H_INCLUDED_
#define _NGX_HTTP_XET_LIMIT_ZONE_H_INCLUDED_


#include "ngx_http_xet.h"


typedef struct ngx_http_xet_limit_slot_s  ngx_http_xet_limit_slot_t;


/* The settings of an "xet_upload_zone"; zone->data points to them. */

struct ngx_http_xet_limit_s {
    ngx_http_complex_value_t   key;            /* empty: not counted */
    ngx_uint_t                 concurrent;     /* 0: no bound */
    xet_bucket_rate_t          bytes;          /* size 0: no bound */
    ngx_shm_zone_t            *zone;
};


/* The init function of the zone. */
ngx_int_t ngx_http_xet_limit_zone_init(ngx_shm_zone_t *zone, void *data);

/*
 * Called when a worker starts: frees the slots of the worker that was in the
 * same place of the master's process table before, and died.
 */
void ngx_http_xet_limit_zone_init_process(ngx_http_xet_limit_t *limit);

/*
 * Takes a slot for an upload under key that announces bytes.  NGX_OK sets
 * *slot.  NGX_BUSY: key has too many uploads at a time; NGX_DECLINED: key has
 * sent too many bytes, and these would fit after *wait ms; NGX_ERROR: the zone
 * has no memory.
 */
ngx_int_t ngx_http_xet_limit_zone_take(ngx_http_xet_limit_t *limit,
    ngx_str_t *key, uint64_t bytes, ngx_http_xet_limit_slot_t **slot,
    uint64_t *wait);

/*
 * Frees the slot of an upload that has ended; its key is charged with actual
 * bytes in place of the announced ones.
 */
void ngx_http_xet_limit_zone_give(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_slot_t *slot, uint64_t actual);


#endif /* _NGX_HTTP_XET_LIMIT_ZONE_H_INCLUDED_ */
