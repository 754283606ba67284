
/*
 * Objects of a zTensor file whose data is held against what is declared, some
 * at a time.
 */

#ifndef _NGX_HTTP_XET_ZT_BATCH_H_INCLUDED_
#define _NGX_HTTP_XET_ZT_BATCH_H_INCLUDED_


#include "ngx_http_xet_ztensor.h"


#define NGX_HTTP_XET_ZT_BATCH_OBJECTS  64
#define NGX_HTTP_XET_ZT_BATCH_BYTES    (256 * 1024)    /* of their copies */
#define NGX_HTTP_XET_ZT_BATCH_WORK     (4 * 1024 * 1024)  /* in a job */


/* A component that is verified. */

typedef struct {
    xet_zt_object_t           *object;
    const xet_zt_component_t  *component;
    xet_range_t                range;          /* empty: nothing to read */
    uint64_t                   place;          /* in the order of reading */
    uint64_t                   cost;           /* set aside for it */
    xet_zt_report_t            report;
    unsigned                   known:1;        /* the report was kept */
    unsigned                   values:1;       /* of a sparse object */
} ngx_http_xet_zt_item_t;


/* The components of an object are items in their order. */

typedef struct {
    ngx_http_xet_ztensor_t    *ztensor;
    xet_zt_region_t            region;
    xet_zt_verifier_t         *verifier;
    uint64_t                   rules;          /* of reports */
    uint64_t                   output;         /* decoded of one at most */
    uint64_t                   left;           /* bytes, of the request */

    xet_zt_object_t           *objects[NGX_HTTP_XET_ZT_BATCH_OBJECTS];
    ngx_uint_t                 nobjects;
    size_t                     size;           /* of their copies */

    ngx_http_xet_zt_item_t    *items;
    ngx_http_xet_zt_item_t   **order;          /* by place in the file */
    ngx_uint_t                 n;              /* of items */

    ngx_uint_t                 next;           /* of order, not yet done */
    ngx_uint_t                 end;            /* of those being read */
    uint64_t                   pos;            /* in the file */

    u_char                    *in;             /* of a piece */
    const u_char              *in_pos;         /* what is not yet done of it */
    size_t                     in_len;
    uint64_t                   room;           /* for work of this job */
    xet_status_t               status;         /* of a job of ours */

    ngx_http_xet_ztensor_pt    handler;
    void                      *data;
    ngx_http_xet_ztensor_pt    loaded;         /* kept reports are */

    unsigned                   started:1;      /* the next one is */
    unsigned                   held:1;         /* and has more to give */
} ngx_http_xet_zt_batch_t;


/*
 * The batch is zeroed, its ztensor open, and "left" set: so many bytes may be
 * read or decoded, of each component whichever are more.  XET_OK, XET_NOMEM.
 */
xet_status_t ngx_http_xet_zt_batch_init(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);
void ngx_http_xet_zt_batch_destroy(ngx_http_xet_zt_batch_t *b);

/*
 * Takes a copy of an object; XET_DONE when the batch is full with it,
 * XET_NOMEM.  Suits a walk's handler, in a thread.
 */
xet_status_t ngx_http_xet_zt_batch_add(ngx_http_xet_zt_batch_t *b,
    const xet_zt_object_t *o);

/* Forgets the objects; others may be added. */
void ngx_http_xet_zt_batch_reset(ngx_http_xet_zt_batch_t *b);

/*
 * Verifies all components, or those of one role only (NULL: all), and leaves
 * the reports in the items; what was kept from before is not read, nor that for
 * which nothing is left, whose report says XET_ZT_VERIFY_SIZE.  XET_AGAIN: the
 * handler will be called with XET_OK, or why not all was read; otherwise
 * that, at once.
 */
xet_status_t ngx_http_xet_zt_batch_verify(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b, const xet_zt_text_t *role,
    ngx_http_xet_ztensor_pt handler, void *data);


#endif /* _NGX_HTTP_XET_ZT_BATCH_H_INCLUDED_ */
