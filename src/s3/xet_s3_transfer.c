
/*
 * Requests and their answers, as bytes, by libcurl: one thread drives all the
 * connections of a client.
 *
 *     post (any thread) -> queue -> under way -> done (thread of the transfers)
 *
 * A transfer is its owner's before post and in done, and is not touched in
 * between.  As many are under way as there may be connections; others wait, in
 * order, until the deadline.  Connections are kept.
 *
 * The thread begins with the first transfer, and has all signals blocked.  It
 * ends with the client: what is under way then has a second to end well.
 *
 * What a store sends is bounded: its heads, and its bodies by their room.  One
 * that sends nothing for half of the timeout is given up, and so is one that
 * takes nothing.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include <sys/socket.h>

#include <curl/curl.h>

#include "xet_s3_base.h"


#define XET_S3_TRANSFER_BUFFER  (128 * 1024)   /* of libcurl */
#define XET_S3_TRANSFER_HEAD    (64 * 1024)
#define XET_S3_TRANSFER_GRACE   1000           /* ms, at the end */
#define XET_S3_TRANSFER_POLL    1000           /* ms */

#if (CURL_ERROR_SIZE > 256)
#error the room for a text of libcurl is too small
#endif


struct xet_s3_transfers_s {
    pthread_mutex_t       lock;        /* of what follows */
    pthread_t             thread;
    xet_s3_transfer_t    *first;       /* those that wait */
    xet_s3_transfer_t   **last;
    unsigned              started:1;
    unsigned              stop:1;      /* ends when nothing is under way */
    unsigned              closed:1;    /* nothing is taken any more */

    CURLM                *multi;       /* wakeup by any thread */

    xet_s3_transfer_t    *running;     /* of the thread alone */
    uint32_t              n;           /* of them; others may read it */

    xet_s3_told_pt        told;
    const char           *certificate;
    uint32_t              timeout;
    uint32_t              connections;
};


static int xet_s3_transfers_start(xet_s3_transfers_t *ts);
static void *xet_s3_transfers_run(void *data);
static int xet_s3_transfers_take(xet_s3_transfers_t *ts, uint64_t now,
    xet_s3_transfer_t **expired);
static void xet_s3_transfers_begin(xet_s3_transfers_t *ts,
    xet_s3_transfer_t *t, uint64_t now);
static unsigned xet_s3_transfers_ended(xet_s3_transfers_t *ts);
static void xet_s3_transfers_close(xet_s3_transfers_t *ts);
static CURLcode xet_s3_transfer_options(xet_s3_transfers_t *ts,
    xet_s3_transfer_t *t, uint64_t left);
static CURLcode xet_s3_transfer_times(xet_s3_transfers_t *ts,
    xet_s3_transfer_t *t, uint64_t left);
static CURLcode xet_s3_transfer_method(xet_s3_transfer_t *t);
static CURLcode xet_s3_transfer_headers(xet_s3_transfer_t *t);
static CURLcode xet_s3_transfer_functions(xet_s3_transfer_t *t);
static curl_socket_t xet_s3_transfer_socket(void *arg, curlsocktype purpose,
    struct curl_sockaddr *addr);
static int xet_s3_transfer_try(void *arg, char *to, char *from, int to_port,
    int from_port);
static size_t xet_s3_transfer_read(char *buf, size_t one, size_t len,
    void *arg);
static int xet_s3_transfer_seek(void *arg, curl_off_t offset, int origin);
static size_t xet_s3_transfer_head(char *data, size_t one, size_t len,
    void *arg);
static void xet_s3_transfer_line(xet_s3_transfer_t *t, const char *line,
    size_t len);
static int xet_s3_transfer_value(const char *line, size_t len,
    const char *name, char *dst, size_t size);
static size_t xet_s3_transfer_write(char *data, size_t one, size_t len,
    void *arg);
static void xet_s3_transfer_end(xet_s3_transfer_t *t, CURLcode code);
static void xet_s3_transfer_figures(xet_s3_transfer_t *t);
static xet_s3_transfer_rc_t xet_s3_transfer_result(xet_s3_transfer_t *t,
    CURLcode code);
static void xet_s3_transfer_fail(xet_s3_transfer_t *t,
    xet_s3_transfer_rc_t rc, const char *why);


xet_s3_transfers_t *
xet_s3_transfers_create(const xet_s3_conf_t *conf)
{
    xet_s3_transfers_t  *ts;

    ts = calloc(1, sizeof(xet_s3_transfers_t));
    if (ts == NULL) {
        return NULL;
    }

    ts->last = &ts->first;
    ts->told = conf->told;
    ts->certificate = conf->certificate;
    ts->timeout = conf->timeout;
    ts->connections = conf->connections;

    if (pthread_mutex_init(&ts->lock, NULL) != 0) {
        free(ts);
        return NULL;
    }

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        (void) pthread_mutex_destroy(&ts->lock);
        free(ts);
        return NULL;
    }

    return ts;
}


void
xet_s3_transfers_stop(xet_s3_transfers_t *ts)
{
    int  started;

    (void) pthread_mutex_lock(&ts->lock);

    started = ts->started && !ts->stop;
    ts->stop = 1;

    if (started) {
        (void) curl_multi_wakeup(ts->multi);
    }

    (void) pthread_mutex_unlock(&ts->lock);

    if (started) {
        (void) pthread_join(ts->thread, NULL);
    }
}


int
xet_s3_transfers_stopped(xet_s3_transfers_t *ts)
{
    int  stopped;

    (void) pthread_mutex_lock(&ts->lock);

    stopped = ts->stop;

    (void) pthread_mutex_unlock(&ts->lock);

    return stopped;
}


void
xet_s3_transfers_destroy(xet_s3_transfers_t *ts)
{
    if (ts == NULL) {
        return;
    }

    xet_s3_transfers_stop(ts);

    if (ts->multi) {
        (void) curl_multi_cleanup(ts->multi);
    }

    curl_global_cleanup();
    (void) pthread_mutex_destroy(&ts->lock);
    free(ts);
}


int
xet_s3_transfers_post(xet_s3_transfers_t *ts, xet_s3_transfer_t *t)
{
    int  ok;

    t->next = NULL;

    (void) pthread_mutex_lock(&ts->lock);

    ok = !ts->closed && (ts->started || xet_s3_transfers_start(ts));

    if (ok) {
        *ts->last = t;
        ts->last = &t->next;

        (void) curl_multi_wakeup(ts->multi);
    }

    (void) pthread_mutex_unlock(&ts->lock);

    return ok;
}


uint32_t
xet_s3_transfers_busy(xet_s3_transfers_t *ts)
{
    return __atomic_load_n(&ts->n, __ATOMIC_RELAXED);
}


/* With the lock. */

static int
xet_s3_transfers_start(xet_s3_transfers_t *ts)
{
    int       err;
    sigset_t  all, set;

    if (ts->stop) {
        return 0;
    }

    if (ts->multi == NULL) {
        ts->multi = curl_multi_init();

        if (ts->multi == NULL
            || curl_multi_setopt(ts->multi, CURLMOPT_MAXCONNECTS,
                                 (long) ts->connections)
               != CURLM_OK)
        {
            return 0;
        }
    }

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &set);

    err = pthread_create(&ts->thread, NULL, xet_s3_transfers_run, ts);

    (void) pthread_sigmask(SIG_SETMASK, &set, NULL);

    ts->started = (err == 0);

    return ts->started;
}


static void *
xet_s3_transfers_run(void *data)
{
    xet_s3_transfers_t *ts = data;

    int                 stop, left;
    uint64_t            now, end;
    xet_s3_transfer_t  *expired, *t;

    end = 0;

    for ( ;; ) {

        now = xet_s3_time_ms();
        expired = NULL;

        stop = xet_s3_transfers_take(ts, now, &expired);

        while (expired) {
            t = expired;
            expired = t->next;

            xet_s3_transfer_fail(t, XET_S3_TRANSFER_AWAY,
                                 "no connection was free in time");
            t->late = 1;
            xet_s3_told_transfer(ts->told, t);
            t->done(t);
        }

        if (stop) {
            end = end ? end : now + XET_S3_TRANSFER_GRACE;

            if (ts->n == 0 || now >= end) {
                break;
            }
        }

        (void) curl_multi_perform(ts->multi, &left);

        if (xet_s3_transfers_ended(ts) == 0) {
            (void) curl_multi_poll(ts->multi, NULL, 0,
                                   stop ? 20 : XET_S3_TRANSFER_POLL, NULL);
        }
    }

    xet_s3_transfers_close(ts);

    return NULL;
}


/* Begins those that there is room for; returns whether the end has come. */

static int
xet_s3_transfers_take(xet_s3_transfers_t *ts, uint64_t now,
    xet_s3_transfer_t **expired)
{
    int                  stop;
    xet_s3_transfer_t   *t, **link;

    (void) pthread_mutex_lock(&ts->lock);

    stop = ts->stop;
    link = &ts->first;

    while (*link) {
        t = *link;

        if (t->deadline <= now) {
            *link = t->next;
            t->next = *expired;
            *expired = t;
            continue;
        }

        if (ts->n < ts->connections) {
            *link = t->next;
            t->next = ts->running;
            ts->running = t;
            __atomic_add_fetch(&ts->n, 1, __ATOMIC_RELAXED);
            xet_s3_transfers_begin(ts, t, now);
            continue;
        }

        link = &t->next;
    }

    ts->last = link;

    (void) pthread_mutex_unlock(&ts->lock);

    return stop;
}


/* One that can't begin is among those that have ended, by its handle. */

static void
xet_s3_transfers_begin(xet_s3_transfers_t *ts, xet_s3_transfer_t *t,
    uint64_t now)
{
    CURLcode  code;

    t->handle = curl_easy_init();

    code = t->handle ? xet_s3_transfer_options(ts, t, t->deadline - now)
                     : CURLE_OUT_OF_MEMORY;

    if (code == CURLE_OK
        && curl_multi_add_handle(ts->multi, t->handle) == CURLM_OK)
    {
        return;
    }

    xet_s3_transfer_fail(t, XET_S3_TRANSFER_LOCAL,
                         code ? curl_easy_strerror(code)
                              : "curl_multi_add_handle() failed");

    curl_easy_cleanup(t->handle);
    t->handle = NULL;
}


/* Returns how many, since there is room for as many now. */

static unsigned
xet_s3_transfers_ended(xet_s3_transfers_t *ts)
{
    int                  left;
    unsigned             n;
    CURLMsg             *msg;
    xet_s3_transfer_t   *t, **link;

    while ((msg = curl_multi_info_read(ts->multi, &left)) != NULL) {

        if (msg->msg != CURLMSG_DONE) {
            continue;
        }

        for (t = ts->running; t && t->handle != msg->easy_handle; t = t->next)
        {
            /* void */
        }

        if (t) {
            xet_s3_transfer_end(t, msg->data.result);
            (void) curl_multi_remove_handle(ts->multi, t->handle);
            curl_easy_cleanup(t->handle);
            t->handle = NULL;
        }
    }

    n = 0;
    link = &ts->running;

    while (*link) {
        t = *link;

        if (t->handle) {
            link = &t->next;
            continue;
        }

        *link = t->next;
        __atomic_sub_fetch(&ts->n, 1, __ATOMIC_RELAXED);
        n++;

        curl_slist_free_all(t->lines);
        t->lines = NULL;

        xet_s3_told_transfer(ts->told, t);
        t->done(t);
    }

    return n;
}


/* What is left has failed; what is posted from now on is not taken. */

static void
xet_s3_transfers_close(xet_s3_transfers_t *ts)
{
    xet_s3_transfer_t  *t, *next, *queue;

    (void) pthread_mutex_lock(&ts->lock);

    ts->closed = 1;
    queue = ts->first;
    ts->first = NULL;
    ts->last = &ts->first;

    (void) pthread_mutex_unlock(&ts->lock);

    for (t = ts->running; t; t = t->next) {

        if (t->handle) {
            (void) curl_multi_remove_handle(ts->multi, t->handle);
            curl_easy_cleanup(t->handle);
            t->handle = NULL;
        }

        xet_s3_transfer_fail(t, XET_S3_TRANSFER_AWAY, "the client was closed");
    }

    (void) xet_s3_transfers_ended(ts);

    for (t = queue; t; t = next) {
        next = t->next;
        xet_s3_transfer_fail(t, XET_S3_TRANSFER_AWAY, "the client was closed");
        t->done(t);
    }
}


/* QUICK_EXIT: no close waits for a name that is being looked up. */

static CURLcode
xet_s3_transfer_options(xet_s3_transfers_t *ts, xet_s3_transfer_t *t,
    uint64_t left)
{
    CURL      *easy;
    CURLcode   rc;

    easy = t->handle;

    if ((rc = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https"))
        || (rc = curl_easy_setopt(easy, CURLOPT_PROXY, ""))
        || (rc = curl_easy_setopt(easy, CURLOPT_USERAGENT,
                                  "ngx_http_xet_module/" XET_VERSION))
        || (rc = curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error))
        || (rc = curl_easy_setopt(easy, CURLOPT_URL, t->url))
        || (rc = curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L))
        || (rc = curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                                  (long) CURL_HTTP_VERSION_1_1))
        || (rc = curl_easy_setopt(easy, CURLOPT_SSLVERSION,
                                  (long) CURL_SSLVERSION_TLSv1_2))
        || (rc = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L))
        || (rc = curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L))
        || (rc = curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L))
        || (rc = curl_easy_setopt(easy, CURLOPT_BUFFERSIZE,
                                  (long) XET_S3_TRANSFER_BUFFER))
        || (rc = curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE,
                                  (long) XET_S3_TRANSFER_BUFFER)))
    {
        return rc;
    }

    /* with certificates of its own no folder of the system is trusted */

    if (ts->certificate && *ts->certificate
        && ((rc = curl_easy_setopt(easy, CURLOPT_CAINFO, ts->certificate))
            || (rc = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL))))
    {
        return rc;
    }

    if ((rc = xet_s3_transfer_times(ts, t, left))
        || (rc = xet_s3_transfer_method(t))
        || (rc = xet_s3_transfer_headers(t)))
    {
        return rc;
    }

    return xet_s3_transfer_functions(t);
}


/* Half of the timeout, so that there is time for another try. */

static CURLcode
xet_s3_transfer_times(xet_s3_transfers_t *ts, xet_s3_transfer_t *t,
    uint64_t left)
{
    long      half;
    CURL     *easy;
    CURLcode  rc;

    easy = t->handle;
    half = (long) (ts->timeout / 2);

    if ((rc = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long) left))
        || (rc = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                                  half ? half : 1))
        || (rc = curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L)))
    {
        return rc;
    }

    return curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                            half < 1000 ? 1L : half / 1000);
}


/*
 * Other methods than GET and HEAD are uploads for libcurl, of which a POST has
 * no type of a form then; DELETE has no body.
 */

static CURLcode
xet_s3_transfer_method(xet_s3_transfer_t *t)
{
    CURL      *easy;
    CURLcode   rc;

    easy = t->handle;

    if (strcmp(t->method, "GET") == 0) {
        return curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }

    if (strcmp(t->method, "HEAD") == 0) {
        return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    }

    if (strcmp(t->method, "DELETE") == 0) {
        return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, t->method);
    }

    if ((rc = curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L))
        || (rc = curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
                                  (curl_off_t) t->len)))
    {
        return rc;
    }

    return (strcmp(t->method, "PUT") == 0)
           ? CURLE_OK
           : curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, t->method);
}


/* A store that knows no "Expect" would have us wait. */

static CURLcode
xet_s3_transfer_headers(xet_s3_transfer_t *t)
{
    size_t              i;
    struct curl_slist  *lines, *more;

    lines = curl_slist_append(NULL, "Expect:");

    for (i = 0; lines && i < t->nheaders; i++) {
        more = curl_slist_append(lines, t->headers[i]);

        if (more == NULL) {
            curl_slist_free_all(lines);
        }

        lines = more;
    }

    t->lines = lines;

    return lines ? curl_easy_setopt(t->handle, CURLOPT_HTTPHEADER, lines)
                 : CURLE_OUT_OF_MEMORY;
}


static CURLcode
xet_s3_transfer_functions(xet_s3_transfer_t *t)
{
    CURL      *easy;
    CURLcode   rc;

    easy = t->handle;

    if ((rc = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION,
                               xet_s3_transfer_socket))
        || (rc = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, t))
        || (rc = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION,
                                  xet_s3_transfer_try))
        || (rc = curl_easy_setopt(easy, CURLOPT_PREREQDATA, t))
        || (rc = curl_easy_setopt(easy, CURLOPT_READFUNCTION,
                                  xet_s3_transfer_read))
        || (rc = curl_easy_setopt(easy, CURLOPT_READDATA, t))
        || (rc = curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION,
                                  xet_s3_transfer_seek))
        || (rc = curl_easy_setopt(easy, CURLOPT_SEEKDATA, t))
        || (rc = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION,
                                  xet_s3_transfer_head))
        || (rc = curl_easy_setopt(easy, CURLOPT_HEADERDATA, t))
        || (rc = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION,
                                  xet_s3_transfer_write)))
    {
        return rc;
    }

    return curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
}


/* As libcurl does it, which does not tell why it has failed. */

static curl_socket_t
xet_s3_transfer_socket(void *arg, curlsocktype purpose,
    struct curl_sockaddr *addr)
{
    xet_s3_transfer_t *t = arg;

    curl_socket_t  s;

    s = socket(addr->family, addr->socktype|SOCK_CLOEXEC, addr->protocol);

    t->err = (s == CURL_SOCKET_BAD) ? errno : 0;

    return s;
}


/*
 * A request goes out.  libcurl sends it again by itself when a connection that
 * was kept ends before any answer, though the store may have done it.
 */

static int
xet_s3_transfer_try(void *arg, char *to, char *from, int to_port,
    int from_port)
{
    xet_s3_transfer_t *t = arg;

    t->tries++;

    return CURL_PREREQFUNC_OK;
}


static size_t
xet_s3_transfer_read(char *buf, size_t one, size_t len, void *arg)
{
    xet_s3_transfer_t *t = arg;

    ssize_t  n;

    if (len > t->len - t->sent) {
        len = t->len - t->sent;
    }

    if (t->data) {
        memcpy(buf, t->data + t->sent, len);
        t->sent += len;
        return len;
    }

    if (len == 0) {
        return 0;
    }

    do {
        n = pread(t->fd, buf, len, (off_t) (t->offset + t->sent));
    } while (n == -1 && errno == EINTR);

    if (n <= 0) {
        t->err = n ? errno : EIO;
        t->refused = n ? "pread() failed" : "the file is shorter than it was";
        return CURL_READFUNC_ABORT;
    }

    t->sent += (size_t) n;

    return (size_t) n;
}


/* To the begin again, when a connection that was kept is dead. */

static int
xet_s3_transfer_seek(void *arg, curl_off_t offset, int origin)
{
    xet_s3_transfer_t *t = arg;

    if (origin != SEEK_SET || offset < 0 || (uint64_t) offset > t->len) {
        return CURL_SEEKFUNC_FAIL;
    }

    t->sent = (size_t) offset;

    return CURL_SEEKFUNC_OK;
}


/*
 * Lines of heads, those of 1xx too, and of trailers, of which libcurl would
 * keep any number.
 */

static size_t
xet_s3_transfer_head(char *data, size_t one, size_t len, void *arg)
{
    xet_s3_transfer_t *t = arg;

    char  coding[16];

    t->head += len;

    if (t->head > XET_S3_TRANSFER_HEAD) {
        t->refused = "the head of the answer is too long";
        return 0;
    }

    /* libcurl would decode what it has not asked for */

    if (xet_s3_transfer_value(data, len, "Transfer-Encoding", coding,
                              sizeof(coding))
        && strcasecmp(coding, "chunked") != 0)
    {
        t->refused = "the answer has a \"Transfer-Encoding\" other than "
                     "\"chunked\"";
        return 0;
    }

    xet_s3_transfer_line(t, data, len);

    return len;
}


static void
xet_s3_transfer_line(xet_s3_transfer_t *t, const char *line, size_t len)
{
    char      text[24];
    size_t    i;
    uint64_t  seconds;

    struct {
        const char  *name;
        char        *dst;
        size_t       size;
    } known[] = {
        { "ETag", t->etag, sizeof(t->etag) },
        { "Date", t->date, sizeof(t->date) },
        { "Last-Modified", t->modified, sizeof(t->modified) },
        { "Content-Range", t->range, sizeof(t->range) },
        { "x-amz-bucket-region", t->region, sizeof(t->region) },
        { "x-amz-checksum-sha256", t->sum, sizeof(t->sum) }
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (xet_s3_transfer_value(line, len, known[i].name, known[i].dst,
                                  known[i].size))
        {
            return;
        }
    }

    if (xet_s3_transfer_value(line, len, "Retry-After", text, sizeof(text))
        && xet_get_decimal((uint8_t *) text, strlen(text), &seconds))
    {
        t->retry = (seconds > 3600) ? 3600 : (uint32_t) seconds;
    }
}


/* A value that is too long is none. */

static int
xet_s3_transfer_value(const char *line, size_t len, const char *name,
    char *dst, size_t size)
{
    size_t  n;

    n = strlen(name);

    if (len <= n || line[n] != ':' || strncasecmp(line, name, n) != 0) {
        return 0;
    }

    line += n + 1;
    len -= n + 1;

    while (len && (unsigned char) *line <= ' ') {
        line++;
        len--;
    }

    while (len && (unsigned char) line[len - 1] <= ' ') {
        len--;
    }

    if (len >= size) {
        len = 0;
    }

    memcpy(dst, line, len);
    dst[len] = '\0';

    return 1;
}


static size_t
xet_s3_transfer_write(char *data, size_t one, size_t len, void *arg)
{
    xet_s3_transfer_t *t = arg;

    long            status;
    size_t          room;
    unsigned char  *body;

    if (curl_easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &status)
        != CURLE_OK)
    {
        return 0;
    }

    if (t->buf && status / 100 == 2) {

        if (len > t->size - t->got) {
            t->refused = "the answer is longer than what was asked for";
            return 0;
        }

        memcpy(t->buf + t->got, data, len);
        t->got += len;

        return len;
    }

    if (len > t->most - t->body_len) {
        t->refused = "the answer is too long";
        return 0;
    }

    if (len > t->room - t->body_len) {
        room = t->room ? t->room : 4096;

        while (room < t->body_len + len) {
            room *= 2;
        }

        body = realloc(t->body, room);
        if (body == NULL) {
            t->err = ENOMEM;
            return 0;
        }

        t->body = body;
        t->room = room;
    }

    memcpy(t->body + t->body_len, data, len);
    t->body_len += len;

    return len;
}


static void
xet_s3_transfer_end(xet_s3_transfer_t *t, CURLcode code)
{
    long         status;
    curl_off_t   length;
    const char  *why;

    status = 0;
    length = 0;

    xet_s3_transfer_figures(t);

    (void) curl_easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &status);
    (void) curl_easy_getinfo(t->handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
                             &length);

    t->late = (code == CURLE_OPERATION_TIMEDOUT);
    t->status = (int) status;
    t->length = (length > 0) ? (uint64_t) length : 0;
    t->sized = (length >= 0);

    if (code == CURLE_OK) {
        t->rc = XET_S3_TRANSFER_OK;
        return;
    }

    why = t->refused ? t->refused
          : t->error[0] ? t->error : curl_easy_strerror(code);

    xet_s3_transfer_fail(t, xet_s3_transfer_result(t, code), why);

    if (t->err) {
        (void) snprintf(t->why, sizeof(t->why), "%.128s (%d: %.64s)", why,
                        t->err, strerror(t->err));
    }
}


static void
xet_s3_transfer_figures(xet_s3_transfer_t *t)
{
    curl_off_t  us, up, down;

    us = 0;
    up = 0;
    down = 0;

    (void) curl_easy_getinfo(t->handle, CURLINFO_TOTAL_TIME_T, &us);
    (void) curl_easy_getinfo(t->handle, CURLINFO_SIZE_UPLOAD_T, &up);
    (void) curl_easy_getinfo(t->handle, CURLINFO_SIZE_DOWNLOAD_T, &down);

    t->took = (uint64_t) us / 1000;
    t->up = (uint64_t) up;
    t->down = (uint64_t) down;
}


static xet_s3_transfer_rc_t
xet_s3_transfer_result(xet_s3_transfer_t *t, CURLcode code)
{
    switch (code) {

    case CURLE_OUT_OF_MEMORY:
    case CURLE_ABORTED_BY_CALLBACK:
        return XET_S3_TRANSFER_LOCAL;

    case CURLE_COULDNT_CONNECT:
        return (t->err == EMFILE || t->err == ENFILE || t->err == ENOBUFS
                || t->err == ENOMEM)
               ? XET_S3_TRANSFER_LOCAL : XET_S3_TRANSFER_AWAY;

    case CURLE_WRITE_ERROR:
        return t->err ? XET_S3_TRANSFER_LOCAL : XET_S3_TRANSFER_LONG;

    case CURLE_PARTIAL_FILE:
        return XET_S3_TRANSFER_CUT;

    case CURLE_RECV_ERROR:
        return t->status ? XET_S3_TRANSFER_CUT : XET_S3_TRANSFER_AWAY;

    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return XET_S3_TRANSFER_TRUST;

    default:
        return XET_S3_TRANSFER_AWAY;
    }
}


static void
xet_s3_transfer_fail(xet_s3_transfer_t *t, xet_s3_transfer_rc_t rc,
    const char *why)
{
    t->rc = rc;
    (void) snprintf(t->why, sizeof(t->why), "%.200s", why);
}
