
/*
 * xet verify: reads files of a server, or a whole store beside its database,
 * and looks whether all is right.
 */


#include <inttypes.h>
#include <string.h>

#include "xet_cli_verify.h"


static int xet_cli_verify_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name);


int
xet_cli_verify(const xet_cli_args_t *args)
{
    if (args->value[XET_CLI_OPT_STORE] && args->count) {
        return xet_cli_fail(XET_CLI_USAGE, "verify",
                            "needs either HASH or --store");
    }

    if (args->value[XET_CLI_OPT_STORE]) {
        return xet_cli_verify_store(args);
    }

    if (args->value[XET_CLI_OPT_OLDER] || args->value[XET_CLI_OPT_ORPHANS]
        || args->value[XET_CLI_OPT_REMOVE])
    {
        return xet_cli_fail(XET_CLI_USAGE, "verify",
                            "--older, --orphans and --remove need --store");
    }

    if (args->count == 0) {
        return xet_cli_fail(XET_CLI_USAGE, "verify",
                            "needs HASH... or --store");
    }

    return xet_cli_http_operands(args, xet_cli_verify_file);
}


static int
xet_cli_verify_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name)
{
    int                  rc;
    uint64_t             size;
    xet_json_t          *j;
    xet_cli_json_t       out;
    xet_cli_download_t   d;

    rc = xet_cli_download_init(&d, args, name);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    /* without a sink: bytes are dropped when they were decoded and hashed */

    size = 0;

    if (xet_cli_download_size(h, &d.hash, 1, &size) == XET_CLI_INTERRUPTED) {
        return XET_CLI_INTERRUPTED;
    }

    xet_cli_progress_begin(xet_cli_quiet(args), name, size);

    rc = xet_cli_download(h, &d);

    xet_cli_progress_end();

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (!args->value[XET_CLI_OPT_JSON]) {
        printf("%s %" PRIu64 " bytes, %" PRIu64 " chunks: ok\n", name, d.size,
               d.chunks);
        return xet_cli_flush();
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_hash(j, "hash", &d.hash);
    xet_cli_json_put_u64(j, "size", d.size);
    xet_cli_json_put_u64(j, "chunks", d.chunks);
    xet_cli_json_put_bool(j, "ok", 1);

    return xet_cli_json_end(&out);
}
