
/*
 * The first commit of a repo that is created together with files.
 *
 *     add    (thread)   adds a file of the body
 *     begin  (query)    checks that the caller may create the repo, and creates
 *                       a temporary repo for the uploads
 *     take   stores all files together (ngx_http_xet_hub_files.c)
 *     stage  (query)    stages the files, for the statement that creates the
 *                       repo
 *     card   reads the metadata of a README.md (ngx_http_xet_hub_card.c)
 *
 * No token is issued for the temporary repo.  When the repo is created, the
 * temporary repo becomes its internal store.  If the request fails, the
 * temporary repo and the staged files are dropped when the request ends, or by
 * the sweep.
 *
 * Memory: the contents of the files, which come from a body of at most 1 MiB.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_upload.h"


struct ngx_http_xet_hub_initial_s {
    const u_char                *upload;
    ngx_http_xet_hub_files_t     files;
    ngx_http_xet_hub_batch_t     batch;
    ngx_http_xet_query_t        *query;
    void                       (*done)(ngx_http_request_t *r,
                                       ngx_uint_t batches);
    void                        *state;        /* state of the route */
    unsigned                     begun:1;      /* cleanup must unstage */
};


static void ngx_http_xet_hub_initial_cleanup(void *data);
static void ngx_http_xet_hub_initial_begun(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_hub_initial_taken(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);
static void ngx_http_xet_hub_initial_staged(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_hub_initial_carded(ngx_http_request_t *r);
static void ngx_http_xet_hub_initial_end(ngx_http_request_t *r,
    ngx_http_xet_hub_initial_t *first, ngx_uint_t batches);


ngx_http_xet_hub_initial_t *
ngx_http_xet_hub_initial_create(ngx_http_request_t *r, const u_char *upload)
{
    ngx_http_xet_hub_initial_t  *first;

    first = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_initial_t),
                               ngx_http_xet_hub_initial_cleanup);
    if (first == NULL) {
        return NULL;
    }

    first->upload = upload;
    first->query = ngx_http_xet_ctx_of(r)->query;

    return first;
}


static void
ngx_http_xet_hub_initial_cleanup(void *data)
{
    ngx_http_xet_hub_initial_t *first = data;

    /* if a statement is in flight, its end drops the staged files */

    if (first->begun && !first->query->inherited) {
        (void) ngx_http_xet_post(hub_unstage, .upload = first->upload);
    }

    ngx_http_xet_hub_files_destroy(&first->files);
    ngx_http_xet_columns_destroy(&first->batch);
}


xet_status_t
ngx_http_xet_hub_initial_add(void *ctx, const xet_hub_operation_t *op)
{
    ngx_http_xet_hub_initial_t *first = ctx;

    xet_status_t         rc;
    xet_hub_operation_t  file;

    file = *op;

    rc = ngx_http_xet_hub_files_add(&first->files, &file);

    return (rc == XET_OK) ? ngx_http_xet_hub_batch_add(&first->batch, &file)
                          : rc;
}


void
ngx_http_xet_hub_initial_take(ngx_http_request_t *r,
    ngx_http_xet_hub_initial_t *first,
    void (*done)(ngx_http_request_t *r, ngx_uint_t batches))
{
    ngx_http_xet_hub_t  *hub;

    if (first->batch.ops.n == 0) {
        done(r, 0);
        return;
    }

    hub = ngx_http_xet_hub_get(r);

    first->done = done;
    first->begun = 1;

    /* replaces the state of the route until the files are staged */

    first->state = hub->state;
    hub->state = first;

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query_leave(r,
            ngx_http_xet_query(r, hub_begin, ngx_http_xet_hub_initial_begun,
                               .asked = &hub->asked, .upload = first->upload),
            first->upload, 1));
}


static void
ngx_http_xet_hub_initial_begun(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ctx_t          *ctx;
    ngx_http_xet_hub_initial_t  *first;
    ngx_http_xet_hub_answer_t    answer;

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    first = ngx_http_xet_hub_get(r)->state;

    if (answer.more.data == NULL) {

        /*
         * the repo exists already: hub_create will return this error, or XT003
         * if the repo is deleted in the meantime
         */

        ngx_http_xet_hub_initial_end(r, first, 1);
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

    ngx_http_xet_hub_files_take(r, &first->files,
                                ngx_http_xet_hub_initial_taken);
}


static void
ngx_http_xet_hub_initial_taken(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status)
{
    ngx_http_xet_hub_initial_t  *first;

    if (rc != NGX_OK) {
        ngx_http_finalize_request(r, (rc == NGX_DECLINED)
                                     ? ngx_http_xet_hub_status(r, status)
                                     : ngx_http_xet_query_error(r, rc));
        return;
    }

    first = ngx_http_xet_hub_get(r)->state;

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query_hub_stage(r, first->upload, 0, &first->batch,
                                     ngx_http_xet_hub_initial_staged));
}


static void
ngx_http_xet_hub_initial_staged(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_initial_t  *first;

    if (!ngx_http_xet_hub_staged(r, rc)) {
        return;
    }

    first = ngx_http_xet_hub_get(r)->state;

    ngx_http_xet_hub_card_take(r, &ngx_http_xet_ctx_of(r)->repo, first->upload,
                               ngx_http_xet_hub_initial_carded);
}


static void
ngx_http_xet_hub_initial_carded(ngx_http_request_t *r)
{
    ngx_http_xet_hub_initial_end(r, ngx_http_xet_hub_get(r)->state, 1);
}


static void
ngx_http_xet_hub_initial_end(ngx_http_request_t *r,
    ngx_http_xet_hub_initial_t *first, ngx_uint_t batches)
{
    ngx_http_xet_hub_get(r)->state = first->state;

    first->done(r, batches);
}


void
ngx_http_xet_hub_initial_done(ngx_http_xet_hub_initial_t *first)
{
    first->begun = 0;
}
