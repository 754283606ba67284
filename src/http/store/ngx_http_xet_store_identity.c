
/*
 * Whether the folder of the store is the one that the database describes.
 *
 * Where a disk is not mounted there is an empty folder: an upload acknowledged
 * there disappears when the disk is mounted again.  The folder of another
 * store would seem to have lost all its xorbs.  So folder and database have
 * the same identity, in the file <store>/identity and in the row of xet.store.
 * Each new session compares the two (ngx_http_xet_pg_check.c), and the file is
 * read again before a copy is called durable or lost.
 *
 * The file is made once and never changes: a temporary file is written and
 * synced, then linked, which does not replace a file, then the folder is
 * synced.  The identity that was noted belongs to the worker and has a lock,
 * because threads connect and threads check.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"

#include <openssl/rand.h>
#include <pthread.h>


static pthread_mutex_t  ngx_http_xet_store_identity_lock
    = PTHREAD_MUTEX_INITIALIZER;

static u_char  ngx_http_xet_store_identity[NGX_HTTP_XET_IDENTITY_LEN + 1];


xet_status_t
ngx_http_xet_store_identity_read_job(const ngx_str_t *store,
    u_char *identity, ngx_log_t *log)
{
    int      fd;
    char     path[NGX_MAX_PATH];
    u_char   buf[NGX_HTTP_XET_IDENTITY_LEN + 1];
    ssize_t  n;

    (void) ngx_snprintf((u_char *) path, NGX_MAX_PATH, "%V/identity%Z", store);

    fd = open(path, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {

        if (ngx_errno == NGX_ENOENT) {
            return XET_DONE;
        }

        return ngx_http_xet_store_failed(log, "open", path);
    }

    n = read(fd, buf, sizeof(buf));

    close(fd);

    if (n != sizeof(buf) || buf[NGX_HTTP_XET_IDENTITY_LEN] != '\n') {
        ngx_log_error(NGX_LOG_CRIT, log, 0,
                      "xet: \"%s\" is not the identity of a store", path);
        return XET_STORE_FAILED;
    }

    buf[NGX_HTTP_XET_IDENTITY_LEN] = '\0';

    ngx_memcpy(identity, buf, sizeof(buf));

    return XET_OK;
}


xet_status_t
ngx_http_xet_store_identity_make_job(const ngx_str_t *store,
    const u_char *identity, ngx_log_t *log)
{
    int           fd;
    char          path[NGX_MAX_PATH], temp[NGX_MAX_PATH];
    u_char        line[NGX_HTTP_XET_IDENTITY_LEN + 1];
    xet_status_t  status;

    (void) ngx_snprintf((u_char *) path, NGX_MAX_PATH, "%V/identity%Z", store);
    (void) ngx_snprintf((u_char *) temp, NGX_MAX_PATH,
                        "%V/tmp/identity.%P.%xi%Z", store, ngx_pid,
                        (ngx_int_t) pthread_self());

    ngx_memcpy(line, identity, NGX_HTTP_XET_IDENTITY_LEN);
    line[NGX_HTTP_XET_IDENTITY_LEN] = '\n';

    fd = open(temp, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0644);

    if (fd == -1) {
        return ngx_http_xet_store_failed(log, "open", temp);
    }

    status = XET_OK;

    if (write(fd, line, sizeof(line)) != sizeof(line) || fsync(fd) == -1) {
        status = ngx_http_xet_store_failed(log, "write", temp);

    } else if (link(temp, path) == -1 && ngx_errno != NGX_EEXIST) {
        status = ngx_http_xet_store_failed(log, "link", path);
    }

    close(fd);

    (void) unlink(temp);

    if (status != XET_OK) {
        return status;
    }

    return ngx_http_xet_store_sync_dir_job((char *) store->data, log);
}


xet_status_t
ngx_http_xet_store_identity_draw(u_char *identity)
{
    u_char  bytes[NGX_HTTP_XET_IDENTITY_LEN / 2];

    if (RAND_bytes(bytes, sizeof(bytes)) != 1) {
        return XET_INTERNAL;
    }

    *ngx_hex_dump(identity, bytes, sizeof(bytes)) = '\0';

    return XET_OK;
}


void
ngx_http_xet_store_identity_note(const u_char *identity)
{
    pthread_mutex_lock(&ngx_http_xet_store_identity_lock);

    ngx_memcpy(ngx_http_xet_store_identity, identity,
               NGX_HTTP_XET_IDENTITY_LEN);

    pthread_mutex_unlock(&ngx_http_xet_store_identity_lock);
}


xet_status_t
ngx_http_xet_store_identity_check_job(const ngx_str_t *store, ngx_log_t *log)
{
    u_char        found[NGX_HTTP_XET_IDENTITY_LEN + 1];
    ngx_uint_t    same;
    xet_status_t  rc;

    rc = ngx_http_xet_store_identity_read_job(store, found, log);

    if (rc != XET_OK && rc != XET_DONE) {
        return rc;
    }

    pthread_mutex_lock(&ngx_http_xet_store_identity_lock);

    same = ngx_http_xet_store_identity[0] == '\0'
           || (rc == XET_OK
               && ngx_memcmp(found, ngx_http_xet_store_identity,
                             NGX_HTTP_XET_IDENTITY_LEN) == 0);

    pthread_mutex_unlock(&ngx_http_xet_store_identity_lock);

    if (same) {
        return XET_OK;
    }

    ngx_log_error(NGX_LOG_CRIT, log, 0,
                  "xet: the folder \"%V\" is not the store of the database: "
                  "%s", store, (rc == XET_OK) ? "it is another one"
                  : "it has no identity, is its disk mounted?");

    return XET_STORE_OTHER;
}
