
/*
 * XML responses of an S3-compatible store.
 */

#ifndef _XET_S3XML_H_INCLUDED_
#define _XET_S3XML_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_base.h"


/*
 * xet_s3xml.c: calls a handler with the text of each element that has no
 * children, and with its path, such as "Error/Code".  Namespace prefixes,
 * attributes and comments are ignored.
 */

#define XET_S3XML_DEPTH      8
#define XET_S3XML_PATH_MAX   256
#define XET_S3XML_VALUE_MAX  8192      /* bytes of the text of an element */


/*
 * The element handler, called at the end of each element.  value is
 * NUL-terminated; it is NULL for an element that has children.  A return value
 * other than XET_OK stops the walk, which then returns that value.
 */
typedef xet_status_t (*xet_s3xml_pt)(void *data, const char *path,
    const char *value, size_t len);

/*
 * Walks over the elements of a text.  Errors: XET_NOMEM; XET_BODY_SYNTAX for a
 * text that is not well-formed, is truncated, has a DTD, is nested deeper than
 * XET_S3XML_DEPTH, or has a path or a value over its limit.  The handler is
 * called for the elements before the error.  The caller must limit len.
 */
xet_status_t xet_s3xml_walk(const uint8_t *text, size_t len,
    xet_s3xml_pt handler, void *data);


/*
 * xet_s3xml_answer.c: parser of responses that contain one record.  A string
 * that is too long is truncated; an upload id or an ETag that is too long is
 * an error instead.  Absent strings are "".
 */

#define XET_S3XML_ID_MAX  1024


typedef struct {
    char      code[64];
    char      message[192];
    char      region[64];              /* region of the bucket */
} xet_s3xml_error_t;


typedef struct {
    unsigned           failed:1;       /* error is set */
    xet_s3xml_error_t  error;
    char               upload[XET_S3XML_ID_MAX];
    char               etag[128];      /* including quotes, if it has any */
} xet_s3xml_answer_t;


/*
 * Parses the response to the start or the completion of a multipart upload, or
 * to a copy, or any error response.  Even a response with status 200 may
 * contain an error.  Errors: XET_NOMEM; XET_BODY_SYNTAX for any other
 * document.
 */
xet_status_t xet_s3xml_answer(xet_s3xml_answer_t *answer, const uint8_t *text,
    size_t len);


/*
 * xet_s3xml_list.c: lists of objects (ListObjectsV2) and of multipart uploads
 * (ListMultipartUploads).
 */

typedef struct {
    const char  *key;                  /* NUL-terminated, decoded */
    const char  *upload;               /* upload id, in a list of uploads */
    const char  *time;                 /* unparsed LastModified, Initiated */
    uint64_t     size;
} xet_s3xml_item_t;


/* The item handler; a status other than XET_OK ends xet_s3xml_list(). */
typedef xet_status_t (*xet_s3xml_item_pt)(void *data,
    const xet_s3xml_item_t *item);


typedef struct {
    unsigned  more:1;                  /* the list is truncated */
    char      key[3 * 1024 + 1];       /* markers of the next page */
    char      upload[XET_S3XML_ID_MAX];
} xet_s3xml_list_t;


/*
 * Calls handler for each item, in the order of the response.  The strings of
 * an item are valid until the handler returns.  Keys are decoded if the
 * response says that they are URL-encoded.  Returns XET_BODY_SYNTAX for any
 * other document, and for an item without a key.
 */
xet_status_t xet_s3xml_list(xet_s3xml_list_t *list, const uint8_t *text,
    size_t len, xet_s3xml_item_pt handler, void *data);


#endif /* _XET_S3XML_H_INCLUDED_ */
