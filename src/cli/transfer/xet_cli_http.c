
/*
 * HTTP client: credentials, redirections, retries, delays.
 *
 * A request is in one of three states: running (src/store/net), in the list of
 * requests that wait for their next attempt, or owned by the caller.
 */


#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <curl/curl.h>

#include "xet_cli_transfer.h"


#define XET_CLI_HTTP_RETRIES      5
#define XET_CLI_HTTP_BACKOFF      500  /* ms before the second attempt */
#define XET_CLI_HTTP_BACKOFF_MAX  60000
#define XET_CLI_HTTP_NOTE         1000  /* ms, shorter delays are silent */
#define XET_CLI_HTTP_NOTES        5000  /* ms between messages */

#define XET_CLI_REQUEST_CONNECT   30000  /* connect timeout, ms */
#define XET_CLI_REQUEST_SILENCE   300  /* timeout without data, s */
#define XET_CLI_REQUEST_BUFFER    (256 * 1024)
#define XET_CLI_REQUEST_PLACES    5    /* maximum number of redirections */


/* The client, which all requests of a command share. */

struct xet_cli_http_s {
    xet_net_t          *net;
    char               *endpoint;
    const char         *token_file;
    const char         *token;
    xet_cli_renew_pt    renew;         /* NULL: token is used */
    void               *renew_ctx;
    unsigned            insecure:1;    /* tokens may be sent without TLS */
    unsigned            retries;
    unsigned            active;        /* requests running or waiting */
    unsigned            seed;
    uint64_t            noted;         /* time of the last message */
    xet_cli_request_t  *waiting;
};


static void xet_cli_http_send(xet_cli_http_t *h, xet_cli_request_t *r);
static void xet_cli_http_ended(xet_net_request_t *net);
static int xet_cli_http_again(xet_cli_http_t *h, xet_cli_request_t *r);
static void xet_cli_http_note(xet_cli_http_t *h, const xet_cli_request_t *r,
    uint64_t wait);
static void xet_cli_http_finish(xet_cli_http_t *h, xet_cli_request_t *r);
static int xet_cli_request_start(xet_cli_request_t *r);
static int xet_cli_request_credentials(xet_cli_request_t *r);
static int xet_cli_request_authorize(xet_cli_request_t *r);
static int xet_cli_request_token(xet_cli_request_t *r, char *buffer,
    size_t size);
static CURLU *xet_cli_request_url(const xet_cli_request_t *r);
static CURLU *xet_cli_url_parse(const char *text);
static int xet_cli_request_user(const xet_cli_request_t *r);
static int xet_cli_request_protected(xet_cli_request_t *r, const char *what);
static int xet_cli_request_local(const char *host);
static int xet_cli_request_storage(xet_cli_request_t *r, CURLU *from, CURLU
    *to);
static int xet_cli_request_same(CURLU *one, CURLU *two, CURLUPart part);
static xet_net_taken_t xet_cli_request_write(xet_net_request_t *net,
    const char *data, size_t n);
static int xet_cli_request_redirect(xet_cli_request_t *r);
static void xet_cli_request_origin(xet_cli_request_t *r);


xet_cli_http_t *
xet_cli_http_create(const xet_cli_args_t *args, int *rc)
{
    const char  *endpoint;

    endpoint = xet_cli_http_endpoint(args);

    if (endpoint[strspn(endpoint, "/")] == '\0'
        && args->value[XET_CLI_OPT_URL] == NULL)
    {
        *rc = xet_cli_fail(XET_CLI_USAGE, "endpoint",
                           "set --endpoint or XET_ENDPOINT");
        return NULL;
    }

    return xet_cli_http_create_at(args, endpoint, rc);
}


xet_cli_http_t *
xet_cli_http_create_at(const xet_cli_args_t *args, const char *endpoint,
    int *rc)
{
    size_t           len;
    uint64_t         retries;
    xet_net_conf_t   conf;
    xet_cli_http_t  *h;

    *rc = xet_cli_args_number(args, XET_CLI_OPT_RETRIES, 0, 100,
                              XET_CLI_HTTP_RETRIES, &retries);

    if (*rc != XET_CLI_OK) {
        return NULL;
    }

    for (len = strlen(endpoint); len && endpoint[len - 1] == '/'; len--) {
        /* void */
    }

    h = calloc(1, sizeof(xet_cli_http_t));

    if (h == NULL || !xet_net_init()) {
        free(h);
        *rc = xet_cli_no_memory();
        return NULL;
    }

    memset(&conf, 0, sizeof(xet_net_conf_t));

    conf.agent = "xet";
    conf.certificates = args->value[XET_CLI_OPT_CACERT];
    conf.buffer = XET_CLI_REQUEST_BUFFER;
    conf.proxy = 1;

    h->net = xet_net_create(&conf);
    h->endpoint = strndup(endpoint, len);

    if (h->net == NULL || h->endpoint == NULL) {
        xet_cli_http_destroy(h);
        *rc = xet_cli_no_memory();
        return NULL;
    }

    h->token_file = args->value[XET_CLI_OPT_TOKEN_FILE];
    h->token = getenv("XET_TOKEN");
    h->insecure = (args->value[XET_CLI_OPT_INSECURE_TOKEN] != NULL);
    h->retries = (unsigned) retries;
    h->seed = (unsigned) getpid();

    return h;
}


void
xet_cli_http_renew(xet_cli_http_t *h, xet_cli_renew_pt renew, void *ctx)
{
    h->token_file = NULL;
    h->token = NULL;
    h->renew = renew;
    h->renew_ctx = ctx;
}


void
xet_cli_http_token(xet_cli_http_t *h, const char *token)
{
    h->token = token;
}


const char *
xet_cli_http_endpoint(const xet_cli_args_t *args)
{
    const char  *endpoint = args->value[XET_CLI_OPT_ENDPOINT];

    if (endpoint == NULL) {
        endpoint = getenv("XET_ENDPOINT");
    }

    return endpoint ? endpoint : "";
}


int
xet_cli_http_same(const char *one, const char *two)
{
    int     same;
    CURLU  *a, *b;

    a = xet_cli_url_parse(one);
    b = xet_cli_url_parse(two);

    same = a && b && xet_cli_request_same(a, b, CURLUPART_SCHEME)
           && xet_cli_request_same(a, b, CURLUPART_HOST)
           && xet_cli_request_same(a, b, CURLUPART_PORT);

    curl_url_cleanup(a);
    curl_url_cleanup(b);

    return same;
}


void
xet_cli_http_destroy(xet_cli_http_t *h)
{
    if (h) {
        xet_net_destroy(h->net);
        xet_net_exit();

        free(h->endpoint);
        free(h);
    }
}


char *
xet_cli_http_url(xet_cli_http_t *h, const char *fmt, ...)
{
    char     *path, *url;
    va_list   ap;

    va_start(ap, fmt);

    if (vasprintf(&path, fmt, ap) < 0) {
        path = NULL;
    }

    va_end(ap);

    if (path == NULL || asprintf(&url, "%s%s", h->endpoint, path) < 0) {
        url = NULL;
    }

    free(path);

    return url;
}


void
xet_cli_http_start(xet_cli_http_t *h, xet_cli_request_t *r)
{
    free(r->data);

    r->data = NULL;
    r->http = h;
    r->attempts = 0;
    h->active++;

    xet_cli_request_origin(r);

    xet_cli_http_send(h, r);
}


/*
 * Starts an attempt.  If this fails, the request is put on the list of waiting
 * requests and ends in xet_cli_http_step(): this function never calls a done
 * handler.
 */

static void
xet_cli_http_send(xet_cli_http_t *h, xet_cli_request_t *r)
{
    r->status = 0;
    r->refused = 0;
    r->large = 0;
    r->len = 0;
    r->came = 0;
    r->length = -1;
    r->error[0] = '\0';

    if (r->restart) {
        r->restart(r);
    }

    if (xet_cli_request_start(r) != XET_CLI_OK) {

        if (r->error[0] == '\0') {
            strcpy(r->error, "out of memory");
        }

        r->attempts = h->retries + 1;
        r->due = 0;
        r->next = h->waiting;
        h->waiting = r;

        return;
    }

    r->attempts++;
}


int
xet_cli_http_step(xet_cli_http_t *h, int wait)
{
    uint64_t             now;
    xet_cli_request_t   *r, **link;

    now = xet_cli_now();

    for (link = &h->waiting; (r = *link) != NULL; /* void */ ) {

        if (r->due > now) {

            if (r->due - now < (uint64_t) wait) {
                wait = (int) (r->due - now);
            }

            link = &r->next;
            continue;
        }

        *link = r->next;
        wait = 0;

        if (r->attempts > h->retries) {
            xet_cli_http_finish(h, r);

        } else {
            xet_cli_http_send(h, r);
        }

        link = &h->waiting;
    }

    (void) xet_net_step(h->net, h->active ? wait : 0, NULL);

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : XET_CLI_OK;
}


static void
xet_cli_http_ended(xet_net_request_t *net)
{
    xet_cli_request_t *r = net->owner;

    xet_cli_http_t  *h;

    h = r->http;

    r->status = net->status;
    r->length = net->length;

    if (net->rc == XET_NET_OK && xet_cli_request_redirect(r)) {
        r->attempts--;
        xet_cli_http_send(h, r);
        return;
    }

    if (xet_cli_http_again(h, r)) {
        xet_cli_request_origin(r);

        r->next = h->waiting;
        h->waiting = r;
        return;
    }

    if (r->large) {

        /* replaces the error of libcurl, "write error", which is misleading */

        strcpy(r->error, "the response is too long");

    } else if (net->rc != XET_NET_OK && !r->refused) {
        r->status = 0;
        strcpy(r->error, net->why);
    }

    xet_cli_http_finish(h, r);
}


static int
xet_cli_http_again(xet_cli_http_t *h, xet_cli_request_t *r)
{
    int64_t   after;
    unsigned  shift;
    uint64_t  wait;

    if (r->refused || r->attempts > h->retries) {
        return 0;
    }

    after = 0;

    switch (r->net.rc) {

    case XET_NET_OK:
        if (r->status != 408 && r->status != 429
            && (r->status < 500 || r->status == 501 || r->status == 507))
        {
            return 0;
        }

        after = xet_net_retry_after(&r->net);
        break;

    case XET_NET_UNSENT:
    case XET_NET_AWAY:
    case XET_NET_CUT:
        break;

    default:
        return 0;
    }

    shift = (r->attempts < 8) ? r->attempts - 1 : 7;
    wait = (uint64_t) XET_CLI_HTTP_BACKOFF << shift;

    /* random, so that requests that failed together do not retry together */

    wait = wait * 3 / 4 + (uint64_t) rand_r(&h->seed) % (wait / 2);

    if (after > 0) {
        wait = (after > XET_CLI_HTTP_BACKOFF_MAX / 1000)
               ? XET_CLI_HTTP_BACKOFF_MAX : (uint64_t) after * 1000;
    }

    r->due = xet_cli_now() + wait;

    xet_cli_http_note(h, r, wait);

    /* the attempt may have succeeded, although there is no response */

    r->lost = r->lost || (r->net.rc == XET_NET_OK
                          ? r->status >= 500 : r->net.rc != XET_NET_UNSENT);

    return 1;
}


/* Prints why nothing happens; many requests may wait for the same reason. */

static void
xet_cli_http_note(xet_cli_http_t *h, const xet_cli_request_t *r, uint64_t wait)
{
    uint64_t  now;

    now = xet_cli_now();

    if ((wait < XET_CLI_HTTP_NOTE && r->attempts < 2)
        || (h->noted && now - h->noted < XET_CLI_HTTP_NOTES))
    {
        return;
    }

    h->noted = now;

    xet_cli_progress_clear();

    if (r->net.rc == XET_NET_OK) {
        fprintf(stderr, "xet: server: %ld, retrying in %" PRIu64 " s\n",
                r->status, (wait + 999) / 1000);

    } else {
        fprintf(stderr, "xet: %s, retrying in %" PRIu64 " s\n", r->net.why,
                (wait + 999) / 1000);
    }
}


static void
xet_cli_http_finish(xet_cli_http_t *h, xet_cli_request_t *r)
{
    h->active--;

    r->http = NULL;
    r->data = r->net.body;
    r->len = r->net.body_len;
    r->net.body = NULL;
    r->net.room = 0;

    if (r->done) {
        r->done(r);
    }
}


int
xet_cli_http_call(xet_cli_http_t *h, xet_cli_request_t *r)
{
    int  rc;

    xet_cli_http_start(h, r);

    do {
        rc = xet_cli_http_step(h, 200);
    } while (rc == XET_CLI_OK && r->http != NULL);

    return rc;
}


int
xet_cli_http_ask(xet_cli_http_t *h, xet_cli_request_t *r, const char *method,
    char *url)
{
    memset(r, 0, sizeof(*r));

    r->method = method;
    r->url = url;
    r->api = 1;

    return xet_cli_http_call(h, r);
}


const char *
xet_cli_http_header(const xet_cli_request_t *r, const char *name)
{
    return xet_net_value(&r->net, name);
}


int
xet_cli_http_operands(const xet_cli_args_t *args, xet_cli_operand_pt handler)
{
    int              i, rc;
    xet_cli_http_t  *h;

    h = xet_cli_http_create(args, &rc);

    if (h == NULL) {
        return rc;
    }

    for (i = 0; i < args->count && rc <= XET_CLI_FAULT; i++) {
        rc = xet_cli_worse(rc, handler(args, h, args->operands[i]));
    }

    xet_cli_http_destroy(h);

    return rc;
}


void
xet_cli_http_free(xet_cli_request_t *r)
{
    xet_cli_request_t  **link;

    if (r->http) {

        /* the request has not ended: cancel it */

        for (link = &r->http->waiting; *link; link = &(*link)->next) {

            if (*link == r) {
                *link = r->next;
                break;
            }
        }

        r->http->active--;
    }

    xet_net_close(&r->net);

    free(r->net.body);
    free(r->storage);
    free(r->data);
    free(r->url);

    memset(r, 0, sizeof(xet_cli_request_t));
}


int
xet_cli_http_passing(const xet_cli_request_t *r)
{
    return !r->refused
           && (r->status == 0 || r->status == 401 || r->status == 408
               || r->status == 429
               || (r->status >= 500 && r->status != 501));
}


/*
 * If libcurl cannot parse the URL, everything before an @ may be a password
 * and is left out.
 */

const char *
xet_cli_http_text(const char *url, char text[XET_CLI_HTTP_TEXT])
{
    char        *p;
    size_t       len;
    CURLU       *parts;
    const char  *host, *end, *at;

    host = strstr(url, "://");
    host = host ? host + 3 : url;
    end = host + strlen(host);

    parts = curl_url();

    if (parts && curl_url_set(parts, CURLUPART_URL, url,
                              CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME)
                 == CURLUE_OK)
    {
        end = host + strcspn(host, "/?#");
    }

    curl_url_cleanup(parts);

    at = memrchr(host, '@', (size_t) (end - host));
    len = (size_t) (host - url);

    if (len > XET_CLI_HTTP_TEXT / 2) {
        len = 0;
    }

    p = stpncpy(text, url, len);

    host = at ? at + 1 : host;
    snprintf(p, XET_CLI_HTTP_TEXT - len, "%.*s",
             (int) strcspn(host, "?#"), host);

    return text;
}


int
xet_cli_http_gone(const xet_cli_request_t *r, const char *code)
{
    int          gone;
    json_t      *answer;
    const char  *value;

    if (!r->lost || r->status != 404 || r->refused) {
        return 0;
    }

    value = xet_cli_http_header(r, "X-Error-Code");

    if (value) {
        return strcmp(value, code) == 0;
    }

    answer = r->data ? json_loadb(r->data, r->len, 0, NULL) : NULL;
    value = json_string_value(json_object_get(json_object_get(answer, "error"),
                                              "code"));
    gone = (value && strcmp(value, code) == 0);

    json_decref(answer);

    return gone;
}


/*
 * Prints the error code and message.  The API sends both in a JSON object; a
 * Hub sends both in headers, or only the message, as a JSON string.
 */

int
xet_cli_http_fail(const xet_cli_request_t *r)
{
    int          rc;
    char         storage[XET_CLI_HTTP_TEXT];
    json_t      *answer, *error;
    const char  *code, *text, *url;

    url = r->url ? xet_cli_http_text(r->url, storage) : "request";

    if (r->status == 0 || r->refused) {
        return xet_cli_failf(XET_CLI_NETWORK, "server", "%s: %s", url,
                             r->error);
    }

    answer = r->data ? json_loadb(r->data, r->len, 0, NULL) : NULL;
    error = json_object_get(answer, "error");
    code = json_string_value(json_object_get(error, "code"));
    text = json_string_value(json_object_get(error, "message"));

    if (text == NULL) {
        code = xet_cli_http_header(r, "X-Error-Code");
        text = xet_cli_http_header(r, "X-Error-Message");
        text = text ? text : json_string_value(error);
    }

    rc = (r->status == 404 || r->status == 416) ? XET_CLI_FAULT
                                                : XET_CLI_NETWORK;

    rc = xet_cli_failf(rc, "server", "%s: %ld%s%s%s%s", url, r->status,
                       code ? " " : "", code ? code : "",
                       text ? ": " : "", text ? text : "");

    json_decref(answer);

    return rc;
}


/*
 * Passes an attempt to libcurl.  Returns XET_CLI_OK, or XET_CLI_ERROR with the
 * reason in r->error.  An empty r->error means out of memory.
 */

static int
xet_cli_request_start(xet_cli_request_t *r)
{
    xet_net_request_t  *net = &r->net;

    xet_net_close(net);

    if (r->url == NULL) {
        return XET_CLI_ERROR;
    }

    net->method = r->body ? "POST" : r->method;
    net->url = r->storage ? r->storage : r->url;
    net->range = r->range;
    net->data = r->body;
    net->len = r->body_len;
    net->connect = XET_CLI_REQUEST_CONNECT;
    net->silence = r->patient ? 0 : XET_CLI_REQUEST_SILENCE;
    net->direct = 0;
    net->netrc = 0;
    net->write = xet_cli_request_write;
    net->done = xet_cli_http_ended;
    net->owner = r;
    net->body_len = 0;

    if ((r->body
         && !xet_net_header(net, r->type ? r->type : "Content-Type: "
                                           "application/octet-stream"))
        || (!r->foreign && xet_cli_request_credentials(r) != XET_CLI_OK))
    {
        return XET_CLI_ERROR;
    }

    net->tls = r->tls;

    if (xet_net_start(r->http->net, net) == XET_NET_OK) {
        return XET_CLI_OK;
    }

    strcpy(r->error, net->why);

    return XET_CLI_ERROR;
}


static int
xet_cli_request_credentials(xet_cli_request_t *r)
{
    if ((r->netrc || xet_cli_request_user(r))
        && xet_cli_request_protected(r, "a password") != XET_CLI_OK)
    {
        return XET_CLI_ERROR;
    }

    r->net.netrc = r->netrc;

    return r->api ? xet_cli_request_authorize(r) : XET_CLI_OK;
}


/*
 * Adds the header with the token, if there is one.  A Hub token may have
 * 64,000 characters.
 */

static int
xet_cli_request_authorize(xet_cli_request_t *r)
{
    int          rc;
    char        *line;
    size_t       len;
    const char  *token;

    static const char  prefix[] = "Authorization: Bearer ";
    const size_t       room = 65536;

    token = r->http->renew ? r->http->renew(r->http->renew_ctx)
                           : r->http->token;

    if (r->http->renew && token == NULL) {
        snprintf(r->error, sizeof(r->error), "no token is available");
        return XET_CLI_ERROR;
    }

    line = malloc(sizeof(prefix) + room);

    if (line == NULL) {
        return XET_CLI_ERROR;
    }

    strcpy(line, prefix);
    len = sizeof(prefix) - 1;

    if (r->http->token_file) {
        rc = xet_cli_request_token(r, line + len, room);

        if (rc < 0) {
            free(line);
            return XET_CLI_ERROR;
        }

        len += (size_t) rc;

    } else if (token && strlen(token) < room) {
        strcpy(line + len, token);
        len += strlen(token);
    }

    while (len >= sizeof(prefix) && (line[len - 1] == '\n'
           || line[len - 1] == '\r' || line[len - 1] == ' '))
    {
        len--;
    }

    line[len] = '\0';

    if (len < sizeof(prefix)) {
        rc = XET_CLI_OK;

    } else if (!xet_cli_request_token_ok(line + sizeof(prefix) - 1)) {
        snprintf(r->error, sizeof(r->error),
                 "the token has invalid characters");
        rc = XET_CLI_ERROR;

    } else {
        rc = xet_cli_request_protected(r, "a token");

        if (rc == XET_CLI_OK && !xet_net_header(&r->net, line)) {
            rc = XET_CLI_ERROR;
        }
    }

    explicit_bzero(line, sizeof(prefix) + room);
    free(line);

    return rc;
}


/* Reads the token file.  Returns the number of bytes, or -1 with r->error. */

static int
xet_cli_request_token(xet_cli_request_t *r, char *buffer, size_t size)
{
    int      fd;
    ssize_t  n;

    fd = open(r->http->token_file, O_RDONLY | O_CLOEXEC);
    n = (fd < 0) ? -1 : read(fd, buffer, size);

    if (n < 0) {
        snprintf(r->error, sizeof(r->error), "token file %.150s: %s",
                 r->http->token_file, strerror(errno));
    }

    if (fd >= 0) {
        close(fd);
    }

    return (int) n;
}


int
xet_cli_request_token_ok(const char *token)
{
    for ( /* void */ ; *token; token++) {
        if (*token <= ' ' || *token > '~') {
            return 0;
        }
    }

    return 1;
}


/*
 * Parses the URL of a request with libcurl, as the transfer does.  Returns
 * NULL if the URL is invalid.
 */

static CURLU *
xet_cli_request_url(const xet_cli_request_t *r)
{
    return xet_cli_url_parse(r->storage ? r->storage : r->url);
}


static CURLU *
xet_cli_url_parse(const char *text)
{
    CURLU  *url;

    url = curl_url();

    if (url
        && curl_url_set(url, CURLUPART_URL, text, CURLU_GUESS_SCHEME)
           == CURLUE_OK)
    {
        return url;
    }

    curl_url_cleanup(url);

    return NULL;
}


/*
 * Returns whether the URL has a user or a password.  Returns 0 if the URL is
 * invalid.
 */

static int
xet_cli_request_user(const xet_cli_request_t *r)
{
    int     rc;
    char   *text;
    CURLU  *url;

    text = NULL;
    url = xet_cli_request_url(r);

    rc = url
         && (curl_url_get(url, CURLUPART_USER, &text, 0) == CURLUE_OK
             || curl_url_get(url, CURLUPART_PASSWORD, &text, 0) == CURLUE_OK);

    curl_free(text);
    curl_url_cleanup(url);

    return rc;
}


/*
 * Returns XET_CLI_OK if the credentials of a request may be sent: by TLS, to
 * this machine, or anywhere with --insecure-token.  Otherwise returns
 * XET_CLI_ERROR with r->error.  A request to this machine must not use a
 * proxy.  "localhost" is always this machine: the name is not looked up.
 */

static int
xet_cli_request_protected(xet_cli_request_t *r, const char *what)
{
    int     rc;
    char   *scheme, *host;
    CURLU  *url;

    rc = XET_CLI_OK;
    scheme = NULL;
    host = NULL;
    url = xet_cli_request_url(r);

    if (url == NULL
        || curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK
        || curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
    {
        rc = XET_CLI_ERROR;
        snprintf(r->error, sizeof(r->error), "invalid URL");

    } else if (strcmp(scheme, "https") == 0) {
        r->tls = 1;

    } else if (xet_cli_request_local(host)) {
        r->net.direct = 1;

    } else if (!r->http->insecure) {
        rc = XET_CLI_ERROR;
        snprintf(r->error, sizeof(r->error),
                 "refusing to send %s without TLS; --insecure-token allows it",
                 what);
    }

    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(url);

    return rc;
}


static int
xet_cli_request_local(const char *host)
{
    struct in_addr  addr;

    if (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0) {
        return 1;
    }

    return inet_pton(AF_INET, host, &addr) == 1
           && (ntohl(addr.s_addr) >> 24) == 127;
}


/* Forgets redirections, so that the next attempt is sent to r->url. */

static void
xet_cli_request_origin(xet_cli_request_t *r)
{
    free(r->storage);

    r->storage = NULL;
    r->redirects = 0;
    r->foreign = 0;
    r->tls = 0;
}


/*
 * Returns whether the response was a redirection; if so, the request must be
 * sent again, to r->storage.  Only a GET is redirected.
 */

static int
xet_cli_request_redirect(xet_cli_request_t *r)
{
    int          rc;
    CURLU       *from, *to;
    const char  *storage;

    storage = xet_net_location(&r->net);

    if (r->method || r->body || r->status / 100 != 3
        || r->redirects == XET_CLI_REQUEST_PLACES || storage == NULL)
    {
        return 0;
    }

    from = xet_cli_request_url(r);
    to = curl_url();

    rc = from && to
         && curl_url_set(to, CURLUPART_URL, storage, CURLU_NON_SUPPORT_SCHEME)
            == CURLUE_OK
         && xet_cli_request_storage(r, from, to);

    curl_url_cleanup(from);
    curl_url_cleanup(to);

    return rc;
}


/*
 * Sets r->storage to the URL of a redirection.  User and password of the
 * request are kept only for the same origin.  libcurl returns and accepts both
 * in encoded form.
 */

static int
xet_cli_request_storage(xet_cli_request_t *r, CURLU *from, CURLU *to)
{
    char  *text;

    if (!xet_cli_request_same(from, to, CURLUPART_SCHEME)
        || !xet_cli_request_same(from, to, CURLUPART_HOST)
        || !xet_cli_request_same(from, to, CURLUPART_PORT))
    {
        r->foreign = 1;

    } else if (curl_url_get(from, CURLUPART_USER, &text, 0) == CURLUE_OK) {
        (void) curl_url_set(to, CURLUPART_USER, text, 0);
        curl_free(text);

        if (curl_url_get(from, CURLUPART_PASSWORD, &text, 0) == CURLUE_OK) {
            (void) curl_url_set(to, CURLUPART_PASSWORD, text, 0);
            curl_free(text);
        }
    }

    if (curl_url_get(to, CURLUPART_URL, &text, 0) != CURLUE_OK) {
        return 0;
    }

    free(r->storage);
    r->storage = strdup(text);
    curl_free(text);

    r->redirects++;

    return r->storage != NULL;
}


static int
xet_cli_request_same(CURLU *one, CURLU *two, CURLUPart part)
{
    int    same;
    char  *a, *b;

    a = NULL;
    b = NULL;

    same = curl_url_get(one, part, &a, CURLU_DEFAULT_PORT) == CURLUE_OK
           && curl_url_get(two, part, &b, CURLU_DEFAULT_PORT) == CURLUE_OK
           && strcasecmp(a, b) == 0;

    curl_free(a);
    curl_free(b);

    return same;
}


static xet_net_taken_t
xet_cli_request_write(xet_net_request_t *net, const char *data, size_t n)
{
    xet_cli_request_t *r = net->owner;

    int     kind;
    size_t  max, keep;

    r->status = net->status;
    r->length = net->length;

    kind = net->status / 100;

    if (r->write && kind == 2) {
        r->refused = (r->write(r, (const uint8_t *) data, n) != 0);

        return r->refused ? XET_NET_STOP : XET_NET_TAKEN;
    }

    if (kind == 3) {
        return XET_NET_TAKEN;
    }

    max = (r->max && kind == 2) ? r->max : XET_CLI_REQUEST_MAX;

    if (n > max - r->came) {
        r->refused = 1;
        r->large = 1;
        return XET_NET_STOP;
    }

    r->came += n;

    keep = n;

    if (kind != 2 && keep > XET_CLI_REQUEST_SHORT - net->body_len) {
        keep = XET_CLI_REQUEST_SHORT - net->body_len;
    }

    return xet_net_keep(net, data, keep) ? XET_NET_TAKEN : XET_NET_STOP;
}
