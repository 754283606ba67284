
/*
 * xet rm: takes files out of the repo of the token.
 */


#include <string.h>

#include "xet_cli_http.h"
#include "xet_cli_json.h"


static int
xet_cli_rm_file(xet_cli_http_t *h, const char *name, int json)
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

    memset(&r, 0, sizeof(r));

    r.method = "DELETE";
    r.url = xet_cli_http_url(h, "/v1/files/%s", name);
    r.api = 1;

    rc = xet_cli_http_call(h, &r);

    if (rc == XET_CLI_OK && r.status / 100 != 2) {
        rc = xet_cli_http_fail(&r);
    }

    xet_cli_http_free(&r);

    if (rc != XET_CLI_OK || !json) {
        return rc;
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_hash(j, "removed", &hash);

    return xet_cli_json_end(&out);
}


int
xet_cli_rm(const xet_cli_args_t *args)
{
    int              i, rc;
    xet_cli_http_t  *h;

    h = xet_cli_http_create(args, &rc);

    if (h == NULL) {
        return rc;
    }

    rc = xet_cli_http_endpoint(h);

    for (i = 0; i < args->count && rc <= XET_CLI_FAULT; i++) {
        rc = xet_cli_worse(rc, xet_cli_rm_file(h, args->operands[i],
                                           args->value[XET_CLI_OPT_JSON]
                                           != NULL));
    }

    xet_cli_http_destroy(h);

    return rc;
}
