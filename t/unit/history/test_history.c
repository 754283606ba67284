
/*
 * Tests the history of a server: when a sample is due, which samples become
 * points of a plot, a full ring, gaps, and jumps of the clock.
 */


#include "xet_test.h"
#include "xet_history.h"


#define TEST_MINUTE  60000ull
#define TEST_START   (1700000000000ull / TEST_MINUTE * TEST_MINUTE)


static xet_history_t         h;
static xet_history_sample_t  points[XET_HISTORY_POINTS];


/* Adds a sample; "requests" tells the samples apart. */

static void
test_add(uint64_t time, uint64_t requests)
{
    xet_history_sample_t  s;

    memset(&s, 0, sizeof(s));
    s.time = time;
    s.requests[0] = requests;
    xet_history_add(&h, &s);
}


static size_t
test_points(uint64_t time, uint64_t requests)
{
    xet_history_sample_t  now;

    memset(&now, 0, sizeof(now));
    memset(points, 0xff, sizeof(points));
    now.time = time;
    now.requests[0] = requests;

    return xet_history_points(&h, &now, points);
}


static void
test_due(void)
{
    memset(&h, 0, sizeof(h));
    xet_ok(xet_history_due(&h, 0), "an empty history: due at once");
    xet_is_u64(test_points(TEST_START, 7), 1, "an empty history: one point");
    xet_is_u64(points[0].requests[0], 7, "an empty history: now");

    test_add(TEST_START + 100, 0);
    xet_ok(!xet_history_due(&h, TEST_START + 100), "not twice");
    xet_ok(!xet_history_due(&h, TEST_START + TEST_MINUTE - 1), "same minute");
    xet_ok(xet_history_due(&h, TEST_START + TEST_MINUTE), "the next minute");
    xet_ok(xet_history_due(&h, TEST_START - 1), "the clock was set back");
}


/* Two days with a request a minute. */

static void
test_full(void)
{
    size_t    i, n, wide;
    uint64_t  k, now;

    memset(&h, 0, sizeof(h));

    for (k = 0; k < 2880; k++) {
        test_add(TEST_START + k * TEST_MINUTE, k);
    }

    now = TEST_START + 2879 * TEST_MINUTE + 1;
    n = test_points(now, 2880);

    xet_ok(n > 330 && n < XET_HISTORY_POINTS, "full: the number of points");
    xet_is_u64(points[n - 1].requests[0], 2880, "full: the last is now");
    xet_is_u64(points[n - 2].requests[0], 2879, "full: the last sample");
    xet_ok(points[0].time >= now - 86400000, "full: none is older than a day");
    xet_ok(points[0].time < now - 86400000 + 5 * TEST_MINUTE,
           "full: the first is a day old");

    wide = 0;

    for (i = 1; i < n; i++) {
        wide += points[i].time - points[i - 1].time > 5 * TEST_MINUTE
                || points[i].time <= points[i - 1].time;
    }

    xet_is_u64(wide, 0, "full: no gap, and in order");

    for (i = n - 60; i < n - 1; i++) {
        wide += points[i].time - points[i - 1].time != TEST_MINUTE;
    }

    xet_is_u64(wide, 0, "full: the last hour by minutes");

    xet_is_u64(xet_history_since(&h, now, 10 * TEST_MINUTE)->requests[0], 2870,
               "full: ten minutes ago");
    xet_is_u64(xet_history_since(&h, now, 5000 * TEST_MINUTE)->requests[0],
               1440, "full: the oldest sample");
    xet_ok(xet_history_since(&h, now, 0) == NULL, "full: none that is newer");
}


static void
test_gap(void)
{
    size_t  n;

    memset(&h, 0, sizeof(h));
    test_add(TEST_START, 1);
    test_add(TEST_START + 600 * TEST_MINUTE, 5);

    n = test_points(TEST_START + 601 * TEST_MINUTE, 6);
    xet_is_u64(n, 3, "a gap: points on both sides");
    xet_is_u64(points[0].requests[0], 1, "a gap: before");
    xet_is_u64(points[1].requests[0], 5, "a gap: after");

    n = test_points(TEST_START + 3000 * TEST_MINUTE, 6);
    xet_is_u64(n, 1, "a long gap: only now");
}


static void
test_clock(void)
{
    size_t  n;

    memset(&h, 0, sizeof(h));
    test_add(TEST_START, 1);
    test_add(TEST_START + 90 * 1440 * TEST_MINUTE, 2);
    test_add(TEST_START + TEST_MINUTE, 3);

    n = test_points(TEST_START + 2 * TEST_MINUTE, 4);
    xet_is_u64(n, 3, "set ahead and back: the future is skipped");
    xet_is_u64(points[0].requests[0], 1, "set ahead and back: the first");
    xet_is_u64(points[1].requests[0], 3, "set ahead and back: the second");
    xet_is_u64(xet_history_since(&h, TEST_START + 2 * TEST_MINUTE,
                                 90 * 60000)->requests[0],
               1, "set ahead and back: the oldest sample");

    n = test_points(TEST_START, 4);
    xet_is_u64(n, 1, "set back: older samples than now only");
}


int
main(void)
{
    test_due();
    test_full();
    test_gap();
    test_clock();

    return xet_done();
}
