
/*
 * The Accept-Encoding header, RFC 9110 section 12.5.3.
 */

#ifndef _XET_ACCEPT_H_INCLUDED_
#define _XET_ACCEPT_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


/*
 * Whether the value of the header names the coding, in lower case, with
 * another weight than 0.  "*" is not taken for it: what is seldom known is
 * sent only to those who say that they know it.
 */
int xet_accept_coding(const uint8_t *value, size_t len, const char *coding);


#endif /* _XET_ACCEPT_H_INCLUDED_ */
