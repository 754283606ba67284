
/*
 * Pages that list repos: all repos that the caller may see, or only those of
 * one kind or one owner, optionally filtered by a part of the name.  Recently
 * changed repos come first.
 *
 *     handler -> arguments -> one statement -> a table
 *
 * A page shows no total, only a link to the next page, if one exists.  The next
 * page continues after the last repo of this page.  A repo that is changed in
 * the meantime moves to the first page, and no other repo is skipped.  A
 * statement examines at most 5,000 repos: if few of them match, the page has
 * fewer rows and still a link to the next page.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub_page.h"


typedef struct {
    ngx_str_t   title;
    ngx_str_t   after;                         /* position that the page starts
                                                  after; data is NULL for the
                                                  first page */
    ngx_uint_t  owner;                         /* 1: only repos of one owner */
    ngx_uint_t  looked;                        /* 1: the statement has examined
                                                  5,000 repos; its last row is
                                                  a position, not a repo */
} ngx_http_xet_hub_page_list_t;


static ngx_int_t ngx_http_xet_hub_page_list(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_http_xet_hub_page_list_t *list);
static ngx_uint_t ngx_http_xet_hub_page_position(const ngx_str_t *after);
static void ngx_http_xet_hub_page_listed(ngx_http_request_t *r, ngx_int_t rc);
static ngx_uint_t ngx_http_xet_hub_page_mine(ngx_http_xet_hub_t *hub);
static void ngx_http_xet_hub_page_search(xet_buf_t *b,
    ngx_http_xet_hub_t *hub);
static void ngx_http_xet_hub_page_table(ngx_http_request_t *r, xet_buf_t *b,
    ngx_uint_t rows);
static void ngx_http_xet_hub_page_first(ngx_http_request_t *r, xet_buf_t *b);
static void ngx_http_xet_hub_page_row(ngx_http_request_t *r, xet_buf_t *b,
    const ngx_http_xet_hub_page_list_row_t *listed);
static void ngx_http_xet_hub_page_more(ngx_http_request_t *r, xet_buf_t *b,
    ngx_uint_t rows);


ngx_int_t
ngx_http_xet_hub_page_root_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_http_xet_hub_page_list_t  *list;

    list = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_page_list_t));
    if (list == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    hub->asked.kind = XET_HUB_KINDS;
    ngx_str_set(&list->title, "Repos");

    return ngx_http_xet_hub_page_list(r, hub, list);
}


ngx_int_t
ngx_http_xet_hub_page_kind_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    const char                    *plural;
    ngx_http_xet_hub_page_list_t  *list;

    list = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_page_list_t));
    if (list == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    plural = xet_hub_kind_plural(hub->asked.kind);

    list->title.data = (u_char *) plural;
    list->title.len = ngx_strlen(plural);

    return ngx_http_xet_hub_page_list(r, hub, list);
}


ngx_int_t
ngx_http_xet_hub_page_owner_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_http_xet_hub_page_list_t  *list;

    list = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_page_list_t));
    if (list == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    hub->asked.kind = XET_HUB_KINDS;
    list->title = hub->asked.owner;
    list->owner = 1;

    return ngx_http_xet_hub_page_list(r, hub, list);
}


static ngx_int_t
ngx_http_xet_hub_page_list(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    ngx_http_xet_hub_page_list_t *list)
{
    ngx_int_t  rc;
    ngx_str_t  search;

    hub->state = list;

    if (ngx_http_xet_hub_arg(r, "search", &search) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!xet_hub_text_ok(search.data, search.len)) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_argument",
                                  "Malformed argument: search");
    }

    if (search.len) {
        hub->asked.name = search;

    } else {
        ngx_str_null(&hub->asked.name);
    }

    hub->filters = hub->asked.name;

    rc = ngx_http_xet_hub_cursor_arg(r, &list->after);

    if (rc != NGX_OK) {
        return rc;
    }

    if (list->after.data && !ngx_http_xet_hub_page_position(&list->after)) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_cursor",
                                  "Malformed cursor");
    }

    /* request one row more than a page shows, to detect a next page */

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_page_list,
                                  ngx_http_xet_hub_page_listed,
                                  .asked = &hub->asked, .after = list->after,
                                  .most = NGX_HTTP_XET_HUB_ROWS + 1));
}


/*
 * Returns whether a position is valid: two numbers of type bigint, separated by
 * "/".
 */

static ngx_uint_t
ngx_http_xet_hub_page_position(const ngx_str_t *after)
{
    u_char    *slash, *last;
    uint64_t   changed, id;

    last = after->data + after->len;
    slash = ngx_strlchr(after->data, last, '/');

    return slash
           && xet_get_decimal(after->data, slash - after->data, &changed)
           && xet_get_decimal(slash + 1, last - slash - 1, &id)
           && changed <= INT64_MAX && id <= INT64_MAX;
}


static void
ngx_http_xet_hub_page_listed(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_buf_t                         b;
    ngx_uint_t                        rows;
    ngx_http_xet_hub_t               *hub;
    ngx_http_xet_hub_page_list_row_t  listed;
    ngx_http_xet_hub_page_list_t     *list;

    hub = ngx_http_xet_hub_get(r);
    list = hub->state;

    if (ngx_http_xet_hub_page_result(r, rc) != NGX_OK) {
        return;
    }

    rows = ngx_http_xet_hub_page_rows(r, rc);

    if (rows) {
        (void) ngx_http_xet_row(r, hub_page_list, rows - 1, &listed);

        list->looked = (listed.repo.data == NULL);
        rows -= list->looked;
    }

    /* send 404 if the owner is not the caller, and has no visible repos */

    if (rows == 0 && list->owner && hub->asked.name.data == NULL
        && list->after.data == NULL && !ngx_http_xet_hub_page_mine(hub))
    {
        ngx_http_finalize_request(r,
            ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "RepoNotFound",
                               "No repositories of this owner"));
        return;
    }

    ngx_http_xet_hub_page_begin(r, &b, &list->title);
    xet_hub_html(&b, "<h1>%t</h1>\n", ngx_http_xet_hub_str(&list->title));

    ngx_http_xet_hub_page_search(&b, hub);
    ngx_http_xet_hub_page_table(r, &b, rows);
    ngx_http_xet_hub_page_more(r, &b, rows);

    ngx_http_finalize_request(r, ngx_http_xet_hub_page_send(r, &b));
}


static ngx_uint_t
ngx_http_xet_hub_page_mine(ngx_http_xet_hub_t *hub)
{
    return xet_hub_space_ok(hub->who.data, hub->who.len)
           && hub->who.len == hub->asked.owner.len
           && ngx_strncasecmp(hub->who.data, hub->asked.owner.data,
                              hub->who.len)
              == 0;
}


/* Writes the search form, which reloads the current page. */

static void
ngx_http_xet_hub_page_search(xet_buf_t *b, ngx_http_xet_hub_t *hub)
{
    xet_hub_html(b, "<form method=\"get\" role=\"search\">\n"
                 "<label for=\"search\">Search repositories</label>\n"
                 "<input type=\"search\" id=\"search\" name=\"search\" "
                 "value=\"%t\">\n"
                 "<button type=\"submit\">Search</button>\n"
                 "</form>\n", ngx_http_xet_hub_str(&hub->asked.name));
}


static void
ngx_http_xet_hub_page_table(ngx_http_request_t *r, xet_buf_t *b,
    ngx_uint_t rows)
{
    ngx_uint_t                        i;
    ngx_http_xet_hub_page_list_row_t  listed;
    ngx_http_xet_hub_page_list_t     *list;

    list = ngx_http_xet_hub_get(r)->state;

    if (rows == 0 && list->looked) {
        xet_hub_html(b, "<p>No match among these 5,000 repositories.</p>\n");
        return;
    }

    if (rows == 0) {
        xet_hub_html(b, "<p>No repositories.</p>\n");
        ngx_http_xet_hub_page_first(r, b);
        return;
    }

    xet_hub_html(b, "<table>\n"
                 "<caption>Recently updated first</caption>\n"
                 "<thead>\n"
                 "<tr><th scope=\"col\">Name</th>"
                 "<th scope=\"col\">Kind</th>"
                 "<th scope=\"col\" class=\"n\">Files</th>"
                 "<th scope=\"col\" class=\"n\">Size</th>"
                 "<th scope=\"col\">Changed</th></tr>\n"
                 "</thead>\n"
                 "<tbody>\n");

    rows = ngx_min(rows, NGX_HTTP_XET_HUB_ROWS);

    for (i = 0; i < rows; i++) {
        (void) ngx_http_xet_row(r, hub_page_list, i, &listed);
        ngx_http_xet_hub_page_row(r, b, &listed);
    }

    xet_hub_html(b, "</tbody>\n</table>\n");
}


/*
 * Shows a command that creates the first repo from a folder, if the caller may
 * create one.  If this server needs no token, the command contains a dummy
 * token.  Otherwise hf would send the user's token of another Hub.
 */

static void
ngx_http_xet_hub_page_first(ngx_http_request_t *r, xet_buf_t *b)
{
    xet_hub_kind_e            kind;
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_loc_conf_t  *xlcf;

    hub = ngx_http_xet_hub_get(r);
    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    kind = hub->asked.kind;

    if (hub->asked.name.len || kind == XET_HUB_SPACE || kind == XET_HUB_BUCKET
        || !xet_hub_space_ok(hub->who.data, hub->who.len))
    {
        return;
    }

    xet_hub_html(b, "<h2>Upload</h2>\n<pre><code>HF_ENDPOINT=%w%s hf upload "
                 "%p/%s .%s</code></pre>\n",
                 ngx_http_xet_hub_str(&hub->base),
                 (xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN || xlcf->hub_user)
                     ? "" : " HF_TOKEN=hf_any",
                 ngx_http_xet_hub_str(&hub->who),
                 (kind == XET_HUB_DATASET) ? "texts" : "model",
                 (kind == XET_HUB_DATASET) ? " --repo-type dataset" : "");
}


static void
ngx_http_xet_hub_page_row(ngx_http_request_t *r, xet_buf_t *b,
    const ngx_http_xet_hub_page_list_row_t *listed)
{
    int64_t         at;
    xet_hub_kind_e  kind;

    at = (int64_t) listed->changed / 1000000;
    kind = listed->kind & (XET_HUB_KINDS - 1);

    xet_hub_html(b, "<tr><th scope=\"row\"><a href=\"");
    ngx_http_xet_hub_page_repo_url(r, b, kind, &listed->repo);

    xet_hub_html(b, "\">%t</a>%s</th><td data-name=\"Kind\">%s</td>",
                 ngx_http_xet_hub_str(&listed->repo),
                 listed->private ? " (private)" : "",
                 xet_hub_kind_name(kind));

    if (listed->files < 0) {
        xet_hub_html(b, "<td class=\"n\" data-name=\"Files\">unknown</td>"
                     "<td class=\"n\" data-name=\"Size\">unknown</td>");

    } else {
        xet_hub_html(b, "<td class=\"n\" data-name=\"Files\">%n</td>"
                     "<td class=\"n\" data-name=\"Size\">%b</td>",
                     (uint64_t) listed->files, (uint64_t) listed->bytes);
    }

    xet_hub_html(b, "<td data-name=\"Changed\"><time datetime=\"%D\">%d</time>"
                 "</td></tr>\n", at, at);
}


static void
ngx_http_xet_hub_page_more(ngx_http_request_t *r, xet_buf_t *b,
    ngx_uint_t rows)
{
    u_char                            text[2 * NGX_INT64_LEN + 2];
    ngx_str_t                         after, cursor;
    ngx_http_xet_hub_t               *hub;
    ngx_http_xet_hub_page_list_row_t  listed;
    ngx_http_xet_hub_page_list_t     *list;

    hub = ngx_http_xet_hub_get(r);
    list = hub->state;

    if (rows <= NGX_HTTP_XET_HUB_ROWS && !list->looked
        && list->after.data == NULL)
    {
        return;
    }

    xet_hub_html(b, "<nav aria-label=\"Pages\">\n<ul>\n");

    if (list->after.data) {
        xet_hub_html(b, "<li><a href=\"?search=%u\">First page</a></li>\n",
                     ngx_http_xet_hub_str(&hub->asked.name));
    }

    if (rows > NGX_HTTP_XET_HUB_ROWS || list->looked) {
        (void) ngx_http_xet_row(r, hub_page_list,
                                list->looked ? rows
                                             : NGX_HTTP_XET_HUB_ROWS - 1,
                                &listed);

        after.data = text;
        after.len = ngx_sprintf(text, "%L/%L", listed.changed, listed.id)
                    - text;

        if (ngx_http_xet_hub_cursor(r, NULL, &after, &cursor) != NGX_OK) {
            b->failed = 1;
            return;
        }

        xet_hub_html(b, "<li><a rel=\"next\" href=\"?search=%u&amp;cursor=%u\">"
                     "Next page</a></li>\n",
                     ngx_http_xet_hub_str(&hub->asked.name),
                     ngx_http_xet_hub_str(&cursor));
    }

    xet_hub_html(b, "</ul>\n</nav>\n");
}
