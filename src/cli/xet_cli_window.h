
/*
 * A window of a download: a part of the file that one reconstruction
 * describes, from the start of a chunk to the end of a chunk, and the units
 * that fetch it.
 *
 *     planning -> fetching -> finished
 *
 * Chunks come in any order.  Windows are finished in the order of the file,
 * because the hash of the file takes the chunk hashes in that order.
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
    uint64_t            start;         /* of the first chunk */
    uint64_t            end;           /* of the last chunk */

    xet_cli_request_t   request;       /* for the plan */
    xet_cli_plan_t      plan;
    unsigned            planned:1;
    unsigned            refreshing:1;
    unsigned            refreshes;     /* without a chunk in between */

    xet_cli_unit_t     *units;         /* one for each range of the plan */
    size_t              left;          /* units that are not done */
    xet_cli_unit_t     *expired;
    xet_cli_use_t      *uses;

    xet_cli_chunk_t    *chunks;        /* that have come */
    size_t              nchunks;
    size_t              room;

    uint8_t            *data;          /* start..end if ordered, or NULL */
};


/*
 * Makes the units of w->plan; keep: also w->data, for all bytes of the window.
 * XET_CLI_OK; XET_CLI_ERROR without memory or XET_CLI_NETWORK if the plan is
 * not of the bytes that were asked for, reported.
 */
int xet_cli_window_open(xet_cli_window_t *w, xet_cli_decoder_t *decoder,
    xet_cli_unit_chunk_pt handler, int keep);

/* Adds a chunk that has come.  XET_CLI_OK, or XET_CLI_ERROR, reported. */
int xet_cli_window_add(xet_cli_window_t *w, const xet_cli_chunk_t *chunk);

/*
 * Sorts the chunks by offset.  XET_CLI_OK if they fill the window from start to
 * end without a gap, else XET_CLI_NETWORK, reported.
 */
int xet_cli_window_finish(xet_cli_window_t *w);

void xet_cli_window_free(xet_cli_window_t *w);


#endif /* _XET_CLI_WINDOW_H_INCLUDED_ */
