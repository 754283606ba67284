
/*
 * Downloads of a tree that are complete and wait for their names: a file gets
 * its name when it is on the disk, and one sync for many files takes hardly
 * longer than for one.
 *
 * Each file that waits holds two descriptors, of its folder and of its lock.
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
    int                    root;       /* a folder of their file system */
    xet_cli_batch_file_t   files[XET_CLI_BATCH_FILES];
    unsigned               count;
    unsigned               most;       /* files, as descriptors allow */
    uint64_t               bytes;

    /* a file has its name; XET_CLI_OK or an exit code, reported */
    int                  (*done)(void *ctx, const xet_cli_batch_file_t *f);
    void                  *ctx;
} xet_cli_batch_t;


/* NULL without memory, reported. */
xet_cli_batch_t *xet_cli_batch_create(int root);

/* Frees a batch of which all files have been synced. */
void xet_cli_batch_free(xet_cli_batch_t *b);

/* Whether a file of this path waits. */
int xet_cli_batch_has(const xet_cli_batch_t *b, const char *path);

/*
 * Takes a part that is complete; also after a failure the caller does not stop
 * it.  Syncs when there are enough files.  The path is copied.  XET_CLI_OK, or
 * the worst exit code of all failures, reported.
 */
int xet_cli_batch_add(xet_cli_batch_t *b, xet_cli_part_t *part,
    const char *path, uint64_t size, uint64_t received,
    const xet_hash_t *hash);

/* Syncs, and gives all files their names. */
int xet_cli_batch_sync(xet_cli_batch_t *b);


#endif /* _XET_CLI_BATCH_H_INCLUDED_ */
