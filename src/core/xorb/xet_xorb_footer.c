
/*
 * The CasObjectInfo footer (draft-denis-xet, "CasObjectInfo Footer"; version 0
 * is older and described in docs/protocol.md).
 *
 * Purpose:    compares a footer with the chunks, or writes one.  The chunks
 *             determine the whole footer: it is a sequence of fields with
 *             known bytes.  A layout lists the fields, and one function
 *             returns the bytes of a field.  The tables of the chunks are kept
 *             in the byte order of the footer, so only small fields are built.
 *             The counts in a received footer are never used.
 * States:     no version yet; in a field; after the last field.  Nothing is
 *             buffered.
 * Ownership:  the caller owns the structure, which points to its info.
 * Threads:    one at a time.
 *
 * The 16 spare bytes may have any value: the draft has zeros there, while other
 * implementations write a nonce.
 */

#include <string.h>

#include "xet_base.h"
#include "xet_xorb.h"


#define XET_XORB_FOOTER_SPARE_LEN    16
#define XET_XORB_FOOTER_SECTION_LEN  12        /* ident, version, count */
#define XET_XORB_FOOTER_TRAILER_LEN  12


typedef enum {
    XET_XORB_FOOTER_HASH = 0,
    XET_XORB_FOOTER_COUNT,
    XET_XORB_FOOTER_HASH_SECTION,
    XET_XORB_FOOTER_HASHES,
    XET_XORB_FOOTER_BOUND_SECTION,
    XET_XORB_FOOTER_STORED_ENDS,
    XET_XORB_FOOTER_RAW_ENDS,
    XET_XORB_FOOTER_TRAILER,
    XET_XORB_FOOTER_SPARE,
    XET_XORB_FOOTER_LENGTH,
    XET_XORB_FOOTER_END
} xet_xorb_footer_field_e;


static const uint8_t  xet_xorb_footer_v0[] = {
    XET_XORB_FOOTER_HASH,
    XET_XORB_FOOTER_COUNT,
    XET_XORB_FOOTER_STORED_ENDS,
    XET_XORB_FOOTER_HASHES,
    XET_XORB_FOOTER_SPARE,
    XET_XORB_FOOTER_LENGTH,
    XET_XORB_FOOTER_END
};


static const uint8_t  xet_xorb_footer_v1[] = {
    XET_XORB_FOOTER_HASH,
    XET_XORB_FOOTER_HASH_SECTION,
    XET_XORB_FOOTER_HASHES,
    XET_XORB_FOOTER_BOUND_SECTION,
    XET_XORB_FOOTER_STORED_ENDS,
    XET_XORB_FOOTER_RAW_ENDS,
    XET_XORB_FOOTER_TRAILER,
    XET_XORB_FOOTER_SPARE,
    XET_XORB_FOOTER_LENGTH,
    XET_XORB_FOOTER_END
};


static xet_status_t xet_xorb_footer_version(xet_xorb_footer_t *f,
    unsigned version);
static void xet_xorb_footer_field(xet_xorb_footer_t *f);
static void xet_xorb_footer_small(xet_xorb_footer_t *f, unsigned field);
static void xet_xorb_footer_section(uint8_t *p, const char *ident,
    unsigned version, uint32_t count);


void
xet_xorb_footer_init(xet_xorb_footer_t *f, const xet_xorb_info_t *info)
{
    memset(f, 0, sizeof(xet_xorb_footer_t));

    f->info = info;
}


xet_status_t
xet_xorb_footer_feed(xet_xorb_footer_t *f, const uint8_t *data, size_t len)
{
    size_t  n;

    if (len != 0 && f->layout == NULL) {

        if (xet_xorb_footer_version(f, *data) != XET_OK) {
            return XET_XORB_FOOTER;
        }

        data++;
        len--;
    }

    while (len != 0) {

        if (*f->layout == XET_XORB_FOOTER_END) {
            return XET_XORB_FOOTER;
        }

        n = len < f->rest ? len : f->rest;

        if (f->want != NULL) {

            if (memcmp(data, f->want, n) != 0) {
                return XET_XORB_FOOTER;
            }

            f->want += n;
        }

        data += n;
        len -= n;
        f->rest -= n;

        if (f->rest == 0) {
            f->layout++;
            xet_xorb_footer_field(f);
        }
    }

    return XET_OK;
}


xet_status_t
xet_xorb_footer_finish(const xet_xorb_footer_t *f)
{
    if (f->layout == NULL || *f->layout != XET_XORB_FOOTER_END) {
        return XET_XORB_TRUNCATED;
    }

    return XET_OK;
}


xet_status_t
xet_xorb_footer_write(const xet_xorb_info_t *info, unsigned version,
    xet_xorb_write_pt write, void *ctx)
{
    uint8_t            head[XET_XORB_IDENT_LEN + 1];
    xet_status_t       rc;
    xet_xorb_footer_t  f;

    static const uint8_t  spare[XET_XORB_FOOTER_SPARE_LEN];

    xet_xorb_footer_init(&f, info);

    rc = xet_xorb_footer_version(&f, version);
    if (rc != XET_OK) {
        return XET_INTERNAL;
    }

    memcpy(head, XET_XORB_IDENT, XET_XORB_IDENT_LEN);
    head[XET_XORB_IDENT_LEN] = (uint8_t) version;

    rc = write(ctx, head, sizeof(head));

    while (rc == XET_OK && *f.layout != XET_XORB_FOOTER_END) {
        rc = write(ctx, f.want ? f.want : spare, f.rest);

        f.layout++;
        xet_xorb_footer_field(&f);
    }

    return rc;
}


static xet_status_t
xet_xorb_footer_version(xet_xorb_footer_t *f, unsigned version)
{
    switch (version) {

    case 0:
        f->layout = xet_xorb_footer_v0;
        break;

    case 1:
        f->layout = xet_xorb_footer_v1;
        break;

    default:
        return XET_XORB_FOOTER;
    }

    f->version = version;
    xet_xorb_footer_field(f);

    return XET_OK;
}


/*
 * Sets want and rest to the expected bytes of the current field and their
 * number.
 */

static void
xet_xorb_footer_field(xet_xorb_footer_t *f)
{
    size_t                  count;
    const xet_xorb_info_t  *info;

    info = f->info;
    count = info->chunk_count;

    switch (*f->layout) {

    case XET_XORB_FOOTER_HASH:
        f->want = info->hash.bytes;
        f->rest = XET_HASH_LEN;
        break;

    case XET_XORB_FOOTER_HASHES:
        f->want = info->hashes;
        f->rest = count * XET_HASH_LEN;
        break;

    case XET_XORB_FOOTER_STORED_ENDS:
        f->want = info->stored_ends;
        f->rest = count * 4;
        break;

    case XET_XORB_FOOTER_RAW_ENDS:
        f->want = info->raw_ends;
        f->rest = count * 4;
        break;

    case XET_XORB_FOOTER_SPARE:
        f->want = NULL;
        f->rest = XET_XORB_FOOTER_SPARE_LEN;
        break;

    case XET_XORB_FOOTER_END:
        f->want = NULL;
        f->rest = 0;
        break;

    default:
        xet_xorb_footer_small(f, *f->layout);
    }
}


static void
xet_xorb_footer_small(xet_xorb_footer_t *f, unsigned field)
{
    uint32_t  count, bound, hash, length;

    count = f->info->chunk_count;

    /* bound and hash: distances of two sections from the end of a v1 footer */

    bound = XET_XORB_FOOTER_SECTION_LEN + count * 8
            + XET_XORB_FOOTER_TRAILER_LEN + XET_XORB_FOOTER_SPARE_LEN;
    hash = XET_XORB_FOOTER_SECTION_LEN + count * XET_HASH_LEN + bound;

    f->want = f->fixed;

    switch (field) {

    case XET_XORB_FOOTER_HASH_SECTION:
        xet_xorb_footer_section(f->fixed, "XBLBHSH", 0, count);
        f->rest = XET_XORB_FOOTER_SECTION_LEN;
        break;

    case XET_XORB_FOOTER_BOUND_SECTION:
        xet_xorb_footer_section(f->fixed, "XBLBBND", 1, count);
        f->rest = XET_XORB_FOOTER_SECTION_LEN;
        break;

    case XET_XORB_FOOTER_TRAILER:
        xet_put_u32(f->fixed, count);
        xet_put_u32(f->fixed + 4, hash);
        xet_put_u32(f->fixed + 8, bound);
        f->rest = XET_XORB_FOOTER_TRAILER_LEN;
        break;

    case XET_XORB_FOOTER_COUNT:
        xet_put_u32(f->fixed, count);
        f->rest = 4;
        break;

    default: /* XET_XORB_FOOTER_LENGTH: from the ident to the spare bytes */
        length = XET_XORB_IDENT_LEN + 1 + XET_HASH_LEN;

        if (f->version == 0) {
            length += 4 + count * (4 + XET_HASH_LEN)
                      + XET_XORB_FOOTER_SPARE_LEN;

        } else {
            length += hash;
        }

        xet_put_u32(f->fixed, length);
        f->rest = 4;
    }
}


static void
xet_xorb_footer_section(uint8_t *p, const char *ident, unsigned version,
    uint32_t count)
{
    memcpy(p, ident, XET_XORB_IDENT_LEN);
    p[XET_XORB_IDENT_LEN] = (uint8_t) version;
    xet_put_u32(p + XET_XORB_IDENT_LEN + 1, count);
}
