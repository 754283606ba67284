
/*
 * What uploads, and requests for many objects, need of one.
 */

#ifndef _XET_S3_OBJECT_H_INCLUDED_
#define _XET_S3_OBJECT_H_INCLUDED_


#include "xet_s3_base.h"

#include <unistd.h>


/* As xet_s3_head(), with the ETag, of XET_S3_TAG_MAX bytes. */
xet_s3_rc_t xet_s3_object_head(xet_s3_t *s3, const char *name,
    xet_s3_object_t *object, char *etag, xet_s3_error_t *error);

/* A PUT with a body, as xet_s3_put_small(). */
xet_s3_rc_t xet_s3_object_put(xet_s3_request_t *r, int only_new,
    xet_s3_error_t *error);

/*
 * Before something is written under a name that is to be new: XET_S3_EXISTS
 * where there is an object and the store knows no condition.
 */
xet_s3_rc_t xet_s3_object_new(xet_s3_t *s3, const char *name,
    xet_s3_error_t *error);

/*
 * The rc of a HEAD of an object, which was XET_S3_OK: XET_S3_BAD where the
 * answer has no length, for without one it says nothing about the object.
 */
xet_s3_rc_t xet_s3_object_sized(const xet_s3_request_t *r,
    xet_s3_error_t *error);

/* Whether the bucket is there: XET_S3_OK, XET_S3_NO_BUCKET, or others. */
xet_s3_rc_t xet_s3_object_bucket(xet_s3_t *s3, xet_s3_error_t *error);

/* Whether an ETag is the MD5 of the body of a transfer. */
int xet_s3_object_is(const char *etag, const xet_s3_transfer_t *t);


#endif /* _XET_S3_OBJECT_H_INCLUDED_ */
