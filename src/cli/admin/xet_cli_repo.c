
/*
 * xet repo: who may read what, for administrators; by the functions of
 * sql/functions.sql.
 *
 *     xet repo ls
 *     xet repo add NAME [HASH...]      makes a repo, puts files into it
 *     xet repo rm NAME [HASH...]       takes files out, or removes the repo
 *     xet repo public|private NAME
 *     xet repo files NAME
 */


#include <inttypes.h>
#include <string.h>

#include "xet_cli_admin.h"


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_pg_t          *pg;
    const char            *name;
    int                    json;
} xet_cli_repo_t;


typedef struct {
    const char  *name;
    int          min;                  /* operands */
    int          max;
    int        (*run)(xet_cli_repo_t *r);
} xet_cli_repo_verb_t;


static int xet_cli_repo_ls(xet_cli_repo_t *r);
static int xet_cli_repo_add(xet_cli_repo_t *r);
static int xet_cli_repo_rm(xet_cli_repo_t *r);
static int xet_cli_repo_public(xet_cli_repo_t *r);
static int xet_cli_repo_private(xet_cli_repo_t *r);
static int xet_cli_repo_files(xet_cli_repo_t *r);
static int xet_cli_repo_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_repo_bool(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_repo_call(xet_cli_repo_t *r, const char *sql,
    const xet_hash_t *file, int *done);
static int xet_cli_repo_each(xet_cli_repo_t *r, const char *sql,
    const char *fault);
static int xet_cli_repo_set(xet_cli_repo_t *r, const char *sql);


static const xet_cli_repo_verb_t  xet_cli_repo_verbs[] = {
    { "ls", 0, 0, xet_cli_repo_ls },
    { "add", 1, -1, xet_cli_repo_add },
    { "rm", 1, -1, xet_cli_repo_rm },
    { "public", 1, 1, xet_cli_repo_public },
    { "private", 1, 1, xet_cli_repo_private },
    { "files", 1, 1, xet_cli_repo_files },
    { NULL, 0, 0, NULL }
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
                            "needs ls, add NAME [HASH...], rm NAME [HASH...],"
                            " public NAME, private NAME or files NAME");
    }

    r.args = args;
    r.name = n ? args->operands[1] : NULL;
    r.json = args->value[XET_CLI_OPT_JSON] != NULL;

    if (r.name && !xet_token_repo_ok((const uint8_t *) r.name,
                                     strlen(r.name)))
    {
        return xet_cli_fail(XET_CLI_USAGE, r.name,
                            "is no name of a repository");
    }

    /* all hashes are checked before the first one is used */

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

    rc = verb->run(&r);

    xet_cli_pg_close(r.pg);

    return rc;
}


static int
xet_cli_repo_ls(xet_cli_repo_t *r)
{
    return xet_cli_pg_query(r->pg, "SELECT name, public, files, bytes"
                            " FROM xet.repo_list() ORDER BY name", NULL, 0,
                            xet_cli_repo_row, r);
}


static int
xet_cli_repo_row(void *ctx, const xet_cli_pg_row_t *row)
{
    int              open;
    uint64_t         files, bytes;
    xet_json_t      *j;
    const char      *name;
    xet_cli_repo_t  *r;
    xet_cli_json_t   out;

    r = ctx;

    name = xet_cli_pg_text(row, 0);
    open = xet_cli_pg_bool(row, 1);
    files = xet_cli_pg_u64(row, 2);
    bytes = xet_cli_pg_u64(row, 3);

    if (!r->json) {
        printf("%-7s %8" PRIu64 " %14" PRIu64 " ",
               open ? "public" : "private", files, bytes);
        xet_cli_text_print(stdout, name);
        putchar('\n');

        return ferror(stdout) ? xet_cli_flush() : XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_string(j, "repo", name);
    xet_json_key(j, "public");
    xet_json_bool(j, open);
    xet_cli_json_put_u64(j, "files", files);
    xet_cli_json_put_u64(j, "bytes", bytes);

    return xet_cli_json_end(&out);
}


static int
xet_cli_repo_add(xet_cli_repo_t *r)
{
    int  rc, done;

    rc = xet_cli_repo_call(r, "SELECT xet.repo_create($1)", NULL, &done);

    if (rc != XET_CLI_OK || r->args->count > 2) {
        return (rc != XET_CLI_OK) ? rc
               : xet_cli_repo_each(r, "SELECT xet.repo_add($1, $2)",
                                   "the store has no such file");
    }

    return done ? XET_CLI_OK
                : xet_cli_fail(XET_CLI_FAULT, r->name, "is there already");
}


static int
xet_cli_repo_rm(xet_cli_repo_t *r)
{
    if (r->args->count > 2) {
        return xet_cli_repo_each(r, "SELECT xet.repo_forget($1, $2)",
                                 "the repo has no such file");
    }

    return xet_cli_repo_set(r, "SELECT xet.repo_delete($1)");
}


static int
xet_cli_repo_public(xet_cli_repo_t *r)
{
    return xet_cli_repo_set(r, "SELECT xet.repo_set_public($1, true)");
}


static int
xet_cli_repo_private(xet_cli_repo_t *r)
{
    return xet_cli_repo_set(r, "SELECT xet.repo_set_public($1, false)");
}


static int
xet_cli_repo_files(xet_cli_repo_t *r)
{
    return xet_cli_ls_files(r->pg, r->name, r->json);
}


static int
xet_cli_repo_set(xet_cli_repo_t *r, const char *sql)
{
    int  rc, done;

    rc = xet_cli_repo_call(r, sql, NULL, &done);

    if (rc == XET_CLI_OK && !done) {
        rc = xet_cli_fail(XET_CLI_FAULT, r->name, "no such repo");
    }

    return rc;
}


static int
xet_cli_repo_each(xet_cli_repo_t *r, const char *sql, const char *fault)
{
    int         i, rc, worst, done;
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
    int *done)
{
    xet_cli_pg_param_t  params[2];

    memset(params, 0, sizeof(params));

    params[0].text = r->name;

    if (file) {
        params[1].bytes = file->bytes;
        params[1].len = XET_HASH_LEN;
    }

    *done = 0;

    return xet_cli_pg_query(r->pg, sql, params, file ? 2 : 1,
                            xet_cli_repo_bool, done);
}


static int
xet_cli_repo_bool(void *ctx, const xet_cli_pg_row_t *row)
{
    *(int *) ctx = xet_cli_pg_bool(row, 0);

    return XET_CLI_OK;
}
