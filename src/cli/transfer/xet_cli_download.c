
/*
 * A download: requests the spans of a file one after the other, keeps
 * --parallel range fetches running, and finishes the spans in the order of the
 * file.
 *
 * xet_cli_span.c requests the plan of a span and fetches its ranges.  This file
 * decides when: a new span is requested when no range fetch waits, so that a
 * slow range does not stop the others.  A finished span is passed on: the
 * hashes of its chunks to the hash of the file, and in an ordered download its
 * data to the SHA-256 and the sink.
 *
 * xet_cli_fetch_t lives as long as xet_cli_download(), which owns it and all
 * spans.  One thread does everything: handlers of requests run inside
 * xet_cli_http_step().  The first failure is kept in f->rc and ends the loop.
 */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_transfer.h"


static int xet_cli_download_run(xet_cli_http_t *h, xet_cli_download_t *d);
static uint64_t xet_cli_download_batch(const xet_cli_download_t *d);
static int xet_cli_download_loop(xet_cli_fetch_t *f);
static void xet_cli_download_finish(xet_cli_fetch_t *f);
static int xet_cli_download_verify(xet_cli_fetch_t *f);


int
xet_cli_download_init(xet_cli_download_t *d, const xet_cli_args_t *args,
    const char *hash)
{
    int  rc;

    memset(d, 0, sizeof(xet_cli_download_t));

    d->end = XET_CLI_DOWNLOAD_ALL;
    d->most = XET_CLI_DOWNLOAD_ALL;

    rc = xet_cli_args_hash(hash, &d->hash);

    return rc ? rc : xet_cli_args_number(args, XET_CLI_OPT_PARALLEL, 1, 64,
                                         XET_CLI_DOWNLOAD_PARALLEL,
                                         &d->parallel);
}


int
xet_cli_download(xet_cli_http_t *h, xet_cli_download_t *d)
{
    int      rc;
    uint8_t  sha256[EVP_MAX_MD_SIZE];

    d->digest = NULL;

    rc = d->sha256 ? xet_cli_sha256_begin(&d->digest) : XET_CLI_OK;
    rc = rc ? rc : xet_cli_download_run(h, d);

    if (rc == XET_CLI_OK && d->list && d->size != d->most) {
        rc = xet_cli_failf(XET_CLI_FAULT, d->name, "has %" PRIu64 " bytes"
                           " instead of the %" PRIu64 " in the %s", d->size,
                           d->most, d->list);
    }

    if (rc == XET_CLI_OK && d->digest) {
        EVP_DigestFinal_ex(d->digest, sha256, NULL);

        if (memcmp(sha256, d->sha256, XET_CLI_SHA256_LEN) != 0) {
            rc = xet_cli_download_other(d->name, sha256);
        }
    }

    EVP_MD_CTX_free(d->digest);

    return rc;
}


int
xet_cli_download_other(const char *name, const uint8_t *sha256)
{
    char  text[2 * XET_CLI_SHA256_LEN + 1];

    *xet_hash_print_plain((uint8_t *) text, sha256) = '\0';

    return xet_cli_failf(XET_CLI_FAULT, name,
                         "does not match the SHA-256 on the server; the data "
                         "have %s",
                         text);
}


static int
xet_cli_download_run(xet_cli_http_t *h, xet_cli_download_t *d)
{
    int               rc;
    xet_cli_fetch_t  *f;
    xet_cli_span_t   *w;

    d->size = d->first;

    if (d->most == 0 && xet_hash_is_zero(&d->hash)) {
        return XET_CLI_OK;
    }

    f = calloc(1, sizeof(xet_cli_fetch_t));

    if (f == NULL) {
        return xet_cli_no_memory();
    }

    f->d = d;
    f->http = h;
    f->queue_end = &f->queue;
    f->next = d->first;
    f->batch = xet_cli_download_batch(d);
    f->size = f->batch;
    f->version = d->sum ? 1 : 2;

    xet_merkle_init(&f->merkle, &xet_suite_default);

    f->decoder.handler = xet_cli_span_chunk;
    f->decoder.codec = xet_codec_create(&xet_suite_default);

    rc = f->decoder.codec ? xet_cli_download_loop(f) : xet_cli_no_memory();

    if (rc == XET_CLI_OK && d->end != XET_CLI_DOWNLOAD_ALL && d->size < d->end)
    {
        rc = xet_cli_fail(XET_CLI_NETWORK, "server",
                          "the reconstruction ends before the end of the "
                          "range");
    }

    if (rc == XET_CLI_OK && d->first == 0 && d->end == XET_CLI_DOWNLOAD_ALL) {
        rc = xet_cli_download_verify(f);
    }

    while ((w = f->spans) != NULL) {
        f->spans = w->next;
        xet_cli_span_free(w);
    }

    xet_codec_destroy(f->decoder.codec);
    free(f);

    return rc;
}


/* Returns the number of bytes to request in one reconstruction. */

static uint64_t
xet_cli_download_batch(const xet_cli_download_t *d)
{
    if (d->sum) {
        return XET_CLI_DOWNLOAD_SUM;
    }

    return d->ordered ? XET_CLI_DOWNLOAD_ORDERED : XET_CLI_DOWNLOAD_BATCH;
}


static int
xet_cli_download_loop(xet_cli_fetch_t *f)
{
    int  rc;

    for ( ;; ) {

        if (f->rc != XET_CLI_OK) {
            return f->rc;
        }

        while (f->queue && f->running < f->d->parallel
               && f->rc == XET_CLI_OK)
        {
            xet_cli_span_fetch(f);
        }

        if (f->queue == NULL && !f->planning && !f->last
            && f->nspans <= f->d->parallel)
        {
            xet_cli_span_next(f);
        }

        if (f->spans == NULL && f->last) {
            return f->rc;
        }

        rc = xet_cli_http_step(f->http, 200);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        xet_cli_download_finish(f);
        xet_cli_progress_set(f->done);
    }
}


/*
 * Finishes the complete spans at the start of the list: adds their chunks to
 * the hash of the file, and in an ordered download passes the data to the
 * sink.
 */

static void
xet_cli_download_finish(xet_cli_fetch_t *f)
{
    size_t               i;
    xet_cli_span_t      *w;
    xet_cli_download_t  *d = f->d;

    while ((w = f->spans) != NULL && f->rc == XET_CLI_OK && w->planned
           && w->left == 0)
    {
        if (w->plan.nterms && d->sum == NULL) {
            f->rc = xet_cli_span_finish(w);

            if (d->digest) {
                EVP_DigestUpdate(d->digest, w->data,
                                 (size_t) (w->end - w->start));
            }

            if (f->rc == XET_CLI_OK && w->data && d->sink) {
                f->rc = d->sink(d->ctx, w->start, w->data,
                                (size_t) (w->end - w->start));
            }

            for (i = 0; i < w->nchunks; i++) {
                xet_merkle_add(&f->merkle, w->chunks[i].hash.bytes,
                               w->chunks[i].raw_length);
            }

            d->chunks += w->nchunks;
            d->size = w->end;
        }

        f->spans = w->next;
        f->nspans--;

        xet_cli_span_free(w);
    }
}


static int
xet_cli_download_verify(xet_cli_fetch_t *f)
{
    char        text[XET_HASH_STR_LEN + 1];
    xet_hash_t  root, hash;

    xet_merkle_finish(&f->merkle, &root);
    xet_hash_file(&xet_suite_default, &root, &hash);

    if (xet_hash_equal(&hash, &f->d->hash)) {
        return XET_CLI_OK;
    }

    if (f->kept) {
        f->d->unproven = 1;
        return XET_CLI_FAULT;
    }

    return xet_cli_failf(XET_CLI_FAULT, "damaged",
                         "the content on the server has the hash %s",
                         xet_cli_hash_string(&hash, text));
}


int
xet_cli_download_size(xet_cli_http_t *h, const xet_hash_t *hash, int quiet,
    uint64_t *size)
{
    int                rc;
    char               text[XET_HASH_STR_LEN + 1];
    xet_cli_request_t  r;

    rc = xet_cli_http_ask(h, &r, "HEAD",
                          xet_cli_http_url(h, "/v1/files/%s",
                                           xet_cli_hash_string(hash, text)));

    if (rc == XET_CLI_OK) {

        if (r.status == 200 && r.length >= 0) {
            *size = (uint64_t) r.length;

        } else {
            rc = quiet ? XET_CLI_FAULT : xet_cli_http_fail(&r);
        }
    }

    xet_cli_http_free(&r);

    return rc;
}
