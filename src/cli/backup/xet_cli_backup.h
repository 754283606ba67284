
/*
 * Backups of a database and its store.
 *
 * The folder of a backup:
 *
 *     backup                          the identity of the store
 *     xorbs/default/<aa>/<hash>.<tag> copies, named as in the store
 *     generations/<time>.dump         pg_dump -Fc
 *     generations/<time>.list         the copies that the dump refers to
 *     generations/<time>.notes        copies that are missing, and why
 *     generations/<time>.json         the manifest, written last
 *     tmp/                            incomplete files
 *     lock, readers                   locks of the writer and of readers
 *
 * A generation exists when its manifest does.  The manifest has the SHA-256 of
 * the three other files, and the list has size and digest of each copy: so it
 * is a digest of everything.  Copies are shared by all generations, since a
 * name in a store never gets other bytes.
 *
 * A list is sorted by the folders of the store, and within a folder by hash.
 * Several lists are read in parallel; none is held in memory.
 */

#ifndef _XET_CLI_BACKUP_H_INCLUDED_
#define _XET_CLI_BACKUP_H_INCLUDED_


#include <sys/types.h>

#include "xet_cli_verify.h"


#define XET_CLI_BACKUP_FORMAT  1
#define XET_CLI_BACKUP_BATCH   64      /* files synced together */
#define XET_CLI_BACKUP_PATH    128     /* bytes of a path, with the zero byte */
#define XET_CLI_BACKUP_NAME    32      /* bytes of a generation name,
                                          likewise */

#define XET_CLI_BACKUP_COPIES  "xorbs/default"
#define XET_CLI_BACKUP_READERS "readers"

/* While it is held in shared mode, copies are not removed: xet.gc_copies(). */

#define XET_CLI_BACKUP_LOCK    "(hashtext('xet.copies'), 0)"

/* For a session that must hold a lock as long as the command runs. */

#define XET_CLI_BACKUP_PATIENCE                                               \
    "SET statement_timeout = 0; SET lock_timeout = 0;"                        \
    " SET idle_session_timeout = 0;"                                          \
    " SET idle_in_transaction_session_timeout = 0;"


/* A copy in a list; digested is 0 if its row has no digest. */

typedef struct {
    xet_hash_t             hash;
    uint32_t               tag;
    uint64_t               size;
    unsigned               digested:1;
    xet_checksum_t         digest;
} xet_cli_copy_t;


/*
 * A file of lines that is read once: a list, or with notes set the notes on
 * it. copy is the last line read; of notes, the copy on the list. healed:
 * other replaced it, else it is lost.
 */

typedef struct {
    FILE                  *file;
    const char            *name;       /* for messages */
    int                    notes;

    unsigned               ended:1;    /* at the end */
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
 * Reads copies, compares them, and writes them to a place.  Files are
 * complete, but neither durable nor visible by their names, until their batch
 * is flushed.
 */

typedef struct {
    xet_store_t           *to;         /* or NULL */
    xet_cli_pace_t        *pace;

    uint8_t               *buffer;
    xet_checksum_state_t  *checksum;
    xet_store_writer_t    *writer;     /* of the copy being read, or NULL */

    uint64_t               done;       /* bytes read */
    void                 (*tell)(uint64_t bytes);  /* gets done; or NULL */

    unsigned               npending;
    xet_store_writer_t    *pending[XET_CLI_BACKUP_BATCH];
} xet_cli_copier_t;


/* The state of a copy. */

typedef enum {
    XET_CLI_COPY_GOOD = 0,
    XET_CLI_COPY_GONE,                 /* the file is missing */
    XET_CLI_COPY_BAD                   /* the bytes are wrong */
} xet_cli_copy_e;


/* A backup in progress. */

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
    xet_store_writer_t    *files[3];   /* writers of these three */
    xet_cli_pg_t          *pg;
    xet_cli_pace_t         pace;
    xet_cli_manifest_t     m;
    xet_cli_copier_t       copier;

    xet_cli_list_t         known;      /* the newest generation */
    xet_cli_list_t         unknown;    /* its notes */
    char                   newest[XET_CLI_BACKUP_NAME];

    uint64_t               asked;      /* xet_cli_now() */
    uint64_t               fresh;      /* copies that are new */
    uint64_t               fresh_bytes;
    uint64_t               damaged;    /* bad in the store, good in the
                                          backup */
    uint64_t               pruned;
} xet_cli_backup_t;


/* xet_cli_copier.c */

int xet_cli_copier_begin(xet_cli_copier_t *c, xet_store_t *to,
    xet_cli_pace_t *pace);
void xet_cli_copier_end(xet_cli_copier_t *c);

/*
 * Reads a copy from a place and compares it with its size and digest, or with
 * its name if it has no digest.  Returns XET_CLI_OK with *what, or an exit
 * code, reported.
 */
int xet_cli_copier_read(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what);

/*
 * The same, but always compares it with its name.  *verifier describes a good
 * copy, and the caller destroys it; otherwise it is NULL.
 */
int xet_cli_copier_verify(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what,
    xet_xorb_verifier_t **verifier);

/*
 * Reads the copy in the same way and writes it to the place of the copier,
 * replacing a file of that name; a copy that is not good is not written.
 */
int xet_cli_copier_copy(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what);

/* Syncs all files of the batch, and gives them their names. */
int xet_cli_copier_flush(xet_cli_copier_t *c);

/*
 * Reads the size of a copy, UINT64_MAX if it is missing.  Returns the exit
 * code.
 */
int xet_cli_copier_size(xet_store_t *storage, const xet_cli_copy_t *copy,
    uint64_t *size);

/* *there: a file of that name and size exists. */
int xet_cli_copier_there(xet_store_t *storage, const xet_cli_copy_t *copy,
    int *there);


/* xet_cli_list.c */

/* The path of a copy below the folder of a store or of a backup. */
const char *xet_cli_copy_path(const xet_cli_copy_t *copy,
    char path[XET_CLI_BACKUP_PATH]);

/* Takes tag, size and digest from three columns of a row. */
void xet_cli_copy_row(xet_cli_copy_t *copy, const xet_cli_pg_row_t *row,
    int column);

/* Writes the line of a copy. */
void xet_cli_list_put(FILE *file, const xet_cli_copy_t *copy);

/* Compares by the order of lists: negative, 0 or positive. */
int xet_cli_list_order(const xet_cli_copy_t *one, const xet_cli_copy_t *two);

int xet_cli_list_open(xet_cli_list_t *l, xet_store_t *storage,
    const char *generation, int notes);
void xet_cli_list_close(xet_cli_list_t *l);

/*
 * Reads the next line.  Returns XET_CLI_OK, also at the end; or XET_CLI_FAULT.
 */
int xet_cli_list_next(xet_cli_list_t *l);

/* Advances to the copy; *found: it is on the list.  Returns the same codes. */
int xet_cli_list_find(xet_cli_list_t *l, const xet_cli_copy_t *copy,
    int *found);


/* xet_cli_manifest.c */

/* Computes size and SHA-256 of an open file, from its start. */
int xet_cli_manifest_sum(int fd, const char *name, xet_cli_sum_t *sum);

/* Returns the text of a manifest, malloc()ed; NULL: no memory, reported. */
char *xet_cli_manifest_text(const xet_cli_manifest_t *m);

/*
 * Reads the manifest of a generation and checks the files that it names.
 * Returns XET_CLI_FAULT, reported, if they do not match.
 */
int xet_cli_manifest_read(xet_store_t *storage, const char *generation,
    xet_cli_manifest_t *m);

/* The same without the dump, which may be large. */
int xet_cli_manifest_lists(xet_store_t *storage, const char *generation,
    xet_cli_manifest_t *m);

/*
 * Returns the number of complete generations, and their names, the oldest
 * first, as one malloc()ed block; -1 on an error, reported.
 */
int xet_cli_manifest_all(xet_store_t *storage,
    char (**names)[XET_CLI_BACKUP_NAME]);

/* Writes the path of a file of a generation. */
const char *xet_cli_manifest_path(const char *generation, const char *suffix,
    char path[XET_CLI_BACKUP_PATH]);


/* xet_cli_backup_to.c */

/*
 * Opens and locks the place of the backup: it must be empty or a backup of the
 * store of b->m.
 */
int xet_cli_backup_to(xet_cli_backup_t *b, const char *name);

/*
 * Removes what an interrupted backup has left, except copies, and opens the
 * newest generation.
 */
int xet_cli_backup_clear(xet_cli_backup_t *b);

#define XET_CLI_BACKUP_MARK    "xet backup of the store "


/* xet_cli_backup_copies.c */

/* Puts all copies of the list into the backup, durably. */
int xet_cli_backup_copies(xet_cli_backup_t *b);


/* xet_cli_backup_check.c */

/* xet backup --verify. */
int xet_cli_backup_check(const xet_cli_args_t *args, xet_store_t *storage);


/* xet_cli_backup_prune.c */

/*
 * Removes all but the newest generations, and then the copies that none of
 * them lists; nothing while the backup is being read.
 */
int xet_cli_backup_prune(xet_store_t *storage, uint64_t keep,
    uint64_t *removed);


/* xet_cli_backup_run.c */

/*
 * Rejects "-", which is not a backup, and says what to do instead.  Returns
 * XET_CLI_OK, or XET_CLI_USAGE, reported.
 */
int xet_cli_backup_operand(const char *name, const char *instead);

/*
 * Runs a program of PostgreSQL and waits for it.  The option -d and the
 * connection of the session are appended to the arguments.  The password is
 * passed in the environment, other secrets in a file in memory. in is the
 * standard input of the program, -1: that of this one; out is its standard
 * output, -1: the standard error of this one.
 */
int xet_cli_backup_run(const char *const *argv, int in, int out,
    xet_cli_pg_t *pg);

/*
 * Locks a backup for reading, until this program ends: its generations are not
 * removed.
 */
int xet_cli_backup_reads(xet_store_t *storage);

/*
 * Makes the row of a xorb, and all terms, refer to this copy, which info
 * describes, if they still refer to the copy of the old tag.  *the_tag is the
 * tag that they have then.  Waits for sessions that have the xorb or its files
 * locked.
 */
int xet_cli_backup_heal(xet_cli_pg_t *pg, uint32_t old_tag,
    const xet_cli_copy_t *copy, const xet_xorb_info_t *info,
    uint32_t *the_tag);


#endif /* _XET_CLI_BACKUP_H_INCLUDED_ */
