
/*
 * xet put: uploads files.
 *
 * All files share xorbs.  Files are registered together at the end, or when
 * they have many terms.  A file is printed only after its registration, so
 * every printed file can be downloaded.  The JSON of a tree is a manifest for
 * "xet get --recursive".
 */


#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "xet_cli_transfer.h"


#define XET_CLI_PUT_PARALLEL  3        /* xorbs sent at a time */
#define XET_CLI_PUT_COMMIT    200000   /* terms, 96 bytes each in a shard */


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_tree_t         tree;       /* tree to put, with --recursive */
    xet_cli_total_t          sum;
} xet_cli_put_t;


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    const xet_cli_puts_t  *puts;
    xet_cli_upload_t       upload;
    xet_cli_packer_t       packer;

    size_t                 first;      /* first unregistered file */
    int                    worst;      /* exit code of files that cannot be
                                          opened */
} xet_cli_putting_t;


static int xet_cli_put_what(xet_cli_put_t *p, xet_cli_puts_t *puts);
static int xet_cli_put_open(void *ctx, size_t i, FILE **in, const char **name,
    int *executable);
static int xet_cli_put_registered(void *ctx, const xet_cli_file_t *file);
static int xet_cli_put_folders(void *ctx);
static int xet_cli_puts_init(xet_cli_putting_t *p);
static int xet_cli_puts_files(xet_cli_putting_t *p);
static int xet_cli_puts_next(xet_cli_putting_t *p, size_t i);
static int xet_cli_puts_file(xet_cli_putting_t *p, FILE *in, const char *name,
    int executable);
static int xet_cli_puts_commit(xet_cli_putting_t *p);


int
xet_cli_put(const xet_cli_args_t *args)
{
    int              rc;
    xet_cli_put_t    p;
    xet_cli_http_t  *h;
    xet_cli_puts_t   puts;

    memset(&p, 0, sizeof(p));
    memset(&puts, 0, sizeof(puts));

    p.args = args;
    p.tree.root = -1;

    puts.open = xet_cli_put_open;
    puts.registered = xet_cli_put_registered;
    puts.end = xet_cli_put_folders;
    puts.ctx = &p;

    h = xet_cli_http_create(args, &rc);

    if (h == NULL) {
        return rc;
    }

    rc = xet_cli_put_what(&p, &puts);

    if (rc <= XET_CLI_ERROR && rc != XET_CLI_USAGE && puts.count) {
        rc = xet_cli_worse(rc, xet_cli_puts(args, h, &puts));
    }

    xet_cli_http_destroy(h);
    xet_cli_tree_free(&p.tree);

    return rc;
}


/*
 * Finds the files to put.  If a part of a tree cannot be read, returns an exit
 * code, and the other files are still put.
 */

static int
xet_cli_put_what(xet_cli_put_t *p, xet_cli_puts_t *puts)
{
    int  i, rc;

    if (!p->args->value[XET_CLI_OPT_RECURSIVE]) {
        puts->count = (size_t) p->args->count;

        for (i = 0; i < p->args->count; i++) {
            if (strcmp(p->args->operands[i], "-") == 0) {
                puts->once = 1;
            }
        }

        return XET_CLI_OK;
    }

    if (p->args->count > 1) {
        return xet_cli_fail(XET_CLI_USAGE, "put",
                            "--recursive takes one folder");
    }

    xet_cli_total_begin(&p->sum);

    rc = xet_cli_tree_read(&p->tree, p->args->operands[0]);

    puts->count = p->tree.count;
    puts->tree = &p->tree;
    puts->name = p->args->operands[0];

    return rc;
}


static int
xet_cli_put_open(void *ctx, size_t i, FILE **in, const char **name,
    int *executable)
{
    xet_cli_put_t  *p = ctx;

    if (p->tree.root < 0) {
        *name = p->args->operands[i];
        *in = xet_cli_open(*name);

    } else if (p->tree.entries[i].folder) {
        *in = NULL;
        return XET_CLI_OK;

    } else {
        *name = p->tree.entries[i].path;
        *in = xet_cli_tree_open(&p->tree, *name, executable);
    }

    return *in ? XET_CLI_OK : XET_CLI_ERROR;
}


static int
xet_cli_put_registered(void *ctx, const xet_cli_file_t *file)
{
    xet_cli_put_t  *p = ctx;

    xet_cli_total_add(&p->sum, file->size, file->new_bytes);

    return xet_cli_put_print(p->args, file, p->tree.root >= 0);
}


int
xet_cli_put_print(const xet_cli_args_t *args, const xet_cli_file_t *file,
    int many)
{
    char  sha256[2 * XET_CLI_SHA256_LEN + 1];

    if (many && !xet_cli_json(args)) {
        return xet_cli_verbose(args)
               ? xet_cli_file_line(&file->hash, file->size, file->name)
               : XET_CLI_OK;
    }

    *xet_hash_print_plain((uint8_t *) sha256, file->sha256) = '\0';

    return xet_cli_print(xet_cli_json(args),
               xet_cli_out_text("file", file->name, "\n"),
               xet_cli_out_hash_line("hash", 13, "hash", &file->hash),
               xet_cli_out_number_line("size", 13, "size", file->size),
               xet_cli_out_text_line("sha256", 13, "sha256", sha256),
               xet_cli_out_number_line("new_bytes", 13, "new",
                                       file->new_bytes),
               xet_cli_out_number_line("deduplicated_bytes", 13,
                                       "deduplicated",
                                       file->size - file->new_bytes),
               xet_cli_out_bool(file->executable ? "executable" : NULL, 1));
}


int
xet_cli_file_line(const xet_hash_t *hash, uint64_t size, const char *name)
{
    return xet_cli_print_row(0,
               xet_cli_out_hash(NULL, hash, " "),
               xet_cli_out_column(NULL, size, 14, " "),
               xet_cli_out_text(NULL, name, "\n"));
}


/*
 * Prints the empty folders of the tree, which are in a manifest, or the sum of
 * the tree.
 */

static int
xet_cli_put_folders(void *ctx)
{
    int             rc;
    size_t          i;
    xet_cli_put_t  *p = ctx;

    rc = XET_CLI_OK;

    if (p->tree.root >= 0 && !xet_cli_json(p->args)) {
        return xet_cli_total_print(&p->sum, NULL, "new", "");
    }

    for (i = 0; i < p->tree.count && rc == XET_CLI_OK; i++) {

        if (p->tree.entries[i].folder) {
            rc = xet_cli_print_row(xet_cli_json(p->args),
                                   xet_cli_out_text("folder",
                                                    p->tree.entries[i].path,
                                                    NULL));
        }
    }

    return rc;
}


int
xet_cli_puts(const xet_cli_args_t *args, xet_cli_http_t *h,
    const xet_cli_puts_t *puts)
{
    int                 rc;
    xet_cli_putting_t  *p;

    p = calloc(1, sizeof(xet_cli_putting_t));

    if (p == NULL) {
        return xet_cli_no_memory();
    }

    p->args = args;
    p->http = h;
    p->puts = puts;

    if (puts->tree) {
        xet_cli_progress_items(xet_cli_quiet(args), puts->name, "files",
                               puts->tree->files, puts->tree->bytes);
    }

    rc = xet_cli_puts_init(p);
    rc = rc ? rc : xet_cli_puts_files(p);

    xet_cli_progress_close();

    if (p->upload.http) {
        xet_cli_upload_free(&p->upload);
    }

    xet_cli_packer_free(&p->packer);
    free(p);

    return rc;
}


static int
xet_cli_puts_init(xet_cli_putting_t *p)
{
    int        rc;
    char      *endpoint;
    uint64_t   parallel;

    rc = xet_cli_args_number(p->args, XET_CLI_OPT_PARALLEL, 1, 16,
                             XET_CLI_PUT_PARALLEL, &parallel);

    if (rc == XET_CLI_OK) {
        xet_cli_upload_init(&p->upload, p->http, parallel);
        p->upload.once = p->puts->once;

        rc = xet_cli_packer_init(&p->packer, &p->upload);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    endpoint = xet_cli_http_url(p->http, "/");

    if (endpoint == NULL) {
        return xet_cli_no_memory();
    }

    rc = xet_cli_journal_open(&p->upload.journal, p->args, endpoint,
                              p->puts->storage, &p->upload.xorbs);
    free(endpoint);

    return rc;
}


/*
 * Sends all files.  A file that cannot be opened does not stop the other
 * files.  If the server has lost xorbs of an earlier run that files refer to,
 * all files that are not yet registered are read again.
 */

static int
xet_cli_puts_files(xet_cli_putting_t *p)
{
    int     rc;
    size_t  i;

    for (i = 0; i < p->puts->count; i++) {
        rc = xet_cli_puts_next(p, i);

        if (p->puts->tree && !p->puts->tree->entries[i].folder) {
            xet_cli_progress_item(p->puts->tree->entries[i].size);
        }

        if (rc == XET_CLI_OK && p->packer.nfiles
            && (p->packer.terms + p->packer.nfiles >= XET_CLI_PUT_COMMIT
                || i == p->puts->count - 1))
        {
            rc = xet_cli_puts_commit(p);

            if (p->upload.refused && !p->upload.once) {
                p->upload.refused = 0;
                i = p->first - 1;
                continue;
            }

            p->first = i + 1;
        }

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    rc = p->puts->end(p->puts->ctx);

    p->upload.ended = (rc == XET_CLI_OK);

    return xet_cli_worse(p->worst, rc);
}


static int
xet_cli_puts_next(xet_cli_putting_t *p, size_t i)
{
    int          rc, executable;
    FILE        *in;
    const char  *name;

    in = NULL;
    executable = 0;

    rc = p->puts->open(p->puts->ctx, i, &in, &name, &executable);

    if (rc == XET_CLI_ERROR) {
        p->worst = XET_CLI_ERROR;
        return XET_CLI_OK;
    }

    if (rc != XET_CLI_OK || in == NULL) {
        return rc;
    }

    rc = xet_cli_puts_file(p, in, name, executable);

    xet_cli_close(in);

    return rc;
}


static int
xet_cli_puts_file(xet_cli_putting_t *p, FILE *in, const char *name,
    int executable)
{
    int          rc;
    struct stat  st;

    if (fstat(fileno(in), &st) != 0 || !S_ISREG(st.st_mode)) {
        st.st_size = 0;

        /* a pipe cannot be read twice */

        p->upload.once = 1;
    }

    xet_cli_progress_begin(xet_cli_quiet(p->args), name, (uint64_t) st.st_size);

    rc = xet_cli_packer_file(&p->packer, in, name, executable);

    xet_cli_progress_end();

    return rc;
}


static int
xet_cli_puts_commit(xet_cli_putting_t *p)
{
    int     rc;
    size_t  i;

    rc = xet_cli_packer_commit(&p->packer);

    for (i = 0; rc == XET_CLI_OK && i < p->packer.nfiles; i++) {
        rc = p->puts->registered(p->puts->ctx, &p->packer.files[i]);
    }

    xet_cli_packer_clear(&p->packer);

    return rc;
}
