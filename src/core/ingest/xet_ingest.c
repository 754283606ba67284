
/*
 * The ingest: turns the bytes of files into xorbs and terms.
 *
 * Purpose:    cuts the bytes into chunks, refers to a known chunk by a term,
 *             and adds any other chunk to the xorb being written.
 * States:     the next action for the current chunk:
 *               IDLE        nothing; the chunker cuts the next chunk
 *               LOOK        look the chunk up in the table of known chunks;
 *                           query the caller about the chunk at most once
 *               STORE_HELD  store the known chunks that were held back,
 *                           because their run is too short ("Fragmentation")
 *               STORE       add the chunk to the xorb; complete a full xorb
 *                           first
 * Ownership:  the creator owns the ingest.  A chunk that lies in one piece of
 *             the caller's data is not copied; a chunk that spans several
 *             pieces is assembled in carry.
 * Threads:    one at a time.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_chunk.h"
#include "xet_ingest.h"
#include "xet_hash.h"


/*
 * Fragmentation.  Reading a file costs one request per term, so terms must not
 * be short.  While the last 128 terms have at least 8 chunks on average, a
 * known chunk is used immediately.  Otherwise a run of known chunks is held
 * back until it has 8 chunks (at most 1 MiB).  A run that ends earlier is
 * stored again, so that the term of the xorb being written becomes longer.
 *
 * A thrifty ingest uses a short run only if it has saved 8 chunks for each
 * term of the file, including the term of that run; at the start of a file it
 * holds back every run.  So a small file in which a chunk occurs twice is
 * stored with both occurrences.  Its xorb is then the same as the xorb of
 * another client, and heals a damaged copy of that xorb.
 *
 * A chunk that follows the last chunk of a term in the same xorb extends the
 * term.  Terms wait until the xorb being written has its hash.  When too many
 * terms wait, the xorb is closed early.
 */

#define XET_INGEST_TERMS   2048        /* maximum number of waiting terms */
#define XET_INGEST_RECENT  128         /* terms whose lengths are averaged */
#define XET_INGEST_RUN     8           /* chunks that a term should have */
#define XET_INGEST_SAVED   256         /* upper limit of the saved counter */

#define XET_INGEST_HELD    (XET_INGEST_RUN - 1)


typedef enum {
    XET_INGEST_IDLE = 0,
    XET_INGEST_LOOK,
    XET_INGEST_STORE_HELD,
    XET_INGEST_STORE
} xet_ingest_state_t;


typedef struct {
    const uint8_t        *data;
    uint32_t              len;
    xet_hash_t            hash;
    unsigned              asked:1;     /* the caller was queried */
    xet_known_ref_t       ref;         /* the known position of the chunk */
} xet_ingest_piece_t;


/*
 * A term that waits for its xorb.  Only the last waiting term can be extended.
 */

typedef struct {
    xet_ingest_term_t   term;
    uint64_t            serial;        /* xorb's serial, see xet_known_ref_t */
    unsigned            named:1;       /* term.xorb is set */
} xet_ingest_waiting_t;


typedef struct {
    xet_ingest_term_pt    handler;
    void                 *ctx;

    uint32_t              file;        /* the number of the current file */
    uint64_t              closed;      /* complete terms of this file */
    uint32_t              recent[XET_INGEST_RECENT];  /* chunks per term */
    uint64_t              recent_sum;
    uint32_t              saved;       /* see xet_ingest_terms_fragmented() */
    unsigned              thrifty:1;

    unsigned              n;
    xet_ingest_waiting_t  waiting[XET_INGEST_TERMS];
} xet_ingest_terms_t;


struct xet_ingest_s {
    xet_ingest_conf_t     conf;
    xet_ingest_state_t    state;
    xet_ingest_want_t     want;
    unsigned              open:1;      /* the xorb being written has chunks */
    unsigned              placed:1;    /* last is set */

    xet_chunker_t         chunker;
    xet_merkle_t          merkle;
    xet_xorb_writer_t    *writer;
    xet_known_t          *known;
    xet_ingest_terms_t    terms;
    xet_ingest_info_t     info;

    xet_ingest_piece_t   *cut;         /* at most conf.ahead chunks */
    unsigned              cut_n;
    unsigned              cut_placed;  /* number of placed chunks in cut */

    xet_ingest_piece_t    chunk;       /* the current chunk */
    xet_known_ref_t       last;        /* position of the previous chunk */
    uint32_t              xorb;        /* number of the open xorb in known */

    uint8_t              *held_data;   /* XET_INGEST_HELD chunks, or NULL */
    xet_ingest_piece_t    held[XET_INGEST_HELD];
    unsigned              held_n;
    unsigned              held_stored;

    size_t                carried;
    uint8_t               carry[XET_CHUNK_MAX];
};


static xet_status_t xet_ingest_scan(xet_ingest_t *in, const uint8_t *data,
    size_t len, size_t *taken);
static xet_status_t xet_ingest_cut(xet_ingest_t *in, const uint8_t *data,
    size_t len, int cut);
static xet_status_t xet_ingest_slot(xet_ingest_t *in);
static xet_status_t xet_ingest_step(xet_ingest_t *in);
static xet_status_t xet_ingest_look(xet_ingest_t *in);
static int xet_ingest_asks(const xet_ingest_t *in);
static xet_status_t xet_ingest_match(xet_ingest_t *in);
static xet_status_t xet_ingest_hold(xet_ingest_t *in);
static void xet_ingest_take(xet_ingest_t *in,
    const xet_ingest_piece_t *piece);
static void xet_ingest_take_held(xet_ingest_t *in);
static xet_status_t xet_ingest_store_held(xet_ingest_t *in);
static xet_status_t xet_ingest_store(xet_ingest_t *in,
    const xet_ingest_piece_t *piece);
static xet_status_t xet_ingest_room(xet_ingest_t *in);
static xet_status_t xet_ingest_close(xet_ingest_t *in);
static xet_status_t xet_ingest_learn(xet_ingest_t *in,
    const xet_xorb_list_t *xorb, unsigned key, unsigned made);
static void xet_ingest_terms_init(xet_ingest_terms_t *t, unsigned thrifty,
    xet_ingest_term_pt handler, void *ctx);
static void xet_ingest_terms_next(xet_ingest_terms_t *t);
static int xet_ingest_terms_extends(const xet_ingest_terms_t *t,
    const xet_known_ref_t *ref);
static void xet_ingest_terms_add(xet_ingest_terms_t *t,
    const xet_known_ref_t *ref, const xet_hash_t *xorb, uint32_t raw_length);
static void xet_ingest_terms_save(xet_ingest_terms_t *t);
static void xet_ingest_terms_closed(xet_ingest_terms_t *t);
static xet_status_t xet_ingest_terms_flush(xet_ingest_terms_t *t,
    const xet_hash_t *xorb);
static int xet_ingest_terms_fragmented(const xet_ingest_terms_t *t);


/* Returns whether the dedup index may have a chunk that was just cut. */

static inline int
xet_ingest_indexed(const xet_ingest_t *in, const xet_ingest_piece_t *chunk)
{
    return in->info.chunks == 1
           || xet_hash_eligible(in->conf.suite, chunk->hash.bytes);
}


xet_ingest_t *
xet_ingest_create(const xet_ingest_conf_t *conf)
{
    xet_ingest_t  *in;

    static const uint64_t  zeroes[XET_KNOWN_SEED];

    in = malloc(sizeof(xet_ingest_t));
    if (in == NULL) {
        return NULL;
    }

    /* the carry is not cleared: a small file never touches it */

    memset(in, 0, offsetof(xet_ingest_t, carry));

    in->conf = *conf;

    xet_chunker_init(&in->chunker, conf->suite);
    xet_merkle_init(&in->merkle, conf->suite);
    xet_ingest_terms_init(&in->terms, conf->thrifty, conf->term, conf->ctx);

    in->writer = xet_xorb_writer_create(conf->suite, conf->write, conf->ctx);
    in->known = xet_known_create(conf->known,
                                 conf->seed ? conf->seed : zeroes);
    in->cut = malloc(conf->ahead * sizeof(xet_ingest_piece_t));

    if (in->writer == NULL || in->known == NULL || in->cut == NULL) {
        xet_ingest_destroy(in);
        return NULL;
    }

    return in;
}


void
xet_ingest_destroy(xet_ingest_t *in)
{
    if (in == NULL) {
        return;
    }

    xet_xorb_writer_destroy(in->writer);
    xet_known_destroy(in->known);
    free(in->held_data);
    free(in->cut);
    free(in);
}


xet_status_t
xet_ingest_feed(xet_ingest_t *in, const uint8_t *data, size_t len,
    size_t *taken)
{
    xet_status_t  rc;

    *taken = 0;

    for ( ;; ) {
        rc = xet_ingest_slot(in);

        if (rc != XET_OK || *taken == len) {
            return rc;
        }

        rc = xet_ingest_scan(in, data, len, taken);

        if (rc != XET_OK) {
            return rc;
        }
    }
}


/*
 * Cuts chunks until a chunk requires a query to the caller.  A chunk that was
 * assembled in the carry is placed before another chunk needs the carry.
 */

static xet_status_t
xet_ingest_scan(xet_ingest_t *in, const uint8_t *data, size_t len,
    size_t *taken)
{
    int                  cut, carried;
    size_t               n;
    xet_status_t         rc;
    xet_known_ref_t      ref;
    xet_ingest_piece_t  *chunk;

    carried = 0;

    while (*taken < len && in->cut_n < in->conf.ahead && !carried) {
        carried = (in->carried != 0);

        n = xet_chunker_feed(&in->chunker, data + *taken, len - *taken, &cut);

        rc = xet_ingest_cut(in, data + *taken, n, cut);

        if (rc != XET_OK) {
            return rc;
        }

        *taken += n;

        if (!cut || !in->conf.ask || in->conf.ahead == 1) {
            continue;
        }

        chunk = &in->cut[in->cut_n - 1];

        if (xet_ingest_indexed(in, chunk)
            && !xet_known_find(in->known, chunk->hash.bytes, &ref))
        {
            chunk->asked = 1;

            in->chunk = *chunk;
            in->want = XET_INGEST_CHUNK;

            return XET_AGAIN;
        }
    }

    return XET_OK;
}


/* Adds bytes to the open chunk.  If cut is set, the chunk is then complete. */

static xet_status_t
xet_ingest_cut(xet_ingest_t *in, const uint8_t *data, size_t len, int cut)
{
    xet_ingest_piece_t  *chunk;

    if (in->carried || !cut) {
        memcpy(in->carry + in->carried, data, len);
        in->carried += len;

        data = in->carry;
        len = in->carried;
    }

    if (!cut) {
        return XET_OK;
    }

    chunk = &in->cut[in->cut_n++];

    chunk->data = data;
    chunk->len = (uint32_t) len;
    chunk->asked = 0;

    xet_hash_chunk(in->conf.suite, data, len, &chunk->hash);
    xet_merkle_add(&in->merkle, chunk->hash.bytes, len);

    in->info.chunks++;
    in->info.size += len;

    in->carried = 0;

    return in->conf.chunk ? in->conf.chunk(in->conf.ctx, &chunk->hash)
                          : XET_OK;
}


xet_status_t
xet_ingest_end(xet_ingest_t *in)
{
    xet_hash_t    root;
    xet_status_t  rc;

    rc = xet_ingest_slot(in);

    if (rc == XET_OK && in->carried) {
        rc = xet_ingest_cut(in, in->carry, 0, 1);

        if (rc == XET_OK) {
            rc = xet_ingest_slot(in);
        }
    }

    if (rc != XET_OK) {
        return rc;
    }

    /* a held run at the end of the file is used, however short it is */

    xet_ingest_take_held(in);

    xet_merkle_finish(&in->merkle, &root);
    xet_hash_file(in->conf.suite, &root, &in->info.hash);

    return XET_OK;
}


void
xet_ingest_next(xet_ingest_t *in)
{
    xet_chunker_init(&in->chunker, in->conf.suite);
    xet_merkle_init(&in->merkle, in->conf.suite);
    xet_ingest_terms_next(&in->terms);

    memset(&in->info, 0, sizeof(xet_ingest_info_t));

    in->placed = 0;
}


xet_status_t
xet_ingest_finish(xet_ingest_t *in)
{
    if (in->open) {
        return xet_ingest_close(in);
    }

    return xet_ingest_terms_flush(&in->terms, NULL);
}


static xet_status_t
xet_ingest_slot(xet_ingest_t *in)
{
    xet_status_t  rc;

    for ( ;; ) {
        rc = xet_ingest_step(in);

        if (rc != XET_OK) {
            return rc;
        }

        if (in->cut_placed == in->cut_n) {
            break;
        }

        in->chunk = in->cut[in->cut_placed++];
        in->state = XET_INGEST_LOOK;
    }

    in->cut_n = 0;
    in->cut_placed = 0;

    return XET_OK;
}


/* Adds the current chunk to a term or a held run, or stores it. */

static xet_status_t
xet_ingest_step(xet_ingest_t *in)
{
    xet_status_t  rc;

    while (in->state != XET_INGEST_IDLE) {

        switch (in->state) {

        case XET_INGEST_LOOK:
            rc = xet_ingest_look(in);
            break;

        case XET_INGEST_STORE_HELD:
            rc = xet_ingest_store_held(in);
            break;

        default: /* XET_INGEST_STORE */
            rc = xet_ingest_store(in, &in->chunk);

            if (rc == XET_OK) {
                in->state = XET_INGEST_IDLE;
            }

            break;
        }

        if (rc != XET_OK) {
            return rc;
        }
    }

    return XET_OK;
}


/*
 * Looks up the current chunk.  If it follows the previous chunk in a known
 * xorb, that position is used, even if other xorbs also have the chunk.
 */

static xet_status_t
xet_ingest_look(xet_ingest_t *in)
{
    int               known;
    xet_status_t      rc;
    xet_known_ref_t  *ref;

    rc = xet_ingest_room(in);

    if (rc != XET_OK) {
        return rc;
    }

    ref = &in->chunk.ref;
    known = 0;

    if (in->held_n || in->placed) {
        *ref = in->held_n ? in->held[in->held_n - 1].ref : in->last;
        known = xet_known_next(in->known, ref, in->chunk.hash.bytes);
    }

    if (known) {
        return xet_ingest_match(in);
    }

    if (in->held_n) {
        in->state = XET_INGEST_STORE_HELD;
        return XET_OK;
    }

    if (xet_known_find(in->known, in->chunk.hash.bytes, ref)) {
        return xet_ingest_match(in);
    }

    if (xet_ingest_asks(in)) {
        in->chunk.asked = 1;
        in->want = XET_INGEST_CHUNK;
        return XET_AGAIN;
    }

    in->state = XET_INGEST_STORE;

    return XET_OK;
}


static int
xet_ingest_asks(const xet_ingest_t *in)
{
    return in->conf.ask && !in->chunk.asked
           && (xet_ingest_indexed(in, &in->chunk)
               || (in->placed && xet_known_last(in->known, &in->last)));
}


static xet_status_t
xet_ingest_match(xet_ingest_t *in)
{
    if (in->held_n == XET_INGEST_HELD) {
        xet_ingest_take_held(in);

    } else if (in->held_n
               || (xet_ingest_terms_fragmented(&in->terms)
                   && !xet_known_made(in->known, &in->chunk.ref)
                   && !xet_ingest_terms_extends(&in->terms, &in->chunk.ref)))
    {
        return xet_ingest_hold(in);
    }

    xet_ingest_take(in, &in->chunk);

    in->state = XET_INGEST_IDLE;

    return XET_OK;
}


static xet_status_t
xet_ingest_hold(xet_ingest_t *in)
{
    uint8_t             *data;
    xet_ingest_piece_t  *held;

    if (in->held_data == NULL) {
        in->held_data = malloc(XET_INGEST_HELD * XET_CHUNK_MAX);

        if (in->held_data == NULL) {
            return XET_NOMEM;
        }
    }

    data = in->held_data + in->held_n * XET_CHUNK_MAX;
    held = &in->held[in->held_n++];

    *held = in->chunk;
    held->data = data;
    memcpy(data, in->chunk.data, held->len);

    in->state = XET_INGEST_IDLE;

    return XET_OK;
}


/* Adds a known chunk to the terms. */

static void
xet_ingest_take(xet_ingest_t *in, const xet_ingest_piece_t *piece)
{
    xet_ingest_terms_add(&in->terms, &piece->ref,
                         xet_known_hash(in->known, &piece->ref), piece->len);

    in->last = piece->ref;
    in->placed = 1;
}


static void
xet_ingest_take_held(xet_ingest_t *in)
{
    unsigned  i;

    for (i = 0; i < in->held_n; i++) {
        xet_ingest_take(in, &in->held[i]);
    }

    in->held_n = 0;
}


static xet_status_t
xet_ingest_store_held(xet_ingest_t *in)
{
    xet_status_t  rc;

    while (in->held_stored < in->held_n) {
        rc = xet_ingest_store(in, &in->held[in->held_stored]);

        if (rc != XET_OK) {
            return rc;
        }

        in->held_stored++;
    }

    in->held_n = 0;
    in->held_stored = 0;
    in->state = XET_INGEST_LOOK;

    return XET_OK;
}


/* Adds a new chunk to the xorb being written. */

static xet_status_t
xet_ingest_store(xet_ingest_t *in, const xet_ingest_piece_t *piece)
{
    uint32_t      n;
    xet_status_t  rc;

    if (in->open && !xet_xorb_writer_fits(in->writer, piece->len)) {
        return xet_ingest_close(in);
    }

    if (!in->open) {
        rc = xet_known_xorb(in->known, NULL, 0, &in->xorb);

        if (rc != XET_OK) {
            return rc;
        }

        in->open = 1;
    }

    n = xet_xorb_writer_info(in->writer)->chunk_count;

    rc = xet_xorb_writer_add(in->writer, piece->data, piece->len,
                             XET_SCHEME_AUTO, &piece->hash);
    if (rc != XET_OK) {
        return rc;
    }

    xet_known_add(in->known, in->xorb, n, piece->hash.bytes, &in->last);
    xet_ingest_terms_add(&in->terms, &in->last, NULL, piece->len);

    in->placed = 1;
    in->info.new_size += piece->len;

    return XET_OK;
}


/* Makes room for the terms that one chunk and a held run can add. */

static xet_status_t
xet_ingest_room(xet_ingest_t *in)
{
    if (XET_INGEST_TERMS - in->terms.n > XET_INGEST_HELD + 1) {
        return XET_OK;
    }

    return in->open ? xet_ingest_close(in)
                    : xet_ingest_terms_flush(&in->terms, NULL);
}


static xet_status_t
xet_ingest_close(xet_ingest_t *in)
{
    xet_status_t            rc;
    const xet_xorb_info_t  *info;

    rc = xet_xorb_writer_finish(in->writer, 0);

    if (rc != XET_OK) {
        return rc;
    }

    info = xet_xorb_writer_info(in->writer);

    rc = xet_ingest_terms_flush(&in->terms, &info->hash);

    if (rc != XET_OK) {
        return rc;
    }

    xet_known_name(in->known, in->xorb, &info->hash, info->chunk_count);

    in->open = 0;
    in->want = XET_INGEST_XORB;

    return XET_AGAIN;
}


const xet_ingest_info_t *
xet_ingest_info(const xet_ingest_t *in)
{
    return &in->info;
}


xet_ingest_want_t
xet_ingest_want(const xet_ingest_t *in)
{
    return in->want;
}


const xet_hash_t *
xet_ingest_chunk(const xet_ingest_t *in)
{
    return &in->chunk.hash;
}


xet_status_t
xet_ingest_known(xet_ingest_t *in, const xet_xorb_list_t *xorb)
{
    return xet_ingest_learn(in, xorb, 0, 0);
}


xet_status_t
xet_ingest_known_keyed(xet_ingest_t *in, const xet_xorb_list_t *xorb,
    const uint8_t *key)
{
    unsigned  n;

    n = xet_known_key(in->known, key);

    return n ? xet_ingest_learn(in, xorb, n, 0) : XET_OK;
}


xet_status_t
xet_ingest_known_made(xet_ingest_t *in, const xet_xorb_list_t *xorb)
{
    return xet_ingest_learn(in, xorb, 0, 1);
}


static xet_status_t
xet_ingest_learn(xet_ingest_t *in, const xet_xorb_list_t *xorb, unsigned key,
    unsigned made)
{
    uint32_t        i, n;
    xet_seen_t      seen;
    xet_status_t    rc;
    const uint8_t  *hash;

    /*
     * chunks that the caller may not see are added with a hash of zeros, which
     * no chunk has, so that the other chunks keep their indexes
     */

    static const uint8_t  hidden[XET_HASH_LEN];

    if (xorb->chunk_count == 0 || xet_known_has(in->known, &xorb->hash)) {
        return XET_OK;
    }

    rc = xet_known_xorb(in->known, &xorb->hash, xorb->chunk_count, &n);

    if (rc != XET_OK) {
        return rc;
    }

    xet_known_mark(in->known, n, key, made);

    xet_seen_init(&seen, xorb);

    for (i = 0; i < xorb->chunk_count; i++) {
        hash = xet_seen_chunk(&seen, i) ? xorb->hashes + i * XET_HASH_LEN
                                        : hidden;

        xet_known_add(in->known, n, i, hash, NULL);
    }

    return XET_OK;
}


const xet_xorb_info_t *
xet_ingest_xorb(const xet_ingest_t *in)
{
    return xet_xorb_writer_info(in->writer);
}


void
xet_ingest_done(xet_ingest_t *in)
{
    if (in->want == XET_INGEST_XORB) {
        xet_xorb_writer_reset(in->writer);
    }

    in->want = XET_INGEST_NOTHING;
}


static void
xet_ingest_terms_init(xet_ingest_terms_t *t, unsigned thrifty,
    xet_ingest_term_pt handler, void *ctx)
{
    memset(t, 0, offsetof(xet_ingest_terms_t, waiting));

    t->thrifty = thrifty ? 1 : 0;
    t->handler = handler;
    t->ctx = ctx;
}


/* Begins another file with the next chunk. */

static void
xet_ingest_terms_next(xet_ingest_terms_t *t)
{
    t->file++;
    t->closed = 0;
    t->recent_sum = 0;
    t->saved = 0;

    memset(t->recent, 0, sizeof(t->recent));
}


/* Returns whether the chunk follows the file's last term in its xorb. */

static int
xet_ingest_terms_extends(const xet_ingest_terms_t *t,
    const xet_known_ref_t *ref)
{
    const xet_ingest_waiting_t  *w;

    if (t->n == 0) {
        return 0;
    }

    w = &t->waiting[t->n - 1];

    return w->serial == ref->serial && w->term.chunk_end == ref->chunk
           && w->term.file == t->file;
}


/*
 * Adds the next chunk of the file; the caller has made room.  xorb is the name
 * of the chunk's xorb, NULL while the xorb has no name.
 */

static void
xet_ingest_terms_add(xet_ingest_terms_t *t, const xet_known_ref_t *ref,
    const xet_hash_t *xorb, uint32_t raw_length)
{
    xet_ingest_waiting_t  *w;

    if (xet_ingest_terms_extends(t, ref)) {
        w = &t->waiting[t->n - 1];

        w->term.chunk_end++;
        w->term.raw_length += raw_length;

        xet_ingest_terms_save(t);

        return;
    }

    xet_ingest_terms_closed(t);

    w = &t->waiting[t->n++];

    memset(w, 0, sizeof(xet_ingest_waiting_t));

    w->serial = ref->serial;
    w->term.chunk_start = ref->chunk;
    w->term.chunk_end = ref->chunk + 1;
    w->term.raw_length = raw_length;
    w->term.file = t->file;

    if (xorb) {
        w->term.xorb = *xorb;
        w->named = 1;
    }

    t->saved -= (t->saved < XET_INGEST_RUN) ? t->saved : XET_INGEST_RUN;

    xet_ingest_terms_save(t);
}


static void
xet_ingest_terms_save(xet_ingest_terms_t *t)
{
    if (t->saved < XET_INGEST_SAVED) {
        t->saved++;
    }
}


/*
 * Counts the last term if it belongs to the current file.  That term can't be
 * extended any more.
 */

static void
xet_ingest_terms_closed(xet_ingest_terms_t *t)
{
    uint32_t                 *recent;
    const xet_ingest_term_t  *term;

    if (t->n == 0 || t->waiting[t->n - 1].term.file != t->file) {
        return;
    }

    term = &t->waiting[t->n - 1].term;
    recent = &t->recent[t->closed++ % XET_INGEST_RECENT];

    t->recent_sum -= *recent;
    *recent = term->chunk_end - term->chunk_start;
    t->recent_sum += *recent;
}


/*
 * Passes all terms to the handler, and returns its error.  xorb is the name of
 * the xorb of all terms that were added with NULL.  Returns XET_INTERNAL when
 * there are such terms and xorb is NULL.
 */

static xet_status_t
xet_ingest_terms_flush(xet_ingest_terms_t *t, const xet_hash_t *xorb)
{
    unsigned               i;
    xet_status_t           rc;
    xet_ingest_waiting_t  *w;

    xet_ingest_terms_closed(t);

    for (i = 0; i < t->n; i++) {
        w = &t->waiting[i];

        if (!w->named) {

            if (xorb == NULL) {
                return XET_INTERNAL;
            }

            w->term.xorb = *xorb;
        }

        rc = t->handler(t->ctx, &w->term);

        if (rc != XET_OK) {
            return rc;
        }
    }

    t->n = 0;

    return XET_OK;
}


/*
 * Returns whether short runs must be held back.  In a thrifty ingest: whether
 * the balance t->saved is below XET_INGEST_RUN.  A saved chunk adds 1 to the
 * balance; a term subtracts XET_INGEST_RUN, but not below 0.  In any other
 * ingest: whether the last XET_INGEST_RECENT terms of the file have fewer than
 * XET_INGEST_RUN chunks on average; 0 while the file has fewer terms.
 */

static int
xet_ingest_terms_fragmented(const xet_ingest_terms_t *t)
{
    if (t->thrifty) {
        return t->saved < XET_INGEST_RUN;
    }

    return t->closed >= XET_INGEST_RECENT
           && t->recent_sum < (uint64_t) XET_INGEST_RUN * XET_INGEST_RECENT;
}
