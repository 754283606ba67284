
/*
 * Uploads: what a session sends.
 *
 * Chunks that are new go into the open xorb; a full one is sent while the
 * next one fills.  Files are registered by shards when all xorbs that they
 * need were acknowledged.  Memory is that of one xorb, 64 MiB at most, for
 * the open one and for each that is under way, and 56 bytes a term.
 */

#ifndef _XET_CLI_UPLOAD_H_INCLUDED_
#define _XET_CLI_UPLOAD_H_INCLUDED_


#include "xet_cli_dedup.h"
#include "xet_cli_http.h"
#include "xet_cli_journal.h"


/* A term of a file; the xorb by its number. */

typedef struct {
    uint32_t            xorb;
    uint32_t            start;         /* chunks */
    uint32_t            end;           /* exclusive */
    uint32_t            raw_length;
    xet_hash_t          verification;
} xet_cli_segment_t;


typedef struct {
    const char         *name;
    xet_hash_t          hash;
    uint64_t            size;
    uint64_t            new_bytes;
    uint8_t             sha256[32];
    unsigned            executable:1;
    xet_cli_segment_t  *segments;
    size_t              count;
    size_t              room;
} xet_cli_file_t;


typedef struct xet_cli_upload_xorb_s  xet_cli_upload_xorb_t;


typedef struct {
    xet_cli_http_t     *http;
    xet_cli_dedup_t     dedup;
    xet_cli_journal_t   journal;
    unsigned            once:1;        /* what is read can't be read again */
    unsigned            resumed:1;     /* files refer to such xorbs */
    unsigned            refused:1;     /* the server has them no more */
    unsigned            ended:1;       /* there is nothing to resume */
    xet_xorb_writer_t  *writer;
    uint64_t            parallel;
    xet_cli_upload_xorb_t  *xorbs;     /* under way */

    uint8_t            *body;          /* of the open xorb, NULL: none */
    size_t              len;
    uint32_t            xorb;
    unsigned            sending;       /* how many these are */
    int                 rc;            /* the first failure */

    uint32_t           *sent;          /* xorbs that no shard tells of yet */
    size_t              nsent;
    size_t              sent_room;
    uint64_t            sent_bytes;
} xet_cli_upload_t;


/* XET_CLI_OK or an exit code, told of; so all that follow. */

int xet_cli_upload_init(xet_cli_upload_t *u, xet_cli_http_t *h,
    uint64_t parallel);
void xet_cli_upload_free(xet_cli_upload_t *u);

/* A new chunk, and where it is now. */
int xet_cli_upload_chunk(xet_cli_upload_t *u, const uint8_t *data,
    uint32_t len, const xet_hash_t *hash, xet_cli_place_t *place);

/*
 * Sends what is open, waits for all, and registers the files.  With refused
 * nothing has been told of: the files are to be read again, for the xorbs of
 * an earlier run that they refer to are forgotten.
 */
int xet_cli_upload_commit(xet_cli_upload_t *u, const xet_cli_file_t *files,
    size_t n);


#endif /* _XET_CLI_UPLOAD_H_INCLUDED_ */
