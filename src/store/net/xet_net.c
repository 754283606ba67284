
/*
 * The HTTP client, based on libcurl.
 *
 * A request is in libcurl's multi handle from start to done.  The private
 * pointer of its easy handle is the request.  The easy handle exists until the
 * request is closed, because header values are read from it.  Connections
 * belong to the multi handle.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <sys/socket.h>

#include <curl/curl.h>

#include "xet_net.h"


#define XET_NET_HEAD_MAX  (64 * 1024)

/* Sets an option of easy, unless rc is already an error. */
#define xet_net_set(option, value)                                            \
    (rc = rc ? rc : curl_easy_setopt(easy, option, value))

#if (CURL_ERROR_SIZE > XET_NET_TEXT_MAX)
#error the room for a text of libcurl is too small
#endif


struct xet_net_s {
    CURLM           *multi;
    xet_net_conf_t   conf;
};


static CURLcode xet_net_options(xet_net_t *net, xet_net_request_t *r);
static CURLcode xet_net_method(xet_net_request_t *r);
static CURLcode xet_net_functions(xet_net_request_t *r);
static curl_socket_t xet_net_socket(void *arg, curlsocktype purpose,
    struct curl_sockaddr *addr);
static int xet_net_try(void *arg, char *to, char *from, int to_port,
    int from_port);
static size_t xet_net_read(char *buf, size_t one, size_t len, void *arg);
static int xet_net_seek(void *arg, curl_off_t offset, int origin);
static size_t xet_net_head(char *data, size_t one, size_t len, void *arg);
static size_t xet_net_write(char *data, size_t one, size_t len, void *arg);
static void xet_net_end(xet_net_request_t *r, CURLcode code);
static xet_net_rc_t xet_net_result(const xet_net_request_t *r, CURLcode code);
static void xet_net_why(xet_net_request_t *r, const char *why);


int
xet_net_init(void)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}


void
xet_net_exit(void)
{
    curl_global_cleanup();
}


xet_net_t *
xet_net_create(const xet_net_conf_t *conf)
{
    xet_net_t  *net;

    net = calloc(1, sizeof(xet_net_t));

    if (net == NULL) {
        return NULL;
    }

    net->conf = *conf;
    net->multi = curl_multi_init();

    if (net->multi == NULL
        || (conf->connections
            && curl_multi_setopt(net->multi, CURLMOPT_MAXCONNECTS,
                                 (long) conf->connections)
               != CURLM_OK))
    {
        xet_net_destroy(net);
        return NULL;
    }

    return net;
}


void
xet_net_destroy(xet_net_t *net)
{
    if (net) {
        (void) curl_multi_cleanup(net->multi);
        free(net);
    }
}


int
xet_net_header(xet_net_request_t *r, const char *line)
{
    struct curl_slist  *lines;

    lines = curl_slist_append(r->lines, line);

    if (lines) {
        r->lines = lines;
    }

    return lines != NULL;
}


xet_net_rc_t
xet_net_start(xet_net_t *net, xet_net_request_t *r)
{
    CURLcode  code;

    r->refused = NULL;
    r->err = 0;
    r->rc = XET_NET_OK;
    r->status = 0;
    r->length = -1;
    r->tries = 0;
    r->late = 0;
    r->why[0] = '\0';
    r->error[0] = '\0';
    r->sent = 0;
    r->head = 0;
    r->handle = curl_easy_init();

    code = r->handle ? xet_net_options(net, r) : CURLE_OUT_OF_MEMORY;

    if (code == CURLE_OK
        && curl_multi_add_handle(net->multi, r->handle) != CURLM_OK)
    {
        code = CURLE_OUT_OF_MEMORY;
    }

    if (code == CURLE_OK) {
        r->net = net;

    } else {
        r->rc = XET_NET_LOCAL;
        xet_net_why(r, curl_easy_strerror(code));
    }

    return r->rc;
}


/*
 * Sets the options of a request.  Requests use HTTP/1.1: concurrent transfers
 * are faster if each has a connection, and with HTTP/2 libcurl would read
 * frames despite a pause.  With QUICK_EXIT, a close does not wait for a DNS
 * lookup.  "Expect" is not sent, since a server that does not support it would
 * delay the request.
 */

static CURLcode
xet_net_options(xet_net_t *net, xet_net_request_t *r)
{
    CURL        *easy;
    CURLcode     rc;
    const char  *file;

    easy = r->handle;
    file = net->conf.certificates;

    rc = xet_net_header(r, "Expect:") ? CURLE_OK : CURLE_OUT_OF_MEMORY;

    xet_net_set(CURLOPT_PRIVATE, r);
    xet_net_set(CURLOPT_ERRORBUFFER, r->error);
    xet_net_set(CURLOPT_URL, r->url);
    xet_net_set(CURLOPT_HTTPHEADER, r->lines);
    xet_net_set(CURLOPT_USERAGENT, net->conf.agent);
    xet_net_set(CURLOPT_PROTOCOLS_STR, r->tls ? "https" : "http,https");
    xet_net_set(CURLOPT_PATH_AS_IS, 1L);
    xet_net_set(CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    xet_net_set(CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
    xet_net_set(CURLOPT_NOSIGNAL, 1L);
    xet_net_set(CURLOPT_QUICK_EXIT, 1L);
    xet_net_set(CURLOPT_TCP_KEEPALIVE, 1L);
    xet_net_set(CURLOPT_BUFFERSIZE, (long) net->conf.buffer);
    xet_net_set(CURLOPT_UPLOAD_BUFFERSIZE, (long) net->conf.buffer);
    xet_net_set(CURLOPT_TIMEOUT_MS, (long) r->timeout);
    xet_net_set(CURLOPT_CONNECTTIMEOUT_MS, (long) r->connect);
    xet_net_set(CURLOPT_LOW_SPEED_LIMIT, r->silence ? 1L : 0L);
    xet_net_set(CURLOPT_LOW_SPEED_TIME, (long) r->silence);

    if (r->direct || !net->conf.proxy) {
        xet_net_set(CURLOPT_PROXY, "");
    }

    if (r->netrc) {
        xet_net_set(CURLOPT_NETRC, (long) CURL_NETRC_OPTIONAL);
    }

    if (r->range && *r->range) {
        xet_net_set(CURLOPT_RANGE, r->range);
    }

    if (file && *file) {
        xet_net_set(CURLOPT_CAINFO, file);
        xet_net_set(CURLOPT_CAPATH, NULL);
    }

    rc = rc ? rc : xet_net_method(r);

    return rc ? rc : xet_net_functions(r);
}


/*
 * Sets the method.  A request with a body is sent as a libcurl upload, since
 * libcurl would add the "Content-Type" of an HTML form to any other POST.
 */

static CURLcode
xet_net_method(xet_net_request_t *r)
{
    CURL        *easy;
    CURLcode     rc;
    const char  *method;

    easy = r->handle;
    method = r->method;
    rc = CURLE_OK;

    if (method == NULL || strcmp(method, "GET") == 0) {
        return rc;
    }

    if (strcmp(method, "HEAD") == 0) {
        return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    }

    if (strcmp(method, "DELETE") != 0) {
        xet_net_set(CURLOPT_UPLOAD, 1L);
        xet_net_set(CURLOPT_INFILESIZE_LARGE, (curl_off_t) r->len);
    }

    if (strcmp(method, "PUT") != 0) {
        xet_net_set(CURLOPT_CUSTOMREQUEST, method);
    }

    return rc;
}


static CURLcode
xet_net_functions(xet_net_request_t *r)
{
    CURL      *easy;
    CURLcode   rc;

    easy = r->handle;
    rc = CURLE_OK;

    xet_net_set(CURLOPT_OPENSOCKETFUNCTION, xet_net_socket);
    xet_net_set(CURLOPT_OPENSOCKETDATA, r);
    xet_net_set(CURLOPT_PREREQFUNCTION, xet_net_try);
    xet_net_set(CURLOPT_PREREQDATA, r);
    xet_net_set(CURLOPT_READFUNCTION, xet_net_read);
    xet_net_set(CURLOPT_READDATA, r);
    xet_net_set(CURLOPT_SEEKFUNCTION, xet_net_seek);
    xet_net_set(CURLOPT_SEEKDATA, r);
    xet_net_set(CURLOPT_HEADERFUNCTION, xet_net_head);
    xet_net_set(CURLOPT_HEADERDATA, r);
    xet_net_set(CURLOPT_WRITEFUNCTION, xet_net_write);
    xet_net_set(CURLOPT_WRITEDATA, r);

    return rc;
}


/* Opens a socket like libcurl, but saves errno, which libcurl loses. */

static curl_socket_t
xet_net_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *addr)
{
    xet_net_request_t *r = arg;

    curl_socket_t  s;

    s = socket(addr->family, addr->socktype|SOCK_CLOEXEC, addr->protocol);

    r->err = (s == CURL_SOCKET_BAD) ? errno : 0;

    return s;
}


/*
 * Counts the tries: libcurl calls this before it sends the request.  If a kept
 * connection ends before any response, libcurl sends the request again by
 * itself, even though the server may have processed the first try.
 */

static int
xet_net_try(void *arg, char *to, char *from, int to_port, int from_port)
{
    xet_net_request_t *r = arg;

    r->tries++;

    return CURL_PREREQFUNC_OK;
}


static size_t
xet_net_read(char *buf, size_t one, size_t len, void *arg)
{
    xet_net_request_t *r = arg;

    ssize_t  n;

    len *= one;

    if (len > r->len - r->sent) {
        len = r->len - r->sent;
    }

    if (len == 0) {
        return 0;
    }

    if (r->data) {
        memcpy(buf, r->data + r->sent, len);
        r->sent += len;
        return len;
    }

    do {
        n = pread(r->fd, buf, len, (off_t) (r->offset + r->sent));
    } while (n == -1 && errno == EINTR);

    if (n <= 0) {
        r->err = n ? errno : EIO;
        r->refused = n ? "pread() failed" : "the file is shorter than it was";
        return CURL_READFUNC_ABORT;
    }

    r->sent += (size_t) n;

    return (size_t) n;
}


/* Called when libcurl sends the body again, because a connection was dead. */

static int
xet_net_seek(void *arg, curl_off_t offset, int origin)
{
    xet_net_request_t *r = arg;

    if (origin != SEEK_SET || offset < 0 || (uint64_t) offset > r->len) {
        return CURL_SEEKFUNC_FAIL;
    }

    r->sent = (size_t) offset;

    return CURL_SEEKFUNC_OK;
}


/*
 * Called for each header line, including those of 1xx responses, and for each
 * trailer line.  Limits the total size of these lines, since libcurl does not
 * limit their number.  Refuses transfer codings other than "chunked", which
 * libcurl would decode even though the request does not accept them.
 */

static size_t
xet_net_head(char *data, size_t one, size_t len, void *arg)
{
    xet_net_request_t *r = arg;

    char  *last;

    static const char    coding[] = "Transfer-Encoding:";
    static const char    chunked[] = "chunked";
    static const size_t  n = sizeof(chunked) - 1;

    len *= one;
    r->head += len;

    if (r->head > XET_NET_HEAD_MAX) {
        r->refused = "its head is too long";
        return 0;
    }

    if (len < sizeof(coding) - 1
        || strncasecmp(data, coding, sizeof(coding) - 1) != 0)
    {
        return len;
    }

    last = data + len;
    data += sizeof(coding) - 1;

    while (data < last && (unsigned char) *data <= ' ') {
        data++;
    }

    while (data < last && (unsigned char) last[-1] <= ' ') {
        last--;
    }

    if ((size_t) (last - data) != n || strncasecmp(data, chunked, n) != 0) {
        r->refused = "its \"Transfer-Encoding\" is not \"chunked\"";
        return 0;
    }

    return len;
}


static size_t
xet_net_write(char *data, size_t one, size_t len, void *arg)
{
    xet_net_request_t *r = arg;

    long        status;
    curl_off_t  length;

    len *= one;

    if (curl_easy_getinfo(r->handle, CURLINFO_RESPONSE_CODE, &status)
        != CURLE_OK
        || curl_easy_getinfo(r->handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
                             &length)
           != CURLE_OK)
    {
        return 0;
    }

    r->status = (int) status;
    r->length = length;

    switch (r->write ? r->write(r, data, len) : XET_NET_TAKEN) {

    case XET_NET_TAKEN:
        return len;

    case XET_NET_PAUSE:
        return CURL_WRITEFUNC_PAUSE;

    default:
        return 0;
    }
}


const char *
xet_net_step(xet_net_t *net, int wait, unsigned *n)
{
    int                 left;
    CURLMsg            *msg;
    unsigned            ended;
    CURLMcode           rc;
    xet_net_request_t  *r;

    ended = 0;

    if (wait) {
        (void) curl_multi_poll(net->multi, NULL, 0, wait, NULL);
    }

    rc = curl_multi_perform(net->multi, &left);

    while ((msg = curl_multi_info_read(net->multi, &left)) != NULL) {

        if (msg->msg != CURLMSG_DONE
            || curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE,
                                 (char **) &r)
               != CURLE_OK)
        {
            continue;
        }

        xet_net_end(r, msg->data.result);

        (void) curl_multi_remove_handle(net->multi, r->handle);
        r->net = NULL;
        ended++;

        r->done(r);
    }

    if (n) {
        *n = ended;
    }

    return (rc == CURLM_OK) ? NULL : curl_multi_strerror(rc);
}


void
xet_net_wakeup(xet_net_t *net)
{
    (void) curl_multi_wakeup(net->multi);
}


void
xet_net_resume(xet_net_request_t *r)
{
    (void) curl_easy_pause(r->handle, CURLPAUSE_CONT);
}


int
xet_net_keep(xet_net_request_t *r, const char *data, size_t len)
{
    char    *body;
    size_t   room;

    if (len >= r->room - r->body_len) {
        room = r->room ? r->room : 4096;

        while (room <= r->body_len + len) {
            room *= 2;
        }

        body = realloc(r->body, room);

        if (body == NULL) {
            r->err = ENOMEM;
            return 0;
        }

        r->body = body;
        r->room = room;
    }

    memcpy(r->body + r->body_len, data, len);
    r->body_len += len;
    r->body[r->body_len] = '\0';

    return 1;
}


const char *
xet_net_value(const xet_net_request_t *r, const char *name)
{
    struct curl_header  *header;

    if (r->handle == NULL
        || curl_easy_header(r->handle, name, 0, CURLH_HEADER, -1, &header)
           != CURLHE_OK
        || curl_easy_header(r->handle, name, header->amount - 1, CURLH_HEADER,
                            -1, &header)
           != CURLHE_OK)
    {
        return NULL;
    }

    return header->value;
}


const char *
xet_net_location(const xet_net_request_t *r)
{
    char  *url;

    url = NULL;

    (void) curl_easy_getinfo(r->handle, CURLINFO_REDIRECT_URL, &url);

    return url;
}


int64_t
xet_net_retry_after(const xet_net_request_t *r)
{
    curl_off_t  seconds;

    seconds = 0;

    (void) curl_easy_getinfo(r->handle, CURLINFO_RETRY_AFTER, &seconds);

    return seconds;
}


void
xet_net_close(xet_net_request_t *r)
{
    if (r->net) {
        (void) curl_multi_remove_handle(r->net->multi, r->handle);
        r->net = NULL;
    }

    curl_easy_cleanup(r->handle);
    curl_slist_free_all(r->lines);

    r->handle = NULL;
    r->lines = NULL;
}


static void
xet_net_end(xet_net_request_t *r, CURLcode code)
{
    CURL        *easy;
    long         status;
    curl_off_t   length, us, up, down;

    easy = r->handle;

    status = 0;
    length = -1;
    us = 0;
    up = 0;
    down = 0;

    (void) curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    (void) curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
                             &length);
    (void) curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &us);
    (void) curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &up);
    (void) curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &down);

    r->status = (int) status;
    r->length = length;
    r->took = (uint64_t) us / 1000;
    r->up = (uint64_t) up;
    r->down = (uint64_t) down;
    r->late = (code == CURLE_OPERATION_TIMEDOUT);
    r->rc = xet_net_result(r, code);

    if (r->rc != XET_NET_OK) {
        xet_net_why(r, curl_easy_strerror(code));
    }
}


static xet_net_rc_t
xet_net_result(const xet_net_request_t *r, CURLcode code)
{
    switch (code) {

    case CURLE_OK:
        return XET_NET_OK;

    case CURLE_COULDNT_CONNECT:
        if (r->err == EMFILE || r->err == ENFILE || r->err == ENOBUFS
            || r->err == ENOMEM)
        {
            return XET_NET_LOCAL;
        }

        return XET_NET_UNSENT;

    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CONNECT_ERROR:
        return XET_NET_UNSENT;

    case CURLE_RECV_ERROR:
        return r->status ? XET_NET_CUT : XET_NET_AWAY;

    case CURLE_GOT_NOTHING:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
        return XET_NET_AWAY;

    case CURLE_PARTIAL_FILE:
        return XET_NET_CUT;

    case CURLE_WRITE_ERROR:
        return r->err ? XET_NET_LOCAL : XET_NET_REFUSED;

    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return XET_NET_TRUST;

    case CURLE_OUT_OF_MEMORY:
    case CURLE_ABORTED_BY_CALLBACK:
        return XET_NET_LOCAL;

    default:
        return XET_NET_OTHER;
    }
}


/*
 * Writes the error message.  A libcurl message may contain text from the
 * server, so only printable ASCII is kept.
 */

static void
xet_net_why(xet_net_request_t *r, const char *why)
{
    char  *p;

    why = r->refused ? r->refused : r->error[0] ? r->error : why;

    if (r->err) {
        (void) snprintf(r->why, sizeof(r->why), "%.128s (%d: %.64s)", why,
                        r->err, strerror(r->err));

    } else {
        (void) snprintf(r->why, sizeof(r->why), "%.200s", why);
    }

    for (p = r->why; *p; p++) {
        if ((unsigned char) *p < ' ' || (unsigned char) *p > '~') {
            *p = '?';
        }
    }
}
