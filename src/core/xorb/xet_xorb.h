
/*
 * Xorbs (draft-denis-xet, "Xorb Format"; docs/protocol.md describes the xorbs
 * of real clients).  A xorb is a sequence of chunks, each an 8-byte header and
 * data.  Old clients append a footer that begins with "XETBLOB".
 */

#ifndef _XET_XORB_H_INCLUDED_
#define _XET_XORB_H_INCLUDED_


#include "xet_hash.h"
#include "xet_chunk.h"


#define XET_XORB_HEADER_LEN  8

/* The scheme in the header of a chunk, which need not be a known one. */
#define xet_xorb_header_scheme(header)  ((header)[4])

/* The maximum size of a chunk in a xorb, including its header. */
#define XET_XORB_CHUNK_MAX   (XET_XORB_HEADER_LEN + XET_CHUNK_MAX)

#define XET_XORB_NAME_MAX    (XET_HASH_STR_LEN + 1 + 8)


typedef struct {
    uint32_t         chunk_count;
    uint64_t         raw_size;         /* bytes of all chunks, decoded */
    uint64_t         stored_size;      /* bytes of the chunk region, < 2^32 */

    /*
     * Arrays of chunk_count entries.  Ends are exclusive, as little-endian
     * u32: raw_ends in the decoded stream, stored_ends in the chunk region,
     * including the chunk headers.
     */
    const uint8_t   *hashes;           /* 32 bytes per entry */
    const uint8_t   *raw_ends;         /* 4 bytes per entry */
    const uint8_t   *stored_ends;      /* 4 bytes per entry */

    xet_hash_t       hash;             /* set by finish */
} xet_xorb_info_t;


typedef struct xet_xorb_verifier_s  xet_xorb_verifier_t;


/*
 * A push verifier: takes the body in pieces of any size, decodes and hashes
 * every chunk, and at the end compares the root with expected (NULL: the hash
 * is computed and not checked).  The result does not depend on how the input
 * is split.  Memory use is constant: 850 KiB plus the buffers of LZ4 (see
 * xet_chunk.h).  size_max limits the chunk region, in bytes.  Returns NULL
 * when out of memory.  suite must outlive v; expected is copied.
 */
xet_xorb_verifier_t *xet_xorb_verifier_create(const xet_suite_t *suite,
    const xet_hash_t *expected, uint64_t size_max);
void xet_xorb_verifier_destroy(xet_xorb_verifier_t *v);

/*
 * Returns XET_OK, or the first error, which every later call repeats.  *stored
 * is set to the number of leading bytes of data that belong to the chunk
 * region and must be stored; the remaining bytes are the footer.  *stored may
 * include bytes of a chunk that later turns out to be invalid.  The sum of
 * *stored over all calls does not depend on how the body is split, either.
 *
 * A footer must be complete, be followed by its length, and agree with the
 * chunks in every byte except its 16 spare bytes.
 */
xet_status_t xet_xorb_verifier_feed(xet_xorb_verifier_t *v,
    const uint8_t *data, size_t len, size_t *stored);

/* Ends the body; returns XET_OK if the whole body was valid, or an error. */
xet_status_t xet_xorb_verifier_finish(xet_xorb_verifier_t *v);

/* Returns the chunks verified so far.  The result is valid as long as v. */
const xet_xorb_info_t *xet_xorb_verifier_info(const xet_xorb_verifier_t *v);


/*
 * Writes to chunks the indexes of the chunks for the dedup index, in order:
 * chunks that are eligible by their hash, but only the first chunk with each
 * hash.  chunks has room for info->chunk_count indexes.  Returns the number
 * of indexes written.
 */
uint32_t xet_xorb_eligible(const xet_suite_t *suite,
    const xet_xorb_info_t *info, uint16_t *chunks);


/*
 * xet_xorb_encoder.c: encodes chunks as a xorb stores them.  An encoder takes
 * 0.5 MiB.  create returns NULL when out of memory; suite must outlive the
 * encoder.
 */

typedef struct xet_xorb_encoder_s  xet_xorb_encoder_t;


typedef struct {
    unsigned        scheme;            /* XET_SCHEME_* */
    uint32_t        len;               /* bytes of data, without the header */
    const uint8_t  *data;              /* NULL: not encoded */
} xet_xorb_encoded_t;


xet_xorb_encoder_t *xet_xorb_encoder_create(const xet_suite_t *suite);
void xet_xorb_encoder_destroy(xet_xorb_encoder_t *e);

/*
 * Encodes a chunk of 1..XET_CHUNK_MAX bytes.  scheme is one of XET_SCHEME_*, or
 * XET_SCHEME_AUTO for the one with the smallest result; a chunk that does not
 * shrink stays plain.  *encoded refers to data, or to memory of the encoder
 * that is valid until the next call.  Errors: XET_XORB_SCHEME, XET_NOMEM.
 */
xet_status_t xet_xorb_encoder_encode(xet_xorb_encoder_t *e,
    const uint8_t *data, size_t len, unsigned scheme,
    xet_xorb_encoded_t *encoded);


/*
 * A writer for tests, the command line and server-side ingest: takes chunks,
 * and passes the chunk region to a callback.  create returns NULL when out of
 * memory; suite must outlive the writer.
 */

typedef struct xet_xorb_writer_s  xet_xorb_writer_t;

typedef xet_status_t (*xet_xorb_write_pt)(void *ctx, const uint8_t *data,
    size_t len);

xet_xorb_writer_t *xet_xorb_writer_create(const xet_suite_t *suite,
    xet_xorb_write_pt write, void *ctx);
void xet_xorb_writer_destroy(xet_xorb_writer_t *w);

/*
 * Returns whether another chunk of len bytes is within the limits on the chunk
 * count, the raw size and the stored size.
 */
int xet_xorb_writer_fits(const xet_xorb_writer_t *w, size_t len);

/*
 * Adds a chunk, which is encoded like by xet_xorb_encoder_encode().  hash is
 * the chunk's hash, or NULL to compute it.
 *
 * Errors that leave the writer unchanged: XET_XORB_RAW_LEN, XET_XORB_CHUNKS or
 * XET_XORB_SIZE when the chunk does not fit; XET_XORB_SCHEME; XET_NOMEM.  An
 * error of the callback stays until reset.
 */
xet_status_t xet_xorb_writer_add(xet_xorb_writer_t *w, const uint8_t *data,
    size_t len, unsigned scheme, const xet_hash_t *hash);

/* Adds a chunk of len bytes that was encoded before, with the same errors. */
xet_status_t xet_xorb_writer_put(xet_xorb_writer_t *w,
    const xet_xorb_encoded_t *encoded, size_t len, const xet_hash_t *hash);

/*
 * Computes info->hash.  footer: 0 for none, 1 for the v1 CasObjectInfo footer
 * and its length, which old clients send.  Error: XET_XORB_EMPTY when there
 * are no chunks.
 */
xet_status_t xet_xorb_writer_finish(xet_xorb_writer_t *w, int footer);
const xet_xorb_info_t *xet_xorb_writer_info(const xet_xorb_writer_t *w);
void xet_xorb_writer_reset(xet_xorb_writer_t *w);


/*
 * Decodes a single stored chunk, for readers, which know the position of a
 * chunk from metadata.
 *
 * stored points to len bytes: the chunk with its header, and nothing else.
 * out has room for raw_len bytes, and does not overlap stored, unless the
 * header has XET_SCHEME_NONE and out is stored + XET_XORB_HEADER_LEN: then
 * nothing is copied.  XET_OK means that out has the given hash,
 * of 32 bytes.  After an error the content of out is undefined.  Errors:
 * XET_XORB_TRUNCATED when len is less than a header; XET_XORB_STORED_LEN and
 * XET_XORB_RAW_LEN when the header has other lengths; XET_XORB_VERSION,
 * _SCHEME, _DATA, _DATA_LEN as for an upload; XET_XORB_EMPTY when a footer
 * begins here; XET_CHUNK_HASH; XET_NOMEM.
 */
xet_status_t xet_xorb_chunk_decode(const xet_suite_t *suite,
    xet_codec_t *codec, const uint8_t *stored, size_t len,
    const uint8_t *hash, uint8_t *out, size_t raw_len);


/*
 * Writes the name of a stored copy of a xorb: the hash string, a dot, and the
 * copy id in 8 hex digits.
 *
 * A xorb's hash covers its chunks, but not their compression and layout, so the
 * same xorb can arrive in many encodings.  The copy id distinguishes the
 * copies.  Every stored copy gets a new copy id, so a name never refers to
 * other bytes later.  Copies from before copy ids were introduced have copy id
 * 0; their names are the hash string alone.
 *
 * Writes at most XET_XORB_NAME_MAX bytes, no NUL; returns their end.
 */
uint8_t *xet_xorb_name_print(uint8_t *dst, const xet_hash_t *xorb,
    uint32_t copy_id);

/*
 * Parses a name in exactly the form that xet_xorb_name_print() writes.  For any
 * other text returns XET_HASH_SYNTAX and leaves *xorb and *copy_id unchanged.
 */
xet_status_t xet_xorb_name_parse(xet_hash_t *xorb, uint32_t *copy_id,
    const uint8_t *src, size_t len);

/*
 * An orphan is a copy that has no row and is older than XET_XORB_ORPHAN_AGE
 * seconds.  An operator may choose another age, but at least
 * XET_XORB_ORPHAN_AGE_MIN: after that time, the server has long given up
 * inserting the row.
 */
#define XET_XORB_ORPHAN_AGE      86400
#define XET_XORB_ORPHAN_AGE_MIN  3600

/*
 * A sweep puts an orphan in quarantine before it removes the orphan: the copy
 * is renamed into the folder of temporary files, so no reader finds it.  The
 * name is XET_XORB_QUARANTINE, a decimal number that differs between sweeps, a
 * dot, and the name of the copy.  Writes at most XET_XORB_QUARANTINE_MAX
 * bytes, no NUL; returns their end.
 */
#define XET_XORB_QUARANTINE      "orphan."
#define XET_XORB_QUARANTINE_MAX                                               \
    (sizeof(XET_XORB_QUARANTINE) - 1 + XET_DECIMAL_MAX + 1 + XET_XORB_NAME_MAX)

uint8_t *xet_xorb_quarantine_print(uint8_t *dst, uint64_t sweep,
    const xet_hash_t *xorb, uint32_t copy_id);

/* Does the same as xet_xorb_name_parse() for a name in quarantine. */
xet_status_t xet_xorb_quarantine_parse(uint64_t *sweep, xet_hash_t *xorb,
    uint32_t *copy_id, const uint8_t *src, size_t len);


/*
 * xet_xorb_footer.c: the CasObjectInfo footer that old clients append to the
 * chunks.  Compares a footer with the chunks while the footer arrives, or
 * writes one.  Internal to the core.  When a footer is read, the parser has
 * already consumed the ident "XETBLOB" before it.
 */

#define XET_XORB_FOOTER_FIXED  12


typedef struct {
    const xet_xorb_info_t  *info;
    const uint8_t          *layout;    /* field being read; NULL: the footer's
                                          version has not been read yet */

    const uint8_t          *want;      /* expected bytes; NULL: any bytes */
    size_t                  rest;      /* remaining bytes of the field */
    unsigned                version;

    uint8_t                 fixed[XET_XORB_FOOTER_FIXED];
} xet_xorb_footer_t;


/* Initializes f.  info must be complete, with its hash, and must outlive f. */
void xet_xorb_footer_init(xet_xorb_footer_t *f, const xet_xorb_info_t *info);

/*
 * Takes the bytes after the ident, in pieces of any size.  Returns XET_OK, or
 * XET_XORB_FOOTER at the first byte that differs.
 */
xet_status_t xet_xorb_footer_feed(xet_xorb_footer_t *f, const uint8_t *data,
    size_t len);

/*
 * Ends the footer; returns XET_OK, or XET_XORB_TRUNCATED if bytes are missing.
 */
xet_status_t xet_xorb_footer_finish(const xet_xorb_footer_t *f);

/*
 * Writes the ident, the footer and the length of both.  Returns XET_OK,
 * XET_INTERNAL for a version other than 0 and 1, or the first error of write.
 */
xet_status_t xet_xorb_footer_write(const xet_xorb_info_t *info,
    unsigned version, xet_xorb_write_pt write, void *ctx);


/*
 * xet_xorb_parser.c: a push parser of xorb bodies.  It finds the chunks and
 * the footer and checks the headers, but not the payloads.  Internal to the
 * core; the verifier uses it.
 *
 * The caller passes a piece of the body and gets events until XET_AGAIN:
 *
 *     while ((rc = xet_xorb_parser_next(p, &pos, end, &ev)) == XET_OK) {
 *         ...
 *     }
 *
 * Where the body is split into pieces affects only how payloads and footers
 * are split into events.
 */

#define XET_XORB_IDENT      "XETBLOB"
#define XET_XORB_IDENT_LEN  7


typedef enum {
    XET_XORB_EVENT_CHUNK = 0,      /* a header: parser->chunk is set */
    XET_XORB_EVENT_PAYLOAD,        /* data, len: a part of the payload */
    XET_XORB_EVENT_FOOTER,         /* the ident of a footer has been read */
    XET_XORB_EVENT_FOOTER_DATA     /* data, len: bytes after the ident */
} xet_xorb_event_type_t;


/* data points into the caller's piece; a payload is never empty. */

typedef struct {
    xet_xorb_event_type_t  type;
    const uint8_t         *data;
    size_t                 len;
} xet_xorb_event_t;


typedef struct {
    unsigned               scheme;     /* XET_SCHEME_*, a known one */
    uint32_t               payload_len;  /* 1..XET_CHUNK_MAX */
    uint32_t               raw_len;    /* 1..XET_CHUNK_MAX */
} xet_xorb_chunk_t;


typedef enum {
    XET_XORB_PARSER_HEADER = 0,
    XET_XORB_PARSER_PAYLOAD,
    XET_XORB_PARSER_IDENT,
    XET_XORB_PARSER_FOOTER
} xet_xorb_parser_state_e;


typedef struct {
    const xet_suite_t     *suite;
    uint64_t               size_max;   /* limit of the chunk region, in bytes */
    uint64_t               size;       /* bytes of chunks with parsed headers */
    uint64_t               taken;      /* chunk region bytes consumed */

    uint32_t               count;      /* parsed headers */
    uint32_t               rest;       /* remaining payload bytes */

    xet_xorb_parser_state_e  state;
    unsigned                 have;     /* bytes of header or ident */
    uint8_t                  header[XET_XORB_HEADER_LEN];

    xet_xorb_chunk_t       chunk;
} xet_xorb_parser_t;


void xet_xorb_parser_init(xet_xorb_parser_t *p, const xet_suite_t *suite,
    uint64_t size_max);

/*
 * Returns XET_OK with an event, XET_AGAIN when *pos has reached end, or an
 * error of a header: XET_XORB_VERSION, _SCHEME, _STORED_LEN, _RAW_LEN,
 * _DATA_LEN, _CHUNKS, _SIZE, or _EMPTY for a footer without chunks.  An error
 * is returned at the first byte that shows it.  After an error, the parser must
 * not be used.
 */
xet_status_t xet_xorb_parser_next(xet_xorb_parser_t *p, const uint8_t **pos,
    const uint8_t *end, xet_xorb_event_t *ev);

/*
 * Checks whether the body may end here: XET_OK after a chunk or anywhere in a
 * footer, otherwise XET_XORB_EMPTY or XET_XORB_TRUNCATED.
 */
xet_status_t xet_xorb_parser_finish(const xet_xorb_parser_t *p);


#endif /* _XET_XORB_H_INCLUDED_ */
