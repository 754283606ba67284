
/*
 * The header and the footer of a file.
 *
 * Purpose:    distinguishes the four formats named zTensor by magic numbers
 *             and footers.  Two are supported, two are only recognised.
 * States:     none.
 * Ownership:  no argument is referenced after a call.
 * Threads:    any.
 *
 *   0.1          "ZTEN0001" ... length of the manifest
 *   1.0          "ZTEN1000" ... length of the manifest
 *   1.1, 1.2     "ZTEN1000" ... length of the manifest, "ZTEN1000"
 *   2            89 "ZT2" ...   offset, length and XXH3 of the manifest,
 *                               version, reserved, the magic number again
 *
 * The diagram in the 1.1 specification has no magic number at the start, so a
 * file that follows the diagram begins with a component.  Such a file is
 * accepted, unless strict is set or it begins with the magic number of another
 * format.
 */


#include <string.h>

#include "xet_base.h"
#include "xet_zt.h"


#define XET_ZT_VERSION_2  2


static xet_status_t xet_zt_ends_1(xet_zt_ends_t *ends, const uint8_t *head,
    const uint8_t *footer, uint64_t size, uint64_t limit, int strict);
static xet_status_t xet_zt_ends_2(xet_zt_ends_t *ends, const uint8_t *head,
    const uint8_t *footer, uint64_t size, uint64_t limit);
static xet_status_t xet_zt_ends_else(xet_zt_ends_t *ends, const uint8_t *head,
    const uint8_t *last, uint64_t size);


static const uint8_t  xet_zt_magic[XET_ZT_MAGIC_LEN] = {
    'Z', 'T', 'E', 'N', '1', '0', '0', '0'
};

static const uint8_t  xet_zt_magic_0[XET_ZT_MAGIC_LEN] = {
    'Z', 'T', 'E', 'N', '0', '0', '0', '1'
};

static const uint8_t  xet_zt_magic_2[XET_ZT_MAGIC_LEN] = {
    0x89, 'Z', 'T', '2', 0x0d, 0x0a, 0x1a, 0x0a
};


#define xet_zt_magic_is(p, magic)                                             \
    (memcmp(p, magic, XET_ZT_MAGIC_LEN) == 0)


unsigned
xet_zt_tail_len(uint64_t size)
{
    return (size < XET_ZT_FOOTER_2) ? (unsigned) size : XET_ZT_FOOTER_2;
}


xet_status_t
xet_zt_ends_parse(xet_zt_ends_t *ends, const uint8_t *head,
    const uint8_t *tail, uint64_t size, uint64_t limit, int strict)
{
    const uint8_t  *last;

    memset(ends, 0, sizeof(xet_zt_ends_t));

    if (size < XET_ZT_FILE_MIN) {
        return XET_ZT_TOO_SHORT;
    }

    last = tail + xet_zt_tail_len(size) - XET_ZT_MAGIC_LEN;

    if (xet_zt_magic_is(last, xet_zt_magic)) {
        return xet_zt_ends_1(ends, head, last + XET_ZT_MAGIC_LEN
                                         - XET_ZT_FOOTER,
                             size, limit, strict);
    }

    if (xet_zt_magic_is(last, xet_zt_magic_2)) {
        return (size < XET_ZT_FILE_MIN_2)
               ? XET_ZT_TOO_SHORT
               : xet_zt_ends_2(ends, head, tail, size, limit);
    }

    return xet_zt_ends_else(ends, head, last, size);
}


static xet_status_t
xet_zt_ends_1(xet_zt_ends_t *ends, const uint8_t *head, const uint8_t *footer,
    uint64_t size, uint64_t limit, int strict)
{
    uint64_t  length;

    ends->container = XET_ZT_CONTAINER_1;
    ends->header_magic = xet_zt_magic_is(head, xet_zt_magic);

    if (!ends->header_magic
        && (strict
            || xet_zt_magic_is(head, xet_zt_magic_0)
            || xet_zt_magic_is(head, xet_zt_magic_2)))
    {
        return XET_ZT_HEADER_MAGIC;
    }

    length = xet_get_u64(footer);

    if (length > XET_ZT_MANIFEST_MAX) {
        return XET_ZT_MANIFEST_SIZE;
    }

    if (length == 0) {
        return XET_ZT_MANIFEST_EMPTY;
    }

    if (length > size - XET_ZT_FOOTER) {
        return XET_ZT_MANIFEST_BOUNDS;
    }

    ends->manifest_offset = size - XET_ZT_FOOTER - length;
    ends->manifest_length = length;

    if (ends->header_magic && ends->manifest_offset < XET_ZT_MAGIC_LEN) {
        return XET_ZT_MANIFEST_HEADER;
    }

    ends->data_start = ends->header_magic ? XET_ZT_MAGIC_LEN : 0;
    ends->data_end = ends->manifest_offset;

    return (length > limit) ? XET_ZT_MANIFEST_LIMIT : XET_OK;
}


static xet_status_t
xet_zt_ends_2(xet_zt_ends_t *ends, const uint8_t *head, const uint8_t *footer,
    uint64_t size, uint64_t limit)
{
    uint64_t  offset, length;

    ends->container = XET_ZT_CONTAINER_2;
    ends->header_magic = xet_zt_magic_is(head, xet_zt_magic_2);

    if (!ends->header_magic) {
        return XET_ZT_HEADER_MAGIC;
    }

    if (xet_get_u32(footer + 24) != XET_ZT_VERSION_2) {
        return XET_ZT_VERSION;
    }

    offset = xet_get_u64(footer);
    length = xet_get_u64(footer + 8);

    ends->manifest_hash = xet_get_u64(footer + 16);

    if (length == 0) {
        return (offset || ends->manifest_hash) ? XET_ZT_MANIFEST_BOUNDS
                                               : XET_ZT_DATA_SHARD;
    }

    if (length > XET_ZT_MANIFEST_MAX) {
        return XET_ZT_MANIFEST_SIZE;
    }

    if (offset % XET_ZT_UNIT_2 != 0 || offset < XET_ZT_UNIT_2) {
        return XET_ZT_ALIGN;
    }

    ends->data_start = XET_ZT_MAGIC_LEN;
    ends->data_end = size - XET_ZT_FOOTER_2;

    if (offset > ends->data_end || length > ends->data_end - offset) {
        return XET_ZT_MANIFEST_BOUNDS;
    }

    ends->manifest_offset = offset;
    ends->manifest_length = length;

    return (length > limit) ? XET_ZT_MANIFEST_LIMIT : XET_OK;
}


/*
 * Handles a file whose end has no known magic number.  Before 1.1 a file ended
 * with the length of the manifest, without a magic number.  If the last bytes
 * cannot be a length, the file is considered damaged.
 */

static xet_status_t
xet_zt_ends_else(xet_zt_ends_t *ends, const uint8_t *head,
    const uint8_t *last, uint64_t size)
{
    uint64_t  length;

    length = xet_get_u64(last);

    if (length == 0 || length > size - 2 * XET_ZT_MAGIC_LEN) {
        length = 0;
    }

    if (xet_zt_magic_is(head, xet_zt_magic)) {

        if (length == 0) {
            return XET_ZT_FOOTER_MAGIC;
        }

        ends->container = XET_ZT_CONTAINER_1_0;
        return XET_ZT_VERSION;
    }

    if (xet_zt_magic_is(head, xet_zt_magic_0)) {

        if (length == 0) {
            return XET_ZT_FOOTER_MAGIC;
        }

        ends->container = XET_ZT_CONTAINER_0_1;
        return XET_ZT_VERSION;
    }

    if (xet_zt_magic_is(head, xet_zt_magic_2)) {
        return (size < XET_ZT_FILE_MIN_2) ? XET_ZT_TOO_SHORT
                                          : XET_ZT_FOOTER_MAGIC;
    }

    return XET_ZT_NOT_ZTENSOR;
}
