
/*
 * Who a request is from, and what it may do.
 */

#ifndef _NGX_HTTP_XET_AUTH_H_INCLUDED_
#define _NGX_HTTP_XET_AUTH_H_INCLUDED_


#include "ngx_http_xet.h"


/* The verdict on a request's token, by the configuration of one location. */

struct ngx_http_xet_auth_s {
    void                *rules;        /* the configuration of the location */
    xet_status_t         status;       /* XET_OK: the token is good */
    xet_token_claims_t   claims;
    ngx_str_t            subject;
    ngx_str_t            repo;
    u_char               room[XET_TOKEN_ROOM];
};


/*
 * Verifies the bearer token of a request, at first use in a location, by the
 * keys, issuer and audience of the location.  The result lives as long as the
 * request; NULL without memory.
 */
ngx_http_xet_auth_t *ngx_http_xet_auth(ngx_http_request_t *r);

/*
 * The check of the access phase for a route that reads, or with write set one
 * that writes.  NGX_OK; NGX_DONE when the request was answered and finalized;
 * NGX_ERROR.
 */
ngx_int_t ngx_http_xet_auth_check(ngx_http_request_t *r, ngx_uint_t write);

/*
 * The repo whose files the request may see, and to which it adds files; NULL
 * with "xet_access store".  The name is empty when the token names no repo, or
 * without memory: then only the files of public repos may be seen.
 */
ngx_str_t *ngx_http_xet_repo(ngx_http_request_t *r);

/*
 * The issuer and subject of the request, under which it is noted what a client
 * has sent.  An empty string where nothing is noted: without tokens, and with
 * "xet_access repo" and a token without a subject.  data is NULL without
 * memory.
 */
ngx_str_t ngx_http_xet_subject(ngx_http_request_t *r);

/* Whether a client that names chunks has to prove that it has them. */
ngx_uint_t ngx_http_xet_proof(ngx_http_request_t *r);

/* Whether dedup answers also name the xorbs of other repos. */
ngx_uint_t ngx_http_xet_dedup_wide(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_AUTH_H_INCLUDED_ */
