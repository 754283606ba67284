
/*
 * Checks that the store and the database belong together.
 *
 * If a disk is not mounted, the store is an empty folder.  An upload
 * acknowledged there would disappear when the disk is mounted again.  If the
 * folder belongs to another store, all xorbs seem to be lost.  So the store and
 * the database have a common identity, in the file <store>/identity and in the
 * row of xet.store.  Each new session compares the two identities
 * (ngx_http_xet_pg_check.c).  The file is read again before a copy is reported
 * as durable or lost.
 *
 * The file is created once and never changes.  To create the file, a temporary
 * file is written, synced and linked, and the folder is synced; link() does
 * not replace an existing file.  The recorded identity belongs to the worker.
 * A lock protects it, because threads that connect to PostgreSQL write it and
 * threads that check the store read it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"

#include <openssl/rand.h>
#include <pthread.h>


#define NGX_HTTP_XET_IDENTITY_VALID  5000      /* ms, buckets only */


static pthread_mutex_t  ngx_http_xet_store_identity_lock
    = PTHREAD_MUTEX_INITIALIZER;

static u_char    ngx_http_xet_store_identity[NGX_HTTP_XET_IDENTITY_LEN + 1];
static uint64_t  ngx_http_xet_store_identity_seen;      /* 0: not yet read */


xet_status_t
ngx_http_xet_store_identity_read_job(ngx_http_xet_store_t *store,
    u_char *identity, ngx_log_t *log)
{
    xet_status_t       rc;
    xet_store_error_t  error;

    rc = xet_store_identity(store->backend, (char *) identity, &error);

    if (store->s3) {
        ngx_http_xet_store_skew(store, log);
    }

    return ngx_http_xet_store_log(store, rc, &error, log);
}


xet_status_t
ngx_http_xet_store_identity_make_job(ngx_http_xet_store_t *store,
    const u_char *identity, ngx_log_t *log)
{
    xet_status_t       rc;
    xet_store_error_t  error;

    rc = xet_store_identify(store->backend, (char *) identity, &error);

    return ngx_http_xet_store_log(store, rc, &error, log);
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

    ngx_http_xet_store_identity_seen = 0;

    pthread_mutex_unlock(&ngx_http_xet_store_identity_lock);
}


xet_status_t
ngx_http_xet_store_identity_check_job(ngx_http_xet_store_t *store,
    ngx_log_t *log)
{
    uint64_t    seen;

    if (store->s3) {
        pthread_mutex_lock(&ngx_http_xet_store_identity_lock);

        seen = ngx_http_xet_store_identity_seen;

        pthread_mutex_unlock(&ngx_http_xet_store_identity_lock);

        if (seen && ngx_http_xet_store_clock() - seen
                    < NGX_HTTP_XET_IDENTITY_VALID)
        {
            return XET_OK;
        }
    }

    return ngx_http_xet_store_identity_look_job(store, log);
}


xet_status_t
ngx_http_xet_store_identity_look_job(ngx_http_xet_store_t *store,
    ngx_log_t *log)
{
    u_char        found[NGX_HTTP_XET_IDENTITY_LEN + 1];
    u_char        known[NGX_HTTP_XET_IDENTITY_LEN + 1];
    uint64_t      now;
    ngx_uint_t    same;
    xet_status_t  rc;

    now = ngx_http_xet_store_clock();

    pthread_mutex_lock(&ngx_http_xet_store_identity_lock);

    ngx_memcpy(known, ngx_http_xet_store_identity, sizeof(known));

    pthread_mutex_unlock(&ngx_http_xet_store_identity_lock);

    rc = ngx_http_xet_store_identity_read_job(store, found, log);

    if (rc != XET_OK && rc != XET_DONE) {
        return rc;
    }

    /*
     * Another thread may have recorded a new identity while the store was
     * read.  So the identity of the store is compared with the identity
     * recorded before the read.
     */

    same = known[0] == '\0'
           || (rc == XET_OK
               && ngx_memcmp(found, known, NGX_HTTP_XET_IDENTITY_LEN) == 0);

    pthread_mutex_lock(&ngx_http_xet_store_identity_lock);

    if (ngx_memcmp(known, ngx_http_xet_store_identity, sizeof(known)) == 0) {
        ngx_http_xet_store_identity_seen = same ? now : 0;
    }

    pthread_mutex_unlock(&ngx_http_xet_store_identity_lock);

    if (same) {
        return XET_OK;
    }

    ngx_log_error(NGX_LOG_CRIT, log, 0,
                  "xet: the %s \"%V\" is not the store of this database: %s",
                  store->backend->ops->kind, &store->name,
                  (rc == XET_OK) ? "it has another identity"
                  : store->s3 ? "it has no object \"identity\" below the "
                                "prefix: was it emptied or replaced?"
                  : "it has no identity: is its disk mounted?");

    return XET_STORE_OTHER;
}
