
/*
 * The metadata of a README.md: its YAML head, converted to JSON.
 *
 * Purpose:    finds the head, two lines "---" around YAML, and converts the
 *             mapping in it to a JSON object.
 * Values:     a plain "true", number or "null" becomes the same value in JSON,
 *             by the core schema of YAML 1.2.  All other scalars are strings,
 *             such as dates, and "no", which is the language Norwegian.
 *             Infinities and NaN become null.  Merge keys ("<<") are applied.
 * Limits:     XET_HUB_CARD_MAX bytes of YAML, XET_HUB_CARD_DEPTH levels, and
 *             bytes of scalars in proportion to the YAML, where an alias counts
 *             as much as the value it repeats.
 * Ownership:  values belong to the stack of open collections, and anchors hold
 *             references, until xet_hub_card_free().
 * Threads:    any; a card of maximum size takes some 50 ms.
 */


#include "xet_hub.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>


#define XET_HUB_CARD_ANCHORS  1000
#define XET_HUB_CARD_ANCHOR   128              /* bytes of the name */
#define XET_HUB_CARD_BASE     16384            /* weight of any card */
#define XET_HUB_CARD_NUMBER   64               /* digits of a number */
#define XET_HUB_CARD_ALIASES  10000

#define XET_HUB_CARD_TAG      "tag:yaml.org,2002:"


/* A collection whose end has not been reached. */

typedef struct {
    json_t            *value;
    json_t            *merges;         /* values of the key "<<" */
    char              *key;            /* of a mapping: its value follows */
    char              *anchor;
    unsigned           merge:1;        /* the key is "<<" */
    size_t             weight;         /* total weight before the value */
    unsigned           height;         /* levels below */
} xet_hub_card_open_t;


typedef struct {
    char              *name;
    json_t            *value;
    size_t             weight;
    unsigned           height;
} xet_hub_card_anchor_t;


typedef struct {
    yaml_parser_t           parser;
    xet_hub_card_open_t     open[XET_HUB_CARD_DEPTH];
    unsigned                depth;
    xet_hub_card_anchor_t  *anchors;
    size_t                  nanchors;
    size_t                  naliases;
    size_t                  weight;    /* bytes of scalars, 8 per value */
    size_t                  most;
    json_t                 *root;
    int                     precision; /* digits of floating point numbers */
    xet_hub_card_error_t   *error;
    size_t                  line;      /* lines before the YAML */
} xet_hub_card_t;


static const uint8_t *xet_hub_card_line(const uint8_t *p, const uint8_t *end);
static xet_status_t xet_hub_card_write(xet_hub_card_t *c, size_t most,
    char **json, size_t *len);
static void xet_hub_card_free(xet_hub_card_t *c);
static xet_status_t xet_hub_card_bad(xet_hub_card_t *c,
    const yaml_event_t *event, const char *problem);
static xet_status_t xet_hub_card_events(xet_hub_card_t *c);
static xet_status_t xet_hub_card_event(xet_hub_card_t *c,
    const yaml_event_t *event);
static xet_status_t xet_hub_card_begin(xet_hub_card_t *c,
    const yaml_event_t *event);
static xet_status_t xet_hub_card_end(xet_hub_card_t *c,
    const yaml_event_t *event);
static xet_status_t xet_hub_card_merge(xet_hub_card_t *c,
    const yaml_event_t *event, xet_hub_card_open_t *open);
static xet_status_t xet_hub_card_scalar(xet_hub_card_t *c,
    const yaml_event_t *event);
static xet_status_t xet_hub_card_key(xet_hub_card_t *c,
    const yaml_event_t *event, xet_hub_card_open_t *open);
static xet_status_t xet_hub_card_alias(xet_hub_card_t *c,
    const yaml_event_t *event);
static xet_status_t xet_hub_card_add(xet_hub_card_t *c,
    const yaml_event_t *event, json_t *value, unsigned height);
static xet_status_t xet_hub_card_weigh(xet_hub_card_t *c,
    const yaml_event_t *event, size_t weight);
static xet_status_t xet_hub_card_anchor(xet_hub_card_t *c,
    const yaml_event_t *event, const char *name, json_t *value, size_t weight,
    unsigned height);
static char *xet_hub_card_copy(const char *text);
static int xet_hub_card_tag(const char *tag, const char *name);
static json_t *xet_hub_card_plain(xet_hub_card_t *c, const char *text,
    size_t len, const char *tag);
static json_t *xet_hub_card_integer(const char *text, size_t len);
static json_t *xet_hub_card_float(xet_hub_card_t *c, const char *text,
    size_t len);


int
xet_hub_card_find(const uint8_t *text, size_t len, xet_hub_card_head_t *head)
{
    const uint8_t  *p, *end, *start;

    p = text;
    end = text + len;

    if (len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
        p += 3;
    }

    memset(head, 0, sizeof(xet_hub_card_head_t));

    while (p < end && (*p == ' ' || (*p >= '\t' && *p <= '\r'))) {
        head->line += (*p++ == '\n');
    }

    if (end - p < 4 || memcmp(p, "---", 3) != 0
        || (p[3] != '\n' && p[3] != '\r'))
    {
        return 0;
    }

    head->begins = 1;

    p += 3;
    start = p;

    /* the line that ends the head begins after a line break */

    for (p = xet_hub_card_line(p, end); p; p = xet_hub_card_line(p, end)) {

        if (end - p >= 3 && memcmp(p, "---", 3) == 0
            && (end - p == 3 || p[3] == '\n' || p[3] == '\r'))
        {
            head->yaml.data = start;
            head->yaml.len = (size_t) (p - start);
            head->complete = 1;
            return 1;
        }
    }

    return 0;
}


/* Returns the start of the next line, or NULL. */

static const uint8_t *
xet_hub_card_line(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p != '\n' && *p != '\r') {
        p++;
    }

    if (p < end && *p == '\r') {
        p++;
    }

    if (p < end && *p == '\n') {
        p++;
    }

    return (p < end) ? p : NULL;
}


xet_status_t
xet_hub_card_parse(const xet_hub_card_head_t *head, char **json,
    size_t *json_len, xet_hub_card_error_t *error)
{
    xet_status_t     rc;
    xet_hub_card_t  *c;

    *json = NULL;
    *json_len = 0;
    error->text[0] = '\0';

    if (head->yaml.len > XET_HUB_CARD_MAX) {
        snprintf(error->text, sizeof(error->text),
                 "the metadata is longer than %d bytes", XET_HUB_CARD_MAX);
        return XET_HUB_CARD;
    }

    c = calloc(1, sizeof(xet_hub_card_t));
    if (c == NULL) {
        return XET_NOMEM;
    }

    if (!yaml_parser_initialize(&c->parser)) {
        free(c);
        return XET_NOMEM;
    }

    c->error = error;
    c->line = head->line;
    c->precision = 15;
    c->most = XET_HUB_CARD_BASE + 8 * head->yaml.len;

    yaml_parser_set_encoding(&c->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&c->parser, head->yaml.data, head->yaml.len);

    rc = xet_hub_card_events(c);

    if (rc == XET_OK && c->root && !json_is_null(c->root)) {
        rc = xet_hub_card_write(c, 2 * head->yaml.len + XET_HUB_CARD_BASE,
                                json, json_len);
    }

    xet_hub_card_free(c);

    return rc;
}


/* Writes the root as JSON of at most "most" bytes. */

static xet_status_t
xet_hub_card_write(xet_hub_card_t *c, size_t most, char **json, size_t *len)
{
    size_t  n, flags;

    if (!json_is_object(c->root)) {
        return xet_hub_card_bad(c, NULL, "the metadata must be a mapping");
    }

    flags = JSON_COMPACT|JSON_REAL_PRECISION(c->precision);

    n = json_dumpb(c->root, NULL, 0, flags);

    if (n == 0) {
        return XET_NOMEM;
    }

    if (n > most) {
        return xet_hub_card_bad(c, NULL, "aliases repeat too much");
    }

    *json = malloc(n);
    if (*json == NULL) {
        return XET_NOMEM;
    }

    *len = json_dumpb(c->root, *json, n, flags);

    return XET_OK;
}


static void
xet_hub_card_free(xet_hub_card_t *c)
{
    size_t                i;
    xet_hub_card_open_t  *open;

    while (c->depth) {
        open = &c->open[--c->depth];

        json_decref(open->value);
        json_decref(open->merges);
        free(open->key);
        free(open->anchor);
    }

    for (i = 0; i < c->nanchors; i++) {
        json_decref(c->anchors[i].value);
        free(c->anchors[i].name);
    }

    free(c->anchors);
    json_decref(c->root);

    yaml_parser_delete(&c->parser);
    free(c);
}


/* Sets the error to the problem and its line in the README. */

static xet_status_t
xet_hub_card_bad(xet_hub_card_t *c, const yaml_event_t *event,
    const char *problem)
{
    size_t  line;

    line = event ? event->start_mark.line : 0;

    /* the YAML begins with the end of the line "---" */

    snprintf(c->error->text, sizeof(c->error->text), "%s (line %zu)", problem,
             line + c->line + 1);

    return XET_HUB_CARD;
}


static xet_status_t
xet_hub_card_events(xet_hub_card_t *c)
{
    int           last;
    xet_status_t  rc;
    yaml_event_t  event;

    do {
        if (!yaml_parser_parse(&c->parser, &event)) {

            if (c->parser.error == YAML_MEMORY_ERROR) {
                return XET_NOMEM;
            }

            event.start_mark = (c->parser.error == YAML_READER_ERROR)
                               ? c->parser.mark : c->parser.problem_mark;

            return xet_hub_card_bad(c, &event,
                                    c->parser.problem ? c->parser.problem
                                                      : "invalid YAML");
        }

        rc = xet_hub_card_event(c, &event);
        last = (event.type == YAML_STREAM_END_EVENT);

        yaml_event_delete(&event);

    } while (rc == XET_OK && !last);

    return rc;
}


static xet_status_t
xet_hub_card_event(xet_hub_card_t *c, const yaml_event_t *event)
{
    switch (event->type) {

    case YAML_DOCUMENT_START_EVENT:

        if (c->root) {
            return xet_hub_card_bad(c, event,
                                    "the metadata has several documents");
        }

        return XET_OK;

    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return xet_hub_card_begin(c, event);

    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return xet_hub_card_end(c, event);

    case YAML_SCALAR_EVENT:
        return xet_hub_card_scalar(c, event);

    case YAML_ALIAS_EVENT:
        return xet_hub_card_alias(c, event);

    default:
        return XET_OK;
    }
}


static xet_status_t
xet_hub_card_begin(xet_hub_card_t *c, const yaml_event_t *event)
{
    int                   mapping;
    const char           *tag, *anchor;
    xet_hub_card_open_t  *open;

    mapping = (event->type == YAML_MAPPING_START_EVENT);

    tag = (const char *) (mapping ? event->data.mapping_start.tag
                                  : event->data.sequence_start.tag);
    anchor = (const char *) (mapping ? event->data.mapping_start.anchor
                                     : event->data.sequence_start.anchor);

    if (tag && !xet_hub_card_tag(tag, mapping ? "map" : "seq")) {
        return xet_hub_card_bad(c, event, "unknown tag");
    }

    if (c->depth == XET_HUB_CARD_DEPTH) {
        return xet_hub_card_bad(c, event, "too many levels");
    }

    if (c->depth && json_is_object(c->open[c->depth - 1].value)
        && c->open[c->depth - 1].key == NULL)
    {
        return xet_hub_card_bad(c, event, "a key must be a scalar");
    }

    open = &c->open[c->depth];

    memset(open, 0, sizeof(xet_hub_card_open_t));

    open->weight = c->weight;
    open->value = mapping ? json_object() : json_array();

    if (open->value == NULL) {
        return XET_NOMEM;
    }

    c->depth++;

    if (anchor) {
        open->anchor = xet_hub_card_copy(anchor);

        if (open->anchor == NULL) {
            return XET_NOMEM;
        }
    }

    return xet_hub_card_weigh(c, event, 0);
}


static xet_status_t
xet_hub_card_end(xet_hub_card_t *c, const yaml_event_t *event)
{
    json_t               *value;
    xet_status_t          rc;
    xet_hub_card_open_t  *open;

    open = &c->open[c->depth - 1];
    rc = XET_OK;

    if (open->merges) {
        rc = xet_hub_card_merge(c, event, open);
    }

    if (rc == XET_OK && open->anchor) {
        rc = xet_hub_card_anchor(c, event, open->anchor, open->value,
                                 c->weight - open->weight, open->height + 1);
    }

    if (rc != XET_OK) {
        return rc;
    }

    value = open->value;

    json_decref(open->merges);
    free(open->anchor);

    c->depth--;

    return xet_hub_card_add(c, event, value, open->height + 1);
}


/* Adds the members of merged mappings whose keys the mapping does not have. */

static xet_status_t
xet_hub_card_merge(xet_hub_card_t *c, const yaml_event_t *event,
    xet_hub_card_open_t *open)
{
    size_t   i, k;
    json_t  *value, *part;

    json_array_foreach(open->merges, i, value) {

        if (json_is_object(value)) {

            if (json_object_update_missing(open->value, value) != 0) {
                return XET_NOMEM;
            }

            continue;
        }

        if (!json_is_array(value)) {
            return xet_hub_card_bad(c, event, "only mappings can be merged");
        }

        json_array_foreach(value, k, part) {

            if (!json_is_object(part)) {
                return xet_hub_card_bad(c, event,
                                        "only mappings can be merged");
            }

            if (json_object_update_missing(open->value, part) != 0) {
                return XET_NOMEM;
            }
        }
    }

    return XET_OK;
}


static xet_status_t
xet_hub_card_scalar(xet_hub_card_t *c, const yaml_event_t *event)
{
    size_t                len, weight;
    json_t               *value;
    const char           *text, *tag, *anchor;
    xet_status_t          rc;
    xet_hub_card_open_t  *open;

    text = (const char *) event->data.scalar.value;
    len = event->data.scalar.length;
    tag = (const char *) event->data.scalar.tag;
    anchor = (const char *) event->data.scalar.anchor;

    /* PostgreSQL stores no NUL in a string */

    if (strlen(text) != len) {
        return xet_hub_card_bad(c, event, "a NUL character");
    }

    weight = c->weight;
    rc = xet_hub_card_weigh(c, event, len);

    if (rc != XET_OK) {
        return rc;
    }

    open = c->depth ? &c->open[c->depth - 1] : NULL;

    if (open && json_is_object(open->value) && open->key == NULL) {
        return xet_hub_card_key(c, event, open);
    }

    if (tag == NULL && !event->data.scalar.plain_implicit) {
        value = json_stringn(text, len);

    } else if (tag && (strcmp(tag, "!") == 0 || xet_hub_card_tag(tag, "str"))) {
        value = json_stringn(text, len);

    } else {
        value = xet_hub_card_plain(c, text, len, tag);

        if (value == NULL && tag) {
            return xet_hub_card_bad(c, event,
                                    "unknown tag, or a value that does not"
                                    " match its tag");
        }
    }

    if (value == NULL) {
        return XET_NOMEM;
    }

    if (anchor) {
        rc = xet_hub_card_anchor(c, event, anchor, value, c->weight - weight,
                                 0);

        if (rc != XET_OK) {
            json_decref(value);
            return rc;
        }
    }

    return xet_hub_card_add(c, event, value, 0);
}


/* Sets the key of the next value.  A key is a string, whatever its form. */

static xet_status_t
xet_hub_card_key(xet_hub_card_t *c, const yaml_event_t *event,
    xet_hub_card_open_t *open)
{
    const char  *text;

    text = (const char *) event->data.scalar.value;

    if (event->data.scalar.anchor) {
        return xet_hub_card_bad(c, event, "a key has an anchor");
    }

    open->merge = (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
                   && strcmp(text, "<<") == 0);

    if (!open->merge && json_object_get(open->value, text)) {
        return xet_hub_card_bad(c, event, "duplicated mapping key");
    }

    open->key = xet_hub_card_copy(text);

    return open->key ? XET_OK : XET_NOMEM;
}


static xet_status_t
xet_hub_card_alias(xet_hub_card_t *c, const yaml_event_t *event)
{
    size_t                  i;
    const char             *name;
    xet_status_t            rc;
    xet_hub_card_open_t    *open;
    xet_hub_card_anchor_t  *anchor;

    name = (const char *) event->data.alias.anchor;

    for (i = c->nanchors; i > 0; i--) {
        anchor = &c->anchors[i - 1];

        if (strcmp(anchor->name, name) == 0) {
            break;
        }
    }

    /* an alias in the value of its own anchor is unknown, too */

    if (i == 0) {
        return xet_hub_card_bad(c, event, "unknown alias");
    }

    if (c->naliases++ == XET_HUB_CARD_ALIASES) {
        return xet_hub_card_bad(c, event, "too many aliases");
    }

    open = c->depth ? &c->open[c->depth - 1] : NULL;

    if (open == NULL
        || (json_is_object(open->value) && open->key == NULL))
    {
        return xet_hub_card_bad(c, event, "a key must be a scalar");
    }

    if (c->depth + anchor->height > XET_HUB_CARD_DEPTH) {
        return xet_hub_card_bad(c, event, "too many levels");
    }

    rc = xet_hub_card_weigh(c, event, anchor->weight);

    return (rc == XET_OK)
           ? xet_hub_card_add(c, event, json_incref(anchor->value),
                              anchor->height)
           : rc;
}


/* Adds a value, and its reference, to the innermost open collection. */

static xet_status_t
xet_hub_card_add(xet_hub_card_t *c, const yaml_event_t *event, json_t *value,
    unsigned height)
{
    int                   failed;
    xet_hub_card_open_t  *open;

    if (c->depth == 0) {
        c->root = value;
        return XET_OK;
    }

    open = &c->open[c->depth - 1];

    if (height > open->height) {
        open->height = height;
    }

    if (json_is_array(open->value)) {
        return (json_array_append_new(open->value, value) == 0) ? XET_OK
                                                                : XET_NOMEM;
    }

    if (open->merge) {

        if (open->merges == NULL) {
            open->merges = json_array();
        }

        failed = json_array_append_new(open->merges, value);

    } else {
        failed = json_object_set_new(open->value, open->key, value);
    }

    free(open->key);

    open->key = NULL;
    open->merge = 0;

    return failed ? XET_NOMEM : XET_OK;
}


static xet_status_t
xet_hub_card_weigh(xet_hub_card_t *c, const yaml_event_t *event, size_t weight)
{
    c->weight += weight + 8;

    return (c->weight <= c->most)
           ? XET_OK
           : xet_hub_card_bad(c, event, "aliases repeat too much");
}


static xet_status_t
xet_hub_card_anchor(xet_hub_card_t *c, const yaml_event_t *event,
    const char *name, json_t *value, size_t weight, unsigned height)
{
    xet_hub_card_anchor_t  *anchor;

    if (c->nanchors == XET_HUB_CARD_ANCHORS
        || strlen(name) > XET_HUB_CARD_ANCHOR)
    {
        return xet_hub_card_bad(c, event, "too many anchors");
    }

    if (c->anchors == NULL) {
        c->anchors = calloc(XET_HUB_CARD_ANCHORS,
                            sizeof(xet_hub_card_anchor_t));
        if (c->anchors == NULL) {
            return XET_NOMEM;
        }
    }

    anchor = &c->anchors[c->nanchors];

    anchor->name = xet_hub_card_copy(name);
    if (anchor->name == NULL) {
        return XET_NOMEM;
    }

    anchor->value = json_incref(value);
    anchor->weight = weight;
    anchor->height = height;

    c->nanchors++;

    return XET_OK;
}


static char *
xet_hub_card_copy(const char *text)
{
    char    *copy;
    size_t   len;

    len = strlen(text) + 1;

    copy = malloc(len);
    if (copy) {
        memcpy(copy, text, len);
    }

    return copy;
}


/* Returns whether a tag is the standard tag of this name. */

static int
xet_hub_card_tag(const char *tag, const char *name)
{
    return strncmp(tag, XET_HUB_CARD_TAG, sizeof(XET_HUB_CARD_TAG) - 1) == 0
           && strcmp(tag + sizeof(XET_HUB_CARD_TAG) - 1, name) == 0;
}


/*
 * Returns the value of a plain scalar; NULL if it does not match its tag, or
 * if out of memory.
 */

static json_t *
xet_hub_card_plain(xet_hub_card_t *c, const char *text, size_t len,
    const char *tag)
{
    size_t   i;
    json_t  *value;

    static const struct {
        const char  *text;
        const char  *tag;
        int          value;            /* 0: false, 1: true, 2: null */
    } words[] = {
        { "", "null", 2 }, { "~", "null", 2 }, { "null", "null", 2 },
        { "Null", "null", 2 }, { "NULL", "null", 2 },
        { "true", "bool", 1 }, { "True", "bool", 1 }, { "TRUE", "bool", 1 },
        { "false", "bool", 0 }, { "False", "bool", 0 }, { "FALSE", "bool", 0 }
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {

        if (strcmp(text, words[i].text) == 0
            && (tag == NULL || xet_hub_card_tag(tag, words[i].tag)))
        {
            return (words[i].value == 2) ? json_null()
                                         : json_boolean(words[i].value);
        }
    }

    if (tag == NULL || xet_hub_card_tag(tag, "int")) {
        value = xet_hub_card_integer(text, len);

        if (value) {
            return value;
        }
    }

    if (tag == NULL || xet_hub_card_tag(tag, "float")
        || xet_hub_card_tag(tag, "int"))
    {
        value = xet_hub_card_float(c, text, len);

        if (value) {
            return value;
        }
    }

    return (tag == NULL || xet_hub_card_tag(tag, "timestamp"))
           ? json_stringn(text, len) : NULL;
}


/*
 * Returns an integer, or NULL if the text is not an integer of 64 bits; then it
 * may still be a float.
 */

static json_t *
xet_hub_card_integer(const char *text, size_t len)
{
    int          base;
    char        *last;
    long long    v;
    const char  *p;

    p = text + (*text == '-' || *text == '+');
    base = 10;

    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'o' || p[1] == 'b')) {
        base = (p[1] == 'x') ? 16 : (p[1] == 'o') ? 8 : 2;
        p += 2;
    }

    if (len > XET_HUB_CARD_NUMBER || *p == '\0'
        || strspn(p, "0123456789abcdefABCDEF") != strlen(p))
    {
        return NULL;
    }

    errno = 0;
    v = strtoll(p, &last, base);

    if (errno || *last) {
        return NULL;
    }

    return json_integer((*text == '-') ? -v : v);
}


/* Returns a floating point number; null for infinities and NaN. */

static json_t *
xet_hub_card_float(xet_hub_card_t *c, const char *text, size_t len)
{
    char         copy[XET_HUB_CARD_NUMBER + 1];
    double       v;
    size_t       digits;
    const char  *p;

    p = text + (*text == '-' || *text == '+');

    if (strcmp(p, ".inf") == 0 || strcmp(p, ".Inf") == 0
        || strcmp(p, ".INF") == 0 || strcmp(text, ".nan") == 0
        || strcmp(text, ".NaN") == 0 || strcmp(text, ".NAN") == 0)
    {
        return json_null();
    }

    digits = strspn(p, "0123456789");
    p += digits;

    if (*p == '.') {
        p++;
        digits += strspn(p, "0123456789");
        p += strspn(p, "0123456789");
    }

    if (digits == 0 || len > XET_HUB_CARD_NUMBER) {
        return NULL;
    }

    if (*p == 'e' || *p == 'E') {
        p++;
        p += (*p == '-' || *p == '+');

        if (*p < '0' || *p > '9') {
            return NULL;
        }

        p += strspn(p, "0123456789");
    }

    if (*p) {
        return NULL;
    }

    v = strtod(text, NULL);

    if (isinf(v)) {
        return json_null();
    }

    snprintf(copy, sizeof(copy), "%.15g", v);

    if (strtod(copy, NULL) < v || strtod(copy, NULL) > v) {
        c->precision = 17;
    }

    return json_real(v);
}
