
/*
 * A place that is a bucket of an object store, or what begins with a prefix in
 * it.
 *
 * What is written lies in a file of this machine without a name until all of it
 * is there, and becomes an object as a whole.  Nothing is ever renamed.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xet_cli_bucket.h"
#include "xet_cli_place.h"


#define XET_CLI_BUCKET_NAMES     256   /* of one request */
#define XET_CLI_BUCKET_AHEAD     (4 * 1024 * 1024)
#define XET_CLI_BUCKET_PARALLEL  8


typedef struct {
    xet_cli_place_t   place;
    xet_s3_t         *s3;
    char             *temp_path;       /* NULL: where such files are */
} xet_cli_bucket_t;


static xet_cli_place_t *xet_cli_bucket_open(const char *text, int flags,
    int *rc);
static int xet_cli_bucket_begin(xet_cli_bucket_t *b,
    const xet_cli_bucket_conf_t *conf);
static void xet_cli_bucket_close(xet_cli_place_t *place);
static xet_s3_t *xet_cli_bucket_s3(xet_cli_place_t *place);
static int xet_cli_bucket_failed(xet_cli_place_t *place, const char *name,
    xet_s3_rc_t rc, const xet_s3_error_t *error);
static int xet_cli_bucket_list(xet_cli_place_t *place, const char *folder,
    xet_cli_place_name_pt handler, void *ctx);
static int xet_cli_bucket_empty(xet_cli_place_t *place,
    const char *const *but, int *empty);
static int xet_cli_bucket_but(const char *name, const char *const *but,
    char *after, size_t size);
static int xet_cli_bucket_stat(xet_cli_place_t *place, const char *name,
    xet_cli_entry_t *entry);
static int xet_cli_bucket_link(xet_cli_place_t *place, const char *from,
    const char *to);
static int xet_cli_bucket_back(xet_cli_place_t *place, const char *aside,
    const char *name);
static int xet_cli_bucket_remove(xet_cli_place_t *place, const char *name);
static int xet_cli_bucket_remove_all(xet_cli_place_t *place,
    char (*names)[XET_CLI_PLACE_NAME], size_t n);
static int xet_cli_bucket_sync(xet_cli_place_t *place, const char *folder);
static int xet_cli_bucket_sweep(xet_cli_place_t *place, uint64_t age);
static int xet_cli_bucket_make(xet_cli_place_t *place, const char *folder);
static int xet_cli_bucket_folders(xet_cli_place_t *place, int make);
static int xet_cli_bucket_settled(xet_cli_place_t *place);
static int xet_cli_bucket_lock(xet_cli_place_t *place, const char *name,
    int exclusive, int *had);
static int xet_cli_bucket_read_open(xet_cli_reader_t *reader,
    const char *name);
static int xet_cli_bucket_read(xet_cli_reader_t *reader, uint8_t *buf,
    size_t len, uint64_t offset, size_t *n);
static int xet_cli_bucket_ahead(xet_cli_reader_t *reader, uint64_t offset,
    size_t len);
static void xet_cli_bucket_read_close(xet_cli_reader_t *reader);
static int xet_cli_bucket_write_open(xet_cli_writer_t *writer);
static void xet_cli_bucket_write_grown(xet_cli_writer_t *writer);
static int xet_cli_bucket_write_keep(xet_cli_writer_t *writer, int replace);
static void xet_cli_bucket_write_close(xet_cli_writer_t *writer);


const xet_cli_place_ops_t  xet_cli_bucket_ops = {
    xet_cli_bucket_open,
    xet_cli_bucket_close,
    xet_cli_bucket_list,
    xet_cli_bucket_stat,
    xet_cli_bucket_link,
    xet_cli_bucket_back,
    xet_cli_bucket_remove,
    xet_cli_bucket_remove_all,
    xet_cli_bucket_sync,
    xet_cli_bucket_sweep,
    xet_cli_bucket_make,
    xet_cli_bucket_folders,
    xet_cli_bucket_settled,
    xet_cli_bucket_empty,
    xet_cli_bucket_lock,
    xet_cli_bucket_read_open,
    xet_cli_bucket_read,
    xet_cli_bucket_read_close,
    xet_cli_bucket_write_open,
    xet_cli_bucket_write_grown,
    xet_cli_bucket_write_keep,
    xet_cli_bucket_write_close
};


static xet_cli_place_t *
xet_cli_bucket_open(const char *text, int flags, int *rc)
{
    xet_cli_bucket_t       *b;
    xet_cli_bucket_conf_t   conf;

    *rc = xet_cli_bucket_conf(&conf, text);

    b = (*rc == XET_CLI_OK) ? calloc(1, sizeof(xet_cli_bucket_t)) : NULL;

    if (*rc == XET_CLI_OK) {
        *rc = b ? xet_cli_bucket_begin(b, &conf) : xet_cli_no_memory();
    }

    free(conf.words);

    if (*rc == XET_CLI_OK) {
        return &b->place;
    }

    if (b) {
        free(b->place.name);
        free(b->place.id);
        xet_cli_bucket_close(&b->place);
    }

    return NULL;
}


static int
xet_cli_bucket_begin(xet_cli_bucket_t *b, const xet_cli_bucket_conf_t *conf)
{
    int             temp;
    xet_s3_error_t  error;

    b->place.ops = &xet_cli_bucket_ops;
    b->place.batch = 1;
    b->place.parallel = (conf->s3.connections < XET_CLI_BUCKET_PARALLEL)
                        ? conf->s3.connections : XET_CLI_BUCKET_PARALLEL;

    b->place.name = strdup(conf->s3.url);

    /* of the server, it may be on another machine, or not for this user */

    temp = (conf->temp_path && access(conf->temp_path, W_OK | X_OK) == 0);

    if (temp) {
        b->temp_path = strdup(conf->temp_path);
    }

    if (asprintf(&b->place.id, "%s %s", conf->s3.endpoint, conf->s3.url) < 0) {
        b->place.id = NULL;
    }

    if (b->place.name == NULL || b->place.id == NULL
        || (temp && b->temp_path == NULL))
    {
        return xet_cli_no_memory();
    }

    b->s3 = xet_s3_create(&conf->s3, &error);

    return b->s3 ? XET_CLI_OK
                 : xet_cli_fail(XET_CLI_USAGE, conf->s3.url, error.text);
}


static void
xet_cli_bucket_close(xet_cli_place_t *place)
{
    xet_cli_bucket_t *b = (xet_cli_bucket_t *) place;

    xet_s3_destroy(b->s3);
    free(b->temp_path);
    free(b);
}


static xet_s3_t *
xet_cli_bucket_s3(xet_cli_place_t *place)
{
    return ((xet_cli_bucket_t *) place)->s3;
}


static int
xet_cli_bucket_failed(xet_cli_place_t *place, const char *name,
    xet_s3_rc_t rc, const xet_s3_error_t *error)
{
    int   code;
    char  path[XET_S3_URL_MAX];

    if (xet_cli_interrupted) {
        return XET_CLI_INTERRUPTED;
    }

    code = (rc == XET_S3_LOCAL || rc == XET_S3_CONF) ? XET_CLI_ERROR
                                                     : XET_CLI_NETWORK;

    snprintf(path, sizeof(path), "%s/%s", place->name, name);

    return xet_cli_fail(code, path, error->text);
}


static int
xet_cli_bucket_list(xet_cli_place_t *place, const char *folder,
    xet_cli_place_name_pt handler, void *ctx)
{
    int              rc;
    char             prefix[XET_CLI_PLACE_NAME], after[XET_S3_NAME_MAX];
    size_t           i, n;
    xet_s3_rc_t      s3rc;
    xet_s3_name_t   *names;
    xet_s3_error_t   error;

    names = malloc(XET_CLI_BUCKET_NAMES * sizeof(xet_s3_name_t));

    if (names == NULL) {
        return xet_cli_no_memory();
    }

    snprintf(prefix, sizeof(prefix), "%s/", folder);
    after[0] = '\0';

    do {
        rc = XET_CLI_OK;
        s3rc = xet_s3_list(xet_cli_bucket_s3(place), prefix, after, names,
                           XET_CLI_BUCKET_NAMES, &n, NULL, &error);

        if (s3rc != XET_S3_OK) {
            rc = xet_cli_bucket_failed(place, prefix, s3rc, &error);
            break;
        }

        for (i = 0; i < n && rc == XET_CLI_OK; i++) {
            rc = xet_cli_interrupted
                 ? XET_CLI_INTERRUPTED
                 : handler(ctx, names[i].name + strlen(prefix));
        }

        if (n) {
            strcpy(after, names[n - 1].name);
        }

    } while (rc == XET_CLI_OK && n == XET_CLI_BUCKET_NAMES);

    free(names);

    return rc;
}


static int
xet_cli_bucket_empty(xet_cli_place_t *place, const char *const *but,
    int *empty)
{
    char            after[XET_S3_NAME_MAX];
    size_t          n;
    xet_s3_rc_t     rc;
    xet_s3_name_t   name;
    xet_s3_error_t  error;

    after[0] = '\0';
    *empty = 1;

    do {
        rc = xet_s3_list(xet_cli_bucket_s3(place), "", after, &name, 1, &n,
                         NULL, &error);

        if (rc != XET_S3_OK) {
            return xet_cli_bucket_failed(place, "", rc, &error);
        }

        if (n) {
            *empty = xet_cli_bucket_but(name.name, but, after, sizeof(after));
        }

    } while (n && *empty && !xet_cli_interrupted);

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : XET_CLI_OK;
}


/*
 * Whether a name is one of these, or in a folder of these; after: where the
 * list goes on, behind the folder, of whose names none comes behind "~~~~".
 */

static int
xet_cli_bucket_but(const char *name, const char *const *but, char *after,
    size_t size)
{
    int     i;
    char    behind[XET_CLI_PLACE_NAME];
    size_t  len;

    snprintf(after, size, "%s", name);

    for (i = 0; but[i]; i++) {
        len = strlen(but[i]);

        if (strncmp(name, but[i], len) != 0) {
            continue;
        }

        if (name[len] == '\0') {
            return 1;
        }

        if (name[len] == '/') {
            snprintf(behind, sizeof(behind), "%s/~~~~", but[i]);

            if (strcmp(behind, name) > 0) {
                snprintf(after, size, "%s", behind);
            }

            return 1;
        }
    }

    return 0;
}


static int
xet_cli_bucket_stat(xet_cli_place_t *place, const char *name,
    xet_cli_entry_t *entry)
{
    int64_t          ahead;
    xet_s3_rc_t      rc;
    xet_s3_error_t   error;
    xet_s3_object_t  object;

    rc = xet_s3_head(xet_cli_bucket_s3(place), name, &object, &error);

    if (rc == XET_S3_NOT_FOUND) {
        return XET_CLI_GONE;
    }

    if (rc != XET_S3_OK) {
        return xet_cli_bucket_failed(place, name, rc, &error);
    }

    /* the age by the clock of the store, before the time by ours */

    ahead = object.now ? (int64_t) time(NULL) - object.now : 0;

    entry->size = object.size;
    entry->modified = object.modified + ahead;

    return XET_CLI_OK;
}


static int
xet_cli_bucket_link(xet_cli_place_t *place, const char *from, const char *to)
{
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    rc = xet_s3_copy(xet_cli_bucket_s3(place), from, to, 1, &error);

    if (rc == XET_S3_OK) {
        return XET_CLI_OK;
    }

    return (rc == XET_S3_NOT_FOUND)
           ? XET_CLI_GONE : xet_cli_bucket_failed(place, to, rc, &error);
}


static int
xet_cli_bucket_back(xet_cli_place_t *place, const char *aside,
    const char *name)
{
    return XET_CLI_OK;
}


static int
xet_cli_bucket_remove(xet_cli_place_t *place, const char *name)
{
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    rc = xet_s3_delete(xet_cli_bucket_s3(place), name, &error);

    return (rc == XET_S3_OK) ? XET_CLI_OK
                             : xet_cli_bucket_failed(place, name, rc, &error);
}


static int
xet_cli_bucket_remove_all(xet_cli_place_t *place,
    char (*names)[XET_CLI_PLACE_NAME], size_t n)
{
    size_t          i;
    xet_s3_rc_t     rc;
    xet_s3_item_t  *items;
    xet_s3_error_t  error;

    items = calloc(n + 1, sizeof(xet_s3_item_t));

    if (items == NULL) {
        return xet_cli_no_memory();
    }

    for (i = 0; i < n; i++) {
        items[i].name = names[i];
    }

    rc = xet_s3_delete_all(xet_cli_bucket_s3(place), items, n, &error);

    for (i = 0; i < n && items[i].rc == XET_S3_OK; i++) {
        /* void */
    }

    free(items);

    return (rc == XET_S3_OK)
           ? XET_CLI_OK
           : xet_cli_bucket_failed(place, names[i], rc, &error);
}


/* What the store has acknowledged is so. */

static int
xet_cli_bucket_sync(xet_cli_place_t *place, const char *folder)
{
    return XET_CLI_OK;
}


static int
xet_cli_bucket_sweep(xet_cli_place_t *place, uint64_t age)
{
    size_t          n;
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    rc = xet_s3_sweep(xet_cli_bucket_s3(place), "xorbs/", age, &n, &error);

    return (rc == XET_S3_OK)
           ? XET_CLI_OK : xet_cli_bucket_failed(place, "xorbs/", rc, &error);
}


static int
xet_cli_bucket_make(xet_cli_place_t *place, const char *folder)
{
    return XET_CLI_OK;
}


static int
xet_cli_bucket_folders(xet_cli_place_t *place, int make)
{
    return XET_CLI_OK;
}


static int
xet_cli_bucket_settled(xet_cli_place_t *place)
{
    return XET_CLI_OK;
}


static int
xet_cli_bucket_lock(xet_cli_place_t *place, const char *name, int exclusive,
    int *had)
{
    *had = 1;

    return XET_CLI_OK;
}


static int
xet_cli_bucket_read_open(xet_cli_reader_t *reader, const char *name)
{
    int              rc;
    xet_cli_entry_t  entry;

    memset(&entry, 0, sizeof(entry));

    rc = xet_cli_bucket_stat(reader->place, name, &entry);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    reader->size = entry.size;
    reader->name = strdup(name);

    return reader->name ? XET_CLI_OK : xet_cli_no_memory();
}


static int
xet_cli_bucket_read(xet_cli_reader_t *reader, uint8_t *buf, size_t len,
    uint64_t offset, size_t *n)
{
    int     rc;
    size_t  had;

    *n = 0;

    while (*n < len && offset < reader->size) {

        if (offset < reader->start || offset - reader->start >= reader->len) {
            rc = xet_cli_bucket_ahead(reader, offset, len - *n);

            if (rc != XET_CLI_OK) {
                return rc;
            }
        }

        had = reader->len - (size_t) (offset - reader->start);
        had = (had < len - *n) ? had : len - *n;

        memcpy(buf + *n, reader->ahead + (offset - reader->start), had);

        *n += had;
        offset += had;
    }

    return XET_CLI_OK;
}


/* Who goes on where he was reads on; who jumps gets what he asks for. */

static int
xet_cli_bucket_ahead(xet_cli_reader_t *reader, uint64_t offset, size_t len)
{
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    if (reader->ahead == NULL) {
        reader->ahead = malloc(XET_CLI_BUCKET_AHEAD);

        if (reader->ahead == NULL) {
            return xet_cli_no_memory();
        }
    }

    if (len > XET_CLI_BUCKET_AHEAD || offset == reader->start + reader->len) {
        len = XET_CLI_BUCKET_AHEAD;
    }

    if (len > reader->size - offset) {
        len = (size_t) (reader->size - offset);
    }

    reader->len = 0;

    rc = xet_s3_get(xet_cli_bucket_s3(reader->place), reader->name, offset,
                    len, reader->ahead, &error);

    if (rc == XET_S3_NOT_FOUND || rc == XET_S3_SHORT) {
        errno = (rc == XET_S3_SHORT) ? EIO : ENOENT;
        return XET_CLI_UNREADABLE;
    }

    if (rc != XET_S3_OK) {
        return xet_cli_bucket_failed(reader->place, reader->name, rc, &error);
    }

    reader->start = offset;
    reader->len = len;

    return XET_CLI_OK;
}


static void
xet_cli_bucket_read_close(xet_cli_reader_t *reader)
{
    free(reader->ahead);
    free(reader->name);
}


static int
xet_cli_bucket_write_open(xet_cli_writer_t *writer)
{
    xet_cli_bucket_t *b = (xet_cli_bucket_t *) writer->place;

    writer->fd = xet_cli_output_scratch(b->temp_path);

    return (writer->fd < 0) ? XET_CLI_ERROR : XET_CLI_OK;
}


/* Parts go out while it is written; what fails shows in the end. */

static void
xet_cli_bucket_write_grown(xet_cli_writer_t *writer)
{
    xet_s3_error_t  error;

    if (writer->data == NULL) {
        writer->data = xet_s3_upload_create(xet_cli_bucket_s3(writer->place),
                                            writer->name);
    }

    if (writer->data) {
        (void) xet_s3_upload_ready(writer->data, writer->fd, writer->size,
                                   &error);
    }
}


static int
xet_cli_bucket_write_keep(xet_cli_writer_t *writer, int replace)
{
    xet_s3_rc_t     rc;
    struct stat     st;
    xet_s3_error_t  error;

    if (writer->data == NULL) {
        writer->data = xet_s3_upload_create(xet_cli_bucket_s3(writer->place),
                                            writer->name);
    }

    if (writer->data == NULL) {
        return xet_cli_no_memory();
    }

    if (fstat(writer->fd, &st) != 0) {
        return xet_cli_fail_errno(writer->name);
    }

    rc = xet_s3_upload_finish(writer->data, writer->name, writer->fd,
                              (uint64_t) st.st_size, !replace, &error);

    if (rc == XET_S3_OK) {
        return XET_CLI_OK;
    }

    return (rc == XET_S3_EXISTS)
           ? XET_CLI_THERE
           : xet_cli_bucket_failed(writer->place, writer->name, rc, &error);
}


static void
xet_cli_bucket_write_close(xet_cli_writer_t *writer)
{
    if (writer->data) {
        xet_s3_upload_destroy(writer->data);
    }
}
