
/*
 * Extracts the hosts from connection strings, and builds libpq's parameters for
 * each host.
 *
 * The connection string of the primary lists all hosts that may be the primary:
 * for each new session libpq looks for the host that is not a standby.  A
 * string of standbys is split into its hosts, because each standby has its own
 * lag and response time.  The values for one host are passed to libpq after the
 * string, so they override the string.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


typedef struct {
    char        *host;                         /* NULL: libpq's default */
    char        *hostaddr;
    char        *port;
    char        *target;                       /* target_session_attrs */
    char        *dbname;
    ngx_uint_t   password;
} ngx_http_xet_pg_named_t;


static PQconninfoOption *ngx_http_xet_pg_parse(ngx_str_t *conninfo,
    ngx_http_xet_pg_named_t *named, u_char *err, size_t len);
static ngx_uint_t ngx_http_xet_pg_list_n(const char *list);
static ngx_uint_t ngx_http_xet_pg_list_holes(const char *list);
static ngx_int_t ngx_http_xet_pg_list_get(const char *list, ngx_uint_t i,
    ngx_pool_t *pool, char **value);
static ngx_int_t ngx_http_xet_pg_standby_add(ngx_array_t *standbys,
    const ngx_http_xet_standby_conf_t *like,
    const ngx_http_xet_pg_named_t *named, ngx_uint_t i, ngx_pool_t *pool);
static ngx_int_t ngx_http_xet_pg_standby_name(ngx_http_xet_pg_host_t *host,
    ngx_uint_t number, ngx_pool_t *pool);
static ngx_uint_t ngx_http_xet_pg_host_same(const ngx_http_xet_pg_host_t *a,
    const ngx_http_xet_pg_host_t *b);
static ngx_uint_t ngx_http_xet_pg_text_same(const char *a, const char *b);


/*
 * Sets the libpq parameters, with timeouts that detect a connection dropped
 * by a firewall: within a minute when idle, and within half a minute after a
 * statement was sent.  The system's defaults take hours.  If another host is
 * available, the timeouts are a few seconds.  conninfo follows the timeouts, so
 * its values override them.
 */

void
ngx_http_xet_pg_keywords(const ngx_http_xet_pg_host_t *host,
    const char *timeout, const char **keys, const char **values)
{
    ngx_uint_t  i, n, quick;

    quick = host->several || host->standby;

    const struct {
        const char  *key;
        const char  *value;
    } all[] = {
        { "connect_timeout", timeout },
        { "application_name", "nginx-xet" },
        { "client_encoding", "UTF8" },
        { "keepalives_idle", quick ? "5" : "30" },
        { "keepalives_interval", quick ? "2" : "10" },
        { "keepalives_count", quick ? "2" : "3" },
        { "tcp_user_timeout", quick ? "6000" : "30000" },
        { "target_session_attrs", host->standby ? "any" : "primary" },
        { "dbname", (const char *) host->conninfo.data },
        { "host", host->host },
        { "hostaddr", host->hostaddr },
        { "port", host->port }
    };

    n = 0;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i].value) {
            keys[n] = all[i].key;
            values[n++] = all[i].value;
        }
    }

    keys[n] = NULL;
    values[n] = NULL;
}


/*
 * Parses a connection string.  Returns the options, which the caller frees, or
 * NULL with the reason in err.  The members of "named" point into the options.
 */

static PQconninfoOption *
ngx_http_xet_pg_parse(ngx_str_t *conninfo, ngx_http_xet_pg_named_t *named,
    u_char *err, size_t len)
{
    char              *msg;
    ngx_uint_t         i;
    PQconninfoOption  *opts, *o;

    const struct {
        const char   *key;
        char        **value;
    } wanted[] = {
        { "host", &named->host },
        { "hostaddr", &named->hostaddr },
        { "port", &named->port },
        { "target_session_attrs", &named->target },
        { "dbname", &named->dbname }
    };

    ngx_memzero(named, sizeof(ngx_http_xet_pg_named_t));

    msg = NULL;
    opts = PQconninfoParse((char *) conninfo->data, &msg);

    if (opts == NULL) {
        ngx_http_xet_pg_text((char *) err, len, msg ? msg : "out of memory");

        if (msg) {
            PQfreemem(msg);
        }

        return NULL;
    }

    for (o = opts; o->keyword; o++) {

        if (o->val == NULL) {
            continue;
        }

        if (ngx_strcmp(o->keyword, "password") == 0) {
            named->password = 1;
        }

        for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
            if (ngx_strcmp(o->keyword, wanted[i].key) == 0 && o->val[0]) {
                *wanted[i].value = o->val;
            }
        }
    }

    return opts;
}


ngx_int_t
ngx_http_xet_pg_check_conninfo(ngx_str_t *conninfo, u_char *err, size_t len)
{
    PQconninfoOption         *opts;
    ngx_http_xet_pg_named_t   named;

    opts = ngx_http_xet_pg_parse(conninfo, &named, err, len);
    if (opts == NULL) {
        return NGX_ERROR;
    }

    PQconninfoFree(opts);

    return named.password ? NGX_DECLINED : NGX_OK;
}


ngx_int_t
ngx_http_xet_pg_primary(ngx_http_xet_pg_host_t *host, ngx_str_t *conninfo,
    u_char *err, size_t len)
{
    ngx_int_t                 rc;
    PQconninfoOption         *opts;
    ngx_http_xet_pg_named_t   named;

    ngx_memzero(host, sizeof(ngx_http_xet_pg_host_t));

    host->conninfo = *conninfo;
    ngx_str_set(&host->name, "PostgreSQL");

    opts = ngx_http_xet_pg_parse(conninfo, &named, err, len);
    if (opts == NULL) {
        return NGX_ERROR;
    }

    host->several = ngx_http_xet_pg_list_n(named.host) > 1
                    || ngx_http_xet_pg_list_n(named.hostaddr) > 1;
    rc = NGX_OK;

    /* results of a standby must never be taken for results of the primary */

    if (named.target && ngx_strcmp(named.target, "primary") != 0
        && ngx_strcmp(named.target, "read-write") != 0)
    {
        ngx_cpystrn(err, (u_char *) "\"target_session_attrs\" must be "
                                    "\"primary\" or \"read-write\"", len);
        rc = NGX_ERROR;
    }

    PQconninfoFree(opts);

    return rc;
}


ngx_int_t
ngx_http_xet_pg_standbys(ngx_array_t *standbys,
    const ngx_http_xet_standby_conf_t *like, ngx_str_t *conninfo,
    ngx_pool_t *pool, u_char *err, size_t len)
{
    ngx_int_t                 rc;
    ngx_uint_t                i, n, ports;
    const char               *fault;
    PQconninfoOption         *opts;
    ngx_http_xet_pg_named_t   named;

    opts = ngx_http_xet_pg_parse(conninfo, &named, err, len);
    if (opts == NULL) {
        return NGX_ERROR;
    }

    n = ngx_http_xet_pg_list_n(named.hostaddr ? named.hostaddr : named.host);
    ports = ngx_http_xet_pg_list_n(named.port);

    fault = (named.host && named.hostaddr
             && n != ngx_http_xet_pg_list_n(named.host))
            ? "the numbers of hosts and addresses differ"
            : (named.port && ports != 1 && ports != n)
            ? "the numbers of ports and hosts differ"
            : ngx_http_xet_pg_list_holes(named.host)
              || ngx_http_xet_pg_list_holes(named.hostaddr)
              || ngx_http_xet_pg_list_holes(named.port)
            ? "a host name or port is empty"
            : (named.target && ngx_strcmp(named.target, "any") != 0)
            ? "\"target_session_attrs\" is not allowed here: the server asks "
              "each host whether it is a standby"
            : (standbys->nelts + n > NGX_HTTP_XET_STANDBYS)
            ? "more than 8 hosts"
            : NULL;

    rc = fault ? NGX_ERROR : NGX_OK;

    for (i = 0; i < n && rc == NGX_OK; i++) {
        rc = ngx_http_xet_pg_standby_add(standbys, like, &named, i, pool);

        if (rc != NGX_OK) {
            fault = (rc == NGX_DECLINED) ? "duplicate host"
                                         : "out of memory";
        }
    }

    if (fault) {
        ngx_cpystrn(err, (u_char *) fault, len);
    }

    PQconninfoFree(opts);

    return (rc == NGX_OK) ? NGX_OK : NGX_ERROR;
}


/* Adds a standby.  Returns NGX_DECLINED if it is already in the list. */

static ngx_int_t
ngx_http_xet_pg_standby_add(ngx_array_t *standbys,
    const ngx_http_xet_standby_conf_t *like,
    const ngx_http_xet_pg_named_t *named, ngx_uint_t i, ngx_pool_t *pool)
{
    ngx_uint_t                    k, port;
    ngx_http_xet_pg_host_t       *host;
    ngx_http_xet_standby_conf_t  *sb, *all;

    sb = ngx_array_push(standbys);
    if (sb == NULL) {
        return NGX_ERROR;
    }

    *sb = *like;
    host = &sb->host;

    port = (ngx_http_xet_pg_list_n(named->port) > 1) ? i : 0;

    if (ngx_http_xet_pg_list_get(named->host, i, pool, &host->host) != NGX_OK
        || ngx_http_xet_pg_list_get(named->hostaddr, i, pool, &host->hostaddr)
           != NGX_OK
        || ngx_http_xet_pg_list_get(named->port, port, pool, &host->port)
           != NGX_OK
        || ngx_http_xet_pg_standby_name(host, standbys->nelts, pool)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    all = standbys->elts;

    for (k = 0; k + 1 < standbys->nelts; k++) {
        if (ngx_http_xet_pg_host_same(&all[k].host, host)) {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


/*
 * Sets host->name, which is shown in the log, such as "standby 2 (db-b:5433)".
 * Metrics use the same number.
 */

static ngx_int_t
ngx_http_xet_pg_standby_name(ngx_http_xet_pg_host_t *host, ngx_uint_t number,
    ngx_pool_t *pool)
{
    u_char      *p;
    size_t       len;
    const char  *name, *port;

    name = host->host ? host->host : host->hostaddr ? host->hostaddr
                                                    : "local";
    port = host->port ? host->port : "";

    len = sizeof("standby 4294967295 (:)") + ngx_strlen(name)
          + ngx_strlen(port);

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    host->name.data = p;
    host->name.len = ngx_snprintf(p, len, "standby %ui (%s%s%s)", number, name,
                                  *port ? ":" : "", port) - p;
    return NGX_OK;
}


static ngx_uint_t
ngx_http_xet_pg_host_same(const ngx_http_xet_pg_host_t *a,
    const ngx_http_xet_pg_host_t *b)
{
    return ngx_http_xet_pg_text_same(a->host, b->host)
           && ngx_http_xet_pg_text_same(a->hostaddr, b->hostaddr)
           && ngx_http_xet_pg_text_same(a->port, b->port);
}


static ngx_uint_t
ngx_http_xet_pg_text_same(const char *a, const char *b)
{
    return (a == NULL || b == NULL) ? a == b : ngx_strcmp(a, b) == 0;
}


ngx_uint_t
ngx_http_xet_pg_same_database(ngx_str_t *one, ngx_str_t *other)
{
    u_char                    err[1];
    ngx_uint_t                same;
    PQconninfoOption         *opts[2];
    ngx_http_xet_pg_named_t   named[2];

    opts[0] = ngx_http_xet_pg_parse(one, &named[0], err, sizeof(err));
    opts[1] = ngx_http_xet_pg_parse(other, &named[1], err, sizeof(err));

    /*
     * without dbname libpq uses the user name, which may be the same in both
     * strings: assume that it is
     */

    same = opts[0] && opts[1]
           && (named[0].dbname == NULL || named[1].dbname == NULL
               || ngx_strcmp(named[0].dbname, named[1].dbname) == 0);

    PQconninfoFree(opts[0]);
    PQconninfoFree(opts[1]);

    return same;
}


/* Counts the values in a comma-separated list; a NULL list has one value. */

static ngx_uint_t
ngx_http_xet_pg_list_n(const char *list)
{
    ngx_uint_t  n;

    for (n = 1; list && *list; list++) {
        n += (*list == ',');
    }

    return n;
}


static ngx_uint_t
ngx_http_xet_pg_list_holes(const char *list)
{
    char  before;

    for (before = ','; list && *list; before = *list++) {
        if (*list == ',' && before == ',') {
            return 1;
        }
    }

    return list && before == ',';
}


/* Copies value i of a comma-separated list; *value is NULL for a NULL list. */

static ngx_int_t
ngx_http_xet_pg_list_get(const char *list, ngx_uint_t i, ngx_pool_t *pool,
    char **value)
{
    size_t       len;
    const char  *end;

    *value = NULL;

    if (list == NULL) {
        return NGX_OK;
    }

    for ( ;; ) {
        for (end = list; *end && *end != ','; end++) { /* void */ }

        if (i-- == 0) {
            break;
        }

        if (*end == '\0') {
            return NGX_OK;
        }

        list = end + 1;
    }

    len = end - list;

    *value = ngx_pnalloc(pool, len + 1);
    if (*value == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(*value, list, len);
    (*value)[len] = '\0';

    return NGX_OK;
}


/* Copies a libpq message without newlines and spaces at its end. */

void
ngx_http_xet_pg_text(char *dst, size_t size, const char *text)
{
    size_t  len;

    len = ngx_strlen(text);

    while (len && (text[len - 1] == '\n' || text[len - 1] == ' ')) {
        len--;
    }

    ngx_cpystrn((u_char *) dst, (u_char *) text, ngx_min(len + 1, size));
}
