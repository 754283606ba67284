
/*
 * Exit codes, and the faults that lead to them.
 *
 * Whoever notices a fault says so, in one line on the standard error, and
 * returns the code; nobody above says it again.
 */

#ifndef _XET_CLI_EXIT_H_INCLUDED_
#define _XET_CLI_EXIT_H_INCLUDED_


#include <stdio.h>


#define XET_CLI_OK           0
#define XET_CLI_FAULT        1         /* data are wrong, or not there */
#define XET_CLI_USAGE        2
#define XET_CLI_ERROR        3         /* a local file, memory, database */
#define XET_CLI_NETWORK      4         /* the network, or the server */
#define XET_CLI_INTERRUPTED  130       /* a signal, as shells have it */
#define XET_CLI_CLOSED       141       /* nobody reads on; ends by SIGPIPE */


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


#endif /* _XET_CLI_EXIT_H_INCLUDED_ */
