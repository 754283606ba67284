
/*
 * Tests the frame parser, which does not decode, against libzstd: both must
 * accept the same complete frames, in pieces of any size.
 */


#include <zstd.h>

#include "zt_bytes.h"
#include "xet_zt.h"


#define ROOM  (1 << 20)


static uint8_t  out[ROOM];


/* Feeds step bytes at a time, each in a block of the exact size. */

static xet_status_t
walk(xet_zt_frames_t *f, const uint8_t *data, size_t len, size_t step)
{
    size_t    n;
    uint8_t  *piece;

    xet_zt_frames_init(f);

    for ( /* void */ ; len; len -= n, data += n) {
        n = (len < step) ? len : step;

        piece = malloc(n);
        memcpy(piece, data, n);
        (void) xet_zt_frames_feed(f, piece, n);
        free(piece);
    }

    return xet_zt_frames_finish(f);
}


static size_t
compress(uint8_t *dst, const uint8_t *src, size_t len, int level, int checksum,
    int window)
{
    size_t      n;
    ZSTD_CCtx  *ctx;

    ctx = ZSTD_createCCtx();

    ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, checksum);
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog, window);
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 0);

    n = ZSTD_compress2(ctx, dst, ROOM, src, len);

    ZSTD_freeCCtx(ctx);

    return n;
}


static void
test_frames(void)
{
    size_t           i, n, step;
    uint8_t         *src;
    uint64_t         state;
    unsigned         wrong;
    xet_zt_frames_t  f;

    static const size_t  steps[] = { 1, 2, 3, 7, 4096, ROOM };

    src = calloc(1, 400000);
    state = 5;

    for (i = 0; i < 150000; i++) {
        src[i] = (uint8_t) xet_test_random(&state);
    }

    wrong = 0;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        step = steps[i];

        n = compress(out, src, 400000, 3, 1, 17);
        wrong += walk(&f, out, n, step) != XET_OK || f.n != 1
                 || f.window != 1 << 17 || f.dictionary;

        /* a second frame, with a skippable frame before it */

        memcpy(out + n, "\x53\x2a\x4d\x18\x05\x00\x00\x00hello", 13);
        n += 13;
        n += compress(out + n, src, 1000, 1, 0, 20);

        wrong += walk(&f, out, n, step) != XET_OK || f.n != 2
                 || f.window != 1 << 17;

        /* an empty skippable frame at the end */

        memcpy(out + n, "\x50\x2a\x4d\x18\x00\x00\x00\x00", 8);
        wrong += walk(&f, out, n + 8, step) != XET_OK || f.n != 2;

        wrong += walk(&f, out, n + 9, step) != XET_ZT_ZSTD;
        wrong += walk(&f, out, n - 1, step) != XET_ZT_ZSTD;
    }

    xet_is_u64(wrong, 0, "frames in pieces of any size");

    free(src);
}


/* Damages each bit, and compares the result with that of libzstd. */

static void
test_damage(void)
{
    size_t           i, n, pos, len, rc;
    uint8_t          src[3000], saved;
    uint64_t         state;
    unsigned         wrong, sound, bit;
    xet_zt_frames_t  f;
    xet_zt_frame_t   frame;

    state = 9;

    for (i = 0; i < sizeof(src); i++) {
        src[i] = (uint8_t) (xet_test_random(&state) & 3);
    }

    n = compress(out, src, sizeof(src), 3, 1, 10);
    wrong = 0;
    sound = 0;

    for (i = 0; i <= n; i++) {
        wrong += (walk(&f, out, i, ROOM) == XET_OK) != (i == n);
    }

    xet_is_u64(wrong, 0, "no prefix of a frame is one");

    for (i = 0; i < n * 8; i++) {
        saved = out[i / 8];
        bit = 1u << i % 8;
        out[i / 8] ^= (uint8_t) bit;

        len = n;

        for (pos = 0; pos < n; pos += rc) {

            if (xet_zt_frame_parse(&frame, out + pos, n - pos) != XET_OK) {
                len = 0;
                break;
            }

            rc = ZSTD_findFrameCompressedSize(out + pos, n - pos);

            if (ZSTD_isError(rc)) {
                len = 0;
                break;
            }
        }

        rc = (walk(&f, out, n, 5) == XET_OK);
        sound += (rc == 1);

        /* a block of more than 128 KiB is rejected at its header */

        wrong += rc && len == 0;
        wrong += !rc && f.n
                 && !ZSTD_isError(ZSTD_decompress(src, sizeof(src), out, n));

        out[i / 8] = saved;
    }

    xet_is_u64(wrong, 0, "of damaged ones libzstd thinks the same");
    xet_ok(sound > 0 && sound < n * 8, "%u of %zu are still cut alike", sound,
           n * 8);
}


static void
test_none(void)
{
    xet_zt_frames_t  f;

    xet_is_u64(walk(&f, (const uint8_t *) "", 0, 1), XET_ZT_ZSTD, "nothing");
    xet_is_u64(walk(&f, (const uint8_t *) "\x50\x2a\x4d\x18\0\0\0\0", 8, 3),
               XET_ZT_ZSTD, "a skippable frame alone");
    xet_is_u64(walk(&f, (const uint8_t *) "garbage.", 8, 8), XET_ZT_ZSTD,
               "something else");
}


int
main(void)
{
    test_frames();
    test_damage();
    test_none();

    return xet_done();
}
