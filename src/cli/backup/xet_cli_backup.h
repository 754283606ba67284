
/*
 * Backups of a database and its store.  Layout of a backup:
 *
 *     backup                          identity of the store
 *     xorbs/default/<aa>/<hash>.<copy id> copies, named as in the store
 *     generations/<time>.dump         pg_dump -Fc
 *     generations/<time>.list         copies that the dump refers to
 *     generations/<time>.notes        listed copies that are lost or replaced
 *     generations/<time>.json         manifest, written last
 *     tmp/                            incomplete files
 *     lock, readers                   locks of the writer and of the readers
 *
 * A generation exists when its manifest exists.  The manifest has the SHA-256
 * of the three other files, and the list has the size and digest of each copy,
 * so the manifest verifies the whole generation.  Generations share copies: a
 * name in a store always refers to the same bytes.
 *
 * A list is sorted by the folders of the store, and within a folder by hash.
 * Lists are compared line by line; no list is held in memory.
 */

#ifndef _XET_CLI_BACKUP_H_INCLUDED_
#define _XET_CLI_BACKUP_H_INCLUDED_


#include <sys/types.h>

#include "xet_cli_verify.h"


#define XET_CLI_BACKUP_FORMAT  1
#define XET_CLI_BACKUP_BATCH   64      /* maximum number of files in a batch */
#define XET_CLI_BACKUP_PATH    128     /* size of a path with its zero byte */
#define XET_CLI_BACKUP_NAME    32      /* generation name with its zero byte */

#define XET_CLI_BACKUP_COPIES  "xorbs/default"
#define XET_CLI_BACKUP_READERS "readers"

/*
 * Arguments for the advisory lock functions of PostgreSQL.  While a session
 * holds this lock in shared mode, xet.gc_copies() returns no copies to remove.
 */

#define XET_CLI_BACKUP_LOCK    "(hashtext('xet.copies'), 0)"

/*
 * Disables timeouts in a session that must hold a lock as long as the command
 * runs.
 */

#define XET_CLI_BACKUP_PATIENCE                                               \
    "SET statement_timeout = 0; SET lock_timeout = 0;"                        \
    " SET idle_session_timeout = 0;"                                          \
    " SET idle_in_transaction_session_timeout = 0;"


/* A line of a list: a copy of a xorb. */

typedef struct {
    xet_hash_t             hash;
    uint32_t               copy_id;
    uint64_t               size;
    unsigned               digested:1; /* digest is set */
    xet_checksum_t         digest;
} xet_cli_copy_t;


/*
 * A reader of the list of a generation, or of its notes if notes is set.
 * Reads the file once, line by line.  A line of the notes records that a
 * listed copy is lost, or that another copy of the same xorb has replaced it.
 */

typedef struct {
    FILE                  *file;
    const char            *name;       /* name shown in messages */
    int                    notes;

    unsigned               ended:1;    /* the end of the file was reached */
    unsigned               healed:1;   /* notes only.  1: other has replaced
                                          copy; 0: copy is lost */
    xet_cli_copy_t         copy;       /* the copy of the last line read */
    xet_cli_copy_t         other;      /* valid if healed is 1 */
} xet_cli_list_t;


typedef struct {
    uint64_t               size;
    char                   sha256[2 * XET_CLI_SHA256_LEN + 1];
} xet_cli_sum_t;


typedef struct {
    char                   name[XET_CLI_BACKUP_NAME];
    char                   identity[64];
    uint64_t               created;    /* seconds since 1970 */
    uint64_t               schema;     /* number of the newest migration */
    uint64_t               files;      /* rows of xet.files */
    uint64_t               copies;     /* copies on the list */
    uint64_t               bytes;      /* total size of these copies */
    uint64_t               faults;     /* number of lost copies */
    xet_cli_sum_t          dump;
    xet_cli_sum_t          list;
    xet_cli_sum_t          notes;
    xet_cli_sum_t          self;       /* the manifest itself */
} xet_cli_manifest_t;


/*
 * Reads copies, verifies their bytes, and writes them to a store or backup.  A
 * written file becomes durable and gets its name when its batch is flushed.
 * Each thread has its own copier.
 */

typedef struct {
    xet_store_t           *to;         /* NULL: read only */
    xet_cli_pace_t        *pace;

    uint8_t               *buffer;
    xet_checksum_state_t  *checksum;
    xet_store_writer_t    *writer;     /* file being written, or NULL */

    uint64_t               done;       /* bytes read */
    uint64_t               before;     /* bytes read before this copy */
    void                 (*tell)(uint64_t bytes);  /* reports the bytes read of
                                                      this copy; or NULL */

    /* the batch: files that are written, but not flushed */

    unsigned               npending;
    xet_store_writer_t    *pending[XET_CLI_BACKUP_BATCH];
} xet_cli_copier_t;


/* The state of a copy in a store or backup. */

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
    uint64_t               keep;       /* generations to keep; 0: all */
    xet_store_t           *store;      /* source */
    xet_store_t           *to;         /* target */
    int                    dump;       /* descriptor, or -1 */
    FILE                  *list;
    FILE                  *notes;
    xet_store_writer_t    *files[3];   /* writers of dump, list and notes */
    xet_cli_pg_t          *pg;
    xet_cli_pace_t         pace;
    xet_cli_manifest_t     m;
    xet_cli_copier_t       copier;

    xet_cli_list_t         known;      /* list of the newest generation */
    xet_cli_list_t         unknown;    /* notes of the newest generation */
    char                   newest[XET_CLI_BACKUP_NAME];  /* generation name */

    uint64_t               asked;      /* time of the last ping, in ms */
    uint64_t               fresh;      /* number of new copies */
    uint64_t               fresh_bytes;
    uint64_t               damaged;    /* copies that are bad in the store,
                                          but good in the backup */
    uint64_t               pruned;     /* number of removed copies */
} xet_cli_backup_t;


/* xet_cli_copier.c */

/*
 * xet_cli_copier_begin() returns XET_CLI_OK, or XET_CLI_ERROR after printing
 * the error.  xet_cli_copier_end() frees the copier and discards files that
 * are not flushed.
 */
int xet_cli_copier_begin(xet_cli_copier_t *c, xet_store_t *to,
    xet_cli_pace_t *pace);
void xet_cli_copier_end(xet_cli_copier_t *c);

/*
 * Reads a copy from a store or backup, and compares its bytes with copy->size
 * and copy->digest; without a digest, verifies the bytes against copy->hash.
 * Returns XET_CLI_OK and sets *what, or returns an exit code after printing
 * the error.
 */
int xet_cli_copier_read(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what);

/*
 * Like xet_cli_copier_read(), but also verifies a copy with a digest against
 * copy->hash.  For XET_CLI_COPY_GOOD, *verifier has the layout of the xorb,
 * and the caller destroys the verifier; otherwise *verifier is NULL.
 */
int xet_cli_copier_verify(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what,
    xet_xorb_verifier_t **verifier);

/*
 * Like xet_cli_copier_read(), but also writes the copy to c->to, where it
 * replaces a file of the same name.  Only an intact copy is written.
 */
int xet_cli_copier_copy(xet_cli_copier_t *c, xet_store_t *from,
    const xet_cli_copy_t *copy, xet_cli_copy_e *what);

/*
 * Syncs all files of the batch, and gives them their names.  Returns
 * XET_CLI_OK, or an exit code after printing the error.
 */
int xet_cli_copier_flush(xet_cli_copier_t *c);

/*
 * Sets *size to the size of a copy in a store or backup, or to UINT64_MAX if
 * the copy is missing.  Returns XET_CLI_OK, or an exit code after printing the
 * error.
 */
int xet_cli_copier_size(xet_store_t *storage, const xet_cli_copy_t *copy,
    uint64_t *size);

/*
 * Sets *there to 1 if the store or backup has a file with the name and the size
 * of the copy, else to 0.  Returns the same codes as xet_cli_copier_size().
 */
int xet_cli_copier_there(xet_store_t *storage, const xet_cli_copy_t *copy,
    int *there);


/* xet_cli_list.c */

/* Writes the path of a copy below a store or a backup; returns path. */
const char *xet_cli_copy_path(const xet_cli_copy_t *copy,
    char path[XET_CLI_BACKUP_PATH]);

/* Sets copy id, size and digest from three columns of a row, in this order. */
void xet_cli_copy_row(xet_cli_copy_t *copy, const xet_cli_pg_row_t *row,
    int column);

/* Writes a copy as a line of a list. */
void xet_cli_list_put(FILE *file, const xet_cli_copy_t *copy);

/*
 * Compares two copies in the order of a list.  Returns a negative number, 0 or
 * a positive number, like memcmp().
 */
int xet_cli_list_order(const xet_cli_copy_t *one, const xet_cli_copy_t *two);

/*
 * Opens the list, or the notes, of a generation, and reads the first line.
 * Returns XET_CLI_OK, or an exit code after printing the error.  The caller
 * calls xet_cli_list_close() in any case.
 */
int xet_cli_list_open(xet_cli_list_t *l, xet_store_t *storage,
    const char *generation, int notes);
void xet_cli_list_close(xet_cli_list_t *l);

/*
 * Reads the next line; sets l->ended at the end.  Returns XET_CLI_OK, or after
 * printing the error XET_CLI_FAULT for an invalid line, XET_CLI_ERROR for a
 * read error.
 */
int xet_cli_list_next(xet_cli_list_t *l);

/*
 * Reads lines up to the position where the sorted list would have the copy.
 * Sets *found to 1 if the list has the copy, else to 0.  Returns the same
 * codes as xet_cli_list_next().
 */
int xet_cli_list_find(xet_cli_list_t *l, const xet_cli_copy_t *copy,
    int *found);


/* xet_cli_manifest.c */

/*
 * Computes the size and the SHA-256 of an open file, from its start; name is
 * for messages.  Returns the same codes as xet_cli_sha256().
 */
int xet_cli_manifest_sum(int fd, const char *name, xet_cli_sum_t *sum);

/*
 * Returns the text of a manifest, malloc()ed, or NULL if out of memory, after
 * printing the error.
 */
char *xet_cli_manifest_text(const xet_cli_manifest_t *m);

/*
 * Reads the manifest of a generation, and compares dump, list and notes with
 * their sizes and SHA-256 in the manifest.  Returns XET_CLI_OK, or an exit
 * code after printing the error: XET_CLI_FAULT if a file is missing or
 * different.
 */
int xet_cli_manifest_read(xet_store_t *storage, const char *generation,
    xet_cli_manifest_t *m);

/*
 * Like xet_cli_manifest_read(), but does not read the dump, which may be
 * large.
 */
int xet_cli_manifest_lists(xet_store_t *storage, const char *generation,
    xet_cli_manifest_t *m);

/*
 * Returns the number of complete generations, and sets *names to their names,
 * the oldest first, in one malloc()ed block.  Returns -1 after printing the
 * error.
 */
int xet_cli_manifest_all(xet_store_t *storage,
    char (**names)[XET_CLI_BACKUP_NAME]);

/* Writes the path of a file of a generation; returns path. */
const char *xet_cli_manifest_path(const char *generation, const char *suffix,
    char path[XET_CLI_BACKUP_PATH]);


/* xet_cli_backup_to.c */

/*
 * Opens and locks the target of the backup, b->to.  The target must be empty,
 * or a backup of the store with the identity b->m.identity.  Returns
 * XET_CLI_OK, or an exit code after printing the error.
 */
int xet_cli_backup_to(xet_cli_backup_t *b, const char *name);

/*
 * Removes the files that an interrupted backup has left, except copies, and
 * opens the newest generation.  Returns XET_CLI_OK, or an exit code after
 * printing the error.
 */
int xet_cli_backup_clear(xet_cli_backup_t *b);

#define XET_CLI_BACKUP_MARK    "xet backup of the store "


/* xet_cli_backup_copies.c */

/*
 * Saves all listed copies in the backup, durably.  Returns XET_CLI_OK, even if
 * some copies are lost; or an exit code after printing the error.
 */
int xet_cli_backup_copies(xet_cli_backup_t *b);


/* xet_cli_backup_check.c */

/*
 * Runs xet backup --verify.  Returns XET_CLI_OK, XET_CLI_FAULT if the backup
 * is damaged, or another exit code.
 */
int xet_cli_backup_check(const xet_cli_args_t *args, xet_store_t *storage);


/* xet_cli_backup_prune.c */

/*
 * Keeps the newest "keep" generations, and removes the older generations.
 * Then removes the copies that no remaining generation lists.  *removed is the
 * number of removed copies.  Removes nothing while another command reads the
 * backup.  Returns XET_CLI_OK, or an exit code after printing the error.
 */
int xet_cli_backup_prune(xet_store_t *storage, uint64_t keep,
    uint64_t *removed);


/* xet_cli_backup_run.c */

/*
 * Rejects the operand "-", and prints what to do instead.  Returns XET_CLI_OK,
 * or XET_CLI_USAGE after printing the error.
 */
int xet_cli_backup_operand(const char *name, const char *instead);

/*
 * Runs a PostgreSQL program, such as pg_dump, and waits for it to exit.  The
 * options -w and -d with the connection string of pg are appended to argv.
 * The password is passed in the environment, other secrets in a memfd.
 *
 * in is the descriptor of the program's standard input; -1: the standard input
 * of xet.  out is the descriptor of its standard output; -1: the standard
 * error of xet.  Returns XET_CLI_OK, XET_CLI_INTERRUPTED after a signal, or
 * XET_CLI_ERROR after printing the error.
 */
int xet_cli_backup_run(const char *const *argv, int in, int out,
    xet_cli_pg_t *pg);

/*
 * Locks a backup for reading until this process ends, so that no generation is
 * removed.  Returns XET_CLI_OK, or an exit code after printing the error.
 */
int xet_cli_backup_reads(xet_store_t *storage);

/*
 * If the row of a xorb still refers to the copy with old_copy_id, makes the
 * row and all terms of the xorb refer to "copy".  info is the layout of
 * "copy".  *the_copy_id is the copy id of the row after the call.  Waits for
 * sessions that have locked the xorb or its files.  Returns XET_CLI_OK, or an
 * exit code after printing the error.
 */
int xet_cli_backup_heal(xet_cli_pg_t *pg, uint32_t old_copy_id,
    const xet_cli_copy_t *copy, const xet_xorb_info_t *info,
    uint32_t *the_copy_id);


#endif /* _XET_CLI_BACKUP_H_INCLUDED_ */
