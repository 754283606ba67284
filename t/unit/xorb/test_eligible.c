
/*
 * Tests the eligible chunks of a xorb: each one is returned once, for any xorb.
 */


#include "xet_test.h"
#include "xet_xorb.h"


static uint8_t   hashes[XET_XORB_CHUNKS_MAX * XET_HASH_LEN];
static uint16_t  chunks[XET_XORB_CHUNKS_MAX];


static void
set(unsigned i, uint32_t head, uint32_t middle, uint64_t tail)
{
    uint8_t  *p;

    p = hashes + i * XET_HASH_LEN;

    memset(p, 0x5a, XET_HASH_LEN);
    xet_put_u32(p, head);
    xet_put_u32(p + 8, middle);
    xet_put_u64(p + 24, tail);
}


static uint32_t
eligible(unsigned n)
{
    xet_xorb_info_t  info;

    memset(&info, 0, sizeof(info));

    info.chunk_count = n;
    info.hashes = hashes;

    return xet_xorb_eligible(&xet_suite_default, &info, chunks);
}


int
main(void)
{
    uint32_t  n;
    unsigned  i, wrong;

    xet_is_u64(eligible(0), 0, "no chunk");

    for (i = 0; i < XET_XORB_CHUNKS_MAX; i++) {
        set(i, i, 0, i);
    }

    n = eligible(XET_XORB_CHUNKS_MAX);

    xet_is_u64(n, 8, "one in 1,024");
    xet_ok(chunks[0] == 0 && chunks[7] == 7168, "by the hash, in order");

    for (i = 0; i < XET_XORB_CHUNKS_MAX; i++) {
        set(i, 7, 0, i ? 1024 : 1);
    }

    n = eligible(XET_XORB_CHUNKS_MAX);

    xet_ok(n == 1 && chunks[0] == 1, "one chunk 8,191 times: the first");

    for (i = 0; i < XET_XORB_CHUNKS_MAX; i++) {
        set(i, i % 3, i % 2, 1024 * (i % 5));
    }

    n = eligible(XET_XORB_CHUNKS_MAX);
    wrong = 0;

    for (i = 0; i < n; i++) {
        wrong += chunks[i] != i;
    }

    xet_ok(n == 30 && wrong == 0, "30 chunks over and over: the first 30");

    /* all chunks are eligible and in the same slot of the table */

    for (i = 0; i < XET_XORB_CHUNKS_MAX; i++) {
        set(i, 5, i, 0);
    }

    n = eligible(XET_XORB_CHUNKS_MAX);
    wrong = 0;

    for (i = 0; i < n; i++) {
        wrong += chunks[i] != i;
    }

    xet_ok(n == XET_XORB_CHUNKS_MAX && wrong == 0, "8,192 of their own");

    return xet_done();
}
