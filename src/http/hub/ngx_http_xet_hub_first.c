
/*
 * The files that a repo is created with: its first commit.
 *
 *     add    (thread)   a file, of the body
 *     begin  (query)    may the caller create it?  A place for its uploads
 *     take   (the ingest service) one file after the other
 *     stage  (query)    all of them, for the statement that makes the repo
 *
 * The place is one that no token leads to.  It becomes that of the repo when
 * that is made; else it is dropped, with what was staged, when the request
 * ends, or by the sweep.
 *
 * Memory: the contents, which stand in a body of 1 MiB.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_upload.h"

#include <openssl/sha.h>


typedef struct {
    xet_hub_operation_t           op;          /* path and content: below */
    u_char                       *text;        /* malloc()ed */
} ngx_http_xet_hub_first_file_t;


struct ngx_http_xet_hub_first_s {
    const u_char                   *upload;
    ngx_http_xet_hub_first_file_t  *files;     /* malloc()ed */
    ngx_uint_t                      n;
    ngx_uint_t                      room;
    ngx_uint_t                      next;
    ngx_http_xet_hub_batch_t        batch;
    ngx_http_xet_query_t           *query;
    void                          (*done)(ngx_http_request_t *r,
                                          ngx_uint_t batches);
    void                           *state;     /* of the route */
    unsigned                        begun:1;   /* is to be dropped */
};


static void ngx_http_xet_hub_first_cleanup(void *data);
static void ngx_http_xet_hub_first_begun(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_hub_first_next(ngx_http_request_t *r,
    ngx_http_xet_hub_first_t *first);
static void ngx_http_xet_hub_first_taken(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result);
static void ngx_http_xet_hub_first_staged(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_hub_first_end(ngx_http_request_t *r,
    ngx_http_xet_hub_first_t *first, ngx_uint_t batches);


ngx_http_xet_hub_first_t *
ngx_http_xet_hub_first_create(ngx_http_request_t *r, const u_char *upload)
{
    ngx_http_xet_hub_first_t  *first;

    first = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_first_t),
                               ngx_http_xet_hub_first_cleanup);
    if (first == NULL) {
        return NULL;
    }

    first->upload = upload;
    first->query = ngx_http_xet_query_get(r);

    ngx_http_xet_hub_batch_init(&first->batch);

    return first;
}


static void
ngx_http_xet_hub_first_cleanup(void *data)
{
    ngx_http_xet_hub_first_t *first = data;

    ngx_uint_t  i;

    /* a statement that is under way drops it when it has ended */

    if (first->begun && !first->query->inherited) {
        ngx_http_xet_query_hub_unstage(first->upload, 0);
    }

    for (i = 0; i < first->n; i++) {
        free(first->files[i].text);
    }

    free(first->files);

    ngx_http_xet_hub_batch_destroy(&first->batch);
}


xet_status_t
ngx_http_xet_hub_first_add(void *ctx, const xet_hub_operation_t *op)
{
    ngx_http_xet_hub_first_t *first = ctx;

    size_t                          room;
    ngx_http_xet_hub_first_file_t  *file;

    if (first->n == first->room) {
        room = first->room ? 2 * first->room : 8;

        file = realloc(first->files,
                       room * sizeof(ngx_http_xet_hub_first_file_t));
        if (file == NULL) {
            return XET_NOMEM;
        }

        first->files = file;
        first->room = room;
    }

    file = &first->files[first->n];

    file->op = *op;
    file->op.op = XET_HUB_LFS;
    file->op.size = (int64_t) op->content.len;

    file->text = malloc(op->path.len + op->content.len + 1);
    if (file->text == NULL) {
        return XET_NOMEM;
    }

    first->n++;

    ngx_memcpy(file->text, op->path.data, op->path.len);

    if (op->content.len) {
        ngx_memcpy(file->text + op->path.len, op->content.data,
                   op->content.len);
    }

    file->op.path.data = file->text;
    file->op.content.data = file->text + op->path.len;

    return XET_OK;
}


void
ngx_http_xet_hub_first_take(ngx_http_request_t *r,
    ngx_http_xet_hub_first_t *first,
    void (*done)(ngx_http_request_t *r, ngx_uint_t batches))
{
    ngx_http_xet_hub_t  *hub;

    if (first->n == 0) {
        done(r, 0);
        return;
    }

    hub = ngx_http_xet_hub_get(r);

    first->done = done;
    first->begun = 1;

    /* lent, until it is done */

    first->state = hub->state;
    hub->state = first;

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query_hub_begin(r, &hub->asked, first->upload,
                                     ngx_http_xet_hub_first_begun));
}


static void
ngx_http_xet_hub_first_begun(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ctx_t         *ctx;
    ngx_http_xet_hub_first_t   *first;
    ngx_http_xet_hub_answer_t   answer;

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    first = ngx_http_xet_hub_get(r)->state;

    if (answer.more.data == NULL) {

        /* it is there, as it will be told; or if it goes now, XT003 */

        ngx_http_xet_hub_first_end(r, first, 1);
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    ctx->repo.len = answer.more.len;
    ctx->repo.data = ngx_pstrdup(r->pool, &answer.more);

    if (ctx->repo.data == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_http_xet_query_release(r);

    ngx_http_xet_hub_first_next(r, first);
}


/* A file without bytes needs no upload. */

static void
ngx_http_xet_hub_first_next(ngx_http_request_t *r,
    ngx_http_xet_hub_first_t *first)
{
    ngx_http_xet_hub_first_file_t   *file;
    ngx_http_xet_ingest_expected_t   expected;

    for ( /* void */ ; first->next < first->n; first->next++) {
        file = &first->files[first->next];

        if (file->op.content.len) {
            ngx_memzero(&expected, sizeof(ngx_http_xet_ingest_expected_t));

            if (ngx_http_xet_ingest_bytes(r, (u_char *) file->op.content.data,
                                          file->op.content.len, &expected,
                                          ngx_http_xet_hub_first_taken)
                != NGX_DONE)
            {
                ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            }

            return;
        }

        SHA256(NULL, 0, file->op.sha256);

        if (ngx_http_xet_hub_batch_add(&first->batch, &file->op) != XET_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }
    }

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query_hub_stage(r, first->upload, 0, &first->batch,
                                     ngx_http_xet_hub_first_staged));
}


static void
ngx_http_xet_hub_first_taken(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result)
{
    ngx_http_xet_hub_first_t       *first;
    ngx_http_xet_hub_first_file_t  *file;

    first = ngx_http_xet_hub_get(r)->state;

    if (rc == NGX_OK) {
        file = &first->files[first->next];

        ngx_memcpy(file->op.sha256, result->sha256, XET_HUB_SHA256_LEN);

        rc = NGX_DECLINED;
        status = ngx_http_xet_hub_batch_add(&first->batch, &file->op);

        if (status == XET_OK) {
            first->next++;
            ngx_http_xet_hub_first_next(r, first);
            return;
        }
    }

    ngx_http_finalize_request(r, (rc == NGX_DECLINED)
                                 ? ngx_http_xet_hub_status(r, status)
                                 : ngx_http_xet_query_error(r, rc, NULL,
                                                            NULL));
}


static void
ngx_http_xet_hub_first_staged(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_query_error(r, rc, NULL,
                                                              NULL));
        return;
    }

    ngx_http_xet_hub_first_end(r, ngx_http_xet_hub_get(r)->state, 1);
}


static void
ngx_http_xet_hub_first_end(ngx_http_request_t *r,
    ngx_http_xet_hub_first_t *first, ngx_uint_t batches)
{
    ngx_http_xet_hub_get(r)->state = first->state;

    first->done(r, batches);
}


void
ngx_http_xet_hub_first_done(ngx_http_xet_hub_first_t *first)
{
    first->begun = 0;
}
