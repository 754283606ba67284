
/*
 * Integers and text in byte buffers: little-endian, hex digits, escapes,
 * decimal, kinds of characters.  The caller has checked that the bytes are
 * there.
 */

#ifndef _XET_BYTES_H_INCLUDED_
#define _XET_BYTES_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>
#include <string.h>


static inline uint32_t
xet_get_u16(const uint8_t *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8;
}


static inline uint32_t
xet_get_u24(const uint8_t *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16;
}


static inline uint32_t
xet_get_u32(const uint8_t *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8
           | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}


static inline uint64_t
xet_get_u64(const uint8_t *p)
{
    return (uint64_t) xet_get_u32(p) | (uint64_t) xet_get_u32(p + 4) << 32;
}


static inline void
xet_put_u16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
}


static inline void
xet_put_u24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
    p[2] = (uint8_t) (v >> 16);
}


static inline void
xet_put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
    p[2] = (uint8_t) (v >> 16);
    p[3] = (uint8_t) (v >> 24);
}


static inline void
xet_put_u64(uint8_t *p, uint64_t v)
{
    xet_put_u32(p, (uint32_t) v);
    xet_put_u32(p + 4, (uint32_t) (v >> 32));
}


/* Copies len bytes to p; returns the end of the copy. */

static inline uint8_t *
xet_put_bytes(uint8_t *p, const void *data, size_t len)
{
    memcpy(p, data, len);

    return p + len;
}


#define xet_put_literal(p, s)  xet_put_bytes(p, s, sizeof(s) - 1)


/* The value of a hex digit of either case, 16 for any other byte. */

static inline unsigned
xet_get_hex_digit(unsigned c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c |= 0x20;

    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }

    return 16;
}


/*
 * Returns the next byte of a percent-encoded text (RFC 3986, section 2.1) and
 * moves *p, which must be before end, past the byte or its escape.  Returns -1
 * for a malformed escape, where *p stays.  "+" does not stand for a space.
 */

static inline int
xet_percent_byte(const uint8_t **p, const uint8_t *end)
{
    unsigned  high, low;

    if (**p != '%') {
        return *(*p)++;
    }

    if (end - *p < 3) {
        return -1;
    }

    high = xet_get_hex_digit((*p)[1]);
    low = xet_get_hex_digit((*p)[2]);

    if (high == 16 || low == 16) {
        return -1;
    }

    *p += 3;

    return (int) (high << 4 | low);
}


/*
 * Sets *number to the value of len decimal digits, leading zeros allowed, and
 * returns 1.  Returns 0 when len is 0, for any other byte, and for a value of
 * more than 64 bits; *number is left alone but for a len of 0.
 */

static inline int
xet_get_decimal(const uint8_t *p, size_t len, uint64_t *number)
{
    size_t    i;
    uint64_t  v, digit;

    v = 0;

    for (i = 0; i < len; i++) {

        if (p[i] < '0' || p[i] > '9') {
            return 0;
        }

        digit = (uint64_t) (p[i] - '0');

        if (v > (UINT64_MAX - digit) / 10) {
            return 0;
        }

        v = v * 10 + digit;
    }

    *number = v;

    return len != 0;
}


/* Whether a byte is a letter or a digit of ASCII. */

static inline int
xet_is_alnum(unsigned c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9');
}


/* Returns the position after the spaces and tabs at p, if there are any. */

static inline const uint8_t *
xet_skip_blanks(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    return p;
}


/* The most decimal digits that a 64-bit integer has. */
#define XET_DECIMAL_MAX  20


/*
 * Writes v in decimal digits without a NUL and returns their end.  p has room
 * for XET_DECIMAL_MAX bytes.
 */

static inline uint8_t *
xet_put_decimal(uint8_t *p, uint64_t v)
{
    uint8_t  *digit;
    uint8_t   digits[XET_DECIMAL_MAX];

    digit = digits + XET_DECIMAL_MAX;

    do {
        *--digit = (uint8_t) ('0' + v % 10);
        v /= 10;
    } while (v);

    while (digit < digits + XET_DECIMAL_MAX) {
        *p++ = *digit++;
    }

    return p;
}


#endif /* _XET_BYTES_H_INCLUDED_ */
