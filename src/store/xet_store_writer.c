
/*
 * Temporary files on this machine.  They hold the bytes written to a store
 * until the data is complete.  So a failed request can be sent again, and no
 * buffer in memory grows with the data.
 *
 * A temporary file has no name if the file system supports O_TMPFILE, so a
 * crash leaves nothing behind.  Otherwise its name is
 * "copy.<process>.<number>" for a xorb, and "file.<process>.<number>" for
 * other or unknown data; a later sweep removes leftovers.
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xet_store_ops.h"


#ifndef O_TMPFILE
#define O_TMPFILE  020200000
#endif


#define XET_STORE_WRITER_MODE   0644
#define XET_STORE_WRITER_TRIES  65536


static xet_status_t xet_store_writer_file(xet_store_writer_t *writer,
    xet_store_error_t *error);
static int xet_store_writer_left(const char *name);


xet_status_t
xet_store_writer_open(xet_store_t *store, const char *name,
    xet_store_writer_t **writer, xet_store_error_t *error)
{
    xet_status_t         rc;
    xet_store_writer_t  *w;

    *writer = NULL;

    w = calloc(1, sizeof(xet_store_writer_t));

    if (w == NULL) {
        return xet_store_says(store, name, XET_NOMEM, "out of memory", error);
    }

    w->store = store;
    (void) snprintf(w->name, sizeof(w->name), "%s", name);

    rc = xet_store_writer_file(w, error);

    if (rc != XET_OK) {
        free(w);
        return rc;
    }

    *writer = w;

    return XET_OK;
}


static xet_status_t
xet_store_writer_file(xet_store_writer_t *writer, xet_store_error_t *error)
{
    int  i;

    static unsigned  serial;

    if (!writer->store->named) {
        writer->fd = open(writer->store->temp, O_TMPFILE|O_RDWR|O_CLOEXEC,
                          XET_STORE_WRITER_MODE);

        if (writer->fd >= 0) {
            return XET_OK;
        }

        if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
            return xet_store_failed_path("open", writer->store->temp, error);
        }
    }

    /* a file left by a crash may have this name: try the next number */

    for (i = 0; i < XET_STORE_WRITER_TRIES; i++) {

        (void) snprintf(writer->temp, sizeof(writer->temp), "%s/%s.%ld.%u",
                        writer->store->temp,
                        strncmp(writer->name, "xorbs/", 6) ? "file" : "copy",
                        (long) getpid(), __sync_fetch_and_add(&serial, 1));

        writer->fd = open(writer->temp,
                          O_CREAT|O_EXCL|O_NOFOLLOW|O_RDWR|O_CLOEXEC,
                          XET_STORE_WRITER_MODE);

        if (writer->fd < 0 && errno == EEXIST) {
            continue;
        }

        if (writer->fd < 0) {
            break;
        }

        /* an upload to a bucket needs only the descriptor */

        if (writer->store->s3) {
            (void) unlink(writer->temp);
            writer->temp[0] = '\0';
        }

        return XET_OK;
    }

    return xet_store_failed_path("open", writer->temp, error);
}


xet_status_t
xet_store_writer_write(xet_store_writer_t *writer, const void *data,
    size_t len, xet_store_error_t *error)
{
    xet_status_t  rc;

    rc = xet_store_writer_patch(writer, data, len, writer->size, error);

    if (rc == XET_OK) {
        writer->size += len;
        writer->store->ops->grown(writer, data, len);
    }

    return rc;
}


xet_status_t
xet_store_writer_patch(xet_store_writer_t *writer, const void *data,
    size_t len, uint64_t offset, xet_store_error_t *error)
{
    ssize_t         n;
    const uint8_t  *p;

    for (p = data; len; /* void */ ) {
        n = pwrite(writer->fd, p, len, (off_t) offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }

        if (n < 0) {
            return xet_store_failed_path("pwrite", writer->store->temp, error);
        }

        p += n;
        len -= (size_t) n;
        offset += (uint64_t) n;
    }

    return XET_OK;
}


xet_status_t
xet_store_writer_read(xet_store_writer_t *writer, void *data, size_t len,
    uint64_t offset, xet_store_error_t *error)
{
    ssize_t   n;
    uint8_t  *p;

    for (p = data; len; /* void */ ) {
        n = pread(writer->fd, p, len, (off_t) offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }

        if (n <= 0) {
            errno = n ? errno : 0;
            (void) xet_store_failed_path("pread", writer->store->temp, error);

            return n ? XET_STORE_FAILED : XET_AGAIN;
        }

        p += n;
        len -= (size_t) n;
        offset += (uint64_t) n;
    }

    return XET_OK;
}


xet_status_t
xet_store_writer_close(xet_store_writer_t *writer, xet_store_error_t *error)
{
    xet_status_t  rc;

    if (writer->upload) {
        xet_s3_upload_destroy(writer->upload);
    }

    rc = XET_OK;

    if (writer->temp[0] && unlink(writer->temp) != 0 && errno != ENOENT) {
        rc = xet_store_failed_path("unlink", writer->temp, error);
    }

    if (close(writer->fd) != 0) {
        rc = xet_store_failed_path("close", writer->store->temp, error);
    }

    free(writer);

    return rc;
}


xet_status_t
xet_store_writer_sweep(xet_store_t *store, uint64_t age, size_t *n,
    xet_store_error_t *error)
{
    DIR            *dir;
    char            path[PATH_MAX];
    int64_t         before;
    struct stat     st;
    xet_status_t    rc;
    struct dirent  *entry;

    *n = 0;
    rc = XET_OK;
    before = (int64_t) time(NULL) - (int64_t) age;

    dir = opendir(store->temp);

    if (dir == NULL) {
        return (errno == ENOENT)
               ? XET_OK : xet_store_failed_path("opendir", store->temp, error);
    }

    while ((entry = readdir(dir)) != NULL) {

        if (!xet_store_writer_left(entry->d_name)
            || snprintf(path, sizeof(path), "%s/%s", store->temp,
                        entry->d_name)
               >= (int) sizeof(path)
            || lstat(path, &st) != 0 || !S_ISREG(st.st_mode)
            || st.st_mtime > before)
        {
            continue;
        }

        if (unlink(path) == 0) {
            (*n)++;

        } else if (errno != ENOENT) {
            rc = xet_store_failed_path("unlink", path, error);
        }
    }

    (void) closedir(dir);

    return rc;
}


/*
 * Returns whether a crash may have left a file with this name.  NFS renames a
 * file to ".nfs..." if it is removed while a node has it open.  If such a file
 * is old, the node has died.
 */

static int
xet_store_writer_left(const char *name)
{
    return strncmp(name, "copy.", 5) == 0 || strncmp(name, "file.", 5) == 0
           || strncmp(name, ".nfs", 4) == 0;
}
