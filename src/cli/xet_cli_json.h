
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


/* Opens the object of a line; the writer for what is in it. */
xet_json_t *xet_cli_json_begin(xet_cli_json_t *o);

void xet_cli_json_put_string(xet_json_t *j, const char *key,
    const char *value);
void xet_cli_json_put_u64(xet_json_t *j, const char *key, uint64_t value);
void xet_cli_json_put_hash(xet_json_t *j, const char *key,
    const xet_hash_t *hash);

/* Closes the object and prints the line.  XET_CLI_OK, or an exit code. */
int xet_cli_json_end(xet_cli_json_t *o);


/* xet_alloc_pt by malloc(), and what frees all nodes of such a buffer. */
void *xet_cli_buf_alloc(void *data, size_t size);
void xet_cli_buf_free(xet_buf_t *b);

/* All of it in one piece, malloc()ed; NULL without memory. */
uint8_t *xet_cli_buf_bytes(const xet_buf_t *b, size_t *len);


/*
 * Reads what others have sent, unless it would take more than about room
 * bytes of memory: then *large is set.  NULL also when it is not JSON.
 */
json_t *xet_cli_json_load(const char *data, size_t len, size_t flags,
    size_t room, int *large);

/* Members of an object; 0 when it is not there, or is something else. */

int xet_cli_json_get_u64(const json_t *object, const char *key,
    uint64_t *value);
int xet_cli_json_get_hash(const json_t *object, const char *key,
    xet_hash_t *hash);


#endif /* _XET_CLI_JSON_H_INCLUDED_ */
