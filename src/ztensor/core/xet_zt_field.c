
/*
 * Fields of records.
 *
 * Purpose:    the schema of the manifest as a table: container 1 (1.1 with
 *             the additions of 1.2) and container 2 differ in little more
 *             than names.
 * States:     none.
 * Ownership:  constants only.
 * Threads:    any.
 *
 * A field that is not in the table is skipped by readers, in all versions.
 */


#include <string.h>

#include "xet_zt.h"


#define XET_ZT_IN_1  1
#define XET_ZT_IN_2  2


typedef struct {
    const char       *name;
    size_t            len;
    unsigned          in;              /* bits: containers that know it */
    unsigned          required;        /* bits: containers that ask for it */
    xet_zt_record_t   record;
    xet_zt_field_t    field;
} xet_zt_field_row_t;


#define xet_zt_field_name(s)  s, sizeof(s) - 1


static unsigned xet_zt_field_in(xet_zt_container_t container);


static const xet_zt_field_row_t  xet_zt_fields[] = {

    { xet_zt_field_name("version"), 1, 1, XET_ZT_RECORD_ROOT,
      XET_ZT_FIELD_VERSION },
    { xet_zt_field_name("attributes"), 3, 0, XET_ZT_RECORD_ROOT,
      XET_ZT_FIELD_ATTRIBUTES },
    { xet_zt_field_name("objects"), 3, 3, XET_ZT_RECORD_ROOT,
      XET_ZT_FIELD_OBJECTS },
    { xet_zt_field_name("shards"), 2, 0, XET_ZT_RECORD_ROOT,
      XET_ZT_FIELD_SHARDS },

    { xet_zt_field_name("shape"), 3, 3, XET_ZT_RECORD_OBJECT,
      XET_ZT_FIELD_SHAPE },
    { xet_zt_field_name("format"), 1, 1, XET_ZT_RECORD_OBJECT,
      XET_ZT_FIELD_FORMAT },
    { xet_zt_field_name("layout"), 2, 2, XET_ZT_RECORD_OBJECT,
      XET_ZT_FIELD_FORMAT },
    { xet_zt_field_name("attributes"), 3, 0, XET_ZT_RECORD_OBJECT,
      XET_ZT_FIELD_ATTRIBUTES },
    { xet_zt_field_name("components"), 1, 1, XET_ZT_RECORD_OBJECT,
      XET_ZT_FIELD_COMPONENTS },
    { xet_zt_field_name("parts"), 2, 2, XET_ZT_RECORD_OBJECT,
      XET_ZT_FIELD_COMPONENTS },

    { xet_zt_field_name("dtype"), 3, 3, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_DTYPE },
    { xet_zt_field_name("type"), 3, 0, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_TYPE },
    { xet_zt_field_name("offset"), 1, 1, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_OFFSET },
    { xet_zt_field_name("length"), 1, 1, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_LENGTH },
    { xet_zt_field_name("blob"), 2, 2, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_BLOB },
    { xet_zt_field_name("shard"), 2, 0, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_SHARD },
    { xet_zt_field_name("encoding"), 3, 0, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_ENCODING },
    { xet_zt_field_name("digest"), 3, 0, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_DIGEST },
    { xet_zt_field_name("uncompressed_length"), 1, 0, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_DECODED },
    { xet_zt_field_name("decoded_length"), 2, 0, XET_ZT_RECORD_COMPONENT,
      XET_ZT_FIELD_DECODED },

    { xet_zt_field_name("size"), 2, 2, XET_ZT_RECORD_SHARD,
      XET_ZT_FIELD_SIZE },
    { xet_zt_field_name("digest"), 2, 2, XET_ZT_RECORD_SHARD,
      XET_ZT_FIELD_DIGEST }
};


xet_zt_field_t
xet_zt_field_find(xet_zt_container_t container, xet_zt_record_t record,
    const uint8_t *name, size_t len)
{
    size_t                     i;
    unsigned                   in;
    const xet_zt_field_row_t  *row;

    in = xet_zt_field_in(container);

    for (i = 0; i < sizeof(xet_zt_fields) / sizeof(xet_zt_fields[0]); i++) {
        row = &xet_zt_fields[i];

        if (row->record == record
            && (row->in & in)
            && row->len == len
            && memcmp(row->name, name, len) == 0)
        {
            return row->field;
        }
    }

    return XET_ZT_FIELD_UNKNOWN;
}


uint32_t
xet_zt_field_required(xet_zt_container_t container, xet_zt_record_t record)
{
    size_t                     i;
    uint32_t                   bits;
    unsigned                   in;
    const xet_zt_field_row_t  *row;

    in = xet_zt_field_in(container);
    bits = 0;

    for (i = 0; i < sizeof(xet_zt_fields) / sizeof(xet_zt_fields[0]); i++) {
        row = &xet_zt_fields[i];

        if (row->record == record && (row->required & in)) {
            bits |= xet_zt_field_bit(row->field);
        }
    }

    return bits;
}


int
xet_zt_field_nullable(xet_zt_container_t container, xet_zt_field_t field)
{
    if (container != XET_ZT_CONTAINER_1) {
        return 0;
    }

    switch (field) {

    case XET_ZT_FIELD_ATTRIBUTES:
    case XET_ZT_FIELD_TYPE:
    case XET_ZT_FIELD_ENCODING:
    case XET_ZT_FIELD_DECODED:
    case XET_ZT_FIELD_DIGEST:
        return 1;

    default:
        return 0;
    }
}


static unsigned
xet_zt_field_in(xet_zt_container_t container)
{
    return (container == XET_ZT_CONTAINER_2) ? XET_ZT_IN_2 : XET_ZT_IN_1;
}
