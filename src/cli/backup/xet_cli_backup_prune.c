
/*
 * Removes old generations, and copies that no generation needs.
 *
 * The manifest of a generation is removed before its other files, and
 * generations are removed before copies.  So each remaining generation is
 * intact after an interruption.  Copies that are not on a list are removed, so
 * the lists of the generations to keep are first compared with their
 * manifests.  While a restore or a check holds the readers lock, nothing is
 * removed.  Copies are processed folder by folder, so memory holds the names
 * of one folder.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_backup.h"


typedef struct {
    xet_store_t     *storage;
    char             folder[32];       /* current folder of copies */
    char             gone[XET_CLI_STORAGE_MANY][XET_CLI_STORAGE_NAME];
    size_t           ngone;            /* number of names in gone */
    uint64_t         removed;          /* number of removed copies */
    xet_cli_list_t  *lists;            /* lists and notes to keep */
    int              nlists;
    uint8_t         *names;            /* listed names of the folder, each of
                                          XET_CLI_STORE_NAME bytes */
    size_t           nnames;
    size_t           room;             /* capacity of names */
} xet_cli_prune_t;


static int xet_cli_prune_all(xet_cli_prune_t *p, uint64_t keep);
static int xet_cli_prune_kept(xet_store_t *storage, const char *name);
static int xet_cli_prune_generation(xet_store_t *storage,
    const char *name);
static int xet_cli_prune_copies(xet_cli_prune_t *p);
static int xet_cli_prune_names(xet_cli_prune_t *p, int number);
static int xet_cli_prune_note(xet_cli_prune_t *p, const xet_cli_copy_t *copy);
static int xet_cli_prune_copy(void *ctx, const char *name);
static int xet_cli_prune_gone(xet_cli_prune_t *p);
static int xet_cli_prune_order(const void *one, const void *two);


int
xet_cli_backup_prune(xet_store_t *storage, uint64_t keep,
    uint64_t *removed)
{
    int              rc, had;
    xet_cli_prune_t  p;

    memset(&p, 0, sizeof(p));
    p.storage = storage;

    rc = xet_cli_storage_lock(storage, XET_CLI_BACKUP_READERS, 1, &had);

    if (rc == XET_CLI_OK && !had) {
        fputs("xet: the backup is being read: no generation was removed\n",
              stderr);

    } else if (rc == XET_CLI_OK) {
        rc = xet_cli_prune_all(&p, keep);
    }

    while (p.nlists) {
        xet_cli_list_close(&p.lists[--p.nlists]);
    }

    *removed = p.removed;

    free(p.lists);
    free(p.names);

    return rc;
}


static int
xet_cli_prune_all(xet_cli_prune_t *p, uint64_t keep)
{
    int     rc, n, i, first;
    char  (*names)[XET_CLI_BACKUP_NAME];

    n = xet_cli_manifest_all(p->storage, &names);

    if (n < 0) {
        return XET_CLI_ERROR;
    }

    first = ((uint64_t) n > keep) ? n - (int) keep : 0;
    rc = XET_CLI_OK;

    for (i = first; i < n && rc == XET_CLI_OK; i++) {
        rc = xet_cli_prune_kept(p->storage, names[i]);
    }

    for (i = 0; i < first && rc == XET_CLI_OK; i++) {
        rc = xet_cli_prune_generation(p->storage, names[i]);
    }

    p->lists = calloc(2 * (size_t) (n - first) + 1, sizeof(xet_cli_list_t));

    if (p->lists == NULL) {
        free(names);
        return xet_cli_no_memory();
    }

    for (i = first; i < n && rc == XET_CLI_OK; i++) {
        rc = xet_cli_list_open(&p->lists[p->nlists++], p->storage, names[i], 0);
        rc = rc ? rc : xet_cli_list_open(&p->lists[p->nlists++], p->storage,
                                         names[i], 1);
    }

    free(names);

    return rc ? rc : xet_cli_prune_copies(p);
}


static int
xet_cli_prune_kept(xet_store_t *storage, const char *name)
{
    int                 rc;
    xet_cli_manifest_t  m;

    rc = xet_cli_manifest_lists(storage, name, &m);

    return (rc == XET_CLI_OK)
           ? rc : xet_cli_fail(rc, name,
                               "is damaged and must be kept: no generation was "
                               "removed");
}


static int
xet_cli_prune_generation(xet_store_t *storage, const char *name)
{
    int       rc;
    char      path[XET_CLI_BACKUP_PATH];
    unsigned  i;

    static const char *const  files[] = { "json", "dump", "list", "notes" };

    rc = XET_CLI_OK;

    for (i = 0; i < 4 && rc == XET_CLI_OK; i++) {
        xet_cli_manifest_path(name, files[i], path);

        rc = xet_cli_storage_remove(storage, path);

        if (rc == XET_CLI_OK && i == 0) {
            rc = xet_cli_storage_sync(storage, "generations");
        }
    }

    return rc;
}


static int
xet_cli_prune_copies(xet_cli_prune_t *p)
{
    int  rc, i;

    rc = XET_CLI_OK;

    for (i = 0; i < 256 && rc == XET_CLI_OK; i++) {
        rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED
                                 : xet_cli_prune_names(p, i);

        if (rc == XET_CLI_OK) {
            snprintf(p->folder, sizeof(p->folder),
                     XET_CLI_BACKUP_COPIES "/%02x", i);

            rc = xet_cli_storage_list(p->storage, p->folder, xet_cli_prune_copy,
                                      p);
        }

        rc = rc ? rc : xet_cli_prune_gone(p);

        if (rc == XET_CLI_GONE) {
            rc = xet_cli_fail(XET_CLI_ERROR, p->folder, "is missing");
        }
    }

    return rc;
}


/*
 * Reads the lines of one folder from all lists and notes, and sorts the names
 * of these copies.
 */

static int
xet_cli_prune_names(xet_cli_prune_t *p, int number)
{
    int              rc, i;
    xet_cli_list_t  *l;

    p->nnames = 0;
    rc = XET_CLI_OK;

    for (i = 0; i < p->nlists; i++) {
        l = &p->lists[i];

        while (rc == XET_CLI_OK && !l->ended
               && l->copy.hash.bytes[7] == number)
        {
            rc = xet_cli_prune_note(p, &l->copy);

            if (rc == XET_CLI_OK && l->notes && l->healed) {
                rc = xet_cli_prune_note(p, &l->other);
            }

            rc = rc ? rc : xet_cli_list_next(l);
        }
    }

    if (p->nnames) {
        qsort(p->names, p->nnames, XET_CLI_STORE_NAME, xet_cli_prune_order);
    }

    return rc;
}


static int
xet_cli_prune_note(xet_cli_prune_t *p, const xet_cli_copy_t *copy)
{
    uint8_t  *names;

    names = xet_cli_grow(p->names, p->nnames, &p->room, XET_CLI_STORE_NAME);

    if (names == NULL) {
        return xet_cli_no_memory();
    }

    p->names = names;

    xet_cli_store_name(names + p->nnames++ * XET_CLI_STORE_NAME, &copy->hash,
                       copy->copy_id);

    return XET_CLI_OK;
}


/*
 * Marks a file of the folder for removal if no list has its name; marked files
 * are removed in batches.  Files that do not have the name of a copy are kept.
 */

static int
xet_cli_prune_copy(void *ctx, const char *name)
{
    uint8_t           key[XET_CLI_STORE_NAME];
    uint32_t          copy_id;
    xet_hash_t        hash;
    xet_cli_prune_t  *p = ctx;

    if (xet_xorb_name_parse(&hash, &copy_id, (const uint8_t *) name,
                            strlen(name))
        != XET_OK)
    {
        return XET_CLI_OK;
    }

    xet_cli_store_name(key, &hash, copy_id);

    if (p->nnames && bsearch(key, p->names, p->nnames, XET_CLI_STORE_NAME,
                             xet_cli_prune_order))
    {
        return XET_CLI_OK;
    }

    snprintf(p->gone[p->ngone++], XET_CLI_STORAGE_NAME, "%s/%.*s", p->folder,
             (int) XET_XORB_NAME_MAX, name);

    return (p->ngone == XET_CLI_STORAGE_MANY) ? xet_cli_prune_gone(p)
                                            : XET_CLI_OK;
}


static int
xet_cli_prune_gone(xet_cli_prune_t *p)
{
    int     rc;
    size_t  n;

    n = p->ngone;
    p->ngone = 0;

    rc = n ? xet_cli_storage_remove_all(p->storage, p->gone, n) : XET_CLI_OK;

    p->removed += (rc == XET_CLI_OK) ? n : 0;

    return rc;
}


static int
xet_cli_prune_order(const void *one, const void *two)
{
    return memcmp(one, two, XET_CLI_STORE_NAME);
}
