
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

/* Sets error from errno: call failed for a name.  Returns the status. */
xet_status_t xet_store_failed(const xet_store_t *store, const char *call,
    const char *name, xet_store_error_t *error);

/* The same for a path. */
xet_status_t xet_store_failed_path(const char *call, const char *path,
    xet_store_error_t *error);

/* The same for a failed request to an object store. */
xet_status_t xet_store_s3_failed(const xet_store_t *store, const char *name,
    xet_s3_rc_t rc, const xet_s3_error_t *why, xet_store_error_t *error);

/* Sets error to a text of this code about name.  Returns status. */
xet_status_t xet_store_says(const xet_store_t *store, const char *name,
    xet_status_t status, const char *text, xet_store_error_t *error);


#endif /* _XET_STORE_OPS_H_INCLUDED_ */
