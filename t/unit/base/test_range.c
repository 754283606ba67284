
/*
 * Tests Range headers and the range lists of signed URLs.
 */


#include "xet_test.h"
#include "xet_base.h"


#define MAX63      "9223372036854775807"
#define MAX63P1    "9223372036854775808"

#define parse(s, specs, n)                                                    \
    xet_range_parse((const uint8_t *) (s), sizeof(s) - 1, specs, n)

#define list_parse(s, ranges, n)                                              \
    xet_range_list_parse((const uint8_t *) (s), sizeof(s) - 1, ranges, n)


static void
test_parse_one(void)
{
    size_t            i, n, wrong;
    xet_range_spec_t  spec, specs[4];

    static const struct {
        const char        *value;
        xet_range_kind_t   kind;
        uint64_t           first;
        uint64_t           last;
    } good[] = {
        { "bytes=0-0", XET_RANGE_CLOSED, 0, 0 },
        { "bytes=0-255999999", XET_RANGE_CLOSED, 0, 255999999 },
        { "BYTES=5-", XET_RANGE_OPEN, 5, 0 },
        { "bYtEs=-7", XET_RANGE_SUFFIX, 7, 0 },
        { "bytes=-0", XET_RANGE_SUFFIX, 0, 0 },
        { "bytes=007-0010", XET_RANGE_CLOSED, 7, 10 },
        { "bytes=0-" MAX63, XET_RANGE_CLOSED, 0, INT64_MAX },
        { "bytes=" MAX63 "-" MAX63, XET_RANGE_CLOSED, INT64_MAX, INT64_MAX },
        { "bytes=" MAX63 "-", XET_RANGE_OPEN, INT64_MAX, 0 },
        { "bytes=-" MAX63, XET_RANGE_SUFFIX, INT64_MAX, 0 },
        { "bytes=00000000000000000000000000000001-2", XET_RANGE_CLOSED, 1, 2 },
        { "bytes=0-" MAX63P1, XET_RANGE_CLOSED, 0, INT64_MAX },
        { "bytes=0-18446744073709551616", XET_RANGE_CLOSED, 0, INT64_MAX },
        { "bytes=7-92233720368547758070", XET_RANGE_CLOSED, 7, INT64_MAX },
        { "bytes=" MAX63P1 "-", XET_RANGE_OPEN, INT64_MAX, 0 },
        { "bytes=" MAX63P1 "-" MAX63 "0", XET_RANGE_CLOSED, INT64_MAX,
          INT64_MAX },
        { "bytes=-" MAX63P1, XET_RANGE_SUFFIX, INT64_MAX, 0 },
        { "bytes=,3-4", XET_RANGE_CLOSED, 3, 4 },
        { "bytes= ,3-4", XET_RANGE_CLOSED, 3, 4 },
        { "bytes=3-4,", XET_RANGE_CLOSED, 3, 4 },
        { "bytes=,,\t, ,3-4 ,,", XET_RANGE_CLOSED, 3, 4 }
    };

    static const char *const  bad[] = {
        "", "b", "bytes", "bytes=", "byte=0-1", "bytes:0-1", "bytess=0-1",
        "bytes =0-1", "bytes= 0-1", " bytes=0-1", "bytes=0-1 ", "bytes=-",
        "bytes=--1", "bytes=1", "bytes=1-2-3", "bytes=1-2-", "bytes=2-1",
        "bytes=+1-2", "bytes=1-+2", "bytes=0x1-2", "bytes=1 -2", "bytes=1- 2",
        "bytes=1.0-2", "bytes=a-b", "bytes=0-1;2-3", "bytes=0-1 2-3",
        "bytes=,", "bytes= , ,", "bytes= ", "bytes=,-,", "bytes=,2-1",
        "bytes=" MAX63P1 "-5", "bytes=0-1\n", "\xe2ytes=0-1",
        "items=0-1", "bytes=0-1,2-1"
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        n = 1;
        memset(&spec, 0xff, sizeof(spec));

        xet_ok(xet_range_parse((const uint8_t *) good[i].value,
                               strlen(good[i].value), &spec, &n) == XET_OK
               && n == 1
               && spec.kind == good[i].kind && spec.first == good[i].first
               && (spec.kind != XET_RANGE_CLOSED
                   || spec.last == good[i].last),
               "\"%s\"", good[i].value);
    }

    wrong = 0;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        n = 4;

        if (xet_range_parse((const uint8_t *) bad[i], strlen(bad[i]), specs,
                            &n) != XET_RANGE_SYNTAX
            || n != 4)
        {
            wrong++;
            printf("# accepted: \"%s\"\n", bad[i]);
        }
    }

    xet_is_u64(wrong, 0, "malformed headers are refused, n is left alone");

    n = 1;
    xet_ok(xet_range_parse(NULL, 0, &spec, &n) == XET_RANGE_SYNTAX
           && xet_range_list_parse(NULL, 0, NULL, &n) == XET_RANGE_SYNTAX,
           "no value at all");

    n = 1;
    xet_is_u64(parse("bytes=0-1\0", &spec, &n), XET_RANGE_SYNTAX,
               "a zero byte at the end");
}


static void
test_parse_list(void)
{
    size_t            n;
    xet_range_spec_t  specs[4];

    n = 4;
    xet_is_u64(parse("bytes=0-379534,1366204-1779261", specs, &n), XET_OK,
               "two ranges");
    xet_ok(n == 2 && specs[0].first == 0 && specs[0].last == 379534
           && specs[1].first == 1366204 && specs[1].last == 1779261,
           "and their values");

    n = 4;
    xet_is_u64(parse("bytes=5-6 ,\t0-1\t , 3-,-2", specs, &n), XET_OK,
               "white space around commas, any order");
    xet_ok(n == 4 && specs[0].first == 5 && specs[1].last == 1
           && specs[2].kind == XET_RANGE_OPEN && specs[2].first == 3
           && specs[3].kind == XET_RANGE_SUFFIX && specs[3].first == 2,
           "and their values");

    n = 2;
    xet_is_u64(parse("bytes=0-0,,2-3, ,\t,", specs, &n), XET_OK,
               "empty elements need no room");
    xet_ok(n == 2 && specs[0].last == 0 && specs[1].first == 2
           && specs[1].last == 3, "and are no ranges");

    n = 4;
    xet_is_u64(parse("bytes=0-0,1-1,2-2,3-3", specs, &n), XET_OK,
               "as many as there is room");
    xet_is_u64(n, 4, "four");

    n = 4;
    xet_is_u64(parse("bytes=0-0,1-1,2-2,3-3,4-4", specs, &n),
               XET_RANGE_COUNT, "one more");
    xet_is_u64(n, 4, "n is left alone");

    n = 0;
    xet_is_u64(parse("bytes=0-0", specs, &n), XET_RANGE_COUNT,
               "no room at all");

    n = 0;
    xet_is_u64(parse("bytes=", specs, &n), XET_RANGE_SYNTAX,
               "malformed, no room");
}


static void
test_resolve(void)
{
    size_t            i;
    xet_range_t       range;
    xet_status_t      status;
    xet_range_spec_t  spec;

    static const struct {
        xet_range_kind_t  kind;
        uint64_t          first;
        uint64_t          last;
        uint64_t          size;
        uint64_t          start;
        uint64_t          end;     /* 0: beyond the end */
    } cases[] = {
        { XET_RANGE_CLOSED, 0, 0, 1, 0, 1 },
        { XET_RANGE_CLOSED, 0, 9, 10, 0, 10 },
        { XET_RANGE_CLOSED, 0, 10, 10, 0, 10 },
        { XET_RANGE_CLOSED, 9, 9, 10, 9, 10 },
        { XET_RANGE_CLOSED, 9, 8, 10, 0, 0 },
        { XET_RANGE_CLOSED, 10, 10, 10, 0, 0 },
        { XET_RANGE_CLOSED, 10, 20, 10, 0, 0 },
        { XET_RANGE_CLOSED, 0, 0, 0, 0, 0 },
        { XET_RANGE_CLOSED, 3, 7, 100, 3, 8 },
        { XET_RANGE_CLOSED, 0, INT64_MAX, 100, 0, 100 },
        { XET_RANGE_CLOSED, 0, UINT64_MAX, 100, 0, 100 },
        { XET_RANGE_CLOSED, 7, UINT64_MAX, UINT64_MAX, 7, UINT64_MAX },
        { XET_RANGE_CLOSED, 256000000, 767999999, 63527244, 0, 0 },
        { XET_RANGE_OPEN, 0, 0, 10, 0, 10 },
        { XET_RANGE_OPEN, 9, 0, 10, 9, 10 },
        { XET_RANGE_OPEN, 10, 0, 10, 0, 0 },
        { XET_RANGE_OPEN, 0, 0, 0, 0, 0 },
        { XET_RANGE_OPEN, INT64_MAX, 0, 10, 0, 0 },
        { XET_RANGE_SUFFIX, 0, 0, 10, 0, 0 },
        { XET_RANGE_SUFFIX, 1, 0, 10, 9, 10 },
        { XET_RANGE_SUFFIX, 10, 0, 10, 0, 10 },
        { XET_RANGE_SUFFIX, 11, 0, 10, 0, 10 },
        { XET_RANGE_SUFFIX, INT64_MAX, 0, 10, 0, 10 },
        { XET_RANGE_SUFFIX, 1, 0, 0, 0, 0 },
        { (xet_range_kind_t) 77, 0, 1, 10, 0, 0 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        spec.kind = cases[i].kind;
        spec.first = cases[i].first;
        spec.last = cases[i].last;

        status = xet_range_resolve(&spec, cases[i].size, &range);

        if (cases[i].end == 0) {
            xet_is_u64(status, XET_RANGE_PAST_END, "selects nothing");
            continue;
        }

        xet_ok(status == XET_OK && range.start == cases[i].start
               && range.end == cases[i].end,
               "resolves to %llu..%llu",
               (unsigned long long) cases[i].start,
               (unsigned long long) cases[i].end);
    }
}


static void
test_select(void)
{
    size_t            n;
    xet_range_t       ranges[4];
    xet_range_spec_t  specs[4];

    n = 4;
    (void) xet_range_parse((const uint8_t *) "bytes=90-99,100-,-0,-5", 22,
                           specs, &n);

    xet_is_u64(xet_range_select(specs, ranges, &n, 100), XET_OK,
               "two of four select something");
    xet_ok(n == 2 && ranges[0].start == 90 && ranges[0].end == 100
           && ranges[1].start == 95 && ranges[1].end == 100,
           "they stay in order");

    n = 4;
    xet_is_u64(xet_range_select(specs, ranges, &n, 0), XET_RANGE_PAST_END,
               "of nothing none does");
}


static void
test_list(void)
{
    size_t        i, n, wrong;
    uint8_t      *end, text[XET_RANGE_PRINT_MAX * 3];
    xet_range_t   ranges[3];

    static const char *const  bad[] = {
        "", "0", "-", "0-", "-5", "00-1", "0-01", "01-2", "2-1", "0-1,",
        ",0-1", "0-1,,2-3", "0-1, 2-3", "0-1 ,2-3", " 0-1", "0-1 ",
        "0-" MAX63P1, MAX63P1 "-" MAX63P1, "0-" MAX63 "0", "bytes=0-1",
        "0-99999999999999999999", "0-1;2-3", "0-1,2",
        "0-1,2-", "0-1,3-2", "+0-1", "0--1"
    };

    n = 3;
    xet_is_u64(list_parse("0-0,5-9,7-" MAX63, ranges, &n), XET_OK,
               "a list of three");
    xet_ok(n == 3 && ranges[0].start == 0 && ranges[0].end == 1
           && ranges[1].start == 5 && ranges[1].end == 10
           && ranges[2].start == 7
           && ranges[2].end == (uint64_t) INT64_MAX + 1,
           "with exclusive ends");

    end = xet_range_list_print(text, ranges, n);
    xet_ok(end - text == (ptrdiff_t) strlen("0-0,5-9,7-" MAX63)
           && memcmp(text, "0-0,5-9,7-" MAX63, (size_t) (end - text)) == 0,
           "prints as it was");

    n = 3;
    xet_ok(list_parse("0-0,1-1,2-2,3-3", ranges, &n) == XET_RANGE_COUNT
           && n == 3, "one too many");

    n = 0;
    xet_is_u64(list_parse("0-0", ranges, &n), XET_RANGE_COUNT, "no room");

    wrong = 0;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        n = 3;

        if (xet_range_list_parse((const uint8_t *) bad[i], strlen(bad[i]),
                                 ranges, &n) != XET_RANGE_SYNTAX
            || n != 3)
        {
            wrong++;
            printf("# accepted: \"%s\"\n", bad[i]);
        }
    }

    xet_is_u64(wrong, 0, "other spellings are refused, n is left alone");

    for (i = 0; i < 3; i++) {
        ranges[i].start = UINT64_MAX - 1;
        ranges[i].end = UINT64_MAX;
    }

    end = xet_range_list_print(text, ranges, 3);
    xet_is_u64(end - text, XET_RANGE_PRINT_MAX * 3 - 1,
               "the longest list fits its room");

    xet_ok(xet_range_list_print(text, ranges, 0) == text,
           "no ranges, no text");
}


int
main(void)
{
    test_parse_one();
    test_parse_list();
    test_resolve();
    test_select();
    test_list();

    return xet_done();
}
