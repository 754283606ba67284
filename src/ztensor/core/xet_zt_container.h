
/*
 * Both ends of a zTensor file: which container it is, and where the manifest
 * lies.
 */

#ifndef _XET_ZT_CONTAINER_H_INCLUDED_
#define _XET_ZT_CONTAINER_H_INCLUDED_


#include "xet_zt_dtype.h"
#include "xet_status.h"


#define XET_ZT_MAGIC_LEN   8

#define XET_ZT_FOOTER      16          /* bytes, container 1 */
#define XET_ZT_FOOTER_2    40

#define XET_ZT_FILE_MIN    16
#define XET_ZT_FILE_MIN_2  48


typedef struct {
    xet_zt_container_t  container;
    unsigned            header_magic:1;

    uint64_t            manifest_offset;
    uint64_t            manifest_length;
    uint64_t            manifest_hash;  /* container 2 */

    uint64_t            data_start;     /* components lie from here */
    uint64_t            data_end;       /* to here, exclusive */
} xet_zt_ends_t;


/* How many bytes of the end of a file xet_zt_ends_parse() looks at. */
unsigned xet_zt_tail_len(uint64_t size);

/*
 * head: the first XET_ZT_MAGIC_LEN bytes of a file of size bytes; tail: the
 * last xet_zt_tail_len() bytes.  limit: bytes of the manifest.  strict: a file
 * of container 1 must begin with its magic number.  *ends is filled as far as
 * the file is understood.  XET_OK; XET_ZT_NOT_ZTENSOR, XET_ZT_TOO_SHORT,
 * XET_ZT_HEADER_MAGIC, XET_ZT_FOOTER_MAGIC, XET_ZT_VERSION (ends->container
 * says which), XET_ZT_DATA_SHARD, XET_ZT_MANIFEST_*, XET_ZT_ALIGN.
 */
xet_status_t xet_zt_ends_parse(xet_zt_ends_t *ends, const uint8_t *head,
    const uint8_t *tail, uint64_t size, uint64_t limit, int strict);


#endif /* _XET_ZT_CONTAINER_H_INCLUDED_ */
