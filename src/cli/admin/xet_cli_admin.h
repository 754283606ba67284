
/*
 * Administration: the database.
 */

#ifndef _XET_CLI_ADMIN_H_INCLUDED_
#define _XET_CLI_ADMIN_H_INCLUDED_


#include "xet_cli_transfer.h"


/*
 * PostgreSQL for the verbs of administration: one session, statements one
 * after the other, rows one at a time.  Only xet_cli_pg.c calls libpq.
 */


typedef struct xet_cli_pg_s  xet_cli_pg_t;
typedef struct pg_result     xet_cli_pg_row_t;


/*
 * The parameters of a statement, 8 at most, as xet_cli_pg_with() of these; they
 * are there as long as the block that they are written in.  A text, or bytes,
 * of NULL are null.  A copy has its tag as a signed number in the database.
 */

typedef struct {
    const void   *value;
    size_t        len;                 /* of bytes */
    int64_t       number;
    unsigned      numeric:1;
    unsigned      last:1;              /* behind the last one */
} xet_cli_pg_param_t;


#define xet_cli_pg_with(...)                                                  \
    ((const xet_cli_pg_param_t[]) { __VA_ARGS__, { .last = 1 } })

#define xet_cli_as_text(text)        { .value = (text) }
#define xet_cli_as_bytes(data, n)    { .value = (data), .len = (n) }
#define xet_cli_as_hash(hash)        xet_cli_as_bytes((hash)->bytes,          \
                                                      XET_HASH_LEN)
#define xet_cli_as_number(n)         { .number = (int64_t) (n), .numeric = 1 }
#define xet_cli_as_tag(tag)          xet_cli_as_number((int32_t) (tag))


/*
 * Takes a row, which is freed afterwards.  XET_CLI_OK, or an exit code that
 * ends the statement, reported by the handler.
 */
typedef int (*xet_cli_pg_row_pt)(void *ctx, const xet_cli_pg_row_t *row);


/*
 * Connects as --postgres or XET_POSTGRES says.  NULL on an error, reported;
 * *rc is the exit code.
 */
xet_cli_pg_t *xet_cli_pg_open(const xet_cli_args_t *args, int *rc);
void xet_cli_pg_close(xet_cli_pg_t *pg);

/*
 * Runs one statement with its parameters, or NULL, and calls row for each of
 * its rows; with NULL they are dropped.  XET_CLI_OK, what row returned,
 * XET_CLI_INTERRUPTED after a signal, or XET_CLI_ERROR, reported.
 */
int xet_cli_pg_query(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, xet_cli_pg_row_pt row, void *ctx);

/*
 * Sets *number to the integer or boolean that a statement returns; without a
 * row it stays as it is.  Returns what xet_cli_pg_query() returns.
 */
int xet_cli_pg_number(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, uint64_t *number);

/* The same for a text, of which size bytes have room. */
int xet_cli_pg_line(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, char *text, size_t size);

/* XET_CLI_OK, or XET_CLI_ERROR, reported, for a standby. */
int xet_cli_pg_primary(xet_cli_pg_t *pg);

/*
 * Runs any number of statements without parameters; their rows are dropped.
 * Returns what xet_cli_pg_query() returns.
 */
int xet_cli_pg_exec(xet_cli_pg_t *pg, const char *sql);

/*
 * The connection as a string for another program, malloc()ed.  Secrets do not
 * belong on a command line: the password is in *password, and others, as that
 * of a key, are in *service, the text of a service file, which the string names
 * as XET_CLI_PG_SERVICE; both malloc()ed, or NULL.  NULL where that can't be
 * had, reported.
 */
char *xet_cli_pg_string(const xet_cli_pg_t *pg, char **password,
    char **service);

#define XET_CLI_PG_SERVICE  "xet"


/* xet_cli_migrate.c: the number of the last migration of this version. */
int xet_cli_migrate_newest(const xet_cli_args_t *args, uint64_t *newest);


/*
 * Read a column of a row, counted from 0.  The function must fit the type that
 * the column has in the statement.  Text and bytes are not copied.
 */

int xet_cli_pg_null(const xet_cli_pg_row_t *row, int column);
uint64_t xet_cli_pg_u64(const xet_cli_pg_row_t *row, int column);  /* int */
int xet_cli_pg_bool(const xet_cli_pg_row_t *row, int column);
const char *xet_cli_pg_text(const xet_cli_pg_row_t *row, int column);
const uint8_t *xet_cli_pg_bytes(const xet_cli_pg_row_t *row, int column,
    size_t *len);

/* Copies a hash; 0 if the column does not have 32 bytes, else 1. */
int xet_cli_pg_hash(const xet_cli_pg_row_t *row, int column,
    xet_hash_t *hash);


/* Whether a name can be that of a repo of a Hub only. */
int xet_cli_named_hub(const char *name);

/*
 * The name under which the store has a repo: one of the store, or of a Hub.
 * malloc()ed; NULL where there is none, and *rc is XET_CLI_OK then, or on an
 * error, reported.
 */
char *xet_cli_named(xet_cli_pg_t *pg, const char *name, int *rc);


#endif /* _XET_CLI_ADMIN_H_INCLUDED_ */
