
/*
 * What an answer means, and whether to ask again.
 */

#ifndef _XET_S3_VERDICT_H_INCLUDED_
#define _XET_S3_VERDICT_H_INCLUDED_


#include "xet_s3_base.h"


typedef enum {
    XET_S3_FINAL = 0,                  /* another try would get the same */
    XET_S3_REPEAT,                     /* after a pause */
    XET_S3_KEYS,                       /* with other keys */
    XET_S3_CLOCK                       /* by another clock */
} xet_s3_verdict_t;


/* e is that of the body, all zero where there is none.  Sets *rc. */
xet_s3_verdict_t xet_s3_verdict(const xet_s3_transfer_t *t,
    const xet_s3xml_error_t *e, xet_s3_rc_t *rc);


#endif /* _XET_S3_VERDICT_H_INCLUDED_ */
