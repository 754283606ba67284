
/*
 * Signed xorb URLs:
 *
 *     <base>/xorbs/<namespace>/<aa>/<name>?r=<a-b,c-d>&e=<expiry>&k=<key id>
 *     &s=<signature>
 *
 * The signature is base64url, unpadded, of HMAC-SHA256 over
 *
 *     "xet-url-1\n" <key id> "\n" <namespace> "/" <name> "\n"
 *     <expiry> "\n" <range list> "\n"
 *
 * where the name is that of one stored copy of a xorb (xet_xorb.h).
 *
 * So every field that decides anything is covered, and nothing of the base:
 * the same signature holds behind any host or path prefix.  A prefix has only
 * characters that need no escape in a path: where a proxy passes on the decoded
 * path, "%0d%0a" would end its request line, and the rest of the path would be
 * a second request.
 *
 * Arguments come in this order and only once; any other spelling is refused.
 * An empty list ("r=" absent) is the cacheable form, where the range is free;
 * such a URL may end in "&n=<digits, dashes, commas>", not signed and without
 * meaning here: clients tell entries apart by their URLs, and caches key on the
 * path.
 */

#ifndef _XET_SIGN_H_INCLUDED_
#define _XET_SIGN_H_INCLUDED_


#include "xet_hash.h"
#include "xet_buf.h"
#include "xet_range.h"
#include "xet_xorb.h"


#define XET_SIGN_KEY_MIN     32        /* bytes of secret */
#define XET_SIGN_KEY_MAX     64
#define XET_SIGN_ID_MAX      16        /* [A-Za-z0-9_-] */
#define XET_SIGN_RANGES_MAX  512       /* in one URL */
#define XET_SIGN_NS_MAX      64
#define XET_SIGN_MAC_LEN     32


/*
 * A key with its keyed MAC context; one thread at a time.  NULL when out of
 * memory or when id or secret are out of bounds.
 */
typedef struct xet_sign_key_s  xet_sign_key_t;

xet_sign_key_t *xet_sign_key_create(const uint8_t *id, size_t id_len,
    const uint8_t *secret, size_t secret_len);
void xet_sign_key_destroy(xet_sign_key_t *key);
const char *xet_sign_key_id(const xet_sign_key_t *key);

/*
 * Whether a base, or its path, has only characters that need no escape (RFC
 * 3986: unreserved, sub-delims, ":@/", and "[]" of an address).
 */
int xet_sign_base_ok(const uint8_t *base, size_t len);


typedef struct {
    const uint8_t      *ns;            /* namespace, [A-Za-z0-9_-] */
    size_t              ns_len;
    xet_hash_t          xorb;
    uint32_t            tag;
    uint64_t            expires;       /* first second of refusal */
    const xet_range_t  *ranges;        /* ascending, as they are served */
    size_t              n;
} xet_sign_url_t;


/*
 * Writes "/xorbs/<ns>/<aa>/<name>?r=...&e=...&k=...&s=..." onto b; the caller
 * has written the base before.  XET_NOMEM; XET_INTERNAL when a part is out of
 * bounds or the ranges are empty, overlap or do not ascend.  With n == 0 the
 * URL is the cacheable one, the same for all ranges of the xorb.
 */
xet_status_t xet_sign_url(xet_sign_key_t *key, const xet_sign_url_t *url,
    xet_buf_t *b);


/*
 * Checks the path (from "/xorbs/" on, any prefix before it is skipped by the
 * caller's location; here only the last four path components count) and the
 * query string of a request.  On XET_OK url holds the parts; ranges has room
 * for XET_SIGN_RANGES_MAX ranges, and url->ranges points to it.  now is in
 * seconds.  XET_SIGN_SYNTAX, XET_SIGN_KEY, XET_SIGN_MISMATCH, XET_SIGN_EXPIRED,
 * XET_INTERNAL.  The signature is compared in constant time, before the expiry
 * is looked at.  url->ns points into path.  Several keys may have one id: each
 * is tried.
 */
xet_status_t xet_sign_check(xet_sign_key_t *const *keys, size_t nkeys,
    const uint8_t *path, size_t path_len, const uint8_t *args,
    size_t args_len, uint64_t now, xet_range_t *ranges, xet_sign_url_t *url);

/*
 * Whether a Range header may be served under the signed list: the list
 * itself, or ranges that each lie inside one signed range, closed, at most
 * as many as signed, in ascending order and not overlapping.  XET_OK or
 * XET_SIGN_RANGE.  value NULL (no header) is refused.  Under a cacheable URL
 * (n == 0) no header and any well-formed list of XET_SIGN_RANGES_MAX ranges
 * at most will do.
 */
xet_status_t xet_sign_range_check(const xet_sign_url_t *url,
    const uint8_t *value, size_t len);


#endif /* _XET_SIGN_H_INCLUDED_ */
