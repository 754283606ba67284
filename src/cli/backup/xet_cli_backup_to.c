
/*
 * The target of a backup: checks which store it belongs to, removes the files
 * that an interrupted backup has left, and opens the newest generation.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_backup.h"


static int xet_cli_backup_alone(xet_cli_backup_t *b, int *had);
static int xet_cli_backup_newest(xet_cli_backup_t *b);


/* A target with only lock files and a temporary folder counts as empty. */

int
xet_cli_backup_to(xet_cli_backup_t *b, const char *name)
{
    int   rc, had, empty;
    char  line[128], mark[128];

    static const char *const  nothing[] = { "tmp", "lock",
                                            XET_CLI_BACKUP_READERS, NULL };

    b->to = xet_cli_storage_open(name, XET_CLI_STORAGE_MAKE, &rc);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (xet_store_same(b->to, b->store)) {
        return xet_cli_fail(XET_CLI_USAGE, name, "is the store itself");
    }

    snprintf(mark, sizeof(mark), XET_CLI_BACKUP_MARK "%s", b->m.identity);

    rc = xet_cli_storage_line(b->to, "backup", line, sizeof(line));

    if (rc == XET_CLI_OK && strcmp(line, mark) != 0) {
        rc = xet_cli_fail(XET_CLI_ERROR, name, "is a backup of another store");
    }

    if (rc == XET_CLI_GONE) {
        rc = xet_cli_storage_empty(b->to, nothing, &empty);

        if (rc == XET_CLI_OK && !empty) {
            rc = xet_cli_fail(XET_CLI_ERROR, name, "is neither empty nor a"
                              " backup");
        }
    }

    if (rc != XET_CLI_OK) {
        return (rc == XET_CLI_UNREADABLE) ? xet_cli_fail_errno(name) : rc;
    }

    rc = xet_cli_storage_lock(b->to, "lock", 1, &had);

    if (rc == XET_CLI_OK && had) {
        rc = xet_cli_backup_alone(b, &had);
    }

    return (rc != XET_CLI_OK || had)
           ? rc : xet_cli_fail(XET_CLI_ERROR, name,
                               "another backup is being written to it");
}


/*
 * Also locks the target with an advisory lock in the database, because buckets
 * have no locks.  Sets *had to 1 if the lock was taken, else to 0.
 */

static int
xet_cli_backup_alone(xet_cli_backup_t *b, int *had)
{
    int       rc;
    uint64_t  locked;

    locked = 0;

    rc = xet_cli_pg_number(b->pg, "SELECT pg_try_advisory_lock("
                           "hashtext('xet.backup'), hashtext($1))",
                           xet_cli_pg_with(xet_cli_as_text(b->to->name)),
                           &locked);

    *had = (locked != 0);

    return rc;
}


/* Creates folders and the files "backup" and "readers" if they are missing. */

int
xet_cli_backup_clear(xet_cli_backup_t *b)
{
    int               rc;
    char              text[128];
    xet_store_item_t  entry;

    rc = xet_cli_storage_folders(b->to);

    /*
     * write the mark first: after any interruption the next run recognizes the
     * target
     */

    rc = rc ? rc : xet_cli_storage_line(b->to, "backup", text, sizeof(text));

    if (rc == XET_CLI_GONE) {
        snprintf(text, sizeof(text), XET_CLI_BACKUP_MARK "%s\n",
                 b->m.identity);

        rc = xet_cli_storage_put(b->to, "backup", text, 1);
    }

    /* create the file of the readers lock, see xet_cli_backup_prune() */

    rc = rc ? rc : xet_cli_storage_stat(b->to, XET_CLI_BACKUP_READERS, &entry);

    if (rc == XET_CLI_GONE) {
        rc = xet_cli_storage_put(b->to, XET_CLI_BACKUP_READERS, "", 1);
    }

    rc = rc ? rc : xet_cli_storage_sweep(b->to, 0);
    rc = rc ? rc : xet_cli_storage_make(b->to, "generations");

    return rc ? rc : xet_cli_backup_newest(b);
}


static int
xet_cli_backup_newest(xet_cli_backup_t *b)
{
    int                  rc, n;
    char               (*names)[XET_CLI_BACKUP_NAME];
    xet_cli_manifest_t   m;

    b->known.ended = 1;
    b->unknown.ended = 1;

    n = xet_cli_manifest_all(b->to, &names);

    if (n <= 0) {
        return n ? XET_CLI_ERROR : XET_CLI_OK;
    }

    strcpy(b->newest, names[n - 1]);
    free(names);

    rc = xet_cli_manifest_read(b->to, b->newest, &m);

    if (rc == XET_CLI_FAULT) {

        /* damaged: without its list, copies are read and verified */

        return XET_CLI_OK;
    }

    rc = rc ? rc : xet_cli_list_open(&b->known, b->to, b->newest, 0);

    return rc ? rc : xet_cli_list_open(&b->unknown, b->to, b->newest, 1);
}
