
/*
 * xet usage: prints usage and limits of repositories and subjects, and totals
 * of the store; sets limits.  Uses the functions of sql/quota.sql.
 *
 *     xet usage                                   everything
 *     xet usage --repo NAME                       one repository
 *     xet usage --subject NAME [--issuer NAME]    one subject
 *     xet usage --repo NAME --set stored=1T,logical=2T,metadata=1G
 *     xet usage --repo '*' --set none             default limits
 *     xet usage --recount                         correct the counters
 *
 * Default limits apply to repositories, or subjects, without limits of their
 * own.
 */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_admin.h"


#define XET_CLI_USAGE_SETTLE  "SELECT xet.usage_settle(1000)"


typedef struct {
    xet_cli_pg_t  *pg;
    const char    *repo;
    char          *store;              /* name in the store, or NULL */
    const char    *subject;
    const char    *issuer;
    int            json;
} xet_cli_usage_t;


/* Columns of xet.usage_list(). */

enum {
    xet_cli_usage_kind = 0,
    xet_cli_usage_name,
    xet_cli_usage_files,
    xet_cli_usage_logical,
    xet_cli_usage_stored,
    xet_cli_usage_metadata,
    xet_cli_usage_logical_max,
    xet_cli_usage_stored_max,
    xet_cli_usage_metadata_max,
    xet_cli_usage_title                /* name on the Hub, or "" */
};


static int xet_cli_usage_find(xet_cli_usage_t *u);
static int xet_cli_usage_run(xet_cli_usage_t *u, const xet_cli_args_t *args);
static int xet_cli_usage_set(xet_cli_usage_t *u, const char *text);
static int xet_cli_usage_limit(const char *text, size_t len, char *limit,
    size_t size);
static int xet_cli_usage_recount(xet_cli_usage_t *u);
static int xet_cli_usage_mended(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_usage_show(xet_cli_usage_t *u);
static int xet_cli_usage_row(void *ctx, const xet_cli_pg_row_t *row);
static void xet_cli_usage_json(const xet_cli_pg_row_t *row, xet_json_t *j,
    const char *name, int used, int limit);
static void xet_cli_usage_number(const xet_cli_pg_row_t *row, int column);
static void xet_cli_usage_name_print(const char *name, const char *title);
static int xet_cli_usage_store(void *ctx, const xet_cli_pg_row_t *row);


int
xet_cli_usage(const xet_cli_args_t *args)
{
    int              rc;
    xet_cli_usage_t  u;

    memset(&u, 0, sizeof(u));

    u.repo = args->value[XET_CLI_OPT_REPO];
    u.subject = args->value[XET_CLI_OPT_SUBJECT];
    u.issuer = args->value[XET_CLI_OPT_ISSUER];
    u.json = xet_cli_json(args);

    if ((u.repo && u.subject) || (u.issuer && !u.subject)) {
        return xet_cli_fail(XET_CLI_USAGE, "usage",
                            "use either --repo or --subject; --issuer needs "
                            "--subject");
    }

    if (args->value[XET_CLI_OPT_SET] && !u.repo && !u.subject) {
        return xet_cli_fail(XET_CLI_USAGE, "--set",
                            "needs --repo or --subject; '*' stands for all "
                            "without limits of their own");
    }

    u.pg = xet_cli_pg_open(args, &rc);

    if (u.pg == NULL) {
        return rc;
    }

    rc = xet_cli_usage_find(&u);
    rc = rc ? rc : xet_cli_usage_run(&u, args);

    free(u.store);
    xet_cli_pg_close(u.pg);

    return rc;
}


/*
 * Replaces the name of an existing repository by its name in the store.  An
 * unknown name is not changed, so that limits can be set before a repository
 * exists; but a Hub repository must exist.
 */

static int
xet_cli_usage_find(xet_cli_usage_t *u)
{
    int  rc;

    if (u->repo == NULL || strcmp(u->repo, "*") == 0) {
        return XET_CLI_OK;
    }

    u->store = xet_cli_named(u->pg, u->repo, &rc);

    if (rc == XET_CLI_OK && u->store == NULL && xet_cli_named_hub(u->repo)) {
        return xet_cli_fail(XET_CLI_FAULT, u->repo, "no such repository");
    }

    u->repo = u->store ? u->store : u->repo;

    return rc;
}


static int
xet_cli_usage_run(xet_cli_usage_t *u, const xet_cli_args_t *args)
{
    if (args->value[XET_CLI_OPT_SET]) {
        return xet_cli_usage_set(u, args->value[XET_CLI_OPT_SET]);
    }

    if (args->value[XET_CLI_OPT_RECOUNT]) {
        return xet_cli_usage_recount(u);
    }

    return xet_cli_usage_show(u);
}


/* Sets limits; removes the limits that the text does not mention. */

static int
xet_cli_usage_set(xet_cli_usage_t *u, const char *text)
{
    int                 i;
    char                limits[3][24];
    size_t              len, n;
    uint64_t            done;
    const char         *p, *name;

    static const char *const  names[] = { "stored=", "logical=", "metadata=" };

    limits[0][0] = limits[1][0] = limits[2][0] = '\0';

    for (p = text; strcmp(text, "none") != 0; p += len + 1) {
        len = strcspn(p, ",");

        for (i = 0; i < 3; i++) {
            n = strlen(names[i]);

            if (len > n && strncmp(p, names[i], n) == 0
                && xet_cli_usage_limit(p + n, len - n, limits[i],
                                       sizeof(limits[i])))
            {
                break;
            }
        }

        if (i == 3) {
            return xet_cli_fail(XET_CLI_USAGE, "--set",
                                "expected stored=SIZE, logical=SIZE or "
                                "metadata=SIZE, several with commas, or none");
        }

        if (p[len] == '\0') {
            break;
        }
    }

    name = u->repo ? u->repo : u->subject;
    name = (strcmp(name, "*") == 0) ? NULL : name;

    return xet_cli_pg_number(u->pg, "SELECT xet.quota_set($1, $2, $3,"
                             " nullif($4, '')::bigint,"
                             " nullif($5, '')::bigint,"
                             " nullif($6, '')::bigint)",
                             xet_cli_pg_with(
                                 xet_cli_as_text(u->repo ? "repo" : "subject"),
                                 xet_cli_as_text(name),
                                 xet_cli_as_text(u->issuer),
                                 xet_cli_as_text(limits[0]),
                                 xet_cli_as_text(limits[1]),
                                 xet_cli_as_text(limits[2])),
                             &done);
}


/*
 * Converts a size such as "500G" to a decimal number of bytes.  Returns 1, or
 * 0 if the size is invalid.
 */

static int
xet_cli_usage_limit(const char *text, size_t len, char *limit, size_t size)
{
    char        *end;
    uint64_t     n;
    unsigned     shift;
    const char  *unit;

    static const char  units[] = "KMGTP";

    if (*text < '0' || *text > '9' || len > 19) {
        return 0;
    }

    n = strtoull(text, &end, 10);
    shift = 0;

    if (end < text + len) {
        unit = strchr(units, *end & ~0x20);

        if (unit == NULL || *unit == '\0') {
            return 0;
        }

        shift = 10 * (unsigned) (unit - units + 1);
        end++;
    }

    if (end != text + len || n > ((uint64_t) INT64_MAX >> shift)) {
        return 0;
    }

    snprintf(limit, size, "%" PRIu64, n << shift);

    return 1;
}


static int
xet_cli_usage_recount(xet_cli_usage_t *u)
{
    int       rc;
    uint64_t  seen;

    do {
        seen = 0;
        rc = xet_cli_pg_number(u->pg, XET_CLI_USAGE_SETTLE, NULL, &seen);

    } while (rc == XET_CLI_OK && seen && !xet_cli_interrupted);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    return xet_cli_pg_query(u->pg, "SELECT kind, name, files, logical, stored,"
                            " metadata, CASE kind WHEN 'repo'"
                            " THEN xet.hub_title(name) END"
                            " FROM xet.usage_recount() ORDER BY kind, name",
                            NULL, xet_cli_usage_mended, u);
}


/* Prints one row of xet.usage_recount(): the corrections of the counters. */

static int
xet_cli_usage_mended(void *ctx, const xet_cli_pg_row_t *row)
{
    int64_t          files, logical, stored, metadata;
    xet_json_t      *j;
    const char      *kind, *name, *title;
    xet_cli_json_t   out;
    xet_cli_usage_t *u = ctx;

    kind = xet_cli_pg_text(row, xet_cli_usage_kind);
    name = xet_cli_pg_text(row, xet_cli_usage_name);
    title = xet_cli_pg_text(row, xet_cli_usage_logical_max);
    files = (int64_t) xet_cli_pg_u64(row, xet_cli_usage_files);
    logical = (int64_t) xet_cli_pg_u64(row, xet_cli_usage_logical);
    stored = (int64_t) xet_cli_pg_u64(row, xet_cli_usage_stored);
    metadata = (int64_t) xet_cli_pg_u64(row, xet_cli_usage_metadata);

    if (!u->json) {
        printf("%-7s files %+" PRId64 " logical %+" PRId64
               " stored %+" PRId64 " metadata %+" PRId64 " ", kind, files,
               logical, stored, metadata);
        xet_cli_usage_name_print(name, title);

        return ferror(stdout) ? xet_cli_flush() : XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_json_put_cstring(j, kind, name);

    if (*title) {
        xet_json_put_cstring(j, "hub", title);
    }

    xet_json_put_i64(j, "files", files);
    xet_json_put_i64(j, "logical", logical);
    xet_json_put_i64(j, "stored", stored);
    xet_json_put_i64(j, "metadata", metadata);

    return xet_cli_json_end(&out);
}


static int
xet_cli_usage_show(xet_cli_usage_t *u)
{
    int  rc;

    if (!u->json) {
        printf("%-7s %8s %16s %16s %16s %16s %16s %16s %16s %s\n", "kind",
               "files", "logical", "limit", "stored", "limit", "deduplicated",
               "metadata", "limit", "name");
    }

    if (u->repo) {
        return xet_cli_pg_query(u->pg, "SELECT kind, $1::text, files, logical,"
                                " stored, metadata, logical_max, stored_max,"
                                " metadata_max,"
                                " coalesce(xet.hub_title($1::text), '')"
                                " FROM xet.usage_get(false, $1::text, NULL)",
                                xet_cli_pg_with(xet_cli_as_text(u->repo)),
                                xet_cli_usage_row, u);
    }

    if (u->subject) {
        return xet_cli_pg_query(u->pg, "SELECT kind, $1::text, files, logical,"
                                " stored, metadata, logical_max, stored_max,"
                                " metadata_max, '' FROM xet.usage_get(true, '',"
                                " convert_to(coalesce($2::text, ''), 'UTF8')"
                                " || '\\x00' || convert_to($1::text, 'UTF8'))",
                                xet_cli_pg_with(xet_cli_as_text(u->subject),
                                                xet_cli_as_text(u->issuer)),
                                xet_cli_usage_row, u);
    }

    rc = xet_cli_pg_query(u->pg, "SELECT kind, name, files, logical, stored,"
                          " metadata, logical_max, stored_max, metadata_max,"
                          " CASE kind WHEN 'repo' THEN xet.hub_title(name) END"
                          " FROM xet.usage_list() ORDER BY kind, name", NULL,
                          xet_cli_usage_row, u);

    return rc ? rc : xet_cli_pg_query(u->pg, "SELECT files, logical, stored,"
                                      " xorbs, nobodys, garbage"
                                      " FROM xet.usage_total()", NULL,
                                      xet_cli_usage_store, u);
}


static int
xet_cli_usage_row(void *ctx, const xet_cli_pg_row_t *row)
{
    uint64_t         files, logical, stored, saved;
    xet_json_t      *j;
    const char      *kind, *name, *title;
    xet_cli_json_t   out;
    xet_cli_usage_t *u = ctx;

    kind = xet_cli_pg_text(row, xet_cli_usage_kind);
    name = xet_cli_pg_text(row, xet_cli_usage_name);
    title = xet_cli_pg_text(row, xet_cli_usage_title);
    files = xet_cli_pg_u64(row, xet_cli_usage_files);
    logical = xet_cli_pg_u64(row, xet_cli_usage_logical);
    stored = xet_cli_pg_u64(row, xet_cli_usage_stored);
    saved = (logical > stored) ? logical - stored : 0;

    if (!u->json) {
        printf("%-7s %8" PRIu64 " ", kind, files);
        xet_cli_usage_number(row, xet_cli_usage_logical);
        xet_cli_usage_number(row, xet_cli_usage_logical_max);
        xet_cli_usage_number(row, xet_cli_usage_stored);
        xet_cli_usage_number(row, xet_cli_usage_stored_max);
        printf("%16" PRIu64 " ", saved);
        xet_cli_usage_number(row, xet_cli_usage_metadata);
        xet_cli_usage_number(row, xet_cli_usage_metadata_max);
        xet_cli_usage_name_print(name, title);

        return ferror(stdout) ? xet_cli_flush() : XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_json_put_cstring(j, kind, name);

    if (*title) {
        xet_json_put_cstring(j, "hub", title);
    }

    xet_json_put_u64(j, "files", files);
    xet_cli_usage_json(row, j, "logical", xet_cli_usage_logical,
                       xet_cli_usage_logical_max);
    xet_cli_usage_json(row, j, "stored", xet_cli_usage_stored,
                       xet_cli_usage_stored_max);
    xet_cli_usage_json(row, j, "metadata", xet_cli_usage_metadata,
                       xet_cli_usage_metadata_max);
    xet_json_put_u64(j, "deduplicated", saved);

    return xet_cli_json_end(&out);
}


/*
 * Writes the same JSON as the API, see src/http/routes/ngx_http_xet_usage.c.
 */

static void
xet_cli_usage_json(const xet_cli_pg_row_t *row, xet_json_t *j,
    const char *name, int used, int limit)
{
    uint64_t  n, most;

    n = xet_cli_pg_u64(row, used);

    xet_json_key(j, name);
    xet_json_object_begin(j);
    xet_json_put_u64(j, "used", n);

    if (!xet_cli_pg_null(row, limit)) {
        most = xet_cli_pg_u64(row, limit);

        xet_json_put_u64(j, "limit", most);
        xet_json_put_u64(j, "left", (n < most) ? most - n : 0);
    }

    xet_json_object_end(j);
}


static void
xet_cli_usage_number(const xet_cli_pg_row_t *row, int column)
{
    if (xet_cli_pg_null(row, column)) {
        printf("%16s ", "-");
        return;
    }

    printf("%16" PRIu64 " ", xet_cli_pg_u64(row, column));
}


/*
 * Prints a name.  For a Hub repository the name is a number, so the title is
 * printed, too: the name on the Hub.
 */

static void
xet_cli_usage_name_print(const char *name, const char *title)
{
    xet_cli_text_print(stdout, name);

    if (*title) {
        putchar(' ');
        xet_cli_text_print(stdout, title);
    }

    putchar('\n');
}


static int
xet_cli_usage_store(void *ctx, const xet_cli_pg_row_t *row)
{
    uint64_t         files, logical, stored, saved;
    xet_json_t      *j;
    xet_cli_json_t   out;
    xet_cli_usage_t *u = ctx;

    files = xet_cli_pg_u64(row, 0);
    logical = xet_cli_pg_u64(row, 1);
    stored = xet_cli_pg_u64(row, 2);
    saved = (logical > stored) ? logical - stored : 0;

    if (!u->json) {
        printf("%-7s %8" PRIu64 " %16" PRIu64 " %16s %16" PRIu64 " %16s %16"
               PRIu64 " xorbs %" PRIu64 ", bytes charged to nobody %" PRIu64
               ", bytes to be collected %" PRIu64 "\n", "store", files, logical,
               "-", stored, "-", saved, xet_cli_pg_u64(row, 3),
               xet_cli_pg_u64(row, 4), xet_cli_pg_u64(row, 5));

        return ferror(stdout) ? xet_cli_flush() : XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_json_key(j, "store");
    xet_json_object_begin(j);
    xet_json_put_u64(j, "files", files);
    xet_json_put_u64(j, "logical", logical);
    xet_json_put_u64(j, "stored", stored);
    xet_json_put_u64(j, "deduplicated", saved);
    xet_json_put_u64(j, "xorbs", xet_cli_pg_u64(row, 3));
    xet_json_put_u64(j, "nobodys", xet_cli_pg_u64(row, 4));
    xet_json_put_u64(j, "garbage", xet_cli_pg_u64(row, 5));
    xet_json_object_end(j);

    return xet_cli_json_end(&out);
}
