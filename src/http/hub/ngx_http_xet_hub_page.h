
/*
 * Internal to the Hub: its web pages.
 *
 * A page is written into one buffer and sent when it is complete.  It has at
 * most NGX_HTTP_XET_HUB_ROWS rows.  PostgreSQL truncates titles; a path has at
 * most 1,024 bytes, a text 64 KiB, and an escaped character six bytes.  So a
 * page takes 200 KiB with usual names, and at most 4 MiB, until it is sent.
 */

#ifndef _NGX_HTTP_XET_HUB_PAGE_H_INCLUDED_
#define _NGX_HTTP_XET_HUB_PAGE_H_INCLUDED_


#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_ROWS  200
#define NGX_HTTP_XET_HUB_TEXT  65536           /* bytes of a file */


/* The arguments of xet_hub_html() for an ngx_str_t. */
#define ngx_http_xet_hub_str(s)  (s)->len, (s)->data


/* A repo at a revision, and a folder or file of it. */

typedef struct {
    ngx_http_xet_hub_answer_t  answer;         /* status 200 for the rest */
    ngx_str_t                  repo;           /* owner/name */
    ngx_str_t                  rev;
    ngx_str_t                  path;           /* empty: the root */
    ngx_str_t                  oid;
    ngx_str_t                  title;
    ngx_str_t                  who;
    ngx_str_t                  readme;         /* path of the text, or NULL */
    ngx_str_t                  store;
    xet_hash_t                 hash;           /* of the text */
    uint64_t                   size;
    int64_t                    made_at;        /* seconds since 1970 */
    int64_t                    files;          /* -1: not known */
    int64_t                    bytes;
    ngx_uint_t                 private;
    ngx_uint_t                 folder;
} ngx_http_xet_hub_view_t;


/* The page of a repo, while it is made. */

typedef struct {
    xet_buf_t                 b;
    ngx_http_xet_hub_view_t   view;
    ngx_str_t                 after;           /* data NULL: the first page */
    ngx_str_t                 file;            /* one that can be fetched */

    ngx_http_xet_reader_t    *reader;
    u_char                   *text;
    size_t                    len;
    size_t                    most;            /* bytes of it that are shown */
} ngx_http_xet_hub_paper_t;


/*
 * ngx_http_xet_hub_page.c: what all pages have: the frame, headers, errors.
 */

/* Begins b, which is not initialized yet, with all up to "<main>". */
void ngx_http_xet_hub_page_begin(ngx_http_request_t *r, xet_buf_t *b,
    const ngx_str_t *title);

/* Ends and sends it: 200, or 304.  As ngx_http_xet_send(). */
ngx_int_t ngx_http_xet_hub_page_send(ngx_http_request_t *r, xet_buf_t *b);

/* The same as an error: ctx->refuse of a request that people may make. */
ngx_int_t ngx_http_xet_hub_page_refuse(ngx_http_request_t *r,
    const ngx_http_xet_error_t *error);

/*
 * What a statement of a page has come to: NGX_OK, or NGX_DONE where the request
 * was answered with the error and finalized.  No rows are no error.
 */
ngx_int_t ngx_http_xet_hub_page_result(ngx_http_request_t *r, ngx_int_t rc);

/* How many rows it has brought. */
ngx_uint_t ngx_http_xet_hub_page_rows(ngx_http_request_t *r, ngx_int_t rc);

/* Writes the path of the page of a repo, without a "/" at its end. */
void ngx_http_xet_hub_page_repo_url(ngx_http_request_t *r, xet_buf_t *b,
    xet_hub_kind_e kind, const ngx_str_t *repo);

/*
 * Writes that of a folder or a file of it; verb is "tree" or "resolve".  A
 * bucket has no revision.
 */
void ngx_http_xet_hub_page_url(ngx_http_request_t *r, xet_buf_t *b,
    xet_hub_kind_e kind, const ngx_http_xet_hub_view_t *view,
    const char *verb, const ngx_str_t *path);


/*
 * ngx_http_xet_hub_page_tree.c: the rows of the statement, as a table.
 */
void ngx_http_xet_hub_page_tree(ngx_http_request_t *r, ngx_uint_t rows,
    ngx_http_xet_hub_paper_t *paper);


/*
 * ngx_http_xet_hub_page_use.c: lines to copy that fetch the repo or the file.
 */
void ngx_http_xet_hub_page_use(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);


/*
 * ngx_http_xet_hub_page_text.c: reads the text that belongs to the page, writes
 * it, and sends the page.  NGX_AGAIN: the request will be finalized later.
 */
ngx_int_t ngx_http_xet_hub_page_text(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);


#endif /* _NGX_HTTP_XET_HUB_PAGE_H_INCLUDED_ */
