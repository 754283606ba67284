
/*
 * Connecting to PostgreSQL.
 *
 * Name lookups, file reads, TLS, the look at the schema's version and at the
 * store's identity, settings and the preparing of all statements: blocking
 * calls, and all of them in a thread.  The PGconn belongs to that thread until the job is done; the event
 * loop takes it from the context then, and sees to it that one job at a time
 * uses a context.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_connect.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_store_identity.h"


static void ngx_http_xet_pg_notice(void *arg, const PGresult *res);
static const char *ngx_http_xet_pg_check_schema_job(PGconn *conn);
static const char *ngx_http_xet_pg_check_store_job(PGconn *conn,
    ngx_http_xet_pg_connect_ctx_t *ctx, ngx_log_t *log);
static const char *ngx_http_xet_pg_claim_job(PGconn *conn, const u_char *name,
    u_char *identity, ngx_uint_t *confirmed);
static const char *ngx_http_xet_pg_settings_job(PGconn *conn);
static const char *ngx_http_xet_pg_prepare_job(PGconn *conn);
static void ngx_http_xet_pg_text(u_char *dst, size_t size, const char *text);


void
ngx_http_xet_pg_connect_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_pg_connect_ctx_t *ctx = data;

    PGconn      *conn;
    const char  *error;
    const char  *keys[] = { "connect_timeout", "application_name",
                            "client_encoding", "dbname", NULL };
    const char  *values[] = { NULL, "nginx-xet", "UTF8", NULL, NULL };

    ctx->conn = NULL;
    ctx->error[0] = '\0';

    /* what the conninfo says itself comes last and wins */

    values[0] = (const char *) ctx->timeout.data;
    values[3] = (const char *) ctx->conninfo.data;

    conn = PQconnectdbParams(keys, values, 1);

    if (conn == NULL) {
        (void) ngx_snprintf(ctx->error, NGX_HTTP_XET_PG_ERROR_LEN,
                            "out of memory%Z");
        return;
    }

    PQsetNoticeReceiver(conn, ngx_http_xet_pg_notice, NULL);

    error = (PQstatus(conn) == CONNECTION_OK) ? NULL : PQerrorMessage(conn);

    if (error == NULL) {
        error = ngx_http_xet_pg_check_schema_job(conn);
    }

    if (error == NULL) {
        error = ngx_http_xet_pg_check_store_job(conn, ctx, log);
    }

    if (error == NULL) {
        error = ngx_http_xet_pg_settings_job(conn);
    }

    if (error == NULL) {
        error = ngx_http_xet_pg_prepare_job(conn);
    }

    if (error == NULL
        && (PQsetnonblocking(conn, 1) != 0 || PQenterPipelineMode(conn) != 1))
    {
        error = PQerrorMessage(conn);
    }

    if (error) {
        ngx_http_xet_pg_text(ctx->error, NGX_HTTP_XET_PG_ERROR_LEN, error);

        PQfinish(conn);
        return;
    }

    ctx->conn = conn;
}


static void
ngx_http_xet_pg_notice(void *arg, const PGresult *res)
{
    /* a notice in the connecting thread: the cycle's log is safe to use */

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0, "xet: PostgreSQL: %s",
                  PQresultErrorMessage(res));
}


static const char *
ngx_http_xet_pg_check_schema_job(PGconn *conn)
{
    PGresult    *res;
    const char  *error;

    static const char  wrong[] = "the schema \"xet\" has another version than "
                                 "this module needs, run sql/migrate.sh";

    res = PQexec(conn, "SELECT max(version) FROM xet.migrations");

    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        error = PQerrorMessage(conn);

    } else if (PQntuples(res) == 1
               && ngx_strcmp(PQgetvalue(res, 0, 0), NGX_HTTP_XET_SCHEMA) == 0)
    {
        error = NULL;

    } else {
        error = wrong;
    }

    PQclear(res);

    return error;
}


/*
 * The folder and the database must have one identity.  A new database and a
 * folder without one get it together: first the row, which is not confirmed,
 * then the file, then the confirmation; so a crash in between leaves what the
 * next session completes, and of several nodes all take the first one's.
 */

static const char *
ngx_http_xet_pg_check_store_job(PGconn *conn,
    ngx_http_xet_pg_connect_ctx_t *ctx, ngx_log_t *log)
{
    PGresult      *res;
    ngx_uint_t     confirmed, tries;
    const char    *error, *values[1];
    xet_status_t   rc;

    u_char  found[NGX_HTTP_XET_IDENTITY_LEN + 1];
    u_char  named[NGX_HTTP_XET_IDENTITY_LEN + 1];

    static const char  failed[] = "the identity of the folder of the store "
                                  "can't be read or made";

    for (tries = 0; tries < 2; tries++) {

        rc = ngx_http_xet_store_identity_read_job(ctx->store, found, log);

        if (rc == XET_DONE
            && ngx_http_xet_store_identity_draw(found) == XET_OK)
        {
            error = ngx_http_xet_pg_claim_job(conn, found, named, &confirmed);

        } else if (rc == XET_OK) {
            error = ngx_http_xet_pg_claim_job(conn, NULL, named, &confirmed);

        } else {
            return failed;
        }

        if (error) {
            return error;
        }

        if (rc == XET_OK || confirmed) {
            break;
        }

        /* made by us, or by another one at the same time: look again */

        if (ngx_http_xet_store_identity_make_job(ctx->store, named, log)
            != XET_OK)
        {
            return failed;
        }
    }

    if (rc == XET_DONE) {
        return "the folder of the store has no identity, and the database "
               "knows another one: is its disk mounted?";
    }

    if (named[0] == '\0') {
        return "the folder of the store belongs to another database";
    }

    if (ngx_strcmp(found, named) != 0) {
        return "the folder of the store is not the one that the database "
               "describes";
    }

    if (!confirmed) {
        values[0] = (const char *) named;

        res = PQexecParams(conn, "SELECT xet.store_confirm($1)", 1, NULL,
                           values, NULL, NULL, 0);

        error = (PQresultStatus(res) == PGRES_TUPLES_OK)
                ? NULL : PQerrorMessage(conn);

        PQclear(res);

        if (error) {
            return error;
        }
    }

    ngx_http_xet_store_identity_note(named);

    return NULL;
}


/* The identity that the database has, with name if it had none; "" for none. */

static const char *
ngx_http_xet_pg_claim_job(PGconn *conn, const u_char *name, u_char *identity,
    ngx_uint_t *confirmed)
{
    PGresult    *res;
    const char  *error, *values[1];

    values[0] = (const char *) name;

    res = PQexecParams(conn, "SELECT * FROM xet.store_claim($1)", 1, NULL,
                       values, NULL, NULL, 0);

    error = NULL;

    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        error = PQerrorMessage(conn);

    } else if (PQntuples(res) == 0) {
        identity[0] = '\0';
        *confirmed = 1;

    } else {
        ngx_cpystrn(identity, (u_char *) PQgetvalue(res, 0, 0),
                    NGX_HTTP_XET_IDENTITY_LEN + 1);
        *confirmed = (PQgetvalue(res, 0, 1)[0] == 't');
    }

    PQclear(res);

    return error;
}


/*
 * Every statement of ours finds its rows by an index.  Sessions keep plans,
 * also those of foreign keys, and one made while a table was tiny would read
 * the whole of it for each row long after it has grown.  The penalty of what
 * has no other way than such a scan would make PostgreSQL plan every statement
 * anew, which takes longer than most of them.
 */

static const char *
ngx_http_xet_pg_settings_job(PGconn *conn)
{
    PGresult        *res;
    ExecStatusType   status;

    res = PQexec(conn, "SET enable_seqscan = off; "
                       "SET plan_cache_mode = force_generic_plan");
    status = PQresultStatus(res);

    PQclear(res);

    return (status == PGRES_COMMAND_OK) ? NULL : PQerrorMessage(conn);
}


static const char *
ngx_http_xet_pg_prepare_job(PGconn *conn)
{
    PGresult                      *res;
    ExecStatusType                 status;
    const ngx_http_xet_pg_stmt_t  *stmt;

    for (stmt = ngx_http_xet_query_stmts; stmt->name; stmt++) {

        res = PQprepare(conn, stmt->name, stmt->sql, 0, NULL);
        status = PQresultStatus(res);

        PQclear(res);

        if (status != PGRES_COMMAND_OK) {
            return PQerrorMessage(conn);
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_xet_pg_check_conninfo(ngx_str_t *conninfo, u_char *err, size_t len)
{
    char              *msg;
    ngx_int_t          rc;
    PQconninfoOption  *opts, *o;

    msg = NULL;
    opts = PQconninfoParse((char *) conninfo->data, &msg);

    if (opts == NULL) {
        ngx_http_xet_pg_text(err, len, msg ? msg : "out of memory");

        if (msg) {
            PQfreemem(msg);
        }

        return NGX_ERROR;
    }

    rc = NGX_OK;

    for (o = opts; o->keyword; o++) {
        if (ngx_strcmp(o->keyword, "password") == 0 && o->val) {
            rc = NGX_DECLINED;
        }
    }

    PQconninfoFree(opts);

    return rc;
}


/* A message of libpq, without the newline at its end. */

static void
ngx_http_xet_pg_text(u_char *dst, size_t size, const char *text)
{
    size_t  len;

    len = ngx_strlen(text);

    while (len && (text[len - 1] == '\n' || text[len - 1] == ' ')) {
        len--;
    }

    ngx_cpystrn(dst, (u_char *) text, ngx_min(len + 1, size));
}
