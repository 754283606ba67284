
/*
 * PostgreSQL for the verbs of administration: one session, statements one
 * after the other, rows one at a time.  Only xet_cli_pg.c calls libpq.
 */

#ifndef _XET_CLI_PG_H_INCLUDED_
#define _XET_CLI_PG_H_INCLUDED_


#include "xet_cli.h"


typedef struct xet_cli_pg_s  xet_cli_pg_t;
typedef struct pg_result     xet_cli_pg_row_t;


/* A parameter: text, or bytes of a bytea with len; both NULL is null. */

typedef struct {
    const char   *text;
    const void   *bytes;
    size_t        len;
} xet_cli_pg_param_t;


/* Takes a row, which is gone afterwards; not XET_CLI_OK ends the statement. */
typedef int (*xet_cli_pg_row_pt)(void *ctx, const xet_cli_pg_row_t *row);


/*
 * Connects as --postgres or XET_POSTGRES says.  NULL when that can't be, which
 * has been told of; *rc is the exit code.
 */
xet_cli_pg_t *xet_cli_pg_open(const xet_cli_args_t *args, int *rc);
void xet_cli_pg_close(xet_cli_pg_t *pg);

/*
 * One statement; row may be NULL.  XET_CLI_OK, what row returned, or
 * XET_CLI_ERROR, told of.
 */
int xet_cli_pg_query(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, int n, xet_cli_pg_row_pt row,
    void *ctx);

/* Any number of statements without parameters; their rows are dropped. */
int xet_cli_pg_exec(xet_cli_pg_t *pg, const char *sql);


/* Columns by their number; the type must be the one of the statement. */

int xet_cli_pg_null(const xet_cli_pg_row_t *row, int column);
uint64_t xet_cli_pg_u64(const xet_cli_pg_row_t *row, int column);  /* int */
int xet_cli_pg_bool(const xet_cli_pg_row_t *row, int column);
const char *xet_cli_pg_text(const xet_cli_pg_row_t *row, int column);
const uint8_t *xet_cli_pg_bytes(const xet_cli_pg_row_t *row, int column,
    size_t *len);

/* 0 when it is not 32 bytes. */
int xet_cli_pg_hash(const xet_cli_pg_row_t *row, int column,
    xet_hash_t *hash);


#endif /* _XET_CLI_PG_H_INCLUDED_ */
