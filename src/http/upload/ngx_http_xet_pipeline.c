
/*
 * Lets several threads work on the pieces of a file at once.
 *
 *     cut     (body)   splits a piece into chunks, in the order of the file
 *     pack    (jobs)   hashes and encodes the chunks of a piece; one job for
 *                      each piece, several at once
 *     place   (body)   looks the chunks up and writes those that are new, in
 *                      the order of the file
 *     digest  (job)    computes the SHA-256 of the pieces, in the same order
 *
 * "body" is the job of the upload's body (ngx_http_xet_body_filter.c): for each
 * piece it cuts that one and places earlier ones.  A piece stays in its buffer
 * until it is placed and part of the SHA-256.  Before the buffer is needed for
 * another piece, the job of the body pauses the body.
 *
 * A pool with one thread is enough: no job waits for another one, only the
 * event loop does.
 *
 * A job that can't be posted sets "status"; the job of the body then waits for
 * its result, and gets that error.  "packed" is set before the event loop hears
 * that "pack" has ended, so the next piece in the same buffer may be cut before
 * that; its "pack" is posted when the event loop has heard it.
 *
 * Ownership: "cut", "placed" and "begun" belong to the job of the body while it
 * runs, otherwise to the event loop.  The batch of a piece belongs to the job
 * of the body until the piece is cut, then to "pack", which ends with "packed"
 * set, and then again to the job of the body.  "digested" counts what "digest"
 * has done.  The rest belongs to the event loop.
 *
 * A thread creates its encoder in its first job and never frees it, like the
 * codec in ngx_http_xet_decode.c.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pipeline.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_PIPELINE_N      NGX_HTTP_XET_BODY_BUFFERS

/* pieces that may wait: of the other two buffers one is filled, one is cut */
#define NGX_HTTP_XET_PIPELINE_AHEAD  (NGX_HTTP_XET_PIPELINE_N - 2)


typedef struct {
    ngx_http_xet_pipeline_t        *pipeline;
    ngx_http_xet_task_t             task;      /* of "pack" */
    xet_ingest_batch_t             *batch;
    u_char                         *buf;
    size_t                          len;
    xet_status_t                    status;    /* result of "pack" */
    ngx_atomic_t                    packed;
    unsigned                        packing:1; /* until pack_done() */
} ngx_http_xet_pipeline_piece_t;


struct ngx_http_xet_pipeline_s {
    size_t                          size;      /* of a buffer */
    ngx_http_xet_pipeline_piece_t   pieces[NGX_HTTP_XET_PIPELINE_N];

    ngx_uint_t                      cut;       /* number of pieces */
    ngx_uint_t                      placed;
    ngx_uint_t                      ahead;     /* may wait after this one */
    unsigned                        begun:1;   /* the body's piece is cut */

    ngx_http_xet_task_t             task;      /* of "digest" */
    EVP_MD_CTX                     *sha256;
    ngx_uint_t                      end;       /* pieces passed to "digest" */
    ngx_atomic_t                    digested;
    unsigned                        failed:1;  /* set before digested */

    xet_status_t                    status;    /* a job was not posted */
    ngx_uint_t                      given;     /* pieces that may be packed */
    ngx_uint_t                      posted;    /* pieces passed to "pack" */
    ngx_uint_t                      jobs;      /* running jobs */
    unsigned                        digesting:1;
    unsigned                        waiting:1;

    ngx_http_xet_pipeline_pt        handler;   /* see pipeline_end() */
    void                           *data;
};


static xet_status_t ngx_http_xet_pipeline_cut_job(ngx_http_xet_pipeline_t *p,
    xet_ingest_t *core, u_char *buf, size_t len);
static xet_status_t ngx_http_xet_pipeline_place_job(
    ngx_http_xet_pipeline_t *p, xet_ingest_t *core);
static ngx_uint_t ngx_http_xet_pipeline_free(ngx_http_xet_pipeline_t *p);
static void ngx_http_xet_pipeline_pack(ngx_http_request_t *r,
    ngx_http_xet_pipeline_t *p);
static void ngx_http_xet_pipeline_pack_job(void *data, ngx_log_t *log);
static void ngx_http_xet_pipeline_digest(ngx_http_request_t *r,
    ngx_http_xet_pipeline_t *p);
static void ngx_http_xet_pipeline_digest_job(void *data, ngx_log_t *log);
static void ngx_http_xet_pipeline_digest_done(ngx_http_request_t *r,
    void *data);
static void ngx_http_xet_pipeline_pack_done(ngx_http_request_t *r,
    void *data);
static void ngx_http_xet_pipeline_done(ngx_http_request_t *r,
    ngx_http_xet_pipeline_t *p);
static ngx_uint_t ngx_http_xet_pipeline_ready(ngx_http_xet_pipeline_t *p);


static inline ngx_http_xet_pipeline_piece_t *
ngx_http_xet_pipeline_piece(ngx_http_xet_pipeline_t *p, ngx_uint_t n)
{
    return &p->pieces[n % NGX_HTTP_XET_PIPELINE_N];
}


ngx_http_xet_pipeline_t *
ngx_http_xet_pipeline_create(ngx_http_request_t *r)
{
    ngx_uint_t                i;
    ngx_http_xet_loc_conf_t  *xlcf;
    ngx_http_xet_pipeline_t  *p;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    p = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_pipeline_t));
    if (p == NULL) {
        return NULL;
    }

    p->size = xlcf->body_buffer;
    p->task.upload = 1;

    for (i = 0; i < NGX_HTTP_XET_PIPELINE_N; i++) {
        p->pieces[i].pipeline = p;
        p->pieces[i].task.upload = 1;
    }

    return p;
}


void
ngx_http_xet_pipeline_destroy(ngx_http_xet_pipeline_t *p)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_XET_PIPELINE_N; i++) {
        xet_ingest_batch_destroy(p->pieces[i].batch);
        p->pieces[i].batch = NULL;
    }
}


xet_status_t
ngx_http_xet_pipeline_feed_job(ngx_http_xet_pipeline_t *p, xet_ingest_t *core,
    EVP_MD_CTX *sha256, u_char *buf, size_t len, ngx_uint_t last)
{
    xet_status_t  rc;

    p->sha256 = sha256;
    p->ahead = last ? 0 : NGX_HTTP_XET_PIPELINE_AHEAD;

    rc = p->begun ? XET_OK
                  : ngx_http_xet_pipeline_cut_job(p, core, buf, len);

    if (rc == XET_OK) {
        rc = ngx_http_xet_pipeline_place_job(p, core);
    }

    if (rc == XET_OK && !ngx_http_xet_pipeline_free(p)) {
        rc = XET_AGAIN;
    }

    if (rc == XET_OK) {
        p->begun = 0;

        if (last && p->failed) {
            rc = XET_INTERNAL;
        }
    }

    return rc;
}


static xet_status_t
ngx_http_xet_pipeline_cut_job(ngx_http_xet_pipeline_t *p, xet_ingest_t *core,
    u_char *buf, size_t len)
{
    ngx_http_xet_pipeline_piece_t  *piece;

    piece = ngx_http_xet_pipeline_piece(p, p->cut++);

    if (piece->batch == NULL) {
        piece->batch = xet_ingest_batch_create(&xet_suite_default, p->size);

        if (piece->batch == NULL) {
            return XET_NOMEM;
        }
    }

    piece->buf = buf;
    piece->len = len;
    piece->packed = 0;

    p->begun = 1;

    return xet_ingest_cut(core, piece->batch, buf, len);
}


/* Calls xet_ingest_place() for the pieces that are packed. */

static xet_status_t
ngx_http_xet_pipeline_place_job(ngx_http_xet_pipeline_t *p, xet_ingest_t *core)
{
    xet_status_t                    rc;
    ngx_http_xet_pipeline_piece_t  *piece;

    while (p->placed != p->cut) {
        piece = ngx_http_xet_pipeline_piece(p, p->placed);

        if (!ngx_atomic_fetch_add(&piece->packed, 0)) {
            break;
        }

        rc = piece->status;

        if (rc == XET_OK) {
            rc = xet_ingest_place(core, piece->batch);
        }

        if (rc != XET_OK) {
            return rc;
        }

        p->placed++;
    }

    return XET_OK;
}


/* Returns whether the buffer of the piece after the next one is free. */

static ngx_uint_t
ngx_http_xet_pipeline_free(ngx_http_xet_pipeline_t *p)
{
    return p->cut - p->placed <= p->ahead
           && p->cut - ngx_atomic_fetch_add(&p->digested, 0) <= p->ahead;
}


void
ngx_http_xet_pipeline_post(ngx_http_request_t *r, ngx_http_xet_pipeline_t *p)
{
    p->given = p->cut;

    ngx_http_xet_pipeline_pack(r, p);
}


static void
ngx_http_xet_pipeline_pack(ngx_http_request_t *r, ngx_http_xet_pipeline_t *p)
{
    ngx_http_xet_pipeline_piece_t  *piece;

    while (p->status == XET_OK && p->posted != p->given) {
        piece = ngx_http_xet_pipeline_piece(p, p->posted);

        if (piece->packing) {
            break;
        }

        if (ngx_http_xet_task_post_beside(r, &piece->task,
                                          ngx_http_xet_pipeline_pack_job,
                                          ngx_http_xet_pipeline_pack_done,
                                          piece)
            != NGX_OK)
        {
            p->status = XET_OVERLOADED;
            return;
        }

        piece->packing = 1;

        p->posted++;
        p->jobs++;
    }

    ngx_http_xet_pipeline_digest(r, p);
}


static void
ngx_http_xet_pipeline_pack_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_pipeline_piece_t *piece = data;

    static __thread xet_xorb_encoder_t  *encoder;

    if (encoder == NULL) {
        encoder = xet_xorb_encoder_create(&xet_suite_default);
    }

    piece->status = encoder ? xet_ingest_pack(piece->batch, encoder)
                            : XET_NOMEM;

    (void) ngx_atomic_fetch_add(&piece->packed, 1);
}


/* Starts "digest" for the pieces that were posted since its last job. */

static void
ngx_http_xet_pipeline_digest(ngx_http_request_t *r, ngx_http_xet_pipeline_t *p)
{
    if (p->digesting || p->status != XET_OK || p->end == p->posted) {
        return;
    }

    p->end = p->posted;

    if (ngx_http_xet_task_post_beside(r, &p->task,
                                      ngx_http_xet_pipeline_digest_job,
                                      ngx_http_xet_pipeline_digest_done, p)
        != NGX_OK)
    {
        p->status = XET_OVERLOADED;
        return;
    }

    p->digesting = 1;
    p->jobs++;
}


static void
ngx_http_xet_pipeline_digest_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_pipeline_t *p = data;

    ngx_uint_t                      n;
    ngx_http_xet_pipeline_piece_t  *piece;

    for (n = p->digested; n != p->end; n++) {
        piece = ngx_http_xet_pipeline_piece(p, n);

        if (EVP_DigestUpdate(p->sha256, piece->buf, piece->len) != 1) {
            p->failed = 1;
        }

        (void) ngx_atomic_fetch_add(&p->digested, 1);
    }
}


static void
ngx_http_xet_pipeline_digest_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_pipeline_t *p = data;

    p->digesting = 0;

    if (p->handler == NULL) {
        ngx_http_xet_pipeline_digest(r, p);
    }

    ngx_http_xet_pipeline_done(r, p);
}


static void
ngx_http_xet_pipeline_pack_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_pipeline_piece_t *piece = data;

    ngx_http_xet_pipeline_t  *p;

    p = piece->pipeline;

    piece->packing = 0;

    if (p->handler == NULL) {
        ngx_http_xet_pipeline_pack(r, p);
    }

    ngx_http_xet_pipeline_done(r, p);
}


/* A job has ended. */

static void
ngx_http_xet_pipeline_done(ngx_http_request_t *r, ngx_http_xet_pipeline_t *p)
{
    p->jobs--;

    if (p->handler) {

        if (p->jobs == 0) {
            p->handler(r, p->data);
        }

        return;
    }

    if (p->waiting) {
        ngx_http_xet_pipeline_wait(r, p);
    }
}


void
ngx_http_xet_pipeline_wait(ngx_http_request_t *r, ngx_http_xet_pipeline_t *p)
{
    p->waiting = !ngx_http_xet_pipeline_ready(p);

    if (!p->waiting) {
        ngx_http_xet_body_resume(r, p->status);
    }
}


/* Returns whether the job of the body, which is not running, can go on. */

static ngx_uint_t
ngx_http_xet_pipeline_ready(ngx_http_xet_pipeline_t *p)
{
    ngx_http_xet_pipeline_piece_t  *piece;

    if (p->status != XET_OK) {
        return 1;
    }

    piece = ngx_http_xet_pipeline_piece(p, p->placed);

    return (p->placed != p->cut && ngx_atomic_fetch_add(&piece->packed, 0))
           || ngx_http_xet_pipeline_free(p);
}


ngx_int_t
ngx_http_xet_pipeline_end(ngx_http_xet_pipeline_t *p,
    ngx_http_xet_pipeline_pt handler, void *data)
{
    if (p->jobs == 0) {
        return NGX_OK;
    }

    p->handler = handler;
    p->data = data;

    return NGX_AGAIN;
}
