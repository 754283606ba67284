
/*
 * The parts of an upload: a list, which its upload protects.
 */

#ifndef _XET_S3_PARTS_H_INCLUDED_
#define _XET_S3_PARTS_H_INCLUDED_


#include "xet_s3_base.h"


typedef enum {
    XET_S3_PART_NEW = 0,               /* not sent, or failed */
    XET_S3_PART_SENT,
    XET_S3_PART_DONE
} xet_s3_part_e;


typedef struct {
    xet_s3_part_e    state;
    size_t           len;
    char             sha256[XET_S3_SHA_MAX];
    char             etag[XET_S3_TAG_MAX];
} xet_s3_part_t;


/* A list of zeros is empty.  The owner frees elts. */

typedef struct {
    xet_s3_part_t   *elts;
    size_t           n;
    size_t           room;
} xet_s3_parts_t;


/* Adds a new part of len bytes; returns 0 if out of memory. */
int xet_s3_parts_add(xet_s3_parts_t *parts, const char *sha256, size_t len);

/*
 * Stores the ETag of part i, which is XET_S3_TAG_MAX bytes, and marks the part
 * as done.  Returns 0 if the ETag is empty, or unsafe in XML.
 */
int xet_s3_parts_done(xet_s3_parts_t *parts, size_t i, const char *etag);

/*
 * Returns the body of the request that completes the upload, and sets *len.
 * The caller frees the body.  Returns NULL if out of memory.
 */
char *xet_s3_parts_xml(const xet_s3_parts_t *parts, size_t *len);

/*
 * Writes the ETag of the complete object as AWS does: MD5 of the MD5s of all
 * parts, part count.  Returns 0 if the ETag of a part is not an MD5.
 */
int xet_s3_parts_etag(const xet_s3_parts_t *parts, char *etag);


#endif /* _XET_S3_PARTS_H_INCLUDED_ */
