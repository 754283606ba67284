
/*
 * zstd frames: the verdict does not depend on the split of the input, and if
 * the frames are found to be complete, libzstd accepts them, too.
 *
 * Input: a byte with the size of the pieces, then frames.
 */


#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "xet_ztensor.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t           n, pos, step, len;
    xet_status_t     rc;
    xet_zt_frames_t  one, two;

    if (size == 0) {
        return 0;
    }

    step = (size_t) data[0] + 1;
    data++;
    len = size - 1;

    xet_zt_frames_init(&one);
    (void) xet_zt_frames_feed(&one, data, len);
    rc = xet_zt_frames_finish(&one);

    xet_zt_frames_init(&two);

    for (pos = 0; pos < len; pos += n) {
        n = (len - pos < step) ? len - pos : step;
        (void) xet_zt_frames_feed(&two, data + pos, n);
    }

    check(xet_zt_frames_finish(&two) == rc);
    check(one.n == two.n && one.window == two.window);
    check(one.dictionary == two.dictionary);

    if (rc != XET_OK) {
        check(rc == XET_ZT_ZSTD);
        return 0;
    }

    /*
     * libzstd does not look for the end of a frame that needs more memory than
     * this limit
     */

    if (one.window > (uint64_t) 1 << 31) {
        return 0;
    }

    for (pos = 0; pos < len; pos += n) {
        n = ZSTD_findFrameCompressedSize(data + pos, len - pos);
        check(!ZSTD_isError(n) && n);
    }

    return 0;
}
