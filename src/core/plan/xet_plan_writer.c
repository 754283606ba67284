
/*
 * Writes the body of a reconstruction response, one element per step, in one
 * of three formats:
 *
 *     v1 and v2   offset_into_first_range, terms
 *     batch       files: the terms of each file
 *
 *     v1, batch   fetch_info: an entry with its own URL for every range
 *     v2          xorbs: an entry is a URL and at most w->group ranges
 *
 * States are named after what the next step writes.  At the end of a list, the
 * step closes the list instead, and returns to the state of the enclosing
 * list:
 *
 *     begin -> term -> xorb -> entry -> (v2) range -> done
 *     begin -> file -> term -> file ... -> xorb ...
 *
 * The caller owns the plan, which is only read, and the buffers; the writer
 * has no memory of its own.  One thread at a time.
 */


#include "xet_plan.h"


/*
 * Chunk ranges have exclusive ends.  Byte ranges have inclusive ends, and are
 * relative to the chunk region of the xorb.  Clients identify downloads by the
 * text of the URL, so no two entries may have the same URL; see
 * xet_plan_url_pt and xet_plan_limit().
 *
 * The JSON writer tracks the nesting down to the key of a xorb, and gets the
 * buffer of each piece.  The lists of a xorb are written as text, for speed.
 *
 * If the file of a plan can't be read, a step ends with the error of the file,
 * and what the step has written is useless.
 */

/* The maximum lengths of elements. */

#define XET_PLAN_SPAN                                                         \
    (sizeof("{\"start\":,\"end\":}") - 1 + 2 * XET_DECIMAL_MAX)
#define XET_PLAN_TERM                                                         \
    (sizeof("{\"hash\":\"\",\"unpacked_length\":,\"range\":}") - 1           \
     + XET_HASH_STR_LEN + XET_DECIMAL_MAX + XET_PLAN_SPAN)
#define XET_PLAN_XORB                                                         \
    (sizeof("\"\":[") - 1 + XET_HASH_STR_LEN)
#define XET_PLAN_V1_BEGIN                                                     \
    (sizeof("{\"range\":,\"url\":\"") - 1 + XET_PLAN_SPAN)
#define XET_PLAN_V1_END                                                       \
    (sizeof("\",\"url_range\":}]") - 1 + XET_PLAN_SPAN)
#define XET_PLAN_RANGE                                                        \
    (sizeof("{\"chunks\":,\"bytes\":}]}]") - 1 + 2 * XET_PLAN_SPAN)


#define xet_plan_writer_literal(w, s)                                         \
    xet_buf_write((w)->json.buf, s, sizeof(s) - 1)


static xet_status_t xet_plan_writer_step(xet_plan_writer_t *w);
static void xet_plan_writer_begin(xet_plan_writer_t *w);
static void xet_plan_writer_file(xet_plan_writer_t *w);
static void xet_plan_writer_term(xet_plan_writer_t *w);
static void xet_plan_writer_fetch(xet_plan_writer_t *w);
static void xet_plan_writer_xorb(xet_plan_writer_t *w);
static xet_status_t xet_plan_writer_v1_entry(xet_plan_writer_t *w);
static xet_status_t xet_plan_writer_v2_entry(xet_plan_writer_t *w);
static size_t xet_plan_writer_text(const xet_plan_range_t *range);
static void xet_plan_writer_range(xet_plan_writer_t *w);
static void xet_plan_writer_entry_end(xet_plan_writer_t *w, uint8_t *p);
static uint8_t *xet_plan_writer_span(uint8_t *p, uint32_t start,
    uint32_t end);


void
xet_plan_writer_init(xet_plan_writer_t *w, const xet_plan_t *plan,
    xet_plan_kind_t kind, xet_plan_url_pt url, void *ctx, size_t group)
{
    w->plan = plan;
    w->url = url;
    w->ctx = ctx;

    xet_json_init(&w->json, NULL);

    w->next = 0;
    w->end = 0;
    w->file = 0;
    w->group = (group < XET_PLAN_GROUP_MAX) ? (uint32_t) group
                                            : XET_PLAN_GROUP_MAX;
    w->kind = kind;
    w->state = XET_PLAN_WRITE_BEGIN;

    if ((kind == XET_PLAN_BATCH) != plan->several
        || (kind == XET_PLAN_V2 && group == 0))
    {
        w->state = XET_PLAN_WRITE_FAILED;
    }
}


xet_status_t
xet_plan_writer_next(xet_plan_writer_t *w, xet_buf_t *b, size_t limit)
{
    uint64_t      before;
    xet_status_t  status;

    if (w->state == XET_PLAN_WRITE_FAILED) {
        return XET_INTERNAL;
    }

    xet_json_resume(&w->json, b);

    before = b->size;

    while (w->state != XET_PLAN_WRITE_DONE) {

        status = xet_plan_writer_step(w);

        if (status == XET_OK) {
            status = w->plan->spool ? w->plan->spool->status
                                    : XET_OK;
        }

        if (status == XET_OK) {
            status = xet_buf_status(b);
        }

        if (status != XET_OK) {
            w->state = XET_PLAN_WRITE_FAILED;
            return status;
        }

        if (b->size - before >= limit) {
            break;
        }
    }

    return (w->state == XET_PLAN_WRITE_DONE) ? XET_OK : XET_AGAIN;
}


static xet_status_t
xet_plan_writer_step(xet_plan_writer_t *w)
{
    switch (w->state) {

    case XET_PLAN_WRITE_BEGIN:
        xet_plan_writer_begin(w);
        return XET_OK;

    case XET_PLAN_WRITE_FILE:
        xet_plan_writer_file(w);
        return XET_OK;

    case XET_PLAN_WRITE_TERM:
        xet_plan_writer_term(w);
        return XET_OK;

    case XET_PLAN_WRITE_XORB:
        xet_plan_writer_xorb(w);
        return XET_OK;

    case XET_PLAN_WRITE_ENTRY:
        return (w->kind == XET_PLAN_V2) ? xet_plan_writer_v2_entry(w)
                                        : xet_plan_writer_v1_entry(w);

    case XET_PLAN_WRITE_RANGE:
        xet_plan_writer_range(w);
        return XET_OK;

    default:
        return XET_INTERNAL;
    }
}


static void
xet_plan_writer_begin(xet_plan_writer_t *w)
{
    xet_json_t  *j;

    j = &w->json;

    xet_json_object_begin(j);

    if (w->kind == XET_PLAN_BATCH) {
        xet_json_key(j, "files");
        xet_json_object_begin(j);

        w->state = XET_PLAN_WRITE_FILE;
        return;
    }

    xet_json_put_u64(j, "offset_into_first_range", w->plan->skip);

    xet_json_key(j, "terms");
    xet_json_array_begin(j);

    w->end = w->plan->n;
    w->state = XET_PLAN_WRITE_TERM;
}


static void
xet_plan_writer_file(xet_plan_writer_t *w)
{
    uint8_t                 text[XET_HASH_STR_LEN + 1];
    const xet_plan_file_t  *file;

    if (w->file == w->plan->nfiles) {
        xet_json_object_end(&w->json);
        xet_plan_writer_fetch(w);
        return;
    }

    file = &w->plan->files[w->file++];

    *xet_hash_print(text, &file->hash) = '\0';

    xet_json_key(&w->json, (char *) text);
    xet_json_array_begin(&w->json);

    w->end = file->end;
    w->state = XET_PLAN_WRITE_TERM;
}


static void
xet_plan_writer_term(xet_plan_writer_t *w)
{
    uint8_t           *p;
    xet_json_t        *j;
    const xet_term_t  *t;

    j = &w->json;

    if (w->next == w->end) {
        xet_json_array_end(j);

        if (w->kind == XET_PLAN_BATCH) {
            w->state = XET_PLAN_WRITE_FILE;

        } else {
            xet_plan_writer_fetch(w);
        }

        return;
    }

    t = xet_plan_term_at(w->plan, w->next++);

    p = xet_json_reserve(j, XET_PLAN_TERM);
    if (p == NULL) {
        return;
    }

    p = xet_put_literal(p, "{\"hash\":\"");
    p = xet_hash_print(p, &t->xorb);
    p = xet_put_literal(p, "\",\"unpacked_length\":");
    p = xet_put_decimal(p, t->raw_length);
    p = xet_put_literal(p, ",\"range\":");
    p = xet_plan_writer_span(p, t->chunk_start, t->chunk_end);
    p = xet_put_literal(p, "}");

    xet_json_advance(j, p);
}


/* Begins the list of ranges (fetch_info or xorbs), after the last term. */

static void
xet_plan_writer_fetch(xet_plan_writer_t *w)
{
    xet_json_key(&w->json, (w->kind == XET_PLAN_V2) ? "xorbs" : "fetch_info");
    xet_json_object_begin(&w->json);

    w->next = 0;
    w->state = XET_PLAN_WRITE_XORB;
}


static void
xet_plan_writer_xorb(xet_plan_writer_t *w)
{
    uint8_t           *p;
    const xet_hash_t  *xorb;
    xet_plan_range_t   range;

    if (w->next == w->plan->nranges) {
        xet_json_object_end(&w->json);
        xet_json_object_end(&w->json);

        w->state = XET_PLAN_WRITE_DONE;
        return;
    }

    xorb = xet_plan_range(w->plan, w->next, &range);

    p = xet_json_reserve(&w->json, XET_PLAN_XORB);
    if (p == NULL) {
        return;
    }

    p = xet_put_literal(p, "\"");
    p = xet_hash_print(p, xorb);
    p = xet_put_literal(p, "\":[");

    xet_json_advance(&w->json, p);

    w->state = XET_PLAN_WRITE_ENTRY;
}


static xet_status_t
xet_plan_writer_v1_entry(xet_plan_writer_t *w)
{
    uint8_t           *p;
    xet_status_t       status;
    const xet_hash_t  *xorb;
    xet_plan_range_t   range;

    xorb = xet_plan_range(w->plan, w->next++, &range);

    p = xet_buf_reserve(w->json.buf, XET_PLAN_V1_BEGIN);

    if (p != NULL) {
        p = xet_put_literal(p, "{\"range\":");
        p = xet_plan_writer_span(p, range.chunk_start, range.chunk_end);
        p = xet_put_literal(p, ",\"url\":\"");

        xet_json_advance(&w->json, p);
    }

    status = w->url(w->ctx, w->json.buf, xorb, &range, 1);

    if (status != XET_OK) {
        return status;
    }

    p = xet_buf_reserve(w->json.buf, XET_PLAN_V1_END);

    if (p != NULL) {
        p = xet_put_literal(p, "\",\"url_range\":");
        p = xet_plan_writer_span(p, range.stored_start, range.stored_end - 1);
        p = xet_put_literal(p, "}");

        xet_plan_writer_entry_end(w, p);
    }

    return XET_OK;
}


/* Writes an entry up to its ranges, which later steps write one by one. */

static xet_status_t
xet_plan_writer_v2_entry(xet_plan_writer_t *w)
{
    size_t             text;
    uint32_t           n;
    xet_status_t       status;
    const xet_hash_t  *xorb;
    xet_plan_range_t   ranges[XET_PLAN_GROUP_MAX];

    xorb = xet_plan_range(w->plan, w->next, &ranges[0]);
    text = xet_plan_writer_text(&ranges[0]);
    n = 1;

    while (n < w->group && !xet_plan_xorb_begins(w->plan, w->next + n)) {
        (void) xet_plan_range(w->plan, w->next + n, &ranges[n]);
        text += 1 + xet_plan_writer_text(&ranges[n]);

        if (text > XET_PLAN_GROUP_TEXT) {
            break;
        }

        n++;
    }

    xet_plan_writer_literal(w, "{\"url\":\"");

    status = w->url(w->ctx, w->json.buf, xorb, ranges, n);

    xet_plan_writer_literal(w, "\",\"ranges\":[");

    w->end = w->next + n;
    w->state = XET_PLAN_WRITE_RANGE;

    return status;
}


/* Returns the length of a range as the text "first-last". */

static size_t
xet_plan_writer_text(const xet_plan_range_t *range)
{
    size_t    n;
    uint32_t  value;

    n = 3;

    for (value = range->stored_start; value >= 10; value /= 10) {
        n++;
    }

    for (value = range->stored_end - 1; value >= 10; value /= 10) {
        n++;
    }

    return n;
}


static void
xet_plan_writer_range(xet_plan_writer_t *w)
{
    uint8_t           *p;
    xet_plan_range_t   range;

    (void) xet_plan_range(w->plan, w->next++, &range);

    p = xet_buf_reserve(w->json.buf, XET_PLAN_RANGE);
    if (p == NULL) {
        return;
    }

    p = xet_put_literal(p, "{\"chunks\":");
    p = xet_plan_writer_span(p, range.chunk_start, range.chunk_end);
    p = xet_put_literal(p, ",\"bytes\":");
    p = xet_plan_writer_span(p, range.stored_start, range.stored_end - 1);

    if (w->next == w->end) {
        p = xet_put_literal(p, "}]}");
        xet_plan_writer_entry_end(w, p);
        return;
    }

    p = xet_put_literal(p, "},");
    xet_json_advance(&w->json, p);
}


/* Ends the list of a xorb at p, or separates its entries. */

static void
xet_plan_writer_entry_end(xet_plan_writer_t *w, uint8_t *p)
{
    if (xet_plan_xorb_begins(w->plan, w->next)) {
        *p++ = ']';
        w->state = XET_PLAN_WRITE_XORB;

    } else {
        *p++ = ',';
        w->state = XET_PLAN_WRITE_ENTRY;
    }

    xet_json_advance(&w->json, p);
}


static uint8_t *
xet_plan_writer_span(uint8_t *p, uint32_t start, uint32_t end)
{
    p = xet_put_literal(p, "{\"start\":");
    p = xet_put_decimal(p, start);
    p = xet_put_literal(p, ",\"end\":");
    p = xet_put_decimal(p, end);

    return xet_put_literal(p, "}");
}
