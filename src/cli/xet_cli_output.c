
/*
 * Files that a verb writes.
 */


#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_output.h"


#define XET_CLI_OUTPUT_TRIES  100


static int xet_cli_output_foreign(const char *name, const struct stat *st);


int
xet_cli_output_create(int folder, const char *target, char **name)
{
    int       fd, i;
    uint32_t  number;

    *name = NULL;
    fd = -1;
    errno = EEXIST;

    for (i = 0; i < XET_CLI_OUTPUT_TRIES && fd < 0 && errno == EEXIST; i++) {
        free(*name);

        if (getrandom(&number, sizeof(number), 0) != sizeof(number)
            || asprintf(name, "%s.xet-%08x", target, number) < 0)
        {
            *name = NULL;
            break;
        }

        fd = openat(folder, *name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
                                   | O_CLOEXEC, 0666);
    }

    if (fd < 0) {
        (void) xet_cli_fail(XET_CLI_ERROR, *name ? *name : target,
                            strerror(errno));
        free(*name);
        *name = NULL;
    }

    return fd;
}


/* O_NONBLOCK: a pipe must not block open(); it is refused after that. */

int
xet_cli_output_open(int folder, const char *name, mode_t mode, int *made)
{
    int          fd;
    struct stat  st;

    fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
                              | O_CLOEXEC, mode);
    *made = (fd >= 0);

    if (fd < 0 && errno == EEXIST) {
        fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK
                                  | O_CLOEXEC);
    }

    if (fd < 0 || fstat(fd, &st) != 0) {
        (void) xet_cli_fail(XET_CLI_ERROR, name,
                            (errno == ELOOP)
                            ? "is a symbolic link, which is not followed"
                            : strerror(errno));
        if (fd >= 0) {
            close(fd);
        }

        return -1;
    }

    if (S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink <= 1) {
        return fd;
    }

    (void) xet_cli_fail(XET_CLI_ERROR, name,
                        "is there, and is no file of this user with one name");
    close(fd);

    return -1;
}


/* The pipe or device that was found may be another file by now. */

int
xet_cli_output_stream(const char *name)
{
    int          fd;
    struct stat  st;

    fd = open(name, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0) {
        (void) xet_cli_fail(XET_CLI_ERROR, name, strerror(errno));

    } else if (S_ISREG(st.st_mode)) {
        (void) xet_cli_fail(XET_CLI_ERROR, name, "is another file than "
                            "before");

    } else if (S_ISFIFO(st.st_mode) && xet_cli_output_foreign(name, &st)) {
        (void) xet_cli_fail(XET_CLI_ERROR, name, "is a pipe of somebody "
                            "else, in a folder for everybody");

    } else {
        return fd;
    }

    if (fd >= 0) {
        close(fd);
    }

    return -1;
}


/*
 * The rule of the sysctl fs.protected_fifos: in a sticky folder a pipe must
 * belong to this user or to the owner of the folder.
 */

static int
xet_cli_output_foreign(const char *name, const struct stat *st)
{
    int          rc;
    char        *copy;
    struct stat  folder;

    if (st->st_uid == geteuid()) {
        return 0;
    }

    copy = strdup(name);

    rc = copy == NULL || stat(dirname(copy), &folder) != 0
         || ((folder.st_mode & S_ISVTX) && st->st_uid != folder.st_uid);

    free(copy);

    return rc;
}


int
xet_cli_output_write(int fd, const char *name, const uint8_t *data,
    size_t len)
{
    ssize_t  n;

    while (len) {
        n = write(fd, data, len);

        if (n < 0 && errno == EPIPE) {
            return XET_CLI_CLOSED;
        }

        if (n < 0 && errno != EINTR) {
            return xet_cli_fail(XET_CLI_ERROR, name, strerror(errno));
        }

        if (n > 0) {
            data += n;
            len -= (size_t) n;
        }

        if (xet_cli_interrupted) {
            return XET_CLI_INTERRUPTED;
        }
    }

    return XET_CLI_OK;
}
