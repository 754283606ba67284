
/*
 * Counts requests to an object store in the metrics.  The client of the object
 * store reports each request in the thread that has sent it.  Only the event
 * loop may change metrics, so it adds the reports to the metrics at intervals.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"

#include <pthread.h>


#define NGX_HTTP_XET_REPORT_SKEW  60             /* s */


typedef struct {
    uint64_t  requests[XET_S3_METHODS][XET_S3_ENDS];
    uint64_t  again[XET_S3_METHODS];
    uint64_t  durations[XET_S3_METHODS][NGX_HTTP_XET_CELLS_HISTOGRAM];
    uint64_t  bytes[NGX_HTTP_XET_WAY_MAX];
} ngx_http_xet_report_t;


/* The metrics have a label value for each method and each outcome. */

typedef char  ngx_http_xet_report_methods_t[
    (int) XET_S3_METHODS == NGX_HTTP_XET_METHOD_MAX ? 1 : -1];
typedef char  ngx_http_xet_report_ends_t[
    (int) XET_S3_ENDS == NGX_HTTP_XET_END_MAX ? 1 : -1];


static pthread_mutex_t ngx_http_xet_report_lock = PTHREAD_MUTEX_INITIALIZER;
static ngx_http_xet_report_t  ngx_http_xet_report;


void
ngx_http_xet_store_report(const xet_s3_report_t *one)
{
    ngx_http_xet_report_t  *report;

    report = &ngx_http_xet_report;

    pthread_mutex_lock(&ngx_http_xet_report_lock);

    report->requests[one->method][one->end]++;
    report->again[one->method] += one->again;
    report->bytes[NGX_HTTP_XET_WAY_SENT] += one->sent;
    report->bytes[NGX_HTTP_XET_WAY_RECEIVED] += one->received;

    if (one->end != XET_S3_END_WITHHELD) {
        report->durations[one->method][ngx_http_xet_metrics_slot(one->ms)]++;
        report->durations[one->method][NGX_HTTP_XET_BUCKETS] += one->ms;
    }

    pthread_mutex_unlock(&ngx_http_xet_report_lock);
}


void
ngx_http_xet_store_measure(ngx_http_xet_store_t *store)
{
    ngx_uint_t             i, k;
    ngx_http_xet_report_t  report;

    if (store == NULL || store->s3 == NULL) {
        return;
    }

    pthread_mutex_lock(&ngx_http_xet_report_lock);

    report = ngx_http_xet_report;
    ngx_memzero(&ngx_http_xet_report, sizeof(ngx_http_xet_report_t));

    pthread_mutex_unlock(&ngx_http_xet_report_lock);

    for (i = 0; i < XET_S3_METHODS; i++) {

        for (k = 0; k < XET_S3_ENDS; k++) {
            ngx_http_xet_count_at(S3_REQUESTS, i * NGX_HTTP_XET_END_MAX + k,
                                  report.requests[i][k]);
        }

        for (k = 0; k < NGX_HTTP_XET_CELLS_HISTOGRAM; k++) {
            ngx_http_xet_count_at(S3_DURATION,
                                  i * NGX_HTTP_XET_CELLS_HISTOGRAM + k,
                                  report.durations[i][k]);
        }

        ngx_http_xet_count_at(S3_AGAIN, i, report.again[i]);
    }

    for (i = 0; i < NGX_HTTP_XET_WAY_MAX; i++) {
        ngx_http_xet_count_at(S3_BYTES, i, report.bytes[i]);
    }

    ngx_http_xet_level_at(S3_BUSY, 0, xet_s3_busy(store->s3));
}


/*
 * Requests are signed with the time of the store, so a wrong local clock does
 * not make them fail.  But edges, which sign requests themselves, and readers
 * of logs need the right time.  A change is logged once per worker.
 */

void
ngx_http_xet_store_skew(ngx_http_xet_store_t *store, ngx_log_t *log)
{
    int64_t  skew, report;

    static int64_t  last;                      /* the last logged skew */

    skew = xet_s3_skew(store->s3);
    report = __atomic_load_n(&last, __ATOMIC_RELAXED);

    if (ngx_abs(skew - report) < NGX_HTTP_XET_REPORT_SKEW
        || !__atomic_compare_exchange_n(&last, &report, skew, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    {
        return;
    }

    if (ngx_abs(skew) < NGX_HTTP_XET_REPORT_SKEW) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "xet: \"%V\": the clocks of the store and of this "
                      "machine agree again", &store->name);
        return;
    }

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "xet: \"%V\": the clock of the store is %L s %s the clock "
                  "of this machine: requests are signed with the time of the "
                  "store; check both clocks", &store->name, ngx_abs(skew),
                  (skew > 0) ? "ahead of" : "behind");
}
