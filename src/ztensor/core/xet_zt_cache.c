
/*
 * Packs the check result of a file, and reports on its components, into bytes.
 *
 * Purpose:    saves the result of a check, so that a file, whose data never
 *             changes, is checked only once.  Pages, lookups and reports then
 *             use the saved bytes.
 * States:     none.
 * Ownership:  a restored record owns copies of all its data.
 * Threads:    any.
 *
 * Integers are little-endian.  The saved bytes begin with the format version,
 * the revision and limits of the checks, and the size of the file.  They end
 * with a hash of all preceding bytes, which detects damage.  Forged bytes with
 * a correct hash must still pass the checks of xet_zt_load_sane(): marks (the
 * positions where reading can start) are inside the manifest and ascend.  A
 * walk that starts at a mark parses the manifest like any untrusted input.
 *
 * A result other than XET_OK is saved as the code of the status, because the
 * numbers of statuses change between versions.  The status of a report is
 * saved as an index of xet_zt_report_statuses[], which grows only at its end.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_zt.h"


/* The revision of the checks: increment it when a check changes. */
#define XET_ZT_REVISION      2

#define XET_ZT_SAVED_VERSION  1


/* Saved bytes that are being written, or read if buf is NULL. */

typedef struct {
    xet_buf_t      *buf;
    XXH3_state_t   *hash;

    const uint8_t  *p;
    const uint8_t  *end;
    int             failed;
} xet_zt_saved_t;


static int xet_zt_saved_head(xet_zt_saved_t *s, xet_zt_t *zt);
static xet_status_t xet_zt_load(xet_zt_t *zt, xet_zt_saved_t *s);
static xet_status_t xet_zt_load_verdict(xet_zt_t *zt, xet_zt_saved_t *s);
static void xet_zt_saved_info(xet_zt_saved_t *s, xet_zt_info_t *info);
static void xet_zt_saved_index(xet_zt_saved_t *s, xet_zt_t *zt);
static void xet_zt_saved_overlaps(xet_zt_saved_t *s, xet_zt_t *zt);
static int xet_zt_load_sane(const xet_zt_info_t *info);
static xet_status_t xet_zt_load_attributes(xet_zt_t *zt, uint64_t hash,
    const uint8_t *data, size_t len);
static unsigned xet_zt_saved_u8(xet_zt_saved_t *s, unsigned v);
static uint64_t xet_zt_saved_u64(xet_zt_saved_t *s, uint64_t v);
static void xet_zt_saved_bytes(xet_zt_saved_t *s, void *data, size_t len);


static const xet_status_t  xet_zt_report_statuses[] = {
    XET_OK, XET_ZT_ZSTD, XET_ZT_LENGTH, XET_ZT_VALUES, XET_ZT_WINDOW,
    XET_ZT_DECODE_SIZE, XET_ZT_BOUNDS, XET_ZT_HEADER, XET_ZT_INDICES,
    XET_ZT_UNCHECKED
};

#define XET_ZT_REPORT_STATUSES                                                \
    (sizeof(xet_zt_report_statuses) / sizeof(xet_zt_report_statuses[0]))


uint64_t
xet_zt_rules(const xet_zt_limits_t *limits)
{
    unsigned  i;
    uint8_t   bytes[8 * 11];

    const uint64_t  rules[11] = {
        XET_ZT_REVISION, limits->manifest, limits->objects,
        limits->components, limits->roles, limits->rank, limits->depth,
        limits->name, limits->keys, limits->attributes, limits->strict
    };

    for (i = 0; i < 11; i++) {
        xet_put_u64(bytes + 8 * i, rules[i]);
    }

    return XXH3_64bits(bytes, sizeof(bytes));
}


xet_status_t
xet_zt_save(const xet_zt_t *zt, xet_status_t status, xet_buf_t *b)
{
    xet_zt_t         copy;
    const char      *code;
    xet_zt_saved_t   s;

    if (status == XET_OK && zt->extents.n > XET_ZT_SAVED_OVERLAPS) {
        return XET_DONE;
    }

    memset(&s, 0, sizeof(xet_zt_saved_t));

    s.buf = b;
    s.hash = XXH3_createState();

    if (s.hash == NULL || XXH3_64bits_reset(s.hash) != XXH_OK) {
        (void) XXH3_freeState(s.hash);
        return XET_NOMEM;
    }

    /* the order of names is useless without the names of marks */

    copy = *zt;

    if (zt->index.names == NULL) {
        copy.info.order = 0;
    }

    (void) xet_zt_saved_head(&s, &copy);

    code = (status == XET_OK) ? "" : xet_status_code(status);

    (void) xet_zt_saved_u8(&s, (unsigned) strlen(code));
    xet_zt_saved_bytes(&s, (void *) code, strlen(code));

    if (status == XET_OK) {
        xet_zt_saved_info(&s, &copy.info);
        xet_zt_saved_index(&s, &copy);
        xet_zt_saved_overlaps(&s, &copy);

        (void) xet_zt_saved_u64(&s, zt->attributes.data
                                    ? XXH3_64bits(zt->attributes.data,
                                                  zt->attributes.len)
                                    : 0);

    } else {
        (void) xet_zt_saved_u64(&s, zt->error_offset);
    }

    (void) xet_zt_saved_u64(&s, XXH3_64bits_digest(s.hash));

    (void) XXH3_freeState(s.hash);

    return xet_buf_status(b);
}


xet_status_t
xet_zt_restore(xet_zt_t **result, uint64_t size,
    const xet_zt_limits_t *limits, const uint8_t *data, size_t len,
    const uint8_t *attributes, size_t attributes_len)
{
    uint64_t        hash;
    xet_zt_t       *zt;
    xet_status_t    rc;
    xet_zt_saved_t  s;

    zt = xet_zt_create(size, limits);
    *result = zt;

    if (zt == NULL) {
        return XET_NOMEM;
    }

    if (len < 8 || len > XET_ZT_SAVED_MAX
        || xet_get_u64(data + len - 8) != XXH3_64bits(data, len - 8))
    {
        return XET_ZT_STALE;
    }

    memset(&s, 0, sizeof(xet_zt_saved_t));

    s.p = data;
    s.end = data + len - 8;

    if (!xet_zt_saved_head(&s, zt)) {
        return XET_ZT_STALE;
    }

    rc = xet_zt_load(zt, &s);

    if (rc == XET_NOMEM || rc == XET_ZT_STALE) {
        return rc;
    }

    hash = (rc == XET_OK) ? xet_zt_saved_u64(&s, 0) : 0;

    if (s.failed || s.p != s.end) {
        return XET_ZT_STALE;
    }

    zt->part = xet_zt_in_none;
    zt->status = rc;

    return (rc == XET_OK && attributes)
           ? xet_zt_load_attributes(zt, hash, attributes, attributes_len)
           : rc;
}


/*
 * Saves or loads the bytes up to the container.  Each function
 * xet_zt_saved_*() can save and load, so that both use the same format.
 * Returns 0 if the loaded bytes have another format, other rules, another file
 * size or an unknown container.
 */

static int
xet_zt_saved_head(xet_zt_saved_t *s, xet_zt_t *zt)
{
    uint64_t        rules;
    xet_zt_info_t  *info;

    info = &zt->info;
    rules = xet_zt_rules(&zt->limits);

    if (xet_zt_saved_u8(s, XET_ZT_SAVED_VERSION) != XET_ZT_SAVED_VERSION
        || xet_zt_saved_u64(s, rules) != rules
        || xet_zt_saved_u64(s, info->size) != info->size)
    {
        return 0;
    }

    info->ends.container = (xet_zt_container_t)
                           xet_zt_saved_u8(s, info->ends.container);

    return info->ends.container <= XET_ZT_CONTAINER_1_0;
}


/*
 * Loads a saved result.  Returns XET_OK, or the error that was saved;
 * XET_ZT_STALE if the bytes are invalid; or XET_NOMEM.
 */

static xet_status_t
xet_zt_load(xet_zt_t *zt, xet_zt_saved_t *s)
{
    xet_status_t  rc;

    rc = xet_zt_load_verdict(zt, s);

    if (rc != XET_OK || s->failed) {
        return s->failed ? XET_ZT_STALE : rc;
    }

    zt->index.names = calloc(XET_ZT_INDEX, sizeof(xet_zt_mark_name_t));
    if (zt->index.names == NULL) {
        return XET_NOMEM;
    }

    xet_zt_saved_info(s, &zt->info);
    xet_zt_saved_index(s, zt);
    xet_zt_saved_overlaps(s, zt);

    if (zt->info.order == 0) {
        free(zt->index.names);
        zt->index.names = NULL;
    }

    return (s->failed || !xet_zt_load_sane(&zt->info)) ? XET_ZT_STALE
                                                       : XET_OK;
}


static xet_status_t
xet_zt_load_verdict(xet_zt_t *zt, xet_zt_saved_t *s)
{
    int          i;
    char         text[UINT8_MAX];
    size_t       len;
    const char  *code;

    len = xet_zt_saved_u8(s, 0);

    if (len == 0) {
        return XET_OK;
    }

    xet_zt_saved_bytes(s, text, len);

    zt->error_offset = xet_zt_saved_u64(s, 0);

    if (s->failed || zt->error_offset > zt->info.size) {
        return XET_ZT_STALE;
    }

    /* no two of these statuses have the same code */

    for (i = XET_ZT_NOT_ZTENSOR; i <= XET_ZT_INDEX_DTYPE; i++) {
        code = xet_status_code((xet_status_t) i);

        if (strlen(code) == len && memcmp(code, text, len) == 0) {
            return (xet_status_t) i;
        }
    }

    return XET_ZT_STALE;
}


static void
xet_zt_saved_info(xet_zt_saved_t *s, xet_zt_info_t *info)
{
    xet_zt_ends_t  *ends;

    ends = &info->ends;

    ends->header_magic = (xet_zt_saved_u8(s, ends->header_magic) != 0);
    ends->manifest_offset = xet_zt_saved_u64(s, ends->manifest_offset);
    ends->manifest_length = xet_zt_saved_u64(s, ends->manifest_length);
    ends->manifest_hash = xet_zt_saved_u64(s, ends->manifest_hash);
    ends->data_start = xet_zt_saved_u64(s, ends->data_start);
    ends->data_end = xet_zt_saved_u64(s, ends->data_end);

    info->version_len = xet_zt_saved_u8(s, (unsigned) info->version_len);

    if (info->version_len > XET_ZT_VERSION_MAX) {
        s->failed = 1;
        return;
    }

    xet_zt_saved_bytes(s, info->version, info->version_len);

    info->warnings = xet_zt_saved_u8(s, info->warnings);

    info->count = xet_zt_saved_u64(s, info->count);
    info->components = xet_zt_saved_u64(s, info->components);
    info->invalid = xet_zt_saved_u64(s, info->invalid);
    info->unsupported = xet_zt_saved_u64(s, info->unsupported);
    info->bytes = xet_zt_saved_u64(s, info->bytes);
    info->objects_end = xet_zt_saved_u64(s, info->objects_end);
}


/* Saves or loads the marks, and their names if names are ordered. */

static void
xet_zt_saved_index(xet_zt_saved_t *s, xet_zt_t *zt)
{
    unsigned             i;
    uint64_t             n;
    xet_zt_info_t       *info;
    xet_zt_mark_name_t  *name;

    info = &zt->info;

    info->stride = xet_zt_saved_u64(s, info->stride);
    n = xet_zt_saved_u64(s, info->index_n);
    info->order = xet_zt_saved_u8(s, info->order);

    if (s->failed || n > XET_ZT_INDEX
        || info->order > (XET_ZT_ORDER_BYTES|XET_ZT_ORDER_LENGTH))
    {
        s->failed = 1;
        return;
    }

    info->index_n = (unsigned) n;

    for (i = 0; i < info->index_n; i++) {
        info->index[i] = xet_zt_saved_u64(s, info->index[i]);

        if (info->order == 0) {
            continue;
        }

        name = &zt->index.names[i];
        name->len = (uint8_t) xet_zt_saved_u8(s, name->len);

        if (name->len > XET_ZT_MARK_NAME) {
            s->failed = 1;
            return;
        }

        xet_zt_saved_bytes(s, name->data, name->len);
    }
}


static void
xet_zt_saved_overlaps(xet_zt_saved_t *s, xet_zt_t *zt)
{
    uint64_t         i, n;
    xet_zt_extent_t  e;

    n = xet_zt_saved_u64(s, zt->extents.n);

    if (n > XET_ZT_SAVED_OVERLAPS) {
        s->failed = 1;
    }

    memset(&e, 0, sizeof(xet_zt_extent_t));

    for (i = 0; i < n && !s->failed; i++) {

        if (s->buf) {
            e = ((const xet_zt_extent_t *) zt->extents.items)[i];
        }

        e.file = xet_zt_saved_u64(s, e.file);
        e.offset = xet_zt_saved_u64(s, e.offset);
        e.length = xet_zt_saved_u64(s, e.length);

        if (s->buf == NULL && !s->failed
            && xet_zt_extents_add(&zt->extents, e.file, e.offset, e.length)
               != XET_OK)
        {
            s->failed = 1;
        }
    }
}


static int
xet_zt_load_sane(const xet_zt_info_t *info)
{
    unsigned              i;
    const xet_zt_ends_t  *ends;

    ends = &info->ends;

    if ((ends->container != XET_ZT_CONTAINER_1
         && ends->container != XET_ZT_CONTAINER_2)
        || ends->manifest_offset > info->size
        || ends->manifest_length > info->size - ends->manifest_offset
        || ends->data_start > ends->data_end
        || ends->data_end > info->size
        || info->objects_end > ends->manifest_length
        || info->stride == 0
        || (info->count != 0) != (info->index_n != 0)
        || (info->count
            && (info->count - 1) / info->stride != info->index_n - 1))
    {
        return 0;
    }

    for (i = 0; i < info->index_n; i++) {
        if (info->index[i] >= info->objects_end
            || (i && info->index[i] <= info->index[i - 1]))
        {
            return 0;
        }
    }

    return 1;
}


static xet_status_t
xet_zt_load_attributes(xet_zt_t *zt, uint64_t hash, const uint8_t *data,
    size_t len)
{
    uint8_t  *p;

    if (XXH3_64bits(data, len) != hash) {
        return XET_ZT_STALE;
    }

    p = malloc(len ? len : 1);
    if (p == NULL) {
        return XET_NOMEM;
    }

    if (len) {
        memcpy(p, data, len);
    }

    zt->attributes.data = p;
    zt->attributes.len = len;

    return XET_OK;
}


/* Saves v and returns it, or loads a byte and returns that byte. */

static unsigned
xet_zt_saved_u8(xet_zt_saved_t *s, unsigned v)
{
    uint8_t  byte;

    byte = (uint8_t) v;
    xet_zt_saved_bytes(s, &byte, 1);

    return byte;
}


static uint64_t
xet_zt_saved_u64(xet_zt_saved_t *s, uint64_t v)
{
    uint8_t  bytes[8];

    xet_put_u64(bytes, v);
    xet_zt_saved_bytes(s, bytes, sizeof(bytes));

    return xet_get_u64(bytes);
}


/*
 * Saves or loads len bytes.  If fewer bytes are left to load, loads zeros and
 * sets s->failed.
 */

static void
xet_zt_saved_bytes(xet_zt_saved_t *s, void *data, size_t len)
{
    if (len == 0) {
        return;
    }

    if (s->buf) {
        (void) XXH3_64bits_update(s->hash, data, len);
        xet_buf_write(s->buf, data, len);
        return;
    }

    if (s->failed || len > (size_t) (s->end - s->p)) {
        s->failed = 1;
        memset(data, 0, len);
        return;
    }

    memcpy(data, s->p, len);
    s->p += len;
}


uint64_t
xet_zt_report_rules(const xet_zt_limits_t *limits,
    const xet_zt_decode_limits_t *decode)
{
    uint8_t  bytes[24];

    xet_put_u64(bytes, xet_zt_rules(limits));
    xet_put_u64(bytes + 8, decode->output);
    xet_put_u64(bytes + 16, decode->window_log);

    return XXH3_64bits(bytes, sizeof(bytes));
}


int
xet_zt_report_pack(uint8_t *dst, const xet_zt_report_t *report)
{
    unsigned  i;

    for (i = 0; i < XET_ZT_REPORT_STATUSES; i++) {
        if (xet_zt_report_statuses[i] == report->status) {
            dst[0] = (uint8_t) report->digest;
            dst[1] = (uint8_t) i;

            return 1;
        }
    }

    return 0;
}


int
xet_zt_report_unpack(xet_zt_report_t *report, const uint8_t *src)
{
    if (src[0] > XET_ZT_DIGEST_UNREADABLE || src[1] >= XET_ZT_REPORT_STATUSES)
    {
        return 0;
    }

    report->digest = (xet_zt_digest_verdict_t) src[0];
    report->status = xet_zt_report_statuses[src[1]];

    return 1;
}
