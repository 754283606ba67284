
/*
 * Copies that are read, compared with what a list says of them, and written.
 *
 * A file gets its name when it was compared and synced, so what is found under
 * a name is whole.  Sixty-four files are synced one after the other: the first
 * one makes the file system write what the others need, too.
 */


#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xet_cli_backup.h"


static int xet_cli_copier_feed(xet_cli_copier_t *c, int fd,
    int (*write)(void *ctx, const uint8_t *data, size_t len), void *ctx,
    xet_xorb_verifier_t *v, uint64_t *size, xet_status_t *status);
static int xet_cli_copier_judge(const xet_cli_copier_t *c,
    const xet_cli_copy_t *copy, uint64_t size);
static int xet_cli_copier_write(void *ctx, const uint8_t *data, size_t len);
static void xet_cli_copier_wait(xet_cli_copier_t *c, uint64_t bytes);
static int xet_cli_copier_sync(int folder, const char *path);


int
xet_cli_copier_begin(xet_cli_copier_t *c, int to, uint64_t rate)
{
    memset(c, 0, sizeof(xet_cli_copier_t));

    c->to = to;
    c->rate = rate;
    c->began = xet_cli_now();
    c->buffer = malloc(XET_CLI_BACKUP_BUFFER);
    c->checksum = xet_checksum_create();

    if (c->buffer == NULL || c->checksum == NULL) {
        xet_cli_copier_end(c);
        return xet_cli_no_memory();
    }

    return XET_CLI_OK;
}


void
xet_cli_copier_end(xet_cli_copier_t *c)
{
    xet_cli_pending_t  *p;

    while (c->npending) {
        p = &c->pending[--c->npending];

        close(p->fd);

        if (p->temp) {
            (void) unlinkat(c->to, p->temp, 0);
            free(p->temp);
        }
    }

    free(c->buffer);
    xet_checksum_destroy(c->checksum);

    c->buffer = NULL;
    c->checksum = NULL;
}


int
xet_cli_copier_there(int folder, const xet_cli_copy_t *copy)
{
    return xet_cli_copier_size(folder, copy) == copy->size;
}


uint64_t
xet_cli_copier_size(int folder, const xet_cli_copy_t *copy)
{
    char         path[XET_CLI_BACKUP_PATH];
    struct stat  st;

    if (fstatat(folder, xet_cli_copy_path(copy, path), &st,
                AT_SYMLINK_NOFOLLOW)
        != 0
        || !S_ISREG(st.st_mode))
    {
        return UINT64_MAX;
    }

    return (uint64_t) st.st_size;
}


int
xet_cli_copier_read(xet_cli_copier_t *c, int from, const xet_cli_copy_t *copy,
    int (*write)(void *ctx, const uint8_t *data, size_t len), void *ctx,
    xet_xorb_verifier_t **info, xet_cli_copy_e *what)
{
    int                   fd, rc;
    char                  path[XET_CLI_BACKUP_PATH];
    uint64_t              size;
    xet_status_t          status;
    xet_xorb_verifier_t  *v;

    /* whatever it is, it is opened at once */

    fd = openat(from, xet_cli_copy_path(copy, path),
                O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 && (errno == EIO || errno == EUCLEAN)) {
        *what = XET_CLI_COPY_BAD;
        return XET_CLI_OK;
    }

    if (fd < 0) {
        *what = XET_CLI_COPY_GONE;
        return (errno == ENOENT) ? XET_CLI_OK : xet_cli_fail_errno(path);
    }

    v = NULL;
    status = XET_OK;
    rc = XET_CLI_OK;

    if (info || !copy->digested) {
        v = xet_xorb_verifier_create(&xet_suite_default, &copy->hash,
                                     UINT32_MAX);
        rc = v ? XET_CLI_OK : xet_cli_no_memory();
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_copier_feed(c, fd, write, ctx, v, &size, &status);
    }

    close(fd);

    if (rc == XET_CLI_OK && v && status == XET_OK) {
        status = xet_xorb_verifier_finish(v);
    }

    if (rc == XET_CLI_OK && status == XET_NOMEM) {
        rc = xet_cli_no_memory();
    }

    *what = (rc == XET_CLI_OK && status == XET_OK
             && xet_cli_copier_judge(c, copy, size))
            ? XET_CLI_COPY_GOOD : XET_CLI_COPY_BAD;

    if (info && rc == XET_CLI_OK && *what == XET_CLI_COPY_GOOD) {
        *info = v;

    } else {
        xet_xorb_verifier_destroy(v);
    }

    return rc;
}


/* What a disk can't read is damage to the file, not the end of all. */

static int
xet_cli_copier_feed(xet_cli_copier_t *c, int fd, int (*write)(void *ctx,
    const uint8_t *data, size_t len), void *ctx, xet_xorb_verifier_t *v,
    uint64_t *size, xet_status_t *status)
{
    int      rc;
    size_t   stored;
    ssize_t  n;

    *size = 0;

    xet_checksum_reset(c->checksum);

    for ( ;; ) {
        n = read(fd, c->buffer, XET_CLI_BACKUP_BUFFER);

        if (xet_cli_interrupted) {
            return XET_CLI_INTERRUPTED;
        }

        if (n <= 0) {
            *status = (n == 0) ? *status : XET_STORE_FAILED;
            return XET_CLI_OK;
        }

        *size += (uint64_t) n;
        c->done += (uint64_t) n;

        xet_checksum_update(c->checksum, c->buffer, (size_t) n);
        xet_cli_progress_set(c->done);

        if (v && *status == XET_OK) {
            *status = xet_xorb_verifier_feed(v, c->buffer, (size_t) n,
                                             &stored);

            /* a stored xorb has no footer */

            if (*status == XET_OK && stored != (size_t) n) {
                *status = XET_XORB_FOOTER;
            }
        }

        rc = write ? write(ctx, c->buffer, (size_t) n) : XET_CLI_OK;

        if (rc != XET_CLI_OK) {
            return rc;
        }

        xet_cli_copier_wait(c, (uint64_t) n);
    }
}


static int
xet_cli_copier_judge(const xet_cli_copier_t *c, const xet_cli_copy_t *copy,
    uint64_t size)
{
    xet_checksum_t  digest;

    if (size != copy->size) {
        return 0;
    }

    if (!copy->digested) {
        return 1;
    }

    xet_checksum_finish(c->checksum, &digest);

    return xet_checksum_equal(&digest, &copy->digest);
}


/* Sleeps until so many bytes fit into the rate. */

static void
xet_cli_copier_wait(xet_cli_copier_t *c, uint64_t bytes)
{
    uint64_t         due, now;
    struct timespec  ts;

    if (c->rate == 0) {
        return;
    }

    c->moved += bytes;

    due = c->began + c->moved / c->rate * 1000
          + c->moved % c->rate * 1000 / c->rate;
    now = xet_cli_now();

    while (now < due && !xet_cli_interrupted) {
        ts.tv_sec = (time_t) ((due - now) / 1000);
        ts.tv_nsec = (long) ((due - now) % 1000) * 1000000;

        (void) nanosleep(&ts, NULL);

        now = xet_cli_now();
    }
}


int
xet_cli_copier_copy(xet_cli_copier_t *c, int from, const xet_cli_copy_t *copy,
    int move, xet_cli_copy_e *what)
{
    int                 rc;
    char                path[XET_CLI_BACKUP_PATH];
    xet_cli_pending_t  *p;

    if (c->npending == XET_CLI_BACKUP_BATCH) {
        rc = xet_cli_copier_flush(c);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    p = &c->pending[c->npending];
    xet_cli_copy_path(copy, p->path);

    if (move) {
        rc = xet_cli_copier_read(c, from, copy, NULL, NULL, NULL, what);

        if (rc != XET_CLI_OK || *what != XET_CLI_COPY_GOOD) {
            return rc;
        }

        p->temp = NULL;
        p->fd = openat(from, xet_cli_copy_path(copy, path),
                       O_RDONLY | O_CLOEXEC);

        if (p->fd < 0 || renameat(from, path, c->to, p->path) != 0) {
            return xet_cli_fail_errno(path);
        }

    } else {
        if (asprintf(&p->temp, "tmp/copy.%u", c->serial++) < 0) {
            p->temp = NULL;
            return xet_cli_no_memory();
        }

        p->fd = openat(c->to, p->temp, O_WRONLY | O_CREAT | O_TRUNC
                                       | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (p->fd < 0) {
            rc = xet_cli_fail_errno(p->temp);
            free(p->temp);
            return rc;
        }
    }

    c->npending++;

    if (!move) {
        rc = xet_cli_copier_read(c, from, copy, xet_cli_copier_write, p, NULL,
                                 what);

        if (rc != XET_CLI_OK || *what != XET_CLI_COPY_GOOD) {
            c->npending--;
            close(p->fd);
            (void) unlinkat(c->to, p->temp, 0);
            free(p->temp);
            return rc;
        }
    }

    if (c->owned && fchown(p->fd, c->uid, c->gid) != 0) {
        return xet_cli_fail_errno(p->path);
    }

    return XET_CLI_OK;
}


static int
xet_cli_copier_write(void *ctx, const uint8_t *data, size_t len)
{
    xet_cli_pending_t *p = ctx;

    return xet_cli_output_write(p->fd, p->path, data, len);
}


int
xet_cli_copier_flush(xet_cli_copier_t *c)
{
    int                 rc;
    unsigned            i;
    xet_cli_pending_t  *p;

    rc = XET_CLI_OK;

    for (i = 0; i < c->npending; i++) {
        p = &c->pending[i];

        if (rc == XET_CLI_OK && fsync(p->fd) != 0) {
            rc = xet_cli_fail_errno(p->path);
        }

        if (rc == XET_CLI_OK && p->temp
            && renameat(c->to, p->temp, c->to, p->path) != 0)
        {
            rc = xet_cli_fail_errno(p->path);
        }

        if (rc == XET_CLI_OK) {
            free(p->temp);
            p->temp = NULL;
        }
    }

    for (i = 0; i < c->npending; i++) {
        p = &c->pending[i];

        close(p->fd);

        if (p->temp) {
            (void) unlinkat(c->to, p->temp, 0);
            free(p->temp);
        }
    }

    c->npending = 0;

    return rc;
}


int
xet_cli_copier_folders(xet_cli_copier_t *c, int make)
{
    int       rc, i;
    char      path[XET_CLI_BACKUP_PATH];
    unsigned  n;

    static const char *const  above[] = { "tmp", "xorbs",
                                          XET_CLI_BACKUP_COPIES };

    rc = XET_CLI_OK;

    for (n = 0; n < 3 + 256 && rc == XET_CLI_OK; n++) {

        if (n < 3) {
            snprintf(path, sizeof(path), "%s", above[n]);

        } else {
            snprintf(path, sizeof(path), XET_CLI_BACKUP_COPIES "/%02x", n - 3);
        }

        i = make ? mkdirat(c->to, path, 0755) : 0;

        if (i != 0 && errno != EEXIST) {
            rc = xet_cli_fail_errno(path);

        } else if (i == 0 && make && c->owned
                   && fchownat(c->to, path, c->uid, c->gid, 0) != 0)
        {
            rc = xet_cli_fail_errno(path);

        } else if (!make) {
            rc = xet_cli_copier_sync(c->to, path);
        }
    }

    return (rc == XET_CLI_OK) ? xet_cli_copier_sync(c->to, ".") : rc;
}


static int
xet_cli_copier_sync(int folder, const char *path)
{
    int  fd, rc;

    fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    /* not every file system syncs folders */

    rc = (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
         ? xet_cli_fail_errno(path) : XET_CLI_OK;

    if (fd >= 0) {
        close(fd);
    }

    return rc;
}
