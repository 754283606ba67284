
/* An incomplete download: its data and its state, see xet_cli_transfer.h. */


#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_transfer.h"


#define XET_CLI_PART_MAGIC    "XETPART1"
#define XET_CLI_PART_RECORD   48
#define XET_CLI_PART_BUFFER   (1024 * XET_CLI_PART_RECORD)
#define XET_CLI_PART_PERIOD   1000     /* ms between two writes of records */


static int xet_cli_part_open(xet_cli_part_t *p, int folder,
    const char *target, const xet_hash_t *hash);
static int xet_cli_part_files(xet_cli_part_t *p);
static int xet_cli_part_load(xet_cli_part_t *p, const xet_hash_t *hash);
static int xet_cli_part_records(xet_cli_part_t *p, const uint8_t *data,
    size_t n);
static int xet_cli_part_reset(xet_cli_part_t *p, const xet_hash_t *hash);
static int xet_cli_part_download(xet_cli_part_t *p, xet_cli_http_t *h,
    xet_cli_download_t *d);
static int xet_cli_part_sink(void *ctx, uint64_t offset, const uint8_t *data,
    size_t len);
static int xet_cli_part_note(void *ctx, const xet_cli_chunk_t *chunk);
static int xet_cli_part_flush(xet_cli_part_t *p);
static int xet_cli_part_kept(void *ctx, xet_cli_chunk_t *chunk);
static int xet_cli_part_sha256(xet_cli_part_t *p, uint64_t size,
    const uint8_t *sha256, const char *name);
static int xet_cli_part_ready(xet_cli_part_t *p, uint64_t size, int sync);
static void xet_cli_part_close(xet_cli_part_t *p);


int
xet_cli_part_fetch(xet_cli_part_t *p, xet_cli_http_t *h,
    xet_cli_download_t *d, int folder, const char *target,
    const xet_cli_want_t *want, int now)
{
    int  rc;

    rc = xet_cli_part_open(p, folder, target, &d->hash);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_part_download(p, h, d);

    if (rc == XET_CLI_OK && want && want->sha256) {
        rc = xet_cli_part_sha256(p, d->size, want->sha256, want->path);
    }

    if (rc == XET_CLI_OK && want && want->executable) {
        rc = xet_cli_part_mode(p->part_fd, want->path);
    }

    rc = rc ? rc : xet_cli_part_ready(p, d->size, now);

    if (rc == XET_CLI_OK && now) {
        rc = xet_cli_part_name(p, 1);
    }

    if (rc != XET_CLI_OK) {
        xet_cli_part_stop(p, xet_cli_interrupted || d->passing);
    }

    return rc;
}


/*
 * Opens or creates both files for a target, whose name is copied.  Data of a
 * file with another hash is dropped.  Returns XET_CLI_OK, XET_CLI_INTERRUPTED,
 * or XET_CLI_ERROR after printing the error; after an error nothing needs to
 * be closed.
 */

static int
xet_cli_part_open(xet_cli_part_t *p, int folder, const char *target,
    const xet_hash_t *hash)
{
    int  rc;

    memset(p, 0, sizeof(xet_cli_part_t));

    p->folder = folder;
    p->part_fd = -1;
    p->state_fd = -1;
    p->written = xet_cli_now();

    p->target = strdup(target);
    p->records = malloc(XET_CLI_PART_BUFFER);

    if (p->target == NULL || p->records == NULL) {
        rc = xet_cli_no_memory();
        xet_cli_part_close(p);

        return rc;
    }

    p->part = xet_cli_output_beside(p->folder, p->target, ".xet-part");
    p->state = p->part ? xet_cli_output_beside(p->folder, p->target,
                                               ".xet-state")
                       : NULL;

    if (p->state == NULL) {
        xet_cli_part_close(p);

        return XET_CLI_ERROR;
    }

    rc = xet_cli_part_files(p);
    rc = rc ? rc : xet_cli_part_load(p, hash);

    if (rc != XET_CLI_OK) {

        if (p->part_made) {
            unlinkat(p->folder, p->part, 0);
        }

        if (p->state_made) {
            unlinkat(p->folder, p->state, 0);
        }

        p->len = 0;
        xet_cli_part_close(p);
    }

    return rc;
}


/*
 * Opens and locks both files; the lock of the state file also protects the
 * part file.  If the open state file has no link, another download has just
 * removed it, so the state file is opened again.  A part file is created after
 * its state file, and removed before it.  So a file with the name of a part
 * file, but without a state file, is not from a download.
 */

static int
xet_cli_part_files(xet_cli_part_t *p)
{
    struct stat  st;

    for ( ;; ) {
        p->state_fd = xet_cli_output_open(p->folder, p->state, 0600,
                                          &p->state_made);

        if (p->state_fd < 0) {
            return XET_CLI_ERROR;
        }

        if (flock(p->state_fd, LOCK_EX | LOCK_NB) != 0) {
            p->state_made = 0;

            return xet_cli_fail(XET_CLI_ERROR, p->state,
                                (errno == EWOULDBLOCK)
                                ? "another download of this file is running"
                                : strerror(errno));
        }

        if (fstat(p->state_fd, &st) != 0) {
            return xet_cli_fail_errno(p->state);
        }

        if (st.st_nlink) {
            break;
        }

        close(p->state_fd);
        p->state_fd = -1;
    }

    p->part_fd = xet_cli_output_open(p->folder, p->part, 0666,
                                     &p->part_made);

    if (p->part_fd < 0) {
        return XET_CLI_ERROR;
    }

    if (p->state_made && !p->part_made) {
        close(p->part_fd);
        p->part_fd = -1;

        return xet_cli_fail(XET_CLI_ERROR, p->part,
                            "exists and is not from an interrupted download");
    }

    return XET_CLI_OK;
}


static int
xet_cli_part_load(xet_cli_part_t *p, const xet_hash_t *hash)
{
    int           rc;
    size_t        len;
    uint8_t      *data, head[XET_CLI_PART_RECORD];
    struct stat   st;

    memset(head, 0, sizeof(head));
    memcpy(head, XET_CLI_PART_MAGIC, 8);
    memcpy(head + 16, hash->bytes, XET_HASH_LEN);

    if (fstat(p->state_fd, &st) != 0) {
        return xet_cli_fail_errno(p->state);
    }

    if (st.st_size == 0) {
        return xet_cli_part_reset(p, hash);
    }

    len = (size_t) st.st_size;
    data = malloc(len);

    if (data == NULL) {
        return xet_cli_no_memory();
    }

    if (pread(p->state_fd, data, len, 0) != (ssize_t) len
        || memcmp(data, head, len < 8 ? len : 8) != 0)
    {
        rc = xet_cli_fail(XET_CLI_ERROR, p->state,
                          "exists and is not from an interrupted download");

    } else if (len < sizeof(head) || memcmp(data, head, sizeof(head)) != 0) {
        rc = xet_cli_part_reset(p, hash);

    } else {
        rc = xet_cli_part_records(p, data + XET_CLI_PART_RECORD,
                                  len / XET_CLI_PART_RECORD - 1);

        /* the next record overwrites an incomplete record at the end */

        if (lseek(p->state_fd, (off_t) (len - len % XET_CLI_PART_RECORD),
                  SEEK_SET) < 0)
        {
            rc = xet_cli_fail_errno(p->state);
        }
    }

    free(data);

    return rc;
}


static int
xet_cli_part_records(xet_cli_part_t *p, const uint8_t *data, size_t n)
{
    size_t            i, k;
    uint8_t          *raw;
    xet_hash_t        hash;
    xet_cli_chunk_t  *c;

    raw = malloc(XET_CHUNK_MAX);
    p->kept = malloc((n + 1) * sizeof(xet_cli_chunk_t));

    if (raw == NULL || p->kept == NULL) {
        free(raw);
        return xet_cli_no_memory();
    }

    for (i = 0; i < n && !xet_cli_interrupted; i++) {
        c = &p->kept[p->nkept];

        c->offset = xet_get_u64(data);
        c->raw_length = xet_get_u32(data + 8);
        c->payload_length = xet_get_u32(data + 12);
        memcpy(c->hash.bytes, data + 16, XET_HASH_LEN);

        data += XET_CLI_PART_RECORD;

        if (c->raw_length == 0 || c->raw_length > XET_CHUNK_MAX
            || c->payload_length == 0 || c->payload_length > XET_CHUNK_MAX
            || c->offset > INT64_MAX - XET_CHUNK_MAX
            || pread(p->part_fd, raw, c->raw_length, (off_t) c->offset)
               != (ssize_t) c->raw_length)
        {
            continue;
        }

        xet_hash_chunk(&xet_suite_default, raw, c->raw_length, &hash);

        if (xet_hash_equal(&hash, &c->hash)) {
            p->nkept++;
        }
    }

    p->unread = (i < n);

    free(raw);

    qsort(p->kept, p->nkept, sizeof(xet_cli_chunk_t), xet_cli_chunk_order);

    for (i = 0, k = 0; i < p->nkept; i++) {
        if (k && p->kept[k - 1].offset == p->kept[i].offset) {
            continue;
        }

        p->have += p->kept[i].raw_length;
        p->kept[k++] = p->kept[i];
    }

    p->nkept = k;

    return XET_CLI_OK;
}


static int
xet_cli_part_reset(xet_cli_part_t *p, const xet_hash_t *hash)
{
    if (ftruncate(p->state_fd, 0) != 0 || ftruncate(p->part_fd, 0) != 0
        || lseek(p->state_fd, 0, SEEK_SET) < 0)
    {
        return xet_cli_fail_errno(p->state);
    }

    memset(p->records, 0, XET_CLI_PART_RECORD);
    memcpy(p->records, XET_CLI_PART_MAGIC, 8);
    memcpy(p->records + 16, hash->bytes, XET_HASH_LEN);

    p->len = XET_CLI_PART_RECORD;

    return xet_cli_part_flush(p);
}


/*
 * Downloads the missing data.  If the hash of the file is wrong, the kept
 * chunks may be from a damaged copy, so the whole file is downloaded again.
 */

static int
xet_cli_part_download(xet_cli_part_t *p, xet_cli_http_t *h,
    xet_cli_download_t *d)
{
    int  rc;

    d->sink = xet_cli_part_sink;
    d->note = xet_cli_part_note;
    d->kept = xet_cli_part_kept;
    d->ctx = p;

    rc = xet_cli_download(h, d);

    if (rc != XET_CLI_FAULT || !d->unproven) {
        return rc;
    }

    p->nkept = 0;
    p->have = 0;

    rc = xet_cli_part_reset(p, &d->hash);

    return rc ? rc : xet_cli_download(h, d);
}


static int
xet_cli_part_sink(void *ctx, uint64_t offset, const uint8_t *data, size_t len)
{
    ssize_t          n;
    xet_cli_part_t  *p = ctx;

    while (len) {
        n = pwrite(p->part_fd, data, len, (off_t) offset);

        if (n < 0 && errno != EINTR) {
            return xet_cli_fail_errno(p->part);
        }

        if (n > 0) {
            data += n;
            len -= (size_t) n;
            offset += (uint64_t) n;
        }
    }

    return XET_CLI_OK;
}


static int
xet_cli_part_note(void *ctx, const xet_cli_chunk_t *chunk)
{
    uint8_t         *r;
    xet_cli_part_t  *p = ctx;

    r = p->records + p->len;

    xet_put_u64(r, chunk->offset);
    xet_put_u32(r + 8, chunk->raw_length);
    xet_put_u32(r + 12, chunk->payload_length);
    memcpy(r + 16, chunk->hash.bytes, XET_HASH_LEN);

    p->len += XET_CLI_PART_RECORD;
    p->have += chunk->raw_length;

    if (p->len == XET_CLI_PART_BUFFER
        || xet_cli_now() - p->written >= XET_CLI_PART_PERIOD)
    {
        return xet_cli_part_flush(p);
    }

    return XET_CLI_OK;
}


static int
xet_cli_part_flush(xet_cli_part_t *p)
{
    size_t  len;

    len = p->len;

    p->len = 0;
    p->written = xet_cli_now();

    return xet_cli_output_write(p->state_fd, p->state, p->records, len);
}


static int
xet_cli_part_kept(void *ctx, xet_cli_chunk_t *chunk)
{
    xet_cli_part_t   *p = ctx;
    xet_cli_chunk_t  *found;

    found = p->nkept
            ? bsearch(chunk, p->kept, p->nkept, sizeof(xet_cli_chunk_t),
                      xet_cli_chunk_order)
            : NULL;

    if (found == NULL) {
        return 0;
    }

    *chunk = *found;

    return 1;
}


/*
 * Compares the SHA-256 of the data with sha256.  Chunks arrive in any order,
 * so this needs a second pass; the data of a small file is still in the page
 * cache.
 */

static int
xet_cli_part_sha256(xet_cli_part_t *p, uint64_t size, const uint8_t *sha256,
    const char *name)
{
    int       rc;
    uint8_t   digest[XET_CLI_SHA256_LEN];
    uint64_t  n;

    rc = xet_cli_sha256(p->part_fd, p->part, size, digest, &n);

    if (rc == XET_CLI_OK && n != size) {
        errno = EIO;
        rc = xet_cli_fail_errno(p->part);
    }

    return (rc == XET_CLI_OK && memcmp(digest, sha256, XET_CLI_SHA256_LEN))
           ? xet_cli_download_other(name, digest) : rc;
}


/* Makes a file executable for all users who may read the file. */

int
xet_cli_part_mode(int fd, const char *name)
{
    struct stat  st;

    return (fstat(fd, &st) == 0
            && fchmod(fd, (st.st_mode & 0777) | (st.st_mode & 0444) >> 2) == 0)
           ? XET_CLI_OK : xet_cli_fail_errno(name);
}


/*
 * Truncates the part file to the size of the file; syncs the data if sync is
 * set.
 */

static int
xet_cli_part_ready(xet_cli_part_t *p, uint64_t size, int sync)
{
    int  rc;

    /*
     * without sync, the part is renamed later; if this run stops before, the
     * next run needs the records to resume
     */

    rc = sync ? XET_CLI_OK : xet_cli_part_flush(p);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (ftruncate(p->part_fd, (off_t) size) != 0
        || (sync && fdatasync(p->part_fd) != 0))
    {
        return xet_cli_fail_errno(p->part);
    }

    /* many parts may wait to be renamed: free memory and a descriptor */

    close(p->part_fd);
    free(p->records);
    free(p->kept);

    p->part_fd = -1;
    p->records = NULL;
    p->kept = NULL;
    p->nkept = 0;

    return XET_CLI_OK;
}


int
xet_cli_part_name(xet_cli_part_t *p, int sync)
{
    int  rc;

    if (renameat(p->folder, p->part, p->folder, p->target) != 0) {
        return xet_cli_fail_errno(p->target);
    }

    unlinkat(p->folder, p->state, 0);

    rc = sync ? xet_cli_output_sync(p->folder, p->target) : XET_CLI_OK;

    p->len = 0;
    xet_cli_part_close(p);

    return rc;
}


void
xet_cli_part_stop(xet_cli_part_t *p, int keep)
{
    if (p->part == NULL) {

        /* the part was already renamed and closed */

        return;
    }

    if (keep && p->unread) {

        /* not all records were read, so the number of bytes is unknown */

        (void) xet_cli_failf(XET_CLI_OK, p->target,
                             "earlier data are kept in %s; run the same "
                             "command to resume", p->part);

    } else if (keep && p->have) {
        (void) xet_cli_failf(XET_CLI_OK, p->target,
                             "%" PRIu64 " bytes are kept in %s; run the same "
                             "command to resume", p->have, p->part);

    } else {
        unlinkat(p->folder, p->part, 0);
        unlinkat(p->folder, p->state, 0);

        p->len = 0;
    }

    xet_cli_part_close(p);
}


static void
xet_cli_part_close(xet_cli_part_t *p)
{
    if (p->part_fd >= 0) {
        close(p->part_fd);
    }

    if (p->state_fd >= 0) {
        (void) xet_cli_part_flush(p);
        close(p->state_fd);
    }

    free(p->kept);
    free(p->records);
    free(p->state);
    free(p->part);
    free(p->target);

    memset(p, 0, sizeof(xet_cli_part_t));

    p->part_fd = -1;
    p->state_fd = -1;
}
