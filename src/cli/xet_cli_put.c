
/*
 * xet put: uploads files.
 *
 * All files share xorbs.  They are registered together at the end, or when
 * there is much to be said of them, and told of only then: what is printed
 * can be downloaded.  What is printed as JSON of a tree is a manifest, which
 * "xet get --recursive" reads.
 */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "xet_cli_digest.h"
#include "xet_cli_json.h"
#include "xet_cli_packer.h"
#include "xet_cli_progress.h"
#include "xet_cli_text.h"
#include "xet_cli_tree.h"


#define XET_CLI_PUT_PARALLEL  3        /* xorbs */
#define XET_CLI_PUT_COMMIT    200000   /* terms, 96 bytes in a shard each */


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    xet_cli_upload_t       upload;
    xet_cli_packer_t       packer;

    xet_cli_tree_t         tree;       /* what is read: a tree, */
    size_t                 count;      /* or the operands */

    xet_cli_file_t        *files;      /* that are not registered */
    size_t                 nfiles;
    size_t                 room;
    size_t                 terms;      /* of all of them */
    size_t                 first;      /* the next thing to read then */
    int                    worst;      /* of what could not be opened */
} xet_cli_put_t;


static int xet_cli_put_init(xet_cli_put_t *p);
static void xet_cli_put_free(xet_cli_put_t *p);
static int xet_cli_put_what(xet_cli_put_t *p);
static int xet_cli_put_files(xet_cli_put_t *p);
static int xet_cli_put_next(xet_cli_put_t *p, size_t i);
static int xet_cli_put_file(xet_cli_put_t *p, FILE *in, xet_cli_file_t *file);
static int xet_cli_put_room(xet_cli_put_t *p);
static int xet_cli_put_commit(xet_cli_put_t *p);
static int xet_cli_put_print(xet_cli_put_t *p, const xet_cli_file_t *file);
static int xet_cli_put_folders(const xet_cli_put_t *p);


int
xet_cli_put(const xet_cli_args_t *args)
{
    int             rc;
    xet_cli_put_t  *p;

    p = calloc(1, sizeof(xet_cli_put_t));

    if (p == NULL) {
        return xet_cli_no_memory();
    }

    p->args = args;
    p->tree.root = -1;

    rc = xet_cli_put_init(p);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_put_what(p);

        if (rc <= XET_CLI_ERROR && p->count) {
            rc = xet_cli_worse(rc, xet_cli_put_files(p));
        }
    }

    xet_cli_put_free(p);

    return rc;
}


static int
xet_cli_put_init(xet_cli_put_t *p)
{
    int        rc;
    char      *endpoint;
    uint64_t   parallel;

    rc = xet_cli_args_number(p->args, XET_CLI_OPT_PARALLEL, 1, 16,
                             XET_CLI_PUT_PARALLEL, &parallel);

    if (rc == XET_CLI_OK) {
        p->http = xet_cli_http_create(p->args, &rc);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_http_endpoint(p->http);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_upload_init(&p->upload, p->http, parallel);
    }

    if (rc == XET_CLI_OK) {
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
                              &p->upload.dedup);
    free(endpoint);

    return rc;
}


static void
xet_cli_put_free(xet_cli_put_t *p)
{
    size_t  i;

    for (i = 0; i < p->nfiles; i++) {
        free(p->files[i].segments);
    }

    if (p->upload.http) {
        xet_cli_upload_free(&p->upload);
    }

    xet_cli_packer_free(&p->packer);
    xet_cli_http_destroy(p->http);
    xet_cli_tree_free(&p->tree);

    free(p->files);
    free(p);
}


/* What of a tree can't be read leaves the rest of it alone. */

static int
xet_cli_put_what(xet_cli_put_t *p)
{
    int  i, rc;

    if (!p->args->value[XET_CLI_OPT_RECURSIVE]) {
        p->count = (size_t) p->args->count;

        for (i = 0; i < p->args->count; i++) {
            if (strcmp(p->args->operands[i], "-") == 0) {
                p->upload.once = 1;
            }
        }

        return XET_CLI_OK;
    }

    if (p->args->count > 1) {
        return xet_cli_fail(XET_CLI_USAGE, "put", "--recursive is for one "
                            "folder");
    }

    rc = xet_cli_tree_read(&p->tree, p->args->operands[0]);

    p->count = p->tree.count;

    return rc;
}


/*
 * A file that can't be opened leaves the others alone.  Files that refer to
 * what the server has no more are read once more, from the first that is not
 * registered on.
 */

static int
xet_cli_put_files(xet_cli_put_t *p)
{
    int     rc;
    size_t  i;

    for (i = 0; i < p->count; i++) {
        rc = xet_cli_put_next(p, i);

        if (rc == XET_CLI_OK && p->nfiles
            && (p->terms >= XET_CLI_PUT_COMMIT || i == p->count - 1))
        {
            rc = xet_cli_put_commit(p);

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

    p->upload.ended = 1;

    return xet_cli_worse(p->worst, xet_cli_put_folders(p));
}


static int
xet_cli_put_next(xet_cli_put_t *p, size_t i)
{
    int              rc, executable;
    FILE            *in;
    const char      *name;
    xet_cli_file_t  *file;

    executable = 0;

    if (p->tree.root < 0) {
        name = p->args->operands[i];
        in = xet_cli_open(name);

    } else if (p->tree.entries[i].folder) {
        return XET_CLI_OK;

    } else {
        name = p->tree.entries[i].path;
        in = xet_cli_tree_open(&p->tree, name, &executable);
    }

    if (in == NULL) {
        p->worst = XET_CLI_ERROR;
        return XET_CLI_OK;
    }

    rc = xet_cli_put_room(p);

    if (rc == XET_CLI_OK) {
        file = &p->files[p->nfiles++];

        memset(file, 0, sizeof(xet_cli_file_t));
        file->name = name;
        file->executable = (executable != 0);

        rc = xet_cli_put_file(p, in, file);
    }

    xet_cli_close(in);

    return rc;
}


static int
xet_cli_put_room(xet_cli_put_t *p)
{
    size_t           n;
    xet_cli_file_t  *files;

    if (p->nfiles < p->room) {
        return XET_CLI_OK;
    }

    n = p->room ? p->room * 2 : 16;
    files = realloc(p->files, n * sizeof(xet_cli_file_t));

    if (files == NULL) {
        return xet_cli_no_memory();
    }

    p->files = files;
    p->room = n;

    return XET_CLI_OK;
}


static int
xet_cli_put_file(xet_cli_put_t *p, FILE *in, xet_cli_file_t *file)
{
    int          rc;
    struct stat  st;

    if (fstat(fileno(in), &st) != 0 || !S_ISREG(st.st_mode)) {
        st.st_size = 0;

        /* what a pipe gave, under whatever name, it does not give again */

        p->upload.once = 1;
    }

    xet_cli_progress_begin(p->args, file->name, (uint64_t) st.st_size);

    rc = xet_cli_packer_file(&p->packer, in, file);

    xet_cli_progress_end();

    p->terms += file->count + 1;

    return rc;
}


static int
xet_cli_put_commit(xet_cli_put_t *p)
{
    int     rc;
    size_t  i;

    rc = xet_cli_upload_commit(&p->upload, p->files, p->nfiles);

    for (i = 0; i < p->nfiles; i++) {
        if (rc == XET_CLI_OK) {
            rc = xet_cli_put_print(p, &p->files[i]);
        }

        free(p->files[i].segments);
        p->files[i].segments = NULL;
    }

    p->nfiles = 0;
    p->terms = 0;

    return rc;
}


static int
xet_cli_put_print(xet_cli_put_t *p, const xet_cli_file_t *file)
{
    char             hash[XET_HASH_STR_LEN + 1];
    char             sha256[2 * XET_CLI_SHA256_LEN + 1];
    uint64_t         known;
    xet_json_t      *j;
    xet_cli_json_t   out;

    *xet_hash_print_plain((uint8_t *) sha256, file->sha256) = '\0';
    known = file->size - file->new_bytes;

    if (!p->args->value[XET_CLI_OPT_JSON]) {
        xet_cli_text_print(stdout, file->name);
        printf("\n"
               "  hash          %s\n"
               "  size          %" PRIu64 "\n"
               "  sha256        %s\n"
               "  new           %" PRIu64 "\n"
               "  deduplicated  %" PRIu64 "\n",
               xet_cli_hash_string(&file->hash, hash), file->size,
               sha256, file->new_bytes, known);

        return xet_cli_flush();
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_string(j, "file", file->name);
    xet_cli_json_put_hash(j, "hash", &file->hash);
    xet_cli_json_put_u64(j, "size", file->size);
    xet_cli_json_put_string(j, "sha256", sha256);
    xet_cli_json_put_u64(j, "new_bytes", file->new_bytes);
    xet_cli_json_put_u64(j, "deduplicated_bytes", known);

    if (file->executable) {
        xet_json_key(j, "executable");
        xet_json_bool(j, 1);
    }

    return xet_cli_json_end(&out);
}


/* A manifest has them, or they would be missing. */

static int
xet_cli_put_folders(const xet_cli_put_t *p)
{
    int              rc;
    size_t           i;
    xet_json_t      *j;
    xet_cli_json_t   out;

    if (!p->args->value[XET_CLI_OPT_JSON]) {
        return XET_CLI_OK;
    }

    rc = XET_CLI_OK;

    for (i = 0; i < p->tree.count && rc == XET_CLI_OK; i++) {

        if (p->tree.entries[i].folder) {
            j = xet_cli_json_begin(&out);
            xet_cli_json_put_string(j, "folder", p->tree.entries[i].path);
            rc = xet_cli_json_end(&out);
        }
    }

    return rc;
}
