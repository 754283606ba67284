
/*
 * The HTTP client.  Only xet_net.c uses libcurl, so all callers share its
 * options, its limits and its mapping of errors.
 *
 * A client keeps connections, and is used by one thread at a time.  A request
 * belongs to its caller, who zeroes it, sets its members and starts it.  Its
 * address must not change until done is called or the request is closed.
 *
 *     (header)* -> start -> (step)* -> done -> close, and start again
 *                                   -> close
 *
 * Certificates are always verified.  Redirects are not followed.  Headers and
 * trailers of more than 64 KiB in total, or a transfer coding other than
 * "chunked", fail the request.
 */

#ifndef _XET_NET_H_INCLUDED_
#define _XET_NET_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


#define XET_NET_TEXT_MAX  256          /* size of error texts, with zero byte */


typedef struct xet_net_s          xet_net_t;
typedef struct xet_net_request_s  xet_net_request_t;


/* The result of a request. */

typedef enum {
    XET_NET_OK = 0,                    /* a complete response, of any status */
    XET_NET_UNSENT,                    /* no connection: nothing was sent */
    XET_NET_AWAY,                      /* no response, or a timeout */
    XET_NET_CUT,                       /* the response is truncated */
    XET_NET_REFUSED,                   /* stopped by write, or bad headers */
    XET_NET_TRUST,                     /* the certificate is not trusted */
    XET_NET_LOCAL,                     /* local failure: out of memory or file
                                          descriptors, or a file error */
    XET_NET_OTHER
} xet_net_rc_t;


/* The result of a write function, for the bytes of a response. */

typedef enum {
    XET_NET_TAKEN = 0,
    XET_NET_PAUSE,                     /* resume passes the bytes again */
    XET_NET_STOP                       /* refused or err is set */
} xet_net_taken_t;


/* Strings are not copied: they must outlive the client. */

typedef struct {
    const char  *agent;                /* "User-Agent" */
    const char  *certificates;         /* PEM file, trusted instead of the
                                          system's; NULL or "": the system's */
    size_t       buffer;               /* maximum bytes per read or write */
    uint32_t     connections;          /* maximum number that is kept
                                          open; 0: libcurl's default */
    unsigned     proxy:1;              /* use the proxy set in environment
                                          variables */
} xet_net_conf_t;


struct xet_net_request_s {

    /* set by the caller; pointers must stay valid until close */

    const char           *method;      /* NULL: GET */
    const char           *url;
    const char           *range;       /* "a-b"; NULL or "": all bytes */
    const unsigned char  *data;        /* the body; NULL: read from fd */
    int                   fd;          /* the file with the body */
    uint64_t              offset;      /* start of the body in fd */
    size_t                len;         /* body length; unused for GET, HEAD
                                          and DELETE */
    uint64_t              timeout;     /* total time in ms; 0: no limit */
    uint32_t              connect;     /* limit for connecting, ms */
    uint32_t              silence;     /* maximum s without data; 0: no limit */
    unsigned              direct:1;    /* no proxy */
    unsigned              tls:1;       /* https only */
    unsigned              netrc:1;     /* may use the login of ~/.netrc */

    /* gets bytes of the response body, after status and length are set;
       NULL: the body is discarded */
    xet_net_taken_t     (*write)(xet_net_request_t *r, const char *data,
                                 size_t len);
    void                (*done)(xet_net_request_t *r);
    void                 *owner;

    /* set by write */

    const char           *refused;     /* why the response is rejected */
    int                   err;         /* errno; also set if socket() or
                                          pread() fails */

    /* set when done is called */

    xet_net_rc_t          rc;
    int                   status;      /* HTTP status; 0: no response */
    int64_t               length;      /* "Content-Length", or -1 */
    unsigned              tries;       /* > 1: libcurl repeated the request
                                          because a kept connection was dead */
    unsigned              late:1;      /* the request timed out */
    uint64_t              took;        /* duration, ms */
    uint64_t              up;          /* bytes of the request body sent */
    uint64_t              down;        /* bytes of the response body */
    char                  why[XET_NET_TEXT_MAX];       /* printable message */

    /* bytes that xet_net_keep() has appended, and a zero byte; the caller
       frees body */

    char                 *body;
    size_t                body_len;

    /* private */

    xet_net_t            *net;         /* set while in flight, else NULL */
    void                 *handle;
    void                 *lines;
    size_t                sent;
    size_t                head;
    size_t                room;
    char                  error[XET_NET_TEXT_MAX];
};


/*
 * Call xet_net_init() before any thread creates a client.  It returns 0 if
 * libcurl failed.  Each call that returns 1 needs one xet_net_exit().
 */
int xet_net_init(void);
void xet_net_exit(void);

/*
 * Create and destroy a client.  xet_net_create() returns NULL if out of
 * memory.  No request may be in flight on xet_net_destroy().
 */
xet_net_t *xet_net_create(const xet_net_conf_t *conf);
void xet_net_destroy(xet_net_t *net);

/* Adds a copy of a header line.  Returns 0 if out of memory. */
int xet_net_header(xet_net_request_t *r, const char *line);

/*
 * Starts a request.  XET_NET_OK: a later step ends the request and calls done.
 * Otherwise rc and why are set, and done is not called.
 */
xet_net_rc_t xet_net_start(xet_net_t *net, xet_net_request_t *r);

/*
 * Waits up to wait ms for events, continues all requests, and calls done for
 * requests that end.  If n is not NULL, *n is the number of ended requests.
 * Returns NULL, or a message if libcurl failed.
 */
const char *xet_net_step(xet_net_t *net, int wait, unsigned *n);

/*
 * Wakes up a step that waits.  Unlike the other functions, this function may
 * be called in any thread.
 */
void xet_net_wakeup(xet_net_t *net);

/* Ends a pause: calls write for the paused bytes and for later bytes. */
void xet_net_resume(xet_net_request_t *r);

/* Appends len bytes to body.  Returns 0 and sets err if out of memory. */
int xet_net_keep(xet_net_request_t *r, const char *data, size_t len);

/* Returns the last value of a header, valid from done to close, or NULL. */
const char *xet_net_value(const xet_net_request_t *r, const char *name);

/*
 * Return "Location" as an absolute URL, valid from done to close, or NULL; and
 * "Retry-After" in seconds, 0 if there is no such header.
 */
const char *xet_net_location(const xet_net_request_t *r);
int64_t xet_net_retry_after(const xet_net_request_t *r);

/* Ends a request that is in flight, and frees all of it except body. */
void xet_net_close(xet_net_request_t *r);


#endif /* _XET_NET_H_INCLUDED_ */
