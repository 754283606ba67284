
/*
 * A backup of a database and its store, and the way back.
 *
 * The folder of a backup:
 *
 *     backup                          whose store it is
 *     xorbs/default/<aa>/<hash>.<tag> copies, named as in the store
 *     generations/<time>.dump         pg_dump -Fc
 *     generations/<time>.list         the copies that the dump leads to
 *     generations/<time>.notes        copies that are not there, and why
 *     generations/<time>.json         the manifest, written last
 *     tmp/                            what is not complete
 *     lock, readers                   locks of who writes and who reads
 *
 * A generation exists when its manifest does, which has the SHA-256 of the
 * three others; the list has size and digest of each copy.  So the manifest is
 * the digest of all.  Copies are shared by all generations: a name in a store
 * never gets other bytes.
 *
 * A list is in the order of the folders of the store, and in a folder in that
 * of the hashes.  Several lists are read side by side, and none is ever held
 * in memory.
 */

#ifndef _XET_CLI_BACKUP_H_INCLUDED_
#define _XET_CLI_BACKUP_H_INCLUDED_


#include <sys/types.h>

#include "xet_cli_verify.h"


#define XET_CLI_BACKUP_FORMAT  1
#define XET_CLI_BACKUP_BATCH   64      /* files that are synced together */
#define XET_CLI_BACKUP_PATH    128     /* of a copy, and its zero byte */
#define XET_CLI_BACKUP_NAME    32      /* of a generation, likewise */

#define XET_CLI_BACKUP_COPIES  "xorbs/default"
#define XET_CLI_BACKUP_READERS "readers"

/* While it is held in shared mode nobody removes copies: xet.gc_copies(). */

#define XET_CLI_BACKUP_LOCK    "(hashtext('xet.copies'), 0)"

/* For a session whose lock must last as long as the command does. */

#define XET_CLI_BACKUP_PATIENCE                                               \
    "SET statement_timeout = 0; SET lock_timeout = 0;"                        \
    " SET idle_session_timeout = 0;"                                          \
    " SET idle_in_transaction_session_timeout = 0;"


/* A copy as a list has it; without a digest its row had none. */

typedef struct {
    xet_hash_t             hash;
    uint32_t               tag;
    uint64_t               size;
    unsigned               digested:1;
    xet_checksum_t         digest;
} xet_cli_copy_t;


/*
 * A file of lines that is read once from its start: a list, or with notes set
 * the notes on it.  copy is the line that was read last, of notes the copy of
 * the list; healed: other took its place, else it is lost.
 */

typedef struct {
    FILE                  *file;
    const char            *name;       /* for messages */
    int                    notes;

    unsigned               ended:1;    /* there is no line any more */
    unsigned               healed:1;
    xet_cli_copy_t         copy;
    xet_cli_copy_t         other;
} xet_cli_list_t;


typedef struct {
    uint64_t               size;
    char                   sha256[2 * XET_CLI_SHA256_LEN + 1];
} xet_cli_sum_t;


typedef struct {
    char                   name[XET_CLI_BACKUP_NAME];
    char                   identity[64];
    uint64_t               created;    /* seconds of Unix */
    uint64_t               schema;
    uint64_t               files;      /* rows */
    uint64_t               copies;
    uint64_t               bytes;
    uint64_t               faults;     /* copies that are lost */
    xet_cli_sum_t          dump;
    xet_cli_sum_t          list;
    xet_cli_sum_t          notes;
    xet_cli_sum_t          self;       /* of the manifest */
} xet_cli_manifest_t;


/*
 * Reads copies, compares, and writes them to a place.  Files are complete, but
 * neither durable nor known by their names, until a batch of them is.
 */

typedef struct {
    xet_store_t           *to;         /* or NULL */
    xet_cli_pace_t        *pace;

    uint8_t               *buffer;
    xet_checksum_state_t  *checksum;
    xet_store_writer_t    *writer;     /* of the copy that is read, or NULL */

    uint64_t               done;       /* bytes that were read */
    void                 (*tell)(uint64_t bytes);  /* of them, or NULL */

    unsigned               npending;
    xet_store_writer_t    *pending[XET_CLI_BACKUP_BATCH];
} xet_cli_copier_t;


/* What became of a copy. */

typedef enum {
    XET_CLI_COPY_GOOD = 0,
    XET_CLI_COPY_GONE,                 /* there is no such file */
    XET_CLI_COPY_BAD                   /* its bytes are not those */
} xet_cli_copy_e;


/* A backup that is being made. */

typedef struct {
    const xet_cli_args_t  *args;
    int                    json;
    uint64_t               rate;       /* bytes a second; 0: no limit */
    uint64_t               keep;       /* generations; 0: all */
    xet_store_t           *store;
    xet_store_t           *to;
    int                    dump;       /* file */
    FILE                  *list;
    FILE                  *notes;
    xet_store_writer_t    *files[3];   /* where these will be kept */
    xet_cli_pg_t          *pg;
    xet_cli_pace_t         pace;
    xet_cli_manifest_t     m;
    xet_cli_copier_t       copier;

    xet_cli_list_t         known;      /* the newest generation */
    xet_cli_list_t         unknown;    /* its notes */
    char                   newest[XET_CLI_BACKUP_NAME];

    uint64_t               asked;      /* xet_cli_now() */
    uint64_t               fresh;      /* copies that were not there */
    uint64_t               fresh_bytes;
    uint64_t               damaged;    /* in the store, not in the backup */
    uint64_t               pruned;
} xet_cli_backup_t;


/* xet_cli_copier.c */

int xet_cli_copier_begin(xet_cli_copier_t *c, xet_store_t *to,
    xet_cli_pace_t *pace);
void xet_cli_copier_end(xet_cli_copier_t *c);

/*
 * Reads the copy from a place and compares it with its size and digest, or with
 * its name where it has no digest.  XET_CLI_OK with *what, or an exit code,
 * reported.
 */
int xet_cli_copier_read(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what);

/*
 * The same, and compares it with its name in any case.  *verifier tells what is
 * in a good copy; the caller destroys it, and it is NULL otherwise.
 */
int xet_cli_copier_verify(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what,
    xet_xorb_verifier_t **verifier);

/*
 * Reads the copy in the same way and writes it to the place of the copier,
 * where it replaces a file of its name; a copy that is not good is not written.
 */
int xet_cli_copier_copy(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what);

/* Syncs all that was copied, and gives it its names. */
int xet_cli_copier_flush(xet_cli_copier_t *c);

/* Its size, or UINT64_MAX where there is no such file; the exit code. */
int xet_cli_copier_size(xet_store_t *place, const xet_cli_copy_t *copy,
    uint64_t *size);

/* *there: there is a file of that name and size. */
int xet_cli_copier_there(xet_store_t *place, const xet_cli_copy_t *copy,
    int *there);


/* xet_cli_list.c */

/* The path of a copy below the folder of a store or of a backup. */
const char *xet_cli_copy_path(const xet_cli_copy_t *copy,
    char path[XET_CLI_BACKUP_PATH]);

/* Takes tag, size and digest of a row, three columns from this one on. */
void xet_cli_copy_row(xet_cli_copy_t *copy, const xet_cli_pg_row_t *row,
    int column);

/* Writes the line of a copy. */
void xet_cli_list_put(FILE *file, const xet_cli_copy_t *copy);

/* The order of lists: negative, 0 or positive. */
int xet_cli_list_order(const xet_cli_copy_t *one, const xet_cli_copy_t *two);

int xet_cli_list_open(xet_cli_list_t *l, xet_store_t *place,
    const char *generation, int notes);
void xet_cli_list_close(xet_cli_list_t *l);

/* Reads the next line.  XET_CLI_OK, also at the end, or XET_CLI_FAULT. */
int xet_cli_list_next(xet_cli_list_t *l);

/* Goes on to the copy; *found: it is there.  The same codes. */
int xet_cli_list_find(xet_cli_list_t *l, const xet_cli_copy_t *copy,
    int *found);


/* xet_cli_manifest.c */

/* Size and SHA-256 of an open file, from its start. */
int xet_cli_manifest_sum(int fd, const char *name, xet_cli_sum_t *sum);

/* The manifest as a text, malloc()ed; NULL without memory, reported. */
char *xet_cli_manifest_text(const xet_cli_manifest_t *m);

/*
 * Reads the manifest of a generation and compares the files that it names.
 * XET_CLI_FAULT, reported, where they are not what it says.
 */
int xet_cli_manifest_read(xet_store_t *place, const char *generation,
    xet_cli_manifest_t *m);

/* The same without the dump, which may be large. */
int xet_cli_manifest_lists(xet_store_t *place, const char *generation,
    xet_cli_manifest_t *m);

/*
 * The names of the generations that are complete, the oldest first;
 * malloc()ed, one block.  -1 on an error, reported.
 */
int xet_cli_manifest_all(xet_store_t *place,
    char (**names)[XET_CLI_BACKUP_NAME]);

/* The path of a file of a generation. */
const char *xet_cli_manifest_path(const char *generation, const char *suffix,
    char path[XET_CLI_BACKUP_PATH]);


/* xet_cli_backup_to.c */

/*
 * Opens the place for the store of b->m, one at a time: it is empty or a
 * backup of this store.
 */
int xet_cli_backup_to(xet_cli_backup_t *b, const char *name);

/*
 * Drops what a backup has left that was broken off, but for its copies, and
 * opens the newest generation.
 */
int xet_cli_backup_clear(xet_cli_backup_t *b);

#define XET_CLI_BACKUP_MARK    "xet backup of the store "


/* xet_cli_backup_copies.c */

/* All copies of the list into the backup, durable. */
int xet_cli_backup_copies(xet_cli_backup_t *b);


/* xet_cli_backup_check.c */

/* xet backup --verify. */
int xet_cli_backup_check(const xet_cli_args_t *args, xet_store_t *place);


/* xet_cli_backup_prune.c */

/*
 * Removes all but the newest generations, and then the copies that none of
 * them has; nothing while somebody reads the backup.
 */
int xet_cli_backup_prune(xet_store_t *place, uint64_t keep,
    uint64_t *removed);


/* xet_cli_backup_run.c */

/*
 * Refuses "-", which names no backup, and says what to do instead.  XET_CLI_OK,
 * or XET_CLI_USAGE, reported.
 */
int xet_cli_backup_operand(const char *name, const char *instead);

/*
 * Runs a program of PostgreSQL and waits for it.  The option -d and the
 * connection of the session follow the arguments; the password goes by the
 * environment, and that of a key by a file in memory.  in is the standard input
 * of the program, -1: that of this one; out is its standard output, -1: the
 * standard error of this one.
 */
int xet_cli_backup_run(const char *const *argv, int in, int out,
    xet_cli_pg_t *pg);

/*
 * Keeps a backup that is read as it is, until this program ends: nobody removes
 * generations.
 */
int xet_cli_backup_reads(xet_store_t *place);

/*
 * Has the row of a xorb, and all terms, lead to this copy, which info
 * describes, if they lead to the one of the old tag still.  *the_tag: where
 * they lead then.  It waits for who has the xorb or its files locked.
 */
int xet_cli_backup_heal(xet_cli_pg_t *pg, uint32_t old_tag,
    const xet_cli_copy_t *copy, const xet_xorb_info_t *info,
    uint32_t *the_tag);


#endif /* _XET_CLI_BACKUP_H_INCLUDED_ */
