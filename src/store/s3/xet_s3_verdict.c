
/*
 * Determines the result of a request from its response.  The error code of the
 * response takes precedence over its status, since stores agree more on codes
 * than on statuses.
 *
 * A 404 without a code does not prove that an object is missing: a proxy, or
 * another server at this address, may also send it.
 */

#include "xet_s3_base.h"
#include "xet_s3_verdict.h"


typedef struct {
    const char         *code;
    xet_s3_rc_t         rc;
    xet_s3_verdict_t    verdict;
} xet_s3_code_t;


static const xet_s3_code_t  xet_s3_codes[] = {

    { "NoSuchKey",              XET_S3_NOT_FOUND, XET_S3_FINAL },
    { "NoSuchUpload",           XET_S3_NOT_FOUND, XET_S3_FINAL },
    { "NoSuchBucket",           XET_S3_NO_BUCKET, XET_S3_FINAL },
    { "PreconditionFailed",     XET_S3_EXISTS,    XET_S3_FINAL },
    { "InvalidRange",           XET_S3_SHORT,     XET_S3_FINAL },

    { "InternalError",          XET_S3_AWAY,      XET_S3_REPEAT },
    { "ServiceUnavailable",     XET_S3_AWAY,      XET_S3_REPEAT },
    { "SlowDown",               XET_S3_AWAY,      XET_S3_REPEAT },
    { "RequestTimeout",         XET_S3_AWAY,      XET_S3_REPEAT },
    { "OperationAborted",       XET_S3_AWAY,      XET_S3_REPEAT },
    { "ConditionalRequestConflict", XET_S3_AWAY,  XET_S3_REPEAT },
    { "TooManyRequests",        XET_S3_AWAY,      XET_S3_REPEAT },
    { "RequestLimitExceeded",   XET_S3_AWAY,      XET_S3_REPEAT },

    { "BadDigest",              XET_S3_BAD,       XET_S3_REPEAT },
    { "InvalidDigest",          XET_S3_BAD,       XET_S3_REPEAT },
    { "IncompleteBody",         XET_S3_BAD,       XET_S3_REPEAT },
    { "XAmzContentSHA256Mismatch", XET_S3_BAD,    XET_S3_REPEAT },
    { "XAmzContentChecksumMismatch", XET_S3_BAD,  XET_S3_REPEAT },

    { "RequestTimeTooSkewed",   XET_S3_DENIED,    XET_S3_CLOCK },
    { "AccessDenied",           XET_S3_DENIED,    XET_S3_KEYS },
    { "InvalidAccessKeyId",     XET_S3_DENIED,    XET_S3_KEYS },
    { "SignatureDoesNotMatch",  XET_S3_DENIED,    XET_S3_KEYS },
    { "ExpiredToken",           XET_S3_DENIED,    XET_S3_KEYS },
    { "InvalidToken",           XET_S3_DENIED,    XET_S3_KEYS },
    { "TokenRefreshRequired",   XET_S3_DENIED,    XET_S3_KEYS },

    { "NotImplemented",         XET_S3_BAD,       XET_S3_FINAL },

    { NULL }
};


static xet_s3_verdict_t xet_s3_verdict_transfer(const xet_s3_transfer_t *t,
    xet_s3_rc_t *rc);
static xet_s3_verdict_t xet_s3_verdict_status(int status, xet_s3_rc_t *rc);


xet_s3_verdict_t
xet_s3_verdict(const xet_s3_transfer_t *t, const xet_s3xml_error_t *e,
    xet_s3_rc_t *rc)
{
    const xet_s3_code_t  *c;

    if (t->net.rc != XET_NET_OK) {
        return xet_s3_verdict_transfer(t, rc);
    }

    if (t->net.status / 100 == 2 && e->code[0] == '\0') {
        *rc = XET_S3_OK;
        return XET_S3_FINAL;
    }

    /*
     * the bucket is in another region; a region alone does not prove this,
     * since some stores name the region in every error
     */

    if (t->net.status / 100 == 3
        || (e->region[0]
            && strcmp(e->code, "AuthorizationHeaderMalformed") == 0))
    {
        *rc = XET_S3_CONF;
        return XET_S3_FINAL;
    }

    for (c = xet_s3_codes; c->code; c++) {
        if (strcmp(c->code, e->code) == 0) {
            *rc = c->rc;
            return c->verdict;
        }
    }

    /* "QuotaExceeded", "XMinioAdminBucketQuotaExceeded" */

    if (strstr(e->code, "QuotaExceeded") || strstr(e->code, "StorageFull")) {
        *rc = XET_S3_FULL;
        return XET_S3_FINAL;
    }

    return xet_s3_verdict_status(t->net.status, rc);
}


static xet_s3_verdict_t
xet_s3_verdict_transfer(const xet_s3_transfer_t *t, xet_s3_rc_t *rc)
{
    switch (t->net.rc) {

    case XET_NET_LOCAL:
        *rc = XET_S3_LOCAL;
        return XET_S3_FINAL;

    case XET_NET_TRUST:
        *rc = XET_S3_AWAY;
        return XET_S3_FINAL;

    case XET_NET_REFUSED:
        *rc = XET_S3_BAD;
        return XET_S3_FINAL;

    case XET_NET_CUT:
        *rc = XET_S3_BAD;
        return XET_S3_REPEAT;

    default:
        *rc = XET_S3_AWAY;
        return XET_S3_REPEAT;
    }
}


static xet_s3_verdict_t
xet_s3_verdict_status(int status, xet_s3_rc_t *rc)
{
    switch (status) {

    case 401:
    case 403:
        *rc = XET_S3_DENIED;
        return XET_S3_KEYS;

    case 412:
        *rc = XET_S3_EXISTS;
        return XET_S3_FINAL;

    case 416:
        *rc = XET_S3_SHORT;
        return XET_S3_FINAL;

    case 507:
        *rc = XET_S3_FULL;
        return XET_S3_FINAL;

    case 408:
    case 425:
    case 429:
        *rc = XET_S3_AWAY;
        return XET_S3_REPEAT;

    case 501:
    case 505:
        *rc = XET_S3_BAD;
        return XET_S3_FINAL;

    default:
        *rc = (status / 100 == 5) ? XET_S3_AWAY : XET_S3_BAD;
        return (status / 100 == 5) ? XET_S3_REPEAT : XET_S3_FINAL;
    }
}
