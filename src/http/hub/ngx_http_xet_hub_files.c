
/*
 * Stores files that are contained in the body of a request that makes a commit
 * or creates a repo.
 *
 *     add    (thread)   copies a file of the body, and computes its SHA-256
 *     here   (query)    looks up which of these files the repo already has
 *     take   (the ingest service) stores the other files together
 *
 * Many small files are stored together, so that their cost depends on their
 * bytes, not on their number.  A file that the repo already has is not stored
 * again, but PostgreSQL keeps it for as long as a newly uploaded file.
 *
 * Memory: NGX_HTTP_XET_HUB_FILES_SIZE bytes of contents, plus one file.  The
 * structure belongs to the thread while the thread adds files, otherwise to the
 * event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_upload.h"

#include <openssl/sha.h>


#define NGX_HTTP_XET_HUB_FILES_SIZE  (1024 * 1024)


static ngx_uint_t ngx_http_xet_hub_files_twice(ngx_http_xet_hub_files_t *f,
    const u_char *sha256);
static ngx_int_t ngx_http_xet_hub_files_ask(ngx_http_request_t *r,
    ngx_http_xet_hub_files_t *f);
static void ngx_http_xet_hub_files_asked(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_hub_files_drop(ngx_http_xet_hub_files_t *f,
    ngx_uint_t i);
static void ngx_http_xet_hub_files_ingested(ngx_http_request_t *r,
    ngx_int_t rc, xet_status_t status, ngx_http_xet_ingest_result_t *result);
static void ngx_http_xet_hub_files_end(ngx_http_request_t *r,
    ngx_http_xet_hub_files_t *f, ngx_int_t rc, xet_status_t status);


void
ngx_http_xet_hub_files_destroy(ngx_http_xet_hub_files_t *f)
{
    ngx_uint_t  i;

    for (i = 0; i < f->n; i++) {
        free(f->files[i].data);
    }

    free(f->files);
    f->files = NULL;
    f->n = 0;

    ngx_http_xet_array_destroy(&f->sha256);
}


/*
 * Adds a file, unless it is empty or the list already contains it: an empty
 * file is not stored, and equal files are stored once.
 */

xet_status_t
ngx_http_xet_hub_files_add(ngx_http_xet_hub_files_t *f,
    xet_hub_operation_t *op)
{
    size_t                       room;
    ngx_http_xet_ingest_file_t  *file;

    op->op = XET_HUB_LFS;
    op->size = (int64_t) op->content.len;

    SHA256(op->content.data, op->content.len, op->sha256);

    if (op->content.len == 0 || ngx_http_xet_hub_files_twice(f, op->sha256)) {
        return XET_OK;
    }

    if (f->n == f->room) {
        room = f->room ? 2 * f->room : 8;

        file = realloc(f->files, room * sizeof(ngx_http_xet_ingest_file_t));
        if (file == NULL) {
            return XET_NOMEM;
        }

        f->files = file;
        f->room = room;
    }

    file = &f->files[f->n];

    ngx_memzero(file, sizeof(ngx_http_xet_ingest_file_t));

    file->data = malloc(op->content.len);
    if (file->data == NULL) {
        return XET_NOMEM;
    }

    file->len = op->content.len;

    ngx_memcpy(file->data, op->content.data, file->len);
    ngx_memcpy(file->sha256, op->sha256, XET_DIGEST_SHA256_LEN);

    f->n++;
    f->size += file->len;

    return XET_OK;
}


static ngx_uint_t
ngx_http_xet_hub_files_twice(ngx_http_xet_hub_files_t *f,
    const u_char *sha256)
{
    ngx_uint_t  i;

    for (i = 0; i < f->n; i++) {

        if (ngx_memcmp(f->files[i].sha256, sha256, XET_DIGEST_SHA256_LEN)
            == 0)
        {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_http_xet_hub_files_full(const ngx_http_xet_hub_files_t *f)
{
    return f->size >= NGX_HTTP_XET_HUB_FILES_SIZE;
}


void
ngx_http_xet_hub_files_take(ngx_http_request_t *r,
    ngx_http_xet_hub_files_t *f, ngx_http_xet_hub_files_pt done)
{
    ngx_int_t  rc;

    f->done = done;

    if (f->n == 0) {
        ngx_http_xet_hub_files_end(r, f, NGX_OK, XET_OK);
        return;
    }

    ngx_http_xet_hub_get(r)->files = f;

    rc = ngx_http_xet_hub_files_ask(r, f);

    if (rc != NGX_AGAIN) {
        ngx_http_xet_hub_files_end(r, f, rc, XET_INTERNAL);
    }
}


static ngx_int_t
ngx_http_xet_hub_files_ask(ngx_http_request_t *r, ngx_http_xet_hub_files_t *f)
{
    ngx_uint_t           i;
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    ngx_http_xet_array_reset(&f->sha256);

    for (i = 0; i < f->n; i++) {
        ngx_http_xet_array_bytes(&f->sha256, f->files[i].sha256,
                                 XET_DIGEST_SHA256_LEN);
    }

    return ngx_http_xet_query(r, hub_here, ngx_http_xet_hub_files_asked,
                              .store = ctx->repo, .digests = &f->sha256);
}


static void
ngx_http_xet_hub_files_asked(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_uint_t                    i, n;
    ngx_http_xet_hub_files_t     *f;
    ngx_http_xet_hub_here_row_t   row;

    f = ngx_http_xet_hub_get(r)->files;

    if (rc != NGX_OK && rc != NGX_DECLINED) {
        ngx_http_xet_hub_files_end(r, f, rc, XET_INTERNAL);
        return;
    }

    n = (rc == NGX_OK) ? ngx_http_xet_query_rows(ngx_http_xet_ctx_of(r)->query)
                        : 0;

    for (i = 0; i < n; i++) {
        (void) ngx_http_xet_row(r, hub_here, i, &row);
        ngx_http_xet_hub_files_drop(f, row.n);
    }

    ngx_http_xet_query_release(r);

    n = 0;

    for (i = 0; i < f->n; i++) {
        if (f->files[i].data) {
            f->files[n++] = f->files[i];
        }
    }

    f->n = n;

    if (n == 0) {
        ngx_http_xet_hub_files_end(r, f, NGX_OK, XET_OK);
        return;
    }

    if (ngx_http_xet_ingest_files(r, f->files, n,
                                  ngx_http_xet_hub_files_ingested)
        != NGX_DONE)
    {
        ngx_http_xet_hub_files_end(r, f, NGX_ERROR, XET_INTERNAL);
    }
}


static void
ngx_http_xet_hub_files_drop(ngx_http_xet_hub_files_t *f, ngx_uint_t i)
{
    if (i < f->n) {
        free(f->files[i].data);
        f->files[i].data = NULL;
    }
}


static void
ngx_http_xet_hub_files_ingested(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result)
{
    ngx_http_xet_hub_files_end(r, ngx_http_xet_hub_get(r)->files, rc, status);
}


static void
ngx_http_xet_hub_files_end(ngx_http_request_t *r, ngx_http_xet_hub_files_t *f,
    ngx_int_t rc, xet_status_t status)
{
    ngx_uint_t  i;

    for (i = 0; i < f->n; i++) {
        ngx_http_xet_hub_files_drop(f, i);
    }

    f->n = 0;
    f->size = 0;

    f->done(r, rc, status);
}
