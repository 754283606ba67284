
/*
 * A request by HTTP: setting up its transfer.
 */


#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "xet_cli_transfer.h"


#define XET_CLI_REQUEST_CONNECT  30       /* s */
#define XET_CLI_REQUEST_SILENCE  300      /* s without a byte */
#define XET_CLI_REQUEST_BUFFER   (256 * 1024)
#define XET_CLI_REQUEST_PLACES   5        /* redirections of a request */


static int xet_cli_request_credentials(xet_cli_request_t *r);
static int xet_cli_request_method(xet_cli_request_t *r);
static int xet_cli_request_header(xet_cli_request_t *r, const char *line);
static int xet_cli_request_authorize(xet_cli_request_t *r);
static int xet_cli_request_token(xet_cli_request_t *r, char *buffer,
    size_t size);
static CURLU *xet_cli_request_url(const xet_cli_request_t *r);
static int xet_cli_request_user(const xet_cli_request_t *r);
static int xet_cli_request_protected(xet_cli_request_t *r, const char *what);
static int xet_cli_request_local(const char *host);
static int xet_cli_request_place(xet_cli_request_t *r, CURLU *from, CURLU *to);
static int xet_cli_request_same(CURLU *one, CURLU *two, CURLUPart part);
static size_t xet_cli_request_write(char *data, size_t size, size_t n,
    void *ctx);


int
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

        if (xet_cli_request_header(r, "Content-Type: application/octet-stream")
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
    int      rc;
    char    *line;
    size_t   len;

    static const char  prefix[] = "Authorization: Bearer ";
    const size_t       room = 65536;

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

    } else if (r->http->token && strlen(r->http->token) < room) {
        strcpy(line + len, r->http->token);
        len += strlen(r->http->token);
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
    CURLU  *url;

    url = curl_url();

    if (url
        && curl_url_set(url, CURLUPART_URL, r->place ? r->place : r->url,
                        CURLU_GUESS_SCHEME)
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


void
xet_cli_request_origin(xet_cli_request_t *r)
{
    free(r->place);

    r->place = NULL;
    r->redirects = 0;
    r->foreign = 0;
    r->tls = 0;
}


/* Only a GET is sent elsewhere. */

int
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
