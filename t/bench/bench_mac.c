
/*
 * Compares ways to compute HMAC-SHA256 of short texts with one key.  The ways
 * are measured in alternation.  Prints nanoseconds per text.  The second to
 * last row is the way that the server uses to sign URLs; the last row is a
 * whole URL.
 *
 *     bench_mac
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/sha.h>

#include "bench.h"
#include "xet_access.h"


#define BENCH_RUNS    9
#define BENCH_LOOP    20000
#define BENCH_TEXT    122
#define BENCH_BLOCK   64


typedef struct {
    EVP_MAC_CTX     *keyed;
    EVP_MAC_CTX     *ctx;
    EVP_MD_CTX      *inner;
    EVP_MD_CTX      *outer;
    EVP_MD_CTX      *copy;

    SHA256_CTX       first;
    SHA256_CTX       last;

    xet_sign_key_t  *key;
    xet_sign_url_t   url;
    xet_range_t      range;

    uint8_t          secret[32];
    uint8_t          text[BENCH_TEXT];
    uint8_t          mac[32];
} bench_t;


typedef struct {
    const char      *name;
    int            (*run)(bench_t *b);
} bench_way_t;


static void *
bench_alloc(void *data, size_t size)
{
    return (size <= 2048) ? data : NULL;
}


static int
bench_once(bench_t *b)
{
    return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, b->secret, 32,
                     b->text, BENCH_TEXT, b->mac, 32, NULL)
           != NULL;
}


static int
bench_dup(bench_t *b)
{
    int           ok;
    EVP_MAC_CTX  *ctx;

    ctx = EVP_MAC_CTX_dup(b->keyed);

    ok = ctx != NULL
         && EVP_MAC_update(ctx, b->text, BENCH_TEXT)
         && EVP_MAC_final(ctx, b->mac, NULL, 32);

    EVP_MAC_CTX_free(ctx);

    return ok;
}


/* Computes the MAC from the pieces of a URL. */

static int
bench_pieces(bench_t *b)
{
    int       ok;
    size_t    i, n, pos;

    static const uint8_t  pieces[] = { 10, 2, 1, 7, 1, 64, 1, 10, 1, 24, 1 };

    ok = EVP_MAC_init(b->ctx, NULL, 0, NULL);
    pos = 0;

    for (i = 0; i < sizeof(pieces); i++) {
        n = pieces[i];
        ok = ok && EVP_MAC_update(b->ctx, b->text + pos, n);
        pos += n;
    }

    return ok && EVP_MAC_final(b->ctx, b->mac, NULL, 32);
}


static int
bench_again(bench_t *b)
{
    return EVP_MAC_init(b->ctx, NULL, 0, NULL)
           && EVP_MAC_update(b->ctx, b->text, BENCH_TEXT)
           && EVP_MAC_final(b->ctx, b->mac, NULL, 32);
}


static int
bench_copy(bench_t *b)
{
    return EVP_MD_CTX_copy_ex(b->copy, b->inner)
           && EVP_DigestUpdate(b->copy, b->text, BENCH_TEXT)
           && EVP_DigestFinal_ex(b->copy, b->mac, NULL)
           && EVP_MD_CTX_copy_ex(b->copy, b->outer)
           && EVP_DigestUpdate(b->copy, b->mac, 32)
           && EVP_DigestFinal_ex(b->copy, b->mac, NULL);
}


static int
bench_state(bench_t *b)
{
    SHA256_CTX  sha;

    sha = b->first;

    SHA256_Update(&sha, b->text, BENCH_TEXT);
    SHA256_Final(b->mac, &sha);

    sha = b->last;

    SHA256_Update(&sha, b->mac, 32);

    return SHA256_Final(b->mac, &sha);
}


static int
bench_url(bench_t *b)
{
    uint8_t    heap[2048];
    xet_buf_t  buf;

    xet_buf_init(&buf, bench_alloc, heap, 1024);

    return xet_sign_url(b->key, &b->url, &buf) == XET_OK;
}


static EVP_MD_CTX *
bench_pad(const bench_t *b, uint8_t pad, SHA256_CTX *sha)
{
    size_t       i;
    uint8_t      block[BENCH_BLOCK];
    EVP_MD_CTX  *ctx;

    for (i = 0; i < BENCH_BLOCK; i++) {
        block[i] = (uint8_t) ((i < 32 ? b->secret[i] : 0) ^ pad);
    }

    SHA256_Init(sha);
    SHA256_Update(sha, block, BENCH_BLOCK);

    ctx = EVP_MD_CTX_new();

    return (ctx && EVP_DigestInit_ex2(ctx, EVP_sha256(), NULL)
            && EVP_DigestUpdate(ctx, block, BENCH_BLOCK))
           ? ctx : NULL;
}


static int
bench_init(bench_t *b)
{
    char         digest[] = "SHA256";
    size_t       i;
    EVP_MAC     *mac;
    OSSL_PARAM   params[2];

    for (i = 0; i < BENCH_TEXT; i++) {
        b->text[i] = (uint8_t) (i * 7);
        b->secret[i % 32] = (uint8_t) i;
    }

    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
                                                 digest, 0);
    params[1] = OSSL_PARAM_construct_end();

    mac = EVP_MAC_fetch(NULL, "HMAC", NULL);

    b->keyed = EVP_MAC_CTX_new(mac);
    b->ctx = EVP_MAC_CTX_new(mac);
    b->inner = bench_pad(b, 0x36, &b->first);
    b->outer = bench_pad(b, 0x5c, &b->last);
    b->copy = EVP_MD_CTX_new();

    b->key = xet_sign_key_create((const uint8_t *) "k1", 2, b->secret, 32);

    b->range.start = 1000000;
    b->range.end = 2000000;

    b->url.ns = (const uint8_t *) "default";
    b->url.ns_len = 7;
    b->url.expires = 1900000000;
    b->url.ranges = &b->range;
    b->url.n = 1;

    return b->key && b->inner && b->outer && b->copy
           && EVP_MAC_init(b->keyed, b->secret, 32, params)
           && EVP_MAC_init(b->ctx, b->secret, 32, params);
}


int
main(void)
{
    int       ok;
    double    start;
    bench_t   b;
    uint8_t   want[32];
    unsigned  i, k, run, runs, loop;

    static const bench_way_t  ways[] = {
        { "EVP_Q_mac", bench_once },
        { "EVP_MAC_CTX_dup", bench_dup },
        { "EVP_MAC_init, 11 updates", bench_pieces },
        { "EVP_MAC_init, 1 update", bench_again },
        { "EVP_MD_CTX_copy_ex, twice", bench_copy },
        { "SHA256_CTX, copied twice", bench_state },
        { "xet_sign_url", bench_url }
    };

    static double  ns[sizeof(ways) / sizeof(ways[0])][BENCH_RUNS];

    memset(&b, 0, sizeof(bench_t));

    ok = bench_init(&b);
    runs = (unsigned) bench_choose(BENCH_RUNS, 1);
    loop = (unsigned) bench_choose(BENCH_LOOP, BENCH_LOOP / 20);

    for (run = 0; ok && run < runs; run++) {
        for (i = 0; ok && i < sizeof(ways) / sizeof(ways[0]); i++) {
            start = bench_cpu();

            for (k = 0; k < loop; k++) {
                ok &= ways[i].run(&b);
            }

            ns[i][run] = (bench_cpu() - start) * 1e9 / loop;

            if (i == 0) {
                memcpy(want, b.mac, 32);
            }

            ok &= memcmp(b.mac, want, 32) == 0;
        }
    }

    if (!ok) {
        fprintf(stderr, "a way failed, or gave another MAC\n");
        return 1;
    }

    printf("HMAC-SHA256 of %d bytes, ns: median (min..max) of %u runs\n",
           BENCH_TEXT, runs);

    for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        qsort(ns[i], runs, sizeof(double), bench_compare);

        printf("%-26s %6.0f (%.0f..%.0f)\n", ways[i].name,
               ns[i][runs / 2], ns[i][0], ns[i][runs - 1]);
        bench_row("MAC", ways[i].name, ns[i][runs / 2], "ns", NULL, 0, "less");
    }

    return 0;
}
