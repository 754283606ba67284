
/*
 * Reads the beginning of a file of a repo into memory, and parses it.
 *
 *     open  (query)   opens the file
 *     read  (jobs)    collects the pieces, and parses the text in the same
 *                     thread
 *     done            is called in the event loop
 *
 * The request must have the right to read the file: ctx->repo is the internal
 * repo that the file belongs to.
 *
 * Memory: up to "most" bytes, until the request ends.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_hub.h"


typedef struct {
    ngx_http_xet_reader_t        *reader;
    xet_hash_t                    file;
    size_t                        most;
    u_char                       *text;        /* malloc()ed */
    size_t                        len;
    size_t                        size;
    ngx_http_xet_hub_text_pt      parse;
    void                        (*done)(ngx_http_request_t *r, void *data,
                                        xet_status_t status);
    void                         *data;
} ngx_http_xet_hub_text_t;


static void ngx_http_xet_hub_text_cleanup(void *data);
static void ngx_http_xet_hub_text_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_hub_text_consume(void *data,
    const ngx_http_xet_piece_t *piece, ngx_log_t *log);
static void ngx_http_xet_hub_text_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status);


void
ngx_http_xet_hub_text_read(ngx_http_request_t *r, const xet_hash_t *file,
    size_t most, ngx_http_xet_hub_text_pt parse,
    void (*done)(ngx_http_request_t *r, void *data, xet_status_t status),
    void *data)
{
    xet_status_t              status;
    ngx_http_xet_hub_text_t  *t;

    t = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_text_t),
                           ngx_http_xet_hub_text_cleanup);
    if (t == NULL) {
        done(r, data, XET_NOMEM);
        return;
    }

    t->file = *file;
    t->most = most;
    t->parse = parse;
    t->done = done;
    t->data = data;

    t->reader = ngx_http_xet_reader_create(r, t);
    if (t->reader == NULL) {
        done(r, data, XET_NOMEM);
        return;
    }

    status = ngx_http_xet_reader_open(r, t->reader, &t->file,
                                      ngx_http_xet_hub_text_opened);

    if (status != XET_AGAIN) {
        ngx_http_xet_hub_text_opened(r, t, status);
    }
}


static void
ngx_http_xet_hub_text_cleanup(void *data)
{
    ngx_http_xet_hub_text_t *t = data;

    free(t->text);
}


static void
ngx_http_xet_hub_text_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_hub_text_t *t = data;

    if (status == XET_OK) {
        t->size = ngx_min(ngx_http_xet_reader_size(t->reader), t->most);

        if (t->size == 0) {
            t->done(r, t->data, XET_OK);
            return;
        }

        t->text = malloc(t->size);

        if (t->text == NULL) {
            status = XET_NOMEM;

        } else {
            ngx_http_xet_reader_range(t->reader, 0, t->size,
                                      ngx_http_xet_hub_text_piece,
                                      ngx_http_xet_hub_text_consume);

            status = ngx_http_xet_reader_next(r, t->reader);

            if (status == XET_AGAIN) {
                return;
            }
        }
    }

    t->done(r, t->data, status);
}


/* Collects a piece, and parses the text with the last piece. */

static xet_status_t
ngx_http_xet_hub_text_consume(void *data, const ngx_http_xet_piece_t *piece,
    ngx_log_t *log)
{
    ngx_http_xet_hub_text_t *t = data;

    size_t  len;

    len = piece->last - piece->pos;

    if (len > t->size - t->len) {
        return XET_INTERNAL;
    }

    ngx_memcpy(t->text + t->len, piece->pos, len);
    t->len += len;

    return (t->len == t->size) ? t->parse(t->data, t->text, t->len) : XET_OK;
}


static void
ngx_http_xet_hub_text_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status)
{
    ngx_http_xet_hub_text_t *t = data;

    if (status == XET_OK) {
        status = ngx_http_xet_reader_next(r, t->reader);

        if (status == XET_AGAIN) {
            return;
        }
    }

    t->done(r, t->data, (status == XET_DONE) ? XET_OK : status);
}
