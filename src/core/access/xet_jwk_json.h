
/*
 * The part of xet_jwk_set that reads one JSON Web Key; for its own files
 * only.
 */

#ifndef _XET_JWK_JSON_H_INCLUDED_
#define _XET_JWK_JSON_H_INCLUDED_


#include "xet_json_parse.h"
#include "xet_jwk.h"


/*
 * The key of a member of a JWK set.  XET_DONE when it is a key of another
 * kind or for another purpose; XET_JWK_VALUE, XET_JWK_KIND, XET_JWK_KID,
 * XET_JWK_PRIVATE.
 */
xet_status_t xet_jwk_json_read(xet_jwk_t **key, const json_t *member);


#endif /* _XET_JWK_JSON_H_INCLUDED_ */
