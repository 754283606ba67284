
/*
 * The chunker: pieces of any size give the same chunks as one piece, and as the
 * draft's loop.
 *
 * Real chunks are long and inputs are short, so the input describes the data.
 * The first 32 bytes are the sizes of the pieces; each 4 bytes after them
 * describe a run of bytes of one kind.  This is slow, so it is only done if a
 * bit of the input is set: with the default suite, and with a suite of frequent
 * boundaries, which occur in all lanes of the parallel scan.  The input itself
 * is always chunked with a small suite, whose minimum, normal and maximum
 * lengths are a few bytes.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_chunk.h"


#define DATA_MAX    (160 * 1024)
#define LONG        0x20           /* bit of data[PIECES]: long data, too */
#define CUTS_MAX    4096
#define PIECES      32

#define check(cond)  if (!(cond)) { __builtin_trap(); }


static size_t  fuzz_cuts[CUTS_MAX];


static size_t
fuzz_expand(const uint8_t *p, size_t size, uint8_t *data)
{
    size_t    i, n, len, max;
    uint64_t  x;

    len = 0;

    for ( /* void */ ; size >= 4; p += 4, size -= 4) {

        /* lengths up to 64 KiB, mostly short */

        n = (size_t) xet_get_u16(p) >> (p[2] & 15);
        max = DATA_MAX - len;
        n = (n < max) ? n : max;
        x = ((uint64_t) p[3] << 32 | p[2]) * UINT64_C(0x9e3779b97f4a7c15) | 1;

        for (i = 0; i < n; i++) {

            if (p[2] & 0x80) {
                x = x * UINT64_C(6364136223846793005) + 1;
                data[len++] = (uint8_t) (x >> 56);

            } else {
                data[len++] = p[3];
            }
        }
    }

    return len;
}


static size_t
fuzz_naive(const xet_suite_t *suite, const uint8_t *data, size_t len)
{
    size_t    i, n, size;
    uint64_t  h;

    for (i = 0, n = 0, size = 0, h = 0; i < len; i++) {
        h = (h << 1) + suite->gear[data[i]];
        size++;

        if (size >= suite->chunk_min
            && (size >= suite->chunk_max || (h & suite->chunk_mask) == 0)
            && n < CUTS_MAX)
        {
            fuzz_cuts[n++] = i + 1;
            size = 0;
            h = 0;
        }
    }

    return n;
}


/*
 * Feeds the data as one piece or, if pieces is set, cycles through its sizes.
 */

static void
fuzz_feed(const xet_suite_t *suite, const uint8_t *data, size_t len,
    const uint8_t *pieces, size_t cuts)
{
    int             cut;
    size_t          i, k, n, piece, found;
    unsigned        turn;
    xet_chunker_t   c;

    xet_chunker_init(&c, suite);

    found = 0;
    turn = 0;

    for (i = 0; i < len; i += piece) {
        piece = len - i;

        if (pieces) {
            n = (size_t) xet_get_u16(pieces + turn % PIECES / 2 * 2);

            /* two bytes make a small, medium or large size */

            n = (n & 1) ? n >> 9 : (n & 2) ? n >> 3 : n * 4;
            turn += 2;

            piece = (n < piece) ? n : piece;

            if (piece == 0 && turn > 2 * PIECES) {
                piece = 1;
            }
        }

        k = 0;

        do {
            n = xet_chunker_feed(&c, data + i + k, piece - k, &cut);

            check(n <= piece - k);
            check(cut == 0 || cut == 1);
            check(cut || n == piece - k);

            k += n;

            if (cut && found < CUTS_MAX) {
                check(n > 0);
                check(found < cuts && fuzz_cuts[found] == i + k);
                found++;
            }
        } while (k < piece);
    }

    check(found == cuts);
}


static void
fuzz_suite(const xet_suite_t *suite, const uint8_t *data, size_t len,
    const uint8_t *pieces)
{
    size_t  cuts;

    cuts = fuzz_naive(suite, data, len);

    if (cuts == CUTS_MAX) {
        return;
    }

    fuzz_feed(suite, data, len, NULL, cuts);
    fuzz_feed(suite, data, len, pieces, cuts);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t              len;
    xet_suite_t         suite;

    static uint8_t      expanded[DATA_MAX];

    if (size < PIECES + 4) {
        return 0;
    }

    if (data[PIECES] & LONG) {
        len = fuzz_expand(data + PIECES, size - PIECES, expanded);

        fuzz_suite(&xet_suite_default, expanded, len, data);

        suite = xet_suite_default;
        suite.chunk_min = 64 + data[PIECES + 1] * 16;
        suite.chunk_max = suite.chunk_min + 100000;
        suite.chunk_mask = ~(uint64_t) 0 << (50 + data[PIECES + 2] % 8);

        fuzz_suite(&suite, expanded, len, data);
    }

    suite = xet_suite_default;
    suite.chunk_min = 60 + data[PIECES] % 16;
    suite.chunk_max = suite.chunk_min + data[PIECES + 1];
    suite.chunk_mask = UINT64_C(0xf000000000000000);

    fuzz_suite(&suite, data, size, data);

    return 0;
}
