
/*
 * What the files of the client share, from below: time, error, url,
 * credentials, transfer, request; above these are objects, lists, uploads.
 */

#ifndef _XET_S3_BASE_H_INCLUDED_
#define _XET_S3_BASE_H_INCLUDED_


#include "xet.h"
#include "xet_net.h"
#include "xet_s3.h"

#include <pthread.h>


#define XET_S3_SERVICE      "s3"
#define XET_S3_TOKEN_MAX    2048
#define XET_S3_ACCESS_MAX   128        /* of an access key, or its secret */
#define XET_S3_PATH_MAX     (XET_S3_KEY_MAX + 80)
#define XET_S3_HOST_MAX     256
#define XET_S3_TAG_MAX      128        /* of an ETag */
#define XET_S3_SHA_MAX      65         /* hex, and a zero byte */
#define XET_S3_BODY_MAX     (64 * 1024)        /* of an answer to be read */
#define XET_S3_LIST_MAX     (8 * 1024 * 1024)  /* of 1000 names, all escaped */


/* xet_s3_time.c */

/* Of a clock that is never set, ms. */
uint64_t xet_s3_time_ms(void);

/* Seconds since 1970, -1 for another text: "Sun, 06 Nov 1994 08:49:37 GMT". */
int64_t xet_s3_time_http(const char *text);

/* The same of "2026-11-23T08:12:06.000Z". */
int64_t xet_s3_time_iso(const char *text);

/* "20261123T081206Z" to dst, of XET_SIGV4_DATE_LEN + 1 bytes. */
void xet_s3_time_amz(char *dst, int64_t seconds);


/* xet_s3_error.c */

/* Sets the text, without what can't be printed; error may be NULL.  Is rc. */
xet_s3_rc_t xet_s3_error(xet_s3_error_t *error, xet_s3_rc_t rc, int status,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Twice len digits, and a zero byte. */
void xet_s3_hex(char *dst, const uint8_t *src, size_t len);


/* xet_s3_url.c: where the objects are. */

typedef struct {
    char      base[XET_S3_HOST_MAX + 16];      /* "https://host:port" */
    char      host[XET_S3_HOST_MAX];           /* as in "Host" */
    char      bucket[64];
    char      prefix[XET_S3_NAME_MAX];         /* "", or ends with a slash */
    unsigned  path_style:1;
} xet_s3_url_t;

xet_s3_rc_t xet_s3_url_parse(xet_s3_url_t *url, const xet_s3_conf_t *conf,
    xet_s3_error_t *error);

/* The same objects by the public endpoint; inside is what was parsed. */
xet_s3_rc_t xet_s3_url_public(xet_s3_url_t *url, const xet_s3_url_t *inside,
    const xet_s3_conf_t *conf, xet_s3_error_t *error);

/*
 * The decoded path of a name, or of the bucket for NULL, in XET_S3_PATH_MAX
 * bytes.  XET_S3_CONF for a name that can't be one.
 */
xet_s3_rc_t xet_s3_url_path(const xet_s3_url_t *url, const char *name,
    char *path, xet_s3_error_t *error);


/* xet_s3_credentials.c */

typedef struct {
    char  id[XET_S3_ACCESS_MAX];
    char  secret[XET_S3_ACCESS_MAX];
    char  token[XET_S3_TOKEN_MAX];     /* "" without */
} xet_s3_keys_t;


typedef struct {
    pthread_mutex_t  lock;             /* of all below */
    const char      *file;
    const char      *profile;
    const char      *region;
    xet_s3_keys_t    keys;
    unsigned         generation;       /* other keys, another number */
    uint64_t         loaded;           /* the file was read, ms */
    char             day[XET_SIGV4_DAY_LEN + 1];   /* of key */
    uint8_t          key[XET_SIGV4_KEY_LEN];       /* derived */
} xet_s3_credentials_t;


/* To sign with: a copy, which stays as it is. */

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
 * A store has denied a request that was signed with keys of the generation:
 * whether there are others now.  The file is read again, at most once a
 * second, for which this waits, but not past deadline.
 */
int xet_s3_credentials_renew(xet_s3_credentials_t *c, unsigned generation,
    uint64_t deadline);

/* For a date as xet_s3_time_amz() has it; 0 when OpenSSL fails. */
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
    xet_s3_transfer_pt     done;       /* in the thread of the transfers */
    void                  *owner;

    /*
     * What is asked lives until done: method, URL and body of net, and what
     * follows.  A body of the response that buf does not take is in net, and
     * the caller frees it.
     */

    xet_net_request_t      net;
    const char            *headers[XET_S3_TRANSFER_HEADERS];  /* lines */
    size_t                 nheaders;
    unsigned char         *buf;        /* for the body of a 2xx, or NULL */
    size_t                 size;
    size_t                 most;       /* of any other body */
    uint64_t               deadline;   /* ms */
    unsigned               again;      /* it was sent before */

    /* what came */

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

/* Ends the thread; nothing is taken any more. */
void xet_s3_transfers_stop(xet_s3_transfers_t *ts);
int xet_s3_transfers_stopped(xet_s3_transfers_t *ts);

/*
 * 0: it was not taken, there is no thread; done won't be called then.  All
 * that is said to have come is to be zero.
 */
int xet_s3_transfers_post(xet_s3_transfers_t *ts, xet_s3_transfer_t *t);

/* How many are under way. */
uint32_t xet_s3_transfers_busy(xet_s3_transfers_t *ts);


/* xet_s3_report.c: tells who counts, where somebody does. */

void xet_s3_report_transfer(xet_s3_report_pt report, const xet_s3_transfer_t
    *t);
void xet_s3_report_withheld(xet_s3_report_pt report, const char *method);


/* The client. */

struct xet_s3_s {
    const xet_s3_conf_t   *conf;
    xet_s3_conf_t          copy;       /* with the defaults */
    xet_s3_url_t           url;
    xet_s3_url_t           outside;    /* the same, for clients */
    xet_s3_credentials_t   credentials;
    xet_s3_transfers_t    *transfers;

    pthread_mutex_t        lock;       /* of what follows */
    int64_t                skew;       /* of the store's clock, s */
    uint64_t               silent;     /* since, ms; 0: it answers */
    uint64_t               tried;      /* the last that was let through, ms */
    unsigned               open:1;     /* it is left in peace */
    uint64_t               random;
};


/* xet_s3_request.c: a signed request, what its answer means, its repeats. */

#define XET_S3_REQUEST_PAIRS  8

typedef struct {
    xet_s3_t            *s3;
    const char          *method;
    const char          *name;         /* NULL: the bucket */
    xet_sigv4_pair_t     args[XET_S3_REQUEST_PAIRS];
    size_t               nargs;
    xet_sigv4_pair_t     headers[XET_S3_REQUEST_PAIRS];
    size_t               nheaders;
    char                 sha256[XET_S3_SHA_MAX];   /* of the body */
    unsigned             is_xml:1;     /* a 200 may have an error inside */

    unsigned             unsure:1;     /* an attempt got no answer */
    unsigned             generation;   /* of the keys */
    xet_s3xml_answer_t   answer;
    xet_s3_transfer_t    t;

    char                 path[XET_S3_PATH_MAX];
    char                 url[XET_S3_URL_MAX];
    char                 text[2 * XET_S3_URL_MAX]; /* headers */
} xet_s3_request_t;


/* All zero, but for what each request has; of no body. */
void xet_s3_request_init(xet_s3_request_t *r, xet_s3_t *s3, const char *method,
    const char *name);
void xet_s3_request_free(xet_s3_request_t *r);

void xet_s3_request_arg(xet_s3_request_t *r, const char *name,
    const char *value);
void xet_s3_request_header(xet_s3_request_t *r, const char *name,
    const char *value);

/* A body in memory, with its SHA-256.  0 when OpenSSL fails. */
int xet_s3_request_body(xet_s3_request_t *r, const unsigned char *data,
    size_t len);

/* Sends, waits, repeats. */
xet_s3_rc_t xet_s3_request_send(xet_s3_request_t *r, xet_s3_error_t *error);

/* The same, until a time of the clock at most. */
xet_s3_rc_t xet_s3_request_until(xet_s3_request_t *r, uint64_t deadline,
    xet_s3_error_t *error);

/* Sends once, and calls done; else it is told here why not. */
xet_s3_rc_t xet_s3_request_post(xet_s3_request_t *r, xet_s3_transfer_pt done,
    void *owner, xet_s3_error_t *error);

/* What the answer to a request that was posted means. */
xet_s3_rc_t xet_s3_request_result(xet_s3_request_t *r, xet_s3_error_t *error);


#endif /* _XET_S3_BASE_H_INCLUDED_ */
