
/*
 * Tests the shard verifier: the reference file; random terms in random xorbs,
 * checked against a one-shot computation; and every error.
 */


#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_shard.h"
#include "xet_reference.h"


#define TEST_CHUNKS  64


/* A stored xorb. */

typedef struct {
    xet_hash_t  hash;
    uint32_t    n;
    uint8_t     hashes[8192 * 32];
    uint8_t     raw_ends[8192 * 4];
    uint8_t     stored_ends[8192 * 4];
} test_xorb_t;


static test_xorb_t  test_xorbs[3];


static uint32_t
test_end(const uint8_t *ends, uint32_t n)
{
    return n ? xet_get_u32(ends + (n - 1) * 4) : 0;
}


static void
test_xorb_add(test_xorb_t *x, const uint8_t *hash, uint32_t raw,
    uint32_t stored)
{
    memcpy(x->hashes + x->n * 32, hash, 32);
    xet_put_u32(x->raw_ends + x->n * 4, test_end(x->raw_ends, x->n) + raw);
    xet_put_u32(x->stored_ends + x->n * 4,
                test_end(x->stored_ends, x->n) + stored);
    x->n++;
}


static void
test_xorb_random(test_xorb_t *x, uint64_t *state, uint32_t n)
{
    uint8_t   hash[32];
    uint32_t  raw;

    x->n = 0;
    xet_test_random_hash(state, x->hash.bytes);

    while (x->n < n) {
        xet_test_random_hash(state, hash);
        raw = 1 + (uint32_t) (xet_test_random(state) % XET_CHUNK_MAX);
        test_xorb_add(x, hash, raw, 9 + raw / 2);
    }
}


static void
test_slice(xet_shard_slice_t *slice, xet_shard_record_t *seg,
    const test_xorb_t *x, uint32_t start, uint32_t end)
{
    memset(slice, 0, sizeof(xet_shard_slice_t));
    memset(seg, 0, sizeof(xet_shard_record_t));

    slice->known = 1;
    slice->own = 1;
    slice->chunk_count = x->n;
    slice->n = end - start;
    slice->raw_before = test_end(x->raw_ends, start);
    slice->stored_before = test_end(x->stored_ends, start);
    slice->hashes = x->hashes + start * 32;
    slice->raw_ends = x->raw_ends + start * 4;
    slice->stored_ends = x->stored_ends + start * 4;

    seg->kind = XET_SHARD_REC_TERM;
    seg->hash = x->hash;
    seg->chunk_start = start;
    seg->chunk_end = end;
    seg->raw_length = test_end(x->raw_ends, end) - slice->raw_before;
}


/*
 * Verifies random terms; the file hash is computed separately, from the chunks.
 */

static void
test_random_files(void)
{
    unsigned              i, k, run, bad, accepted;
    uint32_t              start, end, terms;
    uint64_t              state, size;
    xet_hash_t            root, file, wrong, verification, first;
    xet_term_t            term;
    xet_merkle_t          merkle;
    xet_shard_slice_t     slice;
    xet_shard_record_t    seg;
    xet_shard_verifier_t  v;

    state = 1;
    bad = 0;
    accepted = 0;

    for (run = 0; run < 300; run++) {

        struct {
            unsigned  xorb;
            uint32_t  start;
            uint32_t  end;
        } t[12];

        for (i = 0; i < 3; i++) {
            test_xorb_random(&test_xorbs[i], &state,
                             1 + (uint32_t) (xet_test_random(&state)
                                             % TEST_CHUNKS));
        }

        terms = (uint32_t) (xet_test_random(&state) % 13);
        size = 0;

        xet_merkle_init(&merkle, &xet_suite_default);

        for (i = 0; i < terms; i++) {
            t[i].xorb = (unsigned) (xet_test_random(&state) % 3);
            start = (uint32_t) (xet_test_random(&state)
                                % test_xorbs[t[i].xorb].n);
            end = start + 1 + (uint32_t) (xet_test_random(&state)
                                    % (test_xorbs[t[i].xorb].n - start));
            t[i].start = start;
            t[i].end = end;

            for (k = start; k < end; k++) {
                uint32_t  len = test_end(test_xorbs[t[i].xorb].raw_ends, k + 1)
                                - test_end(test_xorbs[t[i].xorb].raw_ends, k);

                xet_merkle_add(&merkle,
                               test_xorbs[t[i].xorb].hashes + k * 32, len);
                size += len;
            }
        }

        xet_merkle_finish(&merkle, &root);
        xet_hash_file(&xet_suite_default, &root, &file);

        wrong = file;
        wrong.bytes[run % 32] ^= (uint8_t) (1 << run % 8);

        for (k = 0; k < 2; k++) {
            xet_shard_verifier_init(&v, &xet_suite_default,
                                    k ? &wrong : &file);

            for (i = 0; i < terms; i++) {
                test_slice(&slice, &seg, &test_xorbs[t[i].xorb], t[i].start,
                           t[i].end);
                xet_hash_verification(&xet_suite_default, slice.hashes,
                                      slice.n, &verification);

                bad += xet_shard_verifier_term(&v, &seg,
                                               i % 2 ? &verification : NULL,
                                               &slice, &term)
                       != XET_OK;

                bad += !xet_hash_equal(&term.xorb, &seg.hash)
                       || term.chunk_start != t[i].start
                       || term.chunk_end != t[i].end
                       || term.stored_start != slice.stored_before
                       || term.stored_end
                          != test_end(test_xorbs[t[i].xorb].stored_ends,
                                      t[i].end)
                       || term.raw_length != seg.raw_length;
            }

            bad += v.size != size || v.terms != terms;

            if (terms) {
                memcpy(first.bytes,
                       test_xorbs[t[0].xorb].hashes + t[0].start * 32, 32);

                bad += !xet_hash_equal(&v.first_hash, &first)
                       || !xet_hash_equal(&v.first_xorb,
                                          &test_xorbs[t[0].xorb].hash)
                       || v.first_chunk != t[0].start;
            }

            if (k == 0) {
                accepted += xet_shard_verifier_finish(&v) == XET_OK;

            } else {
                bad += xet_shard_verifier_finish(&v) != XET_SHARD_FILE_HASH;
            }
        }
    }

    xet_is_u64(accepted, 300, "300 files of random terms are accepted");
    xet_is_u64(bad, 0, "their terms, sizes, first chunks; wrong hashes not");
}


typedef enum {
    TEST_UNKNOWN = 0,
    TEST_PAST_END,
    TEST_SLICE_SHORT,
    TEST_SLICE_LONG,
    TEST_REVERSED,
    TEST_EMPTY,
    TEST_LENGTH_SHORT,
    TEST_LENGTH_LONG,
    TEST_SIZE,
    TEST_VERIFICATION,
    TEST_HASH_SPOILT,
    TEST_RAW_EQUAL,
    TEST_RAW_FALLS,
    TEST_RAW_LONG,
    TEST_STORED_EQUAL,
    TEST_STORED_FALLS,
    TEST_BEFORE_RAW,
    TEST_BEFORE_STORED,
    TEST_BEFORE_PAST,
    TEST_NOTHING
} test_fault_t;


static const struct {
    const char    *name;
    xet_status_t   want;
} test_faults[] = {
    { "the xorb is not here", XET_SHARD_XORB },
    { "one chunk past the end of the xorb", XET_SHARD_TERM },
    { "a slice of too few entries", XET_SHARD_TERM },
    { "a slice of too many entries", XET_SHARD_TERM },
    { "a reversed range", XET_SHARD_TERM },
    { "an empty range", XET_SHARD_TERM },
    { "a byte short", XET_SHARD_TERM_LEN },
    { "a byte long", XET_SHARD_TERM_LEN },
    { "a file of 2^63 bytes", XET_SHARD_TERM_LEN },
    { "a verification hash with a bit off", XET_SHARD_VERIFICATION },
    { "a chunk hash with a bit off", XET_SHARD_VERIFICATION },
    { "raw ends that stand still", XET_INTERNAL },
    { "raw ends that fall", XET_INTERNAL },
    { "a chunk of 131073 bytes", XET_INTERNAL },
    { "stored ends that stand still", XET_INTERNAL },
    { "stored ends that fall", XET_INTERNAL },
    { "raw bytes before chunk 0", XET_INTERNAL },
    { "stored bytes before chunk 0", XET_INTERNAL },
    { "the end before is past the first", XET_INTERNAL },
    { "nothing wrong", XET_OK }
};


static void
test_errors(unsigned own)
{
    int                   zero;
    uint64_t              state;
    unsigned              fault;
    xet_hash_t            verification, file;
    xet_term_t            term;
    xet_status_t          want;
    test_xorb_t          *x;
    xet_shard_slice_t     s;
    xet_shard_record_t    seg;
    xet_shard_verifier_t  v;

    memset(&file, 1, sizeof(file));

    for (fault = 0; fault <= TEST_NOTHING; fault++) {
        state = 99;
        x = &test_xorbs[0];
        test_xorb_random(x, &state, 10);

        zero = fault == TEST_BEFORE_RAW || fault == TEST_BEFORE_STORED;

        test_slice(&s, &seg, x, zero ? 0 : 2, 9);
        s.own = own;

        xet_hash_verification(&xet_suite_default, s.hashes, s.n,
                              &verification);
        xet_shard_verifier_init(&v, &xet_suite_default, &file);

        switch ((test_fault_t) fault) {

        case TEST_UNKNOWN:
            memset(&s, 0, sizeof(s));
            break;
        case TEST_PAST_END:
            s.chunk_count = 8;
            break;
        case TEST_SLICE_SHORT:
            s.n--;
            break;
        case TEST_SLICE_LONG:
            s.n++;
            break;
        case TEST_REVERSED:
            seg.chunk_end = 1;
            s.n = (uint32_t) -1;
            break;
        case TEST_EMPTY:
            seg.chunk_end = 2;
            s.n = 0;
            break;
        case TEST_LENGTH_SHORT:
            seg.raw_length--;
            break;
        case TEST_LENGTH_LONG:
            seg.raw_length++;
            break;
        case TEST_SIZE:
            v.size = (uint64_t) INT64_MAX - seg.raw_length + 1;
            break;
        case TEST_VERIFICATION:
            verification.bytes[31] ^= 0x80;
            break;
        case TEST_HASH_SPOILT:
            x->hashes[8 * 32] ^= 1;
            break;
        case TEST_RAW_EQUAL:
            memcpy(x->raw_ends + 5 * 4, x->raw_ends + 4 * 4, 4);
            break;
        case TEST_RAW_FALLS:
            xet_put_u32(x->raw_ends + 5 * 4, 1);
            break;
        case TEST_RAW_LONG:
            xet_put_u32(x->raw_ends + 8 * 4,
                        test_end(x->raw_ends, 8) + XET_CHUNK_MAX + 1);
            break;
        case TEST_STORED_EQUAL:
            memcpy(x->stored_ends + 8 * 4, x->stored_ends + 7 * 4, 4);
            break;
        case TEST_STORED_FALLS:
            xet_put_u32(x->stored_ends + 4 * 4, 1);
            break;
        case TEST_BEFORE_RAW:
            s.raw_before = 1;
            break;
        case TEST_BEFORE_STORED:
            s.stored_before = 1;
            break;
        case TEST_BEFORE_PAST:
            s.raw_before = 0xffffffff;
            break;
        case TEST_NOTHING:
            v.size = (uint64_t) INT64_MAX - seg.raw_length;
            break;
        }

        want = test_faults[fault].want;

        /*
         * a xorb that the client does not own is reported as missing, even if
         * the term has other faults
         */

        if (!own && want != XET_OK && want != XET_INTERNAL) {
            want = XET_SHARD_XORB;
        }

        xet_is_u64(xet_shard_verifier_term(&v, &seg, &verification, &s,
                                           &term),
                   want, test_faults[fault].name);
    }

    xet_shard_verifier_init(&v, &xet_suite_default, &file);
    xet_is_u64(xet_shard_verifier_term(&v, &seg, NULL, &s, &term),
               own ? XET_OK : XET_SHARD_XORB, "no verification hash");

    /* the ends are overwritten with dots, so they do not increase */

    memset(x->raw_ends, '.', 4 * 10);
    memset(x->stored_ends, '.', 4 * 10);
    verification.bytes[0] ^= 1;

    xet_shard_verifier_init(&v, &xet_suite_default, &file);
    xet_is_u64(xet_shard_verifier_term(&v, &seg, &verification, &s, &term),
               own ? XET_INTERNAL : XET_SHARD_XORB, "noise");
}


/*
 * Tests declared hashes of files with and without terms: zeros and other
 * values.
 */

static void
test_empty(void)
{
    uint64_t              state;
    xet_hash_t            hash;
    xet_term_t            term;
    xet_shard_slice_t     s;
    xet_shard_record_t    seg;
    xet_shard_verifier_t  v;

    memset(&hash, 0, sizeof(hash));

    xet_shard_verifier_init(&v, &xet_suite_default, &hash);
    xet_is_u64(xet_shard_verifier_finish(&v), XET_OK, "the empty file");
    xet_is_u64(v.size, 0, "has no bytes");

    state = 4;
    test_xorb_random(&test_xorbs[0], &state, 4);
    test_slice(&s, &seg, &test_xorbs[0], 0, 4);

    xet_shard_verifier_init(&v, &xet_suite_default, &hash);
    xet_is_u64(xet_shard_verifier_term(&v, &seg, NULL, &s, &term), XET_OK,
               "a term of a file that says it is empty");
    xet_is_u64(xet_shard_verifier_finish(&v), XET_SHARD_FILE_HASH,
               "has not the hash of the empty file");

    xet_hash_file(&xet_suite_default, &seg.hash, &hash);
    xet_shard_verifier_init(&v, &xet_suite_default, &hash);
    xet_is_u64(xet_shard_verifier_finish(&v), XET_SHARD_FILE_HASH,
               "no terms, but a hash");
}


/*
 * Cuts each slice of a xorb out of each slice that includes it, and tries to
 * cut others.
 */

static void
test_cut(void)
{
    uint32_t            start, end, first, last;
    uint64_t            state, bad;
    xet_shard_slice_t   s, want;
    xet_shard_record_t  seg;

    state = 6;
    bad = 0;
    test_xorb_random(&test_xorbs[0], &state, 9);

    for (start = 0; start < 9; start++) {
        for (end = start + 1; end <= 9; end++) {
            for (first = start; first <= 9; first++) {
                for (last = first + 1; last <= 10; last++) {

                    test_slice(&s, &seg, &test_xorbs[0], start, end);
                    xet_shard_slice_cut(&s, first - start, last - first);

                    if (last > end) {
                        bad += s.n != 0;
                        continue;
                    }

                    test_slice(&want, &seg, &test_xorbs[0], first, last);
                    bad += memcmp(&s, &want, sizeof(s)) != 0;
                }
            }
        }
    }

    test_slice(&s, &seg, &test_xorbs[0], 0, 9);
    xet_shard_slice_cut(&s, 0xffffffff, 2);
    bad += s.n != 0;

    xet_is_u64(bad, 0, "slices of slices");
}


/*
 * Tests a term of all 8192 chunks, followed by terms of only the last and the
 * first chunk.
 */

static void
test_long(void)
{
    uint64_t              state;
    xet_hash_t            hash;
    xet_term_t            term;
    xet_shard_slice_t     s;
    xet_shard_record_t    seg;
    xet_shard_verifier_t  v;

    state = 5;
    test_xorb_random(&test_xorbs[0], &state, 8192);
    memset(&hash, 3, sizeof(hash));

    xet_shard_verifier_init(&v, &xet_suite_default, &hash);

    test_slice(&s, &seg, &test_xorbs[0], 0, 8192);
    xet_is_u64(xet_shard_verifier_term(&v, &seg, NULL, &s, &term), XET_OK,
               "a term of 8192 chunks");
    xet_is_u64(term.chunk_end, 8192, "its end");

    test_slice(&s, &seg, &test_xorbs[0], 8191, 8192);
    xet_is_u64(xet_shard_verifier_term(&v, &seg, NULL, &s, &term), XET_OK,
               "the last chunk of the same xorb");

    test_slice(&s, &seg, &test_xorbs[0], 0, 1);
    xet_is_u64(xet_shard_verifier_term(&v, &seg, NULL, &s, &term), XET_OK,
               "and its first");
    xet_is_u64(v.terms, 3, "three terms");
}


typedef struct {
    xet_shard_verifier_t  v;
    xet_shard_record_t    segment;
    xet_term_t            term;
    unsigned              verified;
} test_pass_t;


static xet_status_t
test_pass(void *ctx, const xet_shard_record_t *rec)
{
    test_pass_t         *pass;
    xet_shard_slice_t    s;
    xet_shard_record_t   seg;

    pass = ctx;

    switch (rec->kind) {

    case XET_SHARD_REC_FILE:
        xet_shard_verifier_init(&pass->v, &xet_suite_default, &rec->hash);
        return XET_OK;

    case XET_SHARD_REC_TERM:
        pass->segment = *rec;
        return XET_OK;

    case XET_SHARD_REC_VERIFICATION:
        test_slice(&s, &seg, &test_xorbs[0], pass->segment.chunk_start,
                   pass->segment.chunk_end);
        pass->verified++;

        return xet_shard_verifier_term(&pass->v, &pass->segment, &rec->hash,
                                       &s, &pass->term);

    case XET_SHARD_REC_FILES_END:
        return xet_shard_verifier_finish(&pass->v);

    default:
        return XET_OK;
    }
}


/*
 * Verifies a complete reference shard: one file with one term, with its chunk
 * list.
 */

static void
test_reference(const char *name, uint64_t size)
{
    size_t               len;
    uint8_t             *data;
    xet_shard_parser_t   p;

    static test_pass_t   pass;

    data = xet_reference_load(name, &len);

    if (data == NULL) {
        return;
    }

    memset(&pass, 0, sizeof(pass));

    xet_shard_parser_init(&p, test_pass, &pass);
    xet_shard_parser_feed(&p, data, len);

    xet_is_u64(xet_shard_parser_finish(&p), XET_OK, name);
    xet_is_u64(pass.verified, 1, "  its term is verified");
    xet_is_u64(pass.v.size, size, "  size of the file");
    xet_is_u64(pass.term.raw_length, size, "  length of the term");

    data[48] ^= 1;

    xet_shard_parser_init(&p, test_pass, &pass);
    xet_shard_parser_feed(&p, data, len);

    xet_is_u64(xet_shard_parser_finish(&p), XET_SHARD_FILE_HASH,
               "  with another file hash");

    free(data);
}


static void
test_references(void)
{
    size_t      i, n;
    xet_hash_t  hash;

    static xet_reference_chunk_t  chunks[XET_REFERENCE_CHUNKS + 1];

    n = xet_reference_chunks(chunks, XET_REFERENCE_CHUNKS + 1);

    if (n == 0) {
        xet_skip("reference data absent");
        return;
    }

    test_xorbs[0].n = 0;

    for (i = 0; i < n; i++) {
        test_xorb_add(&test_xorbs[0], chunks[i].hash.bytes, chunks[i].size,
                      chunks[i].size / 4 + 9);
    }

    xet_is_u64(test_xorbs[0].n, XET_REFERENCE_CHUNKS,
               "chunks of the reference file");

    test_reference(XET_REFERENCE "ev-population.csv.shard.verification",
                   XET_REFERENCE_SIZE);
    test_reference(XET_REFERENCE "ev-population.csv.shard"
                   ".verification-no-footer", XET_REFERENCE_SIZE);

    /* the hash of a single-chunk xorb is the hash of its chunk */

    (void) xet_hash_parse(&hash,
                          (const uint8_t *) "7ecc173ca401f28f6252d753534e7f88"
                                            "21a48635af1e3845494ece7e92ce4517",
                          64);
    test_xorbs[0].n = 0;
    test_xorb_add(&test_xorbs[0], hash.bytes, 98308, 1000);

    test_reference("xet/hf_xet-client-shards/"
                   "one-file-one-chunk.no-footer.shard", 98308);
}


int
main(void)
{
    test_empty();
    test_random_files();
    test_errors(1);
    test_errors(0);
    test_cut();
    test_long();
    test_references();

    return xet_done();
}
