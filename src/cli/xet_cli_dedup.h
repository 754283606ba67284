
/*
 * Answers to dedup queries: shards that list xorbs which the server has, with
 * chunk hashes under a key.
 */

#ifndef _XET_CLI_DEDUP_H_INCLUDED_
#define _XET_CLI_DEDUP_H_INCLUDED_


#include "xet_cli.h"


/*
 * Adds the xorbs of an answer of len bytes to the known ones of the ingest.
 * XET_CLI_OK, also if the answer is malformed, expired or of another version;
 * XET_CLI_INTERRUPTED; XET_CLI_ERROR without memory, reported.
 */
int xet_cli_dedup_learn(xet_ingest_t *in, const uint8_t *data, size_t len);


#endif /* _XET_CLI_DEDUP_H_INCLUDED_ */
