
/*
 * Downloads: reconstruction plans, pieces of files, URLs of xorbs.
 */

#ifndef _NGX_HTTP_XET_DOWNLOAD_H_INCLUDED_
#define _NGX_HTTP_XET_DOWNLOAD_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_store.h"


/* ngx_http_xet_url.c: signed URLs of a response. */

typedef struct {
    ngx_str_t        base;
    time_t           expires;
    ngx_uint_t       group;            /* ranges in one URL at most */
    ngx_uint_t       whole;            /* the range is not signed */
    xet_sign_key_t  *sign;             /* the event loop's, or a thread's */

    ngx_http_xet_store_t  *store;      /* whose URLs these are, or NULL */
    time_t                 made;       /* then, the same for a quantum */

    ngx_str_t        id;               /* of the key */
    ngx_str_t        secret;
} ngx_http_xet_url_t;


/*
 * Initializes url for the responses of r.  The base is "xet_url_base", or
 * scheme and host of the request.  NGX_DECLINED if the request has no host
 * name; NGX_ERROR if the base has characters that are not allowed in JSON, or
 * if out of memory.
 */
ngx_int_t ngx_http_xet_url_init(ngx_http_request_t *r,
    ngx_http_xet_url_t *url);

/*
 * Creates and frees a MAC context in url, for use in a thread.  XET_OK or
 * XET_NOMEM.
 */
xet_status_t ngx_http_xet_url_thread(ngx_http_xet_url_t *url);
void ngx_http_xet_url_thread_end(ngx_http_xet_url_t *url);

/*
 * An xet_plan_url_pt: writes a signed URL; ctx is an ngx_http_xet_url_t.  With
 * n == 0 the URL allows any range, and ranges[0].tag is read nevertheless.
 */
xet_status_t ngx_http_xet_url_write(void *ctx, xet_buf_t *b,
    const xet_hash_t *xorb, const xet_plan_range_t *ranges, size_t n);

/*
 * The path and arguments, without base, with which the request itself may read
 * any range of a copy through the data location, for the next 60 seconds.
 * NGX_OK or NGX_ERROR; the strings are in r's pool.
 */
ngx_int_t ngx_http_xet_url_internal(ngx_http_request_t *r,
    const xet_hash_t *xorb, uint32_t tag, ngx_str_t *uri, ngx_str_t *args);


/*
 * The arguments alone, for the copy that the request's own URI names.
 * NGX_DECLINED if the URI does not end with the name of a copy.
 */
ngx_int_t ngx_http_xet_url_args(ngx_http_request_t *r, ngx_str_t *args);

/* Finds this copy. */
ngx_int_t ngx_http_xet_url_copy(ngx_http_request_t *r, xet_hash_t *xorb,
    uint32_t *tag);


/*
 * ngx_http_xet_decode.c: reads chunks from the files of the store, decodes
 * them, and checks their hashes.  All functions block and belong in a job.
 */

/* The codec and buffers of a thread, created by its first job. */

typedef struct {
    xet_codec_t        *codec;
    u_char              stored[XET_XORB_CHUNK_MAX];
    u_char              raw[XET_CHUNK_MAX];    /* the job's, for anything */
} ngx_http_xet_decode_thread_t;


/*
 * A chunk that is missing, or does not match the row of its xorb; for reports.
 */

typedef struct {
    xet_hash_t                     xorb;
    uint32_t                       tag;
    uint32_t                       index;
    ngx_err_t                      err;
    const char                    *why;
} ngx_http_xet_decode_lost_t;


/* The state of a job, with the open copy of a xorb. */

typedef struct {
    ngx_http_xet_decode_thread_t  *thread;
    const xet_suite_t             *suite;
    ngx_http_xet_opened_t            copy;
    ngx_http_xet_decode_lost_t     lost;       /* after XET_STORE_DAMAGED */
    ngx_log_t                     *log;
} ngx_http_xet_decode_t;


/* Starts a job.  XET_OK or XET_NOMEM.  store lives as long as the job. */
xet_status_t ngx_http_xet_decode_begin_job(ngx_http_xet_decode_t *d,
    const xet_suite_t *suite, ngx_http_xet_store_t *store, ngx_log_t *log);

/*
 * Opens the copy that has chunk, unless it is open.  Returns XET_STORE_DAMAGED
 * and the other statuses below.
 */
xet_status_t ngx_http_xet_decode_open_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk);

/* Whether the range of the chunk was announced to the store. */
#define ngx_http_xet_decode_told(d, chunk)                                    \
    ((chunk)->stored_start >= (d)->copy.reader.start                          \
     && (uint64_t) (chunk)->stored_start + (chunk)->stored_len                \
        <= (d)->copy.reader.end)

/*
 * Announces that the next chunks are in the bytes [start, end) of the open
 * copy.
 */
void ngx_http_xet_decode_ahead(ngx_http_xet_decode_t *d, uint64_t start,
    uint64_t end);

/*
 * Decodes chunk of the open copy into out, which has room for chunk->raw_len
 * bytes, and checks its hash.  XET_STORE_DAMAGED if the copy or a part of it
 * is missing, or does not contain the chunk: d->lost names chunk and copy, and
 * nothing is logged yet, because another copy may have replaced this one.
 * XET_STORE_FAILED or XET_STORE_FILES if the copy can't be read;
 * XET_STORE_OTHER if the store does not belong to this database; XET_NOMEM.
 */
xet_status_t ngx_http_xet_decode_chunk_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, u_char *out);

/*
 * Logs the lost chunk at level "alert", because an operator has to repair it.
 */
void ngx_http_xet_decode_log(const ngx_http_xet_decode_lost_t *lost,
    ngx_log_t *log);

/* Ends a job that was started successfully: closes the open copy. */
void ngx_http_xet_decode_end_job(ngx_http_xet_decode_t *d);


/*
 * ngx_http_xet_reader.c: reads byte ranges of a stored file in pieces: reads
 * the xorbs, decodes them, and checks the hash of every chunk.
 *
 * Life cycle, within one request:
 *
 *     create -> open -> range -> next, next, ... -> range -> next, ...
 *
 * open and next start work and return XET_AGAIN; the handler is called once,
 * later, from the event loop.  Meanwhile the reader uses the request's one
 * statement and one job (ctx->query, ctx->task).  The caller must not start
 * either, and the rows of its own last statement are gone.  Between a handler
 * and the next call the reader does nothing and holds no descriptor: this is
 * the backpressure.
 *
 * Pieces come in the order of the range, without gaps, divided like the
 * chunks; none crosses the end of the range.  There are two ways to take them:
 *
 *     in the event loop: next passes a piece to the handler.  It belongs to
 *     the caller until it is released.  The caller may hold one while the next
 *     one is made; at most two exist.
 *
 *     in the thread: the job that decodes calls a consume function for each
 *     piece.  The handler of next is called when that function pauses, or at
 *     the end of the range.  No buffers of the request are used, so a resting
 *     request holds no bytes of the range.
 *
 * Memory of a reader: 64 KiB of terms and chunk lists, and up to two buffers
 * of "xet_read_buffer", none before the first piece.  It does not grow with
 * the file or the range, and is freed with the request's pool.
 *
 * Damage in the store is found before any byte of the chunk is delivered; a
 * log line of level "alert" names chunk and xorb.
 */

/* A part of the range; not empty. */

typedef struct {
    u_char      *pos;
    u_char      *last;
    uint64_t     offset;                       /* of pos in the file */
} ngx_http_xet_piece_t;


/*
 * Statuses that the functions return and the handlers get, besides those of
 * each function below; all of them suit ngx_http_xet_error_status():
 *
 *     XET_NO_FILE         404  not stored, or not visible to the request
 *     XET_DATABASE_AWAY   503  PostgreSQL is unavailable or overloaded
 *     XET_DATABASE        500  PostgreSQL has rejected the statement
 *     XET_PLAN_DAMAGED    500  terms or chunk lists contradict each other
 *     XET_STORE_DAMAGED   500  the bytes of a xorb are missing or wrong
 *     XET_STORE_FAILED    500  the bytes of a xorb can't be read
 *     XET_STORE_OTHER     503  the store does not belong to this database
 *     XET_STORE_FILES     503  temporarily: too many open files
 *     XET_OVERLOADED      503  the thread pool's queue is full
 *     XET_NOMEM           500
 *
 * No handler is called if the request has died meanwhile.
 */

/* XET_OK: the file is open. */
typedef void (*ngx_http_xet_reader_open_pt)(ngx_http_request_t *r,
    void *data, xet_status_t status);

/*
 * XET_OK: the next piece, or NULL if the consume function has paused.
 * XET_DONE: the consume function has taken the whole range; without a consume
 * function the handler never gets this status.
 */
typedef void (*ngx_http_xet_reader_piece_pt)(ngx_http_request_t *r,
    void *data, ngx_http_xet_piece_t *piece, xet_status_t status);

/*
 * Called in a thread, as part of a job: takes the whole piece, whose memory is
 * reused after the return.  XET_OK continues with the next piece, XET_DONE
 * pauses after this one.  Any other status ends the range and is passed to the
 * handler; XET_AGAIN must not be returned.  A piece is a chunk, trimmed to the
 * range, so it has at most 128 KiB.
 */
typedef xet_status_t (*ngx_http_xet_reader_consume_pt)(void *data,
    const ngx_http_xet_piece_t *piece, ngx_log_t *log);


/*
 * Creates a reader that lives as long as the request's pool.  data is passed
 * to all handlers and consume functions, and must live as long.  NULL if out
 * of memory.
 */
ngx_http_xet_reader_t *ngx_http_xet_reader_create(ngx_http_request_t *r,
    void *data);

/*
 * Finds the file with the permissions of the request; an open reader keeps its
 * file.  XET_AGAIN: the handler will be called.  XET_OK: the file is open
 * already, and the handler will not be called (the empty file, whose hash is
 * all zeros, needs no look-up).
 */
xet_status_t ngx_http_xet_reader_open(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd, const xet_hash_t *file,
    ngx_http_xet_reader_open_pt handler);

/* The size of the open file in bytes. */
uint64_t ngx_http_xet_reader_size(ngx_http_xet_reader_t *rd);

/*
 * The SHA-256 of the open file, 32 bytes in plain order; NULL if the server
 * has not computed it.
 */
const u_char *ngx_http_xet_reader_sha256(ngx_http_xet_reader_t *rd);

/*
 * Sets the range that next reads: [start, end), start < end <= size.  May be
 * called any number of times while neither open nor next is running, even
 * before the end of the last range.  Terms and chunk lists in memory are
 * reused: a range near the last one costs no statement.
 *
 * consume is NULL for pieces in the event loop.
 */
void ngx_http_xet_reader_range(ngx_http_xet_reader_t *rd, uint64_t start,
    uint64_t end, ngx_http_xet_reader_piece_pt handler,
    ngx_http_xet_reader_consume_pt consume);

/*
 * Starts to read the next piece of the range.  XET_AGAIN: the handler will be
 * called.  XET_DONE: the range is complete.  XET_INTERNAL: the caller holds
 * two pieces, or next is running.  After an error another range may be set.
 */
xet_status_t ngx_http_xet_reader_next(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd);


/* Releases a piece.  Its buffer is reused. */
void ngx_http_xet_reader_release(ngx_http_xet_reader_t *rd,
    ngx_http_xet_piece_t *piece);

/* Changes the data that handlers and consume functions get. */
void ngx_http_xet_reader_data(ngx_http_xet_reader_t *rd, void *data);


/*
 * ngx_http_xet_content.c: serves a stored file or a part of it by GET and HEAD
 * (RFC 9110): conditions, ranges, and the bytes, streamed.
 */

typedef struct {
    ngx_http_xet_reader_t  *reader;            /* open, nothing under way */
    uint64_t                start;             /* in the file */
    uint64_t                size;              /* start + size <= file's */
    ngx_str_t               etag;              /* strong, with its quotes */
    ngx_str_t               type;              /* Content-Type */
} ngx_http_xet_content_t;


/*
 * Responds with bytes [start, start + size) of the file: 200, 206 with one
 * range or multipart/byteranges, 304, 412 or 416, by If-Match, If-None-Match,
 * If-Range and Range of the request.  Adds Content-Length, Content-Range,
 * Content-Type, Accept-Ranges and ETag.  The caller has added the other
 * headers of a 200 (Cache-Control, Content-Disposition, ...) before, with
 * ngx_http_xet_header().  HEAD is the response of GET without its body, and
 * ignores Range.
 *
 * The response is sent in pieces, with backpressure from the client.  The
 * reader now belongs to the response, which sets its own ranges.  Damage in
 * the store is 500 as long as nothing was sent; after that the connection is
 * closed.
 *
 * The result suits both a content handler, which returns it, and a callback,
 * which finalizes the request with it: NGX_DONE if the response is being sent
 * and has taken a reference of its own.  The strings live as long as the
 * request; *content is copied.
 */
ngx_int_t ngx_http_xet_content_send(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content);

/*
 * Checks only the conditions of the request, for content that the caller makes
 * and sends itself; only the entity tag is used.  NGX_DECLINED: the content is
 * to be sent; otherwise a 304 or 412 was sent, and the result is as above.
 * nginx's own conditions would use missing dates, and its 412 is not JSON and
 * closes the connection without announcing it.
 */
ngx_int_t ngx_http_xet_content_conditions(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content);

/* The Cache-Control for content whose URL contains its hash. */
const char *ngx_http_xet_content_cache(ngx_http_request_t *r);

/*
 * Adds the headers Repr-Digest and Digest; sha256 has 32 bytes, of the whole
 * content.  NGX_OK, or NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_content_digest(ngx_http_request_t *r,
    const u_char *sha256);


/*
 * ngx_http_xet_stream.c: a response in pieces, each made after the previous
 * one was sent.
 */

/* Makes the next piece, now or later, and calls ngx_http_xet_stream_send(). */
typedef void (*ngx_http_xet_stream_next_pt)(ngx_http_request_t *r,
    void *data);


struct ngx_http_xet_stream_s {
    ngx_http_xet_stream_next_pt   next;
    void                         *data;
    ngx_pool_t                   *pool;        /* of the piece on its way */
    unsigned                      begun:1;
};


/*
 * Initializes s, which lives in the request's pool.  The caller sets the
 * headers of the response before the first piece is sent.  NGX_OK, or
 * NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_stream_init(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, ngx_http_xet_stream_next_pt next, void *data);

/*
 * A pool for the memory of the next piece, destroyed after the piece was sent;
 * a thread may use the pool.  NULL if out of memory.
 */
ngx_pool_t *ngx_http_xet_stream_pool(ngx_http_xet_stream_t *s);

/*
 * Sends a piece, which is in b, and calls next when the client has taken it,
 * or finalizes the request after the last one.
 */
void ngx_http_xet_stream_send(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, xet_buf_t *b, ngx_uint_t last);


/*
 * Plans whose terms are read from PostgreSQL in windows, and spooled to a
 * temporary file if there are too many for memory.
 */

/* The maximum number of terms of a plan in memory, and of a window. */

#define NGX_HTTP_XET_PLAN_TERMS   8192
#define NGX_HTTP_XET_PLAN_BATCH                                               \
    (NGX_HTTP_XET_TERMS_ROWS * XET_TERM_SEGMENT_MAX)


/* Requests the next window; returns the result of ngx_http_xet_plan_send(). */
typedef ngx_int_t (*ngx_http_xet_plan_ask_pt)(ngx_http_request_t *r);


typedef struct {
    xet_plan_spool_t             spool;
    xet_plan_t                  *plan;
    ngx_pool_t                  *pool;             /* of plan->terms */
    ngx_http_xet_temp_t         *files[XET_PLAN_SPOOL_FILES];
    ngx_http_xet_plan_ask_pt     ask;
    u_char                      *room;             /* while sorting */
    size_t                       size;
    xet_status_t                 status;           /* of the job */
    ngx_log_t                   *log;              /* of the job */
} ngx_http_xet_plan_spool_t;


/* The spool of a plan with terms in a file: plan->spool is not NULL. */
#define ngx_http_xet_plan_spool_get(plan)                                     \
    ((ngx_http_xet_plan_spool_t *) (plan)->spool->ctx)


/*
 * Called after a window of terms, except the last one, was added to the plan:
 * makes room for the next one and requests it, or sends an error if the plan
 * would have more terms than "xet_plan_terms".  The plan's memory is from
 * pool. Returns the result of ngx_http_xet_plan_send().
 */
ngx_int_t ngx_http_xet_plan_next(ngx_http_request_t *r, xet_plan_t *plan,
    ngx_pool_t *pool, ngx_http_xet_plan_ask_pt ask);

/*
 * Called after the last window: XET_OK, or XET_PLAN_TERMS if the plan has more
 * terms than "xet_plan_terms".
 */
xet_status_t ngx_http_xet_plan_bound(ngx_http_request_t *r, xet_plan_t *plan);


/* ngx_http_xet_plan.c: responses with a reconstruction plan. */

/*
 * Finishes the plan and sends it as JSON of the given kind, a large plan in
 * pieces made by a thread.  The plan and its memory live until the request
 * ends.
 *
 * NGX_AGAIN: the request will be finalized later; any other code is for
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_plan_send(ngx_http_request_t *r, xet_plan_t *plan,
    xet_plan_kind_t kind);


/*
 * ngx_http_xet_reconstruct.c: reconstructions: the ranges of xorbs that make
 * up a byte range of a file.
 */

/*
 * Parses the single range of the request's Range header; want->end is
 * NGX_MAX_OFF_T_VALUE for an open range and without the header.  Errors:
 * XET_RANGE_SYNTAX, also for a suffix range; XET_RANGE_COUNT for several
 * ranges; XET_RANGE_PAST_END.
 */
xet_status_t ngx_http_xet_reconstruct_range(ngx_http_request_t *r,
    xet_range_t *want);

/*
 * Sends the reconstruction of bytes [want->start, want->end) of a file, in the
 * version of the route.  want->end may be past the end of the file.  For an
 * empty range the response is empty, and no file is looked up.  file and want
 * are copied.
 *
 * NGX_AGAIN: the request will be finalized later; any other code is for
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_reconstruct_send(ngx_http_request_t *r,
    const xet_hash_t *file, const xet_range_t *want);


#endif /* _NGX_HTTP_XET_DOWNLOAD_H_INCLUDED_ */
