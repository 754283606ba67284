
/*
 * A client of an S3-compatible object store; uses neither nginx nor libpq.
 * libcurl sends the requests.  The core signs them
 * (src/core/access/xet_sigv4.c) and parses XML (src/core/s3xml).
 *
 * Functions wait for the store unless their comment says otherwise.  Any
 * number of threads may use a client at once.  Transfers run in one thread of
 * the client, which the first request starts, so a process may fork before.
 *
 * All requests go to the configured endpoint: no redirects, no proxy, no other
 * protocol.  Certificates are always verified.  Responses are limited in size.
 *
 * Requests are retried, with growing pauses until the configured timeout,
 * after temporary failures: no connection, 5xx, "slow down", a body that is
 * truncated or has a wrong checksum, a wrong clock, rotated credentials.  If
 * no request got a response for a while, the circuit breaker opens: requests
 * fail immediately, except for one a second, which tests the store.
 *
 * Names have no empty parts, no "." or "..", and visible ASCII only.
 */

#ifndef _XET_S3_H_INCLUDED_
#define _XET_S3_H_INCLUDED_


#include "xet.h"

#include <sys/types.h>


#define XET_S3_KEY_MAX      1024               /* S3 limit */
#define XET_S3_NAME_MAX     512                /* name below the prefix */
#define XET_S3_URL_MAX      4096
#define XET_S3_TEXT_MAX     256
#define XET_S3_ID_MAX       1024               /* id of a multipart upload */
#define XET_S3_PART_MIN     (5 * 1024 * 1024)  /* last part may be smaller */
#define XET_S3_PARTS_MAX    1024               /* our limit per upload */


typedef struct xet_s3_s         xet_s3_t;
typedef struct xet_s3_upload_s  xet_s3_upload_t;


/* A report for metrics about one request that was sent or withheld. */

typedef enum {
    XET_S3_METHOD_GET = 0,
    XET_S3_METHOD_HEAD,
    XET_S3_METHOD_PUT,
    XET_S3_METHOD_POST,
    XET_S3_METHOD_DELETE,
    XET_S3_METHODS
} xet_s3_method_t;


typedef enum {
    XET_S3_END_2XX = 0,
    XET_S3_END_3XX,
    XET_S3_END_4XX,
    XET_S3_END_5XX,
    XET_S3_END_TIMEOUT,                /* no complete response in time */
    XET_S3_END_LOST,                   /* any other failed transfer */
    XET_S3_END_WITHHELD,               /* not sent: the breaker is open */
    XET_S3_ENDS
} xet_s3_end_t;


typedef struct {
    xet_s3_method_t  method;
    xet_s3_end_t     end;
    unsigned         again:1;          /* this is a retry */
    uint64_t         ms;
    uint64_t         sent;             /* bytes of the request body */
    uint64_t         received;         /* bytes of the response body */
} xet_s3_report_t;


/* The metrics callback; any thread may call it. */
typedef void (*xet_s3_report_pt)(const xet_s3_report_t *report);


/* The configuration of a client, which copies the strings. */

typedef struct {
    const char       *url;             /* "s3://bucket[/prefix]" */
    const char       *endpoint;        /* "http[s]://host[:port]" */
    const char       *public_endpoint; /* base of presigned URLs; NULL: same
                                          as endpoint */
    const char       *region;          /* NULL: "us-east-1" */
    const char       *credentials;     /* file in the format of the AWS tools */
    const char       *profile;         /* file section; NULL: "default" */
    const char       *certificate;     /* trusted CAs; NULL: the system's */
    uint32_t          timeout;         /* ms per request, including retries */
    uint32_t          connections;     /* maximum; other requests wait */
    uint32_t          part;            /* size of an upload part, bytes */
    xet_s3_report_pt  report;          /* called for each request, or NULL */
    unsigned     path_style:1;         /* the bucket is in the path */
    unsigned     conditional:1;        /* If-None-Match works on PUT */
} xet_s3_conf_t;


/* The result of a request. */

typedef enum {
    XET_S3_OK = 0,
    XET_S3_NOT_FOUND,                  /* no such object or upload */
    XET_S3_SHORT,                      /* the object is too short */
    XET_S3_EXISTS,                     /* 412: the object exists */
    XET_S3_AWAY,                       /* temporary: no response, 5xx, slow
                                          down */
    XET_S3_DENIED,                     /* 401, 403: wrong key, right or clock */
    XET_S3_NO_BUCKET,
    XET_S3_FULL,                       /* quota exceeded, or 507 */
    XET_S3_BAD,                        /* other or truncated response */
    XET_S3_LOCAL,                      /* local failure, e.g. out of memory */
    XET_S3_CONF,                       /* bad configuration, keys or name */
    XET_S3_ENDED                       /* xet_s3_stop() was called */
} xet_s3_rc_t;


/*
 * An error.  The text is for a log: it names the request, the object and the
 * response.  The text is printable ASCII, without secrets or signatures.
 */

typedef struct {
    int   status;                      /* HTTP status; 0: no response */
    char  text[XET_S3_TEXT_MAX];
} xet_s3_error_t;


typedef struct {
    uint64_t  size;                    /* bytes */
    int64_t   modified;                /* s since 1970, by the store's clock */
    int64_t   now;                     /* the store's time of the response */
} xet_s3_object_t;


/* An entry of a list; the name is relative to the configured prefix. */

typedef struct {
    char      name[XET_S3_NAME_MAX];
    uint64_t  size;
    int64_t   modified;
} xet_s3_name_t;


/*
 * Creates a client: reads and checks the configuration and the credentials,
 * and sends no request.  On errors, returns NULL, and error names the invalid
 * parameter.  The text may name a file that can't be read, but never shows its
 * content.
 */
xet_s3_t *xet_s3_create(const xet_s3_conf_t *conf, xet_s3_error_t *error);

/* Ends the thread of the client and frees it; no request may be in flight. */
void xet_s3_destroy(xet_s3_t *s3);

/*
 * Called when a process ends: waits for the thread of the client.  Other
 * threads may still use the client, but all new requests fail.
 */
void xet_s3_stop(xet_s3_t *s3);

/*
 * Reads the credentials again.  XET_S3_CONF: the file can't be read, and the
 * client keeps the old credentials.  If the store denies a request, the client
 * reads the file by itself, at most once a second.
 */
xet_s3_rc_t xet_s3_reload(xet_s3_t *s3, xet_s3_error_t *error);


/* Returns the number of requests in flight; any thread may call this. */
uint32_t xet_s3_busy(xet_s3_t *s3);

/*
 * Returns the number of seconds that the clock of the store is ahead of ours.
 * The number is 0 until the store refuses a request because of a wrong clock.
 * From then on, requests are signed by the clock of the store.
 */
int64_t xet_s3_skew(xet_s3_t *s3);


/*
 * Functions for objects.  Names are relative to the prefix, without a leading
 * slash.
 */

/* Gets bytes [start, start + len); XET_S3_SHORT: the object is shorter. */
xet_s3_rc_t xet_s3_get(xet_s3_t *s3, const char *name, uint64_t start,
    size_t len, unsigned char *buf, xet_s3_error_t *error);

/* Gets a small object; *len is the size of buf, then the object's size. */
xet_s3_rc_t xet_s3_get_small(xet_s3_t *s3, const char *name,
    unsigned char *buf, size_t *len, xet_s3_error_t *error);

xet_s3_rc_t xet_s3_head(xet_s3_t *s3, const char *name,
    xet_s3_object_t *object, xet_s3_error_t *error);

/*
 * Puts a small object.  If only_new is set, an existing object is not
 * replaced, and the result is XET_S3_EXISTS.  A store that does not support
 * this condition gets a HEAD before the PUT.
 */
xet_s3_rc_t xet_s3_put_small(xet_s3_t *s3, const char *name,
    const unsigned char *data, size_t len, int only_new,
    xet_s3_error_t *error);

/* Deletes an object; a missing object is not an error. */
xet_s3_rc_t xet_s3_delete(xet_s3_t *s3, const char *name,
    xet_s3_error_t *error);

/*
 * Requests for many objects, over at most half of the connections.  After an
 * error the remaining items are skipped, and get the rc of that error.  The
 * functions return the first error.
 */

typedef struct {
    const char   *name;
    xet_s3_rc_t   rc;
    uint64_t      size;                /* set by HEAD if rc is XET_S3_OK */
} xet_s3_item_t;

/* Deletes n objects; the rc of a missing object is XET_S3_OK. */
xet_s3_rc_t xet_s3_delete_all(xet_s3_t *s3, xet_s3_item_t *items, size_t n,
    xet_s3_error_t *error);

/*
 * Sends a HEAD for n objects.  The rc of a missing object is XET_S3_NOT_FOUND,
 * which is not an error of the batch.
 */
xet_s3_rc_t xet_s3_head_all(xet_s3_t *s3, xet_s3_item_t *items, size_t n,
    xet_s3_error_t *error);

/* Copies an object within the store. */
xet_s3_rc_t xet_s3_copy(xet_s3_t *s3, const char *from, const char *to,
    int only_new, xet_s3_error_t *error);


/*
 * Lists up to max names, in order, that start with prefix and come after the
 * name "after" ("": from the first name).  *n is less than max only at the end
 * of the list.  If now is not NULL, *now is the time of the store.  The list
 * also has names that other programs have created, except names of
 * XET_S3_NAME_MAX bytes or more; the other functions may refuse such names
 * (XET_S3_CONF).
 */
xet_s3_rc_t xet_s3_list(xet_s3_t *s3, const char *prefix, const char *after,
    xet_s3_name_t *names, size_t max, size_t *n, int64_t *now,
    xet_s3_error_t *error);

/*
 * Aborts the multipart uploads below the prefix that a crash has left: uploads
 * that are at least age seconds old by the store's clock.  *n is the number of
 * aborted uploads.
 */
xet_s3_rc_t xet_s3_sweep(xet_s3_t *s3, const char *prefix, uint64_t age,
    size_t *n, xet_s3_error_t *error);


/*
 * An upload of a file, in parts, while the file is written.  An upload has one
 * owner at a time, in any thread.
 *
 *     create -> (hash, ready)* -> finish -> destroy
 *            -> (hash, ready)* -> destroy          no object is made
 *
 * Nothing is sent before the first part is complete; a smaller file goes in
 * one request, at the end.  Parts are sent while the file grows, but only
 * finish sends the last one.  Each signature covers the SHA-256 of the bytes
 * of its request, so the store refuses other bytes.  If the store returns a
 * checksum, it is compared with the bytes sent.
 */

/* Creates an upload; copies name.  Returns NULL if out of memory. */
xet_s3_upload_t *xet_s3_upload_create(xet_s3_t *s3, const char *name);

/*
 * Hashes the next bytes of the file from memory, while the processor has them
 * in its cache.  Optional: xet_s3_upload_ready() and xet_s3_upload_finish()
 * read bytes that were not hashed.  XET_S3_LOCAL on errors.
 */
xet_s3_rc_t xet_s3_upload_hash(xet_s3_upload_t *upload,
    const unsigned char *data, size_t len, xet_s3_error_t *error);

/* Returns the number of bytes of the file that were hashed. */
uint64_t xet_s3_upload_hashed(const xet_s3_upload_t *upload);

/*
 * Tells the upload that the first size bytes of the file are written and will
 * not change.  Sends complete parts in the background, from a duplicate of fd,
 * and does not wait for the store.  fd must be readable, for bytes that were
 * not hashed yet.  Returns XET_S3_LOCAL on local errors; finish returns errors
 * from the store.
 */
xet_s3_rc_t xet_s3_upload_ready(xet_s3_upload_t *upload, int fd,
    uint64_t size, xet_s3_error_t *error);

/*
 * Makes the object, after all of the file is written.  name may differ from
 * the name given to create only if nothing was sent yet; else the result is
 * XET_S3_CONF.  Sends failed parts again, and waits until the store has
 * acknowledged the object.
 *
 * XET_S3_OK: the store has the object, with size bytes.  XET_S3_EXISTS, if
 * only_new is set: another object has the name.  After any other result, it is
 * unknown whether the object exists.
 */
xet_s3_rc_t xet_s3_upload_finish(xet_s3_upload_t *upload, const char *name,
    int fd, uint64_t size, int only_new, xet_s3_error_t *error);

/* Returns whether the upload has already sent a request under its name. */
int xet_s3_upload_begun(xet_s3_upload_t *upload);

/*
 * Frees the upload, without waiting for the store.  An upload that has not
 * become an object is aborted in the background.
 */
void xet_s3_upload_destroy(xet_s3_upload_t *upload);


/*
 * A presigned URL of the public endpoint.  Anyone who has the URL may send
 * requests with this method and these headers until the URL expires.
 */

typedef struct {
    const char  *name;                 /* lower-case name */
    const char  *value;
} xet_s3_header_t;

typedef struct {
    const char             *method;
    const char             *name;      /* object name */
    const xet_s3_header_t  *headers;   /* required in the request */
    size_t                  nheaders;
    int64_t                 made;      /* start time, s since 1970 */
    uint32_t                seconds;   /* lifetime of the URL, from made */
} xet_s3_grant_t;

/* Writes a URL of up to XET_S3_URL_MAX bytes.  Does no I/O. */
xet_s3_rc_t xet_s3_presign(xet_s3_t *s3, const xet_s3_grant_t *grant,
    char *url);

/*
 * A signed request for another program to send: its host and path, and the
 * values of "Authorization", "x-amz-date" and "x-amz-security-token" ("": no
 * such header).  The request also needs the header
 * "x-amz-content-sha256: UNSIGNED-PAYLOAD".  No other header except "Host" is
 * signed.  xet_s3_sign() does no I/O.
 */

typedef struct {
    char  host[256];
    char  path[XET_S3_URL_MAX];
    char  authorization[512];
    char  date[17];                    /* 20261123T081206Z */
    char  token[2048];
} xet_s3_signed_t;

xet_s3_rc_t xet_s3_sign(xet_s3_t *s3, const char *method, const char *name,
    int64_t now, xet_s3_signed_t *out);

/* Writes only the path of up to XET_S3_URL_MAX bytes, without a signature. */
xet_s3_rc_t xet_s3_path(xet_s3_t *s3, const char *name, char *path);


#endif /* _XET_S3_H_INCLUDED_ */
