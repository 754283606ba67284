
/*
 * Tests the xorb parser: the events for bodies in one piece and in several,
 * every check of a header, and the byte at which each check fails.
 */

#include "xet_test.h"
#include "xet_xorb.h"
#include "xorb_bytes.h"


typedef struct {
    xet_status_t  status;
    uint64_t      taken;
    uint32_t      chunks;
    uint64_t      payload;
    uint64_t      footer;
    unsigned      footers;
    uint32_t      sum;                 /* checksum of payload and positions */
} result_t;


/*
 * Feeds a piece of "first" bytes, then pieces of "step" bytes, to the parser.
 */

static result_t
parse(const uint8_t *data, size_t len, size_t first, size_t step,
    uint64_t size_max)
{
    size_t             i, n;
    result_t           r;
    xet_status_t       rc;
    const uint8_t     *pos, *end;
    xet_xorb_event_t   ev;
    xet_xorb_parser_t  p;

    memset(&r, 0, sizeof(r));
    xet_xorb_parser_init(&p, &xet_suite_default, size_max);

    rc = XET_AGAIN;
    pos = data;
    end = data;
    n = first;

    while (end < data + len && rc == XET_AGAIN) {

        end = (size_t) (data + len - end) < n ? data + len : end + n;
        n = step;

        while ((rc = xet_xorb_parser_next(&p, &pos, end, &ev)) == XET_OK) {
            switch (ev.type) {

            case XET_XORB_EVENT_CHUNK:
                r.chunks++;
                r.sum += p.chunk.payload_len * 3 + p.chunk.raw_len * 5
                         + p.chunk.scheme;
                break;

            case XET_XORB_EVENT_PAYLOAD:
                for (i = 0; i < ev.len; i++) {
                    r.sum += ev.data[i] * (uint32_t) ++r.payload;
                }
                break;

            case XET_XORB_EVENT_FOOTER:
                r.footers++;
                break;

            default:
                r.footer += ev.len;
            }
        }
    }

    r.status = rc == XET_AGAIN ? xet_xorb_parser_finish(&p) : rc;
    r.taken = p.taken;

    return r;
}


static int
same(const result_t *a, const result_t *b)
{
    return a->status == b->status && a->taken == b->taken
           && a->chunks == b->chunks && a->payload == b->payload
           && a->footer == b->footer && a->footers == b->footers
           && a->sum == b->sum;
}


static void
test_splits(const xorb_bytes_t *b, const char *name, xet_status_t status,
    uint64_t taken)
{
    size_t    i;
    unsigned  bad;
    result_t  whole, r;

    whole = parse(b->data, b->len, b->len, b->len, 1000);

    xet_is_u64(whole.status, status, name);
    xet_is_u64(whole.taken, taken, "  bytes of the chunk region");

    bad = 0;

    for (i = 0; i < b->len; i++) {
        r = parse(b->data, b->len, i, b->len, 1000);
        bad += !same(&r, &whole);

        r = parse(b->data, b->len, i, 1, 1000);
        bad += !same(&r, &whole);
    }

    xet_is_u64(bad, 0, "  whatever the split");
}


static void
test_body(void)
{
    result_t      r;
    xorb_bytes_t  b;

    memset(&b, 0, sizeof(b));

    xorb_bytes_chunk(&b, 0, "abc", 3, 3);
    xorb_bytes_chunk(&b, 1, "fghij", 5, 7);
    xorb_bytes_chunk(&b, 2, "XETBLOB", 7, 131072);

    r = parse(b.data, b.len, b.len, b.len, 1000);

    xet_is_u64(r.chunks, 3, "three chunks");
    xet_is_u64(r.payload, 15, "their payloads");
    xet_is_u64(r.footers, 0, "no footer");

    test_splits(&b, "a body without footer", XET_OK, 39);

    xorb_bytes_put(&b, "XETBLOB\1xyz", 11);
    r = parse(b.data, b.len, b.len, b.len, 1000);

    xet_is_u64(r.footers, 1, "one footer");
    xet_is_u64(r.footer, 4, "of four bytes");

    test_splits(&b, "a body with footer", XET_OK, 39);

    b.len -= 5;
    test_splits(&b, "a body that ends in the ident", XET_XORB_TRUNCATED, 39);

    b.len -= 5;
    test_splits(&b, "a body that ends on its X", XET_XORB_TRUNCATED, 39);

    b.len -= 2;
    test_splits(&b, "a body that ends in a payload", XET_XORB_TRUNCATED, 38);

    b.len -= 7;
    test_splits(&b, "a body that ends in a header", XET_XORB_TRUNCATED, 31);

    b.len = 0;
    r = parse(b.data, 0, 0, 1, 1000);
    xet_is_u64(r.status, XET_XORB_EMPTY, "an empty body");

    xorb_bytes_free(&b);
}


static void
test_headers(void)
{
    size_t        i;
    result_t      r;
    xorb_bytes_t  b;

    static const struct {
        unsigned      version;
        size_t        stored;
        unsigned      scheme;
        size_t        raw;
        xet_status_t  status;
        size_t        taken;           /* bytes before the faulty byte */
    } t[] = {
        { 1, 3, 0, 3, XET_XORB_VERSION, 0 },
        { 255, 3, 0, 3, XET_XORB_VERSION, 0 },
        { 'X', 3, 0, 3, XET_XORB_VERSION, 0 },
        { 0, 0, 0, 0, XET_XORB_STORED_LEN, 3 },
        { 0, 131073, 1, 131072, XET_XORB_STORED_LEN, 3 },
        { 0, 0xffffff, 1, 131072, XET_XORB_STORED_LEN, 3 },
        { 0, 131072, 1, 131072, XET_XORB_TRUNCATED, 8 },
        { 0, 131072, 0, 131072, XET_XORB_TRUNCATED, 8 },
        { 0, 1, 2, 1, XET_XORB_TRUNCATED, 8 },
        { 0, 3, XET_SCHEMES, 3, XET_XORB_SCHEME, 4 },
        { 0, 3, 99, 3, XET_XORB_SCHEME, 4 },
        { 0, 3, 255, 3, XET_XORB_SCHEME, 4 },
        { 0, 3, 1, 0, XET_XORB_RAW_LEN, 7 },
        { 0, 3, 1, 131073, XET_XORB_RAW_LEN, 7 },
        { 0, 3, 0, 131073, XET_XORB_RAW_LEN, 7 },
        { 0, 3, 0, 4, XET_XORB_DATA_LEN, 7 },
        { 0, 3, 0, 2, XET_XORB_DATA_LEN, 7 },
        { 0, 200000, 99, 200000, XET_XORB_STORED_LEN, 3 },
        { 0, 3, 99, 200000, XET_XORB_SCHEME, 4 }
    };

    memset(&b, 0, sizeof(b));

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        b.len = 0;
        xorb_bytes_header(&b, t[i].version, t[i].stored, t[i].scheme,
                          t[i].raw);

        r = parse(b.data, b.len, b.len, 1, 1 << 20);
        xet_ok(r.status == t[i].status && r.taken == t[i].taken,
               "header %u: %s at %u", (unsigned) i,
               xet_status_text(t[i].status), (unsigned) t[i].taken);

        r = parse(b.data, b.len, 1, 1, 1 << 20);
        xet_ok(r.status == t[i].status && r.taken == t[i].taken,
               "header %u byte by byte", (unsigned) i);

        if (t[i].taken < 8 && t[i].taken > 0) {
            r = parse(b.data, t[i].taken + 1, 8, 8, 1 << 20);
            xet_is_u64(r.status, t[i].status, "  as soon as it shows");

            r = parse(b.data, t[i].taken, 8, 8, 1 << 20);
            xet_is_u64(r.status, XET_XORB_TRUNCATED, "  not before");
        }
    }

    xorb_bytes_free(&b);
}


static void
test_limits(void)
{
    size_t        i;
    result_t      r;
    xorb_bytes_t  b;

    memset(&b, 0, sizeof(b));

    xorb_bytes_chunk(&b, 0, "abc", 3, 3);
    xorb_bytes_chunk(&b, 0, "de", 2, 2);

    r = parse(b.data, b.len, b.len, 1, 21);
    xet_is_u64(r.status, XET_OK, "a region of just size_max");

    r = parse(b.data, b.len, b.len, 1, 20);
    xet_is_u64(r.status, XET_XORB_SIZE, "one byte more");
    xet_is_u64(r.taken, 14, "  shows in the second header");

    r = parse(b.data, b.len, 1, 1, 20);
    xet_is_u64(r.status, XET_XORB_SIZE, "byte by byte too");

    r = parse(b.data, b.len, b.len, 1, 0);
    xet_is_u64(r.status, XET_XORB_SIZE, "size_max 0");

    r = parse(b.data, b.len, b.len, 1, UINT64_MAX);
    xet_is_u64(r.status, XET_OK, "size_max at its largest");

    b.len = 0;

    for (i = 0; i < XET_XORB_CHUNKS_MAX; i++) {
        xorb_bytes_chunk(&b, 0, "a", 1, 1);
    }

    r = parse(b.data, b.len, b.len, 1, 1 << 20);
    xet_is_u64(r.status, XET_OK, "8192 chunks");
    xet_is_u64(r.chunks, 8192, "  are counted");

    xorb_bytes_put(&b, "", 1);
    r = parse(b.data, b.len, b.len, 1, 1 << 20);
    xet_is_u64(r.status, XET_XORB_CHUNKS, "and the first byte of another");
    xet_is_u64(r.taken, 8192 * 9, "  is one too many");

    b.len--;
    xorb_bytes_put(&b, "XETBLOB", 7);
    r = parse(b.data, b.len, b.len, 1, 1 << 20);
    xet_ok(r.status == XET_OK && r.footers == 1, "a footer is not");

    xorb_bytes_free(&b);
}


static void
test_ident(void)
{
    size_t        i;
    result_t      r;
    xorb_bytes_t  b;

    memset(&b, 0, sizeof(b));

    xorb_bytes_put(&b, "XETBLOB\1", 8);

    test_splits(&b, "a footer without chunks", XET_XORB_EMPTY, 0);

    r = parse(b.data, 6, 8, 8, 1000);
    xet_is_u64(r.status, XET_XORB_TRUNCATED, "six bytes of it");

    for (i = 0; i < 7; i++) {
        b.data[i] ^= 0x20;
        r = parse(b.data, i + 1, 8, 8, 1000);
        xet_ok(r.status == XET_XORB_VERSION, "ident, byte %u wrong",
               (unsigned) i);
        b.data[i] ^= 0x20;
    }

    xorb_bytes_free(&b);
}


int
main(void)
{
    test_body();
    test_headers();
    test_limits();
    test_ident();

    return xet_done();
}
