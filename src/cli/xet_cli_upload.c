
/*
 * Uploads: xorbs and shards.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_json.h"
#include "xet_cli_upload.h"


/* A writer keeps what it stores to what it may take. */

#define XET_CLI_UPLOAD_XORB   (64 * 1024 * 1024)
#define XET_CLI_UPLOAD_SHARD  (32 * 1024 * 1024)


struct xet_cli_upload_xorb_s {
    xet_cli_upload_xorb_t  *next;
    uint32_t                number;
    xet_cli_request_t       request;
    xet_cli_upload_t       *upload;
    uint8_t                *body;
};


static xet_status_t xet_cli_upload_write(void *ctx, const uint8_t *data,
    size_t len);
static int xet_cli_upload_open(xet_cli_upload_t *u);
static int xet_cli_upload_close(xet_cli_upload_t *u);
static int xet_cli_upload_note(xet_cli_upload_t *u, uint32_t xorb);
static int xet_cli_upload_send(xet_cli_upload_t *u,
    const xet_hash_t *hash);
static void xet_cli_upload_sent(xet_cli_request_t *r);
static void xet_cli_upload_remove(xet_cli_upload_xorb_t *x);
static int xet_cli_upload_wait(xet_cli_upload_t *u, unsigned sending);
static int xet_cli_upload_shard(xet_cli_upload_t *u, size_t *xorb,
    const xet_cli_file_t *files, size_t n);
static void xet_cli_upload_file(xet_buf_t *b, const xet_cli_upload_t *u,
    const xet_cli_file_t *file);
static void xet_cli_upload_xorb(xet_buf_t *b, const xet_cli_upload_t *u,
    uint32_t xorb);
static int xet_cli_upload_resumed(xet_cli_upload_t *u,
    const xet_cli_file_t *files, size_t n);
static void xet_cli_upload_forget(xet_cli_upload_t *u);
static int xet_cli_upload_post(xet_cli_upload_t *u, const xet_buf_t *b);
static int xet_cli_upload_answer(const xet_cli_request_t *r,
    const char *member);


int
xet_cli_upload_init(xet_cli_upload_t *u, xet_cli_http_t *h,
    uint64_t parallel)
{
    memset(u, 0, sizeof(xet_cli_upload_t));

    u->http = h;
    u->parallel = parallel;
    u->journal.folder = -1;
    u->journal.fd = -1;

    xet_cli_dedup_init(&u->dedup);

    u->writer = xet_xorb_writer_create(&xet_suite_default,
                                       xet_cli_upload_write, u);

    return u->writer ? XET_CLI_OK : xet_cli_no_memory();
}


void
xet_cli_upload_free(xet_cli_upload_t *u)
{
    while (u->xorbs) {
        xet_cli_upload_remove(u->xorbs);
    }

    xet_cli_journal_close(&u->journal, u->ended);

    xet_xorb_writer_destroy(u->writer);
    xet_cli_dedup_free(&u->dedup);

    free(u->body);
    free(u->sent);
}


static xet_status_t
xet_cli_upload_write(void *ctx, const uint8_t *data, size_t len)
{
    xet_cli_upload_t  *u;

    u = ctx;

    if (len > XET_CLI_UPLOAD_XORB - u->len) {
        return XET_XORB_SIZE;
    }

    memcpy(u->body + u->len, data, len);
    u->len += len;

    return XET_OK;
}


int
xet_cli_upload_chunk(xet_cli_upload_t *u, const uint8_t *data, uint32_t len,
    const xet_hash_t *hash, xet_cli_place_t *place)
{
    int           rc;
    xet_status_t  status;

    if (u->body && !xet_xorb_writer_fits(u->writer, len)) {
        rc = xet_cli_upload_close(u);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    if (u->body == NULL) {
        rc = xet_cli_upload_open(u);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    status = xet_xorb_writer_add(u->writer, data, len, XET_SCHEME_AUTO, hash);

    if (status != XET_OK) {
        return xet_cli_fail(XET_CLI_ERROR, "xorb", xet_status_text(status));
    }

    place->xorb = u->xorb;
    place->chunk = u->dedup.xorbs[u->xorb].count;

    return xet_cli_dedup_add(&u->dedup, u->xorb, hash->bytes, len);
}


static int
xet_cli_upload_open(xet_cli_upload_t *u)
{
    u->body = malloc(XET_CLI_UPLOAD_XORB);

    if (u->body == NULL) {
        return xet_cli_no_memory();
    }

    u->len = 0;
    xet_xorb_writer_reset(u->writer);

    return xet_cli_dedup_xorb(&u->dedup, 0, &u->xorb);
}


static int
xet_cli_upload_close(xet_cli_upload_t *u)
{
    int                     rc;
    xet_status_t            status;
    xet_cli_known_t        *x;
    const xet_xorb_info_t  *info;

    status = xet_xorb_writer_finish(u->writer, 0);

    if (status != XET_OK) {
        return xet_cli_fail(XET_CLI_ERROR, "xorb", xet_status_text(status));
    }

    info = xet_xorb_writer_info(u->writer);
    x = &u->dedup.xorbs[u->xorb];

    x->raw_size = (uint32_t) info->raw_size;
    x->stored_size = (uint32_t) info->stored_size;

    rc = xet_cli_dedup_name(&u->dedup, u->xorb, &info->hash);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_upload_note(u, u->xorb);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_upload_wait(u, (unsigned) u->parallel - 1);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_upload_send(u, &info->hash);
    }

    return rc;
}


static int
xet_cli_upload_note(xet_cli_upload_t *u, uint32_t xorb)
{
    size_t     n;
    uint32_t  *sent;

    if (u->nsent == u->sent_room) {
        n = u->sent_room ? u->sent_room * 2 : 16;
        sent = realloc(u->sent, n * sizeof(uint32_t));

        if (sent == NULL) {
            return xet_cli_no_memory();
        }

        u->sent = sent;
        u->sent_room = n;
    }

    u->sent[u->nsent++] = xorb;
    u->dedup.xorbs[xorb].told = 1;

    return XET_CLI_OK;
}


/* The body goes with the request. */

static int
xet_cli_upload_send(xet_cli_upload_t *u, const xet_hash_t *hash)
{
    char                    text[XET_HASH_STR_LEN + 1];
    xet_cli_upload_xorb_t  *x;

    x = calloc(1, sizeof(xet_cli_upload_xorb_t));

    if (x == NULL) {
        return xet_cli_no_memory();
    }

    x->upload = u;
    x->number = u->xorb;
    x->body = u->body;

    x->request.url = xet_cli_http_url(u->http, "/v1/xorbs/default/%s",
                                      xet_cli_hash_string(hash, text));
    x->request.body = u->body;
    x->request.body_len = u->len;
    x->request.max = XET_CLI_HTTP_SHORT_MAX;
    x->request.api = 1;
    x->request.done = xet_cli_upload_sent;
    x->request.ctx = x;

    x->next = u->xorbs;
    u->xorbs = x;

    u->body = NULL;
    u->sending++;

    xet_cli_http_start(u->http, &x->request);

    return XET_CLI_OK;
}


static void
xet_cli_upload_sent(xet_cli_request_t *r)
{
    int                     rc;
    xet_cli_upload_t       *u;
    xet_cli_upload_xorb_t  *x;

    x = r->ctx;
    u = x->upload;

    u->sending--;

    rc = (r->status / 100 == 2) ? xet_cli_upload_answer(r, "was_inserted")
                                : xet_cli_http_fail(r);

    if (rc == XET_CLI_OK) {
        u->sent_bytes += r->body_len;
        xet_cli_journal_add(&u->journal, &u->dedup.xorbs[x->number]);
    }

    if (u->rc == XET_CLI_OK) {
        u->rc = rc;
    }

    xet_cli_upload_remove(x);
}


static void
xet_cli_upload_remove(xet_cli_upload_xorb_t *x)
{
    xet_cli_upload_xorb_t  **link;

    for (link = &x->upload->xorbs; *link != x; link = &(*link)->next) {
        /* void */
    }

    *link = x->next;

    xet_cli_http_free(&x->request);

    free(x->body);
    free(x);
}


/* Until no more than so many xorbs are under way. */

static int
xet_cli_upload_wait(xet_cli_upload_t *u, unsigned sending)
{
    int  rc;

    rc = XET_CLI_OK;

    while (u->sending > sending && u->rc == XET_CLI_OK && rc == XET_CLI_OK) {
        rc = xet_cli_http_step(u->http, 200);
    }

    return xet_cli_worse(rc, u->rc);
}


int
xet_cli_upload_commit(xet_cli_upload_t *u, const xet_cli_file_t *files,
    size_t n)
{
    int     rc;
    size_t  xorb;

    rc = u->body ? xet_cli_upload_close(u) : XET_CLI_OK;

    if (rc == XET_CLI_OK) {
        rc = xet_cli_upload_wait(u, 0);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_upload_resumed(u, files, n);
    }

    xorb = 0;

    /* what does not fit into one shard goes ahead, the files are last */

    while (rc == XET_CLI_OK && xorb < u->nsent) {
        rc = xet_cli_upload_shard(u, &xorb, files, n);
    }

    if (rc == XET_CLI_OK && u->nsent == 0) {
        rc = xet_cli_upload_shard(u, &xorb, files, n);
    }

    u->nsent = 0;

    if (u->refused) {
        xet_cli_upload_forget(u);
    }

    return rc;
}


/* Of what was sent before, shards tell what files refer to. */

static int
xet_cli_upload_resumed(xet_cli_upload_t *u, const xet_cli_file_t *files,
    size_t n)
{
    int               rc;
    size_t            i, k;
    uint32_t          xorb;
    xet_cli_known_t  *x;

    rc = XET_CLI_OK;

    for (i = 0; i < n; i++) {
        for (k = 0; k < files[i].count && rc == XET_CLI_OK; k++) {
            xorb = files[i].segments[k].xorb;
            x = &u->dedup.xorbs[xorb];

            if (x->raw_size && !x->told) {
                u->resumed |= x->resumed;
                rc = xet_cli_upload_note(u, xorb);
            }
        }
    }

    return rc;
}


/* What this run has sent remains, in memory and in the journal. */

static void
xet_cli_upload_forget(xet_cli_upload_t *u)
{
    uint32_t          n;
    xet_cli_known_t  *x;

    xet_cli_journal_reset(&u->journal);

    for (n = 0; n < u->dedup.nxorbs; n++) {
        x = &u->dedup.xorbs[n];

        if (x->raw_size && !x->resumed) {
            xet_cli_journal_add(&u->journal, x);

            /* the shard that was to tell of it did not */

            x->told = 0;
        }
    }

    xet_cli_dedup_forget(&u->dedup);

    u->resumed = 0;
}


static int
xet_cli_upload_shard(xet_cli_upload_t *u, size_t *xorb,
    const xet_cli_file_t *files, size_t n)
{
    int        rc;
    size_t     i, end, size;
    xet_buf_t  b;

    size = 0;

    for (end = *xorb; end < u->nsent && size < XET_CLI_UPLOAD_SHARD; end++) {
        size += XET_SHARD_RECORD_LEN
                * (1 + (size_t) u->dedup.xorbs[u->sent[end]].count);
    }

    xet_buf_init(&b, xet_cli_buf_alloc, NULL, 65536);

    xet_shard_build_header(&b, 0);

    for (i = 0; end == u->nsent && i < n; i++) {
        xet_cli_upload_file(&b, u, &files[i]);
    }

    xet_shard_build_section_end(&b);

    for (i = *xorb; i < end; i++) {
        xet_cli_upload_xorb(&b, u, u->sent[i]);
    }

    xet_shard_build_section_end(&b);

    *xorb = end;

    rc = xet_cli_upload_post(u, &b);

    xet_cli_buf_free(&b);

    return rc;
}


static void
xet_cli_upload_file(xet_buf_t *b, const xet_cli_upload_t *u,
    const xet_cli_file_t *file)
{
    size_t                    i;
    const xet_cli_segment_t  *s;

    xet_shard_build_file(b, &file->hash,
                         XET_SHARD_FILE_VERIFICATION
                         | XET_SHARD_FILE_METADATA,
                         (uint32_t) file->count);

    for (i = 0; i < file->count; i++) {
        s = &file->segments[i];

        xet_shard_build_segment(b, &u->dedup.xorbs[s->xorb].hash,
                                s->raw_length, s->start, s->end);
    }

    for (i = 0; i < file->count; i++) {
        xet_shard_build_verification(b, &file->segments[i].verification);
    }

    xet_shard_build_metadata(b, file->sha256);
}


static void
xet_cli_upload_xorb(xet_buf_t *b, const xet_cli_upload_t *u, uint32_t xorb)
{
    uint32_t                i, pos;
    const xet_cli_known_t  *x;

    x = &u->dedup.xorbs[xorb];

    xet_shard_build_xorb(b, &x->hash, x->count, x->raw_size, x->stored_size);

    for (i = 0, pos = 0; i < x->count; i++) {
        xet_shard_build_chunk(b, x->hashes + i * XET_HASH_LEN, pos,
                              x->lengths[i], 0);
        pos += x->lengths[i];
    }
}


static int
xet_cli_upload_post(xet_cli_upload_t *u, const xet_buf_t *b)
{
    int                 rc;
    size_t              len;
    uint8_t            *body;
    xet_cli_request_t   r;

    body = xet_cli_buf_bytes(b, &len);

    if (body == NULL) {
        return xet_cli_no_memory();
    }

    memset(&r, 0, sizeof(r));

    r.url = xet_cli_http_url(u->http, "/v1/shards");
    r.max = XET_CLI_HTTP_SHORT_MAX;
    r.body = body;
    r.body_len = len;
    r.api = 1;
    r.patient = 1;

    rc = xet_cli_http_call(u->http, &r);

    if (rc == XET_CLI_OK && r.status / 100 != 2) {

        u->refused = u->resumed
                     && (r.status == 400 || r.status == 404
                         || r.status == 409 || r.status == 422);

        rc = (u->refused && !u->once) ? XET_CLI_FAULT : xet_cli_http_fail(&r);

    } else if (rc == XET_CLI_OK) {
        rc = xet_cli_upload_answer(&r, "result");
    }

    xet_cli_http_free(&r);
    free(body);

    return rc;
}


/*
 * Something between here and the server may answer anything with 200: stored
 * is only what the API says so of.
 */

static int
xet_cli_upload_answer(const xet_cli_request_t *r, const char *member)
{
    int            known;
    char           place[XET_CLI_HTTP_TEXT];
    json_t        *answer;
    const json_t  *value;

    answer = r->data ? json_loadb(r->data, r->len, 0, NULL) : NULL;
    value = json_object_get(answer, member);
    known = json_is_boolean(value) || json_is_integer(value);

    json_decref(answer);

    return known ? XET_CLI_OK
           : xet_cli_failf(XET_CLI_NETWORK, "server",
                           "%s: %ld, but the answer does not say that it is "
                           "stored", xet_cli_http_text(r->url, place),
                           r->status);
}
