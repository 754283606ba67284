
/*
 * The verdict on a file as bytes, to be kept beside the file and restored
 * when it is read again.  What is kept belongs to a size and to limits, and
 * is held against both, and against itself: wherever it was, it is trusted
 * less than the file is.
 */

#ifndef _XET_ZT_CACHE_H_INCLUDED_
#define _XET_ZT_CACHE_H_INCLUDED_


#include "xet_buf.h"
#include "xet_ztensor.h"


/* Bytes that xet_zt_save() writes at most. */
#define XET_ZT_SAVED_MAX       (256 * 1024)

/* Components that overlap another in part, for a file to be kept. */
#define XET_ZT_SAVED_OVERLAPS  4096


/*
 * What a verdict depends on besides the file: the limits, and the rules that
 * this code has.  Verdicts of other rules are of no use.
 */
uint64_t xet_zt_rules(const xet_zt_limits_t *limits);

/*
 * status: what xet_zt_need() has returned, XET_OK or a verdict.  The root's
 * attributes are not written, they are the caller's to keep.  XET_DONE when
 * the file has too many overlaps to be kept.
 */
xet_status_t xet_zt_save(const xet_zt_t *zt, xet_status_t status,
    xet_buf_t *b);

/*
 * *zt: as if it had been checked, to be destroyed by the caller whatever is
 * returned; NULL when out of memory.  attributes: those of the root, copied;
 * NULL when they are not wanted, they read as absent then.
 *
 * XET_OK, the verdict that was saved, XET_NOMEM, or XET_ZT_STALE for anything
 * that was not saved by these rules for a file of this size.
 */
xet_status_t xet_zt_restore(xet_zt_t **zt, uint64_t size,
    const xet_zt_limits_t *limits, const uint8_t *data, size_t len,
    const uint8_t *attributes, size_t attributes_len);


#endif /* _XET_ZT_CACHE_H_INCLUDED_ */
