
/*
 * Output files of verbs: temporary files that are renamed to their targets
 * when they are complete, files of interrupted downloads, pipes and devices.
 */


#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli.h"


#define XET_CLI_OUTPUT_TRIES  100
#define XET_CLI_OUTPUT_HASH   16       /* hex digits in a name */


static int xet_cli_output_create(const char *target, char **name);
static int xet_cli_output_stream(const char *name);
static size_t xet_cli_output_longest(int folder, const char *target,
    size_t len);
static int xet_cli_output_foreign(const char *name, const struct stat *st);


int
xet_cli_output_special(const char *name)
{
    struct stat  st;

    return strcmp(name, "-") == 0
           || (stat(name, &st) == 0 && !S_ISREG(st.st_mode));
}


int
xet_cli_output_begin(const char *target, int special, char **part)
{
    *part = NULL;

    if (!special) {
        return xet_cli_output_create(target, part);
    }

    return strcmp(target, "-") ? xet_cli_output_stream(target)
                               : STDOUT_FILENO;
}


/*
 * Creates a file with a random name in the folder of the target.  Returns the
 * descriptor, and sets *name, malloc()ed; or returns -1 after printing the
 * error.
 */

static int
xet_cli_output_create(const char *target, char **name)
{
    int       fd, i;
    char      suffix[16];
    uint32_t  number;

    fd = -1;
    errno = EEXIST;

    for (i = 0; i < XET_CLI_OUTPUT_TRIES && fd < 0 && errno == EEXIST; i++) {
        free(*name);
        *name = NULL;

        if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
            break;
        }

        snprintf(suffix, sizeof(suffix), ".xet-%08x", number);

        *name = xet_cli_output_beside(AT_FDCWD, target, suffix);

        if (*name == NULL) {
            return -1;
        }

        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
                         | O_CLOEXEC, 0666);
    }

    if (fd < 0) {
        (void) xet_cli_fail_errno(*name ? *name : target);
        free(*name);
        *name = NULL;
    }

    return fd;
}


int
xet_cli_output_finish(int fd, char *part, const char *target, int rc)
{
    if (fd == STDOUT_FILENO) {
        return rc;
    }

    if (rc == XET_CLI_OK && part && fdatasync(fd) != 0) {
        rc = xet_cli_fail_errno(part);
    }

    if (close(fd) != 0 && rc == XET_CLI_OK) {
        rc = xet_cli_fail_errno(part ? part : target);
    }

    if (part == NULL) {
        return rc;
    }

    if (rc == XET_CLI_OK && rename(part, target) != 0) {
        rc = xet_cli_fail_errno(target);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_output_sync(AT_FDCWD, target);

    } else {
        unlink(part);
    }

    free(part);

    return rc;
}


int
xet_cli_output_sync(int folder, const char *target)
{
    int    fd, rc;
    char  *copy;

    copy = strdup(target);

    if (copy == NULL) {
        return xet_cli_no_memory();
    }

    fd = openat(folder, dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    /* EINVAL: this file system does not support fsync() of folders */

    rc = (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
         ? xet_cli_fail_errno(target)
         : XET_CLI_OK;

    if (fd >= 0) {
        close(fd);
    }

    free(copy);

    return rc;
}


/*
 * A name that would be too long is cut between two characters, and digits of a
 * hash of the whole name are added.  So two long names with the same beginning
 * stay different.
 */

char *
xet_cli_output_beside(int folder, const char *target, const char *suffix)
{
    int          n;
    char        *name, hex[2 * XET_HASH_LEN + 1];
    size_t       max, len, cut;
    xet_hash_t   hash;
    const char  *base;

    base = strrchr(target, '/');
    base = base ? base + 1 : target;

    len = strlen(base);
    max = xet_cli_output_longest(folder, target, (size_t) (base - target));

    if (len > max) {
        (void) xet_cli_fail(XET_CLI_ERROR, target, strerror(ENAMETOOLONG));
        return NULL;
    }

    if (len + strlen(suffix) <= max) {
        n = asprintf(&name, "%s%s", target, suffix);

    } else {
        xet_hash_chunk(&xet_suite_default, (const uint8_t *) base, len,
                       &hash);
        *xet_hash_print_plain((uint8_t *) hex, hash.bytes) = '\0';

        cut = strlen(suffix) + 1 + XET_CLI_OUTPUT_HASH;
        cut = (cut < max) ? max - cut : 0;

        while (cut && ((uint8_t) base[cut] & 0xc0) == 0x80) {
            cut--;
        }

        n = asprintf(&name, "%.*s~%.*s%s", (int) (base - target + cut),
                     target, XET_CLI_OUTPUT_HASH, hex, suffix);
    }

    if (n < 0) {
        (void) xet_cli_no_memory();
        return NULL;
    }

    return name;
}


/*
 * Returns the maximum length of a file name in the folder of the target, in
 * bytes: the limit of the file system, but at most NAME_MAX.
 */

static size_t
xet_cli_output_longest(int folder, const char *target, size_t len)
{
    long   max;
    char  *path;

    if (folder == AT_FDCWD) {
        path = len ? strndup(target, len) : strdup(".");
        max = path ? pathconf(path, _PC_NAME_MAX) : -1;
        free(path);

    } else {
        max = fpathconf(folder, _PC_NAME_MAX);
    }

    return (max > 0 && max < NAME_MAX) ? (size_t) max : NAME_MAX;
}


/*
 * With O_NONBLOCK, open() of a FIFO does not block; the check of the file type
 * then rejects the FIFO.
 */

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
                            ? "is a symbolic link; not followed"
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
                        "exists and is not your regular file, or has several "
                        "links");
    close(fd);

    return -1;
}


/*
 * Opens a pipe or a device for writing.  Returns the descriptor, or -1 after
 * printing the error.  The file type is checked again, because the file may
 * have been replaced after xet_cli_output_special().
 */

static int
xet_cli_output_stream(const char *name)
{
    int          fd;
    struct stat  st;

    fd = open(name, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0) {
        (void) xet_cli_fail_errno(name);

    } else if (S_ISREG(st.st_mode)) {
        (void) xet_cli_fail(XET_CLI_ERROR, name,
                            "was replaced by another file");

    } else if (S_ISFIFO(st.st_mode) && xet_cli_output_foreign(name, &st)) {
        (void) xet_cli_fail(XET_CLI_ERROR, name,
                            "is another user's pipe in a shared folder");

    } else {
        return fd;
    }

    if (fd >= 0) {
        close(fd);
    }

    return -1;
}


/*
 * Returns 1 if a FIFO must not be written to, else 0.  As with the sysctl
 * fs.protected_fifos, a FIFO in a sticky folder must belong to this user or to
 * the owner of the folder.
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
            return xet_cli_fail_errno(name);
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


int
xet_cli_output_scratch(const char *folder)
{
    int    fd;
    char  *name;

    if (folder == NULL) {
        folder = getenv("TMPDIR");
    }

    if (asprintf(&name, "%s/xet.XXXXXX",
                 (folder && *folder) ? folder : "/var/tmp")
        < 0)
    {
        (void) xet_cli_no_memory();
        return -1;
    }

    fd = mkostemp(name, O_CLOEXEC);

    if (fd < 0) {
        (void) xet_cli_fail_errno(name);

    } else {
        (void) unlink(name);
    }

    free(name);

    return fd;
}
