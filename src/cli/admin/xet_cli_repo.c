
/*
 * xet repo and xet ls: list and manage repositories and files in the database,
 * with the functions of sql/repos.sql.  xet.audit_note() writes each change to
 * the PostgreSQL log.
 *
 *     xet ls
 *     xet repo ls
 *     xet repo add NAME [HASH...]      creates a repository, adds files to it
 *     xet repo rm NAME [HASH...]       removes files, or the repository
 *     xet repo public|private NAME
 *     xet repo files NAME
 *
 * A Hub repository is listed with its name on the Hub, and its files can be
 * listed and removed.  Only the Hub creates, deletes and publishes Hub
 * repositories.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_admin.h"


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_pg_t          *pg;
    const char            *name;
    char                  *store;      /* name in the store, or NULL */
    const char            *sql;        /* statement of the verb */
    int                    json;
} xet_cli_repo_t;


typedef struct {
    const char  *name;
    int          min;                  /* operands after the verb */
    int          max;                  /* -1: no limit */
    int        (*run)(xet_cli_repo_t *r);
    const char  *sql;                  /* statement of xet_cli_repo_set() */
} xet_cli_repo_verb_t;


/* Columns of xet.file_list(). */

enum {
    xet_cli_repo_hash = 0,
    xet_cli_repo_size,
    xet_cli_repo_created,
    xet_cli_repo_sha256
};


static int xet_cli_repo_verb(xet_cli_repo_t *r,
    const xet_cli_repo_verb_t *verb);
static int xet_cli_repo_find(xet_cli_repo_t *r);
static int xet_cli_repo_ours(xet_cli_repo_t *r);
static int xet_cli_repo_ls(xet_cli_repo_t *r);
static int xet_cli_repo_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_repo_add(xet_cli_repo_t *r);
static int xet_cli_repo_rm(xet_cli_repo_t *r);
static int xet_cli_repo_files(xet_cli_repo_t *r);
static int xet_cli_repo_file(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_repo_set(xet_cli_repo_t *r);
static int xet_cli_repo_each(xet_cli_repo_t *r, const char *sql,
    const char *fault);
static int xet_cli_repo_call(xet_cli_repo_t *r, const char *sql,
    const xet_hash_t *file, uint64_t *done);


static const xet_cli_repo_verb_t  xet_cli_repo_verbs[] = {
    { "ls", 0, 0, xet_cli_repo_ls, NULL },
    { "add", 1, -1, xet_cli_repo_add, NULL },
    { "rm", 1, -1, xet_cli_repo_rm,
      "SELECT xet.audit_note('repo.delete', $1, NULL, xet.repo_delete($1))" },
    { "public", 1, 1, xet_cli_repo_set,
      "SELECT xet.audit_note('repo.public', $1, NULL,"
      " xet.repo_set_public($1, true))" },
    { "private", 1, 1, xet_cli_repo_set,
      "SELECT xet.audit_note('repo.private', $1, NULL,"
      " xet.repo_set_public($1, false))" },
    { "files", 1, 1, xet_cli_repo_files, NULL },
    { NULL, 0, 0, NULL, NULL }
};


int
xet_cli_repo(const xet_cli_args_t *args)
{
    int                         i, n, rc;
    xet_hash_t                  hash;
    xet_cli_repo_t              r;
    const xet_cli_repo_verb_t  *verb;

    for (verb = xet_cli_repo_verbs; verb->name; verb++) {
        if (strcmp(verb->name, args->operands[0]) == 0) {
            break;
        }
    }

    n = args->count - 1;

    if (verb->name == NULL || n < verb->min
        || (verb->max >= 0 && n > verb->max))
    {
        return xet_cli_fail(XET_CLI_USAGE, "repo",
                            "expected ls, add NAME [HASH...], rm NAME "
                            "[HASH...], public NAME, private NAME or files "
                            "NAME");
    }

    memset(&r, 0, sizeof(r));

    r.args = args;
    r.sql = verb->sql;
    r.name = n ? args->operands[1] : NULL;
    r.json = xet_cli_json(args);

    if (r.name && !xet_cli_named_hub(r.name)
        && !xet_token_repo_ok((const uint8_t *) r.name, strlen(r.name)))
    {
        return xet_cli_fail(XET_CLI_USAGE, r.name,
                            "invalid repository name");
    }

    /* check all hashes before the first hash is used */

    for (i = 2; i < args->count; i++) {
        rc = xet_cli_args_hash(args->operands[i], &hash);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    r.pg = xet_cli_pg_open(args, &rc);

    if (r.pg == NULL) {
        return rc;
    }

    rc = xet_cli_repo_verb(&r, verb);

    free(r.store);
    xet_cli_pg_close(r.pg);

    return rc;
}


static int
xet_cli_repo_verb(xet_cli_repo_t *r, const xet_cli_repo_verb_t *verb)
{
    int  rc;

    rc = XET_CLI_OK;

    if (verb->run == xet_cli_repo_files
        || (verb->run == xet_cli_repo_rm && r->args->count > 2))
    {
        rc = xet_cli_repo_find(r);

    } else if (r->name) {
        rc = xet_cli_repo_ours(r);
    }

    return rc ? rc : verb->run(r);
}


/* Replaces r->name, which may be a Hub name, by the name in the store. */

static int
xet_cli_repo_find(xet_cli_repo_t *r)
{
    int  rc;

    r->store = xet_cli_named(r->pg, r->name, &rc);

    if (rc == XET_CLI_OK && r->store == NULL) {
        return xet_cli_fail(XET_CLI_FAULT, r->name, "no such repository");
    }

    r->name = r->store;

    return rc;
}


/*
 * Rejects Hub repositories: the Hub has its own tables for them, which the
 * functions of sql/repos.sql do not update.
 */

static int
xet_cli_repo_ours(xet_cli_repo_t *r)
{
    int       rc;
    uint64_t  hub;

    hub = xet_cli_named_hub(r->name);

    rc = hub ? XET_CLI_OK
             : xet_cli_pg_number(r->pg,
                                 "SELECT xet.hub_title($1) IS NOT NULL",
                                 xet_cli_pg_with(xet_cli_as_text(r->name)),
                                 &hub);

    return (rc == XET_CLI_OK && hub)
           ? xet_cli_fail(XET_CLI_USAGE, r->name,
                          "is a Hub repository; create, delete or publish it "
                          "through the Hub")
           : rc;
}


int
xet_cli_ls(const xet_cli_args_t *args)
{
    int             rc;
    xet_cli_repo_t  r;

    memset(&r, 0, sizeof(r));

    r.name = args->value[XET_CLI_OPT_REPO];
    r.json = xet_cli_json(args);
    r.pg = xet_cli_pg_open(args, &rc);

    if (r.pg == NULL) {
        return rc;
    }

    rc = r.name ? xet_cli_repo_find(&r) : XET_CLI_OK;
    rc = rc ? rc : xet_cli_repo_files(&r);

    free(r.store);
    xet_cli_pg_close(r.pg);

    return rc;
}


static int
xet_cli_repo_ls(xet_cli_repo_t *r)
{
    return xet_cli_pg_query(r->pg, "SELECT name, public, files, bytes,"
                            " coalesce(xet.hub_title(name), '')"
                            " FROM xet.repo_list() ORDER BY name", NULL,
                            xet_cli_repo_row, r);
}


static int
xet_cli_repo_row(void *ctx, const xet_cli_pg_row_t *row)
{
    int              open;
    const char      *name, *title;
    xet_cli_repo_t  *r = ctx;

    name = xet_cli_pg_text(row, 0);
    title = xet_cli_pg_text(row, 4);
    open = xet_cli_pg_bool(row, 1);

    return xet_cli_print_row(r->json,
               xet_cli_out_text("repo", name, NULL),
               xet_cli_out_text(*title ? "hub" : NULL, title, NULL),
               xet_cli_out_bool("public", open),
               xet_cli_out_word(NULL, open ? "public" : "private", -7, " "),
               xet_cli_out_column("files", xet_cli_pg_u64(row, 2), 8, " "),
               xet_cli_out_column("bytes", xet_cli_pg_u64(row, 3), 14, " "),
               xet_cli_out_text(NULL, name, *title ? " " : "\n"),
               xet_cli_out_text(NULL, title, *title ? "\n" : NULL));
}


static int
xet_cli_repo_add(xet_cli_repo_t *r)
{
    int       rc;
    uint64_t  done;

    rc = xet_cli_repo_call(r, "SELECT xet.audit_note('repo.create', $1,"
                           " NULL, xet.repo_create($1))", NULL, &done);

    if (rc != XET_CLI_OK || r->args->count > 2) {
        return (rc != XET_CLI_OK) ? rc
               : xet_cli_repo_each(r, "SELECT xet.audit_note('repo.add', $1,"
                                   " $2, xet.repo_add($1, $2))",
                                   "no such file in the store");
    }

    return done ? XET_CLI_OK
                : xet_cli_fail(XET_CLI_FAULT, r->name, "already exists");
}


static int
xet_cli_repo_rm(xet_cli_repo_t *r)
{
    if (r->args->count > 2) {
        return xet_cli_repo_each(r, "SELECT xet.audit_note('repo.remove', $1,"
                                 " $2, xet.repo_forget($1, $2))",
                                 "no such file in the repository");
    }

    return xet_cli_repo_set(r);
}


/*
 * Prints the files of a repository, or all files of the store if r->name is
 * NULL, in order of registration.
 */

static int
xet_cli_repo_files(xet_cli_repo_t *r)
{
    return xet_cli_pg_query(r->pg, "SELECT hash, size,"
                            " to_char(created_at AT TIME ZONE 'UTC',"
                            " 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),"
                            " encode(sha256, 'hex')"
                            " FROM xet.file_list($1::boolean, $2::text)",
                            xet_cli_pg_with(
                                xet_cli_as_text(r->name ? "false" : "true"),
                                xet_cli_as_text(r->name ? r->name : "")),
                            xet_cli_repo_file, r);
}


static int
xet_cli_repo_file(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_hash_t       hash;
    const char      *sha256;
    xet_cli_repo_t  *r = ctx;

    if (!xet_cli_pg_hash(row, xet_cli_repo_hash, &hash)) {
        return xet_cli_fail(XET_CLI_FAULT, "files", "a row has no hash");
    }

    sha256 = xet_cli_pg_null(row, xet_cli_repo_sha256)
             ? NULL : xet_cli_pg_text(row, xet_cli_repo_sha256);

    return xet_cli_print_row(r->json,
               xet_cli_out_hash("hash", &hash, " "),
               xet_cli_out_column("size",
                                  xet_cli_pg_u64(row, xet_cli_repo_size), 12,
                                  " "),
               xet_cli_out_text("created",
                                xet_cli_pg_text(row, xet_cli_repo_created),
                                "\n"),
               xet_cli_out_text("sha256", sha256, NULL));
}


static int
xet_cli_repo_set(xet_cli_repo_t *r)
{
    int       rc;
    uint64_t  done;

    rc = xet_cli_repo_call(r, r->sql, NULL, &done);

    if (rc == XET_CLI_OK && !done) {
        rc = xet_cli_fail(XET_CLI_FAULT, r->name, "no such repository");
    }

    return rc;
}


static int
xet_cli_repo_each(xet_cli_repo_t *r, const char *sql, const char *fault)
{
    int         i, rc, worst;
    uint64_t    done;
    xet_hash_t  hash;

    worst = XET_CLI_OK;

    for (i = 2; i < r->args->count; i++) {
        (void) xet_cli_args_hash(r->args->operands[i], &hash);

        rc = xet_cli_repo_call(r, sql, &hash, &done);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        if (!done) {
            worst = xet_cli_fail(XET_CLI_FAULT, r->args->operands[i], fault);
        }
    }

    return worst;
}


static int
xet_cli_repo_call(xet_cli_repo_t *r, const char *sql, const xet_hash_t *file,
    uint64_t *done)
{
    *done = 0;

    return file ? xet_cli_pg_number(r->pg, sql,
                                    xet_cli_pg_with(xet_cli_as_text(r->name),
                                                    xet_cli_as_hash(file)),
                                    done)
                : xet_cli_pg_number(r->pg, sql,
                                    xet_cli_pg_with(xet_cli_as_text(r->name)),
                                    done);
}
