
/*
 * The fields of the records in a manifest, by container.
 */

#ifndef _XET_ZT_FIELD_H_INCLUDED_
#define _XET_ZT_FIELD_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_zt_dtype.h"


#define XET_ZT_FIELD_MAX  24           /* bytes; all names are shorter */


typedef enum {
    XET_ZT_RECORD_ROOT = 0,
    XET_ZT_RECORD_OBJECT,
    XET_ZT_RECORD_COMPONENT,
    XET_ZT_RECORD_SHARD
} xet_zt_record_t;


typedef enum {
    XET_ZT_FIELD_UNKNOWN = 0,
    XET_ZT_FIELD_VERSION,
    XET_ZT_FIELD_ATTRIBUTES,
    XET_ZT_FIELD_OBJECTS,
    XET_ZT_FIELD_SHARDS,
    XET_ZT_FIELD_SHAPE,
    XET_ZT_FIELD_FORMAT,
    XET_ZT_FIELD_COMPONENTS,
    XET_ZT_FIELD_DTYPE,
    XET_ZT_FIELD_TYPE,
    XET_ZT_FIELD_OFFSET,
    XET_ZT_FIELD_LENGTH,
    XET_ZT_FIELD_BLOB,                 /* offset and length */
    XET_ZT_FIELD_SHARD,
    XET_ZT_FIELD_ENCODING,
    XET_ZT_FIELD_DECODED,
    XET_ZT_FIELD_DIGEST,
    XET_ZT_FIELD_SIZE
} xet_zt_field_t;


#define xet_zt_field_bit(field)  ((uint32_t) 1 << (field))


xet_zt_field_t xet_zt_field_find(xet_zt_container_t container,
    xet_zt_record_t record, const uint8_t *name, size_t len);

/* The bits of the fields without which a record is not complete. */
uint32_t xet_zt_field_required(xet_zt_container_t container,
    xet_zt_record_t record);

/* Whether null as the field's value stands for its absence. */
int xet_zt_field_nullable(xet_zt_container_t container, xet_zt_field_t field);


#endif /* _XET_ZT_FIELD_H_INCLUDED_ */
