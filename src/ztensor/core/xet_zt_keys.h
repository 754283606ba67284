
/*
 * The keys of the maps in a manifest: distinct where the format is 1.x, in
 * ascending order where it is container 2.
 */

#ifndef _XET_ZT_KEYS_H_INCLUDED_
#define _XET_ZT_KEYS_H_INCLUDED_


#include <blake3.h>

#include "xet_cbor.h"


#define XET_ZT_KEY_SLOT  16


typedef struct {
    uint8_t         bytes[XET_ZT_KEY_SLOT];
} xet_zt_key_t;


typedef struct {
    unsigned        ordered:1;
    unsigned        open:1;            /* inside of a key */
    unsigned        hashed:1;          /* the open key is in the hasher */

    size_t          limit;             /* keys of a map, where not ordered */
    size_t          key_max;           /* bytes of a key, where ordered */
    unsigned        exempt;            /* the depth without that limit */

    /* where the keys of the map at a level begin, in slots or in bytes */
    size_t          base[XET_CBOR_DEPTH + 1];

    /* 1.x: a stack of all keys of the open maps */
    xet_zt_key_t   *slots;
    size_t          n;
    size_t          room;

    /* container 2: a stack of the last keys of the open maps */
    uint8_t        *last;
    size_t          last_len[XET_CBOR_DEPTH + 1];

    /* the open key */
    size_t          len;
    uint8_t         key[XET_ZT_KEY_SLOT];
    blake3_hasher   hasher;
} xet_zt_keys_t;


/* XET_OK or XET_NOMEM; to be destroyed in either case. */
xet_status_t xet_zt_keys_init(xet_zt_keys_t *k, int ordered, size_t limit,
    size_t key_max);
void xet_zt_keys_destroy(xet_zt_keys_t *k);

/*
 * Has to be called with every item, and with the depth of the decoder after
 * it.  XET_OK; XET_ZT_DUPLICATE; XET_NOMEM.  Where ordered: XET_ZT_ORDER;
 * XET_ZT_NAME_LEN for a key of more than key_max bytes; XET_ZT_MANIFEST for an
 * array or a map as a key.  Where not ordered, keys that come twice are found
 * at the end of their map; XET_ZT_KEYS for more than limit keys in a map that
 * is not at the depth k->exempt.
 */
xet_status_t xet_zt_keys_item(xet_zt_keys_t *k, const xet_cbor_item_t *item,
    unsigned depth);


#endif /* _XET_ZT_KEYS_H_INCLUDED_ */
