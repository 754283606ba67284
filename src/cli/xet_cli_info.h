
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
    const char            *name;       /* of what is looked at */
    int                    json;

    FILE                  *file;
    size_t                 len;
    uint8_t                buffer[XET_CLI_INFO_BUFFER];

    xet_cli_http_t        *http;       /* once it was needed */

    xet_cli_json_t         out;
    xet_json_t            *j;
} xet_cli_info_t;


/* A line "name: kind", and lines "  key  value"; or an object. */

void xet_cli_info_begin(xet_cli_info_t *in, const char *kind);
void xet_cli_info_string(xet_cli_info_t *in, const char *key,
    const char *value);
void xet_cli_info_u64(xet_cli_info_t *in, const char *key, uint64_t value);
void xet_cli_info_hash(xet_cli_info_t *in, const char *key,
    const xet_hash_t *hash);

/*
 * The end, with the verdict: XET_CLI_OK, or XET_CLI_FAULT for a status that is
 * not XET_OK, told of.
 */
int xet_cli_info_end(xet_cli_info_t *in, xet_status_t status);


/* A file or a xorb of the server. */
int xet_cli_info_remote(xet_cli_info_t *in, const xet_hash_t *hash);


#endif /* _XET_CLI_INFO_H_INCLUDED_ */
