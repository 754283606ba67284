
/*
 * Shared by all verbs of the command line: exit codes and messages, options,
 * output, stores, JSON, digests.
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
 * The function that detects an error reports it, in one line on the standard
 * error, and returns the exit code.  Its callers do not report it again.  In
 * the comments below "reported" means just that.
 */


#define XET_CLI_OK           0
#define XET_CLI_FAULT        1         /* data are wrong or missing */
#define XET_CLI_USAGE        2
#define XET_CLI_ERROR        3         /* a local file, memory, database */
#define XET_CLI_NETWORK      4         /* the network, or the server */
#define XET_CLI_INTERRUPTED  130       /* a signal, as shells have it */
#define XET_CLI_CLOSED       141       /* reader is gone: end by SIGPIPE */


/*
 * Prints "xet: <name>: <text>" on the standard error, without the name if it
 * is NULL; returns code.
 */
int xet_cli_fail(int code, const char *name, const char *text);

/* The same as xet_cli_fail(), with a format for the text. */
int xet_cli_failf(int code, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports errno for an operation on name; returns XET_CLI_ERROR. */
int xet_cli_fail_errno(const char *name);

/* Returns the worse of two exit codes. */
int xet_cli_worse(int a, int b);

/*
 * Flushes the standard output.  Returns XET_CLI_OK; XET_CLI_CLOSED if the
 * reader is gone; or XET_CLI_ERROR, reported once.
 */
int xet_cli_flush(void);

/* Reports "out of memory"; returns XET_CLI_ERROR. */
int xet_cli_no_memory(void);


/*
 * Options and operands of the command line.
 *
 * One table has all options; each verb lists the ones it takes.  If an option
 * is given several times, the last one counts.
 */


/* X(symbol, name, value, short option or 0, text of the help) */

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
      "retries of a failed request (default: 5)")                             \
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
    const char  *value;                /* NULL: a flag */
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


#define xet_cli_quiet(args)  ((args)->value[XET_CLI_OPT_QUIET] != NULL)


/*
 * Sets *number to the value of an option, from min to max, or to def if the
 * option is not given.  Returns XET_CLI_OK, or XET_CLI_USAGE, reported.
 */
int xet_cli_args_number(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t min, uint64_t max, uint64_t def, uint64_t *number);

/*
 * Sets *seconds to the value of an option, such as "90", "90s", "15m", "2h" or
 * "7d", from 1 second to 36,500 days, or to def if the option is not given.
 * Returns XET_CLI_OK, or XET_CLI_USAGE, reported.
 */
int xet_cli_args_time(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t def, uint64_t *seconds);

/*
 * Sets *bytes to the value of an option, such as "500", "100k", "50m" or "1g",
 * or to 0 if the option is not given.  Returns XET_CLI_OK, or XET_CLI_USAGE,
 * reported.
 */
int xet_cli_args_bytes(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t *bytes);

/* Parses a hash.  Returns XET_CLI_OK, or XET_CLI_USAGE, reported. */
int xet_cli_args_hash(const char *text, void *hash);


/*
 * Verbs.
 *
 * A verb gets its options and operands, prints its results to the standard
 * output and returns an exit code.
 */


#define XET_CLI_VERSION  XET_VERSION


#define XET_CLI_VERB(name, run, operands, min, max, options, group, summary,  \
                     text, examples)                                          \
    int run(const xet_cli_args_t *args);

#include "verbs.def"

#undef XET_CLI_VERB

/* The verbs without Hub names, called by the verbs that also take Hub names. */

int xet_cli_get(const xet_cli_args_t *args);
int xet_cli_get_tree(const xet_cli_args_t *args);
int xet_cli_info(const xet_cli_args_t *args);
int xet_cli_ls(const xet_cli_args_t *args);
int xet_cli_put(const xet_cli_args_t *args);
int xet_cli_rm(const xet_cli_args_t *args);
int xet_cli_verify(const xet_cli_args_t *args);


/* Set by SIGINT, SIGTERM and SIGHUP; long loops check it and end. */
extern volatile sig_atomic_t  xet_cli_interrupted;


/*
 * Grows an array of n elements of size bytes, so that one more fits; *room is
 * its capacity in elements.  Returns the array, which may have moved, or NULL
 * if out of memory; then the old array is still valid.
 */
void *xet_cli_grow(void *array, size_t n, size_t *room, size_t size);

/* Writes the 64 digits of a hash and a zero byte to text; returns text. */
const char *xet_cli_hash_string(const xet_hash_t *hash,
    char text[XET_HASH_STR_LEN + 1]);


/*
 * Untrusted texts: file names, server responses, database values.
 *
 * All of them are printed by these functions.  Characters that a terminal
 * obeys (ASCII and Unicode controls), that change the direction of writing or
 * break a line, bytes that are not UTF-8, and the backslash are printed as
 * \xNN for each byte.  In JSON such characters are printed as \uNNNN and a
 * byte that is not UTF-8 as \ufffd; a backslash is part of the syntax.  All
 * other characters are printed unchanged.
 */


/*
 * Writes as much of the text as fits into size bytes, in whole characters and
 * escapes, and a zero byte.  Returns the number of bytes consumed.
 */
size_t xet_cli_text_escape(char *out, size_t size, const char *text,
    size_t len);

/* Print a text, or a string ("-" for NULL), escaped. */
void xet_cli_text_write(FILE *out, const char *text, size_t len);
void xet_cli_text_print(FILE *out, const char *text);

/* Prints a text that is already JSON, escaped. */
void xet_cli_text_json(FILE *out, const char *text, size_t len);

/* Whether all of a text is UTF-8. */
int xet_cli_text_valid(const char *text, size_t len);


/*
 * The progress bar: one line on the standard error, if that is a terminal and
 * --quiet was not given.  One at a time.
 */


/* total is in bytes, 0: not known.  The name is not copied. */
void xet_cli_progress_begin(int quiet, const char *name, uint64_t total);

/* Sets the bytes done so far; draws at most ten times a second. */
void xet_cli_progress_set(uint64_t done);

/* Sets the total when it becomes known after the beginning. */
void xet_cli_progress_total(uint64_t total);

/* Clears the line before a message; xet_cli_progress_set() draws it again. */
void xet_cli_progress_clear(void);

void xet_cli_progress_end(void);

/* Returns milliseconds of a monotonic clock. */
uint64_t xet_cli_now(void);


/*
 * Output files, also in folders where other users can write, such as /tmp.
 *
 * Names that the program chooses are opened without following symbolic links,
 * and only if they are regular files of this user with a single link: files
 * that others have put there are refused.
 */


/*
 * Functions that return a descriptor return -1 on an error, reported.  Names
 * are relative to the descriptor of a folder, which may be AT_FDCWD.
 */

/*
 * Returns the target's name with a suffix, malloc()ed; a name that would be
 * too long is cut.  NULL on an error, reported.
 */
char *xet_cli_output_beside(int folder, const char *target,
    const char *suffix);

/* Whether a name is "-", a pipe or a device, so that the output is a stream. */
int xet_cli_output_special(const char *name);

/*
 * Opens the target of a verb for writing, relative to the current folder: the
 * standard output for "-", the pipe or device, or a temporary file of a random
 * name beside the target.  *part is the name of that file, else NULL.
 */
int xet_cli_output_begin(const char *target, int special, char **part);

/*
 * Ends that output: the temporary file is synced and renamed to the target, or
 * removed if rc is a failure or this fails.  Closes the descriptor, unless it
 * is the standard output, and frees part.  Returns the exit code.
 */
int xet_cli_output_finish(int fd, char *part, const char *target, int rc);

/*
 * Syncs the folder of a target.  Returns XET_CLI_OK or XET_CLI_ERROR,
 * reported.
 */
int xet_cli_output_sync(int folder, const char *target);

/*
 * Opens the file that an earlier run has left under a name, or creates it with
 * this mode; then *made is set.
 */
int xet_cli_output_open(int folder, const char *name, mode_t mode,
    int *made);


/*
 * Writes all of the data; name is for messages.  Returns XET_CLI_OK or
 * XET_CLI_ERROR, reported; or, not reported, XET_CLI_CLOSED for a closed pipe
 * and XET_CLI_INTERRUPTED after a signal.
 */
int xet_cli_output_write(int fd, const char *name, const uint8_t *data,
    size_t len);


/*
 * Places: a store or a backup, in a folder or in a bucket.  These functions
 * wrap those of xet_store.h and report errors.
 *
 * A place is opened by a text: the path of a folder, or "s3://bucket[/prefix]
 * endpoint=URL credentials=FILE ...", as in the directive xet_store.
 *
 * Besides exit codes, for errors that were reported, functions return the
 * codes below.  The caller decides whether these are errors, and reports them.
 */

#define XET_CLI_GONE        (-1)       /* no such name */
#define XET_CLI_UNREADABLE  (-2)       /* see errno; EUCLEAN: not a file */
#define XET_CLI_THERE       (-3)       /* the name exists */

#define XET_CLI_STORAGE_NAME  256      /* bytes of a name, with the zero byte */
#define XET_CLI_STORAGE_MANY  64       /* names removed at a time */
#define XET_CLI_IDENTITY      64       /* bytes of an identity, likewise */


/* Takes the last part of a name.  Any result but XET_CLI_OK ends the list. */

typedef int (*xet_cli_storage_name_pt)(void *ctx, const char *name);


/*
 * Flags: create a missing folder; give files that root writes to the owner of
 * the folder; wait at a pipe in the place of a file, instead of rejecting it.
 */

#define XET_CLI_STORAGE_MAKE   1
#define XET_CLI_STORAGE_OWNED  2
#define XET_CLI_STORAGE_WAITS  4

/*
 * Returns NULL on an error, reported, with the exit code in *rc.  Close the
 * place by xet_store_destroy().
 */
xet_store_t *xet_cli_storage_open(const char *text, int flags, int *rc);

/* Reads the identity of a store; empty if it has none. */
int xet_cli_storage_identity(xet_store_t *storage,
    char identity[XET_CLI_IDENTITY]);

/*
 * Checks that the store still has this identity, and reports if not: its disk
 * may have been unmounted.
 */
int xet_cli_storage_still(xet_store_t *storage, const char *identity);

/*
 * Report that the place has no identity, or not that of the store of the
 * database, in words for a folder or a bucket.  Both return the exit code.
 */
int xet_cli_storage_bare(const xet_store_t *storage);
int xet_cli_storage_other(const xet_store_t *storage);

/* Lists the names in a folder, in no order; XET_CLI_GONE: no such folder. */
int xet_cli_storage_list(xet_store_t *storage, const char *folder,
    xet_cli_storage_name_pt handler, void *ctx);

/*
 * Whether the place is empty except for these names: files, or folders with
 * their contents.
 */
int xet_cli_storage_empty(xet_store_t *storage, const char *const *but,
    int *empty);

/* XET_CLI_GONE: missing, or not a regular file. */
int xet_cli_storage_stat(xet_store_t *storage, const char *name,
    xet_store_item_t *item);

/* XET_CLI_GONE: the first name does not exist. */
int xet_cli_storage_link(xet_store_t *storage, const char *from,
    const char *to);
int xet_cli_storage_back(xet_store_t *storage, const char *quarantine,
    const char *name);

/* Remove one name, or up to XET_CLI_STORAGE_MANY; missing ones are no error. */
int xet_cli_storage_remove(xet_store_t *storage, const char *name);
int xet_cli_storage_remove_all(xet_store_t *storage,
    char (*names)[XET_CLI_STORAGE_NAME], size_t n);

/* Makes the names in a folder durable; NULL: the whole place. */
int xet_cli_storage_sync(xet_store_t *storage, const char *folder);

/* The same for all folders of copies. */
int xet_cli_storage_settle(xet_store_t *storage);

/* Removes files of interrupted uploads that are older than age, in seconds. */
int xet_cli_storage_sweep(xet_store_t *storage, uint64_t age);

/* Creates a folder, unless the place is a bucket; and those of copies. */
int xet_cli_storage_make(xet_store_t *storage, const char *folder);
int xet_cli_storage_folders(xet_store_t *storage);

/*
 * Locks a file, which is created, against other programs until this one ends.
 * *had is 0 if another program has the lock.  In a bucket it always succeeds.
 */
int xet_cli_storage_lock(xet_store_t *storage, const char *name,
    int exclusive, int *had);

/*
 * Reads a file of a place, in pieces and in any order; reader->size is the
 * size of the file.  *n is less than len at the end only.
 */
int xet_cli_reader_open(xet_store_t *storage, const char *name,
    xet_store_reader_t **reader);
int xet_cli_reader_read(xet_store_reader_t *reader, uint8_t *buf, size_t len,
    uint64_t offset, size_t *n);
void xet_cli_reader_close(xet_store_reader_t *reader);

/* Reads the first line of a file; XET_CLI_GONE if it is missing or empty. */
int xet_cli_storage_line(xet_store_t *storage, const char *name, char *line,
    size_t size);

/* Opens a file for reading by a descriptor; from a bucket it is downloaded. */
int xet_cli_storage_fetch(xet_store_t *storage, const char *name, int *fd);

/*
 * Writes a file that gets its name by xet_cli_writer_keep().  Then its bytes
 * are durable; the name is durable when its folder is synced.  XET_CLI_THERE:
 * the name existed and stays as it was; with replace it is overwritten.  The
 * last two functions end the writer.  The caller may also write to writer->fd.
 */
int xet_cli_writer_open(xet_store_t *storage, const char *name,
    xet_store_writer_t **writer);
int xet_cli_writer_write(xet_store_writer_t *writer, const uint8_t *data,
    size_t len);
int xet_cli_writer_keep(xet_store_writer_t *writer, int replace);
void xet_cli_writer_drop(xet_store_writer_t *writer);

/* Writes a file of this content, durably; XET_CLI_THERE as above. */
int xet_cli_storage_put(xet_store_t *storage, const char *name,
    const char *text, int replace);

/* Opens a temporary file without a name; -1 on an error, reported. */
int xet_cli_output_scratch(const char *folder);


/* A limit of bytes per second, shared by threads. */

typedef struct {
    pthread_mutex_t  mutex;
    uint64_t         rate;             /* bytes a second; 0: no limit */
    uint64_t         began;            /* xet_cli_now() */
    uint64_t         moved;            /* bytes since then */
} xet_cli_pace_t;


void xet_cli_pace_begin(xet_cli_pace_t *pace, uint64_t rate);

/* Adds bytes, and sleeps until they fit into the rate. */
void xet_cli_pace_wait(xet_cli_pace_t *pace, uint64_t bytes);


/*
 * JSON: results are written as one object per line, by the writer of the core;
 * responses are parsed by jansson.
 */


typedef struct {
    xet_buf_t   buf;
    xet_json_t  json;
} xet_cli_json_t;


/* Begins the object of a line; returns the writer of its members. */
xet_json_t *xet_cli_json_begin(xet_cli_json_t *o);

/* Like the functions xet_json_put_...() of the core. */
void xet_cli_json_put_hash(xet_json_t *j, const char *key,
    const xet_hash_t *hash);

/*
 * Ends the object, prints it as a line, escaped for a terminal, and frees it.
 * Returns XET_CLI_OK, or an exit code of xet_cli_flush() or
 * xet_cli_no_memory().
 */
int xet_cli_json_end(xet_cli_json_t *o);


/*
 * Results, as a JSON object or as text, from one list of members.
 *
 * The object has the members that have a key.  The text has the members that
 * have a tail: the value, padded to width characters, and the tail after it.
 * Members with a label are printed as a line "  LABEL VALUE", with the label
 * padded to width.  A text of NULL is null in JSON; as text it is "-", or with
 * a label no line.
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
    const void     *value;             /* text or hash */
    uint64_t        number;            /* number, or bytes of the text */
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

/* Print a result; or one row of many, for which text is not flushed. */

#define xet_cli_print(json, ...)                                              \
    xet_cli_print_members(json, 1, (const xet_cli_out_t[])                    \
        { __VA_ARGS__, { .kind = XET_CLI_OUT_END } })
#define xet_cli_print_row(json, ...)                                          \
    xet_cli_print_members(json, 0, (const xet_cli_out_t[])                    \
        { __VA_ARGS__, { .kind = XET_CLI_OUT_END } })

/*
 * Returns XET_CLI_OK, or an exit code of xet_cli_flush() or
 * xet_cli_no_memory().
 */
int xet_cli_print_members(int json, int flush, const xet_cli_out_t *m);

#define xet_cli_json(args)  ((args)->value[XET_CLI_OPT_JSON] != NULL)


/* An xet_alloc_pt by malloc(), and the function that frees its nodes. */
void *xet_cli_buf_alloc(void *data, size_t size);
void xet_cli_buf_free(xet_buf_t *b);

/* Copies the bytes of a buffer into one malloc()ed block; NULL: no memory. */
uint8_t *xet_cli_buf_bytes(const xet_buf_t *b, size_t *len);


/*
 * Parses untrusted JSON.  Returns NULL if it is not JSON; also, with *large
 * set, if it would need more than about room bytes of memory.
 */
json_t *xet_cli_json_load(const char *data, size_t len, size_t flags,
    size_t room, int *large);

/* Read a member; return 0 if it is missing, negative or of another type. */

int xet_cli_json_get_u64(const json_t *object, const char *key,
    uint64_t *value);
int xet_cli_json_get_hash(const json_t *object, const char *key,
    xet_hash_t *hash);


/*
 * Digest of a local file: its Xet hash, its size, its number of chunks and its
 * SHA-256, computed in one pass, in constant memory.
 */


#define XET_CLI_SHA256_LEN     32
#define XET_CLI_DIGEST_BUFFER  (1024 * 1024)


typedef struct {
    xet_chunker_t   chunker;
    xet_merkle_t    merkle;
    EVP_MD_CTX     *sha256;            /* NULL: not wanted */
    uint8_t         chunk[XET_CHUNK_MAX];
    size_t          len;               /* of the open chunk */
    uint8_t         buffer[XET_CLI_DIGEST_BUFFER];  /* of a stream */

    uint64_t        size;
    uint64_t        chunks;

    /* after the end */

    xet_hash_t      hash;
    uint8_t         digest[XET_CLI_SHA256_LEN];
} xet_cli_digest_t;


/*
 * Digest a file in pieces, with its SHA-256 if sha256 is set.
 * xet_cli_digest_begin() returns XET_CLI_OK, or XET_CLI_ERROR, reported;
 * xet_cli_digest_end() sets the results and frees what begin has allocated.
 */
int xet_cli_digest_begin(xet_cli_digest_t *d, int sha256);
void xet_cli_digest_feed(xet_cli_digest_t *d, const uint8_t *data,
    size_t len);
void xet_cli_digest_end(xet_cli_digest_t *d);

/*
 * Digests a stream from its position to its end; name is for messages.
 * Returns XET_CLI_OK, XET_CLI_INTERRUPTED, or XET_CLI_ERROR, reported.
 */
int xet_cli_digest_file(xet_cli_digest_t *d, FILE *file, const char *name,
    int sha256);

/*
 * Computes the SHA-256 of at most the first most bytes of a file, and their
 * number; name is for messages.  Returns XET_CLI_OK, XET_CLI_INTERRUPTED, or
 * XET_CLI_ERROR, reported.
 */
int xet_cli_sha256(int fd, const char *name, uint64_t most,
    uint8_t sha256[XET_CLI_SHA256_LEN], uint64_t *size);

/*
 * Opens a file for reading; "-" is the standard input.  Returns NULL on an
 * error, reported. xet_cli_close() accepts NULL, and leaves the standard input
 * open.
 */
FILE *xet_cli_open(const char *name);
void xet_cli_close(FILE *file);


#endif /* _XET_CLI_H_INCLUDED_ */
