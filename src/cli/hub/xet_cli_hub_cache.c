
/*
 * Reads a cache of huggingface_hub.
 *
 *     models--owner--name/refs/main              commit id, 40 digits
 *     models--owner--name/snapshots/COMMIT/path  -> ../../blobs/BLOB
 *     models--owner--name/blobs/BLOB             content; or, from 2.4 on,
 *                                                -> ../../blobs/XX/HASH
 *     blobs/XX/HASH                              content, for all repos
 *
 * Only links to blobs of the same cache are followed.  On a file system
 * without symbolic links, the files of a snapshot are regular files.
 */


#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_hub.h"


#define XET_CLI_HUB_CACHE_OPEN                                                \
    (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)


static int xet_cli_hub_cache_has(const char *folder, const char *name);
static int xet_cli_hub_cache_ref(const char *folder, const char *rev,
    char oid[XET_HUB_OID_LEN + 1]);
static int xet_cli_hub_cache_oid(const char *text);
static int xet_cli_hub_cache_link(int folder, const char *base, char *link);
static const char *xet_cli_hub_cache_blob(const char *path,
    const char *link);
static int xet_cli_hub_cache_shared(int blobs, const char *blob);


int
xet_cli_hub_cache_one(const char *folder)
{
    return xet_cli_hub_cache_has(folder, "snapshots")
           && xet_cli_hub_cache_has(folder, "refs");
}


static int
xet_cli_hub_cache_has(const char *folder, const char *name)
{
    int          there;
    char        *path;
    struct stat  st;

    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        return 0;
    }

    there = (lstat(path, &st) == 0 && S_ISDIR(st.st_mode));

    free(path);

    return there;
}


/*
 * Parses "models--owner--name".  owner, unless NULL, replaces the owner in it.
 */

char *
xet_cli_hub_cache_name(const char *base, const char *owner)
{
    char             *name;
    size_t            len;
    unsigned          kind;
    const char       *cut;
    xet_hub_target_t  target;

    for (kind = 0; kind < XET_HUB_BUCKET; kind++) {
        len = strlen(xet_hub_kind_plural((xet_hub_kind_e) kind));

        if (strncmp(base, xet_hub_kind_plural((xet_hub_kind_e) kind), len)
            == 0 && strncmp(base + len, "--", 2) == 0)
        {
            break;
        }
    }

    if (kind == XET_HUB_BUCKET) {
        return NULL;
    }

    base += len + 2;
    cut = strstr(base, "--");

    if (cut == NULL && owner == NULL) {
        return NULL;
    }

    if (asprintf(&name, "%s/%.*s/%s",
                 xet_hub_kind_plural((xet_hub_kind_e) kind),
                 owner ? (int) strlen(owner) : (int) (cut - base),
                 owner ? owner : base, cut ? cut + 2 : base)
        < 0)
    {
        return NULL;
    }

    if (xet_hub_operand_parse(name, &target) != XET_OK
        || target.name.data == NULL || target.path.len)
    {
        free(name);
        return NULL;
    }

    return name;
}


char *
xet_cli_hub_cache_snapshot(const char *folder, const char *rev)
{
    char         oid[XET_HUB_OID_LEN + 1], *path;
    struct stat  st;

    if (xet_cli_hub_cache_oid(rev)) {
        strcpy(oid, rev);

    } else if (xet_cli_hub_cache_ref(folder, rev, oid) != XET_CLI_OK) {
        return NULL;
    }

    if (asprintf(&path, "%s/snapshots/%s", folder, oid) < 0) {
        (void) xet_cli_no_memory();
        return NULL;
    }

    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        (void) xet_cli_fail(XET_CLI_ERROR, path, "is not a folder");
        free(path);

        return NULL;
    }

    return path;
}


static int
xet_cli_hub_cache_ref(const char *folder, const char *rev,
    char oid[XET_HUB_OID_LEN + 1])
{
    int          root, dir, fd;
    char         text[XET_HUB_OID_LEN + 3], *refs;
    ssize_t      n;
    const char  *base;

    if (asprintf(&refs, "%s/refs", folder) < 0) {
        return xet_cli_no_memory();
    }

    root = open(refs, XET_CLI_HUB_CACHE_OPEN);
    dir = (root < 0) ? -1 : xet_cli_tree_parent(root, rev, 0, &base);
    fd = (dir < 0) ? -1 : openat(dir, base, O_RDONLY | O_NOFOLLOW
                                            | O_NONBLOCK | O_CLOEXEC);
    n = (fd < 0) ? -1 : read(fd, text, sizeof(text) - 1);

    if (n >= 0) {
        text[n] = '\0';
        text[strcspn(text, "\r\n")] = '\0';
    }

    free(refs);

    if (fd >= 0) {
        close(fd);
    }

    if (dir >= 0) {
        close(dir);
    }

    if (root >= 0) {
        close(root);
    }

    if (n < 0 || !xet_cli_hub_cache_oid(text)) {
        return xet_cli_failf(XET_CLI_ERROR, folder,
                             "has no ref \"%.255s\" that names a commit", rev);
    }

    strcpy(oid, text);

    return XET_CLI_OK;
}


static int
xet_cli_hub_cache_oid(const char *text)
{
    return strlen(text) == XET_HUB_OID_LEN
           && strspn(text, "0123456789abcdef") == XET_HUB_OID_LEN;
}


int
xet_cli_hub_cache_blobs(const char *folder)
{
    int    fd;
    char  *path;

    if (asprintf(&path, "%s/blobs", folder) < 0) {
        (void) xet_cli_no_memory();
        return -1;
    }

    fd = open(path, XET_CLI_HUB_CACHE_OPEN);

    if (fd < 0) {
        (void) xet_cli_fail_errno(path);
    }

    free(path);

    return fd;
}


FILE *
xet_cli_hub_cache_open(const xet_cli_tree_t *t, const char *path, int blobs)
{
    int          folder, fd, found, executable;
    char         link[PATH_MAX];
    const char  *base, *blob;

    folder = xet_cli_tree_parent(t->root, path, 0, &base);
    found = folder >= 0 && xet_cli_hub_cache_link(folder, base, link);

    if (!found) {
        (void) xet_cli_fail_errno(path);
    }

    if (folder >= 0) {
        close(folder);
    }

    if (!found) {
        return NULL;
    }

    blob = xet_cli_hub_cache_blob(path, link);

    if (blob == NULL) {
        (void) xet_cli_fail(XET_CLI_ERROR, path,
                            "skipped: symbolic link that leads out of the "
                            "cache");
        return NULL;
    }

    fd = openat(blobs, blob, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 && errno == ELOOP) {
        fd = xet_cli_hub_cache_shared(blobs, blob);
    }

    return xet_cli_tree_stream(fd, path,
                               "skipped: its blob is not a regular file",
                               &executable);
}


static int
xet_cli_hub_cache_link(int folder, const char *base, char *link)
{
    ssize_t  n;

    n = readlinkat(folder, base, link, PATH_MAX - 1);

    if (n >= 0) {
        link[n] = '\0';
    }

    return n >= 0;
}


/*
 * Opens the shared blob that the link blobs/BLOB points to.  Returns -1 on an
 * error; errno is ELOOP if the link points to anything else.
 */

static int
xet_cli_hub_cache_shared(int blobs, const char *blob)
{
    int          cache, folder, fd;
    char         link[PATH_MAX];
    const char  *hash, *base;

    static const char  digits[] = "0123456789abcdef";

    if (!xet_cli_hub_cache_link(blobs, blob, link)) {
        return -1;
    }

    hash = link + strlen("../../blobs/xx/");

    if (strncmp(link, "../../blobs/", 12) != 0
        || strspn(link + 12, digits) != 2 || link[14] != '/'
        || strlen(hash) != XET_HASH_STR_LEN
        || strspn(hash, digits) != XET_HASH_STR_LEN)
    {
        errno = ELOOP;
        return -1;
    }

    cache = openat(blobs, "../..", XET_CLI_HUB_CACHE_OPEN);

    folder = (cache < 0) ? -1
             : xet_cli_tree_parent(cache, link + strlen("../../"), 0, &base);

    fd = (folder < 0) ? -1 : openat(folder, base, O_RDONLY | O_NOFOLLOW
                                                  | O_NONBLOCK | O_CLOEXEC);

    if (cache >= 0) {
        close(cache);
    }

    if (folder >= 0) {
        close(folder);
    }

    return fd;
}


/*
 * Returns the name of the blob in the target of a link, or NULL if the target
 * is anything else.  The target must have one "../" for each folder of the
 * path, two more "../" to leave the snapshot and the folder "snapshots", and
 * then "blobs/".
 */

static const char *
xet_cli_hub_cache_blob(const char *path, const char *link)
{
    unsigned  up;

    for (up = 2; *path; path++) {
        up += (*path == '/');
    }

    while (up--) {

        if (strncmp(link, "../", 3) != 0) {
            return NULL;
        }

        link += 3;
    }

    if (strncmp(link, "blobs/", 6) != 0) {
        return NULL;
    }

    link += 6;

    return (*link == '\0' || *link == '.' || strchr(link, '/') != NULL)
           ? NULL : link;
}
