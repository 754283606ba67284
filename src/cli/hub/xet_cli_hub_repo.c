
/*
 * A Hub repository, addressed by its name.
 *
 * Purpose:    decides which server gets a request, and with which token.
 * States:     opened -> looked up, so that the commit is known -> with a
 *             client for the content server, which renews its token.
 * Ownership:  the caller's xet_cli_hub_t owns all strings and both clients.
 *
 * The user's token is sent only to the Hub.  The Hub returns the URL of the
 * content server, and issues tokens for the content server.
 */


#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "xet_cli_hub.h"


#define XET_CLI_HUB_EARLY   60         /* renewal, s before a token expires */
#define XET_CLI_HUB_PERIOD  1000       /* ms between two renewals */


static const char *xet_cli_hub_endpoint(const xet_cli_args_t *args,
    int *ours);
static const char *xet_cli_hub_token(const xet_cli_args_t *args,
    const char *endpoint);
static int xet_cli_hub_apart(const xet_cli_args_t *args, int names,
    int hashes);
static int xet_cli_hub_name(xet_cli_hub_t *hub, const char *operand);
static int xet_cli_hub_kind(xet_cli_hub_t *hub, xet_hub_kind_e kind);
static char *xet_cli_hub_escape(const char *text, int slashes);
static int xet_cli_hub_make(xet_cli_hub_t *hub, int branch);
static int xet_cli_hub_pinned(const xet_cli_hub_t *hub);
static int xet_cli_hub_looked(xet_cli_hub_t *hub,
    const xet_cli_request_t *r);
static int xet_cli_hub_grant(xet_cli_hub_t *hub);
static const char *xet_cli_hub_renew(void *ctx);


int
xet_cli_hub_is(const xet_cli_args_t *args, const char *operand)
{
    int               ours;
    xet_hub_target_t  target;

    if (strncmp(operand, "hf://", 5) == 0) {
        return 1;
    }

    /* --endpoint without --hub takes precedence over HF_ENDPOINT */

    if (args->value[XET_CLI_OPT_ENDPOINT] && !args->value[XET_CLI_OPT_HUB]) {
        return 0;
    }

    return xet_cli_hub_endpoint(args, &ours) != NULL
           && xet_hub_operand_parse(operand, &target) == XET_OK
           && target.name.data != NULL;
}


int
xet_cli_hub_known(const xet_cli_args_t *args)
{
    int  ours;

    return xet_cli_hub_endpoint(args, &ours) != NULL;
}


int
xet_cli_hub_unnamed(const xet_cli_args_t *args, const char *operand)
{
    if (args->value[XET_CLI_OPT_REVISION] || args->value[XET_CLI_OPT_TYPE]) {
        return xet_cli_fail(XET_CLI_USAGE, operand,
                            "is not a Hub name; --revision and --type need "
                            "one");
    }

    return XET_CLI_OK;
}


/*
 * Returns the URL of the Hub, or NULL.  *ours is set if the URL is from --hub.
 * HF_TOKEN is used only with the URL in HF_ENDPOINT.
 */

static const char *
xet_cli_hub_endpoint(const xet_cli_args_t *args, int *ours)
{
    const char  *endpoint;

    *ours = (args->value[XET_CLI_OPT_HUB] != NULL);

    endpoint = *ours ? args->value[XET_CLI_OPT_HUB] : getenv("HF_ENDPOINT");

    return (endpoint && *endpoint) ? endpoint : NULL;
}


int
xet_cli_hub_open(xet_cli_hub_t *hub, const xet_cli_args_t *args,
    const char *operand)
{
    int          rc, ours;
    const char  *endpoint, *rev;

    memset(hub, 0, sizeof(xet_cli_hub_t));

    hub->args = args;

    endpoint = xet_cli_hub_endpoint(args, &ours);

    if (endpoint == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, operand,
                            "set --hub or HF_ENDPOINT");
    }

    rc = operand ? xet_cli_hub_name(hub, operand) : XET_CLI_OK;

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rev = args->value[XET_CLI_OPT_REVISION];
    rev = rev ? rev : "main";

    if (!xet_hub_rev_ok((const uint8_t *) rev, strlen(rev))) {
        return xet_cli_fail(XET_CLI_USAGE, rev, "invalid revision");
    }

    hub->rev = strdup(rev);

    if (hub->rev == NULL) {
        return xet_cli_no_memory();
    }

    hub->http = xet_cli_http_create_at(args, endpoint, &rc);

    if (hub->http && !ours) {
        xet_cli_http_token(hub->http, xet_cli_hub_token(args, endpoint));
    }

    return rc;
}


/*
 * Returns the token for the Hub in HF_ENDPOINT: HF_TOKEN if set; otherwise
 * XET_TOKEN, unless --endpoint or XET_ENDPOINT names a server other than the
 * Hub; otherwise NULL.
 */

static const char *
xet_cli_hub_token(const xet_cli_args_t *args, const char *endpoint)
{
    const char  *token, *other;

    token = getenv("HF_TOKEN");

    if (token && *token) {
        return token;
    }

    other = xet_cli_http_endpoint(args);

    return (*other == '\0' || xet_cli_url_same(other, endpoint))
           ? getenv("XET_TOKEN") : NULL;
}


int
xet_cli_hub_operands(const xet_cli_args_t *args,
    const xet_cli_hub_operands_t *o)
{
    int              i, rc, n[XET_CLI_HUB_LOCAL + 1] = { 0, 0, 0 };
    char            *operand;
    xet_cli_args_t   one;

    for (i = 0, rc = XET_CLI_OK; i < args->count && rc == XET_CLI_OK; i++) {
        operand = args->operands[i];
        n[o->is(args, operand)]++;

        if (o->is(args, operand) != XET_CLI_HUB_NAME) {
            rc = xet_cli_hub_unnamed(args, operand);
        }
    }

    rc = rc ? rc : xet_cli_hub_apart(args, n[XET_CLI_HUB_NAME],
                                     n[XET_CLI_HUB_HASH]);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    for (i = 0; i < args->count && rc <= o->most; i++) {
        operand = args->operands[i];

        one = *args;
        one.operands = &operand;
        one.count = 1;

        rc = xet_cli_worse(rc, (o->is(args, operand) == XET_CLI_HUB_NAME)
                               ? o->named(args, operand) : o->other(&one));
    }

    return rc;
}


static int
xet_cli_hub_apart(const xet_cli_args_t *args, int names, int hashes)
{
    int          ours;
    const char  *hub, *other, *token;

    hub = xet_cli_hub_endpoint(args, &ours);
    other = xet_cli_http_endpoint(args);
    token = getenv("XET_TOKEN");

    if (names == 0 || hashes == 0 || hub == NULL || *other == '\0'
        || (args->value[XET_CLI_OPT_TOKEN_FILE] == NULL
            && (!ours || token == NULL || *token == '\0'))
        || xet_cli_url_same(hub, other))
    {
        return XET_CLI_OK;
    }

    return xet_cli_fail(XET_CLI_USAGE, "token",
                        "is for one server; use names and hashes in separate "
                        "commands");
}


/*
 * Parses a Hub name.  A local file is named after the operand, never after a
 * name that the Hub returns.
 */

static int
xet_cli_hub_name(xet_cli_hub_t *hub, const char *operand)
{
    const char        *name, *slash;
    xet_hub_target_t   target;

    if (xet_hub_operand_parse(operand, &target) != XET_OK) {
        return xet_cli_fail(XET_CLI_USAGE, operand,
                            "is not a Hub name; expected "
                            "[datasets/|spaces/|buckets/]owner/name[/path]");
    }

    hub->owner = strndup((const char *) target.owner.data, target.owner.len);
    hub->path = strndup(target.path.len ? (const char *) target.path.data : "",
                        target.path.len);

    if (target.name.data) {
        hub->id = strndup((const char *) target.owner.data,
                          target.owner.len + 1 + target.name.len);
    }

    if (hub->owner == NULL || hub->path == NULL
        || (hub->id == NULL && target.name.data))
    {
        return xet_cli_no_memory();
    }

    name = *hub->path ? hub->path : hub->id ? hub->id : hub->owner;
    slash = strrchr(name, '/');

    hub->base = strdup(slash ? slash + 1 : name);

    return hub->base ? xet_cli_hub_kind(hub, target.kind)
                     : xet_cli_no_memory();
}


static int
xet_cli_hub_kind(xet_cli_hub_t *hub, xet_hub_kind_e kind)
{
    const char      *type = hub->args->value[XET_CLI_OPT_TYPE];
    xet_hub_kind_e   said;

    if (type) {
        said = xet_hub_kind_parse(type);

        if (said == XET_HUB_KINDS
            || (kind != XET_HUB_KINDS && kind != said))
        {
            return xet_cli_fail(XET_CLI_USAGE, type,
                                "must be model, dataset, space or bucket, and "
                                "match the type in the name");
        }

        kind = said;
    }

    hub->said = (kind != XET_HUB_KINDS);
    hub->kind = hub->said ? kind : XET_HUB_MODEL;

    return XET_CLI_OK;
}


int
xet_cli_hub_open_repo(xet_cli_hub_t *hub, const xet_cli_args_t *args,
    const char *operand)
{
    int  rc;

    rc = xet_cli_hub_open(hub, args, operand);

    return (rc == XET_CLI_OK && hub->id == NULL)
           ? xet_cli_fail(XET_CLI_USAGE, operand, "is not a repository name")
           : rc;
}


void
xet_cli_hub_close(xet_cli_hub_t *hub)
{
    xet_cli_http_destroy(hub->cas);
    xet_cli_http_destroy(hub->http);

    if (hub->token) {
        explicit_bzero(hub->token, strlen(hub->token));
    }

    free(hub->token);
    free(hub->owner);
    free(hub->id);
    free(hub->path);
    free(hub->base);
    free(hub->rev);
}


char *
xet_cli_hub_url(const xet_cli_hub_t *hub, const char *what, int rev,
    const char *path)
{
    char  *url, *commit, *below;

    rev = rev && hub->kind != XET_HUB_BUCKET;

    commit = xet_cli_hub_escape(*hub->oid ? hub->oid : hub->rev, 0);
    below = xet_cli_hub_escape(path ? path : "", 1);

    url = (commit && below)
          ? xet_cli_http_url(hub->http, "/api/%s/%s%s%s%s%s%s%s",
                             xet_hub_kind_plural(hub->kind), hub->id,
                             *what ? "/" : "", what, rev ? "/" : "",
                             rev ? commit : "", *below ? "/" : "", below)
          : NULL;

    free(commit);
    free(below);

    return url;
}


/* Percent-encodes a string; leaves "/" as it is if slashes is set. */

static char *
xet_cli_hub_escape(const char *text, int slashes)
{
    char  *out, *p;

    out = malloc(3 * strlen(text) + 1);

    if (out == NULL) {
        return NULL;
    }

    for (p = out; *text; text++) {

        if (xet_is_alnum((uint8_t) *text) || strchr("-._~", *text) != NULL
            || (slashes && *text == '/'))
        {
            *p++ = *text;

        } else {
            p += sprintf(p, "%%%02X", (unsigned) (uint8_t) *text);
        }
    }

    *p = '\0';

    return out;
}


int
xet_cli_hub_ask(const xet_cli_hub_t *hub, xet_cli_request_t *r, char *url,
    const xet_buf_t *body, const char *type)
{
    int       rc;
    uint8_t  *bytes;

    memset(r, 0, sizeof(*r));

    r->url = url;
    r->api = 1;
    r->max = XET_CLI_HUB_ANSWER;
    r->type = type;

    bytes = NULL;

    if (body) {
        bytes = xet_cli_buf_bytes(body, &r->body_len);

        if (bytes == NULL) {
            return xet_cli_no_memory();
        }

        /* the Hub reads the files of a commit, which may take a long time */

        r->body = bytes;
        r->patient = 1;
    }

    rc = xet_cli_http_call(hub->http, r);

    if (rc != XET_CLI_OK) {

        /* the request may still be running and reading the buffer "bytes" */

        xet_cli_http_free(r);
    }

    if (hub->status) {
        *hub->status = (rc == XET_CLI_OK) ? r->status : 0;
    }

    r->body = NULL;
    free(bytes);

    return rc;
}


json_t *
xet_cli_hub_answer(const xet_cli_request_t *r, int *rc)
{
    int      large;
    char     storage[XET_CLI_HTTP_TEXT];
    json_t  *answer;

    if (r->status / 100 != 2 || r->refused) {
        *rc = xet_cli_http_fail(r);
        return NULL;
    }

    answer = r->data ? xet_cli_json_load(r->data, r->len,
                                         JSON_REJECT_DUPLICATES,
                                         XET_CLI_HUB_ROOM, &large)
                     : NULL;

    if (answer == NULL) {
        *rc = xet_cli_failf(XET_CLI_NETWORK, "server",
                            "%s: unexpected response (HTTP %ld): not a Hub",
                            xet_cli_http_text(r->url, storage), r->status);
    }

    return answer;
}


int
xet_cli_hub_lacks(const xet_cli_request_t *r, const char *code)
{
    const char  *value;

    value = (r->status == 404) ? xet_cli_http_header(r, "X-Error-Code") : NULL;

    return value && strcmp(value, code) == 0;
}


int
xet_cli_hub_look(xet_cli_hub_t *hub, int make)
{
    int                rc, tries;
    xet_cli_request_t  r;

    for (tries = 0; /* void */ ; tries++) {
        rc = xet_cli_hub_ask(hub, &r,
                             xet_cli_hub_url(hub,
                                             (hub->kind == XET_HUB_BUCKET)
                                             ? "" : "revision", 1, NULL),
                             NULL, NULL);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        if (make && tries < 2 && xet_cli_hub_lacks(&r, "RepoNotFound")) {
            rc = xet_cli_hub_make(hub, 0);

        } else if (make && tries < 2
                   && xet_cli_hub_lacks(&r, "RevisionNotFound"))
        {
            rc = xet_cli_hub_make(hub, 1);

        } else if (!make && hub->writes
                   && xet_cli_hub_lacks(&r, "RepoNotFound"))
        {
            xet_cli_http_free(&r);

            return xet_cli_fail(XET_CLI_FAULT, hub->id,
                                "no such repository; to create it, put hf:// "
                                "before the name or use --hub");

        } else {
            rc = xet_cli_hub_looked(hub, &r);
            xet_cli_http_free(&r);

            return rc;
        }

        xet_cli_http_free(&r);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }
}


/*
 * Creates the repository or the branch.  A 409 response is not an error:
 * another client has just created the repository or the branch.
 */

static int
xet_cli_hub_make(xet_cli_hub_t *hub, int branch)
{
    int                 rc;
    char               *url;
    xet_buf_t           b;
    xet_json_t          j;
    xet_cli_request_t   r;

    xet_buf_init(&b, xet_cli_buf_alloc, NULL, 1024);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);

    if (branch) {
        url = xet_cli_hub_url(hub, "branch", 1, NULL);

    } else if (hub->kind == XET_HUB_BUCKET) {
        url = xet_cli_hub_url(hub, "", 0, NULL);

    } else {
        url = xet_cli_http_url(hub->http, "/api/repos/create");

        xet_json_put_cstring(&j, "name", hub->id + strlen(hub->owner) + 1);
        xet_json_put_cstring(&j, "organization", hub->owner);
        xet_json_put_cstring(&j, "type", xet_hub_kind_name(hub->kind));

        if (hub->kind == XET_HUB_SPACE) {
            xet_json_put_cstring(&j, "sdk", "static");
        }
    }

    xet_json_object_end(&j);

    rc = xet_cli_hub_ask(hub, &r, url, &b, XET_CLI_HUB_JSON);

    if (rc == XET_CLI_OK && r.status / 100 != 2 && r.status != 409) {
        rc = xet_cli_http_fail(&r);
    }

    if (!branch) {
        hub->made = (r.status != 409);
    }

    xet_cli_http_free(&r);
    xet_cli_buf_free(&b);

    return rc;
}


/*
 * Returns whether the revision is a commit id; if so, the Hub must return the
 * same commit.
 */

static int
xet_cli_hub_pinned(const xet_cli_hub_t *hub)
{
    return hub->kind != XET_HUB_BUCKET
           && strlen(hub->rev) == XET_HUB_OID_LEN
           && strspn(hub->rev, "0123456789abcdefABCDEF") == XET_HUB_OID_LEN;
}


/* Stores the ids of repository and commit; a moved repository has a new id. */

static int
xet_cli_hub_looked(xet_cli_hub_t *hub, const xet_cli_request_t *r)
{
    int                   rc;
    char                 *id;
    json_t               *answer;
    xet_hub_described_t   described;

    rc = XET_CLI_OK;
    answer = xet_cli_hub_answer(r, &rc);

    if (answer == NULL) {
        return rc;
    }

    if (xet_hub_described_read(answer, &described) != XET_OK
        || (described.oid.len == 0 && hub->kind != XET_HUB_BUCKET))
    {
        json_decref(answer);
        return xet_cli_fail(XET_CLI_NETWORK, hub->id,
                            "the Hub's response is not a repository");
    }

    if (xet_cli_hub_pinned(hub)
        && (described.oid.len != XET_HUB_OID_LEN
            || strncasecmp(hub->rev, (const char *) described.oid.data,
                           XET_HUB_OID_LEN)
               != 0))
    {
        json_decref(answer);
        return xet_cli_fail(XET_CLI_NETWORK, hub->rev,
                            "the Hub returned another commit");
    }

    id = strndup((const char *) described.id.data, described.id.len);

    if (id) {
        free(hub->id);
        hub->id = id;
    }

    if (hub->kind != XET_HUB_BUCKET) {
        memcpy(hub->oid, described.oid.data, XET_HUB_OID_LEN);
    }

    json_decref(answer);

    return id ? XET_CLI_OK : xet_cli_no_memory();
}


xet_cli_http_t *
xet_cli_hub_cas(xet_cli_hub_t *hub, int *rc)
{
    *rc = hub->cas ? XET_CLI_OK : xet_cli_hub_grant(hub);

    return hub->cas;
}


/*
 * Requests a token for the content server.  The first response also provides
 * the URL of the content server.
 */

static int
xet_cli_hub_grant(xet_cli_hub_t *hub)
{
    int                  rc;
    char                *url, *token;
    json_t              *answer;
    xet_cli_request_t    r;
    xet_hub_granted_t    granted;

    rc = xet_cli_hub_ask(hub, &r,
                         xet_cli_hub_url(hub, hub->writes ? "xet-write-token"
                                                          : "xet-read-token",
                                         1, NULL),
                         NULL, NULL);

    answer = (rc == XET_CLI_OK) ? xet_cli_hub_answer(&r, &rc) : NULL;

    xet_cli_http_free(&r);

    if (answer == NULL) {
        return rc;
    }

    if (xet_hub_granted_read(answer, &granted) != XET_OK) {
        json_decref(answer);
        return xet_cli_fail(XET_CLI_NETWORK, hub->id,
                            "the Hub's response is not a token");
    }

    token = strndup((const char *) granted.token.data, granted.token.len);
    url = strndup((const char *) granted.url.data, granted.url.len);

    rc = (token && url) ? XET_CLI_OK : xet_cli_no_memory();

    if (rc == XET_CLI_OK && hub->cas == NULL) {
        hub->cas = xet_cli_http_create_at(hub->args, url, &rc);

        if (hub->cas) {
            xet_cli_http_renew(hub->cas, xet_cli_hub_renew, hub);
        }
    }

    if (rc == XET_CLI_OK) {
        free(hub->token);

        hub->token = token;
        hub->expires = granted.expires;
        hub->asked = xet_cli_now();
        token = NULL;
    }

    free(token);
    free(url);
    json_decref(answer);

    return rc;
}


/*
 * Returns the current token, after renewing it if it expires soon; or NULL.
 * Even with a wrong local clock, there is at most one renewal per second.  If
 * a renewal fails, the old token is used until it expires.
 */

static const char *
xet_cli_hub_renew(void *ctx)
{
    int             rc;
    xet_cli_hub_t  *hub = ctx;

    if ((uint64_t) time(NULL) + XET_CLI_HUB_EARLY < hub->expires
        || xet_cli_now() - hub->asked < XET_CLI_HUB_PERIOD)
    {
        return hub->token;
    }

    rc = xet_cli_hub_grant(hub);

    hub->asked = xet_cli_now();

    return (rc == XET_CLI_OK || (uint64_t) time(NULL) < hub->expires)
           ? hub->token : NULL;
}
