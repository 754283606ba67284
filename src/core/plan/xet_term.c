
/*
 * Packs terms, and unpacks and checks them.
 *
 * The database and the plan cache hold terms in packed form.  This form has no
 * version and no padding, so the length gives the number of terms.  The packer
 * expects a term that the shard verifier has accepted.  The unpacker trusts
 * nothing: a row that was damaged, or written by another program, must cause
 * an error and never wrong bytes for a client.
 *
 * The functions have no state and allocate no memory; any thread may call
 * them.
 */


#include "xet_plan.h"


void
xet_term_pack(uint8_t *dst, const xet_term_t *term)
{
    memcpy(dst, term->xorb.bytes, XET_HASH_LEN);

    xet_put_u16(dst + 32, term->chunk_start);
    xet_put_u16(dst + 34, term->chunk_end - 1);
    xet_put_u32(dst + 36, term->stored_start);
    xet_put_u32(dst + 40, term->stored_end);
    xet_put_u32(dst + XET_TERM_RAW, term->raw_length);
    xet_put_u32(dst + 48, term->copy_id);
}


xet_status_t
xet_term_unpack(xet_term_t *term, const uint8_t *src)
{
    uint32_t  n;

    memcpy(term->xorb.bytes, src, XET_HASH_LEN);

    term->chunk_start = xet_get_u16(src + 32);
    term->chunk_end = xet_get_u16(src + 34) + 1;
    term->stored_start = xet_get_u32(src + 36);
    term->stored_end = xet_get_u32(src + 40);
    term->raw_length = xet_get_u32(src + XET_TERM_RAW);
    term->copy_id = xet_get_u32(src + 48);

    if (term->chunk_start >= term->chunk_end
        || term->chunk_end > XET_XORB_CHUNKS_MAX)
    {
        return XET_PLAN_DAMAGED;
    }

    /* a chunk has at least one byte, decoded and stored */

    n = term->chunk_end - term->chunk_start;

    if (term->stored_start >= term->stored_end
        || term->stored_end - term->stored_start < n)
    {
        return XET_PLAN_DAMAGED;
    }

    if (term->raw_length < n || term->raw_length > n * XET_CHUNK_MAX) {
        return XET_PLAN_DAMAGED;
    }

    return XET_OK;
}


int
xet_term_ends_ok(uint32_t chunk_start, uint32_t n, uint32_t raw_before,
    uint32_t stored_before, const uint8_t *raw_ends,
    const uint8_t *stored_ends)
{
    uint32_t  i, raw, stored;

    if (chunk_start == 0 && (raw_before != 0 || stored_before != 0)) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        raw = xet_get_u32(raw_ends + i * 4);
        stored = xet_get_u32(stored_ends + i * 4);

        if (raw <= raw_before
            || raw - raw_before > XET_CHUNK_MAX
            || stored <= stored_before)
        {
            return 0;
        }

        raw_before = raw;
        stored_before = stored;
    }

    return 1;
}
