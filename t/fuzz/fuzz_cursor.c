
/*
 * A cursor over arbitrary terms and chunk lists: it never crashes, ends after a
 * bounded number of steps, and returns chunks that fill the range without gaps.
 *
 * Input: a byte of flags, a byte with the number of terms per segment; u32
 * start of the range, u32 its length; then packed terms.  The chunks of a term
 * have equal lengths, unless a flag says that their ends are in the input.
 */


#include <stdio.h>

#include "xet_base.h"
#include "xet_plan.h"


#define FUZZ_HEAD      10
#define FUZZ_BAD_ENDS  1
#define FUZZ_TWICE     2
#define FUZZ_LISTS     8

#define check(cond)  if (!(cond)) { __builtin_trap(); }


static uint8_t        fuzz_raw[65536 * 4];
static uint8_t        fuzz_stored[65536 * 4];
static uint8_t        fuzz_hashes[65536 * XET_HASH_LEN];
static xet_cursor_t   fuzz_cursor;

static unsigned       fuzz_flags;
static unsigned       fuzz_segment;
static const uint8_t *fuzz_terms;
static size_t         fuzz_nterms;


/* Passes the segment at the cursor's position, as the database returns it. */

static xet_status_t
fuzz_fetch_terms(xet_cursor_t *c)
{
    size_t      i, k, n;
    uint64_t    offset, end;
    xet_term_t  term;

    for (i = 0, offset = 0; i < fuzz_nterms; i += n, offset = end) {
        n = fuzz_nterms - i;

        if (n > fuzz_segment) {
            n = fuzz_segment;
        }

        for (k = 0, end = offset; k < n; k++) {

            if (xet_term_unpack(&term, fuzz_terms + (i + k) * XET_TERM_LEN)
                != XET_OK)
            {
                return XET_PLAN_DAMAGED;
            }

            end += term.raw_length;
        }

        if (end > c->position) {
            return xet_cursor_terms(c, fuzz_terms + i * XET_TERM_LEN,
                                    n * XET_TERM_LEN, offset);
        }
    }

    return XET_DONE;
}


/*
 * Passes a chunk list.  The request does not name a term, so the first term of
 * the xorb that contains these chunks is used.
 */

static xet_status_t
fuzz_fetch_list(xet_cursor_t *c, const xet_cursor_list_t *list)
{
    size_t           k;
    uint32_t         i, n, chunks;
    uint64_t         raw, stored;
    xet_term_t       term;
    xet_plan_ends_t  ends;

    check(list->start < list->end && list->end <= XET_XORB_CHUNKS_MAX);

    for (k = 0; k < fuzz_nterms; k++) {
        check(xet_term_unpack(&term, fuzz_terms + k * XET_TERM_LEN)
              == XET_OK);

        if (xet_hash_equal(&term.xorb, &list->xorb)
            && term.chunk_start <= list->start
            && term.chunk_end >= list->end)
        {
            break;
        }
    }

    check(k < fuzz_nterms);

    n = list->end - list->start;
    chunks = term.chunk_end - term.chunk_start;

    for (i = 0; i <= n; i++) {
        raw = (uint64_t) term.raw_length
              * (list->start - term.chunk_start + i) / chunks;
        stored = term.stored_start
                 + (uint64_t) (term.stored_end - term.stored_start)
                   * (list->start - term.chunk_start + i) / chunks;

        if (i == 0) {
            ends.raw_before = (uint32_t) raw;
            ends.stored_before = (uint32_t) stored;
            continue;
        }

        xet_put_u32(fuzz_raw + (i - 1) * 4, (uint32_t) raw);
        xet_put_u32(fuzz_stored + (i - 1) * 4, (uint32_t) stored);
    }

    if (fuzz_flags & FUZZ_BAD_ENDS) {
        for (i = 0; i < n; i++) {
            k = i * 4 % (fuzz_nterms * XET_TERM_LEN - 3);
            memcpy(fuzz_raw + i * 4, fuzz_terms + k, 4);
        }
    }

    ends.n = n;
    ends.copy_id = term.copy_id;
    ends.raw_ends = fuzz_raw;
    ends.stored_ends = fuzz_stored;

    return xet_cursor_answer(c, &ends, list->hashes ? fuzz_hashes : NULL);
}


static xet_status_t
fuzz_fetch(xet_cursor_t *c)
{
    size_t             i, n;
    xet_status_t       rc;
    xet_cursor_list_t  lists[FUZZ_LISTS];

    n = FUZZ_LISTS;

    rc = xet_cursor_ask(c, lists, &n);

    if (rc == XET_AGAIN) {
        return fuzz_fetch_terms(c);
    }

    check(rc == XET_OK && n >= 1 && n <= FUZZ_LISTS);

    for (i = 0; i < n; i++) {
        rc = fuzz_fetch_list(c, &lists[i]);

        if (rc != XET_OK) {
            check(rc == XET_PLAN_DAMAGED);
            return rc;
        }
    }

    return XET_OK;
}


static void
fuzz_range(xet_cursor_t *c, uint64_t start, uint64_t end)
{
    unsigned            waits;
    uint64_t            at;
    xet_status_t        rc;
    xet_cursor_chunk_t  chunk;

    xet_cursor_seek(c, start, end);

    at = start;
    waits = 0;

    while ((rc = xet_cursor_chunk(c, &chunk)) != XET_DONE) {

        if (rc == XET_AGAIN) {

            /*
             * one wait for terms, one for a position, and the others for
             * batches of up to 1024 chunks before this position
             */

            check(waits++ < 16);

            if (fuzz_fetch(c) != XET_OK) {
                return;
            }

            continue;
        }

        check(rc == XET_OK && c->position == at);
        check(chunk.raw_len >= 1 && chunk.raw_len <= XET_CHUNK_MAX);
        check(chunk.take >= 1);
        check((uint64_t) chunk.skip + chunk.take <= chunk.raw_len);
        check(chunk.skip == 0 || at == start);
        check(at + chunk.take == end
              || chunk.skip + chunk.take == chunk.raw_len);
        check(chunk.stored_len > 8 && chunk.index < XET_XORB_CHUNKS_MAX);

        waits = 0;
        at += chunk.take;

        xet_cursor_advance(c);
    }

    check(at == end);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t  start, end;

    if (size < FUZZ_HEAD + XET_TERM_LEN) {
        return 0;
    }

    fuzz_flags = data[0];
    fuzz_segment = data[1] + 1;
    start = xet_get_u32(data + 2);
    end = start + 1 + xet_get_u32(data + 6);

    fuzz_terms = data + FUZZ_HEAD;
    fuzz_nterms = (size - FUZZ_HEAD) / XET_TERM_LEN;

    xet_cursor_init(&fuzz_cursor);

    fuzz_range(&fuzz_cursor, start, end);

    if (fuzz_flags & FUZZ_TWICE) {
        fuzz_range(&fuzz_cursor, start / 2, end);
    }

    return 0;
}
