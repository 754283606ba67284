
/*
 * Makes terms, and URLs for their ranges, for the plan tests.
 */

#ifndef _XET_TEST_PLAN_H_INCLUDED_
#define _XET_TEST_PLAN_H_INCLUDED_


#include "xet_test_pool.h"
#include "xet_plan.h"


/* Counts the URLs that are written for a body. */

typedef struct {
    unsigned      calls;
    unsigned      fail;            /* number of the call that fails, from 1 */
    size_t        ranges_max;
    size_t        text_max;        /* longest list of ranges */
} test_url_t;


/* Returns the copy id of a xorb. */

static inline uint32_t
xet_test_copy_id(const xet_hash_t *xorb)
{
    return 0xf0000000 + xorb->bytes[0];
}


/*
 * Makes a term whose chunks have 100 raw and 50 stored bytes; the first chunk
 * starts at base.  Every byte of the xorb's hash is xorb.  Returns the term's
 * raw size.
 */

static inline uint32_t
xet_test_term(uint8_t *packed, unsigned xorb, uint32_t base, uint32_t start,
    uint32_t end)
{
    xet_term_t  t;

    memset(t.xorb.bytes, (int) xorb, XET_HASH_LEN);

    t.chunk_start = start;
    t.chunk_end = end;
    t.stored_start = base + start * 50;
    t.stored_end = base + end * 50;
    t.raw_length = (end - start) * 100;
    t.copy_id = xet_test_copy_id(&t.xorb);

    xet_term_pack(packed, &t);

    return t.raw_length;
}


/* Writes ranges as text, for example "0-49,100-149"; returns its length. */

static inline size_t
xet_test_ranges(xet_buf_t *b, const xet_plan_range_t *ranges, size_t n)
{
    int     len;
    char    text[64];
    size_t  i, total;

    total = 0;

    for (i = 0; i < n; i++) {
        len = snprintf(text, sizeof(text), "%s%u-%u", i ? "," : "",
                       ranges[i].stored_start, ranges[i].stored_end - 1);

        xet_buf_write(b, text, (size_t) len);
        total += (size_t) len;
    }

    return total;
}


/* Writes a URL with ranges and counts it; returns 0 if this call must fail. */

static inline int
xet_test_url(test_url_t *url, xet_buf_t *b, const char *before,
    const xet_plan_range_t *ranges, size_t n)
{
    size_t  len;

    url->calls++;

    if (url->calls == url->fail) {
        return 0;
    }

    xet_buf_write(b, before, strlen(before));
    len = xet_test_ranges(b, ranges, n);

    url->ranges_max = (n > url->ranges_max) ? n : url->ranges_max;
    url->text_max = (len > url->text_max) ? len : url->text_max;

    return 1;
}


/* Writes a whole response body of this kind in one piece. */

static inline xet_status_t
xet_test_plan_json(const xet_plan_t *p, xet_plan_kind_t kind, xet_buf_t *b,
    xet_plan_url_pt url, void *ctx, size_t group)
{
    xet_plan_writer_t  w;

    xet_plan_writer_init(&w, p, kind, url, ctx, group);

    return xet_plan_writer_next(&w, b, SIZE_MAX);
}


#endif /* _XET_TEST_PLAN_H_INCLUDED_ */
