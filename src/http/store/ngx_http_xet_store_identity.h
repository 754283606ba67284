
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
 * Reads the identity of the folder into NGX_HTTP_XET_IDENTITY_LEN + 1 bytes,
 * the last one zero.  XET_DONE when the folder has no identity,
 * XET_STORE_FAILED or XET_STORE_FILES when the file can't be read.
 */
xet_status_t ngx_http_xet_store_identity_read_job(const ngx_str_t *store,
    u_char *identity, ngx_log_t *log);

/*
 * Gives the folder an identity, durably.  XET_OK as well when the folder has
 * one already, which stays: the caller reads it again.
 */
xet_status_t ngx_http_xet_store_identity_make_job(const ngx_str_t *store,
    const u_char *identity, ngx_log_t *log);

/*
 * Draws a new identity at random, with a zero byte behind it.  XET_OK, or
 * XET_INTERNAL.
 */
xet_status_t ngx_http_xet_store_identity_draw(u_char *identity);


/*
 * Notes the identity that the database has, for all threads of the worker;
 * called in any thread, for each new session.
 */
void ngx_http_xet_store_identity_note(const u_char *identity);

/*
 * Whether the folder has the identity that was noted: XET_OK, XET_STORE_OTHER,
 * or the error of reading the file.  XET_OK as well when none was noted: then
 * the worker has had no session yet, and what this check protects needs a
 * session, which compares the identities when it connects.
 */
xet_status_t ngx_http_xet_store_identity_check_job(const ngx_str_t *store,
    ngx_log_t *log);


#endif /* _NGX_HTTP_XET_STORE_IDENTITY_H_INCLUDED_ */
