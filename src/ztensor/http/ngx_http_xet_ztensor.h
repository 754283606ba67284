
/*
 * Stored files as zTensor files: the verdict on one, kept from before or made
 * now, and walks over its objects.
 */

#ifndef _NGX_HTTP_XET_ZTENSOR_H_INCLUDED_
#define _NGX_HTTP_XET_ZTENSOR_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"


/* The limits of a location, as indices of limit[]. */

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

    xet_zt_limits_t            limits;         /* made of limit[] */
    xet_zt_decode_limits_t     decoder;
} ngx_http_xet_ztensor_conf_t;


extern ngx_module_t  ngx_http_xet_ztensor_module;


/*
 * The handler of an operation below: called once, from the event loop, when
 * the operation has returned XET_AGAIN.  status is one of the reader's
 * (ngx_http_xet_download.h), or one that the operation names.
 */
typedef void (*ngx_http_xet_ztensor_pt)(ngx_http_request_t *r, void *data,
    xet_status_t status);

/*
 * Takes the next len bytes of a range, in a thread.  XET_OK goes on, XET_DONE
 * pauses behind these bytes; any other status ends the range and goes to the
 * handler.  XET_AGAIN must not be returned.
 */
typedef xet_status_t (*ngx_http_xet_ztensor_consume_pt)(void *data,
    const u_char *p, size_t len);


/*
 * Makes the state, which lives as long as the request.  data is what the
 * handlers of open and walk get; it must live as long.  NULL without memory.
 */
ngx_http_xet_ztensor_t *ngx_http_xet_ztensor_create(ngx_http_request_t *r,
    void *data);

/*
 * Opens a file under the access rules of the request and finds the verdict on
 * it by the limits of the location.  attributes: 1 when the attributes of the
 * root are wanted.
 *
 * XET_AGAIN: the handler will be called, with XET_OK for a file that can be
 * listed, with the verdict on any other, or with an error.  Any other value is
 * such a verdict or error at once; the handler is not called then.
 *
 * The first request for a file reads its whole manifest: memory as
 * xet_zt_limits_t says.  Of several first requests at a time each does so, and
 * all find the same verdict.
 */
xet_status_t ngx_http_xet_ztensor_open(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, const xet_hash_t *file, ngx_uint_t attributes,
    ngx_http_xet_ztensor_pt handler);

/*
 * What is known of the open file, also after a bad verdict, and its reader.
 * Both belong to z; the former is NULL as long as nothing is known.
 */

const xet_zt_t *ngx_http_xet_ztensor_file(ngx_http_xet_ztensor_t *z);
ngx_http_xet_reader_t *ngx_http_xet_ztensor_reader(ngx_http_xet_ztensor_t *z);

/*
 * Reads objects of a file that can be listed.  object is called for each that
 * select matches, in a thread, with ctx; it returns XET_OK for more, XET_DONE
 * for no more, or XET_NOMEM.  *select is copied, its texts must live until the
 * handler is called.
 *
 * XET_AGAIN: the handler will be called, with XET_OK at the end of the walk or
 * with an error.  Otherwise such a status at once.
 */
xet_status_t ngx_http_xet_ztensor_walk(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, const xet_zt_select_t *select,
    xet_zt_object_pt object, void *ctx, ngx_http_xet_ztensor_pt handler);

/*
 * Reads a range of the file, which must not be empty; data is what consume and
 * handler get.  XET_AGAIN: the handler will be called, with XET_OK at a pause,
 * after which ngx_http_xet_ztensor_next() goes on, with XET_DONE at the end of
 * the range, or with an error.  Otherwise such a status at once.
 */
xet_status_t ngx_http_xet_ztensor_read(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, const xet_range_t *range,
    ngx_http_xet_ztensor_consume_pt consume, ngx_http_xet_ztensor_pt handler,
    void *data);
xet_status_t ngx_http_xet_ztensor_next(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z);

/*
 * Parses the arguments of the request; wanted is XET_ZT_ARG_*.  The texts of
 * query are in the request's pool.  XET_OK, XET_NOMEM, or an error of
 * xet_zt_query_parse().
 */
xet_status_t ngx_http_xet_ztensor_query(ngx_http_request_t *r,
    unsigned wanted, xet_zt_query_t *query);

/*
 * The end of a content handler that has begun an operation: where its status
 * is XET_AGAIN the request waits, any other status is answered as an error.
 */
ngx_int_t ngx_http_xet_ztensor_wait(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, xet_status_t status);

/*
 * Answers with an error, with container and offset if status is a verdict on
 * the file.  Returns what ngx_http_finalize_request() takes.
 */
ngx_int_t ngx_http_xet_ztensor_error(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, xet_status_t status);


#endif /* _NGX_HTTP_XET_ZTENSOR_H_INCLUDED_ */
