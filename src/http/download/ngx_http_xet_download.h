
/* Downloads: signs data URLs, sends files piece by piece, and sends plans. */

#ifndef _NGX_HTTP_XET_DOWNLOAD_H_INCLUDED_
#define _NGX_HTTP_XET_DOWNLOAD_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_store.h"


/* ngx_http_xet_url.c: signed URLs in responses. */

typedef struct {
    ngx_str_t        base;
    time_t           expires;
    ngx_uint_t       group;            /* maximum ranges in one URL */
    ngx_uint_t       whole;            /* ranges are not signed */
    xet_sign_key_t  *sign;             /* may be NULL */

    ngx_http_xet_store_t  *store;      /* signs the URLs, if not NULL */
    time_t                 made;       /* start of the quantum; store only */

    ngx_http_xet_key_t    *key;        /* key of sign, or NULL */
} ngx_http_xet_url_t;


/*
 * Initializes url for the responses to r.  Returns the same values as
 * ngx_http_xet_name_url().
 */
ngx_int_t ngx_http_xet_url_init(ngx_http_request_t *r,
    ngx_http_xet_url_t *url);

/*
 * A callback of the type xet_plan_url_pt, which writes a signed URL; ctx is
 * the ngx_http_xet_url_t.  If n is 0, the URL allows any range, and only
 * ranges[0].copy_id is used.
 */
xet_status_t ngx_http_xet_url_write(void *ctx, xet_buf_t *b,
    const xet_hash_t *xorb, const xet_plan_range_t *ranges, size_t n);

/*
 * Sets uri and args to the path and arguments of a signed URL, without its
 * base.  With this URL the request itself may read any range of a copy through
 * the data location, for the next 300 seconds.  The strings are in r's pool.
 * Returns NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_url_internal(ngx_http_request_t *r,
    const xet_hash_t *xorb, uint32_t copy_id, ngx_str_t *uri, ngx_str_t *args);


/*
 * Sets args to the arguments of a signed URL, without its path, for the copy
 * that the URI of the request names.  Returns NGX_OK; NGX_DECLINED if the URI
 * does not end with the name of a copy; or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_url_args(ngx_http_request_t *r, ngx_str_t *args);

/*
 * Parses the name of a copy at the end of the URI.  Returns NGX_OK, or
 * NGX_DECLINED if the URI does not end with such a name.
 */
ngx_int_t ngx_http_xet_url_copy(ngx_http_request_t *r, xet_hash_t *xorb,
    uint32_t *copy_id);


/*
 * ngx_http_xet_decode.c: reads chunks from the files of the store, decodes
 * them, and checks their hashes.  All functions block, and must be called in a
 * job.
 */

/* The codec and buffers of a thread, created by its first job. */

typedef struct {
    xet_codec_t        *codec;
    u_char              stored[XET_XORB_CHUNK_MAX];
    u_char              raw[XET_XORB_CHUNK_MAX];  /* space of the job */
} ngx_http_xet_decode_thread_t;


/* A chunk that is missing, or that does not match the row of its xorb. */

typedef struct {
    xet_hash_t                     xorb;
    uint32_t                       copy_id;
    uint32_t                       index;
    ngx_err_t                      err;
    const char                    *why;
} ngx_http_xet_decode_lost_t;


/* The state of a job, with the open copy of a xorb. */

typedef struct {
    ngx_http_xet_decode_thread_t  *thread;
    const xet_suite_t             *suite;
    ngx_http_xet_opened_t          copy;
    ngx_http_xet_decode_lost_t     lost;       /* set if XET_STORE_DAMAGED */
    ngx_log_t                     *log;
} ngx_http_xet_decode_t;


/*
 * Starts a job.  store must live as long as the job.  Returns XET_OK or
 * XET_NOMEM.
 */
xet_status_t ngx_http_xet_decode_begin_job(ngx_http_xet_decode_t *d,
    const xet_suite_t *suite, ngx_http_xet_store_t *store, ngx_log_t *log);

/*
 * Opens the copy that contains chunk, unless it is open.  Returns the same
 * statuses as ngx_http_xet_decode_chunk_job().
 */
xet_status_t ngx_http_xet_decode_open_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk);

/* True if the store was told that the bytes of the chunk will be read. */
#define ngx_http_xet_decode_announced(d, chunk)                               \
    ((chunk)->stored_start >= (d)->copy.reader.start                          \
     && (uint64_t) (chunk)->stored_start + (chunk)->stored_len                \
        <= (d)->copy.reader.end)

/*
 * Tells the store that the job will read the bytes [start, end) of the open
 * copy next.
 */
void ngx_http_xet_decode_ahead(ngx_http_xet_decode_t *d, uint64_t start,
    uint64_t end);

/*
 * Decodes chunk from the open copy into out, a buffer of at least
 * chunk->raw_len bytes, and checks its hash.  XET_XORB_HEADER_LEN bytes before
 * out belong to the caller, too; they may change during the call, but have
 * their old values after it.  Returns:
 *
 *     XET_OK
 *     XET_STORE_DAMAGED  the copy is missing, truncated, or does not contain
 *                        the chunk; d->lost describes the chunk.  Nothing is
 *                        logged, because another copy may have replaced this
 *                        one
 *     XET_STORE_FAILED   the copy can't be read
 *     XET_STORE_FILES    too many open files
 *     XET_STORE_OTHER    the store does not belong to this database
 *     XET_NOMEM          out of memory
 */
xet_status_t ngx_http_xet_decode_chunk_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, u_char *out);

/*
 * Logs the lost chunk at the level "alert", because an operator has to repair
 * it.
 */
void ngx_http_xet_decode_log(const ngx_http_xet_decode_lost_t *lost,
    ngx_log_t *log);

/* Ends a job that was started successfully, and closes the open copy. */
void ngx_http_xet_decode_end_job(ngx_http_xet_decode_t *d);


/*
 * ngx_http_xet_reader.c: reads byte ranges of a stored file in pieces.  It
 * reads the xorbs, decodes them, and checks the hash of every chunk.
 *
 * Life cycle, within one request:
 *
 *     create -> open -> range -> next, next, ... -> range -> next, ...
 *
 * open and next start work and return XET_AGAIN; the handler is called once,
 * later, from the event loop.  Before that, the reader uses the request's one
 * statement and one job (ctx->query, ctx->task).  The caller must not start a
 * statement or a job, and the rows of its own last statement are freed.
 * Between a handler and the next call the reader does nothing and holds no
 * descriptor, so a slow client slows the reading (backpressure).
 *
 * Pieces come in the order of the range, without gaps.  A piece consists of
 * whole chunks, except at the ends of the range.  A caller can get them in two
 * ways:
 *
 *     in the event loop: next passes a piece to the handler.  The piece
 *     belongs to the caller until the caller releases it.  The caller may hold
 *     one piece while the next one is made; at most two exist.
 *
 *     in a thread: the job that decodes calls a consume function for each
 *     piece.  The handler of next is called when the consume function pauses,
 *     or at the end of the range.  No buffers of the request are used, so a
 *     waiting request holds no bytes of the range.
 *
 * Memory of a reader: 64 KiB of terms and chunk lists, and up to two buffers
 * of "xet_read_buffer", which are allocated with the first piece.  The buffers
 * for the first 8 MiB have at most 256 KiB, unless the store is a bucket, so
 * that a client that stops reading soon holds little.  Memory does not grow
 * with the file or the range, and is freed with the request's pool.
 *
 * Damage in the store is found before any byte of the chunk is delivered; a
 * log message at the level "alert" names the chunk and the xorb.
 */

/* A part of the range; not empty. */

typedef struct {
    u_char      *pos;
    u_char      *last;
    uint64_t     offset;                       /* offset of pos in the file */
} ngx_http_xet_piece_t;


/*
 * Statuses that the functions return and the handlers get, in addition to
 * those of each function below.  All of them can be passed to
 * ngx_http_xet_error_status():
 *
 *     XET_NO_FILE         404  not stored, or not visible to the request
 *     XET_DATABASE_AWAY   503  PostgreSQL is unavailable or overloaded
 *     XET_DATABASE        500  PostgreSQL has rejected the statement
 *     XET_PLAN_DAMAGED    500  terms or chunk lists are inconsistent
 *     XET_STORE_DAMAGED   500  the bytes of a xorb are missing or wrong
 *     XET_STORE_FAILED    500  the bytes of a xorb can't be read
 *     XET_STORE_OTHER     503  the store does not belong to this database
 *     XET_STORE_FILES     503  temporarily: too many open files
 *     XET_OVERLOADED      503  the queue of the thread pool is full
 *     XET_NOMEM           500  out of memory
 *
 * No handler is called after the request has ended.
 */

/* Called when the file is open (XET_OK), or with the error. */
typedef void (*ngx_http_xet_reader_open_pt)(ngx_http_request_t *r,
    void *data, xet_status_t status);

/*
 * Called with XET_OK and the next piece; with XET_OK and NULL if the consume
 * function has paused; with XET_DONE if the consume function has taken the
 * whole range; or with the error.  Without a consume function there is no
 * XET_DONE.
 */
typedef void (*ngx_http_xet_reader_piece_pt)(ngx_http_request_t *r,
    void *data, ngx_http_xet_piece_t *piece, xet_status_t status);

/*
 * Called in a thread, as part of a job, with a piece whose memory is reused
 * after the return.  Must take the whole piece.  Returns XET_OK to continue
 * with the next piece, or XET_DONE to pause.  Any other status ends the range
 * and is passed to the handler; XET_AGAIN must not be returned.  A piece is a
 * chunk, trimmed to the range, so it has at most 128 KiB.
 */
typedef xet_status_t (*ngx_http_xet_reader_consume_pt)(void *data,
    const ngx_http_xet_piece_t *piece, ngx_log_t *log);


/*
 * Creates a reader that lives as long as the request's pool.  data is passed
 * to all handlers and consume functions, and must live as long as the reader.
 * Returns NULL if out of memory.
 */
ngx_http_xet_reader_t *ngx_http_xet_reader_create(ngx_http_request_t *r,
    void *data);

/*
 * Opens the file if the request may read it.  The permission is checked again
 * whenever more terms are read.  Returns XET_AGAIN if handler will be called.
 * Returns XET_OK for the empty file, whose hash is all zeros: the file is open
 * without a query, and handler will not be called.
 */
xet_status_t ngx_http_xet_reader_open(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd, const xet_hash_t *file,
    ngx_http_xet_reader_open_pt handler);

/*
 * Opens several files, which are then read as if they were one: the bytes of
 * the first file, then those of the second one, and so on.  files must live as
 * long as the reader reads them.  Together they have at most
 * XET_TERM_SEGMENT_MAX terms, and none is empty.  Returns XET_AGAIN if handler
 * will be called, which gets XET_NO_FILE if the request may not read one of the
 * files.
 */
xet_status_t ngx_http_xet_reader_open_all(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd, ngx_http_xet_array_t *files,
    ngx_http_xet_reader_open_pt handler);

/*
 * Makes the pieces, and the two buffers for them, at least size bytes long; to
 * be called before the first range.
 */
void ngx_http_xet_reader_pieces(ngx_http_xet_reader_t *rd, size_t size);

/* Returns the size of the open file in bytes. */
uint64_t ngx_http_xet_reader_size(ngx_http_xet_reader_t *rd);

/*
 * Returns the SHA-256 of the open file, 32 bytes in the usual order; NULL if
 * the server has not computed it.
 */
const u_char *ngx_http_xet_reader_sha256(ngx_http_xet_reader_t *rd);

/*
 * Sets the range that next reads: [start, end), start < end <= size.  May be
 * called any number of times while neither open nor next is running, even
 * before the end of the previous range.  Terms and chunk lists in memory are
 * reused, so a range near the previous one needs no statement.
 *
 * consume is NULL if the handler takes the pieces in the event loop.
 */
void ngx_http_xet_reader_range(ngx_http_xet_reader_t *rd, uint64_t start,
    uint64_t end, ngx_http_xet_reader_piece_pt handler,
    ngx_http_xet_reader_consume_pt consume);

/*
 * Starts to read the next piece of the range.  Returns XET_AGAIN if the
 * handler will be called; XET_DONE if the range is complete; XET_INTERNAL if
 * the caller holds two pieces or next is running.  After an error another
 * range may be set.
 */
xet_status_t ngx_http_xet_reader_next(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd);


/* Releases a piece, so that its buffer can be reused. */
void ngx_http_xet_reader_release(ngx_http_xet_reader_t *rd,
    ngx_http_xet_piece_t *piece);

/* Replaces the pointer passed to the handlers and consume functions. */
void ngx_http_xet_reader_data(ngx_http_xet_reader_t *rd, void *data);


/*
 * ngx_http_xet_content.c: serves a stored file or a part of it by GET and HEAD
 * (RFC 9110), with conditions and ranges, as a stream.
 */

typedef struct {
    ngx_http_xet_reader_t  *reader;            /* open, and idle */
    uint64_t                start;             /* offset in the file */
    uint64_t                size;              /* bytes to serve */
    ngx_str_t               etag;              /* strong, with quotes */
    ngx_str_t               type;              /* Content-Type */
} ngx_http_xet_content_t;


/*
 * Responds with bytes [start, start + size) of the file: 200, 206 with one
 * range or multipart/byteranges, 304, 412 or 416, depending on If-Match,
 * If-None-Match, If-Range and Range of the request.  Adds Content-Length,
 * Content-Range, Content-Type, Accept-Ranges and ETag.  The caller must
 * already have added the other headers of a 200 (Cache-Control,
 * Content-Disposition, ...), with ngx_http_xet_header().  The response to HEAD
 * is the response to GET without the body; HEAD ignores Range.
 *
 * The response is sent in pieces, with backpressure from the client.  The
 * reader then belongs to the response, which sets the ranges of the reader.  If
 * the store is damaged, the response is 500 as long as nothing was sent; after
 * that the connection is closed.
 *
 * A content handler must return the result; a callback must pass the result to
 * ngx_http_finalize_request().  NGX_DONE means that the response is being sent
 * and holds its own reference to the request.  The strings must live as long
 * as the request; *content is copied.
 */
ngx_int_t ngx_http_xet_content_send(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content);

/*
 * Checks only the conditions of the request, for content that the caller
 * generates and sends itself.  Only the entity tag of content is used.  Returns
 * NGX_DECLINED if the caller must send the content.  Otherwise a 304 or 412 was
 * sent, and the result is that of ngx_http_xet_content_send().  nginx's own
 * checks are not used: they need dates, which files do not have.  Also, nginx's
 * 412 is not JSON, and closes the connection without announcing this in a
 * header.
 */
ngx_int_t ngx_http_xet_content_conditions(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content);

/*
 * Returns the value of Cache-Control for content whose URL contains its hash.
 */
const char *ngx_http_xet_content_cache(ngx_http_request_t *r);

/*
 * Adds the headers Repr-Digest and Digest.  sha256 has 32 bytes and covers the
 * whole content.  Returns NGX_OK, or NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_content_digest(ngx_http_request_t *r,
    const u_char *sha256);


/*
 * ngx_http_xet_stream.c: a response in pieces, each made after the previous
 * one was sent.
 */

/*
 * A callback that makes the next piece, immediately or later, and then calls
 * ngx_http_xet_stream_send().
 */
typedef void (*ngx_http_xet_stream_next_pt)(ngx_http_request_t *r,
    void *data);


struct ngx_http_xet_stream_s {
    ngx_http_xet_stream_next_pt   next;
    void                         *data;
    ngx_pool_t                   *pool;        /* memory of the current piece */
    unsigned                      begun:1;
};


/*
 * Initializes s, which is in the request's pool.  The caller sets the headers
 * of the response before the first piece is sent.  Returns NGX_OK, or
 * NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_stream_init(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, ngx_http_xet_stream_next_pt next, void *data);

/*
 * Returns a pool for the memory of the next piece, destroyed after the piece
 * was sent.  A thread may use the pool.  Returns NULL if out of memory.
 */
ngx_pool_t *ngx_http_xet_stream_pool(ngx_http_xet_stream_t *s);

/*
 * Sends the piece in b.  After the client has received it, calls next or, if
 * last is set, finalizes the request.
 */
void ngx_http_xet_stream_send(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, xet_buf_t *b, ngx_uint_t last);


/*
 * Plans whose terms are read from PostgreSQL in batches.  If there are too
 * many terms for memory, they are spooled to a temporary file.
 */

/* Maximum number of terms of a plan in memory, and of a batch. */

#define NGX_HTTP_XET_PLAN_TERMS   8192
#define NGX_HTTP_XET_PLAN_BATCH                                               \
    (NGX_HTTP_XET_TERMS_ROWS * XET_TERM_SEGMENT_MAX)


/*
 * Requests the next batch of terms; returns a value like
 * ngx_http_xet_plan_send().
 */
typedef ngx_int_t (*ngx_http_xet_plan_ask_pt)(ngx_http_request_t *r);


typedef struct {
    xet_plan_spool_t             spool;
    xet_plan_t                  *plan;
    ngx_pool_t                  *pool;             /* memory of plan->terms */
    ngx_http_xet_temp_t         *files[XET_PLAN_SPOOL_FILES];
    ngx_http_xet_plan_ask_pt     ask;
    u_char                      *room;             /* buffer for sorting */
    size_t                       size;
    xet_status_t                 status;           /* result of the job */
    ngx_log_t                   *log;              /* log of the job */
} ngx_http_xet_plan_spool_t;


/*
 * Returns the spool of a plan whose terms are in a temporary file.  Use it only
 * if plan->spool is not NULL.
 */
#define ngx_http_xet_plan_spool_get(plan)                                     \
    ((ngx_http_xet_plan_spool_t *) (plan)->spool->ctx)


/*
 * Called after a batch of terms was added to the plan, except for the last
 * batch.  Makes space for the next batch and requests it, or sends an error if
 * the plan has more terms than "xet_plan_terms".  The memory of the plan is
 * from pool.  Returns the result of ngx_http_xet_plan_send().
 */
ngx_int_t ngx_http_xet_plan_next(ngx_http_request_t *r, xet_plan_t *plan,
    ngx_pool_t *pool, ngx_http_xet_plan_ask_pt ask);

/*
 * Called after the last batch.  Returns XET_OK, or XET_PLAN_TERMS if the plan
 * has more terms than "xet_plan_terms".
 */
xet_status_t ngx_http_xet_plan_bound(ngx_http_request_t *r, xet_plan_t *plan);


/* ngx_http_xet_plan.c: sends reconstruction plans. */

/*
 * Finishes the plan and sends it as JSON of the given kind.  A thread makes the
 * pieces of a large plan.  The plan and its memory must live until the request
 * ends.  If answer is not NULL, the JSON is added to the cache of plans, unless
 * it is large.
 *
 * Returns NGX_AGAIN if the request will be finalized later; any other code is
 * for ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_plan_send(ngx_http_request_t *r, xet_plan_t *plan,
    xet_plan_kind_t kind, ngx_http_xet_answer_t *answer);

/* Sends the JSON of a plan; returns the result of ngx_http_xet_send(). */
ngx_int_t ngx_http_xet_plan_respond(ngx_http_request_t *r, xet_buf_t *b);

/*
 * ngx_http_xet_plan_cache.c: sends the plan for a range of a file from the
 * cache of plans, and returns a value like ngx_http_xet_plan_send().  Returns
 * NGX_DECLINED if the plan is not in the cache; *answer is then the place of
 * the plan, or NULL if it can't be added.
 */
ngx_int_t ngx_http_xet_plan_cache_find(ngx_http_request_t *r,
    const xet_hash_t *file, const xet_range_t *want, xet_plan_kind_t kind,
    ngx_http_xet_answer_t **answer);


/*
 * ngx_http_xet_reconstruct.c: sends reconstructions: the ranges of xorbs that
 * make up a byte range of a file.
 */

/*
 * Parses the Range header of the request, which must have one range.
 * want->end is NGX_MAX_OFF_T_VALUE for an open range or without the header.
 * Returns XET_OK; XET_RANGE_SYNTAX, also for a suffix range; XET_RANGE_COUNT
 * for several ranges; XET_RANGE_PAST_END for a range that no file can have.
 */
xet_status_t ngx_http_xet_reconstruct_range(ngx_http_request_t *r,
    xet_range_t *want);

/*
 * Sends the reconstruction of bytes [want->start, want->end) of a file, in the
 * version of the route.  want->end may be past the end of the file.  For an
 * empty range the response is empty, and no file is looked up.  file and want
 * are copied.
 *
 * Returns NGX_AGAIN if the request will be finalized later; any other code is
 * for ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_reconstruct_send(ngx_http_request_t *r,
    const xet_hash_t *file, const xet_range_t *want);


#endif /* _NGX_HTTP_XET_DOWNLOAD_H_INCLUDED_ */
