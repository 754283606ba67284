
/*
 * Transfers: files to a server and from it.
 */

#ifndef _XET_CLI_TRANSFER_H_INCLUDED_
#define _XET_CLI_TRANSFER_H_INCLUDED_


#include <openssl/evp.h>

#include "xet_cli.h"
#include "xet_net.h"
#include "xet_xorb.h"


/*
 * A request by HTTP: what is asked for, what has come back, and the setting up
 * of the transfer.
 *
 * An answer of 2xx goes to the write handler if there is one, else it is kept
 * in data, and a longer one than max bytes ends the request.  Of any other
 * answer the first XET_CLI_REQUEST_SHORT bytes are kept.
 *
 * The token file is read again for each attempt, so that the token may be
 * renewed meanwhile.  Tokens go to the API only, by TLS or to this machine,
 * unless --insecure-token says otherwise.  The same holds for a user and a
 * password in a URL.
 *
 * Redirections are followed here, and not by libcurl, which would log in to any
 * host of ~/.netrc, or port of this machine, that it is sent to.  After a
 * redirection to another scheme, host or port a request gets no credentials any
 * more; and one that began with credentials and TLS does not leave TLS.
 */


#define XET_CLI_REQUEST_MAX    (64 * 1024 * 1024)   /* bytes of an answer */
#define XET_CLI_REQUEST_SHORT  (64 * 1024)          /* of a short answer */


typedef struct xet_cli_http_s     xet_cli_http_t;
typedef struct xet_cli_request_s  xet_cli_request_t;


struct xet_cli_request_s {

    /* set by the caller, who zeroes the other members */

    const char         *method;        /* NULL: GET */
    char               *url;           /* malloc()ed; freed with the request */
    const uint8_t      *body;
    size_t              body_len;
    const char         *type;          /* its Content-Type, as a line of a
                                          header; NULL: bytes */
    char                range[48];     /* "a-b", or empty */
    size_t              max;           /* bytes; 0: XET_CLI_REQUEST_MAX */
    unsigned            api:1;         /* gets the token */
    unsigned            patient:1;     /* the answer may take any time */
    unsigned            netrc:1;       /* may log in as ~/.netrc says */

    /* takes bytes of an answer of 2xx; not 0 ends the request */
    int               (*write)(xet_cli_request_t *r, const uint8_t *data,
                               size_t len);
    /* called before each attempt; NULL: nothing to do */
    void              (*restart)(xet_cli_request_t *r);
    /* called once, when the request has ended; may be NULL */
    void              (*done)(xet_cli_request_t *r);
    void               *ctx;

    /* for the done handler */

    long                status;        /* 0: no answer, error says why */
    unsigned            refused:1;     /* by write, or too long for max */
    unsigned            large:1;       /* too long for max */
    unsigned            lost:1;        /* it was sent before, and whether that
                                          was done nobody has said */
    char               *data;          /* with a zero byte behind it */
    size_t              len;
    int64_t             length;        /* Content-Length, or -1 */
    char                error[XET_NET_TEXT_MAX];

    /* private */

    xet_cli_http_t     *http;
    xet_cli_request_t  *next;
    xet_net_request_t   net;
    size_t              came;          /* bytes of the answer, kept or not */
    char               *place;         /* of a redirection, or NULL */
    unsigned            redirects;
    unsigned            foreign:1;     /* it led to another origin */
    unsigned            tls:1;         /* needed, for credentials were sent */
    unsigned            attempts;
    uint64_t            due;
};


/*
 * HTTP: many requests at a time, one thread.
 *
 * The caller owns a request.  It must stay in its place until its done handler
 * is called, which may free it or start it again.  Broken connections, 408,
 * 429 and 5xx except 501 are retried here, after a time that doubles or that
 * Retry-After names, a minute at most.  A POST is retried like a GET: all
 * requests of the API are idempotent.
 */


#define XET_CLI_HTTP_TEXT  1024        /* bytes of a URL, shown */


/* Handles one operand of a verb, name; returns the exit code. */
typedef int (*xet_cli_operand_pt)(const xet_cli_args_t *args,
    xet_cli_http_t *h, const char *name);


/*
 * Makes the HTTP client of a verb from its options and the environment, which
 * have an endpoint or --url.  NULL on an error, reported; *rc is the exit code.
 */
xet_cli_http_t *xet_cli_http_create(const xet_cli_args_t *args, int *rc);

/* The same for an endpoint that something else has said. */
xet_cli_http_t *xet_cli_http_create_at(const xet_cli_args_t *args,
    const char *endpoint, int *rc);

/* A token to be sent now, good for some time yet; NULL: none, reported. */
typedef const char *(*xet_cli_renew_pt)(void *ctx);

/*
 * Sends tokens that this function gives, and no others: it is called for each
 * attempt, and may wait, for an HTTP client other than this one.
 */
void xet_cli_http_renew(xet_cli_http_t *h, xet_cli_renew_pt renew,
    void *ctx);

/* Sends this token, or none, but for that of a file; it is not copied. */
void xet_cli_http_token(xet_cli_http_t *h, const char *token);

/* What the options or the environment have as the endpoint; empty: nothing. */
const char *xet_cli_http_endpoint(const xet_cli_args_t *args);

/* Whether two URLs have one scheme, host and port. */
int xet_cli_http_same(const char *one, const char *two);

/*
 * The value of a header of the last answer, which is there until the next
 * call, or the next attempt; NULL: there is none.
 */
const char *xet_cli_http_header(const xet_cli_request_t *r,
    const char *name);

/* Whether a token has only printable ASCII characters and no blanks. */
int xet_cli_request_token_ok(const char *token);

/* All requests have been freed. */
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

/* Gives up a request that is not done, and frees all that *r holds. */
void xet_cli_http_free(xet_cli_request_t *r);

/*
 * Whether a request that has failed may succeed later: there was no answer,
 * the server failed or was too busy, or the token has expired.
 */
int xet_cli_http_passing(const xet_cli_request_t *r);

/*
 * Whether a request to delete has found nothing, which is told by 404 and this
 * code, behind one whose answer was lost: so it was done.
 */
int xet_cli_http_gone(const xet_cli_request_t *r, const char *code);

/*
 * Reports a request that has failed, with the code and the message of the API
 * where the answer has them.  XET_CLI_FAULT for 404 and 416, XET_CLI_NETWORK
 * for all else.
 */
int xet_cli_http_fail(const xet_cli_request_t *r);


/*
 * Reconstructions as the server answers them, version 2 or 1: the terms of a
 * part of a file, and the ranges of xorbs to fetch for them.
 */


typedef struct {
    xet_hash_t        xorb;
    uint32_t          chunk_start;
    uint32_t          chunk_end;       /* exclusive */
    uint64_t          raw_length;
    size_t            range;           /* index of the one that holds it */
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
    uint64_t          offset;          /* of the first byte asked for, in the
                                          first term */
    uint64_t          raw_length;      /* of all terms */
    xet_cli_term_t   *terms;
    size_t            nterms;
    xet_cli_range_t  *ranges;          /* by xorb and first chunk; each has a
                                          term */
    size_t            nranges;
    size_t            ranges_room;
    char            **urls;            /* one for each entry */
    size_t            nurls;
    size_t            urls_room;
    unsigned          large:1;         /* refused, and only for its size */
} xet_cli_plan_t;


/*
 * Limits of a plan.  A larger plan is refused, and the caller asks for a
 * smaller part of the file, so that memory does not depend on what a server
 * sends.  A part of 64 MiB in chunks of 64 KiB, each of them in a range of its
 * own with a URL of 512 bytes, has a body of 0.9 MB.
 */

#define XET_CLI_PLAN_BODY    (2 * 1024 * 1024)     /* bytes of JSON */
#define XET_CLI_PLAN_ROOM    (16 * 1024 * 1024)    /* of memory for the JSON */
#define XET_CLI_PLAN_URL     (16 * 1024)           /* bytes of a URL */
#define XET_CLI_PLAN_RANGES  4096
#define XET_CLI_PLAN_CHUNKS  32768                 /* of all terms */


/*
 * Parses a body of version 1 or 2.  XET_CLI_OK: all numbers are within the
 * limits of the protocol, each term lies in its range, and the plan is to be
 * freed.  XET_CLI_NETWORK for a body that is wrong and XET_CLI_ERROR without
 * memory, not reported: *error is the reason.  With plan->large the plan of a
 * smaller part of the file may be taken.
 */
int xet_cli_plan_parse(xet_cli_plan_t *plan, unsigned version,
    const char *data, size_t len, const char **error);

void xet_cli_plan_free(xet_cli_plan_t *plan);

/* Whether two plans have the same chunks, be their bytes where they may. */
int xet_cli_plan_same(const xet_cli_plan_t *a, const xet_cli_plan_t *b);


/*
 * A unit of a download: one range of one xorb, streamed.
 *
 * The chunks of the range come in order; each is decoded, hashed and handed to
 * the handler once for each place that it has in the file.  A transfer that
 * breaks off is resumed behind the last complete chunk.  Memory is one stored
 * chunk for each running unit, one decoder for all units of a download, and
 * what libcurl needs.
 *
 *     waiting -> running -> done
 *                        -> expired (the URL: 403, 404) -> waiting
 *                        -> rewound -> waiting
 *
 * Where chunks were there before, the next one begins where they have ended
 * in the xorb of then.  The server may have stored the xorb anew since, as
 * other bytes of the same chunks: then the range comes from its start, and
 * the chunks that are there are passed over.
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


/* A term of the file, and how much of it has come. */

typedef struct {
    size_t                range;       /* of the plan */
    uint32_t              start;       /* chunks of the xorb */
    uint32_t              end;
    uint64_t              pos;         /* of the next chunk in the file */
    uint64_t              stop;        /* end of the term in the file */
} xet_cli_use_t;


typedef struct xet_cli_unit_s  xet_cli_unit_t;


/* What all units of a download share. */

typedef struct {
    xet_codec_t          *codec;
    uint8_t               raw[XET_CHUNK_MAX];

    /*
     * Takes a chunk at one place; raw is NULL if an earlier run has kept it
     * there.  XET_CLI_OK, or the exit code that ends the unit, reported.
     */
    int                 (*handler)(xet_cli_unit_t *u,
                                   const xet_cli_chunk_t *chunk,
                                   const uint8_t *raw);
} xet_cli_decoder_t;


/*
 * Whether an earlier run has kept a chunk at chunk->offset; fills the rest of
 * *chunk then.
 */
typedef int (*xet_cli_unit_kept_pt)(void *ctx, xet_cli_chunk_t *chunk);


struct xet_cli_unit_s {
    xet_cli_request_t     request;
    xet_cli_unit_t       *next;        /* in the queue or in expired */
    void                 *span;
    xet_cli_decoder_t    *decoder;

    xet_cli_range_t      *range;
    xet_cli_use_t        *uses;        /* by start */
    size_t                nuses;
    size_t                passed;      /* uses that are complete */

    uint32_t              chunk;       /* number of the next one */
    uint32_t              placed;      /* chunks before it are in place */
    uint64_t              pos;         /* of the next chunk in the xorb */
    int                   rc;          /* why the write handler refused */
    unsigned              running:1;
    unsigned              skipped:1;   /* what was there, pos is a guess */

    xet_xorb_parser_t     parser;
    uint8_t              *payload;     /* while running */
    size_t                have;
};


/*
 * Skips chunks at the beginning of the range that an earlier run has kept, and
 * hands them to the handler.  XET_CLI_OK, or what the handler has returned.
 */
int xet_cli_unit_skip(xet_cli_unit_t *u, xet_cli_unit_kept_pt kept,
    void *ctx);

/* Whether all chunks of the range have come. */
int xet_cli_unit_complete(const xet_cli_unit_t *u);

/*
 * Sets up u->request, except for its done handler.  XET_CLI_OK, or
 * XET_CLI_ERROR without memory, reported.
 */
int xet_cli_unit_prepare(xet_cli_unit_t *u);

/*
 * The range has other bytes of the xorb than before, so that all of it must
 * come from the start.  Not while a request is under way.
 */
void xet_cli_unit_moved(xet_cli_unit_t *u, uint64_t start, uint64_t end);

/*
 * After a request: whether it must be sent again from the start of the range,
 * because the bytes do not continue the chunks that were kept.
 */
int xet_cli_unit_rewind(xet_cli_unit_t *u);

/*
 * To be called when the request is done.  XET_CLI_OK if the unit is complete,
 * else the exit code of a failure, reported.
 */
int xet_cli_unit_result(xet_cli_unit_t *u);

void xet_cli_unit_free(xet_cli_unit_t *u);


/*
 * Downloads: a file, or bytes of it, by reconstructions and data URLs.
 *
 * The file is asked for in spans that begin and end with chunks; several
 * are under way at a time, and in them several units.  Every chunk is decoded
 * and hashed when it comes; of a whole file the hashes must give the hash of
 * the file.  A part of a file cannot be proved right in this way: it is only
 * known that its chunks decompress and that the terms have their lengths.
 */


#define XET_CLI_DOWNLOAD_ALL       UINT64_MAX

/* Bytes of a span; a span of an ordered download is kept in memory. */

#define XET_CLI_DOWNLOAD_WINDOW    (64 * 1024 * 1024)
#define XET_CLI_DOWNLOAD_ORDERED   (16 * 1024 * 1024)
#define XET_CLI_DOWNLOAD_SUM       (1024 * 1024 * 1024)

#define XET_CLI_DOWNLOAD_PARALLEL  8


/* What would be fetched. */

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
    uint64_t               most;       /* bytes that the file may have, or
                                          ..._ALL */
    const char            *name;       /* of the file, for reports */
    uint64_t               parallel;   /* transfers */
    const char            *list;       /* what has most as the size of the
                                          whole file; or NULL */
    const uint8_t         *sha256;     /* of the whole file, ordered; or NULL */
    xet_cli_download_sum_t  *sum;      /* plans are added, and nothing is
                                          fetched; NULL: all is */
    unsigned               ordered:1;  /* the sink wants a stream */

    /*
     * Takes bytes of the file, in order only if ordered is set.  They are
     * whole chunks: some bytes may lie before first or behind end.  NULL: the
     * bytes are dropped.
     * XET_CLI_OK, or the exit code to end with, reported by the sink.
     */
    int                  (*sink)(void *ctx, uint64_t offset,
                                 const uint8_t *data, size_t len);
    /*
     * Takes each chunk that was fetched: after the sink, or if ordered is set
     * before it.  NULL: not wanted.
     */
    int                  (*note)(void *ctx, const xet_cli_chunk_t *chunk);
    xet_cli_unit_kept_pt   kept;       /* NULL: no chunk is kept */
    void                  *ctx;

    /* results */

    uint64_t               size;       /* end of the last span */
    uint64_t               chunks;
    uint64_t               received;   /* bytes of xorbs */
    unsigned               passing:1;  /* a later run may succeed */
    unsigned               doubted:1;  /* kept bytes may be wrong; not
                                          reported */

    EVP_MD_CTX            *digest;     /* private */
} xet_cli_download_t;


/*
 * Zeroes *d and sets it up for a whole file, by its hash string and the options
 * of the verb.  XET_CLI_OK, or XET_CLI_USAGE, reported.
 */
int xet_cli_download_init(xet_cli_download_t *d, const xet_cli_args_t *args,
    const char *hash);

/*
 * Downloads a file or a part of it, as *d says, and verifies the hash of a
 * whole file.  XET_CLI_OK, XET_CLI_INTERRUPTED, or the exit code of a failure
 * that has been reported.
 */
int xet_cli_download(xet_cli_http_t *h, xet_cli_download_t *d);

/* XET_CLI_FAULT, reported: the SHA-256 of a file is another one. */
int xet_cli_download_other(const char *name, const uint8_t *sha256);

/*
 * A file that somebody has named otherwise than by its hash.  A size of 0 has
 * the hash zero, and nobody is asked for it.
 */

typedef struct {
    const char            *path;       /* where it is to be */
    xet_hash_t             hash;
    uint64_t               size;
    const uint8_t         *sha256;     /* NULL: not known */
    unsigned               executable:1;
    unsigned               given:1;    /* the path was, and may be a pipe */
} xet_cli_want_t;

/* "xet get" of such a file, with the options of that verb. */
int xet_cli_get_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const xet_cli_want_t *want);


/*
 * "xet get --recursive" of files that come one after the other; paths are in
 * the folder.  NULL on an error, reported, with the exit code in *rc.  The last
 * call gives names to those that wait, and frees all; it takes the exit code
 * so far, and returns the worse one.  The client may be NULL until there is a
 * file that is to be fetched, and is not destroyed.
 */

typedef struct xet_cli_get_tree_s  xet_cli_get_tree_t;

xet_cli_get_tree_t *xet_cli_get_tree_begin(const xet_cli_args_t *args,
    xet_cli_http_t *h, const char *folder, int *rc);
int xet_cli_get_tree_want(xet_cli_get_tree_t *g, const xet_cli_want_t *want);
int xet_cli_get_tree_end(xet_cli_get_tree_t *g, int rc);

/* Whether a name was refused that ends the get, by --names. */
int xet_cli_get_tree_refused(const xet_cli_get_tree_t *g);

/*
 * Asks for the size of a file in bytes, by a HEAD request of its files route.
 * XET_CLI_OK or XET_CLI_INTERRUPTED.  A failure is reported and returned as by
 * xet_cli_http_fail(); with quiet any failure is XET_CLI_FAULT, not reported.
 */
int xet_cli_download_size(xet_cli_http_t *h, const xet_hash_t *hash,
    int quiet, uint64_t *size);


/*
 * A download that is not complete: NAME.xet-part with the bytes that came,
 * each in its place, and NAME.xet-state with a record of 48 bytes for each of
 * their chunks.
 *
 *     state   =  "XETPART1", 8 spare bytes, file hash, record*
 *     record  =  offset u64, raw length u32, stored length u32, chunk hash
 *
 * A record is written after the bytes of its chunk, and counts only if they
 * have the chunk hash that it names: nothing depends on what reached the disk
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

    int               state_made;      /* this run has made the file */
    int               part_made;
    unsigned          unread:1;        /* a signal came before some records */
} xet_cli_part_t;


/*
 * Fetches a whole file, for a target in a folder, and makes it what is wanted,
 * if that is not NULL.  With now it is synced and has its name then; without,
 * xet_cli_part_name() gives it the name when it is on the disk, so that many
 * parts may share a sync.  A part that gets no name is resumed by the next
 * download.  XET_CLI_OK, or the exit code of a failure, reported; then both
 * files are removed, or left for the next run if the reason may pass.
 */
int xet_cli_part_fetch(xet_cli_part_t *p, xet_cli_http_t *h,
    xet_cli_download_t *d, int folder, const char *target,
    const xet_cli_want_t *want, int now);

/* Lets everybody run a file who may read it; XET_CLI_ERROR is reported. */
int xet_cli_part_mode(int fd, const char *name);

/*
 * Renames a part to its target and removes the state, and with sync syncs the
 * folder.  XET_CLI_OK, or XET_CLI_ERROR, reported: then the caller still calls
 * xet_cli_part_stop(), which removes both files.  With keep it leaves them for
 * the next run if they have any chunks, which it reports.
 */
int xet_cli_part_name(xet_cli_part_t *p, int sync);
void xet_cli_part_stop(xet_cli_part_t *p, int keep);


/*
 * Folders with all that is in them.
 *
 * A path is relative to the root of a tree, with slashes.  It is followed
 * folder by folder, and never through a symbolic link: whatever a manifest
 * says, and whoever else writes in the tree, nothing outside of it is read or
 * written.
 */


typedef struct {
    char                *path;
    unsigned             folder:1;     /* this is an empty folder */
    unsigned             link:1;       /* this is a symbolic link */
} xet_cli_tree_entry_t;


typedef struct {

    /* set by the caller, who zeroes the other members */

    int                  (*skip)(const char *path);  /* NULL: nothing is
                                                        passed over */
    unsigned               links:1;    /* links are wanted */

    int                    root;
    xet_cli_tree_entry_t  *entries;    /* in the order of their names */
    size_t                 count;
    size_t                 room;
} xet_cli_tree_t;


/*
 * Finds the files and the empty folders in a folder and below it.  Devices,
 * pipes, what is left of downloads, and links unless they are wanted, are left
 * out, which is reported.  XET_CLI_OK, XET_CLI_INTERRUPTED, or the worst exit
 * code of what could not be read, reported; the rest is found nevertheless.
 * xet_cli_tree_free() is to be called in any case.
 */
int xet_cli_tree_read(xet_cli_tree_t *t, const char *name);
void xet_cli_tree_free(xet_cli_tree_t *t);

/*
 * Opens a file of the tree for reading; *executable: its owner may run it.
 * NULL on an error, reported.
 */
FILE *xet_cli_tree_open(const xet_cli_tree_t *t, const char *path,
    int *executable);

/*
 * Opens the folder that a path is in; with make, missing folders are made.
 * *base becomes the last part of the path, not copied.  Returns a descriptor,
 * which the caller closes, or -1 with errno, not reported.
 */
int xet_cli_tree_parent(int root, const char *path, int make,
    const char **base);

/*
 * Whether a path of a manifest may be used: it is relative, has no part that is
 * empty, "." or "..", and no name that xet_cli_part.c gives.
 */
int xet_cli_tree_path_ok(const char *path);

/*
 * Whether nothing of a path is taken by git, Windows or a client for something
 * of its own (xet_hub_path_risk()); reported otherwise: "PATH: WHAT: why".
 */
int xet_cli_tree_safe(const char *path, const char *what);


/*
 * Xorbs that a put has made: their chunk lists, for the shard that is to list
 * them and for the journal of the put.  36 bytes for each chunk.
 */


typedef struct {
    xet_xorb_list_t     list;          /* owns hashes and raw_ends */
    unsigned            resumed:1;     /* an earlier run has sent it */
    unsigned            wanted:1;      /* the next shard is to list it */
} xet_cli_xorb_t;


typedef struct {
    xet_cli_xorb_t     *all;
    size_t              n;
    size_t              room;
} xet_cli_xorbs_t;


/*
 * Appends a copy of a list; resumed: an earlier run has sent the xorb.
 * XET_CLI_OK, or XET_CLI_ERROR without memory, reported.
 */
int xet_cli_xorbs_add(xet_cli_xorbs_t *x, const xet_xorb_list_t *list,
    int resumed);

/* Marks a resumed xorb as wanted, if there is one with this hash. */
void xet_cli_xorbs_want(xet_cli_xorbs_t *x, const xet_hash_t *hash);

/* Frees the wanted xorbs, the resumed ones or both; the others move up. */
void xet_cli_xorbs_drop(xet_cli_xorbs_t *x, unsigned wanted,
    unsigned resumed);


/*
 * What a put has sent: the xorbs that the server has acknowledged.  If the put
 * is broken off, the next run need not send them again.
 *
 * A journal is a file in $XDG_CACHE_HOME/xet, ~/.cache/xet by default, a
 * folder that this user owns and nobody else may write into.  Its name is made
 * of the endpoint, the current folder and the operands of the command, so that
 * the same command finds it; and of the place that the files go to, since one
 * import is of many repos: what one of them has got is of no use to others, and
 * when it is complete that of the others stays.  A put that succeeds removes
 * its journal; a put that makes a new journal removes those that are a week
 * old.
 *
 *     journal =  "XETPUT01", record*
 *     record  =  xorb hash, chunks u32, raw and stored size u32, 4 spare
 *                bytes, (chunk hash, length u32)*
 *
 * A record counts only if its chunks have the hash of the xorb, so that a half
 * written one is ignored.  It does not prove that the server still has the
 * xorb: the answer to the shard shows that.  A put works without a journal,
 * too: one that cannot be written is not reported.
 */


typedef struct {
    int                 folder;        /* -1: no journal is written */
    int                 fd;            /* -1: there is no file so far */
    char                name[40];
    uint64_t            size;
} xet_cli_journal_t;


/*
 * Opens the journal of this command, if there is one, and adds its xorbs to x
 * as resumed ones.  XET_CLI_OK, also without a journal, or XET_CLI_ERROR,
 * reported.
 */
int xet_cli_journal_open(xet_cli_journal_t *j, const xet_cli_args_t *args,
    const char *endpoint, const char *place, xet_cli_xorbs_t *x);

/* Appends a record; the first one makes the file. */
void xet_cli_journal_add(xet_cli_journal_t *j, const xet_xorb_list_t *xorb);

/* Removes all records. */
void xet_cli_journal_reset(xet_cli_journal_t *j);

/* Closes the journal; done: also removes it, nothing is to be resumed. */
void xet_cli_journal_close(xet_cli_journal_t *j, int done);


/*
 * Uploads: what a session sends.
 *
 * A complete xorb is sent while the next one is written.  Files are registered
 * by shards, when the server has acknowledged all xorbs that they need.
 * Memory is 64 MiB at most for the xorb being written and for each xorb that
 * is under way, and 76 bytes for each term.
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
    xet_cli_xorbs_t     xorbs;         /* that no shard has listed yet */
    unsigned            once:1;        /* the files cannot be read again */
    unsigned            resumed:1;     /* files need xorbs of an earlier run */
    unsigned            refused:1;     /* the server does not have those */
    unsigned            ended:1;       /* there is nothing to resume */

    uint64_t            parallel;
    xet_cli_upload_xorb_t  *sends;     /* under way */
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
 * These return XET_CLI_OK, XET_CLI_INTERRUPTED, or the exit code of a failure,
 * reported.
 */

/*
 * Sends the xorb that has been written, which is complete.  Waits before that
 * until fewer xorbs than --parallel are under way.
 */
int xet_cli_upload_xorb(xet_cli_upload_t *u, const xet_xorb_info_t *info);

/*
 * Waits for all xorbs, and registers the files.  If u->refused is set then, the
 * server does not have xorbs of an earlier run that the files refer to.  The
 * upload has forgotten these xorbs, and the files are to be read again; this
 * failure is reported only if u->once says that they cannot.
 */
int xet_cli_upload_commit(xet_cli_upload_t *u, const xet_cli_file_t *files,
    size_t n);


/*
 * Packs files for an upload: reads them, drives the core, which cuts them into
 * chunks and puts together xorbs and terms, and keeps what is to be registered
 * of each file.
 *
 * A file is read once and may be a pipe.  The packer asks the server what the
 * core wants to know, and sends the xorbs that the core completes; both while
 * other xorbs are under way.  Memory is 48 bytes for each known chunk, and 32
 * bytes for each chunk whose term waits for its xorb.
 */


typedef struct {
    xet_cli_upload_t   *upload;
    xet_ingest_t       *core;          /* NULL: until the next file */
    unsigned            begun:1;       /* the core has taken in a file */

    EVP_MD_CTX         *sha256;
    uint8_t            *piece;         /* of the file that is read */

    xet_cli_file_t     *files;         /* not registered so far */
    size_t              nfiles;
    size_t              room;
    size_t              first;         /* the core's number of files[0] */
    size_t              terms;         /* of all these files, so far */

    uint8_t            *hashes;        /* of chunks that have no term yet */
    size_t              hash_first;
    size_t              hash_end;
    size_t              hash_room;
} xet_cli_packer_t;


/*
 * XET_CLI_OK, or XET_CLI_ERROR, reported.  xet_cli_packer_free() is to be
 * called in any case.
 */
int xet_cli_packer_init(xet_cli_packer_t *p, xet_cli_upload_t *upload);
void xet_cli_packer_free(xet_cli_packer_t *p);

/*
 * Reads a stream to its end, as one more of p->files; its terms may come
 * later.  The name is not copied and must outlive p->files.  XET_CLI_OK,
 * XET_CLI_INTERRUPTED, or the exit code of a failure, reported.
 */
int xet_cli_packer_file(xet_cli_packer_t *p, FILE *in, const char *name,
    int executable);

/*
 * Completes the last xorb and registers all files: see xet_cli_upload_commit().
 */
int xet_cli_packer_commit(xet_cli_packer_t *p);

/* Frees the terms of all files and empties p->files, after a commit. */
void xet_cli_packer_clear(xet_cli_packer_t *p);


/*
 * A put of many files, whatever they are: reads and sends them, and tells which
 * are registered.
 */

typedef struct {
    size_t               count;

    /*
     * Opens file i, whose name is not copied; NULL in *in: there is nothing to
     * send.  XET_CLI_ERROR, reported, does not stop the others.  A file may be
     * asked for again, with all behind it, until it is registered.
     */
    int                (*open)(void *ctx, size_t i, FILE **in,
                               const char **name, int *executable);
    /* of each file that was sent, in their order */
    int                (*registered)(void *ctx, const xet_cli_file_t *file);
    /* behind the last one; before that a put is gone on with */
    int                (*end)(void *ctx);
    void                *ctx;
    const char          *place;        /* of the files, for the journal; NULL:
                                          the operands have it */
    unsigned             once:1;       /* the files cannot be read again */
} xet_cli_puts_t;

int xet_cli_puts(const xet_cli_args_t *args, xet_cli_http_t *h,
    const xet_cli_puts_t *puts);

/* Prints a file that was sent, as text or as JSON. */
int xet_cli_put_print(const xet_cli_args_t *args,
    const xet_cli_file_t *file);


#endif /* _XET_CLI_TRANSFER_H_INCLUDED_ */
