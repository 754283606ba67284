
/*
 * Answers about zTensor files as JSON.  Errors are kept by the buffer of the
 * JSON writer, see xet_buf_status().
 */

#ifndef _XET_ZT_JSON_H_INCLUDED_
#define _XET_ZT_JSON_H_INCLUDED_


#include "xet_json.h"
#include "xet_ztensor.h"
#include "xet_zt_verifier.h"


/*
 * A page of a listing:
 *
 *   {"file":"...","size":n,"container":"1.1","version":"1.1.0",
 *    "header_magic":true,"manifest":{"offset":n,"length":n},"attributes":{},
 *    "count":n,"warnings":[],"objects":[...],"next":i}
 *
 * "count" is the number of objects in the file; "next" is the index of the
 * last object of the page, after which the next page begins, or null when no
 * other object matches.  "attributes" are null when too large.  Warnings:
 * "missing_header_magic", "unknown_version", "overlap",
 * "attributes_not_echoed".
 */

typedef struct {
    xet_json_t        *json;
    const xet_zt_t    *zt;
    uint64_t           limit;          /* objects of the page at most */
    uint64_t           bytes;          /* no object begins past them */
    uint64_t           n;              /* objects so far */
    uint64_t           last;           /* index of the last object */
    uint64_t           start;          /* of the page in the buffer */
    unsigned           more:1;
} xet_zt_page_t;

/* id: the value of "file"; limit: at least 1. */
void xet_zt_page_begin(xet_zt_page_t *page, xet_json_t *j, const xet_zt_t *zt,
    const uint8_t *id, size_t id_len, uint64_t limit, uint64_t bytes);

/* A handler of objects, for a walk with attributes; ctx is the page. */
xet_status_t xet_zt_page_object(void *ctx, xet_zt_object_t *o);

void xet_zt_page_end(xet_zt_page_t *page);


/*
 * An object:
 *
 *   {"i":n,"name":"...","shape":[...],"format":"dense","attributes":{},
 *    "status":"ok","errors":[],"components":{"data":{"dtype":"f32",
 *    "offset":n,"length":n,"encoding":"raw","decoded_length":n,
 *    "digest":"..."}}}
 *
 * "status" is "ok", "invalid" or "unsupported"; "errors" are codes of
 * statuses; "decoded_length" and "digest" may be null; "shape" is null when it
 * has more than XET_ZT_RANK_MAX dimensions, "attributes" when too large.  A
 * component may also have "type" and "shard".
 */

void xet_zt_object_json(xet_json_t *j, const xet_zt_object_t *o);


/*
 * A verification:
 *
 *   {"file":"...","size":n,"container":"1.1","objects":[{"i":n,"name":"...",
 *    "components":{"data":"verified"},"status":"ok","errors":[]}],
 *    "checked":n,"bytes":n,"ok":true}
 *
 * "checked" counts the components, "bytes" their stored bytes in this file.
 * "errors" are those of the object's description and of its data.  "ok" is
 * false when an object is invalid or unsupported, or when xet_zt_report_ok()
 * is false for a report.
 */

typedef struct {
    xet_json_t          *json;
    xet_zt_container_t   container;
    uint64_t             checked;
    uint64_t             bytes;
    unsigned             failed:1;
} xet_zt_audit_t;

void xet_zt_audit_begin(xet_zt_audit_t *a, xet_json_t *j, const xet_zt_t *zt,
    const uint8_t *id, size_t id_len);
void xet_zt_audit_object(xet_zt_audit_t *a, const xet_zt_object_t *o);

/* An error of the report becomes an error of o; o->verdict is left alone. */
void xet_zt_audit_component(xet_zt_audit_t *a, xet_zt_object_t *o,
    const xet_zt_component_t *c, const xet_zt_report_t *report);
void xet_zt_audit_object_end(xet_zt_audit_t *a, const xet_zt_object_t *o);
void xet_zt_audit_end(xet_zt_audit_t *a);


/*
 * Why a file can't be listed:
 *
 *   {"error":{"code":"...","message":"...","container":"1.0","offset":n}}
 *
 * "container" and "offset" are there where they are known.
 */

void xet_zt_error_json(xet_json_t *j, const xet_zt_t *zt, xet_status_t status);


/* "1.1", "2", "1.0", "0.1"; NULL when not known. */
const char *xet_zt_container_name(xet_zt_container_t container);


#endif /* _XET_ZT_JSON_H_INCLUDED_ */
