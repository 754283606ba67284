
/*
 * The address of the objects: "s3://bucket/prefix", and the endpoint that
 * serves the bucket.
 *
 * A name is refused if a proxy or a server could change it to another name: if
 * it has empty parts, "." or "..", or bytes that are not visible ASCII.
 */

#include <stdio.h>

#include "xet_s3_base.h"


static int xet_s3_url_bucket_ok(const char *bucket);
static int xet_s3_url_name_ok(const char *name, size_t len);
static xet_s3_rc_t xet_s3_url_endpoint(xet_s3_url_t *url,
    const char *endpoint, const char *what, xet_s3_error_t *error);
static int xet_s3_url_host_ok(const char *host, size_t len);


xet_s3_rc_t
xet_s3_url_parse(xet_s3_url_t *url, const xet_s3_conf_t *conf,
    xet_s3_error_t *error)
{
    char         aws[128];
    size_t       len;
    const char  *p;

    memset(url, 0, sizeof(xet_s3_url_t));

    url->path_style = conf->path_style;

    if (conf->url == NULL || strncmp(conf->url, "s3://", 5) != 0) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the URL of the store is not \"s3://bucket\" or "
                            "\"s3://bucket/prefix\"");
    }

    p = conf->url + 5;
    len = strcspn(p, "/");

    if (len < sizeof(url->bucket)) {
        memcpy(url->bucket, p, len);
    }

    if (!xet_s3_url_bucket_ok(url->bucket)) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the name of the bucket in \"%s\" is not 3 to 63 "
                            "of a-z, 0-9, \".\" and \"-\"", conf->url);
    }

    p += len;
    p += (*p == '/');
    len = strlen(p);

    while (len && p[len - 1] == '/') {
        len--;
    }

    if (len > XET_S3_KEY_MAX - XET_S3_NAME_MAX
        || len > sizeof(url->prefix) - 2
        || (len && !xet_s3_url_name_ok(p, len)))
    {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the prefix in \"%s\" is too long, or has empty "
                            "parts, \".\", \"..\", or characters that are not "
                            "visible ASCII", conf->url);
    }

    if (len) {
        memcpy(url->prefix, p, len);
        url->prefix[len] = '/';
    }

    if (conf->endpoint && *conf->endpoint) {
        return xet_s3_url_endpoint(url, conf->endpoint, "endpoint", error);
    }

    /* the region determines the AWS endpoint */

    (void) snprintf(aws, sizeof(aws), "https://s3.%s.amazonaws.com",
                    conf->region);

    return xet_s3_url_endpoint(url, aws, "endpoint", error);
}


xet_s3_rc_t
xet_s3_url_public(xet_s3_url_t *url, const xet_s3_url_t *inside,
    const xet_s3_conf_t *conf, xet_s3_error_t *error)
{
    *url = *inside;

    if (conf->public_endpoint == NULL || *conf->public_endpoint == '\0') {
        return XET_S3_OK;
    }

    return xet_s3_url_endpoint(url, conf->public_endpoint, "public endpoint",
                               error);
}


/*
 * Parses the endpoint.  Removes a default port, because the signed "Host" must
 * not contain it.
 */

static xet_s3_rc_t
xet_s3_url_endpoint(xet_s3_url_t *url, const char *endpoint, const char *what,
    xet_s3_error_t *error)
{
    int          n;
    size_t       len, scheme, port;
    const char  *p;

    scheme = (strncmp(endpoint, "http://", 7) == 0) ? 7
             : (strncmp(endpoint, "https://", 8) == 0) ? 8 : 0;

    p = endpoint + scheme;
    len = strlen(p);

    if (len && p[len - 1] == '/') {
        len--;
    }

    if (scheme == 0 || !xet_s3_url_host_ok(p, len)) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the %s \"%s\" is not \"http://host\" or "
                            "\"https://host\", with a port or without",
                            what, endpoint);
    }

    if (!url->path_style && (*p == '[' || strspn(p, "0123456789.:") == len)) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the bucket can't be in front of the address \"%s\""
                            ", which needs the path style", endpoint);
    }

    port = (scheme == 7) ? 3 : 4;

    if (len > port
        && strncmp(p + len - port, scheme == 7 ? ":80" : ":443", port) == 0)
    {
        len -= port;
    }

    n = url->path_style
        ? snprintf(url->host, sizeof(url->host), "%.*s", (int) len, p)
        : snprintf(url->host, sizeof(url->host), "%s.%.*s", url->bucket,
                   (int) len, p);

    if (n < 0 || (size_t) n >= sizeof(url->host)) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the host of the %s is too long", what);
    }

    (void) snprintf(url->base, sizeof(url->base), "%.*s%s", (int) scheme,
                    endpoint, url->host);

    return XET_S3_OK;
}


xet_s3_rc_t
xet_s3_url_path(const xet_s3_url_t *url, const char *name, char *path,
    xet_s3_error_t *error)
{
    size_t  len;

    len = name ? strlen(name) : 0;

    if (name && (len == 0 || len >= XET_S3_NAME_MAX
                 || !xet_s3_url_name_ok(name, len)))
    {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "\"%.64s\" can't be the name of an object", name);
    }

    (void) snprintf(path, XET_S3_PATH_MAX, "/%s%s%s%s",
                    url->path_style ? url->bucket : "",
                    url->path_style && name ? "/" : "",
                    name ? url->prefix : "", name ? name : "");

    return XET_S3_OK;
}


static int
xet_s3_url_bucket_ok(const char *bucket)
{
    size_t  i, len;

    len = strlen(bucket);

    if (len < 3) {
        return 0;
    }

    for (i = 0; i < len; i++) {

        if ((bucket[i] >= 'a' && bucket[i] <= 'z')
            || (bucket[i] >= '0' && bucket[i] <= '9'))
        {
            continue;
        }

        if (i == 0 || i == len - 1 || (bucket[i] != '-' && bucket[i] != '.')
            || (bucket[i] == '.' && bucket[i - 1] == '.'))
        {
            return 0;
        }
    }

    return 1;
}


static int
xet_s3_url_name_ok(const char *name, size_t len)
{
    size_t       n;
    const char  *p, *end, *slash;

    end = name + len;

    for (p = name; p <= end; p = slash + 1) {

        for (slash = p; slash < end && *slash != '/'; slash++) {
            if (*slash <= ' ' || *slash > '~') {
                return 0;
            }
        }

        n = (size_t) (slash - p);

        if (n == 0 || (n == 1 && p[0] == '.')
            || (n == 2 && p[0] == '.' && p[1] == '.'))
        {
            return 0;
        }
    }

    return 1;
}


/* Refuses a user, path, query or fragment; libcurl checks the rest. */

static int
xet_s3_url_host_ok(const char *host, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (!xet_is_alnum((unsigned char) host[i])
            && (host[i] == '\0' || strchr("-._:[]", host[i]) == NULL))
        {
            return 0;
        }
    }

    return len > 0 && len < XET_S3_HOST_MAX;
}
