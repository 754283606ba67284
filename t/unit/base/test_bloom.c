
/*
 * Tests the Bloom filter: no element is missed, few others are found, and
 * sizes.
 */


#include "xet_test.h"
#include "xet_base.h"


static uint64_t
test_random(uint64_t *state)
{
    uint64_t  z;

    z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


static void
test_filter(size_t n)
{
    size_t    i, size, missed, found;
    uint8_t  *bits;
    uint64_t  state;

    size = xet_bloom_size(n);

    /* the exact size, for ASan */

    bits = calloc(1, size);

    state = n;

    for (i = 0; i < n; i++) {
        xet_bloom_add(bits, size, test_random(&state));
    }

    missed = 0;
    state = n;

    for (i = 0; i < n; i++) {
        missed += !xet_bloom_has(bits, size, test_random(&state));
    }

    xet_is_u64(missed, 0, "no element is missed");

    found = 0;

    for (i = 0; i < 100000; i++) {
        found += xet_bloom_has(bits, size, test_random(&state)) != 0;
    }

    xet_ok(found < (n < 64 ? 4000 : 600), "few others are found");
    xet_ok(n || !found, "an empty filter has nothing");

    free(bits);
}


static void
test_sizes(void)
{
    size_t  n;

    xet_is_u64(xet_bloom_size(0), 8, "an empty filter");
    xet_is_u64(xet_bloom_size(5), 8, "one word");
    xet_is_u64(xet_bloom_size(6), 16, "two words");
    xet_is_u64(xet_bloom_size(64), 104, "64 elements");

    for (n = 0; n < 10000; n++) {
        if (xet_bloom_size(n) % 8 || xet_bloom_size(n) * 8 < n * 12
            || xet_bloom_size(n) * 8 > n * 12 + 64)
        {
            break;
        }
    }

    xet_is_u64(n, 10000, "12 bits per element");
}


int
main(void)
{
    size_t  i;

    static const size_t  n[] = { 0, 1, 5, 6, 63, 64, 1000, 4097, 174000 };

    test_sizes();

    for (i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
        test_filter(n[i]);
    }

    return xet_done();
}
