
/*
 * Hub responses: the strings of every accepted entry, repo, token, next page or
 * name are valid, because the client uses them as names and URLs.
 *
 * Input: a byte that selects a parser, then the text.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_hub.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


static void
fuzz_plain(const xet_hub_text_t *text)
{
    size_t  i;

    for (i = 0; i < text->len; i++) {
        check(text->data[i] > ' ' && text->data[i] < 0x7f);
    }
}


static void
fuzz_value(const json_t *value)
{
    xet_hub_entry_t      entry;
    xet_hub_granted_t    granted;
    xet_hub_described_t  described;

    if (xet_hub_entry_read(value, &entry) == XET_OK) {
        check(xet_hub_path_ok(entry.path.data, entry.path.len));
        check(!entry.folder || !entry.known);
        check(entry.size <= INT64_MAX);
        fuzz_plain(&entry.date);
    }

    if (xet_hub_described_read(value, &described) == XET_OK) {
        check(described.oid.len == 0
              || described.oid.len == XET_HUB_OID_LEN);
        fuzz_plain(&described.id);
        fuzz_plain(&described.oid);
        fuzz_plain(&described.date);
    }

    if (xet_hub_granted_read(value, &granted) == XET_OK) {
        check(granted.url.len > 7 && granted.token.len);
        check(memcmp(granted.url.data, "http", 4) == 0);
        fuzz_plain(&granted.url);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char              *text;
    json_t            *doc;
    xet_hub_text_t     args;
    xet_hub_target_t   t;

    if (size == 0) {
        return 0;
    }

    text = malloc(size);
    check(text);

    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';

    if (data[0] % 3 == 0) {
        doc = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
        fuzz_value(doc);
        json_decref(doc);

    } else if (data[0] % 3 == 1) {

        if (xet_hub_next_parse(text, &args)) {
            check(args.len && args.len < size);
            check(memchr(args.data, '#', args.len) == NULL);
            fuzz_plain(&args);
        }

    } else if (xet_hub_operand_parse(text, &t) == XET_OK) {
        check(xet_hub_owner_ok(t.owner.data, t.owner.len));
        check(t.name.data == NULL || xet_hub_name_ok(t.name.data, t.name.len));
        check(t.path.len == 0 || xet_hub_path_ok(t.path.data, t.path.len));
    }

    free(text);

    return 0;
}
