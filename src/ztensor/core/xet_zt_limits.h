
/*
 * Limits of a zTensor file: those of the format, and ours, which may be set.
 */

#ifndef _XET_ZT_LIMITS_H_INCLUDED_
#define _XET_ZT_LIMITS_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_cbor.h"


#define XET_ZT_MANIFEST_MAX  ((uint64_t) 1 << 30)  /* by the format */

#define XET_ZT_NAME_MAX      1024      /* container 2, and our default */
#define XET_ZT_SHARD_MAX     64        /* bytes of a shard's name */
#define XET_ZT_VERSION_MAX   32        /* bytes of the version kept */
#define XET_ZT_RANK_MAX      64        /* dimensions kept of a shape */


/*
 * Our limits; xet_zt_limits_init() sets the defaults, which are given here.
 * Memory: about 400 KiB, and while a file is checked 16 bytes per object and
 * 24 per component.
 */

typedef struct {
    uint64_t                 manifest;     /* bytes, 64 MiB */
    uint64_t                 objects;      /* 1,000,000 */
    uint64_t                 components;   /* of all objects, 2,000,000 */
    unsigned                 roles;        /* components of an object, 64 */
    unsigned                 rank;         /* 64, XET_ZT_RANK_MAX at most */
    unsigned                 depth;        /* 32, XET_CBOR_DEPTH at most */
    size_t                   name;         /* bytes of a name, 1024 */
    size_t                   keys;         /* of any other map, 65,536 */
    size_t                   attributes;   /* bytes of an echoed map, 1 MiB */
    unsigned                 strict:1;     /* 0; 1: overlaps and a header
                                              without magic are errors */
} xet_zt_limits_t;

void xet_zt_limits_init(xet_zt_limits_t *limits);


#endif /* _XET_ZT_LIMITS_H_INCLUDED_ */
