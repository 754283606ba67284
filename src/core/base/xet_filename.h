
/*
 * A name under which a client shall keep a file: from the argument of a URL to
 * the Content-Disposition header (RFC 6266, RFC 8187).
 */

#ifndef _XET_FILENAME_H_INCLUDED_
#define _XET_FILENAME_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_status.h"


#define XET_FILENAME_MAX  255          /* bytes, as file systems have it */


/*
 * Decodes the percent-encoded argument into dst, which has room for
 * XET_FILENAME_MAX bytes, and makes it harmless: slashes of either kind,
 * control characters and a dot at the beginning become underscores.  A plus
 * sign stays a plus sign.  Sets *len on XET_OK.  XET_FILENAME for a malformed
 * escape, or when the name is not 1..XET_FILENAME_MAX bytes of UTF-8.
 */
xet_status_t xet_filename_decode(uint8_t *dst, size_t *len,
    const uint8_t *src, size_t src_len);

/*
 * Returns the part of name after its last dot, and its length in *ext_len; NULL
 * and 0 when name has no dot.
 */
const uint8_t *xet_filename_extension(const uint8_t *name, size_t len,
    size_t *ext_len);

/*
 * Writes the value of the header for a decoded name; returns the end of the
 * value.  dst has room for XET_FILENAME_HEADER(len) bytes.  A name with a
 * quote, a percent sign or a byte beyond ASCII is written twice: with
 * underscores for these, and encoded (RFC 8187), the form that clients prefer.
 */
#define XET_FILENAME_HEADER(len)                                              \
    (sizeof("attachment; filename=\"\"; filename*=UTF-8''") + 4 * (len))

uint8_t *xet_filename_header(uint8_t *dst, const uint8_t *name, size_t len);


#endif /* _XET_FILENAME_H_INCLUDED_ */
