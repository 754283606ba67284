
/*
 * JSON input.
 *
 * Purpose:    parses JSON with jansson; no other file of the module calls the
 *             parser, so all input is parsed with the same strictness.
 * States:     none, except that jansson seeds its hash tables at the first
 *             object of a process, once for all threads.
 * Ownership:  the tree belongs to the caller and does not point into the text.
 * Threads:    any, but one at a time per tree.
 *
 * jansson recurses, and its own limit of 2048 levels is too deep for the stack
 * of a thread that is already in other calls, so the depth is counted first.
 * Up to the first syntax error, where jansson stops, the counting code and
 * jansson agree on where strings begin and end.
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
