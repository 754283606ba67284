
/*
 * Downloads: a file, or bytes of it, by reconstructions and data URLs.
 *
 * The file is asked for in windows that begin and end with chunks; several
 * are under way at a time, and in them several units.  Every chunk is decoded
 * and hashed when it comes; of a whole file the hashes must give the hash of
 * the file.  Bytes of a file can't be proved right, only that they decompress
 * as they should.
 */

#ifndef _XET_CLI_DOWNLOAD_H_INCLUDED_
#define _XET_CLI_DOWNLOAD_H_INCLUDED_


#include "xet_cli_window.h"


#define XET_CLI_DOWNLOAD_ALL       UINT64_MAX

/* Bytes of a window: to a file, and where all of it is in memory. */

#define XET_CLI_DOWNLOAD_WINDOW    (64 * 1024 * 1024)
#define XET_CLI_DOWNLOAD_ORDERED   (16 * 1024 * 1024)

#define XET_CLI_DOWNLOAD_PARALLEL  8


typedef struct {

    /* set by the caller */

    xet_hash_t             hash;
    uint64_t               first;      /* byte */
    uint64_t               end;        /* exclusive, or ..._ALL */
    uint64_t               most;       /* bytes that the file may have, or
                                          ..._ALL */
    const char            *name;       /* of it, to tell when it has more */
    uint64_t               parallel;   /* transfers */
    unsigned               ordered:1;  /* the sink wants a stream */

    /*
     * Takes bytes of the file, in order or in none; also some before first
     * and behind end, of the chunks that these are in.  XET_CLI_OK, or the
     * code to end with; told of.
     */
    int                  (*sink)(void *ctx, uint64_t offset,
                                 const uint8_t *data, size_t len);
    /* after the sink has a chunk; both may be NULL */
    int                  (*note)(void *ctx, const xet_cli_chunk_t *chunk);
    xet_cli_unit_kept_pt   kept;
    void                  *ctx;

    /* results */

    uint64_t               size;       /* where it ended, in the file */
    uint64_t               chunks;
    uint64_t               received;   /* bytes of xorbs */
    unsigned               passing:1;  /* what it failed of may pass */
    unsigned               doubted:1;  /* what was there may be wrong, which
                                          nobody was told of */
} xet_cli_download_t;


/* XET_CLI_OK, or the exit code of what has been told of. */
int xet_cli_download(xet_cli_http_t *h, xet_cli_download_t *d);

/*
 * The size of a file, by HEAD files: XET_CLI_OK, or XET_CLI_FAULT where there
 * is no such file or no such route.  quiet: tells of nothing.
 */
int xet_cli_download_size(xet_cli_http_t *h, const xet_hash_t *hash,
    int quiet, uint64_t *size);


#endif /* _XET_CLI_DOWNLOAD_H_INCLUDED_ */
