
/*
 * Common parts of the web pages of a Hub: frame, headers, and errors.
 *
 * Pages have no scripts and load no other files: the style sheet is inline, and
 * the content security policy contains its digest.  The contents depend on the
 * caller, so only the browser may cache a page, and it revalidates the page
 * each time.  The entity tag is a digest of the page, so the response for an
 * unchanged page is 304.
 *
 * xet_hub_html() escapes all inserted values.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_hub_page.h"

#include <openssl/evp.h>


#define NGX_HTTP_XET_HUB_DIGEST  32            /* bytes of a SHA-256 */


static void ngx_http_xet_hub_page_end(ngx_http_request_t *r, xet_buf_t *b);
static ngx_int_t ngx_http_xet_hub_page_headers(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_hub_page_policy(ngx_http_request_t *r,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_page_etag(ngx_http_request_t *r,
    xet_buf_t *b, ngx_str_t *etag);
static void ngx_http_xet_hub_page_who(ngx_http_request_t *r, xet_buf_t *b);


static const char  ngx_http_xet_hub_style[] =
#include "hub_style.inc"
;


void
ngx_http_xet_hub_page_begin(ngx_http_request_t *r, xet_buf_t *b,
    const ngx_str_t *title)
{
    ngx_uint_t           kind;
    const char          *plural;
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    xet_buf_init(b, ngx_http_xet_alloc, r->pool, 16384);

    xet_hub_html(b, "<!DOCTYPE html>\n"
                 "<html lang=\"en\">\n"
                 "<head>\n"
                 "<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, "
                 "initial-scale=1\">\n"
                 "<meta name=\"color-scheme\" content=\"light dark\">\n"
                 "<title>%t</title>\n"
                 "<style>", ngx_http_xet_hub_str(title));

    xet_buf_write(b, ngx_http_xet_hub_style,
                  sizeof(ngx_http_xet_hub_style) - 1);

    xet_hub_html(b, "</style>\n"
                 "</head>\n"
                 "<body>\n"
                 "<header>\n"
                 "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n"
                 "<nav aria-label=\"Hub\">\n"
                 "<ul>\n"
                 "<li><a href=\"%p/\">All repos</a></li>\n",
                 ngx_http_xet_hub_str(&hub->root));

    for (kind = XET_HUB_MODEL; kind < XET_HUB_KINDS; kind++) {
        plural = xet_hub_kind_plural(kind);

        xet_hub_html(b, "<li><a href=\"%p/%s\">%s</a></li>\n",
                     ngx_http_xet_hub_str(&hub->root), plural, plural);
    }

    ngx_http_xet_hub_page_who(r, b);

    xet_hub_html(b, "</ul>\n"
                 "</nav>\n"
                 "</header>\n"
                 "<main id=\"main\">\n");
}


/*
 * Shows the caller's name, or a link to sign in.  Shows nothing if the server
 * does not use tokens.
 */

static void
ngx_http_xet_hub_page_who(ngx_http_request_t *r, xet_buf_t *b)
{
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_loc_conf_t  *xlcf;

    hub = ngx_http_xet_hub_get(r);
    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->auth != NGX_HTTP_XET_AUTH_TOKEN) {
        return;
    }

    if (hub->who.len == 0) {
        xet_hub_html(b, "<li><a href=\"%p/?sign-in=1\">Sign in</a></li>\n",
                     ngx_http_xet_hub_str(&hub->root));
        return;
    }

    if (xet_hub_space_ok(hub->who.data, hub->who.len)) {
        xet_hub_html(b, "<li><a href=\"%p/%p\">Signed in as %t</a></li>\n",
                     ngx_http_xet_hub_str(&hub->root),
                     ngx_http_xet_hub_str(&hub->who),
                     ngx_http_xet_hub_str(&hub->who));
    }
}


static void
ngx_http_xet_hub_page_end(ngx_http_request_t *r, xet_buf_t *b)
{
    xet_hub_html(b, "</main>\n"
                 "<footer class=\"soft\">\n"
                 "<p>xet %s. Times are UTC.</p>\n"
                 "</footer>\n"
                 "</body>\n"
                 "</html>\n", XET_VERSION);
}


ngx_int_t
ngx_http_xet_hub_page_send(ngx_http_request_t *r, xet_buf_t *b)
{
    ngx_int_t               rc;
    ngx_http_xet_content_t  content;

    /* the page's headers are set now, so a later error must not be a page */

    ngx_http_xet_ctx(r)->refuse = NULL;

    ngx_http_xet_hub_page_end(r, b);

    ngx_memzero(&content, sizeof(ngx_http_xet_content_t));

    if (ngx_http_xet_hub_page_etag(r, b, &content.etag) != NGX_OK
        || ngx_http_xet_hub_page_headers(r) != NGX_OK
        || ngx_http_xet_header(r, "Cache-Control", "private, no-cache")
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_xet_content_conditions(r, &content);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    r->headers_out.etag = ngx_http_xet_header_add(r, "ETag", &content.etag);

    if (r->headers_out.etag == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_send(r, NGX_HTTP_OK, "text/html; charset=utf-8", b);
}


ngx_int_t
ngx_http_xet_hub_page_refuse(ngx_http_request_t *r,
    const ngx_http_xet_error_t *error)
{
    size_t                 i;
    xet_buf_t              b;
    ngx_str_t              title;
    const char            *text;
    ngx_http_xet_hub_t    *hub;
    ngx_http_xet_error_t   page;

    static const struct {
        ngx_uint_t   status;
        const char  *title;
        const char  *text;
    } texts[] = {
        { 400, "Bad request", "This address is malformed." },
        { 401, "Sign in", "This server requires a token: enter it as the "
                          "password, with any user name." },
        { 403, "Not allowed", "The token does not allow this." },
        { 404, "Not found", "The page does not exist, or you have no access." },
        { 405, "Not a page", "There is no page at this address." },
        { 503, "Not now", "The server is unavailable. Try again later." }
    };

    ngx_str_set(&title, "Error");
    text = "The request failed.";

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {

        if (texts[i].status == error->status) {
            title.data = (u_char *) texts[i].title;
            title.len = ngx_strlen(texts[i].title);
            text = texts[i].text;
        }
    }

    ngx_http_xet_hub_page_begin(r, &b, &title);

    xet_hub_html(&b, "<h1>%t</h1>\n<p>%s</p>\n", ngx_http_xet_hub_str(&title),
                 text);

    hub = ngx_http_xet_hub_get(r);

    if (error->status == NGX_HTTP_NOT_FOUND && hub->asked.owner.len) {
        xet_hub_html(&b, "<p class=\"soft\">%s</p>\n", error->message);
    }

    ngx_http_xet_hub_page_end(r, &b);

    if (ngx_http_xet_hub_page_headers(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    page = *error;
    page.body = &b;
    page.type = "text/html; charset=utf-8";

    return ngx_http_xet_error_send(r, &page);
}


static ngx_int_t
ngx_http_xet_hub_page_headers(ngx_http_request_t *r)
{
    ngx_str_t  policy;

    if (ngx_http_xet_hub_page_policy(r, &policy) != NGX_OK
        || ngx_http_xet_header_add(r, "Content-Security-Policy", &policy)
           == NULL
        || ngx_http_xet_header(r, "X-Content-Type-Options", "nosniff")
           != NGX_OK
        || ngx_http_xet_header(r, "Referrer-Policy", "no-referrer") != NGX_OK
        || ngx_http_xet_header(r, "Vary", "Authorization") != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_page_policy(ngx_http_request_t *r, ngx_str_t *value)
{
    u_char      digest[NGX_HTTP_XET_HUB_DIGEST];
    u_char      text[ngx_base64_encoded_length(NGX_HTTP_XET_HUB_DIGEST)];
    ngx_str_t   src, dst;

    static const char  fmt[] = "default-src 'none'; style-src 'sha256-%V'; "
                               "form-action 'self'; base-uri 'none'; "
                               "frame-ancestors 'none'";

    if (EVP_Digest(ngx_http_xet_hub_style, sizeof(ngx_http_xet_hub_style) - 1,
                   digest, NULL, EVP_sha256(), NULL)
        != 1)
    {
        return NGX_ERROR;
    }

    src.data = digest;
    src.len = sizeof(digest);
    dst.data = text;

    ngx_encode_base64(&dst, &src);

    value->data = ngx_pnalloc(r->pool, sizeof(fmt) + sizeof(text));
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = ngx_sprintf(value->data, fmt, &dst) - value->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_page_etag(ngx_http_request_t *r, xet_buf_t *b,
    ngx_str_t *etag)
{
    u_char                *p;
    xet_buf_node_t        *node;
    xet_checksum_t         sum;
    xet_checksum_state_t  *state;

    if (xet_buf_status(b) != XET_OK) {
        return NGX_ERROR;
    }

    state = xet_checksum_create();
    if (state == NULL) {
        return NGX_ERROR;
    }

    for (node = b->first; node; node = node->next) {
        xet_checksum_update(state, node->start, node->pos - node->start);
    }

    xet_checksum_finish(state, &sum);
    xet_checksum_destroy(state);

    p = ngx_pnalloc(r->pool, 2 * XET_CHECKSUM_LEN + 2);
    if (p == NULL) {
        return NGX_ERROR;
    }

    etag->data = p;

    *p++ = '"';
    p = ngx_hex_dump(p, sum.bytes, XET_CHECKSUM_LEN);
    *p++ = '"';

    etag->len = p - etag->data;

    return NGX_OK;
}


void
ngx_http_xet_hub_page_repo_url(ngx_http_request_t *r, xet_buf_t *b,
    xet_hub_kind_e kind, const ngx_str_t *repo)
{
    xet_hub_html(b, "%p/",
                 ngx_http_xet_hub_str(&ngx_http_xet_hub_get(r)->root));

    if (kind != XET_HUB_MODEL) {
        xet_hub_html(b, "%s/", xet_hub_kind_plural(kind));
    }

    xet_hub_html(b, "%p", ngx_http_xet_hub_str(repo));
}


void
ngx_http_xet_hub_page_url(ngx_http_request_t *r, xet_buf_t *b,
    xet_hub_kind_e kind, const ngx_http_xet_hub_view_t *view,
    const char *verb, const ngx_str_t *path)
{
    ngx_http_xet_hub_page_repo_url(r, b, kind, &view->repo);

    xet_hub_html(b, "/%s", verb);

    if (kind != XET_HUB_BUCKET) {
        xet_hub_html(b, "/%u", ngx_http_xet_hub_str(&view->rev));
    }

    if (path->len) {
        xet_hub_html(b, "/%p", ngx_http_xet_hub_str(path));
    }
}


ngx_int_t
ngx_http_xet_hub_page_result(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_OK || rc == NGX_DECLINED) {
        return NGX_OK;
    }

    ngx_http_xet_query_failed(r, rc);

    return NGX_DONE;
}


ngx_uint_t
ngx_http_xet_hub_page_rows(ngx_http_request_t *r, ngx_int_t rc)
{
    return (rc == NGX_OK)
           ? ngx_http_xet_query_rows(ngx_http_xet_ctx_of(r)->query) : 0;
}
