
/*
 * Tests limits on the work for a component, per call and in total: a few
 * kilobytes of zstd can decode to megabytes.
 */


#include <stdio.h>
#include <string.h>

#include "zt_bytes.h"
#include "xet_zt.h"


#define BLOCKS  256
#define BLOCK   (128 * 1024)
#define TOTAL   ((uint64_t) BLOCKS * BLOCK)
#define ROOM    (1024 * 1024)
#define BUFFER  65536


static uint8_t              frame[6 + BLOCKS * 4];
static char                 digest[sizeof("crc32c:00000000")];
static xet_zt_object_t      object;
static xet_zt_component_t   component;
static xet_zt_region_t      region;


/* Makes a frame without a declared size, whose blocks repeat one byte. */

static void
make(int known, uint64_t decoded)
{
    size_t    i;
    uint8_t  *p;
    uint32_t  head;

    p = frame;
    memcpy(p, "\x28\xb5\x2f\xfd\x00\x38", 6);
    p += 6;

    for (i = 0; i < BLOCKS; i++) {
        head = BLOCK << 3 | 1 << 1 | (i == BLOCKS - 1);

        *p++ = (uint8_t) head;
        *p++ = (uint8_t) (head >> 8);
        *p++ = (uint8_t) (head >> 16);
        *p++ = (uint8_t) i;
    }

    (void) snprintf(digest, sizeof(digest), "crc32c:%08x",
                    xet_crc32c(0, frame, sizeof(frame)));

    memset(&object, 0, sizeof(object));
    memset(&component, 0, sizeof(component));

    object.components = &component;
    object.n = 1;

    component.digest.data = (const uint8_t *) digest;
    component.digest.len = strlen(digest);
    component.coding = XET_ZT_CODING_ZSTD;
    component.offset = 64;
    component.length = sizeof(frame);
    component.has_decoded = known ? 1 : 0;
    component.decoded = decoded;

    region.container = XET_ZT_CONTAINER_1;
    region.rank_max = XET_ZT_RANK_MAX;
    region.data_start = 64;
    region.data_end = 64 + sizeof(frame);
}


static xet_zt_verifier_t *
start(void)
{
    xet_range_t              range;
    xet_zt_verifier_t       *v;
    xet_zt_decode_limits_t   limits;

    xet_zt_decode_limits_init(&limits);

    v = xet_zt_verifier_create(&limits);

    xet_zt_verifier_limit(v, UINT64_MAX);
    (void) xet_zt_verifier_start(v, &region, &object, &component, &range);

    return v;
}


/*
 * Feeds the data in steps, with a limit on the work per call.  Returns the
 * largest amount of work done in any one call; UINT64_MAX on an error.
 */

static uint64_t
take(xet_zt_verifier_t *v, size_t step, uint64_t *turns)
{
    size_t          pos, n, len;
    uint64_t        room, before, most;
    xet_status_t    rc;
    const uint8_t  *p;

    most = 0;
    *turns = 0;

    for (pos = 0; pos < sizeof(frame); pos += n) {
        n = (step < sizeof(frame) - pos) ? step : sizeof(frame) - pos;

        p = frame + pos;
        len = n;

        do {
            room = ROOM;
            before = xet_zt_verifier_work(v);

            rc = xet_zt_verifier_take(v, &p, &len, &room);

            before = xet_zt_verifier_work(v) - before;
            most = (before > most) ? before : most;

            if (before + room < ROOM) {
                return UINT64_MAX;
            }

            (*turns)++;
        } while (rc == XET_AGAIN);

        if (rc != XET_OK || len || p != frame + pos + n) {
            return UINT64_MAX;
        }
    }

    return most;
}


static void
test_room(void)
{
    size_t              i;
    uint64_t            turns, most;
    xet_zt_report_t     report;
    xet_zt_verifier_t  *v;

    static const size_t  steps[] = { sizeof(frame), 7, 1 };

    make(1, TOTAL);

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        v = start();
        most = take(v, steps[i], &turns);

        xet_ok(most >= BUFFER && most <= ROOM + BUFFER, "no more at a time");
        xet_ok(turns >= TOTAL / (ROOM + BUFFER), "but as often");
        xet_is_u64(xet_zt_verifier_work(v), TOTAL, "all of it");

        memset(&report, 0xff, sizeof(report));
        (void) xet_zt_verifier_finish(v, &report);

        xet_is_u64(report.digest, XET_ZT_DIGEST_VERIFIED, "verified");
        xet_is_u64(report.status, XET_OK, "without a fault");

        xet_zt_verifier_destroy(v);
    }
}


/*
 * Checks that decoding stops as soon as there is more data than declared or
 * allowed.
 */

static void
test_limit(void)
{
    uint64_t            turns;
    xet_range_t         range;
    xet_zt_report_t     report;
    xet_zt_verifier_t  *v;

    make(1, 3 * ROOM);
    v = start();
    (void) take(v, sizeof(frame), &turns);
    (void) xet_zt_verifier_finish(v, &report);

    xet_ok(xet_zt_verifier_work(v) <= 3 * ROOM, "not past the length");
    xet_is_u64(report.status, XET_ZT_LENGTH, "which is told");
    xet_is_u64(report.digest, XET_ZT_DIGEST_VERIFIED,
               "the digest of what is stored is");
    xet_ok(!xet_zt_report_ok(&report, XET_ZT_CONTAINER_1), "not ok");

    make(0, 0);

    xet_zt_verifier_limit(v, 5 * ROOM);
    (void) xet_zt_verifier_start(v, &region, &object, &component, &range);
    (void) take(v, sizeof(frame), &turns);
    (void) xet_zt_verifier_finish(v, &report);

    xet_ok(xet_zt_verifier_work(v) <= 5 * ROOM, "not past the limit");
    xet_is_u64(report.status, XET_ZT_VERIFY_SIZE, "which is told as well");
    xet_is_u64(report.digest, XET_ZT_DIGEST_UNCHECKED, "not checked");
    xet_ok(!xet_zt_report_ok(&report, XET_ZT_CONTAINER_1), "nor ok");

    xet_zt_verifier_limit(v, TOTAL);
    (void) xet_zt_verifier_start(v, &region, &object, &component, &range);
    (void) take(v, sizeof(frame), &turns);
    (void) xet_zt_verifier_finish(v, &report);

    xet_is_u64(report.status, XET_OK, "just the limit");
    xet_is_u64(report.digest, XET_ZT_DIGEST_VERIFIED, "is verified");

    xet_zt_verifier_destroy(v);
}


int
main(void)
{
    test_room();
    test_limit();

    return xet_done();
}
