
/*
 * URLs at which clients reach a server.
 *
 * Purpose:    parses such a URL, or only its host and port; compares them.
 * States:     none.
 * Ownership:  texts point into the caller's URL.
 * Threads:    any.
 */


#include "xet_route.h"

#include <strings.h>


#define XET_URL_PORT_MAX  65535


static int xet_url_host(const uint8_t **pos, const uint8_t *end);
static int xet_url_port(const uint8_t *p, const uint8_t *end, unsigned *port);


int
xet_url_parse(xet_url_t *url, const uint8_t *p, size_t len)
{
    int             tls;
    size_t          skip;
    const uint8_t  *end, *slash;

    end = p + len;

    if (len > 7 && strncasecmp((const char *) p, "http://", 7) == 0) {
        tls = 0;
        skip = 7;

    } else if (len > 8 && strncasecmp((const char *) p, "https://", 8) == 0) {
        tls = 1;
        skip = 8;

    } else {
        return 0;
    }

    slash = memchr(p + skip, '/', len - skip);
    slash = slash ? slash : end;

    if (!xet_url_authority(url, p + skip, (size_t) (slash - p) - skip)) {
        return 0;
    }

    while (end > slash && end[-1] == '/') {
        end--;
    }

    if (!xet_sign_base_ok(slash, (size_t) (end - slash))) {
        return 0;
    }

    url->tls = tls;
    url->text.data = p;
    url->text.len = (size_t) (end - p);
    url->path.data = slash;
    url->path.len = (size_t) (end - slash);

    return 1;
}


int
xet_url_authority(xet_url_t *url, const uint8_t *p, size_t len)
{
    const uint8_t  *host, *end;

    memset(url, 0, sizeof(xet_url_t));

    host = p;
    end = p + len;

    if (!xet_url_host(&p, end)) {
        return 0;
    }

    url->authority.data = host;
    url->authority.len = len;
    url->host.data = host;
    url->host.len = (size_t) (p - host);

    return p == end || (*p == ':' && xet_url_port(p + 1, end, &url->port));
}


/*
 * Moves *pos to the end of a host name or an address; an IPv6 address is in
 * brackets.
 */

static int
xet_url_host(const uint8_t **pos, const uint8_t *end)
{
    int             six;
    const uint8_t  *p, *start;

    p = *pos;
    six = (p < end && *p == '[');
    start = p = p + six;

    while (p < end && (xet_is_alnum(*p) || *p == '.'
                       || (six ? *p == ':' : *p == '-' || *p == '_')))
    {
        p++;
    }

    if (p == start || (six && (p == end || *p != ']'))) {
        return 0;
    }

    *pos = p + six;

    return 1;
}


static int
xet_url_port(const uint8_t *p, const uint8_t *end, unsigned *port)
{
    unsigned  n;

    if (p == end) {
        return 0;
    }

    for (n = 0; p < end; p++) {

        if (*p < '0' || *p > '9') {
            return 0;
        }

        n = n * 10 + (*p - '0');

        if (n > XET_URL_PORT_MAX) {
            return 0;
        }
    }

    *port = n;

    return n != 0;
}


unsigned
xet_url_port_of(const xet_url_t *url, int tls)
{
    return url->port ? url->port : tls ? 443 : 80;
}


int
xet_url_same_host(const xet_url_t *one, const xet_url_t *other)
{
    return one->host.len == other->host.len
           && strncasecmp((const char *) one->host.data,
                          (const char *) other->host.data, one->host.len)
              == 0;
}
