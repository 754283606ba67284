
/*
 * xet verify of a Hub name: downloads a file, or all files of a folder, and
 * compares each file with its hash and its SHA-256 in the list.  Also reports
 * paths that are unsafe for clients.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_hub.h"


typedef struct {
    xet_cli_hub_t   *hub;
    xet_cli_total_t    sum;
    size_t           n;
    unsigned         many:1;           /* the files of a folder */
    int              rc;               /* worst exit code of files */
} xet_cli_hub_verify_t;


static xet_cli_hub_operand_e xet_cli_hub_verify_is(const xet_cli_args_t *args,
    const char *operand);
static int xet_cli_hub_verify_name(const xet_cli_args_t *args,
    const char *operand);
static int xet_cli_hub_verify_entry(void *ctx, const xet_hub_entry_t *entry);
static int xet_cli_hub_verify_file(xet_cli_hub_verify_t *v, const char *path,
    const xet_hub_entry_t *entry);


int
xet_cli_hub_verify(const xet_cli_args_t *args)
{
    int  rc;

    static const xet_cli_hub_operands_t  operands = {
        xet_cli_hub_verify_is, xet_cli_hub_verify_name, xet_cli_verify,
        XET_CLI_FAULT
    };

    if (args->count == 0 || args->value[XET_CLI_OPT_STORE]) {
        rc = xet_cli_hub_unnamed(args, "verify");

        return rc ? rc : xet_cli_verify(args);
    }

    return xet_cli_hub_operands(args, &operands);
}


static xet_cli_hub_operand_e
xet_cli_hub_verify_is(const xet_cli_args_t *args, const char *operand)
{
    return strchr(operand, '/') ? XET_CLI_HUB_NAME : XET_CLI_HUB_HASH;
}


static int
xet_cli_hub_verify_name(const xet_cli_args_t *args, const char *operand)
{
    int                    rc;
    xet_cli_hub_t          hub;
    xet_cli_hub_verify_t   v;

    memset(&v, 0, sizeof(v));

    v.hub = &hub;

    xet_cli_total_begin(&v.sum);

    rc = xet_cli_hub_open_repo(&hub, args, operand);

    rc = rc ? rc : xet_cli_hub_look(&hub, 0);
    rc = rc ? rc : xet_cli_hub_list(&hub, 1, 0, xet_cli_hub_verify_entry, &v,
                                    &v.n);

    xet_cli_progress_close();

    rc = xet_cli_worse(rc, v.rc);

    if (v.many && rc == XET_CLI_OK && !xet_cli_json(args)) {
        rc = xet_cli_total_print(&v.sum, hub.id, "ok", "");
    }

    xet_cli_hub_close(&hub);

    return rc;
}


/* Verifies one file.  A failure does not stop the other files. */

static int
xet_cli_hub_verify_entry(void *ctx, const xet_hub_entry_t *entry)
{
    int                     rc;
    char                   *path;
    xet_cli_hub_verify_t   *v = ctx;

    if (entry->folder) {
        return XET_CLI_OK;
    }

    v->n++;

    if (!v->many && entry->path.len != strlen(v->hub->path)) {
        v->many = 1;
        rc = xet_cli_hub_progress(v->hub, v->hub->base);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    path = strndup((const char *) entry->path.data, entry->path.len);

    if (path == NULL) {
        return xet_cli_no_memory();
    }

    /* other Hubs, and earlier versions of this server, may allow the path */

    if (!xet_cli_tree_safe(path, "unsafe path for clients")) {
        v->rc = xet_cli_worse(v->rc, XET_CLI_FAULT);
    }

    rc = entry->known
         ? xet_cli_hub_verify_file(v, path, entry)
         : xet_cli_fail(XET_CLI_FAULT, path, "has no Xet hash on this Hub");

    xet_cli_progress_item(entry->size);

    free(path);

    v->rc = xet_cli_worse(v->rc, rc);

    return (rc <= XET_CLI_FAULT) ? XET_CLI_OK : rc;
}


static int
xet_cli_hub_verify_file(xet_cli_hub_verify_t *v, const char *path,
    const xet_hub_entry_t *entry)
{
    int                  rc;
    xet_cli_http_t      *cas;
    xet_cli_download_t   d;

    memset(&d, 0, sizeof(d));

    d.hash = entry->hash;
    d.end = XET_CLI_DOWNLOAD_ALL;
    d.most = entry->size;
    d.name = path;
    d.list = "list";
    d.sha256 = entry->digested ? entry->sha256 : NULL;
    d.ordered = (d.sha256 != NULL);

    rc = xet_cli_args_number(v->hub->args, XET_CLI_OPT_PARALLEL, 1, 64,
                             XET_CLI_DOWNLOAD_PARALLEL, &d.parallel);

    cas = (rc == XET_CLI_OK) ? xet_cli_hub_cas(v->hub, &rc) : NULL;

    if (cas == NULL) {
        return rc;
    }

    xet_cli_progress_begin(xet_cli_quiet(v->hub->args), path, entry->size);

    rc = xet_cli_download(cas, &d);

    xet_cli_progress_end();

    if (rc != XET_CLI_OK) {
        return rc;
    }

    xet_cli_total_add(&v->sum, d.size, d.size);

    return (!v->many || xet_cli_json(v->hub->args)
            || xet_cli_verbose(v->hub->args))
           ? xet_cli_verify_file_print(v->hub->args, &d, path, 1)
           : XET_CLI_OK;
}
