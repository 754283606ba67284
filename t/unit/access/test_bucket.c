
/*
 * Tests leaky buckets that count bytes.
 */


#include "xet_test.h"
#include "xet_access.h"


#define DAY  ((uint64_t) 86400000)


static void
test_fill(void)
{
    xet_bucket_t  b;

    static const xet_bucket_rate_t  rate = { 1000, 10000 };

    memset(&b, 0, sizeof(b));

    xet_is_u64(xet_bucket_put(&b, &rate, 5000000, 1000), 0, "a bucketful");
    xet_is_u64(b.level, 1000, "is in");

    xet_is_u64(xet_bucket_put(&b, &rate, 5000000, 0), 0, "nothing fits");
    xet_is_u64(xet_bucket_put(&b, &rate, 5000000, 100), 1001,
               "more must wait until it has leaked");
    xet_is_u64(b.level, 1000, "and was not put in");

    xet_is_u64(xet_bucket_put(&b, &rate, 5000999, 100), 2, "nearly");
    xet_is_u64(xet_bucket_put(&b, &rate, 5001001, 100), 0, "then it fits");

    xet_bucket_leak(&b, &rate, 5006001);
    xet_is_u64(b.level + 0.5, 500, "half a period, half a bucket");

    xet_bucket_leak(&b, &rate, 5000000);
    xet_is_u64(b.level + 0.5, 500, "an earlier time leaks nothing");
    xet_is_u64(b.time, 5006001, "and does not turn the clock back");

    xet_bucket_leak(&b, &rate, 9000000);
    xet_is_u64(b.level, 0, "all has leaked, and no more than all");
}


static void
test_large(void)
{
    xet_bucket_t  b;

    static const xet_bucket_rate_t  rate = { 1000, 10000 };

    memset(&b, 0, sizeof(b));

    xet_is_u64(xet_bucket_put(&b, &rate, 1, 5000), 0,
               "more than a bucketful fits into an empty one");
    xet_is_u64(xet_bucket_put(&b, &rate, 1, 5000), 50001,
               "and the next when it is empty again");
    xet_is_u64(xet_bucket_put(&b, &rate, 1, 1), 40011, "or less before");
    xet_is_u64(xet_bucket_put(&b, &rate, 50001, 5000), 0, "as it was told");
}


static void
test_correct(void)
{
    xet_bucket_t  b;

    static const xet_bucket_rate_t  rate = { 1000, 10000 };

    memset(&b, 0, sizeof(b));

    (void) xet_bucket_put(&b, &rate, 1, 800);

    xet_bucket_correct(&b, 800, 300);
    xet_is_u64(b.level, 300, "less than was announced");

    xet_bucket_correct(&b, 0, 2000);
    xet_is_u64(b.level, 2300, "more than was announced");

    xet_bucket_correct(&b, 5000, 0);
    xet_is_u64(b.level, 0, "never negative");
}


static void
test_extremes(void)
{
    uint64_t      i, now, wait;
    xet_bucket_t  b;

    static const xet_bucket_rate_t  slow = { 1, 31 * DAY };
    static const xet_bucket_rate_t  fast = { (uint64_t) 1 << 53, 1 };
    static const xet_bucket_rate_t  rate = { 1000, 31 * DAY };

    memset(&b, 0, sizeof(b));

    xet_is_u64(xet_bucket_put(&b, &slow, 0, UINT64_MAX), 0, "2^64 bytes");

    wait = xet_bucket_put(&b, &slow, UINT64_MAX, UINT64_MAX);

    xet_is_u64(wait, (uint64_t) 1 << 53, "a wait has a bound");

    memset(&b, 0, sizeof(b));

    xet_is_u64(xet_bucket_put(&b, &fast, 1, (uint64_t) 1 << 53), 0, "2^53");
    xet_is_u64(xet_bucket_put(&b, &fast, 2, (uint64_t) 1 << 53), 0,
               "leaked in a millisecond");

    /*
     * frequent requests leak as much as rare ones: no fraction is rounded away
     */

    memset(&b, 0, sizeof(b));

    now = 1;
    (void) xet_bucket_put(&b, &rate, now, 1000);

    for (i = 0; i < 100000; i++) {
        now += DAY / 100000;
        (void) xet_bucket_put(&b, &rate, now, 1000);
    }

    xet_ok(b.level > 967.7 && b.level < 967.8, "fractions of bytes leak, too");
}


int
main(void)
{
    test_fill();
    test_large();
    test_correct();
    test_extremes();

    return xet_done();
}
