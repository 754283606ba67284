
/*
 * HTTP client: starts the requests of a command, and repeats them after
 * temporary errors; xet_cli_request.c makes each attempt.
 *
 * A request is in one of three states: running (src/store/net), in the list of
 * requests that wait for their next attempt, or owned by the caller.
 */


#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "xet_cli_transfer.h"


/* With a backoff of up to a minute, the retries go on for two minutes. */

#define XET_CLI_HTTP_RETRIES      8
#define XET_CLI_HTTP_BACKOFF      500  /* ms before the second attempt */
#define XET_CLI_HTTP_BACKOFF_MAX  60000
#define XET_CLI_HTTP_NOTE         1000  /* ms, shorter delays are silent */
#define XET_CLI_HTTP_NOTES        5000  /* ms between messages */

#define XET_CLI_HTTP_BUFFER       (256 * 1024)


static void xet_cli_http_send(xet_cli_http_t *h, xet_cli_request_t *r);
static void xet_cli_http_ended(xet_net_request_t *net);
static int xet_cli_http_again(xet_cli_http_t *h, xet_cli_request_t *r);
static void xet_cli_http_note(xet_cli_http_t *h, const xet_cli_request_t *r,
    uint64_t wait);
static int xet_cli_http_show(xet_cli_http_t *h, const xet_cli_request_t *r);
static void xet_cli_http_finish(xet_cli_http_t *h, xet_cli_request_t *r);


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
    conf.buffer = XET_CLI_HTTP_BUFFER;
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

    r->net.done = xet_cli_http_ended;

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

    if (after > XET_CLI_HTTP_BACKOFF_MAX / 1000) {
        after = XET_CLI_HTTP_BACKOFF_MAX / 1000;
    }

    if (after > 0 && (uint64_t) after * 1000 > wait) {
        wait = (uint64_t) after * 1000;
    }

    if (wait > XET_CLI_HTTP_BACKOFF_MAX) {
        wait = XET_CLI_HTTP_BACKOFF_MAX;
    }

    r->due = xet_cli_now() + wait;

    xet_cli_http_note(h, r, wait);

    /* the attempt may have succeeded, although there is no response */

    r->lost = r->lost || (r->net.rc == XET_NET_OK
                          ? r->status >= 500 : r->net.rc != XET_NET_UNSENT);

    return 1;
}


/*
 * Says why nothing happens, in the progress bar, or if there is none in a
 * message.  Of the requests that wait for the same reason,
 * the first one with each number of retries prints a message.
 */

static void
xet_cli_http_note(xet_cli_http_t *h, const xet_cli_request_t *r, uint64_t wait)
{
    char      status[32];
    uint64_t  now;

    if (xet_cli_http_show(h, r)) {
        return;
    }

    now = xet_cli_now();

    if ((wait < XET_CLI_HTTP_NOTE && r->attempts < 2)
        || (h->noted && r->attempts <= h->noted_retry
            && now - h->noted < XET_CLI_HTTP_NOTES))
    {
        return;
    }

    h->noted = now;
    h->noted_retry = r->attempts;

    (void) snprintf(status, sizeof(status), "%ld", r->status);

    (void) xet_cli_failf(XET_CLI_OK, "server",
                         "retrying (%s), %u of %u in %" PRIu64 " s",
                         (r->net.rc == XET_NET_OK) ? status : r->net.why,
                         r->attempts, h->retries, (wait + 999) / 1000);
}


/*
 * Shows a retry in the progress bar: the status, or the reason without the
 * host and the port, which libcurl puts before a colon.  Returns 0 if there is
 * no progress bar.
 */

static int
xet_cli_http_show(xet_cli_http_t *h, const xet_cli_request_t *r)
{
    char         text[96], status[32];
    const char  *why, *colon;

    (void) snprintf(status, sizeof(status), "%ld", r->status);

    why = (r->net.rc == XET_NET_OK) ? status : r->net.why;
    colon = strrchr(why, ':');
    why = (colon && colon[1] == ' ') ? colon + 2 : why;

    (void) snprintf(text, sizeof(text), "retrying (%.48s), %u of %u", why,
                    r->attempts, h->retries);

    if (!xet_cli_progress_retry(text)) {
        return 0;
    }

    h->shown = r;

    return 1;
}


static void
xet_cli_http_finish(xet_cli_http_t *h, xet_cli_request_t *r)
{
    h->active--;

    xet_cli_request_shown(r);

    if (r->status >= 200 && r->status < 400) {
        h->noted_retry = 0;
    }

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
 * Hub sends both in headers, and the message also as a JSON string, which for
 * 401 is more exact.
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

        if (text == NULL || (r->status == 401 && json_is_string(error))) {
            text = json_string_value(error);
        }
    }

    rc = (r->status == 404 || r->status == 416) ? XET_CLI_FAULT
                                                : XET_CLI_NETWORK;

    rc = xet_cli_failf(rc, "server", "%s: %ld%s%s%s%s", url, r->status,
                       code ? " " : "", code ? code : "",
                       text ? ": " : "", text ? text : "");

    json_decref(answer);

    return rc;
}
