
/*
 * The metadata of a README.md: any bytes give JSON that is an object with
 * valid UTF-8 and no NUL, an error with printable text, or no card; always in
 * proportion to the input.
 *
 * Input: a README.md, which is also read as the YAML of another one.
 */


#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "xet_hub.h"


#define INPUT_MAX  65536

#define check(cond)  if (!(cond)) { __builtin_trap(); }


static void
fuzz_card(const uint8_t *data, size_t size)
{
    char                  *json;
    size_t                 i, len;
    json_t                *doc;
    xet_status_t           rc;
    xet_hub_card_head_t    head;
    xet_hub_card_error_t   error;

    if (!xet_hub_card_find(data, size, &head)) {
        check(!head.complete);
        return;
    }

    check(head.begins && head.yaml.data >= data
          && head.yaml.data + head.yaml.len <= data + size);

    rc = xet_hub_card_parse(&head, &json, &len, &error);

    if (rc != XET_OK) {
        check(rc == XET_HUB_CARD && json == NULL);

        for (i = 0; i == 0 || error.text[i]; i++) {
            check(i < sizeof(error.text) && error.text[i] >= ' '
                  && error.text[i] <= '~');
        }

        return;
    }

    if (json == NULL) {
        return;
    }

    check(len <= 2 * size + 16384);

    doc = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);

    check(json_is_object(doc));

    json_decref(doc);
    free(json);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t  *text;

    if (size > INPUT_MAX) {
        return 0;
    }

    text = malloc(size + 9);
    if (text == NULL) {
        return 0;
    }

    memcpy(text, data, size);
    fuzz_card(text, size);

    memcpy(text, "---\n", 4);
    memcpy(text + 4, data, size);
    memcpy(text + 4 + size, "\n---\n", 5);
    fuzz_card(text, size + 9);

    free(text);

    return 0;
}
