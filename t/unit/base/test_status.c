
/*
 * Checks that every status has a row in the table, and tests unknown numbers.
 */


#include "xet_test.h"
#include "xet_base.h"


#define test_status_row(name, code, http, text)  { XET_##name, http },

static const struct {
    xet_status_t  status;
    unsigned      http;
} rows[] = {
    XET_STATUS_MAP(test_status_row)
};

#undef test_status_row


static void
test_rows(void)
{
    size_t    i;
    unsigned  http, complete, order, classes;

    complete = 0;
    order = 0;
    classes = 0;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        http = xet_status_http(rows[i].status);

        complete += xet_status_code(rows[i].status)[0] != '\0'
                    && xet_status_text(rows[i].status)[0] != '\0';
        order += (size_t) rows[i].status == i && http == rows[i].http;
        classes += http == 200 || (http >= 400 && http < 600);
    }

    xet_is_u64(i, XET_STATUS_MAX, "the map is the whole enum");
    xet_is_u64(complete, XET_STATUS_MAX, "each has a code and a text");
    xet_is_u64(order, XET_STATUS_MAX, "each has its own HTTP status");
    xet_is_u64(classes, XET_STATUS_MAX, "200, 4xx and 5xx only");
}


static void
test_values(void)
{
    xet_is_u64(XET_OK, 0, "ok is 0");
    xet_is_u64(XET_AGAIN, 1, "again is 1");
    xet_is_u64(XET_DONE, 2, "done is 2");

    xet_is_u64(xet_status_http(XET_OK), 200, "ok: 200");
    xet_is_u64(xet_status_http(XET_NOMEM), 500, "out of memory: 500");
    xet_is_u64(xet_status_http(XET_RANGE_PAST_END), 416, "past the end: 416");
    xet_is_u64(xet_status_http(XET_XORB_SIZE), 413, "too large: 413");
    xet_is_u64(xet_status_http(XET_SIGN_EXPIRED), 403, "expired: 403");

    xet_ok(strcmp(xet_status_code(XET_XORB_HASH), "hash_mismatch") == 0,
           "code of a wrong hash");
    xet_ok(strcmp(xet_status_text(XET_HASH_SYNTAX),
                  "a hash must be 64 hexadecimal digits") == 0,
           "text of a malformed hash");
}


static void
test_outside(void)
{
    size_t        i;
    xet_status_t  status;

    static const int  numbers[] = { XET_STATUS_MAX, XET_STATUS_MAX + 1, -1,
                                    1 << 30 };

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        status = (xet_status_t) numbers[i];

        xet_ok(xet_status_http(status) == 500
               && strcmp(xet_status_code(status), "internal_error") == 0
               && strcmp(xet_status_text(status), "internal error") == 0,
               "%d reads as internal", numbers[i]);
    }
}


int
main(void)
{
    test_rows();
    test_values();
    test_outside();

    return xet_done();
}
