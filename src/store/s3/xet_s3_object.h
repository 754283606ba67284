
/*
 * Functions for one object that uploads and batches use.
 */

#ifndef _XET_S3_OBJECT_H_INCLUDED_
#define _XET_S3_OBJECT_H_INCLUDED_


#include "xet_s3_base.h"

#include <unistd.h>


/* Sends a HEAD of an object; sets object, and etag of XET_S3_TAG_MAX bytes. */
xet_s3_rc_t xet_s3_object_head(xet_s3_t *s3, const char *name,
    xet_s3_object_t *object, char *etag, xet_s3_error_t *error);

/* Sends a PUT whose body is set; only_new is as for xet_s3_put_small(). */
xet_s3_rc_t xet_s3_object_put(xet_s3_request_t *r, int only_new,
    xet_s3_error_t *error);

/*
 * Called before a write that must not replace an object: XET_S3_EXISTS if the
 * store does not support If-None-Match, and the object exists.
 */
xet_s3_rc_t xet_s3_object_new(xet_s3_t *s3, const char *name,
    xet_s3_error_t *error);

/*
 * Checks the response to a successful HEAD of an object: XET_S3_BAD if the
 * response has no length.
 */
xet_s3_rc_t xet_s3_object_sized(const xet_s3_request_t *r,
    xet_s3_error_t *error);

/* Checks the bucket: XET_S3_OK, XET_S3_NO_BUCKET, or another error. */
xet_s3_rc_t xet_s3_object_bucket(xet_s3_t *s3, xet_s3_error_t *error);

/* Returns whether etag is the MD5 of the request body of a transfer. */
int xet_s3_object_is(const char *etag, const xet_s3_transfer_t *t);


#endif /* _XET_S3_OBJECT_H_INCLUDED_ */
