
/*
 * A store in a folder.
 *
 * A copy gets its name by link(), which never replaces a file.  Its bytes are
 * synced first, and its folder is synced last.  All folders of copies are made
 * and synced before the first write, so no copy is in a folder whose own entry
 * is not yet durable.
 *
 * If several nodes share the folder over NFS, a node caches the names of a
 * folder until the node opens that folder.  A file that another node has
 * removed can no longer be read, even if it is open (ESTALE).  So no name is
 * reported missing before its folder was opened.  After ESTALE, a reader opens
 * the file again, to see whether the copy still exists.  This is safe, because
 * the bytes stored under a name never change.
 *
 * Paths are resolved at each call: a disk may be mounted at any time.
 */


#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS  64
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_store_ops.h"


#define XET_STORE_FILES_BATCH     64
#define XET_STORE_FILES_MODE      0755         /* mode of new folders */
#define XET_STORE_FILES_FLUSH     (4 * 1024 * 1024)
#define XET_STORE_FILES_ALIGN     4096         /* alignment for O_DIRECT */


static xet_status_t xet_store_files_folders(xet_store_t *store, uid_t uid,
    gid_t gid, xet_store_error_t *error);
static xet_status_t xet_store_files_folder(xet_store_t *store,
    const char *folder, uid_t uid, gid_t gid, int *made,
    xet_store_error_t *error);
static void xet_store_files_stat(xet_store_t *store, xet_store_item_t *items,
    size_t n, xet_store_error_t *error);
static xet_status_t xet_store_files_stat_one(xet_store_t *store,
    xet_store_item_t *item, xet_store_error_t *error);
static xet_status_t xet_store_files_small(xet_store_t *store,
    const char *name, void *buf, size_t *len, xet_store_error_t *error);
static xet_status_t xet_store_files_open(xet_store_reader_t *reader,
    xet_store_error_t *error);
static int xet_store_files_fd(const xet_store_t *store, char *path, int flags);
static xet_status_t xet_store_files_size(xet_store_reader_t *reader,
    xet_store_error_t *error);
static xet_status_t xet_store_files_read(xet_store_reader_t *reader,
    void *buf, size_t len, uint64_t offset, xet_store_error_t *error);
static ssize_t xet_store_files_pread(xet_store_reader_t *reader, void *buf,
    size_t len, uint64_t offset);
static void xet_store_files_grown(xet_store_writer_t *writer,
    const void *data, size_t len);
static xet_status_t xet_store_files_keep(xet_store_writer_t *writer,
    const char *name, int replace, int late, xet_store_error_t *error);
static xet_status_t xet_store_files_named(xet_store_writer_t *writer,
    const char *path, int replace);
static int xet_store_files_linkat(const xet_store_writer_t *writer,
    const char *path);
static xet_status_t xet_store_files_remove(xet_store_t *store,
    xet_store_item_t *items, size_t n, xet_store_error_t *error);
static int xet_store_files_beside(const char *one, const char *two);
static xet_status_t xet_store_files_link(xet_store_t *store,
    const char *from, const char *to, xet_store_error_t *error);
static xet_status_t xet_store_files_quarantine(xet_store_t *store,
    const char *name, const char *quarantine, xet_store_error_t *error);
static xet_status_t xet_store_files_back(xet_store_t *store,
    const char *quarantine, const char *name, xet_store_error_t *error);
static xet_status_t xet_store_files_list(xet_store_list_t *list,
    xet_store_error_t *error);
static xet_status_t xet_store_files_next(xet_store_list_t *list,
    xet_store_item_t *item, xet_store_error_t *error);
static xet_status_t xet_store_files_sync(xet_store_t *store,
    const char *folder, xet_store_error_t *error);
static xet_status_t xet_store_files_above(xet_store_t *store,
    const char *name, xet_store_error_t *error);
static xet_status_t xet_store_files_lock(xet_store_t *store,
    const char *name, int exclusive, xet_store_error_t *error);
static int xet_store_files_path(const xet_store_t *store, const char *name,
    char *path);
static int xet_store_files_doubtful(char *path);


const xet_store_ops_t  xet_store_files_ops = {
    "folder",
    XET_STORE_FILES_BATCH,
    xet_store_files_folders,
    xet_store_files_stat,
    xet_store_files_small,
    xet_store_files_open,
    xet_store_files_size,
    xet_store_files_read,
    xet_store_files_grown,
    xet_store_files_keep,
    xet_store_files_remove,
    xet_store_files_link,
    xet_store_files_quarantine,
    xet_store_files_back,
    xet_store_files_list,
    xet_store_files_next,
    xet_store_writer_sweep,
    xet_store_files_sync,
    xet_store_files_lock
};


static xet_status_t
xet_store_files_folders(xet_store_t *store, uid_t uid, gid_t gid,
    xet_store_error_t *error)
{
    int           made;
    char          folder[XET_STORE_COPY_MAX];
    unsigned      i;
    xet_status_t  rc;

    made = 0;

    rc = xet_store_files_folder(store, "tmp", uid, gid, &made, error);

    if (rc == XET_OK) {
        rc = xet_store_files_folder(store, "xorbs", uid, gid, &made, error);
    }

    if (rc == XET_OK) {
        rc = xet_store_files_folder(store, "xorbs/" XET_STORE_NAMESPACE, uid,
                                    gid, &made, error);
    }

    for (i = 0; i < XET_STORE_FOLDERS && rc == XET_OK; i++) {
        (void) snprintf(folder, sizeof(folder),
                        "xorbs/" XET_STORE_NAMESPACE "/%02x", i);

        rc = xet_store_files_folder(store, folder, uid, gid, &made, error);
    }

    return (rc == XET_OK && made) ? xet_store_files_sync(store, NULL, error)
                                  : rc;
}


static xet_status_t
xet_store_files_folder(xet_store_t *store, const char *folder, uid_t uid,
    gid_t gid, int *made, xet_store_error_t *error)
{
    char  path[PATH_MAX];

    if (!xet_store_files_path(store, folder, path)
        || mkdir(path, XET_STORE_FILES_MODE) != 0)
    {
        return (errno == EEXIST)
               ? XET_OK : xet_store_failed(store, "mkdir", folder, error);
    }

    *made = 1;

    return ((uid != (uid_t) -1 || gid != (gid_t) -1)
            && chown(path, uid, gid) != 0)
           ? xet_store_failed(store, "chown", folder, error) : XET_OK;
}


static void
xet_store_files_stat(xet_store_t *store, xet_store_item_t *items, size_t n,
    xet_store_error_t *error)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        items[i].status = xet_store_files_stat_one(store, &items[i], error);
    }
}


static xet_status_t
xet_store_files_stat_one(xet_store_t *store, xet_store_item_t *item,
    xet_store_error_t *error)
{
    char         path[PATH_MAX];
    struct stat  st;

    if (!xet_store_files_path(store, item->name, path)
        || (lstat(path, &st) != 0
            && (!xet_store_files_doubtful(path) || lstat(path, &st) != 0)))
    {
        return (errno == ENOENT)
               ? XET_DONE : xet_store_failed(store, "stat", item->name, error);
    }

    item->size = (uint64_t) st.st_size;
    item->modified = st.st_mtime;
    item->changed = st.st_ctime;
    item->id = (uint64_t) st.st_ino;
    item->links = (uint64_t) st.st_nlink;

    return S_ISREG(st.st_mode)
           ? XET_OK
           : xet_store_says(store, item->name, XET_STORE_DAMAGED,
                            "is not a regular file", error);
}


static xet_status_t
xet_store_files_small(xet_store_t *store, const char *name, void *buf,
    size_t *len, xet_store_error_t *error)
{
    xet_status_t        rc;
    xet_store_reader_t  reader;

    xet_store_reader_init(&reader, store);

    (void) snprintf(reader.name, sizeof(reader.name), "%s", name);

    rc = xet_store_files_open(&reader, error);

    if (rc == XET_OK) {
        *len = (reader.size < *len) ? (size_t) reader.size : *len;
        rc = xet_store_files_read(&reader, buf, *len, 0, error);
    }

    xet_store_reader_close(&reader);

    return (rc == XET_AGAIN)
           ? xet_store_says(store, name, XET_STORE_FAILED,
                            "has changed while it was read", error)
           : rc;
}


static xet_status_t
xet_store_files_open(xet_store_reader_t *reader, xet_store_error_t *error)
{
    char          path[PATH_MAX];
    struct stat   st;
    xet_store_t  *store;

    store = reader->store;

    if (!xet_store_files_path(store, reader->name, path)) {
        return xet_store_failed(store, "open", reader->name, error);
    }

    reader->direct = reader->past;
    reader->fd = xet_store_files_fd(store, path,
                                    reader->direct ? O_DIRECT : 0);

    if (reader->fd < 0 && errno == EINVAL && reader->direct) {
        reader->direct = 0;
        reader->fd = xet_store_files_fd(store, path, 0);
    }

    if (reader->fd < 0) {
        return (errno == ENOENT)
               ? XET_DONE
               : (errno == ELOOP)
               ? xet_store_says(store, reader->name, XET_STORE_DAMAGED,
                                "is not a regular file", error)
               : xet_store_failed(store, "open", reader->name, error);
    }

    if (fstat(reader->fd, &st) != 0) {
        return xet_store_failed(store, "fstat", reader->name, error);
    }

    if (!S_ISREG(st.st_mode)) {
        return xet_store_says(store, reader->name, XET_STORE_DAMAGED,
                              "is not a regular file", error);
    }

    reader->size = (uint64_t) st.st_size;

    return XET_OK;
}


/* Opens a file to read.  With O_NONBLOCK, opening a FIFO does not block. */

static int
xet_store_files_fd(const xet_store_t *store, char *path, int flags)
{
    int  fd;

    flags |= O_RDONLY|O_CLOEXEC|O_NOFOLLOW|(store->waits ? 0 : O_NONBLOCK);

    fd = open(path, flags);

    return (fd < 0 && xet_store_files_doubtful(path)) ? open(path, flags) : fd;
}


static xet_status_t
xet_store_files_size(xet_store_reader_t *reader, xet_store_error_t *error)
{
    return XET_OK;
}


static xet_status_t
xet_store_files_read(xet_store_reader_t *reader, void *buf, size_t len,
    uint64_t offset, xet_store_error_t *error)
{
    int           stale;
    ssize_t       n;
    uint8_t      *p;
    xet_status_t  rc;

    stale = 0;

    for (p = buf; len; /* void */ ) {
        n = xet_store_files_pread(reader, p, len, offset);

        if (n == 0) {
            return XET_AGAIN;
        }

        if (n > 0) {
            p += n;
            len -= (size_t) n;
            offset += (uint64_t) n;
            continue;
        }

        if (errno != ESTALE || stale++) {
            return xet_store_failed(reader->store, "pread", reader->name,
                                    error);
        }

        /*
         * another node removed the file, after a heal or by garbage collection
         */

        (void) close(reader->fd);
        reader->fd = -1;

        rc = xet_store_files_open(reader, error);

        if (rc != XET_OK) {
            return rc;
        }
    }

    return XET_OK;
}


static ssize_t
xet_store_files_pread(xet_store_reader_t *reader, void *buf, size_t len,
    uint64_t offset)
{
    ssize_t  n;

    for ( ;; ) {

        if (reader->direct && offset % XET_STORE_FILES_ALIGN) {
            reader->direct = 0;
            (void) fcntl(reader->fd, F_SETFL, 0);
        }

        n = pread(reader->fd, buf, len, (off_t) offset);

        if (n < 0 && errno == EINVAL && reader->direct) {
            reader->direct = 0;
            (void) fcntl(reader->fd, F_SETFL, 0);
            continue;
        }

        if (n < 0 && errno == EINTR) {
            continue;
        }

        break;
    }

    if (n > 0 && reader->past && !reader->direct) {
        (void) posix_fadvise(reader->fd, (off_t) offset, n,
                             POSIX_FADV_DONTNEED);
    }

    return n;
}


/* Starts flushing the written bytes, so that keep has less to wait for. */

static void
xet_store_files_grown(xet_store_writer_t *writer, const void *data,
    size_t len)
{
#ifdef SYNC_FILE_RANGE_WRITE

    if (writer->size - writer->flushed >= XET_STORE_FILES_FLUSH) {
        (void) sync_file_range(writer->fd, (off64_t) writer->flushed,
                               (off64_t) (writer->size - writer->flushed),
                               SYNC_FILE_RANGE_WRITE);
        writer->flushed = writer->size;
    }

#endif
}


/* Stores a copy.  The copy's time is the mtime of the temporary file. */

static xet_status_t
xet_store_files_keep(xet_store_writer_t *writer, const char *name,
    int replace, int late, xet_store_error_t *error)
{
    char          path[PATH_MAX];
    struct stat   st;
    xet_status_t  rc;
    xet_store_t  *store;

    store = writer->store;

    if (store->uid != (uid_t) -1
        && fchown(writer->fd, store->uid, store->gid) != 0)
    {
        return xet_store_failed(store, "fchown", name, error);
    }

    if (fdatasync(writer->fd) != 0) {
        return xet_store_failed_path("fdatasync", store->temp, error);
    }

    if (!xet_store_files_path(store, name, path)
        || fstat(writer->fd, &st) != 0)
    {
        return xet_store_failed(store, "fstat", name, error);
    }

    writer->made = st.st_mtime;

    rc = xet_store_files_named(writer, path, replace);

    if (rc != XET_OK) {
        return (rc == XET_AGAIN)
               ? rc : xet_store_failed(store, "link", name, error);
    }

    writer->kept = 1;

    if (writer->temp[0]) {

        if (unlink(writer->temp) != 0 && errno != ENOENT) {
            return xet_store_failed_path("unlink", writer->temp, error);
        }

        writer->temp[0] = '\0';
    }

    return late ? XET_OK : xet_store_files_above(store, name, error);
}


/*
 * Gives the file its name.  XET_AGAIN: another file has that name;
 * XET_STORE_FAILED: errno is set.
 */

static xet_status_t
xet_store_files_named(xet_store_writer_t *writer, const char *path,
    int replace)
{
    char          temp[PATH_MAX];
    const char   *from;

    if (xet_store_files_linkat(writer, path) == 0) {
        return XET_OK;
    }

    if (errno != EEXIST) {
        return XET_STORE_FAILED;
    }

    if (!replace) {
        return XET_AGAIN;
    }

    /* rename() needs a name: use the process id and the writer's address */

    from = writer->temp;

    if (from[0] == '\0') {
        if (snprintf(temp, sizeof(temp), "%s/file.%ld.%p",
                     writer->store->temp, (long) getpid(), (void *) writer)
            >= (int) sizeof(temp))
        {
            errno = ENAMETOOLONG;
            return XET_STORE_FAILED;
        }

        (void) unlink(temp);

        if (xet_store_files_linkat(writer, temp) != 0) {
            return XET_STORE_FAILED;
        }

        from = temp;
    }

    return (rename(from, path) == 0) ? XET_OK : XET_STORE_FAILED;
}


static int
xet_store_files_linkat(const xet_store_writer_t *writer, const char *path)
{
    char  fd[sizeof("/proc/self/fd/") + 16];

    if (writer->temp[0]) {
        return link(writer->temp, path);
    }

    (void) snprintf(fd, sizeof(fd), "/proc/self/fd/%d", writer->fd);

    return linkat(AT_FDCWD, fd, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}


/*
 * Removes names, and syncs a folder after the last of its names.  Without the
 * sync, removed names could reappear after a crash, and no record of them
 * would exist.
 */

static xet_status_t
xet_store_files_remove(xet_store_t *store, xet_store_item_t *items, size_t n,
    xet_store_error_t *error)
{
    char          path[PATH_MAX];
    size_t        i;
    xet_status_t  rc;

    rc = XET_OK;

    for (i = 0; i < n; i++) {

        items[i].status = rc;

        if (rc != XET_OK) {
            continue;
        }

        if (!xet_store_files_path(store, items[i].name, path)
            || (unlink(path) != 0 && errno != ENOENT))
        {
            rc = xet_store_failed(store, "unlink", items[i].name, error);

        } else if (i + 1 == n
                   || !xet_store_files_beside(items[i].name,
                                              items[i + 1].name))
        {
            rc = xet_store_files_above(store, items[i].name, error);
        }

        items[i].status = rc;
    }

    return rc;
}


static int
xet_store_files_beside(const char *one, const char *two)
{
    const char  *a, *b;

    a = strrchr(one, '/');
    b = strrchr(two, '/');

    if (a == NULL || b == NULL) {
        return a == b;
    }

    return a - one == b - two && strncmp(one, two, (size_t) (a - one)) == 0;
}


static xet_status_t
xet_store_files_link(xet_store_t *store, const char *from, const char *to,
    xet_store_error_t *error)
{
    char  path[PATH_MAX], other[PATH_MAX];

    if (!xet_store_files_path(store, from, path)
        || !xet_store_files_path(store, to, other)
        || link(path, other) != 0)
    {
        return (errno == ENOENT) ? XET_DONE
               : (errno == EEXIST) ? XET_AGAIN
               : xet_store_failed(store, "link", from, error);
    }

    return xet_store_files_above(store, to, error);
}


static xet_status_t
xet_store_files_quarantine(xet_store_t *store, const char *name,
    const char *quarantine, xet_store_error_t *error)
{
    char  path[PATH_MAX], other[PATH_MAX];

    if (!xet_store_files_path(store, name, path)
        || !xet_store_files_path(store, quarantine, other)
        || rename(path, other) != 0)
    {
        return (errno == ENOENT)
               ? XET_DONE : xet_store_failed(store, "rename", name, error);
    }

    return XET_OK;
}


/* Makes the name durable before the quarantine name is removed. */

static xet_status_t
xet_store_files_back(xet_store_t *store, const char *quarantine, const char
    *name, xet_store_error_t *error)
{
    char          path[PATH_MAX];
    xet_status_t  rc;

    rc = xet_store_files_link(store, quarantine, name, error);

    if (rc == XET_AGAIN) {
        rc = xet_store_files_above(store, name, error);
    }

    if (rc != XET_OK) {
        return rc;
    }

    return (xet_store_files_path(store, quarantine, path)
            && (unlink(path) == 0 || errno == ENOENT))
           ? XET_OK : xet_store_failed(store, "unlink", quarantine, error);
}


static xet_status_t
xet_store_files_list(xet_store_list_t *list, xet_store_error_t *error)
{
    char  path[PATH_MAX];

    list->dir = xet_store_files_path(list->store, list->folder, path)
                ? opendir(path) : NULL;

    return list->dir ? XET_OK
           : (errno == ENOENT) ? XET_DONE
           : xet_store_failed(list->store, "opendir", list->folder, error);
}


static xet_status_t
xet_store_files_next(xet_store_list_t *list, xet_store_item_t *item,
    xet_store_error_t *error)
{
    struct dirent  *entry;

    do {
        errno = 0;
        entry = readdir(list->dir);

    } while (entry && (strcmp(entry->d_name, ".") == 0
                       || strcmp(entry->d_name, "..") == 0));

    if (entry == NULL) {
        return errno ? xet_store_failed(list->store, "readdir", list->folder,
                                        error)
                     : XET_DONE;
    }

    memset(item, 0, sizeof(xet_store_item_t));
    item->name = entry->d_name;

    return XET_OK;
}


/*
 * Syncs a folder.  A missing folder needs no sync: its removed names can't come
 * back after a crash.
 */

static xet_status_t
xet_store_files_sync(xet_store_t *store, const char *folder,
    xet_store_error_t *error)
{
    int           fd;
    char          path[PATH_MAX];
    xet_status_t  rc;

    fd = xet_store_files_path(store, folder ? folder : ".", path)
         ? open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC) : -1;

    if (fd < 0) {
        return (errno == ENOENT && folder)
               ? XET_OK : xet_store_failed(store, "open", folder ? folder : ".",
                                           error);
    }

    rc = XET_OK;

    if (folder == NULL) {
        rc = (syncfs(fd) == 0) ? XET_OK
                               : xet_store_failed(store, "syncfs", ".", error);

    } else if (fsync(fd) != 0 && !(store->lax && errno == EINVAL)) {
        rc = xet_store_failed(store, "fsync", folder, error);
    }

    (void) close(fd);

    return rc;
}


/* Syncs the folder of a name. */

static xet_status_t
xet_store_files_above(xet_store_t *store, const char *name,
    xet_store_error_t *error)
{
    char  folder[XET_STORE_NAME_MAX], *slash;

    (void) snprintf(folder, sizeof(folder), "%s", name);

    slash = strrchr(folder, '/');

    if (slash) {
        *slash = '\0';
    }

    return xet_store_files_sync(store, slash ? folder : ".", error);
}


/*
 * Locks a file.  The descriptor stays open, and holds the lock, until the
 * process ends.  If the file can't be opened, a shared lock is skipped:
 * reading a folder that has no writers needs no lock.
 */

static xet_status_t
xet_store_files_lock(xet_store_t *store, const char *name, int exclusive,
    xet_store_error_t *error)
{
    int   fd;
    char  path[PATH_MAX];

    fd = xet_store_files_path(store, name, path)
         ? open(path, exclusive ? (O_RDWR|O_CREAT|O_NOFOLLOW|O_CLOEXEC)
                                : (O_RDONLY|O_CLOEXEC), 0640)
         : -1;

    if (fd < 0) {
        return exclusive ? xet_store_failed(store, "open", name, error)
                         : XET_OK;
    }

    if (!exclusive) {
        while (flock(fd, LOCK_SH) != 0 && errno == EINTR) { /* void */ }

    } else if (flock(fd, LOCK_EX|LOCK_NB) != 0) {
        (void) close(fd);
        return XET_AGAIN;
    }

    return XET_OK;
}


/* Writes the path of a name.  Returns 0, with errno set, if it is too long. */

static int
xet_store_files_path(const xet_store_t *store, const char *name, char *path)
{
    int  n;

    n = snprintf(path, PATH_MAX, "%s/%s", store->name, name);

    if (n >= 0 && n < PATH_MAX) {
        return 1;
    }

    errno = ENAMETOOLONG;

    return 0;
}


/*
 * Returns whether errno may come from a stale NFS cache.  If so, opens the
 * folder of path, so that NFS compares its cache with the server, and returns
 * 1: the caller tries again.  0: errno is final.
 */

static int
xet_store_files_doubtful(char *path)
{
    int    fd;
    char  *name;

    if (errno != ENOENT && errno != ESTALE) {
        return 0;
    }

    name = strrchr(path, '/');
    *name = '\0';

    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    *name = '/';

    if (fd < 0) {
        return 0;
    }

    (void) close(fd);

    return 1;
}
