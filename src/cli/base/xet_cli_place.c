
/*
 * Places: what is the same for a folder and a bucket.
 */


#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_place.h"


#define XET_CLI_PLACE_FETCH  (1024 * 1024)


static int xet_cli_place_local(const xet_cli_place_t *place);
static int xet_cli_place_writer(xet_cli_place_t *place, const char *name,
    xet_cli_writer_t **writer);
static int xet_cli_place_download(xet_cli_reader_t *reader, int fd,
    const char *name);
static int xet_cli_place_text(xet_cli_place_t *place, const char *name,
    const char *text, int replace);


xet_cli_place_t *
xet_cli_place_open(const char *text, int flags, int *rc)
{
    *rc = XET_CLI_OK;

    return (strncmp(text, "s3://", 5) == 0)
           ? xet_cli_bucket_ops.open(text, flags, rc)
           : xet_cli_folder_ops.open(text, flags, rc);
}


void
xet_cli_place_close(xet_cli_place_t *place)
{
    if (place) {
        free(place->name);
        free(place->id);
        place->ops->close(place);
    }
}


const char *
xet_cli_place_name(const xet_cli_place_t *place)
{
    return place->name;
}


static int
xet_cli_place_local(const xet_cli_place_t *place)
{
    return place->ops == &xet_cli_folder_ops;
}


int
xet_cli_place_same(const xet_cli_place_t *one, const xet_cli_place_t *two)
{
    return strcmp(one->id, two->id) == 0;
}


unsigned
xet_cli_place_parallel(const xet_cli_place_t *place)
{
    return place->parallel;
}


unsigned
xet_cli_place_batch(const xet_cli_place_t *place)
{
    return place->batch;
}


int
xet_cli_place_identity(xet_cli_place_t *place, char identity[XET_CLI_IDENTITY])
{
    int  rc;

    rc = xet_cli_place_line(place, "identity", identity, XET_CLI_IDENTITY);

    /* a file that a disk can't read is none, as one that is not there */

    return (rc == XET_CLI_GONE || rc == XET_CLI_UNREADABLE) ? XET_CLI_OK : rc;
}


int
xet_cli_place_still(xet_cli_place_t *place, const char *identity)
{
    int   rc;
    char  found[XET_CLI_IDENTITY];

    rc = xet_cli_place_identity(place, found);

    if (rc != XET_CLI_OK || strcmp(found, identity) == 0) {
        return rc;
    }

    return xet_cli_fail(XET_CLI_ERROR, place->name,
                        xet_cli_place_local(place)
                        ? "this is not the store any more, is its disk mounted?"
                        : "this is not the store any more, has somebody"
                          " emptied or replaced it?");
}


int
xet_cli_place_bare(const xet_cli_place_t *place)
{
    return xet_cli_fail(XET_CLI_ERROR, place->name,
                        xet_cli_place_local(place)
                        ? "the folder has no identity, is its disk mounted?"
                        : "the bucket has no identity below this prefix, are"
                          " these the right ones?");
}


int
xet_cli_place_other(const xet_cli_place_t *place)
{
    return xet_cli_fail(XET_CLI_ERROR, place->name,
                        "this is not the store that the database describes");
}


const char *
xet_cli_place_copy(char name[XET_CLI_PLACE_NAME], const xet_hash_t *hash,
    uint32_t tag)
{
    char  text[XET_XORB_NAME_MAX + 1];

    *xet_xorb_name_print((uint8_t *) text, hash, tag) = '\0';

    snprintf(name, XET_CLI_PLACE_NAME, "xorbs/default/%.2s/%s", text, text);

    return name;
}


int
xet_cli_place_list(xet_cli_place_t *place, const char *folder,
    xet_cli_place_name_pt handler, void *ctx)
{
    return place->ops->list(place, folder, handler, ctx);
}


int
xet_cli_place_stat(xet_cli_place_t *place, const char *name,
    xet_cli_entry_t *entry)
{
    return place->ops->stat(place, name, entry);
}


int
xet_cli_place_link(xet_cli_place_t *place, const char *from, const char *to)
{
    return place->ops->link(place, from, to);
}


int
xet_cli_place_back(xet_cli_place_t *place, const char *aside,
    const char *name)
{
    return place->ops->back(place, aside, name);
}


int
xet_cli_place_remove(xet_cli_place_t *place, const char *name)
{
    return place->ops->remove(place, name);
}


int
xet_cli_place_remove_all(xet_cli_place_t *place,
    char (*names)[XET_CLI_PLACE_NAME], size_t n)
{
    return place->ops->remove_all(place, names, n);
}


int
xet_cli_place_sync(xet_cli_place_t *place, const char *folder)
{
    return place->ops->sync(place, folder);
}


int
xet_cli_place_sweep(xet_cli_place_t *place, uint64_t age)
{
    return place->ops->sweep(place, age);
}


int
xet_cli_place_make(xet_cli_place_t *place, const char *folder)
{
    return place->ops->make(place, folder);
}


int
xet_cli_place_folders(xet_cli_place_t *place, int make)
{
    return place->ops->folders(place, make);
}


int
xet_cli_place_settled(xet_cli_place_t *place)
{
    return place->ops->settled(place);
}


int
xet_cli_place_lock(xet_cli_place_t *place, const char *name, int exclusive,
    int *had)
{
    return place->ops->lock(place, name, exclusive, had);
}


int
xet_cli_place_empty(xet_cli_place_t *place, const char *const *but,
    int *empty)
{
    return place->ops->empty(place, but, empty);
}


int
xet_cli_reader_open(xet_cli_place_t *place, const char *name,
    xet_cli_reader_t **reader)
{
    int                rc;
    xet_cli_reader_t  *r;

    *reader = NULL;

    r = calloc(1, sizeof(xet_cli_reader_t));

    if (r == NULL) {
        (void) xet_cli_no_memory();
        return XET_CLI_ERROR;
    }

    r->place = place;
    r->fd = -1;

    rc = place->ops->read_open(r, name);

    if (rc != XET_CLI_OK) {
        free(r);
        return rc;
    }

    *reader = r;

    return XET_CLI_OK;
}


uint64_t
xet_cli_reader_size(const xet_cli_reader_t *reader)
{
    return reader->size;
}


int
xet_cli_reader_read(xet_cli_reader_t *reader, uint8_t *buf, size_t len,
    uint64_t offset, size_t *n)
{
    return reader->place->ops->read(reader, buf, len, offset, n);
}


void
xet_cli_reader_close(xet_cli_reader_t *reader)
{
    if (reader) {
        reader->place->ops->read_close(reader);
        free(reader);
    }
}


int
xet_cli_place_line(xet_cli_place_t *place, const char *name, char *line,
    size_t size)
{
    int                rc, error;
    size_t             n;
    xet_cli_reader_t  *reader;

    *line = '\0';

    rc = xet_cli_reader_open(place, name, &reader);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_reader_read(reader, (uint8_t *) line, size - 1, 0, &n);

    error = errno;
    xet_cli_reader_close(reader);

    /* somebody has removed it since it was opened */

    if (rc == XET_CLI_UNREADABLE && (error == ENOENT || error == ESTALE)) {
        rc = XET_CLI_GONE;
    }

    errno = error;

    line[(rc == XET_CLI_OK) ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';

    return (rc == XET_CLI_OK && n == 0) ? XET_CLI_GONE : rc;
}


int
xet_cli_place_fetch(xet_cli_place_t *place, const char *name, int *fd)
{
    int                rc;
    xet_cli_reader_t  *reader;

    *fd = -1;

    rc = xet_cli_reader_open(place, name, &reader);

    if (rc != XET_CLI_OK) {
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
xet_cli_place_download(xet_cli_reader_t *reader, int fd, const char *name)
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
xet_cli_writer_open(xet_cli_place_t *place, const char *name,
    xet_cli_writer_t **writer)
{
    int  rc;

    rc = xet_cli_place_writer(place, name, writer);

    if (rc == XET_CLI_OK) {
        rc = place->ops->write_open(*writer);
    }

    if (rc != XET_CLI_OK) {
        xet_cli_writer_drop(*writer);
        *writer = NULL;
    }

    return rc;
}


static int
xet_cli_place_writer(xet_cli_place_t *place, const char *name,
    xet_cli_writer_t **writer)
{
    *writer = calloc(1, sizeof(xet_cli_writer_t));

    if (*writer == NULL) {
        (void) xet_cli_no_memory();
        return XET_CLI_ERROR;
    }

    (*writer)->place = place;
    (*writer)->fd = -1;
    (*writer)->name = strdup(name);

    return (*writer)->name ? XET_CLI_OK : xet_cli_no_memory();
}


int
xet_cli_writer_fd(const xet_cli_writer_t *writer)
{
    return writer->fd;
}


int
xet_cli_writer_write(xet_cli_writer_t *writer, const uint8_t *data,
    size_t len)
{
    int  rc;

    rc = xet_cli_output_write(writer->fd, writer->name, data, len);

    if (rc == XET_CLI_OK) {
        writer->size += len;
        writer->place->ops->write_grown(writer);
    }

    return rc;
}


int
xet_cli_writer_keep(xet_cli_writer_t *writer, int replace)
{
    int  rc;

    rc = writer->place->ops->write_keep(writer, replace);

    xet_cli_writer_drop(writer);

    return rc;
}


void
xet_cli_writer_drop(xet_cli_writer_t *writer)
{
    if (writer) {
        writer->place->ops->write_close(writer);

        if (writer->fd >= 0) {
            close(writer->fd);
        }

        free(writer->temp);
        free(writer->name);
        free(writer);
    }
}


int
xet_cli_place_put(xet_cli_place_t *place, const char *name, const char *text)
{
    return xet_cli_place_text(place, name, text, 1);
}


int
xet_cli_place_put_new(xet_cli_place_t *place, const char *name,
    const char *text)
{
    return xet_cli_place_text(place, name, text, 0);
}


static int
xet_cli_place_text(xet_cli_place_t *place, const char *name, const char *text,
    int replace)
{
    int                rc;
    char               folder[XET_CLI_PLACE_NAME], *slash;
    xet_cli_writer_t  *writer;

    rc = xet_cli_writer_open(place, name, &writer);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_writer_write(writer, (const uint8_t *) text, strlen(text));

    if (rc != XET_CLI_OK) {
        xet_cli_writer_drop(writer);
        return rc;
    }

    rc = xet_cli_writer_keep(writer, replace);

    snprintf(folder, sizeof(folder), "%s", name);
    slash = strrchr(folder, '/');

    if (slash) {
        *slash = '\0';
    }

    return (rc == XET_CLI_OK)
           ? xet_cli_place_sync(place, slash ? folder : ".") : rc;
}
