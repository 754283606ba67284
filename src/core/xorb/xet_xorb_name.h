
/*
 * The name under which a xorb's bytes are stored: the hash string, and behind
 * a dot the tag, 8 hex digits.
 *
 * A xorb's hash covers its chunks and not how they are compressed and laid
 * out, so the same xorb can arrive in many encodings.  The tag tells them
 * apart: it is drawn anew for every stored copy, and what a name has meant
 * once it means for ever.  Tag 0 is of stores that were filled before there
 * were tags; it is not written.
 */

#ifndef _XET_XORB_NAME_H_INCLUDED_
#define _XET_XORB_NAME_H_INCLUDED_


#include "xet_hash.h"


#define XET_XORB_NAME_MAX  (XET_HASH_STR_LEN + 1 + 8)


/* XET_XORB_NAME_MAX bytes at most, no zero byte; returns their end. */
uint8_t *xet_xorb_name_print(uint8_t *dst, const xet_hash_t *xorb,
    uint32_t tag);

/*
 * The one spelling that print writes, in lower case; else XET_HASH_SYNTAX,
 * and *xorb and *tag are left alone.
 */
xet_status_t xet_xorb_name_parse(xet_hash_t *xorb, uint32_t *tag,
    const uint8_t *src, size_t len);


#endif /* _XET_XORB_NAME_H_INCLUDED_ */
