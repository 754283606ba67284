
/*
 * An attempt of an HTTP request: its credentials, and its redirections.
 *
 * Purpose:    passes an attempt to src/store/net.  Sends a token, or the user
 *             of a URL, only to the API, and only by TLS or to this machine.
 *             Follows redirections itself, without credentials to another
 *             place.
 * States:     none; the client (xet_cli_http.c) has those of the request.
 * Ownership:  the caller owns the request; the URLs of libcurl are freed here.
 * Threads:    all functions run in the thread of the client.
 */


#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <curl/curl.h>

#include "xet_cli_transfer.h"


#define XET_CLI_REQUEST_CONNECT  30000 /* connect timeout, ms */
#define XET_CLI_REQUEST_SILENCE  300   /* timeout without data, s */
#define XET_CLI_REQUEST_PLACES   5     /* maximum number of redirections */


static int xet_cli_request_credentials(xet_cli_request_t *r);
static int xet_cli_request_authorize(xet_cli_request_t *r);
static int xet_cli_request_token(xet_cli_request_t *r, char *buffer,
    size_t size);
static CURLU *xet_cli_request_url(const xet_cli_request_t *r);
static CURLU *xet_cli_url_parse(const char *text);
static int xet_cli_request_user(const xet_cli_request_t *r);
static int xet_cli_request_protected(xet_cli_request_t *r, const char *what);
static int xet_cli_request_local(const char *host);
static int xet_cli_request_storage(xet_cli_request_t *r, CURLU *from,
    CURLU *to);
static int xet_cli_request_same(CURLU *one, CURLU *two, CURLUPart part);
static xet_net_taken_t xet_cli_request_write(xet_net_request_t *net,
    const char *data, size_t n);


/*
 * Passes an attempt to libcurl.  Returns XET_CLI_OK, or XET_CLI_ERROR with the
 * reason in r->error.  An empty r->error means out of memory.
 */

int
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

void
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

int
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


int
xet_cli_url_same(const char *one, const char *two)
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

    if (kind == 2) {
        xet_cli_request_shown(r);
    }

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


void
xet_cli_request_shown(const xet_cli_request_t *r)
{
    if (r->http->shown == r) {
        r->http->shown = NULL;
        (void) xet_cli_progress_retry(NULL);
    }
}
