
/*
 * Tests the shard parser: reference shards, every split, every truncation,
 * every error, and values at and beyond each limit.
 */


#include <jansson.h>

#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_shard.h"
#include "xet_reference.h"


#define TEST_RECORDS_MAX  4096


typedef struct {
    unsigned            n;
    unsigned            stop;      /* number of the record that fails, from 1 */
    xet_status_t        error;
    xet_shard_record_t  rec[TEST_RECORDS_MAX];
} test_log_t;


/* The shard for the damage tests, with the offsets of its records. */

typedef struct {
    xet_test_pool_t     pool;
    uint8_t            *data;
    size_t              len;
} test_shard_t;


static test_log_t  test_log, test_log_two;


static xet_status_t
test_handler(void *ctx, const xet_shard_record_t *rec)
{
    test_log_t  *log;

    log = ctx;

    if (log->n < TEST_RECORDS_MAX) {
        log->rec[log->n] = *rec;
    }

    log->n++;

    return (log->n == log->stop) ? log->error : XET_OK;
}


static xet_status_t
test_parse(const uint8_t *data, size_t len, size_t split, test_log_t *log,
    xet_shard_parser_t *p)
{
    size_t        n;
    xet_status_t  status;

    log->n = 0;

    xet_shard_parser_init(p, test_handler, log);

    status = XET_OK;

    while (len) {
        n = (split && split < len) ? split : len;

        status = xet_shard_parser_feed(p, data, n);

        data += n;
        len -= n;
    }

    if (status == XET_DONE) {
        status = XET_OK;

    } else if (status != XET_OK
               && xet_shard_parser_feed(p, data, 0) != status)
    {
        return XET_STATUS_MAX;
    }

    n = (size_t) xet_shard_parser_finish(p);

    return (status != XET_OK && n != status) ? XET_STATUS_MAX
                                             : (xet_status_t) n;
}


static int
test_same_log(const test_log_t *a, const test_log_t *b)
{
    return a->n == b->n
           && memcmp(a->rec, b->rec, a->n * sizeof(xet_shard_record_t)) == 0;
}


/*
 * Records: 0 header; 1 file with 2 segments, verification and metadata (2-6); 7
 * empty file with metadata (8); 9 file with 1 segment and verification (10-11);
 * 12 end; 13 xorb with 2 chunks (14-15); 16 xorb without chunks; 17 end.
 */

#define TEST_RECORDS  18


static void
test_shard_build(test_shard_t *s, int footer)
{
    xet_buf_t           b;
    xet_hash_t          h[6], zero;
    xet_shard_footer_t  f;
    uint64_t            state;
    unsigned            i;

    memset(s, 0, sizeof(test_shard_t));
    memset(&f, 0, sizeof(f));
    memset(&zero, 0, sizeof(zero));

    state = 7;

    for (i = 0; i < 6; i++) {
        xet_test_random_hash(&state, h[i].bytes);
    }

    xet_buf_init(&b, xet_test_alloc, &s->pool, 100);

    xet_shard_build_header(&b, footer ? XET_SHARD_FOOTER_LEN : 0);
    xet_shard_build_file(&b, &h[0], 0xc0000000, 2);
    xet_shard_build_term(&b, &h[1], 1000, 0, 8192);
    xet_shard_build_term(&b, &h[2], 1u << 30, 8191, 8192);
    xet_shard_build_verification(&b, &h[3]);
    xet_shard_build_verification(&b, &h[4]);
    xet_shard_build_metadata(&b, h[5].bytes);
    xet_shard_build_file(&b, &zero, 0xc0000000, 0);
    xet_shard_build_metadata(&b, zero.bytes);
    xet_shard_build_file(&b, &h[2], 0x80000001, 1);
    xet_shard_build_term(&b, &h[1], 1, 3, 4);
    xet_shard_build_verification(&b, &h[5]);
    xet_shard_build_bookend(&b);
    xet_shard_build_xorb(&b, &h[1], 2, 0xffffffff, 77);
    xet_shard_build_chunk(&b, h[3].bytes, 0xfffffff0, 131072, 0x80000000);
    xet_shard_build_chunk(&b, h[4].bytes, 5, 1, 0);
    xet_shard_build_xorb(&b, &h[4], 0, 0, 0);
    xet_shard_build_bookend(&b);

    if (footer) {
        xet_shard_build_footer(&b, &f);
    }

    s->data = xet_test_flatten(&s->pool, &b, &s->len);
}


static void
test_good(void)
{
    size_t               i, j;
    unsigned             same, bad;
    test_shard_t         s;
    xet_shard_parser_t   p;
    xet_shard_record_t  *r;

    static const uint8_t  kinds[TEST_RECORDS] = {
        XET_SHARD_REC_HEADER, XET_SHARD_REC_FILE, XET_SHARD_REC_TERM,
        XET_SHARD_REC_TERM, XET_SHARD_REC_VERIFICATION,
        XET_SHARD_REC_VERIFICATION, XET_SHARD_REC_METADATA,
        XET_SHARD_REC_FILE, XET_SHARD_REC_METADATA, XET_SHARD_REC_FILE,
        XET_SHARD_REC_TERM, XET_SHARD_REC_VERIFICATION,
        XET_SHARD_REC_FILES_END, XET_SHARD_REC_XORB, XET_SHARD_REC_CHUNK,
        XET_SHARD_REC_CHUNK, XET_SHARD_REC_XORB, XET_SHARD_REC_XORBS_END
    };

    test_shard_build(&s, 1);

    xet_is_u64(s.len, TEST_RECORDS * 48 + 200, "length of the shard");
    xet_is_u64(test_parse(s.data, s.len, 0, &test_log, &p), XET_OK,
               "a shard with all kinds of records");
    xet_is_u64(test_log.n, TEST_RECORDS, "records");
    xet_is_u64(p.files, 3, "files");
    xet_is_u64(p.terms, 3, "terms");
    xet_is_u64(p.xorbs, 2, "xorbs");
    xet_is_u64(p.files_end, 12 * 48, "files_end");
    xet_is_u64(p.offset, TEST_RECORDS * 48, "offset without the footer");

    for (i = 0, same = 0; i < TEST_RECORDS; i++) {
        same += test_log.rec[i].kind == kinds[i]
                && test_log.rec[i].offset == i * 48;
    }

    xet_is_u64(same, TEST_RECORDS, "kinds and offsets of the records");

    r = test_log.rec;
    xet_is_u64(r[0].version, 2, "header version");
    xet_is_u64(r[0].footer_size, 200, "header footer size");
    xet_is_u64(r[1].flags, 0xc0000000, "file flags");
    xet_is_u64(r[1].count, 2, "file segments");
    xet_is_u64(r[2].raw_length, 1000, "segment length");
    xet_is_u64(r[2].chunk_end, 8192, "segment chunk end");
    xet_is_u64(r[3].chunk_start, 8191, "segment chunk start");
    xet_is_u64(r[13].count, 2, "xorb chunks");
    xet_is_u64(r[13].raw_length, 0xffffffff, "xorb raw size, not judged");
    xet_is_u64(r[13].stored_size, 77, "xorb stored size");
    xet_is_u64(r[14].raw_start, 0xfffffff0, "chunk start, not judged");
    xet_is_u64(r[14].raw_length, 131072, "chunk length");
    xet_is_u64(r[14].flags, 0x80000000, "chunk flags");

    for (i = 1, bad = 0; i < s.len; i++) {
        for (j = 0; j < 2; j++) {

            /* two pieces, then pieces of i bytes */

            if (j) {
                bad += test_parse(s.data, s.len, i, &test_log_two, &p)
                       != XET_OK;

            } else {
                test_log_two.n = 0;
                xet_shard_parser_init(&p, test_handler, &test_log_two);
                xet_shard_parser_feed(&p, s.data, i);
                xet_shard_parser_feed(&p, s.data + i, s.len - i);
                bad += xet_shard_parser_finish(&p) != XET_OK;
            }

            bad += !test_same_log(&test_log, &test_log_two)
                   || p.offset != TEST_RECORDS * 48;
        }
    }

    xet_is_u64(bad, 0, "every split gives the same records");

    for (i = 0, bad = 0; i < TEST_RECORDS * 48; i++) {
        bad += test_parse(s.data, i, 0, &test_log_two, &p)
               != XET_SHARD_TRUNCATED;
        bad += test_log_two.n != i / 48
               || xet_shard_parser_finish(&p) != XET_SHARD_TRUNCATED
               || xet_shard_parser_feed(&p, s.data + i, s.len - i)
                  != XET_SHARD_TRUNCATED;
    }

    xet_is_u64(bad, 0, "truncated at every byte");

    for (bad = 0; i <= s.len; i++) {
        bad += test_parse(s.data, i, 7, &test_log_two, &p) != XET_OK
               || !test_same_log(&test_log, &test_log_two);
    }

    xet_is_u64(bad, 0, "cut at every byte of the footer: accepted");

    xet_shard_parser_init(&p, NULL, NULL);
    xet_is_u64(xet_shard_parser_feed(&p, s.data, s.len), XET_DONE,
               "feed without a handler is done");
    xet_is_u64(xet_shard_parser_feed(&p, s.data, s.len), XET_DONE,
               "and stays done");
    xet_is_u64(xet_shard_parser_finish(&p), XET_OK, "finish");

    xet_test_pool_free(&s.pool);
}


/* Changes to one field of one record of the valid shard. */

typedef struct {
    const char    *name;
    unsigned       record;
    unsigned       offset;
    unsigned       width;
    uint64_t       value;
    xet_status_t   want;
} test_change_t;


static const test_change_t  test_changes[] = {
    { "first byte of the tag", 0, 0, 1, 'h', XET_SHARD_TAG },
    { "last byte of the tag", 0, 31, 1, 0xa8, XET_SHARD_TAG },
    { "version 1", 0, 32, 8, 1, XET_SHARD_VERSION },
    { "version 3", 0, 32, 8, 3, XET_SHARD_VERSION },
    { "version 2^32 + 2", 0, 32, 8, 0x100000002, XET_SHARD_VERSION },
    { "footer size of garbage", 0, 40, 8, UINT64_MAX, XET_OK },
    { "2^26 segments", 1, 36, 4, 1u << 26, XET_SHARD_RECORD },
    { "2^26 + 1 segments", 1, 36, 4, (1u << 26) + 1, XET_SHARD_COUNT },
    { "2^32 - 1 segments", 1, 36, 4, 0xffffffff, XET_SHARD_COUNT },
    { "no segments but a hash", 1, 36, 4, 0, XET_SHARD_COUNT },
    { "unknown flags of a file", 1, 32, 4, 0xffffffff, XET_OK },
    { "reserved bytes of a file", 1, 40, 8, UINT64_MAX, XET_OK },
    { "first file without verification", 1, 32, 4, 0x40000000,
      XET_SHARD_COUNT },
    { "last file without verification", 9, 32, 4, 0,
      XET_SHARD_NO_VERIFICATION },
    { "the empty file with a hash", 7, 5, 1, 1, XET_SHARD_COUNT },
    { "segment start == end", 2, 40, 4, 8192, XET_SHARD_RECORD },
    { "segment start > end", 10, 40, 4, 5, XET_SHARD_RECORD },
    { "segment end 8193", 2, 44, 4, 8193, XET_SHARD_RECORD },
    { "segment end 2^32 - 1", 2, 44, 4, 0xffffffff, XET_SHARD_RECORD },
    { "segment of no bytes", 2, 36, 4, 0, XET_SHARD_RECORD },
    { "segment of 2^30 bytes", 2, 36, 4, 1u << 30, XET_OK },
    { "segment of 2^30 + 1 bytes", 2, 36, 4, (1u << 30) + 1,
      XET_SHARD_RECORD },
    { "segment flags", 2, 32, 4, 0xffffffff, XET_OK },
    { "reserved bytes of a verification row", 4, 32, 8, UINT64_MAX, XET_OK },
    { "reserved bytes of metadata", 6, 40, 8, UINT64_MAX, XET_OK },
    { "first zero of the files' end", 12, 32, 1, 1, XET_SHARD_RECORD },
    { "last zero of the files' end", 12, 47, 1, 1, XET_SHARD_RECORD },
    { "files' end is none", 12, 31, 1, 0xfe, XET_SHARD_COUNT },
    { "8193 chunks", 13, 36, 4, 8193, XET_SHARD_COUNT },
    { "2^32 - 1 chunks", 13, 36, 4, 0xffffffff, XET_SHARD_COUNT },
    { "8192 chunks", 13, 36, 4, 8192, XET_SHARD_RECORD },
    { "xorb flags", 13, 32, 4, 0xffffffff, XET_OK },
    { "xorb totals", 13, 40, 8, UINT64_MAX, XET_OK },
    { "chunk start", 15, 32, 4, 0xffffffff, XET_OK },
    { "chunk of no bytes", 15, 36, 4, 0, XET_SHARD_RECORD },
    { "chunk of 131073 bytes", 15, 36, 4, 131073, XET_SHARD_RECORD },
    { "chunk of 2^32 - 1 bytes", 15, 36, 4, 0xffffffff, XET_SHARD_RECORD },
    { "chunk flags and reserved bytes", 15, 40, 8, UINT64_MAX, XET_OK },
    { "first zero of the xorbs' end", 17, 32, 1, 1, XET_SHARD_RECORD },
    { "last zero of the xorbs' end", 17, 47, 1, 0xff, XET_SHARD_RECORD },
    { "xorbs' end is none", 17, 0, 1, 0xfe, XET_SHARD_TRUNCATED },
};


static void
test_errors(void)
{
    size_t                i, k, split;
    uint8_t               saved[8], *p;
    unsigned              n;
    test_shard_t          s;
    xet_status_t          status;
    xet_shard_parser_t    parser;
    const test_change_t  *c;

    test_shard_build(&s, 0);

    for (i = 0; i < sizeof(test_changes) / sizeof(test_changes[0]); i++) {
        c = &test_changes[i];
        p = s.data + c->record * 48 + c->offset;

        memcpy(saved, p, c->width);

        for (k = 0; k < c->width; k++) {
            p[k] = (uint8_t) (c->value >> 8 * k);
        }

        status = test_parse(s.data, s.len, 0, &test_log, &parser);

        for (split = 1; split < 100; split++) {
            if (test_parse(s.data, s.len, split, &test_log_two, &parser)
                != status || !test_same_log(&test_log, &test_log_two))
            {
                status = XET_STATUS_MAX;
            }
        }

        xet_is_u64(status, c->want, c->name);

        memcpy(p, saved, c->width);
    }

    /* the parser returns the handler's error, at any record */

    for (i = 1, n = 0; i <= TEST_RECORDS; i++) {
        test_log.stop = (unsigned) i;
        test_log.error = XET_SHARD_TERM;
        n += test_parse(s.data, s.len, 50, &test_log, &parser)
             == XET_SHARD_TERM && test_log.n == i;

        test_log.error = XET_DONE;
        n += test_parse(s.data, s.len, 50, &test_log, &parser)
             == XET_INTERNAL && test_log.n == i;
    }

    test_log.stop = 0;

    xet_is_u64(n, 2 * TEST_RECORDS, "errors of the handler stop and stay");

    xet_test_pool_free(&s.pool);
}


/*
 * Tests small shards: which records may be absent, and which kinds of files
 * may be mixed.
 */

static void
test_shapes(void)
{
    size_t              len;
    uint8_t            *data;
    unsigned            shape, i;
    xet_buf_t           b;
    xet_hash_t          h, zero;
    xet_test_pool_t     pool;
    xet_shard_parser_t  p;

    static const struct {
        const char    *name;
        uint32_t       flags[4];
        uint32_t       segments[4];
        unsigned       files;
        xet_status_t   want;
    } shapes[] = {
        { "no files", { 0 }, { 0 }, 0, XET_OK },
        { "the empty file without flags", { 0 }, { 0 }, 1, XET_OK },
        { "the empty file, verification", { 1u << 31 }, { 0 }, 1, XET_OK },
        { "the empty file, metadata", { 1u << 30 }, { 0 }, 1, XET_OK },
        { "the empty file, both", { 3u << 30 }, { 0 }, 1, XET_OK },
        { "all files without verification", { 0, 1u << 30, 0 }, { 1, 2, 3 },
          3, XET_OK },
        { "all files with verification", { 1u << 31, 3u << 30 }, { 1, 2 }, 2,
          XET_OK },
        { "first with, then without", { 1u << 31, 0 }, { 1, 1 }, 2,
          XET_SHARD_NO_VERIFICATION },
        { "first without, then with", { 0, 1u << 31 }, { 1, 1 }, 2,
          XET_SHARD_NO_VERIFICATION },
        { "mixed behind an empty file", { 0, 1u << 31, 0 }, { 0, 2, 1 }, 3,
          XET_SHARD_NO_VERIFICATION },
        { "the empty file may differ", { 0, 1u << 31, 1u << 30, 3u << 30 },
          { 0, 1, 0, 2 }, 4, XET_OK },
    };

    memset(&pool, 0, sizeof(pool));
    memset(&zero, 0, sizeof(zero));
    memset(&h, 0x5a, sizeof(h));

    for (shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++) {
        xet_buf_init(&b, xet_test_alloc, &pool, 0);

        xet_shard_build_header(&b, 0);

        for (i = 0; i < shapes[shape].files; i++) {
            uint32_t  k, n, flags;

            n = shapes[shape].segments[i];
            flags = shapes[shape].flags[i];

            xet_shard_build_file(&b, n ? &h : &zero, flags, n);

            for (k = 0; k < n; k++) {
                xet_shard_build_term(&b, &h, 10, 0, 1);
            }

            for (k = 0; (flags & 1u << 31) && k < n; k++) {
                xet_shard_build_verification(&b, &h);
            }

            if (flags & 1u << 30) {
                xet_shard_build_metadata(&b, h.bytes);
            }
        }

        xet_shard_build_bookend(&b);
        xet_shard_build_bookend(&b);

        data = xet_test_flatten(&pool, &b, &len);

        xet_is_u64(test_parse(data, len, 5, &test_log, &p),
                   shapes[shape].want, shapes[shape].name);

        if (shapes[shape].want == XET_OK) {
            xet_is_u64(p.files, shapes[shape].files, "  its files");

            xet_is_u64(test_parse(data, len - 48, 0, &test_log, &p),
                       XET_SHARD_TRUNCATED, "  without its last record");
        }
    }

    xet_test_pool_free(&pool);

    xet_shard_parser_init(&p, NULL, NULL);
    xet_is_u64(xet_shard_parser_finish(&p), XET_SHARD_TRUNCATED,
               "nothing at all");
}


/*
 * Tests a xorb of 8192 chunks and a file of many segments, exactly at the
 * limits.
 */

static void
test_long(void)
{
    size_t              len;
    uint8_t            *data;
    unsigned            i;
    xet_buf_t           b;
    xet_hash_t          h;
    xet_test_pool_t     pool;
    xet_shard_parser_t  p;

    memset(&pool, 0, sizeof(pool));
    memset(&h, 0x5a, sizeof(h));

    xet_buf_init(&b, xet_test_alloc, &pool, 0);

    xet_shard_build_header(&b, 0);
    xet_shard_build_file(&b, &h, 0x80000000, 20000);

    for (i = 0; i < 20000; i++) {
        xet_shard_build_term(&b, &h, 1u << 30, 0, 8192);
    }

    for (i = 0; i < 20000; i++) {
        xet_shard_build_verification(&b, &h);
    }

    xet_shard_build_bookend(&b);
    xet_shard_build_xorb(&b, &h, 8192, 1u << 30, 0);

    for (i = 0; i < 8192; i++) {
        xet_shard_build_chunk(&b, h.bytes, 0, 131072, 0);
    }

    xet_shard_build_bookend(&b);

    data = xet_test_flatten(&pool, &b, &len);

    xet_is_u64(test_parse(data, len, 1000, &test_log, &p), XET_OK,
               "20000 segments, 8192 chunks");
    xet_is_u64(test_log.n, 1 + 1 + 40000 + 1 + 1 + 8192 + 1, "records");
    xet_is_u64(p.terms, 20000, "terms");
    xet_is_u64(p.raw, (uint64_t) 8192 * 131072, "bytes of the last block");
    xet_is_u64(p.offset, len, "offset");
    xet_is_u64(p.chunks, 20000 * 8192, "chunks of the terms");

    for (i = 0; i < 2; i++) {
        xet_shard_parser_init(&p, NULL, NULL);
        p.chunks_max = 20000 * 8192 - i;
        xet_is_u64(xet_shard_parser_feed(&p, data, len),
                   i ? XET_SHARD_CHUNKS : XET_DONE, "as many as are taken");
    }

    xet_test_pool_free(&pool);
}


typedef struct {
    const char  *name;
    uint64_t     len;
    uint64_t     sections;         /* bytes up to the second bookend */
    unsigned     files;
    unsigned     xorbs;
    unsigned     terms;
    unsigned     chunks;
    unsigned     verification;
    unsigned     metadata;
} test_reference_t;


#define EV  XET_REFERENCE "ev-population.csv.shard"

static const test_reference_t  test_references[] = {
    { EV, 38744, 38544, 1, 1, 1, 796, 0, 1 },
    { EV ".verification", 38792, 38592, 1, 1, 1, 796, 1, 1 },
    { EV ".verification-no-footer", 38592, 38592, 1, 1, 1, 796, 1, 1 },
    { EV ".dedupe", 38600, 38400, 0, 1, 0, 796, 0, 0 },
    { "xet/hub-js/gpt2-64-8bits.tflite.shard", 102104, 101904, 0, 3, 0,
      933 + 1062 + 122, 0, 0 },
    { "xet/hf_xet-client-shards/one-file-one-chunk.no-footer.shard", 432, 432,
      1, 1, 1, 1, 1, 1 },
};


static unsigned
test_count(const test_log_t *log, xet_shard_kind_t kind)
{
    unsigned  i, n;

    for (i = 0, n = 0; i < log->n; i++) {
        n += log->rec[i].kind == kind;
    }

    return n;
}


static void
test_reference(const test_reference_t *ref)
{
    size_t               len, i;
    uint8_t             *data;
    unsigned             bad;
    xet_shard_parser_t   p;

    static const size_t  splits[] = { 1, 7, 47, 48, 49, 191, 4096, 38543 };

    data = xet_reference_load(ref->name, &len);

    if (data == NULL) {
        return;
    }

    if (!xet_ok(len == ref->len, "%s is there", ref->name)) {
        free(data);
        return;
    }

    xet_is_u64(test_parse(data, len, 0, &test_log, &p), XET_OK, "  parses");
    xet_is_u64(p.offset, ref->sections, "  length of the sections");
    xet_is_u64(p.files, ref->files, "  files");
    xet_is_u64(p.xorbs, ref->xorbs, "  xorbs");
    xet_is_u64(p.terms, ref->terms, "  terms");
    xet_is_u64(test_count(&test_log, XET_SHARD_REC_CHUNK), ref->chunks,
               "  chunks");
    xet_is_u64(test_count(&test_log, XET_SHARD_REC_VERIFICATION),
               ref->verification, "  verification rows");
    xet_is_u64(test_count(&test_log, XET_SHARD_REC_METADATA), ref->metadata,
               "  metadata rows");

    for (i = 0, bad = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
        bad += test_parse(data, len, splits[i], &test_log_two, &p) != XET_OK
               || !test_same_log(&test_log, &test_log_two);
    }

    xet_is_u64(bad, 0, "  the same in pieces");

    free(data);
}


/* Compares the captured dedup response with its published decoding. */

static void
test_hub(void)
{
    size_t               len, i, k;
    uint8_t             *data, text[XET_HASH_STR_LEN + 1];
    json_t              *root, *xorbs, *hashes;
    unsigned             r, same, all;
    const char          *path;
    xet_hash_t           key;
    xet_shard_parser_t   p;

    path = xet_test_data("xet/hub-js/gpt2-64-8bits.tflite.shard.json");

    if (path == NULL) {
        xet_skip("reference data absent");
        return;
    }

    root = json_load_file(path, 0, NULL);
    path = xet_test_data("xet/hub-js/gpt2-64-8bits.tflite.shard");
    data = path ? xet_test_read(path, &len) : NULL;

    if (!xet_ok(root && data, "the dedup answer and its reading")) {
        free(data);
        json_decref(root);
        return;
    }

    xet_is_u64(test_parse(data, len, 0, &test_log, &p), XET_OK, "parses");

    text[XET_HASH_STR_LEN] = '\0';
    memcpy(key.bytes, data + len - 200 + 72, 32);
    xet_hash_print(text, &key);

    xet_ok(strcmp((char *) text,
                  json_string_value(json_object_get(root, "hmac_key"))) == 0,
           "its key");

    xorbs = json_object_get(root, "xorbs");
    xet_is_u64(json_array_size(xorbs), 3, "xorbs");

    r = 2;
    same = 0;
    all = 0;

    for (i = 0; i < json_array_size(xorbs); i++) {
        json_t  *xorb = json_array_get(xorbs, i);

        hashes = json_object_get(xorb, "chunk_hashes");

        xet_hash_print(text, &test_log.rec[r].hash);
        same += test_log.rec[r].kind == XET_SHARD_REC_XORB
                && test_log.rec[r].count == json_array_size(hashes)
                && strcmp((char *) text,
                          json_string_value(json_object_get(xorb, "hash")))
                   == 0;
        r++;
        all++;

        for (k = 0; k < json_array_size(hashes); k++, r++, all++) {
            xet_hash_print(text, &test_log.rec[r].hash);
            same += strcmp((char *) text,
                           json_string_value(json_array_get(hashes, k))) == 0;
        }
    }

    xet_is_u64(all, 3 + 933 + 1062 + 122, "hashes to compare");
    xet_is_u64(same, all, "all hashes are the same");
    xet_is_u64(r + 1, test_log.n, "and nothing else is in it");

    free(data);
    json_decref(root);
}


int
main(void)
{
    size_t  i;

    test_good();
    test_errors();
    test_shapes();
    test_long();

    for (i = 0; i < sizeof(test_references) / sizeof(test_references[0]); i++)
    {
        test_reference(&test_references[i]);
    }

    test_hub();

    return xet_done();
}
