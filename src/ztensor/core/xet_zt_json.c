
/*
 * JSON responses.
 *
 * Purpose:    writes the responses; only this file names their members.
 * States:     the states of the JSON writer.  A page counts its objects; a
 *             verification records whether any check failed.
 * Ownership:  the caller owns all arguments; nothing is copied or released.
 * Threads:    one at a time.
 *
 * In container 1, a name may be any UTF-8 text, even with zero bytes, which
 * the JSON writer escapes.  Integers are written exactly: a dimension may need
 * 64 bits.
 *
 * A page is limited in objects and in bytes, because names, attributes and
 * errors may be as large as the manifest allows.
 */


#include "xet_zt.h"


static void xet_zt_json_file(xet_json_t *j, const xet_zt_t *zt,
    const uint8_t *id, size_t id_len);
static void xet_zt_json_attributes(xet_json_t *j, const xet_zt_text_t *text,
    int cut);
static void xet_zt_json_warnings(xet_json_t *j, unsigned warnings);
static void xet_zt_json_shape(xet_json_t *j, const xet_zt_object_t *o);
static void xet_zt_json_component(xet_json_t *j, const xet_zt_component_t *c);
static void xet_zt_json_verdict(xet_json_t *j, const xet_zt_object_t *o);
static void xet_zt_json_text(xet_json_t *j, const char *key,
    const xet_zt_text_t *text);


void
xet_zt_page_begin(xet_zt_page_t *page, xet_json_t *j, const xet_zt_t *zt,
    const uint8_t *id, size_t id_len, uint64_t limit, uint64_t bytes)
{
    const xet_zt_info_t  *info;

    page->json = j;
    page->limit = limit;
    page->bytes = bytes;
    page->n = 0;
    page->last = 0;
    page->start = j->buf->size;
    page->more = 0;

    info = xet_zt_info(zt);

    xet_json_object_begin(j);

    xet_zt_json_file(j, zt, id, id_len);

    xet_json_key(j, "version");

    if (info->ends.container == XET_ZT_CONTAINER_2) {
        xet_json_cstring(j, "2");

    } else {
        xet_json_string(j, info->version, info->version_len);
    }

    xet_json_put_bool(j, "header_magic", (int) info->ends.header_magic);

    xet_json_key(j, "manifest");
    xet_json_object_begin(j);
    xet_json_put_u64(j, "offset", info->ends.manifest_offset);
    xet_json_put_u64(j, "length", info->ends.manifest_length);
    xet_json_object_end(j);

    xet_zt_json_attributes(j, xet_zt_attributes(zt),
                           (info->warnings & XET_ZT_WARN_ATTRIBUTES) != 0);

    xet_json_put_u64(j, "count", info->count);

    xet_zt_json_warnings(j, info->warnings);

    xet_json_key(j, "objects");
    xet_json_array_begin(j);
}


xet_status_t
xet_zt_page_object(void *ctx, xet_zt_object_t *o)
{
    xet_zt_page_t  *page;

    page = ctx;

    if (page->n == page->limit
        || (page->n && page->json->buf->size - page->start > page->bytes))
    {
        page->more = 1;
        return XET_DONE;
    }

    xet_zt_object_json(page->json, o);

    page->n++;
    page->last = o->index;

    return xet_buf_status(page->json->buf);
}


void
xet_zt_page_end(xet_zt_page_t *page)
{
    xet_json_t  *j;

    j = page->json;

    xet_json_array_end(j);

    xet_json_key(j, "next");

    if (page->more) {
        xet_json_u64(j, page->last);

    } else {
        xet_json_null(j);
    }

    xet_json_object_end(j);
}


void
xet_zt_object_json(xet_json_t *j, const xet_zt_object_t *o)
{
    unsigned  i;

    xet_json_object_begin(j);

    xet_json_put_u64(j, "i", o->index);

    xet_zt_json_text(j, "name", &o->name);
    xet_zt_json_shape(j, o);
    xet_zt_json_text(j, "format", &o->format);
    xet_zt_json_attributes(j, &o->attributes, (int) o->attributes_cut);
    xet_zt_json_verdict(j, o);

    xet_json_key(j, "components");
    xet_json_object_begin(j);

    for (i = 0; i < o->n; i++) {
        xet_zt_json_component(j, &o->components[i]);
    }

    xet_json_object_end(j);

    xet_json_object_end(j);
}


void
xet_zt_audit_begin(xet_zt_audit_t *a, xet_json_t *j, const xet_zt_t *zt,
    const uint8_t *id, size_t id_len)
{
    a->json = j;
    a->container = xet_zt_info(zt)->ends.container;
    a->checked = 0;
    a->bytes = 0;
    a->failed = 0;

    xet_json_object_begin(j);

    xet_zt_json_file(j, zt, id, id_len);

    xet_json_key(j, "objects");
    xet_json_array_begin(j);
}


void
xet_zt_audit_object(xet_zt_audit_t *a, const xet_zt_object_t *o)
{
    xet_json_t  *j;

    j = a->json;

    xet_json_object_begin(j);

    xet_json_put_u64(j, "i", o->index);

    xet_zt_json_text(j, "name", &o->name);

    xet_json_key(j, "components");
    xet_json_object_begin(j);
}


void
xet_zt_audit_component(xet_zt_audit_t *a, xet_zt_object_t *o,
    const xet_zt_component_t *c, const xet_zt_report_t *report)
{
    xet_zt_verdict_t  verdict;

    if (report->digest != XET_ZT_DIGEST_UNCHECKED) {
        a->checked++;
        a->bytes += (c->shard.data == NULL) ? c->length : 0;
    }

    if (!xet_zt_report_ok(report, a->container)) {
        a->failed = 1;
    }

    xet_json_key_n(a->json, c->role.data, c->role.len);
    xet_json_cstring(a->json, xet_zt_digest_name(report->digest));

    if (report->status != XET_OK) {

        /* the verdict is about the description, not about the data */

        verdict = o->verdict;
        xet_zt_object_error(o, report->status);
        o->verdict = verdict;
    }
}


void
xet_zt_audit_object_end(xet_zt_audit_t *a, const xet_zt_object_t *o)
{
    if (o->verdict != XET_ZT_OBJECT_OK) {
        a->failed = 1;
    }

    xet_json_object_end(a->json);

    xet_zt_json_verdict(a->json, o);

    xet_json_object_end(a->json);
}


void
xet_zt_audit_end(xet_zt_audit_t *a)
{
    xet_json_t  *j;

    j = a->json;

    xet_json_array_end(j);

    xet_json_put_u64(j, "checked", a->checked);
    xet_json_put_u64(j, "bytes", a->bytes);

    xet_json_put_bool(j, "ok", !a->failed);

    xet_json_object_end(j);
}


void
xet_zt_error_json(xet_json_t *j, const xet_zt_t *zt, xet_status_t status)
{
    const char  *name;

    xet_json_object_begin(j);
    xet_json_key(j, "error");
    xet_json_object_begin(j);

    xet_json_put_cstring(j, "code", xet_status_code(status));

    xet_json_put_cstring(j, "message", xet_status_text(status));

    name = xet_zt_container_name(xet_zt_info(zt)->ends.container);

    if (name) {
        xet_json_put_cstring(j, "container", name);
    }

    if (xet_zt_error_offset(zt)) {
        xet_json_put_u64(j, "offset", xet_zt_error_offset(zt));
    }

    xet_json_object_end(j);
    xet_json_object_end(j);
}


const char *
xet_zt_container_name(xet_zt_container_t container)
{
    switch (container) {

    case XET_ZT_CONTAINER_1:
        return "1.1";

    case XET_ZT_CONTAINER_2:
        return "2";

    case XET_ZT_CONTAINER_0_1:
        return "0.1";

    case XET_ZT_CONTAINER_1_0:
        return "1.0";

    default: /* XET_ZT_CONTAINER_NONE */
        return NULL;
    }
}


static void
xet_zt_json_file(xet_json_t *j, const xet_zt_t *zt, const uint8_t *id,
    size_t id_len)
{
    const xet_zt_info_t  *info;

    info = xet_zt_info(zt);

    xet_json_put_string(j, "file", id, id_len);

    xet_json_put_u64(j, "size", info->size);

    xet_json_put_cstring(j, "container",
                         xet_zt_container_name(info->ends.container));
}


static void
xet_zt_json_attributes(xet_json_t *j, const xet_zt_text_t *text, int cut)
{
    xet_json_key(j, "attributes");

    if (cut) {
        xet_json_null(j);

    } else if (text->data) {
        xet_zt_attributes_json(j, text->data, text->len);

    } else {
        xet_json_object_begin(j);
        xet_json_object_end(j);
    }
}


static void
xet_zt_json_warnings(xet_json_t *j, unsigned warnings)
{
    unsigned  i;

    static const char *const  names[] = {
        "missing_header_magic", "unknown_version", "overlap",
        "attributes_not_echoed"
    };

    xet_json_key(j, "warnings");
    xet_json_array_begin(j);

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (warnings & (1u << i)) {
            xet_json_cstring(j, names[i]);
        }
    }

    xet_json_array_end(j);
}


static void
xet_zt_json_shape(xet_json_t *j, const xet_zt_object_t *o)
{
    unsigned  i;

    xet_json_key(j, "shape");

    if (o->rank > XET_ZT_RANK_MAX) {
        xet_json_null(j);
        return;
    }

    xet_json_array_begin(j);

    for (i = 0; i < o->rank; i++) {
        xet_json_u64(j, o->shape[i]);
    }

    xet_json_array_end(j);
}


static void
xet_zt_json_component(xet_json_t *j, const xet_zt_component_t *c)
{
    xet_json_key_n(j, c->role.data, c->role.len);
    xet_json_object_begin(j);

    xet_zt_json_text(j, "dtype", &c->dtype);

    if (c->type.data) {
        xet_zt_json_text(j, "type", &c->type);
    }

    if (c->shard.data) {
        xet_zt_json_text(j, "shard", &c->shard);
    }

    xet_json_put_u64(j, "offset", c->offset);
    xet_json_put_u64(j, "length", c->length);

    if (c->encoding.data) {
        xet_zt_json_text(j, "encoding", &c->encoding);

    } else {
        xet_json_put_cstring(j, "encoding", "raw");
    }

    xet_json_key(j, "decoded_length");

    if (c->has_decoded) {
        xet_json_u64(j, c->decoded);

    } else {
        xet_json_null(j);
    }

    xet_zt_json_text(j, "digest", &c->digest);

    xet_json_object_end(j);
}


static void
xet_zt_json_verdict(xet_json_t *j, const xet_zt_object_t *o)
{
    unsigned  i;

    static const char *const  names[] = { "ok", "unsupported", "invalid" };

    xet_json_put_cstring(j, "status", names[o->verdict]);

    xet_json_key(j, "errors");
    xet_json_array_begin(j);

    for (i = 0; i < o->errors_n; i++) {
        xet_json_cstring(j, xet_status_code(o->errors[i]));
    }

    xet_json_array_end(j);
}


static void
xet_zt_json_text(xet_json_t *j, const char *key, const xet_zt_text_t *text)
{
    xet_json_key(j, key);

    if (text->data) {
        xet_json_string(j, text->data, text->len);

    } else {
        xet_json_null(j);
    }
}


