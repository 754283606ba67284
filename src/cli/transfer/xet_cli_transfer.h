
/* Transfers: uploads and downloads of files. */

#ifndef _XET_CLI_TRANSFER_H_INCLUDED_
#define _XET_CLI_TRANSFER_H_INCLUDED_


#include <openssl/evp.h>

#include "xet_cli.h"
#include "xet_cli_http.h"
#include "xet_xorb.h"


/*
 * A plan is a parsed reconstruction of version 2 or 1: the terms of a part of
 * a file, and the ranges of xorbs to fetch for these terms.
 */


typedef struct {
    xet_hash_t        xorb;
    uint32_t          chunk_start;
    uint32_t          chunk_end;       /* exclusive */
    uint64_t          raw_length;
    size_t            range;           /* index in plan->ranges */
} xet_cli_term_t;


typedef struct {
    xet_hash_t        xorb;
    uint32_t          chunk_start;
    uint32_t          chunk_end;       /* exclusive */
    uint64_t          byte_start;      /* offset in the xorb */
    uint64_t          byte_end;        /* exclusive */
    const char       *url;             /* one of plan->urls */
    size_t            reach;           /* used only by the parser */
} xet_cli_range_t;


typedef struct {
    uint64_t          offset;          /* offset of the first requested byte in
                                          the first term */
    uint64_t          raw_length;      /* sum of all terms */
    xet_cli_term_t   *terms;
    size_t            nterms;
    xet_cli_range_t  *ranges;          /* sorted by xorb and first chunk; each
                                          is used by a term */
    size_t            nranges;
    size_t            ranges_room;
    char            **urls;            /* one for each entry of the
                                          reconstruction */
    size_t            nurls;
    size_t            urls_room;
    unsigned          large:1;         /* rejected only for its size */
} xet_cli_plan_t;


/*
 * Limits of a plan.  A larger plan is rejected, and the caller requests a
 * smaller part of the file, so that memory does not depend on what a server
 * sends.  A part of 64 MiB in chunks of 64 KiB, each in a range of its own
 * with a URL of 512 bytes, has a body of 0.9 MB.
 */

#define XET_CLI_PLAN_BODY    (2 * 1024 * 1024)     /* bytes of JSON */
#define XET_CLI_PLAN_ROOM    (16 * 1024 * 1024)    /* bytes of parsed JSON */
#define XET_CLI_PLAN_URL     (16 * 1024)           /* bytes of a URL */
#define XET_CLI_PLAN_RANGES  4096
#define XET_CLI_PLAN_CHUNKS  32768                 /* sum of all terms */


/*
 * Parses a reconstruction of version 1 or 2.  Returns XET_CLI_OK if all
 * numbers are within the limits of the protocol and each term lies in its
 * range; then the caller must free the plan.  Otherwise sets *error to the
 * reason, prints nothing, and returns XET_CLI_NETWORK for an invalid body or
 * XET_CLI_ERROR if out of memory.  If plan->large is set, the plan of a
 * smaller part of the file may be accepted.
 */
int xet_cli_plan_parse(xet_cli_plan_t *plan, unsigned version,
    const char *data, size_t len, const char **error);

void xet_cli_plan_free(xet_cli_plan_t *plan);

/*
 * Returns whether two plans have the same chunks.  The byte ranges may differ.
 */
int xet_cli_plan_same(const xet_cli_plan_t *a, const xet_cli_plan_t *b);


/*
 * A unit of a download: one range of one xorb, streamed.
 *
 * The chunks of the range arrive in order.  Each chunk is decoded, hashed and
 * passed to the handler once for each of its positions in the file.  An
 * interrupted transfer is resumed after the last complete chunk.  Memory holds
 * one stored chunk for each running unit, one decoder for all units of a
 * download, and the buffers of libcurl.
 *
 *     waiting -> running -> done
 *                        -> expired (the URL: 403, 404) -> waiting
 *                        -> rewound -> waiting
 *
 * If an earlier run has kept chunks at the start of the range, only the bytes
 * after these chunks are requested.  The server may have stored the xorb again
 * since that run, with the same chunks at other offsets.  In this case the
 * whole range is fetched, and the kept chunks are skipped.
 */


/* A chunk at one of its positions; also a record of NAME.xet-state. */

typedef struct {
    uint64_t              offset;      /* offset in the file */
    uint32_t              raw_length;
    uint32_t              payload_length;  /* stored length without header */
    xet_hash_t            hash;
} xet_cli_chunk_t;


/* Compares two chunks by offset, for qsort() and bsearch(). */
int xet_cli_chunk_order(const void *one, const void *two);


/* A term of the file, and the position of the next chunk to receive. */

typedef struct {
    size_t                range;       /* index in plan.ranges */
    uint32_t              start;       /* first chunk in the xorb */
    uint32_t              end;         /* exclusive */
    uint64_t              pos;         /* file offset of the next chunk */
    uint64_t              stop;        /* end of the term in the file */
} xet_cli_use_t;


typedef struct xet_cli_range_fetch_s  xet_cli_range_fetch_t;


/* The data that all units of a download share. */

typedef struct {
    xet_codec_t          *codec;
    uint8_t               raw[XET_CHUNK_MAX];

    /*
     * Called for a chunk at one position; raw is NULL if an earlier run has
     * kept the chunk there.  Returns XET_CLI_OK; or an exit code, which ends
     * the unit, after printing the error.
     */
    int                 (*handler)(xet_cli_range_fetch_t *u,
                                   const xet_cli_chunk_t *chunk,
                                   const uint8_t *raw);
} xet_cli_decoder_t;


/*
 * Returns whether an earlier run has kept a chunk at chunk->offset; if so,
 * fills the other members of *chunk.
 */
typedef int (*xet_cli_range_fetch_kept_pt)(void *ctx, xet_cli_chunk_t *chunk);


struct xet_cli_range_fetch_s {
    xet_cli_request_t       request;
    xet_cli_range_fetch_t  *next;      /* next in queue, or span->expired */
    void                   *span;
    xet_cli_decoder_t      *decoder;

    xet_cli_range_t        *range;
    xet_cli_use_t          *uses;      /* sorted by start */
    size_t                  nuses;
    size_t                  passed;    /* number of complete uses */

    uint32_t                chunk;     /* index of the next chunk */
    uint32_t                placed;    /* first chunk not passed on yet */
    uint64_t                pos;       /* xorb offset of the next chunk */
    int                     rc;        /* result of the write handler */
    unsigned                running:1;
    unsigned                skipped:1;  /* chunks were skipped: pos is a
                                           guess */

    xet_xorb_parser_t       parser;
    uint8_t                *payload;   /* stored chunk, while running */
    size_t                  have;
};


/*
 * Skips the chunks at the start of the range that an earlier run has kept, and
 * passes them to the handler.
 * Returns XET_CLI_OK, or the exit code of the handler.
 */
int xet_cli_range_fetch_skip(xet_cli_range_fetch_t *u,
    xet_cli_range_fetch_kept_pt kept, void *ctx);

/* Returns whether all chunks of the range were received. */
int xet_cli_range_fetch_complete(const xet_cli_range_fetch_t *u);

/*
 * Initializes u->request, except its done handler.  Returns XET_CLI_OK, or
 * XET_CLI_ERROR after printing an out-of-memory error.
 */
int xet_cli_range_fetch_prepare(xet_cli_range_fetch_t *u);

/*
 * Sets a new byte range after the xorb was stored again, so that the whole
 * range is fetched.  Must not be called while the request is running.
 */
void xet_cli_range_fetch_moved(xet_cli_range_fetch_t *u, uint64_t start,
    uint64_t end);

/*
 * Must be called when the request has ended.  If the received data does not
 * continue the kept chunks, resets the unit to the start of the range and
 * returns 1: the request must be sent again.  Otherwise returns 0.
 */
int xet_cli_range_fetch_rewind(xet_cli_range_fetch_t *u);

/*
 * Must be called when the request has ended.  Returns XET_CLI_OK if the unit
 * is complete, or an exit code after printing the error.
 */
int xet_cli_range_fetch_result(xet_cli_range_fetch_t *u);

void xet_cli_range_fetch_free(xet_cli_range_fetch_t *u);


/*
 * Downloads a file, or bytes of a file, with reconstructions and data URLs.
 *
 * The file is fetched in spans, which start and end at chunk borders.  Several
 * spans are in progress, each with several units.  Every chunk is decoded and
 * hashed when it arrives; together, the hashes of a whole file must give the
 * hash of the file.  The hash of a part of a file is unknown, so for a part
 * only the decompression and the lengths of the terms are checked.
 */


#define XET_CLI_DOWNLOAD_ALL       UINT64_MAX

/* Span sizes in bytes.  An ordered download keeps a whole span in memory. */

#define XET_CLI_DOWNLOAD_BATCH    (64 * 1024 * 1024)
#define XET_CLI_DOWNLOAD_ORDERED   (16 * 1024 * 1024)
#define XET_CLI_DOWNLOAD_SUM       (1024 * 1024 * 1024)

#define XET_CLI_DOWNLOAD_PARALLEL  8


/* Totals of a download, computed without fetching the data. */

typedef struct {
    uint64_t               terms;
    uint64_t               ranges;     /* ranges of xorbs */
    uint64_t               stored;     /* bytes of these ranges */
} xet_cli_download_sum_t;


typedef struct {

    /* set by the caller */

    xet_hash_t             hash;
    uint64_t               first;      /* first requested byte */
    uint64_t               end;        /* end of the requested bytes, or
                                          XET_CLI_DOWNLOAD_ALL */
    uint64_t               most;       /* maximum size of the file, or
                                          XET_CLI_DOWNLOAD_ALL */
    const char            *name;       /* file name, for messages */
    uint64_t               parallel;   /* number of parallel transfers */
    const char            *list;       /* name of the list that has the size in
                                          most, for a message; or NULL */
    const uint8_t           *sha256;   /* expected SHA-256, or NULL; only for a
                                          whole file with ordered set */
    xet_cli_download_sum_t  *sum;      /* only add up the plans, do not fetch;
                                          or NULL */
    unsigned               ordered:1;  /* call the sink in order */

    /*
     * Called for bytes of the file, in order only if ordered is set.  The
     * bytes are whole chunks, so some may lie before first or after end.
     * NULL: the bytes are dropped.  Returns XET_CLI_OK; or an exit code, which
     * ends the download, after printing the error.
     */
    int                  (*sink)(void *ctx, uint64_t offset,
                                 const uint8_t *data, size_t len);
    /*
     * Called for each fetched chunk: after the sink, or before the sink if
     * ordered is set.  May be NULL.
     */
    int                  (*note)(void *ctx, const xet_cli_chunk_t *chunk);
    xet_cli_range_fetch_kept_pt  kept;  /* NULL: no chunks are kept */
    void                        *ctx;

    /* results */

    uint64_t                     size;  /* end of the last span */
    uint64_t                     chunks;
    uint64_t                     received;  /* xorb bytes received */
    unsigned                     passing:1;  /* a later run may succeed */
    unsigned                     unproven:1;  /* kept chunks may be wrong; the
                                                error was not printed */

    EVP_MD_CTX            *digest;     /* private */
} xet_cli_download_t;


/*
 * Zeroes *d and initializes it for a whole file, from its hash and the options
 * of the verb.  Returns XET_CLI_OK, or XET_CLI_USAGE after printing the error.
 */
int xet_cli_download_init(xet_cli_download_t *d, const xet_cli_args_t *args,
    const char *hash);

/*
 * Downloads a file or a part of a file, and verifies the hash of a whole file.
 * Returns XET_CLI_OK, XET_CLI_INTERRUPTED, or an exit code after printing the
 * error; if d->unproven is set, the error was not printed.
 */
int xet_cli_download(xet_cli_http_t *h, xet_cli_download_t *d);

/* Prints that the SHA-256 of a file is wrong; returns XET_CLI_FAULT. */
int xet_cli_download_other(const char *name, const uint8_t *sha256);


/*
 * The spans of a download.  Chunks of a span arrive in any order.  Spans are
 * finished in the order of the file, because the hash of the file is computed
 * from the chunk hashes in that order.
 */


typedef struct xet_cli_fetch_s   xet_cli_fetch_t;
typedef struct xet_cli_span_s    xet_cli_span_t;

struct xet_cli_span_s {
    xet_cli_span_t         *next;
    xet_cli_fetch_t        *fetch;

    uint64_t                first;     /* first requested byte */
    uint64_t                last;      /* last requested byte */
    uint64_t                start;     /* start of the first chunk */
    uint64_t                end;       /* end of the last chunk */

    xet_cli_request_t       request;   /* request for the plan */
    xet_cli_plan_t          plan;
    unsigned                planned:1;
    unsigned                refreshing:1;
    unsigned                refreshes;  /* new plans since the last chunk */

    xet_cli_range_fetch_t  *units;     /* one for each range of the plan */
    size_t                  left;      /* units that are not done */
    xet_cli_range_fetch_t  *expired;
    xet_cli_use_t          *uses;

    xet_cli_chunk_t        *chunks;    /* received chunks */
    size_t                  nchunks;
    size_t                  room;

    uint8_t                *data;      /* raw bytes start..end if ordered, or
                                          NULL */
};


struct xet_cli_fetch_s {
    xet_cli_download_t      *d;
    xet_cli_http_t          *http;

    xet_cli_span_t          *spans;    /* spans, in file order */
    unsigned                 nspans;
    xet_cli_range_fetch_t   *queue;
    xet_cli_range_fetch_t  **queue_end;
    uint64_t                 running;  /* running units */

    uint64_t                 next;     /* first byte of the next span */
    uint64_t                 size;     /* bytes of the next span */
    uint64_t                 batch;    /* usual size of a span */
    uint64_t                 done;     /* bytes done, for the progress bar */
    unsigned                 version;  /* version of reconstructions */
    unsigned                 known:1;  /* the server supports version */
    unsigned                 planning:1;
    unsigned                 last:1;   /* no span follows */
    unsigned                 kept:1;   /* an earlier run kept chunks */
    int                      rc;       /* exit code of the first failure */

    xet_merkle_t             merkle;
    xet_cli_decoder_t        decoder;
};


/*
 * Requests the next span, at the end of f->spans.  This function and the next
 * one report a failure in f->rc.
 */
void xet_cli_span_next(xet_cli_fetch_t *f);

/* Starts the first unit of f->queue. */
void xet_cli_span_fetch(xet_cli_fetch_t *f);

/* The handler of f->decoder: adds a chunk to its span. */
int xet_cli_span_chunk(xet_cli_range_fetch_t *u, const xet_cli_chunk_t *chunk,
    const uint8_t *raw);

/*
 * Sorts the chunks by offset.  Returns XET_CLI_OK if the chunks fill the span
 * without a gap, else XET_CLI_NETWORK after printing the error.
 */
int xet_cli_span_finish(xet_cli_span_t *w);

void xet_cli_span_free(xet_cli_span_t *w);


/*
 * A file to download, from a manifest or a Hub.  A file of size 0 has a hash
 * of zeroes, and is not requested.
 */

typedef struct {
    const char            *path;       /* path to write to */
    xet_hash_t             hash;
    uint64_t               size;
    const uint8_t         *sha256;     /* NULL: unknown */
    unsigned               executable:1;
    unsigned               given:1;    /* given by the user; may be a pipe */
} xet_cli_want_t;

/* Downloads the file "want" to want->path, with the options of "xet get". */
int xet_cli_get_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const xet_cli_want_t *want);


/*
 * Downloads files into a folder, one by one, for "xet get --recursive".  Paths
 * are relative to the folder.
 *
 * xet_cli_get_tree_begin() opens or creates the folder.  On an error, prints a
 * message, sets *rc to the exit code and returns NULL.  The client h may be
 * NULL until a file must be fetched; the caller destroys the client.
 *
 * xet_cli_get_tree_want() downloads one file, which may be renamed from its
 * part file later, together with other files.
 *
 * xet_cli_get_tree_end() renames all pending files and frees everything.  rc
 * is the exit code so far.  Returns the worse of rc and the exit code of this
 * function.
 */

typedef struct xet_cli_get_tree_s  xet_cli_get_tree_t;

xet_cli_get_tree_t *xet_cli_get_tree_begin(const xet_cli_args_t *args,
    xet_cli_http_t *h, const char *folder, int *rc);
int xet_cli_get_tree_want(xet_cli_get_tree_t *g, const xet_cli_want_t *want);
int xet_cli_get_tree_end(xet_cli_get_tree_t *g, int rc);

/* Returns whether an unsafe name has ended the download, see --names. */
int xet_cli_get_tree_refused(const xet_cli_get_tree_t *g);

/*
 * Gets the size of a file in bytes, with a HEAD request to its files route.
 * Returns XET_CLI_OK or XET_CLI_INTERRUPTED.  On a failure, calls
 * xet_cli_http_fail() and returns its exit code; if quiet is set, returns
 * XET_CLI_FAULT and prints nothing.
 */
int xet_cli_download_size(xet_cli_http_t *h, const xet_hash_t *hash,
    int quiet, uint64_t *size);


/*
 * An incomplete download consists of two files.  NAME.xet-part has the
 * received data, each chunk at its offset.  NAME.xet-state has a record of 48
 * bytes for each of these chunks.
 *
 *     state   =  "XETPART1", 8 spare bytes, file hash, record*
 *     record  =  offset u64, raw length u32, stored length u32, chunk hash
 *
 * A record is written after the data of its chunk.  A record counts only if
 * the data has the chunk hash in the record, so it does not matter which
 * writes had reached the disk before a crash.  The state file is locked, so
 * that two downloads do not share it.  Each chunk of an earlier run takes 48
 * bytes of memory.
 */


typedef struct {
    int               folder;          /* descriptor of the target's folder */
    char             *target;
    char             *part;            /* name of the part file */
    char             *state;           /* name of the state file */

    int               part_fd;
    int               state_fd;

    xet_cli_chunk_t  *kept;            /* chunks of an earlier run, by offset */
    size_t            nkept;
    uint64_t          have;            /* bytes of kept and new chunks */

    uint8_t          *records;         /* records to be written */
    size_t            len;
    uint64_t          written;         /* time of the last write, in ms */

    int               state_made;      /* this run created the state file */
    int               part_made;
    unsigned          unread:1;        /* interrupted while reading records */
} xet_cli_part_t;


/*
 * Fetches a whole file to the name "target" in a folder.  If want is not NULL,
 * also checks and sets what want specifies.  If now is set, the file is synced
 * and renamed to target immediately.  Otherwise the caller must call
 * xet_cli_part_name() after a sync, which many parts can share.  A part that
 * was not renamed is resumed by the next download.
 *
 * Returns XET_CLI_OK, or an exit code after printing the error.  On an error
 * both files are removed, or kept for the next run if the failure may be
 * temporary.
 */
int xet_cli_part_fetch(xet_cli_part_t *p, xet_cli_http_t *h,
    xet_cli_download_t *d, int folder, const char *target,
    const xet_cli_want_t *want, int now);

/*
 * Makes a file executable for all users who may read the file.  Returns
 * XET_CLI_OK, or XET_CLI_ERROR after printing the error.
 */
int xet_cli_part_mode(int fd, const char *name);

/*
 * xet_cli_part_name() renames a part file to its target and removes the state
 * file; if sync is set, it syncs the folder.  Returns XET_CLI_OK, or
 * XET_CLI_ERROR after printing the error; then the caller must call
 * xet_cli_part_stop().
 *
 * xet_cli_part_stop() removes both files.  If keep is set and the files have
 * any chunks, it keeps both files for the next run and prints a message.
 */
int xet_cli_part_name(xet_cli_part_t *p, int sync);
void xet_cli_part_stop(xet_cli_part_t *p, int keep);


/*
 * Trees: folders with their contents.
 *
 * A path is relative to the root of a tree, with slashes.  Each folder of a
 * path is opened separately, without following symbolic links.  So nothing
 * outside of the tree is read or written, whatever a manifest contains and
 * whatever other users write into the tree.
 */


typedef struct {
    char                *path;
    uint64_t             size;         /* at the time of xet_cli_tree_read() */
    unsigned             folder:1;     /* is an empty folder */
    unsigned             link:1;       /* is a symbolic link */
} xet_cli_tree_entry_t;


typedef struct {

    /* set by the caller, who zeroes the other members */

    int                  (*skip)(const char *path);  /* whether to skip a path;
                                                        NULL: skip none */
    unsigned               links:1;    /* include symbolic links */

    int                    root;
    xet_cli_tree_entry_t  *entries;    /* sorted by name */
    size_t                 count;
    size_t                 room;
    uint64_t               files;      /* without the empty folders */
    uint64_t               bytes;
} xet_cli_tree_t;


/*
 * Finds the files and the empty folders in a folder and below it.  Devices,
 * pipes, files of interrupted downloads, and unwanted links are skipped, with
 * a message.  Files that cannot be read do not stop the search.  Returns
 * XET_CLI_OK, XET_CLI_INTERRUPTED, or the worst exit code after printing the
 * errors.  Call xet_cli_tree_free() even after an error.
 */
int xet_cli_tree_read(xet_cli_tree_t *t, const char *name);
void xet_cli_tree_free(xet_cli_tree_t *t);

/*
 * Opens a file of the tree for reading.  Sets *executable if its owner may
 * execute the file.  Returns NULL after printing the error.
 */
FILE *xet_cli_tree_open(const xet_cli_tree_t *t, const char *path,
    int *executable);

/*
 * Returns a stream of an open file, which takes the descriptor, and sets
 * *executable like xet_cli_tree_open().  If fd is -1 with errno, or is not a
 * regular file, closes fd, prints the error and returns NULL; other is the
 * error for a file of another type.
 */
FILE *xet_cli_tree_stream(int fd, const char *path, const char *other,
    int *executable);

/*
 * Opens the folder of a path; if make is set, creates missing folders.  Sets
 * *base to the last part of the path, not copied.  Returns a descriptor, which
 * the caller must close; or -1 with errno, and prints nothing.
 */
int xet_cli_tree_parent(int root, const char *path, int make,
    const char **base);

/*
 * Returns whether a path of a manifest is valid: relative, without empty
 * parts, "." or "..", and without names that xet_cli_part.c uses.
 */
int xet_cli_tree_path_ok(const char *path);

/*
 * Returns whether a path is safe: no part has a special meaning for git,
 * Windows or a client (xet_hub_path_risk()).  If the path is unsafe, prints
 * "PATH: WHAT: reason".
 */
int xet_cli_tree_safe(const char *path, const char *what);


/*
 * The xorbs of a put.  Their chunk lists are needed for the next shard, and
 * for the journal of the put.  Each chunk takes 36 bytes of memory.
 */


typedef struct {
    xet_xorb_list_t     list;          /* owns hashes and raw_ends */
    unsigned            resumed:1;     /* sent by an earlier run */
    unsigned            wanted:1;      /* must be listed in the next shard */
} xet_cli_xorb_t;


typedef struct {
    xet_cli_xorb_t     *all;
    size_t              n;
    size_t              room;
} xet_cli_xorbs_t;


/*
 * Appends a copy of a list.  resumed is set if an earlier run has sent the
 * xorb.  Returns XET_CLI_OK, or XET_CLI_ERROR after printing an out-of-memory
 * error.
 */
int xet_cli_xorbs_add(xet_cli_xorbs_t *x, const xet_xorb_list_t *list,
    int resumed);

/* Marks the resumed xorb with this hash, if any, as wanted. */
void xet_cli_xorbs_want(xet_cli_xorbs_t *x, const xet_hash_t *hash);

/* Removes the wanted xorbs, the resumed xorbs or both, and closes the gaps. */
void xet_cli_xorbs_drop(xet_cli_xorbs_t *x, unsigned wanted,
    unsigned resumed);


/*
 * The journal of a put lists the xorbs that the server has acknowledged.  If
 * the put is interrupted, the next run need not send these xorbs again.
 *
 * A journal is a file in $XDG_CACHE_HOME/xet, by default ~/.cache/xet.  Only
 * this user may own that folder and write to it.  The name of a journal is
 * derived from the endpoint, the current folder and the operands, so that the
 * same command finds the same journal.  The name also depends on the target of
 * the files, since one import has many target repositories.  A put that
 * succeeds removes its journal; a put that creates a journal removes journals
 * older than a week.
 *
 *     journal =  "XETPUT01", record*
 *     record  =  xorb hash, chunks u32, raw and stored size u32, 4 spare
 *                bytes, (chunk hash, length u32)*
 *
 * A record counts only if its chunks have the hash of the xorb, so an
 * incomplete record is ignored.  A record does not prove that the server still
 * has the xorb: the response to the shard shows that.  A put also works
 * without a journal: failures to write the journal are not reported.
 */


typedef struct {
    int                 folder;        /* -1: no journal */
    int                 fd;            /* -1: no file yet */
    char                name[40];
    uint64_t            size;
} xet_cli_journal_t;


/*
 * Opens the journal of this command, if there is one, and adds its xorbs to x
 * as resumed xorbs.  Returns XET_CLI_OK, even without a journal, or
 * XET_CLI_ERROR after printing the error.
 */
int xet_cli_journal_open(xet_cli_journal_t *j, const xet_cli_args_t *args,
    const char *endpoint, const char *storage, xet_cli_xorbs_t *x);

/* Appends a record; the first record creates the file. */
void xet_cli_journal_add(xet_cli_journal_t *j, const xet_xorb_list_t *xorb);

/* Removes all records. */
void xet_cli_journal_reset(xet_cli_journal_t *j);

/* Closes the journal; if done is set, also removes the file. */
void xet_cli_journal_close(xet_cli_journal_t *j, int done);


/*
 * Uploads: sends xorbs and shards.
 *
 * A complete xorb is sent while the next one is written.  Files are registered
 * by shards, after the server has acknowledged all xorbs that they need.
 * Memory use is at most 64 MiB for the xorb being written and for each xorb
 * being sent, and 76 bytes for each term.
 */


/* A term of a file. */

typedef struct {
    xet_hash_t          xorb;
    uint32_t            start;         /* first chunk in the xorb */
    uint32_t            end;           /* exclusive */
    uint32_t            raw_length;
    xet_hash_t          verification;
} xet_cli_upload_term_t;


typedef struct {
    const char             *name;
    xet_hash_t              hash;
    uint64_t                size;
    uint64_t                new_bytes;
    uint8_t                 sha256[32];
    unsigned                executable:1;
    xet_cli_upload_term_t  *segments;
    size_t                  count;
    size_t                  room;
} xet_cli_file_t;


typedef struct xet_cli_upload_xorb_s  xet_cli_upload_xorb_t;


typedef struct {
    xet_cli_http_t     *http;
    xet_cli_journal_t   journal;
    xet_cli_xorbs_t     xorbs;         /* xorbs that no shard has listed yet */
    unsigned            once:1;        /* the files cannot be read again */
    unsigned            resumed:1;     /* files use xorbs of an earlier run */
    unsigned            refused:1;     /* the server has lost resumed xorbs */
    unsigned            ended:1;       /* the put was complete */

    uint64_t                parallel;
    xet_cli_upload_xorb_t  *sends;     /* xorbs being sent */
    unsigned                sending;   /* the number of sends */
    int                     rc;        /* exit code of the first failure */

    uint8_t            *body;          /* the xorb being written, or NULL */
    size_t              len;
} xet_cli_upload_t;


void xet_cli_upload_init(xet_cli_upload_t *u, xet_cli_http_t *h,
    uint64_t parallel);
void xet_cli_upload_free(xet_cli_upload_t *u);

/*
 * Appends data to the xorb being written.  Returns XET_OK, XET_NOMEM, or
 * XET_XORB_SIZE if the xorb would exceed 64 MiB.
 */
xet_status_t xet_cli_upload_write(xet_cli_upload_t *u, const uint8_t *data,
    size_t len);

/*
 * The next two functions return XET_CLI_OK, XET_CLI_INTERRUPTED, or an exit
 * code after printing the error.
 */

/*
 * Waits until fewer than --parallel xorbs are being sent, then starts to send
 * the xorb that was written.
 */
int xet_cli_upload_xorb(xet_cli_upload_t *u, const xet_xorb_info_t *info);

/*
 * Waits for all xorbs, and registers the files.  If u->refused is set on
 * return, files refer to xorbs of an earlier run that the server no longer
 * has.  These xorbs were dropped, and the files must be read again.  This
 * failure is reported only if u->once is set, so that the files cannot be read
 * again.
 */
int xet_cli_upload_commit(xet_cli_upload_t *u, const xet_cli_file_t *files,
    size_t n);


/*
 * Packs files for an upload: reads files, and passes their data to the core,
 * which cuts them into chunks and builds xorbs and terms.  Keeps the data that
 * is needed to register each file.
 *
 * A file is read once and may be a pipe.  When the core needs to know whether
 * the server has a chunk, the packer queries the server.  The packer also
 * sends completed xorbs, several at a time.  Each known chunk takes 48 bytes
 * of memory, and each chunk whose term waits for its xorb takes 32 bytes.
 */


typedef struct {
    xet_cli_upload_t   *upload;
    xet_ingest_t       *core;          /* NULL: created for the next file */
    unsigned            begun:1;       /* the core has read a file */

    EVP_MD_CTX         *sha256;
    uint8_t            *piece;         /* buffer for the file being read */

    xet_cli_file_t     *files;         /* files to be registered */
    size_t              nfiles;
    size_t              room;
    size_t              first;         /* index of files[0] in the core */
    size_t              terms;         /* number of terms of these files */

    uint8_t            *hashes;        /* hashes of chunks without a term */
    size_t              hash_first;
    size_t              hash_end;
    size_t              hash_room;
} xet_cli_packer_t;


/*
 * Returns XET_CLI_OK, or XET_CLI_ERROR after printing the error.  Call
 * xet_cli_packer_free() even after an error.
 */
int xet_cli_packer_init(xet_cli_packer_t *p, xet_cli_upload_t *upload);
void xet_cli_packer_free(xet_cli_packer_t *p);

/*
 * Appends a file to p->files and reads its data from a stream.  Terms of the
 * file may be added later.  The name is not copied and must outlive p->files.
 * Returns XET_CLI_OK, XET_CLI_INTERRUPTED, or an exit code after printing the
 * error.
 */
int xet_cli_packer_file(xet_cli_packer_t *p, FILE *in, const char *name,
    int executable);

/*
 * Completes the last xorb and registers all files with
 * xet_cli_upload_commit().  Returns the result of that function.
 */
int xet_cli_packer_commit(xet_cli_packer_t *p);

/* Frees the terms of all files and empties p->files, after a commit. */
void xet_cli_packer_clear(xet_cli_packer_t *p);


/*
 * A put of many files: reads and sends the files, and reports each file after
 * its registration.
 */

typedef struct {
    size_t               count;

    /*
     * The folder that the files are from, for the progress bar: file i is its
     * entry i.  NULL: single files, each with a progress bar.
     */
    const xet_cli_tree_t  *tree;
    const char          *name;

    /*
     * Opens file i.  The name is not copied.  *in stays NULL if there is
     * nothing to send.  XET_CLI_ERROR, after printing the error, does not stop
     * other files.  Until a file is registered, it may be opened again, with
     * all later files.
     */
    int                (*open)(void *ctx, size_t i, FILE **in,
                               const char **name, int *executable);
    /* called for each registered file, in order */
    int                (*registered)(void *ctx, const xet_cli_file_t *file);
    /* called after the last file; before this, a put can be resumed */
    int                (*end)(void *ctx);
    void                *ctx;
    const char          *storage;      /* target repository, used in the name
                                          of the journal; or NULL */
    unsigned             once:1;       /* the files cannot be read again */
} xet_cli_puts_t;

int xet_cli_puts(const xet_cli_args_t *args, xet_cli_http_t *h,
    const xet_cli_puts_t *puts);

/*
 * Prints an uploaded file, as text or as JSON.  The text for a file of a
 * folder (many) is one line, with --verbose only.
 */
int xet_cli_put_print(const xet_cli_args_t *args, const xet_cli_file_t *file,
    int many);

/* Prints a file of a folder as a line of text: hash, size and name. */
int xet_cli_file_line(const xet_hash_t *hash, uint64_t size,
    const char *name);


#endif /* _XET_CLI_TRANSFER_H_INCLUDED_ */
