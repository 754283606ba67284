
/*
 * Whether the folder of the store is the one that the database describes.
 */

#ifndef _NGX_HTTP_XET_STORE_IDENTITY_H_INCLUDED_
#define _NGX_HTTP_XET_STORE_IDENTITY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"


#define NGX_HTTP_XET_IDENTITY_LEN  32          /* hex digits */


/*
 * The identity of the folder, with a zero byte behind it.  XET_DONE when it
 * has none, XET_STORE_FAILED when that can't be read.
 */
xet_status_t ngx_http_xet_store_identity_read_job(const ngx_str_t *store,
    u_char *identity, ngx_log_t *log);

/* Gives the folder an identity, durably; XET_OK as well where it has one. */
xet_status_t ngx_http_xet_store_identity_make_job(const ngx_str_t *store,
    const u_char *identity, ngx_log_t *log);

/* A new one, at random, with a zero byte behind it. */
xet_status_t ngx_http_xet_store_identity_draw(u_char *identity);


/* What the database says, noted for the worker by who connects to it. */
void ngx_http_xet_store_identity_note(const u_char *identity);

/*
 * Whether the folder has the identity that was noted: XET_OK, XET_STORE_OTHER,
 * or XET_STORE_FAILED.  XET_OK as well when none was: then nobody is connected
 * yet, and what this is for needs a session, which looks for itself.
 */
xet_status_t ngx_http_xet_store_identity_check_job(const ngx_str_t *store,
    ngx_log_t *log);


#endif /* _NGX_HTTP_XET_STORE_IDENTITY_H_INCLUDED_ */
