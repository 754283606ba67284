
/*
 * Status codes of the core.
 *
 * Every function of the core that can fail returns one of these.  One table
 * gives each code its name in JSON errors, the HTTP status that suits it and
 * a sentence for people; the core itself never logs.  XET_AGAIN and XET_DONE
 * are not errors.  Codes with an HTTP status of 4xx say that the input is at
 * fault, 5xx that we are.
 */

#ifndef _XET_STATUS_H_INCLUDED_
#define _XET_STATUS_H_INCLUDED_


/*
 * X(symbol, code in JSON, HTTP status, text); the first three keep their
 * order, the rest may grow anywhere.
 */

#define XET_STATUS_MAP(X)                                                     \
    X(OK,             "ok",              200, "ok")                           \
    X(AGAIN,          "again",           500, "more input is needed")         \
    X(DONE,           "done",            500, "nothing is left")              \
                                                                              \
    X(NOMEM,          "internal_error",  500, "out of memory")                \
    X(INTERNAL,       "internal_error",  500, "internal error")               \
                                                                              \
    X(BODY_SIZE,      "body_too_large",  413, "the request body is too large") \
    X(BODY_SYNTAX,    "invalid_body",    400, "malformed request body")       \
    X(STORE_FULL,     "insufficient_storage", 507,                            \
      "no space is left in the store")                                        \
    X(STORE_FAILED,   "storage_error",   500, "the store failed")             \
    X(STORE_DAMAGED,  "storage_error",   500, "the stored bytes are damaged") \
    X(STORE_FILES,    "overloaded",      503, "too many files are open")      \
    X(STORE_SLOW,     "storage_error",   500, "the store does not answer")    \
    X(STORE_OTHER,    "storage_unavailable", 503,                             \
      "the folder of the store is not the one of the database")               \
    X(OVERLOADED,     "overloaded",      503, "too many jobs are waiting")    \
    X(DATABASE,       "internal_error",  500, "the database failed")          \
    X(DATABASE_AWAY,  "database_unavailable", 503,                            \
      "the database is not available")                                        \
    X(FILENAME,       "invalid_filename", 400,                                \
      "the filename is not 1 to 255 bytes of UTF-8, or wrongly encoded")      \
    X(PRECONDITION,   "precondition_failed", 412,                             \
      "the file is not the one that If-Match names")                          \
    X(NO_FILE,        "file_not_found",  404, "no such file")                 \
                                                                              \
    X(HASH_SYNTAX,    "invalid_hash",    400,                                 \
      "a hash must be 64 hexadecimal digits")                                 \
    X(DIGEST_SYNTAX,  "invalid_digest",  400, "malformed digest header")      \
    X(DIGEST_MISMATCH, "digest_mismatch", 400,                                \
      "the content does not have the declared SHA-256")                       \
    X(FILE_HASH,      "hash_mismatch",   400,                                 \
      "the content does not have the declared file hash")                     \
    X(RANGE_SYNTAX,   "invalid_range",   400, "malformed Range header")       \
    X(RANGE_COUNT,    "invalid_range",   400, "too many ranges")              \
    X(RANGE_PAST_END, "range_not_satisfiable", 416,                           \
      "the range starts past the end of the file")                            \
    X(RANGE_REFUSED,  "range_not_satisfiable", 416,                           \
      "malformed Range header, or too many ranges")                           \
                                                                              \
    X(XORB_EMPTY,     "invalid_xorb",    400, "the xorb has no chunks")       \
    X(XORB_TRUNCATED, "invalid_xorb",    400,                                 \
      "the body ends inside a chunk")                                         \
    X(XORB_VERSION,   "invalid_xorb",    400,                                 \
      "unknown chunk header version")                                         \
    X(XORB_SCHEME,    "invalid_xorb",    400,                                 \
      "unknown compression scheme")                                           \
    X(XORB_STORED_LEN, "invalid_xorb",   400,                                 \
      "bad compressed length in a chunk header")                              \
    X(XORB_RAW_LEN,   "invalid_xorb",    400,                                 \
      "bad uncompressed length in a chunk header")                            \
    X(XORB_CHUNKS,    "invalid_xorb",    400, "too many chunks in the xorb")  \
    X(XORB_SIZE,      "xorb_too_large",  413, "the xorb is too large")        \
    X(XORB_DATA,      "invalid_xorb",    400,                                 \
      "chunk data does not decompress")                                       \
    X(XORB_DATA_LEN,  "invalid_xorb",    400,                                 \
      "chunk data does not decompress to its declared length")                \
    X(XORB_HASH,      "hash_mismatch",   400,                                 \
      "the content does not have the xorb hash of the path")                  \
    X(XORB_FOOTER,    "invalid_xorb",    400,                                 \
      "the footer disagrees with the chunks")                                 \
                                                                              \
    X(CHUNK_HASH,     "storage_error",   500,                                 \
      "the chunk does not have its hash")                                     \
                                                                              \
    X(SHARD_TRUNCATED, "invalid_shard",  400,                                 \
      "the body ends inside the shard")                                       \
    X(SHARD_TAG,      "invalid_shard",   400, "bad shard tag")                \
    X(SHARD_VERSION,  "invalid_shard",   400, "unknown shard version")        \
    X(SHARD_COUNT,    "invalid_shard",   400,                                 \
      "a count in the shard is out of bounds")                                \
    X(SHARD_CHUNKS,   "too_many_chunks", 413,                                 \
      "the terms of the shard name too many chunks")                          \
    X(SHARD_RECORD,   "invalid_shard",   400, "malformed shard record")       \
    X(SHARD_NO_VERIFICATION, "invalid_shard", 400,                            \
      "a file without verification hashes")                                   \
    X(SHARD_TERM,     "invalid_shard",   400,                                 \
      "a term lies outside its xorb")                                         \
    X(SHARD_TERM_LEN, "invalid_shard",   400,                                 \
      "a term's length disagrees with its chunks")                            \
    X(SHARD_VERIFICATION, "verification_failed", 400,                         \
      "a verification hash does not match")                                   \
    X(SHARD_FILE_HASH, "hash_mismatch",  400,                                 \
      "the terms do not have the declared file hash")                         \
    X(SHARD_XORB,     "unknown_xorb",    400,                                 \
      "a term refers to a xorb that is not stored here")                      \
                                                                              \
    X(PLAN_CHANGED,   "overloaded",      503,                                 \
      "a xorb of the file is being healed, try again")                        \
    X(PLAN_DAMAGED,   "internal_error",  500, "damaged terms")                \
    X(PLAN_TERMS,     "too_many_terms",  413,                                 \
      "the answer has too many terms, ask for ranges of the file")            \
    X(WINDOWS_SIZE,   "too_many_hashes", 422,                                 \
      "the hashes between the dirty ranges are too many")                     \
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
      "the token's header asks for an extension that is not known here")      \
    X(TOKEN_ALG,      "invalid_token",   401,                                 \
      "the token's algorithm is not that of its key")                         \
    X(TOKEN_KEY,      "invalid_token",   401, "no key for this token")        \
    X(TOKEN_SIGNATURE, "invalid_token",  401,                                 \
      "the token's signature is wrong")                                       \
    X(TOKEN_CLAIMS,   "invalid_token",   401, "malformed claims of a token")  \
    X(TOKEN_EXPIRED,  "expired_token",   401, "the token has expired")        \
    X(TOKEN_EARLY,    "invalid_token",   401, "the token is not valid yet")   \
    X(TOKEN_ISSUER,   "invalid_token",   401,                                 \
      "the token is of another issuer")                                       \
    X(TOKEN_AUDIENCE, "invalid_token",   401,                                 \
      "the token is for another audience")                                    \
    X(TOKEN_SCOPE,    "insufficient_scope", 403,                              \
      "the token's scope does not allow this")                                \
                                                                              \
    X(JWK_SYNTAX,     "internal_error",  500, "malformed key document")       \
    X(JWK_VALUE,      "internal_error",  500, "malformed key")                \
    X(JWK_KIND,       "internal_error",  500,                                 \
      "a key of a kind or size that is not supported")                        \
    X(JWK_SECRET,     "internal_error",  500,                                 \
      "a secret must be 32 to 1024 bytes and no PEM file")                    \
    X(JWK_KID,        "internal_error",  500,                                 \
      "a key id must be 1 to 255 printable characters")                       \
    X(JWK_PRIVATE,    "internal_error",  500,                                 \
      "a private key among public keys")                                      \
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
      "a data shard, which has no manifest")                                  \
    X(ZT_MANIFEST_SIZE, "manifest_too_large", 422,                            \
      "the manifest is larger than the format allows")                        \
    X(ZT_MANIFEST_LIMIT, "manifest_over_server_limit", 413,                   \
      "the manifest is larger than this server takes")                        \
    X(ZT_MANIFEST_BOUNDS, "manifest_out_of_bounds", 422,                      \
      "the manifest lies outside the file")                                   \
    X(ZT_MANIFEST_HEADER, "manifest_overlaps_header", 422,                    \
      "the manifest overlaps the magic number")                               \
    X(ZT_MANIFEST_EMPTY, "empty_manifest", 422, "the manifest is empty")      \
    X(ZT_MANIFEST_HASH, "manifest_hash_mismatch", 422,                        \
      "the manifest does not have its declared hash")                         \
    X(ZT_MANIFEST, "bad_manifest", 422, "malformed manifest")                 \
    X(ZT_TRAILING, "trailing_bytes", 422,                                     \
      "bytes after the end of the manifest")                                  \
    X(ZT_ORDER, "not_deterministic", 422,                                     \
      "the manifest is not in deterministic encoding")                        \
    X(ZT_NESTING, "nesting_too_deep", 422,                                    \
      "the manifest is nested too deeply")                                    \
    X(ZT_UTF8, "invalid_utf8", 422, "text in the manifest is not UTF-8")      \
    X(ZT_DUPLICATE, "duplicate_key", 422,                                     \
      "a key comes twice in a map of the manifest")                           \
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
    X(ZT_OVERLAP, "overlap", 422, "components overlap in part")               \
    X(ZT_LENGTH, "length_mismatch", 422,                                      \
      "a length disagrees with the shape")                                    \
    X(ZT_SHAPE, "shape_overflow", 422,                                        \
      "the shape is larger than 64 bits count")                               \
    X(ZT_RANK, "rank_too_large", 422, "too many dimensions")                  \
    X(ZT_FORMAT_SHAPE, "bad_shape", 422,                                      \
      "the format does not allow this shape")                                 \
    X(ZT_ROLE_MISSING, "missing_component", 422,                              \
      "a component that the format needs is missing")                         \
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
      "the object has several components, name a role")                       \
    X(ZT_QUERY, "invalid_query", 400, "malformed query")                      \
    X(ZT_QUERY_KEY, "invalid_query", 400,                                     \
      "an argument that is not known here, or one twice")                     \
    X(ZT_QUERY_ESCAPE, "invalid_query", 400, "bad percent-encoding")          \
    X(ZT_QUERY_BOTH, "invalid_query", 400,                                    \
      "both \"name\" and \"i\" are given")                                    \
    X(ZT_QUERY_NONE, "invalid_query", 400,                                    \
      "\"name\" or \"i\" is required")                                        \
    X(ZT_QUERY_LIMIT, "invalid_query", 400,                                   \
      "\"limit\" is 0, or more than a page may have")                         \
    X(ZT_AXES, "unsupported_rows", 501,                                       \
      "only rows of the first dimension are served")                          \
    X(ZT_VERIFY_SIZE, "verify_too_large", 413,                                \
      "too many bytes to verify at once, name an object")                     \
    X(ZT_STALE, "internal_error", 500, "a kept verdict is of no use")         \
    X(ZT_DECODE, "decode_unavailable", 422,                                   \
      "the decoded form is not available")                                    \
    X(ZT_DECODE_SIZE, "decode_too_large", 413,                                \
      "the decoded form is too large")                                        \
    X(ZT_WINDOW, "window_too_large", 413,                                     \
      "the data needs too much memory to decode")                             \
    X(ZT_ZSTD, "bad_zstd", 422, "the data is not valid zstd")                 \
    X(ZT_VALUES, "invalid_values", 422,                                       \
      "values that the element type does not allow")                          \
    X(ZT_INDICES, "invalid_indices", 422,                                     \
      "indices that the shape or the format does not allow")                  \
    X(ZT_UNCHECKED, "not_checked", 422, "not all of it was checked")


#define XET_STATUS_ENUM(name, code, http, text)  XET_##name,

typedef enum {
    XET_STATUS_MAP(XET_STATUS_ENUM)
    XET_STATUS_MAX
} xet_status_t;

#undef XET_STATUS_ENUM


/* These never return NULL; an unknown status is taken for XET_INTERNAL. */

const char *xet_status_code(xet_status_t status);
const char *xet_status_text(xet_status_t status);
unsigned xet_status_http(xet_status_t status);


#endif /* _XET_STATUS_H_INCLUDED_ */
