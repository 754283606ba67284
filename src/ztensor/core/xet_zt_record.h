
/*
 * Inside of the manifest parser: its state, and the records.
 */

#ifndef _XET_ZT_RECORD_H_INCLUDED_
#define _XET_ZT_RECORD_H_INCLUDED_


#include "xet_zt_capture.h"
#include "xet_zt_field.h"
#include "xet_zt_manifest.h"


typedef enum {
    xet_zt_at_root = 0,
    xet_zt_at_key,
    xet_zt_at_value,
    xet_zt_at_number,
    xet_zt_at_name,
    xet_zt_at_record,
    xet_zt_at_end
} xet_zt_state_t;


struct xet_zt_manifest_s {
    xet_zt_manifest_conf_t  conf;
    xet_zt_limits_t         limits;

    xet_cbor_t              cbor;
    xet_zt_keys_t           keys;
    unsigned                whole:1;       /* read from the start */
    unsigned                text_open:1;
    unsigned                skip:1;
    unsigned                skip_attributes:1;
    unsigned                skip_key:1;
    unsigned                skip_depth;
    unsigned                name_zero:1;   /* of the open attribute */
    uint64_t                name_len;

    xet_status_t            status;
    uint64_t                pos;

    xet_zt_state_t          state;
    xet_zt_record_t         record;        /* the open one, or those named */
    xet_zt_field_t          field;
    uint32_t                seen[XET_ZT_RECORD_SHARD + 1];
    uint32_t                required[XET_ZT_RECORD_SHARD + 1];
    unsigned                numbers;

    uint8_t                 key[XET_ZT_FIELD_MAX];
    size_t                  key_len;       /* may be more than key has */

    uint8_t                *text;          /* the buffer */
    size_t                  text_room;
    size_t                  text_len;
    size_t                  text_start;    /* of the open text */

    xet_zt_root_t           root;
    xet_zt_object_t         object;
    xet_zt_component_t     *component;
    xet_zt_shard_t          shard;

    xet_zt_capture_t        root_attributes;
    xet_zt_capture_t        attributes;
    xet_zt_capture_t       *capture;       /* the open one, or NULL */
};


/* What the items of a record mean; never called while skipping. */
xet_status_t xet_zt_record_item(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);

/* A text begins or goes on. */
xet_status_t xet_zt_record_text(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);

void xet_zt_record_open(xet_zt_manifest_t *m, xet_zt_record_t record);

/* Whether the record has had all fields that it must have. */
int xet_zt_record_complete(const xet_zt_manifest_t *m,
    xet_zt_record_t record);

/* The value that begins with item is skipped; m->skip_depth is around it. */
xet_status_t xet_zt_manifest_skip(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);

/* The map that begins with item is skipped, and kept if it is wanted. */
xet_status_t xet_zt_manifest_attributes(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);


#endif /* _XET_ZT_RECORD_H_INCLUDED_ */
