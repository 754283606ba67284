
/*
 * The tags of copies, which keep two copies of one xorb apart for ever.
 *
 * The name of a copy is used once.  In a folder a link sees to that; of object
 * stores many replace what is there, whatever they are asked, and two uploads
 * of one xorb at one moment could not both look first.  So the database hands
 * out tags in blocks, and no block twice (xet.tags_take()): who has a block has
 * it alone, and no upload needs to know of another one.
 *
 * A worker holds four blocks at most, drawn in the order in which they came.
 * The first upload asks for the first one, and waits for it
 * (ngx_http_xet_tags.c); who comes while there is room for another block has
 * the event loop ask for it (ngx_http_xet_query_tags.c), so that hundreds of
 * uploads may come before PostgreSQL has answered.  Where the answer is late,
 * because PostgreSQL is away, nothing can be acknowledged anyway, and who finds
 * no tag is answered 503.  What a worker has left when it ends is lost.
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

/* a ring: the first is drawn, those behind it are whole */

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

    while (*tag == 0) {                        /* which is that of old copies */

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
