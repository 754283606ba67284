
/*
 * The store: temporary files, durable copies of xorbs, and the maintenance of
 * copies, in a folder or in an object store.  A function whose name ends in
 * _job blocks, and must be called in a thread.
 */

#ifndef _NGX_HTTP_XET_STORE_H_INCLUDED_
#define _NGX_HTTP_XET_STORE_H_INCLUDED_


#include "ngx_http_xet.h"
#include "xet_store.h"


/* The name of a copy of a xorb. */

typedef struct {
    xet_hash_t  xorb;
    uint32_t    copy_id;
} ngx_http_xet_copy_name_t;


/* A copy to check for its existence and size, and the result. */

typedef struct {
    ngx_http_xet_copy_name_t  name;
    uint64_t                  want;            /* size from the row */
    uint64_t                  size;            /* actual size */
    xet_status_t              status;
} ngx_http_xet_copy_stat_t;


/*
 * The store configured by "xet_store".  The structure is not in the pool of
 * the configuration, because a thread may outlive that pool.
 */

struct ngx_http_xet_store_s {
    xet_store_t  *backend;                     /* used by jobs */
    ngx_str_t     name;                        /* path, or "s3://..." */
    ngx_str_t     temp;                        /* folder of temporary files */
    xet_s3_t     *s3;                          /* NULL: a folder */
};


/*
 * Creates a store in a folder or in an object store.  path is zero-terminated
 * and has no slash at its end.  Returns NULL if out of memory or if the
 * configuration is wrong.
 */
ngx_http_xet_store_t *ngx_http_xet_store_files(ngx_conf_t *cf,
    const ngx_str_t *path);
ngx_http_xet_store_t *ngx_http_xet_store_s3(ngx_conf_t *cf,
    const ngx_str_t *temp, const xet_s3_conf_t *conf, xet_s3_error_t *error);

/*
 * Creates the missing folders of the store, durably, and removes temporary
 * files that a crash has left behind, if they are older than a day.  Blocks:
 * the master calls it at start and at each reload.
 */
ngx_int_t ngx_http_xet_store_init(ngx_cycle_t *cycle);

/* Updates the metrics with the object store requests since the last call. */
void ngx_http_xet_store_measure(ngx_http_xet_store_t *store);

/*
 * Called when a worker exits, after its thread pools have ended.  No thread may
 * use the store while libraries are cleaned up.
 */
void ngx_http_xet_store_exit(ngx_cycle_t *cycle);


/*
 * A copy without a row is removed when it is XET_XORB_ORPHAN_AGE old, so its
 * row must be written long before that.  The member made is the time in
 * seconds since 1970 when the copy was created, or an earlier time.  If made
 * is too long ago, PostgreSQL rejects the row (xet.copy_made()).  The worker
 * can't check this, since it may have been suspended before the statement.
 */

/*
 * A temporary file of a request.  The file is anonymous if the file system
 * supports O_TMPFILE, so that a crash leaves nothing behind.  Otherwise its
 * path is <store>/tmp/<unique name>.
 */

typedef struct {
    ngx_http_xet_store_t  *store;
    xet_store_writer_t    *writer;             /* NULL: no file is open */
    off_t                  size;               /* bytes written */

    xet_checksum_state_t  *checksum;          /* checksum of the bytes so far */
    xet_checksum_t         digest;             /* set by commit */
    xet_hash_t             xorb;               /* the xorb; see claimed */
    uint32_t               copy_id;            /* set by commit */
    uint64_t               began;              /* sequence number at creation */
    uint64_t               made;               /* set by commit, see above */

    unsigned               digested:1;         /* compute the checksum */
    unsigned               claimed:1;         /* xorb set before 1st write */
    unsigned               committed:1;        /* a copy may exist */
    unsigned               kept:1;             /* the copy stays after close */
} ngx_http_xet_temp_t;


/*
 * Returns a temporary file that is opened at the first write.  After the
 * request a thread closes and removes the file, and also removes its copy
 * unless the copy is kept.  Returns NULL if out of memory.
 */
ngx_http_xet_temp_t *ngx_http_xet_store_temp(ngx_http_request_t *r);

/*
 * Returns a file of the request that will become a copy of a xorb.  The
 * checksum is computed while bytes are written, so no byte may be overwritten.
 * Returns NULL if out of memory.
 */
ngx_http_xet_temp_t *ngx_http_xet_store_xorb(ngx_http_request_t *r);

/* Like ngx_http_xet_store_xorb(), but the file is closed with the pool. */
ngx_http_xet_temp_t *ngx_http_xet_store_copy(ngx_pool_t *pool);

/*
 * Sets the xorb that the file is expected to contain, so that bytes are sent
 * to an object store while they arrive.  Must be called before the first
 * write.
 */
void ngx_http_xet_store_claim(ngx_http_xet_temp_t *file,
    const xet_hash_t *xorb);

/*
 * Returns the next number of a sequence, which orders events.  A larger number
 * was drawn later, even within one iteration of the event loop, in which the
 * time does not change.
 */
uint64_t ngx_http_xet_store_sequence(void);

/*
 * Appends len bytes; the first write opens the file.  Returns XET_OK,
 * XET_STORE_FULL, XET_STORE_FILES, XET_STORE_OTHER, XET_STORE_FAILED or
 * XET_NOMEM.
 */
xet_status_t ngx_http_xet_store_write_job(ngx_http_xet_temp_t *file,
    const u_char *data, size_t len, ngx_log_t *log);

/*
 * Overwrites len bytes at offset, all of which must have been written before.
 */
xet_status_t ngx_http_xet_store_patch_job(ngx_http_xet_temp_t *file,
    const u_char *data, size_t len, off_t offset, ngx_log_t *log);

/* Reads exactly len bytes at offset; a shorter file is an error. */
xet_status_t ngx_http_xet_store_read_job(ngx_http_xet_temp_t *file,
    u_char *data, size_t len, off_t offset, ngx_log_t *log);

/*
 * Makes the file a durable copy of the xorb, under a new name, and sets digest
 * and copy id.  The file must be from ngx_http_xet_store_xorb() or
 * ngx_http_xet_store_copy().  The copy is removed when the file is closed,
 * unless ngx_http_xet_store_keep() has kept it.
 */
xet_status_t ngx_http_xet_store_commit_job(ngx_http_xet_temp_t *file,
    const xet_hash_t *xorb, ngx_log_t *log);

/*
 * Sets whether the copy stays when the file is closed.  kept must be 1 while a
 * row may refer to the copy, and may be 0 only if certainly no row does.
 */
void ngx_http_xet_store_keep(ngx_http_xet_temp_t *file, ngx_uint_t kept);

/*
 * Closes the file, and removes its copy unless the copy is kept.  The next
 * write opens a new file.
 */
void ngx_http_xet_store_reset_job(ngx_http_xet_temp_t *file, ngx_log_t *log);


/*
 * The next functions check copies that rows refer to.  XET_OK: the copy matches
 * the row.  XET_STORE_DAMAGED: the copy is missing or does not match the row.
 * XET_STORE_OTHER: the store does not belong to this database.  After any other
 * status (XET_STORE_FAILED, XET_STORE_FILES, XET_NOMEM) the state of the copy
 * is unknown.
 */

/* Checks that the copy exists and has size bytes. */
xet_status_t ngx_http_xet_store_stat_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, uint64_t size, ngx_log_t *log);

/*
 * Like ngx_http_xet_store_stat_job(), but for n copies; an object store gets
 * several requests at once.  The caller sets name and want of each copy, and
 * each copy gets its own status.
 */
void ngx_http_xet_store_stat_all_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *stats, ngx_uint_t n, ngx_log_t *log);

/* Reads the whole copy and compares its checksum with digest. */
xet_status_t ngx_http_xet_store_check_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, const xet_checksum_t *digest,
    ngx_log_t *log);

/*
 * Removes a copy that no row refers to any more; a missing copy is not an
 * error.  Failures are logged.
 */
xet_status_t ngx_http_xet_store_remove_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, ngx_log_t *log);

/*
 * Like ngx_http_xet_store_remove_job(), but for n copies; after XET_OK the
 * removal is durable.
 */
xet_status_t ngx_http_xet_store_remove_all_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, ngx_log_t *log);

/*
 * ngx_http_xet_store_copy_ids.c: copy ids, which distinguish the copies of a
 * xorb.  A worker gets copy ids in blocks of consecutive numbers.
 * ngx_http_xet_store_copy_ids_add() adds the block that starts with the copy id
 * first, and ngx_http_xet_store_copy_ids_blocks() returns the number of blocks
 * that are not used up.  Both may be called in any thread.
 */
#define NGX_HTTP_XET_COPY_IDS_BLOCK   256     /* same in xet.copy_ids_take() */
#define NGX_HTTP_XET_COPY_IDS_BLOCKS  4       /* maximum per worker */

void ngx_http_xet_store_copy_ids_add(uint32_t first);
ngx_uint_t ngx_http_xet_store_copy_ids_blocks(void);

/* Returns a monotonic time in milliseconds; may be called in any thread. */
uint64_t ngx_http_xet_store_clock(void);


/*
 * Signatures for an object store.  These functions only compute, so they may
 * be called in the event loop.
 */

/*
 * Appends a URL to b with which anyone may read the bytes [start, end) of the
 * copy, for the given number of seconds after made.  The request must have
 * exactly this range in its Range header.  Returns XET_INTERNAL if the URL is
 * too long.
 */
xet_status_t ngx_http_xet_store_presign(ngx_http_xet_store_t *store,
    xet_buf_t *b, const xet_hash_t *xorb, uint32_t copy_id, uint64_t start,
    uint64_t end, time_t made, time_t seconds);

/*
 * Signs a request for the copy that nginx sends to the object store.  Returns
 * NGX_OK; NGX_DECLINED if the store is a folder; or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_store_sign(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, xet_s3_signed_t *out);

/*
 * Writes the path of a request for the copy to path, a buffer of XET_S3_URL_MAX
 * bytes.  The path does not contain a signature.  Returns NGX_OK; NGX_DECLINED
 * if the store is a folder; or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_store_uri(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, char *path);


/*
 * A copy that one job opens, reads any number of times, and closes.  The
 * statuses are the same as for the checks above.  After XET_STORE_DAMAGED why
 * and err describe the damage, and nothing is logged.  Other errors are
 * logged.
 */

typedef struct {
    ngx_http_xet_store_t  *store;
    xet_hash_t             xorb;
    uint32_t               copy_id;
    xet_store_reader_t     reader;
    unsigned               opened:1;

    const char            *why;                /* reason of the damage */
    ngx_err_t              err;                /* errno, or 0 */
} ngx_http_xet_opened_t;


/* Initializes a structure without an open copy; closing it does nothing. */
void ngx_http_xet_copy_init(ngx_http_xet_opened_t *copy,
    ngx_http_xet_store_t *store);

/* Opens a copy for reading, after closing the previous one if it is open. */
xet_status_t ngx_http_xet_copy_open_job(ngx_http_xet_opened_t *copy,
    const xet_hash_t *xorb, uint32_t copy_id, ngx_log_t *log);

/*
 * Announces that the caller will read the bytes [start, end) next, in order.
 * An object store then gets one request for all of them.  The data, up to some
 * MiB, stays in memory until the next announcement or until the copy is closed.
 */
void ngx_http_xet_copy_ahead(ngx_http_xet_opened_t *copy, uint64_t start,
    uint64_t end);

/* Reads exactly len bytes at offset. */
xet_status_t ngx_http_xet_copy_read_job(ngx_http_xet_opened_t *copy,
    u_char *buf, size_t len, uint64_t offset, ngx_log_t *log);

void ngx_http_xet_copy_close_job(ngx_http_xet_opened_t *copy, ngx_log_t *log);


/*
 * ngx_http_xet_store_stage.c: commits staged xorbs: a client has uploaded such
 * a xorb directly to the bucket, under a staging name, with a URL from this
 * server.  Jobs read the xorb to its end, verify it, and make it a copy of the
 * store.
 */

#define NGX_HTTP_XET_STAGE_ID  32              /* hex digits */

typedef struct {
    ngx_http_xet_store_t  *store;
    char                   name[XET_S3_NAME_MAX];
    xet_hash_t             xorb;
    xet_xorb_verifier_t   *verifier;
    xet_checksum_state_t  *checksum;
    ngx_http_xet_temp_t   *file;               /* becomes the copy */
    uint64_t               max;                /* maximum size of the xorb */
    uint64_t               footer;             /* maximum size of the footer */
    uint64_t               size;               /* object size; 0: unknown */
    uint64_t               offset;
    uint64_t               stored;             /* bytes without the footer */
    unsigned               again:1;            /* this is a second read */
} ngx_http_xet_stage_t;


/* A URL for a PUT request, which also needs the header "If-None-Match: *". */

typedef struct {
    char                   url[XET_S3_URL_MAX];
    char                   checksum[16];       /* x-amz-checksum-crc64nvme */
} ngx_http_xet_stage_put_t;


/*
 * Writes a new random id, followed by a zero byte.  Returns XET_OK or
 * XET_INTERNAL.
 */
xet_status_t ngx_http_xet_stage_draw(u_char *id);


/*
 * Sets put to a URL that allows uploading exactly length bytes with this
 * checksum, for the given number of seconds.  The name of the object consists
 * of the xorb and id.  Does no I/O.  Returns NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_stage_put(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, const u_char *id, uint64_t length, uint64_t crc64,
    time_t seconds, ngx_http_xet_stage_put_t *put);

/*
 * Starts the commit of a staged xorb; stage must be zeroed.  max and footer
 * are the maximum sizes of the xorb and of its footer in bytes.  file must be
 * from ngx_http_xet_store_xorb().  Returns XET_OK or XET_NOMEM.
 */
xet_status_t ngx_http_xet_stage_begin(ngx_http_xet_stage_t *stage,
    ngx_http_xet_temp_t *file, const xet_suite_t *suite,
    const xet_hash_t *xorb, const u_char *id, uint64_t max, uint64_t footer);

/*
 * Continues to read.  XET_AGAIN: more data follows.  XET_OK: the file is a
 * durable copy, as after ngx_http_xet_store_commit_job().  XET_NO_GRANT: the
 * client has uploaded nothing.  If the data is wrong, returns the same error
 * as for an upload, and removes the object.
 */
xet_status_t ngx_http_xet_stage_job(ngx_http_xet_stage_t *stage,
    ngx_log_t *log);

/* Frees everything except the file. */
void ngx_http_xet_stage_destroy(ngx_http_xet_stage_t *stage);


/*
 * ngx_http_xet_fetch.c: fetches xorbs from a peer node of "xet_store_peer",
 * one after another.  The bytes are not trusted.
 */

#define NGX_HTTP_XET_FETCH_LITTLE  (64 * 1024) /* fewer bytes: "little data" */

typedef struct ngx_http_xet_fetch_s  ngx_http_xet_fetch_t;

/*
 * Called once in a process, before threads use libcurl.  Returns NGX_OK or
 * NGX_ERROR.
 */
ngx_int_t ngx_http_xet_fetch_init(ngx_cycle_t *cycle);

/*
 * Creates a client for the peer.  The client keeps its connection between
 * xorbs.  Nothing is sent yet.  Returns NULL if out of memory.
 */
ngx_http_xet_fetch_t *ngx_http_xet_fetch_create(
    const ngx_http_xet_peer_t *peer);

/*
 * Prepares the transfer of the next xorb, and writes its URL to url, a buffer
 * of size bytes.  The buffer must live until the transfer ends.
 */
void ngx_http_xet_fetch_begin(ngx_http_xet_fetch_t *fetch,
    const xet_hash_t *xorb, char *url, size_t size);

/*
 * Copies the data that has arrived into buf, which has at least 128 KiB,
 * without waiting, and sets *len to the number of bytes.  Returns:
 *
 *     XET_OK            more data may follow; *len is 0 at the end of the xorb
 *     XET_AGAIN         little or no data has arrived; the next job should
 *                       start some milliseconds later
 *     XET_STORE_FAILED  the peer does not have the xorb, or does not send it;
 *                       the reason is logged
 *     XET_STORE_FILES   too many open files
 *     XET_NOMEM         out of memory
 */
xet_status_t ngx_http_xet_fetch_job(ngx_http_xet_fetch_t *fetch, u_char *buf,
    size_t size, size_t *len, ngx_log_t *log);

/*
 * Returns whether the last XET_STORE_FAILED also applies to other xorbs of the
 * peer.
 */
ngx_uint_t ngx_http_xet_fetch_bad(ngx_http_xet_fetch_t *fetch);

/* Ends the transfer of the xorb. */
void ngx_http_xet_fetch_end_job(ngx_http_xet_fetch_t *fetch);

/*
 * Frees the client; called in the event loop.  A thread closes its
 * connections.
 */
void ngx_http_xet_fetch_destroy(ngx_http_xet_fetch_t *fetch);


/*
 * ngx_http_xet_store_scan.c: reads a copy of a xorb to its end, in jobs of a
 * bounded size.
 *
 * A copy of the store is compared with its row: by its digest or, if the row
 * has no digest, by decoding all chunks.  A file outside of the store is
 * decoded, and may be copied to a temporary file at the same time.  The
 * structure belongs to a job while the job runs, otherwise to the event loop.
 */

#define NGX_HTTP_XET_ENDS_LEN  32              /* SHA-256 */

typedef struct {
    char                   path[NGX_MAX_PATH]; /* path for messages */
    ngx_http_xet_store_t  *store;              /* NULL: not in our store */
    xet_store_t           *foreign;            /* folder outside the store */
    xet_store_reader_t     reader;
    xet_hash_t             xorb;
    uint32_t               copy_id;
    uint64_t               size;               /* size in the row; 0: any */
    xet_checksum_t         digest;             /* digest in the row */
    u_char                 ends[NGX_HTTP_XET_ENDS_LEN];
    const char            *why;                /* reason of the damage */

    u_char                *buf;
    uint64_t               offset;
    uint64_t               end;                /* end of the file */
    xet_checksum_state_t  *checksum;           /* set if the row has a digest */
    xet_xorb_verifier_t   *verifier;           /* set without a digest */
    ngx_http_xet_temp_t   *copy;               /* gets the data, or NULL */
    ngx_http_xet_fetch_t  *fetch;              /* caller's client, or NULL */

    unsigned               opened:1;
    unsigned               again:1;            /* this is the second read */
} ngx_http_xet_scan_t;


/*
 * Starts a scan.  ngx_http_xet_scan_copy() reads a copy of the store, and
 * compares it with digest or, if digest is NULL, with ends.
 * ngx_http_xet_scan_foreign() reads a file of at most size_max bytes in
 * another folder; copy is NULL or a file of ngx_http_xet_store_copy().  Both
 * return XET_OK or XET_NOMEM.
 */
xet_status_t ngx_http_xet_scan_copy(ngx_http_xet_scan_t *scan,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t copy_id,
    uint64_t size, const xet_checksum_t *digest, const u_char *ends);
xet_status_t ngx_http_xet_scan_foreign(ngx_http_xet_scan_t *scan,
    const ngx_str_t *folder, const xet_hash_t *xorb, uint32_t copy_id,
    uint64_t size_max, ngx_http_xet_temp_t *copy);

/*
 * Like ngx_http_xet_scan_foreign(), but reads from a peer node.  fetch must
 * outlive the scan.
 */
xet_status_t ngx_http_xet_scan_peer(ngx_http_xet_scan_t *scan,
    ngx_http_xet_fetch_t *fetch, const xet_hash_t *xorb, uint64_t size_max,
    ngx_http_xet_temp_t *copy);

/*
 * Continues to read, for at most 50 ms and about limit bytes, and adds the
 * number of bytes to *taken.  From a peer node it reads only the data that has
 * arrived.  Returns:
 *
 *     XET_AGAIN          more data follows; the file stays open
 *     XET_OK             the whole copy was read, and is intact
 *     XET_STORE_DAMAGED  the copy is missing or wrong, scan->why says why; a
 *                        missing copy counts only if the store belongs to this
 *                        database
 *     XET_STORE_OTHER    the store does not belong to this database
 *     otherwise          the state of the copy is unknown
 */
xet_status_t ngx_http_xet_scan_job(ngx_http_xet_scan_t *scan, size_t limit,
    size_t *taken, ngx_log_t *log);

/* Returns the chunks of a decoded xorb, valid until the scan is destroyed. */
const xet_xorb_info_t *ngx_http_xet_scan_info(ngx_http_xet_scan_t *scan);

/* Frees everything except the temporary file; a thread closes an open file. */
void ngx_http_xet_scan_destroy(ngx_http_xet_scan_t *scan);

/*
 * ngx_http_xet_store_orphans.c: finds files of the store without a row, a few
 * per job.  A sweep first reads the files that an earlier sweep of any node has
 * left in quarantine, then the folders of copies, one after another.  The
 * structure belongs to a job while the job runs, otherwise to the event loop.
 */

#define NGX_HTTP_XET_ORPHANS_NAMES    256      /* elements of names[] */
#define NGX_HTTP_XET_ORPHANS_TAKEN    32       /* elements of taken[] */
#define NGX_HTTP_XET_ORPHANS_FOLDERS  256
#define NGX_HTTP_XET_ORPHANS_QUARANTINE    (-1)     /* a pseudo-folder */

typedef struct {
    xet_hash_t             xorb;
    uint32_t               copy_id;
    uint64_t               sweep;              /* id of the sweep */
    uint64_t               size;               /* bytes */
    int64_t                modified;           /* time, by our clock */
    int64_t                changed;            /* time, by the store's clock */

    unsigned               quarantine:1;
    unsigned               suspect:1;          /* no row was found */
    unsigned               removable:1;        /* a second check found no row */
} ngx_http_xet_orphan_t;


typedef struct {
    ngx_http_xet_store_t  *store;

    /* range of the times at which orphans may have been written */
    time_t                 since;
    time_t                 newest;

    ngx_int_t              first;              /* folder to start with */
    ngx_int_t              folder;             /* current folder */
    xet_store_list_t       list;               /* names in the current folder */
    unsigned               open:1;

    ngx_http_xet_orphan_t  names[NGX_HTTP_XET_ORPHANS_NAMES];
    ngx_uint_t             n;
    ngx_uint_t             i;                  /* next index in names[] */

    ngx_http_xet_orphan_t  taken[NGX_HTTP_XET_ORPHANS_TAKEN];
    ngx_uint_t             ntaken;

    /* counters, increased by jobs and cleared by the event loop */

    ngx_uint_t             found;              /* old files without a row */
    ngx_uint_t             back;              /* files restored to their name */
    ngx_uint_t             removed;
    uint64_t               bytes;              /* size of removed files */
    ngx_uint_t             staged;             /* staged objects removed */
} ngx_http_xet_orphans_t;


/*
 * Writes up to max names of copies to o->names, starting in o->folder, for up
 * to 50 ms.  A call may find no names even before the end.  At the end,
 * o->folder is NGX_HTTP_XET_ORPHANS_FOLDERS, and o->names may still have
 * entries.  A file whose name is not the name of a copy is counted in o->found.
 */
xet_status_t ngx_http_xet_orphans_list_job(ngx_http_xet_orphans_t *o,
    ngx_uint_t max, ngx_log_t *log);

/*
 * Moves files with suspect names, starting at index o->i, into quarantine if
 * they are old enough, and lists them in o->taken.  Stops after 50 ms, or when
 * o->taken is full.
 */
xet_status_t ngx_http_xet_orphans_take_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);

/*
 * Removes the removable files in o->taken, and restores the names of the other
 * files.
 */
xet_status_t ngx_http_xet_orphans_settle_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);

/* Closes the open folder, in a thread. */
void ngx_http_xet_orphans_close(ngx_http_xet_orphans_t *o);


/*
 * ngx_http_xet_store_log.c: logs why a function of src/store has failed.  Does
 * not log a status that the caller handles, such as a missing object.  Returns
 * the status.
 */
xet_status_t ngx_http_xet_store_log(ngx_http_xet_store_t *store,
    xet_status_t rc, const xet_store_error_t *error, ngx_log_t *log);


/*
 * ngx_http_xet_store_identity.c: checks that the store and the database belong
 * together.
 */

#define NGX_HTTP_XET_IDENTITY_LEN  XET_STORE_IDENTITY_LEN


/*
 * Reads the identity of the store into a buffer of NGX_HTTP_XET_IDENTITY_LEN +
 * 1 bytes, with a zero byte at the end.  Returns XET_OK; XET_DONE if the store
 * has no identity; XET_STORE_FAILED or XET_STORE_FILES if it can't be read.
 */
xet_status_t ngx_http_xet_store_identity_read_job(ngx_http_xet_store_t *store,
    u_char *identity, ngx_log_t *log);

/*
 * Gives the store an identity, durably.  If the store already has one, keeps
 * it, and also returns XET_OK.  So the caller must read the identity
 * afterwards.
 */
xet_status_t ngx_http_xet_store_identity_make_job(ngx_http_xet_store_t *store,
    const u_char *identity, ngx_log_t *log);

/*
 * Writes a new random identity, followed by a zero byte.  Returns XET_OK or
 * XET_INTERNAL.
 */
xet_status_t ngx_http_xet_store_identity_draw(u_char *identity);


/*
 * Records the identity of the database for all threads of the worker.  Called
 * in any thread, for each new session.
 */
void ngx_http_xet_store_identity_note(const u_char *identity);

/*
 * Checks that the store has the recorded identity.  Returns XET_OK,
 * XET_STORE_OTHER, or the error of reading the identity.  Also returns XET_OK
 * if the worker has had no session and thus no recorded identity: everything
 * that this check protects needs a session, and a new session compares the
 * identities.
 */
xet_status_t ngx_http_xet_store_identity_check_job(ngx_http_xet_store_t *store,
    ngx_log_t *log);

/*
 * Like ngx_http_xet_store_identity_check_job(), but always reads the identity
 * of the store.  The other function reads it from an object store only every
 * few seconds.
 */
xet_status_t ngx_http_xet_store_identity_look_job(ngx_http_xet_store_t *store,
    ngx_log_t *log);


/* ngx_http_xet_probe.c: checks whether the worker's store is writable. */

typedef void (*ngx_http_xet_probe_pt)(ngx_http_request_t *r,
    xet_status_t status);


/*
 * Returns XET_OK, or why the store is not writable:
 *
 *     XET_STORE_SLOW   the disk does not respond
 *     XET_STORE_OTHER  the store belongs to another database
 *     XET_STORE_GONE   the folder is missing
 *     XET_STORE_BARE   the folder has no identity: its disk may be unmounted
 *     XET_OVERLOADED   no probe could be started; also XET_NOMEM
 *     XET_AGAIN        a probe is running; handler is called with the result,
 *                      unless the request ends before
 *     otherwise        the error of writing a file, e.g. XET_STORE_FULL
 *
 * The result of a probe is valid for a second.
 */
xet_status_t ngx_http_xet_probe(ngx_http_request_t *r,
    ngx_http_xet_probe_pt handler);

/* Returns the free bytes of the disk, after a probe with XET_STORE_FULL. */
uint64_t ngx_http_xet_probe_left(void);

/*
 * Starts a probe if none is running and the last probe is more than "older"
 * milliseconds old.  The result of every probe sets the gauges of the store.
 */
void ngx_http_xet_probe_look(ngx_msec_t older);


#endif /* _NGX_HTTP_XET_STORE_H_INCLUDED_ */
