
/*
 * Handles requests for zTensor files: checks whether a stored file is a valid
 * zTensor file (results are cached), and iterates over its objects.
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
    NGX_HTTP_XET_ZT_ATTRIBUTES,                /* bytes, in responses */
    NGX_HTTP_XET_ZT_PAGE,                      /* objects */
    NGX_HTTP_XET_ZT_DECODE,                    /* bytes */
    NGX_HTTP_XET_ZT_WINDOW,                    /* bytes, a power of 2 */
    NGX_HTTP_XET_ZT_VERIFY,                    /* bytes */
    NGX_HTTP_XET_ZT_LIMITS
};


typedef struct {
    ngx_flag_t                 strict;
    uint64_t                   limit[NGX_HTTP_XET_ZT_LIMITS];

    xet_zt_limits_t            limits;         /* set from limit[] */
    xet_zt_decode_limits_t     decoder;
} ngx_http_xet_ztensor_conf_t;


extern ngx_module_t  ngx_http_xet_ztensor_module;


/*
 * The handler that is passed to open, walk or read: called once, from the
 * event loop, after that function has returned NGX_AGAIN (open) or XET_AGAIN.
 * status is a status of the reader (ngx_http_xet_download.h), or a status that
 * is documented with the function.
 */
typedef void (*ngx_http_xet_ztensor_pt)(ngx_http_request_t *r, void *data,
    xet_status_t status);

/*
 * Takes the next len bytes of a range, in a thread.  XET_OK continues,
 * XET_DONE pauses after these bytes; any other status ends the range and is
 * passed to the handler.  XET_AGAIN must not be returned.
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
    xet_zt_select_t                   select;      /* selection for walks */

    xet_zt_t                         *zt;          /* NULL: not checked yet */
    xet_zt_walk_t                    *walk;

    ngx_http_xet_ztensor_pt           handler;     /* open or walk handler */

    ngx_http_xet_ztensor_pt           read;        /* read handler */
    ngx_http_xet_ztensor_consume_pt   consume;
    void                             *consumer;    /* data of the last two */

    unsigned                          attributes:1;
};


/*
 * Creates the state, which lives as long as the request, and parses the
 * arguments, whose texts are in the request's pool; wanted is XET_ZT_ARG_*.
 * data is passed to the handlers of open and walk, and must also live as long
 * as the request.  Returns XET_OK, XET_NOMEM, or an error of
 * xet_zt_query_parse().
 */
xet_status_t ngx_http_xet_ztensor_create(ngx_http_request_t *r,
    unsigned wanted, ngx_http_xet_ztensor_t **z, void *data);

/*
 * Opens the file named in the path with the permissions of the request, and
 * gets its check result for the limits of the location.  attributes: 1 if the
 * attributes of the root are needed.
 *
 * A content handler calls this function last and returns its result.
 * NGX_AGAIN: handler is called later, with XET_OK for a file that can be
 * listed, with the check result of any other file, or with an error.  Any other
 * result comes from ngx_http_xet_ztensor_error().
 *
 * The first request for a file reads its whole manifest; xet_zt_limits_t
 * states the memory.  Concurrent first requests each read the manifest, and
 * get the same result.
 */
ngx_int_t ngx_http_xet_ztensor_open(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, ngx_uint_t attributes,
    ngx_http_xet_ztensor_pt handler);

/*
 * Reads the objects that match z->select, of a file that can be listed.
 * object is called for each of these objects, in a thread, with z->data; it
 * returns XET_OK to continue, XET_DONE to stop the walk, or XET_NOMEM.
 * XET_AGAIN: handler is called later, with XET_OK at the end of the walk or
 * with an error.  Otherwise returns the status of the walk immediately.
 */
xet_status_t ngx_http_xet_ztensor_walk(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, xet_zt_object_pt object,
    ngx_http_xet_ztensor_pt handler);

/*
 * Reads a range of the file, which must not be empty; data is passed to
 * consume and handler.  XET_AGAIN: handler is called later, with XET_DONE at
 * the end of the range, with XET_OK at a pause, or with an error.  After a
 * pause, ngx_http_xet_ztensor_next() continues.  Otherwise returns the status
 * of the read immediately.
 */
xet_status_t ngx_http_xet_ztensor_read(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, const xet_range_t *range,
    ngx_http_xet_ztensor_consume_pt consume, ngx_http_xet_ztensor_pt handler,
    void *data);
xet_status_t ngx_http_xet_ztensor_next(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z);

/*
 * Sends an error, with container and offset if status is a check result of the
 * file.  Returns the status for ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_ztensor_error(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, xet_status_t status);


/* The component of a file that a request names by its arguments. */

/*
 * Called in the event loop when the component is found.  If the handler returns
 * NGX_AGAIN, it finalizes the request later; otherwise the caller finalizes the
 * request with the result.
 */
typedef ngx_int_t (*ngx_http_xet_zt_component_pt)(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


struct ngx_http_xet_zt_component_s {
    ngx_http_xet_ztensor_t        *ztensor;
    ngx_http_xet_zt_component_pt   handler;

    xet_zt_region_t                region;

    xet_zt_object_t               *object;     /* has no attributes */
    const xet_zt_component_t      *component;
    xet_range_t                    range;      /* bytes of the file */
};


/*
 * Parses the arguments, opens the file named in the path, and calls the handler
 * for a component of a valid object whose bytes are in this file; otherwise
 * sends an error.  wanted: XET_ZT_ARG_* that are accepted in addition to the
 * arguments for object and role.  Returns the result of a content handler.
 */
ngx_int_t ngx_http_xet_zt_component(ngx_http_request_t *r, unsigned wanted,
    ngx_http_xet_zt_component_pt handler);


/* Responses with the decoded form of a compressed component. */

/*
 * Checks, from a component's description, whether the component can be sent
 * decoded.  Returns XET_OK, XET_ZT_DECODE, XET_ZT_DECODE_SIZE or XET_ZT_ZSTD.
 */
xet_status_t ngx_http_xet_zt_decode_check(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);

/*
 * Sends the decoded component.  The caller must have checked the component and
 * the conditions of the request, and set all headers except type and length.  A
 * Range header is ignored.  A component of up to 1 MiB, stored and decoded, is
 * decoded before the response starts, so the response to invalid zstd is 422.
 * For a larger component, only an error in the first 256 KiB is a 422; a later
 * error closes the connection.
 *
 * Memory: both forms of a small component; otherwise a piece of each form, the
 * decoder's window and its state.
 *
 * Returns the result of a component handler.
 */
ngx_int_t ngx_http_xet_zt_decode_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


#endif /* _NGX_HTTP_XET_ZTENSOR_H_INCLUDED_ */
