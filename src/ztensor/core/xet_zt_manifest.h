
/*
 * Internals of the manifest parser: xet_zt_manifest.c reads the items,
 * xet_zt_record.c turns them into records, xet_zt_skip.c skips other values.
 */

#ifndef _XET_ZT_MANIFEST_H_INCLUDED_
#define _XET_ZT_MANIFEST_H_INCLUDED_


#include "xet_base.h"
#include "xet_zt.h"


#define XET_ZT_FIELD_MAX       24      /* bytes; longer than any field name */
#define XET_ZT_FIELDS_MAX      32      /* bits of "seen" */


typedef enum {
    xet_zt_at_root = 0,
    xet_zt_at_key,
    xet_zt_at_value,
    xet_zt_at_number,
    xet_zt_at_name,
    xet_zt_at_record,
    xet_zt_at_end
} xet_zt_state_t;


typedef enum {
    XET_ZT_RECORD_ROOT = 0,
    XET_ZT_RECORD_OBJECT,
    XET_ZT_RECORD_COMPONENT,
    XET_ZT_RECORD_SHARD
} xet_zt_record_t;


/* Kinds of values. */

typedef enum {
    xet_zt_of_text = 0,
    xet_zt_of_version,
    xet_zt_of_shard,                       /* the name of a shard */
    xet_zt_of_digest,
    xet_zt_of_integer,
    xet_zt_of_declared,                    /* an integer that may be absent */
    xet_zt_of_shape,
    xet_zt_of_blob,                        /* offset and length */
    xet_zt_of_attributes,
    xet_zt_of_objects,
    xet_zt_of_components,
    xet_zt_of_shards
} xet_zt_kind_t;


typedef struct {
    const char             *name;
    size_t                  len;
    xet_zt_record_t         record;
    unsigned                in;            /* bits: containers with the field */
    unsigned                required;      /* bits: where it is required */
    unsigned                null;          /* bits: where null means absent */
    xet_zt_kind_t           kind;
    size_t                  offset;        /* offset of the member to set */
} xet_zt_field_t;


typedef struct {
    uint8_t                *data;
    size_t                  len;
    size_t                  room;
    size_t                  limit;         /* maximum bytes to copy */
    const uint8_t          *mark;          /* start of the uncopied bytes */
    unsigned                cut:1;         /* limit exceeded: no copy */
} xet_zt_capture_t;


struct xet_zt_manifest_s {
    xet_zt_manifest_conf_t  conf;
    xet_zt_limits_t         limits;

    xet_cbor_t              cbor;
    xet_zt_keys_t           keys;
    unsigned                in;            /* XET_ZT_IN_1 or XET_ZT_IN_2 */
    unsigned                whole:1;       /* reading began at the start */
    unsigned                text_open:1;
    unsigned                skip:1;
    unsigned                skip_attributes:1;
    unsigned                skip_key:1;
    unsigned                skip_depth;
    unsigned                name_zero:1;   /* attribute name has a NUL */
    uint64_t                name_len;

    xet_status_t            status;
    uint64_t                pos;

    xet_zt_state_t          state;
    xet_zt_record_t         record;        /* kind of the open record, or of
                                              the records in the map */
    const xet_zt_field_t   *field;         /* NULL: unknown field */
    uint32_t                seen[XET_ZT_RECORD_SHARD + 1];
    uint32_t                required[XET_ZT_RECORD_SHARD + 1];
    unsigned                numbers;

    unsigned                last_field;    /* the last known field */
    uint8_t                 guess[XET_ZT_RECORD_SHARD + 1][XET_ZT_FIELDS_MAX];

    uint8_t                 key[XET_ZT_FIELD_MAX];
    size_t                  key_len;

    uint8_t                *text;          /* buffer for the object's texts */
    size_t                  text_room;
    size_t                  text_len;
    size_t                  text_start;    /* offset of the open text */

    xet_zt_root_t           root;
    xet_zt_object_t         object;
    xet_zt_component_t     *component;
    xet_zt_shard_t          shard;

    xet_zt_capture_t        root_attributes;
    xet_zt_capture_t        attributes;
    xet_zt_capture_t       *capture;       /* copy in progress, or NULL */
};


/*
 * xet_zt_skip.c: skips an item of a value that is not interpreted, or of a key
 * that is not text; m->skip_depth is the depth around the value or key.
 * Attribute names are checked.  The head of a map of attributes is not passed
 * to this function.
 */
xet_status_t xet_zt_skip_item(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);

/* Begins to skip the map of attributes whose head is item. */
xet_status_t xet_zt_skip_attributes(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);

/* Copies the bytes from c->mark to p, the end of the piece or of the map. */
xet_status_t xet_zt_capture_break(xet_zt_capture_t *c, const uint8_t *p);


/* xet_zt_record.c: sets the fields that each record of m must have. */
void xet_zt_record_require(xet_zt_manifest_t *m);

/* Interprets an item of a record; never called for skipped items. */
xet_status_t xet_zt_record_item(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);

/* Returns 1 if all required fields of the record were read. */
int xet_zt_record_complete(const xet_zt_manifest_t *m, xet_zt_record_t record);

/* Adds a part of the open text. */
xet_status_t xet_zt_record_text(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);


#endif /* _XET_ZT_MANIFEST_H_INCLUDED_ */
