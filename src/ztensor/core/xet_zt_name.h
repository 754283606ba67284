
/*
 * What container 2 allows in names and digests; 1.x has no such rules.
 */

#ifndef _XET_ZT_NAME_H_INCLUDED_
#define _XET_ZT_NAME_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


/* Names of objects and parts: not empty, no zero byte; any length. */
int xet_zt_name_valid(const uint8_t *name, size_t len);

int xet_zt_shard_name_valid(const uint8_t *name, size_t len);

/* "algorithm:hex" in lower case; the algorithm does not have to be known. */
int xet_zt_digest_valid(const uint8_t *digest, size_t len);


#endif /* _XET_ZT_NAME_H_INCLUDED_ */
