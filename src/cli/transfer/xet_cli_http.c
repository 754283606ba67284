
/*
 * HTTP, by libcurl: requests and what they may send where, retries, waiting.
 *
 * A request is in one of three places: in libcurl's multi handle, in the list
 * of those that wait for their next attempt, or with its owner.
 */


#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "xet_cli_transfer.h"


#define XET_CLI_HTTP_RETRIES      5
#define XET_CLI_HTTP_BACKOFF      500  /* ms, before the second attempt */
#define XET_CLI_HTTP_BACKOFF_MAX  60000

#define XET_CLI_REQUEST_CONNECT   30   /* s */
#define XET_CLI_REQUEST_SILENCE   300  /* s without a byte */
#define XET_CLI_REQUEST_BUFFER    (256 * 1024)
#define XET_CLI_REQUEST_PLACES    5    /* redirections of a request */


/* What all requests of a command have in common. */

struct xet_cli_http_s {
    CURLM              *multi;
    char               *endpoint;
    const char         *cacert;
    const char         *token_file;
    const char         *token;
    xet_cli_renew_pt    renew;         /* NULL: the token stays */
    void               *renew_ctx;
    unsigned            insecure:1;    /* tokens may be sent without TLS */
    unsigned            retries;
    unsigned            active;        /* in libcurl or waiting */
    unsigned            seed;
    xet_cli_request_t  *waiting;
};


static void xet_cli_http_send(xet_cli_http_t *h, xet_cli_request_t *r);
static void xet_cli_http_ended(xet_cli_http_t *h, CURLMsg *msg);
static int xet_cli_http_again(xet_cli_http_t *h, xet_cli_request_t *r,
    CURLcode code);
static int xet_cli_http_lost(const xet_cli_request_t *r, CURLcode code);
static void xet_cli_http_finish(xet_cli_http_t *h, xet_cli_request_t *r);
static int xet_cli_request_easy(xet_cli_request_t *r);
static int xet_cli_request_credentials(xet_cli_request_t *r);
static int xet_cli_request_method(xet_cli_request_t *r);
static int xet_cli_request_header(xet_cli_request_t *r, const char *line);
static int xet_cli_request_authorize(xet_cli_request_t *r);
static int xet_cli_request_token(xet_cli_request_t *r, char *buffer,
    size_t size);
static CURLU *xet_cli_request_url(const xet_cli_request_t *r);
static CURLU *xet_cli_url_parse(const char *text);
static int xet_cli_request_user(const xet_cli_request_t *r);
static int xet_cli_request_protected(xet_cli_request_t *r, const char *what);
static int xet_cli_request_local(const char *host);
static int xet_cli_request_place(xet_cli_request_t *r, CURLU *from, CURLU *to);
static int xet_cli_request_same(CURLU *one, CURLU *two, CURLUPart part);
static size_t xet_cli_request_write(char *data, size_t size, size_t n,
    void *ctx);
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
                           "give --endpoint or XET_ENDPOINT");
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

    if (h == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(h);
        *rc = xet_cli_no_memory();
        return NULL;
    }

    h->multi = curl_multi_init();
    h->endpoint = strndup(endpoint, len);

    if (h->multi == NULL || h->endpoint == NULL) {
        xet_cli_http_destroy(h);
        *rc = xet_cli_no_memory();
        return NULL;
    }

    h->cacert = args->value[XET_CLI_OPT_CACERT];
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
    const char  *endpoint;

    endpoint = args->value[XET_CLI_OPT_ENDPOINT];

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
        curl_multi_cleanup(h->multi);
        curl_global_cleanup();

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
    r->http = h;
    r->attempts = 0;
    h->active++;

    xet_cli_request_origin(r);

    xet_cli_http_send(h, r);
}


/*
 * A request that cannot be set up ends in xet_cli_http_step(), too: its done
 * handler is never called from here.
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

    if (xet_cli_request_easy(r) != XET_CLI_OK
        || curl_multi_add_handle(h->multi, r->easy) != CURLM_OK)
    {
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
    int                  left, running;
    CURLMsg             *msg;
    uint64_t             now;
    xet_cli_request_t   *r, **link;

    if (wait && h->active) {
        now = xet_cli_now();

        for (r = h->waiting; r; r = r->next) {

            if (r->due <= now) {
                wait = 0;

            } else if (r->due - now < (uint64_t) wait) {
                wait = (int) (r->due - now);
            }
        }

        curl_multi_poll(h->multi, NULL, 0, wait, NULL);
    }

    now = xet_cli_now();

    for (link = &h->waiting; (r = *link) != NULL; /* void */ ) {

        if (r->due > now) {
            link = &r->next;
            continue;
        }

        *link = r->next;

        if (r->attempts > h->retries) {
            xet_cli_http_finish(h, r);

        } else {
            xet_cli_http_send(h, r);
        }

        link = &h->waiting;
    }

    curl_multi_perform(h->multi, &running);

    while ((msg = curl_multi_info_read(h->multi, &left)) != NULL) {
        if (msg->msg == CURLMSG_DONE) {
            xet_cli_http_ended(h, msg);
        }
    }

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : XET_CLI_OK;
}


static void
xet_cli_http_ended(xet_cli_http_t *h, CURLMsg *msg)
{
    CURLcode            code;
    curl_off_t          length;
    xet_cli_request_t  *r;

    code = msg->data.result;

    curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **) &r);
    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->status);

    if (curl_easy_getinfo(r->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
                          &length) == CURLE_OK)
    {
        r->length = length;
    }

    curl_multi_remove_handle(h->multi, r->easy);

    if (code == CURLE_OK && xet_cli_request_redirect(r)) {
        r->attempts--;
        xet_cli_http_send(h, r);
        return;
    }

    if (xet_cli_http_again(h, r, code)) {
        xet_cli_request_origin(r);

        r->next = h->waiting;
        h->waiting = r;
        return;
    }

    if (r->large) {

        /* libcurl calls it a failure of writing */

        strcpy(r->error, "the answer is too long");

    } else if (code != CURLE_OK && !r->refused) {
        r->status = 0;

        if (r->error[0] == '\0') {
            snprintf(r->error, sizeof(r->error), "%s",
                     curl_easy_strerror(code));
        }
    }

    xet_cli_http_finish(h, r);
}


static int
xet_cli_http_again(xet_cli_http_t *h, xet_cli_request_t *r, CURLcode code)
{
    unsigned    shift;
    uint64_t    wait;
    curl_off_t  after;

    if (r->refused || r->attempts > h->retries) {
        return 0;
    }

    switch (code) {

    case CURLE_OK:
        if (r->status != 408 && r->status != 429
            && (r->status < 500 || r->status == 501))
        {
            return 0;
        }

        break;

    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
        break;

    default:
        return 0;
    }

    shift = (r->attempts < 8) ? r->attempts - 1 : 7;
    wait = (uint64_t) XET_CLI_HTTP_BACKOFF << shift;

    /* random, or requests refused together would come back together */

    wait = wait * 3 / 4 + (uint64_t) rand_r(&h->seed) % (wait / 2);

    if (code == CURLE_OK
        && curl_easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &after)
           == CURLE_OK
        && after > 0)
    {
        wait = (after > XET_CLI_HTTP_BACKOFF_MAX / 1000)
               ? XET_CLI_HTTP_BACKOFF_MAX : (uint64_t) after * 1000;
    }

    r->due = xet_cli_now() + wait;
    r->lost = r->lost || xet_cli_http_lost(r, code);

    return 1;
}


/* Whether an attempt may have been done, though it has failed. */

static int
xet_cli_http_lost(const xet_cli_request_t *r, CURLcode code)
{
    return (code == CURLE_OK)
           ? r->status >= 500
           : code != CURLE_COULDNT_CONNECT
             && code != CURLE_COULDNT_RESOLVE_HOST
             && code != CURLE_SSL_CONNECT_ERROR;
}


static void
xet_cli_http_finish(xet_cli_http_t *h, xet_cli_request_t *r)
{
    h->active--;
    r->http = NULL;

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
    struct curl_header  *header;

    return (r->easy
            && curl_easy_header(r->easy, name, 0, CURLH_HEADER, -1, &header)
               == CURLHE_OK)
           ? header->value : NULL;
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

        /* the caller gives up a request that is still going on */

        for (link = &r->http->waiting; *link; link = &(*link)->next) {

            if (*link == r) {
                *link = r->next;
                break;
            }
        }

        if (r->easy) {
            curl_multi_remove_handle(r->http->multi, r->easy);
        }

        r->http->active--;
    }

    if (r->easy) {
        curl_easy_cleanup(r->easy);
    }

    curl_slist_free_all(r->headers);
    free(r->place);
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


/* Where libcurl cannot parse the text, all before an @ may be a password. */

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


/* A Hub says it in a header, and as a text where the API has an object. */

int
xet_cli_http_fail(const xet_cli_request_t *r)
{
    int          rc;
    char         place[XET_CLI_HTTP_TEXT];
    json_t      *answer, *error;
    const char  *code, *text, *url;

    url = r->url ? xet_cli_http_text(r->url, place) : "request";

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
 * Makes the libcurl handle of a request, with all options set.  XET_CLI_OK, or
 * XET_CLI_ERROR with the reason in r->error; no reason: there is no memory.
 */

static int
xet_cli_request_easy(xet_cli_request_t *r)
{
    CURL  *e;

    if (r->easy == NULL) {
        r->easy = curl_easy_init();
    }

    e = r->easy;

    if (e == NULL || r->url == NULL) {
        return XET_CLI_ERROR;
    }

    curl_easy_reset(e);
    curl_slist_free_all(r->headers);
    r->headers = NULL;

    curl_easy_setopt(e, CURLOPT_URL, r->place ? r->place : r->url);
    curl_easy_setopt(e, CURLOPT_PRIVATE, r);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->error);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "xet");
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR,
                     r->tls ? "https" : "http,https");
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long) XET_CLI_REQUEST_CONNECT);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long) XET_CLI_REQUEST_BUFFER);
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE,
                     (long) XET_CLI_REQUEST_BUFFER);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, xet_cli_request_write);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, r);

    /* parallel transfers are faster when each has its own connection */

    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);

    if (!r->patient) {
        curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME,
                         (long) XET_CLI_REQUEST_SILENCE);
    }

    if (r->http->cacert) {
        curl_easy_setopt(e, CURLOPT_CAINFO, r->http->cacert);
    }

    if (xet_cli_request_method(r) != XET_CLI_OK
        || (!r->foreign && xet_cli_request_credentials(r) != XET_CLI_OK))
    {
        return XET_CLI_ERROR;
    }

    curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->headers);

    return XET_CLI_OK;
}


static int
xet_cli_request_credentials(xet_cli_request_t *r)
{
    if ((r->netrc || xet_cli_request_user(r))
        && xet_cli_request_protected(r, "a password") != XET_CLI_OK)
    {
        return XET_CLI_ERROR;
    }

    if (r->netrc) {
        curl_easy_setopt(r->easy, CURLOPT_NETRC, (long) CURL_NETRC_OPTIONAL);
    }

    return r->api ? xet_cli_request_authorize(r) : XET_CLI_OK;
}


static int
xet_cli_request_method(xet_cli_request_t *r)
{
    CURL  *e;

    e = r->easy;

    if (*r->range) {
        curl_easy_setopt(e, CURLOPT_RANGE, r->range);
    }

    if (r->body) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, (const char *) r->body);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t) r->body_len);

        if (xet_cli_request_header(r, r->type ? r->type
                                   : "Content-Type: application/octet-stream")
            != XET_CLI_OK
            || xet_cli_request_header(r, "Expect:") != XET_CLI_OK)
        {
            return XET_CLI_ERROR;
        }

    } else if (r->method && strcmp(r->method, "HEAD") == 0) {
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);

    } else if (r->method) {
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->method);
    }

    return XET_CLI_OK;
}


static int
xet_cli_request_header(xet_cli_request_t *r, const char *line)
{
    struct curl_slist  *list;

    list = curl_slist_append(r->headers, line);

    if (list == NULL) {
        return XET_CLI_ERROR;
    }

    r->headers = list;

    return XET_CLI_OK;
}


/* Adds the token, if there is one; a Hub may give one of 64,000 characters. */

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
        snprintf(r->error, sizeof(r->error), "there is no token for it");
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
                 "the token has characters that tokens do not have");
        rc = XET_CLI_ERROR;

    } else {
        rc = xet_cli_request_protected(r, "a token");

        if (rc == XET_CLI_OK) {
            rc = xet_cli_request_header(r, line);
        }
    }

    explicit_bzero(line, sizeof(prefix) + room);
    free(line);

    return rc;
}


/* Reads the token file; returns the number of bytes, or -1. */

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
 * The place that a request is sent to, parsed by libcurl, as it does for the
 * transfer; NULL: it is no URL.
 */

static CURLU *
xet_cli_request_url(const xet_cli_request_t *r)
{
    return xet_cli_url_parse(r->place ? r->place : r->url);
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


/* Whether the URL has a user or a password; 0 if it is no URL. */

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
 * XET_CLI_OK if the credentials of a request may be sent: by TLS, to this
 * machine, or anywhere with --insecure-token.  A request to this machine must
 * not go through a proxy, and "localhost" is this machine without a lookup.
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
        snprintf(r->error, sizeof(r->error), "this is no URL");

    } else if (strcmp(scheme, "https") == 0) {
        r->tls = 1;

    } else if (xet_cli_request_local(host)) {
        curl_easy_setopt(r->easy, CURLOPT_PROXY, "");

    } else if (!r->http->insecure) {
        rc = XET_CLI_ERROR;
        snprintf(r->error, sizeof(r->error), "%s would be sent without TLS; "
                 "--insecure-token allows it", what);
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


/* Forgets redirections: the next attempt is sent to r->url. */

static void
xet_cli_request_origin(xet_cli_request_t *r)
{
    free(r->place);

    r->place = NULL;
    r->redirects = 0;
    r->foreign = 0;
    r->tls = 0;
}


/*
 * Whether the answer was a redirection, so that the request must be sent again,
 * to the place that it now has.  Only a GET is sent elsewhere.
 */

static int
xet_cli_request_redirect(xet_cli_request_t *r)
{
    int     rc;
    char   *place;
    CURLU  *from, *to;

    if (r->method || r->body || r->status / 100 != 3
        || r->redirects == XET_CLI_REQUEST_PLACES
        || curl_easy_getinfo(r->easy, CURLINFO_REDIRECT_URL, &place)
           != CURLE_OK
        || place == NULL)
    {
        return 0;
    }

    from = xet_cli_request_url(r);
    to = curl_url();

    rc = from && to
         && curl_url_set(to, CURLUPART_URL, place, CURLU_NON_SUPPORT_SCHEME)
            == CURLUE_OK
         && xet_cli_request_place(r, from, to);

    curl_url_cleanup(from);
    curl_url_cleanup(to);

    return rc;
}


/*
 * A user and a password in the URL are sent to the same origin only.  libcurl
 * gives both in their encoded form, and takes them in it.
 */

static int
xet_cli_request_place(xet_cli_request_t *r, CURLU *from, CURLU *to)
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

    free(r->place);
    r->place = strdup(text);
    curl_free(text);

    r->redirects++;

    return r->place != NULL;
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


static size_t
xet_cli_request_write(char *data, size_t size, size_t n, void *ctx)
{
    char               *p;
    long                status;
    size_t              max, keep;
    xet_cli_request_t  *r;

    r = ctx;
    n *= size;

    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);

    if (r->write && status / 100 == 2) {

        if (r->write(r, (const uint8_t *) data, n) != 0) {
            r->refused = 1;
            return 0;
        }

        return n;
    }

    if (status / 100 == 3) {
        return n;
    }

    max = (r->max && status / 100 == 2) ? r->max : XET_CLI_REQUEST_MAX;

    if (n > max - r->came) {
        r->refused = 1;
        r->large = 1;
        return 0;
    }

    r->came += n;

    keep = n;

    if (status / 100 != 2 && keep > XET_CLI_REQUEST_SHORT - r->len) {
        keep = XET_CLI_REQUEST_SHORT - r->len;
    }

    p = realloc(r->data, r->len + keep + 1);

    if (p == NULL) {
        return 0;
    }

    memcpy(p + r->len, data, keep);

    r->data = p;
    r->len += keep;
    p[r->len] = '\0';

    return n;
}
