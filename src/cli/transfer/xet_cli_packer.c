
/*
 * Packs files for an upload: cuts them into chunks, and builds xorbs and
 * terms.
 */


#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "xet_cli_transfer.h"


#define XET_CLI_PACKER_PIECE  (8 * 1024 * 1024)
#define XET_CLI_PACKER_AHEAD  1024     /* maximum number of chunks in a
                                          piece */
#define XET_CLI_PACKER_KNOWN  (8 * 1024 * 1024)   /* chunks, about 500 GB */


/* Offsets in the footer of a shard. */

#define XET_CLI_PACKER_FOOTER_KEY      72
#define XET_CLI_PACKER_FOOTER_EXPIRES  112


/* Parser of the response to a dedup query, which is a shard. */

typedef struct {
    xet_ingest_t     *in;
    const uint8_t    *key;             /* key of the hashes; NULL: not keyed */
    xet_xorb_list_t   xorb;
    uint32_t          n;               /* chunks of the xorb so far */
    uint8_t          *hashes;
    int               rc;              /* exit code */
} xet_cli_packer_answer_t;


static int xet_cli_packer_open(xet_cli_packer_t *p);
static void xet_cli_packer_seed(uint64_t *seed);
static int xet_cli_packer_add(xet_cli_packer_t *p, const char *name,
    int executable);
static int xet_cli_packer_stream(xet_cli_packer_t *p, FILE *in);
static int xet_cli_packer_feed(xet_cli_packer_t *p, size_t len);
static int xet_cli_packer_serve(xet_cli_packer_t *p, xet_status_t status,
    int *rc);
static int xet_cli_packer_query(xet_cli_packer_t *p);
static int xet_cli_packer_learn(xet_ingest_t *in, const uint8_t *data,
    size_t len);
static xet_status_t xet_cli_packer_record(void *ctx,
    const xet_shard_record_t *rec);
static xet_status_t xet_cli_packer_write(void *ctx, const uint8_t *data,
    size_t len);
static xet_status_t xet_cli_packer_chunk(void *ctx, const xet_hash_t *hash);
static xet_status_t xet_cli_packer_term(void *ctx,
    const xet_ingest_term_t *term);


int
xet_cli_packer_init(xet_cli_packer_t *p, xet_cli_upload_t *upload)
{
    memset(p, 0, sizeof(xet_cli_packer_t));

    p->upload = upload;
    p->piece = malloc(XET_CLI_PACKER_PIECE);
    p->sha256 = EVP_MD_CTX_new();

    return (p->piece && p->sha256) ? XET_CLI_OK : xet_cli_no_memory();
}


void
xet_cli_packer_free(xet_cli_packer_t *p)
{
    xet_cli_packer_clear(p);
    xet_ingest_destroy(p->core);

    EVP_MD_CTX_free(p->sha256);

    free(p->piece);
    free(p->files);
    free(p->hashes);
}


/* Creates the core, and adds the xorbs of the upload to its known xorbs. */

static int
xet_cli_packer_open(xet_cli_packer_t *p)
{
    size_t             i;
    uint64_t           seed[XET_KNOWN_SEED];
    xet_status_t       status;
    xet_cli_xorbs_t   *x;
    xet_ingest_conf_t  conf;

    memset(&conf, 0, sizeof(conf));

    xet_cli_packer_seed(seed);

    conf.seed = seed;
    conf.thrifty = 1;
    conf.suite = &xet_suite_default;
    conf.ask = 1;
    conf.ahead = XET_CLI_PACKER_AHEAD;
    conf.known = XET_CLI_PACKER_KNOWN;
    conf.write = xet_cli_packer_write;
    conf.term = xet_cli_packer_term;
    conf.chunk = xet_cli_packer_chunk;
    conf.ctx = p;

    p->core = xet_ingest_create(&conf);
    p->begun = 0;
    p->first = 0;

    status = p->core ? XET_OK : XET_NOMEM;
    x = &p->upload->xorbs;

    for (i = 0; status == XET_OK && i < x->n; i++) {
        status = xet_ingest_known_made(p->core, &x->all[i].list);
    }

    return (status == XET_OK) ? XET_CLI_OK : xet_cli_no_memory();
}


/*
 * Makes a random seed for hash tables.  With a known seed, a server could
 * choose dedup hashes that make the tables slow.
 */

static void
xet_cli_packer_seed(uint64_t *seed)
{
    size_t   i;
    ssize_t  n;

    n = getrandom(seed, XET_KNOWN_SEED * sizeof(uint64_t), 0);

    if (n == XET_KNOWN_SEED * sizeof(uint64_t)) {
        return;
    }

    /* without a random seed, a put is at worst slower */

    for (i = 0; i < XET_KNOWN_SEED; i++) {
        seed[i] = (xet_cli_now() + i) * UINT64_C(0x9e3779b97f4a7c15);
    }
}


int
xet_cli_packer_file(xet_cli_packer_t *p, FILE *in, const char *name,
    int executable)
{
    int                       rc;
    xet_cli_file_t           *file;
    const xet_ingest_info_t  *info;

    rc = xet_cli_packer_add(p, name, executable);

    if (rc == XET_CLI_OK && p->core == NULL) {
        rc = xet_cli_packer_open(p);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (p->begun) {
        xet_ingest_next(p->core);
    }

    p->begun = 1;

    rc = xet_cli_packer_stream(p, in);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    info = xet_ingest_info(p->core);
    file = &p->files[p->nfiles - 1];

    file->hash = info->hash;
    file->new_bytes = info->new_size;
    EVP_DigestFinal_ex(p->sha256, file->sha256, NULL);

    return XET_CLI_OK;
}


static int
xet_cli_packer_add(xet_cli_packer_t *p, const char *name, int executable)
{
    xet_cli_file_t  *file;

    file = xet_cli_grow(p->files, p->nfiles, &p->room,
                        sizeof(xet_cli_file_t));

    if (file == NULL) {
        return xet_cli_no_memory();
    }

    p->files = file;
    file += p->nfiles++;

    memset(file, 0, sizeof(xet_cli_file_t));

    file->name = name;
    file->executable = (executable != 0);

    return XET_CLI_OK;
}


static int
xet_cli_packer_stream(xet_cli_packer_t *p, FILE *in)
{
    int              rc;
    size_t           n;
    xet_cli_file_t  *file;

    file = &p->files[p->nfiles - 1];

    EVP_DigestInit_ex(p->sha256, EVP_sha256(), NULL);

    do {
        n = fread(p->piece, 1, XET_CLI_PACKER_PIECE, in);

        if (xet_cli_interrupted) {
            return XET_CLI_INTERRUPTED;
        }

        if (ferror(in)) {
            return xet_cli_fail(XET_CLI_ERROR, file->name, "cannot be read");
        }

        EVP_DigestUpdate(p->sha256, p->piece, n);
        file->size += n;

        rc = xet_cli_packer_feed(p, n);
        rc = rc ? rc : xet_cli_http_step(p->upload->http, 0);

        rc = xet_cli_worse(rc, p->upload->rc);

        xet_cli_progress_set(file->size);

    } while (rc == XET_CLI_OK && !feof(in));

    while (rc == XET_CLI_OK
           && xet_cli_packer_serve(p, xet_ingest_end(p->core), &rc))
    {
        /* void */
    }

    return rc;
}


static int
xet_cli_packer_feed(xet_cli_packer_t *p, size_t len)
{
    int           rc;
    size_t        pos, n;
    xet_status_t  status;

    pos = 0;

    do {
        status = xet_ingest_feed(p->core, p->piece + pos, len - pos, &n);
        pos += n;

    } while (xet_cli_packer_serve(p, status, &rc));

    return rc;
}


/*
 * Does what the core has requested by the status of a call: sends a xorb, or
 * queries a chunk.  Returns 1 if the call must be repeated, else 0 with the
 * exit code in *rc.
 */

static int
xet_cli_packer_serve(xet_cli_packer_t *p, xet_status_t status, int *rc)
{
    switch (status) {

    case XET_OK:
        *rc = XET_CLI_OK;
        return 0;

    case XET_AGAIN:
        break;

    case XET_NOMEM:
        *rc = xet_cli_no_memory();
        return 0;

    default:
        *rc = xet_cli_fail(XET_CLI_ERROR, "xorb", xet_status_text(status));
        return 0;
    }

    if (xet_ingest_want(p->core) == XET_INGEST_CHUNK) {
        *rc = xet_cli_packer_query(p);

    } else {
        *rc = xet_cli_upload_xorb(p->upload, xet_ingest_xorb(p->core));
    }

    xet_ingest_done(p->core);

    return *rc == XET_CLI_OK;
}


/*
 * Sends a dedup query for the chunk that the core asks about, while xorbs are
 * being sent.  If the query fails, the chunk counts as new and is sent; the
 * upload then reports the error.
 */

static int
xet_cli_packer_query(xet_cli_packer_t *p)
{
    int                 rc;
    char                text[XET_HASH_STR_LEN + 1];
    xet_cli_http_t     *h = p->upload->http;
    const xet_hash_t   *hash;
    xet_cli_request_t   r;

    hash = xet_ingest_chunk(p->core);

    rc = xet_cli_http_ask(h, &r, NULL,
                          xet_cli_http_url(h, "/v1/chunks/default/%s",
                                           xet_cli_hash_string(hash, text)));

    if (rc == XET_CLI_OK && r.status == 200) {
        rc = xet_cli_packer_learn(p->core, (uint8_t *) r.data, r.len);
    }

    xet_cli_http_free(&r);

    return rc;
}


/*
 * Adds the xorbs of a dedup response to the known xorbs of the core.  The
 * response is a shard that lists xorbs on the server, with chunk hashes under
 * a key.
 *
 * The response is ignored if it is malformed, has no footer of
 * XET_SHARD_FOOTER_VERSION, or has expired.  After its expiry, other responses
 * may have another key, and the xorbs may be gone.
 */

static int
xet_cli_packer_learn(xet_ingest_t *in, const uint8_t *data, size_t len)
{
    uint64_t                 expires;
    xet_hash_t               key;
    xet_status_t             rc;
    const uint8_t           *footer;
    xet_shard_parser_t       p;
    xet_cli_packer_answer_t  answer;

    if (len < XET_SHARD_RECORD_LEN + XET_SHARD_FOOTER_LEN) {
        return XET_CLI_OK;
    }

    footer = data + len - XET_SHARD_FOOTER_LEN;
    expires = xet_get_u64(footer + XET_CLI_PACKER_FOOTER_EXPIRES);

    if (xet_get_u64(footer) != XET_SHARD_FOOTER_VERSION
        || (expires && expires <= (uint64_t) time(NULL)))
    {
        return XET_CLI_OK;
    }

    memset(&answer, 0, sizeof(answer));
    memcpy(key.bytes, footer + XET_CLI_PACKER_FOOTER_KEY, XET_HASH_LEN);

    answer.in = in;
    answer.key = xet_hash_is_zero(&key) ? NULL : key.bytes;
    answer.hashes = malloc(XET_XORB_CHUNKS_MAX * XET_HASH_LEN);
    answer.xorb.hashes = answer.hashes;

    answer.rc = XET_CLI_OK;

    if (answer.hashes == NULL) {
        return xet_cli_no_memory();
    }

    xet_shard_parser_init(&p, xet_cli_packer_record, &answer);

    rc = xet_shard_parser_feed(&p, data, len - XET_SHARD_FOOTER_LEN);

    free(answer.hashes);

    return (rc == XET_NOMEM) ? xet_cli_no_memory() : answer.rc;
}


static xet_status_t
xet_cli_packer_record(void *ctx, const xet_shard_record_t *rec)
{
    xet_cli_packer_answer_t  *r = ctx;

    if (xet_cli_interrupted) {
        r->rc = XET_CLI_INTERRUPTED;
        return XET_INTERNAL;
    }

    if (rec->kind == XET_SHARD_REC_XORB) {
        r->xorb.hash = rec->hash;
        r->xorb.chunk_count = rec->count;
        r->n = 0;

        return XET_OK;
    }

    if (rec->kind != XET_SHARD_REC_CHUNK
        || r->xorb.chunk_count > XET_XORB_CHUNKS_MAX)
    {
        return XET_OK;
    }

    memcpy(r->hashes + r->n++ * XET_HASH_LEN, rec->hash.bytes, XET_HASH_LEN);

    if (r->n < r->xorb.chunk_count) {
        return XET_OK;
    }

    return r->key ? xet_ingest_known_keyed(r->in, &r->xorb, r->key)
                  : xet_ingest_known(r->in, &r->xorb);
}


static xet_status_t
xet_cli_packer_write(void *ctx, const uint8_t *data, size_t len)
{
    xet_cli_packer_t  *p = ctx;

    return xet_cli_upload_write(p->upload, data, len);
}


/*
 * Appends a chunk hash to p->hashes, which is a queue: terms arrive in the
 * order of the chunks.
 */

static xet_status_t
xet_cli_packer_chunk(void *ctx, const xet_hash_t *hash)
{
    uint8_t           *hashes;
    xet_cli_packer_t  *p = ctx;

    hashes = xet_cli_grow(p->hashes, p->hash_end, &p->hash_room,
                          XET_HASH_LEN);

    if (hashes == NULL) {
        return XET_NOMEM;
    }

    p->hashes = hashes;

    memcpy(p->hashes + p->hash_end++ * XET_HASH_LEN, hash->bytes,
           XET_HASH_LEN);

    return XET_OK;
}


static xet_status_t
xet_cli_packer_term(void *ctx, const xet_ingest_term_t *term)
{
    size_t                  n;
    xet_cli_file_t         *file;
    xet_cli_packer_t       *p = ctx;
    xet_cli_upload_term_t  *s;

    file = &p->files[term->file - p->first];

    s = xet_cli_grow(file->segments, file->count, &file->room,
                     sizeof(xet_cli_upload_term_t));

    if (s == NULL) {
        return XET_NOMEM;
    }

    file->segments = s;
    s += file->count++;

    s->xorb = term->xorb;
    s->start = term->chunk_start;
    s->end = term->chunk_end;
    s->raw_length = term->raw_length;

    n = s->end - s->start;

    xet_hash_verification(&xet_suite_default,
                          p->hashes + p->hash_first * XET_HASH_LEN, n,
                          &s->verification);

    p->hash_first += n;
    p->terms++;

    /* move the hashes only if at most half of them are left */

    if (p->hash_first >= p->hash_end - p->hash_first) {
        p->hash_end -= p->hash_first;
        memmove(p->hashes, p->hashes + p->hash_first * XET_HASH_LEN,
                p->hash_end * XET_HASH_LEN);
        p->hash_first = 0;
    }

    return XET_OK;
}


int
xet_cli_packer_commit(xet_cli_packer_t *p)
{
    int  rc;

    while (xet_cli_packer_serve(p, xet_ingest_finish(p->core), &rc)) {
        /* void */
    }

    rc = rc ? rc : xet_cli_upload_commit(p->upload, p->files, p->nfiles);

    /* the core still refers to xorbs that the upload has dropped */

    if (p->upload->refused) {
        xet_ingest_destroy(p->core);
        p->core = NULL;
    }

    return rc;
}


void
xet_cli_packer_clear(xet_cli_packer_t *p)
{
    size_t  i;

    for (i = 0; i < p->nfiles; i++) {
        free(p->files[i].segments);
    }

    p->first += p->nfiles;
    p->nfiles = 0;
    p->terms = 0;
}
