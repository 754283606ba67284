
/*
 * Who a request is from, and what it may do.
 */

#ifndef _NGX_HTTP_XET_AUTH_H_INCLUDED_
#define _NGX_HTTP_XET_AUTH_H_INCLUDED_


#include "ngx_http_xet.h"


/* The verdict on a request's token, made once by a location. */

struct ngx_http_xet_auth_s {
    void                *rules;        /* the location that it is by */
    xet_status_t         status;       /* XET_OK: claims are good */
    xet_token_claims_t   claims;
    ngx_str_t            subject;
    ngx_str_t            repo;
    u_char               room[XET_TOKEN_ROOM];
};


/*
 * Verifies the bearer token of a request, at first use, by the keys and names
 * of its location.  NULL without memory.
 */
ngx_http_xet_auth_t *ngx_http_xet_auth(ngx_http_request_t *r);

/*
 * The check of the access phase for a route that reads or writes.  NGX_OK,
 * NGX_DONE when the request was answered and finalized, NGX_ERROR.
 */
ngx_int_t ngx_http_xet_auth_check(ngx_http_request_t *r, ngx_uint_t write);

/*
 * The repo whose files the request may see and adds to; NULL with
 * "xet_access store".  An empty name is a token of no repo.
 */
ngx_str_t *ngx_http_xet_repo(ngx_http_request_t *r);

/*
 * Who sends, for what is noted of who has sent what: issuer and subject.  An
 * empty string where that is nobody: without tokens, and in a repo with a
 * token of no subject.  data is NULL without memory.
 */
ngx_str_t ngx_http_xet_subject(ngx_http_request_t *r);

/* Whether who names chunks must have shown to have them. */
ngx_uint_t ngx_http_xet_proof(ngx_http_request_t *r);

/* Whether dedup answers name the xorbs of other repos, too. */
ngx_uint_t ngx_http_xet_dedup_wide(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_AUTH_H_INCLUDED_ */
