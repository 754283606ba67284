
/*
 * xet rm: takes files out of the repo of the token.
 */


#include "xet_cli_admin.h"


static int
xet_cli_rm_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name)
{
    int                rc;
    xet_hash_t         hash;
    xet_json_t        *j;
    xet_cli_json_t     out;
    xet_cli_request_t  r;

    rc = xet_cli_args_hash(name, &hash);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_http_ask(h, &r, "DELETE",
                          xet_cli_http_url(h, "/v1/files/%s", name));

    /* 204 and nothing else is said by the API */

    if (rc == XET_CLI_OK && r.status != 204) {
        rc = xet_cli_http_fail(&r);
    }

    xet_cli_http_free(&r);

    if (rc != XET_CLI_OK || args->value[XET_CLI_OPT_JSON] == NULL) {
        return rc;
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_hash(j, "removed", &hash);

    return xet_cli_json_end(&out);
}


int
xet_cli_rm(const xet_cli_args_t *args)
{
    return xet_cli_http_operands(args, xet_cli_rm_file);
}
