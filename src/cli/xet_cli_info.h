
/*
 * What "xet info" has found, as text or as JSON; and its part that asks a
 * server.
 */

#ifndef _XET_CLI_INFO_H_INCLUDED_
#define _XET_CLI_INFO_H_INCLUDED_


#include "xet_cli_http.h"
#include "xet_cli_json.h"


#define XET_CLI_INFO_BUFFER  65536


typedef struct {
    const xet_cli_args_t  *args;
    const char            *name;       /* the operand */
    int                    json;

    FILE                  *file;
    size_t                 len;
    uint8_t                buffer[XET_CLI_INFO_BUFFER];

    xet_cli_http_t        *http;       /* NULL: not needed so far */

    xet_cli_json_t         out;
    xet_json_t            *j;
} xet_cli_info_t;


/* Print a line "name: kind" and lines "  key  value", or a JSON object. */

void xet_cli_info_begin(xet_cli_info_t *in, const char *kind);
void xet_cli_info_string(xet_cli_info_t *in, const char *key,
    const char *value);
void xet_cli_info_u64(xet_cli_info_t *in, const char *key, uint64_t value);
void xet_cli_info_hash(xet_cli_info_t *in, const char *key,
    const xet_hash_t *hash);

/*
 * Ends what xet_cli_info_begin() has begun, with a verdict.  XET_CLI_OK, or
 * XET_CLI_FAULT for a status other than XET_OK, reported; or the exit code of
 * a failure to print, if that is worse.
 */
int xet_cli_info_end(xet_cli_info_t *in, xet_status_t status);


/* Prints the file or xorb of the server with this hash; an exit code. */
int xet_cli_info_remote(xet_cli_info_t *in, const xet_hash_t *hash);


#endif /* _XET_CLI_INFO_H_INCLUDED_ */
