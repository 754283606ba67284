
/*
 * What a local file is to the protocol: its hash, its size, the number of its
 * chunks and its SHA-256; computed in one pass, in constant memory.
 */

#ifndef _XET_CLI_DIGEST_H_INCLUDED_
#define _XET_CLI_DIGEST_H_INCLUDED_


#include <openssl/evp.h>

#include "xet_cli.h"


#define XET_CLI_SHA256_LEN  32


typedef struct {
    xet_chunker_t   chunker;
    xet_merkle_t    merkle;
    EVP_MD_CTX     *sha256;            /* NULL: not wanted */
    uint8_t         chunk[XET_CHUNK_MAX];
    size_t          len;               /* of the open chunk */

    uint64_t        size;
    uint64_t        chunks;

    /* after the end */

    xet_hash_t      hash;
    uint8_t         digest[XET_CLI_SHA256_LEN];
} xet_cli_digest_t;


/*
 * Digest a file that comes in pieces, also its SHA-256 if sha256 is set.
 * xet_cli_digest_begin() returns XET_CLI_OK, or XET_CLI_ERROR, reported;
 * xet_cli_digest_end() sets the results and frees what begin has allocated.
 */
int xet_cli_digest_begin(xet_cli_digest_t *d, int sha256);
void xet_cli_digest_feed(xet_cli_digest_t *d, const uint8_t *data,
    size_t len);
void xet_cli_digest_end(xet_cli_digest_t *d);

/*
 * Digests a stream from its position to its end; name is for messages.
 * XET_CLI_OK, XET_CLI_INTERRUPTED, or XET_CLI_ERROR, reported.
 */
int xet_cli_digest_file(xet_cli_digest_t *d, FILE *file, const char *name,
    int sha256);

/*
 * Opens a file for reading, "-" is the standard input; NULL on an error, which
 * is reported.  xet_cli_close() takes NULL, and leaves the standard input open.
 */
FILE *xet_cli_open(const char *name);
void xet_cli_close(FILE *file);


#endif /* _XET_CLI_DIGEST_H_INCLUDED_ */
