
/*
 * The table of known chunks.
 *
 * Purpose:    maps the hash of a chunk to a position where the chunk is
 *             stored.
 * States:     none, except the contents of the table.
 * Ownership:  the creator owns the table; all data is copied into it.
 * Threads:    one at a time.
 *
 * Entries are a ring, in the order in which they were added.  So the next
 * chunk of a xorb is the next entry, and the oldest entry is dropped first.
 * The chain of a bucket has only the first entry of a hash.  Later entries of
 * a repeated chunk are only in the ring, where xet_known_next() finds them.  So
 * chains are short for any data.
 *
 * Xorbs that have a name are also in chains, by their names.
 */


#include <stdlib.h>

#include "xet_ingest.h"


#define XET_KNOWN_NONE   UINT32_MAX    /* no xorb */
#define XET_KNOWN_XORBS  16            /* initial; a power of two */
#define XET_KNOWN_MIX    UINT64_C(0x9e3779b97f4a7c15)


typedef struct {
    uint8_t     hash[XET_HASH_LEN];
    uint32_t    next;                  /* next in chain, plus one; 0: none */
    uint32_t    xorb;
    unsigned    chunk:31;
    unsigned    chained:1;
} xet_known_entry_t;


typedef struct {
    xet_hash_t  hash;
    uint64_t    serial;
    uint32_t    chunk_count;
    uint32_t    entries;               /* ring entries; named and 0: free */
    uint32_t    next;                  /* next free xorb, or next in chain,
                                          plus one */
    unsigned    named:1;
    unsigned    made:1;
    unsigned    key:8;                 /* number of the key; 0: plain */
} xet_known_xorb_t;


struct xet_known_s {
    uint32_t            max;
    uint32_t            first;         /* the oldest entry */
    uint32_t            n;
    uint32_t            mask;          /* number of buckets - 1 */

    uint64_t            serial;
    uint32_t            xorbs_n;
    uint32_t            xorbs_max;
    uint32_t            free;

    xet_known_entry_t  *entries;
    uint32_t           *buckets;       /* first entry of each hash chain,
                                          plus one; 0: empty chain */
    xet_known_xorb_t   *xorbs;
    uint32_t           *names;         /* first named xorb of each hash
                                          chain, plus one; 0: empty chain;
                                          xorbs_max elements */

    unsigned            nkeys;
    uint8_t             keys[XET_KNOWN_KEYS][XET_HASH_LEN];
    uint64_t            seed[XET_KNOWN_SEED];
};


static xet_status_t xet_known_grow(xet_known_t *k);
static void xet_known_list(xet_known_t *k, uint32_t xorb);
static void xet_known_forget(xet_known_t *k);
static void xet_known_release(xet_known_t *k, uint32_t xorb);
static int xet_known_look(const xet_known_t *k, const uint8_t *hash,
    xet_known_ref_t *ref);
static void xet_known_ref(const xet_known_t *k, uint32_t entry,
    xet_known_ref_t *ref);
static int xet_known_valid(const xet_known_t *k, const xet_known_ref_t *ref);


/*
 * Maps a hash to a number.  Two different hashes are mapped to the same number
 * by only one seed in 2^32.
 */

static inline uint32_t
xet_known_number(const xet_known_t *k, const uint8_t *hash)
{
    unsigned  i;
    uint64_t  sum;

    sum = 0;

    for (i = 0; i < XET_KNOWN_SEED; i++) {
        sum += k->seed[i] * xet_get_u32(hash + 4 * i);
    }

    return (uint32_t) (sum >> 32);
}


static inline uint32_t *
xet_known_bucket(const xet_known_t *k, const uint8_t *hash)
{
    return &k->buckets[xet_known_number(k, hash) & k->mask];
}


static inline uint32_t *
xet_known_names(const xet_known_t *k, const xet_hash_t *name)
{
    return &k->names[xet_known_number(k, name->bytes) & (k->xorbs_max - 1)];
}


xet_known_t *
xet_known_create(uint32_t max, const uint64_t *seed)
{
    unsigned      i;
    uint32_t      buckets;
    xet_known_t  *k;

    k = calloc(1, sizeof(xet_known_t));
    if (k == NULL) {
        return NULL;
    }

    for (buckets = 1; buckets < max; buckets *= 2) { /* void */ }

    k->max = max;
    k->mask = buckets - 1;
    k->xorbs_max = XET_KNOWN_XORBS;
    k->free = XET_KNOWN_NONE;

    /* any seed works, even zeros */

    for (i = 0; i < XET_KNOWN_SEED; i++) {
        k->seed[i] = seed[i] ^ (XET_KNOWN_MIX * (2 * i + 1));
    }

    k->entries = malloc((size_t) max * sizeof(xet_known_entry_t));
    k->buckets = calloc(buckets, sizeof(uint32_t));
    k->xorbs = malloc(k->xorbs_max * sizeof(xet_known_xorb_t));
    k->names = calloc(k->xorbs_max, sizeof(uint32_t));

    if (k->entries == NULL || k->buckets == NULL || k->xorbs == NULL
        || k->names == NULL)
    {
        xet_known_destroy(k);
        return NULL;
    }

    return k;
}


void
xet_known_destroy(xet_known_t *k)
{
    if (k == NULL) {
        return;
    }

    free(k->entries);
    free(k->buckets);
    free(k->xorbs);
    free(k->names);
    free(k);
}


xet_status_t
xet_known_xorb(xet_known_t *k, const xet_hash_t *hash, uint32_t chunk_count,
    uint32_t *xorb)
{
    xet_status_t       rc;
    xet_known_xorb_t  *x;

    if (k->free == XET_KNOWN_NONE && k->xorbs_n == k->xorbs_max) {
        rc = xet_known_grow(k);

        if (rc != XET_OK) {
            return rc;
        }
    }

    if (k->free != XET_KNOWN_NONE) {
        *xorb = k->free;
        k->free = k->xorbs[*xorb].next;

    } else {
        *xorb = k->xorbs_n++;
    }

    x = &k->xorbs[*xorb];

    memset(x, 0, sizeof(xet_known_xorb_t));

    x->serial = k->serial++;
    x->chunk_count = chunk_count;

    if (hash) {
        x->hash = *hash;
        x->named = 1;

        xet_known_list(k, *xorb);
    }

    return XET_OK;
}


/* Doubles the room for xorbs, when no number is free. */

static xet_status_t
xet_known_grow(xet_known_t *k)
{
    uint32_t           i, n, *names;
    xet_known_xorb_t  *x;

    n = 2 * k->xorbs_max;

    x = realloc(k->xorbs, n * sizeof(xet_known_xorb_t));
    if (x == NULL) {
        return XET_NOMEM;
    }

    k->xorbs = x;

    names = calloc(n, sizeof(uint32_t));
    if (names == NULL) {
        return XET_NOMEM;
    }

    free(k->names);

    k->names = names;
    k->xorbs_max = n;

    for (i = 0; i < k->xorbs_n; i++) {
        if (x[i].named) {
            xet_known_list(k, i);
        }
    }

    return XET_OK;
}


/* Puts a xorb into the chain of its name. */

static void
xet_known_list(xet_known_t *k, uint32_t xorb)
{
    uint32_t  *bucket;

    bucket = xet_known_names(k, &k->xorbs[xorb].hash);

    k->xorbs[xorb].next = *bucket;
    *bucket = xorb + 1;
}


void
xet_known_name(xet_known_t *k, uint32_t xorb, const xet_hash_t *hash,
    uint32_t chunk_count)
{
    k->xorbs[xorb].hash = *hash;
    k->xorbs[xorb].chunk_count = chunk_count;
    k->xorbs[xorb].named = 1;

    xet_known_list(k, xorb);
    xet_known_release(k, xorb);
}


unsigned
xet_known_key(xet_known_t *k, const uint8_t *key)
{
    unsigned  i;

    for (i = 0; i < k->nkeys; i++) {
        if (memcmp(k->keys[i], key, XET_HASH_LEN) == 0) {
            return i + 1;
        }
    }

    if (i == XET_KNOWN_KEYS) {
        return 0;
    }

    memcpy(k->keys[i], key, XET_HASH_LEN);

    return ++k->nkeys;
}


void
xet_known_mark(xet_known_t *k, uint32_t xorb, unsigned key, unsigned made)
{
    k->xorbs[xorb].key = key & 0xff;
    k->xorbs[xorb].made = made ? 1 : 0;
}


/* Frees the number of a xorb that has a name and no chunks in the table. */

static void
xet_known_release(xet_known_t *k, uint32_t xorb)
{
    uint32_t          *link;
    xet_known_xorb_t  *x;

    x = &k->xorbs[xorb];

    if (x->entries || !x->named) {
        return;
    }

    link = xet_known_names(k, &x->hash);

    while (*link != xorb + 1) {
        link = &k->xorbs[*link - 1].next;
    }

    *link = x->next;

    x->next = k->free;
    k->free = xorb;
}


void
xet_known_add(xet_known_t *k, uint32_t xorb, uint32_t chunk,
    const uint8_t *hash, xet_known_ref_t *ref)
{
    uint32_t            i, *bucket;
    xet_known_ref_t     other;
    xet_known_entry_t  *e;

    /*
     * the new chunk is counted first, since the chunk that is dropped may be
     * the only other chunk of the xorb
     */

    k->xorbs[xorb].entries++;

    if (k->n == k->max) {
        xet_known_forget(k);
    }

    i = (uint32_t) (((uint64_t) k->first + k->n) % k->max);
    e = &k->entries[i];

    memcpy(e->hash, hash, XET_HASH_LEN);
    e->xorb = xorb;
    e->chunk = chunk & 0x7fffffff;
    e->chained = !xet_known_look(k, hash, &other);

    if (e->chained) {
        bucket = xet_known_bucket(k, hash);
        e->next = *bucket;
        *bucket = i + 1;
    }

    k->n++;

    if (ref) {
        xet_known_ref(k, i, ref);
    }
}


static void
xet_known_forget(xet_known_t *k)
{
    uint32_t            i, *link;
    xet_known_entry_t  *e;

    i = k->first;
    e = &k->entries[i];

    if (e->chained) {
        link = xet_known_bucket(k, e->hash);

        while (*link != i + 1) {
            link = &k->entries[*link - 1].next;
        }

        *link = e->next;
    }

    k->first = (i + 1 < k->max) ? i + 1 : 0;
    k->n--;

    k->xorbs[e->xorb].entries--;
    xet_known_release(k, e->xorb);
}


int
xet_known_has(const xet_known_t *k, const xet_hash_t *xorb)
{
    uint32_t                 i;
    const xet_known_xorb_t  *x;

    for (i = *xet_known_names(k, xorb); i != 0; i = x->next) {
        x = &k->xorbs[i - 1];

        if (x->entries && xet_hash_equal(&x->hash, xorb)) {
            return 1;
        }
    }

    return 0;
}


int
xet_known_find(const xet_known_t *k, const uint8_t *hash,
    xet_known_ref_t *ref)
{
    unsigned    i;
    xet_hash_t  keyed;

    if (xet_known_look(k, hash, ref)) {
        return 1;
    }

    for (i = 0; i < k->nkeys; i++) {
        xet_hash_keyed(k->keys[i], hash, XET_HASH_LEN, &keyed);

        if (xet_known_look(k, keyed.bytes, ref)) {
            return 1;
        }
    }

    return 0;
}


/* Finds an entry by its hash as stored in the table, plain or keyed. */

static int
xet_known_look(const xet_known_t *k, const uint8_t *hash,
    xet_known_ref_t *ref)
{
    uint32_t                  i;
    const xet_known_entry_t  *e;

    for (i = *xet_known_bucket(k, hash); i != 0; i = e->next) {
        e = &k->entries[i - 1];

        if (memcmp(e->hash, hash, XET_HASH_LEN) == 0) {
            xet_known_ref(k, i - 1, ref);
            return 1;
        }
    }

    return 0;
}


static void
xet_known_ref(const xet_known_t *k, uint32_t entry, xet_known_ref_t *ref)
{
    const xet_known_entry_t  *e;

    e = &k->entries[entry];

    ref->entry = entry;
    ref->xorb = e->xorb;
    ref->serial = k->xorbs[e->xorb].serial;
    ref->chunk = e->chunk;
}


/*
 * Returns whether the entry of *ref is in the ring and still has the same
 * chunk.
 */

static int
xet_known_valid(const xet_known_t *k, const xet_known_ref_t *ref)
{
    uint32_t                  at;
    const xet_known_entry_t  *e;

    e = &k->entries[ref->entry];
    at = (ref->entry >= k->first) ? ref->entry - k->first
                                     : ref->entry + (k->max - k->first);

    return at < k->n
           && e->chunk == ref->chunk
           && k->xorbs[e->xorb].serial == ref->serial;
}


int
xet_known_next(const xet_known_t *k, xet_known_ref_t *ref,
    const uint8_t *hash)
{
    unsigned                  key;
    xet_hash_t                keyed;
    xet_known_ref_t           next;
    const xet_known_entry_t  *e;

    if (!xet_known_valid(k, ref)) {
        return 0;
    }

    key = k->xorbs[ref->xorb].key;

    if (key) {
        xet_hash_keyed(k->keys[key - 1], hash, XET_HASH_LEN, &keyed);
        hash = keyed.bytes;
    }

    next = *ref;
    next.entry = (ref->entry + 1 < k->max) ? ref->entry + 1 : 0;
    next.chunk = ref->chunk + 1;

    e = &k->entries[next.entry];

    if (!xet_known_valid(k, &next)
        || memcmp(e->hash, hash, XET_HASH_LEN) != 0)
    {
        return 0;
    }

    *ref = next;

    return 1;
}


int
xet_known_last(const xet_known_t *k, const xet_known_ref_t *ref)
{
    return xet_known_valid(k, ref)
           && k->xorbs[ref->xorb].named
           && k->xorbs[ref->xorb].chunk_count == ref->chunk + 1;
}


int
xet_known_made(const xet_known_t *k, const xet_known_ref_t *ref)
{
    return k->xorbs[ref->xorb].made;
}


const xet_hash_t *
xet_known_hash(const xet_known_t *k, const xet_known_ref_t *ref)
{
    const xet_known_xorb_t  *x;

    x = &k->xorbs[ref->xorb];

    return x->named ? &x->hash : NULL;
}
