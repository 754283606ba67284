
/*
 * Copies of xorbs that were found missing, cut or damaged: noted by threads,
 * reported to PostgreSQL by the event loop, so that nothing new refers to them
 * until they are healed.
 */

#ifndef _NGX_HTTP_XET_DAMAGE_H_INCLUDED_
#define _NGX_HTTP_XET_DAMAGE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"
#include "ngx_http_xet_array.h"


/*
 * Further ones are dropped, and found by who comes next.  Where all are to be
 * found they are asked for by as many (xet.shard_doubts() in
 * sql/functions.sql).
 */
#define NGX_HTTP_XET_DAMAGE_MAX  1024


typedef struct {
    ngx_http_xet_array_t  xorbs;
    ngx_http_xet_array_t  tags;
    ngx_uint_t            n;
} ngx_http_xet_damage_t;


void ngx_http_xet_damage_init(ngx_http_xet_damage_t *d);
void ngx_http_xet_damage_destroy(ngx_http_xet_damage_t *d);

void ngx_http_xet_damage_note(ngx_http_xet_damage_t *d,
    const xet_hash_t *xorb, uint32_t tag);

/*
 * Looks at a copy that a row names as ngx_http_xet_store_stat_job() does; notes
 * and logs a copy that is not there with its size, XET_STORE_DAMAGED.
 */
xet_status_t ngx_http_xet_damage_stat_job(ngx_http_xet_damage_t *d,
    const ngx_str_t *store, const xet_hash_t *xorb, uint32_t tag,
    uint64_t size, ngx_log_t *log);


#endif /* _NGX_HTTP_XET_DAMAGE_H_INCLUDED_ */
