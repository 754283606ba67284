
/*
 * Rules of ".gitignore" files: a match is repeatable, ends, and obeys a rule
 * that is added at the end.
 *
 * Input: a path, a newline, then the rules.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_hub.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


static int
fuzz_match(const uint8_t *rules, size_t len, const uint8_t *path, size_t size)
{
    int               ignored, again;
    xet_hub_ignore_t  ignore;

    if (xet_hub_ignore_init(&ignore, rules, len) != XET_OK) {
        check(len > XET_HUB_IGNORE_MAX);
        xet_hub_ignore_free(&ignore);
        return -1;
    }

    if (xet_hub_ignore_match(&ignore, path, size, &ignored) != XET_OK
        || xet_hub_ignore_match(&ignore, path, size, &again) != XET_OK)
    {
        xet_hub_ignore_free(&ignore);
        return -1;
    }

    check(ignored == again);
    xet_hub_ignore_free(&ignore);

    return ignored;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int             ignored;
    size_t          len;
    uint8_t        *rules;
    const uint8_t  *end;

    end = size ? memchr(data, '\n', size) : NULL;

    if (end == NULL) {
        return 0;
    }

    len = size - (size_t) (end - data) - 1;
    rules = malloc(len + 3);
    check(rules);

    memcpy(rules, end + 1, len);

    ignored = fuzz_match(rules, len, data, (size_t) (end - data));

    if (ignored >= 0 && xet_hub_path_ok(data, (size_t) (end - data))) {
        memcpy(rules + len, "\n*", 2);
        check(fuzz_match(rules, len + 2, data, (size_t) (end - data)) != 0);
        check(fuzz_match(rules + len, 2, data, (size_t) (end - data)) == 1);
    }

    free(rules);

    return 0;
}
