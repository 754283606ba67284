
/*
 * Access tokens: verification and minting.
 *
 * Purpose:    turns the text after "Bearer" into verified claims; mints tokens
 *             for the token routes of the Hub and for the command line.
 * States:     none.
 * Ownership:  token, keys and params are borrowed.  The strings of the claims
 *             are copied to the caller's buffer, and so is a new token.  JSON
 *             trees are freed before a call returns.
 * Threads:    any number with the same set or the same key.
 *
 * The header of a JWT is not trusted: it only selects which of the configured
 * keys are tried, and each key has one algorithm.  The payload is decoded only
 * after the signature is verified, and is then checked like any other input.
 * Claims are checked in a fixed order, the scope last: a token that is refused
 * for its scope is otherwise valid.
 *
 * Minting refuses claims that verification would refuse or change.  Escaping
 * at most doubles a checked string, so the JSON fits into buffers of fixed
 * size.  The order of members is fixed, and Ed25519 and HMAC are
 * deterministic, so the same claims give the same token.
 */


#include "xet_base.h"
#include "xet_access.h"


/* maximum JSON size of a header: names, and an id with every byte escaped */
#define XET_TOKEN_MINT_HEADER   (64 + 2 * XET_JWK_ID_MAX)

/*
 * Maximum JSON size of a payload: names, numbers, and strings with every byte
 * escaped, except the repository, which needs no escapes.
 */
#define XET_TOKEN_MINT_PAYLOAD                                                \
    (192 + 4 * XET_TOKEN_NAME_MAX + 2 * XET_TOKEN_SUB_MAX + XET_TOKEN_REPO_MAX)


/* The three parts of a token, encoded. */

typedef struct {
    xet_token_text_t  header;
    xet_token_text_t  payload;
    xet_token_text_t  signature;
    xet_token_text_t  input;       /* the signed text: the first two parts */
} xet_token_parts_t;


/* The parsed header; kid is a node of the JSON tree, or NULL. */

typedef struct {
    xet_jwk_alg_t     alg;
    json_t           *kid;
} xet_token_header_t;


/* Memory for the buffer of a header or a payload, which has a single node. */

typedef struct {
    union {
        xet_buf_node_t  node;
        uint8_t         bytes[sizeof(xet_buf_node_t)
                              + XET_TOKEN_MINT_PAYLOAD];
    } room;
    unsigned            used:1;
} xet_token_room_t;


static xet_status_t xet_token_split(const uint8_t *token, size_t len,
    xet_token_parts_t *parts);
static xet_status_t xet_token_object(json_t **object,
    const xet_token_text_t *part, uint8_t *buf);
static xet_status_t xet_token_signed(const xet_jwk_set_t *set,
    const xet_token_parts_t *parts);
static xet_status_t xet_token_header(const json_t *object,
    xet_token_header_t *header);
static xet_status_t xet_token_keys(const xet_jwk_set_t *set,
    const xet_token_header_t *header, const xet_token_text_t *input,
    const uint8_t *signature, size_t len);
static xet_status_t xet_token_claims(const json_t *object,
    const xet_token_params_t *params, uint64_t now, uint8_t *room,
    xet_token_claims_t *claims);
static int xet_token_time(const json_t *object, const char *name,
    uint64_t *seconds);
static int xet_token_string(const json_t *object, const char *name,
    xet_token_text_t *text);
static int xet_token_audience(const json_t *object,
    const xet_token_text_t *want, unsigned *found);
static unsigned xet_token_scope(const xet_token_text_t *text,
    xet_scope_e *scope);
static unsigned xet_token_equal(const xet_token_text_t *a,
    const xet_token_text_t *b);
static uint8_t *xet_token_keep(uint8_t *room, xet_token_text_t *dst,
    const xet_token_text_t *src);
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
xet_token_verify(const xet_jwk_set_t *set, const xet_token_params_t *params,
    const uint8_t *token, size_t len, uint64_t now, uint8_t *room,
    xet_token_claims_t *claims)
{
    json_t             *object;
    uint8_t             buf[XET_TOKEN_PAYLOAD_MAX];
    xet_status_t        status;
    xet_token_parts_t   parts;

    if (len == 0) {
        return XET_TOKEN_MISSING;
    }

    if (len > (params->max ? params->max : XET_TOKEN_MAX)) {
        return XET_TOKEN_SIZE;
    }

    if (xet_token_is_compact(token, len)) {
        return xet_token_compact_verify(set, params, token, len, now, room,
                                        claims);
    }

    status = xet_token_split(token, len, &parts);

    if (status != XET_OK) {
        return status;
    }

    status = xet_token_signed(set, &parts);

    if (status != XET_OK) {
        return status;
    }

    status = xet_token_object(&object, &parts.payload, buf);

    if (status != XET_OK) {
        return (status == XET_TOKEN_SYNTAX) ? XET_TOKEN_CLAIMS : status;
    }

    status = xet_token_claims(object, params, now, room, claims);

    json_decref(object);

    return status;
}


xet_status_t
xet_token_mint(const xet_jwk_t *key, const xet_token_params_t *params,
    const xet_token_claims_t *claims, uint8_t *out, size_t cap, size_t *len)
{
    xet_status_t  status;

    if (!xet_token_mintable(params, claims)) {
        return XET_INTERNAL;
    }

    status = xet_token_compact_mint(key, params, claims, out, cap, len);

    return (status == XET_DONE)
           ? xet_token_mint_jwt(key, params, claims, out, cap, len) : status;
}


xet_status_t
xet_token_mint_jwt(const xet_jwk_t *key, const xet_token_params_t *params,
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


void
xet_token_digest(const uint8_t *key, const uint8_t *token, size_t len,
    xet_hash_t *out)
{
    xet_hash_keyed(key, token, len, out);
}


static xet_status_t
xet_token_split(const uint8_t *token, size_t len, xet_token_parts_t *parts)
{
    const uint8_t  *dot[2], *end;

    end = token + len;

    dot[0] = memchr(token, '.', len);

    if (dot[0] == NULL) {
        return XET_TOKEN_SYNTAX;
    }

    dot[1] = memchr(dot[0] + 1, '.', (size_t) (end - dot[0] - 1));

    if (dot[1] == NULL) {
        return XET_TOKEN_SYNTAX;
    }

    parts->header.data = token;
    parts->header.len = (size_t) (dot[0] - token);

    parts->payload.data = dot[0] + 1;
    parts->payload.len = (size_t) (dot[1] - dot[0] - 1);

    parts->signature.data = dot[1] + 1;
    parts->signature.len = (size_t) (end - dot[1] - 1);

    parts->input.data = token;
    parts->input.len = (size_t) (dot[1] - token);

    if (xet_base64_decoded(parts->header.len) > XET_TOKEN_HEADER_MAX
        || xet_base64_decoded(parts->payload.len) > XET_TOKEN_PAYLOAD_MAX)
    {
        return XET_TOKEN_SIZE;
    }

    return XET_OK;
}


/*
 * Decodes a part to buf, which the caller has checked to be large enough, and
 * parses it.
 */

static xet_status_t
xet_token_object(json_t **object, const xet_token_text_t *part, uint8_t *buf)
{
    xet_status_t  status;

    if (!xet_base64_decode(buf, part->data, part->len)) {
        return XET_TOKEN_SYNTAX;
    }

    status = xet_json_parse(object, buf, xet_base64_decoded(part->len),
                            XET_TOKEN_DEPTH);

    return (status == XET_BODY_SYNTAX) ? XET_TOKEN_SYNTAX : status;
}


/* Verifies that a key of the set has signed the first two parts. */

static xet_status_t
xet_token_signed(const xet_jwk_set_t *set, const xet_token_parts_t *parts)
{
    size_t               len;
    json_t              *object;
    uint8_t              buf[XET_TOKEN_HEADER_MAX];
    uint8_t              signature[XET_JWK_SIGNATURE_MAX];
    xet_status_t         status;
    xet_token_header_t   header;

    status = xet_token_object(&object, &parts->header, buf);

    if (status != XET_OK) {
        return status;
    }

    status = xet_token_header(object, &header);

    if (status == XET_OK) {
        len = xet_base64_decoded(parts->signature.len);

        if (len > XET_JWK_SIGNATURE_MAX) {
            status = XET_TOKEN_SIGNATURE;

        } else if (!xet_base64_decode(signature, parts->signature.data,
                                      parts->signature.len))
        {
            status = XET_TOKEN_SYNTAX;

        } else {
            status = xet_token_keys(set, &header, &parts->input, signature,
                                    len);
        }
    }

    json_decref(object);

    return status;
}


size_t
xet_token_key_id(const xet_jwk_set_t *set, const uint8_t *token, size_t len,
    uint8_t *room)
{
    size_t            n;
    json_t           *object, *kid;
    uint8_t           buf[XET_TOKEN_HEADER_MAX];
    const uint8_t    *dot;
    xet_token_text_t  part;

    if (xet_token_is_compact(token, len)) {
        return xet_token_compact_key_id(set, token, len, room);
    }

    dot = memchr(token, '.', len);

    if (dot == NULL) {
        return 0;
    }

    part.data = token;
    part.len = (size_t) (dot - token);

    if (xet_base64_decoded(part.len) > XET_TOKEN_HEADER_MAX
        || xet_token_object(&object, &part, buf) != XET_OK)
    {
        return 0;
    }

    kid = json_object_get(object, "kid");
    n = json_is_string(kid) ? json_string_length(kid) : 0;

    if (n == 0
        || !xet_jwk_id_ok((const uint8_t *) json_string_value(kid), n))
    {
        n = 0;

    } else {
        memcpy(room, json_string_value(kid), n);
    }

    json_decref(object);

    return n;
}


static xet_status_t
xet_token_header(const json_t *object, xet_token_header_t *header)
{
    json_t  *alg;

    alg = json_object_get(object, "alg");
    header->kid = json_object_get(object, "kid");

    if (!json_is_string(alg) || (header->kid && !json_is_string(header->kid)))
    {
        return XET_TOKEN_SYNTAX;
    }

    /* RFC 7515, section 4.1.11: unsupported extensions must be refused */

    if (json_object_get(object, "crit") || json_object_get(object, "b64")) {
        return XET_TOKEN_CRIT;
    }

    header->alg = xet_jwk_alg_find(json_string_value(alg),
                                   json_string_length(alg));

    return (header->alg != XET_JWK_ALG_MAX) ? XET_OK : XET_TOKEN_ALG;
}


static xet_status_t
xet_token_keys(const xet_jwk_set_t *set, const xet_token_header_t *header,
    const xet_token_text_t *input, const uint8_t *signature, size_t len)
{
    size_t            i, tried;
    xet_status_t      status;
    const xet_jwk_t  *key;
    xet_token_text_t  id, kid;

    kid.data = (const uint8_t *) json_string_value(header->kid);
    kid.len = json_string_length(header->kid);

    status = XET_TOKEN_KEY;
    tried = 0;

    for (i = 0; i < xet_jwk_set_count(set); i++) {
        key = xet_jwk_set_get(set, i);
        id.data = xet_jwk_id(key, &id.len);

        if (kid.data && !xet_token_equal(&id, &kid)) {
            continue;
        }

        if (xet_jwk_alg(key) != header->alg) {

            /* another key with this id may have the algorithm */

            if (kid.data && status == XET_TOKEN_KEY) {
                status = XET_TOKEN_ALG;
            }

            continue;
        }

        if (tried++ == XET_TOKEN_KEYS_MAX) {
            break;
        }

        status = xet_jwk_verify(key, input->data, input->len, signature, len);

        if (status != XET_TOKEN_SIGNATURE) {
            return status;
        }
    }

    return status;
}


static xet_status_t
xet_token_claims(const json_t *object, const xet_token_params_t *params,
    uint64_t now, uint8_t *room, xet_token_claims_t *claims)
{
    const json_t     *contents;
    unsigned          audience;
    xet_status_t      status;
    xet_token_text_t  iss, sub, scope, repo;

    contents = json_object_get(object, "contents");

    if (!xet_token_time(object, "exp", &claims->exp)
        || !xet_token_time(object, "nbf", &claims->nbf)
        || !xet_token_time(object, "iat", &claims->iat)
        || !xet_token_string(object, "iss", &iss)
        || !xet_token_audience(object, &params->aud, &audience)
        || !xet_token_string(object, "sub", &sub)
        || !xet_token_string(object, "scope", &scope)
        || !xet_token_string(object, "repo", &repo)
        || json_object_get(object, "exp") == NULL
        || (contents && !json_is_boolean(contents))
        || (sub.data && !xet_token_text_ok(&sub, XET_TOKEN_SUB_MAX))
        || (repo.data && !xet_token_repo_ok(repo.data, repo.len)))
    {
        return XET_TOKEN_CLAIMS;
    }

    status = xet_token_current(params, claims, now);

    if (status != XET_OK) {
        return status;
    }

    if (params->iss.data && !xet_token_equal(&iss, &params->iss)) {
        return XET_TOKEN_ISSUER;
    }

    if (params->aud.data && !audience) {
        return XET_TOKEN_AUDIENCE;
    }

    if (!xet_token_scope(&scope, &claims->scope)) {
        return XET_TOKEN_SCOPE;
    }

    claims->contents = json_is_true(contents);

    room = xet_token_keep(room, &claims->sub, &sub);
    (void) xet_token_keep(room, &claims->repo, &repo);

    return XET_OK;
}


/* Sets *seconds, 0 if the claim is absent; returns 0 if it is malformed. */

static int
xet_token_time(const json_t *object, const char *name, uint64_t *seconds)
{
    json_t      *value;
    json_int_t   number;

    *seconds = 0;

    value = json_object_get(object, name);

    if (value == NULL) {
        return 1;
    }

    number = json_integer_value(value);

    if (!json_is_integer(value)
        || number < 0
        || (uint64_t) number > XET_TOKEN_TIME_MAX)
    {
        return 0;
    }

    *seconds = (uint64_t) number;

    return 1;
}


static int
xet_token_string(const json_t *object, const char *name,
    xet_token_text_t *text)
{
    json_t  *value;

    value = json_object_get(object, name);

    text->data = (const uint8_t *) json_string_value(value);
    text->len = json_string_length(value);

    return value == NULL || text->data != NULL;
}


/*
 * Sets *found if "aud", a string or an array, contains want.  Returns 0 when
 * "aud" is malformed.
 */

static int
xet_token_audience(const json_t *object, const xet_token_text_t *want,
    unsigned *found)
{
    size_t             i;
    json_t            *aud, *value;
    xet_token_text_t   text;

    *found = 0;

    if (xet_token_string(object, "aud", &text)) {
        *found = xet_token_equal(&text, want);
        return 1;
    }

    aud = json_object_get(object, "aud");

    if (!json_is_array(aud)) {
        return 0;
    }

    for (i = 0; i < json_array_size(aud); i++) {
        value = json_array_get(aud, i);

        text.data = (const uint8_t *) json_string_value(value);
        text.len = json_string_length(value);

        if (text.data == NULL) {
            return 0;
        }

        *found |= xet_token_equal(&text, want);
    }

    return 1;
}


/*
 * Sets *scope to the highest scope among the words of the text.  Returns 0
 * when no word is a scope.
 */

static unsigned
xet_token_scope(const xet_token_text_t *text, xet_scope_e *scope)
{
    size_t       i, start;
    unsigned     found;
    xet_scope_e  word;

    if (text->data == NULL) {
        return 0;
    }

    found = 0;
    start = 0;

    for (i = 0; i <= text->len; i++) {

        if (i < text->len && text->data[i] != ' ') {
            continue;
        }

        if (xet_scope_parse(&word, text->data + start, i - start)) {
            *scope = (found && *scope > word) ? *scope : word;
            found = 1;
        }

        start = i + 1;
    }

    return found;
}


/* Compares two texts; an absent text is not equal to any text. */

static unsigned
xet_token_equal(const xet_token_text_t *a, const xet_token_text_t *b)
{
    return a->data != NULL && b->data != NULL && a->len == b->len
           && memcmp(a->data, b->data, a->len) == 0;
}


static uint8_t *
xet_token_keep(uint8_t *room, xet_token_text_t *dst,
    const xet_token_text_t *src)
{
    dst->data = NULL;
    dst->len = 0;

    if (src->data == NULL) {
        return room;
    }

    memcpy(room, src->data, src->len);

    dst->data = room;
    dst->len = src->len;

    return room + src->len;
}


static int
xet_token_mintable(const xet_token_params_t *params,
    const xet_token_claims_t *claims)
{
    return claims->exp <= XET_TOKEN_TIME_MAX
           && claims->nbf <= XET_TOKEN_TIME_MAX
           && claims->iat <= XET_TOKEN_TIME_MAX
           && claims->scope <= XET_SCOPE_ADMIN
           && (params->iss.data == NULL
               || xet_token_text_ok(&params->iss, XET_TOKEN_NAME_MAX))
           && (params->aud.data == NULL
               || xet_token_text_ok(&params->aud, XET_TOKEN_NAME_MAX))
           && (claims->sub.data == NULL
               || xet_token_text_ok(&claims->sub, XET_TOKEN_SUB_MAX))
           && (claims->repo.data == NULL
               || xet_token_repo_ok(claims->repo.data, claims->repo.len));
}


/* Allocates the single node; fails if XET_TOKEN_MINT_* is too small. */

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
    xet_json_put_cstring(&j, "alg", xet_jwk_alg_name(xet_jwk_alg(key)));
    xet_json_put_cstring(&j, "typ", "JWT");
    xet_json_put_string(&j, "kid", id, len);
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
    xet_json_put_u64(&j, "exp", claims->exp);
    xet_json_put_cstring(&j, "scope", xet_scope_name(claims->scope));
    xet_token_put_text(&j, "repo", &claims->repo);

    if (claims->contents) {
        xet_json_put_bool(&j, "contents", 1);
    }

    xet_json_object_end(&j);
}


static void
xet_token_put_text(xet_json_t *j, const char *name,
    const xet_token_text_t *text)
{
    if (text->data != NULL) {
        xet_json_put_string(j, name, text->data, text->len);
    }
}


static void
xet_token_put_time(xet_json_t *j, const char *name, uint64_t seconds)
{
    if (seconds) {
        xet_json_put_u64(j, name, seconds);
    }
}
