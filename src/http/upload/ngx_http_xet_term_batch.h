
/*
 * Reads the file section of a shard, which is in a temporary file, in batches
 * of terms.
 *
 * The numbers of records, terms and chunks of a batch are limited.  A thread
 * fills the batch, and also collects the parameters of the query for the chunk
 * lists of its terms.
 *
 * Many small files are usually in one xorb, in another order than in the shard.
 * So the terms of a xorb share a slice in the query, from their first chunk to
 * their last one, unless the slices of the batch would have too many chunks.
 * The caller may refer to each of these terms if it may refer to all chunks of
 * the slice.  If it may not, each term needs its own answer, and the batch is
 * split: then the query has one slice for each term.
 */

#ifndef _NGX_HTTP_XET_TERM_BATCH_H_INCLUDED_
#define _NGX_HTTP_XET_TERM_BATCH_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_xet_query.h"
#include "ngx_http_xet_store.h"
#include "xet.h"


#define NGX_HTTP_XET_TERM_BATCH_TERMS   256
#define NGX_HTTP_XET_TERM_BATCH_STEPS   (3 * NGX_HTTP_XET_TERM_BATCH_TERMS)
#define NGX_HTTP_XET_TERM_BATCH_CHUNKS  (2 * XET_XORB_CHUNKS_MAX)
#define NGX_HTTP_XET_READER_SIZE     (341 * XET_SHARD_RECORD_LEN)


/* A record of the file section, of the kind FILE, SEGMENT or FILES_END. */

typedef struct {
    xet_shard_record_t     rec;        /* FILES_END ends a file */
    xet_hash_t             hash;       /* verification hash or SHA-256 */
    ngx_uint_t             window;     /* of a term: its window */
    unsigned               has_hash:1;
} ngx_http_xet_step_t;


/* A read-ahead buffer for records at ascending offsets. */

typedef struct {
    u_char                 data[NGX_HTTP_XET_READER_SIZE];
    uint64_t               offset;
    size_t                 len;
} ngx_http_xet_ahead_t;


/* A range of the chunks of a xorb, with one or several terms. */

typedef struct {
    xet_hash_t             xorb;
    uint32_t               start;
    uint32_t               end;
} ngx_http_xet_window_t;


typedef struct {
    ngx_http_xet_temp_t   *spool;
    uint64_t               files_end;  /* size of the file section in bytes */
    unsigned               proof;      /* verification hashes are required */

    /* position in the file section */
    uint64_t               file;       /* offset of the next file header */
    xet_shard_record_t     header;
    uint32_t               segment;    /* next segment of the open file */
    unsigned               open;

    ngx_uint_t             nsteps;     /* used steps; 0: no more */
    ngx_uint_t             nterms;
    ngx_uint_t             chunks;     /* chunks in all terms */
    ngx_uint_t             nwindows;
    ngx_http_xet_slices_t  slices;     /* of the query: the windows */
    unsigned               split;      /* one window for each term */

    ngx_http_xet_step_t    steps[NGX_HTTP_XET_TERM_BATCH_STEPS];
    ngx_http_xet_window_t  windows[NGX_HTTP_XET_TERM_BATCH_TERMS];
    ngx_http_xet_ahead_t   segments;   /* for segments and file headers */
    ngx_http_xet_ahead_t   hashes;     /* for verification and metadata
                                          records */
} ngx_http_xet_term_batch_t;


/* Allocates about 160 KiB with malloc().  Returns NULL if out of memory. */
ngx_http_xet_term_batch_t *ngx_http_xet_term_batch_create(ngx_http_xet_temp_t
    *spool, uint64_t files_end, ngx_uint_t proof, ngx_log_t *log);
void ngx_http_xet_term_batch_destroy(ngx_http_xet_term_batch_t *w);

/*
 * Reads the next batch; after the last batch w->nsteps is 0.  Returns XET_OK, a
 * read error, or XET_SHARD_NO_VERIFICATION if proof is set and a file has no
 * verification hashes.
 */
xet_status_t ngx_http_xet_term_batch_collect_job(ngx_http_xet_term_batch_t *w,
    ngx_log_t *log);

/* Gives each term of the batch a window of its own. */
void ngx_http_xet_term_batch_split_job(ngx_http_xet_term_batch_t *w);


#endif /* _NGX_HTTP_XET_TERM_BATCH_H_INCLUDED_ */
