
/*
 * Objects of a zTensor file and their components ("parts" in container 2),
 * as the manifest describes them, and what the description alone can tell:
 * bounds, lengths against shapes, the rules of the known formats.
 */

#ifndef _XET_ZT_OBJECT_H_INCLUDED_
#define _XET_ZT_OBJECT_H_INCLUDED_


#include "xet_range.h"
#include "xet_zt_dtype.h"
#include "xet_zt_limits.h"


#define XET_ZT_ERRORS_MAX  16          /* of one object */

#define XET_ZT_UNIT        64          /* that offsets are multiples of */
#define XET_ZT_UNIT_2      4096


/* Counted bytes: names may hold zero bytes.  data is NULL when absent. */

typedef struct {
    const uint8_t           *data;
    size_t                   len;
} xet_zt_text_t;


typedef enum {
    XET_ZT_CODING_RAW = 0,
    XET_ZT_CODING_ZSTD,
    XET_ZT_CODING_SEEKABLE,            /* zstd frames, then a table of them */
    XET_ZT_CODING_UNKNOWN
} xet_zt_coding_t;


typedef struct {
    xet_zt_text_t            role;
    xet_zt_text_t            dtype;
    xet_zt_text_t            type;         /* or absent */
    xet_zt_text_t            encoding;     /* or absent: raw */
    xet_zt_text_t            digest;       /* or absent */
    xet_zt_text_t            shard;        /* or absent: in this file */

    uint64_t                 offset;
    uint64_t                 length;       /* stored bytes */
    uint64_t                 declared;     /* decoded bytes, by the manifest */
    unsigned                 has_declared:1;

    /* by xet_zt_object_check() */

    unsigned                 has_decoded:1;
    uint64_t                 decoded;      /* decoded bytes, if known */
    xet_zt_coding_t          coding;
    const xet_zt_dtype_t    *storage;      /* NULL: unknown */
    const xet_zt_dtype_t    *element;      /* with regard to type, or NULL */
} xet_zt_component_t;


typedef enum {
    XET_ZT_OBJECT_OK = 0,
    XET_ZT_OBJECT_UNSUPPORTED,         /* some name in it is not known here */
    XET_ZT_OBJECT_INVALID
} xet_zt_verdict_t;


typedef struct {
    uint64_t                 index;        /* in the order of the manifest */
    uint64_t                 pos;          /* of the name, in the manifest */

    xet_zt_text_t            name;
    xet_zt_text_t            format;

    unsigned                 rank;         /* may be over XET_ZT_RANK_MAX */
    uint64_t                 shape[XET_ZT_RANK_MAX];

    xet_zt_text_t            attributes;   /* a CBOR map, or absent */
    unsigned                 attributes_cut:1;  /* present, but too large */

    xet_zt_component_t      *components;   /* in the order of the manifest */
    unsigned                 n;

    /* by xet_zt_object_check() */

    unsigned                 has_count:1;
    uint64_t                 count;        /* elements */
    xet_zt_verdict_t         verdict;
    unsigned                 errors_n;
    xet_status_t             errors[XET_ZT_ERRORS_MAX];
} xet_zt_object_t;


/* The file that an object is checked against. */

typedef struct {
    xet_zt_container_t       container;
    unsigned                 rank_max;
    uint64_t                 data_start;   /* components lie between */
    uint64_t                 data_end;
} xet_zt_region_t;


/*
 * Fills the members named above.  Does not look at other objects, nor at
 * components in other files, but for their alignment.
 */
void xet_zt_object_check(xet_zt_object_t *o, const xet_zt_region_t *region);

/* An error of the object: at most once each, and the verdict follows. */
void xet_zt_object_error(xet_zt_object_t *o, xet_status_t status);

/* The first error that makes the object invalid, or XET_OK. */
xet_status_t xet_zt_object_fault(const xet_zt_object_t *o);

/* NULL when there is none. */
const xet_zt_component_t *xet_zt_object_component(const xet_zt_object_t *o,
    const uint8_t *role, size_t len);

/*
 * The component that is meant without a role: "data", or the only one.  NULL
 * where there are several.
 */
const xet_zt_component_t *xet_zt_object_default(const xet_zt_object_t *o);

/*
 * Whether a range of decoded bytes is a range of the file: for raw components
 * of this file.
 */
int xet_zt_component_seekable(const xet_zt_component_t *c);

/*
 * Whether a component lies in a region: of this file, or of its shard.
 * XET_OK, XET_ZT_BOUNDS, XET_ZT_HEADER.
 */
xet_status_t xet_zt_component_bounds(const xet_zt_component_t *c,
    const xet_zt_region_t *region);

/*
 * Where a component's stored bytes are in this file; XET_ZT_SHARD_REF when
 * they are in another file, XET_ZT_BOUNDS, XET_ZT_HEADER.
 */
xet_status_t xet_zt_component_range(const xet_zt_component_t *c,
    const xet_zt_region_t *region, xet_range_t *range);

/*
 * Rows first to end - 1 (along the first dimension) of a dense raw component,
 * as a range of its bytes.  XET_ZT_DECODE when rows are not contiguous or the
 * object is not valid, XET_RANGE_PAST_END.
 */
xet_status_t xet_zt_object_rows(const xet_zt_object_t *o,
    const xet_zt_component_t *c, uint64_t first, uint64_t end,
    xet_range_t *range);

/*
 * A copy of an object but for its attributes, which read as absent; in one
 * piece, to be released with free().  NULL when out of memory.
 */
xet_zt_object_t *xet_zt_object_copy(const xet_zt_object_t *o);

/* Bytes that a copy takes. */
size_t xet_zt_object_size(const xet_zt_object_t *o);

/* text is the C string s. */
int xet_zt_text_is(const xet_zt_text_t *text, const char *s);

/* The rules of the known formats; xet_zt_object_check() calls it. */
void xet_zt_format_check(xet_zt_object_t *o, xet_zt_container_t container);


#endif /* _XET_ZT_OBJECT_H_INCLUDED_ */
