
/*
 * Checks a new connection: the database must have the schema version that this
 * module needs, and the identity of the configured store.
 *
 * The check reads and writes files, so the connecting thread runs it.  Each
 * wait for a result has the same limit as the connection attempt: a lock or a
 * hung server must not block the thread forever.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"
#include "ngx_http_xet_store.h"

#include <poll.h>


#define NGX_HTTP_XET_PG_TEST_TIMEOUT  "2"      /* seconds */


/* The error messages for a store in a folder, or in a bucket. */

typedef struct {
    const char  *unread;
    const char  *unmade;
    const char  *bare;
    const char  *foreign;
    const char  *other;
} ngx_http_xet_pg_words_t;


static const char *ngx_http_xet_pg_check_schema_job(PGconn *conn,
    ngx_msec_t timeout);
static const char *ngx_http_xet_pg_check_store_job(PGconn *conn,
    ngx_http_xet_store_t *store, ngx_msec_t timeout, ngx_log_t *log);
static const char *ngx_http_xet_pg_store_error(ngx_http_xet_store_t *store,
    xet_status_t rc, const u_char *found, const u_char *named);
static const char *ngx_http_xet_pg_claim_job(PGconn *conn, const u_char *name,
    u_char *identity, ngx_uint_t *confirmed, ngx_msec_t timeout);
static const char *ngx_http_xet_pg_exec_job(PGconn *conn, const char *sql,
    int params, const u_char *value, ngx_msec_t timeout, PGresult **res);
static ngx_int_t ngx_http_xet_pg_wait_job(PGconn *conn, ngx_msec_t timeout);


static const ngx_http_xet_pg_words_t  ngx_http_xet_pg_folder = {
    "the identity of the store folder can't be read",
    "the identity of the store folder can't be read or created",
    "the store folder has no identity, but the database has one: is its disk "
    "mounted?",
    "the store folder belongs to another database",
    "the store folder is not the one recorded in the database"
};

static const ngx_http_xet_pg_words_t  ngx_http_xet_pg_bucket = {
    "the identity of the store bucket can't be read",
    "the identity of the store bucket can't be read or created",
    "the store bucket has no object \"identity\" below the prefix, but the "
    "database has one: check bucket and prefix",
    "the bucket and prefix of the store belong to another database",
    "the store bucket is not the one recorded in the database"
};


#define ngx_http_xet_pg_words(store)                                          \
    ((store)->s3 ? &ngx_http_xet_pg_bucket : &ngx_http_xet_pg_folder)


const char *
ngx_http_xet_pg_check_job(PGconn *conn, ngx_http_xet_store_t *store,
    ngx_msec_t timeout, ngx_log_t *log)
{
    const char  *error;

    error = ngx_http_xet_pg_check_schema_job(conn, timeout);

    if (error == NULL) {
        error = ngx_http_xet_pg_check_store_job(conn, store, timeout, log);
    }

    return error;
}


const char *
ngx_http_xet_pg_check_standby_job(PGconn *conn, ngx_http_xet_store_t *store,
    ngx_msec_t timeout, ngx_log_t *log)
{
    ngx_uint_t     confirmed;
    const char    *error;
    xet_status_t   rc;

    u_char  found[NGX_HTTP_XET_IDENTITY_LEN + 1];
    u_char  named[NGX_HTTP_XET_IDENTITY_LEN + 1];

    error = ngx_http_xet_pg_check_schema_job(conn, timeout);

    if (error) {
        return error;
    }

    rc = ngx_http_xet_store_identity_read_job(store, found, log);

    if (rc != XET_OK && rc != XET_DONE) {
        return ngx_http_xet_pg_words(store)->unread;
    }

    error = ngx_http_xet_pg_claim_job(conn, NULL, named, &confirmed, timeout);

    if (error) {
        return error;
    }

    error = ngx_http_xet_pg_store_error(store, rc, found, named);

    if (error == NULL) {
        ngx_http_xet_store_identity_note(named);
    }

    return error;
}


const char *
ngx_http_xet_pg_schema(void)
{
    return NGX_HTTP_XET_SCHEMA;
}


static const char *
ngx_http_xet_pg_check_schema_job(PGconn *conn, ngx_msec_t timeout)
{
    PGresult    *res;
    ngx_int_t    version, needed;
    const char  *error;

    static const char  compatible[] =
        "SELECT FROM xet.migrations WHERE version > $1::integer"
        " AND coalesce(compatible_from > $1::integer, true)";

    error = ngx_http_xet_pg_exec_job(conn,
                                     "SELECT max(version) FROM xet.migrations",
                                     0, NULL, timeout, &res);

    needed = ngx_atoi((u_char *) NGX_HTTP_XET_SCHEMA,
                      sizeof(NGX_HTTP_XET_SCHEMA) - 1);
    version = (error == NULL && PQntuples(res) == 1)
              ? ngx_atoi((u_char *) PQgetvalue(res, 0, 0),
                         (size_t) PQgetlength(res, 0, 0))
              : 0;

    PQclear(res);

    if (error || version == needed) {
        return error;
    }

    /* the schema is newer: it may be compatible with this module */

    if (version > needed) {
        error = ngx_http_xet_pg_exec_job(conn, compatible, 1,
                                         (u_char *) NGX_HTTP_XET_SCHEMA,
                                         timeout, &res);

        version = (error == NULL && PQntuples(res) == 0) ? needed : 0;

        PQclear(res);

        if (error || version == needed) {
            return error;
        }
    }

    return "the schema \"xet\" has another version than this module needs; "
           "run xet migrate";
}


/*
 * Compares the identities of the folder and of the database.  If neither has
 * one, creates an identity for both: inserts an unconfirmed row, writes the
 * file, and then confirms the row.  If a crash interrupts these steps, the next
 * session completes them.  Several nodes that start together use the identity
 * that was created first.
 */

static const char *
ngx_http_xet_pg_check_store_job(PGconn *conn, ngx_http_xet_store_t *store,
    ngx_msec_t timeout, ngx_log_t *log)
{
    PGresult      *res;
    ngx_uint_t     confirmed, tries;
    const char    *error;
    xet_status_t   rc;

    u_char  found[NGX_HTTP_XET_IDENTITY_LEN + 1];
    u_char  named[NGX_HTTP_XET_IDENTITY_LEN + 1];

    for (tries = 0; tries < 2; tries++) {

        rc = ngx_http_xet_store_identity_read_job(store, found, log);

        if (rc != XET_OK
            && (rc != XET_DONE
                || ngx_http_xet_store_identity_draw(found) != XET_OK))
        {
            return ngx_http_xet_pg_words(store)->unmade;
        }

        error = ngx_http_xet_pg_claim_job(conn, (rc == XET_DONE) ? found : NULL,
                                          named, &confirmed, timeout);

        if (error) {
            return error;
        }

        if (rc == XET_OK) {
            break;
        }

        /*
         * Read the file again: this session or another one has just created
         * it, or another session has created file and row after the file was
         * read.
         */

        if (!confirmed
            && ngx_http_xet_store_identity_make_job(store, named, log)
               != XET_OK)
        {
            return ngx_http_xet_pg_words(store)->unmade;
        }
    }

    /*
     * record the database's identity even if the folder has none: jobs that
     * compare the two report the difference
     */

    if (named[0]) {
        ngx_http_xet_store_identity_note(named);
    }

    error = ngx_http_xet_pg_store_error(store, rc, found, named);

    if (error) {
        return error;
    }

    if (!confirmed) {
        error = ngx_http_xet_pg_exec_job(conn, "SELECT xet.store_confirm($1)",
                                         1, named, timeout, &res);
        PQclear(res);
    }

    return error;
}


/*
 * Compares the identities.  "found" is the identity of the folder, and rc the
 * status of reading it; "named" is the identity of the database, or "".
 * Returns NULL, or an error.
 */

static const char *
ngx_http_xet_pg_store_error(ngx_http_xet_store_t *store, xet_status_t rc,
    const u_char *found, const u_char *named)
{
    const ngx_http_xet_pg_words_t  *words;

    words = ngx_http_xet_pg_words(store);

    if (rc == XET_DONE) {
        return words->bare;
    }

    if (named[0] == '\0') {
        return words->foreign;
    }

    if (ngx_strcmp(found, named) != 0) {
        return words->other;
    }

    return NULL;
}


void
ngx_http_xet_pg_check_test(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_host_t *host, ngx_http_xet_store_t *store)
{
    PGconn        *conn;
    ngx_uint_t     confirmed;
    const char    *error;
    xet_status_t   rc;

    u_char  found[NGX_HTTP_XET_IDENTITY_LEN + 1];
    u_char  named[NGX_HTTP_XET_IDENTITY_LEN + 1];

    const char  *keys[NGX_HTTP_XET_PG_KEYWORDS];
    const char  *values[NGX_HTTP_XET_PG_KEYWORDS];

    ngx_http_xet_pg_keywords(host, NGX_HTTP_XET_PG_TEST_TIMEOUT, keys, values);

    conn = PQconnectdbParams(keys, values, 1);

    /* an unreachable server does not make the configuration invalid */

    if (PQstatus(conn) != CONNECTION_OK) {
        PQfinish(conn);
        return;
    }

    error = ngx_http_xet_pg_check_schema_job(conn, 2000);

    if (error == NULL) {
        error = ngx_http_xet_pg_claim_job(conn, NULL, named, &confirmed, 2000);
    }

    /* an object store may be slow: only workers connect to it */

    if (error == NULL && store->s3 == NULL) {
        rc = ngx_http_xet_store_identity_read_job(store, found, cycle->log);

        /* if neither has an identity, the first worker will create one */

        if ((named[0] || rc != XET_DONE) && (confirmed || rc != XET_DONE)) {
            error = (rc == XET_STORE_FAILED)
                    ? ngx_http_xet_pg_words(store)->unread
                    : ngx_http_xet_pg_store_error(store, rc, found, named);
        }
    }

    /* error_log of the tested configuration may drop warnings */

    if (error) {
        if (host->standby) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "xet: PostgreSQL, %V: %s", &host->name, error);

        } else {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "xet: PostgreSQL: %s", error);
        }
    }

    PQfinish(conn);
}


/*
 * Reads the identity of the database; "" if there is none.  A database without
 * an identity gets "name" as its identity, unless name is NULL.  Returns NULL,
 * or an error.
 */

static const char *
ngx_http_xet_pg_claim_job(PGconn *conn, const u_char *name, u_char *identity,
    ngx_uint_t *confirmed, ngx_msec_t timeout)
{
    PGresult    *res;
    const char  *error;

    error = ngx_http_xet_pg_exec_job(conn, "SELECT * FROM xet.store_claim($1)",
                                     1, name, timeout, &res);
    if (error) {
        return error;
    }

    if (PQntuples(res) == 0) {
        identity[0] = '\0';
        *confirmed = 1;

    } else {
        ngx_cpystrn(identity, (u_char *) PQgetvalue(res, 0, 0),
                    NGX_HTTP_XET_IDENTITY_LEN + 1);
        *confirmed = (PQgetvalue(res, 0, 1)[0] == 't');
    }

    PQclear(res);

    return NULL;
}


/*
 * Executes a statement.  Returns NULL and sets *res to the rows, or returns an
 * error and sets *res to NULL.
 */

static const char *
ngx_http_xet_pg_exec_job(PGconn *conn, const char *sql, int params,
    const u_char *value, ngx_msec_t timeout, PGresult **res)
{
    PGresult    *next;
    const char  *error, *values[1];

    values[0] = (const char *) value;
    *res = NULL;

    if (PQsendQueryParams(conn, sql, params, NULL, values, NULL, NULL, 0)
        == 1)
    {
        while (ngx_http_xet_pg_wait_job(conn, timeout) == NGX_OK) {

            next = PQgetResult(conn);

            if (next == NULL) {

                if (PQresultStatus(*res) == PGRES_TUPLES_OK) {
                    return NULL;
                }

                break;
            }

            PQclear(*res);
            *res = next;
        }
    }

    PQclear(*res);
    *res = NULL;

    error = PQerrorMessage(conn);

    return error[0] ? error : "no response to the first statements";
}


/* Waits until PQgetResult() can return without blocking. */

static ngx_int_t
ngx_http_xet_pg_wait_job(PGconn *conn, ngx_msec_t timeout)
{
    int            n;
    struct pollfd  pfd;

    while (PQisBusy(conn)) {
        pfd.fd = PQsocket(conn);
        pfd.events = POLLIN;

        n = poll(&pfd, 1, (int) timeout);

        if (n == -1 && ngx_errno == NGX_EINTR) {
            continue;
        }

        if (n != 1 || PQconsumeInput(conn) != 1) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
