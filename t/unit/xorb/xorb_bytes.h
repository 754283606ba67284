
/*
 * Builds valid and invalid xorbs by hand, for the xorb tests and fuzzers.
 */

#ifndef _XORB_BYTES_H_INCLUDED_
#define _XORB_BYTES_H_INCLUDED_


#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_xorb.h"


typedef struct {
    uint8_t  *data;
    size_t    len;
    size_t    size;
} xorb_bytes_t;


static inline void
xorb_bytes_put(xorb_bytes_t *b, const void *data, size_t len)
{
    if (b->len + len > b->size) {
        b->size = (b->len + len) * 2;
        b->data = realloc(b->data, b->size);

        if (b->data == NULL) {
            abort();
        }
    }

    if (len != 0) {
        memcpy(b->data + b->len, data, len);
    }

    b->len += len;
}


static inline xet_status_t
xorb_bytes_write(void *ctx, const uint8_t *data, size_t len)
{
    xorb_bytes_put(ctx, data, len);

    return XET_OK;
}


static inline void
xorb_bytes_free(xorb_bytes_t *b)
{
    free(b->data);
    memset(b, 0, sizeof(xorb_bytes_t));
}


static inline void
xorb_bytes_header(xorb_bytes_t *b, unsigned version, size_t stored_len,
    unsigned scheme, size_t raw_len)
{
    uint8_t  h[XET_XORB_HEADER_LEN];

    h[0] = (uint8_t) version;
    xet_put_u24(h + 1, (uint32_t) stored_len);
    h[4] = (uint8_t) scheme;
    xet_put_u24(h + 5, (uint32_t) raw_len);

    xorb_bytes_put(b, h, sizeof(h));
}


static inline void
xorb_bytes_chunk(xorb_bytes_t *b, unsigned scheme, const void *data,
    size_t len, size_t raw_len)
{
    xorb_bytes_header(b, 0, len, scheme, raw_len);
    xorb_bytes_put(b, data, len);
}


/* Fills p by kind: 'r' noise; 't' compressible data; 'f' similar floats. */

static inline void
xorb_bytes_fill(uint8_t *p, size_t n, int kind, uint32_t seed)
{
    size_t    i;
    uint64_t  s;

    s = seed * 2654435761ULL + 88172645463325252ULL;

    for (i = 0; i < n; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;

        switch (kind) {
        case 'r':
            p[i] = (uint8_t) (s >> 32);
            break;
        case 't':
            p[i] = (uint8_t) ("an old fox sleeps"[(s >> 32) % 17]);
            break;
        case 'z':
            p[i] = 0;
            break;
        default:
            p[i] = (uint8_t) (i % 4 == 3 ? 0x3c + (s >> 60) % 2 : s >> 32);
        }
    }
}


#endif /* _XORB_BYTES_H_INCLUDED_ */
