
/*
 * A download that is not complete: NAME.xet-part with the bytes that came,
 * each in its place, and NAME.xet-state with a record of 48 bytes for every
 * chunk of them.
 *
 *     state   =  "XETPART1", 8 spare bytes, file hash, record*
 *     record  =  offset u64, raw length u32, stored length u32, chunk hash
 *
 * A record is written behind its bytes, and believed only when they hash to
 * what it says: nothing depends on what reached the disk before a crash.
 * The state is locked, so that two downloads don't share it.  Memory is 48
 * bytes for a chunk that is there at the start.
 */

#ifndef _XET_CLI_PART_H_INCLUDED_
#define _XET_CLI_PART_H_INCLUDED_


#include "xet_cli_unit.h"


typedef struct {
    char             *target;
    char             *part;            /* names */
    char             *state;

    int               part_fd;
    int               state_fd;

    xet_cli_chunk_t  *kept;            /* by offset */
    size_t            nkept;
    uint64_t          resumed;         /* bytes of them */

    uint8_t          *records;         /* to be written */
    size_t            len;
    uint64_t          written;         /* when */
} xet_cli_part_t;


/*
 * Opens or makes both files for a target; what they have of another file is
 * dropped.  XET_CLI_OK or XET_CLI_ERROR, told of.
 */
int xet_cli_part_open(xet_cli_part_t *p, const char *target,
    const xet_hash_t *hash);

/* These fit a download; ctx is the part. */
int xet_cli_part_sink(void *ctx, uint64_t offset, const uint8_t *data,
    size_t len);
int xet_cli_part_note(void *ctx, const xet_cli_chunk_t *chunk);
int xet_cli_part_kept(void *ctx, xet_cli_chunk_t *chunk);

/*
 * The end: with complete the bytes get their size and their name, durably;
 * with discard both files go; else they stay for the next time.
 */
int xet_cli_part_complete(xet_cli_part_t *p, uint64_t size);
void xet_cli_part_discard(xet_cli_part_t *p);
void xet_cli_part_close(xet_cli_part_t *p);


#endif /* _XET_CLI_PART_H_INCLUDED_ */
