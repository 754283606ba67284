
/*
 * A unit of a download: one range of one xorb, streamed.
 */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_transfer.h"


static void xet_cli_range_fetch_restart(xet_cli_request_t *r);
static int xet_cli_range_fetch_write(xet_cli_request_t *r, const uint8_t *data,
    size_t len);
static int xet_cli_range_fetch_answer(xet_cli_range_fetch_t *u);
static int xet_cli_range_fetch_payload(xet_cli_range_fetch_t *u,
    const xet_xorb_event_t *ev);
static int xet_cli_range_fetch_chunk(xet_cli_range_fetch_t *u);
static void xet_cli_range_fetch_next(xet_cli_range_fetch_t *u);
static int xet_cli_range_fetch_storage(xet_cli_range_fetch_t *u,
    xet_cli_chunk_t *chunk, const uint8_t *raw);
static int xet_cli_range_fetch_fits(const xet_cli_range_fetch_t *u,
    const xet_cli_use_t *use, uint32_t raw_length);
static int xet_cli_range_fetch_damaged(xet_cli_range_fetch_t *u, const char
    *text);


int
xet_cli_chunk_order(const void *one, const void *two)
{
    const xet_cli_chunk_t  *a = one, *b = two;

    return (a->offset > b->offset) - (a->offset < b->offset);
}


/*
 * A chunk is skipped if an earlier run has kept it at all its positions in the
 * file, and there is at least one position.  The record of a kept chunk has
 * the stored length, which gives the start of the next chunk in the xorb.
 */

int
xet_cli_range_fetch_skip(xet_cli_range_fetch_t *u, xet_cli_range_fetch_kept_pt
    kept, void *ctx)
{
    int              rc;
    size_t           i, n;
    xet_cli_use_t   *use;
    xet_cli_chunk_t  chunk, first;

    memset(&first, 0, sizeof(xet_cli_chunk_t));

    while (u->chunk < u->range->chunk_end) {
        n = 0;

        for (i = u->passed; i < u->nuses && u->uses[i].start <= u->chunk;
             i++)
        {
            use = &u->uses[i];

            if (use->end <= u->chunk) {
                continue;
            }

            chunk.offset = use->pos;

            if (!kept(ctx, &chunk)) {
                return XET_CLI_OK;
            }

            /* an earlier plan may have had another chunk at this offset */

            if (!xet_cli_range_fetch_fits(u, use, chunk.raw_length)) {
                return XET_CLI_OK;
            }

            if (n && (!xet_hash_equal(&chunk.hash, &first.hash)
                      || chunk.raw_length != first.raw_length
                      || chunk.payload_length != first.payload_length))
            {
                return XET_CLI_OK;
            }

            first = chunk;
            n++;
        }

        if (n == 0) {
            return XET_CLI_OK;
        }

        u->pos += XET_XORB_HEADER_LEN + chunk.payload_length;

        rc = xet_cli_range_fetch_storage(u, &chunk, NULL);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        u->skipped = 1;
    }

    return XET_CLI_OK;
}


int
xet_cli_range_fetch_complete(const xet_cli_range_fetch_t *u)
{
    return u->chunk == u->range->chunk_end;
}


int
xet_cli_range_fetch_prepare(xet_cli_range_fetch_t *u)
{
    xet_cli_request_t  *r = &u->request;

    if (u->pos >= u->range->byte_end) {

        /* no bytes are left for the missing chunks: fetch the whole range */

        xet_cli_range_fetch_moved(u, u->range->byte_start, u->range->byte_end);
    }

    free(r->url);

    r->url = strdup(u->range->url);
    r->write = xet_cli_range_fetch_write;
    r->restart = xet_cli_range_fetch_restart;
    r->ctx = u;

    if (u->payload == NULL) {
        u->payload = malloc(XET_CHUNK_MAX);
    }

    return (r->url && u->payload) ? XET_CLI_OK : xet_cli_no_memory();
}


static void
xet_cli_range_fetch_restart(xet_cli_request_t *r)
{
    xet_cli_range_fetch_t  *u = r->ctx;

    snprintf(r->range, sizeof(r->range), "%" PRIu64 "-%" PRIu64, u->pos,
             u->range->byte_end - 1);

    xet_xorb_parser_init(&u->parser, &xet_suite_default,
                         u->range->byte_end - u->pos);

    u->have = 0;
    u->rc = XET_CLI_OK;
}


static int
xet_cli_range_fetch_write(xet_cli_request_t *r, const uint8_t *data, size_t len)
{
    xet_status_t            rc;
    const uint8_t          *end;
    xet_cli_range_fetch_t  *u = r->ctx;
    xet_xorb_event_t        ev;

    end = data + len;

    u->rc = xet_cli_range_fetch_answer(u);

    while (u->rc == XET_CLI_OK) {
        rc = xet_xorb_parser_next(&u->parser, &data, end, &ev);

        if (rc == XET_AGAIN) {
            break;
        }

        if (rc != XET_OK) {
            u->rc = xet_cli_range_fetch_damaged(u, xet_status_text(rc));

        } else if (ev.type == XET_XORB_EVENT_CHUNK) {

            if (u->chunk == u->range->chunk_end) {
                u->rc = xet_cli_range_fetch_damaged(u,
                    "more chunks than expected");
            }

        } else if (ev.type == XET_XORB_EVENT_PAYLOAD) {
            u->rc = xet_cli_range_fetch_payload(u, &ev);

        } else {
            u->rc = xet_cli_range_fetch_damaged(u, "a footer among the chunks");
        }
    }

    return u->rc != XET_CLI_OK;
}


/*
 * Checks the status.  A server without support for ranges sends the whole xorb
 * with 200.  This is correct only if the xorb has the length of the range.
 */

static int
xet_cli_range_fetch_answer(xet_cli_range_fetch_t *u)
{
    char  storage[XET_CLI_HTTP_TEXT];

    if (u->request.status == 206
        || u->request.length == (int64_t) u->parser.size_max)
    {
        return XET_CLI_OK;
    }

    return xet_cli_failf(XET_CLI_NETWORK, "server",
                         "%s: HTTP %ld instead of the requested range",
                         xet_cli_http_text(u->request.url, storage),
                         u->request.status);
}


static int
xet_cli_range_fetch_payload(xet_cli_range_fetch_t *u, const xet_xorb_event_t
    *ev)
{
    /* the parser rejects chunks over XET_CHUNK_MAX bytes */

    memcpy(u->payload + u->have, ev->data, ev->len);
    u->have += ev->len;

    if (u->have < u->parser.chunk.payload_len) {
        return XET_CLI_OK;
    }

    return xet_cli_range_fetch_chunk(u);
}


static int
xet_cli_range_fetch_chunk(xet_cli_range_fetch_t *u)
{
    int                      rc;
    xet_status_t             status;
    xet_cli_chunk_t          chunk;
    const xet_xorb_chunk_t  *c;

    c = &u->parser.chunk;

    if (u->chunk < u->placed) {
        u->chunk++;
        xet_cli_range_fetch_next(u);

        return XET_CLI_OK;
    }

    status = xet_codec_decode(u->decoder->codec, c->scheme, u->payload,
                              u->have, u->decoder->raw, c->raw_len);

    if (status != XET_OK) {
        return xet_cli_range_fetch_damaged(u, xet_status_text(status));
    }

    chunk.raw_length = c->raw_len;
    chunk.payload_length = c->payload_len;

    xet_hash_chunk(&xet_suite_default, u->decoder->raw, c->raw_len,
                   &chunk.hash);

    rc = xet_cli_range_fetch_storage(u, &chunk, u->decoder->raw);

    xet_cli_range_fetch_next(u);

    return rc;
}


static void
xet_cli_range_fetch_next(xet_cli_range_fetch_t *u)
{
    u->pos += XET_XORB_HEADER_LEN + u->have;
    u->have = 0;

    /* each complete chunk resets the number of attempts */

    u->request.attempts = 1;
}


/* Passes the next chunk to the handler, once for each of its positions. */

static int
xet_cli_range_fetch_storage(xet_cli_range_fetch_t *u, xet_cli_chunk_t *chunk,
    const uint8_t *raw)
{
    int             rc;
    size_t          i;
    xet_cli_use_t  *use;

    for (i = u->passed; i < u->nuses && u->uses[i].start <= u->chunk; i++) {
        use = &u->uses[i];

        if (use->end <= u->chunk) {
            continue;
        }

        if (!xet_cli_range_fetch_fits(u, use, chunk->raw_length)) {
            return xet_cli_range_fetch_damaged(u,
                                        "the term's length differs from that "
                                        "of its chunks");
        }

        chunk->offset = use->pos;
        use->pos += chunk->raw_length;

        rc = u->decoder->handler(u, chunk, raw);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    u->chunk++;
    u->placed = u->chunk;

    while (u->passed < u->nuses && u->uses[u->passed].end <= u->chunk) {
        u->passed++;
    }

    return XET_CLI_OK;
}


/*
 * Returns whether the next chunk of a term may have the length raw_length.
 */

static int
xet_cli_range_fetch_fits(const xet_cli_range_fetch_t *u, const xet_cli_use_t
    *use, uint32_t raw_length)
{
    uint64_t  pos;

    pos = use->pos + raw_length;

    return (use->end == u->chunk + 1) ? pos == use->stop : pos < use->stop;
}


/*
 * Returns XET_CLI_FAULT.  Prints an error, unless chunks were skipped: then
 * the data may only have been requested from a wrong offset.
 */

static int
xet_cli_range_fetch_damaged(xet_cli_range_fetch_t *u, const char *text)
{
    char  hash[XET_HASH_STR_LEN + 1];

    if (u->skipped) {
        return XET_CLI_FAULT;
    }

    return xet_cli_failf(XET_CLI_FAULT, "damaged", "xorb %s, chunk %u: %s",
                         xet_cli_hash_string(&u->range->xorb, hash),
                         u->chunk, text);
}


void
xet_cli_range_fetch_moved(xet_cli_range_fetch_t *u, uint64_t start, uint64_t
    end)
{
    u->range->byte_start = start;
    u->range->byte_end = end;

    u->pos = start;
    u->chunk = u->range->chunk_start;
    u->skipped = 0;
}


int
xet_cli_range_fetch_rewind(xet_cli_range_fetch_t *u)
{
    if (!u->skipped
        || (u->request.refused ? u->rc != XET_CLI_FAULT
            : (u->request.status != 416
               && (u->request.status / 100 != 2
                   || (xet_cli_range_fetch_complete(u)
                       && u->pos == u->range->byte_end)))))
    {
        return 0;
    }

    xet_cli_range_fetch_moved(u, u->range->byte_start, u->range->byte_end);

    return 1;
}


int
xet_cli_range_fetch_result(xet_cli_range_fetch_t *u)
{
    if (u->rc != XET_CLI_OK) {
        return u->rc;
    }

    if (u->request.status / 100 != 2) {
        return xet_cli_http_fail(&u->request);
    }

    if (!xet_cli_range_fetch_complete(u) || u->pos != u->range->byte_end) {
        return xet_cli_range_fetch_damaged(u,
                                           "the range ends before this chunk");
    }

    return XET_CLI_OK;
}


void
xet_cli_range_fetch_free(xet_cli_range_fetch_t *u)
{
    xet_cli_http_free(&u->request);

    free(u->payload);
    u->payload = NULL;
}
