
/*
 * Directive setters for shared memory zones, and for the use of the zones of
 * uploads.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_module.h"


#define NGX_HTTP_XET_ZONE_PAGES      8         /* minimum pages of a zone */

#define NGX_HTTP_XET_UPLOADS_MAX     1000000
#define NGX_HTTP_XET_BYTES_MAX       ((off_t) 1 << 53)
#define NGX_HTTP_XET_PERIOD_MIN      1000      /* ms */
#define NGX_HTTP_XET_PERIOD_MAX      ((ngx_int_t) 31 * 24 * 60 * 60 * 1000)


static ngx_shm_zone_t *ngx_http_xet_conf_zone(ngx_conf_t *cf,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_conf_bytes(ngx_str_t *value,
    xet_bucket_rate_t *rate);


/* xet_token_cache zone=name:size; */

char *
ngx_http_xet_conf_token_cache(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    ngx_str_t       *value;
    ngx_shm_zone_t  *zone;

    if (xmcf->token_cache) {
        return "is duplicate";
    }

    value = cf->args->elts;

    zone = ngx_http_xet_conf_zone(cf, &value[1]);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    zone->init = ngx_http_xet_token_cache_init_zone;
    zone->data = zone;

    xmcf->token_cache = zone;

    return NGX_CONF_OK;
}


/*
 * xet_plan_cache zone=name:size [valid=time];
 * xet_chunk_filter zone=name:size [valid=time];
 *
 * cmd->post has the defaults.
 */

char *
ngx_http_xet_conf_answers(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t              valid;
    ngx_str_t             *value, s;
    ngx_http_xet_cache_t  *cache;

    cache = (ngx_http_xet_cache_t *) ((char *) conf + cmd->offset);

    if (cache->zone) {
        return "is duplicate";
    }

    *cache = *(ngx_http_xet_cache_t *) cmd->post;

    value = cf->args->elts;

    if (cf->args->nelts == 3) {
        valid = ngx_http_xet_param(&value[2], "valid", &s)
                ? ngx_parse_time(&s, 0) : NGX_ERROR;

        if (valid < 100 || valid > 60 * 60 * 1000) {
            return ngx_http_xet_param_invalid(cf, &value[2],
                                              "\"valid=time\", 100ms to 1h");
        }

        cache->valid = (ngx_msec_t) valid;
    }

    cache->zone = ngx_http_xet_conf_zone(cf, &value[1]);
    if (cache->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    cache->zone->init = ngx_http_xet_answers_init_zone;
    cache->zone->data = cache->zone;

    return NGX_CONF_OK;
}


/* xet_upload_zone key zone=name:size [concurrent=number] [bytes=size/time]; */

char *
ngx_http_xet_conf_upload_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    ngx_int_t              n;
    ngx_str_t             *value, s;
    ngx_uint_t             i;
    ngx_http_xet_limit_t  *limit, **limitp;

    value = cf->args->elts;

    limit = ngx_pcalloc(cf->pool, sizeof(ngx_http_xet_limit_t));
    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_xet_conf_compile(cf, &value[1], &limit->key) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 3; i < cf->args->nelts; i++) {

        if (ngx_http_xet_param(&value[i], "concurrent", &s)) {
            n = ngx_atoi(s.data, s.len);

            if (limit->concurrent) {
                return ngx_http_xet_param_duplicate(cf, &value[i]);
            }

            if (n < 1 || n > NGX_HTTP_XET_UPLOADS_MAX) {
                return ngx_http_xet_param_invalid(cf, &value[i],
                                                  "a number from 1 to "
                                                  "1000000");
            }

            limit->concurrent = n;
            continue;
        }

        if (!ngx_http_xet_param(&value[i], "bytes", &s)) {
            return ngx_http_xet_param_invalid(cf, &value[i],
                                              "\"concurrent=number\" or "
                                              "\"bytes=size/time\"");
        }

        if (limit->bytes.size) {
            return ngx_http_xet_param_duplicate(cf, &value[i]);
        }

        if (ngx_http_xet_conf_bytes(&s, &limit->bytes) != NGX_OK) {
            return ngx_http_xet_param_invalid(cf, &value[i],
                                              "\"bytes=size/time\", 1 to "
                                              "8388608g in 1s to 31d");
        }
    }

    limit->zone = ngx_http_xet_conf_zone(cf, &value[2]);
    if (limit->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    limit->zone->init = ngx_http_xet_limit_zone_init;
    limit->zone->data = limit;

    if (xmcf->upload_zones == NULL) {
        xmcf->upload_zones = ngx_array_create(cf->pool, 2,
                                              sizeof(ngx_http_xet_limit_t *));
        if (xmcf->upload_zones == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    limitp = ngx_array_push(xmcf->upload_zones);
    if (limitp == NULL) {
        return NGX_CONF_ERROR;
    }

    *limitp = limit;

    return ngx_http_xet_conf_keep(cf, cmd, limit);
}


/* xet_upload_limit name | off; */

char *
ngx_http_xet_conf_upload_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_str_t                 *value, *name;
    ngx_uint_t                 i;
    ngx_http_xet_limit_t     **limits;
    ngx_http_xet_main_conf_t  *xmcf;

    if (xlcf->upload_limit != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        xlcf->upload_limit = NULL;
        return NGX_CONF_OK;
    }

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    limits = xmcf->upload_zones ? xmcf->upload_zones->elts : NULL;

    for (i = 0; limits && i < xmcf->upload_zones->nelts; i++) {

        name = &limits[i]->zone->shm.name;

        if (name->len == value[1].len
            && ngx_strncmp(name->data, value[1].data, name->len) == 0)
        {
            xlcf->upload_limit = limits[i];
            return NGX_CONF_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"xet_upload_zone\" \"%V\" must be defined before it "
                       "is used", &value[1]);
    return NGX_CONF_ERROR;
}


/*
 * Adds the zone given as zone=name:size.  Logs an error and returns NULL on
 * failure, or if the zone is already in use.
 */

static ngx_shm_zone_t *
ngx_http_xet_conf_zone(ngx_conf_t *cf, ngx_str_t *value)
{
    u_char          *p;
    ssize_t          size;
    ngx_str_t        name, s;
    ngx_shm_zone_t  *zone;

    if (!ngx_http_xet_param(value, "zone", &name)) {
        goto invalid;
    }

    p = (u_char *) ngx_strchr(name.data, ':');

    if (p == NULL || p == name.data) {
        goto invalid;
    }

    name.len = p - name.data;
    s.data = p + 1;
    s.len = value->data + value->len - s.data;

    size = ngx_parse_size(&s);

    if (size == NGX_ERROR) {
        goto invalid;
    }

    if (size < (ssize_t) (NGX_HTTP_XET_ZONE_PAGES * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is too small",
                           value);
        return NULL;
    }

    zone = ngx_shared_memory_add(cf, &name, size, &ngx_http_xet_module);
    if (zone == NULL) {
        return NULL;
    }

    if (zone->data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate zone \"%V\"",
                           &name);
        return NULL;
    }

    return zone;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid zone \"%V\", it must be \"zone=name:size\"",
                       value);
    return NULL;
}


/* Parses "size/time".  Returns NGX_OK or NGX_ERROR. */

static ngx_int_t
ngx_http_xet_conf_bytes(ngx_str_t *value, xet_bucket_rate_t *rate)
{
    off_t       size;
    u_char     *slash, *last;
    ngx_int_t   period;
    ngx_str_t   s;

    last = value->data + value->len;

    slash = ngx_strlchr(value->data, last, '/');
    if (slash == NULL) {
        return NGX_ERROR;
    }

    s.data = value->data;
    s.len = slash - value->data;

    size = ngx_parse_offset(&s);

    s.data = slash + 1;
    s.len = last - s.data;

    period = ngx_parse_time(&s, 0);

    if (size < 1 || size > NGX_HTTP_XET_BYTES_MAX
        || period < NGX_HTTP_XET_PERIOD_MIN
        || period > NGX_HTTP_XET_PERIOD_MAX)
    {
        return NGX_ERROR;
    }

    rate->size = (uint64_t) size;
    rate->period = (uint64_t) period;

    return NGX_OK;
}
