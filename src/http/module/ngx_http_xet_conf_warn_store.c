
/*
 * Warnings that "nginx -t" prints if the store is a bucket: about a data
 * location that looks for xorbs in a folder, and about files that workers can't
 * read.  The master reads these files first, usually as root, so nginx starts
 * without an error.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_conf_warn.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_store.h"

#include <grp.h>
#include <sys/vfs.h>
#include <sys/xattr.h>


#define NGX_HTTP_XET_WARN_FUSE    0x65735546   /* FUSE_SUPER_MAGIC */
#define NGX_HTTP_XET_WARN_GROUPS  64


typedef struct {
    ngx_uid_t  user;
    gid_t      groups[NGX_HTTP_XET_WARN_GROUPS];
    int        ngroups;
} ngx_http_xet_warn_user_t;


static ngx_uint_t ngx_http_xet_warn_proxied(ngx_http_xet_warn_t *w);
static ngx_uint_t ngx_http_xet_warn_tried(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *loc);
static ngx_uint_t ngx_http_xet_warn_sent_on(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *loc);
static ngx_uint_t ngx_http_xet_warn_reads(ngx_http_xet_warn_user_t *u,
    char *path);
static ngx_uint_t ngx_http_xet_warn_may(ngx_http_xet_warn_user_t *u,
    const char *path, ngx_uint_t bit);


/* The warning does not apply if the root is a bucket mounted with FUSE. */

void
ngx_http_xet_warn_bucket(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc)
{
    u_char                     path[NGX_MAX_PATH];
    struct statfs              fs;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = loc->core;

    if (w->xmcf->store == NULL || w->xmcf->store->s3 == NULL || clcf->named
        || clcf->root_lengths || !ngx_http_xet_warn_proxied(w)
        || !ngx_http_xet_warn_data(w, server, loc)
        || ngx_http_xet_warn_returns(w, loc, 0)
        || ngx_http_xet_warn_tried(w, loc)
        || ngx_http_xet_warn_sent_on(w, loc))
    {
        return;
    }

    *ngx_snprintf(path, sizeof(path) - 1, "%V", &clcf->root) = '\0';

    if (statfs((char *) path, &fs) == 0
        && (uint32_t) fs.f_type == NGX_HTTP_XET_WARN_FUSE)
    {
        return;
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_data",
                          "\"xet_data\" of location \"%V\" looks for xorbs in "
                          "the folder \"%V\", but \"xet_store\" is a bucket: "
                          "downloads fail with 404; include xet_bucket.conf "
                          "after xet_location.conf, or write \"xet_data_mode "
                          "presigned;\"",
                          &clcf->name, &clcf->root);
}


/*
 * Returns whether data URLs point to nginx, which is the case with
 * "xet_data_mode proxy", or on an edge node, which has no "xet_api".
 */

static ngx_uint_t
ngx_http_xet_warn_proxied(ngx_http_xet_warn_t *w)
{
    ngx_uint_t                     i, api;
    ngx_http_xet_conf_location_t  *locations;

    api = 0;
    locations = w->xmcf->locations->elts;

    for (i = 0; i < w->xmcf->locations->nelts; i++) {

        if (!locations[i].conf->api || locations[i].core->noname) {
            continue;
        }

        api = 1;

        if (locations[i].conf->data_mode == NGX_HTTP_XET_DATA_PROXY) {
            return 1;
        }
    }

    return !api;
}


/*
 * Returns whether a location has "try_files".  The configuration of nginx's
 * module starts with a pointer to the list of files.
 */

static ngx_uint_t
ngx_http_xet_warn_tried(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *loc)
{
    void          **conf, **confs;
    ngx_uint_t      i;
    ngx_module_t  **modules;

    modules = w->cf->cycle->modules;
    confs = loc->core->loc_conf ? loc->core->loc_conf
                                  : loc->server->ctx->loc_conf;

    for (i = 0; modules[i]; i++) {

        if (ngx_strcmp(modules[i]->name, "ngx_http_try_files_module") == 0) {
            conf = confs[modules[i]->ctx_index];

            return conf && *conf;
        }
    }

    return 0;
}


/*
 * Returns whether "error_page 404" sends requests for missing files to another
 * location.
 */

static ngx_uint_t
ngx_http_xet_warn_sent_on(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *loc)
{
    ngx_str_t                     *to;
    ngx_uint_t                     i, k;
    ngx_http_err_page_t           *page;
    ngx_http_xet_conf_location_t  *locations;

    if (loc->core->error_pages == NULL) {
        return 0;
    }

    page = loc->core->error_pages->elts;
    locations = w->xmcf->locations->elts;

    for (i = 0; i < loc->core->error_pages->nelts; i++) {

        if (page[i].status != NGX_HTTP_NOT_FOUND) {
            continue;
        }

        to = &page[i].value.value;

        for (k = 0; k < w->xmcf->locations->nelts; k++) {

            if (locations[k].server == loc->server && locations[k].conf->error
                && locations[k].core->name.len == to->len
                && ngx_strncmp(locations[k].core->name.data, to->data, to->len)
                   == 0)
            {
                return 0;
            }
        }

        return 1;
    }

    return 0;
}


/* The user of the workers is known here only if "user" precedes "http". */

void
ngx_http_xet_warn_reader(ngx_conf_t *cf, const char *name, ngx_str_t *file,
    const char *what)
{
    ngx_core_conf_t           *ccf;
    ngx_http_xet_warn_user_t   u;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cf->cycle->conf_ctx,
                                           ngx_core_module);

    if (file->len == 0 || geteuid() != 0 || ccf->username == NULL
        || ccf->user == (ngx_uid_t) NGX_CONF_UNSET_UINT || ccf->user == 0)
    {
        return;
    }

    u.user = ccf->user;
    u.ngroups = NGX_HTTP_XET_WARN_GROUPS;

    if (getgrouplist(ccf->username, ccf->group, u.groups, &u.ngroups) == -1
        || ngx_http_xet_warn_reads(&u, (char *) file->data))
    {
        return;
    }

    ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                       "\"%s=%V\" can't be read by \"%s\", the user of the "
                       "workers: %s; make it readable by that user or its "
                       "group, and all folders above accessible",
                       name, file, ccf->username, what);
}


static ngx_uint_t
ngx_http_xet_warn_reads(ngx_http_xet_warn_user_t *u, char *path)
{
    char        *real, *p;
    ngx_uint_t   may;

    real = realpath(path, NULL);

    if (real == NULL) {
        return 1;
    }

    may = ngx_http_xet_warn_may(u, real, S_IROTH);

    for (p = strchr(real + 1, '/'); may && p; p = strchr(p + 1, '/')) {
        *p = '\0';
        may = ngx_http_xet_warn_may(u, real, S_IXOTH);
        *p = '/';
    }

    free(real);

    return may;
}


/*
 * Returns whether the mode bits permit the access.  If the file has an access
 * control list, which may grant more access, returns 1.
 */

static ngx_uint_t
ngx_http_xet_warn_may(ngx_http_xet_warn_user_t *u, const char *path,
    ngx_uint_t bit)
{
    int              i;
    ngx_file_info_t  fi;

    if (stat(path, &fi) == -1
        || getxattr(path, "system.posix_acl_access", NULL, 0) > 0)
    {
        return 1;
    }

    if (fi.st_uid == u->user) {
        return (fi.st_mode & (bit << 6)) != 0;
    }

    for (i = 0; i < u->ngroups; i++) {
        if (fi.st_gid == u->groups[i]) {
            return (fi.st_mode & (bit << 3)) != 0;
        }
    }

    return (fi.st_mode & bit) != 0;
}
