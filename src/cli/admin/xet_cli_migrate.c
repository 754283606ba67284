
/*
 * xet migrate: upgrades the database to the schema of this version.
 *
 * The migrations folder has numbered migration files, functions.sql, and
 * migrate.sql, whose SQL functions decide which files are applied.  Each file
 * is applied in a transaction of its own.
 */


#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "xet_cli_admin.h"


#define XET_CLI_MIGRATE_MAX  (16 * 1024 * 1024)   /* maximum file size */

/*
 * The number in the name of a migration file, as a parameter of a statement; 0
 * for functions.sql.
 */

#define xet_cli_migrate_number(name)                                          \
    xet_cli_as_number(strtoul(name, NULL, 10))


typedef struct {
    xet_cli_pg_t    *pg;
    char            *folder;
    int              json;
    struct dirent  **entries;
    int              n;
    unsigned long    newest;
} xet_cli_migrate_t;


static int xet_cli_migrate_open(xet_cli_migrate_t *m,
    const xet_cli_args_t *args);
static void xet_cli_migrate_close(xet_cli_migrate_t *m);
static char *xet_cli_migrate_folder(const xet_cli_args_t *args);
static int xet_cli_migrate_list(xet_cli_migrate_t *m);
static int xet_cli_migrate_order(const struct dirent **a,
    const struct dirent **b);
static int xet_cli_migrate_filter(const struct dirent *entry);
static int xet_cli_migrate_begin(xet_cli_migrate_t *m);
static int xet_cli_migrate_newer(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_migrate_file(xet_cli_migrate_t *m, const char *name);
static char *xet_cli_migrate_read(xet_cli_migrate_t *m, const char *name,
    char *sum);
static int xet_cli_migrate_apply(xet_cli_migrate_t *m, const char *name,
    const char *sum, const char *text);


int
xet_cli_migrate(const xet_cli_args_t *args)
{
    int                 rc, i;
    xet_cli_migrate_t   m;

    rc = xet_cli_migrate_open(&m, args);

    if (rc == XET_CLI_OK) {
        m.pg = xet_cli_pg_open(args, &rc);
    }

    rc = rc ? rc : xet_cli_migrate_begin(&m);

    /*
     * entries are in descending order: the last entry is the oldest migration,
     * the first entry is functions.sql
     */

    for (i = m.n - 1; i >= 0 && rc == XET_CLI_OK; i--) {
        rc = xet_cli_migrate_file(&m, m.entries[i]->d_name);
    }

    xet_cli_migrate_close(&m);

    return rc;
}


int
xet_cli_migrate_newest(const xet_cli_args_t *args, uint64_t *newest)
{
    int                 rc;
    xet_cli_migrate_t   m;

    rc = xet_cli_migrate_open(&m, args);
    *newest = m.newest;

    xet_cli_migrate_close(&m);

    return rc;
}


/* Finds the migrations.  Call xet_cli_migrate_close() even after an error. */

static int
xet_cli_migrate_open(xet_cli_migrate_t *m, const xet_cli_args_t *args)
{
    memset(m, 0, sizeof(xet_cli_migrate_t));

    m->json = xet_cli_json(args);
    m->folder = xet_cli_migrate_folder(args);

    return m->folder ? xet_cli_migrate_list(m) : XET_CLI_ERROR;
}


static void
xet_cli_migrate_close(xet_cli_migrate_t *m)
{
    while (m->n > 0) {
        free(m->entries[--m->n]);
    }

    xet_cli_pg_close(m->pg);

    free(m->entries);
    free(m->folder);
}


/*
 * Returns the path of the migrations folder, malloc()ed, or NULL after an
 * error.  The folder is given by --sql; the default, relative to the folder of
 * the program, is ../share/xet/sql (installed) or sql (built by make).
 */

static char *
xet_cli_migrate_folder(const xet_cli_args_t *args)
{
    char         self[4096], *folder;
    size_t       i;
    ssize_t      n;
    struct stat  st;

    static const char *const  places[] = { "../share/xet/sql", "sql" };

    if (args->value[XET_CLI_OPT_SQL]) {
        folder = strdup(args->value[XET_CLI_OPT_SQL]);

        if (folder == NULL) {
            (void) xet_cli_no_memory();
        }

        return folder;
    }

    n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n > 0) {
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
    }

    for (i = 0; n > 0 && i < sizeof(places) / sizeof(places[0]); i++) {

        if (asprintf(&folder, "%s/%s", self, places[i]) < 0) {
            break;
        }

        if (stat(folder, &st) == 0) {
            return folder;
        }

        free(folder);
    }

    (void) xet_cli_fail(XET_CLI_ERROR, "migrate",
                        "migrations folder not found; set --sql");

    return NULL;
}


/*
 * Lists the files, and checks the numbers of all migrations before the first
 * migration is applied.  The entries are in descending order: functions.sql,
 * then the newest migration.
 */

static int
xet_cli_migrate_list(xet_cli_migrate_t *m)
{
    int             i;
    const char     *name;
    unsigned long   number, next;

    m->n = scandir(m->folder, &m->entries, xet_cli_migrate_filter,
                   xet_cli_migrate_order);

    if (m->n <= 0) {
        i = m->n;
        m->n = 0;

        return xet_cli_fail(XET_CLI_ERROR, m->folder,
                            i ? strerror(errno)
                              : "contains no migrations");
    }

    next = 10000;

    for (i = 0; i < m->n; i++) {
        name = m->entries[i]->d_name;

        if (*name == 'f') {
            continue;
        }

        number = strtoul(name, NULL, 10);

        if (number == 0 || number == next) {
            return xet_cli_fail(XET_CLI_ERROR, name,
                                "the migration number is zero or used twice");
        }

        next = number;
        m->newest = m->newest ? m->newest : number;
    }

    return XET_CLI_OK;
}


static int
xet_cli_migrate_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*b)->d_name, (*a)->d_name);
}


static int
xet_cli_migrate_filter(const struct dirent *entry)
{
    size_t       len;
    const char  *name = entry->d_name;

    len = strlen(name);

    if (strcmp(name, "functions.sql") == 0) {
        return 1;
    }

    return strspn(name, "0123456789") == 4 && name[4] == '_' && len > 4
           && strcmp(name + len - 4, ".sql") == 0;
}


/*
 * Runs migrate.sql, which takes a lock and creates the functions that decide
 * which files are applied.  A database with a migration that the folder lacks
 * is newer than this version and is rejected.
 */

static int
xet_cli_migrate_begin(xet_cli_migrate_t *m)
{
    int    rc;
    char  *rules, sum[2 * XET_CLI_SHA256_LEN + 1];

    rules = xet_cli_migrate_read(m, "migrate.sql", sum);

    if (rules == NULL) {
        return XET_CLI_ERROR;
    }

    rc = xet_cli_pg_exec(m->pg, rules);

    free(rules);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    return xet_cli_pg_query(m->pg, "SELECT name"
                            " FROM pg_temp.migration_newer($1::integer)"
                            " AS name WHERE name IS NOT NULL",
                            xet_cli_pg_with(xet_cli_as_number(m->newest)),
                            xet_cli_migrate_newer, NULL);
}


static int
xet_cli_migrate_newer(void *ctx, const xet_cli_pg_row_t *row)
{
    return xet_cli_fail(XET_CLI_FAULT, xet_cli_pg_text(row, 0),
                        "is applied, but unknown to this version: the database "
                        "is newer");
}


static int
xet_cli_migrate_file(xet_cli_migrate_t *m, const char *name)
{
    int    rc;
    char  *text, state[16], sum[2 * XET_CLI_SHA256_LEN + 1];

    text = xet_cli_migrate_read(m, name, sum);

    if (text == NULL) {
        return XET_CLI_ERROR;
    }

    state[0] = '\0';

    rc = xet_cli_pg_line(m->pg, "SELECT pg_temp.migration_state($1::integer,"
                         " $2)",
                         xet_cli_pg_with(xet_cli_migrate_number(name),
                                         xet_cli_as_text(sum)),
                         state, sizeof(state));

    if (rc == XET_CLI_OK && strcmp(state, "new") == 0) {
        rc = xet_cli_migrate_apply(m, name, sum, text);

    } else if (rc == XET_CLI_OK && strcmp(state, "changed") == 0) {
        rc = xet_cli_fail(XET_CLI_FAULT, name,
                          "was changed after it was applied");
    }

    free(text);

    return rc;
}


/*
 * Reads a file in the folder, and sets sum to its SHA-256 in hexadecimal.
 * Returns the text, malloc()ed, with a zero byte at the end, or NULL on an
 * error.
 */

static char *
xet_cli_migrate_read(xet_cli_migrate_t *m, const char *name, char *sum)
{
    char      *path, *text;
    FILE      *file;
    size_t     len;
    uint8_t    digest[XET_CLI_SHA256_LEN];

    if (asprintf(&path, "%s/%s", m->folder, name) < 0) {
        (void) xet_cli_no_memory();
        return NULL;
    }

    file = xet_cli_open(path);
    text = file ? malloc(XET_CLI_MIGRATE_MAX + 1) : NULL;

    if (text == NULL) {
        xet_cli_close(file);
        free(path);
        return NULL;
    }

    len = fread(text, 1, XET_CLI_MIGRATE_MAX + 1, file);

    if (ferror(file) || len > XET_CLI_MIGRATE_MAX || memchr(text, '\0', len)
        || EVP_Digest(text, len, digest, NULL, EVP_sha256(), NULL) != 1)
    {
        (void) xet_cli_fail(XET_CLI_ERROR, path, "is not a migration file");
        free(text);
        text = NULL;

    } else {
        text[len] = '\0';
        *xet_hash_print_plain((uint8_t *) sum, digest) = '\0';
    }

    xet_cli_close(file);
    free(path);

    return text;
}


static int
xet_cli_migrate_apply(xet_cli_migrate_t *m, const char *name,
    const char *sum, const char *text)
{
    int  rc;

    rc = xet_cli_pg_exec(m->pg, "BEGIN");

    if (rc == XET_CLI_OK) {
        rc = (*name == 'f')
             ? xet_cli_pg_query(m->pg, "SELECT pg_temp.migration_functions($1)",
                                xet_cli_pg_with(xet_cli_as_text(text)), NULL,
                                NULL)
             : xet_cli_pg_exec(m->pg, text);
    }

    rc = rc ? rc
            : xet_cli_pg_query(m->pg, "SELECT pg_temp.migration_applied("
                               "$1::integer, $2, $3, $4)",
                               xet_cli_pg_with(xet_cli_migrate_number(name),
                                               xet_cli_as_text(name),
                                               xet_cli_as_text(sum),
                                               xet_cli_as_text(text)),
                               NULL, NULL);

    /* after a failure, the transaction is rolled back when the session ends */

    rc = rc ? rc : xet_cli_pg_exec(m->pg, "COMMIT");

    if (rc != XET_CLI_OK) {
        return xet_cli_fail(rc, name, "was not applied");
    }

    return xet_cli_print_row(m->json, xet_cli_out_text("applied", name, "\n"));
}
