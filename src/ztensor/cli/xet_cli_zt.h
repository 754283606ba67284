
/*
 * What the parts of "xet zt" share.
 */

#ifndef _XET_CLI_ZT_H_INCLUDED_
#define _XET_CLI_ZT_H_INCLUDED_


#include "xet_cli_http.h"
#include "xet_cli_json.h"


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    const char            *hash;
    const char            *name;       /* NULL: by --index, or none */
    int                    json;
} xet_cli_zt_t;


/*
 * The URL of a route of the file, malloc()ed; with an argument more, percent-
 * encoded, where value is not NULL.  NULL without memory, or when url is NULL.
 */
char *xet_cli_zt_url(xet_cli_zt_t *z, const char *route);
char *xet_cli_zt_arg(char *url, const char *key, const char *value);

/* The object and its role, as the command line names them. */
char *xet_cli_zt_object(xet_cli_zt_t *z, char *url);

/*
 * GET of a URL, which it takes over, with JSON as the answer, to be released.
 * XET_CLI_OK or an exit code, told of.
 */
int xet_cli_zt_ask(xet_cli_zt_t *z, char *url, json_t **answer);

int xet_cli_zt_get(xet_cli_zt_t *z);


#endif /* _XET_CLI_ZT_H_INCLUDED_ */
