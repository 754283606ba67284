
/*
 * Checks that the keys of maps are distinct (container 1) or sorted
 * (container 2).
 *
 * Purpose:    rejects a manifest with a duplicate key in any map, because two
 *             readers might see two different tensors under one name.
 * States:     a stack with a part for every open map: all keys of the map (in
 *             1.x they have no order), or its last key (in container 2 keys
 *             ascend, so a key is compared only with the key before it).
 * Ownership:  the stack is allocated here and grows with the largest map.
 * Threads:    one at a time.
 *
 * In 1.x, a key takes 16 bytes, so a million objects take 16 MB.  A key of up
 * to 15 bytes is stored unchanged, with its length in byte 15.  A longer key is
 * stored as 16 bytes of its BLAKE3 hash, with a mark in byte 15.  A hash
 * collision, which takes about 2^63 tries to find, only causes the file to be
 * rejected, so the hash needs no secret key.  Only text keys are compared:
 * maps that are not interpreted may have other keys, but no lookup uses them.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


#define XET_ZT_KEY_HEAD    10              /* type, width, value */
#define XET_ZT_KEY_INLINE  15
#define XET_ZT_KEY_HASHED  0x80

#define XET_ZT_KEYS_FEW    24              /* max keys to compare pairwise */


static xet_status_t xet_zt_keys_begin(xet_zt_keys_t *k,
    const xet_cbor_item_t *item, unsigned depth);
static xet_status_t xet_zt_keys_data(xet_zt_keys_t *k,
    const xet_cbor_item_t *item, unsigned depth);
static void xet_zt_keys_hash(xet_zt_keys_t *k, const uint8_t *data,
    size_t len);
static xet_status_t xet_zt_keys_push(xet_zt_keys_t *k, unsigned depth);
static xet_status_t xet_zt_keys_compare(xet_zt_keys_t *k, unsigned depth);
static xet_status_t xet_zt_keys_distinct(xet_zt_key_t *keys, size_t n);
static void xet_zt_keys_merge(const xet_zt_key_t *from, size_t middle,
    size_t n, xet_zt_key_t *to);
static int xet_zt_keys_order(const xet_zt_key_t *one, const xet_zt_key_t *two);


xet_status_t
xet_zt_keys_init(xet_zt_keys_t *k, int ordered, size_t limit, size_t key_max)
{
    memset(k, 0, sizeof(xet_zt_keys_t));

    k->ordered = ordered ? 1 : 0;
    k->limit = limit;
    k->key_max = key_max;

    if (!ordered) {
        return XET_OK;
    }

    /* the last key of each level, and the key that is being read */

    k->last = malloc((XET_CBOR_DEPTH + 1) * (XET_ZT_KEY_HEAD + key_max));

    return k->last ? XET_OK : XET_NOMEM;
}


void
xet_zt_keys_destroy(xet_zt_keys_t *k)
{
    free(k->slots.items);
    free(k->last);
}


xet_status_t
xet_zt_keys_item(xet_zt_keys_t *k, const xet_cbor_item_t *item, unsigned depth)
{
    xet_status_t   rc;
    xet_zt_key_t  *slots;

    if (item->kind == XET_CBOR_END && item->value == XET_CBOR_MAP) {

        /* the map that has ended was one level deeper */

        if (k->ordered || k->slots.n == k->base[depth + 1]) {
            return XET_OK;
        }

        slots = k->slots.items;

        rc = xet_zt_keys_distinct(slots + k->base[depth + 1],
                                  k->slots.n - k->base[depth + 1]);

        k->slots.n = k->base[depth + 1];

        return rc;
    }

    if (item->key) {

        if (item->kind != XET_CBOR_DATA) {
            rc = xet_zt_keys_begin(k, item, depth);

            if (rc != XET_OK) {
                return rc;
            }
        }

        if (k->open) {
            return xet_zt_keys_data(k, item, depth);
        }
    }

    if (item->kind != XET_CBOR_MAP && item->kind != XET_CBOR_ARRAY) {
        return XET_OK;
    }

    if (k->ordered) {
        k->base[depth] = k->base[depth - 1] + k->last_len[depth - 1];
        k->last_len[depth] = 0;

    } else {
        k->base[depth] = k->slots.n;
    }

    return XET_OK;
}


static xet_status_t
xet_zt_keys_begin(xet_zt_keys_t *k, const xet_cbor_item_t *item,
    unsigned depth)
{
    unsigned   i;
    uint8_t   *p;

    if (!k->ordered) {
        k->open = (item->kind == XET_CBOR_TEXT);
        k->hashed = 0;
        k->len = 0;

        return XET_OK;
    }

    if (item->kind == XET_CBOR_ARRAY || item->kind == XET_CBOR_MAP) {
        return XET_ZT_MANIFEST;
    }

    p = k->last + k->base[depth] + k->last_len[depth];

    p[0] = (uint8_t) item->kind;
    p[1] = (uint8_t) item->width;

    for (i = 0; i < 8; i++) {
        p[2 + i] = (uint8_t) (item->value >> (56 - 8 * i));
    }

    k->len = XET_ZT_KEY_HEAD;
    k->open = 1;

    return XET_OK;
}


static xet_status_t
xet_zt_keys_data(xet_zt_keys_t *k, const xet_cbor_item_t *item, unsigned depth)
{
    if (k->ordered) {

        if (item->len > XET_ZT_KEY_HEAD + k->key_max - k->len) {
            return XET_ZT_NAME_LEN;
        }

        if (item->len) {
            memcpy(k->last + k->base[depth] + k->last_len[depth] + k->len,
                   item->data, item->len);
        }

    } else if (!k->hashed && item->len <= XET_ZT_KEY_INLINE - k->len) {

        if (item->len) {
            memcpy(k->key + k->len, item->data, item->len);
        }

    } else {
        xet_zt_keys_hash(k, item->data, item->len);
    }

    k->len += item->len;

    if (item->more) {
        return XET_OK;
    }

    k->open = 0;

    return k->ordered ? xet_zt_keys_compare(k, depth)
                      : xet_zt_keys_push(k, depth);
}


static void
xet_zt_keys_hash(xet_zt_keys_t *k, const uint8_t *data, size_t len)
{
    if (!k->hashed) {
        blake3_hasher_init(&k->hasher);
        blake3_hasher_update(&k->hasher, k->key, k->len);
        k->hashed = 1;
    }

    blake3_hasher_update(&k->hasher, data, len);
}


static xet_status_t
xet_zt_keys_push(xet_zt_keys_t *k, unsigned depth)
{
    xet_zt_key_t  *slot;

    if (depth != k->exempt && k->slots.n - k->base[depth] >= k->limit) {
        return XET_ZT_KEYS;
    }

    slot = xet_zt_array_push(&k->slots, sizeof(xet_zt_key_t));
    if (slot == NULL) {
        return XET_NOMEM;
    }

    if (k->hashed) {
        blake3_hasher_finalize(&k->hasher, k->key, XET_ZT_KEY_SLOT);
        k->key[XET_ZT_KEY_INLINE] |= XET_ZT_KEY_HASHED;

    } else {
        memset(k->key + k->len, 0, XET_ZT_KEY_INLINE - k->len);
        k->key[XET_ZT_KEY_INLINE] = (uint8_t) k->len;
    }

    memcpy(slot->bytes, k->key, XET_ZT_KEY_SLOT);

    return XET_OK;
}


/*
 * Container 2: compares the encoded keys, by type, length and bytes (RFC 8949,
 * section 4.2.1).  Heads of keys are stored at full width, which does not
 * change their order.
 */

static xet_status_t
xet_zt_keys_compare(xet_zt_keys_t *k, unsigned depth)
{
    int       rc;
    size_t    n, last_len;
    uint8_t  *last, *key;

    last = k->last + k->base[depth];
    last_len = k->last_len[depth];
    key = last + last_len;

    if (last_len) {
        n = (last_len < k->len) ? last_len : k->len;

        rc = memcmp(last, key, n);

        /*
         * if the first n bytes are equal, so are the heads, and thus the
         * lengths
         */

        if (rc == 0) {
            return XET_ZT_DUPLICATE;
        }

        if (rc > 0) {
            return XET_ZT_ORDER;
        }
    }

    memmove(last, key, k->len);

    k->last_len[depth] = k->len;

    return XET_OK;
}


/*
 * 1.x: sorts the keys of a map that has ended and compares neighbours.  A merge
 * sort needs few comparisons for any input; those of qsort() are calls.
 */

static xet_status_t
xet_zt_keys_distinct(xet_zt_key_t *keys, size_t n)
{
    size_t         i, j, run, end, middle;
    xet_status_t   rc;
    xet_zt_key_t  *room, *from, *to, *swap;

    if (n <= XET_ZT_KEYS_FEW) {

        for (i = 1; i < n; i++) {
            for (j = 0; j < i; j++) {
                if (xet_zt_keys_order(&keys[i], &keys[j]) == 0) {
                    return XET_ZT_DUPLICATE;
                }
            }
        }

        return XET_OK;
    }

    room = malloc(n * sizeof(xet_zt_key_t));
    if (room == NULL) {
        return XET_NOMEM;
    }

    from = keys;
    to = room;

    for (run = 1; run < n; run *= 2) {

        for (i = 0; i < n; i = end) {
            middle = (n - i > run) ? run : n - i;
            end = (n - i > 2 * run) ? i + 2 * run : n;

            xet_zt_keys_merge(from + i, middle, end - i, to + i);
        }

        swap = from;
        from = to;
        to = swap;
    }

    rc = XET_OK;

    for (i = 1; i < n; i++) {
        if (xet_zt_keys_order(&from[i - 1], &from[i]) == 0) {
            rc = XET_ZT_DUPLICATE;
            break;
        }
    }

    free(room);

    return rc;
}


/* Merges two sorted runs: the first "middle" keys, and the rest of n keys. */

static void
xet_zt_keys_merge(const xet_zt_key_t *from, size_t middle, size_t n,
    xet_zt_key_t *to)
{
    size_t  i, j;

    i = 0;
    j = middle;

    while (i < middle && j < n) {
        *to++ = (xet_zt_keys_order(&from[j], &from[i]) < 0) ? from[j++]
                                                            : from[i++];
    }

    memcpy(to, from + i, (middle - i) * sizeof(xet_zt_key_t));
    memcpy(to + (middle - i), from + j, (n - j) * sizeof(xet_zt_key_t));
}


/* Any order will do, such as that of two numbers in the machine's own order. */

static int
xet_zt_keys_order(const xet_zt_key_t *one, const xet_zt_key_t *two)
{
    uint64_t  a[2], b[2];

    memcpy(a, one->bytes, XET_ZT_KEY_SLOT);
    memcpy(b, two->bytes, XET_ZT_KEY_SLOT);

    if (a[0] != b[0]) {
        return (a[0] < b[0]) ? -1 : 1;
    }

    return (a[1] > b[1]) - (a[1] < b[1]);
}
