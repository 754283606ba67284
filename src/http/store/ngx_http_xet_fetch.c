
/*
 * Xorbs fetched from a peer node, by GET v1/xorbs of its API, one after another
 * over one connection: each a source of bytes for a scan
 * (ngx_http_xet_store_scan.c), which believes nothing of them.
 *
 *     create (event loop) -> begin (event loop) -> job, XET_AGAIN -> ...
 *                         -> job, XET_OK and no bytes -> end -> begin ...
 *
 * libcurl does the transfer, a piece a job, and nothing between two jobs: what
 * comes meanwhile stays in the socket, so a peer can't send faster than is
 * asked for, and the memory is that of one buffer of the scan and one of curl.
 * That needs HTTP/1.1: of HTTP/2 frames are read ahead.  What a peer says
 * before and behind the bytes, heads and trailers, is bounded.
 *
 * A job does not wait for the network at all, since readers wait for its
 * thread: where little came the caller makes a pause before the next job.
 *
 * What is asked is one address, that of the directive: no redirect, no proxy
 * of the environment, no other protocol.  Certificates are verified always.
 *
 * A peer that sends nothing, or next to nothing, is given up.  The time is
 * counted only while it is waited for, which is the pause behind a job that got
 * little: less than LITTLE bytes in a timeout are too few, and all of a xorb
 * has WAITS timeouts.  Names are looked up in a thread of libcurl's; it may be
 * left behind when the worker exits, as those that connect to PostgreSQL
 * (ngx_http_xet_pg_connect.c), for which the module is pinned: nothing is
 * fetched without such a connection.
 *
 * Owned by the job while that runs, else by the event loop, which only creates,
 * begins and destroys: all of libcurl is used in threads.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"

#include <curl/curl.h>


#define NGX_HTTP_XET_FETCH_BUFFER  (128 * 1024)  /* of libcurl */
#define NGX_HTTP_XET_FETCH_HEAD    (64 * 1024)
#define NGX_HTTP_XET_FETCH_ROUNDS  64          /* of curl, of a job */
#define NGX_HTTP_XET_FETCH_PAUSE   20          /* ms; one that counts */
#define NGX_HTTP_XET_FETCH_WAITS   10          /* timeouts of a xorb */
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

    CURLM                      *multi;         /* has the connection */
    CURL                       *easy;
    struct curl_slist          *headers;

    u_char                     *buf;           /* of the job */
    size_t                      size;
    size_t                      len;

    size_t                      head;          /* bytes besides the xorb's */
    const char                 *why;           /* a head is refused */
    ngx_err_t                   err;           /* of socket() */

    uint64_t                    paused;        /* since, by the clock; or 0 */
    uint64_t                    waited;        /* ms, for the step */
    uint64_t                    total;         /* ms, for the xorb */
    size_t                      step;          /* bytes of it */
    size_t                      burst;         /* bytes since a pause */

    unsigned                    bad:1;         /* the peer, not the xorb */

    char                        error[CURL_ERROR_SIZE];
};


static xet_status_t ngx_http_xet_fetch_open(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static CURLcode ngx_http_xet_fetch_options(ngx_http_xet_fetch_t *fetch);
static CURLcode ngx_http_xet_fetch_functions(ngx_http_xet_fetch_t *fetch);
static CURLcode ngx_http_xet_fetch_secrets(ngx_http_xet_fetch_t *fetch);
static curl_socket_t ngx_http_xet_fetch_socket(void *arg, curlsocktype purpose,
    struct curl_sockaddr *addr);
static size_t ngx_http_xet_fetch_head(char *data, size_t one, size_t len,
    void *arg);
static size_t ngx_http_xet_fetch_write(char *data, size_t one, size_t len,
    void *arg);
static xet_status_t ngx_http_xet_fetch_run(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_fetch_ended(ngx_http_xet_fetch_t *fetch,
    CURLcode code, ngx_log_t *log);
static xet_status_t ngx_http_xet_fetch_lacks(ngx_http_xet_fetch_t *fetch,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_fetch_answers(ngx_http_xet_fetch_t *fetch,
    long status, ngx_log_t *log);
static const char *ngx_http_xet_fetch_error(ngx_http_xet_fetch_t *fetch,
    CURLcode code);
static xet_status_t ngx_http_xet_fetch_came(ngx_http_xet_fetch_t *fetch,
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
    fetch->head = 0;
    fetch->why = NULL;
    fetch->err = 0;
    fetch->paused = 0;
    fetch->waited = 0;
    fetch->total = 0;
    fetch->step = 0;
    fetch->burst = 0;
    fetch->bad = 0;
    fetch->error[0] = '\0';
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


/* What the last xorb has left goes first; the connection may stay. */

static xet_status_t
ngx_http_xet_fetch_open(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    CURLcode  rc;

    ngx_http_xet_fetch_end_job(fetch);

    if (fetch->multi == NULL) {
        fetch->multi = curl_multi_init();
    }

    rc = CURLE_OK;

    if (fetch->easy == NULL) {
        fetch->easy = curl_easy_init();

        rc = fetch->easy ? ngx_http_xet_fetch_options(fetch)
                         : CURLE_OUT_OF_MEMORY;
    }

    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(fetch->easy, CURLOPT_URL, fetch->url);
    }

    if (rc != CURLE_OK) {

        /* none is used that has some of its options only */

        curl_easy_cleanup(fetch->easy);
        fetch->easy = NULL;

        curl_slist_free_all(fetch->headers);
        fetch->headers = NULL;
    }

    if (rc == CURLE_OUT_OF_MEMORY || fetch->multi == NULL) {
        return XET_NOMEM;
    }

    if (rc != CURLE_OK) {
        fetch->bad = 1;
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "xet: curl_easy_setopt() failed for \"%s\": %s",
                      fetch->url, curl_easy_strerror(rc));
        return XET_STORE_FAILED;
    }

    if (curl_multi_add_handle(fetch->multi, fetch->easy) != CURLM_OK) {
        return XET_NOMEM;
    }

    fetch->state = NGX_HTTP_XET_FETCH_RUNS;

    return XET_OK;
}


/* QUICK_EXIT: no close waits for a name that is being looked up. */

static CURLcode
ngx_http_xet_fetch_options(ngx_http_xet_fetch_t *fetch)
{
    CURL      *easy;
    CURLcode   rc;

    easy = fetch->easy;

    if ((rc = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https"))
        || (rc = curl_easy_setopt(easy, CURLOPT_PROXY, ""))
        || (rc = curl_easy_setopt(easy, CURLOPT_USERAGENT,
                                  "ngx_http_xet_module/" XET_VERSION))
        || (rc = curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, fetch->error))
        || (rc = curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                                  (long) CURL_HTTP_VERSION_1_1))
        || (rc = curl_easy_setopt(easy, CURLOPT_SSLVERSION,
                                  (long) CURL_SSLVERSION_TLSv1_2))
        || (rc = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                                  (long) fetch->peer->timeout))
        || (rc = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L))
        || (rc = curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L))
        || (rc = curl_easy_setopt(easy, CURLOPT_BUFFERSIZE,
                                  (long) NGX_HTTP_XET_FETCH_BUFFER)))
    {
        return rc;
    }

    rc = ngx_http_xet_fetch_functions(fetch);

    return rc ? rc : ngx_http_xet_fetch_secrets(fetch);
}


static CURLcode
ngx_http_xet_fetch_functions(ngx_http_xet_fetch_t *fetch)
{
    CURL      *easy;
    CURLcode   rc;

    easy = fetch->easy;

    if ((rc = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION,
                               ngx_http_xet_fetch_socket))
        || (rc = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, fetch))
        || (rc = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION,
                                  ngx_http_xet_fetch_head))
        || (rc = curl_easy_setopt(easy, CURLOPT_HEADERDATA, fetch))
        || (rc = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION,
                                  ngx_http_xet_fetch_write)))
    {
        return rc;
    }

    return curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
}


/* With certificates of its own no folder of the system is trusted besides. */

static CURLcode
ngx_http_xet_fetch_secrets(ngx_http_xet_fetch_t *fetch)
{
    CURLcode                    rc;
    const ngx_http_xet_peer_t  *peer;

    peer = fetch->peer;

    if (peer->trusted.len
        && ((rc = curl_easy_setopt(fetch->easy, CURLOPT_CAINFO,
                                   peer->trusted.data))
            || (rc = curl_easy_setopt(fetch->easy, CURLOPT_CAPATH, NULL))))
    {
        return rc;
    }

    if (peer->header.len == 0) {
        return CURLE_OK;
    }

    fetch->headers = curl_slist_append(NULL, (char *) peer->header.data);

    return fetch->headers
           ? curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, fetch->headers)
           : CURLE_OUT_OF_MEMORY;
}


/* As libcurl does it, which does not tell why it has failed. */

static curl_socket_t
ngx_http_xet_fetch_socket(void *arg, curlsocktype purpose,
    struct curl_sockaddr *addr)
{
    ngx_http_xet_fetch_t *fetch = arg;

    curl_socket_t  s;

    s = socket(addr->family, addr->socktype|SOCK_CLOEXEC, addr->protocol);

    fetch->err = (s == CURL_SOCKET_BAD) ? ngx_socket_errno : 0;

    return s;
}


/*
 * Lines of heads, those of 1xx too, and of trailers, of which libcurl would
 * keep any number.  And it would decode what it has not asked for.
 */

static size_t
ngx_http_xet_fetch_head(char *data, size_t one, size_t len, void *arg)
{
    ngx_http_xet_fetch_t *fetch = arg;

    u_char     *last;
    ngx_str_t   value;

    fetch->head += len;

    if (fetch->head > NGX_HTTP_XET_FETCH_HEAD) {
        fetch->why = "its head is too long";
        return 0;
    }

    value.len = sizeof("Transfer-Encoding:") - 1;

    if (len < value.len
        || ngx_strncasecmp((u_char *) data, (u_char *) "Transfer-Encoding:",
                           value.len)
           != 0)
    {
        return len;
    }

    last = (u_char *) data + len;
    value.data = (u_char *) data + value.len;

    while (value.data < last && *value.data <= ' ') {
        value.data++;
    }

    while (value.data < last && last[-1] <= ' ') {
        last--;
    }

    value.len = last - value.data;

    if (value.len != sizeof("chunked") - 1
        || ngx_strncasecmp(value.data, (u_char *) "chunked", value.len) != 0)
    {
        fetch->why = "its \"Transfer-Encoding\" is not \"chunked\"";
        return 0;
    }

    return len;
}


/*
 * The body of an error is not looked at: the one of a 404 is read, so that the
 * connection can be used again.  What is too much is kept by curl.
 */

static size_t
ngx_http_xet_fetch_write(char *data, size_t one, size_t len, void *arg)
{
    ngx_http_xet_fetch_t *fetch = arg;

    long  status;

    if (curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status)
        != CURLE_OK)
    {
        return 0;
    }

    if (status == NGX_HTTP_NOT_FOUND) {
        fetch->head += len;
        return (fetch->head > NGX_HTTP_XET_FETCH_HEAD) ? 0 : len;
    }

    if (status != NGX_HTTP_XET_FETCH_OK) {
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


/*
 * XET_OK: the transfer has ended well.  A round of curl is a record of TLS at
 * most, so it goes on while bytes come.
 */

static xet_status_t
ngx_http_xet_fetch_run(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    int         running, left;
    size_t      before;
    CURLMcode   rc;
    CURLMsg    *msg;
    ngx_uint_t  i;

    if (fetch->state == NGX_HTTP_XET_FETCH_PAUSED) {
        fetch->state = NGX_HTTP_XET_FETCH_RUNS;

        /* curl writes at once what it has kept */

        (void) curl_easy_pause(fetch->easy, CURLPAUSE_CONT);
    }

    for (i = 0; i < NGX_HTTP_XET_FETCH_ROUNDS; i++) {

        before = fetch->len;
        rc = curl_multi_perform(fetch->multi, &running);

        if (rc != CURLM_OK) {
            fetch->bad = 1;
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

        if (fetch->len == before || fetch->len >= NGX_HTTP_XET_FETCH_LITTLE
            || fetch->state == NGX_HTTP_XET_FETCH_PAUSED)
        {
            break;
        }
    }

    return XET_AGAIN;
}


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

    if (fetch->why == NULL && status == NGX_HTTP_NOT_FOUND) {
        return ngx_http_xet_fetch_lacks(fetch, log);
    }

    if (fetch->why == NULL && status && status != NGX_HTTP_XET_FETCH_OK) {
        return ngx_http_xet_fetch_answers(fetch, status, log);
    }

    ngx_log_error(NGX_LOG_ERR, log, fetch->err, "xet: peer fails at \"%s\": %s",
                  fetch->url, ngx_http_xet_fetch_error(fetch, code));

    if (ngx_http_xet_store_status(fetch->err) == XET_STORE_FILES) {
        return XET_STORE_FILES;
    }

    /* CURLE_OUT_OF_MEMORY, too: a peer gets it by a header that is too long */

    fetch->bad = 1;

    return XET_STORE_FAILED;
}


/*
 * A peer that has not the xorb is no error; that there is no API is one.  The
 * errors of an API are JSON, those of other servers are pages.
 */

static xet_status_t
ngx_http_xet_fetch_lacks(ngx_http_xet_fetch_t *fetch, ngx_log_t *log)
{
    char  *type;

    type = NULL;

    (void) curl_easy_getinfo(fetch->easy, CURLINFO_CONTENT_TYPE, &type);

    if (type && ngx_strncasecmp((u_char *) type, (u_char *) "application/json",
                                sizeof("application/json") - 1)
                == 0)
    {
        ngx_log_error(NGX_LOG_INFO, log, 0, "xet: peer has not \"%s\"",
                      fetch->url);

    } else {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "xet: peer answers 404, not as an API does, to \"%s\"",
                      fetch->url);
    }

    return XET_STORE_FAILED;
}


static xet_status_t
ngx_http_xet_fetch_answers(ngx_http_xet_fetch_t *fetch, long status,
    ngx_log_t *log)
{
    switch (status) {

    case NGX_HTTP_UNAUTHORIZED:
    case NGX_HTTP_FORBIDDEN:
    case NGX_HTTP_TOO_MANY_REQUESTS:
        fetch->bad = 1;
        break;

    default:
        fetch->bad = (status >= NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    ngx_log_error(NGX_LOG_ERR, log, 0, "xet: peer answers %l to \"%s\"",
                  status, fetch->url);

    return XET_STORE_FAILED;
}


/* In what curl says may be text of the peer. */

static const char *
ngx_http_xet_fetch_error(ngx_http_xet_fetch_t *fetch, CURLcode code)
{
    u_char  *p;

    if (fetch->why) {
        return fetch->why;
    }

    if (fetch->error[0] == '\0') {
        return curl_easy_strerror(code);
    }

    for (p = (u_char *) fetch->error; *p; p++) {
        if (*p < ' ' || *p > '~') {
            *p = '?';
        }
    }

    return fetch->error;
}


/*
 * Only a pause before which little came is the peer's, and of that no more than
 * it should take: a worker or a pool that is busy is not its fault, and nor is
 * the rate.
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
                      "xet: peer fails at \"%s\": less than %uz bytes in %M ms",
                      fetch->url, (size_t) NGX_HTTP_XET_FETCH_LITTLE,
                      fetch->peer->timeout);
        return XET_STORE_FAILED;
    }

    if (fetch->total / NGX_HTTP_XET_FETCH_WAITS >= fetch->peer->timeout) {
        fetch->bad = 1;
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "xet: peer fails at \"%s\": waited for %uL ms",
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
    if (fetch->multi && fetch->easy) {

        /* one that was not added is no error */

        (void) curl_multi_remove_handle(fetch->multi, fetch->easy);
    }
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

    ngx_http_xet_fetch_end_job(fetch);

    curl_easy_cleanup(fetch->easy);
    curl_multi_cleanup(fetch->multi);
    curl_slist_free_all(fetch->headers);

    ngx_free(fetch);
}
