
/*
 * xet verify: reads and verifies files on a server, or a whole store and its
 * database.
 *
 * The main thread reads rows of the database in one snapshot, and queues each
 * row as a job for the other threads.  While the queue is full, the main
 * thread waits.  A failure in one thread ends all threads.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xet_cli_verify.h"


#define XET_CLI_VERIFY_QUEUE    32     /* jobs */


static int xet_cli_verify_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name);
static int xet_cli_verify_store(const xet_cli_args_t *args);
static int xet_cli_verify_options(xet_cli_store_t *s, uint64_t *threads);
static int xet_cli_verify_threads(xet_cli_store_t *s, xet_cli_pg_t *pg,
    uint64_t n);
static void *xet_cli_verify_thread(void *data);
static int xet_cli_verify_jobs(xet_cli_checker_t *c);
static xet_cli_job_t *xet_cli_verify_take(xet_cli_store_t *s);
static int xet_cli_verify_rows(xet_cli_store_t *s, xet_cli_pg_t *pg);
static int xet_cli_verify_xorb_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_verify_file_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_verify_lists(xet_cli_job_t *job,
    const xet_cli_pg_row_t *row);
static int xet_cli_verify_post(xet_cli_store_t *s, xet_cli_job_t *job);
static void xet_cli_verify_free(xet_cli_job_t *job);
static int xet_cli_verify_print(const xet_cli_store_t *s);


int
xet_cli_verify(const xet_cli_args_t *args)
{
    if (args->value[XET_CLI_OPT_STORE] && args->count) {
        return xet_cli_fail(XET_CLI_USAGE, "verify",
                            "use either HASH or --store");
    }

    if (args->value[XET_CLI_OPT_STORE]) {
        return xet_cli_verify_store(args);
    }

    if (args->value[XET_CLI_OPT_OLDER] || args->value[XET_CLI_OPT_ORPHANS]) {
        return xet_cli_fail(XET_CLI_USAGE, "verify",
                            "--older and --orphans need --store");
    }

    if (args->count == 0) {
        return xet_cli_fail(XET_CLI_USAGE, "verify",
                            "expected HASH, NAME or --store");
    }

    return xet_cli_http_operands(args, xet_cli_verify_file);
}


static int
xet_cli_verify_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name)
{
    int                  rc;
    uint64_t             size;
    xet_cli_download_t   d;

    rc = xet_cli_download_init(&d, args, name);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    /* without a sink, data is dropped after decoding and hashing */

    size = 0;

    if (xet_cli_download_size(h, &d.hash, 1, &size) == XET_CLI_INTERRUPTED) {
        return XET_CLI_INTERRUPTED;
    }

    xet_cli_progress_begin(xet_cli_quiet(args), name, size);

    rc = xet_cli_download(h, &d);

    xet_cli_progress_end();

    return rc ? rc : xet_cli_verify_file_print(args, &d, name, 0);
}


int
xet_cli_verify_file_print(const xet_cli_args_t *args,
    const xet_cli_download_t *d, const char *name, int named)
{
    return xet_cli_print(xet_cli_json(args),
               xet_cli_out_text(named ? "file" : NULL, name, " "),
               xet_cli_out_hash("hash", &d->hash, NULL),
               xet_cli_out_number("size", d->size, " bytes, "),
               xet_cli_out_number("chunks", d->chunks, " chunks: ok\n"),
               xet_cli_out_bool("ok", 1));
}


static int
xet_cli_verify_store(const xet_cli_args_t *args)
{
    int               rc;
    uint64_t          threads;
    xet_cli_pg_t     *pg;
    xet_cli_store_t   s;

    memset(&s, 0, sizeof(s));

    s.args = args;
    s.json = xet_cli_json(args);
    s.sha256 = args->value[XET_CLI_OPT_SHA256] != NULL;
    s.jobs_end = &s.jobs;

    pg = NULL;
    rc = xet_cli_verify_options(&s, &threads);
    rc = rc ? rc : xet_cli_storage_identity(s.storage, s.identity);

    if (rc == XET_CLI_OK) {
        pg = xet_cli_pg_open(args, &rc);
    }

    if (pg == NULL) {
        xet_store_destroy(s.storage);
        return rc;
    }

    pthread_mutex_init(&s.mutex, NULL);
    pthread_cond_init(&s.filled, NULL);
    pthread_cond_init(&s.emptied, NULL);

    xet_cli_progress_begin(xet_cli_quiet(args), s.storage->name,
                           0);

    rc = xet_cli_store_session(&s, pg);

    if (rc == XET_CLI_OK) {
        rc = args->value[XET_CLI_OPT_ORPHANS]
             ? xet_cli_store_names(&s, pg)
             : xet_cli_verify_threads(&s, pg, threads);
    }

    rc = rc ? rc : xet_cli_store_orphans(&s, pg);

    xet_cli_progress_end();
    xet_cli_pg_close(pg);
    xet_store_destroy(s.storage);

    rc = rc ? rc : xet_cli_verify_print(&s);

    free(s.names);

    return rc;
}


static int
xet_cli_verify_options(xet_cli_store_t *s, uint64_t *threads)
{
    int       rc;
    uint64_t  age;

    s->storage = xet_cli_store_open(s->args, XET_CLI_STORAGE_WAITS, &rc);

    rc = rc ? rc : xet_cli_args_number(s->args, XET_CLI_OPT_PARALLEL, 1, 256,
                                       s->storage->parallel, threads);
    rc = rc ? rc : xet_cli_args_time(s->args, XET_CLI_OPT_OLDER, 0, &age);

    if (rc == XET_CLI_OK) {
        s->before = time(NULL) - (time_t) age;
    }

    return rc;
}


static int
xet_cli_verify_threads(xet_cli_store_t *s, xet_cli_pg_t *pg, uint64_t n)
{
    int             rc;
    uint64_t        i;
    pthread_t      *threads;
    xet_hash_t      hash;
    xet_cli_job_t  *job;

    /* BLAKE3 detects the processor on first use, which is not thread-safe */

    xet_hash_chunk(&xet_suite_default, "", 0, &hash);

    threads = calloc(n, sizeof(pthread_t));

    if (threads == NULL) {
        return xet_cli_no_memory();
    }

    rc = XET_CLI_OK;

    for (i = 0; i < n && rc == XET_CLI_OK; i++) {
        errno = pthread_create(&threads[i], NULL, xet_cli_verify_thread, s);

        if (errno) {
            rc = xet_cli_fail_errno("threads");
            break;
        }
    }

    rc = rc ? rc : xet_cli_verify_rows(s, pg);

    pthread_mutex_lock(&s->mutex);

    s->closed = 1;

    if (rc != XET_CLI_OK && s->rc == XET_CLI_OK) {
        s->rc = rc;
    }

    pthread_cond_broadcast(&s->filled);
    pthread_mutex_unlock(&s->mutex);

    while (i--) {
        pthread_join(threads[i], NULL);
    }

    free(threads);

    while ((job = s->jobs) != NULL) {
        s->jobs = job->next;
        xet_cli_verify_free(job);
    }

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : s->rc;
}


static void *
xet_cli_verify_thread(void *data)
{
    int                 rc;
    xet_cli_store_t    *s = data;
    xet_cli_checker_t   c;

    memset(&c, 0, sizeof(c));

    c.store = s;
    c.pg = xet_cli_pg_open(s->args, &rc);
    c.codec = xet_codec_create(&xet_suite_default);
    c.buffer = malloc(XET_CLI_STORE_BUFFER);
    c.raw = malloc(XET_CHUNK_MAX);

    if (c.pg) {
        rc = (c.codec && c.buffer && c.raw) ? xet_cli_store_session(s, c.pg)
                                            : xet_cli_no_memory();
    }

    if (c.pg && rc == XET_CLI_OK) {
        rc = xet_cli_verify_jobs(&c);
    }

    if (rc != XET_CLI_OK) {
        pthread_mutex_lock(&s->mutex);

        if (s->rc == XET_CLI_OK) {
            s->rc = rc;
        }

        pthread_cond_broadcast(&s->emptied);
        pthread_mutex_unlock(&s->mutex);
    }

    xet_codec_destroy(c.codec);
    xet_cli_pg_close(c.pg);
    free(c.buffer);
    free(c.raw);

    return NULL;
}


static int
xet_cli_verify_jobs(xet_cli_checker_t *c)
{
    int             rc;
    xet_cli_job_t  *job;

    rc = XET_CLI_OK;

    while (rc == XET_CLI_OK && (job = xet_cli_verify_take(c->store)) != NULL)
    {
        rc = job->file ? xet_cli_store_file(c, job)
                       : xet_cli_store_xorb(c, job);

        xet_cli_verify_free(job);

        if (xet_cli_interrupted) {
            rc = XET_CLI_INTERRUPTED;
        }
    }

    return rc;
}


static xet_cli_job_t *
xet_cli_verify_take(xet_cli_store_t *s)
{
    xet_cli_job_t  *job;

    pthread_mutex_lock(&s->mutex);

    while (s->jobs == NULL && !s->closed && s->rc == XET_CLI_OK) {
        pthread_cond_wait(&s->filled, &s->mutex);
    }

    job = (s->rc == XET_CLI_OK) ? s->jobs : NULL;

    if (job) {
        s->jobs = job->next;
        s->waiting--;

        if (s->jobs == NULL) {
            s->jobs_end = &s->jobs;
        }

        if (job->file) {
            s->files++;

        } else {
            s->xorbs++;
        }

        pthread_cond_signal(&s->emptied);
    }

    pthread_mutex_unlock(&s->mutex);

    return job;
}


/* Reads all rows in one snapshot, so that files and xorbs are consistent. */

static int
xet_cli_verify_rows(xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    int       rc;
    uint64_t  total;

    total = 0;

    rc = xet_cli_pg_exec(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ"
                             " READ ONLY");
    rc = rc ? rc : xet_cli_pg_number(pg, "SELECT coalesce(sum(stored_size), 0)"
                                     "::bigint FROM xet.xorbs", NULL, &total);

    if (rc == XET_CLI_OK) {
        xet_cli_progress_total(total);

        rc = xet_cli_pg_query(pg, "SELECT hash, raw_size, stored_size,"
                              " chunk_count, chunk_hashes, raw_ends,"
                              " stored_ends, copy_id, digest,"
                              " damaged_at IS NOT NULL"
                              " FROM xet.xorbs ORDER BY id",
                              NULL, xet_cli_verify_xorb_row, s);
    }

    rc = rc ? rc
            : xet_cli_pg_query(pg, "SELECT size, term_count, sha256, packed,"
                               " hash FROM xet.files WHERE hash IS NOT NULL"
                               " ORDER BY id", NULL, xet_cli_verify_file_row,
                               s);

    return rc ? rc : xet_cli_pg_exec(pg, "COMMIT");
}


static int
xet_cli_verify_xorb_row(void *ctx, const xet_cli_pg_row_t *row)
{
    int               rc;
    size_t            len;
    const uint8_t    *digest;
    xet_cli_job_t    *job;
    xet_cli_store_t  *s = ctx;

    job = calloc(1, sizeof(xet_cli_job_t));

    if (job == NULL) {
        return xet_cli_no_memory();
    }

    if (!xet_cli_pg_hash(row, 0, &job->hash)) {
        xet_cli_verify_free(job);
        return xet_cli_fail(XET_CLI_FAULT, "xorbs", "a row has no hash");
    }

    job->size = xet_cli_pg_u64(row, 1);
    job->stored_size = xet_cli_pg_u64(row, 2);
    job->chunk_count = (uint32_t) xet_cli_pg_u64(row, 3);
    job->copy_id = (uint32_t) xet_cli_pg_u64(row, 7);
    job->marked = xet_cli_pg_bool(row, 9) != 0;

    digest = xet_cli_pg_bytes(row, 8, &len);

    if (len == XET_CHECKSUM_LEN) {
        memcpy(job->digest.bytes, digest, XET_CHECKSUM_LEN);
        job->digested = 1;
    }

    rc = xet_cli_verify_lists(job, row);
    rc = rc ? rc : xet_cli_store_note(s, &job->hash, job->copy_id);

    if (rc != XET_CLI_OK) {
        xet_cli_verify_free(job);
        return rc;
    }

    return xet_cli_verify_post(s, job);
}


/* Copies the chunk list; if its length is wrong, job->lists stays NULL. */

static int
xet_cli_verify_lists(xet_cli_job_t *job, const xet_cli_pg_row_t *row)
{
    size_t          n, hashes, raw, stored;
    const uint8_t  *h, *r, *e;

    n = job->chunk_count;

    h = xet_cli_pg_bytes(row, 4, &hashes);
    r = xet_cli_pg_bytes(row, 5, &raw);
    e = xet_cli_pg_bytes(row, 6, &stored);

    if (hashes != n * XET_HASH_LEN || raw != n * 4 || stored != n * 4) {
        return XET_CLI_OK;
    }

    job->lists = malloc(hashes + raw + stored);

    if (job->lists == NULL) {
        return xet_cli_no_memory();
    }

    memcpy(job->lists, h, hashes);
    memcpy(job->lists + hashes, r, raw);
    memcpy(job->lists + hashes + raw, e, stored);

    return XET_CLI_OK;
}


static int
xet_cli_verify_file_row(void *ctx, const xet_cli_pg_row_t *row)
{
    int             rc;
    xet_cli_job_t  *job;

    job = calloc(1, sizeof(xet_cli_job_t));

    if (job == NULL) {
        return xet_cli_no_memory();
    }

    job->file = 1;

    rc = xet_cli_pg_hash(row, 4, &job->hash)
         ? xet_cli_store_terms(&job->terms, row)
         : xet_cli_fail(XET_CLI_FAULT, "files", "a row has no hash");

    if (rc != XET_CLI_OK) {
        xet_cli_verify_free(job);
        return rc;
    }

    return xet_cli_verify_post(ctx, job);
}


static int
xet_cli_verify_post(xet_cli_store_t *s, xet_cli_job_t *job)
{
    int  rc;

    pthread_mutex_lock(&s->mutex);

    while (s->waiting >= XET_CLI_VERIFY_QUEUE && s->rc == XET_CLI_OK) {
        pthread_cond_wait(&s->emptied, &s->mutex);
    }

    rc = s->rc;

    if (rc == XET_CLI_OK) {
        *s->jobs_end = job;
        s->jobs_end = &job->next;
        s->waiting++;

        pthread_cond_signal(&s->filled);

    } else {
        xet_cli_verify_free(job);
    }

    pthread_mutex_unlock(&s->mutex);

    return rc;
}


static void
xet_cli_verify_free(xet_cli_job_t *job)
{
    free(job->lists);
    free(job->terms.packed);
    free(job);
}


static int
xet_cli_verify_print(const xet_cli_store_t *s)
{
    int  rc;

    rc = xet_cli_print(s->json,
             xet_cli_out_number("xorbs", s->xorbs, " xorbs, "),
             xet_cli_out_number("files", s->files, " files, "),
             xet_cli_out_number("bytes", s->bytes, " bytes read: "),
             xet_cli_out_number("proven", s->proven, NULL),
             xet_cli_out_number("faults", s->faults, " faults, "),
             xet_cli_out_number("orphans", s->orphans, " orphans\n"));

    return s->faults ? xet_cli_worse(rc, XET_CLI_FAULT) : rc;
}
