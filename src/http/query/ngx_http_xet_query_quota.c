
/*
 * Quotas and usage.
 *
 * When a limit is exceeded, the module's SQL functions raise XT004.  The detail
 * of this error consists of five words: the kind of the owner ("repo" or
 * "subject"), the kind of bytes ("stored", "logical" or "metadata"), the limit,
 * the usage, and the bytes to add.
 *
 * Each worker caches whether any limits exist.  The first request after five
 * seconds sends the statement quota_any, and uses the previous result without
 * waiting.  So a store without limits costs each worker one statement every
 * five seconds.  The check before an upload is read notices a new limit with
 * this delay; the commit of an upload enforces the limit at once.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


#define NGX_HTTP_XET_QUOTA_VALID  5000         /* ms */


static void ngx_http_xet_query_quotas_known(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static const char *ngx_http_xet_query_quota_word(const char *p, u_char *word,
    size_t size);


static ngx_uint_t  ngx_http_xet_quotas;        /* whether limits exist */
static ngx_uint_t  ngx_http_xet_quotas_asked;  /* sent at least once */
static ngx_uint_t  ngx_http_xet_quotas_sent;   /* a statement is in flight */
static ngx_msec_t  ngx_http_xet_quotas_at;


ngx_uint_t
ngx_http_xet_query_quotas(void)
{
    const ngx_http_xet_pg_stmt_t  *stmt;

    if (ngx_http_xet_quotas_sent
        || (ngx_http_xet_quotas_asked
            && ngx_current_msec - ngx_http_xet_quotas_at
               < NGX_HTTP_XET_QUOTA_VALID))
    {
        return ngx_http_xet_quotas;
    }

    stmt = &ngx_http_xet_query_stmts[ngx_http_xet_stmt_quota_any];

    if (ngx_http_xet_pg_pools_send(NGX_HTTP_XET_READ, stmt, NULL,
                                   ngx_http_xet_query_quotas_known, NULL)
           != NULL)
    {
        ngx_http_xet_quotas_sent = 1;
    }

    ngx_http_xet_quotas_asked = 1;
    ngx_http_xet_quotas_at = ngx_current_msec;

    return ngx_http_xet_quotas;
}


static void
ngx_http_xet_query_quotas_known(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    if (rc == NGX_OK) {
        ngx_http_xet_quotas = (ngx_http_xet_pg_int(res, 0, 0) != 0);
    }

    ngx_http_xet_quotas_sent = 0;

    ngx_http_xet_pg_clear(res);
}


ngx_uint_t
ngx_http_xet_query_quota_over(ngx_http_request_t *r, ngx_http_xet_over_t *over)
{
    u_char                 word[NGX_INT64_LEN + 1];
    ngx_int_t              n;
    ngx_uint_t             i;
    uint64_t              *values[3];
    const char            *p;
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    if (ngx_strcmp(q->sqlstate, "XT004") != 0) {
        return 0;
    }

    p = q->res ? ngx_http_xet_pg_detail(q->res) : "";

    p = ngx_http_xet_query_quota_word(p, over->kind, sizeof(over->kind));
    p = ngx_http_xet_query_quota_word(p, over->what, sizeof(over->what));
    values[0] = &over->limit;
    values[1] = &over->used;
    values[2] = &over->more;

    for (i = 0; i < 3; i++) {
        p = ngx_http_xet_query_quota_word(p, word, sizeof(word));
        n = ngx_atoi(word, ngx_strlen(word));
        *values[i] = (n == NGX_ERROR) ? 0 : (uint64_t) n;
    }

    return 1;
}


/*
 * Copies the word at p, zero-terminated.  Returns the position after the word.
 */

static const char *
ngx_http_xet_query_quota_word(const char *p, u_char *word, size_t size)
{
    size_t  n;

    n = strcspn(p, " ");

    (void) ngx_cpystrn(word, (u_char *) p, ngx_min(n + 1, size));

    p += n;

    return (*p == ' ') ? p + 1 : p;
}
