
/*
 * Packs files for an upload: reads them, drives the core, which cuts them into
 * chunks and puts together xorbs and terms, and keeps what is to be registered
 * of each file.
 *
 * A file is read once and may be a pipe.  The packer asks the server what the
 * core wants to know, and sends the xorbs that the core completes; both while
 * other xorbs are under way.  Memory is 48 bytes for each known chunk, and 32
 * bytes for each chunk whose term waits for its xorb.
 */

#ifndef _XET_CLI_PACKER_H_INCLUDED_
#define _XET_CLI_PACKER_H_INCLUDED_


#include <openssl/evp.h>

#include "xet_cli_upload.h"


typedef struct {
    xet_cli_upload_t   *upload;
    xet_ingest_t       *core;          /* NULL: until the next file */
    unsigned            begun:1;       /* the core has taken in a file */

    EVP_MD_CTX         *sha256;
    uint8_t            *piece;         /* of the file that is read */

    xet_cli_file_t     *files;         /* not registered so far */
    size_t              nfiles;
    size_t              room;
    size_t              first;         /* the core's number of files[0] */
    size_t              terms;         /* of all these files, so far */

    uint8_t            *hashes;        /* of chunks that have no term yet */
    size_t              hash_first;
    size_t              hash_end;
    size_t              hash_room;
} xet_cli_packer_t;


/*
 * XET_CLI_OK, or XET_CLI_ERROR, reported.  xet_cli_packer_free() is to be
 * called in any case.
 */
int xet_cli_packer_init(xet_cli_packer_t *p, xet_cli_upload_t *upload);
void xet_cli_packer_free(xet_cli_packer_t *p);

/*
 * Reads a stream to its end, as one more of p->files; its terms may come
 * later.  The name is not copied and must outlive p->files.  XET_CLI_OK,
 * XET_CLI_INTERRUPTED, or the exit code of a failure, reported.
 */
int xet_cli_packer_file(xet_cli_packer_t *p, FILE *in, const char *name,
    int executable);

/*
 * Completes the last xorb and registers all files: see xet_cli_upload_commit().
 */
int xet_cli_packer_commit(xet_cli_packer_t *p);

/* Frees the terms of all files and empties p->files, after a commit. */
void xet_cli_packer_clear(xet_cli_packer_t *p);


#endif /* _XET_CLI_PACKER_H_INCLUDED_ */
