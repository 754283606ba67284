
/*
 * Lists of entity tags, RFC 9110 section 8.8.3, as If-Match, If-None-Match
 * and If-Range have them.
 */

#ifndef _XET_ETAG_H_INCLUDED_
#define _XET_ETAG_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


typedef enum {
    XET_ETAG_STRONG = 0,               /* a tag with W/ never matches */
    XET_ETAG_WEAK                      /* W/ is ignored */
} xet_etag_compare_t;


/*
 * Whether the list is "*" or has the tag, which is strong and comes with its
 * quotes.  The list is read up to its first syntax error.
 */
int xet_etag_match(const uint8_t *list, size_t len, const uint8_t *tag,
    size_t tag_len, xet_etag_compare_t compare);


#endif /* _XET_ETAG_H_INCLUDED_ */
