
/*
 * The circuit breaker: decides whether requests are sent to the store.
 */

#ifndef _XET_S3_BREAKER_H_INCLUDED_
#define _XET_S3_BREAKER_H_INCLUDED_


#include "xet_s3_base.h"


typedef enum {
    XET_S3_CLOSED = 0,                 /* requests are sent */
    XET_S3_OPEN,                       /* requests fail immediately */
    XET_S3_TRIAL                       /* this request is sent as a trial */
} xet_s3_breaker_t;


/*
 * Returns whether a request may be sent.  *silent is the time for which the
 * store has sent no response, in ms.
 */
xet_s3_breaker_t xet_s3_breaker_ask(xet_s3_t *s3, uint64_t *silent);

/* Records whether a transfer got a response. */
void xet_s3_breaker_tell(xet_s3_t *s3, const xet_s3_transfer_t *t);

/* Returns whether only trials are sent. */
int xet_s3_breaker_is_open(xet_s3_t *s3);

/* Called when a request gives up: opens the breaker if the store is silent. */
void xet_s3_breaker_open(xet_s3_t *s3);


#endif /* _XET_S3_BREAKER_H_INCLUDED_ */
