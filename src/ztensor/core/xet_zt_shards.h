
/*
 * The table of other files that a manifest of container 2 may refer to.
 */

#ifndef _XET_ZT_SHARDS_H_INCLUDED_
#define _XET_ZT_SHARDS_H_INCLUDED_


#include "xet_zt_manifest.h"


typedef struct {
    uint8_t                name[XET_ZT_SHARD_MAX];
    size_t                 len;
    uint64_t               size;       /* of the file */
} xet_zt_shards_row_t;


typedef struct {
    xet_zt_shards_row_t   *rows;
    size_t                 n;
    size_t                 room;
} xet_zt_shards_t;


void xet_zt_shards_init(xet_zt_shards_t *s);
void xet_zt_shards_destroy(xet_zt_shards_t *s);

/*
 * Adds a copy of the next shard, in the order of the manifest.  XET_OK;
 * XET_ZT_MANIFEST when the shard is too small for a file; XET_NOMEM.
 */
xet_status_t xet_zt_shards_add(xet_zt_shards_t *s, const xet_zt_shard_t *shard);

/*
 * Sets the data_start and data_end of *region to where components of a shard
 * may lie, and *number to the number of the shard, from 1.  XET_OK;
 * XET_ZT_SHARD_REF when there is no such shard.
 */
xet_status_t xet_zt_shards_find(const xet_zt_shards_t *s,
    const xet_zt_text_t *name, xet_zt_region_t *region, uint64_t *number);


#endif /* _XET_ZT_SHARDS_H_INCLUDED_ */
