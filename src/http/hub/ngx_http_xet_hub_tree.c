
/*
 * The files of a repo: a folder of it, or all that is below one, a page at a
 * time; and those at some paths.
 *
 *     handler -> arguments -> one statement -> a row each -> JSON
 *
 * Of a page the rows are in memory, and then the JSON, in pieces that are sent
 * as they are; the rows are freed before that.  Of a usual page that is 400 KB
 * and 300 KB.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_TREE_PAGE   1000
#define NGX_HTTP_XET_HUB_TREE_NODE   (16 * 1024)
#define NGX_HTTP_XET_HUB_PATHS_BODY  (8 * 1024 * 1024)


/* Paths that are asked for, by a form or by JSON. */

typedef struct {
    xet_hub_list_t            list;
    ngx_http_xet_hub_batch_t  batch;
    ngx_uint_t                form;
} ngx_http_xet_hub_paths_t;


static void ngx_http_xet_hub_tree_answered(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_tree_send(ngx_http_request_t *r,
    ngx_uint_t expand);
static void ngx_http_xet_hub_paths_cleanup(void *data);
static xet_status_t ngx_http_xet_hub_paths_parse(void *data, u_char *text,
    size_t len);
static xet_status_t ngx_http_xet_hub_paths_add(void *ctx,
    const xet_hub_operation_t *op);
static void ngx_http_xet_hub_paths_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_paths_answered(ngx_http_request_t *r,
    ngx_int_t rc);


ngx_int_t
ngx_http_xet_hub_tree_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_int_t                 rc;
    ngx_http_xet_hub_page_t  *page;

    rc = ngx_http_xet_hub_page_args(r, hub, NGX_HTTP_XET_HUB_TREE_PAGE, &page);

    if (rc != NGX_OK) {
        return rc;
    }

    hub->state = page;

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query_hub_tree(r, &hub->asked, page,
                                           ngx_http_xet_hub_tree_answered));
}


/* A commit that lacks a folder is named, so that clients can keep that. */

static void
ngx_http_xet_hub_tree_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_uint_t                  n;
    ngx_str_t                   after;
    xet_hub_node_t              node;
    ngx_http_xet_hub_page_t    *page;
    ngx_http_xet_hub_answer_t   answer;

    if (rc == NGX_OK) {
        ngx_http_xet_query_hub_get(r, &answer);

        if (answer.status == NGX_HTTP_NOT_FOUND
            && ngx_http_xet_hub_is(&answer.code, "EntryNotFound")
            && ngx_http_xet_hub_header(r, "X-Repo-Commit", "%V", &answer.more)
               != NGX_OK)
        {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }
    }

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    page = ngx_http_xet_hub_get(r)->state;
    n = ngx_http_xet_query_hub_nodes(r);

    if (n && n == page->most) {

        if (ngx_http_xet_query_hub_node(r, n - 1, &node) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        after.data = (u_char *) node.path.data;
        after.len = node.path.len;

        if (ngx_http_xet_hub_next(r, &after) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }
    }

    ngx_http_finalize_request(r, ngx_http_xet_hub_tree_send(r, page->expand));
}


static ngx_int_t
ngx_http_xet_hub_tree_send(ngx_http_request_t *r, ngx_uint_t expand)
{
    xet_buf_t       b;
    ngx_uint_t      i, n;
    xet_hub_node_t  node;
    xet_hub_tree_t  tree;

    n = ngx_http_xet_query_hub_nodes(r);

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, NGX_HTTP_XET_HUB_TREE_NODE);
    xet_hub_tree_begin(&tree, &b,
                       ngx_http_xet_hub_get(r)->asked.kind == XET_HUB_BUCKET,
                       expand);

    for (i = 0; i < n; i++) {

        if (ngx_http_xet_query_hub_node(r, i, &node) != NGX_OK) {
            return ngx_http_xet_hub_status(r, XET_DATABASE);
        }

        xet_hub_tree_add(&tree, &node);
    }

    xet_hub_tree_end(&tree);

    ngx_http_xet_query_release(r);

    return ngx_http_xet_hub_send(r, NGX_HTTP_OK, &b);
}


ngx_int_t
ngx_http_xet_hub_paths_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_str_t                 *type;
    ngx_http_xet_hub_paths_t  *p;

    p = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_paths_t),
                           ngx_http_xet_hub_paths_cleanup);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    hub->state = p;

    ngx_http_xet_hub_batch_init(&p->batch);

    /* Python sends a form, JavaScript sends JSON */

    type = r->headers_in.content_type ? &r->headers_in.content_type->value
                                      : NULL;

    p->form = (type
               && type->len >= sizeof("application/x-www-form-urlencoded") - 1
               && ngx_strncasecmp(type->data,
                                  (u_char *)
                                  "application/x-www-form-urlencoded",
                                  sizeof("application/x-www-form-urlencoded")
                                  - 1)
                  == 0);

    return ngx_http_xet_hub_read(r, NGX_HTTP_XET_HUB_PATHS_BODY,
                                 ngx_http_xet_hub_paths_parse,
                                 ngx_http_xet_hub_paths_read, p);
}


static void
ngx_http_xet_hub_paths_cleanup(void *data)
{
    ngx_http_xet_hub_paths_t *p = data;

    ngx_http_xet_hub_batch_destroy(&p->batch);
}


static xet_status_t
ngx_http_xet_hub_paths_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_paths_t *p = data;

    return p->form ? xet_hub_form_parse(&p->list, text, len,
                                        ngx_http_xet_hub_paths_add, p)
                   : xet_hub_paths_parse(&p->list, text, len,
                                         ngx_http_xet_hub_paths_add, p);
}


/* What no file can be called is not there. */

static xet_status_t
ngx_http_xet_hub_paths_add(void *ctx, const xet_hub_operation_t *op)
{
    ngx_http_xet_hub_paths_t *p = ctx;

    size_t  len;

    len = op->path.len;

    if (len && op->path.data[len - 1] == '/') {
        len--;
    }

    if (xet_hub_path_ok(op->path.data, len)) {
        ngx_http_xet_array_bytes(&p->batch.paths, op->path.data, len);
    }

    return p->batch.paths.failed ? XET_NOMEM : XET_OK;
}


static void
ngx_http_xet_hub_paths_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_paths_t *p = data;

    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query_hub_paths(r, &hub->asked, &hub->rev, &p->batch,
                                     p->list.expand,
                                     ngx_http_xet_hub_paths_answered));
}


static void
ngx_http_xet_hub_paths_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_paths_t   *p;
    ngx_http_xet_hub_answer_t   answer;

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    p = ngx_http_xet_hub_get(r)->state;

    ngx_http_finalize_request(r, ngx_http_xet_hub_tree_send(r,
                                                           p->list.expand));
}
