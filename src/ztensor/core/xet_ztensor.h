
/*
 * zTensor files (zTensor 1.1.0): container 1 (1.1 and 1.2) and, to be read
 * only, container 2.  No I/O: a reader says which bytes of the file it needs,
 * the caller fetches them from wherever the file is, and hands them over in
 * pieces of any size.
 *
 *     while (xet_zt_need(zt, &range) == XET_AGAIN) {
 *         n = fetch(range.start, range.end, buf, sizeof(buf));
 *         (void) xet_zt_feed(zt, buf, n);
 *     }
 *
 * A file is checked as a whole once, by xet_zt_t; after that its objects are
 * read in pages by xet_zt_walk_t, as often as is wanted.
 */

#ifndef _XET_ZTENSOR_H_INCLUDED_
#define _XET_ZTENSOR_H_INCLUDED_


#include "xet_zt_container.h"
#include "xet_zt_manifest.h"


#define XET_ZT_MARKS              256

#define XET_ZT_WARN_NO_MAGIC      0x01     /* no magic number at the start */
#define XET_ZT_WARN_VERSION       0x02     /* 1.x, but not 1.1 or 1.2 */
#define XET_ZT_WARN_OVERLAP       0x04     /* components overlap in part */
#define XET_ZT_WARN_ATTRIBUTES    0x08     /* the root's attributes not kept */

#define XET_ZT_ORDER_BYTES        0x01     /* names ascend as strings */
#define XET_ZT_ORDER_LENGTH       0x02     /* by length, then as strings */


/* What is known of a file: plain data, filled as far as the check has come. */

typedef struct {
    uint64_t                 size;
    xet_zt_ends_t            ends;

    uint8_t                  version[XET_ZT_VERSION_MAX];
    size_t                   version_len;
    unsigned                 warnings;     /* XET_ZT_WARN_* */

    uint64_t                 count;        /* objects */
    uint64_t                 components;
    uint64_t                 invalid;      /* objects; overlaps do not count */
    uint64_t                 unsupported;  /* objects */
    uint64_t                 bytes;        /* of components in this file */

    uint64_t                 objects_end;  /* place in the manifest */
    uint64_t                 stride;       /* objects from mark to mark */
    unsigned                 order;        /* XET_ZT_ORDER_*; 0: none */
    unsigned                 marks_n;
    uint64_t                 marks[XET_ZT_MARKS];  /* places in the manifest */
} xet_zt_info_t;


typedef struct xet_zt_s  xet_zt_t;


/* size: bytes of the file.  *limits is copied.  NULL when out of memory. */
xet_zt_t *xet_zt_create(uint64_t size, const xet_zt_limits_t *limits);
void xet_zt_destroy(xet_zt_t *zt);

/*
 * XET_AGAIN with the range of the file that is needed next, at most the whole
 * manifest; XET_OK when the check is done; or the verdict on a file that can't
 * be listed: XET_ZT_NOT_ZTENSOR to XET_ZT_SHARD_REF, in container 2 also the
 * errors of objects, XET_ZT_ALIGN to XET_ZT_INDEX_DTYPE; XET_NOMEM,
 * XET_INTERNAL.
 */
xet_status_t xet_zt_need(const xet_zt_t *zt, xet_range_t *range);

/*
 * Takes the next bytes of the range needed; bytes past its end are ignored.
 * Returns what xet_zt_need() would.
 */
xet_status_t xet_zt_feed(xet_zt_t *zt, const uint8_t *data, size_t len);

/* The place of an error in the file; 0 where none can be named. */
uint64_t xet_zt_error_offset(const xet_zt_t *zt);

const xet_zt_info_t *xet_zt_info(const xet_zt_t *zt);

/* The region that the components of this file lie in, and its rules. */
void xet_zt_region(const xet_zt_t *zt, xet_zt_region_t *region);

/* The root's attributes, a CBOR map or absent; they live as long as zt. */
const xet_zt_text_t *xet_zt_attributes(const xet_zt_t *zt);


/* Objects to be read; all conditions hold together. */

typedef struct {
    uint64_t                 first;        /* the least index */
    xet_zt_text_t            name;         /* of at most one; data NULL: any */
    xet_zt_text_t            prefix;       /* of the name; data NULL: any */
    xet_zt_text_t            format;       /* data NULL: any */
    unsigned                 attributes:1; /* objects come with theirs */
} xet_zt_select_t;


typedef struct xet_zt_walk_s  xet_zt_walk_t;


/*
 * zt has been checked, with XET_OK, or restored.  zt and the texts of select,
 * which are not copied, must outlive the walk.  The handler is called with
 * checked objects in the order of the manifest; it returns XET_OK to go on,
 * XET_DONE to stop, or an error that ends the walk.  NULL when out of memory.
 */
xet_zt_walk_t *xet_zt_walk_create(const xet_zt_t *zt,
    const xet_zt_select_t *select, xet_zt_object_pt handler, void *ctx);
void xet_zt_walk_destroy(xet_zt_walk_t *w);

/*
 * As xet_zt_need() and xet_zt_feed(); XET_OK when the walk has ended.  With an
 * unchanged file the only errors are the handler's and XET_NOMEM.
 */
xet_status_t xet_zt_walk_need(const xet_zt_walk_t *w, xet_range_t *range);
xet_status_t xet_zt_walk_feed(xet_zt_walk_t *w, const uint8_t *data,
    size_t len);


/*
 * For the walk: the number of the last mark at or before an object of this
 * name; 0 where names have no order.
 */
uint64_t xet_zt_mark(const xet_zt_t *zt, const xet_zt_text_t *name);

/* Whether a component of this file overlaps another component in part. */
int xet_zt_overlaps(const xet_zt_t *zt, const xet_zt_component_t *c);

const xet_zt_limits_t *xet_zt_limits(const xet_zt_t *zt);


#endif /* _XET_ZTENSOR_H_INCLUDED_ */
