
/*
 * Who uploads how much, counted over all workers in shared memory.
 */

#ifndef _NGX_HTTP_XET_LIMIT_ZONE_H_INCLUDED_
#define _NGX_HTTP_XET_LIMIT_ZONE_H_INCLUDED_


#include "ngx_http_xet.h"


typedef struct ngx_http_xet_limit_slot_s  ngx_http_xet_limit_slot_t;


/* What "xet_upload_zone" says; data of its shared memory. */

struct ngx_http_xet_limit_s {
    ngx_http_complex_value_t   key;            /* empty: not counted */
    ngx_uint_t                 concurrent;     /* 0: no bound */
    xet_bucket_rate_t          bytes;          /* size 0: no bound */
    ngx_shm_zone_t            *zone;
};


/* zone->init. */
ngx_int_t ngx_http_xet_limit_zone_init(ngx_shm_zone_t *zone, void *data);

/* Gives back what the worker that had this one's place held when it died. */
void ngx_http_xet_limit_zone_init_process(ngx_http_xet_limit_t *limit);

/*
 * Takes a slot for an upload of so many bytes.  NGX_OK; NGX_BUSY when key has
 * too many at a time; NGX_DECLINED when it has sent too many bytes, for which
 * there is room after *wait ms; NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_limit_zone_take(ngx_http_xet_limit_t *limit,
    ngx_str_t *key, uint64_t bytes, ngx_http_xet_limit_slot_t **slot,
    uint64_t *wait);

/* Gives a slot back, after as many bytes as have come. */
void ngx_http_xet_limit_zone_give(ngx_http_xet_limit_t *limit,
    ngx_http_xet_limit_slot_t *slot, uint64_t actual);


#endif /* _NGX_HTTP_XET_LIMIT_ZONE_H_INCLUDED_ */
