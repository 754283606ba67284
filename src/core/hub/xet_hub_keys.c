
/*
 * Keys of JSON bodies.
 *
 * Purpose:    checks that a body has only keys that the server knows, with
 *             values that it supports.  A client that asks for more gets an
 *             error that names the key, instead of a success without effect.
 * States:     none.
 * Ownership:  tables of keys are constant; a refusal has a copy of the key.
 * Threads:    any.
 *
 * The value null always means that the client does not use the key.
 */


#include "xet_hub.h"


static const char *xet_hub_key_wants(xet_hub_value_e rule, json_t *value);
static int xet_hub_key_is(json_t *value, const char *const *texts);


xet_status_t
xet_hub_keys_check(json_t *object, const xet_hub_key_t *keys,
    xet_hub_refusal_t *refusal)
{
    void                 *i;
    json_t               *value;
    const char           *name, *wants;
    const xet_hub_key_t  *key;

    if (!json_is_object(object)) {
        return XET_BODY_SYNTAX;
    }

    for (i = json_object_iter(object); i; i = json_object_iter_next(object, i))
    {
        name = json_object_iter_key(i);
        value = json_object_iter_value(i);

        for (key = keys; key->name && strcmp(key->name, name) != 0; key++) {
            /* void */
        }

        if (key->name == NULL) {
            xet_hub_refuse(refusal, name, NULL);
            return XET_HUB_KEY;
        }

        if (json_is_null(value)) {
            continue;
        }

        wants = xet_hub_key_wants(key->rule, value);

        if (wants) {
            xet_hub_refuse(refusal, name, wants);
            return XET_HUB_VALUE;
        }
    }

    return XET_OK;
}


xet_status_t
xet_hub_list_check(json_t *array, const xet_hub_key_t *keys,
    xet_hub_refusal_t *refusal)
{
    size_t        i;
    xet_status_t  rc;

    rc = XET_OK;

    for (i = 0; i < json_array_size(array) && rc == XET_OK; i++) {
        rc = xet_hub_keys_check(json_array_get(array, i), keys, refusal);
    }

    return rc;
}


/*
 * Returns NULL if the value obeys the rule, else the end of the message, which
 * starts with the key.
 */

static const char *
xet_hub_key_wants(xet_hub_value_e rule, json_t *value)
{
    static const char *const  shown[] = { "public", "private", NULL };

    static const char *const  kinds[] = {
        "model", "dataset", "space", "bucket", NULL
    };

    static const char *const  sha256[] = { "sha256", "sha_256", NULL };

    switch (rule) {

    case XET_HUB_VALUE_TEXT:
        return json_is_string(value) ? NULL : "must be a string";

    case XET_HUB_VALUE_BOOL:
        return json_is_boolean(value) ? NULL : "must be true or false";

    case XET_HUB_VALUE_NUMBER:
        return json_is_number(value) ? NULL : "must be a number";

    case XET_HUB_VALUE_LIST:
        return json_is_array(value) ? NULL : "must be a list";

    case XET_HUB_VALUE_OBJECT:
        return json_is_object(value) ? NULL : "must be an object";

    case XET_HUB_VALUE_VISIBILITY:
        return xet_hub_key_is(value, shown) ? NULL
                                            : "must be public or private";

    case XET_HUB_VALUE_KIND:
        return xet_hub_key_is(value, kinds)
               ? NULL : "must be model, dataset, space or bucket";

    case XET_HUB_VALUE_SHA256:
        return xet_hub_key_is(value, sha256) ? NULL : "must be sha256";

    case XET_HUB_VALUE_FALSE:
        return json_is_false(value) ? NULL
                                    : "is unsupported: it must be false";

    case XET_HUB_VALUE_TRUE:
        return json_is_true(value) ? NULL : "is unsupported: it must be true";

    case XET_HUB_VALUE_NONE:
        return "is unsupported by this server";

    default:
        return NULL;
    }
}


static int
xet_hub_key_is(json_t *value, const char *const *texts)
{
    const char  *s;

    s = json_string_value(value);

    while (s && *texts) {
        if (strcmp(s, *texts++) == 0) {
            return 1;
        }
    }

    return 0;
}
