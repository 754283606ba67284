
/*
 * The nginx module for zTensor files: directives that limit the reading of
 * these files.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_ztensor.h"


#define NGX_HTTP_XET_ZT_UNSET  UINT64_MAX


typedef struct {
    const char   *name;
    uint64_t      low;
    uint64_t      high;
    uint64_t      value;                       /* the default */
    ngx_uint_t    size;                        /* 1: a size such as "64m" */
} ngx_http_xet_zt_limit_t;


/* The limits, in the order of NGX_HTTP_XET_ZT_*. */

static const ngx_http_xet_zt_limit_t  ngx_http_xet_zt_limits[] = {
    { "manifest", 1024, XET_ZT_MANIFEST_MAX, 64 * 1024 * 1024, 1 },
    { "objects", 1, 16 * 1024 * 1024, 1000000, 0 },
    { "components", 1, 32 * 1024 * 1024, 2000000, 0 },
    { "roles", 1, 1024, 64, 0 },
    { "rank", 1, XET_ZT_RANK_MAX, XET_ZT_RANK_MAX, 0 },
    { "depth", 6, XET_ZT_DEPTH_MAX, XET_ZT_DEPTH_MAX, 0 },
    { "name", 1, 16 * 1024, XET_ZT_NAME_MAX, 1 },
    { "keys", 16, 1024 * 1024, 65536, 0 },
    { "attributes", 0, 1024 * 1024, 1024 * 1024, 1 },
    { "page", 1, 100000, 10000, 0 },
    { "decode", 1, NGX_MAX_OFF_T_VALUE, 256 * 1024 * 1024, 1 },
    { "window", 1024, (uint64_t) 2 * 1024 * 1024 * 1024,
      8 * 1024 * 1024, 1 },
    { "verify", 1, NGX_MAX_OFF_T_VALUE,
      (uint64_t) 4 * 1024 * 1024 * 1024, 1 }
};


static void *ngx_http_xet_ztensor_create_conf(ngx_conf_t *cf);
static char *ngx_http_xet_ztensor_limits(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static void ngx_http_xet_zt_limit_must(ngx_str_t *param, u_char *p,
    u_char *last);
static ngx_int_t ngx_http_xet_zt_limit(ngx_http_xet_ztensor_conf_t *conf,
    ngx_str_t *param);
static char *ngx_http_xet_ztensor_merge_conf(ngx_conf_t *cf, void *parent,
    void *child);


static ngx_command_t  ngx_http_xet_ztensor_commands[] = {

    { ngx_string("xet_ztensor_strict"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_ztensor_conf_t, strict),
      NULL },

    { ngx_string("xet_ztensor_limits"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_xet_ztensor_limits,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_xet_ztensor_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_xet_ztensor_create_conf,      /* create location configuration */
    ngx_http_xet_ztensor_merge_conf        /* merge location configuration */
};


ngx_module_t  ngx_http_xet_ztensor_module = {
    NGX_MODULE_V1,
    &ngx_http_xet_ztensor_module_ctx,      /* module context */
    ngx_http_xet_ztensor_commands,         /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_xet_ztensor_create_conf(ngx_conf_t *cf)
{
    ngx_uint_t                    i;
    ngx_http_xet_ztensor_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_xet_ztensor_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->strict = NGX_CONF_UNSET;

    for (i = 0; i < NGX_HTTP_XET_ZT_LIMITS; i++) {
        conf->limit[i] = NGX_HTTP_XET_ZT_UNSET;
    }

    return conf;
}


/* xet_ztensor_limits name=value ...; */

static char *
ngx_http_xet_ztensor_limits(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_ztensor_conf_t *zlcf = conf;

    u_char       must[512];
    ngx_int_t    rc;
    ngx_str_t   *value;
    ngx_uint_t   i;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        rc = ngx_http_xet_zt_limit(zlcf, &value[i]);

        if (rc == NGX_BUSY) {
            return ngx_http_xet_param_duplicate(cf, &value[i]);
        }

        if (rc != NGX_OK) {
            ngx_http_xet_zt_limit_must(&value[i], must, must + sizeof(must));
            return ngx_http_xet_param_invalid(cf, &value[i], (char *) must);
        }
    }

    return NGX_CONF_OK;
}


/* Describes the valid values of a parameter, or the valid parameters. */

static void
ngx_http_xet_zt_limit_must(ngx_str_t *param, u_char *p, u_char *last)
{
    ngx_str_t                       text;
    ngx_uint_t                      i;
    const ngx_http_xet_zt_limit_t  *limit;

    for (i = 0; i < NGX_HTTP_XET_ZT_LIMITS; i++) {
        limit = &ngx_http_xet_zt_limits[i];

        if (ngx_http_xet_param(param, limit->name, &text)) {
            (void) ngx_slprintf(p, last, "%s from %uL to %uL%Z",
                                (i == NGX_HTTP_XET_ZT_WINDOW)
                                ? "a power of 2" : "a number",
                                limit->low, limit->high);
            return;
        }
    }

    for (i = 0; i < NGX_HTTP_XET_ZT_LIMITS; i++) {
        p = ngx_slprintf(p, last, "%s\"%s=\"",
                         (i == 0) ? ""
                         : (i == NGX_HTTP_XET_ZT_LIMITS - 1) ? " or " : ", ",
                         ngx_http_xet_zt_limits[i].name);
    }

    *p = '\0';
}


/* Parses a parameter; returns NGX_BUSY if it is a duplicate. */


static ngx_int_t
ngx_http_xet_zt_limit(ngx_http_xet_ztensor_conf_t *conf, ngx_str_t *param)
{
    off_t                           n;
    ngx_str_t                       text;
    ngx_uint_t                      i;
    const ngx_http_xet_zt_limit_t  *limit;

    for (i = 0; i < NGX_HTTP_XET_ZT_LIMITS; i++) {
        limit = &ngx_http_xet_zt_limits[i];

        if (ngx_http_xet_param(param, limit->name, &text)) {
            break;
        }
    }

    if (i == NGX_HTTP_XET_ZT_LIMITS) {
        return NGX_ERROR;
    }

    if (conf->limit[i] != NGX_HTTP_XET_ZT_UNSET) {
        return NGX_BUSY;
    }

    n = limit->size ? ngx_parse_offset(&text)
                    : ngx_atoof(text.data, text.len);

    if (n == NGX_ERROR || (uint64_t) n < limit->low
        || (uint64_t) n > limit->high
        || (i == NGX_HTTP_XET_ZT_WINDOW && (n & (n - 1))))
    {
        return NGX_ERROR;
    }

    conf->limit[i] = n;

    return NGX_OK;
}


static char *
ngx_http_xet_ztensor_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_xet_ztensor_conf_t *prev = parent;
    ngx_http_xet_ztensor_conf_t *conf = child;

    uint64_t         *limit;
    ngx_uint_t        i;
    xet_zt_limits_t  *limits;

    ngx_conf_merge_value(conf->strict, prev->strict, 0);

    limit = conf->limit;

    for (i = 0; i < NGX_HTTP_XET_ZT_LIMITS; i++) {

        if (limit[i] == NGX_HTTP_XET_ZT_UNSET) {
            limit[i] = (prev->limit[i] == NGX_HTTP_XET_ZT_UNSET)
                       ? ngx_http_xet_zt_limits[i].value : prev->limit[i];
        }
    }

    limits = &conf->limits;

    xet_zt_limits_init(limits);

    limits->manifest = limit[NGX_HTTP_XET_ZT_MANIFEST];
    limits->objects = limit[NGX_HTTP_XET_ZT_OBJECTS];
    limits->components = limit[NGX_HTTP_XET_ZT_COMPONENTS];
    limits->roles = (unsigned) limit[NGX_HTTP_XET_ZT_ROLES];
    limits->rank = (unsigned) limit[NGX_HTTP_XET_ZT_RANK];
    limits->depth = (unsigned) limit[NGX_HTTP_XET_ZT_DEPTH];
    limits->name = limit[NGX_HTTP_XET_ZT_NAME];
    limits->keys = limit[NGX_HTTP_XET_ZT_KEYS];
    limits->attributes = limit[NGX_HTTP_XET_ZT_ATTRIBUTES];
    limits->strict = (conf->strict != 0);

    xet_zt_decode_limits_init(&conf->decoder);

    conf->decoder.output = limit[NGX_HTTP_XET_ZT_DECODE];
    conf->decoder.window_log = 0;

    while ((uint64_t) 1 << conf->decoder.window_log
           < limit[NGX_HTTP_XET_ZT_WINDOW])
    {
        conf->decoder.window_log++;
    }
    return NGX_CONF_OK;
}
