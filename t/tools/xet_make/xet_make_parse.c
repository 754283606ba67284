
/*
 * Prints a shard as JSON: an upload, or a dedup response with its footer.
 */


#include <string.h>

#include "xet_make/xet_make.h"


typedef struct {
    json_t    *files;
    json_t    *xorbs;
    json_t    *block;                  /* JSON of the current file or xorb */
    uint64_t   version;
    uint64_t   footer_size;
    uint64_t   raw;                    /* raw bytes of the file so far */
    uint64_t   xorbs_offset;
    uint64_t   end;                    /* end of the second section */
} xet_make_parse_t;


static void
xet_make_parse_append(json_t *block, const char *name, json_t *value)
{
    json_t  *list;

    list = json_object_get(block, name);

    if (list == NULL) {
        list = json_array();
        json_object_set_new(block, name, list);
    }

    json_array_append_new(list, value);
}


static void
xet_make_parse_file(xet_make_parse_t *p, const xet_shard_record_t *rec)
{
    json_t  *hash;

    hash = xet_make_json_hash(rec->hash.bytes);

    switch (rec->kind) {

    case XET_SHARD_REC_FILE:
        p->raw = 0;
        p->block = json_pack("{s:o,s:o,s:i,s:[]}", "hash", hash,
                             "flags", xet_make_json_u64(rec->flags),
                             "size", 0, "terms");
        json_array_append_new(p->files, p->block);
        break;

    case XET_SHARD_REC_TERM:
        xet_make_parse_append(p->block, "terms",
            json_pack("{s:o,s:o,s:o,s:o,s:o}", "xorb", hash,
                      "start", xet_make_json_u64(rec->chunk_start),
                      "end", xet_make_json_u64(rec->chunk_end),
                      "raw_length", xet_make_json_u64(rec->raw_length),
                      "flags", xet_make_json_u64(rec->flags)));

        p->raw += rec->raw_length;
        json_object_set_new(p->block, "size", xet_make_json_u64(p->raw));
        break;

    case XET_SHARD_REC_VERIFICATION:
        xet_make_parse_append(p->block, "verification", hash);
        break;

    default: /* XET_SHARD_REC_METADATA */
        json_object_set_new(p->block, "sha256", hash);
        break;
    }
}


static xet_status_t
xet_make_parse_record(void *ctx, const xet_shard_record_t *rec)
{
    xet_make_parse_t  *p = ctx;

    switch (rec->kind) {

    case XET_SHARD_REC_HEADER:
        p->version = rec->version;
        p->footer_size = rec->footer_size;
        break;

    case XET_SHARD_REC_FILES_END:
        p->xorbs_offset = rec->offset + XET_SHARD_RECORD_LEN;
        break;

    case XET_SHARD_REC_XORBS_END:
        p->end = rec->offset + XET_SHARD_RECORD_LEN;
        break;

    case XET_SHARD_REC_XORB:
        p->block = json_pack("{s:o,s:o,s:o,s:o,s:[]}",
                             "hash", xet_make_json_hash(rec->hash.bytes),
                             "flags", xet_make_json_u64(rec->flags),
                             "raw_size", xet_make_json_u64(rec->raw_length),
                             "stored_size",
                             xet_make_json_u64(rec->stored_size),
                             "chunks");
        json_array_append_new(p->xorbs, p->block);
        break;

    case XET_SHARD_REC_CHUNK:
        xet_make_parse_append(p->block, "chunks",
            json_pack("{s:o,s:o,s:o,s:o}",
                      "hash", xet_make_json_hash(rec->hash.bytes),
                      "raw_start", xet_make_json_u64(rec->raw_start),
                      "raw_length", xet_make_json_u64(rec->raw_length),
                      "flags", xet_make_json_u64(rec->flags)));
        break;

    default:
        xet_make_parse_file(p, rec);
        break;
    }

    return XET_OK;
}


static json_t *
xet_make_parse_footer(const uint8_t *f)
{
    char         key[2 * 32 + 1];
    json_t      *o;
    size_t       i;

    static const struct {
        const char  *name;
        size_t       offset;
    } fields[] = {
        { "version", 0 },
        { "files_offset", 8 },
        { "xorbs_offset", 16 },
        { "file_lookup_offset", 24 },
        { "file_lookup_count", 32 },
        { "xorb_lookup_offset", 40 },
        { "xorb_lookup_count", 48 },
        { "chunk_lookup_offset", 56 },
        { "chunk_lookup_count", 64 },
        { "created", 104 },
        { "expires", 112 },
        { "stored_on_disk", 168 },
        { "materialized", 176 },
        { "stored", 184 },
        { "footer_offset", 192 }
    };

    o = json_object();

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        json_object_set_new(o, fields[i].name,
            xet_make_json_u64(xet_get_u64(f + fields[i].offset)));
    }

    for (i = 0; i < 32; i++) {
        snprintf(key + i * 2, 3, "%02x", f[72 + i]);
    }

    json_object_set_new(o, "key", json_string(key));

    return o;
}


int
xet_make_parse_shard(int argc, char **argv)
{
    size_t               len;
    json_t              *footer;
    uint8_t             *data;
    xet_status_t         status;
    xet_make_parse_t     p;
    xet_shard_parser_t   parser;

    if (argc != 1) {
        xet_make_fatal("usage: parse-shard FILE");
    }

    data = xet_make_read(argv[0], &len);

    memset(&p, 0, sizeof(xet_make_parse_t));
    p.files = json_array();
    p.xorbs = json_array();

    xet_shard_parser_init(&parser, xet_make_parse_record, &p);

    status = xet_shard_parser_feed(&parser, data, len);
    if (status != XET_DONE) {
        xet_make_check(status, argv[0]);
    }

    xet_make_check(xet_shard_parser_finish(&parser), argv[0]);

    footer = json_null();

    if (p.footer_size == XET_SHARD_FOOTER_LEN
        && len - p.end >= XET_SHARD_FOOTER_LEN)
    {
        footer = xet_make_parse_footer(data + len - XET_SHARD_FOOTER_LEN);
    }

    xet_make_json_print(json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}",
        "version", xet_make_json_u64(p.version),
        "footer_size", xet_make_json_u64(p.footer_size),
        "size", xet_make_json_u64(len),
        "xorbs_offset", xet_make_json_u64(p.xorbs_offset),
        "end", xet_make_json_u64(p.end),
        "files", p.files, "xorbs", p.xorbs, "footer", footer));

    return 0;
}
