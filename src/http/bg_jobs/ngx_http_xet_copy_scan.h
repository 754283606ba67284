
/*
 * Private to background jobs: scans the copies of xorbs that have a row, for
 * the background jobs "scrub" and "heal".
 */

#ifndef _NGX_HTTP_XET_COPY_SCAN_H_INCLUDED_
#define _NGX_HTTP_XET_COPY_SCAN_H_INCLUDED_


#include "ngx_http_xet_bg_jobs.h"


#define NGX_HTTP_XET_COPY_SCAN_ROWS  8

/* The maximum number of copies of one xorb that are tried on one peer. */
#define NGX_HTTP_XET_COPY_SCAN_COPY_IDS  16


/* The first figures of each background job that scans copies. */

typedef enum {
    NGX_HTTP_XET_COPY_SCAN_COPIES = 0,              /* fully read copies */
    NGX_HTTP_XET_COPY_SCAN_BYTES,
    NGX_HTTP_XET_COPY_SCAN_UNREAD,                  /* unreadable copies */
    NGX_HTTP_XET_COPY_SCAN_OWN                      /* first figure of a job */
} ngx_http_xet_copy_scan_figure_e;


/* A copy to be read. */

typedef struct {
    int64_t                    id;             /* id of the row */
    xet_hash_t                 xorb;
    uint32_t                   copy_id;
    uint64_t                   size;
    xet_checksum_t             digest;
    u_char                     ends[32];       /* SHA-256 of stored_ends */
    ngx_uint_t                 digested;       /* use digest, not ends */
} ngx_http_xet_copy_scan_row_t;


/* A peer node. */

typedef struct {
    ngx_http_xet_fetch_t      *fetch;
    ngx_msec_t                 until;          /* time to try again, ms */
    unsigned                   left_out:1;
} ngx_http_xet_copy_scan_peer_t;


typedef struct {
    ngx_http_xet_bg_job_t     *bg_job;

    /*
     * Called with the result of reading a copy: XET_OK, or XET_STORE_DAMAGED
     * with the reason in scan.why.  For a copy marked as damaged, the result
     * may also be XET_STORE_FAILED.  For a copy of a peer (the member "copy" is
     * set), it may be any status.  The callback ends with
     * ngx_http_xet_copy_scan_next() or ngx_http_xet_bg_job_retry().
     */
    void                     (*judge)(ngx_http_xet_bg_job_t *bg_job,
                                      xet_status_t status);

    ngx_http_xet_copy_scan_row_t    rows[NGX_HTTP_XET_COPY_SCAN_ROWS];
    ngx_uint_t                      n;
    ngx_uint_t                      i;         /* index of the current copy */
    int64_t                         after;     /* id of last finished row */
    ngx_uint_t                      unread;    /* consecutive read failures */
    ngx_uint_t                      again;     /* second attempts remaining */

    ngx_http_xet_scan_t             scan;
    size_t                          taken;     /* bytes read by the last job */
    size_t                          limit;     /* maximum bytes per job */
    xet_status_t                    status;    /* result of the last job */
    ngx_msec_t                      due;       /* time of the next job, ms */
    size_t                          rest;      /* bytes not yet added to due */

    ngx_http_xet_temp_t            *copy;      /* heal: new copy, or NULL */
    ngx_pool_t                     *pool;      /* pool of copy */
    uint32_t                        copy_ids[NGX_HTTP_XET_COPY_SCAN_COPY_IDS];
    ngx_uint_t                      ncopy_ids;
    ngx_uint_t                      peer;      /* index of the current peer */
    ngx_http_xet_copy_scan_peer_t  *peers;     /* heal: all peers */

    unsigned                        damaged:1;  /* scan only damaged copies */
    unsigned                        begun:1;   /* rows[i] is being read */
    unsigned                        answers:1;  /* identity can be read */
} ngx_http_xet_copy_scan_t;


/* Used as begin, step and end by a background job that scans copies. */
void ngx_http_xet_copy_scan_begin(ngx_http_xet_bg_job_t *bg_job, ngx_uint_t
    damaged, void (*judge)(ngx_http_xet_bg_job_t *bg_job, xet_status_t
    status));
void ngx_http_xet_copy_scan_step(ngx_http_xet_bg_job_t *bg_job);
void ngx_http_xet_copy_scan_end(ngx_http_xet_bg_job_t *bg_job);

/* Finishes the current copy, and continues with the next one. */
void ngx_http_xet_copy_scan_next(ngx_http_xet_bg_job_t *bg_job);

/*
 * Counts the bytes that a thread job has read.  Returns the delay in ms before
 * the next thread job.
 */
ngx_msec_t ngx_http_xet_copy_scan_pace(ngx_http_xet_copy_scan_t *scan);

/* Retries the background job after a failed thread job. */
void ngx_http_xet_copy_scan_failed(ngx_http_xet_bg_job_t *bg_job,
    xet_status_t status);

/* Drops the copy that is being read or made. */
void ngx_http_xet_copy_scan_drop(ngx_http_xet_copy_scan_t *scan);


#endif /* _NGX_HTTP_XET_COPY_SCAN_H_INCLUDED_ */
