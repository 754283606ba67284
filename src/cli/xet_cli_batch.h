
/*
 * Downloads of a tree that are complete and wait for their names: a file gets
 * its name when it is on the disk, and one sync for many files takes hardly
 * longer than for one.
 *
 * Each that waits holds two descriptors, of its folder and of its lock.
 */

#ifndef _XET_CLI_BATCH_H_INCLUDED_
#define _XET_CLI_BATCH_H_INCLUDED_


#include "xet_cli_part.h"


#define XET_CLI_BATCH_FILES  256
#define XET_CLI_BATCH_BYTES  (64 * 1024 * 1024)


typedef struct {
    xet_cli_part_t         part;
    char                  *path;       /* in the tree */
    xet_hash_t             hash;
    uint64_t               size;
    uint64_t               received;
} xet_cli_batch_file_t;


typedef struct {
    int                    root;       /* of the file system they are all on */
    xet_cli_batch_file_t   files[XET_CLI_BATCH_FILES];
    unsigned               count;
    unsigned               most;       /* as descriptors allow */
    uint64_t               bytes;

    /* a file has its name; XET_CLI_OK or an exit code, told of */
    int                  (*done)(void *ctx, const xet_cli_batch_file_t *f);
    void                  *ctx;
} xet_cli_batch_t;


/* NULL without memory, told of. */
xet_cli_batch_t *xet_cli_batch_create(int root);

/* All are to have been synced before. */
void xet_cli_batch_free(xet_cli_batch_t *b);

/* Whether a file of this path waits. */
int xet_cli_batch_has(const xet_cli_batch_t *b, const char *path);

/*
 * Takes a part that is complete, whatever becomes of it, and syncs when that
 * are enough; path is copied.  XET_CLI_OK or the worst code of what was told.
 */
int xet_cli_batch_add(xet_cli_batch_t *b, xet_cli_part_t *part,
    const char *path, uint64_t size, uint64_t received,
    const xet_hash_t *hash);

/* Syncs, and gives all their names. */
int xet_cli_batch_sync(xet_cli_batch_t *b);


#endif /* _XET_CLI_BATCH_H_INCLUDED_ */
