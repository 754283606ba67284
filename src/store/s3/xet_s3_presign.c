
/*
 * Signatures for other programs: presigned URLs, and headers of a request that
 * another program sends.
 */

#include <stdio.h>

#include "xet_s3_base.h"


typedef struct {
    xet_sigv4_t      sign;
    xet_s3_signer_t  signer;
    char             date[XET_SIGV4_DATE_LEN + 1];
    char             path[XET_S3_PATH_MAX];
} xet_s3_presign_t;


static xet_s3_rc_t xet_s3_presign_init(xet_s3_presign_t *p, xet_s3_t *s3,
    const xet_s3_url_t *url, const char *method, const char *name,
    int64_t now);


xet_s3_rc_t
xet_s3_presign(xet_s3_t *s3, const xet_s3_grant_t *grant, char *url)
{
    size_t            i, n, len, size;
    xet_s3_rc_t       rc;
    xet_s3_presign_t  p;
    xet_sigv4_pair_t  pairs[XET_SIGV4_PAIRS_MAX];

    n = grant->nheaders;
    size = XET_S3_URL_MAX;

    if (n > XET_SIGV4_PAIRS_MAX - 1) {
        return XET_S3_LOCAL;
    }

    rc = xet_s3_presign_init(&p, s3, &s3->outside, grant->method, grant->name,
                             grant->made);

    if (rc != XET_S3_OK) {
        return rc;
    }

    for (i = 0; i < n; i++) {
        pairs[i] = (xet_sigv4_pair_t) { grant->headers[i].name,
                                          grant->headers[i].value };
    }

    pairs[n++] = (xet_sigv4_pair_t) { "host", s3->outside.host };

    p.sign.headers = pairs;
    p.sign.nheaders = n;

    len = strlen(s3->outside.base);

    if (len >= size) {
        return XET_S3_LOCAL;
    }

    memcpy(url, s3->outside.base, len);

    if (xet_sigv4_path(url + len, size - len, p.path) != XET_OK) {
        return XET_S3_LOCAL;
    }

    len += strlen(url + len);
    url[len++] = '?';

    return (len < size
            && xet_sigv4_query(url + len, size - len, &p.sign, p.signer.key,
                               p.signer.id, p.signer.token, grant->seconds)
               == XET_OK)
           ? XET_S3_OK : XET_S3_LOCAL;
}


xet_s3_rc_t
xet_s3_sign(xet_s3_t *s3, const char *method, const char *name, int64_t now,
    xet_s3_signed_t *out)
{
    size_t            n;
    xet_s3_rc_t       rc;
    xet_s3_presign_t  p;
    xet_sigv4_pair_t  pairs[4];

    rc = xet_s3_presign_init(&p, s3, &s3->url, method, name, now);

    if (rc != XET_S3_OK) {
        return rc;
    }

    n = 0;

    pairs[n++] = (xet_sigv4_pair_t) { "host", s3->url.host };
    pairs[n++] = (xet_sigv4_pair_t) { "x-amz-content-sha256",
                                      XET_SIGV4_UNSIGNED };
    pairs[n++] = (xet_sigv4_pair_t) { "x-amz-date", p.date };

    if (p.signer.token[0]) {
        pairs[n++] = (xet_sigv4_pair_t) { "x-amz-security-token",
                                          p.signer.token };
    }

    p.sign.headers = pairs;
    p.sign.nheaders = n;

    memcpy(out->host, s3->url.host, sizeof(out->host));
    memcpy(out->date, p.date, sizeof(out->date));
    memcpy(out->token, p.signer.token, sizeof(out->token));

    return (xet_sigv4_path(out->path, sizeof(out->path), p.path) == XET_OK
            && xet_sigv4_header(out->authorization,
                                sizeof(out->authorization), &p.sign,
                                p.signer.key, p.signer.id)
               == XET_OK)
           ? XET_S3_OK : XET_S3_LOCAL;
}


xet_s3_rc_t
xet_s3_path(xet_s3_t *s3, const char *name, char *path)
{
    char         decoded[XET_S3_PATH_MAX];
    xet_s3_rc_t  rc;

    rc = xet_s3_url_path(&s3->url, name, decoded, NULL);

    if (rc != XET_S3_OK) {
        return rc;
    }

    return (xet_sigv4_path(path, XET_S3_URL_MAX, decoded) == XET_OK)
           ? XET_S3_OK : XET_S3_LOCAL;
}


/* Prepares to sign at the caller's time now, plus the skew of the store. */

static xet_s3_rc_t
xet_s3_presign_init(xet_s3_presign_t *p, xet_s3_t *s3,
    const xet_s3_url_t *url, const char *method, const char *name,
    int64_t now)
{
    xet_s3_rc_t  rc;

    memset(&p->sign, 0, sizeof(xet_sigv4_t));

    rc = xet_s3_url_path(url, name, p->path, NULL);

    if (rc != XET_S3_OK) {
        return rc;
    }

    (void) pthread_mutex_lock(&s3->lock);
    now += s3->skew;
    (void) pthread_mutex_unlock(&s3->lock);

    xet_s3_time_amz(p->date, now);

    if (!xet_s3_credentials_signer(&s3->credentials, p->date, &p->signer)) {
        return XET_S3_LOCAL;
    }

    p->sign.method = method;
    p->sign.path = p->path;
    p->sign.payload = XET_SIGV4_UNSIGNED;
    p->sign.date = p->date;
    p->sign.region = s3->conf->region;
    p->sign.service = XET_S3_SERVICE;

    return XET_S3_OK;
}
