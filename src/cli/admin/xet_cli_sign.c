
/*
 * xet token signs a token with a key of the server, or fetches a token from a
 * URL that issues tokens.  xet url signs a data URL.
 *
 * A data URL gives access to a copy of a xorb, like the URLs in a
 * reconstruction.  The operand of xet url is the file name of the copy in the
 * store.  xet url does not check that the copy exists.
 */


#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xet_cli_admin.h"


#define XET_CLI_SIGN_LIFETIME    3600   /* seconds */
#define XET_CLI_SIGN_PREFIX      "hf_"
#define XET_CLI_SIGN_PREFIX_LEN  3


/* A key file, in the format of the directives xet_url_key and xet_token_key. */

typedef struct {
    uint8_t         *file;             /* contents, malloc()ed */
    size_t           len;
    xet_key_file_t   line;             /* the first key */
} xet_cli_key_t;


typedef struct {
    const char  *token;
    size_t       len;
    uint64_t     exp;
    const char  *url;                  /* URL of the API, or NULL */
} xet_cli_token_t;


static int xet_cli_token_mint(const xet_cli_args_t *args);
static int xet_cli_token_claims(const xet_cli_args_t *args,
    xet_token_params_t *params, xet_token_claims_t *claims);
static void xet_cli_token_text(xet_token_text_t *text, const char *value);
static int xet_cli_token_repo(const xet_cli_args_t *args, char **repo);
static int xet_cli_token_key(xet_cli_key_t *key, const xet_cli_args_t *args,
    xet_jwk_t **jwk);
static int xet_cli_token_fetch(const xet_cli_args_t *args);
static int xet_cli_token_answer(const xet_cli_args_t *args,
    const xet_cli_request_t *r);
static int xet_cli_token_print(const xet_cli_args_t *args,
    const xet_cli_token_t *t);
static int xet_cli_url_ranges(const xet_cli_args_t *args,
    xet_range_t *ranges, size_t *n);
static int xet_cli_url_sign(const xet_cli_args_t *args,
    const xet_sign_url_t *url);
static int xet_cli_url_print(const xet_cli_args_t *args, xet_buf_t *b,
    uint64_t expires);
static int xet_cli_key_read(xet_cli_key_t *key, const xet_cli_args_t *args);
static int xet_cli_key_first(xet_cli_key_t *key, const xet_cli_args_t *args,
    xet_key_purpose_e purpose);
static void xet_cli_key_free(xet_cli_key_t *key);


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
    char               *repo, text[XET_TOKEN_MINT_MAX];
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

    repo = NULL;

    rc = xet_cli_key_read(&key, args);
    rc = rc ? rc : xet_cli_token_key(&key, args, &jwk);
    rc = rc ? rc : xet_cli_token_repo(args, &repo);

    if (repo) {
        xet_cli_token_text(&claims.repo, repo);
    }

    if (rc == XET_CLI_OK) {
        status = xet_token_mint(jwk, &params, &claims, (uint8_t *) text,
                                sizeof(text), &len);

        if (status != XET_OK) {
            rc = xet_cli_fail(XET_CLI_USAGE, "token",
                              "a claim is too long or not allowed");
        }
    }

    xet_jwk_destroy(jwk);
    xet_cli_key_free(&key);
    free(repo);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (memchr(text, '.', len)) {
        (void) xet_cli_fail(XET_CLI_OK, "token",
                            "the claims are too long for a compact token; "
                            "clients such as llama.cpp do not send a JWT");
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
                           XET_CLI_SIGN_LIFETIME, &lifetime);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    scope = args->value[XET_CLI_OPT_SCOPE];

    if (scope && !xet_scope_parse(&claims->scope, (const uint8_t *) scope,
                                  strlen(scope)))
    {
        return xet_cli_fail(XET_CLI_USAGE, "token",
                            "--scope must be read, write, delete or admin");
    }

    claims->iat = (uint64_t) time(NULL);
    claims->exp = claims->iat + lifetime;

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


/*
 * A token refers to a Hub repository by its number, which a rename does not
 * change.  Sets *repo to that number as a string, malloc()ed; *repo does not
 * change if --repo is not a Hub name.
 */

static int
xet_cli_token_repo(const xet_cli_args_t *args, char **repo)
{
    int            rc;
    const char    *name = args->value[XET_CLI_OPT_REPO];
    xet_cli_pg_t  *pg;

    if (name == NULL || !xet_cli_named_hub(name)) {
        return XET_CLI_OK;
    }

    pg = xet_cli_pg_open(args, &rc);

    if (pg == NULL) {
        return rc;
    }

    *repo = xet_cli_named(pg, name, &rc);

    xet_cli_pg_close(pg);

    return (rc == XET_CLI_OK && *repo == NULL)
           ? xet_cli_fail(XET_CLI_FAULT, name, "no such repository") : rc;
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
        rc = xet_cli_key_first(key, args, XET_KEY_TOKEN);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        status = xet_jwk_create_secret(jwk, key->line.id, key->line.id_len,
                                       key->line.secret,
                                       key->line.secret_len);
    }

    return (status == XET_OK) ? XET_CLI_OK
           : xet_cli_fail(XET_CLI_ERROR, args->value[XET_CLI_OPT_KEY],
                          xet_status_text(status));
}


/*
 * Fetches a token from --url: a Hub, or an nginx location with the directive
 * xet_token.
 */

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
                          "the response has no token");

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
    int     rc;
    char   *text;
    size_t  len;

    text = malloc(XET_CLI_SIGN_PREFIX_LEN + t->len);
    if (text == NULL) {
        return xet_cli_no_memory();
    }

    len = args->value[XET_CLI_OPT_HF] ? XET_CLI_SIGN_PREFIX_LEN : 0;

    memcpy(text, XET_CLI_SIGN_PREFIX, len);
    memcpy(text + len, t->token, t->len);

    rc = xet_cli_print_row(xet_cli_json(args),
             xet_cli_out_bytes("token", text, len + t->len, 0, "\n"),
             xet_cli_out_number("expires", t->exp, NULL),
             xet_cli_out_text(t->url ? "endpoint" : NULL, t->url, NULL));

    free(text);

    return rc;
}


int
xet_cli_url(const xet_cli_args_t *args)
{
    int             rc;
    uint64_t        lifetime;
    xet_range_t     ranges[XET_SIGN_RANGES_MAX];
    xet_sign_url_t  url;

    memset(&url, 0, sizeof(url));

    rc = XET_CLI_OK;

    if (xet_xorb_name_parse(&url.xorb, &url.copy_id,
                            (const uint8_t *) args->operands[0],
                            strlen(args->operands[0]))
        != XET_OK)
    {
        rc = xet_cli_fail(XET_CLI_USAGE, args->operands[0],
                          "is not HASH.COPY_ID, the file name of a copy in the "
                          "store");
    }

    rc = rc ? rc : xet_cli_args_time(args, XET_CLI_OPT_LIFETIME,
                                     XET_CLI_SIGN_LIFETIME, &lifetime);
    rc = rc ? rc : xet_cli_url_ranges(args, ranges, &url.n);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    url.ns = (const uint8_t *) "default";
    url.ns_len = sizeof("default") - 1;
    url.expires = (uint64_t) time(NULL) + lifetime;
    url.ranges = ranges;

    return xet_cli_url_sign(args, &url);
}


/*
 * Parses --range.  Without --range, sets *n to 0: the URL is then valid for
 * any range.
 */

static int
xet_cli_url_ranges(const xet_cli_args_t *args, xet_range_t *ranges,
    size_t *n)
{
    const char  *list;

    *n = 0;
    list = args->value[XET_CLI_OPT_RANGE];

    if (list == NULL) {
        return XET_CLI_OK;
    }

    *n = XET_SIGN_RANGES_MAX;

    if (xet_range_list_parse((const uint8_t *) list, strlen(list), ranges, n)
        != XET_OK)
    {
        return xet_cli_fail(XET_CLI_USAGE, list,
                            "invalid range; expected A-B, several with commas "
                            "in ascending order");
    }

    return XET_CLI_OK;
}


static int
xet_cli_url_sign(const xet_cli_args_t *args, const xet_sign_url_t *url)
{
    int              rc;
    size_t           len;
    xet_buf_t        b;
    const char      *base;
    xet_status_t     status;
    xet_cli_key_t    key;
    xet_sign_key_t  *signer;

    signer = NULL;

    rc = xet_cli_key_read(&key, args);
    rc = rc ? rc : xet_cli_key_first(&key, args, XET_KEY_URL);

    if (rc == XET_CLI_OK) {
        signer = xet_sign_key_create(key.line.id, key.line.id_len,
                                     key.line.secret, key.line.secret_len);

        if (signer == NULL) {
            rc = xet_cli_no_memory();
        }
    }

    xet_cli_key_free(&key);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    base = args->value[XET_CLI_OPT_BASE];
    base = base ? base : "";

    for (len = strlen(base); len && base[len - 1] == '/'; len--) {
        /* void */
    }

    xet_buf_init(&b, xet_cli_buf_alloc, NULL, 16384);
    xet_buf_write(&b, base, len);

    status = xet_sign_url(signer, url, &b);

    if (status != XET_OK) {
        rc = xet_cli_fail(XET_CLI_USAGE, "url",
                          "the ranges overlap or are not in ascending order");

    } else {
        rc = xet_cli_url_print(args, &b, url->expires);
    }

    xet_sign_key_destroy(signer);
    xet_cli_buf_free(&b);

    return rc;
}


static int
xet_cli_url_print(const xet_cli_args_t *args, xet_buf_t *b, uint64_t expires)
{
    xet_json_t      *j;
    xet_buf_node_t  *node;
    xet_cli_json_t   out;

    if (!args->value[XET_CLI_OPT_JSON]) {

        for (node = b->first; node; node = node->next) {
            fwrite(node->start, 1, (size_t) (node->pos - node->start),
                   stdout);
        }

        printf("\n");

        return XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_json_key(j, "url");
    xet_json_string_begin(j);

    for (node = b->first; node; node = node->next) {
        xet_buf_write(&out.buf, node->start,
                      (size_t) (node->pos - node->start));
    }

    xet_json_string_end(j);
    xet_json_put_u64(j, "expires", expires);

    return xet_cli_json_end(&out);
}


/*
 * Reads the key file given by --key.  Returns XET_CLI_OK, or an exit code
 * after printing the error: XET_CLI_USAGE without --key, else XET_CLI_ERROR.
 * The caller must call xet_cli_key_free() in any case.
 */

static int
xet_cli_key_read(xet_cli_key_t *key, const xet_cli_args_t *args)
{
    int          fd;
    ssize_t      n;
    const char  *name;

    memset(key, 0, sizeof(xet_cli_key_t));

    name = args->value[XET_CLI_OPT_KEY];

    if (name == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, args->verb, "--key is required");
    }

    key->file = malloc(XET_JWK_DOCUMENT_MAX + 1);

    if (key->file == NULL) {
        return xet_cli_no_memory();
    }

    fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return xet_cli_fail_errno(name);
    }

    n = 0;

    while (key->len <= XET_JWK_DOCUMENT_MAX
           && (n = read(fd, key->file + key->len,
                        XET_JWK_DOCUMENT_MAX + 1 - key->len)) > 0)
    {
        key->len += (size_t) n;
    }

    close(fd);

    if (n < 0) {
        return xet_cli_fail_errno(name);
    }

    if (key->len > XET_JWK_DOCUMENT_MAX) {
        return xet_cli_fail(XET_CLI_ERROR, name, "is too long for a key file");
    }

    return XET_CLI_OK;
}


/*
 * Sets key->line to the first key of the file.  Returns XET_CLI_OK, or
 * XET_CLI_ERROR after printing the error.  A key for another purpose is an
 * error.
 */

static int
xet_cli_key_first(xet_cli_key_t *key, const xet_cli_args_t *args,
    xet_key_purpose_e purpose)
{
    const char  *name = args->value[XET_CLI_OPT_KEY];

    xet_key_begin(&key->line, purpose, key->file, key->len);

    switch (xet_key_next(&key->line)) {

    case 1:
        return XET_CLI_OK;

    case 0:
        return xet_cli_fail(XET_CLI_ERROR, name, "contains no key");

    default:
        return xet_cli_failf(XET_CLI_ERROR, name, "line %u: %s",
                             key->line.line, key->line.fault);
    }
}


/* Wipes the secret and the contents of the key file, and frees the memory. */

static void
xet_cli_key_free(xet_cli_key_t *key)
{
    xet_key_end(&key->line);

    if (key->file) {
        explicit_bzero(key->file, key->len);
        free(key->file);
    }
}
