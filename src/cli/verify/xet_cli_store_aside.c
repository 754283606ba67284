
/*
 * Orphans on their way out: a file is renamed to a name that nobody asks for,
 * the database is asked once more, and then the file is removed, or gets its
 * name back.  The server does the same (src/http/store), and both may be at
 * work: a file that is not there any more is no error.
 *
 * Whoever dies between the two leaves the file aside; the next sweep, of
 * whatever kind, begins with these.
 *
 * In a bucket nothing can be renamed, so an object keeps its name between the
 * two looks.  Only the upload that has made a copy can put its row, and it has
 * given up long before its copy is old; a rebuild has a lock that is asked for
 * with each look.
 */


#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_verify.h"


/* Names in the folder of temporary files that are looked through. */

typedef struct {
    xet_cli_store_t  *store;
    xet_cli_pg_t     *pg;
    xet_cli_place_t  *place;
    uint64_t         *n;               /* that got their names back */
} xet_cli_aside_t;


static int xet_cli_aside_entry(void *ctx, const char *name);
static int xet_cli_aside_names(const char *name, char *aside, char *path,
    xet_hash_t *hash, uint32_t *tag);
static int xet_cli_aside_settle(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const xet_hash_t *hash, uint32_t tag, const char *aside,
    const char *path);
static int xet_cli_aside_remove(xet_cli_store_t *s, const char *aside,
    const char *path, const xet_cli_entry_t *entry);
static int xet_cli_aside_free(xet_cli_pg_t *pg, const xet_hash_t *hash,
    uint32_t tag, int *removable);
static int xet_cli_aside_back(xet_cli_place_t *place, const char *aside,
    const char *path);
static int xet_cli_aside_named(void *ctx, const char *name);


int
xet_cli_store_remove(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const xet_hash_t *hash, uint32_t tag, const char *name)
{
    int   rc;
    char  aside[XET_CLI_PLACE_NAME], text[XET_XORB_ASIDE_MAX + 1];

    *xet_xorb_aside_print((uint8_t *) text, (uint64_t) getpid(), hash, tag)
    = '\0';

    snprintf(aside, sizeof(aside), "tmp/%s", text);

    rc = xet_cli_place_still(s->place, s->identity);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_place_aside(s->place, name, aside);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_aside_settle(s, pg, hash, tag, aside, name);
    }

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


int
xet_cli_store_asides(xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    int              rc;
    xet_cli_aside_t  a;

    memset(&a, 0, sizeof(a));
    a.store = s;
    a.pg = pg;

    rc = xet_cli_place_list(s->place, "tmp", xet_cli_aside_entry, &a);

    if (rc == XET_CLI_OK || rc == XET_CLI_GONE) {
        rc = xet_cli_place_sweep(s->place, XET_CLI_STORE_AGE);
    }

    return rc;
}


static int
xet_cli_aside_entry(void *ctx, const char *name)
{
    int               rc;
    char              aside[XET_CLI_PLACE_NAME], path[XET_CLI_PLACE_NAME];
    uint32_t          tag;
    uint64_t          removed;
    xet_hash_t        hash;
    xet_cli_aside_t  *a;

    a = ctx;

    if (!xet_cli_aside_names(name, aside, path, &hash, &tag)) {
        return XET_CLI_OK;
    }

    removed = a->store->removed;

    rc = xet_cli_aside_settle(a->store, a->pg, &hash, tag, aside, path);

    a->store->orphans += a->store->removed - removed;

    return rc;
}


/* The names that it has aside and had before; 0 if it is not aside. */

static int
xet_cli_aside_names(const char *name, char *aside, char *path,
    xet_hash_t *hash, uint32_t *tag)
{
    uint64_t  sweep;

    if (xet_xorb_aside_parse(&sweep, hash, tag, (const uint8_t *) name,
                             strlen(name))
        != XET_OK)
    {
        return 0;
    }

    snprintf(aside, XET_CLI_PLACE_NAME, "tmp/%.*s", (int) XET_XORB_ASIDE_MAX,
             name);
    (void) xet_cli_place_copy(path, hash, *tag);

    return 1;
}


/*
 * The row may have been put meanwhile, or another file may have got the name
 * before it was taken aside: then the file goes back.
 */

static int
xet_cli_aside_settle(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const xet_hash_t *hash, uint32_t tag, const char *aside,
    const char *path)
{
    int              rc, here, there, removable;
    xet_cli_entry_t  entry;

    rc = xet_cli_aside_free(pg, hash, tag, &removable);
    here = xet_cli_place_still(s->place, s->identity);

    if (here != XET_CLI_OK) {
        return here;
    }

    there = xet_cli_place_stat(s->place, aside, &entry);

    if (there == XET_CLI_GONE) {
        return rc;
    }

    if (rc != XET_CLI_OK || there != XET_CLI_OK || !removable
        || !xet_cli_store_removable(s, &entry))
    {
        rc = xet_cli_worse(rc, (there == XET_CLI_OK) ? XET_CLI_OK : there);

        return xet_cli_worse(rc, xet_cli_aside_back(s->place, aside, path));
    }

    return xet_cli_aside_remove(s, aside, path, &entry);
}


static int
xet_cli_aside_remove(xet_cli_store_t *s, const char *aside, const char *path,
    const xet_cli_entry_t *entry)
{
    int              rc;
    xet_cli_entry_t  other;

    rc = xet_cli_place_remove(s->place, aside);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    /* a sweep may have died when the file had its name back, too */

    s->removed += (strcmp(aside, path) == 0
                   || xet_cli_place_stat(s->place, path, &other) != XET_CLI_OK
                   || other.id != entry->id);

    return XET_CLI_OK;
}


/*
 * Old enough, and not from before the database, by both times: one that was
 * copied may have any time of its content, and one whose owner was changed has
 * a new time of its inode.
 */

int
xet_cli_store_removable(const xet_cli_store_t *s,
    const xet_cli_entry_t *entry)
{
    return entry->modified < s->known
           && entry->modified >= s->since && entry->changed >= s->since;
}


static int
xet_cli_aside_free(xet_cli_pg_t *pg, const xet_hash_t *hash, uint32_t tag,
    int *removable)
{
    int                  rc;
    char                 text[16];
    uint64_t             n;
    xet_cli_pg_param_t   params[2];

    snprintf(text, sizeof(text), "%d", (int) tag);

    memset(params, 0, sizeof(params));
    params[0].value = hash->bytes;
    params[0].len = XET_HASH_LEN;
    params[1].value = text;

    n = 0;

    rc = xet_cli_pg_number(pg, "SELECT count(*) FROM"
                           " xet.orphans(ARRAY[$1], ARRAY[$2::integer])",
                           params, 2, &n);

    *removable = (n != 0);

    return rc;
}


int
xet_cli_store_asides_back(xet_cli_place_t *place, uint64_t *n)
{
    int              rc;
    xet_cli_aside_t  a;

    memset(&a, 0, sizeof(a));
    a.place = place;
    a.n = n;

    rc = xet_cli_place_list(place, "tmp", xet_cli_aside_named, &a);

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


static int
xet_cli_aside_named(void *ctx, const char *name)
{
    char              aside[XET_CLI_PLACE_NAME], path[XET_CLI_PLACE_NAME];
    uint32_t          tag;
    xet_hash_t        hash;
    xet_cli_aside_t  *a;

    a = ctx;

    if (!xet_cli_aside_names(name, aside, path, &hash, &tag)) {
        return XET_CLI_OK;
    }

    *a->n += 1;

    return xet_cli_aside_back(a->place, aside, path);
}


/* Another sweep may have been first. */

static int
xet_cli_aside_back(xet_cli_place_t *place, const char *aside,
    const char *path)
{
    int  rc;

    rc = xet_cli_place_back(place, aside, path);

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}
