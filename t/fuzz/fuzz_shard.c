
/*
 * Shards: any split of the input gives the same verdict and the same records,
 * and an accepted shard can be built again from its records.
 *
 * The first byte determines the pieces, the rest is the shard.
 */


#include "xet_test_pool.h"
#include "shard/xet_test_shard.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


typedef struct {
    uint64_t    digest;
    uint64_t    n;
    uint64_t    last;              /* kind of the last record */
    xet_buf_t  *build;             /* NULL: parse only */
} fuzz_log_t;


/*
 * Adds a record to an FNV-1a hash, without the members that the builder omits.
 */

static uint64_t
fuzz_digest(uint64_t digest, const xet_shard_record_t *rec)
{
    size_t              i;
    xet_shard_record_t  r;

    r = *rec;

    if (r.kind == XET_SHARD_REC_TERM || r.kind == XET_SHARD_REC_XORB) {
        r.flags = 0;
    }

    for (i = 0; i < sizeof(r); i++) {
        digest = (digest ^ ((uint8_t *) &r)[i]) * UINT64_C(0x100000001b3);
    }

    return digest;
}


static xet_status_t
fuzz_record(void *ctx, const xet_shard_record_t *rec)
{
    fuzz_log_t  *log;

    log = ctx;

    check(rec->offset == log->n * XET_SHARD_RECORD_LEN);

    if (rec->kind == XET_SHARD_REC_TERM) {
        check(rec->chunk_start < rec->chunk_end && rec->chunk_end <= 8192);
        check(rec->raw_length > 0 && rec->raw_length <= 1u << 30);
    }

    if (rec->kind == XET_SHARD_REC_CHUNK) {
        check(rec->raw_length > 0 && rec->raw_length <= XET_CHUNK_MAX);
    }

    log->n++;
    log->last = rec->kind;
    log->digest = fuzz_digest(log->digest, rec);

    if (log->build) {
        xet_test_shard_rebuild(log->build, rec);
    }

    return XET_OK;
}


/*
 * Parses a shard that arrives in pieces.  pieces is 0: one piece; 1: single
 * bytes; 2 to 255: pieces of random sizes below this number.
 */

static xet_status_t
fuzz_parse(const uint8_t *data, size_t size, unsigned pieces,
    fuzz_log_t *log, xet_shard_parser_t *p)
{
    size_t        n;
    uint64_t      state;
    xet_status_t  status, end;

    log->digest = 1;
    log->n = 0;
    state = pieces;

    xet_shard_parser_init(p, fuzz_record, log);
    status = XET_OK;

    while (size) {
        n = size;

        if (pieces == 1) {
            n = 1;

        } else if (pieces) {
            n = (size_t) (xet_test_random(&state) % pieces);
        }

        n = (n < size) ? n : size;

        status = xet_shard_parser_feed(p, data, n);

        data += n;
        size -= n;
    }

    end = xet_shard_parser_finish(p);

    check(status == XET_OK ? end == XET_SHARD_TRUNCATED
                           : end == (status == XET_DONE ? XET_OK : status));
    check(xet_shard_parser_finish(p) == end);

    return end;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t              len;
    uint8_t            *built;
    unsigned            pieces;
    xet_buf_t           b;
    fuzz_log_t          one, two;
    xet_status_t        status;
    xet_test_pool_t     pool;
    xet_shard_parser_t  p, q;

    if (size == 0) {
        return 0;
    }

    pieces = *data++;
    size--;

    memset(&pool, 0, sizeof(pool));
    xet_buf_init(&b, xet_test_alloc, &pool, 0);

    one.build = &b;
    status = fuzz_parse(data, size, 0, &one, &p);

    two.build = NULL;
    check(fuzz_parse(data, size, pieces ? pieces : 1, &two, &q) == status);

    check(one.digest == two.digest && one.n == two.n);
    check(p.files == q.files && p.xorbs == q.xorbs && p.terms == q.terms
          && p.files_end == q.files_end && p.offset == q.offset);

    check(p.offset <= size);
    check(status != XET_SHARD_TRUNCATED || p.offset == size);

    if (status == XET_OK) {
        check(one.last == XET_SHARD_REC_XORBS_END);
        check(p.offset == one.n * XET_SHARD_RECORD_LEN);

        built = xet_test_flatten(&pool, &b, &len);

        check(built != NULL && len == p.offset);
        check(fuzz_parse(built, len, 0, &two, &q) == XET_OK);
        check(one.digest == two.digest && one.n == two.n);
    }

    xet_test_pool_free(&pool);

    return 0;
}
