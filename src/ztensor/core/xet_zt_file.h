
/*
 * Inside of a file's record: what the check of it, its marks and its saved
 * form share.
 */

#ifndef _XET_ZT_FILE_H_INCLUDED_
#define _XET_ZT_FILE_H_INCLUDED_


#include <xxhash.h>

#include "xet_zt_extents.h"
#include "xet_zt_shards.h"
#include "xet_ztensor.h"


#define XET_ZT_MARK_NAME  127          /* bytes of a mark's name at most */


/* The name of the object at a mark. */

typedef struct {
    uint8_t             len;
    uint8_t             data[XET_ZT_MARK_NAME];
} xet_zt_mark_name_t;


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

    uint64_t            have;              /* bytes of the part */
    uint8_t             head[XET_ZT_MAGIC_LEN];
    uint8_t             tail[XET_ZT_FOOTER_2];

    xet_zt_manifest_t  *manifest;
    xet_status_t        verdict;           /* of the manifest so far */
    XXH3_state_t       *hash;              /* of a manifest of container 2 */

    xet_zt_shards_t     shards;
    xet_zt_extents_t    extents;

    xet_zt_text_t       attributes;

    xet_zt_mark_name_t *names;             /* of the marks, XET_ZT_MARKS */
    uint8_t            *last;              /* name, limits.name bytes */
    size_t              last_len;
};


/*
 * Takes note of the next object; XET_NOMEM.  The name before it is forgotten
 * by xet_zt_marks_end(), when the manifest has been read.
 */
xet_status_t xet_zt_marks_add(xet_zt_t *zt, const xet_zt_object_t *o);
void xet_zt_marks_end(xet_zt_t *zt);


#endif /* _XET_ZT_FILE_H_INCLUDED_ */
