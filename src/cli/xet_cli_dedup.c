
/*
 * Chunks that need not be sent.
 */


#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "xet_cli_dedup.h"
#include "xet_cli_progress.h"


/* Offsets in the footer of a shard. */

#define XET_CLI_DEDUP_FOOTER_KEY      72
#define XET_CLI_DEDUP_FOOTER_EXPIRES  112


/* A dedup answer while it is read. */

typedef struct {
    xet_cli_dedup_t  *dedup;
    unsigned          collection;
    uint32_t          xorb;
    unsigned          skip:1;          /* the xorb is known already */
    int               rc;
} xet_cli_dedup_reader_t;


static size_t xet_cli_dedup_first(const xet_cli_dedup_t *d,
    const uint8_t *hash, size_t size);
static void xet_cli_dedup_index(xet_cli_dedup_t *d, uint32_t xorb);
static int xet_cli_dedup_named(const xet_cli_dedup_t *d,
    const xet_hash_t *hash);
static int xet_cli_dedup_insert(xet_cli_dedup_t *d, unsigned collection,
    xet_cli_place_t place);
static int xet_cli_dedup_grow(xet_cli_dedup_t *d, xet_cli_collection_t *c);
static int xet_cli_dedup_put(const xet_cli_dedup_t *d,
    xet_cli_collection_t *c, uint64_t slot, const uint8_t *hash);
static int xet_cli_dedup_key(xet_cli_dedup_t *d, const uint8_t *key,
    unsigned *collection);
static xet_status_t xet_cli_dedup_record(void *ctx,
    const xet_shard_record_t *rec);


static const uint8_t *
xet_cli_dedup_hash(const xet_cli_dedup_t *d, uint64_t slot)
{
    return d->xorbs[(slot >> 16) - 1].hashes + (slot & 0xffff) * XET_HASH_LEN;
}


void
xet_cli_dedup_init(xet_cli_dedup_t *d)
{
    size_t  i;

    memset(d, 0, sizeof(xet_cli_dedup_t));

    d->ncollections = 1;

    if (getrandom(d->seed, sizeof(d->seed), 0) != sizeof(d->seed)) {

        /* an early boot: slower at worst */

        for (i = 0; i < XET_CLI_DEDUP_SEED; i++) {
            d->seed[i] = (xet_cli_now() + i) * UINT64_C(0x9e3779b97f4a7c15);
        }
    }
}


/*
 * The place where the search for a hash begins.  For any two hashes of 32-bit
 * words it is the same for one in 2^32 seeds.
 */

static size_t
xet_cli_dedup_first(const xet_cli_dedup_t *d, const uint8_t *hash,
    size_t size)
{
    size_t    i;
    uint64_t  sum;

    sum = 0;

    for (i = 0; i < XET_CLI_DEDUP_SEED; i++) {
        sum += d->seed[i] * xet_get_u32(hash + 4 * i);
    }

    return (size_t) (sum >> 32) & (size - 1);
}


void
xet_cli_dedup_free(xet_cli_dedup_t *d)
{
    unsigned  i;
    uint32_t  n;

    for (n = 0; n < d->nxorbs; n++) {
        free(d->xorbs[n].hashes);
        free(d->xorbs[n].lengths);
    }

    for (i = 0; i < d->ncollections; i++) {
        free(d->collections[i].slots);
    }

    free(d->names);
    free(d->xorbs);
}


int
xet_cli_dedup_xorb(xet_cli_dedup_t *d, unsigned collection, uint32_t *xorb)
{
    uint32_t          n;
    xet_cli_known_t  *xorbs;

    if (d->nxorbs == d->room) {
        n = d->room ? d->room * 2 : 64;
        xorbs = realloc(d->xorbs, n * sizeof(xet_cli_known_t));

        if (xorbs == NULL) {
            return xet_cli_no_memory();
        }

        d->xorbs = xorbs;
        d->room = n;
    }

    *xorb = d->nxorbs++;

    memset(&d->xorbs[*xorb], 0, sizeof(xet_cli_known_t));
    d->xorbs[*xorb].collection = collection;

    return XET_CLI_OK;
}


int
xet_cli_dedup_name(xet_cli_dedup_t *d, uint32_t xorb, const xet_hash_t *hash)
{
    size_t     i, size;
    uint32_t  *names, *old;

    if (d->names_used >= d->names_size / 2) {
        old = d->names;
        size = d->names_size;

        names = calloc(size ? size * 2 : 64, sizeof(uint32_t));

        if (names == NULL) {
            return xet_cli_no_memory();
        }

        d->names = names;
        d->names_size = size ? size * 2 : 64;
        d->names_used = 0;

        for (i = 0; i < size; i++) {
            if (old[i]) {
                xet_cli_dedup_index(d, old[i] - 1);
            }
        }

        free(old);
    }

    d->xorbs[xorb].hash = *hash;

    xet_cli_dedup_index(d, xorb);

    return XET_CLI_OK;
}


static void
xet_cli_dedup_index(xet_cli_dedup_t *d, uint32_t xorb)
{
    size_t  i;

    for (i = xet_cli_dedup_first(d, d->xorbs[xorb].hash.bytes, d->names_size);
         d->names[i];
         i = (i + 1) & (d->names_size - 1))
    {
        /* void */
    }

    d->names[i] = xorb + 1;
    d->names_used++;
}


/* A xorb that was forgotten is still in the table, and has no hash. */

static int
xet_cli_dedup_named(const xet_cli_dedup_t *d, const xet_hash_t *hash)
{
    size_t  i;

    if (d->names_size == 0) {
        return 0;
    }

    for (i = xet_cli_dedup_first(d, hash->bytes, d->names_size); d->names[i];
         i = (i + 1) & (d->names_size - 1))
    {
        if (xet_hash_equal(&d->xorbs[d->names[i] - 1].hash, hash)) {
            return 1;
        }
    }

    return 0;
}


int
xet_cli_dedup_add(xet_cli_dedup_t *d, uint32_t xorb, const uint8_t *hash,
    uint32_t length)
{
    uint32_t          n, *lengths;
    uint8_t          *hashes;
    xet_cli_known_t  *x;
    xet_cli_place_t   place;

    x = &d->xorbs[xorb];

    if (x->count == x->room) {
        n = x->room ? x->room * 2 : 4;

        hashes = realloc(x->hashes, n * XET_HASH_LEN);

        if (hashes) {
            x->hashes = hashes;
        }

        lengths = realloc(x->lengths, n * sizeof(uint32_t));

        if (lengths) {
            x->lengths = lengths;
        }

        if (hashes == NULL || lengths == NULL) {
            return xet_cli_no_memory();
        }

        x->room = n;
    }

    memcpy(x->hashes + x->count * XET_HASH_LEN, hash, XET_HASH_LEN);
    x->lengths[x->count] = length;

    place.xorb = xorb;
    place.chunk = x->count++;

    return xet_cli_dedup_insert(d, x->collection, place);
}


/* Of places of one chunk the first one stays. */

static int
xet_cli_dedup_insert(xet_cli_dedup_t *d, unsigned collection,
    xet_cli_place_t place)
{
    int                    rc;
    uint64_t               slot;
    xet_cli_collection_t  *c;

    c = &d->collections[collection];

    if (c->used >= c->size / 2) {
        rc = xet_cli_dedup_grow(d, c);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    slot = ((uint64_t) place.xorb + 1) << 16 | place.chunk;

    c->used += (size_t) xet_cli_dedup_put(d, c, slot,
                                          xet_cli_dedup_hash(d, slot));

    return XET_CLI_OK;
}


static int
xet_cli_dedup_grow(xet_cli_dedup_t *d, xet_cli_collection_t *c)
{
    size_t     i, size;
    uint64_t  *slots, *old;

    old = c->slots;
    size = c->size;

    slots = calloc(size ? size * 2 : 4096, sizeof(uint64_t));

    if (slots == NULL) {
        return xet_cli_no_memory();
    }

    c->slots = slots;
    c->size = size ? size * 2 : 4096;

    for (i = 0; i < size; i++) {
        if (old[i]) {
            (void) xet_cli_dedup_put(d, c, old[i],
                                     xet_cli_dedup_hash(d, old[i]));
        }
    }

    free(old);

    return XET_CLI_OK;
}


static int
xet_cli_dedup_put(const xet_cli_dedup_t *d, xet_cli_collection_t *c,
    uint64_t slot, const uint8_t *hash)
{
    size_t  i;

    for (i = xet_cli_dedup_first(d, hash, c->size); c->slots[i];
         i = (i + 1) & (c->size - 1))
    {
        if (memcmp(xet_cli_dedup_hash(d, c->slots[i]), hash, XET_HASH_LEN)
            == 0)
        {
            return 0;
        }
    }

    c->slots[i] = slot;

    return 1;
}


int
xet_cli_dedup_find(const xet_cli_dedup_t *d, const xet_hash_t *hash,
    xet_cli_place_t *place)
{
    size_t                       i;
    unsigned                     n;
    xet_hash_t                   keyed;
    const uint8_t               *h;
    const xet_cli_collection_t  *c;

    for (n = 0; n < d->ncollections; n++) {
        c = &d->collections[n];
        h = hash->bytes;

        if (c->used == 0) {
            continue;
        }

        if (c->keyed) {
            xet_hash_keyed(c->key, hash->bytes, XET_HASH_LEN, &keyed);
            h = keyed.bytes;
        }

        for (i = xet_cli_dedup_first(d, h, c->size); c->slots[i];
             i = (i + 1) & (c->size - 1))
        {
            if (memcmp(xet_cli_dedup_hash(d, c->slots[i]), h, XET_HASH_LEN)
                == 0)
            {
                place->xorb = (uint32_t) (c->slots[i] >> 16) - 1;
                place->chunk = (uint32_t) (c->slots[i] & 0xffff);
                return 1;
            }
        }
    }

    return 0;
}


int
xet_cli_dedup_at(const xet_cli_dedup_t *d, xet_cli_place_t place,
    const xet_hash_t *hash, uint32_t length)
{
    xet_hash_t                   keyed;
    const uint8_t               *h;
    const xet_cli_known_t       *x;
    const xet_cli_collection_t  *c;

    x = &d->xorbs[place.xorb];

    if (place.chunk >= x->count || x->lengths[place.chunk] != length) {
        return 0;
    }

    c = &d->collections[x->collection];
    h = hash->bytes;

    if (c->keyed) {
        xet_hash_keyed(c->key, hash->bytes, XET_HASH_LEN, &keyed);
        h = keyed.bytes;
    }

    return memcmp(x->hashes + place.chunk * XET_HASH_LEN, h, XET_HASH_LEN)
           == 0;
}


void
xet_cli_dedup_forget(xet_cli_dedup_t *d)
{
    uint32_t               i, n;
    uint64_t               slot;
    xet_cli_known_t       *x;
    xet_cli_collection_t  *c;

    c = &d->collections[0];

    if (c->size) {
        memset(c->slots, 0, c->size * sizeof(uint64_t));
        c->used = 0;
    }

    for (n = 0; n < d->nxorbs; n++) {
        x = &d->xorbs[n];

        if (x->resumed) {
            memset(&x->hash, 0, sizeof(x->hash));
            x->count = 0;
        }

        for (i = 0; x->collection == 0 && i < x->count; i++) {
            slot = ((uint64_t) n + 1) << 16 | i;

            c->used += (size_t) xet_cli_dedup_put(d, c, slot,
                                                  xet_cli_dedup_hash(d, slot));
        }
    }
}


/*
 * An answer that is no shard with a footer of the version that we know
 * teaches nothing, nor does one that has expired: its key, if it has one, is
 * not that of other answers any more, and its xorbs may be gone.
 */

int
xet_cli_dedup_learn(xet_cli_dedup_t *d, const uint8_t *data, size_t len)
{
    uint64_t                expires;
    const uint8_t          *footer;
    xet_shard_parser_t      p;
    xet_cli_dedup_reader_t  reader;

    if (len < XET_SHARD_RECORD_LEN + XET_SHARD_FOOTER_LEN) {
        return XET_CLI_OK;
    }

    footer = data + len - XET_SHARD_FOOTER_LEN;
    expires = xet_get_u64(footer + XET_CLI_DEDUP_FOOTER_EXPIRES);

    if (xet_get_u64(footer) != XET_SHARD_FOOTER_VERSION
        || (expires && expires <= (uint64_t) time(NULL))
        || !xet_cli_dedup_key(d, footer + XET_CLI_DEDUP_FOOTER_KEY,
                              &reader.collection))
    {
        return XET_CLI_OK;
    }

    reader.dedup = d;
    reader.skip = 1;
    reader.rc = XET_CLI_OK;

    xet_shard_parser_init(&p, xet_cli_dedup_record, &reader);

    (void) xet_shard_parser_feed(&p, data, len - XET_SHARD_FOOTER_LEN);

    return reader.rc;
}


static int
xet_cli_dedup_key(xet_cli_dedup_t *d, const uint8_t *key,
    unsigned *collection)
{
    unsigned               i;
    xet_hash_t             zero;
    xet_cli_collection_t  *c;

    memset(&zero, 0, sizeof(zero));

    if (memcmp(key, zero.bytes, XET_HASH_LEN) == 0) {
        *collection = 0;
        return 1;
    }

    for (i = 1; i < d->ncollections; i++) {
        if (memcmp(key, d->collections[i].key, XET_HASH_LEN) == 0) {
            *collection = i;
            return 1;
        }
    }

    if (i == XET_CLI_DEDUP_KEYS) {
        return 0;
    }

    c = &d->collections[i];

    memcpy(c->key, key, XET_HASH_LEN);
    c->keyed = 1;

    *collection = d->ncollections++;

    return 1;
}


static xet_status_t
xet_cli_dedup_record(void *ctx, const xet_shard_record_t *rec)
{
    xet_cli_dedup_t         *d;
    xet_cli_dedup_reader_t  *reader;

    reader = ctx;
    d = reader->dedup;

    if (xet_cli_interrupted) {
        reader->rc = XET_CLI_INTERRUPTED;

    } else if (rec->kind == XET_SHARD_REC_XORB) {

        /* the places of more chunks would not fit into slots */

        reader->skip = rec->count == 0 || rec->count > XET_XORB_CHUNKS_MAX
                       || xet_hash_is_zero(&rec->hash)
                       || xet_cli_dedup_named(d, &rec->hash);

        if (!reader->skip) {
            reader->rc = xet_cli_dedup_xorb(d, reader->collection,
                                            &reader->xorb);

            if (reader->rc == XET_CLI_OK) {
                reader->rc = xet_cli_dedup_name(d, reader->xorb, &rec->hash);
            }
        }

    } else if (rec->kind == XET_SHARD_REC_CHUNK && !reader->skip) {
        reader->rc = xet_cli_dedup_add(d, reader->xorb, rec->hash.bytes,
                                       rec->raw_length);
    }

    return (reader->rc == XET_CLI_OK) ? XET_OK : XET_NOMEM;
}
