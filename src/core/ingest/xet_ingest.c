
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
 * Threads:    one at a time; others may pack batches (xet_ingest_batch.c).
 */

#include <stdlib.h>
#include <string.h>

#include "xet_chunk.h"
#include "xet_ingest_batch.h"
#include "xet_ingest_terms.h"


#define XET_INGEST_HELD    (XET_INGEST_RUN - 1)


typedef enum {
    XET_INGEST_IDLE = 0,
    XET_INGEST_LOOK,
    XET_INGEST_STORE_HELD,
    XET_INGEST_STORE
} xet_ingest_state_t;


struct xet_ingest_s {
    xet_ingest_conf_t     conf;
    xet_ingest_state_t    state;
    xet_ingest_want_t     want;
    unsigned              open:1;      /* the xorb being written has chunks */
    unsigned              placed:1;    /* last is set */
    unsigned              begun:1;     /* the file has a chunk */
    unsigned              known_run:1;   /* the previous chunk was known */

    xet_chunker_t         chunker;
    xet_merkle_t          merkle;
    xet_xorb_writer_t    *writer;
    xet_known_t          *known;
    xet_ingest_terms_t    terms;
    xet_ingest_info_t     info;

    xet_ingest_batch_t   *own;         /* at most conf.ahead chunks */
    xet_ingest_piece_t    chunk;       /* the current chunk */
    xet_known_ref_t       last;        /* position of the previous chunk */
    uint32_t              xorb;        /* number of the open xorb in known */

    uint8_t              *held_data;   /* XET_INGEST_HELD chunks, or NULL */
    xet_ingest_piece_t    held[XET_INGEST_HELD];
    unsigned              held_n;
    unsigned              held_stored;

    size_t                carried;
    uint8_t              *carry;       /* XET_CHUNK_MAX bytes */
};


static xet_status_t xet_ingest_scan(xet_ingest_t *in, const uint8_t *data,
    size_t len, size_t *taken);
static xet_ingest_piece_t *xet_ingest_append(xet_ingest_t *in,
    xet_ingest_batch_t *b, const uint8_t *data, size_t len, int cut);
static xet_status_t xet_ingest_begin(xet_ingest_t *in,
    xet_ingest_piece_t *chunk);
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


/* Returns whether the dedup index may have a chunk that was just cut. */

static inline int
xet_ingest_indexed(const xet_ingest_t *in, const xet_ingest_piece_t *chunk)
{
    return chunk->first
           || xet_hash_eligible(in->conf.suite, chunk->hash.bytes);
}


xet_ingest_t *
xet_ingest_create(const xet_ingest_conf_t *conf)
{
    xet_ingest_t  *in;

    static const uint64_t  zeroes[XET_KNOWN_SEED];

    in = calloc(1, sizeof(xet_ingest_t));
    if (in == NULL) {
        return NULL;
    }

    in->conf = *conf;

    xet_chunker_init(&in->chunker, conf->suite);
    xet_merkle_init(&in->merkle, conf->suite);
    xet_ingest_terms_init(&in->terms, conf->thrifty, conf->term, conf->ctx);

    in->writer = xet_xorb_writer_create(conf->suite, conf->write, conf->ctx);
    in->known = xet_known_create(conf->known,
                                 conf->seed ? conf->seed : zeroes);
    in->own = xet_ingest_batch_of(conf->suite, conf->ahead);
    in->carry = malloc(XET_CHUNK_MAX);

    if (in->writer == NULL || in->known == NULL || in->own == NULL
        || in->carry == NULL)
    {
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
    xet_ingest_batch_destroy(in->own);
    free(in->held_data);
    free(in->carry);
    free(in);
}


xet_status_t
xet_ingest_feed(xet_ingest_t *in, const uint8_t *data, size_t len,
    size_t *taken)
{
    xet_status_t  rc;

    *taken = 0;

    for ( ;; ) {
        rc = xet_ingest_place(in, in->own);

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
    xet_known_ref_t      ref;
    xet_ingest_batch_t  *own;
    xet_ingest_piece_t  *chunk;

    own = in->own;
    carried = 0;

    while (*taken < len && own->n < own->max && !carried) {
        carried = (in->carried != 0);

        n = xet_chunker_feed(&in->chunker, data + *taken, len - *taken, &cut);

        chunk = xet_ingest_append(in, own, data + *taken, n, cut);

        *taken += n;

        if (chunk == NULL || !in->conf.ask || in->conf.ahead == 1) {
            continue;
        }

        xet_ingest_hash(in->conf.suite, chunk);

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


/*
 * Adds bytes to the open chunk.  If cut is set, the chunk is then complete, and
 * is returned; otherwise returns NULL.
 */

static xet_ingest_piece_t *
xet_ingest_append(xet_ingest_t *in, xet_ingest_batch_t *b, const uint8_t *data,
    size_t len, int cut)
{
    xet_ingest_piece_t  *chunk;

    if (in->carried || !cut) {
        memcpy(in->carry + in->carried, data, len);
        in->carried += len;

        data = in->carry;
        len = in->carried;
    }

    if (!cut) {
        return NULL;
    }

    in->carried = 0;

    chunk = &b->chunks[b->n++];

    memset(chunk, 0, sizeof(xet_ingest_piece_t));

    chunk->data = data;
    chunk->len = (uint32_t) len;
    chunk->first = !in->begun;

    in->begun = 1;

    return chunk;
}


xet_status_t
xet_ingest_cut(xet_ingest_t *in, xet_ingest_batch_t *b, const uint8_t *data,
    size_t len)
{
    int                  cut;
    size_t               n;
    uint8_t             *carry;
    xet_ingest_piece_t  *chunk;

    b->n = 0;
    b->placed = 0;
    b->encode = !in->known_run;

    while (len) {
        n = xet_chunker_feed(&in->chunker, data, len, &cut);

        if (cut && b->n == b->max) {
            return XET_INTERNAL;
        }

        chunk = xet_ingest_append(in, b, data, n, cut);

        if (chunk && chunk->data == in->carry) {
            carry = b->carry;
            b->carry = in->carry;
            in->carry = carry;
        }

        data += n;
        len -= n;
    }

    return XET_OK;
}


xet_status_t
xet_ingest_end(xet_ingest_t *in)
{
    xet_hash_t    root;
    xet_status_t  rc;

    rc = xet_ingest_place(in, in->own);

    if (rc == XET_OK && in->carried) {
        (void) xet_ingest_append(in, in->own, in->carry, 0, 1);

        rc = xet_ingest_place(in, in->own);
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
    in->begun = 0;
}


xet_status_t
xet_ingest_finish(xet_ingest_t *in)
{
    if (in->open) {
        return xet_ingest_close(in);
    }

    return xet_ingest_terms_flush(&in->terms, NULL);
}


xet_status_t
xet_ingest_place(xet_ingest_t *in, xet_ingest_batch_t *b)
{
    xet_status_t  rc;

    for ( ;; ) {
        rc = xet_ingest_step(in);

        if (rc == XET_OK && b->placed < b->n) {
            rc = xet_ingest_begin(in, &b->chunks[b->placed++]);

            if (rc == XET_OK) {
                continue;
            }
        }

        if (rc != XET_OK) {
            return rc;
        }

        b->n = 0;
        b->placed = 0;

        return XET_OK;
    }
}


/* Makes a chunk the current one. */

static xet_status_t
xet_ingest_begin(xet_ingest_t *in, xet_ingest_piece_t *chunk)
{
    xet_ingest_hash(in->conf.suite, chunk);
    xet_merkle_add(&in->merkle, chunk->hash.bytes, chunk->len);

    in->info.chunks++;
    in->info.size += chunk->len;

    in->chunk = *chunk;
    in->state = XET_INGEST_LOOK;

    return in->conf.chunk ? in->conf.chunk(in->conf.ctx, &chunk->hash)
                          : XET_OK;
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
    held->encoded.data = NULL;
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
    in->known_run = 1;
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

    rc = piece->encoded.data
         ? xet_xorb_writer_put(in->writer, &piece->encoded, piece->len,
                               &piece->hash)
         : xet_xorb_writer_add(in->writer, piece->data, piece->len,
                               XET_SCHEME_AUTO, &piece->hash);
    if (rc != XET_OK) {
        return rc;
    }

    xet_known_add(in->known, in->xorb, n, piece->hash.bytes, &in->last);
    xet_ingest_terms_add(&in->terms, &in->last, NULL, piece->len);

    in->placed = 1;
    in->known_run = 0;
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
