
/*
 * Sample commands that download a repo or a file, for hf, Python and curl.
 * They contain the URL that the caller used to reach this server.
 *
 * A branch may have the name "$(rm -rf ~)", and the client chooses the host
 * name.  So every value is quoted, as one shell word or as a Python string.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub_page.h"


static void ngx_http_xet_hub_page_use_hf(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);
static void ngx_http_xet_hub_page_use_python(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);
static void ngx_http_xet_hub_page_use_bucket(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);
static ngx_int_t ngx_http_xet_hub_page_use_curl(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper);
static ngx_uint_t ngx_http_xet_hub_page_main(ngx_http_xet_hub_paper_t *paper);


void
ngx_http_xet_hub_page_use(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    xet_buf_t  *b;

    b = &paper->b;

    xet_hub_html(b, "<h2>Download</h2>\n");

    if (ngx_http_xet_hub_get(r)->asked.kind == XET_HUB_BUCKET) {
        ngx_http_xet_hub_page_use_bucket(r, paper);

    } else {
        ngx_http_xet_hub_page_use_hf(r, paper);
        ngx_http_xet_hub_page_use_python(r, paper);
    }

    if (paper->file.len
        && ngx_http_xet_hub_page_use_curl(r, paper) != NGX_OK)
    {
        b->failed = 1;
    }
}


static void
ngx_http_xet_hub_page_use_hf(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    xet_buf_t                *b;
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_hub_view_t  *view;

    b = &paper->b;
    hub = ngx_http_xet_hub_get(r);
    view = &paper->view;

    xet_hub_html(b, "<h3>hf</h3>\n<pre><code>HF_ENDPOINT=%w hf download %w",
                 ngx_http_xet_hub_str(&hub->base),
                 ngx_http_xet_hub_str(&view->repo));

    if (hub->asked.kind != XET_HUB_MODEL) {
        xet_hub_html(b, " --repo-type %s", xet_hub_kind_name(hub->asked.kind));
    }

    if (!ngx_http_xet_hub_page_main(paper)) {
        xet_hub_html(b, " --revision %w", ngx_http_xet_hub_str(&view->rev));
    }

    /* write "--" first, because a file name may look like an option */

    if (!view->folder) {
        xet_hub_html(b, " -- %w", ngx_http_xet_hub_str(&view->path));
    }

    xet_hub_html(b, "</code></pre>\n");
}


static void
ngx_http_xet_hub_page_use_python(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    xet_buf_t                *b;
    const char               *name;
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_hub_view_t  *view;

    b = &paper->b;
    hub = ngx_http_xet_hub_get(r);
    view = &paper->view;

    name = view->folder ? "snapshot_download" : "hf_hub_download";

    xet_hub_html(b, "<h3>Python</h3>\n<pre><code>"
                 "from huggingface_hub import %s\n%s(%l", name, name,
                 ngx_http_xet_hub_str(&view->repo));

    if (!view->folder) {
        xet_hub_html(b, ", %l", ngx_http_xet_hub_str(&view->path));
    }

    if (hub->asked.kind != XET_HUB_MODEL) {
        xet_hub_html(b, ", repo_type=&quot;%s&quot;",
                     xet_hub_kind_name(hub->asked.kind));
    }

    if (!ngx_http_xet_hub_page_main(paper)) {
        xet_hub_html(b, ", revision=%l", ngx_http_xet_hub_str(&view->rev));
    }

    xet_hub_html(b, ", endpoint=%l)</code></pre>\n",
                 ngx_http_xet_hub_str(&hub->base));
}


static void
ngx_http_xet_hub_page_use_bucket(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    ngx_str_t                 name;
    xet_buf_t                *b;
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_hub_view_t  *view;

    b = &paper->b;
    hub = ngx_http_xet_hub_get(r);
    view = &paper->view;

    /* the name of a repo has one "/", and no characters that need quotes */

    name = view->repo;

    while (name.len && name.data[0] != '/') {
        name.data++;
        name.len--;
    }

    xet_hub_html(b, "<h3>hf</h3>\n<pre><code>"
                 "HF_ENDPOINT=%w hf buckets sync hf://buckets/%w .%w"
                 "</code></pre>\n", ngx_http_xet_hub_str(&hub->base),
                 ngx_http_xet_hub_str(&view->repo),
                 ngx_http_xet_hub_str(&name));

    xet_hub_html(b, "<h3>Python</h3>\n<pre><code>"
                 "from huggingface_hub import HfApi\n"
                 "HfApi(endpoint=%l).sync_bucket("
                 "&quot;hf://buckets/%t&quot;, &quot;.%t&quot;)</code></pre>\n",
                 ngx_http_xet_hub_str(&hub->base),
                 ngx_http_xet_hub_str(&view->repo),
                 ngx_http_xet_hub_str(&name));
}


static ngx_int_t
ngx_http_xet_hub_page_use_curl(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper)
{
    ngx_str_t                 url;
    xet_buf_t                 b;
    xet_buf_node_t           *node;
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_loc_conf_t  *xlcf;

    hub = ngx_http_xet_hub_get(r);
    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    /* quote the URL as one shell word */

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 1024);
    ngx_http_xet_hub_page_url(r, &b, hub->asked.kind, &paper->view, "resolve",
                              &paper->file);

    if (xet_buf_status(&b) != XET_OK) {
        return NGX_ERROR;
    }

    url.len = hub->origin.len - hub->prefix.len;
    url.data = ngx_pnalloc(r->pool, url.len + b.size);

    if (url.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(url.data, hub->origin.data, url.len);

    for (node = b.first; node; node = node->next) {
        ngx_memcpy(url.data + url.len, node->start, node->pos - node->start);
        url.len += node->pos - node->start;
    }

    xet_hub_html(&paper->b, "<h3>curl</h3>\n<pre><code>curl -fLOJ%s %w"
                 "</code></pre>\n",
                 (xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN)
                 ? " -H \"Authorization: Bearer $HF_TOKEN\"" : "",
                 ngx_http_xet_hub_str(&url));

    return NGX_OK;
}


static ngx_uint_t
ngx_http_xet_hub_page_main(ngx_http_xet_hub_paper_t *paper)
{
    return ngx_http_xet_hub_is(&paper->view.rev, "main");
}
