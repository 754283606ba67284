
/*
 * Stores: the functions that do not depend on the kind of store.
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "xet_store_ops.h"


#define XET_STORE_PARALLEL     2
#define XET_STORE_PARALLEL_S3  8


static xet_store_t *xet_store_create(const xet_store_ops_t *ops,
    const char *name, const char *temp);
static char *xet_store_string(const char *text);


xet_store_t *
xet_store_files(const char *path)
{
    size_t        len;
    char         *temp;
    xet_store_t  *store;

    len = strlen(path) + sizeof("/tmp");
    temp = malloc(len);

    if (temp == NULL) {
        return NULL;
    }

    (void) snprintf(temp, len, "%s/tmp", path);

    store = xet_store_create(&xet_store_files_ops, path, temp);

    free(temp);

    return store;
}


xet_store_t *
xet_store_s3(const xet_s3_conf_t *conf, const char *temp,
    xet_s3_error_t *error)
{
    xet_store_t  *store;

    memset(error, 0, sizeof(xet_s3_error_t));

    store = xet_store_create(&xet_store_s3_ops, conf->url, temp);

    if (store == NULL) {
        return NULL;
    }

    store->parallel = (conf->connections < XET_STORE_PARALLEL_S3)
                      ? conf->connections : XET_STORE_PARALLEL_S3;

    store->endpoint = xet_store_string(conf->endpoint);
    store->s3 = store->endpoint ? xet_s3_create(conf, error) : NULL;

    if (store->s3 == NULL) {
        xet_store_destroy(store);
        return NULL;
    }

    return store;
}


static xet_store_t *
xet_store_create(const xet_store_ops_t *ops, const char *name,
    const char *temp)
{
    xet_store_t  *store;

    store = calloc(1, sizeof(xet_store_t));

    if (store == NULL) {
        return NULL;
    }

    store->ops = ops;
    store->parallel = XET_STORE_PARALLEL;
    store->uid = (uid_t) -1;
    store->gid = (gid_t) -1;
    store->name = xet_store_string(name);
    store->temp = xet_store_string(temp);

    if (store->name == NULL || store->temp == NULL) {
        xet_store_destroy(store);
        return NULL;
    }

    return store;
}


static char *
xet_store_string(const char *text)
{
    char    *copy;
    size_t   len;

    len = strlen(text) + 1;
    copy = malloc(len);

    return copy ? memcpy(copy, text, len) : NULL;
}


void
xet_store_destroy(xet_store_t *store)
{
    if (store == NULL) {
        return;
    }

    if (store->s3) {
        xet_s3_destroy(store->s3);
    }

    free(store->name);
    free(store->temp);
    free(store->endpoint);
    free(store);
}


int
xet_store_same(const xet_store_t *one, const xet_store_t *two)
{
    struct stat  a, b;

    if (one->ops != two->ops) {
        return 0;
    }

    if (one->s3) {
        return strcmp(one->endpoint, two->endpoint) == 0
               && strcmp(one->name, two->name) == 0;
    }

    return stat(one->name, &a) == 0 && stat(two->name, &b) == 0
           && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}


char *
xet_store_copy(char *name, const xet_hash_t *xorb, uint32_t copy_id)
{
    char  text[XET_XORB_NAME_MAX + 1];

    *xet_xorb_name_print((uint8_t *) text, xorb, copy_id) = '\0';

    (void) snprintf(name, XET_STORE_COPY_MAX,
                    "xorbs/" XET_STORE_NAMESPACE "/%.2s/%s", text, text);

    return name;
}


xet_status_t
xet_store_identity(xet_store_t *store, char *identity,
    xet_store_error_t *error)
{
    char          line[XET_STORE_IDENTITY_LEN + 2];
    size_t        len;
    xet_status_t  rc;

    identity[0] = '\0';

    len = sizeof(line);
    rc = store->ops->small(store, "identity", line, &len, error);

    if (rc != XET_OK) {
        return rc;
    }

    if (len != XET_STORE_IDENTITY_LEN + 1
        || line[XET_STORE_IDENTITY_LEN] != '\n')
    {
        return xet_store_says(store, "identity", XET_STORE_FAILED,
                              "is not the identity of a store", error);
    }

    memcpy(identity, line, XET_STORE_IDENTITY_LEN);
    identity[XET_STORE_IDENTITY_LEN] = '\0';

    return XET_OK;
}


xet_status_t
xet_store_identify(xet_store_t *store, const char *identity,
    xet_store_error_t *error)
{
    char          line[XET_STORE_IDENTITY_LEN + 1];
    xet_status_t  rc;

    memcpy(line, identity, XET_STORE_IDENTITY_LEN);
    line[XET_STORE_IDENTITY_LEN] = '\n';

    rc = xet_store_put(store, "identity", line, sizeof(line), 0, error);

    return (rc == XET_AGAIN) ? XET_OK : rc;
}


xet_status_t
xet_store_put(xet_store_t *store, const char *name, const void *data,
    size_t len, int replace, xet_store_error_t *error)
{
    xet_status_t         rc;
    xet_store_error_t    other;
    xet_store_writer_t  *writer;

    rc = xet_store_writer_open(store, "", &writer, error);

    if (rc != XET_OK) {
        return rc;
    }

    rc = xet_store_writer_write(writer, data, len, error);

    if (rc == XET_OK) {
        rc = store->ops->keep(writer, name, replace, 0, error);
    }

    (void) xet_store_writer_close(writer, &other);

    return rc;
}


xet_status_t
xet_store_remove(xet_store_t *store, const char *name,
    xet_store_error_t *error)
{
    xet_store_item_t  item;

    memset(&item, 0, sizeof(item));
    item.name = name;

    return store->ops->remove(store, &item, 1, error);
}
