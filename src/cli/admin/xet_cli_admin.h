
/* Access to the database for the verbs of administration. */

#ifndef _XET_CLI_ADMIN_H_INCLUDED_
#define _XET_CLI_ADMIN_H_INCLUDED_


#include "xet_cli_transfer.h"


/*
 * PostgreSQL: one session, one statement at a time, one row at a time.  Only
 * xet_cli_pg.c calls libpq.
 */


typedef struct xet_cli_pg_s  xet_cli_pg_t;
typedef struct pg_result     xet_cli_pg_row_t;


/*
 * The parameters of a statement, at most 8, as xet_cli_pg_with() of the macros
 * below; they are valid until the end of the enclosing block.  A text or bytes
 * of NULL are null.  The tag of a copy is a signed number in the database.
 */

typedef struct {
    const void   *value;
    size_t        len;                 /* of bytes */
    int64_t       number;
    unsigned      numeric:1;
    unsigned      last:1;              /* marks the end */
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
 * Takes a row, which is freed afterwards.  Returns XET_CLI_OK, or an exit code
 * that ends the statement, reported by the handler.
 */
typedef int (*xet_cli_pg_row_pt)(void *ctx, const xet_cli_pg_row_t *row);


/*
 * Connects to --postgres or XET_POSTGRES.  Returns NULL on an error, reported;
 * *rc is the exit code.
 */
xet_cli_pg_t *xet_cli_pg_open(const xet_cli_args_t *args, int *rc);
void xet_cli_pg_close(xet_cli_pg_t *pg);

/*
 * Runs one statement with its parameters, or NULL, and calls row for each row;
 * with NULL rows are dropped.  Returns XET_CLI_OK, the result of row,
 * XET_CLI_INTERRUPTED after a signal, or XET_CLI_ERROR, reported.
 */
int xet_cli_pg_query(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, xet_cli_pg_row_pt row, void *ctx);

/*
 * Sets *number to the integer or boolean that a statement returns; if there is
 * no row, *number keeps its value.  Returns like xet_cli_pg_query().
 */
int xet_cli_pg_number(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, uint64_t *number);

/* The same for a text, cut to size bytes. */
int xet_cli_pg_line(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, char *text, size_t size);

/* Returns XET_CLI_ERROR, reported, if the database is a standby. */
int xet_cli_pg_primary(xet_cli_pg_t *pg);

/*
 * Runs any number of statements without parameters; their rows are dropped.
 * Returns like xet_cli_pg_query().
 */
int xet_cli_pg_exec(xet_cli_pg_t *pg, const char *sql);

/*
 * Returns the connection string for another program, malloc()ed, without
 * secrets, since command lines are public.  *password is the password.
 * *service is the text of a service file with the other secrets, such as the
 * password of a key; the connection string names it as XET_CLI_PG_SERVICE.
 * Both are malloc()ed, or NULL.  Returns NULL on an error, reported.
 */
char *xet_cli_pg_string(const xet_cli_pg_t *pg, char **password,
    char **service);

#define XET_CLI_PG_SERVICE  "xet"


/* xet_cli_migrate.c: the number of the newest migration of this version. */
int xet_cli_migrate_newest(const xet_cli_args_t *args, uint64_t *newest);


/*
 * Read a column of a row, counted from 0.  The function must match the type of
 * the column in the statement.  Text and bytes are not copied.
 */

int xet_cli_pg_null(const xet_cli_pg_row_t *row, int column);
uint64_t xet_cli_pg_u64(const xet_cli_pg_row_t *row, int column);  /* int */
int xet_cli_pg_bool(const xet_cli_pg_row_t *row, int column);
const char *xet_cli_pg_text(const xet_cli_pg_row_t *row, int column);
const uint8_t *xet_cli_pg_bytes(const xet_cli_pg_row_t *row, int column,
    size_t *len);

/* Copies a hash; returns 0 if the column does not have 32 bytes, else 1. */
int xet_cli_pg_hash(const xet_cli_pg_row_t *row, int column,
    xet_hash_t *hash);


/* Whether a name can only be that of a Hub repository. */
int xet_cli_named_hub(const char *name);

/*
 * Returns the name that a repository has in the store, for a name in the store
 * or on the Hub, malloc()ed.  Returns NULL if there is none, with XET_CLI_OK
 * in *rc, or on an error, reported.
 */
char *xet_cli_named(xet_cli_pg_t *pg, const char *name, int *rc);


#endif /* _XET_CLI_ADMIN_H_INCLUDED_ */
