
/*
 * One function for each statement: binds parameters, and reads rows into
 * structures.
 */

#ifndef _NGX_HTTP_XET_QUERY_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_store.h"


/*
 * The requested slices of xorbs' chunk lists: columns, which are parameters of
 * ngx_http_xet_query_xorb_slices().
 */

typedef struct {
    ngx_http_xet_array_t   xorbs;
    ngx_http_xet_array_t   starts;
    ngx_http_xet_array_t   ends;       /* exclusive */
} ngx_http_xet_slices_t;


/* May be called in any thread. */
void ngx_http_xet_slices_add(ngx_http_xet_slices_t *s, const xet_hash_t *xorb,
    uint32_t start, uint32_t end);


/*
 * ngx_http_xet_damage.c: copies of xorbs that were found missing, truncated or
 * damaged.  Threads record them, and the event loop reports them to
 * PostgreSQL, so that nothing new refers to them until they are repaired.
 */

/*
 * Further ones are dropped, and found by the next request.  If all must be
 * found, they are requested in batches of this size (xet.shard_suspects() in
 * sql/shards.sql).
 */
#define NGX_HTTP_XET_DAMAGE_MAX  1024


/* Zeroed: empty. */

typedef struct {
    ngx_http_xet_array_t  xorbs;
    ngx_http_xet_array_t  tags;
    unsigned              log:1;               /* not logged elsewhere */
} ngx_http_xet_damage_t;


/* Empties the list. */
void ngx_http_xet_damage_destroy(ngx_http_xet_damage_t *d);

void ngx_http_xet_damage_note(ngx_http_xet_damage_t *d,
    const xet_hash_t *xorb, uint32_t tag);

/*
 * Checks a copy that a row names, as ngx_http_xet_store_stat_job().  Records a
 * copy that is missing or has another size, XET_STORE_DAMAGED; it is logged if
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
 * Verified files and their terms, on their way into PostgreSQL.
 *
 * The size of a batch is limited.  What does not fit is staged under the id of
 * the upload, and the last batch commits everything in one transaction.  One
 * file at a time is open in a batch, and its terms may start in one batch and
 * end in another.  A batch belongs to the thread while a job runs.
 */

#define NGX_HTTP_XET_UPLOAD_LEN  16            /* an upload's random id */


typedef struct {
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
} ngx_http_xet_batch_columns_t;


/* Zeroed except for id: nothing is staged, no file is open. */

typedef struct {
    u_char                         id[NGX_HTTP_XET_UPLOAD_LEN];
    int32_t                        seq;        /* batches staged */

    ngx_http_xet_batch_columns_t   columns;
    size_t                         size;       /* bytes in these, about */

    /* the open file */
    int64_t                        serial;     /* from 1, in the upload */
    uint64_t                       first;      /* offset of terms[0] */
    uint64_t                       end;        /* offset after the terms */
    ngx_uint_t                     nterms;     /* in terms */
    ngx_uint_t                     segmented;  /* some are in segments */
    u_char                         terms[XET_TERM_SEGMENT_MAX * XET_TERM_LEN];
} ngx_http_xet_batch_t;


/*
 * A file of the batch: open, then one call for each term in order, then close.
 */
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
 *     NGX_ABORT      the function has raised an error of class XT: the verdict
 *                    is the query's sqlstate
 *     NGX_BUSY       PostgreSQL is unavailable or overloaded, 503
 *     NGX_ERROR      PostgreSQL has rejected the statement, 500
 */
typedef void (*ngx_http_xet_query_handler_pt)(ngx_http_request_t *r,
    ngx_int_t rc);


/* One per request: a request has at most one statement in flight. */

struct ngx_http_xet_query_s {
    ngx_http_request_t             *request;
    ngx_http_xet_pg_query_t        *query;     /* in flight */
    ngx_http_xet_query_handler_pt   handler;

    PGresult                       *res;       /* memory of the rows */
    ngx_uint_t                      standby;   /* asked last */
    ngx_uint_t                      asked;     /* standbys, a bit each */
    ngx_uint_t                      pg_pool;   /* to be asked then, */
    ngx_uint_t                      stmt;      /* for what */
    ngx_uint_t                      files;     /* that rows are wanted of */
    ngx_uint_t                      first;     /* the first of them */

    /* Whether an answer is complete. */
    ngx_uint_t                    (*complete)(ngx_http_xet_query_t *q,
                                           PGresult *res);

    const u_char                   *upload;    /* id of the staged batches */
    ngx_http_xet_temp_t            *copy;      /* that a row is to name, */
    uint64_t                        size;      /* with so many bytes */

    /*
     * Called when the request dies before the statement is answered.  Returns
     * 1 if the statement continues, with its own handler for the cleanup, and
     * 0 if it is to be detached.  NULL: it is detached.
     */
    ngx_uint_t                    (*left)(ngx_http_xet_query_t *q);

    u_char                          sqlstate[6]; /* "" unless refused */

    ngx_http_xet_params_t           params;    /* of the statement */
    unsigned                        cleanup:1;
    unsigned                        primary:1; /* standbys are not asked */
    unsigned                        reading:1; /* it has rows of a standby */
    unsigned                        stale:1;   /* the same, since again() */
    unsigned                        inherited:1;       /* left() went on */
    unsigned                        gone:1;    /* not sent: no client */
    unsigned                        halted:1;  /* the same: the worker was */
    unsigned                        hub:1;     /* upload is a commit of a Hub */
};


/*
 * Creates the query of a request before its first statement, if it does not
 * exist.  NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_query_create(ngx_http_request_t *r);

/*
 * The core status for an rc of sending a statement or of its handler; missing
 * is the status for NGX_DECLINED, no such row.
 */
xet_status_t ngx_http_xet_query_status(ngx_int_t rc, xet_status_t missing);

/*
 * Sends the error for the rc of a query that is not NGX_OK; a missing row is
 * an internal error.  failed also finalizes the request.
 */
ngx_int_t ngx_http_xet_query_error(ngx_http_request_t *r, ngx_int_t rc);
void ngx_http_xet_query_failed(ngx_http_request_t *r, ngx_int_t rc);

/*
 * The end of a content handler that has sent its first statement; rc is the
 * result of sending.  For NGX_AGAIN the request waits, and ends when the
 * client leaves; for any other rc the error is sent.
 */
ngx_int_t ngx_http_xet_query_wait(ngx_http_request_t *r, ngx_int_t rc);

/*
 * As ngx_http_xet_query_wait(), if the request waits already, or if the caller
 * makes it wait: returns NGX_AGAIN, or sends the error.
 */
ngx_int_t ngx_http_xet_query_asked(ngx_http_request_t *r, ngx_int_t rc);

/*
 * For the handler of a query: calls rows() if there are rows, else sends the
 * error as ngx_http_xet_query_error().  Then finalizes the request, unless
 * rows() returns NGX_AGAIN because the request waits for something else.  code
 * and missing are code and message of the 404 for a missing row, or NULL if
 * that is an internal error.
 */
void ngx_http_xet_query_answer(ngx_http_request_t *r, ngx_int_t rc,
    ngx_int_t (*rows)(ngx_http_request_t *r), const char *code,
    const char *missing);

/*
 * ngx_http_xet_query_read.c: reads that standbys may answer.
 */

/* All further reads of the request go to the primary. */
void ngx_http_xet_query_primary(ngx_http_request_t *r);

/*
 * The same if rows are inconsistent with each other or with the store.
 * Returns whether some of them came from a standby: then the caller draws no
 * conclusions, and requests all of them again.
 */
ngx_uint_t ngx_http_xet_query_again(ngx_http_request_t *r);

/* Frees the rows, which otherwise stay until the next statement or the end. */
void ngx_http_xet_query_release(ngx_http_request_t *r);

/* The number of rows of the last statement. */
ngx_uint_t ngx_http_xet_query_rows(ngx_http_xet_query_t *q);

/* The first value of the first row, for statements with one number or bool. */
int64_t ngx_http_xet_query_number(ngx_http_request_t *r);


/*
 * Files, and chunks if dedup is limited to the repo, are visible as far as the
 * request's token allows (ngx_http_xet_access.h).
 *
 * The functions return NGX_AGAIN if the handler will be called, NGX_BUSY if
 * PostgreSQL is unavailable or overloaded, and NGX_ERROR if out of memory.
 * Parameters must live until the handler is called or the request dies.
 */

#define NGX_HTTP_XET_TERMS_ROWS  8             /* as in sql/files.sql */

/* A window of the terms of a file: the rows of file_terms. */

typedef struct {
    uint64_t    size;                          /* of the file */
    ngx_uint_t  n;
} ngx_http_xet_terms_t;

void ngx_http_xet_query_file_terms_get(ngx_http_request_t *r,
    ngx_http_xet_terms_t *terms);

/* files_terms, from byte "at" of file number first on, counting from 0. */
ngx_int_t ngx_http_xet_query_files_terms(ngx_http_request_t *r,
    ngx_http_xet_array_t *files, ngx_uint_t first, uint64_t at,
    ngx_http_xet_query_handler_pt handler);


/*
 * Slices of the chunk lists of xorbs, one row per slice, in order.  A xorb
 * that is not stored, or whose copy is known to be damaged, is not known.
 * With hashes 0 slice->hashes is NULL.  A range outside its xorb has n == 0.
 * pool is an ngx_http_xet_pg_pool_e.
 */
ngx_int_t ngx_http_xet_query_xorb_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t hashes, ngx_uint_t pg_pool,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_xorb_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice);

/*
 * A slice that a term of a shard names.  With proof, a slice that the client
 * may not name is not known, and one whose chunks the client must prove to
 * have is known but not own.
 */
void ngx_http_xet_query_shard_slices_row(ngx_http_xet_query_t *q,
    ngx_uint_t i, xet_shard_slice_t *slice);


/* A stored copy of a xorb, by its row. */

typedef struct {
    uint32_t        tag;
    uint64_t        size;                      /* bytes in its file */
    xet_checksum_t  digest;
    ngx_uint_t      digested;                  /* 0: digest is not known */
    ngx_uint_t      intact;                    /* 0: known to be damaged */
    ngx_uint_t      inserted;                  /* new for its uploader */
} ngx_http_xet_copy_t;

/*
 * put registers a xorb whose bytes are durable in a copy, with the indexes of
 * the chunks for the dedup index; query_eligible() adds these to the array, in
 * any thread.  heal replaces the copy with old_tag by this one.  Both return
 * the copy that the row names afterwards.
 *
 * After the statement is sent the file is kept until certainly no row names
 * it. If the request dies first, the answer still decides whether the file is
 * removed.
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
 * Reports that copies are missing, truncated or damaged, if rows still name
 * them; the others were replaced or collected, and are not a loss.  tell does
 * so without a waiting request, and empties damage; if the report can't be
 * queued it is dropped, and made again when the damage is met next.  The
 * handler of copies_lost calls lost, which logs the lost copies, returns their
 * number, and turns NGX_DECLINED into NGX_OK.
 */
ngx_uint_t ngx_http_xet_query_xorb_lost(ngx_http_request_t *r,
    ngx_http_xet_damage_t *damage, ngx_int_t *rc);
void ngx_http_xet_query_xorb_damaged_tell(ngx_http_xet_damage_t *damage);


/*
 * The rc of a query about a chunk: if PostgreSQL has canceled it because it
 * took too long, it counts as a miss, NGX_DECLINED.
 */
ngx_int_t ngx_http_xet_query_chunk_find_rc(ngx_http_request_t *r, ngx_int_t rc);

/* Fills xorb, which points into the rows; chunk_count is 0 if malformed. */
void ngx_http_xet_query_chunk_find_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_xorb_list_t *xorb, ngx_uint_t *recorded);

/*
 * Checks the copies of the first n rows together.  The results are in the
 * order of the rows, and must be freed.  NULL if out of memory.
 */
ngx_http_xet_copy_stat_t *ngx_http_xet_query_chunk_look_job(
    ngx_http_xet_query_t *q, ngx_http_xet_damage_t *d,
    ngx_http_xet_store_t *store, ngx_uint_t n, ngx_log_t *log);

/*
 * Adds the hashes of the xorbs of all rows to xorbs.  NGX_OK: all are recorded
 * as advertised today; NGX_DECLINED: some are not; NGX_ERROR: a row is
 * malformed.
 */
ngx_int_t ngx_http_xet_query_chunk_find_xorbs(ngx_http_xet_query_t *q,
    ngx_http_xet_array_t *xorbs);


/*
 * Limits of bytes, by repo and by subject.  A statement that would exceed one
 * is rejected, and ngx_http_xet_query_quota_over() returns which one.
 */

typedef struct {
    u_char      kind[8];                       /* "repo" or "subject" */
    u_char      what[16];          /* "stored", "logical" or "metadata" */
    uint64_t    limit;
    uint64_t    used;                          /* without the rejected data */
} ngx_http_xet_over_t;

/*
 * Whether any limit exists, as far as the worker knows.  During uploads it
 * asks every few seconds, and nothing waits for the answer.
 */
ngx_uint_t ngx_http_xet_query_quotas(void);

/*
 * Whether the last statement was rejected because of a limit; then fills over.
 */
ngx_uint_t ngx_http_xet_query_quota_over(ngx_http_request_t *r,
    ngx_http_xet_over_t *over);


/*
 * Whether after a failed statement certainly no row names its copy.  Not if
 * the answer is missing, and not if PostgreSQL has rejected it for a conflict
 * (class 40), since another writer, for example "xet rebuild", may have added
 * the row.
 */
ngx_uint_t ngx_http_xet_query_unnamed(const u_char *sqlstate);

/*
 * ngx_http_xet_query_tags.c: requests more tags if few are left; called before
 * or after using one, without waiting.
 */
void ngx_http_xet_query_tags(void);

/*
 * Waits for tags: NGX_AGAIN if handler will be called, with tags or without,
 * unless the caller leaves before; NGX_DECLINED if they can't be requested.
 */

typedef struct {
    ngx_queue_t   queue;
    void        (*handler)(void *data);
    void         *data;
    unsigned      waits:1;
} ngx_http_xet_tags_wait_t;

ngx_int_t ngx_http_xet_query_tags_wait(ngx_http_xet_tags_wait_t *wait);
void ngx_http_xet_query_tags_leave(ngx_http_xet_tags_wait_t *wait);


/* ngx_http_xet_query_post.c: statements outside of requests. */

/*
 * The answer to such a statement, valid while its handler runs.  rc is as for
 * ngx_http_xet_query_handler_pt, without NGX_ABORT.
 */

typedef struct ngx_http_xet_ask_s  ngx_http_xet_ask_t;

typedef void (*ngx_http_xet_asked_pt)(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);

struct ngx_http_xet_ask_s {
    PGresult               *res;               /* memory of the rows */
    u_char                  sqlstate[6];       /* "" unless refused */

    ngx_http_xet_asked_pt   handler;           /* NULL: no handler */
    void                   *data;
    ngx_http_xet_params_t   params;
    ngx_pool_t             *pool;              /* of the statement */
};

/* The number of rows, and the number in the first row. */
#define ngx_http_xet_ask_rows(ask)  ngx_http_xet_pg_rows((ask)->res)

int64_t ngx_http_xet_ask_number(ngx_http_xet_ask_t *ask);

/*
 * Called when a request with staged data dies: terms of files, or with hub
 * operations of a commit.  If sending the statement in flight has returned
 * NGX_AGAIN (rc, which is returned), the data is left to it.  Does nothing if
 * upload is NULL.
 */
ngx_int_t ngx_http_xet_query_leave(ngx_http_request_t *r, ngx_int_t rc,
    const u_char *upload, ngx_uint_t hub);

/* Writes something that leaves nothing; as ngx_http_xet_ask(). */
ngx_int_t ngx_http_xet_query_write_probe(ngx_http_xet_asked_pt handler,
    void *data);


/*
 * As ngx_http_xet_query_xorb_heal(), outside of requests: NGX_AGAIN, and
 * handler is called once; or NGX_BUSY if the statement can't be queued.  The
 * number is the tag of the row afterwards.
 */
ngx_int_t ngx_http_xet_ask_heal(const xet_xorb_info_t *info,
    ngx_http_xet_temp_t *file, uint32_t old_tag, ngx_http_xet_asked_pt handler,
    void *data);


#if (NGX_HTTP_XET_ZTENSOR)

/*
 * Stores a check result and attributes, zt_put, which are copied.  No request
 * waits for it, and nothing is stored if too many statements are waiting.
 */
void ngx_http_xet_query_zt_put(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t rules, xet_buf_t *verdict, const xet_zt_text_t *attributes);

/* Stores reports, in the same way as ngx_http_xet_query_zt_put(). */
void ngx_http_xet_query_zt_reports_put(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t rules, ngx_http_xet_array_t *objects,
    ngx_http_xet_array_t *reports);

#endif


/* Called in init_process of a worker: opens the pools for these statements. */
ngx_int_t ngx_http_xet_query_pools(ngx_cycle_t *cycle);


/*
 * ngx_http_xet_query_hub.c: a Hub.
 */

/*
 * A repo, and the permissions of the caller: see xet.hub_may() in
 * sql/hub_repos.sql.  Zeroed: no permissions.
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


/* The result; the texts are those of the row, or NULL. */

typedef struct {
    ngx_uint_t      status;
    ngx_str_t       code;
    ngx_str_t       message;
    ngx_str_t       body;
    ngx_str_t       more;
} ngx_http_xet_hub_answer_t;


/* Operations of a commit, as the columns of hub_stage; a thread fills it. */

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

/* XET_OK, or XET_NOMEM. */
xet_status_t ngx_http_xet_hub_batch_add(ngx_http_xet_hub_batch_t *b,
    const xet_hub_operation_t *op);


/*
 * The answer of any statement with one.  If a rejection has a body and the
 * statement was sent twice, the body is the response.
 */
void ngx_http_xet_query_hub_get(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);

/* hub_enter; data of rev may be NULL.  The primary decides about writers. */
ngx_int_t ngx_http_xet_query_hub_enter(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_uint_t writes, ngx_http_xet_query_handler_pt handler);

/*
 * The entries found by hub_tree_rows or hub_paths_rows, after the first row.
 * NGX_ERROR for a malformed row; a node points into the rows.
 */
ngx_uint_t ngx_http_xet_query_hub_nodes(ngx_http_request_t *r);
ngx_int_t ngx_http_xet_query_hub_node(ngx_http_request_t *r, ngx_uint_t i,
    xet_hub_node_t *node);

typedef struct {
    ngx_str_t   rev;
    ngx_str_t   path;
    ngx_str_t   after;                         /* data NULL: the first page */
    ngx_uint_t  most;                          /* entries of a page */
    ngx_uint_t  part;                          /* of these in a statement */
    ngx_uint_t  recursive;
    ngx_uint_t  expand;
} ngx_http_xet_hub_page_t;


/* hub_stage, of a batch of the upload. */
ngx_int_t ngx_http_xet_query_hub_stage(ngx_http_request_t *r,
    const u_char *upload, ngx_uint_t seq, ngx_http_xet_hub_batch_t *batch,
    ngx_http_xet_query_handler_pt handler);


typedef struct {
    ngx_str_t       parent;                    /* data NULL: any */
    ngx_str_t       seen;                      /* the branch's commit */
    ngx_str_t       title;
    ngx_str_t       text;
} ngx_http_xet_hub_message_t;


#include "ngx_http_xet_statements.h"


/* Whether too many statements are waiting for an optional one. */
ngx_uint_t ngx_http_xet_query_post_busy(void);

/*
 * Asks whether PostgreSQL responds.  NGX_AGAIN, or NGX_BUSY if it is known to
 * be unavailable: then handler is not called.
 */
ngx_int_t ngx_http_xet_query_alive(void (*handler)(ngx_int_t rc));


#endif /* _NGX_HTTP_XET_QUERY_H_INCLUDED_ */
