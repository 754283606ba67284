
/*
 * Chunks that need not be sent: those of xorbs that the server has told of,
 * and those of xorbs that this process makes, or an earlier run of it.
 *
 * Dedup answers give chunk hashes under a key.  Chunks under one key are a
 * collection; a chunk is looked for in each of them.  The first collection is
 * in clear and has our own chunks.  Memory is some 60 bytes a chunk, half of
 * it for its hash.
 *
 * Hashes of others need not be hashes: where they are in a table depends on a
 * number that nobody else knows, or they could be made to be all in one place.
 */

#ifndef _XET_CLI_DEDUP_H_INCLUDED_
#define _XET_CLI_DEDUP_H_INCLUDED_


#include "xet_cli.h"


#define XET_CLI_DEDUP_KEYS  8          /* collections; more are not learnt */
#define XET_CLI_DEDUP_SEED  (XET_HASH_LEN / 4)


/* A xorb, by its number: in the order in which they were made known. */

typedef struct {
    xet_hash_t          hash;
    unsigned            collection;
    uint32_t            count;         /* of chunks */
    uint32_t            room;
    uint32_t            raw_size;      /* of our own */
    uint32_t            stored_size;
    unsigned            resumed:1;     /* an earlier run has sent it */
    unsigned            told:1;        /* a shard tells of it, or will */
    uint8_t            *hashes;        /* 32 bytes each, under the key */
    uint32_t           *lengths;       /* raw */
} xet_cli_known_t;


typedef struct {
    uint32_t            xorb;
    uint32_t            chunk;
} xet_cli_place_t;


typedef struct {
    uint8_t             key[XET_HASH_LEN];
    unsigned            keyed:1;
    uint64_t           *slots;         /* 0: free, else xorb + 1 and chunk */
    size_t              size;          /* a power of two */
    size_t              used;
} xet_cli_collection_t;


typedef struct {
    xet_cli_known_t       *xorbs;
    uint32_t               nxorbs;
    uint32_t               room;
    xet_cli_collection_t   collections[XET_CLI_DEDUP_KEYS];
    unsigned               ncollections;

    uint32_t              *names;      /* of xorbs by hash: number + 1 */
    size_t                 names_size; /* a power of two */
    size_t                 names_used;
    uint64_t               seed[XET_CLI_DEDUP_SEED];
} xet_cli_dedup_t;


void xet_cli_dedup_init(xet_cli_dedup_t *d);
void xet_cli_dedup_free(xet_cli_dedup_t *d);

/*
 * A xorb without chunks so far, and a chunk of it; the hash is what the
 * collection has, keyed or not.  XET_CLI_OK or XET_CLI_ERROR, told of.
 */
int xet_cli_dedup_xorb(xet_cli_dedup_t *d, unsigned collection,
    uint32_t *xorb);
int xet_cli_dedup_add(xet_cli_dedup_t *d, uint32_t xorb,
    const uint8_t *hash, uint32_t length);

/* Gives a xorb its hash, under which it is found. */
int xet_cli_dedup_name(xet_cli_dedup_t *d, uint32_t xorb,
    const xet_hash_t *hash);

/* Where a chunk is; 0 when it is not known. */
int xet_cli_dedup_find(const xet_cli_dedup_t *d, const xet_hash_t *hash,
    xet_cli_place_t *place);

/* Whether this chunk is at that place. */
int xet_cli_dedup_at(const xet_cli_dedup_t *d, xet_cli_place_t place,
    const xet_hash_t *hash, uint32_t length);

/*
 * Takes back what an earlier run has sent: the server has it no more.
 */
void xet_cli_dedup_forget(xet_cli_dedup_t *d);

/*
 * Takes in the answer to a dedup query.  XET_CLI_OK, also when it is of no
 * use, XET_CLI_INTERRUPTED, or XET_CLI_ERROR, told of.
 */
int xet_cli_dedup_learn(xet_cli_dedup_t *d, const uint8_t *data, size_t len);


#endif /* _XET_CLI_DEDUP_H_INCLUDED_ */
