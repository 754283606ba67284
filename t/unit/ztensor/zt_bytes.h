
/*
 * Builds zTensor files in memory, and reads them with the core library.
 */

#ifndef _XET_ZT_BYTES_H_INCLUDED_
#define _XET_ZT_BYTES_H_INCLUDED_


#include <xxhash.h>

#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_base.h"
#include "xet_ztensor.h"


typedef struct {
    uint8_t  *data;
    size_t    len;
    size_t    room;
    size_t    manifest;                /* start of the manifest */
} zt_bytes_t;


static inline void
zt_put(zt_bytes_t *b, const void *data, size_t len)
{
    if (len > b->room - b->len) {
        b->room = (b->len + len) * 2;
        b->data = realloc(b->data, b->room);
    }

    if (len) {
        memcpy(b->data + b->len, data, len);
        b->len += len;
    }
}


static inline void
zt_put_byte(zt_bytes_t *b, unsigned byte)
{
    uint8_t  p[1];

    p[0] = (uint8_t) byte;
    zt_put(b, p, 1);
}


static inline void
zt_put_fill(zt_bytes_t *b, unsigned byte, size_t n)
{
    while (n--) {
        zt_put_byte(b, byte);
    }
}


/* Writes a CBOR head in the shortest form. */

static inline void
zt_head(zt_bytes_t *b, unsigned major, uint64_t value)
{
    unsigned  i, n, info;

    if (value < 24) {
        zt_put_byte(b, major << 5 | (unsigned) value);
        return;
    }

    n = (value <= 0xff) ? 1 : (value <= 0xffff) ? 2
        : (value <= 0xffffffff) ? 4 : 8;
    info = (n == 1) ? 24 : (n == 2) ? 25 : (n == 4) ? 26 : 27;

    zt_put_byte(b, major << 5 | info);

    for (i = n; i--; /* void */ ) {
        zt_put_byte(b, (unsigned) (value >> 8 * i) & 0xff);
    }
}


#define zt_uint(b, value)   zt_head(b, 0, value)
#define zt_array(b, n)      zt_head(b, 4, n)
#define zt_map(b, n)        zt_head(b, 5, n)


static inline void
zt_text_n(zt_bytes_t *b, const void *s, size_t len)
{
    zt_head(b, 3, len);
    zt_put(b, s, len);
}


static inline void
zt_text(zt_bytes_t *b, const char *s)
{
    zt_text_n(b, s, strlen(s));
}


static inline void
zt_field(zt_bytes_t *b, const char *key, uint64_t value)
{
    zt_text(b, key);
    zt_uint(b, value);
}


static inline void
zt_field_text(zt_bytes_t *b, const char *key, const char *value)
{
    zt_text(b, key);
    zt_text(b, value);
}


/* Writes {"shape": [0, ...], "format": "...", "components": {n ... */

static inline void
zt_object(zt_bytes_t *b, unsigned rank, const char *format, unsigned n)
{
    zt_map(b, 3);
    zt_text(b, "shape");
    zt_array(b, rank);
    zt_put_fill(b, 0, rank);
    zt_field_text(b, "format", format);
    zt_text(b, "components");
    zt_map(b, n);
}


/* Writes a 64-byte header, then a blob; the manifest may follow. */

static inline void
zt_begin(zt_bytes_t *b, const void *blob, size_t len)
{
    b->len = 0;

    zt_put(b, "ZTEN1000", 8);
    zt_put_fill(b, 0, 56);
    zt_put(b, blob, len);

    b->manifest = b->len;
}


/* Writes {"version": "1.1.0", "objects": {n ... */

static inline void
zt_root(zt_bytes_t *b, uint64_t n)
{
    zt_map(b, 2);
    zt_field_text(b, "version", "1.1.0");
    zt_text(b, "objects");
    zt_map(b, n);
}


static inline void
zt_end(zt_bytes_t *b)
{
    uint8_t  size[8];

    xet_put_u64(size, b->len - b->manifest);
    zt_put(b, size, 8);
    zt_put(b, "ZTEN1000", 8);
}


static inline void
zt_begin_2(zt_bytes_t *b, const void *blob, size_t len)
{
    b->len = 0;

    zt_put(b, "\x89ZT2\r\n\x1a\n", 8);
    zt_put_fill(b, 0, 4088);

    if (len) {
        zt_put(b, blob, len);
        zt_put_fill(b, 0, (4096 - len % 4096) % 4096);
    }

    b->manifest = b->len;
}


static inline void
zt_end_2(zt_bytes_t *b)
{
    uint8_t  footer[40];

    memset(footer, 0, sizeof(footer));

    xet_put_u64(footer, b->manifest);
    xet_put_u64(footer + 8, b->len - b->manifest);
    xet_put_u64(footer + 16, XXH3_64bits(b->data + b->manifest,
                                         b->len - b->manifest));
    footer[24] = 2;
    memcpy(footer + 32, "\x89ZT2\r\n\x1a\n", 8);

    zt_put(b, footer, sizeof(footer));
}


/*
 * Writes the start of a dense object with one component, "data", which has the
 * given number of fields.  The caller then writes these fields.
 */

static inline void
zt_dense(zt_bytes_t *b, const char *name, uint64_t dim, unsigned fields)
{
    zt_text(b, name);
    zt_map(b, 3);
    zt_text(b, "shape");
    zt_array(b, 1);
    zt_uint(b, dim);
    zt_field_text(b, "format", "dense");
    zt_text(b, "components");
    zt_map(b, 1);
    zt_text(b, "data");
    zt_map(b, fields);
}


static inline void
zt_component(zt_bytes_t *b, const char *dtype, uint64_t offset,
    uint64_t length)
{
    zt_field_text(b, "dtype", dtype);
    zt_field(b, "offset", offset);
    zt_field(b, "length", length);
}


/* Builds the example file of docs/ztensor.md, section 5: one f32[2] at 64. */

static inline void
zt_base(zt_bytes_t *b)
{
    zt_begin(b, "\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
    zt_root(b, 1);
    zt_dense(b, "t", 2, 3);
    zt_component(b, "f32", 64, 8);
    zt_end(b);
}


/* Checks a file that is fed step bytes at a time. */

static inline xet_zt_t *
zt_open(const uint8_t *data, size_t len, size_t step,
    const xet_zt_limits_t *limits, xet_status_t *status)
{
    size_t           n, calls;
    uint8_t         *piece;
    xet_zt_t        *zt;
    xet_range_t      range;
    xet_zt_limits_t  defaults;

    if (limits == NULL) {
        xet_zt_limits_init(&defaults);
        limits = &defaults;
    }

    if (step > len) {
        step = len ? len : 1;
    }

    zt = xet_zt_create(len, limits);
    piece = malloc(step);
    calls = 0;

    while ((*status = xet_zt_need(zt, &range)) == XET_AGAIN) {

        if (range.start >= range.end || range.end > len
            || calls++ > len / step + 64)
        {
            printf("# need %llu-%llu of %llu\n",
                   (unsigned long long) range.start,
                   (unsigned long long) range.end, (unsigned long long) len);
            *status = XET_INTERNAL;
            break;
        }

        n = (size_t) (range.end - range.start);
        n = (n < step) ? n : step;

        /* a block of the exact size, so that ASan detects a read past it */

        memcpy(piece, data + range.start, n);
        (void) xet_zt_feed(zt, piece, n);
    }

    free(piece);

    return zt;
}


static inline xet_status_t
zt_status(const zt_bytes_t *b)
{
    xet_zt_t      *zt;
    xet_status_t   status;

    zt = zt_open(b->data, b->len, 1 << 20, NULL, &status);
    xet_zt_destroy(zt);

    return status;
}


/* Walks the objects, and adds the number of bytes read to *bytes. */

static inline xet_status_t
zt_walk_count(const xet_zt_t *zt, const uint8_t *data, size_t step,
    const xet_zt_select_t *select, xet_zt_object_pt handler, void *ctx,
    uint64_t *bytes)
{
    size_t           n;
    xet_range_t      range;
    xet_status_t     rc;
    xet_zt_walk_t   *w;
    xet_zt_select_t  all;

    if (select == NULL) {
        memset(&all, 0, sizeof(all));
        select = &all;
    }

    w = xet_zt_walk_create(zt, select, handler, ctx);

    while ((rc = xet_zt_walk_need(w, &range)) == XET_AGAIN) {
        n = (size_t) (range.end - range.start);
        n = (n < step) ? n : step;

        (void) xet_zt_walk_feed(w, data + range.start, n);
        *bytes += n;
    }

    xet_zt_walk_destroy(w);

    return rc;
}


static inline xet_status_t
zt_walk_all(const xet_zt_t *zt, const uint8_t *data, size_t step,
    const xet_zt_select_t *select, xet_zt_object_pt handler, void *ctx)
{
    uint64_t  bytes;

    bytes = 0;

    return zt_walk_count(zt, data, step, select, handler, ctx, &bytes);
}


/* Collects the error codes of all objects as text: "t:misaligned,u:ok". */

typedef struct {
    char      text[4096];
    size_t    len;
    unsigned  n;
} zt_summary_t;


static inline xet_status_t
zt_summary_object(void *ctx, xet_zt_object_t *o)
{
    unsigned       i;
    zt_summary_t  *s;

    s = ctx;
    s->n++;

    s->len += (size_t) snprintf(s->text + s->len, sizeof(s->text) - s->len,
                                "%s%.*s:", s->len ? " " : "",
                                (int) (o->name.len > 40 ? 40 : o->name.len),
                                (const char *) o->name.data);

    for (i = 0; i < o->errors_n; i++) {
        s->len += (size_t) snprintf(s->text + s->len,
                                    sizeof(s->text) - s->len, "%s%s",
                                    i ? "," : "",
                                    xet_status_code(o->errors[i]));
    }

    if (o->errors_n == 0) {
        s->len += (size_t) snprintf(s->text + s->len,
                                    sizeof(s->text) - s->len, "ok");
    }

    return (s->len < sizeof(s->text) - 512) ? XET_OK : XET_DONE;
}


/* Returns the verdict: the file's code, or the codes of its objects. */

static inline const char *
zt_outcome(const uint8_t *data, size_t len, size_t step,
    const xet_zt_limits_t *limits)
{
    xet_zt_t      *zt;
    xet_status_t   rc;

    static zt_summary_t  s;

    s.len = 0;
    s.n = 0;
    s.text[0] = '\0';

    zt = zt_open(data, len, step, limits, &rc);

    if (rc == XET_OK) {
        rc = zt_walk_all(zt, data, step, NULL, zt_summary_object, &s);
    }

    if (rc != XET_OK) {
        snprintf(s.text, sizeof(s.text), "%s", xet_status_code(rc));

    } else if (s.n == 0) {
        snprintf(s.text, sizeof(s.text), "empty");
    }

    xet_zt_destroy(zt);

    return s.text;
}


static inline void
zt_is(const zt_bytes_t *b, const char *want, const char *name)
{
    const char  *got;

    got = zt_outcome(b->data, b->len, 1 << 20, NULL);

    if (!xet_ok(strcmp(got, want) == 0, "%s", name)) {
        printf("#   got %s, want %s\n", got, want);
    }
}


#endif /* _XET_ZT_BYTES_H_INCLUDED_ */
