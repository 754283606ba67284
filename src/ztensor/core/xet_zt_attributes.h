
/*
 * Attributes as JSON.
 */

#ifndef _XET_ZT_ATTRIBUTES_H_INCLUDED_
#define _XET_ZT_ATTRIBUTES_H_INCLUDED_


#include "xet_json.h"


/*
 * Writes the CBOR map at data, which the manifest's parser has accepted, as a
 * JSON object.  Byte strings are {"$base64":"..."}; NaN, infinities and
 * undefined are null, tags are dropped.  A key that is an integer becomes its
 * decimal text; an entry whose key is neither an integer nor text is left out.
 * Where the JSON would be nested deeper than XET_JSON_DEPTH there is null.
 * Out of memory, the buffer of j fails.
 */
void xet_zt_attributes_json(xet_json_t *j, const uint8_t *data, size_t len);


#endif /* _XET_ZT_ATTRIBUTES_H_INCLUDED_ */
