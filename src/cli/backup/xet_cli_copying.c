
/*
 * xet store copy: copies all copies that the database refers to from one store
 * to another.  The server keeps running.
 *
 * Rows are read in pages, ordered by id, so rows of concurrent uploads come
 * last.  A copy is skipped if the target has a file of this name and size,
 * unless --check is given or the row is marked as damaged.  Other copies are
 * compared with the digest of the row; only intact copies get their names in
 * the target.  After an interruption the next run resumes.
 *
 * The run holds a lock that excludes only restores.  If a copy is missing or
 * damaged in the source, its row is read again.  If the row is gone, the copy
 * was collected.  If the row has another copy id, the xorb was healed, and the
 * new copy is used.  A copy that is collected after it was copied becomes an
 * orphan in the target.
 *
 * Servers reject the target until it has the identity of the store.  A run
 * first writes a mark: the identity of the source and a random number.  If the
 * source has the same mark, source and target are the same store.  A run
 * checks the mark again after writing it, because another run may be
 * concurrent.
 */


#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "xet_cli_backup.h"


#define XET_CLI_COPYING_MARK   "copying"
#define XET_CLI_COPYING_PAGE   1000    /* rows of a page */
#define XET_CLI_COPYING_TRIES  4
#define XET_CLI_COPYING_BEGIN  32      /* maximum attempts to write the mark */
#define XET_CLI_COPYING_LINE   128


typedef struct {
    uint64_t              id;
    unsigned              marked:1;    /* marked as damaged in the row */
    unsigned              found:1;     /* the row still exists */
    xet_cli_copy_t        copy;
} xet_cli_copying_row_t;


typedef struct {
    const xet_cli_args_t  *args;
    xet_store_t           *from;
    xet_store_t           *to;
    int                    check;      /* --check */
    int                    named;      /* target has the identity */
    char                   mark[XET_CLI_COPYING_LINE];
    xet_cli_store_t        store;      /* the source and its identity */
    xet_cli_pace_t         pace;

    pthread_mutex_t       pg_mutex;
    xet_cli_pg_t         *pg;

    pthread_mutex_t       mutex;       /* protects the members below */
    int                   rc;          /* exit code of the first failure */
    xet_cli_copying_row_t rows[XET_CLI_COPYING_PAGE];
    size_t                n;
    size_t                next;        /* index of the next row to copy */
    uint64_t              copies;
    uint64_t              bytes;
    uint64_t              copied;
    uint64_t              copied_bytes;
    uint64_t              there;       /* copies already in the target */
    uint64_t              gone;        /* copies collected during the run */
    uint64_t              lost;
} xet_cli_copying_t;


static int xet_cli_copying_all(xet_cli_copying_t *c);
static int xet_cli_copying_totals(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_copying_open(xet_cli_copying_t *c, uint64_t *threads);
static xet_store_t *xet_cli_copying_storage(xet_cli_copying_t *c,
    xet_cli_option_t option, int flags, int *rc);
static int xet_cli_copying_session(xet_cli_copying_t *c);
static int xet_cli_copying_target(xet_cli_copying_t *c);
static int xet_cli_copying_begin(xet_cli_copying_t *c);
static int xet_cli_copying_foreign(xet_cli_copying_t *c, int *empty);
static int xet_cli_copying_mark(xet_cli_copying_t *c, int empty);
static int xet_cli_copying_unmark(xet_cli_copying_t *c);
static int xet_cli_copying_owner(xet_cli_copying_t *c, char *line);
static int xet_cli_copying_itself(xet_cli_copying_t *c, int *sure);
static int xet_cli_copying_line(xet_store_t *storage, char *line);
static int xet_cli_copying_rows(xet_cli_copying_t *c, uint64_t threads);
static int xet_cli_copying_page(xet_cli_copying_t *c, uint64_t after);
static int xet_cli_copying_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_copying_threads(xet_cli_copying_t *c, uint64_t threads);
static void *xet_cli_copying_thread(void *data);
static int xet_cli_copying_take(xet_cli_copying_t *c,
    xet_cli_copying_row_t *row);
static int xet_cli_copying_one(xet_cli_copying_t *c, xet_cli_copier_t *copier,
    xet_cli_copying_row_t *row);
static int xet_cli_copying_there(xet_cli_copying_t *c,
    xet_cli_copier_t *copier, const xet_cli_copying_row_t *row, int *there);
static int xet_cli_copying_copy(xet_cli_copying_t *c, xet_cli_copier_t *copier,
    const xet_cli_copying_row_t *row, xet_cli_copy_e *what);
static int xet_cli_copying_again(xet_cli_copying_t *c,
    xet_cli_copying_row_t *row);
static int xet_cli_copying_again_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_copying_intact(xet_cli_copying_t *c,
    const xet_cli_copying_row_t *row);
static void xet_cli_copying_lost(xet_cli_copying_t *c,
    const xet_cli_copying_row_t *row, xet_cli_copy_e what);
static void xet_cli_copying_count(xet_cli_copying_t *c, uint64_t *counter,
    const xet_cli_copying_row_t *row);
static int xet_cli_copying_finish(xet_cli_copying_t *c);
static int xet_cli_copying_identity(xet_cli_copying_t *c);
static int xet_cli_copying_print(const xet_cli_copying_t *c);


int
xet_cli_store(const xet_cli_args_t *args)
{
    int                 rc;
    xet_cli_copying_t  *c;

    if (strcmp(args->operands[0], "copy") != 0) {
        return xet_cli_fail(XET_CLI_USAGE, args->operands[0],
                            "unknown subcommand; expected \"copy\"");
    }

    c = calloc(1, sizeof(xet_cli_copying_t));

    if (c == NULL) {
        return xet_cli_no_memory();
    }

    c->args = args;
    c->check = args->value[XET_CLI_OPT_CHECK] != NULL;

    pthread_mutex_init(&c->mutex, NULL);
    pthread_mutex_init(&c->pg_mutex, NULL);

    rc = xet_cli_copying_all(c);

    xet_cli_pg_close(c->pg);
    xet_store_destroy(c->from);
    xet_store_destroy(c->to);
    free(c);

    return rc;
}


static int
xet_cli_copying_all(xet_cli_copying_t *c)
{
    int       rc;
    uint64_t  threads;

    threads = 1;
    rc = xet_cli_copying_open(c, &threads);

    if (rc == XET_CLI_OK) {
        c->pg = xet_cli_pg_open(c->args, &rc);
    }

    rc = rc ? rc : xet_cli_copying_session(c);
    rc = rc ? rc : xet_cli_copying_target(c);
    rc = rc ? rc
            : xet_cli_pg_query(c->pg, "SELECT count(*),"
                               " coalesce(sum(stored_size), 0)::bigint"
                               " FROM xet.xorbs", NULL,
                               xet_cli_copying_totals, c);
    rc = rc ? rc : xet_cli_copying_rows(c, threads);

    xet_cli_progress_close();

    rc = rc ? rc : xet_cli_copying_finish(c);

    /* print the counters even after a failure */

    return c->copies ? xet_cli_worse(rc, xet_cli_copying_print(c)) : rc;
}


static int
xet_cli_copying_totals(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_copying_t *c = ctx;

    xet_cli_progress_items(xet_cli_quiet(c->args), c->to->name, "copies",
                           xet_cli_pg_u64(row, 0), xet_cli_pg_u64(row, 1));

    return XET_CLI_OK;
}


static int
xet_cli_copying_open(xet_cli_copying_t *c, uint64_t *threads)
{
    int        rc;
    unsigned   from, to;
    uint64_t   rate;

    rc = xet_cli_args_bytes(c->args, XET_CLI_OPT_RATE, &rate);

    if (rc == XET_CLI_OK) {
        c->from = xet_cli_copying_storage(c, XET_CLI_OPT_FROM, 0, &rc);
    }

    if (rc == XET_CLI_OK) {
        c->to = xet_cli_copying_storage(c, XET_CLI_OPT_TO, XET_CLI_STORAGE_MAKE
                                        | XET_CLI_STORAGE_OWNED, &rc);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (xet_store_same(c->from, c->to)) {
        return xet_cli_fail(XET_CLI_USAGE, c->to->name,
                            "source and target are the same store");
    }

    xet_cli_pace_begin(&c->pace, rate);

    from = c->from->parallel;
    to = c->to->parallel;

    return xet_cli_args_number(c->args, XET_CLI_OPT_PARALLEL, 1, 256,
                               (from > to) ? from : to, threads);
}


static xet_store_t *
xet_cli_copying_storage(xet_cli_copying_t *c, xet_cli_option_t option,
    int flags, int *rc)
{
    const char  *text = c->args->value[option];

    if (text == NULL || *text == '\0') {
        *rc = xet_cli_fail(XET_CLI_USAGE, "store copy",
                           "--from and --to are required");
        return NULL;
    }

    return xet_cli_storage_open(text, flags, rc);
}


/* Checks that the source is the store of the database. */

static int
xet_cli_copying_session(xet_cli_copying_t *c)
{
    int  rc;

    c->store.args = c->args;
    c->store.storage = c->from;
    c->store.strict = 1;

    rc = xet_cli_storage_identity(c->from, c->store.identity);
    rc = rc ? rc : xet_cli_store_session(&c->store, c->pg);
    rc = rc ? rc : xet_cli_pg_exec(c->pg, XET_CLI_BACKUP_PATIENCE);

    return rc ? rc : xet_cli_store_enter(c->pg, 0);
}


static int
xet_cli_copying_target(xet_cli_copying_t *c)
{
    int       rc;
    uint64_t  number;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t) sizeof(number)) {
        return xet_cli_fail_errno("getrandom");
    }

    snprintf(c->mark, sizeof(c->mark), "%s %016" PRIx64, c->store.identity,
             number);

    rc = xet_cli_copying_begin(c);
    rc = rc ? rc : xet_cli_storage_folders(c->to);

    /*
     * remove temporary files of killed runs; files of concurrent runs are
     * younger
     */

    return rc ? rc : xet_cli_storage_sweep(c->to, XET_CLI_STORE_AGE);
}


/*
 * Checks the target and writes the mark, so that the next run recognizes the
 * target after an interruption.  Concurrent runs may write or remove marks
 * between any two steps; if a check is inconclusive, all steps are repeated.
 */

static int
xet_cli_copying_begin(xet_cli_copying_t *c)
{
    int   rc, i, empty, sure;
    char  line[XET_CLI_COPYING_LINE];

    for (i = 0; i < XET_CLI_COPYING_BEGIN; i++) {
        rc = xet_cli_copying_foreign(c, &empty);
        rc = rc ? rc : xet_cli_copying_mark(c, empty);

        if (rc == XET_CLI_THERE) {
            continue;
        }

        if (rc != XET_CLI_OK) {
            return rc;
        }

        /*
         * a concurrent run for another store may have finished before this run
         * wrote its mark
         */

        rc = xet_cli_copying_owner(c, line);

        if (rc == XET_CLI_GONE) {
            continue;
        }

        if (rc != XET_CLI_OK) {
            return xet_cli_worse(rc, xet_cli_copying_unmark(c));
        }

        rc = xet_cli_copying_itself(c, &sure);

        if (rc != XET_CLI_OK || sure) {
            return rc;
        }
    }

    return xet_cli_fail(XET_CLI_ERROR, c->to->name,
                        "gave up: concurrent runs keep starting");
}


/*
 * Fails if the target belongs to another store, or is not empty and has
 * neither an identity nor a mark.  A concurrent run may write its mark between
 * the check for a mark and the check for names, so a target that is not empty
 * is checked twice.
 */

static int
xet_cli_copying_foreign(xet_cli_copying_t *c, int *empty)
{
    int   rc, i;
    char  line[XET_CLI_COPYING_LINE];

    static const char *const  nothing[] = { "tmp", NULL };

    *empty = 0;

    for (i = 0; i < 2; i++) {
        rc = xet_cli_copying_owner(c, line);

        if (rc != XET_CLI_GONE) {
            return rc;
        }

        rc = xet_cli_storage_empty(c->to, nothing, empty);

        if (rc != XET_CLI_OK || *empty) {
            return rc;
        }
    }

    return xet_cli_fail(XET_CLI_ERROR, c->to->name,
                        "is neither empty nor a store of this database");
}


/*
 * Writes the mark.  XET_CLI_THERE: the target was empty, but another run has
 * written its mark.
 */

static int
xet_cli_copying_mark(xet_cli_copying_t *c, int empty)
{
    int   rc;
    char  text[XET_CLI_COPYING_LINE + 1];

    snprintf(text, sizeof(text), "%s\n", c->mark);

    rc = xet_cli_storage_make(c->to, "tmp");

    return rc ? rc : xet_cli_storage_put(c->to, XET_CLI_COPYING_MARK, text,
                                         !empty);
}


/* Removes the mark if this run has written it. */

static int
xet_cli_copying_unmark(xet_cli_copying_t *c)
{
    int   rc;
    char  line[XET_CLI_COPYING_LINE];

    rc = xet_cli_copying_line(c->to, line);

    return (rc == XET_CLI_OK && strcmp(line, c->mark) == 0)
           ? xet_cli_storage_remove(c->to, XET_CLI_COPYING_MARK) : rc;
}


/*
 * Reads the identity and the mark of the target; sets c->named and line.
 * Fails if the identity or the mark is that of another store.  XET_CLI_GONE:
 * the target has no identity and no mark.
 */

static int
xet_cli_copying_owner(xet_cli_copying_t *c, char *line)
{
    int          rc;
    char         identity[XET_CLI_IDENTITY];
    size_t       len;
    const char  *name = c->to->name;

    rc = xet_cli_storage_identity(c->to, identity);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    c->named = (strcmp(identity, c->store.identity) == 0);

    if (identity[0] && !c->named) {
        return xet_cli_fail(XET_CLI_ERROR, name,
                            "is a different store, according to its identity");
    }

    rc = xet_cli_copying_line(c->to, line);

    if (rc != XET_CLI_OK || c->named) {
        return rc;
    }

    if (line[0] == '\0') {
        return XET_CLI_GONE;
    }

    len = strcspn(line, " ");

    return (len == strlen(c->store.identity)
            && memcmp(line, c->store.identity, len) == 0)
           ? XET_CLI_OK
           : xet_cli_fail(XET_CLI_ERROR, name,
                          "is the target of a copy from another store, "
                          "according to its file "
                          "\"" XET_CLI_COPYING_MARK "\"");
}


/*
 * Fails if source and target are the same store under two names, which is the
 * case if both have the same mark.  Concurrent runs may replace or remove the
 * mark, so the mark of the target is read before and after the mark of the
 * source.  Sets *sure to 1 if the mark of the target did not change, else to
 * 0.
 */

static int
xet_cli_copying_itself(xet_cli_copying_t *c, int *sure)
{
    int   rc;
    char  before[XET_CLI_COPYING_LINE], line[XET_CLI_COPYING_LINE];
    char  after[XET_CLI_COPYING_LINE];

    *sure = 0;

    rc = xet_cli_copying_line(c->to, before);
    rc = rc ? rc : xet_cli_copying_line(c->from, line);
    rc = rc ? rc : xet_cli_copying_line(c->to, after);

    if (rc != XET_CLI_OK || before[0] == '\0' || strcmp(before, after) != 0) {
        return rc;
    }

    *sure = 1;

    if (strcmp(line, before) != 0) {
        return XET_CLI_OK;
    }

    rc = xet_cli_fail(XET_CLI_USAGE, c->to->name,
                      "source and target are the same store");

    return xet_cli_worse(rc, xet_cli_copying_unmark(c));
}


/* Reads the mark of a store; sets line to "" if the store has none. */

static int
xet_cli_copying_line(xet_store_t *storage, char *line)
{
    int  rc;

    rc = xet_cli_storage_line(storage, XET_CLI_COPYING_MARK, line,
                              XET_CLI_COPYING_LINE);

    return (rc == XET_CLI_GONE) ? XET_CLI_OK
           : (rc == XET_CLI_UNREADABLE)
           ? xet_cli_fail_errno(XET_CLI_COPYING_MARK) : rc;
}


static int
xet_cli_copying_rows(xet_cli_copying_t *c, uint64_t threads)
{
    int         rc;
    uint64_t    after;
    xet_hash_t  hash;

    /* BLAKE3 detects the processor on first use, which is not thread-safe */

    xet_hash_chunk(&xet_suite_default, "", 0, &hash);

    after = 0;

    for ( ;; ) {
        rc = xet_cli_copying_page(c, after);

        if (rc != XET_CLI_OK || c->n == 0) {
            return rc;
        }

        after = c->rows[c->n - 1].id;

        rc = xet_cli_copying_threads(c, threads);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }
}


static int
xet_cli_copying_page(xet_cli_copying_t *c, uint64_t after)
{
    c->n = 0;
    c->next = 0;

    return xet_cli_pg_query(c->pg, "SELECT id, hash, damaged_at IS NOT NULL,"
                            " copy_id, stored_size, digest FROM xet.xorbs"
                            " WHERE id > $1::bigint ORDER BY id LIMIT 1000",
                            xet_cli_pg_with(xet_cli_as_number(after)),
                            xet_cli_copying_row, c);
}


static int
xet_cli_copying_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_copying_t      *c = ctx;
    xet_cli_copying_row_t  *r;

    if (c->n == XET_CLI_COPYING_PAGE) {
        return XET_CLI_OK;
    }

    r = &c->rows[c->n++];

    memset(r, 0, sizeof(xet_cli_copying_row_t));

    if (!xet_cli_pg_hash(row, 1, &r->copy.hash)) {
        return xet_cli_fail(XET_CLI_FAULT, "xorbs", "a row has no hash");
    }

    r->id = xet_cli_pg_u64(row, 0);
    r->marked = xet_cli_pg_bool(row, 2) != 0;

    xet_cli_copy_row(&r->copy, row, 3);

    return XET_CLI_OK;
}


static int
xet_cli_copying_threads(xet_cli_copying_t *c, uint64_t threads)
{
    int         rc;
    uint64_t    i;
    pthread_t   ids[256];

    rc = XET_CLI_OK;

    for (i = 0; i < threads && i < c->n; i++) {
        errno = pthread_create(&ids[i], NULL, xet_cli_copying_thread, c);

        if (errno) {
            rc = xet_cli_fail_errno("threads");
            break;
        }
    }

    if (rc != XET_CLI_OK) {
        pthread_mutex_lock(&c->mutex);
        c->rc = rc;
        pthread_mutex_unlock(&c->mutex);
    }

    while (i--) {
        pthread_join(ids[i], NULL);
    }

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : c->rc;
}


/* Thread function: processes rows of the page until no row is left. */

static void *
xet_cli_copying_thread(void *data)
{
    int                     rc;
    xet_cli_copier_t        copier;
    xet_cli_copying_t      *c = data;
    xet_cli_copying_row_t   row;

    rc = xet_cli_copier_begin(&copier, c->to, &c->pace);

    copier.tell = NULL;

    while (rc == XET_CLI_OK && xet_cli_copying_take(c, &row)) {
        rc = xet_cli_copying_one(c, &copier, &row);
    }

    rc = rc ? rc : xet_cli_copier_flush(&copier);

    xet_cli_copier_end(&copier);

    if (rc != XET_CLI_OK) {
        pthread_mutex_lock(&c->mutex);

        if (c->rc == XET_CLI_OK) {
            c->rc = rc;
        }

        pthread_mutex_unlock(&c->mutex);
    }

    return NULL;
}


static int
xet_cli_copying_take(xet_cli_copying_t *c, xet_cli_copying_row_t *row)
{
    int  taken;

    pthread_mutex_lock(&c->mutex);

    taken = (c->rc == XET_CLI_OK && !xet_cli_interrupted && c->next < c->n);

    if (taken) {
        *row = c->rows[c->next++];
    }

    pthread_mutex_unlock(&c->mutex);

    return taken;
}


static int
xet_cli_copying_one(xet_cli_copying_t *c, xet_cli_copier_t *copier,
    xet_cli_copying_row_t *row)
{
    int             rc, i, there;
    uint32_t        copy_id;
    xet_cli_copy_e  what;

    for (i = 0; i < XET_CLI_COPYING_TRIES; i++) {
        rc = xet_cli_copying_there(c, copier, row, &there);

        if (rc != XET_CLI_OK || there) {
            return rc;
        }

        rc = xet_cli_copying_copy(c, copier, row, &what);

        if (rc != XET_CLI_OK || what == XET_CLI_COPY_GOOD) {
            return rc;
        }

        /* all copies are missing if the disk of the source is unmounted */

        copy_id = row->copy.copy_id;
        rc = xet_cli_storage_still(c->from, c->store.identity);
        rc = rc ? rc : xet_cli_copying_again(c, row);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        if (!row->found) {
            xet_cli_copying_count(c, &c->gone, row);
            return XET_CLI_OK;
        }

        if (row->copy.copy_id == copy_id) {
            break;
        }
    }

    xet_cli_copying_lost(c, row, what);

    return XET_CLI_OK;
}


/*
 * Sets *there to 1 if the target has the copy, else to 0.  If the row is
 * marked as damaged, the copy is read in both stores; if both files are
 * intact, the damage mark is removed.
 */

static int
xet_cli_copying_there(xet_cli_copying_t *c, xet_cli_copier_t *copier,
    const xet_cli_copying_row_t *row, int *there)
{
    int             rc;
    xet_cli_copy_e  what;

    rc = xet_cli_copier_there(c->to, &row->copy, there);

    if (rc == XET_CLI_OK && *there && (c->check || row->marked)) {
        rc = xet_cli_copier_read(copier, c->to, &row->copy, &what);

        *there = (what == XET_CLI_COPY_GOOD);
    }

    if (rc != XET_CLI_OK || !*there) {
        return rc;
    }

    if (row->marked) {
        rc = xet_cli_copier_read(copier, c->from, &row->copy, &what);

        if (rc == XET_CLI_OK && what == XET_CLI_COPY_GOOD) {
            rc = xet_cli_copying_intact(c, row);
        }
    }

    xet_cli_copying_count(c, &c->there, row);

    return rc;
}


/*
 * Copies one copy to the target.  If its row is marked as damaged, the copy is
 * made durable before the damage mark is removed.
 */

static int
xet_cli_copying_copy(xet_cli_copying_t *c, xet_cli_copier_t *copier,
    const xet_cli_copying_row_t *row, xet_cli_copy_e *what)
{
    int  rc;

    rc = xet_cli_copier_copy(copier, c->from, &row->copy, what);

    if (rc != XET_CLI_OK || *what != XET_CLI_COPY_GOOD) {
        return rc;
    }

    if (row->marked) {
        rc = xet_cli_copier_flush(copier);
        rc = rc ? rc : xet_cli_copying_intact(c, row);
    }

    xet_cli_copying_count(c, &c->copied, row);

    return rc;
}


/*
 * Reads the row again, because it may be deleted or refer to another copy.
 * Sets row->found, and the other members if the row exists.
 */

static int
xet_cli_copying_again(xet_cli_copying_t *c, xet_cli_copying_row_t *row)
{
    int  rc;

    row->found = 0;

    pthread_mutex_lock(&c->pg_mutex);

    rc = xet_cli_pg_query(c->pg, "SELECT damaged_at IS NOT NULL, copy_id,"
                          " stored_size, digest FROM xet.xorbs"
                          " WHERE hash = $1",
                          xet_cli_pg_with(xet_cli_as_hash(&row->copy.hash)),
                          xet_cli_copying_again_row, row);

    pthread_mutex_unlock(&c->pg_mutex);

    return rc;
}


static int
xet_cli_copying_again_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_copying_row_t *r = ctx;

    r->found = 1;
    r->marked = xet_cli_pg_bool(row, 0) != 0;

    xet_cli_copy_row(&r->copy, row, 1);

    return XET_CLI_OK;
}


/*
 * Removes the damage mark from the row of an intact copy.  A server that uses
 * the target sets this mark when it reads a copy that has not been copied yet.
 */

static int
xet_cli_copying_intact(xet_cli_copying_t *c, const xet_cli_copying_row_t *row)
{
    int  rc;

    pthread_mutex_lock(&c->pg_mutex);

    rc = xet_cli_pg_query(c->pg, "SELECT xet.xorb_intact($1, $2::integer)",
                          xet_cli_pg_with(
                                       xet_cli_as_hash(&row->copy.hash),
                                       xet_cli_as_copy_id(row->copy.copy_id)),
                          NULL, NULL);

    pthread_mutex_unlock(&c->pg_mutex);

    return rc;
}


static void
xet_cli_copying_lost(xet_cli_copying_t *c, const xet_cli_copying_row_t *row,
    xet_cli_copy_e what)
{
    char  name[XET_XORB_NAME_MAX + 1];

    *xet_xorb_name_print((uint8_t *) name, &row->copy.hash, row->copy.copy_id)
    = '\0';

    xet_cli_copying_count(c, &c->lost, row);

    pthread_mutex_lock(&c->mutex);

    xet_cli_progress_clear();
    (void) xet_cli_fail(XET_CLI_FAULT, name, (what == XET_CLI_COPY_GONE)
                        ? "is in neither store; the next upload of the xorb "
                          "heals it"
                        : "is damaged; the next upload of the xorb heals it");

    pthread_mutex_unlock(&c->mutex);
}


static void
xet_cli_copying_count(xet_cli_copying_t *c, uint64_t *counter,
    const xet_cli_copying_row_t *row)
{
    pthread_mutex_lock(&c->mutex);

    *counter += 1;

    c->copies++;
    c->bytes += row->copy.size;

    if (counter == &c->copied) {
        c->copied_bytes += row->copy.size;
    }

    xet_cli_progress_item(row->copy.size);

    pthread_mutex_unlock(&c->mutex);
}


/* Writes the identity, so that servers accept the target. */

static int
xet_cli_copying_finish(xet_cli_copying_t *c)
{
    int  rc;

    rc = xet_cli_storage_settle(c->to);
    rc = rc ? rc : xet_cli_copying_identity(c);

    return rc ? rc : xet_cli_storage_remove(c->to, XET_CLI_COPYING_MARK);
}


/*
 * Writes the identity, unless another run has written it.  Fails if another
 * run has written the mark of another store.  XET_CLI_GONE may mean that
 * another run wrote the identity and removed the mark between the two reads of
 * xet_cli_copying_owner(): check again.
 */

static int
xet_cli_copying_identity(xet_cli_copying_t *c)
{
    int   rc, i;
    char  text[XET_CLI_IDENTITY + 1], line[XET_CLI_COPYING_LINE];

    snprintf(text, sizeof(text), "%s\n", c->store.identity);

    for (i = 0; i < XET_CLI_COPYING_TRIES; i++) {
        rc = xet_cli_copying_owner(c, line);

        if (rc == XET_CLI_GONE) {
            continue;
        }

        if (rc != XET_CLI_OK || c->named) {
            return rc;
        }

        rc = xet_cli_storage_put(c->to, "identity", text, 0);

        if (rc != XET_CLI_THERE) {
            return rc;
        }
    }

    return xet_cli_fail(XET_CLI_ERROR, c->to->name,
                        "lost its file \"" XET_CLI_COPYING_MARK "\": was the"
                        " store emptied or replaced?");
}


static int
xet_cli_copying_print(const xet_cli_copying_t *c)
{
    int  rc;

    rc = xet_cli_print(xet_cli_json(c->args),
             xet_cli_out_number("copies", c->copies, " copies, "),
             xet_cli_out_number("bytes", c->bytes, " bytes: "),
             xet_cli_out_number("copied", c->copied, " copied, "),
             xet_cli_out_number("copied_bytes", c->copied_bytes, NULL),
             xet_cli_out_number("there", c->there, " already there, "),
             xet_cli_out_number("collected", c->gone, " collected, "),
             xet_cli_out_number("lost", c->lost, " lost\n"));

    return c->lost ? xet_cli_worse(rc, XET_CLI_FAULT) : rc;
}
