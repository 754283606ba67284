
/*
 * A download that is not complete: NAME.xet-part with the bytes that came,
 * each in its place, and NAME.xet-state with a record of 48 bytes for each of
 * their chunks.
 *
 *     state   =  "XETPART1", 8 spare bytes, file hash, record*
 *     record  =  offset u64, raw length u32, stored length u32, chunk hash
 *
 * A record is written after the bytes of its chunk, and counts only if they
 * have the chunk hash that it names: nothing depends on what reached the disk
 * before a crash.  The state is locked, so that two downloads do not share it.
 * Memory is 48 bytes for each chunk that an earlier run has left.
 */

#ifndef _XET_CLI_PART_H_INCLUDED_
#define _XET_CLI_PART_H_INCLUDED_


#include "xet_cli_download.h"


typedef struct {
    int               folder;          /* names are relative to it */
    char             *target;
    char             *part;            /* name of the part */
    char             *state;           /* name of the state */

    int               part_fd;
    int               state_fd;

    xet_cli_chunk_t  *kept;            /* of an earlier run, by offset */
    size_t            nkept;
    uint64_t          have;            /* bytes of kept and new chunks */

    uint8_t          *records;         /* to be written */
    size_t            len;
    uint64_t          written;         /* time of the last write, in ms */

    int               state_made;      /* this run has made the file */
    int               part_made;
    unsigned          unread:1;        /* a signal came before some records */
} xet_cli_part_t;


/*
 * Opens or makes both files for a target, whose name is copied; bytes of a
 * file with another hash are dropped.  XET_CLI_OK, XET_CLI_INTERRUPTED, or
 * XET_CLI_ERROR, reported; then nothing is to be closed.
 */
int xet_cli_part_open(xet_cli_part_t *p, int folder, const char *target,
    const xet_hash_t *hash);

/*
 * Downloads what is missing; the whole file again if the bytes that were there
 * are wrong.
 */
int xet_cli_part_download(xet_cli_part_t *p, xet_cli_http_t *h,
    xet_cli_download_t *d);

/*
 * End a download.  xet_cli_part_complete() cuts the part to size bytes, renames
 * it to the target and removes the state, durably.
 *
 * xet_cli_part_ready() and xet_cli_part_name() do the same in two steps, and
 * sync nothing: the first cuts the part, and the second, after the caller has
 * synced the part, renames it.  A part that gets no name after the first step
 * is resumed by the next download.
 *
 * All three return XET_CLI_OK, or XET_CLI_ERROR, reported: then the caller
 * still calls xet_cli_part_stop(), which removes both files.  With keep it
 * leaves them for the next run if they have any chunks, which it reports.
 */
int xet_cli_part_complete(xet_cli_part_t *p, uint64_t size);
int xet_cli_part_ready(xet_cli_part_t *p, uint64_t size);
int xet_cli_part_name(xet_cli_part_t *p);
void xet_cli_part_stop(xet_cli_part_t *p, int keep);


#endif /* _XET_CLI_PART_H_INCLUDED_ */
