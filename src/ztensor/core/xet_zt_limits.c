
/*
 * Limits of a zTensor file, as they are unless they are set.
 */


#include <string.h>

#include "xet_zt.h"


void
xet_zt_limits_init(xet_zt_limits_t *limits)
{
    memset(limits, 0, sizeof(xet_zt_limits_t));

    limits->manifest = (uint64_t) 64 << 20;
    limits->objects = 1000000;
    limits->components = 2000000;
    limits->roles = 64;
    limits->rank = XET_ZT_RANK_MAX;
    limits->depth = XET_CBOR_DEPTH;
    limits->name = XET_ZT_NAME_MAX;
    limits->keys = 65536;
    limits->attributes = 1 << 20;
}
