
/*
 * The command line: its verbs, and what they share.
 *
 * A verb is a file: it gets its options and operands, prints its results to
 * the standard output and returns an exit code.
 */

#ifndef _XET_CLI_H_INCLUDED_
#define _XET_CLI_H_INCLUDED_


#include <signal.h>

#include "xet.h"
#include "xet_cli_args.h"
#include "xet_cli_exit.h"


#define XET_CLI_VERSION  "0.9.0"


int xet_cli_get(const xet_cli_args_t *args);
int xet_cli_get_tree(const xet_cli_args_t *args);
int xet_cli_hash(const xet_cli_args_t *args);
int xet_cli_info(const xet_cli_args_t *args);
int xet_cli_ls(const xet_cli_args_t *args);
int xet_cli_migrate(const xet_cli_args_t *args);
int xet_cli_put(const xet_cli_args_t *args);
int xet_cli_repo(const xet_cli_args_t *args);
int xet_cli_rm(const xet_cli_args_t *args);
int xet_cli_token(const xet_cli_args_t *args);
int xet_cli_url(const xet_cli_args_t *args);
int xet_cli_verify(const xet_cli_args_t *args);
int xet_cli_zt(const xet_cli_args_t *args);


/* Set by SIGINT, SIGTERM and SIGHUP; loops end when they see it. */
extern volatile sig_atomic_t  xet_cli_interrupted;


/*
 * Makes room for one more than n elements of size bytes each; *room is the
 * number of elements that the array has room for.  Returns the array, which
 * may have moved, or NULL without memory: the old array is still valid then.
 */
void *xet_cli_grow(void *array, size_t n, size_t *room, size_t size);

/* Writes the 64 digits of a hash and a zero byte to text; returns text. */
const char *xet_cli_hash_string(const xet_hash_t *hash,
    char text[XET_HASH_STR_LEN + 1]);


#endif /* _XET_CLI_H_INCLUDED_ */
