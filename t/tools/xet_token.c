
/*
 * xet_token: tokens and keys on the command line, for tests.
 *
 *     verify [OPTION ...] < TOKENS
 *     mint [OPTION ...]
 *
 * Keys, added in the given order:
 *
 *     --secret ID FILE      HS256 secret, the plain bytes of FILE
 *     --private ID FILE     private EdDSA key, PEM; if ID is "", the key's
 *                           thumbprint is the ID
 *     --pem ID FILE         public keys, PEM; "" likewise
 *     --jwks FILE           public keys, JWKS
 *
 * Other options:
 *
 *     --iss TEXT  --aud TEXT  --skew SECONDS  --now SECONDS
 *     --exp SECONDS  --nbf SECONDS  --iat SECONDS
 *     --sub TEXT  --repo TEXT  --write  --delete
 *     --jwt                 mint a JWT, not a compact token
 *
 * "verify" reads one token per line and prints a line for each: "ok" and the
 * claims in JSON, or the name of the error, for example TOKEN_EXPIRED.  "mint"
 * signs with the last secret or private key and prints the token.  If a key
 * can't be loaded, the tool prints "key " and the name of the error, and exits
 * with status 1.
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xet_base.h"
#include "xet_access.h"


typedef struct {
    xet_jwk_set_t       *set;
    const xet_jwk_t     *signer;
    xet_token_params_t   params;
    xet_token_claims_t   claims;
    uint64_t             now;
    int                  jwt;
} xet_token_tool_t;


static void xet_token_option(xet_token_tool_t *t, char ***argv);
static void xet_token_key(xet_token_tool_t *t, const char *kind,
    const char *id, const char *path);
static uint8_t *xet_token_read(const char *path, size_t *len);
static void xet_token_set_text(xet_token_text_t *text, const char *s);
static uint64_t xet_token_number(const char *s);
static const char *xet_token_symbol(xet_status_t status);
static void xet_token_print(const xet_token_claims_t *c);
static void *xet_token_malloc(void *data, size_t size);
static void xet_token_fatal(const char *what);


static const char *const  xet_token_symbols[] = {
#define xet_token_name(name, code, http, text)  #name,
    XET_STATUS_MAP(xet_token_name)
#undef xet_token_name
};


int
main(int argc, char **argv)
{
    char               *line;
    size_t              len, cap;
    ssize_t             n;
    uint8_t             room[XET_TOKEN_ROOM], token[XET_TOKEN_MINT_MAX];
    const char         *verb;
    xet_status_t        status;
    xet_token_tool_t    t;
    xet_token_claims_t  claims;

    if (argc < 2) {
        xet_token_fatal("usage: xet_token verify|mint [OPTION ...]");
    }

    memset(&t, 0, sizeof(t));

    t.set = xet_jwk_set_create();
    t.now = (uint64_t) time(NULL);

    verb = argv[1];

    for (argv += 2; *argv != NULL; /* void */ ) {
        xet_token_option(&t, &argv);
    }

    if (strcmp(verb, "mint") == 0) {

        if (t.signer == NULL) {
            xet_token_fatal("no key to sign with");
        }

        status = (t.jwt ? xet_token_mint_jwt : xet_token_mint)
                     (t.signer, &t.params, &t.claims, token, sizeof(token),
                      &len);

        if (status != XET_OK) {
            xet_token_fatal(xet_token_symbol(status));
        }

        printf("%.*s\n", (int) len, (char *) token);

    } else if (strcmp(verb, "verify") == 0) {

        line = NULL;
        cap = 0;

        while ((n = getline(&line, &cap, stdin)) > 0) {

            if (line[n - 1] == '\n') {
                n--;
            }

            status = xet_token_verify(t.set, &t.params, (uint8_t *) line,
                                      (size_t) n, t.now, room, &claims);

            if (status == XET_OK) {
                xet_token_print(&claims);

            } else {
                printf("%s\n", xet_token_symbol(status));
            }
        }

        free(line);

    } else {
        xet_token_fatal("unknown verb");
    }

    xet_jwk_set_destroy(t.set);

    return 0;
}


static void
xet_token_option(xet_token_tool_t *t, char ***argv)
{
    char  **arg, *name;

    arg = *argv;
    name = arg[0];

    if (strcmp(name, "--jwt") == 0) {
        t->jwt = 1;
        *argv = arg + 1;
        return;
    }

    if (strcmp(name, "--write") == 0 || strcmp(name, "--delete") == 0) {
        t->claims.scope = (name[2] == 'w') ? XET_SCOPE_WRITE
                                           : XET_SCOPE_DELETE;
        *argv = arg + 1;
        return;
    }

    if (arg[1] == NULL) {
        xet_token_fatal("an option lacks its value");
    }

    *argv = arg + 2;

    if (strcmp(name, "--jwks") == 0) {
        xet_token_key(t, name, "", arg[1]);

    } else if (strcmp(name, "--secret") == 0
               || strcmp(name, "--private") == 0
               || strcmp(name, "--pem") == 0)
    {
        if (arg[2] == NULL) {
            xet_token_fatal("an option lacks its file");
        }

        xet_token_key(t, name, arg[1], arg[2]);
        *argv = arg + 3;

    } else if (strcmp(name, "--iss") == 0) {
        xet_token_set_text(&t->params.iss, arg[1]);

    } else if (strcmp(name, "--aud") == 0) {
        xet_token_set_text(&t->params.aud, arg[1]);

    } else if (strcmp(name, "--sub") == 0) {
        xet_token_set_text(&t->claims.sub, arg[1]);

    } else if (strcmp(name, "--repo") == 0) {
        xet_token_set_text(&t->claims.repo, arg[1]);

    } else if (strcmp(name, "--skew") == 0) {
        t->params.skew = xet_token_number(arg[1]);

    } else if (strcmp(name, "--now") == 0) {
        t->now = xet_token_number(arg[1]);

    } else if (strcmp(name, "--exp") == 0) {
        t->claims.exp = xet_token_number(arg[1]);

    } else if (strcmp(name, "--nbf") == 0) {
        t->claims.nbf = xet_token_number(arg[1]);

    } else if (strcmp(name, "--iat") == 0) {
        t->claims.iat = xet_token_number(arg[1]);

    } else {
        xet_token_fatal("unknown option");
    }
}


static void
xet_token_key(xet_token_tool_t *t, const char *kind, const char *id,
    const char *path)
{
    size_t          len, id_len, index;
    uint8_t        *data;
    xet_jwk_t      *key;
    xet_status_t    status;
    const uint8_t  *name;

    data = xet_token_read(path, &len);
    name = (const uint8_t *) id;
    id_len = strlen(id);
    key = NULL;

    if (strcmp(kind, "--jwks") == 0) {
        status = xet_jwk_set_add_jwks(t->set, data, len, &index);

    } else if (strcmp(kind, "--pem") == 0) {
        status = xet_jwk_set_add_pem(t->set, name, id_len, data, len, &index);

    } else if (strcmp(kind, "--private") == 0) {
        status = xet_jwk_create_private(&key, name, id_len, data, len);

    } else {
        status = xet_jwk_create_secret(&key, name, id_len, data, len);
    }

    if (status == XET_OK && key != NULL) {
        status = xet_jwk_set_add(t->set, key);
        t->signer = key;
    }

    free(data);

    if (status != XET_OK) {
        printf("key %s\n", xet_token_symbol(status));
        exit(1);
    }
}


/* Reads one byte more than allowed, so that a longer file is rejected. */

static uint8_t *
xet_token_read(const char *path, size_t *len)
{
    FILE     *f;
    uint8_t  *data;

    f = fopen(path, "rb");
    data = malloc(XET_JWK_DOCUMENT_MAX + 1);

    if (f == NULL || data == NULL) {
        xet_token_fatal("can't read a file");
    }

    *len = fread(data, 1, XET_JWK_DOCUMENT_MAX + 1, f);

    fclose(f);

    return data;
}


static void
xet_token_set_text(xet_token_text_t *text, const char *s)
{
    text->data = (const uint8_t *) s;
    text->len = strlen(s);
}


static uint64_t
xet_token_number(const char *s)
{
    char      *end;
    uint64_t   n;

    n = strtoull(s, &end, 10);

    if (*s < '0' || *s > '9' || *end != '\0') {
        xet_token_fatal("not a number");
    }

    return n;
}


static const char *
xet_token_symbol(xet_status_t status)
{
    return xet_token_symbols[status];
}


static void
xet_token_print(const xet_token_claims_t *c)
{
    xet_buf_t        b;
    xet_json_t       j;
    xet_buf_node_t  *node;

    xet_buf_init(&b, xet_token_malloc, NULL, 4096);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    xet_json_key(&j, "exp");
    xet_json_u64(&j, c->exp);
    xet_json_key(&j, "nbf");
    xet_json_u64(&j, c->nbf);
    xet_json_key(&j, "iat");
    xet_json_u64(&j, c->iat);
    xet_json_key(&j, "scope");
    xet_json_cstring(&j, xet_scope_name(c->scope));

    if (c->sub.data != NULL) {
        xet_json_key(&j, "sub");
        xet_json_string(&j, c->sub.data, c->sub.len);
    }

    if (c->repo.data != NULL) {
        xet_json_key(&j, "repo");
        xet_json_string(&j, c->repo.data, c->repo.len);
    }

    xet_json_object_end(&j);

    printf("ok ");

    while ((node = b.first) != NULL) {
        fwrite(node->start, 1, (size_t) (node->pos - node->start), stdout);
        b.first = node->next;
        free(node);
    }

    printf("\n");
}


static void *
xet_token_malloc(void *data, size_t size)
{
    return malloc(size);
}


static void
xet_token_fatal(const char *what)
{
    fprintf(stderr, "xet_token: %s\n", what);
    exit(2);
}
