
/*
 * Tests packed terms: the exact bytes, packing and unpacking, and every kind
 * of damage.
 */


#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_plan.h"


static int
test_same(const xet_term_t *a, const xet_term_t *b)
{
    return xet_hash_equal(&a->xorb, &b->xorb)
           && a->chunk_start == b->chunk_start
           && a->chunk_end == b->chunk_end
           && a->stored_start == b->stored_start
           && a->stored_end == b->stored_end
           && a->raw_length == b->raw_length
           && a->copy_id == b->copy_id;
}


static void
test_bytes(void)
{
    uint8_t     packed[XET_TERM_LEN + 1];
    unsigned    i;
    xet_term_t  term, back;

    static const uint8_t  want[] = {
        0x02, 0x01, 0xff, 0x1f, 0x13, 0x12, 0x11, 0x10,
        0x23, 0x22, 0x21, 0x20, 0x33, 0x32, 0x31, 0x00,
        0x43, 0x42, 0x41, 0x40
    };

    for (i = 0; i < XET_HASH_LEN; i++) {
        term.xorb.bytes[i] = (uint8_t) (i * 3);
    }

    term.chunk_start = 0x0102;
    term.chunk_end = 8192;
    term.stored_start = 0x10111213;
    term.stored_end = 0x20212223;
    term.raw_length = 0x00313233;
    term.copy_id = 0x40414243;

    packed[XET_TERM_LEN] = 0xaa;
    xet_term_pack(packed, &term);

    xet_ok(memcmp(packed, term.xorb.bytes, XET_HASH_LEN) == 0, "xorb hash");
    xet_ok(memcmp(packed + XET_HASH_LEN, want, sizeof(want)) == 0,
           "the 20 bytes behind it");
    xet_is_u64(packed[XET_TERM_LEN], 0xaa, "nothing behind those");

    xet_is_u64(xet_term_unpack(&back, packed), XET_OK, "unpacks");
    xet_ok(test_same(&term, &back), "to the same term");
}


static void
test_random(void)
{
    uint8_t     packed[XET_TERM_LEN];
    uint32_t    n;
    uint64_t    state;
    unsigned    i, good;
    xet_term_t  term, back;

    state = 1;

    for (i = 0, good = 0; i < 10000; i++) {
        xet_test_random_hash(&state, term.xorb.bytes);

        term.chunk_start = (uint32_t) (xet_test_random(&state) % 8192);
        term.chunk_end = term.chunk_start + 1
                         + (uint32_t) (xet_test_random(&state)
                                       % (8192 - term.chunk_start));
        n = term.chunk_end - term.chunk_start;

        term.copy_id = (uint32_t) xet_test_random(&state);
        term.raw_length = n + (uint32_t) (xet_test_random(&state)
                                  % ((uint64_t) n * XET_CHUNK_MAX - n + 1));
        term.stored_start = (uint32_t) (xet_test_random(&state)
                                        % (0xffffffff - n));
        term.stored_end = term.stored_start + n
                          + (uint32_t) (xet_test_random(&state)
                                  % (0xffffffff - term.stored_start - n + 1));

        xet_term_pack(packed, &term);
        good += xet_term_unpack(&back, packed) == XET_OK
                && test_same(&term, &back);
    }

    xet_is_u64(good, 10000, "random terms there and back");
}


static void
test_limits(void)
{
    size_t      i;
    uint8_t     packed[XET_TERM_LEN];
    xet_term_t  term;

    static const struct {
        const char    *name;
        uint32_t       start;
        uint32_t       last;
        uint32_t       stored_start;
        uint32_t       stored_end;
        uint32_t       raw;
        xet_status_t   want;
    } cases[] = {
        { "one chunk", 0, 0, 0, 1, 1, XET_OK },
        { "the last chunk", 8191, 8191, 5, 90, 7, XET_OK },
        { "all chunks, all bytes", 0, 8191, 0, 0xffffffff, 1u << 30, XET_OK },
        { "a byte more than that", 0, 8191, 0, 0xffffffff, (1u << 30) + 1,
          XET_PLAN_DAMAGED },
        { "a chunk past the last", 8191, 8192, 5, 90, 7, XET_PLAN_DAMAGED },
        { "chunks to 65536", 0, 65535, 0, 0xffffffff, 1u << 30,
          XET_PLAN_DAMAGED },
        { "a reversed chunk range", 5, 4, 0, 100, 7, XET_PLAN_DAMAGED },
        { "an empty byte range", 0, 0, 50, 50, 7, XET_PLAN_DAMAGED },
        { "a reversed byte range", 0, 0, 51, 50, 7, XET_PLAN_DAMAGED },
        { "fewer stored bytes than chunks", 0, 9, 50, 59, 70,
          XET_PLAN_DAMAGED },
        { "as many stored bytes as chunks", 0, 9, 50, 60, 70, XET_OK },
        { "no raw bytes", 0, 0, 0, 10, 0, XET_PLAN_DAMAGED },
        { "fewer raw bytes than chunks", 0, 9, 0, 100, 9, XET_PLAN_DAMAGED },
        { "as many raw bytes as chunks", 0, 9, 0, 100, 10, XET_OK },
        { "a full chunk", 3, 3, 0, 10, 131072, XET_OK },
        { "a chunk too long", 3, 3, 0, 10, 131073, XET_PLAN_DAMAGED },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(packed, 0, sizeof(packed));
        xet_put_u16(packed + 32, cases[i].start);
        xet_put_u16(packed + 34, cases[i].last);
        xet_put_u32(packed + 36, cases[i].stored_start);
        xet_put_u32(packed + 40, cases[i].stored_end);
        xet_put_u32(packed + 44, cases[i].raw);

        xet_is_u64(xet_term_unpack(&term, packed), cases[i].want,
                   cases[i].name);
    }

    memset(packed, 0, sizeof(packed));
    xet_is_u64(xet_term_unpack(&term, packed), XET_PLAN_DAMAGED, "all zeros");

    memset(packed, 0xff, sizeof(packed));
    xet_is_u64(xet_term_unpack(&term, packed), XET_PLAN_DAMAGED, "all ones");
}


int
main(void)
{
    test_bytes();
    test_random();
    test_limits();

    return xet_done();
}
