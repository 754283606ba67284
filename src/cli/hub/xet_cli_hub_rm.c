
/*
 * xet rm of a Hub name: commits the deletion of a file, or with --recursive of
 * a folder.
 *
 * Earlier commits still contain the files.  For a bucket, memory holds only
 * one batch of paths at a time.  xet rm cannot delete a whole repository,
 * since there is no confirmation, and names are easily mistyped.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_hub.h"


/*
 * A recursive deletion in a bucket, where each file must be deleted by its
 * path.
 */

typedef struct {
    xet_cli_hub_commit_t  *commit;
    char                 **paths;      /* paths of pending operations */
    size_t                 n;
    size_t                 room;
    size_t                 found;
    unsigned               parts;      /* batches sent during the listing */
} xet_cli_hub_rm_t;


static int xet_cli_hub_rm_hashes(const xet_cli_args_t *args, int folder);
static int xet_cli_hub_rm_path(xet_cli_hub_t *hub, int folder);
static int xet_cli_hub_rm_file(xet_cli_hub_t *hub);
static int xet_cli_hub_rm_type(void *ctx, const xet_hub_entry_t *entry);
static int xet_cli_hub_rm_below(xet_cli_hub_t *hub, xet_cli_hub_commit_t *c);
static int xet_cli_hub_rm_entry(void *ctx, const xet_hub_entry_t *entry);
static int xet_cli_hub_rm_send(xet_cli_hub_rm_t *d);
static void xet_cli_hub_rm_free(xet_cli_hub_rm_t *d);


int
xet_cli_hub_rm(const xet_cli_args_t *args)
{
    int            rc, folder;
    xet_cli_hub_t  hub;

    folder = (args->value[XET_CLI_OPT_RECURSIVE] != NULL);

    if (args->count == 0 || strchr(args->operands[0], '/') == NULL) {
        return xet_cli_hub_rm_hashes(args, folder);
    }

    if (args->count > 1 || args->value[XET_CLI_OPT_REPO]) {
        return xet_cli_fail(XET_CLI_USAGE, "rm",
                            "takes one Hub name, without --repo");
    }

    rc = xet_cli_hub_open_repo(&hub, args, args->operands[0]);

    if (rc == XET_CLI_OK && *hub.path == '\0') {
        rc = xet_cli_fail(XET_CLI_USAGE, args->operands[0],
                          "needs a path in the repository");
    }

    rc = rc ? rc : xet_cli_hub_rm_path(&hub, folder);

    xet_cli_hub_close(&hub);

    return rc;
}


static int
xet_cli_hub_rm_hashes(const xet_cli_args_t *args, int folder)
{
    int  rc;

    if (folder) {
        return xet_cli_fail(XET_CLI_USAGE, "rm",
                            "--recursive needs a Hub folder");
    }

    if (args->value[XET_CLI_OPT_MESSAGE]) {
        return xet_cli_fail(XET_CLI_USAGE, "rm",
                            "--message needs a Hub name");
    }

    rc = xet_cli_hub_unnamed(args, args->count ? args->operands[0] : "rm");

    return rc ? rc : xet_cli_rm(args);
}


static int
xet_cli_hub_rm_path(xet_cli_hub_t *hub, int folder)
{
    int                    rc;
    xet_cli_hub_commit_t   c;

    memset(&c, 0, sizeof(c));

    c.hub = hub;
    c.message = hub->args->value[XET_CLI_OPT_MESSAGE];
    c.message = c.message ? c.message : "Delete files";

    if (folder && hub->kind == XET_HUB_BUCKET) {
        rc = xet_cli_hub_rm_below(hub, &c);

    } else {
        rc = folder ? XET_CLI_OK : xet_cli_hub_rm_file(hub);
        rc = rc ? rc : xet_cli_hub_commit_remove(&c, hub->path, folder);
        rc = rc ? rc : xet_cli_hub_commit_send(&c);
    }

    xet_cli_hub_commit_free(&c);

    return rc;
}


/*
 * Refuses a folder without --recursive: a Hub deletes a folder, too, if the
 * commit deletes a file with its path.
 */

static int
xet_cli_hub_rm_file(xet_cli_hub_t *hub)
{
    int       rc;
    unsigned  folder;

    folder = 0;

    rc = xet_cli_hub_paths(hub, &hub->path, 1, xet_cli_hub_rm_type, &folder);

    if (rc == XET_CLI_OK && folder) {
        rc = xet_cli_fail(XET_CLI_FAULT, hub->path,
                          "is a folder; use --recursive to delete it");
    }

    return rc;
}


static int
xet_cli_hub_rm_type(void *ctx, const xet_hub_entry_t *entry)
{
    *(unsigned *) ctx |= entry->folder;

    return XET_CLI_OK;
}


/*
 * Deletes a folder of a bucket.  Files are deleted while the Hub lists them,
 * so later pages may miss some files.  If a batch was sent before the end of
 * the list, the folder is therefore listed again.
 */

static int
xet_cli_hub_rm_below(xet_cli_hub_t *hub, xet_cli_hub_commit_t *c)
{
    int               rc, again;
    xet_cli_hub_rm_t  d;

    again = 0;

    do {
        memset(&d, 0, sizeof(d));

        d.commit = c;

        rc = xet_cli_hub_tree(hub, hub->path, 1, 0, xet_cli_hub_rm_entry, &d);

        if (rc == XET_CLI_OK && d.found == 0 && !again) {
            rc = xet_cli_fail(XET_CLI_FAULT, hub->path, "not found");
        }

        rc = rc ? rc : xet_cli_hub_rm_send(&d);

        xet_cli_hub_rm_free(&d);
        free(d.paths);

        again = 1;

    } while (rc == XET_CLI_OK && d.parts);

    return rc;
}


static int
xet_cli_hub_rm_entry(void *ctx, const xet_hub_entry_t *entry)
{
    int                rc;
    char             **paths;
    xet_cli_hub_rm_t  *d = ctx;

    if (entry->folder) {
        return XET_CLI_OK;
    }

    paths = xet_cli_grow(d->paths, d->n, &d->room, sizeof(char *));

    if (paths == NULL) {
        return xet_cli_no_memory();
    }

    d->paths = paths;
    paths += d->n;

    *paths = strndup((const char *) entry->path.data, entry->path.len);

    if (*paths == NULL) {
        return xet_cli_no_memory();
    }

    d->n++;
    d->found++;

    rc = xet_cli_hub_commit_remove(d->commit, *paths, 0);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (!xet_cli_hub_commit_due(d->commit)) {
        return XET_CLI_OK;
    }

    d->parts++;

    return xet_cli_hub_rm_send(d);
}


static int
xet_cli_hub_rm_send(xet_cli_hub_rm_t *d)
{
    int  rc;

    rc = xet_cli_hub_commit_send(d->commit);

    if (rc == XET_CLI_OK) {
        xet_cli_hub_rm_free(d);
    }

    return rc;
}


/* Frees the paths, which the commit refers to until it is sent. */

static void
xet_cli_hub_rm_free(xet_cli_hub_rm_t *d)
{
    size_t  i;

    for (i = 0; i < d->n; i++) {
        free(d->paths[i]);
    }

    d->n = 0;
}
