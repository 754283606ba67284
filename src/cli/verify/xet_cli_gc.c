
/*
 * xet gc: requests a run of the collector (src/http/bg_jobs) and waits for the
 * run to end.  xet and the server communicate through the database:
 *
 *     request  xet.gc_now(); called again after the end of a run in progress,
 *              which may already have passed the data to be collected
 *     wait     read the row of the collector in xet.jobs_show(), until the
 *              requested run ends, or a server reports why the run waits
 *     print    what was collected since the request
 *
 * A server with xet_gc checks for a request every few seconds.  So if the run
 * does not start in time, no server has xet_gc.  An interruption ends only
 * xet; the server continues the run.
 */


#include <stdio.h>
#include <string.h>
#include <time.h>

#include "xet_cli_verify.h"


#define XET_CLI_GC_GRACE    (56 * 86400)   /* seconds, the default of xet_gc */

#define XET_CLI_GC_POLL     200            /* ms */

/* Time limits for a server to start the run, and to retry a waiting run. */

#define XET_CLI_GC_NOBODY   20000          /* ms */
#define XET_CLI_GC_WAITS    90000


/*
 * Figures.  Before XET_CLI_GC_DONE: totals of all runs.  From XET_CLI_GC_NEEDED
 * to XET_CLI_GC_BUSY: amounts that the last run has kept.  From
 * XET_CLI_GC_WAITING on: amounts that are left now.
 */

typedef enum {
    XET_CLI_GC_FILES = 0,
    XET_CLI_GC_FILE_BYTES,
    XET_CLI_GC_REFERENCES,
    XET_CLI_GC_XORBS,
    XET_CLI_GC_XORB_BYTES,
    XET_CLI_GC_COPIES,
    XET_CLI_GC_COPY_BYTES,
    XET_CLI_GC_ORPHANS,
    XET_CLI_GC_DONE,
    XET_CLI_GC_NEEDED = XET_CLI_GC_DONE,
    XET_CLI_GC_ADVERTISED,
    XET_CLI_GC_BUSY,
    XET_CLI_GC_WAITING,
    XET_CLI_GC_LEFT,
    XET_CLI_GC_N
} xet_cli_gc_figure_e;


typedef struct {
    const xet_cli_args_t   *args;
    xet_cli_pg_t           *pg;

    int                     running;       /* a run is in progress */
    int                     held;          /* a server is working on it */
    int                     begun;         /* started since the request */
    char                    note[256];     /* why the run waits, or what it
                                              left undone */

    uint64_t                n[XET_CLI_GC_N];
    uint64_t                before[XET_CLI_GC_DONE];
} xet_cli_gc_t;


static int xet_cli_gc_preview(xet_cli_gc_t *g);
static int xet_cli_gc_preview_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_gc_run(xet_cli_gc_t *g);
static int xet_cli_gc_follow(xet_cli_gc_t *g);
static int xet_cli_gc_look(xet_cli_gc_t *g);
static int xet_cli_gc_look_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_gc_nobody(const xet_cli_gc_t *g);
static int xet_cli_gc_left(xet_cli_gc_t *g);
static int xet_cli_gc_left_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_gc_print(xet_cli_gc_t *g);


int
xet_cli_gc(const xet_cli_args_t *args)
{
    int            rc;
    xet_cli_gc_t   g;

    memset(&g, 0, sizeof(g));

    g.args = args;

    if (args->value[XET_CLI_OPT_GRACE] && !args->value[XET_CLI_OPT_DRY_RUN]) {
        return xet_cli_fail(XET_CLI_USAGE, "gc",
                            "--grace needs --dry-run: a real run uses the "
                            "grace of the server's xet_gc");
    }

    g.pg = xet_cli_pg_open(args, &rc);

    if (g.pg == NULL) {
        return rc;
    }

    rc = args->value[XET_CLI_OPT_DRY_RUN] ? xet_cli_gc_preview(&g)
                                          : xet_cli_gc_run(&g);
    xet_cli_pg_close(g.pg);

    return rc;
}


static int
xet_cli_gc_preview(xet_cli_gc_t *g)
{
    int          rc;
    uint64_t     seconds;
    const char  *grace;

    seconds = 0;
    grace = g->args->value[XET_CLI_OPT_GRACE];

    if (grace == NULL
        || (strcmp(grace, "0") != 0 && strcmp(grace, "0s") != 0))
    {
        rc = xet_cli_args_time(g->args, XET_CLI_OPT_GRACE, XET_CLI_GC_GRACE,
                               &seconds);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    return xet_cli_pg_query(g->pg, "SELECT * FROM"
                            " xet.gc_preview($1::text::bigint)",
                            xet_cli_pg_with(xet_cli_as_number(seconds)),
                            xet_cli_gc_preview_row, g);
}


static int
xet_cli_gc_preview_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_gc_t  *g = ctx;

    return xet_cli_print(xet_cli_json(g->args),
               xet_cli_out_bool("dry_run", 1),
               xet_cli_out_number("files", xet_cli_pg_u64(row, 0),
                                  " deleted files, "),
               xet_cli_out_number("file_bytes", xet_cli_pg_u64(row, 1),
                                  " bytes\n"),
               xet_cli_out_number("xorbs", xet_cli_pg_u64(row, 2),
                                  " unreferenced xorbs, "),
               xet_cli_out_number("xorb_bytes", xet_cli_pg_u64(row, 3),
                                  " bytes\n"),
               xet_cli_out_number("young", xet_cli_pg_u64(row, 4),
                                  " unreferenced xorbs within the grace, "),
               xet_cli_out_number("young_bytes", xet_cli_pg_u64(row, 5),
                                  " bytes\n"),
               xet_cli_out_number("advertised", xet_cli_pg_u64(row, 6),
                                  " unreferenced xorbs known to clients, "),
               xet_cli_out_number("advertised_bytes", xet_cli_pg_u64(row, 7),
                                  " bytes\n"),
               xet_cli_out_number("copies", xet_cli_pg_u64(row, 8),
                                  " copies to be removed, "),
               xet_cli_out_number("copy_bytes", xet_cli_pg_u64(row, 9),
                                  " bytes\n"));
}


static int
xet_cli_gc_run(xet_cli_gc_t *g)
{
    int  rc;

    /* lock out restores, which may need copies that gc will remove */

    rc = xet_cli_store_enter(g->pg, 0);
    rc = rc ? rc : xet_cli_gc_follow(g);
    rc = rc ? rc : xet_cli_gc_left(g);

    if (rc == XET_CLI_INTERRUPTED) {
        fprintf(stderr, "xet: gc: interrupted; the server continues\n");
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (g->note[0]) {
        fprintf(stderr, "xet: gc: %s\n", g->note);
    }

    return xet_cli_gc_print(g);
}


/*
 * Requests a run and waits for its end.  If an earlier run waits to be retried,
 * a server gets XET_CLI_GC_WAITS ms to retry that run; after its end a new run
 * is requested.
 */

static int
xet_cli_gc_follow(xet_cli_gc_t *g)
{
    int              rc;
    uint64_t         asked, seen, limit;
    struct timespec  pause;

    pause.tv_sec = 0;
    pause.tv_nsec = XET_CLI_GC_POLL * 1000000L;

    asked = 0;
    seen = xet_cli_now();

    rc = xet_cli_gc_look(g);

    memcpy(g->before, g->n, sizeof(g->before));

    limit = (g->running && g->note[0]) ? XET_CLI_GC_WAITS : XET_CLI_GC_NOBODY;

    while (rc == XET_CLI_OK) {

        if (!asked) {
            rc = xet_cli_pg_number(g->pg, "SELECT xet.gc_now()", NULL,
                                   &asked);
        }

        rc = rc ? rc : xet_cli_gc_look(g);

        if (rc != XET_CLI_OK || (asked && g->begun && !g->running)) {
            break;
        }

        if (g->held) {
            seen = xet_cli_now();
            limit = XET_CLI_GC_NOBODY;

        } else if (g->running && g->note[0]) {
            return xet_cli_failf(XET_CLI_ERROR, "gc",
                                 "the server is waiting: %s; it will try "
                                 "again",
                                 g->note);

        } else if (xet_cli_now() - seen > limit) {
            return xet_cli_gc_nobody(g);
        }

        (void) nanosleep(&pause, NULL);

        if (xet_cli_interrupted) {
            return XET_CLI_INTERRUPTED;
        }
    }

    return rc;
}


static int
xet_cli_gc_look(xet_cli_gc_t *g)
{
    return xet_cli_pg_query(g->pg,
                            "SELECT c.running, c.held,"
                            " c.started_at IS NOT NULL, coalesce(c.note, ''),"
                            " t.*, f.* FROM xet.jobs_show() c,"
                            " jsonb_to_record(c.totals) AS t(files bigint,"
                            " file_bytes bigint, \"references\" bigint,"
                            " xorbs bigint, xorb_bytes bigint, copies bigint,"
                            " copy_bytes bigint, orphans bigint),"
                            " jsonb_to_record(c.figures) AS f(needed bigint,"
                            " advertised bigint, busy bigint)"
                            " WHERE c.name = 'gc'",
                            NULL, xet_cli_gc_look_row, g);
}


static int
xet_cli_gc_look_row(void *ctx, const xet_cli_pg_row_t *row)
{
    int            i;
    xet_cli_gc_t  *g = ctx;

    g->running = xet_cli_pg_bool(row, 0);
    g->held = xet_cli_pg_bool(row, 1);
    g->begun = xet_cli_pg_bool(row, 2);

    snprintf(g->note, sizeof(g->note), "%s", xet_cli_pg_text(row, 3));

    for (i = 0; i <= XET_CLI_GC_BUSY; i++) {
        g->n[i] = xet_cli_pg_u64(row, 4 + i);
    }

    return XET_CLI_OK;
}


static int
xet_cli_gc_nobody(const xet_cli_gc_t *g)
{
    return xet_cli_fail(XET_CLI_ERROR, "gc", g->running
                        ? "the server that was collecting has stopped; start "
                          "one with \"xet_gc on\" and this database"
                        : "no server collects; set \"xet_gc on\" in a running "
                          "server that uses this database");
}


/*
 * Counts the copies that wait for the end of a backup, and the remaining
 * orphans.
 */

static int
xet_cli_gc_left(xet_cli_gc_t *g)
{
    return xet_cli_pg_query(g->pg, "SELECT (SELECT count(*) FROM"
                            " xet.gc_copies), coalesce((SELECT"
                            " (c.figures->>'orphans')::bigint FROM"
                            " xet.jobs_show() c WHERE c.name = 'orphans'),"
                            " 0)", NULL, xet_cli_gc_left_row, g);
}


static int
xet_cli_gc_left_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_gc_t  *g = ctx;

    g->n[XET_CLI_GC_WAITING] = xet_cli_pg_u64(row, 0);
    g->n[XET_CLI_GC_LEFT] = xet_cli_pg_u64(row, 1);

    return XET_CLI_OK;
}


static int
xet_cli_gc_print(xet_cli_gc_t *g)
{
    int        i;
    uint64_t  *n = g->n;

    for (i = 0; i < XET_CLI_GC_DONE; i++) {
        n[i] -= g->before[i];
    }

    return xet_cli_print(xet_cli_json(g->args),
               xet_cli_out_bool("dry_run", 0),
               xet_cli_out_text(NULL, "deleted", ": "),
               xet_cli_out_number("files", n[XET_CLI_GC_FILES], " files, "),
               xet_cli_out_number("file_bytes", n[XET_CLI_GC_FILE_BYTES],
                                  " bytes; "),
               xet_cli_out_number("references", n[XET_CLI_GC_REFERENCES],
                                  NULL),
               xet_cli_out_number("xorbs", n[XET_CLI_GC_XORBS], " xorbs, "),
               xet_cli_out_number("xorb_bytes", n[XET_CLI_GC_XORB_BYTES],
                                  " bytes\nremoved: "),
               xet_cli_out_number("copies", n[XET_CLI_GC_COPIES],
                                  " copies, "),
               xet_cli_out_number("copy_bytes", n[XET_CLI_GC_COPY_BYTES],
                                  " bytes; "),
               xet_cli_out_number("orphans", n[XET_CLI_GC_ORPHANS],
                                  " orphans\nkept: "),
               xet_cli_out_number("needed", n[XET_CLI_GC_NEEDED],
                                  " xorbs that files need, "),
               xet_cli_out_number("advertised", n[XET_CLI_GC_ADVERTISED],
                                  " known to clients, "),
               xet_cli_out_number("busy", n[XET_CLI_GC_BUSY], " in use, "),
               xet_cli_out_number("waiting", n[XET_CLI_GC_WAITING],
                                  " copies for a backup, "),
               xet_cli_out_number("orphans_left", n[XET_CLI_GC_LEFT],
                                  " orphans\n"));
}
