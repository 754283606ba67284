
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
 * bytes, and checks its hash.  XET_STORE_DAMAGED if the copy or a part of it is
 * missing, or does not contain the chunk: d->lost names chunk and copy, and
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
 * ngx_http_xet_reader.c: byte ranges of a stored file: read from the xorbs,
 * decoded, every chunk held against its hash, in pieces.
 *
 * Life, all of it in one request:
 *
 * create -> open -> range -> next, next, ... -> range -> next, ...
 *
 * Each of open and next starts work and returns XET_AGAIN; its handler is
 * called once, later, from the event loop.  In between the reader uses the
 * request's one statement and one job (ctx->query, ctx->task), so the caller
 * starts neither, and the rows of the caller's own last statement are gone.
 * Between a handler and the next call the reader does nothing and holds no
 * descriptor: that is the backpressure.
 *
 * Pieces come in the order of the range, without gaps, cut as the chunks are;
 * none crosses the end of the range.  There are two ways to take them:
 *
 * in the event loop: next gives a piece to the handler.  It is the caller's
 * until released.  One may be held while the next one is made, two at most
 * exist.
 *
 * in the thread: with a consume function, which the job that decodes calls for
 * each piece; the handler of next is then called when that function asks for a
 * pause, or at the end of the range.  No buffers of the request are used, so a
 * request that rests holds no bytes of the range.
 *
 * Memory of a reader: 64 KiB of terms and chunk list, and up to two buffers of
 * "xet_read_buffer", none before the first piece.  It does not grow with the
 * file or the range.  All of it goes with the request's pool.
 *
 * Damage in the store is found before a byte of the chunk is handed on; a line
 * of level "alert" names chunk and xorb.
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
 *     XET_NO_FILE         404  not stored, or not to be seen by the request
 *     XET_DATABASE_AWAY   503  PostgreSQL can't take the statement
 *     XET_DATABASE        500  PostgreSQL refused it
 *     XET_PLAN_DAMAGED    500  terms or chunk lists contradict each other
 *     XET_STORE_DAMAGED   500  the bytes of a xorb are missing or not right
 *     XET_STORE_FAILED    500  the bytes of a xorb can't be read
 *     XET_STORE_OTHER     503  the folder is not the store of the database
 *     XET_STORE_FILES     503  not now: too many files are open
 *     XET_OVERLOADED      503  the thread pool's queue is full
 *     XET_NOMEM           500
 *
 * No handler is called for a request that has died meanwhile.
 */

/* XET_OK: the file is open. */
typedef void (*ngx_http_xet_reader_open_pt)(ngx_http_request_t *r,
    void *data, xet_status_t status);

/*
 * XET_OK: the next piece, or NULL when the consume function asked for a pause.
 * XET_DONE: the consume function has taken the whole range; the handler never
 * gets it without a consume function.
 */
typedef void (*ngx_http_xet_reader_piece_pt)(ngx_http_request_t *r,
    void *data, ngx_http_xet_piece_t *piece, xet_status_t status);

/*
 * Called in a thread, as part of a job: takes the whole piece, whose memory is
 * used again after the return.  XET_OK goes on with the next piece, XET_DONE
 * pauses behind this one; any other status but XET_AGAIN, which must not be
 * returned, ends the range and is the handler's.  A piece is a chunk, trimmed
 * to the range, so 128 KiB at most.
 */
typedef xet_status_t (*ngx_http_xet_reader_consume_pt)(void *data,
    const ngx_http_xet_piece_t *piece, ngx_log_t *log);


/*
 * Makes a reader that lives as long as the request's pool.  data is what all
 * handlers and consume functions get; it must live as long.  NULL without
 * memory.
 */
ngx_http_xet_reader_t *ngx_http_xet_reader_create(ngx_http_request_t *r,
    void *data);

/*
 * Finds the file under the access rules of the request; a reader that is open
 * leaves the file that it has.  XET_AGAIN: the
 * handler will be called; XET_OK: it is open already, the handler will not be
 * called (the empty file, whose hash is all zeros, is known without asking).
 */
xet_status_t ngx_http_xet_reader_open(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd, const xet_hash_t *file,
    ngx_http_xet_reader_open_pt handler);

/* The size of the open file in bytes. */
uint64_t ngx_http_xet_reader_size(ngx_http_xet_reader_t *rd);

/*
 * The SHA-256 of the open file, 32 bytes in plain order; NULL where the server
 * has not computed it.
 */
const u_char *ngx_http_xet_reader_sha256(ngx_http_xet_reader_t *rd);

/*
 * Sets which bytes next reads: [start, end), start < end <= size.  To be
 * called while neither open nor next is under way, any number of times, also
 * before the last range was read to its end.  Terms and chunk lists that the
 * reader holds are used again: a range near the last one costs no statement.
 *
 * consume is NULL for pieces in the event loop.
 */
void ngx_http_xet_reader_range(ngx_http_xet_reader_t *rd, uint64_t start,
    uint64_t end, ngx_http_xet_reader_piece_pt handler,
    ngx_http_xet_reader_consume_pt consume);

/*
 * Starts to read the next piece of the range.  XET_AGAIN: the handler will be
 * called.  XET_DONE: the range is at its end.  XET_INTERNAL: the caller holds
 * two pieces, or next is under way.  After an error another range may be set.
 */
xet_status_t ngx_http_xet_reader_next(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd);


/* Gives a piece back.  Its buffer is used again. */
void ngx_http_xet_reader_release(ngx_http_xet_reader_t *rd,
    ngx_http_xet_piece_t *piece);

/* Sets what handlers and consume functions get from now on. */
void ngx_http_xet_reader_data(ngx_http_xet_reader_t *rd, void *data);


/*
 * ngx_http_xet_content.c: a part of a stored file, or all of it, as what GET
 * and HEAD of a URL give (RFC 9110): conditions, ranges, and the bytes
 * themselves, streamed.
 */

typedef struct {
    ngx_http_xet_reader_t  *reader;            /* open, nothing under way */
    uint64_t                start;             /* in the file */
    uint64_t                size;              /* start + size <= file's */
    ngx_str_t               etag;              /* strong, with its quotes */
    ngx_str_t               type;              /* Content-Type */
} ngx_http_xet_content_t;


/*
 * Answers with bytes [start, start + size) of the file: 200, 206 with one
 * range or multipart/byteranges, 304, 412 or 416, as If-Match, If-None-Match,
 * If-Range and Range of the request say.  Adds Content-Length, Content-Range,
 * Content-Type, Accept-Ranges and ETag; what else belongs to a 200
 * (Cache-Control, Content-Disposition, ...) the caller has added before, with
 * ngx_http_xet_header().  HEAD is the answer of GET without its body; a Range
 * has no meaning for it.
 *
 * The answer goes out piece by piece with backpressure to the client; from
 * now on the reader belongs to the answer, which sets ranges of its own.
 * Damage in the store is 500 as long as nothing was sent, and cuts the
 * connection after that.
 *
 * What is returned suits both a content handler, which returns it, and a
 * callback, which finalizes the request with it: NGX_DONE when the answer is
 * under way and has taken a reference of its own.  The strings live as long as
 * the request; *content is copied.
 */
ngx_int_t ngx_http_xet_content_send(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content);

/*
 * Only the conditions of the request, for content that the caller makes and
 * sends itself; only the entity tag is used.  NGX_DECLINED: it is to be sent;
 * otherwise the 304 or 412 was sent, and as above.  nginx's own conditions
 * would use dates where there are none, and its 412 is no JSON, and closes the
 * connection without announcing it.
 */
ngx_int_t ngx_http_xet_content_conditions(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content);

/* The Cache-Control for content whose URL contains its hash. */
const char *ngx_http_xet_content_cache(ngx_http_request_t *r);

/*
 * Adds the headers Repr-Digest and Digest; sha256 are 32 bytes, of the whole
 * content.  NGX_OK, or NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_content_digest(ngx_http_request_t *r,
    const u_char *sha256);


/*
 * ngx_http_xet_stream.c: an answer in pieces, each made when the one before it
 * is on its way.
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
 * headers of the answer before the first piece is sent.  NGX_OK, or NGX_ERROR
 * without memory.
 */
ngx_int_t ngx_http_xet_stream_init(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, ngx_http_xet_stream_next_pt next, void *data);

/*
 * A pool for the memory of the next piece, destroyed when the piece is sent; a
 * thread may use the pool.  NULL without memory.
 */
ngx_pool_t *ngx_http_xet_stream_pool(ngx_http_xet_stream_t *s);

/*
 * Sends a piece, which is in b, and calls next when the client has taken the
 * piece, or finalizes the request after the last one.
 */
void ngx_http_xet_stream_send(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, xet_buf_t *b, ngx_uint_t last);


/*
 * Plans whose terms come from PostgreSQL by windows, and go into a temporary
 * file where they are too many for memory.
 */

/* Terms of a plan in memory, and of a window, at most. */

#define NGX_HTTP_XET_PLAN_TERMS   8192
#define NGX_HTTP_XET_PLAN_WINDOW                                              \
    (NGX_HTTP_XET_TERMS_ROWS * XET_TERM_SEGMENT_MAX)


/* Asks for the next window; returns as ngx_http_xet_plan_send() does. */
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


/* The spool of a plan whose terms are in a file: plan->spool is not NULL. */
#define ngx_http_xet_plan_spool_get(plan)                                     \
    ((ngx_http_xet_plan_spool_t *) (plan)->spool->ctx)


/*
 * Called after a window of terms that was added to the plan and is not the
 * last: makes room for the next one, asks for it, or answers the error: the
 * plan may have more terms than "xet_plan_terms".  The plan's memory is from
 * pool.  Returns as ngx_http_xet_plan_send() does.
 */
ngx_int_t ngx_http_xet_plan_next(ngx_http_request_t *r, xet_plan_t *plan,
    ngx_pool_t *pool, ngx_http_xet_plan_ask_pt ask);

/*
 * Called after the last window: XET_OK, or XET_PLAN_TERMS when the plan has
 * more terms than "xet_plan_terms".
 */
xet_status_t ngx_http_xet_plan_bound(ngx_http_request_t *r, xet_plan_t *plan);


/*
 * ngx_http_xet_plan.c: the answer that a reconstruction plan is.
 */

/*
 * Finishes the plan and sends it as JSON of the given kind, a large plan in
 * pieces that a thread makes.  The plan and its memory live until the request
 * ends.
 *
 * NGX_AGAIN: the request will be finalized later; any other code is for
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_plan_send(ngx_http_request_t *r, xet_plan_t *plan,
    xet_plan_kind_t kind);


/*
 * ngx_http_xet_recon.c: reconstructions: which ranges of which xorbs make up a
 * byte range of a file.
 */

/*
 * The one range of the request's Range header; want->end is
 * NGX_MAX_OFF_T_VALUE for an open range and without the header.
 * XET_RANGE_SYNTAX, also for a suffix range; XET_RANGE_COUNT for several
 * ranges; XET_RANGE_PAST_END.
 */
xet_status_t ngx_http_xet_recon_range(ngx_http_request_t *r,
    xet_range_t *want);

/*
 * Sends the reconstruction of bytes [want->start, want->end) of a file, in the
 * version of the route.  want->end may be past the end of the file; for an
 * empty range the answer is empty, and no file is looked up.  file and want
 * are copied.
 *
 * NGX_AGAIN: the request will be finalized later; any other code is for
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_recon_send(ngx_http_request_t *r,
    const xet_hash_t *file, const xet_range_t *want);


#endif /* _NGX_HTTP_XET_DOWNLOAD_H_INCLUDED_ */
