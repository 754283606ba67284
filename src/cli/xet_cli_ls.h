
/*
 * Rows of files, as "xet ls" and "xet repo files" print them.
 */

#ifndef _XET_CLI_LS_H_INCLUDED_
#define _XET_CLI_LS_H_INCLUDED_


#include "xet_cli_pg.h"


/*
 * The files of a repo, or all of the store when repo is NULL; in the order in
 * which they came.  XET_CLI_OK, XET_CLI_FAULT for a repo that is not there,
 * told of.
 */
int xet_cli_ls_files(xet_cli_pg_t *pg, const char *repo, int json);


#endif /* _XET_CLI_LS_H_INCLUDED_ */
