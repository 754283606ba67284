
/*
 * Checks one xorb of a store: the verifier of the core checks the copy, and
 * its results are compared with the row of the xorb.
 */


#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_verify.h"


static int xet_cli_store_xorb_open(xet_cli_checker_t *c,
    const xet_cli_job_t *job, xet_store_reader_t **reader);
static int xet_cli_store_xorb_size(xet_cli_checker_t *c,
    const xet_cli_job_t *job, const xet_store_reader_t *reader);
static int xet_cli_store_xorb_verify(xet_cli_checker_t *c,
    const xet_cli_job_t *job, xet_store_reader_t *reader);
static int xet_cli_store_xorb_piece(void *data, const uint8_t *bytes,
    size_t n);
static void xet_cli_store_xorb_fault(xet_cli_checker_t *c,
    const xet_cli_job_t *job, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void xet_cli_store_xorb_mark(xet_cli_checker_t *c,
    const xet_cli_job_t *job, const char *sql);
static void xet_cli_store_xorb_row(xet_cli_checker_t *c,
    const xet_cli_job_t *job, const xet_xorb_info_t *info);


int
xet_cli_store_xorb(xet_cli_checker_t *c, const xet_cli_job_t *job)
{
    int                  rc;
    xet_store_reader_t  *reader;

    rc = xet_cli_store_xorb_open(c, job, &reader);
    rc = rc ? rc : xet_cli_store_xorb_size(c, job, reader);
    rc = rc ? rc : xet_cli_store_xorb_verify(c, job, reader);

    xet_cli_reader_close(reader);

    return (rc == XET_CLI_FAULT) ? XET_CLI_OK : rc;
}


/*
 * Opens the copy.  If the file is missing or cannot be opened, prints a fault
 * and returns XET_CLI_FAULT.
 */

static int
xet_cli_store_xorb_open(xet_cli_checker_t *c, const xet_cli_job_t *job,
    xet_store_reader_t **reader)
{
    int   rc;
    char  name[XET_CLI_STORAGE_NAME];

    rc = xet_cli_reader_open(c->store->storage,
                             xet_store_copy(name, &job->hash, job->copy_id),
                             reader);

    if (rc == XET_CLI_UNREADABLE && errno == EUCLEAN) {
        xet_cli_store_xorb_fault(c, job, "is not a regular file");
        return XET_CLI_FAULT;
    }

    if (rc == XET_CLI_UNREADABLE) {
        xet_cli_store_fault(c->store, "xorb", &job->hash, "%s",
                            strerror(errno));
        return XET_CLI_FAULT;
    }

    if (rc != XET_CLI_GONE) {
        return rc;
    }

    /* the disk may have been unmounted in the meantime */

    rc = xet_cli_storage_still(c->store->storage, c->store->identity);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    xet_cli_store_xorb_fault(c, job, "the file is missing");

    return XET_CLI_FAULT;
}


static int
xet_cli_store_xorb_size(xet_cli_checker_t *c, const xet_cli_job_t *job,
    const xet_store_reader_t *reader)
{
    uint64_t  size;

    size = reader->size;

    if (size == job->stored_size) {
        return XET_CLI_OK;
    }

    xet_cli_store_xorb_fault(c, job, "the file has %llu bytes instead of %llu",
                             (unsigned long long) size,
                             (unsigned long long) job->stored_size);

    return XET_CLI_FAULT;
}


static int
xet_cli_store_xorb_verify(xet_cli_checker_t *c, const xet_cli_job_t *job,
    xet_store_reader_t *reader)
{
    int                   rc;
    xet_cli_scan_t        scan;
    xet_checksum_t        digest;
    xet_xorb_verifier_t  *v;

    v = xet_xorb_verifier_create(&xet_suite_default, &job->hash, UINT32_MAX);

    memset(&scan, 0, sizeof(scan));
    scan.reader = reader;
    scan.buffer = c->buffer;
    scan.verifier = v;
    scan.checksum = xet_checksum_create();
    scan.piece = xet_cli_store_xorb_piece;
    scan.data = c->store;

    rc = (v && scan.checksum) ? xet_cli_scan(&scan) : xet_cli_no_memory();

    if (rc != XET_CLI_OK) {

        /* the scan failed for a reason unrelated to the copy */

    } else if (scan.status == XET_OK) {
        xet_checksum_finish(scan.checksum, &digest);

        if (job->digested && !xet_checksum_equal(&digest, &job->digest)) {
            xet_cli_store_xorb_fault(c, job,
                                     "the digest in its row differs from its "
                                     "file");
        } else {
            xet_cli_store_xorb_row(c, job, xet_xorb_verifier_info(v));
        }

    } else if (scan.status == XET_STORE_FAILED) {
        xet_cli_store_fault(c->store, "xorb", &job->hash, "chunk %u: %s",
                            xet_xorb_verifier_info(v)->chunk_count,
                            strerror(errno));

    } else {
        xet_cli_store_xorb_fault(c, job, "chunk %u: %s",
                                 xet_xorb_verifier_info(v)->chunk_count,
                                 xet_status_text(scan.status));
    }

    xet_xorb_verifier_destroy(v);
    xet_checksum_destroy(scan.checksum);

    return rc;
}


static int
xet_cli_store_xorb_piece(void *data, const uint8_t *bytes, size_t n)
{
    xet_cli_store_read(data, (uint64_t) n);

    return XET_CLI_OK;
}


/*
 * Prints a fault of the copy and marks the copy as damaged, unless the row of
 * the xorb now refers to another copy.
 */

static void
xet_cli_store_xorb_fault(xet_cli_checker_t *c, const xet_cli_job_t *job,
    const char *fmt, ...)
{
    char      text[256];
    va_list   ap;
    uint64_t  named;

    if (xet_cli_store_named(c->pg, &job->hash, &named) == XET_CLI_OK
        && named != job->copy_id)
    {
        return;
    }

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    xet_cli_store_fault(c->store, "xorb", &job->hash, "%s", text);

    xet_cli_store_xorb_mark(c, job, "SELECT xet.xorb_damaged(ARRAY[$1],"
                                    " ARRAY[$2::integer])");
}


static void
xet_cli_store_xorb_mark(xet_cli_checker_t *c, const xet_cli_job_t *job,
    const char *sql)
{
    (void) xet_cli_pg_query(c->pg, sql,
                            xet_cli_pg_with(xet_cli_as_hash(&job->hash),
                                            xet_cli_as_copy_id(job->copy_id)),
                            NULL, NULL);
}


static void
xet_cli_store_xorb_row(xet_cli_checker_t *c, const xet_cli_job_t *job,
    const xet_xorb_info_t *info)
{
    size_t          n;
    const char     *what;
    const uint8_t  *lists;

    n = job->chunk_count;
    lists = job->lists;
    what = NULL;

    if (info->chunk_count != n) {
        what = "number of chunks";

    } else if (info->raw_size != job->size) {
        what = "raw size";

    } else if (lists == NULL) {
        what = "length of a list";

    } else if (memcmp(lists, info->hashes, n * XET_HASH_LEN) != 0) {
        what = "list of chunk hashes";

    } else if (memcmp(lists + n * XET_HASH_LEN, info->raw_ends, n * 4) != 0
               || memcmp(lists + n * (XET_HASH_LEN + 4), info->stored_ends,
                         n * 4)
                  != 0)
    {
        what = "list of ends";
    }

    if (what == NULL && job->marked) {
        xet_cli_store_xorb_mark(c, job, "SELECT xet.xorb_intact($1,"
                                        " $2::integer)");
    }

    if (what) {
        xet_cli_store_xorb_fault(c, job,
                                 "the %s in its row differs from its file",
                                 what);
    }
}
