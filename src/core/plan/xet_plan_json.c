
/*
 * The two bodies of a reconstruction answer.
 *
 * Both begin with offset_into_first_range and the terms; then v1 has
 * fetch_info, an entry with its own URL for every range, and v2 has xorbs,
 * where an entry is a URL and up to group ranges.  In both, chunk ranges end
 * exclusively and byte ranges inclusively, relative to the xorb's chunk
 * region.  Clients plan by the text of the URL, so no two entries may carry
 * the same one: the URL callback must put the ranges into it.
 *
 * The plan is read only, the buffer is the caller's.  Status is looked at
 * once at the end, and after each URL, whose writer may fail by itself.
 */


#include "xet_plan.h"
#include "xet_json.h"


static void xet_plan_json_terms(xet_json_t *j, const xet_plan_t *p);
static void xet_plan_json_hash(xet_json_t *j, const xet_hash_t *hash,
    int key);
static void xet_plan_json_span(xet_json_t *j, const char *key,
    uint64_t start, uint64_t end);
static xet_status_t xet_plan_json_url(xet_json_t *j, xet_plan_url_pt url,
    void *ctx, const xet_hash_t *xorb, const xet_plan_range_t *ranges,
    size_t n);


xet_status_t
xet_plan_json_v1(const xet_plan_t *p, xet_buf_t *b, xet_plan_url_pt url,
    void *ctx)
{
    uint32_t                 i, k;
    xet_json_t               j;
    xet_status_t             status;
    const xet_plan_fetch_t  *f;
    const xet_plan_range_t  *r;

    xet_json_init(&j, b);

    xet_json_object_begin(&j);

    xet_plan_json_terms(&j, p);

    xet_json_key(&j, "fetch_info");
    xet_json_object_begin(&j);

    for (i = 0; i < p->nfetches; i++) {
        f = &p->fetches[i];

        xet_plan_json_hash(&j, &f->xorb, 1);
        xet_json_array_begin(&j);

        for (k = 0; k < f->n; k++) {
            r = &f->ranges[k];

            xet_json_object_begin(&j);

            xet_plan_json_span(&j, "range", r->chunk_start, r->chunk_end);

            status = xet_plan_json_url(&j, url, ctx, &f->xorb, r, 1);

            if (status != XET_OK) {
                return status;
            }

            xet_plan_json_span(&j, "url_range", r->stored_start,
                               r->stored_end - 1);

            xet_json_object_end(&j);
        }

        xet_json_array_end(&j);
    }

    xet_json_object_end(&j);
    xet_json_object_end(&j);

    return xet_buf_status(b);
}


xet_status_t
xet_plan_json_v2(const xet_plan_t *p, xet_buf_t *b, xet_plan_url_pt url,
    void *ctx, size_t group)
{
    size_t                   n;
    uint32_t                 i, k;
    xet_json_t               j;
    xet_status_t             status;
    const xet_plan_fetch_t  *f;
    const xet_plan_range_t  *r;

    if (group == 0) {
        return XET_INTERNAL;
    }

    xet_json_init(&j, b);

    xet_json_object_begin(&j);

    xet_plan_json_terms(&j, p);

    xet_json_key(&j, "xorbs");
    xet_json_object_begin(&j);

    for (i = 0; i < p->nfetches; i++) {
        f = &p->fetches[i];

        xet_plan_json_hash(&j, &f->xorb, 1);
        xet_json_array_begin(&j);

        for (k = 0; k < f->n; k += (uint32_t) n) {
            r = &f->ranges[k];
            n = (f->n - k < group) ? f->n - k : group;

            xet_json_object_begin(&j);

            status = xet_plan_json_url(&j, url, ctx, &f->xorb, r, n);

            if (status != XET_OK) {
                return status;
            }

            xet_json_key(&j, "ranges");
            xet_json_array_begin(&j);

            for ( /* void */ ; r < &f->ranges[k] + n; r++) {
                xet_json_object_begin(&j);

                xet_plan_json_span(&j, "chunks", r->chunk_start,
                                   r->chunk_end);
                xet_plan_json_span(&j, "bytes", r->stored_start,
                                   r->stored_end - 1);

                xet_json_object_end(&j);
            }

            xet_json_array_end(&j);
            xet_json_object_end(&j);
        }

        xet_json_array_end(&j);
    }

    xet_json_object_end(&j);
    xet_json_object_end(&j);

    return xet_buf_status(b);
}


/* The members that both versions share. */

static void
xet_plan_json_terms(xet_json_t *j, const xet_plan_t *p)
{
    uint32_t           i;
    const xet_term_t  *t;

    xet_json_key(j, "offset_into_first_range");
    xet_json_u64(j, p->skip);

    xet_json_key(j, "terms");
    xet_json_array_begin(j);

    for (i = 0; i < p->n; i++) {
        t = &p->terms[i];

        xet_json_object_begin(j);

        xet_json_key(j, "hash");
        xet_plan_json_hash(j, &t->xorb, 0);

        xet_json_key(j, "unpacked_length");
        xet_json_u64(j, t->raw_length);

        xet_plan_json_span(j, "range", t->chunk_start, t->chunk_end);

        xet_json_object_end(j);
    }

    xet_json_array_end(j);
}


static void
xet_plan_json_hash(xet_json_t *j, const xet_hash_t *hash, int key)
{
    uint8_t  text[XET_HASH_STR_LEN];

    xet_hash_print(text, hash);

    if (key) {
        xet_json_key_n(j, text, XET_HASH_STR_LEN);

    } else {
        xet_json_string(j, text, XET_HASH_STR_LEN);
    }
}


static void
xet_plan_json_span(xet_json_t *j, const char *key, uint64_t start,
    uint64_t end)
{
    xet_json_key(j, key);
    xet_json_object_begin(j);

    xet_json_key(j, "start");
    xet_json_u64(j, start);

    xet_json_key(j, "end");
    xet_json_u64(j, end);

    xet_json_object_end(j);
}


static xet_status_t
xet_plan_json_url(xet_json_t *j, xet_plan_url_pt url, void *ctx,
    const xet_hash_t *xorb, const xet_plan_range_t *ranges, size_t n)
{
    xet_status_t  status;

    xet_json_key(j, "url");
    xet_json_string_begin(j);

    status = url(ctx, j->buf, xorb, ranges, n);

    xet_json_string_end(j);

    return status;
}
