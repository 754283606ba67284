
/*
 * Stored files as zTensor files: the check of a file, cached or made now, and
 * walks over its objects.
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


struct ngx_http_xet_ztensor_s {
    ngx_http_xet_reader_t            *reader;
    void                             *data;

    xet_hash_t                        hash;
    uint64_t                          rules;
    ngx_http_xet_ztensor_conf_t      *conf;

    xet_zt_query_t                    query;
    xet_zt_select_t                   select;      /* of walks, by query */

    xet_zt_t                         *zt;          /* NULL: nothing is known */
    xet_zt_walk_t                    *walk;

    ngx_http_xet_ztensor_pt           handler;     /* of open or walk */

    ngx_http_xet_ztensor_pt           read;        /* of a range */
    ngx_http_xet_ztensor_consume_pt   consume;
    void                             *consumer;    /* data of both */

    unsigned                          attributes:1;
};


/*
 * Makes the state, which lives as long as the request, and parses the
 * arguments, whose texts are in the request's pool; wanted is XET_ZT_ARG_*.
 * data is what the handlers of open and walk get; it must live as long.
 * XET_OK, XET_NOMEM, or an error of xet_zt_query_parse().
 */
xet_status_t ngx_http_xet_ztensor_create(ngx_http_request_t *r,
    unsigned wanted, ngx_http_xet_ztensor_t **z, void *data);

/*
 * The end of a content handler: opens the file of the path under the access
 * rules of the request and finds the verdict on it by the limits of the
 * location.  attributes: 1 when the attributes of the root are wanted.  Returns
 * what a content handler returns: NGX_AGAIN, and the handler will be called,
 * with XET_OK for a file that can be listed, with the verdict on any other, or
 * with an error; or the answer to such a verdict or error.
 *
 * The first request for a file reads its whole manifest: memory as
 * xet_zt_limits_t says.  Of several first requests at a time each does so, and
 * all find the same verdict.
 */
ngx_int_t ngx_http_xet_ztensor_open(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, ngx_uint_t attributes,
    ngx_http_xet_ztensor_pt handler);

/*
 * Reads the objects of a file that can be listed that z->select matches.
 * object is called for each, in a thread, with z->data; it returns XET_OK for
 * more, XET_DONE for no more, or XET_NOMEM.  XET_AGAIN: the handler will be
 * called, with XET_OK at the end of the walk or with an error.  Otherwise such
 * a status at once.
 */
xet_status_t ngx_http_xet_ztensor_walk(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, xet_zt_object_pt object,
    ngx_http_xet_ztensor_pt handler);

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
 * Answers with an error, with container and offset if status is a verdict on
 * the file.  Returns what ngx_http_finalize_request() takes.
 */
ngx_int_t ngx_http_xet_ztensor_error(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, xet_status_t status);


/* The component of a file that a request names by its arguments. */

/*
 * Called in the event loop, once the component is known.  NGX_AGAIN: the
 * handler finalizes the request later; otherwise the caller does, with what
 * the handler returns.
 */
typedef ngx_int_t (*ngx_http_xet_zt_component_pt)(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


struct ngx_http_xet_zt_component_s {
    ngx_http_xet_ztensor_t        *ztensor;
    ngx_http_xet_zt_component_pt   handler;

    xet_zt_region_t                region;

    xet_zt_object_t               *object;     /* without attributes */
    const xet_zt_component_t      *component;
    xet_range_t                    range;      /* in the file */
};


/*
 * Parses the arguments, opens the file of the path, and calls the handler for
 * a component of a valid object whose bytes are in this file; everything else
 * is answered with an error.  wanted: XET_ZT_ARG_* besides the arguments for
 * object and role.  Returns what a content handler returns.
 */
ngx_int_t ngx_http_xet_zt_component(ngx_http_request_t *r, unsigned wanted,
    ngx_http_xet_zt_component_pt handler);


/* The decoded form of a compressed component, as an answer. */

/*
 * Whether a component may be sent, by its description: XET_OK, XET_ZT_DECODE,
 * XET_ZT_DECODE_SIZE, XET_ZT_ZSTD.
 */
xet_status_t ngx_http_xet_zt_decode_check(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);

/*
 * Sends the decoded component; the caller has checked it and the conditions of
 * the request, and has set all headers but those of type and length.  A Range
 * header of the request is ignored.  A component of
 * up to 1 MiB, stored and decoded, is decoded before anything is sent, so
 * invalid zstd is answered with 422; with a larger component that holds for
 * the first 256 KiB, after which an error cuts the connection.
 *
 * Memory: both forms of a small component; else a piece of each form, the
 * decoder's window and its state.
 *
 * Returns what a handler of components returns.
 */
ngx_int_t ngx_http_xet_zt_decode_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


#endif /* _NGX_HTTP_XET_ZTENSOR_H_INCLUDED_ */
