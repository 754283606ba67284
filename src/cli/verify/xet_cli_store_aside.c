
/*
 * Orphans on their way out: a file is renamed to a name that nobody asks for,
 * the database is asked once more, and then the file is removed, or gets its
 * name back.  The server does the same (src/http/store), and both may be at
 * work: a file that is not there any more is no error.
 *
 * Whoever dies between the two leaves the file aside; the next sweep, of
 * whatever kind, begins with these.
 */


#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_verify.h"


static int xet_cli_aside_entry(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const char *name);
static int xet_cli_aside_settle(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const xet_hash_t *hash, uint32_t tag, const char *aside,
    const char *path);
static int xet_cli_aside_free(xet_cli_pg_t *pg, const xet_hash_t *hash,
    uint32_t tag, int *removable);
static int xet_cli_aside_here(const xet_cli_store_t *s);
static int xet_cli_aside_back(const char *aside, const char *path);
static int xet_cli_aside_named(xet_cli_store_t *s, const char *name,
    uint64_t *n);
static int xet_cli_aside_sync(const char *path);


int
xet_cli_store_remove(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const xet_hash_t *hash, uint32_t tag, const char *path)
{
    int    rc;
    char  *aside, name[XET_XORB_ASIDE_MAX + 1];

    *xet_xorb_aside_print((uint8_t *) name, (uint64_t) getpid(), hash, tag)
    = '\0';

    if (asprintf(&aside, "%s/tmp/%s", s->folder, name) < 0) {
        return xet_cli_no_memory();
    }

    rc = xet_cli_aside_here(s);

    if (rc == XET_CLI_OK && rename(path, aside) == 0) {
        rc = xet_cli_aside_settle(s, pg, hash, tag, aside, path);

    } else if (rc == XET_CLI_OK) {
        rc = (errno == ENOENT) ? XET_CLI_OK : xet_cli_fail_errno(path);
    }

    free(aside);

    return rc;
}


int
xet_cli_store_asides(xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    int             rc;
    DIR            *dir;
    char           *folder;
    struct dirent  *entry;

    if (asprintf(&folder, "%s/tmp", s->folder) < 0) {
        return xet_cli_no_memory();
    }

    dir = opendir(folder);
    rc = XET_CLI_OK;

    if (dir == NULL && errno != ENOENT) {
        rc = xet_cli_fail_errno(folder);
    }

    while (dir && rc == XET_CLI_OK && (entry = readdir(dir)) != NULL) {
        rc = xet_cli_aside_entry(s, pg, entry->d_name);
    }

    if (dir) {
        closedir(dir);
    }

    free(folder);

    return rc;
}


static int
xet_cli_aside_entry(xet_cli_store_t *s, xet_cli_pg_t *pg, const char *name)
{
    int          rc;
    char        *aside, *path;
    uint32_t     tag;
    uint64_t     sweep, removed;
    xet_hash_t   hash;

    if (xet_xorb_aside_parse(&sweep, &hash, &tag, (const uint8_t *) name,
                             strlen(name))
        != XET_OK)
    {
        return XET_CLI_OK;
    }

    path = xet_cli_store_path(s, &hash, tag);

    if (path == NULL) {
        return XET_CLI_ERROR;
    }

    if (asprintf(&aside, "%s/tmp/%s", s->folder, name) < 0) {
        free(path);
        return xet_cli_no_memory();
    }

    removed = s->removed;

    rc = xet_cli_aside_settle(s, pg, &hash, tag, aside, path);

    s->orphans += s->removed - removed;

    free(aside);
    free(path);

    return rc;
}


/*
 * The row may have been put meanwhile, or another file may have got the name
 * before rename(): then the file goes back.
 */

static int
xet_cli_aside_settle(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const xet_hash_t *hash, uint32_t tag, const char *aside, const char *path)
{
    int          rc, removable;
    struct stat  st, other;

    rc = xet_cli_aside_free(pg, hash, tag, &removable);

    if (xet_cli_aside_here(s) != XET_CLI_OK) {
        return XET_CLI_ERROR;
    }

    if (rc != XET_CLI_OK || !removable
        || !xet_cli_store_removable(s, aside))
    {
        return xet_cli_worse(rc, xet_cli_aside_back(aside, path));
    }

    if (lstat(aside, &st) != 0 || unlink(aside) != 0) {
        return (errno == ENOENT) ? XET_CLI_OK : xet_cli_fail_errno(aside);
    }

    /* a sweep may have died when the file had its name back, too */

    s->removed += (lstat(path, &other) != 0 || other.st_ino != st.st_ino);

    return XET_CLI_OK;
}


/*
 * Old enough, and not from before the database, by both times: one that was
 * copied may have any time of its content, and one whose owner was changed has
 * a new time of its inode.
 */

int
xet_cli_store_removable(const xet_cli_store_t *s, const char *path)
{
    struct stat  st;

    return lstat(path, &st) == 0 && S_ISREG(st.st_mode)
           && st.st_mtime < s->known
           && st.st_mtime >= s->since && st.st_ctime >= s->since;
}


static int
xet_cli_aside_free(xet_cli_pg_t *pg, const xet_hash_t *hash, uint32_t tag,
    int *removable)
{
    int                  rc;
    char                 text[16];
    uint64_t             n;
    xet_cli_pg_param_t   params[2];

    snprintf(text, sizeof(text), "%d", (int) tag);

    memset(params, 0, sizeof(params));
    params[0].value = hash->bytes;
    params[0].len = XET_HASH_LEN;
    params[1].value = text;

    n = 0;

    rc = xet_cli_pg_number(pg, "SELECT count(*) FROM"
                           " xet.orphans(ARRAY[$1], ARRAY[$2::integer])",
                           params, 2, &n);

    *removable = (n != 0);

    return rc;
}


/* In the place of another store nothing has a row. */

static int
xet_cli_aside_here(const xet_cli_store_t *s)
{
    char  identity[64];

    xet_cli_store_identity(s->folder, identity);

    return (strcmp(identity, s->identity) == 0) ? XET_CLI_OK
           : xet_cli_fail(XET_CLI_ERROR, s->folder, "is not the store any more,"
                          " is its disk mounted?");
}


int
xet_cli_store_asides_back(const char *store, uint64_t *n)
{
    int               rc;
    DIR              *dir;
    char             *folder;
    struct dirent    *entry;
    xet_cli_store_t   s;

    memset(&s, 0, sizeof(s));
    s.folder = store;

    if (asprintf(&folder, "%s/tmp", store) < 0) {
        return xet_cli_no_memory();
    }

    dir = opendir(folder);
    rc = XET_CLI_OK;

    if (dir == NULL && errno != ENOENT) {
        rc = xet_cli_fail_errno(folder);
    }

    while (dir && rc == XET_CLI_OK && (entry = readdir(dir)) != NULL) {
        rc = xet_cli_aside_named(&s, entry->d_name, n);
    }

    if (dir) {
        closedir(dir);
    }

    free(folder);

    return rc;
}


static int
xet_cli_aside_named(xet_cli_store_t *s, const char *name, uint64_t *n)
{
    int          rc;
    char        *aside, *path;
    uint32_t     tag;
    uint64_t     sweep;
    xet_hash_t   hash;

    if (xet_xorb_aside_parse(&sweep, &hash, &tag, (const uint8_t *) name,
                             strlen(name))
        != XET_OK)
    {
        return XET_CLI_OK;
    }

    path = xet_cli_store_path(s, &hash, tag);

    if (path == NULL) {
        return XET_CLI_ERROR;
    }

    if (asprintf(&aside, "%s/tmp/%s", s->folder, name) < 0) {
        free(path);
        return xet_cli_no_memory();
    }

    rc = xet_cli_aside_back(aside, path);
    *n += 1;

    free(aside);
    free(path);

    return rc;
}


/* The name is durable before the other one goes. */

static int
xet_cli_aside_back(const char *aside, const char *path)
{
    int  rc;

    if (link(aside, path) != 0 && errno != EEXIST) {
        return (errno == ENOENT) ? XET_CLI_OK : xet_cli_fail_errno(aside);
    }

    rc = xet_cli_aside_sync(path);

    if (rc == XET_CLI_OK && unlink(aside) != 0 && errno != ENOENT) {
        rc = xet_cli_fail_errno(aside);
    }

    return rc;
}


static int
xet_cli_aside_sync(const char *path)
{
    int    fd, rc;
    char  *folder;

    folder = strndup(path, (size_t) (strrchr(path, '/') - path));

    if (folder == NULL) {
        return xet_cli_no_memory();
    }

    rc = XET_CLI_OK;
    fd = open(folder, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (fd == -1 || fsync(fd) != 0) {
        rc = xet_cli_fail_errno(folder);
    }

    if (fd != -1) {
        close(fd);
    }

    free(folder);

    return rc;
}
