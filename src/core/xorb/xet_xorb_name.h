
/*
 * The name under which a xorb's bytes are stored: the hash string, and behind
 * a dot the tag, 8 hex digits.
 *
 * A xorb's hash covers its chunks and not how they are compressed and laid
 * out, so the same xorb can arrive in many encodings.  The tag tells the copies
 * apart: it is drawn anew for every stored copy, and a name never comes to mean
 * other bytes.  Tag 0 is the tag of copies from before there were tags; their
 * names are the hash string alone.
 */

#ifndef _XET_XORB_NAME_H_INCLUDED_
#define _XET_XORB_NAME_H_INCLUDED_


#include "xet_hash.h"


#define XET_XORB_NAME_MAX  (XET_HASH_STR_LEN + 1 + 8)


/* Writes XET_XORB_NAME_MAX bytes at most, no NUL; returns their end. */
uint8_t *xet_xorb_name_print(uint8_t *dst, const xet_hash_t *xorb,
    uint32_t tag);

/*
 * Parses the one spelling that xet_xorb_name_print() writes.  XET_HASH_SYNTAX
 * for any other text; *xorb and *tag are left alone then.
 */
xet_status_t xet_xorb_name_parse(xet_hash_t *xorb, uint32_t *tag,
    const uint8_t *src, size_t len);


#endif /* _XET_XORB_NAME_H_INCLUDED_ */
