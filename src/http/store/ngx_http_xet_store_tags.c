
/*
 * The tags of copies, which keep two copies of one xorb apart for ever.
 *
 * The name of a copy is used once.  In a folder a link sees to that; of object
 * stores many replace what is there, whatever they are asked, and two uploads
 * of one xorb at one moment could not both look first.  So the database hands
 * out tags in blocks, and no block twice (xet.tags_take()): who has a block has
 * it alone, and no upload needs to know of another one.
 *
 * A worker holds two blocks at most.  The first upload asks for the first one,
 * and waits for it (ngx_http_xet_tags.c); when half a block is left the event
 * loop asks for another one (ngx_http_xet_query_tags.c).  Where that is late,
 * because PostgreSQL is away, nothing can be acknowledged anyway, and who finds
 * no tag is answered 503.  What a worker has left when it ends is lost.
 *
 * Threads draw and the event loop adds, hence the lock.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"

#include <pthread.h>


typedef struct {
    uint32_t  next;
    uint32_t  left;
} ngx_http_xet_block_t;


static pthread_mutex_t  ngx_http_xet_tags_lock = PTHREAD_MUTEX_INITIALIZER;

static ngx_http_xet_block_t  ngx_http_xet_tags[2];      /* the first is drawn */


xet_status_t
ngx_http_xet_store_draw_tag(uint32_t *tag)
{
    xet_status_t          rc;
    ngx_http_xet_block_t  *tags;

    tags = ngx_http_xet_tags;
    rc = XET_OK;

    pthread_mutex_lock(&ngx_http_xet_tags_lock);

    while (*tag == 0) {                        /* which is that of old copies */

        if (tags[0].left == 0) {
            tags[0] = tags[1];
            tags[1].left = 0;
        }

        if (tags[0].left == 0) {
            rc = XET_DATABASE_AWAY;
            break;
        }

        *tag = tags[0].next++;
        tags[0].left--;
    }

    pthread_mutex_unlock(&ngx_http_xet_tags_lock);

    return rc;
}


void
ngx_http_xet_store_tags_add(uint32_t first)
{
    ngx_http_xet_block_t  *tags;

    tags = ngx_http_xet_tags;

    pthread_mutex_lock(&ngx_http_xet_tags_lock);

    if (tags[0].left) {
        tags++;
    }

    if (tags->left == 0) {
        tags->next = first;
        tags->left = NGX_HTTP_XET_TAGS_BLOCK;
    }

    pthread_mutex_unlock(&ngx_http_xet_tags_lock);
}


ngx_uint_t
ngx_http_xet_store_tags_few(void)
{
    ngx_uint_t            few;
    ngx_http_xet_block_t  *tags;

    tags = ngx_http_xet_tags;

    pthread_mutex_lock(&ngx_http_xet_tags_lock);

    few = (tags[1].left == 0 && tags[0].left < NGX_HTTP_XET_TAGS_BLOCK / 2);

    pthread_mutex_unlock(&ngx_http_xet_tags_lock);

    return few;
}


ngx_uint_t
ngx_http_xet_store_tags_none(void)
{
    ngx_uint_t            none;
    ngx_http_xet_block_t  *tags;

    tags = ngx_http_xet_tags;

    pthread_mutex_lock(&ngx_http_xet_tags_lock);

    none = (tags[0].left == 0 && tags[1].left == 0);

    pthread_mutex_unlock(&ngx_http_xet_tags_lock);

    return none;
}
