
/* Verification of files on a server, and of a store with its database. */

#ifndef _XET_CLI_VERIFY_H_INCLUDED_
#define _XET_CLI_VERIFY_H_INCLUDED_


#include <pthread.h>
#include <time.h>

#include "xet_cli_admin.h"


/*
 * Prints that a file on a server is correct; with its name if named is set.
 */
int xet_cli_verify_file_print(const xet_cli_args_t *args,
    const xet_cli_download_t *d, const char *name, int named);

/* Prints the output of "xet info" for a hash on a server, under this name. */
int xet_cli_info_stored(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name, const xet_hash_t *hash);


/*
 * The state of "xet verify --store", which checks a store and its database.
 *
 * Each row of a xorb or of a file becomes a job for a thread.  Each thread has
 * its own database session, and holds the chunk lists of one xorb (330 KB),
 * the terms of one file (52 bytes each) and a verifier (about 1 MB).  The main
 * thread holds the names of all copies, 36 bytes each, to find files that have
 * no row.
 *
 * The server may keep running.  So if a copy seems wrong, its row is read
 * again.  If the row refers to another copy now, the wrong copy was replaced,
 * and this is not a fault.  If a file has other terms now, the new terms are
 * checked.  A wrong copy is marked as damaged in its row, so that the next
 * upload of the xorb replaces the copy.  If a marked copy is correct, the mark
 * is removed.
 */


/* A row of xet.files with all its terms. */

typedef struct {
    uint64_t              size;
    uint64_t              term_count;
    uint8_t              *packed;
    size_t                len;
    size_t                room;
    unsigned              found:1;
    unsigned              claimed:1;   /* sha256 is set */
    uint8_t               sha256[XET_CLI_SHA256_LEN];
} xet_cli_store_terms_t;


/* A job: the check of one xorb and its row, or of one file and its row. */

typedef struct xet_cli_job_s  xet_cli_job_t;

struct xet_cli_job_s {
    xet_cli_job_t        *next;

    xet_hash_t            hash;
    unsigned              file:1;

    /* files only; if terms is empty, the terms are read from xet.terms */

    xet_cli_store_terms_t terms;

    /* xorbs only */

    uint64_t              size;        /* raw size */
    uint64_t              stored_size;
    uint32_t              copy_id;
    unsigned              digested:1;  /* digest is set */
    unsigned              marked:1;    /* marked as damaged in the row */
    xet_checksum_t        digest;      /* checksum of the copy */
    uint32_t              chunk_count;
    uint8_t              *lists;       /* hashes, raw ends, stored ends */
};


typedef struct {
    const xet_cli_args_t  *args;
    xet_store_t           *storage;
    char                   identity[XET_CLI_IDENTITY]; /* identity of the
                                                          store; empty: none */
    int                    json;
    int                    sha256;
    int                    strict;     /* an identity is required */
    time_t                 before;     /* orphans are older than this */

    pthread_mutex_t       mutex;
    pthread_cond_t        filled;
    pthread_cond_t        emptied;
    xet_cli_job_t        *jobs;        /* queue of jobs */
    xet_cli_job_t       **jobs_end;
    unsigned              waiting;     /* jobs in the queue */
    unsigned              closed:1;
    int                   rc;          /* exit code of the first failure */

    uint64_t              faults;
    uint64_t              orphans;
    uint64_t              xorbs;
    uint64_t              files;
    uint64_t              proven;      /* files whose SHA-256 is correct */
    uint64_t              bytes;       /* bytes read */

    uint8_t              *names;       /* hash and copy id of each copy */
    size_t                nnames;
    size_t                room;
} xet_cli_store_t;


#define XET_CLI_STORE_NAME  (XET_HASH_LEN + 4)


/* The resources of one thread. */

typedef struct {
    xet_cli_store_t      *store;
    xet_cli_pg_t         *pg;
    xet_codec_t          *codec;
    uint8_t              *buffer;      /* XET_CLI_STORE_BUFFER bytes */
    uint8_t              *raw;         /* buffer for a raw chunk */
} xet_cli_checker_t;


#define XET_CLI_STORE_BUFFER  (1024 * 1024)


/* A scan reads a copy to its end, or to its first fault. */

typedef struct {
    xet_store_reader_t    *reader;
    uint8_t               *buffer;     /* XET_CLI_STORE_BUFFER bytes */
    xet_checksum_state_t  *checksum;   /* checksum of the bytes read */
    xet_xorb_verifier_t   *verifier;   /* or NULL */

    /* called for each piece; a result other than XET_CLI_OK ends the scan */

    int                  (*piece)(void *data, const uint8_t *bytes, size_t n);
    void                  *data;

    /* the result */

    uint64_t               size;
    xet_status_t           status;     /* XET_STORE_FAILED: see errno */
} xet_cli_scan_t;


/*
 * Runs a scan.  Returns XET_CLI_OK and sets scan->status, which is a fault of
 * the copy or XET_OK; or returns an exit code after printing the error.
 */
int xet_cli_scan(xet_cli_scan_t *scan);


/*
 * Check one xorb, or one file, and print the faults that are found.  Return
 * XET_CLI_OK even if there are faults.  If the check cannot be completed,
 * return an exit code after printing the error.
 */
int xet_cli_store_xorb(xet_cli_checker_t *c, const xet_cli_job_t *job);
int xet_cli_store_file(xet_cli_checker_t *c, xet_cli_job_t *job);

/*
 * Row handler; ctx is a xet_cli_store_terms_t.  The first four columns of a row
 * are the size of a file, its number of terms, its SHA-256, and a part of its
 * packed terms.  Stores the first three, and appends the part to t->packed.
 * Returns XET_CLI_OK, or XET_CLI_ERROR after printing an out-of-memory error.
 */
int xet_cli_store_terms(void *ctx, const xet_cli_pg_row_t *row);

/*
 * Ages of files that have no row.  A file of an interrupted upload is at least
 * XET_CLI_STORE_AGE old.  For a file younger than XET_CLI_STORE_AGE_MIN, a
 * server may be about to write the row.
 */
#define XET_CLI_STORE_AGE      XET_XORB_ORPHAN_AGE      /* seconds */
#define XET_CLI_STORE_AGE_MIN  XET_XORB_ORPHAN_AGE_MIN

/* SQL that selects the identity of the store in the database, or ''. */
#define XET_CLI_STORE_CLAIMED                                                 \
    "SELECT coalesce(max(the_identity), '') FROM xet.store_claim(NULL)"

/*
 * Compares the identity of the store with the identity in the database.
 * Without this check, a wrong store would look like a store that has lost all
 * its copies.  A standby is refused, since it may lag behind.  Returns
 * XET_CLI_OK, or an exit code after printing the error.
 */
int xet_cli_store_session(const xet_cli_store_t *s, xet_cli_pg_t *pg);

/*
 * Reads the names of all copies in the database into s->names, which the
 * caller frees.  These are the copies of xorb rows, and the copies that the
 * collector will remove.  Returns XET_CLI_OK, or an exit code after printing
 * the error.
 */
int xet_cli_store_names(xet_cli_store_t *s, xet_cli_pg_t *pg);

/*
 * Adds a copy to s->names.  Returns XET_CLI_OK, or XET_CLI_ERROR after
 * printing an out-of-memory error.
 */
int xet_cli_store_note(xet_cli_store_t *s, const xet_hash_t *hash,
    uint32_t copy_id);

/*
 * Prints the files of the store that have no row and are older than s->before.
 * s->names must contain the copies that rows refer to; this function sorts
 * s->names.  Returns XET_CLI_OK, or an exit code.
 */
int xet_cli_store_orphans(xet_cli_store_t *s, xet_cli_pg_t *pg);

/*
 * Takes a lock until the session ends.  Verbs that read or change many rows and
 * copies share the lock.  If restore is set, the lock is exclusive: none of
 * these verbs can run during a restore.  Returns XET_CLI_OK, or XET_CLI_ERROR
 * after printing the error, if another session holds a conflicting lock.
 */
int xet_cli_store_enter(xet_cli_pg_t *pg, int restore);

/*
 * Sets *copy_id to the id of the copy that the row of a xorb refers to now, or
 * to UINT64_MAX if there is no row.  Returns the result of the query:
 * XET_CLI_OK, or an exit code.
 */
int xet_cli_store_named(xet_cli_pg_t *pg, const xet_hash_t *hash,
    uint64_t *copy_id);

/*
 * Prints a finding, but does not count it as a fault and does not lock the
 * mutex.  Threads must call xet_cli_store_fault() instead.
 */
void xet_cli_store_report(xet_cli_store_t *s, const char *kind,
    const char *name, const char *text);

/*
 * Writes hash and id of a copy to name, as XET_CLI_STORE_NAME bytes that can
 * be sorted.
 */
void xet_cli_store_name(uint8_t *name, const xet_hash_t *hash,
    uint32_t copy_id);

/* Prints and counts a fault of a xorb or of a file, under the mutex. */
void xet_cli_store_fault(xet_cli_store_t *s, const char *kind,
    const xet_hash_t *hash, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds bytes read to the progress bar, under the mutex. */
void xet_cli_store_read(xet_cli_store_t *s, uint64_t bytes);

/*
 * Opens the store in --store or XET_STORE.  On an error, prints a message,
 * sets *rc to the exit code and returns NULL.
 */
xet_store_t *xet_cli_store_open(const xet_cli_args_t *args, int flags,
    int *rc);


#endif /* _XET_CLI_VERIFY_H_INCLUDED_ */
