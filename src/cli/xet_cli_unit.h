
/*
 * A unit of a download: one range of one xorb, streamed.
 *
 * The chunks of the range come in order; each is decoded, hashed and handed to
 * the handler once for each place that it has in the file.  A transfer that
 * breaks off is resumed behind the last complete chunk.  Memory is one stored
 * chunk for each running unit, one decoder for all units of a download, and
 * what libcurl needs.
 *
 *     waiting -> running -> done
 *                        -> expired (the URL: 403, 404) -> waiting
 *                        -> rewound -> waiting
 *
 * Where chunks were there before, the next one begins where they have ended
 * in the xorb of then.  The server may have stored the xorb anew since, as
 * other bytes of the same chunks: then the range comes from its start, and
 * the chunks that are there are passed over.
 */

#ifndef _XET_CLI_UNIT_H_INCLUDED_
#define _XET_CLI_UNIT_H_INCLUDED_


#include "xet_cli_http.h"
#include "xet_cli_plan.h"
#include "xet_xorb_parser.h"


/* A chunk at one of its places; also a record of NAME.xet-state. */

typedef struct {
    uint64_t              offset;      /* in the file */
    uint32_t              raw_length;
    uint32_t              stored_length;  /* in the xorb, without header */
    xet_hash_t            hash;
} xet_cli_chunk_t;


/* A term of the file, and how much of it has come. */

typedef struct {
    uint32_t              start;       /* chunks of the xorb */
    uint32_t              end;
    uint64_t              pos;         /* of the next chunk in the file */
    uint64_t              stop;        /* end of the term in the file */
} xet_cli_use_t;


/* What all units of a download share. */

typedef struct {
    xet_codec_t          *codec;
    uint8_t               raw[XET_CHUNK_MAX];
} xet_cli_decoder_t;


typedef struct xet_cli_unit_s  xet_cli_unit_t;

/*
 * Takes a chunk at one place; raw is NULL if an earlier run has kept it there.
 * XET_CLI_OK, or the exit code that ends the unit, reported.
 */
typedef int (*xet_cli_unit_chunk_pt)(xet_cli_unit_t *u,
    const xet_cli_chunk_t *chunk, const uint8_t *raw);

/*
 * Whether an earlier run has kept a chunk at chunk->offset; fills the rest of
 * *chunk then.
 */
typedef int (*xet_cli_unit_kept_pt)(void *ctx, xet_cli_chunk_t *chunk);


struct xet_cli_unit_s {
    xet_cli_request_t     request;
    xet_cli_unit_t       *next;        /* in the queue or in expired */
    void                 *window;
    xet_cli_decoder_t    *decoder;
    xet_cli_unit_chunk_pt handler;

    xet_cli_range_t      *range;
    xet_cli_use_t        *uses;        /* by start */
    size_t                nuses;
    size_t                passed;      /* uses that are complete */

    uint32_t              chunk;       /* number of the next one */
    uint32_t              placed;      /* chunks before it are in place */
    uint64_t              pos;         /* of the next chunk in the xorb */
    int                   rc;          /* why the write handler refused */
    unsigned              running:1;
    unsigned              skipped:1;   /* what was there, pos is a guess */

    xet_xorb_parser_t     parser;
    uint8_t              *payload;     /* while running */
    size_t                have;
};


/*
 * Skips chunks at the beginning of the range that an earlier run has kept, and
 * hands them to the handler.  XET_CLI_OK, or what the handler has returned.
 */
int xet_cli_unit_skip(xet_cli_unit_t *u, xet_cli_unit_kept_pt kept,
    void *ctx);

/* Whether all chunks of the range have come. */
int xet_cli_unit_complete(const xet_cli_unit_t *u);

/*
 * Sets up u->request, except for its done handler.  XET_CLI_OK, or
 * XET_CLI_ERROR without memory, reported.
 */
int xet_cli_unit_prepare(xet_cli_unit_t *u);

/*
 * The range has other bytes of the xorb than before, so that all of it must
 * come from the start.  Not while a request is under way.
 */
void xet_cli_unit_moved(xet_cli_unit_t *u, uint64_t start, uint64_t end);

/*
 * After a request: whether it must be sent again from the start of the range,
 * because the bytes do not continue the chunks that were kept.
 */
int xet_cli_unit_rewind(xet_cli_unit_t *u);

/*
 * To be called when the request is done.  XET_CLI_OK if the unit is complete,
 * else the exit code of a failure, reported.
 */
int xet_cli_unit_result(xet_cli_unit_t *u);

void xet_cli_unit_free(xet_cli_unit_t *u);


#endif /* _XET_CLI_UNIT_H_INCLUDED_ */
