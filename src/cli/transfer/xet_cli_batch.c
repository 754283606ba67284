
/*
 * Downloads of a tree that are complete and wait for their names.
 */


#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "xet_cli_transfer.h"


xet_cli_batch_t *
xet_cli_batch_create(int root)
{
    struct rlimit     limit;
    xet_cli_batch_t  *b;

    b = calloc(1, sizeof(xet_cli_batch_t));

    if (b == NULL) {
        (void) xet_cli_no_memory();
        return NULL;
    }

    b->root = root;
    b->most = XET_CLI_BATCH_FILES;

    /* the other half of the descriptors is for everything else */

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0
        && limit.rlim_cur / 4 < b->most)
    {
        b->most = (unsigned) limit.rlim_cur / 4;
    }

    return b;
}


void
xet_cli_batch_free(xet_cli_batch_t *b)
{
    free(b);
}


int
xet_cli_batch_has(const xet_cli_batch_t *b, const char *path)
{
    unsigned  i;

    for (i = 0; i < b->count; i++) {
        if (strcmp(b->files[i].path, path) == 0) {
            return 1;
        }
    }

    return 0;
}


int
xet_cli_batch_add(xet_cli_batch_t *b, xet_cli_part_t *part, const char *path,
    uint64_t size, uint64_t received, const xet_hash_t *hash)
{
    int                    rc, folder;
    xet_cli_batch_file_t  *f;

    rc = xet_cli_part_ready(part, size);

    if (rc != XET_CLI_OK) {
        xet_cli_part_stop(part, 0);
        return rc;
    }

    f = &b->files[b->count];

    folder = fcntl(part->folder, F_DUPFD_CLOEXEC, 0);
    f->path = strdup(path);

    if (folder < 0 || f->path == NULL) {
        rc = xet_cli_fail(XET_CLI_ERROR, path, strerror(errno));

        if (folder >= 0) {
            close(folder);
        }

        free(f->path);
        xet_cli_part_stop(part, 0);

        return rc;
    }

    f->part = *part;
    f->part.folder = folder;
    f->hash = *hash;
    f->size = size;
    f->received = received;

    b->count++;
    b->bytes += size;

    return (b->count >= b->most || b->bytes >= XET_CLI_BATCH_BYTES)
           ? xet_cli_batch_sync(b) : XET_CLI_OK;
}


int
xet_cli_batch_sync(xet_cli_batch_t *b)
{
    int                    rc, synced, one, folder;
    unsigned               i;
    xet_cli_batch_file_t  *f;

    if (b->count == 0) {
        return XET_CLI_OK;
    }

    rc = XET_CLI_OK;
    synced = (syncfs(b->root) == 0);

    if (!synced) {
        rc = xet_cli_fail(XET_CLI_ERROR, b->files[0].path, strerror(errno));
    }

    for (i = 0; i < b->count; i++) {
        f = &b->files[i];
        folder = f->part.folder;

        one = synced ? xet_cli_part_name(&f->part) : XET_CLI_ERROR;

        if (one == XET_CLI_OK) {
            one = b->done(b->ctx, f);

        } else {
            xet_cli_part_stop(&f->part, 0);
        }

        rc = xet_cli_worse(rc, one);

        close(folder);
        free(f->path);
    }

    b->count = 0;
    b->bytes = 0;

    return rc;
}
