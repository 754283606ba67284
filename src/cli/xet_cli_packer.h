
/*
 * Makes of a file what an upload needs: its chunks, its terms, its hashes.
 *
 * A file is read once, in pieces of 8 MiB, and may be a pipe.  Of each piece
 * the chunks that may be in the index of the server are asked for; then it is
 * decided, chunk by chunk, what is sent and what is referred to.
 *
 * A reference that does not go on where the one before has ended is another
 * place to read from (draft-denis-xet, "Fragmentation Prevention").  It is
 * taken for 8 chunks in a row or more, or up to the end of the file; for
 * fewer as long as terms have 8 chunks on average: a chunk earns a credit, a
 * term costs 8, and no more than 256 are saved up.  The last chunks of a
 * piece wait for the next one, since what follows them counts.
 */

#ifndef _XET_CLI_PACKER_H_INCLUDED_
#define _XET_CLI_PACKER_H_INCLUDED_


#include <openssl/evp.h>

#include "xet_cli_upload.h"


typedef struct {
    xet_hash_t             hash;
    size_t                 start;      /* in the piece */
    uint32_t               len;
} xet_cli_packer_chunk_t;


typedef struct {
    xet_cli_upload_t      *upload;

    /* the file */

    FILE                  *in;
    xet_cli_file_t        *file;
    xet_chunker_t          chunker;
    xet_merkle_t           merkle;
    EVP_MD_CTX            *sha256;
    uint64_t               total;      /* chunks */
    unsigned               eof:1;

    /* the piece of it */

    uint8_t               *piece;
    size_t                 have;       /* bytes in it */
    size_t                 open;       /* where the open chunk begins */
    xet_cli_packer_chunk_t  *chunks;
    size_t                 nchunks;
    size_t                 asked;      /* of them, up to here */

    /* the term */

    xet_cli_segment_t      segment;
    unsigned               segmented:1;
    unsigned               credit;

    xet_cli_place_t        back;       /* behind the term before */
    unsigned               interrupted:1;   /* there is one */
    uint8_t               *hashes;     /* of its chunks */
} xet_cli_packer_t;


/* XET_CLI_OK or XET_CLI_ERROR, told of; free in any case. */
int xet_cli_packer_init(xet_cli_packer_t *p, xet_cli_upload_t *upload);
void xet_cli_packer_free(xet_cli_packer_t *p);

/*
 * All of a stream; fills file, whose name is set.  XET_CLI_OK or an exit
 * code, told of.
 */
int xet_cli_packer_file(xet_cli_packer_t *p, FILE *in, xet_cli_file_t *file);


#endif /* _XET_CLI_PACKER_H_INCLUDED_ */
