
/*
 * xet backup: copies the database and the store while the server runs.
 *
 * One session exports a snapshot; pg_dump and the list of copies use this
 * snapshot.  The session holds an advisory lock in shared mode from before the
 * snapshot until the last copy is saved.  Garbage collection removes no copies
 * while this lock is held.  A row is written after its file is durable, so each
 * listed copy has a file.  If the session is lost, the backup fails.
 *
 * A listed copy may be missing or damaged in the store.  If an upload has
 * healed the xorb, its row has a new copy id: the copy with the new copy id is
 * saved, and recorded in the notes.  Otherwise the copy is lost: this is
 * reported and recorded in the notes.  xet restore updates the copy id of a
 * healed row, and marks the row of a lost copy as damaged.
 *
 * A copy in the backup is not copied again if the newest generation lists it
 * with the same size and digest.  Other copies in the backup, such as those of
 * an interrupted run, are first read and verified.  A file gets its name after
 * it is verified and synced, so a damaged copy never replaces an intact copy.
 */


#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xet_cli_backup.h"


static int xet_cli_backup_all(xet_cli_backup_t *b);
static int xet_cli_backup_read(const xet_cli_args_t *args);
static int xet_cli_backup_options(xet_cli_backup_t *b);
static int xet_cli_backup_source(xet_cli_backup_t *b);
static int xet_cli_backup_target(xet_cli_backup_t *b);
static int xet_cli_backup_database(xet_cli_backup_t *b);
static int xet_cli_backup_store(xet_cli_backup_t *b);
static int xet_cli_backup_session(xet_cli_backup_t *b);
static int xet_cli_backup_files(xet_cli_backup_t *b);
static int xet_cli_backup_file(xet_cli_backup_t *b, const char *suffix,
    xet_store_writer_t **writer);
static int xet_cli_backup_snapshot(xet_cli_backup_t *b);
static int xet_cli_backup_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_backup_name(xet_cli_backup_t *b);
static int xet_cli_backup_unlock(xet_cli_backup_t *b);
static int xet_cli_backup_finish(xet_cli_backup_t *b);
static int xet_cli_backup_name_all(xet_cli_backup_t *b, const char *text);
static int xet_cli_backup_keep(xet_cli_backup_t *b);
static int xet_cli_backup_print(xet_cli_backup_t *b);


int
xet_cli_backup(const xet_cli_args_t *args)
{
    int                rc, i;
    xet_cli_backup_t   b;

    if (args->value[XET_CLI_OPT_VERIFY]) {
        return xet_cli_backup_read(args);
    }

    rc = xet_cli_backup_operand(args->operands[0],
                                "back up to a folder, then pack it with tar");

    if (rc != XET_CLI_OK) {
        return rc;
    }

    memset(&b, 0, sizeof(b));

    b.args = args;
    b.json = xet_cli_json(args);
    b.dump = -1;

    rc = xet_cli_backup_all(&b);

    xet_cli_list_close(&b.known);
    xet_cli_list_close(&b.unknown);
    xet_cli_copier_end(&b.copier);
    xet_cli_pg_close(b.pg);

    if (b.list) {
        fclose(b.list);
    }

    if (b.notes) {
        fclose(b.notes);
    }

    if (b.dump >= 0) {
        close(b.dump);
    }

    for (i = 0; i < 3; i++) {
        xet_cli_writer_drop(b.files[i]);
    }

    xet_store_destroy(b.to);
    xet_store_destroy(b.store);

    return rc;
}


static int
xet_cli_backup_read(const xet_cli_args_t *args)
{
    int           rc;
    xet_store_t  *storage;

    rc = xet_cli_backup_operand(args->operands[0],
                                "unpack the archive with tar, then verify the "
                                "folder");

    if (rc != XET_CLI_OK) {
        return rc;
    }

    storage = xet_cli_storage_open(args->operands[0], 0, &rc);

    rc = rc ? rc : xet_cli_backup_check(args, storage);

    xet_store_destroy(storage);

    return rc;
}


static int
xet_cli_backup_all(xet_cli_backup_t *b)
{
    int  rc;

    rc = xet_cli_backup_options(b);
    rc = rc ? rc : xet_cli_backup_source(b);
    rc = rc ? rc : xet_cli_backup_target(b);
    rc = rc ? rc : xet_cli_backup_database(b);
    rc = rc ? rc : xet_cli_backup_store(b);
    rc = rc ? rc : xet_cli_backup_finish(b);

    if (rc == XET_CLI_OK && b->keep) {
        rc = xet_cli_backup_keep(b);
    }

    return rc ? rc : xet_cli_backup_print(b);
}


static int
xet_cli_backup_options(xet_cli_backup_t *b)
{
    int  rc;

    rc = xet_cli_args_bytes(b->args, XET_CLI_OPT_RATE, &b->rate);

    return rc ? rc : xet_cli_args_number(b->args, XET_CLI_OPT_KEEP, 1, 1000000,
                                         0, &b->keep);
}


/* Opens the store and its database, and locks copies against removal. */

static int
xet_cli_backup_source(xet_cli_backup_t *b)
{
    int  rc;

    b->store = xet_cli_store_open(b->args, 0, &rc);

    if (rc == XET_CLI_OK) {
        b->pg = xet_cli_pg_open(b->args, &rc);
    }

    return rc ? rc : xet_cli_backup_session(b);
}


/* Opens the target of the backup and its newest generation. */

static int
xet_cli_backup_target(xet_cli_backup_t *b)
{
    int  rc;

    rc = xet_cli_backup_to(b, b->args->operands[0]);
    rc = rc ? rc : xet_cli_copier_begin(&b->copier, b->to, &b->pace);

    return rc ? rc : xet_cli_backup_clear(b);
}


/* Writes the dump and the list of copies, both from one snapshot. */

static int
xet_cli_backup_database(xet_cli_backup_t *b)
{
    int  rc;

    rc = xet_cli_backup_files(b);

    return rc ? rc : xet_cli_backup_snapshot(b);
}


/* Saves all listed copies, then releases the lock against removal. */

static int
xet_cli_backup_store(xet_cli_backup_t *b)
{
    int  rc;

    xet_cli_pace_begin(&b->pace, b->rate);
    xet_cli_progress_items(xet_cli_quiet(b->args), b->args->operands[0],
                           "copies", b->m.copies, b->m.bytes);

    rc = xet_cli_backup_copies(b);

    xet_cli_progress_close();

    return rc ? rc : xet_cli_backup_unlock(b);
}


/*
 * Checks that the database and the store belong together, and takes the lock
 * against removal of copies.  A standby is rejected: it may lag behind, and
 * has its own locks.  The lock belongs to the session, not to a transaction.
 */

static int
xet_cli_backup_session(xet_cli_backup_t *b)
{
    int   rc;
    char  claimed[128];

    rc = xet_cli_pg_line(b->pg, XET_CLI_STORE_CLAIMED, NULL, claimed,
                         sizeof(claimed));
    rc = rc ? rc : xet_cli_pg_primary(b->pg);
    rc = rc ? rc : xet_cli_storage_identity(b->store, b->m.identity);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (b->m.identity[0] == '\0' || strcmp(b->m.identity, claimed) != 0) {
        return b->m.identity[0] ? xet_cli_storage_other(b->store)
                                : xet_cli_storage_bare(b->store);
    }

    rc = xet_cli_store_enter(b->pg, 0);
    rc = rc ? rc : xet_cli_pg_exec(b->pg, XET_CLI_BACKUP_PATIENCE
                                   " SELECT pg_advisory_lock_shared"
                                   XET_CLI_BACKUP_LOCK);

    b->asked = xet_cli_now();

    return rc;
}


static int
xet_cli_backup_files(xet_cli_backup_t *b)
{
    int  rc, list, notes;

    rc = xet_cli_backup_name(b);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    b->dump = xet_cli_backup_file(b, "dump", &b->files[0]);
    list = xet_cli_backup_file(b, "list", &b->files[1]);
    notes = xet_cli_backup_file(b, "notes", &b->files[2]);

    b->list = (list < 0) ? NULL : fdopen(list, "w+");
    b->notes = (notes < 0) ? NULL : fdopen(notes, "w+");

    return (b->dump >= 0 && b->list && b->notes) ? XET_CLI_OK : XET_CLI_ERROR;
}


/*
 * Creates a file of the generation.  Returns a descriptor, which the caller
 * closes, or -1 after printing the error.
 */

static int
xet_cli_backup_file(xet_cli_backup_t *b, const char *suffix,
    xet_store_writer_t **writer)
{
    int   fd;
    char  path[XET_CLI_BACKUP_PATH];

    xet_cli_manifest_path(b->m.name, suffix, path);

    if (xet_cli_writer_open(b->to, path, writer) != XET_CLI_OK) {
        return -1;
    }

    fd = (*writer)->fd;

    /* copies are world-readable; files of a generation are not */

    fd = (fchmod(fd, 0640) == 0) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (fd < 0) {
        (void) xet_cli_fail_errno(path);
    }

    return fd;
}


static int
xet_cli_backup_snapshot(xet_cli_backup_t *b)
{
    int    rc;
    char   snapshot[128], option[160];

    /* operations of unfinished commits are not kept */

    const char  *dump[] = { "pg_dump", "-Fc", "-Z1", "-n", "xet",
                            "--no-unlogged-table-data", option, NULL };

    rc = xet_cli_pg_exec(b->pg, "BEGIN ISOLATION LEVEL REPEATABLE READ"
                                " READ ONLY");
    rc = rc ? rc : xet_cli_pg_line(b->pg, "SELECT pg_export_snapshot()", NULL,
                                   snapshot, sizeof(snapshot));
    rc = rc ? rc : xet_cli_pg_number(b->pg, "SELECT max(version)"
                                     " FROM xet.migrations", NULL,
                                     &b->m.schema);
    rc = rc ? rc : xet_cli_pg_number(b->pg, "SELECT count(*) FROM xet.files",
                                     NULL, &b->m.files);

    /* sort as xet_cli_list_order() does */

    rc = rc ? rc : xet_cli_pg_query(b->pg,
                                    "SELECT hash, copy_id, stored_size, digest"
                                    " FROM xet.xorbs"
                                    " ORDER BY get_byte(hash, 7), hash", NULL,
                                    xet_cli_backup_row, b);

    if (rc == XET_CLI_OK) {
        snprintf(option, sizeof(option), "--snapshot=%s", snapshot);
        rc = xet_cli_backup_run(dump, -1, b->dump, b->pg);
    }

    rc = rc ? rc : xet_cli_pg_exec(b->pg, "COMMIT");

    if (rc == XET_CLI_OK && fflush(b->list) != 0) {
        rc = xet_cli_fail_errno("list");
    }

    rc = rc ? rc : xet_cli_manifest_sum(b->dump, "dump", &b->m.dump);

    return rc ? rc : xet_cli_manifest_sum(fileno(b->list), "list", &b->m.list);
}


static int
xet_cli_backup_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_copy_t     copy;
    xet_cli_backup_t  *b = ctx;

    if (!xet_cli_pg_hash(row, 0, &copy.hash)) {
        return xet_cli_fail(XET_CLI_FAULT, "xorbs", "a row has no hash");
    }

    xet_cli_copy_row(&copy, row, 1);
    xet_cli_list_put(b->list, &copy);

    b->m.copies++;
    b->m.bytes += copy.size;

    return ferror(b->list) ? xet_cli_fail_errno("list") : XET_CLI_OK;
}


/*
 * Sets the name of the generation, which is the time in UTC.  The name is
 * always later than that of the newest generation, even if the clock was set
 * back.
 */

static int
xet_cli_backup_name(xet_cli_backup_t *b)
{
    time_t      now, newest;
    struct tm   tm;

    static const char  form[] = "%Y%m%dT%H%M%SZ";

    now = time(NULL);
    b->m.created = (uint64_t) now;

    memset(&tm, 0, sizeof(tm));

    if (b->newest[0] && strptime(b->newest, form, &tm)) {
        newest = timegm(&tm);
        now = (newest < now) ? now : newest + 1;
    }

    if (gmtime_r(&now, &tm) == NULL
        || strftime(b->m.name, sizeof(b->m.name), form, &tm) == 0
        || strcmp(b->m.name, b->newest) <= 0)
    {
        return xet_cli_fail(XET_CLI_ERROR, b->newest,
                            "timestamp is too far in the future; remove it");
    }

    return XET_CLI_OK;
}


static int
xet_cli_backup_unlock(xet_cli_backup_t *b)
{
    int       rc;
    uint64_t  held;

    held = 0;
    rc = xet_cli_pg_number(b->pg, "SELECT pg_advisory_unlock_shared"
                           XET_CLI_BACKUP_LOCK, NULL, &held);

    return (rc == XET_CLI_OK && held)
           ? rc : xet_cli_fail(XET_CLI_ERROR, "postgres",
                               "lost the session that protects copies from "
                               "removal: the backup is incomplete");
}


static int
xet_cli_backup_finish(xet_cli_backup_t *b)
{
    int    rc;
    char  *text;

    if (fflush(b->notes) != 0 || ferror(b->notes)) {
        return xet_cli_fail_errno("notes");
    }

    rc = xet_cli_manifest_sum(fileno(b->notes), "notes", &b->m.notes);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    text = xet_cli_manifest_text(&b->m);

    if (text == NULL) {
        return XET_CLI_ERROR;
    }

    rc = xet_cli_backup_name_all(b, text);

    free(text);

    return rc;
}


/*
 * Gives the files of the generation their final names.  The manifest is written
 * last, when all other files and their names are durable.
 */

static int
xet_cli_backup_name_all(xet_cli_backup_t *b, const char *text)
{
    int                  rc, i;
    char                 path[XET_CLI_BACKUP_PATH];
    xet_store_writer_t  *writer;

    xet_cli_manifest_path(b->m.name, "json", path);

    rc = xet_cli_storage_settle(b->to);

    for (i = 0; i < 3 && rc == XET_CLI_OK; i++) {
        writer = b->files[i];
        b->files[i] = NULL;

        rc = xet_cli_writer_keep(writer, 1);
    }

    rc = rc ? rc : xet_cli_storage_sync(b->to, "generations");

    return rc ? rc : xet_cli_storage_put(b->to, path, text, 1);
}


/*
 * Removes old generations, unless the database may have lost rows of copies
 * that the store still has: only an older generation may list such a copy.
 */

static int
xet_cli_backup_keep(xet_cli_backup_t *b)
{
    int   rc;
    char  reason[256];

    reason[0] = '\0';

    rc = xet_cli_pg_line(b->pg, "SELECT coalesce(xet.store_suspects(), '')",
                         NULL, reason, sizeof(reason));

    if (rc != XET_CLI_OK || reason[0] == '\0') {
        return rc ? rc : xet_cli_backup_prune(b->to, b->keep, &b->pruned);
    }

    fprintf(stderr, "xet: %s: no generation was removed: %s\n",
            b->args->operands[0], reason);

    return XET_CLI_OK;
}


static int
xet_cli_backup_print(xet_cli_backup_t *b)
{
    int  rc;

    rc = xet_cli_print(b->json,
             xet_cli_out_text("generation", b->m.name, ": "),
             xet_cli_out_number("files", b->m.files, " files, "),
             xet_cli_out_number("copies", b->m.copies, " copies, "),
             xet_cli_out_number("bytes", b->m.bytes, " bytes: "),
             xet_cli_out_number("new", b->fresh, " new, "),
             xet_cli_out_number("new_bytes", b->fresh_bytes, NULL),
             xet_cli_out_number("removed", b->pruned, " removed, "),
             xet_cli_out_number("lost", b->m.faults, " lost\n"),
             xet_cli_out_number("damaged", b->damaged, NULL));

    return (b->m.faults || b->damaged) ? xet_cli_worse(rc, XET_CLI_FAULT) : rc;
}
