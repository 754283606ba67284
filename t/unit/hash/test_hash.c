
/*
 * Tests hash strings, comparison, and the keyed functions, with test vectors
 * of the draft and of the clients.
 */


#include "xet_test.h"
#include "xet_hash.h"
#include "xet_vectors.h"
#include "xet_reference.h"


static void
test_print(void)
{
    size_t       i;
    char         text[XET_HASH_STR_LEN + 2];
    uint8_t     *end;
    xet_hash_t   hash;

    for (i = 0; i < XET_HASH_LEN; i++) {
        hash.bytes[i] = (uint8_t) i;
    }

    memset(text, '#', sizeof(text));
    end = xet_hash_print((uint8_t *) text, &hash);

    xet_ok(end == (uint8_t *) text + 64 && text[64] == '#',
           "64 digits and no zero byte");

    text[64] = '\0';
    xet_ok(strcmp(text, "07060504030201000f0e0d0c0b0a0908"
                        "17161514131211101f1e1d1c1b1a1918") == 0,
           "groups of eight bytes are reversed");

    memset(text, '#', sizeof(text));
    end = xet_hash_print_plain((uint8_t *) text, hash.bytes);

    xet_ok(end == (uint8_t *) text + 64 && text[64] == '#',
           "plain: 64 digits and no zero byte");

    text[64] = '\0';
    xet_ok(strcmp(text, "000102030405060708090a0b0c0d0e0f"
                        "101112131415161718191a1b1c1d1e1f") == 0,
           "plain hex is in memory order");
}


static void
test_parse_digits(void)
{
    size_t       i;
    char         want[3];
    uint8_t      text[XET_HASH_STR_LEN];
    unsigned     c, wrong;
    xet_hash_t   hash, before;

    static const char  digits[] = "0123456789abcdefABCDEF";

    memset(before.bytes, 0x5a, XET_HASH_LEN);
    wrong = 0;

    for (i = 0; i < XET_HASH_STR_LEN; i++) {
        for (c = 0; c < 256; c++) {
            memset(text, '0', sizeof(text));
            text[i] = (uint8_t) c;
            hash = before;

            if (c && strchr(digits, (int) c)) {
                snprintf(want, sizeof(want), "%c", (int) c);

                wrong += xet_hash_parse(&hash, text, 64) != XET_OK
                         || hash.bytes[(i / 2) ^ 7]
                            != strtoul(want, NULL, 16) << (i % 2 ? 0 : 4);

            } else {
                wrong += xet_hash_parse(&hash, text, 64) != XET_HASH_SYNTAX
                         || !xet_hash_equal(&hash, &before);
            }
        }
    }

    xet_is_u64(wrong, 0, "every byte at every position");
}


static void
test_parse_length(void)
{
    size_t      len;
    uint8_t     text[XET_HASH_STR_LEN + 2];
    unsigned    wrong;
    xet_hash_t  hash;

    memset(text, 'a', sizeof(text));
    wrong = 0;

    for (len = 0; len <= sizeof(text); len++) {
        wrong += xet_hash_parse(&hash, text, len)
                 != (len == 64 ? XET_OK : XET_HASH_SYNTAX);
    }

    xet_is_u64(wrong, 0, "64 digits, no more and no less");
    xet_is_u64(xet_hash_parse(&hash, NULL, 0), XET_HASH_SYNTAX, "nothing");
}


static void
test_round_trip(void)
{
    size_t       i;
    uint8_t      text[XET_HASH_STR_LEN], again[XET_HASH_STR_LEN];
    uint64_t     state;
    unsigned     round, wrong, order;
    xet_hash_t   a, b;

    state = 1;
    wrong = 0;
    order = 0;

    for (round = 0; round < 10000; round++) {

        for (i = 0; i < XET_HASH_LEN; i += 8) {
            xet_put_u64(a.bytes + i, xet_splitmix64(&state));
        }

        xet_hash_print(text, &a);

        if (xet_hash_parse(&b, text, 64) != XET_OK
            || !xet_hash_equal(&a, &b) || xet_hash_cmp(&a, &b) != 0)
        {
            wrong++;
        }

        /*
         * hashes sort in the same order as their strings, even with long common
         * prefixes
         */

        b.bytes[xet_splitmix64(&state) % XET_HASH_LEN] ^= (uint8_t) round;

        xet_hash_print(again, &b);

        i = (size_t) (memcmp(text, again, 64) < 0);
        order += (size_t) (xet_hash_cmp(&a, &b) < 0) != i;
        order += (xet_hash_cmp(&a, &b) == 0) != xet_hash_equal(&a, &b);
        order += xet_hash_cmp(&a, &b) != -xet_hash_cmp(&b, &a);
    }

    xet_is_u64(wrong, 0, "10,000 hashes print and parse");
    xet_is_u64(order, 0, "their order is that of their strings");
}


static void
test_zero(void)
{
    size_t      i;
    unsigned    wrong;
    xet_hash_t  hash;

    memset(&hash, 0, sizeof(hash));
    xet_ok(xet_hash_is_zero(&hash), "zeros");

    wrong = 0;

    for (i = 0; i < XET_HASH_LEN; i++) {
        hash.bytes[i] = (uint8_t) (1 << i % 8);
        wrong += xet_hash_is_zero(&hash);
        hash.bytes[i] = 0;
    }

    xet_is_u64(wrong, 0, "one bit anywhere is not zero");
}


static void
test_eligible(void)
{
    xet_hash_t  hash;

    memset(hash.bytes, 0xff, XET_HASH_LEN);
    xet_put_u64(hash.bytes + 24, 1024 * UINT64_C(123456789));

    xet_is_u64(xet_hash_tail(hash.bytes), UINT64_C(126419751936),
               "the last word");
    xet_ok(xet_hash_eligible(&xet_suite_default, hash.bytes), "eligible");

    xet_put_u64(hash.bytes + 24, 1024 * UINT64_C(123456789) + 512);
    xet_ok(!xet_hash_eligible(&xet_suite_default, hash.bytes),
           "half way to the next");
}


static void
test_draft(void)
{
    size_t       i;
    json_t      *root, *part, *list;
    uint8_t      bytes[2 * XET_HASH_LEN];
    xet_hash_t   hash;
    const char  *s;

    root = xet_vectors_load("xet/vectors/draft_denis_xet.json");
    if (root == NULL) {
        return;
    }

    part = json_object_get(root, "chunk_hash");
    s = json_string_value(json_object_get(part, "input_ascii"));
    s = s ? s : "";
    xet_hash_chunk(&xet_suite_default, s, strlen(s), &hash);
    xet_is_hash(&hash, json_string_value(json_object_get(part, "xet_hex")),
                "draft: chunk hash");
    xet_ok(xet_vectors_hex(json_object_get(part, "raw_hex"), bytes, 32)
           && memcmp(bytes, hash.bytes, 32) == 0, "draft: its raw bytes");

    part = json_object_get(root, "hash_string");
    xet_ok(xet_vectors_hex(json_object_get(part, "raw_hex"), hash.bytes, 32),
           "draft: raw bytes of the string");
    xet_is_hash(&hash, json_string_value(json_object_get(part, "xet_hex")),
                "draft: hash string");

    part = json_object_get(root, "xet_core_hash_string");
    list = json_object_get(part, "raw_bytes");
    xet_is_u64(json_array_size(list), XET_HASH_LEN, "client: 32 bytes");

    for (i = 0; i < XET_HASH_LEN; i++) {
        hash.bytes[i] =
                     (uint8_t) json_integer_value(json_array_get(list, i));
    }

    xet_is_hash(&hash, json_string_value(json_object_get(part, "xet_hex")),
                "client: hash string");

    part = json_object_get(root, "verification");
    list = json_object_get(part, "chunk_hashes_xet_hex");
    xet_is_u64(json_array_size(list), 2, "draft: two chunk hashes");

    for (i = 0; i < 2; i++) {
        hash = xet_vectors_hash(json_array_get(list, i));
        memcpy(bytes + i * XET_HASH_LEN, hash.bytes, XET_HASH_LEN);
    }

    xet_hash_verification(&xet_suite_default, bytes, 2, &hash);
    xet_is_hash(&hash, json_string_value(json_object_get(part, "xet_hex")),
                "draft: verification hash");

    json_decref(root);
}


static void
test_huggingfacejs(void)
{
    size_t       i;
    json_t      *root, *part, *list;
    uint8_t      bytes[2 * XET_HASH_LEN];
    xet_hash_t   hash, key;

    root = xet_vectors_load("xet/vectors/huggingfacejs_hashes.json");
    if (root == NULL) {
        return;
    }

    part = json_object_get(root, "hmac");
    hash = xet_vectors_hash(json_object_get(part, "hash"));
    key = xet_vectors_hash(json_object_get(part, "key"));
    xet_hash_keyed(key.bytes, hash.bytes, XET_HASH_LEN, &hash);
    xet_is_hash(&hash, json_string_value(json_object_get(part, "result")),
                "huggingface.js: keyed hash, in place");

    part = json_object_get(root, "verification_hash");
    list = json_object_get(part, "hashes");

    for (i = 0; i < 2; i++) {
        hash = xet_vectors_hash(json_array_get(list, i));
        memcpy(bytes + i * XET_HASH_LEN, hash.bytes, XET_HASH_LEN);
    }

    xet_hash_verification(&xet_suite_default, bytes, 2, &hash);
    xet_is_hash(&hash, json_string_value(json_object_get(part, "result")),
                "huggingface.js: verification hash");

    memset(&hash, 0, sizeof(hash));
    xet_hash_file(&xet_suite_default, &hash, &key);
    xet_is_hash(&key,
                json_string_value(json_object_get(root, "empty_file_hash")),
                "huggingface.js: the empty file");

    json_decref(root);
}


static void
test_extra(void)
{
    json_t      *root;
    uint8_t     *data;
    xet_hash_t   hash;

    root = xet_vectors_load("xet/vectors/extra_hashes.json");
    if (root == NULL) {
        return;
    }

    xet_hash_chunk(&xet_suite_default, NULL, 0, &hash);
    xet_is_hash(&hash,
                json_string_value(json_object_get(root, "empty_chunk_hash")),
                "the empty chunk");

    data = xet_splitmix64_data(1000, 0);
    xet_hash_chunk(&xet_suite_default, data, 1000, &hash);
    xet_is_hash(&hash,
                json_string_value(json_object_get(root,
                                       "splitmix64_n1000_seed0_chunk_hash")),
                "a chunk of 1000 bytes");

    free(data);
    json_decref(root);
}


static void
test_chunk_files(void)
{
    size_t       i, len;
    char         name[256];
    uint8_t     *data;
    xet_hash_t   hash;

    static const char *const  names[] = {
        "b10aa1dc71c61661de92280c41a188aabc47981739b785724a099945d8dc5ce4",
        "26255591fa803b6baf25d88c315b8a6f5153d5bcfdf18ec5ef526264e0ccc907",
        "099cb228194fe640e36a6c7d274ee5ed3a714ccd557a0951d9b6b43a7292b5d1"
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(name, sizeof(name), XET_REFERENCE "%s.chunk", names[i]);

        data = xet_reference_load(name, &len);

        if (data == NULL) {
            continue;
        }

        xet_hash_chunk(&xet_suite_default, data, len, &hash);
        xet_is_hash(&hash, names[i], "a chunk of the reference file");

        free(data);
    }
}


int
main(void)
{
    test_print();
    test_parse_digits();
    test_parse_length();
    test_round_trip();
    test_zero();
    test_eligible();
    test_draft();
    test_huggingfacejs();
    test_extra();
    test_chunk_files();

    return xet_done();
}
