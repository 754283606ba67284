
/*
 * Checks of the claims of a token, in either form.
 *
 * Purpose:    names of repos and scopes, texts, times.
 * States:     none.
 * Ownership:  all arguments are borrowed.
 * Threads:    any.
 */


#include "xet_base.h"
#include "xet_access.h"


static const char *const  xet_scope_names[] = {
    "read", "write", "delete", "admin"
};


int
xet_token_repo_ok(const uint8_t *repo, size_t len)
{
    size_t    i;
    uint8_t   c, last;
    unsigned  alone;

    if (len == 0 || len > XET_TOKEN_REPO_MAX || repo[len - 1] == '/') {
        return 0;
    }

    last = '/';
    alone = 0;                     /* the part so far is only a dot */

    for (i = 0; i < len; i++) {
        c = repo[i];

        if (xet_is_alnum(c) || c == '_' || c == '-') {
            alone = 0;

        } else if (c == '.') {

            if (last == '.') {
                return 0;
            }

            alone = (last == '/');

        } else if (c != '/' || last == '/' || alone) {
            return 0;
        }

        last = c;
    }

    return !alone;
}


int
xet_token_text_ok(const xet_token_text_t *text, size_t max)
{
    size_t   i;
    json_t  *string;

    if (text->len > max) {
        return 0;
    }

    for (i = 0; i < text->len; i++) {
        if (text->data[i] < 0x20 || text->data[i] == 0x7f) {
            return 0;
        }
    }

    /* jansson returns NULL for bytes that are not UTF-8 */

    string = json_stringn((const char *) text->data, text->len);

    json_decref(string);

    return string != NULL;
}


xet_status_t
xet_token_current(const xet_token_params_t *params,
    const xet_token_claims_t *claims, uint64_t now)
{
    /* compare differences, which can't overflow */

    if (now >= claims->exp && now - claims->exp >= params->skew) {
        return XET_TOKEN_EXPIRED;
    }

    if (claims->nbf > now && claims->nbf - now > params->skew) {
        return XET_TOKEN_EARLY;
    }

    return XET_OK;
}


const char *
xet_scope_name(xet_scope_e scope)
{
    return xet_scope_names[scope];
}


int
xet_scope_parse(xet_scope_e *scope, const uint8_t *text, size_t len)
{
    size_t  i;

    for (i = 0; i <= XET_SCOPE_ADMIN; i++) {

        if (strlen(xet_scope_names[i]) == len
            && memcmp(xet_scope_names[i], text, len) == 0)
        {
            *scope = (xet_scope_e) i;
            return 1;
        }
    }

    return 0;
}
