
/*
 * Lists of objects, and of abandoned uploads in parts.
 *
 * A page of a list is a response with up to a thousand names.  The request for
 * the next page contains the last name of the previous page, so the store
 * needs no state for a list.
 */

#include <stdio.h>
#include <stdlib.h>

#include "xet_s3_base.h"


#define XET_S3_LIST_PAGE  1000
#define XET_S3_LIST_KEY   (XET_S3_KEY_MAX + 1)


typedef struct {
    xet_s3_t       *s3;
    xet_s3_name_t  *names;
    size_t          max;
    size_t          n;
    size_t          came;              /* names in the page */
    unsigned        bad:1;             /* a name is out of order, or does not
                                          have our prefix */
    char            last[3 * XET_S3_KEY_MAX + 1];      /* the last full key */
} xet_s3_lister_t;


typedef struct {
    char  *key;                        /* id is in the same allocation */
    char  *id;
} xet_s3_left_t;


typedef struct {
    xet_s3_t       *s3;
    int64_t         before;
    xet_s3_left_t  *left;              /* uploads of the page */
    size_t          n;
} xet_s3_sweeper_t;


static xet_s3_rc_t xet_s3_list_page(xet_s3_lister_t *l, const char *prefix,
    int64_t *now, int *more, xet_s3_error_t *error);
static xet_status_t xet_s3_list_item(void *data, const xet_s3xml_item_t *item);
static xet_s3_rc_t xet_s3_list_key(xet_s3_t *s3, const char *name, char *key,
    size_t size, xet_s3_error_t *error);
static xet_s3_rc_t xet_s3_list_read(xet_s3_request_t *r,
    xet_s3xml_list_t *list, xet_s3xml_item_pt handler, void *data,
    xet_s3_error_t *error);
static xet_s3_rc_t xet_s3_sweep_page(xet_s3_sweeper_t *sweeper,
    const char *prefix, uint64_t age, xet_s3xml_list_t *list,
    xet_s3_error_t *error);
static xet_status_t xet_s3_sweep_item(void *data,
    const xet_s3xml_item_t *item);
static xet_s3_rc_t xet_s3_sweep_abort(xet_s3_sweeper_t *sweeper, size_t *n,
    xet_s3_error_t *error);


xet_s3_rc_t
xet_s3_list(xet_s3_t *s3, const char *prefix, const char *after,
    xet_s3_name_t *names, size_t max, size_t *n, int64_t *now,
    xet_s3_error_t *error)
{
    int              more;
    xet_s3_rc_t      rc;
    xet_s3_lister_t  l;

    *n = 0;

    l.s3 = s3;
    l.names = names;
    l.max = max;
    l.n = 0;
    l.bad = 0;
    l.last[0] = '\0';

    if (*after) {
        rc = xet_s3_list_key(s3, after, l.last, sizeof(l.last), error);

        if (rc != XET_S3_OK) {
            return rc;
        }
    }

    do {
        rc = xet_s3_list_page(&l, prefix, now, &more, error);

        if (rc != XET_S3_OK) {
            return rc;
        }

    } while (more && l.n < max);

    *n = l.n;

    return XET_S3_OK;
}


static xet_s3_rc_t
xet_s3_list_page(xet_s3_lister_t *l, const char *prefix, int64_t *now,
    int *more, xet_s3_error_t *error)
{
    char               key[XET_S3_LIST_KEY], count[XET_DECIMAL_MAX + 1];
    size_t             most;
    xet_s3_rc_t        rc;
    xet_s3_request_t   r;
    xet_s3xml_list_t   list;

    rc = xet_s3_list_key(l->s3, prefix, key, sizeof(key), error);

    if (rc != XET_S3_OK) {
        return rc;
    }

    most = l->max - l->n;
    most = (most < XET_S3_LIST_PAGE) ? most : XET_S3_LIST_PAGE;

    *xet_put_decimal((uint8_t *) count, most) = '\0';

    xet_s3_request_init(&r, l->s3, "GET", NULL);
    xet_s3_request_arg(&r, "list-type", "2");
    xet_s3_request_arg(&r, "encoding-type", "url");
    xet_s3_request_arg(&r, "max-keys", count);
    xet_s3_request_arg(&r, "prefix", key);

    if (l->last[0]) {
        xet_s3_request_arg(&r, "start-after", l->last);
    }

    l->came = 0;
    rc = xet_s3_list_read(&r, &list, xet_s3_list_item, l, error);

    if (rc == XET_S3_OK && now) {
        *now = xet_s3_time_http(r.t.date);
    }

    xet_s3_request_free(&r);

    if (rc == XET_S3_OK && (l->bad || (list.more && l->came == 0))) {
        rc = xet_s3_error(error, XET_S3_BAD, r.t.net.status,
                          "S3 list of \"%.96s\": names out of order, or others "
                          "than were asked for", key);
    }

    *more = list.more;

    return rc;
}


/* Skips names that this client could not have written: empty or too long. */

static xet_status_t
xet_s3_list_item(void *data, const xet_s3xml_item_t *item)
{
    xet_s3_lister_t *l = data;

    size_t          len;
    const char     *name;
    xet_s3_name_t  *to;

    len = strlen(l->s3->url.prefix);

    if (strncmp(item->key, l->s3->url.prefix, len) != 0
        || strcmp(item->key, l->last) <= 0 || l->n == l->max)
    {
        l->bad = 1;
        return XET_OK;
    }

    (void) snprintf(l->last, sizeof(l->last), "%s", item->key);
    l->came++;

    name = item->key + len;
    len = strlen(name);

    if (len == 0 || len >= XET_S3_NAME_MAX) {
        return XET_OK;
    }

    to = &l->names[l->n++];

    memcpy(to->name, name, len + 1);
    to->size = item->size;
    to->modified = xet_s3_time_iso(item->time);

    return XET_OK;
}


/* Writes the key of a name, or of a prefix of names. */

static xet_s3_rc_t
xet_s3_list_key(xet_s3_t *s3, const char *name, char *key, size_t size,
    xet_s3_error_t *error)
{
    int  n;

    n = snprintf(key, size, "%s%s", s3->url.prefix, name);

    return (n >= 0 && (size_t) n < size && n <= XET_S3_KEY_MAX)
           ? XET_S3_OK
           : xet_s3_error(error, XET_S3_CONF, 0, "\"%.64s\" is too long for "
                          "a name", name);
}


static xet_s3_rc_t
xet_s3_list_read(xet_s3_request_t *r, xet_s3xml_list_t *list,
    xet_s3xml_item_pt handler, void *data, xet_s3_error_t *error)
{
    xet_s3_rc_t   rc;
    xet_status_t  status;

    memset(list, 0, sizeof(xet_s3xml_list_t));

    r->t.most = XET_S3_LIST_MAX;

    rc = xet_s3_request_send(r, error);

    if (rc != XET_S3_OK) {
        return rc;
    }

    status = r->t.net.body_len
             ? xet_s3xml_list(list, (uint8_t *) r->t.net.body,
                              r->t.net.body_len, handler, data)
             : XET_BODY_SYNTAX;

    if (status == XET_NOMEM) {
        return xet_s3_error(error, XET_S3_LOCAL, 0, "out of memory");
    }

    return (status == XET_OK)
           ? XET_S3_OK
           : xet_s3_error(error, XET_S3_BAD, r->t.net.status,
                          "S3 list in bucket \"%s\": the answer is not what "
                          "S3 answers", r->s3->url.bucket);
}


xet_s3_rc_t
xet_s3_sweep(xet_s3_t *s3, const char *prefix, uint64_t age, size_t *n,
    xet_s3_error_t *error)
{
    xet_s3_rc_t        rc;
    xet_s3xml_list_t  *list, *before;
    xet_s3_sweeper_t   sweeper;

    *n = 0;
    sweeper.s3 = s3;

    list = calloc(2, sizeof(xet_s3xml_list_t));
    if (list == NULL) {
        return xet_s3_error(error, XET_S3_LOCAL, 0, "out of memory");
    }

    before = list + 1;

    for ( ;; ) {

        sweeper.n = 0;
        sweeper.left = calloc(XET_S3_LIST_PAGE, sizeof(xet_s3_left_t));

        if (sweeper.left == NULL) {
            rc = xet_s3_error(error, XET_S3_LOCAL, 0, "out of memory");
            break;
        }

        rc = xet_s3_sweep_page(&sweeper, prefix, age, list, error);

        if (rc == XET_S3_OK) {
            rc = xet_s3_sweep_abort(&sweeper, n, error);

        } else {
            (void) xet_s3_sweep_abort(&sweeper, NULL, NULL);
        }

        free(sweeper.left);

        if (rc != XET_S3_OK || !list->more) {
            break;
        }

        if (list->key[0] == '\0'
            || (strcmp(list->key, before->key) == 0
                && strcmp(list->upload, before->upload) == 0))
        {
            rc = xet_s3_error(error, XET_S3_BAD, 200,
                              "S3 list of uploads in bucket \"%s\" returns "
                              "the same page again", s3->url.bucket);
            break;
        }

        *before = *list;
    }

    free(list);

    return rc;
}


/*
 * Reads a page of uploads.  Their age is computed by the store's clock: the
 * "Date" in the response to a HEAD of the bucket.
 */

static xet_s3_rc_t
xet_s3_sweep_page(xet_s3_sweeper_t *sweeper, const char *prefix, uint64_t age,
    xet_s3xml_list_t *list, xet_s3_error_t *error)
{
    char              key[XET_S3_LIST_KEY];
    int64_t           now;
    xet_s3_rc_t       rc;
    xet_s3xml_list_t  next;
    xet_s3_request_t  r;

    rc = xet_s3_list_key(sweeper->s3, prefix, key, sizeof(key), error);

    if (rc != XET_S3_OK) {
        return rc;
    }

    xet_s3_request_init(&r, sweeper->s3, "HEAD", NULL);
    rc = xet_s3_request_send(&r, error);
    now = xet_s3_time_http(r.t.date);
    xet_s3_request_free(&r);

    if (rc != XET_S3_OK) {
        return rc;
    }

    if (now == -1 || age > (uint64_t) now) {
        return xet_s3_error(error, XET_S3_BAD, r.t.net.status,
                            "S3 HEAD of bucket \"%s\": no date",
                            sweeper->s3->url.bucket);
    }

    sweeper->before = now - (int64_t) age;

    xet_s3_request_init(&r, sweeper->s3, "GET", NULL);
    xet_s3_request_arg(&r, "uploads", "");
    xet_s3_request_arg(&r, "encoding-type", "url");
    xet_s3_request_arg(&r, "max-uploads", "1000");
    xet_s3_request_arg(&r, "prefix", key);

    if (list->more) {
        xet_s3_request_arg(&r, "key-marker", list->key);

        if (list->upload[0]) {
            xet_s3_request_arg(&r, "upload-id-marker", list->upload);
        }
    }

    rc = xet_s3_list_read(&r, &next, xet_s3_sweep_item, sweeper, error);

    xet_s3_request_free(&r);

    *list = next;

    return rc;
}


static xet_status_t
xet_s3_sweep_item(void *data, const xet_s3xml_item_t *item)
{
    xet_s3_sweeper_t *sweeper = data;

    size_t          len, id;
    int64_t         begun;
    const char     *name;
    xet_s3_left_t  *left;

    len = strlen(sweeper->s3->url.prefix);
    begun = xet_s3_time_iso(item->time);

    if (strncmp(item->key, sweeper->s3->url.prefix, len) != 0
        || begun == -1 || begun > sweeper->before
        || item->upload[0] == '\0' || sweeper->n == XET_S3_LIST_PAGE)
    {
        return XET_OK;
    }

    name = item->key + len;
    len = strlen(name) + 1;
    id = strlen(item->upload) + 1;

    left = &sweeper->left[sweeper->n];

    left->key = malloc(len + id);
    if (left->key == NULL) {
        return XET_NOMEM;
    }

    left->id = left->key + len;

    memcpy(left->key, name, len);
    memcpy(left->id, item->upload, id);

    sweeper->n++;

    return XET_OK;
}


/* Aborts and frees the uploads of a page; if n is NULL, only frees them. */

static xet_s3_rc_t
xet_s3_sweep_abort(xet_s3_sweeper_t *sweeper, size_t *n,
    xet_s3_error_t *error)
{
    size_t            i;
    xet_s3_rc_t       rc, one;
    xet_s3_left_t    *left;
    xet_s3_request_t  r;

    rc = XET_S3_OK;

    for (i = 0; i < sweeper->n; i++) {

        left = &sweeper->left[i];

        if (n && rc == XET_S3_OK) {

            xet_s3_request_init(&r, sweeper->s3, "DELETE", left->key);
            xet_s3_request_arg(&r, "uploadId", left->id);

            one = xet_s3_request_send(&r, error);

            xet_s3_request_free(&r);

            /* XET_S3_CONF: another program's upload, under an invalid name */

            if (one == XET_S3_OK) {
                (*n)++;

            } else if (one != XET_S3_NOT_FOUND && one != XET_S3_CONF) {
                rc = one;
            }
        }

        free(left->key);
    }

    return rc;
}
