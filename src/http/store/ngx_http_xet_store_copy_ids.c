
/*
 * Copy ids make the names of any two copies of a xorb different, forever.
 *
 * The name of a copy is used only once.  In a folder link() ensures that.  But
 * many object stores replace an existing object, whatever the request says,
 * and a check in advance does not help two concurrent uploads.  So the
 * database hands out copy ids in blocks, and each block only once
 * (xet.copy_ids_take()).  A block belongs to one worker, so uploads need no
 * other coordination.
 *
 * A worker holds at most four blocks, and uses them in the order of arrival.
 * The first upload requests the first block and waits for it
 * (ngx_http_xet_copy_ids.c).  Later uploads make the event loop request another
 * block if there are fewer than four (ngx_http_xet_query_copy_ids.c), so that
 * hundreds of uploads can start before PostgreSQL responds.  If PostgreSQL is
 * unavailable, no upload can be acknowledged, and an upload without a copy id
 * gets 503.  Unused copy ids are lost when a worker exits.
 *
 * Threads draw copy ids and the event loop adds blocks; a lock protects the
 * list.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"

#include <pthread.h>


typedef struct {
    uint32_t  next;
    uint32_t  left;
} ngx_http_xet_block_t;


static pthread_mutex_t  ngx_http_xet_copy_ids_lock = PTHREAD_MUTEX_INITIALIZER;

/* a ring: the first block is partly used, the blocks after it are unused */

static ngx_http_xet_block_t
    ngx_http_xet_copy_ids[NGX_HTTP_XET_COPY_IDS_BLOCKS];
static ngx_uint_t  ngx_http_xet_copy_ids_first;
static ngx_uint_t  ngx_http_xet_copy_ids_n;


xet_status_t
ngx_http_xet_store_draw_copy_id(uint32_t *copy_id)
{
    xet_status_t           rc;
    ngx_http_xet_block_t  *block;

    rc = XET_OK;

    pthread_mutex_lock(&ngx_http_xet_copy_ids_lock);

    while (*copy_id == 0) {                    /* old copies have the id 0 */

        if (ngx_http_xet_copy_ids_n == 0) {
            rc = XET_DATABASE_AWAY;
            break;
        }

        block = &ngx_http_xet_copy_ids[ngx_http_xet_copy_ids_first];

        *copy_id = block->next++;
        block->left--;

        if (block->left == 0) {
            ngx_http_xet_copy_ids_first = (ngx_http_xet_copy_ids_first + 1)
                                      % NGX_HTTP_XET_COPY_IDS_BLOCKS;
            ngx_http_xet_copy_ids_n--;
        }
    }

    pthread_mutex_unlock(&ngx_http_xet_copy_ids_lock);

    return rc;
}


void
ngx_http_xet_store_copy_ids_add(uint32_t first)
{
    ngx_uint_t             i;
    ngx_http_xet_block_t  *block;

    pthread_mutex_lock(&ngx_http_xet_copy_ids_lock);

    if (ngx_http_xet_copy_ids_n < NGX_HTTP_XET_COPY_IDS_BLOCKS) {
        i = (ngx_http_xet_copy_ids_first + ngx_http_xet_copy_ids_n)
            % NGX_HTTP_XET_COPY_IDS_BLOCKS;

        block = &ngx_http_xet_copy_ids[i];

        block->next = first;
        block->left = NGX_HTTP_XET_COPY_IDS_BLOCK;

        ngx_http_xet_copy_ids_n++;
    }

    pthread_mutex_unlock(&ngx_http_xet_copy_ids_lock);
}


ngx_uint_t
ngx_http_xet_store_copy_ids_blocks(void)
{
    ngx_uint_t  n;

    pthread_mutex_lock(&ngx_http_xet_copy_ids_lock);

    n = ngx_http_xet_copy_ids_n;

    pthread_mutex_unlock(&ngx_http_xet_copy_ids_lock);

    return n;
}
