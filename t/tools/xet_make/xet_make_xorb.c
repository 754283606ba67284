
/*
 * Builds a xorb from the data on the standard input, prints the chunk table of
 * a xorb, and decodes chunk records to raw bytes.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_make/xet_make.h"


static xet_status_t
xet_make_xorb_write(void *ctx, const uint8_t *data, size_t len)
{
    xet_make_put(ctx, data, len);

    return XET_OK;
}


static unsigned
xet_make_scheme(const char *s)
{
    unsigned             i;
    const xet_scheme_t  *scheme;

    for (i = 0; i < XET_SCHEMES; i++) {
        scheme = xet_suite_scheme(&xet_suite_default, i);

        if (scheme != NULL && strcmp(s, scheme->name) == 0) {
            return i;
        }
    }

    if (strcmp(s, "auto") == 0) {
        return XET_SCHEME_AUTO;
    }

    xet_make_fatal("unknown scheme \"%s\"", s);
}


/* Prints the scheme names by number; null for a number that has no scheme. */

int
xet_make_schemes(int argc, char **argv)
{
    json_t              *names;
    unsigned             i;
    const xet_scheme_t  *scheme;

    names = json_array();

    for (i = 0; i < XET_SCHEMES; i++) {
        scheme = xet_suite_scheme(&xet_suite_default, i);

        json_array_append_new(names, scheme ? json_string(scheme->name)
                                            : json_null());
    }

    xet_make_json_print(names);

    return 0;
}


/*
 * Writes a version 0 footer, which the server accepts from old clients.
 * xet_xorb_writer_finish() can't write this version.
 */

static void
xet_make_footer_v0(FILE *f, const xet_xorb_info_t *info)
{
    size_t    n, len;
    uint8_t  *p, *footer;

    n = info->chunk_count;
    len = 7 + 1 + 32 + 4 + n * 4 + n * 32 + 16;

    footer = xet_make_alloc(1, len + 4);
    p = footer;

    memcpy(p, "XETBLOB", 8);
    p += 8;

    memcpy(p, info->hash.bytes, 32);
    p += 32;

    xet_put_u32(p, (uint32_t) n);
    p += 4;

    memcpy(p, info->stored_ends, n * 4);
    p += n * 4;

    memcpy(p, info->hashes, n * 32);
    p += n * 32 + 16;

    xet_put_u32(p, (uint32_t) len);

    xet_make_put(f, footer, len + 4);
    free(footer);
}


/* If records is not NULL, the chunk headers are read from there. */

static json_t *
xet_make_chunks(const xet_xorb_info_t *info, const uint8_t *records)
{
    json_t    *chunks, *chunk;
    uint32_t   i, raw, stored, raw_end, stored_end;

    chunks = json_array();
    raw = 0;
    stored = 0;

    for (i = 0; i < info->chunk_count; i++) {
        raw_end = xet_get_u32(info->raw_ends + (size_t) i * 4);
        stored_end = xet_get_u32(info->stored_ends + (size_t) i * 4);

        chunk = json_pack("{s:o,s:o,s:o,s:o,s:o}",
            "hash", xet_make_json_hash(info->hashes + (size_t) i * 32),
            "raw_start", xet_make_json_u64(raw),
            "raw_length", xet_make_json_u64(raw_end - raw),
            "stored_start", xet_make_json_u64(stored),
            "stored_end", xet_make_json_u64(stored_end));

        if (records) {
            json_object_set_new(chunk, "scheme",
                                xet_make_json_u64(records[stored + 4]));
        }

        json_array_append_new(chunks, chunk);

        raw = raw_end;
        stored = stored_end;
    }

    return chunks;
}


/* Totals of several consecutive writers that together write one xorb. */

typedef struct {
    xet_xorb_info_t  info;
    uint8_t         *hashes;
    uint8_t         *raw_ends;
    uint8_t         *stored_ends;
} xet_make_sum_t;


static void
xet_make_sum(xet_make_sum_t *sum, const xet_xorb_info_t *part)
{
    uint8_t   *end;
    uint32_t   i;
    uint64_t   raw, stored;

    memcpy(sum->hashes + (size_t) sum->info.chunk_count * 32, part->hashes,
           (size_t) part->chunk_count * 32);

    for (i = 0; i < part->chunk_count; i++) {
        raw = sum->info.raw_size
              + xet_get_u32(part->raw_ends + (size_t) i * 4);
        stored = sum->info.stored_size
                 + xet_get_u32(part->stored_ends + (size_t) i * 4);

        if (raw > UINT32_MAX || stored > UINT32_MAX) {
            xet_make_fatal("a xorb over 4 GiB");
        }

        end = sum->raw_ends + (size_t) (sum->info.chunk_count + i) * 4;
        xet_put_u32(end, (uint32_t) raw);

        end = sum->stored_ends + (size_t) (sum->info.chunk_count + i) * 4;
        xet_put_u32(end, (uint32_t) stored);
    }

    sum->info.chunk_count += part->chunk_count;
    sum->info.raw_size += part->raw_size;
    sum->info.stored_size += part->stored_size;
}


static void
xet_make_sum_hash(xet_make_sum_t *sum)
{
    uint32_t      i, end, raw;
    xet_merkle_t  merkle;

    xet_merkle_init(&merkle, &xet_suite_default);
    raw = 0;

    for (i = 0; i < sum->info.chunk_count; i++) {
        end = xet_get_u32(sum->raw_ends + (size_t) i * 4);
        xet_merkle_add(&merkle, sum->hashes + (size_t) i * 32, end - raw);
        raw = end;
    }

    xet_merkle_finish(&merkle, &sum->info.hash);
}


/*
 * If large is set, the xorb may exceed the limits of a writer: when one writer
 * is full, another one continues.
 */

static void
xet_make_xorb_pack(FILE *f, const uint8_t *data, const uint32_t *cut,
    size_t n, unsigned scheme, int footer, int large, xet_make_sum_t *sum)
{
    size_t              i;
    const uint8_t      *p;
    xet_xorb_writer_t  *w;

    w = xet_xorb_writer_create(&xet_suite_default, xet_make_xorb_write, f);
    if (w == NULL) {
        xet_make_fatal("out of memory");
    }

    for (i = 0, p = data; i < n; p += cut[i], i++) {

        if (!xet_xorb_writer_fits(w, cut[i])) {

            if (!large || footer == 1 || cut[i] > XET_CHUNK_MAX) {
                xet_make_fatal("the data does not fit into one xorb");
            }

            xet_make_check(xet_xorb_writer_finish(w, 0), "xorb");
            xet_make_sum(sum, xet_xorb_writer_info(w));
            xet_xorb_writer_reset(w);
        }

        xet_make_check(xet_xorb_writer_add(w, p, cut[i], scheme, NULL),
                       "chunk");
    }

    xet_make_check(xet_xorb_writer_finish(w, footer == 1), "xorb");
    xet_make_sum(sum, xet_xorb_writer_info(w));
    xet_make_sum_hash(sum);

    xet_xorb_writer_destroy(w);
}


int
xet_make_xorb(int argc, char **argv)
{
    int              i, footer, large;
    FILE            *f;
    size_t           len, n;
    uint8_t         *data;
    unsigned         scheme;
    uint32_t        *cut;
    const char      *sizes;
    xet_make_sum_t   sum;

    scheme = XET_SCHEME_AUTO;
    footer = -1;
    large = 0;
    sizes = NULL;

    for (i = 0; i + 1 < argc; i++) {

        if (strcmp(argv[i], "--large") == 0) {
            large = 1;

        } else if (strcmp(argv[i], "--scheme") == 0) {
            scheme = xet_make_scheme(argv[++i]);

        } else if (strcmp(argv[i], "--sizes") == 0) {
            sizes = argv[++i];

        } else if (strcmp(argv[i], "--footer") == 0
                   && strcmp(argv[i + 1], "v0") == 0)
        {
            footer = 0;
            i++;

        } else if (strcmp(argv[i], "--footer") == 0
                   && strcmp(argv[i + 1], "v1") == 0)
        {
            footer = 1;
            i++;

        } else {
            xet_make_fatal("bad option \"%s %s\"", argv[i], argv[i + 1]);
        }
    }

    if (i != argc - 1) {
        xet_make_fatal("usage: xorb [--scheme S] [--footer V] [--sizes L] "
                       "[--large] OUT < data");
    }

    data = xet_make_read("-", &len);
    cut = xet_make_cut(data, len, sizes, &n);

    memset(&sum, 0, sizeof(xet_make_sum_t));
    sum.info.hashes = sum.hashes = xet_make_alloc(n, 32);
    sum.info.raw_ends = sum.raw_ends = xet_make_alloc(n, 4);
    sum.info.stored_ends = sum.stored_ends = xet_make_alloc(n, 4);

    f = xet_make_open(argv[i]);

    xet_make_xorb_pack(f, data, cut, n, scheme, footer, large, &sum);

    if (footer == 0) {
        xet_make_footer_v0(f, &sum.info);
    }

    xet_make_close(f);

    xet_make_json_print(json_pack("{s:o,s:o,s:o,s:o}",
        "hash", xet_make_json_hash(sum.info.hash.bytes),
        "stored_size", xet_make_json_u64(sum.info.stored_size),
        "raw_size", xet_make_json_u64(sum.info.raw_size),
        "chunks", xet_make_chunks(&sum.info, NULL)));

    return 0;
}


int
xet_make_xorb_info(int argc, char **argv)
{
    size_t                  len, stored;
    uint8_t                *data;
    xet_xorb_verifier_t    *v;
    const xet_xorb_info_t  *info;

    if (argc != 1) {
        xet_make_fatal("usage: xorb-info FILE");
    }

    data = xet_make_read(argv[0], &len);

    v = xet_xorb_verifier_create(&xet_suite_default, NULL, UINT32_MAX);
    if (v == NULL) {
        xet_make_fatal("out of memory");
    }

    xet_make_check(xet_xorb_verifier_feed(v, data, len, &stored), argv[0]);
    xet_make_check(xet_xorb_verifier_finish(v), argv[0]);

    info = xet_xorb_verifier_info(v);

    xet_make_json_print(json_pack("{s:o,s:o,s:o,s:o,s:o}",
        "hash", xet_make_json_hash(info->hash.bytes),
        "stored_size", xet_make_json_u64(info->stored_size),
        "raw_size", xet_make_json_u64(info->raw_size),
        "footer_size", xet_make_json_u64(len - info->stored_size),
        "chunks", xet_make_chunks(info, data)));

    xet_xorb_verifier_destroy(v);

    return 0;
}


/*
 * Accepts any run of chunk records, not only a complete xorb: START and END
 * count from its first record.
 */

int
xet_make_decode_xorb(int argc, char **argv)
{
    size_t          len, pos, stored, raw;
    uint8_t        *data;
    uint64_t        i, start, end;
    xet_codec_t    *codec;
    static uint8_t  out[XET_CHUNK_MAX];

    if (argc != 1 && argc != 3) {
        xet_make_fatal("usage: decode-xorb FILE [START END]");
    }

    start = argc == 3 ? xet_make_number(argv[1], UINT32_MAX) : 0;
    end = argc == 3 ? xet_make_number(argv[2], UINT32_MAX) : UINT64_MAX;

    data = xet_make_read(argv[0], &len);

    codec = xet_codec_create(&xet_suite_default);
    if (codec == NULL) {
        xet_make_fatal("out of memory");
    }

    pos = 0;

    for (i = 0; i < end && pos < len; i++, pos += stored) {

        if (len - pos >= 7 && memcmp(data + pos, "XETBLOB", 7) == 0) {
            break;
        }

        if (len - pos < XET_XORB_HEADER_LEN) {
            xet_make_fatal("record %d: truncated header", (int) i);
        }

        if (data[pos] != 0) {
            xet_make_fatal("record %d: version %d", (int) i, data[pos]);
        }

        stored = xet_get_u24(data + pos + 1);
        raw = xet_get_u24(data + pos + 5);
        pos += XET_XORB_HEADER_LEN;

        if (stored > len - pos) {
            xet_make_fatal("record %d: truncated data", (int) i);
        }

        if (raw == 0 || raw > XET_CHUNK_MAX) {
            xet_make_fatal("record %d: length %zu", (int) i, raw);
        }

        if (i < start) {
            continue;
        }

        xet_make_check(xet_codec_decode(codec, data[pos - 4], data + pos,
                                        stored, out, raw), "record");
        xet_make_put(stdout, out, raw);
    }

    if (argc == 3 && i != end) {
        xet_make_fatal("only %d records", (int) i);
    }

    xet_make_close(stdout);
    xet_codec_destroy(codec);

    return 0;
}
