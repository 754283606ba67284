
/*
 * xet ls: the files of a store, or of a repo; from the database, for the API
 * tells nobody what there is.
 */


#include <inttypes.h>

#include "xet_cli_admin.h"


/* Columns of xet.file_list(). */

enum {
    xet_cli_ls_hash = 0,
    xet_cli_ls_size,
    xet_cli_ls_created,
    xet_cli_ls_sha256
};


static int xet_cli_ls_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_ls_known(void *ctx, const xet_cli_pg_row_t *row);


int
xet_cli_ls(const xet_cli_args_t *args)
{
    int            rc;
    xet_cli_pg_t  *pg;

    pg = xet_cli_pg_open(args, &rc);

    if (pg == NULL) {
        return rc;
    }

    rc = xet_cli_ls_files(pg, args->value[XET_CLI_OPT_REPO],
                          args->value[XET_CLI_OPT_JSON] != NULL);

    xet_cli_pg_close(pg);

    return rc;
}


int
xet_cli_ls_files(xet_cli_pg_t *pg, const char *repo, int json)
{
    int                 rc, known;
    xet_cli_pg_param_t  param;

    param.text = repo;
    param.bytes = NULL;
    param.len = 0;

    if (repo) {
        known = 0;

        rc = xet_cli_pg_query(pg, "SELECT true FROM xet.repo_list()"
                              " WHERE name = $1", &param, 1,
                              xet_cli_ls_known, &known);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        if (!known) {
            return xet_cli_fail(XET_CLI_FAULT, repo, "no such repo");
        }
    }

    return xet_cli_pg_query(pg, "SELECT hash, size,"
                            " to_char(created_at AT TIME ZONE 'UTC',"
                            " 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),"
                            " encode(sha256, 'hex')"
                            " FROM xet.file_list($1::text)", &param, 1,
                            xet_cli_ls_row, &json);
}


static int
xet_cli_ls_known(void *ctx, const xet_cli_pg_row_t *row)
{
    *(int *) ctx = 1;

    return XET_CLI_OK;
}


static int
xet_cli_ls_row(void *ctx, const xet_cli_pg_row_t *row)
{
    char             text[XET_HASH_STR_LEN + 1];
    uint64_t         size;
    xet_hash_t       hash;
    xet_json_t      *j;
    const char      *created, *sha256;
    xet_cli_json_t   out;

    if (!xet_cli_pg_hash(row, xet_cli_ls_hash, &hash)) {
        return xet_cli_fail(XET_CLI_FAULT, "files", "a row without a hash");
    }

    size = xet_cli_pg_u64(row, xet_cli_ls_size);
    created = xet_cli_pg_text(row, xet_cli_ls_created);
    sha256 = xet_cli_pg_null(row, xet_cli_ls_sha256)
             ? NULL : xet_cli_pg_text(row, xet_cli_ls_sha256);

    if (!*(int *) ctx) {
        printf("%s %12" PRIu64 " %s\n", xet_cli_hash_string(&hash, text),
               size, created);

        return ferror(stdout) ? xet_cli_flush() : XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_hash(j, "hash", &hash);
    xet_cli_json_put_u64(j, "size", size);
    xet_cli_json_put_string(j, "created", created);
    xet_cli_json_put_string(j, "sha256", sha256);

    return xet_cli_json_end(&out);
}
