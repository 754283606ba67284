
/*
 * Reconstructions as the server answers them, version 2 or 1: the terms of a
 * part of a file, and the ranges of xorbs to fetch for them.
 */

#ifndef _XET_CLI_PLAN_H_INCLUDED_
#define _XET_CLI_PLAN_H_INCLUDED_


#include "xet_cli.h"


typedef struct {
    xet_hash_t        xorb;
    uint32_t          chunk_start;
    uint32_t          chunk_end;       /* exclusive */
    uint64_t          raw_length;
    size_t            range;           /* index of the one that holds it */
} xet_cli_term_t;


typedef struct {
    xet_hash_t        xorb;
    uint32_t          chunk_start;
    uint32_t          chunk_end;       /* exclusive */
    uint64_t          byte_start;      /* in the xorb */
    uint64_t          byte_end;        /* exclusive */
    const char       *url;             /* in plan->urls */
    size_t            reach;           /* while the plan is parsed */
} xet_cli_range_t;


typedef struct {
    uint64_t          offset;          /* of the first byte asked for, in the
                                          first term */
    uint64_t          raw_length;      /* of all terms */
    xet_cli_term_t   *terms;
    size_t            nterms;
    xet_cli_range_t  *ranges;          /* by xorb and first chunk; each has a
                                          term */
    size_t            nranges;
    char            **urls;            /* one for each entry */
    size_t            nurls;
    unsigned          large:1;         /* refused, and only for its size */
} xet_cli_plan_t;


/*
 * Limits of a plan.  A larger plan is refused, and the caller asks for a
 * smaller part of the file, so that memory does not depend on what a server
 * sends.  A part of 64 MiB in chunks of 64 KiB, each of them in a range of its
 * own with a URL of 512 bytes, has a body of 0.9 MB.
 */

#define XET_CLI_PLAN_BODY    (2 * 1024 * 1024)     /* bytes of JSON */
#define XET_CLI_PLAN_ROOM    (16 * 1024 * 1024)    /* of memory for the JSON */
#define XET_CLI_PLAN_URL     (16 * 1024)           /* bytes of a URL */
#define XET_CLI_PLAN_RANGES  4096
#define XET_CLI_PLAN_CHUNKS  32768                 /* of all terms */


/*
 * Parses a body of version 1 or 2.  XET_CLI_OK: all numbers are within the
 * limits of the protocol, each term lies in its range, and the plan is to be
 * freed.  XET_CLI_NETWORK for a body that is wrong and XET_CLI_ERROR without
 * memory, not reported: *error is the reason.  With plan->large the plan of a
 * smaller part of the file may be taken.
 */
int xet_cli_plan_parse(xet_cli_plan_t *plan, unsigned version,
    const char *data, size_t len, const char **error);

void xet_cli_plan_free(xet_cli_plan_t *plan);

/* Whether two plans have the same chunks, be their bytes where they may. */
int xet_cli_plan_same(const xet_cli_plan_t *a, const xet_cli_plan_t *b);


#endif /* _XET_CLI_PLAN_H_INCLUDED_ */
