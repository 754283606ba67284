
/*
 * Tests compressed components: frames of all kinds, exact lengths, limits, and
 * that the sizes of input pieces and output buffers do not matter.
 */


#include <zstd.h>

#include "zt_bytes.h"
#include "xet_zt.h"


#define PLAIN  300000


static uint8_t  plain[PLAIN];


/* Decodes in pieces; returns the verdict and the decoded length. */

static xet_status_t
stream(const uint8_t *in, size_t in_len, int known, uint64_t expected,
    size_t step, size_t room, const xet_zt_decode_limits_t *limits,
    uint8_t *out, size_t *out_len)
{
    size_t                   n, len, got;
    uint8_t                 *buf;
    xet_status_t             rc;
    const uint8_t           *p;
    xet_zt_decoder_t        *d;
    xet_zt_decode_limits_t   defaults;

    if (limits == NULL) {
        xet_zt_decode_limits_init(&defaults);
        limits = &defaults;
    }

    d = xet_zt_decoder_create(limits);
    buf = malloc(room);
    *out_len = 0;

    rc = xet_zt_decoder_start(d, known, expected);

    for (n = 0; rc == XET_OK && n < in_len; n += step) {
        len = (in_len - n < step) ? in_len - n : step;
        p = in + n;

        do {
            got = room;
            rc = xet_zt_decoder_feed(d, &p, &len, buf, &got);

            if (got && out) {
                memcpy(out + *out_len, buf, got);
            }

            *out_len += got;

        } while (rc == XET_AGAIN && (len || got == room));

        rc = (rc == XET_AGAIN) ? XET_OK : rc;
    }

    if (rc == XET_OK) {
        rc = xet_zt_decoder_finish(d);
    }

    free(buf);
    xet_zt_decoder_destroy(d);

    return rc;
}


/* Checks that all ways to decode give the same verdict and the same bytes. */

static void
check(const uint8_t *in, size_t in_len, size_t expected, xet_status_t want,
    const char *name)
{
    size_t        i, k, len;
    unsigned      wrong;
    uint8_t      *out, *exact;
    xet_status_t  rc;

    static const size_t  steps[] = { 1 << 20, 1, 3, 1000 };
    static const size_t  rooms[] = { 1 << 20, 1, 7, 131072 };

    out = malloc(expected + 1);
    exact = malloc(in_len ? in_len : 1);
    memcpy(exact, in, in_len);

    wrong = 0;

    for (i = 0; i < 4; i++) {
        for (k = 0; k < 4; k++) {

            if (in_len > 10000 && steps[i] < 1000 && rooms[k] < 1000) {
                continue;
            }

            rc = stream(exact, in_len, 1, expected, steps[i], rooms[k], NULL,
                        out, &len);

            if (rc != want || len > expected
                || (rc == XET_OK && memcmp(out, plain, expected) != 0))
            {
                printf("# %s: steps %zu, room %zu: %s, %zu bytes\n", name,
                       steps[i], rooms[k], xet_status_code(rc), len);
                wrong++;
            }
        }
    }

    rc = xet_zt_decode(exact, in_len, out, expected);

    if (rc != want || (rc == XET_OK && memcmp(out, plain, expected) != 0)) {
        printf("# %s: at once: %s\n", name, xet_status_code(rc));
        wrong++;
    }

    free(out);
    free(exact);

    xet_ok(wrong == 0, "%s: %s", name, xet_status_code(want));
}


static size_t
compress(uint8_t *dst, size_t room, size_t len, int level, int checksum,
    int size)
{
    size_t      n;
    ZSTD_CCtx  *ctx;

    ctx = ZSTD_createCCtx();

    ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, checksum);
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, size);

    n = ZSTD_compress2(ctx, dst, room, plain, len);

    ZSTD_freeCCtx(ctx);

    return n;
}


/* Compresses as the format's writers do: without announcing the size. */

static size_t
compress_stream(uint8_t *dst, size_t room, size_t len, int level)
{
    ZSTD_CCtx      *ctx;
    ZSTD_inBuffer   in;
    ZSTD_outBuffer  out;

    ctx = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level);

    in.src = plain;
    in.size = len;
    in.pos = 0;

    out.dst = dst;
    out.size = room;
    out.pos = 0;

    ZSTD_compressStream2(ctx, &out, &in, ZSTD_e_continue);

    while (ZSTD_compressStream2(ctx, &out, &in, ZSTD_e_end) != 0) {
        /* void */
    }

    ZSTD_freeCCtx(ctx);

    return out.pos;
}


static size_t
skippable(uint8_t *dst, unsigned nibble, size_t len)
{
    xet_put_u32(dst, 0x184d2a50 + nibble);
    xet_put_u32(dst + 4, (uint32_t) len);
    memset(dst + 8, 0xcc, len);

    return 8 + len;
}


static void
test_frames(uint8_t *buf, size_t room)
{
    size_t  n, m;

    n = compress(buf, room, 1000, 3, 0, 1);
    check(buf, n, 1000, XET_OK, "a frame");
    check(buf, n, 999, XET_ZT_LENGTH, "a byte too long");
    check(buf, n, 1001, XET_ZT_LENGTH, "a byte too short");
    check(buf, n, 0, XET_ZT_LENGTH, "where nothing is expected");
    check(buf, n - 1, 1000, XET_ZT_ZSTD, "cut");
    check(buf, 0, 1000, XET_ZT_ZSTD, "no frame");
    check(buf, 0, 0, XET_ZT_ZSTD, "no frame for nothing");
    check(buf, 3, 1000, XET_ZT_ZSTD, "a part of the magic number");

    buf[n] = 0;
    check(buf, n + 1, 1000, XET_ZT_ZSTD, "a zero byte after it");
    memcpy(buf + n, "junk", 4);
    check(buf, n + 4, 1000, XET_ZT_ZSTD, "four bytes after it");
    buf[n] = 0x28;
    check(buf, n + 1, 1000, XET_ZT_ZSTD, "the begin of a frame after it");

    n = compress(buf, room, PLAIN, 3, 1, 1);
    check(buf, n, PLAIN, XET_OK, "a frame of several blocks, with a checksum");
    check(buf, n - 4, PLAIN, XET_ZT_ZSTD, "that is missing");
    buf[n - 1] ^= 1;
    check(buf, n, PLAIN, XET_ZT_ZSTD, "whose checksum is wrong");

    n = compress_stream(buf, room, PLAIN, 3);
    check(buf, n, PLAIN, XET_OK, "a frame that does not tell its size");
    check(buf, n, PLAIN - 1, XET_ZT_LENGTH, "a byte too long");
    check(buf, n - 1, PLAIN, XET_ZT_ZSTD, "cut");

    n = compress(buf, room, 0, 3, 0, 1);
    check(buf, n, 0, XET_OK, "a frame of nothing");
    check(buf, n, 1, XET_ZT_LENGTH, "where a byte is expected");

    n = compress_stream(buf, room, 0, 3);
    check(buf, n, 0, XET_OK, "a frame of nothing, 9 bytes as it is written");

    /* libzstd checks the block sizes only in streaming mode */

    check((const uint8_t *) "\x28\xb5\x2f\xfd\x20\0\x03\0\0^", 10, 0,
          XET_ZT_ZSTD, "a block of a byte in a window of nothing");

    /* libzstd does not check the size of an empty frame in streaming mode */

    check((const uint8_t *) "\x28\xb5\x2f\xfd\x20\x20\x01\0\0", 9, 0,
          XET_ZT_ZSTD, "a frame of nothing that tells 32 bytes");
    check((const uint8_t *) "\x28\xb5\x2f\xfd\x20\x00\x01\0\0", 9, 0,
          XET_OK, "that tells none");

    /* frames of 1000 and 0 bytes; skippable frames before, between, after */

    n = skippable(buf, 0, 5);
    n += compress(buf + n, room - n, 1000, 3, 0, 0);
    n += skippable(buf + n, 15, 0);
    n += compress(buf + n, room - n, 0, 3, 1, 1);
    n += skippable(buf + n, 14, 300);
    check(buf, n, 1000, XET_OK, "frames to be skipped among others");
    check(buf, n - 1, 1000, XET_ZT_ZSTD, "the last one cut");

    m = compress(buf + n, room - n, 1, 3, 0, 1);
    check(buf, n + m, 1000, XET_ZT_LENGTH, "and one more with a byte");

    n = skippable(buf, 3, 100);
    check(buf, n, 0, XET_OK, "one to be skipped alone");
    check(buf, n, 8, XET_ZT_LENGTH, "which has no content");

    /* frames from old versions of zstd */

    memset(buf, 0, 64);
    xet_put_u32(buf, 0xfd2fb527);
    check(buf, 64, 8, XET_ZT_ZSTD, "a frame of version 0.7");
    xet_put_u32(buf, 0xfd2fb51e);
    check(buf, 64, 8, XET_ZT_ZSTD, "and of 0.2");

    check((const uint8_t *) "\x28\xb5\x2f\xfd\x28\x08\x41\0\0", 9, 8,
          XET_ZT_ZSTD, "reserved bits");
}


static void
test_limits(uint8_t *buf, size_t room)
{
    size_t                   n, len;
    uint8_t                  out[8];
    xet_status_t             rc;
    xet_zt_decode_limits_t   limits;

    xet_zt_decode_limits_init(&limits);

    xet_is_u64(limits.output, 268435456, "256 MiB of output by default");
    xet_is_u64(limits.window_log, 23, "windows of 8 MiB");

    n = compress_stream(buf, room, 5000, 3);

    limits.output = 5000;
    rc = stream(buf, n, 1, 5000, 100, 100, &limits, NULL, &len);
    xet_ok(rc == XET_OK && len == 5000, "as many bytes as the limit");
    rc = stream(buf, n, 0, 0, 100, 100, &limits, NULL, &len);
    xet_ok(rc == XET_OK && len == 5000, "not announced");

    limits.output = 4999;
    rc = stream(buf, n, 1, 5000, 100, 100, &limits, NULL, &len);
    xet_ok(rc == XET_ZT_DECODE_SIZE && len == 0, "one past it");
    rc = stream(buf, n, 0, 0, 100, 100, &limits, NULL, &len);
    xet_ok(rc == XET_ZT_DECODE_SIZE && len == 4999, "not announced: %zu",
           len);

    /* one kilobyte decodes to 32 MiB of zeros: 256 blocks of 128 KiB */

    memcpy(buf, "\x28\xb5\x2f\xfd\x00\x38", 6);

    for (n = 6; n < 6 + 256 * 4; n += 4) {
        xet_put_u24(buf + n, (131072u << 3) | 2 | (n == 6 + 255 * 4));
        buf[n + 3] = 0;
    }

    limits.output = (uint64_t) 32 << 20;
    rc = stream(buf, n, 0, 0, 4096, 65536, &limits, NULL, &len);
    xet_ok(rc == XET_OK && len == (uint64_t) 32 << 20, "32 MiB of 1 KB");

    limits.output--;
    rc = stream(buf, n, 0, 0, 4096, 65536, &limits, NULL, &len);
    xet_ok(rc == XET_ZT_DECODE_SIZE && len == limits.output,
           "not a byte more than the limit");
    rc = stream(buf, n, 1, 8, 4096, 65536, &limits, NULL, &len);
    xet_ok(rc == XET_ZT_LENGTH && len == 8, "nor than expected");

    /* a window of 8 MiB, the next larger size, and 2 GiB */

    xet_zt_decode_limits_init(&limits);

    memcpy(buf, "\x28\xb5\x2f\xfd\x00\x68\x41\0\0" "12345678", 17);
    xet_is_u64(stream(buf, 17, 1, 8, 17, 8, &limits, out, &len), XET_OK,
               "a window of 8 MiB");
    xet_ok(memcmp(out, "12345678", 8) == 0, "of eight bytes");

    buf[5] = 0x69;
    xet_is_u64(stream(buf, 17, 1, 8, 17, 8, &limits, out, &len),
               XET_ZT_WINDOW, "not 9 MiB");
    buf[5] = 0xa8;
    xet_is_u64(stream(buf, 17, 1, 8, 17, 8, &limits, out, &len),
               XET_ZT_WINDOW, "nor 2 GiB");
    memset(out, 0, 8);
    xet_is_u64(xet_zt_decode(buf, 17, out, 8), XET_OK, "but at once");
    xet_ok(memcmp(out, "12345678", 8) == 0, "of eight bytes");

    /* the limit also applies if one call takes all input and output */

    n = compress(buf, room, 2000, 3, 0, 1);
    limits.window_log = 10;
    rc = stream(buf, n, 1, 2000, 1, 1, &limits, NULL, &len);
    xet_ok(rc == XET_ZT_WINDOW && len == 0, "2000 bytes, a window of 1 KiB");
    rc = stream(buf, n, 1, 2000, n, 4000, &limits, NULL, &len);
    xet_ok(rc == XET_ZT_WINDOW && len == 0, "in one piece");

    memcpy(buf, "\x28\xb5\x2f\xfd\x00\x68\x41\0\0" "12345678", 17);

    limits.window_log = 24;
    buf[5] = 0x69;
    xet_is_u64(stream(buf, 17, 1, 8, 17, 8, &limits, out, &len), XET_OK,
               "9 MiB where it is allowed");
}


static void
test_again(uint8_t *buf, size_t room)
{
    size_t                   n, len, got;
    uint8_t                 *out;
    unsigned                 i, wrong;
    const uint8_t           *p;
    xet_zt_decoder_t        *d;
    xet_zt_decode_limits_t   limits;

    /* one decoder for many components, also after errors */

    xet_zt_decode_limits_init(&limits);

    d = xet_zt_decoder_create(&limits);
    out = malloc(PLAIN);
    n = compress_stream(buf, room, 20000, 3);
    wrong = 0;

    for (i = 0; i < 12; i++) {
        wrong += xet_zt_decoder_start(d, 1, 20000) != XET_OK;

        p = buf;
        len = (i % 3 == 1) ? n / 2 : n;
        got = PLAIN;

        wrong += xet_zt_decoder_feed(d, &p, &len, out, &got) != XET_AGAIN;

        wrong += xet_zt_decoder_finish(d)
                 != (i % 3 == 1 ? XET_ZT_ZSTD : XET_OK);
        wrong += i % 3 != 1 && (got != 20000 || memcmp(out, plain, got) != 0);
    }

    xet_is_u64(wrong, 0, "a decoder is used again");

    free(out);
    xet_zt_decoder_destroy(d);
}


static void
test_parse(uint8_t *buf, size_t room)
{
    size_t          i, n;
    unsigned        wrong;
    xet_zt_frame_t  f;

    n = compress(buf, room, 1000, 3, 1, 1);

    xet_ok(xet_zt_frame_parse(&f, buf, n) == XET_OK
           && f.has_content && f.content == 1000 && f.checksum
           && !f.dictionary && !f.skippable && f.window == 1000,
           "the head of a frame of one segment");

    wrong = 0;

    for (i = 0; i < 7; i++) {
        wrong += xet_zt_frame_parse(&f, buf, i) != XET_AGAIN;
    }

    xet_is_u64(wrong, 0, "seven bytes of it are needed");

    (void) compress_stream(buf, room, PLAIN, 3);
    xet_ok(xet_zt_frame_parse(&f, buf, 6) == XET_OK
           && !f.has_content && !f.checksum && f.window == 2 << 20,
           "a frame of level 3: 2 MiB, no size");

    (void) compress_stream(buf, room, PLAIN, 19);
    xet_ok(xet_zt_frame_parse(&f, buf, 18) == XET_OK
           && f.window == 8 << 20, "level 19: 8 MiB");

    (void) compress_stream(buf, room, PLAIN, 22);
    xet_ok(xet_zt_frame_parse(&f, buf, 18) == XET_OK
           && f.window == 128 << 20, "level 22: 128 MiB");

    n = compress(buf, room, 255, 3, 0, 1);
    xet_ok(xet_zt_frame_parse(&f, buf, n) == XET_OK && f.content == 255,
           "a size of a byte");
    n = compress(buf, room, 256, 3, 0, 1);
    xet_ok(xet_zt_frame_parse(&f, buf, n) == XET_OK && f.content == 256,
           "of two");
    n = compress(buf, room, 65535 + 256, 3, 0, 1);
    xet_ok(xet_zt_frame_parse(&f, buf, n) == XET_OK && f.content == 65791,
           "the most of two");
    n = compress(buf, room, 65536 + 256, 3, 0, 1);
    xet_ok(xet_zt_frame_parse(&f, buf, n) == XET_OK && f.content == 65792,
           "of four");

    xet_ok(xet_zt_frame_parse(&f, (const uint8_t *)
                              "\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\1\0\0", 13)
           == XET_OK && f.content == (uint64_t) 1 << 40, "of eight");

    xet_ok(xet_zt_frame_parse(&f, (const uint8_t *)
                              "\x28\xb5\x2f\xfd\x01\x57\x05", 7)
           == XET_OK && f.dictionary && f.window == 15u << 17,
           "a dictionary, and a window of 15 eighths");

    n = skippable(buf, 9, 77);
    xet_ok(xet_zt_frame_parse(&f, buf, n) == XET_OK && f.skippable
           && f.content == 77, "a frame to be skipped");

    xet_is_u64(xet_zt_frame_parse(&f, (const uint8_t *) "12345678", 8),
               XET_ZT_ZSTD, "no frame");
}


int
main(void)
{
    size_t    i, room;
    uint8_t  *buf;
    uint64_t  state;

    state = 3;

    for (i = 0; i < PLAIN; i++) {
        plain[i] = (uint8_t) (xet_test_random(&state) >> 60);
    }

    room = ZSTD_compressBound(PLAIN) + 4096;
    buf = malloc(room);

    test_frames(buf, room);
    test_limits(buf, room);
    test_again(buf, room);
    test_parse(buf, room);

    free(buf);

    return xet_done();
}
