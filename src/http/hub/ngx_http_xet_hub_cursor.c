
/*
 * Cursors of lists: the position at which the next page begins.
 *
 * A cursor is a version, 16 hex digits, and the position, such as
 * "1.0123456789abcdef.d/file".  The digits are a checksum of the position and
 * of the list: the route, the repo, the revision, the folder and the filters.
 * So a cursor that a client has made, or that belongs to another list, is
 * refused.  Otherwise a client that makes up cursors, such as page numbers,
 * could get the same page for each, and never the empty page at which it stops.
 * A cursor is no secret and gives no permission.
 *
 * Everything runs in the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"

#include <openssl/sha.h>


#define NGX_HTTP_XET_HUB_VERSION  "1."
#define NGX_HTTP_XET_HUB_SUM      8            /* bytes of the checksum */

/* the length of a cursor without its position */

#define NGX_HTTP_XET_HUB_BEFORE                                               \
    (sizeof(NGX_HTTP_XET_HUB_VERSION) - 1 + 2 * NGX_HTTP_XET_HUB_SUM          \
     + sizeof(".") - 1)


static ngx_int_t ngx_http_xet_hub_cursor_sum(ngx_http_request_t *r,
    const ngx_str_t *id, const ngx_str_t *after, u_char *hex);


ngx_int_t
ngx_http_xet_hub_cursor(ngx_http_request_t *r, const ngx_str_t *id,
    const ngx_str_t *after, ngx_str_t *cursor)
{
    u_char  *p;
    u_char   hex[2 * NGX_HTTP_XET_HUB_SUM];

    cursor->len = NGX_HTTP_XET_HUB_BEFORE + after->len;
    cursor->data = ngx_pnalloc(r->pool, cursor->len);

    if (cursor->data == NULL
        || ngx_http_xet_hub_cursor_sum(r, id, after, hex) != NGX_OK)
    {
        return NGX_ERROR;
    }

    p = ngx_cpymem(cursor->data, NGX_HTTP_XET_HUB_VERSION,
                   sizeof(NGX_HTTP_XET_HUB_VERSION) - 1);
    p = ngx_cpymem(p, hex, sizeof(hex));
    *p++ = '.';

    ngx_memcpy(p, after->data, after->len);

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_hub_cursor_get(ngx_http_request_t *r, ngx_str_t *after)
{
    ngx_str_t  sent, made;

    ngx_str_null(after);

    if (ngx_http_xet_hub_arg(r, "cursor", &sent) != NGX_OK) {
        return NGX_ERROR;
    }

    if (sent.data == NULL) {
        return NGX_OK;
    }

    if (sent.len >= NGX_HTTP_XET_HUB_BEFORE
        && sent.len <= NGX_HTTP_XET_HUB_BEFORE + XET_HUB_PATH_MAX)
    {
        after->data = sent.data + NGX_HTTP_XET_HUB_BEFORE;
        after->len = sent.len - NGX_HTTP_XET_HUB_BEFORE;

        if (ngx_http_xet_hub_cursor(r, NULL, after, &made) != NGX_OK) {
            return NGX_ERROR;
        }

        if (made.len == sent.len
            && ngx_memcmp(made.data, sent.data, made.len) == 0
            && xet_hub_text_ok(after->data, after->len))
        {
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


size_t
ngx_http_xet_hub_cursor_room(ngx_http_request_t *r, const ngx_str_t *cursor)
{
    return sizeof("?&cursor=") + r->args.len + cursor->len
           + 2 * ngx_escape_uri(NULL, cursor->data, cursor->len,
                                NGX_ESCAPE_URI_COMPONENT);
}


u_char *
ngx_http_xet_hub_cursor_put(ngx_http_request_t *r, u_char *p,
    const ngx_str_t *cursor)
{
    u_char  *arg, *next, *last;

    *p++ = '?';

    arg = r->args.data;
    last = arg + r->args.len;

    while (arg < last) {
        next = ngx_strlchr(arg, last, '&');

        if (next == NULL) {
            next = last;
        }

        if (next - arg < 7 || ngx_strncmp(arg, "cursor=", 7) != 0) {
            p = ngx_cpymem(p, arg, next - arg);
            *p++ = '&';
        }

        arg = next + 1;
    }

    p = ngx_cpymem(p, "cursor=", sizeof("cursor=") - 1);

    return (u_char *) ngx_escape_uri(p, cursor->data, cursor->len,
                                     NGX_ESCAPE_URI_COMPONENT);
}


/*
 * Writes the checksum of a position in the list of the request, in hex.  id is
 * the name of the repo, or NULL for the name in the request.
 */

static ngx_int_t
ngx_http_xet_hub_cursor_sum(ngx_http_request_t *r, const ngx_str_t *id,
    const ngx_str_t *after, u_char *hex)
{
    size_t               len;
    u_char              *p, *text, *name;
    u_char               sum[SHA256_DIGEST_LENGTH];
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    len = ngx_strlen(hub->match->route->form) + hub->asked.owner.len
          + hub->asked.name.len + (id ? id->len : 0) + hub->rev.len
          + hub->path.len + hub->filters.len + after->len
          + NGX_INT_T_LEN + sizeof("\n\n\n\n\n\n/");

    text = ngx_pnalloc(r->pool, len);
    if (text == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(text, "%s\n%ui\n", hub->match->route->form,
                    (ngx_uint_t) hub->asked.kind);
    name = p;

    p = id ? ngx_cpymem(p, id->data, id->len)
           : ngx_sprintf(p, "%V/%V", &hub->asked.owner, &hub->asked.name);

    ngx_strlow(name, name, p - name);

    p = ngx_sprintf(p, "\n%V\n%V\n%V\n%V", &hub->rev, &hub->path,
                    &hub->filters, after);

    SHA256(text, p - text, sum);
    (void) ngx_hex_dump(hex, sum, NGX_HTTP_XET_HUB_SUM);

    return NGX_OK;
}
