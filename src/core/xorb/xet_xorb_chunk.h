
/*
 * One stored chunk on its own: header and data, decoded and held against the
 * chunk's hash.  For readers, who know from metadata where a chunk lies.
 */

#ifndef _XET_XORB_CHUNK_H_INCLUDED_
#define _XET_XORB_CHUNK_H_INCLUDED_


#include "xet_xorb.h"


/* The most that a chunk takes in a xorb, its header counted. */
#define XET_XORB_CHUNK_MAX  (XET_XORB_HEADER_LEN + XET_CHUNK_MAX)


/*
 * Decodes the len bytes of a chunk as stored, which must be all of it, into
 * raw_len bytes of out.  XET_OK means that out has the hash given, of 32
 * bytes.  Otherwise the content of out is undefined: XET_XORB_TRUNCATED when
 * len is less than a header, XET_XORB_STORED_LEN and XET_XORB_RAW_LEN when the
 * header gives other lengths, XET_XORB_VERSION, _SCHEME, _DATA, _DATA_LEN as
 * for an upload, XET_XORB_EMPTY where a footer begins, XET_CHUNK_HASH,
 * XET_NOMEM.
 */
xet_status_t xet_xorb_chunk_decode(const xet_suite_t *suite,
    xet_codec_t *codec, const uint8_t *stored, size_t len,
    const uint8_t *hash, uint8_t *out, size_t raw_len);


#endif /* _XET_XORB_CHUNK_H_INCLUDED_ */
