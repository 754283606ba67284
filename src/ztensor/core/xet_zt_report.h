
/*
 * What verifying the components of an object has found, as bytes to be kept
 * beside the file.
 */

#ifndef _XET_ZT_REPORT_H_INCLUDED_
#define _XET_ZT_REPORT_H_INCLUDED_


#include "xet_zt_cache.h"
#include "xet_zt_verifier.h"


#define XET_ZT_REPORT_LEN  2               /* bytes a component */


/* What a report depends on besides the file; see xet_zt_rules(). */
uint64_t xet_zt_report_rules(const xet_zt_limits_t *limits,
    const xet_zt_decode_limits_t *decode);

/* Fills XET_ZT_REPORT_LEN bytes; returns 0 if a report must not be kept. */
int xet_zt_report_pack(uint8_t *dst, const xet_zt_report_t *report);

/* Reads XET_ZT_REPORT_LEN bytes; returns 0 if no report packs to them. */
int xet_zt_report_unpack(xet_zt_report_t *report, const uint8_t *src);


#endif /* _XET_ZT_REPORT_H_INCLUDED_ */
