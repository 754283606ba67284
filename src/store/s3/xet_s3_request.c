
/*
 * A request: signs it, sends it, evaluates the response, and retries if that
 * may help, until the timeout.
 *
 * Pauses grow from 50 ms to 2 s.  The actual pause is random, between half of
 * this value and the full value, so that requests refused together are not
 * retried together.  A longer "Retry-After" takes precedence.
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "xet_s3_base.h"
#include "xet_s3_breaker.h"
#include "xet_s3_verdict.h"


#define XET_S3_REQUEST_PAUSE      50           /* first pause, ms */
#define XET_S3_REQUEST_PAUSE_MAX  2000
#define XET_S3_REQUEST_TRIAL      5000         /* ms, timeout of a request
                                                  that tests a silent store */
#define XET_S3_REQUEST_DENIED     3            /* maximum retries if denied */
#define XET_S3_REQUEST_SKEW       240          /* maximum skew, s; S3: 900 */
#define XET_S3_REQUEST_EMPTY                                                  \
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


/* A thread that waits for its transfer. */

typedef struct {
    pthread_mutex_t  lock;
    pthread_cond_t   cond;
    int              done;
} xet_s3_waiter_t;


static xet_s3_rc_t xet_s3_request_repeat(xet_s3_request_t *r,
    uint64_t deadline, int trial, xet_s3_error_t *error);
static xet_s3_rc_t xet_s3_request_peace(xet_s3_request_t *r, uint64_t silent,
    xet_s3_error_t *error);
static xet_s3_rc_t xet_s3_request_once(xet_s3_request_t *r, uint64_t deadline,
    xet_s3_error_t *error);
static void xet_s3_request_done(xet_s3_transfer_t *t);
static xet_s3_rc_t xet_s3_request_sign(xet_s3_request_t *r,
    xet_s3_error_t *error);
static int xet_s3_request_lines(xet_s3_request_t *r,
    const xet_sigv4_pair_t *headers, size_t n, const char *authorization);
static void xet_s3_request_reset(xet_s3_request_t *r);
static xet_s3_verdict_t xet_s3_request_judge(xet_s3_request_t *r,
    xet_s3_rc_t *rc, xet_s3_error_t *error);
static void xet_s3_request_tell(xet_s3_request_t *r, xet_s3_rc_t rc,
    xet_s3_error_t *error);
static int xet_s3_request_sum(xet_s3_request_t *r);
static int xet_s3_request_skewed(xet_s3_request_t *r);
static int xet_s3_request_clock(xet_s3_request_t *r);
static int xet_s3_request_pause(xet_s3_request_t *r, unsigned n,
    uint64_t deadline);
static xet_s3_rc_t xet_s3_request_untaken(xet_s3_request_t *r,
    xet_s3_error_t *error);


void
xet_s3_request_init(xet_s3_request_t *r, xet_s3_t *s3, const char *method,
    const char *name)
{
    memset(r, 0, sizeof(xet_s3_request_t));

    r->s3 = s3;
    r->method = method;
    r->name = name;
    r->t.net.fd = -1;
    r->t.net.data = (const unsigned char *) "";
    r->t.most = XET_S3_BODY_MAX;

    memcpy(r->sha256, XET_S3_REQUEST_EMPTY, XET_S3_SHA_MAX);
}


void
xet_s3_request_free(xet_s3_request_t *r)
{
    free(r->t.net.body);
    r->t.net.body = NULL;
}


/* Adds an argument; callers add at most XET_S3_REQUEST_PAIRS arguments. */

void
xet_s3_request_arg(xet_s3_request_t *r, const char *name, const char *value)
{
    r->args[r->nargs++] = (xet_sigv4_pair_t) { name, value };
}


void
xet_s3_request_header(xet_s3_request_t *r, const char *name, const char *value)
{
    r->headers[r->nheaders++] = (xet_sigv4_pair_t) { name, value };
}


int
xet_s3_request_body(xet_s3_request_t *r, const unsigned char *data, size_t len)
{
    uint8_t  hash[32];

    if (!EVP_Digest(data, len, hash, NULL, EVP_sha256(), NULL)) {
        return 0;
    }

    xet_s3_hex(r->sha256, hash, sizeof(hash));

    r->t.net.data = data;
    r->t.net.len = len;

    return 1;
}


xet_s3_rc_t
xet_s3_request_send(xet_s3_request_t *r, xet_s3_error_t *error)
{
    return xet_s3_request_until(r, xet_s3_time_ms() + r->s3->conf->timeout,
                                error);
}


xet_s3_rc_t
xet_s3_request_until(xet_s3_request_t *r, uint64_t deadline,
    xet_s3_error_t *error)
{
    uint64_t          silent, trial;
    xet_s3_rc_t       rc;
    xet_s3_error_t    text;
    xet_s3_breaker_t  state;

    state = xet_s3_breaker_ask(r->s3, &silent);

    if (state == XET_S3_OPEN) {
        return xet_s3_request_peace(r, silent, error);
    }

    if (state == XET_S3_TRIAL) {
        trial = xet_s3_time_ms() + XET_S3_REQUEST_TRIAL;
        deadline = (deadline < trial) ? deadline : trial;
    }

    memset(&text, 0, sizeof(xet_s3_error_t));

    rc = xet_s3_request_repeat(r, deadline, state == XET_S3_TRIAL, &text);

    if (rc != XET_S3_OK && error) {
        *error = text;
    }

    return rc;
}


/*
 * Sends the request until it succeeds, or a retry would not help.  If the last
 * attempt ran out of time, returns the result of the last attempt that got a
 * response.
 */

static xet_s3_rc_t
xet_s3_request_repeat(xet_s3_request_t *r, uint64_t deadline, int trial,
    xet_s3_error_t *error)
{
    unsigned          n, denied;
    xet_s3_rc_t       rc, former;
    xet_s3_error_t    said;
    xet_s3_verdict_t  verdict;

    denied = 0;
    former = XET_S3_OK;

    for (n = 0; ; n++) {

        rc = xet_s3_request_once(r, deadline, error);

        if (rc != XET_S3_OK) {
            return rc;
        }

        verdict = xet_s3_request_judge(r, &rc, error);

        if (r->t.net.tries > 1) {
            r->unsure = 1;
        }

        if (verdict == XET_S3_FINAL) {
            return rc;
        }

        if (r->t.net.rc != XET_NET_OK || r->t.net.status / 100 != 4) {
            r->unsure = 1;
        }

        if (verdict == XET_S3_REPEAT) {

            if (r->t.net.status) {
                former = rc;
                said = *error;
            }

            if (!trial && xet_s3_request_pause(r, n, deadline)) {
                continue;
            }

            if (r->t.net.status == 0) {
                xet_s3_breaker_open(r->s3);
            }

            if (former != XET_S3_OK && xet_s3_time_ms() >= deadline) {
                rc = former;
                *error = said;
            }

            return rc;
        }

        if (denied++ == XET_S3_REQUEST_DENIED
            || (verdict == XET_S3_CLOCK && !xet_s3_request_clock(r))
            || (verdict == XET_S3_KEYS
                && !xet_s3_credentials_renew(&r->s3->credentials,
                                             r->generation, deadline)))
        {
            return rc;
        }
    }
}


static xet_s3_rc_t
xet_s3_request_peace(xet_s3_request_t *r, uint64_t silent,
    xet_s3_error_t *error)
{
    xet_s3_report_withheld(r->s3->conf->report, r->method);

    return xet_s3_error(error, XET_S3_AWAY, 0,
                        "S3 %s of \"%.64s\" was not sent: %.64s has not "
                        "answered for %u s", r->method, r->name ? r->name : "",
                        r->s3->url.host, (unsigned) (silent / 1000));
}


xet_s3_rc_t
xet_s3_request_post(xet_s3_request_t *r, xet_s3_transfer_pt done, void *owner,
    xet_s3_error_t *error)
{
    uint64_t     silent;
    xet_s3_rc_t  rc;

    /* a trial is sent like any other request, with the full timeout */

    if (xet_s3_breaker_ask(r->s3, &silent) == XET_S3_OPEN) {
        return xet_s3_request_peace(r, silent, error);
    }

    xet_s3_request_reset(r);

    rc = xet_s3_request_sign(r, error);

    if (rc != XET_S3_OK) {
        return rc;
    }

    r->t.deadline = xet_s3_time_ms() + r->s3->conf->timeout;
    r->t.done = done;
    r->t.owner = owner;

    if (!xet_s3_transfers_post(r->s3->transfers, &r->t)) {
        return xet_s3_request_untaken(r, error);
    }

    return XET_S3_OK;
}


xet_s3_rc_t
xet_s3_request_result(xet_s3_request_t *r, xet_s3_error_t *error)
{
    xet_s3_rc_t  rc;

    (void) xet_s3_request_judge(r, &rc, error);

    return rc;
}


/* Sends the request once.  XET_S3_OK: it was sent, whatever the response. */

static xet_s3_rc_t
xet_s3_request_once(xet_s3_request_t *r, uint64_t deadline,
    xet_s3_error_t *error)
{
    int              taken;
    xet_s3_rc_t      rc;
    xet_s3_waiter_t  waiter;

    xet_s3_request_reset(r);

    rc = xet_s3_request_sign(r, error);

    if (rc != XET_S3_OK) {
        return rc;
    }

    waiter.done = 0;
    (void) pthread_mutex_init(&waiter.lock, NULL);
    (void) pthread_cond_init(&waiter.cond, NULL);

    r->t.deadline = deadline;
    r->t.done = xet_s3_request_done;
    r->t.owner = &waiter;

    taken = xet_s3_transfers_post(r->s3->transfers, &r->t);

    if (taken) {
        (void) pthread_mutex_lock(&waiter.lock);

        while (!waiter.done) {
            (void) pthread_cond_wait(&waiter.cond, &waiter.lock);
        }

        (void) pthread_mutex_unlock(&waiter.lock);
    }

    (void) pthread_cond_destroy(&waiter.cond);
    (void) pthread_mutex_destroy(&waiter.lock);

    if (!taken) {
        return xet_s3_request_untaken(r, error);
    }

    return XET_S3_OK;
}


static void
xet_s3_request_done(xet_s3_transfer_t *t)
{
    xet_s3_waiter_t  *waiter;

    waiter = t->owner;

    (void) pthread_mutex_lock(&waiter->lock);
    waiter->done = 1;
    (void) pthread_cond_signal(&waiter->cond);
    (void) pthread_mutex_unlock(&waiter->lock);
}


static xet_s3_rc_t
xet_s3_request_sign(xet_s3_request_t *r, xet_s3_error_t *error)
{
    char              authorization[1024], date[XET_SIGV4_DATE_LEN + 1];
    size_t            n, len;
    int64_t           now;
    xet_s3_t         *s3;
    xet_s3_rc_t       rc;
    xet_sigv4_t       sign;
    xet_s3_signer_t   signer;
    xet_sigv4_pair_t  headers[XET_S3_REQUEST_PAIRS + 4];

    s3 = r->s3;
    rc = xet_s3_url_path(&s3->url, r->name, r->path, error);

    if (rc != XET_S3_OK) {
        return rc;
    }

    (void) pthread_mutex_lock(&s3->lock);
    now = (int64_t) time(NULL) + s3->skew;
    (void) pthread_mutex_unlock(&s3->lock);

    xet_s3_time_amz(date, now);

    if (!xet_s3_credentials_signer(&s3->credentials, date, &signer)) {
        return xet_s3_error(error, XET_S3_LOCAL, 0, "OpenSSL failed");
    }

    r->generation = signer.generation;

    memcpy(headers, r->headers, r->nheaders * sizeof(xet_sigv4_pair_t));
    n = r->nheaders;

    headers[n++] = (xet_sigv4_pair_t) { "host", s3->url.host };
    headers[n++] = (xet_sigv4_pair_t) { "x-amz-date", date };
    headers[n++] = (xet_sigv4_pair_t) { "x-amz-content-sha256", r->sha256 };

    if (signer.token[0]) {
        headers[n++] = (xet_sigv4_pair_t) { "x-amz-security-token",
                                            signer.token };
    }

    sign.method = r->method;
    sign.path = r->path;
    sign.args = r->args;
    sign.nargs = r->nargs;
    sign.headers = headers;
    sign.nheaders = n;
    sign.payload = r->sha256;
    sign.date = date;
    sign.region = s3->conf->region;
    sign.service = XET_S3_SERVICE;

    len = strlen(s3->url.base);
    memcpy(r->url, s3->url.base, len);

    if (xet_sigv4_path(r->url + len, sizeof(r->url) - len, r->path) != XET_OK
        || xet_sigv4_header(authorization, sizeof(authorization), &sign,
                            signer.key, signer.id)
           != XET_OK
        || !xet_s3_request_lines(r, headers, n, authorization))
    {
        return xet_s3_error(error, XET_S3_LOCAL, 0, "a request can't be "
                            "signed");
    }

    if (r->nargs) {
        len = strlen(r->url);
        r->url[len++] = '?';

        if (len == sizeof(r->url)
            || xet_sigv4_args(r->url + len, sizeof(r->url) - len, r->args,
                              r->nargs)
               != XET_OK)
        {
            return xet_s3_error(error, XET_S3_LOCAL, 0, "a URL is too long");
        }
    }

    r->t.net.method = r->method;
    r->t.net.url = r->url;

    return XET_S3_OK;
}


static int
xet_s3_request_lines(xet_s3_request_t *r, const xet_sigv4_pair_t *headers,
    size_t n, const char *authorization)
{
    int     len;
    char   *p;
    size_t  i, room;

    p = r->text;
    room = sizeof(r->text);

    for (i = 0; i <= n; i++) {

        len = (i < n) ? snprintf(p, room, "%s: %s", headers[i].name,
                                 headers[i].value)
                      : snprintf(p, room, "authorization: %s", authorization);

        if (len < 0 || (size_t) len >= room || i == XET_S3_TRANSFER_HEADERS) {
            return 0;
        }

        r->t.headers[i] = p;

        p += len + 1;
        room -= (size_t) len + 1;
    }

    r->t.nheaders = n + 1;

    return 1;
}


/* Clears the response of the last attempt, and keeps the request. */

static void
xet_s3_request_reset(xet_s3_request_t *r)
{
    xet_s3_transfer_t  t;

    free(r->t.net.body);

    memset(&t, 0, sizeof(xet_s3_transfer_t));

    t.net.data = r->t.net.data;
    t.net.fd = r->t.net.fd;
    t.net.offset = r->t.net.offset;
    t.net.len = r->t.net.len;
    t.buf = r->t.buf;
    t.size = r->t.size;
    t.most = r->t.most;
    t.again = (r->t.net.method != NULL);

    r->t = t;
}


static xet_s3_verdict_t
xet_s3_request_judge(xet_s3_request_t *r, xet_s3_rc_t *rc,
    xet_s3_error_t *error)
{
    xet_status_t        status;
    xet_s3_verdict_t    verdict;
    xet_s3_transfer_t  *t;

    t = &r->t;

    xet_s3_breaker_tell(r->s3, t);

    memset(&r->answer, 0, sizeof(xet_s3xml_answer_t));

    if (t->net.rc == XET_NET_OK && t->net.body_len
        && (t->net.status / 100 != 2 || r->is_xml))
    {
        status = xet_s3xml_answer(&r->answer, (uint8_t *) t->net.body,
                                  t->net.body_len);

        if (status != XET_OK) {
            memset(&r->answer.error, 0, sizeof(xet_s3xml_error_t));

            if (t->net.status / 100 == 2) {
                *rc = xet_s3_error(error, XET_S3_BAD, t->net.status,
                                   "S3 %s of \"%.96s\": the answer is not "
                                   "what S3 answers", r->method,
                                   r->name ? r->name : "");
                return XET_S3_FINAL;
            }
        }
    }

    if (r->answer.error.region[0] == '\0' && t->net.status / 100 == 3) {
        memcpy(r->answer.error.region, t->region,
               sizeof(r->answer.error.region));
    }

    verdict = xet_s3_verdict(t, &r->answer.error, rc);

    /* a response to a HEAD has no body, so it has no error code */

    if (t->net.rc == XET_NET_OK && t->net.status == 404 && *rc == XET_S3_BAD
        && strcmp(r->method, "HEAD") == 0)
    {
        *rc = r->name ? XET_S3_NOT_FOUND : XET_S3_NO_BUCKET;
    }

    if (*rc == XET_S3_OK && !xet_s3_request_sum(r)) {
        *rc = xet_s3_error(error, XET_S3_BAD, t->net.status,
                           "S3 %s of \"%.96s\": the store has other bytes "
                           "than were sent", r->method,
                           r->name ? r->name : "");
        return XET_S3_REPEAT;
    }

    if (*rc != XET_S3_OK) {
        xet_s3_request_tell(r, *rc, error);
    }

    /* some stores, and responses to a HEAD, do not report a wrong clock */

    if (verdict == XET_S3_KEYS && xet_s3_request_skewed(r)) {
        return XET_S3_CLOCK;
    }

    return verdict;
}


static void
xet_s3_request_tell(xet_s3_request_t *r, xet_s3_rc_t rc,
    xet_s3_error_t *error)
{
    int64_t             then;
    const char         *name;
    xet_s3_transfer_t  *t;
    xet_s3xml_error_t  *e;

    t = &r->t;
    e = &r->answer.error;
    name = r->name ? r->name : "";

    if (t->net.rc != XET_NET_OK) {
        (void) xet_s3_error(error, rc, t->net.status, "S3 %s of \"%.96s\": %s",
                            r->method, name, t->net.why);
        return;
    }

    if (rc == XET_S3_CONF) {
        (void) xet_s3_error(error, rc, t->net.status,
                            "S3 %s: bucket \"%s\" is in region \"%s\", not in "
                            "\"%.32s\", or at another endpoint", r->method,
                            r->s3->url.bucket,
                            e->region[0] ? e->region : "?",
                            r->s3->conf->region);
        return;
    }

    then = xet_s3_time_http(t->date);

    if (rc == XET_S3_DENIED && then != -1
        && (strcmp(e->code, "RequestTimeTooSkewed") == 0
            || xet_s3_request_skewed(r)))
    {
        (void) xet_s3_error(error, rc, t->net.status,
                            "S3 %s of \"%.64s\" in bucket \"%s\": %d%s%s: the "
                            "clock of the store is %+lld s from that of this "
                            "machine", r->method, name, r->s3->url.bucket,
                            t->net.status, e->code[0] ? " " : "", e->code,
                            (long long) (then - (int64_t) time(NULL)));
        return;
    }

    (void) xet_s3_error(error, rc, t->net.status,
                        "S3 %s of \"%.96s\" in bucket \"%s\": %d%s%s%s%.96s",
                        r->method, name, r->s3->url.bucket, t->net.status,
                        e->code[0] ? " " : "", e->code,
                        e->message[0] ? ": " : "", e->message);
}


/* Compares the checksum in the response, if any, with the bytes sent. */

static int
xet_s3_request_sum(xet_s3_request_t *r)
{
    size_t   i;
    uint8_t  hash[32], sum[64];

    if (r->t.sum[0] == '\0' || strcmp(r->method, "PUT") != 0
        || r->t.net.len == 0)
    {
        return 1;
    }

    for (i = 0; i < sizeof(hash); i++) {
        hash[i] = (uint8_t) (xet_get_hex_digit((uint8_t) r->sha256[2 * i]) << 4
                             | xet_get_hex_digit((uint8_t)
                                                 r->sha256[2 * i + 1]));
    }

    (void) EVP_EncodeBlock(sum, hash, sizeof(hash));

    return strcmp((char *) sum, r->t.sum) == 0;
}


/* Returns whether the store's clock is far from the clock used for signing. */

static int
xet_s3_request_skewed(xet_s3_request_t *r)
{
    int64_t  then, now;

    then = xet_s3_time_http(r->t.date);

    (void) pthread_mutex_lock(&r->s3->lock);
    now = (int64_t) time(NULL) + r->s3->skew;
    (void) pthread_mutex_unlock(&r->s3->lock);

    return then != -1 && (then > now + XET_S3_REQUEST_SKEW
                          || then < now - XET_S3_REQUEST_SKEW);
}


/* Sets the skew from the "Date" of the response; returns 0 if unchanged. */

static int
xet_s3_request_clock(xet_s3_request_t *r)
{
    int        other;
    int64_t    then, skew;
    xet_s3_t  *s3;

    s3 = r->s3;
    then = xet_s3_time_http(r->t.date);

    if (then == -1) {
        return 0;
    }

    skew = then - (int64_t) time(NULL);

    (void) pthread_mutex_lock(&s3->lock);
    other = (skew > s3->skew + 1 || skew < s3->skew - 1);
    s3->skew = skew;
    (void) pthread_mutex_unlock(&s3->lock);

    return other;
}


/* Pauses before a retry; returns 0 if no time is left for a retry. */

static int
xet_s3_request_pause(xet_s3_request_t *r, unsigned n, uint64_t deadline)
{
    uint64_t         ms, now, random;
    xet_s3_t        *s3;
    struct timespec  pause;

    s3 = r->s3;

    now = xet_s3_time_ms();

    (void) pthread_mutex_lock(&s3->lock);

    /* forked processes inherit the random state, so it includes the pid */

    s3->random += now ^ (uint64_t) getpid() << 32;
    s3->random |= 1;
    s3->random ^= s3->random << 13;
    s3->random ^= s3->random >> 7;
    s3->random ^= s3->random << 17;
    random = s3->random;

    (void) pthread_mutex_unlock(&s3->lock);

    ms = (n < 6) ? (uint64_t) XET_S3_REQUEST_PAUSE << n
                 : XET_S3_REQUEST_PAUSE_MAX;
    ms = ms / 2 + random % (ms / 2 + 1);

    if (ms < (uint64_t) r->t.retry * 1000) {
        ms = (uint64_t) r->t.retry * 1000;
    }

    if (now + ms >= deadline) {
        return 0;
    }

    pause.tv_sec = (time_t) (ms / 1000);
    pause.tv_nsec = (long) (ms % 1000) * 1000000;

    (void) nanosleep(&pause, NULL);

    return 1;
}


static xet_s3_rc_t
xet_s3_request_untaken(xet_s3_request_t *r, xet_s3_error_t *error)
{
    if (xet_s3_transfers_stopped(r->s3->transfers)) {
        return xet_s3_error(error, XET_S3_ENDED, 0, "the client of S3 has "
                            "ended");
    }

    return xet_s3_error(error, XET_S3_LOCAL, 0, "the client of S3 has no "
                        "thread");
}
