
/*
 * Values in HTML: for any bytes, the result is valid UTF-8 without markup.  A
 * URL decodes to the same bytes; a shell and Python parse the quoted form to
 * the displayed text.
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


/* Parses a word as a shell does: quoted parts, and "\'" between them. */

static void
fuzz_word(fuzz_text_t *out, const fuzz_text_t *in)
{
    int     quoted;
    size_t  i;

    quoted = 0;
    out->len = 0;

    for (i = 0; i < in->len; i++) {

        if (in->data[i] == '\'') {
            quoted = !quoted;

        } else if (!quoted && in->data[i] == '\\') {
            check(++i < in->len && in->data[i] == '\'');
            out->data[out->len++] = '\'';

        } else {
            check(quoted || xet_is_alnum(in->data[i])
                  || strchr("-_./:@%+,=", in->data[i]));
            out->data[out->len++] = in->data[i];
        }
    }

    check(!quoted);
}


static void
fuzz_literal(fuzz_text_t *out, const fuzz_text_t *in)
{
    size_t  i;

    check(in->len >= 2 && in->data[0] == '"'
          && in->data[in->len - 1] == '"');

    out->len = 0;

    for (i = 1; i < in->len - 1; i++) {
        check(in->data[i] != '"');

        if (in->data[i] == '\\') {
            check(++i < in->len - 1
                  && (in->data[i] == '"' || in->data[i] == '\\'));
        }

        out->data[out->len++] = in->data[i];
    }
}


static void
fuzz_url(const fuzz_text_t *in, const uint8_t *data, size_t size, int path)
{
    int             c;
    size_t          n;
    const uint8_t  *p;

    p = in->data;
    n = 0;

    while (p < in->data + in->len) {
        check(xet_is_alnum(*p) || *p == '%' || strchr("-._~", *p)
              || (path && *p == '/'));

        c = xet_percent_byte(&p, in->data + in->len);
        check(c >= 0 && n < size && c == data[n]);
        n++;
    }

    check(n == size);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fuzz_text_t  raw, shown, read, word;

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

    fuzz_write(&raw, "%w", data, size);
    fuzz_unescape(&read, &raw);
    fuzz_word(&word, &read);
    check(word.len == shown.len
          && memcmp(word.data, shown.data, shown.len) == 0);

    fuzz_write(&raw, "%l", data, size);
    fuzz_unescape(&read, &raw);
    fuzz_literal(&word, &read);
    check(word.len == shown.len
          && memcmp(word.data, shown.data, shown.len) == 0);

    fuzz_write(&raw, "%u", data, size);
    fuzz_url(&raw, data, size, 0);

    fuzz_write(&raw, "%p", data, size);
    fuzz_url(&raw, data, size, 1);

    return 0;
}
