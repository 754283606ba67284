
/*
 * The progress bar: one line on the standard error, where that is a terminal
 * and --quiet was not given.  One at a time.
 */

#ifndef _XET_CLI_PROGRESS_H_INCLUDED_
#define _XET_CLI_PROGRESS_H_INCLUDED_


#include <stdint.h>


/* total is in bytes, 0: not known.  The name is not copied. */
void xet_cli_progress_begin(int quiet, const char *name, uint64_t total);

/* Sets the bytes done so far; draws at most ten times a second. */
void xet_cli_progress_set(uint64_t done);

/* Sets the total when it becomes known after the beginning. */
void xet_cli_progress_total(uint64_t total);

/* Wipes the line for others; xet_cli_progress_set() draws it again. */
void xet_cli_progress_clear(void);

void xet_cli_progress_end(void);

/* Milliseconds of a clock that never goes back. */
uint64_t xet_cli_now(void);


#endif /* _XET_CLI_PROGRESS_H_INCLUDED_ */
