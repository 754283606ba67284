
/*
 * Parses lists of objects and of multipart uploads.  The element that tells
 * whether keys are encoded may follow the keys, so a list is parsed twice:
 * first its head, then its items.
 */


#include <stdlib.h>

#include "xet_s3xml.h"


#define XET_S3XML_LIST_KEY   (3 * 1024)  /* 1024 bytes, all percent-encoded */
#define XET_S3XML_LIST_TIME  64


typedef struct {
    xet_s3xml_list_t   *list;
    xet_s3xml_item_pt   handler;
    void               *data;
    uint64_t            size;
    unsigned            is_list:1;
    unsigned            encoded:1;
    unsigned            has_key:1;
    unsigned            items:1;       /* set in the second pass */

    char                key[XET_S3XML_LIST_KEY + 1];
    char                upload[XET_S3XML_ID_MAX];
    char                time[XET_S3XML_LIST_TIME];
} xet_s3xml_reader_t;


static xet_status_t xet_s3xml_list_element(void *data, const char *path,
    const char *value, size_t len);
static xet_status_t xet_s3xml_list_head(xet_s3xml_reader_t *r,
    const char *name, const char *value, size_t len);
static xet_status_t xet_s3xml_list_item(xet_s3xml_reader_t *r,
    const char *name, const char *value, size_t len);
static xet_status_t xet_s3xml_list_end(xet_s3xml_reader_t *r);
static xet_status_t xet_s3xml_copy(char *dst, size_t size, const char *value,
    size_t len);
static xet_status_t xet_s3xml_decode(char *text);


xet_status_t
xet_s3xml_list(xet_s3xml_list_t *list, const uint8_t *text, size_t len,
    xet_s3xml_item_pt handler, void *data)
{
    xet_status_t         rc;
    xet_s3xml_reader_t  *r;

    memset(list, 0, sizeof(xet_s3xml_list_t));

    r = calloc(1, sizeof(xet_s3xml_reader_t));
    if (r == NULL) {
        return XET_NOMEM;
    }

    r->list = list;
    r->handler = handler;
    r->data = data;

    rc = xet_s3xml_walk(text, len, xet_s3xml_list_element, r);

    if (rc == XET_OK && !r->is_list) {
        rc = XET_BODY_SYNTAX;
    }

    if (rc == XET_OK && r->encoded) {
        rc = xet_s3xml_decode(list->key);
    }

    if (rc == XET_OK) {
        r->items = 1;
        rc = xet_s3xml_walk(text, len, xet_s3xml_list_element, r);
    }

    free(r);

    return rc;
}


static xet_status_t
xet_s3xml_list_element(void *data, const char *path, const char *value,
    size_t len)
{
    xet_s3xml_reader_t *r = data;

    size_t  i, n;

    static const struct {
        const char  *root;
        const char  *item;
    } kinds[] = {
        { "ListBucketResult", "/Contents" },
        { "ListMultipartUploadsResult", "/Upload" }
    };

    for (i = 0; i < 2; i++) {
        n = strlen(kinds[i].root);

        if (strncmp(path, kinds[i].root, n) == 0) {
            break;
        }
    }

    if (i == 2) {
        return XET_OK;
    }

    path += n;

    if (*path == '\0') {
        r->is_list = 1;
        return XET_OK;
    }

    if (!r->items) {
        return (*path == '/' && value)
               ? xet_s3xml_list_head(r, path + 1, value, len) : XET_OK;
    }

    n = strlen(kinds[i].item);

    if (strncmp(path, kinds[i].item, n) != 0) {
        return XET_OK;
    }

    path += n;

    if (*path == '\0') {
        return xet_s3xml_list_end(r);
    }

    return (*path == '/' && value)
           ? xet_s3xml_list_item(r, path + 1, value, len) : XET_OK;
}


static xet_status_t
xet_s3xml_list_head(xet_s3xml_reader_t *r, const char *name, const char *value,
    size_t len)
{
    if (strcmp(name, "IsTruncated") == 0) {
        r->list->more = (strcmp(value, "true") == 0);

    } else if (strcmp(name, "EncodingType") == 0) {
        r->encoded = (strcmp(value, "url") == 0);

    } else if (strcmp(name, "NextKeyMarker") == 0) {
        return xet_s3xml_copy(r->list->key, sizeof(r->list->key), value, len);

    } else if (strcmp(name, "NextUploadIdMarker") == 0) {
        return xet_s3xml_copy(r->list->upload, sizeof(r->list->upload), value,
                              len);
    }

    return XET_OK;
}


static xet_status_t
xet_s3xml_list_item(xet_s3xml_reader_t *r, const char *name, const char *value,
    size_t len)
{
    if (strcmp(name, "Key") == 0) {
        r->has_key = 1;
        return xet_s3xml_copy(r->key, sizeof(r->key), value, len);
    }

    if (strcmp(name, "UploadId") == 0) {
        return xet_s3xml_copy(r->upload, sizeof(r->upload), value, len);
    }

    if (strcmp(name, "LastModified") == 0 || strcmp(name, "Initiated") == 0) {
        return xet_s3xml_copy(r->time, sizeof(r->time), value, len);
    }

    if (strcmp(name, "Size") == 0
        && !xet_get_decimal((const uint8_t *) value, len, &r->size))
    {
        return XET_BODY_SYNTAX;
    }

    return XET_OK;
}


static xet_status_t
xet_s3xml_list_end(xet_s3xml_reader_t *r)
{
    xet_status_t      rc;
    xet_s3xml_item_t  item;

    if (!r->has_key || (r->encoded && xet_s3xml_decode(r->key) != XET_OK)) {
        return XET_BODY_SYNTAX;
    }

    item.key = r->key;
    item.upload = r->upload;
    item.time = r->time;
    item.size = r->size;

    rc = r->handler(r->data, &item);

    r->has_key = 0;
    r->key[0] = '\0';
    r->upload[0] = '\0';
    r->time[0] = '\0';
    r->size = 0;

    return rc;
}


static xet_status_t
xet_s3xml_copy(char *dst, size_t size, const char *value, size_t len)
{
    if (len >= size) {
        return XET_BODY_SYNTAX;
    }

    memcpy(dst, value, len + 1);

    return XET_OK;
}


/* Decodes a key in place: S3 encodes a space as "+", and a "+" as "%2B". */

static xet_status_t
xet_s3xml_decode(char *text)
{
    int             c;
    char           *dst;
    const uint8_t  *p, *end;

    p = (const uint8_t *) text;
    end = p + strlen(text);
    dst = text;

    while (p < end) {

        if (*p == '+') {
            c = ' ';
            p++;

        } else {
            c = xet_percent_byte(&p, end);
        }

        if (c <= 0) {
            return XET_BODY_SYNTAX;
        }

        *dst++ = (char) c;
    }

    *dst = '\0';

    return XET_OK;
}
