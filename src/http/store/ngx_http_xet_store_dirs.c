
/*
 * The folders of the store.  The master makes them, before it starts workers:
 * it may block.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_TEMP_AGE  86400           /* seconds */


static ngx_int_t ngx_http_xet_store_sync(ngx_cycle_t *cycle, u_char *path);
static void ngx_http_xet_store_clean_temp(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
static ngx_int_t ngx_http_xet_store_make_dir(ngx_cycle_t *cycle,
    u_char *path);


/*
 * All folders of the store are made here, so that no upload commits a copy to
 * a folder whose own entry is not yet durable.
 */

ngx_int_t
ngx_http_xet_store_init(ngx_cycle_t *cycle)
{
    u_char                     path[NGX_MAX_PATH], *p, *last;
    ngx_int_t                  rc;
    ngx_uint_t                 i, created;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (ngx_http_xet_store_make_dir(cycle, xmcf->temp.data) == NGX_ERROR) {
        return NGX_ERROR;
    }

    ngx_http_xet_store_clean_temp(cycle, xmcf);

    last = path + NGX_MAX_PATH;

    p = ngx_slprintf(path, last, "%V/xorbs%Z", &xmcf->store) - 1;

    if (ngx_http_xet_store_make_dir(cycle, path) == NGX_ERROR) {
        return NGX_ERROR;
    }

    p = ngx_slprintf(p, last, "/" NGX_HTTP_XET_NAMESPACE "%Z") - 1;

    if (ngx_http_xet_store_make_dir(cycle, path) == NGX_ERROR) {
        return NGX_ERROR;
    }

    created = 0;

    for (i = 0; i < 256; i++) {
        (void) ngx_slprintf(p, last, "/%02xui%Z", i);

        rc = ngx_http_xet_store_make_dir(cycle, path);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        created |= (rc == NGX_OK);
    }

    if (!created) {
        return NGX_OK;
    }

    *p = '\0';

    return ngx_http_xet_store_sync(cycle, path);
}


static ngx_int_t
ngx_http_xet_store_sync(ngx_cycle_t *cycle, u_char *path)
{
    int  fd;

    fd = open((char *) path, O_RDONLY|O_DIRECTORY);

    if (fd == -1 || syncfs(fd) == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "xet: syncing \"%s\" failed", path);

        if (fd != -1) {
            close(fd);
        }

        return NGX_ERROR;
    }

    close(fd);

    return NGX_OK;
}


/*
 * Removes what a crash has left in <store>/tmp, where temporary files have
 * names: files so old that they belong to no running upload, of this node or
 * of another node with the same store.
 */

static void
ngx_http_xet_store_clean_temp(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf)
{
    u_char           path[NGX_MAX_PATH];
    ngx_dir_t        dir;
    ngx_file_info_t  fi;

    if (ngx_open_dir(&xmcf->temp, &dir) == NGX_ERROR) {
        return;
    }

    while (ngx_read_dir(&dir) == NGX_OK) {

        if (ngx_de_name(&dir)[0] == '.') {
            continue;
        }

        (void) ngx_snprintf(path, NGX_MAX_PATH, "%V/%s%Z", &xmcf->temp,
                            ngx_de_name(&dir));

        if (ngx_file_info(path, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)
            || ngx_file_mtime(&fi) > ngx_time() - NGX_HTTP_XET_TEMP_AGE)
        {
            continue;
        }

        if (ngx_delete_file(path) == NGX_FILE_ERROR) {
            ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                          ngx_delete_file_n " \"%s\" failed", path);
        }
    }

    if (ngx_close_dir(&dir) == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      ngx_close_dir_n " \"%V\" failed", &xmcf->temp);
    }
}


/* NGX_OK: the folder was made; NGX_DECLINED: it existed; NGX_ERROR. */

static ngx_int_t
ngx_http_xet_store_make_dir(ngx_cycle_t *cycle, u_char *path)
{
    ngx_core_conf_t  *ccf;

    if (ngx_create_dir(path, 0755) == NGX_FILE_ERROR) {

        if (ngx_errno == NGX_EEXIST) {
            return NGX_DECLINED;
        }

        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      ngx_create_dir_n " \"%s\" failed", path);
        return NGX_ERROR;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (geteuid() == 0 && ccf->user != (ngx_uid_t) NGX_CONF_UNSET_UINT
        && chown((char *) path, ccf->user, -1) == -1)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "chown(\"%s\", %d) failed", path, ccf->user);
        return NGX_ERROR;
    }

    return NGX_OK;
}
