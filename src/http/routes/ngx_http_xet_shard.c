
/*
 * POST shards: registers files.
 *
 *     handler -> feed (thread, for each piece of the body: checks the
 *     structure, writes the file section to a temporary file) -> body_done ->
 *     the register service (verifies and commits the files) -> registered ->
 *     200
 *
 * The CAS info section is parsed, but not used: the database describes the
 * xorbs of the store, and a client's description is not trusted.
 *
 * In v2 the response reports the progress in frames (docs/protocol.md, shard
 * frames).  An error before the first frame is sent as a status, as in v1; a
 * later error is sent in a frame.  Without a final frame clients would not
 * retry.  An unknown xorb is always reported in a frame: clients show only the
 * text of frames to their users, and this text tells users to clear the cache
 * that contains the xorb.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_store.h"
#include "ngx_http_xet_upload.h"


/*
 * Milliseconds until the first frame is sent; an error before this time is sent
 * as a status.
 */
#define NGX_HTTP_XET_SHARD_DELAY  500

/* The reason phrase that hf_xet shows for a rejection without frames. */
#define NGX_HTTP_XET_SHARD_UNKNOWN                                            \
    "400 Unknown Xorb; upload again, or remove HF_XET_CACHE "                  \
    "(~/.cache/huggingface/xet)"


struct ngx_http_xet_shard_s {
    xet_shard_parser_t      parser;
    ngx_http_xet_temp_t    *spool;
    ngx_http_xet_frames_t  *frames;    /* v2 */
};


static xet_status_t ngx_http_xet_shard_feed(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static void ngx_http_xet_shard_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_shard_registered(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);
static void ngx_http_xet_shard_progress(ngx_http_request_t *r,
    ngx_http_xet_stage_e stage, uint64_t verified, uint64_t total);
static void ngx_http_xet_shard_refused(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_shard_status(ngx_http_request_t *r,
    ngx_int_t rc, xet_status_t status, ngx_uint_t new);
static ngx_int_t ngx_http_xet_shard_frame(ngx_http_request_t *r,
    ngx_http_xet_frames_t *frames, ngx_int_t rc, xet_status_t status,
    ngx_uint_t new);


ngx_int_t
ngx_http_xet_shard_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_http_xet_shard_t     *shard;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    shard = ngx_palloc(r->pool, sizeof(ngx_http_xet_shard_t));
    if (shard == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    shard->frames = NULL;

    if (ctx->version == NGX_HTTP_XET_V2) {

        shard->frames = ngx_palloc(r->pool, sizeof(ngx_http_xet_frames_t));
        if (shard->frames == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    ctx->route.shard = shard;
    ctx->full_413 = 1;

    xet_shard_parser_init(&shard->parser, NULL, NULL);
    shard->parser.chunks_max = xlcf->shard_chunks;

    shard->spool = ngx_http_xet_store_temp(r);
    if (shard->spool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_body_read(r, &(ngx_http_xet_body_sink_t) {
                                      .feed = ngx_http_xet_shard_feed,
                                      .done = ngx_http_xet_shard_body_done,
                                      .data = shard });
}


static xet_status_t
ngx_http_xet_shard_feed(void *data, u_char *buf, size_t len, ngx_uint_t last,
    ngx_log_t *log)
{
    ngx_http_xet_shard_t *shard = data;

    uint64_t             before, end;
    xet_status_t         rc;
    xet_shard_parser_t  *p;

    p = &shard->parser;
    before = (uint64_t) shard->spool->size;

    /* the temporary file ends with the file section */

    end = p->files_end;

    rc = xet_shard_parser_feed(p, buf, len);

    if (rc != XET_OK && rc != XET_DONE) {
        return rc;
    }

    if (end == 0) {
        end = before + len;

        if (p->files_end) {
            end = ngx_min(end, p->files_end);
        }

        /*
         * the final record of the section may have begun in an earlier piece
         */

        if (end > before) {
            rc = ngx_http_xet_store_write_job(shard->spool, buf, end - before,
                                              log);
            if (rc != XET_OK) {
                return rc;
            }
        }
    }

    return last ? xet_shard_parser_finish(p) : XET_OK;
}


static void
ngx_http_xet_shard_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_shard_t *shard = data;

    xet_shard_parser_t       *p;
    ngx_http_xet_loc_conf_t  *xlcf;

    if (status != XET_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));
        return;
    }

    p = &shard->parser;

    ngx_http_xet_audit(r)->files = p->files;

    if (shard->frames) {
        xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

        if (ngx_http_xet_frames_start(r, shard->frames,
                                      NGX_HTTP_XET_SHARD_DELAY, xlcf->progress)
            != NGX_OK)
        {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        ngx_http_xet_shard_progress(r, NGX_HTTP_XET_VALIDATING, 0, p->terms);
    }

    ngx_http_xet_register(r, shard->spool, p->files_end, p->terms,
                          ngx_http_xet_proof(r) ? NGX_HTTP_XET_REGISTER_PROOF
                                                : 0,
                          shard->frames ? ngx_http_xet_shard_progress : NULL,
                          ngx_http_xet_shard_registered);
}


static void
ngx_http_xet_shard_progress(ngx_http_request_t *r, ngx_http_xet_stage_e stage,
    uint64_t verified, uint64_t total)
{
    u_char                 frame[NGX_HTTP_XET_FRAME_MAX], *p;
    ngx_uint_t             force;
    ngx_http_xet_shard_t  *shard;

    shard = ngx_http_xet_ctx_of(r)->route.shard;

    if (stage == NGX_HTTP_XET_VALIDATING) {
        p = ngx_slprintf(frame, frame + sizeof(frame),
                         "{\"type\":\"validating\",\"verified\":%uL,"
                         "\"total\":%uL}\n", verified, total);

    } else {
        p = ngx_slprintf(frame, frame + sizeof(frame),
                         "{\"type\":\"committing\",\"stage\":\"%s\"}\n",
                         (stage == NGX_HTTP_XET_STAGING) ? "uploading"
                                                         : "syncing");
    }

    force = (stage == NGX_HTTP_XET_COMMITTING && shard->frames->begun);

    ngx_http_xet_frames_put(shard->frames, frame, p - frame, force);
}


static void
ngx_http_xet_shard_registered(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new)
{
    ngx_http_xet_shard_t   *shard;
    ngx_http_xet_frames_t  *frames;

    shard = ngx_http_xet_ctx_of(r)->route.shard;
    frames = shard->frames;

    if (rc == NGX_OK) {
        ngx_http_xet_audit(r)->result = new ? "new" : "known";

    } else if (rc == NGX_DECLINED && status == XET_SHARD_XORB) {
        ngx_http_xet_shard_refused(r);
    }

    if (frames
        && (rc == NGX_OK || frames->begun
            || (rc == NGX_DECLINED && status == XET_SHARD_XORB)))
    {
        rc = ngx_http_xet_shard_frame(r, frames, rc, status, new);

    } else {

        if (frames) {
            ngx_http_xet_frames_drop(frames);
        }

        rc = ngx_http_xet_shard_status(r, rc, status, new);
    }

    ngx_http_finalize_request(r, rc);
}


/*
 * The client program may have cached, for this endpoint URL, that the server
 * has xorbs which the caller can't refer to.  So the endpoint in the caller's
 * next token has another epoch: the cache does not apply to that URL.
 */

static void
ngx_http_xet_shard_refused(ngx_http_request_t *r)
{
    ngx_http_xet_auth_t      *auth;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    auth = (xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN) ? ngx_http_xet_auth(r)
                                                   : NULL;

    if (auth && auth->status == XET_OK) {
        (void) ngx_http_xet_post(caller_refused, .repo = auth->repo,
                                 .subject = auth->subject);
    }
}


static ngx_int_t
ngx_http_xet_shard_status(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new)
{
    if (rc == NGX_DECLINED && status != XET_QUOTA) {
        return ngx_http_xet_error_more(r, .core = status,
                   .message = ngx_http_xet_register_text(r, status),
                   .line = (status == XET_SHARD_XORB)
                           ? NGX_HTTP_XET_SHARD_UNKNOWN : NULL);
    }

    if (rc != NGX_OK) {
        return ngx_http_xet_upload_error(r, rc, status);
    }

    return ngx_http_xet_send_literal(r, new ? "{\"result\":1}"
                                            : "{\"result\":0}");
}


static ngx_int_t
ngx_http_xet_shard_frame(ngx_http_request_t *r, ngx_http_xet_frames_t *frames,
    ngx_int_t rc, xet_status_t status, ngx_uint_t new)
{
    u_char                 frame[NGX_HTTP_XET_FRAME_MAX], *p;
    ngx_uint_t             retryable;
    const char            *code, *text;
    ngx_http_xet_audit_t  *audit;

    if (rc == NGX_OK) {
        p = ngx_slprintf(frame, frame + sizeof(frame),
                         "{\"type\":\"result\",\"result\":%ui}\n", new);

        return ngx_http_xet_frames_end(frames, frame, p - frame);
    }

    /*
     * an error in the shard is permanent, an error of the server is temporary
     */

    if (rc == NGX_DECLINED) {
        code = xet_status_code(status);
        text = ngx_http_xet_register_text(r, status);
        retryable = xet_status_http(status) >= 500;

    } else {
        code = (rc == NGX_BUSY) ? "database_unavailable" : "internal_error";
        text = (rc == NGX_BUSY) ? "the database is unavailable"
                                : "a database operation failed";
        retryable = 1;
    }

    audit = ngx_http_xet_audit(r);
    audit->result = "failed";
    audit->code = code;

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "xet: error frame: %s: %s", code, text);

    p = ngx_slprintf(frame, frame + sizeof(frame),
                     "{\"type\":\"error\",\"message\":\"%s\","
                     "\"retryable\":%s}\n",
                     text, retryable ? "true" : "false");

    return ngx_http_xet_frames_end(frames, frame, p - frame);
}
