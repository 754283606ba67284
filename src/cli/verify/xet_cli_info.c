
/*
 * xet info: shows what an operand is, and verifies it; and xet hash: prints
 * the hash and the size of a file.
 *
 * xet info reads an operand that is a local file.  A file that starts with the
 * tag of a shard is a shard.  A file that starts with the header of a chunk,
 * or whose name ends in a hash, is a xorb.  Any other file is a plain file, as
 * for xet put.  A hash that is not the name of a local file is looked up on
 * the server, as a file and then as a xorb.
 */


#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_verify.h"
#include "xet_xorb.h"


#define XET_CLI_INFO_BUFFER  65536

/* Members of the JSON output, which are also lines of the text output. */

#define xet_cli_info_text(key, text)                                          \
    xet_cli_out_text_line(key, 12, key, text)
#define xet_cli_info_number(key, n)                                           \
    xet_cli_out_number_line(key, 12, key, n)
#define xet_cli_info_hash(key, hash)                                          \
    xet_cli_out_hash_line(key, 12, key, hash)

/*
 * Prints the result for an operand; returns the exit code of
 * xet_cli_info_end().
 */

#define xet_cli_info_print(in, kind, status, ...)                             \
    xet_cli_info_end(in, status,                                              \
                     xet_cli_print((in)->json,                                \
                                   xet_cli_out_text("name", (in)->name, ": "), \
                                   xet_cli_out_text("kind", kind, "\n"),      \
                                   __VA_ARGS__,                               \
                                   xet_cli_out_bool("ok",                     \
                                                    (status) == XET_OK)))


typedef struct {
    const xet_cli_args_t  *args;
    const char            *name;       /* the operand */
    int                    json;

    FILE                  *file;
    size_t                 len;
    uint8_t                buffer[XET_CLI_INFO_BUFFER];

    xet_cli_http_t        *http;       /* NULL: not created yet */

    xet_json_t            *j;          /* JSON output of a shard */
} xet_cli_info_t;


static int xet_cli_hash_file(xet_cli_digest_t *d, const char *name,
    int json);
static int xet_cli_info_any(xet_cli_info_t *in, const char *name);
static int xet_cli_info_local(xet_cli_info_t *in);
static int xet_cli_info_read(xet_cli_info_t *in);
static int xet_cli_info_is_xorb(const xet_cli_info_t *in, xet_hash_t *named);
static int xet_cli_info_shard(xet_cli_info_t *in);
static xet_status_t xet_cli_info_record(void *ctx,
    const xet_shard_record_t *rec);
static int xet_cli_info_xorb(xet_cli_info_t *in, const xet_hash_t *named);
static int xet_cli_info_file(xet_cli_info_t *in);
static int xet_cli_info_remote(xet_cli_info_t *in, const xet_hash_t *hash);
static int xet_cli_info_xorb_size(xet_cli_info_t *in, const xet_hash_t *hash,
    uint64_t *size);
static int xet_cli_info_end(xet_cli_info_t *in, xet_status_t status,
    int rc);


int
xet_cli_hash(const xet_cli_args_t *args)
{
    int                i, rc;
    xet_cli_digest_t  *d;

    d = malloc(sizeof(xet_cli_digest_t));

    if (d == NULL) {
        return xet_cli_no_memory();
    }

    rc = XET_CLI_OK;

    for (i = 0; i < args->count && rc < XET_CLI_INTERRUPTED; i++) {
        rc = xet_cli_worse(rc, xet_cli_hash_file(d, args->operands[i],
                                                 xet_cli_json(args)));
    }

    free(d);

    return rc;
}


static int
xet_cli_hash_file(xet_cli_digest_t *d, const char *name, int json)
{
    int    rc;
    FILE  *file;

    file = xet_cli_open(name);

    if (file == NULL) {
        return XET_CLI_ERROR;
    }

    rc = xet_cli_digest_file(d, file, name, 0);

    xet_cli_close(file);

    return rc ? rc : xet_cli_print(json,
                         xet_cli_out_text("file", name, NULL),
                         xet_cli_out_hash("hash", &d->hash, " "),
                         xet_cli_out_number("size", d->size, " "),
                         xet_cli_out_number("chunks", d->chunks, NULL),
                         xet_cli_out_text(NULL, name, "\n"));
}


int
xet_cli_info(const xet_cli_args_t *args)
{
    int              i, rc;
    xet_cli_info_t  *in;

    in = calloc(1, sizeof(xet_cli_info_t));

    if (in == NULL) {
        return xet_cli_no_memory();
    }

    in->args = args;
    in->json = xet_cli_json(args);

    rc = XET_CLI_OK;

    for (i = 0; i < args->count && rc < XET_CLI_INTERRUPTED; i++) {
        rc = xet_cli_worse(rc, xet_cli_info_any(in, args->operands[i]));
    }

    xet_cli_http_destroy(in->http);
    free(in);

    return rc;
}


int
xet_cli_info_stored(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name, const xet_hash_t *hash)
{
    int              rc;
    xet_cli_info_t  *in;

    in = calloc(1, sizeof(xet_cli_info_t));

    if (in == NULL) {
        return xet_cli_no_memory();
    }

    in->args = args;
    in->name = name;
    in->json = xet_cli_json(args);
    in->http = h;

    rc = xet_cli_info_remote(in, hash);

    free(in);

    return rc;
}


static int
xet_cli_info_any(xet_cli_info_t *in, const char *name)
{
    int         rc;
    xet_hash_t  hash;

    in->name = name;

    if (access(name, F_OK) != 0
        && xet_hash_parse(&hash, (const uint8_t *) name, strlen(name))
           == XET_OK)
    {
        return xet_cli_info_remote(in, &hash);
    }

    in->file = xet_cli_open(name);

    if (in->file == NULL) {
        return XET_CLI_ERROR;
    }

    rc = xet_cli_info_local(in);

    if (ferror(in->file)) {
        rc = xet_cli_fail_errno(name);
    }

    xet_cli_close(in->file);

    return rc;
}


static int
xet_cli_info_local(xet_cli_info_t *in)
{
    xet_hash_t  named;

    if (!xet_cli_info_read(in)) {
        return ferror(in->file) ? XET_CLI_ERROR : xet_cli_info_file(in);
    }

    if (in->len >= XET_SHARD_TAG_LEN
        && memcmp(in->buffer, xet_shard_tag, XET_SHARD_TAG_LEN) == 0)
    {
        return xet_cli_info_shard(in);
    }

    memset(&named, 0, sizeof(named));

    if (xet_cli_info_is_xorb(in, &named)) {
        return xet_cli_info_xorb(in, xet_hash_is_zero(&named) ? NULL
                                                              : &named);
    }

    return xet_cli_info_file(in);
}


static int
xet_cli_info_read(xet_cli_info_t *in)
{
    in->len = fread(in->buffer, 1, XET_CLI_INFO_BUFFER, in->file);

    return in->len != 0;
}


static int
xet_cli_info_is_xorb(const xet_cli_info_t *in, xet_hash_t *named)
{
    size_t              len;
    uint32_t            copy_id;
    const uint8_t      *p;
    xet_xorb_event_t    ev;
    xet_xorb_parser_t   parser;

    len = strlen(in->name);

    if (len >= XET_XORB_NAME_MAX
        && xet_xorb_name_parse(named, &copy_id, (const uint8_t *) in->name + len
                                            - XET_XORB_NAME_MAX,
                               XET_XORB_NAME_MAX)
           == XET_OK)
    {
        return 1;
    }

    if (len >= XET_HASH_STR_LEN
        && xet_hash_parse(named, (const uint8_t *) in->name + len
                                 - XET_HASH_STR_LEN, XET_HASH_STR_LEN)
           == XET_OK)
    {
        return 1;
    }

    xet_xorb_parser_init(&parser, &xet_suite_default, UINT32_MAX);

    p = in->buffer;

    return xet_xorb_parser_next(&parser, &p, in->buffer + in->len, &ev)
           == XET_OK;
}


static int
xet_cli_info_shard(xet_cli_info_t *in)
{
    int                 rc;
    xet_cli_json_t      out;
    xet_status_t        status;
    xet_shard_parser_t  p;

    if (in->json) {
        in->j = xet_cli_json_begin(&out);

        xet_json_put_cstring(in->j, "name", in->name);
        xet_json_put_cstring(in->j, "kind", "shard");
        xet_json_key(in->j, "records");
        xet_json_array_begin(in->j);

    } else {
        xet_cli_text_print(stdout, in->name);
        printf(": shard\n");
    }

    xet_shard_parser_init(&p, xet_cli_info_record, in);

    do {
        status = xet_shard_parser_feed(&p, in->buffer, in->len);
    } while (status == XET_OK && xet_cli_info_read(in));

    if (status == XET_OK || status == XET_DONE) {
        status = xet_shard_parser_finish(&p);
    }

    if (in->json) {
        xet_json_array_end(in->j);
        xet_json_put_u64(in->j, "files", p.files);
        xet_json_put_u64(in->j, "terms", p.terms);
        xet_json_put_u64(in->j, "xorbs", p.xorbs);
        xet_json_put_bool(in->j, "ok", status == XET_OK);

        rc = xet_cli_json_end(&out);

    } else {
        rc = xet_cli_print(0, xet_cli_info_number("files", p.files),
                           xet_cli_info_number("terms", p.terms),
                           xet_cli_info_number("xorbs", p.xorbs));
    }

    return xet_cli_info_end(in, status, rc);
}


static xet_status_t
xet_cli_info_record(void *ctx, const xet_shard_record_t *rec)
{
    char             text[XET_HASH_STR_LEN + 1];
    xet_cli_info_t  *in = ctx;

    xet_cli_hash_string(&rec->hash, text);

    switch (rec->kind) {

    case XET_SHARD_REC_FILE:
        if (!in->json) {
            printf("  file %s, %u terms\n", text, rec->count);
            return XET_OK;
        }

        xet_json_object_begin(in->j);
        xet_json_put_cstring(in->j, "file", text);
        xet_json_put_u64(in->j, "terms", rec->count);
        break;

    case XET_SHARD_REC_TERM:
        if (!in->json) {
            printf("    %s chunks %u-%u, %u bytes\n", text, rec->chunk_start,
                   rec->chunk_end - 1, rec->raw_length);
            return XET_OK;
        }

        xet_json_object_begin(in->j);
        xet_json_put_cstring(in->j, "term", text);
        xet_json_put_u64(in->j, "start", rec->chunk_start);
        xet_json_put_u64(in->j, "end", rec->chunk_end);
        xet_json_put_u64(in->j, "bytes", rec->raw_length);
        break;

    case XET_SHARD_REC_XORB:
        if (!in->json) {
            printf("  xorb %s, %u chunks, %u bytes\n", text, rec->count,
                   rec->raw_length);
            return XET_OK;
        }

        xet_json_object_begin(in->j);
        xet_json_put_cstring(in->j, "xorb", text);
        xet_json_put_u64(in->j, "chunks", rec->count);
        xet_json_put_u64(in->j, "bytes", rec->raw_length);
        break;

    default:
        return XET_OK;
    }

    xet_json_object_end(in->j);

    return XET_OK;
}


static int
xet_cli_info_xorb(xet_cli_info_t *in, const xet_hash_t *named)
{
    int                     rc;
    char                    text[XET_HASH_STR_LEN + 1];
    size_t                  stored;
    xet_status_t            status;
    xet_xorb_verifier_t    *v;
    const xet_xorb_info_t  *info;

    v = xet_xorb_verifier_create(&xet_suite_default, named, UINT32_MAX);

    if (v == NULL) {
        return xet_cli_no_memory();
    }

    do {
        status = xet_xorb_verifier_feed(v, in->buffer, in->len, &stored);
    } while (status == XET_OK && xet_cli_info_read(in));

    if (status == XET_OK) {
        status = xet_xorb_verifier_finish(v);
    }

    info = xet_xorb_verifier_info(v);

    if (status == XET_OK) {
        xet_cli_hash_string(&info->hash, text);
    }

    rc = xet_cli_info_print(in, "xorb", status,
             xet_cli_out_text_line((status == XET_OK) ? "hash" : NULL, 12,
                                   "hash", (status == XET_OK) ? text : NULL),
             xet_cli_info_number("chunks", info->chunk_count),
             xet_cli_info_number("stored_size", info->stored_size),
             xet_cli_info_number("raw_size", info->raw_size));

    xet_xorb_verifier_destroy(v);

    return rc;
}


/*
 * Hashes a file.  The buffer already has the start of the data, since a pipe
 * cannot be read twice.
 */

static int
xet_cli_info_file(xet_cli_info_t *in)
{
    int                rc;
    char               text[2 * XET_CLI_SHA256_LEN + 1];
    xet_cli_digest_t  *d;

    d = malloc(sizeof(xet_cli_digest_t));

    if (d == NULL) {
        return xet_cli_no_memory();
    }

    rc = xet_cli_digest_begin(d, 1);

    if (rc != XET_CLI_OK) {
        free(d);
        return rc;
    }

    while (in->len && !xet_cli_interrupted) {
        xet_cli_digest_feed(d, in->buffer, in->len);
        (void) xet_cli_info_read(in);
    }

    xet_cli_digest_end(d);

    *xet_hash_print_plain((uint8_t *) text, d->digest) = '\0';

    rc = xet_cli_info_print(in, "file", XET_OK,
             xet_cli_info_hash("hash", &d->hash),
             xet_cli_info_number("size", d->size),
             xet_cli_info_number("chunks", d->chunks),
             xet_cli_info_text("sha256", text));

    free(d);

    return rc;
}


static int
xet_cli_info_remote(xet_cli_info_t *in, const xet_hash_t *hash)
{
    int                      rc;
    uint64_t                 size;
    xet_cli_download_t       d;
    xet_cli_download_sum_t   sum;

    if (in->http == NULL) {
        in->http = xet_cli_http_create(in->args, &rc);

        if (in->http == NULL) {
            return rc;
        }
    }

    rc = xet_cli_download_size(in->http, hash, 1, &size);

    if (rc == XET_CLI_FAULT) {
        rc = xet_cli_info_xorb_size(in, hash, &size);

        return rc ? rc : xet_cli_info_print(in, "remote xorb", XET_OK,
                             xet_cli_info_hash("hash", hash),
                             xet_cli_info_number("stored_size", size));
    }

    memset(&d, 0, sizeof(d));
    memset(&sum, 0, sizeof(sum));

    if (rc == XET_CLI_OK && size) {
        d.hash = *hash;
        d.end = size;
        d.most = XET_CLI_DOWNLOAD_ALL;
        d.name = in->name;
        d.parallel = 1;
        d.sum = &sum;

        rc = xet_cli_download(in->http, &d);
    }

    return rc ? rc : xet_cli_info_print(in, "remote file", XET_OK,
                         xet_cli_info_hash("hash", hash),
                         xet_cli_info_number("size", size),
                         xet_cli_info_number("terms", sum.terms),
                         xet_cli_info_number("ranges", sum.ranges),
                         xet_cli_info_number("stored_size", sum.stored));
}


static int
xet_cli_info_xorb_size(xet_cli_info_t *in, const xet_hash_t *hash,
    uint64_t *size)
{
    int                rc;
    char               text[XET_HASH_STR_LEN + 1];
    xet_cli_request_t  r;

    rc = xet_cli_http_ask(in->http, &r, "HEAD",
                          xet_cli_http_url(in->http, "/v1/xorbs/default/%s",
                                           xet_cli_hash_string(hash, text)));

    if (rc == XET_CLI_OK) {

        if (r.status == 200 && r.length >= 0) {
            *size = (uint64_t) r.length;

        } else if (r.status == 404) {
            rc = xet_cli_fail(XET_CLI_FAULT, in->name,
                              "not found: neither a local file nor a file or "
                              "xorb on the server");

        } else {
            rc = xet_cli_http_fail(&r);
        }
    }

    xet_cli_http_free(&r);

    return rc;
}


/*
 * Reports a status other than XET_OK, after the result was printed.  rc is the
 * exit code of printing the result.  Returns the worse of rc and, if an error
 * was reported, XET_CLI_FAULT.
 */

static int
xet_cli_info_end(xet_cli_info_t *in, xet_status_t status, int rc)
{
    return (status == XET_OK)
           ? rc : xet_cli_worse(rc, xet_cli_fail(XET_CLI_FAULT, in->name,
                                                 xet_status_text(status)));
}
