
/*
 * Arguments of the zTensor routes: texts stay within their buffers, accepted
 * arguments are valid, and a name that is printed and parsed is unchanged.
 *
 * Input: a byte that selects arguments, then the part of a URL after "?".
 */


#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_ztensor.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


static void
fuzz_inside(const xet_zt_text_t *text, const uint8_t *room, size_t len)
{
    if (text->data == NULL) {
        return;
    }

    check(text->data >= room && text->data + text->len <= room + len);
}


/* Parses "name=" with every byte of the name escaped. */

static void
fuzz_again(const xet_zt_text_t *name)
{
    size_t          i, len;
    uint8_t        *args, *room, *p;
    xet_zt_query_t  q;

    static const char  digits[] = "0123456789abcdef";

    len = 5 + 3 * name->len;

    args = malloc(len);
    room = malloc(len);

    memcpy(args, "name=", 5);
    p = args + 5;

    for (i = 0; i < name->len; i++) {
        *p++ = '%';
        *p++ = (uint8_t) digits[name->data[i] >> 4];
        *p++ = (uint8_t) digits[name->data[i] & 15];
    }

    check(xet_zt_query_parse(&q, XET_ZT_ARG_NAME, args, len, room) == XET_OK);
    check(q.name.len == name->len);
    check(name->len == 0 || memcmp(q.name.data, name->data, name->len) == 0);

    free(args);
    free(room);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t           len;
    uint8_t         *args, *room;
    unsigned         wanted;
    xet_status_t     rc;
    xet_zt_query_t   q;

    if (size == 0) {
        return 0;
    }

    wanted = data[0];
    len = size - 1;

    args = malloc(len ? len : 1);
    room = malloc(len ? len : 1);
    memcpy(args, data + 1, len);

    (void) xet_accept_coding(args, len, "zstd");

    rc = xet_zt_query_parse(&q, wanted, args, len, room);

    if (rc == XET_OK) {
        fuzz_inside(&q.name, room, len);
        fuzz_inside(&q.role, room, len);
        fuzz_inside(&q.prefix, room, len);
        fuzz_inside(&q.format, room, len);

        check(q.name.data == NULL || !q.has_i);
        check(!(wanted & XET_ZT_ARG_ONE) || q.name.data || q.has_i);
        check(!q.has_rows || q.rows_open || q.rows.start <= q.rows.end);

        if (q.name.data) {
            fuzz_again(&q.name);
        }

    } else {
        check(xet_status_http(rc) == 400 || rc == XET_ZT_AXES);
    }

    free(args);
    free(room);

    return 0;
}
