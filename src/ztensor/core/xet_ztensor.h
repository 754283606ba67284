
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


#include <stdint.h>
#include <stddef.h>

#include "xet_base.h"


/* Limits */

#define XET_ZT_MANIFEST_MAX  ((uint64_t) 1 << 30)  /* by the format */

#define XET_ZT_NAME_MAX      1024      /* container 2, and our default */
#define XET_ZT_VERSION_MAX   32        /* bytes of the version kept */
#define XET_ZT_RANK_MAX      64        /* dimensions kept of a shape */
#define XET_ZT_DEPTH_MAX     32        /* open arrays, maps and tags */


/*
 * Our limits; xet_zt_limits_init() sets the defaults, which are given here.
 * Memory: about 400 KiB, and while a file is checked 16 bytes per object and
 * 24 per component.
 */

typedef struct {
    uint64_t                 manifest;     /* bytes, 64 MiB */
    uint64_t                 objects;      /* 1,000,000 */
    uint64_t                 components;   /* of all objects, 2,000,000 */
    unsigned                 roles;        /* components of an object, 64 */
    unsigned                 rank;         /* 64, XET_ZT_RANK_MAX at most */
    unsigned                 depth;        /* 32, XET_ZT_DEPTH_MAX at most */
    size_t                   name;         /* bytes of a name, 1024 */
    size_t                   keys;         /* of any other map, 65,536 */
    size_t                   attributes;   /* bytes of an echoed map, 1 MiB */
    unsigned                 strict:1;     /* 0; 1: overlaps and a header
                                              without magic are errors */
} xet_zt_limits_t;

void xet_zt_limits_init(xet_zt_limits_t *limits);


/* Objects */

typedef enum {
    XET_ZT_CONTAINER_NONE = 0,         /* not known */
    XET_ZT_CONTAINER_1,                /* 1.1 and 1.2 */
    XET_ZT_CONTAINER_2,
    XET_ZT_CONTAINER_0_1,              /* recognised, not read */
    XET_ZT_CONTAINER_1_0               /* recognised, not read */
} xet_zt_container_t;


#define XET_ZT_ERRORS_MAX  16          /* of one object */


/* Counted bytes: names may hold zero bytes.  data is NULL when absent. */

typedef struct {
    const uint8_t           *data;
    size_t                   len;
} xet_zt_text_t;


typedef struct xet_zt_dtype_s  xet_zt_dtype_t;


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

/* Whether the object has a sparse format, whose components are compared. */
int xet_zt_object_sparse(const xet_zt_object_t *o);


/* Files */

typedef struct {
    xet_zt_container_t  container;
    unsigned            header_magic:1;

    uint64_t            manifest_offset;
    uint64_t            manifest_length;
    uint64_t            manifest_hash;  /* container 2 */

    uint64_t            data_start;     /* components lie from here */
    uint64_t            data_end;       /* to here, exclusive */
} xet_zt_ends_t;


#define XET_ZT_INDEX              256

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
    unsigned                 index_n;
    uint64_t                 index[XET_ZT_INDEX];  /* places in the manifest */
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
 * An object lives until its handler returns.  The handler returns XET_OK;
 * XET_DONE to stop reading; or an error, which ends the walk.
 */
typedef xet_status_t (*xet_zt_object_pt)(void *ctx, xet_zt_object_t *o);


/*
 * zt has been checked, with XET_OK, or restored.  zt and the texts of select,
 * which are not copied, must outlive the walk.  The handler is called with
 * checked objects in the order of the manifest.  NULL when out of memory.
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


/* Verdicts, to be kept beside the file */

/* Bytes that xet_zt_save() writes at most. */
#define XET_ZT_SAVED_MAX       (256 * 1024)

/* A file with more ranges that overlap in part is not saved. */
#define XET_ZT_SAVED_OVERLAPS  4096


/*
 * A hash of all that a verdict depends on besides the file: the limits and the
 * revision of the checks.  A verdict that was saved under another hash is of
 * no use.
 */
uint64_t xet_zt_rules(const xet_zt_limits_t *limits);

/*
 * Writes the verdict on a file to b.  status: what xet_zt_need() has returned,
 * XET_OK or an error of the file.  The root's attributes are not written, the
 * caller has to keep them.  XET_OK; XET_DONE, with nothing written, when zt
 * holds more than XET_ZT_SAVED_OVERLAPS ranges; XET_NOMEM.
 */
xet_status_t xet_zt_save(const xet_zt_t *zt, xet_status_t status,
    xet_buf_t *b);

/*
 * Sets *zt to a record that is as if the file had been checked; the caller
 * destroys it, whatever is returned.  *zt may be NULL after XET_NOMEM.
 * attributes: the bytes of the root's attributes, copied; NULL when they are
 * not wanted, and then read as absent.
 *
 * XET_OK; the verdict that was saved; XET_NOMEM; or XET_ZT_STALE for bytes
 * that were not saved by these rules for a file of this size, and for
 * attributes that are not those of the saved file.
 */
xet_status_t xet_zt_restore(xet_zt_t **zt, uint64_t size,
    const xet_zt_limits_t *limits, const uint8_t *data, size_t len,
    const uint8_t *attributes, size_t attributes_len);


/* Compressed components */

#define XET_ZT_FRAME_HEAD  18          /* bytes of a frame's head at most */


typedef struct {
    uint64_t  output;                  /* decoded bytes, 256 MiB */
    unsigned  window_log;              /* 10 to 31; 23, for 8 MiB */
} xet_zt_decode_limits_t;

void xet_zt_decode_limits_init(xet_zt_decode_limits_t *limits);


typedef struct xet_zt_decoder_s  xet_zt_decoder_t;


/* *limits is copied.  NULL when out of memory, or for a bad window_log. */
xet_zt_decoder_t *xet_zt_decoder_create(const xet_zt_decode_limits_t *limits);
void xet_zt_decoder_destroy(xet_zt_decoder_t *d);

/*
 * Begins with another component, of expected decoded bytes, or of any number
 * up to the limit when known is 0.  XET_OK; XET_ZT_DECODE_SIZE when expected
 * is over the limit; XET_INTERNAL.
 */
xet_status_t xet_zt_decoder_start(xet_zt_decoder_t *d, int known,
    uint64_t expected);

/*
 * Decodes some of *in into out, moves *in and *in_len past the bytes that were
 * taken, and sets *out_len (on entry the room at out, not 0) to the number of
 * decoded bytes.  XET_AGAIN when there is no error: the caller calls again,
 * with new room, while input is left or the room was used up.  XET_ZT_ZSTD,
 * XET_ZT_LENGTH past the expected length, XET_ZT_DECODE_SIZE past the limit,
 * XET_ZT_WINDOW, XET_NOMEM.  The errors stay.
 */
xet_status_t xet_zt_decoder_feed(xet_zt_decoder_t *d, const uint8_t **in,
    size_t *in_len, uint8_t *out, size_t *out_len);

/*
 * Called when all input was taken.  XET_OK; XET_ZT_ZSTD when the input ends
 * inside of a frame or has no frame; XET_ZT_LENGTH when the output is not of
 * the expected length; XET_INTERNAL when decoded bytes were not fetched; or
 * the error that xet_zt_decoder_start() or xet_zt_decoder_feed() has returned.
 */
xet_status_t xet_zt_decoder_finish(xet_zt_decoder_t *d);

/*
 * Decodes a whole component at once, into exactly len bytes, without limits:
 * takes 100 KiB of memory besides, whatever the window.  XET_OK, XET_ZT_ZSTD,
 * XET_ZT_LENGTH, XET_NOMEM.
 */
xet_status_t xet_zt_decode(const uint8_t *in, size_t in_len, uint8_t *out,
    size_t len);


typedef enum {
    xet_zt_frames_head = 0,
    xet_zt_frames_block,
    xet_zt_frames_skip
} xet_zt_frames_state_t;


typedef struct {
    uint64_t               n;          /* frames that hold data */
    uint64_t               window;     /* the largest, bytes */
    unsigned               dictionary:1;  /* some frame needs one */

    xet_status_t           status;
    xet_zt_frames_state_t  state;
    xet_zt_frames_state_t  next;       /* after what is skipped */
    unsigned               checksum:1; /* of the open frame */
    unsigned               have;       /* bytes of the open head */
    uint32_t               largest;    /* a stored block of the open frame */
    uint64_t               skip;
    uint8_t                head[XET_ZT_FRAME_HEAD];
} xet_zt_frames_t;


void xet_zt_frames_init(xet_zt_frames_t *f);

/* The next bytes, in pieces of any size.  XET_OK; XET_ZT_ZSTD, which stays. */
xet_status_t xet_zt_frames_feed(xet_zt_frames_t *f, const uint8_t *data,
    size_t len);

/*
 * Called after all bytes.  XET_OK; XET_ZT_ZSTD when they end inside of a
 * frame, when no frame holds data, or after an error.
 */
xet_status_t xet_zt_frames_finish(const xet_zt_frames_t *f);


/* Verification */

typedef enum {
    XET_ZT_DIGEST_VERIFIED = 0,
    XET_ZT_DIGEST_MISMATCH,
    XET_ZT_DIGEST_ABSENT,
    XET_ZT_DIGEST_UNSUPPORTED,         /* unknown, or over data that is not
                                          read or decoded here */
    XET_ZT_DIGEST_MALFORMED,
    XET_ZT_DIGEST_UNREADABLE,          /* its data can't be read */
    XET_ZT_DIGEST_UNCHECKED            /* it was too much; never kept */
} xet_zt_digest_verdict_t;


/* "verified", "mismatch" and so on. */
const char *xet_zt_digest_name(xet_zt_digest_verdict_t verdict);


typedef struct {
    xet_zt_digest_verdict_t  digest;

    /*
     * XET_OK; XET_ZT_ZSTD, XET_ZT_LENGTH, XET_ZT_VALUES, XET_ZT_INDICES;
     * XET_ZT_WINDOW, XET_ZT_DECODE_SIZE when the component was not decoded;
     * XET_ZT_VERIFY_SIZE when it was too much; XET_ZT_UNCHECKED when something
     * else was left out; XET_ZT_BOUNDS, XET_ZT_HEADER when its range must not
     * be read.
     */
    xet_status_t             status;
} xet_zt_report_t;


typedef struct xet_zt_verifier_s  xet_zt_verifier_t;


/* NULL when out of memory. */
xet_zt_verifier_t *xet_zt_verifier_create(
    const xet_zt_decode_limits_t *limits);
void xet_zt_verifier_destroy(xet_zt_verifier_t *v);

/*
 * Of components that begin behind this: how many bytes the decoder may give
 * for one whose length is not known.  XET_ZT_VERIFY_SIZE past them.  Without
 * it what the limits of decoding say.
 */
void xet_zt_verifier_limit(xet_zt_verifier_t *v, uint64_t limit);

/*
 * Begins with component c of o, an object that has been checked; both stay
 * until the end.  Indices are checked against the components of o that were
 * verified just before, of which "values" should be the first.  XET_AGAIN with
 * the range of the file whose bytes are to be fed; XET_DONE when there is
 * nothing to read; XET_NOMEM.
 */
xet_status_t xet_zt_verifier_start(xet_zt_verifier_t *v,
    const xet_zt_region_t *region, const xet_zt_object_t *o,
    const xet_zt_component_t *c, xet_range_t *range);

/*
 * Takes the next bytes of the range; bytes past it are ignored.  XET_OK,
 * XET_NOMEM, XET_INTERNAL.
 */
xet_status_t xet_zt_verifier_feed(xet_zt_verifier_t *v, const uint8_t *data,
    size_t len);

/*
 * The same, for a part: moves *data and *len past what was taken, and takes
 * the work that was done off *room, in bytes.  XET_AGAIN when that is used up,
 * with the rest of the data, or nothing, in *len: to be called again with
 * other room.  It may exceed the room by a buffer, or by what is decoded as a
 * whole: up to 1 MiB, and what indices need to be compared.
 */
xet_status_t xet_zt_verifier_take(xet_zt_verifier_t *v, const uint8_t **data,
    size_t *len, uint64_t *room);

/*
 * Sets *report.  Called after all bytes of the range, or at once where there
 * was nothing to read.  XET_OK, XET_NOMEM; XET_INTERNAL also when bytes are
 * missing.
 */
xet_status_t xet_zt_verifier_finish(xet_zt_verifier_t *v,
    xet_zt_report_t *report);

/* What the component has taken so far: bytes decoded, or cleared. */
uint64_t xet_zt_verifier_work(const xet_zt_verifier_t *v);

/*
 * Whether the report is no ground for complaint: all that is declared was
 * checked, and nothing contradicts it.
 */
int xet_zt_report_ok(const xet_zt_report_t *report,
    xet_zt_container_t container);


#define XET_ZT_REPORT_LEN  2               /* bytes a component */


/* What a report depends on besides the file; see xet_zt_rules(). */
uint64_t xet_zt_report_rules(const xet_zt_limits_t *limits,
    const xet_zt_decode_limits_t *decode);

/* Fills XET_ZT_REPORT_LEN bytes; returns 0 if a report must not be kept. */
int xet_zt_report_pack(uint8_t *dst, const xet_zt_report_t *report);

/* Reads XET_ZT_REPORT_LEN bytes; returns 0 if no report packs to them. */
int xet_zt_report_unpack(xet_zt_report_t *report, const uint8_t *src);


/* Answers */

/*
 * A page of a listing:
 *
 *   {"file":"...","size":n,"container":"1.1","version":"1.1.0",
 *    "header_magic":true,"manifest":{"offset":n,"length":n},"attributes":{},
 *    "count":n,"warnings":[],"objects":[...],"next":i}
 *
 * "count" is the number of objects in the file; "next" is the index of the
 * last object of the page, after which the next page begins, or null when no
 * other object matches.  "attributes" are null when too large.  Warnings:
 * "missing_header_magic", "unknown_version", "overlap",
 * "attributes_not_echoed".
 */

typedef struct {
    xet_json_t        *json;
    uint64_t           limit;          /* objects of the page at most */
    uint64_t           bytes;          /* no object begins past them */
    uint64_t           n;              /* objects so far */
    uint64_t           last;           /* index of the last object */
    uint64_t           start;          /* of the page in the buffer */
    unsigned           more:1;
} xet_zt_page_t;

/* id: the value of "file"; limit: at least 1. */
void xet_zt_page_begin(xet_zt_page_t *page, xet_json_t *j, const xet_zt_t *zt,
    const uint8_t *id, size_t id_len, uint64_t limit, uint64_t bytes);

/* A handler of objects, for a walk with attributes; ctx is the page. */
xet_status_t xet_zt_page_object(void *ctx, xet_zt_object_t *o);

void xet_zt_page_end(xet_zt_page_t *page);


/*
 * An object:
 *
 *   {"i":n,"name":"...","shape":[...],"format":"dense","attributes":{},
 *    "status":"ok","errors":[],"components":{"data":{"dtype":"f32",
 *    "offset":n,"length":n,"encoding":"raw","decoded_length":n,
 *    "digest":"..."}}}
 *
 * "status" is "ok", "invalid" or "unsupported"; "errors" are codes of
 * statuses; "decoded_length" and "digest" may be null; "shape" is null when it
 * has more than XET_ZT_RANK_MAX dimensions, "attributes" when too large.  A
 * component may also have "type" and "shard".
 */

void xet_zt_object_json(xet_json_t *j, const xet_zt_object_t *o);


/*
 * A verification:
 *
 *   {"file":"...","size":n,"container":"1.1","objects":[{"i":n,"name":"...",
 *    "components":{"data":"verified"},"status":"ok","errors":[]}],
 *    "checked":n,"bytes":n,"ok":true}
 *
 * "checked" counts the components, "bytes" their stored bytes in this file.
 * "errors" are those of the object's description and of its data.  "ok" is
 * false when an object is invalid or unsupported, or when xet_zt_report_ok()
 * is false for a report.
 */

typedef struct {
    xet_json_t          *json;
    xet_zt_container_t   container;
    uint64_t             checked;
    uint64_t             bytes;
    unsigned             failed:1;
} xet_zt_audit_t;

void xet_zt_audit_begin(xet_zt_audit_t *a, xet_json_t *j, const xet_zt_t *zt,
    const uint8_t *id, size_t id_len);
void xet_zt_audit_object(xet_zt_audit_t *a, const xet_zt_object_t *o);

/* An error of the report becomes an error of o; o->verdict is left alone. */
void xet_zt_audit_component(xet_zt_audit_t *a, xet_zt_object_t *o,
    const xet_zt_component_t *c, const xet_zt_report_t *report);
void xet_zt_audit_object_end(xet_zt_audit_t *a, const xet_zt_object_t *o);
void xet_zt_audit_end(xet_zt_audit_t *a);


/*
 * Why a file can't be listed:
 *
 *   {"error":{"code":"...","message":"...","container":"1.0","offset":n}}
 *
 * "container" and "offset" are there where they are known.
 */

void xet_zt_error_json(xet_json_t *j, const xet_zt_t *zt, xet_status_t status);


/* "1.1", "2", "1.0", "0.1"; NULL when not known. */
const char *xet_zt_container_name(xet_zt_container_t container);


/* Arguments */

/* Which arguments a route has. */

#define XET_ZT_ARG_NAME    0x01            /* "name", "i": an object */
#define XET_ZT_ARG_ONE     0x02            /* one of them is required */
#define XET_ZT_ARG_ROLE    0x04
#define XET_ZT_ARG_FORM    0x08
#define XET_ZT_ARG_ROWS    0x10
#define XET_ZT_ARG_PAGE    0x20            /* "after", "limit", "prefix",
                                              "format" */


typedef struct {
    xet_zt_text_t  name;                   /* data NULL: absent */
    xet_zt_text_t  role;
    xet_zt_text_t  prefix;
    xet_zt_text_t  format;
    uint64_t       i;
    uint64_t       after;
    uint64_t       limit;
    xet_range_t    rows;                   /* "a:b", end is exclusive */

    unsigned       has_i:1;
    unsigned       has_after:1;
    unsigned       has_limit:1;
    unsigned       has_rows:1;
    unsigned       rows_open:1;            /* "a:", to the last row */
    unsigned       decoded:1;              /* "form=decoded" */
} xet_zt_query_t;


/*
 * wanted: XET_ZT_ARG_* of the route.  args: as in the URL, "+" is no space.
 * room: len bytes for the texts of *q, which must live as long as *q.  XET_OK,
 * XET_ZT_QUERY, XET_ZT_QUERY_KEY, XET_ZT_QUERY_ESCAPE, XET_ZT_QUERY_BOTH,
 * XET_ZT_QUERY_NONE, XET_ZT_AXES.
 */
xet_status_t xet_zt_query_parse(xet_zt_query_t *q, unsigned wanted,
    const uint8_t *args, size_t len, uint8_t *room);


#endif /* _XET_ZTENSOR_H_INCLUDED_ */
