
/*
 * The folder that a backup is written to: whose it is, what a backup that was
 * broken off has left in it, and its newest generation.
 */


#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_backup.h"


static int xet_cli_backup_newest(xet_cli_backup_t *b);


/* Opens the folder, one at a time, which is empty or a backup of this store. */

int
xet_cli_backup_to(xet_cli_backup_t *b, const char *name)
{
    int          empty;
    char         line[128], mark[128];
    struct stat  st, store;

    static const char *const  nothing[] = { "tmp", "lock",
                                            XET_CLI_BACKUP_READERS, NULL };

    if (mkdir(name, 0750) != 0 && errno != EEXIST) {
        return xet_cli_fail_errno(name);
    }

    b->to = xet_cli_backup_folder(name);

    if (b->to < 0) {
        return XET_CLI_ERROR;
    }

    if (fstat(b->to, &st) != 0 || fstat(b->store, &store) != 0) {
        return xet_cli_fail_errno(name);
    }

    if (st.st_dev == store.st_dev && st.st_ino == store.st_ino) {
        return xet_cli_fail(XET_CLI_USAGE, name, "is the store itself");
    }

    snprintf(mark, sizeof(mark), XET_CLI_BACKUP_MARK "%s", b->m.identity);

    if (xet_cli_backup_line(b->to, "backup", line, sizeof(line))) {

        if (strcmp(line, mark) != 0) {
            return xet_cli_fail(XET_CLI_ERROR, name,
                                "is a backup of another store");
        }

    } else {
        empty = xet_cli_backup_empty(b->to, nothing);

        if (empty <= 0) {
            return empty ? XET_CLI_ERROR
                         : xet_cli_fail(XET_CLI_ERROR, name, "is neither empty"
                                        " nor a backup");
        }
    }

    /* of who reads, see xet_cli_backup_prune() */

    empty = openat(b->to, XET_CLI_BACKUP_READERS, O_RDWR | O_CREAT | O_CLOEXEC,
                   0640);

    if (empty < 0) {
        return xet_cli_fail_errno(XET_CLI_BACKUP_READERS);
    }

    close(empty);

    b->lock = openat(b->to, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0640);

    if (b->lock < 0) {
        return xet_cli_fail_errno("lock");
    }

    if (flock(b->lock, LOCK_EX | LOCK_NB) != 0) {
        return xet_cli_fail(XET_CLI_ERROR, name,
                            "another backup is being written to it");
    }

    return XET_CLI_OK;
}


/* Drops what a backup has left that was broken off, but for its copies. */

int
xet_cli_backup_clear(xet_cli_backup_t *b)
{
    int       rc, i;
    char      text[128], path[XET_CLI_BACKUP_PATH];

    static const char *const  files[] = { "dump", "list", "notes", "file" };

    /* the mark is first: whatever ends this, the next one knows the folder */

    rc = (mkdirat(b->to, "tmp", 0755) != 0 && errno != EEXIST)
         ? xet_cli_fail_errno("tmp") : XET_CLI_OK;

    if (rc == XET_CLI_OK
        && !xet_cli_backup_line(b->to, "backup", text, sizeof(text)))
    {
        snprintf(text, sizeof(text), XET_CLI_BACKUP_MARK "%s\n",
                 b->m.identity);

        rc = xet_cli_backup_put(&b->copier, "backup", text);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_copier_folders(&b->copier, 1);
    }

    for (i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "tmp/%s", files[i]);
        (void) unlinkat(b->to, path, 0);
    }

    for (i = 0; i < XET_CLI_BACKUP_BATCH; i++) {
        snprintf(path, sizeof(path), "tmp/copy.%d", i);
        (void) unlinkat(b->to, path, 0);
    }

    if (rc == XET_CLI_OK && mkdirat(b->to, "generations", 0750) != 0
        && errno != EEXIST)
    {
        rc = xet_cli_fail_errno("generations");
    }

    return (rc == XET_CLI_OK) ? xet_cli_backup_newest(b) : rc;
}


static int
xet_cli_backup_newest(xet_cli_backup_t *b)
{
    int                  rc, n;
    char               (*names)[XET_CLI_BACKUP_NAME];
    xet_cli_manifest_t   m;

    b->known.ended = 1;
    b->unknown.ended = 1;

    n = xet_cli_manifest_all(b->to, &names);

    if (n <= 0) {
        return n ? XET_CLI_ERROR : XET_CLI_OK;
    }

    strcpy(b->newest, names[n - 1]);
    free(names);

    rc = xet_cli_manifest_read(b->to, b->newest, &m);

    if (rc == XET_CLI_FAULT) {

        /* all copies are read then */

        return XET_CLI_OK;
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_list_open(&b->known, b->to, b->newest, 0);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_list_open(&b->unknown, b->to, b->newest, 1);
    }

    return rc;
}
