
/*
 * Stored files as zTensor files: the verdict on one, kept from before or made
 * now, and walks over its objects.
 */

#ifndef _NGX_HTTP_XET_ZTENSOR_H_INCLUDED_
#define _NGX_HTTP_XET_ZTENSOR_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_reader.h"


/* Of a location: places in limit. */

enum {
    NGX_HTTP_XET_ZT_MANIFEST = 0,              /* bytes */
    NGX_HTTP_XET_ZT_OBJECTS,
    NGX_HTTP_XET_ZT_COMPONENTS,
    NGX_HTTP_XET_ZT_ROLES,
    NGX_HTTP_XET_ZT_RANK,
    NGX_HTTP_XET_ZT_DEPTH,
    NGX_HTTP_XET_ZT_NAME,                      /* bytes */
    NGX_HTTP_XET_ZT_KEYS,
    NGX_HTTP_XET_ZT_ATTRIBUTES,                /* bytes echoed */
    NGX_HTTP_XET_ZT_PAGE,                      /* objects */
    NGX_HTTP_XET_ZT_DECODE,                    /* bytes */
    NGX_HTTP_XET_ZT_WINDOW,                    /* bytes, a power of 2 */
    NGX_HTTP_XET_ZT_VERIFY,                    /* bytes */
    NGX_HTTP_XET_ZT_LIMITS
};


typedef struct {
    ngx_flag_t                 strict;
    uint64_t                   limit[NGX_HTTP_XET_ZT_LIMITS];

    xet_zt_limits_t            limits;         /* of the above */
    xet_zt_decode_limits_t     decoder;
} ngx_http_xet_ztensor_conf_t;


extern ngx_module_t  ngx_http_xet_ztensor_module;


/*
 * Called once, from the event loop, for what was begun.  Statuses are those
 * of the reader (ngx_http_xet_reader.h), and what is told below.
 */
typedef void (*ngx_http_xet_ztensor_pt)(ngx_http_request_t *r, void *data,
    xet_status_t status);

/*
 * In a thread, len bytes of a range: XET_OK for more, XET_DONE for a pause
 * behind them, anything else ends the range.
 */
typedef xet_status_t (*ngx_http_xet_ztensor_consume_pt)(void *data,
    const u_char *p, size_t len);


/*
 * data is what handlers get; it lives as long as the request.  NULL without
 * memory.
 */
ngx_http_xet_ztensor_t *ngx_http_xet_ztensor_create(ngx_http_request_t *r,
    void *data);

/*
 * Opens a file under the access rules of the request and finds the verdict on
 * it by the limits of the location.  attributes: those of the root are wanted.
 *
 * XET_AGAIN: the handler will be called, with XET_OK for a file that can be
 * listed or with its verdict.  Otherwise that, at once.
 *
 * A first request reads the whole manifest: memory as xet_zt_limits_t says.
 * Any number of first requests at a time find the same.
 */
xet_status_t ngx_http_xet_ztensor_open(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, const xet_hash_t *file, ngx_uint_t attributes,
    ngx_http_xet_ztensor_pt handler);

/* Of the open file, also where the verdict is bad. */

const xet_zt_t *ngx_http_xet_ztensor_file(ngx_http_xet_ztensor_t *z);
ngx_http_xet_reader_t *ngx_http_xet_ztensor_reader(ngx_http_xet_ztensor_t *z);

/*
 * Reads objects of a readable file; object is called in a thread, with ctx,
 * and returns XET_OK, XET_DONE or XET_NOMEM.  The texts of select live until
 * the handler is called.  As above; XET_OK at the end.
 */
xet_status_t ngx_http_xet_ztensor_walk(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, const xet_zt_select_t *select,
    xet_zt_object_pt object, void *ctx, ngx_http_xet_ztensor_pt handler);

/*
 * Reads a range of the file, which is not empty; data is what both get.  As
 * above; XET_OK at a pause, after which _next() goes on, XET_DONE at the end.
 */
xet_status_t ngx_http_xet_ztensor_read(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, const xet_range_t *range,
    ngx_http_xet_ztensor_consume_pt consume, ngx_http_xet_ztensor_pt handler,
    void *data);
xet_status_t ngx_http_xet_ztensor_next(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z);

/*
 * Parses the arguments of the request; wanted as xet_zt_query_parse() has it.
 * XET_NOMEM, or its errors.
 */
xet_status_t ngx_http_xet_ztensor_query(ngx_http_request_t *r,
    unsigned wanted, xet_zt_query_t *query);

/*
 * What a content handler returns for the status of what it has begun: waits,
 * or answers with the error.
 */
ngx_int_t ngx_http_xet_ztensor_wait(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, xet_status_t status);

/* The answer for a status; with container and place, if it is a verdict. */
ngx_int_t ngx_http_xet_ztensor_error(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, xet_status_t status);


#endif /* _NGX_HTTP_XET_ZTENSOR_H_INCLUDED_ */
