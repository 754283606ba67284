
/*
 * The command line: what its verbs share.
 *
 * A verb is a file: it gets its options and operands, prints its results to
 * the standard output and returns an exit code.  Whoever notices a fault says
 * so, in one line on the standard error, and returns the code; nobody above
 * says it again.
 */

#ifndef _XET_CLI_H_INCLUDED_
#define _XET_CLI_H_INCLUDED_


#include <signal.h>
#include <stdio.h>

#include "xet.h"
#include "xet_cli_args.h"


#define XET_CLI_VERSION  "0.9.0"


/* Exit codes. */

#define XET_CLI_OK           0
#define XET_CLI_FAULT        1         /* data are wrong, or not there */
#define XET_CLI_USAGE        2
#define XET_CLI_ERROR        3         /* a local file, memory, database */
#define XET_CLI_NETWORK      4         /* the network, or the server */
#define XET_CLI_INTERRUPTED  130       /* a signal, as shells have it */
#define XET_CLI_CLOSED       141       /* nobody reads on; ends by SIGPIPE */


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


/* "xet: <name>: <text>" on standard error; gives back the code. */
int xet_cli_fail(int code, const char *name, const char *text);

/* The same with a format. */
int xet_cli_failf(int code, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The worse of two exit codes. */
int xet_cli_worse(int a, int b);

/*
 * Writes what the standard output has so far.  XET_CLI_OK, XET_CLI_CLOSED, or
 * XET_CLI_ERROR, which has been told of.
 */
int xet_cli_flush(void);

/* "out of memory", and the code of it. */
int xet_cli_no_memory(void);

/* Hash string of 64 digits and a zero byte, in a buffer of the caller. */
const char *xet_cli_hash_string(const xet_hash_t *hash,
    char text[XET_HASH_STR_LEN + 1]);


#endif /* _XET_CLI_H_INCLUDED_ */
