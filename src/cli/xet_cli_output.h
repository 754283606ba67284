
/*
 * Files that a verb writes, also in folders where others write, as /tmp.
 *
 * No symbolic link is followed at a name that the program makes up, and no
 * file is opened there that is not of this user, has a second name, or is
 * something else than a file: what others put there is refused.
 */

#ifndef _XET_CLI_OUTPUT_H_INCLUDED_
#define _XET_CLI_OUTPUT_H_INCLUDED_


#include <sys/types.h>

#include "xet_cli.h"


/*
 * A descriptor, or -1, which has been told of.  Names are relative to a
 * folder, which may be AT_FDCWD.
 */

/* The target and a suffix, or less of it; malloc()ed, NULL was told of. */
char *xet_cli_output_beside(int folder, const char *target,
    const char *suffix);

/* A new file beside the target; *name is malloc()ed. */
int xet_cli_output_create(int folder, const char *target, char **name);

/*
 * Its end: all of it is durable, and gets its name; where rc is a failure, or
 * this fails, it goes.  Closes the descriptor; what rc is now.
 */
int xet_cli_output_finish(int fd, const char *name, const char *target,
    int rc);

/* The folder that a target is in.  XET_CLI_OK or XET_CLI_ERROR, told of. */
int xet_cli_output_sync(int folder, const char *target);

/* A file of this name, that of an earlier run, or a new one: *made. */
int xet_cli_output_open(int folder, const char *name, mode_t mode,
    int *made);

/* A pipe or a device that is there. */
int xet_cli_output_stream(const char *name);


/* XET_CLI_OK or an exit code, told of; nobody is told of a closed pipe. */
int xet_cli_output_write(int fd, const char *name, const uint8_t *data,
    size_t len);


#endif /* _XET_CLI_OUTPUT_H_INCLUDED_ */
