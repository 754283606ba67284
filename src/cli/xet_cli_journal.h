
/*
 * What a put has sent: the xorbs that the server has acknowledged.  If the put
 * is broken off, the next run need not send them again.
 *
 * A journal is a file in $XDG_CACHE_HOME/xet, ~/.cache/xet by default, a
 * folder that this user owns and nobody else may write into.  Its name is made
 * of the endpoint, the current folder and the operands of the command, so that
 * the same command finds it.  A put that succeeds removes its journal; a put
 * that makes a new journal removes those that are a week old.
 *
 *     journal =  "XETPUT01", record*
 *     record  =  xorb hash, chunks u32, raw and stored size u32, 4 spare
 *                bytes, (chunk hash, length u32)*
 *
 * A record counts only if its chunks have the hash of the xorb, so that a half
 * written one is ignored.  It does not prove that the server still has the
 * xorb: the answer to the shard shows that.  A put works without a journal,
 * too: one that cannot be written is not reported.
 */

#ifndef _XET_CLI_JOURNAL_H_INCLUDED_
#define _XET_CLI_JOURNAL_H_INCLUDED_


#include "xet_cli_xorbs.h"


typedef struct {
    int                 folder;        /* -1: no journal is written */
    int                 fd;            /* -1: there is no file so far */
    char                name[40];
    uint64_t            size;
} xet_cli_journal_t;


/*
 * Opens the journal of this command, if there is one, and adds its xorbs to x
 * as resumed ones.  XET_CLI_OK, also without a journal, or XET_CLI_ERROR,
 * reported.
 */
int xet_cli_journal_open(xet_cli_journal_t *j, const xet_cli_args_t *args,
    const char *endpoint, xet_cli_xorbs_t *x);

/* Appends a record; the first one makes the file. */
void xet_cli_journal_add(xet_cli_journal_t *j, const xet_xorb_list_t *xorb);

/* Removes all records. */
void xet_cli_journal_reset(xet_cli_journal_t *j);

/* Closes the journal; done: also removes it, nothing is to be resumed. */
void xet_cli_journal_close(xet_cli_journal_t *j, int done);


#endif /* _XET_CLI_JOURNAL_H_INCLUDED_ */
