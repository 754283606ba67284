
/*
 * Exit codes, and the faults that lead to them.
 *
 * The function that notices a fault reports it, in one line on the standard
 * error, and returns the exit code; its callers do not report it again.
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
#define XET_CLI_CLOSED       141       /* its reader is gone: ends by SIGPIPE */


/* Prints "xet: <name>: <text>" on the standard error; returns code. */
int xet_cli_fail(int code, const char *name, const char *text);

/* The same as xet_cli_fail(), with a format for the text. */
int xet_cli_failf(int code, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The worse of two exit codes. */
int xet_cli_worse(int a, int b);

/*
 * Flushes the standard output.  XET_CLI_OK; XET_CLI_CLOSED if its reader is
 * gone; XET_CLI_ERROR, which is reported once.
 */
int xet_cli_flush(void);

/* Reports that there is not enough memory; returns XET_CLI_ERROR. */
int xet_cli_no_memory(void);


#endif /* _XET_CLI_EXIT_H_INCLUDED_ */
