
/*
 * The store on disk against the database: what "xet verify --store" checks.
 *
 * Rows of xorbs and of files are handed to threads as jobs; each thread has a
 * database session of its own.  A thread holds one xorb's lists (330 KB), one
 * file's terms (52 bytes each) and a verifier (about 1 MB); the main thread
 * the names of all copies, 36 bytes each, to find files without a row.
 *
 * The server goes on meanwhile.  So what seems wrong is looked at again: a
 * copy that its row does not name any more was healed, and is no fault; a file
 * whose terms are others by now is checked by these.
 * One that is wrong is marked in its row, and the next upload heals it; the
 * mark of one that is right again is taken away.
 */

#ifndef _XET_CLI_STORE_H_INCLUDED_
#define _XET_CLI_STORE_H_INCLUDED_


#include <pthread.h>
#include <time.h>

#include "xet_cli_pg.h"


/* A row, copied: of a xorb or of a file. */

typedef struct xet_cli_job_s  xet_cli_job_t;

struct xet_cli_job_s {
    xet_cli_job_t        *next;

    xet_hash_t            hash;
    uint64_t              id;
    uint64_t              size;        /* raw */

    /* a xorb */

    uint64_t              stored_size;
    uint32_t              tag;
    unsigned              digested:1;  /* digest is known */
    unsigned              marked:1;    /* as damaged */
    xet_checksum_t        digest;      /* of the copy */
    uint32_t              chunk_count;
    uint8_t              *lists;       /* hashes, raw ends, stored ends */

    /* a file */

    uint64_t              term_count;
    uint8_t              *packed;      /* NULL: in segments */
    size_t                packed_len;
    unsigned              file:1;
    unsigned              claimed:1;   /* sha256 is */
    uint8_t               sha256[32];
};


typedef struct {
    const xet_cli_args_t *args;
    const char           *folder;
    char                  identity[64]; /* of the folder; empty: none */
    int                   json;
    int                   sha256;
    int                   remove;      /* files without a row */
    time_t                before;      /* what is older, that is */
    time_t                known;       /* what is older, may be removed */

    pthread_mutex_t       mutex;
    pthread_cond_t        filled;
    pthread_cond_t        emptied;
    xet_cli_job_t        *jobs;        /* the queue */
    xet_cli_job_t       **jobs_end;
    unsigned              waiting;     /* jobs in it */
    unsigned              closed:1;
    int                   rc;          /* the first failure */

    uint64_t              faults;
    uint64_t              orphans;
    uint64_t              removed;     /* of them */
    uint64_t              left;        /* for the database may be behind */
    uint64_t              xorbs;
    uint64_t              files;
    uint64_t              proven;      /* SHA-256 */
    uint64_t              bytes;       /* read */

    uint8_t              *names;       /* of all copies: hash, tag */
    size_t                nnames;
    size_t                room;
} xet_cli_store_t;


#define XET_CLI_STORE_NAME  (XET_HASH_LEN + 4)


/* What a thread has. */

typedef struct {
    xet_cli_store_t      *store;
    xet_cli_pg_t         *pg;
    xet_codec_t          *codec;
    uint8_t              *buffer;      /* XET_CLI_STORE_BUFFER */
    uint8_t              *raw;         /* a chunk */
} xet_cli_checker_t;


#define XET_CLI_STORE_BUFFER  (1024 * 1024)


/* All of it; the exit code. */
int xet_cli_verify_store(const xet_cli_args_t *args);

/*
 * One xorb, or one file: what is wrong with it has been reported.  XET_CLI_OK,
 * or what keeps from checking.
 */
int xet_cli_store_xorb(xet_cli_checker_t *c, const xet_cli_job_t *job);
int xet_cli_store_file(xet_cli_checker_t *c, const xet_cli_job_t *job);

/* What the folder says that it is; empty when it says nothing. */
void xet_cli_store_identity(const char *folder, char identity[64]);

/* Files in the folder that no row knows; s->names has those of the rows. */
int xet_cli_store_orphans(xet_cli_store_t *s, xet_cli_pg_t *pg);

/* A finding that is no fault; what threads find comes by the next. */
void xet_cli_store_report(xet_cli_store_t *s, const char *kind,
    const char *name, const char *text);

/* The name of a copy as bytes that sort. */
void xet_cli_store_name(uint8_t *name, const xet_hash_t *hash, uint32_t tag);

/* Reports a fault of a xorb or of a file. */
void xet_cli_store_fault(xet_cli_store_t *s, const char *kind,
    const xet_hash_t *hash, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Bytes that were read, for the progress bar. */
void xet_cli_store_read(xet_cli_store_t *s, uint64_t bytes);

/* The path of a copy; malloc()ed, NULL without memory, told of. */
char *xet_cli_store_path(const xet_cli_store_t *s, const xet_hash_t *hash,
    uint32_t tag);


#endif /* _XET_CLI_STORE_H_INCLUDED_ */
