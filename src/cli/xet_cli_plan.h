
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
    size_t            range;           /* that it lies in */
} xet_cli_term_t;


typedef struct {
    xet_hash_t        xorb;
    uint32_t          chunk_start;
    uint32_t          chunk_end;       /* exclusive */
    uint64_t          byte_start;      /* in the xorb */
    uint64_t          byte_end;        /* exclusive */
    const char       *url;             /* one of the plan */
    size_t            reach;           /* while the plan is made */
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
    char            **urls;            /* that ranges have in common */
    size_t            nurls;
    unsigned          large:1;         /* it is refused for that alone */
} xet_cli_plan_t;


/*
 * What is more is refused, whatever it says, and smaller parts of the file are
 * asked for: memory is what the client wants, not what a server sends.  A part
 * of 64 MiB in chunks of 64 KiB, each by itself and with a URL of 512 bytes,
 * has a body of 0.9 MB.
 */

#define XET_CLI_PLAN_BODY    (2 * 1024 * 1024)     /* bytes of JSON */
#define XET_CLI_PLAN_ROOM    (16 * 1024 * 1024)    /* of memory for these */
#define XET_CLI_PLAN_URL     (16 * 1024)           /* bytes of one */
#define XET_CLI_PLAN_RANGES  4096
#define XET_CLI_PLAN_CHUNKS  32768                 /* of all terms */


/*
 * What a body says: XET_CLI_OK, XET_CLI_NETWORK when it is not what it should
 * be, with the reason in *error; XET_CLI_ERROR without memory.  All numbers
 * are within the protocol's limits, all terms within their ranges.  plan->large
 * tells that the plan of less of the file may do.
 */
int xet_cli_plan_parse(xet_cli_plan_t *plan, unsigned version,
    const char *data, size_t len, const char **error);

void xet_cli_plan_free(xet_cli_plan_t *plan);

/* Whether two plans have the same chunks, be their bytes where they may. */
int xet_cli_plan_same(const xet_cli_plan_t *a, const xet_cli_plan_t *b);


#endif /* _XET_CLI_PLAN_H_INCLUDED_ */
