
/*
 * Stores and backups for the command line: src/store does the work; errors are
 * reported here, with their exit codes.
 */


#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_bucket.h"


#define XET_CLI_PLACE_FETCH  (1024 * 1024)
#define XET_CLI_PLACE_AHEAD  (4 * 1024 * 1024)  /* of a bucket */


static xet_store_t *xet_cli_place_folder(const char *text, int flags,
    int *rc);
static int xet_cli_place_begin(xet_store_t *place, int flags);
static xet_store_t *xet_cli_place_bucket(const char *text, int *rc);
static int xet_cli_place_rc(xet_status_t status,
    const xet_store_error_t *error);
static int xet_cli_place_unread(xet_status_t status,
    const xet_store_error_t *error);
static int xet_cli_place_but(xet_store_list_t *list, const char *name,
    const char *const *but);
static int xet_cli_place_download(xet_store_reader_t *reader, int fd,
    const char *name);


xet_store_t *
xet_cli_place_open(const char *text, int flags, int *rc)
{
    *rc = XET_CLI_OK;

    return (strncmp(text, "s3://", 5) == 0)
           ? xet_cli_place_bucket(text, rc)
           : xet_cli_place_folder(text, flags, rc);
}


static xet_store_t *
xet_cli_place_folder(const char *text, int flags, int *rc)
{
    xet_store_t  *place;

    place = xet_store_files(text);

    *rc = place ? xet_cli_place_begin(place, flags) : xet_cli_no_memory();

    if (*rc != XET_CLI_OK) {
        xet_store_destroy(place);
        return NULL;
    }

    return place;
}


static int
xet_cli_place_begin(xet_store_t *place, int flags)
{
    int          fd, rc;
    struct stat  st;

    if ((flags & XET_CLI_PLACE_MAKE) && mkdir(place->name, 0750) != 0
        && errno != EEXIST)
    {
        return xet_cli_fail_errno(place->name);
    }

    fd = open(place->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = xet_cli_fail_errno(place->name);

        if (fd >= 0) {
            close(fd);
        }

        return rc;
    }

    close(fd);

    place->named = 1;
    place->lax = 1;
    place->waits = ((flags & XET_CLI_PLACE_WAITS) != 0);

    if ((flags & XET_CLI_PLACE_OWNED) && geteuid() == 0) {
        place->uid = st.st_uid;
        place->gid = st.st_gid;
    }

    return XET_CLI_OK;
}


/* temp_path may be that of the server: it is used only if it is writable. */

static xet_store_t *
xet_cli_place_bucket(const char *text, int *rc)
{
    const char             *temp;
    xet_store_t            *place;
    xet_s3_error_t          error;
    xet_cli_bucket_conf_t   conf;

    place = NULL;
    *rc = xet_cli_bucket_conf(&conf, text);

    if (*rc == XET_CLI_OK) {
        temp = conf.temp_path;

        if (temp == NULL || access(temp, W_OK | X_OK) != 0) {
            temp = getenv("TMPDIR");
        }

        place = xet_store_s3(&conf.s3, (temp && *temp) ? temp : "/var/tmp",
                             &error);
        if (place == NULL) {
            *rc = error.text[0] ? xet_cli_fail(XET_CLI_USAGE, conf.s3.url,
                                               error.text)
                                : xet_cli_no_memory();
        }
    }

    free(conf.words);

    return place;
}


/* Maps a status to an exit code, and reports errors that no caller handles. */

static int
xet_cli_place_rc(xet_status_t status, const xet_store_error_t *error)
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


/* The same for reads: the caller may take an errno for damage of the file. */

static int
xet_cli_place_unread(xet_status_t status, const xet_store_error_t *error)
{
    if (status == XET_STORE_DAMAGED) {
        errno = EUCLEAN;

    } else if (status == XET_AGAIN) {
        errno = EIO;

    } else if (status != XET_OK && status != XET_DONE && error->err) {
        errno = error->err;

    } else {
        return xet_cli_place_rc(status, error);
    }

    return XET_CLI_UNREADABLE;
}


int
xet_cli_place_identity(xet_store_t *place, char identity[XET_CLI_IDENTITY])
{
    xet_status_t       status;
    xet_store_error_t  error;

    status = xet_store_identity(place, identity, &error);

    return (status == XET_DONE) ? XET_CLI_OK
                                : xet_cli_place_rc(status, &error);
}


int
xet_cli_place_still(xet_store_t *place, const char *identity)
{
    int   rc;
    char  found[XET_CLI_IDENTITY];

    rc = xet_cli_place_identity(place, found);

    if (rc != XET_CLI_OK || strcmp(found, identity) == 0) {
        return rc;
    }

    return xet_cli_fail(XET_CLI_ERROR, place->name, place->s3
                        ? "no longer the store: was the bucket emptied or "
                          "replaced?"
                        : "no longer the store: is the disk mounted?");
}


int
xet_cli_place_bare(const xet_store_t *place)
{
    return xet_cli_fail(XET_CLI_ERROR, place->name, place->s3
                        ? "no store identity under this prefix; check bucket "
                          "and prefix"
                        : "no store identity in this folder; is the disk "
                          "mounted?");
}


int
xet_cli_place_other(const xet_store_t *place)
{
    return xet_cli_fail(XET_CLI_ERROR, place->name,
                        "is not the store of this database");
}


int
xet_cli_place_list(xet_store_t *place, const char *folder,
    xet_cli_place_name_pt handler, void *ctx)
{
    int                rc;
    xet_status_t       status;
    xet_store_list_t   list;
    xet_store_item_t   item;
    xet_store_error_t  error;

    rc = XET_CLI_OK;
    status = xet_store_list_open(&list, place, folder, &error);

    if (status == XET_DONE) {
        return XET_CLI_GONE;
    }

    while (status == XET_OK && rc == XET_CLI_OK) {
        status = place->ops->next(&list, &item, &error);

        if (status == XET_OK && item.name[0] != '.') {
            rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED
                                     : handler(ctx, item.name);
        }
    }

    xet_store_list_close(&list);

    return (status == XET_OK || status == XET_DONE)
           ? rc : xet_cli_place_rc(status, &error);
}


int
xet_cli_place_empty(xet_store_t *place, const char *const *but, int *empty)
{
    xet_status_t       status;
    xet_store_list_t   list;
    xet_store_item_t   item;
    xet_store_error_t  error;

    *empty = 1;
    status = xet_store_list_open(&list, place, place->s3 ? "" : ".", &error);

    while (status == XET_OK && *empty && !xet_cli_interrupted) {
        status = place->ops->next(&list, &item, &error);

        if (status == XET_OK) {
            *empty = xet_cli_place_but(&list, item.name, but);
        }
    }

    xet_store_list_close(&list);

    if (xet_cli_interrupted) {
        return XET_CLI_INTERRUPTED;
    }

    return (status == XET_DONE) ? XET_CLI_OK
                                : xet_cli_place_rc(status, &error);
}


/*
 * Whether a name is in the list, or in a folder of the list.  In a bucket the
 * listing then continues after that folder: none of its names sorts after
 * "~~~~".
 */

static int
xet_cli_place_but(xet_store_list_t *list, const char *name,
    const char *const *but)
{
    int     i;
    char    behind[XET_CLI_PLACE_NAME];
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
xet_cli_place_stat(xet_store_t *place, const char *name,
    xet_store_item_t *item)
{
    xet_store_error_t  error;

    memset(item, 0, sizeof(xet_store_item_t));
    item->name = name;

    place->ops->stat(place, item, 1, &error);

    return (item->status == XET_STORE_DAMAGED)
           ? XET_CLI_GONE : xet_cli_place_rc(item->status, &error);
}


int
xet_cli_place_link(xet_store_t *place, const char *from, const char *to)
{
    int                rc;
    xet_store_error_t  error;

    rc = xet_cli_place_rc(place->ops->link(place, from, to, &error), &error);

    return (rc == XET_CLI_THERE)
           ? xet_cli_fail(XET_CLI_ERROR, to, strerror(EEXIST)) : rc;
}


int
xet_cli_place_back(xet_store_t *place, const char *aside, const char *name)
{
    xet_store_error_t  error;

    return place->ops->back
           ? xet_cli_place_rc(place->ops->back(place, aside, name, &error),
                              &error)
           : XET_CLI_OK;
}


int
xet_cli_place_remove(xet_store_t *place, const char *name)
{
    xet_store_error_t  error;

    return xet_cli_place_rc(xet_store_remove(place, name, &error), &error);
}


int
xet_cli_place_remove_all(xet_store_t *place,
    char (*names)[XET_CLI_PLACE_NAME], size_t n)
{
    size_t             i;
    xet_store_item_t   items[XET_CLI_PLACE_MANY];
    xet_store_error_t  error;

    memset(items, 0, sizeof(items));

    for (i = 0; i < n; i++) {
        items[i].name = names[i];
    }

    return xet_cli_place_rc(place->ops->remove(place, items, n, &error),
                            &error);
}


int
xet_cli_place_sync(xet_store_t *place, const char *folder)
{
    xet_store_error_t  error;

    return place->ops->sync
           ? xet_cli_place_rc(place->ops->sync(place, folder, &error), &error)
           : XET_CLI_OK;
}


int
xet_cli_place_sweep(xet_store_t *place, uint64_t age)
{
    size_t             n;
    xet_store_error_t  error;

    return xet_cli_place_rc(place->ops->sweep(place, age, &n, &error), &error);
}


int
xet_cli_place_make(xet_store_t *place, const char *folder)
{
    char  path[PATH_MAX];

    if (place->s3) {
        return XET_CLI_OK;
    }

    snprintf(path, sizeof(path), "%s/%s", place->name, folder);

    if (mkdir(path, 0750) != 0) {
        return (errno == EEXIST) ? XET_CLI_OK : xet_cli_fail_errno(path);
    }

    return (place->uid != (uid_t) -1
            && chown(path, place->uid, place->gid) != 0)
           ? xet_cli_fail_errno(path) : XET_CLI_OK;
}


int
xet_cli_place_folders(xet_store_t *place)
{
    xet_store_error_t  error;

    return xet_cli_place_rc(place->ops->folders(place, place->uid, place->gid,
                                                &error),
                            &error);
}


int
xet_cli_place_settle(xet_store_t *place)
{
    int       rc;
    char      folder[XET_CLI_PLACE_NAME];
    unsigned  i;

    rc = xet_cli_place_sync(place, "tmp");

    for (i = 0; i < XET_STORE_FOLDERS && rc == XET_CLI_OK; i++) {
        snprintf(folder, sizeof(folder), "xorbs/" XET_STORE_NAMESPACE "/%02x",
                 i);
        rc = xet_cli_place_sync(place, folder);
    }

    rc = rc ? rc : xet_cli_place_sync(place, "xorbs/" XET_STORE_NAMESPACE);
    rc = rc ? rc : xet_cli_place_sync(place, "xorbs");

    return rc ? rc : xet_cli_place_sync(place, ".");
}


int
xet_cli_place_lock(xet_store_t *place, const char *name, int exclusive,
    int *had)
{
    xet_status_t       status;
    xet_store_error_t  error;

    status = place->ops->lock
             ? place->ops->lock(place, name, exclusive, &error) : XET_OK;

    *had = (status != XET_AGAIN);

    return *had ? xet_cli_place_rc(status, &error) : XET_CLI_OK;
}


int
xet_cli_reader_open(xet_store_t *place, const char *name,
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

    xet_store_reader_init(r, place);
    snprintf(r->name, sizeof(r->name), "%s", name);

    status = place->ops->open(r, &error);

    if (status == XET_OK) {
        status = place->ops->size(r, &error);
    }

    if (status != XET_OK) {
        xet_cli_reader_close(r);
        return xet_cli_place_unread(status, &error);
    }

    *reader = r;

    return XET_CLI_OK;
}


/* From a bucket, sequential reads fetch ahead; reads elsewhere do not. */

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
                 && len < XET_CLI_PLACE_AHEAD)
                ? XET_CLI_PLACE_AHEAD : len;

        xet_store_reader_ahead(reader, offset,
                               offset + ((ahead < left) ? ahead : left));
    }

    status = reader->store->ops->read(reader, buf, len, offset, &error);

    if (status == XET_OK) {
        *n = len;
        return XET_CLI_OK;
    }

    rc = xet_cli_place_unread(status, &error);

    /* it was removed after it was opened */

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
xet_cli_place_line(xet_store_t *place, const char *name, char *line,
    size_t size)
{
    size_t             n;
    xet_status_t       status;
    xet_store_error_t  error;

    n = size - 1;
    status = place->ops->small(place, name, line, &n, &error);

    line[(status == XET_OK) ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';

    return (status == XET_OK && n == 0) ? XET_CLI_GONE
                                        : xet_cli_place_unread(status, &error);
}


int
xet_cli_place_fetch(xet_store_t *place, const char *name, int *fd)
{
    int                  rc;
    xet_store_reader_t  *reader;

    *fd = -1;

    rc = xet_cli_reader_open(place, name, &reader);

    if (reader == NULL) {
        return rc;
    }

    if (reader->fd >= 0) {
        *fd = reader->fd;
        reader->fd = -1;

    } else {
        *fd = xet_cli_output_scratch(NULL);

        rc = (*fd < 0) ? XET_CLI_ERROR
                       : xet_cli_place_download(reader, *fd, name);
    }

    xet_cli_reader_close(reader);

    if (rc != XET_CLI_OK && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }

    return rc;
}


static int
xet_cli_place_download(xet_store_reader_t *reader, int fd, const char *name)
{
    int        rc;
    size_t     n;
    uint8_t   *buf;
    uint64_t   offset;

    buf = malloc(XET_CLI_PLACE_FETCH);

    if (buf == NULL) {
        return xet_cli_no_memory();
    }

    offset = 0;

    do {
        rc = xet_cli_interrupted
             ? XET_CLI_INTERRUPTED
             : xet_cli_reader_read(reader, buf, XET_CLI_PLACE_FETCH, offset,
                                   &n);

        if (rc == XET_CLI_OK) {
            rc = xet_cli_output_write(fd, name, buf, n);
            offset += n;
        }

    } while (rc == XET_CLI_OK && n == XET_CLI_PLACE_FETCH);

    free(buf);

    return (rc == XET_CLI_OK && lseek(fd, 0, SEEK_SET) != 0)
           ? xet_cli_fail_errno(name) : rc;
}


int
xet_cli_writer_open(xet_store_t *place, const char *name,
    xet_store_writer_t **writer)
{
    xet_store_error_t  error;

    return xet_cli_place_rc(xet_store_writer_open(place, name, writer, &error),
                            &error);
}


int
xet_cli_writer_write(xet_store_writer_t *writer, const uint8_t *data,
    size_t len)
{
    xet_store_error_t  error;

    return xet_cli_place_rc(xet_store_writer_write(writer, data, len, &error),
                            &error);
}


int
xet_cli_writer_keep(xet_store_writer_t *writer, int replace)
{
    int                rc;
    xet_store_error_t  error;

    rc = xet_cli_place_rc(writer->store->ops->keep(writer, writer->name,
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
xet_cli_place_put(xet_store_t *place, const char *name, const char *text,
    int replace)
{
    xet_store_error_t  error;

    return xet_cli_place_rc(xet_store_put(place, name, text, strlen(text),
                                          replace, &error),
                            &error);
}
