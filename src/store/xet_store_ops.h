
/*
 * Internals that the files of src/store share.
 */

#ifndef _XET_STORE_OPS_H_INCLUDED_
#define _XET_STORE_OPS_H_INCLUDED_


#include "xet_store.h"


extern const xet_store_ops_t  xet_store_files_ops;
extern const xet_store_ops_t  xet_store_s3_ops;


/*
 * xet_store_error.c
 */

/*
 * Sets error from errno, after the system call "call" failed for the name.
 * Returns the status.
 */
xet_status_t xet_store_failed(const xet_store_t *store, const char *call,
    const char *name, xet_store_error_t *error);

/*
 * Sets error from errno, after the system call "call" failed for a full path.
 * Returns the status.
 */
xet_status_t xet_store_failed_path(const char *call, const char *path,
    xet_store_error_t *error);

/* Sets error from the error of an S3 request, "why".  Returns the status. */
xet_status_t xet_store_s3_failed(const xet_store_t *store, const char *name,
    xet_s3_rc_t rc, const xet_s3_error_t *why, xet_store_error_t *error);

/* Sets error to the message "text" about the file "name".  Returns status. */
xet_status_t xet_store_says(const xet_store_t *store, const char *name,
    xet_status_t status, const char *text, xet_store_error_t *error);


#endif /* _XET_STORE_OPS_H_INCLUDED_ */
