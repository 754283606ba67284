
/*
 * The tags of copies, which make the names of two copies of a xorb different
 * for ever.
 *
 * The name of a copy is used once.  In a folder a link ensures that.  Many
 * object stores replace existing objects, whatever the request says, and two
 * uploads can't both check first.  So the database hands out tags in blocks,
 * and each block once (xet.tags_take()): a worker has its blocks to itself,
 * and uploads need not know of each other.
 *
 * A worker holds at most four blocks, and uses them in the order of arrival.
 * The first upload requests the first block and waits for it
 * (ngx_http_xet_tags.c).  Later ones make the event loop request another block
 * if there is room (ngx_http_xet_query_tags.c), so that hundreds of uploads
 * may arrive before PostgreSQL answers.  If PostgreSQL is away no upload can
 * be acknowledged, and an upload without a tag gets 503.  Unused tags are lost
 * when a worker exits.
 *
 * Threads draw and the event loop adds, hence the lock.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"

#include <pthread.h>


typedef struct {
    uint32_t  next;
    uint32_t  left;
} ngx_http_xet_block_t;


static pthread_mutex_t  ngx_http_xet_tags_lock = PTHREAD_MUTEX_INITIALIZER;

/* a ring: the first block is in use, those after it are complete */

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

    while (*tag == 0) {                        /* used by old copies */

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
