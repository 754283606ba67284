
/*
 * Commits: add uploaded files to a repository, and delete files from it.
 *
 * Purpose:    builds the operations of a commit, or of a batch for a bucket,
 *             as NDJSON; prints them after the Hub has confirmed the commit.
 * States:     operations are added.  They are sent when there are many, when
 *             the first has waited too long, or at the end.  After that they
 *             are printed and dropped.
 * Ownership:  the commit owns its operations; the caller owns the paths.
 *
 * If the response to a commit is lost, the commit is sent again.  This is
 * safe: an identical commit is applied only once, and a second deletion
 * succeeds although the file is missing.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_hub.h"


#define XET_CLI_HUB_COMMIT_MOST  10000           /* operations */
#define XET_CLI_HUB_COMMIT_AGE   (30 * 60000)    /* ms: uploads may expire on
                                                    the Hub */


static xet_cli_hub_op_t *xet_cli_hub_commit_add(xet_cli_hub_commit_t *c,
    const char *path);
static int xet_cli_hub_commit_header(xet_cli_hub_commit_t *c, xet_buf_t *b);
static void xet_cli_hub_commit_line(xet_cli_hub_op_t *op, xet_buf_t *b);
static void xet_cli_hub_commit_object(xet_cli_hub_op_t *op, xet_buf_t *b);
static int xet_cli_hub_commit_taken(xet_cli_hub_commit_t *c,
    const xet_cli_request_t *r);
static int xet_cli_hub_commit_failed(const json_t *failed);
static int xet_cli_hub_commit_print(xet_cli_hub_commit_t *c);


int
xet_cli_hub_commit_put(xet_cli_hub_commit_t *c, const char *path,
    const xet_cli_file_t *file, int64_t mtime)
{
    xet_cli_hub_op_t  *op;

    op = xet_cli_hub_commit_add(c, path);

    if (op == NULL) {
        return xet_cli_no_memory();
    }

    if (file) {
        op->file = *file;
        op->file.segments = NULL;

    } else {
        EVP_Digest(NULL, 0, op->file.sha256, NULL, EVP_sha256(), NULL);
    }

    op->file.name = path;
    op->mtime = mtime;

    return XET_CLI_OK;
}


int
xet_cli_hub_commit_remove(xet_cli_hub_commit_t *c, const char *path,
    int folder)
{
    xet_cli_hub_op_t  *op;

    op = xet_cli_hub_commit_add(c, path);

    if (op == NULL) {
        return xet_cli_no_memory();
    }

    op->removed = 1;
    op->folder = (folder != 0);

    return XET_CLI_OK;
}


static xet_cli_hub_op_t *
xet_cli_hub_commit_add(xet_cli_hub_commit_t *c, const char *path)
{
    xet_cli_hub_op_t  *ops;

    ops = xet_cli_grow(c->ops, c->n, &c->room, sizeof(xet_cli_hub_op_t));

    if (ops == NULL) {
        return NULL;
    }

    if (c->n == 0) {
        c->began = xet_cli_now();
    }

    c->ops = ops;
    ops += c->n++;

    memset(ops, 0, sizeof(xet_cli_hub_op_t));

    ops->path = path;
    ops->mtime = -1;

    return ops;
}


int
xet_cli_hub_commit_due(const xet_cli_hub_commit_t *c)
{
    return c->n >= XET_CLI_HUB_COMMIT_MOST
           || (c->n && xet_cli_now() - c->began >= XET_CLI_HUB_COMMIT_AGE);
}


int
xet_cli_hub_commit_send(xet_cli_hub_commit_t *c)
{
    int                 rc, bucket;
    size_t              i;
    xet_buf_t           b;
    xet_cli_request_t   r;

    if (c->n == 0) {
        return XET_CLI_OK;
    }

    bucket = (c->hub->kind == XET_HUB_BUCKET);

    xet_buf_init(&b, xet_cli_buf_alloc, NULL, 65536);

    rc = bucket ? XET_CLI_OK : xet_cli_hub_commit_header(c, &b);

    if (rc != XET_CLI_OK) {
        xet_cli_buf_free(&b);
        return rc;
    }

    for (i = 0; i < c->n; i++) {

        if (bucket) {
            xet_cli_hub_commit_object(&c->ops[i], &b);

        } else {
            xet_cli_hub_commit_line(&c->ops[i], &b);
        }

        xet_buf_write(&b, "\n", 1);
    }

    /* commit to the branch, not to the commit that xet_cli_hub_look() found */

    c->hub->oid[0] = '\0';

    rc = xet_cli_hub_ask(c->hub, &r,
                         xet_cli_hub_url(c->hub, bucket ? "batch" : "commit",
                                         1, NULL),
                         &b, XET_CLI_HUB_LINES);
    rc = rc ? rc : xet_cli_hub_commit_taken(c, &r);

    xet_cli_http_free(&r);
    xet_cli_buf_free(&b);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_hub_commit_print(c);

        c->sent += c->n;
        c->n = 0;
        c->part++;
    }

    return rc;
}


static int
xet_cli_hub_commit_header(xet_cli_hub_commit_t *c, xet_buf_t *b)
{
    char        *title;
    xet_json_t   j;

    title = strdup(c->message);

    if (title && c->part) {
        free(title);

        if (asprintf(&title, "%s (part %u)", c->message, c->part + 1) < 0) {
            title = NULL;
        }
    }

    if (title == NULL) {
        return xet_cli_no_memory();
    }

    xet_json_init(&j, b);

    xet_json_object_begin(&j);
    xet_json_put_cstring(&j, "key", "header");
    xet_json_key(&j, "value");
    xet_json_object_begin(&j);
    xet_json_put_cstring(&j, "summary", title);
    xet_json_put_cstring(&j, "description", "");
    xet_json_object_end(&j);
    xet_json_object_end(&j);

    xet_buf_write(b, "\n", 1);

    free(title);

    return XET_CLI_OK;
}


/* Writes one operation.  An empty file is sent within the commit itself. */

static void
xet_cli_hub_commit_line(xet_cli_hub_op_t *op, xet_buf_t *b)
{
    char        sha256[2 * XET_CLI_SHA256_LEN + 1];
    xet_json_t  j;

    xet_json_init(&j, b);
    xet_json_object_begin(&j);

    xet_json_put_cstring(&j, "key",
                         op->removed
                         ? (op->folder ? "deletedFolder" : "deletedFile")
                         : (op->file.size ? "lfsFile" : "file"));

    xet_json_key(&j, "value");
    xet_json_object_begin(&j);
    xet_json_put_cstring(&j, "path", op->path);

    if (!op->removed && op->file.size) {
        *xet_hash_print_plain((uint8_t *) sha256, op->file.sha256) = '\0';

        xet_json_put_cstring(&j, "algo", "sha256");
        xet_json_put_cstring(&j, "oid", sha256);
        xet_json_put_u64(&j, "size", op->file.size);

    } else if (!op->removed) {
        xet_json_put_cstring(&j, "content", "");
        xet_json_put_cstring(&j, "encoding", "base64");
    }

    xet_json_object_end(&j);
    xet_json_object_end(&j);
}


static void
xet_cli_hub_commit_object(xet_cli_hub_op_t *op, xet_buf_t *b)
{
    xet_hash_t  none;
    xet_json_t  j;

    memset(&none, 0, sizeof(none));

    xet_json_init(&j, b);
    xet_json_object_begin(&j);

    xet_json_put_cstring(&j, "type", op->removed ? "deleteFile" : "addFile");
    xet_json_put_cstring(&j, "path", op->path);

    if (!op->removed) {
        xet_cli_json_put_hash(&j, "xetHash", op->file.size ? &op->file.hash
                                                           : &none);

        if (op->mtime >= 0) {
            xet_json_put_u64(&j, "mtime", (uint64_t) op->mtime);
        }
    }

    xet_json_object_end(&j);
}


/*
 * Parses the response.  For a bucket, a 422 response has the same body as a
 * 200 response.
 */

static int
xet_cli_hub_commit_taken(xet_cli_hub_commit_t *c, const xet_cli_request_t *r)
{
    int          rc;
    json_t      *answer;
    const char  *oid;

    rc = XET_CLI_OK;

    if (c->hub->kind == XET_HUB_BUCKET && r->status == 422) {
        answer = r->data ? json_loadb(r->data, r->len, 0, NULL) : NULL;
        rc = xet_cli_hub_commit_failed(json_object_get(answer, "failed"));
        json_decref(answer);

        return rc ? rc : xet_cli_http_fail(r);
    }

    /* an earlier attempt, whose response was lost, has deleted the file */

    if (c->n == 1 && c->ops[0].removed
        && xet_cli_http_gone(r, "EntryNotFound"))
    {
        return XET_CLI_OK;
    }

    answer = xet_cli_hub_answer(r, &rc);

    if (answer == NULL) {
        return rc;
    }

    if (c->hub->kind == XET_HUB_BUCKET) {
        rc = json_is_array(json_object_get(answer, "failed"))
             ? xet_cli_hub_commit_failed(json_object_get(answer, "failed"))
             : XET_CLI_NETWORK;

    } else {
        oid = json_string_value(json_object_get(answer, "commitOid"));

        if (oid && strlen(oid) == XET_HUB_OID_LEN
            && strspn(oid, "0123456789abcdef") == XET_HUB_OID_LEN)
        {
            memcpy(c->oid, oid, XET_HUB_OID_LEN + 1);

        } else {
            rc = XET_CLI_NETWORK;
        }
    }

    if (rc == XET_CLI_NETWORK) {
        (void) xet_cli_fail(rc, c->hub->id,
                            "the response does not confirm the commit");
    }

    json_decref(answer);

    return rc;
}


/*
 * Prints the failed operations of a batch.  Returns XET_CLI_OK if none failed.
 */

static int
xet_cli_hub_commit_failed(const json_t *failed)
{
    int            rc;
    size_t         i;
    const json_t  *one;
    const char    *path, *error;

    rc = XET_CLI_OK;

    for (i = 0; i < json_array_size(failed); i++) {
        one = json_array_get(failed, i);

        path = json_string_value(json_object_get(one, "path"));
        error = json_string_value(json_object_get(one, "error"));

        rc = xet_cli_fail(XET_CLI_FAULT, path ? path : "server",
                          error ? error : "refused");
    }

    return rc;
}


static int
xet_cli_hub_commit_print(xet_cli_hub_commit_t *c)
{
    int                rc;
    size_t             i;
    xet_cli_hub_op_t  *op;

    rc = XET_CLI_OK;

    for (i = 0; i < c->n && rc == XET_CLI_OK; i++) {
        op = &c->ops[i];

        rc = op->removed
             ? xet_cli_print_row(xet_cli_json(c->hub->args),
                                 xet_cli_out_text("removed", op->path, NULL))
             : xet_cli_put_print(c->hub->args, &op->file, c->many);

        xet_cli_total_add(&c->sum, op->file.size, op->file.new_bytes);
    }

    return rc;
}


void
xet_cli_hub_commit_free(xet_cli_hub_commit_t *c)
{
    free(c->ops);
}
