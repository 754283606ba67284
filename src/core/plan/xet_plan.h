
/*
 * Plans: the terms of files, and the byte ranges of xorbs that contain them.
 */

#ifndef _XET_PLAN_H_INCLUDED_
#define _XET_PLAN_H_INCLUDED_


#include "xet_hash.h"
#include "xet_base.h"


/*
 * xet_term.c: the packed form of terms, as PostgreSQL stores it: 52 bytes per
 * term, all integers little-endian.
 *
 *      0  xorb hash            32
 *     32  chunk start          u16
 *     34  chunk end - 1        u16    (so that 8192 chunks fit)
 *     36  stored start         u32    bytes in the chunk region
 *     40  stored end           u32    exclusive
 *     44  raw length           u32
 *     48  copy id              u32    id of the stored copy; see xet_xorb.h
 */

#define XET_TERM_LEN          52
#define XET_TERM_RAW          44       /* offset of the raw length */
#define XET_TERM_SEGMENT_MAX  256      /* maximum terms per database row */


typedef struct {
    xet_hash_t  xorb;
    uint32_t    chunk_start;
    uint32_t    chunk_end;             /* exclusive */
    uint32_t    stored_start;
    uint32_t    stored_end;            /* exclusive */
    uint32_t    raw_length;            /* 1 .. 8192 * 128 KiB */
    uint32_t    copy_id;               /* copy to which stored_* apply */
} xet_term_t;


/* A xorb's chunk list as stored; see xet_xorb_info_t for the three arrays. */

typedef struct {
    xet_hash_t      hash;
    uint32_t        chunk_count;
    uint32_t        raw_size;
    uint32_t        stored_size;
    uint32_t        copy_id;
    const uint8_t  *hashes;
    const uint8_t  *raw_ends;
    const uint8_t  *stored_ends;
    const uint8_t  *seen;              /* NULL: all chunks; see xet_seen_t */
    uint32_t        seen_n;
    const uint8_t  *noise;             /* 32-byte key of the hashes that replace
                                          the hashes of unseen chunks */
} xet_xorb_list_t;


void xet_term_pack(uint8_t *dst, const xet_term_t *term);

/*
 * Unpacks a term.  Returns XET_OK, or XET_PLAN_DAMAGED when fields contradict
 * each other (an empty or reversed range, or no bytes).
 */
xet_status_t xet_term_unpack(xet_term_t *term, const uint8_t *src);

/*
 * Returns whether the two arrays are plausible as the ends of the n chunks
 * from chunk_start on.  raw_before and stored_before are the ends of the chunk
 * before chunk_start, 0 at the start of the xorb.  The ends must ascend,
 * raw_ends by at most XET_CHUNK_MAX.
 */
int xet_term_ends_ok(uint32_t chunk_start, uint32_t n, uint32_t raw_before,
    uint32_t stored_before, const uint8_t *raw_ends,
    const uint8_t *stored_ends);


/*
 * The chunks of a xorb that may be reported to a client: ranges in ascending
 * order.  A range is two 32-bit integers in network byte order: the first chunk
 * and the end, exclusive.  If the seen member of a list is NULL, all chunks may
 * be reported.  If seen has no ranges, no chunk may be reported.
 */

#define XET_SEEN_LEN  8                /* bytes of a range */


/* The state of an iteration over the chunks of a list, in order. */

typedef struct {
    const uint8_t  *next;
    const uint8_t  *last;              /* end of the ranges */
    uint32_t        start;
    uint32_t        end;
    unsigned        all:1;
} xet_seen_t;


static inline uint32_t
xet_seen_number(const uint8_t *p)
{
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16
           | (uint32_t) p[2] << 8 | p[3];
}


static inline void
xet_seen_init(xet_seen_t *s, const xet_xorb_list_t *xorb)
{
    s->next = xorb->seen;
    s->last = xorb->seen + (size_t) xorb->seen_n * XET_SEEN_LEN;
    s->start = 0;
    s->end = 0;
    s->all = (xorb->seen == NULL);
}


static inline unsigned
xet_seen_chunk(xet_seen_t *s, uint32_t chunk)
{
    while (chunk >= s->end && s->next != s->last) {
        s->start = xet_seen_number(s->next);
        s->end = xet_seen_number(s->next + 4);
        s->next += XET_SEEN_LEN;
    }

    return s->all || (chunk >= s->start && chunk < s->end);
}


/* Returns the end of the last range of xorb->seen; 0 if there is no range. */

static inline uint32_t
xet_seen_end(const xet_xorb_list_t *xorb)
{
    uint32_t  end;

    if (xorb->seen_n == 0) {
        return 0;
    }

    end = xet_seen_number(xorb->seen + xorb->seen_n * XET_SEEN_LEN - 4);

    return (end < xorb->chunk_count) ? end : xorb->chunk_count;
}


/*
 * xet_plan.c: reconstruction plans.  A plan lists the terms of a byte range of
 * a file, or of several whole files, and the byte ranges of xorbs that contain
 * these terms (docs/protocol.md, reconstruction rules).
 *
 * Calls for a range: init; add for every packed segment that overlaps the
 * range, in order; edges; trim; finish; print (xet_plan_writer.c).  The edges
 * are the first and the last term.  To trim an edge to whole chunks, the
 * caller must fetch the chunk ends of its xorb.
 *
 * Calls for files: init_files; file and add for each file; finish; print.
 *
 * Memory comes from the allocator: 56 bytes per kept term, 8 bytes per term in
 * finish, 36 bytes per file, regardless of the number of xorbs.  Terms that
 * are added in several calls take more memory, unless xet_plan_reserve() was
 * called before.  Plans that are too large for memory keep their terms in a
 * file: xet_plan_spool.c.
 */

/* A range to fetch: consecutive chunks, and their bytes in a copy of a xorb. */

typedef struct {
    uint32_t           chunk_start;
    uint32_t           chunk_end;      /* exclusive */
    uint32_t           stored_start;
    uint32_t           stored_end;     /* exclusive */
    uint32_t           copy_id;        /* the same in all ranges of a xorb in
                                          a plan */
} xet_plan_range_t;


/* A file in a plan for several files. */

typedef struct {
    xet_hash_t         hash;
    uint32_t           end;            /* number of its last term + 1 */
} xet_plan_file_t;


/*
 * The caller's two temporary files, for more terms than fit in memory.
 * XET_PLAN_SPOOL_PLAN has the terms, in the order of the planned file, and
 * then the ranges.  XET_PLAN_SPOOL_RUNS is needed only while sorting, and may
 * be removed after that.
 */

typedef enum {
    XET_PLAN_SPOOL_PLAN = 0,
    XET_PLAN_SPOOL_RUNS,
    XET_PLAN_SPOOL_FILES
} xet_plan_spool_file_t;


/*
 * The functions that access the two files; both return XET_OK or an error.
 * append writes at the end of the file.
 */

typedef struct {
    xet_status_t     (*append)(void *ctx, xet_plan_spool_file_t file,
                               const void *data, size_t len);
    xet_status_t     (*read)(void *ctx, xet_plan_spool_file_t file,
                             void *data, size_t len, uint64_t offset);
} xet_plan_spool_io_t;


/*
 * Access to the records of a plan in a file: terms first, then ranges.  A
 * buffer holds consecutive records in memory, and is refilled when a record
 * outside it is needed.
 */

typedef struct {
    const xet_plan_spool_io_t  *io;
    void                       *ctx;   /* argument for io */

    xet_term_t                  head;  /* the first term, maybe trimmed */

    xet_term_t                 *buffer;
    uint32_t                    size;  /* records that the buffer can hold */
    uint32_t                    from;  /* number of the buffer's first record */
    uint32_t                    have;  /* records in the buffer */
    xet_hash_t                  xorb;  /* xorb of the last returned range */
    xet_status_t                status;    /* error of a failed read */
} xet_plan_records_t;


typedef struct {
    xet_alloc_pt         alloc;
    void                *data;

    xet_plan_records_t  *spool;        /* NULL: all terms are in memory */
    uint32_t             before;       /* terms moved to the temporary file;
                                          they precede terms[] */

    xet_range_t          want;         /* needed bytes of the current file */
    uint64_t             offset;       /* file offset of the first kept term */
    uint64_t             position;     /* start of the next term to be added,
                                          and end of the last term kept */

    xet_term_t          *terms;
    uint32_t             n;
    uint32_t             room;

    xet_plan_file_t     *files;
    uint32_t             nfiles;
    uint32_t             files_max;
    unsigned             several:1;    /* set by xet_plan_init_files() */

    uint64_t             skip;         /* offset_into_first_range */

    uint64_t            *ranges;       /* packed, see xet_plan_range() */
    uint32_t             nranges;
    uint32_t             nxorbs;
} xet_plan_t;


/*
 * Initializes a plan for the range *want of a file: 0 <= start < end.  The
 * caller has clamped the range to the size of the file.  For the empty file
 * start == end, and the caller calls finish without any add.
 */
void xet_plan_init(xet_plan_t *p, xet_alloc_pt alloc, void *data,
    const xet_range_t *want);

/*
 * Initializes a plan for at most max whole files; the plan has no file yet.
 * Error: XET_NOMEM.
 */
xet_status_t xet_plan_init_files(xet_plan_t *p, xet_alloc_pt alloc,
    void *data, size_t max);

/*
 * Begins a file of size bytes: terms that are added after this call belong to
 * this file, and their offsets begin at 0.  A file without terms has size 0.
 * The caller must not add a file twice.  Errors: XET_PLAN_DAMAGED when the
 * previous file is not complete; XET_INTERNAL when the plan already has max
 * files, or is not for files.
 */
xet_status_t xet_plan_file(xet_plan_t *p, const xet_hash_t *hash,
    uint64_t size);

/*
 * Reserves room for n terms in total.  Without this call, a plan doubles its
 * array when needed, and the smaller arrays are not freed.  A single call of
 * xet_plan_add() needs no reserve.  Errors: XET_PLAN_DAMAGED for more than
 * 2^25 terms, the maximum of a plan; XET_NOMEM.
 */
xet_status_t xet_plan_reserve(xet_plan_t *p, size_t n);

/*
 * Adds the packed terms that begin at first_offset of the file; drops terms
 * wholly outside the range.  The terms of the first call must begin at or
 * before the range.  The terms of each later call must begin where the previous
 * terms ended.  Terms after the range are ignored; in a plan of several files,
 * terms after the end of a file are an error.  Errors: XET_PLAN_DAMAGED,
 * XET_NOMEM; XET_INTERNAL for an empty range, or before the first
 * xet_plan_file() of a plan for files.
 */
xet_status_t xet_plan_add(xet_plan_t *p, const uint8_t *packed, size_t len,
    uint64_t first_offset);

/*
 * Returns the terms to trim: XET_PLAN_FIRST, XET_PLAN_LAST or both, or 0 when
 * the first and the last term lie inside the range.  The first term may also
 * be the last.  Call this once, before trimming: the first chunk of a trimmed
 * term may still begin before the range.
 */
#define XET_PLAN_FIRST  1
#define XET_PLAN_LAST   2

unsigned xet_plan_edges(const xet_plan_t *p);

/*
 * Returns the first or the last term, as selected by which: XET_PLAN_FIRST or
 * XET_PLAN_LAST.
 */
xet_term_t *xet_plan_edge(const xet_plan_t *p, unsigned which);

/*
 * Trims the first or the last term, as selected by the parameter which, to
 * whole chunks.  *ends contains the ends of the chunks [chunk_start,
 * chunk_end) of the untrimmed term, and the ends before chunk_start (0 at the
 * start of the xorb).  If the first term is also the last, pass both flags in
 * one call.  Errors: XET_PLAN_DAMAGED when the ends contradict the term;
 * XET_PLAN_CHANGED when the ends belong to another stored copy; XET_INTERNAL
 * for a plan without a term in memory, and for a plan of several files, which
 * is never trimmed.
 */
typedef struct {
    uint32_t           n;
    uint32_t           raw_before;
    uint32_t           stored_before;
    uint32_t           copy_id;
    const uint8_t     *raw_ends;       /* n little-endian u32 */
    const uint8_t     *stored_ends;
} xet_plan_ends_t;

xet_status_t xet_plan_trim(xet_plan_t *p, unsigned which,
    const xet_plan_ends_t *ends);

/*
 * Computes the ranges of each xorb that the terms of all files need.  Errors:
 * XET_PLAN_DAMAGED when the terms do not cover the range or the last file, or
 * when two terms disagree about the position of a chunk; XET_PLAN_CHANGED when
 * the terms of a xorb are of different copies, because the xorb was healed in
 * the meantime; XET_NOMEM.
 */
xet_status_t xet_plan_finish(xet_plan_t *p);

/*
 * Perform the checks of xet_plan_finish(); xet_plan_spool_sort() also calls
 * them.  xet_plan_cover() checks that the terms cover the needed bytes, and
 * sets skip.  xet_plan_agree() checks that the stored position of t is
 * consistent with two terms of the same xorb: prev, the previous term in the
 * order of chunks, and last, the term that ends last in the range so far.
 * Errors: XET_PLAN_DAMAGED when the check fails, XET_PLAN_CHANGED when t is of
 * another copy of the xorb.
 */
xet_status_t xet_plan_cover(xet_plan_t *p);
xet_status_t xet_plan_agree(const xet_term_t *t, const xet_term_t *prev,
    const xet_term_t *last);

/*
 * Returns term i < n; the pointer is valid until the next call for a term or a
 * range.
 */
const xet_term_t *xet_plan_term_at(const xet_plan_t *p, uint32_t i);

/*
 * Sets *range to range i < nranges and returns its xorb, which is valid until
 * the next call for another xorb.  The ranges of a xorb are consecutive,
 * ascend, and neither touch nor overlap.  Xorbs are in the order of their first
 * use, or, if the plan is in a file, in the order of their hashes.
 */
const xet_hash_t *xet_plan_range(const xet_plan_t *p, uint32_t i,
    xet_plan_range_t *range);

/* Returns whether range i is the first of its xorb; 1 for i == nranges. */
int xet_plan_xorb_begins(const xet_plan_t *p, uint32_t i);

/*
 * Merges ranges until each xorb has at most max ranges (max is at least 1);
 * called after finish.  Ranges with the narrowest gaps between them are merged
 * first.  Clients also get the chunks in these gaps, although they do not need
 * them.
 *
 * This is for URLs that name the xorb and not the ranges, because no two
 * entries of a body may have the same URL.  With max 1, each xorb has one v1
 * entry.  With max up to the writer's group, each xorb has one v2 entry; a
 * second entry for more ranges would repeat the URL.  A range still has whole
 * chunks and exactly their bytes, every term still lies in one range, and no
 * two ranges of a xorb begin at the same chunk.
 *
 * A client that requests all ranges of a v2 entry in one request lists the
 * ranges in one header, with up to 18 bytes per range: 400 ranges fit in the 8
 * KiB that nginx accepts by default.  Returns XET_INTERNAL if max is 0, or if
 * the plan is in a file.
 */
xet_status_t xet_plan_limit(xet_plan_t *p, uint32_t max);


/*
 * xet_plan_writer.c: writes the body of a reconstruction response in pieces.
 * The body of a plan of 100,000 terms has about 50 MB, which are never in
 * memory at once.
 *
 *     xet_plan_writer_init(&w, plan, XET_PLAN_V2, url, ctx, group);
 *
 *     do {
 *         xet_buf_init(&b, ...);
 *         status = xet_plan_writer_next(&w, &b, 32768);
 *         ... send b, wait until its memory is free again
 *     } while (status == XET_AGAIN);
 *
 * The body as a whole does not depend on where its pieces end.
 */

#define XET_PLAN_GROUP_MAX   512
#define XET_PLAN_GROUP_TEXT  7168      /* bytes of a range list in text form */


typedef enum {
    XET_PLAN_V1 = 1,
    XET_PLAN_V2,
    XET_PLAN_BATCH                     /* several files, v1 entries */
} xet_plan_kind_t;


/*
 * Appends to b the URL for n >= 1 ranges of a xorb, in characters that need no
 * escape in JSON.  Must not return XET_AGAIN or XET_DONE, which are not errors.
 *
 * The URLs of different ranges must differ as text, because clients identify a
 * download by its URL.  hf_xet up to 1.2 does so even across responses, and
 * would use the bytes of one range for another range.  If ranges are not
 * signed, a fragment with the ranges is enough, as in "...#0-4095": clients do
 * not send the fragment, so servers and caches see one URL per xorb.
 */
typedef xet_status_t (*xet_plan_url_pt)(void *ctx, xet_buf_t *b,
    const xet_hash_t *xorb, const xet_plan_range_t *ranges, size_t n);


/* The states of the writer, named after the part that is written next. */

typedef enum {
    XET_PLAN_WRITE_BEGIN = 0,
    XET_PLAN_WRITE_FILE,
    XET_PLAN_WRITE_TERM,
    XET_PLAN_WRITE_XORB,
    XET_PLAN_WRITE_ENTRY,
    XET_PLAN_WRITE_RANGE,
    XET_PLAN_WRITE_DONE,
    XET_PLAN_WRITE_FAILED
} xet_plan_write_e;


typedef struct {
    const xet_plan_t  *plan;
    xet_plan_url_pt    url;
    void              *ctx;            /* argument for url */

    xet_json_t         json;

    uint32_t           next;           /* index of the next term or range */
    uint32_t           end;            /* end of the file's terms or entry */
    uint32_t           file;           /* index of the next file */
    uint32_t           group;
    xet_plan_kind_t    kind;
    xet_plan_write_e   state;
} xet_plan_writer_t;


/*
 * Initializes a writer; the plan must be finished.  The plan and ctx must not
 * change until the last piece is written; several writers may share a plan.
 * Plans of xet_plan_init_files() need XET_PLAN_BATCH, all other plans
 * XET_PLAN_V1 or XET_PLAN_V2.
 *
 * group: the maximum number of ranges in a v2 entry, which is also the maximum
 * n for url; values above XET_PLAN_GROUP_MAX mean XET_PLAN_GROUP_MAX.  An
 * entry has fewer ranges if the list of them would be longer than
 * XET_PLAN_GROUP_TEXT.  So a URL with this list, or a Range header, stays under
 * the 8 KiB that most servers and proxies accept.  The other kinds have one URL
 * per range and ignore group.
 */
void xet_plan_writer_init(xet_plan_writer_t *w, const xet_plan_t *plan,
    xet_plan_kind_t kind, xet_plan_url_pt url, void *ctx, size_t group);

/*
 * Appends whole elements to b, at least one, until limit bytes or more have
 * been added or the body is complete.  The excess over limit is less than 512
 * bytes plus one URL.  b is used only during the call.  It is either newly
 * initialized, or the buffer of the previous piece.
 *
 * XET_AGAIN: more pieces follow.  XET_OK: the body is complete; later calls add
 * nothing.  Any other status is an error, after which the whole body is
 * useless: XET_NOMEM, an error that url has returned, or an error from reading
 * the plan's file.  XET_INTERNAL for a kind that does not match the plan, for
 * XET_PLAN_V2 with a group of 0, and for a call after an error.
 */
xet_status_t xet_plan_writer_next(xet_plan_writer_t *w, xet_buf_t *b,
    size_t limit);


/*
 * xet_plan_spool.c: plans with more terms than fit in memory.  The terms are
 * in a temporary file, and are sorted there to compute the ranges.
 *
 * Calls, in this order: the plan's init; xet_plan_spool_init(); add for each
 * part of the terms; trim; xet_plan_spool_sort() instead of xet_plan_finish(),
 * until it is done; for each piece of the response xet_plan_spool_read() and
 * the writer.  xet_plan_spool_put() may be called at any time before the sort,
 * except between the last add and trim.
 *
 * The caller provides the memory: an array of terms while adding, room while
 * sorting, a buffer while writing.  Only the minimum size of room depends on
 * the number of terms.
 */

/* A run of sorted terms, while it is merged with the other runs. */

typedef struct {
    xet_term_t         *terms;         /* terms read and not yet merged */
    uint32_t            i;
    uint32_t            n;
    uint32_t            next;          /* next term in the file */
    uint32_t            end;
} xet_plan_run_t;


typedef enum {
    XET_PLAN_SPOOL_PUTTING = 0,
    XET_PLAN_SPOOL_SORTING,
    XET_PLAN_SPOOL_MERGING,
    XET_PLAN_SPOOL_SORTED
} xet_plan_spool_state_e;


typedef struct {
    xet_plan_records_t   records;
    xet_plan_t          *plan;

    uint32_t                done;      /* terms that are in runs */
    xet_plan_spool_state_e  state;

    /* the merge: a heap of runs, smallest term first, and the new ranges */

    xet_plan_run_t      *runs;
    uint32_t             nruns;
    uint32_t             slice;        /* terms per run in memory */
    xet_term_t          *out;
    uint32_t             nout;
    xet_term_t           range;        /* the range that can still grow */
    xet_term_t           prev;
    xet_term_t           last;
} xet_plan_spool_t;


/*
 * Initializes s for a plan, which must be initialized; s, io and ctx must live
 * as long as the plan.
 */
void xet_plan_spool_init(xet_plan_spool_t *s, xet_plan_t *plan,
    const xet_plan_spool_io_t *io, void *ctx);

/*
 * Appends the terms that the plan holds in memory to the file, which frees the
 * plan's array for more terms.  Returns the errors of append.
 */
xet_status_t xet_plan_spool_put(xet_plan_spool_t *s);

/*
 * Does one step of the work that xet_plan_finish() does for a plan in memory:
 * writes the remaining terms to the file, sorts parts of size bytes in room,
 * and merges the parts into ranges.  XET_AGAIN: call again, with the same
 * room.  After XET_OK neither room nor the file of runs is needed.  Returns
 * the errors of xet_plan_finish() and of the files; XET_NOMEM when room is
 * smaller than xet_plan_spool_room() bytes.
 */
xet_status_t xet_plan_spool_sort(xet_plan_spool_t *s, void *room,
    size_t size);

/* Returns the minimum size, in bytes, of the room for sorting n terms. */
size_t xet_plan_spool_room(uint32_t n);

/*
 * Sets the buffer of n terms into which records are read.  Call this before
 * each piece is written.  xet_plan_writer_next() returns read errors.
 */
void xet_plan_spool_read(xet_plan_spool_t *s, xet_term_t *buffer, uint32_t n);


/*
 * xet_edit_ranges.c: windows of a file for range edits (docs/protocol.md,
 * range edits).  A client rewrites some bytes of the file.  A window is a part
 * of the file that the client must then chunk again.  The parts between the
 * windows are gaps.  The client does not need their bytes: the response has
 * the data of each gap for the hash and the shard of the new file.
 *
 * Calls: xet_range_parse() and xet_edit_ranges_ranges() for the X-Range-Dirty
 * header; init; add for every term of the file, in order; finish; json.
 *
 * A window begins and ends at term boundaries.  It begins with the first term
 * that has a dirty byte.  After two consecutive clean chunks of a stable size
 * (see xet_suite_t), the client's chunker makes the same cuts as before the
 * edit.  The window ends with the term of the second such chunk, unless the
 * next term is dirty, or at the end of the file.
 *
 * Real clients request whole terms, and need a window to begin at a term
 * boundary.  Any other request gets the same response as if it had asked for
 * whole terms, so a client always finds its bytes inside a window.
 */

/*
 * Clamps *n specs to a file of size bytes, sorts them and merges them into the
 * array "ranges", which has room for *n elements.  On XET_OK the *n ranges
 * that remain are not empty, are in order, and neither touch nor overlap.
 * Returns XET_RANGE_PAST_END when no range remains.
 */
xet_status_t xet_edit_ranges_ranges(const xet_range_spec_t *specs,
    xet_range_t *ranges, size_t *n, uint64_t size);


/* A term and its chunks. */

typedef struct {
    uint32_t               n;          /* chunks, 1 .. xorb_chunks_max */
    uint32_t               raw_length; /* bytes of all n chunks */
    uint32_t               raw_before; /* raw end of the preceding chunk in the
                                          xorb, 0 if there is none */
    const uint8_t         *raw_ends;   /* n little-endian u32 */
    const uint8_t         *hashes;     /* n packed chunk hashes */

    /* NULL: xet_edit_ranges_add() computes the hash if needed */
    const xet_hash_t      *verification;
} xet_edit_ranges_term_t;


typedef struct {
    xet_alloc_pt           alloc;
    void                  *data;

    uint64_t               size;       /* bytes of the file */
    uint64_t               position;   /* bytes of the terms added */
    uint64_t               chunks;     /* chunks of the terms added */

    const xet_range_t     *dirty;      /* current or next dirty range */
    const xet_range_t     *dirty_end;

    unsigned               open:1;     /* the last edit has no end yet */
    unsigned               stable;     /* clean stable chunks in a row, <= 2 */

    /* the result, complete after finish */

    xet_range_t           *edits;
    size_t                 n;

    xet_subtree_t         *gaps;       /* n + 1 gaps, without nodes if empty */

    xet_hash_t            *verifications;
    size_t                 nverifications;
    size_t                 room;

    xet_subtree_builder_t  gap;
} xet_edit_ranges_t;


/*
 * Initializes w.  ranges: the n ranges that xet_edit_ranges_ranges() has set
 * for the same size; the array must live until finish.  max: the maximum
 * number of nodes in all gaps, which bounds memory and the body (about 100
 * bytes per node), SIZE_MAX for no limit; see xet_subtree_init().  Errors:
 * XET_NOMEM; XET_INTERNAL when ranges do not have the form that
 * xet_edit_ranges_ranges() returns.
 */
xet_status_t xet_edit_ranges_init(xet_edit_ranges_t *w, const xet_suite_t
    *suite, xet_alloc_pt alloc, void *data, const xet_range_t *ranges, size_t
    n, uint64_t size, size_t max);

/*
 * Adds the next term of the file, which is read only during the call.  Errors:
 * XET_PLAN_DAMAGED when the fields of the term contradict each other or the
 * size of the file; XET_NOMEM, with w->gap.over set if the reason is that the
 * gaps would have more nodes than the max of xet_edit_ranges_init().  After an
 * error w must not be used any more.
 */
xet_status_t xet_edit_ranges_add(xet_edit_ranges_t *w, const
    xet_edit_ranges_term_t *term);

/*
 * Completes the result.  Errors: XET_PLAN_DAMAGED when the terms are not the
 * whole file; XET_NOMEM.
 */
xet_status_t xet_edit_ranges_finish(xet_edit_ranges_t *w);

/* Writes the body of the response to b.  Error: XET_NOMEM. */
xet_status_t xet_edit_ranges_json(const xet_edit_ranges_t *w, xet_buf_t *b);


/*
 * xet_cursor.c: a reader's position in a file.  Finds, one after the other,
 * the chunks of xorbs that make up a byte range of the file, and the part of
 * each chunk that is in the range.
 *
 * Calls: init; then, for each range, seek, and until XET_DONE:
 *
 *     xet_cursor_chunk()      XET_OK: use the chunk, then advance
 *                             XET_AGAIN: call xet_cursor_ask()
 *     xet_cursor_ask()        XET_OK: fetch the lists; then call
 *                             xet_cursor_answer() for each, in order
 *                             XET_AGAIN: fetch the segment of terms that
 *                             contains xet_cursor_t.position; then
 *                             call xet_cursor_terms()
 *
 * The structure holds one segment of terms and one buffer of chunks, so it
 * takes 64 KiB for any file.  A later range reuses the segment and the buffer.
 */

#define XET_CURSOR_CHUNKS  1024        /* maximum chunks in a buffer */


/* Chunks [start, end) of the xorb's chunk list. */

typedef struct {
    xet_hash_t         xorb;
    uint32_t           start;
    uint32_t           end;
    unsigned           hashes:1;       /* also request the hashes */
} xet_cursor_list_t;


typedef struct {
    const xet_hash_t  *xorb;
    uint32_t           copy_id;        /* copy to which stored_* apply */
    const uint8_t     *hash;           /* XET_HASH_LEN bytes */
    uint32_t           index;          /* index in the xorb */
    uint32_t           stored_start;   /* offset in the chunk region */
    uint32_t           stored_len;     /* bytes, including the header */
    uint32_t           raw_len;
    uint32_t           skip;           /* decoded bytes before the range */
    uint32_t           take;           /* decoded bytes in the range, >= 1 */
} xet_cursor_chunk_t;


/* The position where a chunk begins. */

typedef struct {
    uint32_t           term;           /* index in the segment */
    uint32_t           chunk;          /* index in the xorb */
    uint64_t           offset;         /* position in the file */
} xet_cursor_point_t;


typedef struct {
    uint64_t           position;       /* file offset of the next byte */
    uint64_t           end;            /* exclusive */

    /* the segment: the terms of bytes [first, last) of the file */

    uint64_t           first;
    uint64_t           last;
    uint32_t           nterms;
    xet_term_t         terms[XET_TERM_SEGMENT_MAX];

    /*
     * the start of a chunk in the middle of a term, from which the next list
     * is requested; none if point.term is nterms
     */

    xet_cursor_point_t point;

    /* the buffer: consecutive chunks of the file */

    uint32_t           n;
    uint32_t           i;              /* index of the chunk at offset */
    uint64_t           begin;          /* file offset of the first chunk */
    uint64_t           offset;
    uint8_t            hashes[XET_CURSOR_CHUNKS * XET_HASH_LEN];
    uint32_t           raw[XET_CURSOR_CHUNKS];
    uint32_t           stored[XET_CURSOR_CHUNKS];
    uint32_t           lens[XET_CURSOR_CHUNKS];
    uint16_t           indexes[XET_CURSOR_CHUNKS];
    uint16_t           owners[XET_CURSOR_CHUNKS];   /* indexes of terms */
    uint32_t           copy_ids[XET_TERM_SEGMENT_MAX]; /* each list's copy id */

    /* the lists that were requested and have not arrived */

    xet_cursor_point_t next;
    uint32_t           asked;
    unsigned           locate:1;
} xet_cursor_t;


void xet_cursor_init(xet_cursor_t *c);

/* Begins the range [start, end) of the file, start < end. */
void xet_cursor_seek(xet_cursor_t *c, uint64_t start, uint64_t end);

/*
 * Sets the segment to the packed terms of a row, at most XET_TERM_SEGMENT_MAX,
 * which begin at first_offset of the file and contain c->position.  Returns
 * XET_PLAN_DAMAGED when the terms are inconsistent or do not contain that
 * position.
 */
xet_status_t xet_cursor_terms(xet_cursor_t *c, const uint8_t *packed,
    size_t len, uint64_t first_offset);

/*
 * Sets lists to the chunk lists to fetch next.  On entry *n is the number of
 * elements of lists, at least 1; on XET_OK it is the number of lists to fetch.
 * Returns XET_AGAIN when the terms at c->position are needed, XET_DONE at the
 * end of the range.
 */
xet_status_t xet_cursor_ask(xet_cursor_t *c, xet_cursor_list_t *lists,
    size_t *n);

/*
 * Copies the next requested list; hashes is NULL when no hashes were
 * requested.  Returns XET_PLAN_DAMAGED when the list contradicts the terms;
 * XET_INTERNAL when no list was requested.  A list may describe another stored
 * copy than the terms do; its chunks have the copy id and the stored positions
 * of the list.
 */
xet_status_t xet_cursor_answer(xet_cursor_t *c, const xet_plan_ends_t *ends,
    const uint8_t *hashes);

/*
 * Sets *chunk to the chunk at c->position; its pointers are valid until the
 * next xet_cursor_ask() or xet_cursor_terms().  Returns XET_AGAIN when lists
 * must be fetched first, XET_DONE at the end of the range.
 */
xet_status_t xet_cursor_chunk(xet_cursor_t *c, xet_cursor_chunk_t *chunk);

/*
 * Sets [*start, *end) to the stored bytes of the current chunk, and of the
 * chunks after it that the range needs.  Chunks are added while the cursor has
 * their lists in its buffer, they are adjacent in the same copy, and the sum of
 * decoded bytes is at most raw_max.  The current chunk is always included.  May
 * be called only after xet_cursor_chunk() has returned XET_OK.
 */
void xet_cursor_run(const xet_cursor_t *c, size_t raw_max, uint64_t *start,
    uint64_t *end);

/*
 * Moves c->position to the end of the chunk that xet_cursor_chunk() returned.
 */
void xet_cursor_advance(xet_cursor_t *c);

/* Drops all chunk lists; the lists from c->position on are requested again. */
void xet_cursor_forget(xet_cursor_t *c);


#endif /* _XET_PLAN_H_INCLUDED_ */
