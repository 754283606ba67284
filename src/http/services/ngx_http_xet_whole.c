
/*
 * The copies of xorbs that were read and found whole by this worker, and when.
 *
 * Purpose:    an upload of a known xorb is acknowledged after the stored copy
 *             was read and held against its digest.  When many send the same
 *             xorb at once, one reading is enough for all whose uploads had
 *             begun before it: what has happened to the copy since might as
 *             well have happened right after a reading of their own.  An
 *             upload that begins later reads again.  Nothing has to be dropped
 *             when a copy is damaged, healed or removed: the row tells of the
 *             damage that somebody has found, and a healed copy has another
 *             tag.  Of damage that nobody has found an upload that takes long
 *             should learn, so a reading counts for five seconds only.
 * States:     a ring of the last 64 readings.  What it has lost is read again.
 * Ownership:  the worker's; 4 KiB, no allocation.
 * Threads:    the event loop only.
 */

#include "ngx_http_xet_whole.h"


#define NGX_HTTP_XET_WHOLE_MAX    64
#define NGX_HTTP_XET_WHOLE_VALID  5000


typedef struct {
    xet_hash_t  xorb;
    uint32_t    tag;
    uint64_t    moment;                        /* 0: none */
    ngx_msec_t  end;                           /* of the reading */
} ngx_http_xet_whole_t;


static ngx_http_xet_whole_t  ngx_http_xet_wholes[NGX_HTTP_XET_WHOLE_MAX];
static ngx_uint_t            ngx_http_xet_whole_next;
static uint64_t              ngx_http_xet_whole_last;


uint64_t
ngx_http_xet_whole_moment(void)
{
    return ++ngx_http_xet_whole_last;
}


void
ngx_http_xet_whole_add(const xet_hash_t *xorb, uint32_t tag, uint64_t moment)
{
    ngx_http_xet_whole_t  *whole;

    whole = &ngx_http_xet_wholes[ngx_http_xet_whole_next];

    whole->xorb = *xorb;
    whole->tag = tag;
    whole->moment = moment;
    whole->end = ngx_current_msec;

    ngx_http_xet_whole_next = (ngx_http_xet_whole_next + 1)
                              % NGX_HTTP_XET_WHOLE_MAX;
}


ngx_uint_t
ngx_http_xet_whole_since(const xet_hash_t *xorb, uint32_t tag,
    uint64_t moment)
{
    ngx_uint_t             i;
    ngx_http_xet_whole_t  *whole;

    for (i = 0; i < NGX_HTTP_XET_WHOLE_MAX; i++) {
        whole = &ngx_http_xet_wholes[i];

        if (whole->moment > moment
            && whole->tag == tag
            && ngx_current_msec - whole->end < NGX_HTTP_XET_WHOLE_VALID
            && xet_hash_equal(&whole->xorb, xorb))
        {
            return 1;
        }
    }

    return 0;
}
