
/*
 * Lists files of a repo.  The route tree lists a folder, or everything below
 * the folder, page by page.  The route paths lists the entries at given paths.
 *
 *     handler -> arguments -> one statement for each part -> rows -> JSON
 *
 * A response is sent in parts of 500 entries, or of 64 if each entry has the
 * title of a commit.  A request holds the rows of one part until the JSON of
 * the part is written, and then sends the JSON.  With usual names, the rows of
 * a part have about 200 KB and the JSON 180 KB; with the longest names that
 * need escapes, at most 1.4 MB.  A page of 1,000 entries takes two statements:
 * starting a statement costs PostgreSQL as much as 150 rows.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_TREE_PAGE   1000
#define NGX_HTTP_XET_HUB_TREE_PART   500
#define NGX_HTTP_XET_HUB_TREE_TITLES  64
#define NGX_HTTP_XET_HUB_TREE_NODE   (16 * 1024)
#define NGX_HTTP_XET_HUB_PATHS_BODY  (8 * 1024 * 1024)


/*
 * State of the routes tree and paths: the parts, and the commit that all parts
 * refer to.
 */

typedef struct {
    ngx_http_xet_hub_stream_t  stream;
    xet_hub_tree_t             tree;
    ngx_str_t                  rev;
    ngx_uint_t                 expand;
    u_char                     oid[XET_HUB_OID_LEN];
} ngx_http_xet_hub_listed_tree_t;


typedef struct {
    ngx_http_xet_hub_listed_tree_t   listed;
    ngx_http_xet_hub_page_t         *page;
    u_char                           path[XET_HUB_PATH_MAX];
    u_char                           after[XET_HUB_PATH_MAX];
} ngx_http_xet_hub_folder_t;


/* The requested paths, from a form or from JSON. */

typedef struct {
    ngx_http_xet_hub_listed_tree_t  listed;
    xet_hub_list_t                  list;
    ngx_http_xet_hub_batch_t        batch;
    ngx_uint_t                      form;
    ngx_uint_t                      unsafe;
    xet_hub_refusal_t               refusal;   /* of the first unsafe path */
} ngx_http_xet_hub_paths_t;


static ngx_int_t ngx_http_xet_hub_tree_ask(ngx_http_request_t *r);
static void ngx_http_xet_hub_tree_answered(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_tree_first(ngx_http_request_t *r,
    ngx_http_xet_hub_folder_t *f, ngx_http_xet_hub_answer_t *answer,
    ngx_uint_t n);
static void ngx_http_xet_hub_tree_keep(ngx_str_t *text, u_char *room,
    size_t size, const ngx_str_t *from);
static ngx_uint_t ngx_http_xet_hub_tree_part(ngx_uint_t expand);
static void ngx_http_xet_hub_tree_send(ngx_http_request_t *r,
    ngx_http_xet_hub_listed_tree_t *listed, ngx_uint_t last);
static void ngx_http_xet_hub_paths_cleanup(void *data);
static xet_status_t ngx_http_xet_hub_paths_parse(void *data, u_char *text,
    size_t len);
static xet_status_t ngx_http_xet_hub_paths_add(void *ctx,
    const xet_hub_operation_t *op);
static void ngx_http_xet_hub_paths_read(ngx_http_request_t *r, void *data);
static ngx_int_t ngx_http_xet_hub_paths_ask(ngx_http_request_t *r);
static void ngx_http_xet_hub_paths_answered(ngx_http_request_t *r,
    ngx_int_t rc);


ngx_int_t
ngx_http_xet_hub_tree_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_int_t                   rc;
    ngx_http_xet_hub_page_t    *page;
    ngx_http_xet_hub_folder_t  *f;

    rc = ngx_http_xet_hub_page_args(r, hub, NGX_HTTP_XET_HUB_TREE_PAGE, &page);

    if (rc != NGX_OK) {
        return rc;
    }

    f = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_folder_t));

    if (f == NULL
        || ngx_http_xet_hub_stream_init(r, &f->listed.stream,
                                        ngx_http_xet_hub_tree_ask)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* objects of a bucket have no commit to show */

    page->expand = (page->expand && hub->asked.kind != XET_HUB_BUCKET);
    page->part = ngx_http_xet_hub_tree_part(page->expand);

    f->page = page;
    f->listed.expand = page->expand;

    hub->state = f;

    return ngx_http_xet_query_wait(r, ngx_http_xet_hub_tree_ask(r));
}


/*
 * The end of the page is sent with the first part, so later parts do not ask
 * for it: with "most" of a part, PostgreSQL does not look for it.
 */

static ngx_int_t
ngx_http_xet_hub_tree_ask(ngx_http_request_t *r)
{
    ngx_uint_t                  most;
    ngx_http_xet_hub_t         *hub;
    ngx_http_xet_hub_folder_t  *f;

    hub = ngx_http_xet_hub_get(r);
    f = hub->state;
    most = f->page->most;

    if (f->listed.stream.stream.begun) {
        most = ngx_min(most, f->page->part);
    }

    return ngx_http_xet_query(r, hub_tree_rows, ngx_http_xet_hub_tree_answered,
                              .asked = &hub->asked, .rev = f->page->rev,
                              .path = f->page->path,
                              .deep = f->page->recursive,
                              .expand = f->page->expand,
                              .after = f->page->after, .most = most,
                              .part = f->page->part);
}


static void
ngx_http_xet_hub_tree_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_str_t                   after;
    ngx_uint_t                  n, last;
    xet_hub_node_t              node;
    ngx_http_xet_hub_page_t    *page;
    ngx_http_xet_hub_answer_t   answer;
    ngx_http_xet_hub_folder_t  *f;

    f = ngx_http_xet_hub_get(r)->state;
    page = f->page;

    /* send the id of the commit, so that clients can cache the 404 */

    if (rc == NGX_OK && !f->listed.stream.stream.begun) {
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

    if (ngx_http_xet_hub_stream_row(r, &f->listed.stream, rc, &answer)
        != NGX_OK)
    {
        return;
    }

    n = ngx_http_xet_query_hub_nodes(r);
    last = (n < page->part || n >= page->most);

    if (!f->listed.stream.stream.begun
        && ngx_http_xet_hub_tree_first(r, f, &answer, n) != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (!last) {

        if (ngx_http_xet_query_hub_node(r, n - 1, &node) != NGX_OK) {
            ngx_http_xet_hub_stream_fail(r, &f->listed.stream, XET_DATABASE);
            return;
        }

        after.data = (u_char *) node.path.data;
        after.len = node.path.len;

        ngx_http_xet_hub_tree_keep(&page->after, f->after, XET_HUB_PATH_MAX,
                                   &after);
        page->most -= n;
    }

    ngx_http_xet_hub_tree_send(r, &f->listed, last);
}


/* Adds the link to the next page, and copies the commit for later parts. */

static ngx_int_t
ngx_http_xet_hub_tree_first(ngx_http_request_t *r,
    ngx_http_xet_hub_folder_t *f, ngx_http_xet_hub_answer_t *answer,
    ngx_uint_t n)
{
    ngx_str_t       after;
    xet_hub_node_t  node;

    after = answer->more;

    if (n && n == f->page->most) {

        if (ngx_http_xet_query_hub_node(r, n - 1, &node) != NGX_OK) {
            return NGX_ERROR;
        }

        after.data = (u_char *) node.path.data;
        after.len = node.path.len;
    }

    if (after.data && ngx_http_xet_hub_next(r, &after) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_xet_hub_tree_keep(&f->page->rev, f->listed.oid, XET_HUB_OID_LEN,
                               &answer->code);
    ngx_http_xet_hub_tree_keep(&f->page->path, f->path, XET_HUB_PATH_MAX,
                               &answer->message);

    return NGX_OK;
}


/*
 * Copies a string, because its row is freed before the string is used.
 */

static void
ngx_http_xet_hub_tree_keep(ngx_str_t *text, u_char *room, size_t size,
    const ngx_str_t *from)
{
    text->data = room;
    text->len = ngx_min(from->len, size);

    ngx_memcpy(room, from->data, text->len);
}


static ngx_uint_t
ngx_http_xet_hub_tree_part(ngx_uint_t expand)
{
    return expand ? NGX_HTTP_XET_HUB_TREE_TITLES : NGX_HTTP_XET_HUB_TREE_PART;
}


static void
ngx_http_xet_hub_tree_send(ngx_http_request_t *r,
    ngx_http_xet_hub_listed_tree_t *listed, ngx_uint_t last)
{
    xet_buf_t       *b;
    ngx_uint_t       i, n;
    xet_hub_node_t   node;
    xet_hub_text_t   part;

    b = ngx_http_xet_hub_stream_part(r, &listed->stream,
                                     NGX_HTTP_XET_HUB_TREE_NODE, last);
    if (b == NULL) {
        return;
    }

    if (!listed->stream.stream.begun) {
        xet_hub_tree_begin(&listed->tree, b,
                           ngx_http_xet_hub_get(r)->asked.kind
                           == XET_HUB_BUCKET, listed->expand);
    }

    n = ngx_http_xet_query_hub_nodes(r);

    for (i = 0; i < n; i++) {

        if (ngx_http_xet_query_hub_node(r, i, &node) != NGX_OK) {
            ngx_http_xet_hub_stream_fail(r, &listed->stream, XET_DATABASE);
            return;
        }

        /* some clients download nothing if a path is unsafe */

        if (xet_hub_path_risk(node.path.data, node.path.len, &part)
            == XET_HUB_RISK_NONE)
        {
            xet_hub_tree_add(&listed->tree, &node);
        }
    }

    if (last) {
        xet_hub_tree_end(&listed->tree);
    }

    ngx_http_xet_hub_stream_send(r, &listed->stream);
}


ngx_int_t
ngx_http_xet_hub_paths_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_str_t                 *type;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_hub_paths_t  *p;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    p = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_paths_t),
                           ngx_http_xet_hub_paths_cleanup);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    hub->state = p;
    hub->refusal = &p->list.refusal;
    hub->keep = (xlcf->hub_upstream && hub->asked.kind != XET_HUB_BUCKET);

    if (ngx_http_xet_hub_stream_init(r, &p->listed.stream,
                                     ngx_http_xet_hub_paths_ask)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p->listed.rev = hub->rev;

    /* Python clients send a form, JavaScript clients send JSON */

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

    ngx_http_xet_columns_destroy(&p->batch);
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


/*
 * Adds a requested path.  An invalid path is treated like a path that does not
 * exist.
 */

static xet_status_t
ngx_http_xet_hub_paths_add(void *ctx, const xet_hub_operation_t *op)
{
    ngx_http_xet_hub_paths_t *p = ctx;

    xet_hub_text_t  path;

    path = op->path;

    if (path.len && path.data[path.len - 1] == '/') {
        path.len--;
    }

    if (xet_hub_path_ok(path.data, path.len)) {
        ngx_http_xet_array_bytes(&p->batch.paths, path.data, path.len);
    }

    if (!p->unsafe) {
        p->unsafe = (xet_hub_path_check(&path, &p->refusal) == XET_HUB_UNSAFE);
    }

    return p->batch.paths.failed ? XET_NOMEM : XET_OK;
}


static void
ngx_http_xet_hub_paths_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_paths_t *p = data;

    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    p->listed.expand = (p->list.expand && hub->asked.kind != XET_HUB_BUCKET);

    if (p->unsafe) {
        hub->unsafe = &p->refusal;
    }

    ngx_http_xet_hub_wait(r, ngx_http_xet_hub_paths_ask(r));
}


static ngx_int_t
ngx_http_xet_hub_paths_ask(ngx_http_request_t *r)
{
    ngx_http_xet_hub_t        *hub;
    ngx_http_xet_hub_paths_t  *p;

    hub = ngx_http_xet_hub_get(r);
    p = hub->state;

    return ngx_http_xet_query(r, hub_paths_rows,
               ngx_http_xet_hub_paths_answered, .asked = &hub->asked,
               .rev = p->listed.rev,
               .paths = { &p->batch.paths,
                          ngx_http_xet_hub_tree_part(p->listed.expand) },
               .expand = p->listed.expand);
}


static void
ngx_http_xet_hub_paths_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_paths_t   *p;
    ngx_http_xet_hub_answer_t   answer;

    p = ngx_http_xet_hub_get(r)->state;

    if (ngx_http_xet_hub_stream_row(r, &p->listed.stream, rc, &answer)
        != NGX_OK)
    {
        return;
    }

    ngx_http_xet_hub_body_free(ngx_http_xet_hub_get(r));

    ngx_http_xet_hub_tree_keep(&p->listed.rev, p->listed.oid, XET_HUB_OID_LEN,
                               &answer.code);

    ngx_http_xet_hub_tree_send(r, &p->listed,
                               !ngx_http_xet_array_left(&p->batch.paths));
}
