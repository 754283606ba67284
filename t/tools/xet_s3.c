
/*
 * Runs the S3 client from the command line, for tests:
 *
 *     xet_s3 OPTION=VALUE ... -- VERB ARGUMENT ...
 *     xet_s3 OPTION=VALUE ... --
 *
 * The second form reads lines, each with a verb and its arguments, from the
 * standard input, and executes all of them with one client.  Each verb prints
 * a line with its result and, after a failure, the HTTP status and an error
 * text.
 *
 *     get NAME START LENGTH          the SHA-256 of the bytes
 *     cat NAME                       the bytes of a small object, on a line
 *     head NAME                      size, modified, now
 *     put NAME TEXT [new]            a small object
 *     rm NAME
 *     rm-all PREFIX N                PREFIX000 ... concurrently; a result each
 *     head-all PREFIX N              likewise
 *     copy FROM TO [new]
 *     ls PREFIX [MAX [AFTER]]        names and sizes; "-" for an empty prefix
 *     upload NAME FILE [new]         as if the file grew by 1 MiB at a time
 *     drop NAME FILE                 the same, but the upload is not completed
 *     rename NAME NEW FILE           the same, but completed as NEW
 *     sweep PREFIX AGE
 *     presign METHOD NAME EXPIRES [HEADER VALUE]
 *     sign METHOD NAME
 *     reload
 *     stop                           the client accepts no more requests
 *     sleep MS
 *     many N VERB ...                the verb in N threads; the thread number
 *                                    replaces {} at the end of an argument
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>

#include <openssl/evp.h>

#include "xet_s3.h"


#define TOOL_ARGS   8
#define TOOL_STEP   (1024 * 1024)
#define TOOL_LINE   8192
#define TOOL_SMALL  4096
#define TOOL_MANY   64
#define TOOL_NAME   128


typedef struct {
    xet_s3_t        *s3;
    int              argc;
    char            *argv[TOOL_ARGS];
    char            *own[TOOL_ARGS];   /* elements of argv to free */
    xet_s3_rc_t      rc;
} tool_job_t;


static const char  *tool_results[] = {
    "OK", "NOT_FOUND", "SHORT", "EXISTS", "AWAY", "DENIED", "NO_BUCKET",
    "FULL", "BAD", "LOCAL", "CONF", "ENDED"
};

static pthread_mutex_t  tool_lock = PTHREAD_MUTEX_INITIALIZER;


static const char *
tool_arg(const tool_job_t *job, int i)
{
    return (i < job->argc) ? job->argv[i] : "";
}


static int
tool_new(const tool_job_t *job, int i)
{
    return strcmp(tool_arg(job, i), "new") == 0;
}


static xet_s3_rc_t
tool_get(tool_job_t *job, xet_s3_error_t *error)
{
    size_t          i, len;
    uint64_t        start;
    xet_s3_rc_t     rc;
    unsigned char  *buf, hash[32];

    start = strtoull(tool_arg(job, 2), NULL, 10);
    len = strtoull(tool_arg(job, 3), NULL, 10);

    buf = malloc(len + 1);
    if (buf == NULL) {
        return XET_S3_LOCAL;
    }

    rc = xet_s3_get(job->s3, tool_arg(job, 1), start, len, buf, error);

    if (rc == XET_S3_OK
        && EVP_Digest(buf, len, hash, NULL, EVP_sha256(), NULL))
    {
        for (i = 0; i < sizeof(hash); i++) {
            printf("%02x", hash[i]);
        }

        printf("\n");
    }

    free(buf);

    return rc;
}


static xet_s3_rc_t
tool_cat(tool_job_t *job, xet_s3_error_t *error)
{
    size_t         len;
    xet_s3_rc_t    rc;
    unsigned char  buf[TOOL_SMALL];

    len = sizeof(buf);
    rc = xet_s3_get_small(job->s3, tool_arg(job, 1), buf, &len, error);

    if (rc == XET_S3_OK) {
        printf("%.*s\n", (int) len, (char *) buf);
    }

    return rc;
}


static xet_s3_rc_t
tool_head(tool_job_t *job, xet_s3_error_t *error)
{
    xet_s3_rc_t      rc;
    xet_s3_object_t  object;

    rc = xet_s3_head(job->s3, tool_arg(job, 1), &object, error);

    if (rc == XET_S3_OK) {
        printf("%llu %lld %lld\n", (unsigned long long) object.size,
               (long long) object.modified, (long long) object.now);
    }

    return rc;
}


static xet_s3_rc_t
tool_put(tool_job_t *job, xet_s3_error_t *error)
{
    const char  *text;

    text = tool_arg(job, 2);

    return xet_s3_put_small(job->s3, tool_arg(job, 1),
                            (const unsigned char *) text, strlen(text),
                            tool_new(job, 3), error);
}


/* Deletes or checks N objects, numbered with three digits from 000. */

static xet_s3_rc_t
tool_all(tool_job_t *job, int heads, xet_s3_error_t *error)
{
    char           (*names)[TOOL_NAME];
    size_t          i, n;
    xet_s3_rc_t     rc;
    xet_s3_item_t  *items;

    n = strtoull(tool_arg(job, 2), NULL, 10);

    names = calloc(n + 1, sizeof(*names));
    items = calloc(n + 1, sizeof(xet_s3_item_t));

    if (names == NULL || items == NULL) {
        free(names);
        free(items);
        return XET_S3_LOCAL;
    }

    for (i = 0; i < n; i++) {
        snprintf(names[i], sizeof(names[i]), "%s%03zu", tool_arg(job, 1), i);
        items[i].name = names[i];
    }

    rc = heads ? xet_s3_head_all(job->s3, items, n, error)
               : xet_s3_delete_all(job->s3, items, n, error);

    for (i = 0; i < n; i++) {
        printf("%s%s", i ? " " : "all ", tool_results[items[i].rc]);

        if (heads && items[i].rc == XET_S3_OK) {
            printf(":%llu", (unsigned long long) items[i].size);
        }
    }

    printf("\n");

    free(names);
    free(items);

    return rc;
}


static xet_s3_rc_t
tool_ls(tool_job_t *job, xet_s3_error_t *error)
{
    size_t          i, n, max;
    int64_t         now;
    xet_s3_rc_t     rc;
    const char     *prefix;
    xet_s3_name_t  *names;

    prefix = tool_arg(job, 1);
    prefix = strcmp(prefix, "-") == 0 ? "" : prefix;

    max = strtoull(tool_arg(job, 2), NULL, 10);
    max = max ? max : 1000;

    names = calloc(max, sizeof(xet_s3_name_t));
    if (names == NULL) {
        return XET_S3_LOCAL;
    }

    rc = xet_s3_list(job->s3, prefix, tool_arg(job, 3), names, max, &n, &now,
                     error);

    for (i = 0; rc == XET_S3_OK && i < n; i++) {
        printf("%s %llu %lld\n", names[i].name,
               (unsigned long long) names[i].size,
               (long long) (now - names[i].modified));
    }

    free(names);

    return rc;
}


/*
 * Uploads a file as if its data became available TOOL_STEP bytes at a time.
 * end is the final name of the object; if NULL, the upload is not finished.
 */

static xet_s3_rc_t
tool_upload(tool_job_t *job, const char *name, const char *end,
    const char *file, int only_new, xet_s3_error_t *error)
{
    int               fd;
    uint64_t          size;
    struct stat       st;
    xet_s3_rc_t       rc;
    xet_s3_upload_t  *upload;

    fd = open(file, O_RDONLY);

    if (fd == -1 || fstat(fd, &st) == -1) {
        snprintf(error->text, sizeof(error->text), "%s: %s", file,
                 strerror(errno));
        return XET_S3_LOCAL;
    }

    upload = xet_s3_upload_create(job->s3, name);

    if (upload == NULL) {
        close(fd);
        return XET_S3_LOCAL;
    }

    rc = XET_S3_OK;

    for (size = TOOL_STEP; rc == XET_S3_OK && size < (uint64_t) st.st_size;
         size += TOOL_STEP)
    {
        rc = xet_s3_upload_ready(upload, fd, size, error);
    }

    printf("begun %d\n", xet_s3_upload_begun(upload));

    if (rc == XET_S3_OK && end) {
        rc = xet_s3_upload_finish(upload, end, fd, (uint64_t) st.st_size,
                                  only_new, error);
    }

    xet_s3_upload_destroy(upload);
    close(fd);

    return rc;
}


static xet_s3_rc_t
tool_sweep(tool_job_t *job, xet_s3_error_t *error)
{
    size_t       n;
    xet_s3_rc_t  rc;
    const char  *prefix;

    prefix = tool_arg(job, 1);

    rc = xet_s3_sweep(job->s3, strcmp(prefix, "-") == 0 ? "" : prefix,
                      strtoull(tool_arg(job, 2), NULL, 10), &n, error);

    printf("%zu\n", n);

    return rc;
}


static xet_s3_rc_t
tool_presign(tool_job_t *job, xet_s3_error_t *error)
{
    char             url[XET_S3_URL_MAX];
    xet_s3_rc_t      rc;
    xet_s3_grant_t   grant;
    xet_s3_header_t  header;

    header.name = tool_arg(job, 4);
    header.value = tool_arg(job, 5);

    grant.method = tool_arg(job, 1);
    grant.name = tool_arg(job, 2);
    grant.headers = &header;
    grant.nheaders = (job->argc > 5);
    grant.made = (int64_t) time(NULL);
    grant.seconds = (uint32_t) strtoul(tool_arg(job, 3), NULL, 10);

    rc = xet_s3_presign(job->s3, &grant, url);

    if (rc == XET_S3_OK) {
        printf("%s\n", url);
    }

    return rc;
}


static xet_s3_rc_t
tool_sign(tool_job_t *job, xet_s3_error_t *error)
{
    xet_s3_rc_t      rc;
    xet_s3_signed_t  out;

    rc = xet_s3_sign(job->s3, tool_arg(job, 1), tool_arg(job, 2),
                     (int64_t) time(NULL), &out);

    if (rc == XET_S3_OK) {
        printf("%s\n%s\n%s\n%s\n%s\n", out.host, out.path, out.authorization,
               out.date, out.token);
    }

    return rc;
}


static xet_s3_rc_t
tool_verb(tool_job_t *job, xet_s3_error_t *error)
{
    const char  *verb;

    verb = tool_arg(job, 0);

    if (strcmp(verb, "get") == 0) {
        return tool_get(job, error);
    }

    if (strcmp(verb, "cat") == 0) {
        return tool_cat(job, error);
    }

    if (strcmp(verb, "head") == 0) {
        return tool_head(job, error);
    }

    if (strcmp(verb, "put") == 0) {
        return tool_put(job, error);
    }

    if (strcmp(verb, "rm") == 0) {
        return xet_s3_delete(job->s3, tool_arg(job, 1), error);
    }

    if (strcmp(verb, "copy") == 0) {
        return xet_s3_copy(job->s3, tool_arg(job, 1), tool_arg(job, 2),
                           tool_new(job, 3), error);
    }

    if (strcmp(verb, "rm-all") == 0 || strcmp(verb, "head-all") == 0) {
        return tool_all(job, *verb == 'h', error);
    }

    if (strcmp(verb, "ls") == 0) {
        return tool_ls(job, error);
    }

    if (strcmp(verb, "upload") == 0) {
        return tool_upload(job, tool_arg(job, 1), tool_arg(job, 1),
                           tool_arg(job, 2), tool_new(job, 3), error);
    }

    if (strcmp(verb, "drop") == 0) {
        return tool_upload(job, tool_arg(job, 1), NULL, tool_arg(job, 2), 0,
                           error);
    }

    if (strcmp(verb, "rename") == 0) {
        return tool_upload(job, tool_arg(job, 1), tool_arg(job, 2),
                           tool_arg(job, 3), 0, error);
    }

    if (strcmp(verb, "sweep") == 0) {
        return tool_sweep(job, error);
    }

    if (strcmp(verb, "presign") == 0) {
        return tool_presign(job, error);
    }

    if (strcmp(verb, "sign") == 0) {
        return tool_sign(job, error);
    }

    if (strcmp(verb, "reload") == 0) {
        return xet_s3_reload(job->s3, error);
    }

    if (strcmp(verb, "stop") == 0) {
        xet_s3_stop(job->s3);
        return XET_S3_OK;
    }

    if (strcmp(verb, "sleep") == 0) {
        usleep((useconds_t) (1000 * strtoul(tool_arg(job, 1), NULL, 10)));
        return XET_S3_OK;
    }

    snprintf(error->text, sizeof(error->text), "no verb \"%s\"", verb);

    return XET_S3_LOCAL;
}


static xet_s3_rc_t
tool_run(tool_job_t *job)
{
    xet_s3_error_t  error;

    memset(&error, 0, sizeof(error));

    job->rc = tool_verb(job, &error);

    pthread_mutex_lock(&tool_lock);

    if (job->rc == XET_S3_OK) {
        printf("OK\n");

    } else {
        printf("%s %d %s\n", tool_results[job->rc], error.status, error.text);
    }

    fflush(stdout);
    pthread_mutex_unlock(&tool_lock);

    return job->rc;
}


static void *
tool_thread(void *data)
{
    (void) tool_run(data);

    return NULL;
}


/* Replaces {} at the end of each argument with the number. */

static void
tool_number(tool_job_t *job, unsigned number)
{
    int     i;
    char   *arg;
    size_t  len;

    for (i = 0; i < job->argc; i++) {
        len = strlen(job->argv[i]);

        if (len < 2 || strcmp(job->argv[i] + len - 2, "{}") != 0) {
            continue;
        }

        arg = malloc(len + 16);

        if (arg) {
            snprintf(arg, len + 16, "%.*s%u", (int) len - 2, job->argv[i],
                     number);
            job->argv[i] = arg;
            job->own[i] = arg;
        }
    }
}


static xet_s3_rc_t
tool_many(tool_job_t *job)
{
    unsigned     i, k, n;
    pthread_t    threads[TOOL_MANY];
    tool_job_t   jobs[TOOL_MANY];
    xet_s3_rc_t  rc;

    n = (unsigned) strtoul(tool_arg(job, 1), NULL, 10);
    n = (n < TOOL_MANY) ? n : TOOL_MANY;

    for (i = 0; i < n; i++) {
        jobs[i] = *job;
        jobs[i].argc = job->argc - 2;
        memmove(jobs[i].argv, jobs[i].argv + 2,
                (size_t) jobs[i].argc * sizeof(char *));
        tool_number(&jobs[i], i);

        if (pthread_create(&threads[i], NULL, tool_thread, &jobs[i]) != 0) {
            exit(2);
        }
    }

    rc = XET_S3_OK;

    for (i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        rc = rc ? rc : jobs[i].rc;

        for (k = 0; k < TOOL_ARGS; k++) {
            free(jobs[i].own[k]);
        }
    }

    return rc;
}


static xet_s3_rc_t
tool_job(xet_s3_t *s3, int argc, char **argv)
{
    int         i;
    tool_job_t  job;

    memset(&job, 0, sizeof(job));

    job.s3 = s3;
    job.argc = (argc < TOOL_ARGS) ? argc : TOOL_ARGS;

    for (i = 0; i < job.argc; i++) {
        job.argv[i] = argv[i];
    }

    return strcmp(tool_arg(&job, 0), "many") == 0 ? tool_many(&job)
                                                  : tool_run(&job);
}


static xet_s3_rc_t
tool_lines(xet_s3_t *s3)
{
    int          argc;
    char         line[TOOL_LINE], *argv[TOOL_ARGS], *word;
    xet_s3_rc_t  rc;

    rc = XET_S3_OK;

    while (fgets(line, sizeof(line), stdin)) {

        argc = 0;

        for (word = strtok(line, " \n"); word && argc < TOOL_ARGS;
             word = strtok(NULL, " \n"))
        {
            argv[argc++] = word;
        }

        rc = tool_job(s3, argc, argv);
    }

    return rc;
}


static int
tool_option(xet_s3_conf_t *conf, char *arg)
{
    char  *value;

    value = strchr(arg, '=');

    if (value == NULL) {
        return 0;
    }

    *value++ = '\0';

    if (strcmp(arg, "url") == 0) {
        conf->url = value;

    } else if (strcmp(arg, "endpoint") == 0) {
        conf->endpoint = value;

    } else if (strcmp(arg, "public_endpoint") == 0) {
        conf->public_endpoint = value;

    } else if (strcmp(arg, "region") == 0) {
        conf->region = value;

    } else if (strcmp(arg, "credentials") == 0) {
        conf->credentials = value;

    } else if (strcmp(arg, "profile") == 0) {
        conf->profile = value;

    } else if (strcmp(arg, "certificate") == 0) {
        conf->certificate = value;

    } else if (strcmp(arg, "timeout") == 0) {
        conf->timeout = (uint32_t) strtoul(value, NULL, 10);

    } else if (strcmp(arg, "connections") == 0) {
        conf->connections = (uint32_t) strtoul(value, NULL, 10);

    } else if (strcmp(arg, "part") == 0) {
        conf->part = (uint32_t) strtoul(value, NULL, 10);

    } else if (strcmp(arg, "path_style") == 0) {
        conf->path_style = (*value == '1');

    } else if (strcmp(arg, "conditional") == 0) {
        conf->conditional = (*value == '1');

    } else {
        return 0;
    }

    return 1;
}


int
main(int argc, char **argv)
{
    int             i;
    xet_s3_t       *s3;
    xet_s3_rc_t     rc;
    xet_s3_conf_t   conf;
    xet_s3_error_t  error;

    memset(&conf, 0, sizeof(conf));
    memset(&error, 0, sizeof(error));

    conf.timeout = 10000;
    conf.connections = 8;
    conf.part = XET_S3_PART_MIN;
    conf.path_style = 1;
    conf.conditional = 1;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!tool_option(&conf, argv[i])) {
            fprintf(stderr, "no option \"%s\"\n", argv[i]);
            return 2;
        }
    }

    s3 = xet_s3_create(&conf, &error);

    if (s3 == NULL) {
        printf("CONF %d %s\n", error.status, error.text);
        return XET_S3_CONF;
    }

    rc = (i + 1 < argc) ? tool_job(s3, argc - i - 1, argv + i + 1)
                        : tool_lines(s3);

    xet_s3_destroy(s3);

    return (int) rc;
}
