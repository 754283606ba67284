
/*
 * Whether the store is to be asked at all.
 */

#ifndef _XET_S3_BREAKER_H_INCLUDED_
#define _XET_S3_BREAKER_H_INCLUDED_


#include "xet_s3_base.h"


typedef enum {
    XET_S3_CLOSED = 0,                 /* it answers */
    XET_S3_OPEN,                       /* it is not asked */
    XET_S3_TRIAL                       /* it is asked once */
} xet_s3_breaker_t;


/* *silent: for how long there was no answer, ms. */
xet_s3_breaker_t xet_s3_breaker_ask(xet_s3_t *s3, uint64_t *silent);

/* What has come of a transfer. */
void xet_s3_breaker_tell(xet_s3_t *s3, const xet_s3_transfer_t *t);

/* Whether only trials are let through. */
int xet_s3_breaker_is_open(xet_s3_t *s3);

/* A request gives up without an answer. */
void xet_s3_breaker_open(xet_s3_t *s3);


#endif /* _XET_S3_BREAKER_H_INCLUDED_ */
