
/*
 * Answers to dedup queries: shards that tell of xorbs which the server has,
 * their chunk hashes under a key.
 */

#ifndef _XET_CLI_DEDUP_H_INCLUDED_
#define _XET_CLI_DEDUP_H_INCLUDED_


#include "xet_cli.h"


/*
 * Takes in an answer.  XET_CLI_OK, also when it is of no use, or
 * XET_CLI_ERROR, told of.
 */
int xet_cli_dedup_learn(xet_ingest_t *in, const uint8_t *data, size_t len);


#endif /* _XET_CLI_DEDUP_H_INCLUDED_ */
