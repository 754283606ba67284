
/* A verification of a zTensor file: the request, its batch and its reports. */

#ifndef _NGX_HTTP_XET_ZT_VERIFY_H_INCLUDED_
#define _NGX_HTTP_XET_ZT_VERIFY_H_INCLUDED_


#include "ngx_http_xet_ztensor.h"


#define NGX_HTTP_XET_ZT_BATCH_OBJECTS  64


/* A component to be verified. */

typedef struct {
    xet_zt_object_t           *object;
    const xet_zt_component_t  *component;
    xet_range_t                range;          /* empty: nothing to read */
    uint64_t                   at;             /* sort key: offset to read at */
    uint64_t                   cost;           /* reserved bytes */
    xet_zt_report_t            report;
    unsigned                   known:1;        /* report is from PostgreSQL */
    unsigned                   values:1;       /* "values" of sparse object */
} ngx_http_xet_zt_item_t;


/*
 * The request and its batch, whose items are in the order of the objects and
 * of their components.
 */

struct ngx_http_xet_zt_verify_s {
    ngx_http_xet_ztensor_t    *ztensor;
    ngx_http_xet_ztensor_pt    done;           /* called after a batch */
    xet_zt_region_t            region;
    xet_zt_verifier_t         *verifier;
    uint64_t                   rules;          /* xet_zt_report_rules() */
    uint64_t                   left;           /* bytes to read or to decode,
                                                  whichever is more */

    xet_zt_object_t           *objects[NGX_HTTP_XET_ZT_BATCH_OBJECTS];
    ngx_uint_t                 nobjects;
    size_t                     size;           /* bytes of all copies */

    ngx_http_xet_zt_item_t    *items;
    ngx_http_xet_zt_item_t   **order;          /* items, sorted by "at" */
    ngx_uint_t                 n;              /* number of items */

    ngx_uint_t                 next;           /* index in order[] of the first
                                                  item without a report */
    ngx_uint_t                 end;            /* index in order[] after the
                                                  last item of the current
                                                  read */
    uint64_t                   pos;            /* offset in the file of the
                                                  next byte to verify */

    u_char                    *in;             /* copy of the unprocessed bytes
                                                  of a piece */
    const u_char              *in_pos;
    size_t                     in_len;         /* bytes not decoded yet */
    uint64_t                   room;           /* bytes this job may still
                                                  process */
    xet_status_t               status;         /* result of the last job */

    ngx_http_xet_stream_t      stream;
    xet_buf_t                  buf;
    xet_json_t                 json;
    xet_zt_audit_t             audit;

    unsigned                   one:1;          /* one object is requested */
    unsigned                   full:1;         /* more objects may follow */
    unsigned                   started:1;      /* verifying order[next] */
    unsigned                   held:1;         /* verifier has output left */
};


/*
 * ngx_http_xet_zt_batch.c: reads and verifies the components of a batch.
 */

/* Fills the items from the objects.  Returns XET_OK or XET_NOMEM. */
xet_status_t ngx_http_xet_zt_batch_items(ngx_http_xet_zt_verify_t *v);

/*
 * Starts to read the next items.  Returns XET_OK if all items have reports,
 * XET_AGAIN if v->done is called later, or an error.
 */
xet_status_t ngx_http_xet_zt_batch_next(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);

/* Frees the objects and items. */
void ngx_http_xet_zt_batch_reset(ngx_http_xet_zt_verify_t *v);


/*
 * ngx_http_xet_zt_reports.c: reports in PostgreSQL.
 */

/* Sets the reports of items from the rows of the current query. */
void ngx_http_xet_zt_reports_rows(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);

/* Stores the new reports; an error is only logged. */
void ngx_http_xet_zt_reports_keep(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);


#endif /* _NGX_HTTP_XET_ZT_VERIFY_H_INCLUDED_ */
