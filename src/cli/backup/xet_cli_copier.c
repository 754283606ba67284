
/*
 * Reads copies, compares them with their sizes and digests, and writes them.
 *
 * A file gets its name after it is verified and synced, so each file with the
 * name of a copy is intact.  In a folder, up to 64 files are synced one after
 * the other, in a batch: the first sync also writes much of the data that the
 * other syncs would write.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_backup.h"


static int xet_cli_copier_pass(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_store_writer_t *writer,
    xet_cli_copy_e *what);
static int xet_cli_copier_scan(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_store_writer_t *writer,
    xet_xorb_verifier_t *v, xet_cli_copy_e *what);
static int xet_cli_copier_piece(void *data, const uint8_t *bytes, size_t n);
static int xet_cli_copier_judge(const xet_cli_copier_t *c,
    const xet_cli_copy_t *copy, uint64_t size);


int
xet_cli_copier_begin(xet_cli_copier_t *c, xet_store_t *to,
    xet_cli_pace_t *pace)
{
    memset(c, 0, sizeof(xet_cli_copier_t));

    c->to = to;
    c->pace = pace;
    c->tell = xet_cli_progress_set;
    c->buffer = malloc(XET_CLI_STORE_BUFFER);
    c->checksum = xet_checksum_create();

    if (c->buffer == NULL || c->checksum == NULL) {
        xet_cli_copier_end(c);
        return xet_cli_no_memory();
    }

    return XET_CLI_OK;
}


void
xet_cli_copier_end(xet_cli_copier_t *c)
{
    while (c->npending) {
        xet_cli_writer_drop(c->pending[--c->npending]);
    }

    free(c->buffer);
    xet_checksum_destroy(c->checksum);

    c->buffer = NULL;
    c->checksum = NULL;
}


int
xet_cli_copier_there(xet_store_t *storage, const xet_cli_copy_t *copy,
    int *there)
{
    int       rc;
    uint64_t  size;

    rc = xet_cli_copier_size(storage, copy, &size);

    *there = (rc == XET_CLI_OK && size == copy->size);

    return rc;
}


int
xet_cli_copier_size(xet_store_t *storage, const xet_cli_copy_t *copy,
    uint64_t *size)
{
    int               rc;
    char              name[XET_CLI_STORAGE_NAME];
    xet_store_item_t  entry;

    rc = xet_cli_storage_stat(storage,
                              xet_store_copy(name, &copy->hash, copy->copy_id),
                              &entry);

    *size = (rc == XET_CLI_OK) ? entry.size : UINT64_MAX;

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


int
xet_cli_copier_read(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what)
{
    return xet_cli_copier_pass(c, from, copy, NULL, what);
}


int
xet_cli_copier_verify(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what,
    xet_xorb_verifier_t **verifier)
{
    int                   rc;
    xet_xorb_verifier_t  *v;

    *verifier = NULL;

    v = xet_xorb_verifier_create(&xet_suite_default, &copy->hash, UINT32_MAX);

    if (v == NULL) {
        return xet_cli_no_memory();
    }

    rc = xet_cli_copier_scan(c, from, copy, NULL, v, what);

    if (rc == XET_CLI_OK && *what == XET_CLI_COPY_GOOD) {
        *verifier = v;

    } else {
        xet_xorb_verifier_destroy(v);
    }

    return rc;
}


/*
 * Reads a copy, and writes it if writer is not NULL.  A copy with a digest is
 * compared with the digest only; without a digest, its bytes are verified
 * against the hash of the xorb.
 */

static int
xet_cli_copier_pass(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_store_writer_t *writer,
    xet_cli_copy_e *what)
{
    int                   rc;
    xet_xorb_verifier_t  *v;

    if (copy->digested) {
        return xet_cli_copier_scan(c, from, copy, writer, NULL, what);
    }

    v = xet_xorb_verifier_create(&xet_suite_default, &copy->hash, UINT32_MAX);

    if (v == NULL) {
        return xet_cli_no_memory();
    }

    rc = xet_cli_copier_scan(c, from, copy, writer, v, what);

    xet_xorb_verifier_destroy(v);

    return rc;
}


static int
xet_cli_copier_scan(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_store_writer_t *writer,
    xet_xorb_verifier_t *v, xet_cli_copy_e *what)
{
    int             rc;
    char            name[XET_CLI_STORAGE_NAME];
    xet_cli_scan_t  scan;

    *what = XET_CLI_COPY_BAD;

    rc = xet_cli_reader_open(from,
                             xet_store_copy(name, &copy->hash, copy->copy_id),
                             &scan.reader);

    if (rc == XET_CLI_GONE) {
        *what = XET_CLI_COPY_GONE;
        return XET_CLI_OK;
    }

    if (rc == XET_CLI_UNREADABLE) {
        return (errno == EIO || errno == EUCLEAN)
               ? XET_CLI_OK : xet_cli_fail_errno(name);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    scan.buffer = c->buffer;
    scan.checksum = c->checksum;
    scan.verifier = v;
    scan.piece = xet_cli_copier_piece;
    scan.data = c;

    c->writer = writer;
    c->before = c->done;

    rc = xet_cli_scan(&scan);

    xet_cli_reader_close(scan.reader);

    /* a read error counts as damage of this file; the run continues */

    if (rc == XET_CLI_OK && scan.status == XET_OK
        && xet_cli_copier_judge(c, copy, scan.size))
    {
        *what = XET_CLI_COPY_GOOD;
    }

    return rc;
}


static int
xet_cli_copier_piece(void *data, const uint8_t *bytes, size_t n)
{
    int                rc;
    xet_cli_copier_t  *c = data;

    c->done += n;

    if (c->tell) {
        c->tell(c->done - c->before);
    }

    rc = c->writer ? xet_cli_writer_write(c->writer, bytes, n) : XET_CLI_OK;

    if (rc == XET_CLI_OK) {
        xet_cli_pace_wait(c->pace, n);
    }

    return rc;
}


static int
xet_cli_copier_judge(const xet_cli_copier_t *c, const xet_cli_copy_t *copy,
    uint64_t size)
{
    xet_checksum_t  digest;

    if (size != copy->size) {
        return 0;
    }

    if (!copy->digested) {
        return 1;
    }

    xet_checksum_finish(c->checksum, &digest);

    return xet_checksum_equal(&digest, &copy->digest);
}


int
xet_cli_copier_copy(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what)
{
    int                  rc;
    char                 name[XET_CLI_STORAGE_NAME];
    xet_store_writer_t  *writer;

    if (c->npending
        && c->npending >= c->to->ops->batch)
    {
        rc = xet_cli_copier_flush(c);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    xet_store_copy(name, &copy->hash, copy->copy_id);

    rc = xet_cli_writer_open(c->to, name, &writer);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_copier_pass(c, from, copy, writer, what);

    if (rc != XET_CLI_OK || *what != XET_CLI_COPY_GOOD) {
        xet_cli_writer_drop(writer);
        return rc;
    }

    c->pending[c->npending++] = writer;

    /* a bucket gains nothing from a batch */

    return (c->to->ops->batch == 1) ? xet_cli_copier_flush(c)
                                             : XET_CLI_OK;
}


int
xet_cli_copier_flush(xet_cli_copier_t *c)
{
    int       rc;
    unsigned  i;

    rc = XET_CLI_OK;

    for (i = 0; i < c->npending; i++) {

        if (rc == XET_CLI_OK) {
            rc = xet_cli_writer_keep(c->pending[i], 1);

        } else {
            xet_cli_writer_drop(c->pending[i]);
        }
    }

    c->npending = 0;

    return rc;
}
