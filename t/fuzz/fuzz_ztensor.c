/* libs: -lzstd */

/*
 * The zTensor reader: the verdict does not depend on the split of the input and
 * is never an internal error.  Every listed object is inside the file, is found
 * by name and by index, can be printed as JSON, and can be verified.
 *
 * Input: two bytes of options, then a plain file, or a manifest that this
 * target wraps into a file (a fuzzer can't guess hashes).
 */


#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <xxhash.h>

#include "fuzz_heap.h"
#include "xet_base.h"
#include "xet_zt.h"


#define HEAP_SIZE  (4 * 1024 * 1024)
#define FOUND_MAX  4                   /* objects that are looked up */

#define check(cond)  if (!(cond)) { __builtin_trap(); }


typedef struct {
    uint8_t             *data;
    size_t               len;
    size_t               step;
    xet_zt_limits_t      limits;
} fuzz_file_t;


typedef struct {
    const fuzz_file_t   *file;
    const xet_zt_t      *zt;
    xet_zt_verifier_t   *verifier;
    xet_zt_region_t      region;
    uint64_t             next;         /* index of the next object */
    uint64_t             invalid;
    uint64_t             sum;

    uint8_t              names[FOUND_MAX][1024];
    size_t               lens[FOUND_MAX];
    unsigned             found;

    uint64_t             want;         /* index of the object to look up */
} fuzz_walk_t;


static uint8_t      memory[HEAP_SIZE];
static fuzz_heap_t  heap = { memory, 0, HEAP_SIZE };


/*
 * Makes a file.  kind is 0: data is the file; 1 or 2: data is a manifest of
 * this container version, which is wrapped into a file.
 */

static void
fuzz_make(fuzz_file_t *f, unsigned kind, const uint8_t *data, size_t size)
{
    size_t    start;
    uint8_t  *p;

    start = (kind == 0) ? 0 : (kind == 1) ? 512 : 8192;

    f->len = start + size + (kind == 0 ? 0 : kind == 1 ? 16 : 40);
    f->data = calloc(1, f->len ? f->len : 1);
    check(f->data != NULL);

    if (size) {
        memcpy(f->data + start, data, size);
    }

    p = f->data + start + size;

    if (kind == 1) {
        memcpy(f->data, "ZTEN1000", 8);
        xet_put_u64(p, size);
        memcpy(p + 8, "ZTEN1000", 8);

    } else if (kind == 2) {
        memcpy(f->data, "\x89ZT2\r\n\x1a\n", 8);
        xet_put_u64(p, start);
        xet_put_u64(p + 8, size);
        xet_put_u64(p + 16, XXH3_64bits(data, size));
        xet_put_u32(p + 24, 2);
        memcpy(p + 32, "\x89ZT2\r\n\x1a\n", 8);
    }

    /* some data for the digests and the decoder */

    if (kind) {
        memcpy(f->data + start - 64, "\x28\xb5\x2f\xfd\x20\x08\x41\0\0"
                                     "12345678", 17);
    }
}


static xet_zt_t *
fuzz_open(const fuzz_file_t *f, size_t step, xet_status_t *status)
{
    size_t        n, calls;
    uint8_t      *piece;
    xet_zt_t     *zt;
    xet_range_t   range;

    zt = xet_zt_create(f->len, &f->limits);
    check(zt != NULL);

    calls = 0;

    while ((*status = xet_zt_need(zt, &range)) == XET_AGAIN) {
        check(range.start < range.end && range.end <= f->len);
        check(calls++ <= f->len + 64);

        n = (size_t) (range.end - range.start);
        n = (n < step) ? n : step;

        piece = malloc(n);
        check(piece != NULL);
        memcpy(piece, f->data + range.start, n);

        (void) xet_zt_feed(zt, piece, n);

        free(piece);
    }

    return zt;
}


static xet_status_t
fuzz_walk(const fuzz_file_t *f, const xet_zt_t *zt,
    const xet_zt_select_t *select, xet_zt_object_pt handler, void *ctx)
{
    size_t          n, calls;
    uint8_t        *piece;
    xet_range_t     range;
    xet_status_t    rc;
    xet_zt_walk_t  *w;

    w = xet_zt_walk_create(zt, select, handler, ctx);
    check(w != NULL);

    calls = 0;

    while ((rc = xet_zt_walk_need(w, &range)) == XET_AGAIN) {
        check(range.start < range.end && range.end <= f->len);
        check(calls++ <= f->len + 64);

        n = (size_t) (range.end - range.start);
        n = (n < f->step) ? n : f->step;

        piece = malloc(n);
        check(piece != NULL);
        memcpy(piece, f->data + range.start, n);

        (void) xet_zt_walk_feed(w, piece, n);

        free(piece);
    }

    xet_zt_walk_destroy(w);

    return rc;
}


/* Verifies a component again, in small pieces: the report must be the same. */

static void
fuzz_turns(fuzz_walk_t *w, const xet_zt_object_t *o,
    const xet_zt_component_t *c, const xet_zt_report_t *want)
{
    size_t            len, n;
    uint64_t          room;
    xet_range_t       range;
    xet_status_t      rc;
    const uint8_t    *p;
    xet_zt_report_t   report;

    check(xet_zt_verifier_start(w->verifier, &w->region, o, c, &range)
          == XET_AGAIN);

    p = w->file->data + range.start;
    len = (size_t) (range.end - range.start);
    n = 0;
    rc = XET_OK;

    do {
        if (rc == XET_OK) {
            n = (len < 100) ? len : 100;
            len -= n;
        }

        room = 1;
        rc = xet_zt_verifier_take(w->verifier, &p, &n, &room);

        check(rc == XET_AGAIN || (rc == XET_OK && n == 0));
    } while (rc == XET_AGAIN || len);

    check(p == w->file->data + range.end);
    check(xet_zt_verifier_finish(w->verifier, &report) == XET_OK);
    check(report.status == want->status && report.digest == want->digest);
}


static void
fuzz_component(fuzz_walk_t *w, const xet_zt_object_t *o,
    const xet_zt_component_t *c)
{
    xet_range_t      range, rows;
    xet_status_t     rc;
    xet_zt_report_t  report;

    if (xet_zt_component_range(c, &w->region, &range) == XET_OK) {
        check(range.start <= range.end
              && range.start >= w->region.data_start
              && range.end <= w->region.data_end
              && range.end - range.start == c->length);
    }

    if (o->rank && xet_zt_object_rows(o, c, 0, o->shape[0], &rows) == XET_OK) {
        check(rows.start == 0 && rows.end == c->length);
    }

    rc = xet_zt_verifier_start(w->verifier, &w->region, o, c, &range);

    if (rc == XET_AGAIN) {
        check(xet_zt_verifier_feed(w->verifier, w->file->data + range.start,
                                   (size_t) (range.end - range.start))
              == XET_OK);

    } else {
        check(rc == XET_DONE);
    }

    check(xet_zt_verifier_finish(w->verifier, &report) == XET_OK);
    check(report.status == XET_OK || xet_status_http(report.status) < 500);

    /* components of sparse objects are checked against earlier components */

    if (rc == XET_AGAIN && !xet_zt_object_sparse(o)) {
        fuzz_turns(w, o, c, &report);
    }
}


static xet_status_t
fuzz_object(void *ctx, xet_zt_object_t *o)
{
    size_t        i;
    fuzz_walk_t  *w;

    w = ctx;

    check(o->index == w->next++);
    check((o->verdict == XET_ZT_OBJECT_OK) == (o->errors_n == 0));

    w->invalid += (o->verdict == XET_ZT_OBJECT_INVALID);

    for (i = 0; i < o->name.len; i++) {
        w->sum += o->name.data[i];
    }

    for (i = 0; i < o->n; i++) {
        fuzz_component(w, o, &o->components[i]);
    }

    if (w->found < FOUND_MAX) {
        check(o->name.len <= 1024);

        if (o->name.len) {
            memcpy(w->names[w->found], o->name.data, o->name.len);
        }

        w->lens[w->found++] = o->name.len;
    }

    return XET_OK;
}


static xet_status_t
fuzz_found(void *ctx, xet_zt_object_t *o)
{
    fuzz_walk_t  *w;

    w = ctx;

    check(o->index == w->want);
    w->next++;

    return XET_OK;
}


static void
fuzz_look_up(fuzz_walk_t *w)
{
    unsigned         i;
    xet_zt_select_t  select;

    for (i = 0; i < w->found; i++) {
        memset(&select, 0, sizeof(select));

        select.name.data = w->names[i];
        select.name.len = w->lens[i];

        w->want = i;
        w->next = 0;

        check(fuzz_walk(w->file, w->zt, &select, fuzz_found, w) == XET_OK);
        check(w->next == 1);
    }
}


static void
fuzz_page(const fuzz_file_t *f, const xet_zt_t *zt)
{
    char             *text;
    size_t            n;
    json_t           *root;
    xet_buf_t         b;
    xet_json_t        j;
    json_error_t      error;
    xet_zt_page_t     page;
    xet_buf_node_t   *node;
    xet_zt_select_t   select;

    memset(&select, 0, sizeof(select));
    select.attributes = 1;

    heap.used = 0;

    xet_buf_init(&b, fuzz_alloc, &heap, 0);
    xet_json_init(&j, &b);

    xet_zt_page_begin(&page, &j, zt, NULL, 0, 1 + f->step, 65536);
    (void) fuzz_walk(f, zt, &select, xet_zt_page_object, &page);
    xet_zt_page_end(&page);

    check(xet_buf_status(&b) == XET_OK && j.depth == 0);

    text = malloc((size_t) b.size + 1);
    check(text != NULL);

    for (node = b.first, n = 0; node; node = node->next) {
        memcpy(text + n, node->start, (size_t) (node->pos - node->start));
        n += (size_t) (node->pos - node->start);
    }

    /* jansson has neither unsigned 64-bit integers nor zero bytes in keys */

    root = json_loadb(text, n, JSON_ALLOW_NUL|JSON_DECODE_INT_AS_REAL, &error);

    if (root == NULL) {
        check(json_error_code(&error) == json_error_null_byte_in_key
              || json_error_code(&error) == json_error_numeric_overflow);
    }

    json_decref(root);
    free(text);
}


static void
fuzz_readable(const fuzz_file_t *f, const xet_zt_t *zt)
{
    fuzz_walk_t              w;
    const xet_zt_info_t     *info;
    xet_zt_select_t          select;
    xet_zt_decode_limits_t   limits;

    info = xet_zt_info(zt);

    memset(&w, 0, sizeof(w));
    memset(&select, 0, sizeof(select));

    xet_zt_decode_limits_init(&limits);
    limits.output = 65536;
    limits.window_log = 20;

    w.file = f;
    w.zt = zt;
    w.verifier = xet_zt_verifier_create(&limits);
    check(w.verifier != NULL);

    xet_zt_region(zt, &w.region);

    check(fuzz_walk(f, zt, &select, fuzz_object, &w) == XET_OK);
    check(w.next == info->count && w.found <= info->count);

    /* an overlap is a fault in a strict walk, but not in the check */

    check(f->limits.strict || w.invalid == info->invalid);
    check(info->ends.container != XET_ZT_CONTAINER_2 || w.invalid == 0);

    fuzz_look_up(&w);

    /* walks from the middle of the list to the end */

    if (info->count) {
        select.first = w.next = info->count / 2;
        w.found = FOUND_MAX;
        check(fuzz_walk(f, zt, &select, fuzz_object, &w) == XET_OK);
        check(w.next == info->count);
    }

    xet_zt_verifier_destroy(w.verifier);

    fuzz_page(f, zt);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned      kind;
    xet_zt_t     *zt, *again;
    fuzz_file_t   f;
    xet_status_t  rc, rc_again;

    if (size < 2 || size > 65536) {
        return 0;
    }

    xet_zt_limits_init(&f.limits);

    f.step = 1 + data[0];
    f.limits.strict = data[1] & 1;
    kind = (data[1] >> 1) % 3;

    if (data[1] & 0x80) {
        f.limits.name = 8;
        f.limits.roles = 2;
        f.limits.objects = 5;
        f.limits.keys = 6;
        f.limits.rank = 3;
        f.limits.depth = 6;
        f.limits.attributes = 20;
        f.limits.components = 6;
    }

    fuzz_make(&f, kind, data + 2, size - 2);

    zt = fuzz_open(&f, f.len + 1, &rc);
    again = fuzz_open(&f, f.step, &rc_again);

    check(rc == rc_again);
    check(xet_zt_error_offset(zt) == xet_zt_error_offset(again));
    check(xet_status_http(rc) < 500);

    if (rc == XET_OK) {
        check(memcmp(xet_zt_info(zt), xet_zt_info(again),
                     sizeof(xet_zt_info_t))
              == 0);

        fuzz_readable(&f, zt);
    }

    xet_zt_destroy(zt);
    xet_zt_destroy(again);
    free(f.data);

    return 0;
}
