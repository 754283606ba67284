
/*
 * Makes of a file what an upload needs.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_packer.h"
#include "xet_cli_progress.h"


#define XET_CLI_PACKER_PIECE  (8 * 1024 * 1024)
#define XET_CLI_PACKER_RUN    8        /* chunks, and what a term costs */
#define XET_CLI_PACKER_SAVED  256


static int xet_cli_packer_pieces(xet_cli_packer_t *p);
static int xet_cli_packer_read(xet_cli_packer_t *p);
static void xet_cli_packer_cut(xet_cli_packer_t *p);
static void xet_cli_packer_chunk(xet_cli_packer_t *p, size_t end);
static int xet_cli_packer_ask(xet_cli_packer_t *p);
static int xet_cli_packer_query(xet_cli_packer_t *p, const xet_hash_t *hash);
static int xet_cli_packer_decide(xet_cli_packer_t *p);
static size_t xet_cli_packer_choose(xet_cli_packer_t *p, size_t i,
    xet_cli_place_t *place);
static size_t xet_cli_packer_run(xet_cli_packer_t *p, size_t i,
    xet_cli_place_t at);
static int xet_cli_packer_refer(xet_cli_packer_t *p,
    const xet_cli_packer_chunk_t *chunk, xet_cli_place_t place);
static int xet_cli_packer_segment(xet_cli_packer_t *p);


int
xet_cli_packer_init(xet_cli_packer_t *p, xet_cli_upload_t *upload)
{
    size_t  most;

    memset(p, 0, sizeof(xet_cli_packer_t));

    p->upload = upload;

    /* all but the last chunk of a file have the least size */

    most = XET_CLI_PACKER_PIECE / xet_suite_default.chunk_min + 2;

    p->piece = malloc(XET_CLI_PACKER_PIECE);
    p->chunks = calloc(most, sizeof(xet_cli_packer_chunk_t));
    p->hashes = malloc(XET_XORB_CHUNKS_MAX * XET_HASH_LEN);
    p->sha256 = EVP_MD_CTX_new();

    if (!p->piece || !p->chunks || !p->hashes || !p->sha256) {
        return xet_cli_no_memory();
    }

    return XET_CLI_OK;
}


void
xet_cli_packer_free(xet_cli_packer_t *p)
{
    EVP_MD_CTX_free(p->sha256);

    free(p->piece);
    free(p->chunks);
    free(p->hashes);
}


int
xet_cli_packer_file(xet_cli_packer_t *p, FILE *in, xet_cli_file_t *file)
{
    int         rc;
    xet_hash_t  root;

    p->in = in;
    p->file = file;

    xet_chunker_init(&p->chunker, &xet_suite_default);
    xet_merkle_init(&p->merkle, &xet_suite_default);
    EVP_DigestInit_ex(p->sha256, EVP_sha256(), NULL);

    p->total = 0;
    p->eof = 0;
    p->have = 0;
    p->open = 0;
    p->nchunks = 0;
    p->asked = 0;
    p->segmented = 0;
    p->interrupted = 0;
    p->credit = 0;

    rc = xet_cli_packer_pieces(p);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_packer_segment(p);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    xet_merkle_finish(&p->merkle, &root);
    xet_hash_file(&xet_suite_default, &root, &file->hash);
    EVP_DigestFinal_ex(p->sha256, file->sha256, NULL);

    return XET_CLI_OK;
}


static int
xet_cli_packer_pieces(xet_cli_packer_t *p)
{
    int  rc;

    do {
        rc = xet_cli_packer_read(p);

        if (rc == XET_CLI_OK) {
            xet_cli_packer_cut(p);
            rc = xet_cli_packer_ask(p);
        }

        if (rc == XET_CLI_OK) {
            rc = xet_cli_packer_decide(p);
        }

        if (rc == XET_CLI_OK) {
            rc = xet_cli_http_step(p->upload->http, 0);
        }

        xet_cli_progress_set(p->file->size);

    } while (rc == XET_CLI_OK && !p->eof);

    return xet_cli_worse(rc, p->upload->rc);
}


static int
xet_cli_packer_read(xet_cli_packer_t *p)
{
    size_t  n;

    n = fread(p->piece + p->have, 1, XET_CLI_PACKER_PIECE - p->have, p->in);

    if (xet_cli_interrupted) {
        return XET_CLI_INTERRUPTED;
    }

    if (ferror(p->in)) {
        return xet_cli_fail(XET_CLI_ERROR, p->file->name, "can't be read");
    }

    p->eof = feof(p->in) != 0;

    EVP_DigestUpdate(p->sha256, p->piece + p->have, n);

    p->have += n;
    p->file->size += n;

    return XET_CLI_OK;
}


/* The chunker has seen all but what was read just now. */

static void
xet_cli_packer_cut(xet_cli_packer_t *p)
{
    int     cut;
    size_t  pos;

    pos = p->open + p->chunker.size;

    while (pos < p->have) {
        pos += xet_chunker_feed(&p->chunker, p->piece + pos, p->have - pos,
                                &cut);

        if (cut) {
            xet_cli_packer_chunk(p, pos);
        }
    }

    if (p->eof && p->open < p->have) {
        xet_cli_packer_chunk(p, p->have);
    }
}


static void
xet_cli_packer_chunk(xet_cli_packer_t *p, size_t end)
{
    xet_cli_packer_chunk_t  *c;

    c = &p->chunks[p->nchunks++];

    c->start = p->open;
    c->len = (uint32_t) (end - p->open);

    p->open = end;

    xet_hash_chunk(&xet_suite_default, p->piece + c->start, c->len, &c->hash);
    xet_merkle_add(&p->merkle, c->hash.bytes, c->len);
}


/* One chunk in a thousand may be in the index, and the first of a file. */

static int
xet_cli_packer_ask(xet_cli_packer_t *p)
{
    int                   rc;
    xet_cli_place_t       place;
    xet_cli_packer_chunk_t  *c;

    for ( /* void */ ; p->asked < p->nchunks; p->asked++) {
        c = &p->chunks[p->asked];

        if (p->total++ != 0
            && !xet_hash_eligible(&xet_suite_default, c->hash.bytes))
        {
            continue;
        }

        if (xet_cli_dedup_find(&p->upload->dedup, &c->hash, &place)) {
            continue;
        }

        rc = xet_cli_packer_query(p, &c->hash);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    return XET_CLI_OK;
}


/*
 * Xorbs go on being sent meanwhile.  Without an answer there is more to send,
 * and the upload of it will show what is wrong.
 */

static int
xet_cli_packer_query(xet_cli_packer_t *p, const xet_hash_t *hash)
{
    int                rc;
    char               text[XET_HASH_STR_LEN + 1];
    xet_cli_request_t  r;

    rc = xet_cli_http_ask(p->upload->http, &r, NULL,
                          xet_cli_http_url(p->upload->http,
                                           "/v1/chunks/default/%s",
                                           xet_cli_hash_string(hash, text)));

    if (rc == XET_CLI_OK && r.status == 200) {
        rc = xet_cli_dedup_learn(&p->upload->dedup, (uint8_t *) r.data, r.len);
    }

    xet_cli_http_free(&r);

    return rc;
}


static int
xet_cli_packer_decide(xet_cli_packer_t *p)
{
    int                   rc;
    size_t                i, k;
    xet_cli_place_t       place;
    xet_cli_packer_chunk_t  *c;

    for (i = 0; i < p->nchunks
                && (p->eof || p->nchunks - i >= XET_CLI_PACKER_RUN); i++)
    {
        c = &p->chunks[i];

        if (xet_cli_packer_choose(p, i, &place) == 0) {
            rc = xet_cli_upload_chunk(p->upload, p->piece + c->start,
                                      c->len, &c->hash, &place);

            if (rc != XET_CLI_OK) {
                return rc;
            }

            p->file->new_bytes += c->len;
        }

        rc = xet_cli_packer_refer(p, c, place);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    /* what is left moves to the front */

    k = (i < p->nchunks) ? p->chunks[i].start : p->open;

    p->nchunks -= i;
    p->asked -= i;
    p->have -= k;
    p->open -= k;

    memmove(p->chunks, p->chunks + i,
            p->nchunks * sizeof(xet_cli_packer_chunk_t));
    memmove(p->piece, p->piece + k, p->have);

    for (i = 0; i < p->nchunks; i++) {
        p->chunks[i].start -= k;
    }

    return XET_CLI_OK;
}


/*
 * Where the chunk is to be referred to, 0: it is to be sent.  Of a chunk that
 * is in several places the one behind the term before the last is tried, too:
 * what interrupted that term may be over.
 */

static size_t
xet_cli_packer_choose(xet_cli_packer_t *p, size_t i, xet_cli_place_t *place)
{
    size_t                         n, back;
    const xet_cli_dedup_t         *d;
    const xet_cli_packer_chunk_t  *c;

    d = &p->upload->dedup;
    c = &p->chunks[i];

    if (p->segmented) {
        place->xorb = p->segment.xorb;
        place->chunk = p->segment.end;

        if (xet_cli_dedup_at(d, *place, &c->hash, c->len)) {
            return 1;
        }
    }

    n = 0;

    if (xet_cli_dedup_find(d, &c->hash, place)) {
        n = xet_cli_packer_run(p, i, *place);
    }

    if (n && n < XET_CLI_PACKER_RUN && p->interrupted) {
        back = xet_cli_packer_run(p, i, p->back);

        if (back > n) {
            n = back;
            *place = p->back;
        }
    }

    /* what an earlier run has sent, it has sent for this very place */

    return (n == XET_CLI_PACKER_RUN || p->credit >= XET_CLI_PACKER_RUN
            || (p->eof && i + n == p->nchunks)
            || (n && d->xorbs[place->xorb].resumed)) ? n : 0;
}


/* How many chunks from i on are in a row from there on, 8 at most. */

static size_t
xet_cli_packer_run(xet_cli_packer_t *p, size_t i, xet_cli_place_t at)
{
    size_t                         n;
    const xet_cli_packer_chunk_t  *c;

    for (n = 0; n < XET_CLI_PACKER_RUN && i + n < p->nchunks; n++) {
        c = &p->chunks[i + n];

        if (!xet_cli_dedup_at(&p->upload->dedup, at, &c->hash, c->len)) {
            break;
        }

        at.chunk++;
    }

    return n;
}


static int
xet_cli_packer_refer(xet_cli_packer_t *p, const xet_cli_packer_chunk_t *chunk,
    xet_cli_place_t place)
{
    int                 rc;
    xet_cli_segment_t  *s;

    s = &p->segment;

    if (!p->segmented || s->xorb != place.xorb || s->end != place.chunk) {
        p->interrupted = p->segmented;
        p->back.xorb = s->xorb;
        p->back.chunk = s->end;

        rc = xet_cli_packer_segment(p);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        s->xorb = place.xorb;
        s->start = place.chunk;
        s->end = place.chunk;
        s->raw_length = 0;

        p->segmented = 1;

        p->credit -= (p->credit < XET_CLI_PACKER_RUN) ? p->credit
                                                      : XET_CLI_PACKER_RUN;
    }

    if (p->credit < XET_CLI_PACKER_SAVED) {
        p->credit++;
    }

    memcpy(p->hashes + (s->end - s->start) * XET_HASH_LEN, chunk->hash.bytes,
           XET_HASH_LEN);

    s->end++;
    s->raw_length += chunk->len;

    return XET_CLI_OK;
}


/* The term is complete. */

static int
xet_cli_packer_segment(xet_cli_packer_t *p)
{
    size_t              n;
    xet_cli_file_t     *file;
    xet_cli_segment_t  *segments;

    if (!p->segmented) {
        return XET_CLI_OK;
    }

    p->segmented = 0;
    file = p->file;

    if (file->count == file->room) {
        n = file->room ? file->room * 2 : 16;
        segments = realloc(file->segments, n * sizeof(xet_cli_segment_t));

        if (segments == NULL) {
            return xet_cli_no_memory();
        }

        file->segments = segments;
        file->room = n;
    }

    xet_hash_verification(&xet_suite_default, p->hashes,
                          p->segment.end - p->segment.start,
                          &p->segment.verification);

    file->segments[file->count++] = p->segment;

    return XET_CLI_OK;
}
