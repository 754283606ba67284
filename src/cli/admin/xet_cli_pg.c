
/*
 * A PostgreSQL session for the verbs that administer a server.  This is the
 * only file of the xet command that calls libpq.
 */


#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "xet_cli_admin.h"


#define XET_CLI_PG_PARAMS   8
#define XET_CLI_PG_BYTEA    17         /* OID of the type bytea */

/* A value in a service file must be shorter, see xet_cli_pg_plain(). */
#define XET_CLI_PG_LINE     960        /* bytes */


struct xet_cli_pg_s {
    PGconn  *conn;
};


typedef struct {
    char    *text;
    size_t   size;
} xet_cli_pg_line_t;


static int xet_cli_pg_number_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_pg_line_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_pg_rows(xet_cli_pg_t *pg, xet_cli_pg_row_pt row,
    void *ctx);
static int xet_cli_pg_result(xet_cli_pg_t *pg, const PGresult *res,
    xet_cli_pg_row_pt row, void *ctx);
static int xet_cli_pg_secrets(const PQconninfoOption *options,
    char **password, char **service);
static int xet_cli_pg_plain(const char *value);
static const char *xet_cli_pg_option(const xet_cli_pg_t *pg,
    const PQconninfoOption *o);
static int xet_cli_pg_fail(const char *text);


xet_cli_pg_t *
xet_cli_pg_open(const xet_cli_args_t *args, int *rc)
{
    const char    *conninfo = args->value[XET_CLI_OPT_POSTGRES];
    xet_cli_pg_t  *pg;

    if (conninfo == NULL) {
        conninfo = getenv("XET_POSTGRES");
    }

    if (conninfo == NULL) {
        *rc = xet_cli_fail(XET_CLI_USAGE, "postgres",
                           "set --postgres or XET_POSTGRES");
        return NULL;
    }

    pg = malloc(sizeof(xet_cli_pg_t));

    if (pg == NULL) {
        *rc = xet_cli_no_memory();
        return NULL;
    }

    pg->conn = PQconnectdb(conninfo);

    if (PQstatus(pg->conn) != CONNECTION_OK) {
        *rc = xet_cli_pg_fail(PQerrorMessage(pg->conn));
        xet_cli_pg_close(pg);
        return NULL;
    }

    *rc = xet_cli_pg_exec(pg, "SET client_min_messages = warning;"
                              " SET jit = off;"
                              " SET default_transaction_isolation ="
                              " 'read committed'");

    if (*rc != XET_CLI_OK) {
        xet_cli_pg_close(pg);
        return NULL;
    }

    return pg;
}


void
xet_cli_pg_close(xet_cli_pg_t *pg)
{
    if (pg) {
        PQfinish(pg->conn);
        free(pg);
    }
}


int
xet_cli_pg_query(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, xet_cli_pg_row_pt row, void *ctx)
{
    int          n, lengths[XET_CLI_PG_PARAMS], formats[XET_CLI_PG_PARAMS];
    Oid          types[XET_CLI_PG_PARAMS];
    char         numbers[XET_CLI_PG_PARAMS][24];
    const char  *values[XET_CLI_PG_PARAMS];

    for (n = 0; params && !params[n].last; n++) {
        values[n] = params[n].value;
        lengths[n] = (int) params[n].len;
        formats[n] = (params[n].len != 0);
        types[n] = params[n].len ? XET_CLI_PG_BYTEA : 0;

        if (params[n].numeric) {
            snprintf(numbers[n], sizeof(numbers[n]), "%" PRId64,
                     params[n].number);
            values[n] = numbers[n];
        }
    }

    if (!PQsendQueryParams(pg->conn, sql, n, types, values, lengths, formats,
                           1)
        || !PQsetSingleRowMode(pg->conn))
    {
        return xet_cli_pg_fail(PQerrorMessage(pg->conn));
    }

    return xet_cli_pg_rows(pg, row, ctx);
}


int
xet_cli_pg_number(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, uint64_t *number)
{
    return xet_cli_pg_query(pg, sql, params, xet_cli_pg_number_row, number);
}


static int
xet_cli_pg_number_row(void *ctx, const xet_cli_pg_row_t *row)
{
    *(uint64_t *) ctx = xet_cli_pg_u64(row, 0);

    return XET_CLI_OK;
}


int
xet_cli_pg_line(xet_cli_pg_t *pg, const char *sql,
    const xet_cli_pg_param_t *params, char *text, size_t size)
{
    xet_cli_pg_line_t  line = { text, size };

    return xet_cli_pg_query(pg, sql, params, xet_cli_pg_line_row, &line);
}


static int
xet_cli_pg_line_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_pg_line_t  *line = ctx;

    snprintf(line->text, line->size, "%s", xet_cli_pg_text(row, 0));

    return XET_CLI_OK;
}


int
xet_cli_pg_primary(xet_cli_pg_t *pg)
{
    int       rc;
    uint64_t  standby;

    standby = 0;
    rc = xet_cli_pg_number(pg, "SELECT pg_is_in_recovery()", NULL, &standby);

    return (rc == XET_CLI_OK && standby)
           ? xet_cli_fail(XET_CLI_ERROR, "postgres",
                          "is a standby, which may lag behind; connect to the "
                          "primary")
           : rc;
}


/*
 * Reads all results of a statement.  If the row handler fails, the statement
 * is cancelled, but its remaining results must still be read.
 *
 * COPY is unsupported: the server would wait for data that this program does
 * not send.  Therefore the connection is reset.
 */

static int
xet_cli_pg_rows(xet_cli_pg_t *pg, xet_cli_pg_row_pt row, void *ctx)
{
    int              rc;
    char             error[256];
    PGcancel        *cancel;
    PGresult        *res;
    ExecStatusType   status;

    rc = XET_CLI_OK;

    while ((res = PQgetResult(pg->conn)) != NULL) {

        status = PQresultStatus(res);

        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT
            || status == PGRES_COPY_BOTH)
        {
            PQclear(res);
            PQreset(pg->conn);

            return xet_cli_fail(XET_CLI_ERROR, "postgres",
                                "COPY from or to the client is not supported");
        }

        if (rc == XET_CLI_OK) {
            rc = xet_cli_pg_result(pg, res, row, ctx);

            if (rc != XET_CLI_OK && status == PGRES_SINGLE_TUPLE) {
                cancel = PQgetCancel(pg->conn);

                if (cancel) {
                    (void) PQcancel(cancel, error, sizeof(error));
                    PQfreeCancel(cancel);
                }
            }
        }

        PQclear(res);
    }

    return rc;
}


static int
xet_cli_pg_result(xet_cli_pg_t *pg, const PGresult *res,
    xet_cli_pg_row_pt row, void *ctx)
{
    switch (PQresultStatus(res)) {

    case PGRES_SINGLE_TUPLE:
        if (xet_cli_interrupted) {
            return XET_CLI_INTERRUPTED;
        }

        return row ? row(ctx, res) : XET_CLI_OK;

    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY:
        return XET_CLI_OK;

    default:
        return xet_cli_pg_fail(PQresultErrorMessage(res));
    }
}


int
xet_cli_pg_exec(xet_cli_pg_t *pg, const char *sql)
{
    if (!PQsendQuery(pg->conn, sql)) {
        return xet_cli_pg_fail(PQerrorMessage(pg->conn));
    }

    return xet_cli_pg_rows(pg, NULL, NULL);
}


char *
xet_cli_pg_string(const xet_cli_pg_t *pg, char **password, char **service)
{
    char              *string, *p;
    size_t             size;
    const char        *value;
    PQconninfoOption  *options, *o;

    *password = NULL;
    *service = NULL;

    options = PQconninfo(pg->conn);
    size = sizeof("service='" XET_CLI_PG_SERVICE "'");

    for (o = options; o && o->keyword; o++) {
        value = xet_cli_pg_option(pg, o);
        size += value ? strlen(o->keyword) + 2 * strlen(value) + 4 : 0;
    }

    string = options ? malloc(size) : NULL;

    if (string == NULL) {
        PQconninfoFree(options);
        (void) xet_cli_no_memory();
        return NULL;
    }

    if (xet_cli_pg_secrets(options, password, service) != XET_CLI_OK) {
        PQconninfoFree(options);
        free(string);
        return NULL;
    }

    p = string;

    for (o = options; o->keyword; o++) {
        value = xet_cli_pg_option(pg, o);

        if (value == NULL) {
            continue;
        }

        p += sprintf(p, "%s='", o->keyword);

        for ( /* void */ ; *value; value++) {
            if (*value == '\'' || *value == '\\') {
                *p++ = '\\';
            }

            *p++ = *value;
        }

        *p++ = '\'';
        *p++ = ' ';
    }

    strcpy(p, *service ? "service='" XET_CLI_PG_SERVICE "'" : "");

    PQconninfoFree(options);

    return string;
}


static int
xet_cli_pg_secrets(const PQconninfoOption *options, char **password,
    char **service)
{
    int                      n;
    char                    *text;
    const PQconninfoOption  *o;

    for (o = options; o->keyword; o++) {

        if (o->val == NULL || *o->val == '\0' || *o->dispchar != '*') {
            continue;
        }

        if (strcmp(o->keyword, "password") == 0) {
            *password = strdup(o->val);

            if (*password == NULL) {
                return xet_cli_no_memory();
            }

            continue;
        }

        if (!xet_cli_pg_plain(o->val)) {
            return xet_cli_fail(XET_CLI_ERROR, o->keyword,
                                "is too long, has a line break or ends with a "
                                "space; cannot pass it to pg_dump or "
                                "pg_restore");
        }

        n = asprintf(&text, "%s%s=%s\n", *service ? *service
                                         : "[" XET_CLI_PG_SERVICE "]\n",
                     o->keyword, o->val);
        if (n < 0) {
            return xet_cli_no_memory();
        }

        free(*service);
        *service = text;
    }

    return XET_CLI_OK;
}


/*
 * Returns 1 if a value can be stored in a service file, else 0.  libpq reads
 * lines of less than 1024 bytes and drops trailing spaces; the keyword and "="
 * fit into the bytes beyond XET_CLI_PG_LINE.
 */

static int
xet_cli_pg_plain(const char *value)
{
    size_t  len;

    len = strlen(value);

    return len < XET_CLI_PG_LINE && strpbrk(value, "\r\n") == NULL
           && !isspace((unsigned char) value[len - 1]);
}


/*
 * Returns the value of a connection option, or NULL if the option is not set
 * or is a secret.  If the connection string lists several hosts, returns the
 * host of this connection, because a snapshot is valid only on that host.
 */

static const char *
xet_cli_pg_option(const xet_cli_pg_t *pg, const PQconninfoOption *o)
{
    const char  *value = o->val;

    if (strcmp(o->keyword, "host") == 0) {
        value = PQhost(pg->conn);

    } else if (strcmp(o->keyword, "hostaddr") == 0) {
        value = (value && *value) ? PQhostaddr(pg->conn) : NULL;

    } else if (strcmp(o->keyword, "port") == 0) {
        value = PQport(pg->conn);
    }

    return (value && *value && *o->dispchar != '*') ? value : NULL;
}


/*
 * Prints only the first line of a libpq message, which is the error; the other
 * lines are context.
 */

static int
xet_cli_pg_fail(const char *text)
{
    return xet_cli_failf(XET_CLI_ERROR, "postgres", "%.*s",
                         (int) strcspn(text, "\n"), text);
}


int
xet_cli_pg_null(const xet_cli_pg_row_t *row, int column)
{
    return PQgetisnull(row, 0, column);
}


/*
 * In the binary format an integer has 4 or 8 bytes in big-endian order; a
 * boolean has one byte.
 */

uint64_t
xet_cli_pg_u64(const xet_cli_pg_row_t *row, int column)
{
    int             i;
    uint64_t        v;
    const uint8_t  *p;

    p = (const uint8_t *) PQgetvalue(row, 0, column);
    v = 0;

    for (i = 0; i < PQgetlength(row, 0, column); i++) {
        v = v << 8 | p[i];
    }

    return v;
}


int
xet_cli_pg_bool(const xet_cli_pg_row_t *row, int column)
{
    return *PQgetvalue(row, 0, column) != 0;
}


const char *
xet_cli_pg_text(const xet_cli_pg_row_t *row, int column)
{
    return PQgetvalue(row, 0, column);
}


const uint8_t *
xet_cli_pg_bytes(const xet_cli_pg_row_t *row, int column, size_t *len)
{
    *len = (size_t) PQgetlength(row, 0, column);

    return (const uint8_t *) PQgetvalue(row, 0, column);
}


int
xet_cli_pg_hash(const xet_cli_pg_row_t *row, int column, xet_hash_t *hash)
{
    size_t          len;
    const uint8_t  *bytes;

    bytes = xet_cli_pg_bytes(row, column, &len);

    if (len != XET_HASH_LEN) {
        return 0;
    }

    memcpy(hash->bytes, bytes, XET_HASH_LEN);

    return 1;
}
