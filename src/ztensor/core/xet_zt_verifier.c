
/*
 * Verification of a component.
 *
 * Purpose:    verifies the digest, and that zstd decodes to the length that
 *             the shape requires, in one pass over the stored bytes.
 *             xet_zt_sparse.c checks decoded indices.
 * States:     with or without a digest, with or without a decoder; an error of
 *             the digest does not stop the decoder, and vice versa.
 * Ownership:  digest, decoder and buffers are allocated once and reused for
 *             all components.
 * Threads:    one at a time.
 *
 * A digest covers the stored bytes in container 1 and the decoded bytes in
 * container 2.  Without decoded bytes, a digest of container 2 is not checked.
 *
 * A kilobyte of zstd may decode to a megabyte.  So the unit of work is a byte
 * that was decoded, or cleared to compare indices.  The caller limits the work
 * of a call and the decoded bytes of a component.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


#define XET_ZT_VERIFIER_BUFFER  65536
#define XET_ZT_VERIFIER_WHOLE   (1024 * 1024)      /* bytes of each form */
#define XET_ZT_VERIFIER_INDEX   (16 * 1024 * 1024)


struct xet_zt_verifier_s {
    xet_zt_digest_t          digest;
    xet_zt_decoder_t        *decoder;
    xet_zt_sparse_t         *sparse;
    uint8_t                 *whole;        /* stored, then decoded bytes */
    size_t                   stored;       /* stored bytes in whole so far */

    unsigned                 decode:1;     /* the component is decoded */
    unsigned                 at_once:1;    /* decode all in one call */
    unsigned                 indices:1;    /* check a sparse object */
    unsigned                 decoded:1;    /* digest covers decoded bytes */
    unsigned                 values:1;     /* check values of bool, f4 */
    unsigned                 skip:1;       /* the digest is not checked */

    const xet_zt_object_t     *object;
    const xet_zt_component_t  *component;
    uint64_t                   length;     /* stored bytes */
    uint64_t                   left;       /* stored bytes not yet fed */
    uint64_t                   limit;      /* maximum value of produced */
    uint64_t                   produced;   /* decoded bytes so far */
    uint64_t                   work;       /* bytes of work so far */
    xet_status_t               status;
    uint8_t                    last;       /* the last decoded byte */

    uint8_t                  buf[XET_ZT_VERIFIER_BUFFER];
};


static xet_status_t xet_zt_verifier_coding(xet_zt_verifier_t *v);
static xet_status_t xet_zt_verifier_some(xet_zt_verifier_t *v,
    const uint8_t **data, size_t *len, uint64_t stop);
static xet_status_t xet_zt_verifier_decode(xet_zt_verifier_t *v,
    const uint8_t **data, size_t *len, uint64_t stop);
static xet_status_t xet_zt_verifier_whole(xet_zt_verifier_t *v,
    const uint8_t *data, size_t len);
static xet_status_t xet_zt_verifier_plain(xet_zt_verifier_t *v,
    const uint8_t *data, size_t len);
static xet_status_t xet_zt_verifier_ended(xet_zt_verifier_t *v);
static void xet_zt_verifier_values(xet_zt_verifier_t *v);
static void xet_zt_verifier_failed(xet_zt_verifier_t *v, xet_status_t status);


xet_zt_verifier_t *
xet_zt_verifier_create(const xet_zt_decode_limits_t *limits)
{
    xet_zt_verifier_t  *v;

    v = malloc(sizeof(xet_zt_verifier_t));
    if (v == NULL) {
        return NULL;
    }

    xet_zt_digest_init(&v->digest);

    v->whole = NULL;
    v->limit = UINT64_MAX;
    v->decoder = xet_zt_decoder_create(limits);
    v->sparse = xet_zt_sparse_create(XET_ZT_VERIFIER_INDEX);

    if (v->decoder == NULL || v->sparse == NULL) {
        xet_zt_verifier_destroy(v);
        return NULL;
    }

    return v;
}


void
xet_zt_verifier_destroy(xet_zt_verifier_t *v)
{
    if (v == NULL) {
        return;
    }

    xet_zt_digest_destroy(&v->digest);
    xet_zt_decoder_destroy(v->decoder);
    xet_zt_sparse_destroy(v->sparse);
    free(v->whole);
    free(v);
}


void
xet_zt_verifier_limit(xet_zt_verifier_t *v, uint64_t limit)
{
    v->limit = limit;
}


xet_status_t
xet_zt_verifier_start(xet_zt_verifier_t *v, const xet_zt_region_t *region,
    const xet_zt_object_t *o, const xet_zt_component_t *c, xet_range_t *range)
{
    xet_status_t  rc;

    v->object = o;
    v->component = c;
    v->decode = 0;
    v->at_once = 0;
    v->stored = 0;
    v->decoded = (region->container == XET_ZT_CONTAINER_2);
    v->values = (c->element != NULL
                 && c->element->values != XET_ZT_VALUES_ANY);
    v->skip = 0;
    v->length = 0;
    v->left = 0;
    v->produced = 0;
    v->work = 0;
    v->status = XET_OK;
    v->last = 0;

    rc = xet_zt_digest_start(&v->digest, &c->digest, region->container);
    if (rc != XET_OK) {
        return rc;
    }

    v->indices = xet_zt_sparse_start(v->sparse, region->container, o, c) != 0;

    if (c->shard.data) {
        v->skip = 1;
        v->indices = 0;
        v->status = XET_ZT_UNCHECKED;
        return XET_DONE;
    }

    v->status = xet_zt_component_range(c, region, range);

    if (v->status != XET_OK) {
        return XET_DONE;
    }

    v->length = range->end - range->start;
    v->left = v->length;

    rc = xet_zt_verifier_coding(v);

    return (rc == XET_OK) ? XET_AGAIN : rc;
}


/*
 * Starts the decoder.  Returns XET_OK or XET_NOMEM.  If the component cannot
 * be decoded, v->status is set to the error.
 *
 * A small component is decoded in one call, as for a response with its decoded
 * data, so that no window is too large.
 */

static xet_status_t
xet_zt_verifier_coding(xet_zt_verifier_t *v)
{
    xet_status_t               rc;
    const xet_zt_component_t  *c;

    c = v->component;

    switch (c->coding) {

    case XET_ZT_CODING_RAW:
        return XET_OK;

    case XET_ZT_CODING_UNKNOWN:
        v->skip = v->decoded;
        v->values = 0;
        v->indices = 0;
        v->status = XET_ZT_UNCHECKED;
        return XET_OK;

    default: /* zstd, with or without a seek table */
        break;
    }

    v->decode = 1;

    rc = xet_zt_decoder_start(v->decoder, (int) c->has_decoded, c->decoded);

    if (rc != XET_OK) {
        xet_zt_verifier_failed(v, rc);
        return XET_OK;
    }

    if (c->has_decoded && c->decoded <= XET_ZT_VERIFIER_WHOLE
        && v->left && v->left <= XET_ZT_VERIFIER_WHOLE)
    {
        v->at_once = 1;

        if (v->whole == NULL) {
            v->whole = malloc(2 * XET_ZT_VERIFIER_WHOLE);
        }

        if (v->whole == NULL) {
            return XET_NOMEM;
        }
    }

    return XET_OK;
}


xet_status_t
xet_zt_verifier_feed(xet_zt_verifier_t *v, const uint8_t *data, size_t len)
{
    uint64_t      room;
    xet_status_t  rc;

    do {
        room = UINT64_MAX;
        rc = xet_zt_verifier_take(v, &data, &len, &room);
    } while (rc == XET_AGAIN);

    return rc;
}


xet_status_t
xet_zt_verifier_take(xet_zt_verifier_t *v, const uint8_t **data, size_t *len,
    uint64_t *room)
{
    size_t          n, past;
    uint64_t        before, done;
    xet_status_t    rc, digested;
    const uint8_t  *start;

    n = (*len > v->left) ? (size_t) v->left : *len;

    past = *len - n;
    start = *data;
    before = v->work;

    rc = xet_zt_verifier_some(v, data, &n,
                              (*room > UINT64_MAX - before)
                              ? UINT64_MAX : before + *room);

    v->left -= (uint64_t) (*data - start);

    if (!v->decoded && v->component->coding != XET_ZT_CODING_RAW) {
        digested = xet_zt_digest_update(&v->digest, start,
                                        (size_t) (*data - start));

        rc = (digested == XET_OK) ? rc : digested;
    }

    done = v->work - before;

    *len = n + past;
    *room -= (done < *room) ? done : *room;

    if (rc == XET_OK) {
        *data += past;
        *len = 0;
    }

    return rc;
}


/* Processes bytes; returns XET_AGAIN if v->work reaches stop before the end. */

static xet_status_t
xet_zt_verifier_some(xet_zt_verifier_t *v, const uint8_t **data, size_t *len,
    uint64_t stop)
{
    size_t          n;
    xet_status_t    rc;
    const uint8_t  *p;

    if (v->decode && !v->at_once) {
        rc = xet_zt_verifier_decode(v, data, len, stop);

        if (rc != XET_OK) {
            return rc;
        }
    }

    p = *data;
    n = *len;

    *data += n;
    *len = 0;

    if (v->component->coding == XET_ZT_CODING_RAW) {
        return xet_zt_verifier_plain(v, p, n);
    }

    return (v->decode && v->at_once && n) ? xet_zt_verifier_whole(v, p, n)
                                          : XET_OK;
}


static xet_status_t
xet_zt_verifier_decode(xet_zt_verifier_t *v, const uint8_t **data, size_t *len,
    uint64_t stop)
{
    size_t        n;
    xet_status_t  rc;

    do {
        if (v->work >= stop) {
            return XET_AGAIN;
        }

        n = sizeof(v->buf);

        rc = xet_zt_decoder_feed(v->decoder, data, len, v->buf, &n);

        if (rc != XET_AGAIN) {

            if (rc == XET_NOMEM || rc == XET_INTERNAL) {
                return rc;
            }

            xet_zt_verifier_failed(v, rc);
            return XET_OK;
        }

        v->produced += n;

        if (v->produced > v->limit) {
            xet_zt_verifier_failed(v, XET_ZT_VERIFY_SIZE);
            return XET_OK;
        }

        rc = xet_zt_verifier_plain(v, v->buf, n);
        if (rc != XET_OK) {
            return rc;
        }

    } while (*len || n == sizeof(v->buf));

    return XET_OK;
}


static xet_status_t
xet_zt_verifier_whole(xet_zt_verifier_t *v, const uint8_t *data, size_t len)
{
    size_t        n;
    uint8_t      *out;
    xet_status_t  rc;

    memcpy(v->whole + v->stored, data, len);
    v->stored += len;

    if (v->stored < v->length) {
        return XET_OK;
    }

    n = (size_t) v->component->decoded;
    out = v->whole + XET_ZT_VERIFIER_WHOLE;

    rc = xet_zt_decode(v->whole, v->stored, out, n);

    if (rc == XET_OK) {
        return xet_zt_verifier_plain(v, out, n);
    }

    if (rc == XET_NOMEM) {
        return rc;
    }

    /* the error may be in the last byte, after all other bytes were decoded */

    v->work += n;

    xet_zt_verifier_failed(v, rc);

    return XET_OK;
}


/* Processes decoded bytes. */

static xet_status_t
xet_zt_verifier_plain(xet_zt_verifier_t *v, const uint8_t *data, size_t len)
{
    size_t        i;
    uint8_t       bits;
    xet_status_t  rc;

    if (len == 0) {
        return XET_OK;
    }

    v->last = data[len - 1];
    v->work += len;

    if (v->indices) {
        rc = xet_zt_sparse_feed(v->sparse, data, len);

        v->work += xet_zt_sparse_cleared(v->sparse);

        if (rc != XET_OK) {
            return rc;
        }
    }

    if (v->values && v->component->element->values == XET_ZT_VALUES_BOOL) {
        bits = 0;

        for (i = 0; i < len; i++) {
            bits |= data[i];
        }

        if (bits > 1 && v->status == XET_OK) {
            v->status = XET_ZT_VALUES;
        }
    }

    /* the stored bytes of a raw component are its decoded bytes */

    if (v->decoded || v->component->coding == XET_ZT_CODING_RAW) {
        return xet_zt_digest_update(&v->digest, data, len);
    }

    return XET_OK;
}


xet_status_t
xet_zt_verifier_finish(xet_zt_verifier_t *v, xet_zt_report_t *report)
{
    xet_status_t  rc;

    if (v->left) {
        return XET_INTERNAL;
    }

    rc = xet_zt_verifier_ended(v);
    if (rc != XET_OK) {
        return rc;
    }

    report->status = v->status;
    report->digest = v->digest.verdict;

    if (v->status == XET_ZT_VERIFY_SIZE) {
        report->digest = XET_ZT_DIGEST_UNCHECKED;
        return XET_OK;
    }

    if (v->digest.kind == XET_ZT_DIGEST_NONE) {

        /* "unreadable" takes precedence over "absent" */

        if (report->digest == XET_ZT_DIGEST_ABSENT
            && (v->status == XET_ZT_ZSTD || v->status == XET_ZT_LENGTH
                || v->status == XET_ZT_BOUNDS || v->status == XET_ZT_HEADER))
        {
            report->digest = XET_ZT_DIGEST_UNREADABLE;
        }

        return XET_OK;
    }

    if (v->skip) {
        report->digest = (v->status == XET_ZT_ZSTD
                          || v->status == XET_ZT_LENGTH)
                         ? XET_ZT_DIGEST_UNREADABLE
                         : XET_ZT_DIGEST_UNSUPPORTED;
        return XET_OK;
    }

    if (v->status == XET_ZT_BOUNDS || v->status == XET_ZT_HEADER) {
        return XET_OK;
    }

    return xet_zt_digest_finish(&v->digest, &report->digest);
}


/* Performs the checks that are possible only at the end of a component. */

static xet_status_t
xet_zt_verifier_ended(xet_zt_verifier_t *v)
{
    xet_status_t  rc;

    if (v->decode && !v->at_once) {
        rc = xet_zt_decoder_finish(v->decoder);

        if (rc == XET_NOMEM || rc == XET_INTERNAL) {
            return rc;
        }

        if (rc != XET_OK) {
            xet_zt_verifier_failed(v, rc);
        }
    }

    if (v->values && v->status == XET_OK) {
        xet_zt_verifier_values(v);
    }

    if (v->indices && v->status == XET_OK) {
        v->status = xet_zt_sparse_finish(v->sparse);
    }

    return XET_OK;
}


/* Checks that the unused half of the last byte is 0. */

static void
xet_zt_verifier_values(xet_zt_verifier_t *v)
{
    const xet_zt_object_t  *o;

    o = v->object;

    if (v->component->element->values == XET_ZT_VALUES_NIBBLE
        && xet_zt_text_is(&o->format, "dense")
        && o->has_count && (o->count & 1)
        && (v->last & 0xf0))
    {
        v->status = XET_ZT_VALUES;
    }
}


static void
xet_zt_verifier_failed(xet_zt_verifier_t *v, xet_status_t status)
{
    v->decode = 0;
    v->skip = v->decoded;
    v->status = status;
}


uint64_t
xet_zt_verifier_work(const xet_zt_verifier_t *v)
{
    return v->work;
}


int
xet_zt_report_ok(const xet_zt_report_t *report, xet_zt_container_t container)
{
    switch (report->digest) {

    case XET_ZT_DIGEST_VERIFIED:
    case XET_ZT_DIGEST_ABSENT:
        break;

    default:
        return 0;
    }

    switch (report->status) {

    case XET_OK:
        return 1;

    case XET_ZT_VALUES:

        /* early specifications leave bools other than 0 and 1 undefined */

        return container == XET_ZT_CONTAINER_1;

    default:
        return 0;
    }
}
