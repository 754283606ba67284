
/*
 * A push parser of xorb bodies: finds the chunks and the footer, checks the
 * headers, looks at no payload.  Internal to the core; the verifier uses it.
 *
 * The caller hands in a piece of the body and takes events until XET_AGAIN:
 *
 *     while ((rc = xet_xorb_parser_next(p, &pos, end, &ev)) == XET_OK) {
 *         ...
 *     }
 *
 * Where the pieces are cut changes how payloads and footers are split into
 * events, and nothing else.
 */

#ifndef _XET_XORB_PARSER_H_INCLUDED_
#define _XET_XORB_PARSER_H_INCLUDED_


#include "xet_xorb.h"


#define XET_XORB_IDENT      "XETBLOB"
#define XET_XORB_IDENT_LEN  7


typedef enum {
    XET_XORB_EVENT_CHUNK = 0,      /* a header: parser->chunk is set */
    XET_XORB_EVENT_PAYLOAD,        /* data, len: a part of the payload */
    XET_XORB_EVENT_FOOTER,         /* the ident of a footer has been read */
    XET_XORB_EVENT_FOOTER_DATA     /* data, len: what follows the ident */
} xet_xorb_event_type_t;


/* data points into the caller's piece; a payload is never empty. */

typedef struct {
    xet_xorb_event_type_t  type;
    const uint8_t         *data;
    size_t                 len;
} xet_xorb_event_t;


typedef struct {
    unsigned               scheme;     /* XET_SCHEME_*, a known one */
    uint32_t               stored_len; /* 1..XET_CHUNK_MAX, payload alone */
    uint32_t               raw_len;    /* 1..XET_CHUNK_MAX */
} xet_xorb_chunk_t;


typedef enum {
    XET_XORB_PARSER_HEADER = 0,
    XET_XORB_PARSER_PAYLOAD,
    XET_XORB_PARSER_IDENT,
    XET_XORB_PARSER_FOOTER
} xet_xorb_parser_state_e;


typedef struct {
    const xet_suite_t     *suite;
    uint64_t               size_max;   /* of the chunk region */
    uint64_t               size;       /* of chunks whose header was taken */
    uint64_t               taken;      /* chunk region bytes consumed */

    uint32_t               count;      /* headers taken */
    uint32_t               rest;       /* payload bytes to come */

    xet_xorb_parser_state_e  state;
    unsigned               have;       /* bytes of header or ident */
    uint8_t                header[XET_XORB_HEADER_LEN];

    xet_xorb_chunk_t       chunk;
} xet_xorb_parser_t;


void xet_xorb_parser_init(xet_xorb_parser_t *p, const xet_suite_t *suite,
    uint64_t size_max);

/*
 * XET_OK with an event, XET_AGAIN when *pos has reached end, or an error of
 * a header: XET_XORB_VERSION, _SCHEME, _STORED_LEN, _RAW_LEN, _DATA_LEN,
 * _CHUNKS, _SIZE, or _EMPTY for a footer without chunks.  An error comes with
 * the byte that shows it, and ends the use of the parser.
 */
xet_status_t xet_xorb_parser_next(xet_xorb_parser_t *p, const uint8_t **pos,
    const uint8_t *end, xet_xorb_event_t *ev);

/*
 * Whether the body may end here: XET_OK behind a chunk or anywhere in a
 * footer, XET_XORB_EMPTY, or XET_XORB_TRUNCATED.
 */
xet_status_t xet_xorb_parser_finish(const xet_xorb_parser_t *p);


#endif /* _XET_XORB_PARSER_H_INCLUDED_ */
