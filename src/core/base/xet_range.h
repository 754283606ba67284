
/*
 * Range lists of HTTP, RFC 9110 section 14.1.2: only the unit "bytes" (any
 * case), no sign, first <= last; white space around commas and empty list
 * elements are accepted as the RFC asks.  A number over 2^63 - 1 is read as
 * 2^63 - 1: both are past the end of any file.
 */

#ifndef _XET_RANGE_H_INCLUDED_
#define _XET_RANGE_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_status.h"


typedef enum {
    XET_RANGE_CLOSED = 0,          /* first-last */
    XET_RANGE_OPEN,                /* first- */
    XET_RANGE_SUFFIX               /* -length, in first; 0 is legal */
} xet_range_kind_t;


typedef struct {
    xet_range_kind_t  kind;
    uint64_t          first;
    uint64_t          last;        /* inclusive; XET_RANGE_CLOSED only */
} xet_range_spec_t;


typedef struct {
    uint64_t          start;
    uint64_t          end;         /* exclusive */
} xet_range_t;


/*
 * Parses the value of a Range header, white space around it removed.  *n is
 * the room in specs on entry and the number of ranges on XET_OK, and is left
 * alone otherwise.  XET_RANGE_SYNTAX; XET_RANGE_COUNT when there are more
 * ranges than room.
 */
xet_status_t xet_range_parse(const uint8_t *value, size_t len,
    xet_range_spec_t *specs, size_t *n);

/*
 * The part of a representation of size bytes that spec selects, clamped to
 * the end of the representation.  XET_RANGE_PAST_END when spec selects nothing.
 */
xet_status_t xet_range_resolve(const xet_range_spec_t *spec, uint64_t size,
    xet_range_t *range);

/*
 * The ranges that the *n specs select, in the order of the specs; a spec that
 * selects nothing is left out.  ranges has room for *n ranges; *n becomes the
 * number of ranges on XET_OK.  XET_RANGE_PAST_END when no spec selects
 * anything.
 */
xet_status_t xet_range_select(const xet_range_spec_t *specs,
    xet_range_t *ranges, size_t *n, uint64_t size);

/*
 * The list form of signed URLs, "a-b,c-d": closed ranges only, decimal
 * without leading zeros, no number over 2^63 - 1, inclusive ends, no white
 * space, at least one range; the one spelling that xet_range_list_print()
 * gives.  The errors and *n are as with xet_range_parse().
 */
xet_status_t xet_range_list_parse(const uint8_t *list, size_t len,
    xet_range_t *ranges, size_t *n);

/*
 * Writes n ranges in the list form of signed URLs and returns the end of the
 * list.  dst has room for XET_RANGE_PRINT_MAX * n bytes.  No range may be
 * empty.
 */
#define XET_RANGE_PRINT_MAX  (20 + 1 + 20 + 1)

uint8_t *xet_range_list_print(uint8_t *dst, const xet_range_t *ranges,
    size_t n);


#endif /* _XET_RANGE_H_INCLUDED_ */
