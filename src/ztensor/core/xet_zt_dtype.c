
/*
 * The types of elements.
 *
 * Purpose:    names to widths, for the rules that hold lengths against
 *             shapes; and which byte values a type forbids.
 * States:     none, two constant tables.
 * Ownership:  the rows are constants.
 * Threads:    any.
 *
 * The text of 1.1 has more stored types than its reference readers, which
 * refuse a whole file because of one float8 tensor; the text is followed here.
 * From 1.2 on float8 and complex are logical types over bytes and floats;
 * container 2 has them in that form only, and bool too is a logical type there.
 */


#include <string.h>

#include "xet_zt.h"


#define xet_zt_plain(name, bytes, index)                                      \
    { name, NULL, bytes, 1, index, 1, 1, XET_ZT_VALUES_ANY }

#define xet_zt_plain_1(name, bytes, values)                                   \
    { name, NULL, bytes, 1, 0, 1, 0, values }

#define xet_zt_logical(name, storage, bytes, per, values)                     \
    { name, storage, bytes, per, 0, 1, 1, values }


static const xet_zt_dtype_t *xet_zt_dtype_row(const xet_zt_dtype_t *rows,
    size_t n, const uint8_t *name, size_t len);


static const xet_zt_dtype_t  xet_zt_dtypes[] = {
    xet_zt_plain("f32", 4, 0),
    xet_zt_plain("bf16", 2, 0),
    xet_zt_plain("f16", 2, 0),
    xet_zt_plain("f64", 8, 0),

    xet_zt_plain("i64", 8, 1),
    xet_zt_plain("i32", 4, 1),
    xet_zt_plain("i16", 2, 1),
    xet_zt_plain("i8", 1, 1),
    xet_zt_plain("u64", 8, 1),
    xet_zt_plain("u32", 4, 1),
    xet_zt_plain("u16", 2, 1),
    xet_zt_plain("u8", 1, 1),

    xet_zt_plain_1("bool", 1, XET_ZT_VALUES_BOOL),
    xet_zt_plain_1("f8_e4m3", 1, XET_ZT_VALUES_ANY),
    xet_zt_plain_1("f8_e5m2", 1, XET_ZT_VALUES_ANY),
    xet_zt_plain_1("complex64", 8, XET_ZT_VALUES_ANY),
    xet_zt_plain_1("complex128", 16, XET_ZT_VALUES_ANY)
};


static const xet_zt_dtype_t  xet_zt_types[] = {
    xet_zt_logical("bool", "u8", 1, 1, XET_ZT_VALUES_BOOL),
    xet_zt_logical("f8_e4m3fn", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f8_e5m2", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f8_e4m3fnuz", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f8_e5m2fnuz", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f8_e8m0", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f4_e2m1", "u8", 1, 2, XET_ZT_VALUES_NIBBLE),
    xet_zt_logical("complex64", "f32", 8, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("complex128", "f64", 16, 1, XET_ZT_VALUES_ANY)
};


const xet_zt_dtype_t *
xet_zt_dtype_find(const uint8_t *name, size_t len,
    xet_zt_container_t container)
{
    const xet_zt_dtype_t  *dtype;

    dtype = xet_zt_dtype_row(xet_zt_dtypes,
                             sizeof(xet_zt_dtypes) / sizeof(xet_zt_dtypes[0]),
                             name, len);

    if (dtype && container == XET_ZT_CONTAINER_2 && !dtype->in_2) {
        return NULL;
    }

    return dtype;
}


const xet_zt_dtype_t *
xet_zt_type_find(const uint8_t *name, size_t len)
{
    return xet_zt_dtype_row(xet_zt_types,
                            sizeof(xet_zt_types) / sizeof(xet_zt_types[0]),
                            name, len);
}


int
xet_zt_dtype_size(const xet_zt_dtype_t *dtype, uint64_t n, uint64_t *bytes)
{
    uint64_t  groups;

    groups = n / dtype->per + (n % dtype->per != 0);

    if (groups > UINT64_MAX / dtype->bytes) {
        return 0;
    }

    *bytes = groups * dtype->bytes;

    return 1;
}


static const xet_zt_dtype_t *
xet_zt_dtype_row(const xet_zt_dtype_t *rows, size_t n, const uint8_t *name,
    size_t len)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (strlen(rows[i].name) == len
            && memcmp(rows[i].name, name, len) == 0)
        {
            return &rows[i];
        }
    }

    return NULL;
}
