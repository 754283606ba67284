
/*
 * Tests URL arguments: each argument, escapes, unsupported arguments, and
 * numbers.
 */


#include "xet_test.h"
#include "xet_ztensor.h"


#define ALL    (XET_ZT_ARG_NAME|XET_ZT_ARG_ROLE|XET_ZT_ARG_FORM               \
                |XET_ZT_ARG_ROWS|XET_ZT_ARG_PAGE)
#define ONE    (XET_ZT_ARG_NAME|XET_ZT_ARG_ONE|XET_ZT_ARG_ROLE)


static uint8_t         room[4096];
static xet_zt_query_t  q;


/* Parses a block of the exact size, so that ASan detects a read past it. */

static xet_status_t
parse(unsigned wanted, const char *args)
{
    size_t         len;
    uint8_t       *data;
    xet_status_t   rc;

    len = strlen(args);
    data = malloc(len ? len : 1);
    memcpy(data, args, len);

    rc = xet_zt_query_parse(&q, wanted, data, len, room);

    free(data);

    return rc;
}


static int
is(const xet_zt_text_t *text, const char *s, size_t len)
{
    return text->data != NULL && text->len == len
           && memcmp(text->data, s, len) == 0;
}


static void
test_texts(void)
{
    xet_ok(parse(ALL, "") == XET_OK && q.name.data == NULL && !q.has_i
           && !q.has_after && !q.has_limit && !q.has_rows && !q.decoded,
           "nothing at all");

    xet_ok(parse(ONE, "name=a%2Fb&role=scales") == XET_OK
           && is(&q.name, "a/b", 3) && is(&q.role, "scales", 6),
           "a name with an escape, a role");

    xet_ok(parse(ONE, "name=") == XET_OK && is(&q.name, "", 0),
           "the empty name is a name");

    xet_ok(parse(ONE, "name=a%00b") == XET_OK && is(&q.name, "a\0b", 3),
           "a zero byte");

    xet_ok(parse(ONE, "name=a+b=c") == XET_OK && is(&q.name, "a+b=c", 5),
           "neither + nor a second = is special");

    xet_ok(parse(ONE, "name=%c3%BC%25") == XET_OK
           && is(&q.name, "\xc3\xbc%", 3), "both cases of digits");

    xet_ok(parse(ALL, "prefix=%2e%2E/&format=dense") == XET_OK
           && is(&q.prefix, "../", 3) && is(&q.format, "dense", 5),
           "prefix and format");
}


static void
test_numbers(void)
{
    xet_ok(parse(ONE, "i=0") == XET_OK && q.has_i && q.i == 0, "i=0");

    xet_ok(parse(ALL, "after=18446744073709551615&limit=7") == XET_OK
           && q.after == UINT64_MAX && q.limit == 7, "the largest number");

    xet_ok(parse(ALL, "rows=2:9") == XET_OK && q.has_rows && !q.rows_open
           && q.rows.start == 2 && q.rows.end == 9, "rows=2:9");
    xet_ok(parse(ALL, "rows=2:") == XET_OK && q.rows_open
           && q.rows.start == 2, "rows=2:");
    xet_ok(parse(ALL, "rows=:9") == XET_OK && !q.rows_open
           && q.rows.start == 0 && q.rows.end == 9, "rows=:9");
    xet_ok(parse(ALL, "rows=3%3A3") == XET_OK && q.rows.start == 3
           && q.rows.end == 3, "no rows, and an escaped colon");

    xet_ok(parse(ALL, "form=decoded") == XET_OK && q.decoded, "decoded");
    xet_ok(parse(ALL, "form=stored") == XET_OK && !q.decoded, "stored");
}


static void
test_errors(void)
{
    size_t  i;

    static const struct {
        unsigned      wanted;
        const char   *args;
        xet_status_t  status;
    } cases[] = {
        { ONE, "", XET_ZT_QUERY_NONE },
        { ONE, "role=data", XET_ZT_QUERY_NONE },
        { XET_ZT_ARG_NAME|XET_ZT_ARG_ROLE, "role=data", XET_ZT_QUERY_NONE },
        { ONE, "name=a&i=0", XET_ZT_QUERY_BOTH },
        { ONE, "name=&i=0", XET_ZT_QUERY_BOTH },
        { ONE, "name=a&name=a", XET_ZT_QUERY_KEY },
        { ONE, "i=0&i=0", XET_ZT_QUERY_KEY },
        { ONE, "name", XET_ZT_QUERY_KEY },
        { ONE, "&name=a", XET_ZT_QUERY_KEY },
        { ONE, "name=a&", XET_ZT_QUERY_KEY },
        { ONE, "=a", XET_ZT_QUERY_KEY },
        { ONE, "Name=a", XET_ZT_QUERY_KEY },
        { ONE, "nam=a", XET_ZT_QUERY_KEY },
        { ONE, "names=a", XET_ZT_QUERY_KEY },
        { ONE, "n%61me=a", XET_ZT_QUERY_KEY },
        { ONE, "i=0&rows=0:1", XET_ZT_QUERY_KEY },
        { ONE, "i=0&limit=1", XET_ZT_QUERY_KEY },
        { XET_ZT_ARG_PAGE, "i=0", XET_ZT_QUERY_KEY },
        { ONE, "name=%", XET_ZT_QUERY_ESCAPE },
        { ONE, "name=%4", XET_ZT_QUERY_ESCAPE },
        { ONE, "name=%4&role=1", XET_ZT_QUERY_ESCAPE },
        { ONE, "name=%4g", XET_ZT_QUERY_ESCAPE },
        { ONE, "name=%/0", XET_ZT_QUERY_ESCAPE },
        { ONE, "name=%0:", XET_ZT_QUERY_ESCAPE },
        { ONE, "name=a&role=%zz", XET_ZT_QUERY_ESCAPE },
        { ONE, "i=", XET_ZT_QUERY },
        { ONE, "i=-1", XET_ZT_QUERY },
        { ONE, "i=1x", XET_ZT_QUERY },
        { ONE, "i=18446744073709551616", XET_ZT_QUERY },
        { ONE, "i=99999999999999999999", XET_ZT_QUERY },
        { ALL, "after=", XET_ZT_QUERY },
        { ALL, "limit=0x10", XET_ZT_QUERY },
        { ALL, "form=", XET_ZT_QUERY },
        { ALL, "form=raw", XET_ZT_QUERY },
        { ALL, "rows=", XET_ZT_QUERY },
        { ALL, "rows=5", XET_ZT_QUERY },
        { ALL, "rows=5:4", XET_ZT_QUERY },
        { ALL, "rows=a:4", XET_ZT_QUERY },
        { ALL, "rows=1:2:3", XET_ZT_QUERY },
        { ALL, "rows=0:18446744073709551616", XET_ZT_QUERY },
        { ALL, "rows=0:1,0:2", XET_ZT_AXES },
        { ALL, "rows=0:,0:2", XET_ZT_AXES },
        { ALL, "rows=:", XET_ZT_QUERY },
        { ALL, "rows=,", XET_ZT_QUERY },
        { ALL, "rows=:,0:2", XET_ZT_QUERY }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        xet_is_u64(parse(cases[i].wanted, cases[i].args), cases[i].status,
                   cases[i].args);
    }
}


int
main(void)
{
    test_texts();
    test_numbers();
    test_errors();

    return xet_done();
}
