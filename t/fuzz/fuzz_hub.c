
/*
 * Values from Hub clients: every accepted path, name or operation is valid, and
 * a body is parsed in the same way in one piece and in many pieces.
 *
 * Input: a byte that selects a parser, then the text.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_route.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


typedef struct {
    uint64_t  sum;                     /* checksum of all operations */
    size_t    n;
} fuzz_seen_t;


static const char *const  fuzz_forms[] = {
    "api/:type/:id/tree/:rev/:path", ":repo/resolve/:rev/:path",
    ":git/info/lfs/objects/batch", "buckets/:id/resolve/:path",
    "api/buckets/:owner", "api/:type/:id/revision/:rev", ":root", ":type",
    ":repo", "buckets/:id/tree/:path",
    "xorb-commits/:prefix/:hash/grant/:grant"
};


static void
fuzz_sum(fuzz_seen_t *seen, const uint8_t *p, size_t len)
{
    while (len--) {
        seen->sum = seen->sum * 31 + *p++;
    }
}


static xet_status_t
fuzz_op(void *ctx, const xet_hub_operation_t *op)
{
    fuzz_seen_t *seen = ctx;

    xet_hub_text_t  part;

    check(op->op == XET_HUB_HEADER
          || xet_hub_path_ok(op->path.data, op->path.len));
    check(op->op == XET_HUB_HEADER || op->op == XET_HUB_DELETE
          || op->op == XET_HUB_DELETE_FOLDER
          || xet_hub_path_risk(op->path.data, op->path.len, &part)
             == XET_HUB_RISK_NONE);
    check(op->size >= -1 && op->mtime >= -1);
    check(op->title.len <= XET_HUB_TITLE_MAX);
    check(op->text.len <= XET_HUB_TEXT_MAX);
    check(op->kind < XET_HUB_KINDS);
    check(op->op != XET_HUB_COPY_PATH
          || xet_hub_path_ok(op->from.data, op->from.len));

    fuzz_sum(seen, op->path.data, op->path.len);
    fuzz_sum(seen, op->content.data, op->content.len);
    fuzz_sum(seen, op->title.data, op->title.len);
    fuzz_sum(seen, op->sha256, sizeof(op->sha256));
    seen->sum += (uint64_t) op->op + (uint64_t) op->size;
    seen->n++;

    return XET_OK;
}


static xet_status_t
fuzz_entry(void *ctx, const xet_hub_operation_t *op)
{
    fuzz_seen_t *seen = ctx;

    fuzz_sum(seen, op->path.data, op->path.len);
    check(op->size >= 0);

    return XET_OK;
}


static const xet_hub_limits_t  fuzz_limits = { 16, 4 };


static xet_status_t
fuzz_ops(int bucket, const uint8_t *data, size_t size, size_t step,
    fuzz_seen_t *seen)
{
    size_t          at, n, taken;
    xet_status_t    rc;
    xet_hub_ops_t   ops;

    memset(seen, 0, sizeof(fuzz_seen_t));
    xet_hub_ops_init(&ops, bucket, &fuzz_limits, fuzz_op, seen);

    rc = XET_OK;

    for (at = 0; at < size && rc == XET_OK; at += n) {
        n = (size - at < step) ? size - at : step;

        rc = xet_hub_ops_feed(&ops, data + at, n, &taken);
        check(taken <= n && (rc != XET_OK || taken == n));
    }

    if (rc == XET_OK) {
        rc = xet_hub_ops_end(&ops);
    }

    xet_hub_ops_free(&ops);

    return rc;
}


static void
fuzz_route(const uint8_t *data, size_t size, int bare)
{
    size_t             i;
    uint8_t           *room;
    xet_status_t       rc;
    xet_route_args_t   args;
    xet_hub_target_t  *t;

    t = &args.target;
    room = malloc(size + !size);
    check(room);

    for (i = 0; i < sizeof(fuzz_forms) / sizeof(fuzz_forms[0]); i++) {

        rc = xet_route_parse(fuzz_forms[i], bare, data, size, room, &args);

        if (!xet_route_match(fuzz_forms[i], bare, data, size)) {
            check(rc == XET_HUB_PATH);
            continue;
        }

        if (rc != XET_OK) {
            continue;
        }

        check(t->owner.data == NULL
              || xet_hub_name_ok(t->owner.data, t->owner.len));
        check(t->name.data == NULL
              || xet_hub_name_ok(t->name.data, t->name.len));
        check(t->rev.data == NULL || xet_hub_rev_ok(t->rev.data, t->rev.len));
        check(t->path.len == 0 || xet_hub_path_ok(t->path.data, t->path.len));
        check(!bare || t->name.data == NULL);
    }

    free(room);
}


/*
 * Checks a path.  An unsafe part that the parser reports must be a component
 * of the path.  The part alone, and the path in upper case and in a folder,
 * must be rejected for the same reason.
 */

static void
fuzz_path(const uint8_t *data, size_t size)
{
    size_t              i;
    uint8_t            *path;
    xet_hub_risk_e      risk;
    xet_hub_text_t      part, text, again;
    xet_hub_refusal_t   refusal;

    risk = xet_hub_path_risk(data, size, &part);

    path = malloc(size + 2);
    check(path);

    memcpy(path, "a/", 2);

    for (i = 0; i < size; i++) {
        path[i + 2] = (uint8_t) ((data[i] >= 'a' && data[i] <= 'z')
                                 ? data[i] - 0x20 : data[i]);
    }

    check(xet_hub_path_risk(path, size + 2, &again) == risk);

    text.data = path;
    text.len = size + 2;

    switch (xet_hub_path_check(&text, &refusal)) {

    case XET_OK:
        check(risk == XET_HUB_RISK_NONE && xet_hub_path_ok(path, size + 2));
        break;

    case XET_HUB_UNSAFE:
        check(refusal.risk == risk && refusal.len == part.len);
        break;

    default:
        check(!xet_hub_path_ok(path, size + 2));
    }

    free(path);

    if (risk == XET_HUB_RISK_NONE) {
        return;
    }

    check(part.len && part.data >= data
          && part.data + part.len <= data + size);
    check(memchr(part.data, '/', part.len) == NULL);
    check(xet_hub_path_risk(part.data, part.len, &again) == risk);
    check(xet_hub_risk_text(risk) != NULL);
}


/* An accepted URL has no characters that end a JSON string or a header. */

static void
fuzz_url(const uint8_t *data, size_t size)
{
    xet_url_t  url, host;

    if (xet_url_parse(&url, data, size)) {
        check(url.host.len && url.authority.len >= url.host.len);
        check(url.text.len <= size && url.port <= 65535);
        check(xet_sign_base_ok(url.text.data, url.text.len));
        check(xet_url_authority(&host, url.authority.data, url.authority.len));
        check(xet_url_same_host(&host, &url) && host.port == url.port);
    }

    if (xet_url_authority(&host, data, size)) {
        check(xet_sign_base_ok(data, size));
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t         *form;
    xet_status_t     rc;
    fuzz_seen_t      one, two;
    xet_hub_ref_t    ref;
    xet_hub_list_t   list;
    xet_hub_text_t   hosted;
    xet_hub_repo_t   repo;

    if (size == 0) {
        return 0;
    }

    size--;
    memset(&one, 0, sizeof(one));

    fuzz_path(data + 1, size);

    switch (*data++ % 8) {

    case 0:
        fuzz_route(data, size, 0);
        fuzz_route(data, size, 1);
        fuzz_url(data, size);
        break;

    case 1:
    case 2:
        rc = fuzz_ops(data[-1] & 1, data, size, size + 1, &one);
        check(fuzz_ops(data[-1] & 1, data, size, 3, &two) == rc);
        check(one.sum == two.sum && one.n == two.n);
        break;

    case 3:
        rc = xet_hub_create_parse(&repo, data, size);
        check(rc != XET_OK || xet_hub_name_ok(repo.name.data, repo.name.len));

        if (rc == XET_OK) {
            (void) xet_hub_repo_files(&repo, &fuzz_limits, fuzz_op, &one);
        }

        json_decref(repo.doc);
        break;

    case 4:
        rc = xet_hub_move_parse(&repo, data, size);
        check(rc != XET_OK
              || xet_hub_name_ok(repo.to_name.data, repo.to_name.len));
        json_decref(repo.doc);

        rc = xet_hub_duplicate_parse(&repo, data, size, fuzz_entry, &one);
        check(rc != XET_OK || xet_hub_name_ok(repo.name.data, repo.name.len));
        json_decref(repo.doc);
        break;

    case 5:
        (void) xet_hub_ref_parse(&ref, XET_HUB_REF_BRANCH, data, size);
        json_decref(ref.doc);
        (void) xet_hub_ref_parse(&ref, XET_HUB_REF_TAG, data, size);
        json_decref(ref.doc);
        (void) xet_hub_settings_parse(&repo, data, size);
        json_decref(repo.doc);
        break;

    case 6:
        hosted.data = data;
        hosted.len = size;
        (void) xet_hub_preupload_parse(&list, data, size, &hosted, fuzz_entry,
                                       &one);
        (void) xet_hub_paths_parse(&list, data, size, fuzz_entry, &one);
        (void) xet_hub_lfs_parse(&list, data, size, fuzz_entry, &one);
        break;

    default:
        form = malloc(size + !size);
        check(form);

        if (size) {
            memcpy(form, data, size);
        }

        (void) xet_hub_form_parse(&list, form, size, fuzz_entry, &one);
        free(form);
    }

    return 0;
}
