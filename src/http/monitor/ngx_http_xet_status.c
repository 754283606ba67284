
/*
 * The status of the server: its endpoint, and checks that say in words what is
 * wrong.
 *
 * A browser gets the static page that "page=" of "xet_status" names, the same
 * for everyone: nginx redirects the request internally.  The script of the page
 * requests "?format=json" from this location, so "allow", "deny" and a password
 * of this location protect the data.  Other clients get the checks as text.
 *
 * A failed check has the anchor of a paragraph in docs/trouble.md.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_monitor.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_STATUS_TEXT    320        /* bytes */
#define NGX_HTTP_XET_STATUS_REPOS   10

/* ms after which a waiting statement or job is reported as stalled */
#define NGX_HTTP_XET_STATUS_LONG    30000


typedef enum {
    NGX_HTTP_XET_CHECK_POSTGRES = 0,
    NGX_HTTP_XET_CHECK_STORE,
    NGX_HTTP_XET_CHECK_SPACE,
    NGX_HTTP_XET_CHECK_DAMAGE,
    NGX_HTTP_XET_CHECK_QUEUES,
    NGX_HTTP_XET_CHECK_JOBS,
    NGX_HTTP_XET_CHECK_FAILED,
    NGX_HTTP_XET_CHECKS
} ngx_http_xet_check_e;


typedef enum {
    NGX_HTTP_XET_STATE_NONE = 0,               /* state not known yet */
    NGX_HTTP_XET_STATE_GOOD,
    NGX_HTTP_XET_STATE_BAD
} ngx_http_xet_state_e;


typedef struct {
    ngx_http_xet_state_e       state;
    size_t                     len;
    u_char                     text[NGX_HTTP_XET_STATUS_TEXT];
} ngx_http_xet_check_t;


typedef struct {
    const uint64_t            *cells;
    ngx_uint_t                 api;            /* the server has an API */
    ngx_uint_t                 bad;            /* number of failed checks */
    ngx_uint_t                 none;           /* number of unknown checks */
    const char                *endpoint;       /* name of its variable */
    ngx_str_t                  origin;         /* the URL of the endpoint */
    ngx_str_t                  path;           /* is origin and path */
    ngx_http_xet_check_t       checks[NGX_HTTP_XET_CHECKS];
    ngx_http_xet_job_state_t   jobs[NGX_HTTP_XET_JOBS];
    ngx_uint_t                 njobs;
} ngx_http_xet_status_t;


/*
 * The checks: the anchor of a failed check, and a format for each state.  A
 * check has the same arguments for each state.
 */

static const struct {
    const char                *name;
    const char                *help;
    const char                *texts[NGX_HTTP_XET_STATE_BAD + 1];
} ngx_http_xet_status_checks[] = {
    { "postgres", "postgresql-does-not-respond",
      { "PostgreSQL was not checked yet.", "PostgreSQL responds.",
        "PostgreSQL does not respond: only signed data URLs work." } },
    { "store", "the-store-is-not-writable",
      { "The store was not checked yet.", "The store is writable.",
        "The store is not writable: no uploads." } },
    { "space", "the-disk-is-almost-full",
      { "The free space was not checked yet.", "The disk has free space.",
        "The disk of %s is almost full: %uL%% free." } },
    { "damage", "xorbs-are-damaged",
      { "Damage was not checked yet.", "No damaged xorbs.",
        "Damaged xorbs: %uL." } },
    { "queues", "a-statement-or-a-job-is-stalled",
      { "", "No stalled requests.",
        "A statement or a job has been waiting for %uL seconds." } },
    { "jobs", "a-background-job-waits",
      { "", "No background job waits.",
        "The background job \"%*s\" waits: %*s." } },
    { "failed", "requests-fail",
      { "", "Failed requests in the last hour: %uL of %uL.",
        "Failed requests in the last hour: %uL of %uL." } }
};


static ngx_int_t ngx_http_xet_status_text(ngx_http_request_t *r,
    ngx_http_xet_status_t *s);
static ngx_int_t ngx_http_xet_status_read(ngx_http_request_t *r,
    ngx_http_xet_status_t *s, const uint64_t *cells);
static void ngx_http_xet_status_health(ngx_http_xet_status_t *s,
    ngx_http_xet_main_conf_t *xmcf);
static void ngx_http_xet_status_store(ngx_http_xet_status_t *s,
    ngx_http_xet_main_conf_t *xmcf);
static void ngx_http_xet_status_queues(ngx_http_xet_status_t *s);
static void ngx_http_xet_status_jobs(ngx_http_xet_status_t *s);
static void ngx_http_xet_status_failed(ngx_http_xet_status_t *s);
static void ngx_http_xet_status_check(ngx_http_xet_status_t *s,
    ngx_http_xet_check_e check, ngx_http_xet_state_e state, ...);
static ngx_int_t ngx_http_xet_status_endpoint(ngx_http_request_t *r,
    ngx_http_xet_status_t *s);
static const char *ngx_http_xet_status_summary(ngx_http_xet_status_t *s);
static void ngx_http_xet_status_checks_json(xet_json_t *j,
    ngx_http_xet_status_t *s);
static void ngx_http_xet_status_repos_json(xet_json_t *j);


#define ngx_http_xet_status_cell(s, symbol)                                   \
    ((s)->cells[NGX_HTTP_XET_M_##symbol])

/* Returns the value of a gauge; its cell contains the value plus one. */
#define ngx_http_xet_status_gauge(s, symbol)                                  \
    ((s)->cells[NGX_HTTP_XET_M_##symbol] - 1)

/* Returns the state of a gauge that is 1 if all is well. */
#define ngx_http_xet_status_of(cell)                                          \
    ((cell) == 0 ? NGX_HTTP_XET_STATE_NONE                                    \
     : (cell) == 2 ? NGX_HTTP_XET_STATE_GOOD : NGX_HTTP_XET_STATE_BAD)


ngx_int_t
ngx_http_xet_status_page(ngx_http_request_t *r, const uint64_t *cells)
{
    ngx_str_t                 uri;
    ngx_http_xet_status_t    *s;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    uri = xlcf->monitor_page;

    if (ngx_http_xet_header(r, "Vary", "Accept") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (uri.len && ngx_http_xet_browser(r)) {

        /* the redirected request has its own reference; release this one */

        (void) ngx_http_internal_redirect(r, &uri, NULL);

        return NGX_DONE;
    }

    s = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_status_t));

    if (s == NULL || ngx_http_xet_status_read(r, s, cells) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_status_text(r, s);
}


static ngx_int_t
ngx_http_xet_status_text(ngx_http_request_t *r, ngx_http_xet_status_t *s)
{
    u_char                 line[2 * NGX_HTTP_XET_STATUS_TEXT], *p, *last;
    xet_buf_t              b;
    ngx_uint_t             i;
    const char            *help;
    ngx_http_xet_check_t  *check;

    static const char *const  marks[] = { "?   ", "ok  ", "BAD " };

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 4096);

    last = line + sizeof(line);
    p = ngx_slprintf(line, last, "xet %s, nginx %s, schema %s\n\n%s\n\n",
                     XET_VERSION, NGINX_VERSION, ngx_http_xet_pg_schema(),
                     ngx_http_xet_status_summary(s));
    xet_buf_write(&b, line, p - line);

    for (i = 0; i < NGX_HTTP_XET_CHECKS; i++) {
        check = &s->checks[i];
        help = ngx_http_xet_status_checks[i].help;

        if (check->len == 0) {
            continue;
        }

        p = ngx_slprintf(line, last, "%s%*s\n", marks[check->state],
                         check->len, check->text);

        if (check->state == NGX_HTTP_XET_STATE_BAD) {
            p = ngx_slprintf(p, last, "    See docs/trouble.md#%s\n", help);
        }

        xet_buf_write(&b, line, p - line);
    }

    if (s->endpoint) {
        p = ngx_slprintf(line, last, "\n%s=", s->endpoint);
        xet_buf_write(&b, line, p - line);
        xet_buf_write(&b, s->origin.data, s->origin.len);
        xet_buf_write(&b, s->path.data, s->path.len);
        xet_buf_write(&b, "\n", 1);
    }

    p = ngx_slprintf(line, last, "\nAll figures as JSON: ?format=json\n");
    xet_buf_write(&b, line, p - line);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "text/plain; charset=utf-8", &b);
}


ngx_int_t
ngx_http_xet_status_json(ngx_http_request_t *r, xet_json_t *j,
    const uint64_t *cells)
{
    u_char                   *p;
    ngx_http_xet_status_t    *s;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    s = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_status_t));

    if (s == NULL || ngx_http_xet_status_read(r, s, cells) != NGX_OK) {
        return NGX_ERROR;
    }

    if (s->endpoint) {
        p = ngx_pnalloc(r->pool, s->origin.len + s->path.len + 1);
        if (p == NULL) {
            return NGX_ERROR;
        }

        (void) ngx_sprintf(p, "%V%V", &s->origin, &s->path);

        xet_json_key(j, "endpoint");
        xet_json_object_begin(j);
        xet_json_put_cstring(j, "name", s->endpoint);
        xet_json_put_string(j, "url", p, s->origin.len + s->path.len);
        xet_json_object_end(j);
    }

    xet_json_put_cstring(j, "summary", ngx_http_xet_status_summary(s));
    ngx_http_xet_status_checks_json(j, s);
    ngx_http_xet_jobs_json(j, s->jobs, s->njobs);

    if (xlcf->monitor == NGX_HTTP_XET_MONITOR_REPOS) {
        ngx_http_xet_status_repos_json(j);
    }

    return ngx_http_xet_history_json(r, j, cells);
}


static void
ngx_http_xet_status_checks_json(xet_json_t *j, ngx_http_xet_status_t *s)
{
    ngx_uint_t             i;
    ngx_http_xet_check_t  *check;

    static const char *const  states[] = { "none", "good", "bad" };

    xet_json_key(j, "checks");
    xet_json_array_begin(j);

    for (i = 0; i < NGX_HTTP_XET_CHECKS; i++) {
        check = &s->checks[i];

        if (check->len == 0) {
            continue;
        }

        xet_json_object_begin(j);
        xet_json_put_cstring(j, "name", ngx_http_xet_status_checks[i].name);
        xet_json_put_cstring(j, "state", states[check->state]);
        xet_json_put_string(j, "text", check->text, check->len);

        if (check->state == NGX_HTTP_XET_STATE_BAD) {
            xet_json_put_cstring(j, "help",
                                 ngx_http_xet_status_checks[i].help);
        }

        xet_json_object_end(j);
    }

    xet_json_array_end(j);
}


static void
ngx_http_xet_status_repos_json(xet_json_t *j)
{
    ngx_uint_t                i, n;
    ngx_http_xet_repo_size_t  repos[NGX_HTTP_XET_STATUS_REPOS];

    n = ngx_http_xet_monitor_top(repos, NGX_HTTP_XET_STATUS_REPOS);

    xet_json_key(j, "repos");
    xet_json_array_begin(j);

    for (i = 0; i < n; i++) {
        xet_json_object_begin(j);
        xet_json_put_string(j, "name", repos[i].name, repos[i].len);
        xet_json_put_u64(j, "files", repos[i].files);
        xet_json_put_u64(j, "bytes", repos[i].bytes);
        xet_json_object_end(j);
    }

    xet_json_array_end(j);
}


static ngx_int_t
ngx_http_xet_status_read(ngx_http_request_t *r, ngx_http_xet_status_t *s,
    const uint64_t *cells)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    s->cells = cells;
    s->api = xmcf->api;
    s->njobs = ngx_http_xet_jobs_read(s->jobs);

    if (s->api) {
        ngx_http_xet_status_health(s, xmcf);
    }

    return s->api ? ngx_http_xet_status_endpoint(r, s) : NGX_OK;
}


static void
ngx_http_xet_status_health(ngx_http_xet_status_t *s,
    ngx_http_xet_main_conf_t *xmcf)
{
    uint64_t  n;

    n = ngx_http_xet_status_cell(s, POSTGRES_UP);
    ngx_http_xet_status_check(s, NGX_HTTP_XET_CHECK_POSTGRES,
                              ngx_http_xet_status_of(n));

    n = ngx_http_xet_status_cell(s, STORE_WRITABLE);
    ngx_http_xet_status_check(s, NGX_HTTP_XET_CHECK_STORE,
                              ngx_http_xet_status_of(n));

    ngx_http_xet_status_store(s, xmcf);

    n = ngx_http_xet_status_cell(s, DAMAGED);
    ngx_http_xet_status_check(s, NGX_HTTP_XET_CHECK_DAMAGE,
                              (n == 0) ? NGX_HTTP_XET_STATE_NONE
                              : (n == 1) ? NGX_HTTP_XET_STATE_GOOD
                              : NGX_HTTP_XET_STATE_BAD, n - 1);

    ngx_http_xet_status_queues(s);
    ngx_http_xet_status_jobs(s);
    ngx_http_xet_status_failed(s);
}


static void
ngx_http_xet_status_store(ngx_http_xet_status_t *s,
    ngx_http_xet_main_conf_t *xmcf)
{
    uint64_t              size, free;
    ngx_http_xet_state_e  state;

    size = ngx_http_xet_status_cell(s, STORE_SIZE);

    if (size < 2) {
        ngx_http_xet_status_check(s, NGX_HTTP_XET_CHECK_SPACE,
                                  NGX_HTTP_XET_STATE_NONE);
        return;
    }

    size--;
    free = ngx_http_xet_status_gauge(s, STORE_FREE);
    state = (free >= size / 20) ? NGX_HTTP_XET_STATE_GOOD
                                : NGX_HTTP_XET_STATE_BAD;

    ngx_http_xet_status_check(s, NGX_HTTP_XET_CHECK_SPACE, state,
                              xmcf->store->s3 ? "temporary files"
                                              : "the store",
                              free / (size / 100 + 1));
}


/* Checks how long the oldest statement or job has been waiting. */

static void
ngx_http_xet_status_queues(ngx_http_xet_status_t *s)
{
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

    ngx_http_xet_status_check(s, NGX_HTTP_XET_CHECK_QUEUES,
                              (oldest < NGX_HTTP_XET_STATUS_LONG)
                              ? NGX_HTTP_XET_STATE_GOOD
                              : NGX_HTTP_XET_STATE_BAD, oldest / 1000);
}


/* Checks whether a run has stopped before its end, and reports its note. */

static void
ngx_http_xet_status_jobs(ngx_http_xet_status_t *s)
{
    ngx_uint_t                 i;
    ngx_http_xet_job_state_t  *job;

    for (i = 0; i < s->njobs; i++) {
        job = &s->jobs[i];

        if (job->running && job->note_len) {
            ngx_http_xet_status_check(s, NGX_HTTP_XET_CHECK_JOBS,
                                      NGX_HTTP_XET_STATE_BAD, job->len,
                                      job->name, job->note_len, job->note);
            return;
        }
    }

    ngx_http_xet_status_check(s, NGX_HTTP_XET_CHECK_JOBS,
                              NGX_HTTP_XET_STATE_GOOD);
}


/* Checks whether one of 1000 requests, or more, has failed. */

static void
ngx_http_xet_status_failed(ngx_http_xet_status_t *s)
{
    uint64_t  all, failed;

    ngx_http_xet_history_hour(s->cells, &all, &failed);

    ngx_http_xet_status_check(s, NGX_HTTP_XET_CHECK_FAILED,
                              (failed == 0 || failed < all / 1000)
                              ? NGX_HTTP_XET_STATE_GOOD
                              : NGX_HTTP_XET_STATE_BAD, failed, all);
}


/* Sets a check; the arguments are those of its format. */

static void
ngx_http_xet_status_check(ngx_http_xet_status_t *s, ngx_http_xet_check_e check,
    ngx_http_xet_state_e state, ...)
{
    u_char                *p;
    va_list                args;
    ngx_http_xet_check_t  *c;

    c = &s->checks[check];
    c->state = state;

    s->bad += (state == NGX_HTTP_XET_STATE_BAD);
    s->none += (state == NGX_HTTP_XET_STATE_NONE);

    va_start(args, state);
    p = ngx_vslprintf(c->text, c->text + NGX_HTTP_XET_STATUS_TEXT,
                      ngx_http_xet_status_checks[check].texts[state], args);
    va_end(args);

    c->len = p - c->text;
}


static const char *
ngx_http_xet_status_summary(ngx_http_xet_status_t *s)
{
    return !s->api ? "This server has no database and no store."
           : (s->bad > 1) ? "Several checks need attention."
           : s->bad ? "One check needs attention."
           : s->none ? "Some checks have not run yet."
           : "All checks passed.";
}


/*
 * Finds the endpoint for clients: the URL of the Hub if the server has one, or
 * else the URL of the API.  There is none if the request has no host name.
 */

static ngx_int_t
ngx_http_xet_status_endpoint(ngx_http_request_t *r, ngx_http_xet_status_t *s)
{
    ngx_int_t                  rc;
    ngx_http_xet_loc_conf_t   *xlcf, *server;
    ngx_http_core_srv_conf_t  *cscf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    server = cscf->ctx->loc_conf[ngx_http_xet_module.ctx_index];

    rc = ngx_http_xet_name_url(r, 0, &s->origin);

    if (rc != NGX_OK) {
        return (rc == NGX_DECLINED) ? NGX_OK : NGX_ERROR;
    }

    s->endpoint = server->hub_at ? "HF_ENDPOINT" : "XET_ENDPOINT";
    s->path = server->hub_at ? *server->hub_at : xlcf->api_base;

    return NGX_OK;
}
