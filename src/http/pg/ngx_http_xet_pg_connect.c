
/*
 * Opens connections to PostgreSQL.
 *
 * Name lookups, file reads, TLS and authentication happen in one blocking call
 * of libpq; then the database is checked.  This may take any time, so each
 * attempt has its own thread.  In a thread pool of nginx an attempt would
 * occupy a thread, and an exiting worker would wait for it.
 *
 * The thread owns the context until it writes a byte into a pipe; when the
 * event loop has read the byte, the event loop owns the context.  An exiting
 * process does not wait for a running thread, which keeps its context until the
 * process ends.  nginx unloads its modules before the process ends, so this
 * module is pinned in memory before the first thread starts; see also
 * ngx_http_xet_exit_process().
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>


struct ngx_http_xet_pg_connect_s {
    pthread_t                      thread;
    ngx_connection_t              *connection; /* read end of the pipe */
    int                            end;        /* write end of the pipe */

    ngx_http_xet_pg_connected_pt   handler;
    void                          *data;

    PGconn                        *conn;       /* NULL: see error */
    char                           error[NGX_HTTP_XET_PG_ERROR_LEN];

    ngx_http_xet_store_t          *store;
    ngx_http_xet_pg_host_t         host;       /* its strings are copies */
    ngx_msec_t                     timeout;
};


static char *ngx_http_xet_pg_connect_text(u_char **p, const char *text);
static ngx_int_t ngx_http_xet_pg_connect_thread(
    ngx_http_xet_pg_connect_t *ctx);
static void ngx_http_xet_pg_connect_pin(void);
static void *ngx_http_xet_pg_connect_job(void *data);
static void ngx_http_xet_pg_connect_notice(void *arg, const PGresult *res);
static void ngx_http_xet_pg_connect_handler(ngx_event_t *rev);


ngx_http_xet_pg_connect_t *
ngx_http_xet_pg_connect_start(const ngx_http_xet_pg_host_t *host,
    ngx_http_xet_pg_connected_pt handler, void *data)
{
    int                         fds[2];
    size_t                      i, len;
    u_char                     *p;
    const char                 *texts[4];
    ngx_http_xet_main_conf_t   *xmcf;
    ngx_http_xet_pg_connect_t  *ctx;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    texts[0] = (char *) host->conninfo.data;
    texts[1] = host->host;
    texts[2] = host->hostaddr;
    texts[3] = host->port;

    len = sizeof(ngx_http_xet_pg_connect_t);

    for (i = 0; i < 4; i++) {
        len += texts[i] ? ngx_strlen(texts[i]) + 1 : 0;
    }

    /* the strings are copied, because a thread may outlive the cycle's pool */

    ctx = ngx_calloc(len, ngx_cycle->log);
    if (ctx == NULL) {
        return NULL;
    }

    ctx->handler = handler;
    ctx->data = data;
    ctx->timeout = xmcf->connect_timeout;

    p = (u_char *) (ctx + 1);

    ctx->store = xmcf->store;

    ctx->host = *host;
    ctx->host.conninfo.data = (u_char *) ngx_http_xet_pg_connect_text(&p,
                                                                      texts[0]);
    ctx->host.host = ngx_http_xet_pg_connect_text(&p, texts[1]);
    ctx->host.hostaddr = ngx_http_xet_pg_connect_text(&p, texts[2]);
    ctx->host.port = ngx_http_xet_pg_connect_text(&p, texts[3]);

    if (pipe2(fds, O_CLOEXEC|O_NONBLOCK) == -1) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "xet: pipe2() failed");
        ngx_free(ctx);
        return NULL;
    }

    ctx->end = fds[1];

    ctx->connection = ngx_http_xet_pg_watch(fds[0], ctx,
                                            ngx_http_xet_pg_connect_handler);
    if (ctx->connection == NULL) {
        ngx_close_socket(fds[0]);
        goto failed;
    }

    if (ngx_http_xet_pg_connect_thread(ctx) != NGX_OK) {
        ngx_close_connection(ctx->connection);
        goto failed;
    }

    return ctx;

failed:

    ngx_close_socket(fds[1]);
    ngx_free(ctx);

    return NULL;
}


static char *
ngx_http_xet_pg_connect_text(u_char **p, const char *text)
{
    char    *copy;
    size_t   len;

    if (text == NULL) {
        return NULL;
    }

    copy = (char *) *p;
    len = ngx_strlen(text) + 1;

    *p = ngx_cpymem(*p, text, len);

    return copy;
}


ngx_connection_t *
ngx_http_xet_pg_watch(int fd, void *data, ngx_event_handler_pt handler)
{
    ngx_log_t         *log;
    ngx_connection_t  *c;

    log = ngx_cycle->log;

    c = ngx_get_connection(fd, log);
    if (c == NULL) {
        return NULL;
    }

    c->data = data;
    c->log = log;
    c->read->log = log;
    c->write->log = log;
    c->read->handler = handler;
    c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);

    if (ngx_add_event(c->read, NGX_READ_EVENT, NGX_LEVEL_EVENT) != NGX_OK) {
        ngx_free_connection(c);
        return NULL;
    }

    return c;
}


static void
ngx_http_xet_pg_connect_pin(void)
{
    Dl_info  info;

    static ngx_uint_t  pinned;

    if (pinned || dladdr(&ngx_http_xet_module, &info) == 0) {
        return;
    }

    pinned = dlopen(info.dli_fname, RTLD_NOW|RTLD_NOLOAD|RTLD_NODELETE)
             != NULL;
}


/* Starts the thread with all signals blocked: the main thread handles them. */

static ngx_int_t
ngx_http_xet_pg_connect_thread(ngx_http_xet_pg_connect_t *ctx)
{
    int       err;
    sigset_t  all, set;

    ngx_http_xet_pg_connect_pin();

    sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &set);

    err = pthread_create(&ctx->thread, NULL, ngx_http_xet_pg_connect_job, ctx);

    (void) pthread_sigmask(SIG_SETMASK, &set, NULL);

    if (err) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, err,
                      "xet: pthread_create() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void *
ngx_http_xet_pg_connect_job(void *data)
{
    ngx_http_xet_pg_connect_t *ctx = data;

    int          end;
    char         timeout[NGX_TIME_T_LEN + 1];
    PGconn      *conn;
    const char  *error, *keys[NGX_HTTP_XET_PG_KEYWORDS];
    const char  *values[NGX_HTTP_XET_PG_KEYWORDS];

    *ngx_sprintf((u_char *) timeout, "%M", (ctx->timeout + 999) / 1000) = '\0';

    ngx_http_xet_pg_keywords(&ctx->host, timeout, keys, values);

    conn = PQconnectdbParams(keys, values, 1);

    if (PQstatus(conn) != CONNECTION_OK) {
        error = conn ? PQerrorMessage(conn) : "out of memory";

    } else {
        PQsetNoticeReceiver(conn, ngx_http_xet_pg_connect_notice, NULL);

        error = ctx->host.standby
                ? ngx_http_xet_pg_check_standby_job(conn, ctx->store,
                                                    ctx->timeout,
                                                    ngx_cycle->log)
                : ngx_http_xet_pg_check_job(conn, ctx->store, ctx->timeout,
                                            ngx_cycle->log);
    }

    if (error) {
        ngx_http_xet_pg_text(ctx->error, NGX_HTTP_XET_PG_ERROR_LEN, error);
        PQfinish(conn);

    } else {
        ctx->conn = conn;
    }

    end = ctx->end;

    if (write(end, "", 1) != 1) {

        /* the process is exiting, and the pipe has no reader */

    }

    (void) close(end);

    return NULL;
}


static void
ngx_http_xet_pg_connect_notice(void *arg, const PGresult *res)
{
    /* may run in the connecting thread, which may use the cycle's log */

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0, "xet: PostgreSQL: %s",
                  PQresultErrorMessage(res));
}


static void
ngx_http_xet_pg_connect_handler(ngx_event_t *rev)
{
    u_char                      byte;
    ngx_connection_t           *c;
    ngx_http_xet_pg_connect_t  *ctx;

    c = rev->data;
    ctx = c->data;

    if (read(c->fd, &byte, 1) == -1) {
        return;
    }

    ngx_close_connection(c);

    (void) pthread_detach(ctx->thread);

    ctx->handler(ctx->data, ctx->conn, ctx->error);

    ngx_free(ctx);
}


void
ngx_http_xet_pg_connect_abandon(ngx_http_xet_pg_connect_t *ctx)
{
    u_char         byte;
    struct pollfd  pfd;

    (void) pthread_detach(ctx->thread);

    pfd.fd = ctx->connection->fd;
    pfd.events = POLLIN;

    if (poll(&pfd, 1, 0) != 1 || read(pfd.fd, &byte, 1) != 1) {
        ngx_close_connection(ctx->connection);
        return;
    }

    ngx_close_connection(ctx->connection);

    if (ctx->conn) {
        PQfinish(ctx->conn);
    }

    ngx_free(ctx);
}
