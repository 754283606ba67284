
/*
 * Basic types and functions, used by all other parts: status codes, byte
 * buffers, text encodings, JSON output, headers, ranges.  Depends on the C
 * library only.
 */

#ifndef _XET_BASE_H_INCLUDED_
#define _XET_BASE_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>
#include <string.h>


/* The version of the module and of the command line tool. */
#define XET_VERSION  "0.9.0"


/*
 * xet_status.c: status codes of the core.
 *
 * Every function of the core that can fail returns one of these codes.  One
 * table gives each code its name in JSON errors, its HTTP status and a
 * human-readable message; the core never logs.  XET_AGAIN and XET_DONE are not
 * errors.  A code with an HTTP status of 4xx means that the input is invalid, a
 * code with 5xx means that the server failed.
 */

/*
 * X(symbol, code in JSON, HTTP status, text).  The first three rows must stay
 * in this order; new rows may be added anywhere after them.
 */

#define XET_STATUS_MAP(X)                                                     \
    X(OK,             "ok",              200, "ok")                           \
    X(AGAIN,          "again",           500, "more input is needed")         \
    X(DONE,           "done",            500, "no more data")                 \
                                                                              \
    X(NOMEM,          "internal_error",  500, "out of memory")                \
    X(INTERNAL,       "internal_error",  500, "internal error")               \
                                                                              \
    X(BODY_SIZE,      "body_too_large",  413, "the request body is too large") \
    X(BODY_SYNTAX,    "invalid_body",    400, "malformed request body")       \
    X(STORE_FULL,     "insufficient_storage", 507,                            \
      "no space left in the store")                                           \
    X(STORE_FAILED,   "storage_error",   500, "a storage operation failed")   \
    X(STORE_DAMAGED,  "storage_error",   500, "the stored data is damaged")   \
    X(QUOTA,          "quota_exceeded",  413, "the upload exceeds the quota") \
    X(STORE_FILES,    "overloaded",      503, "too many open files")          \
    X(STORE_SLOW,     "storage_error",   500, "the store does not respond")   \
    X(STORE_AWAY,     "storage_unavailable", 503,                             \
      "the object store rejected the request or did not respond")             \
    X(STORE_OTHER,    "storage_unavailable", 503,                             \
      "the store does not belong to this database")                           \
    X(STORE_GONE,     "storage_unavailable", 503,                             \
      "the store folder is missing")                                          \
    X(STORE_BARE,     "storage_unavailable", 503,                             \
      "the store folder has no identity; its disk may not be mounted")        \
    X(OVERLOADED,     "overloaded",      503,                                 \
      "the job queue is full; retry later")                                   \
    X(DATABASE,       "internal_error",  500, "a database operation failed")  \
    X(DATABASE_AWAY,  "database_unavailable", 503,                            \
      "the database is unavailable")                                          \
    X(FILENAME,       "invalid_filename", 400,                                \
      "the filename must be 1 to 255 bytes of percent-encoded UTF-8")         \
    X(PRECONDITION,   "precondition_failed", 412,                             \
      "the file does not match If-Match")                                     \
    X(NO_FILE,        "file_not_found",  404, "no such file")                 \
    X(NO_REPO,        "repo_not_found",  404,                                 \
      "the repo named in the token was deleted")                              \
    X(NO_GRANT,       "grant_not_found", 404,                                 \
      "no upload found for this grant")                                       \
                                                                              \
    X(HUB_NAME,       "invalid_name",    400, "invalid repo or owner name")   \
    X(HUB_REV,        "invalid_revision", 400,                                \
      "invalid branch, tag or commit name")                                   \
    X(HUB_PATH,       "invalid_path",    400, "invalid file path")            \
    X(HUB_UNSAFE,     "unsafe_path",     400,                                 \
      "unsafe path: a folder or file name is special to git or Windows")      \
    X(HUB_OPERATION,  "invalid_commit",  400, "malformed commit operation")   \
    X(HUB_KEY,        "unknown_key",     400, "unknown key")                  \
    X(HUB_VALUE,      "unsupported_value", 400, "unsupported value")          \
    X(HUB_LARGE,      "file_too_large",  413,                                 \
      "a file is too large to be sent in a commit; upload it first")          \
    X(HUB_CARD,       "invalid_card",    400,                                 \
      "invalid metadata in README.md")                                        \
    X(HUB_DEPTH,      "path_too_deep",   400,                                 \
      "a path has more folders than this server allows")                      \
    X(HUB_COUNT,      "too_many_operations", 413,                             \
      "too many operations; split them into several commits or batches")      \
                                                                              \
    X(HASH_SYNTAX,    "invalid_hash",    400,                                 \
      "a hash must be 64 hexadecimal digits")                                 \
    X(PREFIX,         "invalid_prefix",  400, "invalid prefix in the path")   \
    X(DIGEST_SYNTAX,  "invalid_digest",  400, "malformed digest header")      \
    X(DIGEST_MISMATCH, "digest_mismatch", 400,                                \
      "the content does not match the declared SHA-256")                      \
    X(FILE_HASH,      "hash_mismatch",   400,                                 \
      "the content does not match the declared file hash")                    \
    X(RANGE_SYNTAX,   "invalid_range",   400, "malformed Range header")       \
    X(RANGE_COUNT,    "invalid_range",   400, "too many ranges")              \
    X(RANGE_PAST_END, "range_not_satisfiable", 416,                           \
      "the range starts past the end of the file")                            \
    X(RANGE_REFUSED,  "range_not_satisfiable", 416,                           \
      "malformed Range header, or too many ranges")                           \
                                                                              \
    X(XORB_EMPTY,     "invalid_xorb",    400, "the xorb has no chunks")       \
    X(XORB_TRUNCATED, "invalid_xorb",    400,                                 \
      "the body is truncated inside a chunk")                                 \
    X(XORB_VERSION,   "invalid_xorb",    400,                                 \
      "unknown chunk header version")                                         \
    X(XORB_SCHEME,    "invalid_xorb",    400,                                 \
      "unknown compression scheme")                                           \
    X(XORB_STORED_LEN, "invalid_xorb",   400,                                 \
      "invalid compressed length in a chunk header")                          \
    X(XORB_RAW_LEN,   "invalid_xorb",    400,                                 \
      "invalid uncompressed length in a chunk header")                        \
    X(XORB_CHUNKS,    "invalid_xorb",    400, "too many chunks in the xorb")  \
    X(XORB_SIZE,      "xorb_too_large",  413, "the xorb is too large")        \
    X(XORB_DATA,      "invalid_xorb",    400,                                 \
      "chunk data can't be decompressed")                                     \
    X(XORB_DATA_LEN,  "invalid_xorb",    400,                                 \
      "chunk data does not decompress to its declared length")                \
    X(XORB_HASH,      "hash_mismatch",   400,                                 \
      "the content does not match the xorb hash in the path")                 \
    X(XORB_FOOTER,    "invalid_xorb",    400,                                 \
      "the footer does not match the chunks")                                 \
                                                                              \
    X(CHUNK_HASH,     "storage_error",   500,                                 \
      "the chunk does not match its hash")                                    \
                                                                              \
    X(SHARD_TRUNCATED, "invalid_shard",  400, "the shard is truncated")       \
    X(SHARD_TAG,      "invalid_shard",   400,                                 \
      "not a shard: wrong header tag")                                        \
    X(SHARD_VERSION,  "invalid_shard",   400, "unknown shard version")        \
    X(SHARD_COUNT,    "invalid_shard",   400,                                 \
      "a count in the shard is out of bounds")                                \
    X(SHARD_CHUNKS,   "too_many_chunks", 413,                                 \
      "the terms of the shard refer to too many chunks")                      \
    X(SHARD_RECORD,   "invalid_shard",   400, "malformed shard record")       \
    X(SHARD_NO_VERIFICATION, "invalid_shard", 400,                            \
      "a file has no verification hashes")                                    \
    X(SHARD_TERM,     "invalid_shard",   400,                                 \
      "a term exceeds the bounds of its xorb")                                \
    X(SHARD_TERM_LEN, "invalid_shard",   400,                                 \
      "the length of a term does not match its chunks")                       \
    X(SHARD_VERIFICATION, "verification_failed", 400,                         \
      "a verification hash does not match")                                   \
    X(SHARD_FILE_HASH, "hash_mismatch",  400,                                 \
      "the terms do not match the declared file hash")                        \
    X(SHARD_XORB,     "unknown_xorb",    400,                                 \
      "a term refers to a xorb that is not stored here")                      \
                                                                              \
    X(PLAN_CHANGED,   "overloaded",      503,                                 \
      "a xorb of the file was replaced or removed in the meantime; retry")    \
    X(XORB_LOCKED,    "overloaded",      503,                                 \
      "a xorb of the file is locked by another operation; retry")             \
    X(STAGED_GONE,    "overloaded",      503,                                 \
      "the staged operations of the commit were dropped; send them again")    \
    X(PLAN_DAMAGED,   "internal_error",  500,                                 \
      "the stored terms of the file are damaged")                             \
    X(PLAN_TERMS,     "too_many_terms",  413,                                 \
      "the response has too many terms; request ranges of the file")          \
    X(EDIT_RANGES_SIZE,   "too_many_hashes", 422,                             \
      "too many hashes between the dirty ranges; request fewer")              \
                                                                              \
    X(SIGN_SYNTAX,    "invalid_signature", 403, "malformed signed URL")       \
    X(SIGN_KEY,       "invalid_signature", 403, "unknown signing key")        \
    X(SIGN_MISMATCH,  "invalid_signature", 403, "wrong signature")            \
    X(SIGN_EXPIRED,   "expired",         403, "the URL has expired")          \
    X(SIGN_RANGE,     "range_not_signed", 403,                                \
      "the Range header is not covered by the signature")                     \
                                                                              \
    X(TOKEN_MISSING,  "invalid_token",   401, "a token is required")          \
    X(TOKEN_SIZE,     "invalid_token",   401, "the token is too long")        \
    X(TOKEN_SYNTAX,   "invalid_token",   401, "malformed token")              \
    X(TOKEN_CRIT,     "invalid_token",   401,                                 \
      "the token's header requires an unsupported extension")                 \
    X(TOKEN_ALG,      "invalid_token",   401,                                 \
      "the token's algorithm does not match its key")                         \
    X(TOKEN_KEY,      "invalid_token",   401,                                 \
      "no configured key matches this token")                                 \
    X(TOKEN_SIGNATURE, "invalid_token",  401,                                 \
      "the token's signature is wrong")                                       \
    X(TOKEN_CLAIMS,   "invalid_token",   401, "malformed token claims")       \
    X(TOKEN_EXPIRED,  "expired_token",   401, "the token has expired")        \
    X(TOKEN_EARLY,    "invalid_token",   401, "the token is not valid yet")   \
    X(TOKEN_ISSUER,   "invalid_token",   401,                                 \
      "the token's issuer is not accepted")                                   \
    X(TOKEN_AUDIENCE, "invalid_token",   401,                                 \
      "the token's audience is not accepted")                                 \
    X(TOKEN_SCOPE,    "insufficient_scope", 403,                              \
      "the token's scope does not allow this")                                \
                                                                              \
    X(JWK_SYNTAX,     "internal_error",  500, "malformed key document")       \
    X(JWK_VALUE,      "internal_error",  500, "malformed key")                \
    X(JWK_KIND,       "internal_error",  500, "unsupported key type or size") \
    X(JWK_SECRET,     "internal_error",  500,                                 \
      "a secret must be 32 to 1024 bytes and not a PEM file")                 \
    X(JWK_KID,        "internal_error",  500,                                 \
      "a key id must be 1 to 255 printable characters")                       \
    X(JWK_PRIVATE,    "internal_error",  500,                                 \
      "a set of public keys contains a private key")                          \
    X(JWK_COUNT,      "internal_error",  500, "too many keys")                \
    X(JWK_NONE,       "internal_error",  500, "no usable key")                \
                                                                              \
    X(ZT_NOT_ZTENSOR, "not_ztensor", 422, "not a zTensor file")               \
    X(ZT_TOO_SHORT, "too_short", 422, "too short for a zTensor file")         \
    X(ZT_HEADER_MAGIC, "bad_header_magic", 422,                               \
      "wrong magic number at the start of the file")                          \
    X(ZT_FOOTER_MAGIC, "bad_footer_magic", 422,                               \
      "wrong magic number at the end of the file")                            \
    X(ZT_VERSION, "unsupported_version", 422,                                 \
      "unsupported version of the zTensor format")                            \
    X(ZT_DATA_SHARD, "data_shard", 422,                                       \
      "the file is a data shard and has no manifest")                         \
    X(ZT_MANIFEST_SIZE, "manifest_too_large", 422,                            \
      "the manifest is larger than the format allows")                        \
    X(ZT_MANIFEST_LIMIT, "manifest_over_server_limit", 413,                   \
      "the manifest is larger than this server allows")                       \
    X(ZT_MANIFEST_BOUNDS, "manifest_out_of_bounds", 422,                      \
      "the manifest lies outside the file")                                   \
    X(ZT_MANIFEST_HEADER, "manifest_overlaps_header", 422,                    \
      "the manifest overlaps the magic number")                               \
    X(ZT_MANIFEST_EMPTY, "empty_manifest", 422, "the manifest is empty")      \
    X(ZT_MANIFEST_HASH, "manifest_hash_mismatch", 422,                        \
      "the manifest does not match its declared hash")                        \
    X(ZT_MANIFEST, "bad_manifest", 422, "malformed manifest")                 \
    X(ZT_TRAILING, "trailing_bytes", 422,                                     \
      "bytes after the end of the manifest")                                  \
    X(ZT_ORDER, "not_deterministic", 422,                                     \
      "the manifest is not in deterministic encoding")                        \
    X(ZT_NESTING, "nesting_too_deep", 422,                                    \
      "the manifest is nested too deeply")                                    \
    X(ZT_UTF8, "invalid_utf8", 422, "text in the manifest is not UTF-8")      \
    X(ZT_DUPLICATE, "duplicate_key", 422,                                     \
      "duplicate key in a map of the manifest")                               \
    X(ZT_MISSING, "missing_field", 422, "a required field is missing")        \
    X(ZT_OBJECTS, "too_many_objects", 422, "too many objects")                \
    X(ZT_COMPONENTS, "too_many_components", 422, "too many components")       \
    X(ZT_KEYS, "too_many_keys", 422,                                          \
      "too many keys in a map of the manifest")                               \
    X(ZT_NAME_LEN, "name_too_long", 422,                                      \
      "a name in the manifest is too long")                                   \
    X(ZT_NAME, "invalid_name", 422, "a name in the manifest is not allowed")  \
    X(ZT_SHARD_NAME, "bad_shard_name", 422, "bad shard name")                 \
    X(ZT_SHARD_REF, "no_such_shard", 422,                                     \
      "a part refers to an undeclared shard")                                 \
                                                                              \
    X(ZT_ALIGN, "misaligned", 422, "a component is not aligned")              \
    X(ZT_BOUNDS, "out_of_bounds", 422, "a component lies outside the data")   \
    X(ZT_HEADER, "overlaps_header", 422,                                      \
      "a component overlaps the magic number")                                \
    X(ZT_OVERLAP, "overlap", 422, "components overlap partially")             \
    X(ZT_LENGTH, "length_mismatch", 422, "a length does not match the shape") \
    X(ZT_SHAPE, "shape_overflow", 422,                                        \
      "the size of the shape does not fit in 64 bits")                        \
    X(ZT_RANK, "rank_too_large", 422, "too many dimensions")                  \
    X(ZT_FORMAT_SHAPE, "bad_shape", 422,                                      \
      "the format does not allow this shape")                                 \
    X(ZT_ROLE_MISSING, "missing_component", 422,                              \
      "a component required by the format is missing")                        \
    X(ZT_ROLE_EXTRA, "unexpected_component", 422,                             \
      "the format does not allow this component")                             \
    X(ZT_INDEX_DTYPE, "bad_index_dtype", 422,                                 \
      "an index has a type that the format does not allow")                   \
    X(ZT_DTYPE, "unsupported_dtype", 422, "unknown element type")             \
    X(ZT_ENCODING, "unsupported_encoding", 422, "unknown encoding")           \
    X(ZT_FORMAT, "unsupported_format", 422, "unknown format")                 \
                                                                              \
    X(ZT_NO_OBJECT, "no_such_object", 404,                                    \
      "no object has this name or number")                                    \
    X(ZT_NO_COMPONENT, "no_such_component", 404,                              \
      "the object has no such component")                                     \
    X(ZT_ROLE, "role_required", 400,                                          \
      "the object has several components; specify a role")                    \
    X(ZT_QUERY, "invalid_query", 400, "malformed query")                      \
    X(ZT_QUERY_KEY, "invalid_query", 400, "unknown or duplicate argument")    \
    X(ZT_QUERY_ESCAPE, "invalid_query", 400, "bad percent-encoding")          \
    X(ZT_QUERY_BOTH, "invalid_query", 400,                                    \
      "both \"name\" and \"i\" are given")                                    \
    X(ZT_QUERY_NONE, "invalid_query", 400,                                    \
      "\"name\" or \"i\" is required")                                        \
    X(ZT_QUERY_LIMIT, "invalid_query", 400,                                   \
      "\"limit\" is 0 or exceeds the maximum page size")                      \
    X(ZT_AXES, "unsupported_rows", 501,                                       \
      "only ranges of the first dimension are supported")                     \
    X(ZT_VERIFY_SIZE, "verify_too_large", 413,                                \
      "too many bytes to verify at once; specify an object")                  \
    X(ZT_STALE, "internal_error", 500, "a cached check result is unusable")   \
    X(ZT_DECODE, "decode_unavailable", 422,                                   \
      "the decoded form is not available")                                    \
    X(ZT_DECODE_SIZE, "decode_too_large", 413,                                \
      "the decoded form is too large")                                        \
    X(ZT_WINDOW, "window_too_large", 413,                                     \
      "the data needs too much memory to decode")                             \
    X(ZT_ZSTD, "bad_zstd", 422, "the data is not valid zstd")                 \
    X(ZT_VALUES, "invalid_values", 422,                                       \
      "a value is not allowed by the element type")                           \
    X(ZT_INDICES, "invalid_indices", 422,                                     \
      "an index is not allowed by the shape or the format")                   \
    X(ZT_UNCHECKED, "not_checked", 422, "some data was not checked")


#define XET_STATUS_ENUM(name, code, http, text)  XET_##name,

typedef enum {
    XET_STATUS_MAP(XET_STATUS_ENUM)
    XET_STATUS_MAX
} xet_status_t;

#undef XET_STATUS_ENUM


/*
 * Return the code, the text or the HTTP status of a status.  A string is never
 * NULL.  An unknown status is treated as XET_INTERNAL.
 */

const char *xet_status_code(xet_status_t status);
const char *xet_status_text(xet_status_t status);
unsigned xet_status_http(xet_status_t status);


/*
 * Functions that read and write byte buffers: little-endian integers, hex
 * digits, percent escapes, decimal numbers, classes of characters.  The caller
 * must check that the buffer is long enough.
 */

static inline uint32_t
xet_get_u16(const uint8_t *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8;
}


static inline uint32_t
xet_get_u24(const uint8_t *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16;
}


static inline uint32_t
xet_get_u32(const uint8_t *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8
           | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}


static inline uint64_t
xet_get_u64(const uint8_t *p)
{
    return (uint64_t) xet_get_u32(p) | (uint64_t) xet_get_u32(p + 4) << 32;
}


static inline void
xet_put_u16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
}


static inline void
xet_put_u24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
    p[2] = (uint8_t) (v >> 16);
}


static inline void
xet_put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
    p[2] = (uint8_t) (v >> 16);
    p[3] = (uint8_t) (v >> 24);
}


static inline void
xet_put_u64(uint8_t *p, uint64_t v)
{
    xet_put_u32(p, (uint32_t) v);
    xet_put_u32(p + 4, (uint32_t) (v >> 32));
}


/* Copies len bytes to p; returns the end of the copy. */

static inline uint8_t *
xet_put_bytes(uint8_t *p, const void *data, size_t len)
{
    memcpy(p, data, len);

    return p + len;
}


#define xet_put_literal(p, s)  xet_put_bytes(p, s, sizeof(s) - 1)


/* Returns the value of a hex digit of either case, 16 for any other byte. */

static inline unsigned
xet_get_hex_digit(unsigned c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c |= 0x20;

    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }

    return 16;
}


/*
 * Returns the next byte of a percent-encoded text (RFC 3986, section 2.1) and
 * moves *p, which must be before end, past the byte or its escape.  For a
 * malformed escape it returns -1 and does not move *p.  A "+" is not decoded
 * to a space.
 */

static inline int
xet_percent_byte(const uint8_t **p, const uint8_t *end)
{
    unsigned  high, low;

    if (**p != '%') {
        return *(*p)++;
    }

    if (end - *p < 3) {
        return -1;
    }

    high = xet_get_hex_digit((*p)[1]);
    low = xet_get_hex_digit((*p)[2]);

    if (high == 16 || low == 16) {
        return -1;
    }

    *p += 3;

    return (int) (high << 4 | low);
}


/*
 * Sets *number to the value of len decimal digits, leading zeros allowed, and
 * returns 1.  Returns 0 when len is 0, when a byte is not a digit, and when
 * the value has more than 64 bits.  On failure *number is unchanged, except
 * that a len of 0 sets it to 0.
 */

static inline int
xet_get_decimal(const uint8_t *p, size_t len, uint64_t *number)
{
    size_t    i;
    uint64_t  v, digit;

    v = 0;

    for (i = 0; i < len; i++) {

        if (p[i] < '0' || p[i] > '9') {
            return 0;
        }

        digit = (uint64_t) (p[i] - '0');

        if (v > (UINT64_MAX - digit) / 10) {
            return 0;
        }

        v = v * 10 + digit;
    }

    *number = v;

    return len != 0;
}


/* Returns whether a byte is an ASCII letter or digit. */

static inline int
xet_is_alnum(unsigned c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9');
}


/* Returns the position after any spaces and tabs at p. */

static inline const uint8_t *
xet_skip_blanks(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    return p;
}


/* The maximum number of decimal digits of a 64-bit integer. */
#define XET_DECIMAL_MAX  20


/*
 * Writes v in decimal digits without a NUL and returns the end of the digits.
 * p must have room for XET_DECIMAL_MAX bytes.
 */

static inline uint8_t *
xet_put_decimal(uint8_t *p, uint64_t v)
{
    size_t    n, i;
    uint64_t  bound;

    bound = 10;

    for (n = 1; n < XET_DECIMAL_MAX && v >= bound; n++) {
        bound *= 10;
    }

    for (i = n; i > 0; v /= 10) {
        p[--i] = (uint8_t) ('0' + v % 10);
    }

    return p + n;
}


/*
 * xet_buf.c: a chained output buffer.  It grows by nodes, never moves bytes
 * once written, and counts them, so Content-Length is known.  Memory comes
 * from a callback (an nginx pool, malloc) and is never freed by the buffer:
 * the owner of the allocator frees it as a whole.  After a failed allocation
 * the buffer stays failed and ignores all writes, so a writer checks the
 * status once, at the end.
 */

/* Returns memory aligned for pointers, or NULL when out of memory. */
typedef void *(*xet_alloc_pt)(void *data, size_t size);


/*
 * Returns a copy, with twice the room, of a full array of *room elements of
 * size bytes each.  If *room is 0, returns a new array with room for least
 * elements.  Sets *room to the new number of elements.  Returns NULL when out
 * of memory.
 */
void *xet_alloc_double(xet_alloc_pt alloc, void *data, const void *array,
    size_t *room, size_t least, size_t size);


typedef struct xet_buf_node_s  xet_buf_node_t;

struct xet_buf_node_s {
    xet_buf_node_t  *next;
    uint8_t         *start;
    uint8_t         *pos;          /* end of the written bytes */
    uint8_t         *end;
};


typedef struct {
    xet_alloc_pt     alloc;
    void            *data;

    xet_buf_node_t  *first;
    xet_buf_node_t  *last;

    uint64_t         size;         /* bytes written to all nodes */
    size_t           node_size;    /* next node's size; doubles up to 64 KiB */

    unsigned         failed:1;
} xet_buf_t;


/*
 * Initializes an empty buffer.  node_size is the size of the first node; 0
 * means 4 KiB.
 */
void xet_buf_init(xet_buf_t *b, xet_alloc_pt alloc, void *data,
    size_t node_size);

/*
 * Returns contiguous room for n bytes, or NULL when the buffer has failed.
 * xet_buf_advance() makes the bytes part of the buffer.  A reserve without an
 * advance has no effect, but may leave an empty last node (pos == start).  An
 * advance past the end of the last node makes the buffer fail.
 */
uint8_t *xet_buf_reserve(xet_buf_t *b, size_t n);
void xet_buf_advance(xet_buf_t *b, size_t n);

void xet_buf_write(xet_buf_t *b, const void *data, size_t len);

/* Returns XET_OK, or XET_NOMEM when any write has failed. */
xet_status_t xet_buf_status(const xet_buf_t *b);


/*
 * xet_json.c: a JSON writer on top of xet_buf_t (RFC 8259), without white
 * space.  The writer adds commas and colons.  Nesting is at most
 * XET_JSON_DEPTH levels; one level more makes the buffer fail.  Integers are
 * written exactly, never as floats.  Strings are escaped; bytes that are not
 * valid UTF-8 are replaced by U+FFFD.
 */

#define XET_JSON_DEPTH  32


typedef struct {
    xet_buf_t  *buf;
    uint32_t    more;              /* one bit per level: has an element */
    unsigned    depth;
    unsigned    value:1;           /* a key was written, its value follows */
} xet_json_t;


void xet_json_init(xet_json_t *j, xet_buf_t *b);

/*
 * Makes the writer continue in the buffer b, at any point of the text; open
 * objects and arrays stay open.  The previous buffer is no longer used, and
 * its errors are not carried over to b.
 */
void xet_json_resume(xet_json_t *j, xet_buf_t *b);

void xet_json_object_begin(xet_json_t *j);
void xet_json_object_end(xet_json_t *j);
void xet_json_array_begin(xet_json_t *j);
void xet_json_array_end(xet_json_t *j);

/*
 * Write a key.  xet_json_key() takes a C string that needs no escaping, in
 * practice a literal.
 */
void xet_json_key(xet_json_t *j, const char *key);
void xet_json_key_n(xet_json_t *j, const uint8_t *key, size_t len);

void xet_json_string(xet_json_t *j, const uint8_t *s, size_t len);
void xet_json_cstring(xet_json_t *j, const char *s);
void xet_json_u64(xet_json_t *j, uint64_t v);
void xet_json_i64(xet_json_t *j, int64_t v);

/* Writes a number that the caller has formatted according to RFC 8259. */
void xet_json_number(xet_json_t *j, const uint8_t *text, size_t len);
void xet_json_bool(xet_json_t *j, int v);
void xet_json_null(xet_json_t *j);

/* Write a key and its value; if a C string is NULL, the value is null. */
void xet_json_put_string(xet_json_t *j, const char *key, const uint8_t *s,
    size_t len);
void xet_json_put_cstring(xet_json_t *j, const char *key, const char *s);
void xet_json_put_u64(xet_json_t *j, const char *key, uint64_t v);
void xet_json_put_i64(xet_json_t *j, const char *key, int64_t v);
void xet_json_put_bool(xet_json_t *j, const char *key, int v);

/*
 * Write an element whose text the caller formats: xet_json_reserve() returns
 * room for n bytes of JSON text, or NULL when the buffer has failed.  Inside
 * an object the text must include the key.  xet_json_advance() is passed the
 * end of the text.  This is much faster than a call for each part of the
 * element.
 */
uint8_t *xet_json_reserve(xet_json_t *j, size_t n);
void xet_json_advance(xet_json_t *j, const uint8_t *end);

/*
 * Begin and end a string whose bytes the caller writes with xet_buf_*() between
 * the two calls.  The bytes must not need escaping.
 */
void xet_json_string_begin(xet_json_t *j);
void xet_json_string_end(xet_json_t *j);


/*
 * xet_utf8.c: incremental check for well-formed UTF-8 (Unicode 15, table 3-7):
 * no overlong forms, no surrogates, nothing past U+10FFFF.
 */

typedef struct {
    unsigned  need;                    /* missing bytes of the character */
    uint8_t   low;                     /* the next byte must be low .. high */
    uint8_t   high;
} xet_utf8_t;


static inline void
xet_utf8_init(xet_utf8_t *u)
{
    u->need = 0;
}


/*
 * Returns how many of the len bytes continue a well-formed text.  A result
 * below len means that the next byte is ill-formed.  The text is complete only
 * if u->need is 0 at its end.
 */
size_t xet_utf8_feed(xet_utf8_t *u, const uint8_t *p, size_t len);

/*
 * Returns whether a well-formed character begins at p, which has len bytes, at
 * least one.  Sets *n to the length of the character.  If the bytes are
 * ill-formed, sets *n to the number of bytes that one U+FFFD replaces: the
 * longest possible truncated character, or one byte.
 */
int xet_utf8_character(const uint8_t *p, size_t len, size_t *n);


/*
 * xet_base64.c: base64url (RFC 4648, section 5) without padding.  Each byte
 * string has exactly one encoding: unused bits of the last character must be
 * zero.  White space and the characters "+" and "/" are rejected.
 */

/* The number of characters that encode len bytes; len <= SIZE_MAX / 4. */
#define xet_base64_encoded(len)  (((len) * 4 + 2) / 3)

/* The number of bytes that len characters encode; len mod 4 must not be 1. */
#define xet_base64_decoded(len)                                               \
    ((len) / 4 * 3 + ((len) % 4 ? (len) % 4 - 1 : 0))


/* Writes xet_base64_encoded(len) characters without a NUL; returns the end. */
uint8_t *xet_base64_encode(uint8_t *dst, const uint8_t *src, size_t len);

/*
 * Writes xet_base64_decoded(len) bytes and returns 1.  Returns 0 when src is
 * not valid base64url; dst may then have been overwritten.
 */
int xet_base64_decode(uint8_t *dst, const uint8_t *src, size_t len);


/*
 * xet_base62.c: letters and digits.  Each byte string has exactly one
 * encoding, and the length of the text determines the number of bytes.
 */

/* Returns the number of characters that encode len bytes. */
size_t xet_base62_encoded(size_t len);

/* Writes xet_base62_encoded(len) characters without a NUL; returns the end. */
uint8_t *xet_base62_encode(uint8_t *dst, const uint8_t *src, size_t len);

/*
 * Writes *out bytes, fewer than len, and returns 1.  Returns 0 when src is not
 * what xet_base62_encode() writes; dst may then have been overwritten.
 */
int xet_base62_decode(uint8_t *dst, size_t *out, const uint8_t *src,
    size_t len);


/*
 * xet_range.c: HTTP range lists (RFC 9110, section 14.1.2).  The only unit is
 * "bytes" (any case); numbers have no sign, and first <= last.  White space
 * around commas and empty list elements are accepted, as the RFC requires.  A
 * number over 2^63 - 1 is read as 2^63 - 1: both are past the end of any file.
 */

typedef enum {
    XET_RANGE_CLOSED = 0,          /* first-last */
    XET_RANGE_OPEN,                /* first- */
    XET_RANGE_SUFFIX               /* -length; first has the length, >= 0 */
} xet_range_kind_t;


typedef struct {
    xet_range_kind_t  kind;
    uint64_t          first;
    uint64_t          last;        /* inclusive; XET_RANGE_CLOSED only */
} xet_range_spec_t;


typedef struct {
    uint64_t          start;
    uint64_t          end;         /* exclusive */
} xet_range_t;


/*
 * Parses the value of a Range header; surrounding white space is already
 * removed.  On entry *n is the number of elements of specs; on XET_OK it is
 * the number of ranges, on errors it is unchanged.  Errors: XET_RANGE_SYNTAX;
 * XET_RANGE_COUNT when there are more ranges than elements.
 */
xet_status_t xet_range_parse(const uint8_t *value, size_t len,
    xet_range_spec_t *specs, size_t *n);

/*
 * Sets *range to the part of a file of size bytes that spec selects, clamped
 * to the end of the file.  Returns XET_RANGE_PAST_END when spec selects
 * nothing.
 */
xet_status_t xet_range_resolve(const xet_range_spec_t *spec, uint64_t size,
    xet_range_t *range);

/*
 * Resolves *n specs to ranges, in the order of the specs; a spec that selects
 * nothing is skipped.  ranges must have room for *n ranges; on XET_OK *n is
 * set to the number of ranges.  Returns XET_RANGE_PAST_END when no spec
 * selects anything.
 */
xet_status_t xet_range_select(const xet_range_spec_t *specs,
    xet_range_t *ranges, size_t *n, uint64_t size);

/*
 * Parses the range list of a signed URL, "a-b,c-d": closed ranges only,
 * decimal numbers up to 2^63 - 1 without leading zeros, inclusive ends, no
 * white space, at least one range.  Accepts only the format that
 * xet_range_list_print() writes.  Errors and *n are as for xet_range_parse().
 */
xet_status_t xet_range_list_parse(const uint8_t *list, size_t len,
    xet_range_t *ranges, size_t *n);

/*
 * Writes n ranges as the range list of a signed URL and returns the end of the
 * list.  dst must have room for XET_RANGE_PRINT_MAX * n bytes.  No range may
 * be empty.
 */
#define XET_RANGE_PRINT_MAX  (20 + 1 + 20 + 1)

uint8_t *xet_range_list_print(uint8_t *dst, const xet_range_t *ranges,
    size_t n);


/*
 * xet_accept.c: the Accept-Encoding header, RFC 9110 section 12.5.3.
 */

/*
 * Returns whether the value of the header lists the coding with a weight other
 * than 0.  coding is a NUL-terminated string in lower case; the header may
 * have any case.  "*" does not match: few clients support the codings used
 * here, so a client must name the coding explicitly to get it.
 */
int xet_accept_coding(const uint8_t *value, size_t len, const char *coding);


/*
 * xet_digest.c: digest headers (RFC 9530), Repr-Digest and Content-Digest.
 * Both have the same value for a complete body without a content coding.
 */

#define XET_DIGEST_SHA256_LEN  32


/*
 * Copies the SHA-256 from the value of a digest header to sha256, which must
 * have room for XET_DIGEST_SHA256_LEN bytes.  Returns XET_DONE when the header
 * has only other algorithms.  Returns XET_DIGEST_SYNTAX when the value is not
 * a dictionary of byte sequences (RFC 8941), or a SHA-256 does not have 32
 * bytes.  If there are several SHA-256 members, the last one is used.  sha256
 * is undefined unless XET_OK is returned.
 */
xet_status_t xet_digest_sha256(const uint8_t *value, size_t len,
    uint8_t *sha256);


/*
 * xet_etag.c: lists of entity tags (RFC 9110, section 8.8.3) in the headers
 * If-Match, If-None-Match and If-Range.
 */

typedef enum {
    XET_ETAG_STRONG = 0,               /* a tag with W/ never matches */
    XET_ETAG_WEAK                      /* W/ is ignored */
} xet_etag_compare_t;


/*
 * Returns whether the list is "*" or contains tag, a strong entity tag
 * including its quotes.  The list is read up to its first syntax error.
 */
int xet_etag_match(const uint8_t *list, size_t len, const uint8_t *tag,
    size_t tag_len, xet_etag_compare_t compare);


/*
 * xet_filename.c: the file name of a download, taken from an argument of the
 * URL and sent in the Content-Disposition header (RFC 6266, RFC 8187).
 */

#define XET_FILENAME_MAX  255          /* bytes, the limit of file systems */


/*
 * Decodes the percent-encoded argument into dst, which must have room for
 * XET_FILENAME_MAX bytes, and sanitizes it: slashes, backslashes, control
 * characters and a leading dot become underscores.  A plus sign stays a plus
 * sign.  Sets *len on XET_OK.  Returns XET_FILENAME for a malformed escape, or
 * when the name is not 1 to XET_FILENAME_MAX bytes of UTF-8.
 */
xet_status_t xet_filename_decode(uint8_t *dst, size_t *len,
    const uint8_t *src, size_t src_len);

/*
 * Returns the part of name after its last dot and sets *ext_len to the length
 * of that part.  Returns NULL and sets *ext_len to 0 when name has no dot.
 */
const uint8_t *xet_filename_extension(const uint8_t *name, size_t len,
    size_t *ext_len);

/*
 * Writes the value of Content-Disposition for a decoded name; returns the end
 * of the value.  dst must have room for XET_FILENAME_HEADER(len) bytes.  A name
 * with a quote, a percent sign or a non-ASCII byte is written twice: once with
 * underscores for these characters, and once encoded (RFC 8187), which clients
 * prefer.
 */
#define XET_FILENAME_HEADER(len)                                              \
    (sizeof("attachment; filename=\"\"; filename*=UTF-8''") + 4 * (len))

uint8_t *xet_filename_header(uint8_t *dst, const uint8_t *name, size_t len);


/*
 * xet_bloom.c: a Bloom filter, a set that may report an element that was never
 * added, about one in 300 that are looked up, or one in 50 if the filter is for
 * less than 64 elements, and never misses an element that was added.  An
 * element is a random number, such as the start of a hash.
 */

/* Returns the size in bytes of a filter for n elements, at least 8. */
size_t xet_bloom_size(size_t n);

/* bits has size bytes, a multiple of 8; they are 0 in an empty filter. */
void xet_bloom_add(uint8_t *bits, size_t size, uint64_t element);
int xet_bloom_has(const uint8_t *bits, size_t size, uint64_t element);


#endif /* _XET_BASE_H_INCLUDED_ */
