
/* Prints results as JSON or text, and parses untrusted JSON. */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli.h"


static void xet_cli_print_member(xet_json_t *j, const xet_cli_out_t *m);
static void xet_cli_print_text(const xet_cli_out_t *m);
static void xet_cli_print_one(const char *tail);


xet_json_t *
xet_cli_json_begin(xet_cli_json_t *o)
{
    xet_buf_init(&o->buf, xet_cli_buf_alloc, NULL, 0);
    xet_json_init(&o->json, &o->buf);

    xet_json_object_begin(&o->json);

    return &o->json;
}


void
xet_cli_json_put_hash(xet_json_t *j, const char *key, const xet_hash_t *hash)
{
    char  text[XET_HASH_STR_LEN + 1];

    xet_json_put_cstring(j, key, xet_cli_hash_string(hash, text));
}


int
xet_cli_json_end(xet_cli_json_t *o)
{
    size_t    len;
    uint8_t  *text;

    xet_json_object_end(&o->json);

    text = xet_cli_buf_bytes(&o->buf, &len);

    xet_cli_buf_free(&o->buf);

    if (text == NULL) {
        return xet_cli_no_memory();
    }

    xet_cli_progress_clear();
    xet_cli_text_json(stdout, (char *) text, len);
    putchar('\n');

    free(text);

    return xet_cli_flush();
}


int
xet_cli_print_members(int json, int flush, const xet_cli_out_t *m)
{
    xet_json_t      *j;
    xet_cli_json_t   out;

    if (json) {
        j = xet_cli_json_begin(&out);

        for ( /* void */ ; m->kind != XET_CLI_OUT_END; m++) {
            if (m->key) {
                xet_cli_print_member(j, m);
            }
        }

        return xet_cli_json_end(&out);
    }

    for ( /* void */ ; m->kind != XET_CLI_OUT_END; m++) {
        if (m->tail) {
            xet_cli_progress_clear();
            xet_cli_print_text(m);
        }
    }

    return (flush || ferror(stdout)) ? xet_cli_flush() : XET_CLI_OK;
}


static void
xet_cli_print_member(xet_json_t *j, const xet_cli_out_t *m)
{
    switch (m->kind) {

    case XET_CLI_OUT_BYTES:
        xet_json_put_string(j, m->key, m->value, (size_t) m->number);
        break;

    case XET_CLI_OUT_NUMBER:
        xet_json_put_u64(j, m->key, m->number);
        break;

    case XET_CLI_OUT_BOOL:
        xet_json_put_bool(j, m->key, m->number != 0);
        break;

    case XET_CLI_OUT_HASH:
        xet_cli_json_put_hash(j, m->key, m->value);
        break;

    default:
        xet_json_put_cstring(j, m->key, m->value);
        break;
    }
}


static void
xet_cli_print_text(const xet_cli_out_t *m)
{
    int   width;
    char  text[XET_HASH_STR_LEN + 1];

    if (m->label && m->kind == XET_CLI_OUT_TEXT && m->value == NULL) {
        return;
    }

    width = m->label ? 0 : m->width;

    if (m->label) {
        printf("  %*s ", m->width, m->label);
    }

    if (m->kind == XET_CLI_OUT_NUMBER) {
        printf("%*" PRIu64, width, m->number);

    } else if (m->kind == XET_CLI_OUT_HASH) {
        fputs(xet_cli_hash_string(m->value, text), stdout);

    } else if (m->kind == XET_CLI_OUT_BYTES && width) {
        printf("%*.*s", width, (int) m->number, (const char *) m->value);

    } else if (m->kind == XET_CLI_OUT_BYTES) {
        xet_cli_text_write(stdout, m->value, (size_t) m->number);

    } else if (width) {
        printf("%*s", width, (const char *) m->value);

    } else {
        xet_cli_text_print(stdout, m->value);
    }

    if (m->kind == XET_CLI_OUT_NUMBER && m->number == 1) {
        xet_cli_print_one(m->tail);

    } else {
        fputs(m->tail, stdout);
    }
}


/*
 * Prints the tail after the number 1 with the noun in the singular: "file" for
 * "files", "copy" for "copies".  The noun is the first word with a final "s",
 * if that is the first or the second word of the tail.
 */

static void
xet_cli_print_one(const char *tail)
{
    int     ies;
    size_t  n, word;

    n = 0;

    for (word = 0; word < 2 && tail[n] == ' '; word++) {
        n += 1 + strcspn(tail + n + 1, " ,:;\n");

        if (tail[n - 1] == 's') {
            ies = (n > 3 && strncmp(tail + n - 3, "ies", 3) == 0);

            printf("%.*s%s%s", (int) n - (ies ? 3 : 1), tail, ies ? "y" : "",
                   tail + n);
            return;
        }
    }

    fputs(tail, stdout);
}


void *
xet_cli_buf_alloc(void *data, size_t size)
{
    return malloc(size);
}


uint8_t *
xet_cli_buf_bytes(const xet_buf_t *b, size_t *len)
{
    uint8_t         *data, *p;
    xet_buf_node_t  *node;

    if (xet_buf_status(b) != XET_OK) {
        return NULL;
    }

    data = malloc((size_t) b->size + 1);

    if (data == NULL) {
        return NULL;
    }

    p = data;

    for (node = b->first; node; node = node->next) {
        memcpy(p, node->start, (size_t) (node->pos - node->start));
        p += node->pos - node->start;
    }

    *len = (size_t) (p - data);

    return data;
}


void
xet_cli_buf_free(xet_buf_t *b)
{
    xet_buf_node_t  *node;

    while ((node = b->first) != NULL) {
        b->first = node->next;
        free(node);
    }

    b->last = NULL;
}


/*
 * Estimates the memory before parsing, because jansson cannot limit its
 * memory: an empty object has 2 bytes of text, but takes 240 bytes of memory.
 */

json_t *
xet_cli_json_load(const char *data, size_t len, size_t flags, size_t room,
    int *large)
{
    int     quoted;
    size_t  i, weight;

    quoted = 0;
    weight = 0;

    for (i = 0; i < len && weight <= room; i++) {
        weight++;

        if (data[i] == '"') {
            quoted = !quoted;

        } else if (quoted) {
            i += (data[i] == '\\');

        } else if (data[i] == '{') {
            weight += 256;

        } else if (data[i] == '[') {
            weight += 128;

        } else if (data[i] == ':' || data[i] == ',') {
            weight += 64;
        }
    }

    *large = (weight > room);

    return *large ? NULL : json_loadb(data, len, flags, NULL);
}


int
xet_cli_json_get_u64(const json_t *object, const char *key, uint64_t *value)
{
    const json_t  *member;

    member = json_object_get(object, key);

    if (!json_is_integer(member) || json_integer_value(member) < 0) {
        return 0;
    }

    *value = (uint64_t) json_integer_value(member);

    return 1;
}


int
xet_cli_json_get_hash(const json_t *object, const char *key, xet_hash_t *hash)
{
    const json_t  *member;

    member = json_object_get(object, key);

    return json_is_string(member)
           && xet_hash_parse(hash,
                             (const uint8_t *) json_string_value(member),
                             json_string_length(member))
              == XET_OK;
}
