
/*
 * A JSON writer on xet_buf_t, RFC 8259, no white space.  Commas and colons
 * are put by the writer; nesting is at most XET_JSON_DEPTH levels, one level
 * more fails the buffer.  Integers are written exactly, never as floats.
 * Strings are escaped; bytes that are not valid UTF-8 come out as U+FFFD.
 */

#ifndef _XET_JSON_H_INCLUDED_
#define _XET_JSON_H_INCLUDED_


#include "xet_buf.h"


#define XET_JSON_DEPTH  32


typedef struct {
    xet_buf_t  *buf;
    uint32_t    more;              /* one bit per level: has an element */
    unsigned    depth;
    unsigned    value:1;           /* a key was written, its value follows */
} xet_json_t;


void xet_json_init(xet_json_t *j, xet_buf_t *b);

/*
 * Continues the text in the buffer b, from any point; objects and arrays that
 * are open stay open.  The former buffer is not used any more, and its errors
 * are not carried over to b.
 */
void xet_json_resume(xet_json_t *j, xet_buf_t *b);

void xet_json_object_begin(xet_json_t *j);
void xet_json_object_end(xet_json_t *j);
void xet_json_array_begin(xet_json_t *j);
void xet_json_array_end(xet_json_t *j);

/* key: a C string that needs no escaping, in practice a literal. */
void xet_json_key(xet_json_t *j, const char *key);
void xet_json_key_n(xet_json_t *j, const uint8_t *key, size_t len);

void xet_json_string(xet_json_t *j, const uint8_t *s, size_t len);
void xet_json_cstring(xet_json_t *j, const char *s);
void xet_json_u64(xet_json_t *j, uint64_t v);
void xet_json_i64(xet_json_t *j, int64_t v);

/* Writes a number as the caller has formatted it, which must suit RFC 8259. */
void xet_json_number(xet_json_t *j, const uint8_t *text, size_t len);
void xet_json_bool(xet_json_t *j, int v);
void xet_json_null(xet_json_t *j);

/*
 * A whole element that the caller writes itself.  xet_json_reserve() returns
 * room for n bytes of JSON text, with the key where one is due, or NULL when
 * the buffer has failed; xet_json_advance() takes the end of the text.  An
 * element in one piece takes a fraction of the time that it takes in separate
 * calls.
 */
uint8_t *xet_json_reserve(xet_json_t *j, size_t n);
void xet_json_advance(xet_json_t *j, const uint8_t *end);

/*
 * A string whose bytes the caller writes itself between the two calls with
 * xet_buf_*(); they must need no escaping.
 */
void xet_json_string_begin(xet_json_t *j);
void xet_json_string_end(xet_json_t *j);


#endif /* _XET_JSON_H_INCLUDED_ */
