
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


#include "xet_cli_download.h"


typedef struct {
    int               folder;          /* of the names, or AT_FDCWD */
    char             *target;
    char             *part;            /* names */
    char             *state;

    int               part_fd;
    int               state_fd;

    xet_cli_chunk_t  *kept;            /* by offset */
    size_t            nkept;
    uint64_t          have;            /* bytes of these and of new ones */

    uint8_t          *records;         /* to be written */
    size_t            len;
    uint64_t          written;         /* when */

    int               state_made;      /* it is new */
    int               part_made;
    unsigned          unread:1;        /* a signal came before some records */
} xet_cli_part_t;


/*
 * Opens or makes both files for a target; what they have of another file is
 * dropped.  XET_CLI_OK or XET_CLI_ERROR, told of.
 */
int xet_cli_part_open(xet_cli_part_t *p, int folder, const char *target,
    const xet_hash_t *hash);

/* Downloads what is missing, and all of it where what was there is wrong. */
int xet_cli_part_download(xet_cli_part_t *p, xet_cli_http_t *h,
    xet_cli_download_t *d);

/*
 * The end: with complete the bytes get their size and their name, durably.  Or
 * with ready their size, and with name, when the caller has synced them, their
 * name; a part that is ready and is left so is found again by the next
 * download.  What fails is to be stopped: with stop both files go, or stay for
 * the next time where there is something in them to keep, and that is told.
 */
int xet_cli_part_complete(xet_cli_part_t *p, uint64_t size);
int xet_cli_part_ready(xet_cli_part_t *p, uint64_t size);
int xet_cli_part_name(xet_cli_part_t *p);
void xet_cli_part_stop(xet_cli_part_t *p, int keep);


#endif /* _XET_CLI_PART_H_INCLUDED_ */
