
/*
 * The table of options, and parsers for numbers, times, sizes in bytes and
 * hashes.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli.h"


const xet_cli_option_row_t  xet_cli_options[XET_CLI_OPT_MAX] = {
#define XET_CLI_OPTION_ROW(symbol, name, value, letter, text)                 \
    { name, value, letter, text },

    XET_CLI_OPTION_MAP(XET_CLI_OPTION_ROW)

#undef XET_CLI_OPTION_ROW
};


int
xet_cli_args_number(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t min, uint64_t max, uint64_t def, uint64_t *number)
{
    char        *end;
    const char  *text = args->value[option];

    if (text == NULL) {
        *number = def;
        return XET_CLI_OK;
    }

    *number = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0'
        || *number < min || *number > max)
    {
        return xet_cli_failf(XET_CLI_USAGE, args->verb,
                             "--%s must be a number from %llu to %llu",
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
    const char  *text = args->value[option];

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
        return xet_cli_failf(XET_CLI_USAGE, args->verb,
                             "--%s must be a time such as 90s, 15m, 2h or 7d",
                             xet_cli_options[option].name);
    }

    *seconds *= unit;

    return XET_CLI_OK;
}


int
xet_cli_args_bytes(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t *bytes)
{
    int          shift;
    char        *end;
    const char  *text = args->value[option];

    *bytes = 0;

    if (text == NULL) {
        return XET_CLI_OK;
    }

    *bytes = strtoull(text, &end, 10);

    shift = (*end == 'k') ? 10 : (*end == 'm') ? 20 : (*end == 'g') ? 30 : 0;

    if (*text < '0' || *text > '9' || (*end && (shift == 0 || end[1]))
        || *bytes == 0 || *bytes > (UINT64_C(1) << 50 >> shift))
    {
        return xet_cli_failf(XET_CLI_USAGE, args->verb,
                             "--%s must be a number of bytes such as 100k, 50m "
                             "or 1g",
                             xet_cli_options[option].name);
    }

    *bytes <<= shift;

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
