
/*
 * Tests the start and the end of a file: the four formats, wrong sizes, and
 * truncated files.
 */


#include "zt_bytes.h"
#include "xet_zt.h"


static void
is(const zt_bytes_t *b, size_t len, const char *want, const char *name)
{
    const char  *got;

    got = zt_outcome(b->data, len, 3, NULL);

    if (!xet_ok(strcmp(got, want) == 0, "%s: %s", name, want)) {
        printf("#   got %s\n", got);
    }
}


static void
set_size(zt_bytes_t *b, uint64_t size)
{
    xet_put_u64(b->data + b->len - 16, size);
}


static void
test_sizes(zt_bytes_t *b)
{
    uint64_t  size;

    zt_base(b);
    size = b->len - 16 - b->manifest;

    xet_is_u64(b->len, 181, "the base has 181 bytes");
    xet_is_u64(size, 93, "and a manifest of 93");
    is(b, b->len, "t:ok", "the base");

    set_size(b, (uint64_t) 1 << 30);
    is(b, b->len, "manifest_out_of_bounds", "2^30");

    set_size(b, ((uint64_t) 1 << 30) + 1);
    is(b, b->len, "manifest_too_large", "2^30 + 1");

    set_size(b, (uint64_t) 1 << 63);
    is(b, b->len, "manifest_too_large", "2^63");

    set_size(b, UINT64_MAX);
    is(b, b->len, "manifest_too_large", "2^64 - 1");

    set_size(b, UINT64_MAX - 15);
    is(b, b->len, "manifest_too_large", "one that wraps with the footer");

    set_size(b, (uint64_t) 93 << 56);
    is(b, b->len, "manifest_too_large", "big-endian");

    set_size(b, 0);
    is(b, b->len, "empty_manifest", "0");

    set_size(b, size - 1);
    is(b, b->len, "bad_manifest", "one short");

    set_size(b, size + 1);
    is(b, b->len, "bad_manifest", "one long");

    set_size(b, b->len - 16);
    is(b, b->len, "manifest_overlaps_header", "the whole file");

    set_size(b, b->len - 16 - 7);
    is(b, b->len, "manifest_overlaps_header", "a byte of the magic number");

    set_size(b, b->len - 16 - 8);
    is(b, b->len, "bad_manifest", "all behind the magic number");

    set_size(b, b->len - 15);
    is(b, b->len, "manifest_out_of_bounds", "a byte more than there is");
}


static void
test_limit(zt_bytes_t *b)
{
    const char       *got;
    xet_zt_limits_t   limits;

    xet_zt_limits_init(&limits);

    xet_is_u64(limits.manifest, 67108864, "64 MiB by default");

    zt_base(b);

    limits.manifest = 93;
    got = zt_outcome(b->data, b->len, 64, &limits);
    xet_ok(strcmp(got, "t:ok") == 0, "a manifest at the server's limit");

    limits.manifest = 92;
    got = zt_outcome(b->data, b->len, 64, &limits);
    xet_ok(strcmp(got, "manifest_over_server_limit") == 0, "one past it: %s",
           got);

    xet_is_u64(xet_status_http(XET_ZT_MANIFEST_LIMIT), 413, "which is a 413");
    xet_is_u64(xet_status_http(XET_ZT_MANIFEST_SIZE), 422, "the other a 422");
}


static void
test_magic(zt_bytes_t *b)
{
    char              name[32];
    zt_bytes_t        v1, v0;
    const char       *got;
    xet_zt_limits_t   limits;

    memset(&v0, 0, sizeof(v0));
    memset(&v1, 0, sizeof(v1));

    zt_base(b);
    memcpy(b->data, "\0\0\0\0\0\0\0\0", 8);
    is(b, b->len, "t:ok", "no magic number at the start");

    xet_zt_limits_init(&limits);
    limits.strict = 1;

    got = zt_outcome(b->data, b->len, 64, &limits);
    xet_ok(strcmp(got, "bad_header_magic") == 0, "strict: %s", got);

    memcpy(b->data, "\x89ZT2\r\n\x1a\n", 8);
    is(b, b->len, "bad_header_magic", "that of container 2 at the start");

    zt_base(b);
    memcpy(b->data + b->len - 8, "\x89ZT2\r\n\x1a\n", 8);
    is(b, b->len, "bad_header_magic", "that of container 2 at the end");

    zt_base(b);
    zt_put(b, "\n", 1);
    is(b, b->len, "bad_footer_magic", "a newline at the end");

    zt_base(b);
    memcpy(b->data, "........", 8);
    memcpy(b->data + b->len - 8, "........", 8);
    is(b, b->len, "not_ztensor", "neither");

    /* the layout of the first two formats */

    zt_put(&v1, "ZTEN1000", 8);
    zt_put_fill(&v1, 0, 56);
    zt_put(&v1, "\xa1\x67tensors\xa0", 10);
    zt_put(&v1, "\x0a\0\0\0\0\0\0\0", 8);
    is(&v1, v1.len, "unsupported_version", "1.0");

    v1.data[v1.len - 8] = 66;
    is(&v1, v1.len, "unsupported_version", "1.0, at most");

    v1.data[v1.len - 8] = 67;
    is(&v1, v1.len, "bad_footer_magic", "1.0, a length that can't be");

    v1.data[v1.len - 8] = 0;
    is(&v1, v1.len, "bad_footer_magic", "1.0, no length");

    zt_put(&v0, "ZTEN0001", 8);
    zt_put_fill(&v0, 0, 56);
    zt_put(&v0, "\x80\x01\0\0\0\0\0\0\0", 9);
    is(&v0, v0.len, "unsupported_version", "0.1");

    snprintf(name, sizeof(name), "%.8s", (const char *) v0.data);
    xet_ok(strcmp(name, "ZTEN0001") == 0, "by its magic number");

    free(v0.data);
    free(v1.data);
}


static void
test_version(void)
{
    size_t         i;
    zt_bytes_t     b;
    xet_zt_t      *zt;
    xet_status_t   rc;

    static const struct {
        const char    *version;
        xet_status_t   status;
        unsigned       warned;
    } versions[] = {
        { "1.1.0", XET_OK, 0 },
        { "1.1", XET_OK, 0 },
        { "1.1.99", XET_OK, 0 },
        { "1.2.0", XET_OK, 0 },
        { "1.2", XET_OK, 0 },
        { "1.0.0", XET_OK, 1 },
        { "1.3.0", XET_OK, 1 },
        { "1.10.0", XET_OK, 1 },
        { "1.1-rc", XET_OK, 1 },
        { "1", XET_OK, 1 },
        { "1.", XET_OK, 1 },
        { "", XET_ZT_VERSION, 0 },
        { "0.1.0", XET_ZT_VERSION, 0 },
        { "2", XET_ZT_VERSION, 0 },
        { "2.0.0", XET_ZT_VERSION, 0 },
        { "10.1.0", XET_ZT_VERSION, 0 },
        { "11", XET_ZT_VERSION, 0 },
        { "v1.1.0", XET_ZT_VERSION, 0 },
        { "1.1.000000000000000000000000000", XET_OK, 0 },
        { "1.1.0000000000000000000000000000", XET_OK, 0 },
        { "1.1.00000000000000000000000000000", XET_ZT_VERSION, 0 }
    };

    memset(&b, 0, sizeof(b));

    for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        zt_begin(&b, "", 0);
        zt_map(&b, 2);
        zt_field_text(&b, "version", versions[i].version);
        zt_text(&b, "objects");
        zt_map(&b, 0);
        zt_end(&b);

        zt = zt_open(b.data, b.len, 5, NULL, &rc);

        xet_ok(rc == versions[i].status
               && (rc != XET_OK
                   || xet_zt_info(zt)->warnings
                      == (versions[i].warned ? XET_ZT_WARN_VERSION : 0)),
               "version \"%s\"", versions[i].version);

        if (rc == XET_OK) {
            xet_ok(xet_zt_info(zt)->version_len == strlen(versions[i].version)
                   && memcmp(xet_zt_info(zt)->version, versions[i].version,
                             strlen(versions[i].version)) == 0,
                   "is kept");
        }

        xet_zt_destroy(zt);
    }

    free(b.data);
}


static void
test_short(zt_bytes_t *b)
{
    size_t       n;
    unsigned     as_expected;
    const char  *got, *want;

    zt_base(b);

    as_expected = 0;

    for (n = 0; n < b->len; n++) {
        got = zt_outcome(b->data, n, 1, NULL);

        /* without its last 8 bytes, the file ends like a format 1.0 file */

        want = (n < 16) ? "too_short" : (n == 173) ? "unsupported_version"
               : "bad_footer_magic";

        as_expected += strcmp(got, want) == 0;

        if (strcmp(got, want) != 0) {
            printf("# %zu bytes: %s\n", n, got);
        }
    }

    xet_is_u64(as_expected, 181, "every prefix of the base");

    b->len = 0;
    zt_put_fill(b, 0, 8);
    zt_put(b, "ZTEN1000", 8);
    is(b, 15, "too_short", "15 bytes");
    is(b, 16, "empty_manifest", "16 bytes, a manifest of none");

    memcpy(b->data, "ZTEN1000", 8);
    is(b, 16, "manifest_too_large", "16 bytes, twice the magic number");

    b->len = 0;
    zt_put(b, "\x89ZT2\r\n\x1a\n", 8);
    zt_put_fill(b, 0, 31);
    zt_put(b, "\x89ZT2\r\n\x1a\n", 8);
    is(b, 47, "too_short", "47 bytes of container 2");
    is(b, 16, "too_short", "16 bytes of it");
}


static void
test_ends_2(zt_bytes_t *b)
{
    uint8_t  *footer;

    zt_begin_2(b, "data", 4);
    zt_map(b, 1);
    zt_text(b, "objects");
    zt_map(b, 0);
    zt_end_2(b);

    footer = b->data + b->len - 40;

    is(b, b->len, "empty", "container 2");

    footer[28] = 0xff;
    is(b, b->len, "empty", "what is reserved is ignored");

    footer[24] = 3;
    is(b, b->len, "unsupported_version", "version 3 of container 2");
    footer[24] = 2;

    xet_put_u64(footer, b->manifest + 64);
    is(b, b->len, "misaligned", "a manifest at 64");

    xet_put_u64(footer, 0);
    is(b, b->len, "misaligned", "at 0");

    xet_put_u64(footer, b->manifest + 4096);
    is(b, b->len, "manifest_out_of_bounds", "past the end");

    xet_put_u64(footer, UINT64_MAX - 4095);
    is(b, b->len, "manifest_out_of_bounds", "where the sum wraps");

    xet_put_u64(footer, b->manifest);
    xet_put_u64(footer + 8, b->len - 40 - b->manifest + 1);
    is(b, b->len, "manifest_out_of_bounds", "a byte into the footer");

    xet_put_u64(footer + 8, ((uint64_t) 1 << 30) + 1);
    is(b, b->len, "manifest_too_large", "2^30 + 1");

    xet_put_u64(footer + 8, 0);
    is(b, b->len, "manifest_out_of_bounds", "no length, but an offset");

    memset(footer, 0, 16);
    is(b, b->len, "manifest_out_of_bounds", "no length, but a hash");

    memset(footer, 0, 24);
    is(b, b->len, "data_shard", "a data shard");
}


int
main(void)
{
    zt_bytes_t  b;

    memset(&b, 0, sizeof(b));

    test_sizes(&b);
    test_limit(&b);
    test_magic(&b);
    test_version();
    test_short(&b);
    test_ends_2(&b);

    free(b.data);

    return xet_done();
}
