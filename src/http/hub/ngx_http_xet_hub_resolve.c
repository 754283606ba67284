
/*
 * GET and HEAD resolve/{revision}/{path} and raw/{revision}/{path}: sends a
 * file that is requested by path.
 *
 *     handler -> looks up the path (PostgreSQL) -> headers
 *     HEAD     sends only headers, which a Xet client needs for a download
 *     GET      sends the file like GET files/{file}, with ranges and conditions
 *
 * The file is sent without redirects, which could lose a header or a token.  A
 * client can request the xet hash and size as JSON, instead of the bytes, with
 * the Accept header.  raw sends the pointer of git-lfs instead of a file that a
 * git repo on huggingface.co would not have: clients read its SHA-256.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_routes.h"


#define NGX_HTTP_XET_HUB_FILEINFO  "application/vnd.xet-fileinfo+json"

/* git's object id of an empty file. */
#define NGX_HTTP_XET_HUB_EMPTY     "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

/* huggingface.co requires LFS for files of more than this size. */
#define NGX_HTTP_XET_HUB_LARGE     (10 * 1024 * 1024)


typedef struct {
    ngx_http_xet_hub_resolve_row_t  file;
    xet_hash_t                      hash;
    ngx_http_xet_reader_t          *reader;
    ngx_str_t                       etag;      /* quoted */
    ngx_str_t                       type;      /* media type */
    u_char                          xet[XET_HASH_STR_LEN];
    unsigned                        raw:1;
} ngx_http_xet_hub_resolve_t;


static ngx_int_t ngx_http_xet_hub_resolve_look(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_uint_t raw);
static ngx_int_t ngx_http_xet_hub_resolve_row(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f);
static void ngx_http_xet_hub_resolved(ngx_http_request_t *r, ngx_int_t rc);
static ngx_uint_t ngx_http_xet_hub_raw_points(ngx_http_xet_hub_t *hub,
    ngx_http_xet_hub_resolve_t *f);
static ngx_int_t ngx_http_xet_hub_raw_pointer(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f);
static ngx_int_t ngx_http_xet_hub_resolve_send(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_http_xet_hub_resolve_t *f);
static ngx_int_t ngx_http_xet_hub_resolve_headers(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_http_xet_hub_resolve_t *f);
static ngx_int_t ngx_http_xet_hub_resolve_xet(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_http_xet_hub_resolve_t *f);
static ngx_int_t ngx_http_xet_hub_resolve_name(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_http_xet_hub_resolve_t *f);
static void ngx_http_xet_hub_resolve_tame(ngx_str_t *type);
static ngx_uint_t ngx_http_xet_hub_wants_info(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_hub_resolve_info(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_http_xet_hub_resolve_t *f);
static ngx_int_t ngx_http_xet_hub_resolve_bare(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f);
static ngx_int_t ngx_http_xet_hub_resolve_head(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f);
static ngx_int_t ngx_http_xet_hub_resolve_empty(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f);
static ngx_int_t ngx_http_xet_hub_resolve_open(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f);
static void ngx_http_xet_hub_resolve_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_int_t ngx_http_xet_hub_resolve_content(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f);


static const u_char  ngx_http_xet_hub_no_sha256[XET_DIGEST_SHA256_LEN];


ngx_int_t
ngx_http_xet_hub_resolve_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_resolve_look(r, hub, 0);
}


ngx_int_t
ngx_http_xet_hub_raw_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_resolve_look(r, hub, 1);
}


static ngx_int_t
ngx_http_xet_hub_resolve_look(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    ngx_uint_t raw)
{
    ngx_http_xet_hub_resolve_t  *f;

    f = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_hub_resolve_t));
    if (f == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    f->raw = raw;
    hub->state = f;

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_resolve, ngx_http_xet_hub_resolved,
                                  .asked = &hub->asked, .rev = hub->rev,
                                  .path = hub->path));
}


/*
 * Reads the row.  Every file has a xet hash; the SHA-256 may be unknown.  The
 * bytes of the hash in the row are in the order of the hash string: here each
 * word is reversed, because SQL takes longer.
 */

static ngx_int_t
ngx_http_xet_hub_resolve_row(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f)
{
    ngx_uint_t                       i;
    ngx_http_xet_hub_resolve_row_t  *file;

    file = &f->file;

    if (ngx_http_xet_row(r, hub_resolve, 0, file) != NGX_OK
        || (file->answer.status == NGX_HTTP_OK && file->hash == NULL))
    {
        return NGX_ERROR;
    }

    if (file->hash) {

        for (i = 0; i < XET_HASH_LEN; i++) {
            f->hash.bytes[i] = file->hash->bytes[i ^ 7];
        }

        file->hash = &f->hash;
    }

    if (file->sha256 == NULL) {
        file->sha256 = ngx_http_xet_hub_no_sha256;
    }

    return NGX_OK;
}


static void
ngx_http_xet_hub_resolved(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_hub_text_t               part;
    ngx_http_xet_hub_t          *hub;
    ngx_http_xet_hub_resolve_t  *f;

    hub = ngx_http_xet_hub_get(r);
    f = hub->state;

    if (rc == NGX_OK) {
        rc = ngx_http_xet_hub_resolve_row(r, f);
    }

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    /*
     * send the id of the commit, so that clients can cache that the commit
     * lacks the file
     */

    if (f->file.oid.len && hub->asked.kind != XET_HUB_BUCKET
        && ngx_http_xet_hub_header(r, "X-Repo-Commit", "%V", &f->file.oid)
           != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (f->file.answer.status == NGX_HTTP_OK
        && xet_hub_path_risk(hub->path.data, hub->path.len, &part)
           != XET_HUB_RISK_NONE)
    {
        f->file.answer.status = NGX_HTTP_NOT_FOUND;
        ngx_str_set(&f->file.answer.code, "EntryNotFound");
        ngx_str_set(&f->file.answer.message, "Entry not found");
    }

    rc = (f->file.answer.status == NGX_HTTP_OK)
         ? ngx_http_xet_hub_resolve_send(r, hub, f)
         : ngx_http_xet_hub_refuse(r, &f->file.answer);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


/*
 * Returns whether raw sends a pointer instead of the file: if the file is
 * large, or its name has one of the extensions that new repos on huggingface.co
 * keep in LFS, or that of a GGUF file.  Other files are texts, as a rule.
 */

static ngx_uint_t
ngx_http_xet_hub_raw_points(ngx_http_xet_hub_t *hub,
    ngx_http_xet_hub_resolve_t *f)
{
    size_t         i, len;
    const u_char  *ext;

    static const char *const  exts[] = {
        "7z", "arrow", "bin", "bz2", "ckpt", "ftz", "gguf", "gz", "h5",
        "joblib", "mlmodel", "model", "msgpack", "npy", "npz", "onnx", "ot",
        "parquet", "pb", "pickle", "pkl", "pt", "pth", "rar", "safetensors",
        "tar", "tflite", "tgz", "wasm", "xz", "zip", "zst"
    };

    if (f->file.size == 0 || f->file.sha256 == ngx_http_xet_hub_no_sha256) {
        return 0;
    }

    if (f->file.size > NGX_HTTP_XET_HUB_LARGE) {
        return 1;
    }

    ext = xet_filename_extension(hub->path.data, hub->path.len, &len);

    for (i = 0; ext && i < sizeof(exts) / sizeof(exts[0]); i++) {
        if (len == ngx_strlen(exts[i])
            && ngx_memcmp(ext, exts[i], len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_xet_hub_raw_pointer(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f)
{
    u_char                  *p, sum[XET_HASH_STR_LEN], text[256];
    ngx_int_t                rc;
    xet_buf_t                b;
    ngx_http_xet_content_t   content;

    (void) xet_hash_print_plain(sum, f->file.sha256);

    p = ngx_sprintf(text, "version https://git-lfs.github.com/spec/v1\n"
                          "oid sha256:%*s\nsize %uL\n",
                    (size_t) XET_HASH_STR_LEN, sum, f->file.size);

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 256);
    xet_buf_write(&b, text, p - text);

    /* the same digits are the id of the pointer in lists of files */

    ngx_memzero(&content, sizeof(ngx_http_xet_content_t));

    content.etag.len = 1 + 40 + 1;
    content.etag.data = ngx_pnalloc(r->pool, content.etag.len);

    if (content.etag.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    (void) ngx_sprintf(content.etag.data, "\"%*s\"", (size_t) 40, sum);

    if (ngx_http_xet_header(r, "X-Content-Type-Options", "nosniff") != NGX_OK
        || ngx_http_xet_header(r, "Cache-Control", "private, no-cache")
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_xet_content_conditions(r, &content);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_xet_header_add(r, "ETag", &content.etag) == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_send(r, NGX_HTTP_OK, "text/plain; charset=utf-8", &b);
}


static ngx_int_t
ngx_http_xet_hub_resolve_send(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    ngx_http_xet_hub_resolve_t *f)
{
    if (f->raw && ngx_http_xet_hub_raw_points(hub, f)) {
        return ngx_http_xet_hub_raw_pointer(r, f);
    }

    if (ngx_http_xet_hub_resolve_headers(r, hub, f) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (f->file.size && ngx_http_xet_hub_wants_info(r)) {
        return ngx_http_xet_hub_resolve_info(r, hub, f);
    }

    if (ngx_http_xet_hub_resolve_name(r, hub, f) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r->method == NGX_HTTP_HEAD
        || (f->file.size == 0 && r->headers_in.range))
    {
        return ngx_http_xet_hub_resolve_bare(r, f);
    }

    return ngx_http_xet_hub_resolve_open(r, f);
}


/*
 * Adds the headers.  Values are copied, because the next statement frees the
 * rows.
 */

static ngx_int_t
ngx_http_xet_hub_resolve_headers(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_http_xet_hub_resolve_t *f)
{
    u_char              *p;
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    p = ngx_pnalloc(r->pool, XET_HASH_STR_LEN + 2 + f->file.uploads.len
                             + f->file.type.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ctx->hash = *f->file.hash;

    ctx->repo.data = p;
    ctx->repo.len = f->file.uploads.len;
    p = ngx_cpymem(p, f->file.uploads.data, f->file.uploads.len);

    f->type.data = p;
    f->type.len = f->file.type.len;
    p = ngx_cpymem(p, f->file.type.data, f->file.type.len);

    f->etag.data = p;
    *p++ = '"';

    p = (hub->asked.kind == XET_HUB_BUCKET)
        ? xet_hash_print(p, f->file.hash)
        : f->file.size ? xet_hash_print_plain(p, f->file.sha256)
                       : ngx_cpymem(p, NGX_HTTP_XET_HUB_EMPTY,
                                    sizeof(NGX_HTTP_XET_HUB_EMPTY) - 1);
    *p++ = '"';
    f->etag.len = p - f->etag.data;

    /*
     * The JSON and the file have the same URL and ETag: a browser must not use
     * the cached JSON for the file, or the cached file for the JSON.
     */

    if (ngx_http_xet_hub_header(r, "X-Linked-Etag", "%V", &f->etag) != NGX_OK
        || ngx_http_xet_hub_header(r, "X-Linked-Size", "%uL", f->file.size)
           != NGX_OK
        || ngx_http_xet_header(r, "X-Content-Type-Options", "nosniff")
           != NGX_OK
        || ngx_http_xet_header(r, "Content-Security-Policy",
                               "default-src 'none'; sandbox")
           != NGX_OK
        || ngx_http_xet_header(r, "Vary", "Accept") != NGX_OK
        || ngx_http_xet_header(r, "Cache-Control",
                               ngx_http_xet_hub_wants_info(r)
                               ? "no-store" : "private, no-cache")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (r->method == NGX_HTTP_GET && ngx_http_xet_hub_flag(r, "blob")
        && ngx_http_xet_hub_here(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* an empty file has no data that a Xet client could fetch */

    return (f->file.size || hub->asked.kind == XET_HUB_BUCKET)
           ? ngx_http_xet_hub_resolve_xet(r, hub, f) : NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_resolve_xet(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    ngx_http_xet_hub_resolve_t *f)
{
    ngx_str_t    hash;
    const char  *kind;

    (void) xet_hash_print(f->xet, f->file.hash);

    hash.data = f->xet;
    hash.len = XET_HASH_STR_LEN;
    kind = xet_hub_kind_plural(hub->asked.kind);

    if (ngx_http_xet_header_add(r, "X-Xet-Hash", &hash) == NULL) {
        return NGX_ERROR;
    }

    /*
     * the URL contains the commit, so clients get one token for all files of
     * the commit
     */

    if (hub->asked.kind == XET_HUB_BUCKET) {
        return ngx_http_xet_hub_header(r, "Link",
                              "<%V/api/%s/%V/xet-read-token>; rel=\"xet-auth\"",
                              &hub->base, kind, &f->file.answer.more);
    }

    return ngx_http_xet_hub_header(r, "Link",
                           "<%V/api/%s/%V/xet-read-token/%V>; rel=\"xet-auth\"",
                           &hub->base, kind, &f->file.answer.more,
                           &f->file.oid);
}


/* Finds the file name, the last part of the path, and its media type. */

static ngx_int_t
ngx_http_xet_hub_resolve_name(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    ngx_http_xet_hub_resolve_t *f)
{
    u_char                    *p, *start;
    u_char                     low[XET_HUB_PART_MAX];
    size_t                     len, ext_len;
    ngx_str_t                 *found;
    const u_char              *ext;
    ngx_http_core_loc_conf_t  *clcf;

    start = hub->path.data + hub->path.len;

    while (start > hub->path.data && start[-1] != '/') {
        start--;
    }

    len = hub->path.data + hub->path.len - start;

    p = ngx_pnalloc(r->pool, XET_FILENAME_HEADER(len));
    if (p == NULL) {
        return NGX_ERROR;
    }

    *xet_filename_header(p, start, len) = '\0';

    if (ngx_http_xet_header(r, "Content-Disposition", (char *) p) != NGX_OK) {
        return NGX_ERROR;
    }

    if (f->type.len && xet_hub_type_ok(f->type.data, f->type.len)) {
        ngx_http_xet_hub_resolve_tame(&f->type);
        return NGX_OK;
    }

    ngx_str_set(&f->type, "application/octet-stream");

    ext = xet_filename_extension(start, len, &ext_len);

    if (ext && ext_len) {
        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        found = ngx_hash_find(&clcf->types_hash,
                              ngx_hash_strlow(low, (u_char *) ext, ext_len),
                              low, ext_len);
        if (found) {
            f->type = *found;
            ngx_http_xet_hub_resolve_tame(&f->type);
        }
    }

    return NGX_OK;
}


/*
 * Replaces the type of scripts and style sheets.  Web pages of this server may
 * load both from the server itself, where a browser keeps the token.  With
 * another type and "nosniff", a browser never executes the file of a user.
 */

static void
ngx_http_xet_hub_resolve_tame(ngx_str_t *type)
{
    u_char  *last;

    last = type->data + type->len;

    if (ngx_strlcasestrn(type->data, last, (u_char *) "script", 6 - 1)
        || ngx_strlcasestrn(type->data, last, (u_char *) "css", 3 - 1))
    {
        ngx_str_set(type, "text/plain");
    }
}


static ngx_uint_t
ngx_http_xet_hub_wants_info(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_http_xet_header_find(&r->headers_in.headers, "Accept", 0);

    return h && ngx_strnstr(h->value.data, NGX_HTTP_XET_HUB_FILEINFO,
                            h->value.len);
}


/*
 * Sends the data that @huggingface/hub needs to fetch the file: mainly headers,
 * because that client ignores the JSON.
 */

static ngx_int_t
ngx_http_xet_hub_resolve_info(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    ngx_http_xet_hub_resolve_t *f)
{
    ngx_str_t   url;
    xet_buf_t   b;
    xet_json_t  j;

    if (ngx_http_xet_token_endpoint(r, &url) != NGX_OK
        || ngx_http_xet_hub_header(r, "Link",
                                   "<%V/v1/reconstructions/%*s>; "
                                   "rel=\"xet-reconstruction-info\"",
                                   &url, (size_t) XET_HASH_STR_LEN, f->xet)
           != NGX_OK
        || ngx_http_xet_header_add(r, "ETag", &f->etag) == NULL)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 256);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    xet_json_put_string(&j, "hash", f->xet, XET_HASH_STR_LEN);
    xet_json_put_u64(&j, "size", f->file.size);
    xet_json_object_end(&j);

    return ngx_http_xet_send(r, NGX_HTTP_OK, NGX_HTTP_XET_HUB_FILEINFO, &b);
}


/*
 * Responds from the row alone, without opening the file, but with the same
 * conditions.
 */

static ngx_int_t
ngx_http_xet_hub_resolve_bare(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f)
{
    ngx_int_t               rc;
    ngx_http_xet_content_t  content;

    ngx_memzero(&content, sizeof(ngx_http_xet_content_t));
    content.etag = f->etag;

    rc = ngx_http_xet_content_conditions(r, &content);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return (r->method == NGX_HTTP_HEAD) ? ngx_http_xet_hub_resolve_head(r, f)
                                        : ngx_http_xet_hub_resolve_empty(r, f);
}


static ngx_int_t
ngx_http_xet_hub_resolve_head(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f)
{
    u_char  *type;

    type = ngx_pnalloc(r->pool, f->type.len + 1);
    if (type == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    *ngx_cpymem(type, f->type.data, f->type.len) = '\0';

    if (ngx_http_xet_header_add(r, "ETag", &f->etag) == NULL
        || ngx_http_xet_header(r, "Accept-Ranges", "bytes") != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_xet_output_type(r, NGX_HTTP_OK, (char *) type,
                             (off_t) f->file.size);
    r->header_only = 1;

    return ngx_http_send_header(r);
}


/*
 * Responds to a range of an empty file with 200.  The standard status is 416,
 * but clients that request a range to learn the size do not accept 416.
 */

static ngx_int_t
ngx_http_xet_hub_resolve_empty(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f)
{
    xet_buf_t  b;

    if (ngx_http_xet_header(r, "Content-Range", "bytes */0") != NGX_OK
        || ngx_http_xet_header_add(r, "ETag", &f->etag) == NULL)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 0);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/octet-stream", &b);
}


/* Opens the file.  Returns NGX_AGAIN if the request is finalized later. */

static ngx_int_t
ngx_http_xet_hub_resolve_open(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f)
{
    xet_status_t         status;
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    f->reader = ngx_http_xet_reader_create(r, f);
    if (f->reader == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_reader_open(r, f->reader, &ctx->hash,
                                      ngx_http_xet_hub_resolve_opened);

    if (status == XET_AGAIN) {
        return NGX_AGAIN;
    }

    return (status == XET_OK) ? ngx_http_xet_hub_resolve_content(r, f)
                              : ngx_http_xet_error_status(r, status);
}


static void
ngx_http_xet_hub_resolve_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_finalize_request(r,
        (status == XET_OK) ? ngx_http_xet_hub_resolve_content(r, data)
                           : ngx_http_xet_error_status(r, status));
}


static ngx_int_t
ngx_http_xet_hub_resolve_content(ngx_http_request_t *r,
    ngx_http_xet_hub_resolve_t *f)
{
    ngx_http_xet_content_t  content;

    content.reader = f->reader;
    content.start = 0;
    content.size = ngx_http_xet_reader_size(f->reader);
    content.etag = f->etag;
    content.type = f->type;

    return ngx_http_xet_content_send(r, &content);
}
