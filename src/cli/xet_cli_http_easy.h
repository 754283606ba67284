
/*
 * The part of xet_cli_http that sets up one transfer; for its own files only.
 */

#ifndef _XET_CLI_HTTP_EASY_H_INCLUDED_
#define _XET_CLI_HTTP_EASY_H_INCLUDED_


#include "xet_cli_http.h"


struct xet_cli_http_s {
    CURLM                *multi;
    char                 *endpoint;
    const char           *cacert;
    const char           *token_file;
    const char           *token;
    unsigned              insecure:1;  /* it may go without TLS */
    unsigned              retries;
    unsigned              active;      /* in libcurl or waiting */
    unsigned              seed;
    xet_cli_request_t    *waiting;
    xet_cli_request_t    *running;     /* so that all can be broken off */
};


/*
 * Makes the handle of a request, with all options set.  XET_CLI_OK, or
 * XET_CLI_ERROR with the reason in r->error, if it is not memory.
 */
int xet_cli_http_easy(xet_cli_http_t *h, xet_cli_request_t *r);

/* Whether the answer was a redirection, and the request is to be sent there. */
int xet_cli_http_redirect(xet_cli_request_t *r);

/* The next transfer is of the URL itself. */
void xet_cli_http_origin(xet_cli_request_t *r);


#endif /* _XET_CLI_HTTP_EASY_H_INCLUDED_ */
