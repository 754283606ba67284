
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


/* A look at one. */

typedef struct {
    ngx_http_xet_copy_name_t  name;
    uint64_t                  want;            /* its size, by the row */
    uint64_t                  size;            /* what was found */
    xet_status_t              status;
} ngx_http_xet_copy_stat_t;


/*
 * The store of "xet_store", with what the event loop reads of it.  It is not in
 * the pool of the configuration: a thread that is left behind may outlive that.
 */

struct ngx_http_xet_store_s {
    xet_store_t  *backend;                     /* for jobs */
    ngx_str_t     name;                        /* its folder, or "s3://..." */
    ngx_str_t     temp;                        /* folder of temporary files */
    xet_s3_t     *s3;                          /* NULL: a folder */
};


/*
 * A store in a folder, or in an object store; both strings end with a zero
 * byte, not with a slash.  NULL without memory, or for what conf has.
 */
ngx_http_xet_store_t *ngx_http_xet_store_files(ngx_conf_t *cf,
    const ngx_str_t *path);
ngx_http_xet_store_t *ngx_http_xet_store_s3(ngx_conf_t *cf,
    const ngx_str_t *temp, const xet_s3_conf_t *conf, xet_s3_error_t *error);

/*
 * Makes the folders of the store that are missing, durably, and removes from
 * the folder of temporary files those older than a day, which a crash has left
 * there.  Blocks: called by the master at start-up and at each reload.
 */
ngx_int_t ngx_http_xet_store_init(ngx_cycle_t *cycle);

/* Counts what was asked of an object store since the last call. */
void ngx_http_xet_store_measure(ngx_http_xet_store_t *store);

/*
 * The worker ends, and its pools of threads have: no thread of the store is
 * left, which could still run while libraries are being ended.
 */
void ngx_http_xet_store_exit(ngx_cycle_t *cycle);


/*
 * A copy that has no row is removed when it is XET_XORB_ORPHAN_AGE old, by
 * whoever looks.  So its row has to be there long before: made is a time, in
 * seconds since 1970, that is not later than the one that the copy has for
 * those who look, and PostgreSQL refuses the row of an older one
 * (xet.copy_made()).  It decides, and not the worker: a machine that was
 * suspended goes on as if no time had passed, wherever it was.
 */

/*
 * A temporary file of a request.  It is anonymous where the file system
 * supports O_TMPFILE, so that a crash leaves nothing behind; elsewhere it is
 * <store>/tmp/<unique name>.
 */

typedef struct {
    ngx_http_xet_store_t  *store;
    xet_store_writer_t    *writer;             /* NULL: nothing is written */
    off_t                  size;               /* bytes written */

    xet_checksum_state_t  *checksum;           /* of the bytes written */
    xet_checksum_t         digest;             /* set by commit */
    xet_hash_t             xorb;               /* what it is, or claims */
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
 * thread closes the file, and removes its name, and its copy unless that is
 * kept.  NULL without memory.
 */
ngx_http_xet_temp_t *ngx_http_xet_store_temp(ngx_http_request_t *r);

/*
 * A file of the request for a copy of a xorb: the bytes written are digested,
 * so none may be patched.  NULL without memory.
 */
ngx_http_xet_temp_t *ngx_http_xet_store_xorb(ngx_http_request_t *r);

/* The same without a request: the file is closed with the pool. */
ngx_http_xet_temp_t *ngx_http_xet_store_copy(ngx_pool_t *pool);

/*
 * What the file will be a copy of, if it turns out so: an object store takes
 * its bytes while they come.  Before the first write.
 */
void ngx_http_xet_store_claim(ngx_http_xet_temp_t *file,
    const xet_hash_t *xorb);

/*
 * Moments are numbers that grow with each call, not times: of two moments the
 * larger one was taken later, also within one turn of the event loop.
 */
uint64_t ngx_http_xet_store_moment(void);

/*
 * Appends len bytes; the first write opens the file.  XET_STORE_FULL,
 * XET_STORE_FILES, XET_STORE_OTHER, XET_STORE_FAILED, XET_NOMEM.
 */
xet_status_t ngx_http_xet_store_write_job(ngx_http_xet_temp_t *file,
    const u_char *data, size_t len, ngx_log_t *log);

/* Writes len bytes at offset over bytes that were written before. */
xet_status_t ngx_http_xet_store_patch_job(ngx_http_xet_temp_t *file,
    const u_char *data, size_t len, off_t offset, ngx_log_t *log);

/* Reads exactly len bytes at offset; an error where the file ends before. */
xet_status_t ngx_http_xet_store_read_job(ngx_http_xet_temp_t *file,
    u_char *data, size_t len, off_t offset, ngx_log_t *log);

/*
 * Makes the file a copy of the xorb, durable under a name that no copy has had
 * before; sets digest and tag.  Only for a file of ngx_http_xet_store_xorb().
 * The copy is removed when the file is closed, unless ngx_http_xet_store_keep()
 * has kept it.
 */
xet_status_t ngx_http_xet_store_commit_job(ngx_http_xet_temp_t *file,
    const xet_hash_t *xorb, ngx_log_t *log);

/*
 * kept is 1 while a row may name the copy: it stays when the file is closed.
 * 0: it is certain that no row names the copy, and it goes.
 */
void ngx_http_xet_store_keep(ngx_http_xet_temp_t *file, ngx_uint_t kept);

/*
 * Closes the file, and removes its copy unless that is kept: the next write
 * begins another file.
 */
void ngx_http_xet_store_reset_job(ngx_http_xet_temp_t *file, ngx_log_t *log);


/*
 * Two checks of a copy that a row names.  XET_OK; XET_STORE_DAMAGED: the copy
 * is missing, or not as the row says; XET_STORE_OTHER: the folder is not the
 * store of the database.  Any other status (XET_STORE_FAILED, XET_STORE_FILES,
 * XET_NOMEM) says nothing about the copy.
 */

/* Whether the copy is there, with size bytes. */
xet_status_t ngx_http_xet_store_stat_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, uint64_t size, ngx_log_t *log);

/*
 * The same for n copies, together: a bucket is asked for some of them at once.
 * Each has its status, and name and want from the caller.
 */
void ngx_http_xet_store_stat_all_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *stats, ngx_uint_t n, ngx_log_t *log);

/* Reads the whole copy and compares its checksum with digest. */
xet_status_t ngx_http_xet_store_check_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, const xet_checksum_t *digest,
    ngx_log_t *log);

/*
 * Removes a copy that no row names any more; one that is missing is no error.
 * Why it can't be removed is logged.
 */
xet_status_t ngx_http_xet_store_remove_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, ngx_log_t *log);

/* The same for n copies; after XET_OK none comes back, whatever dies. */
xet_status_t ngx_http_xet_store_remove_all_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, ngx_log_t *log);

/*
 * ngx_http_xet_store_tags.c: what copies are told apart by.  A worker gets tags
 * in blocks, the first tag of which it is that is added, and has so many of
 * them, some of the first of which may be used.  Both may be called in any
 * thread.
 */
#define NGX_HTTP_XET_TAGS_BLOCK   256         /* as in xet.tags_take() */
#define NGX_HTTP_XET_TAGS_BLOCKS  4           /* at most */

void ngx_http_xet_store_tags_add(uint32_t first);
ngx_uint_t ngx_http_xet_store_tags_blocks(void);

/* Milliseconds of a clock that nobody sets, for threads. */
uint64_t ngx_http_xet_store_clock(void);


/*
 * Signatures of an object store; both compute only, and suit the event loop.
 */

/*
 * Writes a URL by which anybody may get the bytes [start, end) of the copy,
 * with that one range as the header Range, for seconds from made on.
 * XET_INTERNAL when it is too long.
 */
xet_status_t ngx_http_xet_store_presign(ngx_http_xet_store_t *store,
    xet_buf_t *b, const xet_hash_t *xorb, uint32_t tag, uint64_t start,
    uint64_t end, time_t made, time_t seconds);

/*
 * What a request for the copy, made by nginx in our name, has in its headers.
 * NGX_DECLINED where the store is none of that kind.
 */
ngx_int_t ngx_http_xet_store_sign(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, xet_s3_signed_t *out);

/* The path of it alone, of XET_S3_URL_MAX bytes, which needs no signature. */
ngx_int_t ngx_http_xet_store_uri(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, char *path);


/*
 * A copy that is read, by one job: opened, read any number of times, closed.
 * Statuses as above; what is wrong with the copy is in why and err, and only
 * what says nothing about the copy is logged.
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


/* Nothing is open, and closing does nothing. */
void ngx_http_xet_copy_init(ngx_http_xet_opened_t *copy,
    ngx_http_xet_store_t *store);

/* Closes what is open. */
xet_status_t ngx_http_xet_copy_open_job(ngx_http_xet_opened_t *copy,
    const xet_hash_t *xorb, uint32_t tag, ngx_log_t *log);

/*
 * The bytes [start, end) will be read next, in order: an object store is asked
 * for them once.  Some MiB; they are held until the next ones or the end.
 */
void ngx_http_xet_copy_ahead(ngx_http_xet_opened_t *copy, uint64_t start,
    uint64_t end);

/* Exactly len bytes. */
xet_status_t ngx_http_xet_copy_read_job(ngx_http_xet_opened_t *copy,
    u_char *buf, size_t len, uint64_t offset, ngx_log_t *log);

void ngx_http_xet_copy_close_job(ngx_http_xet_opened_t *copy, ngx_log_t *log);


/*
 * ngx_http_xet_store_stage.c: a xorb that a client has put into the bucket
 * itself, by a URL that we gave it, under a name where nobody looks for xorbs:
 * read to its end, in jobs, verified, and made a copy of the store.
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


/* The URL of a PUT, which has to have "If-None-Match: *", too. */

typedef struct {
    char                   url[XET_S3_URL_MAX];
    char                   checksum[16];       /* x-amz-checksum-crc64nvme */
} ngx_http_xet_stage_put_t;


/* A new id at random, with a zero byte behind it.  XET_OK, XET_INTERNAL. */
xet_status_t ngx_http_xet_stage_draw(u_char *id);


/*
 * Allows length bytes with that checksum, for seconds from now on, under a name
 * that is made of the xorb and id.  Computes only.  NGX_OK, NGX_ERROR.
 */
ngx_int_t ngx_http_xet_stage_put(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, const u_char *id, uint64_t length, uint64_t crc64,
    time_t seconds, ngx_http_xet_stage_put_t *put);

/*
 * The beginning; all of stage is zero.  max bytes are allowed, and a footer of
 * so many; file is of ngx_http_xet_store_xorb().  XET_OK, XET_NOMEM.
 */
xet_status_t ngx_http_xet_stage_begin(ngx_http_xet_stage_t *stage,
    ngx_http_xet_temp_t *file, const xet_suite_t *suite,
    const xet_hash_t *xorb, const u_char *id, uint64_t max, uint64_t footer);

/*
 * Reads on.  XET_AGAIN: there is more.  XET_OK: the file is a durable copy, as
 * after ngx_http_xet_store_commit_job().  XET_NO_GRANT: nothing was put.  What
 * is wrong with the bytes, as of an upload; these are then removed.
 */
xet_status_t ngx_http_xet_stage_job(ngx_http_xet_stage_t *stage,
    ngx_log_t *log);

/* Frees all but the file. */
void ngx_http_xet_stage_destroy(ngx_http_xet_stage_t *stage);


/*
 * ngx_http_xet_fetch.c: xorbs that a peer node of "xet_store_peer" sends, one
 * after another, as bytes of which nothing is known.
 */

#define NGX_HTTP_XET_FETCH_LITTLE  (64 * 1024) /* bytes of a job */

typedef struct ngx_http_xet_fetch_s  ngx_http_xet_fetch_t;

/* Once in a process, before threads use libcurl. */
ngx_int_t ngx_http_xet_fetch_init(ngx_cycle_t *cycle);

/*
 * A client of the peer, which keeps its connection from xorb to xorb; nothing
 * is asked yet.  NULL without memory.
 */
ngx_http_xet_fetch_t *ngx_http_xet_fetch_create(
    const ngx_http_xet_peer_t *peer);

/*
 * The next xorb.  What will be asked is written to url, a string of size bytes
 * at most, which stays until the end.
 */
void ngx_http_xet_fetch_begin(ngx_http_xet_fetch_t *fetch,
    const xet_hash_t *xorb, char *url, size_t size);

/*
 * Takes what there is into buf, of 128 KiB at least, without waiting.  XET_OK:
 * *len bytes, and there may be more; none at the end.  XET_AGAIN: *len bytes, a
 * few or none, and the next job is to be one of some milliseconds later.
 * XET_STORE_FAILED: the peer has not the xorb, or does not send it; why is
 * logged.  XET_STORE_FILES, XET_NOMEM.
 */
xet_status_t ngx_http_xet_fetch_job(ngx_http_xet_fetch_t *fetch, u_char *buf,
    size_t size, size_t *len, ngx_log_t *log);

/* After XET_STORE_FAILED: whether other xorbs can't be had there, either. */
ngx_uint_t ngx_http_xet_fetch_bad(ngx_http_xet_fetch_t *fetch);

/* Nothing more is taken of the xorb. */
void ngx_http_xet_fetch_end_job(ngx_http_xet_fetch_t *fetch);

/* Called in the event loop; connections are closed in a thread. */
void ngx_http_xet_fetch_destroy(ngx_http_xet_fetch_t *fetch);


/*
 * ngx_http_xet_store_scan.c: a copy of a xorb read to its end, in jobs of a
 * bounded size.
 *
 * By digest, or by decoding all of it where there is none, it is held against
 * what its row says; of a foreign file all is decoded, and may be copied to a
 * temporary file meanwhile.  Owned by the job while that runs, else by the
 * event loop.
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
 * The beginning: a copy of the store, with digest or else with ends; or that of
 * a foreign folder, of size_max bytes at most, with copy NULL or a file of
 * ngx_http_xet_store_copy().  XET_OK, XET_NOMEM.
 */
xet_status_t ngx_http_xet_scan_copy(ngx_http_xet_scan_t *scan,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t tag,
    uint64_t size, const xet_checksum_t *digest, const u_char *ends);
xet_status_t ngx_http_xet_scan_foreign(ngx_http_xet_scan_t *scan,
    const ngx_str_t *folder, const xet_hash_t *xorb, uint32_t tag,
    uint64_t size_max, ngx_http_xet_temp_t *copy);

/*
 * The same for what a peer node sends; path is its address.  fetch outlives the
 * scan.
 */
xet_status_t ngx_http_xet_scan_peer(ngx_http_xet_scan_t *scan,
    ngx_http_xet_fetch_t *fetch, const xet_hash_t *xorb, uint64_t size_max,
    ngx_http_xet_temp_t *copy);

/*
 * Reads on, for 50 ms and until there are limit bytes, and adds to *taken what
 * was read; of a peer node it takes what is there.  XET_AGAIN: there is more.
 * XET_OK: all was read and is right.  XET_STORE_DAMAGED: it is missing, or not
 * right, scan->why; that a copy of the store is missing is held against the
 * identity of the folder.  XET_STORE_OTHER and all others say nothing about the
 * copy.  But for XET_AGAIN the file is closed.
 */
xet_status_t ngx_http_xet_scan_job(ngx_http_xet_scan_t *scan, size_t limit,
    size_t *taken, ngx_log_t *log);

/* The chunks of a xorb that was decoded, until the scan is destroyed. */
const xet_xorb_info_t *ngx_http_xet_scan_info(ngx_http_xet_scan_t *scan);

/* Frees all but the copy; a file that is open is closed in a thread. */
void ngx_http_xet_scan_destroy(ngx_http_xet_scan_t *scan);

/*
 * ngx_http_xet_store_orphans.c: files of the store that may have no row, some
 * of them a job.  First come those that an earlier sweep, of this or another
 * node, has taken aside and left, then those of the folders, one after another.
 * Owned by the job while that runs, else by the event loop.
 */

#define NGX_HTTP_XET_ORPHANS_NAMES    256      /* of a list */
#define NGX_HTTP_XET_ORPHANS_TAKEN    32       /* at a time */
#define NGX_HTTP_XET_ORPHANS_FOLDERS  256
#define NGX_HTTP_XET_ORPHANS_ASIDE    (-1)     /* the folder of those */

typedef struct {
    xet_hash_t             xorb;
    uint32_t               tag;
    uint64_t               sweep;              /* in its name, where aside */
    uint64_t               size;               /* of one that was taken */
    int64_t                modified;           /* of an object, by our clock */
    int64_t                changed;            /* and by its own */

    unsigned               aside:1;
    unsigned               suspect:1;          /* no row was found */
    unsigned               removable:1;        /* none was found once more */
} ngx_http_xet_orphan_t;


typedef struct {
    ngx_http_xet_store_t  *store;
    time_t                 since;              /* those that came later, */
    time_t                 newest;             /* and are older */

    ngx_int_t              first;              /* folder behind those aside */
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
 * Lists up to max names of copies from where folder is, for up to 50 ms, into
 * names.  At the end folder is NGX_HTTP_XET_ORPHANS_FOLDERS; there may be names
 * then, and none while it is not.  A file that is not named like a copy is
 * counted as found.
 */
xet_status_t ngx_http_xet_orphans_list_job(ngx_http_xet_orphans_t *o,
    ngx_uint_t max, ngx_log_t *log);

/*
 * Takes aside the files of names that are suspect and old enough, from i on,
 * some of them for up to 50 ms: these are in taken.
 */
xet_status_t ngx_http_xet_orphans_take_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);

/* Removes those in taken that are removable; others get their names back. */
xet_status_t ngx_http_xet_orphans_settle_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);

/* Closes what is open, in a thread. */
void ngx_http_xet_orphans_close(ngx_http_xet_orphans_t *o);


/*
 * ngx_http_xet_store_log.c: logs why a function of src/store has failed, unless
 * its status says something of the name; returns the status.
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
 * the last one zero.  XET_DONE when the folder has no identity,
 * XET_STORE_FAILED or XET_STORE_FILES when the file can't be read.
 */
xet_status_t ngx_http_xet_store_identity_read_job(ngx_http_xet_store_t *store,
    u_char *identity, ngx_log_t *log);

/*
 * Gives the folder an identity, durably.  XET_OK as well when the folder has
 * one already, which stays: the caller reads it again.
 */
xet_status_t ngx_http_xet_store_identity_make_job(ngx_http_xet_store_t *store,
    const u_char *identity, ngx_log_t *log);

/*
 * Draws a new identity at random, with a zero byte behind it.  XET_OK, or
 * XET_INTERNAL.
 */
xet_status_t ngx_http_xet_store_identity_draw(u_char *identity);


/*
 * Notes the identity that the database has, for all threads of the worker;
 * called in any thread, for each new session.
 */
void ngx_http_xet_store_identity_note(const u_char *identity);

/*
 * Whether the folder has the identity that was noted: XET_OK, XET_STORE_OTHER,
 * or the error of reading the file.  XET_OK as well when none was noted: then
 * the worker has had no session yet, and what this check protects needs a
 * session, which compares the identities when it connects.
 */
xet_status_t ngx_http_xet_store_identity_check_job(ngx_http_xet_store_t *store,
    ngx_log_t *log);

/*
 * The same, asked now in any case: the answer of an object store is otherwise
 * good for some seconds.
 */
xet_status_t ngx_http_xet_store_identity_look_job(ngx_http_xet_store_t *store,
    ngx_log_t *log);


/*
 * ngx_http_xet_probe.c: whether the store of the worker can be written.
 */

typedef void (*ngx_http_xet_probe_pt)(ngx_http_request_t *r,
    xet_status_t status);


/*
 * XET_OK, or the reason why the store can't be written: XET_STORE_SLOW while
 * the disk does not answer, XET_STORE_FULL, ...; XET_STORE_OTHER where the
 * folder is another one, XET_STORE_GONE where it is not there, XET_STORE_BARE
 * where it has no identity, as without its disk;
 * XET_OVERLOADED or XET_NOMEM when no probe could be started.  XET_AGAIN: a
 * probe is under way, and handler is called with its result, unless the
 * request has ended by then.  The result of a probe is valid for a second.
 */
xet_status_t ngx_http_xet_probe(ngx_http_request_t *r,
    ngx_http_xet_probe_pt handler);

/*
 * Starts a probe if none is under way and the last one is older than this; what
 * it finds becomes gauges, as that of every probe.
 */
void ngx_http_xet_probe_look(ngx_msec_t older);


#endif /* _NGX_HTTP_XET_STORE_H_INCLUDED_ */
