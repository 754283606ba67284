
/*
 * Conversion of attributes from CBOR to JSON.
 *
 * Purpose:    shows the attributes of a file or an object to people and
 *             programs without a CBOR decoder.
 * States:     the stacks of the decoder and of the JSON writer move together.
 *             An item is written, or skipped with everything inside it.
 * Ownership:  strings that come in chunks are joined in one buffer, which is
 *             released at the end of the call.  Everything else is written
 *             from the caller's bytes.
 * Threads:    one at a time.
 *
 * A double is written with enough digits to read the same double back, a float
 * or a half with enough digits to read the same float back.  Floats keep a
 * decimal point or an exponent in JSON.
 */


#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "xet_base.h"
#include "xet_zt.h"


#define XET_ZT_FLOAT_TEXT    40
#define XET_ZT_BASE64_BYTES  3072          /* per call; a multiple of 3 */


typedef struct {
    xet_json_t   *json;
    xet_cbor_t    cbor;

    unsigned      skip:1;              /* skip items */
    unsigned      skip_depth;          /* depth around the skipped values */
    unsigned      skip_more;           /* values to skip after this one */

    unsigned      text:1;              /* the last string is text */
    unsigned      key:1;               /* the last string is a key */
    uint8_t      *string;              /* joined chunks of a string */
    size_t        string_len;
    size_t        string_room;         /* maximum length of a string */
} xet_zt_attributes_t;


static void xet_zt_attributes_item(xet_zt_attributes_t *a,
    const xet_cbor_item_t *item);
static void xet_zt_attributes_skip(xet_zt_attributes_t *a,
    const xet_cbor_item_t *item);
static void xet_zt_attributes_key(xet_zt_attributes_t *a,
    const xet_cbor_item_t *item);
static void xet_zt_attributes_container(xet_zt_attributes_t *a,
    const xet_cbor_item_t *item);
static void xet_zt_attributes_string(xet_zt_attributes_t *a,
    const xet_cbor_item_t *item);
static void xet_zt_attributes_write(xet_zt_attributes_t *a, const uint8_t *s,
    size_t len);
static void xet_zt_attributes_base64(xet_json_t *j, const uint8_t *s,
    size_t len);
static size_t xet_zt_attributes_integer(uint8_t *text,
    const xet_cbor_item_t *item);
static void xet_zt_attributes_float(xet_json_t *j,
    const xet_cbor_item_t *item);


void
xet_zt_attributes_json(xet_json_t *j, const uint8_t *data, size_t len)
{
    xet_cbor_item_t      item;
    xet_zt_attributes_t  a;

    memset(&a, 0, sizeof(xet_zt_attributes_t));

    a.json = j;
    a.string_room = len;

    xet_cbor_init(&a.cbor, len, XET_CBOR_DEPTH, 0);
    xet_cbor_feed(&a.cbor, data, len);

    while (xet_cbor_next(&a.cbor, &item) == XET_OK) {
        xet_zt_attributes_item(&a, &item);
    }

    free(a.string);

    /* should not fail: the manifest's parser has decoded the map before */

    if (a.cbor.status != XET_OK) {
        j->buf->failed = 1;
    }
}


static void
xet_zt_attributes_item(xet_zt_attributes_t *a, const xet_cbor_item_t *item)
{
    uint8_t      text[1 + XET_DECIMAL_MAX];
    xet_json_t  *j;

    j = a->json;

    if (a->skip) {
        xet_zt_attributes_skip(a, item);
        return;
    }

    if (item->key && item->kind != XET_CBOR_DATA) {
        xet_zt_attributes_key(a, item);
        return;
    }

    switch (item->kind) {

    case XET_CBOR_UINT:
    case XET_CBOR_NINT:
        xet_json_number(j, text, xet_zt_attributes_integer(text, item));
        break;

    case XET_CBOR_BYTES:
    case XET_CBOR_TEXT:
        a->text = (item->kind == XET_CBOR_TEXT);
        a->key = 0;
        xet_zt_attributes_string(a, item);
        break;

    case XET_CBOR_DATA:
        xet_zt_attributes_string(a, item);
        break;

    case XET_CBOR_ARRAY:
    case XET_CBOR_MAP:
        xet_zt_attributes_container(a, item);
        break;

    case XET_CBOR_END:

        if (item->value == XET_CBOR_MAP) {
            xet_json_object_end(j);

        } else {
            xet_json_array_end(j);
        }

        break;

    case XET_CBOR_FLOAT:
        xet_zt_attributes_float(j, item);
        break;

    default: /* XET_CBOR_SIMPLE */

        if (item->value == XET_CBOR_FALSE || item->value == XET_CBOR_TRUE) {
            xet_json_bool(j, item->value == XET_CBOR_TRUE);

        } else {
            xet_json_null(j);
        }
    }
}


static void
xet_zt_attributes_skip(xet_zt_attributes_t *a, const xet_cbor_item_t *item)
{
    if (a->cbor.depth > a->skip_depth || item->more) {
        return;
    }

    /* a value has ended */

    if (a->skip_more) {
        a->skip_more--;

    } else {
        a->skip = 0;
    }
}


static void
xet_zt_attributes_key(xet_zt_attributes_t *a, const xet_cbor_item_t *item)
{
    uint8_t  text[1 + XET_DECIMAL_MAX];

    switch (item->kind) {

    case XET_CBOR_TEXT:
        a->text = 1;
        a->key = 1;
        xet_zt_attributes_string(a, item);
        return;

    case XET_CBOR_UINT:
    case XET_CBOR_NINT:
        xet_json_key_n(a->json, text, xet_zt_attributes_integer(text, item));
        return;

    default:
        break;
    }

    /* skip the rest of the key, and the value */

    a->skip = 1;
    a->skip_depth = a->cbor.depth - (item->kind == XET_CBOR_MAP
                                     || item->kind == XET_CBOR_ARRAY);
    a->skip_more = 1;

    xet_zt_attributes_skip(a, item);
}


static void
xet_zt_attributes_container(xet_zt_attributes_t *a,
    const xet_cbor_item_t *item)
{
    if (a->json->depth == XET_JSON_DEPTH) {
        xet_json_null(a->json);

        a->skip = 1;
        a->skip_depth = a->cbor.depth - 1;
        a->skip_more = 0;

    } else if (item->kind == XET_CBOR_MAP) {
        xet_json_object_begin(a->json);

    } else {
        xet_json_array_begin(a->json);
    }
}


static void
xet_zt_attributes_string(xet_zt_attributes_t *a, const xet_cbor_item_t *item)
{
    if (item->kind != XET_CBOR_DATA && !item->more) {
        xet_zt_attributes_write(a, item->data, item->len);
        return;
    }

    if (item->kind != XET_CBOR_DATA) {
        a->string_len = 0;
    }

    if (a->string == NULL) {
        a->string = malloc(a->string_room);
    }

    if (a->string == NULL) {
        a->json->buf->failed = 1;
        return;
    }

    if (item->len) {
        memcpy(a->string + a->string_len, item->data, item->len);
        a->string_len += item->len;
    }

    if (!item->more) {
        xet_zt_attributes_write(a, a->string, a->string_len);
    }
}


static void
xet_zt_attributes_write(xet_zt_attributes_t *a, const uint8_t *s, size_t len)
{
    xet_json_t  *j;

    j = a->json;

    if (a->key) {
        xet_json_key_n(j, s, len);

    } else if (a->text) {
        xet_json_string(j, s, len);

    } else if (j->depth == XET_JSON_DEPTH) {
        xet_json_null(j);

    } else {
        xet_json_object_begin(j);
        xet_json_key(j, "$base64");
        xet_zt_attributes_base64(j, s, len);
        xet_json_object_end(j);
    }
}


static void
xet_zt_attributes_base64(xet_json_t *j, const uint8_t *s, size_t len)
{
    size_t    n;
    uint8_t  *p;

    xet_json_string_begin(j);

    for ( /* void */ ; len; len -= n) {
        n = (len < XET_ZT_BASE64_BYTES) ? len : XET_ZT_BASE64_BYTES;

        /* EVP_EncodeBlock() appends a NUL */

        p = xet_buf_reserve(j->buf, (n + 2) / 3 * 4 + 1);
        if (p == NULL) {
            return;
        }

        xet_buf_advance(j->buf, (size_t) EVP_EncodeBlock(p, s, (int) n));

        s += n;
    }

    xet_json_string_end(j);
}


/*
 * Writes an integer, and returns its length; a negative one may need 65 bits.
 */

static size_t
xet_zt_attributes_integer(uint8_t *text, const xet_cbor_item_t *item)
{
    static const char  least[] = "-18446744073709551616";

    if (item->kind == XET_CBOR_UINT) {
        return (size_t) (xet_put_decimal(text, item->value) - text);
    }

    if (item->value == UINT64_MAX) {
        memcpy(text, least, sizeof(least) - 1);
        return sizeof(least) - 1;
    }

    text[0] = '-';

    return (size_t) (xet_put_decimal(text + 1, item->value + 1) - text);
}


static void
xet_zt_attributes_float(xet_json_t *j, const xet_cbor_item_t *item)
{
    int     i, n, point, digits;
    char    text[XET_ZT_FLOAT_TEXT];
    double  v;

    v = xet_cbor_float(item);

    if (v != v || v > DBL_MAX || v < -DBL_MAX) {
        xet_json_null(j);
        return;
    }

    /* 6 digits (double: 15) may suffice; 9 digits (double: 17) do suffice */

    for (digits = (item->width == 8) ? 15 : 6; /* void */ ; digits++) {
        n = snprintf(text, sizeof(text) - 2, "%.*g", digits, v);

        if (digits == 17
            || ((item->width == 8) ? strtod(text, NULL) == v
                                   : (float) strtod(text, NULL) == (float) v))
        {
            break;
        }
    }

    /* the decimal point of the locale may not be "." */

    point = 0;

    for (i = 0; i < n; i++) {

        if ((text[i] >= '0' && text[i] <= '9')
            || text[i] == '-' || text[i] == '+')
        {
            continue;
        }

        point = 1;

        if (text[i] != 'e') {
            text[i] = '.';
        }
    }

    if (!point) {
        text[n++] = '.';
        text[n++] = '0';
    }

    xet_json_number(j, (const uint8_t *) text, (size_t) n);
}
