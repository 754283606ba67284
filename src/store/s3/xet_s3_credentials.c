
/*
 * The keys, from a file in the format of the AWS tools:
 *
 *     [default]
 *     aws_access_key_id = AKIA...
 *     aws_secret_access_key = ...
 *     aws_session_token = ...
 *
 * To rotate keys, replace the file.  It is read again when a store denies a
 * request that was signed with the old keys.  If the file can't be read, the
 * old keys stay.  Error messages never contain data from the file.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "xet_s3_base.h"


#define XET_S3_CREDENTIALS_MAX    (64 * 1024)
#define XET_S3_CREDENTIALS_PAUSE  1000         /* ms between two reads */


static xet_s3_rc_t xet_s3_credentials_read(xet_s3_credentials_t *c,
    xet_s3_keys_t *keys, xet_s3_error_t *error);
static char *xet_s3_credentials_file(const char *name, size_t *len);
static const char *xet_s3_credentials_parse(xet_s3_keys_t *keys, char *text,
    const char *profile);
static char *xet_s3_credentials_trim(char *text);
static int xet_s3_credentials_section(char *line, const char *profile);
static const char *xet_s3_credentials_set(xet_s3_keys_t *keys, char *line);
static int xet_s3_credentials_copy(char *dst, size_t size, const char *value);


xet_s3_rc_t
xet_s3_credentials_create(xet_s3_credentials_t *c, const xet_s3_conf_t *conf,
    xet_s3_error_t *error)
{
    memset(c, 0, sizeof(xet_s3_credentials_t));

    c->file = conf->credentials;
    c->profile = conf->profile;
    c->region = conf->region;

    if (c->file == NULL || *c->file == '\0') {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "no file with credentials is given");
    }

    if (pthread_mutex_init(&c->lock, NULL) != 0) {
        c->file = NULL;
        return xet_s3_error(error, XET_S3_LOCAL, 0, "no mutex");
    }

    return xet_s3_credentials_load(c, error);
}


void
xet_s3_credentials_destroy(xet_s3_credentials_t *c)
{
    if (c->file == NULL || *c->file == '\0') {
        return;
    }

    (void) pthread_mutex_destroy(&c->lock);
    OPENSSL_cleanse(c, sizeof(xet_s3_credentials_t));
}


xet_s3_rc_t
xet_s3_credentials_load(xet_s3_credentials_t *c, xet_s3_error_t *error)
{
    xet_s3_rc_t    rc;
    xet_s3_keys_t  keys;

    memset(&keys, 0, sizeof(xet_s3_keys_t));

    rc = xet_s3_credentials_read(c, &keys, error);

    (void) pthread_mutex_lock(&c->lock);

    c->loaded = xet_s3_time_ms();

    if (rc == XET_S3_OK && memcmp(&keys, &c->keys, sizeof(keys)) != 0) {
        c->keys = keys;
        c->generation++;
        c->day[0] = '\0';
    }

    (void) pthread_mutex_unlock(&c->lock);

    OPENSSL_cleanse(&keys, sizeof(xet_s3_keys_t));

    return rc;
}


int
xet_s3_credentials_renew(xet_s3_credentials_t *c, unsigned generation,
    uint64_t deadline)
{
    int              other;
    uint64_t         now, next;
    struct timespec  pause;

    for ( ;; ) {

        (void) pthread_mutex_lock(&c->lock);

        other = (c->generation != generation);
        next = c->loaded + XET_S3_CREDENTIALS_PAUSE;
        now = xet_s3_time_ms();

        if (!other && now >= next) {

            /* other threads that wait for the lock need not read the file */
            c->loaded = now;
        }

        (void) pthread_mutex_unlock(&c->lock);

        if (other) {
            return 1;
        }

        if (now >= next) {
            (void) xet_s3_credentials_load(c, NULL);

            (void) pthread_mutex_lock(&c->lock);
            other = (c->generation != generation);
            (void) pthread_mutex_unlock(&c->lock);

            return other;
        }

        if (next >= deadline) {
            return 0;
        }

        pause.tv_sec = (time_t) ((next - now) / 1000);
        pause.tv_nsec = (long) ((next - now) % 1000) * 1000000;

        (void) nanosleep(&pause, NULL);
    }
}


int
xet_s3_credentials_signer(xet_s3_credentials_t *c, const char *date,
    xet_s3_signer_t *signer)
{
    int  ok;

    ok = 1;

    (void) pthread_mutex_lock(&c->lock);

    if (strncmp(c->day, date, XET_SIGV4_DAY_LEN) != 0) {

        ok = (xet_sigv4_key(c->key, c->keys.secret, date, c->region,
                            XET_S3_SERVICE)
              == XET_OK);

        memcpy(c->day, date, XET_SIGV4_DAY_LEN);

        if (!ok) {
            c->day[0] = '\0';
        }
    }

    memcpy(signer->id, c->keys.id, sizeof(signer->id));
    memcpy(signer->token, c->keys.token, sizeof(signer->token));
    memcpy(signer->key, c->key, XET_SIGV4_KEY_LEN);
    signer->generation = c->generation;

    (void) pthread_mutex_unlock(&c->lock);

    return ok;
}


static xet_s3_rc_t
xet_s3_credentials_read(xet_s3_credentials_t *c, xet_s3_keys_t *keys,
    xet_s3_error_t *error)
{
    char        *text;
    size_t       len;
    const char  *why;

    text = xet_s3_credentials_file(c->file, &len);

    if (text == NULL) {
        return xet_s3_error(error, XET_S3_CONF, 0,
                            "the credentials \"%s\" can't be read (%d: %s)",
                            c->file, errno, strerror(errno));
    }

    why = (strlen(text) != len) ? "have a zero byte"
          : xet_s3_credentials_parse(keys, text, c->profile);

    OPENSSL_cleanse(text, len);
    free(text);

    return why ? xet_s3_error(error, XET_S3_CONF, 0,
                              "the credentials \"%s\", profile \"%s\", %s",
                              c->file, c->profile, why)
               : XET_S3_OK;
}


/* Reads the file, and appends a zero byte, which *len does not count. */

static char *
xet_s3_credentials_file(const char *name, size_t *len)
{
    int      fd, err;
    char    *text;
    ssize_t  n;

    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd == -1) {
        return NULL;
    }

    text = malloc(XET_S3_CREDENTIALS_MAX);
    *len = 0;
    n = -1;

    while (text) {
        n = read(fd, text + *len, XET_S3_CREDENTIALS_MAX - *len);

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n <= 0) {
            break;
        }

        *len += (size_t) n;

        if (*len == XET_S3_CREDENTIALS_MAX) {
            errno = EFBIG;
            n = -1;
            break;
        }
    }

    err = errno;
    (void) close(fd);
    errno = err;

    if (text == NULL || n == -1) {
        free(text);
        errno = err;
        return NULL;
    }

    text[*len] = '\0';

    return text;
}


static const char *
xet_s3_credentials_parse(xet_s3_keys_t *keys, char *text, const char *profile)
{
    int          ours, found;
    char        *line, *next;
    const char  *why;

    ours = 0;
    found = 0;

    for (line = text; line; line = next) {

        next = strchr(line, '\n');

        if (next) {
            *next++ = '\0';
        }

        line = xet_s3_credentials_trim(line);

        if (*line == '\0' || *line == '#' || *line == ';') {
            continue;
        }

        if (*line == '[') {
            ours = xet_s3_credentials_section(line, profile);
            found |= ours;
            continue;
        }

        why = ours ? xet_s3_credentials_set(keys, line) : NULL;

        if (why) {
            return why;
        }
    }

    if (!found) {
        return "are missing";
    }

    if (keys->id[0] == '\0') {
        return "have no \"aws_access_key_id\"";
    }

    return keys->secret[0] ? NULL : "have no \"aws_secret_access_key\"";
}


static char *
xet_s3_credentials_trim(char *text)
{
    size_t  len;

    text += strspn(text, " \t\r");
    len = strlen(text);

    while (len && strchr(" \t\r", text[len - 1])) {
        len--;
    }

    text[len] = '\0';

    return text;
}


/*
 * Returns whether a line starts the section of a profile: "[name]", or
 * "[profile name]" as in the config file of the AWS tools.
 */

static int
xet_s3_credentials_section(char *line, const char *profile)
{
    char  *end;

    end = strchr(line, ']');

    if (end == NULL) {
        return 0;
    }

    *end = '\0';
    line = xet_s3_credentials_trim(line + 1);

    if (strncmp(line, "profile ", 8) == 0) {
        line = xet_s3_credentials_trim(line + 8);
    }

    return strcmp(line, profile) == 0;
}


static const char *
xet_s3_credentials_set(xet_s3_keys_t *keys, char *line)
{
    char  *value;

    value = strchr(line, '=');

    if (value == NULL) {
        return "have a line without \"=\"";
    }

    *value++ = '\0';

    line = xet_s3_credentials_trim(line);
    value = xet_s3_credentials_trim(value);

    if (strcmp(line, "aws_access_key_id") == 0) {
        return xet_s3_credentials_copy(keys->id, sizeof(keys->id), value)
               ? NULL : "have an \"aws_access_key_id\" that can't be one";
    }

    if (strcmp(line, "aws_secret_access_key") == 0) {
        return xet_s3_credentials_copy(keys->secret, sizeof(keys->secret),
                                       value)
               ? NULL : "have an \"aws_secret_access_key\" that can't be one";
    }

    if (strcmp(line, "aws_session_token") == 0) {
        return xet_s3_credentials_copy(keys->token, sizeof(keys->token), value)
               ? NULL : "have an \"aws_session_token\" that can't be one";
    }

    return NULL;
}


/*
 * Copies a value.  Allows visible ASCII only, since the value is sent in
 * headers.  Zeroes the rest of dst, since keys are compared with memcmp().
 */

static int
xet_s3_credentials_copy(char *dst, size_t size, const char *value)
{
    size_t  i, len;

    len = strlen(value);

    if (len >= size) {
        return 0;
    }

    for (i = 0; i < len; i++) {
        if (value[i] <= ' ' || value[i] > '~') {
            return 0;
        }
    }

    memset(dst, 0, size);
    memcpy(dst, value, len);

    return 1;
}
