
/*
 * Terms in their packed form, as PostgreSQL keeps them: 52 bytes a term, all
 * integers little-endian.
 *
 *      0  xorb hash            32
 *     32  chunk start          u16
 *     34  chunk end - 1        u16    (so that 8192 chunks fit)
 *     36  stored start         u32    bytes in the chunk region
 *     40  stored end           u32    exclusive
 *     44  raw length           u32
 *     48  tag                  u32    which stored copy: xet_xorb.h
 */

#ifndef _XET_TERM_H_INCLUDED_
#define _XET_TERM_H_INCLUDED_


#include "xet_hash.h"


#define XET_TERM_LEN          52
#define XET_TERM_RAW          44       /* where the raw length is */
#define XET_TERM_SEGMENT_MAX  256      /* terms in a row of the table */


typedef struct {
    xet_hash_t  xorb;
    uint32_t    chunk_start;
    uint32_t    chunk_end;             /* exclusive */
    uint32_t    stored_start;
    uint32_t    stored_end;            /* exclusive */
    uint32_t    raw_length;            /* 1 .. 8192 * 128 KiB */
    uint32_t    tag;                   /* of the copy that stored_* describe */
} xet_term_t;


/* A xorb's chunk list as stored; see xet_xorb_info_t for the three arrays. */

typedef struct {
    xet_hash_t      hash;
    uint32_t        chunk_count;
    uint32_t        raw_size;
    uint32_t        stored_size;
    uint32_t        tag;
    const uint8_t  *hashes;
    const uint8_t  *raw_ends;
    const uint8_t  *stored_ends;
    const uint8_t  *seen;              /* NULL: all, see xet_seen.h */
    uint32_t        seen_n;
    const uint8_t  *noise;             /* 32 bytes: key for chunks not seen */
} xet_xorb_list_t;


void xet_term_pack(uint8_t *dst, const xet_term_t *term);

/*
 * XET_OK, or XET_PLAN_DAMAGED when a field contradicts another (empty or
 * reversed range, no bytes).
 */
xet_status_t xet_term_unpack(xet_term_t *term, const uint8_t *src);

/*
 * Whether these can be the ends of n chunks from chunk_start on, behind the
 * ends before: 0 at the start of the xorb, and rising, the raw ones by
 * XET_CHUNK_MAX at most.
 */
int xet_term_ends_ok(uint32_t chunk_start, uint32_t n, uint32_t raw_before,
    uint32_t stored_before, const uint8_t *raw_ends,
    const uint8_t *stored_ends);


#endif /* _XET_TERM_H_INCLUDED_ */
