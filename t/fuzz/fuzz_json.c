
/*
 * The JSON writer: any allowed sequence of calls writes valid JSON, which
 * jansson can parse; the writer writes jansson's values as the same text.
 *
 * Input: a sequence of calls.  Keys have a number, so that they are unique.
 */


#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fuzz_heap.h"
#include "xet_base.h"


#define HEAP_SIZE   (1024 * 1024)

#define check(cond)  if (!(cond)) { __builtin_trap(); }


typedef struct {
    const uint8_t  *p;
    const uint8_t  *end;
    unsigned        depth;
    unsigned        keys;
} fuzz_program_t;


static void fuzz_container(fuzz_program_t *program, xet_json_t *j,
    unsigned object);


static unsigned
fuzz_byte(fuzz_program_t *program)
{
    return (program->p < program->end) ? *program->p++ : 0;
}


static uint64_t
fuzz_number(fuzz_program_t *program)
{
    uint64_t  v;

    if (program->end - program->p < 8) {
        return fuzz_byte(program);
    }

    v = xet_get_u64(program->p);
    program->p += 8;

    return v;
}


/* Takes up to 31 bytes from the program; *p never passes its end. */

static size_t
fuzz_string(fuzz_program_t *program, const uint8_t **p)
{
    size_t  n;

    n = fuzz_byte(program) & 31;
    *p = program->p;

    if (n > (size_t) (program->end - program->p)) {
        n = (size_t) (program->end - program->p);
    }

    program->p += n;

    return n;
}


static void
fuzz_key(fuzz_program_t *program, xet_json_t *j)
{
    size_t          n;
    uint8_t         key[64], *end;
    const uint8_t  *p;

    end = xet_put_decimal(key, program->keys++);

    if (program->keys & 1) {
        *end = '\0';
        xet_json_key(j, (char *) key);
        return;
    }

    n = fuzz_string(program, &p);

    /* the jansson interface does not support keys with a zero byte */

    if (memchr(p, '\0', n)) {
        n = 0;
    }

    memcpy(end, p, n);
    xet_json_key_n(j, key, (size_t) (end - key) + n);
}


static void
fuzz_value(fuzz_program_t *program, xet_json_t *j)
{
    size_t          n;
    unsigned        op;
    const uint8_t  *p;

    op = fuzz_byte(program);

    switch (op % 9) {

    case 0:
        n = fuzz_string(program, &p);
        xet_json_string(j, p, n);
        break;

    case 1:
        /* only half the range, because jansson has no larger integers */
        xet_json_u64(j, fuzz_number(program) >> 1);
        break;

    case 2:
        xet_json_i64(j, (int64_t) fuzz_number(program));
        break;

    case 3:
        xet_json_bool(j, (int) (op / 9) - 10);
        break;

    case 4:
        xet_json_null(j);
        break;

    case 5:
        xet_json_cstring(j, "plain \"\\\x1f\xc3\xa9");
        break;

    case 6:
        xet_json_string_begin(j);

        for (n = op / 9; n; n--) {
            xet_buf_write(j->buf, "text ", 5);
        }

        xet_json_string_end(j);
        break;

    case 7:
        fuzz_container(program, j, 0);
        break;

    default:
        fuzz_container(program, j, 1);
    }
}


static void
fuzz_container(fuzz_program_t *program, xet_json_t *j, unsigned object)
{
    unsigned  n;

    if (program->depth == XET_JSON_DEPTH) {
        xet_json_null(j);
        return;
    }

    program->depth++;

    if (object) {
        xet_json_object_begin(j);

    } else {
        xet_json_array_begin(j);
    }

    for (n = fuzz_byte(program) % 8; n && program->p < program->end; n--) {

        if (object) {
            fuzz_key(program, j);
        }

        fuzz_value(program, j);
    }

    if (object) {
        xet_json_object_end(j);

    } else {
        xet_json_array_end(j);
    }

    program->depth--;
}


/* Writes the values that jansson has parsed. */

static void
fuzz_write(xet_json_t *j, json_t *value)
{
    size_t       i;
    json_t      *element;
    const char  *key;

    switch (json_typeof(value)) {

    case JSON_OBJECT:
        xet_json_object_begin(j);

        json_object_foreach(value, key, element) {
            xet_json_key_n(j, (const uint8_t *) key, strlen(key));
            fuzz_write(j, element);
        }

        xet_json_object_end(j);
        break;

    case JSON_ARRAY:
        xet_json_array_begin(j);

        json_array_foreach(value, i, element) {
            fuzz_write(j, element);
        }

        xet_json_array_end(j);
        break;

    case JSON_STRING:
        xet_json_string(j, (const uint8_t *) json_string_value(value),
                        json_string_length(value));
        break;

    case JSON_INTEGER:
        xet_json_i64(j, json_integer_value(value));
        break;

    case JSON_NULL:
        xet_json_null(j);
        break;

    default:
        check(json_is_boolean(value));
        xet_json_bool(j, json_is_true(value));
    }
}


static char *
fuzz_text(const xet_buf_t *b, size_t *len)
{
    char            *text;
    size_t           n;
    xet_buf_node_t  *node;

    *len = (size_t) b->size;

    text = malloc(*len + 1);
    check(text != NULL);

    for (node = b->first, n = 0; node; node = node->next) {
        memcpy(text + n, node->start, (size_t) (node->pos - node->start));
        n += (size_t) (node->pos - node->start);
    }

    check(n == *len);

    return text;
}


static void
fuzz_check(const char *text, size_t len, fuzz_heap_t *heap)
{
    char          *again;
    size_t         n;
    json_t        *root;
    xet_buf_t      b;
    xet_json_t     j;
    json_error_t   error;

    root = json_loadb(text, len, JSON_DECODE_ANY|JSON_ALLOW_NUL
                                 |JSON_REJECT_DUPLICATES, &error);
    check(root != NULL);

    heap->used = 0;
    heap->limit = HEAP_SIZE;

    xet_buf_init(&b, fuzz_alloc, heap, 0);
    xet_json_init(&j, &b);

    fuzz_write(&j, root);
    json_decref(root);

    check(xet_buf_status(&b) == XET_OK);

    again = fuzz_text(&b, &n);
    check(n == len && memcmp(again, text, n) == 0);

    free(again);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char            *text;
    size_t           len;
    xet_buf_t        b;
    xet_json_t       j;
    fuzz_heap_t      heap;
    fuzz_program_t   program;

    static uint8_t   memory[HEAP_SIZE];

    if (size < 2 || size > 4096) {
        return 0;
    }

    heap.heap = memory;
    heap.used = 0;
    heap.limit = (data[0] & 0x80) ? HEAP_SIZE : (size_t) data[0] * 64;

    xet_buf_init(&b, fuzz_alloc, &heap, 1 + (data[1] & 63));
    xet_json_init(&j, &b);

    memset(&program, 0, sizeof(program));
    program.p = data + 2;
    program.end = data + size;

    fuzz_value(&program, &j);

    if (xet_buf_status(&b) != XET_OK) {
        check(xet_buf_status(&b) == XET_NOMEM && heap.limit != HEAP_SIZE);
        return 0;
    }

    text = fuzz_text(&b, &len);
    fuzz_check(text, len, &heap);
    free(text);

    return 0;
}
