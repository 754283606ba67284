
/*
 * A request by HTTP: what is asked for, what has come back, and the setting up
 * of the transfer.
 *
 * An answer of 2xx goes to the write handler if there is one, else it is kept
 * in data, and a longer one than max bytes ends the request.  Of any other
 * answer the first XET_CLI_REQUEST_SHORT bytes are kept.
 *
 * The token file is read again for each attempt, so that the token may be
 * renewed meanwhile.  Tokens go to the API only, by TLS or to this machine,
 * unless --insecure-token says otherwise.  The same holds for a user and a
 * password in a URL.
 *
 * Redirections are followed here, and not by libcurl, which would log in to any
 * host of ~/.netrc, or port of this machine, that it is sent to.  After a
 * redirection to another scheme, host or port a request gets no credentials any
 * more; and one that began with credentials and TLS does not leave TLS.
 */

#ifndef _XET_CLI_REQUEST_H_INCLUDED_
#define _XET_CLI_REQUEST_H_INCLUDED_


#include <curl/curl.h>

#include "xet_cli.h"


#define XET_CLI_REQUEST_MAX    (64 * 1024 * 1024)   /* bytes of an answer */
#define XET_CLI_REQUEST_SHORT  (64 * 1024)          /* of a short answer */


typedef struct xet_cli_http_s     xet_cli_http_t;
typedef struct xet_cli_request_s  xet_cli_request_t;


/* What all requests of a command have in common. */

typedef struct {
    const char         *cacert;
    const char         *token_file;
    const char         *token;
    unsigned            insecure:1;    /* tokens may be sent without TLS */
} xet_cli_request_conf_t;


struct xet_cli_request_s {

    /* set by the caller, who zeroes the other members */

    const char         *method;        /* NULL: GET */
    char               *url;           /* malloc()ed; freed with the request */
    const uint8_t      *body;
    size_t              body_len;
    char                range[48];     /* "a-b", or empty */
    size_t              max;           /* bytes; 0: XET_CLI_REQUEST_MAX */
    unsigned            api:1;         /* gets the token */
    unsigned            patient:1;     /* the answer may take any time */
    unsigned            netrc:1;       /* may log in as ~/.netrc says */

    /* takes bytes of an answer of 2xx; not 0 ends the request */
    int               (*write)(xet_cli_request_t *r, const uint8_t *data,
                               size_t len);
    /* called before each attempt; NULL: nothing to do */
    void              (*restart)(xet_cli_request_t *r);
    /* called once, when the request has ended; may be NULL */
    void              (*done)(xet_cli_request_t *r);
    void               *ctx;

    /* for the done handler */

    long                status;        /* 0: no answer, error says why */
    unsigned            refused:1;     /* by write, or too long for max */
    unsigned            large:1;       /* too long for max */
    char               *data;          /* with a zero byte behind it */
    size_t              len;
    int64_t             length;        /* Content-Length, or -1 */
    char                error[CURL_ERROR_SIZE];

    /* private */

    xet_cli_http_t     *http;
    xet_cli_request_t  *next;
    CURL               *easy;
    struct curl_slist  *headers;
    size_t              came;          /* bytes of the answer, kept or not */
    char               *place;         /* of a redirection, or NULL */
    unsigned            redirects;
    unsigned            foreign:1;     /* it led to another origin */
    unsigned            tls:1;         /* needed, for credentials were sent */
    unsigned            attempts;
    uint64_t            due;
};


/*
 * Makes the libcurl handle of a request, with all options set.  XET_CLI_OK, or
 * XET_CLI_ERROR with the reason in r->error; no reason: there is no memory.
 */
int xet_cli_request_easy(const xet_cli_request_conf_t *conf,
    xet_cli_request_t *r);

/*
 * Whether the answer was a redirection, so that the request must be sent again,
 * to the place that it now has.
 */
int xet_cli_request_redirect(xet_cli_request_t *r);

/* Forgets redirections: the next attempt is sent to r->url. */
void xet_cli_request_origin(xet_cli_request_t *r);

/* Whether a token has only printable ASCII characters and no blanks. */
int xet_cli_request_token_ok(const char *token);


#endif /* _XET_CLI_REQUEST_H_INCLUDED_ */
