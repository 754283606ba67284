
/*
 * POST commit/{revision}, and POST batch of a bucket: a commit adds uploaded
 * files to a repo under their paths.
 *
 *     handler checks that the caller may write (PostgreSQL)
 *     feed    (thread) parses operations into a batch
 *     take    stores the files contained in the body, whenever enough bytes
 *             are collected, and at the end (ngx_http_xet_hub_files.c)
 *     stage   (query)  stores each full batch, and the last one
 *     prove   computes the SHA-256 of files that have only a claimed one
 *             (ngx_http_xet_hub_prove.c)
 *     card    reads the metadata of a README.md (ngx_http_xet_hub_card.c)
 *     commit  (query)  applies all operations or none; if another commit has
 *                      changed the same files since the branch was read, and
 *                      the client has sent no parent, repeats "commit"
 *
 * The SHA-256 in a shard is only a claim of the client, so a commit becomes
 * visible only after the server has computed the SHA-256 of all its files.  If
 * the request ends before the commit, the staged operations are dropped.  After
 * a crash, the sweep drops them when they are old.
 *
 * Memory: two buffers of the body, a batch of up to 1,000 operations, a line
 * of up to 1 MiB, and up to 2 MiB of files contained in the body.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_upload.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_HUB_OPERATIONS  1000      /* operations in a batch */
#define NGX_HTTP_XET_HUB_INLINES     1000      /* files in the body */
#define NGX_HTTP_XET_HUB_LOOKS         32      /* maximum attempts to commit */


typedef struct {
    u_char                       upload[NGX_HTTP_XET_UPLOAD_LEN];
    ngx_uint_t                   seq;          /* batches staged so far */

    xet_hub_ops_t                ops;
    size_t                       taken;        /* bytes of the piece parsed */
    ngx_http_xet_hub_batch_t     batch;
    ngx_http_xet_hub_message_t   message;      /* malloc()ed strings */

    ngx_http_xet_hub_files_t     files;        /* files in the body */
    ngx_uint_t                   inlines;      /* files in the body so far */

    ngx_uint_t                   looks;        /* attempts to commit so far */

    ngx_int_t                    rc;           /* rc of the last query */
    ngx_str_t                    store;        /* internal repo name */

    ngx_http_xet_query_t        *query;
    ngx_http_xet_hub_t          *hub;

    unsigned                     staged:1;     /* cleanup must unstage */
    unsigned                     keeps:1;      /* deletions are forbidden */
    unsigned                     deletes:1;    /* the body deletes something */
    unsigned                     much:1;       /* too many bytes are staged */
    unsigned                     readme:1;     /* the body puts a README.md */
} ngx_http_xet_hub_commit_t;


static void ngx_http_xet_hub_commit_cleanup(void *data);
static void ngx_http_xet_hub_commit_entered(ngx_http_request_t *r,
    ngx_int_t rc);
static xet_status_t ngx_http_xet_hub_commit_feed(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static xet_status_t ngx_http_xet_hub_commit_op(void *ctx,
    const xet_hub_operation_t *op);
static xet_status_t ngx_http_xet_hub_commit_add(ngx_http_xet_hub_commit_t *c,
    const xet_hub_operation_t *op);
static xet_status_t ngx_http_xet_hub_commit_header(
    ngx_http_xet_hub_commit_t *c, const xet_hub_operation_t *op);
static xet_status_t ngx_http_xet_hub_commit_inline(
    ngx_http_xet_hub_commit_t *c, const xet_hub_operation_t *op);
static xet_status_t ngx_http_xet_hub_commit_copy(const xet_hub_text_t *text,
    ngx_str_t *copy);
static void ngx_http_xet_hub_commit_wait(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_commit_taken(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);
static void ngx_http_xet_hub_commit_staged(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_hub_commit_read(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_hub_commit_all(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);
static void ngx_http_xet_hub_commit_last(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_hub_commit_claims(ngx_http_request_t *r,
    ngx_http_xet_hub_commit_t *c);
static void ngx_http_xet_hub_commit_batched(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_hub_commit_proven(ngx_http_request_t *r);
static void ngx_http_xet_hub_commit_carded(ngx_http_request_t *r);
static void ngx_http_xet_hub_commit_make(ngx_http_request_t *r,
    ngx_http_xet_hub_commit_t *c);
static void ngx_http_xet_hub_commit_made(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_commit_seen(ngx_http_request_t *r,
    ngx_http_xet_hub_commit_t *c, const ngx_str_t *oid);
static void ngx_http_xet_hub_commit_note(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);
static ngx_int_t ngx_http_xet_hub_commit_send(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);
static void ngx_http_xet_hub_commit_fail(ngx_http_request_t *r,
    xet_status_t status);


ngx_int_t
ngx_http_xet_hub_commit_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    const char                 *message;
    xet_hub_limits_t            limits;
    ngx_http_xet_hub_commit_t  *c;

    c = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_commit_t),
                           ngx_http_xet_hub_commit_cleanup);

    if (c == NULL || RAND_bytes(c->upload, sizeof(c->upload)) != 1) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    hub->state = c;
    c->hub = hub;
    c->query = ngx_http_xet_ctx_of(r)->query;

    ngx_http_xet_hub_limits(r, &limits);

    xet_hub_ops_init(&c->ops, hub->asked.kind == XET_HUB_BUCKET, &limits,
                     ngx_http_xet_hub_commit_op, c);
    hub->refusal = &c->ops.refusal;

    /*
     * "xet_delete off" forbids deletions only in a bucket: in a repo, earlier
     * commits keep the file
     */

    c->keeps = (c->ops.bucket
                && ngx_http_xet_closed(r, XET_SCOPE_DELETE, &message));

    if (ngx_http_xet_hub_flag(r, "create_pr")) {
        return ngx_http_xet_error(r, NGX_HTTP_NOT_IMPLEMENTED,
                                  "no_pull_requests",
                                  "This server does not support pull "
                                  "requests");
    }

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query_hub_enter(r, &hub->asked, &hub->rev, 1,
                                            ngx_http_xet_hub_commit_entered));
}


static void
ngx_http_xet_hub_commit_cleanup(void *data)
{
    ngx_http_xet_hub_commit_t *c = data;

    /* if a statement is in flight, its end drops the staged operations */

    if (c->staged && !c->query->inherited) {
        (void) ngx_http_xet_post(hub_unstage, .upload = c->upload,
                                 .bytes = ngx_http_xet_hub_proving(c->hub));
    }

    xet_hub_ops_free(&c->ops);
    ngx_http_xet_columns_destroy(&c->batch);

    free(c->message.title.data);
    free(c->message.text.data);
    free(c->message.parent.data);

    ngx_http_xet_hub_files_destroy(&c->files);
}


static void
ngx_http_xet_hub_commit_entered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_commit_t  *c;
    ngx_http_xet_hub_answer_t   answer;

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    c = ngx_http_xet_hub_get(r)->state;

    c->store.len = answer.more.len;
    c->store.data = ngx_pstrdup(r->pool, &answer.more);

    if (c->store.data == NULL
        || ngx_http_xet_hub_commit_seen(r, c, &answer.body) != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_http_xet_ctx_of(r)->repo = c->store;

    ngx_http_xet_query_release(r);

    r->read_event_handler = ngx_http_block_reading;

    ngx_http_finalize_request(r,
        ngx_http_xet_body_read(r, &(ngx_http_xet_body_sink_t) {
                                   .feed = ngx_http_xet_hub_commit_feed,
                                   .wait = ngx_http_xet_hub_commit_wait,
                                   .done = ngx_http_xet_hub_commit_read,
                                   .data = c }));
}


/*
 * Parses a piece of the body.  After a pause, feed() is called again with the
 * same piece, and skips the bytes that are already parsed.
 */

static xet_status_t
ngx_http_xet_hub_commit_feed(void *data, u_char *buf, size_t len,
    ngx_uint_t last, ngx_log_t *log)
{
    ngx_http_xet_hub_commit_t *c = data;

    size_t        n;
    xet_status_t  rc;

    rc = xet_hub_ops_feed(&c->ops, buf + c->taken, len - c->taken, &n);

    c->taken += n;

    if (rc == XET_OK && last) {
        rc = xet_hub_ops_end(&c->ops);
    }

    if (rc == XET_OK) {
        c->taken = 0;
    }

    return rc;
}


static xet_status_t
ngx_http_xet_hub_commit_op(void *ctx, const xet_hub_operation_t *op)
{
    ngx_http_xet_hub_commit_t *c = ctx;

    if (op->op == XET_HUB_HEADER) {
        return ngx_http_xet_hub_commit_header(c, op);
    }

    if (op->op == XET_HUB_INLINE) {
        return ngx_http_xet_hub_commit_inline(c, op);
    }

    if (c->keeps
        && (op->op == XET_HUB_DELETE || op->op == XET_HUB_DELETE_FOLDER))
    {
        c->deletes = 1;
        return XET_HUB_OPERATION;
    }

    return ngx_http_xet_hub_commit_add(c, op);
}


/*
 * Adds an operation.  Returns XET_AGAIN if the batch must be staged before
 * parsing continues.
 */

static xet_status_t
ngx_http_xet_hub_commit_add(ngx_http_xet_hub_commit_t *c,
    const xet_hub_operation_t *op)
{
    xet_status_t  rc;

    if (op->path.len == sizeof(XET_HUB_CARD_NAME) - 1
        && ngx_memcmp(op->path.data, XET_HUB_CARD_NAME, op->path.len) == 0)
    {
        c->readme = 1;
    }

    rc = ngx_http_xet_hub_batch_add(&c->batch, op);

    return (rc == XET_OK && c->batch.ops.n >= NGX_HTTP_XET_HUB_OPERATIONS)
           ? XET_AGAIN : rc;
}


void
ngx_http_xet_hub_limits(ngx_http_request_t *r, xet_hub_limits_t *limits)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    limits->operations = xlcf->hub_operations;
    limits->depth = xlcf->hub_depth;
}


static xet_status_t
ngx_http_xet_hub_commit_header(ngx_http_xet_hub_commit_t *c,
    const xet_hub_operation_t *op)
{
    return (ngx_http_xet_hub_commit_copy(&op->title, &c->message.title)
            == XET_OK
            && ngx_http_xet_hub_commit_copy(&op->text, &c->message.text)
               == XET_OK
            && (op->parent.len == 0
                || ngx_http_xet_hub_commit_copy(&op->parent,
                                                &c->message.parent)
                   == XET_OK))
           ? XET_OK : XET_NOMEM;
}


/*
 * Adds a file contained in the body.  Returns XET_AGAIN once enough bytes
 * have been collected; the collected files are then stored together.
 */

static xet_status_t
ngx_http_xet_hub_commit_inline(ngx_http_xet_hub_commit_t *c,
    const xet_hub_operation_t *op)
{
    xet_status_t         rc;
    xet_hub_operation_t  file;

    if (op->content.len && c->inlines++ == NGX_HTTP_XET_HUB_INLINES) {
        return XET_HUB_LARGE;
    }

    file = *op;

    rc = ngx_http_xet_hub_files_add(&c->files, &file);

    if (rc == XET_OK) {
        rc = ngx_http_xet_hub_commit_add(c, &file);
    }

    return (rc == XET_OK && ngx_http_xet_hub_files_full(&c->files))
           ? XET_AGAIN : rc;
}


static xet_status_t
ngx_http_xet_hub_commit_copy(const xet_hub_text_t *text, ngx_str_t *copy)
{
    copy->len = text->len;
    copy->data = malloc(text->len + 1);

    if (copy->data == NULL) {
        return XET_NOMEM;
    }

    ngx_memcpy(copy->data, text->data ? text->data : (u_char *) "",
               text->len);

    return XET_OK;
}


static void
ngx_http_xet_hub_commit_wait(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_commit_t *c = data;

    ngx_int_t  rc;

    if (ngx_http_xet_hub_files_full(&c->files)) {
        ngx_http_xet_hub_files_take(r, &c->files,
                                    ngx_http_xet_hub_commit_taken);
        return;
    }

    c->staged = 1;

    rc = ngx_http_xet_query_hub_stage(r, c->upload, c->seq, &c->batch,
                                      ngx_http_xet_hub_commit_staged);

    if (rc != NGX_AGAIN) {
        c->rc = rc;
        ngx_http_xet_body_resume(r, XET_INTERNAL);
    }
}


static void
ngx_http_xet_hub_commit_taken(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status)
{
    ngx_http_xet_hub_commit_t  *c;

    c = ngx_http_xet_hub_get(r)->state;

    if (rc == NGX_OK && c->batch.ops.n >= NGX_HTTP_XET_HUB_OPERATIONS) {
        ngx_http_xet_hub_commit_wait(r, c);
        return;
    }

    if (rc != NGX_OK && rc != NGX_DECLINED) {
        c->rc = rc;
        status = XET_INTERNAL;
    }

    ngx_http_xet_body_resume(r, status);
}


static void
ngx_http_xet_hub_commit_staged(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_commit_t  *c;

    c = ngx_http_xet_hub_get(r)->state;

    c->rc = rc;
    c->seq++;
    c->much = (rc == NGX_OK && ngx_http_xet_query_number(r) == 0);

    ngx_http_xet_columns_reset(&c->batch);

    ngx_http_xet_body_resume(r, (rc == NGX_OK && !c->much) ? XET_OK
                                                           : XET_INTERNAL);
}


static void
ngx_http_xet_hub_commit_read(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_hub_commit_t *c = data;

    if (c->rc != NGX_OK) {
        ngx_http_xet_query_failed(r, c->rc);
        return;
    }

    if (c->deletes) {
        ngx_http_finalize_request(r, ngx_http_xet_hub_open(r,
                                                           XET_SCOPE_DELETE));
        return;
    }

    if (c->much) {
        ngx_http_finalize_request(r, ngx_http_xet_hub_much(r));
        return;
    }

    if (status != XET_OK) {
        ngx_http_xet_hub_commit_fail(r, status);
        return;
    }

    ngx_http_xet_hub_files_take(r, &c->files, ngx_http_xet_hub_commit_all);
}


static void
ngx_http_xet_hub_commit_all(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status)
{
    ngx_http_xet_hub_commit_t  *c;

    if (rc == NGX_DECLINED) {
        ngx_http_xet_hub_commit_fail(r, status);
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    c = ngx_http_xet_hub_get(r)->state;

    if (c->batch.ops.n == 0) {
        ngx_http_xet_hub_commit_claims(r, c);
        return;
    }

    c->staged = 1;

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query_hub_stage(r, c->upload, c->seq, &c->batch,
                                     ngx_http_xet_hub_commit_last));
}


static void
ngx_http_xet_hub_commit_last(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_commit_t  *c;

    if (!ngx_http_xet_hub_staged(r, rc)) {
        return;
    }

    c = ngx_http_xet_hub_get(r)->state;
    c->seq++;

    ngx_http_xet_hub_commit_claims(r, c);
}


static void
ngx_http_xet_hub_commit_claims(ngx_http_request_t *r,
    ngx_http_xet_hub_commit_t *c)
{
    if (c->ops.bucket) {

        /*
         * operations of a bucket refer to files by xet hashes, so no SHA-256
         * has to be proven
         */

        ngx_http_xet_hub_wait(r,
            ngx_http_xet_query_leave(r,
                ngx_http_xet_query(r, hub_batch,
                                   ngx_http_xet_hub_commit_batched,
                                   .asked = &ngx_http_xet_hub_get(r)->asked,
                                   .upload = c->upload, .batches = c->seq),
                c->upload, 1));
        return;
    }

    ngx_http_xet_hub_prove(r, &c->store, c->upload,
                           ngx_http_xet_hub_commit_proven);
}


/*
 * Sends the list of failed operations, which is the response body for both
 * status 200 and 422.  PostgreSQL has staged this response for a retry; cleanup
 * drops the staged response.
 */

static void
ngx_http_xet_hub_commit_batched(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_answer_t  answer;

    if (rc == NGX_OK) {
        ngx_http_xet_query_hub_get(r, &answer);

        if (answer.body.data) {
            ngx_http_xet_hub_commit_note(r, &answer);
            ngx_http_finalize_request(r,
                ngx_http_xet_hub_json(r, answer.status, &answer.body));
            return;
        }
    }

    ngx_http_xet_hub_added(r, rc);
}


static void
ngx_http_xet_hub_commit_proven(ngx_http_request_t *r)
{
    ngx_http_xet_hub_commit_t  *c;

    c = ngx_http_xet_hub_get(r)->state;

    if (c->readme) {
        ngx_http_xet_hub_card_take(r, &c->store, c->upload,
                                   ngx_http_xet_hub_commit_carded);
        return;
    }

    ngx_http_xet_hub_commit_make(r, c);
}


static void
ngx_http_xet_hub_commit_carded(ngx_http_request_t *r)
{
    ngx_http_xet_hub_commit_make(r, ngx_http_xet_hub_get(r)->state);
}


static void
ngx_http_xet_hub_commit_make(ngx_http_request_t *r,
    ngx_http_xet_hub_commit_t *c)
{
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query_leave(r,
            ngx_http_xet_query(r, hub_commit, ngx_http_xet_hub_commit_made,
                               .asked = &hub->asked, .rev = hub->rev,
                               .upload = c->upload,
                               .parent = c->message.parent, .who = hub->who,
                               .title = c->message.title,
                               .text = c->message.text, .batches = c->seq,
                               .seen = c->message.seen),
            c->upload, 1));
}


static void
ngx_http_xet_hub_commit_made(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_answer_t   answer;
    ngx_http_xet_hub_commit_t  *c;

    if (ngx_http_xet_hub_over(r, rc) != NGX_OK) {
        return;
    }

    if (rc == NGX_ABORT) {
        ngx_http_xet_hub_commit_fail(r, XET_STAGED_GONE);
        return;
    }

    c = ngx_http_xet_hub_get(r)->state;

    if (rc == NGX_OK) {
        ngx_http_xet_query_hub_get(r, &answer);

        if (answer.status == NGX_HTTP_CONFLICT && answer.body.data
            && c->looks++ < NGX_HTTP_XET_HUB_LOOKS)
        {
            if (ngx_http_xet_hub_commit_seen(r, c, &answer.body) != NGX_OK) {
                ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
                return;
            }

            ngx_http_xet_hub_commit_make(r, c);
            return;
        }
    }

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    c->staged = 0;

    ngx_http_xet_hub_commit_note(r, &answer);
    ngx_http_finalize_request(r, ngx_http_xet_hub_commit_send(r, &answer));
}


/*
 * Records the current commit of the branch, for a client that sends no parent.
 */

static ngx_int_t
ngx_http_xet_hub_commit_seen(ngx_http_request_t *r,
    ngx_http_xet_hub_commit_t *c, const ngx_str_t *oid)
{
    ngx_str_null(&c->message.seen);

    if (oid->len != XET_HUB_OID_LEN) {
        return NGX_OK;
    }

    c->message.seen.data = ngx_pnalloc(r->pool, XET_HUB_OID_LEN);
    if (c->message.seen.data == NULL) {
        return NGX_ERROR;
    }

    c->message.seen.len = XET_HUB_OID_LEN;
    ngx_memcpy(c->message.seen.data, oid->data, XET_HUB_OID_LEN);

    return NGX_OK;
}


/*
 * Records the numbers of changed rows and of added bytes, such as "12 5040",
 * for $xet_audit.
 */

static void
ngx_http_xet_hub_commit_note(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer)
{
    u_char                *p, *last;
    ngx_int_t              rows, bytes;
    ngx_http_xet_audit_t  *audit;

    audit = ngx_http_xet_audit_find(r);

    if (audit == NULL || answer->message.data == NULL) {
        return;
    }

    last = answer->message.data + answer->message.len;
    p = ngx_strlchr(answer->message.data, last, ' ');

    if (p == NULL) {
        return;
    }

    rows = ngx_atoi(answer->message.data, p - answer->message.data);
    bytes = ngx_atoi(p + 1, last - (p + 1));

    audit->rows = (rows > 0) ? rows : 0;
    audit->metadata = (bytes > 0) ? bytes : 0;
}


static ngx_int_t
ngx_http_xet_hub_commit_send(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer)
{
    ngx_str_t   url;
    xet_buf_t   b;
    xet_json_t  j;

    if (ngx_http_xet_hub_url(r, &answer->more, &answer->body, &url)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 512);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    xet_json_put_bool(&j, "success", 1);
    xet_json_put_string(&j, "commitOid", answer->body.data, answer->body.len);
    xet_json_put_string(&j, "commitUrl", url.data, url.len);
    xet_json_put_cstring(&j, "hookOutput", "");
    xet_json_object_end(&j);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &b);
}


static void
ngx_http_xet_hub_commit_fail(ngx_http_request_t *r, xet_status_t status)
{
    ngx_http_finalize_request(r, ngx_http_xet_hub_status(r, status));
}
