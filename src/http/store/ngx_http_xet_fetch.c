
/*
 * Fetches xorbs from a peer node, by GET v1/xorbs of its API, one after
 * another over one connection.  Each xorb is a source of bytes for a scan
 * (ngx_http_xet_store_scan.c), which verifies all of them.
 *
 *     create (event loop) -> begin (event loop) -> job, XET_AGAIN -> ...
 *                         -> job, XET_OK and no bytes -> end -> begin ...
 *
 * A job transfers one piece (src/store/net).  Between jobs the data stays in
 * the socket, so a peer can't send faster than the jobs read.  The memory is
 * one buffer of the scan and one of libcurl.  A job never waits for the
 * network, since its thread also serves readers: if little data has arrived,
 * the caller pauses before the next job.
 *
 * Only the address in the directive is contacted: no redirects, no proxy from
 * the environment, no other protocols.
 *
 * The fetch fails if the peer sends less than NGX_HTTP_XET_FETCH_LITTLE bytes
 * within one timeout, or if the xorb is not complete after
 * NGX_HTTP_XET_FETCH_WAITS timeouts.  Only pauses after a job with little data
 * count towards these timeouts.
 *
 * libcurl resolves host names in a thread of its own, which may still run when
 * the worker exits.  So the module must stay in memory: it is pinned before
 * the first connection to PostgreSQL (ngx_http_xet_pg_connect.c), and nothing
 * is fetched before that connection exists.
 *
 * The structure belongs to a job while the job runs, otherwise to the event
 * loop.  The event loop creates and destroys the structure, and prepares the
 * next xorb, but never calls libcurl.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"
#include "xet_net.h"


#define NGX_HTTP_XET_FETCH_BUFFER  (128 * 1024)  /* libcurl's buffer, bytes */
#define NGX_HTTP_XET_FETCH_ERROR   (64 * 1024) /* max bytes discarded */
#define NGX_HTTP_XET_FETCH_ROUNDS  64          /* libcurl calls in a job */
#define NGX_HTTP_XET_FETCH_PAUSE   20          /* ms, max counted per pause */
#define NGX_HTTP_XET_FETCH_WAITS   10          /* timeouts for one xorb */
#define NGX_HTTP_XET_FETCH_OK      200


typedef enum {
    NGX_HTTP_XET_FETCH_NEW = 0,
    NGX_HTTP_XET_FETCH_RUNS,
    NGX_HTTP_XET_FETCH_PAUSED,                 /* the buffer is full */
    NGX_HTTP_XET_FETCH_DONE                    /* the xorb is complete */
} ngx_http_xet_fetch_e;


struct ngx_http_xet_fetch_s {
    const ngx_http_xet_peer_t  *peer;
    ngx_http_xet_fetch_e        state;
    const char                 *url;           /* owned by the caller */

    xet_net_t                  *net;           /* holds the connection */
    xet_net_request_t           request;

    u_char                     *buf;           /* buffer of the job */
    size_t                      size;
    size_t                      len;

    size_t                      dropped;     /* bytes of a 404 body discarded */

    uint64_t                    paused;        /* start of the pause, or 0 */
    uint64_t                    waited;        /* ms of pauses in this step */
    uint64_t                    total;         /* ms of pauses for this xorb */
    size_t                      step;          /* bytes received in this step */
    size_t                      burst;      /* bytes received since the pause */

    unsigned                    ended:1;       /* the transfer has ended */
    unsigned                    bad:1;         /* other xorbs would fail, too */
};


static xet_status_t ngx_http_xet_fetch_open(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static xet_net_taken_t ngx_http_xet_fetch_write(xet_net_request_t *request,
    const char *data, size_t len);
static void ngx_http_xet_fetch_done(xet_net_request_t *request);
static xet_status_t ngx_http_xet_fetch_run(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_fetch_ended(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_fetch_lacks(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_fetch_answers(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_fetch_came(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static void ngx_http_xet_fetch_close_job(void *data, ngx_log_t *log);


ngx_int_t
ngx_http_xet_fetch_init(ngx_cycle_t *cycle)
{
    if (xet_net_init()) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "xet: libcurl can't be "
                                                "initialized");

    return NGX_ERROR;
}


ngx_http_xet_fetch_t *
ngx_http_xet_fetch_create(const ngx_http_xet_peer_t *peer)
{
    ngx_http_xet_fetch_t  *fetch;

    fetch = ngx_calloc(sizeof(ngx_http_xet_fetch_t), ngx_cycle->log);

    if (fetch) {
        fetch->peer = peer;
    }

    return fetch;
}


void
ngx_http_xet_fetch_begin(ngx_http_xet_fetch_t *fetch, const xet_hash_t *xorb,
    char *url, size_t size)
{
    u_char  hex[XET_HASH_STR_LEN];

    (void) xet_hash_print(hex, xorb);

    *ngx_snprintf((u_char *) url, size - 1, "%V/v1/xorbs/default/%*s",
                  &fetch->peer->url, (size_t) XET_HASH_STR_LEN, hex) = '\0';

    fetch->url = url;
    fetch->state = NGX_HTTP_XET_FETCH_NEW;
    fetch->dropped = 0;
    fetch->paused = 0;
    fetch->waited = 0;
    fetch->total = 0;
    fetch->step = 0;
    fetch->burst = 0;
    fetch->bad = 0;
}


xet_status_t
ngx_http_xet_fetch_job(ngx_http_xet_fetch_t *fetch, u_char *buf, size_t size,
    size_t *len, ngx_log_t *log)
{
    xet_status_t  rc;

    *len = 0;

    if (fetch->state == NGX_HTTP_XET_FETCH_DONE) {
        return XET_OK;
    }

    if (fetch->state == NGX_HTTP_XET_FETCH_NEW) {
        rc = ngx_http_xet_fetch_open(fetch, log);

        if (rc != XET_OK) {
            return rc;
        }
    }

    fetch->buf = buf;
    fetch->size = size;
    fetch->len = 0;

    rc = ngx_http_xet_fetch_run(fetch, log);

    if (rc == XET_AGAIN) {
        rc = ngx_http_xet_fetch_came(fetch, log);
    }

    fetch->buf = NULL;
    *len = fetch->len;

    return rc;
}


/*
 * Starts the request for the xorb.  First ends the previous transfer, whose
 * connection may stay open.
 */

static xet_status_t
ngx_http_xet_fetch_open(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    xet_net_conf_t              conf;
    xet_net_request_t          *request;
    const ngx_http_xet_peer_t  *peer;

    peer = fetch->peer;
    request = &fetch->request;

    ngx_http_xet_fetch_end_job(fetch);

    if (fetch->net == NULL) {
        ngx_memzero(&conf, sizeof(xet_net_conf_t));

        conf.agent = "ngx_http_xet_module/" XET_VERSION;
        conf.certificates = (char *) peer->trusted.data;
        conf.buffer = NGX_HTTP_XET_FETCH_BUFFER;

        fetch->net = xet_net_create(&conf);

        if (fetch->net == NULL) {
            return XET_NOMEM;
        }
    }

    ngx_memzero(request, sizeof(xet_net_request_t));

    request->url = fetch->url;
    request->connect = (uint32_t) peer->timeout;
    request->write = ngx_http_xet_fetch_write;
    request->done = ngx_http_xet_fetch_done;
    request->owner = fetch;

    fetch->ended = 0;

    if (peer->header.len
        && !xet_net_header(request, (char *) peer->header.data))
    {
        return XET_NOMEM;
    }

    if (xet_net_start(fetch->net, request) != XET_NET_OK) {
        fetch->bad = 1;
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "xet: request to peer \"%s\" failed: %s",
                      fetch->url, request->why);
        return XET_STORE_FAILED;
    }

    fetch->state = NGX_HTTP_XET_FETCH_RUNS;

    return XET_OK;
}


/*
 * Drops the body of an error response.  The body of a 404 is read to its end,
 * so that the connection can be reused.
 */

static xet_net_taken_t
ngx_http_xet_fetch_write(xet_net_request_t *request, const char *data,
    size_t len)
{
    ngx_http_xet_fetch_t *fetch = request->owner;

    if (request->status == NGX_HTTP_NOT_FOUND) {
        fetch->dropped += len;

        return (fetch->dropped > NGX_HTTP_XET_FETCH_ERROR) ? XET_NET_STOP
                                                           : XET_NET_TAKEN;
    }

    if (request->status != NGX_HTTP_XET_FETCH_OK) {
        return XET_NET_STOP;
    }

    if (fetch->buf == NULL || len > fetch->size - fetch->len) {
        fetch->state = NGX_HTTP_XET_FETCH_PAUSED;
        return XET_NET_PAUSE;
    }

    ngx_memcpy(fetch->buf + fetch->len, data, len);
    fetch->len += len;

    return XET_NET_TAKEN;
}


static void
ngx_http_xet_fetch_done(xet_net_request_t *request)
{
    ngx_http_xet_fetch_t *fetch = request->owner;

    fetch->ended = 1;
}


/*
 * Continues the transfer.  Returns XET_OK if it is complete.  A libcurl call
 * reads at most one TLS record, so the loop repeats the call while data
 * arrives.
 */

static xet_status_t
ngx_http_xet_fetch_run(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    size_t       before;
    ngx_uint_t   i;
    const char  *why;

    if (fetch->state == NGX_HTTP_XET_FETCH_PAUSED) {
        fetch->state = NGX_HTTP_XET_FETCH_RUNS;

        /* libcurl immediately passes its buffered data to the write handler */

        xet_net_resume(&fetch->request);
    }

    for (i = 0; i < NGX_HTTP_XET_FETCH_ROUNDS; i++) {

        before = fetch->len;
        why = xet_net_step(fetch->net, 0, NULL);

        if (why) {
            fetch->bad = 1;
            ngx_log_error(NGX_LOG_ERR, log, 0, "xet: libcurl failed: %s", why);
            return XET_STORE_FAILED;
        }

        if (fetch->ended) {
            return ngx_http_xet_fetch_ended(fetch, log);
        }

        if (fetch->len == before || fetch->len >= NGX_HTTP_XET_FETCH_LITTLE
            || fetch->state == NGX_HTTP_XET_FETCH_PAUSED)
        {
            break;
        }
    }

    return XET_AGAIN;
}


static xet_status_t
ngx_http_xet_fetch_ended(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    xet_net_request_t  *request;

    request = &fetch->request;

    if (request->rc == XET_NET_OK && request->status == NGX_HTTP_XET_FETCH_OK) {
        fetch->state = NGX_HTTP_XET_FETCH_DONE;
        return XET_OK;
    }

    if (request->refused == NULL && request->status == NGX_HTTP_NOT_FOUND) {
        return ngx_http_xet_fetch_lacks(fetch, log);
    }

    if (request->refused == NULL && request->status
        && request->status != NGX_HTTP_XET_FETCH_OK)
    {
        return ngx_http_xet_fetch_answers(fetch, log);
    }

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "xet: request to peer \"%s\" failed: %s",
                  fetch->url, request->why);

    if (xet_store_status(request->err) == XET_STORE_FILES) {
        return XET_STORE_FILES;
    }

    /*
     * Any other failure counts against the peer, even "out of memory", which
     * libcurl also reports for a response header that is too long.
     */

    fetch->bad = 1;

    return XET_STORE_FAILED;
}


/*
 * Handles a 404.  If its Content-Type is JSON, the API has responded: the peer
 * does not have the xorb, which is not an error.  Otherwise the server does
 * not have this API, which is an error.
 */

static xet_status_t
ngx_http_xet_fetch_lacks(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    const char  *type;

    type = xet_net_value(&fetch->request, "Content-Type");

    if (type && ngx_strncasecmp((u_char *) type, (u_char *) "application/json",
                                sizeof("application/json") - 1)
                == 0)
    {
        ngx_log_error(NGX_LOG_INFO, log, 0, "xet: peer does not have \"%s\"",
                      fetch->url);

    } else {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "xet: the 404 of a peer is not that of an API: \"%s\"",
                      fetch->url);
    }

    return XET_STORE_FAILED;
}


static xet_status_t
ngx_http_xet_fetch_answers(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    int  status;

    status = fetch->request.status;

    switch (status) {

    case NGX_HTTP_UNAUTHORIZED:
    case NGX_HTTP_FORBIDDEN:
    case NGX_HTTP_TOO_MANY_REQUESTS:
        fetch->bad = 1;
        break;

    default:
        fetch->bad = (status >= NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    ngx_log_error(NGX_LOG_ERR, log, 0, "xet: peer responded with %d to \"%s\"",
                  status, fetch->url);

    return XET_STORE_FAILED;
}


/*
 * Counts the data and the pauses, and checks the timeouts.  A pause counts only
 * if little data came before it, and only up to its planned length.  Delays by
 * a busy worker, a busy thread pool or a rate limit are not the peer's fault.
 */

static xet_status_t
ngx_http_xet_fetch_came(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    uint64_t  now, pause;

    now = ngx_http_xet_store_clock();

    if (fetch->paused) {
        pause = ngx_min(now - fetch->paused, NGX_HTTP_XET_FETCH_PAUSE);

        fetch->waited += pause;
        fetch->total += pause;
    }

    fetch->step += fetch->len;
    fetch->burst += fetch->len;

    if (fetch->waited >= fetch->peer->timeout
        && fetch->step < NGX_HTTP_XET_FETCH_LITTLE)
    {
        fetch->bad = 1;
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "xet: request to peer \"%s\" failed: less than %uz "
                      "bytes in %M ms",
                      fetch->url, (size_t) NGX_HTTP_XET_FETCH_LITTLE,
                      fetch->peer->timeout);
        return XET_STORE_FAILED;
    }

    if (fetch->total / NGX_HTTP_XET_FETCH_WAITS >= fetch->peer->timeout) {
        fetch->bad = 1;
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "xet: request to peer \"%s\" failed: not complete after "
                      "%uL ms",
                      fetch->url, fetch->total);
        return XET_STORE_FAILED;
    }

    if (fetch->step >= NGX_HTTP_XET_FETCH_LITTLE) {
        fetch->step = 0;
        fetch->waited = 0;
    }

    if (fetch->len >= NGX_HTTP_XET_FETCH_LITTLE
        || fetch->state == NGX_HTTP_XET_FETCH_PAUSED)
    {
        fetch->paused = 0;
        return XET_OK;
    }

    fetch->paused = (fetch->burst < NGX_HTTP_XET_FETCH_LITTLE) ? now : 0;
    fetch->burst = 0;

    return XET_AGAIN;
}


ngx_uint_t
ngx_http_xet_fetch_bad(ngx_http_xet_fetch_t *fetch)
{
    return fetch->bad;
}


void
ngx_http_xet_fetch_end_job(ngx_http_xet_fetch_t *fetch)
{
    xet_net_close(&fetch->request);
}


void
ngx_http_xet_fetch_destroy(ngx_http_xet_fetch_t *fetch)
{
    if (fetch->net == NULL) {
        ngx_free(fetch);
        return;
    }

    ngx_http_xet_task_detached(ngx_http_xet_fetch_close_job, &fetch,
                               sizeof(ngx_http_xet_fetch_t *));
}


static void
ngx_http_xet_fetch_close_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_fetch_t *fetch = *(ngx_http_xet_fetch_t **) data;

    ngx_http_xet_fetch_end_job(fetch);
    xet_net_destroy(fetch->net);

    ngx_free(fetch);
}
