/* libs: -lzstd */

/*
 * Decoding of compressed components: the result and the verdict do not depend
 * on the sizes of input pieces and output buffers, and the output is never
 * longer than expected.  Valid output is the same as from one call, and as from
 * libzstd.
 *
 * Input: 2 bytes with flags and limits, 2 with the expected length, 2 with the
 * piece sizes, 1 with the size of output buffers; then frames.
 */


#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "xet_base.h"
#include "xet_zt.h"


#define HEAD         7
#define OUTPUT_MAX   65536
#define WINDOW_MAX   16            /* log2 of the largest window limit */

#define check(cond)  if (!(cond)) { __builtin_trap(); }


typedef struct {
    int              known;
    uint64_t         expected;
    const uint8_t   *data;
    size_t           size;
    size_t           piece;
    size_t           room;
} fuzz_input_t;


typedef struct {
    xet_status_t     status;
    size_t           len;
    uint8_t          data[OUTPUT_MAX];
} fuzz_output_t;


static fuzz_output_t  fuzz_whole, fuzz_pieces, fuzz_again;
static uint8_t        fuzz_room[OUTPUT_MAX + 1];


/* Decodes into a buffer of the exact size, so that ASan detects an overflow. */

static xet_status_t
fuzz_feed(xet_zt_decoder_t *d, const uint8_t **in, size_t *in_len,
    size_t room, fuzz_output_t *out)
{
    size_t          n, before;
    uint8_t        *block;
    xet_status_t    rc;
    const uint8_t  *from;

    block = malloc(room);
    check(block != NULL);

    n = room;
    from = *in;
    before = *in_len;

    rc = xet_zt_decoder_feed(d, in, in_len, block, &n);

    check(n <= room && *in_len <= before);
    check(*in == from + (before - *in_len));
    check(n <= OUTPUT_MAX - out->len);

    memcpy(out->data + out->len, block, n);
    out->len += n;

    free(block);

    /*
     * The call filled the whole buffer, so more output may be left: XET_DONE
     * makes fuzz_stream() call again, even if no input is left.
     */

    return (rc == XET_AGAIN && n == room) ? XET_DONE : rc;
}


static void
fuzz_stream(xet_zt_decoder_t *d, const fuzz_input_t *f, size_t piece,
    size_t room, fuzz_output_t *out)
{
    size_t          pos, len, calls;
    xet_status_t    rc;
    const uint8_t  *p;

    out->len = 0;
    calls = 0;

    rc = xet_zt_decoder_start(d, f->known, f->expected);
    check(rc == XET_OK || rc == XET_ZT_DECODE_SIZE);

    for (pos = 0; pos < f->size && rc == XET_OK; pos += piece) {
        p = f->data + pos;
        piece = (piece < f->size - pos) ? piece : f->size - pos;
        len = piece;

        do {
            rc = fuzz_feed(d, &p, &len, room, out);
            check(++calls < 2 * (OUTPUT_MAX + f->size) + 100);

        } while (rc == XET_DONE || (rc == XET_AGAIN && len));

        rc = (rc == XET_AGAIN) ? XET_OK : rc;
    }

    out->status = xet_zt_decoder_finish(d);

    check(rc == XET_OK || out->status == rc);
    check(!f->known || out->len <= f->expected);
    check(out->status != XET_OK || !f->known || out->len == f->expected);
}


/*
 * All ways to decode must agree on the verdict, and on the bytes decoded so
 * far.  If the input has two faults, the size of the buffer may determine which
 * fault is reported.
 */

static void
fuzz_same(const fuzz_output_t *a, const fuzz_output_t *b)
{
    size_t  n;

    n = (a->len < b->len) ? a->len : b->len;

    check((a->status == XET_OK) == (b->status == XET_OK));
    check(a->status != XET_OK || a->len == b->len);
    check(n == 0 || memcmp(a->data, b->data, n) == 0);
}


static void
fuzz_at_once(const fuzz_input_t *f, const fuzz_output_t *streamed)
{
    size_t        len, rc;
    uint8_t      *block;
    xet_status_t  status;

    len = f->known ? (size_t) f->expected : streamed->len;

    if (len > OUTPUT_MAX) {
        return;
    }

    block = malloc(len ? len : 1);
    check(block != NULL);

    status = xet_zt_decode(f->data, f->size, block, len);

    if (streamed->status == XET_OK) {
        check(status == XET_OK && streamed->len == len);
        check(len == 0 || memcmp(block, streamed->data, len) == 0);

        rc = ZSTD_decompress(fuzz_room, sizeof(fuzz_room), f->data, f->size);

        check(rc == len && (len == 0 || memcmp(fuzz_room, block, len) == 0));

    } else if (status == XET_OK) {
        check(streamed->status == XET_ZT_WINDOW
              || streamed->status == XET_ZT_DECODE_SIZE
              || !f->known);
    }

    free(block);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t             f;
    xet_zt_decoder_t        *d;
    xet_zt_decode_limits_t   limits;

    if (size < HEAD || size > 65536) {
        return 0;
    }

    f.known = data[0] & 1;
    f.expected = xet_get_u16(data + 2);
    f.piece = 1 + xet_get_u16(data + 4);
    f.room = 1 + (size_t) data[6] * 16;
    f.data = data + HEAD;
    f.size = size - HEAD;

    limits.output = (data[0] & 2) ? OUTPUT_MAX : 1000;
    limits.window_log = 10 + data[1] % (WINDOW_MAX - 10 + 1);

    d = xet_zt_decoder_create(&limits);
    check(d != NULL);

    fuzz_stream(d, &f, f.size ? f.size : 1, OUTPUT_MAX, &fuzz_whole);
    fuzz_stream(d, &f, f.piece, f.room, &fuzz_pieces);
    fuzz_stream(d, &f, 1, 1, &fuzz_again);

    fuzz_same(&fuzz_whole, &fuzz_pieces);
    fuzz_same(&fuzz_whole, &fuzz_again);

    fuzz_at_once(&f, &fuzz_whole);

    xet_zt_decoder_destroy(d);

    return 0;
}
