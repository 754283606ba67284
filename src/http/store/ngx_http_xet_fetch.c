
/*
 * A xorb fetched from a peer node, by GET v1/xorbs of its API: a source of
 * bytes for a scan (ngx_http_xet_store_scan.c), which believes nothing of them.
 *
 *     create (event loop) -> job, XET_AGAIN -> ... -> job, XET_OK and no bytes
 *
 * libcurl does the transfer, a piece a job, and nothing between two jobs: what
 * comes meanwhile stays in the socket, so a peer can't send faster than is
 * asked for, and the memory is that of one buffer of the scan and one of curl.
 * A job waits for the network for a few milliseconds only, since readers wait
 * for its thread; the caller makes a pause before the next job.
 *
 * What is asked is one address, that of the directive: no redirect, no proxy
 * of the environment, no other protocol.  Certificates are verified always.
 *
 * A peer that sends nothing, or next to nothing, is given up after its timeout,
 * which is counted only while it is waited for: less than STEP bytes in that
 * time are too few.  Names are looked up in a thread of libcurl's.
 *
 * Owned by the job while that runs, else by the event loop, which only creates
 * and destroys it: all of libcurl is used in threads.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"

#include <curl/curl.h>


#define NGX_HTTP_XET_FETCH_BUFFER  (128 * 1024)  /* of libcurl */
#define NGX_HTTP_XET_FETCH_STEP    (64 * 1024)
#define NGX_HTTP_XET_FETCH_WAIT    5             /* ms */
#define NGX_HTTP_XET_FETCH_OK      200


typedef enum {
    NGX_HTTP_XET_FETCH_NEW = 0,
    NGX_HTTP_XET_FETCH_RUNS,
    NGX_HTTP_XET_FETCH_PAUSED,                 /* the buffer was full */
    NGX_HTTP_XET_FETCH_DONE                    /* all has come */
} ngx_http_xet_fetch_e;


struct ngx_http_xet_fetch_s {
    const ngx_http_xet_peer_t  *peer;
    ngx_http_xet_fetch_e        state;
    const char                 *url;           /* of the caller */

    CURLM                      *multi;
    CURL                       *easy;
    struct curl_slist          *headers;

    u_char                     *buf;           /* of the job */
    size_t                      size;
    size_t                      len;

    uint64_t                    waits;         /* since, by the clock; or 0 */
    uint64_t                    waited;        /* ms, for the step */
    size_t                      step;          /* bytes of it */

    char                        error[CURL_ERROR_SIZE];
};


static xet_status_t ngx_http_xet_fetch_open(ngx_http_xet_fetch_t *fetch);
static CURLcode ngx_http_xet_fetch_options(ngx_http_xet_fetch_t *fetch);
static size_t ngx_http_xet_fetch_write(char *data, size_t one, size_t len,
    void *arg);
static xet_status_t ngx_http_xet_fetch_run(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_fetch_ended(ngx_http_xet_fetch_t *fetch,
    CURLcode code, ngx_log_t *log);
static xet_status_t ngx_http_xet_fetch_came(ngx_http_xet_fetch_t *fetch);
static xet_status_t ngx_http_xet_fetch_none(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static void ngx_http_xet_fetch_close_job(void *data, ngx_log_t *log);


ngx_int_t
ngx_http_xet_fetch_init(ngx_cycle_t *cycle)
{
    CURLcode  code;

    code = curl_global_init(CURL_GLOBAL_DEFAULT);

    if (code != CURLE_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "xet: curl_global_init() failed: %s",
                      curl_easy_strerror(code));
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_http_xet_fetch_t *
ngx_http_xet_fetch_create(const ngx_http_xet_peer_t *peer,
    const xet_hash_t *xorb, char *url, size_t size)
{
    u_char                 hex[XET_HASH_STR_LEN];
    ngx_http_xet_fetch_t  *fetch;

    fetch = ngx_calloc(sizeof(ngx_http_xet_fetch_t), ngx_cycle->log);
    if (fetch == NULL) {
        return NULL;
    }

    (void) xet_hash_print(hex, xorb);

    *ngx_snprintf((u_char *) url, size - 1, "%V/v1/xorbs/default/%*s",
                  &peer->url, (size_t) XET_HASH_STR_LEN, hex) = '\0';

    fetch->peer = peer;
    fetch->url = url;

    return fetch;
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
        rc = ngx_http_xet_fetch_open(fetch);

        if (rc != XET_OK) {
            return rc;
        }
    }

    fetch->buf = buf;
    fetch->size = size;
    fetch->len = 0;

    if (fetch->waits == 0) {
        fetch->waits = ngx_http_xet_store_clock();
    }

    rc = ngx_http_xet_fetch_run(fetch, log);

    fetch->buf = NULL;
    *len = fetch->len;

    if (rc != XET_AGAIN) {
        return rc;
    }

    return fetch->len ? ngx_http_xet_fetch_came(fetch)
                      : ngx_http_xet_fetch_none(fetch, log);
}


static xet_status_t
ngx_http_xet_fetch_open(ngx_http_xet_fetch_t *fetch)
{
    fetch->multi = curl_multi_init();
    fetch->easy = curl_easy_init();

    if (fetch->multi == NULL || fetch->easy == NULL
        || ngx_http_xet_fetch_options(fetch) != CURLE_OK
        || curl_multi_add_handle(fetch->multi, fetch->easy) != CURLM_OK)
    {
        return XET_NOMEM;
    }

    fetch->state = NGX_HTTP_XET_FETCH_RUNS;

    return XET_OK;
}


/* Options that take a string fail without memory, the others never do. */

static CURLcode
ngx_http_xet_fetch_options(ngx_http_xet_fetch_t *fetch)
{
    CURL                       *easy;
    CURLcode                    rc;
    struct curl_slist          *headers;
    const ngx_http_xet_peer_t  *peer;

    easy = fetch->easy;
    peer = fetch->peer;

    /* QUICK_EXIT: no close waits for a name that is being looked up */

    if ((rc = curl_easy_setopt(easy, CURLOPT_URL, fetch->url))
        || (rc = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https"))
        || (rc = curl_easy_setopt(easy, CURLOPT_PROXY, ""))
        || (rc = curl_easy_setopt(easy, CURLOPT_USERAGENT,
                                  "ngx_http_xet_module/" XET_VERSION))
        || (rc = curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, fetch->error))
        || (rc = curl_easy_setopt(easy, CURLOPT_SSLVERSION,
                                  (long) CURL_SSLVERSION_TLSv1_2))
        || (rc = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                                  (long) peer->timeout)))
    {
        return rc;
    }

    (void) curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    (void) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE,
                            (long) NGX_HTTP_XET_FETCH_BUFFER);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION,
                            ngx_http_xet_fetch_write);
    (void) curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);

    if (peer->trusted.len) {
        rc = curl_easy_setopt(easy, CURLOPT_CAINFO, peer->trusted.data);

        if (rc != CURLE_OK) {
            return rc;
        }
    }

    if (peer->header.len) {
        headers = curl_slist_append(NULL, (char *) peer->header.data);

        if (headers == NULL) {
            return CURLE_OUT_OF_MEMORY;
        }

        fetch->headers = headers;

        return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    }

    return CURLE_OK;
}


/* The body of an error is not looked at, what is too much is kept by curl. */

static size_t
ngx_http_xet_fetch_write(char *data, size_t one, size_t len, void *arg)
{
    ngx_http_xet_fetch_t *fetch = arg;

    long  status;

    if (curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status)
        != CURLE_OK
        || status != NGX_HTTP_XET_FETCH_OK)
    {
        return 0;
    }

    if (fetch->buf == NULL || len > fetch->size - fetch->len) {
        fetch->state = NGX_HTTP_XET_FETCH_PAUSED;
        return CURL_WRITEFUNC_PAUSE;
    }

    ngx_memcpy(fetch->buf + fetch->len, data, len);
    fetch->len += len;

    return len;
}


/* XET_OK: the transfer has ended well. */

static xet_status_t
ngx_http_xet_fetch_run(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    int         running, left;
    CURLMcode   rc;
    CURLMsg    *msg;
    ngx_uint_t  waited;

    if (fetch->state == NGX_HTTP_XET_FETCH_PAUSED) {
        fetch->state = NGX_HTTP_XET_FETCH_RUNS;

        /* curl writes at once what it has kept */

        (void) curl_easy_pause(fetch->easy, CURLPAUSE_CONT);
    }

    for (waited = 0; /* void */; waited = 1) {

        rc = curl_multi_perform(fetch->multi, &running);

        if (rc != CURLM_OK) {
            ngx_log_error(NGX_LOG_ERR, log, 0,
                          "xet: curl_multi_perform() failed: %s",
                          curl_multi_strerror(rc));
            return (rc == CURLM_OUT_OF_MEMORY) ? XET_NOMEM : XET_STORE_FAILED;
        }

        while ((msg = curl_multi_info_read(fetch->multi, &left)) != NULL) {

            if (msg->msg == CURLMSG_DONE) {
                return ngx_http_xet_fetch_ended(fetch, msg->data.result, log);
            }
        }

        if (fetch->len || waited || fetch->state == NGX_HTTP_XET_FETCH_PAUSED) {
            return XET_AGAIN;
        }

        (void) curl_multi_poll(fetch->multi, NULL, 0, NGX_HTTP_XET_FETCH_WAIT,
                               NULL);
    }
}


/* A peer that has not the xorb is no error. */

static xet_status_t
ngx_http_xet_fetch_ended(ngx_http_xet_fetch_t *fetch, CURLcode code,
    ngx_log_t *log)
{
    long  status;

    status = 0;

    (void) curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);

    if (code == CURLE_OK && status == NGX_HTTP_XET_FETCH_OK) {
        fetch->state = NGX_HTTP_XET_FETCH_DONE;
        return XET_OK;
    }

    if (status == NGX_HTTP_NOT_FOUND) {
        return XET_STORE_FAILED;
    }

    if (status && status != NGX_HTTP_XET_FETCH_OK) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "xet: peer answers %l to \"%s\"", status, fetch->url);
        return XET_STORE_FAILED;
    }

    ngx_log_error(NGX_LOG_ERR, log, 0, "xet: peer fails at \"%s\": %s",
                  fetch->url, fetch->error[0] ? fetch->error
                                              : curl_easy_strerror(code));

    /* CURLE_OUT_OF_MEMORY, too: a peer gets it by a header that is too long */

    return XET_STORE_FAILED;
}


/* The pause that the caller makes now is not the peer's. */

static xet_status_t
ngx_http_xet_fetch_came(ngx_http_xet_fetch_t *fetch)
{
    fetch->waited += ngx_http_xet_store_clock() - fetch->waits;
    fetch->waits = 0;
    fetch->step += fetch->len;

    if (fetch->step >= NGX_HTTP_XET_FETCH_STEP) {
        fetch->step = 0;
        fetch->waited = 0;
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_fetch_none(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    uint64_t  now;

    now = ngx_http_xet_store_clock();

    fetch->waited += now - fetch->waits;
    fetch->waits = now;

    if (fetch->waited < fetch->peer->timeout) {
        return XET_AGAIN;
    }

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "xet: peer fails at \"%s\": less than %uz bytes in %M ms",
                  fetch->url, (size_t) NGX_HTTP_XET_FETCH_STEP,
                  fetch->peer->timeout);

    return XET_STORE_FAILED;
}


void
ngx_http_xet_fetch_destroy(ngx_http_xet_fetch_t *fetch)
{
    if (fetch->easy == NULL && fetch->multi == NULL) {
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

    if (fetch->multi && fetch->easy) {
        (void) curl_multi_remove_handle(fetch->multi, fetch->easy);
    }

    curl_easy_cleanup(fetch->easy);
    curl_multi_cleanup(fetch->multi);
    curl_slist_free_all(fetch->headers);

    ngx_free(fetch);
}
