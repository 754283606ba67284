
/*
 * Implements an in-memory store for the ingest tests: keeps the xorbs, answers
 * dedup queries, and checks the terms against the data.
 */

#ifndef _XET_INGEST_STORE_H_INCLUDED_
#define _XET_INGEST_STORE_H_INCLUDED_


#include "xet_chunk.h"
#include "xet_ingest.h"
#include "xet_hash.h"
#include "xet_vectors.h"


#define XORBS_MAX  4096


typedef struct {
    xet_hash_t        hash;
    uint32_t          n;
    uint8_t          *hashes;
    uint8_t          *ends;            /* raw ends, 4 bytes each */
    uint8_t          *raw;
} stored_t;


typedef struct {
    const xet_suite_t  *suite;
    xet_codec_t        *codec;

    stored_t            xorbs[XORBS_MAX];
    size_t              n;

    uint8_t            *open;          /* chunk region of the open xorb */
    size_t              open_len;
    size_t              open_max;

    xet_ingest_term_t  *terms;
    size_t              nterms;
    size_t              terms_max;

    uint32_t            ahead;
    unsigned            thrifty;
    const uint8_t      *key;           /* NULL: responses are not keyed */
    int                 made;          /* 1: each xorb is reported before a file
                                          by xet_ingest_known_made() */

    size_t              asked;
    size_t              told;
    uint64_t            size;          /* bytes of all chunk regions */
    int                 bad;
} store_t;


typedef struct {
    xet_ingest_info_t   info;
    size_t              terms;
    size_t              asked;
    size_t              xorbs;         /* number of new xorbs */
} result_t;


static store_t *
store_create(const xet_suite_t *suite)
{
    store_t  *s;

    s = calloc(1, sizeof(store_t));
    s->suite = suite;
    s->codec = xet_codec_create(&xet_suite_default);
    s->ahead = 1;

    return s;
}


/* Removes all xorbs after the first n. */

static void
store_forget(store_t *s, size_t n)
{
    while (s->n > n) {
        s->n--;
        free(s->xorbs[s->n].hashes);
        free(s->xorbs[s->n].ends);
        free(s->xorbs[s->n].raw);
    }
}


static void
store_destroy(store_t *s)
{
    store_forget(s, 0);

    xet_codec_destroy(s->codec);
    free(s->open);
    free(s->terms);
    free(s);
}


static xet_status_t
store_write(void *ctx, const uint8_t *data, size_t len)
{
    store_t *s = ctx;

    if (s->open_len + len > s->open_max) {
        s->open_max = 2 * (s->open_len + len);
        s->open = realloc(s->open, s->open_max);
    }

    memcpy(s->open + s->open_len, data, len);
    s->open_len += len;

    return XET_OK;
}


static xet_status_t
store_term(void *ctx, const xet_ingest_term_t *term)
{
    store_t *s = ctx;

    if (s->nterms == s->terms_max) {
        s->terms_max = 2 * s->terms_max + 16;
        s->terms = realloc(s->terms, s->terms_max * sizeof(*term));
    }

    s->terms[s->nterms++] = *term;

    return XET_OK;
}


static stored_t *
store_find(store_t *s, const xet_hash_t *hash)
{
    size_t  i;

    for (i = 0; i < s->n; i++) {
        if (xet_hash_equal(&s->xorbs[i].hash, hash)) {
            return &s->xorbs[i];
        }
    }

    return NULL;
}


/* Stores the complete xorb, and verifies it as if a client had uploaded it. */

static int
store_keep(store_t *s, const xet_xorb_info_t *info)
{
    size_t                i, pos, raw, stored, len;
    stored_t             *x;
    const uint8_t        *p;
    xet_xorb_verifier_t  *v;

    v = xet_xorb_verifier_create(s->suite, &info->hash, 1u << 30);

    if (xet_xorb_verifier_feed(v, s->open, s->open_len, &stored) != XET_OK
        || xet_xorb_verifier_finish(v) != XET_OK || stored != s->open_len
        || info->stored_size != stored || s->n == XORBS_MAX)
    {
        xet_xorb_verifier_destroy(v);
        return 0;
    }

    xet_xorb_verifier_destroy(v);

    s->size += stored;

    x = &s->xorbs[s->n++];

    x->hash = info->hash;
    x->n = info->chunk_count;
    x->hashes = malloc(x->n * XET_HASH_LEN);
    x->ends = malloc(x->n * 4);
    x->raw = malloc(info->raw_size);

    memcpy(x->hashes, info->hashes, x->n * XET_HASH_LEN);
    memcpy(x->ends, info->raw_ends, x->n * 4);

    raw = 0;

    for (i = 0, pos = 0; i < x->n; i++) {
        p = s->open + pos;
        stored = xet_get_u24(p + 1);
        len = xet_get_u24(p + 5);

        if (xet_codec_decode(s->codec, p[4], p + XET_XORB_HEADER_LEN, stored,
                             x->raw + raw, len)
            != XET_OK)
        {
            return 0;
        }

        pos += XET_XORB_HEADER_LEN + stored;
        raw += len;
    }

    s->open_len = 0;

    return raw == info->raw_size;
}


/* Reports a xorb to the ingest, with keyed hashes if there is a key. */

static int
store_tell(store_t *s, xet_ingest_t *in, const stored_t *x)
{
    size_t           i;
    uint8_t         *hashes;
    xet_hash_t       keyed;
    xet_status_t     rc;
    xet_xorb_list_t  list;

    memset(&list, 0, sizeof(list));

    list.hash = x->hash;
    list.chunk_count = x->n;
    list.hashes = x->hashes;
    list.raw_ends = x->ends;

    if (s->made) {
        return xet_ingest_known_made(in, &list) == XET_OK;
    }

    if (s->key == NULL) {
        return xet_ingest_known(in, &list) == XET_OK;
    }

    hashes = malloc(x->n * XET_HASH_LEN);

    for (i = 0; i < x->n; i++) {
        xet_hash_keyed(s->key, x->hashes + i * XET_HASH_LEN, XET_HASH_LEN,
                       &keyed);
        memcpy(hashes + i * XET_HASH_LEN, keyed.bytes, XET_HASH_LEN);
    }

    list.hashes = hashes;

    rc = xet_ingest_known_keyed(in, &list, s->key);

    free(hashes);

    return rc == XET_OK;
}


/*
 * Reports xorbs that contain the chunk that the ingest asks about, newest
 * first, at most s->told xorbs.
 */

static int
store_answer(store_t *s, xet_ingest_t *in)
{
    size_t     i, k, n;
    stored_t  *x;

    s->asked++;

    for (i = s->n, n = 0; i-- > 0 && n < s->told; /* void */) {
        x = &s->xorbs[i];

        for (k = 0; k < x->n; k++) {
            if (memcmp(x->hashes + k * XET_HASH_LEN,
                       xet_ingest_chunk(in)->bytes, XET_HASH_LEN)
                == 0)
            {
                break;
            }
        }

        if (k == x->n) {
            continue;
        }

        if (!store_tell(s, in, x)) {
            return 0;
        }

        n++;
    }

    return 1;
}


static int
serve(store_t *s, xet_ingest_t *in)
{
    int  ok;

    switch (xet_ingest_want(in)) {

    case XET_INGEST_CHUNK:
        ok = store_answer(s, in);
        break;

    case XET_INGEST_XORB:
        ok = store_keep(s, xet_ingest_xorb(in));
        break;

    default:
        return 0;
    }

    xet_ingest_done(in);

    return ok;
}


/* Computes the file hash with the draft's algorithm, in one call. */

static void
reference(const xet_suite_t *suite, const uint8_t *data, size_t len,
    xet_hash_t *hash)
{
    int            cut;
    size_t         n, start, pos;
    xet_hash_t     chunk, root;
    xet_merkle_t   m;
    xet_chunker_t  c;

    xet_chunker_init(&c, suite);
    xet_merkle_init(&m, suite);

    for (start = 0, pos = 0; pos < len; /* void */) {
        n = xet_chunker_feed(&c, data + pos, len - pos, &cut);
        pos += n;

        xet_hash_chunk(suite, data + start, pos - start, &chunk);
        xet_merkle_add(&m, chunk.bytes, pos - start);

        start = pos;
    }

    xet_merkle_finish(&m, &root);
    xet_hash_file(suite, &root, hash);
}


static int
comes_back(store_t *s, const uint8_t *data, size_t len)
{
    size_t     i, pos;
    uint32_t   start, end;
    stored_t  *x;

    for (i = 0, pos = 0; i < s->nterms; i++) {
        x = store_find(s, &s->terms[i].xorb);

        if (x == NULL || s->terms[i].chunk_start >= s->terms[i].chunk_end
            || s->terms[i].chunk_end > x->n)
        {
            return 0;
        }

        start = s->terms[i].chunk_start
                ? xet_get_u32(x->ends + (s->terms[i].chunk_start - 1) * 4)
                : 0;
        end = xet_get_u32(x->ends + (s->terms[i].chunk_end - 1) * 4);

        if (end - start != s->terms[i].raw_length || len - pos < end - start
            || memcmp(x->raw + start, data + pos, end - start) != 0)
        {
            return 0;
        }

        pos += end - start;
    }

    return pos == len;
}


/*
 * A piece of the file, in its own heap block, from xet_ingest_cut() until
 * xet_ingest_place().
 */

typedef struct {
    uint8_t             *copy;
    size_t               len;
    xet_ingest_batch_t  *batch;
} piece_t;


#define PIECES_MAX  4


/*
 * If set, files go through xet_ingest_cut(), pack() and place(), with so many
 * pieces between cut and place; otherwise through xet_ingest_feed().
 */

static unsigned  pieces;


/* Calls xet_ingest_place() for the first n pieces, and frees them. */

static int
place(store_t *s, xet_ingest_t *in, piece_t *p, unsigned n)
{
    int           ok;
    unsigned      i;
    xet_status_t  rc;

    ok = 1;

    for (i = 0; i < n; i++) {
        while (ok && (rc = xet_ingest_place(in, p[i].batch)) != XET_OK) {
            ok = (rc == XET_AGAIN && serve(s, in));
        }

        xet_ingest_batch_destroy(p[i].batch);

        memset(p[i].copy, 0xdd, p[i].len);
        free(p[i].copy);
    }

    return ok;
}


/*
 * Cuts a piece, which is packed later: the newest one first, and each third one
 * not at all.
 */

static int
cut(store_t *s, xet_ingest_t *in, xet_xorb_encoder_t *encoder, piece_t *p,
    unsigned *n, uint8_t *copy, size_t len)
{
    int       ok;
    unsigned  i;

    ok = 1;

    if (*n == pieces) {
        for (i = *n; i-- > 0; /* void */) {
            ok = ok && (p[i].len % 3 == 0
                        || xet_ingest_pack(p[i].batch, encoder) == XET_OK);
        }

        ok = ok && place(s, in, p, *n);
        *n = 0;
    }

    p += (*n)++;

    p->copy = copy;
    p->len = len;
    p->batch = xet_ingest_batch_create(s->suite, len);

    return ok && xet_ingest_cut(in, p->batch, copy, len) == XET_OK;
}


static int
feed(store_t *s, xet_ingest_t *in, uint8_t *copy, size_t len)
{
    int           ok;
    size_t        done, n;
    xet_status_t  rc;

    for (done = 0, ok = 1; ok; done += n) {
        rc = xet_ingest_feed(in, copy + done, len - done, &n);

        if (rc == XET_OK) {
            ok = (done + n == len);
            break;
        }

        ok = (rc == XET_AGAIN && serve(s, in));
    }

    memset(copy, 0xdd, len);
    free(copy);

    return ok;
}


/*
 * Takes the file in pieces of up to step bytes, each in its own heap block,
 * which is freed as soon as the interface allows.  Returns 0 on any fault.
 */

static int
take_in(store_t *s, const uint8_t *data, size_t len, size_t step,
    uint64_t *state, unsigned ask, result_t *res)
{
    int                  ok;
    size_t               pos, piece, n;
    piece_t              cuts[PIECES_MAX];
    uint8_t             *copy;
    unsigned             waiting;
    xet_hash_t           hash;
    xet_status_t         rc;
    xet_ingest_t        *in;
    xet_ingest_conf_t    conf;
    xet_xorb_encoder_t  *encoder;

    memset(&conf, 0, sizeof(conf));

    conf.suite = s->suite;
    conf.ask = ask;
    conf.ahead = s->ahead;
    conf.known = XET_INGEST_KNOWN;
    conf.thrifty = s->thrifty ? 1 : 0;
    conf.write = store_write;
    conf.term = store_term;
    conf.ctx = s;

    in = xet_ingest_create(&conf);
    encoder = xet_xorb_encoder_create(s->suite);
    waiting = 0;

    s->nterms = 0;
    s->asked = 0;
    s->open_len = 0;
    res->xorbs = s->n;
    ok = 1;

    for (n = 0; ok && s->made && n < s->n; n++) {
        ok = store_tell(s, in, &s->xorbs[n]);
    }

    for (pos = 0; ok && pos < len; pos += piece) {
        piece = (size_t) (xet_splitmix64(state) % step) + 1;
        piece = (piece < len - pos) ? piece : len - pos;

        copy = malloc(piece);
        memcpy(copy, data + pos, piece);

        ok = (pieces && s->ahead == 1)
             ? cut(s, in, encoder, cuts, &waiting, copy, piece)
             : feed(s, in, copy, piece);
    }

    ok = place(s, in, cuts, waiting) && ok;

    while (ok && (rc = xet_ingest_end(in)) != XET_OK) {
        ok = (rc == XET_AGAIN && serve(s, in));
    }

    while (ok && (rc = xet_ingest_finish(in)) != XET_OK) {
        ok = (rc == XET_AGAIN && serve(s, in));
    }

    ok = ok && xet_ingest_finish(in) == XET_OK;

    res->info = *xet_ingest_info(in);
    res->terms = s->nterms;
    res->asked = s->asked;
    res->xorbs = s->n - res->xorbs;

    xet_ingest_destroy(in);
    xet_xorb_encoder_destroy(encoder);

    reference(s->suite, data, len, &hash);

    return ok && res->info.size == len && res->info.new_size <= len
           && xet_hash_equal(&hash, &res->info.hash)
           && comes_back(s, data, len);
}


#endif /* _XET_INGEST_STORE_H_INCLUDED_ */
