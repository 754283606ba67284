
/*
 * Objects of a zTensor file whose data is held against what is declared, some
 * at a time.
 */

#ifndef _NGX_HTTP_XET_ZT_BATCH_H_INCLUDED_
#define _NGX_HTTP_XET_ZT_BATCH_H_INCLUDED_


#include "ngx_http_xet_ztensor.h"


#define NGX_HTTP_XET_ZT_BATCH_OBJECTS  64
#define NGX_HTTP_XET_ZT_BATCH_BYTES    (256 * 1024)    /* of all copies */
#define NGX_HTTP_XET_ZT_BATCH_WORK     (4 * 1024 * 1024)  /* bytes a job */


/* A component to be verified. */

typedef struct {
    xet_zt_object_t           *object;
    const xet_zt_component_t  *component;
    xet_range_t                range;          /* empty: nothing to read */
    uint64_t                   place;          /* sort key: offset to read at */
    uint64_t                   cost;           /* bytes set aside for it */
    xet_zt_report_t            report;
    unsigned                   known:1;        /* report is from PostgreSQL */
    unsigned                   values:1;       /* role "values", sparse */
} ngx_http_xet_zt_item_t;


/* The items are in the order of the objects and of their components. */

struct ngx_http_xet_zt_batch_s {
    ngx_http_xet_ztensor_t    *ztensor;
    xet_zt_region_t            region;
    xet_zt_verifier_t         *verifier;
    uint64_t                   rules;          /* xet_zt_report_rules() */
    uint64_t                   output;         /* decoded of one at most */
    uint64_t                   left;           /* bytes, of the request */

    xet_zt_object_t           *objects[NGX_HTTP_XET_ZT_BATCH_OBJECTS];
    ngx_uint_t                 nobjects;
    size_t                     size;           /* of all copies */

    ngx_http_xet_zt_item_t    *items;
    ngx_http_xet_zt_item_t   **order;          /* by place in the file */
    ngx_uint_t                 n;              /* of items */

    ngx_uint_t                 next;           /* in order: first not done */
    ngx_uint_t                 end;            /* in order: behind the read */
    uint64_t                   pos;            /* of the read, in the file */

    u_char                    *in;             /* rest of a piece, copied */
    const u_char              *in_pos;
    size_t                     in_len;         /* not decoded so far */
    uint64_t                   room;           /* bytes left for this job */
    xet_status_t               status;         /* of a job of the batch */

    ngx_http_xet_ztensor_pt    handler;
    void                      *data;
    ngx_http_xet_ztensor_pt    loaded;         /* after the kept reports */

    unsigned                   started:1;      /* verifier has order[next] */
    unsigned                   held:1;         /* verifier has output left */
};


/*
 * The batch is zeroed but for ztensor, which has an open file, and left: the
 * number of bytes that may be read or decoded, counting for each component the
 * larger one.  To be destroyed whatever is returned: XET_OK, XET_NOMEM.
 */
xet_status_t ngx_http_xet_zt_batch_init(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);
void ngx_http_xet_zt_batch_destroy(ngx_http_xet_zt_batch_t *b);

/*
 * Adds a copy of an object.  XET_OK; XET_DONE when the batch is full with it
 * and takes no more; XET_NOMEM.  May be called by the object handler of a
 * walk, in a thread.
 */
xet_status_t ngx_http_xet_zt_batch_add(ngx_http_xet_zt_batch_t *b,
    const xet_zt_object_t *o);

/* Frees the objects and their reports; others may be added. */
void ngx_http_xet_zt_batch_reset(ngx_http_xet_zt_batch_t *b);

/*
 * Verifies the components of all objects, or those of one role only (NULL:
 * all), and leaves the reports in the items.  Components whose reports
 * PostgreSQL has kept are not read, nor components for which not enough is
 * left; their reports say XET_ZT_VERIFY_SIZE.  XET_AGAIN: the handler is
 * called, with XET_OK when every item has a report, or with the error that
 * prevented that.  Otherwise such a status at once.
 */
xet_status_t ngx_http_xet_zt_batch_verify(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b, const xet_zt_text_t *role,
    ngx_http_xet_ztensor_pt handler, void *data);


#endif /* _NGX_HTTP_XET_ZT_BATCH_H_INCLUDED_ */
