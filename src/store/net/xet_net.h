
/*
 * Requests by HTTP.  xet_net.c is the one file that transfers by libcurl: its
 * options, its limits and what its errors mean are the same for all callers.
 *
 * A client keeps connections, and is used by one thread at a time.  A request
 * belongs to its caller, who zeroes it, sets its members and starts it; it
 * stays where it is until done is called or it is closed.
 *
 *     (header)* -> start -> (step)* -> done -> close, and start again
 *                                   -> close
 *
 * Certificates are verified always.  Redirects are not followed.  A header, or
 * trailers, of more than 64 KiB end the request, and so does a coding of the
 * transfer that nobody has asked for.
 */

#ifndef _XET_NET_H_INCLUDED_
#define _XET_NET_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


#define XET_NET_TEXT_MAX  256          /* of an error, with its zero byte */


typedef struct xet_net_s          xet_net_t;
typedef struct xet_net_request_s  xet_net_request_t;


/* What has become of a request. */

typedef enum {
    XET_NET_OK = 0,                    /* a complete response, of any status */
    XET_NET_UNSENT,                    /* no connection: nothing was sent */
    XET_NET_AWAY,                      /* no response, or not in time */
    XET_NET_CUT,                       /* the response breaks off */
    XET_NET_REFUSED,                   /* the response was refused here */
    XET_NET_TRUST,                     /* the certificate is not trusted */
    XET_NET_LOCAL,                     /* memory, descriptors, or a file */
    XET_NET_OTHER
} xet_net_rc_t;


/* What a function does with bytes of a response. */

typedef enum {
    XET_NET_TAKEN = 0,
    XET_NET_PAUSE,                     /* they come again after a resume */
    XET_NET_STOP                       /* refused says why, or err */
} xet_net_taken_t;


/* Strings are not copied, and outlive the client. */

typedef struct {
    const char  *agent;                /* "User-Agent" */
    const char  *certificates;         /* a file of PEM, trusted instead of the
                                          system's; NULL or "": the system's */
    size_t       buffer;               /* bytes read or written at once */
    uint32_t     connections;          /* kept; 0: as libcurl has it */
    unsigned     proxy:1;              /* the environment may name one */
} xet_net_conf_t;


struct xet_net_request_s {

    /* set by the caller; what is pointed to outlives the request */

    const char           *method;      /* NULL: GET */
    const char           *url;
    const char           *range;       /* "a-b"; NULL or "": all bytes */
    const unsigned char  *data;        /* the body, or NULL: */
    int                   fd;          /* bytes of this file from offset on */
    uint64_t              offset;
    size_t                len;         /* of the body; none of GET, HEAD and
                                          DELETE */
    uint64_t              timeout;     /* ms, of all; 0: no limit */
    uint32_t              connect;     /* ms */
    uint32_t              silence;     /* s without a byte; 0: no limit */
    unsigned              direct:1;    /* no proxy */
    unsigned              tls:1;       /* https only */
    unsigned              netrc:1;     /* may log in as ~/.netrc says */

    /* takes bytes of the body, NULL: they are dropped; status and length
       are known */
    xet_net_taken_t     (*write)(xet_net_request_t *r, const char *data,
                                 size_t len);
    void                (*done)(xet_net_request_t *r);
    void                 *owner;

    /* set by write */

    const char           *refused;
    int                   err;         /* also of socket() or of pread() */

    /* set when done is called */

    xet_net_rc_t          rc;
    int                   status;      /* 0: no response */
    int64_t               length;      /* "Content-Length", or -1 */
    unsigned              tries;       /* libcurl repeats what finds a kept
                                          connection dead */
    unsigned              late:1;      /* it was out of time */
    uint64_t              took;        /* ms */
    uint64_t              up;          /* bytes of bodies that were moved */
    uint64_t              down;
    char                  why[XET_NET_TEXT_MAX];       /* printable */

    /* what xet_net_keep() has kept, with a zero byte; the caller frees it */

    char                 *body;
    size_t                body_len;

    /* private */

    xet_net_t            *net;         /* while it is under way */
    void                 *handle;
    void                 *lines;
    size_t                sent;
    size_t                head;
    size_t                room;
    char                  error[XET_NET_TEXT_MAX];
};


/*
 * Once in a process, before its threads make clients; 0: libcurl can't be
 * used. Each call that returns 1 has an xet_net_exit().
 */
int xet_net_init(void);
void xet_net_exit(void);

/* NULL without memory; no request is under way when a client is destroyed. */
xet_net_t *xet_net_create(const xet_net_conf_t *conf);
void xet_net_destroy(xet_net_t *net);

/* Adds a line of the header, which is copied.  0 without memory. */
int xet_net_header(xet_net_request_t *r, const char *line);

/*
 * XET_NET_OK: the request ends in a step.  Else rc and why are set and done
 * will not be called.
 */
xet_net_rc_t xet_net_start(xet_net_t *net, xet_net_request_t *r);

/*
 * Moves all requests on, after waiting up to wait ms for something to do, and
 * calls done of those that end.  *n, where n is not NULL, is their number.
 * NULL, or why libcurl has failed.
 */
const char *xet_net_step(xet_net_t *net, int wait, unsigned *n);

/* Ends the waiting of a step; the one function that any thread may call. */
void xet_net_wakeup(xet_net_t *net);

/* Gives the bytes of a pause to write, from within, and all that follow. */
void xet_net_resume(xet_net_request_t *r);

/* Appends to body.  0 without memory, with err set. */
int xet_net_keep(xet_net_request_t *r, const char *data, size_t len);

/* The last value of a name, after done, until the close; NULL: none. */
const char *xet_net_value(const xet_net_request_t *r, const char *name);

/* "Location" as a whole URL, likewise; and "Retry-After", s, 0: none. */
const char *xet_net_location(const xet_net_request_t *r);
int64_t xet_net_retry_after(const xet_net_request_t *r);

/* Ends a request that is under way, and frees all of it but body. */
void xet_net_close(xet_net_request_t *r);


#endif /* _XET_NET_H_INCLUDED_ */
