
/*
 * Byte grouping of 4, then an LZ4 frame: the codec of XET_SCHEME_BG4_LZ4.
 *
 * Purpose:    compresses arrays of numbers, in which bytes of the same
 *             significance are similar.
 * States:     none.
 * Ownership:  the codec owns the context, a buffer for the grouped bytes of
 *             one chunk.
 * Threads:    one at a time.
 */

#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "xet_chunk.h"


/* The number of 4-byte groups that one step of the byte grouping processes. */
#define XET_CODEC_BG4_BLOCK    16

#define XET_CODEC_BG4_SAMPLES  1024


static void *xet_codec_bg4_create(void);
static xet_status_t xet_codec_bg4_encode(xet_codec_t *c, const uint8_t *in,
    size_t len, uint8_t *out, size_t *out_len);
static xet_status_t xet_codec_bg4_decode(xet_codec_t *c, const uint8_t *in,
    size_t len, uint8_t *out, size_t raw_len);
static int xet_codec_bg4_suits(const uint8_t *data, size_t len);
static void xet_codec_bg4_bases(size_t base[4], size_t n);
static void xet_codec_bg4_split_block(const uint8_t *in, uint8_t *a,
    uint8_t *b, uint8_t *c, uint8_t *d);
static void xet_codec_bg4_join_block(const uint8_t *a, const uint8_t *b,
    const uint8_t *c, const uint8_t *d, uint8_t *out);


const xet_scheme_t  xet_scheme_bg4 = {
    "bg4",
    xet_codec_bg4_create,
    free,
    xet_codec_bg4_encode,
    xet_codec_bg4_decode,
    xet_codec_bg4_suits
};


static void *
xet_codec_bg4_create(void)
{
    return malloc(XET_CHUNK_MAX);
}


static xet_status_t
xet_codec_bg4_encode(xet_codec_t *c, const uint8_t *in, size_t len,
    uint8_t *out, size_t *out_len)
{
    uint8_t  *group;

    group = c->ctx[XET_SCHEME_BG4_LZ4];

    xet_codec_bg4_split(in, group, len);

    return xet_scheme_lz4.encode(c, group, len, out, out_len);
}


static xet_status_t
xet_codec_bg4_decode(xet_codec_t *c, const uint8_t *in, size_t len,
    uint8_t *out, size_t raw_len)
{
    uint8_t       *group;
    xet_status_t   rc;

    group = c->ctx[XET_SCHEME_BG4_LZ4];

    rc = xet_scheme_lz4.decode(c, in, len, group, raw_len);

    if (rc == XET_OK) {
        xet_codec_bg4_join(group, out, raw_len);
    }

    return rc;
}


/*
 * Returns whether the bytes at one of the four positions vary much less than
 * all bytes together.  The measure is the probability that two samples share
 * their high nibble: 1/16 for noise.  Text has the same probability at all
 * positions; the exponents of floats and the high bytes of small integers have
 * a higher one.
 */

static int
xet_codec_bg4_suits(const uint8_t *data, size_t len)
{
    size_t    groups, step, i, k;
    uint64_t  all, best, sum, n;
    uint32_t  count[4][16];

    groups = len / 4;

    if (groups < 16) {
        return 0;
    }

    memset(count, 0, sizeof(count));

    step = groups / XET_CODEC_BG4_SAMPLES + 1;

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

    /*
     * best / samples^2 is the highest probability of the four positions;
     * all / (4 * samples)^2 is the probability for all bytes together.  The
     * former must be more than 3/2 of the latter.
     */

    return best * 32 > all * 3;
}


void
xet_codec_bg4_split(const uint8_t *in, uint8_t *out, size_t n)
{
    size_t  i, base[4];

    xet_codec_bg4_bases(base, n);

    for (i = 0; n / 4 - i >= XET_CODEC_BG4_BLOCK; i += XET_CODEC_BG4_BLOCK) {
        xet_codec_bg4_split_block(in + 4 * i, out + base[0] + i,
                                  out + base[1] + i, out + base[2] + i,
                                  out + base[3] + i);
    }

    for (i = 4 * i; i < n; i++) {
        out[base[i % 4] + i / 4] = in[i];
    }
}


void
xet_codec_bg4_join(const uint8_t *in, uint8_t *out, size_t n)
{
    size_t  i, base[4];

    xet_codec_bg4_bases(base, n);

    for (i = 0; n / 4 - i >= XET_CODEC_BG4_BLOCK; i += XET_CODEC_BG4_BLOCK) {
        xet_codec_bg4_join_block(in + base[0] + i, in + base[1] + i,
                                 in + base[2] + i, in + base[3] + i,
                                 out + 4 * i);
    }

    for (i = 4 * i; i < n; i++) {
        out[i] = in[base[i % 4] + i / 4];
    }
}


/* Sets the start of each group; the first n % 4 groups are one byte longer. */

static void
xet_codec_bg4_bases(size_t base[4], size_t n)
{
    size_t  i;

    base[0] = 0;

    for (i = 1; i < 4; i++) {
        base[i] = base[i - 1] + n / 4 + (n % 4 >= i);
    }
}


#if defined(__SSE2__)

/*
 * This function uses intrinsics, because compilers vectorize the loops below
 * only at some optimization levels.  Without vectors the grouping is eight
 * times slower and takes a third of the time spent on a chunk.
 */

static void
xet_codec_bg4_split_block(const uint8_t *in, uint8_t *a, uint8_t *b,
    uint8_t *c, uint8_t *d)
{
    __m128i        even0, even1, odd0, odd1, w, x, y, z;
    const __m128i  mask = _mm_set1_epi16(0x00ff);

    w = _mm_loadu_si128((const __m128i *) in);
    x = _mm_loadu_si128((const __m128i *) (in + 16));
    y = _mm_loadu_si128((const __m128i *) (in + 32));
    z = _mm_loadu_si128((const __m128i *) (in + 48));

    even0 = _mm_packus_epi16(_mm_and_si128(w, mask), _mm_and_si128(x, mask));
    even1 = _mm_packus_epi16(_mm_and_si128(y, mask), _mm_and_si128(z, mask));
    odd0 = _mm_packus_epi16(_mm_srli_epi16(w, 8), _mm_srli_epi16(x, 8));
    odd1 = _mm_packus_epi16(_mm_srli_epi16(y, 8), _mm_srli_epi16(z, 8));

    _mm_storeu_si128((__m128i *) a,
                     _mm_packus_epi16(_mm_and_si128(even0, mask),
                                      _mm_and_si128(even1, mask)));
    _mm_storeu_si128((__m128i *) b,
                     _mm_packus_epi16(_mm_and_si128(odd0, mask),
                                      _mm_and_si128(odd1, mask)));
    _mm_storeu_si128((__m128i *) c,
                     _mm_packus_epi16(_mm_srli_epi16(even0, 8),
                                      _mm_srli_epi16(even1, 8)));
    _mm_storeu_si128((__m128i *) d,
                     _mm_packus_epi16(_mm_srli_epi16(odd0, 8),
                                      _mm_srli_epi16(odd1, 8)));
}


static void
xet_codec_bg4_join_block(const uint8_t *a, const uint8_t *b, const uint8_t *c,
    const uint8_t *d, uint8_t *out)
{
    __m128i  w, x, y, z, ab0, ab1, cd0, cd1;

    w = _mm_loadu_si128((const __m128i *) a);
    x = _mm_loadu_si128((const __m128i *) b);
    y = _mm_loadu_si128((const __m128i *) c);
    z = _mm_loadu_si128((const __m128i *) d);

    ab0 = _mm_unpacklo_epi8(w, x);
    ab1 = _mm_unpackhi_epi8(w, x);
    cd0 = _mm_unpacklo_epi8(y, z);
    cd1 = _mm_unpackhi_epi8(y, z);

    _mm_storeu_si128((__m128i *) out, _mm_unpacklo_epi16(ab0, cd0));
    _mm_storeu_si128((__m128i *) (out + 16), _mm_unpackhi_epi16(ab0, cd0));
    _mm_storeu_si128((__m128i *) (out + 32), _mm_unpacklo_epi16(ab1, cd1));
    _mm_storeu_si128((__m128i *) (out + 48), _mm_unpackhi_epi16(ab1, cd1));
}

#else

static void
xet_codec_bg4_split_block(const uint8_t *restrict in, uint8_t *restrict a,
    uint8_t *restrict b, uint8_t *restrict c, uint8_t *restrict d)
{
    size_t  i;

    for (i = 0; i < XET_CODEC_BG4_BLOCK; i++) {
        a[i] = in[4 * i];
        b[i] = in[4 * i + 1];
        c[i] = in[4 * i + 2];
        d[i] = in[4 * i + 3];
    }
}


static void
xet_codec_bg4_join_block(const uint8_t *restrict a, const uint8_t *restrict b,
    const uint8_t *restrict c, const uint8_t *restrict d,
    uint8_t *restrict out)
{
    size_t  i;

    for (i = 0; i < XET_CODEC_BG4_BLOCK; i++) {
        out[4 * i] = a[i];
        out[4 * i + 1] = b[i];
        out[4 * i + 2] = c[i];
        out[4 * i + 3] = d[i];
    }
}

#endif
