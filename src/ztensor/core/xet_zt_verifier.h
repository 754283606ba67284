
/*
 * Components held against their digests and lengths, as their stored bytes
 * come.
 */

#ifndef _XET_ZT_VERIFIER_H_INCLUDED_
#define _XET_ZT_VERIFIER_H_INCLUDED_


#include "xet_zt_decoder.h"
#include "xet_zt_digest.h"


typedef struct {
    xet_zt_digest_verdict_t  digest;

    /*
     * XET_OK; XET_ZT_ZSTD, XET_ZT_LENGTH, XET_ZT_VALUES, XET_ZT_INDICES;
     * XET_ZT_WINDOW, XET_ZT_DECODE_SIZE when the component was not decoded;
     * XET_ZT_VERIFY_SIZE when it was too much; XET_ZT_UNCHECKED when something
     * else was left out; XET_ZT_BOUNDS, XET_ZT_HEADER when its range must not
     * be read.
     */
    xet_status_t             status;
} xet_zt_report_t;


typedef struct xet_zt_verifier_s  xet_zt_verifier_t;


/* NULL when out of memory. */
xet_zt_verifier_t *xet_zt_verifier_create(
    const xet_zt_decode_limits_t *limits);
void xet_zt_verifier_destroy(xet_zt_verifier_t *v);

/*
 * Of components that begin behind this: how many bytes the decoder may give
 * for one whose length is not known.  XET_ZT_VERIFY_SIZE past them.  Without
 * it what the limits of decoding say.
 */
void xet_zt_verifier_limit(xet_zt_verifier_t *v, uint64_t limit);

/*
 * Begins with component c of o, an object that has been checked; both stay
 * until the end.  Indices are checked against the components of o that were
 * verified just before, of which "values" should be the first.  XET_AGAIN with
 * the range of the file whose bytes are to be fed; XET_DONE when there is
 * nothing to read; XET_NOMEM.
 */
xet_status_t xet_zt_verifier_start(xet_zt_verifier_t *v,
    const xet_zt_region_t *region, const xet_zt_object_t *o,
    const xet_zt_component_t *c, xet_range_t *range);

/*
 * Takes the next bytes of the range; bytes past it are ignored.  XET_OK,
 * XET_NOMEM, XET_INTERNAL.
 */
xet_status_t xet_zt_verifier_feed(xet_zt_verifier_t *v, const uint8_t *data,
    size_t len);

/*
 * The same, for a part: moves *data and *len past what was taken, and takes the
 * work that was done off *room, in bytes.  XET_AGAIN when that is used up, with
 * the rest of the data, or nothing, in *len: to be called again with other
 * room.  It may exceed the room by a buffer, or by what is decoded as a whole:
 * up to 1 MiB, and what indices need to be compared.
 */
xet_status_t xet_zt_verifier_take(xet_zt_verifier_t *v, const uint8_t **data,
    size_t *len, uint64_t *room);

/*
 * Sets *report.  Called after all bytes of the range, or at once where there
 * was nothing to read.  XET_OK, XET_NOMEM; XET_INTERNAL also when bytes are
 * missing.
 */
xet_status_t xet_zt_verifier_finish(xet_zt_verifier_t *v,
    xet_zt_report_t *report);

/* What the component has taken so far: bytes decoded, or cleared. */
uint64_t xet_zt_verifier_work(const xet_zt_verifier_t *v);

/*
 * Whether the report is no ground for complaint: all that is declared was
 * checked, and nothing contradicts it.
 */
int xet_zt_report_ok(const xet_zt_report_t *report,
    xet_zt_container_t container);


#endif /* _XET_ZT_VERIFIER_H_INCLUDED_ */
