
/*
 * Builds shards from a description.  The description:
 *
 *     { "files": [
 *           { "hash": H, "sha256": hex, "verification": true,
 *             "terms": [ { "xorb": H, "start": a, "end": b,
 *                          "chunks": [ { "hash": H, "raw_length": n } ],
 *                          "raw_length": n, "verification": H } ] } ],
 *       "xorbs": [
 *           { "hash": H, "chunks": [ { "hash": H, "raw_length": n,
 *                                      "flags": n } ],
 *             "raw_size": n, "stored_size": n } ],
 *       "footer": "none" | "js" | "full",
 *       "key": hex, "created": n, "expires": n }
 *
 * Omitted hashes and lengths are computed.  A term without chunks takes them
 * from the xorb of that hash in the same description.  An omitted stored_size
 * is 0, as hf_xet writes it.  With "key", the chunk hashes of the xorbs are
 * replaced by their keyed hashes, as in dedup responses.  The footer "js" has
 * no totals and no lookup offsets; "full" also has the tables that old clients
 * write.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_make/xet_make.h"


typedef struct {
    uint64_t             hash;         /* first 8 bytes of the hash */
    uint32_t             record;       /* the block's index in its section */
    uint32_t             index;        /* index of a chunk in its xorb */
} xet_make_lookup_t;


typedef struct {
    json_t              *spec;
    json_t              *xorbs;
    xet_buf_t            b;
    uint8_t              key[32];
    unsigned             keyed:1;

    size_t               files_offset;
    size_t               xorbs_offset;
    uint64_t             raw_total;
    uint64_t             stored_total;

    xet_make_lookup_t   *lookups[3];   /* files, xorbs, chunks */
    size_t               nlookups[3];
    size_t               room[3];
} xet_make_shard_t;


static const char *
xet_make_string(json_t *o, const char *name)
{
    json_t  *v;

    v = json_object_get(o, name);

    if (v != NULL && !json_is_string(v)) {
        xet_make_fatal("\"%s\" is not a string", name);
    }

    return v ? json_string_value(v) : NULL;
}


static uint32_t
xet_make_u32(json_t *o, const char *name, uint64_t value)
{
    json_t  *v;

    v = json_object_get(o, name);

    if (v != NULL) {
        if (!json_is_integer(v) || json_integer_value(v) < 0) {
            xet_make_fatal("\"%s\" is not a number", name);
        }

        value = (uint64_t) json_integer_value(v);
    }

    if (value > UINT32_MAX) {
        xet_make_fatal("\"%s\" does not fit into 32 bits", name);
    }

    return (uint32_t) value;
}


static void
xet_make_need_hash(xet_hash_t *hash, json_t *o, const char *name)
{
    const char  *s;

    s = xet_make_string(o, name);
    if (s == NULL) {
        xet_make_fatal("no \"%s\"", name);
    }

    xet_make_hash(hash, s);
}


static void
xet_make_lookup(xet_make_shard_t *s, unsigned table, const xet_hash_t *hash,
    size_t record, size_t index)
{
    xet_make_lookup_t  *l;

    if (s->nlookups[table] == s->room[table]) {
        s->room[table] = s->room[table] ? s->room[table] * 2 : 64;
        l = xet_make_alloc(s->room[table], sizeof(xet_make_lookup_t));

        if (s->lookups[table]) {
            memcpy(l, s->lookups[table],
                   s->nlookups[table] * sizeof(xet_make_lookup_t));
            free(s->lookups[table]);
        }

        s->lookups[table] = l;
    }

    l = &s->lookups[table][s->nlookups[table]++];
    l->hash = xet_get_u64(hash->bytes);
    l->record = (uint32_t) record;
    l->index = (uint32_t) index;
}


static int
xet_make_lookup_cmp(const void *one, const void *two)
{
    const xet_make_lookup_t  *a = one, *b = two;

    return a->hash < b->hash ? -1 : a->hash > b->hash;
}


/* Returns the chunks of a term, and the index of the first chunk in *start. */

static json_t *
xet_make_term_chunks(xet_make_shard_t *s, json_t *term, uint32_t *start,
    uint32_t *end)
{
    size_t       i;
    json_t      *xorb, *chunks;
    const char  *hash, *name;

    *start = xet_make_u32(term, "start", 0);
    *end = xet_make_u32(term, "end", 0);

    chunks = json_object_get(term, "chunks");

    if (chunks != NULL) {
        *end = (uint32_t) json_array_size(chunks);
        *start = 0;

        return chunks;
    }

    name = xet_make_string(term, "xorb");

    json_array_foreach(s->xorbs, i, xorb) {
        hash = xet_make_string(xorb, "hash");

        if (name && hash && strcmp(name, hash) == 0) {
            chunks = json_object_get(xorb, "chunks");

            if (*start > *end || *end > json_array_size(chunks)) {
                xet_make_fatal("a term outside its xorb needs \"chunks\"");
            }

            return chunks;
        }
    }

    xet_make_fatal("a term of an unlisted xorb needs \"chunks\"");
}


static uint64_t
xet_make_term(xet_make_shard_t *s, json_t *term, xet_merkle_t *merkle,
    xet_hash_t *verification)
{
    json_t      *chunks, *chunk;
    uint8_t     *hashes;
    uint32_t     start, end, i, len;
    uint64_t     sum;
    xet_hash_t   hash;

    chunks = xet_make_term_chunks(s, term, &start, &end);
    hashes = xet_make_alloc(end - start, XET_HASH_LEN);
    sum = 0;

    for (i = start; i < end; i++) {
        chunk = json_array_get(chunks, i);
        len = xet_make_u32(chunk, "raw_length", 0);

        xet_make_need_hash(&hash, chunk, "hash");
        xet_merkle_add(merkle, hash.bytes, len);
        memcpy(hashes + (size_t) (i - start) * XET_HASH_LEN, hash.bytes,
               XET_HASH_LEN);
        sum += len;
    }

    if (json_object_get(term, "verification")) {
        xet_make_need_hash(verification, term, "verification");

    } else {
        xet_hash_verification(&xet_suite_default, hashes, end - start,
                              verification);
    }

    free(hashes);

    xet_make_need_hash(&hash, term, "xorb");
    xet_shard_build_term(&s->b, &hash,
                            xet_make_u32(term, "raw_length", sum),
                            xet_make_u32(term, "start", 0),
                            xet_make_u32(term, "end", 0));
    s->raw_total += sum;

    return sum;
}


static void
xet_make_sha256(xet_buf_t *b, const char *hex)
{
    uint8_t  digest[32];

    xet_make_key(digest, hex);
    xet_shard_build_metadata(b, digest);
}


/*
 * The file's block precedes its terms, but its hash is known only after the
 * terms, so the terms are first built in a separate buffer.
 */

static json_t *
xet_make_file(xet_make_shard_t *s, json_t *file)
{
    size_t           i, n;
    json_t          *terms, *term, *verification;
    uint32_t         flags;
    uint64_t         size;
    xet_buf_t        outer, inner;
    xet_hash_t      *hashes, hash, root;
    const char      *sha256;
    xet_merkle_t     merkle;
    xet_buf_node_t  *node;

    terms = json_object_get(file, "terms");
    n = json_array_size(terms);
    hashes = xet_make_alloc(n, sizeof(xet_hash_t));
    sha256 = xet_make_string(file, "sha256");
    verification = json_object_get(file, "verification");

    flags = (json_is_false(verification) ? 0 : XET_SHARD_FILE_VERIFICATION)
            | (sha256 ? XET_SHARD_FILE_METADATA : 0);

    xet_merkle_init(&merkle, &xet_suite_default);
    size = 0;

    outer = s->b;
    xet_buf_init(&s->b, xet_make_buf_alloc, NULL, 0);

    json_array_foreach(terms, i, term) {
        size += xet_make_term(s, term, &merkle, &hashes[i]);
    }

    inner = s->b;
    s->b = outer;

    xet_merkle_finish(&merkle, &root);
    xet_hash_file(&xet_suite_default, &root, &hash);

    if (json_object_get(file, "hash")) {
        xet_make_need_hash(&hash, file, "hash");
    }

    xet_make_lookup(s, 0, &hash, (s->b.size - s->files_offset)
                                 / XET_SHARD_RECORD_LEN, 0);

    xet_shard_build_file(&s->b, &hash, flags, (uint32_t) n);

    for (node = inner.first; node; node = node->next) {
        xet_buf_write(&s->b, node->start, (size_t) (node->pos - node->start));
    }

    for (i = 0; i < n && flags & XET_SHARD_FILE_VERIFICATION; i++) {
        xet_shard_build_verification(&s->b, &hashes[i]);
    }

    if (sha256) {
        xet_make_sha256(&s->b, sha256);
    }

    free(hashes);

    return json_pack("{s:o,s:o}", "hash", xet_make_json_hash(hash.bytes),
                     "size", xet_make_json_u64(size));
}


static void
xet_make_xorb_block(xet_make_shard_t *s, json_t *xorb)
{
    size_t       i, n, record;
    json_t      *chunks, *chunk;
    uint32_t     len, start, stored;
    uint64_t     sum;
    xet_hash_t   hash, clear;

    chunks = json_object_get(xorb, "chunks");
    n = json_array_size(chunks);
    sum = 0;

    json_array_foreach(chunks, i, chunk) {
        sum += xet_make_u32(chunk, "raw_length", 0);
    }

    record = (s->b.size - s->xorbs_offset) / XET_SHARD_RECORD_LEN;
    stored = xet_make_u32(xorb, "stored_size", 0);
    s->stored_total += stored;

    xet_make_need_hash(&hash, xorb, "hash");
    xet_make_lookup(s, 1, &hash, record, 0);
    xet_shard_build_xorb(&s->b, &hash, (uint32_t) n,
                         xet_make_u32(xorb, "raw_size", sum), stored);
    start = 0;

    json_array_foreach(chunks, i, chunk) {
        len = xet_make_u32(chunk, "raw_length", 0);

        xet_make_need_hash(&hash, chunk, "hash");
        if (s->keyed) {
            clear = hash;
            xet_hash_keyed(s->key, clear.bytes, XET_HASH_LEN, &hash);
        }

        xet_make_lookup(s, 2, &hash, record, i);
        xet_shard_build_chunk(&s->b, hash.bytes, start, len,
                              xet_make_u32(chunk, "flags", 0));
        start += len;
    }
}


/*
 * Appends the footer; if full is set, with the lookup tables before it.  The
 * core's builder can't write such a footer: its lookup tables are always empty.
 */

static void
xet_make_footer(xet_make_shard_t *s, int full)
{
    size_t    i, k;
    uint8_t   row[16], footer[XET_SHARD_FOOTER_LEN];
    uint64_t  offsets[3];

    memset(footer, 0, sizeof(footer));
    memset(offsets, 0, sizeof(offsets));

    for (k = 0; full && k < 3; k++) {
        offsets[k] = s->b.size;

        qsort(s->lookups[k], s->nlookups[k], sizeof(xet_make_lookup_t),
              xet_make_lookup_cmp);

        for (i = 0; i < s->nlookups[k]; i++) {
            xet_put_u64(row, s->lookups[k][i].hash);
            xet_put_u32(row + 8, s->lookups[k][i].record);
            xet_put_u32(row + 12, s->lookups[k][i].index);
            xet_buf_write(&s->b, row, k == 2 ? 16 : 12);
        }
    }

    xet_put_u64(footer, 1);
    xet_put_u64(footer + 8, s->files_offset);
    xet_put_u64(footer + 16, s->xorbs_offset);

    for (k = 0; full && k < 3; k++) {
        xet_put_u64(footer + 24 + k * 16, offsets[k]);
        xet_put_u64(footer + 32 + k * 16, s->nlookups[k]);
    }

    memcpy(footer + 72, s->key, 32);
    xet_put_u64(footer + 104, xet_make_u32(s->spec, "created", 0));
    xet_put_u64(footer + 112, xet_make_u32(s->spec, "expires", 0));

    if (full) {
        xet_put_u64(footer + 168, s->stored_total);
        xet_put_u64(footer + 176, s->raw_total);
        xet_put_u64(footer + 184, s->stored_total);
    }

    xet_put_u64(footer + 192, s->b.size);

    xet_buf_write(&s->b, footer, sizeof(footer));
}


int
xet_make_shard(int argc, char **argv)
{
    FILE              *f;
    size_t             i;
    json_t            *files, *file, *xorb;
    const char        *footer, *key;
    json_error_t       error;
    xet_buf_node_t    *node;
    xet_make_shard_t   s;

    if (argc != 2) {
        xet_make_fatal("usage: shard SPEC.json OUT");
    }

    memset(&s, 0, sizeof(xet_make_shard_t));

    s.spec = json_load_file(argv[0], 0, &error);
    if (s.spec == NULL) {
        xet_make_fatal("%s:%d: %s", argv[0], error.line, error.text);
    }

    s.xorbs = json_object_get(s.spec, "xorbs");
    footer = xet_make_string(s.spec, "footer");
    footer = footer ? footer : "none";

    if (strcmp(footer, "none") != 0 && strcmp(footer, "js") != 0
        && strcmp(footer, "full") != 0)
    {
        xet_make_fatal("unknown footer \"%s\"", footer);
    }

    key = xet_make_string(s.spec, "key");
    if (key) {
        xet_make_key(s.key, key);
        s.keyed = 1;
    }

    xet_buf_init(&s.b, xet_make_buf_alloc, NULL, 65536);
    xet_shard_build_header(&s.b, strcmp(footer, "none")
                                 ? XET_SHARD_FOOTER_LEN : 0);
    files = json_array();
    s.files_offset = s.b.size;

    json_array_foreach(json_object_get(s.spec, "files"), i, file) {
        json_array_append_new(files, xet_make_file(&s, file));
    }

    xet_shard_build_bookend(&s.b);
    s.xorbs_offset = s.b.size;

    json_array_foreach(s.xorbs, i, xorb) {
        xet_make_xorb_block(&s, xorb);
    }

    xet_shard_build_bookend(&s.b);

    if (strcmp(footer, "none") != 0) {
        xet_make_footer(&s, strcmp(footer, "full") == 0);
    }

    xet_make_check(xet_buf_status(&s.b), "shard");

    f = xet_make_open(argv[1]);

    for (node = s.b.first; node; node = node->next) {
        xet_make_put(f, node->start, (size_t) (node->pos - node->start));
    }

    xet_make_close(f);
    xet_make_json_print(json_pack("{s:o}", "files", files));

    return 0;
}
