
/*
 * Looks up reconstruction plans in the zone of "xet_plan_cache".
 *
 * The key contains everything that the JSON of a plan depends on, except the
 * rows of PostgreSQL: who may read, what is requested, how ranges are grouped,
 * and how URLs are made and signed.  So callers with different permissions,
 * locations with other directives, and other names of the server have other
 * plans, and the URLs of a plan are as long valid as those of a new one.
 *
 * Tokens are verified before, for each request.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_download.h"


static ngx_int_t ngx_http_xet_plan_cache_key(ngx_http_request_t *r,
    const xet_hash_t *file, const xet_range_t *want, xet_plan_kind_t kind,
    ngx_str_t *key);
static u_char *ngx_http_xet_plan_cache_text(u_char *p, const ngx_str_t *text);
static ngx_uint_t ngx_http_xet_plan_cache_use(void *data, u_char *body,
    size_t len, ngx_uint_t valid);


ngx_int_t
ngx_http_xet_plan_cache_find(ngx_http_request_t *r, const xet_hash_t *file,
    const xet_range_t *want, xet_plan_kind_t kind, ngx_http_xet_answer_t **a)
{
    ngx_str_t                  key;
    xet_buf_t                  b;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    *a = NULL;

    if (xmcf->plan_cache.zone == NULL
        || ngx_http_xet_plan_cache_key(r, file, want, kind, &key) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    *a = ngx_palloc(r->pool, sizeof(ngx_http_xet_answer_t));
    if (*a == NULL) {
        return NGX_DECLINED;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 0);

    if (ngx_http_xet_answers_find(*a, &xmcf->plan_cache, key.data, key.len,
                                  ngx_http_xet_plan_cache_use, &b)
        != NGX_OK)
    {
        ngx_http_xet_count_at(PLANS, NGX_HTTP_XET_LOOKUP_MISS, 1);
        return NGX_DECLINED;
    }

    ngx_http_xet_count_at(PLANS, NGX_HTTP_XET_LOOKUP_HIT, 1);

    return ngx_http_xet_plan_respond(r, &b);
}


static ngx_int_t
ngx_http_xet_plan_cache_key(ngx_http_request_t *r, const xet_hash_t *file,
    const xet_range_t *want, xet_plan_kind_t kind, ngx_str_t *key)
{
    u_char                   *p;
    ngx_http_xet_key_t        signer;
    ngx_http_xet_url_t        url;
    ngx_http_xet_repo_t       repo;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (ngx_http_xet_url_init(r, &url) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_xet_repo(r, &repo);

    ngx_memzero(&signer, sizeof(ngx_http_xet_key_t));

    if (url.key) {
        signer = *url.key;
    }

    key->len = XET_HASH_LEN + 5 * 8 + 4 * (8 + 1) + repo.name.len
               + url.base.len + signer.id.len + signer.secret.len;

    key->data = ngx_pnalloc(r->pool, key->len);
    if (key->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(key->data, file->bytes, XET_HASH_LEN);

    xet_put_u64(p, want->start);
    xet_put_u64(p + 8, want->end);
    xet_put_u64(p + 16, xlcf->plan_terms);
    xet_put_u64(p + 24, url.group);
    xet_put_u64(p + 32, (uint64_t) url.expires);
    p += 40;

    *p++ = (u_char) kind;
    *p++ = (repo.any != 0);
    *p++ = (url.whole != 0);
    *p++ = (url.store != NULL);

    p = ngx_http_xet_plan_cache_text(p, &repo.name);
    p = ngx_http_xet_plan_cache_text(p, &url.base);
    p = ngx_http_xet_plan_cache_text(p, &signer.id);
    p = ngx_http_xet_plan_cache_text(p, &signer.secret);

    key->len = p - key->data;

    return NGX_OK;
}


static u_char *
ngx_http_xet_plan_cache_text(u_char *p, const ngx_str_t *text)
{
    xet_put_u64(p, text->len);

    return ngx_cpymem(p + 8, text->data, text->len);
}


static ngx_uint_t
ngx_http_xet_plan_cache_use(void *data, u_char *body, size_t len,
    ngx_uint_t valid)
{
    xet_buf_t *b = data;

    u_char  *p;

    p = valid ? xet_buf_reserve(b, len) : NULL;

    if (p) {
        ngx_memcpy(p, body, len);
        xet_buf_advance(b, len);
    }

    return valid;
}
