
/*
 * Byte ranges: the Range header, and the range list of signed URLs.
 *
 * Purpose:    parses headers, parses and prints the lists of signed URLs in
 *             their only valid form, and resolves a spec for a file size.
 * States:     none; a parser is one pass from left to right.
 * Ownership:  the caller's arrays are filled; on an error their contents are
 *             undefined and *n is unchanged.
 * Threads:    any.
 *
 * Parsed numbers are at most 2^63 - 1 (the maximum of off_t), so last + 1
 * never wraps.  A spec that other code has created may have any numbers:
 * xet_range_resolve() relies neither on that bound nor on first <= last.
 */


#include "xet_base.h"


#define XET_RANGE_NUMBER_MAX  ((uint64_t) INT64_MAX)


/*
 * Parses a number of at least one digit.  A number over the limit is read as
 * the limit, which is past the end of any file.  Returns the position after
 * the last digit, or NULL.
 */

static const uint8_t *
xet_range_number(const uint8_t *p, const uint8_t *end, uint64_t *number)
{
    uint64_t        v;
    unsigned        digit;
    const uint8_t  *start;

    v = 0;

    for (start = p; p < end && *p >= '0' && *p <= '9'; p++) {
        digit = *p - '0';

        if (v >= XET_RANGE_NUMBER_MAX / 10
            && (v > XET_RANGE_NUMBER_MAX / 10
                || digit > XET_RANGE_NUMBER_MAX % 10))
        {
            v = XET_RANGE_NUMBER_MAX;
            continue;
        }

        v = v * 10 + digit;
    }

    if (p == start) {
        return NULL;
    }

    *number = v;

    return p;
}


/* Parses first-last, first- or -length; returns the end or NULL. */

static const uint8_t *
xet_range_spec(const uint8_t *p, const uint8_t *end, xet_range_spec_t *spec)
{
    spec->last = 0;

    if (p < end && *p == '-') {
        spec->kind = XET_RANGE_SUFFIX;
        return xet_range_number(p + 1, end, &spec->first);
    }

    p = xet_range_number(p, end, &spec->first);

    if (p == NULL || p == end || *p != '-') {
        return NULL;
    }

    p++;

    if (p == end || *p < '0' || *p > '9') {
        spec->kind = XET_RANGE_OPEN;
        return p;
    }

    spec->kind = XET_RANGE_CLOSED;

    p = xet_range_number(p, end, &spec->last);

    if (p == NULL || spec->first > spec->last) {
        return NULL;
    }

    return p;
}


/* Returns the position after the range unit and its equals sign, or NULL. */

static const uint8_t *
xet_range_unit(const uint8_t *p, const uint8_t *end)
{
    size_t             i;

    static const char  unit[] = "bytes";

    if ((size_t) (end - p) < sizeof(unit)) {
        return NULL;
    }

    for (i = 0; i < sizeof(unit) - 1; i++) {
        if ((p[i] | 0x20) != (uint8_t) unit[i]) {
            return NULL;
        }
    }

    return (p[i] == '=') ? p + i + 1 : NULL;
}


xet_status_t
xet_range_parse(const uint8_t *value, size_t len, xet_range_spec_t *specs,
    size_t *n)
{
    size_t             count;
    const uint8_t     *p, *end;
    xet_range_spec_t   spec;

    if (len == 0) {
        return XET_RANGE_SYNTAX;
    }

    end = value + len;

    p = xet_range_unit(value, end);
    if (p == NULL) {
        return XET_RANGE_SYNTAX;
    }

    count = 0;

    for ( ;; ) {

        /* elements of the list may be empty */

        if (p < end && *p != ',' && *p != ' ' && *p != '\t') {

            p = xet_range_spec(p, end, &spec);
            if (p == NULL) {
                return XET_RANGE_SYNTAX;
            }

            if (count == *n) {
                return XET_RANGE_COUNT;
            }

            specs[count++] = spec;
        }

        if (p == end) {
            break;
        }

        p = xet_skip_blanks(p, end);

        if (p == end || *p != ',') {
            return XET_RANGE_SYNTAX;
        }

        p = xet_skip_blanks(p + 1, end);
    }

    if (count == 0) {
        return XET_RANGE_SYNTAX;
    }

    *n = count;

    return XET_OK;
}


xet_status_t
xet_range_resolve(const xet_range_spec_t *spec, uint64_t size,
    xet_range_t *range)
{
    uint64_t  start, end;

    start = spec->first;
    end = size;

    switch (spec->kind) {

    case XET_RANGE_CLOSED:

        if (spec->last < size) {
            end = spec->last + 1;
        }

        break;

    case XET_RANGE_OPEN:
        break;

    case XET_RANGE_SUFFIX:
        start = (spec->first < size) ? size - spec->first : 0;
        break;

    default:
        return XET_RANGE_PAST_END;
    }

    if (start >= end) {
        return XET_RANGE_PAST_END;
    }

    range->start = start;
    range->end = end;

    return XET_OK;
}


xet_status_t
xet_range_select(const xet_range_spec_t *specs, xet_range_t *ranges,
    size_t *n, uint64_t size)
{
    size_t  i, k;

    for (i = 0, k = 0; i < *n; i++) {
        if (xet_range_resolve(&specs[i], size, &ranges[k]) == XET_OK) {
            k++;
        }
    }

    if (k == 0) {
        return XET_RANGE_PAST_END;
    }

    *n = k;

    return XET_OK;
}


/*
 * Parses a number within the limit and without leading zeros.  Returns the
 * position after the last digit, or NULL.
 */

static const uint8_t *
xet_range_list_number(const uint8_t *p, const uint8_t *end, uint64_t *number)
{
    uint64_t        v;
    const uint8_t  *start;

    v = 0;

    for (start = p; p < end && *p >= '0' && *p <= '9'; p++) {
        v = v * 10 + (uint64_t) (*p - '0');
    }

    /* 19 digits have less than 64 bits */

    if (p == start || p - start > 19 || (p - start > 1 && *start == '0')
        || v > XET_RANGE_NUMBER_MAX)
    {
        return NULL;
    }

    *number = v;

    return p;
}


xet_status_t
xet_range_list_parse(const uint8_t *list, size_t len, xet_range_t *ranges,
    size_t *n)
{
    size_t          count;
    uint64_t        first, last;
    const uint8_t  *p, *end;

    if (len == 0) {
        return XET_RANGE_SYNTAX;
    }

    p = list;
    end = list + len;

    for (count = 0; /* void */ ; count++) {

        p = xet_range_list_number(p, end, &first);

        if (p == NULL || p == end || *p != '-') {
            return XET_RANGE_SYNTAX;
        }

        p = xet_range_list_number(p + 1, end, &last);

        if (p == NULL || first > last) {
            return XET_RANGE_SYNTAX;
        }

        if (count == *n) {
            return XET_RANGE_COUNT;
        }

        ranges[count].start = first;
        ranges[count].end = last + 1;

        if (p == end) {
            *n = count + 1;
            return XET_OK;
        }

        if (*p++ != ',') {
            return XET_RANGE_SYNTAX;
        }
    }
}


uint8_t *
xet_range_list_print(uint8_t *dst, const xet_range_t *ranges, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {

        if (i) {
            *dst++ = ',';
        }

        dst = xet_put_decimal(dst, ranges[i].start);
        *dst++ = '-';
        dst = xet_put_decimal(dst, ranges[i].end - 1);
    }

    return dst;
}
