
/*
 * Routes that read repos and their history.
 *
 *     handler -> arguments -> one statement, which returns the response body
 *
 * The description of a repo with its files, lists of branches and tags, and
 * pages of commits are sent in parts.  Each part is the result of one
 * statement: 256 files or branches, or about 64 KiB of commits.  A request
 * holds one part, and two while it copies a part: 20 to 70 KB with usual
 * names, at most 600 KB.
 *
 * The cursor is the last entry of the previous page, so new commits cause
 * neither repeated nor missing entries.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_LIST_PAGE  100
#define NGX_HTTP_XET_HUB_CHANGES    256       /* most files a page */
#define NGX_HTTP_XET_HUB_REF_BODY   131072
#define NGX_HTTP_XET_HUB_REF_TEXT   192


/* What xet.hub_ref_put() does. */

typedef enum {
    NGX_HTTP_XET_HUB_REF_CREATE = 0,
    NGX_HTTP_XET_HUB_REF_MOVE,         /* create, or move an existing one */
    NGX_HTTP_XET_HUB_REF_KEEP,         /* create, or keep an existing one */
    NGX_HTTP_XET_HUB_REF_DELETE
} ngx_http_xet_hub_ref_e;


/* A request that creates, changes or deletes a branch or a tag. */

typedef struct {
    xet_hub_ref_e             kind;
    xet_hub_ref_t             ref;
    ngx_str_t                 name;            /* "heads/main" */
    ngx_str_t                 rev;
} ngx_http_xet_hub_named_t;


/* A response in parts. */

#define NGX_HTTP_XET_HUB_REST  (NGX_INT32_LEN + XET_HUB_OID_LEN              \
                                + XET_HUB_PATH_MAX + sizeof("//"))

typedef struct {
    ngx_http_xet_hub_stream_t   stream;
    ngx_http_xet_hub_page_t    *page;          /* page of commits */
    ngx_uint_t                  siblings;      /* description with files */
    ngx_str_t                   rest;          /* NULL data: first part */
    u_char                      room[NGX_HTTP_XET_HUB_REST];
} ngx_http_xet_hub_parts_t;


static ngx_int_t ngx_http_xet_hub_parts(ngx_http_request_t *r,
    ngx_http_xet_hub_page_t *page, ngx_uint_t siblings,
    ngx_int_t (*ask)(ngx_http_request_t *r));
static void ngx_http_xet_hub_parts_answered(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_info_ask(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_hub_refs_ask(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_hub_commits_ask(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_hub_commits_headers(ngx_http_request_t *r,
    const ngx_http_xet_hub_answer_t *answer);
static ngx_int_t ngx_http_xet_hub_named(ngx_http_request_t *r,
    xet_hub_ref_e kind, void (*done)(ngx_http_request_t *r, void *data));
static void ngx_http_xet_hub_named_cleanup(void *data);
static xet_status_t ngx_http_xet_hub_named_parse(void *data, u_char *text,
    size_t len);
static void ngx_http_xet_hub_branch_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_tag_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_squash_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_ref_put(ngx_http_request_t *r,
    ngx_http_xet_hub_named_t *n, const char *kind, const ngx_str_t *name);
static ngx_int_t ngx_http_xet_hub_ref_check(ngx_http_request_t *r,
    const ngx_str_t *name, const ngx_str_t *rev);


static ngx_int_t
ngx_http_xet_hub_parts(ngx_http_request_t *r, ngx_http_xet_hub_page_t *page,
    ngx_uint_t siblings, ngx_int_t (*ask)(ngx_http_request_t *r))
{
    ngx_http_xet_hub_parts_t  *p;

    p = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_parts_t));

    if (p == NULL
        || ngx_http_xet_hub_stream_init(r, &p->stream, ask) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p->page = page;
    p->siblings = siblings;

    ngx_http_xet_hub_get(r)->state = p;

    return ngx_http_xet_query_wait(r, ask(r));
}


static void
ngx_http_xet_hub_parts_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_buf_t                    *b;
    ngx_http_xet_hub_parts_t     *p;
    ngx_http_xet_hub_answer_t     answer;
    ngx_http_xet_hub_info_row_t   row;

    p = ngx_http_xet_hub_get(r)->state;

    if (ngx_http_xet_hub_stream_row(r, &p->stream, rc, &answer) != NGX_OK) {
        return;
    }

    if (p->page && !p->stream.stream.begun
        && ngx_http_xet_hub_commits_headers(r, &answer) != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    /*
     * the rows of hub_refs_get and hub_commits_get have the same columns as
     * hub_info
     */

    (void) ngx_http_xet_row(r, hub_info, 0, &row);

    if (answer.body.data == NULL || row.rest.len > NGX_HTTP_XET_HUB_REST) {
        ngx_http_xet_hub_stream_fail(r, &p->stream, XET_DATABASE);
        return;
    }

    b = ngx_http_xet_hub_stream_part(r, &p->stream, answer.body.len,
                                     row.rest.data == NULL);
    if (b == NULL) {
        return;
    }

    xet_buf_write(b, answer.body.data, answer.body.len);

    if (row.rest.data) {
        ngx_memcpy(p->room, row.rest.data, row.rest.len);

        p->rest.data = p->room;
        p->rest.len = row.rest.len;
    }

    ngx_http_xet_hub_stream_send(r, &p->stream);
}


ngx_int_t
ngx_http_xet_hub_info_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_int_t   rc;
    ngx_uint_t  siblings;

    rc = ngx_http_xet_hub_info_args(r, &siblings);

    return (rc == NGX_OK)
           ? ngx_http_xet_hub_parts(r, NULL, siblings,
                                    ngx_http_xet_hub_info_ask)
           : rc;
}


static ngx_int_t
ngx_http_xet_hub_info_ask(ngx_http_request_t *r)
{
    ngx_http_xet_hub_t        *hub;
    ngx_http_xet_hub_parts_t  *p;

    hub = ngx_http_xet_hub_get(r);
    p = hub->state;

    return ngx_http_xet_query(r, hub_info, ngx_http_xet_hub_parts_answered,
                              .asked = &hub->asked, .rev = hub->rev,
                              .blobs = ngx_http_xet_hub_flag(r, "blobs"),
                              .rest = p->rest, .siblings = p->siblings);
}


ngx_int_t
ngx_http_xet_hub_commits_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_int_t                 rc;
    ngx_http_xet_hub_page_t  *page;

    if (ngx_http_xet_hub_arg(r, "until", &hub->filters) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_xet_hub_page_args(r, hub, NGX_HTTP_XET_HUB_LIST_PAGE, &page);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_xet_hub_parts(r, page, 0, ngx_http_xet_hub_commits_ask);
}


static ngx_int_t
ngx_http_xet_hub_commits_ask(ngx_http_request_t *r)
{
    ngx_http_xet_hub_t        *hub;
    ngx_http_xet_hub_parts_t  *p;

    hub = ngx_http_xet_hub_get(r);
    p = hub->state;

    return ngx_http_xet_query(r, hub_commits_get,
                              ngx_http_xet_hub_parts_answered,
                              .asked = &hub->asked, .rev = p->page->rev,
                              .path = p->page->path, .until = hub->filters,
                              .after = p->page->after, .most = p->page->most,
                              .rest = p->rest);
}


/*
 * The files that a commit changed, or that differ from those of the revision
 * "base", in one statement a page.
 */

ngx_int_t
ngx_http_xet_hub_changes_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_int_t                 rc;
    ngx_http_xet_hub_page_t  *page;

    if (ngx_http_xet_hub_arg(r, "base", &hub->filters) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_xet_hub_page_args(r, hub, NGX_HTTP_XET_HUB_CHANGES, &page);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_changes, ngx_http_xet_hub_paged,
                                  .asked = &hub->asked, .rev = page->rev,
                                  .base = hub->filters, .after = page->after,
                                  .most = page->most));
}


/*
 * Adds the link to the next page, and the total number of commits; some
 * clients read only the total.
 */

static ngx_int_t
ngx_http_xet_hub_commits_headers(ngx_http_request_t *r,
    const ngx_http_xet_hub_answer_t *answer)
{
    if (answer->message.data
        && ngx_http_xet_hub_header(r, "X-Total-Count", "%V", &answer->message)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return answer->more.data ? ngx_http_xet_hub_next(r, &answer->more)
                             : NGX_OK;
}


ngx_int_t
ngx_http_xet_hub_page_args(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    ngx_uint_t most, ngx_http_xet_hub_page_t **page)
{
    ngx_str_t                 limit, value;
    ngx_http_xet_hub_page_t  *p;

    p = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_page_t));

    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p->rev = hub->rev;
    p->path = hub->path;
    p->most = most;
    p->recursive = ngx_http_xet_hub_flag(r, "recursive");

    /* as in a Hub, a bucket is listed with its folders only on request */

    if (hub->asked.kind == XET_HUB_BUCKET
        && ngx_http_arg(r, (u_char *) "recursive", 9, &value) != NGX_OK)
    {
        p->recursive = 1;
    }

    p->expand = ngx_http_xet_hub_flag(r, "expand");

    if (ngx_http_arg(r, (u_char *) "limit", 5, &limit) == NGX_OK) {
        p->most = ngx_min(p->most,
                          (ngx_uint_t) ngx_atoi(limit.data, limit.len));
    }

    *page = p;

    return ngx_http_xet_hub_cursor_arg(r, &p->after);
}


ngx_int_t
ngx_http_xet_hub_refs_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_parts(r, NULL, 0, ngx_http_xet_hub_refs_ask);
}


static ngx_int_t
ngx_http_xet_hub_refs_ask(ngx_http_request_t *r)
{
    ngx_http_xet_hub_t        *hub;
    ngx_http_xet_hub_parts_t  *p;

    hub = ngx_http_xet_hub_get(r);
    p = hub->state;

    return ngx_http_xet_query(r, hub_refs_get, ngx_http_xet_hub_parts_answered,
                              .asked = &hub->asked, .rest = p->rest);
}


ngx_int_t
ngx_http_xet_hub_enter_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    static const ngx_str_t  any = ngx_null_string;

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query_hub_enter(r, &hub->asked, &any, hub->writes,
                                            ngx_http_xet_hub_answered));
}


ngx_int_t
ngx_http_xet_hub_branch_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_named(r, XET_HUB_REF_BRANCH,
                                  ngx_http_xet_hub_branch_read);
}


ngx_int_t
ngx_http_xet_hub_tag_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_named(r, XET_HUB_REF_TAG,
                                  ngx_http_xet_hub_tag_read);
}


/* Replaces the commits of a branch by one commit with the same files. */

ngx_int_t
ngx_http_xet_hub_squash_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_named(r, XET_HUB_REF_SQUASH,
                                  ngx_http_xet_hub_squash_read);
}


static ngx_int_t
ngx_http_xet_hub_named(ngx_http_request_t *r, xet_hub_ref_e kind,
    void (*done)(ngx_http_request_t *r, void *data))
{
    ngx_http_xet_hub_named_t  *n;

    n = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_named_t),
                           ngx_http_xet_hub_named_cleanup);
    if (n == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    n->kind = (r->method == NGX_HTTP_DELETE) ? XET_HUB_REF_DELETE : kind;

    ngx_http_xet_hub_get(r)->refusal = &n->ref.refusal;

    return ngx_http_xet_hub_read(r, NGX_HTTP_XET_HUB_REF_BODY,
                                 ngx_http_xet_hub_named_parse, done, n);
}


static void
ngx_http_xet_hub_named_cleanup(void *data)
{
    ngx_http_xet_hub_named_t *n = data;

    json_decref(n->ref.doc);
}


static xet_status_t
ngx_http_xet_hub_named_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_named_t *n = data;

    return xet_hub_ref_parse(&n->ref, n->kind, text, len);
}


/*
 * Parses the body: the branch is in the path, its starting point in the body.
 */

static void
ngx_http_xet_hub_branch_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_named_t *n = data;

    /* an empty branch starts at no commit */

    if (n->ref.start.data) {
        n->rev.data = (u_char *) n->ref.start.data;
        n->rev.len = n->ref.start.len;

    } else if (!n->ref.empty) {
        ngx_str_set(&n->rev, "main");
    }

    ngx_http_xet_hub_ref_put(r, n, "heads/", &ngx_http_xet_hub_get(r)->rev);
}


/*
 * Parses the body: the revision is in the path, the tag in the body.  For
 * DELETE the tag is in the path.
 */

static void
ngx_http_xet_hub_tag_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_named_t *n = data;

    ngx_str_t            tag;
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    if (n->kind == XET_HUB_REF_DELETE) {
        ngx_http_xet_hub_ref_put(r, n, "tags/", &hub->rev);
        return;
    }

    tag.data = (u_char *) n->ref.tag.data;
    tag.len = n->ref.tag.len;
    n->rev = hub->rev;

    ngx_http_xet_hub_ref_put(r, n, "tags/", &tag);
}


static void
ngx_http_xet_hub_ref_put(ngx_http_request_t *r, ngx_http_xet_hub_named_t *n,
    const char *kind, const ngx_str_t *name)
{
    ngx_int_t               rc;
    ngx_str_t               message;
    ngx_http_xet_hub_t     *hub;
    ngx_http_xet_hub_ref_e  does;

    hub = ngx_http_xet_hub_get(r);
    ngx_str_null(&message);

    if (n->ref.message.len) {
        message.data = (u_char *) n->ref.message.data;
        message.len = n->ref.message.len;
    }

    /* DELETE skips this check, because older versions allowed more names */

    if (n->kind != XET_HUB_REF_DELETE) {
        rc = ngx_http_xet_hub_ref_check(r, name, n->ref.empty ? NULL
                                                              : &n->rev);

        if (rc != NGX_DECLINED) {
            ngx_http_finalize_request(r, rc);
            return;
        }
    }

    n->name.data = ngx_pnalloc(r->pool, ngx_strlen(kind) + name->len);
    if (n->name.data == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    n->name.len = ngx_sprintf(n->name.data, "%s%V", kind, name)
                  - n->name.data;

    /* without a revision, "overwrite" leaves an existing branch unchanged */

    does = (n->kind == XET_HUB_REF_DELETE) ? NGX_HTTP_XET_HUB_REF_DELETE
           : !n->ref.overwrite ? NGX_HTTP_XET_HUB_REF_CREATE
           : (n->ref.empty || n->ref.start.data) ? NGX_HTTP_XET_HUB_REF_MOVE
           : NGX_HTTP_XET_HUB_REF_KEEP;

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_ref_put, ngx_http_xet_hub_added,
                           .asked = &hub->asked, .ref = n->name,
                           .rev = n->rev, .does = does, .who = hub->who,
                           .message = message));
}


static void
ngx_http_xet_hub_squash_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_named_t *n = data;

    ngx_str_t            message;
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    ngx_str_set(&message, "Super-squash branch using Xet");

    if (n->ref.message.len) {
        message.data = (u_char *) n->ref.message.data;
        message.len = n->ref.message.len;
    }

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_squash, ngx_http_xet_hub_added,
                           .asked = &hub->asked, .rev = hub->rev,
                           .title = message, .who = hub->who));
}


/*
 * Returns NGX_DECLINED if the name and the revision are valid for a branch or
 * tag, else sends an error; rev may be NULL.
 */

static ngx_int_t
ngx_http_xet_hub_ref_check(ngx_http_request_t *r, const ngx_str_t *name,
    const ngx_str_t *rev)
{
    size_t  len;
    u_char  text[NGX_HTTP_XET_HUB_REF_TEXT];

    len = name->data ? xet_hub_ref_reserved(name->data, name->len) : 0;

    if (len) {
        *ngx_snprintf(text, sizeof(text) - 1,
                      "A branch or tag must not be named \"%*s\", or start "
                      "with that and a slash: this name means a commit", len,
                      name->data)
            = '\0';

        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "ref_reserved",
                                  (char *) text);
    }

    return (name->data && xet_hub_ref_ok(name->data, name->len)
            && (rev == NULL || xet_hub_rev_ok(rev->data, rev->len)))
           ? NGX_DECLINED : ngx_http_xet_error_status(r, XET_HUB_REV);
}
