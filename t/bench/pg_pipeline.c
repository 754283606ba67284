
/*
 * A minimal PostgreSQL client: executes one prepared statement in pipeline mode
 * over one session, with DEPTH executions in flight.  Each execution has its
 * own sync, as in the module.  A server in front of the same PostgreSQL can't
 * be faster.
 *
 *     pg_pipeline CONNINFO STATEMENT DEPTH SECONDS [PER_SYNC]
 *
 * Parameters are binary: $1 is a file hash, $2 is zero, $3 is the largest
 * bigint, and any further parameters are NULL.  $1 cycles through at most 10000
 * rows of xet.files that contain the terms of their file.  PER_SYNC statements
 * share a sync.
 *
 * Prints queries per second; latency in microseconds (median, 99th percentile
 * and maximum); CPU microseconds per query of the client and of the PostgreSQL
 * process (if /proc can be read); and the size of the last column in bytes.
 *
 *     cc -O2 -I$(pg_config --includedir) -o pg_pipeline pg_pipeline.c -lpq
 */


#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libpq-fe.h>


#define PIPE_PARAMS   8
#define PIPE_DEPTH    4096
#define PIPE_SAMPLES  (1 << 22)


typedef struct {
    PGconn        *conn;
    PGresult      *hashes;
    int            nhashes;
    int            nparams;
    int            per_sync;

    uint64_t       sent;
    uint64_t       done;
    int            bytes;              /* size of the last column */

    double         since[PIPE_DEPTH];  /* send times of those in flight */
    float         *samples;            /* latencies in seconds */
    uint64_t       nsamples;
} pipe_t;


static void
pipe_die(pipe_t *p, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, PQerrorMessage(p->conn));
    exit(1);
}


static double
pipe_clock(clockid_t id)
{
    struct timespec  ts;

    clock_gettime(id, &ts);

    return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}


/* Returns the CPU seconds of another process, or 0 if unknown. */

static double
pipe_server_cpu(int pid)
{
    char                 path[64];
    FILE                *f;
    unsigned long long   ns;

    (void) snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);

    f = fopen(path, "r");

    if (f == NULL) {
        return 0;
    }

    if (fscanf(f, "%llu", &ns) != 1) {
        ns = 0;
    }

    fclose(f);

    return (double) ns * 1e-9;
}


static void
pipe_connect(pipe_t *p, const char *conninfo, const char *statement)
{
    PGresult  *res;

    p->conn = PQconnectdb(conninfo);

    if (PQstatus(p->conn) != CONNECTION_OK) {
        pipe_die(p, "connecting");
    }

    p->hashes = PQexecParams(p->conn,
                             "SELECT hash FROM xet.files"
                             " WHERE packed IS NOT NULL LIMIT 10000",
                             0, NULL, NULL, NULL, NULL, 1);

    if (PQresultStatus(p->hashes) != PGRES_TUPLES_OK) {
        pipe_die(p, "hashes");
    }

    p->nhashes = PQntuples(p->hashes);

    res = PQprepare(p->conn, "s", statement, 0, NULL);

    if (PQresultStatus(res) != PGRES_COMMAND_OK) {
        pipe_die(p, "preparing");
    }

    PQclear(res);

    res = PQdescribePrepared(p->conn, "s");
    p->nparams = PQnparams(res);
    PQclear(res);

    if (p->nhashes == 0 || p->nparams < 1 || p->nparams > PIPE_PARAMS) {
        fprintf(stderr, "no files, or a strange statement\n");
        exit(1);
    }

    if (PQsetnonblocking(p->conn, 1) != 0
        || PQenterPipelineMode(p->conn) != 1)
    {
        pipe_die(p, "pipeline");
    }
}


static void
pipe_send(pipe_t *p)
{
    int          i, lengths[PIPE_PARAMS], formats[PIPE_PARAMS];
    const char  *values[PIPE_PARAMS];

    static const char  first[8];
    static const char  last[8] = { 127, -1, -1, -1, -1, -1, -1, -1 };

    for (i = 0; i < PIPE_PARAMS; i++) {
        values[i] = NULL;
        lengths[i] = 0;
        formats[i] = 1;
    }

    values[0] = PQgetvalue(p->hashes, (int) (p->sent % p->nhashes), 0);
    lengths[0] = 32;
    values[1] = first;
    lengths[1] = 8;
    values[2] = last;
    lengths[2] = 8;

    if (PQsendQueryPrepared(p->conn, "s", p->nparams, values, lengths,
                            formats, 1)
        != 1)
    {
        pipe_die(p, "sending");
    }

    p->since[p->sent % PIPE_DEPTH] = pipe_clock(CLOCK_MONOTONIC);
    p->sent++;

    if (p->sent % p->per_sync == 0 && PQpipelineSync(p->conn) != 1) {
        pipe_die(p, "sync");
    }
}


/* Consumes the results received so far. */

static void
pipe_take(pipe_t *p)
{
    float            t;
    PGresult        *res;
    ExecStatusType   status;

    if (PQconsumeInput(p->conn) != 1) {
        pipe_die(p, "receiving");
    }

    while (p->done < p->sent && !PQisBusy(p->conn)) {
        res = PQgetResult(p->conn);

        if (res == NULL) {
            continue;
        }

        status = PQresultStatus(res);

        if (status == PGRES_PIPELINE_SYNC) {
            PQclear(res);
            continue;
        }

        if (status != PGRES_TUPLES_OK || PQntuples(res) == 0) {
            pipe_die(p, "no row");
        }

        p->bytes = PQgetlength(res, 0, PQnfields(res) - 1);
        PQclear(res);

        t = (float) (pipe_clock(CLOCK_MONOTONIC)
                     - p->since[p->done % PIPE_DEPTH]);

        if (p->nsamples < PIPE_SAMPLES) {
            p->samples[p->nsamples++] = t;
        }

        p->done++;
    }
}


static void
pipe_run(pipe_t *p, int depth, double until)
{
    int            rc;
    struct pollfd  fd;

    fd.fd = PQsocket(p->conn);

    while (pipe_clock(CLOCK_MONOTONIC) < until || p->done < p->sent) {

        if (pipe_clock(CLOCK_MONOTONIC) < until
            || p->sent % p->per_sync != 0)
        {
            while (p->sent - p->done < (uint64_t) depth
                   || p->sent % p->per_sync != 0)
            {
                pipe_send(p);
            }
        }

        rc = PQflush(p->conn);

        if (rc == -1) {
            pipe_die(p, "flushing");
        }

        fd.events = (short) (rc ? POLLIN|POLLOUT : POLLIN);

        if (poll(&fd, 1, 10000) != 1) {
            pipe_die(p, "no answer");
        }

        pipe_take(p);
    }
}


static int
pipe_compare(const void *a, const void *b)
{
    float  x, y;

    x = *(const float *) a;
    y = *(const float *) b;

    return x < y ? -1 : x > y;
}


int
main(int argc, char *const *argv)
{
    int      depth;
    double   seconds, start, own, server, elapsed;
    pipe_t  *p;

    p = calloc(1, sizeof(pipe_t));

    if (p == NULL || argc < 5) {
        fprintf(stderr, "usage: %s CONNINFO STATEMENT DEPTH SECONDS "
                "[PER_SYNC]\n", argv[0]);
        return 2;
    }

    depth = atoi(argv[3]);
    seconds = atof(argv[4]);
    p->per_sync = argc > 5 ? atoi(argv[5]) : 1;
    p->samples = malloc(PIPE_SAMPLES * sizeof(float));

    if (depth < 1 || p->per_sync < 1 || depth + p->per_sync > PIPE_DEPTH
        || p->samples == NULL)
    {
        fprintf(stderr, "a depth of %d\n", depth);
        return 2;
    }

    pipe_connect(p, argv[1], argv[2]);

    /* warms up: PostgreSQL chooses its plan, and caches are filled */

    pipe_run(p, depth, pipe_clock(CLOCK_MONOTONIC) + 0.2);

    p->nsamples = 0;
    p->sent = 0;
    p->done = 0;

    server = pipe_server_cpu(PQbackendPID(p->conn));
    own = pipe_clock(CLOCK_PROCESS_CPUTIME_ID);
    start = pipe_clock(CLOCK_MONOTONIC);

    pipe_run(p, depth, start + seconds);

    elapsed = pipe_clock(CLOCK_MONOTONIC) - start;
    own = pipe_clock(CLOCK_PROCESS_CPUTIME_ID) - own;
    server = pipe_server_cpu(PQbackendPID(p->conn)) - server;

    qsort(p->samples, p->nsamples, sizeof(float), pipe_compare);

    printf("%.0f queries/s, p50 %.1f, p99 %.1f, max %.1f us, "
           "client %.2f, server %.2f us a query, %d bytes\n",
           (double) p->done / elapsed,
           1e6 * p->samples[p->nsamples / 2],
           1e6 * p->samples[p->nsamples * 99 / 100],
           1e6 * p->samples[p->nsamples - 1],
           1e6 * own / (double) p->done, 1e6 * server / (double) p->done,
           p->bytes);

    PQclear(p->hashes);
    PQfinish(p->conn);
    free(p->samples);
    free(p);

    return 0;
}
