
/*
 * Tags make the names of any two copies of a xorb different, forever.
 *
 * The name of a copy is used only once.  In a folder link() ensures that.  But
 * many object stores replace an existing object, whatever the request says,
 * and a check in advance does not help two concurrent uploads.  So the
 * database hands out tags in blocks, and each block only once
 * (xet.tags_take()).  A block belongs to one worker, so uploads need no
 * further coordination.
 *
 * A worker holds at most four blocks, and uses them in the order of arrival.
 * The first upload requests the first block and waits for it
 * (ngx_http_xet_tags.c).  Later uploads make the event loop request another
 * block if there are fewer than four (ngx_http_xet_query_tags.c), so that
 * hundreds of uploads can start before PostgreSQL responds.  If PostgreSQL is
 * unavailable, no upload can be acknowledged, and an upload without a tag gets
 * 503.  Unused tags are lost when a worker exits.
 *
 * Threads draw tags and the event loop adds blocks; a lock protects the list.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"

#include <pthread.h>


typedef struct {
    uint32_t  next;
    uint32_t  left;
} ngx_http_xet_block_t;


static pthread_mutex_t  ngx_http_xet_tags_lock = PTHREAD_MUTEX_INITIALIZER;

/* a ring: the first block is in use, the blocks after it are complete */

static ngx_http_xet_block_t  ngx_http_xet_tags[NGX_HTTP_XET_TAGS_BLOCKS];
static ngx_uint_t            ngx_http_xet_tags_first;
static ngx_uint_t            ngx_http_xet_tags_n;


xet_status_t
ngx_http_xet_store_draw_tag(uint32_t *tag)
{
    xet_status_t           rc;
    ngx_http_xet_block_t  *block;

    rc = XET_OK;

    pthread_mutex_lock(&ngx_http_xet_tags_lock);

    while (*tag == 0) {                        /* 0 is used by old copies */

        if (ngx_http_xet_tags_n == 0) {
            rc = XET_DATABASE_AWAY;
            break;
        }

        block = &ngx_http_xet_tags[ngx_http_xet_tags_first];

        *tag = block->next++;
        block->left--;

        if (block->left == 0) {
            ngx_http_xet_tags_first = (ngx_http_xet_tags_first + 1)
                                      % NGX_HTTP_XET_TAGS_BLOCKS;
            ngx_http_xet_tags_n--;
        }
    }

    pthread_mutex_unlock(&ngx_http_xet_tags_lock);

    return rc;
}


void
ngx_http_xet_store_tags_add(uint32_t first)
{
    ngx_uint_t             i;
    ngx_http_xet_block_t  *block;

    pthread_mutex_lock(&ngx_http_xet_tags_lock);

    if (ngx_http_xet_tags_n < NGX_HTTP_XET_TAGS_BLOCKS) {
        i = (ngx_http_xet_tags_first + ngx_http_xet_tags_n)
            % NGX_HTTP_XET_TAGS_BLOCKS;

        block = &ngx_http_xet_tags[i];

        block->next = first;
        block->left = NGX_HTTP_XET_TAGS_BLOCK;

        ngx_http_xet_tags_n++;
    }

    pthread_mutex_unlock(&ngx_http_xet_tags_lock);
}


ngx_uint_t
ngx_http_xet_store_tags_blocks(void)
{
    ngx_uint_t  n;

    pthread_mutex_lock(&ngx_http_xet_tags_lock);

    n = ngx_http_xet_tags_n;

    pthread_mutex_unlock(&ngx_http_xet_tags_lock);

    return n;
}
