
/*
 * Entries of a tree, as JSON.
 *
 * Purpose:    writes the entries of a folder, recursive or not, and of lists
 *             of paths, the most frequent responses of the Hub.  Each entry is
 *             written from the columns of its row.
 * States:     before the first entry, or after it: each later entry starts with
 *             a comma.
 * Ownership:  memory belongs to the buffer, texts belong to the caller.
 * Threads:    one at a time.
 *
 * An entry takes about 400 bytes plus its path and, with "expand", the title of
 * its commit; the caller limits the number of entries.  A part of known length
 * is written in one step: a page has a thousand entries, and this code runs in
 * the event loop.  The members and their order are kept stable for clients
 * (docs/hub_fields.md).
 */


#include "xet_hub.h"


/* The maximum size of each part of an entry except the path and the title. */
#define XET_HUB_TREE_HEAD  512

/* The oid of an empty file, which has no Xet hash: its git blob id. */
#define XET_HUB_TREE_NOTHING  "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


static uint8_t *xet_hub_tree_file(uint8_t *p, const xet_hub_node_t *node);
static uint8_t *xet_hub_tree_object(uint8_t *p, const xet_hub_node_t *node);
static void xet_hub_tree_last(xet_buf_t *b, const xet_hub_node_t *node);
static void xet_hub_tree_string(xet_buf_t *b, const xet_hub_text_t *text);
static uint8_t *xet_hub_tree_hex(uint8_t *p, const uint8_t *bytes, size_t n);
static uint8_t *xet_hub_tree_digits(uint8_t *p, unsigned v, unsigned n);


void
xet_hub_tree_begin(xet_hub_tree_t *tree, xet_buf_t *b, int bucket, int expand)
{
    tree->buf = b;
    tree->n = 0;
    tree->bucket = (bucket != 0);
    tree->expand = (expand != 0 && !bucket);

    xet_buf_write(b, "[", 1);
}


void
xet_hub_tree_add(xet_hub_tree_t *tree, const xet_hub_node_t *node)
{
    uint8_t    *p, *start;
    xet_buf_t  *b;

    b = tree->buf;

    start = xet_buf_reserve(b, XET_HUB_TREE_HEAD);
    if (start == NULL) {
        return;
    }

    p = start;

    if (tree->n++) {
        *p++ = ',';
    }

    p = tree->bucket ? xet_hub_tree_object(p, node)
                     : xet_hub_tree_file(p, node);

    xet_buf_advance(b, (size_t) (p - start));

    xet_hub_tree_string(b, &node->path);

    if (tree->expand && node->title.data) {
        xet_hub_tree_last(b, node);
    }

    xet_buf_write(b, "}", 1);
}


void
xet_hub_tree_end(xet_hub_tree_t *tree)
{
    xet_buf_write(tree->buf, "]", 1);
}


/* Writes an entry up to its path. */

static uint8_t *
xet_hub_tree_file(uint8_t *p, const xet_hub_node_t *node)
{
    if (node->hash == NULL) {
        p = xet_put_literal(p, "{\"type\":\"directory\",\"oid\":\"");
        p = xet_hub_tree_hex(p, node->made, XET_HUB_OID_LEN / 2);

        return xet_put_literal(p, "\",\"size\":0,\"path\":");
    }

    p = xet_put_literal(p, "{\"type\":\"file\",\"oid\":\"");

    if (node->size == 0) {
        return xet_put_literal(p, XET_HUB_TREE_NOTHING
                                  "\",\"size\":0,\"path\":");
    }

    p = xet_hub_tree_hex(p, node->sha256, XET_HUB_OID_LEN / 2);
    p = xet_put_literal(p, "\",\"size\":");
    p = xet_put_decimal(p, node->size);
    p = xet_put_literal(p, ",\"lfs\":{\"oid\":\"");
    p = xet_hub_tree_hex(p, node->sha256, XET_HUB_SHA256_LEN);
    p = xet_put_literal(p, "\",\"size\":");
    p = xet_put_decimal(p, node->size);
    p = xet_put_literal(p, ",\"pointerSize\":134},\"xetHash\":\"");
    p = xet_hub_tree_hex(p, node->hash, XET_HASH_LEN);

    return xet_put_literal(p, "\",\"path\":");
}


/* Writes an object of a bucket up to its path. */

static uint8_t *
xet_hub_tree_object(uint8_t *p, const xet_hub_node_t *node)
{
    if (node->hash == NULL) {
        p = xet_put_literal(p, "{\"type\":\"directory\",\"uploadedAt\":\"");
        p = xet_hub_tree_date(p, node->at);

        return xet_put_literal(p, "\",\"path\":");
    }

    p = xet_put_literal(p, "{\"type\":\"file\",\"size\":");
    p = xet_put_decimal(p, node->size);
    p = xet_put_literal(p, ",\"xetHash\":\"");
    p = xet_hub_tree_hex(p, node->hash, XET_HASH_LEN);
    p = xet_put_literal(p, "\",\"uploadedAt\":\"");
    p = xet_hub_tree_date(p, node->at);
    p = xet_put_literal(p, "\",\"mtime\":");

    if (node->mtime == XET_HUB_NO_TIME) {
        return xet_put_literal(p, "null,\"path\":");
    }

    *p++ = '"';
    p = xet_hub_tree_date(p, node->mtime);

    return xet_put_literal(p, "\",\"path\":");
}


/* Writes the commit of an entry. */

static void
xet_hub_tree_last(xet_buf_t *b, const xet_hub_node_t *node)
{
    uint8_t  *p, *start;

    start = xet_buf_reserve(b, XET_HUB_TREE_HEAD);
    if (start == NULL) {
        return;
    }

    p = xet_put_literal(start, ",\"lastCommit\":{\"id\":\"");
    p = xet_hub_tree_hex(p, node->made, XET_HUB_OID_LEN / 2);
    p = xet_put_literal(p, "\",\"title\":");

    xet_buf_advance(b, (size_t) (p - start));

    xet_hub_tree_string(b, &node->title);

    start = xet_buf_reserve(b, XET_HUB_TREE_HEAD);
    if (start == NULL) {
        return;
    }

    p = xet_put_literal(start, ",\"date\":\"");
    p = xet_hub_tree_date(p, node->at);
    p = xet_put_literal(p, "\"}");

    xet_buf_advance(b, (size_t) (p - start));
}


static void
xet_hub_tree_string(xet_buf_t *b, const xet_hub_text_t *text)
{
    xet_json_t  j;

    xet_json_init(&j, b);
    xet_json_string(&j, text->data, text->len);
}


/*
 * Computes the date in eras of 400 years.  A year starts in March, so the leap
 * day is its last day.
 */

uint8_t *
xet_hub_tree_date(uint8_t *p, int64_t at)
{
    int64_t   ms;
    unsigned  sec, days, age, year, month;

    at = (at < 0) ? 0 : at;
    ms = (at / 1000 > XET_HUB_TIME_MAX) ? XET_HUB_TIME_MAX : at / 1000;

    sec = (unsigned) (ms / 1000 % 86400);
    days = (unsigned) (ms / 86400000) + 719468;

    age = days % 146097;
    year = (age - age / 1460 + age / 36524 - age / 146096) / 365;
    age -= 365 * year + year / 4 - year / 100;
    month = (5 * age + 2) / 153;

    year += days / 146097 * 400 + (month >= 10);

    p = xet_hub_tree_digits(p, year, 4);
    *p++ = '-';
    p = xet_hub_tree_digits(p, (month < 10) ? month + 3 : month - 9, 2);
    *p++ = '-';
    p = xet_hub_tree_digits(p, age - (153 * month + 2) / 5 + 1, 2);
    *p++ = 'T';
    p = xet_hub_tree_digits(p, sec / 3600, 2);
    *p++ = ':';
    p = xet_hub_tree_digits(p, sec / 60 % 60, 2);
    *p++ = ':';
    p = xet_hub_tree_digits(p, sec % 60, 2);
    *p++ = '.';
    p = xet_hub_tree_digits(p, (unsigned) (ms % 1000), 3);
    *p++ = 'Z';

    return p;
}


static uint8_t *
xet_hub_tree_hex(uint8_t *p, const uint8_t *bytes, size_t n)
{
    size_t             i;

    static const char  digits[] = "0123456789abcdef";

    for (i = 0; bytes && i < n; i++) {
        *p++ = (uint8_t) digits[bytes[i] >> 4];
        *p++ = (uint8_t) digits[bytes[i] & 15];
    }

    return p;
}


static uint8_t *
xet_hub_tree_digits(uint8_t *p, unsigned v, unsigned n)
{
    unsigned  i;

    for (i = n; i > 0; i--) {
        p[i - 1] = (uint8_t) ('0' + v % 10);
        v /= 10;
    }

    return p + n;
}
