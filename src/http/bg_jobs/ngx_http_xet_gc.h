
/*
 * Private to background jobs: the state of "gc", shared by ngx_http_xet_gc.c
 * (rows and copies) and ngx_http_xet_gc_orphans.c (files without a row).
 */

#ifndef _NGX_HTTP_XET_GC_H_INCLUDED_
#define _NGX_HTTP_XET_GC_H_INCLUDED_


#include "ngx_http_xet_bg_jobs.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_GC_BATCH   256            /* rows */
#define NGX_HTTP_XET_GC_COPIES  32             /* copies per thread job */


typedef enum {
    NGX_HTTP_XET_GC_FILES = 0,
    NGX_HTTP_XET_GC_XORBS,
    NGX_HTTP_XET_GC_SETTLE,
    NGX_HTTP_XET_GC_REMOVAL,
    NGX_HTTP_XET_GC_ORPHANS
} ngx_http_xet_gc_e;


/* The figures, in the order of their names in ngx_http_xet_gc. */

typedef enum {
    NGX_HTTP_XET_GC_N_FILES = 0,
    NGX_HTTP_XET_GC_N_FILE_BYTES,
    NGX_HTTP_XET_GC_N_REFERENCES,
    NGX_HTTP_XET_GC_N_XORBS,
    NGX_HTTP_XET_GC_N_XORB_BYTES,
    NGX_HTTP_XET_GC_N_ADVERTISED,
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
    ngx_uint_t               rate;             /* max. rows per second */

    ngx_http_xet_copy_name_t  copies[NGX_HTTP_XET_GC_COPIES];
    ngx_uint_t                n;
    ngx_http_xet_array_t      hashes;          /* xorbs of copies or orphans */
    ngx_http_xet_array_t      copy_ids;

    ngx_http_xet_orphans_t   orphans;
    int64_t                  left;             /* remaining orphans */
    unsigned                 begun:1;          /* begun by another worker */
    unsigned                 due:1;

    ngx_http_xet_store_t    *store;
    xet_status_t             status;           /* result of the last job */
} ngx_http_xet_gc_t;


/* ngx_http_xet_gc_orphans.c: the phase that removes files without a row. */

/*
 * Starts the phase at a folder where the previous worker stopped, or from the
 * beginning if folder is NGX_ERROR.
 */
void ngx_http_xet_gc_orphans_begin(ngx_http_xet_gc_t *gc, ngx_int_t folder);
void ngx_http_xet_gc_orphans_step(ngx_http_xet_bg_job_t *bg_job);


#endif /* _NGX_HTTP_XET_GC_H_INCLUDED_ */
