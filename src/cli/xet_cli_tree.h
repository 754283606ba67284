
/*
 * Folders with all that is in them.
 *
 * A path is relative to the root of a tree, with slashes.  It is followed
 * folder by folder, and never through a symbolic link: whatever a manifest
 * says, and whoever else writes in the tree, nothing outside of it is read or
 * written.
 */

#ifndef _XET_CLI_TREE_H_INCLUDED_
#define _XET_CLI_TREE_H_INCLUDED_


#include "xet_cli.h"


typedef struct {
    char                *path;
    unsigned             folder:1;     /* an empty one */
} xet_cli_tree_entry_t;


typedef struct {
    int                    root;
    xet_cli_tree_entry_t  *entries;    /* in the order of their names */
    size_t                 count;
    size_t                 room;
} xet_cli_tree_t;


/*
 * Finds the files of a folder and its empty folders.  Links, devices, pipes
 * and what is left of downloads are left out, which is told.  XET_CLI_OK or
 * an exit code, told of; free in any case.
 */
int xet_cli_tree_read(xet_cli_tree_t *t, const char *name);
void xet_cli_tree_free(xet_cli_tree_t *t);

/* A file of it, for reading, and whether it is a program; NULL: told of. */
FILE *xet_cli_tree_open(const xet_cli_tree_t *t, const char *path,
    int *executable);

/*
 * The folder that a path is in, a descriptor; with make the folders on the
 * way are made.  *base is the rest of the path.  -1 where there is none, with
 * errno.
 */
int xet_cli_tree_parent(int root, const char *path, int make,
    const char **base);

/* Whether a path of somebody else may be used. */
int xet_cli_tree_path_ok(const char *path);


#endif /* _XET_CLI_TREE_H_INCLUDED_ */
