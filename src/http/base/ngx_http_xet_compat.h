
/*
 * All differences between the supported nginx versions, 1.22.1 and later.
 */

#ifndef _NGX_HTTP_XET_COMPAT_H_INCLUDED_
#define _NGX_HTTP_XET_COMPAT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#if (nginx_version < 1022001)
#error "nginx 1.22.1 or later is required"
#endif

#if !(NGX_THREADS)
#error "nginx must be built with --with-threads"
#endif


/* nginx 1.23.0 and later link headers with the same name. */

#if (nginx_version >= 1023000)
#define ngx_http_xet_header_last(h)  (h)->next = NULL
#else
#define ngx_http_xet_header_last(h)
#endif


#endif /* _NGX_HTTP_XET_COMPAT_H_INCLUDED_ */
