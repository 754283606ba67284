
/*
 * Reader of zTensor files (zTensor 1.1.0): container 1 (1.1 and 1.2) and
 * container 2.  The core does no I/O: it names the range of the file that it
 * needs.  The caller fetches these bytes and feeds them in pieces of any size.
 *
 *     while (xet_zt_need(zt, &range) == XET_AGAIN) {
 *         n = fetch(range.start, range.end, buf, sizeof(buf));
 *         (void) xet_zt_feed(zt, buf, n);
 *     }
 *
 * xet_zt_t checks a whole file once.  After that, xet_zt_walk_t reads its
 * objects in pages, any number of times.
 */

#ifndef _XET_ZTENSOR_H_INCLUDED_
#define _XET_ZTENSOR_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_base.h"


/* Limits */

#define XET_ZT_MANIFEST_MAX  ((uint64_t) 1 << 30)  /* bytes; format limit */

#define XET_ZT_NAME_MAX      1024      /* container 2, and the default */
#define XET_ZT_VERSION_MAX   32        /* max stored bytes of the version */
#define XET_ZT_RANK_MAX      64        /* max stored dimensions of a shape */
#define XET_ZT_DEPTH_MAX     32        /* max open arrays, maps and tags */


/*
 * Limits of a check.  xet_zt_limits_init() sets the defaults that the comments
 * below state.  A check takes about 400 KiB of memory, plus 16 bytes per
 * object and 24 per component.
 */

typedef struct {
    uint64_t                 manifest;     /* bytes, 64 MiB */
    uint64_t                 objects;      /* 1,000,000 */
    uint64_t                 components;   /* total, 2,000,000 */
    unsigned                 roles;        /* components per object, 64 */
    unsigned                 rank;         /* 64; at most XET_ZT_RANK_MAX */
    unsigned                 depth;        /* 32; at most XET_ZT_DEPTH_MAX */
    size_t                   name;         /* bytes of a name, 1024 */
    size_t                   keys;         /* per map except objects, 65,536 */
    size_t                   attributes;   /* bytes of attributes per file or
                                              object in responses, 1 MiB */
    unsigned                 strict:1;     /* 0; 1: overlaps and a header
                                              without magic are errors */
} xet_zt_limits_t;

void xet_zt_limits_init(xet_zt_limits_t *limits);


/* Objects */

typedef enum {
    XET_ZT_CONTAINER_NONE = 0,         /* unknown */
    XET_ZT_CONTAINER_1,                /* 1.1 and 1.2 */
    XET_ZT_CONTAINER_2,
    XET_ZT_CONTAINER_0_1,              /* recognised, but unsupported */
    XET_ZT_CONTAINER_1_0               /* recognised, but unsupported */
} xet_zt_container_t;


#define XET_ZT_ERRORS_MAX  16          /* errors per object */


/* Text with a length: names may contain zero bytes.  data NULL: absent. */

typedef struct {
    const uint8_t           *data;
    size_t                   len;
} xet_zt_text_t;


typedef struct xet_zt_dtype_s  xet_zt_dtype_t;


typedef enum {
    XET_ZT_CODING_RAW = 0,
    XET_ZT_CODING_ZSTD,
    XET_ZT_CODING_SEEKABLE,            /* zstd frames, then a seek table */
    XET_ZT_CODING_UNKNOWN
} xet_zt_coding_t;


typedef struct {
    xet_zt_text_t            role;
    xet_zt_text_t            dtype;
    xet_zt_text_t            type;         /* may be absent */
    xet_zt_text_t            encoding;     /* absent: raw */
    xet_zt_text_t            digest;       /* may be absent */
    xet_zt_text_t            shard;        /* absent: data is in this file */

    uint64_t                 offset;
    uint64_t                 length;       /* stored bytes */
    uint64_t                 declared;     /* decoded size, by the manifest */
    unsigned                 has_declared:1;

    /* set by xet_zt_object_check() */

    unsigned                 has_decoded:1;
    uint64_t                 decoded;      /* decoded bytes, if known */
    xet_zt_coding_t          coding;
    const xet_zt_dtype_t    *storage;      /* NULL: unknown */
    const xet_zt_dtype_t    *element;      /* type or dtype; NULL: unknown */
} xet_zt_component_t;


typedef enum {
    XET_ZT_OBJECT_OK = 0,
    XET_ZT_OBJECT_UNSUPPORTED,         /* unknown type, encoding or format */
    XET_ZT_OBJECT_INVALID
} xet_zt_verdict_t;


typedef struct {
    uint64_t                 index;        /* index in the manifest */
    uint64_t                 pos;          /* manifest offset of the name */

    xet_zt_text_t            name;
    xet_zt_text_t            format;

    unsigned                 rank;         /* may exceed XET_ZT_RANK_MAX */
    uint64_t                 shape[XET_ZT_RANK_MAX];

    xet_zt_text_t            attributes;   /* a CBOR map, or absent */
    unsigned                 attributes_cut:1;  /* present, but too large */

    xet_zt_component_t      *components;   /* in manifest order */
    unsigned                 n;

    /* set by xet_zt_object_check() */

    unsigned                 has_count:1;
    uint64_t                 count;        /* elements */
    xet_zt_verdict_t         verdict;
    unsigned                 errors_n;
    xet_status_t             errors[XET_ZT_ERRORS_MAX];
} xet_zt_object_t;


/* The properties of a file that the check of an object needs. */

typedef struct {
    xet_zt_container_t       container;
    unsigned                 rank_max;
    uint64_t                 data_start;   /* first byte for components */
    uint64_t                 data_end;     /* end of the region, exclusive */
} xet_zt_region_t;


/* Returns the first error that makes the object invalid, or XET_OK. */
xet_status_t xet_zt_object_fault(const xet_zt_object_t *o);

/* Returns the component with the role; NULL if not found. */
const xet_zt_component_t *xet_zt_object_component(const xet_zt_object_t *o,
    const uint8_t *role, size_t len);

/*
 * Returns the component for a request without a role: "data", or the only
 * component; otherwise NULL.
 */
const xet_zt_component_t *xet_zt_object_default(const xet_zt_object_t *o);

/*
 * Returns 1 if the component is raw and in this file, so that a range of its
 * decoded bytes is a range of the file.
 */
int xet_zt_component_seekable(const xet_zt_component_t *c);

/*
 * Sets *range to the stored bytes of a component in this file.  Returns
 * XET_OK; XET_ZT_SHARD_REF if the bytes are in another file; XET_ZT_BOUNDS or
 * XET_ZT_HEADER if the bytes are outside the region.
 */
xet_status_t xet_zt_component_range(const xet_zt_component_t *c,
    const xet_zt_region_t *region, xet_range_t *range);

/*
 * Sets *range to the bytes of rows first to end - 1 (along the first
 * dimension), relative to the start of c.  c must be the raw "data" component
 * of a dense object.  Returns XET_OK; XET_RANGE_PAST_END; XET_ZT_DECODE for
 * any other component, if the object is not XET_ZT_OBJECT_OK, or if two rows
 * share a byte.
 */
xet_status_t xet_zt_object_rows(const xet_zt_object_t *o,
    const xet_zt_component_t *c, uint64_t first, uint64_t end,
    xet_range_t *range);

/*
 * Copies an object, except its attributes, which are absent in the copy.  The
 * copy is one allocation; the caller releases it with free().  Returns NULL if
 * out of memory.
 */
xet_zt_object_t *xet_zt_object_copy(const xet_zt_object_t *o);

/* Returns the number of bytes that a copy of the object takes. */
size_t xet_zt_object_size(const xet_zt_object_t *o);

/* Returns 1 if text is present and equal to the C string s. */
int xet_zt_text_is(const xet_zt_text_t *text, const char *s);

/* Returns 1 if the format is sparse: its components depend on each other. */
int xet_zt_object_sparse(const xet_zt_object_t *o);


/* Files */

typedef struct {
    xet_zt_container_t  container;
    unsigned            header_magic:1;

    uint64_t            manifest_offset;
    uint64_t            manifest_length;
    uint64_t            manifest_hash;  /* container 2 */

    uint64_t            data_start;     /* first byte for components */
    uint64_t            data_end;       /* end of the region, exclusive */
} xet_zt_ends_t;


#define XET_ZT_INDEX              256

#define XET_ZT_WARN_NO_MAGIC      0x01     /* no magic number at the start */
#define XET_ZT_WARN_VERSION       0x02     /* 1.x, but not 1.1 or 1.2 */
#define XET_ZT_WARN_OVERLAP       0x04     /* components partly overlap */
#define XET_ZT_WARN_ATTRIBUTES    0x08     /* root attributes too large */

#define XET_ZT_ORDER_BYTES        0x01     /* names ascend as strings */
#define XET_ZT_ORDER_LENGTH       0x02     /* sorted by length, then text */


/* Results of a check, as plain data; incomplete while the check runs. */

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
    uint64_t                 bytes;        /* stored bytes in this file */

    uint64_t                 objects_end;  /* offset in the manifest */
    uint64_t                 stride;       /* objects per mark */
    unsigned                 order;        /* XET_ZT_ORDER_*; 0: none */
    unsigned                 index_n;
    uint64_t                 index[XET_ZT_INDEX];  /* offsets in manifest */
} xet_zt_info_t;


typedef struct xet_zt_s  xet_zt_t;


/*
 * Creates the record of a file of size bytes; returns NULL if out of memory.
 * *limits is copied.
 */
xet_zt_t *xet_zt_create(uint64_t size, const xet_zt_limits_t *limits);
void xet_zt_destroy(xet_zt_t *zt);

/*
 * Returns the state of the check.  XET_AGAIN: *range is the range of the file
 * that is needed next, at most the whole manifest.  XET_OK: the check is done.
 * Any other status means that the file cannot be listed: XET_ZT_NOT_ZTENSOR to
 * XET_ZT_SHARD_REF; in container 2 also errors of objects, XET_ZT_ALIGN to
 * XET_ZT_INDEX_DTYPE; XET_NOMEM; XET_INTERNAL.
 */
xet_status_t xet_zt_need(const xet_zt_t *zt, xet_range_t *range);

/*
 * Processes the next bytes of the range of xet_zt_need(); bytes past its end
 * are ignored.  Returns the same statuses as xet_zt_need().
 */
xet_status_t xet_zt_feed(xet_zt_t *zt, const uint8_t *data, size_t len);

/* Returns the offset of an error in the file; 0 if unknown. */
uint64_t xet_zt_error_offset(const xet_zt_t *zt);

const xet_zt_info_t *xet_zt_info(const xet_zt_t *zt);

/* Sets *region to the data range, container and maximum rank of the file. */
void xet_zt_region(const xet_zt_t *zt, xet_zt_region_t *region);

/* Returns the root's attributes: a CBOR map that is valid as long as zt. */
const xet_zt_text_t *xet_zt_attributes(const xet_zt_t *zt);


/* Selects the objects to read; a selected object meets all conditions. */

typedef struct {
    uint64_t                 first;        /* lowest index */
    xet_zt_text_t            name;         /* whole name; data NULL: any */
    xet_zt_text_t            prefix;       /* name prefix; data NULL: any */
    xet_zt_text_t            format;       /* data NULL: any */
    unsigned                 attributes:1; /* read attributes of objects */
} xet_zt_select_t;


typedef struct xet_zt_walk_s  xet_zt_walk_t;

/*
 * A handler of objects; the object is valid until the handler returns.  The
 * handler returns XET_OK; XET_DONE to stop reading; or an error, which ends
 * the walk.
 */
typedef xet_status_t (*xet_zt_object_pt)(void *ctx, xet_zt_object_t *o);


/*
 * Creates a walk; returns NULL if out of memory.  zt must have been checked
 * with XET_OK, or restored.  zt and the texts of select are not copied and
 * must outlive the walk.  The handler is called for each selected object,
 * after its check, in the order of the manifest.
 */
xet_zt_walk_t *xet_zt_walk_create(const xet_zt_t *zt,
    const xet_zt_select_t *select, xet_zt_object_pt handler, void *ctx);
void xet_zt_walk_destroy(xet_zt_walk_t *w);

/*
 * Work like xet_zt_need() and xet_zt_feed(); XET_OK: the walk has ended.  If
 * the file has not changed, the only errors are XET_NOMEM and the errors of
 * the handler.
 */
xet_status_t xet_zt_walk_need(const xet_zt_walk_t *w, xet_range_t *range);
xet_status_t xet_zt_walk_feed(xet_zt_walk_t *w, const uint8_t *data,
    size_t len);


/* Saved check results */

/* Maximum number of bytes that xet_zt_save() writes. */
#define XET_ZT_SAVED_MAX       (256 * 1024)

/* The result is not saved if more ranges than this partly overlap. */
#define XET_ZT_SAVED_OVERLAPS  4096


/*
 * Returns a hash of everything that a check result depends on apart from the
 * file: the limits and the revision of the checks.  A result that was saved
 * with another hash must not be used.
 */
uint64_t xet_zt_rules(const xet_zt_limits_t *limits);

/*
 * Appends the check result of a file to b.  status: the result of
 * xet_zt_need(), XET_OK or an error of the file.  The attributes of the root
 * are not written; the caller must store them.  Returns XET_OK; XET_DONE, with
 * nothing written, if more than XET_ZT_SAVED_OVERLAPS ranges overlap;
 * XET_NOMEM.
 */
xet_status_t xet_zt_save(const xet_zt_t *zt, xet_status_t status,
    xet_buf_t *b);

/*
 * Restores the record of a checked file from a saved result.  The caller
 * destroys *zt, whatever status is returned; *zt may be NULL after XET_NOMEM.
 * attributes: the attributes of the root, which are copied; NULL: the record
 * has no attributes.
 *
 * Returns XET_OK; the error that was saved; XET_NOMEM; XET_ZT_STALE if the
 * bytes were saved with other rules or for a file of another size, if they are
 * damaged, or if the attributes are not those of the saved file.
 */
xet_status_t xet_zt_restore(xet_zt_t **zt, uint64_t size,
    const xet_zt_limits_t *limits, const uint8_t *data, size_t len,
    const uint8_t *attributes, size_t attributes_len);


/* Compressed components */

#define XET_ZT_FRAME_HEAD  18          /* maximum bytes of a frame header */


typedef struct {
    uint64_t  output;                  /* max decoded bytes; default 256 MiB */
    unsigned  window_log;              /* 10 to 31; default 23: 8 MiB */
} xet_zt_decode_limits_t;

void xet_zt_decode_limits_init(xet_zt_decode_limits_t *limits);


typedef struct xet_zt_decoder_s  xet_zt_decoder_t;


/*
 * Creates a decoder; *limits is copied.  Returns NULL if out of memory, or if
 * window_log is invalid.
 */
xet_zt_decoder_t *xet_zt_decoder_create(const xet_zt_decode_limits_t *limits);
void xet_zt_decoder_destroy(xet_zt_decoder_t *d);

/*
 * Starts a new component.  If known is 1, the component must decode to exactly
 * "expected" bytes; if known is 0, the length is unknown and may be up to the
 * limit.  Returns XET_OK; XET_ZT_DECODE_SIZE if expected exceeds the limit;
 * XET_INTERNAL.
 */
xet_status_t xet_zt_decoder_start(xet_zt_decoder_t *d, int known,
    uint64_t expected);

/*
 * Decodes a part of the input into out, and advances *in and *in_len past the
 * bytes that were read.  *out_len is the room at out, not 0; it is set to the
 * number of decoded bytes.
 *
 * Returns XET_AGAIN if there was no error: the caller calls again, with new
 * room, while input is left or the room was filled.  Errors: XET_ZT_ZSTD;
 * XET_ZT_LENGTH if the output is longer than expected; XET_ZT_DECODE_SIZE if
 * the output exceeds the limit; XET_ZT_WINDOW; XET_NOMEM.  An error is kept:
 * later calls return it.
 */
xet_status_t xet_zt_decoder_feed(xet_zt_decoder_t *d, const uint8_t **in,
    size_t *in_len, uint8_t *out, size_t *out_len);

/*
 * Ends the component; all input must have been fed.  Returns XET_OK;
 * XET_ZT_ZSTD if the input is truncated inside a frame or has no frame;
 * XET_ZT_LENGTH if the output is shorter than expected; XET_INTERNAL if
 * decoded bytes were not fetched; or the error of xet_zt_decoder_start() or
 * xet_zt_decoder_feed().
 */
xet_status_t xet_zt_decoder_finish(xet_zt_decoder_t *d);

/*
 * Decodes a whole component in one call, to exactly len bytes, without limits.
 * The function allocates 100 KiB, whatever the window is.  Returns XET_OK,
 * XET_ZT_ZSTD, XET_ZT_LENGTH or XET_NOMEM.
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
    uint64_t               window;     /* largest window, bytes */
    unsigned               dictionary:1;  /* a frame needs a dictionary */

    xet_status_t           status;
    xet_zt_frames_state_t  state;
    xet_zt_frames_state_t  next;       /* state after the skipped bytes */
    unsigned               checksum:1; /* the open frame has a checksum */
    unsigned               have;       /* bytes in head */
    uint32_t               largest;    /* block size limit of the open frame */
    uint64_t               skip;
    uint8_t                head[XET_ZT_FRAME_HEAD];
} xet_zt_frames_t;


void xet_zt_frames_init(xet_zt_frames_t *f);

/*
 * Processes the next bytes, in pieces of any size.  Returns XET_OK, or
 * XET_ZT_ZSTD, which all later calls then return.
 */
xet_status_t xet_zt_frames_feed(xet_zt_frames_t *f, const uint8_t *data,
    size_t len);

/*
 * Ends the input, after all bytes were fed.  Returns XET_OK; XET_ZT_ZSTD if
 * the input is truncated inside a frame, if no frame holds data, or after an
 * error.
 */
xet_status_t xet_zt_frames_finish(const xet_zt_frames_t *f);


/* Verification */

typedef enum {
    XET_ZT_DIGEST_VERIFIED = 0,
    XET_ZT_DIGEST_MISMATCH,
    XET_ZT_DIGEST_ABSENT,
    XET_ZT_DIGEST_UNSUPPORTED,         /* unknown algorithm, or the data is not
                                          read or decoded here */
    XET_ZT_DIGEST_MALFORMED,
    XET_ZT_DIGEST_UNREADABLE,          /* the data cannot be read */
    XET_ZT_DIGEST_UNCHECKED            /* limit exceeded; never stored */
} xet_zt_digest_verdict_t;


/* Returns "verified", "mismatch" and so on. */
const char *xet_zt_digest_name(xet_zt_digest_verdict_t verdict);


typedef struct {
    xet_zt_digest_verdict_t  digest;

    /*
     * XET_OK; XET_ZT_ZSTD, XET_ZT_LENGTH, XET_ZT_VALUES, XET_ZT_INDICES if the
     * data is invalid; XET_ZT_WINDOW, XET_ZT_DECODE_SIZE if the component was
     * not decoded; XET_ZT_VERIFY_SIZE if the limit of a verification was
     * exceeded; XET_ZT_UNCHECKED if another check was not made; XET_ZT_BOUNDS,
     * XET_ZT_HEADER if the range is outside the region and was not read.
     */
    xet_status_t             status;
} xet_zt_report_t;


typedef struct xet_zt_verifier_s  xet_zt_verifier_t;


/* Creates a verifier; returns NULL if out of memory. */
xet_zt_verifier_t *xet_zt_verifier_create(
    const xet_zt_decode_limits_t *limits);
void xet_zt_verifier_destroy(xet_zt_verifier_t *v);

/*
 * Limits the bytes that the decoder may produce for a component of unknown
 * length; the report on a larger component is XET_ZT_VERIFY_SIZE.  Call this
 * function before xet_zt_verifier_start().  The default is the limit of the
 * decoder.
 */
void xet_zt_verifier_limit(xet_zt_verifier_t *v, uint64_t limit);

/*
 * Starts component c of o, a checked object; both must stay valid until
 * xet_zt_verifier_finish().  Indices are compared with the components of o
 * that were verified immediately before; "values" should be verified first.
 * Returns XET_AGAIN if the bytes of *range must be fed, XET_DONE if there is
 * nothing to read, or XET_NOMEM.
 */
xet_status_t xet_zt_verifier_start(xet_zt_verifier_t *v,
    const xet_zt_region_t *region, const xet_zt_object_t *o,
    const xet_zt_component_t *c, xet_range_t *range);

/*
 * Processes the next bytes of the range; bytes past its end are ignored.
 * Returns XET_OK, XET_NOMEM or XET_INTERNAL.
 */
xet_status_t xet_zt_verifier_feed(xet_zt_verifier_t *v, const uint8_t *data,
    size_t len);

/*
 * Works like xet_zt_verifier_feed(), but limits the work.  Advances *data and
 * *len past the processed bytes, and subtracts the work, in bytes, from *room.
 *
 * XET_AGAIN: *room is used up; the caller calls again with more room and the
 * remaining *len bytes, which may be 0.  The work may exceed *room by up to
 * 1 MiB, for a buffer or a component that is decoded in one call, and by the
 * size of the memory used to compare indices.
 */
xet_status_t xet_zt_verifier_take(xet_zt_verifier_t *v, const uint8_t **data,
    size_t *len, uint64_t *room);

/*
 * Sets *report, after all bytes of the range were fed.  Returns XET_OK;
 * XET_NOMEM; XET_INTERNAL, for example if bytes are missing.
 */
xet_status_t xet_zt_verifier_finish(xet_zt_verifier_t *v,
    xet_zt_report_t *report);

/* Returns the work for the component so far: bytes decoded, or cleared. */
uint64_t xet_zt_verifier_work(const xet_zt_verifier_t *v);

/*
 * Returns 1 if everything that the manifest declares was checked, and no check
 * failed.  In container 1, XET_ZT_VALUES is accepted.
 */
int xet_zt_report_ok(const xet_zt_report_t *report,
    xet_zt_container_t container);


#define XET_ZT_REPORT_LEN  2               /* bytes per component */


/*
 * Returns a hash of everything that a report depends on apart from the file;
 * see xet_zt_rules().
 */
uint64_t xet_zt_report_rules(const xet_zt_limits_t *limits,
    const xet_zt_decode_limits_t *decode);

/* Packs XET_ZT_REPORT_LEN bytes; returns 0 if report must not be stored. */
int xet_zt_report_pack(uint8_t *dst, const xet_zt_report_t *report);

/* Reads XET_ZT_REPORT_LEN bytes; returns 0 if they are not a packed report. */
int xet_zt_report_unpack(xet_zt_report_t *report, const uint8_t *src);


/* Responses */

/*
 * A page of a listing:
 *
 *   {"file":"...","size":n,"container":"1.1","version":"1.1.0",
 *    "header_magic":true,"manifest":{"offset":n,"length":n},"attributes":{},
 *    "count":n,"warnings":[],"objects":[...],"next":i}
 *
 * "count" is the number of objects in the file.  "next" is the index of the
 * last object of the page, for "after" of the next request; it is null if no
 * other object matches.  "attributes" is null if too large.  Warnings:
 * "missing_header_magic", "unknown_version", "overlap",
 * "attributes_not_echoed".
 */

typedef struct {
    xet_json_t        *json;
    uint64_t           limit;          /* maximum objects of the page */
    uint64_t           bytes;          /* size at which the page is full */
    uint64_t           n;              /* objects in the page so far */
    uint64_t           last;           /* index of the last object */
    uint64_t           start;          /* offset of the page in the buffer */
    unsigned           more:1;
} xet_zt_page_t;

/* Begins a page.  id is the value of "file"; limit is at least 1. */
void xet_zt_page_begin(xet_zt_page_t *page, xet_json_t *j, const xet_zt_t *zt,
    const uint8_t *id, size_t id_len, uint64_t limit, uint64_t bytes);

/* The object handler for a walk with attributes; ctx is the page. */
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
 * "status" is "ok", "invalid" or "unsupported"; "errors" are the codes of
 * statuses.  "decoded_length" and "digest" may be null.  "shape" is null if it
 * has more than XET_ZT_RANK_MAX dimensions, "attributes" if too large.  A
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
 * "errors" has the errors of the object's description and of its data.  "ok"
 * is false if an object is invalid or unsupported, or if xet_zt_report_ok()
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

/* Adds the error of the report to o; does not change o->verdict. */
void xet_zt_audit_component(xet_zt_audit_t *a, xet_zt_object_t *o,
    const xet_zt_component_t *c, const xet_zt_report_t *report);
void xet_zt_audit_object_end(xet_zt_audit_t *a, const xet_zt_object_t *o);
void xet_zt_audit_end(xet_zt_audit_t *a);


/*
 * The error of a file that cannot be listed:
 *
 *   {"error":{"code":"...","message":"...","container":"1.0","offset":n}}
 *
 * "container" and "offset" are present if known.
 */

void xet_zt_error_json(xet_json_t *j, const xet_zt_t *zt, xet_status_t status);


/* Returns "1.1", "2", "1.0" or "0.1"; NULL if unknown. */
const char *xet_zt_container_name(xet_zt_container_t container);


/* Arguments */

/* The arguments that a route accepts. */

#define XET_ZT_ARG_NAME    0x01            /* "name", "i": an object */
#define XET_ZT_ARG_ONE     0x02            /* "name" or "i" is required */
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
    xet_range_t    rows;                   /* "a:b"; b is exclusive */

    unsigned       has_i:1;
    unsigned       has_after:1;
    unsigned       has_limit:1;
    unsigned       has_rows:1;
    unsigned       rows_open:1;            /* "a:", to the last row */
    unsigned       decoded:1;              /* "form=decoded" */
} xet_zt_query_t;


/*
 * Parses the arguments of a request.  wanted: XET_ZT_ARG_* of the route.
 * args: the arguments as in the URL; "+" is not a space.  room: a buffer of
 * len bytes for the texts of *q, which must stay valid as long as *q is used.
 * Returns XET_OK, XET_ZT_QUERY, XET_ZT_QUERY_KEY, XET_ZT_QUERY_ESCAPE,
 * XET_ZT_QUERY_BOTH, XET_ZT_QUERY_NONE, XET_ZT_AXES.
 */
xet_status_t xet_zt_query_parse(xet_zt_query_t *q, unsigned wanted,
    const uint8_t *args, size_t len, uint8_t *room);


#endif /* _XET_ZTENSOR_H_INCLUDED_ */
