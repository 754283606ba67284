
/*
 * Lists of a Hub: pages of a tree or of repositories, and lookups of paths.
 *
 * Purpose:    calls a handler for each entry of all pages.
 * States:     request -> page -> request for the next page, with the arguments
 *             of the link in the response.
 * Ownership:  a page is valid until all its entries were handled.
 *
 * Memory holds one page at a time.  The length of a list is unlimited, so a
 * handler must print its entries, or keep only little data of each entry.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_hub.h"


/* The handler for the entries of a list, and the entries to accept. */

typedef struct {
    xet_cli_hub_entry_pt   handler;
    void                  *ctx;
    const char            *prefix;     /* all paths must be in this folder */
    char *const           *paths;      /* requested paths, or NULL */
    size_t                 n;
} xet_cli_hub_entries_t;


static int xet_cli_hub_page(const json_t *page, xet_cli_hub_value_pt handler,
    void *ctx);
static char *xet_cli_hub_next(const xet_cli_request_t *r, const char *base,
    const char *past, int *rc);
static int xet_cli_hub_entry(void *ctx, const json_t *value);
static int xet_cli_hub_asked(const xet_cli_hub_entries_t *e,
    const xet_hub_text_t *path);
static int xet_cli_hub_found(void *ctx, const xet_hub_entry_t *entry);
static int xet_cli_hub_count(void *ctx, const xet_hub_entry_t *entry);


int
xet_cli_hub_pages(const xet_cli_hub_t *hub, char *url,
    xet_cli_hub_value_pt handler, void *ctx)
{
    int                 rc;
    char               *base, *past;
    json_t             *page;
    uint64_t            n;
    xet_cli_request_t   r;

    rc = XET_CLI_OK;
    base = url ? strndup(url, strcspn(url, "?")) : NULL;

    if (base == NULL) {
        free(url);
        return xet_cli_no_memory();
    }

    past = NULL;

    for (n = 1; url && rc == XET_CLI_OK; n++) {

        /* keep the URL of page 1, 2, 4, 8, ... to detect a loop */

        if ((n & (n - 1)) == 0) {
            free(past);
            past = strdup(url);
        }

        rc = xet_cli_hub_ask(hub, &r, url, NULL, NULL);

        url = NULL;

        if (rc != XET_CLI_OK) {
            break;
        }

        page = xet_cli_hub_answer(&r, &rc);

        if (page) {
            rc = xet_cli_hub_page(page, handler, ctx);
            json_decref(page);
        }

        if (rc == XET_CLI_OK) {
            url = xet_cli_hub_next(&r, base, past, &rc);
        }

        xet_cli_http_free(&r);
    }

    free(url);
    free(past);
    free(base);

    return rc;
}


static int
xet_cli_hub_page(const json_t *page, xet_cli_hub_value_pt handler, void *ctx)
{
    int      rc;
    size_t   i;

    if (!json_is_array(page)) {
        return xet_cli_fail(XET_CLI_NETWORK, "server",
                            "the Hub's response is not a list");
    }

    rc = XET_CLI_OK;

    for (i = 0; i < json_array_size(page) && rc == XET_CLI_OK; i++) {
        rc = handler(ctx, json_array_get(page, i));
    }

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : rc;
}


/*
 * Returns the URL of the next page; NULL after the last page, or after an
 * error, which is printed and stored in *rc.
 */

static char *
xet_cli_hub_next(const xet_cli_request_t *r, const char *base,
    const char *past, int *rc)
{
    char            *next;
    const char      *link;
    xet_hub_text_t   args;

    next = NULL;
    link = xet_cli_http_header(r, "Link");

    if (link && xet_hub_next_parse(link, &args)) {

        if (asprintf(&next, "%s?%.*s", base, (int) args.len,
                     (const char *) args.data)
            < 0)
        {
            next = NULL;
            *rc = xet_cli_no_memory();

        } else if (past && strcmp(next, past) == 0) {
            *rc = xet_cli_fail(XET_CLI_NETWORK, "server",
                               "the list repeats a page");
        }
    }

    return next;
}


int
xet_cli_hub_tree(const xet_cli_hub_t *hub, const char *path, int deep,
    int dates, xet_cli_hub_entry_pt handler, void *ctx)
{
    char                   *url, *plain;
    xet_cli_hub_entries_t   e;

    e.handler = handler;
    e.ctx = ctx;
    e.prefix = path;
    e.paths = NULL;
    e.n = 0;

    plain = xet_cli_hub_url(hub, "tree", 1, path);

    if (plain == NULL
        || asprintf(&url, "%s?recursive=%s%s", plain, deep ? "true" : "false",
                    dates ? "&expand=true" : "")
           < 0)
    {
        free(plain);
        return xet_cli_no_memory();
    }

    free(plain);

    return xet_cli_hub_pages(hub, url, xet_cli_hub_entry, &e);
}


int
xet_cli_hub_list(const xet_cli_hub_t *hub, int deep, int dates,
    xet_cli_hub_entry_pt handler, void *ctx, const size_t *n)
{
    int    rc;
    char  *path = hub->path;

    rc = *path ? xet_cli_hub_paths(hub, &path, 1, handler, ctx) : XET_CLI_OK;

    if (rc != XET_CLI_OK || *n) {
        return rc;
    }

    rc = xet_cli_hub_tree(hub, path, deep, dates, handler, ctx);

    return (rc == XET_CLI_OK && *n == 0 && *path)
           ? xet_cli_fail(XET_CLI_FAULT, path, "not found") : rc;
}


int
xet_cli_hub_progress(const xet_cli_hub_t *hub, const char *name)
{
    int            rc, quiet;
    xet_cli_total_t  sum;

    rc = XET_CLI_OK;
    quiet = xet_cli_quiet(hub->args);

    xet_cli_total_begin(&sum);

    if (xet_cli_progress_wanted(quiet)) {
        rc = xet_cli_hub_tree(hub, hub->path, 1, 0, xet_cli_hub_count, &sum);
    }

    if (rc == XET_CLI_OK) {
        xet_cli_progress_items(quiet, name, "files", sum.files, sum.bytes);
    }

    return rc;
}


static int
xet_cli_hub_count(void *ctx, const xet_hub_entry_t *entry)
{
    if (!entry->folder) {
        xet_cli_total_add(ctx, entry->size, 0);
    }

    return XET_CLI_OK;
}


int
xet_cli_hub_paths(const xet_cli_hub_t *hub, char *const *paths, size_t n,
    xet_cli_hub_entry_pt handler, void *ctx)
{
    int                     rc;
    size_t                  i;
    json_t                 *page;
    xet_buf_t               b;
    xet_json_t              j;
    xet_cli_request_t       r;
    xet_cli_hub_entries_t   e;

    xet_buf_init(&b, xet_cli_buf_alloc, NULL, 16384);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    xet_json_put_bool(&j, "expand", 1);
    xet_json_key(&j, "paths");
    xet_json_array_begin(&j);

    for (i = 0; i < n; i++) {
        if (paths[i]) {
            xet_json_string(&j, (const uint8_t *) paths[i], strlen(paths[i]));
        }
    }

    xet_json_array_end(&j);
    xet_json_object_end(&j);

    e.handler = handler;
    e.ctx = ctx;
    e.prefix = "";
    e.paths = paths;
    e.n = n;

    rc = xet_cli_hub_ask(hub, &r, xet_cli_hub_url(hub, "paths-info", 1, NULL),
                         &b, XET_CLI_HUB_JSON);

    if (rc == XET_CLI_OK) {
        page = xet_cli_hub_answer(&r, &rc);

        if (page) {
            rc = xet_cli_hub_page(page, xet_cli_hub_entry, &e);
            json_decref(page);
        }
    }

    xet_cli_http_free(&r);
    xet_cli_buf_free(&b);

    return rc;
}


/*
 * Calls the handler for an entry; fails if the path of the entry is not in the
 * requested folder.
 */

static int
xet_cli_hub_entry(void *ctx, const json_t *value)
{
    size_t                  len;
    xet_status_t            status;
    xet_hub_entry_t         entry;
    xet_cli_hub_entries_t  *e = ctx;

    len = strlen(e->prefix);

    status = xet_hub_entry_read(value, &entry);

    if (status == XET_OK
        && (len == 0
            || (entry.path.len > len + 1
                && memcmp(entry.path.data, e->prefix, len) == 0
                && entry.path.data[len] == '/')))
    {
        if (e->paths && !xet_cli_hub_asked(e, &entry.path)) {
            return XET_CLI_OK;
        }

        return e->handler(e->ctx, &entry);
    }

    return xet_cli_fail(XET_CLI_NETWORK, "server", (status == XET_OK)
                        ? "the Hub listed another folder"
                        : "the Hub's list has an invalid entry");
}


/* Returns whether a path was requested.  Other paths are skipped. */

static int
xet_cli_hub_asked(const xet_cli_hub_entries_t *e, const xet_hub_text_t *path)
{
    size_t  i;

    for (i = 0; i < e->n; i++) {

        if (e->paths[i] && strlen(e->paths[i]) == path->len
            && memcmp(e->paths[i], path->data, path->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


int
xet_cli_hub_file(const xet_cli_hub_t *hub, xet_cli_hub_file_t *file)
{
    char  *path;

    memset(file, 0, sizeof(xet_cli_hub_file_t));

    path = hub->path;
    file->path = path;
    file->path_len = strlen(path);

    return xet_cli_hub_paths(hub, &path, 1, xet_cli_hub_found, file);
}


static int
xet_cli_hub_found(void *ctx, const xet_hub_entry_t *entry)
{
    xet_cli_hub_file_t  *file = ctx;

    if (entry->folder || entry->path.len != file->path_len
        || memcmp(entry->path.data, file->path, entry->path.len) != 0)
    {
        return XET_CLI_OK;
    }

    file->found = 1;
    file->known = entry->known;
    file->digested = entry->digested;
    file->size = entry->size;
    file->hash = entry->hash;

    memcpy(file->sha256, entry->sha256, XET_CLI_SHA256_LEN);
    snprintf(file->date, sizeof(file->date), "%.*s", (int) entry->date.len,
             entry->date.data ? (const char *) entry->date.data : "");

    return XET_CLI_OK;
}
