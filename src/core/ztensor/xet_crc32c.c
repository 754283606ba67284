
/*
 * CRC-32C, eight bytes a step by eight tables.
 *
 * Purpose:    one of the two digests of container 1.
 * States:     a number, kept by the caller.
 * Ownership:  constant tables only.
 * Threads:    any.
 *
 * This is about as fast as SHA-256 is on processors that have instructions for
 * it, so it does without those for CRC-32C.
 */


#include "xet_bytes.h"
#include "xet_crc32c.h"
#include "xet_crc32c_table.h"


uint32_t
xet_crc32c(uint32_t crc, const uint8_t *data, size_t len)
{
    uint32_t  next;

    crc = ~crc;

    while (len >= 8) {
        crc ^= xet_get_u32(data);
        next = xet_get_u32(data + 4);

        crc = xet_crc32c_table[7][crc & 0xff]
              ^ xet_crc32c_table[6][crc >> 8 & 0xff]
              ^ xet_crc32c_table[5][crc >> 16 & 0xff]
              ^ xet_crc32c_table[4][crc >> 24]
              ^ xet_crc32c_table[3][next & 0xff]
              ^ xet_crc32c_table[2][next >> 8 & 0xff]
              ^ xet_crc32c_table[1][next >> 16 & 0xff]
              ^ xet_crc32c_table[0][next >> 24];

        data += 8;
        len -= 8;
    }

    while (len--) {
        crc = crc >> 8 ^ xet_crc32c_table[0][(crc ^ *data++) & 0xff];
    }

    return ~crc;
}
