
/*
 * Functions for one object: get, head, put, delete, copy.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "xet_s3_object.h"


#define XET_S3_OBJECT_RANGE  64


static xet_s3_rc_t xet_s3_object_range(const xet_s3_transfer_t *t,
    uint64_t start, size_t len, const char *name, xet_s3_error_t *error);
static uint64_t xet_s3_object_total(const char *text);
static xet_s3_rc_t xet_s3_object_absent(xet_s3_t *s3, const char *name,
    xet_s3_error_t *error);
static xet_s3_rc_t xet_s3_object_copy(xet_s3_t *s3, const char *source,
    const char *to, int condition, xet_s3_error_t *error);


xet_s3_rc_t
xet_s3_get(xet_s3_t *s3, const char *name, uint64_t start, size_t len,
    unsigned char *buf, xet_s3_error_t *error)
{
    char              range[XET_S3_OBJECT_RANGE];
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    if (len == 0) {
        return XET_S3_OK;
    }

    if (start > (uint64_t) INT64_MAX - len) {
        return xet_s3_error(error, XET_S3_BAD, 0, "S3 GET of \"%.96s\": no "
                            "object has so many bytes", name);
    }

    (void) snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, start,
                    start + len - 1);

    xet_s3_request_init(&r, s3, "GET", name);
    xet_s3_request_header(&r, "range", range);

    r.t.buf = buf;
    r.t.size = len;

    rc = xet_s3_request_send(&r, error);

    if (rc == XET_S3_OK) {
        rc = xet_s3_object_range(&r.t, start, len, name, error);
    }

    xet_s3_request_free(&r);

    return rc;
}


/* Parses a size; returns UINT64_MAX for "*", or if text is not a number. */

static uint64_t
xet_s3_object_total(const char *text)
{
    char                *end;
    unsigned long long   total;

    if (*text < '0' || *text > '9') {
        return UINT64_MAX;
    }

    errno = 0;
    total = strtoull(text, &end, 10);

    return (errno || *end) ? UINT64_MAX : (uint64_t) total;
}


/*
 * Checks the range of a response.  A 200 with all bytes is accepted if the
 * requested range is the whole object.
 */

static xet_s3_rc_t
xet_s3_object_range(const xet_s3_transfer_t *t, uint64_t start, size_t len,
    const char *name, xet_s3_error_t *error)
{
    char         want[XET_S3_OBJECT_RANGE];
    size_t       n;
    const char  *slash;

    n = (size_t) snprintf(want, sizeof(want),
                          "bytes %" PRIu64 "-%" PRIu64 "/", start,
                          start + len - 1);

    if (t->got == len
        && ((t->net.status == 206 && strncmp(t->range, want, n) == 0)
            || (t->net.status == 200 && start == 0)))
    {
        return XET_S3_OK;
    }

    /* "bytes 10-19/20": the object ends inside the requested range */

    slash = strchr(t->range, '/');

    if (t->net.status == 206 && slash && t->got < len
        && xet_s3_object_total(slash + 1) < start + len)
    {
        return xet_s3_error(error, XET_S3_SHORT, t->net.status,
                            "S3 GET of \"%.96s\": the object ends before "
                            "%" PRIu64, name, start + len);
    }

    return xet_s3_error(error, XET_S3_BAD, t->net.status,
                        "S3 GET of \"%.96s\": %zu bytes of \"%.64s\" came "
                        "instead of %zu from %" PRIu64 " on", name, t->got,
                        t->range, len, start);
}


xet_s3_rc_t
xet_s3_get_small(xet_s3_t *s3, const char *name, unsigned char *buf,
    size_t *len, xet_s3_error_t *error)
{
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    xet_s3_request_init(&r, s3, "GET", name);

    r.t.buf = buf;
    r.t.size = *len;

    rc = xet_s3_request_send(&r, error);

    if (rc == XET_S3_OK) {
        *len = r.t.got;
    }

    xet_s3_request_free(&r);

    return rc;
}


xet_s3_rc_t
xet_s3_head(xet_s3_t *s3, const char *name, xet_s3_object_t *object,
    xet_s3_error_t *error)
{
    char  etag[XET_S3_TAG_MAX];

    return xet_s3_object_head(s3, name, object, etag, error);
}


/*
 * Sends a HEAD of an object.  The response has no body, so a 404 may mean a
 * missing object or a missing bucket.  A HEAD of the bucket then tells which.
 */

xet_s3_rc_t
xet_s3_object_head(xet_s3_t *s3, const char *name, xet_s3_object_t *object,
    char *etag, xet_s3_error_t *error)
{
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    memset(object, 0, sizeof(xet_s3_object_t));
    memset(etag, 0, XET_S3_TAG_MAX);

    xet_s3_request_init(&r, s3, "HEAD", name);

    rc = xet_s3_request_send(&r, error);

    if (rc == XET_S3_OK) {
        rc = xet_s3_object_sized(&r, error);
    }

    if (rc == XET_S3_OK) {
        object->size = (uint64_t) r.t.net.length;
        object->modified = xet_s3_time_http(r.t.modified);
        object->now = xet_s3_time_http(r.t.date);

        memcpy(etag, r.t.etag, XET_S3_TAG_MAX);
    }

    xet_s3_request_free(&r);

    return (rc == XET_S3_NOT_FOUND) ? xet_s3_object_absent(s3, name, error)
                                    : rc;
}


xet_s3_rc_t
xet_s3_object_sized(const xet_s3_request_t *r, xet_s3_error_t *error)
{
    return (r->t.net.length >= 0)
           ? XET_S3_OK
           : xet_s3_error(error, XET_S3_BAD, 200, "HEAD of \"%s\": the answer "
                          "has no length", r->name);
}


static xet_s3_rc_t
xet_s3_object_absent(xet_s3_t *s3, const char *name, xet_s3_error_t *error)
{
    xet_s3_rc_t  rc;

    rc = xet_s3_object_bucket(s3, error);

    return rc ? rc : xet_s3_error(error, XET_S3_NOT_FOUND, 404,
                                  "S3 HEAD of \"%.96s\" in bucket \"%s\": 404",
                                  name, s3->url.bucket);
}


xet_s3_rc_t
xet_s3_object_bucket(xet_s3_t *s3, xet_s3_error_t *error)
{
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    xet_s3_request_init(&r, s3, "HEAD", NULL);

    rc = xet_s3_request_send(&r, error);

    xet_s3_request_free(&r);

    return rc;
}


xet_s3_rc_t
xet_s3_put_small(xet_s3_t *s3, const char *name, const unsigned char *data,
    size_t len, int only_new, xet_s3_error_t *error)
{
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    xet_s3_request_init(&r, s3, "PUT", name);

    if (!xet_s3_request_body(&r, data, len)) {
        return xet_s3_error(error, XET_S3_LOCAL, 0, "OpenSSL failed");
    }

    rc = xet_s3_object_put(&r, only_new, error);

    xet_s3_request_free(&r);

    return rc;
}


/*
 * Sends a PUT.  If an attempt got no response, an existing object may be the
 * object that we sent.  The object counts as ours only if its size matches and
 * its ETag is the MD5 of the bytes sent.  Some stores use other ETags; there
 * the result stays XET_S3_EXISTS.
 */

xet_s3_rc_t
xet_s3_object_put(xet_s3_request_t *r, int only_new, xet_s3_error_t *error)
{
    char             etag[XET_S3_TAG_MAX];
    xet_s3_t        *s3;
    xet_s3_rc_t      rc;
    xet_s3_object_t  object;

    s3 = r->s3;

    if (only_new) {
        rc = xet_s3_object_new(s3, r->name, error);

        if (rc != XET_S3_OK) {
            return rc;
        }

        if (s3->conf->conditional) {
            xet_s3_request_header(r, "if-none-match", "*");
        }
    }

    rc = xet_s3_request_send(r, error);

    if (rc != XET_S3_EXISTS || !r->unsure
        || xet_s3_object_head(s3, r->name, &object, etag, NULL) != XET_S3_OK
        || object.size != r->t.net.len
        || !xet_s3_object_is(etag, &r->t))
    {
        return rc;
    }

    return XET_S3_OK;
}


/* Sends a HEAD only if the store does not support If-None-Match. */

xet_s3_rc_t
xet_s3_object_new(xet_s3_t *s3, const char *name, xet_s3_error_t *error)
{
    xet_s3_rc_t      rc;
    xet_s3_object_t  object;

    if (s3->conf->conditional) {
        return XET_S3_OK;
    }

    rc = xet_s3_head(s3, name, &object, error);

    if (rc == XET_S3_OK) {
        return xet_s3_error(error, XET_S3_EXISTS, 200,
                            "S3 PUT of \"%.96s\": there is such an object",
                            name);
    }

    return (rc == XET_S3_NOT_FOUND) ? XET_S3_OK : rc;
}


int
xet_s3_object_is(const char *etag, const xet_s3_transfer_t *t)
{
    int            ok;
    char           hex[33];
    size_t         sent;
    ssize_t        n;
    uint8_t        md5[EVP_MAX_MD_SIZE];
    EVP_MD_CTX    *md;
    unsigned char  buf[16 * 1024];

    md = EVP_MD_CTX_new();
    if (md == NULL) {
        return 0;
    }

    ok = EVP_DigestInit_ex(md, EVP_md5(), NULL);

    if (t->net.data) {
        ok = ok && EVP_DigestUpdate(md, t->net.data, t->net.len);

    } else {

        for (sent = 0; ok && sent < t->net.len; sent += (size_t) n) {

            n = pread(t->net.fd, buf,
                      t->net.len - sent < sizeof(buf) ? t->net.len - sent
                                                  : sizeof(buf),
                      (off_t) (t->net.offset + sent));

            ok = (n > 0) && EVP_DigestUpdate(md, buf, (size_t) n);
        }
    }

    ok = ok && EVP_DigestFinal_ex(md, md5, NULL);

    EVP_MD_CTX_free(md);

    if (!ok) {
        return 0;
    }

    xet_s3_hex(hex, md5, 16);

    etag += (*etag == '"');

    return strncmp(etag, hex, 32) == 0
           && (etag[32] == '"' || etag[32] == '\0');
}


xet_s3_rc_t
xet_s3_delete(xet_s3_t *s3, const char *name, xet_s3_error_t *error)
{
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    xet_s3_request_init(&r, s3, "DELETE", name);

    rc = xet_s3_request_send(&r, error);

    xet_s3_request_free(&r);

    return (rc == XET_S3_NOT_FOUND) ? XET_S3_OK : rc;
}


/*
 * Copies an object.  Few stores support a condition for a copy; other stores
 * ignore the condition or refuse the request.  So if only_new is set, a HEAD
 * is always sent first.
 */

xet_s3_rc_t
xet_s3_copy(xet_s3_t *s3, const char *from, const char *to, int only_new,
    xet_s3_error_t *error)
{
    char             path[XET_S3_PATH_MAX], source[3 * XET_S3_PATH_MAX];
    xet_s3_rc_t      rc;
    xet_s3_url_t     url;
    xet_s3_object_t  object;

    /* the source always has the bucket in its path */

    url = s3->url;
    url.path_style = 1;

    rc = xet_s3_url_path(&url, from, path, error);

    if (rc != XET_S3_OK) {
        return rc;
    }

    if (xet_sigv4_path(source, sizeof(source), path) != XET_OK) {
        return xet_s3_error(error, XET_S3_CONF, 0, "a name is too long");
    }

    if (only_new) {
        rc = xet_s3_head(s3, to, &object, error);

        if (rc == XET_S3_OK) {
            return xet_s3_error(error, XET_S3_EXISTS, 200,
                                "S3 copy to \"%.96s\": there is such an "
                                "object", to);
        }

        if (rc != XET_S3_NOT_FOUND) {
            return rc;
        }
    }

    only_new = only_new && s3->conf->conditional;
    rc = xet_s3_object_copy(s3, source, to, only_new, error);

    if (only_new && rc == XET_S3_BAD) {
        rc = xet_s3_object_copy(s3, source, to, 0, error);
    }

    return rc;
}


/*
 * Copies only the bytes (REPLACE).  The client that put the source may have
 * added unsigned headers, such as Content-Encoding, which the store would
 * send to all readers of the copy.
 */

static xet_s3_rc_t
xet_s3_object_copy(xet_s3_t *s3, const char *source, const char *to,
    int condition, xet_s3_error_t *error)
{
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    xet_s3_request_init(&r, s3, "PUT", to);
    xet_s3_request_header(&r, "x-amz-copy-source", source);
    xet_s3_request_header(&r, "x-amz-metadata-directive", "REPLACE");

    if (condition) {
        xet_s3_request_header(&r, "if-none-match", "*");
    }

    r.is_xml = 1;

    rc = xet_s3_request_send(&r, error);

    if (rc == XET_S3_OK && r.answer.etag[0] == '\0') {
        rc = xet_s3_error(error, XET_S3_BAD, r.t.net.status,
                          "S3 copy to \"%.96s\": the answer is not what S3 "
                          "answers", to);
    }

    xet_s3_request_free(&r);

    return rc;
}
