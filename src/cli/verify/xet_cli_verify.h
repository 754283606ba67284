
/* Checks of stored data. */

#ifndef _XET_CLI_VERIFY_H_INCLUDED_
#define _XET_CLI_VERIFY_H_INCLUDED_


#include <pthread.h>
#include <time.h>

#include "xet_cli_admin.h"


/* Prints that a file of a server is correct; with named also its name. */
int xet_cli_verify_told(const xet_cli_args_t *args,
    const xet_cli_download_t *d, const char *name, int named);

/* "xet info" of a hash on a server, with a name to print. */
int xet_cli_info_stored(const xet_cli_args_t *args, xet_cli_http_t *h,
    const char *name, const xet_hash_t *hash);


/*
 * The store and the database, as "xet verify --store" checks them.
 *
 * Rows of xorbs and of files are passed to threads as jobs; each thread has
 * its own database session.  A thread holds the lists of one xorb (330 KB),
 * the terms of one file (52 bytes each) and a verifier (about 1 MB); the main
 * thread holds the names of all copies, 36 bytes each, to find files without a
 * row.
 *
 * The server may keep running.  So if a copy seems wrong, its row is read
 * again: a copy that the row no longer names was healed, and is no fault; a
 * file that has other terms by now is checked with these.  A wrong copy is
 * marked as damaged in its row, and the next upload of the xorb heals it; if a
 * marked copy is correct, the mark is removed.
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


/* A job: the copy of a row, of a xorb or of a file. */

typedef struct xet_cli_job_s  xet_cli_job_t;

struct xet_cli_job_s {
    xet_cli_job_t        *next;

    xet_hash_t            hash;
    unsigned              file:1;

    /* a file; without terms: they are in segments */

    xet_cli_store_terms_t terms;

    /* a xorb */

    uint64_t              size;        /* raw */
    uint64_t              stored_size;
    uint32_t              tag;
    unsigned              digested:1;  /* digest is set */
    unsigned              marked:1;    /* marked as damaged in the row */
    xet_checksum_t        digest;      /* of the copy */
    uint32_t              chunk_count;
    uint8_t              *lists;       /* hashes, raw ends, stored ends */
};


typedef struct {
    const xet_cli_args_t  *args;
    xet_store_t           *storage;
    char                   identity[XET_CLI_IDENTITY]; /* of the place;
                                                          empty: none */
    int                    json;
    int                    sha256;
    int                    strict;     /* an identity is required */
    time_t                 before;     /* orphans are older than this */

    pthread_mutex_t       mutex;
    pthread_cond_t        filled;
    pthread_cond_t        emptied;
    xet_cli_job_t        *jobs;        /* the queue */
    xet_cli_job_t       **jobs_end;
    unsigned              waiting;     /* jobs in the queue */
    unsigned              closed:1;
    int                   rc;          /* the first failure */

    uint64_t              faults;
    uint64_t              orphans;
    uint64_t              xorbs;
    uint64_t              files;
    uint64_t              proven;      /* files whose SHA-256 is correct */
    uint64_t              bytes;       /* read */

    uint8_t              *names;       /* of all copies: hash, tag */
    size_t                nnames;
    size_t                room;
} xet_cli_store_t;


#define XET_CLI_STORE_NAME  (XET_HASH_LEN + 4)


/* What a thread needs for its jobs. */

typedef struct {
    xet_cli_store_t      *store;
    xet_cli_pg_t         *pg;
    xet_codec_t          *codec;
    uint8_t              *buffer;      /* XET_CLI_STORE_BUFFER */
    uint8_t              *raw;         /* room for a raw chunk */
} xet_cli_checker_t;


#define XET_CLI_STORE_BUFFER  (1024 * 1024)


/* A scan of a copy to its end, or to its first fault. */

typedef struct {
    xet_store_reader_t    *reader;
    uint8_t               *buffer;     /* XET_CLI_STORE_BUFFER */
    xet_checksum_state_t  *checksum;   /* of the bytes read */
    xet_xorb_verifier_t   *verifier;   /* or NULL */

    /* takes each piece; any result but XET_CLI_OK ends the scan */

    int                  (*piece)(void *data, const uint8_t *bytes, size_t n);
    void                  *data;

    /* the result */

    uint64_t               size;
    xet_status_t           status;     /* XET_STORE_FAILED: see errno */
} xet_cli_scan_t;


/* Returns XET_CLI_OK with a status, or an exit code, reported. */
int xet_cli_scan(xet_cli_scan_t *scan);


/*
 * Check one xorb, or one file.  Return XET_CLI_OK, also with faults, which are
 * printed; or the exit code of an error that prevents the check, reported.
 */
int xet_cli_store_xorb(xet_cli_checker_t *c, const xet_cli_job_t *job);
int xet_cli_store_file(xet_cli_checker_t *c, xet_cli_job_t *job);

/*
 * Takes size, term_count, sha256 and packed from the first four columns of a
 * row; packed terms are appended.  Returns XET_CLI_OK, or XET_CLI_ERROR
 * without memory, reported.
 */
int xet_cli_store_terms(void *ctx, const xet_cli_pg_row_t *row);

/*
 * Files of interrupted uploads are at least as old as the first; for files
 * younger than the second a server may be about to write a row.
 */
#define XET_CLI_STORE_AGE      XET_XORB_ORPHAN_AGE      /* seconds */
#define XET_CLI_STORE_AGE_MIN  XET_XORB_ORPHAN_AGE_MIN

/* Selects the identity of the store in the database, or an empty text. */
#define XET_CLI_STORE_CLAIMED                                                 \
    "SELECT coalesce(max(the_identity), '') FROM xet.store_claim(NULL)"

/*
 * Compares the identity of the store with that in the database: a wrong store
 * would look like one that has lost all copies.  A standby is refused, since
 * it may lag behind.  Returns XET_CLI_OK, or an exit code, reported.
 */
int xet_cli_store_session(const xet_cli_store_t *s, xet_cli_pg_t *pg);

/*
 * Reads the names of all copies that the database knows into s->names, which
 * the caller frees: those that rows name, and those that will be removed.
 */
int xet_cli_store_names(xet_cli_store_t *s, xet_cli_pg_t *pg);

/* Adds a name to s->names.  Returns XET_CLI_ERROR without memory. */
int xet_cli_store_note(xet_cli_store_t *s, const xet_hash_t *hash,
    uint32_t tag);

/*
 * Prints the files of the store that have no row and are older than s->before.
 * s->names has the copies that rows name, and is sorted here.  Returns the
 * exit code.
 */
int xet_cli_store_orphans(xet_cli_store_t *s, xet_cli_pg_t *pg);

/*
 * Takes the lock that keeps a restore out until the session ends, for verbs
 * that read or change many rows and copies; or with restore the lock that
 * keeps all of these out.  Returns XET_CLI_OK, or XET_CLI_ERROR, reported, if
 * the other side holds its lock.
 */
int xet_cli_store_enter(xet_cli_pg_t *pg, int restore);

/*
 * Sets *tag to the tag of the copy that the row of a xorb names now, or to
 * UINT64_MAX if there is no row.  Returns like xet_cli_pg_query().
 */
int xet_cli_store_named(xet_cli_pg_t *pg, const xet_hash_t *hash,
    uint64_t *tag);

/*
 * Prints a finding, without counting it as a fault.  It does not lock the
 * mutex: threads call xet_cli_store_fault().
 */
void xet_cli_store_report(xet_cli_store_t *s, const char *kind,
    const char *name, const char *text);

/* Writes hash and tag of a copy as XET_CLI_STORE_NAME sortable bytes. */
void xet_cli_store_name(uint8_t *name, const xet_hash_t *hash, uint32_t tag);

/* Prints and counts a fault of a xorb or of a file, under the mutex. */
void xet_cli_store_fault(xet_cli_store_t *s, const char *kind,
    const xet_hash_t *hash, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds bytes read to the progress bar, under the mutex. */
void xet_cli_store_read(xet_cli_store_t *s, uint64_t bytes);

/*
 * Opens the store of --store or XET_STORE.  Returns NULL on an error,
 * reported, with the exit code in *rc.
 */
xet_store_t *xet_cli_store_open(const xet_cli_args_t *args, int flags,
    int *rc);


#endif /* _XET_CLI_VERIFY_H_INCLUDED_ */
