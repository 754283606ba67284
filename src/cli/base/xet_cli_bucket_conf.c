
/*
 * Parses the configuration of a bucket, in one string:
 *
 *     s3://bucket[/prefix] endpoint=URL credentials=FILE
 *     [public_endpoint=URL] [profile=NAME] [region=NAME] [path_style]
 *     [trusted_certificate=FILE] [timeout=TIME] [connections=N] [part=SIZE]
 *     [condition=on|off] [temp_path=FOLDER] [temp=anonymous|named]
 *
 * These are the arguments of the directive xet_store; the server parses them
 * in src/http/module/ngx_http_xet_conf_store.c.  Here, paths of files are
 * relative to the current folder.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_bucket.h"


#define XET_CLI_BUCKET_SPACE        " \t\r\n"
#define XET_CLI_BUCKET_TIMEOUT      30000      /* ms */
#define XET_CLI_BUCKET_TIMEOUT_MIN  1000
#define XET_CLI_BUCKET_TIMEOUT_MAX  (10 * 60 * 1000)
#define XET_CLI_BUCKET_CONNECTIONS  32
#define XET_CLI_BUCKET_CONNECTIONS_MAX  1024

/*
 * Default and maximum size of an upload part, in bytes.  An object has at most
 * XET_S3_PARTS_MAX parts, so dumps of large databases need large parts.
 */

#define XET_CLI_BUCKET_PART         (64 * 1024 * 1024)


static int xet_cli_bucket_word(xet_cli_bucket_conf_t *conf, const char *word);
static int xet_cli_bucket_string(xet_cli_bucket_conf_t *conf,
    const char *word, int *taken);
static const char *xet_cli_bucket_value(const char *word, const char *name);
static int xet_cli_bucket_time(const char *text, uint32_t *ms);
static int xet_cli_bucket_part(const char *text, uint32_t *part);
static int xet_cli_bucket_number(const char *text, uint32_t *number);


int
xet_cli_bucket_conf(xet_cli_bucket_conf_t *conf, const char *text)
{
    int    rc;
    char  *word, *next;

    memset(conf, 0, sizeof(xet_cli_bucket_conf_t));

    conf->words = strdup(text);

    if (conf->words == NULL) {
        return xet_cli_no_memory();
    }

    conf->s3.url = strtok_r(conf->words, XET_CLI_BUCKET_SPACE, &next);
    conf->s3.region = "us-east-1";
    conf->s3.profile = "default";
    conf->s3.timeout = XET_CLI_BUCKET_TIMEOUT;
    conf->s3.connections = XET_CLI_BUCKET_CONNECTIONS;
    conf->s3.part = XET_CLI_BUCKET_PART;
    conf->s3.conditional = 1;

    rc = XET_CLI_OK;

    while (rc == XET_CLI_OK
           && (word = strtok_r(NULL, XET_CLI_BUCKET_SPACE, &next)) != NULL)
    {
        rc = xet_cli_bucket_word(conf, word);
    }

    if (rc == XET_CLI_OK
        && (conf->s3.endpoint == NULL || conf->s3.credentials == NULL))
    {
        rc = xet_cli_fail(XET_CLI_USAGE, conf->s3.url,
                          "needs endpoint=URL and credentials=FILE after the "
                          "bucket");
    }

    return rc;
}


static int
xet_cli_bucket_word(xet_cli_bucket_conf_t *conf, const char *word)
{
    int          good;
    const char  *value;

    good = 0;

    if (xet_cli_bucket_string(conf, word, &good)) {

        /* void */

    } else if (strcmp(word, "path_style") == 0) {
        conf->s3.path_style = 1;
        good = 1;

    } else if ((value = xet_cli_bucket_value(word, "condition")) != NULL) {
        conf->s3.conditional = (strcmp(value, "on") == 0);
        good = conf->s3.conditional || strcmp(value, "off") == 0;

    } else if ((value = xet_cli_bucket_value(word, "timeout")) != NULL) {
        good = xet_cli_bucket_time(value, &conf->s3.timeout);

    } else if ((value = xet_cli_bucket_value(word, "part")) != NULL) {
        good = xet_cli_bucket_part(value, &conf->s3.part);

    } else if ((value = xet_cli_bucket_value(word, "connections")) != NULL) {
        good = xet_cli_bucket_number(value, &conf->s3.connections)
               && conf->s3.connections >= 1
               && conf->s3.connections <= XET_CLI_BUCKET_CONNECTIONS_MAX;

    } else if ((value = xet_cli_bucket_value(word, "temp")) != NULL) {

        /* checked, but ignored: temporary files have no names here */

        good = strcmp(value, "anonymous") == 0 || strcmp(value, "named") == 0;
    }

    return good ? XET_CLI_OK
                : xet_cli_failf(XET_CLI_USAGE, conf->s3.url,
                                "invalid parameter \"%s\"; expected endpoint=, "
                                "public_endpoint=, credentials=, profile=, "
                                "region=, path_style, trusted_certificate=, "
                                "timeout= of 1s to 10m, connections= of 1 to "
                                "1024, part= of 5m to 64m, condition=on|off, "
                                "temp_path= or temp=",
                                word);
}


static int
xet_cli_bucket_string(xet_cli_bucket_conf_t *conf, const char *word,
    int *taken)
{
    size_t        i;
    const char   *value, **to[7];

    static const char *const  names[] = {
        "endpoint", "credentials", "profile", "region", "trusted_certificate",
        "temp_path", "public_endpoint"
    };

    to[0] = &conf->s3.endpoint;
    to[1] = &conf->s3.credentials;
    to[2] = &conf->s3.profile;
    to[3] = &conf->s3.region;
    to[4] = &conf->s3.certificate;
    to[5] = &conf->temp_path;
    to[6] = &conf->s3.public_endpoint;

    for (i = 0; i < 7; i++) {
        value = xet_cli_bucket_value(word, names[i]);

        if (value) {
            *to[i] = value;
            *taken = (*value != '\0');
            return 1;
        }
    }

    return 0;
}


static const char *
xet_cli_bucket_value(const char *word, const char *name)
{
    size_t  len;

    len = strlen(name);

    return (strncmp(word, name, len) == 0 && word[len] == '=')
           ? word + len + 1 : NULL;
}


/*
 * Parses a time in the syntax of nginx, such as "500ms", "30s", "30" or "2m".
 * Returns 1, or 0 if the time is invalid or out of range.
 */

static int
xet_cli_bucket_time(const char *text, uint32_t *ms)
{
    char      *end;
    uint64_t   n, unit;

    n = strtoull(text, &end, 10);

    unit = (strcmp(end, "ms") == 0) ? 1
           : (*end == '\0' || strcmp(end, "s") == 0) ? 1000
           : (strcmp(end, "m") == 0) ? 60000 : 0;

    if (*text < '0' || *text > '9' || unit == 0
        || n > XET_CLI_BUCKET_TIMEOUT_MAX / unit
        || n * unit < XET_CLI_BUCKET_TIMEOUT_MIN)
    {
        return 0;
    }

    *ms = (uint32_t) (n * unit);

    return 1;
}


static int
xet_cli_bucket_part(const char *text, uint32_t *part)
{
    int        shift;
    char      *end;
    uint64_t   n;

    n = strtoull(text, &end, 10);

    shift = (*end == 'k' || *end == 'K') ? 10
            : (*end == 'm' || *end == 'M') ? 20 : 0;

    if (*text < '0' || *text > '9' || (*end && (shift == 0 || end[1]))
        || n > (uint64_t) XET_CLI_BUCKET_PART >> shift
        || n << shift < XET_S3_PART_MIN)
    {
        return 0;
    }

    *part = (uint32_t) (n << shift);

    return 1;
}


static int
xet_cli_bucket_number(const char *text, uint32_t *number)
{
    char      *end;
    uint64_t   n;

    n = strtoull(text, &end, 10);

    *number = (n > UINT32_MAX) ? 0 : (uint32_t) n;

    return *text >= '0' && *text <= '9' && *end == '\0';
}
