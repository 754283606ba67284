
/*
 * Downloads: a file, or bytes of it, by reconstructions and data URLs.
 *
 * The file is asked for in windows that begin and end with chunks; several
 * are under way at a time, and in them several units.  Every chunk is decoded
 * and hashed when it comes; of a whole file the hashes must give the hash of
 * the file.  A part of a file cannot be proved right in this way: it is only
 * known that its chunks decompress and that the terms have their lengths.
 */

#ifndef _XET_CLI_DOWNLOAD_H_INCLUDED_
#define _XET_CLI_DOWNLOAD_H_INCLUDED_


#include "xet_cli_window.h"


#define XET_CLI_DOWNLOAD_ALL       UINT64_MAX

/* Bytes of a window; a window of an ordered download is kept in memory. */

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
    const char            *name;       /* of the file, for reports */
    uint64_t               parallel;   /* transfers */
    unsigned               ordered:1;  /* the sink wants a stream */

    /*
     * Takes bytes of the file, in order only if ordered is set.  They are
     * whole chunks: some bytes may lie before first or behind end.
     * XET_CLI_OK, or the exit code to end with, reported by the sink.
     */
    int                  (*sink)(void *ctx, uint64_t offset,
                                 const uint8_t *data, size_t len);
    /*
     * Takes each chunk that was fetched: after the sink, or if ordered is set
     * before it.  NULL: not wanted.
     */
    int                  (*note)(void *ctx, const xet_cli_chunk_t *chunk);
    xet_cli_unit_kept_pt   kept;       /* NULL: no chunk is kept */
    void                  *ctx;

    /* results */

    uint64_t               size;       /* end of the last window */
    uint64_t               chunks;
    uint64_t               received;   /* bytes of xorbs */
    unsigned               passing:1;  /* a later run may succeed */
    unsigned               doubted:1;  /* kept bytes may be wrong; not
                                          reported */
} xet_cli_download_t;


/*
 * Downloads a file or a part of it, as *d says, and verifies the hash of a
 * whole file.  XET_CLI_OK, XET_CLI_INTERRUPTED, or the exit code of a failure
 * that has been reported.
 */
int xet_cli_download(xet_cli_http_t *h, xet_cli_download_t *d);

/*
 * Asks for the size of a file in bytes, by a HEAD request of its files route.
 * XET_CLI_OK or XET_CLI_INTERRUPTED.  A failure is reported and returned as by
 * xet_cli_http_fail(); with quiet any failure is XET_CLI_FAULT, not reported.
 */
int xet_cli_download_size(xet_cli_http_t *h, const xet_hash_t *hash,
    int quiet, uint64_t *size);


#endif /* _XET_CLI_DOWNLOAD_H_INCLUDED_ */
