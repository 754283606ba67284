
/*
 * Internal interfaces that the files of the zTensor core share: parsing of a
 * manifest, the record of a file, and the data of components.
 */

#ifndef _XET_ZT_H_INCLUDED_
#define _XET_ZT_H_INCLUDED_


#include <blake3.h>
#include <xxhash.h>

#include "xet_base.h"
#include "xet_ztensor.h"


/*
 * CBOR (RFC 8949, and the older RFC 7049): a bounded pull decoder.  The input
 * is one data item of known size and arrives in pieces of any length.  Nothing
 * is allocated, and a count or length that exceeds the bytes left is an error.
 */

#define XET_CBOR_DEPTH          XET_ZT_DEPTH_MAX

/*
 * Requires the encoding of RFC 8949, section 4.2.1, except the order of map
 * keys: definite lengths, and the shortest heads and floats.  Also rejects
 * tags and the value "undefined".
 */
#define XET_CBOR_DETERMINISTIC  0x01


typedef enum {
    XET_CBOR_UINT = 0,                 /* value */
    XET_CBOR_NINT,                     /* -1 - value */
    XET_CBOR_BYTES,
    XET_CBOR_TEXT,                     /* well-formed UTF-8 */
    XET_CBOR_ARRAY,                    /* value: elements */
    XET_CBOR_MAP,                      /* value: pairs */
    XET_CBOR_SIMPLE,                   /* value: 20 to 23, see below */
    XET_CBOR_FLOAT,                    /* value: its bits; width: its bytes */
    XET_CBOR_DATA,                     /* next part of the open string */
    XET_CBOR_END                       /* value: XET_CBOR_ARRAY or _MAP */
} xet_cbor_kind_t;


#define XET_CBOR_FALSE      20
#define XET_CBOR_TRUE       21
#define XET_CBOR_NULL       22
#define XET_CBOR_UNDEFINED  23


typedef struct {
    xet_cbor_kind_t   kind;
    unsigned          width;           /* FLOAT: 2, 4 or 8 */
    unsigned          key:1;           /* a map key, or a part of a key */
    unsigned          indefinite:1;    /* no length; value is 0 */
    unsigned          more:1;          /* BYTES, TEXT, DATA: DATA follows */
    unsigned          tags;            /* number of tags before the item */
    uint64_t          tag;             /* the last tag before the item */
    uint64_t          value;
    uint64_t          pos;             /* input offset of the head, or of the
                                          data (DATA); END: end offset */

    const uint8_t    *data;            /* BYTES, TEXT, DATA; in the piece */
    size_t            len;
} xet_cbor_item_t;


typedef struct {
    uint64_t          left;            /* remaining items; a pair is two */
    unsigned          map:1;
    unsigned          indefinite:1;
    unsigned          odd:1;           /* the next item is a map's value */
} xet_cbor_frame_t;


typedef struct {
    const uint8_t    *p;               /* the piece */
    const uint8_t    *end;
    uint64_t          pos;             /* input offset of p */
    uint64_t          size;            /* bytes of the input */

    uint64_t          left;            /* bytes left of the string or chunk */
    uint64_t          head_pos;        /* input offset of the latest head */
    uint64_t          tag;
    unsigned          tags;

    unsigned          depth;
    unsigned          limit;           /* maximum depth */
    unsigned          flags;
    xet_status_t      status;

    unsigned          done:1;          /* the outermost item has ended */
    unsigned          string:1;        /* inside a string */
    unsigned          chunked:1;       /* the string is indefinite */
    unsigned          text:1;          /* the string is text */
    unsigned          key:1;           /* the string is a key */

    xet_utf8_t        utf8;

    unsigned          head_len;
    uint8_t           head[9];         /* head that is split between pieces */

    xet_cbor_frame_t  frames[XET_CBOR_DEPTH];
} xet_cbor_t;


/*
 * Starts an input of size bytes.  limit: the maximum number of open arrays,
 * maps and tags, at most XET_CBOR_DEPTH.  flags: 0 or XET_CBOR_DETERMINISTIC.
 */
void xet_cbor_init(xet_cbor_t *c, uint64_t size, unsigned limit,
    unsigned flags);

/*
 * Starts in the middle of an input that was decoded before; must be called
 * after xet_cbor_init().  The offset pos is inside a map that is open at the
 * given depth (1: the outermost item) and has "pairs" pairs left.  The caller
 * must not decode past the end of that map.
 */
void xet_cbor_resume(xet_cbor_t *c, uint64_t pos, unsigned depth,
    uint64_t pairs);

/*
 * Feeds the next piece, after the previous one is used up.  Bytes past the
 * size of the input are ignored.  The piece is not copied: it must stay valid
 * until xet_cbor_next() returns XET_AGAIN.
 */
void xet_cbor_feed(xet_cbor_t *c, const uint8_t *data, size_t len);

/*
 * Decodes the next item.  XET_OK: *item is set; XET_AGAIN: the piece is used
 * up; XET_DONE: the outermost item and the input end together.
 *
 * Errors: XET_ZT_MANIFEST if the input is malformed or truncated;
 * XET_ZT_TRAILING; XET_ZT_ORDER if a head or a float is not the shortest;
 * XET_ZT_NESTING; XET_ZT_UTF8.  An error is kept, and c->head_pos is the
 * offset of the head where it was found.
 */
xet_status_t xet_cbor_next(xet_cbor_t *c, xet_cbor_item_t *item);

/* Returns the value of a FLOAT item as a double. */
double xet_cbor_float(const xet_cbor_item_t *item);

/*
 * Returns 1 if a FLOAT is encoded as RFC 8949, section 4.2 requires: the only
 * NaN is 0x7e00 in two bytes, and each number has the shortest exact width.
 */
int xet_cbor_float_shortest(const xet_cbor_item_t *item);


/* A growing array: the owner zeroes it first, and frees items with free(). */

typedef struct {
    void             *items;
    size_t            n;
    size_t            room;            /* items allocated */
} xet_zt_array_t;

/* Appends an item of size bytes for the caller to fill; NULL: no memory. */
void *xet_zt_array_push(xet_zt_array_t *a, size_t size);


/*
 * The keys of the maps in a manifest must be distinct in 1.x, and in ascending
 * order in container 2.
 */

#define XET_ZT_KEY_SLOT  16


typedef struct {
    uint8_t         bytes[XET_ZT_KEY_SLOT];
} xet_zt_key_t;


typedef struct {
    unsigned        ordered:1;
    unsigned        open:1;            /* inside a key */
    unsigned        hashed:1;          /* the open key is in the hasher */

    size_t          limit;             /* max keys of a map, if not ordered */
    size_t          key_max;           /* max bytes of a key, if ordered */
    unsigned        exempt;            /* depth at which limit is ignored */

    /* for each level, where the keys of its map begin in slots or in last */
    size_t          base[XET_CBOR_DEPTH + 1];

    /* 1.x: a stack of all keys of the open maps */
    xet_zt_array_t  slots;             /* items are xet_zt_key_t */

    /* container 2: a stack of the last keys of the open maps */
    uint8_t        *last;
    size_t          last_len[XET_CBOR_DEPTH + 1];

    /* the open key */
    size_t          len;
    uint8_t         key[XET_ZT_KEY_SLOT];
    blake3_hasher   hasher;
} xet_zt_keys_t;


/*
 * Initializes k; returns XET_OK or XET_NOMEM.  The caller must destroy k even
 * after XET_NOMEM.
 */
xet_status_t xet_zt_keys_init(xet_zt_keys_t *k, int ordered, size_t limit,
    size_t key_max);
void xet_zt_keys_destroy(xet_zt_keys_t *k);

/*
 * Checks the keys of all maps; the caller must pass every item, and the depth
 * of the decoder after the item.  Returns XET_OK, XET_ZT_DUPLICATE or
 * XET_NOMEM.
 *
 * If keys are ordered, also returns XET_ZT_ORDER; XET_ZT_NAME_LEN for a key of
 * more than key_max bytes; XET_ZT_MANIFEST for an array or a map as a key.  If
 * keys are not ordered, also returns XET_ZT_KEYS for more than limit keys in a
 * map that is not at the depth k->exempt; duplicate keys are found at the end
 * of their map.
 */
xet_status_t xet_zt_keys_item(xet_zt_keys_t *k, const xet_cbor_item_t *item,
    unsigned depth);


/*
 * Element types: stored types (the dtype of a component), and logical types
 * (the type of a component, since 1.2), which define what the stored bytes
 * mean.
 */

typedef enum {
    XET_ZT_VALUES_ANY = 0,
    XET_ZT_VALUES_BOOL,                /* bytes 0 and 1 */
    XET_ZT_VALUES_NIBBLE               /* two per byte; an unused half is 0 */
} xet_zt_values_t;


struct xet_zt_dtype_s {
    const char       *name;
    const char       *storage;         /* a logical type's dtype, or NULL */
    uint8_t           bytes;           /* size of a group of elements */
    uint8_t           per;             /* elements per group, 1 or 2 */
    unsigned          index:1;         /* integer type, valid for indices */
    unsigned          in_2:1;          /* known in container 2 */
    xet_zt_values_t   values;
};


/* Returns a stored type; NULL if the container does not define the name. */
const xet_zt_dtype_t *xet_zt_dtype_find(const xet_zt_text_t *name,
    xet_zt_container_t container);

/*
 * Sets *bytes to the size of n elements and returns 1; returns 0 on overflow.
 */
int xet_zt_dtype_size(const xet_zt_dtype_t *dtype, uint64_t n,
    uint64_t *bytes);


/* Objects, as described in the manifest */

#define XET_ZT_UNIT        64          /* alignment of components */
#define XET_ZT_UNIT_2      4096        /* alignment, container 2 */


/*
 * Checks the description of an object, and sets the members of *o and of its
 * components that are marked "set by xet_zt_object_check()".  Does not check
 * the bounds of components in other files.
 */
void xet_zt_object_check(xet_zt_object_t *o, const xet_zt_region_t *region);

/* Adds an error once; the verdict becomes at least as bad as the error. */
void xet_zt_object_error(xet_zt_object_t *o, xet_status_t status);

/*
 * Checks that a component is inside the region, which belongs to this file or
 * to the component's shard.  Returns XET_OK, XET_ZT_BOUNDS or XET_ZT_HEADER.
 */
xet_status_t xet_zt_component_bounds(const xet_zt_component_t *c,
    const xet_zt_region_t *region);


#define XET_ZT_SHARD_MAX  64           /* max bytes of a shard's name */


/*
 * Parser of the manifest of a zTensor file, which is fed in pieces of any
 * size.  The parser passes one object at a time to a handler.
 */

/* A position to start at, in a manifest that was read completely before. */

typedef struct {
    uint64_t                 index;        /* number of the first object */
    uint64_t                 pos;          /* offset of that object's name */
    uint64_t                 end;          /* end offset of the last object */
    uint64_t                 count;        /* number of all objects */
} xet_zt_position_t;


typedef struct {
    xet_zt_text_t            name;
    xet_zt_text_t            digest;
    uint64_t                 size;         /* bytes of the shard */
} xet_zt_shard_t;


/* A handler of shards; the rules are those of xet_zt_object_pt. */
typedef xet_status_t (*xet_zt_shard_pt)(void *ctx, const xet_zt_shard_t *s);


typedef struct {
    xet_zt_container_t       container;    /* 1 or 2 */
    const xet_zt_limits_t   *limits;       /* copied */
    uint64_t                 size;         /* bytes of the manifest */
    const xet_zt_position_t *from;         /* NULL: the whole manifest */
    unsigned                 attributes:1; /* copy attributes of objects */

    xet_zt_object_pt         object;
    xet_zt_shard_pt          shard;        /* container 2; may be NULL */
    void                    *ctx;
} xet_zt_manifest_conf_t;


typedef struct xet_zt_manifest_s  xet_zt_manifest_t;


/* Creates a parser; returns NULL if out of memory. */
xet_zt_manifest_t *xet_zt_manifest_create(const xet_zt_manifest_conf_t *conf);
void xet_zt_manifest_destroy(xet_zt_manifest_t *m);

/*
 * Processes the next bytes.  XET_AGAIN: more bytes are needed; XET_DONE: the
 * manifest has ended, or a handler has stopped the parser.  An error is kept:
 * XET_ZT_MANIFEST, XET_ZT_TRAILING, XET_ZT_NESTING, XET_ZT_UTF8,
 * XET_ZT_DUPLICATE, XET_ZT_ORDER, XET_ZT_MISSING, XET_ZT_VERSION,
 * XET_ZT_OBJECTS, XET_ZT_COMPONENTS, XET_ZT_KEYS, XET_ZT_NAME_LEN,
 * XET_ZT_NAME, XET_ZT_SHARD_NAME, XET_NOMEM.
 *
 * A parser that starts at a position omits some checks, which the whole
 * manifest has passed before.
 */
xet_status_t xet_zt_manifest_feed(xet_zt_manifest_t *m, const uint8_t *data,
    size_t len);

/* Returns the offset in the manifest of the last item, or of the error. */
uint64_t xet_zt_manifest_pos(const xet_zt_manifest_t *m);


/* The root of the manifest; complete when a whole manifest has ended. */

typedef struct {
    uint8_t                  version[XET_ZT_VERSION_MAX];
    size_t                   version_len;  /* 0 in container 2 */
    unsigned                 version_known:1;  /* 1.1 or 1.2 */

    uint64_t                 count;        /* objects */
    uint64_t                 components;
    uint64_t                 end;          /* end offset of the last object */

    xet_zt_text_t            attributes;   /* valid as long as the parser */
    unsigned                 attributes_cut:1;
} xet_zt_root_t;

const xet_zt_root_t *xet_zt_manifest_root(const xet_zt_manifest_t *m);


/*
 * The header and footer of a file: its container, and the range of the
 * manifest.
 */

#define XET_ZT_MAGIC_LEN   8

#define XET_ZT_FOOTER      16          /* bytes, container 1 */
#define XET_ZT_FOOTER_2    40

#define XET_ZT_FILE_MIN    16
#define XET_ZT_FILE_MIN_2  48


/* Returns how many bytes of a file's end xet_zt_ends_parse() needs. */
unsigned xet_zt_tail_len(uint64_t size);

/*
 * Parses the header and the footer of a file of size bytes.  head: the first
 * XET_ZT_MAGIC_LEN bytes of the file; tail: its last xet_zt_tail_len() bytes.
 * limit: the maximum size of the manifest.  strict: a file of container 1 must
 * begin with its magic number.  After an error, only the members of *ends that
 * were read before the error are set.
 *
 * Returns XET_OK, XET_ZT_NOT_ZTENSOR, XET_ZT_TOO_SHORT, XET_ZT_HEADER_MAGIC,
 * XET_ZT_FOOTER_MAGIC, XET_ZT_VERSION (with the container in ends->container),
 * XET_ZT_DATA_SHARD, XET_ZT_MANIFEST_*, XET_ZT_ALIGN.
 */
xet_status_t xet_zt_ends_parse(xet_zt_ends_t *ends, const uint8_t *head,
    const uint8_t *tail, uint64_t size, uint64_t limit, int strict);


/* The byte ranges of all components: any two must be equal or disjoint. */

typedef struct {
    uint64_t          offset;
    uint64_t          length;
    uint64_t          file;            /* 0: this file; or a shard's number */
} xet_zt_extent_t;


/*
 * Adds a range.  offset + length must not overflow; an empty range is ignored.
 * Returns XET_OK or XET_NOMEM.
 */
xet_status_t xet_zt_extents_add(xet_zt_array_t *e, uint64_t file,
    uint64_t offset, uint64_t length);

/*
 * Returns 1 if a range that was added partly overlaps another range.  Call this
 * only after xet_zt_feed() has ended the check of the file, which removes all
 * other ranges from e.
 */
int xet_zt_extents_find(const xet_zt_array_t *e, uint64_t file,
    uint64_t offset, uint64_t length);


/*
 * Marks, the positions in a manifest where reading can start: every stride-th
 * object (see xet_zt_info_t) has a mark, which includes the object's name if
 * names are ordered.
 */

#define XET_ZT_MARK_NAME  127          /* max bytes of a mark's name */


/* The name of the object at a mark. */

typedef struct {
    uint8_t              len;
    uint8_t              data[XET_ZT_MARK_NAME];
} xet_zt_mark_name_t;


/* The data of marks that is not in xet_zt_info_t; initially all zeros. */

typedef struct {
    xet_zt_mark_name_t  *names;        /* XET_ZT_INDEX names; NULL: no order */
    uint8_t             *last;         /* name of the previous object */
    size_t               last_len;
} xet_zt_index_t;


/*
 * Adds the next object to the marks, and updates the order in info.  The name
 * has at most name_max bytes.  Returns XET_OK or XET_NOMEM.
 */
xet_status_t xet_zt_index_add(xet_zt_index_t *m, xet_zt_info_t *info,
    const xet_zt_object_t *o, size_t name_max);

/* Releases the last name, and all names of marks if names are unordered. */
void xet_zt_index_end(xet_zt_index_t *m, const xet_zt_info_t *info);

void xet_zt_index_destroy(xet_zt_index_t *m);

/*
 * Compares two names in an order, XET_ZT_ORDER_*: less than 0 if a comes
 * before b, 0 if they are equal, greater than 0 if a comes after b.
 */
int xet_zt_order(unsigned order, const xet_zt_text_t *a,
    const xet_zt_text_t *b);


/* The record of a file, filled by a check or from a saved check result. */

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

    uint64_t            have;              /* bytes of the part read so far */
    uint8_t             head[XET_ZT_MAGIC_LEN];
    uint8_t             tail[XET_ZT_FOOTER_2];

    xet_zt_manifest_t  *manifest;
    xet_status_t        verdict;           /* status of the manifest so far */
    XXH3_state_t       *hash;              /* manifest hash, container 2 */

    xet_zt_array_t      shards;            /* container 2 */
    xet_zt_array_t      extents;           /* items are xet_zt_extent_t */

    xet_zt_text_t       attributes;

    xet_zt_index_t      index;
};


/* Headers of zstd frames */

typedef struct {
    unsigned  skippable:1;
    unsigned  has_content:1;           /* content is set */
    unsigned  checksum:1;
    unsigned  dictionary:1;            /* the frame needs a dictionary */
    unsigned  head;                    /* bytes of the frame header */
    uint64_t  content;                 /* decoded bytes; or bytes to skip */
    uint64_t  window;                  /* memory to stream a frame, bytes */
} xet_zt_frame_t;


/*
 * Parses the frame header at data.  Returns XET_OK; XET_AGAIN if len bytes are
 * not the whole header (XET_ZT_FRAME_HEAD bytes always suffice); XET_ZT_ZSTD
 * if no frame begins at data.
 */
xet_status_t xet_zt_frame_parse(xet_zt_frame_t *f, const uint8_t *data,
    size_t len);


/*
 * Digests of components: "sha256:" and "crc32c:" in container 1, "sha256:"
 * and "xxh3:" in container 2.  CRC-32C (Castagnoli) is not the CRC-32 of zlib
 * and of nginx.
 */

/* Adds data to crc, the CRC of the preceding bytes (initially 0). */
uint32_t xet_crc32c(uint32_t crc, const uint8_t *data, size_t len);


#define XET_ZT_DIGEST_MAX  32          /* max bytes of a value */


typedef enum {
    XET_ZT_DIGEST_NONE = 0,
    XET_ZT_DIGEST_SHA256,
    XET_ZT_DIGEST_CRC32C,
    XET_ZT_DIGEST_XXH3
} xet_zt_digest_kind_t;


typedef struct {
    xet_zt_digest_kind_t     kind;
    xet_zt_digest_verdict_t  verdict;  /* final verdict, if kind is NONE */
    uint8_t                  want[XET_ZT_DIGEST_MAX];
    size_t                   len;      /* bytes of want */

    void                    *sha256;   /* an EVP_MD_CTX, kept for reuse */
    void                    *xxh3;     /* an XXH3_state_t, kept for reuse */
    uint32_t                 crc32c;
} xet_zt_digest_t;


void xet_zt_digest_init(xet_zt_digest_t *d);
void xet_zt_digest_destroy(xet_zt_digest_t *d);

/*
 * Starts the digest that text declares; text->data is NULL if no digest is
 * declared.  Returns XET_OK, even if the digest cannot be checked, or
 * XET_NOMEM.
 */
xet_status_t xet_zt_digest_start(xet_zt_digest_t *d, const xet_zt_text_t *text,
    xet_zt_container_t container);

/* Adds the next bytes to the digest.  Returns XET_OK or XET_INTERNAL. */
xet_status_t xet_zt_digest_update(xet_zt_digest_t *d, const uint8_t *data,
    size_t len);

/* Ends the digest and sets *verdict.  Returns XET_OK or XET_INTERNAL. */
xet_status_t xet_zt_digest_finish(xet_zt_digest_t *d,
    xet_zt_digest_verdict_t *verdict);


/*
 * Checks that the indices of sparse objects are within the shape and
 * consistent with each other.  The caller feeds the decoded bytes, one
 * component after the other.
 */

typedef struct xet_zt_sparse_s  xet_zt_sparse_t;


/*
 * Creates the state; returns NULL if out of memory.  memory: the maximum
 * number of bytes used to compare elements with each other, which only
 * container 2 requires.
 */
xet_zt_sparse_t *xet_zt_sparse_create(size_t memory);
void xet_zt_sparse_destroy(xet_zt_sparse_t *s);

/*
 * Starts component c of o, a checked object; both must stay valid until the
 * component ends.  Results of other components of o are kept until a component
 * of another object starts.  Returns 0 if there is nothing to check.  "values"
 * should come before "coords": without them the number of coordinates may be
 * unknown.
 */
int xet_zt_sparse_start(xet_zt_sparse_t *s, xet_zt_container_t container,
    const xet_zt_object_t *o, const xet_zt_component_t *c);

/*
 * Processes the next decoded bytes.  Returns XET_OK or XET_NOMEM; only
 * xet_zt_sparse_finish() returns errors in the data.
 */
xet_status_t xet_zt_sparse_feed(xet_zt_sparse_t *s, const uint8_t *data,
    size_t len);

/* Returns how many bytes of memory were cleared since the previous call. */
size_t xet_zt_sparse_cleared(xet_zt_sparse_t *s);

/*
 * Ends the component, after all its bytes were fed.  Returns XET_OK;
 * XET_ZT_INDICES if an index is invalid; XET_ZT_UNCHECKED if the check needs
 * too much memory, or if the number of values is unknown.
 */
xet_status_t xet_zt_sparse_finish(xet_zt_sparse_t *s);


/*
 * Writes the CBOR map at data, which the parser of the manifest has accepted,
 * as a JSON object.  Byte strings are written as {"$base64":"..."}; NaN,
 * infinities and undefined as null; tags are omitted.  An integer key is
 * written as decimal text; an entry whose key is neither text nor an integer
 * is omitted.  A value nested deeper than XET_JSON_DEPTH is written as null.
 * If out of memory, sets the failure flag of the buffer of j.
 */
void xet_zt_attributes_json(xet_json_t *j, const uint8_t *data, size_t len);


#endif /* _XET_ZT_H_INCLUDED_ */
