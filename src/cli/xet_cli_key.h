
/*
 * Key files, as the directives xet_url_key and xet_token_key read them.
 */

#ifndef _XET_CLI_KEY_H_INCLUDED_
#define _XET_CLI_KEY_H_INCLUDED_


#include "xet_cli.h"


#define XET_CLI_KEY_ID_MAX      255
#define XET_CLI_KEY_SECRET_MAX  1024


typedef struct {
    uint8_t  *file;                    /* all of it */
    size_t    len;

    /* of the first line "id:hex" */

    uint8_t   id[XET_CLI_KEY_ID_MAX + 1];
    size_t    id_len;
    uint8_t   secret[XET_CLI_KEY_SECRET_MAX];
    size_t    secret_len;
} xet_cli_key_t;


/*
 * Reads the file that --key names.  XET_CLI_OK; XET_CLI_USAGE without --key or
 * XET_CLI_ERROR, reported.  xet_cli_key_free() is to be called in any case.
 */
int xet_cli_key_read(xet_cli_key_t *key, const xet_cli_args_t *args);

/*
 * Reads id and secret from the first line of the file that is neither empty
 * nor a comment.  XET_CLI_OK, or XET_CLI_ERROR if that line is not "id:hex",
 * reported.
 */
int xet_cli_key_secret(xet_cli_key_t *key, const xet_cli_args_t *args);

/* Wipes the secret and the file, and frees the file. */
void xet_cli_key_free(xet_cli_key_t *key);


#endif /* _XET_CLI_KEY_H_INCLUDED_ */
