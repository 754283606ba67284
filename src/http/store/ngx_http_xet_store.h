
/*
 * The files of the store: temporary files, durable copies of xorbs, and their
 * maintenance, in a folder or an object store.  Functions whose names end in
 * _job block and are called in a thread.
 */

#ifndef _NGX_HTTP_XET_STORE_H_INCLUDED_
#define _NGX_HTTP_XET_STORE_H_INCLUDED_


#include "ngx_http_xet.h"
#include "xet_store.h"


/* A copy of a xorb. */

typedef struct {
    xet_hash_t  xorb;
    uint32_t    tag;
} ngx_http_xet_copy_name_t;


/* A check of a copy. */

typedef struct {
    ngx_http_xet_copy_name_t  name;
    uint64_t                  want;            /* its size, by the row */
    uint64_t                  size;            /* the result */
    xet_status_t              status;
} ngx_http_xet_copy_stat_t;


/*
 * The store of "xet_store", and its data for the event loop.  It is not in the
 * pool of the configuration, because a thread may outlive that pool.
 */

struct ngx_http_xet_store_s {
    xet_store_t  *backend;                     /* for jobs */
    ngx_str_t     name;                        /* its folder, or "s3://..." */
    ngx_str_t     temp;                        /* folder of temporary files */
    xet_s3_t     *s3;                          /* NULL: a folder */
};


/*
 * Creates a store in a folder, or in an object store; both strings end with a
 * zero byte, not with a slash.  NULL if out of memory, or for an error of
 * conf.
 */
ngx_http_xet_store_t *ngx_http_xet_store_files(ngx_conf_t *cf,
    const ngx_str_t *path);
ngx_http_xet_store_t *ngx_http_xet_store_s3(ngx_conf_t *cf,
    const ngx_str_t *temp, const xet_s3_conf_t *conf, xet_s3_error_t *error);

/*
 * Creates missing folders of the store, durably.  Removes files older than a
 * day, which a crash has left, from the folder of temporary files.  Blocks:
 * called by the master at start and at each reload.
 */
ngx_int_t ngx_http_xet_store_init(ngx_cycle_t *cycle);

/* Counts requests to an object store since the last call. */
void ngx_http_xet_store_measure(ngx_http_xet_store_t *store);

/*
 * Called when the worker and its thread pools have ended: no thread of the
 * store may run while libraries are cleaned up.
 */
void ngx_http_xet_store_exit(ngx_cycle_t *cycle);


/*
 * A copy without a row is removed when it is XET_XORB_ORPHAN_AGE old.  So its
 * row must be written long before.  made is a time in seconds since 1970, not
 * later than the age of the copy suggests, and PostgreSQL rejects the row of
 * an older copy (xet.copy_made()).  PostgreSQL decides this, not the worker: a
 * machine that was suspended at any point does not notice the time.
 */

/*
 * A temporary file of a request.  It is anonymous if the file system supports
 * O_TMPFILE, so that a crash leaves nothing behind; otherwise it is
 * <store>/tmp/<unique name>.
 */

typedef struct {
    ngx_http_xet_store_t  *store;
    xet_store_writer_t    *writer;             /* NULL: nothing is written */
    off_t                  size;               /* bytes written */

    xet_checksum_state_t  *checksum;           /* of the bytes written */
    xet_checksum_t         digest;             /* set by commit */
    xet_hash_t             xorb;               /* the xorb, or its claim */
    uint32_t               tag;                /* set by commit */
    uint64_t               began;              /* the upload, a moment */
    uint64_t               made;               /* set by commit, see below */

    unsigned               digested:1;         /* checksum is computed */
    unsigned               claimed:1;          /* xorb is known before */
    unsigned               committed:1;        /* there is a copy */
    unsigned               kept:1;             /* it is not removed */
} ngx_http_xet_temp_t;


/*
 * A file of the request, opened at the first write.  After the request a
 * thread closes the file and removes its name, and its copy unless it is
 * kept.  NULL if out of memory.
 */
ngx_http_xet_temp_t *ngx_http_xet_store_temp(ngx_http_request_t *r);

/*
 * A file of the request for a copy of a xorb: its bytes are digested when they
 * are written, so they must not be overwritten.  NULL if out of memory.
 */
ngx_http_xet_temp_t *ngx_http_xet_store_xorb(ngx_http_request_t *r);

/* The same outside of a request: the file is closed with the pool. */
ngx_http_xet_temp_t *ngx_http_xet_store_copy(ngx_pool_t *pool);

/*
 * Names the xorb that the file is expected to contain: then an object store
 * gets its bytes while they arrive.  Called before the first write.
 */
void ngx_http_xet_store_claim(ngx_http_xet_temp_t *file,
    const xet_hash_t *xorb);

/*
 * Moments are sequence numbers, not times: of two moments the larger one was
 * taken later, even within one turn of the event loop.
 */
uint64_t ngx_http_xet_store_sequence(void);

/*
 * Appends len bytes; the first write opens the file.  XET_STORE_FULL,
 * XET_STORE_FILES, XET_STORE_OTHER, XET_STORE_FAILED, XET_NOMEM.
 */
xet_status_t ngx_http_xet_store_write_job(ngx_http_xet_temp_t *file,
    const u_char *data, size_t len, ngx_log_t *log);

/* Overwrites len bytes at offset that were written before. */
xet_status_t ngx_http_xet_store_patch_job(ngx_http_xet_temp_t *file,
    const u_char *data, size_t len, off_t offset, ngx_log_t *log);

/* Reads exactly len bytes at offset; a shorter file is an error. */
xet_status_t ngx_http_xet_store_read_job(ngx_http_xet_temp_t *file,
    u_char *data, size_t len, off_t offset, ngx_log_t *log);

/*
 * Makes the file a copy of the xorb, durable under a new name; sets digest and
 * tag.  Only for a file of ngx_http_xet_store_xorb().  The copy is removed
 * when the file is closed, unless ngx_http_xet_store_keep() has kept it.
 */
xet_status_t ngx_http_xet_store_commit_job(ngx_http_xet_temp_t *file,
    const xet_hash_t *xorb, ngx_log_t *log);

/*
 * kept is 1 while a row may name the copy: the copy stays when the file is
 * closed.  0: certainly no row names the copy, and it is removed.
 */
void ngx_http_xet_store_keep(ngx_http_xet_temp_t *file, ngx_uint_t kept);

/*
 * Closes the file, and removes its copy unless it is kept.  The next write
 * starts another file.
 */
void ngx_http_xet_store_reset_job(ngx_http_xet_temp_t *file, ngx_log_t *log);


/*
 * Two checks of a copy that a row names.  XET_OK; XET_STORE_DAMAGED: the copy
 * is missing, or does not match the row; XET_STORE_OTHER: the store does not
 * belong to this database.  Any other status (XET_STORE_FAILED,
 * XET_STORE_FILES, XET_NOMEM) says nothing about the copy.
 */

/* Whether the copy exists and has size bytes. */
xet_status_t ngx_http_xet_store_stat_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, uint64_t size, ngx_log_t *log);

/*
 * The same for n copies: a bucket is asked for several at once.  Each has its
 * own status; the caller sets name and want.
 */
void ngx_http_xet_store_stat_all_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *stats, ngx_uint_t n, ngx_log_t *log);

/* Reads the whole copy and compares its checksum with digest. */
xet_status_t ngx_http_xet_store_check_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, const xet_checksum_t *digest,
    ngx_log_t *log);

/*
 * Removes a copy that no row names any more; a missing copy is not an error.
 * Failures are logged.
 */
xet_status_t ngx_http_xet_store_remove_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, ngx_log_t *log);

/* The same for n copies; after XET_OK the removal is durable. */
xet_status_t ngx_http_xet_store_remove_all_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, ngx_log_t *log);

/*
 * ngx_http_xet_store_tags.c: tags, which distinguish copies.  A worker gets
 * tags in blocks: the first tag of the block is added, with the number of
 * tags, some of the first of which may be used already.  Both functions may be
 * called in any thread.
 */
#define NGX_HTTP_XET_TAGS_BLOCK   256         /* as in xet.tags_take() */
#define NGX_HTTP_XET_TAGS_BLOCKS  4           /* at most */

void ngx_http_xet_store_tags_add(uint32_t first);
ngx_uint_t ngx_http_xet_store_tags_blocks(void);

/* A monotonic clock in milliseconds, for threads. */
uint64_t ngx_http_xet_store_clock(void);


/*
 * Signatures for an object store; both functions only compute, and may be
 * called in the event loop.
 */

/*
 * Writes a URL with which anyone may read the bytes [start, end) of the copy,
 * with this range in the header Range, for seconds from made on.  XET_INTERNAL
 * if it is too long.
 */
xet_status_t ngx_http_xet_store_presign(ngx_http_xet_store_t *store,
    xet_buf_t *b, const xet_hash_t *xorb, uint32_t tag, uint64_t start,
    uint64_t end, time_t made, time_t seconds);

/*
 * The headers of a request for the copy that nginx makes on our behalf.
 * NGX_DECLINED if the store is not an object store.
 */
ngx_int_t ngx_http_xet_store_sign(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, xet_s3_signed_t *out);

/* Only its path, of XET_S3_URL_MAX bytes, which needs no signature. */
ngx_int_t ngx_http_xet_store_uri(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, char *path);


/*
 * A copy that one job reads: opened, read any number of times, closed.
 * Statuses are as above.  Errors of the copy are in why and err; only errors
 * that say nothing about the copy are logged.
 */

typedef struct {
    ngx_http_xet_store_t  *store;
    xet_hash_t             xorb;
    uint32_t               tag;
    xet_store_reader_t     reader;
    unsigned               opened:1;

    const char            *why;                /* after XET_STORE_DAMAGED */
    ngx_err_t              err;                /* 0: it is not the system's */
} ngx_http_xet_opened_t;


/*
 * Initializes a structure without an open copy, for which closing does
 * nothing.
 */
void ngx_http_xet_copy_init(ngx_http_xet_opened_t *copy,
    ngx_http_xet_store_t *store);

/* Closes the copy, if it is open. */
xet_status_t ngx_http_xet_copy_open_job(ngx_http_xet_opened_t *copy,
    const xet_hash_t *xorb, uint32_t tag, ngx_log_t *log);

/*
 * Announces that the bytes [start, end) will be read next, in order: an object
 * store is asked for them once.  They may be some MiB, and are held until the
 * next announcement or the end.
 */
void ngx_http_xet_copy_ahead(ngx_http_xet_opened_t *copy, uint64_t start,
    uint64_t end);

/* Reads exactly len bytes. */
xet_status_t ngx_http_xet_copy_read_job(ngx_http_xet_opened_t *copy,
    u_char *buf, size_t len, uint64_t offset, ngx_log_t *log);

void ngx_http_xet_copy_close_job(ngx_http_xet_opened_t *copy, ngx_log_t *log);


/*
 * ngx_http_xet_store_stage.c: a xorb that a client has put into the bucket
 * itself, with a URL from this server, under a staging name.  Jobs read it to
 * its end, verify it, and make it a copy of the store.
 */

#define NGX_HTTP_XET_STAGE_ID  32              /* hex digits */

typedef struct {
    ngx_http_xet_store_t  *store;
    char                   name[XET_S3_NAME_MAX];
    xet_hash_t             xorb;
    xet_xorb_verifier_t   *verifier;
    xet_checksum_state_t  *checksum;
    ngx_http_xet_temp_t   *file;               /* the copy, at the end */
    uint64_t               max;                /* bytes of it */
    uint64_t               footer;             /* and of its footer */
    uint64_t               size;               /* of the object, 0: unknown */
    uint64_t               offset;
    uint64_t               stored;             /* bytes that are the xorb's */
    unsigned               again:1;            /* it goes through us, too */
} ngx_http_xet_stage_t;


/* The URL of a PUT, which also needs the header "If-None-Match: *". */

typedef struct {
    char                   url[XET_S3_URL_MAX];
    char                   checksum[16];       /* x-amz-checksum-crc64nvme */
} ngx_http_xet_stage_put_t;


/* Draws a new random id, followed by a zero byte.  XET_OK, XET_INTERNAL. */
xet_status_t ngx_http_xet_stage_draw(u_char *id);


/*
 * Permits the upload of length bytes with this checksum, for seconds from now
 * on, under a name made of the xorb and id.  Only computes.  NGX_OK,
 * NGX_ERROR.
 */
ngx_int_t ngx_http_xet_stage_put(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, const u_char *id, uint64_t length, uint64_t crc64,
    time_t seconds, ngx_http_xet_stage_put_t *put);

/*
 * Starts; stage must be zeroed.  At most max bytes, and a footer of this
 * length, are allowed; file is from ngx_http_xet_store_xorb().  XET_OK,
 * XET_NOMEM.
 */
xet_status_t ngx_http_xet_stage_begin(ngx_http_xet_stage_t *stage,
    ngx_http_xet_temp_t *file, const xet_suite_t *suite,
    const xet_hash_t *xorb, const u_char *id, uint64_t max, uint64_t footer);

/*
 * Continues reading.  XET_AGAIN: there is more.  XET_OK: the file is a durable
 * copy, as after ngx_http_xet_store_commit_job().  XET_NO_GRANT: nothing was
 * uploaded.  Errors of the bytes are those of an upload; the object is then
 * removed.
 */
xet_status_t ngx_http_xet_stage_job(ngx_http_xet_stage_t *stage,
    ngx_log_t *log);

/* Frees everything except the file. */
void ngx_http_xet_stage_destroy(ngx_http_xet_stage_t *stage);


/*
 * ngx_http_xet_fetch.c: fetches xorbs from a peer node of "xet_store_peer",
 * one after another, as untrusted bytes.
 */

#define NGX_HTTP_XET_FETCH_LITTLE  (64 * 1024) /* bytes of a job */

typedef struct ngx_http_xet_fetch_s  ngx_http_xet_fetch_t;

/* Called once in a process, before threads use libcurl. */
ngx_int_t ngx_http_xet_fetch_init(ngx_cycle_t *cycle);

/*
 * Creates a client of the peer, which keeps its connection between xorbs;
 * sends nothing yet.  NULL if out of memory.
 */
ngx_http_xet_fetch_t *ngx_http_xet_fetch_create(
    const ngx_http_xet_peer_t *peer);

/*
 * Starts the next xorb.  Its address is written to url, a string of at most
 * size bytes, which must stay until the end.
 */
void ngx_http_xet_fetch_begin(ngx_http_xet_fetch_t *fetch,
    const xet_hash_t *xorb, char *url, size_t size);

/*
 * Moves available data into buf, of at least 128 KiB, without waiting.
 * XET_OK:
 * *len bytes, and there may be more; 0 at the end.  XET_AGAIN: *len bytes, few
 * or none; the next job should come some milliseconds later. XET_STORE_FAILED:
 * the peer does not have the xorb, or does not send it; the reason is logged.
 * XET_STORE_FILES, XET_NOMEM.
 */
xet_status_t ngx_http_xet_fetch_job(ngx_http_xet_fetch_t *fetch, u_char *buf,
    size_t size, size_t *len, ngx_log_t *log);

/* After XET_STORE_FAILED: whether the peer can't send other xorbs either. */
ngx_uint_t ngx_http_xet_fetch_bad(ngx_http_xet_fetch_t *fetch);

/* Ends the transfer of the xorb. */
void ngx_http_xet_fetch_end_job(ngx_http_xet_fetch_t *fetch);

/* Called in the event loop; connections are closed in a thread. */
void ngx_http_xet_fetch_destroy(ngx_http_xet_fetch_t *fetch);


/*
 * ngx_http_xet_store_scan.c: reads a copy of a xorb to its end, in jobs of a
 * bounded size.
 *
 * A copy is compared with its row: by digest, or by decoding all of it if the
 * row has no digest.  A foreign file is decoded, and may be copied to a
 * temporary file meanwhile.  Owned by the job while it runs, else by the event
 * loop.
 */

#define NGX_HTTP_XET_ENDS_LEN  32              /* SHA-256 */

typedef struct {
    char                   path[NGX_MAX_PATH]; /* for messages */
    ngx_http_xet_store_t  *store;              /* NULL for a foreign file */
    xet_store_t           *foreign;            /* the folder of that */
    xet_store_reader_t     reader;
    xet_hash_t             xorb;
    uint32_t               tag;
    uint64_t               size;               /* by the row, 0: any */
    xet_checksum_t         digest;             /* by the row */
    u_char                 ends[NGX_HTTP_XET_ENDS_LEN];
    const char            *why;                /* it is damaged */

    u_char                *buf;
    uint64_t               offset;
    uint64_t               end;                /* of the file */
    xet_checksum_state_t  *checksum;           /* where digest is known */
    xet_xorb_verifier_t   *verifier;           /* where it is not */
    ngx_http_xet_temp_t   *copy;               /* of a foreign file */
    ngx_http_xet_fetch_t  *fetch;              /* of the caller, or NULL */

    unsigned               opened:1;
    unsigned               again:1;            /* it was read before */
} ngx_http_xet_scan_t;


/*
 * Starts a scan: of a copy of the store, with digest or else with ends; or of
 * a file in a foreign folder, of at most size_max bytes, with copy NULL or a
 * file of ngx_http_xet_store_copy().  XET_OK, XET_NOMEM.
 */
xet_status_t ngx_http_xet_scan_copy(ngx_http_xet_scan_t *scan,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t tag,
    uint64_t size, const xet_checksum_t *digest, const u_char *ends);
xet_status_t ngx_http_xet_scan_foreign(ngx_http_xet_scan_t *scan,
    const ngx_str_t *folder, const xet_hash_t *xorb, uint32_t tag,
    uint64_t size_max, ngx_http_xet_temp_t *copy);

/*
 * The same for data from a peer node; path is its address.  fetch must outlive
 * the scan.
 */
xet_status_t ngx_http_xet_scan_peer(ngx_http_xet_scan_t *scan,
    ngx_http_xet_fetch_t *fetch, const xet_hash_t *xorb, uint64_t size_max,
    ngx_http_xet_temp_t *copy);

/*
 * Continues reading, for 50 ms and up to limit bytes, and adds the bytes read
 * to *taken; from a peer node it takes the available data.  XET_AGAIN: there
 * is more. XET_OK: everything was read and is right.  XET_STORE_DAMAGED: the
 * copy is missing or wrong, with the reason in scan->why; before a copy of the
 * store is called missing, the identity of the store is checked.
 * XET_STORE_OTHER and all others say nothing about the copy.  The file is
 * closed, except after XET_AGAIN.
 */
xet_status_t ngx_http_xet_scan_job(ngx_http_xet_scan_t *scan, size_t limit,
    size_t *taken, ngx_log_t *log);

/* The chunks of a decoded xorb, until the scan is destroyed. */
const xet_xorb_info_t *ngx_http_xet_scan_info(ngx_http_xet_scan_t *scan);

/* Frees everything except the copy; an open file is closed in a thread. */
void ngx_http_xet_scan_destroy(ngx_http_xet_scan_t *scan);

/*
 * ngx_http_xet_store_orphans.c: files of the store that may have no row, some
 * of them per job.  First come those that an earlier sweep of any node has
 * left in quarantine, then those of the folders, one after another.  Owned by
 * the job while it runs, else by the event loop.
 */

#define NGX_HTTP_XET_ORPHANS_NAMES    256      /* of a list */
#define NGX_HTTP_XET_ORPHANS_TAKEN    32       /* at a time */
#define NGX_HTTP_XET_ORPHANS_FOLDERS  256
#define NGX_HTTP_XET_ORPHANS_QUARANTINE    (-1)     /* the folder of those */

typedef struct {
    xet_hash_t             xorb;
    uint32_t               tag;
    uint64_t               sweep;              /* in its name, where aside */
    uint64_t               size;               /* of one that was taken */
    int64_t                modified;           /* of an object, by our clock */
    int64_t                changed;            /* and by its own */

    unsigned               quarantine:1;
    unsigned               suspect:1;          /* no row was found */
    unsigned               removable:1;        /* none was found once more */
} ngx_http_xet_orphan_t;


typedef struct {
    ngx_http_xet_store_t  *store;
    time_t                 since;              /* those that came later, */
    time_t                 newest;             /* and are older */

    ngx_int_t              first;              /* folder after quarantine */
    ngx_int_t              folder;             /* to be read on */
    xet_store_list_t       list;               /* the same, where open */
    unsigned               open:1;

    ngx_http_xet_orphan_t  names[NGX_HTTP_XET_ORPHANS_NAMES];
    ngx_uint_t             n;
    ngx_uint_t             i;                  /* taken up to there */

    ngx_http_xet_orphan_t  taken[NGX_HTTP_XET_ORPHANS_TAKEN];
    ngx_uint_t             ntaken;

    /* counted by jobs, cleared by the event loop */

    ngx_uint_t             found;              /* old, and without a row */
    ngx_uint_t             back;               /* have their names again */
    ngx_uint_t             removed;
    uint64_t               bytes;              /* of those */
    ngx_uint_t             staged;             /* were dropped */
} ngx_http_xet_orphans_t;


/*
 * Lists up to max names of copies from the position of folder on, for up to 50
 * ms, into names.  At the end folder is NGX_HTTP_XET_ORPHANS_FOLDERS, possibly
 * with names; before that there may be none.  A file whose name is not that of
 * a copy is counted as found.
 */
xet_status_t ngx_http_xet_orphans_list_job(ngx_http_xet_orphans_t *o,
    ngx_uint_t max, ngx_log_t *log);

/*
 * Moves the files of suspect names that are old enough into quarantine, from i
 * on, as many as possible in 50 ms, and lists them in taken.
 */
xet_status_t ngx_http_xet_orphans_take_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);

/* Removes the removable files in taken; the others get their names back. */
xet_status_t ngx_http_xet_orphans_settle_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);

/* Closes open folders, in a thread. */
void ngx_http_xet_orphans_close(ngx_http_xet_orphans_t *o);


/*
 * ngx_http_xet_store_log.c: logs why a function of src/store has failed,
 * unless its status says something about the name; returns the status.
 */
xet_status_t ngx_http_xet_store_log(ngx_http_xet_store_t *store,
    xet_status_t rc, const xet_store_error_t *error, ngx_log_t *log);


/*
 * ngx_http_xet_store_identity.c: whether the folder of the store is the one
 * that the database describes.
 */

#define NGX_HTTP_XET_IDENTITY_LEN  XET_STORE_IDENTITY_LEN


/*
 * Reads the identity of the folder into NGX_HTTP_XET_IDENTITY_LEN + 1 bytes,
 * the last one zero.  XET_DONE if the folder has no identity; XET_STORE_FAILED
 * or XET_STORE_FILES if the file can't be read.
 */
xet_status_t ngx_http_xet_store_identity_read_job(ngx_http_xet_store_t *store,
    u_char *identity, ngx_log_t *log);

/*
 * Gives the folder an identity, durably.  XET_OK also if the folder already
 * has one, which stays: the caller reads it again.
 */
xet_status_t ngx_http_xet_store_identity_make_job(ngx_http_xet_store_t *store,
    const u_char *identity, ngx_log_t *log);

/*
 * Draws a new random identity, followed by a zero byte.  XET_OK, or
 * XET_INTERNAL.
 */
xet_status_t ngx_http_xet_store_identity_draw(u_char *identity);


/*
 * Records the identity of the database, for all threads of the worker; called
 * in any thread, for each new session.
 */
void ngx_http_xet_store_identity_note(const u_char *identity);

/*
 * Whether the folder has the recorded identity: XET_OK, XET_STORE_OTHER, or an
 * error of reading the file.  XET_OK also if none was recorded: then the
 * worker has had no session yet, and everything that this check protects needs
 * a session, which compares the identities when it connects.
 */
xet_status_t ngx_http_xet_store_identity_check_job(ngx_http_xet_store_t *store,
    ngx_log_t *log);

/*
 * The same without a cache: otherwise the answer of an object store is used
 * for some seconds.
 */
xet_status_t ngx_http_xet_store_identity_look_job(ngx_http_xet_store_t *store,
    ngx_log_t *log);


/* ngx_http_xet_probe.c: whether the store of the worker is writable. */

typedef void (*ngx_http_xet_probe_pt)(ngx_http_request_t *r,
    xet_status_t status);


/*
 * XET_OK, or the reason why the store is not writable: XET_STORE_SLOW while
 * the disk does not respond, XET_STORE_FULL, ...; XET_STORE_OTHER if the store
 * belongs to another database; XET_STORE_GONE if the folder is missing;
 * XET_STORE_BARE if it has no identity, as without its disk; XET_OVERLOADED or
 * XET_NOMEM if no probe could be started.  XET_AGAIN: a probe is running, and
 * handler is called with its result, unless the request has ended by then.
 * The result of a probe is used for a second.
 */
xet_status_t ngx_http_xet_probe(ngx_http_request_t *r,
    ngx_http_xet_probe_pt handler);

/*
 * Starts a probe if none is running and the last one is older than this; the
 * result sets gauges, like that of every probe.
 */
void ngx_http_xet_probe_look(ngx_msec_t older);


#endif /* _NGX_HTTP_XET_STORE_H_INCLUDED_ */
