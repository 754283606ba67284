
/*
 * Values in HTML: for any bytes, the result is valid UTF-8 without markup.
 *
 * Input: the bytes of a value.
 */


#include <stdlib.h>
#include <string.h>

#include "fuzz_heap.h"
#include "xet_hub.h"


#define HEAP_SIZE   (16 * 1024 * 1024)
#define INPUT_MAX   4096

#define check(cond)  if (!(cond)) { __builtin_trap(); }


typedef struct {
    uint8_t  data[16 * INPUT_MAX];
    size_t   len;
} fuzz_text_t;


static fuzz_heap_t  fuzz_heap;


static void
fuzz_write(fuzz_text_t *out, const char *format, const uint8_t *data,
    size_t size)
{
    xet_buf_t        b;
    xet_buf_node_t  *node;

    fuzz_heap.used = 0;
    xet_buf_init(&b, fuzz_alloc, &fuzz_heap, 64);

    xet_hub_html(&b, format, size, data);
    check(xet_buf_status(&b) == XET_OK);

    out->len = 0;

    for (node = b.first; node; node = node->next) {
        check(out->len + (size_t) (node->pos - node->start)
              <= sizeof(out->data));
        memcpy(out->data + out->len, node->start,
               (size_t) (node->pos - node->start));
        out->len += (size_t) (node->pos - node->start);
    }
}


/* Parses the text as a browser does; allows only entities that we write. */

static void
fuzz_unescape(fuzz_text_t *out, const fuzz_text_t *in)
{
    size_t      i, k, n;
    xet_utf8_t  u;

    static const struct {
        const char  *entity;
        uint8_t      c;
    } entities[] = {
        { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' },
        { "&quot;", '"' }, { "&#39;", '\'' }
    };

    xet_utf8_init(&u);
    check(xet_utf8_feed(&u, in->data, in->len) == in->len && u.need == 0);

    out->len = 0;

    for (i = 0; i < in->len; i++) {
        check(strchr("<>\"'", in->data[i]) == NULL);
        check(in->data[i] >= 0x20 || strchr("\t\r\n", in->data[i]));

        if (in->data[i] != '&') {
            out->data[out->len++] = in->data[i];
            continue;
        }

        for (k = 0; k < 5; k++) {
            n = strlen(entities[k].entity);

            if (in->len - i >= n
                && memcmp(in->data + i, entities[k].entity, n) == 0)
            {
                out->data[out->len++] = entities[k].c;
                i += n - 1;
                break;
            }
        }

        check(k < 5);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fuzz_text_t  raw, shown;

    if (size > INPUT_MAX) {
        return 0;
    }

    if (fuzz_heap.heap == NULL) {
        fuzz_heap.heap = malloc(HEAP_SIZE);
        fuzz_heap.limit = HEAP_SIZE;
        check(fuzz_heap.heap);
    }

    fuzz_write(&raw, "%t", data, size);
    fuzz_unescape(&shown, &raw);

    return 0;
}
