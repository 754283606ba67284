
/*
 * A writer of xorbs.
 *
 * Purpose:    chunks in, the chunk region and on demand a footer out by a
 *             callback.  A chunk that is stored plain goes out from the
 *             caller's memory, a compressed one from the writer's.
 * States:     open, and finished until reset.  An error of the callback stays
 *             until reset, since the output is in doubt; a chunk that is
 *             refused changes nothing.
 * Ownership:  the creator owns the writer, the caller the callback's context.
 * Threads:    one at a time.
 *
 * XET_SCHEME_AUTO tries LZ4 on every chunk, and byte grouping with LZ4 where
 * a sample says that the four byte positions of the chunk differ in kind, as
 * they do in arrays of numbers; the smallest result wins.  Where LZ4 finds
 * nothing to do it is fast, so a wrong guess costs little.
 */

#include <stdlib.h>
#include <string.h>

#include "xet_bytes.h"
#include "xet_merkle.h"
#include "xet_xorb.h"
#include "xet_xorb_footer.h"


#define XET_XORB_WRITER_SAMPLES  1024


typedef struct {
    size_t              len;           /* of data, without the header */
    uint8_t             header[XET_XORB_HEADER_LEN];
    uint8_t             data[XET_CHUNK_MAX];
} xet_xorb_writer_slot_t;


struct xet_xorb_writer_s {
    const xet_suite_t  *suite;
    xet_codec_t        *codec;

    xet_xorb_write_pt   write;
    void               *ctx;

    xet_status_t        status;        /* of the callback, or of finish */
    unsigned            finished:1;

    xet_xorb_info_t     info;
    xet_merkle_t        merkle;

    xet_xorb_writer_slot_t  slot[2];

    uint8_t             hashes[XET_XORB_CHUNKS_MAX * XET_HASH_LEN];
    uint8_t             raw_ends[XET_XORB_CHUNKS_MAX * 4];
    uint8_t             stored_ends[XET_XORB_CHUNKS_MAX * 4];
};


static xet_status_t xet_xorb_writer_check(const xet_xorb_writer_t *w,
    size_t len);
static xet_status_t xet_xorb_writer_encode(xet_xorb_writer_t *w,
    const uint8_t *data, size_t len, unsigned *scheme,
    xet_xorb_writer_slot_t **slot);
static xet_status_t xet_xorb_writer_auto(xet_xorb_writer_t *w,
    const uint8_t *data, size_t len, unsigned *scheme,
    xet_xorb_writer_slot_t **slot);
static int xet_xorb_writer_numeric(const uint8_t *data, size_t len);
static xet_status_t xet_xorb_writer_output(xet_xorb_writer_t *w,
    const uint8_t *data, size_t len, unsigned scheme,
    xet_xorb_writer_slot_t *slot);


xet_xorb_writer_t *
xet_xorb_writer_create(const xet_suite_t *suite, xet_xorb_write_pt write,
    void *ctx)
{
    xet_xorb_writer_t  *w;

    w = malloc(sizeof(xet_xorb_writer_t));
    if (w == NULL) {
        return NULL;
    }

    w->codec = xet_codec_create();
    if (w->codec == NULL) {
        free(w);
        return NULL;
    }

    w->suite = suite;
    w->write = write;
    w->ctx = ctx;

    xet_xorb_writer_reset(w);

    return w;
}


void
xet_xorb_writer_destroy(xet_xorb_writer_t *w)
{
    if (w == NULL) {
        return;
    }

    xet_codec_destroy(w->codec);
    free(w);
}


void
xet_xorb_writer_reset(xet_xorb_writer_t *w)
{
    w->status = XET_OK;
    w->finished = 0;

    memset(&w->info, 0, sizeof(xet_xorb_info_t));

    w->info.hashes = w->hashes;
    w->info.raw_ends = w->raw_ends;
    w->info.stored_ends = w->stored_ends;

    xet_merkle_init(&w->merkle, w->suite);
}


int
xet_xorb_writer_fits(const xet_xorb_writer_t *w, size_t len)
{
    return xet_xorb_writer_check(w, len) == XET_OK;
}


static xet_status_t
xet_xorb_writer_check(const xet_xorb_writer_t *w, size_t len)
{
    uint64_t  max;

    if (len == 0 || len > XET_CHUNK_MAX) {
        return XET_XORB_RAW_LEN;
    }

    if (w->info.chunk_count >= XET_XORB_CHUNKS_MAX
        || w->info.chunk_count >= w->suite->xorb_chunks_max)
    {
        return XET_XORB_CHUNKS;
    }

    /* the draft has one limit, and clients apply it to either size */

    max = w->suite->xorb_raw_target;

    if (w->info.raw_size + len > max
        || w->info.stored_size + XET_XORB_HEADER_LEN + len > max)
    {
        return XET_XORB_SIZE;
    }

    return XET_OK;
}


xet_status_t
xet_xorb_writer_add(xet_xorb_writer_t *w, const uint8_t *data, size_t len,
    unsigned scheme, const xet_hash_t *hash)
{
    size_t                   n;
    xet_hash_t               computed;
    xet_status_t             rc;
    xet_xorb_info_t         *info;
    xet_xorb_writer_slot_t  *slot;

    if (w->status != XET_OK) {
        return w->status;
    }

    if (w->finished) {
        return XET_INTERNAL;
    }

    rc = xet_xorb_writer_check(w, len);
    if (rc != XET_OK) {
        return rc;
    }

    rc = xet_xorb_writer_encode(w, data, len, &scheme, &slot);
    if (rc != XET_OK) {
        return rc;
    }

    if (hash == NULL) {
        xet_hash_chunk(w->suite, data, len, &computed);
        hash = &computed;
    }

    w->status = xet_xorb_writer_output(w, data, len, scheme, slot);
    if (w->status != XET_OK) {
        return w->status;
    }

    info = &w->info;
    n = info->chunk_count;

    info->raw_size += len;
    info->stored_size += XET_XORB_HEADER_LEN + slot->len;
    info->chunk_count++;

    memcpy(w->hashes + n * XET_HASH_LEN, hash->bytes, XET_HASH_LEN);
    xet_put_u32(w->raw_ends + n * 4, (uint32_t) info->raw_size);
    xet_put_u32(w->stored_ends + n * 4, (uint32_t) info->stored_size);

    xet_merkle_add(&w->merkle, hash->bytes, len);

    return XET_OK;
}


/*
 * Sets *scheme to the scheme to store the chunk with, and *slot to a slot with
 * the length of the stored data, and with the data itself unless *scheme is
 * XET_SCHEME_NONE.
 */

static xet_status_t
xet_xorb_writer_encode(xet_xorb_writer_t *w, const uint8_t *data, size_t len,
    unsigned *scheme, xet_xorb_writer_slot_t **slot)
{
    xet_status_t  rc;

    *slot = &w->slot[0];

    if (*scheme == XET_SCHEME_AUTO) {
        return xet_xorb_writer_auto(w, data, len, scheme, slot);
    }

    (*slot)->len = XET_CHUNK_MAX;

    rc = xet_codec_encode(w->codec, *scheme, data, len, (*slot)->data,
                          &(*slot)->len);

    if (rc == XET_AGAIN) {
        *scheme = XET_SCHEME_NONE;
        (*slot)->len = len;
        rc = XET_OK;
    }

    return rc;
}


static xet_status_t
xet_xorb_writer_auto(xet_xorb_writer_t *w, const uint8_t *data, size_t len,
    unsigned *scheme, xet_xorb_writer_slot_t **slot)
{
    xet_status_t             rc;
    xet_xorb_writer_slot_t  *best, *other;

    best = &w->slot[0];
    other = &w->slot[1];

    *scheme = XET_SCHEME_LZ4;

    rc = xet_xorb_writer_encode(w, data, len, scheme, slot);

    if (rc != XET_OK || !xet_xorb_writer_numeric(data, len)) {
        return rc;
    }

    other->len = XET_CHUNK_MAX;

    rc = xet_codec_encode(w->codec, XET_SCHEME_BG4_LZ4, data, len,
                          other->data, &other->len);

    if (rc == XET_AGAIN) {
        return XET_OK;
    }

    if (rc == XET_OK && other->len < best->len) {
        *scheme = XET_SCHEME_BG4_LZ4;
        *slot = other;
    }

    return rc;
}


/*
 * Whether the bytes at one of the four positions are much less mixed than
 * all bytes together.  The measure is the chance that two samples share their
 * high half: 1/16 for noise; text has the same chance at all positions, the
 * exponents of floats and the high bytes of small integers stand out.
 */

static int
xet_xorb_writer_numeric(const uint8_t *data, size_t len)
{
    size_t    groups, step, i, k;
    uint64_t  all, best, sum, n;
    uint32_t  count[4][16];

    groups = len / 4;

    if (groups < 16) {
        return 0;
    }

    memset(count, 0, sizeof(count));

    step = groups / XET_XORB_WRITER_SAMPLES + 1;

    for (i = 0; i < groups; i += step) {
        for (k = 0; k < 4; k++) {
            count[k][data[4 * i + k] >> 4]++;
        }
    }

    best = 0;

    for (k = 0; k < 4; k++) {
        sum = 0;

        for (i = 0; i < 16; i++) {
            sum += (uint64_t) count[k][i] * count[k][i];
        }

        best = sum > best ? sum : best;
    }

    all = 0;

    for (i = 0; i < 16; i++) {
        n = (uint64_t) count[0][i] + count[1][i] + count[2][i] + count[3][i];
        all += n * n;
    }

    /* chances: best / samples^2 > 3/2 * all / (4 * samples)^2 */

    return best * 32 > all * 3;
}


static xet_status_t
xet_xorb_writer_output(xet_xorb_writer_t *w, const uint8_t *data, size_t len,
    unsigned scheme, xet_xorb_writer_slot_t *slot)
{
    uint8_t       *h;
    xet_status_t   rc;

    h = slot->header;

    h[0] = 0;
    xet_put_u24(h + 1, (uint32_t) slot->len);
    h[4] = (uint8_t) scheme;
    xet_put_u24(h + 5, (uint32_t) len);

    rc = w->write(w->ctx, h, XET_XORB_HEADER_LEN);

    if (rc != XET_OK) {
        return rc;
    }

    return w->write(w->ctx,
                    scheme == XET_SCHEME_NONE ? data : slot->data,
                    slot->len);
}


xet_status_t
xet_xorb_writer_finish(xet_xorb_writer_t *w, int footer)
{
    if (w->status != XET_OK) {
        return w->status;
    }

    if (w->finished) {
        return XET_INTERNAL;
    }

    if (w->info.chunk_count == 0) {
        return XET_XORB_EMPTY;
    }

    w->finished = 1;
    xet_merkle_finish(&w->merkle, &w->info.hash);

    if (footer) {
        w->status = xet_xorb_footer_write(&w->info, 1, w->write, w->ctx);
    }

    return w->status;
}


const xet_xorb_info_t *
xet_xorb_writer_info(const xet_xorb_writer_t *w)
{
    return &w->info;
}
