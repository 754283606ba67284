
/*
 * Declarations shared by the parts of xet_make.  It is a tool for tests: any
 * error ends the process with a message and status 1.
 */

#ifndef _XET_MAKE_H_INCLUDED_
#define _XET_MAKE_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "xet.h"


void xet_make_fatal(const char *fmt, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

/* Exits with a message unless status is XET_OK. */
void xet_make_check(xet_status_t status, const char *what);

/* Returns zeroed memory, never NULL; it is freed when the process ends. */
void *xet_make_alloc(size_t n, size_t size);

/* An xet_alloc_pt with the behavior of xet_make_alloc(). */
void *xet_make_buf_alloc(void *data, size_t size);

/* Reads a whole file; "-" is the standard input. */
uint8_t *xet_make_read(const char *path, size_t *len);

/* Opens or writes a file; "-" is the standard output. */
FILE *xet_make_open(const char *path);
void xet_make_put(FILE *f, const void *data, size_t len);
void xet_make_close(FILE *f);

uint64_t xet_make_number(const char *s, uint64_t max);
void xet_make_key(uint8_t *key, const char *hex);
void xet_make_hash(xet_hash_t *hash, const char *s);

json_t *xet_make_json_hash(const uint8_t *bytes);
json_t *xet_make_json_u64(uint64_t v);
void xet_make_json_print(json_t *j);


/*
 * Returns the lengths of the chunks of data.  If sizes is NULL, they are from
 * the chunker; otherwise from the list "a,b,c", whose last number repeats.
 */
uint32_t *xet_make_cut(const uint8_t *data, size_t len, const char *sizes,
    size_t *n);


int xet_make_random(int argc, char **argv);
int xet_make_mix(int argc, char **argv);
int xet_make_schemes(int argc, char **argv);
int xet_make_xorb(int argc, char **argv);
int xet_make_xorb_info(int argc, char **argv);
int xet_make_decode_xorb(int argc, char **argv);
int xet_make_shard(int argc, char **argv);
int xet_make_parse_shard(int argc, char **argv);


#endif /* _XET_MAKE_H_INCLUDED_ */
