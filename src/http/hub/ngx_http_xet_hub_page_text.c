
/*
 * The text on a page: README.md of a folder, or the file of the page.  At most
 * NGX_HTTP_XET_HUB_TEXT bytes are shown, as plain text.
 *
 *     open (PostgreSQL) -> range -> next (a thread reads) ... -> response
 *
 * If the text can't be read, the page contains an error message instead.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_hub_page.h"


static void ngx_http_xet_hub_page_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_hub_page_range(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);
static void ngx_http_xet_hub_page_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status);
static ngx_int_t ngx_http_xet_hub_page_read(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper, xet_status_t status);
static void ngx_http_xet_hub_page_show(ngx_http_xet_hub_paper_t *paper);


ngx_int_t
ngx_http_xet_hub_page_text(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    xet_status_t         status;
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    xet_hub_html(&paper->b, "<h2><bdi>%t</bdi></h2>\n",
                 ngx_http_xet_hub_str(&paper->view.readme));

    paper->most = ngx_min(paper->view.size, NGX_HTTP_XET_HUB_TEXT);

    if (paper->most == 0) {
        return ngx_http_xet_hub_page_read(r, paper, XET_DONE);
    }

    ctx->hash = paper->view.hash;
    ctx->repo = paper->view.store;

    paper->text = ngx_pnalloc(r->pool, paper->most);
    paper->reader = ngx_http_xet_reader_create(r, paper);

    if (paper->text == NULL || paper->reader == NULL) {
        return ngx_http_xet_error_status(r, XET_NOMEM);
    }

    status = ngx_http_xet_reader_open(r, paper->reader, &ctx->hash,
                                      ngx_http_xet_hub_page_opened);

    if (status == XET_OK) {
        status = ngx_http_xet_hub_page_range(r, paper);
    }

    return ngx_http_xet_hub_page_read(r, paper, status);
}


static void
ngx_http_xet_hub_page_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_int_t  rc;

    if (status == XET_OK) {
        status = ngx_http_xet_hub_page_range(r, data);
    }

    rc = ngx_http_xet_hub_page_read(r, data, status);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


static xet_status_t
ngx_http_xet_hub_page_range(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    if (ngx_http_xet_reader_size(paper->reader) < paper->most) {
        return XET_PLAN_DAMAGED;
    }

    ngx_http_xet_reader_range(paper->reader, 0, paper->most,
                              ngx_http_xet_hub_page_piece, NULL);

    return ngx_http_xet_reader_next(r, paper->reader);
}


static void
ngx_http_xet_hub_page_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status)
{
    ngx_http_xet_hub_paper_t *paper = data;

    size_t     len;
    ngx_int_t  rc;

    if (status == XET_OK) {
        len = ngx_min((size_t) (piece->last - piece->pos),
                      paper->most - paper->len);

        ngx_memcpy(paper->text + paper->len, piece->pos, len);
        paper->len += len;

        ngx_http_xet_reader_release(paper->reader, piece);

        status = ngx_http_xet_reader_next(r, paper->reader);
    }

    rc = ngx_http_xet_hub_page_read(r, paper, status);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


/* Handles the result of a read.  XET_AGAIN means that more bytes follow. */

static ngx_int_t
ngx_http_xet_hub_page_read(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper, xet_status_t status)
{
    if (status == XET_AGAIN) {
        return NGX_AGAIN;
    }

    if (status == XET_DONE) {
        ngx_http_xet_hub_page_show(paper);

    } else {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "xet: a page was sent without the text of \"%V\": %s",
                      &paper->view.readme, xet_status_text(status));

        xet_hub_html(&paper->b, "<p>This file is not available now.</p>\n");
    }

    return ngx_http_xet_hub_page_send(r, &paper->b);
}


static void
ngx_http_xet_hub_page_show(ngx_http_xet_hub_paper_t *paper)
{
    size_t  n;

    if (paper->len == 0) {
        xet_hub_html(&paper->b, "<p>Empty file.</p>\n");
        return;
    }

    if (memchr(paper->text, '\0', paper->len)) {
        xet_hub_html(&paper->b, "<p>Binary file, no preview.</p>\n");
        return;
    }

    if (paper->view.size > paper->most) {

        /* drop an incomplete UTF-8 character at the end */

        for (n = 0; n < 3 && (paper->text[paper->len - 1 - n] & 0xc0) == 0x80;
             n++)
        {
            /* void */
        }

        if (paper->text[paper->len - 1 - n] >= 0xc0) {
            paper->len -= n + 1;
        }
    }

    xet_hub_html(&paper->b, "<pre dir=\"auto\">");

    /* browsers ignore the first newline after <pre> */

    if (paper->text[0] == '\n' || paper->text[0] == '\r') {
        xet_hub_html(&paper->b, "\n");
    }

    xet_hub_html(&paper->b, "%t</pre>\n", paper->len, paper->text);

    if (paper->view.size > paper->most) {
        xet_hub_html(&paper->b, "<p>Showing the first %n of %n bytes.</p>\n",
                     (uint64_t) paper->len, (uint64_t) paper->view.size);
    }
}
