
/*
 * Tests the CBOR decoder: items from RFC 8949, appendix A; ill-formed input;
 * limits; and pieces of any size, which must give the same items.
 */


#include "xet_test.h"
#include "xet_zt.h"


#define TEXT_MAX  4096


typedef struct {
    char    text[TEXT_MAX];
    size_t  len;
    int     space;
} dump_t;


static void
dump(dump_t *d, const char *s, size_t len)
{
    if (len > TEXT_MAX - 1 - d->len) {
        len = TEXT_MAX - 1 - d->len;
    }

    if (len) {
        memcpy(d->text + d->len, s, len);
        d->len += len;
    }

    d->text[d->len] = '\0';
}


#define dump_print(d, ...)                                                    \
    do {                                                                      \
        char  line_[128];                                                     \
        int   n_ = snprintf(line_, sizeof(line_), __VA_ARGS__);               \
        dump(d, line_, (size_t) n_);                                          \
    } while (0)


static void
dump_item(dump_t *d, const xet_cbor_item_t *item)
{
    if (item->kind != XET_CBOR_DATA) {

        if (d->len && item->kind != XET_CBOR_END) {
            dump(d, " ", 1);
        }

        if (item->tags) {
            dump_print(d, "%ux%llu:", item->tags,
                       (unsigned long long) item->tag);
        }

        if (item->key) {
            dump(d, "/", 1);
        }
    }

    switch (item->kind) {

    case XET_CBOR_UINT:
        dump_print(d, "%llu", (unsigned long long) item->value);
        break;

    case XET_CBOR_NINT:
        dump_print(d, "-1-%llu", (unsigned long long) item->value);
        break;

    case XET_CBOR_BYTES:
    case XET_CBOR_TEXT:
        dump(d, item->kind == XET_CBOR_TEXT ? "\"" : "h\"",
             item->kind == XET_CBOR_TEXT ? 1 : 2);
        /* fall through */

    case XET_CBOR_DATA:
        dump(d, (const char *) item->data, item->len);

        if (!item->more) {
            dump(d, "\"", 1);
        }

        break;

    case XET_CBOR_ARRAY:
        dump(d, item->indefinite ? "[_" : "[", item->indefinite ? 2 : 1);
        break;

    case XET_CBOR_MAP:
        dump(d, item->indefinite ? "{_" : "{", item->indefinite ? 2 : 1);
        break;

    case XET_CBOR_END:
        dump(d, item->value == XET_CBOR_MAP ? " }" : " ]", 2);
        break;

    case XET_CBOR_FLOAT:
        dump_print(d, "%.17g_%u", xet_cbor_float(item), item->width);
        break;

    default: /* XET_CBOR_SIMPLE */
        dump_print(d, "s%llu", (unsigned long long) item->value);
    }
}


static xet_status_t
decode(const uint8_t *data, size_t len, size_t step, unsigned limit,
    unsigned flags, dump_t *d, uint64_t *pos)
{
    size_t           n, at;
    uint8_t         *piece;
    xet_cbor_t       c;
    xet_status_t     rc;
    xet_cbor_item_t  item;

    d->len = 0;
    d->text[0] = '\0';

    piece = malloc(step);
    at = 0;

    xet_cbor_init(&c, len, limit, flags);

    for ( ;; ) {
        rc = xet_cbor_next(&c, &item);

        if (rc == XET_OK) {
            dump_item(d, &item);
            continue;
        }

        if (rc != XET_AGAIN || at == len) {
            break;
        }

        n = (len - at < step) ? len - at : step;
        memcpy(piece, data + at, n);
        at += n;

        xet_cbor_feed(&c, piece, n);
    }

    free(piece);

    *pos = c.head_pos;

    return rc;
}


static size_t
unhex(uint8_t *dst, const char *hex)
{
    size_t    n;
    unsigned  byte;

    for (n = 0; hex[0] && hex[1]; hex += 2, n++) {
        sscanf(hex, "%2x", &byte);
        dst[n] = (uint8_t) byte;
    }

    return n;
}


/*
 * Decodes the bytes.  want: the expected items; or "!NAME@0", the name and the
 * position of an error.
 */

static void
check(const char *hex, unsigned flags, const char *want)
{
    char          got[TEXT_MAX + 64];
    dump_t        d, first;
    size_t        len, step;
    uint8_t       data[512];
    uint64_t      pos;
    xet_status_t  rc;

    len = unhex(data, hex);
    memset(&first, 0, sizeof(first));

    for (step = 1; step <= len + 1; step++) {
        rc = decode(data, len, step, XET_CBOR_DEPTH, flags, &d, &pos);

        if (rc == XET_DONE) {
            snprintf(got, sizeof(got), "%s", d.text);

        } else {
            snprintf(got, sizeof(got), "!%s@%llu", xet_status_code(rc),
                     (unsigned long long) pos);
        }

        if (strcmp(got, want) != 0) {
            xet_ok(0, "%s in steps of %zu", hex, step);
            printf("#   got %s\n#   want %s\n", got, want);
            return;
        }
    }

    xet_ok(1, "%s is %s", *hex ? hex : "nothing", want);
}


static void
test_items(void)
{
    size_t  i;

    static const char *const  items[][2] = {
        { "00", "0" },
        { "17", "23" },
        { "1818", "24" },
        { "1903e8", "1000" },
        { "1a000f4240", "1000000" },
        { "1b000000e8d4a51000", "1000000000000" },
        { "1bffffffffffffffff", "18446744073709551615" },
        { "20", "-1-0" },
        { "3903e7", "-1-999" },
        { "3bffffffffffffffff", "-1-18446744073709551615" },
        { "1800", "0" },
        { "1b0000000000000000", "0" },

        { "f90000", "0_2" },
        { "f98000", "-0_2" },
        { "f93c00", "1_2" },
        { "fb3ff199999999999a", "1.1000000000000001_8" },
        { "f97bff", "65504_2" },
        { "fa47c35000", "100000_4" },
        { "f90001", "5.9604644775390625e-08_2" },
        { "f90400", "6.103515625e-05_2" },
        { "f9c400", "-4_2" },
        { "f97c00", "inf_2" },
        { "f9fc00", "-inf_2" },
        { "fa7f7fffff", "3.4028234663852886e+38_4" },
        { "fb7e37e43c8800759c", "1.0000000000000001e+300_8" },

        { "f4", "s20" },
        { "f5", "s21" },
        { "f6", "s22" },
        { "f7", "s23" },

        { "40", "h\"\"" },
        { "4431323334", "h\"1234\"" },
        { "60", "\"\"" },
        { "6161", "\"a\"" },
        { "62c3bc", "\"\xc3\xbc\"" },
        { "64f0908591", "\"\xf0\x90\x85\x91\"" },

        { "80", "[ ]" },
        { "83010203", "[ 1 2 3 ]" },
        { "8301820203820405", "[ 1 [ 2 3 ] [ 4 5 ] ]" },
        { "a0", "{ }" },
        { "a201020304", "{ /1 2 /3 4 }" },
        { "a26161016162820203", "{ /\"a\" 1 /\"b\" [ 2 3 ] }" },
        { "826161a161626163", "[ \"a\" { /\"b\" \"c\" } ]" },

        /* containers as keys and as values: keys and values still alternate */
        { "a2820102a0a0820304", "{ /[ 1 2 ] { } /{ } [ 3 4 ] }" },

        { "5f423132413334ff", "!bad_manifest@6" },
        { "5f423132423334ff", "h\"1234\"" },
        { "7f61616162ff", "\"ab\"" },
        { "7f6061616061626060ff", "\"ab\"" },
        { "7fff", "\"\"" },
        { "9fff", "[_ ]" },
        { "9f018202039f0405ffff", "[_ 1 [ 2 3 ] [_ 4 5 ] ]" },
        { "83018202039f0405ff", "[ 1 [ 2 3 ] [_ 4 5 ] ]" },
        { "bf61610161629f0203ffff", "{_ /\"a\" 1 /\"b\" [_ 2 3 ] }" },
        { "bfff", "{_ }" },

        { "c074", "!bad_manifest@1" },
        { "c101", "1x1:1" },
        { "d9d9f7a0", "1x55799:{ }" },
        { "c1c201", "2x2:1" },
        { "a1c10102", "{ 1x1:/1 2 }" },
        { "a101d81803", "{ /1 1x24:3 }" }
    };

    for (i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        check(items[i][0], 0, items[i][1]);
    }
}


static void
test_malformed(void)
{
    size_t  i;

    static const char *const  items[][2] = {
        { "", "!bad_manifest@0" },
        { "18", "!bad_manifest@0" },
        { "1900", "!bad_manifest@0" },
        { "1b00000000000000", "!bad_manifest@0" },
        { "0000", "!trailing_bytes@1" },
        { "a000", "!trailing_bytes@1" },
        { "6000", "!trailing_bytes@1" },

        /* reserved values */
        { "1c", "!bad_manifest@0" },
        { "3d", "!bad_manifest@0" },
        { "5e", "!bad_manifest@0" },
        { "7c", "!bad_manifest@0" },
        { "9d", "!bad_manifest@0" },
        { "be", "!bad_manifest@0" },
        { "dc", "!bad_manifest@0" },
        { "fc", "!bad_manifest@0" },

        /* types that have no indefinite length */
        { "1f", "!bad_manifest@0" },
        { "3f", "!bad_manifest@0" },
        { "df", "!bad_manifest@0" },

        /* simple values without a meaning */
        { "e0", "!bad_manifest@0" },
        { "f3", "!bad_manifest@0" },
        { "f800", "!bad_manifest@0" },
        { "f8ff", "!bad_manifest@0" },

        /* misplaced breaks */
        { "ff", "!bad_manifest@0" },
        { "81ff", "!bad_manifest@1" },
        { "a1ff", "!bad_manifest@0" },
        { "a1ffff", "!bad_manifest@1" },
        { "a100ff", "!bad_manifest@2" },
        { "bf01ff", "!bad_manifest@2" },
        { "9fc1ff", "!bad_manifest@2" },
        { "9f81ff", "!bad_manifest@2" },

        /* counts and lengths that extend past the end */
        { "41", "!bad_manifest@0" },
        { "4261", "!bad_manifest@0" },
        { "5b7fffffffffffffff61", "!bad_manifest@0" },
        { "7bffffffffffffffff61", "!bad_manifest@0" },
        { "820000ff", "!trailing_bytes@3" },
        { "8200", "!bad_manifest@0" },
        { "9bffffffffffffffff00", "!bad_manifest@0" },
        { "a20000", "!bad_manifest@0" },
        { "a10000", "{ /0 0 }" },
        { "bbffffffffffffffff00", "!bad_manifest@0" },
        { "bb80000000000000010000", "!bad_manifest@0" },
        { "9f00", "!bad_manifest@2" },
        { "7f6161", "!bad_manifest@3" },

        /* strings in chunks */
        { "7f4161ff", "!bad_manifest@1" },
        { "5f6161ff", "!bad_manifest@1" },
        { "5f5f4161ffff", "!bad_manifest@1" },
        { "7f01ff", "!bad_manifest@1" },
        { "7f62c3ff", "!invalid_utf8@1" },

        /* tags without an item */
        { "c1", "!bad_manifest@1" },
        { "81c1", "!bad_manifest@2" }
    };

    for (i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        check(items[i][0], 0, items[i][1]);
    }
}


static void
test_utf8(void)
{
    size_t  i;

    static const char *const  items[][2] = {
        { "61ff", "!invalid_utf8@0" },
        { "6180", "!invalid_utf8@0" },
        { "61c3", "!invalid_utf8@0" },
        { "62c080", "!invalid_utf8@0" },
        { "62c1bf", "!invalid_utf8@0" },
        { "63e08080", "!invalid_utf8@0" },
        { "63e09fbf", "!invalid_utf8@0" },
        { "63e0a080", "\"\xe0\xa0\x80\"" },
        { "63eda080", "!invalid_utf8@0" },
        { "63ed9fbf", "\"\xed\x9f\xbf\"" },
        { "63ee8080", "\"\xee\x80\x80\"" },
        { "64f0808080", "!invalid_utf8@0" },
        { "64f08fbfbf", "!invalid_utf8@0" },
        { "64f0908080", "\"\xf0\x90\x80\x80\"" },
        { "64f48fbfbf", "\"\xf4\x8f\xbf\xbf\"" },
        { "64f4908080", "!invalid_utf8@0" },
        { "64f5808080", "!invalid_utf8@0" },
        { "63e28261", "!invalid_utf8@0" },
        { "63e282ac", "\"\xe2\x82\xac\"" },
        { "41ff", "h\"\xff\"" },

        /* a character may neither span chunks nor be truncated by the end */
        { "7f62e28261acff", "!invalid_utf8@1" },
        { "7f61e26282acff", "!invalid_utf8@1" },
        { "7f61616182ff", "!invalid_utf8@3" }
    };

    for (i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        check(items[i][0], 0, items[i][1]);
    }
}


static void
test_deterministic(void)
{
    size_t  i;

    static const char *const  items[][2] = {
        { "17", "23" },
        { "1817", "!not_deterministic@0" },
        { "1818", "24" },
        { "1900ff", "!not_deterministic@0" },
        { "190100", "256" },
        { "1a0000ffff", "!not_deterministic@0" },
        { "1a00010000", "65536" },
        { "1b00000000ffffffff", "!not_deterministic@0" },
        { "1b0000000100000000", "4294967296" },
        { "580161", "!not_deterministic@0" },
        { "780161", "!not_deterministic@0" },
        { "980100", "!not_deterministic@0" },
        { "b8010000", "!not_deterministic@0" },
        { "9fff", "!bad_manifest@0" },
        { "bfff", "!bad_manifest@0" },
        { "7fff", "!bad_manifest@0" },
        { "5fff", "!bad_manifest@0" },
        { "c101", "!bad_manifest@0" },
        { "f7", "!bad_manifest@0" },
        { "f6", "s22" },

        { "f97e00", "nan_2" },
        { "f97e01", "!not_deterministic@0" },
        { "f9fe00", "!not_deterministic@0" },
        { "f97c00", "inf_2" },
        { "fa7fc00000", "!not_deterministic@0" },
        { "fa7f800000", "!not_deterministic@0" },
        { "fb7ff8000000000000", "!not_deterministic@0" },
        { "fb7ff0000000000000", "!not_deterministic@0" },

        { "fa00000000", "!not_deterministic@0" },
        { "fa3f800000", "!not_deterministic@0" },
        { "fa3f802000", "!not_deterministic@0" },
        { "fa3f801000", "1.00048828125_4" },
        { "fa477fe000", "!not_deterministic@0" },
        { "fa47800000", "65536_4" },
        { "fa33800000", "!not_deterministic@0" },
        { "fa33000000", "2.9802322387695312e-08_4" },
        { "fa33c00000", "8.9406967163085938e-08_4" },
        { "fa34400000", "!not_deterministic@0" },
        { "fa34200000", "1.4901161193847656e-07_4" },
        { "fa34000000", "!not_deterministic@0" },
        { "fa387fc000", "!not_deterministic@0" },
        { "fa387fe000", "6.1005353927612305e-05_4" },
        { "fa00000001", "1.4012984643248171e-45_4" },

        { "fb3ff8000000000000", "!not_deterministic@0" },
        { "fb47efffffe0000000", "!not_deterministic@0" },
        { "fb47efffffe0000001", "3.402823466385289e+38_8" },
        { "fb47f0000000000000", "3.4028236692093846e+38_8" },
        { "fb3ff199999999999a", "1.1000000000000001_8" },
        { "fb0000000000000000", "!not_deterministic@0" },
        { "fb36a0000000000000", "!not_deterministic@0" },
        { "fb3690000000000000", "7.0064923216240854e-46_8" }
    };

    for (i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        check(items[i][0], XET_CBOR_DETERMINISTIC, items[i][1]);
    }
}


/* Nests arrays, maps, tags and indefinite arrays up to the limit and beyond. */

static void
test_depth(void)
{
    size_t        n, len;
    dump_t        d;
    unsigned      i, kind, limit;
    uint8_t       data[1024];
    uint64_t      pos;
    xet_status_t  at, past;

    static const unsigned  limits[] = { 1, 4, 31, 32 };
    static const char     *names[] = { "arrays", "maps", "tags", "_arrays" };

    for (i = 0; i < 4; i++) {
        limit = limits[i];

        for (kind = 0; kind < 4; kind++) {
            at = past = XET_OK;

            for (n = limit; n <= limit + 1; n++) {

                for (len = 0; len < n; /* void */ ) {
                    data[len++] = (uint8_t) (kind == 0 ? 0x81
                                             : kind == 2 ? 0xc1 : 0x9f);
                }

                if (kind == 1) {
                    for (len = 0; len < 2 * n; len += 2) {
                        data[len] = 0xa1;
                        data[len + 1] = 0x00;
                    }
                }

                data[len++] = 0x00;

                if (kind == 3) {
                    memset(data + len, 0xff, n);
                    len += n;
                }

                past = decode(data, len, 3, limit, 0, &d, &pos);
                at = (n == limit) ? past : at;
            }

            xet_ok(at == XET_DONE && past == XET_ZT_NESTING,
                   "%u %s, not %u", limit, names[kind], limit + 1);
        }
    }

    /* tags count as open items; siblings do not */

    len = unhex(data, "8281c10081c100");
    xet_is_u64(decode(data, len, 7, 3, 0, &d, &pos), XET_DONE,
               "two arrays and a tag in depth 3");
    xet_is_u64(decode(data, len, 7, 2, 0, &d, &pos), XET_ZT_NESTING,
               "but not in depth 2");
}


static void
test_deep_skip(void)
{
    size_t            n;
    xet_cbor_t        c;
    xet_status_t      rc;
    xet_cbor_item_t   item;

    static uint8_t    data[100000];

    memset(data, 0x81, sizeof(data));

    xet_cbor_init(&c, sizeof(data), XET_CBOR_DEPTH, 0);
    xet_cbor_feed(&c, data, sizeof(data));

    for (n = 0; (rc = xet_cbor_next(&c, &item)) == XET_OK; n++) {
        /* void */
    }

    xet_is_u64(rc, XET_ZT_NESTING, "100,000 arrays");
    xet_is_u64(n, XET_CBOR_DEPTH, "are refused at the limit");
    xet_is_u64(xet_cbor_next(&c, &item), XET_ZT_NESTING, "the error stays");
}


static void
test_resume(void)
{
    dump_t           d;
    size_t           len;
    uint8_t          data[64];
    xet_cbor_t       c;
    xet_cbor_item_t  item;

    /* {"o": {"a": 1, "b": [2], "c": 3}}, starting at "b" */

    len = unhex(data, "a1616fa361610161628102616303");

    xet_cbor_init(&c, len, XET_CBOR_DEPTH, 0);
    xet_cbor_resume(&c, 7, 2, 2);
    xet_cbor_feed(&c, data + 7, len - 7);

    memset(&d, 0, sizeof(d));

    while (xet_cbor_next(&c, &item) == XET_OK) {
        dump_item(&d, &item);

        if (item.kind == XET_CBOR_END && c.depth == 1) {
            break;
        }
    }

    xet_ok(strcmp(d.text, "/\"b\" [ 2 ] /\"c\" 3 }") == 0,
           "entered amidst a map: %s", d.text);
}


int
main(void)
{
    test_items();
    test_malformed();
    test_utf8();
    test_deterministic();
    test_depth();
    test_deep_skip();
    test_resume();

    return xet_done();
}
