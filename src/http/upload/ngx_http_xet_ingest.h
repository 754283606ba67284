
/*
 * The state of an ingest, which its jobs and the event loop share.
 */

#ifndef _NGX_HTTP_XET_INGEST_H_INCLUDED_
#define _NGX_HTTP_XET_INGEST_H_INCLUDED_


#include "ngx_http_xet_pipeline.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_spool.h"
#include "ngx_http_xet_upload.h"


struct ngx_http_xet_ingest_s {
    ngx_http_xet_ingest_pt          handler;
    ngx_http_xet_ingest_expected_t  expected;
    ngx_http_xet_ingest_result_t    result;

    ngx_http_xet_query_t           *query;
    const xet_suite_t              *suite;
    ngx_log_t                      *log;       /* log of the running job */

    xet_ingest_t                   *core;
    EVP_MD_CTX                     *sha256;
    ngx_http_xet_pipeline_t        *pipeline;  /* NULL: files in memory */
    ngx_http_xet_temp_t            *xorb;      /* the xorb being written */
    ngx_http_xet_spool_t            spool;
    ngx_http_xet_array_t            eligible;  /* chunks for the dedup index */
    ngx_http_xet_array_t            reported;  /* xorbs to be recorded */
    ngx_http_xet_damage_t           damage;    /* copies found missing */
    xet_hash_t                      last;      /* xorb of the last term */
    ngx_http_xet_xorb_file_t        whole;     /* the file, if it is a xorb */

    ngx_http_xet_ingest_file_t     *files;     /* NULL: the request body */
    ngx_uint_t                      n;
    ngx_uint_t                      next;      /* index of the current file */
    xet_status_t                    status;    /* result of the last job */

    ngx_uint_t                      rounds;    /* repetitions of the query */
    size_t                          taken;     /* bytes consumed so far */
    ngx_int_t                       rc;        /* result of a failed query */

    unsigned                        ask:1;     /* dedup is enabled */
    unsigned                        piped:1;   /* the pipeline has pieces */
    unsigned                        digested:1;  /* sha256 has the only piece */
    unsigned                        fed:1;     /* the core has all bytes */
    unsigned                        answered:1;  /* the query has rows */
    unsigned                        ended:1;   /* expected hashes match */
    unsigned                        is_whole:1;  /* whole waits with its xorb */
};


/*
 * ngx_http_xet_ingest_job.c: the jobs.  Both return XET_AGAIN if the event loop
 * must do what xet_ingest_want() returns; then they are called again.
 */

/* Takes the next piece of the body; data is the ngx_http_xet_ingest_t. */
xet_status_t ngx_http_xet_ingest_feed_job(void *data, u_char *buf, size_t len,
    ngx_uint_t last, ngx_log_t *log);

/* Takes files in memory. */
xet_status_t ngx_http_xet_ingest_files_job(ngx_http_xet_ingest_t *ing);


#endif /* _NGX_HTTP_XET_INGEST_H_INCLUDED_ */
