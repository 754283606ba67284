
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





struct ngx_http_xet_parts_s {
    ngx_http_xet_reader_t         *reader;
    ngx_http_xet_part_t           *parts;      /* n, at least one */
    ngx_uint_t                     n;
    ngx_str_t                      end;        /* behind the last part */
    void                          *data;       /* for the header */

    /* while the parts are sent */

    ngx_uint_t                     i;          /* the part that is read */
    ngx_http_xet_piece_t          *sent;       /* on its way */
    ngx_http_xet_piece_t          *ready;      /* the next to be sent */
    ngx_uint_t                     ready_part;
    xet_status_t                   status;     /* why no piece follows */
    ngx_buf_t                      bufs[3];    /* of the piece on its way */
    ngx_chain_t                    chain[3];
    unsigned                       begun:1;
};





#endif /* _NGX_HTTP_XET_PARTS_H_INCLUDED_ */
