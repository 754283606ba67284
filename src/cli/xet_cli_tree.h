
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
    unsigned             folder:1;     /* this is an empty folder */
} xet_cli_tree_entry_t;


typedef struct {
    int                    root;
    xet_cli_tree_entry_t  *entries;    /* in the order of their names */
    size_t                 count;
    size_t                 room;
} xet_cli_tree_t;


/*
 * Finds the files and the empty folders in a folder and below it.  Links,
 * devices, pipes and what is left of downloads are left out, which is
 * reported.  XET_CLI_OK, XET_CLI_INTERRUPTED, or the worst exit code of what
 * could not be read, reported; the rest is found nevertheless.
 * xet_cli_tree_free() is to be called in any case.
 */
int xet_cli_tree_read(xet_cli_tree_t *t, const char *name);
void xet_cli_tree_free(xet_cli_tree_t *t);

/*
 * Opens a file of the tree for reading; *executable: its owner may run it.
 * NULL on an error, reported.
 */
FILE *xet_cli_tree_open(const xet_cli_tree_t *t, const char *path,
    int *executable);

/*
 * Opens the folder that a path is in; with make, missing folders are made.
 * *base becomes the last part of the path, not copied.  Returns a descriptor,
 * which the caller closes, or -1 with errno, not reported.
 */
int xet_cli_tree_parent(int root, const char *path, int make,
    const char **base);

/*
 * Whether a path of a manifest may be used: it is relative, has no part that is
 * empty, "." or "..", and no name that xet_cli_part.c gives.
 */
int xet_cli_tree_path_ok(const char *path);


#endif /* _XET_CLI_TREE_H_INCLUDED_ */
