
/*
 * Cards: the metadata of README.md.  The route validate-yaml checks a text; a
 * commit that puts a README.md reads its card.
 *
 *     wanted (query)   finds the file that the commit puts at README.md, if its
 *                      card is not known
 *     read   (jobs)    reads its beginning, and parses the card in a thread
 *                      (ngx_http_xet_hub_text.c)
 *     put    (query)   stores the card for all repos that have the file
 *
 * A commit whose card is broken is refused, as other Hubs do: clients that read
 * the card later would fail.
 *
 * Memory: up to XET_HUB_CARD_MAX bytes of the file, and its card.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_YAML_BODY  (8 * 1024 * 1024)

/* the bytes of a file that are read: the YAML and its first and last line */

#define NGX_HTTP_XET_HUB_README     (XET_HUB_CARD_MAX + 4096)


struct ngx_http_xet_hub_card_s {
    xet_hash_t              file;
    ngx_str_t               store;     /* internal repo name */
    char                   *json;      /* malloc()ed; NULL: no card */
    size_t                  json_len;
    xet_hub_card_error_t    error;
    void                  (*done)(ngx_http_request_t *r);
};


typedef struct {
    xet_status_t            status;
    xet_hub_card_error_t    error;
} ngx_http_xet_hub_yaml_t;


static xet_status_t ngx_http_xet_hub_yaml_parse(void *data, u_char *text,
    size_t len);
static void ngx_http_xet_hub_yaml_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_yaml_json(xet_buf_t *b,
    const xet_hub_card_error_t *error);
static void ngx_http_xet_hub_card_cleanup(void *data);
static void ngx_http_xet_hub_card_wanted(ngx_http_request_t *r, ngx_int_t rc);
static xet_status_t ngx_http_xet_hub_card_parse(void *data,
    const u_char *text, size_t len);
static void ngx_http_xet_hub_card_read(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_hub_card_stored(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_card_refuse(ngx_http_request_t *r,
    const xet_hub_card_error_t *error);


ngx_int_t
ngx_http_xet_hub_yaml_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_http_xet_hub_yaml_t  *yaml;

    yaml = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_yaml_t));
    if (yaml == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_hub_read(r, NGX_HTTP_XET_HUB_YAML_BODY,
                                 ngx_http_xet_hub_yaml_parse,
                                 ngx_http_xet_hub_yaml_read, yaml);
}


static xet_status_t
ngx_http_xet_hub_yaml_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_yaml_t *yaml = data;

    yaml->status = xet_hub_card_check(text, len, &yaml->error);

    return (yaml->status == XET_HUB_CARD) ? XET_OK : yaml->status;
}


/* Sends the error in the forms that clients of this route show. */

static void
ngx_http_xet_hub_yaml_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_yaml_t *yaml = data;

    xet_buf_t         b;
    const char       *type;
    ngx_table_elt_t  *accept;

    if (yaml->status == XET_OK) {
        ngx_http_finalize_request(r,
            ngx_http_xet_send_literal(r, "{\"errors\":[],\"warnings\":[]}"));
        return;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 512);

    accept = ngx_http_xet_header_find(&r->headers_in.headers, "Accept", 0);

    if (accept && accept->value.len == sizeof("text/plain") - 1
        && ngx_strncasecmp(accept->value.data, (u_char *) "text/plain",
                           accept->value.len)
           == 0)
    {
        type = "text/plain";
        xet_buf_write(&b, "- Error: ", sizeof("- Error: ") - 1);
        xet_buf_write(&b, yaml->error.text, ngx_strlen(yaml->error.text));

    } else {
        type = "application/json";
        ngx_http_xet_hub_yaml_json(&b, &yaml->error);
    }

    if (ngx_http_xet_hub_header(r, "X-Error-Message", "%s", yaml->error.text)
        != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_http_finalize_request(r,
        ngx_http_xet_error_more(r, .core = XET_HUB_CARD,
                                .message = yaml->error.text, .type = type,
                                .body = &b));
}


static void
ngx_http_xet_hub_yaml_json(xet_buf_t *b, const xet_hub_card_error_t *error)
{
    xet_json_t  j;

    xet_json_init(&j, b);

    xet_json_object_begin(&j);
    xet_json_put_cstring(&j, "error", error->text);
    xet_json_key(&j, "errors");
    xet_json_array_begin(&j);
    xet_json_object_begin(&j);
    xet_json_put_cstring(&j, "message", error->text);
    xet_json_object_end(&j);
    xet_json_array_end(&j);
    xet_json_key(&j, "warnings");
    xet_json_array_begin(&j);
    xet_json_array_end(&j);
    xet_json_object_end(&j);
}


void
ngx_http_xet_hub_card_take(ngx_http_request_t *r, const ngx_str_t *store,
    const u_char *upload, void (*done)(ngx_http_request_t *r))
{
    ngx_http_xet_hub_t       *hub;
    ngx_http_xet_hub_card_t  *c;

    c = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_card_t),
                           ngx_http_xet_hub_card_cleanup);
    if (c == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    c->store = *store;
    c->done = done;

    hub = ngx_http_xet_hub_get(r);
    hub->card = c;

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_card_wanted, ngx_http_xet_hub_card_wanted,
                           .asked = &hub->asked, .store = c->store,
                           .rev = hub->rev, .upload = upload));
}


static void
ngx_http_xet_hub_card_cleanup(void *data)
{
    ngx_http_xet_hub_card_t *c = data;

    free(c->json);
}


static void
ngx_http_xet_hub_card_wanted(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_card_t            *c;
    ngx_http_xet_hub_card_wanted_row_t  row;

    c = ngx_http_xet_hub_get(r)->card;

    if (rc == NGX_DECLINED) {
        c->done(r);
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    (void) ngx_http_xet_row(r, hub_card_wanted, 0, &row);

    c->file = *row.hash;

    ngx_http_xet_query_release(r);

    ngx_http_xet_hub_text_read(r, &c->file, NGX_HTTP_XET_HUB_README,
                               ngx_http_xet_hub_card_parse,
                               ngx_http_xet_hub_card_read, c);
}


static xet_status_t
ngx_http_xet_hub_card_parse(void *data, const u_char *text, size_t len)
{
    ngx_http_xet_hub_card_t *c = data;

    xet_hub_card_head_t  head;

    if (xet_hub_card_find(text, len, &head)) {
        return xet_hub_card_parse(&head, &c->json, &c->json_len, &c->error);
    }

    if (head.begins && len == NGX_HTTP_XET_HUB_README) {
        (void) ngx_snprintf((u_char *) c->error.text, sizeof(c->error.text),
                            "the metadata is longer than %ui bytes%Z",
                            (ngx_uint_t) XET_HUB_CARD_MAX);
        return XET_HUB_CARD;
    }

    return XET_OK;
}


static void
ngx_http_xet_hub_card_read(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_hub_card_t *c = data;

    ngx_str_t  card;

    if (status == XET_HUB_CARD) {
        ngx_http_finalize_request(r, ngx_http_xet_hub_card_refuse(r,
                                                                  &c->error));
        return;
    }

    if (status != XET_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_hub_status(r, status));
        return;
    }

    card.data = (u_char *) c->json;
    card.len = c->json_len;

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_card_put, ngx_http_xet_hub_card_stored,
                           .store = c->store, .file = &c->file,
                           .card = card));
}


static void
ngx_http_xet_hub_card_stored(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    ngx_http_xet_hub_get(r)->card->done(r);
}


static ngx_int_t
ngx_http_xet_hub_card_refuse(ngx_http_request_t *r,
    const xet_hub_card_error_t *error)
{
    u_char  text[sizeof(error->text) + 64];

    *ngx_snprintf(text, sizeof(text) - 1, "%s: %s",
                  xet_status_text(XET_HUB_CARD), error->text) = '\0';

    return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST,
                              xet_status_code(XET_HUB_CARD), (char *) text);
}
