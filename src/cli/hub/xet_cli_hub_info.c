
/*
 * xet info of a Hub name: shows a repository, or a file and how it is stored.
 */


#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_hub.h"


static xet_cli_hub_operand_e xet_cli_hub_info_is(const xet_cli_args_t *args,
    const char *operand);
static int xet_cli_hub_info_any(const xet_cli_args_t *args,
    const char *operand);
static int xet_cli_hub_info_file(xet_cli_hub_t *hub, const char *operand,
    const xet_cli_hub_file_t *file);
static int xet_cli_hub_info_repo(const xet_cli_hub_t *hub,
    const char *operand);


int
xet_cli_hub_info(const xet_cli_args_t *args)
{
    static const xet_cli_hub_operands_t  operands = {
        xet_cli_hub_info_is, xet_cli_hub_info_any, xet_cli_info,
        XET_CLI_NETWORK
    };

    return xet_cli_hub_operands(args, &operands);
}


/*
 * Returns the type of an operand.  An existing local file is never looked up
 * on a Hub.
 */

static xet_cli_hub_operand_e
xet_cli_hub_info_is(const xet_cli_args_t *args, const char *operand)
{
    if (access(operand, F_OK) == 0) {
        return XET_CLI_HUB_LOCAL;
    }

    return xet_cli_hub_is(args, operand) ? XET_CLI_HUB_NAME
                                         : XET_CLI_HUB_HASH;
}


static int
xet_cli_hub_info_any(const xet_cli_args_t *args, const char *operand)
{
    int                  rc;
    xet_cli_hub_t        hub;
    xet_cli_hub_file_t   file;

    rc = xet_cli_hub_open_repo(&hub, args, operand);
    rc = rc ? rc : xet_cli_hub_look(&hub, 0);

    if (rc == XET_CLI_OK && *hub.path) {
        rc = xet_cli_hub_file(&hub, &file);

        if (rc == XET_CLI_OK) {
            rc = file.found ? xet_cli_hub_info_file(&hub, operand, &file)
                            : xet_cli_fail(XET_CLI_FAULT, operand,
                                           "no such file in this repository");
        }

    } else if (rc == XET_CLI_OK) {
        rc = xet_cli_hub_info_repo(&hub, operand);
    }

    xet_cli_hub_close(&hub);

    return rc;
}


/*
 * Prints the file's entry in the list, and then the output of xet info for its
 * hash.
 */

static int
xet_cli_hub_info_file(xet_cli_hub_t *hub, const char *operand,
    const xet_cli_hub_file_t *file)
{
    int              rc;
    char             sha256[2 * XET_CLI_SHA256_LEN + 1];
    const char      *oid;
    xet_cli_http_t  *cas;

    *xet_hash_print_plain((uint8_t *) sha256, file->sha256) = '\0';
    oid = *hub->oid ? hub->oid : NULL;

    rc = xet_cli_print(xet_cli_json(hub->args),
             xet_cli_out_text("name", operand, ": "),
             xet_cli_out_text("kind", "file of a Hub", "\n"),
             xet_cli_out_number_line("size", 12, "size", file->size),
             xet_cli_out_text_line("date", 12, "date",
                                   *file->date ? file->date : NULL),
             xet_cli_out_text_line("sha256", 12, "sha256",
                                   file->digested ? sha256 : NULL),
             xet_cli_out_text_line(oid ? "commit" : NULL, 12, "commit", oid));

    if (rc != XET_CLI_OK || !file->known || file->size == 0) {
        return rc;
    }

    cas = xet_cli_hub_cas(hub, &rc);

    return cas ? xet_cli_info_stored(hub->args, cas, operand, &file->hash)
               : rc;
}


static int
xet_cli_hub_info_repo(const xet_cli_hub_t *hub, const char *operand)
{
    return xet_cli_print(xet_cli_json(hub->args),
               xet_cli_out_text("name", operand, ": "),
               xet_cli_out_text("kind", xet_hub_kind_name(hub->kind), "\n"),
               xet_cli_out_text_line("repo", 12, "repo", hub->id),
               xet_cli_out_text_line("commit", 12, "commit",
                                     *hub->oid ? hub->oid : NULL));
}
