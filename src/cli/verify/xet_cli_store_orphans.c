
/*
 * Files without a row: what a crash leaves between the two, or a server whose
 * database refuses to write.
 *
 * Only the upload that has made a copy can put a row that names it, because
 * the tag in its name was drawn for that upload, and "xet rebuild", which holds
 * a lock that is needed here to remove files.  So a copy without a row that
 * is too old to belong to a running upload may be removed.  Even if the row is
 * put at this very moment nothing is lost: the file is taken aside, and the
 * database is asked once more (xet_cli_store_aside.c).  A file that is not
 * named like a copy is reported, and left alone, and so is a copy that the
 * collector has a note of: a backup may need it.
 *
 * All this needs a database that knows of all uploads, so a copy that is
 * younger than the newest xorb of the database is left, as is one that was in
 * the folder before the database was.  A database that came from a dump, or
 * that a rebuild has not come to the end of, says so, and nothing is removed.
 */


#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_verify.h"


/* What the name of a copy says. */

typedef struct {
    xet_hash_t         hash;
    uint32_t           tag;
} xet_cli_orphan_t;


/* A folder of copies that is looked through. */

typedef struct {
    xet_cli_store_t   *store;
    xet_cli_pg_t      *pg;
    char               folder[32];
} xet_cli_orphans_t;


static int xet_cli_orphans_lock(xet_cli_pg_t *pg, uint64_t *had);
static int xet_cli_orphans_tell(xet_cli_store_t *s, xet_cli_pg_t *pg);
static int xet_cli_orphans_folder(xet_cli_store_t *s, xet_cli_pg_t *pg,
    unsigned number);
static int xet_cli_orphans_entry(void *ctx, const char *name);
static int xet_cli_orphans_known(xet_cli_pg_t *pg, const xet_cli_orphan_t *o,
    int *known);
static int xet_cli_orphans_found(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const xet_cli_orphan_t *o, const char *name,
    const xet_cli_entry_t *entry);
static int xet_cli_orphans_order(const void *one, const void *two);


int
xet_cli_store_orphans(xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    int       rc;
    uint64_t  had;
    unsigned  i;

    if (s->nnames) {
        qsort(s->names, s->nnames, XET_CLI_STORE_NAME, xet_cli_orphans_order);
    }

    had = 1;
    rc = s->remove ? xet_cli_orphans_lock(pg, &had) : XET_CLI_OK;

    if (rc == XET_CLI_OK && !had) {
        fprintf(stderr, "xet: %s: a backup, a restore, a rebuild or another"
                " collector is at work, orphans are left\n",
                xet_cli_place_name(s->place));
        return XET_CLI_OK;
    }

    if (rc == XET_CLI_OK && s->remove) {
        rc = xet_cli_store_newest(s, pg);
    }

    if (rc == XET_CLI_OK && s->doubts[0]) {
        fprintf(stderr, "xet: %s: no file is removed, %s\n",
                xet_cli_place_name(s->place), s->doubts);
        return XET_CLI_OK;
    }

    if (rc == XET_CLI_OK && s->remove) {
        rc = xet_cli_store_asides(s, pg);
    }

    for (i = 0; i < 256 && rc == XET_CLI_OK; i++) {
        rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED
                                 : xet_cli_orphans_folder(s, pg, i);
    }

    return (rc == XET_CLI_OK) ? xet_cli_orphans_tell(s, pg) : rc;
}


/*
 * The session has it until its end.  A backup, a restore and a rebuild share
 * it: what these have not come to yet would look like orphans.
 */

static int
xet_cli_orphans_lock(xet_cli_pg_t *pg, uint64_t *had)
{
    return xet_cli_pg_number(pg, "SELECT pg_try_advisory_lock("
                             "hashtext('xet.copies'), 0)", NULL, 0, had);
}


/* For metrics of the server, and so that it knows when that was. */

static int
xet_cli_orphans_tell(xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    char                n[32];
    xet_cli_pg_param_t  params[2];

    snprintf(n, sizeof(n), "%" PRIu64, s->orphans - s->removed);

    memset(params, 0, sizeof(params));
    params[0].value = n;
    params[1].value = s->remove ? "true" : "false";

    return xet_cli_pg_query(pg, "SELECT xet.orphans_found($1::text::bigint,"
                            " $2::text::boolean)", params, 2, NULL, NULL);
}


static int
xet_cli_orphans_folder(xet_cli_store_t *s, xet_cli_pg_t *pg, unsigned number)
{
    int                 rc;
    xet_cli_orphans_t   o;

    o.store = s;
    o.pg = pg;

    snprintf(o.folder, sizeof(o.folder), "xorbs/default/%02x", number);

    rc = xet_cli_place_list(s->place, o.folder, xet_cli_orphans_entry, &o);

    return (rc == XET_CLI_GONE)
           ? xet_cli_failf(XET_CLI_ERROR, xet_cli_place_name(s->place),
                           "%s: %s", o.folder, strerror(ENOENT))
           : rc;
}


/* A young one may get its row at any moment, or got it after they were read. */

static int
xet_cli_orphans_entry(void *ctx, const char *name)
{
    int                 rc, xorb, known;
    char                path[XET_CLI_PLACE_NAME];
    uint8_t             key[XET_CLI_STORE_NAME];
    xet_cli_entry_t     entry;
    xet_cli_store_t    *s;
    xet_cli_orphan_t    o;
    xet_cli_orphans_t  *all;

    all = ctx;
    s = all->store;

    xorb = xet_xorb_name_parse(&o.hash, &o.tag, (const uint8_t *) name,
                               strlen(name))
           == XET_OK
           && strncmp(all->folder + strlen(all->folder) - 2, name, 2) == 0;

    if (xorb) {
        xet_cli_store_name(key, &o.hash, o.tag);

        if (s->nnames
            && bsearch(key, s->names, s->nnames, XET_CLI_STORE_NAME,
                       xet_cli_orphans_order))
        {
            return XET_CLI_OK;
        }
    }

    if (snprintf(path, sizeof(path), "%s/%s", all->folder, name)
        >= (int) sizeof(path))
    {
        return xet_cli_fail(XET_CLI_ERROR, name, "this name is too long");
    }

    rc = xet_cli_place_stat(s->place, path, &entry);

    if (rc != XET_CLI_OK || entry.modified >= s->before) {
        return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
    }

    known = 0;
    rc = xorb ? xet_cli_orphans_known(all->pg, &o, &known) : XET_CLI_OK;

    return (rc == XET_CLI_OK && !known)
           ? xet_cli_orphans_found(s, all->pg, xorb ? &o : NULL, path, &entry)
           : rc;
}


static int
xet_cli_orphans_known(xet_cli_pg_t *pg, const xet_cli_orphan_t *o, int *known)
{
    int                  rc;
    char                 tag[16];
    uint64_t             n;
    xet_cli_pg_param_t   params[2];

    snprintf(tag, sizeof(tag), "%d", (int) o->tag);

    memset(params, 0, sizeof(params));
    params[0].value = o->hash.bytes;
    params[0].len = XET_HASH_LEN;
    params[1].value = tag;

    n = 0;

    rc = xet_cli_pg_number(pg, "SELECT count(*) FROM"
                           " xet.copies_unknown(ARRAY[$1],"
                           " ARRAY[$2::integer])", params, 2, &n);

    *known = (n == 0);

    return rc;
}


/* Reports a file, and removes it if it may be; o is NULL: it is no xorb. */

static int
xet_cli_orphans_found(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const xet_cli_orphan_t *o, const char *name, const xet_cli_entry_t *entry)
{
    int   removable;
    char  path[PATH_MAX];

    removable = s->remove && o && xet_cli_store_removable(s, entry);

    s->orphans++;

    snprintf(path, sizeof(path), "%s/%s", xet_cli_place_name(s->place), name);

    if (s->remove && o && !removable) {
        s->left++;
        xet_cli_store_report(s, "orphan", path,
                             (entry->modified < s->known)
                             ? "the file has no row, and is older than the"
                               " database, see xet rebuild: left"
                             : "the file has no row, and is younger than what"
                               " the database knows: left");
        return XET_CLI_OK;
    }

    if (!s->silent || removable == 0) {
        xet_cli_store_report(s, "orphan", path, "the file has no row");
    }

    return removable ? xet_cli_store_remove(s, pg, &o->hash, o->tag, name)
                     : XET_CLI_OK;
}


static int
xet_cli_orphans_order(const void *one, const void *two)
{
    return memcmp(one, two, XET_CLI_STORE_NAME);
}
