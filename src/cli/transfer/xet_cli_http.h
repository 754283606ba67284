
/* The HTTP client of the command line. */

#ifndef _XET_CLI_HTTP_H_INCLUDED_
#define _XET_CLI_HTTP_H_INCLUDED_


#include "xet_cli.h"
#include "xet_net.h"


/*
 * An HTTP request and its response.
 *
 * The body of a 2xx response is passed to the write handler.  If there is no
 * handler, the body is kept in data; a body longer than max bytes ends the
 * request.  For any other response, only the first XET_CLI_REQUEST_SHORT bytes
 * are kept.
 *
 * The token file is read again for each attempt, so the token can be renewed
 * in the meantime.  A token is sent only to the API, and only by TLS or to
 * this machine, unless --insecure-token is given.  A user and a password in a
 * URL are also sent only by TLS or to this machine, unless --insecure-token is
 * given.
 *
 * Redirections are followed here, not by libcurl, which would send credentials
 * of ~/.netrc to any host, or to any port of this machine.  After a
 * redirection to another scheme, host or port a request has no credentials; a
 * request that started with credentials and TLS stays on TLS.
 */


#define XET_CLI_REQUEST_MAX    (64 * 1024 * 1024)   /* bytes of a response */
#define XET_CLI_REQUEST_SHORT  (64 * 1024)          /* bytes, short response */


typedef struct xet_cli_http_s     xet_cli_http_t;
typedef struct xet_cli_request_s  xet_cli_request_t;


struct xet_cli_request_s {

    /* set by the caller, who zeroes the other members */

    const char         *method;        /* NULL: GET */
    char               *url;           /* malloc()ed; freed with the request */
    const uint8_t      *body;
    size_t              body_len;
    const char         *type;          /* Content-Type header line of the body;
                                          NULL: octet-stream */
    char                range[48];     /* "a-b", or empty */
    size_t              max;           /* maximum size of a 2xx body kept in
                                          data; 0: XET_CLI_REQUEST_MAX */
    unsigned            api:1;         /* send the token */
    unsigned            patient:1;     /* no timeout for the response */
    unsigned            netrc:1;       /* may use ~/.netrc */

    /* called for data of a 2xx body; a result other than 0 ends the request */
    int               (*write)(xet_cli_request_t *r, const uint8_t *data,
                               size_t len);
    /* called before each attempt; may be NULL */
    void              (*restart)(xet_cli_request_t *r);
    /* called once, when the request has ended; may be NULL */
    void              (*done)(xet_cli_request_t *r);
    void               *ctx;

    /* results, for the done handler */

    long                status;        /* 0: no response, see error */
    unsigned            refused:1;     /* write failed, or body too long */
    unsigned            large:1;       /* body longer than max */
    unsigned            lost:1;        /* an earlier attempt may have
                                          succeeded: its response was lost */
    char               *data;          /* body, and a zero byte */
    size_t              len;
    int64_t             length;        /* Content-Length, or -1 */
    char                error[XET_NET_TEXT_MAX];

    /* private */

    xet_cli_http_t     *http;
    xet_cli_request_t  *next;
    xet_net_request_t   net;
    size_t              came;          /* bytes received, kept or not */
    char               *storage;       /* URL of a redirection, or NULL */
    unsigned            redirects;
    unsigned            foreign:1;     /* redirected to another origin */
    unsigned            tls:1;         /* stay on TLS: credentials were sent */
    unsigned            attempts;
    uint64_t            due;
};


/*
 * HTTP client: many requests at a time, in one thread.
 *
 * The caller owns a request, and must not move the structure until the done
 * handler is called.  The done handler may free the request or start it again.
 *
 * Broken connections and the statuses 408, 429 and 5xx except 501 are retried.
 * The delay before a retry doubles, or is taken from Retry-After, up to a
 * minute.  A POST is retried like a GET: all requests of the API are
 * idempotent.
 */


#define XET_CLI_HTTP_TEXT  1024        /* bytes of a URL in messages */


/* Runs a verb for the operand "name"; returns the exit code. */
typedef int (*xet_cli_operand_pt)(const xet_cli_args_t *args,
    xet_cli_http_t *h, const char *name);


/*
 * Creates the HTTP client of a verb from its options and the environment,
 * which must contain an endpoint or --url.  On an error, prints a message,
 * sets *rc to the exit code and returns NULL.
 */
xet_cli_http_t *xet_cli_http_create(const xet_cli_args_t *args, int *rc);

/* Like xet_cli_http_create(), but for the given endpoint. */
xet_cli_http_t *xet_cli_http_create_at(const xet_cli_args_t *args,
    const char *endpoint, int *rc);

/* Returns a token that does not expire soon; NULL after printing the error. */
typedef const char *(*xet_cli_renew_pt)(void *ctx);

/*
 * Sets a function that returns the token for each attempt; no other token is
 * used.  The function may wait for requests of another HTTP client, but not
 * for requests of this client.
 */
void xet_cli_http_renew(xet_cli_http_t *h, xet_cli_renew_pt renew,
    void *ctx);

/*
 * Sets the token; NULL: none.  A token file takes precedence.  The token is
 * not copied.
 */
void xet_cli_http_token(xet_cli_http_t *h, const char *token);

/* Returns the endpoint in the options or the environment, or "". */
const char *xet_cli_http_endpoint(const xet_cli_args_t *args);

/* Returns whether two URLs have the same scheme, host and port. */
int xet_cli_url_same(const char *one, const char *two);

/*
 * Returns the value of a header of the last response, or NULL.  The value is
 * valid until the next call or the next attempt.
 */
const char *xet_cli_http_header(const xet_cli_request_t *r,
    const char *name);

/*
 * Returns whether a token has only printable ASCII characters and no blanks.
 */
int xet_cli_request_token_ok(const char *token);

/* Destroys the client.  All its requests must have been freed. */
void xet_cli_http_destroy(xet_cli_http_t *h);

/*
 * Returns the endpoint followed by a path, malloc()ed; NULL if out of memory.
 * The format of the path starts with a slash.
 */
char *xet_cli_http_url(xet_cli_http_t *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Copies a URL to text, for a message.  User, password and arguments are left
 * out, because the arguments of a data URL are a capability.  Returns text.
 */
const char *xet_cli_http_text(const char *url, char text[XET_CLI_HTTP_TEXT]);

/*
 * Starts a request.  The done handler is called in xet_cli_http_step(), even
 * if the request could not be sent.
 */
void xet_cli_http_start(xet_cli_http_t *h, xet_cli_request_t *r);

/*
 * Runs all requests, and calls the done handlers of requests that end.  Waits
 * up to wait milliseconds for events; 0: does not wait.  Returns XET_CLI_OK,
 * or XET_CLI_INTERRUPTED after a signal.
 */
int xet_cli_http_step(xet_cli_http_t *h, int wait);

/*
 * Starts a request without a done handler, and waits for its end.  Returns
 * XET_CLI_OK for any response, or XET_CLI_INTERRUPTED.
 */
int xet_cli_http_call(xet_cli_http_t *h, xet_cli_request_t *r);

/*
 * Zeroes *r, initializes it as a request to the API and calls
 * xet_cli_http_call().  The default method (NULL) is GET.  url is malloc()ed,
 * and freed with the request; if url is NULL, the request fails.
 */
int xet_cli_http_ask(xet_cli_http_t *h, xet_cli_request_t *r,
    const char *method, char *url);

/*
 * Creates an HTTP client and calls the handler for each operand, until an exit
 * code is worse than XET_CLI_FAULT.  Returns the worst exit code.
 */
int xet_cli_http_operands(const xet_cli_args_t *args,
    xet_cli_operand_pt handler);

/* Cancels a request that is not done, and frees everything in *r. */
void xet_cli_http_free(xet_cli_request_t *r);

/*
 * Returns whether a failed request may succeed later: there was no response,
 * the server failed or was too busy, or the token has expired.
 */
int xet_cli_http_passing(const xet_cli_request_t *r);

/*
 * Returns whether a request to delete got 404 with this code, after the
 * response of an earlier attempt was lost.  This counts as success: the
 * earlier attempt must have deleted the object.
 */
int xet_cli_http_gone(const xet_cli_request_t *r, const char *code);

/*
 * Prints the error of a failed request, with the code and the message of the
 * API if the response contains them.  Returns XET_CLI_FAULT for 404 and 416,
 * else XET_CLI_NETWORK.
 */
int xet_cli_http_fail(const xet_cli_request_t *r);


/* Shared by xet_cli_http.c and xet_cli_request.c. */

/* The client, which all requests of a command share. */

struct xet_cli_http_s {
    xet_net_t          *net;
    char               *endpoint;
    const char         *token_file;
    const char         *token;
    xet_cli_renew_pt    renew;         /* NULL: token is used */
    void               *renew_ctx;
    unsigned            insecure:1;    /* tokens may be sent without TLS */
    unsigned            retries;
    unsigned            active;        /* requests running or waiting */
    unsigned            seed;
    uint64_t            noted;         /* time of the last message */
    unsigned            noted_retry;   /* its retry; 0 after a success */
    const void         *shown;         /* the request whose retry the progress
                                          bar shows, or NULL */
    xet_cli_request_t  *waiting;
};


/*
 * Passes an attempt to libcurl.  Returns XET_CLI_OK, or XET_CLI_ERROR with the
 * reason in r->error.  An empty r->error means out of memory.
 */
int xet_cli_request_start(xet_cli_request_t *r);

/*
 * Follows the redirection of a response.  Returns 1 if the request must be
 * sent again, to its next URL, and 0 if the response is not a redirection, or
 * one that must not be followed.
 */
int xet_cli_request_redirect(xet_cli_request_t *r);

/* Removes the retry of a request from the progress bar. */
void xet_cli_request_shown(const xet_cli_request_t *r);

/* Forgets the redirections: the next attempt uses the first URL. */
void xet_cli_request_origin(xet_cli_request_t *r);


#endif /* _XET_CLI_HTTP_H_INCLUDED_ */
