
/*
 * CRC-32C (Castagnoli), as iSCSI and zTensor use it; not the CRC-32 of zlib
 * and of nginx.
 */

#ifndef _XET_CRC32C_H_INCLUDED_
#define _XET_CRC32C_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


/* Returns the CRC after data; crc: of the bytes before data, 0 at the start. */
uint32_t xet_crc32c(uint32_t crc, const uint8_t *data, size_t len);


#endif /* _XET_CRC32C_H_INCLUDED_ */
