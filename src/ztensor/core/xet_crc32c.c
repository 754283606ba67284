
/*
 * CRC-32C, by ISA-L, which picks what the processor is best at.
 *
 * Purpose:    one of the two digests of container 1.
 * States:     a number, kept by the caller.
 * Ownership:  none.
 * Threads:    any.
 *
 * ISA-L names the sum after iSCSI and leaves the inversions before and after
 * it to the caller.
 */


#include <limits.h>

#include <isa-l/crc.h>

#include "xet_zt.h"


uint32_t
xet_crc32c(uint32_t crc, const uint8_t *data, size_t len)
{
    int  n;

    crc = ~crc;

    while (len) {
        n = (len > INT_MAX) ? INT_MAX : (int) len;

        /* not const in the library's declaration, but only read */

        crc = crc32_iscsi((unsigned char *) data, n, crc);

        data += n;
        len -= (size_t) n;
    }

    return ~crc;
}
