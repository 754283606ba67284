
/*
 * Declarations that all verbs of the command line share: exit codes and
 * messages, options, output, stores, JSON, digests.
 */

#ifndef _XET_CLI_H_INCLUDED_
#define _XET_CLI_H_INCLUDED_


#include <jansson.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "xet_store.h"


/*
 * Exit codes and error messages.
 *
 * The function that detects an error prints one line on the standard error and
 * returns the exit code.  Its callers do not print the error again.
 */


#define XET_CLI_OK           0
#define XET_CLI_FAULT        1         /* data is wrong or missing */
#define XET_CLI_USAGE        2
#define XET_CLI_ERROR        3         /* file, memory or database error */
#define XET_CLI_NETWORK      4         /* network or server error */
#define XET_CLI_INTERRUPTED  130       /* 128 + SIGINT, as in shells */
#define XET_CLI_CLOSED       141       /* 128 + SIGPIPE: pipe is closed */


/*
 * Prints "xet: <name>: <text>" on the standard error, or "xet: <text>" if name
 * is NULL.  Returns code.
 */
int xet_cli_fail(int code, const char *name, const char *text);

/* Like xet_cli_fail(), with a printf() format for the text. */
int xet_cli_failf(int code, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints the error message of errno for name; returns XET_CLI_ERROR. */
int xet_cli_fail_errno(const char *name);

/* Returns the more serious of two exit codes. */
int xet_cli_worse(int a, int b);

/*
 * Flushes the standard output.  Returns XET_CLI_OK; XET_CLI_CLOSED if the
 * reader has closed the pipe; or XET_CLI_ERROR for other failures.  Only the
 * first of these failures is printed.
 */
int xet_cli_flush(void);

/* Prints "out of memory"; returns XET_CLI_ERROR. */
int xet_cli_no_memory(void);


/*
 * Options and operands of the command line.
 *
 * One table has all options; each verb lists the options that it accepts.  If
 * an option is given several times, the last value is used.
 */


/* X(symbol, name, value or NULL, short option or 0, help text) */

#define XET_CLI_OPTION_MAP(X)                                                 \
    X(AUDIENCE, "audience", "TEXT", 0,                                        \
      "the audience of the token (aud)")                                      \
    X(BASE, "base", "URL", 0,                                                 \
      "URL in front of /xorbs/")                                              \
    X(CACERT, "cacert", "FILE", 0,                                            \
      "trust these certificates, not the system's")                           \
    X(CHECK, "check", NULL, 0,                                                \
      "also read the copies that the target has")                             \
    X(DECODED, "decoded", NULL, 0,                                            \
      "output decompressed values")                                           \
    X(DRY_RUN, "dry-run", NULL, 0,                                            \
      "show what would be done, and change nothing")                          \
    X(ENDPOINT, "endpoint", "URL", 0,                                         \
      "URL of the API (or set XET_ENDPOINT)")                                 \
    X(FORCE, "force", NULL, 0,                                                \
      "replace existing data")                                                \
    X(FROM, "from", "STORE", 0,                                               \
      "store to copy from, written as for --store")                           \
    X(GENERATION, "generation", "NAME", 0,                                    \
      "generation of the backup (default: the newest)")                       \
    X(GRACE, "grace", "TIME", 0,                                              \
      "with --dry-run: 0s, 12h or 90d (default: 56d)")                        \
    X(HF, "hf", NULL, 0,                                                      \
      "print the token with the prefix hf_")                                  \
    X(HELP, "help", NULL, 'h',                                                \
      "show this help")                                                       \
    X(HUB, "hub", "URL", 0,                                                   \
      "URL of the Hub (or set HF_ENDPOINT)")                                  \
    X(INDEX, "index", "N", 0,                                                 \
      "select the object by its number, from 0")                              \
    X(INSECURE_TOKEN, "insecure-token", NULL, 0,                              \
      "allow sending tokens without TLS")                                     \
    X(ISSUER, "issuer", "TEXT", 0,                                            \
      "the issuer of the token or subject (iss)")                             \
    X(JSON, "json", NULL, 0,                                                  \
      "print results as JSON, one object per line")                           \
    X(KEEP, "keep", "N", 0,                                                   \
      "generations to keep (default: all)")                                   \
    X(KEY, "key", "FILE", 0,                                                  \
      "key file, as for xet_url_key or xet_token_key")                        \
    X(LIFETIME, "lifetime", "TIME", 0,                                        \
      "90s, 15m, 2h or 7d (default: 1h)")                                     \
    X(MESSAGE, "message", "TEXT", 'm',                                        \
      "message of the commit")                                                \
    X(NAMES, "names", "WHICH", 0,                                             \
      "unsafe names: refuse (default), skip or any")                          \
    X(OLDER, "older", "TIME", 0,                                              \
      "report only orphans older than 1h, 7d, ...")                           \
    X(ORPHANS, "orphans", NULL, 0,                                            \
      "only look for files without a database row")                           \
    X(OUTPUT, "output", "FILE", 'o',                                          \
      "write to FILE; - is the standard output")                              \
    X(PARALLEL, "parallel", "N", 0,                                           \
      "number of transfers or threads")                                       \
    X(POSTGRES, "postgres", "CONNINFO", 0,                                    \
      "connection string (or set XET_POSTGRES)")                              \
    X(PREFIX, "prefix", "TEXT", 0,                                            \
      "only objects whose names start with TEXT")                             \
    X(QUIET, "quiet", NULL, 'q',                                              \
      "do not show a progress bar")                                           \
    X(RANGE, "range", "A-B", 0,                                               \
      "bytes A to B, from 0; for files also A- and -N")                       \
    X(RATE, "rate", "N", 0,                                                   \
      "limit in bytes per second, such as 50m")                               \
    X(RECOUNT, "recount", NULL, 0,                                            \
      "count usage again, and correct it")                                    \
    X(RECURSIVE, "recursive", NULL, 'r',                                      \
      "a folder with its contents, or a manifest")                            \
    X(REPO, "repo", "NAME", 0,                                                \
      "name of the repository")                                               \
    X(RETRIES, "retries", "N", 0,                                             \
      "retries of a failed request (default: 8)")                             \
    X(REVISION, "revision", "NAME", 0,                                        \
      "branch, tag or commit (default: main)")                                \
    X(ROLE, "role", "TEXT", 0,                                                \
      "component of the object")                                              \
    X(ROWS, "rows", "A:B", 0,                                                 \
      "rows A to B of a tensor, without B")                                   \
    X(SCOPE, "scope", "SCOPE", 0,                                             \
      "read, write, delete or admin (default: read)")                         \
    X(SET, "set", "LIMITS", 0,                                                \
      "stored=SIZE,logical=SIZE,metadata=SIZE or none")                       \
    X(SHA256, "sha256", NULL, 0,                                              \
      "check contents against the claimed SHA-256")                           \
    X(SQL, "sql", "DIR", 0,                                                   \
      "folder of the migrations")                                             \
    X(STORE, "store", "STORE", 0,                                             \
      "folder, or arguments of xet_store (or XET_STORE)")                     \
    X(SUBJECT, "subject", "TEXT", 0,                                          \
      "the subject: the user of the token (sub)")                             \
    X(TO, "to", "STORE", 0,                                                   \
      "store to copy to, written as for --store")                             \
    X(TOKEN_FILE, "token-file", "FILE", 0,                                    \
      "file with the access token (or set XET_TOKEN)")                        \
    X(TYPE, "type", "TYPE", 0,                                                \
      "model, dataset, space, bucket (default: model)")                       \
    X(URL, "url", "URL", 0,                                                   \
      "URL that issues tokens")                                               \
    X(VERBOSE, "verbose", NULL, 'v',                                          \
      "print a line for each file of a folder")                               \
    X(VERIFY, "verify", NULL, 0,                                              \
      "read and check a backup, and write nothing")


#define XET_CLI_OPTION_ENUM(symbol, name, value, letter, text)                \
    XET_CLI_OPT_##symbol,

typedef enum {
    XET_CLI_OPTION_MAP(XET_CLI_OPTION_ENUM)
    XET_CLI_OPT_MAX
} xet_cli_option_t;

#undef XET_CLI_OPTION_ENUM


typedef struct {
    const char  *name;
    const char  *value;                /* placeholder in help; NULL: a flag */
    int          letter;
    const char  *text;
} xet_cli_option_row_t;


extern const xet_cli_option_row_t  xet_cli_options[XET_CLI_OPT_MAX];


typedef struct {
    const char   *value[XET_CLI_OPT_MAX];   /* NULL: not given */
    char        **operands;
    int           count;
    const char   *verb;
} xet_cli_args_t;


#define xet_cli_quiet(args)    ((args)->value[XET_CLI_OPT_QUIET] != NULL)
#define xet_cli_verbose(args)  ((args)->value[XET_CLI_OPT_VERBOSE] != NULL)


/*
 * Sets *number to the value of an option, from min to max, or to def if the
 * option is not given.  Returns XET_CLI_OK, or XET_CLI_USAGE after printing
 * the error.
 */
int xet_cli_args_number(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t min, uint64_t max, uint64_t def, uint64_t *number);

/*
 * Sets *seconds to the value of an option, such as "90", "90s", "15m", "2h" or
 * "7d", from 1 second to 36,500 days, or to def if the option is not given.
 * Returns XET_CLI_OK, or XET_CLI_USAGE after printing the error.
 */
int xet_cli_args_time(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t def, uint64_t *seconds);

/*
 * Sets *bytes to the value of an option, such as "500", "100k", "50m" or "1g",
 * or to 0 if the option is not given.  Returns XET_CLI_OK, or XET_CLI_USAGE
 * after printing the error.
 */
int xet_cli_args_bytes(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t *bytes);

/*
 * Parses a hash into an xet_hash_t.  Returns XET_CLI_OK, or XET_CLI_USAGE
 * after printing the error.
 */
int xet_cli_args_hash(const char *text, void *hash);


/*
 * Verbs.
 *
 * The function of a verb gets the options and operands, prints its results to
 * the standard output and returns an exit code.
 */


#define XET_CLI_VERSION  XET_VERSION


#define XET_CLI_VERB(name, run, operands, min, max, options, group, summary,  \
                     text, examples)                                          \
    int run(const xet_cli_args_t *args);

#include "verbs.def"

#undef XET_CLI_VERB

/*
 * Variants of verbs for operands that are not Hub names; a verb that also
 * accepts Hub names calls its variant.
 */

int xet_cli_get(const xet_cli_args_t *args);
int xet_cli_get_tree(const xet_cli_args_t *args);
int xet_cli_info(const xet_cli_args_t *args);
int xet_cli_ls(const xet_cli_args_t *args);
int xet_cli_put(const xet_cli_args_t *args);
int xet_cli_rm(const xet_cli_args_t *args);
int xet_cli_verify(const xet_cli_args_t *args);


/* Set on SIGINT, SIGTERM and SIGHUP; long loops end when this flag is set. */
extern volatile sig_atomic_t  xet_cli_interrupted;


/*
 * Grows an array of n elements of size bytes, so that one more element fits;
 * *room is the capacity in elements.  Returns the array, which may have moved,
 * or NULL if out of memory.  After NULL the old array is still valid.
 */
void *xet_cli_grow(void *array, size_t n, size_t *room, size_t size);

/* Writes the 64 hex digits of a hash and a zero byte; returns text. */
const char *xet_cli_hash_string(const xet_hash_t *hash,
    char text[XET_HASH_STR_LEN + 1]);


/*
 * Untrusted strings: file names, server responses, database values.
 *
 * The functions below escape unsafe characters: ASCII and Unicode control
 * characters, line breaks, characters that change the text direction, invalid
 * UTF-8, and the backslash.  Each byte of an unsafe character is printed as
 * \xNN.  In JSON an unsafe character is printed as \uNNNN, and an invalid byte
 * as \ufffd; a backslash is JSON syntax and is not escaped.
 */


/*
 * Escapes as much of the text as fits into size bytes of out, and adds a zero
 * byte.  Characters and escapes are never split.  Returns the number of bytes
 * of text that were consumed.
 */
size_t xet_cli_text_escape(char *out, size_t size, const char *text,
    size_t len);

/* Print len bytes, or a C string ("-" for NULL), escaped. */
void xet_cli_text_write(FILE *out, const char *text, size_t len);
void xet_cli_text_print(FILE *out, const char *text);

/* Prints text that is already JSON; escapes what JSON leaves unescaped. */
void xet_cli_text_json(FILE *out, const char *text, size_t len);

/* Returns 1 if all of the text is valid UTF-8, else 0. */
int xet_cli_text_valid(const char *text, size_t len);


/*
 * Numbers for people: "1,234"; "84.1 MB", in units of 1000; and for a part of
 * a total "33.6/84.1 MB", without the total if that is 0.  Each returns text.
 */
const char *xet_cli_text_count(char *text, size_t size, uint64_t n);
const char *xet_cli_text_size(char *text, size_t size, uint64_t bytes);
const char *xet_cli_text_part(char *text, size_t size, uint64_t bytes,
    uint64_t total);


/*
 * The progress bar: one line on the standard error, if the standard error is a
 * terminal and --quiet is not given.  A process has one progress bar, for a
 * file, for all files of a folder, or for all copies of a store or backup.
 */


/* Returns whether a progress bar would be shown. */
int xet_cli_progress_wanted(int quiet);

/*
 * Begins a progress bar for a file.  total is in bytes, 0 if unknown.  The
 * name is not copied and must stay valid.  Within the progress bar of a
 * folder, begins the next file of the folder.
 */
void xet_cli_progress_begin(int quiet, const char *name, uint64_t total);

/* Sets the number of bytes done; draws at most ten times a second. */
void xet_cli_progress_set(uint64_t done);

/* Sets the total, if it becomes known after xet_cli_progress_begin(). */
void xet_cli_progress_total(uint64_t total);

/*
 * Clears the line, so that a message can be printed.  xet_cli_progress_set()
 * draws the progress bar again.
 */
void xet_cli_progress_clear(void);

void xet_cli_progress_end(void);

/*
 * One progress bar for many items: "files" or "copies".  all is their number,
 * bytes their size; each is 0 if unknown.  xet_cli_progress_set() then sets the
 * bytes of the current item.  xet_cli_progress_item() counts an item that is
 * done, or that needs nothing.  xet_cli_progress_close() ends the progress bar.
 */
void xet_cli_progress_items(int quiet, const char *name, const char *items,
    uint64_t all, uint64_t bytes);
void xet_cli_progress_item(uint64_t size);
void xet_cli_progress_close(void);

/*
 * Adds a text about a retry to the progress bar, or removes it if text is
 * NULL.  Returns 0 if there is no progress bar.
 */
int xet_cli_progress_retry(const char *text);


/*
 * The result of a folder.  xet_cli_total_print() prints one line, such as
 * "NAME: 2,000 files, 84.1 MB, 61.2 MB new, 5.6 s", followed by more and a line
 * break.  name and moved ("new") may be NULL.
 */

typedef struct {
    uint64_t  began;                   /* see xet_cli_now() */
    uint64_t  files;
    uint64_t  bytes;
    uint64_t  moved;                   /* bytes that were sent or received */
} xet_cli_total_t;


void xet_cli_total_begin(xet_cli_total_t *sum);
void xet_cli_total_add(xet_cli_total_t *sum, uint64_t size, uint64_t moved);
int xet_cli_total_print(const xet_cli_total_t *sum, const char *name,
    const char *moved, const char *more);

/* Returns the time of a monotonic clock, in milliseconds. */
uint64_t xet_cli_now(void);


/*
 * Output files, with protection against other users who can write to the same
 * folder, such as /tmp.
 *
 * A file whose name the program chooses is opened without following symbolic
 * links, and must be a regular file of this user with a single link.  Files
 * that other users have created under this name are rejected.
 */


/*
 * Functions that return a descriptor return -1 after printing the error.
 * Names are relative to the descriptor "folder", which may be AT_FDCWD.
 */

/*
 * Returns the target's name with a suffix, malloc()ed; a name that would be
 * too long is shortened.  Returns NULL after printing the error.
 */
char *xet_cli_output_beside(int folder, const char *target,
    const char *suffix);

/* Returns 1 for "-" and for an existing file that is not a regular file. */
int xet_cli_output_special(const char *name);

/*
 * Opens the target of a verb for writing; its name is relative to the current
 * folder.  With special set, opens the standard output for "-", else the pipe
 * or device.  Otherwise creates a temporary file with a random name in the
 * folder of the target, and sets *part to that name, else to NULL.
 */
int xet_cli_output_begin(const char *target, int special, char **part);

/*
 * Ends the output that xet_cli_output_begin() opened.  Syncs the temporary
 * file and renames it to the target; removes it if rc is a failure or a step
 * fails.  Closes fd, unless fd is the standard output, and frees part.
 * Returns rc, or another exit code after printing the error.
 */
int xet_cli_output_finish(int fd, char *part, const char *target, int rc);

/*
 * Syncs the folder that contains the target.  Returns XET_CLI_OK, or
 * XET_CLI_ERROR after printing the error.
 */
int xet_cli_output_sync(int folder, const char *target);

/*
 * Opens the file that an earlier run has left under this name, or creates the
 * file with this mode.  Sets *made to 1 if the file was created, else to 0.
 * Returns the descriptor.
 */
int xet_cli_output_open(int folder, const char *name, mode_t mode,
    int *made);


/*
 * Writes all of the data; name is for messages.  Returns XET_CLI_OK, or
 * XET_CLI_ERROR after printing the error.  Prints nothing and returns
 * XET_CLI_CLOSED if the pipe is closed, XET_CLI_INTERRUPTED after a signal.
 */
int xet_cli_output_write(int fd, const char *name, const uint8_t *data,
    size_t len);


/*
 * Storage: a store or a backup, in a folder or in a bucket.  These functions
 * wrap the functions of xet_store.h and print error messages.
 *
 * A store or backup is specified by a string: the path of a folder, or
 * "s3://bucket[/prefix] endpoint=URL credentials=FILE ...", as in the
 * directive xet_store.
 *
 * Functions that return int return XET_CLI_OK; or an exit code after printing
 * the error; or, without printing anything, one of the codes below.  The
 * caller decides whether such a code is an error, and prints it.
 */

#define XET_CLI_GONE        (-1)       /* the name does not exist */
#define XET_CLI_UNREADABLE  (-2)       /* errno is set; EUCLEAN: not a file */
#define XET_CLI_THERE       (-3)       /* the name already exists */

#define XET_CLI_STORAGE_NAME  256      /* size of a name with its zero byte */
#define XET_CLI_STORAGE_MANY  64       /* maximum number of names per call */
#define XET_CLI_IDENTITY      64       /* size of an identity with zero byte */


/*
 * Handles one name of a list; the name is relative to the listed folder.  Any
 * result other than XET_CLI_OK ends the list.
 */

typedef int (*xet_cli_storage_name_pt)(void *ctx, const char *name);


/* Flags of xet_cli_storage_open() for folders. */

#define XET_CLI_STORAGE_MAKE   1       /* create a missing folder */
#define XET_CLI_STORAGE_OWNED  2       /* as root, give new files to the
                                          owner of the folder */
#define XET_CLI_STORAGE_WAITS  4       /* open a FIFO, which may block;
                                          otherwise FIFOs are rejected */

/*
 * Opens a store or backup, which the caller frees with xet_store_destroy().
 * Returns NULL after printing the error; *rc is the exit code.
 */
xet_store_t *xet_cli_storage_open(const char *text, int flags, int *rc);

/* Reads the identity of a store; sets identity to "" if there is none. */
int xet_cli_storage_identity(xet_store_t *storage,
    char identity[XET_CLI_IDENTITY]);

/*
 * Checks that the store still has this identity; its disk may have been
 * unmounted.  Returns XET_CLI_OK, or an exit code after printing the error.
 */
int xet_cli_storage_still(xet_store_t *storage, const char *identity);

/*
 * xet_cli_storage_bare() prints the error for a store without an identity.
 * xet_cli_storage_other() prints the error for a store whose identity differs
 * from that of the database.  Both functions return XET_CLI_ERROR.
 */
int xet_cli_storage_bare(const xet_store_t *storage);
int xet_cli_storage_other(const xet_store_t *storage);

/*
 * Calls the handler for each name in a folder, in no particular order.
 * Returns the result of the handler; XET_CLI_GONE: the folder does not exist.
 */
int xet_cli_storage_list(xet_store_t *storage, const char *folder,
    xet_cli_storage_name_pt handler, void *ctx);

/*
 * Sets *empty to 1 if the store or backup contains only the names in the array
 * "but", which ends with NULL; else to 0.  The names are files, or folders with
 * their contents.
 */
int xet_cli_storage_empty(xet_store_t *storage, const char *const *but,
    int *empty);

/*
 * Reads the attributes of a name.  XET_CLI_GONE: the name does not exist, or
 * is not a regular file.
 */
int xet_cli_storage_stat(xet_store_t *storage, const char *name,
    xet_store_item_t *item);

/*
 * xet_cli_storage_link() adds the second name "to" to a file.
 * xet_cli_storage_back() renames a file from its name in quarantine to its
 * original name.  XET_CLI_GONE: from or quarantine does not exist.
 */
int xet_cli_storage_link(xet_store_t *storage, const char *from,
    const char *to);
int xet_cli_storage_back(xet_store_t *storage, const char *quarantine,
    const char *name);

/*
 * Remove one name, or up to XET_CLI_STORAGE_MANY names.  A missing name is not
 * an error.
 */
int xet_cli_storage_remove(xet_store_t *storage, const char *name);
int xet_cli_storage_remove_all(xet_store_t *storage,
    char (*names)[XET_CLI_STORAGE_NAME], size_t n);

/* Makes the names in a folder durable; NULL: all folders. */
int xet_cli_storage_sync(xet_store_t *storage, const char *folder);

/* Makes the names in all folders of copies durable. */
int xet_cli_storage_settle(xet_store_t *storage);

/* Removes files of interrupted uploads that are at least age seconds old. */
int xet_cli_storage_sweep(xet_store_t *storage, uint64_t age);

/*
 * xet_cli_storage_make() creates a folder; in a bucket it does nothing.
 * xet_cli_storage_folders() creates all folders of copies.
 */
int xet_cli_storage_make(xet_store_t *storage, const char *folder);
int xet_cli_storage_folders(xet_store_t *storage);

/*
 * Locks a file until this process ends; a missing file is created.  Sets *had
 * to 0 if another process holds the lock, else to 1.  Buckets have no locks:
 * *had is always 1.
 */
int xet_cli_storage_lock(xet_store_t *storage, const char *name,
    int exclusive, int *had);

/*
 * Open, read and close a file of a store or backup.  A read may start at any
 * offset; reader->size is the size of the file.  *n is the number of bytes
 * read, less than len only at the end of the file.
 */
int xet_cli_reader_open(xet_store_t *storage, const char *name,
    xet_store_reader_t **reader);
int xet_cli_reader_read(xet_store_reader_t *reader, uint8_t *buf, size_t len,
    uint64_t offset, size_t *n);
void xet_cli_reader_close(xet_store_reader_t *reader);

/*
 * Reads the first line of a file.  XET_CLI_GONE: the file does not exist or is
 * empty.
 */
int xet_cli_storage_line(xet_store_t *storage, const char *name, char *line,
    size_t size);

/*
 * Opens a file for reading and sets *fd to its descriptor.  A file in a bucket
 * is first downloaded to a temporary file.
 */
int xet_cli_storage_fetch(xet_store_t *storage, const char *name, int *fd);

/*
 * Write a file; xet_cli_writer_keep() gives the file its name.  After that
 * call the bytes are durable; the name is durable after a sync of its folder.
 * If replace is set, an existing file is replaced; XET_CLI_THERE: replace is
 * not set, and the name exists.  xet_cli_writer_keep() and
 * xet_cli_writer_drop() free the writer.  The caller may also write to
 * writer->fd.
 */
int xet_cli_writer_open(xet_store_t *storage, const char *name,
    xet_store_writer_t **writer);
int xet_cli_writer_write(xet_store_writer_t *writer, const uint8_t *data,
    size_t len);
int xet_cli_writer_keep(xet_store_writer_t *writer, int replace);
void xet_cli_writer_drop(xet_store_writer_t *writer);

/*
 * Writes text as a file, durably.  XET_CLI_THERE: the name exists, and replace
 * is not set.
 */
int xet_cli_storage_put(xet_store_t *storage, const char *name,
    const char *text, int replace);

/*
 * Creates a temporary file without a name in folder; NULL: in TMPDIR or
 * /var/tmp.  Returns the descriptor, or -1 after printing the error.
 */
int xet_cli_output_scratch(const char *folder);


/* A rate limit in bytes per second, shared by threads. */

typedef struct {
    pthread_mutex_t  mutex;
    uint64_t         rate;             /* bytes a second; 0: no limit */
    uint64_t         began;            /* start time, see xet_cli_now() */
    uint64_t         moved;            /* bytes since the start */
} xet_cli_pace_t;


void xet_cli_pace_begin(xet_cli_pace_t *pace, uint64_t rate);

/* Counts bytes, and sleeps until the average rate is within the limit. */
void xet_cli_pace_wait(xet_cli_pace_t *pace, uint64_t bytes);


/*
 * JSON.  Results are written as one object per line, with the JSON writer of
 * src/core; responses are parsed by jansson.
 */


typedef struct {
    xet_buf_t   buf;
    xet_json_t  json;
} xet_cli_json_t;


/* Begins the object of a line; returns the JSON writer for its members. */
xet_json_t *xet_cli_json_begin(xet_cli_json_t *o);

/* Writes a hash as a member, like the xet_json_put_...() functions. */
void xet_cli_json_put_hash(xet_json_t *j, const char *key,
    const xet_hash_t *hash);

/*
 * Ends the object, prints it as a line, escaped for a terminal, and frees the
 * buffer.  Returns XET_CLI_OK, or the exit code of xet_cli_flush() or
 * xet_cli_no_memory().
 */
int xet_cli_json_end(xet_cli_json_t *o);


/*
 * Prints results, as a JSON object or as text, from one list of members.
 *
 * A member with a key is in the JSON object.  A member with a tail is in the
 * text: its value, padded to width characters, then its tail.  A member with a
 * label is printed as a line "  LABEL VALUE", with the label padded to width.
 *
 * A NULL value of XET_CLI_OUT_TEXT is null in JSON and "-" in text; a member
 * with a label is then omitted from the text.
 */

typedef enum {
    XET_CLI_OUT_TEXT = 0,
    XET_CLI_OUT_BYTES,
    XET_CLI_OUT_NUMBER,
    XET_CLI_OUT_BOOL,
    XET_CLI_OUT_HASH,
    XET_CLI_OUT_END
} xet_cli_out_e;


typedef struct {
    xet_cli_out_e   kind;
    const char     *key;
    const void     *value;             /* string, bytes or hash */
    uint64_t        number;            /* number; or length of bytes */
    int             width;             /* negative: left-aligned */
    const char     *tail;
    const char     *label;
} xet_cli_out_t;


#define xet_cli_out_text(key, text, tail)                                     \
    { XET_CLI_OUT_TEXT, key, text, 0, 0, tail, NULL }
#define xet_cli_out_word(key, text, width, tail)                              \
    { XET_CLI_OUT_TEXT, key, text, 0, width, tail, NULL }
#define xet_cli_out_bytes(key, data, n, width, tail)                          \
    { XET_CLI_OUT_BYTES, key, data, n, width, tail, NULL }
#define xet_cli_out_number(key, n, tail)                                      \
    { XET_CLI_OUT_NUMBER, key, NULL, n, 0, tail, NULL }
#define xet_cli_out_column(key, n, width, tail)                               \
    { XET_CLI_OUT_NUMBER, key, NULL, n, width, tail, NULL }
#define xet_cli_out_bool(key, n)                                              \
    { XET_CLI_OUT_BOOL, key, NULL, n, 0, NULL, NULL }
#define xet_cli_out_hash(key, hash, tail)                                     \
    { XET_CLI_OUT_HASH, key, hash, 0, 0, tail, NULL }
#define xet_cli_out_text_line(key, width, label, text)                        \
    { XET_CLI_OUT_TEXT, key, text, 0, -(width), "\n", label }
#define xet_cli_out_number_line(key, width, label, n)                         \
    { XET_CLI_OUT_NUMBER, key, NULL, n, -(width), "\n", label }
#define xet_cli_out_hash_line(key, width, label, hash)                        \
    { XET_CLI_OUT_HASH, key, hash, 0, -(width), "\n", label }

/*
 * Print members: xet_cli_print() a single result, xet_cli_print_row() one of
 * many rows.  The text of a row is not flushed.
 */

#define xet_cli_print(json, ...)                                              \
    xet_cli_print_members(json, 1, (const xet_cli_out_t[])                    \
        { __VA_ARGS__, { .kind = XET_CLI_OUT_END } })
#define xet_cli_print_row(json, ...)                                          \
    xet_cli_print_members(json, 0, (const xet_cli_out_t[])                    \
        { __VA_ARGS__, { .kind = XET_CLI_OUT_END } })

/*
 * Prints the members up to XET_CLI_OUT_END.  Returns XET_CLI_OK, or the exit
 * code of xet_cli_flush() or xet_cli_no_memory().
 */
int xet_cli_print_members(int json, int flush, const xet_cli_out_t *m);

#define xet_cli_json(args)  ((args)->value[XET_CLI_OPT_JSON] != NULL)


/*
 * xet_cli_buf_alloc() is an xet_alloc_pt that calls malloc();
 * xet_cli_buf_free() frees the nodes of a buffer that uses it.
 */
void *xet_cli_buf_alloc(void *data, size_t size);
void xet_cli_buf_free(xet_buf_t *b);

/*
 * Copies the bytes of a buffer into one block, malloc()ed.  Returns NULL if
 * out of memory.
 */
uint8_t *xet_cli_buf_bytes(const xet_buf_t *b, size_t *len);


/*
 * Parses untrusted JSON.  Returns NULL if the data is invalid, or if parsing
 * would need more than about "room" bytes of memory.  Sets *large to 1 in the
 * second case, else to 0.
 */
json_t *xet_cli_json_load(const char *data, size_t len, size_t flags,
    size_t room, int *large);

/*
 * Read a member of an object.  Return 1, or 0 if the member is missing,
 * negative or of another type.
 */

int xet_cli_json_get_u64(const json_t *object, const char *key,
    uint64_t *value);
int xet_cli_json_get_hash(const json_t *object, const char *key,
    xet_hash_t *hash);


/*
 * Digest of a local file: Xet hash, size, number of chunks and SHA-256, all
 * computed in one pass and in constant memory.
 */


#define XET_CLI_SHA256_LEN     32
#define XET_CLI_DIGEST_BUFFER  (1024 * 1024)


typedef struct {
    xet_chunker_t   chunker;
    xet_merkle_t    merkle;
    EVP_MD_CTX     *sha256;            /* NULL: no SHA-256 */
    uint8_t         chunk[XET_CHUNK_MAX];
    size_t          len;               /* bytes in chunk */
    uint8_t         buffer[XET_CLI_DIGEST_BUFFER];  /* fread() buffer */

    uint64_t        size;
    uint64_t        chunks;

    /* set by xet_cli_digest_end() */

    xet_hash_t      hash;
    uint8_t         digest[XET_CLI_SHA256_LEN];
} xet_cli_digest_t;


/*
 * Digest a file piece by piece, with SHA-256 if sha256 is set.
 * xet_cli_digest_begin() returns XET_CLI_OK, or XET_CLI_ERROR after printing
 * the error.  xet_cli_digest_end() sets the results and frees the memory.
 */
int xet_cli_digest_begin(xet_cli_digest_t *d, int sha256);
void xet_cli_digest_feed(xet_cli_digest_t *d, const uint8_t *data,
    size_t len);
void xet_cli_digest_end(xet_cli_digest_t *d);

/*
 * Digests a stream from its position to its end; name is for messages.
 * Returns XET_CLI_OK; XET_CLI_INTERRUPTED after a signal; or XET_CLI_ERROR
 * after printing the error.
 */
int xet_cli_digest_file(xet_cli_digest_t *d, FILE *file, const char *name,
    int sha256);

/*
 * Computes the SHA-256 of a file, or of its first "most" bytes; sets *size to
 * the number of bytes read.  name is for messages.  Returns XET_CLI_OK;
 * XET_CLI_INTERRUPTED after a signal; or XET_CLI_ERROR after printing the
 * error.
 */
int xet_cli_sha256(int fd, const char *name, uint64_t most,
    uint8_t sha256[XET_CLI_SHA256_LEN], uint64_t *size);

/*
 * Creates a context for a SHA-256.  Returns XET_CLI_OK; or XET_CLI_ERROR after
 * printing an out-of-memory error, with *ctx NULL.
 */
int xet_cli_sha256_begin(EVP_MD_CTX **ctx);

/*
 * xet_cli_open() opens a file for reading; "-" is the standard input.  Returns
 * NULL after printing the error.  xet_cli_close() accepts NULL, and leaves the
 * standard input open.
 */
FILE *xet_cli_open(const char *name);
void xet_cli_close(FILE *file);


#endif /* _XET_CLI_H_INCLUDED_ */
