
/*
 * xet_subtree: computes subtrees and edit ranges, for t/oracle/subtree.mjs.
 * The standard input contains any number of cases.  For each case the tool
 * prints one line of JSON:
 *
 *     subtree AT_START AT_END     builds a subtree of the leaves below
 *     HASH SIZE                   a leaf
 *     / AT_START AT_END           begins a part, which is built separately and
 *                                 then joined; leaves before the first part
 *                                 are added one by one
 *     .                           ends the case
 *
 *     windows SIZE RANGE          the response to "X-Range-Dirty: RANGE"
 *     term HASH                   a term and its verification hash; "-":
 *                                 compute it
 *     HASH SIZE                   its chunks
 *     .
 *
 * AT_START and AT_END are 1 if the leaves begin or end the file, otherwise 0.
 * An error is a line {"error":"..."}.
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xet_test_pool.h"
#include "xet_plan.h"


#define LEAVES_MAX  8192
#define RANGES_MAX  1024


typedef struct {
    char                   line[65536];
    xet_test_pool_t        pool;
    xet_subtree_builder_t  whole;
    xet_subtree_builder_t  part;
    xet_edit_ranges_t      windows;

    xet_hash_t             verification;
    uint8_t                hashes[LEAVES_MAX * XET_HASH_LEN];
    uint8_t                ends[LEAVES_MAX * 4];
} tool_t;


static void tool_subtree(tool_t *t, char *args);
static void tool_windows(tool_t *t, char *args);


static void
tool_fail(const char *what)
{
    fprintf(stderr, "xet_subtree: %s\n", what);
    exit(2);
}


static void
tool_error(xet_status_t status)
{
    printf("{\"error\":\"%s\"}\n", xet_status_text(status));
}


/* Reads the next line without its newline; returns 0 at the end of the case. */

static int
tool_line(tool_t *t)
{
    if (fgets(t->line, sizeof(t->line), stdin) == NULL) {
        tool_fail("the input ends inside a case");
    }

    t->line[strcspn(t->line, "\n")] = '\0';

    return strcmp(t->line, ".") != 0;
}


static uint64_t
tool_leaf(const char *line, uint8_t *bytes)
{
    xet_hash_t  hash;

    if (strlen(line) < 66 || line[64] != ' '
        || xet_hash_parse(&hash, (const uint8_t *) line, 64) != XET_OK)
    {
        tool_fail("not a leaf");
    }

    memcpy(bytes, hash.bytes, XET_HASH_LEN);

    return strtoull(line + 65, NULL, 10);
}


static void
tool_print(tool_t *t, const xet_buf_t *b)
{
    size_t    len;
    uint8_t  *text;

    text = xet_test_flatten(&t->pool, b, &len);

    if (text == NULL || xet_buf_status(b) != XET_OK) {
        tool_fail("out of memory");
    }

    fwrite(text, 1, len, stdout);
    putchar('\n');
}


int
main(void)
{
    char    *args;
    tool_t  *t;

    t = calloc(1, sizeof(tool_t));
    if (t == NULL) {
        return 2;
    }

    while (fgets(t->line, sizeof(t->line), stdin)) {
        t->line[strcspn(t->line, "\n")] = '\0';

        args = strchr(t->line, ' ');
        if (args == NULL) {
            tool_fail("not a case");
        }

        *args++ = '\0';

        if (strcmp(t->line, "subtree") == 0) {
            tool_subtree(t, args);

        } else if (strcmp(t->line, "windows") == 0) {
            tool_windows(t, args);

        } else {
            tool_fail("unknown case");
        }

        /* the caller may wait for the result before it sends another case */

        fflush(stdout);

        xet_test_pool_free(&t->pool);
    }

    free(t);

    return 0;
}


static void
tool_start(xet_subtree_builder_t *b, const char *args)
{
    if (strlen(args) != 3) {
        tool_fail("not two flags");
    }

    xet_subtree_start(b, args[0] == '1', args[2] == '1');
}


static xet_status_t
tool_join(tool_t *t)
{
    xet_status_t   status;
    xet_subtree_t  s;

    status = xet_subtree_finish(&t->part, &s);

    return (status == XET_OK) ? xet_subtree_join(&t->whole, &s) : status;
}


static void
tool_subtree(tool_t *t, char *args)
{
    int            parts;
    uint8_t        hash[XET_HASH_LEN];
    uint64_t       size;
    xet_buf_t      b;
    xet_json_t     j;
    xet_status_t   status;
    xet_subtree_t  s;

    parts = 0;
    status = XET_OK;

    xet_subtree_init(&t->whole, &xet_suite_default, xet_test_alloc, &t->pool,
                     SIZE_MAX);
    tool_start(&t->whole, args);

    xet_subtree_init(&t->part, &xet_suite_default, xet_test_alloc, &t->pool,
                     SIZE_MAX);

    while (tool_line(t)) {

        if (status != XET_OK) {
            continue;
        }

        if (t->line[0] == '/') {

            if (parts) {
                status = tool_join(t);
            }

            parts = 1;
            tool_start(&t->part, t->line + strspn(t->line, "/ "));
            continue;
        }

        size = tool_leaf(t->line, hash);
        status = xet_subtree_add(parts ? &t->part : &t->whole, hash, size);
    }

    if (status == XET_OK && parts) {
        status = tool_join(t);
    }

    if (status == XET_OK) {
        status = xet_subtree_finish(&t->whole, &s);
    }

    if (status != XET_OK) {
        tool_error(status);
        return;
    }

    xet_buf_init(&b, xet_test_alloc, &t->pool, 0);
    xet_json_init(&j, &b);
    xet_subtree_json(&j, &s);

    tool_print(t, &b);
}


static xet_status_t
tool_dirty(tool_t *t, char *args)
{
    char              *value;
    size_t             n;
    uint64_t           size;
    xet_range_t       *ranges;
    xet_status_t       status;
    xet_range_spec_t   specs[RANGES_MAX];

    size = strtoull(args, &value, 10);
    n = RANGES_MAX;

    while (*value == ' ') {
        value++;
    }

    status = xet_range_parse((uint8_t *) value, strlen(value), specs, &n);

    if (status != XET_OK) {
        return status;
    }

    ranges = xet_test_alloc(&t->pool, n * sizeof(xet_range_t));
    if (ranges == NULL) {
        return XET_NOMEM;
    }

    status = xet_edit_ranges_ranges(specs, ranges, &n, size);

    if (status != XET_OK) {
        return status;
    }

    return xet_edit_ranges_init(&t->windows, &xet_suite_default, xet_test_alloc,
                            &t->pool, ranges, n, size, SIZE_MAX);
}


static xet_status_t
tool_term(tool_t *t, uint32_t n, uint32_t size, int verification)
{
    xet_edit_ranges_term_t  term;

    if (n == 0) {
        return XET_OK;
    }

    term.n = n;
    term.raw_length = size;
    term.raw_before = 0;
    term.raw_ends = t->ends;
    term.hashes = t->hashes;
    term.verification = verification ? &t->verification : NULL;

    return xet_edit_ranges_add(&t->windows, &term);
}


static void
tool_windows(tool_t *t, char *args)
{
    int           verification;
    uint32_t      n, size;
    xet_buf_t     b;
    xet_status_t  status;

    status = tool_dirty(t, args);

    n = 0;
    size = 0;
    verification = 0;

    while (tool_line(t)) {

        if (status != XET_OK) {
            continue;
        }

        if (strncmp(t->line, "term ", 5) == 0) {
            status = tool_term(t, n, size, verification);

            n = 0;
            size = 0;
            verification = xet_hash_parse(&t->verification,
                                          (uint8_t *) t->line + 5,
                                          strlen(t->line + 5)) == XET_OK;
            continue;
        }

        if (n == LEAVES_MAX) {
            tool_fail("too many chunks in a term");
        }

        size += (uint32_t) tool_leaf(t->line, t->hashes + XET_HASH_LEN * n);
        xet_put_u32(t->ends + 4 * n, size);
        n++;
    }

    if (status == XET_OK) {
        status = tool_term(t, n, size, verification);
    }

    if (status == XET_OK) {
        status = xet_edit_ranges_finish(&t->windows);
    }

    if (status != XET_OK) {
        tool_error(status);
        return;
    }

    xet_buf_init(&b, xet_test_alloc, &t->pool, 0);

    if (xet_edit_ranges_json(&t->windows, &b) != XET_OK) {
        tool_fail("out of memory");
    }

    tool_print(t, &b);
}
