
/*
 * JSON input.
 *
 * Purpose:    the one place where jansson is called to read, so that the same
 *             strictness holds for all that we read.
 * States:     none of ours.  (jansson seeds its hash tables at the first
 *             object of a process, once for all threads.)
 * Ownership:  the tree belongs to the caller, nothing points into the text.
 * Threads:    any, a tree by one thread at a time.
 *
 * jansson recurses, and its own bound of 2048 levels is too deep for the
 * stack of a thread that has other calls on it, so depth is counted before.
 * The count and the parser agree on what is inside of a string up to the
 * first error of syntax, and the parser goes no further than that.
 */


#include "xet_json.h"


static int xet_json_depth_ok(const uint8_t *text, size_t len, unsigned depth);


xet_status_t
xet_json_parse(json_t **object, const uint8_t *text, size_t len,
    unsigned depth)
{
    json_t        *root;
    json_error_t   error;

    if (len == 0 || !xet_json_depth_ok(text, len, depth)) {
        return XET_BODY_SYNTAX;
    }

    root = json_loadb((const char *) text, len, JSON_REJECT_DUPLICATES,
                      &error);

    if (root == NULL) {
        return (json_error_code(&error) == json_error_out_of_memory)
               ? XET_NOMEM : XET_BODY_SYNTAX;
    }

    if (!json_is_object(root)) {
        json_decref(root);
        return XET_BODY_SYNTAX;
    }

    *object = root;

    return XET_OK;
}


static int
xet_json_depth_ok(const uint8_t *text, size_t len, unsigned depth)
{
    size_t    i;
    unsigned  level, string;

    level = 0;
    string = 0;

    for (i = 0; i < len; i++) {

        switch (text[i]) {

        case '"':
            string = !string;
            break;

        case '\\':
            i += string;
            break;

        case '{':
        case '[':
            if (!string && level++ == depth) {
                return 0;
            }

            break;

        case '}':
        case ']':
            if (!string && level) {
                level--;
            }

            break;

        default:
            break;
        }
    }

    return 1;
}
