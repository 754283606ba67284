
/*
 * Internal to background jobs: the state of the collector that its phases
 * share, those for rows and copies and the one for files without a row.
 */

#ifndef _NGX_HTTP_XET_GC_H_INCLUDED_
#define _NGX_HTTP_XET_GC_H_INCLUDED_


#include "ngx_http_xet_bg_jobs.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_GC_BATCH   256            /* rows */
#define NGX_HTTP_XET_GC_COPIES  32             /* a job */


typedef enum {
    NGX_HTTP_XET_GC_FILES = 0,
    NGX_HTTP_XET_GC_XORBS,
    NGX_HTTP_XET_GC_SETTLE,
    NGX_HTTP_XET_GC_REMOVAL,
    NGX_HTTP_XET_GC_ORPHANS
} ngx_http_xet_gc_e;


/* Figures, in the order of their names. */

typedef enum {
    NGX_HTTP_XET_GC_N_FILES = 0,
    NGX_HTTP_XET_GC_N_FILE_BYTES,
    NGX_HTTP_XET_GC_N_REFERENCES,
    NGX_HTTP_XET_GC_N_XORBS,
    NGX_HTTP_XET_GC_N_XORB_BYTES,
    NGX_HTTP_XET_GC_N_TOLD,
    NGX_HTTP_XET_GC_N_NEEDED,
    NGX_HTTP_XET_GC_N_BUSY,
    NGX_HTTP_XET_GC_N_COPIES,
    NGX_HTTP_XET_GC_N_COPY_BYTES,
    NGX_HTTP_XET_GC_N_ORPHANS,
    NGX_HTTP_XET_GC_N_ORPHAN_BYTES
} ngx_http_xet_gc_figure_e;


typedef struct {
    ngx_http_xet_gc_e        phase;
    ngx_uint_t               batch;
    ngx_uint_t               rate;             /* rows a second */

    ngx_http_xet_copy_name_t  copies[NGX_HTTP_XET_GC_COPIES];
    ngx_uint_t               n;
    ngx_http_xet_array_t     hashes;           /* of copies or orphans */
    ngx_http_xet_array_t     tags;

    ngx_http_xet_orphans_t   orphans;
    int64_t                  left;             /* of the orphans */
    unsigned                 begun:1;          /* another worker has */
    unsigned                 due:1;

    ngx_http_xet_store_t    *store;
    xet_status_t             status;           /* of the job */
} ngx_http_xet_gc_t;


/*
 * ngx_http_xet_gc_orphans.c: the phase of files without a row.
 */

/* folder is the position of the previous worker; or NGX_ERROR. */
void ngx_http_xet_gc_orphans_begin(ngx_http_xet_gc_t *gc, ngx_int_t folder);
void ngx_http_xet_gc_orphans_step(ngx_http_xet_bg_job_t *bg_job);


#endif /* _NGX_HTTP_XET_GC_H_INCLUDED_ */
