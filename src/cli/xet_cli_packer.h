
/*
 * Packs files for an upload: reads them, drives the core, which cuts them into
 * chunks and puts together xorbs and terms, and keeps what is to be registered
 * of each file.
 *
 * A file is read once and may be a pipe.  What the core asks the server is
 * asked, xorbs that it completes are sent; both while others are under way.
 * Memory is 48 bytes a chunk that is known, and 32 bytes a chunk whose term
 * waits for its xorb.
 */

#ifndef _XET_CLI_PACKER_H_INCLUDED_
#define _XET_CLI_PACKER_H_INCLUDED_


#include <openssl/evp.h>

#include "xet_cli_upload.h"


typedef struct {
    xet_cli_upload_t   *upload;
    xet_ingest_t       *core;          /* NULL: before the first file */
    unsigned            begun:1;       /* it has taken in files */

    EVP_MD_CTX         *sha256;
    uint8_t            *piece;         /* of the file that is read */

    xet_cli_file_t     *files;         /* that are not registered */
    size_t              nfiles;
    size_t              room;
    size_t              first;         /* the core's number of the first */
    size_t              terms;         /* of all of them, so far */

    uint8_t            *hashes;        /* of chunks that have no term yet */
    size_t              hash_first;
    size_t              hash_end;
    size_t              hash_room;
} xet_cli_packer_t;


/* XET_CLI_OK or XET_CLI_ERROR, told of; free in any case. */
int xet_cli_packer_init(xet_cli_packer_t *p, xet_cli_upload_t *upload);
void xet_cli_packer_free(xet_cli_packer_t *p);

/*
 * All of a stream: one more of files, whose terms come later.  XET_CLI_OK or
 * an exit code, told of.
 */
int xet_cli_packer_file(xet_cli_packer_t *p, FILE *in, const char *name,
    int executable);

/* Completes and registers the files: see xet_cli_upload_commit(). */
int xet_cli_packer_commit(xet_cli_packer_t *p);

/* Lets go of the files, after a commit. */
void xet_cli_packer_clear(xet_cli_packer_t *p);


#endif /* _XET_CLI_PACKER_H_INCLUDED_ */
