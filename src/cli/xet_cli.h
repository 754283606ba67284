
/*
 * The command line: what its verbs share.
 */

#ifndef _XET_CLI_H_INCLUDED_
#define _XET_CLI_H_INCLUDED_


#include <stdio.h>

#include "xet.h"


/* Exit codes. */

#define XET_CLI_OK      0
#define XET_CLI_FAULT   1              /* what was checked is not right */
#define XET_CLI_USAGE   2
#define XET_CLI_ERROR   3              /* a file, memory */


typedef struct {
    const char  *name;
    const char  *usage;
    int        (*run)(int argc, char **argv);
} xet_cli_verb_t;


int xet_cli_hash(int argc, char **argv);
int xet_cli_info(int argc, char **argv);


/* "xet: <name>: <text>" on standard error; gives back the code. */
int xet_cli_fail(int code, const char *name, const char *text);

/* Hash string of 64 digits and a zero byte, in a buffer of the caller. */
const char *xet_cli_hash_string(const xet_hash_t *hash,
    char text[XET_HASH_STR_LEN + 1]);


#endif /* _XET_CLI_H_INCLUDED_ */
