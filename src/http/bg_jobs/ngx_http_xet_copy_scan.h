
/*
 * Internal to background jobs: a pass over the copies that rows name.  The
 * background jobs "scrub" and "heal" share it.
 */

#ifndef _NGX_HTTP_XET_COPY_SCAN_H_INCLUDED_
#define _NGX_HTTP_XET_COPY_SCAN_H_INCLUDED_


#include "ngx_http_xet_bg_jobs.h"


#define NGX_HTTP_XET_COPY_SCAN_ROWS  8
#define NGX_HTTP_XET_COPY_SCAN_TAGS  16        /* copies of a xorb at a peer */


/* The first figures of each background job that scans copies. */

typedef enum {
    NGX_HTTP_XET_COPY_SCAN_COPIES = 0,              /* read to their end */
    NGX_HTTP_XET_COPY_SCAN_BYTES,
    NGX_HTTP_XET_COPY_SCAN_UNREAD,                  /* not to be read */
    NGX_HTTP_XET_COPY_SCAN_OWN                      /* the first of the job's */
} ngx_http_xet_copy_scan_figure_e;


/* A copy to be read. */

typedef struct {
    int64_t                    id;             /* of its row */
    xet_hash_t                 xorb;
    uint32_t                   tag;
    uint64_t                   size;
    xet_checksum_t             digest;
    u_char                     ends[32];       /* SHA-256 of stored_ends */
    ngx_uint_t                 digested;       /* digest, else ends */
} ngx_http_xet_copy_scan_row_t;


/* A peer node. */

typedef struct {
    ngx_http_xet_fetch_t      *fetch;
    ngx_msec_t                 until;          /* not asked until then */
    unsigned                   left_out:1;
} ngx_http_xet_copy_scan_peer_t;


typedef struct {
    ngx_http_xet_bg_job_t     *bg_job;

    /*
     * Called when a copy was read: with XET_OK, or XET_STORE_DAMAGED and the
     * reason in scan.why; for a marked copy also with XET_STORE_FAILED; for a
     * foreign file, which is read while copy is set, with any status.  Ends
     * with ngx_http_xet_copy_scan_next() or ngx_http_xet_bg_job_retry().
     */
    void                     (*judge)(ngx_http_xet_bg_job_t *bg_job,
                                      xet_status_t status);

    ngx_http_xet_copy_scan_row_t    rows[NGX_HTTP_XET_COPY_SCAN_ROWS];
    ngx_uint_t                      n;
    ngx_uint_t                      i;         /* the copy in scan */
    int64_t                         after;     /* row; done up to there */
    ngx_uint_t                      unread;    /* in a row */
    ngx_uint_t                      again;     /* copies that were tried */

    ngx_http_xet_scan_t             scan;
    size_t                          taken;     /* by the last job */
    size_t                          limit;     /* bytes of a job */
    xet_status_t                    status;    /* of the last job */
    ngx_msec_t                      due;       /* by the rate, the next job */
    size_t                          rest;      /* bytes not in due yet */

    ngx_http_xet_temp_t            *copy;      /* being made, heals only */
    ngx_pool_t                     *pool;      /* of copy */
    uint32_t                        tags[NGX_HTTP_XET_COPY_SCAN_TAGS];
    ngx_uint_t                      ntags;
    ngx_uint_t                      peer;      /* the current one */
    ngx_http_xet_copy_scan_peer_t  *peers;     /* of all, heals only */

    unsigned                        damaged:1;  /* copies that are marked */
    unsigned                        begun:1;   /* scan of rows[i] */
    unsigned                        answers:1;  /* the store, to the job */
} ngx_http_xet_copy_scan_t;


/* begin, step and end of a background job whose state is a pass. */
void ngx_http_xet_copy_scan_begin(ngx_http_xet_bg_job_t *bg_job, ngx_uint_t
    damaged, void (*judge)(ngx_http_xet_bg_job_t *bg_job, xet_status_t
    status));
void ngx_http_xet_copy_scan_step(ngx_http_xet_bg_job_t *bg_job);
void ngx_http_xet_copy_scan_end(ngx_http_xet_bg_job_t *bg_job);

/* The copy is done; continues with the next one. */
void ngx_http_xet_copy_scan_next(ngx_http_xet_bg_job_t *bg_job);

/*
 * Counts the bytes that a job has read, and returns the delay before the next
 * job in milliseconds.
 */
ngx_msec_t ngx_http_xet_copy_scan_pace(ngx_http_xet_copy_scan_t *scan);

/* A job has failed; the background job is retried. */
void ngx_http_xet_copy_scan_failed(ngx_http_xet_bg_job_t *bg_job,
    xet_status_t status);

/* Drops the copy that is being read or made. */
void ngx_http_xet_copy_scan_drop(ngx_http_xet_copy_scan_t *scan);


#endif /* _NGX_HTTP_XET_COPY_SCAN_H_INCLUDED_ */
