
/*
 * The digest of a stored copy of a xorb, of bytes that come in pieces: XXH3 of
 * 128 bits, big-endian.
 */

#ifndef _XET_CHECKSUM_H_INCLUDED_
#define _XET_CHECKSUM_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


#define XET_CHECKSUM_LEN  16


typedef struct {
    uint8_t  bytes[XET_CHECKSUM_LEN];
} xet_checksum_t;


typedef struct xet_checksum_state_s  xet_checksum_state_t;


/* A new state is reset, NULL when out of memory; destroy takes NULL. */
xet_checksum_state_t *xet_checksum_create(void);
void xet_checksum_destroy(xet_checksum_state_t *s);
void xet_checksum_reset(xet_checksum_state_t *s);
void xet_checksum_update(xet_checksum_state_t *s, const void *data,
    size_t len);

/* Sets *out to the checksum of all bytes since the last reset. */
void xet_checksum_finish(const xet_checksum_state_t *s, xet_checksum_t *out);

int xet_checksum_equal(const xet_checksum_t *a, const xet_checksum_t *b);


#endif /* _XET_CHECKSUM_H_INCLUDED_ */
