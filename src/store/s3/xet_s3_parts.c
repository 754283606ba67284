
/*
 * The parts of an upload: the state of each part, and the list of parts that
 * completes the upload.
 *
 *     new -> sent -> done, or new again if the request fails
 *
 * The list does no I/O.  It belongs to an upload (xet_s3_upload.c), whose lock
 * protects it while background requests are in flight.
 */

#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "xet_s3_parts.h"


#define XET_S3_PARTS_LINE  (XET_S3_TAG_MAX + 80)       /* XML of one part */


int
xet_s3_parts_add(xet_s3_parts_t *parts, const char *sha256, size_t len)
{
    size_t          room;
    xet_s3_part_t  *elts, *part;

    if (parts->n == parts->room) {
        room = parts->room ? 2 * parts->room : 8;

        elts = realloc(parts->elts, room * sizeof(xet_s3_part_t));
        if (elts == NULL) {
            return 0;
        }

        parts->elts = elts;
        parts->room = room;
    }

    part = &parts->elts[parts->n++];

    memset(part, 0, sizeof(xet_s3_part_t));
    memcpy(part->sha256, sha256, XET_S3_SHA_MAX);
    part->len = len;

    return 1;
}


int
xet_s3_parts_done(xet_s3_parts_t *parts, size_t i, const char *etag)
{
    const char  *p;

    for (p = etag; *p; p++) {
        if (*p <= ' ' || *p > '~' || strchr("<>&", *p)) {
            return 0;
        }
    }

    if (p == etag) {
        return 0;
    }

    memcpy(parts->elts[i].etag, etag, XET_S3_TAG_MAX);
    parts->elts[i].state = XET_S3_PART_DONE;

    return 1;
}


char *
xet_s3_parts_xml(const xet_s3_parts_t *parts, size_t *len)
{
    char    *xml, *p, *end;
    size_t   i, size;

    size = parts->n * XET_S3_PARTS_LINE + 128;

    xml = malloc(size);
    if (xml == NULL) {
        return NULL;
    }

    p = xml;
    end = xml + size;

    p += snprintf(p, (size_t) (end - p), "<CompleteMultipartUpload xmlns="
                  "\"http://s3.amazonaws.com/doc/2006-03-01/\">");

    for (i = 0; i < parts->n; i++) {
        p += snprintf(p, (size_t) (end - p), "<Part><PartNumber>%zu"
                      "</PartNumber><ETag>%s</ETag></Part>", i + 1,
                      parts->elts[i].etag);
    }

    p += snprintf(p, (size_t) (end - p), "</CompleteMultipartUpload>");

    *len = (size_t) (p - xml);

    return xml;
}


int
xet_s3_parts_etag(const xet_s3_parts_t *parts, char *etag)
{
    int          ok;
    size_t       i, k;
    uint8_t      md5[EVP_MAX_MD_SIZE];
    unsigned     high, low;
    const char  *p;
    EVP_MD_CTX  *md;

    md = EVP_MD_CTX_new();
    ok = md && EVP_DigestInit_ex(md, EVP_md5(), NULL);

    for (i = 0; ok && i < parts->n; i++) {

        p = parts->elts[i].etag;
        p += (*p == '"');

        for (k = 0; k < 16; k++) {
            high = p[0] ? xet_get_hex_digit((unsigned char) p[0]) : 16;
            low = (high < 16) ? xet_get_hex_digit((unsigned char) p[1]) : 16;

            if (low == 16) {
                ok = 0;
                break;
            }

            md5[k] = (uint8_t) (high << 4 | low);
            p += 2;
        }

        ok = ok && EVP_DigestUpdate(md, md5, 16);
    }

    ok = ok && EVP_DigestFinal_ex(md, md5, NULL);

    if (ok) {
        xet_s3_hex(etag, md5, 16);
        (void) snprintf(etag + 32, XET_S3_TAG_MAX - 32, "-%zu", parts->n);
    }

    EVP_MD_CTX_free(md);

    return ok;
}
