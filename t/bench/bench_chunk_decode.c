
/*
 * Measures how fast the chunks of a xorb are decoded and checked against their
 * hashes, one by one, in memory.  A server can't send files faster than this.
 *
 *     bench_chunk_decode <file> <raw bytes> [<port>]
 *
 * The file is the chunk region of a xorb; it is decoded repeatedly until the
 * given number of bytes is reached.  Prints the bytes and the CPU seconds.
 *
 * With a port, the chunks are read with pread(), and written with write() to a
 * connection to 127.0.0.1: the same work and copies as in a server, without the
 * server.
 */


#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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


/* Returns a connection to a port of this machine, or -1. */

static int
bench_connect(const char *port)
{
    int                 fd;
    struct sockaddr_in  addr;

    memset(&addr, 0, sizeof(addr));

    addr.sin_family = AF_INET;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    addr.sin_port = htons((uint16_t) atoi(port));

    fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd != -1
        && connect(fd, (struct sockaddr *) &addr, sizeof(addr)) == -1)
    {
        close(fd);
        return -1;
    }

    return fd;
}


/* Decodes one chunk; with a connection, also reads and sends it. */

static int
bench_chunk(xet_codec_t *codec, const uint8_t *data, int file, int to,
    const bench_chunk_t *c)
{
    size_t          sent;
    ssize_t         n;
    const uint8_t  *stored;
    static uint8_t  buf[XET_XORB_CHUNK_MAX];

    stored = data + c->start;

    if (to != -1) {
        if (pread(file, buf, c->len, (off_t) c->start) != (ssize_t) c->len) {
            return 0;
        }

        stored = buf;
    }

    if (xet_xorb_chunk_decode(&xet_suite_default, codec, stored, c->len,
                              c->hash.bytes, bench_raw, c->raw_len)
        != XET_OK)
    {
        return 0;
    }

    for (sent = 0; to != -1 && sent < c->raw_len; sent += (size_t) n) {
        n = write(to, bench_raw + sent, c->raw_len - sent);

        if (n <= 0) {
            return 0;
        }
    }

    return 1;
}


int
main(int argc, char **argv)
{
    int             file, to;
    size_t          len, want, done;
    double          cpu;
    unsigned        i, n;
    xet_codec_t    *codec;
    const uint8_t  *data;

    if (argc != 3 && argc != 4) {

        /* "make bench" runs this program without arguments */

        printf("bench_chunk_decode <file> <raw bytes> [<port>]\n");
        return 0;
    }

    data = bench_open(argv[1], &len);
    file = open(argv[1], O_RDONLY);
    to = (argc == 4) ? bench_connect(argv[3]) : -1;
    want = (size_t) strtoull(argv[2], NULL, 10);
    codec = xet_codec_create(&xet_suite_default);

    if (file == -1 || codec == NULL || (argc == 4 && to == -1)) {
        return 1;
    }

    n = bench_list(codec, data, len);

    if (n == 0) {
        return 1;
    }

    cpu = bench_cpu();

    for (i = 0, done = 0; done < want; i = (i + 1) % n) {

        if (!bench_chunk(codec, data, file, to, &bench_chunks[i])) {
            return 1;
        }

        done += bench_chunks[i].raw_len;
    }

    cpu = bench_cpu() - cpu;

    printf("DECODE %zu %.6f\n", done, cpu);
    bench_row("", (to == -1) ? "decoding chunks" : "decoding, sending chunks",
              (double) done / 1e6 / cpu, "MB/s", NULL, 0, "more");

    xet_codec_destroy(codec);

    return 0;
}
