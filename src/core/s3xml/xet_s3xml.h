
/*
 * The XML that an S3-compatible store answers with.
 */

#ifndef _XET_S3XML_H_INCLUDED_
#define _XET_S3XML_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_base.h"


/*
 * xet_s3xml.c: the walk: the text of each element that has no others inside of
 * it, with the path of names that leads to it, "Error/Code".  Prefixes of
 * namespaces are left out, attributes and comments are ignored.
 */

#define XET_S3XML_DEPTH      8
#define XET_S3XML_PATH_MAX   256
#define XET_S3XML_VALUE_MAX  8192      /* bytes of the text of an element */


/*
 * Called for each such element, with a zero byte behind the value.  What it
 * returns other than XET_OK ends the walk, which returns it.  With value NULL
 * an element that has others inside of it has ended.
 */
typedef xet_status_t (*xet_s3xml_pt)(void *data, const char *path,
    const char *value, size_t len);

/*
 * XET_BODY_SYNTAX for a text that is not well-formed, is cut, has a DTD, is
 * nested deeper than XET_S3XML_DEPTH, or has a longer path or value than the
 * limits; the elements before have been told then.  XET_NOMEM.  The caller
 * bounds len.
 */
xet_status_t xet_s3xml_walk(const uint8_t *text, size_t len,
    xet_s3xml_pt handler, void *data);


/*
 * xet_s3xml_answer.c: answers that are one record.  What is longer than its
 * room is cut, but for the id of an upload and an ETag, which are malformed
 * then.  Strings are "" where they are absent.
 */

#define XET_S3XML_ID_MAX  1024


typedef struct {
    char      code[64];
    char      message[192];
    char      region[64];              /* that the bucket is in */
} xet_s3xml_error_t;


typedef struct {
    unsigned           failed:1;       /* error is set */
    xet_s3xml_error_t  error;
    char               upload[XET_S3XML_ID_MAX];
    char               etag[128];      /* with its quotes, if it has them */
} xet_s3xml_answer_t;


/*
 * The answer to the begin or the end of an upload, or to a copy, whose status
 * may be 200 with an error in the body; and the body of any error.  XET_OK,
 * XET_NOMEM, XET_BODY_SYNTAX when it is none of them.
 */
xet_status_t xet_s3xml_answer(xet_s3xml_answer_t *answer, const uint8_t *text,
    size_t len);


/*
 * xet_s3xml_list.c: lists of objects (ListObjectsV2) and of uploads in parts
 * (ListMultipartUploads).
 */

typedef struct {
    const char  *key;                  /* NUL-terminated, decoded */
    const char  *upload;               /* of a list of uploads */
    const char  *time;                 /* as it is there, modified or begun */
    uint64_t     size;
} xet_s3xml_item_t;


/* What it returns other than XET_OK ends the list, which returns it. */
typedef xet_status_t (*xet_s3xml_item_pt)(void *data,
    const xet_s3xml_item_t *item);


typedef struct {
    unsigned  more:1;                  /* the list is truncated */
    char      key[3 * 1024 + 1];       /* where to go on: the next markers */
    char      upload[XET_S3XML_ID_MAX];
} xet_s3xml_list_t;


/*
 * Calls handler for each item in the order of the answer; what its strings
 * point to is gone after the call.  Keys are decoded where the answer says
 * that it has them in URL encoding.  XET_BODY_SYNTAX for another document, or
 * items without a key.
 */
xet_status_t xet_s3xml_list(xet_s3xml_list_t *list, const uint8_t *text,
    size_t len, xet_s3xml_item_pt handler, void *data);


#endif /* _XET_S3XML_H_INCLUDED_ */
