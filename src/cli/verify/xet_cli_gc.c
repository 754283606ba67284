
/*
 * xet gc: deletes what nobody needs, while the server runs.
 *
 *     files    that nobody has: rows, references and terms
 *     xorbs    that no file has needed for --grace: rows
 *     copies   whose row is gone: first the file, durably, then its note
 *     orphans  files that never had a row: what a crash has left
 *
 * What is needed, and what is locked by whoever is about to need it, decides
 * PostgreSQL, in transactions of --rate rows at most (sql/functions.sql); this
 * asks for one after the other until there is no more.  Each stands for itself,
 * so an interruption, a crash or a second collector at the same time, here or
 * in a server, does no harm: what was left is found again.
 *
 * A copy's file goes after its row is gone for good, and its note after the
 * file, so there is no moment in which a row leads to nothing, and none in
 * which a file is forgotten.
 */


#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xet_cli_verify.h"


#define XET_CLI_GC_GRACE   (56 * 86400)    /* seconds */
#define XET_CLI_GC_BATCH   1000            /* rows */
#define XET_CLI_GC_FOLDER  256


/* A copy that is to be removed. */

typedef struct {
    xet_hash_t              hash;
    uint32_t                tag;
} xet_cli_gc_copy_t;


typedef struct {
    const xet_cli_args_t   *args;
    xet_cli_pg_t           *pg;
    xet_cli_store_t         store;
    uint64_t                grace;         /* seconds */
    uint64_t                rate;          /* rows a second, 0: any */
    uint64_t                batch;         /* rows */
    struct timespec         next;          /* when the next batch may begin */

    uint64_t                step[6];       /* columns of the last one */

    uint64_t                files;
    uint64_t                file_bytes;
    uint64_t                references;
    uint64_t                xorbs;
    uint64_t                xorb_bytes;
    uint64_t                needed;
    uint64_t                told;
    uint64_t                busy;
    uint64_t                copies;
    uint64_t                copy_bytes;

    xet_cli_gc_copy_t      *batch_copies;
    size_t                  n;             /* of them */
    unsigned                folders[XET_CLI_GC_FOLDER];
    uint64_t                waiting;       /* copies that a backup needs */
} xet_cli_gc_t;


static int xet_cli_gc_options(xet_cli_gc_t *g);
static int xet_cli_gc_store(xet_cli_gc_t *g);
static int xet_cli_gc_preview(xet_cli_gc_t *g);
static int xet_cli_gc_preview_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_gc_collect(xet_cli_gc_t *g);
static int xet_cli_gc_files(xet_cli_gc_t *g);
static int xet_cli_gc_xorbs(xet_cli_gc_t *g);
static int xet_cli_gc_settle(xet_cli_gc_t *g);
static int xet_cli_gc_step(xet_cli_gc_t *g, const char *sql);
static int xet_cli_gc_step_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_gc_copies(xet_cli_gc_t *g);
static int xet_cli_gc_copy_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_gc_remove(xet_cli_gc_t *g);
static int xet_cli_gc_removed(xet_cli_gc_t *g);
static int xet_cli_gc_removed_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_gc_orphans(xet_cli_gc_t *g);
static int xet_cli_gc_pause(xet_cli_gc_t *g, uint64_t rows);
static int xet_cli_gc_print(const xet_cli_gc_t *g);


int
xet_cli_gc(const xet_cli_args_t *args)
{
    int            rc;
    xet_cli_gc_t   g;

    memset(&g, 0, sizeof(g));

    g.args = args;
    g.store.args = args;
    g.store.json = args->value[XET_CLI_OPT_JSON] != NULL;
    g.store.remove = 1;
    g.store.silent = 1;

    rc = xet_cli_gc_options(&g);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_gc_store(&g);
    }

    if (rc == XET_CLI_OK) {
        g.pg = xet_cli_pg_open(args, &rc);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_store_session(&g.store, g.pg);
    }

    if (rc == XET_CLI_OK) {
        rc = args->value[XET_CLI_OPT_DRY_RUN] ? xet_cli_gc_preview(&g)
                                              : xet_cli_gc_collect(&g);
    }

    xet_cli_pg_close(g.pg);
    xet_cli_place_close(g.store.place);

    free(g.batch_copies);
    free(g.store.names);

    return rc;
}


static int
xet_cli_gc_options(xet_cli_gc_t *g)
{
    int          rc;
    uint64_t     age;
    const char  *grace;

    grace = g->args->value[XET_CLI_OPT_GRACE];

    if (grace == NULL
        || (strcmp(grace, "0") != 0 && strcmp(grace, "0s") != 0))
    {
        rc = xet_cli_args_time(g->args, XET_CLI_OPT_GRACE, XET_CLI_GC_GRACE,
                               &g->grace);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    rc = xet_cli_args_time(g->args, XET_CLI_OPT_OLDER, XET_CLI_STORE_AGE,
                           &age);

    /* the row of a younger one may still come, see xet.copy_age() */

    if (rc == XET_CLI_OK && age < XET_CLI_STORE_AGE) {
        rc = xet_cli_fail(XET_CLI_USAGE, "gc", "--older is a day at least");
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_args_number(g->args, XET_CLI_OPT_RATE, 1, 1000000, 0,
                                 &g->rate);
    }

    g->batch = (g->rate && g->rate < XET_CLI_GC_BATCH) ? g->rate
                                                       : XET_CLI_GC_BATCH;

    g->batch_copies = malloc(g->batch * sizeof(xet_cli_gc_copy_t));

    if (g->batch_copies == NULL) {
        return xet_cli_no_memory();
    }

    g->store.before = time(NULL) - (time_t) age;

    return rc;
}


static int
xet_cli_gc_store(xet_cli_gc_t *g)
{
    int  rc;

    g->store.place = xet_cli_store_open(g->args, 0, &rc);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_place_identity(g->store.place, g->store.identity);
    }

    if (rc == XET_CLI_OK && g->store.identity[0] == '\0') {
        rc = xet_cli_place_bare(g->store.place);
    }

    return rc;
}


static int
xet_cli_gc_preview(xet_cli_gc_t *g)
{
    char                grace[32];
    xet_cli_pg_param_t  param;

    snprintf(grace, sizeof(grace), "%" PRIu64, g->grace);

    param.value = grace;
    param.len = 0;

    return xet_cli_pg_query(g->pg, "SELECT * FROM"
                            " xet.gc_preview($1::text::bigint)", &param, 1,
                            xet_cli_gc_preview_row, g);
}


static int
xet_cli_gc_preview_row(void *ctx, const xet_cli_pg_row_t *row)
{
    int             i;
    xet_json_t     *j;
    xet_cli_gc_t   *g;
    xet_cli_json_t  out;

    static const struct {
        const char  *name;
        const char  *bytes;
        const char  *text;
    } lines[] = {
        { "files", "file_bytes", "files that nobody has" },
        { "xorbs", "xorb_bytes", "xorbs that no file needs" },
        { "young", "young_bytes",
          "xorbs without a file, but not for long enough" },
        { "told", "told_bytes",
          "xorbs without a file that clients may remember" },
        { "copies", "copy_bytes", "copies whose files are to be removed" },
        { NULL, NULL, NULL }
    };

    g = ctx;

    if (!g->store.json) {
        for (i = 0; lines[i].name; i++) {
            printf("%" PRIu64 " %s, %" PRIu64 " bytes\n",
                   xet_cli_pg_u64(row, 2 * i), lines[i].text,
                   xet_cli_pg_u64(row, 2 * i + 1));
        }

        return xet_cli_flush();
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_bool(j, "dry_run", 1);

    for (i = 0; lines[i].name; i++) {
        xet_cli_json_put_u64(j, lines[i].name, xet_cli_pg_u64(row, 2 * i));
        xet_cli_json_put_u64(j, lines[i].bytes,
                             xet_cli_pg_u64(row, 2 * i + 1));
    }

    return xet_cli_json_end(&out);
}


/* What was done is told in any case, also when it has not come to its end. */

static int
xet_cli_gc_collect(xet_cli_gc_t *g)
{
    int  rc;

    /* a restore may have found there what is given out to be removed */

    rc = xet_cli_store_enter(g->pg, 0);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_gc_files(g);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_gc_xorbs(g);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_gc_settle(g);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_gc_copies(g);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_gc_orphans(g);
    }

    return xet_cli_worse(rc, xet_cli_gc_print(g));
}


/*
 * A batch in which nothing could be done ends it: all that is left is locked
 * by others.
 */

static int
xet_cli_gc_files(xet_cli_gc_t *g)
{
    int        rc;
    uint64_t  *step;

    step = g->step;

    do {
        rc = xet_cli_gc_step(g, "SELECT seen, files, bytes, refs, kept, busy"
                                " FROM xet.gc_files($1::text::integer)");

        if (rc != XET_CLI_OK) {
            return rc;
        }

        g->files += step[1];
        g->file_bytes += step[2];
        g->references += step[3];

        rc = xet_cli_gc_pause(g, step[0]);

    } while (rc == XET_CLI_OK && step[0] > step[5]);

    g->busy += step[5];

    return rc;
}


static int
xet_cli_gc_xorbs(xet_cli_gc_t *g)
{
    int        rc;
    uint64_t  *step;

    step = g->step;

    do {
        rc = xet_cli_gc_step(g, "SELECT seen, xorbs, bytes, needed, told, busy"
                                " FROM xet.gc_xorbs($2::text::bigint,"
                                " $1::text::integer)");

        if (rc != XET_CLI_OK) {
            return rc;
        }

        g->xorbs += step[1];
        g->xorb_bytes += step[2];
        g->needed += step[3];
        g->told += step[4];

        rc = xet_cli_gc_pause(g, step[0]);

    } while (rc == XET_CLI_OK && step[0] > step[5]);

    g->busy += step[5];

    return rc;
}


/* Who pays for what is left, see xet.usage_settle(). */

static int
xet_cli_gc_settle(xet_cli_gc_t *g)
{
    int        rc;
    uint64_t   n;

    do {
        n = 0;

        rc = xet_cli_pg_number(g->pg, "SELECT xet.usage_settle(1000)", NULL, 0,
                               &n);

        if (rc == XET_CLI_OK) {
            rc = xet_cli_gc_pause(g, n);
        }

    } while (rc == XET_CLI_OK && n);

    return rc;
}


static int
xet_cli_gc_step(xet_cli_gc_t *g, const char *sql)
{
    char                batch[32], grace[32];
    xet_cli_pg_param_t  params[2];

    snprintf(batch, sizeof(batch), "%" PRIu64, g->batch);
    snprintf(grace, sizeof(grace), "%" PRIu64, g->grace);

    memset(params, 0, sizeof(params));

    params[0].value = batch;
    params[1].value = grace;

    memset(g->step, 0, sizeof(g->step));

    return xet_cli_pg_query(g->pg, sql, params, strstr(sql, "$2") ? 2 : 1,
                            xet_cli_gc_step_row, g);
}


static int
xet_cli_gc_step_row(void *ctx, const xet_cli_pg_row_t *row)
{
    int            i;
    xet_cli_gc_t  *g;

    g = ctx;

    for (i = 0; i < 6; i++) {
        g->step[i] = xet_cli_pg_u64(row, i);
    }

    return XET_CLI_OK;
}


static int
xet_cli_gc_copies(xet_cli_gc_t *g)
{
    int                 rc;
    char                batch[32];
    xet_cli_pg_param_t  param;

    snprintf(batch, sizeof(batch), "%" PRIu64, g->batch);

    param.value = batch;
    param.len = 0;

    do {
        g->n = 0;

        rc = xet_cli_pg_query(g->pg, "SELECT hash, tag FROM"
                              " xet.gc_copies($1::text::integer)", &param, 1,
                              xet_cli_gc_copy_row, g);

        if (rc == XET_CLI_OK) {
            rc = xet_cli_gc_remove(g);
        }

        if (rc == XET_CLI_OK && g->n) {
            rc = xet_cli_gc_pause(g, g->n);
        }

    } while (rc == XET_CLI_OK && g->n);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    return xet_cli_pg_number(g->pg, "SELECT count(*) FROM xet.gc_copies", NULL,
                             0, &g->waiting);
}


static int
xet_cli_gc_copy_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_gc_t       *g;
    xet_cli_gc_copy_t  *copy;

    g = ctx;

    if (g->n == g->batch) {
        return XET_CLI_OK;
    }

    copy = &g->batch_copies[g->n++];

    if (!xet_cli_pg_hash(row, 0, &copy->hash)) {
        return xet_cli_fail(XET_CLI_FAULT, "copies", "a row without a hash");
    }

    copy->tag = (uint32_t) xet_cli_pg_u64(row, 1);

    return XET_CLI_OK;
}


/*
 * The identity is looked at before each batch: without its disk the folder has
 * no files, and the notes of those that are on the disk would be dropped.
 */

static int
xet_cli_gc_remove(xet_cli_gc_t *g)
{
    int                 rc;
    char                names[XET_CLI_PLACE_MANY][XET_CLI_PLACE_NAME];
    size_t              i, n;
    unsigned            folder;
    xet_cli_gc_copy_t  *copy;

    if (g->n == 0) {
        return XET_CLI_OK;
    }

    rc = xet_cli_place_still(g->store.place, g->store.identity);

    memset(g->folders, 0, sizeof(g->folders));

    n = 0;

    for (i = 0; i < g->n && rc == XET_CLI_OK; i++) {
        copy = &g->batch_copies[i];
        g->folders[copy->hash.bytes[7]] = 1;

        (void) xet_cli_place_copy(names[n++], &copy->hash, copy->tag);

        if (n == XET_CLI_PLACE_MANY || i + 1 == g->n) {
            rc = xet_cli_place_remove_all(g->store.place, names, n);
            n = 0;
        }
    }

    /* a name that came back after a crash would have no note any more */

    for (folder = 0; folder < XET_CLI_GC_FOLDER && rc == XET_CLI_OK; folder++)
    {
        if (g->folders[folder]) {
            snprintf(names[0], sizeof(names[0]), "xorbs/default/%02x", folder);
            rc = xet_cli_place_sync(g->store.place, names[0]);
        }
    }

    return (rc == XET_CLI_OK) ? xet_cli_gc_removed(g) : rc;
}


static int
xet_cli_gc_removed(xet_cli_gc_t *g)
{
    int                 rc;
    char               *hashes, *tags, *h, *t;
    size_t              i;
    xet_cli_pg_param_t  params[2];

    static const char   hex[] = "0123456789abcdef";

    hashes = malloc(g->n * (2 * XET_HASH_LEN + 7) + 3);
    tags = malloc(g->n * 12 + 3);

    if (hashes == NULL || tags == NULL) {
        free(hashes);
        free(tags);
        return xet_cli_no_memory();
    }

    /* arrays as PostgreSQL writes them */

    h = hashes;
    t = tags;

    for (i = 0; i < g->n; i++) {
        size_t          k;
        const uint8_t  *b;

        b = g->batch_copies[i].hash.bytes;

        h += sprintf(h, "%s\"\\\\x", i ? "," : "{");

        for (k = 0; k < XET_HASH_LEN; k++) {
            *h++ = hex[b[k] >> 4];
            *h++ = hex[b[k] & 15];
        }

        *h++ = '"';

        t += sprintf(t, "%s%" PRId32, i ? "," : "{",
                     (int32_t) g->batch_copies[i].tag);
    }

    strcpy(h, "}");
    strcpy(t, "}");

    memset(params, 0, sizeof(params));

    params[0].value = hashes;
    params[1].value = tags;

    rc = xet_cli_pg_query(g->pg, "SELECT copies, bytes FROM"
                          " xet.gc_removed($1::text::bytea[],"
                          " $2::text::integer[])", params, 2,
                          xet_cli_gc_removed_row, g);

    free(hashes);
    free(tags);

    return rc;
}


static int
xet_cli_gc_removed_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_gc_t  *g;

    g = ctx;

    g->copies += xet_cli_pg_u64(row, 0);
    g->copy_bytes += xet_cli_pg_u64(row, 1);

    return XET_CLI_OK;
}


static int
xet_cli_gc_orphans(xet_cli_gc_t *g)
{
    int  rc;

    rc = xet_cli_store_names(&g->store, g->pg);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_store_orphans(&g->store, g->pg);
    }

    return rc;
}


/* Sleeps as long as rows that were looked at take by --rate. */

static int
xet_cli_gc_pause(xet_cli_gc_t *g, uint64_t rows)
{
    uint64_t         ns;
    struct timespec  now;

    if (g->rate == 0 || rows == 0) {
        return xet_cli_interrupted ? XET_CLI_INTERRUPTED : XET_CLI_OK;
    }

    clock_gettime(CLOCK_MONOTONIC, &now);

    if (g->next.tv_sec < now.tv_sec
        || (g->next.tv_sec == now.tv_sec && g->next.tv_nsec < now.tv_nsec))
    {
        g->next = now;
    }

    ns = (uint64_t) g->next.tv_nsec + rows * UINT64_C(1000000000) / g->rate;

    g->next.tv_sec += (time_t) (ns / 1000000000);
    g->next.tv_nsec = (long) (ns % 1000000000);

    while (!xet_cli_interrupted
           && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &g->next, NULL)
              == EINTR)
    {
        /* void */
    }

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : XET_CLI_OK;
}


static int
xet_cli_gc_print(const xet_cli_gc_t *g)
{
    xet_json_t      *j;
    xet_cli_json_t   out;

    if (!g->store.json) {
        printf("deleted: %" PRIu64 " files, %" PRIu64 " bytes; %" PRIu64
               " xorbs, %" PRIu64 " bytes\n"
               "removed: %" PRIu64 " copies, %" PRIu64 " bytes; %" PRIu64
               " orphans\n", g->files, g->file_bytes, g->xorbs,
               g->xorb_bytes, g->copies, g->copy_bytes, g->store.removed);
        printf("kept: %" PRIu64 " xorbs that files need, %" PRIu64
               " that clients may remember, %" PRIu64 " in use, %" PRIu64
               " copies for a backup, %" PRIu64 " orphans\n", g->needed,
               g->told, g->busy, g->waiting, g->store.left);

        return xet_cli_flush();
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_bool(j, "dry_run", 0);
    xet_cli_json_put_u64(j, "files", g->files);
    xet_cli_json_put_u64(j, "file_bytes", g->file_bytes);
    xet_cli_json_put_u64(j, "references", g->references);
    xet_cli_json_put_u64(j, "xorbs", g->xorbs);
    xet_cli_json_put_u64(j, "xorb_bytes", g->xorb_bytes);
    xet_cli_json_put_u64(j, "copies", g->copies);
    xet_cli_json_put_u64(j, "copy_bytes", g->copy_bytes);
    xet_cli_json_put_u64(j, "orphans", g->store.removed);
    xet_cli_json_put_u64(j, "needed", g->needed);
    xet_cli_json_put_u64(j, "told", g->told);
    xet_cli_json_put_u64(j, "busy", g->busy);
    xet_cli_json_put_u64(j, "waiting", g->waiting);
    xet_cli_json_put_u64(j, "orphans_left", g->store.left);

    return xet_cli_json_end(&out);
}
