
/*
 * The client: creation, configuration and destruction.
 */

#include <stdlib.h>

#include "xet_s3_base.h"


#define XET_S3_CLIENT_REGION_MAX   32
#define XET_S3_CLIENT_TIMEOUT_MIN  100          /* ms */
#define XET_S3_CLIENT_TIMEOUT_MAX  (3600 * 1000)
#define XET_S3_CLIENT_MAX          1024         /* maximum connections */
#define XET_S3_CLIENT_STRINGS      7


static xet_s3_t *xet_s3_client_alloc(const xet_s3_conf_t *conf);
static const char **xet_s3_client_string(const xet_s3_conf_t *conf, size_t i);
static xet_s3_rc_t xet_s3_client_conf(xet_s3_conf_t *conf,
    xet_s3_error_t *error);
static int xet_s3_client_word(const char *word, size_t max);


xet_s3_t *
xet_s3_create(const xet_s3_conf_t *conf, xet_s3_error_t *error)
{
    xet_s3_t  *s3;

    s3 = xet_s3_client_alloc(conf);

    if (s3 == NULL) {
        (void) xet_s3_error(error, XET_S3_LOCAL, 0, "out of memory");
        return NULL;
    }

    s3->conf = &s3->copy;
    s3->random = (xet_s3_time_ms() * UINT64_C(0x9e3779b97f4a7c15)
                  ^ (uint64_t) (uintptr_t) s3) | 1;

    if (xet_s3_client_conf(&s3->copy, error) != XET_S3_OK
        || xet_s3_url_parse(&s3->url, s3->conf, error) != XET_S3_OK
        || xet_s3_url_public(&s3->outside, &s3->url, s3->conf, error)
           != XET_S3_OK
        || xet_s3_credentials_create(&s3->credentials, s3->conf, error)
           != XET_S3_OK)
    {
        xet_s3_credentials_destroy(&s3->credentials);
        free(s3);
        return NULL;
    }

    s3->transfers = xet_s3_transfers_create(s3->conf);

    if (s3->transfers == NULL) {
        (void) xet_s3_error(error, XET_S3_LOCAL, 0, "libcurl can't be used");
        xet_s3_credentials_destroy(&s3->credentials);
        free(s3);
        return NULL;
    }

    (void) pthread_mutex_init(&s3->lock, NULL);

    return s3;
}


void
xet_s3_destroy(xet_s3_t *s3)
{
    if (s3 == NULL) {
        return;
    }

    xet_s3_transfers_destroy(s3->transfers);
    xet_s3_credentials_destroy(&s3->credentials);
    (void) pthread_mutex_destroy(&s3->lock);
    free(s3);
}


void
xet_s3_stop(xet_s3_t *s3)
{
    xet_s3_transfers_stop(s3->transfers);
}


uint32_t
xet_s3_busy(xet_s3_t *s3)
{
    return xet_s3_transfers_busy(s3->transfers);
}


int64_t
xet_s3_skew(xet_s3_t *s3)
{
    int64_t  skew;

    (void) pthread_mutex_lock(&s3->lock);
    skew = s3->skew;
    (void) pthread_mutex_unlock(&s3->lock);

    return skew;
}


xet_s3_rc_t
xet_s3_reload(xet_s3_t *s3, xet_s3_error_t *error)
{
    return xet_s3_credentials_load(&s3->credentials, error);
}


/* Allocates the client together with copies of the strings of conf. */

static xet_s3_t *
xet_s3_client_alloc(const xet_s3_conf_t *conf)
{
    char         *p;
    size_t        i, size;
    xet_s3_t     *s3;
    const char  **strings[XET_S3_CLIENT_STRINGS];

    size = sizeof(xet_s3_t);

    for (i = 0; i < XET_S3_CLIENT_STRINGS; i++) {
        strings[i] = xet_s3_client_string(conf, i);

        if (*strings[i]) {
            size += strlen(*strings[i]) + 1;
        }
    }

    s3 = calloc(1, size);

    if (s3 == NULL) {
        return NULL;
    }

    s3->copy = *conf;
    p = (char *) (s3 + 1);

    for (i = 0; i < XET_S3_CLIENT_STRINGS; i++) {
        if (*strings[i]) {
            size = strlen(*strings[i]) + 1;
            memcpy(p, *strings[i], size);
            *xet_s3_client_string(&s3->copy, i) = p;
            p += size;
        }
    }

    return s3;
}


static const char **
xet_s3_client_string(const xet_s3_conf_t *conf, size_t i)
{
    static const size_t  offsets[XET_S3_CLIENT_STRINGS] = {
        offsetof(xet_s3_conf_t, url), offsetof(xet_s3_conf_t, endpoint),
        offsetof(xet_s3_conf_t, region), offsetof(xet_s3_conf_t, credentials),
        offsetof(xet_s3_conf_t, profile), offsetof(xet_s3_conf_t, certificate),
        offsetof(xet_s3_conf_t, public_endpoint)
    };

    return (const char **) ((char *) conf + offsets[i]);
}


static xet_s3_rc_t
xet_s3_client_conf(xet_s3_conf_t *conf, xet_s3_error_t *error)
{
    if (conf->region == NULL || *conf->region == '\0') {
        conf->region = "us-east-1";
    }

    if (conf->profile == NULL || *conf->profile == '\0') {
        conf->profile = "default";
    }

    if (!xet_s3_client_word(conf->region, XET_S3_CLIENT_REGION_MAX)) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the region is not 1 to %d of a-z, A-Z, 0-9, "
                            "\"-\" and \"_\"", XET_S3_CLIENT_REGION_MAX);
    }

    if (conf->timeout < XET_S3_CLIENT_TIMEOUT_MIN
        || conf->timeout > XET_S3_CLIENT_TIMEOUT_MAX)
    {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the timeout is not from 100 ms to one hour");
    }

    if (conf->connections < 1 || conf->connections > XET_S3_CLIENT_MAX) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the number of connections is not from 1 to %d",
                            XET_S3_CLIENT_MAX);
    }

    if (conf->part < XET_S3_PART_MIN) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "a part of an upload has less than %d bytes",
                            XET_S3_PART_MIN);
    }

    return XET_S3_OK;
}


static int
xet_s3_client_word(const char *word, size_t max)
{
    size_t  i;

    for (i = 0; word[i]; i++) {
        if (!xet_is_alnum((unsigned char) word[i]) && word[i] != '-'
            && word[i] != '_')
        {
            return 0;
        }
    }

    return i > 0 && i <= max;
}
