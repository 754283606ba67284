
/*
 * The status page: status.html with values for its {{names}}.
 *
 * All visible strings are made here.  The page is complete without a script;
 * its script only fetches the same strings as JSON and inserts them.  Every
 * string is escaped, because some contain data from outside: the host of the
 * request, and names of repos.
 *
 * The build turns status.html into a C string.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_monitor.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_store.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_STATUS_TEXTS   48
#define NGX_HTTP_XET_STATUS_TEXT    160        /* bytes, except the endpoint */
#define NGX_HTTP_XET_STATUS_NONCE   16
#define NGX_HTTP_XET_STATUS_REPOS   10

/* ms after which a waiting statement or job is reported as stalled */
#define NGX_HTTP_XET_STATUS_LONG    30000


typedef struct {
    const char                *name;
    ngx_str_t                  value;
} ngx_http_xet_text_t;


typedef struct {
    ngx_http_request_t        *request;
    const uint64_t            *cells;
    ngx_http_xet_text_t        texts[NGX_HTTP_XET_STATUS_TEXTS];
    ngx_uint_t                 n;
    ngx_uint_t                 bad;            /* number of failed checks */
    ngx_uint_t                 none;           /* number of unknown checks */
    ngx_uint_t                 failed;         /* out of memory */
    ngx_uint_t                 named;          /* repos are shown */
    ngx_http_xet_repo_size_t   repos[NGX_HTTP_XET_STATUS_REPOS];
    ngx_uint_t                 nrepos;
} ngx_http_xet_status_t;


/* The checks of the page, with the string for each state. */

enum {
    NGX_HTTP_XET_PART_POSTGRES = 0,
    NGX_HTTP_XET_PART_STORE,
    NGX_HTTP_XET_PART_DAMAGE,
    NGX_HTTP_XET_PART_QUEUES,
    NGX_HTTP_XET_PARTS
};

enum {
    NGX_HTTP_XET_STATE_NONE = 0,               /* state not known yet */
    NGX_HTTP_XET_STATE_GOOD,
    NGX_HTTP_XET_STATE_BAD
};

static const struct {
    const char                *name;
    const char                *state;
    const char                *away;           /* text without xet_api */
    const char                *texts[NGX_HTTP_XET_STATE_BAD + 1];
} ngx_http_xet_status_parts[] = {
    { "postgres", "postgres_state", "This server has no database.",
      { "PostgreSQL was not checked yet.", "PostgreSQL responds.",
        "PostgreSQL does not respond: only signed data URLs work." } },
    { "store", "store_state", "This server does not write to a store.",
      { "The store was not checked yet.", "The store is writable.",
        "The store is not writable: no uploads." } },
    { "damage", "damage_state", "This server does not check for damage.",
      { "Damage was not checked yet.", "No damaged xorbs.",
        "Damaged xorbs: %s." } },
    { "queues", "queues_state", "This server has no queues.",
      { "", "No stalled requests.",
        "A statement or a job has been waiting for %s seconds." } }
};


static void ngx_http_xet_status_repos_json(xet_json_t *j,
    ngx_http_xet_status_t *s);
static ngx_int_t ngx_http_xet_status_texts(ngx_http_request_t *r,
    ngx_http_xet_status_t *s, const uint64_t *cells);
static void ngx_http_xet_status_health(ngx_http_xet_status_t *s);
static void ngx_http_xet_status_store(ngx_http_xet_status_t *s,
    ngx_http_xet_main_conf_t *xmcf);
static void ngx_http_xet_status_queues(ngx_http_xet_status_t *s);
static void ngx_http_xet_status_state(ngx_http_xet_status_t *s,
    ngx_uint_t part, ngx_uint_t state, const u_char *text);
static void ngx_http_xet_status_stored(ngx_http_xet_status_t *s);
static void ngx_http_xet_status_traffic(ngx_http_xet_status_t *s);
static void ngx_http_xet_status_since(ngx_http_xet_status_t *s);
static void ngx_http_xet_status_part(ngx_http_xet_status_t *s,
    const char *name, const char *state_name, const char *state,
    const char *fmt, ...);
static void ngx_http_xet_status_text(ngx_http_xet_status_t *s,
    const char *name, const char *fmt, ...);
static void ngx_http_xet_status_add(ngx_http_xet_status_t *s,
    const char *name, u_char *start, u_char *end);
static void ngx_http_xet_status_endpoint(ngx_http_xet_status_t *s);
static uint64_t ngx_http_xet_status_sum(const uint64_t *cells,
    ngx_uint_t cell, ngx_uint_t n);
static u_char *ngx_http_xet_status_age(u_char *p, uint64_t ms);
static void ngx_http_xet_status_write(xet_buf_t *b,
    ngx_http_xet_status_t *s);
static void ngx_http_xet_status_rows(xet_buf_t *b, ngx_http_xet_status_t *s);


static const char  ngx_http_xet_status_html[] =
#include "status_page.inc"
;


#define ngx_http_xet_status_cell(s, symbol)                                   \
    ((s)->cells[NGX_HTTP_XET_M_##symbol])

/* Returns the value of a gauge; its cell contains the value plus one. */
#define ngx_http_xet_status_gauge(s, symbol)                                  \
    ((s)->cells[NGX_HTTP_XET_M_##symbol] - 1)


ngx_int_t
ngx_http_xet_status_page(ngx_http_request_t *r, const uint64_t *cells)
{
    u_char                  nonce[NGX_HTTP_XET_STATUS_NONCE], *p, *policy;
    u_char                  hex[2 * NGX_HTTP_XET_STATUS_NONCE];
    xet_buf_t               b;
    ngx_str_t               value;
    ngx_http_xet_status_t  *s;

    static const char  fmt[] = "default-src 'none'; style-src 'nonce-%*s'; "
                               "script-src 'nonce-%*s'; connect-src 'self'; "
                               "base-uri 'none'; form-action 'none'; "
                               "frame-ancestors 'none'";

    s = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_status_t));
    policy = ngx_pnalloc(r->pool, sizeof(fmt) + 2 * sizeof(hex));

    if (s == NULL || policy == NULL
        || RAND_bytes(nonce, sizeof(nonce)) != 1
        || ngx_http_xet_status_texts(r, s, cells) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    (void) ngx_hex_dump(hex, nonce, sizeof(nonce));
    p = ngx_sprintf(policy, fmt, sizeof(hex), hex, sizeof(hex), hex);

    value.data = policy;
    value.len = p - policy;

    ngx_http_xet_status_add(s, "nonce", hex, hex + sizeof(hex));

    if (s->failed
        || ngx_http_xet_header_add(r, "Content-Security-Policy", &value)
           == NULL
        || ngx_http_xet_header(r, "X-Content-Type-Options", "nosniff")
           != NGX_OK
        || ngx_http_xet_header(r, "Referrer-Policy", "no-referrer") != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 16384);
    ngx_http_xet_status_write(&b, s);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "text/html; charset=utf-8", &b);
}


ngx_int_t
ngx_http_xet_status_json(ngx_http_request_t *r, xet_json_t *j,
    const uint64_t *cells)
{
    ngx_uint_t              i;
    ngx_http_xet_status_t  *s;

    s = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_status_t));

    if (s == NULL || ngx_http_xet_status_texts(r, s, cells) != NGX_OK) {
        return NGX_ERROR;
    }

    xet_json_key(j, "text");
    xet_json_object_begin(j);

    for (i = 0; i < s->n; i++) {
        xet_json_put_string(j, s->texts[i].name, s->texts[i].value.data,
                            s->texts[i].value.len);
    }

    xet_json_object_end(j);

    if (s->named) {
        ngx_http_xet_status_repos_json(j, s);
    }

    return NGX_OK;
}


static void
ngx_http_xet_status_repos_json(xet_json_t *j, ngx_http_xet_status_t *s)
{
    u_char                    *p, text[NGX_HTTP_XET_STATUS_TEXT];
    ngx_uint_t                 i;
    ngx_http_xet_repo_size_t  *repo;

    xet_json_key(j, "repos");
    xet_json_array_begin(j);

    for (i = 0; i < s->nrepos; i++) {
        repo = &s->repos[i];

        xet_json_object_begin(j);
        xet_json_put_string(j, "name", repo->name, repo->len);
        xet_json_put_u64(j, "files", repo->files);
        xet_json_put_u64(j, "bytes", repo->bytes);

        p = xet_hub_html_number(text, repo->files);
        xet_json_put_string(j, "files_text", text, p - text);

        p = xet_hub_html_size(text, repo->bytes);
        xet_json_put_string(j, "bytes_text", text, p - text);
        xet_json_object_end(j);
    }

    xet_json_array_end(j);
}


static ngx_int_t
ngx_http_xet_status_texts(ngx_http_request_t *r, ngx_http_xet_status_t *s,
    const uint64_t *cells)
{
    u_char                    text[NGX_HTTP_XET_STATUS_TEXT];
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    s->request = r;
    s->cells = cells;

    if (xlcf->monitor == NGX_HTTP_XET_MONITOR_REPOS) {
        s->named = 1;
        s->nrepos = ngx_http_xet_monitor_top(s->repos,
                                             NGX_HTTP_XET_STATUS_REPOS);
    }

    ngx_http_xet_status_text(s, "title", "Xet store");
    ngx_http_xet_status_text(s, "version", "xet %s, nginx %s, schema %s",
                             XET_VERSION, NGINX_VERSION,
                             ngx_http_xet_pg_schema());

    ngx_http_xet_status_health(s);

    if (s->bad) {
        ngx_http_xet_status_text(s, "summary", "%ui of the checks below %s "
                                               "attention.", s->bad,
                                 (s->bad == 1) ? "needs" : "need");

    } else if (s->none) {
        ngx_http_xet_status_text(s, "summary", "Some checks have not run "
                                               "yet.");

    } else {
        ngx_http_xet_status_text(s, "summary", "All checks passed.");
    }

    ngx_http_xet_status_stored(s);
    ngx_http_xet_status_traffic(s);
    ngx_http_xet_status_endpoint(s);

    ngx_http_xet_status_add(s, "gc", text, ngx_http_xet_status_age(text,
                                       ngx_http_xet_status_cell(s, GC_TIME)));
    ngx_http_xet_status_add(s, "scrub", text, ngx_http_xet_status_age(text,
                                    ngx_http_xet_status_cell(s, SCRUB_TIME)));

    return s->failed ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_xet_status_health(ngx_http_xet_status_t *s)
{
    u_char                     text[NGX_HTTP_XET_STATUS_TEXT];
    uint64_t                   n;
    ngx_uint_t                 i;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(s->request, ngx_http_xet_module);

    if (!xmcf->api) {
        for (i = 0; i < NGX_HTTP_XET_PARTS; i++) {
            ngx_http_xet_status_part(s, ngx_http_xet_status_parts[i].name,
                                     ngx_http_xet_status_parts[i].state, NULL,
                                     ngx_http_xet_status_parts[i].away);
        }

        return;
    }

    n = ngx_http_xet_status_cell(s, POSTGRES_UP);

    ngx_http_xet_status_state(s, NGX_HTTP_XET_PART_POSTGRES,
                              (n == 0) ? NGX_HTTP_XET_STATE_NONE
                              : (n == 2) ? NGX_HTTP_XET_STATE_GOOD
                              : NGX_HTTP_XET_STATE_BAD, NULL);

    ngx_http_xet_status_store(s, xmcf);

    n = ngx_http_xet_status_cell(s, DAMAGED);
    *xet_hub_html_number(text, n - 1) = '\0';

    ngx_http_xet_status_state(s, NGX_HTTP_XET_PART_DAMAGE,
                              (n == 0) ? NGX_HTTP_XET_STATE_NONE
                              : (n == 1) ? NGX_HTTP_XET_STATE_GOOD
                              : NGX_HTTP_XET_STATE_BAD, text);

    ngx_http_xet_status_queues(s);
}


static void
ngx_http_xet_status_store(ngx_http_xet_status_t *s,
    ngx_http_xet_main_conf_t *xmcf)
{
    u_char    text[NGX_HTTP_XET_STATUS_TEXT];
    uint64_t  n, free;

    n = ngx_http_xet_status_cell(s, STORE_WRITABLE);
    free = ngx_http_xet_status_gauge(s, STORE_FREE);

    if (n != 2 || free >= ngx_http_xet_status_gauge(s, STORE_SIZE) / 20) {
        ngx_http_xet_status_state(s, NGX_HTTP_XET_PART_STORE,
                                  (n == 0) ? NGX_HTTP_XET_STATE_NONE
                                  : (n == 2) ? NGX_HTTP_XET_STATE_GOOD
                                  : NGX_HTTP_XET_STATE_BAD, NULL);
        return;
    }

    *xet_hub_html_size(text, free) = '\0';

    ngx_http_xet_status_part(s, "store", "store_state", "bad",
                             xmcf->store->s3
                             ? "The folder of temporary files is almost full: "
                               "%s free."
                             : "The store is almost full: %s free.",
                             text);
}


/* Shows how long the oldest statement or job has been waiting. */

static void
ngx_http_xet_status_queues(ngx_http_xet_status_t *s)
{
    u_char      text[NGX_INT64_LEN + 1];
    uint64_t    oldest;
    ngx_uint_t  i;

    oldest = 0;

    for (i = 0; i < NGX_HTTP_XET_PG_POOL_MAX; i++) {
        oldest = ngx_max(oldest,
                         s->cells[NGX_HTTP_XET_M_STATEMENT_OLDEST + i]);
    }

    for (i = 0; i < NGX_HTTP_XET_POOL_MAX; i++) {
        oldest = ngx_max(oldest, s->cells[NGX_HTTP_XET_M_JOB_OLDEST + i]);
    }

    *ngx_sprintf(text, "%uL", oldest / 1000) = '\0';

    ngx_http_xet_status_state(s, NGX_HTTP_XET_PART_QUEUES,
                              (oldest < NGX_HTTP_XET_STATUS_LONG)
                              ? NGX_HTTP_XET_STATE_GOOD
                              : NGX_HTTP_XET_STATE_BAD, text);
}


static void
ngx_http_xet_status_state(ngx_http_xet_status_t *s, ngx_uint_t part,
    ngx_uint_t state, const u_char *text)
{
    static const char *const  names[] = { "none", "good", "bad" };

    ngx_http_xet_status_part(s, ngx_http_xet_status_parts[part].name,
                             ngx_http_xet_status_parts[part].state,
                             names[state],
                             ngx_http_xet_status_parts[part].texts[state],
                             text);
}


static void
ngx_http_xet_status_stored(ngx_http_xet_status_t *s)
{
    u_char                *p, text[NGX_HTTP_XET_STATUS_TEXT];
    uint64_t               v, raw;
    ngx_uint_t             i;

    static const struct {
        const char  *name;
        ngx_uint_t   cell;
        u_char    *(*write)(u_char *p, uint64_t v);
    } rows[] = {
        { "files", NGX_HTTP_XET_M_FILES, xet_hub_html_number },
        { "file_bytes", NGX_HTTP_XET_M_FILE_BYTES, xet_hub_html_size },
        { "xorbs", NGX_HTTP_XET_M_XORBS, xet_hub_html_number },
        { "stored", NGX_HTTP_XET_M_XORB_STORED, xet_hub_html_size },
        { "hub_rows", NGX_HTTP_XET_M_HUB_ROWS, xet_hub_html_number },
        { "metadata", NGX_HTTP_XET_M_HUB_BYTES, xet_hub_html_size },
        { "free", NGX_HTTP_XET_M_STORE_FREE, xet_hub_html_size }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        v = s->cells[rows[i].cell];

        p = v ? rows[i].write(text, v - 1)
              : ngx_cpymem(text, "unknown", sizeof("unknown") - 1);

        ngx_http_xet_status_add(s, rows[i].name, text, p);
    }

    v = ngx_http_xet_status_cell(s, FILE_BYTES);
    raw = ngx_http_xet_status_cell(s, XORB_RAW);

    p = v ? xet_hub_html_size(text, (v > raw) ? v - raw : 0)
          : ngx_cpymem(text, "unknown", sizeof("unknown") - 1);

    ngx_http_xet_status_add(s, "saved", text, p);

    v = ngx_http_xet_status_cell(s, WALK_TIME);

    if (v == 0) {
        ngx_http_xet_status_text(s, "walked", "Files and xorbs are being "
                                 "counted.");
        return;
    }

    p = ngx_cpymem(text, "Counted ", sizeof("Counted ") - 1);
    p = ngx_http_xet_status_age(p, v);
    *p++ = '.';

    ngx_http_xet_status_add(s, "walked", text, p);
}


/* Shows the traffic, excluding requests for metrics and for this page. */

static void
ngx_http_xet_status_traffic(ngx_http_xet_status_t *s)
{
    u_char           text[NGX_HTTP_XET_STATUS_TEXT];
    uint64_t         sums[4];
    ngx_uint_t       i, k;
    const uint64_t  *classes;

    ngx_memzero(sums, sizeof(sums));

    for (i = 0; i < NGX_HTTP_XET_ROUTE_MAX; i++) {

        if (i == NGX_HTTP_XET_ROUTE_METRICS || i == NGX_HTTP_XET_ROUTE_STATUS)
        {
            continue;
        }

        classes = &s->cells[NGX_HTTP_XET_M_REQUESTS
                            + i * NGX_HTTP_XET_CLASS_MAX];

        for (k = 0; k < NGX_HTTP_XET_CLASS_MAX; k++) {
            sums[k] += classes[k];
        }
    }

    ngx_http_xet_status_add(s, "requests", text,
                            xet_hub_html_number(text, sums[0] + sums[1]
                                                      + sums[2] + sums[3]));
    ngx_http_xet_status_add(s, "refused", text,
                            xet_hub_html_number(text, sums[2]));
    ngx_http_xet_status_add(s, "failed", text,
                            xet_hub_html_number(text, sums[3]));

    ngx_http_xet_status_add(s, "received", text,
        xet_hub_html_size(text, ngx_http_xet_status_sum(s->cells,
                          NGX_HTTP_XET_M_RECEIVED, NGX_HTTP_XET_ROUTE_MAX)));
    ngx_http_xet_status_add(s, "sent", text,
        xet_hub_html_size(text, ngx_http_xet_status_sum(s->cells,
                          NGX_HTTP_XET_M_SENT, NGX_HTTP_XET_ROUTE_MAX)));
    ngx_http_xet_status_add(s, "uploads", text,
        xet_hub_html_number(text, ngx_http_xet_status_cell(s, UPLOADS)));

    ngx_http_xet_status_since(s);
}


static void
ngx_http_xet_status_since(ngx_http_xet_status_t *s)
{
    u_char  *p, text[NGX_HTTP_XET_STATUS_TEXT];

    p = ngx_cpymem(text, "Since the start ", sizeof("Since the start ") - 1);
    p = ngx_http_xet_status_age(p, ngx_http_xet_status_cell(s, START_TIME));
    *p++ = '.';

    ngx_http_xet_status_add(s, "since", text, p);
}


/* Shows the endpoint for clients, or "none" without the API. */

static void
ngx_http_xet_status_endpoint(ngx_http_xet_status_t *s)
{
    u_char                    *p;
    ngx_str_t                  url;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    xlcf = ngx_http_get_module_loc_conf(s->request, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(s->request, ngx_http_xet_module);

    if (!xmcf->api || ngx_http_xet_name_url(s->request, 0, &url) != NGX_OK) {
        ngx_http_xet_status_text(s, "endpoint", "none");
        return;
    }

    p = ngx_pnalloc(s->request->pool, url.len + xlcf->api_base.len);

    if (p == NULL) {
        s->failed = 1;
        return;
    }

    s->texts[s->n].name = "endpoint";
    s->texts[s->n].value.data = p;

    p = ngx_cpymem(p, url.data, url.len);
    p = ngx_cpymem(p, xlcf->api_base.data, xlcf->api_base.len);

    s->texts[s->n].value.len = p - s->texts[s->n].value.data;
    s->n++;
}


/*
 * Shows a check.  If state is NULL, the check does not apply to this server.
 */

static void
ngx_http_xet_status_part(ngx_http_xet_status_t *s, const char *name,
    const char *state_name, const char *state, const char *fmt, ...)
{
    u_char   *p, text[NGX_HTTP_XET_STATUS_TEXT];
    va_list   args;

    if (state) {
        s->bad += (state[0] == 'b');
        s->none += (state[0] == 'n');

    } else {
        state = "none";
    }

    va_start(args, fmt);
    p = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    ngx_http_xet_status_add(s, name, text, p);
    ngx_http_xet_status_text(s, state_name, "%s", state);
}


static void
ngx_http_xet_status_text(ngx_http_xet_status_t *s, const char *name,
    const char *fmt, ...)
{
    u_char   *p, text[NGX_HTTP_XET_STATUS_TEXT];
    va_list   args;

    va_start(args, fmt);
    p = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    ngx_http_xet_status_add(s, name, text, p);
}


static void
ngx_http_xet_status_add(ngx_http_xet_status_t *s, const char *name,
    u_char *start, u_char *end)
{
    ngx_http_xet_text_t  *text;

    text = &s->texts[s->n];

    text->name = name;
    text->value.len = end - start;
    text->value.data = ngx_pnalloc(s->request->pool, end - start + 1);

    if (s->n + 2 >= NGX_HTTP_XET_STATUS_TEXTS || text->value.data == NULL) {
        s->failed = 1;
        return;
    }

    ngx_memcpy(text->value.data, start, end - start);
    s->n++;
}


static uint64_t
ngx_http_xet_status_sum(const uint64_t *cells, ngx_uint_t cell, ngx_uint_t n)
{
    uint64_t    sum;
    ngx_uint_t  i;

    sum = 0;

    for (i = 0; i < n; i++) {

        if (i != NGX_HTTP_XET_ROUTE_METRICS && i != NGX_HTTP_XET_ROUTE_STATUS)
        {
            sum += cells[cell + i];
        }
    }

    return sum;
}


/* Writes the age of the time in a gauge: "2 days ago", or "never" for 0. */

static u_char *
ngx_http_xet_status_age(u_char *p, uint64_t ms)
{
    uint64_t    now, n;
    ngx_uint_t  i;

    static const struct {
        uint64_t     seconds;
        const char  *unit;
    } units[] = {
        { 86400, "day" }, { 3600, "hour" }, { 60, "minute" }, { 1, "second" }
    };

    if (ms == 0) {
        return ngx_cpymem(p, "never", 5);
    }

    now = ngx_http_xet_metrics_now();
    n = (now > ms - 1) ? (now - (ms - 1)) / 1000 : 0;

    for (i = 0; i < 3 && n < units[i].seconds; i++) {
        /* void */
    }

    n /= units[i].seconds;

    return ngx_sprintf(p, "%uL %s%s ago", n, units[i].unit,
                       (n == 1) ? "" : "s");
}


static void
ngx_http_xet_status_write(xet_buf_t *b, ngx_http_xet_status_t *s)
{
    size_t       len;
    ngx_uint_t   i;
    const char  *p, *open, *close;

    for (p = ngx_http_xet_status_html; /* void */ ; p = close + 2) {

        open = strstr(p, "{{");
        close = open ? strstr(open, "}}") : NULL;

        if (close == NULL) {
            xet_buf_write(b, p, ngx_strlen(p));
            return;
        }

        xet_buf_write(b, p, open - p);

        open += 2;
        len = close - open;

        if (len == 8 && ngx_memcmp(open, "if repos", 8) == 0 && !s->named) {
            close = strstr(close, "{{end}}") + 5;
            continue;
        }

        if (len == 4 && ngx_memcmp(open, "rows", 4) == 0) {
            ngx_http_xet_status_rows(b, s);
            continue;
        }

        for (i = 0; i < s->n; i++) {

            if (ngx_strlen(s->texts[i].name) == len
                && ngx_memcmp(s->texts[i].name, open, len) == 0)
            {
                xet_hub_html_text(b, s->texts[i].value.data,
                                  s->texts[i].value.len);
                break;
            }
        }
    }
}


static void
ngx_http_xet_status_rows(xet_buf_t *b, ngx_http_xet_status_t *s)
{
    ngx_uint_t                 i;
    ngx_http_xet_repo_size_t  *repo;

    for (i = 0; i < s->nrepos; i++) {
        repo = &s->repos[i];

        xet_hub_html(b, "<tr><th scope=\"row\">%t</th><td>%n</td><td>%b</td>"
                     "</tr>\n", repo->len, repo->name, repo->files,
                     repo->bytes);
    }
}
