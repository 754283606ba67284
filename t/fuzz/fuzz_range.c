
/*
 * Ranges: a value that one of the two parsers accepts can be printed and parsed
 * to the same ranges; resolved ranges are in bounds for any size.
 *
 * Input: 8 bytes with the size, a byte with the capacity; the rest is the text,
 * which both parsers get.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_base.h"


#define ROOM_MAX    16

#define check(cond)  if (!(cond)) { __builtin_trap(); }


static void
fuzz_resolve(const xet_range_spec_t *spec, uint64_t size)
{
    uint64_t      want;
    xet_range_t   range;
    xet_status_t  status;

    status = xet_range_resolve(spec, size, &range);

    if (status != XET_OK) {
        check(status == XET_RANGE_PAST_END);
        check(spec->kind == XET_RANGE_SUFFIX
              ? spec->first == 0 || size == 0 : spec->first >= size);
        return;
    }

    check(range.start < range.end && range.end <= size);

    switch (spec->kind) {

    case XET_RANGE_CLOSED:
        check(range.start == spec->first);
        check(range.end - 1 <= spec->last);
        check(range.end == size || range.end - 1 == spec->last);
        break;

    case XET_RANGE_OPEN:
        check(range.start == spec->first && range.end == size);
        break;

    case XET_RANGE_SUFFIX:
        want = (spec->first < size) ? spec->first : size;
        check(range.end == size && range.end - range.start == want);
        break;

    default:
        check(0);
    }
}


/* Prints the specs in the form of a Range header. */

static size_t
fuzz_print(uint8_t *text, const xet_range_spec_t *specs, size_t n)
{
    size_t    i;
    uint8_t  *p;

    memcpy(text, "bytes=", 6);
    p = text + 6;

    for (i = 0; i < n; i++) {

        if (i) {
            *p++ = ',';
        }

        if (specs[i].kind != XET_RANGE_SUFFIX) {
            p = xet_put_decimal(p, specs[i].first);
        }

        *p++ = '-';

        if (specs[i].kind != XET_RANGE_OPEN) {
            p = xet_put_decimal(p, specs[i].kind == XET_RANGE_SUFFIX
                                   ? specs[i].first : specs[i].last);
        }
    }

    return (size_t) (p - text);
}


static void
fuzz_header(const uint8_t *text, size_t len, size_t room, uint64_t size)
{
    size_t             i, n, again;
    uint8_t            buf[6 + XET_RANGE_PRINT_MAX * ROOM_MAX];
    xet_status_t       status;
    xet_range_spec_t  *specs, other[ROOM_MAX];

    /* a block of exactly this size, so that ASan detects accesses past it */

    specs = malloc(room * sizeof(xet_range_spec_t) + 1);
    check(specs != NULL);

    n = room;
    status = xet_range_parse(text, len, specs, &n);

    if (status != XET_OK) {
        check(status == XET_RANGE_SYNTAX || status == XET_RANGE_COUNT);
        check(n == room);
        free(specs);
        return;
    }

    check(n >= 1 && n <= room);

    again = ROOM_MAX;
    check(xet_range_parse(buf, fuzz_print(buf, specs, n), other, &again)
          == XET_OK);
    check(again == n);

    for (i = 0; i < n; i++) {
        check(specs[i].kind == other[i].kind);
        check(specs[i].first == other[i].first);
        check(specs[i].first <= INT64_MAX);

        if (specs[i].kind == XET_RANGE_CLOSED) {
            check(specs[i].last == other[i].last);
            check(specs[i].last <= INT64_MAX);
            check(specs[i].first <= specs[i].last);
        }

        fuzz_resolve(&specs[i], size);
        fuzz_resolve(&specs[i], specs[i].first);
        fuzz_resolve(&specs[i], specs[i].first + 1);
        fuzz_resolve(&specs[i], specs[i].last + 1);
    }

    free(specs);
}


static void
fuzz_list(const uint8_t *text, size_t len, size_t room)
{
    size_t         i, n;
    uint8_t        buf[XET_RANGE_PRINT_MAX * ROOM_MAX], *end;
    xet_range_t   *ranges;
    xet_status_t   status;

    ranges = malloc(room * sizeof(xet_range_t) + 1);
    check(ranges != NULL);

    n = room;
    status = xet_range_list_parse(text, len, ranges, &n);

    if (status != XET_OK) {
        check(status == XET_RANGE_SYNTAX || status == XET_RANGE_COUNT);
        check(n == room);
        free(ranges);
        return;
    }

    check(n >= 1 && n <= room);

    for (i = 0; i < n; i++) {
        check(ranges[i].start < ranges[i].end);
    }

    /* an accepted list is in canonical form, so the bytes are the same */

    end = xet_range_list_print(buf, ranges, n);

    check((size_t) (end - buf) == len && memcmp(buf, text, len) == 0);

    free(ranges);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t             room;
    uint64_t           length;
    xet_range_spec_t   spec;

    if (size < 9) {
        return 0;
    }

    length = xet_get_u64(data);
    room = data[8] % (ROOM_MAX + 1);

    fuzz_header(data + 9, size - 9, room, length);
    fuzz_list(data + 9, size - 9, room);

    /* a spec that neither parser would return */

    if (size >= 9 + 17) {
        spec.kind = (xet_range_kind_t) (data[9] % 3);
        spec.first = xet_get_u64(data + 10);
        spec.last = xet_get_u64(data + 18);

        if (spec.kind != XET_RANGE_CLOSED || spec.first <= spec.last) {
            fuzz_resolve(&spec, length);
        }
    }

    return 0;
}
