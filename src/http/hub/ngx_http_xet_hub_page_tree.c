
/*
 * Writes a folder as a table of its folders and files, with sizes, commits and
 * dates.  A folder links to its page, a file to its contents.  Files are sent
 * as attachments, so the link needs no "download" attribute.  With this
 * attribute, browsers would not ask for a password.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub_page.h"


static void ngx_http_xet_hub_page_tree_head(ngx_http_request_t *r,
    xet_buf_t *b);
static void ngx_http_xet_hub_page_entry(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper,
    const ngx_http_xet_hub_page_tree_row_t *entry);
static ngx_int_t ngx_http_xet_hub_page_fetched(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper, const ngx_str_t *path);
static void ngx_http_xet_hub_page_tree_more(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper, ngx_uint_t rows);


void
ngx_http_xet_hub_page_tree(ngx_http_request_t *r, ngx_uint_t rows,
    ngx_http_xet_hub_paper_t *paper)
{
    xet_buf_t                        *b;
    ngx_uint_t                        i;
    ngx_http_xet_hub_page_tree_row_t  entry;

    b = &paper->b;

    xet_hub_html(b, "<h2 id=\"files\">%s",
                 paper->view.folder ? "Files" : "File");

    if (paper->view.path.len) {
        xet_hub_html(b, "%s <bdi>%t</bdi>", paper->view.folder ? " in" : "",
                     ngx_http_xet_hub_str(&paper->view.path));
    }

    xet_hub_html(b, "</h2>\n");

    if (rows == 0) {
        xet_hub_html(b, "<p>No files.</p>\n");

    } else {
        ngx_http_xet_hub_page_tree_head(r, b);

        for (i = 0; i < ngx_min(rows, NGX_HTTP_XET_HUB_ROWS); i++) {
            (void) ngx_http_xet_row(r, hub_page_tree, i, &entry);
            ngx_http_xet_hub_page_entry(r, paper, &entry);

            if (!entry.folder && paper->file.data == NULL
                && ngx_http_xet_hub_page_fetched(r, paper, &entry.entry)
                   != NGX_OK)
            {
                b->failed = 1;
                return;
            }
        }

        xet_hub_html(b, "</tbody>\n</table>\n");
    }

    if (paper->view.readme.data) {
        paper->file = paper->view.readme;
    }

    ngx_http_xet_hub_page_tree_more(r, paper, rows);
}


static void
ngx_http_xet_hub_page_tree_head(ngx_http_request_t *r, xet_buf_t *b)
{
    ngx_uint_t  bucket;

    bucket = (ngx_http_xet_hub_get(r)->asked.kind == XET_HUB_BUCKET);

    xet_hub_html(b, "<table aria-labelledby=\"files\">\n"
                 "<thead>\n"
                 "<tr><th scope=\"col\">Name</th>"
                 "<th scope=\"col\" class=\"n\">Size</th>");

    if (!bucket) {
        xet_hub_html(b, "<th scope=\"col\">Commit</th>");
    }

    xet_hub_html(b, "<th scope=\"col\">Changed</th></tr>\n"
                 "</thead>\n"
                 "<tbody>\n");
}


static void
ngx_http_xet_hub_page_entry(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper,
    const ngx_http_xet_hub_page_tree_row_t *entry)
{
    xet_buf_t           *b;
    ngx_str_t            name;
    ngx_http_xet_hub_t  *hub;

    b = &paper->b;
    hub = ngx_http_xet_hub_get(r);

    name = entry->entry;

    while (name.len && name.data[name.len - 1] != '/') {
        name.len--;
    }

    name.data += name.len;
    name.len = entry->entry.len - name.len;

    xet_hub_html(b, "<tr><th scope=\"row\"><a href=\"");
    ngx_http_xet_hub_page_url(r, b, hub->asked.kind, &paper->view,
                              entry->folder ? "tree" : "resolve",
                              &entry->entry);
    xet_hub_html(b, "\"><bdi>%t</bdi>%s</a></th>",
                 ngx_http_xet_hub_str(&name), entry->folder ? "/" : "");

    if (entry->folder) {
        xet_hub_html(b, "<td class=\"n\" data-name=\"Kind\">folder</td>");

    } else {
        xet_hub_html(b, "<td class=\"n\" data-name=\"Size\">%b</td>",
                     entry->size);
    }

    if (hub->asked.kind != XET_HUB_BUCKET) {
        xet_hub_html(b, "<td class=\"c\" data-name=\"Commit\"><bdi>%t</bdi>"
                     "</td>", ngx_http_xet_hub_str(&entry->title));
    }

    xet_hub_html(b, "<td data-name=\"Changed\"><time datetime=\"%D\">%d</time>"
                 "</td></tr>\n", (int64_t) entry->at, (int64_t) entry->at);
}


/* Copies the path of the first file, which the sample commands download. */

static ngx_int_t
ngx_http_xet_hub_page_fetched(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper, const ngx_str_t *path)
{
    paper->file.data = ngx_pnalloc(r->pool, path->len);
    if (paper->file.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(paper->file.data, path->data, path->len);
    paper->file.len = path->len;

    return NGX_OK;
}


static void
ngx_http_xet_hub_page_tree_more(ngx_http_request_t *r,
    ngx_http_xet_hub_paper_t *paper, ngx_uint_t rows)
{
    xet_buf_t                        *b;
    ngx_str_t                         cursor;
    ngx_http_xet_hub_page_tree_row_t  entry;

    b = &paper->b;

    if (rows <= NGX_HTTP_XET_HUB_ROWS && paper->after.data == NULL) {
        return;
    }

    xet_hub_html(b, "<nav aria-label=\"Pages\">\n<ul>\n");

    if (paper->after.data) {
        xet_hub_html(b, "<li><a href=\"?\">First page</a></li>\n");
    }

    if (rows > NGX_HTTP_XET_HUB_ROWS) {
        (void) ngx_http_xet_row(r, hub_page_tree, NGX_HTTP_XET_HUB_ROWS - 1,
                                &entry);

        if (ngx_http_xet_hub_cursor(r, NULL, &entry.entry, &cursor) != NGX_OK)
        {
            b->failed = 1;
            return;
        }

        xet_hub_html(b, "<li><a rel=\"next\" href=\"?cursor=%u\">Next page</a>"
                     "</li>\n", ngx_http_xet_hub_str(&cursor));
    }

    xet_hub_html(b, "</ul>\n</nav>\n");
}
