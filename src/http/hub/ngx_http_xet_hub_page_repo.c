
/*
 * The page of a repo: a folder or a file, at a revision.
 *
 *     handler -> the repo -> branches and tags -> contents of the folder
 *             -> the text to show -> response
 *
 * Each step is one statement, whose rows are written into the page before the
 * next statement frees them.  The first statement finds the commit, and the
 * other statements use its id, so a page shows one state of the repo.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub_page.h"


static void ngx_http_xet_hub_page_found(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_page_view(ngx_http_request_t *r,
    ngx_http_xet_hub_view_t *view);
static ngx_int_t ngx_http_xet_hub_page_copy(ngx_http_request_t *r,
    const ngx_str_t *text, ngx_str_t *copy);
static void ngx_http_xet_hub_page_refs(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_hub_page_list_files(ngx_http_request_t *r);
static void ngx_http_xet_hub_page_files(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_page_head(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);
static void ngx_http_xet_hub_page_crumbs(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);
static void ngx_http_xet_hub_page_facts(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);


ngx_int_t
ngx_http_xet_hub_page_repo_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_int_t                  rc;
    ngx_http_xet_hub_paper_t  *paper;

    paper = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_paper_t));
    if (paper == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    hub->state = paper;

    rc = ngx_http_xet_hub_cursor_arg(r, &paper->after);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_page_repo,
                                  ngx_http_xet_hub_page_found,
                                  .asked = &hub->asked, .rev = hub->rev,
                                  .path = hub->path));
}


static void
ngx_http_xet_hub_page_found(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_t        *hub;
    ngx_http_xet_hub_paper_t  *paper;

    hub = ngx_http_xet_hub_get(r);
    paper = hub->state;

    if (ngx_http_xet_hub_page_result(r, rc) != NGX_OK) {
        return;
    }

    if (ngx_http_xet_hub_page_view(r, &paper->view) != NGX_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, XET_NOMEM));
        return;
    }

    if (paper->view.answer.status != NGX_HTTP_OK) {
        ngx_http_finalize_request(r,
            ngx_http_xet_hub_refuse(r, &paper->view.answer));
        return;
    }

    if (ngx_http_xet_hub_page_head(r, paper) != NGX_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, XET_NOMEM));
        return;
    }

    if (hub->asked.kind == XET_HUB_BUCKET) {
        ngx_http_xet_hub_page_list_files(r);
        return;
    }

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_page_refs, ngx_http_xet_hub_page_refs,
                           .asked = &hub->asked,
                           .most = NGX_HTTP_XET_HUB_ROWS));
}


/* Copies the row into the view, because the next statement frees the rows. */

static ngx_int_t
ngx_http_xet_hub_page_view(ngx_http_request_t *r,
    ngx_http_xet_hub_view_t *view)
{
    ngx_http_xet_hub_page_repo_row_t  row;

    if (ngx_http_xet_row(r, hub_page_repo, 0, &row) != NGX_OK) {
        return NGX_ERROR;
    }

    view->answer = row.answer;

    if (view->answer.status != NGX_HTTP_OK) {
        return NGX_OK;
    }

    if (ngx_http_xet_hub_page_copy(r, &row.answer.more, &view->repo) != NGX_OK
        || ngx_http_xet_hub_page_copy(r, &row.rev, &view->rev) != NGX_OK
        || ngx_http_xet_hub_page_copy(r, &row.path, &view->path) != NGX_OK
        || ngx_http_xet_hub_page_copy(r, &row.oid, &view->oid) != NGX_OK
        || ngx_http_xet_hub_page_copy(r, &row.title, &view->title) != NGX_OK
        || ngx_http_xet_hub_page_copy(r, &row.who, &view->who) != NGX_OK
        || ngx_http_xet_hub_page_copy(r, &row.readme, &view->readme) != NGX_OK
        || ngx_http_xet_hub_page_copy(r, &row.uploads, &view->store) != NGX_OK
        || (row.readme.data && row.hash == NULL))
    {
        return NGX_ERROR;
    }

    view->private = row.private;
    view->made_at = row.made_at;
    view->files = row.files;
    view->bytes = row.bytes;
    view->folder = row.is_folder;

    if (row.readme.data) {
        view->hash = *row.hash;
        view->size = row.size;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_page_copy(ngx_http_request_t *r, const ngx_str_t *text,
    ngx_str_t *copy)
{
    if (text->data == NULL) {
        ngx_str_null(copy);
        return NGX_OK;
    }

    copy->len = text->len;
    copy->data = ngx_pnalloc(r->pool, text->len + 1);

    if (copy->data == NULL) {
        return NGX_ERROR;
    }

    *ngx_cpymem(copy->data, text->data, text->len) = '\0';

    return NGX_OK;
}


static void
ngx_http_xet_hub_page_refs(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_str_t                         ref, name;
    ngx_uint_t                        i, rows, tag;
    ngx_http_xet_hub_t               *hub;
    ngx_http_xet_hub_view_t           view;
    ngx_http_xet_hub_paper_t         *paper;
    ngx_http_xet_hub_page_refs_row_t  row;

    static const ngx_str_t  root = ngx_null_string;

    hub = ngx_http_xet_hub_get(r);
    paper = hub->state;

    if (ngx_http_xet_hub_page_result(r, rc) != NGX_OK) {
        return;
    }

    rows = ngx_http_xet_hub_page_rows(r, rc);

    xet_hub_html(&paper->b, "<details>\n"
                 "<summary>Branches and tags</summary>\n<ul>\n");

    view = paper->view;

    for (i = 0; i < rows; i++) {
        (void) ngx_http_xet_row(r, hub_page_refs, i, &row);
        ref = row.ref;

        tag = (ref.len > 5 && ngx_strncmp(ref.data, "tags/", 5) == 0);

        name.data = ref.data + (tag ? 5 : 6);
        name.len = ref.len - (tag ? 5 : 6);

        view.rev = name;

        if (tag) {

            /* a branch may have the same name, so write "refs/tags/" */

            view.rev.len = sizeof("refs/") - 1 + ref.len;
            view.rev.data = ngx_pnalloc(r->pool, view.rev.len);

            if (view.rev.data == NULL) {
                ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
                return;
            }

            ngx_memcpy(ngx_cpymem(view.rev.data, "refs/", sizeof("refs/") - 1),
                       ref.data, ref.len);
        }

        xet_hub_html(&paper->b, "<li><a href=\"");
        ngx_http_xet_hub_page_url(r, &paper->b, hub->asked.kind, &view, "tree",
                                  &root);
        xet_hub_html(&paper->b, "\"><bdi>%t</bdi></a>%s</li>\n",
                     ngx_http_xet_hub_str(&name), tag ? " (tag)" : "");
    }

    if (rows == NGX_HTTP_XET_HUB_ROWS) {
        xet_hub_html(&paper->b, "<li>There may be more.</li>\n");
    }

    xet_hub_html(&paper->b, "</ul>\n</details>\n");

    ngx_http_xet_hub_page_list_files(r);
}


static void
ngx_http_xet_hub_page_list_files(ngx_http_request_t *r)
{
    ngx_http_xet_hub_t        *hub;
    ngx_http_xet_hub_paper_t  *paper;

    hub = ngx_http_xet_hub_get(r);
    paper = hub->state;

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_page_tree, ngx_http_xet_hub_page_files,
                           .asked = &hub->asked, .rev = paper->view.oid,
                           .path = paper->view.path, .after = paper->after,
                           .most = NGX_HTTP_XET_HUB_ROWS + 1));
}


static void
ngx_http_xet_hub_page_files(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_uint_t                 rows;
    ngx_http_xet_hub_paper_t  *paper;

    paper = ngx_http_xet_hub_get(r)->state;

    if (ngx_http_xet_hub_page_result(r, rc) != NGX_OK) {
        return;
    }

    rows = ngx_http_xet_hub_page_rows(r, rc);

    ngx_http_xet_hub_page_tree(r, rows, paper);
    ngx_http_xet_hub_page_use(r, paper);

    rc = (paper->view.readme.data && paper->after.data == NULL)
         ? ngx_http_xet_hub_page_text(r, paper)
         : ngx_http_xet_hub_page_send(r, &paper->b);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


static ngx_int_t
ngx_http_xet_hub_page_head(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    ngx_str_t                 title;
    ngx_http_xet_hub_view_t  *view;

    view = &paper->view;

    title.data = ngx_pnalloc(r->pool, view->path.len + view->repo.len + 2);
    if (title.data == NULL) {
        return NGX_ERROR;
    }

    title.len = ngx_sprintf(title.data, "%V%s%V", &view->path,
                            view->path.len ? ", " : "", &view->repo)
                - title.data;

    ngx_http_xet_hub_page_begin(r, &paper->b, &title);
    ngx_http_xet_hub_page_crumbs(r, paper);

    xet_hub_html(&paper->b, "<h1>%t%s</h1>\n",
                 ngx_http_xet_hub_str(&view->repo),
                 view->private ? " (private)" : "");

    ngx_http_xet_hub_page_facts(r, paper);

    return NGX_OK;
}


/* Writes links to the owner, the repo, and each folder of the path. */

static void
ngx_http_xet_hub_page_crumbs(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    u_char                   *p, *start, *last;
    xet_buf_t                *b;
    ngx_str_t                 part, path, name;
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_hub_view_t  *view;

    b = &paper->b;
    hub = ngx_http_xet_hub_get(r);
    view = &paper->view;

    last = view->repo.data + view->repo.len;
    name.data = ngx_strlchr(view->repo.data, last, '/');
    name.data = name.data ? name.data + 1 : view->repo.data;
    name.len = last - name.data;

    part.data = view->repo.data;
    part.len = (name.data > part.data) ? name.data - part.data - 1 : 0;

    xet_hub_html(b, "<nav aria-label=\"Path\">\n<ol>\n"
                 "<li><a href=\"%p/%p\">%t</a></li>\n<li><a href=\"",
                 ngx_http_xet_hub_str(&hub->root),
                 ngx_http_xet_hub_str(&part), ngx_http_xet_hub_str(&part));

    ngx_str_null(&path);
    ngx_http_xet_hub_page_url(r, b, hub->asked.kind, view, "tree", &path);
    xet_hub_html(b, "\">%t</a></li>\n", ngx_http_xet_hub_str(&name));

    start = view->path.data;
    last = start + view->path.len;

    for ( /* void */ ; start < last; start = p + 1) {
        p = ngx_strlchr(start, last, '/');

        if (p == NULL) {
            p = last;
        }

        part.data = start;
        part.len = p - start;
        path.data = view->path.data;
        path.len = p - view->path.data;

        xet_hub_html(b, "<li><a href=\"");
        ngx_http_xet_hub_page_url(r, b, hub->asked.kind, view, "tree", &path);
        xet_hub_html(b, "\"><bdi>%t</bdi></a></li>\n",
                     ngx_http_xet_hub_str(&part));
    }

    xet_hub_html(b, "</ol>\n</nav>\n");
}


static void
ngx_http_xet_hub_page_facts(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    xet_buf_t                *b;
    ngx_str_t                 oid;
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_hub_view_t  *view;

    b = &paper->b;
    hub = ngx_http_xet_hub_get(r);
    view = &paper->view;

    xet_hub_html(b, "<p>%s %s", view->files ? "A" : "Empty",
                 xet_hub_kind_name(hub->asked.kind));

    if (view->files > 0) {
        xet_hub_html(b, " of %n file%s, %b", (uint64_t) view->files,
                     (view->files == 1) ? "" : "s", (uint64_t) view->bytes);
    }

    xet_hub_html(b, ".</p>\n");

    if (hub->asked.kind == XET_HUB_BUCKET) {
        return;
    }

    oid = view->oid;
    oid.len = ngx_min(oid.len, 10);

    xet_hub_html(b, "<p>Revision <bdi>%t</bdi>, commit <code>%t</code>: "
                 "<bdi>%t</bdi>, by <bdi>%t</bdi>, "
                 "<time datetime=\"%D\">%d</time>.</p>\n",
                 ngx_http_xet_hub_str(&view->rev), ngx_http_xet_hub_str(&oid),
                 ngx_http_xet_hub_str(&view->title),
                 ngx_http_xet_hub_str(&view->who), view->made_at,
                 view->made_at);
}
