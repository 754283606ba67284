
/*
 * Parsers of untrusted JSON.
 */

#ifndef _XET_JSON_H_INCLUDED_
#define _XET_JSON_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include <jansson.h>

#include "xet_base.h"


/*
 * xet_json_parse.c: JSON input with jansson, for small documents outside of
 * the hot path: tokens, key documents, telemetry, bodies of the Hub.  Stricter
 * than RFC 8259: no duplicate members, no NUL in strings, no text after the
 * object, and a limit on nesting.
 */

/*
 * Parses text, which must be one object, with at most depth levels of objects
 * and arrays, including the object itself.  The caller frees *object with
 * json_decref().  Errors: XET_NOMEM; XET_BODY_SYNTAX for any other text.  The
 * caller must limit len: parsing takes up to about 100 times len of memory.
 */
xet_status_t xet_json_parse(json_t **object, const uint8_t *text, size_t len,
    unsigned depth);


/*
 * xet_telemetry.c: transfer reports sent by clients (docs/protocol.md,
 * telemetry).
 */

#define XET_TELEMETRY_MAX          (1024 * 1024)   /* bytes of a report */
#define XET_TELEMETRY_NAME_MAX     128             /* bytes, event or session */
#define XET_TELEMETRY_AGENT_MAX    512
#define XET_TELEMETRY_METRICS_MAX  16384           /* bytes, as compact JSON */


/*
 * Checks a report of len bytes (at most XET_TELEMETRY_MAX): an object with
 * "event" (string), and optionally "session_id", "user_agent" or "userAgent"
 * (strings) and "metrics" (object).  Other members are ignored.  Errors:
 * XET_BODY_SYNTAX; XET_BODY_SIZE for a report or a member over its limit;
 * XET_NOMEM.
 */
xet_status_t xet_telemetry_check(const uint8_t *text, size_t len);


/*
 * xet_grant.c: requests for upload grants.
 */

#define XET_GRANT_MAX  4096            /* bytes of the request body */


typedef struct {
    uint64_t     length;               /* bytes of the upload, >= 1 */
    uint64_t     crc64;                /* CRC-64/NVME of these bytes */
} xet_grant_t;


/*
 * Parses a request body of len bytes.  Returns XET_DONE for an unsupported
 * checksum algorithm.  Errors: XET_BODY_SYNTAX, XET_BODY_SIZE, XET_NOMEM.
 */
xet_status_t xet_grant_parse(xet_grant_t *grant, const uint8_t *text,
    size_t len);


#endif /* _XET_JSON_H_INCLUDED_ */
