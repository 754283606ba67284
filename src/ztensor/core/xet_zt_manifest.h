
/*
 * The manifest of a zTensor file, pushed in pieces of any size, one object at
 * a time.
 */

#ifndef _XET_ZT_MANIFEST_H_INCLUDED_
#define _XET_ZT_MANIFEST_H_INCLUDED_


#include "xet_zt_limits.h"
#include "xet_zt_object.h"


/* Where to begin in a manifest that was read as a whole before. */

typedef struct {
    uint64_t                 index;        /* of the first object to read */
    uint64_t                 pos;          /* of its name in the manifest */
    uint64_t                 end;          /* of the last object */
    uint64_t                 count;        /* of all objects */
} xet_zt_position_t;


typedef struct {
    xet_zt_text_t            name;
    xet_zt_text_t            digest;
    uint64_t                 size;         /* of the shard, bytes */
} xet_zt_shard_t;


/*
 * An object or a shard lives until its handler returns.  A handler returns
 * XET_OK; XET_DONE to stop reading; or an error, which becomes the parser's.
 */

typedef xet_status_t (*xet_zt_object_pt)(void *ctx, xet_zt_object_t *o);
typedef xet_status_t (*xet_zt_shard_pt)(void *ctx, const xet_zt_shard_t *s);


typedef struct {
    xet_zt_container_t       container;    /* 1 or 2 */
    const xet_zt_limits_t   *limits;       /* copied */
    uint64_t                 size;         /* of the manifest, bytes */
    const xet_zt_position_t *from;         /* NULL: the whole manifest */
    unsigned                 attributes:1; /* keep those of objects */

    xet_zt_object_pt         object;
    xet_zt_shard_pt          shard;        /* container 2, may be NULL */
    void                    *ctx;
} xet_zt_manifest_conf_t;


typedef struct xet_zt_manifest_s  xet_zt_manifest_t;


/* NULL when out of memory. */
xet_zt_manifest_t *xet_zt_manifest_create(const xet_zt_manifest_conf_t *conf);
void xet_zt_manifest_destroy(xet_zt_manifest_t *m);

/*
 * Takes the next bytes.  XET_AGAIN; XET_DONE at the end, or where a handler has
 * stopped; or an error, which stays: XET_ZT_MANIFEST, XET_ZT_TRAILING,
 * XET_ZT_NESTING, XET_ZT_UTF8, XET_ZT_DUPLICATE, XET_ZT_ORDER,
 * XET_ZT_MISSING, XET_ZT_VERSION, XET_ZT_OBJECTS, XET_ZT_COMPONENTS,
 * XET_ZT_KEYS, XET_ZT_NAME_LEN, XET_ZT_NAME, XET_ZT_SHARD_NAME, XET_NOMEM.
 * A parser that begins at a position does not check again all that the whole
 * manifest has passed once.
 */
xet_status_t xet_zt_manifest_feed(xet_zt_manifest_t *m, const uint8_t *data,
    size_t len);

/* The place in the manifest of what was read last, or of the error. */
uint64_t xet_zt_manifest_pos(const xet_zt_manifest_t *m);


/* The root of the manifest; complete when a whole manifest has ended. */

typedef struct {
    uint8_t                  version[XET_ZT_VERSION_MAX];
    size_t                   version_len;  /* 0 in container 2 */
    unsigned                 version_known:1;  /* 1.1 or 1.2 */

    uint64_t                 count;        /* objects */
    uint64_t                 components;
    uint64_t                 end;          /* of the last object */

    xet_zt_text_t            attributes;   /* lives as long as the parser */
    unsigned                 attributes_cut:1;
} xet_zt_root_t;

const xet_zt_root_t *xet_zt_manifest_root(const xet_zt_manifest_t *m);


#endif /* _XET_ZT_MANIFEST_H_INCLUDED_ */
