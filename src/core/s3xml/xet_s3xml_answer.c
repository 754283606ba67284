
/*
 * Parses responses that contain one record: the responses to a multipart upload
 * or to a copy, and error responses.
 */


#include "xet_s3xml.h"


static xet_status_t xet_s3xml_answer_element(void *data, const char *path,
    const char *value, size_t len);
static void xet_s3xml_cut(char *dst, size_t size, const char *value,
    size_t len);
static xet_status_t xet_s3xml_whole(char *dst, size_t size, const char *value,
    size_t len);


xet_status_t
xet_s3xml_answer(xet_s3xml_answer_t *answer, const uint8_t *text, size_t len)
{
    xet_status_t  rc;

    memset(answer, 0, sizeof(xet_s3xml_answer_t));

    rc = xet_s3xml_walk(text, len, xet_s3xml_answer_element, answer);

    if (rc != XET_OK) {
        return rc;
    }

    return (answer->failed || answer->upload[0] || answer->etag[0])
           ? XET_OK : XET_BODY_SYNTAX;
}


static xet_status_t
xet_s3xml_answer_element(void *data, const char *path, const char *value,
    size_t len)
{
    xet_s3xml_answer_t *answer = data;

    if (value == NULL) {
        return XET_OK;
    }

    if (strcmp(path, "Error/Code") == 0) {
        answer->failed = (len > 0);
        xet_s3xml_cut(answer->error.code, sizeof(answer->error.code), value,
                      len);

    } else if (strcmp(path, "Error/Message") == 0) {
        xet_s3xml_cut(answer->error.message, sizeof(answer->error.message),
                      value, len);

    } else if (strcmp(path, "Error/Region") == 0) {
        xet_s3xml_cut(answer->error.region, sizeof(answer->error.region),
                      value, len);

    } else if (strcmp(path, "InitiateMultipartUploadResult/UploadId") == 0) {
        return xet_s3xml_whole(answer->upload, sizeof(answer->upload), value,
                               len);

    } else if (strcmp(path, "CompleteMultipartUploadResult/ETag") == 0
               || strcmp(path, "CopyObjectResult/ETag") == 0)
    {
        return xet_s3xml_whole(answer->etag, sizeof(answer->etag), value, len);
    }

    return XET_OK;
}


static void
xet_s3xml_cut(char *dst, size_t size, const char *value, size_t len)
{
    if (len > size - 1) {
        len = size - 1;
    }

    memcpy(dst, value, len);
    dst[len] = '\0';
}


static xet_status_t
xet_s3xml_whole(char *dst, size_t size, const char *value, size_t len)
{
    if (len > size - 1) {
        return XET_BODY_SYNTAX;
    }

    memcpy(dst, value, len + 1);

    return XET_OK;
}
