
/*
 * HTTP, by libcurl: requests, retries, waiting.
 *
 * A request is in one of three places: in libcurl's multi handle, in the list
 * of those that wait for their next attempt, or with its owner.
 */


#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_transfer.h"


#define XET_CLI_HTTP_RETRIES      5
#define XET_CLI_HTTP_BACKOFF      500  /* ms, before the second attempt */
#define XET_CLI_HTTP_BACKOFF_MAX  60000


static void xet_cli_http_send(xet_cli_http_t *h, xet_cli_request_t *r);
static void xet_cli_http_ended(xet_cli_http_t *h, CURLMsg *msg);
static int xet_cli_http_again(xet_cli_http_t *h, xet_cli_request_t *r,
    CURLcode code);
static void xet_cli_http_finish(xet_cli_http_t *h, xet_cli_request_t *r);


xet_cli_http_t *
xet_cli_http_create(const xet_cli_args_t *args, int *rc)
{
    size_t           len;
    uint64_t         retries;
    const char      *endpoint;
    xet_cli_http_t  *h;

    *rc = xet_cli_args_number(args, XET_CLI_OPT_RETRIES, 0, 100,
                              XET_CLI_HTTP_RETRIES, &retries);

    if (*rc != XET_CLI_OK) {
        return NULL;
    }

    endpoint = args->value[XET_CLI_OPT_ENDPOINT];

    if (endpoint == NULL) {
        endpoint = getenv("XET_ENDPOINT");
    }

    endpoint = endpoint ? endpoint : "";

    for (len = strlen(endpoint); len && endpoint[len - 1] == '/'; len--) {
        /* void */
    }

    if (len == 0 && args->value[XET_CLI_OPT_URL] == NULL) {
        *rc = xet_cli_fail(XET_CLI_USAGE, "endpoint",
                           "give --endpoint or XET_ENDPOINT");
        return NULL;
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

    return 1;
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

    rc = (r->status == 404 || r->status == 416) ? XET_CLI_FAULT
                                                : XET_CLI_NETWORK;

    rc = xet_cli_failf(rc, "server", "%s: %ld%s%s%s%s", url, r->status,
                       code ? " " : "", code ? code : "",
                       text ? ": " : "", text ? text : "");

    json_decref(answer);

    return rc;
}
