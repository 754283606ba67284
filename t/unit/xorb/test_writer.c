
/*
 * Tests the xorb writer: valid output for all schemes, sizes and kinds of
 * data; limits, errors, and the choice of a scheme.
 */

#include "xet_hash.h"
#include "xet_test.h"
#include "xet_xorb.h"
#include "xorb_bytes.h"


typedef struct {
    unsigned      calls;
    unsigned      fail_at;             /* number of the failing call, from 1 */
} failing_t;


static uint8_t  raw[XET_CHUNK_MAX + 1];


static xet_status_t
failing_write(void *ctx, const uint8_t *data, size_t len)
{
    failing_t  *f = ctx;

    return ++f->calls == f->fail_at ? XET_NOMEM : XET_OK;
}


static xet_status_t
null_write(void *ctx, const uint8_t *data, size_t len)
{
    *(uint64_t *) ctx += len;

    return XET_OK;
}


static int
same_info(const xet_xorb_info_t *a, const xet_xorb_info_t *b)
{
    return a->chunk_count == b->chunk_count && a->raw_size == b->raw_size
           && a->stored_size == b->stored_size
           && xet_hash_equal(&a->hash, &b->hash)
           && memcmp(a->hashes, b->hashes, 32 * a->chunk_count) == 0
           && memcmp(a->raw_ends, b->raw_ends, 4 * a->chunk_count) == 0
           && memcmp(a->stored_ends, b->stored_ends, 4 * a->chunk_count) == 0;
}


/*
 * Returns 1 if the bytes pass verification, match info, and have its stored
 * size.
 */

static int
verifies(const xorb_bytes_t *b, const xet_xorb_info_t *info)
{
    int                   ok;
    size_t                stored;
    xet_xorb_verifier_t  *v;

    v = xet_xorb_verifier_create(&xet_suite_default, &info->hash, 80 << 20);

    ok = xet_xorb_verifier_feed(v, b->data, b->len, &stored) == XET_OK
         && xet_xorb_verifier_finish(v) == XET_OK
         && stored == info->stored_size
         && same_info(info, xet_xorb_verifier_info(v));

    xet_xorb_verifier_destroy(v);

    return ok;
}


static xet_xorb_writer_t *
writer_to(xorb_bytes_t *b)
{
    memset(b, 0, sizeof(*b));

    return xet_xorb_writer_create(&xet_suite_default, xorb_bytes_write, b);
}


static unsigned
scheme_of(const xorb_bytes_t *b, const xet_xorb_info_t *info, uint32_t i)
{
    uint32_t  start;

    start = i ? xet_get_u32(info->stored_ends + 4 * (i - 1)) : 0;

    return b->data[start + 4];
}


static void
test_round_trips(void)
{
    size_t              i, k;
    unsigned            s, bad, seen, schemes[XET_SCHEMES + 1];
    xorb_bytes_t        b;
    xet_xorb_writer_t  *w;

    static const char    kinds[] = "rtfz";
    static const size_t  sizes[] = {
        1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 4095, 8191, 8192, 65535, 65536,
        65537, XET_CHUNK_MAX - 1, XET_CHUNK_MAX
    };

    w = writer_to(&b);

    for (i = 0; i <= XET_SCHEMES; i++) {
        schemes[i] = (i < XET_SCHEMES) ? (unsigned) i : XET_SCHEME_AUTO;
    }

    for (s = 0; s <= XET_SCHEMES; s++) {
        bad = 0;
        seen = 0;
        b.len = 0;
        xet_xorb_writer_reset(w);

        for (k = 0; k < 4; k++) {
            for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                xorb_bytes_fill(raw, sizes[i], kinds[k], (uint32_t) i);
                bad += xet_xorb_writer_add(w, raw, sizes[i], schemes[s],
                                           NULL) != XET_OK;
            }
        }

        bad += xet_xorb_writer_finish(w, 0) != XET_OK;

        xet_is_u64(bad, 0, "72 chunks");
        xet_ok(verifies(&b, xet_xorb_writer_info(w)),
               "  of scheme %u verify", schemes[s]);

        for (i = 0; i < 72; i++) {
            seen |= 1u << scheme_of(&b, xet_xorb_writer_info(w),
                                    (uint32_t) i);
        }

        /* each of the first three schemes is the best choice for some chunks */

        if (schemes[s] == XET_SCHEME_AUTO) {
            xet_is_u64(seen & 7, 7, "  as each chunk is smallest");

        } else {
            xet_is_u64(seen, 1u | 1u << schemes[s], "  as the scheme asks");
        }
    }

    xet_xorb_writer_destroy(w);
    xorb_bytes_free(&b);
}


static void
test_footers(void)
{
    size_t                  region;
    xorb_bytes_t            b;
    xet_xorb_writer_t      *w;
    const xet_xorb_info_t  *info;

    w = writer_to(&b);
    info = xet_xorb_writer_info(w);

    xorb_bytes_fill(raw, 5000, 't', 1);
    xet_xorb_writer_add(w, raw, 5000, XET_SCHEME_LZ4, NULL);
    xet_xorb_writer_add(w, raw, 10, XET_SCHEME_LZ4, NULL);
    region = info->stored_size;

    xet_is_u64(b.len, region, "the region so far");
    xet_is_u64(xet_xorb_writer_finish(w, 1), XET_OK, "finish with a footer");
    xet_is_u64(b.len, region + 92 + 80 + 4, "  of 92 + 40 n + 4 bytes");
    xet_is_u64(xet_get_u32(b.data + b.len - 4), 92 + 80, "  length at end");
    xet_ok(verifies(&b, info), "  verifies");

    b.len = region;
    xet_is_u64(xet_xorb_footer_write(info, 0, xorb_bytes_write, &b), XET_OK,
               "a v0 footer");
    xet_is_u64(b.len, region + 60 + 72 + 4, "  of 60 + 36 n + 4 bytes");
    xet_ok(verifies(&b, info), "  verifies");

    xet_is_u64(xet_xorb_footer_write(info, 2, xorb_bytes_write, &b),
               XET_INTERNAL, "there is no v2");

    xet_xorb_writer_destroy(w);
    xorb_bytes_free(&b);
}


/* Checks which scheme the writer chooses for the 64 KiB in raw. */

static void
is_auto(xet_xorb_writer_t *w, const xorb_bytes_t *b, unsigned want,
    const char *name)
{
    const xet_xorb_info_t  *info;

    info = xet_xorb_writer_info(w);

    xet_xorb_writer_add(w, raw, 65536, XET_SCHEME_AUTO, NULL);
    xet_is_u64(scheme_of(b, info, info->chunk_count - 1), want, name);
}


static void
test_auto(void)
{
    size_t                  i;
    float                   f;
    uint16_t                h;
    uint32_t                n;
    xorb_bytes_t            b;
    xet_xorb_writer_t      *w;
    const xet_xorb_info_t  *info;

    w = writer_to(&b);
    info = xet_xorb_writer_info(w);

    xorb_bytes_fill(raw, 65536, 'r', 1);
    is_auto(w, &b, XET_SCHEME_NONE, "auto: noise");

    xorb_bytes_fill(raw, 65536, 't', 1);
    is_auto(w, &b, XET_SCHEME_LZ4, "auto: text");

    memset(raw, 0, 65536);
    is_auto(w, &b, XET_SCHEME_LZ4, "auto: zeros");

    srand(1);

    for (i = 0; i < 16384; i++) {
        f = (float) rand() / (float) RAND_MAX * 0.04f - 0.02f;
        memcpy(raw + 4 * i, &f, 4);
    }

    is_auto(w, &b, XET_SCHEME_BG4_LZ4, "auto: float32");

    for (i = 0; i < 32768; i++) {
        f = (float) rand() / (float) RAND_MAX * 0.04f - 0.02f;
        memcpy(&n, &f, 4);
        h = (uint16_t) (n >> 16);
        memcpy(raw + 2 * i, &h, 2);
    }

    is_auto(w, &b, XET_SCHEME_BG4_LZ4, "auto: bfloat16");

    for (i = 0; i < 16384; i++) {
        xet_put_u32(raw + 4 * i, (uint32_t) rand() % 50000);
    }

    is_auto(w, &b, XET_SCHEME_BG4_LZ4, "auto: integers");

    /* the data resembles floats, but whole records of 16 bytes repeat */

    xorb_bytes_fill(raw, 3200, 'f', 1);

    for (i = 3200; i < 65536; i += 16) {
        memcpy(raw + i, raw + (unsigned) rand() % 200 * 16, 16);
    }

    is_auto(w, &b, XET_SCHEME_LZ4, "auto: records");

    xet_is_u64(xet_xorb_writer_finish(w, 0), XET_OK, "finish");
    xet_ok(verifies(&b, info), "  verifies");

    xet_xorb_writer_destroy(w);
    xorb_bytes_free(&b);
}


static void
test_errors(void)
{
    xorb_bytes_t            b;
    xet_hash_t              hash;
    xet_xorb_writer_t      *w;
    const xet_xorb_info_t  *info;

    w = writer_to(&b);
    info = xet_xorb_writer_info(w);

    xet_is_u64(xet_xorb_writer_finish(w, 0), XET_XORB_EMPTY, "no chunks");
    xet_is_u64(xet_xorb_writer_add(w, raw, 0, 0, NULL), XET_XORB_RAW_LEN,
               "an empty chunk");
    xet_is_u64(xet_xorb_writer_add(w, raw, XET_CHUNK_MAX + 1, 0, NULL),
               XET_XORB_RAW_LEN, "a chunk one byte too large");
    xet_is_u64(xet_xorb_writer_add(w, raw, 10, XET_SCHEMES, NULL),
               XET_XORB_SCHEME, "an unknown scheme");
    xet_is_u64(b.len, 0, "refused chunks write nothing");
    xet_is_u64(info->chunk_count, 0, "  and count nothing");

    xet_is_u64(xet_xorb_writer_add(w, raw, 10, 0, NULL), XET_OK, "a chunk");
    xet_is_u64(xet_xorb_writer_finish(w, 0), XET_OK, "finish");
    xet_ok(verifies(&b, info), "  verifies");
    xet_is_u64(xet_xorb_writer_finish(w, 0), XET_INTERNAL, "finish twice");
    xet_is_u64(xet_xorb_writer_add(w, raw, 10, 0, NULL), XET_INTERNAL,
               "a chunk behind the end");

    /* a hash from the caller is used unchecked */

    b.len = 0;
    memset(&hash, 7, sizeof(hash));
    xet_xorb_writer_reset(w);

    xet_is_u64(xet_xorb_writer_add(w, raw, 10, 0, &hash), XET_OK,
               "a chunk with its hash");
    xet_xorb_writer_finish(w, 0);
    xet_ok(xet_hash_equal(&info->hash, &hash), "  which is the root");
    xet_is_u64(info->chunk_count, 1, "  of one chunk, after the reset");

    xet_xorb_writer_destroy(w);
    xet_xorb_writer_destroy(NULL);
    xorb_bytes_free(&b);
}


static void
test_failing_output(void)
{
    unsigned            i;
    failing_t           f;
    xet_status_t        rc;
    xet_xorb_writer_t  *w;

    memset(&f, 0, sizeof(f));
    w = xet_xorb_writer_create(&xet_suite_default, failing_write, &f);

    xorb_bytes_fill(raw, 1000, 't', 1);

    /* the writer makes 4 calls for two chunks, and 10 for the footer */

    for (i = 1; i <= 14; i++) {
        f.calls = 0;
        f.fail_at = i;
        xet_xorb_writer_reset(w);

        rc = xet_xorb_writer_add(w, raw, 1000, 1, NULL);

        if (rc == XET_OK) {
            rc = xet_xorb_writer_add(w, raw, 1000, 0, NULL);
        }

        if (rc == XET_OK) {
            rc = xet_xorb_writer_finish(w, 1);
        }

        xet_ok(rc == XET_NOMEM && f.calls == i
               && xet_xorb_writer_add(w, raw, 1000, 0, NULL) == XET_NOMEM
               && xet_xorb_writer_finish(w, 1) == XET_NOMEM
               && f.calls == i, "output fails in call %u, for good", i);
    }

    xet_xorb_writer_destroy(w);
}


static void
test_limits(void)
{
    unsigned                i;
    uint64_t                written;
    xet_hash_t              hash;
    xet_xorb_writer_t      *w;
    const xet_xorb_info_t  *info;

    written = 0;
    w = xet_xorb_writer_create(&xet_suite_default, null_write, &written);
    info = xet_xorb_writer_info(w);

    memset(&hash, 1, sizeof(hash));
    memset(raw, 0, XET_CHUNK_MAX);

    for (i = 0; i < 8192 && xet_xorb_writer_fits(w, 1); i++) {
        xet_xorb_writer_add(w, raw, 1, 0, &hash);
    }

    xet_is_u64(i, 8192, "8192 chunks fit");
    xet_is_u64(xet_xorb_writer_fits(w, 1), 0, "one more does not");
    xet_is_u64(xet_xorb_writer_add(w, raw, 1, 0, &hash), XET_XORB_CHUNKS,
               "  and is refused");
    xet_is_u64(info->chunk_count, 8192, "  without effect");
    xet_is_u64(written, 8192 * 9, "  or output");

    xet_xorb_writer_reset(w);

    for (i = 0; i < 600 && xet_xorb_writer_fits(w, XET_CHUNK_MAX); i++) {
        xet_xorb_writer_add(w, raw, XET_CHUNK_MAX, 1, &hash);
    }

    xet_is_u64(i, 512, "64 MiB of raw bytes fit");
    xet_is_u64(xet_xorb_writer_fits(w, 1), 0, "one byte more does not");
    xet_is_u64(xet_xorb_writer_add(w, raw, 1, 1, &hash), XET_XORB_SIZE,
               "  and is refused");

    xet_xorb_writer_reset(w);

    for (i = 0; i < 600 && xet_xorb_writer_fits(w, XET_CHUNK_MAX); i++) {
        xet_xorb_writer_add(w, raw, XET_CHUNK_MAX, 0, &hash);
    }

    xet_is_u64(i, 511, "stored plain, headers count");
    xet_is_u64(info->stored_size, 511u * (XET_CHUNK_MAX + 8), "  too");

    i = (unsigned) ((64u << 20) - info->stored_size - 8);
    xet_is_u64(xet_xorb_writer_fits(w, i), 1, "what is left fits");
    xet_is_u64(xet_xorb_writer_fits(w, i + 1), 0, "a byte more does not");
    xet_is_u64(xet_xorb_writer_fits(w, 0), 0, "nothing is no chunk");
    xet_is_u64(xet_xorb_writer_fits(w, SIZE_MAX), 0, "nor is too much");

    xet_xorb_writer_destroy(w);
}


static unsigned
chunks_of(uint32_t chunks_max)
{
    unsigned            n;
    uint64_t            written;
    xet_hash_t          hash;
    xet_suite_t         suite;
    xet_xorb_writer_t  *w;

    suite = xet_suite_default;
    suite.xorb_chunks_max = chunks_max;

    written = 0;
    memset(&hash, 1, sizeof(hash));
    w = xet_xorb_writer_create(&suite, null_write, &written);

    for (n = 0; n < 20000; n++) {
        if (xet_xorb_writer_add(w, raw, 1, 0, &hash) != XET_OK) {
            break;
        }
    }

    xet_xorb_writer_destroy(w);

    return n;
}


static void
test_suites(void)
{
    xet_is_u64(chunks_of(3), 3, "a suite of 3 chunks a xorb");
    xet_is_u64(chunks_of(10000), 8192, "a suite of more than fit");
}


int
main(void)
{
    test_round_trips();
    test_footers();
    test_auto();
    test_errors();
    test_failing_output();
    test_limits();
    test_suites();

    return xet_done();
}
