
/*
 * Functions that all Hub routes use.  They send JSON and errors that PostgreSQL
 * returns, add links to the next page, and get arguments of requests.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_upload.h"


/* size of a message: XET_HUB_PART_MAX bytes, and the text around them */
#define NGX_HTTP_XET_HUB_UNSAFE  384


static ngx_int_t ngx_http_xet_hub_named_key(ngx_http_request_t *r,
    xet_status_t status, const xet_hub_refusal_t *refusal);
static void ngx_http_xet_hub_why(ngx_http_request_t *r, ngx_str_t *message);
static ngx_int_t ngx_http_xet_hub_resend(ngx_http_request_t *r,
    const ngx_http_xet_hub_body_t *body);
static ngx_int_t ngx_http_xet_hub_moved(ngx_http_request_t *r,
    const ngx_str_t *id);


ngx_int_t
ngx_http_xet_hub_status(ngx_http_request_t *r, xet_status_t status)
{
    const xet_hub_refusal_t  *refusal;

    refusal = ngx_http_xet_hub_get(r)->refusal;

    if (status == XET_HUB_UNSAFE && refusal) {
        return ngx_http_xet_hub_unsafe(r, NGX_HTTP_BAD_REQUEST, refusal);
    }

    if ((status == XET_HUB_KEY || status == XET_HUB_VALUE
         || status == XET_HUB_PATH || status == XET_HUB_DEPTH)
        && refusal)
    {
        return ngx_http_xet_hub_named_key(r, status, refusal);
    }

    if (status == XET_QUOTA) {
        return ngx_http_xet_error_more(r, .core = status,
                                       .message = ngx_http_xet_quota_text(r));
    }

    return ngx_http_xet_error_status(r, status);
}


/* Sends an error that contains a key or path of the body, or an argument. */

static ngx_int_t
ngx_http_xet_hub_named_key(ngx_http_request_t *r, xet_status_t status,
    const xet_hub_refusal_t *refusal)
{
    u_char  text[NGX_HTTP_XET_HUB_UNSAFE];

    if (status == XET_HUB_KEY) {
        *ngx_snprintf(text, sizeof(text) - 1,
                      "Unknown key \"%*s\": this server would ignore it",
                      refusal->len, refusal->part)
            = '\0';

    } else if (status == XET_HUB_PATH) {
        *ngx_snprintf(text, sizeof(text) - 1,
                      "Invalid file path \"%*s\": it is too long, has a"
                      " control character, or a part that is empty, \".\" or"
                      " \"..\"",
                      refusal->len, refusal->part)
            = '\0';

    } else if (status == XET_HUB_DEPTH) {
        *ngx_snprintf(text, sizeof(text) - 1,
                      "The file path \"%*s\" has more folders than this server"
                      " allows",
                      refusal->len, refusal->part)
            = '\0';

    } else {
        *ngx_snprintf(text, sizeof(text) - 1, "The key \"%*s\" %s",
                      refusal->len, refusal->part, refusal->wants)
            = '\0';
    }

    return ngx_http_xet_error_more(r, .core = status,
                                   .status = NGX_HTTP_BAD_REQUEST,
                                   .message = (char *) text);
}


ngx_int_t
ngx_http_xet_hub_unsafe(ngx_http_request_t *r, ngx_uint_t status,
    const xet_hub_refusal_t *refusal)
{
    u_char  text[NGX_HTTP_XET_HUB_UNSAFE];

    *ngx_snprintf(text, sizeof(text) - 1,
                  "A file path must not contain \"%*s\": it %s",
                  refusal->len, refusal->part,
                  xet_hub_risk_text(refusal->risk))
        = '\0';

    return ngx_http_xet_error_more(r, .core = XET_HUB_UNSAFE, .status = status,
                                   .message = (char *) text);
}


ngx_int_t
ngx_http_xet_hub_much(ngx_http_request_t *r)
{
    return ngx_http_xet_error(r, NGX_HTTP_TOO_MANY_REQUESTS, "too_much_staged",
                              "Too many staged operations of unfinished "
                              "commits; send this again when they are "
                              "finished");
}


ngx_uint_t
ngx_http_xet_hub_staged(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return 0;
    }

    if (ngx_http_xet_query_number(r) == 0) {
        ngx_http_finalize_request(r, ngx_http_xet_hub_much(r));
        return 0;
    }

    return 1;
}


ngx_int_t
ngx_http_xet_hub_deny(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message)
{
    r->main->count++;

    ngx_http_finalize_request(r, ngx_http_xet_error(r, status, code, message));

    return NGX_DONE;
}


ngx_int_t
ngx_http_xet_hub_deny_status(ngx_http_request_t *r, xet_status_t status)
{
    return ngx_http_xet_hub_deny(r, xet_status_http(status),
                                 xet_status_code(status),
                                 xet_status_text(status));
}


ngx_int_t
ngx_http_xet_hub_deny_key(ngx_http_request_t *r, xet_status_t status,
    const xet_hub_refusal_t *refusal)
{
    r->main->count++;

    ngx_http_finalize_request(r, ngx_http_xet_hub_named_key(r, status,
                                                            refusal));

    return NGX_DONE;
}


void
ngx_http_xet_hub_wait(ngx_http_request_t *r, ngx_int_t rc)
{
    rc = ngx_http_xet_query_asked(r, rc);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


ngx_int_t
ngx_http_xet_hub_refuse(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer)
{
    u_char     *code, *message;
    ngx_int_t   rc;

    if (answer->status == NGX_HTTP_TEMPORARY_REDIRECT) {
        return ngx_http_xet_hub_moved(r, &answer->more);
    }

    if (answer->status == NGX_HTTP_NOT_FOUND
        && ngx_http_xet_hub_is(&answer->code, "RepoNotFound")
        && ngx_http_xet_hub_is(&answer->more, "elsewhere"))
    {
        rc = ngx_http_xet_hub_upstream(r);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    if (answer->status == NGX_HTTP_FORBIDDEN) {
        ngx_http_xet_hub_why(r, &answer->message);
    }

    code = ngx_pnalloc(r->pool, answer->code.len + 1);
    message = ngx_pnalloc(r->pool, answer->message.len + 1);

    if (code == NULL || message == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    *ngx_cpymem(code, answer->code.data, answer->code.len) = '\0';
    *ngx_cpymem(message, answer->message.data, answer->message.len) = '\0';

    return ngx_http_xet_error(r, answer->status, (char *) code,
                              (char *) message);
}


/*
 * Adds to the message that a user name must be in canonical form to have a name
 * space.  Otherwise users would not understand why "Dora" may not write to
 * "dora/m".
 */

static void
ngx_http_xet_hub_why(ngx_http_request_t *r, ngx_str_t *message)
{
    u_char              *p;
    ngx_str_t            said;
    ngx_http_xet_hub_t  *hub;

    static const char  why[] = ". The subject \"%V\" is not in canonical form"
                               " (lower case ASCII), so it has no name space";

    hub = ngx_http_xet_hub_get(r);

    if (hub->who.len == 0 || hub->who.len > XET_HUB_NAME_MAX
        || xet_hub_space_ok(hub->who.data, hub->who.len))
    {
        return;
    }

    said = *message;

    p = ngx_pnalloc(r->pool, said.len + sizeof(why) + hub->who.len);
    if (p == NULL) {
        return;
    }

    message->data = p;
    message->len = ngx_sprintf(ngx_cpymem(p, said.data, said.len), why,
                               &hub->who)
                   - p;
}


/*
 * A commit rejects paths that are unsafe for clients, so such paths are not
 * fetched from the other Hub either.
 */

ngx_int_t
ngx_http_xet_hub_upstream(ngx_http_request_t *r)
{
    ngx_str_t                 name;
    xet_hub_text_t            path;
    xet_hub_refusal_t         refusal;
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_loc_conf_t  *xlcf;

    hub = ngx_http_xet_hub_get(r);
    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->hub_upstream == NULL
        || !(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD) || hub->body)
        || hub->match->route->right != NGX_HTTP_XET_READS
        || hub->match->route->act != NGX_HTTP_XET_LOOK
        || hub->asked.kind == XET_HUB_BUCKET)
    {
        return NGX_DECLINED;
    }

    if (ngx_http_complex_value(r, xlcf->hub_upstream, &name) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (name.len == 0) {
        return NGX_DECLINED;
    }

    if (hub->unsafe) {
        return ngx_http_xet_hub_unsafe(r, NGX_HTTP_FORBIDDEN, hub->unsafe);
    }

    if (hub->body && ngx_http_xet_hub_resend(r, hub->body) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    path.data = hub->path.data;
    path.len = hub->path.len;

    if (path.len && xet_hub_path_check(&path, &refusal) == XET_HUB_UNSAFE) {
        return ngx_http_xet_hub_unsafe(r, NGX_HTTP_FORBIDDEN, &refusal);
    }

    return ngx_http_named_location(r, &name);
}


/* Returns the body to nginx, which sends it to the other Hub. */

static ngx_int_t
ngx_http_xet_hub_resend(ngx_http_request_t *r,
    const ngx_http_xet_hub_body_t *body)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    b = ngx_calloc_buf(r->pool);
    cl = ngx_alloc_chain_link(r->pool);

    if (b == NULL || cl == NULL || r->request_body == NULL) {
        return NGX_ERROR;
    }

    b->start = body->text;
    b->pos = body->text;
    b->last = body->text + body->len;
    b->end = b->last;
    b->memory = 1;

    cl->buf = b;
    cl->next = NULL;

    r->request_body->bufs = body->len ? cl : NULL;
    r->request_body_no_buffering = 0;
    r->headers_in.content_length_n = (off_t) body->len;
    r->headers_in.chunked = 0;

    return NGX_OK;
}


/*
 * Redirects to the same path with the new name of the repo.  The status is
 * 307, which keeps the method; after a 301 clients would send a GET.
 *
 * Location has no scheme and host, because huggingface_hub before 2.0 and the
 * Rust crate hf-hub follow only such a redirect.  nginx would add its own
 * scheme, name and port if r->headers_out.location were set.
 */

static ngx_int_t
ngx_http_xet_hub_moved(ngx_http_request_t *r, const ngx_str_t *id)
{
    u_char              *p, *start, *end, *last;
    ngx_str_t           *uri, location, none, after, cursor;
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);
    uri = &r->unparsed_uri;
    last = uri->data + uri->len;

    /* a cursor contains the name of the repo */

    if (ngx_http_xet_hub_cursor_get(r, &after) != NGX_OK) {
        ngx_str_null(&after);
    }

    ngx_str_null(&cursor);

    if (after.data) {

        if (ngx_http_xet_hub_cursor(r, id, &after, &cursor) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        p = ngx_strlchr(uri->data, last, '?');
        last = p ? p : last;
    }

    start = (u_char *) hub->match->args.target.id.data;

    /*
     * if the name is in the body, or the path was rewritten, the new URL is
     * unknown
     */

    if (start == NULL || start < uri->data
        || start + hub->match->args.target.id.len > uri->data + uri->len)
    {
        return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "RepoNotFound",
                                  "The repository was renamed");
    }

    end = start + hub->match->args.target.id.len;

    location.len = hub->prefix.len + uri->len + id->len
                   + ngx_http_xet_hub_cursor_room(r, &cursor);
    location.data = ngx_pnalloc(r->pool, location.len);

    if (location.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_cpymem(location.data, hub->prefix.data, hub->prefix.len);
    p = ngx_cpymem(p, uri->data, start - uri->data);
    p = ngx_cpymem(p, id->data, id->len);
    p = ngx_cpymem(p, end, last - end);

    if (cursor.data) {
        p = ngx_http_xet_hub_cursor_put(r, p, &cursor);
    }

    location.len = p - location.data;

    if (ngx_http_xet_header_add(r, "Location", &location) == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&none, "{}");

    return ngx_http_xet_hub_json(r, NGX_HTTP_TEMPORARY_REDIRECT, &none);
}


ngx_int_t
ngx_http_xet_hub_json(ngx_http_request_t *r, ngx_uint_t status,
    const ngx_str_t *json)
{
    xet_buf_t  b;

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, json->len);
    xet_buf_write(&b, json->data, json->len);

    return ngx_http_xet_hub_send(r, status, "application/json", &b);
}


ngx_int_t
ngx_http_xet_hub_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, xet_buf_t *json)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_hub_headers(r);

    return (rc == NGX_OK) ? ngx_http_xet_send(r, status, type, json) : rc;
}


ngx_int_t
ngx_http_xet_hub_headers(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    /* unread bytes of the body must not be parsed as the next request */

    rc = ngx_http_xet_drop_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return (ngx_http_xet_header(r, "Cache-Control", "no-store") == NGX_OK)
           ? NGX_OK : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


ngx_int_t
ngx_http_xet_hub_row(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_xet_hub_answer_t *answer)
{
    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return NGX_DONE;
    }

    ngx_http_xet_query_hub_get(r, answer);

    if (answer->status != NGX_HTTP_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_hub_refuse(r, answer));
        return NGX_DONE;
    }

    return NGX_OK;
}


void
ngx_http_xet_hub_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_str_t                  none;
    ngx_http_xet_hub_answer_t  answer;

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    ngx_str_set(&none, "{}");

    ngx_http_finalize_request(r, ngx_http_xet_hub_json(r, NGX_HTTP_OK,
                                     answer.body.data ? &answer.body : &none));
}


void
ngx_http_xet_hub_added(ngx_http_request_t *r, ngx_int_t rc)
{
    if (ngx_http_xet_hub_over(r, rc) == NGX_OK) {
        ngx_http_xet_hub_answered(r, rc);
    }
}


ngx_int_t
ngx_http_xet_hub_over(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_over_t  over;

    if (rc != NGX_ABORT || !ngx_http_xet_query_quota_over(r, &over)) {
        return NGX_OK;
    }

    ngx_http_finalize_request(r,
        ngx_http_xet_error_more(r, .core = XET_QUOTA,
                                .message = ngx_http_xet_quota_text(r)));

    return NGX_DONE;
}


/* Sends the response body from the statement, with a link to the next page. */

void
ngx_http_xet_hub_paged(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_answer_t  answer;

    if (rc == NGX_OK) {
        ngx_http_xet_query_hub_get(r, &answer);

        if (answer.status == NGX_HTTP_OK && answer.more.data
            && ngx_http_xet_hub_next(r, &answer.more) != NGX_OK)
        {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }
    }

    ngx_http_xet_hub_answered(r, rc);
}


ngx_int_t
ngx_http_xet_hub_cursor_arg(ngx_http_request_t *r, ngx_str_t *after)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_hub_cursor_get(r, after);

    if (rc == NGX_DECLINED) {
        return ngx_http_xet_hub_deny(r, NGX_HTTP_BAD_REQUEST,
                                     "invalid_cursor",
                                     "The cursor is not from a page of this"
                                     " list");
    }

    return (rc == NGX_OK) ? NGX_OK : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


ngx_int_t
ngx_http_xet_hub_next(ngx_http_request_t *r, const ngx_str_t *after)
{
    ngx_str_t  cursor;

    return (ngx_http_xet_hub_cursor(r, NULL, after, &cursor) == NGX_OK)
           ? ngx_http_xet_hub_next_link(r, &cursor) : NGX_ERROR;
}


/*
 * Adds a Link header with the URL of the request and a new cursor.  The URL is
 * absolute, because clients use it unchanged.
 */

ngx_int_t
ngx_http_xet_hub_next_link(ngx_http_request_t *r, const ngx_str_t *cursor)
{
    u_char              *p, *arg;
    ngx_str_t            link, path;
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);
    path = r->unparsed_uri;
    arg = ngx_strlchr(path.data, path.data + path.len, '?');

    if (arg) {
        path.len = arg - path.data;
    }

    link.data = ngx_pnalloc(r->pool, sizeof("<>; rel=\"next\"")
                                     + hub->origin.len + path.len
                                     + ngx_http_xet_hub_cursor_room(r,
                                                                    cursor));
    if (link.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(link.data, "<%V%V", &hub->origin, &path);
    p = ngx_http_xet_hub_cursor_put(r, p, cursor);
    p = ngx_cpymem(p, ">; rel=\"next\"", sizeof(">; rel=\"next\"") - 1);

    link.len = p - link.data;

    return ngx_http_xet_header_add(r, "Link", &link) ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_xet_hub_page(ngx_http_request_t *r, xet_hub_kind_e kind,
    const ngx_str_t *id, ngx_str_t *page)
{
    u_char      *p;
    const char  *plural;

    plural = xet_hub_kind_plural(kind);

    page->data = ngx_pnalloc(r->pool, ngx_strlen(plural) + id->len + 3);
    if (page->data == NULL) {
        return NGX_ERROR;
    }

    p = (kind == XET_HUB_MODEL) ? ngx_sprintf(page->data, "/%V", id)
                                : ngx_sprintf(page->data, "/%s/%V", plural,
                                              id);
    page->len = p - page->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_hub_url(ngx_http_request_t *r, const ngx_str_t *id,
    const ngx_str_t *commit, ngx_str_t *url)
{
    u_char              *p;
    ngx_str_t            page;
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    if (ngx_http_xet_hub_page(r, hub->asked.kind, id, &page) != NGX_OK) {
        return NGX_ERROR;
    }

    url->data = ngx_pnalloc(r->pool, hub->base.len + page.len
                                     + sizeof("/commit/") - 1
                                     + (commit ? commit->len : 0));
    if (url->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(url->data, "%V%V", &hub->base, &page);

    if (commit) {
        p = ngx_sprintf(p, "/commit/%V", commit);
    }

    url->len = p - url->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_hub_header(ngx_http_request_t *r, const char *key,
    const char *format, ...)
{
    u_char     *p;
    va_list     args;
    ngx_str_t   value;

    u_char  text[NGX_HTTP_XET_HUB_HEADER];

    va_start(args, format);
    p = ngx_vslprintf(text, text + sizeof(text), format, args);
    va_end(args);

    value.len = p - text;
    value.data = ngx_pnalloc(r->pool, value.len);

    if (value.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(value.data, text, value.len);

    return ngx_http_xet_header_add(r, key, &value) ? NGX_OK : NGX_ERROR;
}
