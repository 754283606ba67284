
/*
 * xet restore: restores a backup to an empty database and an empty store.
 *
 * pg_restore first restores the database, in one transaction.  Then the copies
 * are copied and compared with the list.  The file "identity" is written last:
 * servers reject a store without this file, so a partial store is never
 * served.
 *
 * After an interruption the same command resumes.  The comment of the schema
 * xet_restore and the file "restore" in the store contain the name of the
 * generation: these marks show that database and store contain only data of
 * this restore, which may be replaced.  Existing copies are read and verified.
 *
 * A xorb that was healed while the backup was made gets the new copy id, in its
 * row and all terms.  If the backup lacks a copy, its row is marked as
 * damaged, and the next upload heals the xorb.
 *
 * During the restore, locks prevent the removal of copies.  Copies in the
 * store that the backup lacks are newer, not orphans: they are kept until xet
 * rebuild has added their rows.
 */


#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_backup.h"


#define XET_CLI_RESTORE_MARK  "restore"


typedef struct {
    const xet_cli_args_t  *args;
    int                    force;
    uint64_t               rate;       /* bytes a second; 0: no limit */
    xet_store_t           *from;       /* the backup */
    xet_store_t           *to;         /* the store */
    xet_cli_pg_t          *pg;
    xet_cli_manifest_t     m;
    xet_cli_pace_t         pace;
    xet_cli_copier_t       copier;     /* writes to the store */
    uint64_t               there;      /* copies already in the store */
    uint64_t               healed;     /* copies with a new copy id */
    uint64_t               lost;       /* copies that are not intact */
    uint64_t               others;     /* copies that the backup lacks */
} xet_cli_restore_t;


static int xet_cli_restore_all(xet_cli_restore_t *r);
static int xet_cli_restore_session(xet_cli_restore_t *r);
static int xet_cli_restore_store(xet_cli_restore_t *r);
static int xet_cli_restore_empty(xet_cli_restore_t *r);
static int xet_cli_restore_manifest(xet_cli_restore_t *r);
static int xet_cli_restore_mark(xet_cli_restore_t *r);
static int xet_cli_restore_db(xet_cli_restore_t *r);
static int xet_cli_restore_state(xet_cli_restore_t *r, int *done);
static int xet_cli_restore_dump(xet_cli_restore_t *r);
static int xet_cli_restore_copies(xet_cli_restore_t *r);
static int xet_cli_restore_copy(xet_cli_restore_t *r, xet_cli_list_t *list,
    xet_cli_list_t *notes);
static int xet_cli_restore_file(xet_cli_restore_t *r,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what);
static int xet_cli_restore_heal(xet_cli_restore_t *r,
    const xet_cli_copy_t *copy, const xet_cli_copy_t *other);
static int xet_cli_restore_lost(xet_cli_restore_t *r,
    const xet_cli_copy_t *copy);
static int xet_cli_restore_finish(xet_cli_restore_t *r);
static int xet_cli_restore_others(xet_cli_restore_t *r);
static int xet_cli_restore_count(void *ctx, const char *name);
static int xet_cli_restore_print(xet_cli_restore_t *r);


int
xet_cli_restore(const xet_cli_args_t *args)
{
    int                 rc;
    xet_cli_restore_t   r;

    rc = xet_cli_backup_operand(args->operands[0],
                                "unpack the archive with tar, then restore the "
                                "folder");

    if (rc != XET_CLI_OK) {
        return rc;
    }

    memset(&r, 0, sizeof(r));

    r.args = args;
    r.force = args->value[XET_CLI_OPT_FORCE] != NULL;

    rc = xet_cli_restore_all(&r);

    xet_cli_copier_end(&r.copier);
    xet_cli_pg_close(r.pg);
    xet_store_destroy(r.from);
    xet_store_destroy(r.to);

    return rc;
}


static int
xet_cli_restore_all(xet_cli_restore_t *r)
{
    int  rc;

    r->pg = xet_cli_pg_open(r->args, &rc);

    rc = rc ? rc : xet_cli_restore_session(r);
    rc = rc ? rc : xet_cli_restore_store(r);

    if (rc == XET_CLI_OK) {
        r->from = xet_cli_storage_open(r->args->operands[0], 0, &rc);
    }

    rc = rc ? rc : xet_cli_restore_manifest(r);
    rc = rc ? rc : xet_cli_restore_mark(r);
    rc = rc ? rc : xet_cli_restore_db(r);

    if (rc == XET_CLI_OK) {
        xet_cli_pace_begin(&r->pace, r->rate);
        xet_cli_progress_items(xet_cli_quiet(r->args), r->to->name, "copies",
                               r->m.copies, r->m.bytes);

        rc = xet_cli_restore_copies(r);

        xet_cli_progress_close();
    }

    rc = rc ? rc : xet_cli_restore_finish(r);

    return rc ? rc : xet_cli_restore_print(r);
}


/*
 * Takes two locks.  The first lock keeps other commands that read or change
 * many copies from starting.  The second lock is not granted while copies are
 * being removed from the store.
 */

static int
xet_cli_restore_session(xet_cli_restore_t *r)
{
    int       rc;
    uint64_t  had;

    had = 0;
    rc = xet_cli_pg_exec(r->pg, XET_CLI_BACKUP_PATIENCE);
    rc = rc ? rc : xet_cli_store_enter(r->pg, 1);
    rc = rc ? rc
            : xet_cli_pg_number(r->pg, "SELECT pg_try_advisory_lock_shared"
                                XET_CLI_BACKUP_LOCK, NULL, &had);

    return (rc != XET_CLI_OK || had)
           ? rc : xet_cli_fail(XET_CLI_ERROR, "postgres",
                               "copies are being removed from the store; wait "
                               "until that ends");
}


static int
xet_cli_restore_store(xet_cli_restore_t *r)
{
    int  rc;

    rc = xet_cli_args_bytes(r->args, XET_CLI_OPT_RATE, &r->rate);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    r->to = xet_cli_store_open(r->args, XET_CLI_STORAGE_MAKE
                                        | XET_CLI_STORAGE_OWNED, &rc);

    return rc ? rc : xet_cli_copier_begin(&r->copier, r->to, &r->pace);
}


/*
 * Checks that the store is empty, or has the mark of an interrupted restore of
 * this generation.
 */

static int
xet_cli_restore_empty(xet_cli_restore_t *r)
{
    int   rc, empty;
    char  line[XET_CLI_BACKUP_NAME + 1];

    static const char *const  nothing[] = { NULL };

    if (r->force) {
        return XET_CLI_OK;
    }

    rc = xet_cli_storage_line(r->to, XET_CLI_RESTORE_MARK, line, sizeof(line));

    if (rc == XET_CLI_OK && strcmp(line, r->m.name) == 0) {
        return rc;
    }

    if (rc != XET_CLI_OK && rc != XET_CLI_GONE && rc != XET_CLI_UNREADABLE) {
        return rc;
    }

    rc = xet_cli_storage_empty(r->to, nothing, &empty);

    return (rc != XET_CLI_OK || empty)
           ? rc : xet_cli_fail(XET_CLI_ERROR, r->to->name,
                               "the store is not empty; see --force");
}


static int
xet_cli_restore_manifest(xet_cli_restore_t *r)
{
    int           rc, n;
    char        (*names)[XET_CLI_BACKUP_NAME];
    uint64_t      newest;
    const char   *name;

    rc = xet_cli_backup_reads(r->from);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    n = xet_cli_manifest_all(r->from, &names);

    if (n <= 0) {
        return n ? XET_CLI_ERROR
                 : xet_cli_fail(XET_CLI_FAULT, r->args->operands[0],
                                "contains no complete generation");
    }

    name = r->args->value[XET_CLI_OPT_GENERATION];

    if (name && (strlen(name) >= XET_CLI_BACKUP_NAME || strchr(name, '/'))) {
        rc = xet_cli_fail(XET_CLI_USAGE, name, "invalid generation name");

    } else {
        rc = xet_cli_manifest_read(r->from, name ? name : names[n - 1],
                                   &r->m);
    }

    free(names);

    /* check the schema version before anything is dropped */

    newest = 0;

    rc = rc ? rc : xet_cli_migrate_newest(r->args, &newest);

    if (rc == XET_CLI_OK && r->m.schema > newest) {
        rc = xet_cli_fail(XET_CLI_FAULT, r->m.name,
                          "was made by a later version");
    }

    return rc;
}


/*
 * Writes the mark of this restore, and removes the identity, so that servers
 * reject the store until the restore is complete.
 */

static int
xet_cli_restore_mark(xet_cli_restore_t *r)
{
    int   rc, done;
    char  line[XET_CLI_BACKUP_NAME + 1];

    rc = xet_cli_restore_state(r, &done);
    rc = rc ? rc : xet_cli_restore_empty(r);
    rc = rc ? rc : xet_cli_storage_folders(r->to);
    rc = rc ? rc : xet_cli_storage_sweep(r->to, 0);

    if (rc == XET_CLI_OK) {
        snprintf(line, sizeof(line), "%s\n", r->m.name);
        rc = xet_cli_storage_put(r->to, XET_CLI_RESTORE_MARK, line, 1);
    }

    rc = rc ? rc : xet_cli_storage_remove(r->to, "identity");

    return rc ? rc : xet_cli_storage_settle(r->to);
}


static int
xet_cli_restore_db(xet_cli_restore_t *r)
{
    int  rc, done;

    rc = xet_cli_restore_state(r, &done);

    /* if done, an earlier run has restored the database */

    if (rc == XET_CLI_OK && !done) {
        rc = xet_cli_restore_dump(r);
    }

    rc = rc ? rc : xet_cli_migrate(r->args);

    /*
     * After the dump, the server may have advertised more xorbs to clients.
     * So each xorb counts as advertised today, and is kept as long as clients
     * may remember it.  tables = '' protects newer copies in the store from
     * removal, see xet.store_suspects().
     */

    return rc ? rc
              : xet_cli_pg_exec(r->pg, "UPDATE xet.store SET tables = '';"
                                " UPDATE xet.xorbs"
                                " SET advertised_on = xet.today()"
                                " WHERE advertised_on IS DISTINCT FROM"
                                " xet.today();"
                                " ANALYZE xet.files, xet.xorbs, xet.chunks,"
                                " xet.terms, xet.file_xorbs, xet.repo_files");
}


/*
 * Sets *done to 1 if this generation is already restored to the database, else
 * to 0.  Rejects a database that a server uses; without --force, also rejects
 * a database with other files or repositories.
 */

static int
xet_cli_restore_state(xet_cli_restore_t *r, int *done)
{
    int       rc;
    char      text[128];
    uint64_t  used, rows;

    /*
     * query_to_xml() runs this statement only if the tables exist; in a plain
     * statement a missing table is an error
     */

    static const char  rows_sql[] =
        "SELECT (SELECT count(*) FROM (SELECT FROM xet.xorbs LIMIT 1) x)"
        " + (SELECT count(*) FROM (SELECT FROM xet.files LIMIT 1) f)"
        " + (SELECT count(*) FROM (SELECT FROM xet.repos LIMIT 1) r) AS n";

    *done = 0;
    used = 0;
    rows = 0;
    text[0] = '\0';

    rc = xet_cli_pg_number(r->pg, "SELECT count(*) FROM pg_stat_activity"
                           " WHERE datname = current_database()"
                           " AND application_name = 'nginx-xet'",
                           NULL, &used);

    if (rc == XET_CLI_OK && used) {
        rc = xet_cli_fail(XET_CLI_ERROR, "postgres",
                          "a server is connected to the database; stop it");
    }

    rc = rc ? rc : xet_cli_pg_line(r->pg,
                                   "SELECT coalesce(obj_description(oid,"
                                   " 'pg_namespace'), '') FROM pg_namespace"
                                   " WHERE nspname = 'xet_restore'", NULL,
                                   text, sizeof(text));
    rc = rc ? rc
            : xet_cli_pg_number(r->pg, "SELECT CASE WHEN"
                                " to_regclass('xet.repos') IS NULL THEN 0 ELSE"
                                " (xpath('//n/text()', query_to_xml($1, true,"
                                " true, '')))[1]::text::bigint END",
                                xet_cli_pg_with(xet_cli_as_text(rows_sql)),
                                &rows);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (text[0] && strcmp(text, r->m.name) == 0) {
        rc = xet_cli_pg_number(r->pg, "SELECT to_regclass('xet.xorbs')"
                               " IS NOT NULL", NULL, &used);
        *done = (used != 0);

    } else if (rows && !r->force) {
        rc = xet_cli_fail(XET_CLI_ERROR, "postgres",
                          "the database has files or repositories; see "
                          "--force");
    }

    return rc;
}


static int
xet_cli_restore_dump(xet_cli_restore_t *r)
{
    int   rc, fd;
    char  sql[256], path[XET_CLI_BACKUP_PATH];

    const char  *restore[] = { "pg_restore", "--single-transaction",
                               "--exit-on-error", "--no-owner", NULL };

    snprintf(sql, sizeof(sql), "BEGIN; DROP SCHEMA IF EXISTS xet CASCADE;"
             " DROP SCHEMA IF EXISTS xet_restore CASCADE;"
             " CREATE SCHEMA xet_restore;"
             " COMMENT ON SCHEMA xet_restore IS '%s'; COMMIT", r->m.name);

    rc = strspn(r->m.name, "0123456789TZ") == strlen(r->m.name)
         ? xet_cli_pg_exec(r->pg, sql)
         : xet_cli_fail(XET_CLI_FAULT, r->m.name, "invalid generation name");

    if (rc != XET_CLI_OK) {
        return rc;
    }

    xet_cli_manifest_path(r->m.name, "dump", path);

    rc = xet_cli_storage_fetch(r->from, path, &fd);

    if (rc == XET_CLI_GONE) {
        errno = ENOENT;
    }

    if (rc != XET_CLI_OK) {
        return (rc == XET_CLI_GONE || rc == XET_CLI_UNREADABLE)
               ? xet_cli_fail_errno(path) : rc;
    }

    rc = xet_cli_backup_run(restore, fd, -1, r->pg);

    close(fd);

    return rc;
}


static int
xet_cli_restore_copies(xet_cli_restore_t *r)
{
    int              rc;
    xet_cli_list_t   list, notes;

    memset(&notes, 0, sizeof(notes));

    rc = xet_cli_list_open(&list, r->from, r->m.name, 0);
    rc = rc ? rc : xet_cli_list_open(&notes, r->from, r->m.name, 1);

    while (rc == XET_CLI_OK && !list.ended) {
        rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED
                                 : xet_cli_restore_copy(r, &list, &notes);
        xet_cli_progress_item(list.copy.size);
        rc = rc ? rc : xet_cli_list_next(&list);
    }

    xet_cli_list_close(&list);
    xet_cli_list_close(&notes);

    return rc ? rc : xet_cli_copier_flush(&r->copier);
}


static int
xet_cli_restore_copy(xet_cli_restore_t *r, xet_cli_list_t *list,
    xet_cli_list_t *notes)
{
    int             rc, recorded;
    xet_cli_copy_e  what;

    rc = xet_cli_list_find(notes, &list->copy, &recorded);

    if (rc == XET_CLI_OK && recorded && notes->healed) {
        return xet_cli_restore_heal(r, &list->copy, &notes->other);
    }

    /*
     * do not skip a copy that the notes record as lost: a restore of another
     * generation may have copied an intact file to the store
     */

    rc = rc ? rc : xet_cli_restore_file(r, &list->copy, &what);

    if (rc != XET_CLI_OK || what == XET_CLI_COPY_GOOD) {
        return rc;
    }

    return xet_cli_restore_lost(r, &list->copy);
}


static int
xet_cli_restore_file(xet_cli_restore_t *r, const xet_cli_copy_t *copy,
    xet_cli_copy_e *what)
{
    int  rc, there;

    *what = XET_CLI_COPY_BAD;
    rc = xet_cli_copier_there(r->to, copy, &there);

    if (rc == XET_CLI_OK && there) {
        rc = xet_cli_copier_read(&r->copier, r->to, copy, what);
    }

    if (rc == XET_CLI_OK && *what == XET_CLI_COPY_GOOD) {
        r->there++;
        return XET_CLI_OK;
    }

    return rc ? rc : xet_cli_copier_copy(&r->copier, r->from, copy, what);
}


/*
 * Restores the copy "other" that has replaced "copy", and updates the copy id
 * in the row.  The file must be durable before the row refers to it.
 */

static int
xet_cli_restore_heal(xet_cli_restore_t *r, const xet_cli_copy_t *copy,
    const xet_cli_copy_t *other)
{
    int                   rc;
    uint32_t              copy_id;
    xet_cli_copy_e        what;
    xet_xorb_verifier_t  *v;

    rc = xet_cli_restore_file(r, other, &what);
    rc = rc ? rc : xet_cli_copier_flush(&r->copier);

    v = NULL;

    if (rc == XET_CLI_OK && what == XET_CLI_COPY_GOOD) {
        rc = xet_cli_copier_verify(&r->copier, r->to, other, &what, &v);
    }

    if (rc != XET_CLI_OK || what != XET_CLI_COPY_GOOD) {
        return rc ? rc : xet_cli_restore_lost(r, copy);
    }

    r->healed++;

    rc = xet_cli_backup_heal(r->pg, copy->copy_id, other,
                             xet_xorb_verifier_info(v), &copy_id);

    xet_xorb_verifier_destroy(v);

    return rc;
}


static int
xet_cli_restore_lost(xet_cli_restore_t *r, const xet_cli_copy_t *copy)
{
    char  name[XET_XORB_NAME_MAX + 1];

    *xet_xorb_name_print((uint8_t *) name, &copy->hash, copy->copy_id) = '\0';

    r->lost++;

    xet_cli_progress_clear();
    (void) xet_cli_fail(XET_CLI_FAULT, name,
                        "the backup has no intact copy; the next upload of the "
                        "xorb heals it");

    return xet_cli_pg_query(r->pg, "SELECT xet.xorb_damaged(ARRAY[$1],"
                            " ARRAY[$2::integer])",
                            xet_cli_pg_with(xet_cli_as_hash(&copy->hash),
                                            xet_cli_as_copy_id(copy->copy_id)),
                            NULL, NULL);
}


static int
xet_cli_restore_finish(xet_cli_restore_t *r)
{
    int   rc;
    char  text[128];

    rc = xet_cli_storage_settle(r->to);
    rc = rc ? rc : xet_cli_restore_others(r);
    rc = rc ? rc
            : xet_cli_pg_query(r->pg, "SELECT xet.store_confirm($1)",
                               xet_cli_pg_with(xet_cli_as_text(r->m.identity)),
                               NULL, NULL);

    if (rc == XET_CLI_OK) {
        snprintf(text, sizeof(text), "%s\n", r->m.identity);
        rc = xet_cli_storage_put(r->to, "identity", text, 1);
    }

    rc = rc ? rc : xet_cli_pg_exec(r->pg, "DROP SCHEMA IF EXISTS xet_restore"
                                          " CASCADE");

    return rc ? rc : xet_cli_storage_remove(r->to, XET_CLI_RESTORE_MARK);
}


/*
 * Counts copies in the store, intact or damaged, that the backup does not
 * list.  If there are none, records that the database has rows for all copies
 * of the store.
 */

static int
xet_cli_restore_others(xet_cli_restore_t *r)
{
    int       rc;
    char      folder[32];
    unsigned  i;
    uint64_t  copies;

    rc = XET_CLI_OK;
    copies = 0;

    for (i = 0; i < 256 && rc == XET_CLI_OK; i++) {
        snprintf(folder, sizeof(folder), XET_CLI_BACKUP_COPIES "/%02x", i);

        rc = xet_cli_storage_list(r->to, folder, xet_cli_restore_count,
                                  &copies);

        if (rc == XET_CLI_GONE) {
            rc = xet_cli_fail(XET_CLI_ERROR, folder, "is missing");
        }
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (copies <= r->m.copies - r->lost) {
        return xet_cli_pg_exec(r->pg, "SELECT xet.store_known()");
    }

    r->others = copies - (r->m.copies - r->lost);

    fprintf(stderr, "xet: %s: copies that are not from this backup: %" PRIu64
            "; they are not collected, see \"xet rebuild\"\n",
            r->to->name, r->others);

    return XET_CLI_OK;
}


static int
xet_cli_restore_count(void *ctx, const char *name)
{
    uint32_t     copy_id;
    uint64_t    *copies = ctx;
    xet_hash_t   hash;

    *copies += xet_xorb_name_parse(&hash, &copy_id, (const uint8_t *) name,
                                   strlen(name))
               == XET_OK;

    return XET_CLI_OK;
}


static int
xet_cli_restore_print(xet_cli_restore_t *r)
{
    int  rc;

    rc = xet_cli_print(xet_cli_json(r->args),
             xet_cli_out_text("generation", r->m.name, ": "),
             xet_cli_out_number("files", r->m.files, " files, "),
             xet_cli_out_number("copies", r->m.copies, " copies, "),
             xet_cli_out_number("bytes", r->m.bytes, " bytes: "),
             xet_cli_out_number("there", r->there, " already there, "),
             xet_cli_out_number("healed", r->healed, NULL),
             xet_cli_out_number("lost", r->lost, " lost\n"),
             xet_cli_out_number("others", r->others, NULL));

    return r->lost ? xet_cli_worse(rc, XET_CLI_FAULT) : rc;
}
