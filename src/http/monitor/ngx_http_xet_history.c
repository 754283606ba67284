
/*
 * The last 24 hours of the server: the plots of the status page.
 *
 * The ring of samples (xet_history.c) is in the shared memory of the metrics,
 * and so survives reloads and the death of workers.  Each worker looks at it
 * once a second; the first one that finds a sample due adds up the cells of all
 * workers, and takes the mutex only to write the sample.  The mutex is never
 * held for longer than it takes to copy the ring's samples for one response.
 *
 * A due sample also starts the queries for the next figures of the store, so
 * its size is known even if nobody requests metrics or the status page.
 *
 * Requests for metrics and for the status page are left out, as they would
 * hide the requests of clients.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_monitor.h"


typedef char  ngx_http_xet_history_fits_t[
    (NGX_HTTP_XET_BUCKETS == XET_HISTORY_BUCKETS
     && NGX_HTTP_XET_CLASS_MAX == XET_HISTORY_CLASSES) ? 1 : -1];


static void ngx_http_xet_history_sample(xet_history_sample_t *s,
    const uint64_t *cells);
static void ngx_http_xet_history_sums(xet_json_t *j, const char *key,
    const xet_history_sample_t *points, size_t n, size_t offset);
static void ngx_http_xet_history_values(xet_json_t *j, const char *key,
    const xet_history_sample_t *points, size_t n, size_t offset,
    ngx_uint_t bias);


/* Returns the number at an offset of a sample. */
#define ngx_http_xet_history_at(point, offset)                                \
    (*(const uint64_t *) ((const u_char *) (point) + (offset)))


void
ngx_http_xet_history_tick(void)
{
    uint64_t               now;
    ngx_shmtx_t           *mutex;
    xet_history_t         *h;
    xet_history_sample_t   sample;

    static uint64_t  cells[NGX_HTTP_XET_CELLS];

    h = ngx_http_xet_metrics_history(&mutex);
    now = ngx_http_xet_metrics_now();

    if (h == NULL || !xet_history_due(h, now)) {
        return;
    }

    ngx_http_xet_metrics_read(cells);
    ngx_http_xet_history_sample(&sample, cells);
    sample.time = now;

    ngx_shmtx_lock(mutex);

    if (xet_history_due(h, now)) {
        xet_history_add(h, &sample);
    }

    ngx_shmtx_unlock(mutex);

    ngx_http_xet_monitor_ask(0);
}


static void
ngx_http_xet_history_sample(xet_history_sample_t *s, const uint64_t *cells)
{
    ngx_uint_t       i, k;
    const uint64_t  *requests, *durations;

    ngx_memzero(s, sizeof(xet_history_sample_t));

    for (i = 0; i < NGX_HTTP_XET_ROUTE_MAX; i++) {

        if (i == NGX_HTTP_XET_ROUTE_METRICS || i == NGX_HTTP_XET_ROUTE_STATUS)
        {
            continue;
        }

        requests = &cells[NGX_HTTP_XET_M_REQUESTS
                          + i * NGX_HTTP_XET_CLASS_MAX];
        durations = &cells[NGX_HTTP_XET_M_DURATION
                           + i * NGX_HTTP_XET_CELLS_HISTOGRAM];

        for (k = 0; k < XET_HISTORY_CLASSES; k++) {
            s->requests[k] += requests[k];
        }

        for (k = 0; k < XET_HISTORY_BUCKETS; k++) {
            s->durations[k] += durations[k];
        }

        s->received += cells[NGX_HTTP_XET_M_RECEIVED + i];
        s->sent += cells[NGX_HTTP_XET_M_SENT + i];
    }

    s->stored = cells[NGX_HTTP_XET_M_XORB_STORED];
    s->files = cells[NGX_HTTP_XET_M_FILE_BYTES];
}


void
ngx_http_xet_history_hour(const uint64_t *cells, uint64_t *all,
    uint64_t *failed)
{
    ngx_uint_t                   k;
    ngx_shmtx_t                 *mutex;
    xet_history_t               *h;
    xet_history_sample_t         now;
    const xet_history_sample_t  *s;

    *all = 0;
    *failed = 0;

    h = ngx_http_xet_metrics_history(&mutex);

    if (h == NULL) {
        return;
    }

    ngx_http_xet_history_sample(&now, cells);

    ngx_shmtx_lock(mutex);

    s = xet_history_since(h, ngx_http_xet_metrics_now(), 3600 * 1000);

    if (s) {
        for (k = 0; k < XET_HISTORY_CLASSES; k++) {
            *all += now.requests[k] - s->requests[k];
        }

        *failed = now.requests[3] - s->requests[3];
    }

    ngx_shmtx_unlock(mutex);
}


/*
 * Writes an array for each number of a sample, with an element for each point:
 * what was counted since the point before.
 */

ngx_int_t
ngx_http_xet_history_json(ngx_http_request_t *r, xet_json_t *j,
    const uint64_t *cells)
{
    size_t                 i, n;
    ngx_shmtx_t           *mutex;
    xet_history_t         *h;
    xet_history_sample_t   now, *points;

    static const char *const  classes[] = { "2xx", "3xx", "4xx", "5xx" };

    h = ngx_http_xet_metrics_history(&mutex);
    points = ngx_palloc(r->pool,
                        XET_HISTORY_POINTS * sizeof(xet_history_sample_t));

    if (h == NULL || points == NULL) {
        return NGX_ERROR;
    }

    ngx_http_xet_history_sample(&now, cells);
    now.time = ngx_http_xet_metrics_now();

    ngx_shmtx_lock(mutex);
    n = xet_history_points(h, &now, points);
    ngx_shmtx_unlock(mutex);

    xet_json_key(j, "history");
    xet_json_object_begin(j);

    ngx_http_xet_history_values(j, "time", points, n,
                                offsetof(xet_history_sample_t, time), 0);

    xet_json_key(j, "requests");
    xet_json_object_begin(j);

    for (i = 0; i < XET_HISTORY_CLASSES; i++) {
        ngx_http_xet_history_sums(j, classes[i], points, n,
                                  offsetof(xet_history_sample_t, requests[i]));
    }

    xet_json_object_end(j);

    ngx_http_xet_history_sums(j, "received", points, n,
                              offsetof(xet_history_sample_t, received));
    ngx_http_xet_history_sums(j, "sent", points, n,
                              offsetof(xet_history_sample_t, sent));

    xet_json_key(j, "durations");
    xet_json_array_begin(j);

    for (i = 0; i < XET_HISTORY_BUCKETS; i++) {
        ngx_http_xet_history_sums(j, NULL, points, n,
                                  offsetof(xet_history_sample_t, durations[i]));
    }

    xet_json_array_end(j);

    ngx_http_xet_history_values(j, "stored", points, n,
                                offsetof(xet_history_sample_t, stored), 1);
    ngx_http_xet_history_values(j, "files", points, n,
                                offsetof(xet_history_sample_t, files), 1);
    xet_json_object_end(j);

    return NGX_OK;
}


/*
 * Writes the differences of the number at an offset of the samples.  The cells
 * are read without a lock, so a sum may be less than in the sample before.
 */

static void
ngx_http_xet_history_sums(xet_json_t *j, const char *key,
    const xet_history_sample_t *points, size_t n, size_t offset)
{
    size_t    i;
    uint64_t  v, before;

    if (key) {
        xet_json_key(j, key);
    }

    xet_json_array_begin(j);

    before = ngx_http_xet_history_at(&points[0], offset);

    for (i = 0; i < n; i++) {
        v = ngx_http_xet_history_at(&points[i], offset);
        v = ngx_max(v, before);

        xet_json_u64(j, v - before);
        before = v;
    }

    xet_json_array_end(j);
}


/*
 * Writes the number at an offset of the samples.  It is greater by bias, so 0
 * means unknown if bias is 1.
 */

static void
ngx_http_xet_history_values(xet_json_t *j, const char *key,
    const xet_history_sample_t *points, size_t n, size_t offset,
    ngx_uint_t bias)
{
    size_t    i;
    uint64_t  v;

    xet_json_key(j, key);
    xet_json_array_begin(j);

    for (i = 0; i < n; i++) {
        v = ngx_http_xet_history_at(&points[i], offset);

        if (v >= bias) {
            xet_json_u64(j, v - bias);

        } else {
            xet_json_null(j);
        }
    }

    xet_json_array_end(j);
}
