
/*
 * HTTP, by libcurl: many requests at a time, one thread.
 *
 * The caller owns a request.  It must stay in its place until its done handler
 * is called, which may free it or start it again.  Broken connections, 408,
 * 429 and 5xx except 501 are retried here, after a time that doubles or that
 * Retry-After names, a minute at most.  A POST is retried like a GET: all
 * requests of the API are idempotent.
 */

#ifndef _XET_CLI_HTTP_H_INCLUDED_
#define _XET_CLI_HTTP_H_INCLUDED_


#include "xet_cli_request.h"


#define XET_CLI_HTTP_TEXT  1024        /* bytes of a URL, shown */


/* Handles one operand of a verb, name; returns the exit code. */
typedef int (*xet_cli_operand_pt)(const xet_cli_args_t *args,
    xet_cli_http_t *h, const char *name);


/*
 * Makes the HTTP client of a verb from its options and the environment; the
 * endpoint may be missing.  NULL on an error, reported; *rc is the exit code.
 */
xet_cli_http_t *xet_cli_http_create(const xet_cli_args_t *args, int *rc);

/* Breaks off all requests that are not done, without calling handlers. */
void xet_cli_http_destroy(xet_cli_http_t *h);

/*
 * The endpoint and a path behind it, malloc()ed; NULL without memory.  The
 * format of the path begins with a slash.
 */
char *xet_cli_http_url(xet_cli_http_t *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Writes a URL as it may be shown: without a user and a password, and without
 * its arguments, because the arguments of a data URL are a capability.  Returns
 * text.
 */
const char *xet_cli_http_text(const char *url, char text[XET_CLI_HTTP_TEXT]);

/* XET_CLI_OK if there is an endpoint, else XET_CLI_USAGE, reported. */
int xet_cli_http_endpoint(xet_cli_http_t *h);

/* Starts a request; it ends in xet_cli_http_step(), also if it fails. */
void xet_cli_http_start(xet_cli_http_t *h, xet_cli_request_t *r);

/*
 * Moves all requests on, and calls the done handlers of those that end.  Waits
 * up to wait milliseconds for something to do; 0: does not wait.  XET_CLI_OK,
 * or XET_CLI_INTERRUPTED after a signal.
 */
int xet_cli_http_step(xet_cli_http_t *h, int wait);

/*
 * Starts a request, whose done handler is NULL, and waits for its end.
 * XET_CLI_OK, whatever the answer is, or XET_CLI_INTERRUPTED.
 */
int xet_cli_http_call(xet_cli_http_t *h, xet_cli_request_t *r);

/*
 * Zeroes *r, sets it up as a request of the API and calls it by
 * xet_cli_http_call().  A method of NULL is GET.  The url is malloc()ed, and
 * is freed with the request; with a url of NULL the request fails.
 */
int xet_cli_http_ask(xet_cli_http_t *h, xet_cli_request_t *r,
    const char *method, char *url);

/*
 * Makes an HTTP client and calls the handler for each operand, until one
 * returns something worse than XET_CLI_FAULT.  Returns the worst exit code.
 */
int xet_cli_http_operands(const xet_cli_args_t *args,
    xet_cli_operand_pt handler);

/* The number of requests that are not done. */
unsigned xet_cli_http_active(const xet_cli_http_t *h);

/* Frees the answer of a request that is done. */
void xet_cli_http_drop(xet_cli_request_t *r);

/* Gives up a request that is not done, and frees all that *r holds. */
void xet_cli_http_free(xet_cli_request_t *r);

/*
 * Whether a request that has failed may succeed later: there was no answer,
 * the server failed or was too busy, or the token has expired.
 */
int xet_cli_http_passing(const xet_cli_request_t *r);

/*
 * Reports a request that has failed, with the code and the message of the API
 * where the answer has them.  XET_CLI_FAULT for 404 and 416, XET_CLI_NETWORK
 * for all else.
 */
int xet_cli_http_fail(const xet_cli_request_t *r);


#endif /* _XET_CLI_HTTP_H_INCLUDED_ */
