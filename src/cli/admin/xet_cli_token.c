
/*
 * xet token: access tokens, minted with a key of the server or fetched from
 * where the server gives them out.
 */


#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xet_cli_admin.h"


#define XET_CLI_TOKEN_LIFETIME  3600   /* s */


typedef struct {
    const char  *token;
    size_t       len;
    uint64_t     exp;
    const char  *url;                  /* of the API, or NULL */
} xet_cli_token_t;


static int xet_cli_token_mint(const xet_cli_args_t *args);
static int xet_cli_token_claims(const xet_cli_args_t *args,
    xet_token_params_t *params, xet_token_claims_t *claims);
static void xet_cli_token_text(xet_token_text_t *text, const char *value);
static int xet_cli_token_key(xet_cli_key_t *key, const xet_cli_args_t *args,
    xet_jwk_t **jwk);
static int xet_cli_token_fetch(const xet_cli_args_t *args);
static int xet_cli_token_answer(const xet_cli_args_t *args,
    const xet_cli_request_t *r);
static int xet_cli_token_print(const xet_cli_args_t *args,
    const xet_cli_token_t *t);


int
xet_cli_token(const xet_cli_args_t *args)
{
    if (args->value[XET_CLI_OPT_URL]) {
        return xet_cli_token_fetch(args);
    }

    return xet_cli_token_mint(args);
}


static int
xet_cli_token_mint(const xet_cli_args_t *args)
{
    int                 rc;
    char                text[XET_TOKEN_MINT_MAX];
    size_t              len;
    xet_jwk_t          *jwk;
    xet_status_t        status;
    xet_cli_key_t       key;
    xet_cli_token_t     t;
    xet_token_params_t  params;
    xet_token_claims_t  claims;

    jwk = NULL;

    rc = xet_cli_token_claims(args, &params, &claims);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_key_read(&key, args);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_token_key(&key, args, &jwk);
    }

    if (rc == XET_CLI_OK) {
        status = xet_token_mint(jwk, &params, &claims, (uint8_t *) text,
                                sizeof(text), &len);

        if (status != XET_OK) {
            rc = xet_cli_fail(XET_CLI_USAGE, "token",
                              "a claim is too long, or not allowed");
        }
    }

    xet_jwk_destroy(jwk);
    xet_cli_key_free(&key);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    t.token = text;
    t.len = len;
    t.exp = claims.exp;
    t.url = NULL;

    return xet_cli_token_print(args, &t);
}


static int
xet_cli_token_claims(const xet_cli_args_t *args, xet_token_params_t *params,
    xet_token_claims_t *claims)
{
    int          rc;
    uint64_t     lifetime;
    const char  *scope;

    memset(params, 0, sizeof(xet_token_params_t));
    memset(claims, 0, sizeof(xet_token_claims_t));

    rc = xet_cli_args_time(args, XET_CLI_OPT_LIFETIME,
                           XET_CLI_TOKEN_LIFETIME, &lifetime);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    scope = args->value[XET_CLI_OPT_SCOPE];

    if (scope && strcmp(scope, "read") != 0 && strcmp(scope, "write") != 0) {
        return xet_cli_fail(XET_CLI_USAGE, "token",
                            "--scope is read or write");
    }

    claims->iat = (uint64_t) time(NULL);
    claims->exp = claims->iat + lifetime;
    claims->write = (scope && *scope == 'w');

    xet_cli_token_text(&params->iss, args->value[XET_CLI_OPT_ISSUER]);
    xet_cli_token_text(&params->aud, args->value[XET_CLI_OPT_AUDIENCE]);
    xet_cli_token_text(&claims->sub, args->value[XET_CLI_OPT_SUBJECT]);
    xet_cli_token_text(&claims->repo, args->value[XET_CLI_OPT_REPO]);

    return XET_CLI_OK;
}


static void
xet_cli_token_text(xet_token_text_t *text, const char *value)
{
    if (value) {
        text->data = (const uint8_t *) value;
        text->len = strlen(value);
    }
}


static int
xet_cli_token_key(xet_cli_key_t *key, const xet_cli_args_t *args,
    xet_jwk_t **jwk)
{
    int           rc;
    xet_status_t  status;

    if (memmem(key->file, key->len, "-----BEGIN", 10)) {
        status = xet_jwk_create_private(jwk, NULL, 0, key->file, key->len);

    } else {
        rc = xet_cli_key_secret(key, args);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        status = xet_jwk_create_secret(jwk, key->id, key->id_len,
                                       key->secret, key->secret_len);
    }

    return (status == XET_OK) ? XET_CLI_OK
           : xet_cli_fail(XET_CLI_ERROR, args->value[XET_CLI_OPT_KEY],
                          xet_status_text(status));
}


/* Fetches a token as a Hub and the directive xet_token give it out. */

static int
xet_cli_token_fetch(const xet_cli_args_t *args)
{
    int                 rc;
    xet_cli_http_t     *h;
    xet_cli_request_t   r;

    h = xet_cli_http_create(args, &rc);

    if (h == NULL) {
        return rc;
    }

    memset(&r, 0, sizeof(r));

    r.url = strdup(args->value[XET_CLI_OPT_URL]);
    r.api = 1;
    r.netrc = 1;
    r.max = 256 * 1024;

    rc = xet_cli_http_call(h, &r);

    if (rc == XET_CLI_OK) {
        rc = (r.status == 200) ? xet_cli_token_answer(args, &r)
                               : xet_cli_http_fail(&r);
    }

    xet_cli_http_free(&r);
    xet_cli_http_destroy(h);

    return rc;
}


static int
xet_cli_token_answer(const xet_cli_args_t *args, const xet_cli_request_t *r)
{
    int              rc;
    json_t          *answer;
    xet_cli_token_t  t;

    answer = json_loadb(r->data ? r->data : "", r->len, 0, NULL);

    t.token = json_string_value(json_object_get(answer, "accessToken"));
    t.url = json_string_value(json_object_get(answer, "casUrl"));

    if (t.token == NULL || !xet_cli_request_token_ok(t.token)
        || !xet_cli_json_get_u64(answer, "exp", &t.exp))
    {
        rc = xet_cli_fail(XET_CLI_NETWORK, "server",
                          "the answer has no token");

    } else {
        t.len = strlen(t.token);
        rc = xet_cli_token_print(args, &t);
    }

    json_decref(answer);

    return rc;
}


static int
xet_cli_token_print(const xet_cli_args_t *args, const xet_cli_token_t *t)
{
    xet_json_t      *j;
    xet_cli_json_t   out;

    if (!args->value[XET_CLI_OPT_JSON]) {
        printf("%.*s\n", (int) t->len, t->token);
        return XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_json_key(j, "token");
    xet_json_string(j, (const uint8_t *) t->token, t->len);
    xet_cli_json_put_u64(j, "expires", t->exp);

    if (t->url) {
        xet_cli_json_put_string(j, "endpoint", t->url);
    }

    return xet_cli_json_end(&out);
}
