
/*
 * XML input.
 *
 * Purpose:    parses XML with expat; no other file calls expat.
 * States:     the path and the text of the current element.
 * Ownership:  the parser and the walk are allocated and freed by the call.
 * Threads:    any.
 *
 * A store has no reason to send a DTD, and a DTD allows entity expansion and
 * external entities.  Therefore "<!DOCTYPE" stops the walk, and only the five
 * predefined entities of XML are supported.  Text and depth are
 * limited here; the caller limits the length, and so the number of elements.
 */


#include <stdlib.h>

#include <expat.h>

#include "xet_s3xml.h"


typedef struct {
    XML_Parser     parser;
    xet_s3xml_pt   handler;
    void          *data;
    xet_status_t   status;

    unsigned       depth;
    unsigned       leaf:1;             /* no child element so far */
    size_t         ends[XET_S3XML_DEPTH];  /* length of path at each level */
    size_t         len;                /* bytes in value */

    char           path[XET_S3XML_PATH_MAX];
    char           value[XET_S3XML_VALUE_MAX + 1];
} xet_s3xml_walk_t;


static void xet_s3xml_stop(xet_s3xml_walk_t *w, xet_status_t status);
static void xet_s3xml_start(void *data, const XML_Char *name,
    const XML_Char **attributes);
static void xet_s3xml_end(void *data, const XML_Char *name);
static void xet_s3xml_text(void *data, const XML_Char *text, int len);
static void xet_s3xml_doctype(void *data, const XML_Char *name,
    const XML_Char *system, const XML_Char *public, int internal);


xet_status_t
xet_s3xml_walk(const uint8_t *text, size_t len, xet_s3xml_pt handler,
    void *data)
{
    xet_status_t       status;
    enum XML_Error     error;
    xet_s3xml_walk_t  *w;

    /* a store may send white space while it processes the request */

    while (len && (*text == ' ' || *text == '\t' || *text == '\r'
                   || *text == '\n'))
    {
        text++;
        len--;
    }

    if (len > INT32_MAX) {
        return XET_BODY_SYNTAX;
    }

    w = calloc(1, sizeof(xet_s3xml_walk_t));
    if (w == NULL) {
        return XET_NOMEM;
    }

    w->handler = handler;
    w->data = data;

    w->parser = XML_ParserCreate(NULL);
    if (w->parser == NULL) {
        free(w);
        return XET_NOMEM;
    }

    XML_SetUserData(w->parser, w);
    XML_SetElementHandler(w->parser, xet_s3xml_start, xet_s3xml_end);
    XML_SetCharacterDataHandler(w->parser, xet_s3xml_text);
    XML_SetStartDoctypeDeclHandler(w->parser, xet_s3xml_doctype);

    if (XML_Parse(w->parser, (const char *) text, (int) len, 1)
        != XML_STATUS_OK && w->status == XET_OK)
    {
        error = XML_GetErrorCode(w->parser);
        w->status = (error == XML_ERROR_NO_MEMORY) ? XET_NOMEM
                                                   : XET_BODY_SYNTAX;
    }

    status = w->status;

    XML_ParserFree(w->parser);
    free(w);

    return status;
}


/*
 * Stops the walk.  expat may still call handlers after XML_StopParser(), so
 * handlers check w->status first.
 */

static void
xet_s3xml_stop(xet_s3xml_walk_t *w, xet_status_t status)
{
    w->status = status;
    (void) XML_StopParser(w->parser, XML_FALSE);
}


static void
xet_s3xml_start(void *data, const XML_Char *name, const XML_Char **attributes)
{
    xet_s3xml_walk_t *w = data;

    size_t       len, at;
    const char  *colon;

    if (w->status != XET_OK) {
        return;
    }

    colon = strrchr(name, ':');

    if (colon) {
        name = colon + 1;
    }

    len = strlen(name);
    at = w->depth ? w->ends[w->depth - 1] : 0;

    /* expat accepts "<:/>" and "<a:/>", which have no name after the prefix */

    if (w->depth == XET_S3XML_DEPTH
        || len == 0
        || len > XET_S3XML_PATH_MAX - 2
        || at > XET_S3XML_PATH_MAX - 2 - len)
    {
        xet_s3xml_stop(w, XET_BODY_SYNTAX);
        return;
    }

    if (at) {
        w->path[at++] = '/';
    }

    memcpy(w->path + at, name, len + 1);

    w->ends[w->depth++] = at + len;
    w->leaf = 1;
    w->len = 0;
}


static void
xet_s3xml_end(void *data, const XML_Char *name)
{
    xet_s3xml_walk_t *w = data;

    xet_status_t  rc;

    if (w->status != XET_OK) {
        return;
    }

    w->value[w->len] = '\0';

    rc = w->handler(w->data, w->path, w->leaf ? w->value : NULL, w->len);

    if (rc != XET_OK) {
        xet_s3xml_stop(w, rc);
        return;
    }

    w->depth--;
    w->path[w->depth ? w->ends[w->depth - 1] : 0] = '\0';

    w->leaf = 0;
    w->len = 0;
}


/*
 * Collects text.  White space before a child is dropped when the child starts.
 */

static void
xet_s3xml_text(void *data, const XML_Char *text, int len)
{
    xet_s3xml_walk_t *w = data;

    if (w->status != XET_OK || !w->leaf) {
        return;
    }

    if ((size_t) len > XET_S3XML_VALUE_MAX - w->len) {
        xet_s3xml_stop(w, XET_BODY_SYNTAX);
        return;
    }

    memcpy(w->value + w->len, text, (size_t) len);
    w->len += (size_t) len;
}


static void
xet_s3xml_doctype(void *data, const XML_Char *name, const XML_Char *system,
    const XML_Char *public, int internal)
{
    xet_s3xml_stop(data, XET_BODY_SYNTAX);
}
