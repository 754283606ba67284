
/*
 * HTTP, by libcurl: many requests at a time, one thread.
 *
 * A request is made by the caller, who owns it until its done handler was
 * called and may then free it, or start it again.  What may help is tried
 * again here: connections that break, 408, 429 and 5xx, after a time that
 * doubles, or that Retry-After names.  Nothing is retried for a POST other
 * than for a GET: all of the API is idempotent.
 */

#ifndef _XET_CLI_HTTP_H_INCLUDED_
#define _XET_CLI_HTTP_H_INCLUDED_


#include "xet_cli_request.h"


/* The exit code. */
typedef int (*xet_cli_operand_pt)(const xet_cli_args_t *args,
    xet_cli_http_t *h, const char *name);


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
