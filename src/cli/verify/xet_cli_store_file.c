
/*
 * Checks one file of a store.  The verifier of shards compares the terms of
 * the file with the chunk lists of the xorbs.  With --sha256, the contents are
 * compared with the SHA-256 that the uploader claimed; if both are equal, the
 * SHA-256 is recorded as proven.
 */


#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "xet_cli_verify.h"
#include "xet_xorb.h"


/*
 * Bytes of an array literal in a statement.  For each term: "{" or a comma,
 * and in quotes "\\x" and 64 digits.  At the end: "}" and a zero byte.
 */

#define XET_CLI_STORE_LITERAL  (XET_TERM_SEGMENT_MAX * 72 + 3)


typedef struct {
    xet_cli_checker_t     *checker;
    const xet_cli_job_t   *job;
    const char            *fault;      /* fault found, or NULL */

    xet_cli_store_terms_t  row;
    xet_cli_store_terms_t  again;      /* row after reading it again */

    const uint8_t         *term;       /* next term to check */
    const uint8_t         *end;
    xet_shard_verifier_t   verifier;
} xet_cli_store_file_t;


static int xet_cli_store_file_again(xet_cli_store_file_t *f, int *changed);
static int xet_cli_store_file_check(xet_cli_store_file_t *f);
static int xet_cli_store_file_slices(xet_cli_store_file_t *f, size_t n);
static int xet_cli_store_file_slice(void *ctx, const xet_cli_pg_row_t *row);
static const char *xet_cli_store_file_term(xet_cli_store_file_t *f,
    const xet_cli_pg_row_t *row);
static int xet_cli_store_file_sha256(xet_cli_store_file_t *f);
static int xet_cli_store_file_proven(xet_cli_store_file_t *f);
static int xet_cli_store_file_content(xet_cli_store_file_t *f,
    const uint8_t *packed, EVP_MD_CTX *sha256, xet_status_t *status);
static int xet_cli_store_file_chunks(xet_cli_checker_t *c,
    xet_store_reader_t *reader, const xet_term_t *term, EVP_MD_CTX *sha256,
    xet_status_t *status);


/*
 * Checks one file.  Since its row was read, an upload may have replaced a
 * copy, and changed all terms that refer to the copy; or the file may have
 * other terms.  So a fault counts only if the row still has the same terms;
 * otherwise the new terms are checked.
 */

int
xet_cli_store_file(xet_cli_checker_t *c, xet_cli_job_t *job)
{
    int                    rc, changed;
    xet_cli_store_file_t  *f;

    f = calloc(1, sizeof(xet_cli_store_file_t));

    if (f == NULL) {
        return xet_cli_no_memory();
    }

    f->checker = c;
    f->job = job;

    f->row = job->terms;
    job->terms.packed = NULL;

    rc = f->row.len ? XET_CLI_OK : xet_cli_store_file_again(f, &changed);

    do {
        changed = 0;

        rc = rc ? rc : xet_cli_store_file_check(f);

        if (rc == XET_CLI_OK && f->fault == NULL && c->store->sha256
            && f->row.claimed)
        {
            rc = xet_cli_store_file_sha256(f);
        }

        if (rc == XET_CLI_OK && f->fault) {
            rc = xet_cli_store_file_again(f, &changed);
        }

    } while (rc == XET_CLI_OK && changed);

    if (rc == XET_CLI_OK && f->fault) {
        xet_cli_store_fault(c->store, "file", &job->hash, "%s", f->fault);
    }

    free(f->row.packed);
    free(f->again.packed);
    free(f);

    return rc;
}


/*
 * Reads the row with all its terms again, in one statement.  Sets *changed to 1
 * if the row or its terms have changed, else to 0.  Clears f->fault after a
 * change, or if the file was deleted, which is not a fault.
 */

static int
xet_cli_store_file_again(xet_cli_store_file_t *f, int *changed)
{
    int                     rc;
    xet_cli_store_terms_t   was;

    f->again.found = 0;
    f->again.len = 0;

    rc = xet_cli_pg_query(f->checker->pg,
                          "SELECT f.size, f.term_count, f.sha256,"
                          " coalesce(t.packed, f.packed)"
                          " FROM xet.files f"
                          " LEFT JOIN xet.terms t ON t.file_id = f.id"
                          " WHERE f.hash = $1 ORDER BY t.first_offset",
                          xet_cli_pg_with(xet_cli_as_hash(&f->job->hash)),
                          xet_cli_store_terms, &f->again);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    was = f->row;
    f->row = f->again;
    f->again = was;

    *changed = f->row.found
               && (f->row.len != was.len || f->row.size != was.size
                   || f->row.term_count != was.term_count
                   || f->row.claimed != was.claimed
                   || memcmp(f->row.sha256, was.sha256, XET_CLI_SHA256_LEN)
                      != 0
                   || (was.len
                       && memcmp(f->row.packed, was.packed, was.len) != 0));

    if (*changed || !f->row.found) {
        f->fault = NULL;
    }

    return XET_CLI_OK;
}


int
xet_cli_store_terms(void *ctx, const xet_cli_pg_row_t *row)
{
    size_t                  len, room;
    uint8_t                *packed;
    const uint8_t          *bytes;
    xet_cli_store_terms_t  *t = ctx;

    t->found = 1;
    t->size = xet_cli_pg_u64(row, 0);
    t->term_count = xet_cli_pg_u64(row, 1);

    bytes = xet_cli_pg_bytes(row, 2, &len);

    t->claimed = (len == XET_CLI_SHA256_LEN);
    memset(t->sha256, 0, XET_CLI_SHA256_LEN);
    memcpy(t->sha256, bytes, t->claimed ? len : 0);

    bytes = xet_cli_pg_bytes(row, 3, &len);

    if (t->len + len > t->room) {
        room = (t->len + len) * 2;
        packed = realloc(t->packed, room);

        if (packed == NULL) {
            return xet_cli_no_memory();
        }

        t->packed = packed;
        t->room = room;
    }

    if (len) {
        memcpy(t->packed + t->len, bytes, len);
        t->len += len;
    }

    return XET_CLI_OK;
}


static int
xet_cli_store_file_check(xet_cli_store_file_t *f)
{
    int     rc;
    size_t  n, left;

    f->term = f->row.packed;
    f->end = f->term + f->row.len;

    left = f->row.len;

    if (left % XET_TERM_LEN || left / XET_TERM_LEN != f->row.term_count) {
        f->fault = "its terms are incomplete";
        return XET_CLI_OK;
    }

    xet_shard_verifier_init(&f->verifier, &xet_suite_default, &f->job->hash);

    while (f->term < f->end && f->fault == NULL) {
        n = (size_t) (f->end - f->term) / XET_TERM_LEN;

        if (n > XET_TERM_SEGMENT_MAX) {
            n = XET_TERM_SEGMENT_MAX;
        }

        rc = xet_cli_store_file_slices(f, n);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    if (f->fault == NULL && f->verifier.size != f->row.size) {
        f->fault = "its terms add up to another size";
    }

    if (f->fault == NULL
        && xet_shard_verifier_finish(&f->verifier) != XET_OK)
    {
        f->fault = "its terms are those of another file";
    }

    return XET_CLI_OK;
}


/* Reads the parts of the chunk lists that n terms need. */

static int
xet_cli_store_file_slices(xet_cli_store_file_t *f, size_t n)
{
    int             rc;
    char           *xorbs, *starts, *ends, *p, *q, *r;
    size_t          i;
    xet_term_t      term;
    const uint8_t  *end;

    xorbs = malloc(3 * XET_CLI_STORE_LITERAL);

    if (xorbs == NULL) {
        return xet_cli_no_memory();
    }

    starts = xorbs + XET_CLI_STORE_LITERAL;
    ends = starts + XET_CLI_STORE_LITERAL;

    p = xorbs;
    q = starts;
    r = ends;

    for (i = 0; i < n; i++) {

        if (xet_term_unpack(&term, f->term + i * XET_TERM_LEN) != XET_OK) {
            f->fault = "a malformed term";
            free(xorbs);
            return XET_CLI_OK;
        }

        p += sprintf(p, "%s\"\\\\x", i ? "," : "{");
        p = (char *) xet_hash_print_plain((uint8_t *) p, term.xorb.bytes);
        *p++ = '"';

        q += sprintf(q, "%s%u", i ? "," : "{", term.chunk_start);
        r += sprintf(r, "%s%u", i ? "," : "{", term.chunk_end);
    }

    strcpy(p, "}");
    strcpy(q, "}");
    strcpy(r, "}");

    end = f->term + n * XET_TERM_LEN;

    rc = xet_cli_pg_query(f->checker->pg,
                          "SELECT chunk_count, hashes, raw_ends, stored_ends,"
                          " copy_id FROM xet.xorb_slices($1::bytea[],"
                          " $2::integer[], $3::integer[], true)",
                          xet_cli_pg_with(xet_cli_as_text(xorbs),
                                          xet_cli_as_text(starts),
                                          xet_cli_as_text(ends)),
                          xet_cli_store_file_slice, f);

    if (rc == XET_CLI_OK && f->fault == NULL && f->term != end) {
        f->fault = "the database returned no chunk lists for its terms";
    }

    free(xorbs);

    return rc;
}


static int
xet_cli_store_file_slice(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_store_file_t  *f = ctx;

    if (f->fault == NULL) {
        f->fault = xet_cli_store_file_term(f, row);
        f->term += XET_TERM_LEN;
    }

    return XET_CLI_OK;
}


static const char *
xet_cli_store_file_term(xet_cli_store_file_t *f, const xet_cli_pg_row_t *row)
{
    size_t              hashes, raw, stored;
    xet_term_t          term, found;
    xet_status_t        status;
    xet_shard_slice_t   slice;
    xet_shard_record_t  rec;

    (void) xet_term_unpack(&term, f->term);

    memset(&rec, 0, sizeof(rec));
    rec.kind = XET_SHARD_REC_TERM;
    rec.hash = term.xorb;
    rec.chunk_start = term.chunk_start;
    rec.chunk_end = term.chunk_end;
    rec.raw_length = term.raw_length;

    memset(&slice, 0, sizeof(slice));

    if (xet_cli_pg_null(row, 0)) {
        return "a term refers to a xorb without a row";
    }

    if (xet_cli_pg_null(row, 1)) {
        return xet_status_text(XET_SHARD_TERM);
    }

    slice.known = 1;
    slice.own = 1;
    slice.chunk_count = (uint32_t) xet_cli_pg_u64(row, 0);
    slice.n = term.chunk_end - term.chunk_start;
    slice.hashes = xet_cli_pg_bytes(row, 1, &hashes);
    slice.raw_ends = xet_cli_pg_bytes(row, 2, &raw);
    slice.stored_ends = xet_cli_pg_bytes(row, 3, &stored);

    if (hashes != (size_t) slice.n * XET_HASH_LEN
        || raw != ((size_t) slice.n + 1) * 4 || stored != raw)
    {
        return "a chunk list has the wrong length";
    }

    /* the first element of each list is the end of the preceding chunk */

    slice.raw_before = xet_get_u32(slice.raw_ends);
    slice.stored_before = xet_get_u32(slice.stored_ends);
    slice.raw_ends += 4;
    slice.stored_ends += 4;

    status = xet_shard_verifier_term(&f->verifier, &rec, NULL, &slice,
                                     &found);

    if (status != XET_OK) {
        return xet_status_text(status);
    }

    slice.copy_id = (uint32_t) xet_cli_pg_u64(row, 4);

    if (slice.copy_id != term.copy_id) {

        return "a term names another copy of its xorb than the xorb's row";
    }

    if (found.stored_start != term.stored_start
        || found.stored_end != term.stored_end)
    {
        return "the byte range of a term does not match its chunks";
    }

    return NULL;
}


static int
xet_cli_store_file_sha256(xet_cli_store_file_t *f)
{
    int             rc;
    uint8_t         digest[XET_CLI_SHA256_LEN];
    EVP_MD_CTX     *sha256;
    const uint8_t  *packed;
    xet_status_t    status;

    rc = xet_cli_sha256_begin(&sha256);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    packed = f->row.packed;
    status = XET_OK;

    for ( /* void */ ; packed < f->end && status == XET_OK && rc == XET_CLI_OK
                       && !xet_cli_interrupted; packed += XET_TERM_LEN)
    {
        rc = xet_cli_store_file_content(f, packed, sha256, &status);
    }

    EVP_DigestFinal_ex(sha256, digest, NULL);
    EVP_MD_CTX_free(sha256);

    if (xet_cli_interrupted) {
        return XET_CLI_INTERRUPTED;
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (status == XET_NOMEM) {
        return xet_cli_no_memory();
    }

    if (status != XET_OK) {
        f->fault = "cannot be read from its xorbs";

    } else if (memcmp(digest, f->row.sha256, XET_CLI_SHA256_LEN) != 0) {
        f->fault = "its SHA-256 differs from the one that its uploader "
                   "claimed";

    } else {
        return xet_cli_store_file_proven(f);
    }

    return XET_CLI_OK;
}


/* Records the SHA-256 of the file as proven. */

static int
xet_cli_store_file_proven(xet_cli_store_file_t *f)
{
    __sync_fetch_and_add(&f->checker->store->proven, 1);

    return xet_cli_pg_query(f->checker->pg,
                            "SELECT xet.files_prove(ARRAY[$1::bytea],"
                            " ARRAY[$2::bytea])",
                            xet_cli_pg_with(
                                xet_cli_as_hash(&f->job->hash),
                                xet_cli_as_bytes(f->row.sha256,
                                                 XET_CLI_SHA256_LEN)),
                            NULL, NULL);
}


static int
xet_cli_store_file_content(xet_cli_store_file_t *f, const uint8_t *packed,
    EVP_MD_CTX *sha256, xet_status_t *status)
{
    int                  rc;
    char                 name[XET_CLI_STORAGE_NAME];
    xet_term_t           term;
    xet_store_reader_t  *reader;

    (void) xet_term_unpack(&term, packed);

    rc = xet_cli_reader_open(f->checker->store->storage,
                             xet_store_copy(name, &term.xorb, term.copy_id),
                             &reader);
    rc = rc ? rc : xet_cli_store_file_chunks(f->checker, reader, &term, sha256,
                                             status);

    xet_cli_reader_close(reader);

    if (rc == XET_CLI_GONE || rc == XET_CLI_UNREADABLE) {
        *status = XET_STORE_FAILED;
        rc = XET_CLI_OK;
    }

    return rc;
}


static int
xet_cli_store_file_chunks(xet_cli_checker_t *c, xet_store_reader_t *reader,
    const xet_term_t *term, EVP_MD_CTX *sha256, xet_status_t *status)
{
    int                 rc;
    size_t              n;
    uint32_t            pos;
    const uint8_t      *p;
    xet_xorb_parser_t   parser;
    xet_xorb_event_t    ev;

    for (pos = term->stored_start; pos < term->stored_end; /* void */ ) {

        /* the buffer has room for the longest chunk and its header */

        rc = xet_cli_reader_read(reader, c->buffer,
                                 XET_XORB_HEADER_LEN + XET_CHUNK_MAX, pos, &n);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        if (n <= XET_XORB_HEADER_LEN) {
            *status = XET_STORE_FAILED;
            return XET_CLI_OK;
        }

        xet_xorb_parser_init(&parser, &xet_suite_default, UINT32_MAX);

        p = c->buffer;

        *status = xet_xorb_parser_next(&parser, &p, c->buffer + n, &ev);

        if (*status != XET_OK || ev.type != XET_XORB_EVENT_CHUNK
            || n < XET_XORB_HEADER_LEN + (size_t) parser.chunk.payload_len)
        {
            *status = XET_XORB_TRUNCATED;
            return XET_CLI_OK;
        }

        *status = xet_codec_decode(c->codec, parser.chunk.scheme, p,
                                   parser.chunk.payload_len, c->raw,
                                   parser.chunk.raw_len);

        if (*status != XET_OK) {
            return XET_CLI_OK;
        }

        EVP_DigestUpdate(sha256, c->raw, parser.chunk.raw_len);

        pos += XET_XORB_HEADER_LEN + parser.chunk.payload_len;
        xet_cli_store_read(c->store, XET_XORB_HEADER_LEN
                                     + parser.chunk.payload_len);
    }

    return XET_CLI_OK;
}
