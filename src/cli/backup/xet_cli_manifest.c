
/*
 * Generations of a backup and their manifests.
 */


#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "xet_cli_backup.h"


#define XET_CLI_MANIFEST_MAX  65536


static int xet_cli_manifest_load(int folder, const char *path,
    xet_cli_manifest_t *m);
static int xet_cli_manifest_parse(const json_t *root, xet_cli_manifest_t *m);
static int xet_cli_manifest_string(const json_t *root, const char *key,
    char *text, size_t size);
static int xet_cli_manifest_member(const json_t *root, const char *key,
    xet_cli_sum_t *sum);
static int xet_cli_manifest_compare(int folder, const char *generation,
    const char *suffix, const xet_cli_sum_t *sum);
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
    int          rc;
    ssize_t      n;
    uint8_t     *buffer, digest[XET_CLI_SHA256_LEN];
    EVP_MD_CTX  *md;

    buffer = malloc(XET_CLI_BACKUP_BUFFER);
    md = EVP_MD_CTX_new();
    rc = XET_CLI_OK;
    sum->size = 0;

    if (buffer == NULL || md == NULL
        || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1)
    {
        rc = xet_cli_no_memory();
    }

    while (rc == XET_CLI_OK) {
        n = pread(fd, buffer, XET_CLI_BACKUP_BUFFER, (off_t) sum->size);

        if (n <= 0) {
            rc = n ? xet_cli_fail_errno(name) : XET_CLI_OK;
            break;
        }

        EVP_DigestUpdate(md, buffer, (size_t) n);
        sum->size += (uint64_t) n;

        rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED : XET_CLI_OK;
    }

    if (rc == XET_CLI_OK) {
        EVP_DigestFinal_ex(md, digest, NULL);
        *xet_hash_print_plain((uint8_t *) sum->sha256, digest) = '\0';
    }

    EVP_MD_CTX_free(md);
    free(buffer);

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
xet_cli_manifest_read(int folder, const char *generation,
    xet_cli_manifest_t *m)
{
    int  rc;

    rc = xet_cli_manifest_lists(folder, generation, m);

    return (rc == XET_CLI_OK)
           ? xet_cli_manifest_compare(folder, generation, "dump", &m->dump)
           : rc;
}


int
xet_cli_manifest_lists(int folder, const char *generation,
    xet_cli_manifest_t *m)
{
    int   rc;
    char  path[XET_CLI_BACKUP_PATH];

    xet_cli_manifest_path(generation, "json", path);
    memset(m, 0, sizeof(xet_cli_manifest_t));

    rc = xet_cli_manifest_load(folder, path, m);

    if (rc == XET_CLI_OK && strcmp(m->name, generation) != 0) {
        rc = xet_cli_fail(XET_CLI_FAULT, path, "is of another generation");
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_manifest_compare(folder, generation, "list", &m->list);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_manifest_compare(folder, generation, "notes", &m->notes);
    }

    return rc;
}


static int
xet_cli_manifest_load(int folder, const char *path, xet_cli_manifest_t *m)
{
    int      fd, rc;
    char    *text;
    json_t  *root;
    ssize_t  n;

    fd = openat(folder, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return xet_cli_fail_errno(path);
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
                              "is no manifest of a backup that this version"
                              " knows");
        }

        json_decref(root);
    }

    free(text);

    return rc;
}


/* 1: it is not what xet_cli_manifest_text() writes. */

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
xet_cli_manifest_compare(int folder, const char *generation,
    const char *suffix, const xet_cli_sum_t *sum)
{
    int            fd, rc;
    char           path[XET_CLI_BACKUP_PATH];
    xet_cli_sum_t  found;

    xet_cli_manifest_path(generation, suffix, path);

    fd = openat(folder, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return (errno == ENOENT) ? xet_cli_fail(XET_CLI_FAULT, path,
                                                "is missing")
                                 : xet_cli_fail_errno(path);
    }

    rc = xet_cli_manifest_sum(fd, path, &found);

    close(fd);

    if (rc == XET_CLI_OK
        && (found.size != sum->size || strcmp(found.sha256, sum->sha256) != 0))
    {
        rc = xet_cli_fail(XET_CLI_FAULT, path,
                          "is damaged: it has another SHA-256 than its"
                          " manifest says");
    }

    return rc;
}


int
xet_cli_manifest_all(int folder, char (**names)[XET_CLI_BACKUP_NAME])
{
    int             fd;
    DIR            *dir;
    void           *array;
    size_t          n, len, room;
    struct dirent  *entry;

    *names = NULL;

    fd = openat(folder, "generations", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        return 0;
    }

    dir = (fd < 0) ? NULL : fdopendir(fd);

    if (dir == NULL) {
        (void) xet_cli_fail_errno("generations");
        return -1;
    }

    n = 0;
    room = 0;

    while ((entry = readdir(dir)) != NULL) {
        len = strlen(entry->d_name);

        if (len < 5 || strcmp(entry->d_name + len - 5, ".json") != 0
            || !xet_cli_manifest_time(entry->d_name, len - 5))
        {
            continue;
        }

        array = xet_cli_grow(*names, n, &room, XET_CLI_BACKUP_NAME);

        if (array == NULL) {
            (void) xet_cli_no_memory();
            closedir(dir);
            return -1;
        }

        *names = array;

        snprintf((*names)[n++], XET_CLI_BACKUP_NAME, "%.*s", (int) (len - 5),
                 entry->d_name);
    }

    closedir(dir);

    if (n) {
        qsort(*names, n, XET_CLI_BACKUP_NAME, xet_cli_manifest_order);
    }

    return (int) n;
}


/* Whether a name is a time: what else is in the folder is no generation. */

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
