
/*
 * Well-formed UTF-8 (Unicode 15, table 3-7) in pieces: no overlong forms, no
 * surrogates, nothing past U+10FFFF.
 */

#ifndef _XET_UTF8_H_INCLUDED_
#define _XET_UTF8_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


typedef struct {
    unsigned  need;                    /* bytes that the character lacks */
    uint8_t   low;                     /* bounds of the next of these bytes */
    uint8_t   high;
} xet_utf8_t;


static inline void
xet_utf8_init(xet_utf8_t *u)
{
    u->need = 0;
}


/*
 * Returns how many of the len bytes continue a well-formed text; fewer than len
 * when the byte after them does not.  The text may end where u->need is 0.
 */
size_t xet_utf8_feed(xet_utf8_t *u, const uint8_t *p, size_t len);


#endif /* _XET_UTF8_H_INCLUDED_ */
