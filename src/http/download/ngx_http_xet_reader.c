
/*
 * Reads byte ranges of a stored file in pieces.
 *
 *     open      reads the terms around byte 0; the rows contain the file size,
 *               and the first range often needs these terms
 *     range     moves the cursor (xet_cursor_t)
 *     next      reads terms or chunk lists from PostgreSQL as long as the
 *               cursor needs them -> job: decodes chunks into a free buffer,
 *               or passes them to the consume function -> handler
 *
 * States: closed -> opening -> idle <-> busy (a statement or a job of next is
 * running).  While a job runs, the cursor and the buffer being filled belong
 * to the thread.  Held pieces belong to the caller, in the event loop.  The
 * rest belongs to the event loop.
 *
 * If a copy of a xorb is damaged, it may have been replaced since its chunk
 * list was read.  So the chunk lists are read again, and then the new copy.
 * If the chunk lists still refer to the same copy, the chunk is lost.  The
 * damage is recorded in PostgreSQL before the handler is called.  So if the
 * same data is uploaded right after our response, the upload can't rely on
 * this copy.
 *
 * If the row of a xorb is missing, the file was deleted or has other terms
 * now.  The file is looked up again; if it still exists, reading continues
 * with the new terms.  The new terms refer to chunks with the same bytes, so
 * the bytes already sent remain valid.
 *
 * The memory of a request does not depend on the file: terms and chunk lists
 * are read in parts into the cursor, whose size is limited, and rows are freed
 * immediately.  A job and a wake-up cost less per byte if pieces are large, but
 * a client that stops reading holds two of them.  So pieces are small until the
 * client has received more than the kernel usually buffers for a client.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"


#define NGX_HTTP_XET_READER_LISTS    64
#define NGX_HTTP_XET_READER_FIRST    (256 * 1024)       /* small piece: bytes */
#define NGX_HTTP_XET_READER_SMALL    (8 * 1024 * 1024)  /* all small pieces */
#define NGX_HTTP_XET_READER_CONSUME  (4 * 1024 * 1024)  /* bytes in a job */
#define NGX_HTTP_XET_READER_HEALED   4         /* consecutive damaged copies */
#define NGX_HTTP_XET_READER_GONE     4     /* max. look-ups of the file again */


typedef struct {
    ngx_http_xet_piece_t             piece;
    u_char                          *start;        /* see decode_chunk_job */
    size_t                           size;
    unsigned                         held:1;
} ngx_http_xet_reader_buffer_t;


struct ngx_http_xet_reader_s {
    const xet_suite_t               *suite;
    ngx_http_xet_store_t            *store;
    size_t                           first;        /* size of a small buffer */
    size_t                           size;         /* size of a buffer */
    uint64_t                         passed;       /* bytes of all pieces */

    xet_hash_t                       file;
    ngx_http_xet_array_t            *files;        /* or NULL: one file */
    uint64_t                         file_size;
    u_char                           sha256[32];

    ngx_http_xet_slices_t            slices;
    xet_cursor_t                     cursor;

    ngx_http_xet_reader_open_pt      opened;
    ngx_http_xet_reader_piece_pt     handler;
    ngx_http_xet_reader_consume_pt   consume;
    void                            *data;         /* callback data */

    ngx_http_xet_reader_buffer_t     buffers[2];
    ngx_http_xet_reader_buffer_t    *buffer;       /* buffer being filled */
    xet_status_t                     status;       /* result of the job */

    ngx_http_xet_decode_lost_t       lost;         /* the lost chunk */
    ngx_http_xet_decode_lost_t       before;       /* previous lost chunk */
    ngx_uint_t                       losses;       /* consecutive losses */
    ngx_uint_t                       gone;         /* xorbs without a row */
    ngx_http_xet_damage_t            damage;       /* damage to record */

    unsigned                         proven:1;
    unsigned                         busy:1;
    unsigned                         hashes:1;     /* lists include hashes */
};


static void ngx_http_xet_reader_cleanup(void *data);
static xet_status_t ngx_http_xet_reader_ask(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd, ngx_http_xet_query_handler_pt handler);
static xet_status_t ngx_http_xet_reader_row(ngx_http_request_t *r,
    ngx_int_t rc, ngx_http_xet_file_open_row_t *row);
static void ngx_http_xet_reader_opened(ngx_http_request_t *r, ngx_int_t rc);
static ngx_http_xet_reader_buffer_t *ngx_http_xet_reader_buffer(
    ngx_http_request_t *r, ngx_http_xet_reader_t *rd);
static xet_status_t ngx_http_xet_reader_step(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd);
static void ngx_http_xet_reader_terms(ngx_http_request_t *r, ngx_int_t rc);
static xet_status_t ngx_http_xet_reader_lists(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd, xet_cursor_list_t *lists, size_t n);
static void ngx_http_xet_reader_listed(ngx_http_request_t *r, ngx_int_t rc);
static xet_status_t ngx_http_xet_reader_answers(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd);
static xet_status_t ngx_http_xet_reader_again(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd);
static void ngx_http_xet_reader_continue(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd, xet_status_t status);
static void ngx_http_xet_reader_rest(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd, ngx_http_xet_piece_t *piece,
    xet_status_t status);
static void ngx_http_xet_reader_job(void *data, ngx_log_t *log);
static xet_status_t ngx_http_xet_reader_fill(ngx_http_xet_reader_t *rd,
    ngx_http_xet_decode_t *d);
static xet_status_t ngx_http_xet_reader_decode(ngx_http_xet_reader_t *rd,
    ngx_http_xet_decode_t *d, const xet_cursor_chunk_t *chunk, size_t room,
    u_char *out);
static xet_status_t ngx_http_xet_reader_feed(ngx_http_xet_reader_t *rd,
    ngx_http_xet_decode_t *d, ngx_log_t *log);
static void ngx_http_xet_reader_done(ngx_http_request_t *r, void *data);
static ngx_uint_t ngx_http_xet_reader_lost(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd);
static void ngx_http_xet_reader_record(ngx_http_request_t *r,
    ngx_http_xet_reader_t *rd);
static void ngx_http_xet_reader_recorded(ngx_http_request_t *r, ngx_int_t rc);


ngx_http_xet_reader_t *
ngx_http_xet_reader_create(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_reader_t     *rd;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);
    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    rd = ngx_http_xet_state(r, sizeof(ngx_http_xet_reader_t),
                            ngx_http_xet_reader_cleanup);
    if (rd == NULL) {
        return NULL;
    }

    rd->suite = xmcf->suite;
    rd->store = xmcf->store;
    rd->size = xlcf->read_buffer;
    rd->first = rd->size;
    rd->data = data;

    /* each request to an object store costs a round trip */

    if (rd->store->s3 == NULL) {
        rd->first = ngx_min(rd->size, NGX_HTTP_XET_READER_FIRST);
    }

    return rd;
}


static void
ngx_http_xet_reader_cleanup(void *data)
{
    ngx_http_xet_reader_t *rd = data;

    /* the request may have ended before the damage was recorded */

    ngx_http_xet_query_xorb_damaged_tell(&rd->damage);
    ngx_http_xet_damage_destroy(&rd->damage);

    ngx_http_xet_columns_destroy(&rd->slices);
}


xet_status_t
ngx_http_xet_reader_open(ngx_http_request_t *r, ngx_http_xet_reader_t *rd,
    const xet_hash_t *file, ngx_http_xet_reader_open_pt handler)
{
    xet_cursor_init(&rd->cursor);

    rd->file = *file;
    rd->files = NULL;
    rd->opened = handler;
    rd->proven = 0;
    rd->file_size = 0;

    if (xet_hash_is_zero(file)) {
        return XET_OK;
    }

    ngx_http_xet_ctx_of(r)->reader = rd;

    return ngx_http_xet_reader_ask(r, rd, ngx_http_xet_reader_opened);
}


xet_status_t
ngx_http_xet_reader_open_all(ngx_http_request_t *r, ngx_http_xet_reader_t *rd,
    ngx_http_xet_array_t *files, ngx_http_xet_reader_open_pt handler)
{
    xet_cursor_init(&rd->cursor);

    rd->files = files;
    rd->opened = handler;
    rd->proven = 0;
    rd->file_size = 0;

    ngx_http_xet_ctx_of(r)->reader = rd;

    return ngx_http_xet_reader_ask(r, rd, ngx_http_xet_reader_opened);
}


/*
 * Looks up the file, and the terms around the position; or all files and all
 * their terms, whose row has the columns of file_open.
 */

static xet_status_t
ngx_http_xet_reader_ask(ngx_http_request_t *r, ngx_http_xet_reader_t *rd,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_int_t  rc;

    if (rd->files) {
        rc = ngx_http_xet_query(r, files_open, handler, .files = rd->files);

    } else {
        rc = ngx_http_xet_query(r, file_open, handler, .file = &rd->file,
                                .byte_at = rd->cursor.position);
    }

    return ngx_http_xet_query_status(rc, XET_NO_FILE);
}


/* Reads the row of xet.file_open(), which has ended with rc. */

static xet_status_t
ngx_http_xet_reader_row(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_xet_file_open_row_t *row)
{
    xet_status_t  status;

    status = ngx_http_xet_query_status(rc, XET_NO_FILE);

    if (status == XET_OK && ngx_http_xet_row(r, file_open, 0, row) != NGX_OK) {
        return XET_DATABASE;
    }

    return status;
}


static void
ngx_http_xet_reader_opened(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_status_t                   status;
    ngx_http_xet_reader_t         *rd;
    ngx_http_xet_file_open_row_t   row;

    rd = ngx_http_xet_ctx_of(r)->reader;

    status = ngx_http_xet_reader_row(r, rc, &row);

    if (status == XET_OK) {
        rd->file_size = row.size;

        if (row.sha256) {
            rd->proven = 1;
            ngx_memcpy(rd->sha256, row.sha256, sizeof(rd->sha256));
        }

        if (row.size) {
            xet_cursor_seek(&rd->cursor, 0, row.size);

            status = xet_cursor_terms(&rd->cursor, row.packed.data,
                                      row.packed.len, row.first_offset);
        }
    }

    ngx_http_xet_query_release(r);

    rd->opened(r, rd->data, status);
}


void
ngx_http_xet_reader_pieces(ngx_http_xet_reader_t *rd, size_t size)
{
    rd->size = ngx_max(rd->size, size);
    rd->first = ngx_max(rd->first, size);
}


uint64_t
ngx_http_xet_reader_size(ngx_http_xet_reader_t *rd)
{
    return rd->file_size;
}


const u_char *
ngx_http_xet_reader_sha256(ngx_http_xet_reader_t *rd)
{
    return rd->proven ? rd->sha256 : NULL;
}


void
ngx_http_xet_reader_range(ngx_http_xet_reader_t *rd, uint64_t start,
    uint64_t end, ngx_http_xet_reader_piece_pt handler,
    ngx_http_xet_reader_consume_pt consume)
{
    rd->handler = handler;
    rd->consume = consume;

    xet_cursor_seek(&rd->cursor, start, end);
}


xet_status_t
ngx_http_xet_reader_next(ngx_http_request_t *r, ngx_http_xet_reader_t *rd)
{
    xet_status_t  rc;

    if (rd->busy) {
        return XET_INTERNAL;
    }

    if (rd->cursor.position >= rd->cursor.end) {
        return XET_DONE;
    }

    if (rd->consume == NULL) {
        rd->buffer = ngx_http_xet_reader_buffer(r, rd);

        if (rd->buffer == NULL) {
            return (rd->buffers[0].held && rd->buffers[1].held)
                   ? XET_INTERNAL : XET_NOMEM;
        }
    }

    ngx_http_xet_ctx_of(r)->reader = rd;

    rc = ngx_http_xet_reader_step(r, rd);

    rd->busy = (rc == XET_AGAIN);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet reader: busy:%d", rd->busy);

    return rc;
}


/*
 * Returns a buffer that the caller does not hold, preferably an allocated one;
 * NULL if both buffers are held, or if out of memory.
 */

static ngx_http_xet_reader_buffer_t *
ngx_http_xet_reader_buffer(ngx_http_request_t *r, ngx_http_xet_reader_t *rd)
{
    size_t                         size;
    ngx_http_xet_reader_buffer_t  *b;

    size = (rd->passed < NGX_HTTP_XET_READER_SMALL) ? rd->first : rd->size;

    b = &rd->buffers[0];

    if (b->held || (b->start == NULL && rd->buffers[1].start
                    && !rd->buffers[1].held))
    {
        b = &rd->buffers[1];
    }

    if (b->held) {
        return NULL;
    }

    if (b->start && b->size < size) {
        (void) ngx_pfree(r->pool, b->start - XET_XORB_HEADER_LEN);
        b->start = NULL;
    }

    if (b->start == NULL) {
        b->start = ngx_palloc(r->pool, XET_XORB_HEADER_LEN + size);
        b->size = size;

        if (b->start) {
            b->start += XET_XORB_HEADER_LEN;
        }
    }

    return b->start ? b : NULL;
}


void
ngx_http_xet_reader_release(ngx_http_xet_reader_t *rd,
    ngx_http_xet_piece_t *piece)
{
    ngx_uint_t  i;

    for (i = 0; i < 2; i++) {
        if (piece == &rd->buffers[i].piece) {
            rd->buffers[i].held = 0;
        }
    }
}


void
ngx_http_xet_reader_data(ngx_http_xet_reader_t *rd, void *data)
{
    rd->data = data;
}


/*
 * Starts the job or the statement that the cursor needs.  Returns XET_AGAIN, or
 * an error.
 */

static xet_status_t
ngx_http_xet_reader_step(ngx_http_request_t *r, ngx_http_xet_reader_t *rd)
{
    size_t              n;
    ngx_int_t           rc;
    xet_status_t        status;
    xet_cursor_list_t   lists[XET_TERM_SEGMENT_MAX];
    xet_cursor_chunk_t  chunk;

    status = xet_cursor_chunk(&rd->cursor, &chunk);

    if (status == XET_OK) {
        rc = ngx_http_xet_task_post(r, ngx_http_xet_reader_job,
                                    ngx_http_xet_reader_done, rd);

        return (rc == NGX_OK) ? XET_AGAIN : XET_OVERLOADED;
    }

    if (status != XET_AGAIN) {
        return status;
    }

    /* a part of one file should arrive soon; several files are read wholly */

    n = rd->files ? XET_TERM_SEGMENT_MAX : NGX_HTTP_XET_READER_LISTS;

    status = xet_cursor_ask(&rd->cursor, lists, &n);

    if (status == XET_AGAIN) {
        return ngx_http_xet_reader_ask(r, rd, ngx_http_xet_reader_terms);
    }

    return (status == XET_OK) ? ngx_http_xet_reader_lists(r, rd, lists, n)
                              : status;
}


static void
ngx_http_xet_reader_terms(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_status_t                   status;
    ngx_http_xet_reader_t         *rd;
    ngx_http_xet_file_open_row_t   row;

    rd = ngx_http_xet_ctx_of(r)->reader;

    status = ngx_http_xet_reader_row(r, rc, &row);

    if (status == XET_OK) {
        status = xet_cursor_terms(&rd->cursor, row.packed.data,
                                  row.packed.len, row.first_offset);
    }

    ngx_http_xet_query_release(r);

    ngx_http_xet_reader_continue(r, rd, status);
}


static xet_status_t
ngx_http_xet_reader_lists(ngx_http_request_t *r, ngx_http_xet_reader_t *rd,
    xet_cursor_list_t *lists, size_t n)
{
    ngx_int_t   rc;
    ngx_uint_t  i;

    ngx_http_xet_columns_reset(&rd->slices);

    for (i = 0; i < n; i++) {
        ngx_http_xet_slices_add(&rd->slices, &lists[i].xorb, lists[i].start,
                                lists[i].end);
    }

    rd->hashes = lists[0].hashes;

    rc = ngx_http_xet_query_xorb_slices(r, &rd->slices, rd->hashes,
                                        NGX_HTTP_XET_READ,
                                        ngx_http_xet_reader_listed);

    return ngx_http_xet_query_status(rc, XET_NO_FILE);
}


static void
ngx_http_xet_reader_listed(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_status_t            status;
    ngx_http_xet_reader_t  *rd;

    rd = ngx_http_xet_ctx_of(r)->reader;

    status = (rc == NGX_OK) ? ngx_http_xet_reader_answers(r, rd)
                            : ngx_http_xet_query_status(rc, XET_DATABASE);

    ngx_http_xet_query_release(r);

    if (status == XET_DONE) {
        status = ngx_http_xet_reader_again(r, rd);
    }

    ngx_http_xet_reader_continue(r, rd, status);
}


/*
 * Passes the chunk lists to the cursor.  Returns XET_DONE if a xorb no longer
 * has a row.
 */

static xet_status_t
ngx_http_xet_reader_answers(ngx_http_request_t *r, ngx_http_xet_reader_t *rd)
{
    ngx_uint_t           i;
    xet_status_t         status;
    xet_plan_ends_t      ends;
    xet_shard_slice_t    slice;
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ngx_http_xet_query_rows(ctx->query) != rd->slices.xorbs.n) {
        return XET_DATABASE;
    }

    for (i = 0; i < rd->slices.xorbs.n; i++) {
        ngx_http_xet_query_xorb_slices_row(ctx->query, i, &slice);

        if (slice.chunk_count == 0) {
            return XET_DONE;
        }

        ends.n = slice.n;
        ends.raw_before = slice.raw_before;
        ends.stored_before = slice.stored_before;
        ends.copy_id = slice.copy_id;
        ends.raw_ends = slice.raw_ends;
        ends.stored_ends = slice.stored_ends;

        status = xet_cursor_answer(&rd->cursor, &ends, slice.hashes);

        if (status != XET_OK) {
            return status;
        }
    }

    return XET_OK;
}


/* Looks the file up again, because the row of a xorb is missing. */

static xet_status_t
ngx_http_xet_reader_again(ngx_http_request_t *r, ngx_http_xet_reader_t *rd)
{
    if (++rd->gone > NGX_HTTP_XET_READER_GONE) {
        return XET_PLAN_CHANGED;
    }

    rd->losses = 0;

    return ngx_http_xet_reader_ask(r, rd, ngx_http_xet_reader_terms);
}


/* Takes the next step after a statement or job, or calls the handler. */

static void
ngx_http_xet_reader_continue(ngx_http_request_t *r, ngx_http_xet_reader_t *rd,
    xet_status_t status)
{
    if (status == XET_OK) {
        status = ngx_http_xet_reader_step(r, rd);
    }

    if (status == XET_AGAIN) {
        return;
    }

    ngx_http_xet_reader_rest(r, rd, NULL, status);
}


static void
ngx_http_xet_reader_rest(ngx_http_request_t *r, ngx_http_xet_reader_t *rd,
    ngx_http_xet_piece_t *piece, xet_status_t status)
{
    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet reader: resting status:%d", (int) status);

    rd->busy = 0;
    rd->handler(r, rd->data, piece, status);
}


static void
ngx_http_xet_reader_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_reader_t *rd = data;

    ngx_http_xet_decode_t  d;

    rd->status = ngx_http_xet_decode_begin_job(&d, rd->suite, rd->store, log);

    if (rd->status != XET_OK) {
        return;
    }

    rd->status = rd->consume ? ngx_http_xet_reader_feed(rd, &d, log)
                             : ngx_http_xet_reader_fill(rd, &d);

    rd->lost = d.lost;

    ngx_http_xet_decode_end_job(&d);
}


/*
 * Decodes as many whole chunks as fit into the buffer.  The piece excludes the
 * bytes of these chunks that are outside of the range.
 */

static xet_status_t
ngx_http_xet_reader_fill(ngx_http_xet_reader_t *rd, ngx_http_xet_decode_t *d)
{
    size_t                         used;
    xet_status_t                   rc;
    xet_cursor_chunk_t             chunk;
    ngx_http_xet_reader_buffer_t  *b;

    b = rd->buffer;

    b->piece.offset = rd->cursor.position;
    b->piece.pos = b->start;
    b->piece.last = b->start;

    for (used = 0; /* void */ ; used += chunk.raw_len) {

        rc = xet_cursor_chunk(&rd->cursor, &chunk);

        if (rc != XET_OK || chunk.raw_len > b->size - used) {
            return XET_OK;
        }

        rc = ngx_http_xet_reader_decode(rd, d, &chunk, b->size - used,
                                        b->start + used);

        if (rc != XET_OK) {

            /* the chunks before the damaged one are sent first */

            return used ? XET_OK : rc;
        }

        if (used == 0) {
            b->piece.pos = b->start + chunk.skip;
        }

        b->piece.last = b->start + used + chunk.skip + chunk.take;

        xet_cursor_advance(&rd->cursor);
    }
}


/*
 * Decodes the chunk at the cursor.  If its bytes have not been announced to the
 * store yet, first announces the reads of this chunk and the following chunks,
 * for at most room decoded bytes.
 */

static xet_status_t
ngx_http_xet_reader_decode(ngx_http_xet_reader_t *rd, ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, size_t room, u_char *out)
{
    uint64_t      start, end;
    xet_status_t  rc;

    rc = ngx_http_xet_decode_open_job(d, chunk);

    if (rc != XET_OK) {
        return rc;
    }

    if (!ngx_http_xet_decode_announced(d, chunk)) {
        xet_cursor_run(&rd->cursor, room, &start, &end);
        ngx_http_xet_decode_ahead(d, start, end);
    }

    return ngx_http_xet_decode_chunk_job(d, chunk, out);
}


/*
 * Passes decoded chunks to the consume function.  Returns XET_AGAIN to
 * continue in another job, because other requests need the thread, too.
 */

static xet_status_t
ngx_http_xet_reader_feed(ngx_http_xet_reader_t *rd, ngx_http_xet_decode_t *d,
    ngx_log_t *log)
{
    u_char                *raw;
    size_t                 fed;
    xet_status_t           rc;
    xet_cursor_chunk_t     chunk;
    ngx_http_xet_piece_t   piece;

    raw = d->thread->raw + XET_XORB_HEADER_LEN;

    for (fed = 0; fed < NGX_HTTP_XET_READER_CONSUME; fed += chunk.raw_len) {

        rc = xet_cursor_chunk(&rd->cursor, &chunk);

        if (rc != XET_OK) {
            return rc;
        }

        rc = ngx_http_xet_reader_decode(rd, d, &chunk,
                                        NGX_HTTP_XET_READER_CONSUME - fed,
                                        raw);

        if (rc != XET_OK) {
            return rc;
        }

        piece.pos = raw + chunk.skip;
        piece.last = piece.pos + chunk.take;
        piece.offset = rd->cursor.position;

        xet_cursor_advance(&rd->cursor);

        rc = rd->consume(rd->data, &piece, log);

        if (rc == XET_DONE && rd->cursor.position < rd->cursor.end) {
            return XET_OK;
        }

        if (rc != XET_OK && rc != XET_DONE) {
            return rc;
        }
    }

    return (rd->cursor.position < rd->cursor.end) ? XET_AGAIN : XET_DONE;
}


static void
ngx_http_xet_reader_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_reader_t *rd = data;

    ngx_http_xet_piece_t  *piece;

    if (rd->status == XET_STORE_DAMAGED) {

        /* a standby may return an old copy: read again from the primary */

        if (ngx_http_xet_query_again(r)) {
            rd->losses = 0;
        }

        if (ngx_http_xet_reader_lost(r, rd)) {
            ngx_http_xet_reader_record(r, rd);

        } else {
            ngx_http_xet_reader_continue(r, rd, XET_OK);
        }

        return;
    }

    rd->losses = 0;
    rd->gone = 0;

    if (rd->status == XET_AGAIN) {
        ngx_http_xet_reader_continue(r, rd, XET_OK);
        return;
    }

    piece = NULL;

    if (rd->consume == NULL && rd->status == XET_OK) {
        rd->buffer->held = 1;
        piece = &rd->buffer->piece;

        rd->passed += piece->last - piece->pos;
    }

    ngx_http_xet_reader_rest(r, rd, piece, rd->status);
}


/*
 * Returns 0 if the chunk lists must be read again, because the copy may have
 * been repaired; returns 1 if the chunk is lost.
 */

static ngx_uint_t
ngx_http_xet_reader_lost(ngx_http_request_t *r, ngx_http_xet_reader_t *rd)
{
    ngx_uint_t  same;

    same = rd->losses && rd->lost.copy_id == rd->before.copy_id
           && xet_hash_equal(&rd->lost.xorb, &rd->before.xorb);

    rd->before = rd->lost;

    if (same || rd->losses == NGX_HTTP_XET_READER_HEALED) {
        return 1;
    }

    rd->losses++;

    xet_cursor_forget(&rd->cursor);

    return 0;
}


static void
ngx_http_xet_reader_record(ngx_http_request_t *r, ngx_http_xet_reader_t *rd)
{
    ngx_int_t  rc;

    rd->losses = 0;

    ngx_http_xet_damage_note(&rd->damage, &rd->lost.xorb, rd->lost.copy_id);

    rc = ngx_http_xet_query(r, copies_lost, ngx_http_xet_reader_recorded,
                            .xorbs = &rd->damage.xorbs,
                            .copy_ids = &rd->damage.copy_ids);
    if (rc != NGX_AGAIN) {
        ngx_http_xet_reader_recorded(r, rc);
    }
}


/*
 * Called after the damage was recorded.  The chunk is lost, even if PostgreSQL
 * could not record that, unless no row refers to the copy any more.
 */

static void
ngx_http_xet_reader_recorded(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_uint_t              n;
    xet_status_t            status;
    ngx_http_xet_reader_t  *rd;

    rd = ngx_http_xet_ctx_of(r)->reader;

    n = ngx_http_xet_query_xorb_lost(r, &rd->damage, &rc);

    ngx_http_xet_query_release(r);

    ngx_http_xet_damage_destroy(&rd->damage);

    if (rc == NGX_OK && n == 0) {
        status = ngx_http_xet_reader_again(r, rd);

    } else {
        ngx_http_xet_decode_log(&rd->lost, r->connection->log);
        status = XET_STORE_DAMAGED;
    }

    ngx_http_xet_reader_continue(r, rd, status);
}
