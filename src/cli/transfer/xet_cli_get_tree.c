
/*
 * xet get --recursive: the files of a manifest, which is what "xet put --json"
 * has printed.
 *
 *     {"file":"a/b","hash":"...","size":1,"executable":true}
 *     {"folder":"c"}
 *
 * Other members are ignored.  A file that is there with the same bytes is left
 * as it is, so that a get that was broken off is resumed.  What came of a file
 * that fails is kept for the next get if the reason may pass, else removed.
 * A signal and a failure of the network or the server end the get; after any
 * other failure the next file is fetched.  Files get their names many at a
 * time, after a sync, except those of other file systems that are mounted in
 * the folder, which are synced one by one.
 */


#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_transfer.h"


#define XET_CLI_GET_TREE_LINE  (64 * 1024)


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    uint64_t               parallel;
    int                    root;
    dev_t                  device;     /* of the root */
    xet_cli_batch_t       *batch;
    const char            *manifest;
    unsigned               line;       /* of the manifest */

    /* the file of this line */

    const char            *path;
    xet_hash_t             hash;
    uint64_t               size;
    unsigned               executable:1;
} xet_cli_get_tree_t;


static int xet_cli_get_tree_open(xet_cli_get_tree_t *g);
static int xet_cli_get_tree_lines(xet_cli_get_tree_t *g, FILE *in);
static int xet_cli_get_tree_line(xet_cli_get_tree_t *g, const char *text,
    size_t len);
static int xet_cli_get_tree_fault(xet_cli_get_tree_t *g, const char *text);
static int xet_cli_get_tree_folder(xet_cli_get_tree_t *g, const char *path);
static int xet_cli_get_tree_file(xet_cli_get_tree_t *g, int folder,
    const char *base);
static int xet_cli_get_tree_fetch(xet_cli_get_tree_t *g, int folder,
    const char *base, int far);
static int xet_cli_get_tree_done(void *ctx, const xet_cli_batch_file_t *f);
static int xet_cli_get_tree_sync(const xet_cli_get_tree_t *g, int folder);
static int xet_cli_get_tree_there(xet_cli_get_tree_t *g, int folder,
    const char *base);
static int xet_cli_get_tree_mode(const xet_cli_get_tree_t *g, int fd);
static int xet_cli_get_tree_print(const xet_cli_get_tree_t *g,
    const char *path, const xet_hash_t *hash, uint64_t size,
    uint64_t received);


int
xet_cli_get_tree(const xet_cli_args_t *args)
{
    int                 rc;
    FILE               *in;
    xet_cli_get_tree_t  g;

    memset(&g, 0, sizeof(g));

    g.args = args;
    g.root = -1;
    g.manifest = args->operands[0];

    if (args->value[XET_CLI_OPT_RANGE]) {
        return xet_cli_fail(XET_CLI_USAGE, "get", "there are no ranges of a "
                            "manifest");
    }

    in = xet_cli_open(g.manifest);

    if (in == NULL) {
        return XET_CLI_ERROR;
    }

    rc = xet_cli_get_tree_open(&g);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_get_tree_lines(&g, in);
    }

    /* also after a failure: the files of the batch are complete */

    if (g.batch) {
        rc = xet_cli_worse(rc, xet_cli_batch_sync(g.batch));
    }

    if (g.root >= 0) {

        if (syncfs(g.root) != 0) {
            rc = xet_cli_worse(rc, xet_cli_fail(XET_CLI_ERROR, g.manifest,
                                                strerror(errno)));
        }

        close(g.root);
    }

    xet_cli_close(in);
    xet_cli_batch_free(g.batch);
    xet_cli_http_destroy(g.http);

    return rc;
}


static int
xet_cli_get_tree_open(xet_cli_get_tree_t *g)
{
    int          rc;
    const char  *name;
    struct stat  st;

    rc = xet_cli_args_number(g->args, XET_CLI_OPT_PARALLEL, 1, 64,
                             XET_CLI_DOWNLOAD_PARALLEL, &g->parallel);

    if (rc == XET_CLI_OK) {
        g->http = xet_cli_http_create(g->args, &rc);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_http_endpoint(g->http);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    name = g->args->value[XET_CLI_OPT_OUTPUT];
    name = name ? name : ".";

    (void) mkdir(name, 0777);

    g->root = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (g->root < 0 || fstat(g->root, &st) != 0) {
        return xet_cli_fail(XET_CLI_ERROR, name, strerror(errno));
    }

    g->device = st.st_dev;
    g->batch = xet_cli_batch_create(g->root);

    if (g->batch == NULL) {
        return XET_CLI_ERROR;
    }

    g->batch->done = xet_cli_get_tree_done;
    g->batch->ctx = g;

    return XET_CLI_OK;
}


static int
xet_cli_get_tree_lines(xet_cli_get_tree_t *g, FILE *in)
{
    int     rc;
    char   *line;
    size_t  len;

    rc = XET_CLI_OK;
    line = malloc(XET_CLI_GET_TREE_LINE);

    if (line == NULL) {
        return xet_cli_no_memory();
    }

    /* what is wrong with the network is wrong for the next file, too */

    while (rc < XET_CLI_NETWORK
           && fgets(line, XET_CLI_GET_TREE_LINE, in) != NULL)
    {
        g->line++;
        len = strlen(line);

        if (len == 0 || (line[len - 1] != '\n' && !feof(in))) {
            rc = xet_cli_get_tree_fault(g, "is too long, or has a zero byte");
            break;
        }

        rc = xet_cli_worse(rc, xet_cli_get_tree_line(g, line, len));
    }

    if (ferror(in)) {
        rc = xet_cli_worse(rc, xet_cli_fail(XET_CLI_ERROR, g->manifest,
                                            "can't be read"));
    }

    free(line);

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : rc;
}


static int
xet_cli_get_tree_line(xet_cli_get_tree_t *g, const char *text, size_t len)
{
    int          rc, folder;
    json_t      *line;
    const char  *path, *base;

    line = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

    path = json_string_value(json_object_get(line, "folder"));
    g->path = json_string_value(json_object_get(line, "file"));
    g->executable = json_is_true(json_object_get(line, "executable"));

    if (path && g->path == NULL && xet_cli_tree_path_ok(path)) {
        rc = xet_cli_get_tree_folder(g, path);

    } else if (path || g->path == NULL || !xet_cli_tree_path_ok(g->path)
               || !xet_cli_json_get_hash(line, "hash", &g->hash)
               || !xet_cli_json_get_u64(line, "size", &g->size))
    {
        rc = xet_cli_get_tree_fault(g, "is no file with a hash, a size and "
                                    "a path inside of the folder");

    } else {
        folder = xet_cli_tree_parent(g->root, g->path, 1, &base);

        if (folder < 0) {
            rc = xet_cli_fail(XET_CLI_ERROR, g->path, strerror(errno));

        } else {
            rc = xet_cli_get_tree_file(g, folder, base);
            close(folder);
        }
    }

    json_decref(line);

    return rc;
}


static int
xet_cli_get_tree_fault(xet_cli_get_tree_t *g, const char *text)
{
    return xet_cli_failf(XET_CLI_FAULT, g->manifest, "line %u %s", g->line,
                         text);
}


static int
xet_cli_get_tree_folder(xet_cli_get_tree_t *g, const char *path)
{
    int          rc, fd;
    char        *inside;
    const char  *base;

    if (asprintf(&inside, "%s/", path) < 0) {
        return xet_cli_no_memory();
    }

    fd = xet_cli_tree_parent(g->root, inside, 1, &base);

    rc = (fd >= 0) ? XET_CLI_OK
                   : xet_cli_fail(XET_CLI_ERROR, path, strerror(errno));

    if (fd >= 0) {
        close(fd);
    }

    free(inside);

    return rc;
}


static int
xet_cli_get_tree_file(xet_cli_get_tree_t *g, int folder, const char *base)
{
    int          rc, far;
    struct stat  st;

    if (fstat(folder, &st) != 0) {
        return xet_cli_fail(XET_CLI_ERROR, g->path, strerror(errno));
    }

    far = (st.st_dev != g->device);

    if (xet_cli_batch_has(g->batch, g->path)) {
        rc = xet_cli_batch_sync(g->batch);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    if (xet_cli_get_tree_there(g, folder, base)) {

        /* an earlier get may have been broken off before its sync */

        rc = far ? xet_cli_get_tree_sync(g, folder) : XET_CLI_OK;

        return (rc == XET_CLI_OK)
               ? xet_cli_get_tree_print(g, g->path, &g->hash, g->size, 0) : rc;
    }

    return xet_cli_get_tree_fetch(g, folder, base, far);
}


static int
xet_cli_get_tree_fetch(xet_cli_get_tree_t *g, int folder, const char *base,
    int far)
{
    int                 rc;
    xet_cli_part_t      part;
    xet_cli_download_t  d;

    rc = xet_cli_part_open(&part, folder, base, &g->hash);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    memset(&d, 0, sizeof(d));

    d.hash = g->hash;
    d.end = XET_CLI_DOWNLOAD_ALL;
    d.most = g->size;
    d.name = g->path;
    d.parallel = g->parallel;

    xet_cli_progress_begin(xet_cli_quiet(g->args), g->path, g->size);

    rc = xet_cli_part_download(&part, g->http, &d);

    xet_cli_progress_end();

    if (rc == XET_CLI_OK && d.size != g->size) {
        rc = xet_cli_failf(XET_CLI_FAULT, g->path,
                           "has %" PRIu64 " bytes, and %" PRIu64
                           " in the manifest", d.size, g->size);
    }

    if (rc == XET_CLI_OK && g->executable) {
        rc = xet_cli_get_tree_mode(g, part.part_fd);
    }

    if (rc == XET_CLI_OK && !far) {
        return xet_cli_batch_add(g->batch, &part, g->path, g->size, d.received,
                                 &g->hash);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_part_complete(&part, d.size);
    }

    if (rc != XET_CLI_OK) {
        xet_cli_part_stop(&part, xet_cli_interrupted || d.passing);
        return rc;
    }

    rc = far ? xet_cli_get_tree_sync(g, folder) : XET_CLI_OK;

    return (rc == XET_CLI_OK)
           ? xet_cli_get_tree_print(g, g->path, &g->hash, g->size, d.received)
           : rc;
}


static int
xet_cli_get_tree_done(void *ctx, const xet_cli_batch_file_t *f)
{
    return xet_cli_get_tree_print(ctx, f->path, &f->hash, f->size,
                                  f->received);
}


/* The file and all folders that were made for it. */

static int
xet_cli_get_tree_sync(const xet_cli_get_tree_t *g, int folder)
{
    return (syncfs(folder) == 0) ? XET_CLI_OK
           : xet_cli_fail(XET_CLI_ERROR, g->path, strerror(errno));
}


/*
 * Whether the file is there with the same bytes; makes it executable then, if
 * it is to be.  A file that cannot be opened is replaced without a report.
 */

static int
xet_cli_get_tree_there(xet_cli_get_tree_t *g, int folder, const char *base)
{
    int                rc, fd;
    FILE              *file;
    struct stat        st;
    xet_cli_digest_t  *d;

    fd = openat(folder, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return 0;
    }

    file = fdopen(fd, "rb");
    d = malloc(sizeof(xet_cli_digest_t));

    rc = file && d && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
         && (uint64_t) st.st_size == g->size
         && xet_cli_digest_file(d, file, g->path, 0) == XET_CLI_OK
         && xet_hash_equal(&d->hash, &g->hash)
         && (!g->executable || xet_cli_get_tree_mode(g, fd) == XET_CLI_OK);

    free(d);

    if (file) {
        fclose(file);

    } else {
        close(fd);
    }

    return rc;
}


/* Lets everybody run the file who may read it. */

static int
xet_cli_get_tree_mode(const xet_cli_get_tree_t *g, int fd)
{
    struct stat  st;

    if (fstat(fd, &st) == 0
        && fchmod(fd, (st.st_mode & 0777) | (st.st_mode & 0444) >> 2) == 0)
    {
        return XET_CLI_OK;
    }

    return xet_cli_fail(XET_CLI_ERROR, g->path, strerror(errno));
}


static int
xet_cli_get_tree_print(const xet_cli_get_tree_t *g, const char *path,
    const xet_hash_t *hash, uint64_t size, uint64_t received)
{
    xet_json_t      *j;
    xet_cli_json_t   out;

    if (!g->args->value[XET_CLI_OPT_JSON]) {
        return XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_string(j, "file", path);
    xet_cli_json_put_hash(j, "hash", hash);
    xet_cli_json_put_u64(j, "size", size);
    xet_cli_json_put_u64(j, "received_bytes", received);

    return xet_cli_json_end(&out);
}
