
/*
 * Byte ranges of a stored file: read from the xorbs, decoded, every chunk
 * held against its hash, in pieces.
 *
 * Life, all of it in one request:
 *
 *     create -> open -> range -> next, next, ... -> range -> next, ...
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
 *     in the event loop: next gives a piece to the handler.  It is the
 *     caller's until released.  One may be held while the next one is made,
 *     two at most exist.
 *
 *     in the thread: with a consume function, which the job that decodes
 *     calls for each piece; the handler of next is then called when that
 *     function asks for a pause, or at the end of the range.  No buffers of
 *     the request are used, so a request that rests holds no bytes of the
 *     range.
 *
 * Memory of a reader: 64 KiB of terms and chunk list, and up to two buffers of
 * "xet_read_buffer", none before the first piece.  It does not grow with the
 * file or the range.  All of it goes with the request's pool.
 *
 * Damage in the store is found before a byte of the chunk is handed on; a line
 * of level "alert" names chunk and xorb.
 */

#ifndef _NGX_HTTP_XET_READER_H_INCLUDED_
#define _NGX_HTTP_XET_READER_H_INCLUDED_


#include "ngx_http_xet.h"


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
 * Finds the file under the access rules of the request.  XET_AGAIN: the
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

/* Whether next is under way. */
ngx_uint_t ngx_http_xet_reader_busy(ngx_http_xet_reader_t *rd);

/* Gives a piece back.  Its buffer is used again. */
void ngx_http_xet_reader_release(ngx_http_xet_reader_t *rd,
    ngx_http_xet_piece_t *piece);

/* Sets what handlers and consume functions get from now on. */
void ngx_http_xet_reader_data(ngx_http_xet_reader_t *rd, void *data);


#endif /* _NGX_HTTP_XET_READER_H_INCLUDED_ */
