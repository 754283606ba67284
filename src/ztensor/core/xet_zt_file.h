
/*
 * Inside of xet_zt_t: what the check of a file and the saved verdict on it
 * share.
 */

#ifndef _XET_ZT_FILE_H_INCLUDED_
#define _XET_ZT_FILE_H_INCLUDED_


#include <xxhash.h>

#include "xet_zt_extents.h"
#include "xet_zt_marks.h"
#include "xet_zt_shards.h"
#include "xet_ztensor.h"


typedef enum {
    xet_zt_in_head = 0,
    xet_zt_in_tail,
    xet_zt_in_manifest,
    xet_zt_in_none
} xet_zt_part_t;


struct xet_zt_s {
    xet_zt_info_t       info;
    xet_zt_limits_t     limits;

    xet_zt_part_t       part;
    xet_status_t        status;
    uint64_t            error_offset;

    uint64_t            have;              /* bytes of the part so far */
    uint8_t             head[XET_ZT_MAGIC_LEN];
    uint8_t             tail[XET_ZT_FOOTER_2];

    xet_zt_manifest_t  *manifest;
    xet_status_t        verdict;           /* of the manifest so far */
    XXH3_state_t       *hash;              /* of a manifest of container 2 */

    xet_zt_shards_t     shards;
    xet_zt_extents_t    extents;

    xet_zt_text_t       attributes;

    xet_zt_marks_t      marks;
};


#endif /* _XET_ZT_FILE_H_INCLUDED_ */
