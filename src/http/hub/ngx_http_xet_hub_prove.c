
/*
 * Computes the SHA-256 of the files that a staged commit refers to.  Before,
 * it is only a claim of the client that sent the shard.
 *
 *     look    (query)  looks up the files among the uploads of the repo;
 *                      returns errors, and the files whose SHA-256 was never
 *                      computed
 *     next    (jobs)   reads these files one by one, or waits for another
 *                      commit that is reading them; then repeats "look"
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_hub.h"

#include <openssl/evp.h>


#define NGX_HTTP_XET_HUB_AGAIN  500       /* ms between look-ups */


/* A file whose SHA-256 must be computed. */

typedef struct {
    xet_hash_t                   hash;
    u_char                       sha256[XET_DIGEST_SHA256_LEN];
} ngx_http_xet_hub_claim_t;


struct ngx_http_xet_hub_prove_s {
    ngx_str_t                    store;        /* internal repo name */
    const u_char                *upload;
    void                       (*done)(ngx_http_request_t *r);

    ngx_http_xet_hub_claim_t    *claims;       /* files to be read */
    ngx_uint_t                   n;
    ngx_uint_t                   next;
    ngx_http_xet_reader_t       *reader;
    EVP_MD_CTX                  *sha256;
    uint64_t                     hashed;       /* bytes of this file so far */
    ngx_event_t                  again;
};


static void ngx_http_xet_hub_prove_cleanup(void *data);
static void ngx_http_xet_hub_prove_look(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c);
static void ngx_http_xet_hub_prove_claimed(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_prove_suspects(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c);
static void ngx_http_xet_hub_prove_pause(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c);
static void ngx_http_xet_hub_prove_again(ngx_event_t *ev);
static void ngx_http_xet_hub_prove_next(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c);
static void ngx_http_xet_hub_prove_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_hub_prove_consume(void *data,
    const ngx_http_xet_piece_t *piece, ngx_log_t *log);
static void ngx_http_xet_hub_prove_hashed(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status);
static void ngx_http_xet_hub_prove_proven(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_hub_prove_fail(ngx_http_request_t *r,
    xet_status_t status);


void
ngx_http_xet_hub_prove(ngx_http_request_t *r, const ngx_str_t *store,
    const u_char *upload, void (*done)(ngx_http_request_t *r))
{
    ngx_http_xet_hub_prove_t  *c;

    c = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_prove_t),
                           ngx_http_xet_hub_prove_cleanup);
    if (c == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    c->store = *store;
    c->upload = upload;
    c->done = done;

    ngx_http_xet_hub_get(r)->prove = c;

    ngx_http_xet_hub_prove_look(r, c);
}


static void
ngx_http_xet_hub_prove_cleanup(void *data)
{
    ngx_http_xet_hub_prove_t *c = data;

    if (c->again.timer_set) {
        ngx_del_timer(&c->again);
    }

    EVP_MD_CTX_free(c->sha256);
}


uint64_t
ngx_http_xet_hub_proving(const ngx_http_xet_hub_t *hub)
{
    return hub->prove ? hub->prove->hashed : 0;
}


static void
ngx_http_xet_hub_prove_look(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c)
{
    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_claims, ngx_http_xet_hub_prove_claimed,
                           .store = c->store, .upload = c->upload));
}


static void
ngx_http_xet_hub_prove_claimed(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_prove_t  *c;

    c = ngx_http_xet_hub_get(r)->prove;

    if (rc == NGX_DECLINED) {
        c->done(r);
        return;
    }

    if (rc == NGX_OK) {
        rc = ngx_http_xet_hub_prove_suspects(r, c);

        if (rc == NGX_OK) {
            ngx_http_xet_hub_prove_next(r, c);
            return;
        }

        if (rc == NGX_DONE) {
            return;
        }
    }

    ngx_http_xet_query_failed(r, rc);
}


/*
 * Reads the rows of the files whose SHA-256 must be proven.  Returns NGX_OK;
 * NGX_DONE if the request was finalized, or is waiting for other commits; or
 * NGX_ERROR.
 */

static ngx_int_t
ngx_http_xet_hub_prove_suspects(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c)
{
    ngx_uint_t                     i;
    ngx_http_xet_hub_claim_t      *claim;
    ngx_http_xet_hub_answer_t      answer;
    ngx_http_xet_hub_claims_row_t  row;

    c->next = 0;
    c->n = ngx_http_xet_query_rows(ngx_http_xet_ctx_of(r)->query);

    c->claims = ngx_pnalloc(r->pool, c->n * sizeof(ngx_http_xet_hub_claim_t));
    if (c->claims == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < c->n; i++) {
        claim = &c->claims[i];

        if (ngx_http_xet_row(r, hub_claims, i, &row) != NGX_OK) {
            return NGX_ERROR;
        }

        if (row.status == NGX_HTTP_ACCEPTED) {
            ngx_http_xet_hub_prove_pause(r, c);
            return NGX_DONE;
        }

        if (row.status != NGX_HTTP_OK) {
            answer.status = row.status;
            ngx_str_set(&answer.code, "unknown_file");

            if (row.status == NGX_HTTP_TOO_MANY_REQUESTS) {
                ngx_str_set(&answer.code, "too_many_claims");
            }

            answer.message = row.message;

            ngx_http_finalize_request(r, ngx_http_xet_hub_refuse(r, &answer));
            return NGX_DONE;
        }

        if (row.hash == NULL || row.sha256 == NULL) {
            return NGX_ERROR;
        }

        claim->hash = *row.hash;
        ngx_memcpy(claim->sha256, row.sha256, XET_DIGEST_SHA256_LEN);
    }

    return NGX_OK;
}


/*
 * Waits: other commits are reading all remaining files, and this commit can use
 * their results.
 */

static void
ngx_http_xet_hub_prove_pause(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c)
{
    ngx_http_xet_query_release(r);

    c->again.handler = ngx_http_xet_hub_prove_again;
    c->again.data = r;
    c->again.log = r->connection->log;

    ngx_add_timer(&c->again, NGX_HTTP_XET_HUB_AGAIN);
}


static void
ngx_http_xet_hub_prove_again(ngx_event_t *ev)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ev->data;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_http_xet_hub_prove_look(r, ngx_http_xet_hub_get(r)->prove);

    ngx_http_run_posted_requests(c);
}


/* Reads the next file.  After the last one, repeats hub_claims. */

static void
ngx_http_xet_hub_prove_next(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c)
{
    xet_status_t  status;

    if (c->next == c->n) {
        ngx_http_xet_hub_prove_look(r, c);
        return;
    }

    if (c->reader == NULL) {
        c->sha256 = EVP_MD_CTX_new();
        c->reader = ngx_http_xet_reader_create(r, c);
    }

    if (c->sha256 == NULL || c->reader == NULL
        || EVP_DigestInit_ex(c->sha256, EVP_sha256(), NULL) != 1)
    {
        ngx_http_xet_hub_prove_fail(r, XET_NOMEM);
        return;
    }

    status = ngx_http_xet_reader_open(r, c->reader, &c->claims[c->next].hash,
                                      ngx_http_xet_hub_prove_opened);

    if (status != XET_AGAIN) {
        ngx_http_xet_hub_prove_opened(r, c, status);
    }
}


static void
ngx_http_xet_hub_prove_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_hub_prove_t *c = data;

    uint64_t  size;

    if (status != XET_OK) {
        ngx_http_xet_hub_prove_fail(r, status);
        return;
    }

    size = ngx_http_xet_reader_size(c->reader);

    if (size == 0) {
        ngx_http_xet_hub_prove_hashed(r, c, NULL, XET_DONE);
        return;
    }

    ngx_http_xet_reader_range(c->reader, 0, size,
                              ngx_http_xet_hub_prove_hashed,
                              ngx_http_xet_hub_prove_consume);

    status = ngx_http_xet_reader_next(r, c->reader);

    if (status != XET_AGAIN) {
        ngx_http_xet_hub_prove_fail(r, status);
    }
}


static xet_status_t
ngx_http_xet_hub_prove_consume(void *data, const ngx_http_xet_piece_t *piece,
    ngx_log_t *log)
{
    ngx_http_xet_hub_prove_t *c = data;

    c->hashed += piece->last - piece->pos;

    return (EVP_DigestUpdate(c->sha256, piece->pos, piece->last - piece->pos)
            == 1)
           ? XET_OK : XET_INTERNAL;
}


static void
ngx_http_xet_hub_prove_hashed(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status)
{
    ngx_http_xet_hub_prove_t *c = data;

    ngx_http_xet_hub_claim_t  *claim;

    if (status == XET_OK) {
        status = ngx_http_xet_reader_next(r, c->reader);

        if (status == XET_AGAIN) {
            return;
        }
    }

    claim = &c->claims[c->next];

    c->hashed = 0;

    if (status != XET_DONE
        || EVP_DigestFinal_ex(c->sha256, claim->sha256, NULL) != 1)
    {
        ngx_http_xet_hub_prove_fail(r, status);
        return;
    }

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_proven, ngx_http_xet_hub_prove_proven,
                           .store = c->store, .file = &claim->hash,
                           .digest = claim->sha256));
}


/*
 * Called when the SHA-256 of a file is stored: reads the next file.
 * xet.hub_claims() later compares the SHA-256 with the claim.
 */

static void
ngx_http_xet_hub_prove_proven(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_prove_t  *c;

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    c = ngx_http_xet_hub_get(r)->prove;
    c->next++;

    ngx_http_xet_hub_prove_next(r, c);
}


static void
ngx_http_xet_hub_prove_fail(ngx_http_request_t *r, xet_status_t status)
{
    ngx_http_finalize_request(r, ngx_http_xet_hub_status(r, status));
}
