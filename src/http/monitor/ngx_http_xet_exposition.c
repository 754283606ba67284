
/*
 * Writes the metrics in the exposition format of Prometheus, and as JSON.
 *
 * The count of a histogram is computed from its buckets, so that the numbers
 * in one response are consistent.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_monitor.h"
#include "ngx_http_xet_pg.h"


#define NGX_HTTP_XET_LINE  512


static void ngx_http_xet_exposition_labels(u_char *labels,
    const ngx_http_xet_metric_t *m, ngx_uint_t i, ngx_uint_t k);
static void ngx_http_xet_exposition_value(xet_buf_t *b,
    const ngx_http_xet_metric_t *m, const u_char *labels,
    const uint64_t *cells);
static void ngx_http_xet_exposition_histogram(xet_buf_t *b,
    const ngx_http_xet_metric_t *m, const u_char *labels,
    const uint64_t *cells);
static u_char *ngx_http_xet_exposition_number(u_char *p,
    const ngx_http_xet_metric_t *m, uint64_t v);
static u_char *ngx_http_xet_exposition_bound(u_char *p, ngx_uint_t n);
static void ngx_http_xet_json_value(xet_json_t *j,
    const ngx_http_xet_metric_t *m, const uint64_t *cells);


void
ngx_http_xet_exposition(xet_buf_t *b, const uint64_t *cells)
{
    u_char                       *p, line[NGX_HTTP_XET_LINE];
    ngx_uint_t                    i, k;
    const ngx_http_xet_metric_t  *m;

    static const char *const  types[] = {
        "counter", "histogram", "gauge", "gauge", "gauge"
    };

    p = ngx_snprintf(line, sizeof(line), "# HELP xet_build_info "
                     "Always 1; the labels have the versions.\n"
                     "# TYPE xet_build_info gauge\nxet_build_info{"
                     "version=\"%s\",nginx=\"%s\",schema=\"%s\"} 1\n",
                     XET_VERSION, NGINX_VERSION, ngx_http_xet_pg_schema());
    xet_buf_write(b, line, p - line);

    for (m = ngx_http_xet_metrics; m->name; m++) {

        if ((m->type == NGX_HTTP_XET_GAUGE && cells[m->cell] == 0)
            || ngx_http_xet_metrics_value(m->labels[0], 0) == NULL)
        {
            continue;
        }

        p = ngx_snprintf(line, sizeof(line), "# HELP %s %s\n# TYPE %s %s\n",
                         m->name, m->help, m->name, types[m->type]);
        xet_buf_write(b, line, p - line);

        for (i = 0; ngx_http_xet_metrics_value(m->labels[0], i); i++) {
            for (k = 0; ngx_http_xet_metrics_value(m->labels[1], k); k++) {
                ngx_http_xet_exposition_labels(line, m, i, k);
                ngx_http_xet_exposition_value(b, m, line,
                                              cells + m->cell
                                              + (i * m->sizes[1] + k)
                                                * m->cells);
            }
        }
    }
}


/* Writes the labels; their values are fixed strings that need no escaping. */

static void
ngx_http_xet_exposition_labels(u_char *labels, const ngx_http_xet_metric_t *m,
    ngx_uint_t i, ngx_uint_t k)
{
    u_char  *p, *last;

    p = labels;
    last = labels + NGX_HTTP_XET_LINE - 1;

    if (m->labels[0] != NGX_HTTP_XET_LABEL_NONE) {
        p = ngx_slprintf(p, last, "%s=\"%s\"",
                         ngx_http_xet_metrics_label(m->labels[0]),
                         ngx_http_xet_metrics_value(m->labels[0], i));
    }

    if (m->labels[1] != NGX_HTTP_XET_LABEL_NONE) {
        p = ngx_slprintf(p, last, ",%s=\"%s\"",
                         ngx_http_xet_metrics_label(m->labels[1]),
                         ngx_http_xet_metrics_value(m->labels[1], k));
    }

    *p = '\0';
}


static void
ngx_http_xet_exposition_value(xet_buf_t *b, const ngx_http_xet_metric_t *m,
    const u_char *labels, const uint64_t *cells)
{
    u_char      *p, *last, line[2 * NGX_HTTP_XET_LINE];
    uint64_t     v;
    const char  *open, *close;

    if (m->type == NGX_HTTP_XET_HISTOGRAM) {
        ngx_http_xet_exposition_histogram(b, m, labels, cells);
        return;
    }

    v = (m->type == NGX_HTTP_XET_GAUGE) ? *cells - 1 : *cells;

    open = *labels ? "{" : "";
    close = *labels ? "}" : "";
    last = line + sizeof(line);

    p = ngx_slprintf(line, last, "%s%s%s%s ", m->name, open, labels, close);
    p = ngx_http_xet_exposition_number(p, m, v);
    *p++ = '\n';

    xet_buf_write(b, line, p - line);
}


static void
ngx_http_xet_exposition_histogram(xet_buf_t *b,
    const ngx_http_xet_metric_t *m, const u_char *labels,
    const uint64_t *cells)
{
    u_char      *p, *last, line[2 * NGX_HTTP_XET_LINE];
    uint64_t     n;
    ngx_uint_t   i;

    n = 0;
    last = line + sizeof(line);

    for (i = 0; i < NGX_HTTP_XET_BUCKETS; i++) {
        n += cells[i];

        p = ngx_slprintf(line, last, "%s_bucket{%s,le=\"", m->name, labels);
        p = ngx_http_xet_exposition_bound(p, i);
        p = ngx_slprintf(p, last, "\"} %uL\n", n);

        xet_buf_write(b, line, p - line);
    }

    p = ngx_slprintf(line, last, "%s_sum{%s} ", m->name, labels);
    p = ngx_http_xet_exposition_number(p, m, cells[NGX_HTTP_XET_BUCKETS]);
    p = ngx_slprintf(p, last, "\n%s_count{%s} %uL\n", m->name, labels, n);

    xet_buf_write(b, line, p - line);
}


/* Writes a value, in seconds if the name of the metric ends in "_seconds". */

static u_char *
ngx_http_xet_exposition_number(u_char *p, const ngx_http_xet_metric_t *m,
    uint64_t v)
{
    size_t  len;

    len = ngx_strlen(m->name);

    if (len > 8 && ngx_strcmp(m->name + len - 8, "_seconds") == 0) {
        return ngx_sprintf(p, "%uL.%03uL", v / 1000, v % 1000);
    }

    return ngx_sprintf(p, "%uL", v);
}


static u_char *
ngx_http_xet_exposition_bound(u_char *p, ngx_uint_t n)
{
    ngx_msec_t  ms;

    if (n == NGX_HTTP_XET_BUCKETS - 1) {
        return ngx_cpymem(p, "+Inf", 4);
    }

    ms = ngx_http_xet_buckets[n];

    return (ms % 1000) ? ngx_sprintf(p, "0.%03M", ms)
                       : ngx_sprintf(p, "%M", ms / 1000);
}


void
ngx_http_xet_exposition_json(xet_json_t *j, const uint64_t *cells)
{
    ngx_uint_t                    i, k;
    const char                   *one, *two;
    const ngx_http_xet_metric_t  *m;

    xet_json_key(j, "xet_build_info");
    xet_json_object_begin(j);
    xet_json_put_cstring(j, "version", XET_VERSION);
    xet_json_put_cstring(j, "nginx", NGINX_VERSION);
    xet_json_put_cstring(j, "schema", ngx_http_xet_pg_schema());
    xet_json_object_end(j);

    for (m = ngx_http_xet_metrics; m->name; m++) {

        if (m->type == NGX_HTTP_XET_GAUGE && cells[m->cell] == 0) {
            continue;
        }

        xet_json_key(j, m->name);

        if (m->labels[0] == NGX_HTTP_XET_LABEL_NONE) {
            ngx_http_xet_json_value(j, m, cells + m->cell);
            continue;
        }

        xet_json_object_begin(j);

        for (i = 0; /* void */ ; i++) {

            one = ngx_http_xet_metrics_value(m->labels[0], i);
            if (one == NULL) {
                break;
            }

            xet_json_key(j, one);

            if (m->labels[1] == NGX_HTTP_XET_LABEL_NONE) {
                ngx_http_xet_json_value(j, m, cells + m->cell + i * m->cells);
                continue;
            }

            xet_json_object_begin(j);

            for (k = 0; /* void */ ; k++) {

                two = ngx_http_xet_metrics_value(m->labels[1], k);
                if (two == NULL) {
                    break;
                }

                xet_json_key(j, two);
                ngx_http_xet_json_value(j, m, cells + m->cell
                                           + (i * m->sizes[1] + k)
                                             * m->cells);
            }

            xet_json_object_end(j);
        }

        xet_json_object_end(j);
    }
}


static void
ngx_http_xet_json_value(xet_json_t *j, const ngx_http_xet_metric_t *m,
    const uint64_t *cells)
{
    u_char      number[NGX_INT64_LEN + 8];
    uint64_t    n;
    ngx_uint_t  i;

    if (m->type != NGX_HTTP_XET_HISTOGRAM) {
        n = (m->type == NGX_HTTP_XET_GAUGE) ? *cells - 1 : *cells;

        i = ngx_http_xet_exposition_number(number, m, n) - number;
        xet_json_number(j, number, i);
        return;
    }

    n = 0;

    xet_json_object_begin(j);

    for (i = 0; i < NGX_HTTP_XET_BUCKETS; i++) {
        n += cells[i];

        *ngx_http_xet_exposition_bound(number, i) = '\0';
        xet_json_key(j, (char *) number);
        xet_json_u64(j, n);
    }

    xet_json_put_u64(j, "count", n);
    xet_json_key(j, "sum");
    i = ngx_http_xet_exposition_number(number, m, cells[NGX_HTTP_XET_BUCKETS])
        - number;
    xet_json_number(j, number, i);
    xet_json_object_end(j);
}
