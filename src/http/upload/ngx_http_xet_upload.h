
/* Uploads: request bodies are read, verified and stored while they arrive. */

#ifndef _NGX_HTTP_XET_UPLOAD_H_INCLUDED_
#define _NGX_HTTP_XET_UPLOAD_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_store.h"


/*
 * ngx_http_xet_body_filter.c: receives request bodies and passes them to jobs.
 */

/*
 * Called in a thread with the next piece of the body; last is 1 for the final
 * piece, which may be empty.  Returns XET_OK to continue, or XET_AGAIN to
 * pause, if the upload has a wait handler.  Any other status ends the upload.
 */
typedef xet_status_t (*ngx_http_xet_body_feed_pt)(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);

/*
 * Called in the event loop after feed has returned XET_AGAIN.  The handler
 * obtains the data that feed needs, with a statement or a job of the request,
 * and then calls ngx_http_xet_body_resume(), at once or later.  Then feed is
 * called again with the same piece at the same address.
 */
typedef void (*ngx_http_xet_body_wait_pt)(ngx_http_request_t *r, void *data);

/*
 * Called once in the event loop.  status is XET_OK if the whole body was fed,
 * otherwise the error that ended the upload.  Not called if the request ends
 * first.
 */
typedef void (*ngx_http_xet_body_done_pt)(ngx_http_request_t *r, void *data,
    xet_status_t status);

/* Called in the event loop after feed has returned XET_OK for a piece. */
typedef void (*ngx_http_xet_body_fed_pt)(ngx_http_request_t *r, void *data);


#define NGX_HTTP_XET_BODY_BUFFERS  4   /* maximum number of buffers */


/*
 * The consumer of a body.  It has 2 buffers, or more.  With n of them, a piece
 * stays in place until feed has returned XET_OK for n - 2 later pieces.  data
 * must live until the pool of the request is destroyed.
 */

typedef struct {
    ngx_http_xet_body_feed_pt   feed;
    ngx_http_xet_body_fed_pt    fed;           /* or NULL */
    ngx_http_xet_body_wait_pt   wait;          /* NULL: feed never pauses */
    ngx_http_xet_body_done_pt   done;
    void                       *data;
    ngx_uint_t                  buffers;       /* 0: 2 */
} ngx_http_xet_body_sink_t;


/*
 * Reads the body of r.  An upload has up to sink->buffers of "xet_body_buffer":
 * one is filled while a job works on another one, and the socket is not read
 * while all are full.  *sink is copied.  Returns the result of a content
 * handler.
 */
ngx_int_t ngx_http_xet_body_read(ngx_http_request_t *r,
    const ngx_http_xet_body_sink_t *sink);

/*
 * Ends a pause.  If status is XET_OK, the piece is fed again; any other status
 * ends the upload.
 */
void ngx_http_xet_body_resume(ngx_http_request_t *r, xet_status_t status);

/*
 * Reads and discards the rest of a body, and then calls drained, which sends
 * the response.  Otherwise an HTTP/2 or HTTP/3 client would see a reset stream
 * instead of the response.  If the client closes the connection or times out,
 * the request ends, and drained is not called.
 */
void ngx_http_xet_body_drain(ngx_http_request_t *r,
    ngx_http_event_handler_pt drained);

/*
 * Returns the number of bytes of the body received, including discarded bytes.
 */
uint64_t ngx_http_xet_body_received(ngx_http_xet_ctx_t *ctx);

/* Adds the body filter to nginx's chain, in postconfiguration. */
ngx_int_t ngx_http_xet_body_filter_init(ngx_conf_t *cf);


/*
 * ngx_http_xet_copy_ids.c: calls next when the worker has copy ids, or when it
 * can't get any.  Both functions return the result of a content handler.
 */
typedef ngx_int_t (*ngx_http_xet_copy_ids_pt)(ngx_http_request_t *r,
    void *data);

ngx_int_t ngx_http_xet_copy_ids_then(ngx_http_request_t *r,
    ngx_http_xet_copy_ids_pt next, void *data);


/* ngx_http_xet_quota.c: rejects uploads that exceed a quota. */

typedef enum {
    NGX_HTTP_XET_QUOTA_XORB = 0,
    NGX_HTTP_XET_QUOTA_FILE
} ngx_http_xet_quota_e;


/*
 * Reads the body like ngx_http_xet_body_read(), but first rejects the upload if
 * its Content-Length exceeds a quota.  hash is the hash of the xorb, or of the
 * file; NULL if the hash of the file is unknown.
 */
ngx_int_t ngx_http_xet_quota_read(ngx_http_request_t *r,
    ngx_http_xet_quota_e quota, const xet_hash_t *hash,
    const ngx_http_xet_body_sink_t *sink);

/*
 * Sends the error response of a failed upload.  If rc is NGX_DECLINED, status
 * is the error; otherwise rc is the error that a query returned.  The response
 * for XET_QUOTA contains the remaining quota.
 */
ngx_int_t ngx_http_xet_upload_error(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);

/* Returns the message for XET_QUOTA, in the pool of r. */
const char *ngx_http_xet_quota_text(ngx_http_request_t *r);


/* ngx_http_xet_verify_body.c: verifies uploads that pass through an edge. */

typedef enum {
    NGX_HTTP_XET_UPLOAD_NONE = 0,
    NGX_HTTP_XET_UPLOAD_XORB,
    NGX_HTTP_XET_UPLOAD_SHARD
} ngx_http_xet_upload_e;


/*
 * A xorb that is being received.  The owner sets all members except verifier.
 */

typedef struct {
    const xet_suite_t    *suite;
    xet_hash_t            hash;
    uint64_t              max;                 /* maximum size in bytes */
    xet_xorb_verifier_t  *verifier;            /* destroyed by the owner */
} ngx_http_xet_xorb_in_t;

/*
 * Verifies the next piece of a xorb in a thread, and after the last piece the
 * whole xorb.  Sets *stored like xet_xorb_verifier_feed().
 */
xet_status_t ngx_http_xet_verify_xorb_job(ngx_http_xet_xorb_in_t *in,
    u_char *buf, size_t len, ngx_uint_t last, size_t *stored);

/*
 * Prepares to verify the body of r while it is passed on to the origin; must be
 * called before the body is read.  A xorb is verified against hash; hash is
 * ignored for a shard.  The request uses two buffers of "xet_body_buffer" and,
 * for a xorb, a verifier.  Returns the result of a phase handler: NGX_DECLINED
 * to continue; NGX_DONE if an error was sent, because the request has no body
 * or another module has read it; NGX_HTTP_INTERNAL_SERVER_ERROR if out of
 * memory.
 */
ngx_int_t ngx_http_xet_verify(ngx_http_request_t *r,
    ngx_http_xet_upload_e upload, const xet_hash_t *hash);

/* Adds the verifying filter to nginx's chain, in postconfiguration. */
ngx_int_t ngx_http_xet_verify_init(ngx_conf_t *cf);


/*
 * ngx_http_xet_coding.c: rejects a body with a Content-Encoding.  Returns
 * NGX_DECLINED if the body has none; any other code is for
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_body_plain(ngx_http_request_t *r);


/*
 * ngx_http_xet_limit.c: limits how many uploads a client may run at once, and
 * how many bytes it may send in a period.
 */

/*
 * Counts the request as a running upload, in the "xet_upload_zone" that its
 * location uses, until the response is sent or the request ends.  Returns
 * NGX_DECLINED if the upload is allowed.  Otherwise the upload was rejected,
 * and the code is for ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_limit_upload(ngx_http_request_t *r);


/* ngx_http_xet_xorb_commit.c: commits an uploaded xorb to the store. */

/*
 * Called once, in the event loop.  rc:
 *
 *     NGX_OK        the xorb is stored, intact and durable; new is 1 if the
 *                   xorb is new to the store or, with "xet_access repo", new
 *                   to the repo or to the subject
 *     NGX_DECLINED  the xorb is not stored; status is the reason
 *     otherwise     the result of a query, see ngx_http_xet_query.h
 */
typedef void (*ngx_http_xet_xorb_commit_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


/*
 * Inserts the row of a xorb; file is its durable copy.  eligible contains the
 * indexes of the chunks to add to the dedup index.  Until handler is called,
 * file, info and eligible must not be freed, and the request must not send
 * another statement or post another job.  After that, the file may be reset, or
 * left until the request ends.
 */
void ngx_http_xet_xorb_commit(ngx_http_request_t *r, ngx_http_xet_temp_t *file,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_xorb_commit_pt handler);

/*
 * Does the same, and registers a file that consists of the xorb, if both are
 * new.  For NGX_OK, new is 1 if the file is registered.  *whole must not be
 * freed either.
 */
void ngx_http_xet_xorb_commit_file(ngx_http_request_t *r,
    ngx_http_xet_temp_t *file, const xet_xorb_info_t *info,
    ngx_http_xet_array_t *eligible, ngx_http_xet_xorb_file_t *whole,
    ngx_http_xet_xorb_commit_pt handler);


/*
 * ngx_http_xet_register.c: verifies the files of a shard against the store,
 * and commits them.
 */

/*
 * Called once, in the event loop.  rc:
 *
 *     NGX_OK        committed; new is 1 if any file is new to the store or to
 *                   the request's repo
 *     NGX_DECLINED  status is an error of the shard or of the store
 *     otherwise     the result of a query, see ngx_http_xet_query.h
 */
typedef void (*ngx_http_xet_register_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


typedef enum {
    NGX_HTTP_XET_VALIDATING = 0,       /* terms are being verified */
    NGX_HTTP_XET_STAGING,              /* a batch is being staged */
    NGX_HTTP_XET_COMMITTING            /* the last statement is running */
} ngx_http_xet_stage_e;

/*
 * Called in the event loop to report progress: "verified" of "total" terms are
 * verified.  May be NULL.
 */
typedef void (*ngx_http_xet_progress_pt)(ngx_http_request_t *r,
    ngx_http_xet_stage_e stage, uint64_t verified, uint64_t total);


/* The flags of ngx_http_xet_register(). */

typedef enum {
    NGX_HTTP_XET_REGISTER_PROOF = 1,   /* terms need verification hashes */
    NGX_HTTP_XET_REGISTER_PROVEN = 2,  /* the server computed the SHA-256 */
    NGX_HTTP_XET_REGISTER_KEPT = 4     /* the repo keeps the files: LFS */
} ngx_http_xet_register_e;


/*
 * Registers the files of a shard that the parser has accepted.  spool contains
 * the shard up to the offset files_end; total is the number of its terms.
 *
 * With NGX_HTTP_XET_REGISTER_PROOF in "flags", every term needs a verification
 * hash.  Otherwise a client could refer to chunks that it has not sent and may
 * not read.  The verification hash proves that the client knows the chunk
 * hashes, which are computed from the data.  If clients without the data may
 * have learned the chunk hashes, the client must have sent the chunks, or have
 * permission to read them (sql/shards.sql, xet.shard_slices).
 *
 * Memory is limited to one batch of terms and one batch of packed terms,
 * regardless of the size of the shard.
 */
void ngx_http_xet_register(ngx_http_request_t *r, ngx_http_xet_temp_t *spool,
    uint64_t files_end, uint64_t total, ngx_uint_t flags,
    ngx_http_xet_progress_pt progress, ngx_http_xet_register_pt handler);

/*
 * Returns the error message for the status that was passed to the handler.  If
 * a term refers to a xorb that is not stored, the message contains the hashes
 * of the file and the xorb, and is in r's pool.
 */
const char *ngx_http_xet_register_text(ngx_http_request_t *r,
    xet_status_t status);


/*
 * ngx_http_xet_ingest.c: stores plain files, which the server itself chunks
 * and deduplicates.
 */

/*
 * The hashes that the client expects of the file; checked before the file is
 * registered.  "kept": the repo keeps the file even if no commit uses it.
 */

typedef struct {
    xet_hash_t    hash;                        /* file hash */
    u_char        sha256[XET_DIGEST_SHA256_LEN];
    unsigned      has_hash:1;
    unsigned      has_sha256:1;
    unsigned      kept:1;
} ngx_http_xet_ingest_expected_t;


typedef struct {
    xet_hash_t    hash;
    u_char        sha256[XET_DIGEST_SHA256_LEN];
    uint64_t      size;                        /* bytes */
    uint64_t      new_size;                    /* bytes that were not stored */
} ngx_http_xet_ingest_result_t;


/*
 * Called once, in the event loop.  rc:
 *
 *     NGX_OK        the file is durable and registered; see result
 *     NGX_DECLINED  status is an error of the content or of the store
 *     otherwise     the result of a query, see ngx_http_xet_query.h
 */
typedef void (*ngx_http_xet_ingest_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result);


/*
 * Stores the body of r as a file of the request's repo, and calls handler with
 * the result, which lives as long as the request.  Memory is limited to two
 * buffers of the body and the memory of the core (xet_ingest.h).  *expected is
 * copied.  Returns the result of a content handler.
 */
ngx_int_t ngx_http_xet_ingest(ngx_http_request_t *r,
    const ngx_http_xet_ingest_expected_t *expected,
    ngx_http_xet_ingest_pt handler);

/* A file in memory. */

typedef struct {
    u_char        *data;
    size_t         len;                        /* not 0 */
    u_char         sha256[XET_DIGEST_SHA256_LEN];

    xet_hash_t     hash;                       /* result: its file hash */
    xet_hash_t     first;                      /* hash of the first chunk */
    unsigned       begun:1;                    /* first is set */
} ngx_http_xet_ingest_file_t;

/*
 * Stores one or more files that are in memory, like ngx_http_xet_ingest().  The
 * files must live until handler is called, and the caller must have set sha256
 * of each file.  The files are packed into common xorbs, so the cost depends on
 * their total size.  The body of r may be paused during this time.  A request
 * may call this function again after handler was called.  Returns NGX_DONE if
 * handler will be called, otherwise NGX_ERROR.
 */
ngx_int_t ngx_http_xet_ingest_files(ngx_http_request_t *r,
    ngx_http_xet_ingest_file_t *files, ngx_uint_t n,
    ngx_http_xet_ingest_pt handler);


/*
 * ngx_http_xet_frames.c: a response in frames, which are lines of NDJSON.  Each
 * frame is flushed.  While nothing changes, the last frame is repeated.
 */

#define NGX_HTTP_XET_FRAME_MAX  512


typedef struct {
    ngx_http_request_t  *request;
    ngx_event_t          timer;
    ngx_msec_t           interval;     /* ms between repeated frames */
    ngx_msec_t           sent;         /* time of the last frame sent */

    ngx_chain_t         *free;
    ngx_chain_t         *busy;

    u_char               last[NGX_HTTP_XET_FRAME_MAX];  /* current frame */
    size_t               len;

    unsigned             begun:1;      /* the header was sent */
    unsigned             failed:1;
} ngx_http_xet_frames_t;


/*
 * Starts the timer of f; sends nothing.  The first frame is sent after delay
 * ms, or earlier if a frame is forced, so that an early failure can still be
 * an HTTP status.  After that the current frame is repeated every interval ms.
 * f must live as long as the request.  Returns NGX_OK, or NGX_ERROR if out of
 * memory.
 */
ngx_int_t ngx_http_xet_frames_start(ngx_http_request_t *r,
    ngx_http_xet_frames_t *f, ngx_msec_t delay, ngx_msec_t interval);

/*
 * Sets the current frame of len bytes, which include the newline and are at
 * most NGX_HTTP_XET_FRAME_MAX.  The frame is sent at once if force is set, or
 * if an earlier frame was sent at least 200 ms ago; otherwise the timer sends
 * it.
 */
void ngx_http_xet_frames_put(ngx_http_xet_frames_t *f, const u_char *frame,
    size_t len, ngx_uint_t force);

/*
 * Stops the timer.  Call this before you send an error response instead of
 * frames.
 */
void ngx_http_xet_frames_drop(ngx_http_xet_frames_t *f);

/*
 * Sends the final frame, of at most NGX_HTTP_XET_FRAME_MAX bytes, and stops the
 * timer.  Returns a code for ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_frames_end(ngx_http_xet_frames_t *f,
    const u_char *frame, size_t len);


#endif /* _NGX_HTTP_XET_UPLOAD_H_INCLUDED_ */
