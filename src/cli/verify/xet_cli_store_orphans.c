
/*
 * Orphans: files of the store without a row in the database.  Orphans are left
 * by a crash, or by a server whose database rejects writes.  xet only reports
 * orphans; a server with xet_gc removes them (src/http/bg_jobs).  A copy that
 * is listed for the collector is not an orphan, since a backup may need the
 * copy.
 */


#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_verify.h"


/* The scan of one folder of copies. */

typedef struct {
    xet_cli_store_t   *store;
    xet_cli_pg_t      *pg;
    char               folder[32];
} xet_cli_orphans_t;


static int xet_cli_orphans_entry(void *ctx, const char *name);
static int xet_cli_orphans_named(xet_cli_orphans_t *o, const char *name,
    int *known);
static int xet_cli_orphans_tell(xet_cli_store_t *s, xet_cli_pg_t *pg);
static int xet_cli_orphans_order(const void *one, const void *two);


int
xet_cli_store_orphans(xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    int                rc;
    unsigned           i;
    xet_cli_orphans_t  o;

    if (s->nnames) {
        qsort(s->names, s->nnames, XET_CLI_STORE_NAME, xet_cli_orphans_order);
    }

    o.store = s;
    o.pg = pg;

    for (i = 0; i < 256; i++) {
        snprintf(o.folder, sizeof(o.folder), "xorbs/default/%02x", i);

        rc = xet_cli_interrupted
             ? XET_CLI_INTERRUPTED
             : xet_cli_storage_list(s->storage, o.folder, xet_cli_orphans_entry,
                                    &o);

        if (rc != XET_CLI_OK) {
            return (rc == XET_CLI_GONE)
                   ? xet_cli_failf(XET_CLI_ERROR, s->storage->name,
                                   "%s: %s", o.folder, strerror(ENOENT))
                   : rc;
        }
    }

    return xet_cli_orphans_tell(s, pg);
}


/*
 * Reports a file that has no row, unless the file is young: the row of a young
 * file may be written at any time, even after the rows were read.
 */

static int
xet_cli_orphans_entry(void *ctx, const char *name)
{
    int                 rc, known;
    char                path[XET_CLI_STORAGE_NAME], whole[PATH_MAX];
    xet_store_item_t    entry;
    xet_cli_store_t    *s;
    xet_cli_orphans_t  *o = ctx;

    s = o->store;

    if (snprintf(path, sizeof(path), "%s/%s", o->folder, name)
        >= (int) sizeof(path))
    {
        return xet_cli_fail(XET_CLI_ERROR, name, "name is too long");
    }

    rc = xet_cli_orphans_named(o, name, &known);

    if (rc != XET_CLI_OK || known) {
        return rc;
    }

    rc = xet_cli_storage_stat(s->storage, path, &entry);

    if (rc != XET_CLI_OK || entry.modified >= s->before) {
        return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
    }

    s->orphans++;

    snprintf(whole, sizeof(whole), "%s/%s", s->storage->name, path);

    xet_cli_store_report(s, "orphan", whole, "the file has no row");

    return XET_CLI_OK;
}


/*
 * Sets *known if a file has a row.  The rows were read some time ago, so a
 * name without a row is looked up again in the database.
 */

static int
xet_cli_orphans_named(xet_cli_orphans_t *o, const char *name, int *known)
{
    int               rc;
    uint8_t           key[XET_CLI_STORE_NAME];
    uint32_t          copy_id;
    uint64_t          n;
    xet_hash_t        hash;
    xet_cli_store_t  *s = o->store;

    *known = 0;

    if (xet_xorb_name_parse(&hash, &copy_id, (const uint8_t *) name,
                            strlen(name))
        != XET_OK
        || strncmp(o->folder + strlen(o->folder) - 2, name, 2) != 0)
    {
        return XET_CLI_OK;
    }

    xet_cli_store_name(key, &hash, copy_id);

    if (s->nnames
        && bsearch(key, s->names, s->nnames, XET_CLI_STORE_NAME,
                   xet_cli_orphans_order))
    {
        *known = 1;
        return XET_CLI_OK;
    }

    n = 0;

    rc = xet_cli_pg_number(o->pg, "SELECT count(*) FROM"
                           " xet.copies_unknown(ARRAY[$1],"
                           " ARRAY[$2::integer])",
                           xet_cli_pg_with(xet_cli_as_hash(&hash),
                                           xet_cli_as_copy_id(copy_id)), &n);

    *known = (n == 0);

    return rc;
}


/* Records the number of orphans, for the metrics of the server. */

static int
xet_cli_orphans_tell(xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    return xet_cli_pg_query(pg, "SELECT xet.orphans_found($1::text::bigint)",
                            xet_cli_pg_with(xet_cli_as_number(s->orphans)),
                            NULL, NULL);
}


static int
xet_cli_orphans_order(const void *one, const void *two)
{
    return memcmp(one, two, XET_CLI_STORE_NAME);
}
