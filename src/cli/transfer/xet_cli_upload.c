
/* Uploads: sends xorbs and shards. */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_transfer.h"


/*
 * Limits of a xorb and of a shard, in bytes.  The core also limits the stored
 * size of a xorb to xorb_raw_target.  The xorb that reaches the limit of a
 * shard is the last xorb in that shard.
 */

#define XET_CLI_UPLOAD_XORB   (64 * 1024 * 1024)
#define XET_CLI_UPLOAD_SHARD  (32 * 1024 * 1024)


struct xet_cli_upload_xorb_s {
    xet_cli_upload_xorb_t  *next;
    size_t                  number;    /* index in upload->xorbs.all */
    xet_cli_request_t       request;
    xet_cli_upload_t       *upload;
    uint8_t                *body;
};


static int xet_cli_upload_send(xet_cli_upload_t *u, const xet_hash_t *hash);
static void xet_cli_upload_sent(xet_cli_request_t *r);
static void xet_cli_upload_remove(xet_cli_upload_xorb_t *x);
static int xet_cli_upload_wait(xet_cli_upload_t *u, unsigned sending);
static int xet_cli_upload_shard(xet_cli_upload_t *u, size_t *xorb,
    const xet_cli_file_t *files, size_t n);
static void xet_cli_upload_file(xet_buf_t *b, const xet_cli_file_t *file);
static int xet_cli_upload_post(xet_cli_upload_t *u, const xet_buf_t *b);
static int xet_cli_upload_answer(const xet_cli_request_t *r,
    const char *member);


void
xet_cli_upload_init(xet_cli_upload_t *u, xet_cli_http_t *h,
    uint64_t parallel)
{
    memset(u, 0, sizeof(xet_cli_upload_t));

    u->http = h;
    u->parallel = parallel;
    u->journal.folder = -1;
    u->journal.fd = -1;
}


void
xet_cli_upload_free(xet_cli_upload_t *u)
{
    while (u->sends) {
        xet_cli_upload_remove(u->sends);
    }

    xet_cli_journal_close(&u->journal, u->ended);
    xet_cli_xorbs_drop(&u->xorbs, 1, 1);

    free(u->xorbs.all);
    free(u->body);
}


xet_status_t
xet_cli_upload_write(xet_cli_upload_t *u, const uint8_t *data, size_t len)
{
    if (u->body == NULL) {
        u->body = malloc(XET_CLI_UPLOAD_XORB);
        u->len = 0;
    }

    if (u->body == NULL) {
        return XET_NOMEM;
    }

    if (len > XET_CLI_UPLOAD_XORB - u->len) {
        return XET_XORB_SIZE;
    }

    memcpy(u->body + u->len, data, len);
    u->len += len;

    return XET_OK;
}


int
xet_cli_upload_xorb(xet_cli_upload_t *u, const xet_xorb_info_t *info)
{
    int              rc;
    xet_xorb_list_t  list;

    memset(&list, 0, sizeof(list));

    list.hash = info->hash;
    list.chunk_count = info->chunk_count;
    list.raw_size = (uint32_t) info->raw_size;
    list.stored_size = (uint32_t) info->stored_size;
    list.hashes = info->hashes;
    list.raw_ends = info->raw_ends;

    rc = xet_cli_xorbs_add(&u->xorbs, &list, 0);
    rc = rc ? rc : xet_cli_upload_wait(u, (unsigned) u->parallel - 1);

    return rc ? rc : xet_cli_upload_send(u, &info->hash);
}


/* Sends the xorb in u->body.  The request takes over the body. */

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
    x->number = u->xorbs.n - 1;
    x->body = u->body;

    x->request.url = xet_cli_http_url(u->http, "/v1/xorbs/default/%s",
                                      xet_cli_hash_string(hash, text));
    x->request.body = u->body;
    x->request.body_len = u->len;
    x->request.max = XET_CLI_REQUEST_SHORT;
    x->request.api = 1;
    x->request.done = xet_cli_upload_sent;
    x->request.ctx = x;

    x->next = u->sends;
    u->sends = x;

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
    xet_cli_upload_xorb_t  *x = r->ctx;

    u = x->upload;

    u->sending--;

    rc = (r->status / 100 == 2) ? xet_cli_upload_answer(r, "was_inserted")
                                : xet_cli_http_fail(r);

    if (rc == XET_CLI_OK) {
        xet_cli_journal_add(&u->journal, &u->xorbs.all[x->number].list);
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

    for (link = &x->upload->sends; *link != x; link = &(*link)->next) {
        /* void */
    }

    *link = x->next;

    xet_cli_http_free(&x->request);

    free(x->body);
    free(x);
}


/* Waits until at most "sending" xorbs are being sent. */

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
    size_t  i, k, xorb;

    rc = xet_cli_upload_wait(u, 0);

    /*
     * shards list a xorb of an earlier run only if one of the files refers to
     * it
     */

    for (i = 0; i < n; i++) {
        for (k = 0; k < files[i].count; k++) {
            xet_cli_xorbs_want(&u->xorbs, &files[i].segments[k].xorb);
        }
    }

    u->resumed = 0;

    for (i = 0; i < u->xorbs.n; i++) {
        u->resumed |= u->xorbs.all[i].resumed && u->xorbs.all[i].wanted;
    }

    xorb = 0;

    /* the xorbs may need several shards; the last shard lists the files */

    while (rc == XET_CLI_OK) {
        rc = xet_cli_upload_shard(u, &xorb, files, n);

        if (xorb == u->xorbs.n) {
            break;
        }
    }

    if (u->refused) {

        /* keep the xorbs that this run has sent, also in the journal */

        xet_cli_journal_reset(&u->journal);
        xet_cli_xorbs_drop(&u->xorbs, 0, 1);

        for (i = 0; i < u->xorbs.n; i++) {
            xet_cli_journal_add(&u->journal, &u->xorbs.all[i].list);
        }

    } else if (rc == XET_CLI_OK) {
        xet_cli_xorbs_drop(&u->xorbs, 1, 0);
    }

    return rc;
}


static int
xet_cli_upload_shard(xet_cli_upload_t *u, size_t *xorb,
    const xet_cli_file_t *files, size_t n)
{
    int                    rc;
    size_t                 i, end, size;
    xet_buf_t              b;
    const xet_cli_xorb_t  *all;

    all = u->xorbs.all;
    size = 0;

    for (end = *xorb; end < u->xorbs.n && size < XET_CLI_UPLOAD_SHARD; end++) {
        if (all[end].wanted) {
            size += XET_SHARD_RECORD_LEN
                    * (1 + (size_t) all[end].list.chunk_count);
        }
    }

    xet_buf_init(&b, xet_cli_buf_alloc, NULL, 65536);

    xet_shard_build_header(&b, 0);

    for (i = 0; end == u->xorbs.n && i < n; i++) {
        xet_cli_upload_file(&b, &files[i]);
    }

    xet_shard_build_bookend(&b);

    for (i = *xorb; i < end; i++) {
        if (all[i].wanted) {
            xet_shard_build_xorb_block(&b, &all[i].list, NULL);
        }
    }

    xet_shard_build_bookend(&b);

    *xorb = end;

    rc = xet_cli_upload_post(u, &b);

    xet_cli_buf_free(&b);

    return rc;
}


static void
xet_cli_upload_file(xet_buf_t *b, const xet_cli_file_t *file)
{
    size_t                        i;
    const xet_cli_upload_term_t  *s;

    xet_shard_build_file(b, &file->hash,
                         XET_SHARD_FILE_VERIFICATION
                         | XET_SHARD_FILE_METADATA,
                         (uint32_t) file->count);

    for (i = 0; i < file->count; i++) {
        s = &file->segments[i];

        xet_shard_build_term(b, &s->xorb, s->raw_length, s->start, s->end);
    }

    for (i = 0; i < file->count; i++) {
        xet_shard_build_verification(b, &file->segments[i].verification);
    }

    xet_shard_build_metadata(b, file->sha256);
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
    r.max = XET_CLI_REQUEST_SHORT;
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
 * Checks a response.  A proxy may return 200 for anything: only a response of
 * the API confirms that the data is stored.
 */

static int
xet_cli_upload_answer(const xet_cli_request_t *r, const char *member)
{
    int            known;
    char           storage[XET_CLI_HTTP_TEXT];
    json_t        *answer;
    const json_t  *value;

    answer = r->data ? json_loadb(r->data, r->len, 0, NULL) : NULL;
    value = json_object_get(answer, member);
    known = json_is_boolean(value) || json_is_integer(value);

    json_decref(answer);

    return known ? XET_CLI_OK
           : xet_cli_failf(XET_CLI_NETWORK, "server",
                           "%s: unexpected response (HTTP %ld): does not "
                           "confirm the upload",
                           xet_cli_http_text(r->url, storage),
                           r->status);
}
