
/*
 * Inside of the CBOR decoder: heads of items.
 */

#ifndef _XET_CBOR_HEAD_H_INCLUDED_
#define _XET_CBOR_HEAD_H_INCLUDED_


#include "xet_cbor.h"


/*
 * A whole head, 1 to 9 bytes: where it lies, valid until the next window.
 * XET_OK, c->head_len is then the caller's to reset; XET_AGAIN; or
 * XET_ZT_MANIFEST, which stays, when the input ends inside of it.
 */
xet_status_t xet_cbor_head(xet_cbor_t *c, const uint8_t **head, size_t *len);

/* The value in a head: of its first byte, or big-endian after it. */
uint64_t xet_cbor_head_value(const uint8_t *head, size_t len);

/* Whether a value needs the length that the info of its head tells. */
int xet_cbor_head_shortest(unsigned info, uint64_t value);


#endif /* _XET_CBOR_HEAD_H_INCLUDED_ */
