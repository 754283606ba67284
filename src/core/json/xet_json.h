
/*
 * JSON that others have written.
 */

#ifndef _XET_JSON_H_INCLUDED_
#define _XET_JSON_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include <jansson.h>

#include "xet_base.h"


/*
 * xet_json_parse.c: JSON input, by jansson, for what is small and not on the
 * hot path: tokens, key documents, telemetry.  RFC 8259 to the letter and
 * stricter: a member may not come twice, strings may not hold NUL, nothing
 * follows the object, nesting is bounded.
 */

/*
 * Parses text, which must be one object, with at most depth objects and arrays
 * inside each other, the object itself included.  The caller releases *object
 * with json_decref().  XET_NOMEM, or XET_BODY_SYNTAX for any other text.  The
 * caller also bounds len: parsing takes memory of about 100 times len at
 * worst.
 */
xet_status_t xet_json_parse(json_t **object, const uint8_t *text, size_t len,
    unsigned depth);


/*
 * xet_telemetry.c: what clients report about their transfers
 * (docs/protocol.md, telemetry).
 */

#define XET_TELEMETRY_MAX          (1024 * 1024)   /* of a report, bytes */
#define XET_TELEMETRY_NAME_MAX     128             /* event, session */
#define XET_TELEMETRY_AGENT_MAX    512
#define XET_TELEMETRY_METRICS_MAX  16384           /* as compact JSON */


/*
 * Checks a report of len bytes (at most XET_TELEMETRY_MAX): an object with
 * "event" (string), and optionally "session_id", "user_agent" or "userAgent"
 * (strings) and "metrics" (object); other members are ignored.
 * XET_BODY_SYNTAX, XET_BODY_SIZE for a report or a member over its limit,
 * XET_NOMEM.
 */
xet_status_t xet_telemetry_check(const uint8_t *text, size_t len);


/*
 * xet_grant.c: what a client asks an upload grant for.
 */

#define XET_GRANT_MAX  4096            /* of the request, bytes */


typedef struct {
    uint64_t     length;               /* of the upload, bytes, >= 1 */
    uint64_t     crc64;                /* CRC-64/NVME of them */
} xet_grant_t;


/*
 * Parses len bytes.  XET_BODY_SYNTAX, XET_BODY_SIZE, XET_NOMEM; XET_DONE for a
 * checksum of another kind.
 */
xet_status_t xet_grant_parse(xet_grant_t *grant, const uint8_t *text,
    size_t len);


#endif /* _XET_JSON_H_INCLUDED_ */
