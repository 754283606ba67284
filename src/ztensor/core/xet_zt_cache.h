
/*
 * The verdict on a file as bytes, to be kept beside the file and restored
 * when it is read again.  A saved verdict belongs to a file size and to
 * limits; both are compared, and the hash of the saved bytes is checked:
 * wherever they were kept, they are trusted less than the file is.
 */

#ifndef _XET_ZT_CACHE_H_INCLUDED_
#define _XET_ZT_CACHE_H_INCLUDED_


#include "xet_buf.h"
#include "xet_ztensor.h"


/* Bytes that xet_zt_save() writes at most. */
#define XET_ZT_SAVED_MAX       (256 * 1024)

/* A file with more ranges that overlap in part is not saved. */
#define XET_ZT_SAVED_OVERLAPS  4096


/*
 * A hash of all that a verdict depends on besides the file: the limits and the
 * revision of the checks.  A verdict that was saved under another hash is of
 * no use.
 */
uint64_t xet_zt_rules(const xet_zt_limits_t *limits);

/*
 * Writes the verdict on a file to b.  status: what xet_zt_need() has returned,
 * XET_OK or an error of the file.  The root's attributes are not written, the
 * caller has to keep them.  XET_OK; XET_DONE, with nothing written, when zt
 * holds more than XET_ZT_SAVED_OVERLAPS ranges; XET_NOMEM.
 */
xet_status_t xet_zt_save(const xet_zt_t *zt, xet_status_t status,
    xet_buf_t *b);

/*
 * Sets *zt to a record that is as if the file had been checked; the caller
 * destroys it, whatever is returned.  *zt may be NULL after XET_NOMEM.
 * attributes: the bytes of the root's attributes, copied; NULL when they are
 * not wanted, and then read as absent.
 *
 * XET_OK; the verdict that was saved; XET_NOMEM; or XET_ZT_STALE for bytes that
 * were not saved by these rules for a file of this size, and for attributes
 * that are not those of the saved file.
 */
xet_status_t xet_zt_restore(xet_zt_t **zt, uint64_t size,
    const xet_zt_limits_t *limits, const uint8_t *data, size_t len,
    const uint8_t *attributes, size_t attributes_len);


#endif /* _XET_ZT_CACHE_H_INCLUDED_ */
