
/*
 * xet rm: deletes files, from the repository of the token if the server has
 * repositories.  With --repo, deletes the whole repository of the token.
 *
 * The command does not prompt for confirmation.  The token selects the
 * repository.  The server compares the name of that repository with --repo, so
 * a token of another repository deletes nothing.
 */


#include "xet_cli_admin.h"


static int xet_cli_rm_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name);
static int xet_cli_rm_repo(const xet_cli_args_t *args, const char *name);
static int xet_cli_rm_ask(xet_cli_http_t *h, char *url, const char *gone);


int
xet_cli_rm(const xet_cli_args_t *args)
{
    const char  *repo = args->value[XET_CLI_OPT_REPO];

    if ((repo == NULL) == (args->count == 0)) {
        return xet_cli_fail(XET_CLI_USAGE, "rm",
                            "expected either file hashes or --repo");
    }

    return repo ? xet_cli_rm_repo(args, repo)
                : xet_cli_http_operands(args, xet_cli_rm_file);
}


static int
xet_cli_rm_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name)
{
    int         rc;
    xet_hash_t  hash;

    rc = xet_cli_args_hash(name, &hash);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_rm_ask(h, xet_cli_http_url(h, "/v1/files/%s", name),
                        "file_not_found");

    return rc ? rc : xet_cli_print_row(xet_cli_json(args),
                                       xet_cli_out_hash("removed", &hash,
                                                        NULL));
}


static int
xet_cli_rm_repo(const xet_cli_args_t *args, const char *name)
{
    int              rc;
    xet_cli_http_t  *h;

    if (!xet_token_repo_ok((const uint8_t *) name, strlen(name))) {
        return xet_cli_fail(XET_CLI_USAGE, name,
                            "invalid repository name");
    }

    h = xet_cli_http_create(args, &rc);

    if (h == NULL) {
        return rc;
    }

    rc = xet_cli_rm_ask(h, xet_cli_http_url(h, "/v1/repo?name=%s", name),
                        "repo_not_found");

    xet_cli_http_destroy(h);

    return rc ? rc : xet_cli_print_row(xet_cli_json(args),
                                       xet_cli_out_text("removed_repo", name,
                                                        NULL));
}


static int
xet_cli_rm_ask(xet_cli_http_t *h, char *url, const char *gone)
{
    int                rc;
    xet_cli_request_t  r;

    rc = xet_cli_http_ask(h, &r, "DELETE", url);

    /*
     * Success is status 204.  If the first response was lost, a retry returns
     * "not found", which is also success.
     */

    if (rc == XET_CLI_OK && r.status != 204 && !xet_cli_http_gone(&r, gone)) {
        rc = xet_cli_http_fail(&r);
    }

    xet_cli_http_free(&r);

    return rc;
}
