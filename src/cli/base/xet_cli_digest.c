
/*
 * Computes digests of local files: Xet hash, size, number of chunks, SHA-256.
 */


#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli.h"


static void xet_cli_digest_chunk(xet_cli_digest_t *d);


int
xet_cli_digest_begin(xet_cli_digest_t *d, int sha256)
{
    xet_chunker_init(&d->chunker, &xet_suite_default);
    xet_merkle_init(&d->merkle, &xet_suite_default);

    d->sha256 = NULL;
    d->len = 0;
    d->size = 0;
    d->chunks = 0;

    return sha256 ? xet_cli_sha256_begin(&d->sha256) : XET_CLI_OK;
}


int
xet_cli_sha256_begin(EVP_MD_CTX **ctx)
{
    *ctx = EVP_MD_CTX_new();

    if (*ctx && EVP_DigestInit_ex(*ctx, EVP_sha256(), NULL) == 1) {
        return XET_CLI_OK;
    }

    EVP_MD_CTX_free(*ctx);
    *ctx = NULL;

    return xet_cli_no_memory();
}


void
xet_cli_digest_feed(xet_cli_digest_t *d, const uint8_t *data, size_t len)
{
    int     cut;
    size_t  n;

    d->size += len;

    if (d->sha256) {
        EVP_DigestUpdate(d->sha256, data, len);
    }

    while (len) {
        n = xet_chunker_feed(&d->chunker, data, len, &cut);

        /* the chunker ends a chunk at XET_CHUNK_MAX bytes at the latest */

        memcpy(d->chunk + d->len, data, n);
        d->len += n;

        if (cut) {
            xet_cli_digest_chunk(d);
        }

        data += n;
        len -= n;
    }
}


static void
xet_cli_digest_chunk(xet_cli_digest_t *d)
{
    xet_hash_t  hash;

    xet_hash_chunk(&xet_suite_default, d->chunk, d->len, &hash);
    xet_merkle_add(&d->merkle, hash.bytes, d->len);

    d->chunks++;
    d->len = 0;
}


void
xet_cli_digest_end(xet_cli_digest_t *d)
{
    xet_hash_t  root;

    if (d->len) {
        xet_cli_digest_chunk(d);
    }

    xet_merkle_finish(&d->merkle, &root);
    xet_hash_file(&xet_suite_default, &root, &d->hash);

    if (d->sha256) {
        EVP_DigestFinal_ex(d->sha256, d->digest, NULL);
        EVP_MD_CTX_free(d->sha256);
        d->sha256 = NULL;
    }
}


int
xet_cli_digest_file(xet_cli_digest_t *d, FILE *file, const char *name,
    int sha256)
{
    int     rc;
    size_t  n;

    rc = xet_cli_digest_begin(d, sha256);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    do {
        n = fread(d->buffer, 1, XET_CLI_DIGEST_BUFFER, file);
        xet_cli_digest_feed(d, d->buffer, n);
    } while (n && !xet_cli_interrupted);

    if (ferror(file)) {
        rc = xet_cli_fail_errno(name);
    }

    xet_cli_digest_end(d);

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : rc;
}


int
xet_cli_sha256(int fd, const char *name, uint64_t most,
    uint8_t sha256[XET_CLI_SHA256_LEN], uint64_t *size)
{
    int          rc;
    size_t       len;
    ssize_t      n;
    uint8_t     *buffer;
    EVP_MD_CTX  *md;

    *size = 0;
    md = NULL;

    buffer = malloc(XET_CLI_DIGEST_BUFFER);
    rc = buffer ? xet_cli_sha256_begin(&md) : xet_cli_no_memory();

    while (rc == XET_CLI_OK && *size < most) {
        len = (most - *size < XET_CLI_DIGEST_BUFFER) ? (size_t) (most - *size)
                                                     : XET_CLI_DIGEST_BUFFER;
        n = pread(fd, buffer, len, (off_t) *size);

        if (n <= 0) {
            rc = n ? xet_cli_fail_errno(name) : XET_CLI_OK;
            break;
        }

        EVP_DigestUpdate(md, buffer, (size_t) n);
        *size += (uint64_t) n;

        rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED : XET_CLI_OK;
    }

    if (rc == XET_CLI_OK) {
        EVP_DigestFinal_ex(md, sha256, NULL);
    }

    EVP_MD_CTX_free(md);
    free(buffer);

    return rc;
}


FILE *
xet_cli_open(const char *name)
{
    FILE  *file;

    file = strcmp(name, "-") ? fopen(name, "rb") : stdin;

    if (file == NULL) {
        (void) xet_cli_fail_errno(name);
    }

    return file;
}


void
xet_cli_close(FILE *file)
{
    if (file && file != stdin) {
        fclose(file);
    }
}
