
/*
 * Reports as bytes.
 *
 * Purpose:    the data of a file never changes, so a report on it is kept and
 *             the data need not be read again.
 * States:     none.
 * Ownership:  the caller's memory.
 * Threads:    any.
 *
 * Statuses are kept by their place in a table of their own, which only grows
 * at its end.
 */


#include <xxhash.h>

#include "xet_bytes.h"
#include "xet_zt.h"


static const xet_status_t  xet_zt_report_statuses[] = {
    XET_OK, XET_ZT_ZSTD, XET_ZT_LENGTH, XET_ZT_VALUES, XET_ZT_WINDOW,
    XET_ZT_DECODE_SIZE, XET_ZT_BOUNDS, XET_ZT_HEADER, XET_ZT_INDICES,
    XET_ZT_UNCHECKED
};

#define XET_ZT_REPORT_STATUSES                                                \
    (sizeof(xet_zt_report_statuses) / sizeof(xet_zt_report_statuses[0]))


uint64_t
xet_zt_report_rules(const xet_zt_limits_t *limits,
    const xet_zt_decode_limits_t *decode)
{
    uint8_t  bytes[24];

    xet_put_u64(bytes, xet_zt_rules(limits));
    xet_put_u64(bytes + 8, decode->output);
    xet_put_u64(bytes + 16, decode->window_log);

    return XXH3_64bits(bytes, sizeof(bytes));
}


int
xet_zt_report_pack(uint8_t *dst, const xet_zt_report_t *report)
{
    unsigned  i;

    for (i = 0; i < XET_ZT_REPORT_STATUSES; i++) {
        if (xet_zt_report_statuses[i] == report->status) {
            dst[0] = (uint8_t) report->digest;
            dst[1] = (uint8_t) i;

            return 1;
        }
    }

    return 0;
}


int
xet_zt_report_unpack(xet_zt_report_t *report, const uint8_t *src)
{
    if (src[0] > XET_ZT_DIGEST_UNREADABLE || src[1] >= XET_ZT_REPORT_STATUSES)
    {
        return 0;
    }

    report->digest = (xet_zt_digest_verdict_t) src[0];
    report->status = xet_zt_report_statuses[src[1]];

    return 1;
}
