
/*
 * Tests each reference file, in pieces of any size: its outcome must be the
 * one that docs/ztensor.md and the tables shipped with the files define.
 *
 * An outcome is the code of the file or of each object, then the result of
 * verification: a verdict for each component, the errors found in the data, and
 * the overall result.  The contents of indices are not checked, so three files
 * that the tables reject are valid here.
 */


#include <dirent.h>

#include "zt_bytes.h"


#define WORDS_MAX  1024


/* A row without an outcome starts a folder. */

typedef struct {
    const char         *name;
    const char         *outcome;
    const char         *verify;
} row_t;


typedef struct {
    char                text[WORDS_MAX];
    size_t              len;
    char                last[64];      /* last word, for runs of equal words */
    unsigned            run;
} words_t;


typedef struct {
    const xet_zt_t     *zt;
    const uint8_t      *data;
    xet_zt_verifier_t  *verifier;
    words_t             listed;
    words_t             verified;
    unsigned            failed;
    unsigned            n;
    unsigned            all_ok;
} context_t;


static const row_t  rows[] = {
    { "v1.1-edge", NULL, NULL },
    { "c01-valid-base", "ok", "absent ok" },
    { "c02-header-magic-wrong", "bad_header_magic", "-" },
    { "c03-no-header-blob-at-0", "[missing_header_magic] ok", "absent ok" },
    { "c04-offset-0-with-header", "overlaps_header", "unreadable not ok" },
    { "c05-footer-magic-wrong", "bad_footer_magic", "-" },
    { "c12-manifest-size-0", "empty_manifest", "-" },
    { "c15-size-u64max", "manifest_too_large", "-" },
    { "c16-size-2^63", "manifest_too_large", "-" },
    { "c18-size-one-short", "bad_manifest", "-" },
    { "c21-trailing-newline", "bad_footer_magic", "-" },
    { "c22-padding-nonzero", "ok", "absent ok" },
    { "c23-v1.0-layout", "unsupported_version", "-" },
    { "c24-v0.1-layout", "unsupported_version", "-" },
    { "d01-sha256-ok", "ok", "verified ok" },
    { "d02-sha256-upper", "ok", "verified ok" },
    { "d03-sha256-wrong", "ok", "mismatch not ok" },
    { "d04-sha256-short", "ok", "malformed not ok" },
    { "d06-sha256-over-padding", "ok", "mismatch not ok" },
    { "d08-crc32c-no-0x", "ok", "verified ok" },
    { "d09-crc32c-wrong-no-0x", "ok", "mismatch not ok" },
    { "d11-unknown-algo", "ok", "unsupported not ok" },
    { "m01-root-array", "bad_manifest", "-" },
    { "m02-trailing-garbage", "trailing_bytes", "-" },
    { "m03-cut-inside", "bad_manifest", "-" },
    { "m04-indefinite-map", "ok", "absent ok" },
    { "m07-lone-break", "bad_manifest", "-" },
    { "m09-huge-map-count", "bad_manifest", "-" },
    { "m10-huge-array-shape", "bad_manifest", "-" },
    { "m11-huge-text", "bad_manifest", "-" },
    { "m12-deep-100000", "nesting_too_deep", "-" },
    { "m12b-deep-unknown-key", "nesting_too_deep", "-" },
    { "m12c-deep-indefinite", "nesting_too_deep", "-" },
    { "m14-dup-object-name", "duplicate_key", "-" },
    { "m15-dup-root-key", "duplicate_key", "-" },
    { "m16-dup-component-field", "duplicate_key", "-" },
    { "m17-dup-role", "duplicate_key", "-" },
    { "m18-key-not-utf8", "invalid_utf8", "-" },
    { "m19-key-surrogate", "invalid_utf8", "-" },
    { "m20-key-overlong", "invalid_utf8", "-" },
    { "m22-key-int", "bad_manifest", "-" },
    { "m23-name-empty", "ok", "absent ok" },
    { "m24-name-nul", "ok", "absent ok" },
    { "m26-name-64KiB", "name_too_long", "-" },
    { "m27-no-version", "missing_field", "-" },
    { "m31-version-int", "bad_manifest", "-" },
    { "m32-version-1.2.0", "ok", "absent ok" },
    { "m33-unknown-fields", "ok", "absent ok" },
    { "m34-digest-null", "ok", "absent ok" },
    { "m35-encoding-null", "ok", "absent ok" },
    { "m36-root-attr-nonstring", "ok", "absent ok" },
    { "m37-tag-wrapped", "ok", "absent ok" },
    { "m38-tag-in-offset", "bad_manifest", "-" },
    { "m40-offset-negative", "bad_manifest", "-" },
    { "m41-offset-string", "bad_manifest", "-" },
    { "m42-non-shortest", "ok", "absent ok" },
    { "s02-csr-missing-indptr", "missing_component", "2*absent not ok" },
    { "s03-csr-indptr-short", "length_mismatch", "3*absent not ok" },
    { "s04-csr-u16-index", "ok", "3*absent ok" },
    { "s06-csr-nnz-mismatch", "length_mismatch", "3*absent not ok" },
    { "s08-quant-group-ok", "ok", "3*absent ok" },
    { "s10-format-unknown", "unsupported_format", "2*absent ok" },
    { "s11-dense-extra-role", "ok", "2*absent ok" },
    { "x02-out-of-bounds-1", "out_of_bounds", "unreadable not ok" },
    { "x03-offset+length-wraps", "out_of_bounds", "unreadable not ok" },
    { "x04-offset-at-eof", "out_of_bounds", "unreadable not ok" },
    { "x05-into-manifest", "out_of_bounds", "unreadable not ok" },
    { "x06-overlap-partial", "[overlap] ok ok", "2*absent ok" },
    { "x08-two-empty-same-offset", "ok ok ok", "3*absent ok" },
    { "x11-shape-product-overflow", "shape_overflow", "absent not ok" },
    { "x12-shape-bytes-overflow", "shape_overflow", "absent not ok" },
    { "x13-shape-rank-65", "rank_too_large", "absent not ok" },
    { "x14-shape-negative", "bad_manifest", "-" },
    { "x15-scalar-empty-shape", "ok", "absent ok" },
    { "x16-dtype-unknown", "ok unsupported_dtype", "2*absent ok" },
    { "x17-dtype-float32", "unsupported_dtype", "absent ok" },
    { "x18-dtype-f8-seed", "ok", "absent ok" },
    { "x19-dtype-complex64", "ok", "absent ok" },
    { "x20-bool-value-2", "ok", "absent +invalid_values ok" },
    { "x21-encoding-lz4", "ok unsupported_encoding",
      "2*absent +not_checked not ok" },
    { "x22-encoding-RAW", "unsupported_encoding",
      "absent +not_checked not ok" },
    { "x23-encoding-raw-explicit", "ok", "absent ok" },
    { "x24-zstd-garbage", "ok", "unreadable +bad_zstd not ok" },
    { "x25-zstd-ok", "ok", "absent ok" },
    { "x27-zstd-decodes-long", "ok", "unreadable +length_mismatch not ok" },
    { "x30-zstd-trailing-junk", "ok", "unreadable +bad_zstd not ok" },
    { "x31-zstd-fcs-1TiB", "ok", "absent +decode_too_large not ok" },
    { "x33-zstd-window-2GiB", "ok", "absent ok" },
    { "v1.1-reference-writer", NULL, NULL },
    { "attributes-and-odd-names", "7 ok", "3*verified absent 3*verified ok" },
    { "dense-all-dtypes-raw-sha256", "13 ok", "13*verified ok" },
    { "dense-crc32c", "ok ok", "2*verified ok" },
    { "dense-one-f32-raw", "ok", "absent ok" },
    { "dense-zstd22", "ok ok", "2*absent ok" },
    { "dense-zstd3-sha256", "ok ok", "2*verified ok" },
    { "empty-no-objects", "empty", " ok" },
    { "multi-chunk-1.6MiB", "4 ok", "4*verified ok" },
    { "scalar-and-empty", "5 ok", "4*verified absent ok" },
    { "v2-corpus/reject", NULL, NULL },
    { "attribute-key-empty", "invalid_name", "-" },
    { "attribute-key-not-text", "bad_manifest", "-" },
    { "attribute-key-nul", "invalid_name", "-" },
    { "attributes-not-a-map", "bad_manifest", "-" },
    { "blob-array-with-three-elements", "bad_manifest", "-" },
    { "blob-misaligned", "misaligned", "-" },
    { "blob-offset-zero", "misaligned", "-" },
    { "blob-out-of-bounds", "out_of_bounds", "-" },
    { "blob-partial-overlap", "overlap", "-" },
    { "bool-invalid-byte", "ok", "absent +invalid_values not ok" },
    { "cbor-depth", "bad_manifest", "-" },
    { "cbor-duplicate-key", "duplicate_key", "-" },
    { "cbor-indefinite", "bad_manifest", "-" },
    { "cbor-non-shortest", "not_deterministic", "-" },
    { "cbor-tag", "bad_manifest", "-" },
    { "cbor-trailing-bytes", "trailing_bytes", "-" },
    { "cbor-unsorted-keys", "not_deterministic", "-" },
    { "csr-index-out-of-cols", "ok", "3*absent +invalid_indices not ok" },
    { "csr-indptr-count", "length_mismatch", "-" },
    { "csr-indptr-not-zero-based", "ok",
      "absent +invalid_indices 2*absent not ok" },
    { "csr-missing-part", "missing_component", "-" },
    { "csr-row-not-increasing", "ok", "3*absent +invalid_indices not ok" },
    { "csr-signed-indices", "bad_index_dtype", "-" },
    { "csr-values-size", "length_mismatch", "-" },
    { "data-shard-nonzero-offset", "manifest_out_of_bounds", "-" },
    { "dense-extra-part", "unexpected_component", "-" },
    { "dense-f4-size-mismatch", "length_mismatch", "-" },
    { "dense-size-mismatch", "length_mismatch", "-" },
    { "f4-nonzero-odd-nibble", "ok", "absent +invalid_values not ok" },
    { "file-too-small", "too_short", "-" },
    { "footer-magic", "bad_footer_magic", "-" },
    { "header-magic", "bad_header_magic", "-" },
    { "manifest-hash-mismatch", "manifest_hash_mismatch", "-" },
    { "manifest-misaligned", "misaligned", "-" },
    { "manifest-out-of-bounds", "manifest_out_of_bounds", "-" },
    { "manifest-too-large", "manifest_too_large", "-" },
    { "name-empty", "invalid_name", "-" },
    { "name-nul", "invalid_name", "-" },
    { "name-too-long", "name_too_long", "-" },
    { "object-attributes-not-a-map", "bad_manifest", "-" },
    { "schema-blob-arity", "bad_manifest", "-" },
    { "schema-digest-uppercase-hex", "bad_manifest", "-" },
    { "schema-encoding-without-decoded-length", "bad_manifest", "-" },
    { "schema-ltype-dtype-mismatch", "bad_manifest", "-" },
    { "schema-missing-objects", "missing_field", "-" },
    { "schema-unknown-dtype", "bad_manifest", "-" },
    { "shape-product-overflow", "shape_overflow", "-" },
    { "shape-rank-65", "rank_too_large", "-" },
    { "shard-blob-partial-overlap", "overlap", "-" },
    { "shard-name-empty", "bad_shard_name", "-" },
    { "shard-name-leading-dot", "bad_shard_name", "-" },
    { "shard-name-separator", "bad_shard_name", "-" },
    { "shard-name-traversal", "bad_shard_name", "-" },
    { "shard-ref-not-in-table", "no_such_shard", "-" },
    { "shard-table-key-not-text", "bad_manifest", "-" },
    { "verify-digest-mismatch", "ok", "mismatch not ok" },
    { "version-unsupported", "unsupported_version", "-" },
    { "v2-corpus/valid", NULL, NULL },
    { "aliased-identical-blobs", "ok ok", "2*absent ok" },
    { "attributes-kitchen-sink", "empty", " ok" },
    { "canonical-basic", "ok ok ok", "3*verified ok" },
    { "csr-data-valid", "ok", "3*absent ok" },
    { "csr-metadata-valid", "ok", "3*absent ok" },
    { "data-shard", "data_shard", "-" },
    { "empty-objects", "empty", " ok" },
    { "f4-packed-odd-count", "ok", "absent +invalid_values not ok" },
    { "local-and-foreign-parts-together", "ok ok",
      "2*absent +not_checked not ok" },
    { "minimal", "ok", "absent ok" },
    { "nonzero-reserved-ignored", "ok", "absent ok" },
    { "scalar", "ok", "absent ok" },
    { "shard-reference-is-a-valid-image", "ok", "absent +not_checked not ok" },
    { "shards-table", "ok", "absent +not_checked not ok" },
    { "unknown-layout-structural", "unsupported_format", "2*absent ok" },
    { "unknown-ltype-structural", "unsupported_dtype", "absent ok" },
    { "verify-ok", "ok", "verified ok" },
    { "view-unknown-encoding-refused", "unsupported_encoding",
      "absent +not_checked not ok" },
    { "zero-size-tensor", "ok", "absent ok" }
};


static void
words_flush(words_t *w)
{
    if (w->run == 0) {
        return;
    }

    w->len += (size_t) snprintf(w->text + w->len, WORDS_MAX - w->len,
                                w->run > 1 ? "%s%u*%s" : "%s%.0u%s",
                                w->len ? " " : "", w->run > 1 ? w->run : 0,
                                w->last);
    w->run = 0;
}


static void
words_add(words_t *w, const char *prefix, const char *word, int alone)
{
    if (!alone && w->run && strcmp(w->last, word) == 0) {
        w->run++;
        return;
    }

    words_flush(w);

    snprintf(w->last, sizeof(w->last), "%s%s", prefix, word);
    w->run = 1;
}


static void
verify_component(context_t *c, const xet_zt_object_t *o,
    const xet_zt_component_t *component)
{
    size_t           n;
    xet_range_t      range;
    xet_status_t     rc;
    xet_zt_region_t  region;
    xet_zt_report_t  report;

    xet_zt_region(c->zt, &region);

    rc = xet_zt_verifier_start(c->verifier, &region, o, component, &range);

    /* feed pieces of 1, 4, 13, ... bytes */

    for (n = 1; rc == XET_AGAIN && range.start < range.end; n = n * 3 + 1) {

        if (n > range.end - range.start) {
            n = (size_t) (range.end - range.start);
        }

        if (xet_zt_verifier_feed(c->verifier, c->data + range.start, n)
            != XET_OK)
        {
            break;
        }

        range.start += n;
    }

    if (xet_zt_verifier_finish(c->verifier, &report) != XET_OK) {
        words_add(&c->verified, "", "FAILED", 1);
        return;
    }

    words_add(&c->verified, "", xet_zt_digest_name(report.digest), 0);

    for (n = 0; n < o->errors_n; n++) {
        if (o->errors[n] == report.status) {
            break;
        }
    }

    if (n == o->errors_n && report.status != XET_OK) {
        words_add(&c->verified, "+", xet_status_code(report.status), 1);
    }

    c->failed |= !xet_zt_report_ok(&report, region.container);
}


static xet_status_t
handler(void *ctx, xet_zt_object_t *o)
{
    char        word[64];
    size_t      len;
    unsigned    i;
    context_t  *c;

    c = ctx;
    c->n++;

    len = 0;
    word[0] = '\0';

    for (i = 0; i < o->errors_n; i++) {
        len += (size_t) snprintf(word + len, sizeof(word) - len, "%s%s",
                                 i ? "," : "", xet_status_code(o->errors[i]));
    }

    c->all_ok &= (o->errors_n == 0);

    words_add(&c->listed, "", o->errors_n ? word : "ok", 1);

    for (i = 0; i < o->n; i++) {
        verify_component(c, o, &o->components[i]);
    }

    c->failed |= (o->verdict == XET_ZT_OBJECT_INVALID);

    return XET_OK;
}


static const char *
warnings(const xet_zt_t *zt)
{
    switch (xet_zt_info(zt)->warnings) {

    case 0:
        return "";

    case XET_ZT_WARN_NO_MAGIC:
        return "[missing_header_magic] ";

    case XET_ZT_WARN_OVERLAP:
        return "[overlap] ";

    default:
        return "[?] ";
    }
}


/*
 * Writes the outcomes; got and verify have room for slightly more than
 * WORDS_MAX bytes.
 */

static void
outcome(const uint8_t *data, size_t len, size_t step, char *got, char *verify,
    size_t size)
{
    xet_zt_t                *zt;
    context_t                c;
    xet_status_t             rc;
    xet_zt_decode_limits_t   limits;

    memset(&c, 0, sizeof(c));

    zt = zt_open(data, len, step, NULL, &rc);

    if (rc != XET_OK) {
        snprintf(got, size, "%s", xet_status_code(rc));
        snprintf(verify, size, "-");
        xet_zt_destroy(zt);
        return;
    }

    xet_zt_decode_limits_init(&limits);

    c.zt = zt;
    c.data = data;
    c.verifier = xet_zt_verifier_create(&limits);
    c.all_ok = 1;

    rc = zt_walk_all(zt, data, step, NULL, handler, &c);

    words_flush(&c.listed);
    words_flush(&c.verified);

    if (rc != XET_OK) {
        snprintf(got, size, "walk: %s", xet_status_code(rc));

    } else if (c.n == 0) {
        snprintf(got, size, "%sempty", warnings(zt));

    } else if (c.n > 3 && c.all_ok) {
        snprintf(got, size, "%s%u ok", warnings(zt), c.n);

    } else {
        snprintf(got, size, "%s%s", warnings(zt), c.listed.text);
    }

    snprintf(verify, size, "%s %s", c.verified.text,
             c.failed ? "not ok" : "ok");

    xet_zt_verifier_destroy(c.verifier);
    xet_zt_destroy(zt);
}


static void
test_file(const char *folder, const row_t *row)
{
    char         path[512], got[WORDS_MAX + 64], verify[WORDS_MAX + 64];
    size_t       i, len;
    uint8_t     *data;
    const char  *file;

    static const size_t  steps[] = { 1 << 20, 4096, 61, 1 };

    snprintf(path, sizeof(path), "ztensor/%s/%s.zt", folder, row->name);

    file = xet_test_data(path);
    if (file == NULL) {
        xet_skip("reference data absent");
        return;
    }

    data = xet_test_read(file, &len);

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        outcome(data, len, steps[i], got, verify, sizeof(got));

        if (strcmp(got, row->outcome) != 0
            || strcmp(verify, row->verify) != 0)
        {
            break;
        }
    }

    free(data);

    if (!xet_ok(i == sizeof(steps) / sizeof(steps[0]), "%s: %s; %s",
                row->name, row->outcome, row->verify))
    {
        printf("#   got %s; %s in steps of %zu\n", got, verify, steps[i]);
    }
}


/* Tests only the files of the folder that are in the table. */

static void
test_folder(const char *folder, unsigned count)
{
    DIR            *dir;
    char            path[512];
    size_t          len;
    unsigned        n;
    const char     *name;
    struct dirent  *entry;

    snprintf(path, sizeof(path), "ztensor/%s", folder);

    name = xet_test_data(path);
    if (name == NULL) {
        xet_skip("reference data absent");
        return;
    }

    dir = opendir(name);
    n = 0;

    while (dir && (entry = readdir(dir)) != NULL) {
        len = strlen(entry->d_name);
        n += len > 3 && strcmp(entry->d_name + len - 3, ".zt") == 0;
    }

    if (dir) {
        closedir(dir);
    }

    xet_is_u64(n, count, folder);
}


int
main(void)
{
    size_t       i;
    unsigned     count;
    const char  *folder;

    folder = NULL;
    count = 0;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {

        if (rows[i].outcome) {
            test_file(folder, &rows[i]);
            count++;
            continue;
        }

        if (folder) {
            test_folder(folder, count);
        }

        folder = rows[i].name;
        count = 0;
    }

    test_folder(folder, count);

    return xet_done();
}
