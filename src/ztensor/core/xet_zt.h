
/*
 * Inside of the zTensor core: what its files share, from the bytes of a
 * manifest up to the record of a file, and then to the data of components.
 */

#ifndef _XET_ZT_H_INCLUDED_
#define _XET_ZT_H_INCLUDED_


#include <blake3.h>
#include <xxhash.h>

#include "xet_base.h"
#include "xet_ztensor.h"


/*
 * CBOR (RFC 8949, and the older RFC 7049): a bounded pull decoder.  The input
 * is one data item of a known size and comes in pieces of any length; nothing
 * is allocated, and no count or length in the input is believed further than
 * the bytes that are left.
 */

#define XET_CBOR_DEPTH          XET_ZT_DEPTH_MAX

/*
 * RFC 8949, section 4.2.1, except the order of map keys: definite lengths,
 * shortest heads and floats.  Beyond that section: no tags, no undefined.
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
    XET_CBOR_FLOAT,                    /* value: bits, of width bytes */
    XET_CBOR_DATA,                     /* more of the string before it */
    XET_CBOR_END                       /* value: XET_CBOR_ARRAY or _MAP */
} xet_cbor_kind_t;


#define XET_CBOR_FALSE      20
#define XET_CBOR_TRUE       21
#define XET_CBOR_NULL       22
#define XET_CBOR_UNDEFINED  23


typedef struct {
    xet_cbor_kind_t   kind;
    unsigned          width;           /* FLOAT: 2, 4 or 8 */
    unsigned          key:1;           /* a key of a map, or more of one */
    unsigned          indefinite:1;    /* value is 0 then */
    unsigned          more:1;          /* BYTES, TEXT, DATA: DATA follows */
    unsigned          tags;            /* number of tags before the item */
    uint64_t          tag;             /* the last tag before the item */
    uint64_t          value;
    uint64_t          pos;             /* in the input: of the head; DATA: of
                                          data; END: after the container */

    const uint8_t    *data;            /* BYTES, TEXT, DATA: in the piece */
    size_t            len;
} xet_cbor_item_t;


typedef struct {
    uint64_t          left;            /* items; a pair counts as two */
    unsigned          map:1;
    unsigned          indefinite:1;
    unsigned          odd:1;           /* a value is next */
} xet_cbor_frame_t;


typedef struct {
    const uint8_t    *p;               /* the piece */
    const uint8_t    *end;
    uint64_t          pos;             /* of p in the input */
    uint64_t          size;            /* of the input */

    uint64_t          left;            /* bytes of the open string or chunk */
    uint64_t          head_pos;        /* of the open or the last item */
    uint64_t          tag;
    unsigned          tags;

    unsigned          depth;
    unsigned          limit;           /* of depth */
    unsigned          flags;
    xet_status_t      status;

    unsigned          done:1;          /* the outermost item has ended */
    unsigned          string:1;        /* inside of a string */
    unsigned          chunked:1;       /* the string is indefinite */
    unsigned          text:1;          /* the string is text */
    unsigned          key:1;           /* the string is a key */

    xet_utf8_t        utf8;

    unsigned          head_len;
    uint8_t           head[9];         /* a head that is split by pieces */

    xet_cbor_frame_t  frames[XET_CBOR_DEPTH];
} xet_cbor_t;


/*
 * Begins an input of size bytes.  limit: of open arrays, maps and tags, and
 * lowered to XET_CBOR_DEPTH.  flags: 0 or XET_CBOR_DETERMINISTIC.
 */
void xet_cbor_init(xet_cbor_t *c, uint64_t size, unsigned limit,
    unsigned flags);

/*
 * Called after xet_cbor_init() to enter the middle of an input that was
 * decoded before: at pos, with pairs left in a map at depth (1: the outermost
 * item).  The caller must not decode what follows that map.
 */
void xet_cbor_resume(xet_cbor_t *c, uint64_t pos, unsigned depth,
    uint64_t pairs);

/*
 * Hands over the next piece, when the piece before it is used up.  Bytes
 * past the size of the input are ignored.  The piece is not copied: it must
 * stay until xet_cbor_next() returns XET_AGAIN.
 */
void xet_cbor_feed(xet_cbor_t *c, const uint8_t *data, size_t len);

/*
 * XET_OK with *item; XET_AGAIN when the piece is used up; XET_DONE when the
 * outermost item and the input end together; XET_ZT_MANIFEST when the input is
 * malformed or cut off; XET_ZT_TRAILING; XET_ZT_ORDER when a head or a float
 * is not the shortest; XET_ZT_NESTING; XET_ZT_UTF8.  An error stays, and
 * c->head_pos is the place of the head where it was found.
 */
xet_status_t xet_cbor_next(xet_cbor_t *c, xet_cbor_item_t *item);

/* The number that a FLOAT stands for. */
double xet_cbor_float(const xet_cbor_item_t *item);

/*
 * Whether a FLOAT is encoded as RFC 8949, section 4.2 demands: the one NaN is
 * 0x7e00 in two bytes, and no number is wider than it needs to be.
 */
int xet_cbor_float_shortest(const xet_cbor_item_t *item);


/* Zeroed at first; its owner frees the items with free(). */

typedef struct {
    void             *items;
    size_t            n;
    size_t            room;            /* items allocated */
} xet_zt_array_t;

/* Adds an item of size bytes, for the caller to fill.  NULL without memory. */
void *xet_zt_array_push(xet_zt_array_t *a, size_t size);


/*
 * The keys of the maps in a manifest: distinct where the format is 1.x, in
 * ascending order where it is container 2.
 */

#define XET_ZT_KEY_SLOT  16


typedef struct {
    uint8_t         bytes[XET_ZT_KEY_SLOT];
} xet_zt_key_t;


typedef struct {
    unsigned        ordered:1;
    unsigned        open:1;            /* inside of a key */
    unsigned        hashed:1;          /* the open key is in the hasher */

    size_t          limit;             /* keys of a map, where not ordered */
    size_t          key_max;           /* bytes of a key, where ordered */
    unsigned        exempt;            /* the depth without that limit */

    /* where the keys of the map at a level begin, in slots or in bytes */
    size_t          base[XET_CBOR_DEPTH + 1];

    /* 1.x: a stack of all keys of the open maps */
    xet_zt_array_t  slots;             /* of xet_zt_key_t */

    /* container 2: a stack of the last keys of the open maps */
    uint8_t        *last;
    size_t          last_len[XET_CBOR_DEPTH + 1];

    /* the open key */
    size_t          len;
    uint8_t         key[XET_ZT_KEY_SLOT];
    blake3_hasher   hasher;
} xet_zt_keys_t;


/* XET_OK or XET_NOMEM; to be destroyed in either case. */
xet_status_t xet_zt_keys_init(xet_zt_keys_t *k, int ordered, size_t limit,
    size_t key_max);
void xet_zt_keys_destroy(xet_zt_keys_t *k);

/*
 * Has to be called with every item, and with the depth of the decoder after
 * it.  XET_OK; XET_ZT_DUPLICATE; XET_NOMEM.  Where ordered: XET_ZT_ORDER;
 * XET_ZT_NAME_LEN for a key of more than key_max bytes; XET_ZT_MANIFEST for an
 * array or a map as a key.  Where not ordered, keys that come twice are found
 * at the end of their map; XET_ZT_KEYS for more than limit keys in a map that
 * is not at the depth k->exempt.
 */
xet_status_t xet_zt_keys_item(xet_zt_keys_t *k, const xet_cbor_item_t *item,
    unsigned depth);


/*
 * Types of elements: those that are stored (a component's dtype), and those
 * that give stored bytes a meaning (its type, from 1.2 on).
 */

typedef enum {
    XET_ZT_VALUES_ANY = 0,
    XET_ZT_VALUES_BOOL,                /* bytes 0 and 1 */
    XET_ZT_VALUES_NIBBLE               /* two a byte, a spare half is 0 */
} xet_zt_values_t;


struct xet_zt_dtype_s {
    const char       *name;
    const char       *storage;         /* a logical type's dtype, or NULL */
    uint8_t           bytes;           /* of a group of elements */
    uint8_t           per;             /* elements of a group, 1 or 2 */
    unsigned          index:1;         /* an integer */
    unsigned          in_2:1;          /* known in container 2 */
    xet_zt_values_t   values;
};


/* A stored type; NULL when the container does not know the name. */
const xet_zt_dtype_t *xet_zt_dtype_find(const xet_zt_text_t *name,
    xet_zt_container_t container);

/* Sets *bytes to what n elements take and returns 1; 0 on overflow. */
int xet_zt_dtype_size(const xet_zt_dtype_t *dtype, uint64_t n,
    uint64_t *bytes);


/* Objects, by their description */

#define XET_ZT_UNIT        64          /* offsets are multiples of it */
#define XET_ZT_UNIT_2      4096        /* in container 2 */


/*
 * Checks an object by its description and fills the members marked so.
 * Does not look at other objects, nor whether components in other files are in
 * bounds.
 */
void xet_zt_object_check(xet_zt_object_t *o, const xet_zt_region_t *region);

/* Adds an error, each one once, and makes the verdict as bad as the error. */
void xet_zt_object_error(xet_zt_object_t *o, xet_status_t status);

/*
 * Whether a component lies in a region, which is of this file or of the
 * component's shard.  XET_OK, XET_ZT_BOUNDS, XET_ZT_HEADER.
 */
xet_status_t xet_zt_component_bounds(const xet_zt_component_t *c,
    const xet_zt_region_t *region);


#define XET_ZT_SHARD_MAX  64           /* bytes of a shard's name */


/*
 * The manifest of a zTensor file, pushed in pieces of any size, one object at
 * a time.
 */

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


/* A handler of shards, as xet_zt_object_pt one of objects. */
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
 * Takes the next bytes.  XET_AGAIN; XET_DONE at the end, or where a handler
 * has stopped; or an error, which stays: XET_ZT_MANIFEST, XET_ZT_TRAILING,
 * XET_ZT_NESTING, XET_ZT_UTF8, XET_ZT_DUPLICATE, XET_ZT_ORDER, XET_ZT_MISSING,
 * XET_ZT_VERSION, XET_ZT_OBJECTS, XET_ZT_COMPONENTS, XET_ZT_KEYS,
 * XET_ZT_NAME_LEN, XET_ZT_NAME, XET_ZT_SHARD_NAME, XET_NOMEM. A parser that
 * begins at a position does not check again all that the whole manifest has
 * passed once.
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


/*
 * Both ends of a file: which container it is, and where the manifest lies.
 */

#define XET_ZT_MAGIC_LEN   8

#define XET_ZT_FOOTER      16          /* bytes, container 1 */
#define XET_ZT_FOOTER_2    40

#define XET_ZT_FILE_MIN    16
#define XET_ZT_FILE_MIN_2  48


/* How many bytes of the end of a file xet_zt_ends_parse() looks at. */
unsigned xet_zt_tail_len(uint64_t size);

/*
 * head: the first XET_ZT_MAGIC_LEN bytes of a file of size bytes; tail: the
 * last xet_zt_tail_len() bytes.  limit: bytes of the manifest.  strict: a file
 * of container 1 must begin with its magic number.  *ends is filled as far as
 * the file is understood.  XET_OK; XET_ZT_NOT_ZTENSOR, XET_ZT_TOO_SHORT,
 * XET_ZT_HEADER_MAGIC, XET_ZT_FOOTER_MAGIC, XET_ZT_VERSION (ends->container
 * says which), XET_ZT_DATA_SHARD, XET_ZT_MANIFEST_*, XET_ZT_ALIGN.
 */
xet_status_t xet_zt_ends_parse(xet_zt_ends_t *ends, const uint8_t *head,
    const uint8_t *tail, uint64_t size, uint64_t limit, int strict);


/* The byte ranges of all components of a file: any two are equal or apart. */

typedef struct {
    uint64_t          offset;
    uint64_t          length;
    uint64_t          file;            /* 0: this file; else shard number */
} xet_zt_extent_t;


/*
 * offset + length must not overflow; an empty range is ignored.  XET_OK,
 * XET_NOMEM.
 */
xet_status_t xet_zt_extents_add(xet_zt_array_t *e, uint64_t file,
    uint64_t offset, uint64_t length);

/* In a file that was checked: whether a range overlaps another in part. */
int xet_zt_extents_find(const xet_zt_array_t *e, uint64_t file,
    uint64_t offset, uint64_t length);


/*
 * Marks in the manifest of a file: every stride-th object of xet_zt_info_t has
 * one, and names where they are in order.
 */

#define XET_ZT_MARK_NAME  127          /* bytes of a mark's name at most */


/* The name of the object at a mark. */

typedef struct {
    uint8_t              len;
    uint8_t              data[XET_ZT_MARK_NAME];
} xet_zt_mark_name_t;


/* What marks need besides xet_zt_info_t; zeroed before the first object. */

typedef struct {
    xet_zt_mark_name_t  *names;        /* XET_ZT_INDEX; NULL: no order */
    uint8_t             *last;         /* the name of the object before */
    size_t               last_len;
} xet_zt_index_t;


/*
 * Adds the next object, whose name has name_max bytes at most, to the marks
 * and the order in info.  XET_OK, XET_NOMEM.
 */
xet_status_t xet_zt_index_add(xet_zt_index_t *m, xet_zt_info_t *info,
    const xet_zt_object_t *o, size_t name_max);

/* No object follows: releases the last name, and unordered names of marks. */
void xet_zt_index_end(xet_zt_index_t *m, const xet_zt_info_t *info);

void xet_zt_index_destroy(xet_zt_index_t *m);

/*
 * Compares two names in an order, XET_ZT_ORDER_*: less than 0, 0, or more
 * where a comes before b, is b, or comes behind b.
 */
int xet_zt_order(unsigned order, const xet_zt_text_t *a,
    const xet_zt_text_t *b);


/* The record of a file: what its check and the saved verdict on it share. */

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

    xet_zt_array_t      shards;            /* of container 2 */
    xet_zt_array_t      extents;           /* of xet_zt_extent_t */

    xet_zt_text_t       attributes;

    xet_zt_index_t      index;
};


/* The heads of zstd frames */

typedef struct {
    unsigned  skippable:1;
    unsigned  has_content:1;           /* content is known */
    unsigned  checksum:1;
    unsigned  dictionary:1;            /* the frame needs one */
    unsigned  head;                    /* bytes of the head */
    uint64_t  content;                 /* decoded, or skippable, bytes */
    uint64_t  window;                  /* bytes of memory to stream it */
} xet_zt_frame_t;


/*
 * Parses the head of the frame at data.  XET_OK; XET_AGAIN when len bytes are
 * not the whole head, which XET_ZT_FRAME_HEAD bytes always have; XET_ZT_ZSTD
 * when no frame begins at data.
 */
xet_status_t xet_zt_frame_parse(xet_zt_frame_t *f, const uint8_t *data,
    size_t len);


/*
 * Digests of components: "sha256:" and "crc32c:" in container 1, "sha256:"
 * and "xxh3:" in container 2.  CRC-32C (Castagnoli) is not the CRC-32 of zlib
 * and of nginx.
 */

/* Returns the CRC after data; crc: of the bytes before data, 0 at the start. */
uint32_t xet_crc32c(uint32_t crc, const uint8_t *data, size_t len);


#define XET_ZT_DIGEST_MAX  32          /* bytes of a value */


typedef enum {
    XET_ZT_DIGEST_NONE = 0,
    XET_ZT_DIGEST_SHA256,
    XET_ZT_DIGEST_CRC32C,
    XET_ZT_DIGEST_XXH3
} xet_zt_digest_kind_t;


typedef struct {
    xet_zt_digest_kind_t     kind;
    xet_zt_digest_verdict_t  verdict;  /* of the text alone, if kind is none */
    uint8_t                  want[XET_ZT_DIGEST_MAX];
    size_t                   len;      /* of want */

    void                    *sha256;   /* an EVP_MD_CTX, kept for reuse */
    void                    *xxh3;     /* an XXH3_state_t, kept for reuse */
    uint32_t                 crc32c;
} xet_zt_digest_t;


void xet_zt_digest_init(xet_zt_digest_t *d);
void xet_zt_digest_destroy(xet_zt_digest_t *d);

/*
 * Begins with the digest that text declares (data NULL: no digest).  XET_OK,
 * even for a digest that can't be checked; XET_NOMEM.
 */
xet_status_t xet_zt_digest_start(xet_zt_digest_t *d, const xet_zt_text_t *text,
    xet_zt_container_t container);

/* Takes the next bytes that the digest covers.  XET_OK, XET_INTERNAL. */
xet_status_t xet_zt_digest_update(xet_zt_digest_t *d, const uint8_t *data,
    size_t len);

/* Sets *verdict.  XET_OK, XET_INTERNAL. */
xet_status_t xet_zt_digest_finish(xet_zt_digest_t *d,
    xet_zt_digest_verdict_t *verdict);


/*
 * The indices of sparse objects held against the shape and each other, as the
 * decoded bytes of one component after the other come.
 */

typedef struct xet_zt_sparse_s  xet_zt_sparse_t;


/*
 * memory: bytes that comparing elements with each other, which only container
 * 2 demands, may take.  NULL when out of memory.
 */
xet_zt_sparse_t *xet_zt_sparse_create(size_t memory);
void xet_zt_sparse_destroy(xet_zt_sparse_t *s);

/*
 * Begins with component c of o, an object that has been checked; both stay
 * until the end.  What is known of o's other components is kept until a
 * component of another object begins.  Returns 0 when there is nothing to
 * check.  "values" should come before "coords": without them the number of
 * coordinates may not be known.
 */
int xet_zt_sparse_start(xet_zt_sparse_t *s, xet_zt_container_t container,
    const xet_zt_object_t *o, const xet_zt_component_t *c);

/*
 * Takes the next decoded bytes.  XET_OK, XET_NOMEM; errors in the data are
 * returned by xet_zt_sparse_finish().
 */
xet_status_t xet_zt_sparse_feed(xet_zt_sparse_t *s, const uint8_t *data,
    size_t len);

/* Bytes of memory that were cleared for it since this was asked last. */
size_t xet_zt_sparse_cleared(xet_zt_sparse_t *s);

/*
 * Called after all bytes.  XET_OK; XET_ZT_INDICES; XET_ZT_UNCHECKED when the
 * check would take too much memory, or when the number of values is not known.
 */
xet_status_t xet_zt_sparse_finish(xet_zt_sparse_t *s);


/*
 * Writes the CBOR map at data, which the manifest's parser has accepted, as a
 * JSON object.  Byte strings are {"$base64":"..."}; NaN, infinities and
 * undefined are null, tags are dropped.  A key that is an integer becomes its
 * decimal text; an entry whose key is neither an integer nor text is left out.
 * Where the JSON would be nested deeper than XET_JSON_DEPTH there is null.
 * Out of memory, the buffer of j fails.
 */
void xet_zt_attributes_json(xet_json_t *j, const uint8_t *data, size_t len);


#endif /* _XET_ZT_H_INCLUDED_ */
