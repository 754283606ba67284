
/*
 * xet backup --verify: reads and checks a whole backup, and writes nothing.
 *
 * Generations are checked from the newest to the oldest.  A copy that the next
 * newer generation also lists is skipped, so each copy is read once.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_backup.h"


typedef struct {
    xet_store_t      *storage;
    int               json;
    uint64_t          generations;
    uint64_t          copies;
    uint64_t          faults;
    xet_cli_copier_t  copier;
} xet_cli_check_t;


static int xet_cli_check_generation(xet_cli_check_t *k, const char *name,
    const char *newer);
static int xet_cli_check_list(xet_cli_check_t *k, xet_cli_list_t *list,
    xet_cli_list_t *newer, xet_cli_list_t *notes);
static int xet_cli_check_copy(xet_cli_check_t *k, xet_cli_list_t *list,
    xet_cli_list_t *notes);
static int xet_cli_check_read(xet_cli_check_t *k, const xet_cli_copy_t *copy);
static int xet_cli_check_print(xet_cli_check_t *k);


int
xet_cli_backup_check(const xet_cli_args_t *args, xet_store_t *storage)
{
    int                rc, n, worse;
    char             (*names)[XET_CLI_BACKUP_NAME];
    uint64_t           rate;
    xet_cli_pace_t     pace;
    xet_cli_check_t    k;

    memset(&k, 0, sizeof(k));
    k.storage = storage;
    k.json = xet_cli_json(args);

    rc = xet_cli_args_bytes(args, XET_CLI_OPT_RATE, &rate);
    rc = rc ? rc : xet_cli_backup_reads(storage);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    n = xet_cli_manifest_all(storage, &names);

    if (n <= 0) {
        return n ? XET_CLI_ERROR
                 : xet_cli_fail(XET_CLI_FAULT, args->operands[0],
                                "contains no complete generation");
    }

    k.generations = (uint64_t) n;
    xet_cli_pace_begin(&pace, rate);
    rc = xet_cli_copier_begin(&k.copier, NULL, &pace);
    worse = XET_CLI_OK;

    xet_cli_progress_items(xet_cli_quiet(args), args->operands[0], "copies", 0,
                           0);

    while (n-- && rc == XET_CLI_OK) {
        rc = xet_cli_check_generation(&k, names[n],
                                      (n + 1 < (int) k.generations)
                                      ? names[n + 1] : NULL);

        /* continue: the other generations may be intact */

        if (rc == XET_CLI_FAULT) {
            k.faults++;
            worse = rc;
            rc = XET_CLI_OK;
        }
    }

    xet_cli_progress_close();
    xet_cli_copier_end(&k.copier);
    free(names);

    rc = rc ? rc : xet_cli_check_print(&k);

    return xet_cli_worse(rc, k.faults ? XET_CLI_FAULT : worse);
}


static int
xet_cli_check_generation(xet_cli_check_t *k, const char *name,
    const char *newer)
{
    int                  rc;
    xet_cli_list_t       list, notes, other;
    xet_cli_manifest_t   m;

    memset(&notes, 0, sizeof(notes));
    memset(&other, 0, sizeof(other));

    rc = xet_cli_manifest_read(k->storage, name, &m);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_list_open(&list, k->storage, name, 0);
    rc = rc ? rc : xet_cli_list_open(&notes, k->storage, name, 1);

    /* if the newer list is unreadable, no copy is skipped */

    other.ended = (newer == NULL
                   || xet_cli_list_open(&other, k->storage, newer, 0)
                      != XET_CLI_OK);

    rc = rc ? rc : xet_cli_check_list(k, &list, &other, &notes);

    xet_cli_list_close(&list);
    xet_cli_list_close(&notes);
    xet_cli_list_close(&other);

    return rc;
}


static int
xet_cli_check_list(xet_cli_check_t *k, xet_cli_list_t *list,
    xet_cli_list_t *newer, xet_cli_list_t *notes)
{
    int  rc, known;

    rc = XET_CLI_OK;

    while (rc == XET_CLI_OK && !list->ended) {
        rc = xet_cli_list_find(newer, &list->copy, &known);

        if (rc == XET_CLI_OK && !known) {
            rc = xet_cli_check_copy(k, list, notes);
        }

        rc = rc ? rc : xet_cli_list_next(list);
    }

    return rc;
}


/*
 * Checks a copy, or the copy that has replaced it while the backup was made.
 * A copy that is lost according to the notes is not a fault.
 */

static int
xet_cli_check_copy(xet_cli_check_t *k, xet_cli_list_t *list,
    xet_cli_list_t *notes)
{
    int  rc, recorded;

    rc = xet_cli_list_find(notes, &list->copy, &recorded);

    if (rc != XET_CLI_OK || (recorded && !notes->healed)) {
        return rc;
    }

    return xet_cli_check_read(k, recorded ? &notes->other : &list->copy);
}


static int
xet_cli_check_read(xet_cli_check_t *k, const xet_cli_copy_t *copy)
{
    int             rc;
    char            path[XET_CLI_BACKUP_PATH];
    xet_cli_copy_e  what;

    k->copies++;

    rc = xet_cli_copier_read(&k->copier, k->storage, copy, &what);
    xet_cli_progress_item(copy->size);

    if (rc == XET_CLI_OK && what != XET_CLI_COPY_GOOD) {
        k->faults++;

        xet_cli_progress_clear();
        (void) xet_cli_fail(XET_CLI_FAULT, xet_cli_copy_path(copy, path),
                            (what == XET_CLI_COPY_GONE) ? "is missing"
                                                        : "is damaged");
    }

    return rc;
}


static int
xet_cli_check_print(xet_cli_check_t *k)
{
    return xet_cli_print(k->json,
               xet_cli_out_number("generations", k->generations,
                                  " generations, "),
               xet_cli_out_number("copies", k->copies, " copies, "),
               xet_cli_out_number("bytes", k->copier.done, " bytes read: "),
               xet_cli_out_number("faults", k->faults, " faults\n"));
}
