
/*
 * Answers to dedup queries.
 */


#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xet_cli_transfer.h"


/* Offsets in the footer of a shard. */

#define XET_CLI_DEDUP_FOOTER_KEY      72
#define XET_CLI_DEDUP_FOOTER_EXPIRES  112


/* An answer while it is read. */

typedef struct {
    xet_ingest_t     *in;
    const uint8_t    *key;             /* NULL: hashes are in clear */
    xet_xorb_list_t   xorb;
    uint32_t          n;               /* chunks of the xorb so far */
    uint8_t          *hashes;
    int               rc;              /* exit code */
} xet_cli_dedup_reader_t;


static xet_status_t xet_cli_dedup_record(void *ctx,
    const xet_shard_record_t *rec);


/*
 * An answer that does not end in a footer of XET_SHARD_FOOTER_VERSION is
 * ignored, and so is an answer that has expired: its key, if it has one, is
 * no longer the key of other answers, and its xorbs may be gone.
 */

int
xet_cli_dedup_learn(xet_ingest_t *in, const uint8_t *data, size_t len)
{
    uint64_t                expires;
    xet_hash_t              key;
    xet_status_t            rc;
    const uint8_t          *footer;
    xet_shard_parser_t      p;
    xet_cli_dedup_reader_t  reader;

    if (len < XET_SHARD_RECORD_LEN + XET_SHARD_FOOTER_LEN) {
        return XET_CLI_OK;
    }

    footer = data + len - XET_SHARD_FOOTER_LEN;
    expires = xet_get_u64(footer + XET_CLI_DEDUP_FOOTER_EXPIRES);

    if (xet_get_u64(footer) != XET_SHARD_FOOTER_VERSION
        || (expires && expires <= (uint64_t) time(NULL)))
    {
        return XET_CLI_OK;
    }

    memset(&reader, 0, sizeof(reader));
    memcpy(key.bytes, footer + XET_CLI_DEDUP_FOOTER_KEY, XET_HASH_LEN);

    reader.in = in;
    reader.key = xet_hash_is_zero(&key) ? NULL : key.bytes;
    reader.hashes = malloc(XET_XORB_CHUNKS_MAX * XET_HASH_LEN);
    reader.xorb.hashes = reader.hashes;

    reader.rc = XET_CLI_OK;

    if (reader.hashes == NULL) {
        return xet_cli_no_memory();
    }

    xet_shard_parser_init(&p, xet_cli_dedup_record, &reader);

    rc = xet_shard_parser_feed(&p, data, len - XET_SHARD_FOOTER_LEN);

    free(reader.hashes);

    return (rc == XET_NOMEM) ? xet_cli_no_memory() : reader.rc;
}


static xet_status_t
xet_cli_dedup_record(void *ctx, const xet_shard_record_t *rec)
{
    xet_cli_dedup_reader_t  *r;

    r = ctx;

    if (xet_cli_interrupted) {
        r->rc = XET_CLI_INTERRUPTED;
        return XET_INTERNAL;
    }

    if (rec->kind == XET_SHARD_REC_XORB) {
        r->xorb.hash = rec->hash;
        r->xorb.chunk_count = rec->count;
        r->n = 0;

        return XET_OK;
    }

    if (rec->kind != XET_SHARD_REC_CHUNK
        || r->xorb.chunk_count > XET_XORB_CHUNKS_MAX)
    {
        return XET_OK;
    }

    memcpy(r->hashes + r->n++ * XET_HASH_LEN, rec->hash.bytes, XET_HASH_LEN);

    if (r->n < r->xorb.chunk_count) {
        return XET_OK;
    }

    return r->key ? xet_ingest_known_keyed(r->in, &r->xorb, r->key)
                  : xet_ingest_known(r->in, &r->xorb);
}
