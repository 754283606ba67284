
/*
 * XML responses of S3 stores: for any input, strings end within their buffers,
 * an accepted response has all required elements, and a truncated response is
 * rejected.
 *
 * Input: a document.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_s3xml.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


static xet_status_t
fuzz_item(void *data, const xet_s3xml_item_t *item)
{
    check(strlen(item->key) <= 3 * 1024);
    check(strlen(item->upload) < XET_S3XML_ID_MAX);
    check(strlen(item->time) < 64);

    ++*(size_t *) data;

    return XET_OK;
}


static xet_status_t
fuzz_element(void *data, const char *path, const char *value, size_t len)
{
    check(path[0] != '\0' && strlen(path) < XET_S3XML_PATH_MAX);
    check(len <= XET_S3XML_VALUE_MAX);
    check(value == NULL || value[len] == '\0');

    ++*(size_t *) data;

    return XET_OK;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t               elements, items;
    xet_status_t         walked, rc;
    xet_s3xml_list_t     list;
    xet_s3xml_answer_t   answer;

    elements = 0;
    walked = xet_s3xml_walk(data, size, fuzz_element, &elements);
    check(walked == XET_OK || walked == XET_BODY_SYNTAX);
    check(walked != XET_OK || elements > 0);

    rc = xet_s3xml_answer(&answer, data, size);
    check(rc == XET_OK || rc == XET_BODY_SYNTAX);
    check(rc != XET_OK || walked == XET_OK);
    check(rc != XET_OK || answer.failed || answer.upload[0] || answer.etag[0]);
    check(memchr(answer.error.code, '\0', sizeof(answer.error.code)));
    check(memchr(answer.error.message, '\0', sizeof(answer.error.message)));
    check(memchr(answer.upload, '\0', sizeof(answer.upload)));
    check(memchr(answer.etag, '\0', sizeof(answer.etag)));

    items = 0;
    rc = xet_s3xml_list(&list, data, size, fuzz_item, &items);
    check(rc == XET_OK || rc == XET_BODY_SYNTAX);
    check(rc != XET_OK || walked == XET_OK);
    check(items <= elements);
    check(memchr(list.key, '\0', sizeof(list.key)));
    check(memchr(list.upload, '\0', sizeof(list.upload)));

    return 0;
}
