
/*
 * One function a statement: binds parameters, reads rows into structures.
 */

#ifndef _NGX_HTTP_XET_QUERY_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"
#include "ngx_http_xet_array.h"
#include "ngx_http_xet_damage.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_register_batch.h"
#include "ngx_http_xet_slices.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_SCHEMA  "11"          /* last of sql/NNNN_*.sql */


/*
 * rc of a query's handler:
 *
 *     NGX_OK         the rows are in the query
 *     NGX_DECLINED   no such row
 *     NGX_ABORT      a verdict of the function: the query's sqlstate
 *     NGX_BUSY       PostgreSQL is away or overloaded, 503
 *     NGX_ERROR      PostgreSQL refused, 500
 */
typedef void (*ngx_http_xet_query_handler_pt)(ngx_http_request_t *r,
    ngx_int_t rc);


/* One a request: at most one statement of a request is in flight. */

typedef struct {
    ngx_http_request_t             *request;
    ngx_http_xet_pg_query_t        *query;     /* in flight */
    ngx_http_xet_query_handler_pt   handler;

    PGresult                       *res;       /* what the rows point into */
    const u_char                   *upload;    /* id, where batches stage */
    ngx_http_xet_file_t            *copy;      /* that a row is to name */
    u_char                          sqlstate[6]; /* refused, for certain */

    int64_t                         numbers[3]; /* parameters, big-endian */
    int32_t                         tags[2];   /* likewise */
    unsigned                        cleanup:1;
} ngx_http_xet_query_t;


/*
 * The core status of what asking gave, or of what came back; missing is that
 * of no such row.
 */
xet_status_t ngx_http_xet_query_status(ngx_int_t rc, xet_status_t missing);

/* Frees the rows before the request ends. */
void ngx_http_xet_query_release(ngx_http_request_t *r);

/* The answer of a statement that is one number or truth, see below. */
int64_t ngx_http_xet_query_number(ngx_http_request_t *r);


/*
 * Files, and chunks where dedup ends at the repo, are seen as the request's
 * token allows (ngx_http_xet_auth.h).
 *
 * The functions return NGX_AGAIN when the handler will be called, NGX_BUSY
 * when PostgreSQL can't take the statement, NGX_ERROR without memory.
 * Parameters must live until the handler is called or the request dies.
 */

/*
 * The terms of a file that overlap [first, last], in rows of up to
 * XET_TERM_SEGMENT_MAX: a window of them.  Where there are as many rows as a
 * window may have, what is left is asked for from the end of the last term on.
 */

#define NGX_HTTP_XET_TERMS_ROWS  8             /* as in sql/functions.sql */

typedef struct {
    uint64_t    size;                          /* of the file */
    ngx_uint_t  n;
} ngx_http_xet_terms_t;

ngx_int_t ngx_http_xet_query_terms(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t first, uint64_t last,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_terms_get(ngx_http_request_t *r,
    ngx_http_xet_terms_t *terms);
void ngx_http_xet_query_terms_row(ngx_http_request_t *r, ngx_uint_t i,
    uint64_t *first_offset, ngx_str_t *packed);


/* A file as a reader wants it: with the terms around byte at. */

typedef struct {
    uint64_t    size;
    u_char     *sha256;                        /* 32 bytes; NULL: not proven */
    uint64_t    first_offset;                  /* of the terms */
    ngx_str_t   packed;                        /* empty for an empty file */
} ngx_http_xet_open_t;

ngx_int_t ngx_http_xet_query_open(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t at,
    ngx_http_xet_query_handler_pt handler);

/* The status of rc; XET_DATABASE as well for a row that can't be. */
xet_status_t ngx_http_xet_query_open_get(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_xet_open_t *open);


/*
 * Several whole files at once: their rows, in the order of the array, from
 * byte at of file first on; likewise by windows.
 */

typedef struct {
    ngx_uint_t  file;                          /* place in the array */
    uint64_t    size;
    uint64_t    first_offset;
    ngx_str_t   packed;                        /* empty for an empty file */
} ngx_http_xet_file_row_t;

ngx_int_t ngx_http_xet_query_files(ngx_http_request_t *r,
    ngx_http_xet_array_t *files, ngx_uint_t first, uint64_t at,
    ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_files_n(ngx_http_request_t *r);
void ngx_http_xet_query_files_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_file_row_t *row);


/*
 * Slices of xorbs' chunk lists, as many rows as asked for, in order; the row
 * of a xorb that is not stored is not known.  With hashes off slice->hashes
 * is NULL.  A range outside its xorb gives n == 0.
 */
ngx_int_t ngx_http_xet_query_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t hashes, ngx_uint_t lane,
    ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_slices_n(ngx_http_xet_query_t *q);
void ngx_http_xet_query_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice);

/*
 * Those of the terms of a shard.  With proof, what the client may not name is
 * not known, and what it must prove to have is not its own.
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
    ngx_uint_t      news;                      /* to who has sent it */
} ngx_http_xet_copy_t;

/*
 * Registers a xorb whose bytes are durable in a copy, with the numbers of the
 * chunks that go into the dedup index, which query_eligible() adds in any
 * thread; heal puts the copy in the place of that of old_tag.  Both answer
 * with the copy that the row names then.
 *
 * The file is kept from then on, until it is certain that no row names it;
 * when the request dies before, that is found out without it.
 */

void ngx_http_xet_query_eligible(ngx_http_xet_array_t *eligible,
    const xet_suite_t *suite, const xet_xorb_info_t *info);
ngx_int_t ngx_http_xet_query_xorb_put(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_file_t *file, ngx_http_xet_query_handler_pt handler);
ngx_int_t ngx_http_xet_query_xorb_heal(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_file_t *file, uint32_t old_tag,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_xorb_copy(ngx_http_request_t *r,
    ngx_http_xet_copy_t *copy);

/*
 * Puts on record that copies are missing, cut or damaged.  For tell nobody
 * waits, and it is dropped when the lane is busy: who meets the damage next
 * tells; what was noted is forgotten then.
 */
ngx_int_t ngx_http_xet_query_damaged(ngx_http_request_t *r,
    ngx_http_xet_damage_t *damage, ngx_http_xet_query_handler_pt handler);

/* How many of the copies a row still names; the others were replaced. */
ngx_uint_t ngx_http_xet_query_damaged_n(ngx_http_request_t *r);

void ngx_http_xet_query_damaged_tell(ngx_http_xet_damage_t *damage);


/* A xorb, for who may know all of it. */
ngx_int_t ngx_http_xet_query_xorb(ngx_http_request_t *r,
    const xet_hash_t *xorb, ngx_http_xet_query_handler_pt handler);

/* Its digest is not asked for. */
void ngx_http_xet_query_xorb_get(ngx_http_request_t *r,
    ngx_http_xet_copy_t *copy);

/*
 * A xorb that the client may name in a shard without sending it; noted as
 * below.
 */
ngx_int_t ngx_http_xet_query_grant(ngx_http_request_t *r,
    const xet_hash_t *xorb, ngx_http_xet_query_handler_pt handler);

/* As query_xorb_get(), and whether that is noted. */
ngx_uint_t ngx_http_xet_query_grant_get(ngx_http_request_t *r,
    ngx_http_xet_copy_t *copy);


/*
 * The xorbs that answer a dedup query, with their whole chunk lists, the best
 * first; noted tells whether it is on record that all of them were advertised
 * today, and if not, the second statement puts them there.
 */

ngx_int_t ngx_http_xet_query_chunk(ngx_http_request_t *r,
    const xet_hash_t *chunk, ngx_http_xet_query_handler_pt handler);

/* Its rc: a query that PostgreSQL has broken off in time is a miss. */
ngx_int_t ngx_http_xet_query_chunk_rc(ngx_http_request_t *r, ngx_int_t rc);

ngx_uint_t ngx_http_xet_query_chunk_n(ngx_http_xet_query_t *q);

/* chunk_count is 0 for a row that can't be. */
void ngx_http_xet_query_chunk_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_xorb_list_t *xorb, ngx_uint_t *noted);

/*
 * Adds the xorbs of all rows.  NGX_OK: all are on record; NGX_DECLINED: some
 * are not yet; NGX_ERROR: a row can't be.
 */
ngx_int_t ngx_http_xet_query_chunk_told(ngx_http_xet_query_t *q,
    ngx_http_xet_array_t *xorbs);

ngx_int_t ngx_http_xet_query_advertised(ngx_http_request_t *r,
    ngx_http_xet_array_t *xorbs, ngx_http_xet_query_handler_pt handler);


ngx_int_t ngx_http_xet_query_stage(ngx_http_request_t *r,
    ngx_http_xet_batch_t *b, ngx_http_xet_query_handler_pt handler);

/*
 * The copies that known files of the batch lead to by other terms, as many as
 * NGX_HTTP_XET_DAMAGE_MAX at a time.  A row is one, or where it returns 0 says
 * where the next window begins: there is none without that.
 */

typedef struct {
    int64_t                         file;      /* its place in the batch */
    int64_t                         xorb;      /* id, those up to it are done */
} ngx_http_xet_doubt_t;

ngx_int_t ngx_http_xet_query_doubts(ngx_http_request_t *r,
    ngx_http_xet_batch_t *b, const ngx_http_xet_doubt_t *from,
    ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_doubts_n(ngx_http_xet_query_t *q);
ngx_uint_t ngx_http_xet_query_doubts_row(ngx_http_xet_query_t *q,
    ngx_uint_t i, xet_hash_t *xorb, uint32_t *tag, uint64_t *size,
    ngx_http_xet_doubt_t *next);

ngx_int_t ngx_http_xet_query_shard_put(ngx_http_request_t *r,
    ngx_http_xet_batch_t *b, ngx_http_xet_query_handler_pt handler);
#define ngx_http_xet_query_shard_put_new(r)                                   \
    (ngx_http_xet_query_number(r) != 0)

/* The SHA-256 of a registered file, 32 bytes, as computed from its data. */
ngx_int_t ngx_http_xet_query_prove(ngx_http_request_t *r,
    const xet_hash_t *file, const u_char *sha256,
    ngx_http_xet_query_handler_pt handler);

/* Takes a file out of a repo; forgotten tells whether it was in it. */
ngx_int_t ngx_http_xet_query_forget(ngx_http_request_t *r, ngx_str_t *repo,
    const xet_hash_t *file, ngx_http_xet_query_handler_pt handler);
#define ngx_http_xet_query_forgotten(r)                                       \
    (ngx_http_xet_query_number(r) != 0)

/* Drops what an upload has staged under its id; nobody waits for it. */
void ngx_http_xet_query_unstage(const u_char *id);


/* Drops what is left of crashed uploads, and old telemetry. */
void ngx_http_xet_query_sweep(void);

/*
 * Keeps a report; nobody waits for it, and it is dropped when the lane is
 * busy.  On NGX_OK the report is freed later, else it stays the caller's.
 */
ngx_int_t ngx_http_xet_query_telemetry(xet_telemetry_t *t);


/*
 * What is known of a file as a zTensor file by these rules, and, if wanted,
 * the attributes of its root, data NULL without any.
 */
ngx_int_t ngx_http_xet_query_zt(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t rules, ngx_uint_t attributes,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_zt_get(ngx_http_request_t *r, ngx_str_t *verdict,
    ngx_str_t *attributes);

/* Keeps that; copied, nobody waits for it, dropped when the lane is busy. */
void ngx_http_xet_query_zt_put(const xet_hash_t *file, uint64_t rules,
    xet_buf_t *verdict, const xet_zt_text_t *attributes);

/* What verifying objects first to last has found, those that were. */
ngx_int_t ngx_http_xet_query_zt_reports(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t rules, uint64_t first, uint64_t last,
    ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_zt_reports_n(ngx_http_request_t *r);
void ngx_http_xet_query_zt_reports_row(ngx_http_request_t *r, ngx_uint_t i,
    uint64_t *object, ngx_str_t *report);

/* Keeps that, likewise; the arrays' memory is taken over. */
void ngx_http_xet_query_zt_reports_put(const xet_hash_t *file, uint64_t rules,
    ngx_http_xet_array_t *objects, ngx_http_xet_array_t *reports);


ngx_int_t ngx_http_xet_query_ping(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler);


extern const ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[];


#endif /* _NGX_HTTP_XET_QUERY_H_INCLUDED_ */
