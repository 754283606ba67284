
/*
 * Tests a single chunk: each scheme, every flipped bit, every length.
 */


#include "xet_test.h"
#include "xet_xorb.h"


#define RAW_LEN  3000


static uint8_t  body[XET_XORB_CHUNK_MAX];
static size_t   body_len;


static xet_status_t
take(void *ctx, const uint8_t *data, size_t len)
{
    memcpy(body + body_len, data, len);
    body_len += len;

    return XET_OK;
}


static void
test_scheme(unsigned scheme, const char *name)
{
    size_t              i, len;
    uint8_t             raw[RAW_LEN], out[RAW_LEN + 1], bad[sizeof(body)];
    uint8_t            *copy;
    unsigned            bit, passed, wrong;
    xet_hash_t          hash;
    xet_codec_t        *codec;
    xet_status_t        rc;
    xet_xorb_writer_t  *w;

    for (i = 0; i < RAW_LEN; i++) {
        raw[i] = (uint8_t) (i % 4 ? i / 512 : i * 7);
    }

    body_len = 0;

    w = xet_xorb_writer_create(&xet_suite_default, take, NULL);
    rc = xet_xorb_writer_add(w, raw, RAW_LEN, scheme, NULL);
    xet_xorb_writer_destroy(w);

    xet_ok(rc == XET_OK && body[4] == scheme, "%s", name);

    codec = xet_codec_create(&xet_suite_default);
    xet_hash_chunk(&xet_suite_default, raw, RAW_LEN, &hash);

    rc = xet_xorb_chunk_decode(&xet_suite_default, codec, body, body_len,
                               hash.bytes, out, RAW_LEN);

    xet_ok(rc == XET_OK && memcmp(raw, out, RAW_LEN) == 0, "decodes");

    /* if LZ4 ignores the flipped bit, the decoded bytes must be right */

    passed = 0;
    wrong = 0;

    for (i = 0; i < body_len; i++) {
        for (bit = 0; bit < 8; bit++) {
            memcpy(bad, body, body_len);
            bad[i] ^= (uint8_t) (1 << bit);

            rc = xet_xorb_chunk_decode(&xet_suite_default, codec, bad,
                                       body_len, hash.bytes, out, RAW_LEN);

            passed += (rc == XET_OK);
            wrong += (rc == XET_OK && memcmp(raw, out, RAW_LEN));
        }
    }

    xet_is_u64(wrong, 0, "no flip gives wrong bytes");
    xet_ok(passed < 8, "nearly every flip is found");

    /* a block of the exact length, so that ASan detects a read past it */

    for (len = 0, passed = 0; len < body_len; len++) {
        copy = malloc(len ? len : 1);
        memcpy(copy, body, len);

        rc = xet_xorb_chunk_decode(&xet_suite_default, codec, copy, len,
                                   hash.bytes, out, RAW_LEN);
        passed += (rc == XET_OK);
        free(copy);
    }

    xet_is_u64(passed, 0, "no part of it passes");

    body[body_len] = 0;

    xet_is_u64(xet_xorb_chunk_decode(&xet_suite_default, codec, body,
                                     body_len + 1, hash.bytes, out, RAW_LEN),
               XET_XORB_STORED_LEN, "a byte more");
    xet_is_u64(xet_xorb_chunk_decode(&xet_suite_default, codec, body,
                                     body_len, hash.bytes, out, RAW_LEN + 1),
               XET_XORB_RAW_LEN, "another length decoded");
    xet_is_u64(xet_xorb_chunk_decode(&xet_suite_default, codec, body, 7,
                                     hash.bytes, out, RAW_LEN),
               XET_XORB_TRUNCATED, "less than a header");

    hash.bytes[31] ^= 1;

    xet_is_u64(xet_xorb_chunk_decode(&xet_suite_default, codec, body,
                                     body_len, hash.bytes, out, RAW_LEN),
               XET_CHUNK_HASH, "another hash");

    body[0] = 'X';

    xet_is_u64(xet_xorb_chunk_decode(&xet_suite_default, codec, body,
                                     body_len, hash.bytes, out, RAW_LEN),
               XET_XORB_VERSION, "the ident of a footer");

    xet_codec_destroy(codec);
}


int
main(void)
{
    unsigned             i;
    const xet_scheme_t  *scheme;

    for (i = 0; i < XET_SCHEMES; i++) {
        scheme = xet_suite_scheme(&xet_suite_default, i);

        if (scheme != NULL) {
            test_scheme(i, scheme->name);
        }
    }

    return xet_done();
}
