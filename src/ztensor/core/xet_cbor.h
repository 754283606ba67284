
/*
 * A bounded pull decoder for CBOR (RFC 8949, and the older RFC 7049).  The
 * input is one data item of a known size and comes in pieces of any length;
 * nothing is allocated, and no count or length in the input is believed
 * further than the bytes that are left.
 */

#ifndef _XET_CBOR_H_INCLUDED_
#define _XET_CBOR_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_status.h"
#include "xet_utf8.h"


#define XET_CBOR_DEPTH          32     /* open arrays, maps and tags at most */

/*
 * RFC 8949, section 4.2.1, except the order of map keys: definite lengths,
 * shortest heads and floats.  Beyond that section: no tags, no undefined.
 */
#define XET_CBOR_DETERMINISTIC  0x01


typedef enum {
    XET_CBOR_UINT = 0,                 /* value */
    XET_CBOR_NINT,                     /* -1 - value */
    XET_CBOR_BYTES,
    XET_CBOR_TEXT,                     /* well-formed UTF-8 */
    XET_CBOR_ARRAY,                    /* value: elements */
    XET_CBOR_MAP,                      /* value: pairs */
    XET_CBOR_SIMPLE,                   /* value: 20 to 23, see below */
    XET_CBOR_FLOAT,                    /* value: bits, of width bytes */
    XET_CBOR_DATA,                     /* more of the string before it */
    XET_CBOR_END                       /* value: XET_CBOR_ARRAY or _MAP */
} xet_cbor_kind_t;


#define XET_CBOR_FALSE      20
#define XET_CBOR_TRUE       21
#define XET_CBOR_NULL       22
#define XET_CBOR_UNDEFINED  23


typedef struct {
    xet_cbor_kind_t   kind;
    unsigned          width;           /* FLOAT: 2, 4 or 8 */
    unsigned          key:1;           /* a key of a map, or more of one */
    unsigned          indefinite:1;    /* value is 0 then */
    unsigned          more:1;          /* BYTES, TEXT, DATA: DATA follows */
    unsigned          tags;            /* number of tags before the item */
    uint64_t          tag;             /* the last tag before the item */
    uint64_t          value;
    uint64_t          pos;             /* in the input: of the head; DATA: of
                                          data; END: after the container */

    const uint8_t    *data;            /* BYTES, TEXT, DATA: in the window */
    size_t            len;
} xet_cbor_item_t;


typedef struct {
    uint64_t          left;            /* items; a pair counts as two */
    unsigned          map:1;
    unsigned          indefinite:1;
    unsigned          odd:1;           /* a value is next */
} xet_cbor_frame_t;


typedef struct {
    const uint8_t    *p;               /* the window */
    const uint8_t    *end;
    uint64_t          pos;             /* of p in the input */
    uint64_t          size;            /* of the input */

    uint64_t          left;            /* bytes of the open string or chunk */
    uint64_t          head_pos;        /* of the open or the last item */
    uint64_t          tag;
    unsigned          tags;

    unsigned          depth;
    unsigned          limit;           /* of depth */
    unsigned          flags;
    xet_status_t      status;

    unsigned          done:1;          /* the outermost item has ended */
    unsigned          string:1;        /* inside of a string */
    unsigned          chunked:1;       /* the string is indefinite */
    unsigned          text:1;          /* the string is text */
    unsigned          key:1;           /* the string is a key */

    xet_utf8_t        utf8;

    unsigned          head_len;
    uint8_t           head[9];         /* a head that is split by windows */

    xet_cbor_frame_t  frames[XET_CBOR_DEPTH];
} xet_cbor_t;


/*
 * Begins an input of size bytes.  limit: of open arrays, maps and tags, and
 * lowered to XET_CBOR_DEPTH.  flags: 0 or XET_CBOR_DETERMINISTIC.
 */
void xet_cbor_init(xet_cbor_t *c, uint64_t size, unsigned limit,
    unsigned flags);

/*
 * Called after xet_cbor_init() to enter the middle of an input that was
 * decoded before: at pos, with pairs left in a map at depth (1: the outermost
 * item).  The caller must not decode what follows that map.
 */
void xet_cbor_resume(xet_cbor_t *c, uint64_t pos, unsigned depth,
    uint64_t pairs);

/*
 * Hands over the next window, when the window before it is used up.  Bytes
 * past the size of the input are ignored.  The window is not copied: it must
 * stay until xet_cbor_next() returns XET_AGAIN.
 */
void xet_cbor_feed(xet_cbor_t *c, const uint8_t *data, size_t len);

/*
 * XET_OK with *item; XET_AGAIN when the window is used up; XET_DONE when the
 * outermost item and the input end together; XET_ZT_MANIFEST when the input is
 * malformed or cut off; XET_ZT_TRAILING; XET_ZT_ORDER when a head or a float is
 * not the shortest; XET_ZT_NESTING; XET_ZT_UTF8.  An error stays, and
 * c->head_pos is the place of the head where it was found.
 */
xet_status_t xet_cbor_next(xet_cbor_t *c, xet_cbor_item_t *item);

/* The number that a FLOAT stands for. */
double xet_cbor_float(const xet_cbor_item_t *item);

/*
 * Whether a FLOAT is encoded as RFC 8949, section 4.2 demands: the one NaN is
 * 0x7e00 in two bytes, and no number is wider than it needs to be.
 */
int xet_cbor_float_shortest(const xet_cbor_item_t *item);


#endif /* _XET_CBOR_H_INCLUDED_ */
