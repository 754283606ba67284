
/*
 * What the parts of "xet zt" share.
 */

#ifndef _XET_CLI_ZT_H_INCLUDED_
#define _XET_CLI_ZT_H_INCLUDED_


#include "xet_cli_transfer.h"


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    const char            *hash;
    const char            *name;       /* NULL: by --index, or none */
    int                    json;
} xet_cli_zt_t;


/*
 * The URL of a route of the file, "" or "/data", malloc()ed; NULL without
 * memory.  xet_cli_zt_arg() appends an argument, percent-encoded, unless value
 * is NULL; it takes url over, and returns NULL without memory or for NULL.
 */
char *xet_cli_zt_url(xet_cli_zt_t *z, const char *route);
char *xet_cli_zt_arg(char *url, const char *key, const char *value);

/* Appends object and role as the command line names them; takes url over. */
char *xet_cli_zt_object(xet_cli_zt_t *z, char *url);

/*
 * GET of a URL, which the call takes over.  *answer is the JSON that came, to
 * be released with json_decref().  XET_CLI_OK, or an exit code after a message.
 */
int xet_cli_zt_ask(xet_cli_zt_t *z, char *url, json_t **answer);

/* "xet zt get"; returns the exit code. */
int xet_cli_zt_get(xet_cli_zt_t *z);


#endif /* _XET_CLI_ZT_H_INCLUDED_ */
