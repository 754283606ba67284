
/*
 * JSON of the command line: results go out as one object a line, by the
 * writer of the core; answers come in by jansson.
 */

#ifndef _XET_CLI_JSON_H_INCLUDED_
#define _XET_CLI_JSON_H_INCLUDED_


#include <jansson.h>

#include "xet_cli.h"


typedef struct {
    xet_buf_t   buf;
    xet_json_t  json;
} xet_cli_json_t;


/* Opens the object of a line; returns the writer of its members. */
xet_json_t *xet_cli_json_begin(xet_cli_json_t *o);

/* A value of NULL is written as null. */
void xet_cli_json_put_string(xet_json_t *j, const char *key,
    const char *value);
void xet_cli_json_put_u64(xet_json_t *j, const char *key, uint64_t value);
void xet_cli_json_put_hash(xet_json_t *j, const char *key,
    const xet_hash_t *hash);

/*
 * Closes the object, prints it as a line, escaped for a terminal, and frees it.
 * XET_CLI_OK, or an exit code of xet_cli_flush() or of no memory.
 */
int xet_cli_json_end(xet_cli_json_t *o);


/* An xet_alloc_pt by malloc(), and what frees the nodes of such a buffer. */
void *xet_cli_buf_alloc(void *data, size_t size);
void xet_cli_buf_free(xet_buf_t *b);

/* The bytes of a buffer in one piece, malloc()ed; NULL without memory. */
uint8_t *xet_cli_buf_bytes(const xet_buf_t *b, size_t *len);


/*
 * Parses a text of somebody else.  NULL if it is not JSON; also, with *large
 * set, if it would take more than about room bytes of memory.
 */
json_t *xet_cli_json_load(const char *data, size_t len, size_t flags,
    size_t room, int *large);

/* Read a member; 0 if it is missing, negative or of another type, else 1. */

int xet_cli_json_get_u64(const json_t *object, const char *key,
    uint64_t *value);
int xet_cli_json_get_hash(const json_t *object, const char *key,
    xet_hash_t *hash);


#endif /* _XET_CLI_JSON_H_INCLUDED_ */
