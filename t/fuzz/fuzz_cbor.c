/* libs: -lcbor */

/*
 * Compares the CBOR decoder with libcbor: libcbor accepts all input that the
 * decoder accepts, and both return the same tree.  The decoder returns the same
 * items for pieces of any size.
 *
 * Input: a byte for the flags and the piece size, then CBOR.  libcbor does not
 * check counts, so it only gets input that the decoder has accepted.
 */


#include <stdlib.h>
#include <string.h>

#include <cbor.h>

#include "xet_zt.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


typedef struct {
    xet_cbor_t       cbor;
    xet_cbor_item_t  item;
} fuzz_t;


static void fuzz_compare(fuzz_t *f, const cbor_item_t *want, int key);


static void
fuzz_next(fuzz_t *f)
{
    check(xet_cbor_next(&f->cbor, &f->item) == XET_OK);
}


/* Compares the string that starts at the current item with the wanted bytes. */

static void
fuzz_bytes(fuzz_t *f, const uint8_t *want, size_t len)
{
    size_t  n;

    check(len >= f->item.len);
    check(f->item.len == 0 || memcmp(f->item.data, want, f->item.len) == 0);

    n = f->item.len;

    while (f->item.more) {
        fuzz_next(f);

        check(f->item.kind == XET_CBOR_DATA && len - n >= f->item.len);
        check(f->item.len == 0
              || memcmp(f->item.data, want + n, f->item.len) == 0);

        n += f->item.len;
    }

    check(n == len);
}


static void
fuzz_string(fuzz_t *f, const cbor_item_t *want, int text)
{
    size_t          i, n, len;
    uint8_t        *whole;
    cbor_item_t   **chunks;

    if (text ? cbor_string_is_definite(want)
             : cbor_bytestring_is_definite(want))
    {
        check(!f->item.indefinite);

        if (text) {
            fuzz_bytes(f, cbor_string_handle(want), cbor_string_length(want));

        } else {
            fuzz_bytes(f, cbor_bytestring_handle(want),
                       cbor_bytestring_length(want));
        }

        return;
    }

    check(f->item.indefinite);

    n = text ? cbor_string_chunk_count(want)
             : cbor_bytestring_chunk_count(want);
    chunks = text ? cbor_string_chunks_handle(want)
                  : cbor_bytestring_chunks_handle(want);

    whole = NULL;
    len = 0;

    for (i = 0; i < n; i++) {
        size_t          m;
        const uint8_t  *p;

        m = text ? cbor_string_length(chunks[i])
                 : cbor_bytestring_length(chunks[i]);
        p = text ? cbor_string_handle(chunks[i])
                 : cbor_bytestring_handle(chunks[i]);

        whole = realloc(whole, len + m + 1);
        check(whole != NULL);

        if (m) {
            memcpy(whole + len, p, m);
            len += m;
        }
    }

    fuzz_bytes(f, whole, len);
    free(whole);
}


static void
fuzz_container(fuzz_t *f, const cbor_item_t *want)
{
    size_t             i, n;
    int                map, definite;
    cbor_item_t      **elements;
    struct cbor_pair  *pairs;

    map = cbor_isa_map(want);

    check(f->item.kind == (map ? XET_CBOR_MAP : XET_CBOR_ARRAY));

    n = map ? cbor_map_size(want) : cbor_array_size(want);
    definite = map ? cbor_map_is_definite(want)
                   : cbor_array_is_definite(want);

    check(f->item.indefinite == !definite);
    check(!definite || f->item.value == n);

    elements = map ? NULL : cbor_array_handle(want);
    pairs = map ? cbor_map_handle(want) : NULL;

    for (i = 0; i < n; i++) {

        if (map) {
            fuzz_compare(f, pairs[i].key, 1);
            fuzz_compare(f, pairs[i].value, 0);

        } else {
            fuzz_compare(f, elements[i], 0);
        }
    }

    fuzz_next(f);

    check(f->item.kind == XET_CBOR_END
          && f->item.value == (map ? XET_CBOR_MAP : XET_CBOR_ARRAY));
}


static void
fuzz_float(fuzz_t *f, const cbor_item_t *want)
{
    double  got, v;

    if (cbor_float_ctrl_is_ctrl(want)) {
        check(f->item.kind == XET_CBOR_SIMPLE
              && f->item.value == cbor_ctrl_value(want));
        return;
    }

    check(f->item.kind == XET_CBOR_FLOAT
          && f->item.width == 1u << cbor_float_get_width(want));

    got = xet_cbor_float(&f->item);
    v = cbor_float_get_float(want);

    check(got == v || (got != got && v != v));
}


static void
fuzz_compare(fuzz_t *f, const cbor_item_t *want, int key)
{
    unsigned  tags;
    uint64_t  tag;

    tags = 0;
    tag = 0;

    while (cbor_isa_tag(want)) {
        cbor_item_t  *inner;

        tag = cbor_tag_value(want);
        tags++;

        /* releases this reference; the parent keeps its own */

        inner = cbor_tag_item(want);
        cbor_decref(&inner);
        want = inner;
    }

    fuzz_next(f);

    check(f->item.tags == tags && f->item.tag == tag);
    check(f->item.key == (unsigned) key);

    switch (cbor_typeof(want)) {

    case CBOR_TYPE_UINT:
        check(f->item.kind == XET_CBOR_UINT
              && f->item.value == cbor_get_int(want));
        break;

    case CBOR_TYPE_NEGINT:
        check(f->item.kind == XET_CBOR_NINT
              && f->item.value == cbor_get_int(want));
        break;

    case CBOR_TYPE_BYTESTRING:
        check(f->item.kind == XET_CBOR_BYTES);
        fuzz_string(f, want, 0);
        break;

    case CBOR_TYPE_STRING:
        check(f->item.kind == XET_CBOR_TEXT);
        fuzz_string(f, want, 1);
        break;

    case CBOR_TYPE_ARRAY:
    case CBOR_TYPE_MAP:
        fuzz_container(f, want);
        break;

    default:
        fuzz_float(f, want);
    }
}


/*
 * Computes a hash of the items that does not depend on how strings are split.
 */

static xet_status_t
fuzz_digest(const uint8_t *data, size_t size, size_t step, unsigned flags,
    uint64_t *digest, uint64_t *pos)
{
    size_t            i, n, at, calls;
    uint8_t          *piece;
    xet_cbor_t        c;
    xet_status_t      rc;
    xet_cbor_item_t   item;

    xet_cbor_init(&c, size, XET_CBOR_DEPTH, flags);

    piece = NULL;
    at = 0;
    calls = 0;
    *digest = 7;

    for ( ;; ) {
        rc = xet_cbor_next(&c, &item);

        check(calls++ <= 4 * size + 4);

        if (rc == XET_OK) {

            if (item.kind != XET_CBOR_DATA) {
                *digest = (*digest ^ item.kind ^ item.value << 8
                           ^ (uint64_t) item.key << 5 ^ item.tags
                           ^ item.pos << 20)
                          * UINT64_C(0x100000001b3);
            }

            for (i = 0; i < item.len; i++) {
                *digest = (*digest ^ item.data[i])
                          * UINT64_C(0x100000001b3);
            }

            continue;
        }

        if (rc != XET_AGAIN) {
            break;
        }

        check(at < size);

        n = (size - at < step) ? size - at : step;

        free(piece);
        piece = malloc(n);
        check(piece != NULL);

        memcpy(piece, data + at, n);
        at += n;

        xet_cbor_feed(&c, piece, n);
    }

    free(piece);

    check(xet_cbor_next(&c, &item) == rc);

    *pos = c.head_pos;

    return rc;
}


/*
 * libcbor 0.8 rejects one-byte tags that were unassigned when it was released.
 */

static int
fuzz_small_tags(const uint8_t *data, size_t size)
{
    size_t  i;

    for (i = 0; i < size; i++) {
        if (data[i] >= 0xc5 && data[i] <= 0xd4) {
            return 1;
        }
    }

    return 0;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned                  flags;
    uint64_t                  one, two, one_pos, two_pos;
    fuzz_t                    f;
    cbor_item_t              *tree;
    xet_status_t              rc;
    struct cbor_load_result   result;

    if (size < 1 || size > 65536) {
        return 0;
    }

    flags = (data[0] & 1) ? XET_CBOR_DETERMINISTIC : 0;

    rc = fuzz_digest(data + 1, size - 1, size, flags, &one, &one_pos);

    check(fuzz_digest(data + 1, size - 1, 1 + (data[0] >> 1), flags, &two,
                      &two_pos)
          == rc && one_pos == two_pos && one == two);

    if (rc != XET_DONE) {
        check(rc == XET_ZT_MANIFEST || rc == XET_ZT_TRAILING
              || rc == XET_ZT_NESTING || rc == XET_ZT_UTF8
              || (flags && rc == XET_ZT_ORDER));
        return 0;
    }

    /* input that is accepted as deterministic is also well-formed */

    check(!flags
          || fuzz_digest(data + 1, size - 1, size, 0, &two, &two_pos)
             == XET_DONE);

    tree = cbor_load(data + 1, size - 1, &result);

    if (tree == NULL && fuzz_small_tags(data + 1, size - 1)) {
        return 0;
    }

    check(tree != NULL && result.error.code == CBOR_ERR_NONE
          && result.read == size - 1);

    xet_cbor_init(&f.cbor, size - 1, XET_CBOR_DEPTH, flags);
    xet_cbor_feed(&f.cbor, data + 1, size - 1);

    fuzz_compare(&f, tree, 0);

    check(xet_cbor_next(&f.cbor, &f.item) == XET_DONE);

    cbor_decref(&tree);

    return 0;
}
