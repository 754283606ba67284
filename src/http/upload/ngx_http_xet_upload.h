
/*
 * Uploads: request bodies that are read, verified and stored while they arrive.
 */

#ifndef _NGX_HTTP_XET_UPLOAD_H_INCLUDED_
#define _NGX_HTTP_XET_UPLOAD_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_store.h"


/*
 * ngx_http_xet_body_filter.c: request bodies, taken while they arrive and
 * handed to jobs.
 */

/*
 * Called in a thread with the next piece of the body; last is 1 with the final
 * piece, which may be empty.  XET_OK goes on, XET_AGAIN pauses where there is
 * a wait handler, any other status ends the upload.
 */
typedef xet_status_t (*ngx_http_xet_body_feed_pt)(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);

/*
 * Called in the event loop when feed has returned XET_AGAIN: gets what feed
 * waits for, by a statement or a job of the request, and then calls
 * ngx_http_xet_body_resume(), at once or later.  Then feed is called again
 * with the same piece at the same address.
 */
typedef void (*ngx_http_xet_body_wait_pt)(ngx_http_request_t *r, void *data);

/*
 * Called once in the event loop: the whole body was fed (XET_OK), or reading
 * or feeding has failed with status.  Not called for a request that has died.
 */
typedef void (*ngx_http_xet_body_done_pt)(ngx_http_request_t *r, void *data,
    xet_status_t status);


/*
 * Reads the body of r.  An upload holds up to two buffers of
 * "xet_body_buffer": one is filled while a job works on the other, and the
 * socket is not read while both are full.  data must live until the pool of the
 * request dies.  wait may be NULL.  Returns what a content handler returns.
 */
ngx_int_t ngx_http_xet_body_read(ngx_http_request_t *r,
    ngx_http_xet_body_feed_pt feed, ngx_http_xet_body_wait_pt wait,
    ngx_http_xet_body_done_pt done, void *data);

/* Ends a wait: XET_OK feeds the piece again, any other ends the upload. */
void ngx_http_xet_body_resume(ngx_http_request_t *r, xet_status_t status);

/*
 * Reads the rest of a body, which a filter drops, and calls drained: a client
 * of HTTP/2 or HTTP/3 would see a reset stream, and not the answer.  Not called
 * where the client leaves, or sends nothing for too long: the request ends.
 */
void ngx_http_xet_body_drain(ngx_http_request_t *r,
    ngx_http_event_handler_pt drained);

/* Bytes of the body received, dropped ones included; 0 where none is read. */
uint64_t ngx_http_xet_body_received(ngx_http_xet_ctx_t *ctx);

/* Registers the filter; in postconfiguration. */
ngx_int_t ngx_http_xet_body_filter_init(ngx_conf_t *cf);


/*
 * ngx_http_xet_tags.c: calls next, which returns what a handler does, as soon
 * as there are tags for copies, or as it is certain that there are none.
 */
typedef ngx_int_t (*ngx_http_xet_tags_pt)(ngx_http_request_t *r, void *data);

ngx_int_t ngx_http_xet_tags_then(ngx_http_request_t *r,
    ngx_http_xet_tags_pt next, void *data);


/*
 * ngx_http_xet_quota.c: uploads for which there is no room left.
 */

typedef enum {
    NGX_HTTP_XET_QUOTA_XORB = 0,
    NGX_HTTP_XET_QUOTA_FILE
} ngx_http_xet_quota_e;


/*
 * As ngx_http_xet_body_read(), but an upload that announces more bytes than
 * there is room for, where the worker knows of limits, is refused before it is
 * read.  hash is that of the xorb, or of the file if it is known.
 */
ngx_int_t ngx_http_xet_quota_read(ngx_http_request_t *r,
    ngx_http_xet_quota_e quota, const xet_hash_t *hash,
    ngx_http_xet_body_feed_pt feed, ngx_http_xet_body_wait_pt wait,
    ngx_http_xet_body_done_pt done, void *data);

/*
 * Answers with the error that has ended an upload: status where rc is
 * NGX_DECLINED, XET_QUOTA with what is left, else that of a query.
 */
ngx_int_t ngx_http_xet_upload_error(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);

/* The text for XET_QUOTA, in the pool of r. */
const char *ngx_http_xet_quota_text(ngx_http_request_t *r);


/*
 * ngx_http_xet_verify_body.c: uploads on their way through an edge, checked as
 * they pass.
 */

typedef enum {
    NGX_HTTP_XET_UPLOAD_NONE = 0,
    NGX_HTTP_XET_UPLOAD_XORB,
    NGX_HTTP_XET_UPLOAD_SHARD
} ngx_http_xet_upload_e;


/* A xorb that comes in; all but verifier is set by its owner. */

typedef struct {
    const xet_suite_t    *suite;
    xet_hash_t            hash;
    uint64_t              max;                 /* bytes */
    xet_xorb_verifier_t  *verifier;            /* NULL; its owner destroys it */
} ngx_http_xet_xorb_in_t;

/*
 * In a thread: verifies the next piece, and with the last one the whole;
 * *stored is as for xet_xorb_verifier_feed().
 */
xet_status_t ngx_http_xet_verify_xorb_job(ngx_http_xet_xorb_in_t *in,
    u_char *buf, size_t len, ngx_uint_t last, size_t *stored);

/*
 * Called before the body of r is read: the body will be verified as it passes,
 * a xorb against hash, which a shard does not use.  The request holds two
 * buffers of "xet_body_buffer" and, for a xorb, a verifier.  Returns what the
 * handler of a phase returns: NGX_DECLINED, or NGX_DONE when the request was
 * answered, because it has no body or another module has read the body;
 * NGX_HTTP_INTERNAL_SERVER_ERROR without memory.
 */
ngx_int_t ngx_http_xet_verify(ngx_http_request_t *r,
    ngx_http_xet_upload_e upload, const xet_hash_t *hash);

/* Registers the filter; in postconfiguration. */
ngx_int_t ngx_http_xet_verify_init(ngx_conf_t *cf);


/*
 * ngx_http_xet_coding.c: refuses a body with a content coding.  NGX_DECLINED:
 * it has none; any other code is for ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_body_plain(ngx_http_request_t *r);


/*
 * ngx_http_xet_limit.c: bounds of uploads: how many somebody has at a time, and
 * how many bytes in a while.
 */

/*
 * Counts the request as an upload until it is answered or ends, in the zone of
 * its location.  NGX_DECLINED: the upload is allowed; any other code: it was
 * refused, and the code is for ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_limit_upload(ngx_http_request_t *r);


/*
 * ngx_http_xet_keep.c: a xorb that was uploaded becomes the store's.
 */

/*
 * Called once, in the event loop.  rc:
 *
 *     NGX_OK        the xorb is stored, whole and durable; new tells whether
 *                   it is new to the store, or with "xet_access repo" whether
 *                   it is new to the repo or to the subject
 *     NGX_DECLINED  the xorb is not stored, and status is the reason
 *     otherwise     the rc of a query, see ngx_http_xet_query.h
 */
typedef void (*ngx_http_xet_keep_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


/*
 * Puts the row of a xorb whose copy is file, durable under its name; eligible
 * are the numbers of the chunks that go into the dedup index.  file, info and
 * eligible live until the handler is called; then the file may be reset, or
 * left to the end of the request.  Uses the request's one statement and one
 * job.
 */
void ngx_http_xet_keep(ngx_http_request_t *r, ngx_http_xet_temp_t *file,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_keep_pt handler);


/*
 * ngx_http_xet_register.c: the files of a shard, verified against the store and
 * committed.
 */

/*
 * Called once, in the event loop.  rc:
 *
 *     NGX_OK        committed; new tells whether any file is new to the store,
 *                   or to the request's repo
 *     NGX_DECLINED  the shard or the store is at fault, as status says
 *     otherwise     the rc of a query, see ngx_http_xet_query.h
 */
typedef void (*ngx_http_xet_register_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


typedef enum {
    NGX_HTTP_XET_VALIDATING = 0,       /* verified of total terms */
    NGX_HTTP_XET_STAGING,              /* a batch is being staged */
    NGX_HTTP_XET_COMMITTING            /* the last statement is under way */
} ngx_http_xet_stage_e;

/* Reports the progress, in the event loop; may be NULL. */
typedef void (*ngx_http_xet_progress_pt)(ngx_http_request_t *r,
    ngx_http_xet_stage_e stage, uint64_t verified, uint64_t total);


/*
 * Registers the files of a shard that the parser has passed; spool holds the
 * shard's bytes up to files_end, total is the number of its terms.  With proof
 * all terms need verification hashes: a client that names chunks which it has
 * not sent and may not read proves by them that it has the chunk hashes, which
 * only the data tells.  Where chunk hashes may be known without the data, the
 * client must have sent the chunks, or may read them (sql/shards.sql,
 * xet.shard_slices).  Memory is bounded by a stretch of terms and a batch of
 * packed terms, whatever the shard's size.
 */
void ngx_http_xet_register(ngx_http_request_t *r, ngx_http_xet_temp_t *spool,
    uint64_t files_end, uint64_t total, ngx_uint_t proof,
    ngx_http_xet_progress_pt progress, ngx_http_xet_register_pt handler);

/*
 * The text of a status that the handler was called with; where a term refers
 * to a xorb that is not stored here, the text names the file and the xorb, and
 * is in r's pool.
 */
const char *ngx_http_xet_register_text(ngx_http_request_t *r,
    xet_status_t status);


/*
 * ngx_http_xet_ingest.c: files that are taken in as they are: chunked,
 * deduplicated, stored and registered by the server.
 */

/* What the client says that the content is; checked before it is registered. */

typedef struct {
    xet_hash_t    hash;                        /* of the file */
    u_char        sha256[XET_DIGEST_SHA256_LEN];
    unsigned      has_hash:1;
    unsigned      has_sha256:1;
} ngx_http_xet_ingest_expected_t;


typedef struct {
    xet_hash_t    hash;
    u_char        sha256[XET_DIGEST_SHA256_LEN];
    uint64_t      size;                        /* bytes */
    uint64_t      new_size;                    /* of them stored anew */
} ngx_http_xet_ingest_result_t;


/*
 * Called once, in the event loop.  rc:
 *
 *     NGX_OK        the file is durable and registered: result
 *     NGX_DECLINED  the content or the store is at fault, as status says
 *     otherwise     the rc of a query, see ngx_http_xet_query.h
 */
typedef void (*ngx_http_xet_ingest_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result);


/*
 * Takes the body of r in as a file of the request's repo, and calls handler
 * with the result, which lives as long as the request.  Memory is bounded by
 * two buffers of the body and what the core needs (xet_ingest.h); *expected
 * is copied.  Returns what a content handler returns.
 */
ngx_int_t ngx_http_xet_ingest(ngx_http_request_t *r,
    const ngx_http_xet_ingest_expected_t *expected,
    ngx_http_xet_ingest_pt handler);

/* A file in memory. */

typedef struct {
    u_char        *data;
    size_t         len;                        /* not 0 */
    u_char         sha256[XET_DIGEST_SHA256_LEN];

    xet_hash_t     hash;                       /* set when it is taken in */
    xet_hash_t     first;                      /* of its first chunk */
    unsigned       begun:1;                    /* first is set */
} ngx_http_xet_ingest_file_t;

/*
 * The same for n files that are in memory, one at least, which live until the
 * handler is called; sha256 of each is that of its data.  They are stored
 * together: what that costs depends on their bytes.  The body of r may be in
 * the middle of a wait, and a request may call this again after the handler.
 * NGX_DONE when the handler will be called, else an error.
 */
ngx_int_t ngx_http_xet_ingest_files(ngx_http_request_t *r,
    ngx_http_xet_ingest_file_t *files, ngx_uint_t n,
    ngx_http_xet_ingest_pt handler);


/*
 * ngx_http_xet_frames.c: an answer in frames: NDJSON, each line flushed, the
 * last one repeated while nothing happens.
 */

#define NGX_HTTP_XET_FRAME_MAX  512


typedef struct {
    ngx_http_request_t  *request;
    ngx_event_t          timer;
    ngx_msec_t           interval;     /* ms between repeated frames */
    ngx_msec_t           sent;         /* when the last frame went out */

    ngx_chain_t         *free;
    ngx_chain_t         *busy;

    u_char               last[NGX_HTTP_XET_FRAME_MAX];  /* current frame */
    size_t               len;

    unsigned             begun:1;      /* the header is out */
    unsigned             failed:1;
} ngx_http_xet_frames_t;


/*
 * Starts the timer of f; sends nothing.  The first frame goes out after delay
 * ms, or when one is forced before, so that an early failure can still be an
 * HTTP status.  After that the current frame is repeated every interval ms.  f
 * lives as long as the request.  NGX_OK, or NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_frames_start(ngx_http_request_t *r,
    ngx_http_xet_frames_t *f, ngx_msec_t delay, ngx_msec_t interval);

/*
 * Sets the current frame, len bytes with the newline, at most
 * NGX_HTTP_XET_FRAME_MAX.  It is sent at once when force is set, or when a
 * frame went out before, but none in the last 200 ms; else by the timer.
 */
void ngx_http_xet_frames_put(ngx_http_xet_frames_t *f, const u_char *frame,
    size_t len, ngx_uint_t force);

/* There will be no frame: the answer is a status. */
void ngx_http_xet_frames_drop(ngx_http_xet_frames_t *f);

/*
 * Sends the final frame, at most NGX_HTTP_XET_FRAME_MAX bytes, and releases
 * what the request holds.  Returns what ngx_http_finalize_request() takes.
 */
ngx_int_t ngx_http_xet_frames_end(ngx_http_xet_frames_t *f,
    const u_char *frame, size_t len);


#endif /* _NGX_HTTP_XET_UPLOAD_H_INCLUDED_ */
