
/*
 * xet: the protocol on the command line.
 *
 *     xet hash FILE...      the file hash, as a Xet client computes it
 *     xet info FILE...      what a xorb or a shard holds, and whether it is
 *                           right
 *
 * "-" is the standard input.
 */


#include <string.h>

#include "xet_cli.h"


static const xet_cli_verb_t  xet_cli_verbs[] = {
    { "hash", "hash FILE...", xet_cli_hash },
    { "info", "info FILE...", xet_cli_info },
    { NULL, NULL, NULL }
};


static int
xet_cli_usage(FILE *out)
{
    const xet_cli_verb_t  *verb;

    for (verb = xet_cli_verbs; verb->name; verb++) {
        fprintf(out, "%s xet %s\n",
                (verb == xet_cli_verbs) ? "usage:" : "      ", verb->usage);
    }

    return XET_CLI_USAGE;
}


int
xet_cli_fail(int code, const char *name, const char *text)
{
    fprintf(stderr, "xet: %s: %s\n", name, text);

    return code;
}


const char *
xet_cli_hash_string(const xet_hash_t *hash, char text[XET_HASH_STR_LEN + 1])
{
    *xet_hash_print((uint8_t *) text, hash) = '\0';

    return text;
}


int
main(int argc, char **argv)
{
    const xet_cli_verb_t  *verb;

    if (argc < 2) {
        return xet_cli_usage(stderr);
    }

    if (strcmp(argv[1], "--help") == 0) {
        (void) xet_cli_usage(stdout);
        return XET_CLI_OK;
    }

    for (verb = xet_cli_verbs; verb->name; verb++) {

        if (strcmp(verb->name, argv[1]) == 0) {

            if (argc < 3) {
                return xet_cli_usage(stderr);
            }

            return verb->run(argc - 2, argv + 2);
        }
    }

    return xet_cli_usage(stderr);
}
