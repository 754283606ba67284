
/*
 * Saves the copies of a backup: each listed copy that the backup lacks is
 * copied from the store.
 *
 * If the store has no intact file, an upload may have replaced the copy by a
 * copy with another copy id: the new copy is saved, and recorded in the notes.
 * Otherwise the copy is lost: this is reported and recorded in the notes.
 *
 * A copy in the backup is not copied again if the newest generation lists it
 * with the same size and digest.  Other copies in the backup are first read
 * and verified.
 */


#include <stdio.h>
#include <string.h>

#include "xet_cli_backup.h"


#define XET_CLI_BACKUP_ASK    30000    /* ms between checks of the session */
#define XET_CLI_BACKUP_TRIES  4


static int xet_cli_backup_copy(xet_cli_backup_t *b,
    const xet_cli_copy_t *copy);
static int xet_cli_backup_there(xet_cli_backup_t *b,
    const xet_cli_copy_t *copy, int *there);
static int xet_cli_backup_fetch(xet_cli_backup_t *b,
    const xet_cli_copy_t *copy);
static int xet_cli_backup_named(xet_cli_backup_t *b, xet_cli_copy_t *copy,
    int *other);
static int xet_cli_backup_named_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_backup_ask(xet_cli_backup_t *b);
static void xet_cli_backup_report(xet_cli_backup_t *b,
    const xet_cli_copy_t *copy, const char *text);


int
xet_cli_backup_copies(xet_cli_backup_t *b)
{
    int              rc;
    xet_cli_list_t   list;

    memset(&list, 0, sizeof(list));
    list.file = b->list;
    list.name = "list";

    rewind(b->list);

    rc = xet_cli_list_next(&list);

    while (rc == XET_CLI_OK && !list.ended) {
        rc = xet_cli_backup_copy(b, &list.copy);
        xet_cli_progress_item(list.copy.size);
        rc = rc ? rc : xet_cli_backup_ask(b);
        rc = rc ? rc : xet_cli_list_next(&list);
    }

    return rc ? rc : xet_cli_copier_flush(&b->copier);
}


/*
 * Saves one copy.  If the backup has it already, only checks that the store
 * still has a file of this name and size.
 */

static int
xet_cli_backup_copy(xet_cli_backup_t *b, const xet_cli_copy_t *copy)
{
    int              rc, there, other;
    xet_cli_copy_t   now;

    rc = xet_cli_backup_there(b, copy, &there);

    if (rc != XET_CLI_OK || !there) {
        return rc ? rc : xet_cli_backup_fetch(b, copy);
    }

    rc = xet_cli_copier_there(b->store, copy, &there);

    if (rc != XET_CLI_OK || there) {
        return rc;
    }

    now = *copy;
    rc = xet_cli_backup_named(b, &now, &other);

    if (rc == XET_CLI_OK && !other) {
        b->damaged++;
        xet_cli_backup_report(b, copy,
                              "is missing from the store or has another size "
                              "there; the backup has it");
    }

    return rc;
}


static int
xet_cli_backup_there(xet_cli_backup_t *b, const xet_cli_copy_t *copy,
    int *there)
{
    int             rc, known, recorded;
    xet_cli_copy_e  what;

    rc = xet_cli_list_find(&b->known, copy, &known);
    rc = rc ? rc : xet_cli_list_find(&b->unknown, copy, &recorded);

    *there = 0;

    rc = rc ? rc : xet_cli_copier_there(b->to, copy, there);

    if (!*there
        || (known && !recorded && b->known.copy.size == copy->size
            && b->known.copy.digested == copy->digested
            && (!copy->digested
                || xet_checksum_equal(&b->known.copy.digest, &copy->digest))))
    {
        return rc;
    }

    rc = xet_cli_copier_read(&b->copier, b->to, copy, &what);

    *there = (what == XET_CLI_COPY_GOOD);

    return rc;
}


static int
xet_cli_backup_fetch(xet_cli_backup_t *b, const xet_cli_copy_t *copy)
{
    int              rc, i, other;
    char             name[XET_XORB_NAME_MAX + 1];
    xet_cli_copy_e   what;
    xet_cli_copy_t   now;

    now = *copy;
    other = 1;
    rc = XET_CLI_OK;

    for (i = 0; i < XET_CLI_BACKUP_TRIES && rc == XET_CLI_OK && other; i++) {
        rc = xet_cli_copier_copy(&b->copier, b->store, &now, &what);

        if (rc == XET_CLI_OK && what == XET_CLI_COPY_GOOD) {
            break;
        }

        rc = rc ? rc : xet_cli_backup_named(b, &now, &other);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    *xet_xorb_name_print((uint8_t *) name, &copy->hash, copy->copy_id) = '\0';

    if (what != XET_CLI_COPY_GOOD) {
        b->m.faults++;
        fprintf(b->notes, "lost %s\n", name);
        xet_cli_backup_report(b, copy, (what == XET_CLI_COPY_GONE)
                              ? "the file is missing" : "the file is damaged");
        return XET_CLI_OK;
    }

    b->fresh++;
    b->fresh_bytes += now.size;

    if (now.copy_id != copy->copy_id) {
        fprintf(b->notes, "healed %s ", name);
        xet_cli_list_put(b->notes, &now);
    }

    return XET_CLI_OK;
}


/*
 * Sets *copy to the copy that the row of the xorb refers to now.  Sets *other
 * to 1 if the copy id has changed, else to 0.
 */

static int
xet_cli_backup_named(xet_cli_backup_t *b, xet_cli_copy_t *copy, int *other)
{
    int       rc;
    uint32_t  copy_id;

    copy_id = copy->copy_id;

    rc = xet_cli_pg_query(b->pg, "SELECT copy_id, stored_size, digest"
                          " FROM xet.xorbs WHERE hash = $1",
                          xet_cli_pg_with(xet_cli_as_hash(&copy->hash)),
                          xet_cli_backup_named_row, copy);

    *other = (rc == XET_CLI_OK && copy->copy_id != copy_id);

    return rc;
}


static int
xet_cli_backup_named_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_copy_row(ctx, row, 0);

    return XET_CLI_OK;
}


/* Pings the database every 30 seconds, to detect a lost session early. */

static int
xet_cli_backup_ask(xet_cli_backup_t *b)
{
    int  rc;

    if (xet_cli_interrupted) {
        return XET_CLI_INTERRUPTED;
    }

    if (xet_cli_now() - b->asked < XET_CLI_BACKUP_ASK) {
        return XET_CLI_OK;
    }

    b->asked = xet_cli_now();
    rc = xet_cli_pg_exec(b->pg, "SELECT 1");

    return (rc == XET_CLI_OK)
           ? rc : xet_cli_fail(rc, "postgres",
                               "lost the session that protects copies from "
                               "removal: the backup is incomplete");
}


static void
xet_cli_backup_report(xet_cli_backup_t *b, const xet_cli_copy_t *copy,
    const char *text)
{
    char  name[XET_XORB_NAME_MAX + 1];

    *xet_xorb_name_print((uint8_t *) name, &copy->hash, copy->copy_id) = '\0';

    xet_cli_progress_clear();
    (void) xet_cli_fail(XET_CLI_FAULT, name, text);
}
