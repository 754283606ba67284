
/*
 * Gets copy ids from PostgreSQL, in blocks.  A statement is sent whenever the
 * store has room for another block; at most one statement is in flight.
 * Callers that find no copy id wait for its result.  A block serves as many
 * callers as it has copy ids; the remaining callers wait for the next block.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"
#include "ngx_http_xet_store.h"


static void ngx_http_xet_query_copy_ids_spare(void);
static void ngx_http_xet_query_copy_ids_answered(void *data,
    ngx_http_xet_ask_t *ask, ngx_int_t rc);


/* the statement in flight, or NULL */

static ngx_http_xet_pg_query_t  *ngx_http_xet_query_copy_ids_asked;
static ngx_queue_t               ngx_http_xet_query_copy_ids_waiting;


void
ngx_http_xet_query_copy_ids(void)
{
    if (ngx_http_xet_query_copy_ids_asked
        || ngx_http_xet_store_copy_ids_blocks() == NGX_HTTP_XET_COPY_IDS_BLOCKS)
    {
        return;
    }

    ngx_queue_init(&ngx_http_xet_query_copy_ids_waiting);

    ngx_http_xet_query_copy_ids_asked = ngx_http_xet_ask_query(
                                        ngx_http_xet_stmt_copy_ids_take, NULL,
                                        ngx_http_xet_query_copy_ids_answered,
                                        NULL);
    ngx_http_xet_query_copy_ids_spare();
}


/* If no caller is waiting, an exiting worker need not wait for the result. */

static void
ngx_http_xet_query_copy_ids_spare(void)
{
    if (ngx_http_xet_query_copy_ids_asked) {
        ngx_http_xet_pg_pools_spare(ngx_http_xet_query_copy_ids_asked,
                       ngx_queue_empty(&ngx_http_xet_query_copy_ids_waiting));
    }
}


ngx_int_t
ngx_http_xet_query_copy_ids_wait(ngx_http_xet_copy_ids_wait_t *wait)
{
    ngx_http_xet_query_copy_ids();

    if (ngx_http_xet_query_copy_ids_asked == NULL) {
        return NGX_DECLINED;
    }

    ngx_queue_insert_tail(&ngx_http_xet_query_copy_ids_waiting, &wait->queue);
    wait->waits = 1;

    ngx_http_xet_query_copy_ids_spare();

    return NGX_AGAIN;
}


void
ngx_http_xet_query_copy_ids_leave(ngx_http_xet_copy_ids_wait_t *wait)
{
    if (wait->waits) {
        ngx_queue_remove(&wait->queue);
        wait->waits = 0;

        ngx_http_xet_query_copy_ids_spare();
    }
}


/*
 * Adds the block and calls the waiting handlers.  A handler may remove other
 * callers from the queue, or request copy ids again.
 */

static void
ngx_http_xet_query_copy_ids_answered(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc)
{
    ngx_uint_t                     n;
    ngx_queue_t                    queue, *q;
    ngx_http_xet_copy_ids_wait_t  *wait;

    ngx_http_xet_query_copy_ids_asked = NULL;

    if (rc == NGX_OK) {
        ngx_http_xet_store_copy_ids_add((uint32_t)
                                        ngx_http_xet_ask_number(ask));
    }

    ngx_queue_init(&queue);

    if (!ngx_queue_empty(&ngx_http_xet_query_copy_ids_waiting)) {
        ngx_queue_add(&queue, &ngx_http_xet_query_copy_ids_waiting);
        ngx_queue_init(&ngx_http_xet_query_copy_ids_waiting);
    }

    for (n = 0; !ngx_queue_empty(&queue); n++) {
        q = ngx_queue_head(&queue);
        wait = ngx_queue_data(q, ngx_http_xet_copy_ids_wait_t, queue);

        ngx_http_xet_query_copy_ids_leave(wait);

        if (rc == NGX_OK && n >= NGX_HTTP_XET_COPY_IDS_BLOCK
            && ngx_http_xet_query_copy_ids_wait(wait) == NGX_AGAIN)
        {
            continue;
        }

        wait->handler(wait->data);
    }
}
