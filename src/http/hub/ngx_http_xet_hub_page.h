
/*
 * Web pages of a Hub.  Only source files of the Hub include this header.
 *
 * A page is written into one buffer and sent when it is complete.  It has at
 * most NGX_HTTP_XET_HUB_ROWS rows.  PostgreSQL truncates titles, a path has at
 * most 1,024 bytes, a text 64 KiB, and an escaped character six bytes.  So the
 * buffer usually takes about 200 KiB, and at most 4 MiB.
 */

#ifndef _NGX_HTTP_XET_HUB_PAGE_H_INCLUDED_
#define _NGX_HTTP_XET_HUB_PAGE_H_INCLUDED_


#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_ROWS  200
#define NGX_HTTP_XET_HUB_TEXT  65536          /* maximum text shown, in bytes */


/* Passes an ngx_str_t to xet_hub_html(), which takes length and data. */
#define ngx_http_xet_hub_str(s)  (s)->len, (s)->data


/*
 * What a page shows: a repo at a revision, and a folder or file in it.  If the
 * status in answer is not 200, the other members are not set.
 */

typedef struct {
    ngx_http_xet_hub_answer_t  answer;         /* status, or an error */
    ngx_str_t                  repo;           /* owner/name */
    ngx_str_t                  rev;
    ngx_str_t                  path;           /* empty: the root */
    ngx_str_t                  oid;
    ngx_str_t                  title;
    ngx_str_t                  who;
    ngx_str_t                  readme;         /* path of a README */
    ngx_str_t                  store;
    xet_hash_t                 hash;           /* hash of the file to show */
    uint64_t                   size;
    int64_t                    made_at;        /* seconds since 1970 */
    int64_t                    files;          /* -1: unknown */
    int64_t                    bytes;
    ngx_uint_t                 private;
    ngx_uint_t                 folder;
} ngx_http_xet_hub_view_t;


/* The state of a repo's page while it is generated. */

typedef struct {
    xet_buf_t                 b;
    ngx_http_xet_hub_view_t   view;
    ngx_str_t                 after;           /* NULL data: first page */
    ngx_str_t                 file;            /* path in sample commands */

    ngx_http_xet_reader_t    *reader;
    u_char                   *text;
    size_t                    len;
    size_t                    most;            /* bytes of text to show */
} ngx_http_xet_hub_paper_t;


/* ngx_http_xet_hub_page.c: common parts of pages: frame, headers, errors. */

/* Initializes b, and writes the beginning of the page, up to "<main>". */
void ngx_http_xet_hub_page_begin(ngx_http_request_t *r, xet_buf_t *b,
    const ngx_str_t *title);

/*
 * Completes the page and sends it with status 200, or sends 304.  Returns the
 * result of ngx_http_xet_send().
 */
ngx_int_t ngx_http_xet_hub_page_send(ngx_http_request_t *r, xet_buf_t *b);

/* Sends an error as a page; set as ctx->refuse by the routes of web pages. */
ngx_int_t ngx_http_xet_hub_page_refuse(ngx_http_request_t *r,
    const ngx_http_xet_error_t *error);

/*
 * Checks the result of a statement.  Returns NGX_OK, even if there are no rows.
 * After an error, finalizes the request and returns NGX_DONE.
 */
ngx_int_t ngx_http_xet_hub_page_result(ngx_http_request_t *r, ngx_int_t rc);

/* Returns the number of rows that the statement returned. */
ngx_uint_t ngx_http_xet_hub_page_rows(ngx_http_request_t *r, ngx_int_t rc);

/* Writes the path of a repo page, without a trailing "/". */
void ngx_http_xet_hub_page_repo_url(ngx_http_request_t *r, xet_buf_t *b,
    xet_hub_kind_e kind, const ngx_str_t *repo);

/*
 * Writes the path of a folder or file; verb is "tree" or "resolve".  The path
 * in a bucket has no revision.
 */
void ngx_http_xet_hub_page_url(ngx_http_request_t *r, xet_buf_t *b,
    xet_hub_kind_e kind, const ngx_http_xet_hub_view_t *view,
    const char *verb, const ngx_str_t *path);


/* ngx_http_xet_hub_page_tree.c: writes the entries of a folder as a table. */
void ngx_http_xet_hub_page_tree(ngx_http_request_t *r, ngx_uint_t rows,
    ngx_http_xet_hub_paper_t *paper);


/*
 * ngx_http_xet_hub_page_use.c: writes sample commands that download the repo
 * or the file.
 */
void ngx_http_xet_hub_page_use(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);


/*
 * ngx_http_xet_hub_page_text.c: reads and writes the text that the page shows,
 * and sends the page.  Returns NGX_AGAIN if the request will be finalized
 * later.
 */
ngx_int_t ngx_http_xet_hub_page_text(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);


#endif /* _NGX_HTTP_XET_HUB_PAGE_H_INCLUDED_ */
