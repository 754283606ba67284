
/*
 * xet hash: chunks a file and prints its file hash and size.
 */


#include <stdlib.h>

#include "xet_cli_verify.h"


static int
xet_cli_hash_file(xet_cli_digest_t *d, const char *name, int json)
{
    int              rc;
    char             text[XET_HASH_STR_LEN + 1];
    FILE            *file;
    xet_json_t      *j;
    xet_cli_json_t   out;

    file = xet_cli_open(name);

    if (file == NULL) {
        return XET_CLI_ERROR;
    }

    rc = xet_cli_digest_file(d, file, name, 0);

    xet_cli_close(file);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (!json) {
        printf("%s %llu ", xet_cli_hash_string(&d->hash, text),
               (unsigned long long) d->size);
        xet_cli_text_print(stdout, name);
        putchar('\n');

        return xet_cli_flush();
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_string(j, "file", name);
    xet_cli_json_put_hash(j, "hash", &d->hash);
    xet_cli_json_put_u64(j, "size", d->size);
    xet_cli_json_put_u64(j, "chunks", d->chunks);

    return xet_cli_json_end(&out);
}


int
xet_cli_hash(const xet_cli_args_t *args)
{
    int                i, rc;
    xet_cli_digest_t  *d;

    d = malloc(sizeof(xet_cli_digest_t));

    if (d == NULL) {
        return xet_cli_no_memory();
    }

    rc = XET_CLI_OK;

    for (i = 0; i < args->count && rc < XET_CLI_INTERRUPTED; i++) {
        rc = xet_cli_worse(rc, xet_cli_hash_file(d, args->operands[i],
                                           args->value[XET_CLI_OPT_JSON]
                                           != NULL));
    }

    free(d);

    return rc;
}
