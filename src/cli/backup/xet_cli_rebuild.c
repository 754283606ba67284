
/*
 * xet rebuild: adds rows for xorbs that are in a store, but not in its
 * database.
 *
 * Each copy is verified, and its row is inserted, as in an upload.  An
 * existing row changes only if its copy is missing or marked as damaged: then
 * the row refers to the verified copy.  A store does not record which xorbs a
 * file consists of, so users must upload their files again; clients then skip
 * the bytes of known xorbs.
 *
 * A database without an identity gets the identity of the store.  While the
 * rebuild runs, a lock keeps copies from being removed.  xet.store_unknown()
 * and xet.store_known() record that the rebuild is incomplete or complete:
 * until it is complete, copies without a row are not orphans.  First, copies
 * in quarantine get their names back.
 *
 * A server may be running.  The upload of a young copy may be about to insert
 * its row, or to remove the file because the row is rejected.  So a young copy
 * gets a second name with a new copy id, which the upload does not remove.
 */


#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xet_cli_backup.h"


#define XET_CLI_COPY_IDS_BLOCK  256   /* copy ids per xet.copy_ids_take() */


typedef struct {
    const xet_cli_args_t  *args;
    xet_store_t           *storage;
    int                    began;      /* incomplete rebuild recorded */
    unsigned               number;     /* current folder, 0 to 255 */
    xet_cli_pg_t          *pg;
    xet_cli_copier_t       copier;
    uint32_t               copy_id;    /* next unused copy id */
    unsigned               copy_ids;   /* unused copy ids of the block */
    uint64_t               copies;
    uint64_t               known;      /* copies that had a row before */
    uint64_t               added;      /* copies that got a row */
    uint64_t               bad;        /* damaged copies */
    uint64_t               back;       /* copies moved from quarantine */
} xet_cli_rebuild_t;


/* The copy that the row of a xorb refers to. */

typedef struct {
    int                    known;      /* the xorb has a row */
    int                    intact;     /* not marked as damaged */
    uint32_t               copy_id;
} xet_cli_rebuild_named_t;


static int xet_cli_rebuild_all(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_quarantines(xet_cli_rebuild_t *b, uint64_t *n);
static int xet_cli_rebuild_quarantine(void *ctx, const char *name);
static int xet_cli_rebuild_walk(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_session(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_claim(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_name(void *ctx, const char *name);
static int xet_cli_rebuild_copy(xet_cli_rebuild_t *b, xet_cli_copy_t *copy);
static int xet_cli_rebuild_needed(xet_cli_rebuild_t *b,
    const xet_cli_copy_t *copy, xet_cli_rebuild_named_t *named, int *needed);
static int xet_cli_rebuild_named_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_rebuild_given_up(xet_cli_rebuild_t *b,
    const xet_cli_copy_t *copy, uint64_t *given_up);
static int xet_cli_rebuild_link(xet_cli_rebuild_t *b, xet_cli_copy_t *copy,
    int *linked);
static int xet_cli_rebuild_copy_id(xet_cli_rebuild_t *b, uint32_t *copy_id);
static int xet_cli_rebuild_take(xet_cli_rebuild_t *b, xet_cli_copy_t *copy,
    const xet_cli_rebuild_named_t *named, int *taken);
static int xet_cli_rebuild_row(xet_cli_rebuild_t *b,
    const xet_cli_copy_t *copy, const xet_xorb_info_t *info,
    uint32_t *the_copy_id);
static char *xet_cli_rebuild_eligible(const xet_xorb_info_t *info);
static int xet_cli_rebuild_finish(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_print(xet_cli_rebuild_t *b);


int
xet_cli_rebuild(const xet_cli_args_t *args)
{
    int                 rc;
    xet_cli_rebuild_t   b;

    memset(&b, 0, sizeof(b));

    b.args = args;
    b.storage = xet_cli_store_open(args, 0, &rc);

    if (rc == XET_CLI_OK) {
        b.pg = xet_cli_pg_open(args, &rc);
    }

    rc = rc ? rc : xet_cli_rebuild_all(&b);

    if (b.began) {
        fprintf(stderr,
                "xet: %s: the rebuild is incomplete; run it again: until then "
                "copies without a row are not removed\n",
                b.storage->name);
    }

    xet_cli_copier_end(&b.copier);
    xet_cli_pg_close(b.pg);
    xet_store_destroy(b.storage);

    return rc;
}


static int
xet_cli_rebuild_all(xet_cli_rebuild_t *b)
{
    int       rc;
    uint64_t  back;

    back = 0;
    rc = xet_cli_rebuild_session(b);

    /* a row must not refer to a file that a crash could remove */

    rc = rc ? rc : xet_cli_storage_sync(b->storage, NULL);
    rc = rc ? rc : xet_cli_copier_begin(&b->copier, NULL, NULL);

    xet_cli_progress_items(xet_cli_quiet(b->args), b->storage->name, "copies",
                           0, 0);

    rc = rc ? rc : xet_cli_rebuild_quarantines(b, &back);

    /* repeat if a concurrent sweep has put more copies in quarantine */

    for (back = 1; rc == XET_CLI_OK && back; /* void */) {

        rc = xet_cli_rebuild_walk(b);

        back = 0;

        rc = rc ? rc : xet_cli_rebuild_quarantines(b, &back);
    }

    xet_cli_progress_close();

    rc = rc ? rc : xet_cli_rebuild_finish(b);

    return rc ? rc : xet_cli_rebuild_print(b);
}


/*
 * Renames copies in quarantine to their original names; adds their number to
 * *n.
 */

static int
xet_cli_rebuild_quarantines(xet_cli_rebuild_t *b, uint64_t *n)
{
    int       rc;
    uint64_t  before;

    before = b->back;
    rc = xet_cli_storage_list(b->storage, "tmp", xet_cli_rebuild_quarantine, b);

    *n += b->back - before;

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


/*
 * Renames one copy from its name in quarantine.  It is not an error if the
 * sweep has already removed the copy (XET_CLI_GONE).
 */

static int
xet_cli_rebuild_quarantine(void *ctx, const char *name)
{
    int                 rc;
    char                path[XET_CLI_STORAGE_NAME];
    char                quarantine[XET_CLI_STORAGE_NAME];
    uint32_t            copy_id;
    uint64_t            sweep;
    xet_hash_t          hash;
    xet_cli_rebuild_t  *b = ctx;

    if (xet_xorb_quarantine_parse(&sweep, &hash, &copy_id,
                                  (const uint8_t *) name, strlen(name))
        != XET_OK)
    {
        return XET_CLI_OK;
    }

    snprintf(quarantine, sizeof(quarantine), "tmp/%.*s", (int)
             XET_XORB_QUARANTINE_MAX, name);

    rc = xet_cli_storage_back(b->storage, quarantine,
                              xet_store_copy(path, &hash, copy_id));

    b->back++;

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


static int
xet_cli_rebuild_walk(xet_cli_rebuild_t *b)
{
    int       rc;
    char      folder[32];
    uint64_t  added;

    rc = XET_CLI_OK;
    added = b->added;

    b->copies = 0;
    b->known = 0;
    b->bad = 0;

    for (b->number = 0; b->number < 256 && rc == XET_CLI_OK; b->number++) {
        snprintf(folder, sizeof(folder), XET_CLI_BACKUP_COPIES "/%02x",
                 b->number);

        rc = xet_cli_storage_list(b->storage, folder, xet_cli_rebuild_name, b);

        if (rc == XET_CLI_GONE) {
            rc = XET_CLI_OK;
        }
    }

    /* rows added by an earlier walk are not counted as known */

    b->known -= (b->known < added) ? b->known : added;

    return rc;
}


/*
 * Takes the locks first, so that no copies are being removed afterwards, then
 * records that the rebuild is incomplete.
 */

static int
xet_cli_rebuild_session(xet_cli_rebuild_t *b)
{
    int  rc;

    rc = xet_cli_pg_primary(b->pg);
    rc = rc ? rc : xet_cli_store_enter(b->pg, 0);
    rc = rc ? rc : xet_cli_pg_exec(b->pg, XET_CLI_BACKUP_PATIENCE
                                   " SELECT pg_advisory_lock_shared"
                                   XET_CLI_BACKUP_LOCK);
    rc = rc ? rc : xet_cli_rebuild_claim(b);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_pg_exec(b->pg, "SELECT xet.store_unknown()");
        b->began = (rc == XET_CLI_OK);
    }

    return rc;
}


static int
xet_cli_rebuild_claim(xet_cli_rebuild_t *b)
{
    int                        rc;
    char                       identity[64], named[64];
    const xet_cli_pg_param_t  *params;

    rc = xet_cli_storage_identity(b->storage, identity);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (identity[0] == '\0') {
        return xet_cli_storage_bare(b->storage);
    }

    params = xet_cli_pg_with(xet_cli_as_text(identity));
    named[0] = '\0';

    rc = xet_cli_pg_line(b->pg, "SELECT the_identity FROM xet.store_claim($1)",
                         params, named, sizeof(named));

    if (rc == XET_CLI_OK && strcmp(identity, named) != 0) {
        rc = xet_cli_storage_other(b->storage);
    }

    return rc ? rc : xet_cli_pg_query(b->pg, "SELECT xet.store_confirm($1)",
                                      params, NULL, NULL);
}


static int
xet_cli_rebuild_name(void *ctx, const char *name)
{
    int                 rc;
    uint64_t            done;
    xet_cli_copy_t      copy;
    xet_cli_rebuild_t  *b = ctx;

    memset(&copy, 0, sizeof(copy));

    if (xet_xorb_name_parse(&copy.hash, &copy.copy_id, (const uint8_t *) name,
                            strlen(name))
        != XET_OK
        || copy.hash.bytes[7] != b->number)
    {
        return XET_CLI_OK;
    }

    done = b->copier.done;
    rc = xet_cli_rebuild_copy(b, &copy);
    xet_cli_progress_item(b->copier.done - done);

    return rc;
}


static int
xet_cli_rebuild_copy(xet_cli_rebuild_t *b, xet_cli_copy_t *copy)
{
    int                       rc, needed, linked, taken;
    char                      name[XET_CLI_STORAGE_NAME];
    xet_cli_rebuild_named_t   named;

    b->copies++;

    rc = xet_cli_rebuild_needed(b, copy, &named, &needed);

    if (rc != XET_CLI_OK || !needed) {
        return rc;
    }

    taken = 0;

    rc = xet_cli_rebuild_link(b, copy, &linked);
    rc = rc ? rc : xet_cli_rebuild_take(b, copy, &named, &taken);

    /*
     * remove the second name if no row uses it; after an error it stays,
     * because a row may have been inserted before the connection was lost
     */

    if (rc == XET_CLI_OK && linked && !taken) {
        rc = xet_cli_storage_remove(b->storage,
                                    xet_store_copy(name, &copy->hash,
                                                   copy->copy_id));
    }

    b->added += (uint64_t) taken;

    return rc;
}


/*
 * Sets *needed to 1 if the xorb has no row, or its row refers to another copy
 * that is missing or damaged; else to 0.  A copy that garbage collection will
 * remove is not needed.
 */

static int
xet_cli_rebuild_needed(xet_cli_rebuild_t *b, const xet_cli_copy_t *copy,
    xet_cli_rebuild_named_t *named, int *needed)
{
    int              rc;
    uint64_t         given_up, size;
    xet_cli_copy_t   other;

    memset(named, 0, sizeof(xet_cli_rebuild_named_t));
    *needed = 0;

    rc = xet_cli_pg_query(b->pg, "SELECT copy_id, intact"
                          " FROM xet.xorb_get($1, true, '', NULL)",
                          xet_cli_pg_with(xet_cli_as_hash(&copy->hash)),
                          xet_cli_rebuild_named_row, named);

    if (rc == XET_CLI_OK && named->known && named->copy_id == copy->copy_id) {
        b->known++;
        return XET_CLI_OK;
    }

    rc = rc ? rc : xet_cli_rebuild_given_up(b, copy, &given_up);

    if (rc != XET_CLI_OK || given_up) {
        return rc;
    }

    other = *copy;
    other.copy_id = named->copy_id;

    rc = xet_cli_copier_size(b->storage, &other, &size);

    *needed = !named->known || !named->intact || size == UINT64_MAX;

    return rc;
}


static int
xet_cli_rebuild_named_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_rebuild_named_t  *named = ctx;

    named->known = 1;
    named->copy_id = (uint32_t) xet_cli_pg_u64(row, 0);
    named->intact = xet_cli_pg_bool(row, 1) != 0;

    return XET_CLI_OK;
}


/*
 * Sets *given_up to 1 if garbage collection has deleted the row of the copy
 * and will remove its file, else to 0.
 */

static int
xet_cli_rebuild_given_up(xet_cli_rebuild_t *b, const xet_cli_copy_t *copy,
    uint64_t *given_up)
{
    *given_up = 0;

    return xet_cli_pg_number(b->pg, "SELECT count(*) FROM xet.gc_copies"
                             " WHERE hash = $1 AND copy_id = $2::integer",
                             xet_cli_pg_with(xet_cli_as_hash(&copy->hash),
                                             xet_cli_as_copy_id(copy->copy_id)),
                             given_up);
}


/*
 * Gives a young copy, which may belong to an upload, a second name with a new
 * copy id: sets copy->copy_id to the new copy id, and *linked to 1.  If the
 * database has no other sessions, no server is running, and the copy keeps its
 * name.
 */

static int
xet_cli_rebuild_link(xet_cli_rebuild_t *b, xet_cli_copy_t *copy, int *linked)
{
    int               rc;
    char              name[XET_CLI_STORAGE_NAME], other[XET_CLI_STORAGE_NAME];
    uint64_t          sessions;
    xet_store_item_t  entry;

    *linked = 0;

    xet_store_copy(name, &copy->hash, copy->copy_id);

    rc = xet_cli_storage_stat(b->storage, name, &entry);

    if (rc != XET_CLI_OK
        || entry.modified < (int64_t) time(NULL) - XET_CLI_STORE_AGE_MIN)
    {
        return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
    }

    sessions = 0;
    rc = xet_cli_pg_number(b->pg, "SELECT count(*) FROM pg_stat_activity"
                           " WHERE datname = current_database()"
                           " AND usename IS NOT NULL"
                           " AND pid <> pg_backend_pid()", NULL, &sessions);

    if (rc != XET_CLI_OK || sessions == 0) {
        return rc;
    }

    rc = xet_cli_rebuild_copy_id(b, &copy->copy_id);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_storage_link(b->storage, name,
                            xet_store_copy(other, &copy->hash, copy->copy_id));

    *linked = (rc == XET_CLI_OK);

    /* the upload has removed the copy */

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


/*
 * Sets *copy_id to an unused copy id; copy ids are taken from the database in
 * blocks.  Skips copy id 0, which stands for copies of old versions that
 * issued no copy ids.
 */

static int
xet_cli_rebuild_copy_id(xet_cli_rebuild_t *b, uint32_t *copy_id)
{
    int       rc;
    uint64_t  first;

    do {
        if (b->copy_ids == 0) {
            first = 0;
            rc = xet_cli_pg_number(b->pg, "SELECT xet.copy_ids_take()", NULL,
                                   &first);

            if (rc != XET_CLI_OK) {
                return rc;
            }

            b->copy_id = (uint32_t) first;
            b->copy_ids = XET_CLI_COPY_IDS_BLOCK;
        }

        *copy_id = b->copy_id++;
        b->copy_ids--;

    } while (*copy_id == 0);

    return XET_CLI_OK;
}


/*
 * Verifies a copy, and makes the row of its xorb refer to this copy.  Sets
 * *taken to 1 if the row refers to this copy afterwards.
 */

static int
xet_cli_rebuild_take(xet_cli_rebuild_t *b, xet_cli_copy_t *copy,
    const xet_cli_rebuild_named_t *named, int *taken)
{
    int                   rc;
    char                  path[XET_CLI_BACKUP_PATH];
    uint32_t              copy_id;
    xet_cli_copy_e        what;
    xet_xorb_verifier_t  *v;

    copy_id = 0;

    v = NULL;
    copy->digested = 0;

    /* no row records the size, so use the size of the file */

    what = XET_CLI_COPY_GONE;
    rc = xet_cli_copier_size(b->storage, copy, &copy->size);
    rc = rc ? rc : xet_cli_copier_verify(&b->copier, b->storage, copy, &what,
                                         &v);

    if (rc != XET_CLI_OK || what == XET_CLI_COPY_GONE) {
        return rc;
    }

    if (what == XET_CLI_COPY_BAD) {
        b->bad++;
        xet_cli_progress_clear();
        (void) xet_cli_fail(XET_CLI_FAULT, xet_cli_copy_path(copy, path),
                            "is damaged; no row was added");
        return XET_CLI_OK;
    }

    xet_checksum_finish(b->copier.checksum, &copy->digest);

    copy->digested = 1;

    rc = named->known ? xet_cli_backup_heal(b->pg, named->copy_id, copy,
                                            xet_xorb_verifier_info(v), &copy_id)
                      : xet_cli_rebuild_row(b, copy,
                                            xet_xorb_verifier_info(v),
                                            &copy_id);

    *taken = (rc == XET_CLI_OK && copy_id == copy->copy_id);

    xet_xorb_verifier_destroy(v);

    return rc;
}


/*
 * Inserts a row for the copy.  Sets *the_copy_id to the copy id in the row of
 * the xorb, which is not copy->copy_id if another row already exists.
 */

static int
xet_cli_rebuild_row(xet_cli_rebuild_t *b, const xet_cli_copy_t *copy,
    const xet_xorb_info_t *info, uint32_t *the_copy_id)
{
    int        rc;
    char      *eligible;
    size_t     n;
    uint8_t   *lists;
    uint64_t   stands;

    static const char  sql[] = "SELECT p.the_copy_id FROM"
        " (SELECT length($2) / 40 AS n) l, LATERAL xet.xorb_put($1,"
        " substring($2 FROM 1 FOR 32 * n), substring($2 FROM 32 * n + 1 FOR"
        " 4 * n), substring($2 FROM 36 * n + 1), $3::bigint, $4::bigint,"
        " $5::integer[], $6::integer, $7, true, '', NULL) p";

    eligible = xet_cli_rebuild_eligible(info);
    n = info->chunk_count;

    lists = malloc(40 * n);

    if (eligible == NULL || lists == NULL) {
        free(eligible);
        free(lists);
        return xet_cli_no_memory();
    }

    memcpy(lists, info->hashes, 32 * n);
    memcpy(lists + 32 * n, info->raw_ends, 4 * n);
    memcpy(lists + 36 * n, info->stored_ends, 4 * n);

    stands = 0;

    rc = xet_cli_pg_number(b->pg, sql,
                           xet_cli_pg_with(
                               xet_cli_as_hash(&copy->hash),
                               xet_cli_as_bytes(lists, 40 * n),
                               xet_cli_as_number(info->raw_size),
                               xet_cli_as_number(copy->size),
                               xet_cli_as_text(eligible),
                               xet_cli_as_copy_id(copy->copy_id),
                               xet_cli_as_bytes(copy->digest.bytes,
                                                XET_CHECKSUM_LEN)),
                           &stands);

    *the_copy_id = (uint32_t) stands;

    free(lists);
    free(eligible);

    return rc;
}


/*
 * Returns the chunks for the dedup index as a PostgreSQL array literal,
 * malloc()ed, or NULL if out of memory.  Chunks are selected as in an upload
 * of files; the first chunk of each xorb is always included, because it is not
 * known which chunks are the first of a file.
 */

static char *
xet_cli_rebuild_eligible(const xet_xorb_info_t *info)
{
    char      *text, *p;
    uint16_t  *chunks;
    uint32_t   i, n;

    chunks = malloc(info->chunk_count * sizeof(uint16_t));
    text = malloc((size_t) info->chunk_count * 6 + 8);

    if (chunks == NULL || text == NULL) {
        free(chunks);
        free(text);
        return NULL;
    }

    n = xet_xorb_eligible(&xet_suite_default, info, chunks);

    p = text + sprintf(text, "{0");

    for (i = 0; i < n; i++) {
        p += chunks[i] ? sprintf(p, ",%u", chunks[i]) : 0;
    }

    strcpy(p, "}");
    free(chunks);

    return text;
}


/*
 * Counts usage again, since no repository or subject is charged for the new
 * rows.  Records that the rebuild is complete, unless there are damaged
 * copies: a damaged copy may be the only copy of its xorb, and be replaced
 * later by an intact copy.
 */

static int
xet_cli_rebuild_finish(xet_cli_rebuild_t *b)
{
    int       rc;
    uint64_t  n;

    rc = xet_cli_pg_exec(b->pg, "SELECT count(*) FROM xet.usage_recount()");

    n = 1;

    while (rc == XET_CLI_OK && n) {
        n = 0;
        rc = xet_cli_interrupted
             ? XET_CLI_INTERRUPTED
             : xet_cli_pg_number(b->pg, "SELECT xet.usage_settle(1000)", NULL,
                                 &n);
    }

    if (rc == XET_CLI_OK && b->bad == 0) {
        rc = xet_cli_pg_exec(b->pg, "SELECT xet.store_known()");
        b->began = (rc != XET_CLI_OK);
    }

    return rc;
}


static int
xet_cli_rebuild_print(xet_cli_rebuild_t *b)
{
    int  rc;

    rc = xet_cli_print(xet_cli_json(b->args),
             xet_cli_out_number("copies", b->copies, " copies: "),
             xet_cli_out_number("known", b->known, " known, "),
             xet_cli_out_number("added", b->added, " added, "),
             xet_cli_out_number("damaged", b->bad, " damaged\n"));

    if (b->added) {
        fprintf(stderr,
                "xet: %s: the added xorbs are charged to nobody; when files "
                "need them again, run \"xet usage --recount\"\n",
                b->storage->name);
    }

    return b->bad ? xet_cli_worse(rc, XET_CLI_FAULT) : rc;
}
