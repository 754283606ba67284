
/*
 * Finds a repository by its name in the store, or by its name on a Hub in the
 * same database.  The name of a Hub repository in the store is a number.
 *
 * A name in the store takes precedence over the same name on the Hub.  A name
 * that starts with "hf://" is always a Hub name.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_admin.h"
#include "xet_hub.h"


static int xet_cli_named_row(void *ctx, const xet_cli_pg_row_t *row);


int
xet_cli_named_hub(const char *name)
{
    return strncmp(name, "hf://", 5) == 0;
}


char *
xet_cli_named(xet_cli_pg_t *pg, const char *name, int *rc)
{
    char               kind[2], *store, *owner, *base;
    xet_hub_target_t   target;

    owner = NULL;
    base = NULL;
    store = NULL;

    if (xet_hub_operand_parse(name, &target) == XET_OK && target.name.data
        && target.path.len == 0)
    {
        kind[0] = (char) ('0' + ((target.kind == XET_HUB_KINDS)
                                 ? XET_HUB_MODEL : target.kind));
        kind[1] = '\0';

        owner = strndup((const char *) target.owner.data, target.owner.len);
        base = strndup((const char *) target.name.data, target.name.len);

        if (owner == NULL || base == NULL) {
            free(owner);
            free(base);
            *rc = xet_cli_no_memory();
            return NULL;
        }
    }

    *rc = xet_cli_pg_query(pg, "SELECT n FROM xet.repo_named($1, $2::integer,"
                           " $3, $4) AS n WHERE n IS NOT NULL",
                           xet_cli_pg_with(
                               xet_cli_as_text(xet_cli_named_hub(name) ? NULL
                                                                       : name),
                               xet_cli_as_text(owner ? kind : NULL),
                               xet_cli_as_text(owner),
                               xet_cli_as_text(base)),
                           xet_cli_named_row, &store);

    free(owner);
    free(base);

    return store;
}


static int
xet_cli_named_row(void *ctx, const xet_cli_pg_row_t *row)
{
    char  **store = ctx;

    *store = strdup(xet_cli_pg_text(row, 0));

    return *store ? XET_CLI_OK : xet_cli_no_memory();
}
