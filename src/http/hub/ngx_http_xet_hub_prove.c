
/*
 * Computes the SHA-256 of the files that a staged commit refers to.  Before,
 * it is only a claim of the client that sent the shard.
 *
 *     look    (query)  looks up the files among the uploads of the repo;
 *                      returns errors, and the files whose SHA-256 was never
 *                      computed; or waits for another commit that is reading
 *                      them, and looks again
 *     open    (query)  reads the terms of the next batch: one large file, or
 *                      many small ones, which are then read like one file
 *     read    (jobs)   decodes the next piece of the batch
 *     hash    (jobs)   hashes a piece; a file ends where its size ends
 *     proven  (query)  stores the SHA-256 of all files of the batch; then
 *                      "open" for the next batch; at the end "look", unless
 *                      the last look returned all files and no claim was false
 *
 * "read" and "hash" run at the same time, each for one piece: the reader fills
 * one of its two buffers while the other one is hashed.  So a commit uses at
 * most two threads, and 2 MiB, and other requests get a thread after each
 * piece.  Statements run only while no job of "hash" does, except those of the
 * reader.  A batch is limited, so that its results are soon stored: a commit
 * that is interrupted loses only those of the current batch.
 *
 * Ownership: while a piece is hashed, it, sha256, and all members below
 * "hashing" in the structure belong to the thread of "hash"; the reader's other
 * buffer belongs to the reader.  The rest belongs to the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_hub.h"

#include <openssl/evp.h>


#define NGX_HTTP_XET_HUB_AGAIN  500       /* ms between look-ups */
#define NGX_HTTP_XET_HUB_PIECE  (1024 * 1024)   /* size of a buffer */
#define NGX_HTTP_XET_HUB_BATCH  (64 * 1024 * 1024)   /* bytes of small files */


/* A file whose SHA-256 must be computed. */

typedef struct {
    xet_hash_t                   hash;
    uint64_t                     size;
    size_t                       packed;       /* size of terms; 0: segments */
    u_char                       sha256[XET_DIGEST_SHA256_LEN];  /* claimed,
                                                  then computed */
} ngx_http_xet_hub_claim_t;


typedef struct {
    ngx_http_xet_array_t         files;
    ngx_http_xet_array_t         digests;
} ngx_http_xet_hub_proofs_t;


struct ngx_http_xet_hub_prove_s {
    ngx_str_t                    store;        /* internal repo name */
    const u_char                *upload;
    void                       (*done)(ngx_http_request_t *r);
    ngx_event_t                  again;

    ngx_http_xet_hub_claim_t    *claims;       /* files to be read */
    ngx_uint_t                   n;
    ngx_uint_t                   room;         /* allocated claims */
    ngx_uint_t                   next;         /* first file of the batch */
    ngx_uint_t                   last;         /* first file after it */
    ngx_http_xet_hub_proofs_t    proofs;       /* the batch */

    ngx_http_xet_reader_t       *reader;
    ngx_http_xet_piece_t        *ready;        /* the piece to be hashed next */
    xet_status_t                 status;       /* XET_OK: there is more */
    uint64_t                     taken;        /* bytes read of the batch */
    ngx_http_xet_task_t          task;         /* of "hash" */

    unsigned                     whole:1;      /* claims has all files */
    unsigned                     reading:1;
    unsigned                     hashing:1;

    ngx_http_xet_piece_t        *piece;        /* the piece being hashed */
    EVP_MD_CTX                  *sha256;
    ngx_uint_t                   file;         /* the file being hashed */
    uint64_t                     hashed;       /* its bytes so far */
    ngx_uint_t                   lies;         /* number of false claims */
    xet_status_t                 failed;       /* result of "hash" */
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
static xet_status_t ngx_http_xet_hub_prove_create(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c);
static void ngx_http_xet_hub_prove_batch(ngx_http_xet_hub_prove_t *c);
static void ngx_http_xet_hub_prove_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_hub_prove_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status);
static void ngx_http_xet_hub_prove_pump(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c);
static void ngx_http_xet_hub_prove_job(void *data, ngx_log_t *log);
static xet_status_t ngx_http_xet_hub_prove_hash(ngx_http_xet_hub_prove_t *c,
    const u_char *pos, size_t len);
static void ngx_http_xet_hub_prove_hashed(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_prove_end(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c);
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
    ngx_http_xet_columns_destroy(&c->proofs);
}


uint64_t
ngx_http_xet_hub_proving(const ngx_http_xet_hub_t *hub)
{
    return hub->prove ? hub->prove->taken : 0;
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

    c->last = 0;
    c->lies = 0;
    c->whole = 1;
    c->n = ngx_http_xet_query_rows(ngx_http_xet_ctx_of(r)->query);

    if (c->n > c->room) {
        c->claims = ngx_palloc(r->pool,
                               c->n * sizeof(ngx_http_xet_hub_claim_t));
        if (c->claims == NULL) {
            c->n = 0;
            return NGX_ERROR;
        }

        c->room = c->n;
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

        if (row.status == NGX_HTTP_PARTIAL_CONTENT) {
            c->whole = 0;

        } else if (row.status != NGX_HTTP_OK) {
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
        claim->size = row.size;
        claim->packed = row.packed;
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


/*
 * Opens the next batch.  After the last one, repeats hub_claims, unless that
 * would find all files proven.
 */

static void
ngx_http_xet_hub_prove_next(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c)
{
    xet_status_t  status;

    if (c->last == c->n) {

        if (c->whole && c->lies == 0) {
            c->done(r);
            return;
        }

        ngx_http_xet_hub_prove_look(r, c);
        return;
    }

    ngx_http_xet_hub_prove_batch(c);

    status = ngx_http_xet_hub_prove_create(r, c);

    if (status == XET_OK) {
        status = (c->last - c->next == 1)
                 ? ngx_http_xet_reader_open(r, c->reader,
                                            &c->claims[c->next].hash,
                                            ngx_http_xet_hub_prove_opened)
                 : ngx_http_xet_reader_open_all(r, c->reader, &c->proofs.files,
                                                ngx_http_xet_hub_prove_opened);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_hub_prove_opened(r, c, status);
    }
}


/*
 * Selects the files of the next batch: as many as the reader can open at once,
 * whose results are not too far away.
 */

static void
ngx_http_xet_hub_prove_batch(ngx_http_xet_hub_prove_t *c)
{
    size_t                     packed;
    uint64_t                   size;
    ngx_http_xet_hub_claim_t  *claim;

    ngx_http_xet_columns_reset(&c->proofs);

    c->next = c->last;

    packed = 0;
    size = 0;

    while (c->last < c->n) {
        claim = &c->claims[c->last];

        packed += claim->packed;
        size += claim->size;

        if (c->last > c->next
            && (claim->packed == 0 || claim->size == 0
                || packed > XET_TERM_SEGMENT_MAX * XET_TERM_LEN
                || size > NGX_HTTP_XET_HUB_BATCH))
        {
            break;
        }

        c->last++;

        ngx_http_xet_array_bytes(&c->proofs.files, claim->hash.bytes,
                                 XET_HASH_LEN);

        if (claim->packed == 0 || claim->size == 0) {
            break;
        }
    }

    c->status = XET_OK;
    c->failed = XET_OK;
    c->file = c->next;
    c->hashed = 0;
}


static xet_status_t
ngx_http_xet_hub_prove_create(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c)
{
    if (c->reader == NULL) {
        c->sha256 = EVP_MD_CTX_new();
        c->reader = ngx_http_xet_reader_create(r, c);

        if (c->sha256 == NULL || c->reader == NULL) {
            return XET_NOMEM;
        }

        ngx_http_xet_reader_pieces(c->reader, NGX_HTTP_XET_HUB_PIECE);
    }

    if (c->proofs.files.failed) {
        return XET_NOMEM;
    }

    return (EVP_DigestInit_ex(c->sha256, EVP_sha256(), NULL) == 1)
           ? XET_OK : XET_NOMEM;
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

    if (size) {
        ngx_http_xet_reader_range(c->reader, 0, size,
                                  ngx_http_xet_hub_prove_piece, NULL);

    } else {
        c->status = ngx_http_xet_hub_prove_hash(c, NULL, 0);

        if (c->status == XET_OK) {
            c->status = XET_DONE;
        }
    }

    ngx_http_xet_hub_prove_pump(r, c);
}


static void
ngx_http_xet_hub_prove_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status)
{
    ngx_http_xet_hub_prove_t *c = data;

    c->reading = 0;

    if (c->status == XET_OK) {
        c->status = status;
    }

    if (piece) {
        c->ready = piece;
        c->taken += piece->last - piece->pos;
    }

    ngx_http_xet_hub_prove_pump(r, c);
}


/*
 * Starts to hash the piece that is ready, and to read the next one; the batch
 * ends when neither runs any more.
 */

static void
ngx_http_xet_hub_prove_pump(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c)
{
    if (c->status == XET_OK && c->ready && !c->hashing) {
        c->piece = c->ready;

        if (ngx_http_xet_task_post_beside(r, &c->task,
                                          ngx_http_xet_hub_prove_job,
                                          ngx_http_xet_hub_prove_hashed, c)
            == NGX_OK)
        {
            c->ready = NULL;
            c->hashing = 1;

        } else {
            c->status = XET_OVERLOADED;
        }
    }

    if (c->status == XET_OK && c->ready == NULL && !c->reading) {
        c->status = ngx_http_xet_reader_next(r, c->reader);

        if (c->status == XET_AGAIN) {
            c->reading = 1;
            c->status = XET_OK;
        }
    }

    if (!c->reading && !c->hashing) {
        ngx_http_xet_hub_prove_end(r, c);
    }
}


static void
ngx_http_xet_hub_prove_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_hub_prove_t *c = data;

    c->failed = ngx_http_xet_hub_prove_hash(c, c->piece->pos,
                                            c->piece->last - c->piece->pos);
}


/* Hashes bytes of the current file and of those that follow it. */

static xet_status_t
ngx_http_xet_hub_prove_hash(ngx_http_xet_hub_prove_t *c, const u_char *pos,
    size_t len)
{
    size_t                     n;
    u_char                     digest[XET_DIGEST_SHA256_LEN];
    ngx_http_xet_hub_claim_t  *claim;

    for ( ;; ) {

        if (c->file == c->last) {
            return len ? XET_PLAN_DAMAGED : XET_OK;
        }

        claim = &c->claims[c->file];
        n = ngx_min(len, claim->size - c->hashed);

        if (EVP_DigestUpdate(c->sha256, pos, n) != 1) {
            return XET_INTERNAL;
        }

        c->hashed += n;

        if (c->hashed < claim->size) {
            return XET_OK;
        }

        if (EVP_DigestFinal_ex(c->sha256, digest, NULL) != 1
            || EVP_DigestInit_ex(c->sha256, EVP_sha256(), NULL) != 1)
        {
            return XET_INTERNAL;
        }

        if (ngx_memcmp(claim->sha256, digest, XET_DIGEST_SHA256_LEN) != 0) {
            ngx_memcpy(claim->sha256, digest, XET_DIGEST_SHA256_LEN);
            c->lies++;
        }

        c->file++;
        c->hashed = 0;

        pos += n;
        len -= n;
    }
}


static void
ngx_http_xet_hub_prove_hashed(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_prove_t *c = data;

    ngx_http_xet_reader_release(c->reader, c->piece);

    c->hashing = 0;

    if (c->failed != XET_OK) {
        c->status = c->failed;
    }

    ngx_http_xet_hub_prove_pump(r, c);
}


/* Stores the results of the batch. */

static void
ngx_http_xet_hub_prove_end(ngx_http_request_t *r,
    ngx_http_xet_hub_prove_t *c)
{
    ngx_uint_t  i;

    if (c->status == XET_DONE && c->file != c->last) {
        c->status = XET_PLAN_DAMAGED;
    }

    for (i = c->next; i < c->last; i++) {
        ngx_http_xet_array_bytes(&c->proofs.digests, c->claims[i].sha256,
                                 XET_DIGEST_SHA256_LEN);
    }

    if (c->status != XET_DONE) {
        ngx_http_xet_hub_prove_fail(r, c->status);
        return;
    }

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_proven, ngx_http_xet_hub_prove_proven,
                           .store = c->store, .files = &c->proofs.files,
                           .digests = &c->proofs.digests));
}


/* Called when the SHA-256 of a batch is stored: opens the next batch. */

static void
ngx_http_xet_hub_prove_proven(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_prove_t  *c;

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    c = ngx_http_xet_hub_get(r)->prove;
    c->taken = 0;

    ngx_http_xet_hub_prove_next(r, c);
}


static void
ngx_http_xet_hub_prove_fail(ngx_http_request_t *r, xet_status_t status)
{
    ngx_http_finalize_request(r, ngx_http_xet_hub_status(r, status));
}
