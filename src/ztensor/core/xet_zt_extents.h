
/*
 * The byte ranges of all components of a file: any two are equal or apart.
 */

#ifndef _XET_ZT_EXTENTS_H_INCLUDED_
#define _XET_ZT_EXTENTS_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_status.h"


typedef struct {
    uint64_t          offset;
    uint64_t          length;
    uint64_t          file;            /* 0: this file; else shard number */
} xet_zt_extent_t;


typedef struct {
    xet_zt_extent_t  *extents;
    size_t            n;
    size_t            room;
} xet_zt_extents_t;


void xet_zt_extents_init(xet_zt_extents_t *e);
void xet_zt_extents_destroy(xet_zt_extents_t *e);

/*
 * offset + length must not overflow; an empty range is ignored.  XET_OK,
 * XET_NOMEM.
 */
xet_status_t xet_zt_extents_add(xet_zt_extents_t *e, uint64_t file,
    uint64_t offset, uint64_t length);

/*
 * Leaves only the ranges that overlap another, unequal range.  XET_OK;
 * XET_ZT_OVERLAP if any are left.  Nothing may be added after that.
 */
xet_status_t xet_zt_extents_finish(xet_zt_extents_t *e);

/* Whether a range is one that xet_zt_extents_finish() has left. */
int xet_zt_extents_find(const xet_zt_extents_t *e, uint64_t file,
    uint64_t offset, uint64_t length);


#endif /* _XET_ZT_EXTENTS_H_INCLUDED_ */
