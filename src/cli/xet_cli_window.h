
/*
 * A window of a download: a part of the file that one reconstruction tells
 * of, from a chunk's start to a chunk's end, and the units that fetch it.
 *
 *     planning -> fetching -> finished
 *
 * Windows are finished in the order of the file, whatever the order in which
 * their chunks come: only then the hashes of the chunks are a row.
 */

#ifndef _XET_CLI_WINDOW_H_INCLUDED_
#define _XET_CLI_WINDOW_H_INCLUDED_


#include "xet_cli_unit.h"


typedef struct xet_cli_window_s  xet_cli_window_t;


struct xet_cli_window_s {
    xet_cli_window_t   *next;
    void               *download;

    uint64_t            first;         /* bytes that are asked for */
    uint64_t            last;          /* included */
    uint64_t            start;         /* of the chunk that first is in */
    uint64_t            end;           /* of the last chunk */

    xet_cli_request_t   request;       /* of the plan */
    xet_cli_plan_t      plan;
    unsigned            planned:1;
    unsigned            refreshing:1;
    unsigned            refreshes;     /* without a chunk in between */

    xet_cli_unit_t     *units;         /* one a range of the plan */
    size_t              left;          /* of them to be done */
    xet_cli_unit_t     *expired;
    xet_cli_use_t      *uses;

    xet_cli_chunk_t    *chunks;        /* those that are there */
    size_t              nchunks;
    size_t              room;

    uint8_t            *data;          /* start..end, where it is kept */
};


/*
 * Makes units of the plan.  keep: with memory for all bytes of the window.
 * XET_CLI_OK, XET_CLI_ERROR, or XET_CLI_NETWORK when the plan is not what was
 * asked for; told of.
 */
int xet_cli_window_open(xet_cli_window_t *w, xet_cli_decoder_t *decoder,
    xet_cli_unit_chunk_pt handler, int keep);

/* XET_CLI_OK or XET_CLI_ERROR. */
int xet_cli_window_add(xet_cli_window_t *w, const xet_cli_chunk_t *chunk);

/*
 * Puts the chunks in order and looks whether they are a row from start to
 * end: XET_CLI_OK, else XET_CLI_NETWORK, told of.
 */
int xet_cli_window_finish(xet_cli_window_t *w);

void xet_cli_window_free(xet_cli_window_t *w);


#endif /* _XET_CLI_WINDOW_H_INCLUDED_ */
