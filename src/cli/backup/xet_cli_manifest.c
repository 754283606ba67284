
/*
 * Writes, reads and checks the manifests of a backup, and lists its complete
 * generations.  A generation is complete when its manifest exists.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "xet_cli_backup.h"


#define XET_CLI_MANIFEST_MAX  65536    /* maximum size of a manifest */


typedef struct {
    char      (*names)[XET_CLI_BACKUP_NAME];
    size_t      n;
    size_t      room;                  /* capacity of names */
} xet_cli_manifests_t;


static int xet_cli_manifest_load(xet_store_t *storage, const char *path,
    xet_cli_manifest_t *m);
static int xet_cli_manifest_parse(const json_t *root, xet_cli_manifest_t *m);
static int xet_cli_manifest_string(const json_t *root, const char *key,
    char *text, size_t size);
static int xet_cli_manifest_member(const json_t *root, const char *key,
    xet_cli_sum_t *sum);
static int xet_cli_manifest_compare(xet_store_t *storage,
    const char *generation, const char *suffix, const xet_cli_sum_t *sum);
static int xet_cli_manifest_name(void *ctx, const char *name);
static int xet_cli_manifest_time(const char *name, size_t len);
static int xet_cli_manifest_order(const void *one, const void *two);


const char *
xet_cli_manifest_path(const char *generation, const char *suffix,
    char path[XET_CLI_BACKUP_PATH])
{
    snprintf(path, XET_CLI_BACKUP_PATH, "generations/%s.%s", generation,
             suffix);

    return path;
}


int
xet_cli_manifest_sum(int fd, const char *name, xet_cli_sum_t *sum)
{
    int      rc;
    uint8_t  digest[XET_CLI_SHA256_LEN];

    rc = xet_cli_sha256(fd, name, UINT64_MAX, digest, &sum->size);

    if (rc == XET_CLI_OK) {
        *xet_hash_print_plain((uint8_t *) sum->sha256, digest) = '\0';
    }

    return rc;
}


char *
xet_cli_manifest_text(const xet_cli_manifest_t *m)
{
    char    *text;
    json_t  *root;

    root = json_pack("{si ss ss sI sI sI sI sI sI s{sI ss} s{sI ss} s{sI ss}}",
                     "format", XET_CLI_BACKUP_FORMAT,
                     "generation", m->name,
                     "identity", m->identity,
                     "created", (json_int_t) m->created,
                     "schema", (json_int_t) m->schema,
                     "files", (json_int_t) m->files,
                     "copies", (json_int_t) m->copies,
                     "bytes", (json_int_t) m->bytes,
                     "faults", (json_int_t) m->faults,
                     "dump", "bytes", (json_int_t) m->dump.size,
                     "sha256", m->dump.sha256,
                     "list", "bytes", (json_int_t) m->list.size,
                     "sha256", m->list.sha256,
                     "notes", "bytes", (json_int_t) m->notes.size,
                     "sha256", m->notes.sha256);

    text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;

    json_decref(root);

    if (text == NULL) {
        (void) xet_cli_no_memory();
    }

    return text;
}


int
xet_cli_manifest_read(xet_store_t *storage, const char *generation,
    xet_cli_manifest_t *m)
{
    int  rc;

    rc = xet_cli_manifest_lists(storage, generation, m);

    return rc ? rc : xet_cli_manifest_compare(storage, generation, "dump",
                                              &m->dump);
}


int
xet_cli_manifest_lists(xet_store_t *storage, const char *generation,
    xet_cli_manifest_t *m)
{
    int   rc;
    char  path[XET_CLI_BACKUP_PATH];

    xet_cli_manifest_path(generation, "json", path);
    memset(m, 0, sizeof(xet_cli_manifest_t));

    rc = xet_cli_manifest_load(storage, path, m);

    if (rc == XET_CLI_OK && strcmp(m->name, generation) != 0) {
        rc = xet_cli_fail(XET_CLI_FAULT, path,
                          "belongs to another generation");
    }

    rc = rc ? rc : xet_cli_manifest_compare(storage, generation, "list",
                                            &m->list);

    return rc ? rc : xet_cli_manifest_compare(storage, generation, "notes",
                                              &m->notes);
}


static int
xet_cli_manifest_load(xet_store_t *storage, const char *path,
    xet_cli_manifest_t *m)
{
    int      fd, rc;
    char    *text;
    json_t  *root;
    ssize_t  n;

    rc = xet_cli_storage_fetch(storage, path, &fd);

    if (rc == XET_CLI_GONE) {
        errno = ENOENT;
    }

    if (rc != XET_CLI_OK) {
        return (rc == XET_CLI_GONE || rc == XET_CLI_UNREADABLE)
               ? xet_cli_fail_errno(path) : rc;
    }

    text = malloc(XET_CLI_MANIFEST_MAX);
    n = text ? pread(fd, text, XET_CLI_MANIFEST_MAX, 0) : -1;

    rc = (n < 0) ? xet_cli_fail_errno(path)
                 : xet_cli_manifest_sum(fd, path, &m->self);

    close(fd);

    if (rc == XET_CLI_OK) {
        root = json_loadb(text, (size_t) n, JSON_REJECT_DUPLICATES, NULL);

        if (root == NULL || xet_cli_manifest_parse(root, m)) {
            rc = xet_cli_fail(XET_CLI_FAULT, path,
                              "is not a backup manifest that this version can "
                              "read");
        }

        json_decref(root);
    }

    free(text);

    return rc;
}


/*
 * Parses a manifest of this format.  Returns 0, or 1 if a member is missing or
 * invalid.
 */

static int
xet_cli_manifest_parse(const json_t *root, xet_cli_manifest_t *m)
{
    uint64_t  format;

    return !xet_cli_json_get_u64(root, "format", &format)
           || format != XET_CLI_BACKUP_FORMAT
           || !xet_cli_json_get_u64(root, "created", &m->created)
           || !xet_cli_json_get_u64(root, "schema", &m->schema)
           || !xet_cli_json_get_u64(root, "files", &m->files)
           || !xet_cli_json_get_u64(root, "copies", &m->copies)
           || !xet_cli_json_get_u64(root, "bytes", &m->bytes)
           || !xet_cli_json_get_u64(root, "faults", &m->faults)
           || xet_cli_manifest_string(root, "generation", m->name,
                                      sizeof(m->name))
           || xet_cli_manifest_string(root, "identity", m->identity,
                                      sizeof(m->identity))
           || xet_cli_manifest_member(root, "dump", &m->dump)
           || xet_cli_manifest_member(root, "list", &m->list)
           || xet_cli_manifest_member(root, "notes", &m->notes);
}


static int
xet_cli_manifest_string(const json_t *root, const char *key, char *text,
    size_t size)
{
    const char  *value;

    value = json_string_value(json_object_get(root, key));

    if (value == NULL || strlen(value) >= size || strpbrk(value, "/\n")) {
        return 1;
    }

    strcpy(text, value);

    return 0;
}


static int
xet_cli_manifest_member(const json_t *root, const char *key,
    xet_cli_sum_t *sum)
{
    const json_t  *member;

    member = json_object_get(root, key);

    return !xet_cli_json_get_u64(member, "bytes", &sum->size)
           || xet_cli_manifest_string(member, "sha256", sum->sha256,
                                      sizeof(sum->sha256));
}


static int
xet_cli_manifest_compare(xet_store_t *storage, const char *generation,
    const char *suffix, const xet_cli_sum_t *sum)
{
    int            fd, rc;
    char           path[XET_CLI_BACKUP_PATH];
    xet_cli_sum_t  found;

    xet_cli_manifest_path(generation, suffix, path);

    rc = xet_cli_storage_fetch(storage, path, &fd);

    if (rc == XET_CLI_GONE) {
        return xet_cli_fail(XET_CLI_FAULT, path, "is missing");
    }

    if (rc != XET_CLI_OK) {
        return (rc == XET_CLI_UNREADABLE) ? xet_cli_fail_errno(path) : rc;
    }

    rc = xet_cli_manifest_sum(fd, path, &found);

    close(fd);

    if (rc == XET_CLI_OK
        && (found.size != sum->size || strcmp(found.sha256, sum->sha256) != 0))
    {
        rc = xet_cli_fail(XET_CLI_FAULT, path,
                          "is damaged: its size or SHA-256 differs from the "
                          "manifest");
    }

    return rc;
}


int
xet_cli_manifest_all(xet_store_t *storage,
    char (**names)[XET_CLI_BACKUP_NAME])
{
    int                   rc;
    xet_cli_manifests_t   all;

    memset(&all, 0, sizeof(all));
    *names = NULL;

    rc = xet_cli_storage_list(storage, "generations", xet_cli_manifest_name,
                              &all);

    if (rc != XET_CLI_OK && rc != XET_CLI_GONE) {
        free(all.names);
        return -1;
    }

    if (all.n) {
        qsort(all.names, all.n, XET_CLI_BACKUP_NAME, xet_cli_manifest_order);
    }

    *names = all.names;

    return (int) all.n;
}


static int
xet_cli_manifest_name(void *ctx, const char *name)
{
    void                 *array;
    size_t                len;
    xet_cli_manifests_t  *all = ctx;

    len = strlen(name);

    if (len < 5 || strcmp(name + len - 5, ".json") != 0
        || !xet_cli_manifest_time(name, len - 5))
    {
        return XET_CLI_OK;
    }

    array = xet_cli_grow(all->names, all->n, &all->room, XET_CLI_BACKUP_NAME);

    if (array == NULL) {
        return xet_cli_no_memory();
    }

    all->names = array;

    snprintf(all->names[all->n++], XET_CLI_BACKUP_NAME, "%.*s",
             (int) (len - 5), name);

    return XET_CLI_OK;
}


/*
 * Returns 1 if a name has the form of a time, else 0.  Other names in the
 * folder are not generations.
 */

static int
xet_cli_manifest_time(const char *name, size_t len)
{
    size_t  i;

    static const char  form[] = "00000000T000000Z";

    if (len != sizeof(form) - 1) {
        return 0;
    }

    for (i = 0; i < len; i++) {
        if (form[i] == '0' ? (name[i] < '0' || name[i] > '9')
                           : name[i] != form[i])
        {
            return 0;
        }
    }

    return 1;
}


static int
xet_cli_manifest_order(const void *one, const void *two)
{
    return strcmp(one, two);
}
