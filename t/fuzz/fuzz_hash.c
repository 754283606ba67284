
/*
 * Hash strings: any 32 bytes, printed and parsed, are unchanged; any text that
 * parses prints as the same text in lower case; hashes sort like their strings.
 * The streamed tree accepts any leaves.
 *
 * Input: the text, whose first 64 bytes are also two hashes; then leaves of 40
 * bytes.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_hash.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


static void
fuzz_parse(const uint8_t *text, size_t len)
{
    size_t        i;
    uint8_t       again[XET_HASH_STR_LEN], c;
    unsigned      digits;
    xet_hash_t    hash, before;
    xet_status_t  status;

    memset(&before, 0x5a, sizeof(before));
    hash = before;

    status = xet_hash_parse(&hash, text, len);

    if (len != XET_HASH_STR_LEN) {
        check(status == XET_HASH_SYNTAX && xet_hash_equal(&hash, &before));
        return;
    }

    digits = 0;

    for (i = 0; i < len; i++) {
        c = text[i];
        digits += (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')
                  || (c >= 'A' && c <= 'F');
    }

    check((status == XET_OK) == (digits == XET_HASH_STR_LEN));

    if (status != XET_OK) {
        check(status == XET_HASH_SYNTAX && xet_hash_equal(&hash, &before));
        return;
    }

    xet_hash_print(again, &hash);

    for (i = 0; i < len; i++) {
        c = text[i];
        check(again[i] == ((c >= 'A' && c <= 'F') ? c + 32 : c));
    }
}


static void
fuzz_print(const uint8_t *bytes)
{
    int         order;
    uint8_t     text[2][XET_HASH_STR_LEN];
    unsigned    i;
    xet_hash_t  hash[2], again;

    for (i = 0; i < 2; i++) {
        memcpy(hash[i].bytes, bytes + i * XET_HASH_LEN, XET_HASH_LEN);

        check(xet_hash_print(text[i], &hash[i])
              == text[i] + XET_HASH_STR_LEN);
        check(xet_hash_parse(&again, text[i], XET_HASH_STR_LEN) == XET_OK);
        check(xet_hash_equal(&again, &hash[i]));

        xet_hash_print_plain(text[i], hash[i].bytes);
        check(xet_hash_parse(&again, text[i], XET_HASH_STR_LEN) == XET_OK);
        check(again.bytes[0] == hash[i].bytes[7]
              && again.bytes[31] == hash[i].bytes[24]);

        xet_hash_print(text[i], &hash[i]);
    }

    order = memcmp(text[0], text[1], XET_HASH_STR_LEN);

    check((xet_hash_cmp(&hash[0], &hash[1]) < 0) == (order < 0));
    check((xet_hash_cmp(&hash[0], &hash[1]) > 0) == (order > 0));
    check(xet_hash_equal(&hash[0], &hash[1]) == (order == 0));
}


static void
fuzz_merkle(const uint8_t *p, size_t n)
{
    size_t        i;
    uint64_t      size;
    xet_hash_t    root;
    xet_merkle_t  m;

    xet_merkle_init(&m, &xet_suite_default);

    for (i = 0, size = 0; i < n; i++, p += 40) {
        xet_merkle_add(&m, p, xet_get_u64(p + 32));
        size += xet_get_u64(p + 32);
    }

    xet_merkle_finish(&m, &root);

    if (n == 0) {
        check(xet_hash_is_zero(&root));
        return;
    }

    check(m.levels >= 1 && m.level[m.levels - 1].total == 1);
    check(m.level[m.levels - 1].group[0].size == size);
    check(xet_hash_equal(&root, &m.level[m.levels - 1].group[0].hash));

    if (n == 1) {
        check(memcmp(root.bytes, p - 40, XET_HASH_LEN) == 0);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_parse(data, size);

    if (size < 2 * XET_HASH_LEN) {
        return 0;
    }

    fuzz_parse(data, XET_HASH_STR_LEN);
    fuzz_print(data);
    fuzz_merkle(data + 64, (size - 64) / 40);

    return 0;
}
