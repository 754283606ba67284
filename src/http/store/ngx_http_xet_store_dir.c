
/*
 * Folders, made with the owner that workers have, and synced; and the names of
 * copies in them, which are the same in a bucket.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"


#define NGX_HTTP_XET_DIR_MODE  0755


ngx_int_t
ngx_http_xet_store_make_dir(ngx_cycle_t *cycle, u_char *path)
{
    ngx_core_conf_t  *ccf;

    if (ngx_create_dir(path, NGX_HTTP_XET_DIR_MODE) == NGX_FILE_ERROR) {

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


xet_status_t
ngx_http_xet_store_sync_dir_job(const char *path, ngx_log_t *log)
{
    int           fd;
    xet_status_t  rc;

    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (fd == -1) {
        return ngx_http_xet_store_failed(log, "open", path);
    }

    rc = (fsync(fd) == 0) ? XET_OK
                          : ngx_http_xet_store_failed(log, "fsync", path);
    close(fd);

    return rc;
}


/* Errors that may be about what was looked at before. */

ngx_uint_t
ngx_http_xet_store_doubtful(ngx_err_t err)
{
    return err == NGX_ENOENT || err == ESTALE;
}


/*
 * What this node knows of the folder of a file is asked for again, for NFS
 * compares it with the server when a folder is opened.  NGX_ERROR: there is no
 * such folder, or it can't be opened, and the errno says why.
 */

ngx_int_t
ngx_http_xet_store_look_anew_job(char *path)
{
    int    fd;
    char  *name;

    name = strrchr(path, '/');

    *name = '\0';

    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    *name = '/';

    if (fd == -1) {
        return NGX_ERROR;
    }

    (void) close(fd);

    return NGX_OK;
}


ngx_fd_t
ngx_http_xet_store_open_copy_job(char *path, int flags)
{
    ngx_fd_t  fd;

    fd = open(path, O_RDONLY|O_CLOEXEC|flags);

    if (fd == NGX_INVALID_FILE && ngx_http_xet_store_doubtful(ngx_errno)
        && ngx_http_xet_store_look_anew_job(path) == NGX_OK)
    {
        fd = open(path, O_RDONLY|O_CLOEXEC|flags);
    }

    return fd;
}


u_char *
ngx_http_xet_store_path(u_char *dst, const xet_hash_t *xorb, uint32_t tag)
{
    u_char  *aa;

    dst = ngx_cpymem(dst, "/xorbs/" NGX_HTTP_XET_NAMESPACE "/",
                     sizeof("/xorbs/" NGX_HTTP_XET_NAMESPACE "/") - 1);
    aa = dst;
    dst += 3;

    dst = xet_xorb_name_print(dst, xorb, tag);

    aa[0] = aa[3];
    aa[1] = aa[4];
    aa[2] = '/';

    return dst;
}


xet_status_t
ngx_http_xet_store_copy_path(char *path, const ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag)
{
    u_char  *p;

    if (store->name.len + NGX_HTTP_XET_XORB_PATH_MAX + 1 > NGX_MAX_PATH) {
        return XET_STORE_FAILED;
    }

    p = ngx_cpymem(path, store->name.data, store->name.len);
    *ngx_http_xet_store_path(p, xorb, tag) = '\0';

    return XET_OK;
}
