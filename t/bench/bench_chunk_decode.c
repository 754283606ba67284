
/*
 * Measures how fast the chunks of a xorb are decoded and checked against their
 * hashes, one by one, in memory.  A server can't send files faster than this.
 *
 *     bench_chunk_decode <file> <raw bytes>
 *
 * The file is the chunk region of a xorb; it is decoded repeatedly until the
 * given number of bytes is reached.  Prints the bytes and the CPU seconds.
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "xet_base.h"
#include "xet_xorb.h"


typedef struct {
    size_t      start;
    size_t      len;
    size_t      raw_len;
    xet_hash_t  hash;
} bench_chunk_t;


static bench_chunk_t  bench_chunks[XET_XORB_CHUNKS_MAX];
static uint8_t        bench_raw[XET_CHUNK_MAX];


/* Lists the chunks with their offsets and hashes; returns their number. */

static unsigned
bench_list(xet_codec_t *codec, const uint8_t *data, size_t len)
{
    size_t          pos;
    unsigned        n;
    bench_chunk_t  *c;

    for (n = 0, pos = 0; pos < len && n < XET_XORB_CHUNKS_MAX; n++) {
        c = &bench_chunks[n];

        c->start = pos;
        c->len = XET_XORB_HEADER_LEN + xet_get_u24(data + pos + 1);
        c->raw_len = xet_get_u24(data + pos + 5);

        if (xet_codec_decode(codec, data[pos + 4],
                             data + pos + XET_XORB_HEADER_LEN,
                             c->len - XET_XORB_HEADER_LEN, bench_raw,
                             c->raw_len)
            != XET_OK)
        {
            return 0;
        }

        xet_hash_chunk(&xet_suite_default, bench_raw, c->raw_len, &c->hash);
        pos += c->len;
    }

    return n;
}


int
main(int argc, char **argv)
{
    size_t          len, want, done;
    double          cpu;
    unsigned        i, n;
    xet_codec_t    *codec;
    const uint8_t  *data;
    bench_chunk_t  *c;

    if (argc != 3) {

        /* "make bench" runs this program without arguments */

        printf("bench_chunk_decode <file> <raw bytes>\n");
        return 0;
    }

    data = bench_open(argv[1], &len);
    want = (size_t) strtoull(argv[2], NULL, 10);
    codec = xet_codec_create(&xet_suite_default);

    if (codec == NULL) {
        return 1;
    }

    n = bench_list(codec, data, len);

    if (n == 0) {
        return 1;
    }

    cpu = bench_cpu();

    for (i = 0, done = 0; done < want; i = (i + 1) % n) {
        c = &bench_chunks[i];

        if (xet_xorb_chunk_decode(&xet_suite_default, codec, data + c->start,
                                  c->len, c->hash.bytes, bench_raw,
                                  c->raw_len)
            != XET_OK)
        {
            return 1;
        }

        done += c->raw_len;
    }

    cpu = bench_cpu() - cpu;

    printf("DECODE %zu %.6f\n", done, cpu);
    bench_row("", "decoding chunks", (double) done / 1e6 / cpu, "MB/s", NULL, 0,
              "more");

    xet_codec_destroy(codec);

    return 0;
}
