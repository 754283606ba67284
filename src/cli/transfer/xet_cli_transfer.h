
/* Transfers: uploads and downloads of files. */

#ifndef _XET_CLI_TRANSFER_H_INCLUDED_
#define _XET_CLI_TRANSFER_H_INCLUDED_


#include <openssl/evp.h>

#include "xet_cli.h"
#include "xet_net.h"
#include "xet_xorb.h"


/*
 * An HTTP request and its response.
 *
 * A 2xx response goes to the write handler if there is one, else it is kept in
 * data, and a response longer than max bytes ends the request.  Of other
 * responses the first XET_CLI_REQUEST_SHORT bytes are kept.
 *
 * The token file is read again for each attempt, so the token can be renewed
 * in the meantime.  Tokens are sent to the API only, by TLS or to this
 * machine, unless --insecure-token is given.  The same holds for a user and a
 * password in a URL.
 *
 * Redirections are followed here, not by libcurl, which would send credentials
 * of ~/.netrc to any host, or to any port of this machine.  After a
 * redirection to another scheme, host or port a request has no credentials; a
 * request that started with credentials and TLS stays on TLS.
 */


#define XET_CLI_REQUEST_MAX    (64 * 1024 * 1024)   /* bytes of a response */
#define XET_CLI_REQUEST_SHORT  (64 * 1024)          /* of a short response */


typedef struct xet_cli_http_s     xet_cli_http_t;
typedef struct xet_cli_request_s  xet_cli_request_t;


struct xet_cli_request_s {

    /* set by the caller, who zeroes the other members */

    const char         *method;        /* NULL: GET */
    char               *url;           /* malloc()ed; freed with the request */
    const uint8_t      *body;
    size_t              body_len;
    const char         *type;          /* header line with its Content-Type;
                                          NULL: bytes */
    char                range[48];     /* "a-b", or empty */
    size_t              max;           /* bytes; 0: XET_CLI_REQUEST_MAX */
    unsigned            api:1;         /* gets the token */
    unsigned            patient:1;     /* the response may take any time */
    unsigned            netrc:1;       /* may use ~/.netrc */

    /* takes bytes of a 2xx response; a result other than 0 ends the request */
    int               (*write)(xet_cli_request_t *r, const uint8_t *data,
                               size_t len);
    /* called before each attempt; NULL: nothing to do */
    void              (*restart)(xet_cli_request_t *r);
    /* called once, when the request has ended; may be NULL */
    void              (*done)(xet_cli_request_t *r);
    void               *ctx;

    /* for the done handler */

    long                status;        /* 0: no response, see error */
    unsigned            refused:1;     /* by write, or longer than max */
    unsigned            large:1;       /* longer than max */
    unsigned            lost:1;        /* an earlier attempt may have
                                          succeeded: its response was lost */
    char               *data;          /* followed by a zero byte */
    size_t              len;
    int64_t             length;        /* Content-Length, or -1 */
    char                error[XET_NET_TEXT_MAX];

    /* private */

    xet_cli_http_t     *http;
    xet_cli_request_t  *next;
    xet_net_request_t   net;
    size_t              came;          /* bytes of the response, kept or not */
    char               *storage;       /* URL of a redirection, or NULL */
    unsigned            redirects;
    unsigned            foreign:1;     /* redirected to another origin */
    unsigned            tls:1;         /* required: credentials were sent */
    unsigned            attempts;
    uint64_t            due;
};


/*
 * HTTP client: many requests at a time, in one thread.
 *
 * The caller owns a request.  It must not move until its done handler is
 * called, which may free it or start it again.  Broken connections, 408, 429
 * and 5xx except 501 are retried here, after a delay that doubles, or that
 * Retry-After gives, up to a minute.  A POST is retried like a GET: all
 * requests of the API are idempotent.
 */


#define XET_CLI_HTTP_TEXT  1024        /* bytes of a URL in messages */


/* Handles name, one operand of a verb; returns the exit code. */
typedef int (*xet_cli_operand_pt)(const xet_cli_args_t *args,
    xet_cli_http_t *h, const char *name);


/*
 * Creates the HTTP client of a verb from its options and the environment,
 * which must give an endpoint or --url.  Returns NULL on an error, reported;
 * *rc is the exit code.
 */
xet_cli_http_t *xet_cli_http_create(const xet_cli_args_t *args, int *rc);

/* The same for a given endpoint. */
xet_cli_http_t *xet_cli_http_create_at(const xet_cli_args_t *args,
    const char *endpoint, int *rc);

/* Returns a token that is still valid for some time; NULL: none, reported. */
typedef const char *(*xet_cli_renew_pt)(void *ctx);

/*
 * Uses the tokens of this function, and no others.  It is called for each
 * attempt, and may wait for another HTTP client, not for this one.
 */
void xet_cli_http_renew(xet_cli_http_t *h, xet_cli_renew_pt renew,
    void *ctx);

/* Sets the token, or none; a token file takes precedence.  It is not copied. */
void xet_cli_http_token(xet_cli_http_t *h, const char *token);

/* Returns the endpoint of the options or the environment, or "". */
const char *xet_cli_http_endpoint(const xet_cli_args_t *args);

/* Whether two URLs have the same scheme, host and port. */
int xet_cli_http_same(const char *one, const char *two);

/*
 * Returns the value of a header of the last response, valid until the next
 * call or the next attempt; NULL: none.
 */
const char *xet_cli_http_header(const xet_cli_request_t *r,
    const char *name);

/* Whether a token has only printable ASCII characters and no blanks. */
int xet_cli_request_token_ok(const char *token);

/* All requests must have been freed. */
void xet_cli_http_destroy(xet_cli_http_t *h);

/*
 * Returns the endpoint followed by a path, malloc()ed; NULL: no memory.  The
 * format of the path starts with a slash.
 */
char *xet_cli_http_url(xet_cli_http_t *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Writes a URL for messages: without user, password and arguments, because the
 * arguments of a data URL are a capability.  Returns text.
 */
const char *xet_cli_http_text(const char *url, char text[XET_CLI_HTTP_TEXT]);

/* Starts a request; it ends in xet_cli_http_step(), even if it fails. */
void xet_cli_http_start(xet_cli_http_t *h, xet_cli_request_t *r);

/*
 * Drives all requests, and calls the done handlers of those that end.  Waits
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
 * Zeroes *r, sets it up as a request of the API and calls xet_cli_http_call().
 * A method of NULL is GET. url is malloc()ed, and freed with the request; with
 * a url of NULL the request fails.
 */
int xet_cli_http_ask(xet_cli_http_t *h, xet_cli_request_t *r,
    const char *method, char *url);

/*
 * Creates an HTTP client and calls the handler for each operand, until one
 * returns something worse than XET_CLI_FAULT.  Returns the worst exit code.
 */
int xet_cli_http_operands(const xet_cli_args_t *args,
    xet_cli_operand_pt handler);

/* Cancels a request that is not done, and frees everything in *r. */
void xet_cli_http_free(xet_cli_request_t *r);

/*
 * Whether a failed request may succeed later: there was no response, the
 * server failed or was too busy, or the token has expired.
 */
int xet_cli_http_passing(const xet_cli_request_t *r);

/*
 * Whether a request to delete has found nothing (404 with this code) after an
 * attempt whose response was lost: then that attempt has succeeded.
 */
int xet_cli_http_gone(const xet_cli_request_t *r, const char *code);

/*
 * Reports a failed request, with the code and the message of the API if the
 * response has them.  Returns XET_CLI_FAULT for 404 and 416, else
 * XET_CLI_NETWORK.
 */
int xet_cli_http_fail(const xet_cli_request_t *r);


/*
 * Plans: parsed reconstructions, version 2 or 1, with the terms of a part of a
 * file, and the ranges of xorbs to fetch for them.
 */


typedef struct {
    xet_hash_t        xorb;
    uint32_t          chunk_start;
    uint32_t          chunk_end;       /* exclusive */
    uint64_t          raw_length;
    size_t            range;           /* index of its range */
} xet_cli_term_t;


typedef struct {
    xet_hash_t        xorb;
    uint32_t          chunk_start;
    uint32_t          chunk_end;       /* exclusive */
    uint64_t          byte_start;      /* in the xorb */
    uint64_t          byte_end;        /* exclusive */
    const char       *url;             /* in plan->urls */
    size_t            reach;           /* while the plan is parsed */
} xet_cli_range_t;


typedef struct {
    uint64_t          offset;          /* of the first requested byte, in the
                                          first term */
    uint64_t          raw_length;      /* of all terms */
    xet_cli_term_t   *terms;
    size_t            nterms;
    xet_cli_range_t  *ranges;          /* by xorb and first chunk; a term
                                          uses each */
    size_t            nranges;
    size_t            ranges_room;
    char            **urls;            /* one for each entry */
    size_t            nurls;
    size_t            urls_room;
    unsigned          large:1;         /* rejected for its size only */
} xet_cli_plan_t;


/*
 * Limits of a plan.  A larger plan is rejected, and the caller requests a
 * smaller part of the file, so that memory does not depend on what a server
 * sends.  A part of 64 MiB in chunks of 64 KiB, each in a range of its own
 * with a URL of 512 bytes, has a body of 0.9 MB.
 */

#define XET_CLI_PLAN_BODY    (2 * 1024 * 1024)     /* bytes of JSON */
#define XET_CLI_PLAN_ROOM    (16 * 1024 * 1024)    /* of memory for the JSON */
#define XET_CLI_PLAN_URL     (16 * 1024)           /* bytes of a URL */
#define XET_CLI_PLAN_RANGES  4096
#define XET_CLI_PLAN_CHUNKS  32768                 /* of all terms */


/*
 * Parses a body of version 1 or 2.  Returns XET_CLI_OK if all numbers are
 * within the limits of the protocol and each term lies in its range; then the
 * plan must be freed.  Returns XET_CLI_NETWORK for an invalid body and
 * XET_CLI_ERROR without memory, not reported; *error is the reason.  If
 * plan->large is set, the plan of a smaller part of the file may be accepted.
 */
int xet_cli_plan_parse(xet_cli_plan_t *plan, unsigned version,
    const char *data, size_t len, const char **error);

void xet_cli_plan_free(xet_cli_plan_t *plan);

/* Whether two plans have the same chunks, at whatever byte ranges. */
int xet_cli_plan_same(const xet_cli_plan_t *a, const xet_cli_plan_t *b);


/*
 * A unit of a download: one range of one xorb, streamed.
 *
 * The chunks of the range arrive in order; each is decoded, hashed and passed
 * to the handler once for each of its places in the file.  An interrupted
 * transfer is resumed after the last complete chunk.  Memory is one stored
 * chunk for each running unit, one decoder for all units of a download, and
 * what libcurl needs.
 *
 *     waiting -> running -> done
 *                        -> expired (the URL: 403, 404) -> waiting
 *                        -> rewound -> waiting
 *
 * If an earlier run has kept chunks, the next chunk starts where they ended in
 * the xorb at that time.  The server may have stored the xorb again since
 * then, as other bytes of the same chunks: then the range is fetched from its
 * start, and the kept chunks are skipped.
 */


/* A chunk at one of its places; also a record of NAME.xet-state. */

typedef struct {
    uint64_t              offset;      /* in the file */
    uint32_t              raw_length;
    uint32_t              stored_length;  /* in the xorb, without header */
    xet_hash_t            hash;
} xet_cli_chunk_t;


/* By offset, for qsort() and bsearch(). */
int xet_cli_chunk_order(const void *one, const void *two);


/* A term of the file, and how much of it was received. */

typedef struct {
    size_t                range;       /* of the plan */
    uint32_t              start;       /* chunks of the xorb */
    uint32_t              end;
    uint64_t              pos;         /* of the next chunk in the file */
    uint64_t              stop;        /* end of the term in the file */
} xet_cli_use_t;


typedef struct xet_cli_range_fetch_s  xet_cli_range_fetch_t;


/* What all units of a download share. */

typedef struct {
    xet_codec_t          *codec;
    uint8_t               raw[XET_CHUNK_MAX];

    /*
     * Takes a chunk at one place; raw is NULL if an earlier run has kept it
     * there.  Returns XET_CLI_OK, or the exit code that ends the unit,
     * reported.
     */
    int                 (*handler)(xet_cli_range_fetch_t *u,
                                   const xet_cli_chunk_t *chunk,
                                   const uint8_t *raw);
} xet_cli_decoder_t;


/*
 * Whether an earlier run has kept a chunk at chunk->offset; then it fills the
 * rest of *chunk.
 */
typedef int (*xet_cli_range_fetch_kept_pt)(void *ctx, xet_cli_chunk_t *chunk);


struct xet_cli_range_fetch_s {
    xet_cli_request_t       request;
    xet_cli_range_fetch_t  *next;      /* in the queue or in expired */
    void                   *span;
    xet_cli_decoder_t      *decoder;

    xet_cli_range_t        *range;
    xet_cli_use_t          *uses;      /* by start */
    size_t                  nuses;
    size_t                  passed;    /* uses that are complete */

    uint32_t                chunk;     /* number of the next one */
    uint32_t                placed;    /* chunks before it are in place */
    uint64_t                pos;       /* of the next chunk in the xorb */
    int                     rc;        /* why the write handler stopped */
    unsigned                running:1;
    unsigned                skipped:1;  /* kept chunks; pos is a guess */

    xet_xorb_parser_t       parser;
    uint8_t                *payload;   /* while running */
    size_t                  have;
};


/*
 * Skips kept chunks at the start of the range, and passes them to the handler.
 * Returns XET_CLI_OK, or the result of the handler.
 */
int xet_cli_range_fetch_skip(xet_cli_range_fetch_t *u,
    xet_cli_range_fetch_kept_pt kept, void *ctx);

/* Whether all chunks of the range were received. */
int xet_cli_range_fetch_complete(const xet_cli_range_fetch_t *u);

/*
 * Sets up u->request, except its done handler.  Returns XET_CLI_OK, or
 * XET_CLI_ERROR without memory, reported.
 */
int xet_cli_range_fetch_prepare(xet_cli_range_fetch_t *u);

/*
 * The range has moved in the xorb, so all of it must be fetched again.  Not to
 * be called while a request is running.
 */
void xet_cli_range_fetch_moved(xet_cli_range_fetch_t *u, uint64_t start,
    uint64_t end);

/*
 * After a request: whether it must be sent again from the start of the range,
 * because the data do not continue the kept chunks.
 */
int xet_cli_range_fetch_rewind(xet_cli_range_fetch_t *u);

/*
 * Call it when the request is done.  Returns XET_CLI_OK if the unit is
 * complete, else the exit code of a failure, reported.
 */
int xet_cli_range_fetch_result(xet_cli_range_fetch_t *u);

void xet_cli_range_fetch_free(xet_cli_range_fetch_t *u);


/*
 * Downloads: a file, or bytes of it, by reconstructions and data URLs.
 *
 * The file is fetched in spans that start and end at chunk borders; several
 * are in progress, each with several units.  Every chunk is decoded and hashed
 * when it arrives; the hashes of a whole file must give its hash.  A part of a
 * file cannot be verified like this: only its decompression and the lengths of
 * its terms are checked.
 */


#define XET_CLI_DOWNLOAD_ALL       UINT64_MAX

/* Bytes of a span; a span of an ordered download is kept in memory. */

#define XET_CLI_DOWNLOAD_BATCH    (64 * 1024 * 1024)
#define XET_CLI_DOWNLOAD_ORDERED   (16 * 1024 * 1024)
#define XET_CLI_DOWNLOAD_SUM       (1024 * 1024 * 1024)

#define XET_CLI_DOWNLOAD_PARALLEL  8


/* Totals of what would be fetched. */

typedef struct {
    uint64_t               terms;
    uint64_t               ranges;     /* of xorbs */
    uint64_t               stored;     /* bytes of them */
} xet_cli_download_sum_t;


typedef struct {

    /* set by the caller */

    xet_hash_t             hash;
    uint64_t               first;      /* byte */
    uint64_t               end;        /* exclusive, or ..._ALL */
    uint64_t               most;       /* maximal size of the file, or
                                          ..._ALL */
    const char            *name;       /* of the file, for messages */
    uint64_t               parallel;   /* transfers */
    const char            *list;       /* source that gives most as the size
                                          of the whole file; or NULL */
    const uint8_t         *sha256;     /* of the whole file, ordered; or NULL */
    xet_cli_download_sum_t  *sum;      /* add up plans, and fetch nothing; or
                                          NULL */
    unsigned               ordered:1;  /* the sink wants a stream */

    /*
     * Takes bytes of the file, in order only if ordered is set.  They are
     * whole chunks, so some may lie before first or after end.  NULL: the
     * bytes are dropped.  Returns XET_CLI_OK, or the exit code to end with,
     * reported.
     */
    int                  (*sink)(void *ctx, uint64_t offset,
                                 const uint8_t *data, size_t len);
    /*
     * Takes each fetched chunk: after the sink, or before it if ordered is
     * set.  NULL: not needed.
     */
    int                  (*note)(void *ctx, const xet_cli_chunk_t *chunk);
    xet_cli_range_fetch_kept_pt  kept;  /* NULL: no chunks are kept */
    void                        *ctx;

    /* results */

    uint64_t                     size;  /* end of the last span */
    uint64_t                     chunks;
    uint64_t                     received;  /* bytes of xorbs */
    unsigned                     passing:1;  /* a later run may succeed */
    unsigned                     doubted:1;  /* kept chunks may be wrong; not
                                          reported */

    EVP_MD_CTX            *digest;     /* private */
} xet_cli_download_t;


/*
 * Zeroes *d and sets it up for a whole file, from its hash and the options of
 * the verb.  Returns XET_CLI_OK, or XET_CLI_USAGE, reported.
 */
int xet_cli_download_init(xet_cli_download_t *d, const xet_cli_args_t *args,
    const char *hash);

/*
 * Downloads a file or a part of it, and verifies the hash of a whole file.
 * Returns XET_CLI_OK, XET_CLI_INTERRUPTED, or the exit code of a failure,
 * reported.
 */
int xet_cli_download(xet_cli_http_t *h, xet_cli_download_t *d);

/* Reports that the SHA-256 of a file is wrong; returns XET_CLI_FAULT. */
int xet_cli_download_other(const char *name, const uint8_t *sha256);

/*
 * A file from a manifest or a Hub.  A file of size 0 has the hash zero, and is
 * not requested.
 */

typedef struct {
    const char            *path;       /* path to write to */
    xet_hash_t             hash;
    uint64_t               size;
    const uint8_t         *sha256;     /* NULL: unknown */
    unsigned               executable:1;
    unsigned               given:1;    /* path was given, and may be a pipe */
} xet_cli_want_t;

/* "xet get" of such a file, with the options of that verb. */
int xet_cli_get_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const xet_cli_want_t *want);


/*
 * "xet get --recursive" of files, one by one; paths are relative to the
 * folder. xet_cli_get_tree_begin() returns NULL on an error, reported, with
 * the exit code in *rc. xet_cli_get_tree_end() gives the pending files their
 * names, and frees everything; it takes the exit code so far, and returns the
 * worse one.  The client may be NULL until a file is to be fetched, and is not
 * destroyed.
 */

typedef struct xet_cli_get_tree_s  xet_cli_get_tree_t;

xet_cli_get_tree_t *xet_cli_get_tree_begin(const xet_cli_args_t *args,
    xet_cli_http_t *h, const char *folder, int *rc);
int xet_cli_get_tree_want(xet_cli_get_tree_t *g, const xet_cli_want_t *want);
int xet_cli_get_tree_end(xet_cli_get_tree_t *g, int rc);

/* Whether an unsafe name has ended the get, see --names. */
int xet_cli_get_tree_refused(const xet_cli_get_tree_t *g);

/*
 * Gets the size of a file in bytes, by a HEAD request of its files route.
 * Returns XET_CLI_OK or XET_CLI_INTERRUPTED.  A failure is reported and
 * returned as by xet_cli_http_fail(); with quiet every failure is
 * XET_CLI_FAULT, not reported.
 */
int xet_cli_download_size(xet_cli_http_t *h, const xet_hash_t *hash,
    int quiet, uint64_t *size);


/*
 * An incomplete download: NAME.xet-part with the received data, each chunk in
 * its place, and NAME.xet-state with a record of 48 bytes for each of these
 * chunks.
 *
 *     state   =  "XETPART1", 8 spare bytes, file hash, record*
 *     record  =  offset u64, raw length u32, stored length u32, chunk hash
 *
 * A record is written after the data of its chunk, and counts only if they
 * have the chunk hash in the record: nothing depends on what reached the disk
 * before a crash.  The state is locked, so that two downloads do not share it.
 * Memory is 48 bytes for each chunk that an earlier run has left.
 */


typedef struct {
    int               folder;          /* names are relative to it */
    char             *target;
    char             *part;            /* name of the part */
    char             *state;           /* name of the state */

    int               part_fd;
    int               state_fd;

    xet_cli_chunk_t  *kept;            /* of an earlier run, by offset */
    size_t            nkept;
    uint64_t          have;            /* bytes of kept and new chunks */

    uint8_t          *records;         /* to be written */
    size_t            len;
    uint64_t          written;         /* time of the last write, in ms */

    int               state_made;      /* created by this run */
    int               part_made;
    unsigned          unread:1;        /* interrupted while reading records */
} xet_cli_part_t;


/*
 * Fetches a whole file for a target in a folder, and applies want, if that is
 * not NULL.  With now it is synced and gets its name at once; otherwise
 * xet_cli_part_name() gives it the name after a sync that many parts share.  A
 * part without a name is resumed by the next download.  Returns XET_CLI_OK, or
 * the exit code of a failure, reported; then both files are removed, or kept
 * for the next run if the failure may be temporary.
 */
int xet_cli_part_fetch(xet_cli_part_t *p, xet_cli_http_t *h,
    xet_cli_download_t *d, int folder, const char *target,
    const xet_cli_want_t *want, int now);

/*
 * Makes a file executable for all who may read it; XET_CLI_ERROR is reported.
 */
int xet_cli_part_mode(int fd, const char *name);

/*
 * Renames a part to its target and removes the state; with sync it syncs the
 * folder.  Returns XET_CLI_OK, or XET_CLI_ERROR, reported: then the caller
 * must call xet_cli_part_stop(), which removes both files.  With keep it keeps
 * them for the next run if they have any chunks, and reports that.
 */
int xet_cli_part_name(xet_cli_part_t *p, int sync);
void xet_cli_part_stop(xet_cli_part_t *p, int keep);


/*
 * Trees: folders with their contents.
 *
 * A path is relative to the root of a tree, with slashes.  It is followed
 * folder by folder, and never through a symbolic link: whatever a manifest
 * says, and whatever others write into the tree, nothing outside of it is read
 * or written.
 */


typedef struct {
    char                *path;
    unsigned             folder:1;     /* this is an empty folder */
    unsigned             link:1;       /* this is a symbolic link */
} xet_cli_tree_entry_t;


typedef struct {

    /* set by the caller, who zeroes the other members */

    int                  (*skip)(const char *path);  /* paths to skip; NULL:
                                                        none */
    unsigned               links:1;    /* include symbolic links */

    int                    root;
    xet_cli_tree_entry_t  *entries;    /* sorted by name */
    size_t                 count;
    size_t                 room;
} xet_cli_tree_t;


/*
 * Finds the files and the empty folders in a folder and below it.  Devices,
 * pipes, files of interrupted downloads, and unwanted links are skipped, which
 * is reported.  Returns XET_CLI_OK, XET_CLI_INTERRUPTED, or the worst exit
 * code of what could not be read, reported; the rest is still found.  Call
 * xet_cli_tree_free() in any case.
 */
int xet_cli_tree_read(xet_cli_tree_t *t, const char *name);
void xet_cli_tree_free(xet_cli_tree_t *t);

/*
 * Opens a file of the tree for reading; *executable: its owner may run it.
 * Returns NULL on an error, reported.
 */
FILE *xet_cli_tree_open(const xet_cli_tree_t *t, const char *path,
    int *executable);

/*
 * Opens the folder of a path; with make, missing folders are created.  *base
 * becomes the last part of the path, not copied.  Returns a descriptor, which
 * the caller closes, or -1 with errno, not reported.
 */
int xet_cli_tree_parent(int root, const char *path, int make,
    const char **base);

/*
 * Whether a path of a manifest is valid: relative, without empty parts, "." or
 * "..", and without names that xet_cli_part.c uses.
 */
int xet_cli_tree_path_ok(const char *path);

/*
 * Whether no part of a path has a special meaning for git, Windows or a client
 * (xet_hub_path_risk()); otherwise reported as "PATH: WHAT: why".
 */
int xet_cli_tree_safe(const char *path, const char *what);


/*
 * Xorbs of a put: their chunk lists, for the shard that will list them and for
 * the journal of the put. 36 bytes for each chunk.
 */


typedef struct {
    xet_xorb_list_t     list;          /* owns hashes and raw_ends */
    unsigned            resumed:1;     /* sent by an earlier run */
    unsigned            wanted:1;      /* to be listed in the next shard */
} xet_cli_xorb_t;


typedef struct {
    xet_cli_xorb_t     *all;
    size_t              n;
    size_t              room;
} xet_cli_xorbs_t;


/*
 * Appends a copy of a list; resumed: an earlier run has sent the xorb.
 * Returns XET_CLI_OK, or XET_CLI_ERROR without memory, reported.
 */
int xet_cli_xorbs_add(xet_cli_xorbs_t *x, const xet_xorb_list_t *list,
    int resumed);

/* Marks the resumed xorb with this hash, if any, as wanted. */
void xet_cli_xorbs_want(xet_cli_xorbs_t *x, const xet_hash_t *hash);

/* Frees the wanted xorbs, the resumed ones or both; the others move up. */
void xet_cli_xorbs_drop(xet_cli_xorbs_t *x, unsigned wanted,
    unsigned resumed);


/*
 * The journal of a put: the xorbs that the server has acknowledged, so that
 * the next run need not send them again if the put is interrupted.
 *
 * A journal is a file in $XDG_CACHE_HOME/xet, by default ~/.cache/xet, a
 * folder that this user owns and nobody else may write to.  Its name is
 * derived from the endpoint, the current folder and the operands, so that the
 * same command finds it; and from the target of the files, since one import
 * goes to many repositories, each with a journal of its own.  A put that
 * succeeds removes its journal; a put that creates a journal removes those
 * that are a week old.
 *
 *     journal =  "XETPUT01", record*
 *     record  =  xorb hash, chunks u32, raw and stored size u32, 4 spare
 *                bytes, (chunk hash, length u32)*
 *
 * A record counts only if its chunks have the hash of the xorb, so an
 * incomplete one is ignored.  It does not prove that the server still has the
 * xorb: the response to the shard shows that.  A put also works without a
 * journal: failures to write it are not reported.
 */


typedef struct {
    int                 folder;        /* -1: no journal */
    int                 fd;            /* -1: no file yet */
    char                name[40];
    uint64_t            size;
} xet_cli_journal_t;


/*
 * Opens the journal of this command, if any, and adds its xorbs to x as
 * resumed ones.  Returns XET_CLI_OK, also without a journal, or XET_CLI_ERROR,
 * reported.
 */
int xet_cli_journal_open(xet_cli_journal_t *j, const xet_cli_args_t *args,
    const char *endpoint, const char *storage, xet_cli_xorbs_t *x);

/* Appends a record; the first one creates the file. */
void xet_cli_journal_add(xet_cli_journal_t *j, const xet_xorb_list_t *xorb);

/* Removes all records. */
void xet_cli_journal_reset(xet_cli_journal_t *j);

/* Closes the journal; with done also removes it. */
void xet_cli_journal_close(xet_cli_journal_t *j, int done);


/*
 * Uploads: sends xorbs and shards.
 *
 * A complete xorb is sent while the next one is written.  Files are registered
 * by shards, after the server has acknowledged all xorbs that they need.
 * Memory is at most 64 MiB for the xorb being written and for each xorb being
 * sent, and 76 bytes for each term.
 */


/* A term of a file. */

typedef struct {
    xet_hash_t          xorb;
    uint32_t            start;         /* chunks of the xorb */
    uint32_t            end;           /* exclusive */
    uint32_t            raw_length;
    xet_hash_t          verification;
} xet_cli_segment_t;


typedef struct {
    const char         *name;
    xet_hash_t          hash;
    uint64_t            size;
    uint64_t            new_bytes;
    uint8_t             sha256[32];
    unsigned            executable:1;
    xet_cli_segment_t  *segments;
    size_t              count;
    size_t              room;
} xet_cli_file_t;


typedef struct xet_cli_upload_xorb_s  xet_cli_upload_xorb_t;


typedef struct {
    xet_cli_http_t     *http;
    xet_cli_journal_t   journal;
    xet_cli_xorbs_t     xorbs;         /* not yet listed by a shard */
    unsigned            once:1;        /* the files cannot be read again */
    unsigned            resumed:1;     /* files use xorbs of an earlier run */
    unsigned            refused:1;     /* the server has lost those */
    unsigned            ended:1;       /* nothing to resume */

    uint64_t            parallel;
    xet_cli_upload_xorb_t  *sends;     /* being sent */
    unsigned            sending;       /* the number of sends */
    int                 rc;            /* the first failure */

    uint8_t            *body;          /* of the xorb being written, or NULL */
    size_t              len;
} xet_cli_upload_t;


void xet_cli_upload_init(xet_cli_upload_t *u, xet_cli_http_t *h,
    uint64_t parallel);
void xet_cli_upload_free(xet_cli_upload_t *u);

/*
 * Appends to the xorb being written.  XET_OK, XET_NOMEM, or XET_XORB_SIZE over
 * 64 MiB.
 */
xet_status_t xet_cli_upload_write(xet_cli_upload_t *u, const uint8_t *data,
    size_t len);

/*
 * The following return XET_CLI_OK, XET_CLI_INTERRUPTED, or the exit code of a
 * failure, reported.
 */

/*
 * Sends the xorb that was written.  First waits until fewer than --parallel
 * xorbs are being sent.
 */
int xet_cli_upload_xorb(xet_cli_upload_t *u, const xet_xorb_info_t *info);

/*
 * Waits for all xorbs, and registers the files.  If u->refused is set then,
 * the server does not have xorbs of an earlier run that the files refer to.
 * The upload has dropped these xorbs, and the files must be read again; this
 * failure is reported only if u->once says that they cannot.
 */
int xet_cli_upload_commit(xet_cli_upload_t *u, const xet_cli_file_t *files,
    size_t n);


/*
 * Packs files for an upload: reads them and drives the core, which cuts them
 * into chunks and builds xorbs and terms; keeps what is needed to register
 * each file.
 *
 * A file is read once and may be a pipe.  The packer asks the server about
 * chunks for the core, and sends the xorbs that the core completes, while
 * other xorbs are being sent.  Memory is 48 bytes for each known chunk, and 32
 * bytes for each chunk whose term waits for its xorb.
 */


typedef struct {
    xet_cli_upload_t   *upload;
    xet_ingest_t       *core;          /* NULL: until the next file */
    unsigned            begun:1;       /* the core has read a file */

    EVP_MD_CTX         *sha256;
    uint8_t            *piece;         /* of the file being read */

    xet_cli_file_t     *files;         /* not registered yet */
    size_t              nfiles;
    size_t              room;
    size_t              first;         /* the core's number of files[0] */
    size_t              terms;         /* of all these files */

    uint8_t            *hashes;        /* of chunks without a term */
    size_t              hash_first;
    size_t              hash_end;
    size_t              hash_room;
} xet_cli_packer_t;


/*
 * Returns XET_CLI_OK, or XET_CLI_ERROR, reported.  Call xet_cli_packer_free()
 * in any case.
 */
int xet_cli_packer_init(xet_cli_packer_t *p, xet_cli_upload_t *upload);
void xet_cli_packer_free(xet_cli_packer_t *p);

/*
 * Reads a stream to its end, as the next of p->files; its terms may follow
 * later.  The name is not copied and must outlive p->files.  Returns
 * XET_CLI_OK, XET_CLI_INTERRUPTED, or the exit code of a failure, reported.
 */
int xet_cli_packer_file(xet_cli_packer_t *p, FILE *in, const char *name,
    int executable);

/*
 * Completes the last xorb and registers all files, see
 * xet_cli_upload_commit().
 */
int xet_cli_packer_commit(xet_cli_packer_t *p);

/* Frees the terms of all files and empties p->files, after a commit. */
void xet_cli_packer_clear(xet_cli_packer_t *p);


/*
 * A put of many files: reads and sends them, and reports those that are
 * registered.
 */

typedef struct {
    size_t               count;

    /*
     * Opens file i, whose name is not copied; NULL in *in: nothing to send.
     * XET_CLI_ERROR, reported, does not stop the others.  A file may be opened
     * again, with all later ones, until it is registered.
     */
    int                (*open)(void *ctx, size_t i, FILE **in,
                               const char **name, int *executable);
    /* called for each file that was sent, in order */
    int                (*registered)(void *ctx, const xet_cli_file_t *file);
    /* called after the last file; until then a put can be resumed */
    int                (*end)(void *ctx);
    void                *ctx;
    const char          *storage;      /* target of the files, for the
                                          journal; NULL: given by the
                                          operands */
    unsigned             once:1;       /* the files cannot be read again */
} xet_cli_puts_t;

int xet_cli_puts(const xet_cli_args_t *args, xet_cli_http_t *h,
    const xet_cli_puts_t *puts);

/* Prints a file that was sent, as text or as JSON. */
int xet_cli_put_print(const xet_cli_args_t *args,
    const xet_cli_file_t *file);


#endif /* _XET_CLI_TRANSFER_H_INCLUDED_ */
