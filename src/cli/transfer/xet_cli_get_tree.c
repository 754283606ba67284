
/*
 * xet get --recursive: downloads the files in a manifest, the output of "xet
 * put --json".  Other members of the JSON are ignored.
 *
 *     {"file":"a/b","hash":"...","size":1,"executable":true}
 *     {"folder":"c"}
 *
 * A manifest or a Hub may be untrusted.  If git, Windows or a client treats a
 * name specially (xet_hub_path.c), the download ends, or with --names skip the
 * name is skipped.
 *
 * An existing file with the same content is not downloaded, so a second run
 * resumes the first.  Data of a failed file is kept if the failure may be
 * temporary.  A signal or a failure of the network or the server ends the run;
 * any other failure does not stop the next file.
 *
 * Complete files are synced and renamed in batches.  Files on another file
 * system, mounted in the folder, are synced one by one.
 */


#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_transfer.h"


#define XET_CLI_GET_TREE_LINE   (64 * 1024)
#define XET_CLI_GET_TREE_FILES  256
#define XET_CLI_GET_TREE_BYTES  (64 * 1024 * 1024)


/*
 * A file of the tree.  A file is renamed from its part file after a sync, and
 * one sync for many files takes hardly longer than a sync for one file.  So
 * complete files wait for a common sync.  A waiting file holds two
 * descriptors: for its folder and its lock.
 */

typedef struct {
    xet_cli_want_t           want;     /* sha256 is NULL while waiting */
    uint64_t                 received;
    xet_cli_part_t           part;
} xet_cli_get_tree_file_t;


struct xet_cli_get_tree_s {
    const xet_cli_args_t    *args;
    xet_cli_http_t          *http;
    uint64_t                 parallel;
    int                      root;
    dev_t                    device;   /* device of the root */
    const char              *name;     /* name of the manifest or folder */

    unsigned                 line;     /* line of the manifest */
    xet_cli_get_tree_file_t  file;     /* file that is being fetched */

    unsigned                 skip:1;   /* --names skip */
    unsigned                 any:1;
    unsigned                 refused:1;        /* an unsafe name was found */

    xet_cli_get_tree_file_t  waiting[XET_CLI_GET_TREE_FILES];
    unsigned                 count;
    unsigned                 most;     /* maximum number of waiting files */
    uint64_t                 bytes;

    xet_cli_total_t            sum;
};


static int xet_cli_get_tree_open(xet_cli_get_tree_t *g, const char *folder);
static int xet_cli_get_tree_names(xet_cli_get_tree_t *g);
static int xet_cli_get_tree_safe(xet_cli_get_tree_t *g, const char *path,
    int *rc);
static int xet_cli_get_tree_lines(xet_cli_get_tree_t *g, FILE *in);
static void xet_cli_get_tree_progress(const xet_cli_get_tree_t *g, FILE *in);
static int xet_cli_get_tree_line(xet_cli_get_tree_t *g, const char *text,
    size_t len);
static int xet_cli_get_tree_fault(xet_cli_get_tree_t *g, const char *text);
static int xet_cli_get_tree_folder(xet_cli_get_tree_t *g, const char *path);
static int xet_cli_get_tree_file(xet_cli_get_tree_t *g, int folder,
    const char *base);
static int xet_cli_get_tree_fetch(xet_cli_get_tree_t *g, int folder,
    const char *base, int far);
static int xet_cli_get_tree_wait(xet_cli_get_tree_t *g);
static int xet_cli_get_tree_name(xet_cli_get_tree_t *g);
static int xet_cli_get_tree_there(xet_cli_get_tree_t *g, int folder,
    const char *base);
static int xet_cli_get_tree_done(xet_cli_get_tree_t *g,
    const xet_cli_get_tree_file_t *file, int folder);


int
xet_cli_get_tree(const xet_cli_args_t *args)
{
    int                  rc;
    FILE                *in;
    const char          *folder;
    xet_cli_http_t      *h;
    xet_cli_get_tree_t  *g;

    if (args->value[XET_CLI_OPT_RANGE]) {
        return xet_cli_fail(XET_CLI_USAGE, "get",
                            "--range does not apply to a manifest");
    }

    in = xet_cli_open(args->operands[0]);

    if (in == NULL) {
        return XET_CLI_ERROR;
    }

    folder = args->value[XET_CLI_OPT_OUTPUT];

    h = xet_cli_http_create(args, &rc);
    g = h ? xet_cli_get_tree_begin(args, h, folder ? folder : ".", &rc) : NULL;

    if (g) {
        g->name = args->operands[0];

        xet_cli_get_tree_progress(g, in);

        rc = xet_cli_get_tree_end(g, xet_cli_get_tree_lines(g, in));
    }

    xet_cli_close(in);
    xet_cli_http_destroy(h);

    return rc;
}


xet_cli_get_tree_t *
xet_cli_get_tree_begin(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *folder, int *rc)
{
    xet_cli_get_tree_t  *g;

    g = calloc(1, sizeof(xet_cli_get_tree_t));

    if (g == NULL) {
        *rc = xet_cli_no_memory();
        return NULL;
    }

    g->args = args;
    g->http = h;
    g->root = -1;
    g->name = folder;

    xet_cli_total_begin(&g->sum);

    *rc = xet_cli_get_tree_open(g, folder);

    if (*rc != XET_CLI_OK) {

        if (g->root >= 0) {
            close(g->root);
        }

        free(g);
        return NULL;
    }

    return g;
}


/*
 * Even after a failure (rc), the waiting files are complete, so they are
 * renamed.
 */

int
xet_cli_get_tree_end(xet_cli_get_tree_t *g, int rc)
{
    rc = xet_cli_worse(rc, xet_cli_get_tree_name(g));

    if (syncfs(g->root) != 0) {
        rc = xet_cli_worse(rc, xet_cli_fail_errno(g->name));
    }

    xet_cli_progress_close();

    if (!xet_cli_json(g->args)) {
        rc = xet_cli_worse(rc, xet_cli_total_print(&g->sum, NULL, "received",
                                                 ""));
    }

    close(g->root);
    free(g);

    return rc;
}


static int
xet_cli_get_tree_open(xet_cli_get_tree_t *g, const char *folder)
{
    int            rc;
    struct stat    st;
    struct rlimit  limit;

    rc = xet_cli_args_number(g->args, XET_CLI_OPT_PARALLEL, 1, 64,
                             XET_CLI_DOWNLOAD_PARALLEL, &g->parallel);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    (void) mkdir(folder, 0777);

    g->root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (g->root < 0 || fstat(g->root, &st) != 0) {
        return xet_cli_fail_errno(folder);
    }

    rc = xet_cli_get_tree_names(g);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    g->device = st.st_dev;
    g->most = XET_CLI_GET_TREE_FILES;

    /* use half of the descriptors, two for each file */

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0
        && limit.rlim_cur / 4 < g->most)
    {
        g->most = (unsigned) limit.rlim_cur / 4;
    }

    return XET_CLI_OK;
}


static int
xet_cli_get_tree_names(xet_cli_get_tree_t *g)
{
    const char  *names = g->args->value[XET_CLI_OPT_NAMES];

    if (names == NULL || strcmp(names, "refuse") == 0) {
        return XET_CLI_OK;
    }

    g->skip = (strcmp(names, "skip") == 0);
    g->any = (strcmp(names, "any") == 0);

    return (g->skip || g->any)
           ? XET_CLI_OK
           : xet_cli_fail(XET_CLI_USAGE, names,
                          "unknown value of --names; expected refuse, skip or "
                          "any");
}


/*
 * Returns whether a path may be written.  If not, sets *rc to XET_CLI_FAULT if
 * the download must end, or to XET_CLI_OK if the path is skipped.
 */

static int
xet_cli_get_tree_safe(xet_cli_get_tree_t *g, const char *path, int *rc)
{
    *rc = XET_CLI_OK;

    if (g->any || xet_cli_tree_safe(path, "not written")) {
        return 1;
    }

    if (!g->skip) {
        g->refused = 1;
        *rc = XET_CLI_FAULT;
    }

    return 0;
}


int
xet_cli_get_tree_refused(const xet_cli_get_tree_t *g)
{
    return g->refused;
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

    /* a network failure would also affect the next file */

    while (rc < XET_CLI_NETWORK && !g->refused
           && fgets(line, XET_CLI_GET_TREE_LINE, in) != NULL)
    {
        g->line++;
        len = strlen(line);

        if (len == 0 || (line[len - 1] != '\n' && !feof(in))) {
            rc = xet_cli_get_tree_fault(g, "too long, or has a zero byte");
            break;
        }

        rc = xet_cli_worse(rc, xet_cli_get_tree_line(g, line, len));
    }

    if (ferror(in)) {
        rc = xet_cli_worse(rc, xet_cli_fail(XET_CLI_ERROR, g->name,
                                            "cannot be read"));
    }

    free(line);

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : rc;
}


/*
 * Begins the progress bar.  If a progress bar is shown, and the manifest can
 * be read twice, first counts the files and their bytes.
 */

static void
xet_cli_get_tree_progress(const xet_cli_get_tree_t *g, FILE *in)
{
    char         *text;
    json_t       *line;
    size_t        room;
    ssize_t       len;
    uint64_t      files, bytes, size;
    struct stat   st;

    files = 0;
    bytes = 0;

    if (xet_cli_progress_wanted(xet_cli_quiet(g->args)) && in != stdin
        && fstat(fileno(in), &st) == 0 && S_ISREG(st.st_mode))
    {
        text = NULL;
        room = 0;

        while ((len = getline(&text, &room, in)) > 0) {
            line = json_loadb(text, (size_t) len, 0, NULL);

            if (xet_cli_json_get_u64(line, "size", &size)) {
                files++;
                bytes += size;
            }

            json_decref(line);
        }

        free(text);
        rewind(in);
    }

    xet_cli_progress_items(xet_cli_quiet(g->args), g->name, "files", files,
                           bytes);
}


static int
xet_cli_get_tree_line(xet_cli_get_tree_t *g, const char *text, size_t len)
{
    int              rc;
    json_t          *line;
    const char      *path;
    xet_cli_want_t   want;

    line = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

    memset(&want, 0, sizeof(want));

    path = json_string_value(json_object_get(line, "folder"));
    want.path = json_string_value(json_object_get(line, "file"));
    want.executable = json_is_true(json_object_get(line, "executable"));

    if (path && want.path == NULL && xet_cli_tree_path_ok(path)) {

        if (xet_cli_get_tree_safe(g, path, &rc)) {
            rc = xet_cli_get_tree_folder(g, path);
        }

    } else if (path || want.path == NULL
               || !xet_cli_tree_path_ok(want.path)
               || !xet_cli_json_get_hash(line, "hash", &want.hash)
               || !xet_cli_json_get_u64(line, "size", &want.size))
    {
        rc = xet_cli_get_tree_fault(g,
                                    "expected a file with a hash, a size and a "
                                    "path inside the folder");

    } else {
        rc = xet_cli_get_tree_want(g, &want);
    }

    json_decref(line);

    return rc;
}


int
xet_cli_get_tree_want(xet_cli_get_tree_t *g, const xet_cli_want_t *want)
{
    int          rc, folder;
    const char  *base;

    if (!xet_cli_tree_path_ok(want->path)) {
        return xet_cli_fail(XET_CLI_FAULT, want->path,
                            "is not a path inside the folder");
    }

    if (!xet_cli_get_tree_safe(g, want->path, &rc)) {
        return rc;
    }

    memset(&g->file, 0, sizeof(g->file));

    g->file.want = *want;

    folder = xet_cli_tree_parent(g->root, want->path, 1, &base);

    if (folder < 0) {
        return xet_cli_fail_errno(want->path);
    }

    rc = xet_cli_get_tree_file(g, folder, base);
    close(folder);

    xet_cli_progress_item(want->size);

    return rc;
}


static int
xet_cli_get_tree_fault(xet_cli_get_tree_t *g, const char *text)
{
    return xet_cli_failf(XET_CLI_FAULT, g->name, "line %u: %s", g->line,
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
                   : xet_cli_fail_errno(path);

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
    unsigned     i;
    struct stat  st;

    if (fstat(folder, &st) != 0) {
        return xet_cli_fail_errno(g->file.want.path);
    }

    far = (st.st_dev != g->device);

    for (i = 0; i < g->count; i++) {

        if (strcmp(g->waiting[i].want.path, g->file.want.path) == 0) {
            rc = xet_cli_get_tree_name(g);

            if (rc != XET_CLI_OK) {
                return rc;
            }
        }
    }

    if (!xet_cli_get_tree_there(g, folder, base)) {
        return xet_cli_get_tree_fetch(g, folder, base, far);
    }

    /* an earlier run may have been interrupted before its sync */

    g->file.received = 0;

    return xet_cli_get_tree_done(g, &g->file, far ? folder : -1);
}


static int
xet_cli_get_tree_fetch(xet_cli_get_tree_t *g, int folder, const char *base,
    int far)
{
    int                       rc;
    xet_cli_download_t        d;
    xet_cli_get_tree_file_t  *f = &g->file;

    memset(&d, 0, sizeof(d));

    d.hash = f->want.hash;
    d.end = XET_CLI_DOWNLOAD_ALL;
    d.most = f->want.size;
    d.name = f->want.path;
    d.parallel = g->parallel;
    d.list = "manifest";

    xet_cli_progress_begin(xet_cli_quiet(g->args), d.name, d.most);

    rc = xet_cli_part_fetch(&f->part, g->http, &d, folder, base, &f->want,
                            far);

    xet_cli_progress_end();

    f->received = d.received;

    if (rc != XET_CLI_OK) {
        return rc;
    }

    return far ? xet_cli_get_tree_done(g, f, folder)
               : xet_cli_get_tree_wait(g);
}


/*
 * Adds a complete file to the waiting files.  Once enough files are waiting,
 * renames all of them.  Returns XET_CLI_OK, or the worst exit code after
 * printing the errors.
 */

static int
xet_cli_get_tree_wait(xet_cli_get_tree_t *g)
{
    int                       rc, folder;
    xet_cli_get_tree_file_t  *f;

    f = &g->waiting[g->count];
    *f = g->file;
    f->want.sha256 = NULL;

    folder = fcntl(f->part.folder, F_DUPFD_CLOEXEC, 0);
    f->want.path = strdup(f->want.path);

    if (folder < 0 || f->want.path == NULL) {
        rc = xet_cli_fail_errno(g->file.want.path);

        if (folder >= 0) {
            close(folder);
        }

        free((void *) f->want.path);
        xet_cli_part_stop(&f->part, 0);

        return rc;
    }

    f->part.folder = folder;

    g->count++;
    g->bytes += f->want.size;

    return (g->count >= g->most || g->bytes >= XET_CLI_GET_TREE_BYTES)
           ? xet_cli_get_tree_name(g) : XET_CLI_OK;
}


/*
 * Syncs the file system, and renames all waiting files from their part files.
 */

static int
xet_cli_get_tree_name(xet_cli_get_tree_t *g)
{
    int                       rc, synced, one, folder;
    unsigned                  i;
    xet_cli_get_tree_file_t  *f;

    if (g->count == 0) {
        return XET_CLI_OK;
    }

    rc = XET_CLI_OK;
    synced = (syncfs(g->root) == 0);

    if (!synced) {
        rc = xet_cli_fail_errno(g->waiting[0].want.path);
    }

    for (i = 0; i < g->count; i++) {
        f = &g->waiting[i];
        folder = f->part.folder;

        one = synced ? xet_cli_part_name(&f->part, 0) : XET_CLI_ERROR;

        if (one == XET_CLI_OK) {
            one = xet_cli_get_tree_done(g, f, -1);

        } else {
            xet_cli_part_stop(&f->part, 0);
        }

        rc = xet_cli_worse(rc, one);

        close(folder);
        free((void *) f->want.path);
    }

    g->count = 0;
    g->bytes = 0;

    return rc;
}


/*
 * Returns whether the file exists with the same content.  If so, makes the
 * file executable if needed.  A file that cannot be opened is replaced,
 * without a message.
 */

static int
xet_cli_get_tree_there(xet_cli_get_tree_t *g, int folder, const char *base)
{
    int                    rc, fd;
    FILE                  *file;
    struct stat            st;
    xet_cli_digest_t      *d;
    const xet_cli_want_t  *want = &g->file.want;

    fd = openat(folder, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return 0;
    }

    file = fdopen(fd, "rb");
    d = malloc(sizeof(xet_cli_digest_t));

    rc = file && d && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
         && (uint64_t) st.st_size == want->size
         && xet_cli_digest_file(d, file, want->path, want->sha256 != NULL)
            == XET_CLI_OK
         && xet_hash_equal(&d->hash, &want->hash)
         && (want->sha256 == NULL
             || memcmp(d->digest, want->sha256, XET_CLI_SHA256_LEN) == 0)
         && (!want->executable
             || xet_cli_part_mode(fd, want->path) == XET_CLI_OK);

    free(d);

    if (file) {
        fclose(file);

    } else {
        close(fd);
    }

    return rc;
}


/*
 * Reports a finished file.  Unless folder is -1, first syncs the file system of
 * the folder, so that the file and all folders created for it are durable.
 */

static int
xet_cli_get_tree_done(xet_cli_get_tree_t *g,
    const xet_cli_get_tree_file_t *file, int folder)
{
    if (folder >= 0 && syncfs(folder) != 0) {
        return xet_cli_fail_errno(file->want.path);
    }

    xet_cli_total_add(&g->sum, file->want.size, file->received);

    if (!xet_cli_json(g->args)) {
        return xet_cli_verbose(g->args)
               ? xet_cli_file_line(&file->want.hash, file->want.size,
                                   file->want.path)
               : XET_CLI_OK;
    }

    return xet_cli_print_row(1,
               xet_cli_out_text("file", file->want.path, NULL),
               xet_cli_out_hash("hash", &file->want.hash, NULL),
               xet_cli_out_number("size", file->want.size, NULL),
               xet_cli_out_number("received_bytes", file->received, NULL));
}
