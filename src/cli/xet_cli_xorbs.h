
/*
 * Xorbs that a put has made: their chunk lists, for the shard that is to list
 * them and for the journal of the put.  36 bytes for each chunk.
 */

#ifndef _XET_CLI_XORBS_H_INCLUDED_
#define _XET_CLI_XORBS_H_INCLUDED_


#include "xet_cli.h"


typedef struct {
    xet_xorb_list_t     list;          /* owns hashes and raw_ends */
    unsigned            resumed:1;     /* an earlier run has sent it */
    unsigned            wanted:1;      /* the next shard is to list it */
} xet_cli_xorb_t;


typedef struct {
    xet_cli_xorb_t     *all;
    size_t              n;
    size_t              room;
} xet_cli_xorbs_t;


/*
 * Appends a copy of a list; resumed: an earlier run has sent the xorb.
 * XET_CLI_OK, or XET_CLI_ERROR without memory, reported.
 */
int xet_cli_xorbs_add(xet_cli_xorbs_t *x, const xet_xorb_list_t *list,
    int resumed);

/* Marks a resumed xorb as wanted, if there is one with this hash. */
void xet_cli_xorbs_want(xet_cli_xorbs_t *x, const xet_hash_t *hash);

/* Free the wanted xorbs, or the resumed ones, and close up the others. */
void xet_cli_xorbs_drop_wanted(xet_cli_xorbs_t *x);
void xet_cli_xorbs_drop_resumed(xet_cli_xorbs_t *x);

void xet_cli_xorbs_free(xet_cli_xorbs_t *x);


#endif /* _XET_CLI_XORBS_H_INCLUDED_ */
