
/*
 * What a kind of store does: the bytes in a folder, or in an object store.
 * Whatever is the same for both is in ngx_http_xet_store.c, which alone calls
 * these functions, but for those of the orphans and the identity.
 */

#ifndef _NGX_HTTP_XET_STORE_OPS_H_INCLUDED_
#define _NGX_HTTP_XET_STORE_OPS_H_INCLUDED_


#include "ngx_http_xet_store.h"


/*
 * Functions that find no copy or no identity return XET_DONE; each other reason
 * why they fail is logged, and is a status that says nothing about the copy.
 */

struct ngx_http_xet_store_ops_s {
    const char     *kind;                      /* for people */

    /* what is missing of the store; in the master, which may block */
    ngx_int_t     (*init)(ngx_http_xet_store_t *store, ngx_cycle_t *cycle);

    /* NGX_HTTP_XET_IDENTITY_LEN + 1 bytes, the last one zero */
    xet_status_t  (*identity_read_job)(ngx_http_xet_store_t *store,
                                       u_char *identity, ngx_log_t *log);
    xet_status_t  (*identity_make_job)(ngx_http_xet_store_t *store,
                                       const u_char *identity,
                                       ngx_log_t *log);

    /* file->size has grown by data; what fails shows at the commit */
    void          (*grown_job)(ngx_http_xet_temp_t *file, const u_char *data,
                               size_t len, ngx_log_t *log);

    /* before the first commit_job: the bytes are durable, or need not be */
    xet_status_t  (*sync_job)(ngx_http_xet_temp_t *file, ngx_log_t *log);

    /*
     * The file becomes a copy of file->xorb, under file->tag; file->committed
     * as soon as there may be one.  XET_AGAIN: there is another one of that
     * tag.
     */
    xet_status_t  (*commit_job)(ngx_http_xet_temp_t *file, ngx_log_t *log);

    /* nothing that was not committed becomes a copy; does not wait */
    void          (*drop)(xet_s3_upload_t *upload);

    /* the status of each, and its size */
    void          (*stat_job)(ngx_http_xet_store_t *store,
                              ngx_http_xet_copy_stat_t *stats, ngx_uint_t n,
                              ngx_log_t *log);

    xet_status_t  (*open_job)(ngx_http_xet_opened_t *copy, ngx_log_t *log);

    /* XET_AGAIN: the copy ends before; copy->err is the system's */
    xet_status_t  (*read_job)(ngx_http_xet_opened_t *copy, u_char *buf,
                              size_t len, uint64_t offset, ngx_log_t *log);

    void          (*close_job)(ngx_http_xet_opened_t *copy, ngx_log_t *log);

    /* a copy that is missing is no error */
    xet_status_t  (*remove_job)(ngx_http_xet_store_t *store,
                                const ngx_http_xet_copy_name_t *name,
                                ngx_log_t *log);

    /* the same for n, in order of their names; then none comes back */
    xet_status_t  (*remove_all_job)(ngx_http_xet_store_t *store,
                                    const ngx_http_xet_copy_name_t *names,
                                    ngx_uint_t n, ngx_log_t *log);

    /* as ngx_http_xet_orphans_*_job() */
    xet_status_t  (*orphans_list_job)(ngx_http_xet_orphans_t *o,
                                      ngx_uint_t max, ngx_log_t *log);
    xet_status_t  (*orphans_take_job)(ngx_http_xet_orphans_t *o,
                                      ngx_log_t *log);
    xet_status_t  (*orphans_settle_job)(ngx_http_xet_orphans_t *o,
                                        ngx_log_t *log);
};


extern const ngx_http_xet_store_ops_t  ngx_http_xet_store_files_ops;
extern const ngx_http_xet_store_ops_t  ngx_http_xet_store_s3_ops;


/*
 * ngx_http_xet_store_dir.c: folders.
 */

/* NGX_OK: the folder was made; NGX_DECLINED: it existed; NGX_ERROR. */
ngx_int_t ngx_http_xet_store_make_dir(ngx_cycle_t *cycle, u_char *path);

/* Syncs a folder, and so the names in it. */
xet_status_t ngx_http_xet_store_sync_dir_job(const char *path,
    ngx_log_t *log);

/* A copy in a folder of which this node may know something that is old. */
ngx_uint_t ngx_http_xet_store_doubtful(ngx_err_t err);
ngx_int_t ngx_http_xet_store_look_anew_job(char *path);

/* Opens a copy for reading; looks anew before it says ENOENT. */
ngx_fd_t ngx_http_xet_store_open_copy_job(char *path, int flags);

/* The path of a copy in a folder; path has NGX_MAX_PATH bytes. */
xet_status_t ngx_http_xet_store_copy_path(char *path,
    const ngx_http_xet_store_t *store, const xet_hash_t *xorb, uint32_t tag);

/*
 * ngx_http_xet_store_tags.c: a tag that no copy has had or will have, unless
 * there is one already: 0 is none.  XET_DATABASE_AWAY: none is left.
 */
xet_status_t ngx_http_xet_store_draw_tag(uint32_t *tag);

/* ngx_http_xet_store_orphans.c, of a folder */
xet_status_t ngx_http_xet_orphans_files_list_job(ngx_http_xet_orphans_t *o,
    ngx_uint_t max, ngx_log_t *log);
xet_status_t ngx_http_xet_orphans_files_take_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);
xet_status_t ngx_http_xet_orphans_files_settle_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);

/* ngx_http_xet_store_s3_orphans.c */
xet_status_t ngx_http_xet_orphans_s3_list_job(ngx_http_xet_orphans_t *o,
    ngx_uint_t max, ngx_log_t *log);
xet_status_t ngx_http_xet_orphans_s3_take_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);
xet_status_t ngx_http_xet_orphans_s3_settle_job(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);

/*
 * ngx_http_xet_store_s3_many.c
 */

void ngx_http_xet_objects_stat_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *stats, ngx_uint_t n, ngx_log_t *log);
xet_status_t ngx_http_xet_objects_remove_all_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, ngx_log_t *log);

/* The same, with a result each; rcs has room for n. */
xet_status_t ngx_http_xet_objects_remove_each_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, xet_s3_rc_t *rcs,
    ngx_log_t *log);

/* ngx_http_xet_store_told.c: of its client, in any thread */
void ngx_http_xet_store_told(const xet_s3_told_t *one);

/* The status of what the object store has answered, which is logged. */
xet_status_t ngx_http_xet_store_s3_failed(ngx_http_xet_store_t *store,
    xet_s3_rc_t rc, const xet_s3_error_t *error, ngx_log_t *log);


#endif /* _NGX_HTTP_XET_STORE_OPS_H_INCLUDED_ */
