
/*
 * Xorbs that a put has made: what it may still have to tell of them, to the
 * server in a shard and to its next run in the journal.  36 bytes a chunk.
 */

#ifndef _XET_CLI_XORBS_H_INCLUDED_
#define _XET_CLI_XORBS_H_INCLUDED_


#include "xet_cli.h"


typedef struct {
    xet_xorb_list_t     list;          /* hashes and raw_ends are its own */
    unsigned            resumed:1;     /* an earlier run has sent it */
    unsigned            wanted:1;      /* a file that is registered next */
} xet_cli_xorb_t;


typedef struct {
    xet_cli_xorb_t     *all;
    size_t              n;
    size_t              room;
} xet_cli_xorbs_t;


/* A copy, behind the others.  XET_CLI_OK or XET_CLI_ERROR, told of. */
int xet_cli_xorbs_add(xet_cli_xorbs_t *x, const xet_xorb_list_t *list,
    int resumed);

/* A file refers to a xorb, which need not be one of these. */
void xet_cli_xorbs_want(xet_cli_xorbs_t *x, const xet_hash_t *hash);

/* Lets go of those that are wanted, or of the resumed ones. */
void xet_cli_xorbs_drop_wanted(xet_cli_xorbs_t *x);
void xet_cli_xorbs_drop_resumed(xet_cli_xorbs_t *x);

void xet_cli_xorbs_free(xet_cli_xorbs_t *x);


#endif /* _XET_CLI_XORBS_H_INCLUDED_ */
