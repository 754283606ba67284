
/*
 * Digests of components: "sha256:" and "crc32c:" in container 1, "sha256:"
 * and "xxh3:" in container 2.
 */

#ifndef _XET_ZT_DIGEST_H_INCLUDED_
#define _XET_ZT_DIGEST_H_INCLUDED_


#include "xet_zt_object.h"


#define XET_ZT_DIGEST_MAX  32          /* bytes of a value */


typedef enum {
    XET_ZT_DIGEST_VERIFIED = 0,
    XET_ZT_DIGEST_MISMATCH,
    XET_ZT_DIGEST_ABSENT,
    XET_ZT_DIGEST_UNSUPPORTED,         /* unknown, or over data that is not
                                          read or decoded here */
    XET_ZT_DIGEST_MALFORMED,
    XET_ZT_DIGEST_UNREADABLE,          /* its data can't be read */
    XET_ZT_DIGEST_UNCHECKED            /* it was too much; never kept */
} xet_zt_digest_verdict_t;


typedef enum {
    XET_ZT_DIGEST_NONE = 0,
    XET_ZT_DIGEST_SHA256,
    XET_ZT_DIGEST_CRC32C,
    XET_ZT_DIGEST_XXH3
} xet_zt_digest_kind_t;


typedef struct {
    xet_zt_digest_kind_t     kind;
    xet_zt_digest_verdict_t  verdict;  /* of the text alone, if kind is none */
    uint8_t                  want[XET_ZT_DIGEST_MAX];
    size_t                   len;      /* of want */

    void                    *sha256;   /* an EVP_MD_CTX, kept for reuse */
    void                    *xxh3;     /* an XXH3_state_t, kept for reuse */
    uint32_t                 crc32c;
} xet_zt_digest_t;


void xet_zt_digest_init(xet_zt_digest_t *d);
void xet_zt_digest_destroy(xet_zt_digest_t *d);

/*
 * Begins with the digest that text declares (data NULL: no digest).  XET_OK,
 * even for a digest that can't be checked; XET_NOMEM.
 */
xet_status_t xet_zt_digest_start(xet_zt_digest_t *d, const xet_zt_text_t *text,
    xet_zt_container_t container);

/* Takes the next bytes that the digest covers.  XET_OK, XET_INTERNAL. */
xet_status_t xet_zt_digest_update(xet_zt_digest_t *d, const uint8_t *data,
    size_t len);

/* Sets *verdict.  XET_OK, XET_INTERNAL. */
xet_status_t xet_zt_digest_finish(xet_zt_digest_t *d,
    xet_zt_digest_verdict_t *verdict);

/* "verified", "mismatch" and so on. */
const char *xet_zt_digest_name(xet_zt_digest_verdict_t verdict);


#endif /* _XET_ZT_DIGEST_H_INCLUDED_ */
