
/*
 * Records copies of xorbs that were found missing, truncated or damaged, and
 * reports them to PostgreSQL.
 *
 * The database may have a row for a xorb whose copy is missing from the store.
 * A client may skip the upload of such a xorb only if the copy exists.  So
 * requests that look up chunks, register files or upload a xorb call stat()
 * once per xorb, in their own jobs.  A job records a missing copy, and after
 * the job the event loop reports the copy to PostgreSQL.  From then on the xorb
 * counts as not stored, and its next upload repairs it
 * (ngx_http_xet_xorb_commit.c).
 *
 * A missing copy is not a loss if no row refers to it any longer: the xorb was
 * collected or repaired in the meantime.  Only the result of the report shows
 * which copies are lost, so a lost copy is logged after its report.
 *
 * The list of copies belongs to the job while the job runs, else to the event
 * loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"
#include "ngx_http_xet_store.h"


void
ngx_http_xet_damage_destroy(ngx_http_xet_damage_t *d)
{
    ngx_http_xet_array_destroy(&d->xorbs);
    ngx_http_xet_array_destroy(&d->copy_ids);

    d->log = 0;
}


void
ngx_http_xet_damage_note(ngx_http_xet_damage_t *d, const xet_hash_t *xorb,
    uint32_t copy_id)
{
    if (d->xorbs.n < NGX_HTTP_XET_DAMAGE_MAX) {
        ngx_http_xet_array_bytes(&d->xorbs, xorb->bytes, XET_HASH_LEN);
        ngx_http_xet_array_int4(&d->copy_ids, (int32_t) copy_id);
    }
}


xet_status_t
ngx_http_xet_damage_stat_job(ngx_http_xet_damage_t *d,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t copy_id,
    uint64_t size, ngx_log_t *log)
{
    ngx_http_xet_copy_stat_t  look;

    look.name.xorb = *xorb;
    look.name.copy_id = copy_id;
    look.want = size;

    ngx_http_xet_damage_stat_all_job(d, store, &look, 1, log);

    return look.status;
}


void
ngx_http_xet_damage_stat_all_job(ngx_http_xet_damage_t *d,
    ngx_http_xet_store_t *store, ngx_http_xet_copy_stat_t *stats,
    ngx_uint_t n, ngx_log_t *log)
{
    ngx_uint_t                 i;
    ngx_http_xet_copy_stat_t  *look;

    ngx_http_xet_store_stat_all_job(store, stats, n, log);

    for (i = 0; i < n; i++) {
        look = &stats[i];

        if (look->status == XET_STORE_DAMAGED) {
            ngx_http_xet_damage_note(d, &look->name.xorb, look->name.copy_id);
            d->log = 1;
        }
    }
}


ngx_uint_t
ngx_http_xet_damage_lost(PGresult *res, ngx_uint_t log, ngx_log_t *where)
{
    u_char                          name[XET_XORB_NAME_MAX + 1];
    ngx_uint_t                      i, n;
    ngx_http_xet_copies_lost_row_t  row;

    n = ngx_http_xet_pg_rows(res);

    for (i = 0; log && i < n; i++) {
        if (ngx_http_xet_row_copies_lost(res, i, &row) != NGX_OK) {
            continue;
        }

        *xet_xorb_name_print(name, row.xorb, row.copy) = '\0';

        ngx_log_error(NGX_LOG_CRIT, where, 0,
                      "xet: xorb %s is missing or has another size, and is "
                      "treated as not stored until it is uploaded again", name);
    }

    return n;
}
