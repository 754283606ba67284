
/*
 * The terms of a file that is being taken in, written down as the file
 * section of a shard: what the register service reads.
 */

#ifndef _NGX_HTTP_XET_INGEST_SPOOL_H_INCLUDED_
#define _NGX_HTTP_XET_INGEST_SPOOL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_xet_store.h"
#include "xet.h"


#define NGX_HTTP_XET_SPOOL_RECORDS  64         /* in memory */


typedef struct {
    ngx_http_xet_temp_t  *file;
    uint64_t              terms;
    uint64_t              end;                 /* files_end, set by close */

    xet_buf_t             buf;                 /* its one node is room */
    uint64_t              room[NGX_HTTP_XET_SPOOL_RECORDS
                               * XET_SHARD_RECORD_LEN / 8
                               + sizeof(xet_buf_node_t) / 8];
} ngx_http_xet_ingest_spool_t;


#endif /* _NGX_HTTP_XET_INGEST_SPOOL_H_INCLUDED_ */
