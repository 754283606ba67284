
/*
 * The body of an answer that is ranges of a stored file, with texts between
 * them: streamed, with backpressure to the client.
 */

#ifndef _NGX_HTTP_XET_PARTS_H_INCLUDED_
#define _NGX_HTTP_XET_PARTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"


typedef struct {
    ngx_str_t                text;             /* in front of the bytes */
    xet_range_t              range;            /* of the file, not empty */
} ngx_http_xet_part_t;


/*
 * Called when the first bytes of the answer are at hand, to set its headers.
 * NGX_OK, or NGX_ERROR without memory.
 */
typedef ngx_int_t (*ngx_http_xet_parts_header_pt)(ngx_http_request_t *r,
    void *data);


struct ngx_http_xet_parts_s {
    ngx_http_xet_reader_t         *reader;
    ngx_http_xet_part_t           *parts;      /* n, at least one */
    ngx_uint_t                     n;
    ngx_str_t                      end;        /* behind the last part */
    ngx_http_xet_parts_header_pt   header;
    void                          *data;

    /* the service's */

    ngx_uint_t                     i;          /* the part that is read */
    ngx_http_xet_piece_t          *sent;       /* on its way */
    ngx_http_xet_piece_t          *ready;      /* the next to be sent */
    ngx_uint_t                     ready_part;
    xet_status_t                   status;     /* why no piece follows */
    ngx_buf_t                      bufs[3];    /* of the piece on its way */
    ngx_chain_t                    chain[3];
    unsigned                       begun:1;
};


/*
 * Sends header and parts.  The caller has set the members before "the
 * service's", and zeroed the rest; p lives as long as the request, and the
 * reader belongs to p from now on.  Returns what ngx_http_xet_content_send()
 * returns.
 */
ngx_int_t ngx_http_xet_parts_send(ngx_http_request_t *r,
    ngx_http_xet_parts_t *p);


#endif /* _NGX_HTTP_XET_PARTS_H_INCLUDED_ */
