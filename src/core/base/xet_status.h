
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
                                                                              \
    X(HASH_SYNTAX,    "invalid_hash",    400,                                 \
      "a hash must be 64 hexadecimal digits")                                 \
    X(RANGE_SYNTAX,   "invalid_range",   400, "malformed Range header")       \
    X(RANGE_COUNT,    "invalid_range",   400, "too many ranges")              \
    X(RANGE_PAST_END, "range_not_satisfiable", 416,                           \
      "the range starts past the end of the file")                            \
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
    X(SHARD_TRUNCATED, "invalid_shard",  400,                                 \
      "the body ends inside the shard")                                       \
    X(SHARD_TAG,      "invalid_shard",   400, "bad shard tag")                \
    X(SHARD_VERSION,  "invalid_shard",   400, "unknown shard version")        \
    X(SHARD_COUNT,    "invalid_shard",   400,                                 \
      "a count in the shard is out of bounds")                                \
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
    X(PLAN_DAMAGED,   "internal_error",  500, "damaged terms")                \
                                                                              \
    X(SIGN_SYNTAX,    "invalid_signature", 403, "malformed signed URL")       \
    X(SIGN_KEY,       "invalid_signature", 403, "unknown signing key")        \
    X(SIGN_MISMATCH,  "invalid_signature", 403, "wrong signature")            \
    X(SIGN_EXPIRED,   "expired",         403, "the URL has expired")          \
    X(SIGN_RANGE,     "range_not_signed", 403,                                \
      "the Range header is not covered by the signature")


#define XET_STATUS_ENUM(name, code, http, text)  XET_##name,

typedef enum {
    XET_STATUS_MAP(XET_STATUS_ENUM)
    XET_STATUS_MAX
} xet_status_t;

#undef XET_STATUS_ENUM


/* The three never return NULL; an unknown status reads as XET_INTERNAL. */

const char *xet_status_code(xet_status_t status);
const char *xet_status_text(xet_status_t status);
unsigned xet_status_http(xet_status_t status);


#endif /* _XET_STATUS_H_INCLUDED_ */
