
/*
 * What a put has sent: the xorbs that the server has acknowledged, and that a
 * put that is broken off need not send again.
 *
 * A journal is a file in $XDG_CACHE_HOME/xet, ~/.cache/xet by default, which
 * is of this user and written by nobody else.  It is one of a command: of its
 * endpoint, its folder and its operands; the same command finds it, a put
 * that succeeds removes it, and any put those that are a week old.
 *
 *     journal =  "XETPUT01", record*
 *     record  =  xorb hash, chunks u32, raw and stored size u32, 4 spare
 *                bytes, (chunk hash, length u32)*
 *
 * A record is believed when its chunks have the hash of the xorb: what was
 * half written is not.  That the server has the xorb still is not believed:
 * it is the shard's answer that tells.  Without a journal everything works,
 * so that nobody is told of one that can't be written.
 */

#ifndef _XET_CLI_JOURNAL_H_INCLUDED_
#define _XET_CLI_JOURNAL_H_INCLUDED_


#include "xet_cli_xorbs.h"


typedef struct {
    int                 folder;        /* -1: there is no place for it */
    int                 fd;            /* -1: not written yet */
    char                name[40];
    uint64_t            size;
} xet_cli_journal_t;


/*
 * Reads what is there, as resumed xorbs.  XET_CLI_OK or XET_CLI_ERROR, told
 * of.
 */
int xet_cli_journal_open(xet_cli_journal_t *j, const xet_cli_args_t *args,
    const char *endpoint, xet_cli_xorbs_t *x);

void xet_cli_journal_add(xet_cli_journal_t *j, const xet_xorb_list_t *xorb);

/* Empties it. */
void xet_cli_journal_reset(xet_cli_journal_t *j);

/* done: there is nothing to resume. */
void xet_cli_journal_close(xet_cli_journal_t *j, int done);


#endif /* _XET_CLI_JOURNAL_H_INCLUDED_ */
