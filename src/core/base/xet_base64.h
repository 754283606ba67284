
/*
 * base64url, RFC 4648 section 5, without padding.  Bytes have one spelling
 * only: spare bits of the last character must be zero, and there is neither
 * white space nor a second alphabet.
 */

#ifndef _XET_BASE64_H_INCLUDED_
#define _XET_BASE64_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


/* Number of characters for len bytes; len is at most SIZE_MAX / 4. */
#define xet_base64_encoded(len)  (((len) * 4 + 2) / 3)

/* Number of bytes in len characters, where len mod 4 is not 1. */
#define xet_base64_decoded(len)                                               \
    ((len) / 4 * 3 + ((len) % 4 ? (len) % 4 - 1 : 0))


/* Writes xet_base64_encoded(len) characters, no NUL; returns their end. */
uint8_t *xet_base64_encode(uint8_t *dst, const uint8_t *src, size_t len);

/*
 * Writes xet_base64_decoded(len) bytes and returns 1.  Returns 0 when src is
 * not the spelling of any bytes; dst may have been written to even so.
 */
int xet_base64_decode(uint8_t *dst, const uint8_t *src, size_t len);


#endif /* _XET_BASE64_H_INCLUDED_ */
