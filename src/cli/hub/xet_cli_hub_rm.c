
/*
 * xet rm of a name of a Hub: a file, or with --recursive a folder, in a commit.
 *
 * What earlier commits have stays there.  A repo as a whole is not deleted by
 * its name here: nobody is asked, and a name is written quickly.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_hub.h"


/* Paths of a bucket, which has no folders to be deleted as such. */

typedef struct {
    char    **all;
    size_t    n;
    size_t    room;
} xet_cli_hub_rm_t;


static int xet_cli_hub_rm_path(xet_cli_hub_t *hub, int folder);
static int xet_cli_hub_rm_below(xet_cli_hub_t *hub, xet_cli_hub_rm_t *paths,
    xet_cli_hub_commit_t *c);
static int xet_cli_hub_rm_entry(void *ctx, const xet_hub_entry_t *entry);


int
xet_cli_hub_rm(const xet_cli_args_t *args)
{
    int            rc, folder;
    xet_cli_hub_t  hub;

    folder = (args->value[XET_CLI_OPT_RECURSIVE] != NULL);

    if (args->count == 0 || strchr(args->operands[0], '/') == NULL) {
        return folder ? xet_cli_fail(XET_CLI_USAGE, "rm",
                                     "--recursive needs a folder of a Hub")
                      : xet_cli_rm(args);
    }

    if (args->count > 1 || args->value[XET_CLI_OPT_REPO]) {
        return xet_cli_fail(XET_CLI_USAGE, "rm", "takes one name of a Hub");
    }

    rc = xet_cli_hub_open_repo(&hub, args, args->operands[0]);

    if (rc == XET_CLI_OK && *hub.path == '\0') {
        rc = xet_cli_fail(XET_CLI_USAGE, args->operands[0],
                          "names no path in the repository");
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_hub_rm_path(&hub, folder);
    }

    xet_cli_hub_close(&hub);

    return rc;
}


static int
xet_cli_hub_rm_path(xet_cli_hub_t *hub, int folder)
{
    int                    rc;
    size_t                 i;
    xet_cli_hub_rm_t       paths;
    xet_cli_hub_commit_t   c;

    memset(&c, 0, sizeof(c));
    memset(&paths, 0, sizeof(paths));

    c.hub = hub;
    c.message = hub->args->value[XET_CLI_OPT_MESSAGE];
    c.message = c.message ? c.message : "Delete files";

    rc = (folder && hub->kind == XET_HUB_BUCKET)
         ? xet_cli_hub_rm_below(hub, &paths, &c)
         : xet_cli_hub_commit_remove(&c, hub->path, folder);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_hub_commit_send(&c);
    }

    for (i = 0; i < paths.n; i++) {
        free(paths.all[i]);
    }

    free(paths.all);
    xet_cli_hub_commit_free(&c);

    return rc;
}


/* The list is complete before the first of it is deleted. */

static int
xet_cli_hub_rm_below(xet_cli_hub_t *hub, xet_cli_hub_rm_t *paths,
    xet_cli_hub_commit_t *c)
{
    int     rc;
    size_t  i;

    rc = xet_cli_hub_tree(hub, hub->path, 1, 0, xet_cli_hub_rm_entry, paths);

    if (rc == XET_CLI_OK && paths->n == 0) {
        return xet_cli_fail(XET_CLI_FAULT, hub->path, "is not there");
    }

    for (i = 0; i < paths->n && rc == XET_CLI_OK; i++) {
        rc = xet_cli_hub_commit_remove(c, paths->all[i], 0);

        if (rc == XET_CLI_OK && xet_cli_hub_commit_due(c)) {
            rc = xet_cli_hub_commit_send(c);
        }
    }

    return rc;
}


static int
xet_cli_hub_rm_entry(void *ctx, const xet_hub_entry_t *entry)
{
    char              **all;
    xet_cli_hub_rm_t   *paths;

    paths = ctx;

    if (entry->folder) {
        return XET_CLI_OK;
    }

    all = xet_cli_grow(paths->all, paths->n, &paths->room, sizeof(char *));

    if (all == NULL) {
        return xet_cli_no_memory();
    }

    paths->all = all;

    all[paths->n] = strndup((const char *) entry->path.data, entry->path.len);

    return all[paths->n++] ? XET_CLI_OK : xet_cli_no_memory();
}
