
/*
 * A client of an S3-compatible object store: what the module and the command
 * line need of one, and no more.  Free of nginx and of libpq; libcurl carries,
 * the core signs (src/core/access/xet_sigv4.c) and reads XML
 * (src/core/s3xml).
 *
 * All functions but those that say otherwise wait for the store, and are
 * called in threads; any number of threads may use one client at once.
 * Transfers run in one thread of the client's own, which drives all its
 * connections and is started with the first request, so that a process may
 * fork before that.
 *
 * What is asked is one address, that of the configuration: no redirect, no
 * proxy of the environment, no other protocol.  Certificates are verified
 * always.  Heads, bodies of errors, and lists are bounded.
 *
 * A request that fails for a reason that may pass (no connection, 5xx, "slow
 * down", a body cut or with a wrong checksum, a clock that is off, credentials
 * that were rotated) is repeated with growing pauses, until the timeout of the
 * configuration.  A store that has not answered any request for a while is
 * left in peace: for a second requests fail at once, then one tries.
 *
 * Names have no empty parts, no "." or "..", and visible ASCII only.
 */

#ifndef _XET_S3_H_INCLUDED_
#define _XET_S3_H_INCLUDED_


#include "xet.h"

#include <sys/types.h>


#define XET_S3_KEY_MAX      1024               /* of S3 */
#define XET_S3_NAME_MAX     512                /* below the prefix */
#define XET_S3_URL_MAX      4096
#define XET_S3_TEXT_MAX     256
#define XET_S3_ID_MAX       1024               /* of a multipart upload */
#define XET_S3_PART_MIN     (5 * 1024 * 1024)  /* but for the last one */
#define XET_S3_PARTS_MAX    1024               /* of an upload, here */


typedef struct xet_s3_s         xet_s3_t;
typedef struct xet_s3_upload_s  xet_s3_upload_t;


/* What has come of a request that was sent, or that should have been. */

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
    XET_S3_END_TIMEOUT,                /* no answer in time, or no whole one */
    XET_S3_END_LOST,                   /* no connection, or it has ended */
    XET_S3_END_WITHHELD,               /* not sent: the store is silent */
    XET_S3_ENDS
} xet_s3_end_t;


typedef struct {
    xet_s3_method_t  method;
    xet_s3_end_t     end;
    unsigned         again:1;          /* it was sent before */
    uint64_t         ms;
    uint64_t         sent;             /* bytes of its body */
    uint64_t         received;         /* of that of the answer */
} xet_s3_report_t;


/* In any thread. */
typedef void (*xet_s3_report_pt)(const xet_s3_report_t *report);


/*
 * Strings end with a zero byte; the client copies them.
 */

typedef struct {
    const char  *url;                  /* "s3://bucket[/prefix]" */
    const char  *endpoint;             /* "http[s]://host[:port]" */
    const char  *public_endpoint;      /* of presigned URLs, NULL: endpoint */
    const char  *region;               /* "us-east-1" */
    const char  *credentials;          /* a file, as the AWS tools have it */
    const char  *profile;              /* of it, "default" */
    const char  *certificate;          /* trusted ones, NULL: the system's */
    uint32_t     timeout;              /* ms, of a request with its repeats */
    uint32_t     connections;          /* at once, more wait */
    uint32_t     part;                 /* bytes of a part of an upload */
    xet_s3_report_pt  report;          /* of each request, or NULL */
    unsigned     path_style:1;         /* bucket in the path */
    unsigned     conditional:1;        /* If-None-Match works on PUT */
} xet_s3_conf_t;


/* Why a request has failed. */

typedef enum {
    XET_S3_OK = 0,
    XET_S3_NOT_FOUND,                  /* no such object, or upload */
    XET_S3_SHORT,                      /* the object ends before */
    XET_S3_EXISTS,                     /* 412: there is an object */
    XET_S3_AWAY,                       /* no answer, 5xx, slow down: may pass */
    XET_S3_DENIED,                     /* 401, 403: keys, rights, clocks */
    XET_S3_NO_BUCKET,
    XET_S3_FULL,                       /* a quota of the store's, 507 */
    XET_S3_BAD,                        /* any other answer, or bytes cut */
    XET_S3_LOCAL,                      /* here: memory, descriptors, a file */
    XET_S3_CONF,                       /* of xet_s3_conf_t, or credentials */
    XET_S3_ENDED                       /* behind xet_s3_stop() */
} xet_s3_rc_t;


/*
 * The text is for a log: what was asked, of which object, what came; it never
 * has a secret or a signature, nor bytes that can't be printed.
 */

typedef struct {
    int   status;                      /* of HTTP, 0: there was no answer */
    char  text[XET_S3_TEXT_MAX];
} xet_s3_error_t;


typedef struct {
    uint64_t  size;                    /* bytes */
    int64_t   modified;                /* s since 1970, by the store's clock */
    int64_t   now;                     /* the same clock, at the answer */
} xet_s3_object_t;


/* One of a list; the name is below the prefix of the configuration. */

typedef struct {
    char      name[XET_S3_NAME_MAX];
    uint64_t  size;
    int64_t   modified;
} xet_s3_name_t;


/*
 * Reads and checks the configuration and the credentials; asks nothing of the
 * store.  NULL, with a text that names the parameter.  The name of a file that
 * can't be read is in the text, what is in it never is.
 */
xet_s3_t *xet_s3_create(const xet_s3_conf_t *conf, xet_s3_error_t *error);

/* Nothing is under way any more; waits for the thread of the client. */
void xet_s3_destroy(xet_s3_t *s3);

/*
 * A process ends: waits for the thread of the client, and all further requests
 * fail.  Other threads may still use the client.
 */
void xet_s3_stop(xet_s3_t *s3);

/*
 * Reads the credentials again.  XET_S3_CONF: they can't be read, those before
 * stay.  The client does so by itself, at most once a second, when the store
 * denies a request.
 */
xet_s3_rc_t xet_s3_reload(xet_s3_t *s3, xet_s3_error_t *error);


/* How many requests are under way; in any thread. */
uint32_t xet_s3_busy(xet_s3_t *s3);

/*
 * How many seconds the clock of the store is ahead of ours, where it has
 * refused a request because of that; requests are signed for its clock since.
 */
int64_t xet_s3_skew(xet_s3_t *s3);


/*
 * Names are those below the prefix, without a slash in front.
 */

/* The bytes [start, start + len); XET_S3_SHORT where it ends before. */
xet_s3_rc_t xet_s3_get(xet_s3_t *s3, const char *name, uint64_t start,
    size_t len, unsigned char *buf, xet_s3_error_t *error);

/* The whole of a small object: *len is the room, and then what came. */
xet_s3_rc_t xet_s3_get_small(xet_s3_t *s3, const char *name,
    unsigned char *buf, size_t *len, xet_s3_error_t *error);

xet_s3_rc_t xet_s3_head(xet_s3_t *s3, const char *name,
    xet_s3_object_t *object, xet_s3_error_t *error);

/*
 * A small object.  only_new: XET_S3_EXISTS where there is one of that name
 * (and where the store knows no such condition, by asking before).
 */
xet_s3_rc_t xet_s3_put_small(xet_s3_t *s3, const char *name,
    const unsigned char *data, size_t len, int only_new,
    xet_s3_error_t *error);

/* An object that is not there is no error. */
xet_s3_rc_t xet_s3_delete(xet_s3_t *s3, const char *name,
    xet_s3_error_t *error);

/*
 * Many objects at once, by half of the connections.  An item that failed has
 * why, as have all that were not asked for because of that; the first failure
 * is the result.
 */

typedef struct {
    const char   *name;
    xet_s3_rc_t   rc;
    uint64_t      size;                /* of a head, with XET_S3_OK */
} xet_s3_item_t;

/* An object that is not there is no error, and has XET_S3_OK. */
xet_s3_rc_t xet_s3_delete_all(xet_s3_t *s3, xet_s3_item_t *items, size_t n,
    xet_s3_error_t *error);

/* An object that is not there is no error, and has XET_S3_NOT_FOUND. */
xet_s3_rc_t xet_s3_head_all(xet_s3_t *s3, xet_s3_item_t *items, size_t n,
    xet_s3_error_t *error);

/* The store copies; from and to are whole names. */
xet_s3_rc_t xet_s3_copy(xet_s3_t *s3, const char *from, const char *to,
    int only_new, xet_s3_error_t *error);


/*
 * Lists up to max names, in order, of those that begin with the prefix and
 * come behind after ("": from the first).  *n is less than max at the end
 * only.
 * *now, where not NULL, is the store's clock.  Names that others have put there
 * are listed too, but for those of XET_S3_NAME_MAX bytes and more; the other
 * functions may refuse them (XET_S3_CONF).
 */
xet_s3_rc_t xet_s3_list(xet_s3_t *s3, const char *prefix, const char *after,
    xet_s3_name_t *names, size_t max, size_t *n, int64_t *now,
    xet_s3_error_t *error);

/*
 * Aborts uploads in parts that began age seconds ago or more, by the store's
 * clock, below the prefix: those that a crash has left.  *n: how many.
 */
xet_s3_rc_t xet_s3_sweep(xet_s3_t *s3, const char *prefix, uint64_t age,
    size_t *n, xet_s3_error_t *error);


/*
 * An upload of a file, while the file is written: a sequence of parts, of one
 * owner, whatever thread that is in.
 *
 *     create -> (hash, ready)* -> finish -> destroy
 *            -> (hash, ready)* -> destroy          nothing becomes an object
 *
 * Nothing is sent before there is a whole part; a file that is smaller goes in
 * one request, at the end.  Parts go out while the file grows, and the last
 * one with finish only: what is destroyed before that never becomes an object.
 * Each request has the SHA-256 of its bytes under its signature, so that the
 * store refuses others, and what the store says that it has got is compared
 * with what was sent, where it says so.
 */

/* name is copied.  NULL without memory. */
xet_s3_upload_t *xet_s3_upload_create(xet_s3_t *s3, const char *name);

/*
 * The bytes of the file behind those that were hashed, from memory: what is
 * hashed while the processor has it in its cache needs no reading.  Whoever
 * has told of others by ready, or of none, needs not call this.  XET_S3_LOCAL.
 */
xet_s3_rc_t xet_s3_upload_hash(xet_s3_upload_t *upload,
    const unsigned char *data, size_t len, xet_s3_error_t *error);

/* How many bytes of the file were hashed. */
uint64_t xet_s3_upload_hashed(const xet_s3_upload_t *upload);

/*
 * The first size bytes of the file are written, and won't change.  Does not
 * wait for the store: whole parts are sent in the background, by a descriptor
 * of the client's own.  Reads what was not hashed yet, so fd is open for
 * reading.  XET_S3_LOCAL; what the store says comes with finish.
 */
xet_s3_rc_t xet_s3_upload_ready(xet_s3_upload_t *upload, int fd,
    uint64_t size, xet_s3_error_t *error);

/*
 * All of the file is written, and is to become an object, under another name
 * than was said before if nothing was sent yet; else XET_S3_CONF.  Waits until
 * the store has acknowledged.  Parts that failed are sent again.
 *
 * XET_S3_OK: the store has the object, with size bytes.  XET_S3_EXISTS, with
 * only_new: there is another object of the name.  After any other result it
 * may be there or not, and nobody knows.
 */
xet_s3_rc_t xet_s3_upload_finish(xet_s3_upload_t *upload, const char *name,
    int fd, uint64_t size, int only_new, xet_s3_error_t *error);

/* Whether bytes were sent under the name already. */
int xet_s3_upload_begun(xet_s3_upload_t *upload);

/*
 * Frees the upload; parts that the store has without an object are aborted in
 * the background.  Does not wait for the store.
 */
void xet_s3_upload_destroy(xet_s3_upload_t *upload);


/*
 * A presigned URL of the public endpoint.  Whoever has it may send one kind of
 * request, with these headers, until it expires.
 */

typedef struct {
    const char  *name;                 /* in lower case */
    const char  *value;
} xet_s3_header_t;

typedef struct {
    const char             *method;
    const char             *name;      /* of the object */
    const xet_s3_header_t  *headers;   /* that the request must have */
    size_t                  nheaders;
    int64_t                 made;      /* seconds since 1970 */
    uint32_t                seconds;   /* from made until it expires */
} xet_s3_grant_t;

/* Writes XET_S3_URL_MAX bytes at most.  Computes only: suits an event loop. */
xet_s3_rc_t xet_s3_presign(xet_s3_t *s3, const xet_s3_grant_t *grant,
    char *url);

/*
 * The headers that let somebody else ask for an object in our name: values of
 * "Authorization", "x-amz-date", "x-amz-security-token" ("" without), for a
 * request with "x-amz-content-sha256: UNSIGNED-PAYLOAD" to host, and the path
 * of it.  Computes only.  No other header is signed.
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

/* The path alone, of XET_S3_URL_MAX bytes, which is had for much less. */
xet_s3_rc_t xet_s3_path(xet_s3_t *s3, const char *name, char *path);


#endif /* _XET_S3_H_INCLUDED_ */
