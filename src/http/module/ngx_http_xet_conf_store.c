
/*
 * The directive "xet_store": a folder, or a bucket of an object store.
 *
 *     xet_store path [temp=anonymous|named];
 *     xet_store s3://bucket[/prefix] endpoint=url credentials=file
 *               [public_endpoint=url] [profile=name] [region=name] [path_style]
 *               [trusted_certificate=file] [timeout=time] [connections=number]
 *               [part=size] [condition=on|off]
 *               [temp_path=path] [temp=anonymous|named];
 *
 * Errors of the object store client are logged with the file and the line of
 * the directive.  nginx does not contact the store when it reads the
 * directive.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_conf_warn.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_STORE_TEMP_PATH    "xet_temp"
#define NGX_HTTP_XET_STORE_REGION       "us-east-1"
#define NGX_HTTP_XET_STORE_PROFILE      "default"
#define NGX_HTTP_XET_STORE_TIMEOUT      30000  /* ms */
#define NGX_HTTP_XET_STORE_TIMEOUT_MAX  (10 * 60 * 1000)
#define NGX_HTTP_XET_STORE_CONNECTIONS  32
#define NGX_HTTP_XET_STORE_CONNECTIONS_MAX  1024
#define NGX_HTTP_XET_STORE_PART         (8 * 1024 * 1024)
#define NGX_HTTP_XET_STORE_PART_MAX     (64 * 1024 * 1024)


typedef struct {
    xet_s3_conf_t   s3;
    ngx_msec_t      timeout;
    ngx_uint_t      connections;
    off_t           part;
    ngx_flag_t      path_style;
    ngx_str_t       temp_path;
    ngx_str_t       temp;                      /* "anonymous" or "named" */
    ngx_str_t       condition;
    ngx_str_t       region;
    ngx_str_t       profile;
    ngx_str_t       endpoint;
    ngx_str_t       public_endpoint;
    ngx_str_t       credentials;
    ngx_str_t       certificate;
} ngx_http_xet_conf_s3_t;


static char *ngx_http_xet_conf_store_folder(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);
static char *ngx_http_xet_conf_store_bucket(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);
static char *ngx_http_xet_conf_s3_check(ngx_conf_t *cf,
    ngx_http_xet_conf_s3_t *s3);
static ngx_int_t ngx_http_xet_conf_store_full(ngx_conf_t *cf,
    ngx_str_t *path);


#define ngx_http_xet_s3_str(name, member)                                     \
    { name, NGX_HTTP_XET_PARAM_STR,                                           \
      offsetof(ngx_http_xet_conf_s3_t, member), 0, 0, NULL }

static const ngx_http_xet_param_t  ngx_http_xet_s3_params[] = {
    ngx_http_xet_s3_str("endpoint", endpoint),
    ngx_http_xet_s3_str("public_endpoint", public_endpoint),
    ngx_http_xet_s3_str("credentials", credentials),
    ngx_http_xet_s3_str("profile", profile),
    ngx_http_xet_s3_str("region", region),
    ngx_http_xet_s3_str("trusted_certificate", certificate),
    ngx_http_xet_s3_str("temp_path", temp_path),
    ngx_http_xet_s3_str("temp", temp),
    ngx_http_xet_s3_str("condition", condition),

    { "path_style", NGX_HTTP_XET_PARAM_FLAG,
      offsetof(ngx_http_xet_conf_s3_t, path_style), 0, 0, NULL },
    { "timeout", NGX_HTTP_XET_PARAM_MSEC,
      offsetof(ngx_http_xet_conf_s3_t, timeout),
      1000, NGX_HTTP_XET_STORE_TIMEOUT_MAX, NULL },
    { "connections", NGX_HTTP_XET_PARAM_NUM,
      offsetof(ngx_http_xet_conf_s3_t, connections),
      1, NGX_HTTP_XET_STORE_CONNECTIONS_MAX, NULL },
    { "part", NGX_HTTP_XET_PARAM_SIZE,
      offsetof(ngx_http_xet_conf_s3_t, part),
      XET_S3_PART_MIN, NGX_HTTP_XET_STORE_PART_MAX, NULL },
    { NULL, 0, 0, 0, 0, NULL }
};


char *
ngx_http_xet_conf_store(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    ngx_str_t  *value;

    if (xmcf->store) {
        return "is duplicate";
    }

    value = cf->args->elts;

    return (ngx_strncmp(value[1].data, "s3://", 5) == 0)
           ? ngx_http_xet_conf_store_bucket(cf, xmcf)
           : ngx_http_xet_conf_store_folder(cf, xmcf);
}


static char *
ngx_http_xet_conf_store_folder(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_str_t        *value, path;
    ngx_uint_t        named;
    ngx_file_info_t   fi;

    value = cf->args->elts;
    path = value[1];
    named = 0;

    if (cf->args->nelts > 2) {
        named = (ngx_strcmp(value[2].data, "temp=named") == 0);

        if (cf->args->nelts > 3
            || (!named && ngx_strcmp(value[2].data, "temp=anonymous") != 0))
        {
            return ngx_http_xet_param_invalid(cf, &value[cf->args->nelts - 1],
                                              "\"temp=anonymous\" or "
                                              "\"temp=named\"");
        }
    }

    if (ngx_http_xet_conf_store_full(cf, &path) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (path.len + XET_STORE_COPY_MAX + 1 > NGX_MAX_PATH) {
        return "path is too long";
    }

    if (ngx_file_info(path.data, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_file_info_n " \"%V\" failed", &path);
        return NGX_CONF_ERROR;
    }

    if (!ngx_is_dir(&fi)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" is not a directory",
                           &path);
        return NGX_CONF_ERROR;
    }

    xmcf->store = ngx_http_xet_store_files(cf, &path);

    if (xmcf->store == NULL) {
        return NGX_CONF_ERROR;
    }

    xmcf->store->backend->named = named;

    return NGX_CONF_OK;
}


static char *
ngx_http_xet_conf_store_bucket(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    char                    *rv;
    ngx_str_t               *value;
    xet_s3_error_t           error;
    ngx_http_xet_conf_s3_t   s3;

    value = cf->args->elts;

    ngx_memzero(&s3, sizeof(ngx_http_xet_conf_s3_t));

    s3.s3.url = (char *) value[1].data;
    s3.s3.conditional = 1;

    s3.timeout = NGX_HTTP_XET_STORE_TIMEOUT;
    s3.connections = NGX_HTTP_XET_STORE_CONNECTIONS;
    s3.part = NGX_HTTP_XET_STORE_PART;

    rv = ngx_http_xet_params(cf, 2, ngx_http_xet_s3_params, &s3,
                             "\"endpoint=\", \"public_endpoint=\", "
                             "\"credentials=\", \"profile=\", \"region=\", "
                             "\"path_style\", \"trusted_certificate=\", "
                             "\"timeout=\" of 1s to 10m, \"connections=\" of "
                             "1 to 1024, \"part=\" of 5m to 64m, "
                             "\"condition=\", \"temp_path=\" or \"temp=\"");

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_xet_conf_s3_check(cf, &s3);

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    xmcf->store = ngx_http_xet_store_s3(cf, &s3.temp_path, &s3.s3, &error);

    if (xmcf->store == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"xet_store\": %s",
                           error.text);
        return NGX_CONF_ERROR;
    }

    xmcf->store->backend->named = (s3.temp.len == sizeof("named") - 1);

    ngx_http_xet_warn_reader(cf, "credentials", &s3.credentials,
                             "changed keys need a reload");
    ngx_http_xet_warn_reader(cf, "trusted_certificate", &s3.certificate,
                             "they can't connect to the store");

    return NGX_CONF_OK;
}


/* Sets defaults of missing parameters, and makes paths absolute. */

static char *
ngx_http_xet_conf_s3_check(ngx_conf_t *cf, ngx_http_xet_conf_s3_t *s3)
{
    char  *rv;

    if (s3->endpoint.len == 0 || s3->credentials.len == 0) {
        return "needs \"endpoint=\" and \"credentials=\" for a bucket";
    }

    if (s3->temp.len && ngx_strcmp(s3->temp.data, "anonymous") != 0
        && ngx_strcmp(s3->temp.data, "named") != 0)
    {
        return "takes \"temp=anonymous\" or \"temp=named\"";
    }

    if (s3->condition.len) {
        s3->s3.conditional = (ngx_strcmp(s3->condition.data, "on") == 0);

        if (!s3->s3.conditional && ngx_strcmp(s3->condition.data, "off") != 0)
        {
            return "takes \"condition=on\" or \"condition=off\"";
        }
    }

    if (s3->temp_path.len == 0) {
        ngx_str_set(&s3->temp_path, NGX_HTTP_XET_STORE_TEMP_PATH);
    }

    if (ngx_http_xet_conf_store_full(cf, &s3->temp_path) != NGX_OK
        || ngx_conf_full_name(cf->cycle, &s3->credentials, 1) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (s3->certificate.len) {

        rv = ngx_http_xet_conf_trusted(cf, &s3->certificate);

        if (rv != NGX_CONF_OK) {
            return rv;
        }

        s3->s3.certificate = (char *) s3->certificate.data;
    }

    s3->s3.endpoint = (char *) s3->endpoint.data;
    s3->s3.public_endpoint = (char *) s3->public_endpoint.data;
    s3->s3.credentials = (char *) s3->credentials.data;
    s3->s3.region = s3->region.len ? (char *) s3->region.data
                                   : NGX_HTTP_XET_STORE_REGION;
    s3->s3.profile = s3->profile.len ? (char *) s3->profile.data
                                     : NGX_HTTP_XET_STORE_PROFILE;

    s3->s3.path_style = s3->path_style;
    s3->s3.timeout = (uint32_t) s3->timeout;
    s3->s3.connections = (uint32_t) s3->connections;
    s3->s3.part = (uint32_t) s3->part;

    return NGX_CONF_OK;
}


/* Makes a path absolute, without trailing slashes, and zero-terminated. */

static ngx_int_t
ngx_http_xet_conf_store_full(ngx_conf_t *cf, ngx_str_t *path)
{
    ngx_str_t  full;

    full = *path;

    if (ngx_conf_full_name(cf->cycle, &full, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    while (full.len > 1 && full.data[full.len - 1] == '/') {
        full.len--;
    }

    path->data = ngx_pnalloc(cf->pool, full.len + 1);
    if (path->data == NULL) {
        return NGX_ERROR;
    }

    path->len = full.len;
    ngx_cpystrn(path->data, full.data, full.len + 1);

    return NGX_OK;
}
