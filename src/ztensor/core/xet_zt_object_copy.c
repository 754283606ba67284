
/*
 * Copies of objects.
 *
 * Purpose:    what a walk hands over lives until its handler returns; a copy
 *             is for those who need to read the data that it describes.
 * States:     none.
 * Ownership:  structure, components and texts are one piece of memory.
 * Threads:    any.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt_object.h"


#define XET_ZT_COMPONENT_TEXTS  6


static void xet_zt_component_texts(xet_zt_component_t *c,
    xet_zt_text_t *texts[XET_ZT_COMPONENT_TEXTS]);
static void xet_zt_text_copy(xet_zt_text_t *text, uint8_t **p);


size_t
xet_zt_object_size(const xet_zt_object_t *o)
{
    size_t          size;
    unsigned        i, n;
    xet_zt_text_t  *texts[XET_ZT_COMPONENT_TEXTS];

    size = sizeof(xet_zt_object_t) + o->n * sizeof(xet_zt_component_t)
           + o->name.len + o->format.len;

    for (i = 0; i < o->n; i++) {
        xet_zt_component_texts(&o->components[i], texts);

        for (n = 0; n < XET_ZT_COMPONENT_TEXTS; n++) {
            size += texts[n]->len;
        }
    }

    return size;
}


xet_zt_object_t *
xet_zt_object_copy(const xet_zt_object_t *o)
{
    uint8_t          *p;
    unsigned          i, n;
    xet_zt_text_t    *texts[XET_ZT_COMPONENT_TEXTS];
    xet_zt_object_t  *copy;

    /* one byte more: a text may be empty, but not nowhere */

    copy = malloc(xet_zt_object_size(o) + 1);
    if (copy == NULL) {
        return NULL;
    }

    *copy = *o;

    copy->attributes.data = NULL;
    copy->attributes.len = 0;
    copy->components = (xet_zt_component_t *) (copy + 1);

    if (o->n) {
        memcpy(copy->components, o->components,
               o->n * sizeof(xet_zt_component_t));
    }

    p = (uint8_t *) (copy->components + o->n);

    xet_zt_text_copy(&copy->name, &p);
    xet_zt_text_copy(&copy->format, &p);

    for (i = 0; i < copy->n; i++) {
        xet_zt_component_texts(&copy->components[i], texts);

        for (n = 0; n < XET_ZT_COMPONENT_TEXTS; n++) {
            xet_zt_text_copy(texts[n], &p);
        }
    }

    return copy;
}


static void
xet_zt_component_texts(xet_zt_component_t *c,
    xet_zt_text_t *texts[XET_ZT_COMPONENT_TEXTS])
{
    texts[0] = &c->role;
    texts[1] = &c->dtype;
    texts[2] = &c->type;
    texts[3] = &c->encoding;
    texts[4] = &c->digest;
    texts[5] = &c->shard;
}


static void
xet_zt_text_copy(xet_zt_text_t *text, uint8_t **p)
{
    if (text->data == NULL) {
        return;
    }

    if (text->len) {
        memcpy(*p, text->data, text->len);
    }

    text->data = *p;
    *p += text->len;
}
