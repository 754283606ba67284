
/*
 * Bodies of Hub requests.
 *
 * Purpose:    parses JSON and form bodies of requests to create, move, copy
 *             and change repos and refs, of preupload and LFS requests, and of
 *             requests with lists of paths.
 * States:     none.
 * Ownership:  a result owns the JSON document that its texts point into;
 *             entries of a list are valid until their handler returns.
 * Threads:    any.
 *
 * Unknown members are ignored: clients send members that the server does not
 * need, and each version sends more.
 */


#include <strings.h>

#include "xet_hub.h"


#define XET_HUB_BODY_DEPTH  6


typedef struct {
    xet_hub_op_pt       handler;
    void               *ctx;
    xet_hub_refusal_t  *refusal;
} xet_hub_body_safe_t;


static xet_status_t xet_hub_body_doc(json_t **doc, const uint8_t *text,
    size_t len);
static int xet_hub_body_text(json_t *doc, const char *key,
    xet_hub_text_t *text);
static xet_status_t xet_hub_body_kind(json_t *doc, xet_hub_kind_e *kind);
static void xet_hub_body_visibility(json_t *doc, int *private);
static xet_status_t xet_hub_body_id(xet_hub_text_t *owner,
    xet_hub_text_t *name);
static xet_status_t xet_hub_body_list(json_t *doc, const char *key,
    xet_status_t (*entry)(json_t *value, xet_hub_operation_t *op),
    xet_hub_op_pt handler, void *ctx);
static xet_status_t xet_hub_body_file(json_t *value, xet_hub_operation_t *op);
static xet_status_t xet_hub_body_safe(void *ctx,
    const xet_hub_operation_t *op);
static xet_status_t xet_hub_body_path(json_t *value, xet_hub_operation_t *op);
static xet_status_t xet_hub_body_copy(json_t *value, xet_hub_operation_t *op);
static xet_status_t xet_hub_body_object(json_t *value,
    xet_hub_operation_t *op);


xet_status_t
xet_hub_repo_parse(xet_hub_repo_t *repo, const uint8_t *text, size_t len)
{
    xet_status_t  rc;

    memset(repo, 0, sizeof(xet_hub_repo_t));

    rc = xet_hub_body_doc(&repo->doc, text, len);

    if (rc == XET_OK) {
        rc = xet_hub_body_kind(repo->doc, &repo->kind);
    }

    if (rc != XET_OK) {
        return rc;
    }

    if (!xet_hub_body_text(repo->doc, "name", &repo->name)) {
        return XET_BODY_SYNTAX;
    }

    (void) xet_hub_body_text(repo->doc, "organization", &repo->owner);

    xet_hub_body_visibility(repo->doc, &repo->private);

    return xet_hub_body_id(&repo->owner, &repo->name);
}


xet_status_t
xet_hub_repo_files(xet_hub_repo_t *repo, const xet_hub_limits_t *limits,
    xet_hub_op_pt handler, void *ctx)
{
    size_t                i;
    json_t               *array;
    uint8_t              *content;
    xet_status_t          rc;
    xet_hub_operation_t   op;

    array = json_object_get(repo->doc, "files");

    if (json_array_size(array) > XET_HUB_FILES_MAX) {
        return XET_HUB_LARGE;
    }

    if (json_array_size(array) > limits->operations) {
        return XET_HUB_COUNT;
    }

    rc = XET_OK;

    for (i = 0; i < json_array_size(array) && rc == XET_OK; i++) {
        memset(&op, 0, sizeof(xet_hub_operation_t));
        content = NULL;

        rc = xet_hub_file_parse(json_array_get(array, i), &op, &content,
                                &repo->refusal);

        if (rc == XET_OK
            && xet_hub_path_depth(op.path.data, op.path.len) > limits->depth)
        {
            rc = XET_HUB_DEPTH;
        }

        if (rc == XET_OK) {
            rc = handler(ctx, &op);
        }

        free(content);
    }

    return rc;
}


xet_status_t
xet_hub_move_parse(xet_hub_repo_t *repo, const uint8_t *text, size_t len)
{
    xet_status_t  rc;

    memset(repo, 0, sizeof(xet_hub_repo_t));

    rc = xet_hub_body_doc(&repo->doc, text, len);

    if (rc == XET_OK) {
        rc = xet_hub_body_kind(repo->doc, &repo->kind);
    }

    if (rc != XET_OK) {
        return rc;
    }

    if (!xet_hub_body_text(repo->doc, "fromRepo", &repo->name)
        || !xet_hub_body_text(repo->doc, "toRepo", &repo->to_name))
    {
        return XET_BODY_SYNTAX;
    }

    rc = xet_hub_body_id(&repo->owner, &repo->name);

    return (rc == XET_OK) ? xet_hub_body_id(&repo->to_owner, &repo->to_name)
                          : rc;
}


xet_status_t
xet_hub_duplicate_parse(xet_hub_repo_t *target, const uint8_t *text,
    size_t len, xet_hub_op_pt handler, void *ctx)
{
    json_t        *value;
    xet_status_t   rc;

    memset(target, 0, sizeof(xet_hub_repo_t));

    rc = xet_hub_body_doc(&target->doc, text, len);

    if (rc != XET_OK) {
        return rc;
    }

    value = json_object_get(target->doc, "target");
    rc = xet_hub_body_kind(value, &target->kind);

    if (rc != XET_OK) {
        return rc;
    }

    if (!xet_hub_body_text(value, "name", &target->name)) {
        return XET_BODY_SYNTAX;
    }

    rc = xet_hub_body_id(&target->owner, &target->name);

    if (rc != XET_OK) {
        return rc;
    }

    if (json_array_size(json_object_get(target->doc, "files"))
        > XET_HUB_COPIES_MAX)
    {
        return XET_BODY_SIZE;
    }

    return xet_hub_body_list(target->doc, "files", xet_hub_body_copy, handler,
                             ctx);
}


xet_status_t
xet_hub_settings_parse(xet_hub_repo_t *repo, const uint8_t *text, size_t len)
{
    xet_status_t  rc;

    memset(repo, 0, sizeof(xet_hub_repo_t));

    repo->private = -1;

    if (len == 0) {
        return XET_OK;
    }

    rc = xet_hub_body_doc(&repo->doc, text, len);

    if (rc == XET_OK) {
        xet_hub_body_visibility(repo->doc, &repo->private);
    }

    return rc;
}


xet_status_t
xet_hub_ref_parse(xet_hub_ref_t *ref, const uint8_t *text, size_t len)
{
    xet_status_t  rc;

    memset(ref, 0, sizeof(xet_hub_ref_t));

    if (len == 0) {
        return XET_OK;
    }

    rc = xet_hub_body_doc(&ref->doc, text, len);

    if (rc != XET_OK) {
        return rc;
    }

    (void) xet_hub_body_text(ref->doc, "startingPoint", &ref->start);
    (void) xet_hub_body_text(ref->doc, "tag", &ref->tag);
    (void) xet_hub_body_text(ref->doc, "message", &ref->message);

    return (ref->message.len > XET_HUB_TEXT_MAX) ? XET_BODY_SIZE : XET_OK;
}


xet_status_t
xet_hub_preupload_parse(xet_hub_list_t *list, const uint8_t *text, size_t len,
    xet_hub_op_pt handler, void *ctx)
{
    json_t              *doc;
    xet_status_t         rc;
    xet_hub_body_safe_t  safe;

    memset(list, 0, sizeof(xet_hub_list_t));

    safe.handler = handler;
    safe.ctx = ctx;
    safe.refusal = &list->refusal;

    rc = xet_hub_body_doc(&doc, text, len);

    if (rc == XET_OK) {
        rc = xet_hub_body_list(doc, "files", xet_hub_body_file,
                               xet_hub_body_safe, &safe);
    }

    json_decref(doc);

    return rc;
}


/* Checks a path that will be written, then calls the caller's handler. */

static xet_status_t
xet_hub_body_safe(void *ctx, const xet_hub_operation_t *op)
{
    xet_hub_body_safe_t *safe = ctx;

    xet_status_t  rc;

    rc = xet_hub_path_check(&op->path, safe->refusal);

    return (rc == XET_OK) ? safe->handler(safe->ctx, op) : rc;
}


xet_status_t
xet_hub_paths_parse(xet_hub_list_t *list, const uint8_t *text, size_t len,
    xet_hub_op_pt handler, void *ctx)
{
    json_t        *doc;
    xet_status_t   rc;

    memset(list, 0, sizeof(xet_hub_list_t));

    rc = xet_hub_body_doc(&doc, text, len);

    if (rc == XET_OK) {
        list->expand = json_is_true(json_object_get(doc, "expand"));
        rc = xet_hub_body_list(doc, "paths", xet_hub_body_path, handler, ctx);
    }

    json_decref(doc);

    return rc;
}


xet_status_t
xet_hub_lfs_parse(xet_hub_list_t *list, const uint8_t *text, size_t len,
    xet_hub_op_pt handler, void *ctx)
{
    size_t        i;
    json_t       *doc, *transfers;
    const char   *name, *operation;
    xet_status_t  rc;

    memset(list, 0, sizeof(xet_hub_list_t));

    rc = xet_hub_body_doc(&doc, text, len);

    if (rc != XET_OK) {
        return rc;
    }

    operation = json_string_value(json_object_get(doc, "operation"));
    transfers = json_object_get(doc, "transfers");

    if (operation == NULL
        || (strcmp(operation, "upload") != 0
            && strcmp(operation, "download") != 0))
    {
        json_decref(doc);
        return XET_BODY_SYNTAX;
    }

    list->upload = (operation[0] == 'u');
    list->basic = !json_array_size(transfers);

    for (i = 0; i < json_array_size(transfers); i++) {
        name = json_string_value(json_array_get(transfers, i));

        if (name) {
            list->basic |= (strcmp(name, "basic") == 0);
            list->xet |= (strcmp(name, "xet") == 0);
        }
    }

    rc = xet_hub_body_list(doc, "objects", xet_hub_body_object, handler, ctx);

    json_decref(doc);

    return rc;
}


xet_status_t
xet_hub_form_parse(xet_hub_list_t *list, uint8_t *text, size_t len,
    xet_hub_op_pt handler, void *ctx)
{
    int                   c;
    size_t                n;
    uint8_t              *dst, *start;
    const uint8_t        *p, *end, *last;
    xet_status_t          rc;
    xet_hub_operation_t   op;

    memset(list, 0, sizeof(xet_hub_list_t));
    memset(&op, 0, sizeof(xet_hub_operation_t));

    last = text + len;
    p = text;
    n = 0;

    while (p < last) {
        end = memchr(p, '&', (size_t) (last - p));

        if (end == NULL) {
            end = last;
        }

        /* decode in place: the decoded text is never longer */

        dst = text + (p - text);
        start = dst;

        while (p < end) {

            if (*p == '+') {
                c = ' ';
                p++;

            } else {
                c = xet_percent_byte(&p, end);

                if (c < 0) {
                    return XET_BODY_SYNTAX;
                }
            }

            *dst++ = (uint8_t) c;
        }

        p = end + (end < last);

        if (dst - start >= 6 && memcmp(start, "paths=", 6) == 0) {
            op.path.data = start + 6;
            op.path.len = (size_t) (dst - start) - 6;

            if (++n > XET_HUB_LIST_MAX) {
                return XET_BODY_SIZE;
            }

            rc = handler(ctx, &op);

            if (rc != XET_OK) {
                return rc;
            }

        } else if (dst - start == 11
                   && strncasecmp((char *) start, "expand=true", 11) == 0)
        {
            list->expand = 1;
        }
    }

    return XET_OK;
}


/* Parses a JSON body; sets *doc to NULL on errors. */

static xet_status_t
xet_hub_body_doc(json_t **doc, const uint8_t *text, size_t len)
{
    *doc = NULL;

    return xet_json_parse(doc, text, len, XET_HUB_BODY_DEPTH);
}


static int
xet_hub_body_text(json_t *doc, const char *key, xet_hub_text_t *text)
{
    json_t  *value;

    value = json_object_get(doc, key);

    if (!json_is_string(value)) {
        return 0;
    }

    text->data = (const uint8_t *) json_string_value(value);
    text->len = json_string_length(value);

    return 1;
}


/* Sets *kind from "type"; the default is a model. */

static xet_status_t
xet_hub_body_kind(json_t *doc, xet_hub_kind_e *kind)
{
    json_t  *value;

    *kind = XET_HUB_MODEL;

    value = json_object_get(doc, "type");

    if (value == NULL || json_is_null(value)) {
        return XET_OK;
    }

    if (!json_is_string(value)) {
        return XET_BODY_SYNTAX;
    }

    *kind = xet_hub_kind_parse(json_string_value(value));

    return (*kind == XET_HUB_KINDS) ? XET_BODY_SYNTAX : XET_OK;
}


static void
xet_hub_body_visibility(json_t *doc, int *private)
{
    json_t      *value;
    const char  *name;

    *private = -1;

    name = json_string_value(json_object_get(doc, "visibility"));

    if (name) {
        *private = (strcmp(name, "public") != 0);
        return;
    }

    value = json_object_get(doc, "private");

    if (json_is_boolean(value)) {
        *private = json_is_true(value);
    }
}


/* Splits "owner/name"; a name without a slash keeps the given owner. */

static xet_status_t
xet_hub_body_id(xet_hub_text_t *owner, xet_hub_text_t *name)
{
    const uint8_t  *slash;

    slash = memchr(name->data, '/', name->len);

    if (slash) {
        owner->data = name->data;
        owner->len = (size_t) (slash - name->data);
        name->data = slash + 1;
        name->len -= owner->len + 1;
    }

    return (xet_hub_name_ok(name->data, name->len)
            && (owner->data == NULL
                || xet_hub_name_ok(owner->data, owner->len)))
           ? XET_OK : XET_HUB_NAME;
}


static xet_status_t
xet_hub_body_list(json_t *doc, const char *key,
    xet_status_t (*entry)(json_t *value, xet_hub_operation_t *op),
    xet_hub_op_pt handler, void *ctx)
{
    size_t                i;
    json_t               *array;
    xet_status_t          rc;
    xet_hub_operation_t   op;

    array = json_object_get(doc, key);

    if (!json_is_array(array)) {
        return XET_BODY_SYNTAX;
    }

    if (json_array_size(array) > XET_HUB_LIST_MAX) {
        return XET_BODY_SIZE;
    }

    for (i = 0; i < json_array_size(array); i++) {
        memset(&op, 0, sizeof(xet_hub_operation_t));

        rc = entry(json_array_get(array, i), &op);

        if (rc == XET_OK) {
            rc = handler(ctx, &op);
        }

        if (rc != XET_OK) {
            return rc;
        }
    }

    return XET_OK;
}


static xet_status_t
xet_hub_body_file(json_t *value, xet_hub_operation_t *op)
{
    json_t  *size;

    size = json_object_get(value, "size");

    if (!xet_hub_body_text(value, "path", &op->path)
        || !json_is_integer(size) || json_integer_value(size) < 0)
    {
        return XET_BODY_SYNTAX;
    }

    op->size = json_integer_value(size);

    return XET_OK;
}


static xet_status_t
xet_hub_body_path(json_t *value, xet_hub_operation_t *op)
{
    if (!json_is_string(value)) {
        return XET_BODY_SYNTAX;
    }

    op->path.data = (const uint8_t *) json_string_value(value);
    op->path.len = json_string_length(value);

    return XET_OK;
}


/* Parses a file to copy; ignores "filename", which the server does not need. */

static xet_status_t
xet_hub_body_copy(json_t *value, xet_hub_operation_t *op)
{
    xet_hub_text_t  hash, sha256;

    return (xet_hub_body_text(value, "xetHash", &hash)
            && xet_hash_parse(&op->hash, hash.data, hash.len) == XET_OK
            && xet_hub_body_text(value, "sha256", &sha256)
            && xet_hub_sha256_parse(op->sha256, &sha256))
           ? XET_OK : XET_BODY_SYNTAX;
}


static xet_status_t
xet_hub_body_object(json_t *value, xet_hub_operation_t *op)
{
    json_t          *size;
    xet_hub_text_t   oid;

    size = json_object_get(value, "size");

    if (!xet_hub_body_text(value, "oid", &oid)
        || !xet_hub_sha256_parse(op->sha256, &oid)
        || !json_is_integer(size) || json_integer_value(size) < 0)
    {
        return XET_BODY_SYNTAX;
    }

    op->size = json_integer_value(size);

    return XET_OK;
}
