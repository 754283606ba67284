
/*
 * A push parser of the structure of shards; takes pieces of any size.
 *
 * A shard is a sequence of 48-byte records, so only a part of one record is
 * kept from one feed to the next; whole records are read in place.  The state
 * alone determines the kind of a record, except for bookends:
 *
 *   header -> file* -> files end -> xorb* -> xorbs end -> (ignored)
 *   file   =  header, n terms, n verification records?, metadata?
 *   xorb   =  header, n chunks
 *
 * A bookend differs from a file or xorb header by a hash of 0xff bytes.  Only
 * whole records are checked, so the result does not depend on how the input was
 * split.  After the first error, every later feed and the finish return the
 * same error.  A parser owns no memory and belongs to one thread.
 */


#include "xet_shard.h"


/* The kind of record in each state, except the last one. */

static const xet_shard_kind_t  xet_shard_kinds[] = {
    XET_SHARD_REC_HEADER,
    XET_SHARD_REC_FILE,
    XET_SHARD_REC_TERM,
    XET_SHARD_REC_VERIFICATION,
    XET_SHARD_REC_METADATA,
    XET_SHARD_REC_XORB,
    XET_SHARD_REC_CHUNK
};


static void xet_shard_parser_record(xet_shard_parser_t *p,
    const uint8_t *data);
static xet_status_t xet_shard_parser_check(xet_shard_parser_t *p,
    const uint8_t *data, xet_shard_record_t *rec);
static xet_status_t xet_shard_parser_bookend(xet_shard_parser_t *p,
    const uint8_t *data, xet_shard_record_t *rec);
static xet_status_t xet_shard_parser_header(xet_shard_parser_t *p,
    const uint8_t *data, const xet_shard_record_t *rec);
static xet_status_t xet_shard_parser_file(xet_shard_parser_t *p,
    const xet_shard_record_t *rec);
static xet_status_t xet_shard_parser_term(xet_shard_parser_t *p,
    const xet_shard_record_t *rec);
static xet_status_t xet_shard_parser_xorb(xet_shard_parser_t *p,
    const xet_shard_record_t *rec);
static xet_status_t xet_shard_parser_chunk(xet_shard_parser_t *p,
    const xet_shard_record_t *rec);
static void xet_shard_parser_next(xet_shard_parser_t *p);
static int xet_shard_bytes_are(const uint8_t *p, size_t n, uint8_t byte);


const uint8_t  xet_shard_tag[XET_SHARD_TAG_LEN] = {
    'H', 'F', 'R', 'e', 'p', 'o', 'M', 'e',
    't', 'a', 'D', 'a', 't', 'a', 0x00, 0x55,
    0x69, 0x67, 0x45, 0x6a, 0x7b, 0x81, 0x57, 0x83,
    0xa5, 0xbd, 0xd9, 0x5c, 0xcd, 0xd1, 0x4a, 0xa9
};


void
xet_shard_parser_init(xet_shard_parser_t *p, xet_shard_record_pt handler,
    void *ctx)
{
    memset(p, 0, sizeof(xet_shard_parser_t));

    p->handler = handler;
    p->ctx = ctx;
    p->status = XET_OK;
    p->state = XET_SHARD_IN_HEADER;
}


xet_status_t
xet_shard_parser_feed(xet_shard_parser_t *p, const uint8_t *data, size_t len)
{
    size_t  n;

    while (len && p->status == XET_OK) {

        if (p->pending == 0 && len >= XET_SHARD_RECORD_LEN) {
            p->offset += XET_SHARD_RECORD_LEN;

            xet_shard_parser_record(p, data);

            data += XET_SHARD_RECORD_LEN;
            len -= XET_SHARD_RECORD_LEN;

            continue;
        }

        n = XET_SHARD_RECORD_LEN - p->pending;

        if (n > len) {
            n = len;
        }

        memcpy(p->record + p->pending, data, n);

        p->pending += (unsigned) n;
        p->offset += n;

        data += n;
        len -= n;

        if (p->pending == XET_SHARD_RECORD_LEN) {
            p->pending = 0;

            xet_shard_parser_record(p, p->record);
        }
    }

    return p->status;
}


xet_status_t
xet_shard_parser_finish(xet_shard_parser_t *p)
{
    if (p->status == XET_OK) {
        p->status = XET_SHARD_TRUNCATED;
    }

    return p->status == XET_DONE ? XET_OK : p->status;
}


void
xet_shard_record_decode(xet_shard_record_t *rec, xet_shard_kind_t kind,
    const uint8_t *data)
{
    memset(rec, 0, sizeof(xet_shard_record_t));

    rec->kind = kind;

    if (kind == XET_SHARD_REC_HEADER) {
        rec->version = xet_get_u64(data + 32);
        rec->footer_size = xet_get_u64(data + 40);
        return;
    }

    memcpy(rec->hash.bytes, data, XET_HASH_LEN);

    switch (kind) {

    case XET_SHARD_REC_FILE:
        rec->flags = xet_get_u32(data + 32);
        rec->count = xet_get_u32(data + 36);
        break;

    case XET_SHARD_REC_TERM:
        rec->flags = xet_get_u32(data + 32);
        rec->raw_length = xet_get_u32(data + 36);
        rec->chunk_start = xet_get_u32(data + 40);
        rec->chunk_end = xet_get_u32(data + 44);
        break;

    case XET_SHARD_REC_XORB:
        rec->flags = xet_get_u32(data + 32);
        rec->count = xet_get_u32(data + 36);
        rec->raw_length = xet_get_u32(data + 40);
        rec->stored_size = xet_get_u32(data + 44);
        break;

    case XET_SHARD_REC_CHUNK:
        rec->raw_start = xet_get_u32(data + 32);
        rec->raw_length = xet_get_u32(data + 36);
        rec->flags = xet_get_u32(data + 40);
        break;

    default: /* a hash only */
        break;
    }
}


static void
xet_shard_parser_record(xet_shard_parser_t *p, const uint8_t *data)
{
    xet_status_t        status;
    xet_shard_record_t  rec;

    status = xet_shard_parser_check(p, data, &rec);

    if (status == XET_OK && p->handler != NULL) {
        rec.offset = p->offset - XET_SHARD_RECORD_LEN;
        status = p->handler(p->ctx, &rec);
    }

    if (status != XET_OK) {

        /*
         * if the handler returned XET_DONE, it would look like the end of the
         * shard
         */

        p->status = (status == XET_DONE) ? XET_INTERNAL : status;
        return;
    }

    if (p->state == XET_SHARD_IN_REST) {
        p->status = XET_DONE;
    }
}


/* Decodes the record, checks it, and moves to the next state. */

static xet_status_t
xet_shard_parser_check(xet_shard_parser_t *p, const uint8_t *data,
    xet_shard_record_t *rec)
{
    if ((p->state == XET_SHARD_IN_FILES || p->state == XET_SHARD_IN_XORBS)
        && xet_shard_bytes_are(data, XET_HASH_LEN, 0xff))
    {
        return xet_shard_parser_bookend(p, data, rec);
    }

    xet_shard_record_decode(rec, xet_shard_kinds[p->state], data);

    switch (p->state) {

    case XET_SHARD_IN_HEADER:
        return xet_shard_parser_header(p, data, rec);

    case XET_SHARD_IN_FILES:
        return xet_shard_parser_file(p, rec);

    case XET_SHARD_IN_TERMS:
        return xet_shard_parser_term(p, rec);

    case XET_SHARD_IN_XORBS:
        return xet_shard_parser_xorb(p, rec);

    case XET_SHARD_IN_CHUNKS:
        return xet_shard_parser_chunk(p, rec);

    default: /* a verification or metadata record: a hash */
        p->left--;
        xet_shard_parser_next(p);

        return XET_OK;
    }
}


/* Checks the bookend of the file info section or the CAS info section. */

static xet_status_t
xet_shard_parser_bookend(xet_shard_parser_t *p, const uint8_t *data,
    xet_shard_record_t *rec)
{
    if (!xet_shard_bytes_are(data + XET_HASH_LEN,
                             XET_SHARD_RECORD_LEN - XET_HASH_LEN, 0))
    {
        return XET_SHARD_RECORD;
    }

    if (p->state == XET_SHARD_IN_FILES) {
        xet_shard_record_decode(rec, XET_SHARD_REC_FILES_END, data);
        p->files_end = p->offset - XET_SHARD_RECORD_LEN;
        p->state = XET_SHARD_IN_XORBS;

    } else {
        xet_shard_record_decode(rec, XET_SHARD_REC_XORBS_END, data);
        p->state = XET_SHARD_IN_REST;
    }

    return XET_OK;
}


static xet_status_t
xet_shard_parser_header(xet_shard_parser_t *p, const uint8_t *data,
    const xet_shard_record_t *rec)
{
    if (memcmp(data, xet_shard_tag, XET_SHARD_TAG_LEN) != 0) {
        return XET_SHARD_TAG;
    }

    if (rec->version != XET_SHARD_HEADER_VERSION) {
        return XET_SHARD_VERSION;
    }

    p->state = XET_SHARD_IN_FILES;

    return XET_OK;
}


static xet_status_t
xet_shard_parser_file(xet_shard_parser_t *p, const xet_shard_record_t *rec)
{
    xet_shard_verification_e  verification;

    if (rec->count > XET_SHARD_TERMS_MAX) {
        return XET_SHARD_COUNT;
    }

    if (rec->count == 0) {

        /* only the empty file has no terms; it needs no verification hashes */

        if (!xet_hash_is_zero(&rec->hash)) {
            return XET_SHARD_COUNT;
        }

    } else {
        verification = (rec->flags & XET_SHARD_FILE_VERIFICATION)
                       ? XET_SHARD_VERIFICATION_ALL
                       : XET_SHARD_VERIFICATION_NONE;

        if (p->verification && p->verification != verification) {
            return XET_SHARD_NO_VERIFICATION;
        }

        p->verification = verification;
    }

    p->files++;

    p->flags = rec->flags;
    p->count = rec->count;
    p->left = rec->count;
    p->raw = 0;
    p->state = XET_SHARD_IN_TERMS;

    xet_shard_parser_next(p);

    return XET_OK;
}


static xet_status_t
xet_shard_parser_term(xet_shard_parser_t *p, const xet_shard_record_t *rec)
{
    if (rec->chunk_start >= rec->chunk_end
        || rec->chunk_end > XET_XORB_CHUNKS_MAX)
    {
        return XET_SHARD_RECORD;
    }

    if (rec->raw_length == 0 || rec->raw_length > XET_SHARD_TERM_RAW_MAX) {
        return XET_SHARD_RECORD;
    }

    /* at most 2^26 terms of 2^30 bytes: the sums do not overflow */

    p->raw += rec->raw_length;
    p->chunks += rec->chunk_end - rec->chunk_start;
    p->terms++;
    p->left--;

    if (p->chunks_max != 0 && p->chunks > p->chunks_max) {
        return XET_SHARD_CHUNKS;
    }

    xet_shard_parser_next(p);

    return XET_OK;
}


static xet_status_t
xet_shard_parser_xorb(xet_shard_parser_t *p, const xet_shard_record_t *rec)
{
    if (rec->count > XET_XORB_CHUNKS_MAX) {
        return XET_SHARD_COUNT;
    }

    p->xorbs++;

    p->left = rec->count;
    p->raw = 0;
    p->state = XET_SHARD_IN_CHUNKS;

    xet_shard_parser_next(p);

    return XET_OK;
}


static xet_status_t
xet_shard_parser_chunk(xet_shard_parser_t *p, const xet_shard_record_t *rec)
{
    if (rec->raw_length == 0 || rec->raw_length > XET_CHUNK_MAX) {
        return XET_SHARD_RECORD;
    }

    p->raw += rec->raw_length;
    p->left--;

    xet_shard_parser_next(p);

    return XET_OK;
}


/* Changes the state if the list has no records left. */

static void
xet_shard_parser_next(xet_shard_parser_t *p)
{
    if (p->left) {
        return;
    }

    if (p->state == XET_SHARD_IN_CHUNKS) {
        p->state = XET_SHARD_IN_XORBS;
        return;
    }

    if (p->state == XET_SHARD_IN_TERMS
        && (p->flags & XET_SHARD_FILE_VERIFICATION)
        && p->count)
    {
        p->left = p->count;
        p->state = XET_SHARD_IN_VERIFICATION;
        return;
    }

    if (p->state != XET_SHARD_IN_METADATA
        && (p->flags & XET_SHARD_FILE_METADATA))
    {
        p->left = 1;
        p->state = XET_SHARD_IN_METADATA;
        return;
    }

    p->state = XET_SHARD_IN_FILES;
}


static int
xet_shard_bytes_are(const uint8_t *p, size_t n, uint8_t byte)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (p[i] != byte) {
            return 0;
        }
    }

    return 1;
}
