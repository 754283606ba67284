
/*
 * Rows of files, as "xet ls" and "xet repo files" print them.
 */

#ifndef _XET_CLI_LS_H_INCLUDED_
#define _XET_CLI_LS_H_INCLUDED_


#include "xet_cli_pg.h"


/*
 * Prints the files of a repo, or all files of the store if repo is NULL, in
 * the order in which they were registered.  XET_CLI_OK, XET_CLI_FAULT if there
 * is no such repo, or another exit code; failures are reported.
 */
int xet_cli_ls_files(xet_cli_pg_t *pg, const char *repo, int json);


#endif /* _XET_CLI_LS_H_INCLUDED_ */
