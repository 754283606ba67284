
/*
 * The commands "random" and "mix", which print deterministic test data.  The
 * output is a prefix of an endless stream that depends only on the seed.
 */


#include <string.h>

#include "xet_make/xet_make.h"


#define XET_MAKE_RUN_MAX  (512 * 1024)


typedef struct {
    uint64_t  state;
} xet_make_rng_t;


/* Returns the next SplitMix64 number, as used by the published vectors. */

static uint64_t
xet_make_next(xet_make_rng_t *rng)
{
    uint64_t  z;

    rng->state += 0x9e3779b97f4a7c15u;

    z = rng->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;

    return z ^ (z >> 31);
}


/* len is a multiple of 8. */

static void
xet_make_fill_random(xet_make_rng_t *rng, uint8_t *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i += 8) {
        xet_put_u64(p + i, xet_make_next(rng));
    }
}


static void
xet_make_fill_text(xet_make_rng_t *rng, uint8_t *p, size_t len)
{
    static const char  *words[] = {
        "the ", "of ", "and ", "chunk ", "file ", "hash ", "store ", "a ",
        "model ", "weight ", "layer ", "is ", "to ", "in ", "range, ",
        "tree.\n"
    };

    size_t       i, n;
    const char  *w;

    for (i = 0; i < len; i += n) {
        w = words[xet_make_next(rng) & 15];
        n = strlen(w);
        n = n > len - i ? len - i : n;
        memcpy(p + i, w, n);
    }
}


/*
 * Writes floats of width bytes that resemble weights: the low bytes are noise,
 * sign and exponent take few values.
 */

static void
xet_make_fill_floats(xet_make_rng_t *rng, uint8_t *p, size_t len,
    unsigned width)
{
    size_t    i;
    uint64_t  r;

    for (i = 0; i < len; i += width) {
        r = xet_make_next(rng);

        xet_put_u16(p + i, (uint32_t) r & 0xffff);
        if (width == 4) {
            xet_put_u16(p + i + 2, (uint32_t) (r >> 16) & 0xffff);
        }

        p[i + width - 1] = (uint8_t) ((r >> 56 & 0x80) | 0x3b
                                      | (r >> 40 & 0x04));
    }
}


int
xet_make_random(int argc, char **argv)
{
    size_t          n;
    uint64_t        size;
    xet_make_rng_t  rng;
    static uint8_t  block[65536];

    if (argc != 2) {
        xet_make_fatal("usage: random SEED SIZE");
    }

    rng.state = xet_make_number(argv[0], UINT64_MAX);

    for (size = xet_make_number(argv[1], UINT64_MAX); size; size -= n) {
        n = size < sizeof(block) ? (size_t) size : sizeof(block);
        xet_make_fill_random(&rng, block, sizeof(block));
        xet_make_put(stdout, block, n);
    }

    xet_make_close(stdout);

    return 0;
}


/*
 * Prints runs of 4 KiB to 512 KiB.  A run is random, text, 2-byte floats,
 * 4-byte floats, one repeated byte, or a repetition of an earlier run.
 */

int
xet_make_mix(int argc, char **argv)
{
    size_t           len, n, kept_len;
    uint64_t         size, r;
    xet_make_rng_t   rng;
    static uint8_t   run[XET_MAKE_RUN_MAX], kept[XET_MAKE_RUN_MAX];

    if (argc != 2) {
        xet_make_fatal("usage: mix SEED SIZE");
    }

    rng.state = xet_make_number(argv[0], UINT64_MAX) ^ 0x6d6978;
    kept_len = 0;

    for (size = xet_make_number(argv[1], UINT64_MAX); size; size -= n) {
        r = xet_make_next(&rng);
        len = 4096 * (size_t) (1 + (r >> 8) % (XET_MAKE_RUN_MAX / 4096));

        switch (r % 6) {

        case 0:
            xet_make_fill_random(&rng, run, len);
            break;

        case 1:
            xet_make_fill_text(&rng, run, len);
            break;

        case 2:
            xet_make_fill_floats(&rng, run, len, 2);
            break;

        case 3:
            xet_make_fill_floats(&rng, run, len, 4);
            break;

        case 4:
            memset(run, (int) (r >> 32 & 0xff), len);
            break;

        default:
            if (kept_len == 0) {
                xet_make_fill_random(&rng, kept, XET_MAKE_RUN_MAX);
                kept_len = XET_MAKE_RUN_MAX;
            }

            len = kept_len;
            memcpy(run, kept, len);
            break;
        }

        n = size < len ? (size_t) size : len;
        xet_make_put(stdout, run, n);

        if (r >> 40 & 1) {
            memcpy(kept, run, len);
            kept_len = len;
        }
    }

    xet_make_close(stdout);

    return 0;
}
