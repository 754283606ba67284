
/* The configuration of a bucket, parsed from a string. */

#ifndef _XET_CLI_BUCKET_H_INCLUDED_
#define _XET_CLI_BUCKET_H_INCLUDED_


#include "xet_cli.h"
#include "xet_s3.h"


/* All strings point into words, which is malloc()ed. */

typedef struct {
    xet_s3_conf_t   s3;
    const char     *temp_path;
    char           *words;
} xet_cli_bucket_conf_t;


/*
 * Parses text, which has the form of the arguments of the directive xet_store.
 * Returns XET_CLI_OK, or an exit code after printing the error.  The caller
 * frees conf->words in any case.
 */
int xet_cli_bucket_conf(xet_cli_bucket_conf_t *conf, const char *text);


#endif /* _XET_CLI_BUCKET_H_INCLUDED_ */
