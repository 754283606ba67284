
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
    char             *url;
} xet_cli_range_t;


typedef struct {
    uint64_t          offset;          /* of the first byte asked for, in the
                                          first term */
    uint64_t          raw_length;      /* of all terms */
    xet_cli_term_t   *terms;
    size_t            nterms;
    xet_cli_range_t  *ranges;          /* by xorb and first chunk */
    size_t            nranges;
} xet_cli_plan_t;


/*
 * Parses a body of version 1 or 2.  XET_CLI_OK: all numbers are within the
 * limits of the protocol, each term lies in its range, and the plan is to be
 * freed.  XET_CLI_NETWORK for a body that is wrong and XET_CLI_ERROR without
 * memory, not reported: *error is the reason.
 */
int xet_cli_plan_parse(xet_cli_plan_t *plan, unsigned version,
    const char *data, size_t len, const char **error);

void xet_cli_plan_free(xet_cli_plan_t *plan);

/* Whether two plans have the same chunks, be their bytes where they may. */
int xet_cli_plan_same(const xet_cli_plan_t *a, const xet_cli_plan_t *b);


#endif /* _XET_CLI_PLAN_H_INCLUDED_ */
