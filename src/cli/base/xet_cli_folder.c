
/*
 * A place that is a folder.
 *
 * What is written has a name in tmp until all of it is on the disk.
 */


#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xet_cli_place.h"


#define XET_CLI_FOLDER_BATCH     64    /* files that are synced together */
#define XET_CLI_FOLDER_PARALLEL  2
#define XET_CLI_FOLDER_FOLDERS   256
#define XET_CLI_FOLDER_TRIES     1000


typedef struct {
    xet_cli_place_t  place;
    int              fd;
    unsigned         waits:1;          /* for who writes to a pipe */
    unsigned         owned:1;          /* uid and gid are set */
    uid_t            uid;              /* of new files, where this is root */
    gid_t            gid;
    unsigned         serial;           /* of names in tmp */
} xet_cli_folder_t;


/* Files of tmp that were written last before a time are removed. */

typedef struct {
    xet_cli_place_t  *place;
    int64_t           before;
} xet_cli_folder_old_t;


static xet_cli_place_t *xet_cli_folder_open(const char *text, int flags,
    int *rc);
static int xet_cli_folder_begin(xet_cli_folder_t *f, const char *text,
    int flags);
static void xet_cli_folder_close(xet_cli_place_t *place);
static int xet_cli_folder_fd(xet_cli_place_t *place);
static int xet_cli_folder_failed(xet_cli_place_t *place, const char *name);
static DIR *xet_cli_folder_dir(xet_cli_place_t *place, const char *folder);
static int xet_cli_folder_list(xet_cli_place_t *place, const char *folder,
    xet_cli_place_name_pt handler, void *ctx);
static int xet_cli_folder_empty(xet_cli_place_t *place,
    const char *const *but, int *empty);
static int xet_cli_folder_stat(xet_cli_place_t *place, const char *name,
    xet_cli_entry_t *entry);
static int xet_cli_folder_link(xet_cli_place_t *place, const char *from,
    const char *to);
static int xet_cli_folder_back(xet_cli_place_t *place, const char *aside,
    const char *name);
static int xet_cli_folder_remove(xet_cli_place_t *place, const char *name);
static int xet_cli_folder_remove_all(xet_cli_place_t *place,
    char (*names)[XET_CLI_PLACE_NAME], size_t n);
static int xet_cli_folder_sync(xet_cli_place_t *place, const char *folder);
static int xet_cli_folder_above(xet_cli_place_t *place, const char *name);
static int xet_cli_folder_sweep(xet_cli_place_t *place, uint64_t age);
static int xet_cli_folder_old(void *ctx, const char *name);
static int xet_cli_folder_make(xet_cli_place_t *place, const char *folder);
static int xet_cli_folder_mkdir(xet_cli_place_t *place, const char *folder,
    mode_t mode);
static int xet_cli_folder_folders(xet_cli_place_t *place, int make);
static int xet_cli_folder_settled(xet_cli_place_t *place);
static int xet_cli_folder_lock(xet_cli_place_t *place, const char *name,
    int exclusive, int *had);
static int xet_cli_folder_read_open(xet_cli_reader_t *reader,
    const char *name);
static int xet_cli_folder_read(xet_cli_reader_t *reader, uint8_t *buf,
    size_t len, uint64_t offset, size_t *n);
static void xet_cli_folder_read_close(xet_cli_reader_t *reader);
static int xet_cli_folder_write_open(xet_cli_writer_t *writer);
static char *xet_cli_folder_temp(xet_cli_folder_t *f, const char *target);
static void xet_cli_folder_write_grown(xet_cli_writer_t *writer);
static int xet_cli_folder_write_keep(xet_cli_writer_t *writer, int replace);
static void xet_cli_folder_write_close(xet_cli_writer_t *writer);


const xet_cli_place_ops_t  xet_cli_folder_ops = {
    xet_cli_folder_open,
    xet_cli_folder_close,
    xet_cli_folder_list,
    xet_cli_folder_stat,
    xet_cli_folder_link,
    xet_cli_folder_back,
    xet_cli_folder_remove,
    xet_cli_folder_remove_all,
    xet_cli_folder_sync,
    xet_cli_folder_sweep,
    xet_cli_folder_make,
    xet_cli_folder_folders,
    xet_cli_folder_settled,
    xet_cli_folder_empty,
    xet_cli_folder_lock,
    xet_cli_folder_read_open,
    xet_cli_folder_read,
    xet_cli_folder_read_close,
    xet_cli_folder_write_open,
    xet_cli_folder_write_grown,
    xet_cli_folder_write_keep,
    xet_cli_folder_write_close
};


static xet_cli_place_t *
xet_cli_folder_open(const char *text, int flags, int *rc)
{
    xet_cli_folder_t  *f;

    f = calloc(1, sizeof(xet_cli_folder_t));

    if (f == NULL) {
        *rc = xet_cli_no_memory();
        return NULL;
    }

    f->place.ops = &xet_cli_folder_ops;
    f->place.parallel = XET_CLI_FOLDER_PARALLEL;
    f->place.batch = XET_CLI_FOLDER_BATCH;
    f->fd = -1;

    *rc = xet_cli_folder_begin(f, text, flags);

    if (*rc != XET_CLI_OK) {
        xet_cli_folder_close(&f->place);
        return NULL;
    }

    return &f->place;
}


static int
xet_cli_folder_begin(xet_cli_folder_t *f, const char *text, int flags)
{
    int          rc;
    struct stat  st;

    if ((flags & XET_CLI_PLACE_MAKE) && mkdir(text, 0750) != 0
        && errno != EEXIST)
    {
        return xet_cli_fail_errno(text);
    }

    f->fd = open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (f->fd < 0 || fstat(f->fd, &st) != 0) {
        return xet_cli_fail_errno(text);
    }

    f->waits = ((flags & XET_CLI_PLACE_WAITS) != 0);
    f->owned = ((flags & XET_CLI_PLACE_OWNED) && geteuid() == 0);
    f->uid = st.st_uid;
    f->gid = st.st_gid;

    f->place.name = strdup(text);
    rc = asprintf(&f->place.id, "%" PRIu64 ":%" PRIu64, (uint64_t) st.st_dev,
                  (uint64_t) st.st_ino);

    if (f->place.name && rc >= 0) {
        return XET_CLI_OK;
    }

    free(f->place.name);
    free(rc >= 0 ? f->place.id : NULL);

    return xet_cli_no_memory();
}


static void
xet_cli_folder_close(xet_cli_place_t *place)
{
    xet_cli_folder_t *f = (xet_cli_folder_t *) place;

    if (f->fd >= 0) {
        close(f->fd);
    }

    free(f);
}


static int
xet_cli_folder_fd(xet_cli_place_t *place)
{
    return ((xet_cli_folder_t *) place)->fd;
}


/* Reports errno of what is below the folder. */

static int
xet_cli_folder_failed(xet_cli_place_t *place, const char *name)
{
    int   rc, err;
    char  path[PATH_MAX];

    err = errno;
    snprintf(path, sizeof(path), "%s/%s", place->name, name);
    errno = err;

    rc = xet_cli_fail_errno(path);
    errno = err;

    return rc;
}


static DIR *
xet_cli_folder_dir(xet_cli_place_t *place, const char *folder)
{
    int   fd, err;
    DIR  *dir;

    fd = openat(xet_cli_folder_fd(place), folder,
                O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = (fd < 0) ? NULL : fdopendir(fd);

    if (dir == NULL && fd >= 0) {
        err = errno;
        close(fd);
        errno = err;
    }

    return dir;
}


static int
xet_cli_folder_list(xet_cli_place_t *place, const char *folder,
    xet_cli_place_name_pt handler, void *ctx)
{
    int             rc;
    DIR            *dir;
    struct dirent  *entry;

    dir = xet_cli_folder_dir(place, folder);

    if (dir == NULL) {
        return (errno == ENOENT) ? XET_CLI_GONE
                                 : xet_cli_folder_failed(place, folder);
    }

    rc = XET_CLI_OK;

    while (rc == XET_CLI_OK) {
        errno = 0;
        entry = readdir(dir);

        if (entry == NULL) {
            rc = errno ? xet_cli_folder_failed(place, folder) : rc;
            break;
        }

        if (entry->d_name[0] != '.') {
            rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED
                                     : handler(ctx, entry->d_name);
        }
    }

    closedir(dir);

    return rc;
}


static int
xet_cli_folder_empty(xet_cli_place_t *place, const char *const *but,
    int *empty)
{
    int             i;
    DIR            *dir;
    struct dirent  *entry;

    dir = xet_cli_folder_dir(place, ".");

    if (dir == NULL) {
        return xet_cli_folder_failed(place, ".");
    }

    *empty = 1;

    while (*empty && (entry = readdir(dir)) != NULL) {

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
            || strcmp(entry->d_name, "lost+found") == 0)
        {
            continue;
        }

        *empty = 0;

        for (i = 0; but[i] && !*empty; i++) {
            *empty = strcmp(entry->d_name, but[i]) == 0;
        }
    }

    closedir(dir);

    return XET_CLI_OK;
}


static int
xet_cli_folder_stat(xet_cli_place_t *place, const char *name,
    xet_cli_entry_t *entry)
{
    struct stat  st;

    if (fstatat(xet_cli_folder_fd(place), name, &st, AT_SYMLINK_NOFOLLOW) != 0
        || !S_ISREG(st.st_mode))
    {
        return XET_CLI_GONE;
    }

    entry->size = (uint64_t) st.st_size;
    entry->modified = st.st_mtime;

    return XET_CLI_OK;
}


static int
xet_cli_folder_link(xet_cli_place_t *place, const char *from, const char *to)
{
    int  fd;

    fd = xet_cli_folder_fd(place);

    if (linkat(fd, from, fd, to, 0) != 0) {
        return (errno == ENOENT) ? XET_CLI_GONE
                                 : xet_cli_folder_failed(place, from);
    }

    return xet_cli_folder_above(place, to);
}


/* The name is durable before the other one goes. */

static int
xet_cli_folder_back(xet_cli_place_t *place, const char *aside,
    const char *name)
{
    int  rc, fd;

    fd = xet_cli_folder_fd(place);

    if (linkat(fd, aside, fd, name, 0) != 0 && errno != EEXIST) {
        return (errno == ENOENT) ? XET_CLI_GONE
                                 : xet_cli_folder_failed(place, aside);
    }

    rc = xet_cli_folder_above(place, name);

    return (rc == XET_CLI_OK) ? xet_cli_folder_remove(place, aside) : rc;
}


static int
xet_cli_folder_remove(xet_cli_place_t *place, const char *name)
{
    return (unlinkat(xet_cli_folder_fd(place), name, 0) == 0
            || errno == ENOENT)
           ? XET_CLI_OK : xet_cli_folder_failed(place, name);
}


static int
xet_cli_folder_remove_all(xet_cli_place_t *place,
    char (*names)[XET_CLI_PLACE_NAME], size_t n)
{
    int     rc;
    size_t  i;

    rc = XET_CLI_OK;

    for (i = 0; i < n && rc == XET_CLI_OK; i++) {
        rc = xet_cli_folder_remove(place, names[i]);
    }

    return rc;
}


/* Not every file system syncs folders. */

static int
xet_cli_folder_sync(xet_cli_place_t *place, const char *folder)
{
    int  fd, rc;

    fd = openat(xet_cli_folder_fd(place), folder,
                O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        return XET_CLI_OK;
    }

    rc = (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
         ? xet_cli_folder_failed(place, folder) : XET_CLI_OK;

    if (fd >= 0) {
        close(fd);
    }

    return rc;
}


/* The same of the folder that a name is in. */

static int
xet_cli_folder_above(xet_cli_place_t *place, const char *name)
{
    char  folder[XET_CLI_PLACE_NAME], *slash;

    snprintf(folder, sizeof(folder), "%s", name);

    slash = strrchr(folder, '/');

    if (slash) {
        *slash = '\0';
    }

    return xet_cli_folder_sync(place, slash ? folder : ".");
}


/* What is in tmp by a name of ours. */

static int
xet_cli_folder_sweep(xet_cli_place_t *place, uint64_t age)
{
    int                    rc;
    xet_cli_folder_old_t   old;

    old.place = place;
    old.before = (int64_t) time(NULL) - (int64_t) age;

    rc = xet_cli_folder_list(place, "tmp", xet_cli_folder_old, &old);

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


static int
xet_cli_folder_old(void *ctx, const char *name)
{
    char                   path[XET_CLI_PLACE_NAME];
    xet_cli_entry_t        entry;
    xet_cli_folder_old_t  *old;

    old = ctx;

    if ((strncmp(name, "copy.", 5) != 0 && strncmp(name, "file.", 5) != 0)
        || snprintf(path, sizeof(path), "tmp/%s", name) >= (int) sizeof(path)
        || xet_cli_folder_stat(old->place, path, &entry) != XET_CLI_OK
        || entry.modified > old->before)
    {
        return XET_CLI_OK;
    }

    return xet_cli_folder_remove(old->place, path);
}


static int
xet_cli_folder_make(xet_cli_place_t *place, const char *folder)
{
    return xet_cli_folder_mkdir(place, folder, 0750);
}


static int
xet_cli_folder_mkdir(xet_cli_place_t *place, const char *folder, mode_t mode)
{
    xet_cli_folder_t *f = (xet_cli_folder_t *) place;

    if (mkdirat(f->fd, folder, mode) != 0) {
        return (errno == EEXIST) ? XET_CLI_OK
                                 : xet_cli_folder_failed(place, folder);
    }

    return (f->owned && fchownat(f->fd, folder, f->uid, f->gid, 0) != 0)
           ? xet_cli_folder_failed(place, folder) : XET_CLI_OK;
}


static int
xet_cli_folder_folders(xet_cli_place_t *place, int make)
{
    int       rc;
    char      path[XET_CLI_PLACE_NAME];
    unsigned  n;

    static const char *const  above[] = { "tmp", "xorbs", "xorbs/default" };

    rc = XET_CLI_OK;

    for (n = 0; n < 3 + XET_CLI_FOLDER_FOLDERS && rc == XET_CLI_OK; n++) {

        if (n < 3) {
            snprintf(path, sizeof(path), "%s", above[n]);

        } else {
            snprintf(path, sizeof(path), "xorbs/default/%02x", n - 3);
        }

        rc = make ? xet_cli_folder_mkdir(place, path, 0755)
                  : xet_cli_folder_sync(place, path);
    }

    return (rc == XET_CLI_OK) ? xet_cli_folder_sync(place, ".") : rc;
}


static int
xet_cli_folder_settled(xet_cli_place_t *place)
{
    return (syncfs(xet_cli_folder_fd(place)) == 0)
           ? XET_CLI_OK : xet_cli_fail_errno(place->name);
}


static int
xet_cli_folder_lock(xet_cli_place_t *place, const char *name, int exclusive,
    int *had)
{
    int  fd;

    *had = 1;

    fd = openat(xet_cli_folder_fd(place), name,
                exclusive ? (O_RDWR | O_CREAT | O_CLOEXEC)
                          : (O_RDONLY | O_CLOEXEC), 0640);

    if (fd < 0) {

        /* a folder that nobody writes to needs no lock to be read */

        return exclusive ? xet_cli_folder_failed(place, name) : XET_CLI_OK;
    }

    if (!exclusive) {
        while (flock(fd, LOCK_SH) != 0 && errno == EINTR) { /* void */ }

    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        *had = 0;
        close(fd);
    }

    return XET_CLI_OK;
}


static int
xet_cli_folder_read_open(xet_cli_reader_t *reader, const char *name)
{
    struct stat        st;
    xet_cli_folder_t  *f;

    f = (xet_cli_folder_t *) reader->place;

    reader->fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC
                                     | (f->waits ? 0 : O_NONBLOCK));

    if (reader->fd < 0) {
        return (errno == ENOENT) ? XET_CLI_GONE : XET_CLI_UNREADABLE;
    }

    if (fstat(reader->fd, &st) != 0) {
        close(reader->fd);
        return XET_CLI_UNREADABLE;
    }

    reader->size = (uint64_t) st.st_size;

    return XET_CLI_OK;
}


static int
xet_cli_folder_read(xet_cli_reader_t *reader, uint8_t *buf, size_t len,
    uint64_t offset, size_t *n)
{
    ssize_t  got;

    *n = 0;

    while (*n < len) {
        got = pread(reader->fd, buf + *n, len - *n, (off_t) (offset + *n));

        if (got < 0 && errno == EINTR) {

            if (xet_cli_interrupted) {
                return XET_CLI_INTERRUPTED;
            }

            continue;
        }

        if (got < 0) {
            return XET_CLI_UNREADABLE;
        }

        if (got == 0) {
            break;
        }

        *n += (size_t) got;
    }

    return XET_CLI_OK;
}


static void
xet_cli_folder_read_close(xet_cli_reader_t *reader)
{
    if (reader->fd >= 0) {
        close(reader->fd);
    }
}


static int
xet_cli_folder_write_open(xet_cli_writer_t *writer)
{
    int                i;
    xet_cli_folder_t  *f;

    f = (xet_cli_folder_t *) writer->place;

    for (i = 0; i < XET_CLI_FOLDER_TRIES; i++) {
        free(writer->temp);
        writer->temp = xet_cli_folder_temp(f, writer->name);

        if (writer->temp == NULL) {
            return XET_CLI_ERROR;
        }

        writer->fd = openat(f->fd, writer->temp, O_RDWR | O_CREAT | O_EXCL
                                                 | O_CLOEXEC | O_NOFOLLOW,
                            0644);

        if (writer->fd >= 0) {
            return XET_CLI_OK;
        }

        if (errno != EEXIST) {
            break;
        }
    }

    (void) xet_cli_folder_failed(&f->place, writer->temp);

    free(writer->temp);
    writer->temp = NULL;

    return XET_CLI_ERROR;
}


static char *
xet_cli_folder_temp(xet_cli_folder_t *f, const char *target)
{
    char  *name;

    if (asprintf(&name, "tmp/%s.%ld.%u",
                 (strncmp(target, "xorbs/", 6) == 0) ? "copy" : "file",
                 (long) getpid(),
                 __sync_fetch_and_add(&f->serial, 1))
        < 0)
    {
        (void) xet_cli_no_memory();
        return NULL;
    }

    return name;
}


static void
xet_cli_folder_write_grown(xet_cli_writer_t *writer)
{
    /* void */
}


static int
xet_cli_folder_write_keep(xet_cli_writer_t *writer, int replace)
{
    xet_cli_folder_t  *f;

    f = (xet_cli_folder_t *) writer->place;

    if ((f->owned && fchown(writer->fd, f->uid, f->gid) != 0)
        || fsync(writer->fd) != 0)
    {
        return xet_cli_folder_failed(&f->place, writer->name);
    }

    if (linkat(f->fd, writer->temp, f->fd, writer->name, 0) == 0) {
        return XET_CLI_OK;
    }

    if (errno == EEXIST && !replace) {
        return XET_CLI_THERE;
    }

    if (errno == EEXIST
        && renameat(f->fd, writer->temp, f->fd, writer->name) == 0)
    {
        return XET_CLI_OK;
    }

    return xet_cli_folder_failed(&f->place, writer->name);
}


static void
xet_cli_folder_write_close(xet_cli_writer_t *writer)
{
    if (writer->temp) {
        (void) unlinkat(xet_cli_folder_fd(writer->place), writer->temp, 0);
    }
}
