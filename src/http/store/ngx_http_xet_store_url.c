
/*
 * Makes signed URLs and signed requests, with which clients or nginx can access
 * a copy in an object store.  These functions only compute, and may be called
 * in the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"


xet_status_t
ngx_http_xet_store_presign(ngx_http_xet_store_t *store, xet_buf_t *b,
    const xet_hash_t *xorb, uint32_t copy_id, uint64_t start, uint64_t end,
    time_t made, time_t seconds)
{
    char             name[XET_STORE_COPY_MAX], url[XET_S3_URL_MAX], range[64];
    xet_s3_grant_t   grant;
    xet_s3_header_t  header;

    *ngx_sprintf((u_char *) range, "bytes=%uL-%uL", start, end - 1) = '\0';

    header.name = "range";
    header.value = range;

    grant.method = "GET";
    grant.name = xet_store_copy(name, xorb, copy_id);
    grant.headers = &header;
    grant.nheaders = 1;
    grant.made = made;
    grant.seconds = (uint32_t) seconds;

    if (xet_s3_presign(store->s3, &grant, url) != XET_S3_OK) {
        return XET_INTERNAL;
    }

    xet_buf_write(b, url, ngx_strlen(url));

    return XET_OK;
}


ngx_int_t
ngx_http_xet_store_sign(ngx_http_xet_store_t *store, const xet_hash_t *xorb,
    uint32_t copy_id, xet_s3_signed_t *out)
{
    char  name[XET_STORE_COPY_MAX];

    if (store == NULL || store->s3 == NULL) {
        return NGX_DECLINED;
    }

    return (xet_s3_sign(store->s3, "GET", xet_store_copy(name, xorb, copy_id),
                        ngx_time(), out)
            == XET_S3_OK)
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_xet_store_uri(ngx_http_xet_store_t *store, const xet_hash_t *xorb,
    uint32_t copy_id, char *path)
{
    char  name[XET_STORE_COPY_MAX];

    if (store == NULL || store->s3 == NULL) {
        return NGX_DECLINED;
    }

    return (xet_s3_path(store->s3, xet_store_copy(name, xorb, copy_id), path)
            == XET_S3_OK)
           ? NGX_OK : NGX_ERROR;
}
