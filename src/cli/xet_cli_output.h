
/*
 * Files that a verb writes, also in folders where others write, as /tmp.
 *
 * At a name that the program makes up no symbolic link is followed, and only a
 * regular file is opened that this user owns and that has no second name:
 * what others have put there is refused.
 */

#ifndef _XET_CLI_OUTPUT_H_INCLUDED_
#define _XET_CLI_OUTPUT_H_INCLUDED_


#include <sys/types.h>

#include "xet_cli.h"


/*
 * These return a descriptor, or -1 on an error, reported.  Names are relative
 * to the descriptor of a folder, which may be AT_FDCWD.
 */

/*
 * The target's name with a suffix; a name that would be too long is cut.
 * malloc()ed, NULL on an error, reported.
 */
char *xet_cli_output_beside(int folder, const char *target,
    const char *suffix);

/* Makes a file of a random name beside the target; *name is malloc()ed. */
int xet_cli_output_create(int folder, const char *target, char **name);

/*
 * Ends that file: syncs it and renames it to the target, or removes it if rc
 * is a failure or this fails.  Closes the descriptor.  The exit code.
 */
int xet_cli_output_finish(int fd, const char *name, const char *target,
    int rc);

/* Syncs the folder of a target.  XET_CLI_OK or XET_CLI_ERROR, reported. */
int xet_cli_output_sync(int folder, const char *target);

/*
 * Opens the file that an earlier run has left under a name, or makes a new one
 * with this mode; *made: it is new.
 */
int xet_cli_output_open(int folder, const char *name, mode_t mode,
    int *made);

/* Opens a pipe or a device, relative to the current folder, for writing. */
int xet_cli_output_stream(const char *name);


/*
 * Writes all of the data; name is for messages.  XET_CLI_OK, or XET_CLI_ERROR,
 * reported; XET_CLI_CLOSED for a closed pipe and XET_CLI_INTERRUPTED after a
 * signal are not reported.
 */
int xet_cli_output_write(int fd, const char *name, const uint8_t *data,
    size_t len);


#endif /* _XET_CLI_OUTPUT_H_INCLUDED_ */
