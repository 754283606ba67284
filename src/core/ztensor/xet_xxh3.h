
/*
 * XXH3, 64 bits, without a seed: the check sum of container 2.
 */

#ifndef _XET_XXH3_H_INCLUDED_
#define _XET_XXH3_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


#define XET_XXH3_STRIPE  64
#define XET_XXH3_BUFFER  256


typedef struct {
    uint64_t  acc[8];
    uint64_t  len;                     /* bytes so far */
    unsigned  stripes;                 /* in the open block */
    unsigned  n;                       /* bytes in buf */
    uint8_t   buf[XET_XXH3_BUFFER];
    uint8_t   last[XET_XXH3_STRIPE];   /* the stripe before buf */
} xet_xxh3_t;


void xet_xxh3_init(xet_xxh3_t *x);
void xet_xxh3_update(xet_xxh3_t *x, const uint8_t *data, size_t len);

/* Of what was given so far; more may follow. */
uint64_t xet_xxh3_final(const xet_xxh3_t *x);


#endif /* _XET_XXH3_H_INCLUDED_ */
