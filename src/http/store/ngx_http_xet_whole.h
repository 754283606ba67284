
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
 * Who asks for a copy, which may be the one that reads it.  Zeroed by its
 * owner, the event loop, who sets the first group of members before each ask;
 * then it stays where it is until the answer, or until it leaves.
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
    ngx_event_t    event;
    xet_status_t   status;
    unsigned       reading:1;
    unsigned       waits:1;
} ngx_http_xet_whole_t;


/*
 * NGX_OK         it was just read, and is whole
 * NGX_AGAIN      another one reads it: the handler is called with what was
 *                found, XET_AGAIN for nothing: ask again
 * NGX_DECLINED   w reads it, and calls done()
 */
ngx_int_t ngx_http_xet_whole_ask(ngx_http_xet_whole_t *w);

/* What the reading of w has found: XET_OK is whole. */
void ngx_http_xet_whole_done(ngx_http_xet_whole_t *w, xet_status_t status);

/* w dies: it waits no more, or reads no more. */
void ngx_http_xet_whole_leave(ngx_http_xet_whole_t *w);


#endif /* _NGX_HTTP_XET_WHOLE_H_INCLUDED_ */
