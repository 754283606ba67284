
/*
 * A unit of a download: one range of one xorb, streamed.
 *
 * The chunks of the range come in order; each is decoded, hashed and handed
 * on with every place that it has in the file.  A unit that breaks off goes
 * on behind its last complete chunk.  Memory is two chunks and what libcurl
 * needs.
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


/* A chunk in its place; also a record of the state of a download. */

typedef struct {
    uint64_t              offset;      /* in the file */
    uint32_t              raw_length;
    uint32_t              stored_length;  /* in the xorb, without header */
    xet_hash_t            hash;
} xet_cli_chunk_t;


/* A term, as far as it has come. */

typedef struct {
    uint32_t              start;       /* chunks */
    uint32_t              end;
    uint64_t              pos;         /* of the next chunk in the file */
    uint64_t              stop;
} xet_cli_use_t;


/* What all units of a download share. */

typedef struct {
    xet_codec_t          *codec;
    uint8_t               raw[XET_CHUNK_MAX];
} xet_cli_decoder_t;


typedef struct xet_cli_unit_s  xet_cli_unit_t;

/* raw is NULL for a chunk that was there before.  XET_CLI_OK, or the end. */
typedef int (*xet_cli_unit_chunk_pt)(xet_cli_unit_t *u,
    const xet_cli_chunk_t *chunk, const uint8_t *raw);

/* Whether the chunk that begins at chunk->offset is there; fills *chunk. */
typedef int (*xet_cli_unit_kept_pt)(void *ctx, xet_cli_chunk_t *chunk);


struct xet_cli_unit_s {
    xet_cli_request_t     request;
    xet_cli_unit_t       *next;        /* in the list that it is in */
    void                 *window;
    xet_cli_decoder_t    *decoder;
    xet_cli_unit_chunk_pt handler;

    xet_cli_range_t      *range;
    xet_cli_use_t        *uses;        /* by start */
    size_t                nuses;
    size_t                passed;      /* uses that are complete */

    uint32_t              chunk;       /* the next one */
    uint32_t              placed;      /* those before are in their places */
    uint64_t              pos;         /* of it in the xorb */
    int                   rc;          /* why the write handler refused */
    unsigned              running:1;
    unsigned              skipped:1;   /* what was there, pos is a guess */

    xet_xorb_parser_t     parser;
    uint8_t              *payload;     /* while running */
    size_t                have;
};


/* Takes what is there already; XET_CLI_OK, or what the handler says. */
int xet_cli_unit_skip(xet_cli_unit_t *u, xet_cli_unit_kept_pt kept,
    void *ctx);

int xet_cli_unit_complete(const xet_cli_unit_t *u);

/* Sets the request up, but for done; XET_CLI_OK or XET_CLI_ERROR. */
int xet_cli_unit_prepare(xet_cli_unit_t *u);

/*
 * Where the range is other bytes of the xorb than before, which it must not
 * be while a request is under way: all is to come from the start.
 */
void xet_cli_unit_moved(xet_cli_unit_t *u, uint64_t start, uint64_t end);

/*
 * After a request: whether it is to be sent again, from the start of the
 * range, for what came is not what follows on the chunks that were there.
 */
int xet_cli_unit_rewind(xet_cli_unit_t *u);

/*
 * What the end of the request means: XET_CLI_OK when the unit is complete,
 * else the code of a failure that has been told of.
 */
int xet_cli_unit_result(xet_cli_unit_t *u);

void xet_cli_unit_free(xet_cli_unit_t *u);


#endif /* _XET_CLI_UNIT_H_INCLUDED_ */
