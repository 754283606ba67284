
/*
 * Uploads: what a session sends.
 *
 * A complete xorb is sent while the next one is written.  Files are registered
 * by shards, when the server has acknowledged all xorbs that they need.
 * Memory is 64 MiB at most for the xorb being written and for each xorb that
 * is under way, and 76 bytes for each term.
 */

#ifndef _XET_CLI_UPLOAD_H_INCLUDED_
#define _XET_CLI_UPLOAD_H_INCLUDED_


#include "xet_cli_http.h"
#include "xet_cli_journal.h"


/* A term of a file. */

typedef struct {
    xet_hash_t          xorb;
    uint32_t            start;         /* chunks of the xorb */
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
    xet_cli_journal_t   journal;
    xet_cli_xorbs_t     xorbs;         /* that no shard has listed yet */
    unsigned            once:1;        /* the files cannot be read again */
    unsigned            resumed:1;     /* files need xorbs of an earlier run */
    unsigned            refused:1;     /* the server does not have those */
    unsigned            ended:1;       /* there is nothing to resume */

    uint64_t            parallel;
    xet_cli_upload_xorb_t  *sends;     /* under way */
    unsigned            sending;       /* the number of sends */
    int                 rc;            /* the first failure */

    uint8_t            *body;          /* of the xorb being written, or NULL */
    size_t              len;
} xet_cli_upload_t;


void xet_cli_upload_init(xet_cli_upload_t *u, xet_cli_http_t *h,
    uint64_t parallel);
void xet_cli_upload_free(xet_cli_upload_t *u);

/*
 * Appends to the xorb being written.  XET_OK, XET_NOMEM, or XET_XORB_SIZE over
 * 64 MiB.
 */
xet_status_t xet_cli_upload_write(xet_cli_upload_t *u, const uint8_t *data,
    size_t len);

/*
 * These return XET_CLI_OK, XET_CLI_INTERRUPTED, or the exit code of a failure,
 * reported.
 */

/*
 * Sends the xorb that has been written, which is complete.  Waits before that
 * until fewer xorbs than --parallel are under way.
 */
int xet_cli_upload_xorb(xet_cli_upload_t *u, const xet_xorb_info_t *info);

/*
 * Waits for all xorbs, and registers the files.  If u->refused is set then, the
 * server does not have xorbs of an earlier run that the files refer to.  The
 * upload has forgotten these xorbs, and the files are to be read again; this
 * failure is reported only if u->once says that they cannot.
 */
int xet_cli_upload_commit(xet_cli_upload_t *u, const xet_cli_file_t *files,
    size_t n);


#endif /* _XET_CLI_UPLOAD_H_INCLUDED_ */
