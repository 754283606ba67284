
/* xet import: uploads a folder, or a cache of huggingface_hub, to a Hub. */


#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_hub.h"


static int xet_cli_hub_import_folder(const xet_cli_args_t *args,
    const char *folder, const char *name);
static int xet_cli_hub_import_one(const xet_cli_args_t *args,
    const char *folder, const char *name, long *status);
static int xet_cli_hub_import_many(const xet_cli_args_t *args,
    struct dirent **names, int n);
static int xet_cli_hub_import_named(const xet_cli_args_t *args,
    const char *base, const char *owner, long *status);
static int xet_cli_hub_import_filter(const struct dirent *entry);
static int xet_cli_hub_import_refused(long status);
static int xet_cli_hub_import_send(const xet_cli_args_t *args,
    const char *name, const char *rev, const xet_cli_hub_source_t *source,
    long *status);


int
xet_cli_hub_import(const xet_cli_args_t *args)
{
    int              i, n, rc;
    const char      *folder, *name;
    struct dirent  **names;

    folder = args->operands[0];
    name = (args->count > 1) ? args->operands[1] : NULL;

    if (xet_cli_hub_cache_one(folder)) {
        return xet_cli_hub_import_one(args, folder, name, NULL);
    }

    n = scandir(folder, &names, xet_cli_hub_import_filter, alphasort);

    if (n < 0) {
        return xet_cli_fail_errno(folder);
    }

    rc = n ? xet_cli_hub_import_many(args, names, n)
           : xet_cli_hub_import_folder(args, folder, name);

    for (i = 0; i < n; i++) {
        free(names[i]);
    }

    free(names);

    return rc;
}


static int
xet_cli_hub_import_filter(const struct dirent *entry)
{
    return strncmp(entry->d_name, "models--", 8) == 0
           || strncmp(entry->d_name, "datasets--", 10) == 0
           || strncmp(entry->d_name, "spaces--", 8) == 0;
}


static int
xet_cli_hub_import_folder(const xet_cli_args_t *args, const char *folder,
    const char *name)
{
    xet_cli_hub_source_t  source;

    if (name == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, folder,
                            "is not a huggingface_hub cache; give a repository "
                            "name");
    }

    source.file = NULL;
    source.folder = folder;
    source.blobs = -1;
    source.make = 1;

    return xet_cli_hub_import_send(args, name,
                                   args->value[XET_CLI_OPT_REVISION],
                                   &source, NULL);
}


/*
 * Uploads the snapshot that --revision selects to the branch main of the
 * repository.
 */

static int
xet_cli_hub_import_one(const xet_cli_args_t *args, const char *folder,
    const char *name, long *status)
{
    int                    rc;
    char                  *snapshot;
    const char            *rev;
    xet_cli_hub_source_t   source;

    if (name == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, folder,
                            "is the cache of one repository; give a repository "
                            "name");
    }

    rev = args->value[XET_CLI_OPT_REVISION];
    rev = rev ? rev : "main";

    if (!xet_hub_rev_ok((const uint8_t *) rev, strlen(rev))) {
        return xet_cli_fail(XET_CLI_USAGE, rev, "invalid revision");
    }

    snapshot = xet_cli_hub_cache_snapshot(folder, rev);

    if (snapshot == NULL) {
        return XET_CLI_ERROR;
    }

    source.file = NULL;
    source.folder = snapshot;
    source.blobs = xet_cli_hub_cache_blobs(folder);
    source.make = 1;

    rc = (source.blobs < 0)
         ? XET_CLI_ERROR
         : xet_cli_hub_import_send(args, name, NULL, &source, status);

    if (source.blobs >= 0) {
        close(source.blobs);
    }

    free(snapshot);

    return rc;
}


/*
 * Imports the repositories of a cache one by one.  A failure that concerns
 * only one repository does not stop the import of the other repositories.
 */

static int
xet_cli_hub_import_many(const xet_cli_args_t *args, struct dirent **names,
    int n)
{
    int                i, rc, one;
    long               status;
    const char        *owner;
    xet_hub_target_t   target;

    owner = (args->count > 1) ? args->operands[1] : NULL;

    if (owner
        && (xet_hub_operand_parse(owner, &target) != XET_OK
            || target.kind != XET_HUB_KINDS || target.name.data))
    {
        return xet_cli_fail(XET_CLI_USAGE, owner,
                            "is not an owner name, which a cache of many "
                            "repositories needs");
    }

    rc = XET_CLI_OK;

    for (i = 0; i < n; i++) {
        status = 0;

        one = xet_cli_hub_import_named(args, names[i]->d_name, owner, &status);
        rc = xet_cli_worse(rc, one);

        if (one > XET_CLI_NETWORK
            || (one == XET_CLI_NETWORK && !xet_cli_hub_import_refused(status)))
        {
            break;
        }
    }

    return rc;
}


/*
 * Returns whether the Hub has refused only this repository, and may accept
 * other repositories.
 */

static int
xet_cli_hub_import_refused(long status)
{
    return status / 100 == 4 && status != 401 && status != 408
           && status != 429;
}


static int
xet_cli_hub_import_named(const xet_cli_args_t *args, const char *base,
    const char *owner, long *status)
{
    int    rc;
    char  *name, *folder;

    name = xet_cli_hub_cache_name(base, owner);

    if (name == NULL) {
        return xet_cli_fail(XET_CLI_FAULT, base,
                            "skipped: needs an owner");
    }

    if (asprintf(&folder, "%s/%s", args->operands[0], base) < 0) {
        free(name);
        return xet_cli_no_memory();
    }

    rc = xet_cli_hub_cache_one(folder)
         ? xet_cli_hub_import_one(args, folder, name, status)
         : xet_cli_fail(XET_CLI_FAULT, base,
                        "skipped: contains no complete snapshot");

    free(folder);
    free(name);

    return rc;
}


static int
xet_cli_hub_import_send(const xet_cli_args_t *args, const char *name,
    const char *rev, const xet_cli_hub_source_t *source, long *status)
{
    int             rc;
    xet_cli_hub_t   hub;
    xet_cli_args_t  own;

    own = *args;
    own.value[XET_CLI_OPT_REVISION] = rev;

    rc = xet_cli_hub_open_repo(&hub, &own, name);
    hub.status = status;

    rc = rc ? rc : xet_cli_hub_send(&hub, source);

    xet_cli_hub_close(&hub);

    return rc;
}
