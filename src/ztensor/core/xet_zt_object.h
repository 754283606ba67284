
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

#define XET_ZT_UNIT        64          /* offsets are multiples of it */
#define XET_ZT_UNIT_2      4096        /* in container 2 */


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
    const xet_zt_dtype_t    *element;      /* of type or dtype; NULL: unknown */
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
    uint64_t                 data_start;   /* components lie from here */
    uint64_t                 data_end;     /* to here, exclusive */
} xet_zt_region_t;


/*
 * Checks an object by its description and fills the members marked above.
 * Does not look at other objects, nor whether components in other files are in
 * bounds.
 */
void xet_zt_object_check(xet_zt_object_t *o, const xet_zt_region_t *region);

/* Adds an error, each one once, and makes the verdict as bad as the error. */
void xet_zt_object_error(xet_zt_object_t *o, xet_status_t status);

/* The first error that makes the object invalid, or XET_OK. */
xet_status_t xet_zt_object_fault(const xet_zt_object_t *o);

/* The component of a role; NULL when there is none. */
const xet_zt_component_t *xet_zt_object_component(const xet_zt_object_t *o,
    const uint8_t *role, size_t len);

/*
 * The component that is meant without a role: "data", else the only one, else
 * NULL.
 */
const xet_zt_component_t *xet_zt_object_default(const xet_zt_object_t *o);

/*
 * Whether a range of decoded bytes is also a range of the file, as it is for
 * raw components in this file.
 */
int xet_zt_component_seekable(const xet_zt_component_t *c);

/*
 * Whether a component lies in a region, which is of this file or of the
 * component's shard.  XET_OK, XET_ZT_BOUNDS, XET_ZT_HEADER.
 */
xet_status_t xet_zt_component_bounds(const xet_zt_component_t *c,
    const xet_zt_region_t *region);

/*
 * Sets *range to a component's stored bytes in this file.  XET_OK;
 * XET_ZT_SHARD_REF when the bytes are in another file; XET_ZT_BOUNDS,
 * XET_ZT_HEADER.
 */
xet_status_t xet_zt_component_range(const xet_zt_component_t *c,
    const xet_zt_region_t *region, xet_range_t *range);

/*
 * Sets *range to the bytes of rows first to end - 1 (along the first
 * dimension), counted from the start of c: the raw "data" component of a dense
 * object.  XET_OK; XET_ZT_DECODE for any other component, for an object that
 * is not XET_ZT_OBJECT_OK, and where two rows share a byte;
 * XET_RANGE_PAST_END.
 */
xet_status_t xet_zt_object_rows(const xet_zt_object_t *o,
    const xet_zt_component_t *c, uint64_t first, uint64_t end,
    xet_range_t *range);

/*
 * A copy of an object without its attributes, which read as absent; in one
 * piece, which the caller releases with free().  NULL when out of memory.
 */
xet_zt_object_t *xet_zt_object_copy(const xet_zt_object_t *o);

/* Bytes that a copy takes. */
size_t xet_zt_object_size(const xet_zt_object_t *o);

/* Whether text is present and is the C string s. */
int xet_zt_text_is(const xet_zt_text_t *text, const char *s);

/* The rules of the known formats; xet_zt_object_check() calls it. */
void xet_zt_format_check(xet_zt_object_t *o, xet_zt_container_t container);


#endif /* _XET_ZT_OBJECT_H_INCLUDED_ */
