
/*
 * Header values from clients without Xet: names of downloads and lists of
 * entity tags.  An accepted name can't inject anything into the response
 * header; a tag that was added to a list is found.
 *
 * Input: a text, which is used both as the argument of a URL and as the value
 * of If-None-Match.
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xet_base.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


static void
fuzz_filename(const uint8_t *data, size_t size)
{
    size_t          i, len, quotes;
    uint8_t         name[XET_FILENAME_MAX], *header, *end;
    xet_utf8_t      utf8;
    const uint8_t  *ext;

    if (xet_filename_decode(name, &len, data, size) != XET_OK) {
        return;
    }

    check(len >= 1 && len <= XET_FILENAME_MAX && name[0] != '.');

    for (i = 0; i < len; i++) {
        check(name[i] >= ' ' && name[i] != 0x7f && name[i] != '/'
              && name[i] != '\\');
    }

    xet_utf8_init(&utf8);
    check(xet_utf8_feed(&utf8, name, len) == len && utf8.need == 0);

    header = malloc(XET_FILENAME_HEADER(len));
    end = xet_filename_header(header, name, len);

    check((size_t) (end - header) < XET_FILENAME_HEADER(len));

    for (i = 0, quotes = 0; header + i < end; i++) {
        check(header[i] >= ' ' && header[i] < 0x7f);
        quotes += (header[i] == '"');
    }

    check(quotes == 2);

    ext = xet_filename_extension(name, len, &i);
    check(ext == NULL ? i == 0 : ext + i == name + len && ext[-1] == '.');

    free(header);
}


static void
fuzz_etag(const uint8_t *data, size_t size)
{
    int       strong, weak;
    uint8_t  *list;

    static const char  tag[] = "\"abc\"";

    strong = xet_etag_match(data, size, (const uint8_t *) tag, 5,
                            XET_ETAG_STRONG);
    weak = xet_etag_match(data, size, (const uint8_t *) tag, 5,
                          XET_ETAG_WEAK);

    check(!strong || weak);

    /* a tag at the start of the list is found, whatever follows */

    list = malloc(size + 6);
    memcpy(list, tag, 5);
    list[5] = ',';

    if (size) {
        memcpy(list + 6, data, size);
    }

    check(xet_etag_match(list, size + 6, (const uint8_t *) tag, 5,
                         XET_ETAG_STRONG));
    free(list);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_filename(data, size);
    fuzz_etag(data, size);

    return 0;
}
