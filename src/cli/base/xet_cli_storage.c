
/*
 * Wrappers around src/store for the xet command: they print error messages,
 * and return exit codes instead of statuses.
 */


#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_bucket.h"


#define XET_CLI_STORAGE_FETCH  (1024 * 1024)      /* buffer of a download */
#define XET_CLI_STORAGE_AHEAD  (4 * 1024 * 1024)  /* read-ahead of a bucket */


static xet_store_t *xet_cli_storage_folder(const char *text, int flags,
    int *rc);
static int xet_cli_storage_begin(xet_store_t *storage, int flags);
static xet_store_t *xet_cli_storage_bucket(const char *text, int *rc);
static int xet_cli_storage_rc(xet_status_t status,
    const xet_store_error_t *error);
static int xet_cli_storage_unread(xet_status_t status,
    const xet_store_error_t *error);
static int xet_cli_storage_but(xet_store_list_t *list, const char *name,
    const char *const *but);
static int xet_cli_storage_download(xet_store_reader_t *reader, int fd,
    const char *name);


xet_store_t *
xet_cli_storage_open(const char *text, int flags, int *rc)
{
    *rc = XET_CLI_OK;

    return (strncmp(text, "s3://", 5) == 0)
           ? xet_cli_storage_bucket(text, rc)
           : xet_cli_storage_folder(text, flags, rc);
}


static xet_store_t *
xet_cli_storage_folder(const char *text, int flags, int *rc)
{
    xet_store_t  *storage;

    storage = xet_store_files(text);

    *rc = storage ? xet_cli_storage_begin(storage, flags) : xet_cli_no_memory();

    if (*rc != XET_CLI_OK) {
        xet_store_destroy(storage);
        return NULL;
    }

    return storage;
}


static int
xet_cli_storage_begin(xet_store_t *storage, int flags)
{
    int          fd, rc;
    struct stat  st;

    if ((flags & XET_CLI_STORAGE_MAKE) && mkdir(storage->name, 0750) != 0
        && errno != EEXIST)
    {
        return xet_cli_fail_errno(storage->name);
    }

    fd = open(storage->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = xet_cli_fail_errno(storage->name);

        if (fd >= 0) {
            close(fd);
        }

        return rc;
    }

    close(fd);

    storage->named = 1;
    storage->lax = 1;
    storage->waits = ((flags & XET_CLI_STORAGE_WAITS) != 0);

    if ((flags & XET_CLI_STORAGE_OWNED) && geteuid() == 0) {
        storage->uid = st.st_uid;
        storage->gid = st.st_gid;
    }

    return XET_CLI_OK;
}


/*
 * temp_path is used only if it is writable: the arguments may be copied from
 * the configuration of a server, which has other permissions.
 */

static xet_store_t *
xet_cli_storage_bucket(const char *text, int *rc)
{
    const char             *temp;
    xet_store_t            *storage;
    xet_s3_error_t          error;
    xet_cli_bucket_conf_t   conf;

    storage = NULL;
    *rc = xet_cli_bucket_conf(&conf, text);

    if (*rc == XET_CLI_OK) {
        temp = conf.temp_path;

        if (temp == NULL || access(temp, W_OK | X_OK) != 0) {
            temp = getenv("TMPDIR");
        }

        storage = xet_store_s3(&conf.s3, (temp && *temp) ? temp : "/var/tmp",
                               &error);
        if (storage == NULL) {
            *rc = error.text[0] ? xet_cli_fail(XET_CLI_USAGE, conf.s3.url,
                                               error.text)
                                : xet_cli_no_memory();
        }
    }

    free(conf.words);

    return storage;
}


/*
 * Converts a status to an exit code, after printing the error; or, without
 * printing anything, to XET_CLI_GONE or XET_CLI_THERE.
 */

static int
xet_cli_storage_rc(xet_status_t status, const xet_store_error_t *error)
{
    switch (status) {

    case XET_OK:
        return XET_CLI_OK;

    case XET_DONE:
        return XET_CLI_GONE;

    case XET_AGAIN:
        return XET_CLI_THERE;

    case XET_NOMEM:
        return xet_cli_no_memory();

    default:
        break;
    }

    if (error->err) {
        errno = error->err;
        return xet_cli_fail_errno(error->path);
    }

    if (xet_cli_interrupted) {
        return XET_CLI_INTERRUPTED;
    }

    return xet_cli_fail(error->local ? XET_CLI_ERROR : XET_CLI_NETWORK,
                        error->path, error->text);
}


/*
 * Like xet_cli_storage_rc(), for reads: for an error with an errno, prints
 * nothing, sets errno and returns XET_CLI_UNREADABLE.  The caller decides
 * whether the file is damaged.
 */

static int
xet_cli_storage_unread(xet_status_t status, const xet_store_error_t *error)
{
    if (status == XET_STORE_DAMAGED) {
        errno = EUCLEAN;

    } else if (status == XET_AGAIN) {
        errno = EIO;

    } else if (status != XET_OK && status != XET_DONE && error->err) {
        errno = error->err;

    } else {
        return xet_cli_storage_rc(status, error);
    }

    return XET_CLI_UNREADABLE;
}


int
xet_cli_storage_identity(xet_store_t *storage, char identity[XET_CLI_IDENTITY])
{
    xet_status_t       status;
    xet_store_error_t  error;

    status = xet_store_identity(storage, identity, &error);

    return (status == XET_DONE) ? XET_CLI_OK
                                : xet_cli_storage_rc(status, &error);
}


int
xet_cli_storage_still(xet_store_t *storage, const char *identity)
{
    int   rc;
    char  found[XET_CLI_IDENTITY];

    rc = xet_cli_storage_identity(storage, found);

    if (rc != XET_CLI_OK || strcmp(found, identity) == 0) {
        return rc;
    }

    return xet_cli_fail(XET_CLI_ERROR, storage->name, storage->s3
                        ? "no longer the store: was the bucket emptied or "
                          "replaced?"
                        : "no longer the store: is the disk mounted?");
}


int
xet_cli_storage_bare(const xet_store_t *storage)
{
    return xet_cli_fail(XET_CLI_ERROR, storage->name, storage->s3
                        ? "no store identity under this prefix; check bucket "
                          "and prefix"
                        : "no store identity in this folder; is the disk "
                          "mounted?");
}


int
xet_cli_storage_other(const xet_store_t *storage)
{
    return xet_cli_fail(XET_CLI_ERROR, storage->name,
                        "is not the store of this database");
}


int
xet_cli_storage_list(xet_store_t *storage, const char *folder,
    xet_cli_storage_name_pt handler, void *ctx)
{
    int                rc;
    xet_status_t       status;
    xet_store_list_t   list;
    xet_store_item_t   item;
    xet_store_error_t  error;

    rc = XET_CLI_OK;
    status = xet_store_list_open(&list, storage, folder, &error);

    if (status == XET_DONE) {
        return XET_CLI_GONE;
    }

    while (status == XET_OK && rc == XET_CLI_OK) {
        status = storage->ops->next(&list, &item, &error);

        if (status == XET_OK && item.name[0] != '.') {
            rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED
                                     : handler(ctx, item.name);
        }
    }

    xet_store_list_close(&list);

    return (status == XET_OK || status == XET_DONE)
           ? rc : xet_cli_storage_rc(status, &error);
}


int
xet_cli_storage_empty(xet_store_t *storage, const char *const *but, int *empty)
{
    xet_status_t       status;
    xet_store_list_t   list;
    xet_store_item_t   item;
    xet_store_error_t  error;

    *empty = 1;
    status = xet_store_list_open(&list, storage, storage->s3 ? "" : ".",
                                 &error);

    while (status == XET_OK && *empty && !xet_cli_interrupted) {
        status = storage->ops->next(&list, &item, &error);

        if (status == XET_OK) {
            *empty = xet_cli_storage_but(&list, item.name, but);
        }
    }

    xet_store_list_close(&list);

    if (xet_cli_interrupted) {
        return XET_CLI_INTERRUPTED;
    }

    return (status == XET_DONE) ? XET_CLI_OK
                                : xet_cli_storage_rc(status, &error);
}


/*
 * Returns 1 if the array "but" contains the name, or a folder that contains
 * the name; else 0.  If the storage is a folder, also returns 1 for
 * "lost+found".
 *
 * In a bucket, the listing then skips the remaining names of that folder: it
 * continues after "folder/~~~~", because no name in the folder sorts after
 * that.
 */

static int
xet_cli_storage_but(xet_store_list_t *list, const char *name,
    const char *const *but)
{
    int     i;
    char    behind[XET_CLI_STORAGE_NAME];
    size_t  len;

    if (list->store->s3 == NULL && strcmp(name, "lost+found") == 0) {
        return 1;
    }

    len = strcspn(name, "/");

    for (i = 0; but[i]; i++) {

        if (strlen(but[i]) != len || strncmp(name, but[i], len) != 0) {
            continue;
        }

        snprintf(behind, sizeof(behind), "%s/~~~~", but[i]);

        if (name[len] == '/' && strcmp(behind, name) > 0) {
            strcpy(list->after, behind);
            list->i = list->n;
            list->last = 0;
        }

        return 1;
    }

    return 0;
}


int
xet_cli_storage_stat(xet_store_t *storage, const char *name,
    xet_store_item_t *item)
{
    xet_store_error_t  error;

    memset(item, 0, sizeof(xet_store_item_t));
    item->name = name;

    storage->ops->stat(storage, item, 1, &error);

    return (item->status == XET_STORE_DAMAGED)
           ? XET_CLI_GONE : xet_cli_storage_rc(item->status, &error);
}


int
xet_cli_storage_link(xet_store_t *storage, const char *from, const char *to)
{
    int                rc;
    xet_store_error_t  error;

    rc = xet_cli_storage_rc(storage->ops->link(storage, from, to, &error),
                            &error);

    return (rc == XET_CLI_THERE)
           ? xet_cli_fail(XET_CLI_ERROR, to, strerror(EEXIST)) : rc;
}


int
xet_cli_storage_back(xet_store_t *storage, const char *quarantine, const char
    *name)
{
    xet_store_error_t  error;

    return storage->ops->back ? xet_cli_storage_rc(storage->ops->back(storage,
        quarantine, name, &error), &error) : XET_CLI_OK;
}


int
xet_cli_storage_remove(xet_store_t *storage, const char *name)
{
    xet_store_error_t  error;

    return xet_cli_storage_rc(xet_store_remove(storage, name, &error), &error);
}


int
xet_cli_storage_remove_all(xet_store_t *storage,
    char (*names)[XET_CLI_STORAGE_NAME], size_t n)
{
    size_t             i;
    xet_store_item_t   items[XET_CLI_STORAGE_MANY];
    xet_store_error_t  error;

    memset(items, 0, sizeof(items));

    for (i = 0; i < n; i++) {
        items[i].name = names[i];
    }

    return xet_cli_storage_rc(storage->ops->remove(storage, items, n, &error),
                              &error);
}


int
xet_cli_storage_sync(xet_store_t *storage, const char *folder)
{
    xet_store_error_t  error;

    return storage->ops->sync ? xet_cli_storage_rc(storage->ops->sync(storage,
                                                                      folder,
                                                                      &error),
                                                   &error) : XET_CLI_OK;
}


int
xet_cli_storage_sweep(xet_store_t *storage, uint64_t age)
{
    size_t             n;
    xet_store_error_t  error;

    return xet_cli_storage_rc(storage->ops->sweep(storage, age, &n, &error),
                              &error);
}


int
xet_cli_storage_make(xet_store_t *storage, const char *folder)
{
    char  path[PATH_MAX];

    if (storage->s3) {
        return XET_CLI_OK;
    }

    snprintf(path, sizeof(path), "%s/%s", storage->name, folder);

    if (mkdir(path, 0750) != 0) {
        return (errno == EEXIST) ? XET_CLI_OK : xet_cli_fail_errno(path);
    }

    return (storage->uid != (uid_t) -1
            && chown(path, storage->uid, storage->gid) != 0)
           ? xet_cli_fail_errno(path) : XET_CLI_OK;
}


int
xet_cli_storage_folders(xet_store_t *storage)
{
    xet_store_error_t  error;

    return xet_cli_storage_rc(storage->ops->folders(storage, storage->uid,
                                                    storage->gid, &error),
                              &error);
}


int
xet_cli_storage_settle(xet_store_t *storage)
{
    int       rc;
    char      folder[XET_CLI_STORAGE_NAME];
    unsigned  i;

    rc = xet_cli_storage_sync(storage, "tmp");

    for (i = 0; i < XET_STORE_FOLDERS && rc == XET_CLI_OK; i++) {
        snprintf(folder, sizeof(folder), "xorbs/" XET_STORE_NAMESPACE "/%02x",
                 i);
        rc = xet_cli_storage_sync(storage, folder);
    }

    rc = rc ? rc : xet_cli_storage_sync(storage, "xorbs/" XET_STORE_NAMESPACE);
    rc = rc ? rc : xet_cli_storage_sync(storage, "xorbs");

    return rc ? rc : xet_cli_storage_sync(storage, ".");
}


int
xet_cli_storage_lock(xet_store_t *storage, const char *name, int exclusive,
    int *had)
{
    xet_status_t       status;
    xet_store_error_t  error;

    status = storage->ops->lock
             ? storage->ops->lock(storage, name, exclusive, &error) : XET_OK;

    *had = (status != XET_AGAIN);

    return *had ? xet_cli_storage_rc(status, &error) : XET_CLI_OK;
}


int
xet_cli_reader_open(xet_store_t *storage, const char *name,
    xet_store_reader_t **reader)
{
    xet_status_t         status;
    xet_store_error_t    error;
    xet_store_reader_t  *r;

    *reader = NULL;

    r = malloc(sizeof(xet_store_reader_t));

    if (r == NULL) {
        return xet_cli_no_memory();
    }

    xet_store_reader_init(r, storage);
    snprintf(r->name, sizeof(r->name), "%s", name);

    status = storage->ops->open(r, &error);

    if (status == XET_OK) {
        status = storage->ops->size(r, &error);
    }

    if (status != XET_OK) {
        xet_cli_reader_close(r);
        return xet_cli_storage_unread(status, &error);
    }

    *reader = r;

    return XET_CLI_OK;
}


/*
 * In a bucket, a sequential read fetches up to XET_CLI_STORAGE_AHEAD bytes; a
 * read at any other offset fetches only len bytes.
 */

int
xet_cli_reader_read(xet_store_reader_t *reader, uint8_t *buf, size_t len,
    uint64_t offset, size_t *n)
{
    int                rc;
    uint64_t           left, ahead;
    xet_status_t       status;
    xet_store_error_t  error;

    *n = 0;

    left = (offset < reader->size) ? reader->size - offset : 0;
    len = (len < left) ? len : (size_t) left;

    if (len == 0) {
        return XET_CLI_OK;
    }

    if (offset < reader->start || offset + len > reader->end) {
        ahead = (offset >= reader->start && offset <= reader->end
                 && len < XET_CLI_STORAGE_AHEAD)
                ? XET_CLI_STORAGE_AHEAD : len;

        xet_store_reader_ahead(reader, offset,
                               offset + ((ahead < left) ? ahead : left));
    }

    status = reader->store->ops->read(reader, buf, len, offset, &error);

    if (status == XET_OK) {
        *n = len;
        return XET_CLI_OK;
    }

    rc = xet_cli_storage_unread(status, &error);

    /* the file was removed after it was opened */

    if (rc == XET_CLI_GONE) {
        errno = ENOENT;
        rc = XET_CLI_UNREADABLE;
    }

    return rc;
}


void
xet_cli_reader_close(xet_store_reader_t *reader)
{
    int  err;

    if (reader) {
        err = errno;
        xet_store_reader_close(reader);
        free(reader);
        errno = err;
    }
}


int
xet_cli_storage_line(xet_store_t *storage, const char *name, char *line,
    size_t size)
{
    size_t             n;
    xet_status_t       status;
    xet_store_error_t  error;

    n = size - 1;
    status = storage->ops->small(storage, name, line, &n, &error);

    line[(status == XET_OK) ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';

    return (status == XET_OK && n == 0) ? XET_CLI_GONE :
        xet_cli_storage_unread(status, &error);
}


int
xet_cli_storage_fetch(xet_store_t *storage, const char *name, int *fd)
{
    int                  rc;
    xet_store_reader_t  *reader;

    *fd = -1;

    rc = xet_cli_reader_open(storage, name, &reader);

    if (reader == NULL) {
        return rc;
    }

    if (reader->fd >= 0) {
        *fd = reader->fd;
        reader->fd = -1;

    } else {
        *fd = xet_cli_output_scratch(NULL);

        rc = (*fd < 0) ? XET_CLI_ERROR
                       : xet_cli_storage_download(reader, *fd, name);
    }

    xet_cli_reader_close(reader);

    if (rc != XET_CLI_OK && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }

    return rc;
}


static int
xet_cli_storage_download(xet_store_reader_t *reader, int fd, const char *name)
{
    int        rc;
    size_t     n;
    uint8_t   *buf;
    uint64_t   offset;

    buf = malloc(XET_CLI_STORAGE_FETCH);

    if (buf == NULL) {
        return xet_cli_no_memory();
    }

    offset = 0;

    do {
        rc = xet_cli_interrupted
             ? XET_CLI_INTERRUPTED
             : xet_cli_reader_read(reader, buf, XET_CLI_STORAGE_FETCH, offset,
                                   &n);

        if (rc == XET_CLI_OK) {
            rc = xet_cli_output_write(fd, name, buf, n);
            offset += n;
        }

    } while (rc == XET_CLI_OK && n == XET_CLI_STORAGE_FETCH);

    free(buf);

    return (rc == XET_CLI_OK && lseek(fd, 0, SEEK_SET) != 0)
           ? xet_cli_fail_errno(name) : rc;
}


int
xet_cli_writer_open(xet_store_t *storage, const char *name,
    xet_store_writer_t **writer)
{
    xet_store_error_t  error;

    return xet_cli_storage_rc(xet_store_writer_open(storage, name, writer,
                                                    &error), &error);
}


int
xet_cli_writer_write(xet_store_writer_t *writer, const uint8_t *data,
    size_t len)
{
    xet_store_error_t  error;

    return xet_cli_storage_rc(xet_store_writer_write(writer, data, len, &error),
                              &error);
}


int
xet_cli_writer_keep(xet_store_writer_t *writer, int replace)
{
    int                rc;
    xet_store_error_t  error;

    rc = xet_cli_storage_rc(writer->store->ops->keep(writer, writer->name,
                                                     replace, 1, &error),
                            &error);

    xet_cli_writer_drop(writer);

    return rc;
}


void
xet_cli_writer_drop(xet_store_writer_t *writer)
{
    xet_store_error_t  error;

    if (writer) {
        (void) xet_store_writer_close(writer, &error);
    }
}


int
xet_cli_storage_put(xet_store_t *storage, const char *name, const char *text,
    int replace)
{
    xet_store_error_t  error;

    return xet_cli_storage_rc(xet_store_put(storage, name, text, strlen(text),
                                            replace, &error),
                              &error);
}
