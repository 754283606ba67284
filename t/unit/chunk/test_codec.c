
/*
 * Tests chunk codecs: byte grouping compared with the draft's description and
 * with known vectors, round trips, every kind of LZ4 frame that clients may
 * send, and frames that must be rejected.
 */

#include <jansson.h>
#include <lz4frame.h>

#include "xet_base.h"
#include "xet_chunk.h"
#include "xet_hash.h"
#include "xet_test.h"


#define FRAME_MAX  (XET_CHUNK_MAX * 2)


static uint8_t       raw[XET_CHUNK_MAX + 8];
static uint8_t       frame[FRAME_MAX];
static uint8_t       out[XET_CHUNK_MAX + 8];
static xet_codec_t  *codec;


static uint32_t
rnd(void)
{
    static uint64_t  s = 88172645463325252ULL;

    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;

    return (uint32_t) (s >> 32);
}


/*
 * Fills p by kind: 'r' noise; 't' text; 'z' zeros; 'f' like floats, with
 * similar high bytes.
 */

static void
fill(uint8_t *p, size_t n, int kind)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        switch (kind) {
        case 'r':
            p[i] = (uint8_t) rnd();
            break;
        case 't':
            p[i] = (uint8_t) ("the quick brown fox"[rnd() % 19]);
            break;
        case 'z':
            p[i] = 0;
            break;
        default:
            p[i] = (uint8_t) (i % 4 == 3 ? 0x3c + rnd() % 2 : rnd());
        }
    }
}


static size_t
make_frame(const LZ4F_preferences_t *prefs, const uint8_t *data, size_t len)
{
    size_t      n, rc;
    LZ4F_cctx  *ctx;

    /* the streaming interface, because compressFrame adapts the block size */

    if (LZ4F_isError(LZ4F_createCompressionContext(&ctx, LZ4F_VERSION))) {
        return 0;
    }

    n = LZ4F_compressBegin(ctx, frame, sizeof(frame), prefs);

    rc = LZ4F_compressUpdate(ctx, frame + n, sizeof(frame) - n, data, len,
                             NULL);
    n += LZ4F_isError(rc) ? 0 : rc;

    rc = LZ4F_compressEnd(ctx, frame + n, sizeof(frame) - n, NULL);
    n = LZ4F_isError(rc) ? 0 : n + rc;

    LZ4F_freeCompressionContext(ctx);

    return n;
}


static xet_status_t
decode(const uint8_t *in, size_t len, size_t raw_len)
{
    xet_status_t  rc;

    memset(out, 0xa5, sizeof(out));

    rc = xet_codec_decode(codec, XET_SCHEME_LZ4, in, len, out, raw_len);

    if (out[raw_len] != 0xa5) {
        printf("# wrote past the output\n");
        return XET_STATUS_MAX;
    }

    return rc;
}


static void
refused(const uint8_t *in, size_t len, size_t raw_len, xet_status_t want,
    const char *name)
{
    size_t        n;
    uint8_t       text[64], good[64];
    uint8_t       back[64];
    xet_status_t  rc;

    xet_is_u64(decode(in, len, raw_len), want, name);

    /* the context must be clean after an error */

    memset(text, 'a', sizeof(text));
    n = sizeof(good);

    rc = xet_codec_encode(codec, XET_SCHEME_LZ4, text, sizeof(text), good,
                          &n);

    if (rc == XET_OK) {
        rc = xet_codec_decode(codec, XET_SCHEME_LZ4, good, n, back,
                              sizeof(back));
    }

    if (rc != XET_OK || memcmp(text, back, sizeof(text)) != 0) {
        xet_ok(0, "%s: a good frame decodes next", name);
    }
}


static size_t
json_bytes(json_t *array, uint8_t *p, size_t max)
{
    size_t  i, n;

    n = json_array_size(array);

    for (i = 0; i < n && i < max; i++) {
        p[i] = (uint8_t) json_integer_value(json_array_get(array, i));
    }

    return n;
}


static void
test_bg4_vectors(void)
{
    size_t       i, n, m;
    json_t      *root, *cases, *one;
    uint8_t      plain[256], grouped[256], got[256];
    const char  *path;

    path = xet_test_data("xet/vectors/bg4_permutation.json");
    if (path == NULL) {
        xet_skip("reference data absent");
        return;
    }

    root = json_load_file(path, 0, NULL);
    cases = json_object_get(root, "cases");

    xet_ok(json_array_size(cases) >= 10, "byte grouping vectors are there");

    json_array_foreach(cases, i, one) {
        n = json_bytes(json_object_get(one, "plain"), plain, 256);
        m = json_bytes(json_object_get(one, "grouped"), grouped, 256);

        xet_codec_bg4_split(plain, got, n);
        xet_ok(n != 0 && n == m && memcmp(got, grouped, n) == 0,
               "vector %u splits, %u bytes", (unsigned) i, (unsigned) n);

        xet_codec_bg4_join(grouped, got, n);
        xet_ok(memcmp(got, plain, n) == 0, "vector %u joins", (unsigned) i);
    }

    json_decref(root);
}


/* Groups bytes as the draft specifies: appends byte i to group i % 4. */

static void
split_naive(const uint8_t *in, uint8_t *dst, size_t n)
{
    size_t  i, k, pos;

    pos = 0;

    for (k = 0; k < 4; k++) {
        for (i = k; i < n; i += 4) {
            dst[pos++] = in[i];
        }
    }
}


static void
test_bg4_sizes(void)
{
    size_t          n;
    unsigned        bad;
    static uint8_t  want[XET_CHUNK_MAX], got[XET_CHUNK_MAX + 1];

    bad = 0;
    fill(raw, XET_CHUNK_MAX, 'r');

    for (n = 0; n <= XET_CHUNK_MAX; n = n == 600 ? XET_CHUNK_MAX - 70 : n + 1)
    {
        split_naive(raw, want, n);

        got[n] = 0x5a;
        xet_codec_bg4_split(raw, got, n);
        bad += memcmp(got, want, n) != 0 || got[n] != 0x5a;

        xet_codec_bg4_join(want, got, n);
        bad += memcmp(got, raw, n) != 0 || got[n] != 0x5a;
    }

    xet_is_u64(bad, 0, "grouping agrees with the draft, 0..600 and the end");
}


static void
test_round_trips(void)
{
    size_t        i, k, n;
    unsigned      scheme, bad, plain, packed;
    xet_status_t  rc;

    static const char    kinds[] = "rtzf";
    static const size_t  sizes[] = {
        1, 2, 3, 4, 5, 7, 15, 16, 17, 63, 64, 65, 1000, 8191, 8192, 65535,
        65536, 65537, 100001, XET_CHUNK_MAX - 1, XET_CHUNK_MAX
    };

    bad = 0;
    plain = 0;
    packed = 0;

    for (scheme = 1; scheme < XET_SCHEMES; scheme++) {
        for (k = 0; k < 4; k++) {
            for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {

                fill(raw, sizes[i], kinds[k]);

                memset(frame, 0xa5, sizes[i] + 1);
                n = sizes[i];

                rc = xet_codec_encode(codec, scheme, raw, sizes[i], frame,
                                      &n);
                if (rc == XET_AGAIN) {
                    plain++;
                    bad += n != sizes[i];
                    continue;
                }

                packed++;
                bad += rc != XET_OK || n >= sizes[i] || frame[n] != 0xa5;

                memset(out, 0xa5, sizeof(out));

                rc = xet_codec_decode(codec, scheme, frame, n, out,
                                      sizes[i]);

                bad += rc != XET_OK || memcmp(out, raw, sizes[i]) != 0
                       || out[sizes[i]] != 0xa5;
            }
        }
    }

    xet_is_u64(bad, 0, "encoded chunks decode to themselves");
    xet_ok(plain > 40 && packed > 40, "%u stay plain, %u shrink", plain,
           packed);
}


/*
 * Tests data whose frame is as long as the chunk, so that compression is
 * useless.
 */

static void
test_no_gain(void)
{
    size_t              i, n;
    LZ4F_preferences_t  prefs;

    memset(&prefs, 0, sizeof(prefs));
    prefs.frameInfo.blockMode = LZ4F_blockIndependent;

    fill(raw, 200, 'r');

    for (i = 0, n = 0; i < 200; i++) {
        memset(raw + 200 - i, 0, i);
        n = LZ4F_compressFrame(frame, sizeof(frame), raw, 200, &prefs);

        if (n <= 200) {
            break;
        }
    }

    xet_is_u64(n, 200, "a frame as long as its chunk");
    xet_is_u64(xet_codec_encode(codec, XET_SCHEME_LZ4, raw, 200, frame, &n),
               XET_AGAIN, "is no gain");

    memset(raw + 200 - i - 1, 0, i + 1);
    xet_is_u64(xet_codec_encode(codec, XET_SCHEME_LZ4, raw, 200, frame, &n),
               XET_OK, "one byte less is");
    xet_is_u64(n, 199, "  its length");
}


static void
test_encode(void)
{
    size_t  n;

    fill(raw, XET_CHUNK_MAX, 'r');
    n = XET_CHUNK_MAX;

    xet_is_u64(xet_codec_encode(codec, XET_SCHEME_LZ4, raw, XET_CHUNK_MAX,
                                frame, &n),
               XET_AGAIN, "noise does not shrink");
    xet_is_u64(xet_codec_encode(codec, XET_SCHEME_NONE, raw, 100, frame, &n),
               XET_AGAIN, "nor does no compression");
    xet_is_u64(xet_codec_encode(codec, XET_SCHEMES, raw, 100, frame, &n),
               XET_XORB_SCHEME, "encode: an unknown scheme");
    xet_is_u64(xet_codec_encode(codec, XET_SCHEME_LZ4, raw, 0, frame, &n),
               XET_XORB_RAW_LEN, "encode: nothing");
    xet_is_u64(xet_codec_encode(codec, XET_SCHEME_LZ4, raw,
                                XET_CHUNK_MAX + 1, frame, &n),
               XET_XORB_RAW_LEN, "encode: one byte too many");

    n = 99;
    xet_is_u64(xet_codec_encode(codec, XET_SCHEME_LZ4, raw, 100, frame, &n),
               XET_INTERNAL, "encode: no room");

    fill(raw, 1000, 'z');
    n = 1000;

    xet_is_u64(xet_codec_encode(codec, XET_SCHEME_LZ4, raw, 1000, frame, &n),
               XET_OK, "zeros shrink");
    xet_is_u64(xet_get_u32(frame), 0x184d2204, "to an LZ4 frame");
    xet_is_u64(frame[4], 0x60, "of independent blocks, nothing else");
}


static void
test_decode_plain(void)
{
    fill(raw, XET_CHUNK_MAX, 'r');

    xet_ok(xet_codec_decode(codec, XET_SCHEME_NONE, raw, 10, out, 10)
           == XET_OK && memcmp(raw, out, 10) == 0, "plain");
    xet_is_u64(xet_codec_decode(codec, XET_SCHEME_NONE, raw, 10, out, 11),
               XET_XORB_DATA_LEN, "plain, too short");
    xet_is_u64(xet_codec_decode(codec, XET_SCHEME_NONE, raw, 11, out, 10),
               XET_XORB_DATA_LEN, "plain, too long");
    xet_is_u64(xet_codec_decode(codec, XET_SCHEME_NONE, raw, 0, out, 0),
               XET_XORB_RAW_LEN, "raw length 0");
    xet_is_u64(xet_codec_decode(codec, XET_SCHEME_NONE, raw,
                                XET_CHUNK_MAX + 1, out, XET_CHUNK_MAX + 1),
               XET_XORB_RAW_LEN, "raw length one past the limit");
    xet_is_u64(xet_codec_decode(codec, XET_SCHEMES, raw, 10, out, 10),
               XET_XORB_SCHEME, "an unknown scheme");
    xet_is_u64(xet_codec_decode(codec, 99, raw, 10, out, 10),
               XET_XORB_SCHEME, "scheme 99");
}


static void
test_frames(void)
{
    size_t              i, k, n;
    unsigned            bad;
    LZ4F_preferences_t  prefs;

    static const struct {
        const char             *name;
        LZ4F_blockSizeID_t      block;
        LZ4F_blockMode_t        mode;
        LZ4F_contentChecksum_t  content;
        LZ4F_blockChecksum_t    sum;
        int                     size;
        unsigned                flg;
        unsigned                bd;
    } t[] = {
        { "linked blocks, 4 MiB (JS)", LZ4F_max4MB, LZ4F_blockLinked, 0, 0,
          0, 0x40, 0x70 },
        { "independent blocks, 64 KiB", LZ4F_max64KB, LZ4F_blockIndependent,
          0, 0, 0, 0x60, 0x40 },
        { "independent blocks, 256 KiB", LZ4F_max256KB,
          LZ4F_blockIndependent, 0, 0, 0, 0x60, 0x50 },
        { "independent blocks, 1 MiB", LZ4F_max1MB, LZ4F_blockIndependent, 0,
          0, 0, 0x60, 0x60 },
        { "linked blocks, 64 KiB", LZ4F_max64KB, LZ4F_blockLinked, 0, 0, 0,
          0x40, 0x40 },
        { "content checksum", LZ4F_max64KB, LZ4F_blockIndependent,
          LZ4F_contentChecksumEnabled, 0, 0, 0x64, 0x40 },
        { "block checksums", LZ4F_max64KB, LZ4F_blockIndependent, 0,
          LZ4F_blockChecksumEnabled, 0, 0x70, 0x40 },
        { "content size", LZ4F_max64KB, LZ4F_blockIndependent, 0, 0, 1,
          0x68, 0x40 },
        { "all of them, linked", LZ4F_max64KB, LZ4F_blockLinked,
          LZ4F_contentChecksumEnabled, LZ4F_blockChecksumEnabled, 1, 0x5c,
          0x40 }
    };

    static const char    kinds[] = "trf";
    static const size_t  sizes[] = { 1, 1000, 65536, 65537, XET_CHUNK_MAX };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        bad = 0;

        for (k = 0; k < 15; k++) {
            fill(raw, sizes[k % 5], kinds[k / 5]);

            memset(&prefs, 0, sizeof(prefs));
            prefs.frameInfo.blockSizeID = t[i].block;
            prefs.frameInfo.blockMode = t[i].mode;
            prefs.frameInfo.contentChecksumFlag = t[i].content;
            prefs.frameInfo.blockChecksumFlag = t[i].sum;
            prefs.frameInfo.contentSize = t[i].size ? sizes[k % 5] : 0;

            n = make_frame(&prefs, raw, sizes[k % 5]);

            bad += n == 0 || frame[4] != t[i].flg || frame[5] != t[i].bd;
            bad += decode(frame, n, sizes[k % 5]) != XET_OK;
            bad += memcmp(out, raw, sizes[k % 5]) != 0;
        }

        xet_is_u64(bad, 0, t[i].name);
    }
}


static void
test_lengths(void)
{
    size_t              i, n, len;
    unsigned            bad;
    LZ4F_preferences_t  prefs;

    static const struct {
        char                kind;
        LZ4F_blockSizeID_t  block;
        const char         *name;
    } t[] = {
        { 't', LZ4F_max64KB, "text, 64 KiB blocks" },
        { 't', LZ4F_max4MB, "text, 4 MiB blocks" },
        { 'r', LZ4F_max64KB, "stored 64 KiB blocks" },
        { 'r', LZ4F_max4MB, "a stored 4 MiB block" }
    };

    memset(&prefs, 0, sizeof(prefs));

    for (i = 0; i < 4; i++) {
        len = XET_CHUNK_MAX - 1;
        bad = 0;

        fill(raw, len, t[i].kind);
        prefs.frameInfo.blockSizeID = t[i].block;
        n = make_frame(&prefs, raw, len);

        bad += decode(frame, n, len) != XET_OK;
        bad += decode(frame, n, len - 1) != XET_XORB_DATA_LEN;
        bad += decode(frame, n, len + 1) != XET_XORB_DATA_LEN;
        bad += decode(frame, n, 65536) != XET_XORB_DATA_LEN;
        bad += decode(frame, n, 1) != XET_XORB_DATA_LEN;
        bad += decode(frame, n, len) != XET_OK;

        xet_is_u64(bad, 0, t[i].name);
    }
}


static void
test_cut_frames(void)
{
    size_t              i, n;
    unsigned            bad;
    LZ4F_preferences_t  prefs;

    memset(&prefs, 0, sizeof(prefs));
    prefs.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;

    fill(raw, 3000, 't');
    n = make_frame(&prefs, raw, 3000);
    bad = 0;

    for (i = 0; i < n; i++) {
        bad += decode(frame, i, 3000) != XET_XORB_DATA;
    }

    xet_is_u64(bad, 0, "a frame cut at any byte is refused");
    xet_is_u64(decode(frame, n, 3000), XET_OK, "and whole it is not");

    frame[n] = 0;
    refused(frame, n + 1, 3000, XET_XORB_DATA, "a byte behind the frame");

    memcpy(frame + n, frame, n);
    refused(frame, 2 * n, 3000, XET_XORB_DATA, "two frames");
    refused(frame, 2 * n, 6000, XET_XORB_DATA, "two frames as one chunk");

    frame[n - 1] ^= 1;
    refused(frame, n, 3000, XET_XORB_DATA, "wrong content checksum");
    frame[n - 1] ^= 1;

    frame[6] ^= 1;
    refused(frame, n, 3000, XET_XORB_DATA, "wrong header checksum");
    frame[6] ^= 1;

    /* only the end mark is missing, after all output has been decoded */

    memset(&prefs, 0, sizeof(prefs));
    n = make_frame(&prefs, raw, 3000);
    refused(frame, n - 4, 3000, XET_XORB_DATA, "no end mark");
    refused(frame, n - 1, 3000, XET_XORB_DATA, "part of an end mark");

    prefs.frameInfo.blockChecksumFlag = LZ4F_blockChecksumEnabled;
    n = make_frame(&prefs, raw, 3000);
    frame[n - 5] ^= 1;
    refused(frame, n, 3000, XET_XORB_DATA, "wrong block checksum");
}


static void
test_foreign_frames(void)
{
    size_t              n;
    LZ4F_preferences_t  prefs;

    static const uint8_t  skippable[] = {
        0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4
    };

    static const uint8_t  legacy[] = {
        0x02, 0x21, 0x4c, 0x18, 5, 0, 0, 0, 0x40, 'a', 'b', 'c', 'd'
    };

    refused(skippable, sizeof(skippable), 4, XET_XORB_DATA,
            "a skippable frame");

    memcpy(frame, skippable, sizeof(skippable));
    memset(frame + 12, 'a', 100);
    refused(frame, 112, 100, XET_XORB_DATA, "a skippable frame and noise");

    refused(legacy, sizeof(legacy), 4, XET_XORB_DATA, "a legacy frame");

    fill(raw, 3000, 't');
    memset(&prefs, 0, sizeof(prefs));
    prefs.frameInfo.dictID = 7;
    n = make_frame(&prefs, raw, 3000);

    xet_is_u64(frame[4] & 1, 1, "a frame with a dictionary ID");
    refused(frame, n, 3000, XET_XORB_DATA, "is refused");

    memset(&prefs, 0, sizeof(prefs));
    prefs.frameInfo.contentSize = 3000;
    n = make_frame(&prefs, raw, 3000);
    refused(frame, n, 2999, XET_XORB_DATA_LEN, "content size over raw_len");

    fill(frame, 1000, 'r');
    refused(frame, 1000, 1000, XET_XORB_DATA, "noise");
    refused(frame, 0, 1000, XET_XORB_DATA, "no input");

    xet_put_u32(frame, 0x184d2204);
    refused(frame, 1000, 1000, XET_XORB_DATA, "a magic and noise");

    memset(&prefs, 0, sizeof(prefs));
    n = LZ4F_compressFrame(frame, sizeof(frame), raw, 0, &prefs);

    xet_ok(!LZ4F_isError(n), "an empty frame");
    refused(frame, n, 1, XET_XORB_DATA_LEN, "is too short for a byte");
}


static void
test_bomb(void)
{
    size_t              n;
    uint8_t            *zeros, *bomb;
    LZ4F_preferences_t  prefs;

    zeros = calloc(1, 4 << 20);
    bomb = malloc((4 << 20) + 1024);

    memset(&prefs, 0, sizeof(prefs));
    prefs.frameInfo.blockSizeID = LZ4F_max4MB;

    n = LZ4F_compressFrame(bomb, (4 << 20) + 1024, zeros, 4 << 20, &prefs);

    xet_ok(!LZ4F_isError(n) && n < 20000, "4 MiB of zeros in one block");
    refused(bomb, n, XET_CHUNK_MAX, XET_XORB_DATA_LEN, "does not fit");
    refused(bomb, n - 8, XET_CHUNK_MAX, XET_XORB_DATA,
            "nor does a part of its block");

    free(zeros);
    free(bomb);
}


/* Decodes the whole frame with LZ4F alone; returns whether it is right. */

static int
right(const uint8_t *in, size_t len, uint8_t *to, size_t raw_len)
{
    size_t      rc, in_len, out_len;
    LZ4F_dctx  *ctx;

    if (LZ4F_isError(LZ4F_createDecompressionContext(&ctx, LZ4F_VERSION))) {
        return -1;
    }

    in_len = len;
    out_len = raw_len;
    rc = LZ4F_decompress(ctx, to, &out_len, in, &in_len, NULL);

    LZ4F_freeDecompressionContext(ctx);

    return rc == 0 && in_len == len && out_len == raw_len;
}


/*
 * Tests that blocks that LZ4F does not decode are right in the same cases.
 * Frames have up to three changed bytes, often in the header or at the end.
 */

static void
test_changed_frames(void)
{
    int                  want;
    size_t               i, k, n, at, len, bad, good;
    uint8_t              changed[4096];
    xet_status_t         rc;
    static uint8_t       copy[XET_CHUNK_MAX + 8];
    LZ4F_preferences_t   prefs;

    bad = 0;
    good = 0;

    for (i = 0; i < 20000; i++) {

        memset(&prefs, 0, sizeof(prefs));
        len = 1 + rnd() % 2000;
        fill(raw, len, "rtzf"[rnd() % 4]);

        prefs.frameInfo.blockSizeID = LZ4F_max64KB + rnd() % 4;
        prefs.frameInfo.blockMode = rnd() % 4 ? LZ4F_blockIndependent
                                              : LZ4F_blockLinked;
        prefs.frameInfo.contentSize = rnd() % 4 ? 0 : len;
        prefs.frameInfo.contentChecksumFlag = rnd() % 4 == 0;
        prefs.frameInfo.blockChecksumFlag = rnd() % 4 == 0;
        prefs.autoFlush = 1;

        n = make_frame(&prefs, raw, len);
        memcpy(changed, frame, n);

        for (k = rnd() % 4; k; k--) {
            at = rnd() % 3 ? rnd() % 24 : rnd() % n;
            at = rnd() % 4 ? at : n - 1 - at;
            changed[at % n] ^= (uint8_t) (1 << rnd() % 8);
        }

        n -= rnd() % 8 ? 0 : rnd() % n;

        want = (changed[4] & 1) == 0 && right(changed, n, copy, len);
        rc = decode(changed, n, len);

        good += want;
        bad += (rc == XET_OK) != want
               || (want && memcmp(out, copy, len) != 0);
    }

    xet_is_u64(bad, 0, "frames are right if they are right for LZ4F");
    xet_ok(good > 1000 && good < 19000, "%zu of 20000 are", good);
}


int
main(void)
{
    codec = xet_codec_create(&xet_suite_default);

    xet_ok(codec != NULL, "a codec");

    test_bg4_vectors();
    test_bg4_sizes();
    test_round_trips();
    test_encode();
    test_no_gain();
    test_decode_plain();
    test_frames();
    test_lengths();
    test_cut_frames();
    test_foreign_frames();
    test_changed_frames();
    test_bomb();

    xet_codec_destroy(codec);
    xet_codec_destroy(NULL);

    return xet_done();
}
