
/*
 * The result of a response, and whether to retry the request.
 */

#ifndef _XET_S3_VERDICT_H_INCLUDED_
#define _XET_S3_VERDICT_H_INCLUDED_


#include "xet_s3_base.h"


typedef enum {
    XET_S3_FINAL = 0,                  /* a retry would not help */
    XET_S3_REPEAT,                     /* retry after a pause */
    XET_S3_KEYS,                       /* retry with other keys */
    XET_S3_CLOCK                       /* retry with the store's clock */
} xet_s3_verdict_t;


/*
 * Sets *rc to the result of a transfer, and returns whether to retry.  e is
 * the error in the response body, or all zero.
 */
xet_s3_verdict_t xet_s3_verdict(const xet_s3_transfer_t *t,
    const xet_s3xml_error_t *e, xet_s3_rc_t *rc);


#endif /* _XET_S3_VERDICT_H_INCLUDED_ */
