
/*
 * The state of a registration, which its jobs and the event loop share.
 */

#ifndef _NGX_HTTP_XET_REGISTER_H_INCLUDED_
#define _NGX_HTTP_XET_REGISTER_H_INCLUDED_


#include "ngx_http_xet_query.h"
#include "ngx_http_xet_term_batch.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_SEEN         64           /* size of the array "seen";
                                                  a power of two */
#define NGX_HTTP_XET_LOOKS        64           /* copies checked at once */


/* An entry of a hash table: a copy that exists, or is about to be checked. */

typedef struct {
    xet_hash_t                 xorb;
    uint32_t                   copy_id;
    unsigned                   set:1;
} ngx_http_xet_seen_t;


struct ngx_http_xet_register_s {
    ngx_http_xet_register_pt    handler;
    ngx_http_xet_progress_pt    progress;
    ngx_http_xet_query_t       *query;
    const xet_suite_t          *suite;

    uint64_t                    verified;      /* terms verified so far */
    uint64_t                    total;
    uint64_t                    bytes;         /* size of verified files */

    ngx_http_xet_term_batch_t  *term_batch;
    xet_shard_verifier_t        verifier;      /* verifies the open file */
    ngx_http_xet_batch_t        batch;
    xet_status_t                status;
    xet_hash_t                  xorb;          /* xorb named in the error */

    ngx_http_xet_store_t       *store;
    ngx_http_xet_damage_t       damage;
    ngx_http_xet_seen_t         seen[NGX_HTTP_XET_SEEN];
    ngx_http_xet_copy_stat_t    looks[NGX_HTTP_XET_LOOKS];

    /* files that refer to the copies in looks */
    xet_hash_t                  files[NGX_HTTP_XET_LOOKS];
    ngx_uint_t                  nlooks;
    xet_hash_t                  file;          /* file named in the error */

    /* position at which the next query for suspects starts (sql/shards.sql) */
    uint64_t                    suspect_file;
    uint64_t                    suspect_xorb;

    /* of the first slices: see xet.shard_put(); 0 before */
    uint64_t                    hidden;

    unsigned                    named:1;       /* xorb and file are set */
    unsigned                    proof:1;
    unsigned                    proven:1;
    unsigned                    kept:1;
    unsigned                    suspects_checked:1;
    unsigned                    known:1;       /* the file has other terms */
    unsigned                    again:1;       /* the batch was split */
    unsigned                    finished:1;
};


/* ngx_http_xet_register_job.c: the jobs; each sets the status. */

/* Collects the first batch. */
void ngx_http_xet_register_collect_job(void *data, ngx_log_t *log);

/* Verifies the collected batch, and collects the next one. */
void ngx_http_xet_register_verify_job(void *data, ngx_log_t *log);

/*
 * Checks that the copies in the rows of xet.shard_suspects() exist, and records
 * the position for the next query, if there is one.
 */
void ngx_http_xet_register_look_job(void *data, ngx_log_t *log);


#endif /* _NGX_HTTP_XET_REGISTER_H_INCLUDED_ */
