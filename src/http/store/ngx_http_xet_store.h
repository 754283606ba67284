
/*
 * The bytes of the store: paths, temporary files, durable commits.  What ends
 * in _job blocks and belongs in a thread.
 */

#ifndef _NGX_HTTP_XET_STORE_H_INCLUDED_
#define _NGX_HTTP_XET_STORE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"


/*
 * Makes the folders of the store that are missing, durably, and removes what
 * a crash has left in <store>/tmp.  Blocks: called by the master at start-up.
 */
ngx_int_t ngx_http_xet_store_init(ngx_cycle_t *cycle);


/*
 * A temporary file of an upload.  Anonymous where the file system can, so
 * that nothing is left whatever dies; else <store>/tmp/<unique name>.
 */

typedef struct {
    ngx_str_t              store;
    ngx_str_t              temp;
    ngx_fd_t               fd;
    off_t                  size;               /* bytes written */
    off_t                  flushed;            /* of them on their way */
    u_char                *name;               /* to be removed, "": none */

    xet_checksum_state_t  *checksum;           /* of what was written */
    xet_checksum_t         digest;             /* after commit */
    uint32_t               tag;                /* likewise */
    uint64_t               began;              /* see ngx_http_xet_whole.h */

    unsigned               anonymous:1;        /* to be tried */
    unsigned               digested:1;
    unsigned               kept:1;             /* the name stays */
} ngx_http_xet_file_t;


/*
 * A file of the request, opened at the first write; closed, and removed if
 * it was not committed, in a thread after the request.
 */
ngx_http_xet_file_t *ngx_http_xet_store_file(ngx_http_request_t *r);

/* The same, for a xorb: what is written is digested, and nothing patched. */
ngx_http_xet_file_t *ngx_http_xet_store_xorb(ngx_http_request_t *r);

xet_status_t ngx_http_xet_store_write_job(ngx_http_xet_file_t *file,
    const u_char *data, size_t len, ngx_log_t *log);

/* Writes over bytes that were written before. */
xet_status_t ngx_http_xet_store_patch_job(ngx_http_xet_file_t *file,
    const u_char *data, size_t len, off_t offset, ngx_log_t *log);

/* Reads exactly len bytes at offset; XET_STORE_FAILED when it can't. */
xet_status_t ngx_http_xet_store_read_job(ngx_http_xet_file_t *file,
    u_char *data, size_t len, off_t offset, ngx_log_t *log);

/*
 * Makes the file a copy of the xorb, durable under a name that nobody has had
 * before: its data, then the name, then the folder; fills digest and tag.  The
 * name goes with the file unless it is kept.
 */
xet_status_t ngx_http_xet_store_commit_job(ngx_http_xet_file_t *file,
    const xet_hash_t *xorb, ngx_log_t *log);

/* A row may name the copy: it stays; or none does, for certain. */
void ngx_http_xet_store_keep(ngx_http_xet_file_t *file, ngx_uint_t kept);

/*
 * Closes the file, and removes the copy unless it is kept: the next write
 * begins another one.
 */
void ngx_http_xet_store_reset_job(ngx_http_xet_file_t *file, ngx_log_t *log);


/*
 * Of a copy that a row names.  XET_STORE_DAMAGED: it is not there, or not as
 * the row says; XET_STORE_OTHER: the folder is not the row's; else
 * XET_STORE_FAILED, and nobody knows.
 */

/* It is there, with its size. */
xet_status_t ngx_http_xet_store_stat_job(const ngx_str_t *store,
    const xet_hash_t *xorb, uint32_t tag, uint64_t size, ngx_log_t *log);

/* All of it is read and held against its digest. */
xet_status_t ngx_http_xet_store_check_job(const ngx_str_t *store,
    const xet_hash_t *xorb, uint32_t tag, const xet_checksum_t *digest,
    ngx_log_t *log);

/* A file that no row names, by its path; one that is not there is gone. */
void ngx_http_xet_store_unlink_job(const char *path, ngx_log_t *log);

/* No row names it any more. */
void ngx_http_xet_store_remove_job(const ngx_str_t *store,
    const xet_hash_t *xorb, uint32_t tag, ngx_log_t *log);


/* <store>/xorbs/<namespace>/<aa>/<name>, without the store; not terminated. */

#define NGX_HTTP_XET_XORB_PATH_MAX                                            \
    (sizeof("/xorbs/" NGX_HTTP_XET_NAMESPACE "/aa/") - 1 + XET_XORB_NAME_MAX)

u_char *ngx_http_xet_store_path(u_char *dst, const xet_hash_t *xorb,
    uint32_t tag);


#endif /* _NGX_HTTP_XET_STORE_H_INCLUDED_ */
