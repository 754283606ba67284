
/*
 * Parser of requests for upload grants.
 *
 * Purpose:    parses {"length": 1234, "checksum": {"algo": "crc64nvme",
 *             "value": "5678"}}: the number of bytes of the xorb that the
 *             client will send, and their checksum, a decimal number in a
 *             string.
 * States:     none.
 * Ownership:  the result has no pointers.
 * Threads:    any.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xet_json.h"


#define XET_GRANT_DEPTH  3


static xet_status_t xet_grant_number(const char *text, uint64_t *number);


xet_status_t
xet_grant_parse(xet_grant_t *grant, const uint8_t *text, size_t len)
{
    json_t        *doc, *length, *checksum, *algo, *value;
    xet_status_t   rc;

    memset(grant, 0, sizeof(xet_grant_t));

    if (len > XET_GRANT_MAX) {
        return XET_BODY_SIZE;
    }

    rc = xet_json_parse(&doc, text, len, XET_GRANT_DEPTH);

    if (rc != XET_OK) {
        return rc;
    }

    rc = XET_BODY_SYNTAX;

    length = json_object_get(doc, "length");
    checksum = json_object_get(doc, "checksum");
    algo = json_object_get(checksum, "algo");
    value = json_object_get(checksum, "value");

    if (!json_is_integer(length) || json_integer_value(length) <= 0
        || !json_is_string(algo))
    {
        goto done;
    }

    grant->length = (uint64_t) json_integer_value(length);

    if (strcmp(json_string_value(algo), "crc64nvme") != 0) {
        rc = XET_DONE;
        goto done;
    }

    if (json_is_string(value)) {
        rc = xet_grant_number(json_string_value(value), &grant->crc64);
    }

done:

    json_decref(doc);

    return rc;
}


/* Parses digits only: strtoull() would also accept a sign or spaces. */

static xet_status_t
xet_grant_number(const char *text, uint64_t *number)
{
    char                *end;
    unsigned long long   n;

    if (*text < '0' || *text > '9') {
        return XET_BODY_SYNTAX;
    }

    errno = 0;
    n = strtoull(text, &end, 10);

    if (errno || *end || n > UINT64_MAX) {
        return XET_BODY_SYNTAX;
    }

    *number = (uint64_t) n;

    return XET_OK;
}
