
/*
 * xet_zt: reads zTensor files on the local disk with the core library.
 *
 *     list FILE [AFTER [LIMIT]]
 *     object FILE NAME
 *     get FILE NAME [ROLE]         decoded bytes
 *     stored FILE NAME [ROLE]      stored bytes
 *     verify FILE [NAME]
 *
 * NAME may be "#N", the N-th object, counted from 0.  Options precede the
 * command: -s is strict, -p P lists names that begin with P, -b N reads N bytes
 * at a time (65536), -w N allows windows of 2^N bytes (23).  The exit status is
 * 1 for a file that can't be read or fails verification; the reason is printed
 * as JSON.
 */


#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_ztensor.h"


typedef struct {
    int                      fd;
    const char              *path;
    size_t                   step;         /* bytes read at a time */
    uint8_t                 *buf;

    const char              *prefix;
    xet_zt_limits_t          limits;
    xet_zt_decode_limits_t   decode;

    xet_zt_t                *zt;
    uint64_t                 size;
} zt_file_t;


typedef struct {
    zt_file_t               *file;
    int                      argc;
    char                   **argv;         /* arguments after NAME */
    int                      stored;
    int                      found;
    int                      failed;

    xet_zt_audit_t           audit;
    xet_zt_verifier_t       *verifier;
    xet_json_t               json;
    xet_buf_t                out;
} zt_job_t;


static void
zt_fatal(const char *what, const char *why)
{
    fprintf(stderr, "xet_zt: %s: %s\n", what, why);
    exit(2);
}


static void *
zt_alloc(void *data, size_t size)
{
    return malloc(size);
}


/* Nothing is freed, because the tool exits soon. */

static void
zt_json_begin(zt_job_t *job)
{
    xet_buf_init(&job->out, zt_alloc, NULL, 0);
    xet_json_init(&job->json, &job->out);
}


static void
zt_json_end(zt_job_t *job)
{
    xet_buf_node_t  *node;

    if (xet_buf_status(&job->out) != XET_OK) {
        zt_fatal("json", "out of memory");
    }

    for (node = job->out.first; node; node = node->next) {
        fwrite(node->start, 1, (size_t) (node->pos - node->start), stdout);
    }

    putchar('\n');
}


static int
zt_complain(zt_job_t *job, xet_status_t rc)
{
    zt_json_begin(job);
    xet_zt_error_json(&job->json, job->file->zt, rc);
    zt_json_end(job);

    return 1;
}


/*
 * Reads up to one step of bytes from the range; a local file returns as many
 * bytes as requested.
 */

static size_t
zt_read(zt_file_t *f, const xet_range_t *range)
{
    size_t   n;
    ssize_t  got;

    n = f->step;

    if (n > range->end - range->start) {
        n = (size_t) (range->end - range->start);
    }

    got = pread(f->fd, f->buf, n, (off_t) range->start);

    if (got <= 0) {
        zt_fatal(f->path, got ? strerror(errno) : "shorter than it was");
    }

    return (size_t) got;
}


static xet_status_t
zt_check(zt_file_t *f)
{
    size_t        n;
    xet_range_t   range;
    xet_status_t  rc;

    f->zt = xet_zt_create(f->size, &f->limits);
    if (f->zt == NULL) {
        zt_fatal(f->path, "out of memory");
    }

    for ( ;; ) {
        rc = xet_zt_need(f->zt, &range);

        if (rc != XET_AGAIN) {
            return rc;
        }

        n = zt_read(f, &range);
        (void) xet_zt_feed(f->zt, f->buf, n);
    }
}


/* Handlers read the file through f->buf, so the walk uses its own buffer. */

static xet_status_t
zt_walk(zt_file_t *f, const xet_zt_select_t *select, xet_zt_object_pt handler,
    void *ctx)
{
    size_t          n;
    uint8_t        *window, *saved;
    xet_range_t     range;
    xet_status_t    rc;
    xet_zt_walk_t  *w;

    w = xet_zt_walk_create(f->zt, select, handler, ctx);
    window = malloc(f->step);

    if (w == NULL || window == NULL) {
        zt_fatal(f->path, "out of memory");
    }

    while ((rc = xet_zt_walk_need(w, &range)) == XET_AGAIN) {
        saved = f->buf;
        f->buf = window;
        n = zt_read(f, &range);
        f->buf = saved;

        (void) xet_zt_walk_feed(w, window, n);
    }

    xet_zt_walk_destroy(w);
    free(window);

    return rc;
}


static void
zt_select(xet_zt_select_t *select, const char *name)
{
    memset(select, 0, sizeof(xet_zt_select_t));

    if (name && name[0] == '#') {
        select->first = strtoull(name + 1, NULL, 10);

    } else if (name) {
        select->name.data = (const uint8_t *) name;
        select->name.len = strlen(name);
    }
}


static int
zt_list(zt_job_t *job)
{
    xet_status_t     rc;
    xet_zt_page_t    page;
    xet_zt_select_t  select;

    zt_select(&select, NULL);

    select.attributes = 1;

    if (job->argc > 0 && strcmp(job->argv[0], "-") != 0) {
        select.first = strtoull(job->argv[0], NULL, 10) + 1;
    }

    if (job->file->prefix) {
        select.prefix.data = (const uint8_t *) job->file->prefix;
        select.prefix.len = strlen(job->file->prefix);
    }

    zt_json_begin(job);

    xet_zt_page_begin(&page, &job->json, job->file->zt,
                      (const uint8_t *) job->file->path,
                      strlen(job->file->path),
                      job->argc > 1 ? strtoull(job->argv[1], NULL, 10) : 1000,
                      (uint64_t) 8 << 20);

    rc = zt_walk(job->file, &select, xet_zt_page_object, &page);
    if (rc != XET_OK) {
        return zt_complain(job, rc);
    }

    xet_zt_page_end(&page);
    zt_json_end(job);

    return 0;
}


static xet_status_t
zt_object_handler(void *ctx, xet_zt_object_t *o)
{
    zt_job_t  *job;

    job = ctx;
    job->found = 1;

    zt_json_begin(job);
    xet_zt_object_json(&job->json, o);
    zt_json_end(job);

    return XET_DONE;
}


static int
zt_object(zt_job_t *job)
{
    xet_status_t     rc;
    xet_zt_select_t  select;

    zt_select(&select, job->argv[0]);
    select.attributes = 1;

    rc = zt_walk(job->file, &select, zt_object_handler, job);

    if (rc == XET_OK && !job->found) {
        rc = XET_ZT_NO_OBJECT;
    }

    return (rc == XET_OK) ? 0 : zt_complain(job, rc);
}


static xet_status_t
zt_copy(zt_file_t *f, xet_range_t *range)
{
    size_t  n;

    while (range->start < range->end) {
        n = zt_read(f, range);
        range->start += n;
        fwrite(f->buf, 1, n, stdout);
    }

    return XET_OK;
}


/*
 * Decodes in one call if the decoded length is known and allowed, otherwise in
 * steps.
 */

static xet_status_t
zt_decode(zt_file_t *f, const xet_zt_component_t *c, xet_range_t *range)
{
    size_t             n, len, got;
    uint8_t           *in, *out;
    xet_status_t       rc;
    const uint8_t     *p;
    xet_zt_decoder_t  *d;

    if (c->has_decoded && c->decoded <= f->decode.output) {
        in = malloc((size_t) c->length + 1);
        out = malloc((size_t) c->decoded + 1);

        if (in == NULL || out == NULL) {
            return XET_NOMEM;
        }

        for (len = 0; range->start < range->end; len += n) {
            n = zt_read(f, range);
            memcpy(in + len, f->buf, n);
            range->start += n;
        }

        rc = xet_zt_decode(in, len, out, (size_t) c->decoded);

        if (rc == XET_OK) {
            fwrite(out, 1, (size_t) c->decoded, stdout);
        }

        free(in);
        free(out);

        return rc;
    }

    d = xet_zt_decoder_create(&f->decode);
    out = malloc(65536);

    if (d == NULL || out == NULL) {
        return XET_NOMEM;
    }

    rc = xet_zt_decoder_start(d, (int) c->has_decoded, c->decoded);

    while (rc == XET_OK && range->start < range->end) {
        len = zt_read(f, range);
        range->start += len;
        p = f->buf;

        do {
            got = 65536;
            rc = xet_zt_decoder_feed(d, &p, &len, out, &got);
            fwrite(out, 1, got, stdout);

        } while (rc == XET_AGAIN && (len || got == 65536));

        if (rc == XET_AGAIN) {
            rc = XET_OK;
        }
    }

    if (rc == XET_OK) {
        rc = xet_zt_decoder_finish(d);
    }

    xet_zt_decoder_destroy(d);
    free(out);

    return rc;
}


static xet_status_t
zt_get_handler(void *ctx, xet_zt_object_t *o)
{
    zt_job_t                  *job;
    const char                *role;
    xet_range_t                range;
    xet_status_t               rc;
    xet_zt_region_t            region;
    const xet_zt_component_t  *c;

    job = ctx;
    job->found = 1;

    if (job->argc > 1) {
        role = job->argv[1];
        c = xet_zt_object_component(o, (const uint8_t *) role, strlen(role));

        if (c == NULL) {
            return XET_ZT_NO_COMPONENT;
        }

    } else {
        c = xet_zt_object_default(o);

        if (c == NULL) {
            return XET_ZT_ROLE;
        }
    }

    xet_zt_region(job->file->zt, &region);

    rc = xet_zt_component_range(c, &region, &range);
    if (rc != XET_OK) {
        return rc;
    }

    if (job->stored || xet_zt_component_seekable(c)) {
        rc = zt_copy(job->file, &range);

    } else if (c->coding == XET_ZT_CODING_UNKNOWN) {
        rc = XET_ZT_DECODE;

    } else {
        rc = zt_decode(job->file, c, &range);
    }

    return (rc == XET_OK) ? XET_DONE : rc;
}


static int
zt_get(zt_job_t *job)
{
    xet_status_t     rc;
    xet_zt_select_t  select;

    zt_select(&select, job->argv[0]);

    rc = zt_walk(job->file, &select, zt_get_handler, job);

    if (rc == XET_OK && !job->found) {
        rc = XET_ZT_NO_OBJECT;
    }

    return (rc == XET_OK) ? 0 : zt_complain(job, rc);
}


static int
zt_stored(zt_job_t *job)
{
    job->stored = 1;

    return zt_get(job);
}


static xet_status_t
zt_verify_handler(void *ctx, xet_zt_object_t *o)
{
    size_t            n;
    unsigned          i;
    zt_job_t         *job;
    zt_file_t        *f;
    xet_range_t       range;
    xet_status_t      rc;
    xet_zt_region_t   region;
    xet_zt_report_t   report;

    job = ctx;
    job->found = 1;
    f = job->file;

    xet_zt_region(f->zt, &region);
    xet_zt_audit_object(&job->audit, o);

    for (i = 0; i < o->n; i++) {
        rc = xet_zt_verifier_start(job->verifier, &region, o,
                                   &o->components[i], &range);

        while (rc == XET_AGAIN && range.start < range.end) {
            n = zt_read(f, &range);
            range.start += n;

            rc = xet_zt_verifier_feed(job->verifier, f->buf, n);
            rc = (rc == XET_OK) ? XET_AGAIN : rc;
        }

        if (rc != XET_AGAIN && rc != XET_DONE) {
            return rc;
        }

        rc = xet_zt_verifier_finish(job->verifier, &report);
        if (rc != XET_OK) {
            return rc;
        }

        xet_zt_audit_component(&job->audit, o, &o->components[i], &report);
    }

    xet_zt_audit_object_end(&job->audit, o);

    return (job->argc && job->argv[0][0] == '#') ? XET_DONE : XET_OK;
}


static int
zt_verify(zt_job_t *job)
{
    xet_status_t     rc;
    xet_zt_select_t  select;

    zt_select(&select, job->argc ? job->argv[0] : NULL);

    job->verifier = xet_zt_verifier_create(&job->file->decode);
    if (job->verifier == NULL) {
        return zt_complain(job, XET_NOMEM);
    }

    zt_json_begin(job);

    xet_zt_audit_begin(&job->audit, &job->json, job->file->zt,
                       (const uint8_t *) job->file->path,
                       strlen(job->file->path));

    rc = zt_walk(job->file, &select, zt_verify_handler, job);

    xet_zt_verifier_destroy(job->verifier);

    if (rc == XET_OK && job->argc && !job->found) {
        rc = XET_ZT_NO_OBJECT;
    }

    if (rc != XET_OK) {
        return zt_complain(job, rc);
    }

    xet_zt_audit_end(&job->audit);
    zt_json_end(job);

    return (int) job->audit.failed;
}


typedef struct {
    const char   *name;
    int           args;                    /* minimum of arguments after FILE */
    int         (*run)(zt_job_t *job);
} zt_command_t;


static const zt_command_t  zt_commands[] = {
    { "list", 0, zt_list },
    { "object", 1, zt_object },
    { "get", 1, zt_get },
    { "stored", 1, zt_stored },
    { "verify", 0, zt_verify },
    { NULL, 0, NULL }
};


int
main(int argc, char **argv)
{
    int                  c, rc;
    zt_job_t             job;
    zt_file_t            f;
    struct stat          sb;
    xet_status_t         status;
    const zt_command_t  *command;

    memset(&f, 0, sizeof(zt_file_t));
    memset(&job, 0, sizeof(zt_job_t));

    f.step = 65536;
    xet_zt_limits_init(&f.limits);
    xet_zt_decode_limits_init(&f.decode);

    while ((c = getopt(argc, argv, "+sp:b:w:")) != -1) {

        switch (c) {

        case 's':
            f.limits.strict = 1;
            break;

        case 'p':
            f.prefix = optarg;
            break;

        case 'b':
            f.step = strtoul(optarg, NULL, 10);
            break;

        case 'w':
            f.decode.window_log = (unsigned) strtoul(optarg, NULL, 10);
            break;

        default:
            return 2;
        }
    }

    argc -= optind;
    argv += optind;

    for (command = zt_commands; command->name; command++) {
        if (argc > 1 && strcmp(command->name, argv[0]) == 0
            && argc - 2 >= command->args)
        {
            break;
        }
    }

    if (command->name == NULL || f.step == 0) {
        zt_fatal("usage", "list|object|get|stored|verify FILE ...");
    }

    f.path = argv[1];
    f.fd = open(f.path, O_RDONLY);
    f.buf = malloc(f.step);

    if (f.fd == -1 || fstat(f.fd, &sb) == -1 || f.buf == NULL) {
        zt_fatal(f.path, strerror(errno));
    }

    f.size = (uint64_t) sb.st_size;

    job.file = &f;
    job.argc = argc - 2;
    job.argv = argv + 2;

    status = zt_check(&f);

    rc = (status == XET_OK) ? command->run(&job) : zt_complain(&job, status);

    xet_zt_destroy(f.zt);
    free(f.buf);

    return rc;
}
