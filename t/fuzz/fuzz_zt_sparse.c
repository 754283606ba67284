
/*
 * Indices of sparse objects: the verdict depends neither on the split of the
 * input nor on the order of components, and is the same as the verdict of a
 * simple implementation of the rules.
 *
 * Input: flags (1 coo, 2 container 2, 4 signed, 8 unknown lengths, 16 reverse
 * order), log2 of the index width, the piece size, two dimensions, the number
 * of values; then the row pointers and indices, or the coordinates.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


#define HEAD  6
#define MAX   256              /* maximum number of values */

#define check(cond)  if (!(cond)) { __builtin_trap(); }


typedef struct {
    int                  coo;
    int                  strict;
    int                  negative;     /* indices are signed */
    unsigned             width;
    uint64_t             shape[2];
    size_t               n;            /* number of values */

    const uint8_t       *data[3];      /* values, indices, indptr */
    size_t               len[3];
    unsigned             parts;

    xet_zt_object_t      object;
    xet_zt_component_t   components[3];
} input_t;


static const uint8_t  values[MAX];


static void
text(xet_zt_text_t *t, const char *s)
{
    t->data = (const uint8_t *) s;
    t->len = strlen(s);
}


static void
describe(input_t *in, int known)
{
    unsigned  i;

    static const char *const  dtypes[2][4] = {
        { "u8", "u16", "u32", "u64" }, { "i8", "i16", "i32", "i64" }
    };

    static const char *const  formats[2][2] = {
        { "sparse_csr", "sparse_coo" },
        { "zt.sparse_csr/1", "zt.sparse_coo/1" }
    };

    static const char *const  roles[2][3] = {
        { "values", "indices", "indptr" }, { "values", "coords", NULL }
    };

    text(&in->object.format, formats[in->strict][in->coo]);

    in->object.rank = 2;
    in->object.shape[0] = in->shape[0];
    in->object.shape[1] = in->shape[1];
    in->object.has_count = 1;
    in->object.count = in->shape[0] * in->shape[1];
    in->object.components = in->components;
    in->object.n = in->parts;

    for (i = 0; i < in->parts; i++) {
        text(&in->components[i].role, roles[in->coo][i]);
        text(&in->components[i].dtype,
             i ? dtypes[in->negative][in->width] : "u8");

        in->components[i].element
            = xet_zt_dtype_find(&in->components[i].dtype, XET_ZT_CONTAINER_1);
        in->components[i].has_decoded = known ? 1 : 0;
        in->components[i].decoded = known ? in->len[i] : 0;
    }
}


static int
sound(input_t *in, xet_zt_sparse_t *s, const unsigned *order, size_t step)
{
    int       ok;
    size_t    pos, n;
    unsigned  i, k;

    in->object.index++;
    ok = 1;

    for (i = 0; i < in->parts; i++) {
        k = order[i];

        check(xet_zt_sparse_start(s, in->strict ? XET_ZT_CONTAINER_2
                                                : XET_ZT_CONTAINER_1,
                                  &in->object, &in->components[k]));

        for (pos = 0; pos < in->len[k]; pos += n) {
            n = (in->len[k] - pos < step) ? in->len[k] - pos : step;
            check(xet_zt_sparse_feed(s, in->data[k] + pos, n) == XET_OK);
        }

        ok &= xet_zt_sparse_finish(s) == XET_OK;
    }

    return ok;
}


/* Returns element i of a component, or UINT64_MAX if it is negative. */

static uint64_t
element(const input_t *in, unsigned part, size_t i)
{
    unsigned  b, bytes;
    uint64_t  value;

    value = 0;
    bytes = 1u << in->width;

    for (b = bytes; b; b--) {
        value = value << 8 | in->data[part][i * bytes + b - 1];
    }

    return (in->negative && value >> (8 * bytes - 1)) ? UINT64_MAX : value;
}


static int
sound_csr(const input_t *in)
{
    size_t  i, row;

    if (in->len[1] != in->n << in->width || element(in, 2, 0) != 0
        || element(in, 2, (size_t) in->shape[0]) != in->n)
    {
        return 0;
    }

    for (row = 0; row < in->shape[0]; row++) {
        if (element(in, 2, row) > element(in, 2, row + 1)) {
            return 0;
        }
    }

    for (i = 0; i < in->n; i++) {
        if (element(in, 1, i) >= in->shape[1]) {
            return 0;
        }
    }

    for (row = 0; in->strict && row < in->shape[0]; row++) {
        for (i = (size_t) element(in, 2, row) + 1;
             i < element(in, 2, row + 1);
             i++)
        {
            if (element(in, 1, i) <= element(in, 1, i - 1)) {
                return 0;
            }
        }
    }

    return 1;
}


static int
sound_coo(const input_t *in)
{
    size_t  i, k;

    if (in->len[1] != 2 * in->n << in->width) {
        return 0;
    }

    for (i = 0; i < 2 * in->n; i++) {
        if (element(in, 1, i) >= in->shape[i / in->n]) {
            return 0;
        }
    }

    for (i = 0; in->strict && i < in->n; i++) {
        for (k = 0; k < i; k++) {
            if (element(in, 1, i) == element(in, 1, k)
                && element(in, 1, in->n + i) == element(in, 1, in->n + k))
            {
                return 0;
            }
        }
    }

    return 1;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int               want, known;
    input_t           in;
    xet_zt_sparse_t  *s;

    static const unsigned  one[3] = { 0, 1, 2 };
    static const unsigned  two[3] = { 0, 2, 1 };
    static const unsigned  last[3] = { 2, 1, 0 };

    if (size < HEAD) {
        return 0;
    }

    memset(&in, 0, sizeof(in));

    in.coo = data[0] & 1;
    in.strict = data[0] >> 1 & 1;
    in.negative = data[0] >> 2 & 1;
    known = in.strict || !(data[0] & 8);
    in.width = data[1] & 3;
    in.shape[0] = data[3];
    in.shape[1] = data[4];
    in.n = data[5];
    in.parts = in.coo ? 2 : 3;

    in.data[0] = values;
    in.len[0] = in.n;

    if (!in.coo) {
        in.data[2] = data + HEAD;
        in.len[2] = (size_t) (in.shape[0] + 1) << in.width;

        if (in.len[2] > size - HEAD) {
            return 0;
        }
    }

    in.data[1] = data + HEAD + in.len[2];
    in.len[1] = size - HEAD - in.len[2];

    describe(&in, known);

    want = in.coo ? sound_coo(&in) : sound_csr(&in);

    s = xet_zt_sparse_create(1 << 20);
    if (s == NULL) {
        return 0;
    }

    check(sound(&in, s, one, 1 << 20) == want);
    check(sound(&in, s, (data[0] & 16 && !in.coo) ? two : one,
                (size_t) data[2] + 1) == want);

    if (!in.coo) {
        check(sound(&in, s, last, (size_t) data[2] + 1) == want);
    }

    xet_zt_sparse_destroy(s);

    return 0;
}
