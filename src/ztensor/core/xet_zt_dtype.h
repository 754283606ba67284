
/*
 * Types of elements: those that are stored (a component's dtype), and those
 * that give stored bytes a meaning (its type, from 1.2 on).
 */

#ifndef _XET_ZT_DTYPE_H_INCLUDED_
#define _XET_ZT_DTYPE_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


typedef enum {
    XET_ZT_CONTAINER_NONE = 0,         /* not known */
    XET_ZT_CONTAINER_1,                /* 1.1 and 1.2 */
    XET_ZT_CONTAINER_2,
    XET_ZT_CONTAINER_0_1,              /* recognised, not read */
    XET_ZT_CONTAINER_1_0               /* recognised, not read */
} xet_zt_container_t;


typedef enum {
    XET_ZT_VALUES_ANY = 0,
    XET_ZT_VALUES_BOOL,                /* bytes 0 and 1 */
    XET_ZT_VALUES_NIBBLE               /* two a byte, a spare half is 0 */
} xet_zt_values_t;


typedef struct {
    const char       *name;
    const char       *storage;         /* a logical type's dtype, or NULL */
    uint8_t           bytes;           /* of a group of elements */
    uint8_t           per;             /* elements of a group, 1 or 2 */
    unsigned          index:1;         /* an integer */
    unsigned          in_1:1;          /* known in container 1 */
    unsigned          in_2:1;
    xet_zt_values_t   values;
} xet_zt_dtype_t;


/* A stored type; NULL when the container does not know the name. */
const xet_zt_dtype_t *xet_zt_dtype_find(const uint8_t *name, size_t len,
    xet_zt_container_t container);

/* A logical type, of any container; NULL when the name is not known. */
const xet_zt_dtype_t *xet_zt_type_find(const uint8_t *name, size_t len);

/* Sets *bytes to what n elements take and returns 1; 0 on overflow. */
int xet_zt_dtype_size(const xet_zt_dtype_t *dtype, uint64_t n,
    uint64_t *bytes);


#endif /* _XET_ZT_DTYPE_H_INCLUDED_ */
