
/*
 * Numbers with a fraction in CBOR.
 *
 * Purpose:    halves, floats and doubles by their bits, to doubles; and
 *             whether a narrower form would have done.
 * States:     none.
 * Ownership:  nothing is kept.
 * Threads:    any.
 *
 * float and double are those of IEEE 754, as everywhere in this project.
 */


#include <float.h>
#include <string.h>

#include "xet_cbor.h"


static uint32_t xet_cbor_half(uint32_t half);


double
xet_cbor_float(const xet_cbor_item_t *item)
{
    float     f;
    double    d;
    uint32_t  bits;

    if (item->width == 8) {
        memcpy(&d, &item->value, sizeof(d));
        return d;
    }

    bits = (uint32_t) item->value;

    if (item->width == 2) {
        bits = xet_cbor_half(bits);
    }

    memcpy(&f, &bits, sizeof(f));

    return f;
}


int
xet_cbor_float_shortest(const xet_cbor_item_t *item)
{
    double    v;
    unsigned  exponent, shift;
    uint32_t  bits, mantissa;

    bits = (uint32_t) item->value;

    switch (item->width) {

    case 2:
        return (bits & 0x7fff) <= 0x7c00 || bits == 0x7e00;

    case 4:
        exponent = bits >> 23 & 0xff;
        mantissa = bits & 0x7fffff;

        if (exponent == 0xff) {
            return 0;
        }

        if (exponent == 0) {
            return mantissa != 0;
        }

        /* normal halves have exponents -14 to 15, subnormal ones to -24 */

        if (exponent >= 113 && exponent <= 142) {
            return (mantissa & 0x1fff) != 0;
        }

        if (exponent >= 103 && exponent < 113) {
            shift = 14 + 112 - exponent;
            mantissa |= 0x800000;

            return (mantissa & (((uint32_t) 1 << shift) - 1)) != 0;
        }

        return 1;

    default: /* 8 */
        v = xet_cbor_float(item);

        if (v != v || v > DBL_MAX || v < -DBL_MAX) {
            return 0;
        }

        return v > FLT_MAX || v < -FLT_MAX || (double) (float) v != v;
    }
}


/* A half as the bits of a float. */

static uint32_t
xet_cbor_half(uint32_t half)
{
    uint32_t  sign, exponent, mantissa;

    sign = (half & 0x8000) << 16;
    exponent = half >> 10 & 0x1f;
    mantissa = half & 0x3ff;

    if (exponent == 31) {
        return sign | 0x7f800000 | mantissa << 13;
    }

    if (exponent == 0) {

        if (mantissa == 0) {
            return sign;
        }

        for (exponent = 1; !(mantissa & 0x400); exponent--) {
            mantissa <<= 1;
        }

        mantissa &= 0x3ff;
    }

    return sign | (exponent + 112) << 23 | mantissa << 13;
}
