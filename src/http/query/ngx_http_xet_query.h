
/*
 * Sends the statements of requests and of background jobs, and reads the rows
 * of their results into structures.
 */

#ifndef _NGX_HTTP_XET_QUERY_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_store.h"


/*
 * Requested slices of the chunk lists of xorbs, for
 * ngx_http_xet_query_xorb_slices().  Element i of each array belongs to slice
 * i.
 */

typedef struct {
    ngx_http_xet_array_t   xorbs;
    ngx_http_xet_array_t   starts;
    ngx_http_xet_array_t   ends;       /* exclusive */
} ngx_http_xet_slices_t;


/* Adds a slice; may be called in any thread. */
void ngx_http_xet_slices_add(ngx_http_xet_slices_t *s, const xet_hash_t *xorb,
    uint32_t start, uint32_t end);


/*
 * ngx_http_xet_damage.c: copies of xorbs that were found missing, truncated or
 * damaged.  Threads record such copies, and the event loop reports them to
 * PostgreSQL, so that no new file refers to them until they are repaired.
 */

/*
 * The maximum number of recorded copies.  Further damaged copies are dropped; a
 * later request will find them.  A caller that must find all damaged copies
 * checks copies in batches of this size (xet.shard_suspects() in
 * sql/shards.sql).
 */
#define NGX_HTTP_XET_DAMAGE_MAX  1024


/* A zeroed structure is an empty list. */

typedef struct {
    ngx_http_xet_array_t  xorbs;
    ngx_http_xet_array_t  copy_ids;
    unsigned              log:1;               /* log the lost copies */
} ngx_http_xet_damage_t;


/* Frees the memory of the list, which is empty afterwards. */
void ngx_http_xet_damage_destroy(ngx_http_xet_damage_t *d);

void ngx_http_xet_damage_note(ngx_http_xet_damage_t *d,
    const xet_hash_t *xorb, uint32_t copy_id);

/*
 * Checks a copy to which a row refers, like ngx_http_xet_store_stat_job().  If
 * the copy is missing or has another size, records it and returns
 * XET_STORE_DAMAGED.  The copy is logged later, if a row still refers to it.
 */
xet_status_t ngx_http_xet_damage_stat_job(ngx_http_xet_damage_t *d,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t copy_id,
    uint64_t size, ngx_log_t *log);

/*
 * Checks n copies like ngx_http_xet_damage_stat_job(), with
 * ngx_http_xet_store_stat_all_job().
 */
void ngx_http_xet_damage_stat_all_job(ngx_http_xet_damage_t *d,
    ngx_http_xet_store_t *store, ngx_http_xet_copy_stat_t *stats,
    ngx_uint_t n, ngx_log_t *log);


/*
 * A batch of verified files and their terms, which a statement inserts.
 *
 * The size of a batch is limited.  A full batch is staged under the id of the
 * upload, and the statement for the last batch commits everything in one
 * transaction.  Files are added one at a time.  The terms of a file may start
 * in one batch and end in another.  A batch belongs to the thread while a job
 * runs.
 */

#define NGX_HTTP_XET_UPLOAD_LEN  16            /* bytes of a random id */


/*
 * The arrays named seg_... have one element per segment, all other arrays have
 * one per file; chunks, xorbs and indexes have no element for an empty file.  A
 * segment is a row of XET_TERM_SEGMENT_MAX packed terms; the last segment of a
 * file may have fewer terms.  A file with no more than XET_TERM_SEGMENT_MAX
 * terms has no segments.
 */

typedef struct {
    ngx_http_xet_array_t   serials;            /* number of the file */
    ngx_http_xet_array_t   hashes;
    ngx_http_xet_array_t   sizes;
    ngx_http_xet_array_t   sha256;
    ngx_http_xet_array_t   counts;             /* number of terms */
    ngx_http_xet_array_t   packed;             /* all terms of the file; NULL
                                                  if it has segments */
    ngx_http_xet_array_t   chunks;             /* hash of the first chunk */
    ngx_http_xet_array_t   xorbs;              /* xorb of the first chunk */
    ngx_http_xet_array_t   indexes;            /* index of the first chunk */

    ngx_http_xet_array_t   seg_serials;        /* number of the file */
    ngx_http_xet_array_t   seg_firsts;         /* offset of the first term */
    ngx_http_xet_array_t   seg_ends;           /* offset after the last term */
    ngx_http_xet_array_t   seg_packed;         /* terms of the segment */
} ngx_http_xet_batch_columns_t;


/*
 * A new batch is zeroed except for id: nothing is staged, and no file is open.
 */

typedef struct {
    u_char                         id[NGX_HTTP_XET_UPLOAD_LEN];
    int32_t                        seq;        /* number of staged batches */

    ngx_http_xet_batch_columns_t   columns;
    size_t                         size;       /* estimated size of columns */

    /* the open file */
    int64_t                        serial;     /* counts from 1 in an upload */
    uint64_t                       first;      /* offset of terms[0] */
    uint64_t                       end;        /* offset after the terms */
    ngx_uint_t                     nterms;     /* terms in the array terms */
    ngx_uint_t                     segmented;  /* the file has segments */
    u_char                         terms[XET_TERM_SEGMENT_MAX * XET_TERM_LEN];
} ngx_http_xet_batch_t;


/*
 * These functions add a file to the batch.  Call open, then term for each term
 * of the file in order, then close.
 */
void ngx_http_xet_batch_open(ngx_http_xet_batch_t *b);
void ngx_http_xet_batch_term(ngx_http_xet_batch_t *b, const xet_term_t *term);

/* sha256 is the digest in its usual byte order, or NULL. */
void ngx_http_xet_batch_close(ngx_http_xet_batch_t *b,
    const xet_shard_verifier_t *file, const u_char *sha256);


/*
 * The handler of a statement gets one of these values as rc:
 *
 *     NGX_OK         the rows are in the query
 *     NGX_DECLINED   the result has no rows
 *     NGX_ABORT      the SQL function has raised an error of class XT; its code
 *                    is in q->sqlstate
 *     NGX_BUSY       PostgreSQL is unavailable or overloaded: status 503
 *     NGX_ERROR      PostgreSQL has rejected the statement: status 500
 */
typedef void (*ngx_http_xet_query_handler_pt)(ngx_http_request_t *r,
    ngx_int_t rc);


/* The query of a request, which has at most one statement in flight. */

struct ngx_http_xet_query_s {
    ngx_http_request_t             *request;
    ngx_http_xet_pg_query_t        *query;     /* NULL: not in flight */
    ngx_http_xet_query_handler_pt   handler;

    PGresult                       *res;       /* result; owns the rows */
    ngx_uint_t                      standby;   /* last standby's index */
    ngx_uint_t                      asked;     /* bit mask of standbys used */
    ngx_uint_t                      pg_pool;   /* pool used by stmt */
    ngx_uint_t                      stmt;      /* the read, for resending it */
    ngx_uint_t                      files;     /* number of requested items */
    ngx_uint_t                      first;     /* index of the first file */

    /* Returns whether the rows of a standby are complete. */
    ngx_uint_t                    (*complete)(ngx_http_xet_query_t *q,
                                           PGresult *res);

    const u_char                   *upload;    /* id of the staged batches */
    ngx_http_xet_temp_t            *copy;      /* copy for the new row */
    uint64_t                        size;      /* bytes of copy */

    /*
     * Called when the request ends before the statement is complete.  Returns
     * 1 if the statement continues with another handler, which does the
     * cleanup.  If left is NULL or returns 0, the statement is detached.
     */
    ngx_uint_t                    (*left)(ngx_http_xet_query_t *q);

    u_char                          sqlstate[6]; /* "" without an error */

    ngx_http_xet_params_t           params;    /* statement parameters */
    unsigned                        cleanup:1;
    unsigned                        primary:1; /* do not use standbys */
    unsigned                        reading:1; /* uses rows of a standby */
    unsigned                        stale:1;   /* rows may be outdated */
    unsigned                        inherited:1;     /* left() has returned 1 */
    unsigned                        gone:1;    /* not sent: client has gone */
    unsigned                        halted:1;  /* not sent: worker was halted */
    unsigned                        hub:1;     /* upload is a Hub commit */
};


/*
 * Creates the query of a request, if it does not exist; called before the
 * first statement.  Returns NGX_OK, or NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_query_create(ngx_http_request_t *r);

/*
 * Returns the status for rc, the result of sending a statement or the rc of its
 * handler.  "missing" is the status for NGX_DECLINED: the result has no rows.
 */
xet_status_t ngx_http_xet_query_status(ngx_int_t rc, xet_status_t missing);

/*
 * Sends the error response for the rc of a query, which is not NGX_OK; a
 * missing row is an internal error.  ngx_http_xet_query_failed() also finalizes
 * the request.
 */
ngx_int_t ngx_http_xet_query_error(ngx_http_request_t *r, ngx_int_t rc);
void ngx_http_xet_query_failed(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Ends a content handler that has sent its first statement; rc is the result
 * of sending.  If rc is NGX_AGAIN, the request waits, and is finalized when
 * the client closes the connection; else the error is sent.
 */
ngx_int_t ngx_http_xet_query_wait(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Does the same as ngx_http_xet_query_wait(), for a request that is already
 * waiting, or whose caller makes it wait.  Returns NGX_AGAIN, or the result of
 * sending the error.
 */
ngx_int_t ngx_http_xet_query_asked(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Called by the handler of a query.  Calls rows() if the result has rows, else
 * sends the error like ngx_http_xet_query_error().  Then finalizes the request,
 * unless rows() returns NGX_AGAIN because the request waits for something else.
 * "code" and "missing" are the error code and message of the 404 response for a
 * missing row; if they are NULL, a missing row is an internal error.
 */
void ngx_http_xet_query_answer(ngx_http_request_t *r, ngx_int_t rc,
    ngx_int_t (*rows)(ngx_http_request_t *r), const char *code,
    const char *missing);

/*
 * ngx_http_xet_query_read.c: reads that a standby may execute.
 */

/* Sends all further reads of the request to the primary. */
void ngx_http_xet_query_primary(ngx_http_request_t *r);

/*
 * Called if rows are inconsistent with each other or with the store: sends all
 * further reads to the primary.  Returns whether some rows came from a standby;
 * if so, the caller must ignore all rows and read them again.
 */
ngx_uint_t ngx_http_xet_query_again(ngx_http_request_t *r);

/*
 * Frees the rows, which otherwise stay until the next statement or the end of
 * the request.
 */
void ngx_http_xet_query_release(ngx_http_request_t *r);

/* Returns the number of rows of the last statement. */
ngx_uint_t ngx_http_xet_query_rows(ngx_http_xet_query_t *q);

/*
 * Returns the first value of the first row, which is an integer or a boolean.
 */
int64_t ngx_http_xet_query_number(ngx_http_request_t *r);


/*
 * The statements find only files that the token of the request may read.  If
 * dedup is limited to the repo (ngx_http_xet_dedup_wide()), they also find only
 * chunks of such files.
 *
 * The functions return NGX_AGAIN if the handler will be called, NGX_BUSY if
 * PostgreSQL is unavailable or overloaded, and NGX_ERROR if out of memory.
 * Parameters must live until the handler is called or the request ends.
 */

#define NGX_HTTP_XET_TERMS_ROWS  8             /* same in sql/files.sql */

/* The result of file_terms: the terms of one window of a file. */

typedef struct {
    uint64_t    size;                          /* file size in bytes */
    ngx_uint_t  n;
} ngx_http_xet_terms_t;

void ngx_http_xet_query_file_terms_get(ngx_http_request_t *r,
    ngx_http_xet_terms_t *terms);

/*
 * Sends files_terms for several files, starting at byte "at" of files[first].
 */
ngx_int_t ngx_http_xet_query_files_terms(ngx_http_request_t *r,
    ngx_http_xet_array_t *files, ngx_uint_t first, uint64_t at,
    ngx_http_xet_query_handler_pt handler);


/*
 * Reads slices of the chunk lists of xorbs; row i is slice i of slices.  If
 * the xorb is not stored, or its copy is known to be damaged, slice->known is
 * 0.  If hashes is 0, slice->hashes is NULL.  If the range is outside the
 * xorb, slice->n is 0.  pg_pool is an ngx_http_xet_pg_pool_e.
 */
ngx_int_t ngx_http_xet_query_xorb_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t hashes, ngx_uint_t pg_pool,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_xorb_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice);

/*
 * Reads the row of the slice for a term of a shard.  If the client needs proof
 * and may not refer to the xorb, slice->known is 0; if the client must prove
 * that it has the chunks, slice->known is 1 and slice->own is 0.
 */
void ngx_http_xet_query_shard_slices_row(ngx_http_xet_query_t *q,
    ngx_uint_t i, xet_shard_slice_t *slice);


/*
 * Columns of a xorb's row that describe its copy.  inserted is 1 if the xorb
 * was not stored before, or if its uploader (repo or subject) had not sent it
 * before.
 */

typedef struct {
    uint32_t        copy_id;
    uint64_t        size;                      /* file size in bytes */
    xet_checksum_t  digest;
    ngx_uint_t      digested;                  /* 0: digest is unknown */
    ngx_uint_t      intact;                    /* 0: known to be damaged */
    ngx_uint_t      inserted;
} ngx_http_xet_copy_t;

/* A file that consists of all chunks of a xorb. */

struct ngx_http_xet_xorb_file_s {
    xet_hash_t      hash;
    uint64_t        size;
    const u_char   *sha256;                    /* computed by the server */
    ngx_uint_t      kept;                      /* even if no commit uses it */
    u_char          term[XET_TERM_LEN];        /* set by the query */
};

/*
 * ngx_http_xet_query_xorb_put() sends xorb_put, which inserts the row of a xorb
 * whose copy is durable.  "eligible" contains the indexes of the chunks to add
 * to the dedup index; ngx_http_xet_query_eligible() adds them, in any thread.
 * ngx_http_xet_query_xorb_heal() sends xorb_heal, which makes the row refer to
 * this copy instead of the copy old_copy_id.  Both statements return the copy
 * to which the row refers afterwards.  ngx_http_xet_query_file_put() sends
 * file_put, which also registers a file, if the file and the xorb are new;
 * ngx_http_xet_query_file_put_row() returns whether it did.
 *
 * After the statement is sent, the copy is kept until it is certain that no
 * row refers to it.  If the request ends first, the result still decides
 * whether the file is removed.
 */

void ngx_http_xet_query_eligible(ngx_http_xet_array_t *eligible,
    const xet_suite_t *suite, const xet_xorb_info_t *info);
ngx_int_t ngx_http_xet_query_xorb_put(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_temp_t *file, ngx_http_xet_query_handler_pt handler);
ngx_int_t ngx_http_xet_query_file_put(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_temp_t *file, ngx_http_xet_xorb_file_t *whole,
    ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_file_put_row(ngx_http_request_t *r);
ngx_int_t ngx_http_xet_query_xorb_heal(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_temp_t *file,
    uint32_t old_copy_id, ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_xorb_put_row(ngx_http_request_t *r,
    ngx_http_xet_copy_t *copy);

/*
 * Report missing, truncated or damaged copies to which rows still refer.
 * Copies without a row were replaced or collected, and are not a loss.
 * ngx_http_xet_query_xorb_damaged_tell() sends the report without making a
 * request wait, and empties damage.  A report that can't be queued is dropped;
 * a later request will find the damage again.  ngx_http_xet_query_xorb_lost()
 * is called by the handler of copies_lost: it logs the lost copies, returns
 * their number, and changes an rc of NGX_DECLINED to NGX_OK.
 */
ngx_uint_t ngx_http_xet_query_xorb_lost(ngx_http_request_t *r,
    ngx_http_xet_damage_t *damage, ngx_int_t *rc);
void ngx_http_xet_query_xorb_damaged_tell(ngx_http_xet_damage_t *damage);


/*
 * Converts the rc of a dedup query: if PostgreSQL has canceled the query
 * because it took too long, the result is a miss, NGX_DECLINED.
 */
ngx_int_t ngx_http_xet_query_chunk_find_rc(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Fills xorb, whose pointers refer to the rows.  If the row is malformed,
 * chunk_count is 0.
 */
void ngx_http_xet_query_chunk_find_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_xorb_list_t *xorb, ngx_uint_t *recorded);

/*
 * Checks the copies of the first n rows in one call.  Returns an array with the
 * result for each row, which the caller must free, or NULL if out of memory.
 */
ngx_http_xet_copy_stat_t *ngx_http_xet_query_chunk_look_job(
    ngx_http_xet_query_t *q, ngx_http_xet_damage_t *d,
    ngx_http_xet_store_t *store, ngx_uint_t n, ngx_log_t *log);

/*
 * Adds the hashes of the xorbs of all rows to "xorbs".  Returns NGX_OK if all
 * xorbs are recorded as advertised today, NGX_DECLINED if some are not, and
 * NGX_ERROR if a row is malformed.
 */
ngx_int_t ngx_http_xet_query_chunk_find_xorbs(ngx_http_xet_query_t *q,
    ngx_http_xet_array_t *xorbs);


/*
 * ngx_http_xet_chunk_filter.c: the filters of xet_chunk_filter, which know the
 * chunks that a caller may see.
 */

/*
 * Looks up a chunk.  Returns NGX_DECLINED if the caller can see no chunk with
 * this hash.  Otherwise calls done(), maybe after reading filters, to ask
 * PostgreSQL.  Returns NGX_AGAIN if the request waits; else the result of
 * done(), or an error status.
 */
ngx_int_t ngx_http_xet_chunk_filter(ngx_http_request_t *r,
    const xet_hash_t *chunk, ngx_int_t (*done)(ngx_http_request_t *r));

/*
 * Adds chunks that the caller can see since an upload, before its response.
 * "chunks" has hashes; or if "hashes" is not NULL, numbers of these hashes.  If
 * "chunks" is NULL, forgets the filters of the caller.  If "xorb" is set, the
 * upload is a xorb, otherwise files.
 */
void ngx_http_xet_chunk_filter_add(ngx_http_request_t *r, ngx_uint_t xorb,
    const u_char *hashes, const ngx_http_xet_array_t *chunks);


/*
 * A byte limit of a repo or of a subject.  A statement that would exceed a
 * limit is rejected, and ngx_http_xet_query_quota_over() returns that limit.
 */

typedef struct {
    u_char      kind[8];                       /* "repo" or "subject" */
    u_char      what[16];          /* "stored", "logical" or "metadata" */
    uint64_t    limit;
    uint64_t    used;                          /* usage before the rejection */
    uint64_t    more;                          /* bytes that would be added */
} ngx_http_xet_over_t;

/*
 * Returns whether any limit exists, from a cached value.  During uploads the
 * worker reads the value from PostgreSQL every few seconds, and no request
 * waits for the result.
 */
ngx_uint_t ngx_http_xet_query_quotas(void);

/*
 * Returns whether the last statement was rejected because of a limit, and
 * fills over with the limit.
 */
ngx_uint_t ngx_http_xet_query_quota_over(ngx_http_request_t *r,
    ngx_http_xet_over_t *over);


/*
 * Returns whether it is certain, after a failed statement, that no row refers
 * to the statement's copy.  It is uncertain if the result was lost.  It is
 * also uncertain after a conflict (class 40), because another writer, for
 * example "xet rebuild", may have added the row.
 */
ngx_uint_t ngx_http_xet_query_unnamed(const u_char *sqlstate);

/*
 * ngx_http_xet_query_copy_ids.c: requests more copy ids if only a few are left,
 * without waiting.  Called whenever a copy id is used.
 */
void ngx_http_xet_query_copy_ids(void);

/*
 * Waits for copy ids.  Returns NGX_AGAIN if handler will be called, whether or
 * not new copy ids have arrived.  ngx_http_xet_query_copy_ids_leave() stops
 * waiting; handler is then not called.  Returns NGX_DECLINED if copy ids can't
 * be requested.
 */

typedef struct {
    ngx_queue_t   queue;
    void        (*handler)(void *data);
    void         *data;
    unsigned      waits:1;
} ngx_http_xet_copy_ids_wait_t;

ngx_int_t ngx_http_xet_query_copy_ids_wait(ngx_http_xet_copy_ids_wait_t *wait);
void ngx_http_xet_query_copy_ids_leave(ngx_http_xet_copy_ids_wait_t *wait);


/* ngx_http_xet_query_post.c: statements outside of requests. */

/*
 * The result of a statement without a request, valid while its handler runs.
 * The values of rc are those of ngx_http_xet_query_handler_pt except NGX_ABORT.
 */

typedef struct ngx_http_xet_ask_s  ngx_http_xet_ask_t;

typedef void (*ngx_http_xet_asked_pt)(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);

struct ngx_http_xet_ask_s {
    PGresult               *res;               /* owns the rows */
    u_char                  sqlstate[6];       /* "" without an error */

    ngx_http_xet_asked_pt   handler;           /* or NULL */
    void                   *data;
    ngx_http_xet_params_t   params;
    ngx_pool_t             *pool;              /* freed with the statement */
};

/* Return the number of rows, and the integer in the first row. */
#define ngx_http_xet_ask_rows(ask)  ngx_http_xet_pg_rows((ask)->res)

int64_t ngx_http_xet_ask_number(ngx_http_xet_ask_t *ask);

/*
 * Called after a statement was sent for a request with staged data: terms of
 * files, or operations of a commit if hub is set.  rc is the result of sending.
 * If the request ends before the statement is complete, the staged data is
 * dropped when the statement is complete.  Returns rc.  Does nothing if upload
 * is NULL.
 */
ngx_int_t ngx_http_xet_query_leave(ngx_http_request_t *r, ngx_int_t rc,
    const u_char *upload, ngx_uint_t hub);

/*
 * Sends write_probe, which tests whether the database accepts writes.  Returns
 * the same values as ngx_http_xet_ask().
 */
ngx_int_t ngx_http_xet_query_write_probe(ngx_http_xet_asked_pt handler,
    void *data);


/*
 * Sends xorb_heal outside of requests.  Returns NGX_AGAIN if handler will be
 * called once, or NGX_BUSY if the statement can't be queued.
 * The result is one number: the copy id to which the row refers afterwards.
 */
ngx_int_t ngx_http_xet_ask_heal(const xet_xorb_info_t *info,
    ngx_http_xet_temp_t *file, uint32_t old_copy_id,
    ngx_http_xet_asked_pt handler, void *data);


#if (NGX_HTTP_XET_ZTENSOR)

/*
 * Sends zt_put, which stores a check result and attributes; the arguments are
 * copied.  No request waits for the result, and nothing is stored if too many
 * statements are waiting.
 */
void ngx_http_xet_query_zt_put(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t rules, xet_buf_t *verdict, const xet_zt_text_t *attributes);

/* Sends zt_reports_put, which stores reports, like zt_put. */
void ngx_http_xet_query_zt_reports_put(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t rules, ngx_http_xet_array_t *objects,
    ngx_http_xet_array_t *reports);

#endif


/* Opens the session pools; called in init_process of a worker. */
ngx_int_t ngx_http_xet_query_pools(ngx_cycle_t *cycle);


/*
 * ngx_http_xet_query_hub.c: Hub statements.
 */

/*
 * A repo that the caller requests, and the caller's permissions: see
 * xet.hub_may() in sql/hub_repos.sql.  A zeroed structure grants no
 * permissions.
 */

typedef struct {
    xet_hub_kind_e         kind;
    ngx_str_t              owner;
    ngx_str_t              name;
    ngx_uint_t             any_space;
    ngx_uint_t             any_store;
    ngx_str_t              store;              /* data NULL: no access */
    ngx_http_xet_array_t  *spaces;             /* text; NULL: no access */
    ngx_uint_t             admin;              /* has the scope "admin" */
} ngx_http_xet_hub_asked_t;


/*
 * The result of a Hub statement.  The strings point into the row; the data of a
 * NULL column is NULL.
 */

typedef struct {
    ngx_uint_t      status;
    ngx_str_t       code;
    ngx_str_t       message;
    ngx_str_t       body;
    ngx_str_t       more;
} ngx_http_xet_hub_answer_t;


/*
 * A batch of operations of a commit, as parameters of hub_stage.  A thread
 * fills the arrays, which have one element per operation.
 */

typedef struct {
    ngx_http_xet_array_t   ops;
    ngx_http_xet_array_t   paths;
    ngx_http_xet_array_t   sizes;
    ngx_http_xet_array_t   hashes;
    ngx_http_xet_array_t   sha256;
    ngx_http_xet_array_t   mtimes;
    ngx_http_xet_array_t   types;
    ngx_http_xet_array_t   sources;
} ngx_http_xet_hub_batch_t;

/* Adds an operation.  Returns XET_OK or XET_NOMEM. */
xet_status_t ngx_http_xet_hub_batch_add(ngx_http_xet_hub_batch_t *b,
    const xet_hub_operation_t *op);


/*
 * Fills answer from the first row of any statement with XET_ANSWER.
 */
void ngx_http_xet_query_hub_get(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);

/*
 * Sends hub_enter; if "writes" is set, only to the primary.  rev->data may be
 * NULL.
 */
ngx_int_t ngx_http_xet_query_hub_enter(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_uint_t writes, ngx_http_xet_query_handler_pt handler);

/*
 * Count and read the entries in the rows of hub_tree_rows or hub_paths_rows;
 * the first row is not an entry.  The strings of a node point into the rows.
 * ngx_http_xet_query_hub_node() returns NGX_ERROR if the row is malformed.
 */
ngx_uint_t ngx_http_xet_query_hub_nodes(ngx_http_request_t *r);
ngx_int_t ngx_http_xet_query_hub_node(ngx_http_request_t *r, ngx_uint_t i,
    xet_hub_node_t *node);

typedef struct {
    ngx_str_t   rev;
    ngx_str_t   path;
    ngx_str_t   after;                         /* data NULL: the first page */
    ngx_uint_t  most;                          /* maximum entries per page */
    ngx_uint_t  part;                          /* entries per statement */
    ngx_uint_t  recursive;
    ngx_uint_t  expand;
} ngx_http_xet_hub_page_t;


/* Sends hub_stage, which stages a batch of operations. */
ngx_int_t ngx_http_xet_query_hub_stage(ngx_http_request_t *r,
    const u_char *upload, ngx_uint_t seq, ngx_http_xet_hub_batch_t *batch,
    ngx_http_xet_query_handler_pt handler);


typedef struct {
    ngx_str_t       parent;                    /* data NULL: not checked */
    ngx_str_t       seen;                      /* branch head when last read */
    ngx_str_t       title;
    ngx_str_t       text;
} ngx_http_xet_hub_message_t;


#include "ngx_http_xet_statements.h"


/*
 * Returns 1 if too many statements are waiting; then optional statements must
 * not be sent.
 */
ngx_uint_t ngx_http_xet_query_post_busy(void);

/*
 * Tests whether PostgreSQL responds.  Returns NGX_AGAIN if handler will be
 * called, or NGX_BUSY if PostgreSQL is known to be unavailable.
 */
ngx_int_t ngx_http_xet_query_alive(void (*handler)(ngx_int_t rc));


#endif /* _NGX_HTTP_XET_QUERY_H_INCLUDED_ */
