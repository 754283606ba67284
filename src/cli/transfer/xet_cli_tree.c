
/* Trees: folders with their contents. */


#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_transfer.h"
#include "xet_hub.h"


#define XET_CLI_TREE_DEPTH  128
#define XET_CLI_TREE_OPEN   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)


static int xet_cli_tree_folder(xet_cli_tree_t *t, int fd, const char *path,
    unsigned depth);
static int xet_cli_tree_filter(const struct dirent *entry);
static int xet_cli_tree_order(const struct dirent **one,
    const struct dirent **two);
static int xet_cli_tree_name(xet_cli_tree_t *t, int fd, const char *path,
    const char *name, unsigned depth);
static int xet_cli_tree_add(xet_cli_tree_t *t, const char *path, int folder,
    int link, uint64_t size);
static int xet_cli_tree_left(const char *name, size_t len);


int
xet_cli_tree_read(xet_cli_tree_t *t, const char *name)
{
    int  fd;

    t->root = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    fd = (t->root < 0) ? -1 : openat(t->root, ".", XET_CLI_TREE_OPEN);

    if (fd < 0) {
        return xet_cli_fail_errno(name);
    }

    return xet_cli_tree_folder(t, fd, "", 0);
}


void
xet_cli_tree_free(xet_cli_tree_t *t)
{
    size_t  i;

    for (i = 0; i < t->count; i++) {
        free(t->entries[i].path);
    }

    free(t->entries);

    if (t->root >= 0) {
        close(t->root);
    }
}


/* Reads the folder fd and its subfolders; closes fd in any case. */

static int
xet_cli_tree_folder(xet_cli_tree_t *t, int fd, const char *path,
    unsigned depth)
{
    int              i, n, rc, one;
    struct dirent  **names;

    if (depth == XET_CLI_TREE_DEPTH) {
        close(fd);
        return xet_cli_fail(XET_CLI_ERROR, path, "nested too deep");
    }

    n = scandirat(fd, ".", &names, xet_cli_tree_filter, xet_cli_tree_order);

    if (n < 0) {
        rc = xet_cli_fail_errno(*path ? path : ".");
        close(fd);
        return rc;
    }

    rc = (n == 0 && *path) ? xet_cli_tree_add(t, path, 1, 0, 0)
                              : XET_CLI_OK;

    for (i = 0; i < n; i++) {

        if (rc < XET_CLI_INTERRUPTED) {
            one = xet_cli_tree_name(t, fd, path, names[i]->d_name, depth);
            rc = xet_cli_worse(rc, one);
        }

        free(names[i]);
    }

    free(names);
    close(fd);

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : rc;
}


static int
xet_cli_tree_filter(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0
           && strcmp(entry->d_name, "..") != 0;
}


/*
 * Sorts by bytes, not by locale, so that a resumed put reads files in the same
 * order.
 */

static int
xet_cli_tree_order(const struct dirent **one, const struct dirent **two)
{
    return strcmp((*one)->d_name, (*two)->d_name);
}


static int
xet_cli_tree_name(xet_cli_tree_t *t, int fd, const char *path,
    const char *name, unsigned depth)
{
    int          rc, folder;
    char        *full;
    const char  *fault;
    struct stat  st;

    if (asprintf(&full, "%s%s%s", path, *path ? "/" : "", name) < 0) {
        return xet_cli_no_memory();
    }

    fault = NULL;
    rc = XET_CLI_OK;

    if (t->skip && t->skip(full)) {
        free(full);
        return XET_CLI_OK;
    }

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        rc = xet_cli_fail_errno(full);

    } else if (!xet_cli_text_valid(name, strlen(name))) {
        rc = xet_cli_fail(XET_CLI_ERROR, full,
                          "skipped: the name is not UTF-8");

    } else if (xet_cli_tree_left(name, strlen(name))) {
        fault = "left over from a download";

    } else if (S_ISDIR(st.st_mode)) {
        folder = openat(fd, name, XET_CLI_TREE_OPEN);

        rc = (folder < 0)
             ? xet_cli_fail_errno(full)
             : xet_cli_tree_folder(t, folder, full, depth + 1);

    } else if (S_ISREG(st.st_mode)) {
        rc = xet_cli_tree_add(t, full, 0, 0, (uint64_t) st.st_size);

    } else if (S_ISLNK(st.st_mode) && t->links) {
        if (fstatat(fd, name, &st, 0) != 0) {
            st.st_size = 0;
        }

        rc = xet_cli_tree_add(t, full, 0, 1, (uint64_t) st.st_size);

    } else {
        fault = S_ISLNK(st.st_mode) ? "symbolic link" : "not a regular file";
    }

    if (fault) {
        (void) xet_cli_failf(XET_CLI_OK, full, "skipped: %s",
                             fault);
    }

    free(full);

    return rc;
}


static int
xet_cli_tree_add(xet_cli_tree_t *t, const char *path, int folder, int link,
    uint64_t size)
{
    xet_cli_tree_entry_t  *entries;

    entries = xet_cli_grow(t->entries, t->count, &t->room,
                           sizeof(xet_cli_tree_entry_t));

    if (entries == NULL) {
        return xet_cli_no_memory();
    }

    t->entries = entries;

    t->entries[t->count].path = strdup(path);
    t->entries[t->count].size = size;
    t->entries[t->count].folder = (folder != 0);
    t->entries[t->count].link = (link != 0);

    if (t->entries[t->count].path == NULL) {
        return xet_cli_no_memory();
    }

    t->count++;
    t->files += !folder;
    t->bytes += size;

    return XET_CLI_OK;
}


/*
 * Checks the type again: the file may have been replaced since
 * xet_cli_tree_read().
 */

FILE *
xet_cli_tree_open(const xet_cli_tree_t *t, const char *path, int *executable)
{
    int          folder, fd;
    FILE        *file;
    const char  *base;

    fd = -1;
    folder = xet_cli_tree_parent(t->root, path, 0, &base);

    if (folder >= 0) {
        fd = openat(folder, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK
                                  | O_CLOEXEC);
    }

    file = xet_cli_tree_stream(fd, path, "is no longer a regular file",
                               executable);

    if (folder >= 0) {
        close(folder);
    }

    return file;
}


FILE *
xet_cli_tree_stream(int fd, const char *path, const char *other,
    int *executable)
{
    FILE        *file;
    struct stat  st;

    if (fd < 0 || fstat(fd, &st) != 0) {
        (void) xet_cli_fail_errno(path);

    } else if (!S_ISREG(st.st_mode)) {
        (void) xet_cli_fail(XET_CLI_ERROR, path, other);

    } else {
        *executable = (st.st_mode & S_IXUSR) != 0;
        file = fdopen(fd, "rb");

        if (file) {
            return file;
        }

        (void) xet_cli_no_memory();
    }

    if (fd >= 0) {
        close(fd);
    }

    return NULL;
}


int
xet_cli_tree_parent(int root, const char *path, int make, const char **base)
{
    int          fd, next, err;
    char         name[NAME_MAX + 1];
    size_t       len;
    const char  *slash;

    fd = openat(root, ".", XET_CLI_TREE_OPEN);

    while (fd >= 0 && (slash = strchr(path, '/')) != NULL) {
        len = (size_t) (slash - path);

        if (len > NAME_MAX) {
            close(fd);
            errno = ENAMETOOLONG;
            return -1;
        }

        memcpy(name, path, len);
        name[len] = '\0';

        if (make) {
            (void) mkdirat(fd, name, 0777);
        }

        next = openat(fd, name, XET_CLI_TREE_OPEN);
        err = errno;

        close(fd);

        errno = err;
        fd = next;
        path = slash + 1;
    }

    *base = path;

    return fd;
}


int
xet_cli_tree_path_ok(const char *path)
{
    size_t    len;
    unsigned  depth;

    for (depth = 0; depth < XET_CLI_TREE_DEPTH; depth++) {
        len = strcspn(path, "/");

        if (len == 0 || len > NAME_MAX
            || (len == 1 && path[0] == '.')
            || (len == 2 && path[0] == '.' && path[1] == '.')
            || xet_cli_tree_left(path, len))
        {
            return 0;
        }

        if (path[len] == '\0') {
            return 1;
        }

        path += len + 1;
    }

    return 0;
}


int
xet_cli_tree_safe(const char *path, const char *what)
{
    xet_hub_risk_e  risk;
    xet_hub_text_t  part;

    risk = xet_hub_path_risk((const uint8_t *) path, strlen(path), &part);

    if (risk == XET_HUB_RISK_NONE) {
        return 1;
    }

    (void) xet_cli_failf(XET_CLI_FAULT, path, "%s: \"%.*s\" %s", what,
                         (int) part.len, (const char *) part.data,
                         xet_hub_risk_text(risk));

    return 0;
}


/* Returns whether a name is reserved for files of xet_cli_part.c. */

static int
xet_cli_tree_left(const char *name, size_t len)
{
    size_t    n;
    unsigned  i;

    static const char *const  ends[] = { ".xet-part", ".xet-state" };

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        n = strlen(ends[i]);

        if (len >= n && memcmp(name + len - n, ends[i], n) == 0) {
            return 1;
        }
    }

    return 0;
}
