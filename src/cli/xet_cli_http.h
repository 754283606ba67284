
/*
 * HTTP, by libcurl: many requests at a time, one thread.
 *
 * A request is made by the caller, who owns it until its done handler was
 * called and may then free it, or start it again.  What may help is tried
 * again here: connections that break, 408, 429 and 5xx, after a time that
 * doubles, or that Retry-After names.  Nothing is retried for a POST other
 * than for a GET: all of the API is idempotent.
 *
 * An answer of 2xx goes to the write handler where there is one, or is kept in
 * data, and refused when it has more than max bytes; of all others the first
 * XET_CLI_HTTP_SHORT_MAX bytes are kept.
 *
 * Tokens are read from their file for each request, so that whoever renews
 * the file renews the token; they go to the API only, by TLS or to this
 * machine, unless --insecure-token says otherwise.  The same holds for a user
 * in a URL.
 *
 * Redirections are followed here, and not by libcurl, which would log in to
 * whatever host of ~/.netrc, or port of this one, it is sent to: another
 * scheme, host or port gets no credentials, nor does what that points to; and
 * a request that began with them and TLS does not go on without TLS.
 */

#ifndef _XET_CLI_HTTP_H_INCLUDED_
#define _XET_CLI_HTTP_H_INCLUDED_


#include <curl/curl.h>

#include "xet_cli.h"


#define XET_CLI_HTTP_ANSWER_MAX  (64 * 1024 * 1024)   /* bytes kept */
#define XET_CLI_HTTP_SHORT_MAX   (64 * 1024)          /* of short ones */
#define XET_CLI_HTTP_TEXT        1024                 /* of a URL, shown */


typedef struct xet_cli_http_s     xet_cli_http_t;
typedef struct xet_cli_request_s  xet_cli_request_t;

/* The exit code. */
typedef int (*xet_cli_operand_pt)(const xet_cli_args_t *args,
    xet_cli_http_t *h, const char *name);


struct xet_cli_request_s {

    /* set by the caller, who has zeroed the rest */

    const char         *method;        /* NULL: GET */
    char               *url;           /* malloc()ed, the request frees it */
    const uint8_t      *body;
    size_t              body_len;
    char                range[48];     /* "a-b", or empty */
    size_t              max;           /* of data; 0: the limit above */
    unsigned            api:1;         /* gets the token */
    unsigned            patient:1;     /* the answer may take any time */
    unsigned            netrc:1;       /* may log in as ~/.netrc says */

    /* not 0 ends the request */
    int               (*write)(xet_cli_request_t *r, const uint8_t *data,
                               size_t len);
    /* before the request is sent, each time */
    void              (*restart)(xet_cli_request_t *r);
    void              (*done)(xet_cli_request_t *r);
    void               *ctx;

    /* for the done handler */

    long                status;        /* 0: no answer, error says why */
    unsigned            refused:1;     /* by the write handler */
    unsigned            large:1;       /* refused, for it is more than max */
    char               *data;          /* with a zero byte behind it */
    size_t              len;
    int64_t             length;        /* Content-Length, or -1 */
    char                error[CURL_ERROR_SIZE];

    /* private */

    xet_cli_http_t     *http;
    xet_cli_request_t  *next;
    CURL               *easy;
    struct curl_slist  *headers;
    size_t              came;          /* bytes, kept or not */
    char               *place;         /* of a redirection, or NULL */
    unsigned            redirects;
    unsigned            foreign:1;     /* it led to another origin */
    unsigned            tls:1;         /* needed, for credentials were sent */
    unsigned            attempts;
    uint64_t            due;
};


/* NULL when that can't be, which has been told of; *rc is the exit code. */
xet_cli_http_t *xet_cli_http_create(const xet_cli_args_t *args, int *rc);

/* Breaks off what is still going on, without calling its handlers. */
void xet_cli_http_destroy(xet_cli_http_t *h);

/*
 * The endpoint and a path of it, malloc()ed; NULL without memory.  The format
 * begins with a slash.
 */
char *xet_cli_http_url(xet_cli_http_t *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * A URL as it may be shown: without a user and a password, and without its
 * arguments, which of a data URL are a capability.
 */
const char *xet_cli_http_text(const char *url, char text[XET_CLI_HTTP_TEXT]);

/* Whether a token has characters only that tokens have. */
int xet_cli_http_token_ok(const char *token);

/* XET_CLI_OK when an endpoint is known, else tells of it. */
int xet_cli_http_endpoint(xet_cli_http_t *h);

void xet_cli_http_start(xet_cli_http_t *h, xet_cli_request_t *r);

/*
 * Does what can be done now, or waits for it up to wait milliseconds.
 * XET_CLI_OK, or XET_CLI_INTERRUPTED.
 */
int xet_cli_http_step(xet_cli_http_t *h, int wait);

/* Starts a request and waits for its end; done is not to be set. */
int xet_cli_http_call(xet_cli_http_t *h, xet_cli_request_t *r);

/* The same for one of the API that needs nothing else, from its beginning. */
int xet_cli_http_ask(xet_cli_http_t *h, xet_cli_request_t *r,
    const char *method, char *url);

/*
 * Asks for the operands one after the other, until something worse happens
 * than XET_CLI_FAULT; the worst exit code.
 */
int xet_cli_http_operands(const xet_cli_args_t *args,
    xet_cli_operand_pt handler);

/* Requests that are not done. */
unsigned xet_cli_http_active(const xet_cli_http_t *h);

/* Frees the answer of a request that is done. */
void xet_cli_http_drop(xet_cli_request_t *r);

/* Frees what a request holds, not the request. */
void xet_cli_http_free(xet_cli_request_t *r);

/*
 * Whether a request that has failed may work later: there was no answer, the
 * server could not, or the token is too old.
 */
int xet_cli_http_passing(const xet_cli_request_t *r);

/*
 * Tells of a request that has failed: the code of the API and its message,
 * where it gave one.  The exit code that suits it.
 */
int xet_cli_http_fail(const xet_cli_request_t *r);


#endif /* _XET_CLI_HTTP_H_INCLUDED_ */
