
/* Database access for the verbs that administer a server. */

#ifndef _XET_CLI_ADMIN_H_INCLUDED_
#define _XET_CLI_ADMIN_H_INCLUDED_


#include "xet_cli_transfer.h"


/*
 * A PostgreSQL session, which runs one statement at a time and returns its
 * rows one by one.  Only xet_cli_pg.c calls libpq.
 */


typedef struct xet_cli_pg_s  xet_cli_pg_t;
typedef struct pg_result     xet_cli_pg_row_t;


/*
 * One parameter of a statement.  A statement has at most 8 parameters, written
 * as xet_cli_pg_with(xet_cli_as_text(name), xet_cli_as_number(n)).  The
 * parameters are valid until the end of the enclosing block.  Text or bytes
 * with a NULL pointer become an SQL NULL.  The id of a copy is unsigned here,
 * but a signed integer in the database.
 */

typedef struct {
    const void   *value;
    size_t        len;                 /* number of bytes; 0: a text */
    int64_t       number;
    unsigned      numeric:1;
    unsigned      last:1;              /* end of the parameters */
} xet_cli_pg_param_t;


#define xet_cli_pg_with(...)                                                  \
    ((const xet_cli_pg_param_t[]) { __VA_ARGS__, { .last = 1 } })

#define xet_cli_as_text(text)        { .value = (text) }
#define xet_cli_as_bytes(data, n)    { .value = (data), .len = (n) }
#define xet_cli_as_hash(hash)        xet_cli_as_bytes((hash)->bytes,          \
                                                      XET_HASH_LEN)
#define xet_cli_as_number(n)         { .number = (int64_t) (n), .numeric = 1 }
#define xet_cli_as_copy_id(id)       xet_cli_as_number((int32_t) (id))


/*
 * Handles one row; the row is freed when the handler returns.  Returns
 * XET_CLI_OK, or an exit code, after printing the error, to cancel the
 * statement.
 */
typedef int (*xet_cli_pg_row_pt)(void *ctx, const xet_cli_pg_row_t *row);


/*
 * Connects to the database given by --postgres or XET_POSTGRES.  Returns NULL
 * after printing the error; *rc is the exit code.
 */
xet_cli_pg_t *xet_cli_pg_open(const xet_cli_args_t *args, int *rc);
void xet_cli_pg_close(xet_cli_pg_t *pg);

/*
 * Runs one statement, and calls the handler "row" for each row of the result.
 * params is NULL for a statement without parameters; with row NULL the rows
 * are ignored.  Returns XET_CLI_OK; the exit code of the handler;
 * XET_CLI_INTERRUPTED after a signal; or XET_CLI_ERROR after printing the
 * error.
 */
int xet_cli_pg_query(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, xet_cli_pg_row_pt row, void *ctx);

/*
 * Sets *number to the integer or boolean that a statement returns.  If the
 * statement returns no row, *number keeps its value.  Returns the same codes
 * as xet_cli_pg_query().
 */
int xet_cli_pg_number(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, uint64_t *number);

/*
 * Like xet_cli_pg_number(), but copies a text, truncated to size bytes
 * including the zero byte.
 */
int xet_cli_pg_line(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, char *text, size_t size);

/*
 * Checks that the server is not a standby.  Returns XET_CLI_OK, or an exit
 * code after printing the error.
 */
int xet_cli_pg_primary(xet_cli_pg_t *pg);

/*
 * Runs any number of statements without parameters, and ignores their rows.
 * Returns the same codes as xet_cli_pg_query().
 */
int xet_cli_pg_exec(xet_cli_pg_t *pg, const char *sql);

/*
 * Returns the connection string for another program, malloc()ed, or NULL after
 * printing the error.  The string has no secrets, because other users can read
 * command lines.
 *
 * *password is the password, malloc()ed, or NULL.  *service is the text of a
 * service file with the other secrets, such as the password of a private key,
 * malloc()ed, or NULL.  The connection string refers to the service file as
 * XET_CLI_PG_SERVICE.
 */
char *xet_cli_pg_string(const xet_cli_pg_t *pg, char **password,
    char **service);

#define XET_CLI_PG_SERVICE  "xet"


/*
 * Sets *newest to the number of the newest migration of this version.  Returns
 * XET_CLI_OK, or XET_CLI_ERROR after printing the error.
 */
int xet_cli_migrate_newest(const xet_cli_args_t *args, uint64_t *newest);


/*
 * Read a column of a row; columns are counted from 0.  The function must match
 * the type of the column in the statement; xet_cli_pg_u64() reads integers of
 * 4 or 8 bytes.  Text and bytes are not copied, and are valid until the row is
 * freed.
 */

int xet_cli_pg_null(const xet_cli_pg_row_t *row, int column);
uint64_t xet_cli_pg_u64(const xet_cli_pg_row_t *row, int column);
int xet_cli_pg_bool(const xet_cli_pg_row_t *row, int column);
const char *xet_cli_pg_text(const xet_cli_pg_row_t *row, int column);
const uint8_t *xet_cli_pg_bytes(const xet_cli_pg_row_t *row, int column,
    size_t *len);

/* Copies a hash.  Returns 1, or 0 if the column does not have 32 bytes. */
int xet_cli_pg_hash(const xet_cli_pg_row_t *row, int column,
    xet_hash_t *hash);


/* Returns 1 for a name with the prefix "hf://", always a Hub name; else 0. */
int xet_cli_named_hub(const char *name);

/*
 * Finds a repository by its name in the store or on the Hub.  Returns its name
 * in the store, malloc()ed.  Returns NULL with XET_CLI_OK in *rc if there is
 * no such repository, or NULL with another exit code after printing the error.
 */
char *xet_cli_named(xet_cli_pg_t *pg, const char *name, int *rc);


#endif /* _XET_CLI_ADMIN_H_INCLUDED_ */
