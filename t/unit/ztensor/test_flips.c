
/*
 * Tests damage to a file of 300 tensors: every prefix of the file, every
 * prefix of its manifest, and every byte changed.  The reader must not crash
 * or loop.  The verdict is never an internal error, and does not depend on the
 * split of the input.
 */


#include "zt_bytes.h"


#define TENSORS  300


typedef struct {
    unsigned  n;
    uint64_t  sum;
    uint64_t  offset;                  /* offset of the error */
} walked_t;


/*
 * Builds the file.  One in three objects has data, so that the test takes only
 * 15 seconds.
 */

static void
build(zt_bytes_t *b)
{
    char      name[32];
    unsigned  i;

    static uint8_t  blob[64 * TENSORS / 3];

    zt_begin(b, blob, sizeof(blob));
    zt_root(b, TENSORS);

    for (i = 0; i < TENSORS; i++) {
        snprintf(name, sizeof(name), "w.%u", i);

        if (i % 3) {
            zt_text(b, name);
            zt_map(b, 3);
            zt_text(b, "shape");
            zt_array(b, 0);
            zt_field_text(b, "format", "");
            zt_text(b, "components");
            zt_map(b, 0);
            continue;
        }

        zt_dense(b, name, 16, (i % 30 == 0) ? 5 : 3);
        zt_component(b, "f32", 64 * (i / 3 + 1), 64);

        if (i % 30 == 0) {
            zt_field_text(b, "encoding", "raw");
            zt_field_text(b, "digest", "crc32c:0x00000000");
        }
    }

    zt_end(b);
}


static xet_status_t
count(void *ctx, xet_zt_object_t *o)
{
    unsigned   i;
    walked_t  *walked;

    walked = ctx;
    walked->n++;

    /* reads every string, so that a sanitizer detects a bad one */

    for (i = 0; i < o->name.len; i++) {
        walked->sum += o->name.data[i];
    }

    for (i = 0; i < o->n; i++) {
        walked->sum += o->components[i].dtype.len
                       ? o->components[i].dtype.data[0] : 0;
    }

    return XET_OK;
}


static xet_status_t
verdict(const uint8_t *data, size_t len, size_t step, walked_t *walked)
{
    xet_zt_t         *zt;
    xet_status_t      rc, walk;
    xet_zt_limits_t   limits;

    memset(walked, 0, sizeof(walked_t));

    /* small buffers, to save time */

    xet_zt_limits_init(&limits);
    limits.name = 64;
    limits.roles = 4;

    zt = zt_open(data, len, step, &limits, &rc);

    if (rc == XET_OK) {
        walk = zt_walk_all(zt, data, step, NULL, count, walked);

        if (walk != XET_OK || walked->n != xet_zt_info(zt)->count) {
            rc = XET_INTERNAL;
        }
    }

    walked->offset = xet_zt_error_offset(zt);

    xet_zt_destroy(zt);

    return rc;
}


static void
test_prefixes(const zt_bytes_t *b)
{
    size_t        n, bad;
    walked_t      walked;
    xet_status_t  rc;

    bad = 0;

    for (n = 0; n < b->len; n++) {
        rc = verdict(b->data, n, 1 << 20, &walked);

        bad += rc == XET_OK || xet_status_http(rc) >= 500;
    }

    xet_is_u64(bad, 0, "every prefix of the file is refused");
}


static void
test_manifests(const zt_bytes_t *b)
{
    size_t        n, bad, manifest;
    uint8_t      *data;
    walked_t      walked;
    xet_status_t  rc;

    bad = 0;
    manifest = b->len - 16 - b->manifest;
    data = malloc(b->len);

    memcpy(data, b->data, b->len);

    for (n = 0; n < manifest; n++) {
        xet_put_u64(data + b->manifest + n, n);
        memcpy(data + b->manifest + n + 8, "ZTEN1000", 8);

        rc = verdict(data, b->manifest + n + 16, 1 << 20, &walked);

        bad += rc != (n ? XET_ZT_MANIFEST : XET_ZT_MANIFEST_EMPTY);

        memcpy(data + b->manifest + n, b->data + b->manifest + n, 16);
    }

    free(data);

    xet_is_u64(bad, 0, "every prefix of the manifest ends too soon");
}


static void
test_flips(const zt_bytes_t *b)
{
    size_t        i, ok, step, fault, unlike, codes;
    uint8_t      *data;
    uint8_t       seen[XET_STATUS_MAX];
    uint64_t      state;
    walked_t      walked, again;
    xet_status_t  rc;

    data = malloc(b->len);
    memcpy(data, b->data, b->len);
    memset(seen, 0, sizeof(seen));

    state = 1;
    ok = fault = unlike = 0;

    for (i = 0; i < b->len; i++) {

        /* blobs are not read, so changing one byte in each is enough */

        if (i >= 64 && i < b->manifest && i % 64 != 0) {
            continue;
        }

        data[i] = (uint8_t) (b->data[i]
                             ^ (1 + xet_test_random(&state) % 255));

        rc = verdict(data, b->len, 1 << 20, &walked);

        seen[rc] = 1;
        ok += rc == XET_OK;
        fault += xet_status_http(rc) >= 500;

        if (i % 16 == 0) {
            step = (size_t) (1 + xet_test_random(&state) % 300);

            unlike += verdict(data, b->len, step, &again) != rc
                      || again.sum != walked.sum
                      || again.offset != walked.offset;
        }

        data[i] = b->data[i];
    }

    free(data);

    for (i = 0, codes = 0; i < sizeof(seen); i++) {
        codes += seen[i];
    }

    xet_is_u64(fault, 0, "no changed byte is a fault of ours");
    xet_is_u64(unlike, 0, "pieces of any size give the same verdict");
    xet_ok(ok > TENSORS && ok < b->len / 2, "%zu changes are harmless", ok);
    xet_ok(codes > 8, "%zu different verdicts", codes);
}


int
main(void)
{
    zt_bytes_t    b;
    walked_t      walked;

    memset(&b, 0, sizeof(b));

    build(&b);

    xet_is_u64(verdict(b.data, b.len, 1 << 20, &walked), XET_OK,
               "the file itself");
    xet_is_u64(walked.n, TENSORS, "has 300 tensors");

    test_prefixes(&b);
    test_manifests(&b);
    test_flips(&b);

    free(b.data);

    return xet_done();
}
