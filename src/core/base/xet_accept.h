
/*
 * The Accept-Encoding header, RFC 9110 section 12.5.3.
 */

#ifndef _XET_ACCEPT_H_INCLUDED_
#define _XET_ACCEPT_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


/*
 * Whether the value of the header names the coding with a weight other than 0.
 * coding is in lower case and ends in NUL; the header may have any case.  "*"
 * does not count: few clients know the codings that we ask for, so an answer
 * is sent in one of them only to a client that names it.
 */
int xet_accept_coding(const uint8_t *value, size_t len, const char *coding);


#endif /* _XET_ACCEPT_H_INCLUDED_ */
