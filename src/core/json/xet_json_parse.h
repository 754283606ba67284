
/*
 * JSON input, by jansson, for what is small and not on the hot path: tokens,
 * key documents, telemetry.  RFC 8259 to the letter and stricter: a member
 * may not come twice, strings may not hold NUL, nothing follows the object,
 * nesting is bounded.
 */

#ifndef _XET_JSON_PARSE_H_INCLUDED_
#define _XET_JSON_PARSE_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include <jansson.h>

#include "xet_status.h"


/*
 * Parses text, which must be one object, with at most depth objects and arrays
 * inside each other, the object itself included.  The caller releases *object
 * with json_decref().  XET_NOMEM, or XET_BODY_SYNTAX for any other text.  The
 * caller also bounds len: parsing takes memory of about 100 times len at worst.
 */
xet_status_t xet_json_parse(json_t **object, const uint8_t *text, size_t len,
    unsigned depth);


#endif /* _XET_JSON_PARSE_H_INCLUDED_ */
