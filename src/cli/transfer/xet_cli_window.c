
/*
 * A window of a download.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_transfer.h"


#define XET_CLI_WINDOW_CHUNKS  XET_CLI_PLAN_CHUNKS


/* A term and its place in the file, to be sorted by range. */

typedef struct {
    size_t                 range;
    xet_cli_use_t          use;
} xet_cli_window_use_t;


static int xet_cli_window_uses(xet_cli_window_t *w);
static int xet_cli_window_use_order(const void *one, const void *two);
static int xet_cli_window_chunk_order(const void *one, const void *two);


int
xet_cli_window_open(xet_cli_window_t *w, xet_cli_decoder_t *decoder,
    xet_cli_unit_chunk_pt handler, int keep)
{
    size_t           i;
    xet_cli_unit_t  *u;

    if (w->plan.offset > w->first) {
        return xet_cli_fail(XET_CLI_NETWORK, "server",
                            "the reconstruction begins before the file");
    }

    w->start = w->first - w->plan.offset;
    w->end = w->start + w->plan.raw_length;

    /* some of what was asked for, and at most a chunk more */

    if (w->end <= w->first || w->end > w->last + XET_CHUNK_MAX) {
        return xet_cli_fail(XET_CLI_NETWORK, "server",
                            "the reconstruction is of another range");
    }

    w->units = calloc(w->plan.nranges, sizeof(xet_cli_unit_t));
    w->data = keep ? malloc(w->end - w->start) : NULL;

    if (w->units == NULL || (keep && w->data == NULL)) {
        return xet_cli_no_memory();
    }

    w->left = w->plan.nranges;

    for (i = 0; i < w->plan.nranges; i++) {
        u = &w->units[i];

        u->window = w;
        u->decoder = decoder;
        u->handler = handler;
        u->range = &w->plan.ranges[i];
        u->chunk = u->range->chunk_start;
        u->placed = u->chunk;
        u->pos = u->range->byte_start;
    }

    return xet_cli_window_uses(w);
}


static int
xet_cli_window_uses(xet_cli_window_t *w)
{
    size_t                 i, n;
    uint64_t               pos;
    xet_cli_term_t        *term;
    xet_cli_unit_t        *u;
    xet_cli_window_use_t  *list;

    n = w->plan.nterms;

    list = calloc(n, sizeof(xet_cli_window_use_t));
    w->uses = calloc(n, sizeof(xet_cli_use_t));

    if (list == NULL || w->uses == NULL) {
        free(list);
        return xet_cli_no_memory();
    }

    pos = w->start;

    for (i = 0; i < n; i++) {
        term = &w->plan.terms[i];

        list[i].range = term->range;
        list[i].use.start = term->chunk_start;
        list[i].use.end = term->chunk_end;
        list[i].use.pos = pos;

        pos += term->raw_length;
        list[i].use.stop = pos;
    }

    qsort(list, n, sizeof(xet_cli_window_use_t), xet_cli_window_use_order);

    for (i = 0; i < n; i++) {
        w->uses[i] = list[i].use;

        u = &w->units[list[i].range];

        if (u->nuses++ == 0) {
            u->uses = &w->uses[i];
        }
    }

    free(list);

    return XET_CLI_OK;
}


static int
xet_cli_window_use_order(const void *one, const void *two)
{
    const xet_cli_window_use_t  *a, *b;

    a = one;
    b = two;

    if (a->range != b->range) {
        return (a->range > b->range) ? 1 : -1;
    }

    return (a->use.start > b->use.start) - (a->use.start < b->use.start);
}


int
xet_cli_window_add(xet_cli_window_t *w, const xet_cli_chunk_t *chunk)
{
    xet_cli_chunk_t  *chunks;

    if (w->nchunks == XET_CLI_WINDOW_CHUNKS) {
        return xet_cli_no_memory();
    }

    chunks = xet_cli_grow(w->chunks, w->nchunks, &w->room,
                          sizeof(xet_cli_chunk_t));

    if (chunks == NULL) {
        return xet_cli_no_memory();
    }

    w->chunks = chunks;
    w->chunks[w->nchunks++] = *chunk;

    return XET_CLI_OK;
}


int
xet_cli_window_finish(xet_cli_window_t *w)
{
    size_t    i;
    uint64_t  pos;

    if (w->nchunks) {
        qsort(w->chunks, w->nchunks, sizeof(xet_cli_chunk_t),
              xet_cli_window_chunk_order);
    }

    pos = w->start;

    for (i = 0; i < w->nchunks && w->chunks[i].offset == pos; i++) {
        pos += w->chunks[i].raw_length;
    }

    if (i != w->nchunks || pos != w->end) {
        return xet_cli_failf(XET_CLI_NETWORK, "server",
                             "what came has a gap at byte %llu of the file",
                             (unsigned long long) pos);
    }

    return XET_CLI_OK;
}


static int
xet_cli_window_chunk_order(const void *one, const void *two)
{
    const xet_cli_chunk_t  *a, *b;

    a = one;
    b = two;

    return (a->offset > b->offset) - (a->offset < b->offset);
}


void
xet_cli_window_free(xet_cli_window_t *w)
{
    size_t  i;

    for (i = 0; w->units && i < w->plan.nranges; i++) {
        xet_cli_unit_free(&w->units[i]);
    }

    xet_cli_http_free(&w->request);
    xet_cli_plan_free(&w->plan);

    free(w->units);
    free(w->uses);
    free(w->chunks);
    free(w->data);
    free(w);
}
