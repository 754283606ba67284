
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
 * A body may have only the keys of its table, with values that the server
 * supports (xet_hub_keys.c).  A key with the rule XET_HUB_VALUE_ANY, or one
 * that this file does not read, asks only for what the server does anyway, or
 * is a hint that the server does not need.
 */


#include <strings.h>

#include "xet_hub.h"


#define XET_HUB_BODY_DEPTH  6


typedef struct {
    xet_hub_op_pt       handler;
    void               *ctx;
    xet_hub_refusal_t  *refusal;
    xet_hub_ignore_t    ignore;
} xet_hub_body_safe_t;


static const xet_hub_key_t  xet_hub_keys_repo[] = {
    { "name",               XET_HUB_VALUE_TEXT },
    { "organization",       XET_HUB_VALUE_TEXT },
    { "type",               XET_HUB_VALUE_KIND },
    { NULL,                 XET_HUB_VALUE_ANY }
};

/*
 * All versions of huggingface_hub name the sdk of a space, which is stored and
 * not run; its tests set "lfsmultipartthresh", a hint for large uploads.
 */

static const xet_hub_key_t  xet_hub_keys_create[] = {
    { "name",               XET_HUB_VALUE_TEXT },
    { "organization",       XET_HUB_VALUE_TEXT },
    { "type",               XET_HUB_VALUE_KIND },
    { "visibility",         XET_HUB_VALUE_VISIBILITY },
    { "private",            XET_HUB_VALUE_BOOL },
    { "files",              XET_HUB_VALUE_LIST },
    { "sdk",                XET_HUB_VALUE_TEXT },
    { "lfsmultipartthresh", XET_HUB_VALUE_NUMBER },
    { "canonical",          XET_HUB_VALUE_FALSE },
    { "gated",              XET_HUB_VALUE_FALSE },
    { "license",            XET_HUB_VALUE_NONE },
    { "template",           XET_HUB_VALUE_NONE },
    { "sdkVersion",         XET_HUB_VALUE_NONE },
    { "hardware",           XET_HUB_VALUE_NONE },
    { "storageTier",        XET_HUB_VALUE_NONE },
    { "sleepTimeSeconds",   XET_HUB_VALUE_NONE },
    { "secrets",            XET_HUB_VALUE_NONE },
    { "variables",          XET_HUB_VALUE_NONE },
    { "volumes",            XET_HUB_VALUE_NONE },
    { "resourceGroupId",    XET_HUB_VALUE_NONE },
    { "region",             XET_HUB_VALUE_NONE },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_move[] = {
    { "fromRepo",           XET_HUB_VALUE_TEXT },
    { "toRepo",             XET_HUB_VALUE_TEXT },
    { "type",               XET_HUB_VALUE_KIND },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_settings[] = {
    { "visibility",         XET_HUB_VALUE_VISIBILITY },
    { "private",            XET_HUB_VALUE_BOOL },
    { "gated",              XET_HUB_VALUE_FALSE },
    { "xetEnabled",         XET_HUB_VALUE_TRUE },
    { "resourceGroupId",    XET_HUB_VALUE_NONE },
    { "region",             XET_HUB_VALUE_NONE },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_duplicate[] = {
    { "target",             XET_HUB_VALUE_OBJECT },
    { "files",              XET_HUB_VALUE_LIST },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_target[] = {
    { "type",               XET_HUB_VALUE_KIND },
    { "name",               XET_HUB_VALUE_TEXT },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_copy[] = {
    { "xetHash",            XET_HUB_VALUE_TEXT },
    { "sha256",             XET_HUB_VALUE_TEXT },
    { "filename",           XET_HUB_VALUE_TEXT },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_branch[] = {
    { "startingPoint",      XET_HUB_VALUE_TEXT },
    { "emptyBranch",        XET_HUB_VALUE_BOOL },
    { "overwrite",          XET_HUB_VALUE_BOOL },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_tag[] = {
    { "tag",                XET_HUB_VALUE_TEXT },
    { "message",            XET_HUB_VALUE_TEXT },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_squash[] = {
    { "message",            XET_HUB_VALUE_TEXT },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_none[] = {
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_preupload[] = {
    { "files",              XET_HUB_VALUE_LIST },
    { "gitIgnore",          XET_HUB_VALUE_TEXT },
    { "gitAttributes",      XET_HUB_VALUE_TEXT },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_upload[] = {
    { "path",               XET_HUB_VALUE_TEXT },
    { "size",               XET_HUB_VALUE_NUMBER },
    { "sample",             XET_HUB_VALUE_TEXT },
    { "sha",                XET_HUB_VALUE_TEXT },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_paths[] = {
    { "paths",              XET_HUB_VALUE_LIST },
    { "expand",             XET_HUB_VALUE_BOOL },
    { NULL,                 XET_HUB_VALUE_ANY }
};

static const xet_hub_key_t  xet_hub_keys_lfs[] = {
    { "operation",          XET_HUB_VALUE_TEXT },
    { "transfers",          XET_HUB_VALUE_LIST },
    { "ref",                XET_HUB_VALUE_OBJECT },
    { "objects",            XET_HUB_VALUE_LIST },
    { "hash_algo",          XET_HUB_VALUE_SHA256 },
    { NULL,                 XET_HUB_VALUE_ANY }
};

/* the types of git-lfs have more members, which it does not send */

static const xet_hub_key_t  xet_hub_keys_object[] = {
    { "oid",                XET_HUB_VALUE_TEXT },
    { "size",               XET_HUB_VALUE_NUMBER },
    { "name",               XET_HUB_VALUE_TEXT },
    { "path",               XET_HUB_VALUE_TEXT },
    { "authenticated",      XET_HUB_VALUE_BOOL },
    { NULL,                 XET_HUB_VALUE_ANY }
};


static xet_status_t xet_hub_body_doc(json_t **doc, const uint8_t *text,
    size_t len, const xet_hub_key_t *keys, xet_hub_refusal_t *refusal);
static xet_status_t xet_hub_body_argument(xet_hub_list_t *list,
    const uint8_t *p, size_t len);
static int xet_hub_body_text(json_t *doc, const char *key,
    xet_hub_text_t *text);
static xet_status_t xet_hub_body_kind(json_t *doc, xet_hub_kind_e *kind);
static xet_status_t xet_hub_body_visibility(xet_hub_repo_t *repo);
static xet_status_t xet_hub_body_repo(xet_hub_repo_t *repo,
    const uint8_t *text, size_t len, const xet_hub_key_t *keys);
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
xet_hub_create_parse(xet_hub_repo_t *repo, const uint8_t *text, size_t len)
{
    xet_status_t  rc;

    rc = xet_hub_body_repo(repo, text, len, xet_hub_keys_create);

    if (rc == XET_OK) {
        rc = xet_hub_body_visibility(repo);
    }

    if (rc == XET_OK && repo->kind != XET_HUB_SPACE
        && json_is_string(json_object_get(repo->doc, "sdk")))
    {
        xet_hub_refuse(&repo->refusal, "sdk", "is only for spaces");
        return XET_HUB_VALUE;
    }

    return rc;
}


xet_status_t
xet_hub_repo_parse(xet_hub_repo_t *repo, const uint8_t *text, size_t len)
{
    return xet_hub_body_repo(repo, text, len, xet_hub_keys_repo);
}


static xet_status_t
xet_hub_body_repo(xet_hub_repo_t *repo, const uint8_t *text, size_t len,
    const xet_hub_key_t *keys)
{
    xet_status_t  rc;

    memset(repo, 0, sizeof(xet_hub_repo_t));

    repo->private = -1;

    rc = xet_hub_body_doc(&repo->doc, text, len, keys, &repo->refusal);

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
            xet_hub_refuse_path(&repo->refusal, &op.path);
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

    rc = xet_hub_body_doc(&repo->doc, text, len, xet_hub_keys_move,
                          &repo->refusal);

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
xet_hub_card_check(const uint8_t *text, size_t len,
    xet_hub_card_error_t *error)
{
    char                 *json;
    size_t                n;
    json_t               *doc;
    xet_status_t          rc;
    xet_hub_text_t        content;
    xet_hub_card_head_t   head;

    doc = NULL;
    json = NULL;

    rc = xet_json_parse(&doc, text, len, XET_HUB_BODY_DEPTH);

    if (rc == XET_OK && !xet_hub_body_text(doc, "content", &content)) {
        rc = XET_BODY_SYNTAX;
    }

    if (rc == XET_OK && xet_hub_card_find(content.data, content.len, &head)) {
        rc = xet_hub_card_parse(&head, &json, &n, error);
    }

    free(json);
    json_decref(doc);

    return rc;
}


xet_status_t
xet_hub_duplicate_parse(xet_hub_repo_t *target, const uint8_t *text,
    size_t len, xet_hub_op_pt handler, void *ctx)
{
    json_t        *value;
    xet_status_t   rc;

    memset(target, 0, sizeof(xet_hub_repo_t));

    rc = xet_hub_body_doc(&target->doc, text, len, xet_hub_keys_duplicate,
                          &target->refusal);

    if (rc != XET_OK) {
        return rc;
    }

    value = json_object_get(target->doc, "target");
    rc = xet_hub_keys_check(value, xet_hub_keys_target, &target->refusal);

    if (rc == XET_OK) {
        rc = xet_hub_body_kind(value, &target->kind);
    }

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

    value = json_object_get(target->doc, "files");

    if (json_array_size(value) > XET_HUB_COPIES_MAX) {
        return XET_BODY_SIZE;
    }

    rc = xet_hub_list_check(value, xet_hub_keys_copy, &target->refusal);

    return (rc == XET_OK) ? xet_hub_body_list(target->doc, "files",
                                              xet_hub_body_copy, handler, ctx)
                          : rc;
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

    rc = xet_hub_body_doc(&repo->doc, text, len, xet_hub_keys_settings,
                          &repo->refusal);

    return (rc == XET_OK) ? xet_hub_body_visibility(repo) : rc;
}


xet_status_t
xet_hub_ref_parse(xet_hub_ref_t *ref, xet_hub_ref_e kind, const uint8_t *text,
    size_t len)
{
    xet_status_t  rc;

    static const xet_hub_key_t *const  keys[] = {
        xet_hub_keys_branch, xet_hub_keys_tag, xet_hub_keys_none,
        xet_hub_keys_squash
    };

    memset(ref, 0, sizeof(xet_hub_ref_t));

    if (len == 0) {
        return XET_OK;
    }

    rc = xet_hub_body_doc(&ref->doc, text, len, keys[kind], &ref->refusal);

    if (rc != XET_OK) {
        return rc;
    }

    (void) xet_hub_body_text(ref->doc, "startingPoint", &ref->start);
    (void) xet_hub_body_text(ref->doc, "tag", &ref->tag);
    (void) xet_hub_body_text(ref->doc, "message", &ref->message);

    ref->empty = json_is_true(json_object_get(ref->doc, "emptyBranch"));
    ref->overwrite = json_is_true(json_object_get(ref->doc, "overwrite"));

    if (ref->empty && ref->start.data) {
        xet_hub_refuse(&ref->refusal, "startingPoint",
                       "contradicts emptyBranch");
        return XET_HUB_VALUE;
    }

    return (ref->message.len > XET_HUB_TEXT_MAX) ? XET_BODY_SIZE : XET_OK;
}


xet_status_t
xet_hub_preupload_parse(xet_hub_list_t *list, const uint8_t *text, size_t len,
    const xet_hub_text_t *hosted, xet_hub_op_pt handler, void *ctx)
{
    json_t               *doc;
    xet_status_t          rc;
    xet_hub_text_t        ignore;
    xet_hub_body_safe_t   safe;

    memset(list, 0, sizeof(xet_hub_list_t));
    memset(&safe, 0, sizeof(xet_hub_body_safe_t));

    safe.handler = handler;
    safe.ctx = ctx;
    safe.refusal = &list->refusal;

    rc = xet_hub_body_doc(&doc, text, len, xet_hub_keys_preupload,
                          &list->refusal);

    if (rc == XET_OK) {
        rc = xet_hub_list_check(json_object_get(doc, "files"),
                                xet_hub_keys_upload, &list->refusal);
    }

    if (rc == XET_OK) {
        list->ignores = xet_hub_body_text(doc, "gitIgnore", &ignore);
    }

    if (rc == XET_OK && !list->ignores) {
        ignore = *hosted;

        if (ignore.len > XET_HUB_IGNORE_MAX) {
            xet_hub_refuse(&list->refusal, "gitIgnore",
                           "is missing, and the .gitignore of the repo is too "
                           "long");
            rc = XET_HUB_VALUE;
        }
    }

    if (rc == XET_OK && ignore.len) {
        rc = xet_hub_ignore_init(&safe.ignore, ignore.data, ignore.len);
    }

    if (rc == XET_OK) {
        rc = xet_hub_body_list(doc, "files", xet_hub_body_file,
                               xet_hub_body_safe, &safe);
    }

    xet_hub_ignore_free(&safe.ignore);
    json_decref(doc);

    return rc;
}


/* Checks a path that will be written, then calls the caller's handler. */

static xet_status_t
xet_hub_body_safe(void *ctx, const xet_hub_operation_t *op)
{
    xet_hub_body_safe_t *safe = ctx;

    xet_status_t          rc;
    xet_hub_operation_t   file;

    rc = xet_hub_path_check(&op->path, safe->refusal);

    if (rc != XET_OK) {
        return rc;
    }

    file = *op;

    rc = xet_hub_ignore_match(&safe->ignore, op->path.data, op->path.len,
                              &file.ignored);

    return (rc == XET_OK) ? safe->handler(safe->ctx, &file) : rc;
}


xet_status_t
xet_hub_paths_parse(xet_hub_list_t *list, const uint8_t *text, size_t len,
    xet_hub_op_pt handler, void *ctx)
{
    json_t        *doc;
    xet_status_t   rc;

    memset(list, 0, sizeof(xet_hub_list_t));

    rc = xet_hub_body_doc(&doc, text, len, xet_hub_keys_paths,
                          &list->refusal);

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

    rc = xet_hub_body_doc(&doc, text, len, xet_hub_keys_lfs, &list->refusal);

    if (rc == XET_OK) {
        rc = xet_hub_list_check(json_object_get(doc, "objects"),
                                xet_hub_keys_object, &list->refusal);
    }

    if (rc != XET_OK) {
        json_decref(doc);
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

        } else {
            rc = xet_hub_body_argument(list, start, (size_t) (dst - start));

            if (rc != XET_OK) {
                return rc;
            }
        }
    }

    return XET_OK;
}


/*
 * Parses an argument of a form other than a path: "expand", which Python
 * clients send as "true", and OpenDAL as "True".
 */

static xet_status_t
xet_hub_body_argument(xet_hub_list_t *list, const uint8_t *p, size_t len)
{
    size_t       n;
    const char  *value;
    char         name[XET_HUB_PART_MAX + 1];

    for (n = 0; n < len && n < XET_HUB_PART_MAX && p[n] != '='; n++) {
        name[n] = (char) p[n];
    }

    name[n] = '\0';

    if (strcmp(name, "expand") != 0) {
        xet_hub_refuse(&list->refusal, name, NULL);
        return XET_HUB_KEY;
    }

    value = (const char *) p + n + 1;
    len -= (n < len) ? n + 1 : n;

    list->expand = (len == 4 && strncasecmp(value, "true", 4) == 0)
                   || (len == 1 && value[0] == '1');

    if (!list->expand && len
        && !(len == 5 && strncasecmp(value, "false", 5) == 0)
        && !(len == 1 && value[0] == '0'))
    {
        xet_hub_refuse(&list->refusal, name, "must be true or false");
        return XET_HUB_VALUE;
    }

    return XET_OK;
}


/*
 * Parses a JSON body, and checks its keys.  The caller must release *doc, which
 * is NULL if the body is not JSON.
 */

static xet_status_t
xet_hub_body_doc(json_t **doc, const uint8_t *text, size_t len,
    const xet_hub_key_t *keys, xet_hub_refusal_t *refusal)
{
    xet_status_t  rc;

    *doc = NULL;

    rc = xet_json_parse(doc, text, len, XET_HUB_BODY_DEPTH);

    return (rc == XET_OK) ? xet_hub_keys_check(*doc, keys, refusal) : rc;
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


/*
 * Sets repo->private from "visibility" or "private", which must not contradict
 * each other.
 */

static xet_status_t
xet_hub_body_visibility(xet_hub_repo_t *repo)
{
    json_t      *value;
    const char  *name;

    repo->private = -1;

    name = json_string_value(json_object_get(repo->doc, "visibility"));

    if (name) {
        repo->private = (strcmp(name, "public") != 0);
    }

    value = json_object_get(repo->doc, "private");

    if (!json_is_boolean(value)) {
        return XET_OK;
    }

    if (name && repo->private != json_is_true(value)) {
        xet_hub_refuse(&repo->refusal, "private", "contradicts visibility");
        return XET_HUB_VALUE;
    }

    repo->private = json_is_true(value);

    return XET_OK;
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

    (void) xet_hub_body_text(value, "sample", &op->content);

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
