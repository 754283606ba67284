
/*
 * xet get of a file or a folder of a Hub repository.
 *
 * Purpose:    downloads the files in the list of one commit, and verifies each
 *             by its hash and by the SHA-256 in the list.
 * States:     the revision is resolved to a commit -> one file is downloaded,
 *             or a folder page by page.
 * Ownership:  owns the page of the list, and the state of xet_cli_get_tree.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_hub.h"


typedef struct {
    xet_cli_hub_t        *hub;
    xet_cli_http_t       *cas;
    xet_cli_get_tree_t   *tree;        /* NULL: not started */
    size_t                cut;         /* bytes to cut off from each path */
    size_t                n;
    int                   rc;          /* worst exit code of files */
} xet_cli_hub_get_t;


static int xet_cli_hub_get_any(xet_cli_hub_t *hub);
static int xet_cli_hub_get_file(xet_cli_hub_t *hub,
    const xet_cli_hub_file_t *file);
static int xet_cli_hub_get_folder(xet_cli_hub_t *hub);
static int xet_cli_hub_get_begin(xet_cli_hub_get_t *g);
static int xet_cli_hub_get_entry(void *ctx, const xet_hub_entry_t *entry);


int
xet_cli_hub_get(const xet_cli_args_t *args)
{
    int            rc;
    const char    *names;
    xet_cli_hub_t  hub;

    if (args->value[XET_CLI_OPT_RECURSIVE]
        || strchr(args->operands[0], '/') == NULL)
    {
        if (args->value[XET_CLI_OPT_REVISION] || args->value[XET_CLI_OPT_TYPE])
        {
            return xet_cli_fail(XET_CLI_USAGE, "get",
                                "--revision and --type need a repository "
                                "name");
        }

        return xet_cli_get(args);
    }

    names = args->value[XET_CLI_OPT_NAMES];

    if (names && strcmp(names, "any") == 0) {
        return xet_cli_fail(XET_CLI_USAGE, names,
                            "--names any needs a manifest");
    }

    rc = xet_cli_hub_open_repo(&hub, args, args->operands[0]);
    rc = rc ? rc : xet_cli_hub_look(&hub, 0);
    rc = rc ? rc : xet_cli_hub_get_any(&hub);

    xet_cli_hub_close(&hub);

    return rc;
}


static int
xet_cli_hub_get_any(xet_cli_hub_t *hub)
{
    int                  rc;
    xet_cli_hub_file_t   file;

    if (*hub->path) {
        rc = xet_cli_hub_file(hub, &file);

        if (rc != XET_CLI_OK || file.found) {
            return rc ? rc : xet_cli_hub_get_file(hub, &file);
        }
    }

    if (hub->args->value[XET_CLI_OPT_RANGE]) {
        return xet_cli_fail(XET_CLI_USAGE, "get",
                            "--range does not apply to a folder");
    }

    return xet_cli_hub_get_folder(hub);
}


static int
xet_cli_hub_get_file(xet_cli_hub_t *hub, const xet_cli_hub_file_t *file)
{
    int              rc;
    xet_cli_want_t   want;
    xet_cli_http_t  *cas;

    if (!file->known) {
        return xet_cli_fail(XET_CLI_FAULT, hub->path,
                            "has no Xet hash on this Hub");
    }

    memset(&want, 0, sizeof(want));

    want.path = hub->args->value[XET_CLI_OPT_OUTPUT];
    want.given = (want.path != NULL);
    want.path = want.given ? want.path : hub->base;

    if (!want.given && !xet_cli_tree_safe(hub->base, "not written")) {
        return XET_CLI_FAULT;
    }

    want.hash = file->hash;
    want.size = file->size;
    want.sha256 = file->digested ? file->sha256 : NULL;

    cas = xet_cli_hub_cas(hub, &rc);

    return cas ? xet_cli_get_file(hub->args, cas, &want) : rc;
}


/*
 * Downloads a folder.  The local folder is named after the remote folder, or
 * after the repository.
 */

static int
xet_cli_hub_get_folder(xet_cli_hub_t *hub)
{
    int                 rc;
    xet_cli_hub_get_t   g;

    memset(&g, 0, sizeof(g));

    g.hub = hub;
    g.cut = *hub->path ? strlen(hub->path) + 1 : 0;
    g.cas = xet_cli_hub_cas(hub, &rc);

    if (g.cas == NULL) {
        return rc;
    }

    rc = xet_cli_hub_progress(hub, hub->base);

    rc = rc ? rc
            : xet_cli_hub_tree(hub, hub->path, 1, 0, xet_cli_hub_get_entry,
                               &g);

    /* a bucket has no folders: the list of a missing folder is empty */

    if (rc == XET_CLI_OK && g.n == 0) {
        rc = *hub->path
             ? xet_cli_fail(XET_CLI_FAULT, hub->path, "not found")
             : xet_cli_hub_get_begin(&g);
    }

    rc = xet_cli_worse(rc, g.rc);

    return g.tree ? xet_cli_get_tree_end(g.tree, rc) : rc;
}


/*
 * Creates the local folder.  This must wait until the remote folder is known
 * to exist.
 */

static int
xet_cli_hub_get_begin(xet_cli_hub_get_t *g)
{
    int          rc;
    const char  *output = g->hub->args->value[XET_CLI_OPT_OUTPUT];

    if (output == NULL && !xet_cli_tree_safe(g->hub->base, "not written")) {
        return XET_CLI_FAULT;
    }

    output = output ? output : g->hub->base;

    g->tree = xet_cli_get_tree_begin(g->hub->args, g->cas, output, &rc);

    return rc;
}


/* Downloads one file.  A failure does not stop the download of other files. */

static int
xet_cli_hub_get_entry(void *ctx, const xet_hub_entry_t *entry)
{
    int                 rc;
    char               *path;
    xet_cli_want_t      want;
    xet_cli_hub_get_t  *g = ctx;

    g->n++;

    rc = g->tree ? XET_CLI_OK : xet_cli_hub_get_begin(g);

    if (rc != XET_CLI_OK || entry->folder) {
        return rc;
    }

    path = strndup((const char *) entry->path.data + g->cut,
                   entry->path.len - g->cut);

    if (path == NULL) {
        return xet_cli_no_memory();
    }

    memset(&want, 0, sizeof(want));

    want.path = path;
    want.hash = entry->hash;
    want.size = entry->size;
    want.sha256 = entry->digested ? entry->sha256 : NULL;

    rc = entry->known
         ? xet_cli_get_tree_want(g->tree, &want)
         : xet_cli_fail(XET_CLI_FAULT, path, "has no Xet hash on this Hub");

    free(path);

    g->rc = xet_cli_worse(g->rc, rc);

    return (rc < XET_CLI_NETWORK && !xet_cli_get_tree_refused(g->tree))
           ? XET_CLI_OK : rc;
}
