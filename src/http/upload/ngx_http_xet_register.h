
/*
 * The files of a shard, verified against the store and committed.
 */

#ifndef _NGX_HTTP_XET_REGISTER_H_INCLUDED_
#define _NGX_HTTP_XET_REGISTER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"
#include "ngx_http_xet_store.h"


/*
 * Called once, in the event loop.  rc:
 *
 *     NGX_OK        committed; new tells whether any file is new to the store,
 *                   or to the request's repo
 *     NGX_DECLINED  the shard or the store is at fault, as status says
 *     otherwise     the rc of a query, see ngx_http_xet_query.h
 */
typedef void (*ngx_http_xet_register_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


typedef enum {
    NGX_HTTP_XET_VALIDATING = 0,       /* verified of total terms */
    NGX_HTTP_XET_STAGING,              /* a batch is being staged */
    NGX_HTTP_XET_COMMITTING            /* the last statement is under way */
} ngx_http_xet_stage_e;

/* Reports the progress, in the event loop; may be NULL. */
typedef void (*ngx_http_xet_progress_pt)(ngx_http_request_t *r,
    ngx_http_xet_stage_e stage, uint64_t verified, uint64_t total);


/*
 * Registers the files of a shard that the parser has passed; spool holds the
 * shard's bytes up to files_end, total is the number of its terms.  With proof
 * all terms need verification hashes: a client that names chunks which it has
 * not sent and may not read proves by them that it has the chunk hashes, which
 * only the data tells.  Where chunk hashes may be known without the data, the
 * client must have sent the chunks, or may read them (sql/functions.sql,
 * xet.shard_slices).  Memory is bounded by a window of terms and a batch of
 * packed terms, whatever the shard's size.
 */
void ngx_http_xet_register(ngx_http_request_t *r, ngx_http_xet_temp_t *spool,
    uint64_t files_end, uint64_t total, ngx_uint_t proof,
    ngx_http_xet_progress_pt progress, ngx_http_xet_register_pt handler);

/*
 * The text of a status that the handler was called with; where a term refers
 * to a xorb that is not stored here, the text names the file and the xorb, and
 * is in r's pool.
 */
const char *ngx_http_xet_register_text(ngx_http_request_t *r,
    xet_status_t status);


#endif /* _NGX_HTTP_XET_REGISTER_H_INCLUDED_ */
