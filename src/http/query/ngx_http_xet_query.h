
/*
 * One function a statement: binds parameters, reads rows into structures.
 */

#ifndef _NGX_HTTP_XET_QUERY_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_store.h"


/*
 * Which parts of which xorbs' chunk lists are asked for: the parameters of
 * ngx_http_xet_query_xorb_slices().
 */

typedef struct {
    ngx_http_xet_array_t   xorbs;
    ngx_http_xet_array_t   starts;
    ngx_http_xet_array_t   ends;       /* exclusive */
    ngx_uint_t             n;
    ngx_uint_t             chunks;     /* in all slices */
} ngx_http_xet_slices_t;


/* As arrays: a thread may fill slices; destroy frees memory, reset keeps it. */
void ngx_http_xet_slices_init(ngx_http_xet_slices_t *s);
void ngx_http_xet_slices_reset(ngx_http_xet_slices_t *s);
void ngx_http_xet_slices_destroy(ngx_http_xet_slices_t *s);

void ngx_http_xet_slices_add(ngx_http_xet_slices_t *s, const xet_hash_t *xorb,
    uint32_t start, uint32_t end);


/*
 * ngx_http_xet_damage.c: copies of xorbs that were found missing, cut or
 * damaged: noted by threads, reported to PostgreSQL by the event loop, so that
 * nothing new refers to them until they are healed.
 */

/*
 * Further ones are dropped, and found by who comes next.  Where all are to be
 * found they are asked for by as many (xet.shard_doubts() in
 * sql/shards.sql).
 */
#define NGX_HTTP_XET_DAMAGE_MAX  1024


typedef struct {
    ngx_http_xet_array_t  xorbs;
    ngx_http_xet_array_t  tags;
    ngx_uint_t            n;
    unsigned              log:1;               /* nobody else logs it */
} ngx_http_xet_damage_t;


void ngx_http_xet_damage_init(ngx_http_xet_damage_t *d);
void ngx_http_xet_damage_destroy(ngx_http_xet_damage_t *d);

void ngx_http_xet_damage_note(ngx_http_xet_damage_t *d,
    const xet_hash_t *xorb, uint32_t tag);

/*
 * Looks at a copy that a row names as ngx_http_xet_store_stat_job() does; notes
 * a copy that is not there with its size, XET_STORE_DAMAGED, to be logged when
 * a row still names it.
 */
xet_status_t ngx_http_xet_damage_stat_job(ngx_http_xet_damage_t *d,
    ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t tag,
    uint64_t size, ngx_log_t *log);

/* The same for n copies, as ngx_http_xet_store_stat_all_job(). */
void ngx_http_xet_damage_stat_all_job(ngx_http_xet_damage_t *d,
    ngx_http_xet_store_t *store, ngx_http_xet_copy_stat_t *stats,
    ngx_uint_t n, ngx_log_t *log);


/*
 * Files and their terms, verified, on their way into PostgreSQL.
 *
 * A batch is bounded; what does not fit into one is staged under the upload's
 * id, and the last one commits all of them in one transaction.  One file at a
 * time is open in a batch, and its terms may begin in one batch and end in
 * another.  A batch belongs to the thread while a job runs.
 */

#define NGX_HTTP_XET_UPLOAD_LEN  16            /* an upload's random id */


typedef struct {
    u_char                 id[NGX_HTTP_XET_UPLOAD_LEN];
    int32_t                seq;                /* batches staged */

    ngx_http_xet_array_t   serials;            /* per file: its number */
    ngx_http_xet_array_t   hashes;
    ngx_http_xet_array_t   sizes;
    ngx_http_xet_array_t   sha256;
    ngx_http_xet_array_t   counts;
    ngx_http_xet_array_t   packed;             /* NULL: in segments */
    ngx_http_xet_array_t   chunks;             /* hash of the first chunk */
    ngx_http_xet_array_t   xorbs;              /* xorb of the first chunk */
    ngx_http_xet_array_t   indexes;            /* its index in that xorb */

    ngx_http_xet_array_t   seg_serials;        /* per segment: its file */
    ngx_http_xet_array_t   seg_firsts;
    ngx_http_xet_array_t   seg_ends;
    ngx_http_xet_array_t   seg_packed;

    size_t                 size;               /* bytes in the arrays, about */

    /* the open file */
    int64_t                serial;             /* from 1, in the upload */
    uint64_t               first;              /* offset of terms[0] */
    uint64_t               end;                /* offset behind the terms */
    ngx_uint_t             nterms;             /* in terms */
    ngx_uint_t             segmented;          /* some are in segments */
    u_char                 terms[XET_TERM_SEGMENT_MAX * XET_TERM_LEN];
} ngx_http_xet_batch_t;


void ngx_http_xet_batch_init(ngx_http_xet_batch_t *b);
void ngx_http_xet_batch_destroy(ngx_http_xet_batch_t *b);

/* Empties the arrays, after the batch was staged: the open file stays open. */
void ngx_http_xet_batch_reset(ngx_http_xet_batch_t *b);


/* Whether the batch is out of memory; to be called before it is sent. */
ngx_uint_t ngx_http_xet_batch_failed(ngx_http_xet_batch_t *b);

/* A file of the batch: open, then a call for each term in order, then close. */
void ngx_http_xet_batch_open(ngx_http_xet_batch_t *b);
void ngx_http_xet_batch_term(ngx_http_xet_batch_t *b, const xet_term_t *term);

/* sha256: the digest in its usual byte order, or NULL. */
void ngx_http_xet_batch_close(ngx_http_xet_batch_t *b,
    const xet_shard_verifier_t *file, const u_char *sha256);


/*
 * The rc that the handler of a query gets:
 *
 *     NGX_OK         the rows are in the query
 *     NGX_DECLINED   there is no such row
 *     NGX_ABORT      the function raised an error of class XT: the verdict is
 *                    the query's sqlstate
 *     NGX_BUSY       PostgreSQL is away or overloaded, 503
 *     NGX_ERROR      PostgreSQL refused the statement, 500
 */
typedef void (*ngx_http_xet_query_handler_pt)(ngx_http_request_t *r,
    ngx_int_t rc);


/* One a request: at most one statement of a request is in flight. */

struct ngx_http_xet_query_s {
    ngx_http_request_t             *request;
    ngx_http_xet_pg_query_t        *query;     /* in flight */
    ngx_http_xet_query_handler_pt   handler;

    PGresult                       *res;       /* what the rows point into */
    ngx_uint_t                      standby;   /* that was asked last */
    ngx_uint_t                      asked;     /* standbys, a bit each */
    ngx_uint_t                      lane;      /* to be asked then, */
    ngx_uint_t                      stmt;      /* for what */
    ngx_uint_t                      files;     /* that rows are wanted of */
    ngx_uint_t                      first;     /* the first of them */

    /* Whether an answer lacks nothing of what was asked for. */
    ngx_uint_t                    (*whole)(ngx_http_xet_query_t *q,
                                           PGresult *res);

    const u_char                   *upload;    /* id of the staged batches */
    ngx_http_xet_temp_t            *copy;      /* that a row is to name, */
    uint64_t                        size;      /* with so many bytes */

    /*
     * Called when the request dies before the statement is answered.  Returns
     * 1 when the statement goes on, with a handler of its own that cleans up
     * behind it, and 0 when it is to be detached; NULL: it is detached.
     */
    ngx_uint_t                    (*left)(ngx_http_xet_query_t *q);

    u_char                          sqlstate[6]; /* "" unless refused */

    ngx_http_xet_params_t           params;    /* of the statement */
    unsigned                        cleanup:1;
    unsigned                        primary:1; /* no standby is asked */
    unsigned                        reading:1; /* it has rows of a standby */
    unsigned                        stale:1;   /* the same, since again() */
    unsigned                        inherited:1;       /* left() went on */
    unsigned                        gone:1;    /* not sent: no client */
    unsigned                        halted:1;  /* the same: the worker was */
};


/*
 * Makes the query of a request, before its first statement, unless it is there.
 * NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_query_create(ngx_http_request_t *r);
ngx_http_xet_query_t *ngx_http_xet_query_get(ngx_http_request_t *r);

/*
 * The core status for the rc that sending a statement returned, or that its
 * handler got; missing is the status for NGX_DECLINED, no such row.
 */
xet_status_t ngx_http_xet_query_status(ngx_int_t rc, xet_status_t missing);

/*
 * Answers with the error for the rc of a query that is not NGX_OK.  code and
 * missing are code and message of the 404 for no such row, NULL where a missing
 * row is a fault of the server.
 */
ngx_int_t ngx_http_xet_query_error(ngx_http_request_t *r, ngx_int_t rc,
    const char *code, const char *missing);

/*
 * The end of a content handler that has sent its first statement, with rc as
 * sending returned it.  For NGX_AGAIN the request waits from now on, and ends
 * when the client leaves; for any other rc the error is answered.
 */
ngx_int_t ngx_http_xet_query_wait(ngx_http_request_t *r, ngx_int_t rc);

/*
 * As ngx_http_xet_query_wait(), where the request waits already, or the caller
 * makes it wait: returns NGX_AGAIN, or answers the error.
 */
ngx_int_t ngx_http_xet_query_asked(ngx_http_request_t *r, ngx_int_t rc);

/*
 * For the handler of a query: calls rows() where the query gave some, else
 * answers as ngx_http_xet_query_error() does, and finalizes the request, unless
 * rows() returns NGX_AGAIN because the request waits for something else.
 */
void ngx_http_xet_query_answer(ngx_http_request_t *r, ngx_int_t rc,
    ngx_int_t (*rows)(ngx_http_request_t *r), const char *code,
    const char *missing);

/*
 * ngx_http_xet_query_read.c: reads that standbys may answer.
 */

/* From now on all reads of the request go to the primary. */
void ngx_http_xet_query_primary(ngx_http_request_t *r);

/*
 * The same, when rows do not fit each other, or the store.  Whether some of
 * them came from a standby: then nothing follows from that, and the caller asks
 * again for all of them.
 */
ngx_uint_t ngx_http_xet_query_again(ngx_http_request_t *r);

/* Frees the rows, which otherwise stay until the next statement or the end. */
void ngx_http_xet_query_release(ngx_http_request_t *r);

/* How many rows the last statement gave. */
ngx_uint_t ngx_http_xet_query_rows(ngx_http_xet_query_t *q);

/* The first value of the first row, for statements with one number or bool. */
int64_t ngx_http_xet_query_number(ngx_http_request_t *r);


/*
 * Files, and chunks where dedup ends at the repo, are seen as the request's
 * token allows (ngx_http_xet_access.h).
 *
 * The functions return NGX_AGAIN when the handler will be called, NGX_BUSY
 * when PostgreSQL can't take the statement, NGX_ERROR without memory.
 * Parameters must live until the handler is called or the request dies.
 */

/*
 * The terms of a file that overlap bytes [first, last], last included, in rows
 * of up to XET_TERM_SEGMENT_MAX terms.  A result is a window of them: where it
 * has NGX_HTTP_XET_TERMS_ROWS rows, the caller asks for the rest from the end
 * of the last term on.
 */

#define NGX_HTTP_XET_TERMS_ROWS  8             /* as in sql/files.sql */

typedef struct {
    uint64_t    size;                          /* of the file */
    ngx_uint_t  n;
} ngx_http_xet_terms_t;

ngx_int_t ngx_http_xet_query_file_terms(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t first, uint64_t last,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_file_terms_get(ngx_http_request_t *r,
    ngx_http_xet_terms_t *terms);
void ngx_http_xet_query_file_terms_row(ngx_http_request_t *r, ngx_uint_t i,
    uint64_t *first_offset, ngx_str_t *packed);


/*
 * A file as a reader wants it: one row, with the terms around byte "at".
 * sha256 and packed point into that row.
 */

typedef struct {
    uint64_t    size;
    u_char     *sha256;                        /* 32 bytes; NULL: not proven */
    uint64_t    first_offset;                  /* of the terms */
    ngx_str_t   packed;                        /* empty for an empty file */
} ngx_http_xet_open_t;

ngx_int_t ngx_http_xet_query_file_open(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t at,
    ngx_http_xet_query_handler_pt handler);

/* Returns the status of rc, and XET_DATABASE for a row that is malformed. */
xet_status_t ngx_http_xet_query_file_open_get(ngx_http_request_t *r,
    ngx_int_t rc, ngx_http_xet_open_t *open);


/*
 * The terms of several whole files, in the order of the array, from byte "at"
 * of file number first on; a result is a window of NGX_HTTP_XET_TERMS_ROWS rows
 * at most.  Files that the request may not see have no row.
 */

typedef struct {
    ngx_uint_t  file;                          /* index in the array */
    uint64_t    size;
    uint64_t    first_offset;
    ngx_str_t   packed;                        /* empty for an empty file */
} ngx_http_xet_file_row_t;

ngx_int_t ngx_http_xet_query_files_terms(ngx_http_request_t *r,
    ngx_http_xet_array_t *files, ngx_uint_t first, uint64_t at,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_files_terms_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_file_row_t *row);


/*
 * Slices of the chunk lists of xorbs, one row for each slice, in order.  A xorb
 * that is not stored, or whose copy is known to be damaged, is not known.  With
 * hashes 0 slice->hashes is NULL.  A range outside its xorb gives n == 0.  lane
 * is an ngx_http_xet_lane_e.
 */
ngx_int_t ngx_http_xet_query_xorb_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t hashes, ngx_uint_t lane,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_xorb_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice);

/*
 * The slices that the terms of a shard name.  With proof, a slice that the
 * client may not name is not known, and one of which it has to prove that it
 * has the chunks is known but not own.
 */
ngx_int_t ngx_http_xet_query_shard_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t proof,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_shard_slices_row(ngx_http_xet_query_t *q,
    ngx_uint_t i, xet_shard_slice_t *slice);


/*
 * A stored copy of a xorb, as its row names it.
 */

typedef struct {
    uint32_t        tag;
    uint64_t        size;                      /* bytes in its file */
    xet_checksum_t  digest;
    ngx_uint_t      digested;                  /* 0: digest is not known */
    ngx_uint_t      whole;                     /* 0: known to be damaged */
    ngx_uint_t      news;                      /* new for its uploader */
} ngx_http_xet_copy_t;

/*
 * put registers a xorb whose bytes are durable in a copy, with the indexes of
 * the chunks that go into the dedup index; query_eligible() adds these to the
 * array, in any thread.  heal puts the copy in the place of the copy that has
 * old_tag.  Both answer with the copy that the row names then.
 *
 * Once the statement is sent the file is kept, until it is certain that no row
 * names it.  When the request dies first, the answer still decides whether the
 * file is removed.
 */

void ngx_http_xet_query_eligible(ngx_http_xet_array_t *eligible,
    const xet_suite_t *suite, const xet_xorb_info_t *info);
ngx_int_t ngx_http_xet_query_xorb_put(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_temp_t *file, ngx_http_xet_query_handler_pt handler);
ngx_int_t ngx_http_xet_query_xorb_heal(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_temp_t *file, uint32_t old_tag,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_xorb_put_row(ngx_http_request_t *r,
    ngx_http_xet_copy_t *copy);

/*
 * Puts on record that copies are missing, cut or damaged, as far as rows still
 * name them; the others were replaced, or collected, and are no loss.  tell
 * does so without a request that waits, and leaves damage empty; the report is
 * dropped when it can't be queued, and made again by whoever meets the damage
 * next.  The handler calls lost, which returns how many copies are lost, logs
 * these, and makes NGX_OK of NGX_DECLINED.
 */
ngx_int_t ngx_http_xet_query_xorb_damaged(ngx_http_request_t *r,
    ngx_http_xet_damage_t *damage, ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_xorb_lost(ngx_http_request_t *r,
    ngx_http_xet_damage_t *damage, ngx_int_t *rc);
void ngx_http_xet_query_xorb_damaged_tell(ngx_http_xet_damage_t *damage);


/*
 * The copy of a xorb; NGX_DECLINED for a xorb that is not stored, and for one
 * that the request may not know all of.
 */
ngx_int_t ngx_http_xet_query_xorb_get(ngx_http_request_t *r,
    const xet_hash_t *xorb, ngx_http_xet_query_handler_pt handler);

/*
 * Sets size, tag and whole, the rest of copy is zero; returns whether it is on
 * record that the xorb was advertised today.
 */
ngx_uint_t ngx_http_xet_query_xorb_get_row(ngx_http_request_t *r,
    ngx_http_xet_copy_t *copy);

/*
 * The copy of a xorb that the client may name in a shard without sending it;
 * NGX_DECLINED for any other xorb.  The row is one of xorb_get.
 */
ngx_int_t ngx_http_xet_query_xorb_grant(ngx_http_request_t *r,
    const xet_hash_t *xorb, ngx_http_xet_query_handler_pt handler);


/*
 * The xorbs that answer a dedup query, one a row, with their whole chunk lists,
 * the best first; noted tells whether it is on record that the xorb of the row
 * was advertised today.  ngx_http_xet_query_xorb_advertised() puts that on
 * record; its number is how many of the xorbs are there still.
 */

ngx_int_t ngx_http_xet_query_chunk_find(ngx_http_request_t *r,
    const xet_hash_t *chunk, ngx_http_xet_query_handler_pt handler);

/*
 * The rc of a query about a chunk: one that PostgreSQL has cancelled for taking
 * too long counts as a miss, NGX_DECLINED.
 */
ngx_int_t ngx_http_xet_query_chunk_find_rc(ngx_http_request_t *r, ngx_int_t rc);

/* Fills xorb, which points into the rows; chunk_count is 0 if malformed. */
void ngx_http_xet_query_chunk_find_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_xorb_list_t *xorb, ngx_uint_t *noted);

/*
 * Looks at the copies of the first n rows, together.  NULL without memory; the
 * looks are in the order of the rows, and to be freed.
 */
ngx_http_xet_copy_stat_t *ngx_http_xet_query_chunk_look_job(
    ngx_http_xet_query_t *q, ngx_http_xet_damage_t *d,
    ngx_http_xet_store_t *store, ngx_uint_t n, ngx_log_t *log);

/*
 * Adds the hashes of the xorbs of all rows to xorbs.  NGX_OK: all are on record
 * as advertised today; NGX_DECLINED: some are not; NGX_ERROR: a row is
 * malformed.
 */
ngx_int_t ngx_http_xet_query_chunk_find_xorbs(ngx_http_xet_query_t *q,
    ngx_http_xet_array_t *xorbs);

ngx_int_t ngx_http_xet_query_xorb_advertised(ngx_http_request_t *r,
    ngx_http_xet_array_t *xorbs, ngx_http_xet_query_handler_pt handler);


/* Puts a batch of a shard aside, under the id of its upload. */
ngx_int_t ngx_http_xet_query_shard_stage(ngx_http_request_t *r,
    ngx_http_xet_batch_t *b, ngx_http_xet_query_handler_pt handler);

/* Where a batch of doubts begins; the first one at zeroes. */

typedef struct {
    int64_t                         file;      /* its place in the batch */
    int64_t                         xorb;      /* id; up to it they are done */
} ngx_http_xet_doubt_t;

/*
 * The copies that registered files of the batch refer to by other terms than
 * those of the batch, up to NGX_HTTP_XET_DAMAGE_MAX of them, from *from on.  A
 * row is a copy, 1; or, 0, it sets *next to the beginning of the next batch.
 * Without such a row there is no next batch.
 */
ngx_int_t ngx_http_xet_query_shard_doubts(ngx_http_request_t *r,
    ngx_http_xet_batch_t *b, const ngx_http_xet_doubt_t *from,
    ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_shard_doubts_row(ngx_http_xet_query_t *q,
    ngx_uint_t i, xet_hash_t *xorb, uint32_t *tag, uint64_t *size,
    ngx_http_xet_doubt_t *next);

/*
 * Registers the files of the last batch and of all staged ones, in a single
 * transaction; the number is 0 unless a file, or its place in the repo, was
 * new.
 */
ngx_int_t ngx_http_xet_query_shard_put(ngx_http_request_t *r,
    ngx_http_xet_batch_t *b, ngx_http_xet_query_handler_pt handler);


/* Records the SHA-256 of files that was computed from their data. */
ngx_int_t ngx_http_xet_query_files_prove(ngx_http_request_t *r,
    ngx_http_xet_array_t *files, ngx_http_xet_array_t *sha256,
    ngx_http_xet_query_handler_pt handler);

/*
 * The store lets go of a file; the number is 0 where it has no such file, and 2
 * where repos have it, and nothing was done.
 */
ngx_int_t ngx_http_xet_query_file_delete(ngx_http_request_t *r,
    const xet_hash_t *file, ngx_http_xet_query_handler_pt handler);

/* Deletes a repo with all its places; the number is 0 where there is none. */
ngx_int_t ngx_http_xet_query_repo_delete(ngx_http_request_t *r,
    ngx_str_t *repo, ngx_http_xet_query_handler_pt handler);


/*
 * Limits of bytes, by repo and by subject.  A statement that would exceed one
 * is refused, and ngx_http_xet_query_quota_over() tells which one it was.
 */

typedef struct {
    u_char      kind[8];                       /* "repo" or "subject" */
    u_char      what[16];          /* "stored", "logical" or "metadata" */
    uint64_t    limit;
    uint64_t    used;                          /* without what was refused */
} ngx_http_xet_over_t;

/*
 * Whether anybody has a limit, as far as the worker knows: it asks every few
 * seconds while there are uploads, and nobody waits for that.
 */
ngx_uint_t ngx_http_xet_query_quotas(void);

/*
 * Asks whether so many more bytes would be taken now; what is "stored" or
 * "logical".  hash, of a xorb or of a file, may be NULL for a file: what is
 * there already costs nothing.
 */
ngx_int_t ngx_http_xet_query_quota_look(ngx_http_request_t *r,
    const char *what, uint64_t size, const xet_hash_t *hash,
    ngx_http_xet_query_handler_pt handler);

/* Whether the last statement was refused for a limit; fills over if it was. */
ngx_uint_t ngx_http_xet_query_quota_over(ngx_http_request_t *r,
    ngx_http_xet_over_t *over);


/* What the repo and the subject of the request use, a row each. */

typedef struct {
    ngx_str_t   kind;
    uint64_t    stored;
    uint64_t    logical;
    uint64_t    files;
    uint64_t    stored_max;
    uint64_t    logical_max;
    uint64_t    metadata;
    uint64_t    metadata_max;
    unsigned    stored_limited:1;
    unsigned    logical_limited:1;
    unsigned    metadata_limited:1;
} ngx_http_xet_usage_t;

ngx_int_t ngx_http_xet_query_usage_get(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_usage_get_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_usage_t *usage);


/* Takes a file out of a repo; the number is 0 for one that was not in it. */
ngx_int_t ngx_http_xet_query_repo_forget(ngx_http_request_t *r, ngx_str_t *repo,
    const xet_hash_t *file, ngx_http_xet_query_handler_pt handler);

/* Drops what an upload has staged under its id; nobody waits for it. */
void ngx_http_xet_query_shard_unstage(const u_char *id);

/*
 * The same of a commit, or of a repo that was not created; so many bytes of a
 * file were read for it, and not to their end.
 */
void ngx_http_xet_query_hub_unstage(const u_char *id, uint64_t bytes);


/*
 * Whether it is certain, behind a failed statement, that no row names the copy
 * which it was to name: not without an answer, nor where PostgreSQL refused it
 * for what others do (class 40), since these may have put the row themselves,
 * as "xet rebuild" does.
 */
ngx_uint_t ngx_http_xet_query_unnamed(const u_char *sqlstate);

/*
 * ngx_http_xet_query_tags.c: has the store get more tags where few are left.
 * For whoever has used one, or is about to; nobody waits for it.
 */
void ngx_http_xet_query_tags(void);

/*
 * Who waits for tags: NGX_AGAIN where handler will be called, with tags or
 * without, unless it leaves before; NGX_DECLINED where nobody can be asked.
 */

typedef struct {
    ngx_queue_t   queue;
    void        (*handler)(void *data);
    void         *data;
    unsigned      waits:1;
} ngx_http_xet_tags_wait_t;

ngx_int_t ngx_http_xet_query_tags_wait(ngx_http_xet_tags_wait_t *wait);
void ngx_http_xet_query_tags_leave(ngx_http_xet_tags_wait_t *wait);


/* Drops what crashed uploads have staged, and old zTensor results. */
void ngx_http_xet_query_sweep(void);

/*
 * ngx_http_xet_query_chore.c: statements of chores, which no request waits for.
 */

/*
 * The answer to such a statement, valid while its handler runs.  rc is as for
 * ngx_http_xet_query_handler_pt, without NGX_ABORT.
 */

typedef struct ngx_http_xet_ask_s  ngx_http_xet_ask_t;

typedef void (*ngx_http_xet_asked_pt)(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);

struct ngx_http_xet_ask_s {
    PGresult               *res;               /* what the rows point into */
    u_char                  sqlstate[6];       /* "" unless refused */
    ngx_http_xet_asked_pt   handler;
    void                   *data;
    ngx_pool_t             *pool;
};

/* The number of rows, and the number in the first one. */
ngx_uint_t ngx_http_xet_ask_rows(ngx_http_xet_ask_t *ask);
int64_t ngx_http_xet_ask_number(ngx_http_xet_ask_t *ask);

/* Whether PostgreSQL has refused the statement for certain. */
ngx_uint_t ngx_http_xet_ask_refused(ngx_http_xet_ask_t *ask);

/* Writes something that leaves nothing; returns as those of chores do. */
ngx_int_t ngx_http_xet_query_write_probe(ngx_http_xet_asked_pt handler,
    void *data);


/*
 * All that follow return NGX_AGAIN, and call handler once, or NGX_BUSY where
 * the statement can't be queued.  They copy their parameters.
 */

/* Who works, on what, and for how long: see ngx_http_xet_chores.h. */

#define NGX_HTTP_XET_HOLDER_LEN  16            /* random bytes */

typedef struct {
    ngx_str_t       name;
    const u_char   *holder;
    ngx_msec_t      interval;                  /* between runs */
    ngx_msec_t      lease;                     /* 0: it is given back */
    uint64_t        turn;
    ngx_uint_t      seq;
    ngx_str_t       cursor;
    ngx_str_t       figures;                   /* JSON */
    ngx_str_t       note;                      /* empty: none */
} ngx_http_xet_turn_t;

/* The numbers of keep and done are 0 where somebody else has the lease. */
ngx_int_t ngx_http_xet_query_chore_take(const ngx_http_xet_turn_t *turn,
    ngx_http_xet_asked_pt handler, void *data);
ngx_int_t ngx_http_xet_query_chore_keep(const ngx_http_xet_turn_t *turn,
    ngx_http_xet_asked_pt handler, void *data);
ngx_int_t ngx_http_xet_query_chore_done(const ngx_http_xet_turn_t *turn,
    ngx_http_xet_asked_pt handler, void *data);

/*
 * Sets turn and cursor, which points into the row, and *begins for a new run;
 * returns 0, or for how many milliseconds there is nothing to take.
 */
ngx_msec_t ngx_http_xet_query_chore_take_row(ngx_http_xet_ask_t *ask,
    ngx_http_xet_turn_t *turn, ngx_uint_t *begins);


/* What a batch of the collector did. */

typedef struct {
    uint64_t        seen;
    uint64_t        busy;                      /* of them, locked by others */
    uint64_t        n;                         /* deleted */
    uint64_t        bytes;
    uint64_t        more;                      /* references, or told */
    uint64_t        needed;                    /* of xorbs */
} ngx_http_xet_gc_row_t;

ngx_int_t ngx_http_xet_query_gc_files(ngx_uint_t batch,
    ngx_http_xet_asked_pt handler, void *data);
ngx_int_t ngx_http_xet_query_gc_xorbs(ngx_uint_t grace, ngx_uint_t batch,
    ngx_http_xet_asked_pt handler, void *data);
void ngx_http_xet_query_gc_row(ngx_http_xet_ask_t *ask,
    ngx_http_xet_gc_row_t *row);


/* The number is 0 where nothing is left to be settled. */
ngx_int_t ngx_http_xet_query_usage_settle(ngx_uint_t batch,
    ngx_http_xet_asked_pt handler, void *data);


/* Copies whose rows are gone, and which are to be removed. */

ngx_int_t ngx_http_xet_query_gc_copies(ngx_uint_t batch,
    ngx_http_xet_asked_pt handler, void *data);

/* NGX_ERROR for a row that is malformed. */
ngx_int_t ngx_http_xet_query_gc_copy(ngx_http_xet_ask_t *ask, ngx_uint_t i,
    ngx_http_xet_copy_name_t *copy);

/* The files of n copies are gone; how many of these that is news of. */
ngx_int_t ngx_http_xet_query_gc_removed(ngx_http_xet_copy_name_t *copies,
    ngx_uint_t n, ngx_http_xet_asked_pt handler, void *data);
void ngx_http_xet_query_gc_removed_row(ngx_http_xet_ask_t *ask, uint64_t *n,
    uint64_t *bytes);


/*
 * Files without a row: whether to look for them now, or to go on with it; see
 * xet.orphans_due().  NGX_OK, and between which times, in seconds, a file is
 * one that the database must know; or with the reason, which points into the
 * row, NGX_ABORT: nothing may be removed, see xet.store_doubts(), NGX_DECLINED:
 * not now, empty for none that is worth telling.
 */
ngx_int_t ngx_http_xet_query_orphans_due(ngx_uint_t begun,
    ngx_http_xet_asked_pt handler, void *data);
ngx_int_t ngx_http_xet_query_orphans_due_row(ngx_http_xet_ask_t *ask,
    time_t *since, time_t *newest, ngx_str_t *why);

/*
 * Those of n copies that the database does not know; or with aside, after their
 * files were taken aside, those that may be removed.  The rows are read by
 * ngx_http_xet_query_gc_copy().
 */
ngx_int_t ngx_http_xet_query_orphans(ngx_http_xet_copy_name_t *copies,
    ngx_uint_t n, ngx_uint_t aside, ngx_http_xet_asked_pt handler, void *data);

/* All was looked at; n are left, -1: it is not known how many. */
ngx_int_t ngx_http_xet_query_orphans_swept(int64_t n,
    ngx_http_xet_asked_pt handler, void *data);


/* A copy that is to be read: those behind a row, some of them. */

typedef struct {
    int64_t         id;                        /* of the row */
    xet_hash_t      xorb;
    uint32_t        tag;
    uint64_t        size;
    xet_checksum_t  digest;
    u_char          ends[32];                  /* SHA-256 of stored_ends */
    ngx_uint_t      digested;                  /* digest, else ends */
} ngx_http_xet_scrub_row_t;

ngx_int_t ngx_http_xet_query_scrub_next(int64_t after, ngx_uint_t damaged,
    ngx_http_xet_asked_pt handler, void *data);

/* NGX_ERROR for a row that is malformed; its id is set. */
ngx_int_t ngx_http_xet_query_scrub_row(ngx_http_xet_ask_t *ask, ngx_uint_t i,
    ngx_http_xet_scrub_row_t *row);

/* The number is 0 where the row does not name the copy any more. */
ngx_int_t ngx_http_xet_query_scrub_damaged(const ngx_http_xet_scrub_row_t *row,
    ngx_http_xet_asked_pt handler, void *data);
ngx_int_t ngx_http_xet_query_scrub_whole(const ngx_http_xet_scrub_row_t *row,
    ngx_http_xet_asked_pt handler, void *data);
ngx_int_t ngx_http_xet_query_heal_later(const ngx_http_xet_scrub_row_t *row,
    ngx_http_xet_asked_pt handler, void *data);

/*
 * As ngx_http_xet_query_xorb_heal(): the number is the tag of the row then.
 * The file is kept once the statement is sent.
 */
ngx_int_t ngx_http_xet_query_heal(const xet_xorb_info_t *info,
    ngx_http_xet_temp_t *file, uint32_t old_tag, ngx_http_xet_asked_pt handler,
    void *data);


#if (NGX_HTTP_XET_ZTENSOR)

/*
 * The verdict on a file as a zTensor file that was found by these rules (see
 * xet_zt_rules()) and, if wanted, the attributes of its root, with data NULL
 * where there are none.
 */
ngx_int_t ngx_http_xet_query_zt_get(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t rules, ngx_uint_t attributes,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_zt_get_row(ngx_http_request_t *r, ngx_str_t *verdict,
    ngx_str_t *attributes);

/*
 * Stores such a verdict and attributes, which are copied.  No request waits for
 * that, and nothing is stored when too many statements wait.
 */
void ngx_http_xet_query_zt_put(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t rules, xet_buf_t *verdict, const xet_zt_text_t *attributes);

/* The reports on objects first to last, as far as they were verified. */
ngx_int_t ngx_http_xet_query_zt_reports_get(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t rules, uint64_t first, uint64_t last,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_zt_reports_get_row(ngx_http_request_t *r, ngx_uint_t i,
    uint64_t *object, ngx_str_t *report);

/*
 * Stores reports, as ngx_http_xet_query_zt_put() a verdict; destroys the arrays
 * in any case.
 */
void ngx_http_xet_query_zt_reports_put(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t rules, ngx_http_xet_array_t *objects,
    ngx_http_xet_array_t *reports);

#endif


/*
 * ngx_http_xet_query_figures.c: what is told of the whole store.  No request
 * waits for it, and rc is that of a query.
 */

/* A part of a walk over files and xorbs; see xet.figures(). */

typedef struct {
    uint64_t  files;
    uint64_t  file_bytes;
    uint64_t  last_file;               /* 0: there are no more */
    uint64_t  xorbs;
    uint64_t  raw;
    uint64_t  stored;
    uint64_t  last_xorb;               /* 0: there are no more */
    uint64_t  damaged;
    uint64_t  repos;
    uint64_t  waiting;                 /* copies to be removed */
    uint64_t  names;                   /* rows of a Hub, about */
    uint64_t  metadata;                /* bytes of these */
    uint64_t  staged;                  /* the same, of commits under way */

    /* of chores, NGX_HTTP_XET_NO_FIGURE where there are none */

    uint64_t  gc_at;                   /* ms since 1970 */
    uint64_t  gc_xorbs;
    uint64_t  gc_bytes;
    uint64_t  scrub_at;
    uint64_t  scrub_bytes;
    uint64_t  scrub_damaged;
    uint64_t  healed;
    uint64_t  orphans;
    uint64_t  gc_orphans;
    uint64_t  gc_orphan_bytes;
} ngx_http_xet_figures_t;

#define NGX_HTTP_XET_NO_FIGURE  ((uint64_t) -1)


/* Called once, with figures where rc is NGX_OK. */
typedef void (*ngx_http_xet_figures_pt)(uint64_t ticket, ngx_int_t rc,
    const ngx_http_xet_figures_t *figures);

/*
 * Asks for the part behind these ids; ticket comes back.  NGX_AGAIN; NGX_BUSY
 * where it can't be asked: then handler is not called.
 */
ngx_int_t ngx_http_xet_query_figures(uint64_t after_file, uint64_t after_xorb,
    uint64_t ticket, ngx_http_xet_figures_pt handler);

/* A repo, or the part of its files that a part of a walk has met. */

#define NGX_HTTP_XET_REPO_ROWS  12             /* of xet.repo_figures() */
#define NGX_HTTP_XET_REPO_NAME  255            /* longer ones are cut */


typedef struct {
    uint64_t  id;
    uint64_t  files;
    uint64_t  bytes;
    uint64_t  last_file;
    size_t    len;
    u_char    name[NGX_HTTP_XET_REPO_NAME];
} ngx_http_xet_repo_size_t;


/* Called once, with n repos where rc is NGX_OK; more: the walk goes on. */
typedef void (*ngx_http_xet_repo_sizes_pt)(uint64_t ticket, ngx_int_t rc,
    const ngx_http_xet_repo_size_t *repos, ngx_uint_t n, ngx_uint_t more);

/* As ngx_http_xet_query_figures(), for the part behind this place. */
ngx_int_t ngx_http_xet_query_repo_sizes(uint64_t after_repo,
    uint64_t after_file, uint64_t ticket, ngx_http_xet_repo_sizes_pt handler);

/*
 * Asks whether PostgreSQL answers.  NGX_AGAIN, or NGX_BUSY where it is known to
 * be away: then handler is not called.
 */
ngx_int_t ngx_http_xet_query_alive(void (*handler)(ngx_int_t rc));


/* By number; the last element is no statement and has no name. */
extern const ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[];

/* Called in init_process of a worker: opens the lanes, for these statements. */
ngx_int_t ngx_http_xet_query_lanes(ngx_cycle_t *cycle);


ngx_int_t ngx_http_xet_query_ping(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler);


/*
 * ngx_http_xet_query_hub.c: a Hub.
 */

/*
 * A repo, and the rights of the caller: see xet.hub_may() in sql/hub_repos.sql.
 * All zero is no right at all.
 */

typedef struct {
    xet_hub_kind_e         kind;
    ngx_str_t              owner;
    ngx_str_t              name;
    ngx_uint_t             any_space;
    ngx_uint_t             any_store;
    ngx_str_t              store;              /* data NULL: refuses */
    ngx_http_xet_array_t  *spaces;             /* text; NULL: refuses */
    ngx_uint_t             admin;              /* scope, of some functions */
} ngx_http_xet_hub_asked_t;


/* What came of it; the texts are those of the row, NULL where it has none. */

typedef struct {
    ngx_uint_t      status;
    ngx_str_t       code;
    ngx_str_t       message;
    ngx_str_t       body;
    ngx_str_t       more;
} ngx_http_xet_hub_answer_t;


/* Where a path leads to, when the status is 200. */

typedef struct {
    ngx_http_xet_hub_answer_t  answer;
    ngx_str_t                  oid;            /* also of EntryNotFound */
    xet_hash_t                 hash;
    uint64_t                   size;
    u_char                     sha256[XET_DIGEST_SHA256_LEN];
    ngx_str_t                  type;           /* of media; or empty */
    ngx_str_t                  store;          /* the repo of its uploads */
    ngx_uint_t                 private;
} ngx_http_xet_hub_file_t;


/* Operations of a commit; a thread fills it. */

typedef struct {
    ngx_http_xet_array_t   ops;
    ngx_http_xet_array_t   paths;
    ngx_http_xet_array_t   sizes;
    ngx_http_xet_array_t   hashes;
    ngx_http_xet_array_t   sha256;
    ngx_http_xet_array_t   mtimes;
    ngx_http_xet_array_t   types;
    ngx_http_xet_array_t   sources;
    ngx_uint_t             n;
} ngx_http_xet_hub_batch_t;

void ngx_http_xet_hub_batch_init(ngx_http_xet_hub_batch_t *b);
void ngx_http_xet_hub_batch_reset(ngx_http_xet_hub_batch_t *b);
void ngx_http_xet_hub_batch_destroy(ngx_http_xet_hub_batch_t *b);

/* XET_OK, or XET_NOMEM. */
xet_status_t ngx_http_xet_hub_batch_add(ngx_http_xet_hub_batch_t *b,
    const xet_hub_operation_t *op);


/*
 * The first row of all of them but stage, claims and proven.  Where that is a
 * refusal with a body, the body is the answer if the statement was sent twice.
 */
void ngx_http_xet_query_hub_get(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);

/*
 * A repo, with the files that are staged in so many batches, or none.  These
 * are uploads to the place that begin() has made, which is more of its row.
 */
ngx_int_t ngx_http_xet_query_hub_create(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, ngx_int_t private,
    const ngx_str_t *who, const u_char *upload, ngx_uint_t batches,
    ngx_http_xet_query_handler_pt handler);
ngx_int_t ngx_http_xet_query_hub_begin(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const u_char *upload,
    ngx_http_xet_query_handler_pt handler);
ngx_int_t ngx_http_xet_query_hub_delete(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked,
    ngx_http_xet_query_handler_pt handler);
ngx_int_t ngx_http_xet_query_hub_move(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *owner,
    const ngx_str_t *name, ngx_http_xet_query_handler_pt handler);

/* private: 0, 1, or -1 for what it was. */
ngx_int_t ngx_http_xet_query_hub_settings(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, ngx_int_t private,
    ngx_http_xet_query_handler_pt handler);

ngx_int_t ngx_http_xet_query_hub_info(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_uint_t blobs, const ngx_str_t *rest,
    ngx_http_xet_query_handler_pt handler);

/*
 * Of info, refs and commits, which give their answer in parts: where the next
 * part begins, which is what the statement is asked for it by; data NULL: the
 * first part, or behind the last one.
 */
void ngx_http_xet_query_hub_rest(ngx_http_request_t *r, ngx_str_t *rest);


typedef struct {
    ngx_str_t   rev;
    ngx_str_t   path;
    ngx_str_t   after;                         /* data NULL: the first page */
    ngx_uint_t  most;                          /* entries of a page */
    ngx_uint_t  part;                          /* of these in a statement */
    ngx_uint_t  recursive;
    ngx_uint_t  expand;
} ngx_http_xet_hub_page_t;

/* Repos of an owner, or all of them; the name is a part of theirs, or NULL. */
ngx_int_t ngx_http_xet_query_hub_list(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked,
    const ngx_http_xet_hub_page_t *page,
    ngx_http_xet_query_handler_pt handler);

/*
 * The first part of a page.  Of the answer, code is the commit, message the
 * path in it, and more the last path of the page, if the page goes on behind
 * this part and is full.
 */
ngx_int_t ngx_http_xet_query_hub_tree(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked,
    const ngx_http_xet_hub_page_t *page,
    ngx_http_xet_query_handler_pt handler);

/* The number of all commits is the message. */
ngx_int_t ngx_http_xet_query_hub_commits(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked,
    const ngx_http_xet_hub_page_t *page, const ngx_str_t *rest,
    ngx_http_xet_query_handler_pt handler);

/*
 * The next "part" paths of the batch, and their sizes, which are those that are
 * used of it; code of the answer is the commit.
 */
ngx_int_t ngx_http_xet_query_hub_paths(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_http_xet_hub_batch_t *batch, ngx_uint_t part, ngx_uint_t expand,
    ngx_http_xet_query_handler_pt handler);

/* The entries that either of these two has found, behind the first row. */
ngx_uint_t ngx_http_xet_query_hub_nodes(ngx_http_request_t *r);

/* NGX_ERROR for a row that is malformed; it points into the rows. */
ngx_int_t ngx_http_xet_query_hub_node(ngx_http_request_t *r, ngx_uint_t i,
    xet_hub_node_t *node);

ngx_int_t ngx_http_xet_query_hub_preupload(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_http_xet_hub_batch_t *batch, ngx_uint_t part,
    ngx_http_xet_query_handler_pt handler);

ngx_int_t ngx_http_xet_query_hub_refs(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rest,
    ngx_http_xet_query_handler_pt handler);

/* ref is "heads/" or "tags/" and a name; without rev it is removed. */
ngx_int_t ngx_http_xet_query_hub_ref_put(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *ref,
    const ngx_str_t *rev, ngx_uint_t over,
    ngx_http_xet_query_handler_pt handler);

/* rev may have data NULL.  The repo of uploads is more. */
ngx_int_t ngx_http_xet_query_hub_enter(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_uint_t writes, ngx_http_xet_query_handler_pt handler);

ngx_int_t ngx_http_xet_query_hub_resolve(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    const ngx_str_t *path, ngx_http_xet_query_handler_pt handler);

/* NGX_ERROR for a row that is malformed. */
ngx_int_t ngx_http_xet_query_hub_resolve_get(ngx_http_request_t *r,
    ngx_http_xet_hub_file_t *file);


/*
 * Files that uploads of a repo have brought, by SHA-256: a row for each one
 * that there is, of the next "part" of the array; NGX_DECLINED for none.
 */
ngx_int_t ngx_http_xet_query_hub_known(ngx_http_request_t *r,
    const ngx_str_t *store, ngx_http_xet_array_t *sha256, ngx_uint_t part,
    ngx_http_xet_query_handler_pt handler);

/* NGX_ERROR for a row that is malformed. */
ngx_int_t ngx_http_xet_query_hub_known_row(ngx_http_request_t *r,
    ngx_uint_t i, u_char *sha256, xet_hash_t *hash, ngx_uint_t *proven);


/*
 * Which of some SHA-256 a repo has files of that are proven, and will keep for
 * as long as others that come now: a row for each, whose number counts from 0.
 * NGX_DECLINED for none.
 */
ngx_int_t ngx_http_xet_query_hub_here(ngx_http_request_t *r,
    const ngx_str_t *store, ngx_http_xet_array_t *sha256,
    ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_hub_here_row(ngx_http_request_t *r,
    ngx_uint_t i);


/*
 * A commit: its operations are staged under the id of the upload; then the
 * claims of them are settled, which gives files to be proven or one row with
 * what is wrong; then it is made.
 */

/* The number is 0 where too much of the caller is staged: nothing was done. */
ngx_int_t ngx_http_xet_query_hub_stage(ngx_http_request_t *r,
    const u_char *upload, ngx_uint_t seq, ngx_http_xet_hub_batch_t *batch,
    ngx_http_xet_query_handler_pt handler);
ngx_int_t ngx_http_xet_query_hub_claims(ngx_http_request_t *r,
    const ngx_str_t *store, const u_char *upload,
    ngx_http_xet_query_handler_pt handler);


typedef struct {
    ngx_uint_t      status;        /* 200: to be proven; 202: ask again */
    ngx_str_t       message;
    xet_hash_t      hash;
    u_char          sha256[XET_DIGEST_SHA256_LEN];
} ngx_http_xet_hub_claim_t;

/* NGX_ERROR for a row that is malformed. */
ngx_int_t ngx_http_xet_query_hub_claims_row(ngx_http_request_t *r,
    ngx_uint_t i, ngx_http_xet_hub_claim_t *claim);

ngx_int_t ngx_http_xet_query_hub_proven(ngx_http_request_t *r,
    const ngx_str_t *store, const xet_hash_t *file, const u_char *sha256,
    ngx_http_xet_query_handler_pt handler);


typedef struct {
    ngx_str_t       rev;
    ngx_str_t       parent;                    /* data NULL: any */
    ngx_str_t       seen;                      /* what the branch had */
    ngx_str_t       who;
    ngx_str_t       title;
    ngx_str_t       text;
} ngx_http_xet_hub_message_t;

ngx_int_t ngx_http_xet_query_hub_commit(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const u_char *upload,
    ngx_uint_t batches, const ngx_http_xet_hub_message_t *message,
    ngx_http_xet_query_handler_pt handler);

/* What was staged, to a bucket: each operation is done, or told of. */
ngx_int_t ngx_http_xet_query_hub_batch(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const u_char *upload,
    ngx_uint_t batches, ngx_http_xet_query_handler_pt handler);

/*
 * Files of a repo, by hashes and sha256 of the batch, become files of another
 * one: of to, kind, owner and name.
 */
ngx_int_t ngx_http_xet_query_hub_duplicate(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_http_xet_hub_asked_t *to,
    ngx_http_xet_hub_batch_t *batch, ngx_http_xet_query_handler_pt handler);


/*
 * ngx_http_xet_query_page.c: what the pages of a Hub show.  Rows are gone with
 * the next statement; a view is a copy.
 */

typedef struct {
    xet_hub_kind_e  kind;
    ngx_str_t       repo;                      /* owner/name */
    ngx_uint_t      private;
    int64_t         changed;                   /* microseconds since 1970 */
    int64_t         id;
    int64_t         files;                     /* -1: not known */
    int64_t         bytes;
} ngx_http_xet_hub_listed_t;


/* A repo at a revision, and a folder or file of it. */

typedef struct {
    ngx_http_xet_hub_answer_t  answer;         /* status 200 for the rest */
    ngx_str_t                  repo;           /* owner/name */
    ngx_str_t                  rev;
    ngx_str_t                  path;           /* empty: the root */
    ngx_str_t                  oid;
    ngx_str_t                  title;
    ngx_str_t                  who;
    ngx_str_t                  readme;         /* path of the text, or NULL */
    ngx_str_t                  store;
    xet_hash_t                 hash;           /* of the text */
    uint64_t                   size;
    int64_t                    made_at;        /* seconds since 1970 */
    int64_t                    files;          /* -1: not known */
    int64_t                    bytes;
    ngx_uint_t                 private;
    ngx_uint_t                 folder;
} ngx_http_xet_hub_view_t;


typedef struct {
    ngx_str_t       path;
    ngx_uint_t      folder;
    uint64_t        size;
    int64_t         at;
    ngx_str_t       title;                     /* of its commit, or NULL */
} ngx_http_xet_hub_listing_t;


/* As ngx_http_xet_query_hub_list(); the kind may be XET_HUB_KINDS, for all. */
ngx_int_t ngx_http_xet_query_page_list(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *after,
    ngx_uint_t most, ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_page_list_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_hub_listed_t *listed);

ngx_int_t ngx_http_xet_query_page_repo(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    const ngx_str_t *path, ngx_http_xet_query_handler_pt handler);

/* NGX_ERROR without memory, or for a row that is malformed. */
ngx_int_t ngx_http_xet_query_page_repo_get(ngx_http_request_t *r,
    ngx_http_xet_hub_view_t *view);

ngx_int_t ngx_http_xet_query_page_tree(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    const ngx_str_t *path, const ngx_str_t *after, ngx_uint_t most,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_page_tree_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_hub_listing_t *entry);

/* "heads/main", "tags/v1" */
ngx_int_t ngx_http_xet_query_page_refs(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, ngx_uint_t most,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_page_refs_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_str_t *ref);


#endif /* _NGX_HTTP_XET_QUERY_H_INCLUDED_ */
