
/*
 * Uploads a file to S3, in parts while the file is written, or in one request.
 *
 * The owner hashes the bytes of a part as they are written, since the hash
 * precedes the bytes in the request.  A part is sent when more bytes follow
 * it, so finish sends the last part.
 *
 *     start of the upload (background) -> parts (background) ...
 *                                      -> finish: missing parts, completion
 *
 * Background requests are not retried.  finish sends failed requests again,
 * with all retries, in the caller's thread.
 *
 * While requests are in flight, the owner and the thread of the transfers
 * share an upload: the lock protects the members that both use.  The upload is
 * freed when both have released it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "xet_s3_object.h"
#include "xet_s3_parts.h"


#define XET_S3_UPLOAD_READ  (64 * 1024)


struct xet_s3_upload_s {
    xet_s3_t        *s3;
    EVP_MD_CTX      *md;               /* hash of the current part */
    uint64_t         hashed;           /* hashed bytes of the file */
    size_t           len;              /* hashed bytes of the current part */
    int              fd;               /* duplicate of the caller's fd, or -1 */

    pthread_mutex_t  lock;             /* protects the members below */
    pthread_cond_t   cond;             /* signaled when flying is 0 */
    unsigned         flying;           /* requests in flight */
    unsigned         begun:1;
    unsigned         ended:1;          /* the object exists */
    unsigned         dropped:1;        /* the owner has destroyed the upload */
    unsigned         unsure:1;         /* the object may exist; owner only */

    xet_s3_parts_t   parts;

    char             name[XET_S3_NAME_MAX];
    char             id[XET_S3_ID_MAX];        /* "": not yet known */
};


/* A background request. */

typedef struct {
    xet_s3_upload_t   *upload;
    size_t             i;
    char               number[XET_DECIMAL_MAX + 1];
    xet_s3_request_t   r;
} xet_s3_piece_t;


static xet_s3_rc_t xet_s3_upload_read(xet_s3_upload_t *u, int fd,
    uint64_t size, xet_s3_error_t *error);
static int xet_s3_upload_cut(xet_s3_upload_t *u, xet_s3_error_t *error);
static int xet_s3_upload_digest(xet_s3_upload_t *u, char *sha256);
static int xet_s3_upload_own(xet_s3_upload_t *u, int fd,
    xet_s3_error_t *error);
static void xet_s3_upload_go(xet_s3_upload_t *u);
static xet_s3_piece_t *xet_s3_upload_piece(xet_s3_upload_t *u, size_t i);
static void xet_s3_upload_begin(xet_s3_upload_t *u);
static void xet_s3_upload_begin_request(xet_s3_upload_t *u,
    xet_s3_request_t *r);
static void xet_s3_upload_begun_done(xet_s3_transfer_t *t);
static void xet_s3_upload_part(xet_s3_upload_t *u, size_t i);
static void xet_s3_upload_part_request(xet_s3_upload_t *u, size_t i,
    char *number, xet_s3_request_t *r);
static void xet_s3_upload_part_done(xet_s3_transfer_t *t);
static void xet_s3_upload_landed(xet_s3_upload_t *u);
static xet_s3_rc_t xet_s3_upload_whole(xet_s3_upload_t *u, const char *name,
    int fd, uint64_t size, int only_new, xet_s3_error_t *error);
static xet_s3_rc_t xet_s3_upload_send(xet_s3_upload_t *u,
    xet_s3_error_t *error);
static xet_s3_rc_t xet_s3_upload_send_begin(xet_s3_upload_t *u,
    xet_s3_error_t *error);
static xet_s3_rc_t xet_s3_upload_send_part(xet_s3_upload_t *u, size_t i,
    xet_s3_error_t *error);
static void xet_s3_upload_wait(xet_s3_upload_t *u);
static xet_s3_rc_t xet_s3_upload_end(xet_s3_upload_t *u, uint64_t size,
    int only_new, xet_s3_error_t *error);
static int xet_s3_upload_is(xet_s3_upload_t *u, uint64_t size);
static void xet_s3_upload_abort(xet_s3_upload_t *u);
static void xet_s3_upload_abort_done(xet_s3_transfer_t *t);
static void xet_s3_upload_free(xet_s3_upload_t *u);


xet_s3_upload_t *
xet_s3_upload_create(xet_s3_t *s3, const char *name)
{
    size_t            len;
    xet_s3_upload_t  *u;

    len = strlen(name);

    if (len >= XET_S3_NAME_MAX) {
        return NULL;
    }

    u = calloc(1, sizeof(xet_s3_upload_t));
    if (u == NULL) {
        return NULL;
    }

    u->s3 = s3;
    u->fd = -1;
    memcpy(u->name, name, len + 1);

    u->md = EVP_MD_CTX_new();

    if (u->md == NULL || !EVP_DigestInit_ex(u->md, EVP_sha256(), NULL)) {
        EVP_MD_CTX_free(u->md);
        free(u);
        return NULL;
    }

    (void) pthread_mutex_init(&u->lock, NULL);
    (void) pthread_cond_init(&u->cond, NULL);

    return u;
}


int
xet_s3_upload_begun(xet_s3_upload_t *u)
{
    int  begun;

    (void) pthread_mutex_lock(&u->lock);
    begun = u->begun;
    (void) pthread_mutex_unlock(&u->lock);

    return begun;
}


xet_s3_rc_t
xet_s3_upload_ready(xet_s3_upload_t *u, int fd, uint64_t size,
    xet_s3_error_t *error)
{
    xet_s3_rc_t  rc;

    rc = xet_s3_upload_read(u, fd, size, error);

    if (rc != XET_S3_OK || u->parts.n == 0) {
        return rc;
    }

    if (!xet_s3_upload_own(u, fd, error)) {
        return XET_S3_LOCAL;
    }

    xet_s3_upload_go(u);

    return XET_S3_OK;
}


xet_s3_rc_t
xet_s3_upload_finish(xet_s3_upload_t *u, const char *name, int fd,
    uint64_t size, int only_new, xet_s3_error_t *error)
{
    xet_s3_rc_t  rc;

    rc = xet_s3_upload_read(u, fd, size, error);

    if (rc != XET_S3_OK) {
        return rc;
    }

    if (!xet_s3_upload_begun(u)) {

        if (strlen(name) >= XET_S3_NAME_MAX) {
            return xet_s3_error(error, XET_S3_CONF, 0, "a name is too long");
        }

        memmove(u->name, name, strlen(name) + 1);

    } else if (strcmp(name, u->name) != 0) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "parts of \"%.96s\" can't become \"%.96s\"",
                            u->name, name);
    }

    if (u->parts.n == 0) {
        return xet_s3_upload_whole(u, name, fd, size, only_new, error);
    }

    /* len is 0 if finish is called again */

    if (u->len && !xet_s3_upload_cut(u, error)) {
        return XET_S3_LOCAL;
    }

    if (!xet_s3_upload_own(u, fd, error)) {
        return XET_S3_LOCAL;
    }

    rc = xet_s3_upload_send(u, error);

    return rc ? rc : xet_s3_upload_end(u, size, only_new, error);
}


void
xet_s3_upload_destroy(xet_s3_upload_t *u)
{
    unsigned  flying;

    if (u == NULL) {
        return;
    }

    (void) pthread_mutex_lock(&u->lock);
    u->dropped = 1;
    flying = u->flying;
    (void) pthread_mutex_unlock(&u->lock);

    if (flying == 0) {
        xet_s3_upload_abort(u);
    }
}


/* Hashes bytes.  A full part is complete when another byte follows it. */

xet_s3_rc_t
xet_s3_upload_hash(xet_s3_upload_t *u, const unsigned char *data, size_t len,
    xet_s3_error_t *error)
{
    size_t  n;

    while (len) {

        if (u->len == u->s3->conf->part && !xet_s3_upload_cut(u, error)) {
            return XET_S3_LOCAL;
        }

        n = u->s3->conf->part - u->len;
        n = (n < len) ? n : len;

        if (!EVP_DigestUpdate(u->md, data, n)) {
            return xet_s3_error(error, XET_S3_LOCAL, 0, "OpenSSL failed");
        }

        u->hashed += (uint64_t) n;
        u->len += n;

        data += n;
        len -= n;
    }

    return XET_S3_OK;
}


uint64_t
xet_s3_upload_hashed(const xet_s3_upload_t *u)
{
    return u->hashed;
}


/* Reads and hashes the bytes that were not hashed yet. */

static xet_s3_rc_t
xet_s3_upload_read(xet_s3_upload_t *u, int fd, uint64_t size,
    xet_s3_error_t *error)
{
    size_t         len;
    ssize_t        n;
    xet_s3_rc_t    rc;
    unsigned char  buf[XET_S3_UPLOAD_READ];

    if (size < u->hashed) {
        return xet_s3_error(error, XET_S3_LOCAL, 0,
                            "a file that is uploaded became shorter");
    }

    while (u->hashed < size) {

        len = (sizeof(buf) < size - u->hashed) ? sizeof(buf)
                                               : (size_t) (size - u->hashed);

        n = pread(fd, buf, len, (off_t) u->hashed);

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n <= 0) {
            return xet_s3_error(error, XET_S3_LOCAL, 0,
                                "pread() of a file that is uploaded failed "
                                "(%d: %s)", n ? errno : 0,
                                n ? strerror(errno) : "it is too short");
        }

        rc = xet_s3_upload_hash(u, buf, (size_t) n, error);

        if (rc != XET_S3_OK) {
            return rc;
        }
    }

    return XET_S3_OK;
}


/* Appends the current part to the list of parts. */

static int
xet_s3_upload_cut(xet_s3_upload_t *u, xet_s3_error_t *error)
{
    int   ok;
    char  sha256[XET_S3_SHA_MAX];

    if (u->parts.n == XET_S3_PARTS_MAX) {
        (void) xet_s3_error(error, XET_S3_LOCAL, 0,
                            "an upload has more than %d parts",
                            XET_S3_PARTS_MAX);
        return 0;
    }

    ok = xet_s3_upload_digest(u, sha256)
         && EVP_DigestInit_ex(u->md, EVP_sha256(), NULL);

    if (!ok) {
        (void) xet_s3_error(error, XET_S3_LOCAL, 0, "OpenSSL failed");
        return 0;
    }

    (void) pthread_mutex_lock(&u->lock);

    ok = xet_s3_parts_add(&u->parts, sha256, u->len);

    if (ok) {
        u->len = 0;

    } else {
        (void) xet_s3_error(error, XET_S3_LOCAL, 0, "out of memory");
    }

    (void) pthread_mutex_unlock(&u->lock);

    return ok;
}


/* Writes the SHA-256 of the current part so far; md stays usable. */

static int
xet_s3_upload_digest(xet_s3_upload_t *u, char *sha256)
{
    int          ok;
    uint8_t      hash[EVP_MAX_MD_SIZE];
    EVP_MD_CTX  *md;

    md = EVP_MD_CTX_new();

    ok = md && EVP_MD_CTX_copy_ex(md, u->md)
         && EVP_DigestFinal_ex(md, hash, NULL);

    if (ok) {
        xet_s3_hex(sha256, hash, 32);
    }

    EVP_MD_CTX_free(md);

    return ok;
}


static int
xet_s3_upload_own(xet_s3_upload_t *u, int fd, xet_s3_error_t *error)
{
    if (u->fd != -1) {
        return 1;
    }

    u->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (u->fd == -1) {
        (void) xet_s3_error(error, XET_S3_LOCAL, 0,
                            "a descriptor can't be copied (%d: %s)", errno,
                            strerror(errno));
        return 0;
    }

    return 1;
}


/* Sends in the background everything that can be sent now. */

static void
xet_s3_upload_go(xet_s3_upload_t *u)
{
    size_t  i;

    (void) pthread_mutex_lock(&u->lock);

    if (!u->begun) {
        xet_s3_upload_begin(u);

    } else if (u->id[0] && !u->dropped) {

        for (i = 0; i < u->parts.n; i++) {
            if (u->parts.elts[i].state == XET_S3_PART_NEW) {
                xet_s3_upload_part(u, i);
            }
        }
    }

    (void) pthread_mutex_unlock(&u->lock);
}


static xet_s3_piece_t *
xet_s3_upload_piece(xet_s3_upload_t *u, size_t i)
{
    xet_s3_piece_t  *piece;

    piece = malloc(sizeof(xet_s3_piece_t));

    if (piece) {
        piece->upload = u;
        piece->i = i;
    }

    return piece;
}


/*
 * Starts the upload in the background.  Like xet_s3_upload_part(), called with
 * the lock held.
 */

static void
xet_s3_upload_begin(xet_s3_upload_t *u)
{
    xet_s3_piece_t  *piece;

    piece = xet_s3_upload_piece(u, 0);
    if (piece == NULL) {
        return;
    }

    xet_s3_upload_begin_request(u, &piece->r);

    if (xet_s3_request_post(&piece->r, xet_s3_upload_begun_done, piece, NULL)
        != XET_S3_OK)
    {
        free(piece);
        return;
    }

    u->begun = 1;
    u->flying++;
}


static void
xet_s3_upload_begin_request(xet_s3_upload_t *u, xet_s3_request_t *r)
{
    xet_s3_request_init(r, u->s3, "POST", u->name);
    xet_s3_request_arg(r, "uploads", "");
    r->is_xml = 1;
}


static void
xet_s3_upload_begun_done(xet_s3_transfer_t *t)
{
    xet_s3_rc_t       rc;
    xet_s3_piece_t   *piece;
    xet_s3_upload_t  *u;

    piece = t->owner;
    u = piece->upload;

    rc = xet_s3_request_result(&piece->r, NULL);

    (void) pthread_mutex_lock(&u->lock);

    if (rc == XET_S3_OK) {
        memcpy(u->id, piece->r.answer.upload, XET_S3_ID_MAX);
    }

    (void) pthread_mutex_unlock(&u->lock);

    xet_s3_request_free(&piece->r);
    free(piece);

    xet_s3_upload_go(u);
    xet_s3_upload_landed(u);
}


static void
xet_s3_upload_part(xet_s3_upload_t *u, size_t i)
{
    xet_s3_piece_t  *piece;

    piece = xet_s3_upload_piece(u, i);
    if (piece == NULL) {
        return;
    }

    xet_s3_upload_part_request(u, i, piece->number, &piece->r);

    if (xet_s3_request_post(&piece->r, xet_s3_upload_part_done, piece, NULL)
        != XET_S3_OK)
    {
        free(piece);
        return;
    }

    u->parts.elts[i].state = XET_S3_PART_SENT;
    u->flying++;
}


static void
xet_s3_upload_part_request(xet_s3_upload_t *u, size_t i, char *number,
    xet_s3_request_t *r)
{
    xet_s3_request_init(r, u->s3, "PUT", u->name);

    *xet_put_decimal((uint8_t *) number, i + 1) = '\0';

    xet_s3_request_arg(r, "partNumber", number);
    xet_s3_request_arg(r, "uploadId", u->id);

    memcpy(r->sha256, u->parts.elts[i].sha256, XET_S3_SHA_MAX);

    r->t.net.data = NULL;
    r->t.net.fd = u->fd;
    r->t.net.offset = (uint64_t) i * u->s3->conf->part;
    r->t.net.len = u->parts.elts[i].len;
}


static void
xet_s3_upload_part_done(xet_s3_transfer_t *t)
{
    xet_s3_rc_t       rc;
    xet_s3_piece_t   *piece;
    xet_s3_upload_t  *u;

    piece = t->owner;
    u = piece->upload;

    rc = xet_s3_request_result(&piece->r, NULL);

    (void) pthread_mutex_lock(&u->lock);

    if (rc != XET_S3_OK
        || !xet_s3_parts_done(&u->parts, piece->i, piece->r.t.etag))
    {
        u->parts.elts[piece->i].state = XET_S3_PART_NEW;
    }

    (void) pthread_mutex_unlock(&u->lock);

    xet_s3_request_free(&piece->r);
    free(piece);

    xet_s3_upload_landed(u);
}


/* Called last by each background request; may free the upload. */

static void
xet_s3_upload_landed(xet_s3_upload_t *u)
{
    int  last;

    (void) pthread_mutex_lock(&u->lock);

    u->flying--;
    last = (u->dropped && u->flying == 0);

    if (u->flying == 0) {
        (void) pthread_cond_signal(&u->cond);
    }

    (void) pthread_mutex_unlock(&u->lock);

    if (last) {
        xet_s3_upload_abort(u);
    }
}


static xet_s3_rc_t
xet_s3_upload_whole(xet_s3_upload_t *u, const char *name, int fd,
    uint64_t size, int only_new, xet_s3_error_t *error)
{
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    xet_s3_request_init(&r, u->s3, "PUT", name);

    if (!xet_s3_upload_digest(u, r.sha256)) {
        return xet_s3_error(error, XET_S3_LOCAL, 0, "OpenSSL failed");
    }

    r.t.net.data = NULL;
    r.t.net.fd = fd;
    r.t.net.len = (size_t) size;

    rc = xet_s3_object_put(&r, only_new, error);

    xet_s3_request_free(&r);

    return rc;
}


/* Sends all parts: first in the background, in parallel, then one by one. */

static xet_s3_rc_t
xet_s3_upload_send(xet_s3_upload_t *u, xet_s3_error_t *error)
{
    size_t       i;
    xet_s3_rc_t  rc;

    xet_s3_upload_go(u);
    xet_s3_upload_wait(u);

    /* nothing is in flight, so no lock is needed */

    if (u->id[0] == '\0') {
        rc = xet_s3_upload_send_begin(u, error);

        if (rc != XET_S3_OK) {
            return rc;
        }

        xet_s3_upload_go(u);
        xet_s3_upload_wait(u);
    }

    for (i = 0; i < u->parts.n; i++) {

        if (u->parts.elts[i].state == XET_S3_PART_DONE) {
            continue;
        }

        rc = xet_s3_upload_send_part(u, i, error);

        if (rc != XET_S3_OK) {
            return rc;
        }
    }

    return XET_S3_OK;
}


static xet_s3_rc_t
xet_s3_upload_send_begin(xet_s3_upload_t *u, xet_s3_error_t *error)
{
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    xet_s3_upload_begin_request(u, &r);

    u->begun = 1;
    rc = xet_s3_request_send(&r, error);

    if (rc == XET_S3_OK && r.answer.upload[0] == '\0') {
        rc = xet_s3_error(error, XET_S3_BAD, r.t.net.status,
                          "S3 POST of \"%.96s\": the upload has no id",
                          u->name);
    }

    if (rc == XET_S3_OK) {
        memcpy(u->id, r.answer.upload, XET_S3_ID_MAX);
    }

    xet_s3_request_free(&r);

    return rc;
}


static xet_s3_rc_t
xet_s3_upload_send_part(xet_s3_upload_t *u, size_t i, xet_s3_error_t *error)
{
    char              number[XET_DECIMAL_MAX + 1];
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    xet_s3_upload_part_request(u, i, number, &r);

    rc = xet_s3_request_send(&r, error);

    if (rc == XET_S3_OK && !xet_s3_parts_done(&u->parts, i, r.t.etag)) {
        rc = xet_s3_error(error, XET_S3_BAD, r.t.net.status,
                          "S3 PUT of \"%.96s\": a part has no ETag", u->name);
    }

    xet_s3_request_free(&r);

    return rc;
}


static void
xet_s3_upload_wait(xet_s3_upload_t *u)
{
    (void) pthread_mutex_lock(&u->lock);

    while (u->flying) {
        (void) pthread_cond_wait(&u->cond, &u->lock);
    }

    (void) pthread_mutex_unlock(&u->lock);
}


/*
 * Completes the upload.  If an attempt got no response, the store may have
 * completed the upload.  Then the store refuses the next attempt, because the
 * upload does not exist any more, or because the object exists.  The ETag of
 * that object, computed from the ETags of the parts, shows whether this upload
 * has made the object.  The same check is made if a successful response has no
 * ETag, as with radosgw.
 */

static xet_s3_rc_t
xet_s3_upload_end(xet_s3_upload_t *u, uint64_t size, int only_new,
    xet_s3_error_t *error)
{
    int               ask;
    char             *list;
    size_t            len;
    xet_s3_rc_t       rc;
    xet_s3_request_t  r;

    rc = only_new ? xet_s3_object_new(u->s3, u->name, error) : XET_S3_OK;

    if (rc != XET_S3_OK) {
        return rc;
    }

    list = xet_s3_parts_xml(&u->parts, &len);
    if (list == NULL) {
        return xet_s3_error(error, XET_S3_LOCAL, 0, "out of memory");
    }

    xet_s3_request_init(&r, u->s3, "POST", u->name);
    xet_s3_request_arg(&r, "uploadId", u->id);

    if (only_new && u->s3->conf->conditional) {
        xet_s3_request_header(&r, "if-none-match", "*");
    }

    r.is_xml = 1;

    if (xet_s3_request_body(&r, (unsigned char *) list, len)) {
        rc = xet_s3_request_send(&r, error);

    } else {
        rc = xet_s3_error(error, XET_S3_LOCAL, 0, "OpenSSL failed");
    }

    if (rc == XET_S3_OK && r.answer.etag[0] == '\0') {
        rc = xet_s3_error(error, XET_S3_BAD, r.t.net.status,
                          "S3 POST of \"%.96s\": the answer is not what S3 "
                          "answers", u->name);
    }

    ask = (r.t.net.status / 100 == 2) ? rc == XET_S3_BAD
          : r.t.net.status / 100 == 4 && (r.unsure || u->unsure);

    if (rc != XET_S3_OK && ask && xet_s3_upload_is(u, size)) {
        rc = XET_S3_OK;
    }

    if (rc != XET_S3_OK && r.t.net.status / 100 != 4) {
        u->unsure = 1;
    }

    /*
     * the upload is missing, because a sweep has aborted it: the caller may
     * upload the file again
     */

    if (rc == XET_S3_NOT_FOUND) {
        rc = XET_S3_AWAY;
    }

    u->ended = (rc == XET_S3_OK);

    xet_s3_request_free(&r);
    free(list);

    return rc;
}


static int
xet_s3_upload_is(xet_s3_upload_t *u, uint64_t size)
{
    char             etag[XET_S3_TAG_MAX], ours[XET_S3_TAG_MAX];
    const char      *p;
    xet_s3_object_t  object;

    if (!xet_s3_parts_etag(&u->parts, ours)
        || xet_s3_object_head(u->s3, u->name, &object, etag, NULL)
           != XET_S3_OK
        || object.size != size)
    {
        return 0;
    }

    p = etag + (etag[0] == '"');

    return strncmp(p, ours, strlen(ours)) == 0
           && strspn(p + strlen(ours), "\"") == strlen(p + strlen(ours));
}


/* Aborts and frees the upload when no other reference to it is left. */

static void
xet_s3_upload_abort(xet_s3_upload_t *u)
{
    xet_s3_piece_t  *piece;

    piece = (u->id[0] && !u->ended) ? xet_s3_upload_piece(u, 0) : NULL;

    if (piece) {
        xet_s3_request_init(&piece->r, u->s3, "DELETE", u->name);
        xet_s3_request_arg(&piece->r, "uploadId", u->id);

        if (xet_s3_request_post(&piece->r, xet_s3_upload_abort_done, piece,
                                NULL)
            == XET_S3_OK)
        {
            return;
        }

        free(piece);
    }

    xet_s3_upload_free(u);
}


/* Frees the upload.  If the abort failed, xet_s3_sweep() removes the parts. */

static void
xet_s3_upload_abort_done(xet_s3_transfer_t *t)
{
    xet_s3_piece_t  *piece;

    piece = t->owner;

    (void) xet_s3_request_result(&piece->r, NULL);

    xet_s3_request_free(&piece->r);
    xet_s3_upload_free(piece->upload);
    free(piece);
}


static void
xet_s3_upload_free(xet_s3_upload_t *u)
{
    if (u->fd != -1) {
        (void) close(u->fd);
    }

    (void) pthread_cond_destroy(&u->cond);
    (void) pthread_mutex_destroy(&u->lock);

    EVP_MD_CTX_free(u->md);
    free(u->parts.elts);
    free(u);
}
