
/*
 * Options and operands, by getopt_long().
 */


#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli.h"
#include "xet_hash.h"


typedef struct {
    const char  *name;
    const char  *value;                /* NULL: a flag */
    int          letter;
    const char  *text;
} xet_cli_option_row_t;


static const xet_cli_option_row_t  xet_cli_options[] = {
#define XET_CLI_OPTION_ROW(symbol, name, value, letter, text)                 \
    { name, value, letter, text },

    XET_CLI_OPTION_MAP(XET_CLI_OPTION_ROW)

#undef XET_CLI_OPTION_ROW
};


/* What getopt_long() wants: the tables of a verb's options. */

typedef struct {
    struct option  rows[XET_CLI_OPT_MAX + 1];
    char           letters[2 * XET_CLI_OPT_MAX + 2];
} xet_cli_getopt_t;


static void
xet_cli_args_table(xet_cli_getopt_t *g, uint64_t options)
{
    char           *letter;
    unsigned        i;
    struct option  *row;

    memset(g, 0, sizeof(xet_cli_getopt_t));

    row = g->rows;
    letter = g->letters;
    *letter++ = ':';

    for (i = 0; i < XET_CLI_OPT_MAX; i++) {

        if (!(options & ((uint64_t) 1 << i))) {
            continue;
        }

        row->name = xet_cli_options[i].name;
        row->has_arg = xet_cli_options[i].value ? required_argument
                                                : no_argument;
        row->val = 256 + (int) i;
        row++;

        if (xet_cli_options[i].letter) {
            *letter++ = (char) xet_cli_options[i].letter;

            if (xet_cli_options[i].value) {
                *letter++ = ':';
            }
        }
    }
}


static int
xet_cli_args_find(int c)
{
    int  i;

    if (c >= 256) {
        return c - 256;
    }

    for (i = 0; i < XET_CLI_OPT_MAX; i++) {
        if (xet_cli_options[i].letter == c) {
            break;
        }
    }

    return i;
}


int
xet_cli_args_parse(xet_cli_args_t *args, const xet_cli_verb_t *verb,
    int argc, char **argv)
{
    int               c;
    xet_cli_getopt_t  g;

    memset(args, 0, sizeof(xet_cli_args_t));

    args->verb = verb;

    xet_cli_args_table(&g, verb->options | XET_CLI_TAKES_ALL);

    opterr = 0;
    optind = 1;

    while ((c = getopt_long(argc, argv, g.letters, g.rows, NULL)) != -1) {

        if (c == '?' || c == ':') {
            return xet_cli_failf(XET_CLI_USAGE, verb->name,
                                 (c == ':') ? "%s needs a value"
                                            : "%s is not an option of it",
                                 argv[optind - 1]);
        }

        args->value[xet_cli_args_find(c)] = optarg ? optarg : "";
    }

    args->operands = argv + optind;
    args->count = argc - optind;

    if (args->value[XET_CLI_OPT_HELP]) {
        return XET_CLI_OK;
    }

    if (args->count < verb->min) {
        return xet_cli_failf(XET_CLI_USAGE, verb->name,
                             "needs %s, see \"xet help %s\"", verb->operands,
                             verb->name);
    }

    if (verb->max >= 0 && args->count > verb->max) {
        return xet_cli_failf(XET_CLI_USAGE, verb->name,
                             "\"%s\" is one too many",
                             args->operands[verb->max]);
    }

    return XET_CLI_OK;
}


int
xet_cli_args_number(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t min, uint64_t max, uint64_t def, uint64_t *number)
{
    char        *end;
    const char  *text;

    text = args->value[option];

    if (text == NULL) {
        *number = def;
        return XET_CLI_OK;
    }

    *number = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0'
        || *number < min || *number > max)
    {
        return xet_cli_failf(XET_CLI_USAGE, args->verb->name,
                             "--%s is a number from %llu to %llu",
                             xet_cli_options[option].name,
                             (unsigned long long) min,
                             (unsigned long long) max);
    }

    return XET_CLI_OK;
}


int
xet_cli_args_time(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t def, uint64_t *seconds)
{
    char        *end;
    uint64_t     unit;
    const char  *text;

    text = args->value[option];

    if (text == NULL) {
        *seconds = def;
        return XET_CLI_OK;
    }

    *seconds = strtoull(text, &end, 10);

    switch (*end) {

    case '\0':
    case 's':
        unit = 1;
        break;

    case 'm':
        unit = 60;
        break;

    case 'h':
        unit = 3600;
        break;

    case 'd':
        unit = 86400;
        break;

    default:
        unit = 0;
        break;
    }

    if (*text < '0' || *text > '9' || unit == 0
        || (*end != '\0' && end[1] != '\0')
        || *seconds == 0 || *seconds > 36500 * UINT64_C(86400) / unit)
    {
        return xet_cli_failf(XET_CLI_USAGE, args->verb->name,
                             "--%s is a time, as 90s, 15m, 2h or 7d",
                             xet_cli_options[option].name);
    }

    *seconds *= unit;

    return XET_CLI_OK;
}


int
xet_cli_args_hash(const char *text, void *hash)
{
    if (xet_hash_parse(hash, (const uint8_t *) text, strlen(text)) == XET_OK)
    {
        return XET_CLI_OK;
    }

    return xet_cli_fail(XET_CLI_USAGE, text, xet_status_text(XET_HASH_SYNTAX));
}


void
xet_cli_args_synopsis(FILE *out, const xet_cli_verb_t *verb)
{
    fprintf(out, "xet %s%s%s%s\n", verb->name,
            (verb->options & ~XET_CLI_TAKES_ALL) ? " [OPTION...]" : "",
            *verb->operands ? " " : "", verb->operands);
}


void
xet_cli_args_help(FILE *out, const xet_cli_verb_t *verb)
{
    fprintf(out, "usage: ");
    xet_cli_args_synopsis(out, verb);
    fprintf(out, "\n%s\n\n", verb->text);
    xet_cli_args_options(out, verb->options | XET_CLI_TAKES_ALL);
}


void
xet_cli_args_options(FILE *out, uint64_t options)
{
    char                         name[64];
    unsigned                     i;
    const xet_cli_option_row_t  *row;

    for (i = 0; i < XET_CLI_OPT_MAX; i++) {

        if (!(options & ((uint64_t) 1 << i))) {
            continue;
        }

        row = &xet_cli_options[i];

        snprintf(name, sizeof(name), "--%s%s%s", row->name,
                 row->value ? " " : "", row->value ? row->value : "");

        fprintf(out, "  %c%c%s%-22s %s\n",
                row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
                row->letter ? ", " : "  ", name, row->text);
    }
}
