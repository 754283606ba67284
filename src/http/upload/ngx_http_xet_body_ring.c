
/*
 * The buffers of an upload: one is filled while a thread feeds another one to
 * the consumer, which may keep the pieces before that.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_body_ring.h"


ngx_buf_t *
ngx_http_xet_body_ring_buf(ngx_http_request_t *r,
    ngx_http_xet_body_ring_t *p)
{
    size_t                    size;
    ngx_buf_t                *b;
    ngx_http_xet_loc_conf_t  *xlcf;

    b = &p->buf[p->filling];

    if (b->start) {
        return b;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    size = xlcf->body_buffer;

    /*
     * for a chunked body content_length_n is the number of bytes read so far
     */

    if (!r->headers_in.chunked
        && r->headers_in.content_length_n >= 0
        && r->headers_in.content_length_n < (off_t) size)
    {
        size = r->headers_in.content_length_n + 1;
    }

    b->start = ngx_palloc(r->pool, size);
    if (b->start == NULL) {
        return NULL;
    }

    b->pos = b->start;
    b->last = b->start;
    b->end = b->start + size;
    b->temporary = 1;

    return b;
}


ngx_int_t
ngx_http_xet_body_ring_copy(ngx_http_request_t *r,
    ngx_http_xet_body_ring_t *p, u_char **pos, u_char *last)
{
    size_t      n;
    ngx_buf_t  *b;

    if (*pos == last) {
        return NGX_OK;
    }

    b = ngx_http_xet_body_ring_buf(r, p);
    if (b == NULL) {
        return NGX_ERROR;
    }

    n = ngx_min(last - *pos, b->end - b->last);

    b->last = ngx_cpymem(b->last, *pos, n);
    *pos += n;

    return (*pos == last) ? NGX_OK : NGX_AGAIN;
}


ngx_uint_t
ngx_http_xet_body_ring_full(ngx_http_xet_body_ring_t *p)
{
    ngx_buf_t  *b;

    b = &p->buf[p->filling];

    return b->start && b->last == b->end;
}


void
ngx_http_xet_body_ring_next(ngx_http_xet_body_ring_t *p, ngx_uint_t
    last)
{
    p->job = &p->buf[p->filling];
    p->last = last;
    p->filling = (p->filling + 1) % p->n;
}


void
ngx_http_xet_body_ring_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_body_ring_t *p = data;

    p->status = p->feed(p->data, p->job->pos, p->job->last - p->job->pos,
                        p->last, log);
}


void
ngx_http_xet_body_ring_done(ngx_http_xet_body_ring_t *p)
{
    p->job->pos = p->job->start;
    p->job->last = p->job->start;
    p->job = NULL;
}
