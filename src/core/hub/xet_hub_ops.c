
/*
 * Operations of a commit.
 *
 * Purpose:    parses the body of a commit, or of a batch for a bucket: NDJSON,
 *             as huggingface_hub and @huggingface/hub write it (docs/hub.md).
 * States:     before a line, or inside a line; the start of an incomplete line
 *             is kept.
 * Ownership:  the parser owns the kept line; the data of an operation is valid
 *             until its handler returns.
 * Threads:    any, but one at a time per parser.
 *
 * The length of a line is limited.  A line that arrives in one piece is parsed
 * in place.  A handler that can't accept more operations pauses the parser;
 * the caller then feeds the bytes after the operation again.
 *
 * OpenDAL, and huggingface_hub before 0.9, write a commit as one JSON object.
 * If the first line is not JSON, the whole body may be such an object; its
 * length is limited like that of a line.
 */


#include <stdlib.h>

#include <openssl/evp.h>

#include "xet_hub.h"


#define XET_HUB_OPS_DEPTH  4


static const xet_hub_key_t  xet_hub_keys_line[] = {
    { "key",            XET_HUB_VALUE_TEXT },
    { "value",          XET_HUB_VALUE_OBJECT },
    { NULL,             XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_header[] = {
    { "summary",        XET_HUB_VALUE_TEXT },
    { "description",    XET_HUB_VALUE_TEXT },
    { "parentCommit",   XET_HUB_VALUE_TEXT },
    { NULL,             XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_object[] = {
    { "summary",        XET_HUB_VALUE_TEXT },
    { "description",    XET_HUB_VALUE_TEXT },
    { "parentCommit",   XET_HUB_VALUE_TEXT },
    { "files",          XET_HUB_VALUE_LIST },
    { "lfsFiles",       XET_HUB_VALUE_LIST },
    { "deletedFiles",   XET_HUB_VALUE_LIST },
    { "deletedEntries", XET_HUB_VALUE_LIST },
    { "deletedFolders", XET_HUB_VALUE_LIST },
    { NULL,             XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_file[] = {
    { "path",           XET_HUB_VALUE_TEXT },
    { "content",        XET_HUB_VALUE_TEXT },
    { "encoding",       XET_HUB_VALUE_TEXT },
    { NULL,             XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_lfs[] = {
    { "path",           XET_HUB_VALUE_TEXT },
    { "algo",           XET_HUB_VALUE_TEXT },
    { "oid",            XET_HUB_VALUE_TEXT },
    { "size",           XET_HUB_VALUE_NUMBER },
    { NULL,             XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_path[] = {
    { "path",           XET_HUB_VALUE_TEXT },
    { NULL,             XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_copy[] = {
    { "path",           XET_HUB_VALUE_TEXT },
    { "srcPath",        XET_HUB_VALUE_TEXT },
    { "srcRevision",    XET_HUB_VALUE_TEXT },
    { NULL,             XET_HUB_VALUE_ANY }
};

/* hf-hub sends the size of a file, which its hash implies */

static const xet_hub_key_t  xet_hub_keys_add[] = {
    { "type",           XET_HUB_VALUE_TEXT },
    { "path",           XET_HUB_VALUE_TEXT },
    { "xetHash",        XET_HUB_VALUE_TEXT },
    { "size",           XET_HUB_VALUE_NUMBER },
    { "mtime",          XET_HUB_VALUE_NUMBER },
    { "contentType",    XET_HUB_VALUE_TEXT },
    { NULL,             XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_copied[] = {
    { "type",           XET_HUB_VALUE_TEXT },
    { "path",           XET_HUB_VALUE_TEXT },
    { "xetHash",        XET_HUB_VALUE_TEXT },
    { "size",           XET_HUB_VALUE_NUMBER },
    { "mtime",          XET_HUB_VALUE_NUMBER },
    { "contentType",    XET_HUB_VALUE_TEXT },
    { "sourceRepoType", XET_HUB_VALUE_TEXT },
    { "sourceRepoId",   XET_HUB_VALUE_TEXT },
    { NULL,             XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_delete[] = {
    { "type",           XET_HUB_VALUE_TEXT },
    { "path",           XET_HUB_VALUE_TEXT },
    { NULL,             XET_HUB_VALUE_ANY }
};

/* the values of a line's "key", in the order of the names in an object */

static const struct {
    const char           *key;
    const char           *list;
    const xet_hub_key_t  *keys;
} xet_hub_ops_kinds[] = {
    { "deletedFolder",  "deletedFolders",  xet_hub_keys_path },
    { "deletedEntry",   "deletedEntries",  xet_hub_keys_path },
    { "deletedFile",    "deletedFiles",    xet_hub_keys_path },
    { "file",           "files",           xet_hub_keys_file },
    { "lfsFile",        "lfsFiles",        xet_hub_keys_lfs },
    { "copyFile",       NULL,              xet_hub_keys_copy },
    { NULL,             NULL,              NULL }
};


static xet_status_t xet_hub_ops_keep(xet_hub_ops_t *ops, const uint8_t *p,
    size_t len);
static xet_status_t xet_hub_ops_line(xet_hub_ops_t *ops, const uint8_t *p,
    size_t len);
static xet_status_t xet_hub_ops_broken(xet_hub_ops_t *ops, const uint8_t *p,
    size_t len);
static xet_status_t xet_hub_ops_apply(xet_hub_ops_t *ops,
    const xet_hub_operation_t *op);
static xet_status_t xet_hub_ops_bound(xet_hub_ops_t *ops,
    const xet_hub_operation_t *op);
static xet_status_t xet_hub_ops_object(xet_hub_ops_t *ops, json_t *doc);
static xet_status_t xet_hub_ops_items(xet_hub_ops_t *ops);
static xet_status_t xet_hub_ops_value(xet_hub_ops_t *ops, const char *key,
    json_t *value, xet_hub_operation_t *op, uint8_t **content);
static void xet_hub_ops_clear(xet_hub_operation_t *op);
static xet_status_t xet_hub_ops_commit(xet_hub_ops_t *ops, json_t *doc,
    xet_hub_operation_t *op, uint8_t **content);
static xet_status_t xet_hub_ops_batch(xet_hub_ops_t *ops, json_t *doc,
    xet_hub_operation_t *op);
static xet_status_t xet_hub_ops_header(xet_hub_ops_t *ops, json_t *value,
    xet_hub_operation_t *op);
static xet_status_t xet_hub_ops_lfs(json_t *value, xet_hub_operation_t *op);
static xet_status_t xet_hub_ops_inline(json_t *value,
    xet_hub_operation_t *op, uint8_t **content);
static xet_status_t xet_hub_ops_path(xet_hub_ops_t *ops, json_t *value,
    xet_hub_operation_t *op);
static int xet_hub_ops_pad(const xet_hub_text_t *text);
static xet_status_t xet_hub_ops_put(json_t *doc, xet_hub_operation_t *op);
static int xet_hub_ops_text(json_t *value, const char *key,
    xet_hub_text_t *text, size_t max);
static int xet_hub_ops_number(json_t *value, const char *key,
    int64_t *number);
static int xet_hub_ops_is(json_t *value, const char *key, const char *text);


void
xet_hub_ops_init(xet_hub_ops_t *ops, int bucket,
    const xet_hub_limits_t *limits, xet_hub_op_pt handler, void *ctx)
{
    memset(ops, 0, sizeof(xet_hub_ops_t));

    ops->bucket = bucket;
    ops->limits = *limits;
    ops->handler = handler;
    ops->ctx = ctx;
}


void
xet_hub_ops_free(xet_hub_ops_t *ops)
{
    free(ops->line);
    ops->line = NULL;
    ops->len = 0;
    ops->size = 0;

    json_decref(ops->object);
    ops->object = NULL;
}


xet_status_t
xet_hub_ops_feed(xet_hub_ops_t *ops, const uint8_t *buf, size_t len,
    size_t *n)
{
    size_t          line;
    const uint8_t  *p, *end, *last;
    xet_status_t    rc;

    p = buf;
    last = buf + len;
    rc = xet_hub_ops_items(ops);

    while (p < last && rc == XET_OK) {

        end = ops->whole ? NULL : memchr(p, '\n', (size_t) (last - p));

        if (end == NULL || ops->len) {
            rc = xet_hub_ops_keep(ops, p,
                                  (size_t) ((end ? end : last) - p));
            if (rc != XET_OK) {
                break;
            }
        }

        if (end == NULL) {
            p = last;
            break;
        }

        if (ops->len) {
            line = ops->len;
            ops->len = 0;

            rc = xet_hub_ops_line(ops, ops->line, line);

        } else {
            rc = xet_hub_ops_line(ops, p, (size_t) (end - p));
        }

        p = end + 1;
    }

    *n = (size_t) (p - buf);

    return rc;
}


xet_status_t
xet_hub_ops_end(xet_hub_ops_t *ops)
{
    size_t        line;
    xet_status_t  rc;

    rc = xet_hub_ops_items(ops);

    if (rc == XET_OK && ops->len) {
        line = ops->len;
        ops->len = 0;

        rc = xet_hub_ops_line(ops, ops->line, line);
    }

    if (rc == XET_OK && !ops->bucket && !ops->header) {
        return XET_HUB_OPERATION;
    }

    return rc;
}


static xet_status_t
xet_hub_ops_keep(xet_hub_ops_t *ops, const uint8_t *p, size_t len)
{
    size_t    size;
    uint8_t  *line;

    if (len > XET_HUB_LINE_MAX - ops->len) {
        return XET_HUB_LARGE;
    }

    if (ops->size - ops->len < len) {
        size = 2 * (ops->len + len);

        if (size > XET_HUB_LINE_MAX) {
            size = XET_HUB_LINE_MAX;
        }

        line = realloc(ops->line, size);
        if (line == NULL) {
            return XET_NOMEM;
        }

        ops->line = line;
        ops->size = size;
    }

    if (len) {
        memcpy(ops->line + ops->len, p, len);
        ops->len += len;
    }

    return XET_OK;
}


static xet_status_t
xet_hub_ops_line(xet_hub_ops_t *ops, const uint8_t *p, size_t len)
{
    json_t               *doc;
    uint8_t              *content;
    xet_status_t          rc;
    xet_hub_operation_t   op;

    if (len && p[len - 1] == '\r') {
        len--;
    }

    if (len == 0) {
        return XET_OK;
    }

    if (len > XET_HUB_LINE_MAX) {
        return XET_HUB_LARGE;
    }

    rc = xet_json_parse(&doc, p, len, XET_HUB_OPS_DEPTH);

    if (rc != XET_OK) {
        return (rc == XET_BODY_SYNTAX) ? xet_hub_ops_broken(ops, p, len) : rc;
    }

    xet_hub_ops_clear(&op);
    content = NULL;

    if (ops->ended) {
        rc = XET_HUB_OPERATION;

    } else if (ops->bucket) {
        rc = xet_hub_ops_batch(ops, doc, &op);

    } else if (!ops->header && json_object_get(doc, "summary")) {
        rc = xet_hub_ops_object(ops, doc);
        json_decref(doc);

        return rc;

    } else {
        rc = xet_hub_ops_commit(ops, doc, &op, &content);
    }

    if (rc == XET_OK) {
        rc = xet_hub_ops_apply(ops, &op);
    }

    free(content);
    json_decref(doc);

    return rc;
}


static void
xet_hub_ops_clear(xet_hub_operation_t *op)
{
    memset(op, 0, sizeof(xet_hub_operation_t));

    op->size = -1;
    op->mtime = -1;
}


/*
 * Handles a line that is not JSON.  A first line of this kind is kept: it may
 * be the first line of an object.
 */

static xet_status_t
xet_hub_ops_broken(xet_hub_ops_t *ops, const uint8_t *p, size_t len)
{
    xet_status_t  rc;

    if (ops->bucket || ops->header || ops->whole) {
        return XET_HUB_OPERATION;
    }

    ops->whole = 1;

    if (p == ops->line) {
        ops->len = len;
        rc = XET_OK;

    } else {
        rc = xet_hub_ops_keep(ops, p, len);
    }

    return (rc == XET_OK) ? xet_hub_ops_keep(ops, (const uint8_t *) "\n", 1)
                          : rc;
}


static xet_status_t
xet_hub_ops_apply(xet_hub_ops_t *ops, const xet_hub_operation_t *op)
{
    xet_status_t  rc;

    if (op->op != XET_HUB_HEADER) {
        rc = xet_hub_ops_bound(ops, op);
        ops->n++;

        if (rc != XET_OK) {
            return rc;
        }
    }

    return ops->handler(ops->ctx, op);
}


/* Parses a commit that is one object: its header, then its operations. */

static xet_status_t
xet_hub_ops_object(xet_hub_ops_t *ops, json_t *doc)
{
    xet_status_t          rc;
    xet_hub_operation_t   op;

    rc = xet_hub_keys_check(doc, xet_hub_keys_object, &ops->refusal);

    if (rc != XET_OK) {
        return rc;
    }

    xet_hub_ops_clear(&op);

    rc = xet_hub_ops_header(ops, doc, &op);

    if (rc != XET_OK) {
        return rc;
    }

    ops->header = 1;
    ops->ended = 1;
    ops->object = json_incref(doc);

    rc = ops->handler(ops->ctx, &op);

    return (rc == XET_OK) ? xet_hub_ops_items(ops) : rc;
}


/* Passes the remaining operations of an object to the handler. */

static xet_status_t
xet_hub_ops_items(xet_hub_ops_t *ops)
{
    json_t               *list;
    uint8_t              *content;
    const char           *name;
    xet_status_t          rc;
    xet_hub_operation_t   op;

    rc = XET_OK;

    while (ops->object && rc == XET_OK) {
        name = xet_hub_ops_kinds[ops->list].list;

        if (name == NULL) {
            json_decref(ops->object);
            ops->object = NULL;
            break;
        }

        list = json_object_get(ops->object, name);

        if (ops->item == json_array_size(list)) {
            ops->item = 0;
            ops->list++;
            continue;
        }

        xet_hub_ops_clear(&op);
        content = NULL;

        rc = xet_hub_ops_value(ops, xet_hub_ops_kinds[ops->list].key,
                               json_array_get(list, ops->item++), &op,
                               &content);

        if (rc == XET_OK) {
            rc = xet_hub_ops_apply(ops, &op);
        }

        free(content);
    }

    return rc;
}


/*
 * Checks an operation against the limits.  Only a path that the operation
 * creates must be safe: an existing file with an unsafe path can be deleted.
 */

static xet_status_t
xet_hub_ops_bound(xet_hub_ops_t *ops, const xet_hub_operation_t *op)
{
    int           gone;
    xet_status_t  rc;

    if (ops->n >= ops->limits.operations) {
        return XET_HUB_COUNT;
    }

    gone = (op->op == XET_HUB_DELETE || op->op == XET_HUB_DELETE_FOLDER);
    rc = xet_hub_path_check(&op->path, &ops->refusal);

    if (rc == XET_HUB_UNSAFE && gone) {
        return XET_OK;
    }

    if (rc == XET_OK && !gone
        && xet_hub_path_depth(op->path.data, op->path.len)
           > ops->limits.depth)
    {
        xet_hub_refuse_path(&ops->refusal, &op->path);
        return XET_HUB_DEPTH;
    }

    return rc;
}


/* Parses {"key": kind, "value": {...}}; the header must be the first line. */

static xet_status_t
xet_hub_ops_commit(xet_hub_ops_t *ops, json_t *doc, xet_hub_operation_t *op,
    uint8_t **content)
{
    json_t        *value;
    xet_status_t   rc;

    value = json_object_get(doc, "value");

    if (!json_is_object(value)
        || ops->header == xet_hub_ops_is(doc, "key", "header"))
    {
        return XET_HUB_OPERATION;
    }

    rc = xet_hub_keys_check(doc, xet_hub_keys_line, &ops->refusal);

    if (rc != XET_OK) {
        return rc;
    }

    if (ops->header) {
        return xet_hub_ops_value(ops,
                               json_string_value(json_object_get(doc, "key")),
                               value, op, content);
    }

    ops->header = 1;

    rc = xet_hub_keys_check(value, xet_hub_keys_header, &ops->refusal);

    return (rc == XET_OK) ? xet_hub_ops_header(ops, value, op) : rc;
}


/* Parses the value of an operation of a commit; key may be NULL. */

static xet_status_t
xet_hub_ops_value(xet_hub_ops_t *ops, const char *key, json_t *value,
    xet_hub_operation_t *op, uint8_t **content)
{
    size_t        i;
    xet_status_t  rc;

    for (i = 0; xet_hub_ops_kinds[i].key; i++) {
        if (key && strcmp(xet_hub_ops_kinds[i].key, key) == 0) {
            break;
        }
    }

    if (xet_hub_ops_kinds[i].key == NULL
        || !xet_hub_ops_text(value, "path", &op->path, SIZE_MAX))
    {
        return XET_HUB_OPERATION;
    }

    rc = xet_hub_keys_check(value, xet_hub_ops_kinds[i].keys, &ops->refusal);

    if (rc != XET_OK) {
        return rc;
    }

    switch (key[0]) {

    case 'l':
        return xet_hub_ops_lfs(value, op);

    case 'f':
        return xet_hub_ops_inline(value, op, content);

    case 'c':
        return xet_hub_ops_path(ops, value, op);

    default:
        break;
    }

    op->op = XET_HUB_DELETE;

    if (strcmp(key, "deletedFolder") == 0) {
        op->op = XET_HUB_DELETE_FOLDER;
    }

    /* clients name a folder with or without a slash at the end */

    if (op->path.len && op->path.data[op->path.len - 1] == '/') {
        op->path.len--;
    }

    return XET_OK;
}


/*
 * Parses an operation that copies a file within the repo.  The source is the
 * file in the given revision or, if no revision is given, in the revision
 * before this commit.
 */

static xet_status_t
xet_hub_ops_path(xet_hub_ops_t *ops, json_t *value, xet_hub_operation_t *op)
{
    json_t  *rev;

    op->op = XET_HUB_COPY_PATH;
    rev = json_object_get(value, "srcRevision");

    if (!xet_hub_ops_text(value, "srcPath", &op->from, SIZE_MAX)
        || (rev && !json_is_null(rev)
            && (!xet_hub_ops_text(value, "srcRevision", &op->type, SIZE_MAX)
                || !xet_hub_rev_ok(op->type.data, op->type.len))))
    {
        return XET_HUB_OPERATION;
    }

    if (!xet_hub_path_ok(op->from.data, op->from.len)) {
        xet_hub_refuse_path(&ops->refusal, &op->from);
        return XET_HUB_PATH;
    }

    return XET_OK;
}


static xet_status_t
xet_hub_ops_batch(xet_hub_ops_t *ops, json_t *doc, xet_hub_operation_t *op)
{
    const char           *name;
    xet_status_t          rc;
    xet_hub_text_t        kind;
    const xet_hub_key_t  *keys;

    if (!xet_hub_ops_text(doc, "path", &op->path, SIZE_MAX)) {
        return XET_HUB_OPERATION;
    }

    if (xet_hub_ops_is(doc, "type", "deleteFile")) {
        op->op = XET_HUB_DELETE;
        keys = xet_hub_keys_delete;

    } else if (xet_hub_ops_is(doc, "type", "addFile")) {
        op->op = XET_HUB_ADD;
        keys = xet_hub_keys_add;

    } else if (xet_hub_ops_is(doc, "type", "copyFile")) {
        op->op = XET_HUB_COPY;
        keys = xet_hub_keys_copied;

    } else {
        return XET_HUB_OPERATION;
    }

    rc = xet_hub_keys_check(doc, keys, &ops->refusal);

    if (rc != XET_OK || op->op == XET_HUB_DELETE) {
        return rc;
    }

    if (op->op == XET_HUB_ADD) {
        return xet_hub_ops_put(doc, op);
    }

    if (!xet_hub_ops_text(doc, "sourceRepoType", &kind, XET_HUB_NAME_MAX)
        || !xet_hub_ops_text(doc, "sourceRepoId", &op->from,
                             2 * XET_HUB_NAME_MAX + 1))
    {
        return XET_HUB_OPERATION;
    }

    name = json_string_value(json_object_get(doc, "sourceRepoType"));
    op->kind = xet_hub_kind_parse(name);

    return (op->kind == XET_HUB_KINDS) ? XET_HUB_OPERATION
                                       : xet_hub_ops_put(doc, op);
}


static xet_status_t
xet_hub_ops_header(xet_hub_ops_t *ops, json_t *value, xet_hub_operation_t *op)
{
    op->op = XET_HUB_HEADER;

    if (!xet_hub_ops_text(value, "summary", &op->title, SIZE_MAX)) {
        return XET_HUB_OPERATION;
    }

    if (op->title.len > XET_HUB_TITLE_MAX) {
        xet_hub_refuse(&ops->refusal, "summary",
                       "must have at most 4096 bytes");
        return XET_HUB_VALUE;
    }

    if (xet_hub_ops_text(value, "description", &op->text, SIZE_MAX)
        && op->text.len > XET_HUB_TEXT_MAX)
    {
        xet_hub_refuse(&ops->refusal, "description",
                       "must have at most 65536 bytes");
        return XET_HUB_VALUE;
    }

    if (xet_hub_ops_text(value, "parentCommit", &op->parent, SIZE_MAX)
        && op->parent.len > 40)
    {
        xet_hub_refuse(&ops->refusal, "parentCommit",
                       "must have at most 40 digits");
        return XET_HUB_VALUE;
    }

    return XET_OK;
}


/* Parses an LFS file; clients omit the size when they copy a file. */

static xet_status_t
xet_hub_ops_lfs(json_t *value, xet_hub_operation_t *op)
{
    xet_hub_text_t  oid;

    op->op = XET_HUB_LFS;

    if (!xet_hub_ops_is(value, "algo", "sha256")
        && json_object_get(value, "algo"))
    {
        return XET_HUB_OPERATION;
    }

    return (xet_hub_ops_text(value, "oid", &oid, SIZE_MAX)
            && xet_hub_sha256_parse(op->sha256, &oid)
            && xet_hub_ops_number(value, "size", &op->size))
           ? XET_OK : XET_HUB_OPERATION;
}


xet_status_t
xet_hub_file_parse(json_t *value, xet_hub_operation_t *op, uint8_t **content,
    xet_hub_refusal_t *refusal)
{
    xet_status_t  rc;

    op->size = -1;
    op->mtime = -1;

    if (!xet_hub_ops_text(value, "path", &op->path, SIZE_MAX)) {
        return XET_HUB_OPERATION;
    }

    rc = xet_hub_keys_check(value, xet_hub_keys_file, refusal);

    if (rc == XET_OK) {
        rc = xet_hub_path_check(&op->path, refusal);
    }

    return (rc == XET_OK) ? xet_hub_ops_inline(value, op, content) : rc;
}


static xet_status_t
xet_hub_ops_inline(json_t *value, xet_hub_operation_t *op, uint8_t **content)
{
    int              n, pad;
    xet_hub_text_t   text;

    op->op = XET_HUB_INLINE;

    if (!xet_hub_ops_text(value, "content", &text, XET_HUB_LINE_MAX)) {
        return XET_HUB_OPERATION;
    }

    op->content = text;

    if (!xet_hub_ops_is(value, "encoding", "base64")) {

        /* without an encoding the content is plain text */

        return (json_object_get(value, "encoding") == NULL
                || xet_hub_ops_is(value, "encoding", "utf-8"))
               ? XET_OK : XET_HUB_OPERATION;
    }

    /* at least one byte: malloc(0) may return NULL */

    *content = malloc(text.len / 4 * 3 + 1);
    if (*content == NULL) {
        return XET_NOMEM;
    }

    op->content.data = *content;
    op->content.len = 0;

    if (text.len == 0) {
        return XET_OK;
    }

    /*
     * EVP_DecodeBlock() decodes "=" as zeros anywhere, and skips white space
     * around the text, so xet_hub_ops_pad() refuses both
     */

    pad = xet_hub_ops_pad(&text);

    n = (pad >= 0) ? EVP_DecodeBlock(*content, text.data, (int) text.len) : -1;

    if (n < 0) {
        return XET_HUB_OPERATION;
    }

    n -= pad;

    op->content.len = (size_t) n;

    return XET_OK;
}


/*
 * Returns the number of "=" at the end of a base64 text.  Returns -1 for a text
 * with an "=" elsewhere, with white space around it, or with a wrong length.
 */

static int
xet_hub_ops_pad(const xet_hub_text_t *text)
{
    size_t  n;

    n = text->len;

    while (n && text->data[n - 1] == '=') {
        n--;
    }

    return (text->len % 4 == 0 && text->len - n < 3
            && text->data[0] > ' ' && text->data[n - 1] > ' '
            && memchr(text->data, '=', n) == NULL)
           ? (int) (text->len - n) : -1;
}


static xet_status_t
xet_hub_ops_put(json_t *doc, xet_hub_operation_t *op)
{
    xet_hub_text_t  hash;

    if (!xet_hub_ops_text(doc, "xetHash", &hash, XET_HASH_STR_LEN)
        || xet_hash_parse(&op->hash, hash.data, hash.len) != XET_OK
        || !xet_hub_ops_number(doc, "mtime", &op->mtime)
        || op->mtime > XET_HUB_TIME_MAX
        || (json_is_string(json_object_get(doc, "contentType"))
            && (!xet_hub_ops_text(doc, "contentType", &op->type,
                                  XET_HUB_TYPE_MAX)
                || !xet_hub_type_ok(op->type.data, op->type.len))))
    {
        return XET_HUB_OPERATION;
    }

    return XET_OK;
}


static int
xet_hub_ops_text(json_t *value, const char *key, xet_hub_text_t *text,
    size_t max)
{
    json_t  *member;

    member = json_object_get(value, key);

    if (!json_is_string(member)) {
        return 0;
    }

    text->data = (const uint8_t *) json_string_value(member);
    text->len = json_string_length(member);

    return text->len <= max;
}


/*
 * Parses an optional number >= 0.  JavaScript sends times with fractions of a
 * millisecond, which are dropped.
 */

static int
xet_hub_ops_number(json_t *value, const char *key, int64_t *number)
{
    double   real;
    json_t  *member;

    member = json_object_get(value, key);

    if (member == NULL || json_is_null(member)) {
        return 1;
    }

    if (json_is_integer(member)) {
        *number = json_integer_value(member);
        return *number >= 0;
    }

    real = json_real_value(member);

    if (!json_is_real(member) || !(real >= 0 && real < 9e15)) {
        return 0;
    }

    *number = (int64_t) real;

    return 1;
}


static int
xet_hub_ops_is(json_t *value, const char *key, const char *text)
{
    const char  *s;

    s = json_string_value(json_object_get(value, key));

    return s != NULL && strcmp(s, text) == 0;
}
