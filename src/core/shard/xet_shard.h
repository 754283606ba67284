
/*
 * Shards (draft-denis-xet, "Shard Format"; docs/protocol.md describes the
 * shards of real clients).  Every record is 48 bytes.  There are three parts:
 *
 *   parser    checks the structure; takes input in pieces of any size, and
 *             calls a handler for each record;
 *   verifier  checks the meaning: compares the terms of one file with the
 *             chunk lists of the xorbs, and packs the terms;
 *   builder   writes shards (dedup responses, tests, the command line).
 */

#ifndef _XET_SHARD_H_INCLUDED_
#define _XET_SHARD_H_INCLUDED_


#include "xet_hash.h"
#include "xet_base.h"
#include "xet_plan.h"


#define XET_SHARD_TAG_LEN            32
#define XET_SHARD_RECORD_LEN         48
#define XET_SHARD_FOOTER_LEN         200

#define XET_SHARD_HEADER_VERSION     2
#define XET_SHARD_FOOTER_VERSION     1

#define XET_SHARD_TERMS_MAX          (1u << 26)  /* terms of a file */
#define XET_SHARD_TERM_RAW_MAX       (1u << 30)  /* bytes of a term */

#define XET_SHARD_FILE_VERIFICATION  0x80000000u
#define XET_SHARD_FILE_METADATA      0x40000000u


extern const uint8_t  xet_shard_tag[XET_SHARD_TAG_LEN];


/*
 * The names have REC because names without REC are status codes, such as
 * XET_SHARD_XORB.
 */

typedef enum {
    XET_SHARD_REC_HEADER = 0,
    XET_SHARD_REC_FILE,                /* file block header */
    XET_SHARD_REC_TERM,
    XET_SHARD_REC_VERIFICATION,
    XET_SHARD_REC_METADATA,
    XET_SHARD_REC_FILES_END,
    XET_SHARD_REC_XORB,                /* xorb block header */
    XET_SHARD_REC_CHUNK,
    XET_SHARD_REC_XORBS_END
} xet_shard_kind_t;


/*
 * One record, decoded.  Only the members of its kind are set.  The comments
 * name the kinds without the prefix XET_SHARD_REC_.
 */

typedef struct {
    xet_shard_kind_t  kind;
    uint64_t          offset;          /* offset of the record in the shard */
    xet_hash_t        hash;            /* hash or SHA-256, depending on kind */

    uint32_t          flags;           /* FILE, TERM, XORB, CHUNK */
    uint32_t          count;           /* FILE: terms, XORB: chunks */

    uint32_t          raw_length;      /* TERM, XORB, CHUNK */
    uint32_t          chunk_start;     /* TERM */
    uint32_t          chunk_end;       /* TERM, exclusive */
    uint32_t          raw_start;       /* CHUNK */
    uint32_t          stored_size;     /* XORB; 0 from hf_xet */

    uint64_t          version;         /* HEADER */
    uint64_t          footer_size;     /* HEADER; not checked */
} xet_shard_record_t;


/*
 * Receives a record.  Returns XET_OK, or an error, which becomes the status of
 * the parser.
 */
typedef xet_status_t (*xet_shard_record_pt)(void *ctx,
    const xet_shard_record_t *rec);


typedef enum {
    XET_SHARD_IN_HEADER = 0,
    XET_SHARD_IN_FILES,
    XET_SHARD_IN_TERMS,
    XET_SHARD_IN_VERIFICATION,
    XET_SHARD_IN_METADATA,
    XET_SHARD_IN_XORBS,
    XET_SHARD_IN_CHUNKS,
    XET_SHARD_IN_REST
} xet_shard_state_e;


/* Whether the files have verification records. */

typedef enum {
    XET_SHARD_VERIFICATION_UNKNOWN = 0,
    XET_SHARD_VERIFICATION_ALL,
    XET_SHARD_VERIFICATION_NONE
} xet_shard_verification_e;


/*
 * The parser checks
 *
 *   - tag and version;
 *   - per file, a term count within bounds that is not zero, except for the
 *     empty file (zero hash, no terms): XET_SHARD_COUNT;
 *   - per xorb, a chunk count within bounds: XET_SHARD_COUNT;
 *   - chunk_start < chunk_end <= XET_XORB_CHUNKS_MAX, and term and chunk
 *     lengths within bounds, so that sums do not overflow: XET_SHARD_RECORD;
 *   - that either all files with terms have verification records, or none of
 *     them: XET_SHARD_NO_VERIFICATION;
 *   - that all terms together have at most chunks_max chunks: XET_SHARD_CHUNKS;
 *   - both bookends.
 *
 * It ignores everything after the second bookend (footers and lookup tables of
 * any client).  It does not check what the records mean.  It does not check
 * totals, offsets and sizes either, because clients fill them with arbitrary
 * values.
 */

typedef struct {
    xet_shard_record_pt  handler;      /* may be NULL */
    void                *ctx;

    uint64_t             offset;       /* bytes parsed, without the footer */
    xet_status_t         status;       /* the first error */
    xet_shard_state_e    state;
    unsigned             pending;      /* bytes in record */
    uint8_t              record[XET_SHARD_RECORD_LEN];

    uint32_t                  left;    /* records left in the open list */
    uint32_t                  count;   /* terms of the open file */
    uint32_t                  flags;   /* flags of the open file */
    uint64_t                  raw;     /* sum of raw lengths in the block */
    xet_shard_verification_e  verification;

    uint64_t             files;        /* files seen so far */
    uint64_t             xorbs;
    uint64_t             terms;
    uint64_t             chunks;       /* chunks of all terms, with repeats */
    uint64_t             chunks_max;   /* set by the caller; 0: no limit */
    uint64_t             files_end;    /* offset of the first bookend */
} xet_shard_parser_t;


void xet_shard_parser_init(xet_shard_parser_t *p,
    xet_shard_record_pt handler, void *ctx);

/*
 * Parses the next len bytes.  Returns XET_OK if more bytes are needed,
 * XET_DONE if both sections were read, or an error.
 */
xet_status_t xet_shard_parser_feed(xet_shard_parser_t *p,
    const uint8_t *data, size_t len);

/*
 * Ends the input.  Returns XET_OK, the first error, or XET_SHARD_TRUNCATED if
 * a section is missing.
 */
xet_status_t xet_shard_parser_finish(xet_shard_parser_t *p);

/*
 * Decodes one 48-byte record as a record of the given kind, without any check.
 * This is for a second reading of a shard that the parser has accepted.
 */
void xet_shard_record_decode(xet_shard_record_t *rec, xet_shard_kind_t kind,
    const uint8_t *data);


/*
 * The chunks of a term as the server has stored them: the entries from
 * chunk_start to chunk_end - 1 of the xorb's lists (see xet_xorb_info_t).
 * raw_before and stored_before are the ends of the chunk before chunk_start; 0
 * if chunk_start is 0.
 */

typedef struct {
    unsigned         known:1;          /* the xorb is stored here */
    unsigned         own:1;            /* the client has sent the chunks, or
                                          may read them */
    uint32_t         chunk_count;      /* chunks of the whole xorb */
    uint32_t         n;                /* entries of the three arrays */
    uint32_t         raw_before;
    uint32_t         stored_before;
    uint32_t         stored_size;      /* bytes of the whole xorb */
    uint32_t         copy_id;          /* copy to which stored_* apply */
    const uint8_t   *hashes;
    const uint8_t   *raw_ends;
    const uint8_t   *stored_ends;
} xet_shard_slice_t;


/*
 * Reduces a slice to n > 0 of its chunks, without the first skip.  The slice
 * gets no entries if it does not have these chunks.
 */
void xet_shard_slice_cut(xet_shard_slice_t *slice, uint32_t skip, uint32_t n);


/* The state of the file being verified: about 15 KiB for any file size. */

typedef struct {
    const xet_suite_t  *suite;
    xet_merkle_t        merkle;
    xet_hash_t          hash;          /* declared file hash */
    uint64_t            size;          /* bytes so far */
    uint64_t            terms;
    xet_hash_t          first_xorb;    /* xorb of term 0, for the dedup index */
    uint32_t            first_chunk;
    xet_hash_t          first_hash;    /* hash of the file's first chunk */
} xet_shard_verifier_t;


void xet_shard_verifier_init(xet_shard_verifier_t *v,
    const xet_suite_t *suite, const xet_hash_t *file_hash);

/*
 * Checks one term: the xorb is known (else XET_SHARD_XORB), the range lies
 * inside the xorb (XET_SHARD_TERM), the length is right (XET_SHARD_TERM_LEN),
 * and the verification hash is right if given (XET_SHARD_VERIFICATION).  Adds
 * the chunks to the merkle tree and fills *term.
 *
 * If slice->own is not set, the verification hash must be given, and each of
 * these errors is reported as XET_SHARD_XORB, which does not disclose what is
 * stored.  Returns XET_INTERNAL when the slice contradicts itself.  After an
 * error, v must be initialized again before any other use.
 */
xet_status_t xet_shard_verifier_term(xet_shard_verifier_t *v,
    const xet_shard_record_t *segment, const xet_hash_t *verification,
    const xet_shard_slice_t *slice, xet_term_t *term);

/* Compares the file hash; returns XET_OK or XET_SHARD_FILE_HASH. */
xet_status_t xet_shard_verifier_finish(xet_shard_verifier_t *v);


/*
 * Builder: appends records to a xet_buf_t.  The caller writes header, file
 * blocks, bookend, xorb blocks, bookend, footer, in this order.
 */

typedef struct {
    uint64_t         files_offset;
    uint64_t         xorbs_offset;
    uint64_t         footer_offset;    /* also the offset of empty tables */
    uint8_t          key[32];          /* zeros: chunk hashes are plain */
    uint64_t         created;          /* seconds since the epoch */
    uint64_t         expires;
    uint64_t         stored_on_disk;
    uint64_t         materialized;
    uint64_t         stored;
} xet_shard_footer_t;

void xet_shard_build_header(xet_buf_t *b, uint64_t footer_size);
void xet_shard_build_file(xet_buf_t *b, const xet_hash_t *hash,
    uint32_t flags, uint32_t segments);
void xet_shard_build_term(xet_buf_t *b, const xet_hash_t *xorb,
    uint32_t raw_length, uint32_t chunk_start, uint32_t chunk_end);
void xet_shard_build_verification(xet_buf_t *b, const xet_hash_t *hash);

/* Writes a SHA-256, given in its usual byte order, as four reversed words. */
void xet_shard_build_metadata(xet_buf_t *b, const uint8_t *sha256);
void xet_shard_build_bookend(xet_buf_t *b);
void xet_shard_build_xorb(xet_buf_t *b, const xet_hash_t *hash,
    uint32_t chunks, uint32_t raw_size, uint32_t stored_size);
void xet_shard_build_chunk(xet_buf_t *b, const uint8_t *hash,
    uint32_t raw_start, uint32_t raw_length, uint32_t flags);
void xet_shard_build_footer(xet_buf_t *b, const xet_shard_footer_t *f);

/*
 * Writes a whole xorb block.  If key is not NULL, every chunk hash is replaced
 * by its keyed hash (docs/protocol.md, dedup answers).  In the footer a key of
 * zeros means plain hashes, so pass NULL for such a key.
 *
 * If xorb->seen is not NULL, it lists the "seen" chunks, which may be reported
 * (see xet_plan.h).  Then the chunks after the last seen chunk are omitted.
 * Every other chunk that is not seen is replaced by noise: the mean length of
 * chunks, and a hash of the xorb hash and the chunk's number, keyed with
 * xorb->noise.  In this case key must not be NULL.
 */
void xet_shard_build_xorb_block(xet_buf_t *b, const xet_xorb_list_t *xorb,
    const uint8_t *key);


#endif /* _XET_SHARD_H_INCLUDED_ */
