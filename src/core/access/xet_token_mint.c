
/*
 * Access tokens: the making of them.
 *
 * Purpose:    tokens of our own, for the Hub's token routes and for the
 *             command line.
 * States:     none.
 * Ownership:  all is borrowed, the token goes to the caller's buffer.
 * Threads:    any number with one key.
 *
 * What would be refused or would come out changed when it is verified is not
 * minted: texts are checked by the same functions.  With that, escaping at
 * most doubles a text, so all JSON fits in fixed room and no memory is asked
 * for.  Members come in a fixed order without white space; Ed25519 and HMAC
 * are deterministic, hence so is the token.
 */


#include "xet_base64.h"
#include "xet_json.h"
#include "xet_token.h"


/* JSON of the header: names, and an id of which each byte is escaped */
#define XET_TOKEN_MINT_HEADER   (64 + 2 * XET_JWK_ID_MAX)

/* JSON of the payload: names, numbers, and texts likewise; no repo is */
#define XET_TOKEN_MINT_PAYLOAD                                                \
    (192 + 4 * XET_TOKEN_NAME_MAX + 2 * XET_TOKEN_SUB_MAX + XET_TOKEN_REPO_MAX)


/* The one node that a buffer of this size asks for. */

typedef struct {
    union {
        xet_buf_node_t  node;
        uint8_t         bytes[sizeof(xet_buf_node_t)
                              + XET_TOKEN_MINT_PAYLOAD];
    } room;
    unsigned            used:1;
} xet_token_room_t;


static int xet_token_mintable(const xet_token_params_t *params,
    const xet_token_claims_t *claims);
static void *xet_token_alloc(void *data, size_t size);
static void xet_token_put_header(xet_buf_t *b, const xet_jwk_t *key);
static void xet_token_put_claims(xet_buf_t *b,
    const xet_token_params_t *params, const xet_token_claims_t *claims);
static void xet_token_put_text(xet_json_t *j, const char *name,
    const xet_token_text_t *text);
static void xet_token_put_time(xet_json_t *j, const char *name,
    uint64_t seconds);


xet_status_t
xet_token_mint(const xet_jwk_t *key, const xet_token_params_t *params,
    const xet_token_claims_t *claims, uint8_t *out, size_t cap, size_t *len)
{
    size_t             n;
    uint8_t           *p, signature[XET_JWK_SIGN_MAX];
    xet_buf_t          header, payload;
    xet_status_t       status;
    xet_token_room_t   header_room, payload_room;

    if (!xet_token_mintable(params, claims)) {
        return XET_INTERNAL;
    }

    header_room.used = 0;
    payload_room.used = 0;

    xet_buf_init(&header, xet_token_alloc, &header_room,
                 XET_TOKEN_MINT_HEADER);
    xet_buf_init(&payload, xet_token_alloc, &payload_room,
                 XET_TOKEN_MINT_PAYLOAD);

    xet_token_put_header(&header, key);
    xet_token_put_claims(&payload, params, claims);

    if (xet_buf_status(&header) != XET_OK
        || xet_buf_status(&payload) != XET_OK)
    {
        return XET_INTERNAL;
    }

    n = xet_base64_encoded((size_t) header.size) + 1
        + xet_base64_encoded((size_t) payload.size) + 1;

    if (n > cap) {
        return XET_INTERNAL;
    }

    p = xet_base64_encode(out, header.first->start, (size_t) header.size);
    *p++ = '.';
    p = xet_base64_encode(p, payload.first->start, (size_t) payload.size);

    status = xet_jwk_sign(key, out, (size_t) (p - out), signature, len);

    if (status != XET_OK) {
        return status;
    }

    if (xet_base64_encoded(*len) > cap - n) {
        return XET_INTERNAL;
    }

    *p++ = '.';
    p = xet_base64_encode(p, signature, *len);

    *len = (size_t) (p - out);

    return XET_OK;
}


static int
xet_token_mintable(const xet_token_params_t *params,
    const xet_token_claims_t *claims)
{
    return claims->exp <= XET_TOKEN_TIME_MAX
           && claims->nbf <= XET_TOKEN_TIME_MAX
           && claims->iat <= XET_TOKEN_TIME_MAX
           && (params->iss.data == NULL
               || xet_token_text_ok(&params->iss, XET_TOKEN_NAME_MAX))
           && (params->aud.data == NULL
               || xet_token_text_ok(&params->aud, XET_TOKEN_NAME_MAX))
           && (claims->sub.data == NULL
               || xet_token_text_ok(&claims->sub, XET_TOKEN_SUB_MAX))
           && (claims->repo.data == NULL
               || xet_token_repo_ok(claims->repo.data, claims->repo.len));
}


/* A second node would mean that the sizes above are wrong. */

static void *
xet_token_alloc(void *data, size_t size)
{
    xet_token_room_t  *room;

    room = data;

    if (room->used || size > sizeof(room->room)) {
        return NULL;
    }

    room->used = 1;

    return &room->room;
}


static void
xet_token_put_header(xet_buf_t *b, const xet_jwk_t *key)
{
    size_t          len;
    xet_json_t      j;
    const uint8_t  *id;

    id = xet_jwk_id(key, &len);

    xet_json_init(&j, b);

    xet_json_object_begin(&j);
    xet_json_key(&j, "alg");
    xet_json_cstring(&j, xet_jwk_alg_name(xet_jwk_alg(key)));
    xet_json_key(&j, "typ");
    xet_json_cstring(&j, "JWT");
    xet_json_key(&j, "kid");
    xet_json_string(&j, id, len);
    xet_json_object_end(&j);
}


static void
xet_token_put_claims(xet_buf_t *b, const xet_token_params_t *params,
    const xet_token_claims_t *claims)
{
    xet_json_t  j;

    xet_json_init(&j, b);

    xet_json_object_begin(&j);
    xet_token_put_text(&j, "iss", &params->iss);
    xet_token_put_text(&j, "aud", &params->aud);
    xet_token_put_text(&j, "sub", &claims->sub);
    xet_token_put_time(&j, "iat", claims->iat);
    xet_token_put_time(&j, "nbf", claims->nbf);
    xet_json_key(&j, "exp");
    xet_json_u64(&j, claims->exp);
    xet_json_key(&j, "scope");
    xet_json_cstring(&j, claims->write ? "write" : "read");
    xet_token_put_text(&j, "repo", &claims->repo);
    xet_json_object_end(&j);
}


static void
xet_token_put_text(xet_json_t *j, const char *name,
    const xet_token_text_t *text)
{
    if (text->data != NULL) {
        xet_json_key(j, name);
        xet_json_string(j, text->data, text->len);
    }
}


static void
xet_token_put_time(xet_json_t *j, const char *name, uint64_t seconds)
{
    if (seconds) {
        xet_json_key(j, name);
        xet_json_u64(j, seconds);
    }
}
