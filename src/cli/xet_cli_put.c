
/*
 * xet put: uploads files.
 *
 * All files share xorbs.  They are registered together at the end, or when
 * there is much to be said of them, and told of only then: what is printed
 * can be downloaded.
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


#define XET_CLI_PUT_PARALLEL  3        /* xorbs */
#define XET_CLI_PUT_COMMIT    200000   /* terms, 96 bytes in a shard each */


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    xet_cli_upload_t       upload;
    xet_cli_packer_t       packer;

    xet_cli_file_t        *files;      /* that are not registered */
    size_t                 nfiles;
    size_t                 terms;      /* of all of them */
} xet_cli_put_t;


static int xet_cli_put_init(xet_cli_put_t *p);
static void xet_cli_put_free(xet_cli_put_t *p);
static int xet_cli_put_files(xet_cli_put_t *p);
static int xet_cli_put_file(xet_cli_put_t *p, FILE *in, const char *name);
static int xet_cli_put_commit(xet_cli_put_t *p);
static int xet_cli_put_print(xet_cli_put_t *p, const xet_cli_file_t *file);


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

    rc = xet_cli_put_init(p);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_put_files(p);
    }

    xet_cli_put_free(p);

    return rc;
}


static int
xet_cli_put_init(xet_cli_put_t *p)
{
    int       rc;
    uint64_t  parallel;

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

    p->files = calloc((size_t) p->args->count, sizeof(xet_cli_file_t));

    return p->files ? XET_CLI_OK : xet_cli_no_memory();
}


static void
xet_cli_put_free(xet_cli_put_t *p)
{
    int  i;

    for (i = 0; p->files && i < p->args->count; i++) {
        free(p->files[i].segments);
    }

    if (p->upload.http) {
        xet_cli_upload_free(&p->upload);
    }

    xet_cli_packer_free(&p->packer);
    xet_cli_http_destroy(p->http);

    free(p->files);
    free(p);
}


/* A file that can't be opened leaves the others alone. */

static int
xet_cli_put_files(xet_cli_put_t *p)
{
    int          i, rc, worst;
    FILE        *in;
    const char  *name;

    worst = XET_CLI_OK;

    for (i = 0; i < p->args->count; i++) {
        name = p->args->operands[i];
        in = xet_cli_open(name);

        if (in == NULL) {
            worst = XET_CLI_ERROR;
            continue;
        }

        rc = xet_cli_put_file(p, in, name);

        xet_cli_close(in);

        if (rc == XET_CLI_OK && p->terms >= XET_CLI_PUT_COMMIT) {
            rc = xet_cli_put_commit(p);
        }

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    if (p->nfiles) {
        worst = xet_cli_worse(worst, xet_cli_put_commit(p));
    }

    return worst;
}


static int
xet_cli_put_file(xet_cli_put_t *p, FILE *in, const char *name)
{
    int              rc;
    struct stat      st;
    xet_cli_file_t  *file;

    file = &p->files[p->nfiles];

    memset(file, 0, sizeof(xet_cli_file_t));
    file->name = name;

    if (fstat(fileno(in), &st) != 0 || !S_ISREG(st.st_mode)) {
        st.st_size = 0;
    }

    xet_cli_progress_begin(p->args, name, (uint64_t) st.st_size);

    rc = xet_cli_packer_file(&p->packer, in, file);

    xet_cli_progress_end();

    p->terms += file->count + 1;
    p->nfiles++;

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

    return xet_cli_json_end(&out);
}
