
/*
 * One xorb of a store: its file by the verifier of the core, and its row
 * against what that found.
 */


#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_verify.h"


static int xet_cli_store_xorb_open(xet_cli_checker_t *c,
    const xet_cli_job_t *job);
static int xet_cli_store_xorb_size(xet_cli_checker_t *c,
    const xet_cli_job_t *job, int fd);
static int xet_cli_store_xorb_verify(xet_cli_checker_t *c,
    const xet_cli_job_t *job, int fd);
static xet_status_t xet_cli_store_xorb_feed(xet_cli_checker_t *c,
    xet_xorb_verifier_t *v, xet_checksum_state_t *checksum, int fd);
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
    int  fd, rc;

    fd = xet_cli_store_xorb_open(c, job);

    if (fd < 0) {
        return (fd == -1) ? XET_CLI_OK : XET_CLI_ERROR;
    }

    rc = xet_cli_store_xorb_size(c, job, fd);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_store_xorb_verify(c, job, fd);
    }

    close(fd);

    return (rc == XET_CLI_FAULT) ? XET_CLI_OK : rc;
}


/*
 * Opens the copy.  -1 if it is missing or cannot be opened, a fault that has
 * been printed; -2 without memory.
 */

static int
xet_cli_store_xorb_open(xet_cli_checker_t *c, const xet_cli_job_t *job)
{
    int    fd;
    char  *path, identity[64];

    path = xet_cli_store_path(c->store, &job->hash, job->tag);

    if (path == NULL) {
        return -2;
    }

    fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        if (errno == ENOENT) {

            /* the disk may have gone since this began */

            xet_cli_store_identity(c->store->folder, identity);

            if (strcmp(identity, c->store->identity) != 0) {
                free(path);

                (void) xet_cli_fail(XET_CLI_ERROR, c->store->folder,
                                    "this is not the store any more, is its"
                                    " disk mounted?");
                return -2;
            }

            xet_cli_store_xorb_fault(c, job, "the file is missing");

        } else {
            xet_cli_store_fault(c->store, "xorb", &job->hash, "%s",
                                strerror(errno));
        }

        fd = -1;
    }

    free(path);

    return fd;
}


static int
xet_cli_store_xorb_size(xet_cli_checker_t *c, const xet_cli_job_t *job,
    int fd)
{
    struct stat  st;

    if (fstat(fd, &st) != 0) {
        return xet_cli_fail_errno("fstat");
    }

    if ((uint64_t) st.st_size != job->stored_size) {
        xet_cli_store_xorb_fault(c, job,
                                 "the file has %llu bytes instead of %llu",
                                 (unsigned long long) st.st_size,
                                 (unsigned long long) job->stored_size);

        return XET_CLI_FAULT;
    }

    return XET_CLI_OK;
}


static int
xet_cli_store_xorb_verify(xet_cli_checker_t *c, const xet_cli_job_t *job,
    int fd)
{
    xet_status_t           status;
    xet_checksum_t         digest;
    xet_xorb_verifier_t   *v;
    xet_checksum_state_t  *checksum;

    v = xet_xorb_verifier_create(&xet_suite_default, &job->hash, UINT32_MAX);
    checksum = xet_checksum_create();

    if (v == NULL || checksum == NULL) {
        xet_xorb_verifier_destroy(v);
        xet_checksum_destroy(checksum);
        return xet_cli_no_memory();
    }

    status = xet_cli_store_xorb_feed(c, v, checksum, fd);

    if (status == XET_OK) {
        status = xet_xorb_verifier_finish(v);
    }

    if (status == XET_OK) {
        xet_checksum_finish(checksum, &digest);

        if (job->digested && !xet_checksum_equal(&digest, &job->digest)) {
            xet_cli_store_xorb_fault(c, job,
                                     "its row has another digest than its"
                                     " file");
        } else {
            xet_cli_store_xorb_row(c, job, xet_xorb_verifier_info(v));
        }

    } else if (status == XET_STORE_FAILED && !xet_cli_interrupted) {
        xet_cli_store_fault(c->store, "xorb", &job->hash, "chunk %u: %s",
                            xet_xorb_verifier_info(v)->chunk_count,
                            strerror(errno));

    } else if (!xet_cli_interrupted && status != XET_NOMEM) {
        xet_cli_store_xorb_fault(c, job, "chunk %u: %s",
                                 xet_xorb_verifier_info(v)->chunk_count,
                                 xet_status_text(status));
    }

    xet_xorb_verifier_destroy(v);
    xet_checksum_destroy(checksum);

    return (status == XET_NOMEM) ? xet_cli_no_memory() : XET_CLI_OK;
}


static xet_status_t
xet_cli_store_xorb_feed(xet_cli_checker_t *c, xet_xorb_verifier_t *v,
    xet_checksum_state_t *checksum, int fd)
{
    size_t        stored;
    ssize_t       n;
    xet_status_t  status;

    for ( ;; ) {
        n = read(fd, c->buffer, XET_CLI_STORE_BUFFER);

        if (n <= 0 || xet_cli_interrupted) {
            return (n == 0) ? XET_OK : XET_STORE_FAILED;
        }

        xet_checksum_update(checksum, c->buffer, (size_t) n);

        status = xet_xorb_verifier_feed(v, c->buffer, (size_t) n, &stored);

        if (status != XET_OK) {
            return status;
        }

        xet_cli_store_read(c->store, (uint64_t) n);

        if (stored != (size_t) n) {

            /* stored xorbs have no footer */

            return XET_XORB_FOOTER;
        }
    }
}


/*
 * Prints a fault of the copy and marks the copy as damaged, unless the row of
 * the xorb names another copy by now.
 */

static void
xet_cli_store_xorb_fault(xet_cli_checker_t *c, const xet_cli_job_t *job,
    const char *fmt, ...)
{
    char      text[256];
    va_list   ap;
    uint64_t  named;

    if (xet_cli_store_named(c->pg, &job->hash, &named) == XET_CLI_OK
        && named != job->tag)
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
    char                 tag[16];
    xet_cli_pg_param_t   params[2];

    snprintf(tag, sizeof(tag), "%d", (int) job->tag);

    params[0].value = job->hash.bytes;
    params[0].len = XET_HASH_LEN;
    params[1].value = tag;
    params[1].len = 0;

    (void) xet_cli_pg_query(c->pg, sql, params, 2, NULL, NULL);
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
        xet_cli_store_xorb_mark(c, job, "SELECT xet.xorb_whole($1,"
                                        " $2::integer)");
    }

    if (what) {
        xet_cli_store_xorb_fault(c, job,
                                 "its row has another %s than its file",
                                 what);
    }
}
