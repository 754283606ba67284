
/*
 * Chunk codecs.  The first byte chooses:
 *
 *   even   the rest is a scheme, a raw length and stored bytes to decode: the
 *          verdict and the output must not depend on earlier calls of the codec
 *          or on the old contents of the output; accesses must stay in bounds
 *          (the buffers are heap blocks of the exact size)
 *   odd    the rest describes a chunk, which is encoded and decoded; its bytes
 *          are also grouped and ungrouped
 */


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_chunk.h"
#include "xet_hash.h"


#define check(cond)                                                           \
    if (!(cond)) {                                                            \
        __builtin_trap();                                                     \
    }


static void fuzz_decode(const uint8_t *data, size_t size);
static void fuzz_encode(const uint8_t *data, size_t size);


static xet_codec_t  *fuzz_codec;       /* reused for all inputs */


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (fuzz_codec == NULL) {
        fuzz_codec = xet_codec_create(&xet_suite_default);
        check(fuzz_codec != NULL);
    }

    if (size < 5) {
        return 0;
    }

    if (data[0] % 2 == 0) {
        fuzz_decode(data + 1, size - 1);

    } else {
        fuzz_encode(data + 1, size - 1);
    }

    return 0;
}


static void
fuzz_decode(const uint8_t *data, size_t size)
{
    size_t         raw_len;
    uint8_t       *a, *b;
    unsigned       scheme;
    xet_codec_t   *fresh;
    xet_status_t   rc;

    scheme = data[0] % (XET_SCHEMES + 2);
    raw_len = xet_get_u24(data + 1) % (XET_CHUNK_MAX + 3);

    data += 4;
    size -= 4;

    a = malloc(raw_len + (raw_len == 0));
    b = malloc(raw_len + (raw_len == 0));
    fresh = xet_codec_create(&xet_suite_default);
    check(a != NULL && b != NULL && fresh != NULL);

    memset(a, 0, raw_len);
    memset(b, 0xff, raw_len);

    rc = xet_codec_decode(fuzz_codec, scheme, data, size, a, raw_len);
    check(rc == xet_codec_decode(fresh, scheme, data, size, b, raw_len));

    switch (rc) {

    case XET_OK:
        check(raw_len >= 1 && raw_len <= XET_CHUNK_MAX);
        check(memcmp(a, b, raw_len) == 0);
        check(scheme != XET_SCHEME_NONE || memcmp(a, data, size) == 0);
        break;

    case XET_XORB_RAW_LEN:
        check(raw_len == 0 || raw_len > XET_CHUNK_MAX);
        break;

    case XET_XORB_SCHEME:
        check(xet_suite_scheme(&xet_suite_default, scheme) == NULL);
        break;

    default:
        check(rc == XET_XORB_DATA || rc == XET_XORB_DATA_LEN);
    }

    xet_codec_destroy(fresh);
    free(a);
    free(b);
}


static void
fuzz_encode(const uint8_t *data, size_t size)
{
    size_t         i, len, n;
    uint8_t       *raw, *out, *back, noise;
    unsigned       scheme;
    uint64_t       s;
    xet_status_t   rc;

    /* the chunk repeats the input, with more or less noise in between */

    scheme = 1 + data[0] % (XET_SCHEMES - 1);
    noise = data[0] >> 1;
    len = 1 + xet_get_u24(data + 1) % XET_CHUNK_MAX;

    data += 4;
    size -= 4;

    raw = malloc(len);
    out = malloc(len);
    back = malloc(len);
    check(raw != NULL && out != NULL && back != NULL);

    s = 88172645463325252ULL + len;

    for (i = 0; i < len; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;

        raw[i] = size ? data[i % size] : 0;

        if ((uint8_t) (s >> 40) < noise) {
            raw[i] = (uint8_t) (s >> 32);
        }
    }

    n = len;
    rc = xet_codec_encode(fuzz_codec, scheme, raw, len, out, &n);

    if (rc == XET_OK) {
        check(n < len);
        check(xet_codec_decode(fuzz_codec, scheme, out, n, back, len)
              == XET_OK);
        check(memcmp(raw, back, len) == 0);

    } else {
        check(rc == XET_AGAIN && n == len);
    }

    xet_codec_bg4_split(raw, out, len);
    xet_codec_bg4_join(out, back, len);
    check(memcmp(raw, back, len) == 0);

    free(raw);
    free(out);
    free(back);
}
