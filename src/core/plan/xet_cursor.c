
/*
 * A reader's position in a file.
 *
 * Purpose:    turns terms and chunk lists, fetched in parts of bounded size,
 *             into the chunks of a byte range.
 * States:     c->position determines the state.  If the position is outside
 *             the segment, terms are needed; if it is outside the buffer,
 *             lists are needed.  A list that is longer than a buffer is read
 *             from its start or from c->point.  If the position is far after
 *             that point, only the ends are requested first, without hashes,
 *             to find the chunk ("locate").  c->point is set to the end of a
 *             buffer, so a sequential read never has to locate a chunk.
 * Ownership:  all data is copied into the structure; nothing is allocated.
 * Threads:    one at a time.
 *
 * Rows are not trusted: a list must fill its term, in raw and in stored bytes,
 * and no chunk may exceed the maximum sizes.  Sums have 64 bits;
 * xet_term_unpack() and this file limit the sizes of terms and chunks.
 */


#include "xet_plan.h"
#include "xet_xorb.h"


static xet_status_t xet_cursor_check(const xet_cursor_t *c,
    const xet_plan_ends_t *ends);
static void xet_cursor_locate(xet_cursor_t *c, const xet_plan_ends_t *ends);
static void xet_cursor_keep(xet_cursor_t *c, const xet_plan_ends_t *ends,
    const uint8_t *hashes);
static void xet_cursor_find(const xet_cursor_t *c, xet_cursor_point_t *at,
    uint64_t *term_end);


void
xet_cursor_init(xet_cursor_t *c)
{
    c->position = 0;
    c->end = 0;

    c->first = 0;
    c->last = 0;
    c->nterms = 0;
    c->point.term = 0;

    c->n = 0;
    c->i = 0;
    c->begin = 0;
    c->offset = 0;

    c->asked = 0;
    c->locate = 0;
}


void
xet_cursor_seek(xet_cursor_t *c, uint64_t start, uint64_t end)
{
    c->position = start;
    c->end = end;
    c->asked = 0;

    /* the next search in the buffer starts at its first chunk */

    c->i = 0;
    c->offset = c->begin;
}


xet_status_t
xet_cursor_terms(xet_cursor_t *c, const uint8_t *packed, size_t len,
    uint64_t first_offset)
{
    size_t        i, n;
    uint64_t      last;
    xet_status_t  rc;

    n = len / XET_TERM_LEN;

    xet_cursor_forget(c);

    c->nterms = 0;
    c->first = 0;
    c->last = 0;

    if (n == 0 || len % XET_TERM_LEN || n > XET_TERM_SEGMENT_MAX
        || first_offset > c->position)
    {
        return XET_PLAN_DAMAGED;
    }

    last = first_offset;

    for (i = 0; i < n; i++) {
        rc = xet_term_unpack(&c->terms[i], packed + i * XET_TERM_LEN);

        if (rc != XET_OK) {
            return rc;
        }

        last += c->terms[i].raw_length;
    }

    if (c->position >= last) {
        return XET_PLAN_DAMAGED;
    }

    c->first = first_offset;
    c->last = last;
    c->nterms = (uint32_t) n;
    c->point.term = c->nterms;

    return XET_OK;
}


void
xet_cursor_forget(xet_cursor_t *c)
{
    c->point.term = c->nterms;

    c->n = 0;
    c->i = 0;
    c->offset = c->begin;
    c->asked = 0;
}


xet_status_t
xet_cursor_ask(xet_cursor_t *c, xet_cursor_list_t *lists, size_t *n)
{
    size_t              i;
    uint32_t            room, count, chunk;
    uint64_t            term_end;
    xet_term_t         *term;
    xet_cursor_point_t  at;

    c->asked = 0;

    if (c->position >= c->end) {
        return XET_DONE;
    }

    if (c->position < c->first || c->position >= c->last) {
        return XET_AGAIN;
    }

    xet_cursor_find(c, &at, &term_end);

    c->next = at;
    c->n = 0;
    c->i = 0;
    c->begin = at.offset;
    c->offset = at.offset;

    term = &c->terms[at.term];
    chunk = at.chunk;
    count = term->chunk_end - chunk;

    /* a located chunk begins less than XET_CHUNK_MAX bytes before position */

    c->locate = (count > XET_CURSOR_CHUNKS
                 && c->position - at.offset >= XET_CHUNK_MAX);

    room = c->locate ? count : XET_CURSOR_CHUNKS;

    for (i = 0; i < *n; i++) {

        /* only the first list may be truncated, to the size of the buffer */

        if (i && count > room) {
            break;
        }

        lists[i].xorb = term->xorb;
        lists[i].start = chunk;
        lists[i].end = chunk + (count < room ? count : room);
        lists[i].hashes = !c->locate;

        room -= lists[i].end - chunk;

        if (++at.term == c->nterms || term_end >= c->end) {
            i++;
            break;
        }

        term = &c->terms[at.term];
        term_end += term->raw_length;
        chunk = term->chunk_start;
        count = term->chunk_end - chunk;
    }

    c->asked = (uint32_t) i;
    *n = i;

    return XET_OK;
}


/*
 * Finds c->point or the start of a term, whichever is the last at or before
 * the position, and the end of its term.
 */

static void
xet_cursor_find(const xet_cursor_t *c, xet_cursor_point_t *at,
    uint64_t *term_end)
{
    uint32_t  i;
    uint64_t  offset;

    offset = c->first;

    for (i = 0; offset + c->terms[i].raw_length <= c->position; i++) {
        offset += c->terms[i].raw_length;
    }

    *term_end = offset + c->terms[i].raw_length;

    if (c->point.term == i && c->point.offset <= c->position) {
        *at = c->point;
        return;
    }

    at->term = i;
    at->chunk = c->terms[i].chunk_start;
    at->offset = offset;
}


xet_status_t
xet_cursor_answer(xet_cursor_t *c, const xet_plan_ends_t *ends,
    const uint8_t *hashes)
{
    xet_status_t  rc;

    if (c->asked == 0) {
        return XET_INTERNAL;
    }

    rc = (hashes == NULL && !c->locate) ? XET_PLAN_DAMAGED
                                        : xet_cursor_check(c, ends);

    if (rc != XET_OK) {

        xet_cursor_forget(c);

        return rc;
    }

    c->asked--;

    if (c->locate) {
        xet_cursor_locate(c, ends);

    } else {
        xet_cursor_keep(c, ends, hashes);
    }

    return XET_OK;
}


/*
 * Checks that the list at c->next has the requested length and fills its term.
 */

static xet_status_t
xet_cursor_check(const xet_cursor_t *c, const xet_plan_ends_t *ends)
{
    int                same;
    uint32_t           i, n, chunk, raw, stored, before;
    uint64_t           end, term_end;
    const xet_term_t  *term;

    term = &c->terms[c->next.term];

    chunk = c->next.chunk;
    n = term->chunk_end - chunk;

    if (!c->locate && n > XET_CURSOR_CHUNKS - c->n) {
        n = XET_CURSOR_CHUNKS - c->n;
    }

    /*
     * after a xorb is healed, terms may have positions in the old copy
     */

    same = (ends->copy_id == term->copy_id);

    if (ends->n != n
        || (same && chunk == term->chunk_start
            && ends->stored_before != term->stored_start))
    {
        return XET_PLAN_DAMAGED;
    }

    raw = ends->raw_before;
    stored = ends->stored_before;

    for (i = 0; i < n; i++) {
        before = raw;
        raw = xet_get_u32(ends->raw_ends + i * 4);

        if (raw <= before || raw - before > XET_CHUNK_MAX) {
            return XET_PLAN_DAMAGED;
        }

        before = stored;
        stored = xet_get_u32(ends->stored_ends + i * 4);

        if (stored <= before
            || stored - before <= XET_XORB_HEADER_LEN
            || stored - before > XET_XORB_CHUNK_MAX)
        {
            return XET_PLAN_DAMAGED;
        }
    }

    for (i = 0, term_end = c->first; i <= c->next.term; i++) {
        term_end += c->terms[i].raw_length;
    }

    end = c->next.offset + (raw - ends->raw_before);

    if (chunk + n == term->chunk_end) {
        return (end == term_end && (!same || stored == term->stored_end))
               ? XET_OK : XET_PLAN_DAMAGED;
    }

    return (end < term_end && (!same || stored < term->stored_end))
           ? XET_OK : XET_PLAN_DAMAGED;
}


static void
xet_cursor_locate(xet_cursor_t *c, const xet_plan_ends_t *ends)
{
    uint32_t  i, want, end;

    want = (uint32_t) (c->position - c->next.offset);

    for (i = 0, end = 0; i < ends->n; i++) {

        if (xet_get_u32(ends->raw_ends + i * 4) - ends->raw_before > want) {
            break;
        }

        end = xet_get_u32(ends->raw_ends + i * 4) - ends->raw_before;
    }

    c->point = c->next;
    c->point.chunk += i;
    c->point.offset += end;
}


static void
xet_cursor_keep(xet_cursor_t *c, const xet_plan_ends_t *ends,
    const uint8_t *hashes)
{
    uint32_t             i, k, raw, stored;
    xet_cursor_point_t  *at;

    at = &c->next;
    raw = ends->raw_before;
    stored = ends->stored_before;

    memcpy(c->hashes + (size_t) c->n * XET_HASH_LEN, hashes,
           (size_t) ends->n * XET_HASH_LEN);

    c->copy_ids[at->term] = ends->copy_id;

    for (i = 0, k = c->n; i < ends->n; i++, k++) {
        c->stored[k] = stored;
        c->lens[k] = xet_get_u32(ends->stored_ends + i * 4) - stored;
        c->raw[k] = xet_get_u32(ends->raw_ends + i * 4) - raw;
        c->indexes[k] = (uint16_t) (at->chunk + i);
        c->owners[k] = (uint16_t) at->term;

        stored += c->lens[k];
        raw += c->raw[k];
    }

    c->n = k;

    at->chunk += ends->n;
    at->offset += raw - ends->raw_before;

    if (at->chunk < c->terms[at->term].chunk_end) {
        c->point = *at;
        return;
    }

    if (++at->term < c->nterms) {
        at->chunk = c->terms[at->term].chunk_start;
    }
}


xet_status_t
xet_cursor_chunk(xet_cursor_t *c, xet_cursor_chunk_t *chunk)
{
    uint32_t  i;
    uint64_t  left;

    if (c->position >= c->end) {
        return XET_DONE;
    }

    if (c->asked || c->position < c->begin) {
        return XET_AGAIN;
    }

    while (c->i < c->n && c->offset + c->raw[c->i] <= c->position) {
        c->offset += c->raw[c->i++];
    }

    if (c->i == c->n) {
        return XET_AGAIN;
    }

    i = c->i;

    chunk->xorb = &c->terms[c->owners[i]].xorb;
    chunk->copy_id = c->copy_ids[c->owners[i]];
    chunk->hash = c->hashes + (size_t) i * XET_HASH_LEN;
    chunk->index = c->indexes[i];
    chunk->stored_start = c->stored[i];
    chunk->stored_len = c->lens[i];
    chunk->raw_len = c->raw[i];
    chunk->skip = (uint32_t) (c->position - c->offset);
    chunk->take = chunk->raw_len - chunk->skip;

    left = c->end - c->position;

    if (chunk->take > left) {
        chunk->take = (uint32_t) left;
    }

    return XET_OK;
}


void
xet_cursor_run(const xet_cursor_t *c, size_t raw_max, uint64_t *start,
    uint64_t *end)
{
    size_t             raw;
    uint32_t           i;
    uint64_t           offset;
    const xet_term_t  *term, *first;

    first = &c->terms[c->owners[c->i]];

    i = c->i;
    raw = c->raw[i];
    offset = c->offset + c->raw[i];

    *start = c->stored[i];
    *end = *start + c->lens[i];

    for (i = c->i + 1; i < c->n && offset < c->end; i++) {
        term = &c->terms[c->owners[i]];

        if (c->raw[i] > raw_max || raw > raw_max - c->raw[i]
            || c->stored[i] != *end
            || c->copy_ids[c->owners[i]] != c->copy_ids[c->owners[c->i]]
            || !xet_hash_equal(&term->xorb, &first->xorb))
        {
            return;
        }

        raw += c->raw[i];
        offset += c->raw[i];
        *end += c->lens[i];
    }
}


void
xet_cursor_advance(xet_cursor_t *c)
{
    xet_cursor_chunk_t  chunk;

    if (xet_cursor_chunk(c, &chunk) == XET_OK) {
        c->position += chunk.take;
    }
}
