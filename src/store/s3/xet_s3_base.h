
/*
 * Internals that the files of the client share, from the lowest layer up:
 * time, error, url, credentials, transfer, request.  Objects, lists and
 * uploads are built on them.
 */

#ifndef _XET_S3_BASE_H_INCLUDED_
#define _XET_S3_BASE_H_INCLUDED_


#include "xet.h"
#include "xet_net.h"
#include "xet_s3.h"

#include <pthread.h>


#define XET_S3_SERVICE      "s3"
#define XET_S3_TOKEN_MAX    2048
#define XET_S3_ACCESS_MAX   128        /* access key id, or secret key */
#define XET_S3_PATH_MAX     (XET_S3_KEY_MAX + 80)
#define XET_S3_HOST_MAX     256
#define XET_S3_TAG_MAX      128        /* ETag */
#define XET_S3_SHA_MAX      65         /* hex digits and a zero byte */
#define XET_S3_BODY_MAX     (64 * 1024)        /* response body in memory */
#define XET_S3_LIST_MAX     (8 * 1024 * 1024)  /* list of 1000 escaped names */


/* xet_s3_time.c */

/* Returns the time of a monotonic clock, in ms. */
uint64_t xet_s3_time_ms(void);

/*
 * Parses a time like "Sun, 06 Nov 1994 08:49:37 GMT".  Returns seconds since
 * 1970, or -1 for any other text.
 */
int64_t xet_s3_time_http(const char *text);

/* Parses a time like "2026-11-23T08:12:06.000Z"; returns -1 for other text. */
int64_t xet_s3_time_iso(const char *text);

/* Writes "20261123T081206Z" to dst, XET_SIGV4_DATE_LEN + 1 bytes. */
void xet_s3_time_amz(char *dst, int64_t seconds);


/* xet_s3_error.c */

/* Sets error, in printable ASCII; error may be NULL.  Returns rc. */
xet_s3_rc_t xet_s3_error(xet_s3_error_t *error, xet_s3_rc_t rc, int status,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Writes 2 * len hex digits and a zero byte to dst. */
void xet_s3_hex(char *dst, const uint8_t *src, size_t len);


/* xet_s3_url.c: the address of the objects. */

typedef struct {
    char      base[XET_S3_HOST_MAX + 16];      /* "https://host:port" */
    char      host[XET_S3_HOST_MAX];           /* value of "Host" */
    char      bucket[64];
    char      prefix[XET_S3_NAME_MAX];         /* "", or ends with a slash */
    unsigned  path_style:1;
} xet_s3_url_t;

xet_s3_rc_t xet_s3_url_parse(xet_s3_url_t *url, const xet_s3_conf_t *conf,
    xet_s3_error_t *error);

/* Parses the public endpoint; inside is the result of xet_s3_url_parse(). */
xet_s3_rc_t xet_s3_url_public(xet_s3_url_t *url, const xet_s3_url_t *inside,
    const xet_s3_conf_t *conf, xet_s3_error_t *error);

/*
 * Writes the decoded path of a name, or of the bucket if name is NULL, in up
 * to XET_S3_PATH_MAX bytes.  XET_S3_CONF: the name is not allowed.
 */
xet_s3_rc_t xet_s3_url_path(const xet_s3_url_t *url, const char *name,
    char *path, xet_s3_error_t *error);


/* xet_s3_credentials.c */

typedef struct {
    char  id[XET_S3_ACCESS_MAX];
    char  secret[XET_S3_ACCESS_MAX];
    char  token[XET_S3_TOKEN_MAX];     /* "": no token */
} xet_s3_keys_t;


typedef struct {
    pthread_mutex_t  lock;             /* protects the members below */
    const char      *file;
    const char      *profile;
    const char      *region;
    xet_s3_keys_t    keys;
    unsigned         generation;       /* incremented for new keys */
    uint64_t         loaded;           /* time of the last read, ms */
    char             day[XET_SIGV4_DAY_LEN + 1];   /* date of the key */
    uint8_t          key[XET_SIGV4_KEY_LEN];       /* derived from secret */
} xet_s3_credentials_t;


/* A copy of the keys to sign with, which a reload does not change. */

typedef struct {
    char      id[XET_S3_ACCESS_MAX];
    char      token[XET_S3_TOKEN_MAX];
    unsigned  generation;
    uint8_t   key[XET_SIGV4_KEY_LEN];
} xet_s3_signer_t;


xet_s3_rc_t xet_s3_credentials_create(xet_s3_credentials_t *c,
    const xet_s3_conf_t *conf, xet_s3_error_t *error);
void xet_s3_credentials_destroy(xet_s3_credentials_t *c);

xet_s3_rc_t xet_s3_credentials_load(xet_s3_credentials_t *c,
    xet_s3_error_t *error);

/*
 * Called when the store has denied a request that was signed with keys of this
 * generation.  Returns whether the loaded keys are newer.  Reads the file at
 * most once a second, so the function may sleep, but not past deadline.
 */
int xet_s3_credentials_renew(xet_s3_credentials_t *c, unsigned generation,
    uint64_t deadline);

/*
 * Copies the keys for a date in the format of xet_s3_time_amz().  Returns 0 if
 * OpenSSL failed.
 */
int xet_s3_credentials_signer(xet_s3_credentials_t *c, const char *date,
    xet_s3_signer_t *signer);


/*
 * xet_s3_transfer.c: one request and its response, as bytes.
 */

typedef struct xet_s3_transfer_s   xet_s3_transfer_t;
typedef struct xet_s3_transfers_s  xet_s3_transfers_t;

typedef void (*xet_s3_transfer_pt)(xet_s3_transfer_t *t);


#define XET_S3_TRANSFER_HEADERS  16

struct xet_s3_transfer_s {
    xet_s3_transfer_t     *next;
    xet_s3_transfers_t    *transfers;
    xet_s3_transfer_pt     done;       /* called in the transfers' thread */
    void                  *owner;

    /*
     * The request.  Its method, URL and body in net, and the members below,
     * must stay valid until done.  A response body that does not go to buf is
     * in net, and the caller frees it.
     */

    xet_net_request_t      net;
    const char            *headers[XET_S3_TRANSFER_HEADERS];  /* header lines */
    size_t                 nheaders;
    unsigned char         *buf;        /* for the body of a 2xx, or NULL */
    size_t                 size;
    size_t                 most;       /* maximum size of a body that is not
                                          written to buf */
    uint64_t               deadline;   /* ms, by xet_s3_time_ms() */
    unsigned               again;      /* this is a retry */

    /* the response */

    size_t                 got;        /* bytes in buf */
    char                   etag[XET_S3_TAG_MAX];
    char                   date[40];
    char                   modified[40];
    char                   range[80];  /* "Content-Range" */
    char                   region[64];
    char                   sum[64];    /* "x-amz-checksum-sha256" */
    uint32_t               retry;      /* "Retry-After", s */
};


xet_s3_transfers_t *xet_s3_transfers_create(const xet_s3_conf_t *conf);
void xet_s3_transfers_destroy(xet_s3_transfers_t *ts);

/* Ends the thread; new transfers are refused. */
void xet_s3_transfers_stop(xet_s3_transfers_t *ts);
int xet_s3_transfers_stopped(xet_s3_transfers_t *ts);

/*
 * Queues a transfer.  The members of the response must be zero.  Returns 0,
 * and does not call done, if the thread can't be started or has ended.
 */
int xet_s3_transfers_post(xet_s3_transfers_t *ts, xet_s3_transfer_t *t);

/* Returns the number of transfers in flight. */
uint32_t xet_s3_transfers_busy(xet_s3_transfers_t *ts);


/* xet_s3_report.c: reports to the metrics callback, unless it is NULL. */

void xet_s3_report_transfer(xet_s3_report_pt report, const xet_s3_transfer_t
    *t);
void xet_s3_report_withheld(xet_s3_report_pt report, const char *method);


/* The client. */

struct xet_s3_s {
    const xet_s3_conf_t   *conf;
    xet_s3_conf_t          copy;       /* *conf, with defaults filled in */
    xet_s3_url_t           url;
    xet_s3_url_t           outside;    /* the public endpoint */
    xet_s3_credentials_t   credentials;
    xet_s3_transfers_t    *transfers;

    pthread_mutex_t        lock;       /* protects this group */
    int64_t                skew;       /* store's clock minus ours, s */
    uint64_t               silent;     /* start of the silence, ms; or 0 */
    uint64_t               tried;      /* time of opening or last trial, ms */
    unsigned               open:1;     /* the circuit breaker is open */
    uint64_t               random;
};


/* xet_s3_request.c: a signed request, its result, and its retries. */

#define XET_S3_REQUEST_PAIRS  8

typedef struct {
    xet_s3_t            *s3;
    const char          *method;
    const char          *name;         /* NULL: the bucket */
    xet_sigv4_pair_t     args[XET_S3_REQUEST_PAIRS];
    size_t               nargs;
    xet_sigv4_pair_t     headers[XET_S3_REQUEST_PAIRS];
    size_t               nheaders;
    char                 sha256[XET_S3_SHA_MAX];   /* body hash, as hex */
    unsigned             is_xml:1;     /* the body of a 200 may be an error */

    unsigned             unsure:1;     /* an attempt may have succeeded */
    unsigned             generation;   /* generation of the keys used */
    xet_s3xml_answer_t   answer;
    xet_s3_transfer_t    t;

    char                 path[XET_S3_PATH_MAX];
    char                 url[XET_S3_URL_MAX];
    char                 text[2 * XET_S3_URL_MAX]; /* text of the headers */
} xet_s3_request_t;


/* Sets up a request without a body. */
void xet_s3_request_init(xet_s3_request_t *r, xet_s3_t *s3, const char *method,
    const char *name);
void xet_s3_request_free(xet_s3_request_t *r);

void xet_s3_request_arg(xet_s3_request_t *r, const char *name,
    const char *value);
void xet_s3_request_header(xet_s3_request_t *r, const char *name,
    const char *value);

/* Sets a body in memory, and its SHA-256.  Returns 0 if OpenSSL failed. */
int xet_s3_request_body(xet_s3_request_t *r, const unsigned char *data,
    size_t len);

/* Sends a request, waits for the response, and retries. */
xet_s3_rc_t xet_s3_request_send(xet_s3_request_t *r, xet_s3_error_t *error);

/* Calls xet_s3_request_send() with a deadline by xet_s3_time_ms(). */
xet_s3_rc_t xet_s3_request_until(xet_s3_request_t *r, uint64_t deadline,
    xet_s3_error_t *error);

/* Sends once, without waiting; done is called only after XET_S3_OK. */
xet_s3_rc_t xet_s3_request_post(xet_s3_request_t *r, xet_s3_transfer_pt done,
    void *owner, xet_s3_error_t *error);

/* Returns the result of a posted request; may be called in done or later. */
xet_s3_rc_t xet_s3_request_result(xet_s3_request_t *r, xet_s3_error_t *error);


#endif /* _XET_S3_BASE_H_INCLUDED_ */
