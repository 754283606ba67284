
/*
 * Tests the suite: its parameters, the compile-time copies of its limits, and
 * a checksum of the gear table.
 */


#include "xet_test.h"
#include "xet_hash.h"
#include "xet_vectors.h"


static void
test_parameters(void)
{
    const xet_suite_t  *suite;

    suite = &xet_suite_default;

    xet_is_u64(suite->chunk_min, 8192, "minimum chunk");
    xet_is_u64(suite->chunk_target, 65536, "target chunk");
    xet_is_u64(suite->chunk_max, 131072, "maximum chunk");
    xet_is_u64(suite->chunk_mask, UINT64_C(0xffff000000000000), "mask");
    xet_is_u64(suite->xorb_chunks_max, 8192, "chunks of a xorb");
    xet_is_u64(suite->xorb_raw_target, 64 * 1024 * 1024, "size of a xorb");
    xet_is_u64(suite->dedup_modulus, 1024, "dedup modulus");
    xet_is_u64(suite->merge_modulus, 4, "merge modulus");
    xet_is_u64(suite->merge_min, 3, "least children at a natural end");
    xet_is_u64(suite->merge_max, 9, "most children");

    xet_is_u64(suite->chunk_max, XET_CHUNK_MAX, "XET_CHUNK_MAX");
    xet_is_u64(suite->xorb_chunks_max, XET_XORB_CHUNKS_MAX,
               "XET_XORB_CHUNKS_MAX");
    xet_is_u64(suite->merge_max, XET_MERKLE_GROUP, "XET_MERKLE_GROUP");
}


static int
test_key_is(const uint8_t *key, const char *hex)
{
    char  text[2 * XET_HASH_LEN + 1];

    *xet_hash_print_plain((uint8_t *) text, key) = '\0';

    return strcmp(text, hex) == 0;
}


static void
test_keys(void)
{
    const xet_suite_t  *suite;

    suite = &xet_suite_default;

    xet_ok(test_key_is(suite->chunk_key,
                       "6697f5775b9550de3135cbaca597181c"
                       "9de421109beb2b58b4d0b04b93adf229"), "chunk key");
    xet_ok(test_key_is(suite->node_key,
                       "017ec5c7a5472996fd946666b48a02e6"
                       "5ddd536f37c76dd2f86352e64a53713f"), "node key");
    xet_ok(test_key_is(suite->file_key,
                       "00000000000000000000000000000000"
                       "00000000000000000000000000000000"), "file key");
    xet_ok(test_key_is(suite->verification_key,
                       "7f1857d6ce56ed66127ff913e7a5c3f3"
                       "a4cd26d5b5db49e64124987f28fb94c3"),
           "verification key");
}


static void
test_gear(void)
{
    unsigned         i, k, same;
    uint64_t         sum, mixed;
    const uint64_t  *gear;

    gear = xet_suite_default.gear;
    sum = 0;
    mixed = 0;
    same = 0;

    for (i = 0; i < 256; i++) {
        sum += gear[i];
        mixed = (mixed << 7 | mixed >> 57) ^ gear[i];

        for (k = 0; k < i; k++) {
            same += gear[i] == gear[k];
        }
    }

    xet_is_u64(gear[0], UINT64_C(0xb088d3a9e840f559), "the first entry");
    xet_is_u64(gear[255], UINT64_C(0x63c7a906c1dd187b), "the last entry");
    xet_is_u64(same, 0, "no two entries are the same");

    /* computed from the draft's table */

    xet_is_u64(sum, UINT64_C(0xc1acb37ef35c570a), "the sum of the table");
    xet_is_u64(mixed, UINT64_C(0xede0f9905d0331fe), "its order");
}


int
main(void)
{
    xet_ok(strcmp(xet_suite_default.name, "XET-BLAKE3-GEARHASH-LZ4") == 0,
           "its name");

    test_parameters();
    test_keys();
    test_gear();

    return xet_done();
}
