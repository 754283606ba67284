
/*
 * Readings of copies of xorbs, to see if they are whole: one of a worker is
 * enough for all uploads that had begun before it.
 */

#ifndef _NGX_HTTP_XET_WHOLE_H_INCLUDED_
#define _NGX_HTTP_XET_WHOLE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "xet.h"


/*
 * Moments are numbers that grow with each call, not times: of two moments the
 * larger one was taken later, also within one turn of the event loop.
 */
uint64_t ngx_http_xet_whole_moment(void);


/*
 * A request that asks about a copy, and may become the one that reads it.  The
 * owner zeroes the structure once, and sets the first group of members before
 * each ask; the structure stays in place until the answer, or until the owner
 * calls ngx_http_xet_whole_leave().
 */

typedef struct {
    xet_hash_t     xorb;
    uint32_t       tag;                        /* of the copy */
    uint64_t       began;                      /* a moment before the upload */
    void         (*handler)(void *data, xet_status_t status);
    void          *data;

    ngx_queue_t    queue;                      /* of readings, or waiting */
    ngx_queue_t    waiting;                    /* for this reading */
    uint64_t       moment;                     /* before this reading */
    ngx_event_t    event;                      /* calls the handler */
    xet_status_t   status;                     /* for the handler */
    unsigned       reading:1;
    unsigned       waits:1;
} ngx_http_xet_whole_t;


/*
 * Asks whether the copy of w is whole.
 *
 * NGX_OK         the copy is whole: it was read after w->began
 * NGX_AGAIN      another request reads the copy: the handler will be called
 *                with the status that was found, or with XET_AGAIN when that
 *                reading has no result, and the owner has to ask again
 * NGX_DECLINED   the owner of w has to read the copy, and then calls
 *                ngx_http_xet_whole_done()
 */
ngx_int_t ngx_http_xet_whole_ask(ngx_http_xet_whole_t *w);

/*
 * The reading of w has ended: XET_OK when the copy is whole, XET_AGAIN when
 * nothing was read.  The handlers of those who wait are called with status,
 * each as a posted event.
 */
void ngx_http_xet_whole_done(ngx_http_xet_whole_t *w, xet_status_t status);

/* The owner of w dies: w waits no more, or its reading has no result. */
void ngx_http_xet_whole_leave(ngx_http_xet_whole_t *w);


#endif /* _NGX_HTTP_XET_WHOLE_H_INCLUDED_ */
