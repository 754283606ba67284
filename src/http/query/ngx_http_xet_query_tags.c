
/*
 * Gets tags for copies from PostgreSQL, in blocks.  At most one statement is
 * in flight, and it is sent whenever there is room for a block.  Callers that
 * find no tags wait for the result.  A block serves as many callers as it has
 * tags; other callers wait for the next block.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"
#include "ngx_http_xet_store.h"


static void ngx_http_xet_query_tags_spare(void);
static void ngx_http_xet_query_tags_answered(void *data,
    ngx_http_xet_ask_t *ask, ngx_int_t rc);


/* the statement in flight, or NULL */

static ngx_http_xet_pg_query_t  *ngx_http_xet_query_tags_asked;
static ngx_queue_t               ngx_http_xet_query_tags_waiting;


void
ngx_http_xet_query_tags(void)
{
    if (ngx_http_xet_query_tags_asked
        || ngx_http_xet_store_tags_blocks() == NGX_HTTP_XET_TAGS_BLOCKS)
    {
        return;
    }

    ngx_queue_init(&ngx_http_xet_query_tags_waiting);

    ngx_http_xet_query_tags_asked = ngx_http_xet_ask_query(
                                        ngx_http_xet_stmt_tags_take, NULL,
                                        ngx_http_xet_query_tags_answered,
                                        NULL);
    ngx_http_xet_query_tags_spare();
}


/* Lets an exiting worker exit before the result, if no caller waits for it. */

static void
ngx_http_xet_query_tags_spare(void)
{
    if (ngx_http_xet_query_tags_asked) {
        ngx_http_xet_pg_pools_spare(ngx_http_xet_query_tags_asked,
                           ngx_queue_empty(&ngx_http_xet_query_tags_waiting));
    }
}


ngx_int_t
ngx_http_xet_query_tags_wait(ngx_http_xet_tags_wait_t *wait)
{
    ngx_http_xet_query_tags();

    if (ngx_http_xet_query_tags_asked == NULL) {
        return NGX_DECLINED;
    }

    ngx_queue_insert_tail(&ngx_http_xet_query_tags_waiting, &wait->queue);
    wait->waits = 1;

    ngx_http_xet_query_tags_spare();

    return NGX_AGAIN;
}


void
ngx_http_xet_query_tags_leave(ngx_http_xet_tags_wait_t *wait)
{
    if (wait->waits) {
        ngx_queue_remove(&wait->queue);
        wait->waits = 0;

        ngx_http_xet_query_tags_spare();
    }
}


/*
 * Adds the block and calls the waiting handlers.  A handler may remove other
 * callers from the queue, and request tags again.
 */

static void
ngx_http_xet_query_tags_answered(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc)
{
    ngx_uint_t                 n;
    ngx_queue_t                queue, *q;
    ngx_http_xet_tags_wait_t  *wait;

    ngx_http_xet_query_tags_asked = NULL;

    if (rc == NGX_OK) {
        ngx_http_xet_store_tags_add((uint32_t) ngx_http_xet_ask_number(ask));
    }

    ngx_queue_init(&queue);

    if (!ngx_queue_empty(&ngx_http_xet_query_tags_waiting)) {
        ngx_queue_add(&queue, &ngx_http_xet_query_tags_waiting);
        ngx_queue_init(&ngx_http_xet_query_tags_waiting);
    }

    for (n = 0; !ngx_queue_empty(&queue); n++) {
        q = ngx_queue_head(&queue);
        wait = ngx_queue_data(q, ngx_http_xet_tags_wait_t, queue);

        ngx_http_xet_query_tags_leave(wait);

        if (rc == NGX_OK && n >= NGX_HTTP_XET_TAGS_BLOCK
            && ngx_http_xet_query_tags_wait(wait) == NGX_AGAIN)
        {
            continue;
        }

        wait->handler(wait->data);
    }
}
