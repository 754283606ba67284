
/* The journal of a put: an interrupted put is resumed from its journal. */


#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "xet_cli_transfer.h"


#define XET_CLI_JOURNAL_MAGIC   "XETPUT01"
#define XET_CLI_JOURNAL_PREFIX  "put-"
#define XET_CLI_JOURNAL_HEAD    48
#define XET_CLI_JOURNAL_CHUNK   36

#define XET_CLI_JOURNAL_MAX     (256 * 1024 * 1024)   /* about 450 GB of data */
#define XET_CLI_JOURNAL_AGE     (7 * 86400)           /* s */


static int xet_cli_journal_folder(void);
static int xet_cli_journal_name(xet_cli_journal_t *j,
    const xet_cli_args_t *args, const char *endpoint, const char *storage);
static int xet_cli_journal_load(xet_cli_journal_t *j, xet_cli_xorbs_t *x);
static int xet_cli_journal_record(xet_cli_journal_t *j, uint8_t *buffer,
    xet_cli_xorbs_t *x, int *rc);
static int xet_cli_journal_parse(uint8_t *record, xet_xorb_list_t *xorb);
static int xet_cli_journal_make(xet_cli_journal_t *j);
static void xet_cli_journal_sweep(const xet_cli_journal_t *j);


int
xet_cli_journal_open(xet_cli_journal_t *j, const xet_cli_args_t *args,
    const char *endpoint, const char *storage, xet_cli_xorbs_t *x)
{
    int          rc;
    struct stat  st;

    memset(j, 0, sizeof(xet_cli_journal_t));

    j->fd = -1;
    j->folder = xet_cli_journal_folder();

    if (j->folder < 0) {
        return XET_CLI_OK;
    }

    rc = xet_cli_journal_name(j, args, endpoint, storage);

    if (rc != XET_CLI_OK || j->folder < 0) {
        return rc;
    }

    j->fd = openat(j->folder, j->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (j->fd < 0) {
        return XET_CLI_OK;
    }

    if (flock(j->fd, LOCK_EX | LOCK_NB) != 0 || fstat(j->fd, &st) != 0
        || st.st_nlink == 0)
    {
        /* another process is running the same command, or has just ended */

        xet_cli_journal_close(j, 0);
        return XET_CLI_OK;
    }

    if (st.st_mtime + XET_CLI_JOURNAL_AGE < time(NULL)) {
        xet_cli_journal_reset(j);
        return XET_CLI_OK;
    }

    return xet_cli_journal_load(j, x);
}


/*
 * Opens the folder of journals, and creates it with its parents.  Returns -1
 * if the folder cannot be created, or if other users own it or may write to
 * it.
 */

static int
xet_cli_journal_folder(void)
{
    int          fd;
    char        *path, *p;
    const char  *cache, *home;
    struct stat  st;

    cache = getenv("XDG_CACHE_HOME");
    home = getenv("HOME");

    if (cache && *cache == '/') {
        home = "";

    } else if (home && *home == '/') {
        cache = "/.cache";

    } else {
        return -1;
    }

    if (asprintf(&path, "%s%s/xet", home, cache) < 0) {
        return -1;
    }

    for (p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void) mkdir(path, 0700);
        *p = '/';
    }

    (void) mkdir(path, 0700);

    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    free(path);

    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_uid != geteuid()
                    || (st.st_mode & (S_IWGRP | S_IWOTH))))
    {
        close(fd);
        fd = -1;
    }

    return fd;
}


static int
xet_cli_journal_name(xet_cli_journal_t *j, const xet_cli_args_t *args,
    const char *endpoint, const char *storage)
{
    int          rc, i;
    char        *cwd, *p;
    uint8_t      digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX  *ctx;

    cwd = realpath(".", NULL);

    if (cwd == NULL && errno == ENOMEM) {
        return xet_cli_no_memory();
    }

    if (cwd == NULL) {

        /* the current folder was deleted: a put in it cannot be resumed */

        xet_cli_journal_close(j, 0);
        return XET_CLI_OK;
    }

    rc = xet_cli_sha256_begin(&ctx);

    if (rc != XET_CLI_OK) {
        free(cwd);
        return rc;
    }

    EVP_DigestUpdate(ctx, endpoint, strlen(endpoint) + 1);
    EVP_DigestUpdate(ctx, cwd, strlen(cwd) + 1);

    for (i = 0; i < args->count; i++) {
        EVP_DigestUpdate(ctx, args->operands[i],
                         strlen(args->operands[i]) + 1);
    }

    if (storage) {

        /* the zero byte distinguishes "storage" from an operand */

        EVP_DigestUpdate(ctx, "", 1);
        EVP_DigestUpdate(ctx, storage, strlen(storage) + 1);
    }

    EVP_DigestFinal_ex(ctx, digest, NULL);
    EVP_MD_CTX_free(ctx);
    free(cwd);

    p = stpcpy(j->name, XET_CLI_JOURNAL_PREFIX);

    for (i = 0; i < 16; i++) {
        p += sprintf(p, "%02x", digest[i]);
    }

    return XET_CLI_OK;
}


/*
 * Reads all valid records, and truncates the journal after the last valid
 * record.
 */

static int
xet_cli_journal_load(xet_cli_journal_t *j, xet_cli_xorbs_t *x)
{
    int       rc;
    uint8_t  *buffer, magic[8];

    if (pread(j->fd, magic, sizeof(magic), 0) != sizeof(magic)
        || memcmp(magic, XET_CLI_JOURNAL_MAGIC, sizeof(magic)) != 0)
    {
        xet_cli_journal_reset(j);
        return XET_CLI_OK;
    }

    buffer = malloc(XET_XORB_CHUNKS_MAX * (XET_CLI_JOURNAL_CHUNK + 4));

    if (buffer == NULL) {
        return xet_cli_no_memory();
    }

    rc = XET_CLI_OK;
    j->size = sizeof(magic);

    while (j->size < XET_CLI_JOURNAL_MAX && rc == XET_CLI_OK
           && xet_cli_journal_record(j, buffer, x, &rc))
    {
        /* void */
    }

    free(buffer);

    if (ftruncate(j->fd, (off_t) j->size) != 0) {
        xet_cli_journal_close(j, 0);
    }

    return rc;
}


/*
 * Reads the record at j->size.  Returns 1, or 0 if there is no valid record.
 */

static int
xet_cli_journal_record(xet_cli_journal_t *j, uint8_t *buffer,
    xet_cli_xorbs_t *x, int *rc)
{
    size_t            len;
    xet_xorb_list_t   xorb;

    if (pread(j->fd, buffer, XET_CLI_JOURNAL_HEAD, (off_t) j->size)
        != XET_CLI_JOURNAL_HEAD)
    {
        return 0;
    }

    memset(&xorb, 0, sizeof(xorb));

    memcpy(xorb.hash.bytes, buffer, XET_HASH_LEN);
    xorb.chunk_count = xet_get_u32(buffer + XET_HASH_LEN);
    xorb.raw_size = xet_get_u32(buffer + XET_HASH_LEN + 4);
    xorb.stored_size = xet_get_u32(buffer + XET_HASH_LEN + 8);

    if (xorb.chunk_count == 0 || xorb.chunk_count > XET_XORB_CHUNKS_MAX) {
        return 0;
    }

    len = xorb.chunk_count * XET_CLI_JOURNAL_CHUNK;

    if (pread(j->fd, buffer, len, (off_t) (j->size + XET_CLI_JOURNAL_HEAD))
        != (ssize_t) len
        || !xet_cli_journal_parse(buffer, &xorb))
    {
        return 0;
    }

    *rc = xet_cli_xorbs_add(x, &xorb, 1);

    j->size += XET_CLI_JOURNAL_HEAD + len;

    return 1;
}


/*
 * Builds the lists of a xorb from its record, which has pairs of chunk hash
 * and length.  The hashes are moved to the start of the buffer, without gaps.
 * The raw ends are written to the buffer, after the space of the longest
 * record.  Returns 1, or 0 if the chunks do not have the hash and the raw size
 * of the xorb.
 */

static int
xet_cli_journal_parse(uint8_t *record, xet_xorb_list_t *xorb)
{
    uint8_t       *p, *ends;
    uint32_t       i, len;
    uint64_t       sum;
    xet_hash_t     hash;
    xet_merkle_t   merkle;

    xet_merkle_init(&merkle, &xet_suite_default);

    sum = 0;
    p = record;
    ends = record + XET_XORB_CHUNKS_MAX * XET_CLI_JOURNAL_CHUNK;

    xorb->hashes = record;
    xorb->raw_ends = ends;

    for (i = 0; i < xorb->chunk_count; i++) {
        len = xet_get_u32(p + XET_HASH_LEN);

        if (len == 0 || len > XET_CHUNK_MAX) {
            return 0;
        }

        xet_merkle_add(&merkle, p, len);

        sum += len;

        memmove(record + i * XET_HASH_LEN, p, XET_HASH_LEN);
        xet_put_u32(ends + i * 4, (uint32_t) sum);

        p += XET_CLI_JOURNAL_CHUNK;
    }

    xet_merkle_finish(&merkle, &hash);

    return sum == xorb->raw_size && xet_hash_equal(&hash, &xorb->hash);
}


/*
 * A failed write is not an error: the next run would only send the xorb again.
 */

void
xet_cli_journal_add(xet_cli_journal_t *j, const xet_xorb_list_t *xorb)
{
    size_t    len;
    uint8_t  *record, *p;
    uint32_t  i, start, end;

    len = XET_CLI_JOURNAL_HEAD + xorb->chunk_count * XET_CLI_JOURNAL_CHUNK;

    if (j->folder < 0 || len > XET_CLI_JOURNAL_MAX - j->size
        || (j->fd < 0 && !xet_cli_journal_make(j)))
    {
        return;
    }

    record = calloc(1, len);

    if (record == NULL) {
        return;
    }

    memcpy(record, xorb->hash.bytes, XET_HASH_LEN);
    xet_put_u32(record + XET_HASH_LEN, xorb->chunk_count);
    xet_put_u32(record + XET_HASH_LEN + 4, xorb->raw_size);
    xet_put_u32(record + XET_HASH_LEN + 8, xorb->stored_size);

    p = record + XET_CLI_JOURNAL_HEAD;

    start = 0;

    for (i = 0; i < xorb->chunk_count; i++) {
        end = xet_get_u32(xorb->raw_ends + i * 4);

        memcpy(p, xorb->hashes + i * XET_HASH_LEN, XET_HASH_LEN);
        xet_put_u32(p + XET_HASH_LEN, end - start);

        start = end;
        p += XET_CLI_JOURNAL_CHUNK;
    }

    if (pwrite(j->fd, record, len, (off_t) j->size) == (ssize_t) len) {
        j->size += len;

    } else {
        xet_cli_journal_close(j, 0);
    }

    free(record);
}


/*
 * Creates the journal file, after the server has acknowledged the first xorb.
 */

static int
xet_cli_journal_make(xet_cli_journal_t *j)
{
    xet_cli_journal_sweep(j);

    j->fd = openat(j->folder, j->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
                                       | O_CLOEXEC, 0600);

    if (j->fd < 0 || flock(j->fd, LOCK_EX | LOCK_NB) != 0) {
        xet_cli_journal_close(j, 0);
        return 0;
    }

    xet_cli_journal_reset(j);

    return j->fd >= 0;
}


void
xet_cli_journal_reset(xet_cli_journal_t *j)
{
    const size_t  len = sizeof(XET_CLI_JOURNAL_MAGIC) - 1;

    if (j->fd < 0) {
        return;
    }

    if (ftruncate(j->fd, 0) != 0
        || pwrite(j->fd, XET_CLI_JOURNAL_MAGIC, len, 0) != (ssize_t) len)
    {
        xet_cli_journal_close(j, 0);
        return;
    }

    j->size = len;
}


static void
xet_cli_journal_sweep(const xet_cli_journal_t *j)
{
    int             fd;
    DIR            *dir;
    struct stat     st;
    struct dirent  *entry;

    fd = openat(j->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = (fd < 0) ? NULL : fdopendir(fd);

    if (dir == NULL) {

        if (fd >= 0) {
            close(fd);
        }

        return;
    }

    while ((entry = readdir(dir)) != NULL) {

        if (strncmp(entry->d_name, XET_CLI_JOURNAL_PREFIX,
                    sizeof(XET_CLI_JOURNAL_PREFIX) - 1)
            == 0
            && fstatat(j->folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW)
               == 0
            && st.st_mtime + XET_CLI_JOURNAL_AGE < time(NULL))
        {
            (void) unlinkat(j->folder, entry->d_name, 0);
        }
    }

    closedir(dir);
}


void
xet_cli_journal_close(xet_cli_journal_t *j, int done)
{
    if (j->fd >= 0) {

        if (done) {
            (void) unlinkat(j->folder, j->name, 0);
        }

        close(j->fd);
        j->fd = -1;
    }

    if (j->folder >= 0) {
        close(j->folder);
        j->folder = -1;
    }
}
